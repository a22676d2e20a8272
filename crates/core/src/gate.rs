//! Whether a gate is open: a question about recorded facts and nothing else.

use crate::{
    event::{About, Event, Skip},
    ids::StepId,
    plan::{Condition, Gate, Must, Obligation, Plan},
    state::{DecisionStatus, Phase, State, StepState},
};

/// An expression gate whose value nobody has recorded yet.
pub fn needs_evaluation(gate: &Gate, step: &StepState) -> bool {
    matches!(gate.condition, Condition::Expression { .. })
        && !step.gates.contains_key(&gate.id)
        && !step.gates_waived.contains(&gate.id)
}

/// Does the record satisfy this gate of `step`?
pub fn holds(plan: &Plan, state: &State, step: &StepId, gate: &Gate) -> bool {
    let Some(own) = state.steps.get(step) else { return false };
    own.gates_waived.contains(&gate.id) || misses(plan, state, own, gate).is_none()
}

/// What the gate still misses, in words; `None` = it holds.
pub fn misses(plan: &Plan, state: &State, own: &StepState, gate: &Gate) -> Option<String> {
    if was_asked(plan, state, own, gate) {
        return None;
    }
    match &gate.condition {
        Condition::Artifact { step, name } => artifact_misses(plan, state, own, step, name.as_str()),
        Condition::Verdict { step, at_most } => {
            let id = state.sibling(plan, own, step);
            let verdict = state
                .steps
                .get(&id)
                .and_then(|other| other.review.as_ref())
                .and_then(|looped| looped.verdicts.values().map(|judgement| judgement.verdict).max());
            match verdict {
                None => Some(format!("`{id}` has given no verdict")),
                Some(verdict) if verdict > *at_most => {
                    let (verdict, most) = (verdict.word(), at_most.word());
                    Some(format!("the verdict of `{id}` is {verdict}, at most {most} is allowed"))
                }
                Some(_) => None,
            }
        }
        Condition::Check { step, check } => {
            let id = state.sibling(plan, own, step);
            let ok = state.steps.get(&id).and_then(|other| other.checks.get(check)).copied();
            match ok {
                Some(true) => None,
                Some(false) => Some(format!("check `{check}` of `{id}` failed")),
                None => Some(format!("check `{check}` of `{id}` has not run")),
            }
        }
        Condition::Decision { step, answers } => {
            let id = state.sibling(plan, own, step);
            let found = state
                .decisions
                .values()
                .find(|decision| decision.decision.step == id && decision.decision.about == About::Step);
            // An answer to a question that is to be put again does not count any more.
            let stands = state.steps.get(&id).is_some_and(|other| other.phase.is_satisfied());
            match found {
                Some(decision) if stands && decision.status == DecisionStatus::Answered => {
                    let answer = decision.answer.as_deref().unwrap_or_default();
                    (!answers.iter().any(|word| word == answer))
                        .then(|| format!("`{id}` was answered `{answer}`"))
                }
                Some(_) | None => Some(format!("`{id}` is not answered")),
            }
        }
        Condition::Obligation { name } => {
            let obligation =
                state.graph(plan).obligations.iter().find(|obligation| obligation.name == *name)?;
            let open = !is_met(plan, state, obligation) && !state.obligations_waived.contains(name);
            open.then(|| format!("obligation `{name}` is not met"))
        }
        Condition::Expression { source } => match own.gates.get(&gate.id) {
            Some(Ok(true)) => None,
            Some(Ok(false)) if source == "false" => Some("it is switched off".to_owned()),
            Some(Ok(false)) => Some(format!("`{source}` is false")),
            Some(Err(problem)) => Some(format!("`{source}` cannot be evaluated: {problem}")),
            None => Some(format!("`{source}` is not evaluated yet")),
        },
    }
}

/// A step before this one of the stage passed through the same gate.
fn was_asked(plan: &Plan, state: &State, own: &StepState, gate: &Gate) -> bool {
    gate.asked_at.iter().any(|step| {
        let before = state.steps.get(&state.sibling(plan, own, step));
        before.is_some_and(|before| matches!(before.phase, Phase::Passed { .. }))
    })
}

fn artifact_misses(plan: &Plan, state: &State, own: &StepState, step: &StepId, name: &str) -> Option<String> {
    let id = state.sibling(plan, own, step);
    let Some(writer) = state.steps.get(&id) else {
        return Some(format!("`{id}`, which writes `{name}`, does not exist"));
    };
    if matches!(writer.phase, Phase::Skipped { .. }) {
        return Some(format!("`{name}` was not written: `{id}` was skipped"));
    }
    if !writer.phase.is_satisfied() {
        return Some(format!("`{name}` does not count yet: `{id}` has not passed"));
    }
    let found = state.artifacts.values().find(|artifact| {
        artifact.step == id && artifact.declared.as_str() == name && Some(artifact.attempt) == writer.accepted
    });
    match found {
        None => Some(format!("`{name}` was not written by the attempt of `{id}` that counts")),
        Some(artifact) if !artifact.holds => Some(format!("`{name}` breaks its contract")),
        Some(_) => None,
    }
}

/// Here, or before the run.
fn happened(phase: &Phase) -> bool {
    matches!(phase, Phase::Passed { .. } | Phase::Skipped { why: Skip::Elsewhere, .. })
}

/// Has what the obligation demands happened?
pub fn is_met(plan: &Plan, state: &State, obligation: &Obligation) -> bool {
    match &obligation.must {
        Must::Role { role } => state.steps.iter().any(|(id, step)| {
            happened(&step.phase)
                && state.definition(plan, id).is_some_and(|definition| definition.role() == Some(role))
        }),
        Must::Step { step } => state.steps.get(step).is_some_and(|step| happened(&step.phase)),
        Must::Decision { step } => state
            .decisions
            .values()
            .filter(|decision| !matches!(decision.decision.about, About::Obligation { .. }))
            .any(|decision| decision.decision.step == *step && decision.status == DecisionStatus::Answered),
    }
}

/// What an obligation is about, as a step: for the record of a question or a waiver.
pub fn subject(obligation: &Obligation) -> StepId {
    match &obligation.must {
        Must::Step { step } | Must::Decision { step } => step.clone(),
        Must::Role { role } => obligation.else_run.clone().unwrap_or_else(|| StepId::new(role.as_str())),
    }
}

/// The outermost step that would meet the obligation if it ran now; a person may want that.
pub fn could_run(plan: &Plan, state: &State, obligation: &Obligation) -> Option<StepId> {
    let graph = state.graph(plan);
    let enabled = |id: &StepId| {
        let stage = graph.steps.get(id).and_then(|step| graph.stage(&step.stage));
        stage.is_none_or(|stage| stage.disabled.is_none())
    };
    let open = |id: &StepId| {
        let own = state.steps.get(id);
        own.is_some_and(|own| own.scope.is_top() && !matches!(own.phase, Phase::Passed { .. })) && enabled(id)
    };
    match &obligation.must {
        Must::Step { step } | Must::Decision { step } => Some(step.clone()).filter(open),
        Must::Role { role } => {
            let of_role = |id: &&StepId| graph.steps.get(*id).is_some_and(|step| step.role() == Some(role));
            graph.top().chain(&obligation.else_run).filter(of_role).find(|id| open(id)).cloned()
        }
    }
}

/// The next obligation that is not met although everything else is through.
pub fn next_unmet<'p>(plan: &'p Plan, state: &State) -> Option<&'p Obligation> {
    let open = |name: &String| !state.obligations_waived.contains(name);
    let obligations = &state.graph(plan).obligations;
    obligations.iter().find(|obligation| open(&obligation.name) && !is_met(plan, state, obligation))
}

/// The event that gets an unmet obligation done, if the plan names a step for it that has not been
/// tried yet.
pub fn fulfil(state: &State, obligation: &Obligation) -> Option<Event> {
    let step = obligation.else_run.as_ref()?;
    let dormant = state.steps.get(step).is_some_and(|step| step.phase == Phase::Dormant);
    dormant.then(|| Event::ObligationOpened { name: obligation.name.clone(), step: step.clone() })
}
