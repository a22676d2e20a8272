//! GW205: reads of what nobody wrote before. GW206: two writers of one file at the same time.

use std::collections::BTreeMap;

use gatewright_core::{ids::StepId, plan::Kind};

use super::order::Order;
use crate::{
    definition::file_name::leaves_folder,
    diagnostic::{Report, codes, suggestion},
    resolve::Built,
    yaml::tree::{Node, Span},
};

/// Writers by declared name, first-round names too.
fn writers(built: &Built, order: &Order<'_>) -> BTreeMap<String, Vec<StepId>> {
    let mut writers: BTreeMap<String, Vec<StepId>> = BTreeMap::new();
    for (id, text) in &built.texts {
        for write in text.writes.iter().filter(|_| !order.is_off(id)) {
            for name in std::iter::once(&write.name).chain(&write.first) {
                writers.entry(name.clone()).or_default().push(id.clone());
            }
        }
    }
    writers
}

pub fn check_reads(built: &Built, tree: &Node, order: &Order<'_>, report: &mut Report) {
    let writers = writers(built, order);
    let projected: Vec<String> = tree
        .get("projections")
        .map(Node::elements)
        .unwrap_or_default()
        .iter()
        .filter_map(|node| node.string("file"))
        .collect();
    for (id, text) in &built.texts {
        if order.is_off(id) {
            continue;
        }
        for read in text.reads.iter().filter(|read| !read.optional) {
            check_read(order, id, &read.name, "reads", &writers, &projected, report);
        }
        match built.graph.steps.get(id).map(|step| &step.kind) {
            Some(Kind::Decision(question)) => {
                let written = order.node(id).map(|node| node.strings("show")).unwrap_or_default();
                for name in question.show.iter().map(|name| name.as_str()) {
                    // `FILE?` was stripped of its mark, not of its meaning.
                    if name != "tree" && written.iter().any(|shown| shown == name) {
                        check_read(order, id, name, "show", &writers, &projected, report);
                    }
                }
            }
            Some(Kind::FanOut(fan_out)) => {
                check_read(order, id, fan_out.over.as_str(), "for_each", &writers, &projected, report);
            }
            Some(
                Kind::Agent { .. }
                | Kind::Review(_)
                | Kind::Check { .. }
                | Kind::Merge { .. }
                | Kind::Finish { .. }
                | Kind::SubRun { .. },
            )
            | None => {}
        }
    }
}

/// A name that is only known when the run is there: a template, a pattern, or a file outside the
/// run directory.
fn is_open(name: &str) -> bool {
    name.contains("{{") || name.contains('*') || name.starts_with("./") || leaves_folder(name)
}

fn check_read(
    order: &Order<'_>,
    id: &StepId,
    name: &str,
    key: &str,
    writers: &BTreeMap<String, Vec<StepId>>,
    projected: &[String],
    report: &mut Report,
) {
    if name.is_empty() || is_open(name) || projected.iter().any(|file| file == name) {
        return;
    }
    let span = place(order, id, key, name);
    let Some(writing) = writers.get(name) else {
        if order.built.unknown.writers {
            return;
        }
        let near = suggestion(name, writers.keys().map(String::as_str));
        let remedy = if near.is_empty() {
            "declare it in some step's `writes`, mark it optional with `?`, or start it with `./` if it is in the repository".to_owned()
        } else {
            near
        };
        report.error(
            codes::READ_BEFORE_WRITE,
            span,
            format!("`{id}` reads `{name}`, which no step writes"),
            remedy,
        );
        return;
    };
    // A dormant step is woken at any time; a writer that is one may have run.
    let may = order.is_dormant(id)
        || writing.iter().any(|writer| {
            order.may_be_before(writer, id)
                || (writer != id && order.is_nested(writer, id))
                || order.is_dormant(writer)
        });
    if !may {
        let by: Vec<String> = writing.iter().map(|writer| format!("`{writer}`")).collect();
        report.error(
            codes::READ_BEFORE_WRITE,
            span,
            format!("`{id}` reads `{name}`, which is written by {} and not before", by.join(", ")),
            "need the writer, or mark the file optional with `?`",
        );
    }
}

/// The place of one name in a list or of the key.
fn place(order: &Order<'_>, id: &StepId, key: &str, name: &str) -> Span {
    let Some(node) = order.node(id) else { return Span::default() };
    let words = node.words(key);
    let found = words.iter().find(|word| word.text == name);
    found.map_or_else(|| node.place(key), |word| word.span)
}

pub fn check_writes(built: &Built, order: &Order<'_>, report: &mut Report) {
    for (name, writing) in writers(built, order) {
        let awake: Vec<&StepId> = writing.iter().filter(|id| !order.is_dormant(id)).collect();
        for (index, left) in awake.iter().enumerate() {
            for right in &awake[index + 1..] {
                let apart = left == right
                    || order.may_be_before(left, right)
                    || order.may_be_before(right, left)
                    || order.is_nested(left, right);
                if !apart {
                    report.error(
                        codes::SHARED_WRITE,
                        write_place(order, right, &name),
                        format!("`{left}` and `{right}` can run at the same time and both write `{name}`"),
                        "give each a file of its own, or let one need the other",
                    );
                }
            }
        }
        for id in awake.iter().filter(|_| !name.contains("{{")) {
            check_items(order, id, &name, report);
        }
    }
}

/// The items of a fan-out run at the same time, under one declared name.
fn check_items(order: &Order<'_>, id: &StepId, name: &str, report: &mut Report) {
    for owner in order.chain(id).into_iter().skip(1) {
        let Some(Kind::FanOut(fan_out)) = order.graph().steps.get(owner).map(|step| &step.kind) else {
            continue;
        };
        if fan_out.parallel_max > 1 {
            report.error(
                codes::SHARED_WRITE,
                write_place(order, id, name),
                format!("every item of `{owner}` writes the same `{name}`"),
                "put the item in the name: `{{ item.id }}`",
            );
        }
    }
}

fn write_place(order: &Order<'_>, id: &StepId, name: &str) -> Span {
    let Some(node) = order.node(id) else { return Span::default() };
    let Some(writes) = node.get("writes") else { return node.span };
    match writes.key(name) {
        Some(key) => key.span,
        None => place(order, id, "writes", name),
    }
}
