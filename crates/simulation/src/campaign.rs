//! Many lives, on all cores, added up.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{life::live, watcher::Coverage};

/// What many lives were like together.
#[derive(Default)]
pub struct Tally {
    pub runs: u64,
    pub events: u64,
    pub engines: u64,
    pub crashes: u64,
    pub disk_errors: u64,
    pub ended: std::collections::BTreeMap<&'static str, u64>,
    pub coverage: Coverage,
    /// The first life in which something did not hold.
    pub failed: Option<(u64, String)>,
}

/// Lives the lives of these seeds; stops at the first that fails.
pub fn campaign(from: u64, runs: u64, threads: u64) -> Tally {
    let (next, stop) = (AtomicU64::new(from), AtomicBool::new(false));
    let parts: Vec<Tally> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| {
                    let mut tally = Tally::default();
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= from + runs {
                            break;
                        }
                        tally.live(seed);
                        stop.fetch_or(tally.failed.is_some(), Ordering::Relaxed);
                    }
                    tally
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    parts.into_iter().fold(Tally::default(), Tally::and)
}

impl Tally {
    fn live(&mut self, seed: u64) {
        let lived = match catch_unwind(AssertUnwindSafe(|| live(seed, false))) {
            Ok(lived) => lived,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                self.failed = Some((seed, format!("panic: {}", text.unwrap_or_default())));
                return;
            }
        };
        self.runs += 1;
        self.events += lived.events;
        self.engines += lived.engines;
        self.crashes += lived.crashes;
        self.disk_errors += lived.disk_errors;
        *self.ended.entry(lived.ended).or_default() += 1;
        for (pair, count) in lived.coverage {
            *self.coverage.entry(pair).or_default() += count;
        }
        if let Err(problem) = lived.outcome {
            self.failed = Some((seed, problem));
        }
    }

    fn and(mut self, other: Tally) -> Tally {
        self.runs += other.runs;
        self.events += other.events;
        self.engines += other.engines;
        self.crashes += other.crashes;
        self.disk_errors += other.disk_errors;
        for (how, count) in other.ended {
            *self.ended.entry(how).or_default() += count;
        }
        for (pair, count) in other.coverage {
            *self.coverage.entry(pair).or_default() += count;
        }
        let first = |failed: &(u64, String)| failed.0;
        self.failed = self.failed.into_iter().chain(other.failed).min_by_key(first);
        self
    }
}
