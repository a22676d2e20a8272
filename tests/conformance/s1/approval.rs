//! The approval of the design: UD-APPROVE-DESIGN.

use super::session::Session;

#[test]
fn s1_11_s1_14_the_gate_is_entered_by_itself_with_its_own_state_and_a_pending_record() {
    let session = Session::designed("");
    assert_eq!(session.current_state(), "APPROVE_DESIGN", "never ASK_USER");
    let asked = session.decision("UD-APPROVE-DESIGN");
    assert_eq!((&asked["status"], &asked["state_context"]), (&"pending".into(), &"APPROVE_DESIGN".into()));
    assert!(asked["answer"].is_null() && asked["resolved_at"].is_null());
}

#[test]
fn s1_12_what_is_to_be_approved_is_shown_with_the_question() {
    let session = Session::designed("");
    let decision = session.scratch.decision(&session.run, "UD-APPROVE-DESIGN");
    let shown: Vec<&str> =
        decision["show"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(shown.contains(&"spec.md") && shown.contains(&"architecture.md"), "{shown:?}");
    let question = decision["question"].as_str().unwrap();
    for word in ["acceptance criteria", "assumptions", "modules", "Approve it as it is", "what has to change"]
    {
        assert!(question.contains(word), "{word}: {question}");
    }
    // A summary of both, not their names alone.
    let said = "spec.md:\n- Goals: One goal\n- Non-Goals: Another\n- Acceptance Criteria: AC-001: it holds\n- Assumptions: Cookies\n\
        architecture.md:\n- Modules: store\n- Data Flow: In and out.\n- Risks: old data";
    assert!(question.contains(said), "{question}");
    assert!(!question.contains("design-specs/"), "there is none: {question}");
    let session = Session::designed("intake) spec; acceptance; triage false true; fine;;");
    let question = session.decision("UD-APPROVE-DESIGN")["question"].as_str().unwrap().to_owned();
    assert!(question.contains("design-specs/design-spec-remember-me.md:\n- Layout: "), "{question}");
    // Decisions that have a page of their own are part of it.
    let decided = r#"architecture) architecture; mkdir -p "$GATEWRIGHT_OUT/adr"
  printf '# ADR-001\n## Context\nTwo stores.\n## Decision\nThe table.\n## Alternatives\nA file.\n## Consequences\nNone.\n' > "$GATEWRIGHT_OUT/adr/ADR-001.md"; fine;;"#;
    let question = Session::designed(decided).decision("UD-APPROVE-DESIGN")["question"].to_string();
    assert!(question.contains("- Decision (adr/ADR-001.md): The table."), "{question}");
}

#[test]
fn s1_12_an_approval_is_bound_to_the_design_of_what_people_see_as_well() {
    let session = Session::designed("intake) spec; acceptance; triage false true; fine;;");
    let shown = |session: &Session| {
        let decision = session.scratch.decision(&session.run, "UD-APPROVE-DESIGN");
        let shown = decision["show"].as_array().unwrap().clone();
        shown.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let name = "design-specs/design-spec-remember-me.md";
    assert_eq!(shown(&session), ["spec.md", "architecture.md", name]);
    // Where nobody designed anything, nothing more is shown.
    assert_eq!(shown(&Session::designed("")), ["spec.md", "architecture.md"]);
    // What was approved is what was shown: an edit meanwhile is a question of its own, and the approval is put anew.
    let path = session.scratch.run_dir(&session.run).join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\nAnd a button.\n")).unwrap();
    session.answer("UD-APPROVE-DESIGN", "approved", 4);
    assert_eq!(session.scratch.count("plan"), 0);
    let open = session.scratch.gatewright(&["decisions", &session.run, "--json"]).exits(0).out;
    assert!(open.contains("changed by hand"), "{open}");
}

#[test]
fn s1_13_s1_15_nothing_is_planned_without_the_exact_approval() {
    let session = Session::designed("");
    for words in ["okay", "approved but rename it", "hm"] {
        session.answer("UD-APPROVE-DESIGN", words, 4);
        assert_eq!(session.scratch.count("plan"), 0, "{words}");
    }
    session.answer("UD-APPROVE-DESIGN", "go ahead", 10);
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["answer"], "approved");
    assert_eq!(session.scratch.count("plan"), 1);
}

#[test]
fn s1_16_a_change_request_is_kept_in_the_history_and_goes_to_the_right_role() {
    let session = Session::designed("");
    let ran = [
        "answer",
        &session.run,
        "UD-APPROVE-DESIGN",
        "changes-requested: say \"who\"",
        "--route",
        "SpecAgent",
    ];
    session.scratch.gatewright(&ran).exits(10);
    session.answer("UD-APPROVE-DESIGN", "changes-requested: fewer modules", 10);
    assert_eq!(
        session.scratch.called(),
        ["intake", "architecture", "intake", "architecture", "architecture"]
    );
    let history = session.scratch.published(&session.run, "approve-design-history.jsonl").unwrap();
    let lines: Vec<serde_json::Value> =
        history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<&str> = lines.iter().map(|line| line["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["changes-requested: say \"who\"", "changes-requested: fewer modules"]);
    assert!(lines.iter().all(|line| line["decision_id"] == "UD-APPROVE-DESIGN"
        && line["state_context"] == "APPROVE_DESIGN"
        && line["at"].is_string()));
    let status = session.status();
    let records = status["user_decisions"].as_array().unwrap();
    assert_eq!(records.len(), 1, "one entry, updated in place: {status:#}");
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending");
}

#[test]
fn s1_16_s1_17_a_correction_goes_only_to_somebody_who_has_a_part_in_the_session() {
    let route = |session: &Session, to: &str, code: i32| {
        let words =
            ["answer", &session.run, "UD-APPROVE-DESIGN", "changes-requested: other colours", "--route", to];
        session.scratch.gatewright(&words).exits(code)
    };
    // Nobody designs anything here: the correction would be nobody's, and count as made.
    let session = Session::designed("");
    let question = session.decision("UD-APPROVE-DESIGN")["question"].as_str().unwrap().to_owned();
    assert!(question.contains("(SpecAgent, Architect)"), "{question}");
    let refused = route(&session, "Designer", 4).err;
    assert!(
        refused.contains("no route to `Designer`") && refused.contains("Architect, SpecAgent"),
        "{refused}"
    );
    assert_eq!(session.scratch.called(), ["intake", "architecture"]);
    assert_eq!(session.status()["gate_tracking"]["APPROVE_DESIGN"]["correction_status"], "none");
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending");
    // Where there is a Designer, it is one of those who are named, and the last one who was sent is on record.
    let session = Session::designed("intake) spec; acceptance; triage false true; fine;;");
    let question = session.decision("UD-APPROVE-DESIGN")["question"].as_str().unwrap().to_owned();
    assert!(question.contains("(SpecAgent, Architect, Designer)"), "{question}");
    for (to, agent) in [("Architect", "Architect"), ("Designer", "Designer")] {
        route(&session, to, 10);
        let gate = &session.status()["gate_tracking"]["APPROVE_DESIGN"];
        assert_eq!(gate["correction_status"], "completed", "{gate:#}");
        assert_eq!(gate["last_correction_dispatch"]["agent"], agent, "{gate:#}");
    }
    assert_eq!(
        session.scratch.called(),
        ["intake", "architecture", "design", "architecture", "design", "design"]
    );
}

#[test]
fn s1_17_a_correction_that_nobody_has_begun_is_queued_on_disk() {
    let session = Session::designed("");
    session.scratch.gatewright(&["stop", &session.run]);
    session.answer("UD-APPROVE-DESIGN", "changes-requested: shorter", 12);
    let gate = session.status()["gate_tracking"]["APPROVE_DESIGN"].clone();
    assert_eq!(gate["correction_status"], "queued", "{gate:#}");
    assert_eq!(gate["last_correction_dispatch"]["agent"], "Architect", "{gate:#}");
    assert_eq!(session.scratch.count("architecture"), 1);
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.scratch.count("architecture"), 2);
    assert_eq!(session.status()["gate_tracking"]["APPROVE_DESIGN"]["correction_status"], "completed");
}

#[test]
fn s1_17_s1_42_a_correction_is_dispatched_once_and_its_status_is_on_disk() {
    let slow = "architecture) if [ $GATEWRIGHT_ROUND = 2 ]; then mark correcting; await go; fi; architecture; fine;;";
    let session = Session::designed(slow);
    assert_eq!(session.status()["gate_tracking"]["APPROVE_DESIGN"]["correction_status"], "none");
    let answering =
        session.scratch.start(&["answer", &session.run, "UD-APPROVE-DESIGN", "changes-requested: shorter"]);
    session.scratch.marked("correcting");
    answering.kill();
    let seen = session.seen("architecture", 2);
    assert_eq!(seen["current_state"], "APPROVE_DESIGN");
    assert_eq!(seen["gate_tracking"]["APPROVE_DESIGN"]["correction_status"], "dispatched");
    assert_eq!(seen["gate_tracking"]["APPROVE_DESIGN"]["last_correction_dispatch"]["agent"], "Architect");
    session.scratch.mark("go");
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.scratch.called(), ["intake", "architecture", "architecture"], "not dispatched twice");
    assert_eq!(session.status()["gate_tracking"]["APPROVE_DESIGN"]["correction_status"], "completed");
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending", "asked again");
}

#[test]
fn s1_18_asked_again_three_times_in_vain_blocks_and_a_resume_counts_anew() {
    let session = Session::designed("");
    let mut terminal = session.scratch.terminal(&["resume", &session.run]);
    for time in 1..=4 {
        terminal.shows("UD-APPROVE-DESIGN > ", time);
        terminal.types("perhaps");
    }
    assert_eq!(terminal.exit_code(), 11);
    assert_eq!(session.current_state(), "BLOCKED");
    assert_eq!(session.status()["blocker"]["reason"], "mandatory_user_decision_missing");
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.current_state(), "APPROVE_DESIGN", "asked anew, with as many tries");
}

#[test]
fn s1_19_to_put_the_approval_off_blocks_with_the_reason() {
    let session = Session::designed("");
    session
        .scratch
        .gatewright(&["answer", &session.run, "UD-APPROVE-DESIGN", "--cancel", "not this year"])
        .exits(11);
    let record = session.decision("UD-APPROVE-DESIGN");
    assert_eq!(
        (&record["status"], &record["resolution_reason"]),
        (&"cancelled".into(), &"not this year".into())
    );
    assert_eq!(session.status()["blocker"]["reason"], "mandatory_user_decision_missing");
    assert_eq!(session.current_state(), "BLOCKED");
}

#[test]
fn s1_20_s1_21_a_forged_approval_opens_nothing_and_the_file_is_written_anew() {
    let session = Session::designed("");
    let path = session.scratch.run_dir(&session.run).join("status.json");
    let forged = std::fs::read_to_string(&path)
        .unwrap()
        .replace("\"status\": \"pending\"", "\"status\": \"answered\"");
    std::fs::write(&path, forged).unwrap();
    session.scratch.gatewright(&["resume", &session.run]).exits(10);
    assert_eq!(session.scratch.count("plan"), 0);
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending", "read back and mended");
}

#[test]
fn s1_22_corrections_have_no_limit() {
    let session = Session::designed("");
    for round in 1..=5 {
        session.answer("UD-APPROVE-DESIGN", &format!("changes-requested: again {round}"), 10);
    }
    assert_eq!(session.scratch.count("architecture"), 6);
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
}

#[test]
fn s1_23_s1_31_a_lean_session_asks_neither_question_and_reviews_its_task() {
    let session = Session::lean("", 0);
    assert_eq!(session.status()["user_decisions"].as_array().unwrap().len(), 0);
    assert_eq!(session.scratch.count("tasks/T-001/review"), 1);
}

#[test]
fn s1_72_what_people_say_is_classified() {
    for words in ["looks good", "Approved.", "go ahead"] {
        let session = Session::designed("");
        session.answer("UD-APPROVE-DESIGN", words, 10);
        assert_eq!(session.decision("UD-APPROVE-DESIGN")["answer"], "approved", "{words}");
    }
    let session = Session::designed("");
    for words in ["fix the name", "change the store", "I have concerns"] {
        session.answer("UD-APPROVE-DESIGN", words, 10);
        let history = session.scratch.published(&session.run, "approve-design-history.jsonl").unwrap();
        assert!(history.contains(&format!("changes-requested: {words}")), "{words}: {history}");
    }
    session.answer("UD-APPROVE-DESIGN", "I like it, mostly", 4);
}
