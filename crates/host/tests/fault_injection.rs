//! The real disk stops or fails where `GATEWRIGHT_FAULT` says; what was acknowledged before is there afterwards.
#![cfg(feature = "fault-injection")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gatewright_host::disk::RealDisk;
use gatewright_host::fault;
use gatewright_host::journal::Journal;

/// The work whose operations are counted and hit. It runs in a process of its own, started by the tests below.
#[test]
#[ignore = "only as a child of the other tests"]
fn child() {
    let directory = std::env::var("GATEWRIGHT_TEST_DIR").unwrap();
    let directory = Path::new(&directory);
    let mut journal =
        Journal::create(Arc::new(RealDisk), &directory.join("journal.jsonl"), "run", None).unwrap();
    for number in 1..=5 {
        fault::point("spawn").unwrap();
        journal.append(0, &[format!("{{\"type\":\"tick\",\"number\":{number}}}")]).unwrap();
        std::fs::write(directory.join("acknowledged"), number.to_string()).unwrap();
    }
}

fn run_child(directory: &Path, fault: &str) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--test-threads=1"])
        .env("GATEWRIGHT_TEST_DIR", directory)
        .env("GATEWRIGHT_FAULT", fault)
        .env("GATEWRIGHT_FAULT_LOG", directory.join("operations"))
        .output()
        .unwrap();
    output.status.success()
}

fn acknowledged(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("acknowledged")).map_or(0, |text| text.parse().unwrap())
}

#[test]
fn every_operation_can_be_hit_and_nothing_acknowledged_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    assert!(run_child(directory.path(), ""));
    let log = std::fs::read_to_string(directory.path().join("operations")).unwrap();
    let operations: Vec<(&str, &str)> = log
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(kind, rest)| (kind, rest.split(' ').next().unwrap()))
        .collect();
    for (kind, last) in [("write", "5"), ("fsync", "6"), ("spawn", "5"), ("create", "1")] {
        assert_eq!(operations.iter().rfind(|(found, _)| *found == kind), Some(&(kind, last)));
    }
    for (kind, number) in operations {
        for action in if kind == "write" { &["abort", "error", "tear"][..] } else { &["abort", "error"] } {
            let fault = format!("{action}:{kind}:{number}");
            let directory = tempfile::tempdir().unwrap();
            assert!(!run_child(directory.path(), &fault), "{fault}");
            let path = directory.path().join("journal.jsonl");
            let expected = acknowledged(directory.path());
            match Journal::open(Arc::new(RealDisk), &path, "run", None) {
                Ok((_, records, recovery)) => {
                    assert!(records.len() == expected || records.len() == expected + 1, "{fault}");
                    assert_eq!(recovery.torn_bytes_cut > 0, *action == "tear", "{fault}");
                }
                Err(error) => assert!(expected == 0 && kind == "create", "{fault}: {error}"),
            }
        }
    }
}

#[test]
fn a_mistyped_fault_stops_the_process() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!run_child(directory.path(), "abort:write"));
    assert!(!directory.path().join("acknowledged").exists());
}
