//! Tasks that were worked on without this engine: a run takes over every report and goes on where the last one ends.

use serde_json::Value;

use super::chain::{Chain, REPORTS};
use crate::support::Scratch;

const FOLDER: &str = ".workflow/develop-feature-user-auth-1702834567";

fn metadata(command: &str, step: u32, status: &str) -> String {
    format!(
        r#"{{"taskId": "{command}-user-auth-1702834567", "command": "{command}", "feature": "User auth", "started": "2023-12-17T17:36:07Z", "currentStep": {step}, "status": "{status}"}}"#
    )
}

/// A task that has come as far as this report, and has these files besides.
fn task(cases: &str, last: &str, more: &[(&str, String)]) -> Scratch {
    let scratch = Chain::project(cases);
    scratch.write(&format!("{FOLDER}/metadata.json"), &metadata("develop-feature", 4, "in_progress"));
    let end = REPORTS.iter().position(|(name, _)| *name == last).unwrap();
    for (name, text) in &REPORTS[..=end] {
        scratch.write(&format!("{FOLDER}/{name}.md"), text);
    }
    for (name, text) in more {
        scratch.write(&format!("{FOLDER}/{name}"), text);
    }
    scratch
}

fn report(name: &str) -> &'static str {
    REPORTS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// The review as it is when something blocks.
fn failing(name: &str) -> String {
    let fields = match name {
        "performance" => {
            "   - Location: `src/session.txt:1`\n   - Category: Database\n   - Problem: a query per row\n   - Impact: slow\n   - Fix: one query\n"
        }
        _ => {
            "   - Location: `src/session.txt:1`\n   - Problem: nothing tests an expiry\n   - Impact: wrong code passes\n   - Fix: test it\n"
        }
    };
    let text = report(name).replacen("**Status:** PASS", "**Status:** FAIL", 1).replacen(
        "Verdict: PASS",
        "Verdict: FAIL",
        1,
    );
    let heading = "Blocking Issues\n";
    text.replacen(
        &format!("{heading}- None\n"),
        &format!("{heading}1. **It is not good enough**\n{fields}"),
        1,
    )
}

fn fix(step: &str, agent: &str, review: &str, number: u32) -> String {
    let text = include_str!("reports/fix.md");
    text.replace("STEP", step)
        .replace("AGENT", agent)
        .replace("REVIEW", review)
        .replace("NUMBER", &number.to_string())
}

fn second_look(step: &str, agent: &str, review: &str, number: u32, passes: bool) -> String {
    let text = include_str!("reports/re-review.md");
    let text = text
        .replace("STEP", step)
        .replace("AGENT", agent)
        .replace("REVIEW", review)
        .replace("NUMBER", &number.to_string());
    if passes {
        text
    } else {
        text.replace("**Status:** PASS", "**Status:** FAIL").replace("✅ RESOLVED", "⚠️ PARTIAL")
    }
}

#[track_caller]
fn next(scratch: &Scratch) -> Value {
    let ran = scratch.gatewright(&["import", FOLDER, "--check", "--json"]).exits(0);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    said["next"].clone()
}

#[track_caller]
fn imported(scratch: Scratch, code: i32) -> Chain {
    let run = scratch.gatewright(&["import", FOLDER]).exits(code).id();
    Chain { scratch, run }
}

#[test]
fn a_review_that_passed_is_not_held_again() {
    let scratch = task("", "tests-review", &[]);
    assert_eq!(next(&scratch), "implementation");
    let chain = imported(scratch, 0);
    let called = chain.scratch.called();
    assert_eq!(called[0], "implementation", "{called:?}");
    assert!(!called.iter().any(|step| step.starts_with("tests-review")), "{called:?}");
}

#[test]
fn s0_32_a_review_that_failed_is_what_the_run_goes_on_with() {
    let scratch = task("", "tests-review", &[("tests-review.md", failing("tests-review"))]);
    assert_eq!(next(&scratch), "tests-review-fix");
    let chain = imported(scratch, 0);
    let called = chain.scratch.called();
    assert_eq!(called[..3], ["tests-review-fix", "tests-review", "implementation"], "{called:?}");
    let prompt = chain.scratch.prompt("tests-review-fix", 1);
    assert!(
        prompt.contains("nothing tests an expiry") && prompt.contains("This is fix iteration 1."),
        "{prompt}"
    );
    for file in ["loop-iterations/tests-review-fix-1.md", "loop-iterations/tests-review-review-2.md"] {
        assert!(chain.scratch.published(&chain.run, file).is_some(), "{file}");
    }
}

#[test]
fn a_repair_that_was_made_is_looked_at_and_not_made_again() {
    let done =
        ("loop-iterations/tests-review-fix-1.md", fix("Test Review", "automation-qa", "tests-review.md", 1));
    let scratch = task("", "tests-review", &[("tests-review.md", failing("tests-review")), done]);
    assert_eq!(next(&scratch), "tests-review");
    let chain = imported(scratch, 0);
    let called = chain.scratch.called();
    assert_eq!(called[..2], ["tests-review", "implementation"], "{called:?}");
    let inputs = chain.inputs("tests-review", 1);
    for file in ["tests-review.md", "loop-iterations/tests-review-fix-1.md"] {
        assert!(inputs.contains(&file.to_owned()), "{file}: {inputs:?}");
    }
    assert!(chain.file("loop-iterations/tests-review-review-2.md").contains("Review 2"));
}

#[test]
fn s0_34_rounds_that_were_held_count_and_the_loop_files_go_on_where_they_end() {
    let files = |rounds: u32| {
        let mut files = vec![("tests-review.md".to_owned(), failing("tests-review"))];
        for round in 2..=rounds {
            files.push((
                format!("loop-iterations/tests-review-fix-{}.md", round - 1),
                fix("Test Review", "automation-qa", "tests-review.md", round - 1),
            ));
            files.push((
                format!("loop-iterations/tests-review-review-{round}.md"),
                second_look("Test", "tests-reviewer", "tests-review.md", round, false),
            ));
        }
        files
    };
    let made = files(4);
    let made: Vec<(&str, String)> = made.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    // The fourth review failed: one repair and one review are left.
    let chain = imported(task("tests-review) objects 'still not';;", "tests-review", &made), 10);
    assert_eq!(chain.scratch.called(), ["tests-review-fix", "tests-review"]);
    assert!(chain.file("loop-iterations/tests-review-review-5.md").contains("Review 5"));
    assert!(chain.file("loop-iterations/tests-review-exhausted.md").contains("after 5 iterations"));
    // All five were held: only the decision is left.
    let made = files(5);
    let made: Vec<(&str, String)> = made.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let chain = imported(task("", "tests-review", &made), 10);
    assert!(chain.scratch.called().is_empty(), "{:?}", chain.scratch.called());
    let decision = chain.scratch.decision(&chain.run, "D-1");
    assert_eq!(decision["answers"], serde_json::json!(["accept", "abort"]));
}

#[test]
fn performance_and_security_go_on_one_after_the_other_as_they_were_led() {
    let more = [
        ("performance.md", failing("performance")),
        (
            "loop-iterations/performance-fix-1.md",
            fix("Performance", "backend-developer", "performance.md", 1),
        ),
        (
            "loop-iterations/performance-review-2.md",
            second_look("Performance", "performance-specialist", "performance.md", 2, true),
        ),
    ];
    let scratch = task("", "performance", &more);
    assert_eq!(next(&scratch), "security");
    let chain = imported(scratch, 0);
    let called = chain.scratch.called();
    assert_eq!(called[..2], ["security", "refactoring"], "{called:?}");
}

#[test]
fn where_a_loop_file_breaks_its_form_is_said_with_file_and_place() {
    let broken = (
        "loop-iterations/tests-review-fix-1.md",
        fix("Test Review", "automation-qa", "tests-review.md", 1).replace("## Issues Addressed", "## Done"),
    );
    let scratch = task("", "tests-review", &[("tests-review.md", failing("tests-review")), broken]);
    let said = scratch.gatewright(&["import", FOLDER, "--check"]).exits(1).out;
    assert!(
        said.contains("tests-review-fix-1.md")
            && said.contains("## Issues Addressed")
            && said.contains("remedy: "),
        "{said}"
    );
}

#[test]
fn a_bug_that_was_being_fixed_goes_on_in_its_own_workflow() {
    let scratch = Chain::project("");
    scratch.write(&format!("{FOLDER}/metadata.json"), &metadata("fix-bug", 2, "in_progress"));
    scratch.write(&format!("{FOLDER}/requirements.md"), report("requirements"));
    let ran = scratch.gatewright(&["import", FOLDER, "--check", "--json"]).exits(0);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["workflow"], "report-chain/fix-bug");
    assert_eq!(said["given"], serde_json::json!(["requirements"]));
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let broken = |name: &str, heading: &str| report(name).replace(heading, "## Something else");
    let more = [
        ("plan.md", broken("plan", "## Affected Files")),
        ("tests-review.md", broken("tests-review", "## Flake Risk Assessment")),
        ("notes.json", "{\"a\": }".to_owned()),
        ("history.jsonl", "{\"a\": 1}\n\n{\"a\": \n".to_owned()),
    ];
    let scratch = task("", "implementation", &more);
    let said = scratch.gatewright(&["import", FOLDER, "--check"]).exits(1).out;
    for wrong in [
        "plan.md, headings: expected a section `## Affected Files`",
        "tests-review.md, headings: expected a section `## Flake Risk Assessment`",
        "notes.json, line 1",
        "history.jsonl, line 3",
    ] {
        assert_eq!(said.matches(wrong).count(), 1, "{wrong}: {said}");
    }
    assert!(said.contains("4 problem(s); a run would go on with `plan`"), "{said}");
}
