//! Files that agents say they wrote.

use crate::support::Scratch;

const PLAN_THEN_CODE: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: code, role: coder, reads: [plan.md] }
";

#[test]
fn j_01_done_without_the_file_never_advances() {
    let scratch = Scratch::with(PLAN_THEN_CODE, "plan) brief DONE plan.md;;");
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "plan")["state"], "blocked");
    assert_eq!(scratch.step(&run, "code")["attempts"], 0, "the next step never starts");
    assert_eq!(scratch.called(), ["plan", "plan"], "retried as the policy says, then no more");
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("claimed but not found") && message.contains("plan.md"), "{message}");
}

#[test]
fn j_01_a_retry_that_writes_the_file_advances() {
    let scratch = Scratch::with(
        PLAN_THEN_CODE,
        "plan) if [ $GATEWRIGHT_ATTEMPT = 2 ]; then put plan.md; fi; brief DONE plan.md;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.called(), ["plan", "plan", "code"]);
    assert!(scratch.published(&run, "plan.md").is_some());
}

#[test]
fn j_02_the_file_of_an_attempt_that_crashed_is_not_accepted() {
    let scratch = Scratch::with(
        PLAN_THEN_CODE,
        "plan) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then put plan.md; exit 1; fi; brief DONE plan.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.called(), ["plan", "plan"]);
    assert_eq!(scratch.published(&run, "plan.md"), None, "nothing was accepted, nothing is published");
    assert!(scratch.blocked_by(&run).1.contains("claimed but not found"));
}

#[test]
fn j_02_a_crashed_attempts_file_at_the_published_place_is_not_accepted() {
    let scratch = Scratch::with(
        PLAN_THEN_CODE,
        "plan) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo old > $GATEWRIGHT_RUN_DIR/plan.md; exit 1; fi; brief DONE plan.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["attempts"], 0);
}

#[test]
fn j_02_the_accepted_file_of_an_earlier_round_is_not_accepted_again() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"This way?\", show: [plan.md], answers: { approved: pass, changes-requested: { redo: plan } } }
  - { id: code, role: coder, reads: [plan.md] }
",
        "plan) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then put plan.md; fi; brief DONE plan.md;;",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "agree", "changes-requested", "--comment", "shorter"]).exits(11);
    assert_eq!(scratch.step(&run, "plan")["attempts"], 3, "the second round got its own two attempts");
    assert_eq!(scratch.step(&run, "code")["attempts"], 0);
}

#[test]
fn j_09_an_empty_artifact_does_not_pass() {
    let scratch = Scratch::with(PLAN_THEN_CODE, "plan) : > $GATEWRIGHT_OUT/plan.md; brief DONE plan.md;;");
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["attempts"], 0);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("plan.md") && message.contains("0 bytes"), "the level is named: {message}");
}

#[test]
fn j_09_an_artifact_of_headings_only_does_not_pass() {
    let scratch = Scratch::with(
        "
contracts:
  report: { markdown: { sections: { Summary: { bullets: [1, 5] }, Requirements: { ids: \"REQ-{n}\", min: 1 } } } }
steps:
  - { id: plan, role: planner, writes: { plan.md: report } }
  - { id: code, role: coder, reads: [plan.md] }
",
        "plan) printf '# Planning Report\\n\\n## Summary\\n\\n## Requirements\\n' > $GATEWRIGHT_OUT/plan.md; brief DONE plan.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["attempts"], 0);
    let (_, message) = scratch.blocked_by(&run);
    assert!(
        message.contains("Summary") && message.contains("Requirements"),
        "both faults are named: {message}"
    );
    assert!(scratch.prompt("plan", 2).contains("Requirements"), "the second attempt is told which");
}

#[test]
fn j_18_a_projection_that_an_agent_edits_is_ignored_and_rewritten() {
    let scratch = Scratch::with(
        "
projections:
  - { file: status.json, json: { state: { $expr: run.state }, plan: { $expr: \"steps.plan.state\" } } }
steps:
  - { id: plan, role: planner }
  - { id: code, role: coder }
",
        "plan) echo '{\"state\": \"done\", \"plan\": \"passed\"}' > $GATEWRIGHT_RUN_DIR/status.json; brief FAIL none no;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.state(&run), "blocked", "what a file says changes nothing");
    let projected: serde_json::Value =
        serde_json::from_str(&scratch.published(&run, "status.json").unwrap()).unwrap();
    assert_eq!(
        projected,
        serde_json::json!({"state": "blocked", "plan": "blocked"}),
        "written anew from the journal"
    );
}

#[test]
fn j_18_a_projection_that_a_person_edits_is_reported_by_doctor() {
    let scratch = Scratch::with(
        "
projections: [ { file: status.json, json: { state: { $expr: run.state } } } ]
steps:
  - { id: plan, role: planner }
  - { id: agree, decide: Go?, answers: { approved: pass, no: block } }
",
        "",
    );
    let run = scratch.run(10);
    std::fs::write(scratch.run_dir(&run).join("status.json"), "{\"state\": \"done\"}").unwrap();
    let found = scratch.gatewright(&["doctor", "--json"]);
    assert!(found.out.contains("status.json"), "doctor names the file: {}{}", found.out, found.err);
    assert_eq!(scratch.state(&run), "waiting");
    scratch.gatewright(&["approve", &run]).exits(0);
    assert!(scratch.published(&run, "status.json").unwrap().contains("\"done\""), "now it really is");
    assert!(!scratch.gatewright(&["doctor", "--json"]).out.contains("status.json"), "and is ours again");
}

#[test]
fn j_53_a_named_path_that_leaves_is_refused() {
    for named in ["../../../../../../../../etc/passwd", "/etc/passwd", "src/link"] {
        let scratch = Scratch::with(
            "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: after, role: coder } ]",
            &format!("code) brief DONE {named};;"),
        );
        std::os::unix::fs::symlink("/etc/passwd", scratch.root().join("src/link")).unwrap();
        let run = scratch.run(11);
        assert_eq!(scratch.step(&run, "after")["attempts"], 0, "{named}");
        let (_, message) = scratch.blocked_by(&run);
        assert!(message.contains("reality") && message.contains("repository"), "{named}: {message}");
    }
}

#[test]
fn j_53_a_link_in_place_of_an_artifact_is_refused() {
    let scratch = Scratch::with(
        PLAN_THEN_CODE,
        "plan) ln -s /etc/passwd $GATEWRIGHT_OUT/plan.md; brief DONE plan.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.published(&run, "plan.md"), None, "no foreign content is published");
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("plan.md"), "{message}");
    assert_eq!(scratch.step(&run, "plan")["failure"]["class"], "reality", "{message}");
}
