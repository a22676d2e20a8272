//! `run.json`: what is known of a run before its journal, and never changes afterwards.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gatewright_core::event::Beginning;
use serde::{Deserialize, Serialize};

use crate::{
    atomic_file::{self, Durability},
    disk::Disk,
    journal::JournalKey,
    project::RunPaths,
    run_context::is_plain_relative,
    user_key::RunKey,
};

pub const META_VERSION: u32 = 1;

const PURPOSE: &str = "run.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMeta {
    pub version: u32,
    pub id: String,
    pub workflow: String,
    /// The repository.
    pub root: PathBuf,
    /// The run directory inside the repository, absolute.
    pub run_dir: PathBuf,
    pub request: String,
    pub created_at_ms: u64,
    /// Digest of the frozen workflow the run starts with.
    pub digest: String,
    /// It works in a worktree of its own.
    #[serde(default)]
    pub isolated: bool,
    /// The branch that the checkout was on when the run began: where `finish` may bring its work.
    #[serde(default)]
    pub base_branch: Option<String>,
    /// Started with `--detach`: whoever continues it does so in the background.
    pub detached: bool,
    /// What was typed to start it, so that `resume --adopt` can read the definition again.
    #[serde(default)]
    pub started_with: StartedWith,
    /// What was there already when it began, and how far it goes.
    #[serde(default, skip_serializing_if = "Beginning::is_plain")]
    pub beginning: Beginning,
    /// The run that is over and whose folder this one goes on in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continued>,
    /// What its workflow keeps of the folder that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<serde_json::Value>,
    /// Where its worktree is, relative to the repository: both may be moved together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
    /// That is where its workflow wants it, and not among the engine's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// The name under which people find its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What was around the run when it began.
    #[serde(default)]
    pub surroundings: Option<Surroundings>,
    /// The user's seal over everything else here. Absent: the run is of before there were keys, or somebody
    /// took it away; then nothing of the run is authenticated, and that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// A run that is over, as far as the one after it has to tell of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continued {
    pub run: String,
    /// What people decided in it and before it, as the document has decisions.
    #[serde(default)]
    pub decisions: Vec<serde_json::Value>,
}

/// What a run found when it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The branch that was checked out.
    #[serde(default)]
    pub branch: Option<String>,
    /// The commit that was checked out.
    #[serde(default)]
    pub commit: Option<String>,
    /// Of the files that the workflow looks for, by name: those that are there.
    #[serde(default)]
    pub detected: BTreeMap<String, Vec<String>>,
    pub looked_at_ms: u64,
}

impl Surroundings {
    pub fn look(root: &Path, wanted: &BTreeMap<String, Vec<String>>, now_ms: u64) -> Surroundings {
        Surroundings {
            branch: crate::work::branch(root),
            commit: gatewright_attempts::Git::at(root).text(&["rev-parse", "-q", "--verify", "HEAD"]).ok(),
            detected: detect(root, wanted),
            looked_at_ms: now_ms,
        }
    }
}

/// Those of the files that are there now.
pub fn detect(root: &Path, wanted: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let there = |path: &&String| is_plain_relative(Path::new(path)) && root.join(path).is_file();
    wanted.iter().map(|(name, paths)| (name.clone(), paths.iter().filter(there).cloned().collect())).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedWith {
    pub workflow: String,
    #[serde(default)]
    pub profile: Option<String>,
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    #[error("{}: cannot be read", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: is not a run.json of version {META_VERSION}", path.display())]
    Format { path: PathBuf, source: serde_json::Error },
    #[error("{}: was changed by somebody else: its seal does not fit what it says. Restore it from a copy", path.display())]
    Forged { path: PathBuf },
    #[error("{}: cannot be written", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl RunMeta {
    pub fn read(disk: &dyn Disk, paths: &RunPaths) -> Result<RunMeta, MetaError> {
        let path = paths.meta();
        let bytes = disk.read(&path).map_err(|source| MetaError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&bytes).map_err(|source| MetaError::Format { path, source })
    }

    /// With the user's seal.
    pub fn sealed(mut self, key: &RunKey) -> RunMeta {
        self.seal = Some(key.seal(PURPOSE, &[&self.sealed_part()]));
        self
    }

    fn sealed_part(&self) -> Vec<u8> {
        let open = RunMeta { seal: None, ..self.clone() };
        serde_json::to_vec(&open).unwrap_or_default()
    }

    /// Refuses a file that somebody else changed. Without a seal or a key nothing can be said.
    pub fn verify(&self, paths: &RunPaths, key: Option<&RunKey>) -> Result<(), MetaError> {
        match (&self.seal, key) {
            (Some(seal), Some(key)) if !key.holds(PURPOSE, &[&self.sealed_part()], seal) => {
                Err(MetaError::Forged { path: paths.meta() })
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// The key of this run's journal, if its records are sealed.
    pub fn journal_key(&self, key: Option<&RunKey>) -> Option<JournalKey> {
        self.seal.as_ref().and(key).map(RunKey::journal)
    }

    pub fn write(&self, disk: &dyn Disk, paths: &RunPaths) -> Result<(), MetaError> {
        write_json(disk, &paths.meta(), self)
    }
}

/// Writes a small JSON file durably.
pub fn write_json(disk: &dyn Disk, path: &Path, value: &impl Serialize) -> Result<(), MetaError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| MetaError::Format { path: path.to_owned(), source })?;
    atomic_file::replace(disk, path, &bytes, Durability::Durable)
        .map_err(|source| MetaError::Write { path: path.to_owned(), source })
}
