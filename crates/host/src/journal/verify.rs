//! Decides which lines of a journal are true: the longest valid chain. Pure over bytes; must not know files.
//!
//! What follows the chain is a torn tail only if a torn write can have made it: a last line that is incomplete or
//! no record at all. A complete record that does not fit, and anything bad before one, is corruption. The file
//! system may lose the end of what was appended; it does not write well-formed JSON of its own.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::JournalError;
use super::record::{Chain, JournalKey, Parts, Record, Seal, VERSION, looks_like_record};

const RECORD_START: &[u8] = b"{\"seq\":";

/// Reads a journal's bytes in one or several pieces and remembers where the chain stands.
pub(super) struct Verifier {
    path: PathBuf,
    chain: Chain,
    seq_next: u64,
    offset: u64,
    macs_seen: bool,
}

/// What one piece contained.
pub(super) struct Verified {
    pub(super) records: Vec<Record>,
    /// How the piece ends after the last valid record.
    pub(super) end: End,
}

/// What follows the longest valid chain.
pub(super) enum End {
    Clean,
    /// A last line that a torn write may have left, or that is still being written.
    Torn {
        bytes: u64,
    },
    Refused(JournalError),
}

impl Verifier {
    pub(super) fn new(path: &Path, run_id: &str, key: Option<JournalKey>) -> Self {
        Verifier {
            path: path.to_owned(),
            chain: Chain::start(run_id, key),
            seq_next: 1,
            offset: 0,
            macs_seen: false,
        }
    }

    /// The end of the last valid record: where the next piece has to begin.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn seq_next(&self) -> u64 {
        self.seq_next
    }

    /// Whether a record so far carried a mac.
    pub(super) fn macs_seen(&self) -> bool {
        self.macs_seen
    }

    /// Whether the records so far were checked with a key.
    pub(super) fn authenticates(&self) -> bool {
        self.chain.has_key()
    }

    pub(super) fn is_at(&self, chain: &Chain) -> bool {
        self.chain.is_at(chain)
    }

    pub(super) fn into_chain(self) -> Chain {
        self.chain
    }

    /// Takes the bytes from `offset` on.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Verified {
        let mut records = Vec::new();
        let mut rest = bytes;
        while let Some(length) = line_length(rest) {
            match self.take_line(&rest[..length]) {
                Ok(record) => records.push(record),
                Err(reason) => {
                    let end = self.classify(reason, rest);
                    return Verified { records, end };
                }
            }
            self.offset += length as u64 + 1;
            rest = &rest[length + 1..];
        }
        let end = if rest.is_empty() {
            End::Clean
        } else {
            self.classify(Bad::Text("the line is incomplete"), rest)
        };
        Verified { records, end }
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Record, Bad> {
        let parts = Parts::of(line).ok_or(Bad::Text("the line is no record"))?;
        let mut chain = self.chain.clone();
        match chain.verify(&parts) {
            Seal::Good if parts.seq != self.seq_next => return Err(Bad::Text("the record is out of order")),
            Seal::Good if parts.version != VERSION => return Err(Bad::Text("the version is unknown")),
            Seal::Good => {}
            Seal::WrongSum => return Err(Bad::Text("the checksum does not match")),
            Seal::WrongMac => return Err(Bad::WrongMac),
            Seal::NoMac => return Err(Bad::NoMac),
        }
        let record = parts.record(line).map_err(Bad::Text)?;
        self.chain = chain;
        self.macs_seen |= parts.mac.is_some();
        self.seq_next += 1;
        Ok(record)
    }

    /// `rest` begins with a line that is not the next record.
    fn classify(&self, bad: Bad, rest: &[u8]) -> End {
        let (path, line, byte_offset) = (self.path.clone(), self.seq_next, self.offset);
        let reason = match bad {
            Bad::WrongMac => return End::Refused(JournalError::MacMismatch { path, line, byte_offset }),
            Bad::NoMac => return End::Refused(JournalError::MacMissing { path, line, byte_offset }),
            Bad::Text(reason) => reason,
        };
        let complete = line_length(rest).map(|length| &rest[..length]);
        if let Some((found, version)) = complete.and_then(looks_like_record) {
            return End::Refused(if version != VERSION {
                JournalError::UnknownVersion { path, line, found: version, supported: VERSION }
            } else if found != self.seq_next {
                JournalError::SequenceGap { path, line, byte_offset, expected: self.seq_next, found }
            } else {
                self.corrupt(reason)
            });
        }
        match record_after(rest) {
            Some(distance) => End::Refused(self.corrupt(&format!(
                "{reason}, yet a record follows at byte {}; a torn write leaves nothing behind it",
                self.offset + distance as u64
            ))),
            None => End::Torn { bytes: rest.len() as u64 },
        }
    }

    fn corrupt(&self, reason: &str) -> JournalError {
        let other_run = if self.seq_next == 1 { " (or the journal is another run's)" } else { "" };
        JournalError::Corrupt {
            path: self.path.clone(),
            line: self.seq_next,
            byte_offset: self.offset,
            reason: format!("expected record {}, but {reason}{other_run}", self.seq_next),
            way_out: format!(
                "Nothing was cut. Restore the file from a copy; or, to give up record {} and all after it, keep a \
                 copy and cut the file to {} bytes, then `gatewright resume`",
                self.seq_next, self.offset
            ),
        }
    }
}

/// Why a line is not the next record.
#[derive(Debug, Clone, Copy)]
enum Bad {
    Text(&'static str),
    WrongMac,
    NoMac,
}

/// Where after the first byte a complete record begins; also in the middle of a line whose line break was lost.
fn record_after(bytes: &[u8]) -> Option<usize> {
    let mut from = 1;
    while let Some(distance) = find(bytes.get(from..)?, RECORD_START) {
        let start = from + distance;
        let length = line_length(&bytes[start..])?;
        if looks_like_record(&bytes[start..start + length]).is_some() {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

/// The length of the first line without its end; `None` when it has none. The standard library searches fast here.
fn line_length(mut bytes: &[u8]) -> Option<usize> {
    let before = bytes;
    let skipped = bytes.skip_until(b'\n').ok()?;
    before[..skipped].strip_suffix(b"\n").map(<[u8]>::len)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
