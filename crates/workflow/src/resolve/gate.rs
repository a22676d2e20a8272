//! Gates of steps and stages.

use std::collections::BTreeMap;

use gatewright_core::{
    ids::{ArtifactName, GateId, StepId},
    plan::{Condition, Gate, Graph, Hardness, Kind},
    verdict::Verdict,
};

use super::{
    build::{Builder, Wanted, WriterWanted},
    disabled::is_off,
    names::Scope,
    unit::Unit,
};
use crate::{
    diagnostic::{codes, suggestion},
    yaml::tree::{Node, NodeValue},
};

/// The gate that a profile or definition puts before a step it switched off.
pub const DISABLED: &str = "disabled";

/// Gates of a stage as one of its steps has them.
pub struct StageGates<'g> {
    pub gates: &'g [Node],
    /// The steps before it that have them as well.
    pub asked_at: &'g [StepId],
}

/// The gates of a step: its `when`, its own, and those of a stage that starts with it.
pub fn gates(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    scope: &Scope,
    id: &StepId,
    node: &Node,
    of_stage: &StageGates<'_>,
) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    if let Some(when) = node.get("when") {
        let source = match &when.value {
            NodeValue::Bool(value) => value.to_string(),
            _ => when.text().unwrap_or_default().to_owned(),
        };
        gates.push(Gate {
            id: GateId::new("when"),
            condition: Condition::Expression { source },
            hardness: Hardness::Skip,
            asked_at: Vec::new(),
        });
    }
    let own = node.get("gates").map(Node::elements).unwrap_or_default();
    let of_stage = of_stage.gates.iter().map(|gate| (gate, of_stage.asked_at));
    for (gate, asked_at) in of_stage.chain(own.iter().map(|gate| (gate, [].as_slice()))) {
        let Some((name, condition)) = condition(builder, unit, scope, gate) else { continue };
        if let Condition::Artifact { name: artifact, .. } = &condition {
            builder.writers_wanted.push(WriterWanted {
                step: id.clone(),
                name: artifact.clone(),
                span: gate.place("artifact"),
                wanted: Wanted::Gate(gates.len()),
            });
        }
        let taken = gates.iter().filter(|gate| gate.id.as_str().starts_with(&name)).count();
        let id = if taken == 0 { name } else { format!("{name}#{}", taken + 1) };
        let hardness = if gate.is_on("soft") { Hardness::Soft } else { Hardness::Hard };
        gates.push(Gate { id: GateId::new(id), condition, hardness, asked_at: asked_at.to_vec() });
    }
    gates
}

fn condition(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    scope: &Scope,
    node: &Node,
) -> Option<(String, Condition)> {
    if let Some(name) = node.word("artifact") {
        // The step is filled in when all writers are known.
        let condition = Condition::Artifact { step: StepId::new(""), name: ArtifactName::new(&name.text) };
        return Some((format!("artifact:{}", name.text), condition));
    }
    if let Some(word) = node.word("verdict") {
        let step = unit.names.find(scope, &word, builder.report)?;
        let at_most = match node.string("at_most").as_deref() {
            Some("pass") => Verdict::Pass,
            Some("revise") => Verdict::Revise,
            Some(_) | None => Verdict::PassWithNotes,
        };
        return Some((format!("verdict:{step}"), Condition::Verdict { step, at_most }));
    }
    if let Some(word) = node.word("check") {
        let check = unit.check_named(builder, &word);
        let step = unit.names.find(scope, &node.word("of")?, builder.report)?;
        if !unit.checks.contains_key(&word.text) {
            return None;
        }
        return Some((format!("check:{check}"), Condition::Check { step, check }));
    }
    if let Some(word) = node.word("decision") {
        let step = unit.names.find(scope, &word, builder.report)?;
        let answers = node.strings("answers");
        return Some((format!("decision:{step}"), Condition::Decision { step, answers }));
    }
    if let Some(word) = node.word("obligation") {
        let known = unit.tree.get("obligations").map(Node::elements).unwrap_or_default();
        let names: Vec<String> = known.iter().filter_map(|node| node.string("name")).collect();
        if !names.contains(&word.text) {
            builder.report.error(
                codes::UNKNOWN_OBLIGATION,
                word.span,
                format!("there is no obligation `{}`", word.text),
                suggestion(&word.text, names.iter().map(String::as_str)),
            );
        }
        let name = format!("{}{}", unit.prefix, word.text);
        return Some((format!("obligation:{name}"), Condition::Obligation { name }));
    }
    let expression = node.get("expr")?;
    let source = match &expression.value {
        NodeValue::Bool(value) => value.to_string(),
        _ => expression.text()?.to_owned(),
    };
    Some(("expr".to_owned(), Condition::Expression { source }))
}

/// Fills in the writers of artifacts once every step is known. Gates over what only disabled steps
/// write are dropped (S4-29).
pub fn link_writers(builder: &mut Builder<'_>) {
    let wanted = std::mem::take(&mut builder.writers_wanted);
    let mut dropped: Vec<(StepId, usize)> = Vec::new();
    let all = writers(&builder.built.graph);
    for want in wanted {
        let others = all.get(&want.name).into_iter().flatten().filter(|writer| **writer != want.step);
        let writers: Vec<&StepId> = others.collect();
        let enabled: Vec<&StepId> =
            writers.iter().copied().filter(|writer| !is_off(writer, &builder.built.disabled)).collect();
        let seen = |writer: &&&StepId| seen_from(&want.step, writer, &want.wanted).is_some();
        let sure = enabled.iter().rev().filter(seen).find(|writer| is_sure(&builder.built.graph, writer));
        let beside = sure
            .or_else(|| enabled.iter().rev().find(seen))
            .and_then(|writer| seen_from(&want.step, writer, &want.wanted));
        match (&want.wanted, beside) {
            (Wanted::Gate(index), Some(writer)) => {
                let step = builder.built.graph.steps.get_mut(&want.step);
                if let Some(gate) = step.and_then(|step| step.gates.get_mut(*index)) {
                    gate.condition = Condition::Artifact { step: writer, name: want.name.clone() };
                }
            }
            (Wanted::Gate(index), None) => {
                dropped.push((want.step.clone(), *index));
                let unknowable = writers.is_empty() && builder.built.unknown.writers;
                if (writers.is_empty() || !enabled.is_empty()) && !unknowable {
                    let message = match enabled.last() {
                        Some(writer) => {
                            format!("`{}` is written by `{writer}`, outside this list of steps", want.name)
                        }
                        None => format!("no step writes `{}`", want.name),
                    };
                    builder.report.error(
                        codes::READ_BEFORE_WRITE,
                        want.span,
                        message,
                        "a gate asks for a file that a step of its own list declares in `writes`; for others there is `reads`",
                    );
                }
            }
            (Wanted::PlannedBy, writer) => {
                let step = builder.built.graph.steps.get_mut(&want.step);
                if let Some(Kind::FanOut(fan_out)) = step.map(|step| &mut step.kind) {
                    fan_out.planned_by = writer;
                }
            }
        }
    }
    // From the back, so that the indices of the others stay.
    dropped.sort();
    for (step, index) in dropped.into_iter().rev() {
        if let Some(step) = builder.built.graph.steps.get_mut(&step) {
            step.gates.remove(index);
        }
    }
}

/// A writer that runs on every way through: neither called for nor under a condition.
fn is_sure(graph: &Graph, writer: &StepId) -> bool {
    let conditional = |gate: &Gate| gate.hardness == Hardness::Skip;
    graph.steps.get(writer).is_some_and(|step| !step.dormant && !step.gates.iter().any(conditional))
}

/// The writer as the engine finds it from the step that asks: a step of the same list, or one that
/// is fixed below a step of the run's own list. A planner is lifted to the step of the list.
fn seen_from(asking: &StepId, writer: &StepId, wanted: &Wanted) -> Option<StepId> {
    let prefix = asking.as_str().rfind('/').map_or("", |at| &asking.as_str()[..=at]);
    let rest = writer.as_str().strip_prefix(prefix)?;
    match (wanted, rest.split_once('/')) {
        (_, None) => Some(writer.clone()),
        (Wanted::PlannedBy, Some((step, _))) => Some(StepId::new(format!("{prefix}{step}"))),
        (Wanted::Gate(_), Some(_)) => (prefix.is_empty() && !rest.contains('*')).then(|| writer.clone()),
    }
}

/// Steps that declare each artifact, in the order of the plan.
fn writers(graph: &Graph) -> BTreeMap<ArtifactName, Vec<StepId>> {
    let order: BTreeMap<&str, usize> = graph.top().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let position = |id: &StepId| {
        let top = id.as_str().split('/').next().unwrap_or_default();
        order.get(top).copied().unwrap_or(usize::MAX)
    };
    let mut writers: BTreeMap<ArtifactName, Vec<StepId>> = BTreeMap::new();
    for (id, step) in &graph.steps {
        for name in &step.writes {
            writers.entry(name.clone()).or_default().push(id.clone());
        }
    }
    for list in writers.values_mut() {
        list.sort_by_key(|id| (position(id), id.clone()));
    }
    writers
}
