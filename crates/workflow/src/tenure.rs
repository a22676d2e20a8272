//! Who may be in the shared checkout beside whom (decision 27): computed from the roles' write scopes, so
//! that the core needs to know nothing of globs.
//!
//! Readers share; a writer excludes readers and every writer whose globs may mean the same file. A role that
//! declares no scope may write every file, so it is alone. Commands are nobody's work: they share among
//! themselves, and with no role.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{RoleId, StepId, TenureId},
    plan::Kind,
};

use crate::{
    frozen::{self, Frozen, Isolation, Role, StepText},
    globs::{Bare, Globs},
};

/// A role without `may_write`.
const EVERYTHING: &str = "everything";
const READER: &str = "reader";
const COMMAND: &str = "command";

/// Gives every step of a role its tenure, and every graph the pairs that exclude each other.
pub fn assign(frozen: &mut Frozen) {
    for (profile, graph) in &mut frozen.plan.graphs {
        if graph.steps.values().all(|step| step.role().is_none()) {
            continue;
        }
        let texts = frozen.steps.get(profile);
        let mut used: BTreeMap<TenureId, Tenure> = BTreeMap::new();
        for (id, step) in &mut graph.steps {
            let text = texts.and_then(|texts| texts.get(id));
            // A command may write anything, what agents wrote included.
            let is_command = matches!(step.kind, Kind::Check { .. } | Kind::Merge { .. });
            let role = step.role().cloned();
            if role.is_none() && !is_command {
                continue;
            }
            if text.is_some_and(|text| text.isolation == Isolation::Worktree) {
                continue;
            }
            let (name, tenure) = match &role {
                Some(role) => tenure_of(role, frozen.roles.get(role), id, text),
                None => (TenureId::new(COMMAND), Tenure::Command),
            };
            used.insert(name.clone(), tenure);
            step.tenure = Some(name);
        }
        graph.excludes = used
            .iter()
            .map(|(name, tenure)| {
                let others = used.iter().filter(|(_, other)| tenure.excludes(other));
                (name.clone(), others.map(|(other, _)| other.clone()).collect::<BTreeSet<_>>())
            })
            .filter(|(_, others)| !others.is_empty())
            .collect();
    }
}

enum Tenure {
    Command,
    Reader,
    Writer(Globs),
    /// Of every file.
    Owner,
}

impl Tenure {
    fn excludes(&self, other: &Tenure) -> bool {
        match (self, other) {
            (Tenure::Command, Tenure::Command) | (Tenure::Reader, Tenure::Reader) => false,
            (Tenure::Writer(one), Tenure::Writer(two)) => !one.is_disjoint(two),
            (Tenure::Command | Tenure::Reader | Tenure::Writer(_) | Tenure::Owner, _) => true,
        }
    }
}

fn tenure_of(id: &RoleId, role: Option<&Role>, step: &StepId, text: Option<&StepText>) -> (TenureId, Tenure) {
    let name = match text.and_then(|text| text.may_write.as_ref()) {
        Some(_) => format!("step:{step}"),
        None => format!("role:{id}"),
    };
    match frozen::may_write(text, role) {
        None => (TenureId::new(EVERYTHING), Tenure::Owner),
        Some(globs) if globs.is_empty() => (TenureId::new(READER), Tenure::Reader),
        Some(globs) => (TenureId::new(name), Tenure::Writer(Globs::new(&globs, Bare::InRoot))),
    }
}
