//! The one writer of a journal: create, open with recovery, append. Must not know what the events mean.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::JournalError;
use super::head::Head;
use super::record::{Chain, JournalKey, Record, check_event, format_at};
use super::verify::{End, Verifier};
use crate::atomic_file::{self, Durability, directory_of};
use crate::disk::{DiskFile, DiskLock, FileIdentity, FileStat, SharedDisk};

/// An open journal. It holds the run's lock for as long as it lives: there is no second writer.
pub struct Journal {
    disk: SharedDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    chain: Chain,
    seq_next: u64,
    /// Length and identity of the file after the last acknowledged batch.
    len: u64,
    identity: FileIdentity,
    /// When the file system last saw a change of it that was ours.
    changed_ns: i64,
    run_id: String,
    /// Why nothing is written any more.
    poisoned: Option<String>,
    _lock: Box<dyn DiskLock>,
}

/// What opening had to do and what it could not check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    pub torn_bytes_cut: u64,
    /// A sentence for the user, when something was cut.
    pub notice: Option<String>,
    /// No key was given: the records are whole, but who wrote them was not checked.
    pub unauthenticated: bool,
}

/// The lock of the run whose journal this is; probed by those who wait for the engine.
pub fn lock_path(journal: &Path) -> PathBuf {
    journal.with_extension("lock")
}

impl Journal {
    /// Creates an empty journal; its name is durable when this returns.
    pub fn create(
        disk: SharedDisk,
        path: &Path,
        run_id: &str,
        key: Option<JournalKey>,
    ) -> Result<Journal, JournalError> {
        let lock = lock(&disk, path)?;
        let file = disk.create_new(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => JournalError::AlreadyExists { path: path.to_owned() },
            _ => io_error("create it", path)(source),
        })?;
        disk.sync_dir(directory_of(path)).map_err(io_error("make its name durable", path))?;
        let stat = file.stat().map_err(io_error("look at it", path))?;
        Ok(Journal {
            disk,
            path: path.to_owned(),
            file,
            chain: Chain::start(run_id, key),
            seq_next: 1,
            len: stat.len,
            identity: stat.identity,
            changed_ns: stat.changed_ns,
            run_id: run_id.to_owned(),
            poisoned: None,
            _lock: lock,
        })
    }

    /// Opens a journal, verifies every line, cuts a torn tail. All records returned are durable.
    pub fn open(
        disk: SharedDisk,
        path: &Path,
        run_id: &str,
        key: Option<JournalKey>,
    ) -> Result<(Journal, Vec<Record>, Recovery), JournalError> {
        let lock = lock(&disk, path)?;
        let mut file = disk.open_append(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => JournalError::NotFound { path: path.to_owned() },
            _ => io_error("open it", path)(source),
        })?;
        let bytes = disk.read(path).map_err(io_error("read it", path))?;
        let mut verifier = Verifier::new(path, run_id, key);
        let verified = verifier.take(&bytes);
        let mut recovery = Recovery { unauthenticated: !verifier.authenticates(), ..Recovery::default() };
        let torn_bytes = match verified.end {
            End::Clean => 0,
            End::Torn { bytes } => bytes,
            End::Refused(error) => return Err(error),
        };
        if verifier.macs_seen() && recovery.unauthenticated {
            return Err(JournalError::KeyMissing { path: path.to_owned() });
        }
        let head = Head::read(disk.as_ref(), path)?;
        if let Some(head) = &head {
            head.check(path, verifier.seq_next() - 1, &verified.records)?;
        }
        if torn_bytes > 0 {
            let saved = save_torn(&disk, path, verifier.seq_next(), &bytes[verifier.offset() as usize..])?;
            file.set_len(verifier.offset()).map_err(io_error("cut its torn end", path))?;
            recovery.torn_bytes_cut = torn_bytes;
            recovery.notice = Some(format!(
                "{}: the last write was torn; {torn_bytes} bytes after record {} were cut and kept in {}",
                path.display(),
                verifier.seq_next() - 1,
                saved.display()
            ));
        }
        // A process that died between write and sync left records that are read here but may not be durable yet.
        // If this fails, a later opener cannot know; a loss then shows as corruption, never as other records.
        file.sync_data().map_err(|source| JournalError::Sync { path: path.to_owned(), source })?;
        disk.sync_dir(directory_of(path)).map_err(io_error("make its name durable", path))?;
        if head.is_some() {
            Head::forget(disk.as_ref(), path);
        }
        let FileStat { identity, changed_ns, .. } = file.stat().map_err(io_error("look at it", path))?;
        let (len, seq_next) = (verifier.offset(), verifier.seq_next());
        let path = path.to_owned();
        let chain = verifier.into_chain();
        let journal = Journal {
            disk,
            path,
            file,
            chain,
            seq_next,
            len,
            identity,
            changed_ns,
            run_id: run_id.to_owned(),
            poisoned: None,
            _lock: lock,
        };
        Ok((journal, verified.records, recovery))
    }

    /// Appends the events as one batch: one write, one sync. They are durable when, and only when, this returns
    /// their numbers. After any error but `InvalidEvent` and `InvalidTime` this object never writes again.
    pub fn append<E: AsRef<str>>(
        &mut self,
        at_ms: u64,
        events: &[E],
    ) -> Result<RangeInclusive<u64>, JournalError> {
        if let Some(cause) = &self.poisoned {
            return Err(JournalError::Poisoned { path: self.path.clone(), cause: cause.clone() });
        }
        let at = format_at(at_ms)?;
        for (index, event) in events.iter().enumerate() {
            check_event(index, event.as_ref())?;
        }
        let first = self.seq_next;
        if events.is_empty() {
            return Ok(first..=first - 1);
        }
        let mut chain = self.chain.clone();
        let mut batch = Vec::with_capacity(events.iter().map(|event| event.as_ref().len() + 200).sum());
        for (seq, event) in (first..).zip(events) {
            chain.compose(&mut batch, seq, &at, event.as_ref());
        }
        if let Err(error) = self.commit(&batch) {
            self.poisoned = Some(error.to_string());
            return Err(error);
        }
        self.chain = chain;
        self.len += batch.len() as u64;
        self.seq_next += events.len() as u64;
        Ok(first..=self.seq_next - 1)
    }

    /// The number of the last durable record; 0 when there is none.
    pub fn last_seq(&self) -> u64 {
        self.seq_next - 1
    }

    /// The checksum of the last record.
    pub fn head(&self) -> String {
        self.chain.head()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an earlier failure has closed this object for ever.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.is_some()
    }

    fn commit(&mut self, batch: &[u8]) -> Result<(), JournalError> {
        self.check_untouched()?;
        let path = || self.path.clone();
        let result = match self.file.write_all(batch) {
            Ok(()) => self.file.sync_data().map_err(|source| JournalError::Sync { path: path(), source }),
            Err(source) => Err(JournalError::Write { path: path(), source }),
        };
        if result.is_err() {
            // After a failed sync the kernel may show bytes that it will never write. The next opener would take
            // them for durable, so they are cut as far as that still works; nobody was told that they exist.
            let _ = self.file.set_len(self.len);
        }
        if let Ok(stat) = self.file.stat() {
            self.changed_ns = stat.changed_ns;
        }
        result
    }

    /// Nobody else writes this file; if somebody did, our records would follow his.
    fn check_untouched(&mut self) -> Result<(), JournalError> {
        let found = match self.disk.stat(&self.path) {
            Ok(FileStat { len, identity, changed_ns, .. })
                if len == self.len && identity == self.identity =>
            {
                if changed_ns == self.changed_ns {
                    return Ok(());
                }
                match self.read_again() {
                    Ok(()) => {
                        self.changed_ns = changed_ns;
                        return Ok(());
                    }
                    Err(found) => found,
                }
            }
            Ok(FileStat { len, identity, .. }) if identity == self.identity => format!("{len} bytes"),
            Ok(stat) => format!("another file (inode {}, {} bytes)", stat.identity.inode, stat.len),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "no file".to_owned(),
            Err(error) => return Err(io_error("look at it", &self.path)(error)),
        };
        if self.last_seq() > 0 {
            Head { seq: self.last_seq(), sum: self.head() }.write(self.disk.as_ref(), &self.path);
        }
        let expected = format!("{} bytes in inode {}", self.len, self.identity.inode);
        Err(JournalError::Tampered { path: self.path.clone(), expected, found })
    }
}

impl Journal {
    /// The file was touched at its old length: every record is verified again. A change of its mode, or a
    /// second name, does no harm; what else is there is said.
    fn read_again(&self) -> Result<(), String> {
        let bytes = self.disk.read(&self.path).map_err(|error| error.to_string())?;
        let mut verifier = Verifier::new(&self.path, &self.run_id, self.chain.key());
        match verifier.take(&bytes).end {
            End::Clean if verifier.seq_next() == self.seq_next && verifier.is_at(&self.chain) => Ok(()),
            End::Clean => Err("other records than were written".to_owned()),
            End::Torn { bytes } => Err(format!("{bytes} bytes at its end that are no record")),
            End::Refused(error) => Err(error.to_string()),
        }
    }
}

fn lock(disk: &SharedDisk, path: &Path) -> Result<Box<dyn DiskLock>, JournalError> {
    let lock_path = lock_path(path);
    match disk.try_lock(&lock_path) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => {
            let holder = disk.read_range(&lock_path, 0, 64).unwrap_or_default();
            let holder = String::from_utf8_lossy(&holder).trim().to_owned();
            let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
            Err(JournalError::Locked { path: lock_path, holder })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(JournalError::NotFound { path: path.to_owned() })
        }
        Err(error) => Err(io_error("lock it", &lock_path)(error)),
    }
}

/// Keeps the bytes that will be cut. An earlier copy with other bytes is never overwritten.
fn save_torn(disk: &SharedDisk, path: &Path, seq: u64, bytes: &[u8]) -> Result<PathBuf, JournalError> {
    let mut saved = path.with_extension(format!("torn-{seq}"));
    for copy in 2..100_u32 {
        let same = match disk.read(&saved) {
            Ok(earlier) => earlier == bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io_error("read an earlier torn end", &saved)(error)),
        };
        if same {
            break;
        }
        saved = path.with_extension(format!("torn-{seq}-{copy}"));
    }
    atomic_file::replace(disk.as_ref(), &saved, bytes, Durability::Durable)
        .map_err(io_error("keep the torn end of the journal", &saved))?;
    Ok(saved)
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| JournalError::Io { action, path: path.to_owned(), source }
}
