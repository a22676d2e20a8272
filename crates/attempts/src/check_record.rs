//! Who a running check is, for whoever finds it after its engine was killed. It must not know what the
//! check is for.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::{
    interrupted::end_carriers,
    process_table::{self, ProcessIdentity, ProcessStat},
};

const KILL_FOR: Duration = Duration::from_secs(5);
const KILL_EVERY: Duration = Duration::from_millis(10);

/// A check leads its own process group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckRecord {
    version: u32,
    boot_id: String,
    session: i32,
    leader: ProcessIdentity,
}

impl CheckRecord {
    pub(crate) fn of(pid: i32) -> CheckRecord {
        let (session, leader) = process_table::stat_of(pid)
            .map_or((0, ProcessIdentity { pid, start_ticks: 0 }), |stat| (stat.session, stat.identity));
        CheckRecord { version: 1, boot_id: process_table::boot_id(), session, leader }
    }

    /// Without it (a full disk) the check runs all the same; it is only harder to find again.
    pub(crate) fn write(&self, path: &Path) {
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = std::fs::write(path, text);
        }
    }

    /// The check, its group and what descends from them; a number that was given away again is nobody.
    fn survivors(&self, table: &[ProcessStat]) -> Vec<ProcessStat> {
        let recycled =
            |stat: &ProcessStat| stat.identity.pid == self.leader.pid && stat.identity != self.leader;
        if self.boot_id != process_table::boot_id() || table.iter().any(recycled) {
            return Vec::new();
        }
        let own_line = process_table::with_ancestors(std::process::id().cast_signed(), table);
        let belongs = |stat: &&ProcessStat| {
            stat.group == self.leader.pid
                && stat.session == self.session
                && stat.identity.start_ticks >= self.leader.start_ticks
                && !own_line.contains(&stat.identity.pid)
        };
        let group: Vec<ProcessStat> = table.iter().filter(belongs).cloned().collect();
        let roots: BTreeSet<i32> = group.iter().map(|stat| stat.identity.pid).collect();
        let below = process_table::descendants(&roots, table);
        let below = below.into_iter().filter(|stat| !own_line.contains(&stat.identity.pid));
        group.into_iter().filter(|stat| stat.alive).chain(below).collect()
    }
}

/// Ends a check whose engine is gone: by what `record` says of it, and by the `NAME=value` that only it
/// was started with.
pub fn end_check(record: &Path, variable: &str) {
    let known: Option<CheckRecord> =
        std::fs::read(record).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(known) = known {
        let give_up_at = Instant::now() + KILL_FOR;
        loop {
            let left = known.survivors(&process_table::all());
            if left.is_empty() || Instant::now() >= give_up_at {
                break;
            }
            for stat in left {
                process_table::signal(stat.identity, Signal::KILL);
            }
            std::thread::sleep(KILL_EVERY);
        }
    }
    end_carriers(variable);
}
