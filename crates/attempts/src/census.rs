//! How many processes there are below this one, and their end all at once. A limit of the kernel's own (RLIMIT_NPROC)
//! counts whatever the user runs, so that a browser of the user would stop an agent; hence they are counted.
//! It must not know the agent, nor wait: the supervisor calls again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process_table;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The table of processes is read this often even if the machine's total says that nothing can have happened: others
/// may end while ours become more.
const SCAN_EVERY: Duration = Duration::from_secs(5);
/// Who multiplies while it is told to halt is told again. More rounds than this help nobody.
const HALTS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Census {
    most: Option<u32>,
    look_at: Instant,
    /// What must have happened before the table is read again, which takes long where there are many processes.
    scan: Scan,
}

#[derive(Debug, Clone, Copy)]
struct Scan {
    /// The machine has this many threads.
    from_threads: usize,
    by: Option<Instant>,
}

impl Census {
    pub(crate) fn new(most: Option<u32>, now: Instant) -> Self {
        let from_threads = most.map_or(usize::MAX, |most| most as usize + 1);
        Self { most, look_at: now + LOOK_EVERY, scan: Scan { from_threads, by: None } }
    }

    pub(crate) fn most(&self) -> Option<u32> {
        self.most
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.most.map(|_| self.look_at)
    }

    /// Whether there are too many by now.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let Some(most) = self.most.filter(|_| now >= self.look_at) else { return false };
        self.look_at = now + LOOK_EVERY;
        let most = most as usize;
        // Where it cannot be read, the table is.
        let threads = threads_of_the_machine().unwrap_or(usize::MAX);
        let is_due = self.scan.by.is_some_and(|by| now >= by);
        if threads <= most || (threads < self.scan.from_threads && !is_due) {
            return false;
        }
        let count = below_us().len();
        let room = most.saturating_sub(count) + 1;
        self.scan = Scan { from_threads: threads.saturating_add(room), by: Some(now + SCAN_EVERY) };
        count > most
    }

    /// Ends everything below us. Each is halted first: what is halted does not multiply.
    pub(crate) fn end_all() {
        let mut halted = BTreeSet::new();
        for _ in 0..HALTS_MAX {
            let found = below_us();
            let new: Vec<_> = found.into_iter().filter(|one| halted.insert(one.identity)).collect();
            if new.is_empty() {
                break;
            }
            for one in new {
                process_table::signal(one.identity, Signal::STOP);
            }
        }
        for identity in halted {
            process_table::signal(identity, Signal::KILL);
        }
    }
}

fn below_us() -> Vec<process_table::ProcessStat> {
    let own_pid = BTreeSet::from([std::process::id().cast_signed()]);
    process_table::descendants(&own_pid, &process_table::all())
}

/// `0.52 0.58 0.59 2/617 8123`: running and all.
fn threads_of_the_machine() -> Option<usize> {
    let line = std::fs::read_to_string("/proc/loadavg").ok()?;
    line.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_as_many_threads_as_we_and_more() {
        assert!(threads_of_the_machine().unwrap() > 2);
    }

    #[test]
    fn children_are_counted_and_a_limit_that_holds_is_no_reason() {
        let start = Instant::now();
        let mut children: Vec<_> =
            (0..3).map(|_| std::process::Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let later = start + LOOK_EVERY;
        let over = |most| Census::new(most, start).is_over(later);
        // Tests beside this one may have children too.
        let found = (over(Some(2)), over(Some(100_000)), over(None));
        let early = Census::new(Some(2), start).is_over(start);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, (true, false, false));
        assert!(!early, "nobody looks all the time");
    }
}
