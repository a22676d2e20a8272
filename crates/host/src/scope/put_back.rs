//! Puts back what pictures do not show: protected files and published ones. What was there before is kept with the run,
//! by its content; what is undone is kept with the attempt. Must not know roles.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

use super::{
    name,
    picture::{common_git_dir, git_dir},
    protect::{LINK, LINK_TO, Marks, mark_of},
};
use crate::plain_file;

/// Kept of one run; more is not kept, and then it is said that it cannot be put back.
const KEPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Contents of protected files, by their marks.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    store: PathBuf,
    /// Where the attempt keeps what is undone.
    undone: PathBuf,
}

impl Kept {
    pub fn new(folder: &Path, store: PathBuf, undone: PathBuf) -> Kept {
        Kept { folder: folder.to_owned(), store, undone }
    }

    /// Keeps what these marks stand for. What cannot be kept cannot be put back, which is said then.
    pub fn keep(&self, marks: &Marks) {
        if marks.is_empty() || fs::create_dir_all(&self.store).is_err() {
            return;
        }
        let sizes = fs::read_dir(&self.store).into_iter().flatten().flatten();
        let mut bytes: u64 = sizes.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum();
        for (name, mark) in marks.iter().filter(|(_, mark)| is_of_content(mark)) {
            let (kept, Ok(path)) = (self.store.join(mark), self.place(name)) else { continue };
            let size = fs::symlink_metadata(&path).map_or(0, |data| data.len());
            if kept.exists() || bytes + size > KEPT_BYTES_MAX {
                continue;
            }
            let temporary = kept.with_extension("tmp");
            // With its mode, which is put back with it.
            let copied = fs::copy(&path, &temporary).and_then(|_| fs::rename(&temporary, &kept));
            bytes += copied.map_or(0, |()| size);
        }
    }

    /// Puts back what stood there before; `before` is its mark, if it was there at all.
    pub fn put_back(&self, name: &str, before: Option<&str>) -> Result<(), String> {
        let path = self.place(name)?;
        let inside = [Some(self.folder.clone()), git_dir(&self.folder), common_git_dir(&self.folder)];
        self.keep_present(&path, name)?;
        let bytes = match before {
            Some(mark) if is_of_content(mark) => {
                let kept = self.store.join(mark);
                // Whoever can write there may have written something else.
                if mark_of(&kept).as_deref() != Some(mark) {
                    return Err("what was there before was not kept".to_owned());
                }
                Some(kept)
            }
            Some(mark) if !mark.starts_with(LINK_TO) => {
                return Err("it is too large to be kept, or no file".to_owned());
            }
            Some(_) | None => None,
        };
        make_room(&path, inside.into_iter().flatten())?;
        let done = match (before.and_then(|mark| mark.strip_prefix(LINK_TO)), bytes) {
            (Some(target), _) => symlink(target, &path),
            (None, Some(kept)) => fs::copy(kept, &path).map(drop),
            (None, None) => Ok(()),
        };
        done.map_err(|error| error.to_string())
    }

    /// The same for a file whose content is at hand.
    pub fn write_back(&self, path: &Path, name: &str, root: PathBuf, bytes: &[u8]) -> Result<(), String> {
        self.keep_present(path, name)?;
        make_room(path, std::iter::once(root))?;
        fs::write(path, bytes).map_err(|error| error.to_string())
    }

    /// Nothing is thrown away that could not be kept.
    fn keep_present(&self, path: &Path, name: &str) -> Result<(), String> {
        let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
        let parts = Path::new(name).components().filter(|part| matches!(part, Component::Normal(_)));
        let to = self
            .undone
            .join(parts.map(|part| name::path_of(&part.as_os_str().to_string_lossy())).collect::<PathBuf>());
        let kept = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            if data.file_type().is_symlink() {
                return fs::write(&to, format!("{LINK_TO}{}\n", fs::read_link(path)?.display()));
            }
            if !data.is_file() {
                return Ok(());
            }
            fs::write(&to, plain_file::read(path)?)
        });
        kept.map_err(|error| format!("what is there now cannot be kept: {error}"))
    }

    /// Where a protected file is.
    fn place(&self, name: &str) -> Result<PathBuf, String> {
        let Some(below) = name.strip_prefix(".git/") else {
            return Ok(self.folder.join(name::path_of(name)));
        };
        let unknown = || "where git keeps it is not known".to_owned();
        let own = git_dir(&self.folder).ok_or_else(unknown)?;
        let common = common_git_dir(&self.folder).ok_or_else(unknown)?;
        match below {
            _ if own == common => Ok(own.join(name::path_of(below))),
            "config.worktree" => Ok(own.join(below)),
            // A worktree has such a folder of its own, too.
            _ if below.starts_with("info/") => Err(unknown()),
            _ => Ok(common.join(name::path_of(below))),
        }
    }
}

/// A mark that says what a file holds, not only when it was written.
fn is_of_content(mark: &str) -> bool {
    mark.split_once('-')
        .is_some_and(|(hash, _)| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Takes away what is in the place, never through a link that leads out of these folders.
fn make_room(path: &Path, mut inside: impl Iterator<Item = PathBuf>) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    let there = parent.ancestors().find(|folder| folder.exists()).unwrap_or(parent);
    let real = there.canonicalize().map_err(|error| error.to_string())?;
    let stays = |root: PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    if path.file_name() != Some(LINK.as_ref()) && !inside.any(stays) {
        return Err("its folder leads elsewhere".to_owned());
    }
    fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}
