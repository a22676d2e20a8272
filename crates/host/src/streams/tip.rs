//! Where the branches of a run stand, as whoever worked there by right left them. Git must be able to write beside a
//! branch to move it, so in the sandbox too an agent can move those of every stream of its run. What it moved is put
//! back and told, and what is merged is what stands here. Must not know what is on them.

use gatewright_attempts::{Defence, Git};

use super::{intrusion, lock, place::Stream, worktree::Record};
use crate::run_context::RunContext;

/// The commit that a branch stands on.
pub fn stands(context: &RunContext, branch: &str) -> Option<String> {
    let reference = format!("refs/heads/{branch}^{{commit}}");
    Git::at(&context.meta.root).text(&["rev-parse", "--verify", "-q", &reference]).ok()
}

/// Where it stands now is where it belongs.
pub fn keep(context: &RunContext, stream: &Stream) {
    if let Some(record) = Record::read(&context.paths, &stream.name) {
        keep_record(context, record);
    }
}

/// The engine is about to move it: whoever finds it moved after a crash finds the engine's own work.
pub fn loosen(context: &RunContext, stream: &Stream) -> Result<(), String> {
    match Record::read(&context.paths, &stream.name) {
        Some(record) if record.tip.is_some() => {
            Record { tip: None, ..record }.write(context).map_err(|error| error.to_string())
        }
        Some(_) | None => Ok(()),
    }
}

fn keep_record(context: &RunContext, mut record: Record) {
    let tip = stands(context, &record.branch);
    if tip.is_some() && tip != record.tip {
        record.tip = tip;
        // Without it the branch is put back to where it was kept last, which is told.
        let _ = record.write(context);
    }
}

/// An engine takes the run up, and no agent is at work: whoever moved a branch since was a person. One that is loose
/// may be moved at this moment, by a git that outlived its engine.
pub fn adopt(context: &RunContext) {
    for record in Record::all(&context.paths).into_iter().filter(|record| record.tip.is_some()) {
        keep_record(context, record);
    }
}

/// Puts every branch back on whose stream nobody is at work; what was found, in words.
pub fn put_back(context: &RunContext) -> Vec<String> {
    if Defence::Tips.is_off() {
        return Vec::new();
    }
    let idle = |record: Record| {
        let since = intrusion::idle_since(&record.path)?;
        // Whoever commits or merges there holds it.
        let path = context.paths.streams().join(format!("{}.lock", record.name));
        let _lock = lock::try_take(&path).ok().flatten()?;
        let record = Record::read(&context.paths, &record.name)?;
        let found = moved(context, &record)?;
        (intrusion::idle_since(&record.path) == Some(since)).then(|| back(context, &record, found)).flatten()
    };
    Record::all(&context.paths).into_iter().filter_map(idle).collect()
}

/// Puts one back, whoever is at work there; what was found, in words. Whoever commits or merges there is waited for.
pub fn put_back_own(context: &RunContext, stream: &Stream) -> Option<String> {
    put_back_branch(context, &stream.branch)
}

/// The same for a stream of which only the branch is known.
pub fn put_back_branch(context: &RunContext, branch: &str) -> Option<String> {
    if Defence::Tips.is_off() {
        return None;
    }
    let known = || Record::all(&context.paths).into_iter().find(|record| record.branch == branch);
    let _lock = lock::take(&context.paths.streams().join(format!("{}.lock", known()?.name))).ok()?;
    let record = known()?;
    let found = moved(context, &record)?;
    back(context, &record, found)
}

/// Where it stands instead; empty: nowhere.
fn moved(context: &RunContext, record: &Record) -> Option<String> {
    let tip = record.tip.as_ref().filter(|_| record.ready)?;
    let found = stands(context, &record.branch).unwrap_or_default();
    (found != *tip).then_some(found)
}

fn back(context: &RunContext, record: &Record, found: String) -> Option<String> {
    let tip = record.tip.as_deref()?;
    let reference = format!("refs/heads/{}", record.branch);
    let git = Git::at(&context.meta.root);
    let done = git.text(&["update-ref", "-m", "gatewright: put back", &reference, tip]);
    let found = if found.is_empty() { "gone".to_owned() } else { format!("on {}", short(&found)) };
    let end = match done {
        Ok(_) => format!("it is put back on {}", short(tip)),
        Err(error) => format!("it cannot be put back on {}: {error}", short(tip)),
    };
    Some(format!("branch `{}` was {found} although nobody had the right to move it; {end}", record.branch))
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
