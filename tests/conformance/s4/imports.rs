//! Schedules that were begun without this engine: `state.json` and the phase files beside it.

use serde_json::{Value, json};

use super::schedule::{PHASES, Schedule};
use crate::support::Scratch;

const FOLDER: &str = ".agents/old";

/// `state.json` as the source describes it; these phases are completed, the next one is under way.
fn state(completed: usize) -> Value {
    let status = |place: usize| match place {
        place if place < completed => "completed",
        place if place == completed => "in_progress",
        _ => "pending",
    };
    let mut stages = json!({});
    for (place, (phase, stage)) in PHASES.iter().enumerate() {
        stages[stage]["phases"][phase] = json!({"status": status(place)});
        let own: Vec<usize> = (0..PHASES.len()).filter(|other| PHASES[*other].1 == *stage).collect();
        let done = own.iter().all(|place| *place < completed);
        let begun = own.iter().any(|place| *place <= completed);
        stages[stage]["status"] = json!(if done {
            "completed"
        } else if begun {
            "in_progress"
        } else {
            "pending"
        });
        stages[stage]["restartCount"] = json!(0);
        stages[stage]["blockReason"] = Value::Null;
    }
    let (phase, stage) = PHASES[completed];
    let schedule: Vec<Value> = PHASES
        .iter()
        .map(|(phase, stage)| json!({"phase": phase, "stage": stage, "name": phase, "type": "inline"}))
        .collect();
    json!({
        "version": 2, "task": "End other sessions", "status": "stopped", "currentStage": stage, "currentPhase": phase,
        "schedule": schedule, "gates": {"EXPLORE->PLAN": {"required": ["0-explore.md"], "phase": "0"}}, "stages": stages,
        "files": {}, "failure": null, "compaction": {"lastCompactedAt": null, "history": []},
        "startedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "stoppedAt": "2026-01-01T00:00:00Z",
    })
}

const PLAN: &str = "# Plan\n\nFree words.\n\n## Tasks\n\n### Task one: Keep them\n- **Files:** `src/one.txt`\n- **Dependencies:** none\n- **Complexity:** easy\n- **Instructions:** Do one.\n\n### Task two: Show them\n- **Files:** src/two.txt, src/page.txt\n- **Dependencies:** Task one\n- **Complexity:** Easy\n- **Instructions:** Do two.\n";

/// The files that such a folder has, in layouts of their own; no file of ours.
fn begun(cases: &str, completed: usize, change: impl FnOnce(&mut Value)) -> Scratch {
    let scratch = Schedule::project(cases);
    let mut state = state(completed);
    change(&mut state);
    scratch.write(&format!("{FOLDER}/state.json"), &format!("{state:#}\n"));
    let review =
        r#"{"status": "approved", "issues": [], "summary": "fine", "filesReviewed": ["src/one.txt"]}"#;
    let results = r#"{"waves": [{"waveNumber": 1, "tasks": [{"id": "one", "status": "completed", "summary": "Did one."}]}], "completedTasks": ["one"], "failedTasks": []}"#;
    let files = [
        ("0", "0-explore.md", "Theirs: sessions are kept in a table.\n"),
        ("1.1", "1.1-brainstorm.md", "Theirs: by a column.\n"),
        ("1.2", "1.2-plan.md", PLAN),
        ("1.3", "1.3-plan-review.json", review),
        ("2.1", "2.1-tasks.json", results),
        ("2.2", "2.2-simplify.md", "Theirs: nothing.\n"),
        ("2.3", "2.3-impl-review.json", review),
    ];
    for (phase, name, text) in files {
        let place = PHASES.iter().position(|(one, _)| *one == phase).unwrap();
        // The phase under way has written what it has so far.
        if place < completed || (place == completed && phase == "2.1") {
            scratch.write(&format!("{FOLDER}/phases/{name}"), text);
        }
    }
    scratch
}

#[track_caller]
fn taken(scratch: Scratch, more: &[&str], code: i32) -> Schedule {
    let words =
        ["import", FOLDER, "--agent", "mine", "--set", "lint=", "--set", "test=true", "--set", "backoff=1ms"];
    let run = scratch.gatewright(&[&words, more].concat()).exits(code).id();
    Schedule { scratch, run }
}

#[track_caller]
fn checked(scratch: &Scratch, code: i32) -> Value {
    let ran = scratch.gatewright(&["import", FOLDER, "--check", "--json"]).exits(code);
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn a_schedule_goes_on_in_the_phase_where_it_stood() {
    let scratch = begun("4.1-docs) brief ERROR;;", 5, |_| ());
    let said = checked(&scratch, 0);
    assert_eq!((&said["next"], &said["profile"]), (&json!("2.2-simplify"), &json!("default")), "{said:#}");
    scratch.write("src/half.txt", "theirs\n");
    let words = ["import", FOLDER, "--agent", "mine", "--set", "lint=", "--set", "test=true"];
    let ran = scratch.gatewright(&words).exits(11);
    assert!(ran.err.contains("1 changed file(s) of your checkout are in no commit"), "{}", ran.err);
    let schedule = Schedule { run: ran.id(), scratch };
    // Neither explored nor planned nor built again.
    let called = schedule.scratch.called();
    assert_eq!(called, ["2.2-simplify", "2.3-impl-review", "3.3-test-review", "4.1-docs"]);
    let state = schedule.state();
    for phase in ["1.1", "1.2", "1.3"] {
        assert_eq!(state["stages"]["PLAN"]["phases"][phase]["status"], "completed", "{phase}: {state:#}");
    }
    let plan = schedule.scratch.published(&schedule.run, "phases/1.2-plan.md").unwrap();
    assert_eq!(plan, PLAN, "as they wrote it");
    assert_eq!(schedule.phase_file("2.1-tasks.json")["completedTasks"], json!(["one"]));
}

#[test]
fn tasks_that_were_done_are_not_done_again() {
    let scratch = begun("2.2-simplify) brief ERROR;;", 4, |_| ());
    let schedule = taken(scratch, &[], 11);
    assert_eq!(schedule.scratch.called(), ["2.1-waves/two/easy", "2.2-simplify"]);
    assert_eq!(
        schedule.phase_file("1.2-plan.json")["tasks"][1]["files"],
        json!(["src/two.txt", "src/page.txt"])
    );
    assert_eq!(schedule.phase_file("2.1-tasks.json")["completedTasks"], json!(["one", "two"]));
}

#[test]
fn s4_26_restarts_before_the_import_count_against_the_limit() {
    let objects = "2.3-impl-review) objects HIGH;;";
    let twice = |state: &mut Value| state["stages"]["IMPLEMENT"]["restartCount"] = json!(2);
    let scratch = begun(objects, 5, twice);
    assert_eq!(checked(&scratch, 0)["restarts"], json!({"IMPLEMENT": 2}));
    let schedule = taken(scratch, &["--set", "maxRetries=0"], 10);
    assert_eq!(
        schedule.scratch.count("2.2-simplify"),
        2,
        "one restart was left: {:?}",
        schedule.scratch.called()
    );
    assert_eq!(schedule.state()["stages"]["IMPLEMENT"]["restartCount"], 3);
    let answers = schedule.scratch.decision(&schedule.run, "D-1")["answers"].to_string();
    assert!(answers.contains("force-continue"), "{answers}");
}

#[test]
fn reviews_before_the_import_count_against_the_limit() {
    let thrice = |state: &mut Value| state["stages"]["PLAN"]["phases"]["1.3"]["iterations"] = json!(3);
    let scratch = begun("1.3-plan-review) objects HIGH;;", 3, thrice);
    let schedule = taken(scratch, &[], 10);
    assert_eq!(schedule.scratch.called(), ["1.3-plan-review"], "the fourth is the last");
    assert_eq!(schedule.state()["stages"]["PLAN"]["phases"]["1.3"]["iterations"], 4);
}

#[test]
fn what_was_left_out_before_is_left_out() {
    let past = |state: &mut Value| state["stages"]["IMPLEMENT"]["phases"]["2.2"]["status"] = json!("skipped");
    let scratch = begun("2.3-impl-review) brief ERROR;;", 6, past);
    std::fs::remove_file(scratch.root().join(FOLDER).join("phases/2.2-simplify.md")).unwrap();
    let schedule = taken(scratch, &["--set", "maxPerPhase=0"], 11);
    assert_eq!(schedule.scratch.called(), ["2.3-impl-review"]);
    // A stage that was off stays off.
    let off = |state: &mut Value| state["stages"]["TEST"]["status"] = json!("skipped");
    assert_eq!(checked(&begun("", 5, off), 0)["profile"], "no-test");
}

#[test]
fn what_breaks_the_schema_of_a_schedule_is_said_exactly() {
    let broken = |state: &mut Value| {
        state["stages"]["IMPLEMENT"]["restartCount"] = json!("twice");
        state["status"] = json!("halfway");
        state["version"] = json!(1);
    };
    let scratch = begun("2.2-simplify) brief ERROR;;", 5, broken);
    let said = scratch.gatewright(&["import", FOLDER, "--check"]).exits(1).out;
    for place in [
        "state.json, /stages/IMPLEMENT/restartCount: expected",
        "state.json, /status: expected",
        "state.json, /version: expected",
    ] {
        assert!(said.contains(place), "{place}: {said}");
    }
    assert!(said.contains("go on with `2.2-simplify`"), "{said}");
    assert_eq!(taken(scratch, &[], 11).scratch.called(), ["2.2-simplify"]);
}
