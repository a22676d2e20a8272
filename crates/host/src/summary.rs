//! `summary.json`: the state of a resting run in short, so that listing five hundred runs does not
//! fold five hundred journals. Derived; valid only while the journal has the length it names.

use gatewright_core::{explain, state::State};
use serde::{Deserialize, Serialize};

use crate::{
    atomic_file::{self, Durability},
    disk::Disk,
    document,
    project::RunPaths,
    run_context::RunContext,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub version: u32,
    pub journal_bytes: u64,
    pub seq: u64,
    pub state: String,
    pub done: usize,
    pub steps: usize,
    pub waiting_for: Vec<String>,
    pub blocked_by: Option<String>,
    pub updated_at_ms: u64,
    pub started_at_ms: u64,
}

/// The short form of a state.
pub fn of(context: &RunContext, state: &State, seq: u64, journal_bytes: u64) -> Summary {
    let (done, steps) = explain::progress(state);
    Summary {
        version: 1,
        journal_bytes,
        seq,
        state: document::status_word(state).to_owned(),
        done,
        steps,
        waiting_for: state.queues.pending_decisions.iter().map(ToString::to_string).collect(),
        blocked_by: explain::blocked_by(&context.frozen.plan, state).map(|by| by.message),
        updated_at_ms: state.updated_at.0,
        started_at_ms: state.started_at.0,
    }
}

/// Writes it; losing it costs only time.
pub fn write(context: &RunContext, state: &State, seq: u64) {
    let Ok(stat) = context.disk.stat(&context.paths.journal()) else { return };
    let summary = of(context, state, seq, stat.len);
    if let Ok(bytes) = serde_json::to_vec(&summary) {
        let _ = atomic_file::replace(
            context.disk.as_ref(),
            &context.paths.summary(),
            &bytes,
            Durability::Rebuildable,
        );
    }
}

/// Reads it if it is still true.
pub fn read(disk: &dyn Disk, paths: &RunPaths) -> Option<Summary> {
    let summary: Summary = serde_json::from_slice(&disk.read(&paths.summary()).ok()?).ok()?;
    (disk.stat(&paths.journal()).ok()?.len == summary.journal_bytes).then_some(summary)
}
