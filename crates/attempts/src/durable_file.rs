//! Two ways to put a whole file in place: replace what is there, or be the first.
//! It must not know what the files mean.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Puts `bytes` at `path` in one step: a reader sees the old file or the new one, never a part.
/// Not synced.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (temporary, _file) = write_temporary(path, bytes)?;
    fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Creates `path` with `bytes` if nobody did before, durably. Returns whether this call was the first.
/// link(2) and not rename(2): rename would replace the record of whoever was first.
pub(crate) fn create_first(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (temporary, file) = write_temporary(path, bytes)?;
    let linked = file.sync_all().and_then(|()| fs::hard_link(&temporary, path));
    drop(fs::remove_file(&temporary));
    let first = match linked {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    // Also by the one who came second: it goes on from here as if the record were durable.
    File::open(parent_of(path))?.sync_all()?;
    Ok(first)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name begins with a dot and holds our pid and a count, so that neither threads nor processes meet.
fn write_temporary(path: &Path, bytes: &[u8]) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = parent_of(path).join(format!(".{name}.{}.{count}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary) {
            Ok(mut file) => {
                file.write_all(bytes).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
                return Ok((temporary, file));
            }
            // Left by a dead process that had our pid.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_first_wins_and_nothing_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exit.json");
        assert!(create_first(&path, b"one").unwrap());
        assert!(!create_first(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["exit.json"]);
    }

    #[test]
    fn of_many_at_once_exactly_one_is_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exit.json");
        let firsts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16u8)
                .map(|number| {
                    let path = &path;
                    scope.spawn(move || create_first(path, &[number]).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        });
        assert_eq!(firsts, 1);
        assert_eq!(names(dir.path()), ["exit.json"]);
    }

    #[test]
    fn replace_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid.json");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["pid.json"]);
    }
}
