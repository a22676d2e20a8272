//! GW204: a path to the end around a review or a decision.
//!
//! A review guards the steps it judges, a decision the steps it directly needs and those it shows
//! or redoes. If a last step of the list does work (an agent, a fan-out, a merge, a sub-run) that
//! comes after a guarded step without coming after the guard, its work is done and the run can end
//! with it whatever the guard would have said. Checks, reviews and decisions may be such ends.
//! Later stages always come after every end of the stage before, so the proof is per list of steps.

use gatewright_core::{
    ids::StepId,
    plan::{AnswerEffect, Kind},
};

use super::order::Order;
use crate::{
    diagnostic::{Report, codes},
    resolve::Built,
};

pub fn check(built: &Built, order: &Order<'_>, report: &mut Report) {
    for scope in &order.scopes {
        let awake: Vec<&StepId> =
            scope.iter().filter(|id| !order.is_off(id) && !order.is_dormant(id)).collect();
        let is_awake = |id: &StepId| !order.is_off(id) && !order.is_dormant(id);
        let ends: Vec<&StepId> = awake
            .iter()
            .copied()
            .filter(|id| does_work(built, id))
            .filter(|id| !built.graph.dependents.get(*id).into_iter().flatten().any(is_awake))
            .collect();
        for guard in &awake {
            let mut told: Vec<&StepId> = Vec::new();
            for guarded in guarded_by(built, guard) {
                for end in &ends {
                    let around =
                        order.is_before(&guarded, end) && !order.may_be_before(guard, end) && *end != *guard;
                    if around && !told.contains(end) {
                        told.push(end);
                        tell(order, guard, &guarded, end, report);
                    }
                }
            }
        }
    }
}

fn does_work(built: &Built, id: &StepId) -> bool {
    match built.graph.steps.get(id).map(|step| &step.kind) {
        Some(
            Kind::Agent { .. }
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. }
            | Kind::SubRun { .. },
        ) => true,
        Some(Kind::Review(_) | Kind::Check { .. } | Kind::Decision(_)) | None => false,
    }
}

fn guarded_by(built: &Built, id: &StepId) -> Vec<StepId> {
    let Some(step) = built.graph.steps.get(id) else { return Vec::new() };
    match &step.kind {
        Kind::Review(review) => review.of.clone(),
        Kind::Decision(question) => {
            let mut guarded: Vec<StepId> = step.needs.iter().map(|edge| edge.from.clone()).collect();
            for answer in &question.answers {
                if let AnswerEffect::Redo { steps, .. } = &answer.effect {
                    guarded.extend(steps.iter().cloned());
                }
            }
            guarded
        }
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => Vec::new(),
    }
}

fn tell(order: &Order<'_>, guard: &StepId, guarded: &StepId, end: &StepId, report: &mut Report) {
    report.error(
        codes::PATH_AROUND_GATE,
        order.place(end, "needs"),
        format!(
            "there is a path around `{guard}`: {}, while the gate is on {}",
            order.path(guarded, end),
            order.path(guarded, guard)
        ),
        format!("let `{end}` need `{guard}`"),
    );
}
