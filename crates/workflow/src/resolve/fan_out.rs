//! A sub-list of steps per item of a list that an artifact holds.

use gatewright_core::{
    ids::{ArtifactName, StepId},
    plan::{FanOut, ItemFailure, Kind, Step, limits},
};

use super::{
    build::{Builder, Wanted, WriterWanted},
    step::{self, Place},
    unit::{self, Unit},
};
use crate::{
    frozen::{Isolation, ListText, StepText},
    yaml::tree::Node,
};

pub fn fan_out(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
    text: &mut StepText,
) {
    let over = ArtifactName::new(node.string_or_empty("for_each"));
    let planned_by =
        node.word("planned_by").and_then(|word| unit.names.find(place.scope, &word, builder.report));
    if planned_by.is_none() && node.get("planned_by").is_none() {
        builder.writers_wanted.push(WriterWanted {
            step: id.clone(),
            name: over.clone(),
            span: node.place("for_each"),
            wanted: Wanted::PlannedBy,
        });
    }
    let scope = place.scope.inside(format!("{id}/*/"));
    let list = node.get("steps").map(Node::elements).unwrap_or_default();
    let links = unit::links(&unit.names, &scope, list, builder.report);
    builder.note_links(list, &links);
    let inner = Place {
        scope: &scope,
        stage: place.stage,
        links: &links,
        stage_gates: &[],
        isolation: text.isolation,
    };
    let body = step::steps(builder, unit, &inner, list);
    // One level after the other, or one item at a time in a shared checkout, is for the engine.
    let parallel_max = node.limit("parallel_max").unwrap_or(limits::PARALLEL_MAX);
    step.kind = Kind::FanOut(Box::new(FanOut {
        over,
        body,
        parallel_max,
        waves: node.is_on("waves"),
        items_max: node.limit("items_max").map_or(limits::ITEMS_MAX, |items| items as usize),
        on_item_failure: match node.string("on_item_failure").as_deref() {
            Some("note") => ItemFailure::Note,
            Some(_) | None => ItemFailure::Block,
        },
        planned_by,
    }));
    text.list = Some(ListText {
        pointer: node.string("items").map_or_else(|| "?".to_owned(), |items| pointer(&items)),
        key: node.string("key").unwrap_or_else(|| "id".to_owned()),
        needs_of: Some(node.string("needs_of").unwrap_or_else(|| "depends_on".to_owned())),
    });
    debug_assert!(matches!(text.isolation, Isolation::Shared | Isolation::Worktree), "closed set");
}

/// `tasks`, `plan.tasks` and `/plan/tasks` are one notation; `.` is the document.
fn pointer(items: &str) -> String {
    if items.is_empty() || items == "." || items == "/" {
        return String::new();
    }
    if items.starts_with('/') {
        return items.to_owned();
    }
    format!("/{}", items.replace('.', "/"))
}
