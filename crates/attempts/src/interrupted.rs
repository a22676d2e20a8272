//! Settles an attempt whose supervisor died: ends what survived it and records `interrupted`.
//! It must not know who asks; whoever asks holds the attempt's lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::attempt_dir::{AttemptDir, AttemptDirError, AttemptLock, OutputStream};
use crate::exit_record::{Ended, ExitRecord};
use crate::pid_record::PidRecord;
use crate::private_tmp;
use crate::process_table::{self, ProcessIdentity, ProcessStat};

const KILL_FOR: Duration = Duration::from_secs(5);
const KILL_EVERY: Duration = Duration::from_millis(10);

/// What is known of how an attempt came to have no supervisor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Suspicion {
    pub(crate) forged: bool,
    pub(crate) supervisor_killed: bool,
}

/// The lock proves that no supervisor lives, and that none begins meanwhile.
pub(crate) fn settle(dir: &AttemptDir, lock: &AttemptLock) -> Result<ExitRecord, AttemptDirError> {
    settle_suspected(dir, lock, Suspicion::default())
}

/// With a suspicion a record that is there is not believed. Whoever killed the supervisor may have rewritten who belongs
/// to the attempt, and may be about to write its record: they are also looked for by what nobody can take off, and only
/// when they are gone is it said how the attempt ended.
pub(crate) fn settle_suspected(
    dir: &AttemptDir,
    lock: &AttemptLock,
    suspicion: Suspicion,
) -> Result<ExitRecord, AttemptDirError> {
    let suspected = suspicion.forged || suspicion.supervisor_killed;
    if !suspected && let Some(record) = dir.exit_record()? {
        return Ok(record);
    }
    // What cannot be read was not written by a supervisor; then its processes are only found by their variable.
    let pids = dir.pid_record().ok().flatten();
    let left_behind =
        pids.as_ref().map(|pids| kill_survivors(pids, own_variable(dir).as_deref())).unwrap_or_default();
    if suspected || pids.is_none() {
        end_carriers(&format!("GATEWRIGHT_OUT={}", dir.out_dir().display()));
    }
    if suspected {
        dir.set_aside_exit_record(lock)?;
    }
    if let Some(path) = dir.launch_spec()?.and_then(|launch| launch.private_tmp) {
        drop(private_tmp::remove(&path));
    }
    let ended_at_ms = now_ms();
    let started_at_ms = pids.map_or(ended_at_ms, |pids| pids.started_at_ms);
    dir.write_exit_record(ExitRecord {
        version: ExitRecord::VERSION,
        ended: Ended::Interrupted,
        started_at_ms,
        ended_at_ms,
        duration_ms: ended_at_ms.saturating_sub(started_at_ms),
        stdout_bytes: dir.output_len(OutputStream::Stdout),
        stderr_bytes: dir.output_len(OutputStream::Stderr),
        dropped_bytes: 0,
        left_behind,
        killed: false,
        flooded: false,
        swarmed: None,
        forged: suspicion.forged,
        supervisor_killed: suspicion.supervisor_killed,
    })
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Kills until nothing is left, without asking first: nobody would record what the agent still did.
fn kill_survivors(pids: &PidRecord, variable: Option<&str>) -> Vec<String> {
    let mut killed: BTreeMap<ProcessIdentity, String> = BTreeMap::new();
    let give_up_at = Instant::now() + KILL_FOR;
    loop {
        let survivors = find_survivors(pids, &process_table::all(), &process_table::boot_id(), &|pid| {
            variable.is_some_and(|variable| process_table::was_started_with(pid, variable))
        });
        if survivors.is_empty() || Instant::now() >= give_up_at {
            return killed.into_values().collect();
        }
        for survivor in survivors {
            process_table::signal(survivor.identity, Signal::KILL);
            killed.insert(survivor.identity, survivor.name);
        }
        std::thread::sleep(KILL_EVERY);
    }
}

/// Kills whoever was started with this `NAME=value`, and what descends from it: a check whose engine died.
/// The caller chooses a value that nobody else can have.
pub fn end_carriers(variable: &str) {
    let own = std::process::id().cast_signed();
    let give_up_at = Instant::now() + KILL_FOR;
    loop {
        let table = process_table::all();
        let own_line = process_table::with_ancestors(own, &table);
        let carries = |stat: &&ProcessStat| {
            stat.alive
                && !own_line.contains(&stat.identity.pid)
                && process_table::was_started_with(stat.identity.pid, variable)
        };
        let roots: Vec<&ProcessStat> = table.iter().filter(carries).collect();
        if roots.is_empty() || Instant::now() >= give_up_at {
            return;
        }
        let root_pids: BTreeSet<i32> = roots.iter().map(|stat| stat.identity.pid).collect();
        let below = process_table::descendants(&root_pids, &table);
        let below = below.iter().filter(|stat| !own_line.contains(&stat.identity.pid));
        for stat in roots.into_iter().chain(below) {
            process_table::signal(stat.identity, Signal::KILL);
        }
        std::thread::sleep(KILL_EVERY);
    }
}

/// `GATEWRIGHT_OUT=…/out` names this attempt and no other, so a process that carries it is ours even if it
/// left the session. A value of somebody else's choice would prove nothing.
fn own_variable(dir: &AttemptDir) -> Option<String> {
    let out_dir = dir.out_dir();
    let launch = dir.launch_spec().ok()??;
    let value = launch.env.get("GATEWRIGHT_OUT").filter(|value| out_dir.as_os_str() == value.as_str())?;
    Some(format!("GATEWRIGHT_OUT={value}"))
}

/// Who is provably of this attempt: the agent by pid and start time; its group, if the session is the
/// supervisor's too (either number alone may have been given away again); who carries the attempt's
/// variable; and what descends from these. Never this process or one above it.
fn find_survivors(
    pids: &PidRecord,
    table: &[ProcessStat],
    boot_id: &str,
    carries_variable: &dyn Fn(i32) -> bool,
) -> Vec<ProcessStat> {
    if pids.boot_id != boot_id {
        return Vec::new();
    }
    let agent_is_recycled = pids.agent.is_some_and(|agent| {
        table.iter().any(|stat| stat.identity.pid == agent.pid && stat.identity != agent)
    });
    let belongs = |stat: &ProcessStat| {
        let by_group = pids.agent.is_some_and(|agent| {
            !agent_is_recycled
                && stat.group == agent.pid
                && stat.session == pids.session
                && stat.identity.start_ticks >= agent.start_ticks
        });
        Some(stat.identity) == pids.agent
            || by_group
            || (stat.identity.start_ticks >= pids.supervisor.start_ticks
                && carries_variable(stat.identity.pid))
    };
    let own_line = process_table::with_ancestors(std::process::id().cast_signed(), table);
    let roots: Vec<&ProcessStat> =
        table.iter().filter(|stat| !own_line.contains(&stat.identity.pid) && belongs(stat)).collect();
    let root_pids: BTreeSet<i32> = roots.iter().map(|stat| stat.identity.pid).collect();
    let below = process_table::descendants(&root_pids, table);
    let below = below.into_iter().filter(|stat| !own_line.contains(&stat.identity.pid));
    roots.into_iter().filter(|stat| stat.alive).cloned().chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, start_ticks: u64, parent: i32, group: i32, session: i32) -> ProcessStat {
        let identity = ProcessIdentity { pid, start_ticks };
        ProcessStat { identity, name: String::new(), parent, group, session, alive: true }
    }

    fn check(boot_id: &str, table: &[ProcessStat], carrying: &[i32], expected: &[i32]) {
        let pids = PidRecord {
            version: 1,
            boot_id: "this boot".to_owned(),
            session: 1000,
            supervisor: ProcessIdentity { pid: 1000, start_ticks: 50 },
            agent: Some(ProcessIdentity { pid: 1001, start_ticks: 51 }),
            started_at_ms: 0,
        };
        let found = find_survivors(&pids, table, boot_id, &|pid| carrying.contains(&pid));
        let mut found: Vec<i32> = found.iter().map(|stat| stat.identity.pid).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_agent_its_group_and_what_descends_from_them() {
        let table = [
            stat(1001, 51, 1, 1001, 1000),
            stat(1002, 52, 1, 1001, 1000),
            stat(1003, 53, 1002, 1003, 1003),
            stat(1004, 53, 1, 1004, 1004),
        ];
        check("this boot", &table, &[], &[1001, 1002, 1003]);
        check("this boot", &table, &[1004], &[1001, 1002, 1003, 1004]);
    }

    #[test]
    fn nothing_survives_a_reboot() {
        check("another boot", &[stat(1001, 51, 1, 1001, 1000)], &[1001], &[]);
    }

    #[test]
    fn a_recycled_pid_is_nobody() {
        // The agent's pid has another start time: a stranger, and its group and children are strangers.
        check("this boot", &[stat(1001, 99, 1, 1001, 1000), stat(1002, 100, 1001, 1001, 1000)], &[], &[]);
        // A group with the agent's number in another session.
        check("this boot", &[stat(1002, 100, 1, 1001, 700)], &[], &[]);
        // A daemon in a session with the supervisor's number.
        check("this boot", &[stat(1002, 100, 1, 999, 1000)], &[], &[]);
        // Older than the supervisor, whatever it carries.
        check("this boot", &[stat(1002, 49, 1, 1002, 1002)], &[1002], &[]);
    }
}
