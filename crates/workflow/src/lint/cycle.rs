//! GW201: steps that wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::ids::StepId;

use crate::{
    diagnostic::{Report, codes},
    resolve::Built,
};

/// Reports every circle once, and gives them: each from a step to what it needs.
pub fn check(built: &Built, report: &mut Report) -> Vec<Vec<StepId>> {
    let mut done: BTreeSet<&StepId> = BTreeSet::new();
    let mut found = Vec::new();
    for start in built.graph.steps.keys() {
        // The way from `start`, with how far the needs of each step were followed.
        let mut way: Vec<(&StepId, usize)> = vec![(start, 0)];
        let mut on_way: BTreeMap<&StepId, usize> = BTreeMap::from([(start, 0)]);
        while let Some((id, next)) = way.last_mut() {
            let id = *id;
            let needs = built.graph.steps.get(id).map(|step| step.needs.as_slice()).unwrap_or_default();
            let Some(edge) = needs.get(*next).filter(|_| !done.contains(id)) else {
                way.pop();
                on_way.remove(id);
                done.insert(id);
                continue;
            };
            *next += 1;
            if let Some(at) = on_way.get(&edge.from) {
                let circle: Vec<&StepId> = way[*at..].iter().map(|(id, _)| *id).collect();
                tell(built, &circle, report);
                found.push(circle.into_iter().cloned().collect());
            } else if !done.contains(&edge.from) {
                on_way.insert(&edge.from, way.len());
                way.push((&edge.from, 0));
            }
        }
    }
    found
}

/// `circle` goes from a step to what it needs; it is told in the order of time.
fn tell(built: &Built, circle: &[&StepId], report: &mut Report) {
    let written = |id: &&&StepId| built.nodes.get(**id).is_some_and(|node| node.get("needs").is_some());
    let Some(first) = circle.iter().find(written).or(circle.first()) else { return };
    let mut names: Vec<&str> = circle.iter().rev().map(|id| id.as_str()).collect();
    names.push(names[0]);
    let span = built.nodes.get(*first).map(|node| node.place("needs")).unwrap_or_default();
    report.error(
        codes::CYCLE,
        span,
        format!("these steps wait for each other: {}", names.join(" → ")),
        "a way back is a review with its fix, or an answer that redoes; `needs` only goes forward",
    );
}
