//! Whether the streams of a plan can be worked off: groups agree with dependencies, a frontend waits for no
//! backend, a schema comes before every backend.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Fault, code, graph::circle};

struct Stream {
    id: String,
    agent: String,
    needs: Vec<String>,
}

impl Stream {
    fn is_frontend(&self) -> bool {
        self.agent.contains("frontend")
    }

    fn is_backend(&self) -> bool {
        self.agent.starts_with("software") && !self.is_frontend()
    }

    fn is_schema(&self) -> bool {
        self.agent.starts_with("database") || self.agent.starts_with("schema")
    }
}

pub fn check(plan: &Value) -> Result<(), Fault> {
    let streams = streams(plan);
    let mut problems = Vec::new();
    let ids: BTreeSet<String> = streams.iter().map(|stream| stream.id.clone()).collect();
    if ids.len() < streams.len() {
        problems.push("two work streams have one id".to_owned());
    }
    let needs: BTreeMap<String, Vec<String>> =
        streams.iter().map(|stream| (stream.id.clone(), stream.needs.clone())).collect();
    for stream in &streams {
        for need in stream.needs.iter().filter(|need| !ids.contains(*need)) {
            problems.push(format!("{} depends on {need}, which is no stream", stream.id));
        }
    }
    if let Some(way) = circle(&ids, &needs) {
        problems.push(format!("these streams wait for each other: {}", way.join(" → ")));
    }
    problems.extend(roles(&streams));
    problems.extend(groups(plan, &streams));
    if problems.is_empty() { Ok(()) } else { Err(Fault { code: code::SCHEMA, problems }) }
}

fn names(value: &Value, key: &str) -> Vec<String> {
    let names = value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn streams(plan: &Value) -> Vec<Stream> {
    let list = plan.get("work_streams").and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    list.iter()
        .map(|stream| Stream {
            id: text(stream, "id"),
            agent: text(stream, "agent"),
            needs: names(stream, "depends_on"),
        })
        .collect()
}

/// The contract of the API is the handshake: what a frontend waits for is that, not its implementation.
fn roles(streams: &[Stream]) -> Vec<String> {
    let of = |id: &String| streams.iter().find(|stream| stream.id == *id);
    let mut problems = Vec::new();
    for stream in streams.iter().filter(|stream| stream.is_frontend()) {
        for need in stream.needs.iter().filter(|need| of(need).is_some_and(Stream::is_backend)) {
            problems.push(format!(
                "the frontend stream {} waits for the backend stream {need}: let it wait for the API contract",
                stream.id
            ));
        }
    }
    for schema in streams.iter().filter(|stream| stream.is_schema()) {
        for stream in
            streams.iter().filter(|stream| stream.is_backend() && !stream.needs.contains(&schema.id))
        {
            problems.push(format!(
                "the backend stream {} does not wait for the schema stream {}",
                stream.id, schema.id
            ));
        }
    }
    problems
}

/// A group with a gate behind it is through before the gate: whatever comes right after it waits for all of it.
fn gates(groups: &[Value], place: &BTreeMap<String, usize>, streams: &[Stream]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let gate = group.get("gate_after").and_then(Value::as_str).unwrap_or_default();
        if ["", "none"].contains(&gate) {
            continue;
        }
        let members = names(group, "streams");
        for stream in streams.iter().filter(|stream| place.get(&stream.id) == Some(&(index + 1))) {
            for missing in members.iter().filter(|member| !stream.needs.contains(member)) {
                problems.push(format!(
                    "parallelism group {} has the gate `{gate}` behind it, and {} does not wait for {missing}",
                    index + 1,
                    stream.id
                ));
            }
        }
    }
    problems
}

/// Every stream is in one group, right after the last one that it waits for: then to work off the groups in order and to
/// start each stream as soon as its own dependencies are completed is the same.
fn groups(plan: &Value, streams: &[Stream]) -> Vec<String> {
    let list = plan.get("parallelism_groups").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, group) in list.iter().enumerate() {
        let names = group.get("streams").and_then(Value::as_array).cloned().unwrap_or_default();
        for name in names.iter().filter_map(Value::as_str) {
            if place.insert(name.to_owned(), index).is_some() {
                problems.push(format!("{name} is in two parallelism groups"));
            }
        }
    }
    problems.extend(gates(&list, &place, streams));
    for stream in streams {
        let Some(own) = place.get(&stream.id) else {
            problems.push(format!("{} is in no parallelism group", stream.id));
            continue;
        };
        for need in stream.needs.iter().filter(|need| place.get(*need).is_some_and(|other| other >= own)) {
            problems.push(format!(
                "{} waits for {need}, which is not in an earlier parallelism group",
                stream.id
            ));
        }
        let last = stream.needs.iter().filter_map(|need| place.get(need)).max();
        let first_possible = last.map_or(0, |last| last + 1);
        if *own > first_possible {
            problems.push(format!(
                "{} is in parallelism group {} and waits for nobody in group {own}: say for whom, or put it into group {}",
                stream.id,
                own + 1,
                first_possible + 1
            ));
        }
    }
    problems
}
