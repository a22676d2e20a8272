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
    disk::{Disk, FileKind},
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
    /// A read-back that failed is tried so often, and the write of a projection (S1-21).
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
        let disk = run_dir_of(context)?;
        let disk = disk.as_ref();
        let mut changed = false;
        for (name, artifact) in &state.artifacts {
            let path = context.meta.run_dir.join(name.as_str());
            if no_way_out(context, disk, &path)? {
                self.foreign.push(name.as_str().to_owned());
            }
            let known = self.ledger.artifacts.get(name.as_str());
            if known == Some(&artifact.hash) && (is_file(disk, &path) || Defence::Published.is_off()) {
                continue;
            }
            let source = artifact_data::place(context, name, artifact);
            let bytes = context.disk.read(&source).map_err(|error| PublishError::Io {
                action: "read it",
                path: source.clone(),
                source: error,
            })?;
            // A file that is as accepted already (written to its place by the agent) stays.
            if hash_at(disk, &path).as_ref() != Some(&artifact.hash) {
                self.write(context, disk, &path, &bytes, Durability::Durable)?;
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
            no_way_out(context, disk, &path)?;
            let ours = self.ledger.artifacts.remove(&name);
            if hash_at(disk, &path) == ours {
                let removed = disk.remove_file(&path);
                removed
                    .and_then(|()| disk.sync_dir(directory_of(&path)))
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
        let bytes = run_dir_of(context)?.read(&from).map_err(io("read it", &from))?;
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

    /// Writes every projection whose bytes differ from what is there. Says which one could not be written, if there is
    /// one; the others are.
    pub fn projections(
        &mut self,
        context: &RunContext,
        state: &State,
    ) -> Result<Option<PublishError>, PublishError> {
        if context.frozen.projections.is_empty() {
            return Ok(None);
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
        let disk = match run_dir_of(context) {
            Ok(disk) => disk,
            Err(unwritten) => return Ok(Some(unwritten)),
        };
        let (mut changed, mut unwritten) = (false, None);
        for (name, bytes) in wanted {
            match self.project(context, disk.as_ref(), &name, bytes) {
                Ok(written) => changed |= written,
                Err(problem) => unwritten = unwritten.or(Some(problem)),
            }
        }
        if changed {
            self.ledger.write(context, Durability::Rebuildable)?;
        }
        Ok(unwritten)
    }

    /// Projections that somebody else changed while we looked after them; each is told once.
    pub fn take_foreign(&mut self) -> Vec<String> {
        std::mem::take(&mut self.foreign)
    }

    fn project(
        &mut self,
        context: &RunContext,
        disk: &dyn Disk,
        name: &str,
        bytes: Option<Vec<u8>>,
    ) -> Result<bool, PublishError> {
        // What is not wanted and was never ours is an artifact of the same name, or a person's.
        if bytes.is_none() && !self.ledger.projections.contains_key(name) {
            return Ok(false);
        }
        let path = context.meta.run_dir.join(name);
        if no_way_out(context, disk, &path)? {
            self.foreign.push(name.to_owned());
        }
        let found = is_file(disk, &path).then(|| disk.read(&path).ok()).flatten();
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
                self.write(context, disk, &path, &bytes, Durability::Rebuildable)?;
                self.ledger.projections.insert(name.to_owned(), hash_bytes(&bytes));
            }
            None => {
                let mut removed = disk.remove_file(&path);
                for _ in 1..self.tries_max {
                    if removed.is_err() {
                        removed = disk.remove_file(&path);
                    }
                }
                removed.map_err(|source| PublishError::Io { action: "remove it", path, source })?;
                self.ledger.projections.remove(name);
            }
        }
        Ok(true)
    }

    /// Writes a file and reads it back (S1-20, S1-29).
    fn write(
        &self,
        context: &RunContext,
        disk: &dyn Disk,
        path: &Path,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), PublishError> {
        // Somebody put a link in the way since it was looked for.
        let clear = || no_way_out(context, disk, path).map(|_| ());
        write_and_read_back(disk, path, bytes, durability, self.tries_max, clear)
    }
}

/// At most so many tries. What cannot be derived anew is not tried again after a failed write: of what is on the disk
/// then nobody can be sure.
fn write_and_read_back(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
    tries_max: u32,
    clear: impl Fn() -> Result<(), PublishError>,
) -> Result<(), PublishError> {
    let mut written = Err(PublishError::ReadBack { path: path.to_owned() });
    for _ in 0..tries_max {
        let folder = path.parent().unwrap_or(path);
        let made = match durability {
            Durability::Durable => atomic_file::create_dir_durable(disk, folder),
            Durability::Rebuildable => disk.create_dir_all(folder),
        };
        let Err(source) = made.and_then(|()| atomic_file::replace(disk, path, bytes, durability)) else {
            if disk.read(path).is_ok_and(|found| found == bytes) {
                return Ok(());
            }
            continue;
        };
        let is_link = is_about_a_link(&source);
        written = Err(PublishError::Io { action: "write it", path: path.to_owned(), source });
        if is_link {
            clear()?;
        } else if durability == Durability::Durable {
            break;
        }
    }
    written
}

/// What lies in the run directory, reached without any link on the way from the repository: agents can write there.
fn run_dir_of(context: &RunContext) -> Result<Box<dyn Disk + '_>, PublishError> {
    let folder = anchor(context);
    let io = |source| PublishError::Io { action: "open it", path: folder.to_owned(), source };
    context.disk.below(folder).map_err(io)
}

/// The folder that is reached as the user would.
fn anchor(context: &RunContext) -> &Path {
    let (root, run_dir) = (&context.meta.root, &context.meta.run_dir);
    let inside = run_dir != root && run_dir.starts_with(root);
    if inside { root } else { directory_of(run_dir) }
}

fn is_about_a_link(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
}

/// A link in its place is not the file that we put there.
fn is_file(disk: &dyn Disk, path: &Path) -> bool {
    disk.stat(path).is_ok_and(|stat| stat.kind == FileKind::File)
}

/// Of a file; a pipe in its place would be read for ever.
fn hash_at(disk: &dyn Disk, path: &Path) -> Option<ContentHash> {
    let bytes = is_file(disk, path).then(|| disk.read(path).ok()).flatten()?;
    Some(hash_bytes(&bytes))
}

/// Takes links away that stand in the place of folders between the run directory and a file of ours: nothing is written
/// below them. Says whether there was one.
fn no_way_out(context: &RunContext, disk: &dyn Disk, path: &Path) -> Result<bool, PublishError> {
    let (anchor, run_dir) = (anchor(context), &context.meta.run_dir);
    let below: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != anchor && folder.starts_with(anchor))
        .collect();
    for folder in below.into_iter().rev() {
        // What is not there leads nowhere.
        let Ok(stat) = disk.stat(folder) else { return Ok(false) };
        if stat.kind != FileKind::Other {
            continue;
        }
        if run_dir.starts_with(folder) {
            return Err(PublishError::Led { path: folder.to_owned() });
        }
        disk.remove_file(folder).map_err(|source| PublishError::Io {
            action: "take the link away",
            path: folder.to_owned(),
            source,
        })?;
        return Ok(true);
    }
    Ok(false)
}

/// Files of ours in the run directory that somebody else changed or removed: `(path, what)`.
pub fn edited_by_hand(context: &RunContext) -> Vec<(String, &'static str)> {
    let ledger = Ledger::read(context);
    let disk = run_dir_of(context).ok();
    let mut found = Vec::new();
    for (kind, files) in [("artifact", &ledger.artifacts), ("projection", &ledger.projections)] {
        for (name, hash) in files {
            let now = disk.as_ref().and_then(|disk| hash_at(disk.as_ref(), &context.meta.run_dir.join(name)));
            if now.as_ref() != Some(hash) {
                found.push((name.clone(), kind));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;

    fn written(disk: &SimulatedDisk, durability: Durability) -> Result<(), PublishError> {
        write_and_read_back(disk, Path::new("/run/status.json"), b"{}", durability, 3, || Ok(()))
    }

    #[test]
    fn s1_21_s1_50_the_write_of_a_projection_is_tried_three_times() {
        let fresh = || {
            let disk = SimulatedDisk::new(1);
            disk.create_dir_all(Path::new("/run")).unwrap();
            disk
        };
        let disk = fresh();
        let before = disk.counts().operations;
        written(&disk, Durability::Rebuildable).unwrap();
        for operation in before + 1..=disk.counts().operations {
            let disk = fresh();
            disk.fail_at(operation);
            written(&disk, Durability::Rebuildable).unwrap();
            assert!(disk.has_failed(), "{operation}");
            assert_eq!(disk.peek(Path::new("/run/status.json")).unwrap(), b"{}", "{operation}");
        }
        // Not for ever, and the error says which file.
        let disk = fresh();
        disk.halt_at(before + 1);
        let error = written(&disk, Durability::Rebuildable).unwrap_err().to_string();
        assert_eq!(error, "/run/status.json: cannot write it");
        // What counts is not written over a failure.
        let disk = fresh();
        disk.fail_at(before + 2);
        assert!(written(&disk, Durability::Durable).is_err());
    }
}
