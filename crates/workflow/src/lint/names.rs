//! GW114 for everything that a definition says in templates: the run's directory and id, prompts,
//! conditions, file names, questions.

use gatewright_core::{
    ids::{CheckId, RoleId, StepId},
    plan::{Kind, Step},
};

use super::known::{Known, PlacedText, View};
use crate::{
    diagnostic::Report,
    resolve::{Built, Shared},
    yaml::tree::{Node, NodeValue},
};

pub fn check(built: &Built, tree: &Node, shared: &Shared, known: &Known, report: &mut Report) {
    for (key, view) in [("dir", View::Dir), ("run_id", View::RunId)] {
        let text = tree.get(key).and_then(|node| PlacedText::template(node, format!("`{key}`")));
        text.iter().for_each(|text| known.check(text, view, &[], built, report));
    }
    for (id, node) in &built.nodes {
        for text in texts_of(id, node) {
            known.check(&text, View::Step(&[id]), &[], built, report);
        }
        let request = node.get("request").and_then(|node| PlacedText::template(node, of("request", id)));
        request.iter().for_each(|text| known.check(text, View::Run, &[], built, report));
    }
    let all: Vec<&StepId> = built.nodes.keys().collect();
    for stage in tree.get("stages").map(Node::elements).unwrap_or_default() {
        for text in gates(stage, "a gate of the stage") {
            known.check(&text, View::Step(&all), &[], built, report);
        }
    }
    for (role, texts) in &shared.role_texts {
        let steps: Vec<&StepId> = steps_of(built, role);
        for text in texts.iter().filter(|_| !steps.is_empty()) {
            known.check(text, View::Step(&steps), &[], built, report);
        }
    }
    for (check, texts) in &shared.check_texts {
        let steps: Vec<&StepId> = runners(built, check);
        for text in texts.iter().filter(|_| !steps.is_empty()) {
            known.check(text, View::Step(&steps), &[], built, report);
        }
    }
}

/// The steps that run a check, themselves or after their attempts.
fn runners<'b>(built: &'b Built, check: &CheckId) -> Vec<&'b StepId> {
    let runs = |step: &Step| {
        step.checks.contains(check) || matches!(&step.kind, Kind::Check { check: own } if own == check)
    };
    built.graph.steps.iter().filter(|(_, step)| runs(step)).map(|(id, _)| id).collect()
}

fn steps_of<'b>(built: &'b Built, role: &RoleId) -> Vec<&'b StepId> {
    built.graph.steps.iter().filter(|(_, step)| step.role() == Some(role)).map(|(id, _)| id).collect()
}

fn of(key: &str, id: &StepId) -> String {
    format!("`{key}` of step `{id}`")
}

/// Every template and expression of one step that is about the step itself.
fn texts_of(id: &StepId, node: &Node) -> Vec<PlacedText> {
    let mut texts = Vec::new();
    for key in ["prompt", "decide", "finds"] {
        texts.extend(node.get(key).and_then(|node| PlacedText::template(node, of(key, id))));
    }
    texts.extend(node.get("when").and_then(|node| PlacedText::expression(node, of("when", id))));
    texts.extend(gates(node, &format!("a gate of step `{id}`")));
    files(node, id, &mut texts);
    // One reviewer with keys of its own is no step of its own.
    if let Some(by) = node.get("by").filter(|by| matches!(by.value, NodeValue::Mapping(_))) {
        texts.extend(by.get("prompt").and_then(|node| PlacedText::template(node, of("prompt", id))));
        files(by, id, &mut texts);
    }
    texts
}

fn gates(node: &Node, what: &str) -> Vec<PlacedText> {
    let gates = node.get("gates").map(Node::elements).unwrap_or_default();
    gates.iter().filter_map(|gate| PlacedText::expression(gate.get("expr")?, what)).collect()
}

/// The names of files in `reads`, `show` and `writes`.
fn files(node: &Node, id: &StepId, texts: &mut Vec<PlacedText>) {
    for key in ["reads", "show", "writes"] {
        let Some(list) = node.get(key) else { continue };
        let single = std::slice::from_ref(list);
        let names = if list.elements().is_empty() { single } else { list.elements() };
        texts.extend(names.iter().filter_map(|name| PlacedText::template(name, of(key, id))));
    }
    for (name, write) in node.get("writes").map(Node::entries).unwrap_or_default() {
        let named = Node { value: NodeValue::String(name.text.clone()), span: name.span };
        texts.extend(PlacedText::template(&named, of("writes", id)));
        texts.extend(write.get("first").and_then(|node| PlacedText::template(node, of("first", id))));
    }
}
