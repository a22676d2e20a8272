//! Run directories: what engines published there, and who changed it. Must not know roles.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gatewright_core::ids::ContentHash;

use super::{BEFORE_FILE, Watch};
use crate::{
    plain_file,
    publish::Ledger,
    run_context::{RunContext, hash_bytes},
    run_meta::RunMeta,
};

/// Published files of a run that are looked for after an attempt: whoever removes the folder removes these too.
const PUBLISHED_MAX: usize = 100;

/// The run directories of this project, with the folder of each run's state.
pub(crate) fn run_dirs(context: &RunContext) -> Vec<(PathBuf, PathBuf)> {
    context.paths.dir.parent().map(run_dirs_below).unwrap_or_default()
}

/// The same, by the folder of a project's runs.
pub(super) fn run_dirs_below(runs: &Path) -> Vec<(PathBuf, PathBuf)> {
    fs::read_dir(runs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let bytes = fs::read(entry.path().join("run.json")).ok()?;
            let meta: RunMeta = serde_json::from_slice(&bytes).ok()?;
            Some((entry.path(), meta.run_dir))
        })
        .collect()
}

/// A published file that is no longer what its engine wrote there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// Seen from the repository, if it is in there.
    pub(super) shown: String,
    pub(super) path: PathBuf,
    pub(super) run_dir: PathBuf,
    /// What counts.
    pub(super) accepted: ContentHash,
    pub(super) now: ContentHash,
    name: String,
    state: PathBuf,
}

impl Edited {
    /// The bytes that count, from where their run keeps them.
    pub(super) fn accepted_bytes(&self) -> Option<Vec<u8>> {
        let folders = |of: &Path| fs::read_dir(of).into_iter().flatten().flatten().map(|entry| entry.path());
        let attempts = folders(&self.state.join("attempts")).flat_map(|step| folders(&step));
        let staged = attempts.map(|attempt| attempt.join("out").join(&self.name));
        let adopted = self.state.join("adopted").join(&self.accepted.0);
        let counts = |path: PathBuf| {
            let bytes = plain_file::read(&path).ok()?;
            (hash_bytes(&bytes) == self.accepted).then_some(bytes)
        };
        std::iter::once(adopted).chain(staged).find_map(counts)
    }
}

/// Published files, of any run, that are no longer what their engine wrote there and were touched by now:
/// an attempt may write its own outputs to their places, nobody else's.
pub(super) fn edited_in_run_dirs(context: &RunContext, watch: &Watch) -> Vec<Edited> {
    let started = fs::metadata(context.paths.attempt(watch.step.as_str(), watch.attempt).join(BEFORE_FILE));
    let Ok(started) = started.and_then(|data| data.modified()) else { return Vec::new() };
    edited_since(context, started, &watch.outputs)
}

/// Those that were touched since a moment, but for the run's own of these names.
pub(super) fn edited_since(
    context: &RunContext,
    started: std::time::SystemTime,
    own: &[String],
) -> Vec<Edited> {
    let mut found = Vec::new();
    for (state, dir) in run_dirs(context) {
        let ours = state == context.paths.dir;
        let suspects = edited(context, &state, &dir, Some(started));
        if suspects.is_empty() {
            continue;
        }
        // An engine may be between its file and its ledger: what it writes is soon in both.
        std::thread::sleep(std::time::Duration::from_millis(150));
        let still = edited(context, &state, &dir, Some(started)).into_iter();
        let known = |one: &Edited| suspects.iter().any(|other| other.name == one.name);
        found.extend(still.filter(|one| known(one) && !(ours && own.contains(&one.name))));
    }
    found.retain(|one| !is_of_another(context, one));
    found
}

/// Runs one after the other may have the same folder: what the later one published there is nobody's edit.
fn is_of_another(context: &RunContext, one: &Edited) -> bool {
    let others =
        run_dirs(context).into_iter().filter(|(state, dir)| *dir == one.run_dir && *state != one.state);
    others.map(|(state, _)| ledger(&state)).any(|ledger| ledger.artifacts.get(&one.name) == Some(&one.now))
}

/// Whether a published file is, at whatever time it was written, another one than its run accepted.
pub(super) fn edited_at(context: &RunContext, shown: &str) -> Option<Edited> {
    let path = context.meta.root.join(shown);
    let around = run_dirs(context).into_iter().filter(|(_, dir)| path.starts_with(dir));
    around
        .flat_map(|(state, dir)| edited(context, &state, &dir, None))
        .find(|one| one.shown == shown && !is_of_another(context, one))
}

fn edited(
    context: &RunContext,
    state: &Path,
    dir: &Path,
    since: Option<std::time::SystemTime>,
) -> Vec<Edited> {
    use std::os::unix::fs::MetadataExt;
    let since = since
        .map(|since| since.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64() - 0.05);
    let touched = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|data| {
            since.is_none_or(|since| data.ctime() as f64 + data.ctime_nsec() as f64 / 1e9 >= since)
        })
    };
    // Projections are written anew and named by the publisher; artifacts are what others rest on.
    let changed = ledger(state).artifacts.into_iter().filter_map(|(name, accepted)| {
        let path = dir.join(&name);
        let bytes = touched(&path).then(|| plain_file::read(&path).ok())??;
        let now = hash_bytes(&bytes);
        let shown = path.strip_prefix(&context.meta.root).unwrap_or(&path).display().to_string();
        let (state, run_dir) = (state.to_owned(), dir.to_owned());
        (now != accepted).then_some(Edited { shown, path, run_dir, accepted, now, name, state })
    });
    changed.collect()
}

/// Those of this run that are in their places.
pub(super) fn published(context: &RunContext) -> Vec<String> {
    let names = ledger(&context.paths.dir).artifacts.into_keys();
    names.filter(|name| context.meta.run_dir.join(name).exists()).take(PUBLISHED_MAX).collect()
}

/// What the engine of a run published last.
pub(super) fn ledger(state: &Path) -> Ledger {
    let bytes = fs::read(state.join("published.json")).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
