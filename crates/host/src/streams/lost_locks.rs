//! Lock files that a git which was killed left in a worktree of ours, or on its branch: an agent's git that ended
//! with its attempt, or our own that died with its engine. They go before the next git needs the place, unless a
//! living process may hold them. Locks of the user's own places are never touched; git's refusal names them.

use std::path::{Path, PathBuf};

use gatewright_attempts::clear_lock;

use super::{judged, place::Stream};
use crate::{
    run_context::RunContext,
    scope::picture::{common_git_dir, git_dir},
};

/// Everything of a worktree and its branch.
pub fn clear(context: &RunContext, stream: &Stream) {
    // Only where nobody can have led us elsewhere.
    if !judged::is_linked(context, &stream.path) {
        return;
    }
    clear_branch(context, stream);
    let Some(own) = git_dir(&stream.path) else { return };
    let trees = [stream.path.clone(), own.clone()];
    for entry in std::fs::read_dir(&own).into_iter().flatten().flatten() {
        clear_one(&entry.path(), &trees);
    }
}

/// Of its branch alone, which may be there when its worktree is not yet.
pub fn clear_branch(context: &RunContext, stream: &Stream) {
    let Some(common) = common_git_dir(&context.meta.root) else { return };
    let trees: Vec<PathBuf> = std::iter::once(stream.path.clone()).chain(git_dir(&stream.path)).collect();
    clear_one(&common.join(format!("refs/heads/{}.lock", stream.branch)), &trees);
}

fn clear_one(path: &Path, trees: &[PathBuf]) {
    if path.extension().is_some_and(|end| end == "lock") && path.is_file() {
        // What stays is named by the git that finds it.
        clear_lock(path, trees);
    }
}
