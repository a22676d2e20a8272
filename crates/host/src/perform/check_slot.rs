//! Places for checks that are under way: a mark that says who is at work, and a temporary folder. The next check
//! uses them again.
//!
//! A check is a plain child: one whose engine was killed lives on. Its mark still names it then, and it is ended
//! before its successor begins, so that never two of them work in one tree (J-51).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use gatewright_attempts::{CheckMark, end_check, grouped_tmp_path, remove_group_tmp};
use gatewright_core::ids::{CheckId, StepId};

use crate::run_context::RunContext;

pub const VARIABLE: &str = "GATEWRIGHT_CHECK";

/// The places of every run that this process drives, by the folder of their marks.
static PLACES: Mutex<BTreeMap<PathBuf, Places>> = Mutex::new(BTreeMap::new());

#[derive(Default)]
struct Places {
    made: u32,
    free: Vec<(u32, CheckMark)>,
    /// The number of the place of each check under way; `false`: nobody wants its result any more.
    taken: BTreeMap<String, (u32, bool)>,
}

fn places() -> MutexGuard<'static, BTreeMap<PathBuf, Places>> {
    // Nothing is left half done while it is held.
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mark_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("slot-{number}"))
}

/// The place of one check, given back when it is dropped.
pub struct Slot {
    folder: PathBuf,
    name: String,
    number: u32,
    /// `None` on a full disk: the check runs all the same; it is only harder to find again.
    pub mark: Option<CheckMark>,
}

impl Slot {
    pub fn take(context: &RunContext, step: &StepId, attempt: u32, id: &CheckId) -> Slot {
        let folder = context.paths.checks();
        let name = name(context, step, attempt, id);
        // Cancelled a moment ago, and wanted again.
        let before = places().get(&folder).and_then(|own| own.taken.get(&name).map(|(number, _)| *number));
        if let Some(number) = before {
            end_check(&mark_path(&folder, number), &carrier(&name));
        }
        let (number, free) = {
            let mut all = places();
            let own = all.entry(folder.clone()).or_default();
            let (number, free) =
                own.free.pop().map_or((own.made, None), |(number, mark)| (number, Some(mark)));
            own.made = own.made.max(number + 1);
            own.taken.insert(name.clone(), (number, true));
            (number, free)
        };
        let mut mark = free.or_else(|| {
            std::fs::create_dir_all(&folder).ok()?;
            CheckMark::create(mark_path(&folder, number)).ok()
        });
        if let Some(mark) = &mut mark {
            mark.begin(carrier(&name));
        }
        Slot { folder, name, number, mark }
    }

    /// What the check is started with and nobody else.
    pub fn value(&self) -> &str {
        &self.name
    }

    pub fn carrier(&self) -> String {
        carrier(&self.name)
    }

    pub fn private_tmp(&self) -> PathBuf {
        grouped_tmp_path(&self.folder, &mark_path(&self.folder, self.number))
    }

    pub fn is_wanted(&self) -> bool {
        places()
            .get(&self.folder)
            .and_then(|own| own.taken.get(&self.name))
            .is_some_and(|(_, wanted)| *wanted)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut all = places();
        let Some(own) = all.get_mut(&self.folder) else { return };
        if own.taken.get(&self.name).is_some_and(|(number, _)| *number == self.number) {
            own.taken.remove(&self.name);
        }
        if let Some(mut mark) = self.mark.take() {
            mark.clear();
            own.free.push((self.number, mark));
        }
    }
}

/// Ends a check whose result nobody wants any more. `false`: it is not under way.
pub fn end(context: &RunContext, step: &StepId, attempt: u32, id: &CheckId) -> bool {
    let (folder, name) = (context.paths.checks(), name(context, step, attempt, id));
    let number = {
        let mut all = places();
        let taken = all.get_mut(&folder).and_then(|own| own.taken.get_mut(&name));
        let Some((number, wanted)) = taken else { return false };
        *wanted = false;
        *number
    };
    end_check(&mark_path(&folder, number), &carrier(&name));
    true
}

/// Ends every check that an engine before this one left behind. Whoever calls it holds the run's lock,
/// so nobody waits for their results; what is still wanted is started again.
pub fn sweep(context: &RunContext) {
    let folder = context.paths.checks();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        // Version 1 had a mark for each check, with its name.
        end_check(&entry.path(), &carrier(&entry.path().to_string_lossy()));
        let _ = std::fs::remove_file(entry.path());
    }
    rest(context);
}

/// No check is at work: what was kept for the next one goes away.
pub fn rest(context: &RunContext) {
    let folder = context.paths.checks();
    let free = {
        let mut all = places();
        let Some(own) = all.get_mut(&folder) else { return remove_group_tmp(&folder) };
        let free = std::mem::take(&mut own.free);
        if own.taken.is_empty() {
            all.remove(&folder);
        }
        free
    };
    for (_, mark) in free {
        let _ = std::fs::remove_file(mark.path());
    }
    remove_group_tmp(&folder);
}

fn name(context: &RunContext, step: &StepId, attempt: u32, id: &CheckId) -> String {
    context.paths.check_name(step.as_str(), attempt, id.as_str()).to_string_lossy().into_owned()
}

fn carrier(name: &str) -> String {
    format!("{VARIABLE}={name}")
}
