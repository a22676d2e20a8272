//! Who may be in the shared checkout beside whom (decision 27): computed from the roles' write scopes, so
//! that the core needs to know nothing of globs.
//!
//! Readers share; a writer excludes readers and every writer whose globs may mean the same file. Roles that
//! declare no scope made no promise: they share among themselves, as their `parallel_max` allows, but nobody
//! whose changes have to be told apart is admitted beside them.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{RoleId, TenureId},
    plan::Kind,
};

use crate::{
    frozen::{Frozen, Isolation, Role},
    globs::{Bare, Globs},
};

const UNDECLARED: &str = "undeclared";

/// Gives every step of a role its tenure, and every graph the pairs that exclude each other.
pub fn assign(frozen: &mut Frozen) {
    if frozen.roles.values().all(|role| role.may_write.is_none()) {
        return;
    }
    for (profile, graph) in &mut frozen.plan.graphs {
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
                Some(role) => tenure_of(role, frozen.roles.get(role)),
                None => (TenureId::new(UNDECLARED), Tenure::Undeclared),
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
    Undeclared,
    Reader,
    Writer(Globs),
}

impl Tenure {
    fn excludes(&self, other: &Tenure) -> bool {
        match (self, other) {
            (Tenure::Undeclared, Tenure::Undeclared) | (Tenure::Reader, Tenure::Reader) => false,
            (Tenure::Writer(one), Tenure::Writer(two)) => !one.is_disjoint(two),
            (Tenure::Undeclared | Tenure::Reader | Tenure::Writer(_), _) => true,
        }
    }
}

fn tenure_of(id: &RoleId, role: Option<&Role>) -> (TenureId, Tenure) {
    match role.and_then(|role| role.may_write.as_ref()) {
        None => (TenureId::new(UNDECLARED), Tenure::Undeclared),
        Some(globs) if globs.is_empty() => (TenureId::new("reader"), Tenure::Reader),
        Some(globs) => (TenureId::new(format!("role:{id}")), Tenure::Writer(Globs::new(globs, Bare::InRoot))),
    }
}
