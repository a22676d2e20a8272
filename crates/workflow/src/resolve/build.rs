//! What a resolution collects: the graph of one profile, and what all profiles share.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{AgentId, ArtifactName, CheckId, PoolId, RoleId, StageId, StepId},
    plan::{Graph, Step},
};
use serde_json::Value;

use super::{unit::Links, unknown::Unknown};
use crate::{
    diagnostic::Report,
    frozen::{Check, Import, Role, StepText},
    lint::known::PlacedText,
    load::LoadOptions,
    yaml::tree::{Node, NodeValue, Span},
};

/// What all profiles share. A role that a profile or a sub-run defines differently gets a prefix.
#[derive(Debug, Default)]
pub struct Shared {
    pub roles: BTreeMap<RoleId, Role>,
    pub checks: BTreeMap<CheckId, Check>,
    pub agents: BTreeSet<AgentId>,
    pub settings: BTreeMap<String, Value>,
    /// Digest of every text that was read, by label.
    pub sources: BTreeMap<String, String>,
    pub used_roles: BTreeSet<RoleId>,
    pub used_checks: BTreeSet<CheckId>,
    /// Where roles and checks of the workflow file itself are defined, for warnings.
    pub role_places: BTreeMap<RoleId, Span>,
    pub check_places: BTreeMap<CheckId, Span>,
    pub used_contracts: BTreeSet<String>,
    /// What roles say, with its places.
    pub role_texts: BTreeMap<RoleId, Vec<PlacedText>>,
    /// What checks run and when.
    pub check_texts: BTreeMap<CheckId, Vec<PlacedText>>,
}

impl Shared {
    pub fn read(&mut self, label: &str, text: &str) {
        self.sources.insert(label.to_owned(), blake3::hash(text.as_bytes()).to_hex().to_string());
    }

    /// The id under which a role is known, and the same for equal roles.
    pub fn add_role(&mut self, name: &str, prefix: &str, role: Role, span: Span) -> RoleId {
        let mut id = RoleId::new(name);
        while self.roles.get(&id).is_some_and(|known| !same(known, &role)) {
            id = RoleId::new(format!("{prefix}{id}"));
        }
        self.roles.insert(id.clone(), role);
        self.role_places.entry(id.clone()).or_insert(span);
        id
    }

    pub fn add_check(&mut self, name: &str, prefix: &str, check: Check, span: Span) -> CheckId {
        let mut id = CheckId::new(name);
        while self.checks.get(&id).is_some_and(|known| !same(known, &check)) {
            id = CheckId::new(format!("{prefix}{id}"));
        }
        self.checks.insert(id.clone(), check);
        self.check_places.entry(id.clone()).or_insert(span);
        id
    }
}

fn same<T: serde::Serialize>(left: &T, right: &T) -> bool {
    match (serde_json::to_value(left), serde_json::to_value(right)) {
        (Ok(left), Ok(right)) => left == right,
        (Ok(_) | Err(_), _) => false,
    }
}

/// The graph of one profile with what lint needs to point at the text.
#[derive(Debug, Default)]
pub struct Built {
    pub graph: Graph,
    pub texts: BTreeMap<StepId, StepText>,
    /// The mapping that each step was written as.
    pub nodes: BTreeMap<StepId, Node>,
    pub disabled: BTreeSet<StepId>,
    /// What is said when a stage is through.
    pub announce: BTreeMap<StageId, String>,
    pub imports: Vec<Import>,
    pub unknown: Unknown,
}

/// Gates and fan-outs that ask for "whoever writes this file", answered when all steps are known.
#[derive(Debug)]
pub struct WriterWanted {
    pub step: StepId,
    pub name: ArtifactName,
    pub span: Span,
    pub wanted: Wanted,
}

#[derive(Debug)]
pub enum Wanted {
    /// The n-th gate of the step.
    Gate(usize),
    PlannedBy,
}

/// The state of resolving one profile.
pub struct Builder<'a> {
    pub report: &'a mut Report,
    pub shared: &'a mut Shared,
    pub options: &'a LoadOptions<'a>,
    pub built: Built,
    pub writers_wanted: Vec<WriterWanted>,
    /// Names of the workflows we are inside, outermost first.
    pub chain: Vec<String>,
    /// Fixes written inside the review that is being resolved: further steps of its list.
    pub beside: Vec<StepId>,
    /// Sub-runs inlined so far.
    pub sub_runs: usize,
}

impl Builder<'_> {
    pub fn insert(&mut self, id: StepId, step: Step, text: StepText, node: &Node) {
        self.built.nodes.insert(id.clone(), node.clone());
        self.built.texts.insert(id.clone(), text);
        self.built.graph.steps.insert(id, Box::new(step));
    }

    /// Notes what a list of steps leaves unknown: needs that lead nowhere, entries that are no steps.
    pub fn note_links(&mut self, list: &[Node], links: &Links) {
        let unknown = &mut self.built.unknown;
        unknown.needs.extend(links.open.iter().cloned());
        if !list.iter().all(|step| matches!(step.value, NodeValue::Mapping(_))) {
            unknown.writers = true;
            unknown.calls.push(String::new());
            unknown.needs.extend(links.needs.keys().cloned());
        }
    }

    pub fn pool(&mut self, name: String, depth: u32) -> PoolId {
        let id = PoolId::new(name);
        let known = self.built.graph.pools.entry(id.clone()).or_insert(depth);
        *known = (*known).min(depth);
        id
    }
}
