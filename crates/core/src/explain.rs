//! Why is this step not running, what does the gate miss, whose turn is it: one answer for every
//! reader (terminal, web, MCP).

use serde::Serialize;

use crate::{
    event::{BudgetKind, Pause},
    gate,
    ids::StepId,
    plan::{Kind, Plan, Step},
    state::{DecisionStatus, Phase, RunPhase, RunStatus, ScopeId, State},
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
        return Some(BlockedBy { reason: "paused".to_owned(), message: pause_text(pause) });
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
            "obligation `{}` is not met and no step is left that could meet it: mend the definition and resume with --adopt, or abort",
            unmet.name
        ),
    })
}

fn pause_text(pause: &Pause) -> String {
    match pause {
        Pause::Stop => "stopped on request".to_owned(),
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
    }
}

/// Millionths of a dollar as people write them.
pub fn dollars(micro: u64) -> String {
    format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}

/// Why this step is where it is.
pub fn explain_step(plan: &Plan, state: &State, step: &StepId) -> Option<Explanation> {
    let own = state.steps.get(step)?;
    let definition = state.definition(plan, step)?;
    let say = |because: String, misses: Vec<String>, turn: Turn| {
        Some(Explanation { step: Some(step.clone()), because, misses, turn })
    };
    let resting = match &state.phase {
        RunPhase::Paused(pause) => Some(pause_text(pause)),
        RunPhase::Stopping => Some("the run is stopping".to_owned()),
        RunPhase::Created | RunPhase::Running | RunPhase::Ended { .. } => None,
    };
    match &own.phase {
        Phase::Dormant => {
            say("it runs only when a loop or an obligation calls for it".to_owned(), Vec::new(), Turn::Nobody)
        }
        Phase::Pending => {
            say("it waits for steps before it".to_owned(), needs(plan, state, step), Turn::Engine)
        }
        Phase::Gated => {
            let misses =
                definition.gates.iter().filter_map(|gate| gate::misses(plan, state, own, gate)).collect();
            say("its gate is not open".to_owned(), misses, Turn::Engine)
        }
        Phase::Ready => say(
            resting.unwrap_or_else(|| "it is ready and waits for a free place".to_owned()),
            full_pools(plan, state, step),
            Turn::Engine,
        ),
        Phase::Running { attempt } => say(format!("attempt {attempt} is at work"), Vec::new(), Turn::Agent),
        Phase::Verifying { attempt } => {
            let left = definition
                .checks
                .iter()
                .filter(|check| !own.checks.contains_key(*check))
                .map(|check| format!("check `{check}`"));
            say(format!("attempt {attempt} is being checked"), left.collect(), Turn::Engine)
        }
        Phase::Backoff { until } => {
            let why = own.last_failure.as_ref().map_or_else(
                || "it waits".to_owned(),
                |failure| format!("the last attempt failed ({}): {}", failure.class.word(), failure.message),
            );
            say(why, vec![format!("tries again at {} ms since the epoch", until.0)], Turn::Engine)
        }
        Phase::Waiting => {
            let open = state
                .decisions
                .values()
                .filter(|other| other.decision.step == *step && other.status == DecisionStatus::Pending);
            say(
                "a person is asked".to_owned(),
                open.map(|other| format!("{}: {}", other.decision.id, other.decision.question)).collect(),
                Turn::Person,
            )
        }
        Phase::Open => say("steps below it are at work".to_owned(), Vec::new(), Turn::Agent),
        Phase::Fixing => {
            let waits = own.review.as_ref().map(|looped| {
                looped.awaits.iter().chain(&looped.fix_queue).map(|id| format!("the fix by `{id}`")).collect()
            });
            say(
                format!("its findings are being worked on; round {} follows", own.round),
                waits.unwrap_or_default(),
                Turn::Agent,
            )
        }
        Phase::Passed { notes } => say("it has passed".to_owned(), notes.clone(), Turn::Nobody),
        Phase::Failed { message } => say(format!("it has failed: {message}"), Vec::new(), Turn::Nobody),
        Phase::Blocked { reason, message } => {
            say(format!("it is blocked ({}): {message}", reason.word()), Vec::new(), Turn::Person)
        }
        Phase::Skipped { reason, .. } => say(format!("it was skipped: {reason}"), Vec::new(), Turn::Nobody),
    }
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
    if let Some(until) = definition.agent().and_then(|agent| state.quota.get(agent))
        && *until > state.updated_at
    {
        misses.push(format!("the quota of its agent is used up until {} ms since the epoch", until.0));
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
