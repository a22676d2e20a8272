//! Mending within an attempt: what an agent got wrong is said to it in the same conversation, before a
//! new attempt is spent. Each turn has a directory of its own, so a killed engine finds it again.

use std::{cell::RefCell, time::Duration};

use gatewright_agents::{Conversation, Usage as Spent};
use gatewright_attempts::{AttemptDir, request_stop, start_or_attach, wait_for_exit};
use gatewright_core::{
    fact::{AttemptReport, Conversation as Known, ProcessEnd, Usage},
    outcome::ReplyProblem,
};

use super::agent::Job;
use crate::{collect::collect_turn, run_context::RunContext, voice::Meter};

/// Turns that mend, if the configuration does not say.
pub const REPAIRS_MAX: u32 = 2;

/// What is said of an attempt whose agent had forgotten.
const BEGAN_ANEW: &str = "its agent could not go on with its conversation: a fresh one was begun";

/// The directory of a turn.
pub fn turn_dir(attempt: &AttemptDir, number: u32) -> std::path::PathBuf {
    attempt.path.join(format!("repair-{number}"))
}

/// Lets the agent mend what can be mended; the report of the last turn that helped. `contradicted`: what a
/// report claims that the tree does not show.
pub fn mend(
    context: &RunContext,
    job: &Job,
    mut report: AttemptReport,
    contradicted: &dyn Fn(&AttemptReport) -> Vec<String>,
) -> AttemptReport {
    let goes_on = job.turn.voice.resumes() && report.conversation.is_some();
    let most = if goes_on { job.turn.agent.repairs_max.unwrap_or(REPAIRS_MAX) } else { 0 };
    let mut mended = 0;
    for number in 1..=most + u32::from(is_lost(&report)) {
        let path = turn_dir(&job.dir, number);
        // A turn that was begun is followed to its end, whatever its files look like meanwhile.
        let begun = path.join("launch.json").exists();
        if !begun && faults(&report).is_empty() {
            report.contradictions = contradicted(&report);
        }
        let (faults, lost) = (faults(&report), is_lost(&report));
        if !begun && !lost && faults.is_empty() {
            break;
        }
        let session = report.conversation.as_ref().map(|known| known.session.clone()).unwrap_or_default();
        let (prompt, conversation) = if lost {
            (job.prompt.clone(), Conversation::New { session: job.fresh_session.clone() })
        } else {
            (prompt(&job.prompt, &faults), Conversation::Resumed { session })
        };
        let before = spent(&report);
        // Nothing is left to mend with: the run rests before the next attempt.
        if !begun && job.allowance.is_limited() && context.purse.is_over(&job.allowance, before) {
            break;
        }
        let Some(next) = one_turn(context, job, &path, &prompt, &conversation, before) else { break };
        mended += u32::from(!lost);
        let spent = sum(report.usage.as_ref(), next.usage.as_ref());
        let duration_ms = report.duration_ms.saturating_add(next.duration_ms);
        let went_well = next.trouble.is_none() && next.ended == (ProcessEnd::Exited { code: 0 });
        let mut denied = report.denied.clone();
        denied.extend(next.denied.iter().filter(|tool| !report.denied.contains(tool)).cloned());
        let instead_of = next.instead_of.clone().or(report.instead_of.clone());
        // Not every agent repeats the id that was chosen for it; the one that is lost is gone.
        let chosen = || Known { agent: job.turn.agent_name.clone(), session: job.fresh_session.clone() };
        let kept =
            if lost { job.turn.voice.chooses_session().then(chosen) } else { report.conversation.clone() };
        let conversation = next.conversation.clone().or(kept);
        let mut remarks = next.remarks.clone();
        if lost {
            remarks.push(BEGAN_ANEW.to_owned());
        }
        remarks.extend(report.remarks.iter().filter(|known| !next.remarks.contains(known)).cloned());
        // A limit is waited for, and what has to be mended is mended after that.
        if went_well || lost || next.quota_until.is_some() {
            report = next;
        }
        report = AttemptReport {
            usage: spent,
            duration_ms,
            denied,
            instead_of,
            conversation,
            repairs: mended,
            remarks,
            ..report
        };
        if !went_well {
            break;
        }
    }
    report
}

/// The conversation that it should have gone on with is not there: the same attempt begins a fresh one.
fn is_lost(report: &AttemptReport) -> bool {
    report.conversation.as_ref().is_some_and(|known| known.session.is_empty())
}

fn spent(report: &AttemptReport) -> Spent {
    let usage = report.usage.clone().unwrap_or_default();
    Spent { input_tokens: usage.tokens, micro_usd: usage.micro_usd, ..Spent::default() }
}

fn one_turn(
    context: &RunContext,
    job: &Job,
    path: &std::path::Path,
    prompt: &str,
    conversation: &Conversation,
    before: Spent,
) -> Option<AttemptReport> {
    let dir = AttemptDir::create(path).ok()?;
    // A stop looks for this directory after it has left its mark: one of us sees the other.
    if job.dir.path.join("stop").exists() {
        return None;
    }
    let prompt_file = dir.path.join("prompt.md");
    if !prompt_file.exists() {
        std::fs::write(&prompt_file, prompt).ok()?;
    }
    let mut turn = job.turn.clone();
    turn.micro_usd_max =
        turn.micro_usd_max.map(|most| most.saturating_sub(before.micro_usd.unwrap_or_default()));
    let spec = turn.spec(context, prompt, &prompt_file, conversation).ok()?;
    start_or_attach(&dir, &spec, &context.supervisor).ok()?;
    let patience = Duration::from_millis(turn.idle_timeout_ms);
    let meter = RefCell::new(Meter::new(&turn.voice, &dir, &job.allowance, before, patience));
    let over = || {
        meter.borrow_mut().watch(&dir, &context.purse, &job.allowance);
        false
    };
    let record = wait_for_exit(&dir, &over, Duration::from_secs(1)).ok()??;
    Some(collect_turn(context, &job.dir, &dir, &record, &job.expectation))
}

/// What is wrong with an attempt whose agent ended well, as far as the agent can mend it.
pub fn faults(report: &AttemptReport) -> Vec<String> {
    if report.ended != (ProcessEnd::Exited { code: 0 })
        || report.trouble.is_some()
        || report.quota_until.is_some()
    {
        return Vec::new();
    }
    let reply = match &report.reply_problem {
        Some(ReplyProblem::Malformed { violations }) => violations.clone(),
        Some(ReplyProblem::NoOutcome) => {
            vec!["your last message has no reply in the format that is demanded".to_owned()]
        }
        None => Vec::new(),
    };
    // Somebody who is blocked or asks something owes no file yet.
    let owes = report.reply.as_ref().is_none_or(|reply| {
        use gatewright_core::outcome::Outcome;
        matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed)
    });
    let files = report.artifacts.iter().filter(|fact| owes && !fact.holds()).map(|fact| {
        if fact.violations.is_empty() {
            format!("`{}` was not written", fact.name)
        } else {
            format!("`{}`: {}", fact.name, fact.violations.join("; "))
        }
    });
    let unsaid = (!report.unsaid.is_empty())
        .then(|| format!("the points of your reply do not speak of: {}", report.unsaid.join(", ")));
    reply.into_iter().chain(files).chain(unsaid).chain(report.contradictions.iter().cloned()).collect()
}

/// What the agent is told: the faults, and once more how to end.
fn prompt(original: &str, faults: &[String]) -> String {
    let list: String = faults.iter().map(|fault| format!("- {}\n", fault.replace('\n', " "))).collect();
    let output = original.rfind("\n## Output\n").map_or("", |at| &original[at..]);
    format!(
        "What you left cannot be used yet:\n{list}\nMend exactly this. What is right stays as it is; do not redo the work.\n{output}"
    )
}

fn sum(first: Option<&Usage>, second: Option<&Usage>) -> Option<Usage> {
    let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    match (first, second) {
        (Some(first), Some(second)) => Some(Usage {
            tokens: add(first.tokens, second.tokens),
            micro_usd: add(first.micro_usd, second.micro_usd),
        }),
        _ => None,
    }
}

/// Ends the turns of an attempt that mend it, and waits for their end.
pub fn stop(attempt: &AttemptDir) {
    for number in 1.. {
        let Ok(dir) = AttemptDir::open(turn_dir(attempt, number)) else { return };
        // One that cannot be asked has ended or never began.
        let _ = request_stop(&dir);
        let _ = wait_for_exit(&dir, &|| false, Duration::from_millis(500));
    }
}
