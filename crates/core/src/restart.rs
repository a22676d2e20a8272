//! What has to run again when something earlier does, and the limits on that.

use std::collections::BTreeSet;

use crate::{
    event::{Cause, Event},
    ids::{StageId, StepId},
    plan::{Graph, Plan, Rerun},
    state::{Phase, State, StepState},
};

/// Instances of `templates` in the scope of `of`.
pub fn instances(
    plan: &Plan,
    state: &State,
    of: &StepState,
    templates: &BTreeSet<StepId>,
) -> BTreeSet<StepId> {
    templates
        .iter()
        .map(|template| state.sibling(plan, of, template))
        .filter(|id| state.steps.contains_key(id))
        .collect()
}

fn templates(state: &State, steps: &BTreeSet<StepId>) -> BTreeSet<StepId> {
    steps.iter().filter_map(|id| state.steps.get(id)).map(|step| step.template.clone()).collect()
}

/// Has this step done anything that a change upstream could make void?
fn has_begun(step: &StepState) -> bool {
    match step.phase {
        Phase::Dormant | Phase::Pending | Phase::Gated | Phase::Ready => false,
        Phase::Running { .. }
        | Phase::Verifying { .. }
        | Phase::Backoff { .. }
        | Phase::Waiting
        | Phase::Open
        | Phase::Fixing
        | Phase::Passed { .. }
        | Phase::Failed { .. }
        | Phase::Blocked { .. }
        | Phase::Skipped { .. } => true,
    }
}

/// Events that send `targets` (instances of one scope) round again for `cause`, and make void what
/// rested on them. `keep` is the step that asked for it and looks after itself (a review); with
/// `Rerun::Listed` everything on the way to it stays as it is.
pub fn redo(
    plan: &Plan,
    state: &State,
    targets: &BTreeSet<StepId>,
    cause: Cause,
    keep: Option<(&StepId, Rerun)>,
) -> Vec<Event> {
    let Some(first) = targets.iter().find_map(|id| state.steps.get(id)) else { return Vec::new() };
    let graph: &Graph = state.graph(plan);
    let mut below = instances(plan, state, first, &graph.downstream(&templates(state, targets)));
    if let Some((review, rerun)) = keep {
        below.remove(review);
        if rerun == Rerun::Listed
            && let Some(step) = state.steps.get(review)
        {
            for id in instances(plan, state, step, &graph.upstream(&step.template)) {
                below.remove(&id);
            }
        }
    }
    below.retain(|id| !targets.contains(id) && state.steps.get(id).is_some_and(|own| has_begun(own)));
    let mut events = Vec::new();
    // What rests on them first: what demands all this is settled with the last event only.
    if !below.is_empty()
        && let Some(step) = targets.first()
    {
        events.push(Event::Invalidated { steps: below, cause: Cause::Upstream { step: step.clone() } });
    }
    events.push(Event::Invalidated { steps: targets.clone(), cause });
    events
}

/// The same, on behalf of a step that rests until it is done and then has its turn again, also if
/// it does not depend on what is redone.
pub fn redo_for(
    plan: &Plan,
    state: &State,
    asker: &StepId,
    targets: &BTreeSet<StepId>,
    cause: Cause,
) -> Vec<Event> {
    let mut events = redo(plan, state, targets, cause, None);
    let touches = |event: &Event| matches!(event, Event::Invalidated { steps, .. } if steps.contains(asker));
    let rests = state.steps.get(asker).is_some_and(|own| has_begun(own));
    if let (false, true, Some(first)) = (events.iter().any(touches), rests, targets.first()) {
        let cause = Cause::Upstream { step: first.clone() };
        if !events.is_empty() {
            events.insert(0, Event::Invalidated { steps: BTreeSet::from([asker.clone()]), cause });
        }
    }
    events
}

/// May the stage be restarted once more?
pub fn can_restart(plan: &Plan, state: &State, stage: &StageId) -> bool {
    let Some(definition) = state.graph(plan).stage(stage) else { return false };
    definition.disabled.is_none() && state.restarts.get(stage).copied().unwrap_or(0) < definition.restarts_max
}

/// The restart of a stage: all its steps, every begun step of later stages, and the one that asked.
pub fn restart(
    plan: &Plan,
    state: &State,
    stage: &StageId,
    reason: &str,
    asker: Option<&StepId>,
) -> Vec<Event> {
    let graph = state.graph(plan);
    let Some(definition) = graph.stage(stage) else { return Vec::new() };
    let targets: BTreeSet<StepId> =
        definition.steps.iter().filter(|id| state.steps.contains_key(*id)).cloned().collect();
    let mut steps = targets.clone();
    steps.extend(
        graph
            .downstream(&targets)
            .into_iter()
            .filter(|id| state.steps.get(id).is_some_and(|own| has_begun(own))),
    );
    steps.retain(|id| state.steps.get(id).is_some_and(|step| step.phase != Phase::Dormant));
    steps.extend(asker.and_then(|id| outermost(state, id)));
    let count = state.restarts.get(stage).copied().unwrap_or(0) + 1;
    vec![Event::StageRestarted { stage: stage.clone(), count, steps, reason: reason.to_owned() }]
}

/// The step of the outermost scope that holds this one.
fn outermost(state: &State, id: &StepId) -> Option<StepId> {
    let mut id = id.clone();
    while let Some(owner) = &state.steps.get(&id)?.owner {
        id = owner.clone();
    }
    Some(id)
}
