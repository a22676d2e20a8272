//! GW202: steps that can never start. GW209: steps that look at what has not run yet.

use std::collections::BTreeSet;

use gatewright_core::{
    ids::StepId,
    plan::{Answer, AnswerEffect, Exhaustion, Kind, Step},
};

use super::order::Order;
use crate::{
    diagnostic::{Report, codes},
    resolve::Built,
};

pub fn check(built: &Built, order: &Order<'_>, report: &mut Report) {
    let called = called(built);
    let dormant: Vec<&str> =
        built.graph.steps.iter().filter(|(_, step)| step.dormant).map(|(id, _)| id.as_str()).collect();
    for (id, step) in &built.graph.steps {
        if order.is_off(id) || order.is_unknown(id) {
            continue;
        }
        if step.dormant && !called.contains(id) && !built.unknown.may_call(id, &dormant) {
            report.error(
                codes::NEVER_STARTS,
                order.place(id, "dormant"),
                format!("nothing ever wakes the dormant step `{id}`"),
                "name it in a review's `fix`, in an answer's `redo` or in an obligation's `else_run`",
            );
        }
        for edge in step.needs.iter().filter(|_| !step.dormant) {
            if built.graph.steps.get(&edge.from).is_some_and(|needed| needed.dormant) {
                report.error(
                    codes::NEVER_STARTS,
                    order.place(id, "needs"),
                    format!("`{id}` needs the dormant step `{}`, which may never run", edge.from),
                    "need the review or decision that wakes it",
                );
            }
        }
        references(order, id, step, report);
    }
}

/// Steps that a loop, an answer or an obligation calls for.
fn called(built: &Built) -> BTreeSet<StepId> {
    let mut called: BTreeSet<StepId> = BTreeSet::new();
    for step in built.graph.steps.values() {
        if let Some(review) = step.rounds() {
            called.extend(review.fix.iter().flat_map(|route| route.steps.iter().cloned()));
        }
        called.extend(step.back.iter().cloned());
        for answer in answers_of(step) {
            if let AnswerEffect::Redo { steps, routes } = &answer.effect {
                called.extend(steps.iter().chain(routes.values().flatten()).cloned());
            }
        }
    }
    called.extend(built.graph.obligations.iter().filter_map(|obligation| obligation.else_run.clone()));
    called
}

/// Every answer that a person can be offered at this step.
pub fn answers_of(step: &Step) -> Vec<&Answer> {
    let mut answers: Vec<&Answer> = Vec::new();
    let mut lists = vec![&step.retry.on_exhausted];
    match &step.kind {
        Kind::Decision(question) => answers.extend(&question.answers),
        Kind::Review(review) => lists.push(&review.on_exhausted),
        Kind::Merge { repair, .. } => lists.extend(repair.iter().map(|review| &review.on_exhausted)),
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::FanOut(_)
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => {}
    }
    for entry in lists.into_iter().flatten() {
        if let Exhaustion::Ask { answers: asked } = entry {
            answers.extend(asked);
        }
    }
    answers
}

fn references(order: &Order<'_>, id: &StepId, step: &Step, report: &mut Report) {
    match &step.kind {
        Kind::Review(review) => {
            for of in review.of.iter().filter(|of| !order.may_be_before(of, id) && !order.is_dormant(of)) {
                later(order, id, "review", of, "reviews", report);
            }
            for fix in review.fix.iter().flat_map(|route| &route.steps) {
                let may = order.may_be_before(fix, id) || order.is_dormant(fix) || order.is_nested(fix, id);
                if !may {
                    later(order, id, "fix", fix, "is fixed by", report);
                }
            }
        }
        Kind::Finish { asked: Some(asked) } if !order.is_before(asked, id) => {
            later(order, id, "finish", asked, "does what is answered to", report);
        }
        Kind::Merge { of, .. } => {
            let is_fan_out =
                matches!(order.graph().steps.get(of).map(|step| &step.kind), Some(Kind::FanOut(_)));
            if order.is_unknown(of) {
                return;
            }
            if !is_fan_out {
                report.error(
                    codes::UNKNOWN_STEP,
                    order.place(id, "merge"),
                    format!("`{of}` is no fan-out, so there are no worktrees to merge"),
                    "name a step with `for_each` and `isolation: worktree`",
                );
            } else if !order.may_be_before(of, id) {
                later(order, id, "merge", of, "merges", report);
            }
        }
        Kind::Decision(_)
        | Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::FanOut(_)
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => {}
    }
    for answer in answers_of(step) {
        let AnswerEffect::Redo { steps, routes } = &answer.effect else { continue };
        for target in steps.iter().chain(routes.values().flatten()) {
            let may =
                order.may_be_before(target, id) || order.is_dormant(target) || order.is_nested(target, id);
            if !may {
                later(order, id, "answers", target, "redoes", report);
            }
        }
    }
    for back in step.back.iter().filter(|back| !order.may_be_before(back, id)) {
        later(order, id, "back", back, "refers work back to", report);
    }
}

fn later(order: &Order<'_>, id: &StepId, key: &str, target: &StepId, does: &str, report: &mut Report) {
    report.error(
        codes::REVIEW_OF_LATER,
        order.place(id, key),
        format!("`{id}` {does} `{target}`, which need not have run before it"),
        format!("add `{target}` to its `needs`, or to those of a step before it"),
    );
}
