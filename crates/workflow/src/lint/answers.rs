//! GW207: a decision that nobody can pass. GW113: answers and verdicts that a gate waits for in vain.

use std::collections::BTreeMap;

use gatewright_core::{
    ids::StepId,
    plan::{AnswerEffect, Condition, Kind, Question},
};

use super::order::Order;
use crate::{
    diagnostic::{Report, codes, suggestion},
    resolve::Built,
    yaml::tree::{Node, Span},
};

pub fn check(built: &Built, order: &Order<'_>, report: &mut Report) {
    check_names(built, order, report);
    for (id, step) in &built.graph.steps {
        if order.is_off(id) {
            continue;
        }
        if let Kind::Decision(question) = &step.kind {
            check_question(order, id, question, report);
        }
        for gate in &step.gates {
            check_gate(order, id, &gate.condition, report);
        }
    }
}

/// People answer a decision by its public name, so there is one of each.
fn check_names(built: &Built, order: &Order<'_>, report: &mut Report) {
    let mut seen: BTreeMap<&str, &StepId> = BTreeMap::new();
    for (id, step) in &built.graph.steps {
        let Kind::Decision(question) = &step.kind else { continue };
        let name = question.name.as_deref().unwrap_or(id.as_str());
        if let Some(other) = seen.insert(name, id) {
            report.error(
                codes::DUPLICATE_ID,
                order.place(id, "decision"),
                format!("`{other}` and `{id}` are both the decision `{name}`"),
                "give one of them another `decision`",
            );
        }
    }
}

fn check_question(order: &Order<'_>, id: &StepId, question: &Question, report: &mut Report) {
    let passes = question.answers.iter().any(|answer| match answer.effect {
        AnswerEffect::Pass | AnswerEffect::Skip => true,
        AnswerEffect::Accept
        | AnswerEffect::Again
        | AnswerEffect::Redo { .. }
        | AnswerEffect::Restart { .. }
        | AnswerEffect::Block
        | AnswerEffect::Abort => false,
    });
    let span = order.place(id, "answers");
    if !passes && !order.built.unknown.answers.contains(id) {
        report.error(
            codes::NO_PASSING_ANSWER,
            span,
            format!("no answer lets `{id}` pass"),
            "give it one: `answers: { approved: pass, … }`",
        );
    }
    for answer in &question.answers {
        if matches!(answer.effect, AnswerEffect::Accept | AnswerEffect::Again) {
            report.error(
                codes::BAD_VALUE,
                span,
                format!(
                    "the answer `{}` of `{id}`: `accept` and `again` are for limits that are used up",
                    answer.word
                ),
                "use `pass`, or `{ redo: STEP }`",
            );
        }
    }
}

fn check_gate(order: &Order<'_>, id: &StepId, condition: &Condition, report: &mut Report) {
    let unknown = &order.built.unknown;
    let asked = match condition {
        Condition::Artifact { step, .. }
        | Condition::Verdict { step, .. }
        | Condition::Check { step, .. }
        | Condition::Decision { step, .. } => Some(step),
        Condition::Obligation { .. } | Condition::Expression { .. } => None,
    };
    if asked.is_some_and(|step| order.is_unknown(step)) {
        return;
    }
    match condition {
        Condition::Decision { step, answers } => {
            let Some(Kind::Decision(question)) = order.graph().steps.get(step).map(|step| &step.kind) else {
                return wrong_kind(order, id, "decision", step, "no decision", report);
            };
            for answer in answers.iter().filter(|_| !unknown.answers.contains(step)) {
                if !question.answers.iter().any(|known| known.word == *answer) {
                    report.error(
                        codes::UNKNOWN_ANSWER,
                        gate_place(order, id, "answers", answer),
                        format!("`{step}` is never answered with `{answer}`"),
                        suggestion(answer, question.answers.iter().map(|known| known.word.as_str())),
                    );
                }
            }
        }
        Condition::Verdict { step, .. } => {
            let is_review =
                matches!(order.graph().steps.get(step).map(|step| &step.kind), Some(Kind::Review(_)));
            if !is_review {
                wrong_kind(order, id, "verdict", step, "no review", report);
            }
        }
        Condition::Check { step, check } => {
            let runs = order.graph().steps.get(step).is_some_and(|step| {
                step.checks.contains(check)
                    || matches!(&step.kind, Kind::Check { check: own } if own == check)
            });
            if !runs && !unknown.checks.contains(step) {
                wrong_kind(order, id, "of", step, &format!("no step that runs `{check}`"), report);
            }
        }
        Condition::Artifact { .. } | Condition::Obligation { .. } | Condition::Expression { .. } => {}
    }
}

fn wrong_kind(order: &Order<'_>, id: &StepId, key: &str, step: &StepId, what: &str, report: &mut Report) {
    report.error(
        codes::UNKNOWN_ANSWER,
        gate_place(order, id, key, step.as_str()),
        format!("a gate of `{id}` waits in vain: `{step}` is {what}"),
        "",
    );
}

/// The place of a word in one of the step's gates; the gates as a whole for those of a stage.
fn gate_place(order: &Order<'_>, id: &StepId, key: &str, word: &str) -> Span {
    let Some(node) = order.node(id) else { return Span::default() };
    let gates = node.get("gates").map(Node::elements).unwrap_or_default();
    let found = gates.iter().flat_map(|gate| gate.words(key)).find(|found| word.ends_with(&found.text));
    found.map_or_else(|| node.place("gates"), |word| word.span)
}
