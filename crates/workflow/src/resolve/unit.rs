//! One workflow file being resolved: the run's own, or that of a sub-run below a step of it.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{CheckId, StageId, StepId},
    plan::{Stage, limits},
};

use super::{
    build::Builder,
    contract_source::folder_of,
    names::{Names, Scope},
    role::{self, UnitRole},
    step::{self, Place},
};
use crate::{
    frozen::Isolation,
    load::Sources,
    reply::{Ladder, ReplyFormat, WordMap, WordOverrides},
    yaml::tree::Node,
};

/// The stage of a workflow that has `steps` and no `stages`.
pub const UNNAMED_STAGE: &str = "main";

pub struct Unit<'u> {
    pub tree: &'u Node,
    pub sources: &'u dyn Sources,
    /// The folder of the workflow's own label, put before the paths of files in messages.
    pub folder: String,
    /// Put before the ids of its steps: empty, or `STEP/`.
    pub prefix: String,
    /// Put before a role or check that another file defines differently.
    pub role_prefix: String,
    pub names: Names,
    pub roles: BTreeMap<String, UnitRole>,
    pub checks: BTreeMap<String, CheckId>,
    pub words: WordMap,
    /// Entry steps by stage: with what a restart begins.
    pub first_steps: BTreeMap<String, Vec<StepId>>,
    /// Of a sub-run: the stage of the step that it is.
    pub parent_stage: Option<StageId>,
}

/// One stage as it is written.
struct StageText<'u> {
    id: String,
    node: Option<&'u Node>,
    steps: &'u [Node],
    list: Option<&'u Node>,
}

/// What each step of a list waits for, and where the list begins and ends.
#[derive(Debug, Default)]
pub struct Links {
    pub needs: BTreeMap<StepId, Vec<StepId>>,
    pub entries: Vec<StepId>,
    /// With what the list may begin, each with those before it that may be left out: an entry, and what follows one that
    /// is switched off or has a condition. The gates of a stage are theirs.
    pub beginnings: BTreeMap<StepId, Vec<StepId>>,
    pub sinks: Vec<StepId>,
    /// Steps that name a need which is not there.
    pub open: BTreeSet<StepId>,
}

impl<'u> Unit<'u> {
    pub fn new(
        builder: &mut Builder<'_>,
        tree: &'u Node,
        label: &str,
        sources: &'u dyn Sources,
        prefix: &str,
        role_prefix: &str,
        parent_stage: Option<StageId>,
    ) -> Unit<'u> {
        let words = words(tree.get("words"), WordMap::default()).unwrap_or_default();
        let mut unit = Unit {
            tree,
            sources,
            folder: folder_of(label).to_owned(),
            prefix: prefix.to_owned(),
            role_prefix: role_prefix.to_owned(),
            names: Names::default(),
            roles: BTreeMap::new(),
            checks: BTreeMap::new(),
            words,
            first_steps: BTreeMap::new(),
            parent_stage,
        };
        for (name, node) in tree.get("roles").map(Node::entries).unwrap_or_default() {
            let role = role::role(builder, &unit, name, node);
            unit.roles.insert(name.text.clone(), role);
        }
        for (name, node) in tree.get("checks").map(Node::entries).unwrap_or_default() {
            let check = role::check(builder, &unit, name, node);
            unit.checks.insert(name.text.clone(), check);
        }
        let scope = Scope::top(prefix);
        for stage in stages(tree) {
            if let Some(list) = stage.list {
                unit.names.collect(list, prefix, builder.report);
            }
        }
        for stage in stages(tree) {
            let links = links(&unit.names, &scope, stage.steps, &mut crate::diagnostic::Report::default());
            unit.first_steps.insert(stage.id.clone(), links.entries);
        }
        unit
    }

    /// The label of a file beside this workflow.
    pub fn label_of(&self, path: &str) -> String {
        format!("{}{path}", self.folder)
    }

    pub fn reply(&self) -> Option<ReplyFormat> {
        reply(self.tree)
    }

    /// Resolves all steps into the builder's graph; the stages in order.
    pub fn resolve(&self, builder: &mut Builder<'_>) -> Vec<Stage> {
        let scope = Scope::top(&self.prefix);
        let mut resolved = Vec::new();
        let mut before: Vec<StepId> = Vec::new();
        for stage in stages(self.tree) {
            let id = self.parent_stage.clone().unwrap_or_else(|| StageId::new(&stage.id));
            let mut links = links(&self.names, &scope, stage.steps, builder.report);
            builder.note_links(stage.steps, &links);
            for entry in &links.entries {
                links.needs.entry(entry.clone()).or_default().extend(before.iter().cloned());
            }
            let gates = stage.node.and_then(|node| node.get("gates")).map(Node::elements).unwrap_or_default();
            let place = Place {
                scope: &scope,
                stage: &id,
                links: &links,
                stage_gates: gates,
                isolation: Isolation::Shared,
            };
            let steps = step::steps(builder, self, &place, stage.steps);
            let disabled = stage.node.and_then(|node| node.flag("enabled")) == Some(false);
            if disabled {
                builder.built.disabled.extend(steps.iter().cloned());
            }
            if !links.sinks.is_empty() {
                before = links.sinks;
            }
            resolved.push(Stage {
                id,
                steps,
                restarts_max: stage
                    .node
                    .and_then(|node| node.limit("restarts_max"))
                    .unwrap_or(limits::RESTARTS_MAX),
                disabled: disabled.then(|| "switched off by profile or configuration".to_owned()),
            });
        }
        resolved
    }
}

fn stages(tree: &Node) -> Vec<StageText<'_>> {
    // Both together were reported; then all of them count.
    let unnamed = tree.get("steps").map(|list| StageText {
        id: UNNAMED_STAGE.to_owned(),
        node: None,
        steps: list.elements(),
        list: Some(list),
    });
    let stages = tree.get("stages").map(Node::elements).unwrap_or_default();
    let named = stages.iter().map(|node| StageText {
        id: node.string_or_empty("id"),
        node: Some(node),
        steps: node.get("steps").map(Node::elements).unwrap_or_default(),
        list: node.get("steps"),
    });
    unnamed.into_iter().chain(named).collect()
}

/// A step without `needs` needs the step before it; dormant steps are no part of that chain.
pub fn links(names: &Names, scope: &Scope, steps: &[Node], report: &mut crate::diagnostic::Report) -> Links {
    let mut links = Links::default();
    let mut before: Option<StepId> = None;
    let mut dormant = BTreeSet::new();
    for node in steps {
        let Some(name) = node.word("id") else { continue };
        let id = scope.id(&name.text);
        let needs = match node.get("needs") {
            Some(needs) => {
                let words = needs.as_words();
                let found: Vec<StepId> =
                    words.iter().filter_map(|word| names.sibling(scope, word, report)).collect();
                if found.len() < words.len() {
                    links.open.insert(id.clone());
                }
                found
            }
            None if node.is_on("dormant") => Vec::new(),
            None => before.clone().into_iter().collect::<Vec<_>>(),
        };
        links.needs.insert(id.clone(), needs);
        if node.is_on("dormant") {
            dormant.insert(id);
        } else {
            before = Some(id);
        }
    }
    let waking: Vec<&StepId> = links.needs.keys().filter(|id| !dormant.contains(*id)).collect();
    let needed: BTreeSet<&StepId> = waking.iter().flat_map(|id| &links.needs[*id]).collect();
    let entries =
        waking.iter().filter(|id| !links.needs[**id].iter().any(|need| links.needs.contains_key(need)));
    let sinks = waking.iter().filter(|id| !needed.contains(**id));
    let (entries, sinks) =
        (entries.map(|id| (*id).clone()).collect(), sinks.map(|id| (*id).clone()).collect());
    links.entries = entries;
    links.sinks = sinks;
    links.beginnings = beginnings(&links, scope, steps);
    links
}

/// A step begins the list if everything that it needs of the list begins it too and may be left out.
fn beginnings(links: &Links, scope: &Scope, steps: &[Node]) -> BTreeMap<StepId, Vec<StepId>> {
    let is_off = |node: &&Node| node.flag("enabled") == Some(false);
    let ids = |node: &Node| node.word("id").map(|name| scope.id(&name.text));
    let off: BTreeSet<StepId> = steps.iter().filter(is_off).filter_map(ids).collect();
    let conditional = steps.iter().filter(|node| is_off(node) || node.get("when").is_some());
    let left_out: BTreeSet<StepId> = conditional.filter_map(ids).collect();
    let mut found: BTreeMap<StepId, Vec<StepId>> =
        links.entries.iter().map(|entry| (entry.clone(), Vec::new())).collect();
    // `needs` may name what stands further down: again, until nothing is new. A circle never becomes one.
    loop {
        let new: Vec<(StepId, Vec<StepId>)> = steps
            .iter()
            .filter(|node| !node.is_on("dormant"))
            .filter_map(ids)
            .filter(|id| !found.contains_key(id))
            .filter_map(|id| {
                let inside: Vec<&StepId> =
                    links.needs.get(&id)?.iter().filter(|need| links.needs.contains_key(*need)).collect();
                let begins = |need: &&StepId| left_out.contains(*need) && found.contains_key(*need);
                inside.iter().all(begins).then(|| {
                    let earlier = inside.iter().flat_map(|need| &found[*need]).chain(inside.iter().copied());
                    let mut before: Vec<StepId> =
                        earlier.filter(|step| !off.contains(*step)).cloned().collect();
                    before.sort();
                    before.dedup();
                    (id, before)
                })
            })
            .collect();
        if new.is_empty() {
            return found;
        }
        found.extend(new);
    }
}

pub fn reply(node: &Node) -> Option<ReplyFormat> {
    match node.string("reply").as_deref() {
        Some("brief") => Some(ReplyFormat::Brief),
        Some("universal") => Some(ReplyFormat::Universal),
        Some("review") => Some(ReplyFormat::Review),
        Some("completion") => Some(ReplyFormat::Completion),
        Some("task") => Some(ReplyFormat::Task),
        Some(_) | None => None,
    }
}

/// The words of a node over others; `None` if it has none.
pub fn words(node: Option<&Node>, below: WordMap) -> Option<WordMap> {
    let node = node?;
    let ladder = match node.string("ladder").as_deref() {
        Some("s0") => Some(Ladder::S0),
        Some("s1") => Some(Ladder::S1),
        Some("s2") => Some(Ladder::S2),
        Some("s3") => Some(Ladder::S3),
        Some("s4") => Some(Ladder::S4),
        Some(_) | None => None,
    };
    let below = ladder.map_or(below.clone(), |ladder| below.with_ladder(ladder));
    let mut single = node.to_json();
    if let Some(object) = single.as_object_mut() {
        object.remove("ladder");
        object.retain(|_, value| !value.is_null());
    }
    // What serde refuses here was reported with its place.
    let overrides: WordOverrides = serde_json::from_value(single).unwrap_or_default();
    Some(below.overridden(&overrides))
}
