//! The name under which people find the branch of a run (`branch:` of a workflow). While the run is under way it is
//! another name of the engine's own branch: agents may write that one, and no branch of the user. In the end it is
//! the branch.

use gatewright_attempts::Git;

use super::place::{RUN_STREAM, Stream};
use crate::run_context::RunContext;

fn reference(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// Gives it, unless somebody has it meanwhile. A run without it is as good.
pub fn give(context: &RunContext, stream: &Stream) {
    let Some(name) = context.meta.branch.as_deref().filter(|_| stream.name == RUN_STREAM) else { return };
    let git = Git::at(&context.meta.root);
    if !git.holds(&["rev-parse", "--verify", "-q", &reference(name)]) {
        let _ = git.text(&["symbolic-ref", &reference(name), &reference(&stream.branch)]);
    }
}

/// Takes it away; true if it was there and was ours.
pub fn take(context: &RunContext, branch: &str) -> bool {
    let Some(name) = context.meta.branch.as_deref() else { return false };
    let git = Git::at(&context.meta.root);
    let leads = git.text(&["symbolic-ref", "-q", &reference(name)]).unwrap_or_default();
    leads == reference(branch) && git.text(&["symbolic-ref", "--delete", &reference(name)]).is_ok()
}

/// The run is over and its work stays on its branch: that one gets the name.
pub fn settle(context: &RunContext, branch: &str) {
    let Some(name) = context.meta.branch.as_deref() else { return };
    let git = Git::at(&context.meta.root);
    if git.holds(&["rev-parse", "--verify", "-q", &reference(branch)]) && take(context, branch) {
        let _ = git.text(&["branch", "-m", branch, name]);
    }
}
