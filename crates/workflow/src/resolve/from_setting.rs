//! Limits and choices that a definition takes from its settings: `rounds_max: $repairs + 1`.
//!
//! Filled in before anything is resolved, so that everything after it sees plain values. Only keys that
//! are no templates can be written so: a template has `{{ settings.NAME }}`.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    diagnostic::{Report, codes},
    template::Templates,
    yaml::tree::{Key, Node, NodeValue, Span},
};

/// The keys whose value may come from a setting.
pub const KEYS: &[&str] = &[
    "agent",
    "ask_at",
    "attempts_max",
    "back_max",
    "backoff",
    "block_at",
    "enabled",
    "finish",
    "idle_timeout",
    "isolation",
    "items_max",
    "model",
    "not_committed",
    "parallel_max",
    "restarts_max",
    "rounds_max",
    "stalled_after",
    "timeout",
    "waves",
];
/// Parts of a definition that are data of their own.
const APART: &[&str] = &["asked", "contracts", "data", "projections", "settings"];

/// The settings as the definition itself has them.
pub fn declared(tree: &Node) -> BTreeMap<String, Value> {
    let settings = tree.get("settings").map(Node::entries).unwrap_or_default();
    settings.iter().map(|(key, value)| (key.text.clone(), value.to_json())).collect()
}

/// Puts the value in the place of every `$EXPRESSION`.
pub fn fill(tree: &mut Node, settings: &BTreeMap<String, Value>, report: &mut Report) {
    let known = Value::Object(settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
    fill_below(tree, &known, &Templates::new(), report);
}

/// Whether anything in here comes from a setting: what does not stays shared with other copies.
fn has_expression(node: &Node) -> bool {
    let own = |(key, value): &(Key, Node)| {
        let asked = KEYS.contains(&key.text.as_str()) && expression_of(value).is_some();
        !APART.contains(&key.text.as_str()) && (asked || has_expression(value))
    };
    node.entries().iter().any(own) || node.elements().iter().any(has_expression)
}

fn fill_below(node: &mut Node, settings: &Value, templates: &Templates, report: &mut Report) {
    if !has_expression(node) {
        return;
    }
    match &mut node.value {
        NodeValue::Mapping(entries) => {
            let entries = Arc::make_mut(entries);
            for (key, value) in entries.iter_mut().filter(|(key, _)| !APART.contains(&key.text.as_str())) {
                let expression = KEYS.contains(&key.text.as_str()).then(|| expression_of(value)).flatten();
                match expression {
                    Some(expression) => {
                        value.value = evaluated(&expression, value, settings, templates, report);
                    }
                    None => fill_below(value, settings, templates, report),
                }
            }
        }
        NodeValue::Sequence(elements) => {
            for element in Arc::make_mut(elements) {
                fill_below(element, settings, templates, report);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => {}
    }
}

fn expression_of(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::String(text) => text.strip_prefix('$').map(str::to_owned),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number { .. }
        | NodeValue::Sequence(_)
        | NodeValue::Mapping(_) => None,
    }
}

/// The same data as if it had been written here.
fn value_of(value: Value, span: Span) -> NodeValue {
    let node = |value: Value| Node { value: value_of(value, span), span };
    match value {
        Value::Null => NodeValue::Null,
        Value::Bool(value) => NodeValue::Bool(value),
        Value::Number(value) => NodeValue::Number { text: value.to_string(), value },
        Value::String(text) => NodeValue::String(text),
        Value::Array(elements) => NodeValue::Sequence(Arc::new(elements.into_iter().map(node).collect())),
        Value::Object(fields) => NodeValue::Mapping(Arc::new(
            fields.into_iter().map(|(text, value)| (Key { text, span }, node(value))).collect(),
        )),
    }
}

fn evaluated(
    expression: &str,
    node: &Node,
    settings: &Value,
    templates: &Templates,
    report: &mut Report,
) -> NodeValue {
    match templates.evaluate("a setting", expression, settings) {
        Ok(value) => value_of(value, node.span),
        Err(problem) => {
            let remedy = "after `$` stands the name of a setting, or an expression over settings";
            report.error(codes::SETTING, node.span, format!("`${expression}`: {problem}"), remedy);
            NodeValue::Null
        }
    }
}
