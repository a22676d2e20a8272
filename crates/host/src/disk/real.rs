//! The machine's file system behind the `Disk` trait. Must not know what the files mean.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::below::{BelowFolder, Links};
use super::{Disk, DiskFile, DiskLock, FileIdentity, FileKind, FileStat};
use crate::{fault, plain_file};

/// A prober holds the lock for microseconds; without a second try it could turn an engine away.
const LOCK_TRIES: u32 = 4;
/// What the engine keeps is its user's alone.
const OWN: u32 = 0o600;
const LOCK_PAUSE: Duration = Duration::from_millis(3);
/// An engine that was killed while it started a process leaves the lock to that for the moment until its program is
/// loaded, which takes its time on a busy machine.
const HEIR_PATIENCE: Duration = Duration::from_secs(10);

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read_range(&self, path: &Path, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        fault::point("open")?;
        let mut file = plain_file::open(path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        let mut bytes = Vec::new();
        if bytes_max == u64::MAX {
            // Asks for the length first, and reads in one go.
            file.read_to_end(&mut bytes)?;
        } else {
            file.take(bytes_max).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        Ok(stat_of(&fs::symlink_metadata(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        fault::point("open")?;
        Ok(Box::new(RealFile(OpenOptions::new().append(true).open(path)?)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        fault::point("create")?;
        Ok(Box::new(RealFile(OpenOptions::new().append(true).create_new(true).mode(OWN).open(path)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fault::point("fsync")?;
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fault::point("rename")?;
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fault::point("link")?;
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fault::point("remove")?;
        fs::remove_file(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<_>, _>>()?;
        names.sort();
        Ok(names)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let begun = Instant::now();
        let mut tries_left = LOCK_TRIES;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // For the message to the one who is refused, and for how long to try; who holds it is not told
                    // by this.
                    let _ = file.set_len(0).and_then(|()| write!(file, "pid {}", std::process::id()));
                    return Ok(Some(Box::new(RealLock { _file: file })));
                }
                Err(TryLockError::WouldBlock) => {
                    tries_left = tries_left.saturating_sub(1);
                    let heir_may_go = || begun.elapsed() < HEIR_PATIENCE && holder_is_gone(&file);
                    if tries_left == 0 && !heir_may_go() {
                        return Ok(None);
                    }
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn lock_is_held(&self, path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // Shared, so that two probers do not take each other for an engine.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn below(&self, folder: &Path) -> io::Result<Box<dyn Disk + '_>> {
        Ok(Box::new(BelowFolder::open(folder, Links::Refused)?))
    }
}

/// Whoever said last that the lock is theirs does not live any more.
fn holder_is_gone(lock: &File) -> bool {
    let mut said = [0; 32];
    let length = lock.read_at(&mut said, 0).unwrap_or(0);
    let pid =
        std::str::from_utf8(&said[..length]).ok().and_then(|text| text.strip_prefix("pid ")?.parse().ok());
    pid.and_then(Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

pub(super) struct RealFile(pub(super) File);

impl DiskFile for RealFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        #[cfg(feature = "fault-injection")]
        fault::write_point(bytes, |half| self.0.write_all(half))?;
        self.0.write_all(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        fault::point("fsync")?;
        self.0.sync_data()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        fault::point("truncate")?;
        self.0.set_len(len)
    }

    fn stat(&self) -> io::Result<FileStat> {
        Ok(stat_of(&self.0.metadata()?))
    }
}

/// The lock lives as long as the open file.
struct RealLock {
    _file: File,
}

impl DiskLock for RealLock {}

pub(super) fn stat_of(metadata: &fs::Metadata) -> FileStat {
    let kind = if metadata.is_file() {
        FileKind::File
    } else if metadata.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    };
    let identity = FileIdentity { device: metadata.dev(), inode: metadata.ino() };
    FileStat {
        len: metadata.len(),
        identity,
        kind,
        modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// The same of a name that was looked up from an open folder.
pub(super) fn stat_of_name(stat: &rustix::fs::Stat, kind: FileKind) -> FileStat {
    FileStat {
        len: stat.st_size.cast_unsigned(),
        identity: FileIdentity { device: stat.st_dev, inode: stat.st_ino },
        kind,
        modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
        changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_inherited_a_lock_from_the_dead_is_waited_for_and_nobody_who_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = |says: &str| {
            let mut file = File::create(&path).unwrap();
            file.lock().unwrap();
            file.write_all(says.as_bytes()).unwrap();
            file
        };
        let own = held(&format!("pid {}", std::process::id()));
        assert!(RealDisk.try_lock(&path).unwrap().is_none());
        drop(own);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let heir = held(&format!("pid {}", child.id()));
        let goes = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(heir);
        });
        assert!(RealDisk.try_lock(&path).unwrap().is_some());
        goes.join().unwrap();
    }
}
