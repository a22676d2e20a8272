//! Work that was there before a run, or that somebody handed in: kept with the run, so that what it was
//! can still be seen when its files have been written anew.

use std::{
    io,
    path::{Path, PathBuf},
};

/// More is no folder of a run.
const FILES_MAX: usize = 10_000;
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Copies the plain files of a folder.
pub fn keep(folder: &Path, to: &Path) -> io::Result<()> {
    let names = files(folder)?;
    names.iter().try_for_each(|name| keep_one(folder, name, to))
}

/// Copies one file, under the same name.
pub fn keep_one(folder: &Path, name: &Path, to: &Path) -> io::Result<()> {
    let target = to.join(name);
    std::fs::create_dir_all(target.parent().unwrap_or(to))?;
    std::fs::copy(folder.join(name), &target)?;
    std::fs::File::open(&target)?.sync_all()
}

/// Writes one that was not there.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)?;
    std::fs::File::open(path)?.sync_all()
}

/// The plain files below a folder, relative to it, in order. No link is followed.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inside) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let (name, data) = (inside.join(entry.file_name()), entry.metadata()?);
            if data.is_dir() {
                open.push(name);
            } else if data.is_file() && data.len() <= FILE_BYTES_MAX {
                found.push(name);
            }
            if found.len() + open.len() > FILES_MAX {
                return Err(io::Error::other(format!("there are more than {FILES_MAX} files in it")));
            }
        }
    }
    found.sort();
    Ok(found)
}
