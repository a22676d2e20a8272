//! What agents say on their way (`gatewright progress update`, `update_progress`): read while they work and journaled, and told to the
//! successor of an interrupted one with what lies uncommitted where it worked. Hints are never state.

use std::path::{Path, PathBuf};

use gatewright_attempts::Git;
use gatewright_core::{event::FailureClass, fact::Hint, ids::StepId, plan::limits, state::State};
use gatewright_workflow::reply::tool_file::TOOL_PROGRESS_FILE;
use serde_json::{Value, json};

use crate::{mask::Masks, run_context::RunContext, streams::judged};

/// The file in an attempt's folder that hints are appended to, one JSON object a line.
pub const HINTS_FILE: &str = TOOL_PROGRESS_FILE;
/// More of it is not read.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// As its schema has it.
const SUMMARY_CHARACTERS_MAX: usize = 100;
const TEXT_CHARACTERS_MAX: usize = 1000;
const FILES_MAX: usize = 200;

/// Reads what an attempt tells, as often as it has grown.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    heard_bytes: u64,
    masks: Masks,
}

impl Listener {
    pub fn new(out: &Path, masks: Masks) -> Listener {
        Listener { path: out.join(HINTS_FILE), heard_bytes: 0, masks }
    }

    /// Everything that was told so far, if there is more of it than the last time.
    pub fn more(&mut self) -> Option<Vec<Hint>> {
        let bytes = std::fs::metadata(&self.path).ok().filter(std::fs::Metadata::is_file)?.len();
        if bytes <= self.heard_bytes {
            return None;
        }
        self.heard_bytes = bytes;
        let hints = heard(&self.path, &self.masks);
        (!hints.is_empty()).then_some(hints)
    }
}

fn heard(path: &Path, masks: &Masks) -> Vec<Hint> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // A line without its end is still being written, or was cut off with its writer: it says nothing.
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.filter_map(|line| hint(line, masks)).take(limits::HINTS_MAX).collect()
}

/// One line, in the words of the progress files.
fn hint(line: &str, masks: &Masks) -> Option<Hint> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str, most: usize| {
        // Before it is cut: half a secret is not told.
        Some(masks.mask(value.get(name)?.as_str()?).chars().take(most).collect::<String>())
    };
    let files = value.get("files_touched").and_then(Value::as_array).cloned().unwrap_or_default();
    Some(Hint {
        status: text("status", TEXT_CHARACTERS_MAX)?,
        summary: text("summary", SUMMARY_CHARACTERS_MAX).unwrap_or_default(),
        milestone: text("milestone_id", TEXT_CHARACTERS_MAX),
        subtask: text("subtask_id", TEXT_CHARACTERS_MAX),
        files: files
            .iter()
            .filter_map(Value::as_str)
            .take(FILES_MAX)
            .map(|file| masks.mask(file).into_owned())
            .collect(),
        error: text("error", TEXT_CHARACTERS_MAX),
        at: text("timestamp", TEXT_CHARACTERS_MAX)
            .filter(|time| time.parse::<jiff::Timestamp>().is_ok())
            .unwrap_or_default(),
    })
}

/// A hint in the words of the progress files.
pub fn update(hint: &Hint) -> Value {
    json!({
        "milestone_id": hint.milestone, "subtask_id": hint.subtask, "status": hint.status,
        "summary": hint.summary, "files_touched": hint.files, "error": hint.error, "timestamp": hint.at,
    })
}

/// `hints` and `uncommitted` for the prompt after an interruption, else none.
pub fn resumed(context: &RunContext, state: &State, step: &StepId) -> Value {
    let Some(own) = state.steps.get(step) else { return Value::Null };
    let interrupted =
        own.last_failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Interrupted);
    if !interrupted {
        return Value::Null;
    }
    let hints: Vec<Value> = own.hints.values().flatten().map(update).collect();
    let git = judged::reading(&context.workdir(state, step));
    let base = own.launched.as_ref().and_then(|launched| launched.1.commit.clone());
    let committed = base.and_then(|base| git.names(&["diff", "-z", "--name-only", &base, "HEAD"]).ok());
    let committed: Vec<String> = committed.unwrap_or_default().into_iter().take(FILES_MAX).collect();
    json!({"hints": hints, "committed": committed, "uncommitted": uncommitted(&git)})
}

fn uncommitted(git: &Git) -> Vec<String> {
    let listed = git.names(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
    let entries = listed.unwrap_or_default();
    entries.iter().filter_map(|entry| entry.get(3..)).take(FILES_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_heard_once_and_secrets_in_them_are_masked() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut listener = Listener::new(folder.path(), Masks::default());
        assert_eq!(listener.more(), None);
        let key = format!("sk-ant-{}", "a1".repeat(12));
        let first = json!({"status": "in_progress", "summary": format!("FR-001 with {key}"), "milestone_id": "M-build"});
        std::fs::write(folder.path().join(HINTS_FILE), format!("{first}\nno json\n{{\"status\": \"compl"))
            .unwrap();
        let heard = listener.more().unwrap();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].milestone.as_deref(), Some("M-build"));
        assert!(
            heard[0].summary.starts_with("FR-001") && !heard[0].summary.contains(&key),
            "{}",
            heard[0].summary
        );
        assert_eq!(listener.more(), None, "nothing new");
    }
}
