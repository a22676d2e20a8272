//! Reading `/proc`: who descends from whom, since when, and signals that cannot hit a recycled pid.
//! It must not know attempts. Where there is no `/proc`, the table is empty and no signal is sent by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::LazyLock;

#[cfg(target_os = "linux")]
use rustix::process::Pid;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

/// More than a line of `/proc/PID/stat` ever has; with this much room it is read in one go.
const STAT_BYTES: usize = 2048;

/// A process for good: the kernel gives a pid away again, but not with the same start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// Clock ticks from boot to the start of the process; 0 where there is no `/proc`.
    pub start_ticks: u64,
}

/// One line of `/proc/PID/stat`, as far as it is of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) identity: ProcessIdentity,
    pub(crate) name: String,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Not a zombie. A leader that ended before its other threads looks like one but is alive.
    pub(crate) alive: bool,
}

pub(crate) fn identity_of(pid: i32) -> ProcessIdentity {
    let start_ticks = stat_of(pid).map_or(0, |stat| stat.identity.start_ticks);
    ProcessIdentity { pid, start_ticks }
}

pub(crate) fn stat_of(pid: i32) -> Option<ProcessStat> {
    // Names may hold any byte, so the line need not be UTF-8.
    let mut line = Vec::with_capacity(STAT_BYTES);
    fs::File::open(format!("/proc/{pid}/stat")).ok()?.take(STAT_BYTES as u64).read_to_end(&mut line).ok()?;
    parse_stat(&String::from_utf8_lossy(&line))
}

/// Who leads the session that this process belongs to. Pid 0: somebody outside of this pid namespace, as in
/// a container that was not given a session of its own; the start time is then that of the namespace.
pub fn session_leader() -> ProcessIdentity {
    let pid = stat_of(std::process::id().cast_signed()).map_or(0, |stat| stat.session);
    ProcessIdentity { pid, ..identity_of(pid.max(1)) }
}

pub(crate) fn is_alive(identity: ProcessIdentity) -> bool {
    stat_of(identity.pid).is_some_and(|stat| stat.identity == identity && stat.alive)
}

/// Every process that can be seen. Not a snapshot: processes come and go while it is read.
pub(crate) fn all() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(stat_of)
        .collect()
}

/// Everything alive below the given processes, without them.
pub(crate) fn descendants(roots: &BTreeSet<i32>, table: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut children: BTreeMap<i32, Vec<&ProcessStat>> = BTreeMap::new();
    for stat in table {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut seen = roots.clone();
    let mut open: Vec<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if seen.insert(child.identity.pid) {
                open.push(child.identity.pid);
                found.push((*child).clone());
            }
        }
    }
    found.retain(|stat| stat.alive);
    found
}

/// How many are below this process, by the lists of children that the kernel keeps; `None` where it keeps none. Who
/// comes and goes meanwhile may be missed, and who has ended and was not waited for counts.
pub(crate) fn count_below(pid: i32) -> Option<usize> {
    let mut open = children_of(pid)?;
    let mut count = 0;
    while let Some(next) = open.pop() {
        count += 1;
        open.extend(children_of(next).unwrap_or_default());
    }
    Some(count)
}

/// Each thread has its own list.
fn children_of(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(found)
}

/// The process and everything above it.
pub(crate) fn with_ancestors(pid: i32, table: &[ProcessStat]) -> BTreeSet<i32> {
    let parents: BTreeMap<i32, i32> = table.iter().map(|stat| (stat.identity.pid, stat.parent)).collect();
    let mut line = BTreeSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next
        && line.insert(pid)
    {
        next = parents.get(&pid).copied();
    }
    line
}

/// Sends a signal to exactly this process. `false`: it is gone, or may not be signalled.
#[cfg(target_os = "linux")]
pub(crate) fn signal(identity: ProcessIdentity, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(identity.pid) else { return false };
    match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        // The descriptor is bound first and the start time read second: what it is bound to cannot change.
        Ok(fd) => is_alive(identity) && rustix::process::pidfd_send_signal(fd, signal).is_ok(),
        Err(rustix::io::Errno::SRCH) => false,
        // No pidfd here (an old kernel, a filter): a moment remains between the look and the signal.
        Err(_) => is_alive(identity) && rustix::process::kill_process(pid, signal).is_ok(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn signal(_identity: ProcessIdentity, _signal: Signal) -> bool {
    false
}

/// A descriptor that becomes readable when the process ends. `None`: gone, or no pidfd here.
#[cfg(target_os = "linux")]
pub(crate) fn exit_watch(identity: ProcessIdentity) -> Option<OwnedFd> {
    let fd = child_exit_watch(identity.pid)?;
    is_alive(identity).then_some(fd)
}

/// The same for a child of ours that was not waited for: its pid cannot have been recycled.
#[cfg(target_os = "linux")]
pub(crate) fn child_exit_watch(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn exit_watch(_identity: ProcessIdentity) -> Option<std::os::fd::OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn child_exit_watch(_pid: i32) -> Option<std::os::fd::OwnedFd> {
    None
}

/// Whether the process was started with this `NAME=value`. `false` also if that may not be read.
pub(crate) fn was_started_with(pid: i32, variable: &str) -> bool {
    let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// Differs after each boot; empty where there is no `/proc`.
pub(crate) fn boot_id() -> String {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    });
    BOOT.clone()
}

/// `PID (NAME) STATE PPID PGRP SESSION … NUM_THREADS(20) … STARTTIME(22)`; the name may hold anything.
fn parse_stat(line: &str) -> Option<ProcessStat> {
    let (pid, rest) = line.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    let state = *fields.first()?;
    Some(ProcessStat {
        identity: ProcessIdentity { pid: pid.parse().ok()?, start_ticks: u64::try_from(number(22)?).ok()? },
        name: name.to_owned(),
        parent: i32::try_from(number(4)?).ok()?,
        group: i32::try_from(number(5)?).ok()?,
        session: i32::try_from(number(6)?).ok()?,
        alive: !matches!(state, "Z" | "X") || number(20)? > 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, parent: i32, alive: bool) -> ProcessStat {
        ProcessStat {
            identity: ProcessIdentity { pid, start_ticks: 1 },
            name: String::new(),
            parent,
            group: 0,
            session: 0,
            alive,
        }
    }

    #[test]
    fn a_name_may_hold_brackets_and_blanks() {
        let line = "42 (a) R (b) S 7 40 39 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 12345 1 2\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!(stat.identity, ProcessIdentity { pid: 42, start_ticks: 12345 });
        assert_eq!((stat.name.as_str(), stat.parent, stat.group, stat.session), ("a) R (b", 7, 40, 39));
        assert!(stat.alive);
    }

    #[test]
    fn a_zombie_is_dead_unless_it_has_threads() {
        let line =
            |threads: u32| format!("42 (x) Z 7 40 39 0 -1 0 1 0 0 0 1 2 0 0 20 0 {threads} 0 12345 1 2");
        assert!(!parse_stat(&line(1)).unwrap().alive);
        assert!(parse_stat(&line(2)).unwrap().alive);
        assert_eq!(parse_stat("42 (x) Z 7"), None);
    }

    #[test]
    fn descendants_are_found_through_the_dead_and_in_any_order() {
        let table =
            [stat(5, 4, true), stat(4, 3, false), stat(3, 2, true), stat(9, 1, true), stat(2, 1, true)];
        let found = descendants(&BTreeSet::from([2]), &table);
        let mut pids: Vec<i32> = found.iter().map(|stat| stat.identity.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 5]);
        assert_eq!(with_ancestors(5, &table), BTreeSet::from([1, 2, 3, 4, 5]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_very_process_is_signalled() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let identity = identity_of(child.id().cast_signed());
        let another = ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity };
        assert!(is_alive(identity));
        assert!(!is_alive(another));
        assert!(!signal(another, Signal::KILL), "a recycled pid must not be signalled");
        assert!(exit_watch(another).is_none());
        assert!(child.try_wait().unwrap().is_none());
        assert!(signal(identity, Signal::KILL));
        child.wait().unwrap();
        assert!(!is_alive(identity));
    }
}
