//! Small facts: the value of an expression, the list of a fan-out, the hash of the working tree.
//!
//! What is wrong with a file is a fact about it; a disk that fails is none: it ends the engine, and nobody is asked
//! or sent back to work because of it (J-54).

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
};

use gatewright_core::{
    effect::Effect,
    fact::Item,
    ids::{ArtifactName, ContentHash, DecisionId, GateId, StepId},
    input::Input,
    plan::{Condition, Kind},
    state::{Artifact, State},
};
use gatewright_workflow::{frozen::ListText, template::TemplateProblem};
use serde_json::Value;

use crate::{
    artifact_data::masks_of,
    atomic_file::{self, Durability},
    disk::FileKind,
    fault, list,
    perform::Arrival,
    run_context::{RunContext, hash_bytes, hash_of_nothing, is_plain_relative},
    streams::{commit::By, worktree},
    work,
};

/// The disk does not do what it should.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action} it", path.display())]
pub struct DiskFailure {
    action: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

/// Whether an error says something about the file itself, whoever made it so.
fn is_about_the_file(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
    )
}

/// The list of a fan-out that cannot be had: because of what it says, because it is not what was accepted, or
/// because of the disk.
pub(super) enum NoList {
    Unusable(String),
    Edited(ArtifactName, ContentHash),
    Disk(DiskFailure),
}

impl From<String> for NoList {
    fn from(problem: String) -> NoList {
        NoList::Unusable(problem)
    }
}

fn send(effect: &Effect, results: &Sender<Arrival>, input: Input) {
    let _ = results.send(Arrival { effect: Some(effect.clone()), input });
}

/// The value of an expression gate over what is recorded.
pub fn evaluate(
    context: &RunContext,
    state: &State,
    step: &StepId,
    gate: &GateId,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let definition = state.definition(&context.frozen.plan, step);
    let source = definition
        .and_then(|definition| definition.gates.iter().find(|own| own.id == *gate))
        .and_then(|own| match &own.condition {
            Condition::Expression { source } => Some(source.clone()),
            _ => None,
        });
    let value = match source {
        None => Err("there is no such expression".to_owned()),
        Some(source) => {
            let document = context.step_document(state, step);
            context.templates.holds(gate.as_str(), &source, &document).map_err(|problem| problem.to_string())
        }
    };
    send(effect, results, Input::Evaluated { step: step.clone(), gate: gate.clone(), value });
}

/// Reads the list of a fan-out and keeps a copy that never changes.
pub fn read_list(
    context: &RunContext,
    state: &State,
    step: &StepId,
    effect: &Effect,
    results: &Sender<Arrival>,
) -> Result<(), DiskFailure> {
    let (hash, items) = match list_of(context, state, step) {
        Ok((hash, items)) => (hash, Ok(items)),
        Err(NoList::Unusable(problem)) => (hash_bytes(b""), Err(problem)),
        Err(NoList::Edited(name, found)) => {
            send(effect, results, Input::ListEdited { step: step.clone(), name, found });
            return Ok(());
        }
        Err(NoList::Disk(failure)) => return Err(failure),
    };
    send(effect, results, Input::ListRead { step: step.clone(), hash, items });
    Ok(())
}

fn list_of(context: &RunContext, state: &State, step: &StepId) -> Result<(ContentHash, Vec<Item>), NoList> {
    let source = Source::of(context, state, step)?;
    if source.at_home.is_some() {
        // It may be the first step of a run in a worktree, which nobody has made yet.
        let by = By { step: step.clone(), attempt: 1 };
        worktree::ensure(context, &context.place(state, step), &by).map_err(|error| error.to_string())?;
    }
    let bytes = source.read(context)?;
    if let Some((name, accepted)) = &source.accepted
        && hash_bytes(&bytes) != *accepted
    {
        return Err(NoList::Edited(name.clone(), hash_bytes(&bytes)));
    }
    let (elements, hash) = source.elements(bytes)?;
    let items = source.items(context, &elements);
    let bytes = serde_json::to_vec(&elements).map_err(|error| error.to_string())?;
    let copy = context.paths.list(step.as_str(), &hash.0);
    let disk = context.disk.as_ref();
    let made = copy.parent().map_or(Ok(()), |folder| atomic_file::create_dir_durable(disk, folder));
    made.and_then(|()| atomic_file::replace(disk, &copy, &bytes, Durability::Durable))
        .map_err(|source| NoList::Disk(DiskFailure { action: "write", path: copy, source }))?;
    Ok((hash, items?))
}

/// Where the list of a fan-out comes from.
pub(super) struct Source {
    pub path: PathBuf,
    /// Of a published file: what was accepted.
    accepted: Option<(ArtifactName, ContentHash)>,
    /// Of a file of the repository that is looked for in a worktree: where the user has it.
    at_home: Option<PathBuf>,
    pub shape: ListText,
    author: Option<Artifact>,
}

impl Source {
    pub fn of(context: &RunContext, state: &State, step: &StepId) -> Result<Source, String> {
        let definition =
            state.definition(&context.frozen.plan, step).ok_or_else(|| "there is no such step".to_owned())?;
        let Kind::FanOut(fan_out) = &definition.kind else { return Err("it is no fan-out".to_owned()) };
        let name = fan_out.over.as_str();
        let at_home = name.strip_prefix("./").map(|rest| context.meta.root.join(rest));
        let (path, known) = match name.strip_prefix("./") {
            Some(rest) => (context.workdir(state, step).join(rest), None),
            None => (context.meta.run_dir.join(name), state.artifacts.get(&fan_out.over)),
        };
        let accepted = known.map(|known| (fan_out.over.clone(), known.hash.clone()));
        let shape = list::shape(context.text(state, step).list);
        let at_home = at_home.filter(|home| *home != path);
        Ok(Source { path, accepted, at_home, shape, author: known.cloned() })
    }

    pub fn read(&self, context: &RunContext) -> Result<Vec<u8>, NoList> {
        // One byte more than is allowed; the reader of YAML refuses it by name.
        let read =
            context.disk.read_range(&self.path, 0, (fault::yaml_limits().bytes as u64).saturating_add(1));
        read.map_err(|source| match (&self.accepted, source.kind()) {
            (Some((name, _)), ErrorKind::NotFound) => NoList::Edited(name.clone(), missing()),
            (_, kind) if is_about_the_file(kind) => {
                NoList::Unusable(format!("{}: {source}{}", self.path.display(), self.remedy(kind)))
            }
            _ => NoList::Disk(DiskFailure { action: "read", path: self.path.clone(), source }),
        })
    }

    /// A run in a worktree begins with the last commit: what is not committed is not there.
    fn remedy(&self, kind: ErrorKind) -> String {
        let home = self.at_home.as_ref().filter(|home| kind == ErrorKind::NotFound && home.exists());
        home.map_or_else(String::new, |home| {
            format!(
                "; {} is not in the commit that this run began with: commit it and run again, or copy it there and resume",
                home.display()
            )
        })
    }

    pub fn elements(&self, bytes: Vec<u8>) -> Result<(Vec<Value>, ContentHash), String> {
        list::elements(&self.shape, bytes)
    }

    pub fn items(&self, context: &RunContext, elements: &[Value]) -> Result<Vec<Item>, String> {
        let masks = self.author.as_ref().map(|author| masks_of(&context.paths, author)).unwrap_or_default();
        list::items(&self.shape, &masks, elements)
    }
}

/// Hashes what a decision shows beyond what the record knows, and puts its question into words.
pub fn bind(
    context: &RunContext,
    state: &State,
    decision: &DecisionId,
    effect: &Effect,
    results: &Sender<Arrival>,
) -> Result<(), DiskFailure> {
    let Some(pending) = state.decisions.get(decision) else { return Ok(()) };
    let workdir = context.workdir(state, &pending.decision.step);
    let words = pending.decision.to_render.then(|| {
        let document = context.step_document(state, &pending.decision.step);
        let text = context.render("decide", &pending.decision.question, &document)?;
        Ok((text.trim().to_owned(), names_to_show(context, &pending.decision.show, &document)?))
    });
    let (question, show) = match words {
        None => (None, pending.decision.show.clone()),
        Some(Ok((question, show))) => (Some(Ok(question)), show),
        Some(Err(problem)) => {
            let problem: TemplateProblem = problem;
            (Some(Err(problem.to_string())), Vec::new())
        }
    };
    let bound = shown(context, &workdir, &show)?;
    send(effect, results, Input::Bound { decision: decision.clone(), bound, question });
    Ok(())
}

/// The names that a plan has as templates, in words; one that ends in `?` only if there is such a file.
fn names_to_show(
    context: &RunContext,
    show: &[ArtifactName],
    document: &Value,
) -> Result<Vec<ArtifactName>, TemplateProblem> {
    let mut names = Vec::new();
    for name in show {
        let rendered = context.render("show", name.as_str(), document)?;
        let rendered = rendered.trim();
        let (plain, optional) = rendered.strip_suffix('?').map_or((rendered, false), |plain| (plain, true));
        let is_there = || is_plain_relative(Path::new(plain)) && context.meta.run_dir.join(plain).is_file();
        if !plain.is_empty() && (!optional || is_there()) {
            names.push(ArtifactName::new(plain));
        }
    }
    Ok(names)
}

/// What the shown things are now. A file that is not there has a hash of its own.
pub fn shown(
    context: &RunContext,
    workdir: &Path,
    show: &[ArtifactName],
) -> Result<BTreeMap<ArtifactName, ContentHash>, DiskFailure> {
    show.iter()
        .map(|name| {
            if name.as_str() == "tree" {
                return Ok((name.clone(), tree(context, workdir)));
            }
            let path = context.meta.run_dir.join(name.as_str());
            // A pipe in its place would be read for ever.
            if context.disk.stat(&path).is_ok_and(|stat| stat.kind == FileKind::Other) {
                return Ok((name.clone(), missing()));
            }
            let hash = match context.disk.read(&path) {
                Ok(bytes) => hash_bytes(&bytes),
                Err(error) if is_about_the_file(error.kind()) => missing(),
                Err(source) => return Err(DiskFailure { action: "read", path, source }),
            };
            Ok((name.clone(), hash))
        })
        .collect()
}

/// The hash of a file that is not there.
pub(super) fn missing() -> ContentHash {
    hash_of_nothing()
}

/// What the working tree is now.
pub fn tree(context: &RunContext, workdir: &Path) -> ContentHash {
    ContentHash(work::tree_hash(workdir, &context.meta.run_dir))
}
