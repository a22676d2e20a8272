//! Steps that a profile or the configuration switched off: they stay in the plan and are skipped;
//! everything that pointed at them is linked past them (S4-29).

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{ArtifactName, GateId, StageId, StepId},
    plan::{AnswerEffect, Condition, Edge, Exhaustion, Gate, Graph, Hardness, Kind, Must, Step},
};

use super::{build::Builder, gate::DISABLED};
use crate::diagnostic::codes;

pub fn relink(builder: &mut Builder<'_>) {
    let disabled = builder.built.disabled.clone();
    if disabled.is_empty() {
        return;
    }
    edges(&mut builder.built.graph, &disabled);
    skip_gates(&mut builder.built.graph, &disabled);
    reads(builder, &disabled);
    let retarget = retarget(&builder.built.graph);
    let gone = only_by_disabled(&builder.built.graph, &disabled);
    let ids: Vec<StepId> = builder.built.graph.steps.keys().cloned().collect();
    for id in ids {
        if is_off(&id, &disabled) {
            continue;
        }
        references(builder, &id, &disabled, &retarget, &gone);
    }
    builder.built.graph.obligations.retain(|obligation| match &obligation.must {
        Must::Step { step } | Must::Decision { step } => !is_off(step, &disabled),
        Must::Role { .. } => true,
    });
}

/// Switched off itself or below one that is.
pub fn is_off(id: &StepId, disabled: &BTreeSet<StepId>) -> bool {
    let path = id.as_str();
    disabled.contains(path) || path.match_indices('/').any(|(at, _)| disabled.contains(&path[..at]))
}

/// X → D → Y becomes X → Y.
fn edges(graph: &mut Graph, disabled: &BTreeSet<StepId>) {
    let needs: BTreeMap<StepId, Vec<StepId>> = graph
        .steps
        .iter()
        .map(|(id, step)| (id.clone(), step.needs.iter().map(|edge| edge.from.clone()).collect()))
        .collect();
    for (id, step) in &mut graph.steps {
        if disabled.contains(id) {
            continue;
        }
        let mut seen = BTreeSet::new();
        let mut linked: Vec<Edge> = Vec::new();
        let mut queue: Vec<&StepId> = needs[id].iter().rev().collect();
        while let Some(from) = queue.pop() {
            if !seen.insert(from) {
                continue;
            }
            if disabled.contains(from) {
                queue.extend(needs.get(from).into_iter().flatten().rev());
            } else {
                linked.push(Edge { from: from.clone() });
            }
        }
        step.needs = linked;
    }
}

/// A single step has no `disabled` of its own: a condition that never holds skips it.
fn skip_gates(graph: &mut Graph, disabled: &BTreeSet<StepId>) {
    let in_stage: BTreeSet<StepId> = graph
        .stages
        .iter()
        .filter(|stage| stage.disabled.is_some())
        .flat_map(|stage| stage.steps.iter().cloned())
        .collect();
    for id in disabled.iter().filter(|id| !in_stage.contains(*id)) {
        if let Some(step) = graph.steps.get_mut(id) {
            step.gates = vec![Gate {
                id: GateId::new(DISABLED),
                condition: Condition::Expression { source: "false".to_owned() },
                hardness: Hardness::Skip,
                asked_at: Vec::new(),
            }];
        }
    }
}

/// What only disabled steps write may be missing: it may also lie there from before (S4-31).
fn reads(builder: &mut Builder<'_>, disabled: &BTreeSet<StepId>) {
    let gone = only_by_disabled(&builder.built.graph, disabled);
    for text in builder.built.texts.values_mut() {
        for read in &mut text.reads {
            if gone.contains(&ArtifactName::new(&read.name)) {
                read.optional = true;
            }
        }
    }
}

fn only_by_disabled(graph: &Graph, disabled: &BTreeSet<StepId>) -> BTreeSet<ArtifactName> {
    let written = |off: bool| -> BTreeSet<ArtifactName> {
        graph
            .steps
            .iter()
            .filter(|(id, _)| is_off(id, disabled) == off)
            .flat_map(|(_, step)| step.writes.iter().cloned())
            .collect()
    };
    let on = written(false);
    written(true).into_iter().filter(|name| !on.contains(name)).collect()
}

/// For each disabled stage the nearest enabled one before it.
fn retarget(graph: &Graph) -> BTreeMap<StageId, Option<StageId>> {
    let mut before = None;
    let mut map = BTreeMap::new();
    for stage in &graph.stages {
        if stage.disabled.is_some() {
            map.insert(stage.id.clone(), before.clone());
        } else {
            before = Some(stage.id.clone());
        }
    }
    map
}

fn references(
    builder: &mut Builder<'_>,
    id: &StepId,
    disabled: &BTreeSet<StepId>,
    retarget: &BTreeMap<StageId, Option<StageId>>,
    gone: &BTreeSet<ArtifactName>,
) {
    let Some(step) = builder.built.graph.steps.get_mut(id) else { return };
    step.gates.retain(|gate| match &gate.condition {
        Condition::Artifact { step, .. }
        | Condition::Verdict { step, .. }
        | Condition::Check { step, .. }
        | Condition::Decision { step, .. } => !is_off(step, disabled),
        Condition::Obligation { .. } | Condition::Expression { .. } => true,
    });
    step.back.retain(|back| !is_off(back, disabled));
    exhaustions(&mut step.retry.on_exhausted, disabled, retarget);
    let lost = kind(step, disabled, retarget, gone);
    if let (Some(lost), Some(node)) = (lost, builder.built.nodes.get(id)) {
        builder.report.error(
            codes::NEVER_STARTS,
            node.span,
            format!("`{id}` works on `{lost}`, which is switched off"),
            format!("switch `{id}` off too"),
        );
    }
}

/// The step whose loss leaves this one without work, if there is one.
fn kind(
    step: &mut Step,
    disabled: &BTreeSet<StepId>,
    retarget: &BTreeMap<StageId, Option<StageId>>,
    gone: &BTreeSet<ArtifactName>,
) -> Option<StepId> {
    match &mut step.kind {
        Kind::Review(review) => {
            exhaustions(&mut review.on_exhausted, disabled, retarget);
            let lost = review.of.first().cloned();
            review.of.retain(|of| !is_off(of, disabled));
            for route in &mut review.fix {
                route.steps.retain(|fix| !is_off(fix, disabled));
            }
            review.fix.retain(|route| !route.steps.is_empty());
            if review.of.is_empty() { lost } else { None }
        }
        Kind::Merge { of, repair } => {
            for review in repair.iter_mut() {
                exhaustions(&mut review.on_exhausted, disabled, retarget);
                for route in &mut review.fix {
                    route.steps.retain(|fix| !is_off(fix, disabled));
                }
                review.fix.retain(|route| !route.steps.is_empty());
            }
            is_off(of, disabled).then(|| of.clone())
        }
        Kind::Finish { asked } => asked.as_ref().filter(|asked| is_off(asked, disabled)).cloned(),
        Kind::Decision(question) => {
            question.show.retain(|name| !gone.contains(name));
            for answer in &mut question.answers {
                effect(&mut answer.effect, disabled, retarget);
            }
            None
        }
        Kind::FanOut(fan_out) => {
            fan_out.planned_by = fan_out.planned_by.take().filter(|by| !is_off(by, disabled));
            None
        }
        Kind::Agent { .. } | Kind::Check { .. } | Kind::SubRun { .. } => None,
    }
}

fn exhaustions(
    list: &mut Vec<Exhaustion>,
    disabled: &BTreeSet<StepId>,
    retarget: &BTreeMap<StageId, Option<StageId>>,
) {
    list.retain_mut(|entry| match entry {
        Exhaustion::RestartStage { stage } => match retarget.get(stage) {
            Some(Some(other)) => {
                *stage = other.clone();
                true
            }
            Some(None) => false,
            None => true,
        },
        Exhaustion::Ask { answers } => {
            for answer in answers {
                effect(&mut answer.effect, disabled, retarget);
            }
            true
        }
        Exhaustion::Block | Exhaustion::CompleteWithNotes | Exhaustion::Fail => true,
    });
    if list.is_empty() {
        list.push(Exhaustion::Block);
    }
}

fn effect(
    effect: &mut AnswerEffect,
    disabled: &BTreeSet<StepId>,
    retarget: &BTreeMap<StageId, Option<StageId>>,
) {
    match effect {
        AnswerEffect::Redo { steps, routes } => {
            steps.retain(|step| !is_off(step, disabled));
            routes.retain(|_, steps| {
                steps.retain(|step| !is_off(step, disabled));
                !steps.is_empty()
            });
            if steps.is_empty() {
                *effect = AnswerEffect::Block;
            }
        }
        AnswerEffect::Restart { stage } => match retarget.get(stage) {
            Some(Some(other)) => *stage = other.clone(),
            Some(None) => *effect = AnswerEffect::Block,
            None => {}
        },
        AnswerEffect::Pass
        | AnswerEffect::Accept
        | AnswerEffect::Again
        | AnswerEffect::Skip
        | AnswerEffect::Block
        | AnswerEffect::Abort => {}
    }
}
