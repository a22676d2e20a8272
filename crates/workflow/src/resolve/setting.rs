//! Settings: the definition's defaults, the configuration's values, `--set key=value` over both.

use serde_json::Value;

use super::build::Shared;
use crate::{
    definition::overrides::{OVERRIDABLE, of_setting},
    diagnostic::{Report, codes, suggestion},
    load::LoadOptions,
    yaml::tree::{Node, NodeValue, SourceId, Span, parse_tree},
};

/// The overrides among `--set`: paths that begin with a key of the definition.
pub fn overrides(tree: &Node, options: &LoadOptions<'_>, report: &mut Report) -> Vec<Node> {
    let mut changes = Vec::new();
    for (key, value) in &options.settings {
        if is_setting(tree, key) {
            continue;
        }
        let span = place(key, value, report);
        let mut node = parse_tree(value, span.source).unwrap_or_else(|_| Node::null(span));
        if node.is_null() {
            node.value = NodeValue::String(value.clone());
        }
        node.span = span;
        changes.extend(of_setting(key, node, tree, span));
    }
    changes
}

fn is_setting(tree: &Node, key: &str) -> bool {
    tree.get("settings").and_then(|settings| settings.get(key)).is_some()
}

/// The place of a flag, so that a mistake in it is shown like one in a file.
fn place(key: &str, value: &str, report: &mut Report) -> Span {
    let text = format!("{key}={value}");
    let length = key.chars().count();
    let source = report.texts.add("--set", text);
    Span { source, line: 1, column: 1, length, start: 0, end: 0 }
}

pub fn settings(tree: &Node, options: &LoadOptions<'_>, shared: &mut Shared, report: &mut Report) {
    for (key, value) in tree.get("settings").map(Node::entries).unwrap_or_default() {
        shared.settings.insert(key.text.clone(), value.to_json());
    }
    // A configuration serves many workflows: what one of them does not know is for another.
    for (key, value) in &options.config.settings {
        if let Some(known) = shared.settings.get_mut(key) {
            *known = value.clone();
        }
    }
    for (key, value) in &options.settings {
        if let Some(known) = shared.settings.get_mut(key) {
            *known = typed(value, known);
            continue;
        }
        let head = key.split('.').next().unwrap_or_default();
        if OVERRIDABLE.contains(&head) && head != "settings" {
            continue;
        }
        let span = place(key, value, report);
        let known = shared.settings.keys().map(String::as_str);
        let remedy = match suggestion(key, known) {
            empty if empty.is_empty() => "declare it under `settings` in the workflow".to_owned(),
            near => near,
        };
        report.error(codes::SETTING, span, format!("the workflow has no setting `{key}`"), remedy);
    }
}

/// A text stays a text where the default is one; elsewhere it is read like YAML.
fn typed(value: &str, default: &Value) -> Value {
    if default.is_string() {
        return Value::String(value.to_owned());
    }
    match parse_tree(value, SourceId(0)) {
        Ok(node) => node.to_json(),
        Err(_) => Value::String(value.to_owned()),
    }
}
