//! How far a journal had come when its engine found that somebody else had changed it: `SEQ SUM` in `journal.head`,
//! beside it. A journal that was cut behind a whole record looks like a shorter one; with this it does not.

use std::io;
use std::path::{Path, PathBuf};

use super::JournalError;
use super::record::Record;
use crate::atomic_file::{self, Durability};
use crate::disk::Disk;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) sum: String,
}

fn place(journal: &Path) -> PathBuf {
    journal.with_extension("head")
}

impl Head {
    /// As far as it can still be written: whoever changed the one file may be able to remove the other.
    pub(super) fn write(&self, disk: &dyn Disk, journal: &Path) {
        let text = format!("{} {}\n", self.seq, self.sum);
        let _ = atomic_file::replace(disk, &place(journal), text.as_bytes(), Durability::Durable);
    }

    pub(super) fn read(disk: &dyn Disk, journal: &Path) -> Result<Option<Head>, JournalError> {
        let path = place(journal);
        let bytes = match disk.read_range(&path, 0, 256) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(JournalError::Io { action: "read it", path, source }),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let parsed = text.trim().split_once(' ').and_then(|(seq, sum)| Some((seq.parse().ok()?, sum)));
        // What is no such line says nothing.
        Ok(parsed.map(|(seq, sum)| Head { seq, sum: sum.to_owned() }))
    }

    /// Whether a journal with these records still has all that was written, or what is missing.
    pub(super) fn check(&self, journal: &Path, last: u64, records: &[Record]) -> Result<(), JournalError> {
        let sum = format!("\"sum\":\"{}\"", self.sum);
        let other = records.iter().any(|record| record.seq == self.seq && !record.line().contains(&sum));
        if last >= self.seq && !other {
            return Ok(());
        }
        Err(JournalError::Cut {
            path: journal.to_owned(),
            head: place(journal),
            found: if other { self.seq.saturating_sub(1) } else { last },
            written: self.seq,
        })
    }

    /// The journal is whole again.
    pub(super) fn forget(disk: &dyn Disk, journal: &Path) {
        let _ = disk.remove_file(&place(journal));
    }
}
