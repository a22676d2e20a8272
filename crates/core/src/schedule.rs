//! What follows from the state by itself: gates that close, groups that open, steps that get a
//! place, the end of the run. One small consequence at a time; the caller applies it and asks again.

use std::collections::VecDeque;

use crate::{
    budget, decision,
    event::{About, BlockReason, Cause, Event, Pause, RunEnd, Skip},
    fan_out, gate,
    ids::{StepId, TenureId, Timestamp},
    plan::{Hardness, Kind, Obligation, Plan},
    review_loop,
    state::{DecisionState, DecisionStatus, Due, Lane, Phase, RunPhase, ScopeId, State},
    step, transition,
};

/// The next consequence, or nothing when the run rests.
pub fn next(plan: &Plan, state: &State, now: Timestamp) -> Vec<Event> {
    match &state.phase {
        RunPhase::Created | RunPhase::Ended { .. } => Vec::new(),
        RunPhase::Paused(_) => unfinished(plan, state, now).unwrap_or_default(),
        RunPhase::Stopping => unfinished(plan, state, now).unwrap_or_else(|| {
            let rests = !state.has_live_attempts();
            rests.then_some(Event::RunPaused { why: Pause::Stop }).into_iter().collect()
        }),
        RunPhase::Running => unfinished(plan, state, now).unwrap_or_else(|| running(plan, state, now)),
    }
}

/// What follows from a fact that is on record. It is drawn in a resting run too: a fact and its
/// consequence belong together, only new work waits.
fn unfinished(plan: &Plan, state: &State, now: Timestamp) -> Option<Vec<Event>> {
    if let Some((id, changed)) = state.queues.stale.first_key_value() {
        let changed = changed.iter().cloned().collect();
        return Some(vec![Event::DecisionStaled { id: id.clone(), changed }]);
    }
    let (step, due) = state.queues.due.first_key_value()?;
    Some(match due {
        Due::Conclusion => step::conclude(plan, state, step, now),
        Due::Answer { decision, raised } => decision::consequences(plan, state, decision, *raised),
        Due::Referral { to, reason } => step::send_back(plan, state, step, to, reason),
    })
}

fn running(plan: &Plan, state: &State, now: Timestamp) -> Vec<Event> {
    if let Some(event) = obligation_is_moot(plan, state) {
        return vec![event];
    }
    if let Some(event) = answered_before(state).or_else(|| answered_for_all(plan, state)) {
        return vec![event];
    }
    if let Some(step) = state.queues.disabled.first() {
        return vec![skip_disabled(plan, state, step)];
    }
    if let Some(event) = rests_after(plan, state) {
        return vec![event];
    }
    // Before anything opens: what a fix makes void must not begin in between, also if a crash came in between.
    let next_fix = |review| review_loop::next_fix(plan, state, review);
    if let Some(events) = state.queues.fix_next.iter().find_map(next_fix) {
        return events;
    }
    if let Some(step) = state.queues.closed.first() {
        return gate_closed(plan, state, step);
    }
    if let Some(step) = state.queues.openable.first() {
        return open(plan, state, step);
    }
    if let Some(events) = state.queues.fan_outs.iter().find_map(|step| fan_out::next(plan, state, step)) {
        return events;
    }
    if let Some(events) = state.queues.quiet.iter().find_map(|scope| quiet(plan, state, scope)) {
        return events;
    }
    admit(plan, state, now)
}

/// A question that somebody answered where no engine heard it, put now with everything it shows. An answer that is none of
/// its words, or was given to something else, stays unheard: the question is open.
fn answered_before(state: &State) -> Option<Event> {
    if state.answers_before.is_empty() {
        return None;
    }
    let pending = state.queues.pending_decisions.iter().filter_map(|id| state.decisions.get(id));
    let mut put = pending.filter(|asked| asked.decision.about == About::Step && asked.decision.is_put());
    put.find_map(|asked| {
        let before = state.answers_before.get(&asked.decision.step)?;
        let known = asked.decision.answers.iter().any(|answer| answer.word == before.answer);
        let same = asked.decision.bound.iter().all(|(name, hash)| before.seen.get(name) == Some(hash));
        (known && same).then(|| Event::DecisionAnswered {
            id: asked.decision.id.clone(),
            answer: before.answer.clone(),
            comment: before.comment.clone(),
            route: before.route.clone(),
            said: None,
            chosen: Vec::new(),
            channel: before.channel.clone(),
        })
    })
}

/// A question that is put once for all items of a fan-out: what was answered to one of them, in the same words and about the
/// same files, holds for the next, as long as the answer stands there.
fn answered_for_all(plan: &Plan, state: &State) -> Option<Event> {
    let template = |step: &StepId| state.steps.get(step).map(|own| &own.template);
    // Who resumes a run that an answer stopped wants to be asked again: only what lets pass holds for it. A step that
    // somebody left out says nothing, whatever was answered to it before.
    let resumed = |step: &StepId| {
        let cause = state.steps.get(step).and_then(|own| own.cause.as_deref());
        matches!(cause, Some(Cause::Resumed))
    };
    let stands = |step: &StepId, resumed: bool| match state.steps.get(step).map(|own| &own.phase) {
        Some(Phase::Passed { .. }) => true,
        Some(Phase::Blocked { .. }) => !resumed,
        Some(_) | None => false,
    };
    let pending = state.queues.pending_decisions.iter().filter_map(|id| state.decisions.get(id));
    let mut put = pending.filter(|asked| {
        let definition = state.definition(plan, &asked.decision.step).map(|step| &step.kind);
        let once = matches!(definition, Some(Kind::Decision(question)) if question.once);
        once && asked.decision.about == About::Step && asked.decision.is_put()
    });
    put.find_map(|asked| {
        let resumed = resumed(&asked.decision.step);
        let same = |other: &&DecisionState| {
            other.status == DecisionStatus::Answered
                && other.decision.question == asked.decision.question
                && other.decision.bound == asked.decision.bound
                && template(&other.decision.step) == template(&asked.decision.step)
                && stands(&other.decision.step, resumed)
        };
        let answered = state.decisions.values().filter(same).max_by_key(|other| other.resolved_at)?;
        Some(Event::DecisionAnswered {
            id: asked.decision.id.clone(),
            answer: answered.answer.clone()?,
            comment: answered.comment.clone(),
            route: answered.route.clone(),
            said: None,
            chosen: Vec::new(),
            channel: format!("the answer to {}", answered.decision.id),
        })
    })
}

/// The stage up to which the run was to go is through, and something comes after it.
fn rests_after(plan: &Plan, state: &State) -> Option<Event> {
    let stage = state.graph(plan).stage(state.until.as_ref()?)?;
    let more = state.queues.scopes.get(&ScopeId::top()).is_some_and(|counts| counts.unsatisfied > 0);
    let pause = Pause::Until { stage: stage.id.clone() };
    (more && transition::is_through(state, stage)).then_some(Event::RunPaused { why: pause })
}

fn skip_disabled(plan: &Plan, state: &State, step: &StepId) -> Event {
    if let Some(reason) = state.done_before.get(step) {
        return Event::StepSkipped { step: step.clone(), why: Skip::Elsewhere, reason: reason.clone() };
    }
    let graph = state.graph(plan);
    let reason =
        graph.stages.iter().find(|stage| stage.steps.contains(step)).and_then(|stage| stage.disabled.clone());
    Event::StepSkipped {
        step: step.clone(),
        why: Skip::Disabled,
        reason: reason.unwrap_or_else(|| "disabled".to_owned()),
    }
}

/// What follows if all needs are met and everything is evaluated, but some gate does not hold.
fn gate_closed(plan: &Plan, state: &State, step: &StepId) -> Vec<Event> {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
        return Vec::new();
    };
    let closed = definition
        .gates
        .iter()
        .filter(|gate| !own.gates_waived.contains(&gate.id))
        .find_map(|gate| gate::misses(plan, state, own, gate).map(|missing| (gate, missing)));
    let Some((gate, missing)) = closed else { return Vec::new() };
    // A condition that cannot be evaluated is not a reason to leave a step out.
    let broken = matches!(own.gates.get(&gate.id), Some(Err(_)));
    match gate.hardness {
        Hardness::Skip if !broken => {
            vec![Event::StepSkipped { step: step.clone(), why: Skip::Condition, reason: missing }]
        }
        Hardness::Soft if !broken => {
            vec![Event::DecisionOpened { decision: decision::soft_gate(plan, state, step, gate, &missing) }]
        }
        Hardness::Hard | Hardness::Soft | Hardness::Skip => {
            let message = format!("gate `{}` is closed: {missing}", gate.id);
            vec![Event::StepBlocked { step: step.clone(), reason: BlockReason::Gate, message }]
        }
    }
}

fn open(plan: &Plan, state: &State, step: &StepId) -> Vec<Event> {
    let closed = gate_closed(plan, state, step);
    if !closed.is_empty() {
        return closed;
    }
    let Some(definition) = state.definition(plan, step) else { return Vec::new() };
    match &definition.kind {
        Kind::Decision(question) => {
            vec![Event::DecisionOpened { decision: decision::of_step(state, step, question) }]
        }
        Kind::SubRun { .. } | Kind::Review(_) => vec![Event::GroupOpened { step: step.clone() }],
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. } => Vec::new(),
    }
}

/// Nothing is active in this scope: its group, or the run, may be at its end.
fn quiet(plan: &Plan, state: &State, scope: &ScopeId) -> Option<Vec<Event>> {
    if scope.is_top() {
        return run_is_quiet(plan, state);
    }
    let owner = StepId::new(&scope.0);
    if let Some(own) = state.steps.get(&owner)
        && own.phase == Phase::Open
    {
        let definition = state.definition(plan, &owner)?;
        return match &definition.kind {
            Kind::SubRun { .. } => Some(vec![sub_run_is_quiet(state, &owner, scope)]),
            Kind::Review(review) => Some(review_loop::panel_is_quiet(plan, state, &owner, review)),
            Kind::Agent { .. }
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. } => None,
        };
    }
    let (fan, _) = scope.0.rsplit_once('/')?;
    fan_out::item_is_quiet(state, &StepId::new(fan), scope).map(|event| vec![event])
}

fn sub_run_is_quiet(state: &State, owner: &StepId, scope: &ScopeId) -> Event {
    if state.queues.scopes.get(scope).is_none_or(|counts| counts.unsatisfied == 0) {
        return Event::StepPassed { step: owner.clone(), notes: fan_out::notes_inside(state, owner) };
    }
    let names = fan_out::culprits(state, scope)
        .iter()
        .map(|id| id.as_str().to_owned())
        .collect::<Vec<_>>()
        .join(", ");
    Event::StepBlocked {
        step: owner.clone(),
        reason: BlockReason::ItemsFailed,
        message: format!("inside it: {names}"),
    }
}

fn run_is_quiet(plan: &Plan, state: &State) -> Option<Vec<Event>> {
    let unsatisfied = state.queues.scopes.get(&ScopeId::top()).map_or(0, |counts| counts.unsatisfied);
    if unsatisfied > 0 {
        // A failure inside a group that passed in spite of it is data, not the end.
        let failed = state.queues.failed.iter().find(|id| !state.is_inside_of_satisfied(id))?;
        let reason = match state.steps.get(failed).map(|step| &step.phase) {
            Some(Phase::Failed { message }) => format!("`{failed}`: {message}"),
            _ => format!("`{failed}` failed"),
        };
        return Some(vec![Event::RunEnded { how: RunEnd::Failed, reason }]);
    }
    match gate::next_unmet(plan, state) {
        None => Some(vec![Event::RunEnded { how: RunEnd::Done, reason: String::new() }]),
        Some(obligation) => obligation_is_due(plan, state, obligation).map(|event| vec![event]),
    }
}

/// Everything is through but this: the plan's own step for it, or a person's word.
fn obligation_is_due(plan: &Plan, state: &State, obligation: &Obligation) -> Option<Event> {
    if let Some(event) = gate::fulfil(state, obligation) {
        return Some(event);
    }
    if state.queues.obligation_asked.is_some() || state.obligations_put_off.contains(&obligation.name) {
        return None;
    }
    Some(Event::DecisionOpened { decision: decision::obligation(plan, state, obligation) })
}

/// What was asked about an obligation is no longer the question: the run goes on, or it was met.
fn obligation_is_moot(plan: &Plan, state: &State) -> Option<Event> {
    let id = state.queues.obligation_asked.as_ref()?;
    let About::Obligation { name } = &state.decisions.get(id)?.decision.about else { return None };
    let quiet = state.queues.quiet.contains(&ScopeId::top());
    let through = state.queues.scopes.get(&ScopeId::top()).is_none_or(|counts| counts.unsatisfied == 0);
    let unmet = gate::next_unmet(plan, state).is_some_and(|unmet| unmet.name == *name);
    (!(quiet && through && unmet)).then(|| Event::DecisionSkipped {
        id: id.clone(),
        reason: "the run goes on without this question".to_owned(),
    })
}

/// Gives the next step a place, if there is one.
fn admit(plan: &Plan, state: &State, now: Timestamp) -> Vec<Event> {
    if let Some(pause) = budget::time_is_up(state, now) {
        return vec![pause];
    }
    let Some(step) = next_candidate(plan, state, now) else {
        return budget::quota_takes_too_long(plan, state, now).into_iter().collect();
    };
    if let Some(pause) = budget::exhausted(plan, state, &step, now) {
        return vec![pause];
    }
    // While it waited for a place, the record that opened its gates may have changed.
    let closed = gate_closed(plan, state, &step);
    if !closed.is_empty() {
        return closed;
    }
    let Some(own) = state.steps.get(&step) else { return Vec::new() };
    vec![Event::AttemptStarted { step, attempt: own.attempts + 1, round: own.round }]
}

/// The step that gets the next place.
pub fn next_candidate(plan: &Plan, state: &State, now: Timestamp) -> Option<StepId> {
    let due = state
        .queues
        .backoff
        .iter()
        .take_while(|(at, _)| *at <= now)
        .find(|(_, step)| {
            state.lane(plan, step).is_some_and(|lane| has_room(plan, state, &lane, now))
                && fan_out::crowded(plan, state, step).is_none()
        })
        .map(|(_, step)| step.clone());
    if due.is_some() {
        return due;
    }
    let served = |lane: &Lane| state.queues.served.get(lane).copied().unwrap_or(0);
    state
        .queues
        .lanes
        .iter()
        .filter(|(lane, queue)| !VecDeque::is_empty(queue) && has_room(plan, state, lane, now))
        .filter_map(|(lane, queue)| {
            let first = queue.iter().find(|step| fan_out::crowded(plan, state, step).is_none())?;
            Some((served(lane), first))
        })
        .min_by_key(|(served, _)| *served)
        .map(|(_, step)| step.clone())
}

/// Every pool of the lane has a free place, its agent has quota, and nobody is in the checkout beside
/// whom it may not be (decision 27).
fn has_room(plan: &Plan, state: &State, lane: &Lane, now: Timestamp) -> bool {
    let pools = &state.graph(plan).pools;
    if lane.tenure.as_ref().is_some_and(|tenure| !is_admitted(plan, state, tenure)) {
        return false;
    }
    let quota =
        lane.agent.as_ref().and_then(|agent| state.quota.get(agent)).is_none_or(|until| *until <= now);
    quota
        && lane.pools.iter().all(|pool| {
            let used = state.queues.pool_use.get(pool).copied().unwrap_or(0);
            pools.get(pool).is_none_or(|depth| used < *depth)
        })
}

fn is_admitted(plan: &Plan, state: &State, tenure: &TenureId) -> bool {
    let excluded = state.graph(plan).excludes.get(tenure).into_iter().flatten();
    excluded.into_iter().all(|other| state.queues.tenure_use.get(other).is_none_or(|used| *used == 0))
}
