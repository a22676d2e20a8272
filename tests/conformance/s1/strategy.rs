//! The plan and the review strategy: UD-REVIEW-STRATEGY.

use super::session::Session;

#[test]
fn s1_24_a_task_without_dependencies_checks_or_done_when_is_no_plan() {
    for missing in ["depends_on", "acceptance_checks", "done_when"] {
        let cases = format!(
            "plan) plan; sed -i 's/{missing}: \\[[^]]*\\],\\{{0,1\\}} \\{{0,1\\}}//' \"$GATEWRIGHT_OUT/plan/tasks.yaml\"; fine;;"
        );
        let session = Session::designed(&cases);
        session.answer("UD-APPROVE-DESIGN", "approved", 11);
        let (_, message) = session.scratch.blocked_by(&session.run);
        assert!(message.contains(missing), "{missing}: {message}");
        assert_ne!(session.current_state(), "REVIEW_STRATEGY");
    }
}

#[test]
fn s1_25_s1_27_the_strategy_is_asked_after_the_plan_in_a_state_of_its_own() {
    let session = Session::planned("task T-001", "");
    assert_eq!(session.current_state(), "REVIEW_STRATEGY");
    assert_eq!(session.decision("UD-REVIEW-STRATEGY")["status"], "pending");
    assert_eq!(session.scratch.count("tasks/T-001/code"), 0);
    session.answer("UD-REVIEW-STRATEGY", "per batch", 0);
    assert_eq!(session.decision("UD-REVIEW-STRATEGY")["answer"], "per-batch", "only the canonical word");
}

#[test]
fn s1_28_anything_else_is_asked_again_and_putting_it_off_blocks() {
    let session = Session::planned("task T-001", "");
    for words in ["both", "later", ""] {
        session.answer("UD-REVIEW-STRATEGY", words, 4);
    }
    assert_eq!(session.scratch.count("tasks/T-001/code"), 0);
    session
        .scratch
        .gatewright(&["answer", &session.run, "UD-REVIEW-STRATEGY", "--cancel", "undecided"])
        .exits(11);
    assert_eq!(session.status()["blocker"]["reason"], "mandatory_user_decision_missing");
}

#[test]
fn s1_29_s1_30_the_strategy_is_read_from_the_record_whatever_stands_in_the_file() {
    let session = Session::planned("task T-001", "tasks/T-001/code) mark coding; await go; fine;;");
    let engine = session.scratch.start(&["answer", &session.run, "UD-REVIEW-STRATEGY", "single-final"]);
    session.scratch.marked("coding");
    assert_eq!(
        session.decision("UD-REVIEW-STRATEGY")["answer"],
        "single-final",
        "written before anything starts"
    );
    engine.kill();
    let path = session.scratch.run_dir(&session.run).join("status.json");
    let forged = std::fs::read_to_string(&path).unwrap().replace("single-final", "per-batch");
    std::fs::write(&path, forged).unwrap();
    session.scratch.mark("go");
    session.scratch.gatewright(&["resume", &session.run]).exits(0);
    assert_eq!(session.scratch.count("tasks/T-001/review"), 0);
    assert_eq!(session.scratch.count("combined/reviewer"), 1);
}

#[test]
fn s1_43_a_session_that_rests_at_the_strategy_goes_on_there() {
    let session = Session::planned("task T-001", "");
    session.scratch.gatewright(&["stop", &session.run]);
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.current_state(), "REVIEW_STRATEGY");
    assert_eq!(session.scratch.count("plan"), 1, "nothing before it runs again");
    session.answer("UD-REVIEW-STRATEGY", "single-final", 0);
}

#[test]
fn s1_26_the_recommendation_follows_the_number_the_width_and_the_risk_of_the_tasks() {
    let few = "task T-001; task T-002 feat none '' T-001";
    let many = "for n in 1 2 3 4 5; do task T-00$n; done";
    let wide = "task T-001; task T-002 feat none '' T-001; task T-003 feat none '' T-001";
    let deep = "task T-001; task T-002; task T-003 feat none '' 'T-001, T-002'";
    let risky = "task T-001 feat security";
    let cases = [
        (few, 2, "single-final"),
        (many, 5, "per-batch"),
        (wide, 3, "per-batch"),
        (deep, 3, "per-batch"),
        (risky, 1, "per-batch"),
    ];
    for (tasks, count, recommended) in cases {
        let session = Session::planned(tasks, "");
        let record = session.decision("UD-REVIEW-STRATEGY");
        let text = record["question"].as_str().unwrap();
        assert!(text.contains(&format!("Tasks: {count}.")), "{text}");
        assert!(text.contains(&format!("Recommended: {recommended}")), "{tasks}: {text}");
        for word in ["per-batch:", "single-final:", "Title of T-001"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
