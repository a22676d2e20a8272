//! Why is this step not running, what does the gate miss, whose turn is it: one answer for every
//! reader (terminal, web, MCP).

use serde::Serialize;

use crate::{
    event::{BudgetKind, Pause},
    fan_out, gate,
    ids::{StepId, Timestamp},
    plan::{Kind, Plan, Step},
    state::{Phase, RunPhase, RunStatus, ScopeId, State, StepState},
};

/// Why something is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub step: Option<StepId>,
    /// One sentence.
    pub because: String,
    /// What it waits for, one sentence each.
    pub misses: Vec<String>,
    /// Who has to act next.
    pub turn: Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    Engine,
    Agent,
    Person,
    Nobody,
}

/// What stops a run as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockedBy {
    pub reason: String,
    pub message: String,
}

/// Why the run does not go on, or nothing if it does.
pub fn blocked_by(plan: &Plan, state: &State) -> Option<BlockedBy> {
    if let RunPhase::Paused(pause) = &state.phase {
        let reason = if matches!(pause, Pause::Unwritten { .. }) { "unwritten" } else { "paused" };
        return Some(BlockedBy { reason: reason.to_owned(), message: pause_text(pause) });
    }
    if state.status() != RunStatus::Blocked {
        return None;
    }
    // What was lost inside a group that passed in spite of it stops nothing.
    let blocked = || state.queues.blocked.iter().filter(|id| !state.is_inside_of_satisfied(id));
    let leaf = blocked().find(|id| !state.fan_outs.contains_key(*id)).or_else(|| blocked().next());
    if let Some(id) = leaf
        && let Some(Phase::Blocked { reason, message }) = state.steps.get(id).map(|own| &own.phase)
    {
        return Some(BlockedBy { reason: reason.word().to_owned(), message: format!("{id}: {message}") });
    }
    let unmet = gate::next_unmet(plan, state)?;
    Some(BlockedBy {
        reason: "obligation".to_owned(),
        message: format!(
            "obligation `{}` is not met, and the question about it was put off: resume asks again",
            unmet.name
        ),
    })
}

fn pause_text(pause: &Pause) -> String {
    match pause {
        Pause::Stop => "stopped on request".to_owned(),
        Pause::Unwritten { problem } => problem.clone(),
        Pause::Until { stage } => format!("it was to go on up to `{stage}`, which is through"),
        Pause::Budget { kind, used, limit, scope } => {
            let place = scope.as_ref().map(|step| format!(" of `{step}`")).unwrap_or_default();
            let figures = match kind {
                BudgetKind::Usd => format!("{} of {} usd", dollars(*used), dollars(*limit)),
                BudgetKind::Tokens => format!("{used} of {limit} tokens"),
                BudgetKind::Wall => format!("{} of {} s", used / 1000, limit / 1000),
                BudgetKind::Launches => format!("{used} of {limit} launches"),
            };
            format!("the budget{place} is used up: {figures}")
        }
        Pause::Quota { agent, until, waited_ms, limit_ms } => format!(
            "the quota of `{agent}` is used up until {}: with this wait it would have been waited for {} in a row, at most {} are allowed",
            moment(*until),
            duration(*waited_ms),
            duration(*limit_ms)
        ),
    }
}

/// Millionths of a dollar as people write them.
pub fn dollars(micro: u64) -> String {
    format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}

/// Milliseconds as people write them, never rounded up.
pub fn duration(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m {seconds:02}s"),
        _ => format!("{hours}h {minutes:02}m"),
    }
}

/// A moment as a date in UTC; the core has no calendar but this one.
pub fn moment(at: Timestamp) -> String {
    let (days, second) = (at.0 / 86_400_000, at.0 / 1000 % 86_400);
    // Days from March 1st of the year 0, in eras of 400 years: leap days then come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Why this step is where it is.
pub fn explain_step(plan: &Plan, state: &State, step: &StepId) -> Option<Explanation> {
    let own = state.steps.get(step)?;
    let definition = state.definition(plan, step)?;
    let (because, misses, turn) = match &own.phase {
        Phase::Dormant => {
            said("it runs only when a loop or an obligation calls for it", Vec::new(), Turn::Nobody)
        }
        Phase::Pending => said("it waits for steps before it", needs(plan, state, step), Turn::Engine),
        Phase::Gated => {
            let misses =
                definition.gates.iter().filter_map(|gate| gate::misses(plan, state, own, gate)).collect();
            said("its gate is not open", misses, Turn::Engine)
        }
        Phase::Ready => {
            let because =
                resting(state).unwrap_or_else(|| "it is ready and waits for a free place".to_owned());
            (because, full_pools(plan, state, step), Turn::Engine)
        }
        Phase::Running { attempt } => (format!("attempt {attempt} is at work"), Vec::new(), Turn::Agent),
        Phase::Verifying { attempt } => {
            (format!("attempt {attempt} is being checked"), checks_left(definition, own), Turn::Engine)
        }
        Phase::Backoff { until } => {
            (backoff(own), vec![format!("tries again at {}", moment(*until))], Turn::Engine)
        }
        Phase::Waiting => said("a person is asked", open_questions(state, step), Turn::Person),
        Phase::Open if state.waits_inside(step) => {
            said("what is left below it waits for a person", open_questions(state, step), Turn::Person)
        }
        Phase::Open => said("steps below it are at work", Vec::new(), Turn::Agent),
        Phase::Fixing => {
            let because = format!("its findings are being worked on; round {} follows", own.round);
            (because, fixers(own), Turn::Agent)
        }
        Phase::Passed { notes } => said("it has passed", notes.clone(), Turn::Nobody),
        Phase::Failed { message } => (format!("it has failed: {message}"), Vec::new(), Turn::Nobody),
        Phase::Blocked { reason, message } => {
            (format!("it is blocked ({}): {message}", reason.word()), Vec::new(), Turn::Person)
        }
        Phase::Skipped { reason, .. } => (format!("it was skipped: {reason}"), Vec::new(), Turn::Nobody),
    };
    Some(Explanation { step: Some(step.clone()), because, misses, turn })
}

fn said(because: &str, misses: Vec<String>, turn: Turn) -> (String, Vec<String>, Turn) {
    (because.to_owned(), misses, turn)
}

/// Why nothing new is started, if that is so.
fn resting(state: &State) -> Option<String> {
    match &state.phase {
        RunPhase::Paused(pause) => Some(pause_text(pause)),
        RunPhase::Stopping => Some("the run is stopping".to_owned()),
        RunPhase::Created | RunPhase::Running | RunPhase::Ended { .. } => None,
    }
}

fn checks_left(definition: &Step, own: &StepState) -> Vec<String> {
    let left = definition.checks.iter().filter(|check| !own.checks.contains_key(*check));
    let commit = (definition.commit && own.commit.is_none()).then(|| "its commit".to_owned());
    left.map(|check| format!("check `{check}`")).chain(commit).collect()
}

fn backoff(own: &StepState) -> String {
    if own.quota_waits > 0 {
        return "the quota of its agent is used up".to_owned();
    }
    own.last_failure.as_ref().map_or_else(
        || "it waits".to_owned(),
        |failure| format!("the last attempt failed ({}): {}", failure.class.word(), failure.message),
    )
}

/// Open questions of a step and of everything below it.
fn open_questions(state: &State, step: &StepId) -> Vec<String> {
    let here = |asked: &StepId| {
        asked
            .as_str()
            .strip_prefix(step.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let pending = state.queues.pending_decisions.iter().filter_map(|id| state.decisions.get(id));
    pending
        .filter(|known| here(&known.decision.step))
        .map(|known| format!("{}: {}", known.decision.id, known.decision.question))
        .collect()
}

fn fixers(own: &StepState) -> Vec<String> {
    let looped = own.review.iter();
    looped
        .flat_map(|looped| looped.awaits.iter().chain(&looped.fix_queue))
        .map(|id| format!("the fix by `{id}`"))
        .collect()
}

fn needs(plan: &Plan, state: &State, step: &StepId) -> Vec<String> {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
        return Vec::new();
    };
    definition
        .needs
        .iter()
        .map(|edge| state.sibling(plan, own, &edge.from))
        .filter_map(|id| {
            let other = state.steps.get(&id)?;
            let word = match &other.phase {
                phase if phase.is_satisfied() => return None,
                Phase::Blocked { .. } => "is blocked",
                Phase::Failed { .. } => "has failed",
                Phase::Waiting => "waits for a person",
                Phase::Running { .. } | Phase::Verifying { .. } | Phase::Open => "is at work",
                Phase::Fixing => "is being worked on",
                Phase::Dormant | Phase::Pending | Phase::Gated | Phase::Ready | Phase::Backoff { .. } => {
                    "has not passed"
                }
                Phase::Passed { .. } | Phase::Skipped { .. } => return None,
            };
            Some(format!("`{id}` {word}"))
        })
        .collect()
}

fn full_pools(plan: &Plan, state: &State, step: &StepId) -> Vec<String> {
    let Some(definition) = state.definition(plan, step) else { return Vec::new() };
    let graph = state.graph(plan);
    let mut misses: Vec<String> = definition
        .pools
        .iter()
        .filter_map(|pool| {
            let used = state.queues.pool_use.get(pool).copied().unwrap_or(0);
            let depth = *graph.pools.get(pool)?;
            (used >= depth).then(|| format!("all {depth} place(s) of `{pool}` are taken"))
        })
        .collect();
    misses.extend(in_the_way(plan, state, definition));
    if state.queues.held.contains(step) {
        misses.push("the answer to the same question, which another item has put".to_owned());
    }
    if let Some(until) = definition.agent().and_then(|agent| state.quota.get(agent))
        && *until > state.updated_at
    {
        misses.push(format!("the quota of its agent is used up until {}", moment(*until)));
    }
    if let Some((fan, most)) = fan_out::crowded(plan, state, step) {
        misses.push(format!("`{fan}` works on {most} of its items, as many as it may"));
    }
    if let Kind::FanOut(fan_out) = &definition.kind {
        misses.push(format!("the list in `{}`", fan_out.over));
    }
    misses
}

/// Who is in the shared checkout beside whom this step may not be.
fn in_the_way(plan: &Plan, state: &State, definition: &Step) -> Vec<String> {
    let excluded = definition.tenure.as_ref().and_then(|tenure| state.graph(plan).excludes.get(tenure));
    let Some(excluded) = excluded else { return Vec::new() };
    let tenure_of = |id: &StepId| state.definition(plan, id).and_then(|other| other.tenure.clone());
    let there =
        state.queues.live.iter().filter(|id| tenure_of(id).is_some_and(|own| excluded.contains(&own)));
    there
        .map(|id| format!("`{id}` is at work in the same checkout: one writer at a time, or nobody could tell whose change is whose"))
        .collect()
}

/// Where the whole run stands and who has to act.
pub fn explain_run(plan: &Plan, state: &State) -> Explanation {
    let waiting: Vec<String> = state
        .queues
        .pending_decisions
        .iter()
        .filter_map(|id| state.decisions.get(id))
        .map(|pending| format!("{}: {}", pending.decision.id, pending.decision.question))
        .collect();
    let say = |because: &str, misses: Vec<String>, turn: Turn| Explanation {
        step: None,
        because: because.to_owned(),
        misses,
        turn,
    };
    match state.status() {
        RunStatus::Running => say("it is at work", waiting, Turn::Agent),
        RunStatus::Waiting => say("it waits for you", waiting, Turn::Person),
        RunStatus::Paused | RunStatus::Blocked => {
            let by = blocked_by(plan, state);
            say(
                if state.status() == RunStatus::Paused { "it is paused" } else { "it is blocked" },
                by.map(|by| by.message).into_iter().collect(),
                Turn::Person,
            )
        }
        RunStatus::Done => say("it is done", Vec::new(), Turn::Nobody),
        RunStatus::Failed => say("it has failed", ended_because(state), Turn::Nobody),
        RunStatus::Abandoned => say("it was given up", ended_because(state), Turn::Nobody),
    }
}

fn ended_because(state: &State) -> Vec<String> {
    match &state.phase {
        RunPhase::Ended { reason, .. } if !reason.is_empty() => vec![reason.clone()],
        RunPhase::Ended { .. }
        | RunPhase::Created
        | RunPhase::Running
        | RunPhase::Stopping
        | RunPhase::Paused(_) => Vec::new(),
    }
}

/// Finished and all steps of the outermost scope, for progress.
pub fn progress(state: &State) -> (usize, usize) {
    let top = state.steps.values().filter(|own| own.scope == ScopeId::top() && own.phase != Phase::Dormant);
    let (done, all) =
        top.fold((0, 0), |(done, all), own| (done + usize::from(own.phase.is_satisfied()), all + 1));
    (done, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last days of months, years, centuries and of the calendar's era of 400 years.
    #[test]
    fn moments_are_dates_in_utc() {
        for (at, words) in [
            (0, "1970-01-01 00:00 UTC"),
            (94_694_399_999, "1972-12-31 23:59 UTC"),
            (946_641_600_000, "1999-12-31 12:00 UTC"),
            (946_684_800_000, "2000-01-01 00:00 UTC"),
            (951_827_696_000, "2000-02-29 12:34 UTC"),
            (951_868_800_000, "2000-03-01 00:00 UTC"),
            (983_318_400_000, "2001-02-28 00:00 UTC"),
            (1_698_736_080_000, "2023-10-31 07:08 UTC"),
            (1_721_023_740_000, "2024-07-15 06:09 UTC"),
            (4_102_444_799_999, "2099-12-31 23:59 UTC"),
            (4_107_542_399_999, "2100-02-28 23:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00 UTC"),
            (4_233_704_760_000, "2104-02-29 05:06 UTC"),
            (13_569_379_200_000, "2399-12-31 00:00 UTC"),
            (13_574_649_599_999, "2400-02-29 23:59 UTC"),
            (13_574_649_600_000, "2400-03-01 00:00 UTC"),
            (26_197_380_660_000, "2800-02-29 10:11 UTC"),
        ] {
            assert_eq!(moment(Timestamp(at)), words);
        }
    }

    #[test]
    fn durations_are_short() {
        let words: Vec<String> = [999, 59_999, 61_000, 125_000, 3_600_000, 90_061_000].map(duration).into();
        assert_eq!(words, ["0s", "59s", "1m 01s", "2m 05s", "1h 00m", "25h 01m"]);
    }
}
