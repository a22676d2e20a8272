//! Supervisors that this engine started itself: they are waited for, and how each ended is known.
//! It must not know what a supervisor does.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// By attempt directory; `None` while it lives.
static ENDS: Mutex<BTreeMap<PathBuf, Option<ExitStatus>>> = Mutex::new(BTreeMap::new());
static ENDED: Condvar = Condvar::new();
/// The lock is free, so it is dead or dying.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits for it, in a thread of its own. If no thread can be had, it stays a zombie until we end.
pub(crate) fn watch(dir: &Path, mut child: Child) {
    let dir = dir.to_owned();
    ENDS.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.clone(), None);
    let key = dir.clone();
    let wait = move || {
        let status = child.wait().ok();
        let mut ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Some(status) => drop(ends.insert(key, Some(status))),
            None => drop(ends.remove(&key)),
        }
        ENDED.notify_all();
    };
    let name = "reap supervisor".to_owned();
    if std::thread::Builder::new().name(name).stack_size(64 * 1024).spawn(wait).is_err() {
        ENDS.lock().unwrap_or_else(PoisonError::into_inner).remove(&dir);
    }
}

/// Whether the supervisor of an attempt, whose lock is free, was ended by a signal. `false` also for one that this
/// engine did not start: then nobody knows. Forgets it.
pub(crate) fn was_killed(dir: &Path) -> bool {
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = ENDED.wait_timeout_while(ends, PATIENCE, |ends| matches!(ends.get(dir), Some(None)));
    let (mut ends, _) = waited.unwrap_or_else(PoisonError::into_inner);
    ends.remove(dir).flatten().is_some_and(|status| status.signal().is_some())
}
