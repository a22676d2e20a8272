//! Settings: the definition's defaults, the configuration's values, `--set key=value` over both.

use serde_json::{Value, json};

use super::build::Shared;
use crate::{
    contract,
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
        let Some(known) = shared.settings.get_mut(key) else { continue };
        match misfit(tree, key, value) {
            None => *known = value.clone(),
            // A configuration is read by many and written by hand: what cannot be meant is left out, and said.
            Some(expected) => {
                let span = place_in_config(key, options, report);
                let message =
                    format!("`{}` is no value of `{key}`: `{}` is used", shown(value), shown(known));
                report.warning(codes::SETTING, span, message, format!("write {expected}"));
            }
        }
    }
    for (key, value) in &options.settings {
        if let Some(known) = shared.settings.get_mut(key) {
            let meant = typed(value, known);
            if let Some(expected) = misfit(tree, key, &meant) {
                let span = place(key, value, report);
                let message = format!("`{}` is no value of `{key}`", shown(&meant));
                report.error(codes::SETTING, span, message, format!("write {expected}"));
            }
            *known = meant;
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

/// What the definition says that a setting may be, if this value is not that.
fn misfit(tree: &Node, key: &str, value: &Value) -> Option<String> {
    let allowed = tree.get("setting_values")?.get(key)?.to_json();
    let (schema, expected) = match &allowed {
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{}`", shown(word))).collect();
            (json!({"enum": allowed}), format!("one of {}", words.join(", ")))
        }
        schema => (schema.clone(), format!("what fits {schema}")),
    };
    (!contract::fits(&schema, value)).then_some(expected)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Where the configuration has it: in the uppermost file that names it.
fn place_in_config(key: &str, options: &LoadOptions<'_>, report: &mut Report) -> Span {
    for layer in options.config.layers.iter().rev() {
        let source = report.texts.add(&layer.label, &layer.text);
        let tree = parse_tree(&layer.text, source).ok();
        let node = tree.as_ref().and_then(|tree| tree.get("settings")).and_then(|own| own.get(key));
        if let Some(node) = node {
            return node.span;
        }
    }
    Span::default()
}
