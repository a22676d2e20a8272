//! May this stage begin now? The order of the stages and their gates say it; nobody has to know what a
//! stage is about.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    decide::{Rejected, to_try_again},
    event::{Cause, Event},
    gate,
    ids::{StageId, StepId},
    plan::{Condition, Gate, Graph, Hardness, Plan, Stage},
    state::{Phase, RunPhase, State},
};

/// What is to be said to somebody who wants a stage to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transition {
    pub allowed: bool,
    #[serde(rename = "type")]
    pub kind: TransitionKind,
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransitionKind {
    /// Everything before it is through.
    Proceed,
    /// It goes past something, or back: only if a person confirms it.
    Warning,
    /// A hard gate of it could not be passed.
    Blocked,
}

impl Transition {
    fn proceed() -> Transition {
        Transition { allowed: true, kind: TransitionKind::Proceed, message: None }
    }

    fn warning(message: String) -> Transition {
        Transition { allowed: true, kind: TransitionKind::Warning, message: Some(message) }
    }

    fn blocked(message: String) -> Transition {
        Transition { allowed: false, kind: TransitionKind::Blocked, message: Some(message) }
    }
}

/// Every step of the stage has passed or was left out.
pub fn is_through(state: &State, stage: &Stage) -> bool {
    let mut steps = stage.steps.iter().filter_map(|id| state.steps.get(id));
    steps.all(|own| own.phase.is_satisfied() || own.phase == Phase::Dormant)
}

/// Somebody has worked on it, and it is not through.
pub fn is_partial(state: &State, stage: &Stage) -> bool {
    let mut steps = stage.steps.iter().filter_map(|id| state.steps.get(id));
    !is_through(state, stage) && steps.any(|own| own.attempts > 0 || own.phase == Phase::Waiting)
}

/// The furthest stage that is through; one that was left out as a whole is not what anybody has reached.
pub fn current<'p>(plan: &'p Plan, state: &State) -> Option<&'p Stage> {
    let passed =
        |id: &StepId| state.steps.get(id).is_some_and(|own| matches!(own.phase, Phase::Passed { .. }));
    let mut stages = state.graph(plan).stages.iter().rev();
    stages.find(|stage| is_through(state, stage) && stage.steps.iter().any(passed))
}

/// The first stage that is not through.
pub fn next<'p>(plan: &'p Plan, state: &State) -> Option<&'p Stage> {
    state.graph(plan).stages.iter().find(|stage| stage.disabled.is_none() && !is_through(state, stage))
}

/// Stages before this one that are not through.
fn open_before<'p>(graph: &'p Graph, state: &State, stage: &StageId) -> Vec<&'p Stage> {
    let before = graph.stages.iter().take_while(|other| other.id != *stage);
    before.filter(|other| other.disabled.is_none() && !is_through(state, other)).collect()
}

fn names(stages: &[&Stage]) -> String {
    stages.iter().map(|stage| stage.id.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether the stage may begin; nothing if the run has no such stage.
pub fn validate(plan: &Plan, state: &State, stage: &StageId) -> Option<Transition> {
    let graph = state.graph(plan);
    let wanted = graph.stage(stage)?;
    if let RunPhase::Ended { how, .. } = &state.phase {
        return Some(Transition::blocked(format!("the run has ended: it is {}", how.word())));
    }
    if let Some(why) = &wanted.disabled {
        let message = format!("`{stage}` is not part of profile `{}`: {why}", state.profile);
        return Some(Transition::blocked(message));
    }
    let open = open_before(graph, state, stage);
    if let Some(missing) = wanted.steps.iter().find_map(|step| shut(plan, state, wanted, step)) {
        return Some(Transition::blocked(format!("`{stage}` cannot begin: {missing}")));
    }
    if is_through(state, wanted) {
        let message = format!("`{stage}` is complete: what rests on it would be void");
        return Some(Transition::warning(message));
    }
    if open.is_empty() {
        return Some(Transition::proceed());
    }
    Some(Transition::warning(format!("skipping {}", names(&open))))
}

/// What a hard gate of this step would miss if everything before its stage stayed as it is.
fn shut(plan: &Plan, state: &State, stage: &Stage, step: &StepId) -> Option<String> {
    let (own, definition) = (state.steps.get(step)?, state.definition(plan, step)?);
    let counts = |gate: &&Gate| {
        gate.hardness == Hardness::Hard
            && !own.gates_waived.contains(&gate.id)
            && about(gate).is_some_and(|of| !stage.steps.contains(of))
    };
    definition.gates.iter().filter(counts).find_map(|gate| gate::misses(plan, state, own, gate))
}

/// The step that a gate asks about. What expressions and obligations come to is known when they are due.
fn about(gate: &Gate) -> Option<&StepId> {
    match &gate.condition {
        Condition::Artifact { step, .. }
        | Condition::Verdict { step, .. }
        | Condition::Check { step, .. }
        | Condition::Decision { step, .. } => Some(step),
        Condition::Obligation { .. } | Condition::Expression { .. } => None,
    }
}

/// A person wants the run to go on up to the end of this stage.
pub(crate) fn run_until(
    plan: &Plan,
    state: &State,
    stage: &StageId,
    skipping: Option<&str>,
) -> Result<Vec<Event>, Rejected> {
    let graph = state.graph(plan);
    let Some(wanted) = graph.stage(stage) else {
        return Err(Rejected::NoSuchStage { stage: stage.clone() });
    };
    let mut skipped = BTreeSet::new();
    if let Some(reason) = skipping {
        if reason.trim().is_empty() {
            return Err(Rejected::ReasonMissing);
        }
        // Only who goes past something has to be asked whether the gates could be passed at all.
        if let Some(Transition { allowed: false, message, .. }) = validate(plan, state, stage) {
            let message = message.unwrap_or_default();
            return Err(Rejected::TransitionBlocked { stage: stage.clone(), message });
        }
        let steps = open_before(graph, state, stage).into_iter().flat_map(|open| &open.steps);
        let open = |id: &&StepId| {
            let phase = state.steps.get(*id).map(|own| &own.phase);
            phase.is_some_and(|phase| !phase.is_satisfied() && *phase != Phase::Dormant)
        };
        skipped.extend(steps.filter(open).cloned());
    }
    if let Some(why) = &wanted.disabled {
        let message = format!("`{stage}` is not part of profile `{}`: {why}", state.profile);
        return Err(Rejected::TransitionBlocked { stage: stage.clone(), message });
    }
    let reason = skipping.unwrap_or_default().trim().to_owned();
    let again: BTreeSet<StepId> = to_try_again(state).difference(&skipped).cloned().collect();
    let mut events = vec![Event::UntilSet { stage: stage.clone(), skipped, reason }];
    if !again.is_empty() {
        events.push(Event::Invalidated { steps: again, cause: Cause::Resumed });
    }
    Ok(events)
}
