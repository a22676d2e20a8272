//! What the end of an attempt means: accepted, tried again, blocked, or a question.

use std::collections::BTreeSet;

use crate::{
    decision,
    event::{About, BlockReason, Cause, Event, FailureClass},
    fact::{AttemptReport, CheckFact, CommitFact, InputProblem, ProcessEnd, TroubleKind},
    ids::{ArtifactName, DecisionId, StepId, Timestamp},
    outcome::{Outcome, Reply, ReplyProblem},
    plan::{Exhaustion, Kind, Plan, Retry, Review, limits},
    restart, review_loop,
    state::{DecisionStatus, State, StepState},
};

/// What an attempt came to.
enum Conclusion {
    /// It does not count.
    Fault { class: FailureClass, message: String },
    /// These follow; none while a check is to come.
    Events(Vec<Event>),
}

impl From<Vec<Event>> for Conclusion {
    fn from(events: Vec<Event>) -> Conclusion {
        Conclusion::Events(events)
    }
}

fn fault(class: FailureClass, message: &str) -> Conclusion {
    Conclusion::Fault { class, message: message.to_owned() }
}

/// What follows from the end of an attempt and of its checks; nothing while a check is to come.
pub fn conclude(plan: &Plan, state: &State, id: &StepId, now: Timestamp) -> Vec<Event> {
    match conclusion(plan, state, id, now) {
        Conclusion::Events(events) => events,
        Conclusion::Fault { class, message } => failed(plan, state, id, class, &message, now),
    }
}

/// Why the last attempt does not count, if it does not.
pub fn fault_of(plan: &Plan, state: &State, id: &StepId, now: Timestamp) -> Option<(FailureClass, String)> {
    match conclusion(plan, state, id, now) {
        Conclusion::Events(_) => None,
        Conclusion::Fault { class, message } => Some((class, message)),
    }
}

fn conclusion(plan: &Plan, state: &State, id: &StepId, now: Timestamp) -> Conclusion {
    let nothing = || Conclusion::Events(Vec::new());
    let (Some(own), Some(definition)) = (state.steps.get(id), state.definition(plan, id)) else {
        return nothing();
    };
    let Some(report) = own.report.as_deref() else { return nothing() };
    if let Some(ended) = process_trouble(plan, state, id, report, now) {
        return ended;
    }
    if matches!(definition.kind, Kind::Check { .. } | Kind::Merge { .. } | Kind::Finish { .. }) {
        if report.asks_something() {
            return questions(plan, state, id, report);
        }
        return match &report.check {
            // What a command wrote is held against its contract like an agent's work.
            Some(fact) if fact.ok => match contradicted(report) {
                Some((class, message)) => fault(class, &message),
                None => {
                    let said = report.reply.iter().flat_map(|reply| reply.disagreements.clone());
                    let notes = flaky_notes(own).into_iter().chain(said).collect();
                    vec![Event::StepPassed { step: id.clone(), notes }].into()
                }
            },
            // What cannot be merged is mended like a review's findings.
            Some(_) if has_findings(report) && definition.rounds().is_some() => {
                accepted(plan, state, id, report).into()
            }
            Some(fact) => fault(check_class(fact), &fact.message),
            None => fault(FailureClass::Crash, "the command gave no result"),
        };
    }
    // Before its words: no outcome, not even a question, excuses what was touched (decision 28).
    if !report.trespasses.is_empty() {
        return fault(FailureClass::Reality, &report.trespasses.join("; "));
    }
    if let Some(ended) = said(plan, state, id, report) {
        return ended;
    }
    if let Some((class, message)) = contradicted(report) {
        return fault(class, &message);
    }
    if let Some(fact) = &own.check_failure {
        return fault(check_class(fact), &fact.message);
    }
    if !definition.checks.iter().all(|check| own.checks.contains_key(check)) {
        return nothing();
    }
    match own.commit.as_deref() {
        None if definition.commit => nothing(),
        Some(CommitFact::Refused { message }) => {
            let message = format!("its changes were not committed: {message}");
            fault(FailureClass::Reality, &message)
        }
        None | Some(CommitFact::Made { .. } | CommitFact::Nothing) => {
            accepted(plan, state, id, report).into()
        }
    }
}

fn has_findings(report: &AttemptReport) -> bool {
    report.reply.as_ref().is_some_and(|reply| !reply.findings.is_empty())
}

fn check_class(fact: &CheckFact) -> FailureClass {
    match (fact.timed_out, fact.class, fact.build) {
        (true, ..) => FailureClass::Timeout,
        (false, Some(class), _) => class,
        (false, None, true) => FailureClass::Build,
        (false, None, false) => FailureClass::Test,
    }
}

/// The review that a step speaks for, as its only reviewer or as one of a panel.
pub fn review_of<'p>(plan: &'p Plan, state: &State, id: &StepId) -> Option<&'p Review> {
    let holder = state.panel_of(plan, id).unwrap_or_else(|| id.clone());
    state.definition(plan, &holder)?.rounds()
}

/// A reviewer whose doubts are put to a person with the answers of the review.
pub fn judges_notes(plan: &Plan, state: &State, id: &StepId) -> bool {
    review_of(plan, state, id).is_some_and(|review| !review.on_notes.is_empty())
}

fn accepted(plan: &Plan, state: &State, id: &StepId, report: &AttemptReport) -> Vec<Event> {
    match review_of(plan, state, id) {
        Some(review) => review_loop::judge(plan, state, id, review, report),
        None => {
            let mut notes =
                report.reply.as_ref().map(|reply| reply.disagreements.clone()).unwrap_or_default();
            notes.extend(state.steps.get(id).map(|own| flaky_notes(own)).unwrap_or_default());
            vec![Event::StepPassed { step: id.clone(), notes }]
        }
    }
}

/// Ok in the end is ok; that it was not at first is shown wherever the step is.
fn flaky_notes(own: &StepState) -> Vec<String> {
    let words = |(check, failures): (&crate::ids::CheckId, &u64)| {
        format!("check `{check}` is flaky: it failed {failures} time(s) before it was ok")
    };
    own.flaky.iter().map(words).collect()
}

/// The decision is asked again, and the step waits for it. One event at a time: a crash between the
/// two finds the decision open and goes on with the step.
fn decision_was_stale(
    state: &State,
    id: &StepId,
    decision: &DecisionId,
    changed: &[ArtifactName],
) -> Vec<Event> {
    let counted = state.decisions.get(decision).is_some_and(|known| known.status == DecisionStatus::Answered);
    if counted {
        return vec![Event::DecisionStaled { id: decision.clone(), changed: changed.to_vec() }];
    }
    let cause = Cause::Stale { changed: changed.to_vec() };
    vec![Event::Invalidated { steps: BTreeSet::from([id.clone()]), cause }]
}

/// The process did not end by itself with 0.
fn process_trouble(
    plan: &Plan,
    state: &State,
    id: &StepId,
    report: &AttemptReport,
    now: Timestamp,
) -> Option<Conclusion> {
    let blocked =
        |reason, message: String| Some(vec![Event::StepBlocked { step: id.clone(), reason, message }].into());
    if let Some(ended) = agent_trouble(state, id, report) {
        return Some(ended);
    }
    match &report.ended {
        ProcessEnd::NotStarted { problem: InputProblem::Missing { name, near, available } } => {
            blocked(BlockReason::MissingInput, missing_input(name, near, available))
        }
        ProcessEnd::NotStarted { problem: InputProblem::Changed { name, found, .. } } => {
            let decision = decision::hand_edit(plan, state, id, name, found);
            Some(vec![Event::DecisionOpened { decision }].into())
        }
        ProcessEnd::NotStarted { problem: InputProblem::Stale { decision, changed } } => {
            Some(decision_was_stale(state, id, decision, changed).into())
        }
        ProcessEnd::NotStarted { problem: InputProblem::Unusable { message } }
        | ProcessEnd::StartFailed { message } => blocked(BlockReason::ToolUnavailable, message.clone()),
        ProcessEnd::Interrupted | ProcessEnd::Stopped => Some(interrupted(plan, state, id, now).into()),
        ProcessEnd::TimedOut => Some(fault(FailureClass::Timeout, "it ran longer than its timeout")),
        ProcessEnd::Idle => Some(fault(FailureClass::Idle, "it was silent for longer than its idle timeout")),
        // A reset time that has passed already is nothing to wait for: an attempt like any other.
        ProcessEnd::Exited { .. } | ProcessEnd::Signalled { .. }
            if state.steps.get(id).is_some_and(|own| waits_for_quota(own, report, state.updated_at)) =>
        {
            report.quota_until.map(|until| vec![Event::QuotaWaiting { step: id.clone(), until }].into())
        }
        ProcessEnd::Signalled { signal } => {
            Some(fault(FailureClass::Crash, &format!("it was ended by signal {signal}")))
        }
        // A check's exit code is its result, not a crash.
        ProcessEnd::Exited { code } if *code != 0 && report.check.is_none() => {
            Some(fault(FailureClass::Crash, &format!("it exited with {code}")))
        }
        ProcessEnd::Exited { .. } => None,
    }
}

/// The agent says itself that it did not end well; its exit code proves nothing.
fn agent_trouble(state: &State, id: &StepId, report: &AttemptReport) -> Option<Conclusion> {
    let trouble = report.trouble.as_ref()?;
    if !matches!(report.ended, ProcessEnd::Exited { .. } | ProcessEnd::Signalled { .. })
        || state.steps.get(id).is_some_and(|own| waits_for_quota(own, report, state.updated_at))
    {
        return None;
    }
    let message = format!("{} ({})", trouble.message, trouble.kind.word());
    if !trouble.kind.is_final() {
        return Some(fault(FailureClass::Crash, &message));
    }
    let reason = match trouble.kind {
        TroubleKind::Auth => BlockReason::ToolUnavailable,
        TroubleKind::Rate
        | TroubleKind::Server
        | TroubleKind::Network
        | TroubleKind::Context
        | TroubleKind::BadRequest
        | TroubleKind::Budget
        | TroubleKind::Denied
        | TroubleKind::Interrupted
        | TroubleKind::Unknown => BlockReason::AgentError,
    };
    Some(vec![Event::StepBlocked { step: id.clone(), reason, message }].into())
}

/// Its agent names a time that is still to come, and has not done so again and again. `at` is when
/// the attempt ended: nothing is applied between its end and what follows from it.
pub fn waits_for_quota(own: &StepState, report: &AttemptReport, at: Timestamp) -> bool {
    own.quota_waits < limits::QUOTA_WAITS_MAX && report.quota_until.is_some_and(|until| until > at)
}

fn missing_input(name: &str, near: &[String], available: &[String]) -> String {
    let mut message = format!("required input `{name}` does not exist");
    if !near.is_empty() {
        message.push_str(&format!("; near matches: {}", near.join(", ")));
    }
    message.push_str(&if available.is_empty() {
        "; the run directory is empty".to_owned()
    } else {
        format!("; there are: {}", available.join(", "))
    });
    message
}

fn interrupted(plan: &Plan, state: &State, id: &StepId, now: Timestamp) -> Vec<Event> {
    let Some(own) = state.steps.get(id) else { return Vec::new() };
    let max = state
        .definition(plan, id)
        .map_or(limits::INTERRUPTIONS_MAX, |definition| definition.retry.interruptions_max);
    if own.interruptions >= max {
        let message = format!("it was interrupted {} times", own.interruptions);
        return vec![Event::StepBlocked { step: id.clone(), reason: BlockReason::Interrupted, message }];
    }
    let message = "it was interrupted".to_owned();
    vec![Event::RetryScheduled { step: id.clone(), class: FailureClass::Interrupted, message, at: now }]
}

/// What the reply alone decides: no reply, an error, a block, questions, a referral.
fn said(plan: &Plan, state: &State, id: &StepId, report: &AttemptReport) -> Option<Conclusion> {
    let Some(reply) = &report.reply else {
        let message = match &report.reply_problem {
            Some(ReplyProblem::Malformed { violations }) => {
                format!("its reply is malformed: {}", violations.join("; "))
            }
            Some(ReplyProblem::NoOutcome) | None => "it ended without an outcome (no_outcome)".to_owned(),
        };
        return Some(fault(FailureClass::Malformed, &message));
    };
    let reviewer = review_of(plan, state, id).is_some();
    match reply.outcome {
        Outcome::Error => Some(
            vec![Event::StepBlocked {
                step: id.clone(),
                reason: BlockReason::AgentError,
                message: reported(reply, "the agent reports an error", &report.remarks),
            }]
            .into(),
        ),
        // What such a reviewer wants to know is what becomes of its notes: asked with the verdict.
        Outcome::NeedsInput if judges_notes(plan, state, id) => None,
        Outcome::NeedsInput => Some(questions(plan, state, id, report)),
        Outcome::Done | Outcome::Passed | Outcome::Failed | Outcome::Blocked if reply.back_to.is_some() => {
            Some(refer_back(plan, state, id, report))
        }
        Outcome::Blocked if !reviewer => Some(agent_blocked(plan, state, id, report).into()),
        Outcome::Failed if !reviewer => {
            let message = format!("the agent reports failure: {}", reply.summary);
            Some(fault(FailureClass::Crash, &message))
        }
        Outcome::Done | Outcome::Passed | Outcome::Failed | Outcome::Blocked => None,
    }
}

/// What the agent says went wrong, its points, and what was seen when it was looked into (S0-47, S0-51, S3-16).
fn reported(reply: &Reply, without_words: &str, seen: &[String]) -> String {
    let summary = if reply.summary.is_empty() { without_words } else { &reply.summary };
    let points = reply.notes.iter().chain(seen).map(String::as_str);
    std::iter::once(summary).chain(points).collect::<Vec<_>>().join("; ").replace('\n', " ")
}

fn agent_blocked(plan: &Plan, state: &State, id: &StepId, report: &AttemptReport) -> Vec<Event> {
    let Some(reply) = &report.reply else { return Vec::new() };
    if let Some(reason) = &reply.reason
        && let Some(to) = state.graph(plan).escalations.get(reason)
    {
        let from = state.profile.clone();
        return vec![Event::ProfileEscalated {
            from,
            to: to.clone(),
            by: id.clone(),
            reason: reason.clone(),
        }];
    }
    let message = reported(reply, "the agent says it is blocked", &[]);
    vec![Event::StepBlocked { step: id.clone(), reason: BlockReason::AgentBlocked, message }]
}

fn questions(plan: &Plan, state: &State, id: &StepId, report: &AttemptReport) -> Conclusion {
    let (Some(own), Some(reply)) = (state.steps.get(id), &report.reply) else { return Vec::new().into() };
    if reply.questions.is_empty() {
        return fault(FailureClass::Malformed, "it says that it needs input but asks nothing");
    }
    if own.question_rounds > limits::QUESTION_ROUNDS_MAX {
        let message = format!("it asked questions {} times already", limits::QUESTION_ROUNDS_MAX);
        let reason = BlockReason::QuestionsExhausted;
        return vec![Event::StepBlocked { step: id.clone(), reason, message }].into();
    }
    // A crash may have kept only some of them: the rest is put now (J-32).
    let open = |(place, asked): (usize, &crate::outcome::Question)| Event::DecisionOpened {
        decision: decision::question(plan, state, id, own.question_rounds, asked, place as u32),
    };
    let put: Vec<Event> =
        reply.questions.iter().skip(own.questions_put as usize).enumerate().map(open).collect();
    put.into()
}

fn refer_back(plan: &Plan, state: &State, id: &StepId, report: &AttemptReport) -> Conclusion {
    let (Some(own), Some(definition), Some(reply)) =
        (state.steps.get(id), state.definition(plan, id), &report.reply)
    else {
        return Vec::new().into();
    };
    let Some(wish) = &reply.back_to else { return Vec::new().into() };
    let named = definition
        .back
        .iter()
        .find(|target| *target == wish || target.as_str().ends_with(&format!("/{wish}")));
    let Some(target) = named else {
        let allowed = definition.back.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!("it refers the work back to `{wish}`, which it may not (allowed: {allowed})");
        return fault(FailureClass::Malformed, &message);
    };
    let to = state.sibling(plan, own, target);
    let referral = state.referrals.get(&(id.clone(), to.clone())).cloned().unwrap_or_default();
    let unchanged = referral.count > 0 && referral.last_work.is_some() && referral.last_work == report.work;
    if referral.count >= definition.back_max + referral.granted || unchanged {
        let question = format!("`{id}` refers the work back to `{to}` again without improvement. What now?");
        return vec![Event::DecisionOpened {
            decision: decision::ad_hoc(
                plan,
                state,
                id,
                About::PingPong { to },
                question,
                decision::after_ping_pong(),
            ),
        }]
        .into();
    }
    vec![Event::ReferredBack { from: id.clone(), to, reason: reply.summary.clone() }].into()
}

/// The work goes back: what the referral was recorded for.
pub fn send_back(plan: &Plan, state: &State, id: &StepId, to: &StepId, reason: &str) -> Vec<Event> {
    let cause = Cause::ReferredBack { from: id.clone(), reason: reason.to_owned() };
    let events = restart::redo_for(plan, state, id, &[to.clone()].into(), cause);
    if events.is_empty() {
        let message = format!("it refers the work back to `{to}`, which does not exist");
        return vec![Event::StepBlocked { step: id.clone(), reason: BlockReason::PingPong, message }];
    }
    events
}

/// What the engine saw itself against what the agent says.
fn contradicted(report: &AttemptReport) -> Option<(FailureClass, String)> {
    // Something is there, but it is no file of this attempt: a link, a pipe, a path that leads out.
    let refused: Vec<String> = report
        .artifacts
        .iter()
        .filter(|fact| fact.hash.is_none() && !fact.violations.is_empty())
        .map(|fact| format!("{}: {}", fact.name, fact.violations.join("; ")))
        .collect();
    if !refused.is_empty() {
        return Some((FailureClass::Reality, refused.join("; ")));
    }
    let missing: Vec<&str> = report
        .artifacts
        .iter()
        .filter(|fact| fact.hash.is_none() && !fact.optional)
        .map(|fact| fact.name.as_str())
        .collect();
    if !missing.is_empty() {
        return Some((FailureClass::Reality, format!("claimed but not found: {}", missing.join(", "))));
    }
    let broken: Vec<String> = report
        .artifacts
        .iter()
        .filter(|fact| !fact.holds())
        .map(|fact| format!("{}: {}", fact.name, fact.violations.join("; ")))
        .collect();
    if !broken.is_empty() {
        return Some((FailureClass::Schema, broken.join("; ")));
    }
    (!report.contradictions.is_empty()).then(|| (FailureClass::Reality, report.contradictions.join("; ")))
}

/// The attempt does not count: again, or the end of the attempts.
fn failed(
    plan: &Plan,
    state: &State,
    id: &StepId,
    class: FailureClass,
    message: &str,
    now: Timestamp,
) -> Vec<Event> {
    let (Some(own), Some(definition)) = (state.steps.get(id), state.definition(plan, id)) else {
        return Vec::new();
    };
    let Some(report) = own.report.as_deref() else { return Vec::new() };
    let retry = &definition.retry;
    let same = own
        .last_error
        .as_ref()
        .is_some_and(|last| last.class == class && last.message == message && last.work == report.work);
    if own.tries > 1 && same && class.is_deterministic() {
        let message = format!("the same {} error twice with unchanged work: {message}", class.word());
        // Another try would be in vain (J-27); where the definition wants a person asked at the end, this is it.
        let asks = |way: &&Exhaustion| matches!(way, Exhaustion::Ask { .. });
        let ways: Vec<Exhaustion> = retry.on_exhausted.iter().filter(asks).cloned().collect();
        return exhausted(plan, state, id, &ways, BlockReason::SameError, &message);
    }
    if own.tries < retry.attempts_max {
        let pause = pause_ms(retry, own.tries, report);
        return vec![Event::RetryScheduled {
            step: id.clone(),
            class,
            message: message.to_owned(),
            at: now.plus_ms(pause),
        }];
    }
    let message = format!(
        "{} of {} attempts failed; the last one ({}): {message}",
        own.tries,
        retry.attempts_max,
        class.word()
    );
    // A reviewer that gave no valid review is never taken for content (S4-12).
    let reviewer = review_of(plan, state, id).is_some();
    let ways: Vec<Exhaustion> = retry
        .on_exhausted
        .iter()
        .filter(|way| !(reviewer && **way == Exhaustion::CompleteWithNotes))
        .cloned()
        .collect();
    exhausted(plan, state, id, &ways, BlockReason::AttemptsExhausted, &message)
}

/// What the definition asks for. Without that a provider that fails is given time, twice as long at every try; another
/// model is asked at once.
fn pause_ms(retry: &Retry, tries: u32, report: &AttemptReport) -> u64 {
    let before = tries.saturating_sub(1);
    if let Some(asked) = retry.backoff_ms.get(before as usize).or(retry.backoff_ms.last()) {
        return *asked;
    }
    match report.trouble.as_ref().filter(|_| report.next_model.is_none()).map(|trouble| trouble.kind) {
        Some(TroubleKind::Server | TroubleKind::Network) => {
            limits::OUTAGE_PAUSE_MS.saturating_mul(1 << before.min(10)).min(limits::OUTAGE_PAUSE_MAX_MS)
        }
        Some(
            TroubleKind::Auth
            | TroubleKind::Rate
            | TroubleKind::Context
            | TroubleKind::BadRequest
            | TroubleKind::Budget
            | TroubleKind::Denied
            | TroubleKind::Interrupted
            | TroubleKind::Unknown,
        )
        | None => 0,
    }
}

/// The first way out of the list that applies. None that does means: blocked.
pub fn exhausted(
    plan: &Plan,
    state: &State,
    id: &StepId,
    ways: &[Exhaustion],
    reason: BlockReason,
    message: &str,
) -> Vec<Event> {
    for way in ways {
        match way {
            Exhaustion::RestartStage { stage } => {
                if restart::can_restart(plan, state, stage) {
                    return restart::restart(plan, state, stage, message, Some(id));
                }
            }
            Exhaustion::Ask { answers } => {
                let about = About::Exhausted { loops: reason == BlockReason::RoundsExhausted };
                let question = format!("`{id}`: {}. What now?", message.trim_end_matches('.'));
                return vec![Event::DecisionOpened {
                    decision: decision::ad_hoc(plan, state, id, about, question, answers.clone()),
                }];
            }
            Exhaustion::CompleteWithNotes => {
                return vec![Event::StepPassed { step: id.clone(), notes: vec![message.to_owned()] }];
            }
            Exhaustion::Fail => {
                return vec![Event::StepFailed { step: id.clone(), message: message.to_owned() }];
            }
            Exhaustion::Block => break,
        }
    }
    vec![Event::StepBlocked { step: id.clone(), reason, message: message.to_owned() }]
}
