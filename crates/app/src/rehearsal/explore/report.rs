//! What an exploration found, as a table for people and as JSON.

use std::fmt::Write as _;

use gatewright_workflow::frozen::Frozen;
use serde_json::{Value, json};

use super::Explored;
use crate::rehearsal::coverage;

pub fn to_json(frozen: &Frozen, depth: u32, explored: &Explored) -> Value {
    let violations: Vec<Value> = explored
        .violations
        .iter()
        .map(|violation| json!({"message": violation.message, "path": violation.path}))
        .collect();
    json!({
        "schema_version": 1,
        "workflow": frozen.workflow,
        "profile": frozen.plan.profile,
        "depth": depth,
        "paths": explored.paths,
        "states": explored.states,
        "cut": explored.cut,
        "ends": explored.ends,
        "violations": violations,
        "coverage": coverage::to_json(&explored.coverage),
    })
}

pub fn to_text(frozen: &Frozen, depth: u32, explored: &Explored) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} (profile {}): {} paths with at most {depth} deviations, {} states",
        frozen.workflow, frozen.plan.profile, explored.paths, explored.states
    );
    if explored.cut {
        let _ = writeln!(
            out,
            "cut: there are more paths than so many states show; those with few deviations came first"
        );
    }
    let ends: Vec<String> = explored.ends.iter().map(|(state, count)| format!("{state} {count}")).collect();
    let _ = writeln!(out, "they ended: {}\n", ends.join(", "));
    out.push_str(&coverage::table(&explored.coverage));
    let _ = writeln!(out);
    for violation in &explored.violations {
        let path = if violation.path.is_empty() {
            "everything goes well".to_owned()
        } else {
            violation.path.join(", then ")
        };
        let _ = writeln!(out, "VIOLATION: {}\n  when {path}", violation.message);
    }
    let _ = match explored.violations.len() {
        0 => writeln!(out, "no path passes a closed gate, exceeds a limit, or rests without a reason"),
        count => writeln!(out, "{count} violation(s)"),
    };
    out
}
