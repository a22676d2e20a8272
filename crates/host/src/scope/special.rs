//! What is neither file nor folder nor link in a tree: pipes, sockets, devices, and repositories inside it. Git passes
//! over them, so they are looked for where it found files. Must not know git, pictures or roles.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use super::name;

/// Names that are looked at in folders that git did not name.
const NAMES_MAX: usize = 100_000;

/// What one look found, by paths from the root of the tree.
#[derive(Debug, Default)]
pub struct Seen {
    /// With a mark that tells one from another that took its name.
    pub special: Vec<(String, String)>,
    /// Folders that lie beside those that were looked into.
    pub folders: Vec<String>,
    /// Files and links with the name that was asked for.
    pub named: Vec<String>,
    /// What makes a folder a repository of its own, the root apart.
    pub repositories: Vec<String>,
}

/// Looks into these folders, not below them. `known` are those that are looked into anyway.
pub fn look(root: &Path, folders: &[String], known: &BTreeSet<String>, wanted: &str) -> Seen {
    let mut seen = Seen::default();
    let mut names = 0;
    for folder in folders {
        for entry in fs::read_dir(root.join(name::path_of(folder))).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let is_file = kind.is_file() || kind.is_symlink();
            if entry.file_name() == ".git" {
                if !folder.is_empty() {
                    seen.repositories.push(format!("{folder}/.git"));
                }
                continue;
            }
            if is_file && entry.file_name() != wanted {
                continue;
            }
            let name = name::of_bytes(entry.file_name().as_encoded_bytes());
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if is_file {
                seen.named.push(path);
                continue;
            }
            if !kind.is_dir() {
                let id =
                    entry.metadata().map(|data| (data.dev(), data.ino(), data.rdev())).unwrap_or_default();
                seen.special.push((path, format!("{}-{}-{}-{}", word(kind), id.0, id.1, id.2)));
            } else if !known.contains(&path) && names < NAMES_MAX {
                names += 1;
                seen.folders.push(path);
            }
        }
    }
    seen
}

fn word(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    }
}
