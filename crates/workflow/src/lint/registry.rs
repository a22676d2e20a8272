//! GW116, GW117: a role that is not in the registry, or a file that the registry does not give its role.

use std::collections::BTreeMap;

use gatewright_core::ids::StepId;
use serde_json::Value;

use crate::{
    diagnostic::{Report, codes, suggestion},
    globs::{Bare, Globs},
    load::Sources,
    resolve::{Built, Shared},
    yaml::{
        parse_yaml_value,
        tree::{Node, Span},
    },
};

/// Entry for all roles.
const ALL: &str = "*";

/// What each role may read and write; `?` behind a name says that it may be missing.
struct Registry {
    path: String,
    roles: BTreeMap<String, [Vec<String>; 2]>,
}

/// `tree` is the definition of one profile.
pub fn check_registry(
    built: &Built,
    tree: &Node,
    sources: &dyn Sources,
    shared: &mut Shared,
    report: &mut Report,
) {
    let Some(path) = tree.string("registry") else { return };
    let span = tree.place("registry");
    let Some(text) = sources.read(&path) else {
        report.error(
            codes::BAD_REGISTRY,
            span,
            format!("there is no registry `{path}`"),
            "paths are relative to the workflow file",
        );
        return;
    };
    shared.read(&path, &text);
    match Registry::parse(path, &text) {
        Ok(registry) => registry.check(built, report),
        Err(message) => report.error(codes::BAD_REGISTRY, span, message, "by role: `reads` and `writes`"),
    }
}

impl Registry {
    fn parse(path: String, text: &str) -> Result<Registry, String> {
        let value = parse_yaml_value(text).map_err(|problem| format!("`{path}`: {problem}"))?;
        let Value::Object(entries) = value else { return Err(format!("`{path}` is no mapping of roles")) };
        let list = |entry: &Value, key: &str| -> Vec<String> {
            let names = entry.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
            names.iter().filter_map(Value::as_str).map(|name| name.trim_end_matches('?').to_owned()).collect()
        };
        let roles =
            entries.iter().map(|(role, entry)| (role.clone(), [list(entry, "reads"), list(entry, "writes")]));
        Ok(Registry { path, roles: roles.collect() })
    }

    fn check(&self, built: &Built, report: &mut Report) {
        for (id, text) in &built.texts {
            let Some(role) = built.graph.steps.get(id).and_then(|step| step.role()) else { continue };
            let span = built.nodes.get(id).map(|node| node.span).unwrap_or_default();
            if !self.roles.contains_key(role.as_str()) {
                let near = suggestion(role.as_str(), self.roles.keys().map(String::as_str));
                let near = if near.is_empty() { "enter it there first".to_owned() } else { near };
                let message =
                    format!("step `{id}`: the role `{role}` is not in the registry `{}`", self.path);
                report.error(codes::NOT_REGISTERED, span, message, near);
                continue;
            }
            let reads = text.reads.iter().map(|read| read.name.clone());
            self.check_names(id, role.as_str(), 0, reads, span, report);
            let writes = text
                .writes
                .iter()
                .flat_map(|write| std::iter::once(write.name.clone()).chain(write.first.clone()));
            self.check_names(id, role.as_str(), 1, writes, span, report);
        }
    }

    fn check_names(
        &self,
        id: &StepId,
        role: &str,
        which: usize,
        names: impl Iterator<Item = String>,
        span: Span,
        report: &mut Report,
    ) {
        let of = |role: &str| self.roles.get(role).map(|lists| lists[which].clone()).unwrap_or_default();
        let known: Vec<String> = of(role).into_iter().chain(of(ALL)).collect();
        let globs = Globs::new(&known, Bare::InRoot);
        for name in names.filter(|name| !globs.contains(&placeless(name))) {
            let verb = ["reads", "writes"][which];
            report.error(
                codes::NOT_REGISTERED,
                span,
                format!(
                    "step `{id}` {verb} `{name}`, which the registry `{}` does not give `{role}`",
                    self.path
                ),
                "enter it there first, or take it out of the step",
            );
        }
    }
}

/// A name with what is only known in a run replaced by a letter: `{{ item.id }}/a.json` is `x/a.json`.
fn placeless(name: &str) -> String {
    let mut rest = name;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        plain.push('x');
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    plain + rest
}
