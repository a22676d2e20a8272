//! Settings: the definition's defaults, the configuration's values, `--set key=value` over both.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{build::Shared, elsewhere::Elsewhere};
use crate::{
    contract,
    definition::overrides::{OVERRIDABLE, of_setting},
    diagnostic::{Report, codes, suggestion},
    frozen::Asked,
    load::LoadOptions,
    yaml::tree::{Key, Node, NodeValue, SourceId, Span, parse_tree},
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

/// What the workflow, the files of other tools and the configuration say, in this order; then the flags.
pub fn settings(
    tree: &Node,
    options: &LoadOptions<'_>,
    elsewhere: &Elsewhere,
    shared: &mut Shared,
    report: &mut Report,
) {
    for (key, value) in tree.get("settings").map(Node::entries).unwrap_or_default() {
        shared.settings.insert(key.text.clone(), value.to_json());
    }
    for (key, value) in &elsewhere.values {
        shared.settings.insert(key.clone(), value.clone());
    }
    check_asked(tree, shared, report);
    let name = tree.string_or_empty("workflow");
    for layer in &options.config.layers {
        let source = report.texts.add(&layer.label, &layer.text);
        let Ok(config) = parse_tree(&layer.text, source) else { continue };
        let own = config.get("workflows").and_then(|workflows| workflows.get(&name));
        // Within one file, what is said of this workflow is over what is said of all.
        for (said, is_own) in [(Some(&config), false), (own, true)] {
            let said = said.and_then(|node| node.get("settings"));
            configured(tree, said.map(Node::entries).unwrap_or_default(), is_own, shared, report);
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

/// The questions for settings. Their values are those that the definition allows.
pub fn asked(tree: &Node) -> BTreeMap<String, Asked> {
    let values = |key: &str| match tree.get("setting_values").and_then(|values| values.get(key)) {
        Some(allowed) => allowed.elements().iter().map(|value| shown(&value.to_json())).collect(),
        None => Vec::new(),
    };
    let one = |(key, node): &(Key, Node)| {
        let question = node.text().unwrap_or_default().to_owned();
        (key.text.clone(), Asked { question, values: values(&key.text) })
    };
    tree.get("asked").map(Node::entries).unwrap_or_default().iter().map(one).collect()
}

/// A question is for a setting that there is.
fn check_asked(tree: &Node, shared: &Shared, report: &mut Report) {
    for (key, _) in tree.get("asked").map(Node::entries).unwrap_or_default() {
        if !shared.settings.contains_key(&key.text) {
            let near = suggestion(&key.text, shared.settings.keys().map(String::as_str));
            let message = format!("there is no setting `{}` to ask for", key.text);
            report.error(codes::SETTING, key.span, message, near);
        }
    }
}

/// What a configuration says. It serves many workflows: what one of them does not know is for another, unless it
/// is said of this one. It is read by many and written by hand: what cannot be meant is left out, and said.
fn configured(tree: &Node, said: &[(Key, Node)], is_own: bool, shared: &mut Shared, report: &mut Report) {
    for (key, node) in said {
        if is_own && !shared.settings.contains_key(&key.text) {
            let near = suggestion(&key.text, shared.settings.keys().map(String::as_str));
            let message = format!("the workflow has no setting `{}`: it is not used", key.text);
            report.warning(codes::SETTING, key.span, message, near);
        }
        let Some(known) = shared.settings.get_mut(&key.text) else { continue };
        let value = node.to_json();
        match misfit(tree, &key.text, &value) {
            None => *known = value,
            Some(expected) => {
                let (value, used) = (shown(&value), shown(known));
                let message = format!("`{value}` is no value of `{}`: `{used}` is used", key.text);
                report.warning(codes::SETTING, node.span, message, format!("write {expected}"));
            }
        }
    }
}

/// Takes the settings of an override away: they are read with the configuration that it is a part of.
pub fn without_settings(mut change: Node) -> Node {
    if let NodeValue::Mapping(entries) = &mut change.value {
        std::sync::Arc::make_mut(entries).retain(|(key, _)| key.text != "settings");
    }
    change
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
pub fn misfit(tree: &Node, key: &str, value: &Value) -> Option<String> {
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

pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
