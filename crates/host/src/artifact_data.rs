//! What accepted JSON and YAML files hold, for templates. An accepted file never changes, so each is
//! read once.

use std::{collections::BTreeMap, path::PathBuf, sync::Mutex};

use gatewright_core::{
    ids::ArtifactName,
    state::{Artifact, State},
};
use gatewright_workflow::{contract::Shape, yaml::parse_yaml_value};
use serde_json::Value;

use crate::run_context::RunContext;

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
        if !matches!(write.contract.shape, Shape::Json(_) | Shape::Yaml(_)) {
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
        let data: Value = parse_yaml_value(&String::from_utf8(bytes).ok()?).ok()?;
        parsed.insert(artifact.hash.0.clone(), data.clone());
        Some(data)
    }
}

/// Where the accepted bytes of an artifact are.
pub fn place(context: &RunContext, name: &ArtifactName, artifact: &Artifact) -> PathBuf {
    if artifact.adopted {
        context.paths.adopted(&artifact.hash.0)
    } else {
        context.paths.attempt(artifact.step.as_str(), artifact.attempt).join("out").join(name.as_str())
    }
}
