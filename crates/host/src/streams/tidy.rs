//! When a run rests: worktrees whose work is safe on a branch are taken away, the others are kept, with a
//! patch of what did not pass. Nothing here fails a run; what cannot be done now is a leftover for `doctor`.

use std::{collections::BTreeMap, path::Path};

use gatewright_attempts::Git;
use gatewright_core::{
    event::{ItemEnd, RunEnd},
    state::{RunPhase, State},
};

use super::{
    judged, lock, merge,
    place::RUN_STREAM,
    public_name,
    worktree::{self, Record},
};
use crate::run_context::RunContext;

/// What became of the work of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The run is done, and so is this.
    Done,
    /// It did not pass.
    Lost,
    /// It may still be needed as it is.
    Open,
}

pub fn tidy(context: &RunContext, state: &State) {
    let records = Record::all(&context.paths);
    if records.is_empty() {
        return;
    }
    if matches!(state.phase, RunPhase::Ended { .. }) {
        merge::undo_left_over(context, &context.run_place());
    }
    let fates = fates(context, state);
    let of_run = match &state.phase {
        RunPhase::Ended { how: RunEnd::Done, .. } => Fate::Done,
        RunPhase::Ended { .. } => Fate::Lost,
        RunPhase::Created | RunPhase::Running | RunPhase::Stopping | RunPhase::Paused(_) => Fate::Open,
    };
    let Ok(_lock) = lock::take(&context.paths.worktree_lock()) else { return };
    let known = Git::at(&context.meta.root).text(&["worktree", "list", "--porcelain"]).unwrap_or_default();
    for record in &records {
        let fate = match (fates.get(&record.name), of_run) {
            (Some(Fate::Lost), _) => Fate::Lost,
            (_, run) => run,
        };
        match fate {
            Fate::Open => {}
            Fate::Lost => keep(context, record),
            Fate::Done => leave(context, record, &known),
        }
    }
    if of_run == Fate::Done {
        forget_merged(context, &records);
    }
    // Only if nothing is in it any more.
    let _ = std::fs::remove_dir(context.paths.worktrees());
}

/// How the items with worktrees ended, by the name of their stream.
fn fates(context: &RunContext, state: &State) -> BTreeMap<String, Fate> {
    let mut fates = BTreeMap::new();
    for (step, fan_out) in &state.fan_outs {
        if !context.text(state, step).own_worktree {
            continue;
        }
        for (key, item) in &fan_out.items {
            let fate = match &item.end {
                Some(ItemEnd::Passed) => Fate::Done,
                Some(ItemEnd::Failed { .. } | ItemEnd::Blocked { .. }) => Fate::Lost,
                None => Fate::Open,
            };
            fates.insert(context.item_stream(state, step, key).name, fate);
        }
    }
    fates
}

/// Takes it away if nothing in it can be lost. Whoever is killed here is followed by somebody who goes on: what
/// is half gone would not look clean any more.
fn leave(context: &RunContext, record: &Record, known: &str) {
    let line = format!("worktree {}", record.path.display());
    if !record.path.exists() && !known.lines().any(|other| other == line) {
        return;
    }
    if !record.leaving {
        let path = &record.path;
        if path.exists() && !(judged::is_linked(context, path) && worktree::is_clean(path)) {
            return keep(context, record);
        }
        let leaving = Record { leaving: true, ..record.clone() };
        if leaving.write(context).is_err() {
            return;
        }
    }
    let _ = worktree::remove(&context.meta.root, &record.path);
}

/// What it would have changed, as a file that outlives the folder.
fn keep(context: &RunContext, record: &Record) {
    if !record.path.exists() {
        return;
    }
    let Ok(patch) = worktree::patch(context, record) else { return };
    let path = context.paths.patch(&record.name);
    if patch.is_empty() || std::fs::read(&path).is_ok_and(|known| known == patch) {
        return;
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let _ = made.and_then(|()| std::fs::write(&path, &patch));
}

/// Branches whose work is all in another one that stays.
fn forget_merged(context: &RunContext, records: &[Record]) {
    let git = Git::at(&context.meta.root);
    let home = context.meta.base_branch.iter().cloned();
    let of_run =
        records.iter().filter(|record| record.name == RUN_STREAM).map(|record| record.branch.clone());
    let keepers: Vec<String> = home.chain(of_run).collect();
    // The run's own comes last: the others may be safe only in it.
    let (own, streams): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| record.name == RUN_STREAM);
    for record in streams.into_iter().chain(own).filter(|record| !record.path.exists()) {
        let safe = |keeper: &&String| {
            **keeper != record.branch && git.holds(&["merge-base", "--is-ancestor", &record.branch, keeper])
        };
        if keepers.iter().any(|keeper| safe(&keeper)) {
            public_name::take(context, &record.branch);
            remove_branch(&context.meta.root, &record.branch);
        } else if record.name == RUN_STREAM {
            public_name::settle(context, &record.branch);
        }
    }
}

fn remove_branch(root: &Path, branch: &str) {
    let _ = Git::at(root).text(&["branch", "-D", branch]);
}
