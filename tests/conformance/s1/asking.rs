//! Questions at any time: ASK_USER.

use super::session::Session;

const ASKS: &str = r#"*/code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then say NEEDS_INFO "Two things are unclear." "" ',"questions":[{"question":"Which store?","options":["table","file"]},{"question":"For how long?"}]'; else fine; fi;;"#;

#[test]
fn s1_44_s1_46_a_question_waits_without_ending_the_session_and_returns_to_its_state() {
    let session = Session::built("per-batch", "task T-001", ASKS, 10);
    assert_eq!(session.current_state(), "ASK_USER");
    assert_eq!(session.decision("UD-1")["state_context"], "IMPLEMENT_LOOP");
    session.answer("UD-1", "table", 10);
    session.answer("UD-2", "30 days", 0);
    assert_eq!(session.seen("tasks/T-001/code", 2)["current_state"], "IMPLEMENT_LOOP");
    assert_eq!(session.current_state(), "DONE");
    let prompt = session.scratch.prompt("tasks/T-001/code", 2);
    assert!(prompt.contains("30 days") && prompt.contains("table"), "{prompt}");
}

#[test]
fn s1_45_s1_47_pending_questions_are_numbered_on_disk_and_the_only_ones_asked_after_a_resume() {
    let session = Session::built("per-batch", "task T-001", ASKS, 10);
    for (id, question) in [("UD-1", "Which store?"), ("UD-2", "For how long?")] {
        let record = session.decision(id);
        assert_eq!((&record["status"], &record["question"]), (&"pending".into(), &question.into()));
    }
    session.answer("UD-1", "table", 10);
    session.scratch.gatewright(&["stop", &session.run]);
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    let open = session.scratch.gatewright(&["decisions", &session.run]).exits(0).out;
    assert!(open.contains("UD-2") && !open.contains("UD-1"), "{open}");
    session.answer("UD-2", "a week", 0);
    // A later question has the next number.
    let more =
        r#"docs) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then say NEEDS_INFO "Whose?" ; else report; fine; fi;;"#;
    let session = Session::built("per-batch", "task T-001", &format!("{ASKS}\n{more}"), 10);
    session.answer("UD-1", "table", 10);
    session.answer("UD-2", "a week", 10);
    assert_eq!(session.decision("UD-3")["state_context"], "RELEASE");
}

#[test]
fn s1_48_what_nobody_answers_is_cancelled_and_a_security_question_is_not() {
    let session = Session::built("per-batch", "task T-001", ASKS, 10);
    session.answer("UD-1", "table", 10);
    session
        .scratch
        .gatewright(&["answer", &session.run, "UD-2", "--cancel", "no response provided"])
        .exits(0);
    let record = session.decision("UD-2");
    assert_eq!(
        (&record["status"], &record["resolution_reason"]),
        (&"cancelled".into(), &"no response provided".into())
    );
    // The same for one that is put again and again without an answer.
    let session = Session::built("per-batch", "task T-001", ASKS, 10);
    session.answer("UD-1", "table", 10);
    let mut terminal = session.scratch.terminal(&["resume", &session.run]);
    for time in 1..=4 {
        terminal.shows("UD-2 > ", time);
        terminal.types("");
    }
    assert_eq!(terminal.exit_code(), 0);
    let record = session.decision("UD-2");
    assert_eq!(
        (&record["status"], &record["resolution_reason"]),
        (&"cancelled".into(), &"no response provided".into())
    );
    // Security's question stays open, however often nobody understands the answer.
    let session = Session::built(
        "per-batch",
        "task T-001 feat security",
        "tasks/T-001/security) finds NEEDS_DECISION medium 'a weak hash';;",
        10,
    );
    let mut terminal = session.scratch.terminal(&["resume", &session.run]);
    for time in 1..=4 {
        terminal.shows("UD-1 > ", time);
        terminal.types("whatever");
    }
    terminal.shows("UD-1 > ", 5);
    assert_eq!(session.decision("UD-1")["status"], "pending");
    terminal.types("fix-later");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn s1_49_a_mandatory_gate_is_never_cancelled_in_passing() {
    let session = Session::designed("");
    session.scratch.gatewright(&["stop", &session.run]);
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending", "resting is no answer");
    session.scratch.gatewright(&["answer", &session.run, "UD-APPROVE-DESIGN", "--cancel", "later"]).exits(11);
    assert_eq!(session.status()["blocker"]["reason"], "mandatory_user_decision_missing");
}

#[test]
fn s1_50_s1_51_an_answer_is_durable_before_its_state_is_left_and_is_not_asked_for_again() {
    let session = Session::planned("task T-001", "tasks/T-001/code) mark coding; await go; fine;;");
    let answering = session.scratch.start(&["answer", &session.run, "UD-REVIEW-STRATEGY", "per-batch"]);
    session.scratch.marked("coding");
    // The coder works: so the answer stood in the file before.
    let seen = session.seen("tasks/T-001/code", 1).to_string();
    assert!(seen.contains("\"answer\":\"per-batch\""), "{seen}");
    answering.kill();
    session.scratch.mark("go");
    session.scratch.gatewright(&["resume", &session.run]).exits(0);
    assert_eq!(session.scratch.events_of(&session.run, "decision.opened").len(), 2, "nothing is asked twice");
}

/// What cannot be written after three tries ends in BLOCKED, which the files that can be written say; nothing is asked twice.
#[test]
fn s1_21_s1_50_a_session_whose_files_cannot_be_written_is_blocked_and_goes_on_when_they_can() {
    let session = Session::planned("task T-001", "");
    let tasks = session.scratch.run_dir(&session.run).join("tasks.yaml");
    std::fs::remove_file(&tasks).unwrap();
    std::fs::create_dir_all(tasks.join("in the way")).unwrap();
    session.answer("UD-REVIEW-STRATEGY", "per-batch", 11);
    let status = session.status();
    assert_eq!(status["current_state"], "BLOCKED", "{status:#}");
    let blocker = &status["blocker"];
    assert!(blocker["message"].as_str().unwrap().contains("tasks.yaml: cannot write it"), "{blocker}");
    assert_eq!(session.decision("UD-REVIEW-STRATEGY")["answer"], "per-batch");
    assert_eq!(session.scratch.count("tasks/T-001/code"), 0);
    std::fs::remove_dir_all(&tasks).unwrap();
    session.scratch.gatewright(&["resume", &session.run]).exits(0);
    assert_eq!(session.current_state(), "DONE");
    assert_eq!(
        session.scratch.events_of(&session.run, "decision.answered").len(),
        2,
        "both gates, once each"
    );
}
