//! What agents say and write in the words of the source.

use serde_json::json;

use super::schedule::Schedule;

#[test]
fn s4_16_a_task_agent_says_in_its_own_json_how_its_task_ended() {
    let cases = r#"
1.2-plan) tasks "$(task one '' easy), $(task two '"one"' easy)";;
2.1-waves/one/easy) echo one > src/one.txt; printf 'Looked around.\n{"taskId": "one", "status": "completed", "summary": "One is kept.", "filesModified": ["src/one.txt"], "errors": []}\n';;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&[], cases, 11);
    let tasks = schedule.phase_file("2.1-tasks.json");
    assert_eq!(
        tasks["waves"][0]["tasks"][0],
        json!({"id": "one", "status": "completed", "summary": "One is kept."})
    );
    // Who waits for it is told what it came to, in the input that the source has.
    let told = schedule.scratch.prompt("2.1-waves/two/easy", 1);
    for part in [
        "\"taskId\": \"two\"",
        "\"dependencyOutputs\"",
        "\"summary\": \"One is kept.\"",
        "\"maxWriteFiles\": 3",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn s4_22_a_task_that_failed_is_tried_again_and_then_asked_about() {
    let fails = r#"2.1-waves/one/easy) printf '{"taskId": "one", "status": "failed", "summary": "No table.", "filesModified": [], "error": "there is no table"}\n';;"#;
    let schedule = Schedule::runs(&["--set", "maxPerTask=1"], fails, 10);
    assert_eq!(schedule.scratch.count("2.1-waves/one/easy"), 2);
    let answers = schedule.scratch.decision(&schedule.run, "D-1")["answers"].to_string();
    assert!(answers.contains("retry") && answers.contains("skip"), "{answers}");
    // Done, and with errors, is not done.
    let both = r#"2.1-waves/one/easy) printf '{"taskId": "one", "status": "completed", "summary": "Done.", "errors": ["half of it"]}\n';;"#;
    let schedule = Schedule::runs(&["--set", "maxPerTask=0"], both, 10);
    assert_ne!(schedule.scratch.step_state(&schedule.run, "2.1-waves/one/easy"), "passed");
}

#[test]
fn s4_16_a_task_agent_that_lacks_files_asks_for_them_by_name() {
    let asks = r#"2.1-waves/one/easy) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then printf '{"taskId": "one", "status": "needs_context", "summary": "Where is the table made?", "requestedFiles": ["db/schema.sql"]}\n'; else standard; fi;;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&[], asks, 10);
    let question = schedule.scratch.decision(&schedule.run, "D-1")["question"].as_str().unwrap().to_owned();
    assert!(
        question.contains("`db/schema.sql`") && question.contains("Where is the table made?"),
        "{question}"
    );
    schedule.answer("D-1", "in db/001.sql", 11);
    assert!(schedule.scratch.prompt("2.1-waves/one/easy", 2).contains("in db/001.sql"));
}

#[test]
fn s4_16_s4_22_a_task_that_a_person_left_out_is_none_of_those_that_are_done() {
    let cases = r#"
1.2-plan) tasks "$(task one '' easy), $(task two '"one"' easy), $(task three '' easy)";;
2.1-waves/one/easy) exit 1;;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&["--set", "maxPerTask=0"], cases, 10);
    schedule.answer("D-1", "skip", 11);
    let tasks = schedule.phase_file("2.1-tasks.json");
    assert_eq!(tasks["waves"][0]["tasks"][0], json!({"id": "one", "status": "skipped", "summary": ""}));
    assert_eq!(tasks["completedTasks"], json!(["two", "three"]), "{tasks:#}");
    assert_eq!(tasks["failedTasks"], json!(["one"]), "{tasks:#}");
    let context = schedule.state()["failure"]["context"].clone();
    assert_eq!(context["completedTasks"], json!(["two", "three"]), "{context:#}");
    // Who waited for it is told that it has to do without.
    let told = schedule.scratch.prompt("2.1-waves/two/easy", 1);
    assert!(told.contains("A person left this task out: nothing of it is there."), "{told}");
    assert_eq!(schedule.state()["waivers"][0]["step"], "2.1-waves/one/easy");
}

#[test]
fn s4_04_what_a_person_skipped_stands_in_the_state_with_the_reason() {
    let schedule =
        Schedule::runs(&["--set", "maxPerPhase=0"], "2.2-simplify) exit 1;;\n4.1-docs) brief ERROR;;", 10);
    schedule.scratch.gatewright(&["answer", &schedule.run, "D-1", "skip", "--comment", "it is simple"]);
    let state = schedule.state();
    let phases = &state["stages"]["IMPLEMENT"]["phases"];
    assert_eq!(phases["2.2"]["status"], "skipped", "{state:#}");
    assert_eq!(phases["2.3"]["status"], "completed", "{state:#}");
    assert_eq!(state["waivers"][0]["phase"], "2.2", "{state:#}");
    assert_eq!(state["waivers"][0]["step"], "2.2-simplify", "{state:#}");
    assert!(!state["waivers"][0]["reason"].as_str().unwrap().is_empty(), "{state:#}");
    assert_eq!(phases["2.2"]["skipReason"], state["waivers"][0]["reason"]);
    // A review that a person let pass is completed, and said to be a waiver.
    let schedule = Schedule::runs(
        &["--set", "maxRetries=0"],
        "1.3-plan-review) objects HIGH;;\n2.2-simplify) brief ERROR;;",
        10,
    );
    schedule.scratch.gatewright(&["answer", &schedule.run, "D-1", "skip"]);
    let state = schedule.state();
    assert_eq!(state["stages"]["PLAN"]["phases"]["1.3"]["status"], "completed", "{state:#}");
    assert_eq!(state["waivers"][0]["phase"], "1.3", "{state:#}");
}

#[test]
fn s4_19_reviews_as_their_prompts_define_them_are_understood() {
    let plan = r#"{"status": "needs_revision", "issues": [{"severity": "MEDIUM", "location": "Task 2", "issue": "no test", "suggestion": "add one"}], "summary": "Nearly.", "filesReviewed": ["1.2-plan.md"]}"#;
    let last = r#"{"status": "approved", "overallQuality": "acceptable", "issues": [], "metrics": {"tasksCompleted": 1, "filesModified": 2, "linesChanged": 30, "testsPassed": 12}, "summary": "Ready.", "readyForCommit": true}"#;
    let cases = format!(
        "1.3-plan-review) if [ $GATEWRIGHT_ROUND = 1 ]; then judge phases/1.3-plan-review.json '{plan}'; else content; fi;;\n4.2-final-review) judge phases/4.2-final-review.json '{last}';;"
    );
    let schedule = Schedule::runs(&["--set", "gitWorkflow=none"], &cases, 0);
    assert_eq!(schedule.scratch.count("1.3-bug-fixer"), 1);
    let told = schedule.scratch.prompt("1.3-bug-fixer", 1);
    assert!(told.contains("no test") && told.contains("Task 2") && told.contains("add one"), "{told}");
    assert_eq!(schedule.phase_file("4.2-final-review.json")["metrics"]["testsPassed"], 12);
}

#[test]
fn s4_19_reviewers_are_asked_in_their_own_words_and_told_what_they_found_before() {
    let once =
        "2.3-impl-review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then objects HIGH 'no lock'; else content; fi;;";
    let schedule = Schedule::runs(&[], once, 0);
    let form = |step: &str| {
        let prompt = schedule.scratch.prompt(step, 1);
        prompt.split("## Output\n").nth(1).unwrap().to_owned()
    };
    for step in ["1.3-plan-review", "2.3-impl-review", "3.3-test-review"] {
        assert!(form(step).contains("\"status\": \"approved | needs_revision\""), "{}", form(step));
        assert!(form(step).contains("\"severity\": \"HIGH | MEDIUM | LOW\""), "{}", form(step));
        assert!(form(step).contains("\"issue\": \"…\", \"suggestion\""), "{}", form(step));
    }
    assert!(form("4.2-final-review").contains("\"status\": \"approved | blocked\""));
    let again = schedule.scratch.prompt("2.3-impl-review", 2);
    assert!(
        again.contains("in the round before") && again.contains("- [HIGH] src/a.txt:1: no lock"),
        "{again}"
    );
    assert!(!schedule.scratch.prompt("2.3-impl-review", 1).contains("in the round before"));
}
