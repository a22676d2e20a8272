//! What accepted JSON, YAML and Markdown files hold, for templates. An accepted file never changes, so
//! each is read once.

use std::{collections::BTreeMap, path::PathBuf, sync::Mutex};

use gatewright_attempts::AttemptDir;
use gatewright_core::{
    ids::ArtifactName,
    state::{Artifact, State},
};
use gatewright_workflow::{
    contract::Shape,
    report::{Report, Section},
    yaml::parse_yaml_value,
};
use serde_json::{Value, json};

use crate::{mask::Masks, project::RunPaths, run_context::RunContext, run_masks};

/// Larger files are for programs, not for templates.
const BYTES_MAX: usize = 1024 * 1024;

/// Parsed files by hash.
#[derive(Debug, Default)]
pub struct ArtifactData {
    parsed: Mutex<BTreeMap<String, Value>>,
}

impl ArtifactData {
    /// Adds `data` to the entries of outermost steps whose contract is one of data; those of items
    /// stay out, so that a document does not grow with what all items wrote.
    pub fn add(&self, context: &RunContext, state: &State, entries: &mut Value) {
        let Value::Object(entries) = entries else { return };
        for (name, entry) in entries.iter_mut() {
            let name = ArtifactName::new(name);
            let Some(artifact) = state.artifacts.get(&name) else { continue };
            if !state.steps.get(&artifact.step).is_some_and(|own| own.scope.is_top()) {
                continue;
            }
            if let (Some(data), Value::Object(entry)) = (self.of(context, state, &name, artifact), entry) {
                entry.insert("data".to_owned(), data);
            }
        }
    }

    fn of(
        &self,
        context: &RunContext,
        state: &State,
        name: &ArtifactName,
        artifact: &Artifact,
    ) -> Option<Value> {
        let text = context.text(state, &artifact.step);
        let write = text.writes.iter().find(|write| write.name == artifact.declared.as_str())?;
        let is_report = matches!(write.contract.shape, Shape::Markdown(_));
        if !is_report && !matches!(write.contract.shape, Shape::Json(_) | Shape::Yaml(_)) {
            return None;
        }
        // A poisoned lock means that a thread died while parsing; what it had parsed is still right.
        let mut parsed = self.parsed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = parsed.get(&artifact.hash.0) {
            return Some(known.clone());
        }
        let path = place(context, name, artifact);
        let bytes = context.disk.read(&path).ok().filter(|bytes| bytes.len() <= BYTES_MAX)?;
        // JSON is YAML; what keeps its contract can be read, unless somebody took the file away.
        let data: Value = if is_report {
            report_data(&Report::parse(&bytes))
        } else {
            parse_yaml_value(&String::from_utf8(bytes).ok()?).ok()?
        };
        let mut data = data;
        masks_of(&context.paths, artifact).and(run_masks::of_engine(context)).mask_json(&mut data);
        parsed.insert(artifact.hash.0.clone(), data.clone());
        Some(data)
    }
}

/// A report's title, its header, and what its outermost sections say: list items and text, and the same of the
/// parts that have a heading of their own.
pub fn report_data(report: &Report) -> Value {
    let header: serde_json::Map<String, Value> =
        report.header.iter().map(|field| (field.name.clone(), json!(field.value))).collect();
    let sections: serde_json::Map<String, Value> = report
        .sections
        .iter()
        .map(|section| {
            let items = |of: &Section| -> Vec<String> {
                of.body.items.iter().map(|item| item.text.clone()).collect()
            };
            let part =
                |of: &Section| json!({"heading": of.heading, "items": items(of), "text": of.full_text()});
            let parts: Vec<Value> = section.children.iter().map(part).collect();
            // `Follow-up Tasks (larger ones, for later)` is called `Follow-up Tasks`.
            let heading = section.heading.split(" (").next().unwrap_or_default().trim();
            (
                heading.to_owned(),
                json!({"items": items(section), "text": section.full_text(), "parts": parts}),
            )
        })
        .collect();
    json!({"title": report.title, "header": header, "sections": sections})
}

/// What must not be shown of an artifact: what its author was given, and what looks like a secret.
pub fn masks_of(paths: &RunPaths, artifact: &Artifact) -> Masks {
    let dir = AttemptDir::open(paths.attempt(artifact.step.as_str(), artifact.attempt)).ok();
    let launch = dir.and_then(|dir| dir.launch_spec().ok().flatten());
    launch.map(|launch| Masks::of_launch(&launch.env)).unwrap_or_default()
}

/// Where the accepted bytes of an artifact are.
pub fn place(context: &RunContext, name: &ArtifactName, artifact: &Artifact) -> PathBuf {
    if artifact.adopted {
        context.paths.adopted(&artifact.hash.0)
    } else {
        context.paths.attempt(artifact.step.as_str(), artifact.attempt).join("out").join(name.as_str())
    }
}
