//! Whether what a completion claims is there: files on disk, changes in git.

use std::path::{Path, PathBuf};

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

/// Where something that a completion names may be: relative to the working directory, to the repository, or beside the
/// completion itself.
struct Places {
    folders: Vec<PathBuf>,
    /// Neither the repository nor the folder of the completion is left (J-53).
    homes: Vec<PathBuf>,
}

impl Places {
    fn new(git: &Git, path: &Path) -> Places {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let root =
            git.text(&["rev-parse", "--show-toplevel"]).map_or_else(|_| PathBuf::from("."), PathBuf::from);
        let homes = [root.as_path(), folder].iter().filter_map(|home| home.canonicalize().ok()).collect();
        Places { folders: vec![PathBuf::from("."), root, folder.to_owned()], homes }
    }

    /// It is there; and where it is, is inside. The last link is not followed: it is what git has.
    fn find(&self, name: &str) -> Found {
        let there: Vec<PathBuf> = self
            .folders
            .iter()
            .map(|folder| folder.join(name))
            .filter(|path| path.symlink_metadata().is_ok())
            .collect();
        let inside = |path: &PathBuf| {
            let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
            let whole = parent.zip(path.file_name()).map(|(parent, last)| parent.join(last));
            let whole = whole.or_else(|| path.canonicalize().ok());
            whole.is_some_and(|path| self.homes.iter().any(|home| path.starts_with(home)))
        };
        if there.iter().any(inside) {
            Found::Inside
        } else if there.is_empty() {
            Found::Nowhere
        } else {
            Found::Outside
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Inside,
    Outside,
    Nowhere,
}

/// What a stream deleted is gone: that it was changed is seen since `base`, or in the last change.
pub fn check(completion: &Value, path: &Path, base: Option<&str>) -> Result<Vec<String>, Fault> {
    let texts = |key: &str| -> Vec<String> {
        let list = completion.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let git = Git::at(".");
    let places = Places::new(&git, path);
    let outside =
        |name: &str| format!("`{name}` is outside of the repository and of the completion's folder");
    let mut problems = Vec::new();
    for name in texts("output_files") {
        match places.find(&name) {
            Found::Inside => {}
            Found::Outside => problems.push(outside(&name)),
            Found::Nowhere => problems.push(format!("the output `{name}` does not exist")),
        }
    }
    let changed = match base {
        Some(base) => since(&git, base)?,
        None => git.names(&["diff", "-z", "--name-only", "HEAD~1"]).unwrap_or_default(),
    };
    let modified = texts("files_modified");
    for name in &modified {
        match places.find(name) {
            Found::Inside => {}
            Found::Outside => problems.push(outside(name)),
            Found::Nowhere if changed.contains(name) => {}
            Found::Nowhere => problems.push(format!(
                "`{name}` is said to be modified; it does not exist and git knows no change of it"
            )),
        }
    }
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

fn since(git: &Git, base: &str) -> Result<Vec<String>, Fault> {
    let unknown = || Fault::new(code::USAGE, format!("--pre-sha: git knows no commit `{base}` here"));
    let named = format!("{base}^{{commit}}");
    let commit =
        git.text(&["rev-parse", "-q", "--verify", "--end-of-options", &named]).map_err(|_| unknown())?;
    git.names(&["diff", "-z", "--name-only", "--no-renames", commit.trim()]).map_err(|_| unknown())
}
