//! Ids for steps and stages that have none of their own, so that a mistake in an `id` hides nothing
//! else: a step without one, or with one that is taken, is resolved under a name nobody can write.

use std::collections::BTreeSet;

use crate::{
    definition::overrides::{child_mut, elements_mut},
    diagnostic::{Report, codes},
    yaml::tree::{Key, Node, NodeValue},
};

/// Gives every step and stage of a definition an id of its own. `prefix` is that of its steps.
pub fn fill(tree: &mut Node, prefix: &str, report: &mut Report) {
    let mut steps = BTreeSet::new();
    if let Some(list) = child_mut(tree, "steps") {
        fill_steps(list, prefix, &mut steps, report);
    }
    let mut stages = BTreeSet::new();
    for stage in child_mut(tree, "stages").map(elements_mut).unwrap_or_default() {
        fill_stage(stage, &mut stages, report);
        if let Some(list) = child_mut(stage, "steps") {
            fill_steps(list, prefix, &mut steps, report);
        }
    }
}

fn fill_steps(list: &mut Node, prefix: &str, seen: &mut BTreeSet<String>, report: &mut Report) {
    for step in elements_mut(list) {
        let named = step.word("id");
        if let Some(word) = named.filter(|word| !seen.insert(format!("{prefix}{}", word.text))) {
            report.error(
                codes::DUPLICATE_ID,
                word.span,
                format!("there are two steps `{prefix}{}`", word.text),
                "give one of them another `id`",
            );
            rename(step, &format!("{} (line {})", word.text, word.span.line));
        } else {
            name_if_missing(step);
        }
        let inside = format!("{prefix}{}/*/", step.string_or_empty("id"));
        if let Some(steps) = child_mut(step, "steps") {
            fill_steps(steps, &inside, &mut BTreeSet::new(), report);
        }
    }
}

fn fill_stage(stage: &mut Node, seen: &mut BTreeSet<String>, report: &mut Report) {
    name_if_missing(stage);
    let Some(word) = stage.word("id").filter(|word| !seen.insert(word.text.clone())) else { return };
    report.error(
        codes::DUPLICATE_ID,
        word.span,
        format!("there are two stages `{}`", word.text),
        "give one of them another `id`",
    );
    rename(stage, &format!("{} (line {})", word.text, word.span.line));
}

fn name_if_missing(node: &mut Node) {
    let place = format!("line {}, column {}", node.span.line, node.span.column);
    if node.word("id").is_none() {
        rename(node, &place);
    }
}

fn rename(node: &mut Node, id: &str) {
    let span = node.span;
    let NodeValue::Mapping(entries) = &mut node.value else { return };
    let entries = std::sync::Arc::make_mut(entries);
    let value = NodeValue::String(id.to_owned());
    match entries.iter_mut().find(|(key, _)| key.text == "id") {
        Some((_, old)) => old.value = value,
        None => entries.push((Key { text: "id".to_owned(), span }, Node { value, span })),
    }
}
