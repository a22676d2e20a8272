//! What stays the same while an engine drives a run, shared with the threads that carry effects out.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gatewright_attempts::{Adopter, SupervisorCommand};
use gatewright_core::{
    ids::{ContentHash, StepId},
    state::State,
};
use gatewright_workflow::{
    frozen::{Frozen, Sandbox, StepText},
    template::{TemplateProblem, Templates},
};
use serde_json::{Value, json};

use crate::{
    artifact_data::ArtifactData,
    clock::Clock,
    disk::SharedDisk,
    document::{self, Extent},
    journal::JournalKey,
    mask::Masks,
    plain_file,
    project::RunPaths,
    purse::Purse,
    run_meta::{self, RunMeta},
    user_key::RunKey,
};

/// Shared, immutable surroundings of a run.
#[derive(Clone)]
pub struct RunContext {
    pub disk: SharedDisk,
    pub clock: Arc<dyn Clock>,
    pub paths: RunPaths,
    pub meta: Arc<RunMeta>,
    pub frozen: Arc<Frozen>,
    pub templates: Arc<Templates>,
    /// How a supervisor is started: this program.
    pub supervisor: Arc<SupervisorCommand>,
    /// The user's secret for this run; `None` where there is none to be had.
    pub key: Option<RunKey>,
    /// Environment that agents' allow-lists choose from.
    pub environment: Arc<Vec<(String, String)>>,
    pub data: Arc<ArtifactData>,
    /// What attempts under way have spent so far.
    pub purse: Arc<Purse>,
    pub once: Arc<Once>,
}

/// What follows from the rest of the surroundings and is asked at every step: worked out by whoever asks first.
#[derive(Default)]
pub struct Once {
    /// What must not be shown of this run (`run_masks::of_engine`).
    pub masks: OnceLock<Masks>,
    /// The sandbox of what is judged by all agents (`sandbox::common`).
    pub sandbox: OnceLock<Sandbox>,
    /// Whether agents take part at all (`sandbox::has_agents`).
    pub agents: OnceLock<bool>,
}

impl RunContext {
    /// The key that this run's journal is written with.
    pub fn journal_key(&self) -> Option<JournalKey> {
        self.meta.journal_key(self.key.as_ref())
    }

    /// This program as the parent of orphans of this run.
    pub fn adopter(&self) -> Adopter {
        Adopter { program: self.supervisor.program.clone(), whose: self.paths.dir.clone() }
    }

    /// What the definition says about a step (by its template, in the present profile).
    pub fn text(&self, state: &State, step: &StepId) -> StepText {
        let template = state.steps.get(step).map(|own| own.template.clone());
        let texts = self.frozen.steps.get(&state.profile);
        template
            .and_then(|template| texts.and_then(|texts| texts.get(&template)))
            .cloned()
            .unwrap_or_default()
    }

    /// The run as templates see it, with what its accepted data files hold.
    pub fn document(&self, state: &State, extent: Extent<'_>) -> Value {
        let mut document = document::document(&self.frozen, &self.meta, state, extent);
        self.data.add(self, state, &mut document["artifacts"]);
        document
    }

    /// The document for templates of one step: the run, and the step's own point of view.
    pub fn step_document(&self, state: &State, step: &StepId) -> Value {
        let mut document = self.document(state, Extent::Around(step));
        let Some(own) = state.steps.get(step) else { return document };
        let text = self.text(state, step);
        let mut view = document::step(&self.frozen.plan, state, step, own);
        if let Value::Object(object) = &mut view {
            object.insert("data".to_owned(), json!(text.data));
            let timeout_ms = &document["steps"][step.as_str()]["timeout_ms"];
            object.insert("timeout_ms".to_owned(), timeout_ms.clone());
        }
        let item = self.item(state, step);
        let request = self.request(state, step, &document);
        if let Value::Object(object) = &mut document {
            object.insert("step".to_owned(), view);
            object.insert("request".to_owned(), json!(request));
            object.insert("item".to_owned(), item);
            // A prompt speaks of what is there now, not of what was there when the run began.
            object
                .insert("detected".to_owned(), json!(run_meta::detect(&self.meta.root, &self.frozen.detect)));
            object.insert("round".to_owned(), json!(own.round));
            object.insert("attempt".to_owned(), json!(own.attempts));
            object.insert("cause".to_owned(), document::cause(own.cause.as_deref()));
            object
                .insert("findings".to_owned(), json!(crate::prompt::demands(&self.frozen.plan, state, step)));
            object.insert(
                "answers".to_owned(),
                json!(
                    own.answers
                        .iter()
                        .map(|(asked, answer)| json!({"question": asked.question, "answer": answer}))
                        .collect::<Vec<_>>()
                ),
            );
        }
        document
    }

    /// What is asked for: the run's request, or the one that the nearest sub-run around a step has.
    fn request(&self, state: &State, step: &StepId, document: &Value) -> String {
        let mut owner = state.steps.get(step).and_then(|own| own.owner.clone());
        while let Some(id) = owner {
            if let Some(source) = self.text(state, &id).request {
                // A template that lint let through fails only on data that is not there: then the run's own counts.
                return self.render("request", &source, document).unwrap_or_else(|_| state.request.clone());
            }
            owner = state.steps.get(&id).and_then(|own| own.owner.clone());
        }
        state.request.clone()
    }

    /// The element of the fan-out's frozen list that a step works on; null outside fan-outs.
    fn item(&self, state: &State, step: &StepId) -> Value {
        let mut at = state.steps.get(step);
        while let Some(own) = at {
            if let (Some(owner), Some(key)) = (&own.owner, &own.item) {
                return self.item_of(state, owner, key).unwrap_or_else(|| json!({"id": key}));
            }
            at = own.owner.as_ref().and_then(|owner| state.steps.get(owner));
        }
        Value::Null
    }

    fn item_of(&self, state: &State, owner: &StepId, key: &str) -> Option<Value> {
        let fan_out = state.fan_outs.get(owner)?;
        let bytes = self.disk.read(&self.paths.list(owner.as_str(), &fan_out.hash.0)).ok()?;
        let list: Vec<Value> = serde_json::from_slice(&bytes).ok()?;
        let key_name = self.text(state, owner).list.map_or_else(|| "id".to_owned(), |list| list.key);
        list.into_iter().find(|item| {
            item.get(&key_name).and_then(text_of).as_deref() == Some(key)
                || text_of(item).as_deref() == Some(key)
        })
    }

    pub fn render(&self, name: &str, source: &str, context: &Value) -> Result<String, TemplateProblem> {
        if source.contains("{{") || source.contains("{%") {
            self.templates.render(name, source, context)
        } else {
            Ok(source.to_owned())
        }
    }

    /// Where this step works.
    pub fn workdir(&self, state: &State, step: &StepId) -> PathBuf {
        self.place(state, step).folder().clone()
    }
}

/// A scalar as text: ids may be written as numbers.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What stands for a file that is shown and not there.
pub fn hash_of_nothing() -> ContentHash {
    ContentHash("missing".to_owned())
}

pub fn hash_bytes(bytes: &[u8]) -> ContentHash {
    ContentHash(blake3::hash(bytes).to_hex().to_string())
}

/// The hash of a file of any size, without holding it.
pub fn hash_file(path: &Path) -> std::io::Result<ContentHash> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut plain_file::open(path)?, &mut hasher)?;
    Ok(ContentHash(hasher.finalize().to_hex().to_string()))
}

/// A path that stays below its folder: relative, no `..`, nothing absolute.
pub fn is_plain_relative(path: &Path) -> bool {
    !path.as_os_str().is_empty()
        && path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir))
}
