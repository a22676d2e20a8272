//! GW305: items that were meant to be worked on together and cannot, because the shared checkout has one writer at
//! a time (decision 27). A warning: the run is right, only slower than its author thinks.

use gatewright_core::{ids::StepId, plan::Kind};

use super::order::Order;
use crate::{
    diagnostic::{Report, codes},
    frozen::{Isolation, may_write},
    resolve::{Built, Shared},
};

pub fn check(built: &Built, shared: &Shared, order: &Order<'_>, report: &mut Report) {
    for (id, step) in &built.graph.steps {
        let Kind::FanOut(fan_out) = &step.kind else { continue };
        let said = order.node(id).is_some_and(|node| node.get("parallel_max").is_some());
        if order.is_off(id) || !said || fan_out.parallel_max < 2 {
            continue;
        }
        if let Some((writer, scope)) = fan_out.body.iter().find_map(|part| writer(built, shared, part)) {
            let message = format!(
                "the items of `{id}` share one checkout, and `{writer}` may change {scope} in it: one at a time"
            );
            report.warning(codes::ONE_WRITER, order.place(id, "parallel_max"), message, REMEDY);
        }
    }
}

const REMEDY: &str =
    "give the fan-out `isolation: worktree`, or, if the role changes nothing, `may_write: []`";

/// The step and what it may change, if it changes anything in the shared checkout.
fn writer(built: &Built, shared: &Shared, id: &StepId) -> Option<(StepId, String)> {
    let role = built.graph.steps.get(id)?.role()?;
    let text = built.texts.get(id);
    if text.is_some_and(|text| text.isolation == Isolation::Worktree) {
        return None;
    }
    match may_write(text, shared.roles.get(role)) {
        Some(globs) if globs.is_empty() => None,
        Some(globs) => Some((id.clone(), format!("`{}`", globs.join("`, `")))),
        None => Some((id.clone(), "every file".to_owned())),
    }
}
