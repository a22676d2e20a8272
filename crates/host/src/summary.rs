//! `summary.json`: the state of a resting run in short, so that listing five hundred runs does not
//! fold five hundred journals. Derived; believed only while the journal is the one it was made from.

use gatewright_core::{explain, state::State};
use gatewright_workflow::frozen::Frozen;
use serde::{Deserialize, Serialize};

use crate::{
    atomic_file::{self, Durability},
    disk::Disk,
    document,
    project::RunPaths,
    run_context::{RunContext, hash_bytes},
};

const VERSION: u32 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub version: u32,
    /// The journal it was made from: its last record, its length, and when the file last changed.
    pub journal: JournalMark,
    pub state: String,
    pub done: usize,
    pub steps: usize,
    pub waiting_for: Vec<String>,
    pub blocked_by: Option<String>,
    pub updated_at_ms: u64,
    pub started_at_ms: u64,
}

/// Which journal, and how far. Every change shows in the time at which the file last changed, which no
/// program can set; so does a copy of the whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    pub seq: u64,
    pub sum: String,
    pub bytes: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
}

/// The short form of a state.
pub fn of(frozen: &Frozen, state: &State, journal: JournalMark) -> Summary {
    let (done, steps) = explain::progress(state);
    Summary {
        version: VERSION,
        journal,
        state: document::status_word(state).to_owned(),
        done,
        steps,
        waiting_for: state.queues.pending_decisions.iter().map(ToString::to_string).collect(),
        blocked_by: explain::blocked_by(&frozen.plan, state).map(|by| by.message),
        updated_at_ms: state.updated_at.0,
        started_at_ms: state.started_at.0,
    }
}

/// Writes it; losing it costs only time.
pub fn write(context: &RunContext, state: &State, seq: u64, sum: String) {
    let Ok(stat) = context.disk.stat(&context.paths.journal()) else { return };
    let (modified_ns, changed_ns) = (stat.modified_ns, stat.changed_ns);
    let mark = JournalMark { seq, sum, bytes: stat.len, modified_ns, changed_ns };
    let summary = of(&context.frozen, state, mark);
    let Ok(text) = serde_json::to_vec(&summary) else { return };
    // Two lines: an edited copy, or one of another run, no longer fits its digest.
    let mut bytes = digest(&context.meta.id, &text).into_bytes();
    bytes.push(b'\n');
    bytes.extend(text);
    let (disk, path) = (context.disk.as_ref(), context.paths.summary());
    let _ = atomic_file::replace(disk, &path, &bytes, Durability::Rebuildable);
}

fn digest(run: &str, text: &[u8]) -> String {
    hash_bytes(&[run.as_bytes(), text].concat()).0
}

/// Reads it if it is still true. Everything that is not certain is a reason to read the journal.
pub fn read(disk: &dyn Disk, paths: &RunPaths, run: &str) -> Option<Summary> {
    let bytes = disk.read(&paths.summary()).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (told, text) = (&bytes[..end], &bytes[end + 1..]);
    if digest(run, text).as_bytes() != told {
        return None;
    }
    let summary: Summary = serde_json::from_slice(text).ok()?;
    if summary.version != VERSION {
        return None;
    }
    let mark = &summary.journal;
    let stat = disk.stat(&paths.journal()).ok()?;
    let same = stat.len == mark.bytes
        && stat.modified_ns == mark.modified_ns
        && stat.changed_ns == mark.changed_ns
        && mark.seq > 0;
    same.then_some(summary)
}
