//! Who a running check is, for whoever finds it after its engine was killed. It must not know what the
//! check is for.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
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
/// A mark is at least so long: almost every text fits in, and the file never changes its size.
const MARK_BYTES: usize = 1024;

/// A file that says who is at work. It is written in place and serves one check after the other: to make and
/// remove a file for each would cost more than many a check, because every change of a folder waits for the
/// file system's own journal.
#[derive(Debug)]
pub struct CheckMark {
    path: PathBuf,
    file: File,
    length: usize,
    /// `NAME=value` that only this check is started with. `None`: nobody is at work.
    carrier: Option<String>,
}

impl CheckMark {
    /// What the file said before is gone.
    pub fn create(path: PathBuf) -> io::Result<CheckMark> {
        let file = File::create(&path)?;
        Ok(CheckMark { path, file, length: MARK_BYTES, carrier: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A check is about to start. Without its mark (a full disk) it runs all the same; it is only harder to
    /// find again.
    pub fn begin(&mut self, carrier: String) {
        self.carrier = Some(carrier);
        self.write(None);
    }

    pub(crate) fn runs(&mut self, pid: i32) {
        self.write(Some(pid));
    }

    /// It has ended.
    pub fn clear(&mut self) {
        self.carrier = None;
        self.write(None);
    }

    fn write(&mut self, pid: Option<i32>) {
        let record = self.carrier.as_ref().map(|carrier| CheckRecord::of(pid, carrier));
        let mut text = record.and_then(|record| serde_json::to_vec(&record).ok()).unwrap_or_default();
        self.length = self.length.max(text.len() + 1);
        text.resize(self.length, b' ');
        let _ = self.file.write_all_at(&text, 0);
    }
}

/// A check leads its own process group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CheckRecord {
    version: u32,
    boot_id: String,
    session: i32,
    /// `None`: it was about to start.
    leader: Option<ProcessIdentity>,
    /// Missing in version 1, where the name of the file says it.
    #[serde(default)]
    carrier: Option<String>,
}

impl CheckRecord {
    fn of(pid: Option<i32>, carrier: &str) -> CheckRecord {
        let stat = pid.and_then(process_table::stat_of);
        CheckRecord {
            version: 2,
            boot_id: process_table::boot_id(),
            session: stat.as_ref().map_or(0, |stat| stat.session),
            leader: pid.map(|pid| stat.map_or(ProcessIdentity { pid, start_ticks: 0 }, |stat| stat.identity)),
            carrier: Some(carrier.to_owned()),
        }
    }

    /// The check, its group and what descends from them; a number that was given away again is nobody.
    fn survivors(&self, leader: ProcessIdentity, table: &[ProcessStat]) -> Vec<ProcessStat> {
        let recycled = |stat: &ProcessStat| stat.identity.pid == leader.pid && stat.identity != leader;
        if self.boot_id != process_table::boot_id() || table.iter().any(recycled) {
            return Vec::new();
        }
        let own_line = process_table::with_ancestors(std::process::id().cast_signed(), table);
        let belongs = |stat: &&ProcessStat| {
            stat.group == leader.pid
                && stat.session == self.session
                && stat.identity.start_ticks >= leader.start_ticks
                && !own_line.contains(&stat.identity.pid)
        };
        let group: Vec<ProcessStat> = table.iter().filter(belongs).cloned().collect();
        let roots: BTreeSet<i32> = group.iter().map(|stat| stat.identity.pid).collect();
        let below = process_table::descendants(&roots, table);
        let below = below.into_iter().filter(|stat| !own_line.contains(&stat.identity.pid));
        group.into_iter().filter(|stat| stat.alive).chain(below).collect()
    }
}

/// Ends the check that a mark speaks of: by what it says of it, and by the `NAME=value` that only it was started
/// with. `elder`: that of a mark of version 1, which does not say it.
pub fn end_check(mark: &Path, elder: &str) {
    let text = std::fs::read(mark).unwrap_or_default();
    let known: Option<CheckRecord> = serde_json::from_slice(&text).ok();
    if known.is_none() && text.len() >= MARK_BYTES {
        return;
    }
    if let Some(known) = &known
        && let Some(leader) = known.leader
    {
        let give_up_at = Instant::now() + KILL_FOR;
        loop {
            let left = known.survivors(leader, &process_table::all());
            if left.is_empty() || Instant::now() >= give_up_at {
                break;
            }
            for stat in left {
                process_table::signal(stat.identity, Signal::KILL);
            }
            std::thread::sleep(KILL_EVERY);
        }
    }
    end_carriers(known.and_then(|known| known.carrier).as_deref().unwrap_or(elder));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_one_check_after_the_other_and_nobody_in_between() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slot-0");
        let mut mark = CheckMark::create(path.clone()).unwrap();
        let said = || serde_json::from_slice::<CheckRecord>(&std::fs::read(&path).unwrap()).ok();
        mark.begin(format!("X={}", "long ".repeat(500)));
        assert_eq!(said().unwrap().leader, None);
        mark.runs(std::process::id().cast_signed());
        assert_eq!(said().unwrap().leader.unwrap().pid, std::process::id().cast_signed());
        let length = std::fs::metadata(&path).unwrap().len();
        mark.clear();
        assert_eq!(said(), None);
        mark.begin("X=short".to_owned());
        assert_eq!(said().unwrap().carrier.as_deref(), Some("X=short"));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length, "written in place");
    }

    #[test]
    fn marks_of_version_one_are_understood() {
        let text = r#"{"version":1,"boot_id":"b","session":7,"leader":{"pid":8,"start_ticks":9}}"#;
        let record: CheckRecord = serde_json::from_str(text).unwrap();
        assert_eq!((record.leader, record.carrier), (Some(ProcessIdentity { pid: 8, start_ticks: 9 }), None));
    }
}
