//! Sessions that were led without this engine: they go on where they stood, and nothing that is there is made again.

use serde_json::{Value, json};

use super::session::Session;
use crate::support::Scratch;

const FOLDER: &str = ".agents-work/2025-01-31_remember-me";

const SPEC: &str = "# Spec\n## Problem\nPeople sign in too often.\n## Goals\n- Fewer sign-ins\n## Non-Goals\n- Another\n## User Stories\n- As a user\n## Functional Requirements\n- It works\n## Non-Functional Requirements\n- Fast\n## Edge Cases\n- Empty\n## Assumptions\n- Cookies\n## Definition of Done\n- Green\n## Acceptance Criteria\n- AC-001: it holds\n";
const ARCHITECTURE: &str = "# Architecture\n## Overview\nOne part.\n## Modules\n- store\n## Data Flow\nIn and out.\n## Interfaces\n- keep\n## Directory Layout\n- src\n## Error Handling\nNone is lost.\n## Configuration\n- none\n## Security\nNothing.\n## Testing\nUnit.\n## Risks\n- old data\n## Coverage\n- AC-001: store\n";

/// A session as an orchestrator of the old kind left it: only fields that its contract names.
pub struct Old {
    pub scratch: Scratch,
    status: Value,
}

fn decision(id: &str, status: &str, answer: Option<&str>, state: &str) -> Value {
    let resolved = answer.map(|_| "2025-01-31T10:00:00Z");
    json!({
        "decision_id": id, "question": format!("Question of {id}?"), "status": status, "answer": answer,
        "asked_at": "2025-01-31T09:30:00Z", "resolved_at": resolved, "state_context": state, "resolution_reason": null,
    })
}

fn task(id: &str, status: &str, needs: &str) -> String {
    format!(
        "  - {{ id: {id}, status: {status}, type: feat, title: Title of {id}, depends_on: [{needs}], goal: Goal of {id}, non_goals: [], context_files: [], files_expected: [], acceptance_checks: [\"manual: look\"], risk_flags: [none], done_when: [it holds] }}\n"
    )
}

impl Old {
    fn new(cases: &str, state: &str, decisions: &[Value]) -> Old {
        let scratch = Session::project(cases);
        let status = json!({
            "current_state": state,
            "session": "2025-01-31_remember-me",
            "assumptions": ["cookies are allowed"],
            "user_decisions": decisions,
            "gate_tracking": {"APPROVE_DESIGN": {"correction_status": "none", "last_correction_dispatch": {"agent": null, "task_id": null, "at": null}}},
            "runtime_flags": {"copilot_instructions_exists": false, "copilot_checked_at": "2025-01-31T09:00:00Z"},
            "retry_counts": {},
            "known_issues": [],
            "last_ci_result": "unknown",
            "last_update": "2025-01-31T10:00:00Z",
        });
        let old = Old { scratch, status };
        old.write("spec.md", SPEC);
        old.write(
            "acceptance.json",
            r#"{"acceptance_criteria": [{"id": "AC-001", "description": "it holds", "verify": ["manual: look"]}]}"#,
        );
        old.write("architecture.md", ARCHITECTURE);
        old
    }

    /// A session in which both gates were passed, with these tasks.
    fn built(cases: &str, state: &str, strategy: &str, tasks: &[String]) -> Old {
        let old = Old::new(
            cases,
            state,
            &[
                decision("UD-APPROVE-DESIGN", "answered", Some("approved"), "APPROVE_DESIGN"),
                decision("UD-REVIEW-STRATEGY", "answered", Some(strategy), "REVIEW_STRATEGY"),
            ],
        );
        let plan = format!("project: {{ name: p, definition_of_done: [green] }}\ntasks:\n{}", tasks.concat());
        old.write("tasks.yaml", &plan);
        old
    }

    fn write(&self, file: &str, text: &str) {
        self.scratch.write(&format!("{FOLDER}/{file}"), text);
    }

    fn with(mut self, field: &str, value: Value) -> Old {
        self.status[field] = value;
        self
    }

    /// What `import --check` says of it.
    #[track_caller]
    fn checked(&self, code: i32) -> Value {
        self.write("status.json", &self.status.to_string());
        let ran = self.scratch.gatewright(&["import", FOLDER, "--check", "--json"]).exits(code);
        serde_json::from_str(&ran.out).unwrap()
    }

    #[track_caller]
    fn imported(self, code: i32) -> Session {
        self.write("status.json", &self.status.to_string());
        let run = self.scratch.gatewright(&["import", FOLDER, "--set", "ci=true"]).exits(code).id();
        assert_eq!(run, "2025-01-31_remember-me");
        Session { scratch: self.scratch, run }
    }
}

#[test]
fn what_people_decided_and_what_is_done_is_taken_over_and_the_rest_is_done() {
    let old = Old::built(
        "",
        "IMPLEMENT_LOOP",
        "per-batch",
        &[
            task("T-001", "completed", ""),
            task("T-002", "implemented", "T-001"),
            task("T-003", "not-started", "T-002"),
        ],
    )
    .with("known_issues", json!(["the old browser is slow"]))
    .with("session_changed_files", json!([{"path": "src/before.txt", "change_type": "added"}]));
    let said = old.checked(0);
    assert_eq!(said["next"], "tasks", "{said:#}");
    assert_eq!(said["answers"]["approve-design"]["answer"], "approved", "{said:#}");
    let session = old.imported(0);
    let called = session.scratch.called();
    for done in
        ["intake", "architecture", "plan", "tasks/T-001/code", "tasks/T-001/review", "tasks/T-002/code"]
    {
        assert!(!called.iter().any(|step| step == done), "{done} is done: {called:?}");
    }
    for wanted in ["tasks/T-002/review", "tasks/T-003/code", "tasks/T-003/review", "final-review", "docs"] {
        assert!(called.iter().any(|step| step == wanted), "{wanted}: {called:?}");
    }
    // Nobody was asked, and the record still says who decided what.
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["answer"], "approved");
    assert_eq!(session.decision("UD-REVIEW-STRATEGY")["answer"], "per-batch");
    let answered = session.scratch.events_of(&session.run, "decision.answered");
    assert!(
        answered.iter().all(|event| event["channel"].as_str().unwrap().starts_with("imported")),
        "{answered:?}"
    );
    // Nothing of the old session is lost.
    let tasks = session.scratch.published(&session.run, "tasks.yaml").unwrap();
    assert_eq!(tasks.matches("status: completed").count(), 3, "{tasks}");
    assert_eq!(session.status()["known_issues"], json!(["the old browser is slow"]));
    let files = session.input("final-review", 1)["task"]["session_changed_files"].clone();
    assert!(files.as_array().unwrap().iter().any(|file| file["path"] == "src/before.txt"), "{files:#}");
}

#[test]
fn repairs_that_were_made_count_against_the_limit_of_their_loop() {
    let never = "tasks/T-001/review) finds BLOCKED blocker 'a hole';;";
    let old = Old::built(never, "FIX_REVIEW", "per-batch", &[task("T-001", "implemented", "")]).with(
        "retry_counts",
        json!({"T-001": {"FIX_REVIEW": 2, "FIX_TESTS": 0, "FIX_SECURITY": 0, "FIX_BUILD": 0}}),
    );
    let session = old.imported(10);
    // Two repairs were made; one is left, and two reviews.
    assert_eq!(session.scratch.count("tasks/T-001/review"), 2);
    assert_eq!(session.scratch.count("tasks/T-001/fix-review"), 1);
    assert_eq!(session.scratch.count("tasks/T-001/code"), 0, "it was implemented");
    assert_eq!(session.status()["retry_counts"]["T-001"]["FIX_REVIEW"], 3, "{:#}", session.status());
    assert_eq!(session.current_state(), "ASK_USER");
}

#[test]
fn a_session_in_the_repair_of_its_tests_goes_on_with_qa() {
    let old = Old::built("", "FIX_TESTS", "per-batch", &[task("T-001", "implemented", "")]).with(
        "retry_counts",
        json!({"T-001": {"FIX_REVIEW": 1, "FIX_TESTS": 1, "FIX_SECURITY": 0, "FIX_BUILD": 0}}),
    );
    let session = old.imported(0);
    let called = session.scratch.called();
    assert_eq!(called[0], "tasks/T-001/qa", "{called:?}");
    assert_eq!(session.status()["retry_counts"]["T-001"]["FIX_TESTS"], 1);
    assert_eq!(session.status()["retry_counts"]["T-001"]["FIX_REVIEW"], 1);
}

#[test]
fn a_red_build_has_as_many_repairs_left_as_it_had() {
    let old = Old::built("", "FIX_BUILD", "per-batch", &[task("T-001", "completed", "")]).with(
        "retry_counts",
        json!({"T-001": {"FIX_REVIEW": 0, "FIX_TESTS": 0, "FIX_SECURITY": 0, "FIX_BUILD": 2}}),
    );
    old.write("status.json", &old.status.to_string());
    let words = ["import", FOLDER, "--set", "ci=false"];
    let run = old.scratch.gatewright(&words).exits(10).id();
    let session = Session { scratch: old.scratch, run };
    assert_eq!(session.scratch.called(), ["fix-build"], "one of three is left");
}

#[test]
fn a_session_at_its_end_only_releases() {
    let old = Old::built("", "RELEASE", "single-final", &[task("T-001", "completed", "")]);
    let session = old.imported(0);
    assert_eq!(session.scratch.called(), ["docs", "release"]);
    assert_eq!(session.current_state(), "DONE");
}

#[test]
fn s1_42_a_correction_that_was_queued_is_sent_and_one_that_was_sent_is_not_sent_again() {
    let asked = [decision(
        "UD-APPROVE-DESIGN",
        "answered",
        Some("changes-requested: fewer modules"),
        "APPROVE_DESIGN",
    )];
    let line = r#"{"at": "2025-01-31T10:00:00Z", "decision_id": "UD-APPROVE-DESIGN", "answer": "changes-requested: fewer modules", "state_context": "APPROVE_DESIGN"}"#;
    for (status, called) in [
        ("none", &["architecture"][..]),
        ("queued", &["architecture"]),
        ("dispatched", &[]),
        ("completed", &[]),
    ] {
        let old = Old::new("", "APPROVE_DESIGN", &asked).with(
            "gate_tracking",
            json!({"APPROVE_DESIGN": {"correction_status": status, "last_correction_dispatch": {"agent": null, "task_id": null, "at": null}}}),
        );
        old.write("approve-design-history.jsonl", &format!("{line}\n"));
        let session = old.imported(10);
        assert_eq!(session.scratch.called(), called, "{status}");
        assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending", "{status}");
        if called == ["architecture"] {
            assert!(session.scratch.prompt("architecture", 2).contains("fewer modules"));
        }
        // Append-only: what was there is the first line.
        let history = session.scratch.published(&session.run, "approve-design-history.jsonl").unwrap();
        let first: Value = serde_json::from_str(history.lines().next().unwrap()).unwrap();
        assert_eq!(first["at"], "2025-01-31T10:00:00Z", "{history}");
    }
}

#[test]
fn an_approval_counts_for_what_was_approved_and_nothing_else() {
    let old = Old::built("", "IMPLEMENT_LOOP", "per-batch", &[task("T-001", "not-started", "")]);
    // It does not say where AC-001 is: it is made anew, and nobody has approved that.
    old.write("architecture.md", &ARCHITECTURE.replace("AC-001", "AC-01"));
    let session = old.imported(10);
    assert_eq!(session.scratch.called(), ["architecture"]);
    assert_eq!(session.decision("UD-APPROVE-DESIGN")["status"], "pending");
}

#[test]
fn s1_47_numbers_of_questions_go_on_and_what_was_pending_is_closed_with_a_reason() {
    let doubtful = "tasks/T-001/review) say OK 'PASS WITH NOTES' '\"review_comments\":[{\"severity\":\"nit\",\"category\":\"Quality\",\"file\":\"src/a.txt\",\"line\":1,\"message\":\"a name\",\"suggested_fix\":\"rename\"}]';;";
    let mut old = Old::built(doubtful, "ASK_USER", "per-batch", &[task("T-001", "implemented", "")]);
    let decisions = old.status["user_decisions"].as_array_mut().unwrap();
    decisions.push(decision("UD-1", "answered", Some("yes"), "DESIGN"));
    decisions.push(decision("UD-2", "pending", None, "IMPLEMENT_LOOP"));
    let session = old.imported(10);
    assert_eq!(session.decision("UD-1")["answer"], "yes");
    assert_eq!(session.decision("UD-2")["status"], "skipped");
    assert!(session.decision("UD-2")["resolution_reason"].is_string());
    assert_eq!(session.decision("UD-3")["status"], "pending", "asked anew under the next number");
}

#[test]
fn the_design_of_what_people_see_goes_with_the_session_whatever_its_name() {
    let old = Old::built("", "IMPLEMENT_LOOP", "per-batch", &[task("T-001", "not-started", "")]);
    old.write(
        "design-specs/design-spec-sign-in-page.md",
        "# D\n## Layout\nOne.\n## Interactions\n- click\n## Components\n- box\n## States\n- empty\n## Accessibility\n- label\n",
    );
    let session = old.imported(0);
    for step in ["tasks/T-001/code", "tasks/T-001/review", "tasks/T-001/qa"] {
        let files = session.context_files(step);
        assert!(files.iter().any(|file| file.starts_with("design-specs/")), "{step}: {files:?}");
    }
    assert!(!session.scratch.called().iter().any(|step| step == "design"));
}

#[test]
fn a_lean_session_of_the_old_kind_is_known_by_its_files() {
    let old = Old::new("", "IMPLEMENT_LOOP", &[]);
    std::fs::remove_file(old.scratch.root().join(FOLDER).join("architecture.md")).unwrap();
    old.write(
        "spec.md",
        "# S\n## Goals\n- One\n## Definition of Done\n- Green\n## Acceptance Criteria\n- AC-001: it holds\n",
    );
    let plan = format!(
        "project: {{ name: p, definition_of_done: [green] }}\ntasks:\n{}",
        task("T-001", "implemented", "")
    );
    old.write("tasks.yaml", &plan);
    assert_eq!(old.checked(0)["profile"], "lean");
    let session = old.imported(0);
    assert_eq!(session.scratch.called()[0], "tasks/T-001/review", "{:?}", session.scratch.called());
    assert_eq!(session.current_state(), "DONE");
}
