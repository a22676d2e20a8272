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

/// The end of a record that holds its `sum`, with room for a `mac` behind it.
const TAIL_BYTES: u64 = 256;
const VERSION: u32 = 2;

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

/// Which journal, and how far: a change that keeps the length shows in the times, and a summary of
/// another journal in the checksum of the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    pub seq: u64,
    pub sum: String,
    pub bytes: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
}

/// As it is stored: an edited copy no longer fits its digest.
#[derive(Serialize, Deserialize)]
struct Stored {
    digest: String,
    summary: Summary,
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
    let Some(digest) = digest(&context.meta.id, &summary) else { return };
    if let Ok(bytes) = serde_json::to_vec(&Stored { digest, summary }) {
        let _ = atomic_file::replace(
            context.disk.as_ref(),
            &context.paths.summary(),
            &bytes,
            Durability::Rebuildable,
        );
    }
}

fn digest(run: &str, summary: &Summary) -> Option<String> {
    let mut bytes = run.as_bytes().to_vec();
    bytes.extend(serde_json::to_vec(summary).ok()?);
    Some(hash_bytes(&bytes).0)
}

/// Reads it if it is still true. Everything that is not certain is a reason to read the journal.
pub fn read(disk: &dyn Disk, paths: &RunPaths, run: &str) -> Option<Summary> {
    let stored: Stored = serde_json::from_slice(&disk.read(&paths.summary()).ok()?).ok()?;
    let Stored { digest: told, summary } = stored;
    if summary.version != VERSION || digest(run, &summary)? != told {
        return None;
    }
    let (mark, journal) = (&summary.journal, paths.journal());
    let stat = disk.stat(&journal).ok()?;
    let same = stat.len == mark.bytes
        && stat.modified_ns == mark.modified_ns
        && stat.changed_ns == mark.changed_ns
        && mark.seq > 0;
    if !same {
        return None;
    }
    let tail = disk.read_range(&journal, stat.len.saturating_sub(TAIL_BYTES), TAIL_BYTES).ok()?;
    let wanted = format!("\"sum\":\"{}\"", mark.sum);
    tail.windows(wanted.len()).any(|part| part == wanted.as_bytes()).then_some(summary)
}
