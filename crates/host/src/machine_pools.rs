//! Places that all runs of a user on this machine share (`pools: { database: { depth: 1, scope: machine } }`):
//! files below the state directory. A place is taken as long as the engine that took it holds its lock, or the
//! attempt that it was taken for is alive: an engine that was killed leaves neither a lock of its own behind nor a
//! place free that its agent still works in.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use gatewright_core::{ids::StepId, state::State};
use serde::{Deserialize, Serialize};

use crate::{project::file_name, run_context::RunContext, scope::checkout::is_locked, streams::lock};

const LOOK_EVERY: Duration = Duration::from_millis(25);

/// What a step needs of the machine before it starts.
#[derive(Clone, Debug)]
pub struct Wish {
    pools: Vec<(String, u32)>,
    who: Holder,
    /// There while it waits, with the reason, for `why`.
    note: PathBuf,
}

/// Who has a place, in the file of the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    version: u32,
    run: String,
    step: String,
    attempt: u32,
    /// Its supervisor holds the lock in here as long as it lives.
    attempt_dir: PathBuf,
}

impl Holder {
    fn read(place: &mut File) -> Option<Holder> {
        let mut bytes = Vec::new();
        place.rewind().and_then(|()| place.read_to_end(&mut bytes)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn write(&self, place: &mut File) -> io::Result<()> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        place.set_len(0)?;
        place.rewind()?;
        place.write_all(&bytes)
    }

    fn lives(&self) -> bool {
        is_locked(&self.attempt_dir.join("lock"))
    }
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct Places {
    taken: Vec<File>,
}

impl Drop for Places {
    fn drop(&mut self) {
        for place in &self.taken {
            // It says nobody's name any more; the lock is what counts, and it ends with us.
            let _ = place.set_len(0);
        }
    }
}

impl Wish {
    /// Always in the same order, so that two steps never wait for each other.
    pub fn of(context: &RunContext, state: &State, step: &StepId, attempt: u32) -> Wish {
        let named = state.definition(&context.frozen.plan, step).map(|own| own.pools.as_slice());
        let depth = |pool| context.frozen.machine_pools.get(pool).map(|depth| (format!("{pool}"), *depth));
        let mut pools: Vec<(String, u32)> = named.unwrap_or_default().iter().filter_map(depth).collect();
        pools.sort();
        let who = Holder {
            version: 1,
            run: context.meta.id.clone(),
            step: step.to_string(),
            attempt,
            attempt_dir: context.paths.attempt(step.as_str(), attempt),
        };
        Wish { pools, who, note: context.paths.pool_note(step.as_str()) }
    }

    /// Waits for a place in each pool; `None`: it is not wanted any more. One that lives already keeps the
    /// places it has and waits for none.
    pub fn take(&self, root: &Path, lives: bool, wanted: &dyn Fn() -> bool) -> io::Result<Option<Places>> {
        let mut places = Places { taken: Vec::new() };
        for (pool, depth) in &self.pools {
            let folder = root.join(file_name(pool));
            let mut told = false;
            let place = loop {
                let found = self.try_one(&folder, *depth)?;
                if found.is_some() || lives {
                    break found;
                }
                if !wanted() {
                    let _ = std::fs::remove_file(&self.note);
                    return Ok(None);
                }
                if !told {
                    told = true;
                    self.tell(&folder, pool, *depth);
                }
                std::thread::sleep(LOOK_EVERY);
            };
            if told {
                let _ = std::fs::remove_file(&self.note);
            }
            places.taken.extend(place);
        }
        Ok(Some(places))
    }

    /// Whoever stands at the door looks for a place; the others wait behind it.
    fn try_one(&self, folder: &Path, depth: u32) -> io::Result<Option<File>> {
        let Some(_door) = lock::try_take(&folder.join("door"))? else { return Ok(None) };
        let mut free = None;
        for number in 1..=depth {
            let Some(mut place) = lock::try_take(&folder.join(number.to_string()))? else { continue };
            let holder = Holder::read(&mut place);
            if holder.as_ref() == Some(&self.who) {
                // An engine that comes after the one that took it finds the place of its attempt.
                return Ok(Some(place));
            }
            if free.is_none() && holder.is_none_or(|other| !other.lives()) {
                free = Some(place);
            }
        }
        let Some(mut place) = free else { return Ok(None) };
        self.who.write(&mut place)?;
        Ok(Some(place))
    }

    fn tell(&self, folder: &Path, pool: &str, depth: u32) {
        let holders: Vec<String> = (1..=depth)
            .filter_map(|number| Holder::read(&mut File::open(folder.join(number.to_string())).ok()?))
            .map(|who| format!("{} {}", who.run, who.step))
            .collect();
        let text = format!(
            "all {depth} place(s) of `{pool}` on this machine are taken (by {})",
            if holders.is_empty() { "another run".to_owned() } else { holders.join(", ") }
        );
        let made = self.note.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = made.and_then(|()| std::fs::write(&self.note, text));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn wish(folder: &Path, depth: u32) -> Wish {
        Wish {
            pools: vec![("database".to_owned(), depth)],
            who: Holder {
                version: 1,
                run: "run".to_owned(),
                step: "step".to_owned(),
                attempt: 1,
                attempt_dir: folder.join("attempt"),
            },
            note: folder.join("note"),
        }
    }

    #[test]
    fn never_more_than_the_depth_at_a_time_and_everybody_gets_a_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (live, most, turns) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let place = wish(folder.path(), 2).take(folder.path(), false, &|| true).unwrap().unwrap();
                    most.fetch_max(live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    live.fetch_sub(1, Ordering::SeqCst);
                    turns.fetch_add(1, Ordering::SeqCst);
                    drop(place);
                });
            }
        });
        assert_eq!((most.load(Ordering::SeqCst), turns.load(Ordering::SeqCst)), (2, 6));
    }

    #[test]
    fn who_waits_says_for_whom_and_may_give_up() {
        let folder = tempfile::tempdir().unwrap();
        let held = wish(folder.path(), 1).take(folder.path(), false, &|| true).unwrap();
        let looks = AtomicU32::new(0);
        let gave_up = wish(folder.path(), 1)
            .take(folder.path(), false, &|| {
                let first = looks.fetch_add(1, Ordering::SeqCst) == 0;
                if !first {
                    let said = std::fs::read_to_string(folder.path().join("note")).unwrap();
                    assert!(
                        said.contains("`database` on this machine") && said.contains("run step"),
                        "{said}"
                    );
                }
                first
            })
            .unwrap();
        assert!(gave_up.is_none());
        drop(held);
        assert!(wish(folder.path(), 1).take(folder.path(), false, &|| false).unwrap().is_some());
    }

    #[test]
    fn a_place_stays_taken_while_its_attempt_lives_although_its_engine_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = wish(folder.path(), 1);
        std::fs::create_dir_all(&first.who.attempt_dir).unwrap();
        let supervisor = lock::take(&first.who.attempt_dir.join("lock")).unwrap();
        // The engine is killed: its locks are free, and nobody tidied up.
        let held = first.take(folder.path(), false, &|| true).unwrap().unwrap();
        held.taken.iter().for_each(|place| place.unlock().unwrap());
        std::mem::forget(held);
        let mut second = wish(folder.path(), 1);
        second.who.run = "other".to_owned();
        assert!(second.take(folder.path(), false, &|| false).unwrap().is_none(), "its agent is at work");
        // The engine that comes next finds the place of its attempt.
        let again = first.take(folder.path(), true, &|| false).unwrap().unwrap();
        assert_eq!(again.taken.len(), 1);
        again.taken.iter().for_each(|place| place.unlock().unwrap());
        std::mem::forget(again);
        drop(supervisor);
        assert!(second.take(folder.path(), false, &|| false).unwrap().is_some(), "the dead have no place");
    }
}
