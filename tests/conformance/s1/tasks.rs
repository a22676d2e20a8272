//! The loop over tasks: order, judges, repairs, final reviews.

use super::session::Session;

const TWO: &str = "task T-001; task T-002 feat none '' T-001";

#[test]
fn s1_32_s1_36_a_task_starts_when_its_dependencies_are_done_and_one_at_a_time() {
    let session =
        Session::built("single-final", "task T-002 feat none '' T-001; task T-001; task T-003", "", 0);
    let called = session.scratch.called();
    let place = |step: &str| called.iter().position(|one| one == step).unwrap();
    assert!(place("tasks/T-001/code") < place("tasks/T-002/code"), "{called:?}");
    assert_eq!(session.scratch.most_at_once(&session.run, |step| step.ends_with("/code")), 1);
    let first_judge = called.iter().position(|step| step.starts_with("combined/")).unwrap();
    assert!(
        called[first_judge..].iter().all(|step| !step.ends_with("/code")),
        "nobody judges before all are implemented: {called:?}"
    );
    let judges = |step: &String| step.starts_with("tasks/") && !step.ends_with("/code");
    assert!(!called.iter().any(judges), "{called:?}");
}

#[test]
fn s1_33_who_judges_a_task_depends_on_the_task() {
    let tasks = "task T-001; task T-002 docs; task T-003 chore none 'cmd: true'; task T-004 feat security; task T-005 feat none '' '' src/auth/login.txt";
    let session = Session::built("per-batch", tasks, "", 0);
    let of = |task: &str| -> Vec<String> {
        let mine = format!("tasks/{task}/");
        let called = session.scratch.called();
        called.iter().filter_map(|step| step.strip_prefix(&mine)).map(str::to_owned).collect()
    };
    assert_eq!(of("T-001"), ["code", "review", "qa"]);
    assert_eq!(of("T-002"), ["code", "review"], "documents without a command");
    assert_eq!(of("T-003"), ["code", "review", "qa"], "a chore with a command");
    assert_eq!(of("T-004"), ["code", "review", "qa", "security"], "its flag");
    assert_eq!(of("T-005"), ["code", "review", "qa", "security"], "its path");
}

#[test]
fn s1_34_s1_35_a_task_is_implemented_by_its_coder_and_completed_by_its_gates() {
    let cases =
        "tasks/T-001/qa) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED major 'no test'; else fine; fi;;";
    let session = Session::built("per-batch", TWO, cases, 0);
    let of = |step: &str, attempt: u32| session.seen_tasks(step, attempt);
    assert!(of("tasks/T-001/code", 1).contains("status: in-progress"));
    assert!(of("tasks/T-001/review", 1).contains("status: implemented"));
    assert!(of("tasks/T-001/qa", 2).contains("status: implemented"), "not before QA is content");
    assert!(of("tasks/T-002/code", 1).contains("status: completed"), "all of its gates have passed");
    let last = session.scratch.published(&session.run, "tasks.yaml").unwrap();
    assert_eq!(last.matches("status: completed").count(), 2, "{last}");
    assert!(!session.scratch.published(&session.run, "status.json").unwrap().contains("\"completed\": true"));
}

#[test]
fn s1_37_s1_38_one_combined_pass_judges_everything_and_is_repeated_as_a_whole() {
    let cases =
        "combined/security) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED high hole; else fine; fi;;";
    let session = Session::built("single-final", TWO, cases, 0);
    let scratch = &session.scratch;
    for judge in ["combined/reviewer", "combined/qa", "combined/security"] {
        assert_eq!(scratch.count(judge), 2, "{judge}");
        assert_eq!(session.input(judge, 1)["task"]["id"], "meta");
    }
    assert_eq!(scratch.count("combined-fix-security"), 1);
    assert_eq!(scratch.count("final-review"), 0, "there is no second one");
    assert_eq!(session.seen("combined-fix-security", 1)["current_state"], "FIX_SECURITY");
    assert!(session.seen_tasks("combined/reviewer", 1).matches("status: implemented").count() == 2);
    assert_eq!(session.status()["retry_counts"]["meta"]["FIX_SECURITY"], 1);
    let last = scratch.published(&session.run, "tasks.yaml").unwrap();
    assert_eq!(last.matches("status: completed").count(), 2);
}

#[test]
fn s1_40_a_task_review_is_selective_and_a_final_review_reads_everything() {
    let session = Session::built("per-batch", "task T-001", "", 0);
    let (task, all) =
        (session.scratch.prompt("tasks/T-001/review", 1), session.scratch.prompt("final-review", 1));
    assert!(task.contains("Read its files in full") && task.contains("follow only"), "{task}");
    assert!(
        all.contains("that was not deleted in full") && all.contains("deleted ones by their diff"),
        "{all}"
    );
    assert!(all.contains("does anything still refer to them"), "{all}");
}

#[test]
fn s1_41_s1_73_all_tasks_together_are_reviewed_before_integration() {
    let cases = "final-review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED blocker 'two names for one thing'; else fine; fi;;";
    let session = Session::built("per-batch", TWO, cases, 0);
    let called = session.scratch.called();
    let place = |step: &str| called.iter().position(|one| one == step).unwrap();
    assert!(place("tasks/T-002/qa") < place("final-review") && place("final-review") < place("integrate"));
    assert_eq!(session.scratch.count("final-fix-review"), 1);
    assert_eq!(session.seen("final-fix-review", 1)["current_state"], "FIX_REVIEW");
    let task = &session.input("final-review", 1)["task"];
    assert_eq!(
        (&task["id"], &task["goal"]),
        (&"meta".into(), &"Cross-task final review of all session changes".into())
    );
    let prompt = session.scratch.prompt("final-review", 1);
    for word in ["interface consistency", "duplicated logic", "conflicting assumptions", "regressions"] {
        assert!(prompt.contains(word), "{word}");
    }
    let single = Session::built("single-final", "task T-001", "", 0);
    let goal = &single.input("combined/reviewer", 1)["task"]["goal"];
    assert_eq!(goal, "Single-final review of all session changes");
}

#[test]
fn s1_56_each_judge_has_its_own_repair() {
    let cases = "
tasks/T-001/review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED blocker wrong; else fine; fi;;
tasks/T-001/qa) case $GATEWRIGHT_ATTEMPT in 1) finds BLOCKED major red;; 2) finds BLOCKED major 'bad test' ',\"route\":\"tests\"';; *) fine;; esac;;
tasks/T-001/security) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED critical hole; else fine; fi;;";
    let session = Session::built("per-batch", "task T-001 feat security", cases, 0);
    let called = session.scratch.called();
    let mine: Vec<&str> = called.iter().filter_map(|step| step.strip_prefix("tasks/T-001/")).collect();
    assert_eq!(
        mine,
        [
            "code",
            "review",
            "fix-review",
            "review",
            "qa",
            "fix-tests",
            "qa",
            "fix-tests-qa",
            "qa",
            "security",
            "fix-security",
            "security"
        ]
    );
    let state = |step: &str| session.seen(&format!("tasks/T-001/{step}"), 1)["current_state"].clone();
    assert_eq!(state("fix-review"), "FIX_REVIEW");
    assert_eq!(state("fix-tests"), "FIX_TESTS");
    assert_eq!(state("fix-tests-qa"), "FIX_TESTS");
    assert_eq!(state("fix-security"), "FIX_SECURITY");
    let counts = session.status()["retry_counts"]["T-001"].clone();
    assert_eq!(
        counts,
        serde_json::json!({"FIX_REVIEW": 1, "FIX_TESTS": 2, "FIX_SECURITY": 1, "FIX_BUILD": 0})
    );
}

#[test]
fn s1_57_s1_58_three_repairs_then_a_person_chooses_among_four_ways() {
    let cases = "tasks/T-001/review) finds BLOCKED blocker 'still wrong';;\ntasks/T-001/fix-review) fine 'Tried the other store.';;";
    let session = Session::built("per-batch", "task T-001", cases, 10);
    assert_eq!(session.scratch.count("tasks/T-001/fix-review"), 3);
    assert_eq!(session.status()["retry_counts"]["T-001"]["FIX_REVIEW"], 3);
    assert_eq!(session.current_state(), "ASK_USER");
    let asked = session.scratch.decision(&session.run, "UD-1");
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("still wrong") && question.contains("Tried the other store."), "{question}");
    let answers = asked["answers"].to_string();
    for way in ["different-approach", "accept-with-known-issues", "simplify-scope", "guidance"] {
        assert!(answers.contains(way), "{way}: {answers}");
    }
    session.answer("UD-1", "guidance: use the table", 10);
    assert!(session.scratch.prompt("tasks/T-001/fix-review", 4).contains("use the table"));
    session.scratch.gatewright(&["answer", &session.run, "UD-2", "accept-with-known-issues"]).exits(0);
    let known = session.status()["known_issues"].to_string();
    assert!(known.contains("accept-with-known-issues") && known.contains("still wrong"), "{known}");
    // J-21: who judges the whole is told what was let pass in a task, and so is whoever reads the report.
    let prompt = session.scratch.prompt("final-review", 1);
    let told = prompt.split("## Known Issues\n").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(told.contains("tasks/T-001/review") && told.contains("still wrong"), "{told}");
    assert!(session.scratch.prompt("docs", 1).contains("known-issues.md"));
    let report = session.scratch.published(&session.run, "report.md").unwrap();
    assert!(report.split("## Known Issues").nth(1).unwrap().contains("still wrong"), "{report}");
}

#[test]
fn s1_57_every_kind_of_repair_is_made_three_times() {
    let four = |session: &Session, task: &str, kind: &str, judge: &str, repair: &str, context: &str| {
        assert_eq!(session.scratch.count(judge), 4, "{judge}");
        assert_eq!(session.scratch.count(repair), 3, "{repair}");
        assert_eq!(session.status()["retry_counts"][task][kind], 3, "{kind}");
        assert_eq!(session.decision("UD-1")["state_context"], context);
    };
    let qa = Session::built("per-batch", "task T-001", "tasks/T-001/qa) finds BLOCKED major red;;", 10);
    four(&qa, "T-001", "FIX_TESTS", "tasks/T-001/qa", "tasks/T-001/fix-tests", "FIX_TESTS");
    let audit = "tasks/T-001/security) finds BLOCKED critical hole;;";
    let security = Session::built("per-batch", "task T-001 feat security", audit, 10);
    four(
        &security,
        "T-001",
        "FIX_SECURITY",
        "tasks/T-001/security",
        "tasks/T-001/fix-security",
        "FIX_SECURITY",
    );
    // In one pass over everything it is the one who objects whose repairs are counted.
    for (judge, severity, kind, repair) in [
        ("reviewer", "blocker", "FIX_REVIEW", "combined-fix-review"),
        ("qa", "major", "FIX_TESTS", "combined-fix-tests"),
        ("security", "high", "FIX_SECURITY", "combined-fix-security"),
    ] {
        let cases = format!("combined/{judge}) finds BLOCKED {severity} 'still wrong';;");
        let session = Session::built("single-final", "task T-001", &cases, 10);
        four(&session, "meta", kind, &format!("combined/{judge}"), repair, kind);
    }
}

#[test]
fn s1_56_s1_68_while_it_judges_qa_changes_no_test_and_wrong_tests_are_its_own_to_repair() {
    let meddles = "mkdir -p tests; echo x > tests/a.test.txt; fine;;";
    for (strategy, tasks, judge) in
        [("single-final", "task T-001", "combined/qa"), ("per-batch", "task T-001", "tasks/T-001/qa")]
    {
        let session = Session::built(strategy, tasks, &format!("{judge}) {meddles}"), 11);
        let failure = session.scratch.step(&session.run, judge)["failure"].to_string();
        assert!(failure.contains("tests/a.test.txt"), "{judge}: {failure}");
    }
    // Sent to repair a test it may, and nobody else is.
    let wrong = |judge: &str| {
        format!(
            "{judge}) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds BLOCKED major 'bad test' ',\"route\":\"tests\"'; else fine; fi;;
             *-fix-tests-qa) mkdir -p tests; echo x > tests/a.test.txt; fine;;"
        )
    };
    for (strategy, tasks, judge, repair) in [
        ("single-final", "task T-001", "combined/qa", "combined-fix-tests-qa"),
        ("per-batch", "task T-001 docs", "final-qa", "final-fix-tests-qa"),
    ] {
        let session = Session::built(strategy, tasks, &wrong(judge), 0);
        let repairs: Vec<String> =
            session.scratch.called().into_iter().filter(|step| step.contains("-fix-")).collect();
        assert_eq!(repairs, [repair]);
        assert_eq!(session.seen(repair, 1)["current_state"], "FIX_TESTS");
        assert_eq!(session.status()["retry_counts"]["meta"]["FIX_TESTS"], 1);
    }
}

#[test]
fn s1_74_a_person_says_which_notes_are_mended_and_the_rest_is_known() {
    let cases = "tasks/T-001/review) case $GATEWRIGHT_ATTEMPT in 1) say OK 'PASS WITH NOTES' '\"review_comments\":[{\"severity\":\"minor\",\"category\":\"Quality\",\"file\":\"a\",\"message\":\"a longer name\"},{\"severity\":\"nit\",\"category\":\"Quality\",\"file\":\"a\",\"message\":\"a blank\"}]';; *) finds OK nit 'a blank';; esac;;";
    let session = Session::built("per-batch", "task T-001", cases, 10);
    assert_eq!(session.current_state(), "ASK_USER");
    let question = session.decision("UD-1")["question"].as_str().unwrap().to_owned();
    assert!(
        question.contains("1. [low] a longer name") && question.contains("2. [note] a blank"),
        "{question}"
    );
    session.answer("UD-1", "fix: the first", 10);
    assert!(session.scratch.prompt("tasks/T-001/fix-review", 1).contains("the first"));
    assert_eq!(session.scratch.count("tasks/T-001/review"), 2, "reviewed again");
    session.answer("UD-2", "keep", 0);
    assert!(session.status()["known_issues"].to_string().contains("a blank"));
}

#[test]
fn s1_74_single_notes_are_chosen_by_number_and_the_rest_is_known_without_another_question() {
    let notes = r#"'"review_comments":[{"severity":"minor","category":"Quality","file":"a","message":"a longer name"},{"severity":"nit","category":"Quality","file":"a","message":"a blank"},{"severity":"nit","category":"Logic","file":"a","message":"a comma"}]'"#;
    let left =
        r#"'"review_comments":[{"severity":"nit","category":"Quality","file":"a","message":"a blank"}]'"#;
    let cases = format!(
        "tasks/T-001/review) case $GATEWRIGHT_ATTEMPT in 1) say OK 'PASS WITH NOTES' {notes};; *) say OK 'PASS WITH NOTES' {left};; esac;;"
    );
    let session = Session::built("per-batch", "task T-001", &cases, 10);
    // What is not there cannot be chosen, and nobody keeps a part of what is kept as a whole.
    session.answer("UD-1", "fix 4", 4);
    session.answer("UD-1", "keep 1", 4);
    session.answer("UD-1", "fix 1, 3", 0);
    let prompt = session.scratch.prompt("tasks/T-001/fix-review", 1);
    let focus = prompt.split("## Focus On\n").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(focus.contains("a longer name") && focus.contains("a comma"), "{focus}");
    assert!(!focus.contains("a blank"), "it was not chosen: {focus}");
    assert_eq!(session.scratch.count("tasks/T-001/review"), 2, "what was chosen is reviewed again");
    let known = session.status()["known_issues"].to_string();
    assert!(known.contains("a blank") && !known.contains("a comma"), "{known}");
    assert_eq!(session.status()["user_decisions"].as_array().unwrap().len(), 3, "nobody is asked twice");
}

#[test]
fn s1_66_what_the_checklist_found_and_no_comment_names_does_not_pass() {
    let says = |comments: &str| {
        format!(
            r#"tasks/T-001/review) say OK PASS '"review_comments":[{comments}],"checklist_summary":{{"security":"OK","architecture":"OK","logic":"issues_found","performance":"N/A","quality":"OK","devils_advocate":"OK"}}';;"#
        )
    };
    let session = Session::built("per-batch", "task T-001", &says(""), 10);
    assert_eq!(session.scratch.count("tasks/T-001/review"), 4, "sent back as often as the loop allows");
    assert_eq!(session.current_state(), "ASK_USER");
    // A comment of another kind does not name it; one of its own does, and is a note.
    let other = r#"{"severity":"nit","category":"Quality","file":"a","line":1,"message":"a name","suggested_fix":"b"}"#;
    let session = Session::built("per-batch", "task T-001", &says(other), 10);
    assert_eq!(session.scratch.count("tasks/T-001/fix-review"), 3);
    let own = other.replace("Quality", "Logic");
    let session = Session::built("per-batch", "task T-001", &says(&own), 10);
    session.answer("UD-1", "keep", 0);
}

#[test]
fn s1_52_s1_75_medium_is_a_persons_decision_even_beside_ok() {
    for status in ["OK", "NEEDS_DECISION"] {
        let cases = format!("tasks/T-001/security) finds {status} medium 'a weak hash';;");
        let session = Session::built("per-batch", "task T-001 feat security", &cases, 10);
        assert_eq!(session.current_state(), "ASK_USER", "{status}");
        let asked = session.scratch.decision(&session.run, "UD-1");
        for way in ["fix-now", "fix-later", "accept-risk"] {
            assert!(asked["answers"].to_string().contains(way), "{way}");
        }
        assert_eq!(session.scratch.count("tasks/T-001/fix-security"), 0);
        session.answer("UD-1", "accept-risk", 0);
        assert!(session.status()["known_issues"].to_string().contains("a weak hash"));
    }
}
