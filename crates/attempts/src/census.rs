//! How many processes an agent or a check has, and their end all at once. A limit of the kernel's own (RLIMIT_NPROC)
//! counts whatever the user runs, so that a browser of the user would stop an agent; hence they are counted.
//! It must not know the agent, nor wait: whoever counts calls again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::{
    defence::Defence,
    process_table::{self, ProcessStat},
};

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The table of processes is read this often even if the machine's total says that nothing can have happened: others
/// may end while ours become more.
const SCAN_EVERY: Duration = Duration::from_secs(5);
/// Who multiplies while it is told to halt is told again. More rounds than this help nobody.
const HALTS_MAX: usize = 100;

/// Whose processes are counted.
#[derive(Debug)]
pub(crate) enum Whose {
    /// Everything below this process, which is the parent of every orphan.
    Ours,
    /// A child of ours that leads a group. Its orphans are nobody's children: they are in the group, or they carry the
    /// `NAME=value` that it alone was started with.
    Check { leader: i32, carrier: Option<String> },
}

#[derive(Debug)]
pub(crate) struct Census {
    whose: Whose,
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
    pub(crate) fn new(whose: Whose, most: Option<u32>, now: Instant) -> Self {
        let most = most.filter(|_| !Defence::ProcessLimits.is_off());
        let from_threads = most.map_or(usize::MAX, |most| most as usize + 1);
        Self { whose, most, look_at: now + LOOK_EVERY, scan: Scan { from_threads, by: None } }
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
        let count = self.whose.count();
        let room = most.saturating_sub(count) + 1;
        self.scan = Scan { from_threads: threads.saturating_add(room), by: Some(now + SCAN_EVERY) };
        count > most
    }

    /// Ends all of them. Each is halted first: what is halted does not multiply.
    pub(crate) fn end_all(&self) {
        let mut halted = BTreeSet::new();
        for _ in 0..HALTS_MAX {
            let found = self.whose.found();
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

impl Whose {
    /// Counted where the kernel lists the children of each process, for a thousand supervisors that each read the table
    /// of everybody are busy with nothing else.
    fn count(&self) -> usize {
        let below = match self {
            Whose::Ours => process_table::count_below(std::process::id().cast_signed()),
            Whose::Check { .. } => None,
        };
        below.unwrap_or_else(|| self.found().len())
    }

    fn found(&self) -> Vec<ProcessStat> {
        let table = process_table::all();
        match self {
            Whose::Ours => {
                let own_pid = BTreeSet::from([std::process::id().cast_signed()]);
                process_table::descendants(&own_pid, &table)
            }
            Whose::Check { leader, carrier } => {
                let carries = |pid: i32| {
                    carrier.as_ref().is_some_and(|carrier| process_table::was_started_with(pid, carrier))
                };
                let is_its = |stat: &&ProcessStat| stat.group == *leader || carries(stat.identity.pid);
                let roots: Vec<ProcessStat> = table.iter().filter(is_its).cloned().collect();
                let pids: BTreeSet<i32> = roots.iter().map(|stat| stat.identity.pid).collect();
                let below = process_table::descendants(&pids, &table);
                roots.into_iter().filter(|stat| stat.alive).chain(below).collect()
            }
        }
    }
}

/// More numbers of processes than this are not tried one by one.
const NUMBERS_MAX: i32 = 50_000;

/// Ends who carries this `NAME=value` and is younger than the child that was the first to; their names. Numbers are
/// given in order, so that after a short check there are few to look at.
pub(crate) fn end_left_behind(leader: i32, carrier: &str) -> Vec<String> {
    let newest = newest_process().unwrap_or(i32::MAX);
    let numbers: Vec<i32> = if (leader..=leader.saturating_add(NUMBERS_MAX)).contains(&newest) {
        (leader + 1..=newest).collect()
    } else {
        process_table::all().into_iter().map(|stat| stat.identity.pid).collect()
    };
    let own = std::process::id().cast_signed();
    let left =
        numbers.into_iter().filter(|pid| *pid != own && process_table::was_started_with(*pid, carrier));
    let left: Vec<ProcessStat> = left.filter_map(process_table::stat_of).filter(|stat| stat.alive).collect();
    for one in &left {
        process_table::signal(one.identity, Signal::KILL);
    }
    left.into_iter().map(|stat| stat.name).collect()
}

/// `0.52 0.58 0.59 2/617 8123`: threads that run and all, and the number that was given last.
fn load() -> Option<String> {
    std::fs::read_to_string("/proc/loadavg").ok()
}

fn threads_of_the_machine() -> Option<usize> {
    load()?.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

fn newest_process() -> Option<i32> {
    load()?.split_ascii_whitespace().nth(4)?.parse().ok()
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
        let over = |most| Census::new(Whose::Ours, most, start).is_over(later);
        // Tests beside this one may have children too.
        let found = (over(Some(2)), over(Some(100_000)), over(None));
        let early = Census::new(Whose::Ours, Some(2), start).is_over(start);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, (true, false, false));
        assert!(!early, "nobody looks all the time");
    }

    #[test]
    fn children_of_children_are_counted_from_the_lists_of_the_kernel() {
        let script = "sleep 60 & sleep 60 & echo there; wait";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shell.stdout.take().unwrap()), &mut line)
            .unwrap();
        let pid = shell.id().cast_signed();
        let (listed, table) = (process_table::count_below(pid), process_table::all());
        let below = process_table::descendants(&BTreeSet::from([pid]), &table);
        for one in &below {
            process_table::signal(one.identity, Signal::KILL);
        }
        shell.wait().unwrap();
        assert_eq!(below.len(), 2);
        // A kernel without such lists says so.
        assert!(listed.is_none_or(|count| count == 2), "{listed:?}");
        assert_eq!(process_table::count_below(i32::MAX), None);
    }
}
