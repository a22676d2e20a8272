//! Damaged bytes: every truncation and every flipped bit is recovered or refused, never wrong.

use gatewright_host::disk::Disk;
use gatewright_host::journal::{Journal, JournalError, JournalKey, Record};

use crate::support::{
    AT_MS, RUN, Random, disk_with_run, event, events_of, journal_bytes, key, open, path, shared,
};

type Opened = Result<(Vec<Record>, u64), JournalError>;

/// Opens the bytes as a journal; whatever was cut must have been kept.
fn opened(bytes: &[u8], key: Option<JournalKey>) -> Opened {
    let disk = disk_with_run(1);
    disk.overwrite(&path(), bytes);
    let (journal, records, recovery) = open(&disk, key)?;
    drop(journal);
    let left = disk.read(&path()).unwrap();
    assert_eq!(recovery.notice.is_some(), recovery.torn_bytes_cut > 0);
    let torn = path().with_extension(format!("torn-{}", records.len() + 1));
    let kept = if recovery.torn_bytes_cut > 0 { disk.read(&torn).unwrap() } else { Vec::new() };
    assert_eq!([left, kept].concat(), bytes, "cut and kept bytes are the file as it was");
    Ok((records, recovery.torn_bytes_cut))
}

fn line_ends(bytes: &[u8]) -> Vec<usize> {
    let breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0).chain(breaks.map(|(position, _)| position + 1)).collect()
}

#[test]
fn a_line_is_what_the_format_says() {
    let (bytes, _) = journal_bytes(1, None);
    let line = String::from_utf8(bytes).unwrap();
    let head =
        "{\"seq\":1,\"v\":1,\"at\":\"2026-11-15T22:30:00.123Z\",\"type\":\"step.attempt.started\",\"step\":";
    assert!(line.starts_with(head), "{line}");
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(parsed["sum"].as_str().unwrap().len(), 32);
    let (bytes, _) = journal_bytes(1, key());
    let parsed: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(parsed["mac"].as_str().unwrap().len(), 64);
}

#[test]
fn a_record_gives_back_time_type_and_event() {
    let (bytes, events) = journal_bytes(2, key());
    let (records, _) = opened(&bytes, key()).unwrap();
    assert_eq!((records[1].seq, records[1].version, records[1].at_ms), (2, 1, AT_MS));
    assert_eq!(records[1].event_type(), "step.attempt.started");
    assert_eq!(records[1].event_json(), events[1]);
    assert_eq!(records[1].event::<serde_json::Value>().unwrap()["number"], 2);
    assert_eq!(records[1].line().as_bytes(), bytes.split(|byte| *byte == b'\n').nth(1).unwrap());
}

#[test]
fn every_truncation_keeps_exactly_the_complete_lines() {
    for key in [None, key()] {
        let (bytes, events) = journal_bytes(12, key.clone());
        let ends = line_ends(&bytes);
        for cut in 0..=bytes.len() {
            let complete = ends.iter().rposition(|end| *end <= cut).unwrap();
            let (records, torn) = opened(&bytes[..cut], key.clone()).unwrap();
            assert_eq!(events_of(&records), events[..complete], "cut at {cut}");
            assert_eq!(torn, (cut - ends[complete]) as u64, "cut at {cut}");
        }
    }
}

#[test]
fn every_flipped_bit_is_recovered_or_refused() {
    for key in [None, key()] {
        let (bytes, events) = journal_bytes(12, key.clone());
        let last_line = line_ends(&bytes)[11];
        let (mut recovered, mut refused) = (0, 0);
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[position] ^= 1 << bit;
                match opened(&damaged, key.clone()) {
                    Ok((records, _)) => {
                        assert_eq!(events_of(&records), events[..11], "byte {position} bit {bit}");
                        assert!(
                            position >= last_line,
                            "byte {position} bit {bit}: records after it were cut"
                        );
                        recovered += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(recovered > 0 && refused > last_line * 8 - 1, "{recovered} recovered, {refused} refused");
    }
}

/// The journals of whole runs that are kept, as the examples that damage begins with.
fn kept_journals() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<Vec<u8>> =
        folders.map(|folder| std::fs::read(folder.join("journal.jsonl")).unwrap()).collect();
    assert!(kept.len() >= 6);
    kept
}

/// What is read is a beginning of what was written, whatever happened to the bytes.
#[test]
fn kept_journals_that_were_cut_spliced_or_repeated_are_recovered_or_refused() {
    let kept = kept_journals();
    let read = |bytes: &[u8]| {
        let disk = disk_with_run(1);
        disk.overwrite(&path(), bytes);
        Journal::open(shared(&disk), &path(), "run", None).map(|(_, records, _)| events_of(&records))
    };
    let (mut recovered, mut refused) = (0, 0);
    for (number, bytes) in kept.iter().enumerate() {
        let written = read(bytes).unwrap();
        for seed in 0..150 {
            let mut random = Random::new(seed + 1);
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(2) {
                let from = random.below(damaged.len() as u64) as usize;
                let to = (from + random.below(2_000) as usize).min(damaged.len());
                let other = &kept[random.below(kept.len() as u64) as usize];
                let ends = line_ends(other);
                let line = random.below(ends.len() as u64 - 1) as usize;
                match random.below(5) {
                    0 => drop(damaged.drain(from..to)),
                    1 => damaged.truncate(from),
                    2 => drop(damaged.splice(to..to, damaged[from..to].to_vec())),
                    3 => drop(damaged.splice(from..to, other[ends[line]..ends[line + 1]].iter().copied())),
                    _ => damaged[from..to].fill(random.below(256) as u8),
                }
                if damaged.is_empty() {
                    break;
                }
            }
            match read(&damaged) {
                Ok(found) => {
                    assert!(
                        written.starts_with(&found),
                        "journal {number}, seed {seed}: something else was read"
                    );
                    recovered += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(recovered > 100 && refused > 100, "{recovered} recovered, {refused} refused");
}

#[test]
fn a_zero_filled_tail_is_torn() {
    let (bytes, events) = journal_bytes(12, None);
    for cut in (0..bytes.len()).step_by(7) {
        let complete = line_ends(&bytes).iter().rposition(|end| *end <= cut).unwrap();
        let mut zeroed = bytes[..cut].to_vec();
        zeroed.resize(bytes.len().max(cut + 4096), 0);
        let (records, _) = opened(&zeroed, None).unwrap();
        assert_eq!(events_of(&records), events[..complete], "zeros from {cut}");
    }
}

#[test]
fn a_recovered_journal_goes_on_where_the_chain_ended() {
    let (bytes, events) = journal_bytes(12, key());
    let disk = disk_with_run(1);
    disk.overwrite(&path(), &bytes[..bytes.len() - 30]);
    let (mut journal, records, _) = open(&disk, key()).unwrap();
    assert_eq!(records.len(), 11);
    assert_eq!(journal.append(AT_MS, &[event(99), event(100)]).unwrap(), 12..=13);
    drop(journal);
    let (_, records, recovery) = open(&disk, key()).unwrap();
    assert_eq!(recovery.torn_bytes_cut, 0);
    assert_eq!(events_of(&records), [&events[..11], &[event(99), event(100)]].concat());
}

#[test]
fn two_torn_ends_at_the_same_record_are_both_kept() {
    let (bytes, _) = journal_bytes(3, None);
    let disk = disk_with_run(1);
    for (cut, name) in [(10, "torn-3"), (20, "torn-3-2"), (10, "torn-3")] {
        disk.overwrite(&path(), &bytes[..bytes.len() - cut]);
        let (_journal, records, _) = open(&disk, None).unwrap();
        assert_eq!(records.len(), 2);
        assert!(disk.exists(&path().with_extension(name)).unwrap(), "{name}");
    }
    assert!(!disk.exists(&path().with_extension("torn-3-3")).unwrap());
}

/// Changes line `number` (from 1) of a journal of 12 lines and opens it.
fn with_line(number: usize, key: Option<JournalKey>, change: impl Fn(&str) -> Vec<String>) -> JournalError {
    let (bytes, _) = journal_bytes(12, key.clone());
    let text = String::from_utf8(bytes).unwrap();
    let lines = text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| if index + 1 == number { change(line) } else { vec![line.to_owned()] });
    let changed: String = lines.map(|line| line + "\n").collect();
    opened(changed.as_bytes(), key).map(|(records, _)| records.len()).unwrap_err()
}

#[test]
fn each_kind_of_damage_has_its_own_error() {
    for line in [5, 11] {
        let gap = with_line(line, None, |_| vec![]);
        assert!(
            matches!(gap, JournalError::SequenceGap { expected, found, .. } if found == expected + 1),
            "{gap}"
        );
        let doubled = with_line(line, None, |line| vec![line.to_owned(), line.to_owned()]);
        assert!(
            matches!(doubled, JournalError::SequenceGap { expected, found, .. } if found + 1 == expected),
            "{doubled}"
        );
    }
    for line in [5, 12] {
        let version = with_line(line, None, |line| vec![line.replace("\"v\":1", "\"v\":2")]);
        assert!(matches!(version, JournalError::UnknownVersion { found: 2, supported: 1, .. }), "{version}");
        let edited = with_line(line, None, |line| vec![line.replace("\"number\"", "\"Number\"")]);
        assert!(matches!(edited, JournalError::Corrupt { line: at, .. } if at == line as u64), "{edited}");
    }
    let garbage = with_line(5, None, |_| vec!["garbage".to_owned()]);
    assert!(matches!(garbage, JournalError::Corrupt { line: 5, .. }), "{garbage}");
    let text = garbage.to_string();
    assert!(
        text.contains("/state/run-7/journal.jsonl line 5, byte ") && text.contains("a record follows"),
        "{text}"
    );
}

#[test]
fn authenticity_is_checked_with_a_key_and_its_absence_is_said() {
    let (plain, _) = journal_bytes(3, None);
    let (sealed, events) = journal_bytes(3, key());
    let other = Some(JournalKey::new([8; 32]));
    assert!(matches!(opened(&sealed, other), Err(JournalError::MacMismatch { line: 1, .. })));
    assert!(matches!(opened(&plain, key()), Err(JournalError::MacMissing { line: 1, .. })));
    assert!(matches!(opened(&sealed, None), Err(JournalError::KeyMissing { .. })));
    assert_eq!(events_of(&opened(&sealed, key()).unwrap().0), events);
    for (bytes, key, unauthenticated) in [(&plain, None, true), (&sealed, key(), false)] {
        let disk = disk_with_run(1);
        disk.overwrite(&path(), bytes);
        assert_eq!(open(&disk, key).unwrap().2.unauthenticated, unauthenticated);
    }
}

#[test]
fn a_journal_of_another_run_is_refused() {
    let (bytes, _) = journal_bytes(3, None);
    let disk = disk_with_run(1);
    disk.overwrite(&path(), &bytes);
    let refused = Journal::open(shared(&disk), &path(), "run-8", None).map(|_| ()).unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { line: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("another run's"), "{refused}");
}

#[test]
fn an_event_that_would_break_the_line_is_refused_and_harms_nothing() {
    let disk = disk_with_run(1);
    let mut journal = Journal::create(shared(&disk), &path(), RUN, None).unwrap();
    for bad in ["", "{}", "{\"seq\":1}", "{\"type\":\"a\"", "{\"type\":\"a\",\n\"b\":1}"] {
        let refused = journal.append(AT_MS, &[event(1).as_str(), bad]).unwrap_err();
        assert!(matches!(refused, JournalError::InvalidEvent { index: 1, .. }), "{bad}: {refused}");
    }
    assert!(matches!(journal.append(u64::MAX, &[event(1)]), Err(JournalError::InvalidTime { .. })));
    assert!(journal.append::<&str>(AT_MS, &[]).unwrap().is_empty());
    assert_eq!(journal.append(AT_MS, &["{\"type\":\"run.started\"}"]).unwrap(), 1..=1);
    assert_eq!(journal.last_seq(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// Lines in another order, twice, left out, cut, with bytes between: a prefix of the truth, or an error.
    #[test]
    fn a_spliced_journal_is_a_prefix_or_refused(
        order in proptest::collection::vec(0..12usize, 0..16),
        straight in 0..12usize,
        cut in 0..60usize,
        noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12),
    ) {
        let (bytes, events) = journal_bytes(12, key());
        let ends = line_ends(&bytes);
        let mut spliced = bytes[..ends[straight]].to_vec();
        for line in order {
            spliced.extend_from_slice(&bytes[ends[line]..ends[line + 1]]);
        }
        spliced.truncate(spliced.len().saturating_sub(cut));
        spliced.extend_from_slice(&noise);
        if let Ok((records, _)) = opened(&spliced, key()) {
            let found = events_of(&records);
            proptest::prop_assert_eq!(&found[..], &events[..found.len()]);
        }
    }
}
