//! What stands between two stages.

use super::schedule::Schedule;

/// A phase that is left out leaves its file out, and the gate behind it stays closed whoever left it out.
#[track_caller]
fn gate_stays_closed(cases: &str, flags: &[&str], left_out: &[&str], file: &str, stage: &str, not_run: &str) {
    stays_closed(&Schedule::runs(flags, cases, 11), left_out, file, stage, not_run);
}

#[track_caller]
fn stays_closed(schedule: &Schedule, left_out: &[&str], file: &str, stage: &str, not_run: &str) {
    for step in left_out {
        schedule.scratch.gatewright(&["skip", &schedule.run, step, "--reason", "without it"]).exits(11);
    }
    let (reason, message) = schedule.scratch.blocked_by(&schedule.run);
    assert_eq!(reason, "gate", "{message}");
    assert!(message.contains(file), "{message}");
    assert_eq!(schedule.scratch.count(not_run), 0, "{not_run} must not start");
    let state = schedule.state();
    assert_eq!(
        (&state["status"], &state["stages"][stage]["status"]),
        (&"blocked".into(), &"blocked".into()),
        "{state:#}"
    );
    assert!(state["stages"][stage]["blockReason"].as_str().unwrap().contains(file), "{state:#}");
}

#[test]
fn s4_06_s4_07_without_the_findings_there_is_no_plan() {
    gate_stays_closed(
        "0-explore) brief ERROR;;",
        &[],
        &["0-explore"],
        "phases/0-explore.md",
        "PLAN",
        "1.1-brainstorm",
    );
}

#[test]
fn s4_08_without_the_plan_and_its_review_nothing_is_implemented() {
    let broken = "1.3-plan-review) echo nonsense;;";
    let once = ["--set", "maxPerPhase=0"];
    gate_stays_closed(
        broken,
        &once,
        &["1.3-plan-review"],
        "phases/1.3-plan-review.json",
        "IMPLEMENT",
        "2.1-waves/one/easy",
    );
    let none = "1.2-plan) brief ERROR;;";
    gate_stays_closed(
        none,
        &[],
        &["1.2-plan", "1.3-plan-review"],
        "phases/1.2-plan.md",
        "IMPLEMENT",
        "2.1-waves/one/easy",
    );
}

#[test]
fn s4_09_without_results_and_their_review_nothing_is_tested() {
    let scratch = Schedule::project("2.3-impl-review) echo nonsense;;");
    let schedule =
        Schedule::start(scratch, &["--set", "maxPerPhase=0", "--set", "test=touch $HOME/tested"], 11);
    schedule
        .scratch
        .gatewright(&["skip", &schedule.run, "2.3-impl-review", "--reason", "without it"])
        .exits(11);
    let (reason, message) = schedule.scratch.blocked_by(&schedule.run);
    assert!(reason == "gate" && message.contains("phases/2.3-impl-review.json"), "{message}");
    assert!(!schedule.scratch.home().join("tested").exists(), "no command was run");
    // The same for the results.
    let schedule = Schedule::runs(&["--set", "checks.collect.run=exit 1"], "", 10);
    schedule.answer("D-1", "skip", 11);
    for step in ["2.2-simplify", "2.3-impl-review"] {
        schedule.scratch.gatewright(&["skip", &schedule.run, step, "--reason", "without it"]).exits(11);
    }
    assert!(schedule.scratch.blocked_by(&schedule.run).1.contains("phases/2.1-tasks.json"));
}

#[test]
fn s4_10_without_test_results_and_their_review_nothing_is_final() {
    let broken = "3.3-test-review) echo nonsense;;";
    gate_stays_closed(
        broken,
        &["--set", "maxPerPhase=0"],
        &["3.3-test-review"],
        "phases/3.3-test-review.json",
        "FINAL",
        "4.1-docs",
    );
    let schedule = Schedule::runs(&["--set", "test="], "", 10);
    schedule.answer("D-1", "skip", 11);
    stays_closed(&schedule, &["3.3-test-review"], "phases/3.1-test-results.json", "FINAL", "4.1-docs");
}

#[test]
fn s4_11_without_the_final_review_nothing_is_completed() {
    let broken = "4.2-final-review) echo nonsense;;";
    let flags = ["--set", "maxPerPhase=0", "--set", "gitWorkflow=commit"];
    let schedule = Schedule::runs(&flags, broken, 11);
    schedule
        .scratch
        .gatewright(&["skip", &schedule.run, "4.2-final-review", "--reason", "without it"])
        .exits(11);
    let (reason, message) = schedule.scratch.blocked_by(&schedule.run);
    assert!(reason == "gate" && message.contains("phases/4.2-final-review.json"), "{message}");
    assert!(!schedule.scratch.root().join("src/one.txt").exists(), "nothing was delivered");
    assert_eq!(schedule.state()["status"], "blocked");
}

#[test]
fn s4_12_a_reviewer_that_breaks_blocks_and_skips_nothing() {
    let schedule = Schedule::runs(&["--set", "maxPerPhase=1"], "2.3-impl-review) echo nonsense;;", 11);
    assert_eq!(schedule.scratch.count("2.3-impl-review"), 2);
    assert_eq!(schedule.scratch.count("2.3-bug-fixer") + schedule.scratch.count("3.3-test-review"), 0);
    assert_eq!(schedule.state()["stages"]["IMPLEMENT"]["restartCount"], 0, "no restart hides it");
}

#[test]
fn s4_28_s4_29_a_stage_that_is_off_is_skipped_and_its_gates_are_linked_anew() {
    let schedule = Schedule::runs(&["--profile", "no-test", "--set", "test=touch $HOME/tested"], "", 0);
    let state = schedule.state();
    assert_eq!(
        (&state["stages"]["TEST"]["status"], &state["stages"]["TEST"]["enabled"]),
        (&"skipped".into(), &false.into())
    );
    for phase in ["3.1", "3.2", "3.3"] {
        assert_eq!(state["stages"]["TEST"]["phases"][phase]["status"], "skipped");
    }
    let gates: Vec<&String> = state["gates"].as_object().unwrap().keys().collect();
    assert_eq!(gates, ["EXPLORE->PLAN", "PLAN->IMPLEMENT", "IMPLEMENT->FINAL", "FINAL->COMPLETE"]);
    assert_eq!(
        state["gates"]["IMPLEMENT->FINAL"]["required"],
        serde_json::json!(["2.1-tasks.json", "2.3-impl-review.json"])
    );
    assert!(!schedule.scratch.home().join("tested").exists());
    // And the new gate is one.
    let flags = ["--profile", "no-test", "--set", "maxPerPhase=0"];
    gate_stays_closed(
        "2.3-impl-review) echo nonsense;;",
        &flags,
        &["2.3-impl-review"],
        "phases/2.3-impl-review.json",
        "FINAL",
        "4.1-docs",
    );
}

#[test]
fn s4_29_the_gate_of_a_stage_that_is_off_is_between_its_neighbours_whichever_it_is() {
    let off = |stage: &'static str| ["--set", stage, "--set", "maxPerPhase=0"];
    gate_stays_closed(
        "1.3-plan-review) echo nonsense;;",
        &off("IMPLEMENT=false"),
        &["1.3-plan-review"],
        "phases/1.3-plan-review.json",
        "TEST",
        "3.3-test-review",
    );
    gate_stays_closed(
        "0-explore) brief ERROR;;",
        &off("PLAN=false"),
        &["0-explore"],
        "phases/0-explore.md",
        "IMPLEMENT",
        "2.1-waves/request/medium",
    );
}

#[test]
fn j_31_a_stage_that_is_off_leaves_a_gate_between_its_neighbours() {
    let flags = ["--profile", "no-test", "--set", "test=touch $HOME/tested"];
    let schedule = Schedule::runs(&flags, "", 0);
    assert!(!schedule.scratch.home().join("tested").exists(), "nothing of it runs");
    assert_eq!(schedule.scratch.step_state(&schedule.run, "3.1-test-results"), "skipped");
    let skipped = schedule.scratch.events_of(&schedule.run, "step.skipped");
    assert!(skipped.iter().any(|event| event["step"] == "3.3-test-review"), "and it is on record");
    assert_eq!(schedule.state()["gates"]["IMPLEMENT->FINAL"]["phase"], "2.3");
}
