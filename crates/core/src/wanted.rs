//! What should be under way now: a pure function of state. Recovery has no code of its own.

use crate::{
    budget,
    effect::{Effect, Wanted},
    gate,
    ids::{GateId, StepId, Timestamp},
    plan::Plan,
    schedule,
    state::{Phase, RunPhase, State},
};

/// Effects that a host should have under way, and when to look again if nothing happens.
pub fn wanted(plan: &Plan, state: &State, now: Timestamp) -> Wanted {
    let mut effects = Vec::new();
    for (step, attempt) in &state.queues.superseded {
        effects.push(Effect::Stop { step: step.clone(), attempt: *attempt });
    }
    let starting = match state.phase {
        RunPhase::Created | RunPhase::Ended { .. } => return Wanted { effects, wake_at: None },
        RunPhase::Running => true,
        RunPhase::Stopping | RunPhase::Paused(_) => false,
    };
    for step in &state.queues.live {
        effects.extend(live_effect(plan, state, step));
    }
    if starting {
        for step in &state.queues.gating {
            effects.extend(
                evaluations(plan, state, step)
                    .into_iter()
                    .map(|(step, gate)| Effect::Evaluate { step: step.clone(), gate: gate.clone() }),
            );
        }
        for step in &state.queues.listing {
            effects.push(Effect::ReadList { step: step.clone() });
        }
        for id in &state.queues.pending_decisions {
            let Some(pending) = state.decisions.get(id) else { continue };
            effects.push(if pending.decision.is_put() {
                Effect::Ask { decision: id.clone() }
            } else {
                Effect::Bind { decision: id.clone() }
            });
        }
    }
    Wanted { effects, wake_at: wake_at(plan, state, now) }
}

pub(crate) fn live_effect(plan: &Plan, state: &State, step: &StepId) -> Option<Effect> {
    match state.steps.get(step)?.phase {
        Phase::Running { attempt } => Some(Effect::Run { step: step.clone(), attempt }),
        Phase::Verifying { .. } if state.queues.due.contains_key(step) => None,
        Phase::Verifying { attempt } => {
            let (own, definition) = (state.steps.get(step)?, state.definition(plan, step)?);
            match definition.checks.iter().find(|check| !own.checks.contains_key(*check)) {
                Some(next) => Some(Effect::Check { step: step.clone(), attempt, check: next.clone() }),
                None if definition.commit && own.commit.is_none() => {
                    Some(Effect::Commit { step: step.clone(), attempt })
                }
                None => None,
            }
        }
        Phase::Dormant
        | Phase::Pending
        | Phase::Gated
        | Phase::Ready
        | Phase::Backoff { .. }
        | Phase::Waiting
        | Phase::Open
        | Phase::Fixing
        | Phase::Passed { .. }
        | Phase::Failed { .. }
        | Phase::Blocked { .. }
        | Phase::Skipped { .. } => None,
    }
}

/// Expressions of a gated step whose value is not known.
pub fn evaluations<'p>(plan: &'p Plan, state: &State, step: &'p StepId) -> Vec<(&'p StepId, &'p GateId)> {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
        return Vec::new();
    };
    if own.phase != Phase::Gated {
        return Vec::new();
    }
    let unknown = definition.gates.iter().filter(|gate| gate::needs_evaluation(gate, own));
    unknown.map(|gate| (step, &gate.id)).collect()
}

/// The next time at which something happens by itself. A retry that is due but finds no free place
/// is no reason to wake: the end of what holds the place is.
fn wake_at(plan: &Plan, state: &State, now: Timestamp) -> Option<Timestamp> {
    if state.phase != RunPhase::Running {
        return None;
    }
    if schedule::next_candidate(plan, state, now).is_some() {
        return Some(now);
    }
    let retry = state.queues.backoff.iter().map(|(at, _)| *at).find(|at| *at > now);
    let quota = state.quota.values().filter(|until| **until > now).min().copied();
    [retry, quota, budget::wall_ends_at(state)].into_iter().flatten().min()
}
