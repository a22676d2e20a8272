//! Proofs over a resolved graph: what no run can get right, whatever its agents do.
//!
//! They also run on a graph with mistakes in it, and say nothing about what a mistake leaves unknown
//! (`resolve::Unknown`): every mistake is reported once, and none hides another. One file per rule or pair of rules; each
//! rule has its code, and its example in `docs/lint.md`, which a test runs.

mod answers;
mod artifacts;
mod bypass;
mod cycle;
mod discard;
pub mod known;
mod names;
mod one_writer;
mod order;
mod reach;
mod registry;
mod unused;

pub use registry::check_registry;
pub use unused::check_unused;

use gatewright_core::plan::limits::STEPS_MAX;

use crate::{
    diagnostic::{Report, codes},
    resolve::{Built, Shared},
    yaml::tree::Node,
};

/// Everything that is wrong with one graph. `tree` is the definition of its profile.
pub fn check_graph(built: &Built, tree: &Node, shared: &Shared, report: &mut Report) {
    if built.graph.steps.len() > STEPS_MAX {
        let message = format!("{} steps; at most {STEPS_MAX} are planned", built.graph.steps.len());
        report.error(codes::TOO_MANY_STEPS, tree.span, message, "");
        return;
    }
    let known = known::Known::new(built, tree, shared);
    names::check(built, tree, shared, &known, report);
    let circles = cycle::check(built, report);
    let order = order::Order::new(built, circles);
    reach::check(built, &order, report);
    bypass::check(built, &order, report);
    artifacts::check_reads(built, tree, &order, report);
    artifacts::check_writes(built, &order, report);
    answers::check(built, &order, report);
    discard::check(built, &order, report);
    one_writer::check(built, shared, &order, report);
}
