//! The seam through which every durable write of a run goes. Must not know what the files mean.
//!
//! `RealDisk` is the machine's file system; `SimulatedDisk` is a model of one that loses what was not synced,
//! so that crashes and torn writes drive the same journal and inbox code that runs in production.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

mod below;
mod real;
mod simulated;

pub use below::{BelowFolder, Links};
pub use real::RealDisk;
pub use simulated::{DurableView, OperationCounts, SimulatedDisk};

/// How owners of a disk hold it: journal, inbox and readers of one run share one.
pub type SharedDisk = Arc<dyn Disk>;

/// A file system as far as a run needs one. Nothing is durable before it was synced:
/// bytes by [`DiskFile::sync_data`], names by [`Disk::sync_dir`].
pub trait Disk: Send + Sync {
    /// Up to `bytes_max` bytes of the file from `offset`; nothing when the file ends before it.
    fn read_range(&self, path: &Path, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// What is at `path` itself; a symbolic link is not followed.
    fn stat(&self, path: &Path) -> io::Result<FileStat>;

    /// Opens a file that exists; every write goes to its end.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a file that must not exist; every write goes to its end.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a directory and its missing parents; the names are not yet durable.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Renames; an existing file at `to` is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file at `from` the second name `to`. Fails with `AlreadyExists`: the first wins.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, sorted.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// The exclusive lock on `path`, which is created when missing; `None` when another holds it.
    /// The lock ends when it is dropped and when its process ends, however it ends.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>>;

    /// Whether somebody holds the lock on `path`. Only a hint: it may be old when it is returned.
    fn lock_is_held(&self, path: &Path) -> io::Result<bool>;

    /// What lies below one folder, for places where others can write, too: no link below it is followed by anything.
    /// Other paths are refused.
    fn below(&self, folder: &Path) -> io::Result<Box<dyn Disk + '_>>;

    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_range(path, 0, u64::MAX)
    }

    /// The file from `offset` to its end.
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        self.read_range(path, offset, u64::MAX)
    }

    /// Whether there is anything at `path`. An error other than "not found" is returned, not guessed away.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// An open file that is written at its end.
pub trait DiskFile: Send {
    /// Writes all bytes at the end, with one system call where the kernel takes them all.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes and the length durable. After an error nothing is known about them.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Cuts the file.
    fn set_len(&mut self, len: u64) -> io::Result<()>;

    /// Length and identity of the open file, whatever name it has by now.
    fn stat(&self) -> io::Result<FileStat>;
}

/// A held lock; dropping it releases it.
pub trait DiskLock: Send {}

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub len: u64,
    pub identity: FileIdentity,
    pub kind: FileKind,
    /// When its bytes last changed, in nanoseconds; 0 where nobody knows.
    pub modified_ns: i64,
    /// When anything about the file last changed (ctime), in nanoseconds. No process can set it.
    pub changed_ns: i64,
}

/// Tells one file from another that took its name (device and inode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// The kinds that are told apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    /// A link, pipe, socket or device: nothing that a run writes.
    Other,
}
