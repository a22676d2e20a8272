//! Settings that a project keeps in files of another tool: `settings_from`. They are over the definition's
//! defaults and under the configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::setting::{misfit, shown};
use crate::{
    diagnostic::{Report, codes, suggestion},
    load::Sources,
    yaml::tree::{Node, NodeValue, parse_tree},
};

/// What such files say, by setting; everything that holds.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    pub values: BTreeMap<String, Value>,
}

impl Elsewhere {
    /// Reads the files that are there. What is wrong with one is a warning: they were not written for us.
    pub fn read(tree: &Node, sources: &dyn Sources, report: &mut Report) -> Elsewhere {
        let Some(from) = tree.get("settings_from") else { return Elsewhere::default() };
        let known = known(from);
        let mut documents = Vec::new();
        for file in from.strings("files") {
            let Some(text) = sources.read(&file) else { continue };
            let source = report.texts.add(&file, &text);
            match parse_tree(&text, source) {
                Ok(document) => {
                    warn_of_unknown(&document, "", &known, report);
                    documents.push(document);
                }
                Err(problems) => {
                    for problem in problems {
                        let message = format!("{}: nothing in `{file}` is used", problem.message);
                        report.warning(codes::SYNTAX, problem.span, message, "");
                    }
                }
            }
        }
        let values = from.get("values").map(Node::entries).unwrap_or_default();
        let found = values.iter().filter_map(|(name, place)| {
            Some((name.text.clone(), value(tree, &name.text, place, &documents, report)?))
        });
        Elsewhere { values: found.collect() }
    }
}

/// The value of a setting: the last of its paths that is there, in the strongest file that has it. What cannot be
/// meant is said, and the next one is asked.
fn value(tree: &Node, name: &str, place: &Node, documents: &[Node], report: &mut Report) -> Option<Value> {
    let unit = place.string_or_empty("unit");
    let mut misfits = Vec::new();
    let mut found = None;
    'search: for path in paths(place).into_iter().rev() {
        for node in documents.iter().rev().filter_map(|document| at(document, &path)) {
            let value = with_unit(node.to_json(), &unit);
            match misfit(tree, name, &value) {
                None => {
                    found = Some(value);
                    break 'search;
                }
                Some(expected) => misfits.push((path.clone(), node, expected)),
            }
        }
    }
    let default = || tree.get("settings").and_then(|own| own.get(name)).map(Node::to_json);
    let used = found.clone().or_else(default).unwrap_or_default();
    for (path, node, expected) in misfits {
        let value = shown(&node.to_json());
        let message = format!("`{value}` is no value of `{path}`: `{}` is used", shown(&used));
        report.warning(codes::SETTING, node.span, message, format!("write {expected}"));
    }
    found
}

/// Where a setting is: one path, several, or `at`.
fn paths(place: &Node) -> Vec<String> {
    let place = place.get("at").unwrap_or(place);
    place.as_words().into_iter().map(|word| word.text).collect()
}

fn at<'n>(document: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('.').try_fold(document, |node, part| node.get(part)).filter(|node| !node.is_null())
}

/// Numbers of a tool that says elsewhere what they count.
fn with_unit(value: Value, unit: &str) -> Value {
    match value {
        Value::Number(number) if !unit.is_empty() => Value::String(format!("{number}{unit}")),
        Value::Array(list) => Value::Array(list.into_iter().map(|one| with_unit(one, unit)).collect()),
        other => other,
    }
}

fn known(from: &Node) -> BTreeSet<String> {
    let values = from.get("values").map(Node::entries).unwrap_or_default();
    values.iter().flat_map(|(_, place)| paths(place)).chain(from.strings("ignored")).collect()
}

/// Names what nobody looks at, so that a slip is seen.
fn warn_of_unknown(node: &Node, path: &str, known: &BTreeSet<String>, report: &mut Report) {
    let NodeValue::Mapping(entries) = &node.value else { return };
    for (key, value) in entries.iter() {
        let path = if path.is_empty() { key.text.clone() } else { format!("{path}.{}", key.text) };
        let below = format!("{path}.");
        if known.contains(&path) {
            continue;
        }
        if known.iter().any(|one| one.starts_with(&below)) {
            warn_of_unknown(value, &path, known, report);
            continue;
        }
        let near = suggestion(&path, known.iter().map(String::as_str));
        report.warning(codes::SETTING, key.span, format!("`{path}` is not known here and not used"), near);
    }
}
