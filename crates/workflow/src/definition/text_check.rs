//! Templates and expressions inside a definition: their syntax, and what they compare.

use std::sync::LazyLock;

use crate::{
    diagnostic::{Report, codes},
    expression_lint::lint_expression,
    template::{TemplateProblem, Templates},
    yaml::tree::{Node, Span},
};

/// Made once: it holds no state.
pub static TEMPLATES: LazyLock<Templates> = LazyLock::new(Templates::new);

pub fn template(node: &Node, text: &str, what: &str, report: &mut Report) {
    for problem in TEMPLATES.check(what, text) {
        let span = place(node, text, &problem, report);
        let message = format!("{what}: {}", problem.message);
        report.error(codes::TEMPLATE, span, message, problem.hint.unwrap_or_default());
    }
}

pub fn expression(node: &Node, text: &str, what: &str, report: &mut Report) {
    for problem in lint_expression(&TEMPLATES, what, text) {
        let span = place(node, text, &problem, report);
        let code = if problem.message.contains("free text") { codes::FREE_TEXT } else { codes::EXPRESSION };
        report.error(code, span, format!("{what}: {}", problem.message), problem.hint.unwrap_or_default());
    }
}

/// The place inside the file, when the text stands there letter by letter; else the whole value.
pub fn place(node: &Node, text: &str, problem: &TemplateProblem, report: &Report) -> Span {
    let source = report.texts.text(node.span.source);
    if let Some(span) = place_in_block(node, text, problem, source) {
        return span;
    }
    let written = source.get(node.span.start..node.span.end).unwrap_or_default();
    let Some(offset) = written.find(text).filter(|_| !text.contains('\n') && problem.line == 1) else {
        return node.span;
    };
    let Some(column) = problem.column else { return node.span };
    let before = written[..offset].chars().count();
    Span { column: node.span.column + before + column - 1, length: 1, ..node.span }
}

/// The text of a block (`|`) stands line by line in the file, each line moved to the right.
fn place_in_block(node: &Node, text: &str, problem: &TemplateProblem, source: &str) -> Option<Span> {
    let column = problem.column?;
    let wanted = text.lines().nth(problem.line.checked_sub(1)?)?;
    let line = (node.span.line + problem.line).checked_sub(1).filter(|_| text.contains('\n'))?;
    let written = source.lines().nth(line.checked_sub(1)?)?;
    let indent = written.find(wanted).filter(|_| written.trim() == wanted.trim())?;
    let moved = written[..indent].chars().count();
    Some(Span { line, column: moved + column, length: 1, ..node.span })
}
