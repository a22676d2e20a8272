//! What the tests share: a run on a simulated disk and a small random source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright_host::atomic_file::create_dir_durable;
use gatewright_host::disk::{Disk, SharedDisk, SimulatedDisk};
use gatewright_host::journal::{Journal, JournalError, JournalKey, Record, Recovery};

pub const RUN: &str = "run-7";
pub const AT_MS: u64 = 1_794_781_800_123;

pub fn path() -> PathBuf {
    PathBuf::from("/state/run-7/journal.jsonl")
}

pub fn key() -> Option<JournalKey> {
    Some(JournalKey::new([7; 32]))
}

/// A disk with the run's directory on it, durable.
pub fn disk_with_run(seed: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new(seed);
    create_dir_durable(&disk, Path::new("/state/run-7")).unwrap();
    disk
}

pub fn shared(disk: &SimulatedDisk) -> SharedDisk {
    Arc::new(disk.clone())
}

pub fn open(
    disk: &SimulatedDisk,
    key: Option<JournalKey>,
) -> Result<(Journal, Vec<Record>, Recovery), JournalError> {
    Journal::open(shared(disk), &path(), RUN, key)
}

pub fn event(number: u64) -> String {
    let step = ["plan", "implement", "review \\\"a, b\\\"", "prüfen"][number as usize % 4];
    format!(
        "{{\"type\":\"step.attempt.started\",\"step\":\"{step}\",\"number\":{number},\"more\":{{\"seq\":1}}}}"
    )
}

/// The bytes of a journal with `lines` records and the events in it.
pub fn journal_bytes(lines: u64, key: Option<JournalKey>) -> (Vec<u8>, Vec<String>) {
    let disk = disk_with_run(1);
    let mut journal = Journal::create(shared(&disk), &path(), RUN, key).unwrap();
    let events: Vec<String> = (1..=lines).map(event).collect();
    for batch in events.chunks(3) {
        journal.append(AT_MS, batch).unwrap();
    }
    (disk.read(&path()).unwrap(), events)
}

pub fn events_of(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::event_json).collect()
}

/// xorshift64*; printed with the failure, so a case can be run again.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % n.max(1)
    }
}
