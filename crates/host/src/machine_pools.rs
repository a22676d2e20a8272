//! Places that all runs of a user on this machine share (`pools: { database: { depth: 1, scope: machine } }`):
//! locks of files below the state directory. They die with the engine that holds them.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use gatewright_core::{ids::StepId, state::State};

use crate::{project::file_name, run_context::RunContext, streams::lock};

const LOOK_EVERY: Duration = Duration::from_millis(25);

/// What a step needs of the machine before it starts.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pools: Vec<(String, u32)>,
    who: String,
    /// There while it waits, with the reason, for `why`.
    note: PathBuf,
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct Places {
    _locks: Vec<File>,
}

impl Wish {
    /// Always in the same order, so that two steps never wait for each other.
    pub fn of(context: &RunContext, state: &State, step: &StepId) -> Wish {
        let named = state.definition(&context.frozen.plan, step).map(|own| own.pools.as_slice());
        let depth = |pool| context.frozen.machine_pools.get(pool).map(|depth| (format!("{pool}"), *depth));
        let mut pools: Vec<(String, u32)> = named.unwrap_or_default().iter().filter_map(depth).collect();
        pools.sort();
        Wish { pools, who: format!("{} {step}", context.meta.id), note: note(context, step) }
    }

    /// Waits for a place in each pool; `None`: it is not wanted any more.
    pub fn take(&self, root: &Path, wanted: &dyn Fn() -> bool) -> io::Result<Option<Places>> {
        let mut locks = Vec::new();
        for (pool, depth) in &self.pools {
            let folder = root.join(file_name(pool));
            let mut told = false;
            let place = loop {
                if let Some(place) = self.try_one(&folder, *depth)? {
                    break place;
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
            locks.push(place);
        }
        Ok(Some(Places { _locks: locks }))
    }

    /// Whoever stands at the door looks for a place; the others wait behind it.
    fn try_one(&self, folder: &Path, depth: u32) -> io::Result<Option<File>> {
        let Some(_door) = lock::try_take(&folder.join("door"))? else { return Ok(None) };
        for number in 1..=depth {
            let path = folder.join(number.to_string());
            if let Some(mut place) = lock::try_take(&path)? {
                // For people only; the lock is what counts.
                let _ = place.set_len(0).and_then(|()| place.write_all(self.who.as_bytes()));
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn tell(&self, folder: &Path, pool: &str, depth: u32) {
        let holders: Vec<String> = (1..=depth)
            .filter_map(|number| std::fs::read_to_string(folder.join(number.to_string())).ok())
            .filter(|who| !who.is_empty())
            .collect();
        let text = format!(
            "all {depth} place(s) of `{pool}` on this machine are taken (by {})",
            if holders.is_empty() { "another run".to_owned() } else { holders.join(", ") }
        );
        let made = self.note.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = made.and_then(|()| std::fs::write(&self.note, text));
    }
}

fn note(context: &RunContext, step: &StepId) -> PathBuf {
    context.paths.pool_note(step.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn wish(folder: &Path, depth: u32) -> Wish {
        Wish {
            pools: vec![("database".to_owned(), depth)],
            who: "run step".to_owned(),
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
                    let place = wish(folder.path(), 2).take(folder.path(), &|| true).unwrap().unwrap();
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
        let held = wish(folder.path(), 1).take(folder.path(), &|| true).unwrap();
        let looks = AtomicU32::new(0);
        let gave_up = wish(folder.path(), 1)
            .take(folder.path(), &|| {
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
        assert!(wish(folder.path(), 1).take(folder.path(), &|| false).unwrap().is_some());
    }
}
