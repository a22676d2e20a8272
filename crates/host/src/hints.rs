//! What is known of an interrupted attempt before its successor starts: what its agents said on the way
//! (`gatewright progress update`), and what lies uncommitted where it worked. Read only; hints are never state.

use gatewright_core::{event::FailureClass, ids::StepId, state::State};
use serde_json::{Value, json};

use crate::{run_context::RunContext, streams::judged};

/// The file in an attempt's folder that hints are appended to, one JSON object a line.
pub const HINTS_FILE: &str = "progress.jsonl";
const HINTS_MAX: usize = 200;
const FILES_MAX: usize = 200;

/// `hints` and `uncommitted` for the prompt after an interruption, else none.
pub fn resumed(context: &RunContext, state: &State, step: &StepId, attempt: u32) -> Value {
    let interrupted = state
        .steps
        .get(step)
        .and_then(|own| own.last_failure.as_ref())
        .is_some_and(|failure| failure.class == FailureClass::Interrupted);
    if !interrupted {
        return Value::Null;
    }
    json!({"hints": hints(context, step, attempt), "uncommitted": uncommitted(context, state, step)})
}

/// Everything that earlier attempts of the step said, oldest first.
fn hints(context: &RunContext, step: &StepId, attempt: u32) -> Vec<Value> {
    let mut all = Vec::new();
    for number in 1..attempt {
        let path = context.paths.attempt(step.as_str(), number).join("out").join(HINTS_FILE);
        let Ok(bytes) = context.disk.read(&path) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // A line that was cut off with its writer says nothing.
        all.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    let from = all.len().saturating_sub(HINTS_MAX);
    all.split_off(from)
}

fn uncommitted(context: &RunContext, state: &State, step: &StepId) -> Vec<String> {
    let git = judged::reading(&context.workdir(state, step));
    let listed = git.names(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
    let entries = listed.unwrap_or_default();
    entries.iter().filter_map(|entry| entry.get(3..)).take(FILES_MAX).map(str::to_owned).collect()
}
