//! Worktrees that runs left behind: listed, and taken away on request.

use std::sync::Arc;

use gatewright_host::{
    disk::RealDisk,
    project::Project,
    store::RunStore,
    streams::leftovers::{self, Leftover},
};

use super::{Finding, Level};

pub fn findings(project: &Project, remove: bool) -> Vec<Finding> {
    let store = RunStore::new(Arc::new(RealDisk), project.clone());
    // By the journal, not by the list. A run that cannot be read may still be mended: its worktrees stay.
    let is_over = |id: &str| {
        let paths = store.project.run(id);
        !paths.dir.exists() || store.snapshot(id, None).is_ok_and(|snapshot| snapshot.state.is_over())
    };
    let left = leftovers::find(project, &is_over);
    left.iter().map(|one| if remove { removed(project, one) } else { listed(one) }).collect()
}

fn listed(one: &Leftover) -> Finding {
    let state = if one.clean { "" } else { ", with changes that are on no branch" };
    let what = format!("{}: worktree of run {}, which is over{state}", one.path.display(), one.run);
    Finding::new(Level::Note, what, "gatewright doctor --remove-worktrees takes it away; its branch stays")
}

fn removed(project: &Project, one: &Leftover) -> Finding {
    match leftovers::remove(project, one) {
        Ok(None) => Finding::new(Level::Note, format!("{} was taken away", one.path.display()), ""),
        Ok(Some(patch)) => {
            let what = format!(
                "{} was taken away; {} has what was on no branch",
                one.path.display(),
                patch.display()
            );
            Finding::new(Level::Note, what, format!("git apply {}", patch.display()))
        }
        Err(error) => {
            let what = format!("{}: could not be taken away: {error}", one.path.display());
            Finding::new(Level::Warning, what, "git worktree list shows what git knows of it")
        }
    }
}
