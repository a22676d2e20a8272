//! GW211: work that would be thrown away without anybody having been asked.

use gatewright_core::plan::{Kind, Step};

use super::order::Order;
use crate::{
    diagnostic::{Report, codes},
    resolve::Built,
};

const DISCARD: &str = "discard";

/// `confirm: false` says that somebody said so before: then a decision before it must have such an answer.
pub fn check(built: &Built, order: &Order<'_>, report: &mut Report) {
    for (id, text) in &built.texts {
        let silent = text.confirmed && text.finish.as_deref() == Some(DISCARD);
        if !silent || order.is_off(id) || order.is_unknown(id) {
            continue;
        }
        let steps = built.graph.steps.iter();
        let asked = steps
            .filter(|(other, step)| offers_it(step) && !order.is_off(other))
            .any(|(other, _)| order.may_be_before(other, id));
        if !asked {
            report.error(
                codes::UNASKED_DISCARD,
                order.place(id, "confirm"),
                format!("`{id}` throws the work of the run away, and nobody is asked before"),
                "remove `confirm: false`, then it asks itself; or put a decision with the answer `discard` before it",
            );
        }
    }
}

fn offers_it(step: &Step) -> bool {
    match &step.kind {
        Kind::Decision(question) => question.answers.iter().any(|answer| answer.word.starts_with(DISCARD)),
        _ => false,
    }
}
