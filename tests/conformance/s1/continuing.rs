//! Sessions that go on: after one that is over (`run --continue`), and from a folder that no run made.

use serde_json::{Value, json};

use super::session::Session;

/// A session that is over, with one task per batch.
fn over(cases: &str) -> Session {
    let session = Session::designed(cases);
    session
        .scratch
        .gatewright(&[
            "answer",
            &session.run,
            "UD-APPROVE-DESIGN",
            "changes-requested",
            "--comment",
            "smaller",
        ])
        .exits(10);
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
    session.answer("UD-REVIEW-STRATEGY", "per-batch", 0);
    session
}

#[test]
fn an_earlier_session_is_continued_in_its_own_folder_by_a_run_of_its_own() {
    let first = over("");
    let folder = first.scratch.run_dir(&first.run);
    let words = ["run", "gated-session", "Forget me", "--set", "ci=true", "--continue", first.run.as_str()];
    let run = first.scratch.gatewright(&words).exits(10).id();
    assert_ne!(run, first.run);
    assert_eq!(first.scratch.run_dir(&run), folder, "the same folder");
    let second = Session { scratch: first.scratch, run };
    // Whoever works now knows of the earlier work, and finds it.
    let prompt = second.scratch.prompt("intake", 1);
    assert!(prompt.contains("goes on where") && prompt.contains(&first.run), "{prompt}");
    let status = second.status();
    assert_eq!(status["session"], *first.run, "the session is its folder");
    assert_eq!(status["current_state"], "APPROVE_DESIGN");
    // What was decided then is still there; the gate is put again under its own id.
    assert_eq!(second.decision("UD-REVIEW-STRATEGY")["answer"], "per-batch");
    assert_eq!(second.decision("UD-APPROVE-DESIGN")["status"], "pending");
    let history = second.scratch.published(&second.run, "approve-design-history.jsonl").unwrap();
    assert_eq!(history.lines().count(), 1, "append-only: {history}");
    // The earlier run is as it was, and its files are nobody's business any more.
    assert_eq!(second.scratch.state(&first.run), "done");
    second.answer("UD-APPROVE-DESIGN", "approved", 10);
    second.answer("UD-REVIEW-STRATEGY", "single-final", 0);
    assert_eq!(second.current_state(), "DONE");
    assert_eq!(second.decision("UD-REVIEW-STRATEGY")["answer"], "single-final");
    second.scratch.gatewright(&["status", &first.run]).exits(0);
    assert_eq!(second.current_state(), "DONE");
}

#[test]
fn only_a_session_that_is_over_is_continued_and_only_once() {
    let live = Session::designed("");
    let words = |run: &str| ["run", "gated-session", "More", "--continue", run].map(str::to_owned);
    let refused = |session: &Session, run: &str| {
        let words = words(run);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        session.scratch.gatewright(&words).exits(4).err
    };
    assert!(refused(&live, &live.run).contains("is not over"));
    live.scratch.gatewright(&["abort", &live.run]).exits(0);
    let later =
        live.scratch.gatewright(&["run", "gated-session", "More", "--continue", &live.run]).exits(10).id();
    assert!(refused(&live, &live.run).contains(&later));
}

/// A session as its orchestrator left it: no engine of ours, no field that only we have.
fn old_session(session: &Session, state: &str) -> String {
    let folder = ".agents-work/2025-01-31_remember-me";
    let source = session.scratch.run_dir(&session.run);
    for file in ["spec.md", "acceptance.json", "architecture.md"] {
        session
            .scratch
            .write(&format!("{folder}/{file}"), &std::fs::read_to_string(source.join(file)).unwrap());
    }
    let tasks = |id: &str, status: &str, needs: &str| {
        format!(
            "  - {{ id: {id}, status: {status}, type: feat, title: Title, depends_on: [{needs}], goal: Goal, non_goals: [], context_files: [], files_expected: [], acceptance_checks: [\"manual: look\"], risk_flags: [none], done_when: [it holds] }}\n"
        )
    };
    let plan = format!(
        "project: {{ name: p, definition_of_done: [green] }}\ntasks:\n{}{}",
        tasks("T-001", "completed", ""),
        tasks("T-002", "not-started", "T-001")
    );
    session.scratch.write(&format!("{folder}/tasks.yaml"), &plan);
    let mut status = session.status();
    for ours in ["mode", "project_type", "blocker", "session_changed_files"] {
        status.as_object_mut().unwrap().remove(ours);
    }
    status["current_state"] = json!(state);
    status["session"] = json!("2025-01-31_remember-me");
    status["user_decisions"] = json!([]);
    session.scratch.write(&format!("{folder}/status.json"), &status.to_string());
    folder.to_owned()
}

#[test]
fn where_an_old_session_breaks_its_schema_is_said_with_file_place_and_remedy() {
    let session = Session::designed("");
    let folder = old_session(&session, "THINKING");
    session.scratch.write(&format!("{folder}/acceptance.json"), r#"{"acceptance_criteria": []}"#);
    let ran = session.scratch.gatewright(&["import", &folder, "--check", "--json"]).exits(1);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let problems = report["problems"].as_array().unwrap().clone();
    let about = |file: &str, place: &str| {
        let found = problems.iter().find(|one| {
            one["file"].as_str().unwrap().ends_with(file) && one["place"].as_str().unwrap().contains(place)
        });
        let found = found.unwrap_or_else(|| panic!("{file} {place}: {problems:#?}"));
        assert!(!found["remedy"].as_str().unwrap().is_empty(), "{found}");
    };
    about("status.json", "/current_state");
    about("acceptance.json", "/acceptance_criteria");
    assert_eq!(report["next"], "intake", "what rests on a broken file is done again");
}
