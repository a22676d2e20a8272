//! Locks of files that die with their process. Whoever holds one hands it to the git it starts, so that a
//! git that outlives its engine keeps it.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Waits for its turn.
pub fn take(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    file.lock()?;
    Ok(file)
}

/// `None`: somebody else has it.
pub fn try_take(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}
