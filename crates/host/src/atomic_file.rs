//! Whole files that are there completely or not at all. Must not know what is in them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Disk;

/// What a power cut may do to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: bytes and name are on the disk before the call returns.
    Durable,
    /// Anything: the file is derived and is written again from the journal.
    Rebuildable,
}

/// Whether our file became the one under the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWins {
    Created,
    /// Another was there before; it was left as it is.
    AlreadyThere,
}

/// Replaces the file at `path`, or creates it. A reader sees the old bytes or the new ones.
pub fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let temporary = write_temporary(disk, path, bytes, durability)?;
    let renamed = disk.rename(&temporary, path);
    remove_on_error(disk, &temporary, renamed)?;
    match durability {
        Durability::Durable => disk.sync_dir(directory_of(path)),
        Durability::Rebuildable => Ok(()),
    }
}

/// Creates the file at `path` unless there is one; of several creators exactly one wins. Durable either way.
pub fn create_first_wins(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<FirstWins> {
    let temporary = write_temporary(disk, path, bytes, Durability::Durable)?;
    let outcome = match disk.link(&temporary, path) {
        Ok(()) => Ok(FirstWins::Created),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(FirstWins::AlreadyThere),
        Err(error) => Err(error),
    };
    // A temporary name that stays behind is waste, not a fault: readers skip it.
    let _ = disk.remove_file(&temporary);
    let outcome = outcome?;
    // Also for the loser: it will rely on the winner's file, whose creator may have died before its sync.
    disk.sync_dir(directory_of(path))?;
    Ok(outcome)
}

/// Creates a directory and its missing parents and makes all their names durable.
pub fn create_dir_durable(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut directory = path;
    while !disk.exists(directory)? {
        missing.push(directory);
        match directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => directory = parent,
            Some(_) | None => break,
        }
    }
    disk.create_dir_all(path)?;
    for created in missing.iter().rev() {
        disk.sync_dir(directory_of(created))?;
    }
    Ok(())
}

/// Whether a name in a directory is one of ours that was never finished.
pub fn is_temporary(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".tmp-")
}

/// The directory that holds the name of `path`.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

fn write_temporary(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> io::Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // A process with our number that died may have left a name behind: then the next number is taken.
    for _ in 0..1_000 {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(format!(".tmp-{}-{count}-", std::process::id()));
        name.push(path.file_name().unwrap_or_default());
        let temporary = directory_of(path).join(name);
        let mut file = match disk.create_new(&temporary) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let written = file.write_all(bytes).and_then(|()| match durability {
            Durability::Durable => file.sync_data(),
            Durability::Rebuildable => Ok(()),
        });
        drop(file);
        return remove_on_error(disk, &temporary, written).map(|()| temporary);
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "a thousand temporary names are taken; remove .tmp-* here",
    ))
}

fn remove_on_error(disk: &dyn Disk, temporary: &Path, result: io::Result<()>) -> io::Result<()> {
    if result.is_err() {
        let _ = disk.remove_file(temporary);
    }
    result
}
