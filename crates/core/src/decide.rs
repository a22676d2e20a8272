//! From an input to the events that follow from it. Nothing is changed here, nothing is guessed:
//! what does not fit the state is refused with a reason that names both sides.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    budget, decision,
    effect::Effect,
    event::{About, Beginning, BlockReason, Cause, Event, Pause, RunEnd, Skip},
    explain::explain_step,
    fact::{AttemptReport, CheckFact, CommitFact, Intrusion, IntrusionKind, News, Usage},
    fan_out, gate,
    ids::{ArtifactName, CheckId, ContentHash, DecisionId, GateId, RoleId, StageId, StepId, Timestamp},
    input::{Input, Raise},
    plan::{Gate, Kind, Plan, limits},
    restart, schedule,
    state::{DecisionStatus, Phase, RunPhase, State},
    transition, wanted,
};

/// Why an input changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the run has started already")]
    AlreadyStarted,
    #[error("the run has not started")]
    NotStarted,
    #[error("the run has ended: it is {}", .how.word())]
    Ended { how: RunEnd },
    #[error("there is no step `{step}`")]
    NoSuchStep { step: StepId },
    #[error("there is no stage `{stage}`")]
    NoSuchStage { stage: StageId },
    #[error("`{step}` does not wait for this")]
    NotExpected { step: StepId },
    #[error("there is no decision `{decision}`")]
    NoSuchDecision { decision: DecisionId },
    #[error("decision `{decision}` is not open: it is {}{}", .status.word(), .answer.as_ref().map(|answer| format!(" (`{answer}`)")).unwrap_or_default())]
    NotOpen { decision: DecisionId, status: DecisionStatus, answer: Option<String> },
    #[error("`{value}` is no answer to `{decision}`; answers are: {}", .allowed.join(", "))]
    NotAnAnswer { decision: DecisionId, value: String, allowed: Vec<String> },
    #[error("an approval of `{decision}` with a comment may be a condition: confirm it, or ask for changes")]
    ApprovalWithComment { decision: DecisionId },
    #[error("`{decision}` has no route to `{route}`; routes are: {}", .allowed.join(", "))]
    NoSuchRoute { decision: DecisionId, route: RoleId, allowed: Vec<String> },
    #[error("what `{decision}` shows has changed since it was shown: {}", names(.changed))]
    ChangedSinceShown { decision: DecisionId, changed: Vec<ArtifactName> },
    #[error("`{decision}` has not been shown yet")]
    NotShownYet { decision: DecisionId },
    #[error("{message}")]
    TransitionBlocked { stage: StageId, message: String },
    #[error("`{step}` cannot be handed in: it is not the work of an agent, or it writes nothing")]
    CannotBeGiven { step: StepId },
    #[error("a reason is needed")]
    ReasonMissing,
    #[error("stage `{stage}` was restarted {count} times, which is its limit")]
    RestartsExhausted { stage: StageId, count: u32 },
    #[error("`{step}`, or what it belongs to, has passed already")]
    AlreadyPassed { step: StepId },
    #[error("nothing is to be resumed: the run is at work")]
    NothingToResume,
    #[error("the run has no limit on `{limit}` that could be raised")]
    NothingToRaise { limit: String },
    #[error("`{limit}` is limited to {known} already, and {wanted} is not more")]
    NotHigher { limit: String, wanted: String, known: String },
    #[error("no gate of `{step}` is closed: {because}")]
    NoClosedGate { step: StepId, because: String },
    #[error("`{step}` has no closed gate `{gate}`; closed are: {}", gate_names(.closed))]
    NoSuchGate { step: StepId, gate: GateId, closed: Vec<GateId> },
    #[error("several gates of `{step}` are closed, name one of them: {}", gate_names(.closed))]
    WhichGate { step: StepId, closed: Vec<GateId> },
}

fn names(list: &[ArtifactName]) -> String {
    list.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn gate_names(list: &[GateId]) -> String {
    list.iter().map(|gate| gate.as_str()).collect::<Vec<_>>().join(", ")
}

/// The events that follow directly from an input: facts, not yet what follows from them (`settle`).
/// The time is taken although no fact depends on it today.
pub fn decide(plan: &Plan, state: &State, input: &Input, _now: Timestamp) -> Result<Vec<Event>, Rejected> {
    match &state.phase {
        RunPhase::Created if !matches!(input, Input::Start { .. }) => return Err(Rejected::NotStarted),
        RunPhase::Ended { how, .. }
            if !matches!(
                input,
                Input::AttemptEnded { .. } | Input::CheckEnded { .. } | Input::CommitEnded { .. }
            ) =>
        {
            return Err(Rejected::Ended { how: *how });
        }
        RunPhase::Created
        | RunPhase::Running
        | RunPhase::Stopping
        | RunPhase::Paused(_)
        | RunPhase::Ended { .. } => {}
    }
    match input {
        Input::Start { run, request, beginning } => start(plan, state, run, request, beginning),
        Input::AttemptEnded { step, attempt, report } => {
            if state.steps.get(step).is_none_or(|own| own.phase != Phase::Running { attempt: *attempt }) {
                return ignored(state, step, *attempt, report.usage.as_ref());
            }
            let ended = Event::AttemptEnded {
                step: step.clone(),
                attempt: *attempt,
                report: Box::new(report.clone()),
            };
            let noticed = found_out(state, step, report);
            Ok(std::iter::once(ended).chain(noticed).collect())
        }
        Input::Underway { step, attempt, news } => underway(state, step, *attempt, news),
        Input::CheckEnded { step, attempt, check, fact } => {
            check_ended(plan, state, step, *attempt, check, fact)
        }
        Input::CommitEnded { step, attempt, fact } => commit_ended(plan, state, step, *attempt, fact),
        Input::Evaluated { step, gate, value } => {
            if !wanted::evaluations(plan, state, step).contains(&(step, gate)) {
                return Err(Rejected::NotExpected { step: step.clone() });
            }
            Ok(vec![Event::GateEvaluated { step: step.clone(), gate: gate.clone(), value: value.clone() }])
        }
        Input::ListRead { step, hash, items } => {
            match state.definition(plan, step).map(|definition| &definition.kind) {
                Some(Kind::FanOut(fan_out)) if state.queues.listing.contains(step) => {
                    Ok(fan_out::list_read(plan, state, step, fan_out, hash, items))
                }
                _ => Err(Rejected::NotExpected { step: step.clone() }),
            }
        }
        Input::ListEdited { step, name, found } if state.queues.listing.contains(step) => {
            Ok(vec![Event::DecisionOpened { decision: decision::hand_edit(plan, state, step, name, found) }])
        }
        Input::ListEdited { step, .. } => Err(Rejected::NotExpected { step: step.clone() }),
        Input::ListChanged { step, name, now } => fan_out::list_changed(plan, state, step, name, now),
        Input::Bound { decision, bound, question } => bind(plan, state, decision, bound, question.as_ref()),
        Input::Answer(answer) => decision::answer(plan, state, answer),
        Input::CancelDecision { decision, reason } => decision::cancel(state, decision, reason),
        Input::GiveUpDecision { decision } => give_up(state, decision),
        Input::Stop => match state.phase {
            RunPhase::Running => Ok(vec![Event::StopRequested]),
            RunPhase::Created | RunPhase::Stopping | RunPhase::Paused(_) | RunPhase::Ended { .. } => {
                Ok(Vec::new())
            }
        },
        Input::Abort { reason } => {
            Ok(vec![Event::RunEnded { how: RunEnd::Abandoned, reason: reason.clone() }])
        }
        Input::Resume { raise, substitutes } => resume(state, raise, substitutes),
        Input::RunUntil { stage, skipping } => transition::run_until(plan, state, stage, skipping.as_deref()),
        Input::Give { step, from } => give(plan, state, step, from),
        Input::RestartStage { stage, reason } => restart_stage(plan, state, stage, reason),
        Input::Skip { step, reason } => skip(state, step, reason),
        Input::WaiveGate { step, gate, reason } => waive_gate(plan, state, step, gate.as_ref(), reason),
        Input::Noticed { intrusion } => Ok(noticed(plan, state, intrusion)),
        Input::Unwritten { problem } => {
            let why = Pause::Unwritten { problem: problem.clone() };
            let known = state.phase == RunPhase::Paused(why.clone());
            Ok((!known).then_some(Event::RunPaused { why }).into_iter().collect())
        }
        Input::Tick => Ok(Vec::new()),
        Input::Adopt { digest } => Ok(vec![Event::PlanAdopted { digest: digest.clone() }]),
    }
}

/// `decide`, `apply` and everything that follows by itself, in one go. On a refusal nothing has
/// changed. The events have to be durable before anybody acts on the new state.
pub fn advance(
    plan: &Plan,
    state: &mut State,
    input: &Input,
    now: Timestamp,
) -> Result<Vec<Event>, Rejected> {
    let mut events = decide(plan, state, input, now)?;
    for event in &events {
        state.apply(plan, event, now);
    }
    settle(plan, state, now, &mut events);
    Ok(events)
}

/// Applies what follows from the state by itself until it rests.
pub fn settle(plan: &Plan, state: &mut State, now: Timestamp, events: &mut Vec<Event>) {
    loop {
        let more = schedule::next(plan, state, now);
        if more.is_empty() {
            return;
        }
        for event in &more {
            state.apply(plan, event, now);
        }
        events.extend(more);
    }
}

/// What the end of an attempt tells about those who do what they may not, up to a limit.
fn found_out(state: &State, step: &StepId, report: &AttemptReport) -> Vec<Event> {
    let own = |kind: IntrusionKind| {
        move |what: &String| Intrusion { kind, what: what.clone(), by: vec![step.clone()] }
    };
    let found = report.found.iter().cloned().map(|mut one| {
        if one.by.is_empty() {
            one.by.push(step.clone());
        }
        one
    });
    let orders = report.noticed.iter().map(own(IntrusionKind::AgentOrder));
    let trespasses = report.trespasses.iter().map(own(IntrusionKind::Trespass));
    let room = limits::INTRUSIONS_MAX.saturating_sub(state.intrusions.len());
    let all = orders.chain(trespasses).chain(found).take(room);
    all.map(|intrusion| Event::IntrusionNoticed { intrusion }).collect()
}

/// Kept with the attempts that were under way, up to a limit.
fn noticed(plan: &Plan, state: &State, intrusion: &Intrusion) -> Vec<Event> {
    if state.intrusions.len() >= limits::INTRUSIONS_MAX || state.intrusions.last() == Some(intrusion) {
        return Vec::new();
    }
    let mut intrusion = intrusion.clone();
    if intrusion.by.is_empty() {
        let by_agent = |id: &&StepId| state.definition(plan, id).is_some_and(|step| step.agent().is_some());
        intrusion.by = state.queues.live.iter().filter(by_agent).cloned().collect();
    }
    vec![Event::IntrusionNoticed { intrusion }]
}

fn start(
    plan: &Plan,
    state: &State,
    run: &str,
    request: &str,
    beginning: &Beginning,
) -> Result<Vec<Event>, Rejected> {
    if state.phase != RunPhase::Created {
        return Err(Rejected::AlreadyStarted);
    }
    Ok(vec![Event::RunStarted {
        run: run.to_owned(),
        workflow: plan.workflow.clone(),
        profile: plan.profile.clone(),
        request: request.to_owned(),
        beginning: beginning.clone(),
    }])
}

/// Only of the attempt that is wanted; what is known already is not recorded twice.
fn underway(state: &State, step: &StepId, attempt: u32, news: &News) -> Result<Vec<Event>, Rejected> {
    let running = state.steps.get(step).filter(|own| own.phase == Phase::Running { attempt });
    let Some(own) = running else { return Err(Rejected::NotExpected { step: step.clone() }) };
    let step = step.clone();
    match news {
        News::Launched { .. } if own.launched.as_ref().is_some_and(|launched| launched.0 == attempt) => {
            Ok(Vec::new())
        }
        News::Launched { fact } => Ok(vec![Event::AttemptLaunched { step, attempt, fact: fact.clone() }]),
        News::Conversed { conversation } => {
            let known = own
                .conversation
                .as_deref()
                .is_some_and(|(known, visit)| known == conversation && *visit == own.visit);
            let conversation = conversation.clone();
            Ok(if known {
                Vec::new()
            } else {
                vec![Event::ConversationBegan { step, attempt, conversation }]
            })
        }
        News::Told { hints } => {
            let known = own.hints.get(&attempt).map_or(0, Vec::len);
            let fresh: Vec<_> = hints.iter().take(limits::HINTS_MAX).skip(known).cloned().collect();
            Ok(if fresh.is_empty() {
                Vec::new()
            } else {
                vec![Event::ProgressTold { step, attempt, hints: fresh }]
            })
        }
    }
}

/// The checks after an attempt run one after the other, in the order of the definition.
fn check_ended(
    plan: &Plan,
    state: &State,
    step: &StepId,
    attempt: u32,
    check: &CheckId,
    fact: &CheckFact,
) -> Result<Vec<Event>, Rejected> {
    let Some(own) = state.steps.get(step) else {
        return Err(Rejected::NoSuchStep { step: step.clone() });
    };
    let expected = state
        .definition(plan, step)
        .and_then(|definition| definition.checks.iter().find(|check| !own.checks.contains_key(*check)));
    let is_due = state.queues.due.contains_key(step);
    if own.phase != (Phase::Verifying { attempt }) || expected != Some(check) || is_due {
        return Err(Rejected::NotExpected { step: step.clone() });
    }
    Ok(vec![Event::CheckEnded { step: step.clone(), attempt, check: check.clone(), fact: fact.clone() }])
}

/// A commit is asked for once all checks after the attempt have held.
fn commit_ended(
    plan: &Plan,
    state: &State,
    step: &StepId,
    attempt: u32,
    fact: &CommitFact,
) -> Result<Vec<Event>, Rejected> {
    let wish = wanted::live_effect(plan, state, step);
    if wish != Some(Effect::Commit { step: step.clone(), attempt }) {
        return Err(Rejected::NotExpected { step: step.clone() });
    }
    Ok(vec![Event::CommitEnded { step: step.clone(), attempt, fact: fact.clone() }])
}

/// A result that nobody waits for: counted, and otherwise without effect (J-33).
fn ignored(
    state: &State,
    step: &StepId,
    attempt: u32,
    usage: Option<&Usage>,
) -> Result<Vec<Event>, Rejected> {
    if state.queues.superseded.contains(&(step.clone(), attempt)) {
        let why = "the attempt was superseded".to_owned();
        let usage = usage.cloned();
        return Ok(vec![Event::ResultIgnored { step: step.clone(), attempt, why, usage }]);
    }
    match state.steps.get(step) {
        None => Err(Rejected::NoSuchStep { step: step.clone() }),
        Some(_) => Err(Rejected::NotExpected { step: step.clone() }),
    }
}

fn bind(
    plan: &Plan,
    state: &State,
    id: &DecisionId,
    bound: &BTreeMap<ArtifactName, ContentHash>,
    question: Option<&Result<String, String>>,
) -> Result<Vec<Event>, Rejected> {
    let pending = decision::open_decision(state, id)?;
    if let About::HandEdit { name, found } = &pending.decision.about
        && bound.get(name).is_some_and(|now| now != found)
    {
        // Edited once more: the next launch finds what is there then, and asks about that.
        return Ok(vec![Event::DecisionStaled { id: id.clone(), changed: vec![name.clone()] }]);
    }
    let question = match question.filter(|_| pending.decision.to_render) {
        None => None,
        Some(Ok(text)) => Some(text.clone()),
        // A question that cannot be put is no question; what it was to decide stays undecided.
        Some(Err(problem)) => {
            let reason = format!("the question cannot be put: {problem}");
            return Ok(vec![Event::DecisionCancelled { id: id.clone(), reason }]);
        }
    };
    let known = &pending.decision.bound;
    // Names may be templates until the question is put into words: what is shown then is what was found.
    let shows = |name: &ArtifactName| question.is_some() || pending.decision.show.contains(name);
    let bound: BTreeMap<ArtifactName, ContentHash> = bound
        .iter()
        .filter(|(name, _)| shows(name))
        .map(|(name, hash)| (name.clone(), hash.clone()))
        .collect();
    let changed: Vec<ArtifactName> = bound
        .iter()
        .filter(|(name, hash)| known.get(*name).is_some_and(|old| old != *hash))
        .map(|(name, _)| name.clone())
        .collect();
    if question.is_some() {
        return Ok(vec![Event::DecisionBound { id: id.clone(), bound, question }]);
    }
    if changed.is_empty() && bound.keys().all(|name| known.contains_key(name)) {
        return Ok(Vec::new());
    }
    // Before anybody was asked, what is found now is what will be shown.
    let shown = pending.decision.show.iter().all(|name| known.contains_key(name));
    if let Some(name) = changed.iter().find(|name| shown && state.artifacts.contains_key(*name)) {
        // Somebody edited an accepted artifact: whether that counts is a question of its own.
        let open = |about: &About| matches!(about, About::HandEdit { name: other, .. } if other == name);
        let mut pending_ids = state.queues.pending_decisions.iter().filter_map(|id| state.decisions.get(id));
        if pending_ids.any(|other| open(&other.decision.about)) {
            return Ok(Vec::new());
        }
        let found = &bound[name];
        let decision = decision::hand_edit(plan, state, &pending.decision.step, name, found);
        return Ok(vec![Event::DecisionOpened { decision }]);
    }
    if shown && !changed.is_empty() {
        return Ok(vec![Event::DecisionStaled { id: id.clone(), changed }]);
    }
    Ok(vec![Event::DecisionBound { id: id.clone(), bound, question: None }])
}

fn give_up(state: &State, id: &DecisionId) -> Result<Vec<Event>, Rejected> {
    let pending = decision::open_decision(state, id)?;
    // A security question, and what a review leaves to a person, is put off by one with a reason, or
    // stays open (S1-48).
    let security = matches!(&pending.decision.about, About::Question { asked, .. } if asked.security);
    if security || pending.decision.about == About::Notes {
        return Err(Rejected::ReasonMissing);
    }
    let reason = if matches!(pending.decision.about, About::Question { .. }) {
        "no response provided".to_owned()
    } else {
        format!("no answer to `{id}` could be understood")
    };
    Ok(vec![Event::DecisionCancelled { id: id.clone(), reason }])
}

fn resume(
    state: &State,
    raise: &Raise,
    substitutes: &BTreeMap<String, String>,
) -> Result<Vec<Event>, Rejected> {
    let mut events = Vec::new();
    if *raise != Raise::default() {
        budget::check_raise(state, raise)?;
        events.push(Event::BudgetRaised { raise: raise.clone() });
    }
    let blocked = to_try_again(state);
    let rests = matches!(state.phase, RunPhase::Paused(_) | RunPhase::Stopping);
    // Whoever resumes a run that is at work changes nothing; that is no mistake of theirs.
    let asked_again = !state.obligations_put_off.is_empty();
    if !rests && !asked_again && blocked.is_empty() && substitutes.is_empty() && events.is_empty() {
        return Ok(Vec::new());
    }
    events.push(Event::RunResumed { substitutes: substitutes.clone() });
    if !blocked.is_empty() {
        events.push(Event::Invalidated { steps: blocked, cause: Cause::Resumed });
    }
    Ok(events)
}

/// Blocked and failed steps that somebody who goes on wants to see tried again.
pub(crate) fn to_try_again(state: &State) -> BTreeSet<StepId> {
    state
        .queues
        .blocked
        .iter()
        .chain(state.queues.failed.iter())
        .filter(|id| !fan_out::is_lost_through_children(state, id) && !state.is_inside_of_satisfied(id))
        .cloned()
        .collect()
}

/// Work that nobody of this run did. It is held against its contract like anybody's.
fn give(plan: &Plan, state: &State, step: &StepId, from: &str) -> Result<Vec<Event>, Rejected> {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
        return Err(Rejected::NoSuchStep { step: step.clone() });
    };
    if own.phase.is_satisfied() || state.is_inside_of_satisfied(step) {
        return Err(Rejected::AlreadyPassed { step: step.clone() });
    }
    if !matches!(definition.kind, Kind::Agent { .. }) || definition.writes.is_empty() {
        return Err(Rejected::CannotBeGiven { step: step.clone() });
    }
    Ok(vec![Event::StepGiven { step: step.clone(), from: from.to_owned() }])
}

fn restart_stage(plan: &Plan, state: &State, stage: &StageId, reason: &str) -> Result<Vec<Event>, Rejected> {
    if state.graph(plan).stage(stage).is_none() {
        return Err(Rejected::NoSuchStage { stage: stage.clone() });
    }
    // A person's word is not counted against the automatic limit, but it is counted.
    let mut events = Vec::new();
    if matches!(state.phase, RunPhase::Paused(_) | RunPhase::Stopping) {
        events.push(Event::RunResumed { substitutes: BTreeMap::new() });
    }
    events.extend(restart::restart(plan, state, stage, reason, None));
    Ok(events)
}

fn skip(state: &State, step: &StepId, reason: &str) -> Result<Vec<Event>, Rejected> {
    let Some(own) = state.steps.get(step) else { return Err(Rejected::NoSuchStep { step: step.clone() }) };
    if reason.trim().is_empty() {
        return Err(Rejected::ReasonMissing);
    }
    // What is left out inside a group that is through would set the rest of it going again.
    if own.phase.is_satisfied() || state.is_inside_of_satisfied(step) {
        return Err(Rejected::AlreadyPassed { step: step.clone() });
    }
    Ok(vec![Event::StepSkipped { step: step.clone(), why: Skip::Waiver, reason: reason.to_owned() }])
}

/// The step runs although its gate is closed. One gate at a time: a reason is given for each.
fn waive_gate(
    plan: &Plan,
    state: &State,
    step: &StepId,
    named: Option<&GateId>,
    reason: &str,
) -> Result<Vec<Event>, Rejected> {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
        return Err(Rejected::NoSuchStep { step: step.clone() });
    };
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Rejected::ReasonMissing);
    }
    if own.phase.is_satisfied() || state.is_inside_of_satisfied(step) {
        return Err(Rejected::AlreadyPassed { step: step.clone() });
    }
    if !matches!(own.phase, Phase::Blocked { reason: BlockReason::Gate, .. }) {
        let because = explain_step(plan, state, step).map(|said| said.because).unwrap_or_default();
        return Err(Rejected::NoClosedGate { step: step.clone(), because });
    }
    let is_closed =
        |gate: &&Gate| !own.gates_waived.contains(&gate.id) && gate::misses(plan, state, own, gate).is_some();
    let closed: Vec<GateId> = definition.gates.iter().filter(is_closed).map(|gate| gate.id.clone()).collect();
    let gate = match (named, closed.as_slice()) {
        (Some(named), _) if closed.contains(named) => named.clone(),
        (Some(named), _) => {
            return Err(Rejected::NoSuchGate { step: step.clone(), gate: named.clone(), closed });
        }
        (None, [only]) => only.clone(),
        (None, []) => {
            let because = "the record changed since it was blocked; resume the run".to_owned();
            return Err(Rejected::NoClosedGate { step: step.clone(), because });
        }
        (None, _) => return Err(Rejected::WhichGate { step: step.clone(), closed }),
    };
    Ok(vec![Event::GateWaived { step: step.clone(), gate, reason: reason.to_owned() }])
}
