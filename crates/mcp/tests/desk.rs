//! What the desk accepts, refuses and keeps.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use gatewright_core::outcome::{Outcome, Reply};
use gatewright_mcp::{Answer, Desk, Progress, Promised, Question, Report, Review};
use gatewright_workflow::reply::tool_file::{TOOL_PROGRESS_FILE, TOOL_REPLY_FILE, read_tool_reply};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Attempt {
    dir: TempDir,
}

impl Attempt {
    fn new(promised: &Value) -> Attempt {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        std::fs::write(dir.path().join("outputs.json"), promised.to_string()).unwrap();
        Attempt { dir }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn desk(&self) -> Desk {
        Desk::new(self.out(), Promised::of_attempt(&self.out()).unwrap())
    }

    fn reply(&self) -> Option<Reply> {
        let bytes = std::fs::read(self.out().join(TOOL_REPLY_FILE)).ok()?;
        Some(read_tool_reply(&bytes).unwrap())
    }
}

fn plan_step() -> Attempt {
    let contract = json!({"markdown": {"sections": {"Summary": {}, "Steps": {"items_min": 2}}}});
    Attempt::new(
        &json!({"version": 1, "reviewer": false, "outputs": [{"name": "plan.md", "contract": contract}]}),
    )
}

fn report(value: Value) -> Report {
    serde_json::from_value(value).unwrap()
}

fn rejected(answer: Answer) -> String {
    match answer {
        Answer::Rejected(text) => text,
        Answer::Accepted(text) => panic!("accepted: {text}"),
    }
}

fn accepted(answer: Answer) -> String {
    match answer {
        Answer::Accepted(text) => text,
        Answer::Rejected(text) => panic!("rejected: {text}"),
    }
}

#[test]
fn a_report_that_breaks_its_contract_is_returned_with_every_violation_and_not_kept() {
    let attempt = plan_step();
    let said = rejected(attempt.desk().submit_report(report(
        json!({"status": "done", "summary": "Planned.", "content": "# Plan\n\n## Steps\n\n- one\n"}),
    )));
    assert!(said.contains("Summary"), "{said}");
    assert!(said.contains("Steps"), "{said}");
    assert!(!attempt.out().join("plan.md").exists());
    assert_eq!(attempt.reply(), None);
    let good = "# Plan\n\n## Summary\n\nIt is small.\n\n## Steps\n\n- one\n- two\n";
    accepted(
        attempt
            .desk()
            .submit_report(report(json!({"status": "done", "summary": "Planned.", "content": good}))),
    );
    assert_eq!(std::fs::read_to_string(attempt.out().join("plan.md")).unwrap(), good);
    let reply = attempt.reply().unwrap();
    assert_eq!((reply.outcome, reply.files), (Outcome::Done, vec!["plan.md".to_owned()]));
}

#[test]
fn a_report_without_its_file_is_not_taken() {
    let attempt = plan_step();
    let said =
        rejected(attempt.desk().submit_report(report(json!({"status": "done", "summary": "Planned."}))));
    assert!(said.contains("`plan.md` has not been written"), "{said}");
    let said =
        rejected(attempt.desk().submit_report(report(
            json!({"status": "done", "summary": "x", "file": "../x.md", "content": "x"}),
        )));
    assert!(said.contains("does not write `../x.md`"), "{said}");
    assert_eq!(std::fs::read_dir(attempt.out()).unwrap().count(), 0);
    accepted(
        attempt
            .desk()
            .submit_report(report(json!({"status": "blocked", "summary": "No.", "reason": "complexity"}))),
    );
    assert_eq!(attempt.reply().unwrap().outcome, Outcome::Blocked);
}

#[test]
fn what_is_still_missing_is_said() {
    let attempt = Attempt::new(&json!({"outputs": [
        {"name": "a.md", "contract": {"any": {}}}, {"name": "deep/b.md", "contract": {"any": {}}}, {"name": "c.md", "optional": true, "contract": {"any": {}}}
    ]}));
    let said =
        accepted(attempt.desk().submit_report(report(
            json!({"status": "done", "summary": "x", "file": "a.md", "content": "text"}),
        )));
    assert_eq!(said, "Accepted. Still missing: `deep/b.md`.");
    let said = accepted(attempt.desk().submit_report(report(
        json!({"status": "done", "summary": "x", "file": "deep/b.md", "content": "text"}),
    )));
    assert!(said.contains("Nothing else is needed"), "{said}");
}

#[test]
fn a_review_has_its_own_tool_and_an_objection_needs_a_finding() {
    let review = |value: Value| -> Review { serde_json::from_value(value).unwrap() };
    let attempt = Attempt::new(&json!({"reviewer": true, "outputs": []}));
    rejected(attempt.desk().submit_report(report(json!({"status": "done", "summary": "fine"}))));
    let said = rejected(attempt.desk().submit_review(review(json!({"approved": false, "summary": "no"}))));
    assert!(said.contains("at least one finding"), "{said}");
    accepted(attempt.desk().submit_review(review(
        json!({"approved": true, "summary": "fine", "findings": [{"severity": "high", "problem": "no test", "location": "src/a.rs:4"}]}),
    )));
    let reply = attempt.reply().unwrap();
    // Content in words, not in findings: the engine computes the verdict from both.
    assert_eq!((reply.outcome, reply.findings.len()), (Outcome::Passed, 1));
    rejected(plan_step().desk().submit_review(review(json!({"approved": true, "summary": "fine"}))));
    assert!(
        serde_json::from_value::<Review>(
            json!({"approved": true, "summary": "x", "findings": [{"severity": "huge", "problem": "x"}]})
        )
        .is_err()
    );
}

#[test]
fn a_question_ends_the_attempt_whatever_is_said_afterwards() {
    let attempt = plan_step();
    let ask = |text: &str| Question {
        question: text.to_owned(),
        options: vec!["a".to_owned()],
        recommendation: None,
    };
    let said = accepted(attempt.desk().ask_human(ask("Which one?")));
    assert!(said.contains("end your turn now"), "{said}");
    accepted(attempt.desk().ask_human(ask("Which one?")));
    accepted(attempt.desk().ask_human(ask("And when?")));
    let good = "## Summary\n\nx\n\n## Steps\n\n- one\n- two\n";
    accepted(
        attempt.desk().submit_report(report(json!({"status": "done", "summary": "x", "content": good}))),
    );
    let reply = attempt.reply().unwrap();
    assert_eq!((reply.outcome, reply.questions.len()), (Outcome::NeedsInput, 2));
    rejected(attempt.desk().ask_human(ask(" ")));
}

#[test]
fn progress_is_noted_and_bounded() {
    let attempt = plan_step();
    let note = |text: &str| {
        attempt.desk().update_progress(&Progress { message: text.to_owned(), percent: Some(200) })
    };
    accepted(note("reading"));
    assert_eq!(accepted(note(&"x".repeat(1 << 20))), "not kept: too long");
    let kept = std::fs::read_to_string(Path::new(&attempt.out()).join(TOOL_PROGRESS_FILE)).unwrap();
    assert_eq!(kept, "{\"status\":\"note\",\"summary\":\"100 %: reading\"}\n");
    assert_eq!(attempt.reply(), None, "a note is no reply");
}
