//! A merge of streams with who mends it, and the step that brings the run's branch home.

use gatewright_core::{
    ids::StepId,
    plan::{Exhaustion, Kind, Rereview, Rerun, Review, Step},
    verdict::Severity,
};

use super::{
    answer::{self, Asking},
    build::Builder,
    review,
    step::{self, Place},
    unit::Unit,
};
use crate::{frozen::StepText, yaml::tree::Node};

/// What may become of a run's branch without a question.
pub const FINISHES: &[&str] = &["merge", "keep", "pull_request", "discard", FINISH_ASK];
/// A person says which, if anything was changed.
pub const FINISH_ASK: &str = "ask";
/// Rounds of mending when a definition names none: several streams may need one.
const MERGE_ROUNDS_MAX: u32 = 10;

pub fn merge(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
) {
    let of = unit.names.find(place.scope, &step::word(node, "merge"), builder.report);
    if of.is_none() {
        builder.built.unknown.kinds.insert(id.clone());
    }
    let fix = review::fixes(builder, unit, place, node, id, &[]);
    let fix: Vec<_> = fix.into_iter().filter(|route| !route.steps.is_empty()).collect();
    let on_exhausted = match node.get("on_exhausted") {
        Some(_) => {
            let given = node.get("on_exhausted");
            answer::exhaustion(builder, unit, place.scope, given, place.stage, Asking::Review)
        }
        // A person comes last, never a silent loss.
        None => vec![Exhaustion::Ask { answers: answer::bare_ask(Asking::Review) }],
    };
    let rounds_max = node.limit("rounds_max").unwrap_or(MERGE_ROUNDS_MAX);
    step.kind = Kind::Merge {
        of: of.unwrap_or_else(|| id.clone()),
        repair: Some(Box::new(Review {
            of: Vec::new(),
            reviewers: Vec::new(),
            block_at: Severity::Low,
            hard_stop_on_blocked: false,
            // With nobody to mend it, the first failure goes to a person.
            rounds_max: if fix.is_empty() { 1 } else { rounds_max },
            fix,
            rerun: Rerun::Listed,
            rereview: Rereview::All,
            final_pass: false,
            stalled_after: None,
            on_exhausted,
            ask_at: None,
            on_notes: Vec::new(),
        })),
    };
    step.pools = unit.pools_of(builder, node, None);
}

pub fn finish(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
    text: &mut StepText,
) {
    text.confirmed = node.flag("confirm") == Some(false);
    let word = step::word(node, "finish");
    let asked = if FINISHES.contains(&word.text.as_str()) {
        text.finish = Some(word.text);
        None
    } else {
        let asked = unit.names.find(place.scope, &word, builder.report);
        if asked.is_none() {
            builder.built.unknown.kinds.insert(id.clone());
        }
        asked
    };
    step.kind = Kind::Finish { asked };
    step.pools = unit.pools_of(builder, node, None);
}
