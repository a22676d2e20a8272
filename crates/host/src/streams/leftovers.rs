//! Worktrees that nobody needs any more: of runs that are over or gone.

use std::path::PathBuf;

use super::{judged, lock, place::RUN_STREAM, worktree};
use crate::{perform::sandbox::is_linked, project::Project};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub run: String,
    pub name: String,
    pub path: PathBuf,
    /// Nothing in it that is on no branch.
    pub clean: bool,
}

/// Folders of worktrees whose run is over; `is_over` is asked by run id and says yes for unknown ones.
pub fn find(project: &Project, is_over: &dyn Fn(&str) -> bool) -> Vec<Leftover> {
    let mut found = Vec::new();
    for run in folders(&project.state.join("worktrees")) {
        let id = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_over(&id) {
            continue;
        }
        for path in folders(&run) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // One that git is led elsewhere from is not asked.
            let clean = is_linked(&project.root, &path) && worktree::is_clean(&path);
            found.push(Leftover { run: id.clone(), name, path, clean });
        }
    }
    for (id, path) in beside(&project.runs()).into_iter().filter(|(id, path)| is_over(id) && path.is_dir()) {
        let clean = is_linked(&project.root, &path) && worktree::is_clean(&path);
        found.push(Leftover { run: id, name: RUN_STREAM.to_owned(), path, clean });
    }
    found
}

/// Worktrees that are where their workflows want them, with their runs; they may be gone.
pub fn beside(runs: &std::path::Path) -> Vec<(String, PathBuf)> {
    let of = |run: PathBuf| {
        let text = std::fs::read(run.join("streams").join(format!("{RUN_STREAM}.json"))).ok()?;
        let record: worktree::Record = serde_json::from_slice(&text).ok()?;
        let id = run.file_name()?.to_string_lossy().into_owned();
        let own = record.path.parent()?.file_name()?.to_string_lossy() == id;
        (!own).then_some((id, record.path))
    };
    folders(runs).into_iter().filter_map(of).collect()
}

pub fn folders(of: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Takes it away. What is on no branch is kept as a patch first; its path is given back.
pub fn remove(project: &Project, leftover: &Leftover) -> Result<Option<PathBuf>, String> {
    let _lock = lock::take(&project.state.join("worktrees/lock")).map_err(|error| error.to_string())?;
    let mut kept = None;
    if !leftover.clean {
        if !is_linked(&project.root, &leftover.path) {
            let place = leftover.path.display();
            return Err(format!(
                "{place}: is no worktree of this repository any more; move it away yourself"
            ));
        }
        let scratch = project.state.join("worktrees").join(format!(".{}.patching", leftover.run));
        let patch = judged::with_index(project.state_root(), &leftover.path, &scratch, |git| {
            worktree::everything_since(git, "HEAD")
        })
        .map_err(|error| format!("{}: is no worktree any more: {error}", leftover.path.display()))?;
        let path = project.state.join("patches").join(format!("{}-{}.patch", leftover.run, leftover.name));
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, patch))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        kept = Some(path);
    }
    worktree::remove(&project.root, &leftover.path).map_err(|error| error.to_string())?;
    // Only what is ours, and only if nothing is in it any more.
    if let Some(folder) = leftover.path.parent().filter(|folder| folder.starts_with(&project.state)) {
        let _ = std::fs::remove_dir(folder);
    }
    Ok(kept)
}
