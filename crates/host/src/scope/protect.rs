//! Files that no role may touch although pictures do not show them: ignored ones, and git's own.
//!
//! Ignored files are found where git lists them, not inside folders that are ignored as a whole, unless a
//! pattern begins with the name of such a folder. Must not know roles or runs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gatewright_workflow::globs::{Bare, Globs};

use super::{
    name,
    picture::{Picture, Pictures, common_git_dir, git_dir},
};
use crate::plain_file;

/// More protected files than this are not looked at one by one.
const FILES_MAX: usize = 20_000;
/// Larger files are told by size and time.
const CONTENT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The file that leads from a worktree to its repository.
pub(super) const LINK: &str = ".git";
/// How the mark of a link begins.
pub(super) const LINK_TO: &str = "link to ";

/// Path to a mark of its content.
pub type Marks = BTreeMap<String, String>;

/// What is protected in one folder.
#[derive(Debug)]
pub struct Protected {
    globs: Globs,
    folder: PathBuf,
    /// Run directories: their files have ledgers of their own.
    except: Vec<PathBuf>,
}

impl Protected {
    pub fn new(folder: &Path, patterns: &[String], except: Vec<PathBuf>) -> Protected {
        Protected { globs: Globs::new(patterns, Bare::Anywhere), folder: folder.to_owned(), except }
    }

    pub fn contains(&self, path: &str) -> bool {
        self.globs.contains(path) && !self.is_excepted(&self.folder.join(name::path_of(path)))
    }

    fn is_excepted(&self, path: &Path) -> bool {
        self.except.iter().any(|other| path.starts_with(other))
    }

    /// The protected files as they are now.
    pub fn marks(&self, pictures: &Pictures, picture: &Picture) -> Marks {
        let mut marks = Marks::new();
        for root in self.globs.roots() {
            if root.is_empty() || root == ".git" || root.starts_with(".git/") {
                continue;
            }
            self.walk(&self.folder.join(&root), &root, &mut marks);
        }
        for name in pictures.ignored() {
            self.mark(&self.folder.join(name::path_of(&name)), &name, &mut marks);
        }
        for (name, mark) in picture.ignored_special.iter().filter(|(name, _)| self.contains(name)) {
            marks.insert(name.clone(), mark.clone());
        }
        self.of_git(&mut marks);
        marks
    }

    /// In a worktree `.git` is a file, and what it stands for is elsewhere.
    fn of_git(&self, marks: &mut Marks) {
        let link = self.folder.join(".git");
        if fs::symlink_metadata(&link).is_ok_and(|data| !data.is_dir()) {
            marks.extend(mark_of(&link).map(|mark| (LINK.to_owned(), mark)));
        }
        let (own, common) = (git_dir(&self.folder), common_git_dir(&self.folder));
        for dir in [own, common].into_iter().flatten() {
            for name in ["config", "config.worktree", "hooks", "info"] {
                self.walk(&dir.join(name), &format!(".git/{name}"), marks);
            }
        }
    }

    pub(super) fn walk(&self, path: &Path, name: &str, marks: &mut Marks) {
        let Ok(data) = fs::symlink_metadata(path) else { return };
        if self.is_excepted(path) || marks.len() >= FILES_MAX {
            return;
        }
        if !data.is_dir() {
            self.mark(path, name, marks);
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let below = format!("{name}/{}", name::of_bytes(entry.file_name().as_encoded_bytes()));
            self.walk(&entry.path(), &below, marks);
        }
    }

    fn mark(&self, path: &Path, name: &str, marks: &mut Marks) {
        if self.globs.contains(name)
            && !self.is_excepted(path)
            && let Some(mark) = mark_of(path)
        {
            marks.insert(name.to_owned(), mark);
        }
    }
}

/// What a file holds, in short; `None` if it is not there.
pub fn mark_of(path: &Path) -> Option<String> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let data = fs::symlink_metadata(path).ok()?;
    if data.file_type().is_symlink() {
        return Some(format!("{LINK_TO}{}", fs::read_link(path).ok()?.display()));
    }
    let mode = data.permissions().mode() & 0o111;
    if data.len() > CONTENT_BYTES_MAX || !data.is_file() {
        return Some(format!("{}-{}.{}-{mode:o}", data.len(), data.ctime(), data.ctime_nsec()));
    }
    let bytes = plain_file::read(path).ok()?;
    Some(format!("{}-{mode:o}", &blake3::hash(&bytes).to_hex()[..32]))
}

/// Paths whose marks differ, each with what happened to it.
pub fn differing(before: &Marks, after: &Marks) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for (path, mark) in before {
        match after.get(path) {
            None => found.push((path.clone(), "deleted")),
            Some(now) if now != mark => found.push((path.clone(), "modified")),
            Some(_) => {}
        }
    }
    found.extend(after.keys().filter(|path| !before.contains_key(*path)).map(|path| (path.clone(), "added")));
    if found.iter().any(|(path, _)| path == LINK) {
        // It leads elsewhere, so whatever is there is something else: that is said once.
        found.retain(|(path, _)| !path.starts_with(".git/"));
    }
    found
}
