//! The journal: the append-only truth of one run, as JSON lines. Must not know what the events mean.
//!
//! A line: `{"seq":7,"v":1,"at":"2026-11-15T22:30:00.123Z","type":…,…,"sum":"32 hex"}`, with a key also
//! `,"mac":"64 hex"` after `sum`. `sum` covers the previous `sum` and the line before `,"sum":`, so lines cannot
//! be changed, dropped, moved or taken from another run without notice; `mac` says who wrote them.

mod error;
mod head;
mod reader;
mod record;
mod verify;
mod writer;

pub use error::JournalError;
pub use reader::JournalReader;
pub use record::{EVENT_BYTES_MAX, JournalKey, Record, VERSION};
pub use writer::{Journal, Recovery, lock_path};
