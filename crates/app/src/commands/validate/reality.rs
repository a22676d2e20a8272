//! Whether what a completion claims is there: files on disk, changes in git.

use std::path::Path;

use gatewright_attempts::Git;
use serde_json::Value;

use super::{Fault, code};

/// A step of the completion whose name fits has passed.
pub fn passed(completion: &Value, fits: impl Fn(&str) -> bool) -> bool {
    let steps = completion.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
    steps.iter().any(|step| {
        step.get("status").and_then(Value::as_str) == Some("passed")
            && step.get("name").and_then(Value::as_str).is_some_and(&fits)
    })
}

pub fn check(completion: &Value, path: &Path) -> Result<Vec<String>, Fault> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let texts = |key: &str| -> Vec<String> {
        let list = completion.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let is_there = |name: &String| Path::new(name).exists() || folder.join(name).exists();
    let mut problems: Vec<String> = texts("output_files")
        .into_iter()
        .filter(|name| !is_there(name))
        .map(|name| format!("the output `{name}` does not exist"))
        .collect();
    let git = Git::at(".");
    let changed = git.names(&["diff", "-z", "--name-only", "HEAD~1"]).unwrap_or_default();
    let modified = texts("files_modified");
    problems.extend(modified.iter().filter(|name| !is_there(name) && !changed.contains(name)).map(|name| {
        format!("`{name}` is said to be modified; it does not exist and git knows no change of it")
    }));
    let is_complete = completion.get("status").and_then(Value::as_str) == Some("complete");
    let is_engineer =
        |name: &str| name == "se" || name.starts_with("implement") || name.starts_with("software_engineer");
    if is_complete && modified.is_empty() && passed(completion, is_engineer) {
        problems.push("the implementation is said to have passed and no file was modified".to_owned());
    }
    if !problems.is_empty() {
        return Err(Fault { code: code::REALITY, problems });
    }
    let mut said = vec!["ok  reality".to_owned()];
    let head = git.text(&["rev-parse", "HEAD"]).unwrap_or_default();
    let claimed = completion.get("git_sha").and_then(Value::as_str).unwrap_or_default();
    if !claimed.is_empty() && !head.starts_with(claimed) {
        said.push(format!("warning: git_sha is {claimed}, HEAD is {head}"));
    }
    Ok(said)
}
