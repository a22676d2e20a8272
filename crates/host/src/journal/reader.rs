//! Follows a journal while another process writes it. Must not lock it, change it or wait for anything.

use std::io;
use std::path::{Path, PathBuf};

use super::JournalError;
use super::head::Head;
use super::record::{JournalKey, Record};
use super::verify::{End, Verifier};
use crate::disk::{FileIdentity, FileStat, SharedDisk};

/// Remembers how far it has read; only bytes after the last valid record are read again.
pub struct JournalReader {
    disk: SharedDisk,
    path: PathBuf,
    verifier: Verifier,
    identity: Option<FileIdentity>,
    unfinished_bytes: u64,
}

impl JournalReader {
    /// Starts before the first record; the file need not exist yet. Without a key, records are not authenticated.
    pub fn follow(disk: SharedDisk, path: &Path, run_id: &str, key: Option<JournalKey>) -> JournalReader {
        let verifier = Verifier::new(path, run_id, key);
        JournalReader { disk, path: path.to_owned(), verifier, identity: None, unfinished_bytes: 0 }
    }

    /// The records that were added since the last call, all verified. An incomplete last line is left for later.
    /// Valid records before a bad one are returned first; the next call returns the error.
    pub fn read_new(&mut self) -> Result<Vec<Record>, JournalError> {
        let offset = self.verifier.offset();
        let Some(stat) = self.stat()? else { return Ok(Vec::new()) };
        if stat.len == offset {
            self.unfinished_bytes = 0;
            self.check_head()?;
            return Ok(Vec::new());
        }
        let bytes = self.disk.read_from(&self.path, offset).map_err(|source| self.io(source))?;
        let verified = self.verifier.take(&bytes);
        match verified.end {
            End::Clean => self.unfinished_bytes = 0,
            End::Torn { bytes } => self.unfinished_bytes = bytes,
            End::Refused(error) if verified.records.is_empty() => return Err(error),
            End::Refused(_) => {}
        }
        Ok(verified.records)
    }

    /// Nothing is missing that an engine had written when somebody changed the file.
    fn check_head(&self) -> Result<(), JournalError> {
        match Head::read(self.disk.as_ref(), &self.path)? {
            Some(head) => head.check(&self.path, self.verifier.seq_next() - 1, &[]),
            None => Ok(()),
        }
    }

    /// Bytes after the last record at the last call: a line that is being written, or a torn end.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished_bytes
    }

    /// Whether records were returned without a check of who wrote them.
    pub fn unauthenticated(&self) -> bool {
        !self.verifier.authenticates()
    }

    fn stat(&mut self) -> Result<Option<FileStat>, JournalError> {
        let stat = match self.disk.stat(&self.path) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.identity.is_none() => {
                return Ok(None);
            }
            Err(error) => return Err(self.io(error)),
        };
        let offset = self.verifier.offset();
        let expected = *self.identity.get_or_insert(stat.identity);
        if stat.identity == expected && stat.len >= offset {
            return Ok(Some(stat));
        }
        Err(JournalError::Tampered {
            path: self.path.clone(),
            expected: format!("at least {offset} bytes in inode {}", expected.inode),
            found: format!("{} bytes in inode {}", stat.len, stat.identity.inode),
        })
    }

    fn io(&self, source: io::Error) -> JournalError {
        JournalError::Io { action: "read it", path: self.path.clone(), source }
    }
}
