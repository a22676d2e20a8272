//! Stages that run again.

use super::schedule::Schedule;

#[test]
fn s4_35_a_restart_takes_the_outputs_of_its_stage_away_and_those_after_it() {
    let cases = r#"
1.1-brainstorm) ls "$GATEWRIGHT_RUN_DIR/phases" > "$HOME/there-plan.$GATEWRIGHT_ATTEMPT"; standard;;
2.2-simplify) ls "$GATEWRIGHT_RUN_DIR/phases" > "$HOME/there.$GATEWRIGHT_ATTEMPT"; standard;;
3.3-test-review) ls "$GATEWRIGHT_RUN_DIR/phases" > "$HOME/there-test.$GATEWRIGHT_ATTEMPT"; content;;
4.1-docs) ls "$GATEWRIGHT_RUN_DIR/phases" > "$HOME/there-final.$GATEWRIGHT_ATTEMPT"; standard;;
4.2-final-review) echo nonsense;;"#;
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], cases, 11);
    let dir = schedule.scratch.run_dir(&schedule.run);
    assert!(dir.ends_with(".agents/tmp") && dir.join("phases/4.1-docs.md").exists(), "{}", dir.display());
    let restart = |stage: &str| {
        schedule.scratch.gatewright(&["restart", &schedule.run, "--stage", stage]).exits(11);
    };
    let there = |name: &str| std::fs::read_to_string(schedule.scratch.home().join(name)).unwrap();
    restart("FINAL");
    assert!(!there("there-final.2").contains("4.1-docs.md"));
    assert!(there("there-final.2").contains("3.3-test-review.json"));
    restart("TEST");
    let seen = there("there-test.2");
    assert!(
        seen.contains("3.1-test-results.json")
            && !seen.contains("3.3-test-review.json")
            && !seen.contains("4.1-docs.md"),
        "{seen}"
    );
    restart("IMPLEMENT");
    let seen = there("there.2");
    for gone in [
        "2.2-simplify.md",
        "2.3-impl-review.json",
        "3.1-test-results.json",
        "3.3-test-review.json",
        "4.1-docs.md",
    ] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    assert!(
        seen.contains("1.2-plan.md")
            && seen.contains("1.3-plan-review.json")
            && seen.contains("0-explore.md")
    );
    restart("PLAN");
    let seen = there("there-plan.2");
    for gone in ["1.1-brainstorm.md", "1.2-plan.md", "1.3-plan-review.json", "2.1-tasks.json"] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    assert!(seen.contains("0-explore.md"), "{seen}");
    assert_eq!(schedule.scratch.count("0-explore"), 1, "nobody explores again");
}

#[test]
fn s4_23_s4_26_an_implementation_that_cannot_be_repaired_is_made_anew_a_limited_number_of_times() {
    let flags = ["--set", "maxRetries=0", "--set", "maxPerStage=1"];
    let schedule = Schedule::runs(&flags, "2.3-impl-review) objects;;", 10);
    assert_eq!(schedule.scratch.count("2.2-simplify"), 2, "once, and one restart");
    assert_eq!(schedule.state()["stages"]["IMPLEMENT"]["restartCount"], 1);
    let task = |attempt| schedule.scratch.prompt("2.1-waves/one/easy", attempt);
    let why = "Stage `IMPLEMENT` is run again: 1 blocking finding(s) remain after 1 round(s): it is wrong";
    assert!(!task(1).contains("is run again") && task(2).contains(why), "{}", task(2));
    let decision = schedule.scratch.decision(&schedule.run, "D-1");
    assert_eq!(decision["answers"], serde_json::json!(["force-continue", "abort"]));
    schedule.answer("D-1", "force-continue", 0);
    let waivers = schedule.scratch.status(&schedule.run)["waivers"].to_string();
    assert!(waivers.contains("2.3-impl-review"), "{waivers}");
}

#[test]
fn s4_27_a_restart_of_an_earlier_stage_blocks_the_current_one_and_clears_both() {
    let cases = r#"
2.1-waves/one/easy) if [ $GATEWRIGHT_ATTEMPT -gt 1 ]; then ls "$GATEWRIGHT_RUN_DIR/phases" > "$HOME/there"; fi; standard;;
2.2-simplify) if [ $GATEWRIGHT_ATTEMPT = 2 ]; then touch src/right; fi; standard;;
4.1-docs) brief ERROR;;"#;
    let schedule = Schedule::runs(&["--set", "test=test -e src/right"], cases, 11);
    let there = std::fs::read_to_string(schedule.scratch.home().join("there")).unwrap();
    for gone in [
        "2.1-tasks.json",
        "2.2-simplify.md",
        "2.3-impl-review.json",
        "3.1-test-results.json",
        "3.2-analysis.json",
    ] {
        assert!(!there.contains(gone), "{gone}: {there}");
    }
    assert!(there.contains("1.2-plan.md"), "{there}");
    let seen = schedule.seen("2.1-waves/one/easy", 2);
    assert_eq!(seen["currentPhase"], "2.1");
    let test = &seen["stages"]["TEST"];
    assert_eq!(test["status"], "blocked", "{seen:#}");
    assert!(test["blockReason"].as_str().unwrap().contains("IMPLEMENT"), "{test:#}");
    let target = &seen["stages"]["IMPLEMENT"];
    assert_eq!((&target["restartCount"], &target["status"]), (&1.into(), &"restarting".into()), "{seen:#}");
    assert_eq!(target["phases"]["2.2"]["status"], "pending", "{seen:#}");
    assert_eq!(seen["status"], "in_progress", "the run goes on: {seen:#}");
    // As soon as something of it is done again it is under way like any other.
    let seen = schedule.seen("2.2-simplify", 2);
    let stages = &seen["stages"];
    assert_eq!(
        (&stages["IMPLEMENT"]["status"], &stages["TEST"]["status"]),
        (&"in_progress".into(), &"blocked".into())
    );
    assert_eq!(schedule.state()["stages"]["TEST"]["status"], "completed");
    assert!(schedule.state()["stages"]["TEST"]["blockReason"].is_null());
}

#[test]
fn s4_27_a_stage_that_was_restarted_itself_is_blocked_while_an_earlier_one_runs_again() {
    let schedule = Schedule::runs(&[], "4.1-docs) brief ERROR;;", 11);
    for stage in ["TEST", "IMPLEMENT"] {
        schedule.scratch.gatewright(&["restart", &schedule.run, "--stage", stage]).exits(11);
    }
    let seen = schedule.seen("2.1-waves/one/easy", 2);
    for stage in ["TEST", "FINAL"] {
        let stage = &seen["stages"][stage];
        assert_eq!(stage["status"], "blocked", "{seen:#}");
        assert_eq!(stage["blockReason"], "an earlier stage runs again: IMPLEMENT", "{seen:#}");
    }
    assert_eq!(seen["stages"]["IMPLEMENT"]["status"], "restarting", "{seen:#}");
    let seen = schedule.seen("3.3-test-review", 3);
    assert_eq!(seen["stages"]["FINAL"]["blockReason"], "an earlier stage runs again: TEST", "{seen:#}");
}

#[test]
fn s4_25_a_restart_begins_at_the_first_phase_of_its_stage_and_leaves_earlier_ones_alone() {
    let broken = "2.3-impl-review) echo nonsense;;";
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], broken, 11);
    schedule.scratch.gatewright(&["restart", &schedule.run, "--stage", "IMPLEMENT"]).exits(11);
    let seen = schedule.seen("2.1-waves/one/easy", 2);
    let stage = &seen["stages"]["IMPLEMENT"];
    assert_eq!((&stage["restartCount"], &stage["status"]), (&1.into(), &"in_progress".into()), "{seen:#}");
    assert_eq!((&seen["currentStage"], &seen["currentPhase"]), (&"IMPLEMENT".into(), &"2.1".into()));
    for phase in ["2.2", "2.3"] {
        assert_eq!(stage["phases"][phase]["status"], "pending", "{phase}: {seen:#}");
    }
    for stage in ["EXPLORE", "PLAN"] {
        assert_eq!(seen["stages"][stage]["status"], "completed", "{stage}: {seen:#}");
    }
    assert!(
        seen["files"]["1.2-plan.md"].is_string() && seen["files"]["2.2-simplify.md"].is_null(),
        "{seen:#}"
    );
    assert_eq!((schedule.scratch.count("1.2-plan"), schedule.scratch.count("2.2-simplify")), (1, 2));
}

#[test]
fn s4_24_a_person_has_five_ways_on_and_giving_up_keeps_the_state() {
    let breaks = "2.2-simplify) if [ $GATEWRIGHT_ATTEMPT -lt 3 ]; then exit 1; fi; standard;;\n4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], breaks, 10);
    let asked = schedule.scratch.decision(&schedule.run, "D-1");
    for way in ["retry", "restart-stage", "restart-previous", "skip", "abort"] {
        assert!(asked["answers"].to_string().contains(&format!("\"{way}\"")), "{way}: {asked}");
    }
    schedule.answer("D-1", "retry", 10);
    assert_eq!((schedule.scratch.count("2.2-simplify"), schedule.scratch.count("1.2-plan")), (2, 1));
    schedule.answer("D-2", "restart-previous", 11);
    assert_eq!((schedule.scratch.count("2.2-simplify"), schedule.scratch.count("1.2-plan")), (3, 2));
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], breaks, 10);
    schedule.answer("D-1", "abort", 1);
    let state = schedule.state();
    assert_eq!(
        (&state["status"], &state["stages"]["PLAN"]["status"]),
        (&"failed".into(), &"completed".into())
    );
}
