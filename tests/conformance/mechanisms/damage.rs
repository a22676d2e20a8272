//! Files of a run that were changed, emptied or lost: said with a way out, never guessed away.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Scratch, wait_for};

const ONE: &str = "steps: [ { id: a, role: coder } ]";

fn state_dir(scratch: &Scratch, run: &str) -> PathBuf {
    PathBuf::from(scratch.status(run)["state_dir"].as_str().unwrap())
}

fn list(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.gatewright(&["list", "--json"]).exits(0).out).unwrap()
}

#[test]
fn list_believes_no_summary_that_does_not_fit_the_journal() {
    let scratch = Scratch::with(ONE, "");
    let run = scratch.run(0);
    let dir = state_dir(&scratch, &run);
    let summary = dir.join("summary.json");
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(text.contains("\"done\""), "{text}");
    std::fs::write(&summary, text.replace("\"done\"", "\"dead\"")).unwrap();
    assert_eq!(list(&scratch)["runs"][0]["state"], "done", "an edited summary");
    let other = scratch.run(0);
    std::fs::copy(state_dir(&scratch, &other).join("summary.json"), &summary).unwrap();
    assert_eq!(list(&scratch)["runs"][0]["state"], "done", "that of another run");
    // Same length, other bytes: the chain of checksums does not hold.
    let journal = dir.join("journal.jsonl");
    let lines = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, lines.replacen("Add a greeting", "Add a GREETING", 1)).unwrap();
    let listed = list(&scratch);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed["broken"][0]["id"], run.as_str());
    assert!(scratch.gatewright(&["list"]).out.contains("broken"));
}

#[test]
fn a_run_without_its_run_json_is_shown_as_broken() {
    let scratch = Scratch::with(ONE, "");
    let run = scratch.run(0);
    let meta = state_dir(&scratch, &run).join("run.json");
    let good = std::fs::read(&meta).unwrap();
    std::fs::write(&meta, "{").unwrap();
    for damage in ["broken", "missing"] {
        if damage == "missing" {
            std::fs::remove_file(&meta).unwrap();
        }
        let listed = list(&scratch);
        assert_eq!(listed["broken"][0]["id"], run.as_str(), "{damage}");
        assert!(listed["broken"][0]["remedy"].as_str().unwrap().contains("run.json"), "{listed:#}");
        let told = scratch.gatewright(&["doctor"]);
        assert!(told.out.contains("run.json") && told.code == 1, "{damage}: {}{}", told.out, told.err);
        scratch.gatewright(&["status", &run]).exits(70).says("is broken");
        scratch.gatewright(&["resume", &run[..run.len() - 2]]).exits(70).says("is broken");
    }
    std::fs::write(&meta, good).unwrap();
    assert_eq!(list(&scratch)["runs"][0]["state"], "done");
}

#[test]
fn j_16_an_emptied_journal_is_said_and_nothing_is_run_again() {
    let scratch = Scratch::with(ONE, "");
    let run = scratch.run(0);
    let journal = state_dir(&scratch, &run).join("journal.jsonl");
    let good = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, "").unwrap();
    for gone in [false, true] {
        if gone {
            std::fs::remove_file(&journal).unwrap();
        }
        for command in ["status", "resume", "why"] {
            scratch.gatewright(&[command, &run]).exits(70).says("holds nothing although the run had begun");
        }
        assert_eq!(list(&scratch)["broken"][0]["id"], run.as_str());
        assert!(scratch.gatewright(&["doctor"]).out.contains("holds nothing"));
    }
    assert_eq!(scratch.count("a"), 1);
    std::fs::write(&journal, good).unwrap();
    assert_eq!(scratch.state(&run), "done");
}

#[test]
fn j_51_abort_after_a_kill_leaves_no_check_behind() {
    let scratch = Scratch::with(
        "checks: { long: { run: \"sh check.sh\" } }\nsteps: [ { id: a, role: coder, checks: [long] } ]",
        "",
    );
    // The second process takes off the variable by which the first one could be found.
    scratch.write(
        "check.sh",
        "env -i sh -c 'echo $$ > '\"$HOME\"'/pid.new; mv '\"$HOME/pid.new $HOME/pid\"'; exec sleep 600' &\nsleep 600\n",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("pid");
    let pid = std::fs::read_to_string(scratch.home().join("pid")).unwrap();
    let hidden = PathBuf::from("/proc").join(pid.trim());
    engine.kill();
    assert!(hidden.exists(), "the check outlives its engine");
    scratch.gatewright(&["abort", &run]).exits(0);
    assert_eq!(scratch.processes(), []);
    wait_for("the hidden part of the check is gone", || (!hidden.exists()).then_some(()));
    assert_eq!(scratch.state(&run), "abandoned");
}
