//! Reviews, repairs, and where a failure leads.

use super::schedule::Schedule;

#[test]
fn s4_15_what_a_review_demands_is_repaired_by_the_bug_fixer_and_looked_at_again() {
    let cases = "
2.3-impl-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects LOW 'a name is wrong'; else content; fi;;
4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&[], cases, 11);
    assert_eq!(schedule.scratch.count("2.3-bug-fixer"), 1);
    assert_eq!(schedule.scratch.count("2.3-impl-review"), 2);
    assert_eq!(schedule.model("2.3-bug-fixer"), "codex-high");
    let prompt = schedule.scratch.prompt("2.3-bug-fixer", 1);
    assert!(prompt.contains("a name is wrong") && prompt.contains("2.3-impl-review.json"), "{prompt}");
    let review = schedule.phase_file("2.3-impl-review.json");
    assert_eq!(review["status"], "approved", "the last review counts");
    // From the severity on that is configured.
    let cases = "2.3-impl-review) objects MEDIUM;;\n4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&["--set", "blockOnSeverity=high"], cases, 11);
    assert_eq!(schedule.scratch.count("2.3-bug-fixer"), 0);
    // Three repairs, not one more.
    let schedule = Schedule::runs(&[], "1.3-plan-review) objects;;", 10);
    assert_eq!((schedule.scratch.count("1.3-plan-review"), schedule.scratch.count("1.3-bug-fixer")), (4, 3));
}

#[test]
fn s4_19_s4_20_a_blocked_final_review_stops_and_asks_whatever_the_severity() {
    let cases = "4.2-final-review) final blocked '' false;;";
    let schedule = Schedule::runs(&["--set", "blockOnSeverity=high"], cases, 10);
    assert_eq!(schedule.scratch.count("4.2-bug-fixer"), 0);
    assert_eq!(schedule.scratch.decision(&schedule.run, "D-1")["about"], "hard_stop");
    schedule.answer("D-1", "abort", 1);
    // The other reviews do not know the word.
    let cases = "1.3-plan-review) judge phases/1.3-plan-review.json '{\"status\": \"blocked\", \"issues\": [], \"summary\": \"no\"}';;";
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], cases, 11);
    assert_eq!(schedule.scratch.count("2.1-waves/one/easy"), 0);
}

#[test]
fn s4_19_j_52_a_review_file_that_objects_holds_against_a_reply_that_approves() {
    let cases = "
2.3-impl-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects HIGH 'only the file says so' > /dev/null; else content > /dev/null; fi
  printf '{\"status\": \"approved\", \"issues\": [], \"summary\": \"fine\"}\\n';;
4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&[], cases, 11);
    assert_eq!(schedule.scratch.count("2.3-bug-fixer"), 1);
    assert!(schedule.scratch.prompt("2.3-bug-fixer", 1).contains("only the file says so"));
    let disagreement = "the final message says `approved`, the JSON file says `needs_revision`";
    let events = serde_json::to_string(&schedule.scratch.events(&schedule.run)).unwrap();
    assert!(events.contains(disagreement));
}

#[test]
fn s4_22_a_failure_in_a_test_goes_to_those_who_mend_tests_and_one_in_the_source_starts_implement_again() {
    // A task: it is tried again, then a person retries or leaves it out.
    let schedule = Schedule::runs(&[], "2.1-waves/one/easy) exit 1;;", 10);
    assert_eq!(schedule.scratch.count("2.1-waves/one/easy"), 3);
    let answers = schedule.scratch.decision(&schedule.run, "D-1")["answers"].to_string();
    assert!(answers.contains("retry") && answers.contains("skip") && answers.contains("abort"), "{answers}");
    // A test.
    let cases =
        "3.2-analysis) analysis test;;\n3.2-fix-tests) touch src/mended; ok;;\n4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&["--set", "test=test -e src/mended"], cases, 11);
    assert_eq!(schedule.scratch.count("3.2-fix-tests"), 1);
    assert_eq!(schedule.state()["stages"]["IMPLEMENT"]["restartCount"], 0);
    assert_eq!(schedule.phase_file("3.1-test-results.json")["passed"], true, "run again after the repair");
    // The source.
    let cases = "2.2-simplify) if [ $GATEWRIGHT_ATTEMPT = 2 ]; then touch src/right; fi; standard;;\n4.1-docs) brief ERROR;;";
    let schedule = Schedule::runs(&["--set", "test=test -e src/right"], cases, 11);
    assert_eq!(schedule.scratch.count("3.2-fix-tests"), 0);
    assert_eq!(schedule.scratch.count("2.2-simplify"), 2);
    assert_eq!(schedule.state()["stages"]["IMPLEMENT"]["restartCount"], 1);
    let restarted = schedule.scratch.events_of(&schedule.run, "stage.restarted");
    assert!(restarted[0]["reason"].as_str().unwrap().contains("code logic error"), "{restarted:#?}");
}

#[test]
fn s4_22_whoever_uses_up_the_retries_of_a_phase_leaves_it_to_a_person() {
    let ways = serde_json::json!(["retry", "restart-stage", "restart-previous", "skip", "abort"]);
    for (review, fixer) in [
        ("1.3-plan-review) objects;;", "1.3-bug-fixer"),
        ("2.3-impl-review) objects;;", "2.3-bug-fixer"),
        ("3.3-test-review) objects;;", "3.3-bug-fixer"),
        (
            "4.2-final-review) final approved '{\"severity\": \"HIGH\", \"location\": \"a:1\", \"issue\": \"wrong\", \"suggestion\": \"mend\"}';;",
            "4.2-bug-fixer",
        ),
    ] {
        let cases = format!("{review}\n{fixer}) exit 1;;");
        let schedule = Schedule::runs(&["--set", "maxPerPhase=1"], &cases, 10);
        assert_eq!(schedule.scratch.count(fixer), 2, "{fixer}: {:?}", schedule.scratch.called());
        let asked = schedule.scratch.decision(&schedule.run, "D-1");
        assert_eq!((&asked["step"], &asked["answers"]), (&fixer.into(), &ways), "{asked:#}");
    }
    // A command that cannot be run at all.
    let schedule = Schedule::runs(&["--set", "test="], "", 10);
    let asked = schedule.scratch.decision(&schedule.run, "D-1");
    assert_eq!((&asked["step"], &asked["answers"]), (&"3.1-test-results".into(), &ways), "{asked:#}");
    assert!(asked["question"].to_string().contains("neither a lint nor a test command"), "{asked:#}");
}

#[test]
fn s4_21_a_failure_stands_in_the_state_with_its_class() {
    let schedule = Schedule::runs(&["--set", "maxPerPhase=1"], "2.2-simplify) exit 3;;", 10);
    let seen = schedule.seen("2.2-simplify", 2);
    let failure = &seen["failure"];
    assert_eq!((&failure["phase"], &failure["class"]), (&"2.2".into(), &"crash".into()), "{failure:#}");
    assert!(failure["error"].as_str().unwrap().contains("exited with 3"), "{failure:#}");
    let failure = &schedule.state()["failure"];
    assert!(failure["error"].as_str().unwrap().contains("exited with 3"), "{failure:#}");
    assert_eq!(failure["phase"], "2.2");
    assert_eq!(failure["context"]["completedTasks"], serde_json::json!(["one"]));
}

#[test]
fn s4_17_what_a_suite_prints_is_a_result_whatever_its_bytes() {
    let test = "test=printf 'caf\\303\\251 \\377\\t\\\\ \"\\n'; head -c 5000 /dev/zero | tr '\\0' x; exit 1";
    let schedule = Schedule::runs(&["--set", test, "--set", "maxPerStage=0"], "", 10);
    let results = schedule.phase_file("3.1-test-results.json");
    let lines = results["commands"][0]["output"].as_array().unwrap();
    assert_eq!((&results["passed"], lines[0].as_str().unwrap()), (&false.into(), "café  \\ \""));
    assert_eq!(lines[1].as_str().unwrap().len(), 2000, "a line without an end is cut");
    assert_eq!(schedule.scratch.count("3.2-analysis"), 1, "a red suite is analysed");
}
