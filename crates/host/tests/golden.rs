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
    disk::{Disk, RealDisk},
    document,
    journal::Journal,
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
