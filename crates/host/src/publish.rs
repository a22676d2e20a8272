//! The run directory as people and agents see it: artifacts that count, under their published names,
//! and projections. All of it derived; what somebody else wrote there is noticed, never trusted.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use gatewright_attempts::Defence;
use gatewright_core::{ids::ContentHash, state::State};
use gatewright_workflow::projection::{self, ProjectionProblem};
use serde::{Deserialize, Serialize};

use crate::{
    artifact_data,
    atomic_file::{self, Durability, directory_of},
    disk::FileKind,
    document::{self, Extent},
    run_context::{RunContext, hash_bytes},
};

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("{}: cannot {action}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("a projection cannot be made")]
    Projection {
        #[from]
        source: ProjectionProblem,
    },
    #[error("{}: was written but does not read back the same", path.display())]
    ReadBack { path: PathBuf },
    #[error("{}: is a link; the run directory must be a folder. Remove the link, then resume", path.display())]
    Led { path: PathBuf },
    #[error("{}: was changed again while it was being adopted; nothing was recorded", path.display())]
    ChangedAgain { path: PathBuf },
}

/// What we last wrote into the run directory: relative path → hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    pub version: u32,
    pub artifacts: BTreeMap<String, ContentHash>,
    pub projections: BTreeMap<String, ContentHash>,
}

impl Ledger {
    pub fn read(context: &RunContext) -> Ledger {
        let stored = context.disk.read(&context.paths.published()).ok();
        stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self, context: &RunContext, durability: Durability) -> Result<(), PublishError> {
        let path = context.paths.published();
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        atomic_file::replace(context.disk.as_ref(), &path, &bytes, durability)
            .map_err(|source| PublishError::Io { action: "write it", path, source })
    }
}

/// Keeps the run directory equal to the state.
pub struct Publisher {
    ledger: Ledger,
    /// A read-back that failed is tried so often (S1-21).
    tries_max: u32,
    /// Projections that this process wrote or found right: only of these can it say that somebody else
    /// changed them.
    seen: BTreeSet<String>,
    /// Projections that somebody else changed since.
    foreign: Vec<String>,
}

impl Publisher {
    pub fn open(context: &RunContext) -> Publisher {
        Publisher {
            ledger: Ledger { version: 1, ..Ledger::read(context) },
            tries_max: 3,
            seen: BTreeSet::new(),
            foreign: Vec::new(),
        }
    }

    /// Puts artifacts that count at their places and takes away what no longer does. Durably, and before the
    /// ledger says so: else a power cut leaves half a file that cannot be told from a person's edit.
    pub fn artifacts(&mut self, context: &RunContext, state: &State) -> Result<(), PublishError> {
        let mut changed = false;
        for (name, artifact) in &state.artifacts {
            let path = context.meta.run_dir.join(name.as_str());
            if no_way_out(context, &path)? {
                self.foreign.push(name.as_str().to_owned());
            }
            let known = self.ledger.artifacts.get(name.as_str());
            if known == Some(&artifact.hash) && (is_file(context, &path) || Defence::Published.is_off()) {
                continue;
            }
            let source = artifact_data::place(context, name, artifact);
            {
                let bytes = context.disk.read(&source).map_err(|error| PublishError::Io {
                    action: "read it",
                    path: source.clone(),
                    source: error,
                })?;
                // A file that is as accepted already (written to its place by the agent) stays.
                if hash_at(context, &path).as_ref() != Some(&artifact.hash) {
                    self.write(context, &path, &bytes, Durability::Durable)?;
                }
            }
            self.ledger.artifacts.insert(name.as_str().to_owned(), artifact.hash.clone());
            changed = true;
        }
        let gone: Vec<String> = self
            .ledger
            .artifacts
            .keys()
            .filter(|name| !state.artifacts.contains_key(name.as_str()))
            .cloned()
            .collect();
        for name in gone {
            let path = context.meta.run_dir.join(&name);
            no_way_out(context, &path)?;
            let ours = self.ledger.artifacts.remove(&name);
            if hash_at(context, &path) == ours {
                let removed = context.disk.remove_file(&path);
                removed
                    .and_then(|()| context.disk.sync_dir(directory_of(&path)))
                    .map_err(|source| PublishError::Io { action: "remove it", path: path.clone(), source })?;
            }
            changed = true;
        }
        if changed { self.ledger.write(context, Durability::Durable) } else { Ok(()) }
    }

    /// Keeps a person's version of an artifact with the run, before the record says that it counts.
    pub fn keep_adopted(
        &self,
        context: &RunContext,
        name: &str,
        hash: &ContentHash,
    ) -> Result<(), PublishError> {
        let (from, to) = (context.meta.run_dir.join(name), context.paths.adopted(&hash.0));
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| PublishError::Io { action, path, source }
        };
        let bytes = context.disk.read(&from).map_err(io("read it", &from))?;
        if hash_bytes(&bytes) != *hash {
            return Err(PublishError::ChangedAgain { path: from });
        }
        let made = to
            .parent()
            .map_or(Ok(()), |folder| atomic_file::create_dir_durable(context.disk.as_ref(), folder));
        made.and_then(|()| atomic_file::replace(context.disk.as_ref(), &to, &bytes, Durability::Durable))
            .map_err(io("write it", &to))
    }

    /// Puts the accepted bytes of one artifact back, whatever is there.
    pub fn restore(&mut self, name: &str) {
        self.ledger.artifacts.remove(name);
    }

    /// Writes every projection whose bytes differ from what is there.
    pub fn projections(&mut self, context: &RunContext, state: &State) -> Result<(), PublishError> {
        if context.frozen.projections.is_empty() {
            return Ok(());
        }
        let mut document = context.document(state, Extent::All);
        document::hide_errands(&context.meta, &mut document);
        let mut wanted: BTreeMap<String, Option<Vec<u8>>> = BTreeMap::new();
        for projection in &context.frozen.projections {
            for file in projection::project(projection, &document, &context.templates)? {
                wanted.insert(file.path, file.bytes);
            }
        }
        let gone: Vec<String> =
            self.ledger.projections.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
        for path in gone {
            wanted.insert(path, None);
        }
        let mut changed = false;
        for (name, bytes) in wanted {
            changed |= self.project(context, &name, bytes)?;
        }
        if changed { self.ledger.write(context, Durability::Rebuildable) } else { Ok(()) }
    }

    /// Projections that somebody else changed while we looked after them; each is told once.
    pub fn take_foreign(&mut self) -> Vec<String> {
        std::mem::take(&mut self.foreign)
    }

    fn project(
        &mut self,
        context: &RunContext,
        name: &str,
        bytes: Option<Vec<u8>>,
    ) -> Result<bool, PublishError> {
        // What is not wanted and was never ours is an artifact of the same name, or a person's.
        if bytes.is_none() && !self.ledger.projections.contains_key(name) {
            return Ok(false);
        }
        let path = context.meta.run_dir.join(name);
        if no_way_out(context, &path)? {
            self.foreign.push(name.to_owned());
        }
        let found = is_file(context, &path).then(|| context.disk.read(&path).ok()).flatten();
        let known = self.ledger.projections.get(name);
        if self.seen.contains(name)
            && let Some(found) = &found
            && known.is_some_and(|known| hash_bytes(found) != *known)
        {
            self.foreign.push(name.to_owned());
        }
        self.seen.insert(name.to_owned());
        let is_foreign = self.foreign.iter().any(|foreign| foreign == name);
        if found == bytes || (is_foreign && Defence::Projections.is_off()) {
            let hash = bytes.map(|bytes| hash_bytes(&bytes));
            let known = self.ledger.projections.get(name) == hash.as_ref();
            if !known {
                match hash {
                    Some(hash) => self.ledger.projections.insert(name.to_owned(), hash),
                    None => self.ledger.projections.remove(name),
                };
            }
            return Ok(!known);
        }
        match bytes {
            Some(bytes) => {
                self.write(context, &path, &bytes, Durability::Rebuildable)?;
                self.ledger.projections.insert(name.to_owned(), hash_bytes(&bytes));
            }
            None => {
                context.disk.remove_file(&path).map_err(|source| PublishError::Io {
                    action: "remove it",
                    path,
                    source,
                })?;
                self.ledger.projections.remove(name);
            }
        }
        Ok(true)
    }

    /// Writes a file and reads it back (S1-20, S1-29).
    fn write(
        &self,
        context: &RunContext,
        path: &Path,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), PublishError> {
        if let Some(folder) = path.parent() {
            let made = match durability {
                Durability::Durable => atomic_file::create_dir_durable(context.disk.as_ref(), folder),
                Durability::Rebuildable => context.disk.create_dir_all(folder),
            };
            made.map_err(|source| PublishError::Io { action: "create it", path: folder.to_owned(), source })?;
        }
        for _ in 0..self.tries_max {
            atomic_file::replace(context.disk.as_ref(), path, bytes, durability)
                .map_err(|source| PublishError::Io { action: "write it", path: path.to_owned(), source })?;
            if context.disk.read(path).is_ok_and(|found| found == bytes) {
                return Ok(());
            }
        }
        Err(PublishError::ReadBack { path: path.to_owned() })
    }
}

/// A link in its place is not the file that we put there.
fn is_file(context: &RunContext, path: &Path) -> bool {
    context.disk.stat(path).is_ok_and(|stat| stat.kind == FileKind::File)
}

/// Of a file; a pipe in its place would be read for ever.
fn hash_at(context: &RunContext, path: &Path) -> Option<ContentHash> {
    let bytes = is_file(context, path).then(|| context.disk.read(path).ok()).flatten()?;
    Some(hash_bytes(&bytes))
}

/// Takes links away that stand in the place of folders between the run directory and a file of ours: what is written
/// below them would land wherever they lead. Says whether there was one.
fn no_way_out(context: &RunContext, path: &Path) -> Result<bool, PublishError> {
    let run_dir = &context.meta.run_dir;
    let mut found = false;
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(run_dir)) {
        let is_link = context.disk.stat(folder).is_ok_and(|stat| stat.kind == FileKind::Other);
        if is_link && folder == run_dir {
            return Err(PublishError::Led { path: folder.to_owned() });
        }
        if is_link {
            let removed = context.disk.remove_file(folder);
            removed.map_err(|source| PublishError::Io {
                action: "take the link away",
                path: folder.to_owned(),
                source,
            })?;
            found = true;
        }
    }
    Ok(found)
}

/// Files of ours in the run directory that somebody else changed or removed: `(path, what)`.
pub fn edited_by_hand(context: &RunContext) -> Vec<(String, &'static str)> {
    let ledger = Ledger::read(context);
    let mut found = Vec::new();
    for (kind, files) in [("artifact", &ledger.artifacts), ("projection", &ledger.projections)] {
        for (name, hash) in files {
            if hash_at(context, &context.meta.run_dir.join(name)).as_ref() != Some(hash) {
                found.push((name.clone(), kind));
            }
        }
    }
    found
}
