//! One line per event worth a person's while. Pure over events.

use gatewright_core::{
    event::{Cause, Event, ItemEnd, Pause, RunEnd},
    explain::{blocked_by, dollars},
    fact::{AttemptReport, CommitFact, IntrusionKind},
    ids::StepId,
    input::Raise,
    outcome::Outcome,
    plan::Plan,
    state::State,
    verdict::Verdict,
};

use crate::render::text::{count, iso, one_line};

/// What to tell about an event; nothing for those that only book-keeping needs. One arm per event: long
/// for a function, short for a table.
pub fn event_line(plan: &Plan, state: &State, event: &Event) -> Option<String> {
    let text = match event {
        Event::RunStarted { .. }
        | Event::ResultIgnored { .. }
        | Event::ItemOpened { .. }
        | Event::DecisionOpened { .. }
        | Event::DecisionBound { .. }
        | Event::GateEvaluated { value: Ok(true), .. }
        | Event::GroupOpened { .. } => return None,
        Event::StopRequested => "stopping: what runs may finish".to_owned(),
        Event::RunPaused { why: Pause::Unwritten { problem } } => format!("blocked: {problem}"),
        Event::RunPaused { .. } => {
            format!("paused: {}", blocked_by(plan, state).map(|by| by.message).unwrap_or_default())
        }
        Event::RunResumed { .. } => "goes on".to_owned(),
        Event::UntilSet { stage, skipped, .. } if skipped.is_empty() => format!("goes on up to {stage}"),
        Event::UntilSet { stage, skipped, reason } => {
            format!("goes on up to {stage} without {}: {reason}", some_of(skipped))
        }
        Event::StepGiven { step, from } => format!("  {step}: its work is taken from {from}"),
        Event::RunEnded { how, reason } => ended(*how, reason),
        Event::PlanAdopted { .. } => "the definition is taken as it is now".to_owned(),
        Event::ProfileEscalated { from, to, by, reason } => {
            format!("profile {from} → {to}: {by} says {reason}")
        }
        Event::AttemptStarted { step, attempt, round } => {
            attempt_started(plan, state, step, *attempt, *round)
        }
        // Said by its start.
        Event::AttemptLaunched { .. } | Event::ConversationBegan { .. } => return None,
        Event::ProgressTold { step, hints, .. } => {
            let last = hints.last().filter(|hint| !hint.summary.is_empty())?;
            format!("  {step}: {}", one_line(&last.summary))
        }
        Event::AttemptEnded { step, report, .. } => worth_knowing(step, report)?,
        Event::CheckEnded { step, check, fact, .. } if fact.ok && fact.flaky > 0 => {
            format!("! {step}: check {check} is ok, but flaky: it failed {} time(s) before", fact.flaky)
        }
        Event::CheckEnded { step, check, fact, .. } if fact.ok => format!("  {step}: check {check} is ok"),
        Event::CheckEnded { step, fact, .. } => format!("✗ {step}: {}", fact.message),
        Event::CommitEnded { step, fact, .. } => committed(step, fact)?,
        Event::RetryScheduled { step, class, message, .. } => {
            format!("↻ {step}: tries again ({}): {message}", class.word())
        }
        Event::Judged { step, round, verdict } => {
            format!("  {step}: round {round}: {}", verdict_words(*verdict))
        }
        Event::StepPassed { step, notes } => passed(state, step, notes),
        Event::StepFailed { step, message } => format!("✗ {step} failed: {message}"),
        Event::StepBlocked { step, reason, message } => {
            format!("■ {step} is blocked ({}): {message}", reason.word())
        }
        Event::StepSkipped { step, reason, .. } => format!("– {step} skipped: {reason}"),
        Event::Invalidated { steps, cause } => format!("↻ {} again: {}", some_of(steps), cause_words(cause)),
        Event::GateEvaluated { step, gate, value: Ok(false) } => format!("  {step}: gate {gate} is closed"),
        Event::GateEvaluated { step, gate, value: Err(why) } => {
            format!("✗ {step}: gate {gate} cannot be evaluated: {why}")
        }
        Event::GateWaived { step, gate, reason } => format!("! {step}: gate {gate} was waived: {reason}"),
        Event::RoundOpened { review, round, fix, findings } => {
            format!(
                "↻ {review}: {} to fix by {}, then round {round}",
                count(findings.len(), "finding"),
                some_of(fix)
            )
        }
        Event::LoopExhausted { review, rounds, message } => {
            format!("! {review}: {rounds} rounds are used up: {message}")
        }
        Event::LimitRaised { step } => format!("  {step}: one more is granted"),
        Event::FanOutStarted { step, items, .. } => format!("  {step}: {}", count(items.len(), "item")),
        Event::ItemKept { step, key } => format!("✓ {step}/{key} is asked for as before: kept"),
        Event::ItemDropped { step, key } => format!("– {step}/{key} is not asked for any more"),
        Event::ItemEnded { step, key, end } => item_ended(step, key, end),
        Event::DecisionAnswered { id, answer, comment, .. } => {
            let comment = comment.as_ref().map(|comment| format!(" ({comment})")).unwrap_or_default();
            format!("  {id} answered: {answer}{comment}")
        }
        Event::DecisionCancelled { id, reason } => format!("  {id} cancelled: {reason}"),
        Event::DecisionSkipped { id, reason } => format!("  {id} skipped: {reason}"),
        Event::DecisionStaled { id, changed } => {
            format!("! {id} no longer counts: {} changed", some_of(changed))
        }
        Event::StageRestarted { stage, count, reason, .. } => {
            format!("↻ stage {stage} restarts ({count}): {reason}")
        }
        Event::ReferredBack { from, to, reason } => {
            format!("↻ {from} refers the work back to {to}: {reason}")
        }
        Event::BudgetRaised { raise } => format!("  budget raised: {}", raised(raise)),
        Event::QuotaWaiting { step, until } => {
            format!("  {step}: the quota of its agent is used up until {}", iso(*until))
        }
        Event::ObligationOpened { name, step } => format!("  {step} runs to meet `{name}`"),
        Event::ObligationWaived { name, reason } => format!("! obligation {name} was waived: {reason}"),
        Event::ArtifactAdopted { name, .. } => format!("  {name}: the change by hand is kept"),
        Event::IntrusionNoticed { intrusion } => match intrusion.kind {
            // Said by the failure of the attempt.
            IntrusionKind::Trespass => return None,
            IntrusionKind::Watched | IntrusionKind::AttemptFile | IntrusionKind::List => {
                format!("! noticed: {}", intrusion.what)
            }
            IntrusionKind::UnsealedOrder | IntrusionKind::AgentOrder | IntrusionKind::Projection => {
                format!("! refused: {}", intrusion.what)
            }
        },
        Event::MessageTaken { .. } | Event::MessageDropped { .. } => return None,
        Event::ArtifactRestored { name } => format!("  {name}: put back as it was accepted"),
    };
    Some(one_line_kept_indent(&text))
}

/// What an agent was refused, and a model that it had to do without.
fn worth_knowing(step: &StepId, report: &AttemptReport) -> Option<String> {
    let mut said = Vec::new();
    if let (Some(wanted), Some(model)) = (&report.instead_of, &report.model) {
        said.push(format!("worked with {} instead of {}", one_line(model), one_line(wanted)));
    }
    if let Some(next) = &report.next_model {
        said.push(format!("there is no place for its model; the next attempt asks for {}", one_line(next)));
    }
    if !report.denied.is_empty() {
        let tools: Vec<String> = report.denied.iter().map(|tool| one_line(tool)).collect();
        said.push(format!("was not allowed to use {}", tools.join(", ")));
    }
    // Those of an error are in its message.
    if report.reply.as_ref().is_none_or(|reply| reply.outcome != Outcome::Error) {
        said.extend(report.remarks.iter().map(|remark| one_line(remark)));
    }
    if !report.unsaid.is_empty() {
        said.push(format!("its reply does not speak of {}", one_line(&report.unsaid.join(", "))));
    }
    (!said.is_empty()).then(|| format!("! {step}: {}", said.join("; ")))
}

fn attempt_started(plan: &Plan, state: &State, step: &StepId, attempt: u32, round: u32) -> String {
    let definition = state.definition(plan, step);
    let who = definition
        .and_then(|definition| Some(format!(" by {} ({})", definition.role()?, definition.agent()?)));
    let round = if round > 1 { format!(", round {round}") } else { String::new() };
    format!("▶ {step}: attempt {attempt}{round}{}", who.unwrap_or_default())
}

fn passed(state: &State, step: &StepId, notes: &[String]) -> String {
    let summary = state.steps.get(step).map(|own| own.summary.trim()).filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| format!(": {summary}")).unwrap_or_default();
    let notes = if notes.is_empty() { String::new() } else { format!(" (with notes: {})", notes.join("; ")) };
    format!("✓ {step} passed{summary}{notes}")
}

fn committed(step: &StepId, fact: &CommitFact) -> Option<String> {
    match fact {
        CommitFact::Made { commit, branch, files } => {
            let short = commit.get(..8).unwrap_or(commit);
            Some(format!("  {step}: {} committed as {short} on {branch}", count(*files as usize, "file")))
        }
        CommitFact::Nothing => None,
        CommitFact::Refused { message } => Some(format!("✗ {step}: not committed: {message}")),
    }
}

fn item_ended(step: &StepId, key: &str, end: &ItemEnd) -> String {
    match end {
        ItemEnd::Passed => format!("✓ {step}/{key} done"),
        ItemEnd::Failed { by } => format!("✗ {step}/{key} failed ({})", some_of(by)),
        ItemEnd::Blocked { by } => format!("■ {step}/{key} cannot start: it waits for {}", by.join(", ")),
    }
}

/// The first few names, and how many more there are.
fn some_of<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn raised(raise: &Raise) -> String {
    let usd = raise.micro_usd.map(|micro| format!("usd={}", dollars(micro)));
    let tokens = raise.tokens.map(|tokens| format!("tokens={tokens}"));
    let launches = raise.launches.map(|launches| format!("launches={launches}"));
    let wall = raise.wall_ms.map(|ms| format!("wall={}", crate::terminal::duration(ms)));
    let quota = raise.quota_wait_ms.map(|ms| format!("quota_wait={}", crate::terminal::duration(ms)));
    [usd, tokens, launches, wall, quota].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// One line, with the two columns of its mark.
fn one_line_kept_indent(text: &str) -> String {
    let indent = if text.starts_with("  ") { "  " } else { "" };
    format!("{indent}{}", one_line(text))
}

fn ended(how: RunEnd, reason: &str) -> String {
    let (mark, word) = match how {
        RunEnd::Done => ("✓", "done"),
        RunEnd::Failed => ("✗", "failed"),
        RunEnd::Abandoned => ("✗", "abandoned"),
    };
    if reason.is_empty() { format!("{mark} {word}") } else { format!("{mark} {word}: {reason}") }
}

fn verdict_words(verdict: Verdict) -> String {
    serde_json::to_value(verdict)
        .ok()
        .and_then(|word| word.as_str().map(|word| word.replace('_', " ")))
        .unwrap_or_default()
}

/// Why a step runs again, in words.
pub fn cause_words(cause: &Cause) -> String {
    match cause {
        Cause::Fix { review, findings } => {
            format!("{} of {review}", count(findings.len(), "finding"))
        }
        Cause::Changes { decision, comment } => match comment {
            Some(comment) => format!("{decision} asks for changes: {comment}"),
            None => format!("{decision} asks for changes"),
        },
        Cause::ReferredBack { from, reason } => format!("{from} refers it back: {reason}"),
        Cause::Upstream { step } => format!("{step} runs again"),
        Cause::Restart { stage, reason } => format!("stage {stage} restarts: {reason}"),
        Cause::BadList { reason } => format!("its list cannot be used: {reason}"),
        Cause::ListAdopted { decision } => format!("{decision} adopts its changed list"),
        Cause::Resumed => "a person resumed the run".to_owned(),
        Cause::Stale { changed } => {
            format!("{} changed", changed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::Sample;

    #[test]
    fn a_run_as_lines() {
        let mut sample = Sample::in_the_middle();
        sample.ends("tasks/T-1/code", "coded");
        let told = |event: &Event| event_line(&sample.frozen.plan, &sample.state, event);
        let lines: Vec<String> = sample.events.iter().filter_map(told).collect();
        let expected = [
            "▶ plan: attempt 1 by planner (claude)",
            "✓ plan passed: Three \\u{1b}[31mtasks",
            "  agree answered: yes",
            "✓ agree passed",
            "  tasks: 3 items",
            "▶ tasks/T-1/code: attempt 1 by coder (claude)",
            "▶ tasks/T-2/code: attempt 1 by coder (claude)",
            "✓ tasks/T-1/code passed: coded",
            "▶ tasks/T-1/review: attempt 1 by coder (claude)",
        ];
        assert_eq!(lines, expected);
    }
}
