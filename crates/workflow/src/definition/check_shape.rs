//! Holds a tree against a shape and reports everything that differs, each with its place.

use gatewright_core::plan::limits::LIMIT_CEILING;

use super::{
    file_name::{glob_problem, leaves_folder},
    keys_of_step::{GATE, GATE_KEYS, KIND_KEYS, STEP},
    scalar::{Counted, count, duration_ms, is_name, is_path, micro_usd},
    shape::{Kinds, Need, Shape, Table},
};
use crate::{
    diagnostic::{Report, codes, nearest, suggestion},
    yaml::tree::{Node, NodeValue},
};

/// Reports every difference between the tree and the shape. `what` names the value in messages.
pub fn check_shape(node: &Node, shape: &Shape, what: &str, report: &mut Report) {
    match shape {
        Shape::Any => {}
        Shape::Text => {
            if node.text().is_none() {
                wrong_type(node, what, "a text", report);
            }
        }
        Shape::Name | Shape::Path => check_name(node, shape, what, report),
        Shape::Template => check_text(node, what, TextKind::Template, report),
        Shape::Expression => check_text(node, what, TextKind::Expression, report),
        Shape::File => check_file(node, what, report),
        Shape::PlainFile => check_plain_file(node, what, report),
        Shape::Glob => check_glob(node, what, report),
        Shape::Flag => {
            if !matches!(node.value, NodeValue::Bool(_)) {
                wrong_type(node, what, "`true` or `false`", report);
            }
        }
        Shape::Count => check_count(node, 1, what, report),
        Shape::CountOrZero => check_count(node, 0, what, report),
        Shape::Natural => check_natural(node, what, report),
        Shape::Duration => check_duration(node, what, report),
        Shape::Money => check_money(node, what, report),
        Shape::Word(words) => check_word(node, words, what, report),
        Shape::Object(table) => check_object(node, table, what, report),
        Shape::MapOf(inner) => check_map(node, inner, what, report),
        Shape::MapOfFiles(inner) => {
            for (key, _) in node.entries() {
                let name = Node { value: NodeValue::String(key.text.clone()), span: key.span };
                check_file(&name, what, report);
            }
            check_map(node, inner, what, report);
        }
        Shape::ListOf(inner) => check_list(node, inner, what, report),
        Shape::OneOf(shapes) => match shapes.iter().find(|shape| fits(node, shape)) {
            Some(shape) => check_shape(node, shape, what, report),
            None => {
                let kinds: Vec<&str> = shapes.iter().map(kind_word).collect();
                wrong_type(node, what, &kinds.join(" or "), report);
            }
        },
        Shape::Switch { key, with, without } => {
            let chosen = if node.get(key).is_some() { with } else { without };
            check_shape(node, chosen, what, report);
        }
    }
}

/// A rough look at the kind of the value, for choosing among alternatives.
fn fits(node: &Node, shape: &Shape) -> bool {
    match shape {
        Shape::Any => true,
        Shape::Text
        | Shape::Name
        | Shape::Path
        | Shape::Template
        | Shape::File
        | Shape::PlainFile
        | Shape::Glob
        | Shape::Expression
        | Shape::Word(_)
        | Shape::Duration => node.text().is_some(),
        Shape::Flag => matches!(node.value, NodeValue::Bool(_)),
        Shape::Count | Shape::CountOrZero | Shape::Natural | Shape::Money => {
            matches!(node.value, NodeValue::Number { .. })
        }
        Shape::Object(_) | Shape::MapOf(_) | Shape::MapOfFiles(_) | Shape::Switch { .. } => {
            matches!(node.value, NodeValue::Mapping(_) | NodeValue::Null)
        }
        Shape::ListOf(_) => matches!(node.value, NodeValue::Sequence(_) | NodeValue::Null),
        Shape::OneOf(shapes) => shapes.iter().any(|shape| fits(node, shape)),
    }
}

fn kind_word(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "anything",
        Shape::Text | Shape::Template | Shape::Expression => "a text",
        Shape::File | Shape::PlainFile => "the name of a file",
        Shape::Glob => "a glob",
        Shape::Name => "a name",
        Shape::Path => "the name of a step",
        Shape::Word(_) => "a word",
        Shape::Flag => "`true` or `false`",
        Shape::Count | Shape::CountOrZero | Shape::Natural => "a whole number",
        Shape::Duration => "a duration such as `90s`",
        Shape::Money => "an amount in dollars",
        Shape::Object(_) | Shape::MapOf(_) | Shape::MapOfFiles(_) | Shape::Switch { .. } => "a mapping",
        Shape::ListOf(_) => "a list",
        Shape::OneOf(_) => "one of several forms",
    }
}

fn found(node: &Node) -> String {
    match &node.value {
        NodeValue::Null => "nothing".to_owned(),
        NodeValue::Bool(value) => format!("`{value}`"),
        NodeValue::Number { text, .. } => format!("the number {text}"),
        NodeValue::String(text) => {
            let short: String = text.chars().take(40).collect();
            format!("the text \"{}\"", short.escape_debug())
        }
        NodeValue::Sequence(_) => "a list".to_owned(),
        NodeValue::Mapping(_) => "a mapping".to_owned(),
    }
}

fn wrong_type(node: &Node, what: &str, expected: &str, report: &mut Report) {
    let remedy = match &node.value {
        NodeValue::Bool(_) if expected.contains("text") || expected.contains("name") => "put it in quotes",
        _ => "",
    };
    report.error(
        codes::WRONG_TYPE,
        node.span,
        format!("{what} must be {expected}, found {}", found(node)),
        remedy,
    );
}

fn check_name(node: &Node, shape: &Shape, what: &str, report: &mut Report) {
    let Some(text) = node.text() else {
        return wrong_type(node, what, kind_word(shape), report);
    };
    let fine = if matches!(shape, Shape::Path) { is_path(text) } else { is_name(text) };
    if !fine {
        report.error(
            codes::BAD_NAME,
            node.span,
            format!("{what}: \"{}\" is no name", text.escape_debug()),
            "letters, digits, `-`, `_` and `.`, at most 100 of them",
        );
    }
}

#[derive(Clone, Copy)]
enum TextKind {
    Template,
    Expression,
}

fn check_text(node: &Node, what: &str, kind: TextKind, report: &mut Report) {
    let text = match (&node.value, kind) {
        // `when: true` is an expression too.
        (NodeValue::Bool(_), TextKind::Expression) => return,
        _ => match node.text() {
            Some(text) => text,
            None => return wrong_type(node, what, "a text", report),
        },
    };
    match kind {
        TextKind::Template => super::text_check::template(node, text, what, report),
        TextKind::Expression => super::text_check::expression(node, text, what, report),
    }
}

/// Absolute names and `..` lead out of the run directory or the repository, whoever follows them.
fn check_file(node: &Node, what: &str, report: &mut Report) {
    let Some(text) = node.text() else { return wrong_type(node, what, kind_word(&Shape::File), report) };
    super::text_check::template(node, text, what, report);
    if leaves_folder(text) {
        report.error(
            codes::LEAVES_FOLDER,
            node.span,
            format!("{what}: `{text}` leads out of its folder"),
            "a relative name without `..`",
        );
    }
}

fn check_plain_file(node: &Node, what: &str, report: &mut Report) {
    let has_template = |text: &str| text.contains("{{") || text.contains("{%");
    if node.text().is_some_and(has_template) {
        report.error(
            codes::BAD_VALUE,
            node.span,
            format!("{what} is taken as it is written: there are no templates in it"),
            "write the name of the file",
        );
    } else {
        check_file(node, what, report);
    }
}

fn check_glob(node: &Node, what: &str, report: &mut Report) {
    let Some(text) = node.text() else { return wrong_type(node, what, kind_word(&Shape::Glob), report) };
    if let Some(problem) = glob_problem(text) {
        report.error(
            codes::BAD_VALUE,
            node.span,
            format!("{what}: the glob `{text}` {problem}"),
            "`*` and `?` stay inside a folder, `**` is any folders, `!` in front takes away: `src/**`, `*.lock`",
        );
    }
}

fn check_count(node: &Node, from: u32, what: &str, report: &mut Report) {
    match count(node, from) {
        Counted::Fine(_) => {}
        Counted::OutOfRange => report.error(
            codes::LIMIT,
            node.span,
            format!("{what} is a limit from {from} to {LIMIT_CEILING}, found {}", node.text().unwrap_or("")),
            "every loop ends: name the number of times you would accept",
        ),
        Counted::NoCount => wrong_type(node, what, "a whole number", report),
    }
}

fn check_natural(node: &Node, what: &str, report: &mut Report) {
    let whole = matches!(&node.value, NodeValue::Number { value, .. } if value.is_u64());
    if !whole {
        wrong_type(node, what, "a whole number", report);
    }
}

fn check_duration(node: &Node, what: &str, report: &mut Report) {
    match node.text() {
        None => wrong_type(node, what, kind_word(&Shape::Duration), report),
        Some(text) if duration_ms(text).is_none() => report.error(
            codes::BAD_VALUE,
            node.span,
            format!("{what}: \"{}\" is no duration", text.escape_debug()),
            "a whole number with a unit: `1500ms`, `90s`, `20m`, `4h`, `2d`",
        ),
        Some(_) => {}
    }
}

fn check_money(node: &Node, what: &str, report: &mut Report) {
    let fine = matches!(&node.value, NodeValue::Number { value, .. } if micro_usd(value).is_some());
    if !fine {
        wrong_type(node, what, "an amount in dollars such as `20` or `0.5`", report);
    }
}

fn check_word(node: &Node, words: &[&str], what: &str, report: &mut Report) {
    // YAML reads some of our words (`off`, `no`) as text, but `true` as a boolean.
    let Some(text) = node.text() else { return wrong_type(node, what, "a word", report) };
    if !words.contains(&text) {
        report.error(
            codes::BAD_VALUE,
            node.span,
            format!("{what}: \"{}\" is not one of its words", text.escape_debug()),
            suggestion(text, words.iter().copied()),
        );
    }
}

fn check_object(node: &Node, table: &'static Table, what: &str, report: &mut Report) {
    if node.is_null() && !table.keys.iter().any(|rule| rule.need == Need::Required) {
        return;
    }
    if !matches!(node.value, NodeValue::Mapping(_)) {
        return wrong_type(node, what, "a mapping", report);
    }
    for (key, value) in node.entries() {
        match table.key(&key.text) {
            Some(rule) => {
                let what = format!("`{}` of {}", key.text, named(node, table));
                check_shape(value, &rule.shape, &what, report);
            }
            None => report.error(
                codes::UNKNOWN_KEY,
                key.span,
                format!("unknown key `{}` in {}", key.text, named(node, table)),
                suggestion(&key.text, table.keys.iter().map(|rule| rule.name)),
            ),
        }
    }
    for rule in table.keys.iter().filter(|rule| rule.need == Need::Required) {
        if node.get(rule.name).is_none() && !is_misspelt(node, table, rule.name) {
            report.error(
                codes::MISSING_KEY,
                node.span,
                format!("{} has no `{}`", named(node, table), rule.name),
                rule.doc,
            );
        }
    }
    if std::ptr::eq(table, &raw const STEP) {
        check_step_kind(node, report);
    }
    if std::ptr::eq(table, &raw const GATE) {
        check_gate(node, report);
    }
}

/// Whether an unknown key of the mapping is likely to mean this one: then one mistake is reported,
/// the misspelt key, and not its absence as well.
pub fn is_misspelt(node: &Node, table: &Table, name: &str) -> bool {
    node.entries().iter().any(|(key, _)| meant_key(table, &key.text) == Some(name))
}

/// The known key that an unknown one is near to.
pub fn meant_key(table: &Table, unknown: &str) -> Option<&'static str> {
    let known = table.keys.iter().map(|rule| rule.name);
    if table.key(unknown).is_some() { None } else { nearest(unknown, known) }
}

/// "step `plan`" where the mapping has an id, else the table's own name.
fn named(node: &Node, table: &Table) -> String {
    match node.get("id").and_then(Node::text) {
        Some(id) => format!("{} `{id}`", table.name.trim_start_matches("an ").trim_start_matches("a ")),
        None => table.name.to_owned(),
    }
}

/// The kind of a step and its name in messages, if exactly one key tells it.
pub fn kind_of_step(node: &Node) -> Option<(Kinds, &'static str)> {
    let mut told = KIND_KEYS.iter().filter(|(key, _, _)| node.get(key).is_some());
    match (told.next(), told.next()) {
        (Some((_, kind, word)), None) => Some((*kind, word)),
        (None | Some(_), _) => None,
    }
}

fn check_step_kind(node: &Node, report: &mut Report) {
    let told: Vec<&str> =
        KIND_KEYS.iter().map(|(key, _, _)| *key).filter(|key| node.get(key).is_some()).collect();
    let name = named(node, &STEP);
    match told.as_slice() {
        [] if KIND_KEYS.iter().any(|(key, _, _)| is_misspelt(node, &STEP, key)) => return,
        [] => {
            let all: Vec<String> = KIND_KEYS.iter().map(|(key, _, _)| format!("`{key}`")).collect();
            let remedy = format!("one of {} tells what it is", all.join(", "));
            report.error(codes::STEP_KIND, node.span, format!("{name} does nothing"), remedy);
            return;
        }
        [_] => {}
        [first, second, ..] => {
            report.error(
                codes::STEP_KIND,
                node.key_place(second),
                format!("{name} has both `{first}` and `{second}`"),
                "a step is one thing: make two of it",
            );
            return;
        }
    }
    let Some((kind, word)) = kind_of_step(node) else { return };
    for (key, _) in node.entries() {
        let Some(rule) = STEP.key(&key.text) else { continue };
        if !rule.kinds.has(kind) {
            report.error(
                codes::MISPLACED_KEY,
                key.span,
                format!("`{}` means nothing in {word}", key.text),
                format!("remove it; {}", rule.doc),
            );
        }
    }
    let needed: &[(Kinds, &str, &str)] = &[
        (Kinds::REVIEW, "by", "the role of the reviewer"),
        (Kinds::DECIDE, "answers", "for example `answers: { approved: pass, rejected: block }`"),
        (Kinds::FOR_EACH, "steps", "the steps of one item"),
    ];
    for (of, key, remedy) in needed {
        let missing = node.get(key).is_none_or(|value| value.is_null());
        if of.has(kind) && missing && !is_misspelt(node, &STEP, key) {
            report.error(codes::MISSING_KEY, node.span, format!("{name} has no `{key}`"), *remedy);
        }
    }
}

fn check_gate(node: &Node, report: &mut Report) {
    let asked: Vec<&str> = GATE_KEYS.iter().copied().filter(|key| node.get(key).is_some()).collect();
    if asked.len() != 1 {
        report.error(
            codes::BAD_VALUE,
            node.span,
            format!("a gate asks one thing, this one {}", asked.len()),
            "one of `artifact`, `verdict`, `check`, `decision`, `obligation`, `expr`",
        );
        return;
    }
    for (key, other, remedy) in [
        ("check", "of", "the step that runs the check"),
        ("decision", "answers", "the answers that open the gate"),
    ] {
        if node.get(key).is_some() && node.get(other).is_none() {
            report.error(
                codes::MISSING_KEY,
                node.span,
                format!("a gate with `{key}` needs `{other}`"),
                remedy,
            );
        }
    }
}

fn check_map(node: &Node, inner: &Shape, what: &str, report: &mut Report) {
    match &node.value {
        NodeValue::Null => {}
        NodeValue::Mapping(entries) => {
            for (key, value) in entries.iter() {
                check_shape(value, inner, &format!("`{}` in {what}", key.text), report);
            }
        }
        NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) | NodeValue::Sequence(_) => {
            wrong_type(node, what, "a mapping", report);
        }
    }
}

fn check_list(node: &Node, inner: &Shape, what: &str, report: &mut Report) {
    match &node.value {
        NodeValue::Null => {}
        NodeValue::Sequence(elements) => {
            for element in elements.iter() {
                check_shape(element, inner, &format!("an entry of {what}"), report);
            }
        }
        NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) | NodeValue::Mapping(_) => {
            wrong_type(node, what, "a list", report);
        }
    }
}
