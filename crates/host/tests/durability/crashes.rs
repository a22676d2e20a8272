//! Failing operations and power cuts: what was acknowledged stays, what failed is never acknowledged.

use gatewright_host::disk::SimulatedDisk;
use gatewright_host::journal::{Journal, JournalError};

use crate::support::{AT_MS, RUN, Random, disk_with_run, event, events_of, open, path, shared};

/// Five batches of up to three events on a new journal, until something fails. Returns what was acknowledged.
fn scenario(disk: &SimulatedDisk) -> (Vec<String>, Option<Journal>, Option<JournalError>) {
    let mut acknowledged = Vec::new();
    let mut journal = match Journal::create(shared(disk), &path(), RUN, None) {
        Ok(journal) => journal,
        Err(error) => return (acknowledged, None, Some(error)),
    };
    for batch in 0..5 {
        let events: Vec<String> = (0..=batch % 3).map(|number| event(batch * 10 + number)).collect();
        match journal.append(AT_MS, &events) {
            Ok(_) => acknowledged.extend(events),
            Err(error) => return (acknowledged, Some(journal), Some(error)),
        }
    }
    (acknowledged, Some(journal), None)
}

fn operations_of_the_scenario() -> (u64, u64) {
    let disk = disk_with_run(1);
    let before = disk.counts().operations;
    let (acknowledged, _, error) = scenario(&disk);
    assert!(error.is_none());
    assert_eq!(acknowledged.len(), 9);
    (before + 1, disk.counts().operations)
}

/// Opens again; if the journal exists at all, everything acknowledged is there and nothing that was not written.
fn must_hold(disk: &SimulatedDisk, acknowledged: &[String], context: &str) {
    match open(disk, None) {
        Ok((mut journal, records, _)) => {
            let found = events_of(&records);
            assert!(
                found.starts_with(acknowledged),
                "{context}: {} acknowledged, {found:?}",
                acknowledged.len()
            );
            assert!(found.len() <= acknowledged.len() + 3, "{context}: {found:?}");
            journal.append(AT_MS, &[event(500)]).unwrap();
            drop(journal);
            disk.crash();
            let (_, records, recovery) = open(disk, None).unwrap();
            assert_eq!(recovery.torn_bytes_cut, 0, "{context}");
            assert_eq!(events_of(&records), [found, vec![event(500)]].concat(), "{context}");
        }
        Err(JournalError::NotFound { .. }) => assert!(acknowledged.is_empty(), "{context}"),
        Err(error) => panic!("{context}: {error}"),
    }
}

#[test]
fn the_nth_operation_fails_for_every_n() {
    let (first, last) = operations_of_the_scenario();
    let (whole, ..) = scenario(&disk_with_run(0));
    for n in first..=last {
        for power_cut in [false, true] {
            for seed in 0..20 {
                let context = format!("operation {n}, power cut {power_cut}, seed {seed}");
                let disk = disk_with_run(seed);
                disk.fail_at(n);
                let (acknowledged, journal, error) = scenario(&disk);
                if error.is_none() {
                    // Only a look at the file failed, after everything was durable.
                    assert_eq!(acknowledged, whole, "{context}");
                    continue;
                }
                if let Some(mut journal) = journal {
                    assert!(journal.is_poisoned(), "{context}");
                    for _ in 0..3 {
                        let again = journal.append(AT_MS, &[event(600)]).unwrap_err();
                        assert!(matches!(again, JournalError::Poisoned { .. }), "{context}: {again}");
                    }
                }
                if power_cut {
                    disk.crash();
                }
                must_hold(&disk, &acknowledged, &context);
            }
        }
    }
}

#[test]
fn the_power_fails_at_every_operation() {
    let (first, last) = operations_of_the_scenario();
    let (whole, ..) = scenario(&disk_with_run(0));
    for n in first..=last {
        for seed in 0..50 {
            let disk = disk_with_run(seed);
            disk.halt_at(n);
            let (acknowledged, journal, error) = scenario(&disk);
            assert!(error.is_some() || acknowledged == whole, "operation {n}, seed {seed}");
            drop(journal);
            disk.crash();
            must_hold(&disk, &acknowledged, &format!("operation {n}, seed {seed}"));
        }
    }
}

/// Several lives of one journal with random batches, faults, kills and power cuts. Returns what was lost.
fn lives(seed: u64, lying_disk: bool) -> Result<u64, String> {
    let disk = disk_with_run(seed);
    let mut random = Random::new(seed);
    let mut durable: Vec<String> = Vec::new();
    drop(Journal::create(shared(&disk), &path(), RUN, None).unwrap());
    if lying_disk {
        disk.ignore_syncs();
    }
    let mut number = 0;
    for life in 0..5 {
        let context = format!("seed {seed}, life {life}");
        if random.below(3) == 0 {
            disk.halt_at(disk.counts().operations + 1 + random.below(8));
            // Opening may be hit as well; then the machine starts once more.
            let _ = open(&disk, None);
            disk.crash();
        }
        let (mut journal, records, _) = open(&disk, None).map_err(|error| format!("{context}: {error}"))?;
        let found = events_of(&records);
        if !found.starts_with(&durable) {
            return Err(format!("{context}: {} acknowledged, {} found", durable.len(), found.len()));
        }
        durable = found;
        let place_fault = disk.counts().operations + 1 + random.below(20);
        match random.below(3) {
            0 => disk.halt_at(place_fault),
            1 => disk.fail_at(place_fault),
            _ => {}
        }
        for _ in 0..random.below(8) {
            let batch: Vec<String> = (0..=random.below(3))
                .map(|_| {
                    number += 1;
                    event(number).replace("plan", &"p".repeat(random.below(300) as usize))
                })
                .collect();
            match journal.append(AT_MS, &batch) {
                Ok(_) => durable.extend(batch),
                Err(_) => break,
            }
        }
        drop(journal);
        disk.clear_fault();
        if random.below(3) == 0 { disk.kill() } else { disk.crash() }
    }
    Ok(durable.len() as u64)
}

#[test]
fn random_crashes_keep_every_acknowledged_record() {
    let mut records = 0;
    for seed in 0..3_000 {
        records += lives(seed, false).unwrap();
    }
    assert!(records > 20_000, "the lives wrote only {records} records");
}

#[test]
fn without_syncs_records_are_lost() {
    let lost = (0..200).filter(|seed| lives(*seed, true).is_err()).count();
    assert!(lost > 100, "the negative control lost records in {lost} of 200 cases only");
}
