//! What a mistake leaves unknown. It was reported where it stands; the proofs over the graph say
//! nothing about what it hides, and everything about the rest.

use std::collections::BTreeSet;

use gatewright_core::ids::StepId;

use super::{build::Builder, names::Scope, unit::Unit};
use crate::{
    definition::{
        check_shape::{check_shape, kind_of_step, meant_key},
        keys_of_step::STEP,
        read::Word,
    },
    diagnostic::{Report, nearest},
    yaml::tree::{Node, NodeValue},
};

/// Keys that say what a step calls for besides its needs.
const CALLS: &[&str] = &["fix", "answers", "back", "retry", "on_exhausted"];

#[derive(Debug, Default)]
pub struct Unknown {
    /// Steps of which it is not known what they are, or whether they run at all.
    pub kinds: BTreeSet<StepId>,
    /// Steps that may need more than the graph says.
    pub needs: BTreeSet<StepId>,
    /// Decisions whose answers are not all known.
    pub answers: BTreeSet<StepId>,
    /// Steps whose checks are not all known.
    pub checks: BTreeSet<StepId>,
    /// Some step may write files that it does not name.
    pub writers: bool,
    /// Names in `fix`, `redo`, `back` and `else_run` that lead nowhere; an empty one could be any.
    pub calls: Vec<String>,
}

impl Unknown {
    /// Whether a name that leads nowhere may have meant this one of the dormant steps.
    pub fn may_call(&self, id: &StepId, dormant: &[&str]) -> bool {
        self.calls.iter().any(|name| {
            let meant = nearest(name, dormant.iter().copied());
            meant.is_none_or(|meant| meant == id.as_str())
        })
    }

    /// Notes what is wrong with the mapping of a step; its mistakes were reported.
    pub fn note(&mut self, id: &StepId, node: &Node) {
        if kind_of_step(node).is_none() {
            self.kinds.insert(id.clone());
        }
        for (key, value) in node.entries() {
            let known = STEP.key(&key.text);
            let meant = match known {
                Some(rule) if is_wrong(rule.name, value) => Some(rule.name),
                Some(_) => None,
                None => meant_key(&STEP, &key.text),
            };
            match meant {
                Some("needs") => drop(self.needs.insert(id.clone())),
                Some("writes" | "steps" | "for_each" | "run") => self.writers = true,
                Some("dormant" | "enabled" | "review" | "role" | "decide" | "check" | "merge") => {
                    self.kinds.insert(id.clone());
                }
                Some("checks") => drop(self.checks.insert(id.clone())),
                Some(key) if CALLS.contains(&key) => {
                    self.calls.push(String::new());
                    self.answers.insert(id.clone());
                }
                Some(_) | None => {}
            }
        }
        if self.kinds.contains(id) && CALLS.iter().any(|key| node.get(key).is_some()) {
            self.calls.push(String::new());
        }
        if node.get("decide").is_some() && node.get("answers").is_none_or(Node::is_null) {
            self.answers.insert(id.clone());
        }
    }
}

/// Whether the value of a key says less than was meant. The names of `writes` and the steps of a
/// list are known whatever is wrong inside.
fn is_wrong(key: &str, value: &Node) -> bool {
    match key {
        "writes" => match &value.value {
            NodeValue::Mapping(_) | NodeValue::Null => false,
            NodeValue::Sequence(elements) => elements.iter().any(|element| element.text().is_none()),
            NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => true,
        },
        "steps" => !value.elements().iter().all(|step| matches!(step.value, NodeValue::Mapping(_))),
        _ => STEP.key(key).is_some_and(|rule| {
            let mut found = Report::default();
            check_shape(value, &rule.shape, "", &mut found);
            found.has_errors()
        }),
    }
}

/// The step that a fix, an answer or an obligation calls for; noted if there is none.
pub fn called(builder: &mut Builder<'_>, unit: &Unit<'_>, scope: &Scope, word: &Word) -> Option<StepId> {
    let found = unit.names.find(scope, word, builder.report);
    if found.is_none() {
        builder.built.unknown.calls.push(format!("{}{}", scope.prefix, word.text));
    }
    found
}
