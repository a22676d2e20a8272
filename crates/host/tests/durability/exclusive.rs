//! One writer: the lock, and what happens when somebody writes without it.

use std::sync::Arc;

use gatewright_host::disk::{Disk, RealDisk, SharedDisk};
use gatewright_host::journal::{Journal, JournalError, JournalReader, lock_path};

use crate::support::{AT_MS, RUN, disk_with_run, event, events_of, key, open, path, shared};

#[test]
fn the_second_opener_is_refused_until_the_first_is_gone() {
    let disk = disk_with_run(1);
    let journal = Journal::create(shared(&disk), &path(), RUN, None).unwrap();
    assert!(disk.lock_is_held(&lock_path(&path())).unwrap());
    assert!(matches!(open(&disk, None).map(|_| ()), Err(JournalError::Locked { .. })));
    drop(journal);
    assert!(!disk.lock_is_held(&lock_path(&path())).unwrap());
    let held = open(&disk, None).unwrap();
    disk.kill();
    open(&disk, None).unwrap();
    drop(held);
}

#[test]
fn a_real_journal_is_created_locked_recovered_and_followed_by_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let disk: SharedDisk = Arc::new(RealDisk);
    let mut journal = Journal::create(disk.clone(), &path, RUN, key()).unwrap();
    assert_eq!(journal.append(AT_MS, &[event(1), event(2)]).unwrap(), 1..=2);
    let refused = Journal::open(disk.clone(), &path, RUN, key()).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains(&format!("held by pid {}", std::process::id())), "{refused}");
    drop(journal);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (mut journal, records, recovery) = Journal::open(disk.clone(), &path, RUN, key()).unwrap();
    assert_eq!(events_of(&records), [event(1)]);
    assert!(recovery.notice.unwrap().contains("journal.torn-2"));
    assert!(directory.path().join("journal.torn-2").exists());
    assert_eq!(journal.append(AT_MS, &[event(3)]).unwrap(), 2..=2);
    assert!(matches!(Journal::create(disk.clone(), &path, RUN, None), Err(JournalError::Locked { .. })));
    drop(journal);
    assert!(matches!(
        Journal::create(disk.clone(), &path, RUN, None),
        Err(JournalError::AlreadyExists { .. })
    ));
    let nowhere = directory.path().join("no/journal.jsonl");
    assert!(matches!(Journal::open(disk.clone(), &nowhere, RUN, None), Err(JournalError::NotFound { .. })));
    assert!(!disk.lock_is_held(&lock_path(&path)).unwrap());
}

#[test]
fn a_stranger_who_wrote_replaced_or_removed_the_file_is_noticed() {
    for (change, expected) in [
        ("printf x >> journal.jsonl", "journal.jsonl: changed by someone else"),
        ("cp journal.jsonl copy && mv copy journal.jsonl", "another file (inode"),
        ("truncate -s 3 journal.jsonl", "found 3 bytes"),
        ("rm journal.jsonl", "found no file"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(Arc::new(RealDisk), &path, RUN, None).unwrap();
        journal.append(AT_MS, &[event(1)]).unwrap();
        let shell = std::process::Command::new("sh").args(["-c", change]).current_dir(&directory).status();
        assert!(shell.unwrap().success());
        let found = journal.append(AT_MS, &[event(2)]).unwrap_err();
        assert!(matches!(found, JournalError::Tampered { .. }), "{found}");
        assert!(found.to_string().contains(expected), "{found}");
        assert!(matches!(journal.append(AT_MS, &[event(2)]), Err(JournalError::Poisoned { .. })));
    }
}

/// A cut behind a whole record leaves a journal that looks whole. The engine that saw it says how far it had come.
#[test]
fn a_journal_that_was_cut_while_it_was_written_is_refused_until_it_is_whole_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(Arc::new(RealDisk), &path, RUN, None).unwrap();
    for number in 1..=4 {
        journal.append(AT_MS, &[event(number)]).unwrap();
    }
    let whole = std::fs::read_to_string(&path).unwrap();
    let two: String = whole.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, &two).unwrap();
    assert!(matches!(journal.append(AT_MS, &[event(5)]), Err(JournalError::Tampered { .. })));
    drop(journal);
    let open = || Journal::open(Arc::new(RealDisk), &path, RUN, None);
    let said = open().err().unwrap();
    assert!(matches!(said, JournalError::Cut { found: 2, written: 4, .. }), "{said}");
    assert!(said.to_string().contains("ends with record 2, and 4 were written"), "{said}");
    // Who only reads is told, too.
    let mut reader = JournalReader::follow(Arc::new(RealDisk), &path, RUN, None);
    assert_eq!(reader.read_new().unwrap().len(), 2);
    assert!(matches!(reader.read_new(), Err(JournalError::Cut { .. })));
    std::fs::write(&path, &whole).unwrap();
    let (mut journal, records, _) = open().unwrap();
    assert_eq!(records.len(), 4);
    journal.append(AT_MS, &[event(5)]).unwrap();
    drop(journal);
    assert_eq!(open().unwrap().1.len(), 5, "what was is forgotten");
    assert!(!directory.path().join("journal.head").exists());
}
