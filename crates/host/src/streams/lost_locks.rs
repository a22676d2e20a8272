//! Lock files that a git which was killed left in a worktree of ours, or on its branch: an agent's git that ended
//! with its attempt, or our own that died with its engine. They go before the next git needs the place, unless a
//! living process may hold them. Locks of the user's own places are never touched; git's refusal names them.

use std::path::PathBuf;

use gatewright_attempts::clear_lock;

use super::{judged, place::Stream};
use crate::{
    run_context::RunContext,
    scope::picture::{common_git_dir, git_dir},
};

pub fn clear(context: &RunContext, stream: &Stream) {
    // Only where nobody can have led us elsewhere.
    if !judged::is_linked(context, &stream.path) {
        return;
    }
    let (Some(own), Some(common)) = (git_dir(&stream.path), common_git_dir(&stream.path)) else { return };
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|end| end == "lock") && path.is_file();
    let in_worktree = std::fs::read_dir(&own).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_branch = common.join(format!("refs/heads/{}.lock", stream.branch));
    let trees = [stream.path.clone(), own.clone()];
    for lock in in_worktree.chain([of_branch]).filter(is_lock) {
        // What stays is named by the git that finds it.
        clear_lock(&lock, &trees);
    }
}
