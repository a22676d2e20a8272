//! Ten times the records cost ten times the bytes, in reading and in writing.

use gatewright_host::disk::OperationCounts;
use gatewright_host::journal::{Journal, JournalReader};

use crate::support::{AT_MS, RUN, disk_with_run, event, open, path, shared};

/// What writing, opening and following `records` records cost.
fn cost(records: u64) -> [OperationCounts; 3] {
    let disk = disk_with_run(1);
    let start = disk.counts();
    let mut journal = Journal::create(shared(&disk), &path(), RUN, None).unwrap();
    let mut reader = JournalReader::follow(shared(&disk), &path(), RUN, None);
    let mut read = 0;
    for number in 0..records / 10 {
        let batch: Vec<String> = (0..10).map(|index| event(number * 10 + index)).collect();
        journal.append(AT_MS, &batch).unwrap();
        read += reader.read_new().unwrap().len() as u64;
    }
    assert_eq!(read, records);
    let written = disk.counts();
    drop(journal);
    let (_journal, found, _) = open(&disk, None).unwrap();
    assert_eq!(found.len() as u64, records);
    let opened = disk.counts();
    [start, written, opened]
}

#[test]
fn cost_grows_with_the_number_of_records() {
    let [small_start, small_written, small_opened] = cost(1_000);
    let [large_start, large_written, large_opened] = cost(10_000);
    let ratio = |small: u64, large: u64| large as f64 / small as f64;
    let opening = ratio(
        small_opened.bytes_read - small_written.bytes_read,
        large_opened.bytes_read - large_written.bytes_read,
    );
    let following = ratio(small_written.bytes_read, large_written.bytes_read);
    let writing = ratio(small_written.bytes_written, large_written.bytes_written);
    for (what, found) in [("opening", opening), ("following", following), ("writing", writing)] {
        assert!((9.5..11.0).contains(&found), "{what}: ten times the records, {found} times the bytes");
    }
    assert_eq!(small_opened.reads - small_written.reads, large_opened.reads - large_written.reads);
    assert_eq!(
        (large_written.operations - large_start.operations) / 1_000,
        (small_written.operations - small_start.operations) / 100
    );
}
