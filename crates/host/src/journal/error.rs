//! What can go wrong with a journal, each with the next thing to do. Must not know how it is found out.

use std::io;
use std::path::PathBuf;

/// Every text names the file, what was expected, what was found and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{}: no journal here; expected the one that `gatewright run` creates. Look for the run with `gatewright list`", path.display())]
    NotFound { path: PathBuf },

    #[error("{}: a journal is here already; expected none for a new run. Go on with `gatewright resume`", path.display())]
    AlreadyExists { path: PathBuf },

    #[error("{}: held by {holder}; expected to be the only writer of this run. Stop that engine with `gatewright stop`, or wait for it", path.display())]
    Locked { path: PathBuf, holder: String },

    #[error("{}: cannot {action}; nothing was changed", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    /// The records of the batch are not acknowledged and the journal object is dead.
    #[error("{}: a batch of records could not be written; free space or repair the disk, then `gatewright resume`", path.display())]
    Write { path: PathBuf, source: io::Error },

    /// The records of the batch are not acknowledged and the journal object is dead: a sync is never retried.
    #[error("{}: records could not be made durable; check the disk (dmesg), then `gatewright resume`", path.display())]
    Sync { path: PathBuf, source: io::Error },

    #[error("{}: closed after an earlier failure ({cause}); expected no further writes from this process. Go on with `gatewright resume`", path.display())]
    Poisoned { path: PathBuf, cause: String },

    #[error("{}: changed by someone else; expected {expected}, found {found}. The engine is its only writer, and it wrote nothing after that. Restore the file from a copy, or undo that change, then `gatewright resume`; to give the run up, start a new one", path.display())]
    Tampered { path: PathBuf, expected: String, found: String },

    #[error("{}: somebody cut it while an engine was at work: it ends with record {found}, and {written} were written. Restore the file from a copy, then `gatewright resume`; to go on without them, remove {}", path.display(), head.display())]
    Cut { path: PathBuf, head: PathBuf, found: u64, written: u64 },

    #[error("{} line {line}, byte {byte_offset}: {reason}. {way_out}", path.display())]
    Corrupt { path: PathBuf, line: u64, byte_offset: u64, reason: String, way_out: String },

    #[error("{} line {line}, byte {byte_offset}: expected record {expected}, found record {found}; lines are missing, doubled or moved. Restore the file from a copy, nothing was cut", path.display())]
    SequenceGap { path: PathBuf, line: u64, byte_offset: u64, expected: u64, found: u64 },

    #[error("{} line {line}: record version {found}, expected at most {supported}. Use the gatewright that wrote it, or a newer one", path.display())]
    UnknownVersion { path: PathBuf, line: u64, found: u64, supported: u64 },

    #[error("{} line {line}, byte {byte_offset}: the record was not written with this run's key. Someone else wrote it, or the key was replaced: restore both from a copy", path.display())]
    MacMismatch { path: PathBuf, line: u64, byte_offset: u64 },

    #[error("{} line {line}, byte {byte_offset}: the record carries no `mac`, expected one by this run's key. Someone else wrote it: restore the file from a copy", path.display())]
    MacMissing { path: PathBuf, line: u64, byte_offset: u64 },

    #[error("{}: its records are authenticated, but no key was found to go on writing. Restore the run's key file; reading works without it", path.display())]
    KeyMissing { path: PathBuf },

    /// A mistake of ours, not of the disk: nothing was written and the journal lives on.
    #[error(
        "event {index} of the batch cannot be a record: {reason}. Please report this, nothing was written"
    )]
    InvalidEvent { index: usize, reason: &'static str },

    #[error(
        "{at_ms} ms since 1970 is no time a record can carry; expected a time before the year 9999. Set the clock of this machine"
    )]
    InvalidTime { at_ms: u64 },
}
