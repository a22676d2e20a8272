//! Lock files of git. A git that was killed leaves one behind, and every later git gives up because of it. Whether
//! one is held by a living process is read from `/proc`. It must not know runs or whose a lock is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::process_table;

/// Who may be holding a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockHolder {
    /// Nobody that can be seen on this machine.
    Nobody,
    /// This process has it open, or is a git at work in the same tree.
    Process { pid: i32 },
    /// There is no process table to look at.
    Unknown,
}

/// Looks for a living holder of `lock`. `trees` are the folders in which a git would use it: git closes the file
/// while a hook runs, so any git that is at work there counts as its holder, and so does one that cannot be
/// looked at.
pub fn lock_holder(lock: &Path, trees: &[PathBuf]) -> LockHolder {
    let table = process_table::all();
    if table.is_empty() {
        return LockHolder::Unknown;
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let lock = real(lock);
    let trees: Vec<PathBuf> = trees.iter().map(|tree| real(tree)).collect();
    let held = table.iter().filter(|stat| stat.alive).find(|stat| {
        let place = PathBuf::from(format!("/proc/{}", stat.identity.pid));
        (stat.name.starts_with("git") && works_in(&place, &trees)) || has_open(&place, &lock)
    });
    held.map_or(LockHolder::Nobody, |stat| LockHolder::Process { pid: stat.identity.pid })
}

fn works_in(place: &Path, trees: &[PathBuf]) -> bool {
    match fs::read_link(place.join("cwd")) {
        Ok(cwd) => trees.iter().any(|tree| cwd.starts_with(tree)),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

fn has_open(place: &Path, lock: &Path) -> bool {
    let entries = fs::read_dir(place.join("fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == *lock)
}

/// Removes a lock file that nobody holds. `false`: it stays.
pub fn clear_lock(lock: &Path, trees: &[PathBuf]) -> bool {
    lock_holder(lock, trees) == LockHolder::Nobody && fs::remove_file(lock).is_ok()
}

/// The lock file that a git named when it gave up because of it.
pub(crate) fn named_in(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("Unable to create '")?;
    let (path, rest) = rest.split_once('\'')?;
    let is_taken = rest.trim_start_matches(':').trim_start().starts_with("File exists");
    let path = PathBuf::from(path);
    (is_taken && path.extension().is_some_and(|end| end == "lock")).then_some(path)
}

/// What a person can do about it.
pub(crate) fn remedy(lock: &Path, folder: &Path) -> String {
    match lock_holder(lock, &[folder.to_owned()]) {
        LockHolder::Process { pid } => {
            format!("{} is held by process {pid}; wait for it, then resume", lock.display())
        }
        LockHolder::Nobody | LockHolder::Unknown => format!(
            "{0} was left behind by a git that is gone; if no git is at work in this repository, on other machines \
             and in containers neither: `rm {0}`, then resume",
            lock.display()
        ),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_lock_that_is_open_somewhere_stays_and_one_that_nobody_has_goes() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("index.lock");
        let file = fs::File::create(&lock).unwrap();
        let own = std::process::id().cast_signed();
        assert_eq!(lock_holder(&lock, &[]), LockHolder::Process { pid: own });
        assert!(!clear_lock(&lock, &[]) && lock.exists());
        drop(file);
        assert!(clear_lock(&lock, &[folder.path().to_owned()]) && !lock.exists());
    }

    #[test]
    fn a_git_at_work_in_the_tree_keeps_its_lock_although_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("index.lock");
        fs::write(&lock, "").unwrap();
        // Waits on its stdin, as a git waits for a hook.
        let mut git = Command::new("git")
            .args(["hash-object", "--stdin"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let tree = [folder.path().to_owned()];
        while process_table::stat_of(git.id().cast_signed()).is_none_or(|stat| stat.name != "git") {
            std::thread::yield_now();
        }
        assert_eq!(lock_holder(&lock, &tree), LockHolder::Process { pid: git.id().cast_signed() });
        let elsewhere = [folder.path().join("elsewhere")];
        assert_eq!(lock_holder(&lock, &elsewhere), LockHolder::Nobody);
        drop(git.stdin.take());
        git.wait().unwrap();
        assert_eq!(lock_holder(&lock, &tree), LockHolder::Nobody);
    }

    #[test]
    fn the_lock_is_read_from_what_git_says() {
        let said = "error: could not delete reference a: Unable to create '/r/.git/packed-refs.lock': File exists.\n";
        assert_eq!(named_in(said), Some(PathBuf::from("/r/.git/packed-refs.lock")));
        assert_eq!(named_in("fatal: Unable to create '/r/.git/index.lock': Permission denied"), None);
        assert_eq!(named_in("fatal: not a git repository"), None);
    }
}
