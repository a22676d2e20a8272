//! Messages from other processes to the engine of one run. Must not know what they say or how they are judged.
//!
//! A sender drops a file and waits for the acknowledgement, or until the engine's lock is free; then it takes the
//! lock and does the engine's work itself. The engine journals a message's id with what came of it, acknowledges,
//! then removes the message: read again after a crash, it is recognised by its id and changes nothing.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, FirstWins};
use crate::disk::{Disk, FileKind, SharedDisk};
use crate::user_key::RunKey;

mod message_id;
pub mod order;

pub use message_id::{BadMessageId, MessageId};

/// A larger message is refused by `send` and set aside by `drain`.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 20;

const ACKS: &str = "acks";
const REJECTED: &str = "rejected";
const ACK_VERSION: u32 = 1;
const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_LAST: Duration = Duration::from_millis(50);
const NAME_TRIES: u32 = 16;

#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error("{}: cannot {action}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error(
        "the message has {found} bytes, expected at most {MESSAGE_BYTES_MAX}. Put the text into a file and name the file"
    )]
    TooLarge { found: u64 },

    #[error("{}: expected an acknowledgement of version {ACK_VERSION}. Remove the file and look with `gatewright status`", path.display())]
    BadAcknowledgement { path: PathBuf, source: serde_json::Error },
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    pub verdict: Verdict,
    /// For the person who sent it: what will happen, or why nothing will.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Accepted,
    Refused,
}

/// What the sender learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckOutcome {
    Acked(Acknowledgement),
    /// No engine holds the lock: the sender may take it; the message is still in the inbox.
    LockIsFree,
    /// The message is still in the inbox and will be read.
    TimedOut,
}

/// What was in the inbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Oldest first.
    pub messages: Vec<(MessageId, String)>,
    /// Files that are no messages, with the reason; they are in `rejected/` now, and their senders were told.
    pub rejected: Vec<Rejection>,
    /// Files that the disk did not give this time; they stay and are read by the next `drain`.
    pub postponed: Vec<Rejection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub name: String,
    pub reason: String,
}

/// The engine's side; only the holder of the run's lock may have one.
pub struct Inbox {
    disk: SharedDisk,
    dir: PathBuf,
}

impl Inbox {
    /// Opens the inbox and creates what is missing of it.
    pub fn open(disk: SharedDisk, dir: &Path) -> Result<Inbox, InboxError> {
        for part in [dir.join(ACKS), dir.join(REJECTED)] {
            atomic_file::create_dir_durable(disk.as_ref(), &part).map_err(io_error("create it", &part))?;
        }
        Ok(Inbox { disk, dir: dir.to_owned() })
    }

    /// Drops a person's order with the user's seal; without a key as it is.
    pub fn send_order(
        disk: &dyn Disk,
        dir: &Path,
        at_ms: u64,
        key: Option<&RunKey>,
        order: &str,
    ) -> Result<MessageId, InboxError> {
        for _ in 0..NAME_TRIES {
            let id = MessageId::unique(at_ms);
            let body = key.map_or_else(|| order.to_owned(), |key| order::seal(key, &id, order));
            match Inbox::send_as(disk, dir, &id, &body)? {
                FirstWins::Created => return Ok(id),
                FirstWins::AlreadyThere => {}
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(InboxError::Io { action: "find a free name for the message", path: dir.to_owned(), source })
    }

    /// Drops a message for the engine; it is durable when this returns. `at_ms` is the sender's clock.
    pub fn send(disk: &dyn Disk, dir: &Path, at_ms: u64, body: &str) -> Result<MessageId, InboxError> {
        for _ in 0..NAME_TRIES {
            let id = MessageId::unique(at_ms);
            match Inbox::send_as(disk, dir, &id, body)? {
                FirstWins::Created => return Ok(id),
                FirstWins::AlreadyThere => {}
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(InboxError::Io { action: "find a free name for the message", path: dir.to_owned(), source })
    }

    /// As [`Inbox::send`] under a name that the sender chose: sent again after a crash it is the same message.
    pub fn send_as(disk: &dyn Disk, dir: &Path, id: &MessageId, body: &str) -> Result<FirstWins, InboxError> {
        if body.len() as u64 > MESSAGE_BYTES_MAX {
            return Err(InboxError::TooLarge { found: body.len() as u64 });
        }
        let path = dir.join(id.file_name());
        atomic_file::create_first_wins(disk, &path, body.as_bytes())
            .map_err(io_error("write the message", &path))
    }

    /// Waits for the acknowledgement of a message. `lock_is_free` says whether no engine holds the run.
    pub fn wait_for_ack(
        disk: &dyn Disk,
        dir: &Path,
        id: &MessageId,
        deadline: Instant,
        lock_is_free: &dyn Fn() -> bool,
    ) -> Result<AckOutcome, InboxError> {
        let mut pause = POLL_FIRST;
        loop {
            if let Some(acknowledgement) = Self::read_ack(disk, dir, id)? {
                return Ok(AckOutcome::Acked(acknowledgement));
            }
            if lock_is_free() {
                // The engine may have acknowledged between our look and its end.
                let last_look = Self::read_ack(disk, dir, id)?;
                return Ok(last_look.map_or(AckOutcome::LockIsFree, AckOutcome::Acked));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(AckOutcome::TimedOut);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(POLL_LAST);
        }
    }

    /// The acknowledgement of a message, if it is there.
    pub fn read_ack(
        disk: &dyn Disk,
        dir: &Path,
        id: &MessageId,
    ) -> Result<Option<Acknowledgement>, InboxError> {
        let path = dir.join(ACKS).join(id.file_name());
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read the acknowledgement", &path)(error)),
        };
        let stored: StoredAck = serde_json::from_slice(&bytes)
            .map_err(|source| InboxError::BadAcknowledgement { path: path.clone(), source })?;
        Ok(Some(Acknowledgement { verdict: stored.verdict, message: stored.message }))
    }

    /// Every message that was not acknowledged yet. Reading does not remove: [`Inbox::acknowledge`] does.
    /// Leftovers of a crash between acknowledgement and removal are removed here.
    pub fn drain(&self) -> Result<Drained, InboxError> {
        let names = self.disk.list_dir(&self.dir).map_err(io_error("list it", &self.dir))?;
        let mut drained = Drained::default();
        for name in names {
            if name == ACKS || name == REJECTED || atomic_file::is_temporary(&name) {
                continue;
            }
            match self.read_message(&name) {
                Read::Message(id, body) => match Self::read_ack(self.disk.as_ref(), &self.dir, &id) {
                    Ok(Some(_)) => self.remove_leftover(&id)?,
                    // An acknowledgement that cannot be read does not make the message unread: the journal knows.
                    Ok(None) | Err(_) => drained.messages.push((id, body)),
                },
                Read::Gone => {}
                Read::Bad(reason) => drained.rejected.push(self.reject(&name, reason)),
                Read::NotNow(error) => drained.postponed.push(Rejection {
                    name: name.to_string_lossy().into_owned(),
                    reason: format!("cannot be read now: {error}"),
                }),
            }
        }
        Ok(drained)
    }

    /// Tells the sender what became of the message, then removes it. To be called when the outcome is durable in
    /// the journal; may be called again, the first acknowledgement stays.
    pub fn acknowledge(&self, id: &MessageId, acknowledgement: &Acknowledgement) -> Result<(), InboxError> {
        self.write_ack(id, acknowledgement)?;
        self.remove(id)
    }

    fn write_ack(&self, id: &MessageId, acknowledgement: &Acknowledgement) -> Result<(), InboxError> {
        let path = self.dir.join(ACKS).join(id.file_name());
        let stored = StoredAck {
            v: ACK_VERSION,
            verdict: acknowledgement.verdict,
            message: acknowledgement.message.clone(),
        };
        let bytes = serde_json::to_vec(&stored)
            .map_err(|source| InboxError::BadAcknowledgement { path: path.clone(), source })?;
        atomic_file::create_first_wins(self.disk.as_ref(), &path, &bytes)
            .map_err(io_error("write the acknowledgement", &path))?;
        Ok(())
    }

    /// Whoever wrote the acknowledgement may have died before its name was durable.
    fn remove_leftover(&self, id: &MessageId) -> Result<(), InboxError> {
        let acks = self.dir.join(ACKS);
        self.disk.sync_dir(&acks).map_err(io_error("make the acknowledgements durable", &acks))?;
        self.remove(id)
    }

    /// Not synced: if a power cut brings the message back, its acknowledgement is there.
    fn remove(&self, id: &MessageId) -> Result<(), InboxError> {
        let path = self.dir.join(id.file_name());
        match self.disk.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove the message", &path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn read_message(&self, name: &OsStr) -> Read {
        let path = self.dir.join(name);
        let stat = match self.disk.stat(&path) {
            Ok(stat) => stat,
            Err(error) => return Read::failed(error),
        };
        if stat.kind != FileKind::File {
            return Read::Bad("is not a plain file".to_owned());
        }
        let Some(id) = name.to_str().and_then(MessageId::from_file_name) else {
            return Read::Bad("is not named like a message (<ms>-<sender>.json)".to_owned());
        };
        // One byte more than allowed: the file may have grown since it was looked at.
        let bytes = match self.disk.read_range(&path, 0, MESSAGE_BYTES_MAX + 1) {
            Ok(bytes) => bytes,
            Err(error) => return Read::failed(error),
        };
        if stat.len.max(bytes.len() as u64) > MESSAGE_BYTES_MAX {
            return Read::Bad(format!("is larger than {MESSAGE_BYTES_MAX} bytes"));
        }
        match String::from_utf8(bytes) {
            Ok(body) => Read::Message(id, body),
            Err(_) => Read::Bad("is not UTF-8".to_owned()),
        }
    }

    /// Sets a bad file aside and tells its sender, if it has one. Nothing here may stop the engine.
    fn reject(&self, name: &OsStr, reason: String) -> Rejection {
        let shown = name.to_string_lossy().into_owned();
        let mut reason = reason;
        if let Err(error) = self.disk.rename(&self.dir.join(name), &self.dir.join(REJECTED).join(name)) {
            reason = format!("{reason}; and it could not be moved to {REJECTED}/: {error}");
        }
        if let Some(id) = name.to_str().and_then(MessageId::from_file_name) {
            let message = format!("the message {reason}");
            let told = self.write_ack(&id, &Acknowledgement { verdict: Verdict::Refused, message });
            if let Err(error) = told {
                reason = format!("{reason}; and its sender could not be told: {error}");
            }
        }
        Rejection { name: shown, reason }
    }
}

/// The acknowledgement as it is on disk.
#[derive(Serialize, Deserialize)]
struct StoredAck {
    v: u32,
    verdict: Verdict,
    message: String,
}

/// What a name in the inbox turned out to be.
enum Read {
    Message(MessageId, String),
    /// Somebody removed it meanwhile.
    Gone,
    /// It will never be a message.
    Bad(String),
    /// A failure of the disk says nothing about the message: an answer must not be lost by it.
    NotNow(io::Error),
}

impl Read {
    fn failed(error: io::Error) -> Read {
        match error.kind() {
            io::ErrorKind::NotFound => Read::Gone,
            io::ErrorKind::PermissionDenied => Read::Bad("must not be read by the engine's user".to_owned()),
            _ => Read::NotNow(error),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.reason)
    }
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> InboxError {
    move |source| InboxError::Io { action, path: path.to_owned(), source }
}
