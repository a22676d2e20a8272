//! The inbox: in order, once in effect, never stopped by a bad file.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatewright_host::disk::{Disk, RealDisk, SimulatedDisk};
use gatewright_host::inbox::{
    AckOutcome, Acknowledgement, Inbox, InboxError, MESSAGE_BYTES_MAX, MessageId, Verdict,
};
use gatewright_host::journal::Journal;

use crate::support::{AT_MS, RUN, Random, disk_with_run, open, path, shared};

fn dir() -> PathBuf {
    PathBuf::from("/state/run-7/inbox")
}

fn accepted(message: &str) -> Acknowledgement {
    Acknowledgement { verdict: Verdict::Accepted, message: message.to_owned() }
}

fn inbox_on(seed: u64) -> (SimulatedDisk, Inbox) {
    let disk = disk_with_run(seed);
    let inbox = Inbox::open(shared(&disk), &dir()).unwrap();
    (disk, inbox)
}

#[test]
fn messages_come_in_order_and_stay_until_they_are_acknowledged() {
    let (disk, inbox) = inbox_on(1);
    let late = Inbox::send(&disk, &dir(), AT_MS + 5, "{\"stop\":true}").unwrap();
    let early: Vec<MessageId> =
        (0..12).map(|number| Inbox::send(&disk, &dir(), AT_MS, &format!("{number}")).unwrap()).collect();
    let drained = inbox.drain().unwrap();
    let ids: Vec<&MessageId> = drained.messages.iter().map(|(id, _)| id).collect();
    assert_eq!(ids, early.iter().chain([&late]).collect::<Vec<_>>());
    assert_eq!(drained.messages[12].1, "{\"stop\":true}");
    assert_eq!(inbox.drain().unwrap(), drained);
    for id in &early {
        inbox.acknowledge(id, &accepted("first")).unwrap();
        inbox.acknowledge(id, &accepted("second")).unwrap();
        assert_eq!(Inbox::read_ack(&disk, &dir(), id).unwrap(), Some(accepted("first")));
    }
    assert_eq!(inbox.drain().unwrap().messages, [(late, "{\"stop\":true}".to_owned())]);
}

#[test]
fn a_message_left_by_a_crash_between_acknowledgement_and_removal_is_not_read_again() {
    let (disk, inbox) = inbox_on(1);
    let id = Inbox::send(&disk, &dir(), AT_MS, "1").unwrap();
    let body = disk.read(&dir().join(format!("{id}.json"))).unwrap();
    inbox.acknowledge(&id, &accepted("done")).unwrap();
    disk.overwrite(&dir().join(format!("{id}.json")), &body);
    disk.kill();
    let inbox = Inbox::open(shared(&disk), &dir()).unwrap();
    assert_eq!(inbox.drain().unwrap().messages, []);
    assert!(!disk.exists(&dir().join(format!("{id}.json"))).unwrap());
    assert_eq!(Inbox::read_ack(&disk, &dir(), &id).unwrap(), Some(accepted("done")));
}

#[test]
fn the_sender_learns_the_outcome_or_that_nobody_works() {
    let (disk, inbox) = inbox_on(1);
    let id = Inbox::send(&disk, &dir(), AT_MS, "1").unwrap();
    let wait = |probe: &dyn Fn() -> bool, deadline| Inbox::wait_for_ack(&disk, &dir(), &id, deadline, probe);
    let soon = Instant::now() + Duration::from_mins(1);
    assert_eq!(wait(&|| false, Instant::now()).unwrap(), AckOutcome::TimedOut);
    assert_eq!(wait(&|| true, soon).unwrap(), AckOutcome::LockIsFree);
    // The engine works between two looks of the sender.
    let looks = Cell::new(0);
    let engine = || {
        looks.set(looks.get() + 1);
        if looks.get() == 3 {
            inbox.acknowledge(&id, &accepted("ok")).unwrap();
        }
        false
    };
    assert_eq!(wait(&engine, soon).unwrap(), AckOutcome::Acked(accepted("ok")));
    // An engine that acknowledges and leaves between the look and the probe has acknowledged.
    let second = Inbox::send(&disk, &dir(), AT_MS, "2").unwrap();
    let leaving = || inbox.acknowledge(&second, &accepted("bye")).is_ok();
    let outcome = Inbox::wait_for_ack(&disk, &dir(), &second, soon, &leaving).unwrap();
    assert_eq!(outcome, AckOutcome::Acked(accepted("bye")));
}

#[test]
fn bad_files_are_set_aside_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("inbox");
    let inbox = Inbox::open(Arc::new(RealDisk), &dir).unwrap();
    let good = Inbox::send(&RealDisk, &dir, AT_MS, "good").unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).unwrap();
    write("1-large.json", &vec![b'x'; MESSAGE_BYTES_MAX as usize + 1]);
    write("2-latin.json", b"caf\xe9");
    write("notes.txt", b"hello");
    write(".tmp-1-1-x", b"somebody is writing");
    std::fs::create_dir(dir.join("3-folder.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("4-link.json")).unwrap();
    let drained = inbox.drain().unwrap();
    assert_eq!(drained.messages, [(good.clone(), "good".to_owned())]);
    let reasons: Vec<String> = drained.rejected.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "1-large.json is larger than 1048576 bytes",
            "2-latin.json is not UTF-8",
            "3-folder.json is not a plain file",
            "4-link.json is not a plain file",
            "notes.txt is not named like a message (<ms>-<sender>.json)",
        ]
    );
    for name in ["1-large.json", "2-latin.json", "notes.txt", "3-folder.json"] {
        assert!(dir.join("rejected").join(name).exists(), "{name}");
    }
    let refused = Inbox::read_ack(&RealDisk, &dir, &MessageId::parse("2-latin").unwrap()).unwrap().unwrap();
    assert_eq!(refused.verdict, Verdict::Refused);
    assert_eq!(inbox.drain().unwrap().rejected, []);
    inbox.acknowledge(&good, &accepted("")).unwrap();
    assert_eq!(inbox.drain().unwrap().messages, []);
}

#[test]
fn what_cannot_be_moved_away_is_reported_and_not_fatal() {
    let (disk, inbox) = inbox_on(1);
    disk.create_dir_all(&dir().join("5-folder.json")).unwrap();
    let reason = inbox.drain().unwrap().rejected[0].to_string();
    assert!(reason.contains("could not be moved"), "{reason}");
}

#[test]
fn senders_are_refused_what_the_engine_would_not_read() {
    let (disk, _inbox) = inbox_on(1);
    let large = "x".repeat(MESSAGE_BYTES_MAX as usize + 1);
    assert!(matches!(Inbox::send(&disk, &dir(), AT_MS, &large), Err(InboxError::TooLarge { .. })));
    assert!(Inbox::send(&disk, Path::new("/no/inbox"), AT_MS, "1").is_err());
    for text in ["", "12", "x-1", "../12-a", "12-a/b", ".12-a"] {
        assert_eq!(MessageId::parse(text), None, "{text}");
    }
}

/// The engine's use of journal and inbox: journal the id with the outcome, acknowledge, remove.
fn engine(disk: &SimulatedDisk) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let (mut journal, records, _) = open(disk, None)?;
    let inbox = Inbox::open(shared(disk), &dir())?;
    let id_of = |event: &serde_json::Value| event["id"].as_str().unwrap_or_default().to_owned();
    let mut done: Vec<String> =
        records.iter().map(|record| record.event().map(|event| id_of(&event))).collect::<Result<_, _>>()?;
    for (id, _) in inbox.drain()?.messages {
        if !done.contains(&id.to_string()) {
            journal.append(AT_MS, &[format!("{{\"type\":\"message.taken\",\"id\":\"{id}\"}}")])?;
            done.push(id.to_string());
        }
        inbox.acknowledge(&id, &accepted("taken"))?;
    }
    Ok(done)
}

#[test]
fn every_message_takes_effect_exactly_once_whatever_crashes() {
    for seed in 0..2_000 {
        let (disk, _) = inbox_on(seed);
        let mut random = Random::new(seed);
        drop(Journal::create(shared(&disk), &path(), RUN, None).unwrap());
        let mut sent = Vec::new();
        for _ in 0..4 {
            for _ in 0..random.below(3) {
                sent.push(Inbox::send(&disk, &dir(), AT_MS, "answer").unwrap().to_string());
            }
            let at = disk.counts().operations + 1 + random.below(60);
            if random.below(2) == 0 {
                disk.halt_at(at);
            } else {
                disk.fail_at(at);
            }
            let _ = engine(&disk);
            if random.below(3) == 0 { disk.kill() } else { disk.crash() }
        }
        let mut done = engine(&disk).unwrap();
        done.sort();
        sent.sort();
        assert_eq!(done, sent, "seed {seed}");
        for id in &sent {
            let ack = Inbox::read_ack(&disk, &dir(), &MessageId::parse(id).unwrap()).unwrap();
            assert_eq!(ack, Some(accepted("taken")), "seed {seed}");
        }
        let inbox = Inbox::open(shared(&disk), &dir()).unwrap();
        assert_eq!(inbox.drain().unwrap().messages, [], "seed {seed}");
    }
}
