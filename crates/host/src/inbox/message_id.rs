//! Names of messages: unique without asking anybody, in the order of sending. Must not know files.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// `<ms>-<pid>-<count>-<random>`; the engine journals it, so a message is done once however often it is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MessageId(String);

const SUFFIX: &str = ".json";

impl MessageId {
    /// An id that no other process has, also not one with the same pid in another container.
    pub(super) fn unique(at_ms: u64) -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        // The standard library seeds it from the system; this is a name, not a secret.
        let random = RandomState::new().build_hasher().finish() as u32;
        // Padded, so that the order of names is the order of time and of sending within one process.
        MessageId(format!("{at_ms:014}-{}-{count:08}-{random:08x}", std::process::id()))
    }

    /// The id written in this text; `None` when it could name anything but a message.
    pub fn parse(id: &str) -> Option<Self> {
        let time = id.split('-').next().unwrap_or_default();
        let named_by_time = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()) && id != time;
        let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (named_by_time && plain).then(|| MessageId(id.to_owned()))
    }

    pub(super) fn from_file_name(name: &str) -> Option<Self> {
        name.strip_suffix(SUFFIX).and_then(MessageId::parse)
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> String {
        id.0
    }
}

/// The text is no id of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no message id, expected <ms>-<pid>-<count>-<random>")]
pub struct BadMessageId(String);

impl TryFrom<String> for MessageId {
    type Error = BadMessageId;

    fn try_from(id: String) -> Result<Self, BadMessageId> {
        MessageId::parse(&id).ok_or(BadMessageId(id))
    }
}
