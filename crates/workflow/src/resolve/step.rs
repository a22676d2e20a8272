//! One step of a definition to a node of the plan and the text beside it.

use std::collections::BTreeSet;

use gatewright_core::{
    ids::{ArtifactName, PoolId, StageId, StepId},
    plan::{Edge, Kind, Retry, Step, limits},
};

use super::{
    answer::{self, Asking},
    build::Builder,
    contract_source, fan_out,
    gate::{self, StageGates},
    merge,
    names::Scope,
    review, sub_run,
    unit::{self, Links, Unit},
    unknown,
};
use crate::{
    contract::Contract,
    definition::{check_shape::kind_of_step, keys_of_step::WRITE_KEYS, read::Word, scalar, shape::Kinds},
    frozen::{Inline, Isolation, Read, StepText, Write},
    yaml::tree::{Node, NodeValue},
};

/// Where a list of steps stands.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    pub scope: &'p Scope,
    pub stage: &'p StageId,
    pub links: &'p Links,
    /// Gates of the stage, for the steps with which it may begin.
    pub stage_gates: &'p [Node],
    pub isolation: Isolation,
}

/// Resolves a list of steps; their ids in order.
pub fn steps(builder: &mut Builder<'_>, unit: &Unit<'_>, place: &Place<'_>, list: &[Node]) -> Vec<StepId> {
    let mut ids = Vec::new();
    let mut seen = BTreeSet::new();
    for node in list {
        let Some(name) = node.word("id") else { continue };
        let id = place.scope.id(&name.text);
        let outer = std::mem::take(&mut builder.beside);
        resolve(builder, unit, place, node, &name, &id);
        let beside = std::mem::replace(&mut builder.beside, outer);
        let new = std::iter::once(id).chain(beside);
        ids.extend(new.filter(|id| seen.insert(id.clone())));
    }
    ids
}

/// What is the same for all kinds, made before the kind.
fn common(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    name: &Word,
    id: &StepId,
) -> Step {
    let needs = place.links.needs.get(id).cloned().unwrap_or_default();
    let mut edges: Vec<Edge> = Vec::new();
    for from in needs {
        if !edges.iter().any(|edge| edge.from == from) {
            edges.push(Edge { from });
        }
    }
    let beginning = place.links.beginnings.get(id);
    let stage_gates = StageGates {
        gates: if beginning.is_some() { place.stage_gates } else { &[] },
        asked_at: beginning.map(Vec::as_slice).unwrap_or_default(),
    };
    let checks = unit.checks_of(builder, node, id);
    let attempts_max = if kind_of_step(node).is_some_and(|(kind, _)| kind == Kinds::CHECK) {
        limits::CHECK_ATTEMPTS_MAX
    } else {
        limits::ATTEMPTS_MAX
    };
    let back: Vec<StepId> = node
        .words("back")
        .iter()
        .filter_map(|word| unknown::called(builder, unit, place.scope, word))
        .collect();
    Step {
        name: name.text.clone(),
        stage: place.stage.clone(),
        needs: edges,
        gates: gate::gates(builder, unit, place.scope, id, node, &stage_gates),
        // Replaced by the caller, who knows the kind.
        kind: Kind::Merge { of: id.clone(), repair: None },
        pools: Vec::new(),
        tenure: None,
        writes: Vec::new(),
        checks,
        commit: false,
        retry: retry(builder, unit, place.scope, node.get("retry"), place.stage, attempts_max),
        dormant: node.is_on("dormant"),
        back,
        back_max: node.limit("back_max").unwrap_or(limits::BACK_MAX),
    }
}

/// Resolves one step into the graph. One without a kind, which was reported, stands there with its
/// files and its place, so that the proofs about others hold.
fn resolve(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    name: &Word,
    id: &StepId,
) {
    if builder.report.has_errors() {
        builder.built.unknown.note(id, node);
    }
    let kind = kind_of_step(node).map(|(kind, _)| kind);
    let mut step = common(builder, unit, place, node, name, id);
    let mut text = text(builder, unit, node, place.isolation);
    step.writes = text.writes.iter().map(|write| ArtifactName::new(&write.name)).collect();
    if node.flag("enabled") == Some(false) {
        builder.built.disabled.insert(id.clone());
    }
    if kind == Some(Kinds::AGENT) {
        agent(builder, unit, node, &mut step);
    } else if kind == Some(Kinds::REVIEW) {
        review::review(builder, unit, place, node, id, &mut step, &mut text);
    } else if kind == Some(Kinds::CHECK) {
        step.kind = Kind::Check { check: unit.check_named(builder, &word(node, "check")) };
        step.pools = unit.pools_of(builder, node, None);
    } else if kind == Some(Kinds::DECIDE) {
        step.kind = Kind::Decision(Box::new(answer::question(builder, unit, place.scope, node)));
    } else if kind == Some(Kinds::FOR_EACH) {
        fan_out::fan_out(builder, unit, place, node, id, &mut step, &mut text);
    } else if kind == Some(Kinds::MERGE) {
        merge::merge(builder, unit, place, node, id, &mut step);
    } else if kind == Some(Kinds::FINISH) {
        merge::finish(builder, unit, place, node, id, &mut step, &mut text);
    } else if kind == Some(Kinds::RUN) {
        sub_run::sub_run(builder, unit, place, node, id, &mut step, &mut text);
    }
    builder.insert(id.clone(), step, text, node);
}

/// The value of a key that tells the kind; it is there, or its type was reported.
pub fn word(node: &Node, key: &str) -> Word {
    node.word(key).unwrap_or(Word { text: String::new(), span: node.place(key) })
}

/// The kind and pools of a step that an agent does.
pub fn agent(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node, step: &mut Step) {
    let role = unit.role_named(builder, &word(node, "role"));
    let agent = unit.agent_of(builder, node, &role);
    step.pools = unit.pools_of(builder, node, Some((&role, &agent)));
    step.kind = Kind::Agent { role: role.id, agent };
}

/// A step that belongs to a review: a reviewer of a panel or a fix written in place.
pub fn below(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    name: &str,
    kind: Kind,
    pools: Vec<PoolId>,
) -> Step {
    let checks = node.words("checks").iter().map(|word| unit.check_named(builder, word)).collect();
    Step {
        name: name.to_owned(),
        stage: place.stage.clone(),
        needs: Vec::new(),
        gates: Vec::new(),
        kind,
        pools,
        tenure: None,
        writes: Vec::new(),
        checks,
        commit: false,
        retry: retry(builder, unit, place.scope, node.get("retry"), place.stage, limits::ATTEMPTS_MAX),
        dormant: false,
        back: Vec::new(),
        back_max: limits::BACK_MAX,
    }
}

pub fn text(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node, isolation: Isolation) -> StepText {
    let isolation = match node.string("isolation").as_deref() {
        Some("worktree") => Isolation::Worktree,
        Some("shared") => Isolation::Shared,
        Some(_) | None => isolation,
    };
    // Words of a sub-run are not the run's: each of its steps carries them.
    let own = unit::words(node.get("words"), unit.words.clone());
    let of_unit = unit.parent_stage.as_ref().map(|_| unit.words.clone());
    StepText {
        title: node.string_or_empty("title"),
        prompt: node.string_or_empty("prompt"),
        reads: reads(node),
        writes: writes(builder, unit, node),
        reply: unit::reply(node).or_else(|| unit.reply()),
        points: node.strings("points"),
        finds: node.string_or_empty("finds"),
        timeout_ms: node.milliseconds("timeout"),
        idle_timeout_ms: node.milliseconds("idle_timeout"),
        extension_ms: node.milliseconds("extension"),
        model: node.string("model").filter(|model| !model.is_empty()),
        list: None,
        isolation,
        own_worktree: node.string("isolation").as_deref() == Some("worktree"),
        commit: node.flag("commit"),
        finish: None,
        confirmed: false,
        request: None,
        route: None,
        words: own.or(of_unit),
        may_write: node.get("may_write").map(|_| node.strings("may_write")),
        data: node
            .get("data")
            .map(Node::entries)
            .unwrap_or_default()
            .iter()
            .map(|(key, value)| (key.text.clone(), value.to_json()))
            .collect(),
    }
}

pub fn reads(node: &Node) -> Vec<Read> {
    node.strings("reads")
        .into_iter()
        .map(|name| match name.strip_suffix('?') {
            Some(name) => Read { name: name.to_owned(), optional: true },
            None => Read { name, optional: false },
        })
        .collect()
}

fn writes(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node) -> Vec<Write> {
    let Some(writes) = node.get("writes") else { return Vec::new() };
    if !matches!(writes.value, NodeValue::Mapping(_)) {
        let any = |name| Write {
            name,
            first: None,
            contract: Contract::any(),
            first_contract: None,
            optional: false,
            inline: None,
        };
        return node.strings("writes").into_iter().map(any).collect();
    }
    let mut list = Vec::new();
    for (name, value) in writes.entries() {
        let detailed = WRITE_KEYS.iter().any(|key| value.get(key).is_some());
        let contract = if detailed { value.get("contract") } else { Some(value) };
        let contract = contract.map(|node| contract_source::contract(builder, unit, node));
        let first = value.get("first_contract").filter(|_| detailed);
        let first_contract = first.map(|node| contract_source::contract(builder, unit, node));
        list.push(Write {
            name: name.text.clone(),
            first: if detailed { value.string("first") } else { None },
            contract: contract.unwrap_or_else(Contract::any),
            first_contract,
            optional: detailed && value.is_on("optional"),
            inline: value.get("inline").filter(|_| detailed).map(|inline| Inline {
                field: inline.string_or_empty("field"),
                lines_max: inline.limit("lines_max"),
            }),
        });
    }
    list
}

fn retry(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    scope: &Scope,
    node: Option<&Node>,
    stage: &StageId,
    attempts_max: u32,
) -> Retry {
    let Some(node) = node else { return Retry { attempts_max, ..Retry::default() } };
    let backoff = node.words("backoff");
    Retry {
        attempts_max: node.limit("attempts_max").unwrap_or(attempts_max),
        interruptions_max: node.limit("interruptions_max").unwrap_or(limits::INTERRUPTIONS_MAX),
        backoff_ms: backoff.iter().filter_map(|word| scalar::duration_ms(&word.text)).collect(),
        on_exhausted: answer::exhaustion(
            builder,
            unit,
            scope,
            node.get("on_exhausted"),
            stage,
            Asking::Retry,
        ),
    }
}
