//! Overrides: a profile, a configuration's `workflows: {NAME: …}` or `--set steps.x.y=…` merged into
//! the tree of a definition before anything is made of it.
//!
//! Mappings are merged key by key, everything else is replaced, `null` removes a key. The values
//! keep their places, so what is wrong with an override is shown where it was written.

use std::sync::Arc;

use crate::{
    diagnostic::{Report, codes, suggestion},
    yaml::tree::{Key, Node, NodeValue, Span},
};

/// The keys of a definition that an override may touch.
pub const OVERRIDABLE: &[&str] = &[
    "stages",
    "steps",
    "roles",
    "checks",
    "obligations",
    "isolation",
    "parallel_max",
    "budget",
    "settings",
    "asked",
];

/// Merges `over` (of the shape of a profile) into the tree of a definition.
pub fn apply(base: &mut Node, over: &Node, report: &mut Report) {
    for (key, value) in over.entries() {
        match key.text.as_str() {
            "stages" => apply_stages(base, value, report),
            "steps" => apply_steps(base, value, report),
            "roles" | "checks" | "obligations" | "isolation" | "parallel_max" | "budget" | "settings"
            | "asked" => {
                if let NodeValue::Mapping(entries) = &mut base.value {
                    merge_entry(Arc::make_mut(entries), key, value);
                }
            }
            // `description` and `escalate_to` are the profile's own.
            _ => {}
        }
    }
}

fn apply_stages(base: &mut Node, over: &Node, report: &mut Report) {
    for (key, value) in over.entries() {
        let stages = child_mut(base, "stages").map(elements_mut).unwrap_or_default();
        let mut known = Vec::new();
        let mut target = None;
        for stage in stages {
            let id = stage.string_or_empty("id");
            if id == key.text {
                target = Some(stage);
                break;
            }
            known.push(id);
        }
        match target {
            Some(stage) => merge(stage, value),
            None => report.error(
                codes::UNKNOWN_STAGE,
                key.span,
                format!("there is no stage `{}` to change", key.text),
                suggestion(&key.text, known.iter().map(String::as_str)),
            ),
        }
    }
}

fn apply_steps(base: &mut Node, over: &Node, report: &mut Report) {
    for (key, value) in over.entries() {
        let parts: Vec<&str> = key.text.split('/').filter(|part| *part != "*").collect();
        let known = step_names(base);
        match find_step(base, &parts) {
            Some(step) => merge(step, value),
            None => report.error(
                codes::UNKNOWN_STEP,
                key.span,
                format!("there is no step `{}` to change", key.text),
                suggestion(&key.text, known.iter().map(String::as_str)),
            ),
        }
    }
}

/// Every id by which an override can name a step.
fn step_names(root: &Node) -> Vec<String> {
    fn walk(list: &Node, prefix: &str, names: &mut Vec<String>) {
        for step in list.elements() {
            let path = format!("{prefix}{}", step.string_or_empty("id"));
            if let Some(inner) = step.get("steps") {
                walk(inner, &format!("{path}/"), names);
            }
            names.push(path);
        }
    }
    let mut names = Vec::new();
    if let Some(steps) = root.get("steps") {
        walk(steps, "", &mut names);
    }
    for stage in root.get("stages").map(Node::elements).unwrap_or_default() {
        if let Some(steps) = stage.get("steps") {
            walk(steps, "", &mut names);
        }
    }
    names
}

fn find_step<'a>(root: &'a mut Node, parts: &[&str]) -> Option<&'a mut Node> {
    let NodeValue::Mapping(entries) = &mut root.value else { return None };
    for (key, value) in Arc::make_mut(entries) {
        match key.text.as_str() {
            "steps" => {
                if let Some(step) = find_in_list(value, parts) {
                    return Some(step);
                }
            }
            "stages" => {
                for stage in elements_mut(value) {
                    let steps = child_mut(stage, "steps");
                    if let Some(step) = steps.and_then(|steps| find_in_list(steps, parts)) {
                        return Some(step);
                    }
                }
            }
            _ => {}
        }
    }
    None
}

fn find_in_list<'a>(list: &'a mut Node, parts: &[&str]) -> Option<&'a mut Node> {
    let (first, rest) = parts.split_first()?;
    let step = elements_mut(list).iter_mut().find(|step| step.string("id").as_deref() == Some(first))?;
    if rest.is_empty() {
        return Some(step);
    }
    find_in_list(child_mut(step, "steps")?, rest)
}

pub fn child_mut<'a>(node: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        // Looked for first: what is not there is no reason to have entries of one's own.
        NodeValue::Mapping(entries) => {
            let at = entries.iter().position(|(key, _)| key.text == name)?;
            Arc::make_mut(entries).get_mut(at).map(|(_, value)| value)
        }
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number { .. }
        | NodeValue::String(_)
        | NodeValue::Sequence(_) => None,
    }
}

pub fn elements_mut(node: &mut Node) -> &mut [Node] {
    match &mut node.value {
        NodeValue::Sequence(elements) => Arc::make_mut(elements).as_mut_slice(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number { .. }
        | NodeValue::String(_)
        | NodeValue::Mapping(_) => &mut [],
    }
}

fn merge(base: &mut Node, over: &Node) {
    if let (NodeValue::Mapping(entries), NodeValue::Mapping(changes)) = (&mut base.value, &over.value) {
        for (key, value) in changes.iter() {
            merge_entry(Arc::make_mut(entries), key, value);
        }
    } else if !matches!(base.value, NodeValue::Mapping(_)) || !over.is_null() {
        *base = over.clone();
    }
}

fn merge_entry(entries: &mut Vec<(Key, Node)>, key: &Key, value: &Node) {
    match entries.iter().position(|(known, _)| known.text == key.text) {
        Some(at) if value.is_null() => {
            entries.remove(at);
        }
        Some(at) => {
            entries[at].0 = key.clone();
            merge(&mut entries[at].1, value);
        }
        None if value.is_null() => {}
        None => entries.push((key.clone(), value.clone())),
    }
}

/// The override that `--set a.b.c=value` means, if `a` is a key that an override may touch.
/// A step id may have dots in it (`1.2`); then it is the longest part that is an id.
pub fn of_setting(path: &str, value: Node, base: &Node, span: Span) -> Option<Node> {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    if !OVERRIDABLE.contains(&head) || head == "settings" {
        return None;
    }
    let mut parts = vec![head.to_owned()];
    if let Some(rest) = rest {
        let names = step_names(base);
        let id = names
            .iter()
            .filter(|name| head == "steps" && rest.starts_with(&format!("{name}.")))
            .max_by_key(|name| name.len());
        match id {
            Some(id) => {
                parts.push(id.clone());
                parts.extend(rest[id.len() + 1..].split('.').map(str::to_owned));
            }
            None => parts.extend(rest.split('.').map(str::to_owned)),
        }
    }
    let node = parts.into_iter().rev().fold(value, |inner, text| Node {
        value: NodeValue::Mapping(Arc::new(vec![(Key { text, span }, inner)])),
        span,
    });
    Some(node)
}
