//! What a schema cannot say about a graph of nodes: ids, edges, circles.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Fault, code};

pub fn check(dag: &Value) -> Result<Vec<String>, Fault> {
    let list = |key: &str| dag.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    for node in list("nodes") {
        let id = text(&node, "id");
        if id.is_empty() {
            // The schema demands one.
            continue;
        }
        if !ids.insert(id.clone()) {
            problems.push(format!("two nodes have the id `{id}`"));
        }
        let missing = |key: &str| text(&node, key).is_empty();
        if text(&node, "type") == "agent" && (missing("agent") || missing("model")) {
            problems.push(format!("the agent node `{id}` names no agent or no model"));
        }
        if text(&node, "status") == "running" && missing("task_id") {
            problems.push(format!("the running node `{id}` has no task_id"));
        }
    }
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for edge in list("edges") {
        let (from, to) = (text(&edge, "from"), text(&edge, "to"));
        if from.is_empty() || to.is_empty() {
            continue;
        }
        if from == to {
            problems.push(format!("`{from}` waits for itself"));
        }
        for end in [&from, &to].into_iter().filter(|end| !ids.contains(*end)) {
            problems.push(format!("the edge {from} → {to} leads to `{end}`, which is no node"));
        }
        needs.entry(to).or_default().push(from);
    }
    if let Some(way) = circle(&ids, &needs) {
        problems.push(format!("these wait for each other: {}", way.join(" → ")));
    }
    if problems.is_empty() {
        Ok(vec!["ok  dag".to_owned()])
    } else {
        Err(Fault { code: code::GRAPH, problems })
    }
}

/// A way that leads back to where it began, each before what it waits for; none if everything can start.
pub fn circle(ids: &BTreeSet<String>, needs: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let mut left = ids.clone();
    loop {
        let waits =
            |id: &String| needs.get(id).is_some_and(|list| list.iter().any(|need| left.contains(need)));
        let ready: Vec<String> = left.iter().filter(|id| !waits(id)).cloned().collect();
        if ready.is_empty() {
            break;
        }
        ready.iter().for_each(|id| {
            left.remove(id);
        });
    }
    // Everybody who is left waits for somebody who is: who goes on long enough comes round.
    let mut way = vec![left.first()?.clone()];
    loop {
        let need = way.last().and_then(|id| needs.get(id)?.iter().find(|need| left.contains(*need)))?;
        let begin = way.iter().position(|id| id == need);
        way.push(need.clone());
        if let Some(begin) = begin {
            return Some(way.split_off(begin));
        }
    }
}
