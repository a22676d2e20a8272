//! A reader beside the writer: every record once, nothing unfinished, no lock.

use std::sync::Arc;

use gatewright_host::disk::RealDisk;
use gatewright_host::journal::{Journal, JournalError, JournalReader};

use crate::support::{AT_MS, RUN, disk_with_run, event, events_of, journal_bytes, key, open, path, shared};

#[test]
fn a_file_that_grows_byte_by_byte_gives_each_record_once() {
    let (bytes, events) = journal_bytes(6, key());
    let disk = disk_with_run(1);
    let mut reader = JournalReader::follow(shared(&disk), &path(), RUN, key());
    assert_eq!(reader.read_new().unwrap(), []);
    let mut seen = Vec::new();
    for end in 0..=bytes.len() {
        disk.overwrite(&path(), &bytes[..end]);
        let records = reader.read_new().unwrap();
        assert_eq!(records.len(), usize::from(end > 0 && bytes[end - 1] == b'\n'));
        seen.extend(events_of(&records));
    }
    assert_eq!(seen, events);
    assert_eq!((reader.unfinished_bytes(), reader.unauthenticated()), (0, false));
}

#[test]
fn a_reader_follows_a_living_writer_without_disturbing_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(Arc::new(RealDisk), &path, RUN, key()).unwrap();
    let mut reader = JournalReader::follow(Arc::new(RealDisk), &path, RUN, None);
    for number in 1..=20 {
        journal.append(AT_MS, &[event(number)]).unwrap();
        assert_eq!(events_of(&reader.read_new().unwrap()), [event(number)]);
        assert_eq!(reader.read_new().unwrap(), []);
    }
    assert!(reader.unauthenticated());
}

#[test]
fn a_reader_survives_the_recovery_of_a_torn_end() {
    let (bytes, events) = journal_bytes(4, None);
    let disk = disk_with_run(1);
    disk.overwrite(&path(), &bytes[..bytes.len() - 9]);
    let mut reader = JournalReader::follow(shared(&disk), &path(), RUN, None);
    assert_eq!(events_of(&reader.read_new().unwrap()), events[..3]);
    assert!(reader.unfinished_bytes() > 0);
    let (mut journal, _, _) = open(&disk, None).unwrap();
    assert_eq!(reader.read_new().unwrap(), []);
    journal.append(AT_MS, &[event(77)]).unwrap();
    assert_eq!(events_of(&reader.read_new().unwrap()), [event(77)]);
}

#[test]
fn a_reader_returns_what_is_valid_and_then_the_error() {
    let (bytes, events) = journal_bytes(4, None);
    let disk = disk_with_run(1);
    let text = String::from_utf8(bytes).unwrap().replace("\"number\":3", "\"number\":9");
    disk.overwrite(&path(), text.as_bytes());
    let mut reader = JournalReader::follow(shared(&disk), &path(), RUN, None);
    assert_eq!(events_of(&reader.read_new().unwrap()), events[..2]);
    assert!(matches!(reader.read_new(), Err(JournalError::Corrupt { line: 3, .. })));
    disk.overwrite(&path(), b"");
    assert!(matches!(reader.read_new(), Err(JournalError::Tampered { .. })));
}
