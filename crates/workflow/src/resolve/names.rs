//! Ids of the steps of one workflow file, known before any of them is resolved, and how a name in
//! the text finds its step.

use std::collections::BTreeSet;

use gatewright_core::ids::StepId;

use crate::{
    definition::read::Word,
    diagnostic::{Report, codes, suggestion},
    yaml::tree::{Node, NodeValue},
};

/// Where a list of steps lives: the prefix of its ids, and the prefixes around it, inner first.
#[derive(Clone, Debug)]
pub struct Scope {
    pub prefix: String,
    pub outer: Vec<String>,
}

impl Scope {
    pub fn top(prefix: &str) -> Scope {
        Scope { prefix: prefix.to_owned(), outer: Vec::new() }
    }

    pub fn inside(&self, prefix: String) -> Scope {
        let mut outer = vec![self.prefix.clone()];
        outer.extend(self.outer.iter().cloned());
        Scope { prefix, outer }
    }

    pub fn id(&self, name: &str) -> StepId {
        StepId::new(format!("{}{name}", self.prefix))
    }
}

/// All template ids of one workflow file.
#[derive(Debug, Default)]
pub struct Names {
    known: BTreeSet<String>,
}

impl Names {
    /// Collects the ids of a list of steps and of everything below; reports ids used twice.
    pub fn collect(&mut self, list: &Node, prefix: &str, report: &mut Report) {
        for step in list.elements() {
            let Some(id) = step.word("id") else { continue };
            let path = format!("{prefix}{}", id.text);
            self.add(&path, &id, report);
            if let Some(steps) = step.get("steps") {
                self.collect(steps, &format!("{path}/*/"), report);
            }
            for reviewer in step.get("by").map(Node::elements).unwrap_or_default() {
                if let Some(name) = reviewer_name(reviewer).filter(|_| is_panel(step)) {
                    self.add(&format!("{path}/{}", name.text), &name, report);
                }
            }
            for fix in step.get("fix").map(inline_fixes).unwrap_or_default() {
                let at = fix.word("id").unwrap_or(Word { text: String::new(), span: fix.span });
                self.add(&format!("{prefix}{}", fix_name(&id.text, fix)), &at, report);
            }
        }
    }

    fn add(&mut self, path: &str, at: &Word, report: &mut Report) {
        if !self.known.insert(path.to_owned()) {
            report.error(
                codes::DUPLICATE_ID,
                at.span,
                format!("there are two steps `{path}`"),
                "give one of them another `id`",
            );
        }
    }

    /// The step of the same list; what `needs` names.
    pub fn sibling(&self, scope: &Scope, word: &Word, report: &mut Report) -> Option<StepId> {
        let id = scope.id(&word.text);
        if self.known.contains(id.as_str()) && !word.text.contains('/') {
            return Some(id);
        }
        let siblings = self.visible(&scope.prefix).filter(|name| !name.contains('/'));
        report.error(
            codes::UNKNOWN_STEP,
            word.span,
            format!("there is no step `{}` in this list of steps", word.text),
            suggestion(&word.text, siblings),
        );
        None
    }

    /// The step that a gate, an answer, a review or a fix names: of the same list, or fixed below a
    /// step of it (a reviewer of a panel). The engine looks for it beside the step that names it, so
    /// a step of a list around this one, or of a fan-out below, cannot be meant.
    pub fn find(&self, scope: &Scope, word: &Word, report: &mut Report) -> Option<StepId> {
        let id = scope.id(&word.text);
        if self.known.contains(id.as_str()) && !word.text.contains('*') {
            return Some(id);
        }
        let elsewhere =
            scope.outer.iter().any(|prefix| self.known.contains(&format!("{prefix}{}", word.text)))
                || self.known.contains(&format!("{}{}", scope.prefix, word.text.replace('/', "/*/")))
                || self.known.contains(id.as_str());
        let (message, remedy) = if elsewhere {
            let message = format!("`{}` is not in this list of steps", word.text);
            (
                message,
                "a step refers to steps of its own list; around a fan-out that is the fan-out".to_owned(),
            )
        } else {
            let message = format!("there is no step `{}`", word.text);
            (message, suggestion(&word.text, self.visible(&scope.prefix)))
        };
        report.error(codes::UNKNOWN_STEP, word.span, message, remedy);
        None
    }

    fn visible<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.known.iter().filter_map(move |path| path.strip_prefix(prefix))
    }
}

/// Several reviewers are steps of their own.
pub fn is_panel(step: &Node) -> bool {
    step.get("by").is_some_and(|by| by.elements().len() > 1)
}

pub fn reviewer_name(reviewer: &Node) -> Option<Word> {
    Word::of(reviewer).or_else(|| reviewer.word("id")).or_else(|| reviewer.word("role"))
}

/// The name of a fix that is written in place: a step beside its review. Not below it: what lives
/// below a step is taken away when the step is reset, and the fix has to outlive that.
pub fn fix_name(review: &str, fix: &Node) -> String {
    format!("{review}-{}", fix.string("id").unwrap_or_else(|| "fix".to_owned()))
}

/// The steps that are written inside a `fix`, in order.
pub fn inline_fixes(fix: &Node) -> Vec<&Node> {
    match &fix.value {
        NodeValue::Sequence(elements) => elements.iter().filter(|element| is_inline(element)).collect(),
        NodeValue::Mapping(_) if is_inline(fix) => vec![fix],
        NodeValue::Mapping(entries) => entries.iter().flat_map(|(_, route)| inline_fixes(route)).collect(),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => Vec::new(),
    }
}

pub fn is_inline(node: &Node) -> bool {
    node.get("role").is_some()
}
