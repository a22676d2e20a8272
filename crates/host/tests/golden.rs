//! Journals of earlier versions, with their plans: read by this version they mean what they always meant.
//!
//! A folder under `golden/` is never changed once it is there. A new one gets its `state.txt` with
//! `GATEWRIGHT_BLESS=1 cargo test -p gatewright-host --test golden`; one that is there is never rewritten.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::{event::Event, ids::Timestamp, replay, state::State};
use gatewright_host::{
    atomic_file::create_dir_durable,
    disk::{Disk, RealDisk, SimulatedDisk},
    document,
    journal::{Journal, JournalError},
    run_context::hash_bytes,
    run_loop::read_frozen,
};

fn folders() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// What a journal means, in words that later versions still have.
fn meaning(state: &State) -> String {
    let mut text = format!("run {} profile {}\n", document::status_word(state), state.profile);
    for (id, own) in &state.steps {
        let word = document::step_word(state, id, own);
        let (attempts, round, visit) = (own.attempts, own.round, own.visit);
        writeln!(
            text,
            "step {id}: {word} attempts {attempts} round {round} visit {visit} counts {:?}",
            own.accepted
        )
        .unwrap();
    }
    for (id, decision) in &state.decisions {
        writeln!(
            text,
            "decision {id}: {:?} {:?} {:?}",
            decision.status, decision.answer, decision.decision.bound
        )
        .unwrap();
    }
    for (name, artifact) in &state.artifacts {
        writeln!(text, "artifact {name}: {}#{} {}", artifact.step, artifact.attempt, artifact.hash.0)
            .unwrap();
    }
    for (id, fan_out) in &state.fan_outs {
        let ends: Vec<String> =
            fan_out.items.iter().map(|(key, item)| format!("{key} {:?}", item.end.as_ref())).collect();
        writeln!(text, "fan-out {id}: {}", ends.join(", ")).unwrap();
    }
    for (scope, spent) in &state.spent {
        let (ms, launches) = (spent.active_ms, spent.launches);
        writeln!(
            text,
            "spent {scope:?}: {ms} ms {launches} launches {} tokens {}",
            spent.tokens, spent.micro_usd
        )
        .unwrap();
    }
    writeln!(text, "restarts {:?} ignored {}", state.restarts, state.results_ignored).unwrap();
    writeln!(text, "waivers {} orders {}", state.waivers.len(), state.messages_taken.len()).unwrap();
    text
}

fn run_id(folder: &Path) -> String {
    fs::read_to_string(folder.join("run-id.txt"))
        .map_or_else(|_| "run".to_owned(), |text| text.trim().to_owned())
}

#[test]
fn golden_journals_mean_what_they_always_meant() {
    let folders = folders();
    assert!(folders.len() >= 6, "golden journals are gone");
    for folder in folders {
        // Opening takes a lock beside the journal, so a copy is opened.
        let copy = tempfile::tempdir().unwrap();
        let journal = copy.path().join("journal.jsonl");
        fs::copy(folder.join("journal.jsonl"), &journal).unwrap();
        let (_, records, recovery) =
            Journal::open(Arc::new(RealDisk), &journal, &run_id(&folder), None).unwrap();
        assert_eq!(recovery.torn_bytes_cut, 0, "{}", folder.display());
        assert!(RealDisk.exists(&folder.join("plan.json")).unwrap());
        let frozen = read_frozen(&RealDisk, &folder.join("plan.json")).unwrap();
        let events: Vec<(Timestamp, Event)> =
            records.iter().map(|record| (Timestamp(record.at_ms), record.event().unwrap())).collect();
        // Reading and writing an event again changes nothing in it.
        for (record, (_, event)) in records.iter().zip(&events) {
            let again: serde_json::Value = serde_json::to_value(event).unwrap();
            let stored: serde_json::Value = serde_json::from_str(&record.event_json()).unwrap();
            assert_eq!(again, stored, "{} record {}", folder.display(), record.seq);
        }
        let (state, _) = replay(&frozen.plan, events, |_| Some(&frozen.plan)).unwrap();
        let text = meaning(&state);
        let expected = format!("{}\n{text}", hash_bytes(text.as_bytes()).0);
        let path = folder.join("state.txt");
        if !path.exists() && std::env::var_os("GATEWRIGHT_BLESS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{}", folder.display());
    }
}

fn events_of(bytes: &[u8], run: &str) -> Result<Vec<String>, JournalError> {
    let disk = SimulatedDisk::new(1);
    create_dir_durable(&disk, Path::new("/run")).unwrap();
    let path = Path::new("/run/journal.jsonl");
    disk.overwrite(path, bytes);
    let (_, records, _) = Journal::open(Arc::new(disk), path, run, None)?;
    Ok(records.iter().map(gatewright_host::journal::Record::event_json).collect())
}

proptest::proptest! {
    // Bounded; a find belongs into `golden/`, or into the tests of recovery.
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// Cut, repeated and flipped anywhere: the reader gives a prefix of what was there, or an error in words.
    #[test]
    fn kept_journals_mutated_are_a_prefix_or_refused(
        which in 0..8usize,
        changes in proptest::collection::vec((0..3u8, proptest::prelude::any::<u16>(), 0..300usize, 1..=255u8), 1..4),
    ) {
        let folders = folders();
        let folder = &folders[which % folders.len()];
        let whole = fs::read(folder.join("journal.jsonl")).unwrap();
        let mut bytes = whole.clone();
        for (kind, at, length, bits) in changes {
            let from = usize::from(at) * bytes.len() / (usize::from(u16::MAX) + 1);
            let to = (from + length).min(bytes.len());
            match kind {
                0 => drop(bytes.drain(from..to)),
                1 => {
                    let part = bytes[from..to].to_vec();
                    bytes.splice(to..to, part);
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(from) {
                        *byte ^= bits;
                    }
                }
            }
        }
        let run = run_id(folder);
        match events_of(&bytes, &run) {
            Ok(found) => {
                let all = events_of(&whole, &run).unwrap();
                proptest::prop_assert!(found.len() <= all.len());
                proptest::prop_assert_eq!(&found[..], &all[..found.len()]);
            }
            Err(error) => proptest::prop_assert!(error.to_string().len() > 10, "{}", error),
        }
    }
}
