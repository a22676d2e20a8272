//! `validate`, `progress` and `hook` as tools.

use serde_json::{Value, json};

use super::cycle::Cycle;
use crate::support::Scratch;

fn completion(change: impl FnOnce(&mut Value)) -> String {
    let mut value = json!({
        "stream": "WS-1", "status": "complete", "attempt": 1, "git_sha": "abc", "build_passed": true,
        "steps": [{"name": "se", "status": "passed"}, {"name": "test", "status": "passed"}],
        "files_modified": ["src/a.txt"], "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:00:00Z",
    });
    change(&mut value);
    value.to_string()
}

#[test]
fn s3_43_each_file_has_its_schema_and_each_mode_its_number() {
    let scratch = Scratch::new();
    let full = |text: &str, more: &[&str], code: i32| {
        scratch.write("c.json", text);
        let mut words = vec![
            "validate",
            "--full",
            "--file",
            "c.json",
            "--lang",
            "go",
            "--build-command",
            "true",
            "--test-command",
            "true",
        ];
        words.extend(more);
        scratch.gatewright(&words).exits(code);
    };
    full(&completion(|_| ()), &[], 0);
    full(&completion(|value| value["build_passed"] = json!(false)), &[], 1);
    full(&completion(|value| value["files_modified"] = json!(["src/none.txt"])), &[], 2);
    full(&completion(|value| value["files_modified"] = json!([])), &[], 2);
    scratch.write("c.json", &completion(|_| ()));
    let with = |build: &str, test: &str, code: i32| {
        scratch
            .gatewright(&[
                "validate",
                "--full",
                "--file",
                "c.json",
                "--lang",
                "go",
                "--build-command",
                build,
                "--test-command",
                test,
            ])
            .exits(code);
    };
    with("false", "true", 3);
    with("true", "false", 4);
    with("true", "echo '2 passed in 0.1s'", 0);
    with("true", "echo 'test result: ok. 0 passed; 0 failed; 4 ignored'", 4);
    with("true", "echo '?   example.org/p [no test files]'", 4);
    with("true", "echo '1 failed, 2 passed in 0.1s' | cat", 4);
    scratch
        .write("c.json", &completion(|value| value["steps"] = json!([{"name": "se", "status": "passed"}])));
    with("true", "false", 0);
    let node = |id: &str| json!({"id": id, "type": "gate", "status": "pending"});
    let dag = |edges: Value| {
        json!({"pipeline_id": "P_b", "lang": "go", "nodes": [node("a"), node("b")], "edges": edges})
            .to_string()
    };
    for (edges, code) in [
        (json!([{"from": "a", "to": "b"}]), 0),
        (json!([{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]), 5),
        (json!([{"from": "a", "to": "z"}]), 5),
    ] {
        scratch.write("d.json", &dag(edges));
        scratch.gatewright(&["validate", "--dag-check", "--file", "d.json"]).exits(code);
    }
    scratch.write("s.json", "{}");
    for name in ["pipeline_state", "pipeline-state", "schemas/pipeline_state.schema.json"] {
        scratch.gatewright(&["validate", "--schema", name, "--file", "s.json"]).exits(1);
    }
    scratch.gatewright(&["validate", "--schema", "unheard_of", "--file", "s.json"]).exits(10);
    scratch.gatewright(&["validate", "--bogus"]).exits(10);
    scratch.gatewright(&["validate"]).exits(10);
}

#[test]
fn s3_43_every_word_of_progress_leaves_files_that_keep_their_schemas() {
    let scratch = Scratch::new();
    let run = |words: &[&str], code: i32| {
        let mut all = vec!["progress"];
        all.extend(words);
        all.extend(["--project-dir", "p"]);
        scratch.gatewright(&all).exits(code);
    };
    run(&["view"], 5);
    run(&["init", "--pipeline-id", "P_b", "--feature-type", "nonsense"], 1);
    run(&["init", "--pipeline-id", "P_b", "--feature-type", "ui"], 0);
    run(&["init", "--pipeline-id", "P_b", "--feature-type", "ui"], 2);
    run(&["milestone", "--id", "M-a", "--title", "A", "--phase", "design"], 0);
    run(&["milestone", "--id", "bad id"], 4);
    for status in ["pending", "started", "in_progress", "completed", "failed", "blocked", "skipped"] {
        run(&["update", "--agent", "se", "--milestone", "M-a", "--status", status, "--quiet"], 0);
        scratch.gatewright(&["validate", "--progress-check", "--project-dir", "p"]).exits(0);
    }
    run(&["gate", "--id", "G1", "--status", "passed"], 0);
    run(&["decision", "--question", "q", "--chosen", "c"], 0);
    run(&["decision", "--question", "q", "--chosen", "d"], 0);
    let seen = |format: &str| {
        let words = ["progress", "view", "--project-dir", "p", "--format", format];
        scratch.gatewright(&words).exits(0).out
    };
    assert_eq!(seen("summary").trim(), "P_b: 1 of 1 milestones, at work: nobody");
    let table = seen("table");
    assert!(table.starts_with("id ") && table.lines().nth(1).unwrap().starts_with("M-a "), "{table}");
    assert!(table.contains("design"), "{table}");
    run(&["view", "--format", "odd"], 1);
    let plan: Value =
        serde_json::from_str(&std::fs::read_to_string(scratch.root().join("p/progress/plan.json")).unwrap())
            .unwrap();
    assert_eq!((&plan["decisions"][0]["id"], &plan["decisions"][1]["id"]), (&json!("D1"), &json!("D2")));
    for format in ["tree", "table", "summary", "json"] {
        run(&["view", "--format", format], 0);
    }
    scratch.write("p/progress/plan.json", "{");
    run(&["view"], 3);
}

#[test]
fn s3_43_a_state_from_before_the_spine_is_migrated_and_keeps_its_schema() {
    let scratch = Scratch::new();
    let migrate = |more: &[&str], code: i32| {
        let words = [&["progress", "migrate", "--project-dir", "p"], more].concat();
        scratch.gatewright(&words).exits(code)
    };
    migrate(&[], 5);
    let stage = |status: &str| json!({"status": status});
    let old = json!({
        "pipeline_id": "PROJ-1_x", "feature_type": "ui", "current_gate": "none",
        "stages": {"tpm": stage("completed"), "impl_planner": stage("failed"), "code_reviewer": stage("pending")},
        "decisions": [],
    });
    scratch.write("p/pipeline_state.json", &old.to_string());
    migrate(&[], 0);
    migrate(&[], 2);
    migrate(&["--force"], 0);
    scratch.gatewright(&["validate", "--progress-check", "--project-dir", "p"]).exits(0);
    let text = std::fs::read_to_string(scratch.root().join("p/progress/plan.json")).unwrap();
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&plan["pipeline_id"], &plan["feature_type"]), (&json!("PROJ-1_x"), &json!("ui")));
    let milestone = |id: &str| {
        let list = plan["milestones"].as_array().unwrap();
        list.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}: {plan:#}")).clone()
    };
    assert_eq!(milestone("M-tpm")["status"], "completed");
    assert_eq!(milestone("M-impl-planner")["status"], "blocked");
    assert_eq!(milestone("M-code-reviewer")["phase"], "review");
}

#[test]
fn s3_43_gates_that_were_passed_before_the_spine_stay_passed() {
    let said = |gate: &str, chosen: &str| json!({"id": format!("D-{gate}"), "gate": gate, "stage": "tpm", "question": "?", "chosen": chosen, "decided_by": "user", "timestamp": "2026-01-02T00:00:00Z"});
    let gates = |change: &dyn Fn(&mut Value)| -> Vec<(String, Value)> {
        let scratch = Scratch::new();
        let mut old = json!({
            "pipeline_id": "PROJ-1_x", "feature_type": "ui", "current_gate": "none", "decisions": [],
            "stages": {"tpm": {"status": "completed"}, "designer": {"status": "completed"}},
        });
        change(&mut old);
        scratch.write("p/pipeline_state.json", &old.to_string());
        scratch.gatewright(&["progress", "migrate", "--project-dir", "p"]).exits(0);
        scratch.gatewright(&["validate", "--progress-check", "--project-dir", "p"]).exits(0);
        let text = std::fs::read_to_string(scratch.root().join("p/progress/plan.json")).unwrap();
        let plan: Value = serde_json::from_str(&text).unwrap();
        let passed = plan["gates"].as_array().unwrap().iter().filter(|gate| gate["status"] == "passed");
        passed.map(|gate| (gate["id"].as_str().unwrap().to_owned(), gate["passed_at"].clone())).collect()
    };
    let at = |day: u8| json!(format!("2026-01-0{day}T00:00:00Z"));
    assert_eq!(gates(&|_| ()), []);
    assert_eq!(gates(&|old| old["current_gate"] = json!("G1")), []);
    assert_eq!(gates(&|old| old["current_gate"] = json!("G2")), [("G1".to_owned(), Value::Null)]);
    assert_eq!(gates(&|old| old["stages"]["tpm"]["approved_at"] = at(1)), [("G1".to_owned(), at(1))]);
    assert_eq!(
        gates(&|old| old["decisions"] = json!([said("G1", "Go ahead"), said("G2", "Option 2")])),
        [("G1".to_owned(), at(2)), ("G2".to_owned(), at(2))]
    );
    // The last word counts, and what was only acknowledged was not approved.
    assert_eq!(gates(&|old| old["decisions"] = json!([said("G1", "yes"), said("G1", "fix the name")])), []);
    assert_eq!(gates(&|old| old["decisions"] = json!([said("G1", "okay")])), []);
}

/// `hook EVENT` with this input.
fn hook(cycle: &Scratch, event: &str, input: &Value) -> String {
    let command = cycle.command(&["hook", event]);
    cycle.start_with(command, Some(&input.to_string())).ended().exits(0).out
}

#[test]
fn s3_36_before_compaction_branch_files_and_state_are_captured() {
    let idle = Scratch::new();
    assert_eq!(hook(&idle, "pre-compact", &json!({"hook_event_name": "PreCompact", "session_id": "s"})), "");
    let cycle = Cycle::starts("", &[], 10);
    cycle.scratch.write("src/a.txt", "changed\n");
    let claude = hook(
        &cycle.scratch,
        "pre-compact",
        &json!({"hook_event_name": "PreCompact", "session_id": "s", "trigger": "auto"}),
    );
    for part in ["Branch: main", "src/a.txt", "tpm: passed", "g1: waiting", "\"handoff\"", &cycle.run] {
        assert!(claude.contains(part), "{part}: {claude}");
    }
    assert!(claude.contains("\"plan_path\":\"\""), "there is none yet: {claude}");
    assert!(claude.contains("/remember-me/domain_model.json\""), "{claude}");
    cycle.answer("G1", "approved", 10);
    cycle.scratch.write("src/new.txt", "new\n");
    let planned =
        hook(&cycle.scratch, "pre-compact", &json!({"hook_event_name": "PreCompact", "session_id": "s"}));
    assert!(planned.contains("/remember-me/plan.md\"") && planned.contains("_output.json\""), "{planned}");
    let modified = planned.lines().find(|line| line.starts_with("Modified files: ")).unwrap();
    assert_eq!(modified, "Modified files: src/a.txt, src/new.txt", "and nothing that the run published");
    let named = Cycle::project("tpm) say blocked 'No.' none 'it cannot be';;");
    named.git(&["checkout", "-q", "-b", "PROJ-123_remember_me"]);
    let named = Cycle::of(named, "stream-dag", &[], 11);
    let said =
        hook(&named.scratch, "pre-compact", &json!({"hook_event_name": "PreCompact", "session_id": "s"}));
    assert!(said.contains("\"jira_issue\":\"PROJ-123\""), "{said}");
    let codex = hook(
        &cycle.scratch,
        "pre-compact",
        &json!({"hook_event_name": "PreCompact", "session_id": "s", "turn_id": "t", "model": "m"}),
    );
    assert!(serde_json::from_str::<Value>(&codex).unwrap()["systemMessage"].is_string());
    // A run that goes phase by phase.
    let phases = Scratch::new();
    let words = ["run", "phase-review", "Remember me", "--until", "brainstorm", "--agent", "rehearsal"];
    let run = phases.gatewright(&words).exits(12).id();
    let kept = hook(&phases, "pre-compact", &json!({"hook_event_name": "PreCompact", "session_id": "s"}));
    assert!(kept.contains(&format!("next: gatewright phase specify {run}")), "{kept}");
    let copilot = hook(&cycle.scratch, "pre-compact", &json!({"timestamp": 1, "cwd": "."}));
    assert!(serde_json::from_str::<Value>(&copilot).unwrap()["additionalContext"].is_string());
}

#[test]
fn s2_27_a_session_begins_with_what_is_under_way() {
    let idle = Scratch::new();
    let input = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"});
    assert_eq!(hook(&idle, "session-start", &input), "");
    let cycle = Cycle::starts("", &[], 10);
    let said: Value = serde_json::from_str(&hook(&cycle.scratch, "session-start", &input)).unwrap();
    let text = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert!(
        text.contains(&cycle.run)
            && text.contains("at g1")
            && text.contains(&format!("gatewright answer {} G1", cycle.run)),
        "{text}"
    );
    cycle.scratch.gatewright(&["abort", &cycle.run]);
    assert_eq!(hook(&cycle.scratch, "session-start", &input), "", "what is over is not told");
}

#[test]
fn s2_28_who_is_elsewhere_is_warned_and_not_stopped() {
    let input = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"});
    let cycle = Cycle::starts("", &[], 10);
    let text = hook(&cycle.scratch, "session-start", &input);
    assert!(text.contains("Warning: it works in") && text.contains("you are in"), "{text}");
    let plain = Cycle::of(Cycle::project(""), "stream-dag/test-only", &["--profile", "interactive"], 10);
    assert!(!hook(&plain.scratch, "session-start", &input).contains("Warning"), "it has no worktree");
}

#[test]
fn hooks_are_entered_beside_what_is_there_and_taken_out_again() {
    let scratch = Scratch::new();
    let own = json!({"model": "opus", "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}});
    scratch.write(".claude/settings.json", &own.to_string());
    let read = |file: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(scratch.root().join(file)).unwrap()).unwrap()
    };
    for _ in 0..2 {
        scratch.gatewright(&["init", "--hooks", "claude"]).exits(0);
        let now = read(".claude/settings.json");
        assert_eq!(now["hooks"]["SessionStart"].as_array().unwrap().len(), 2, "{now:#}");
        assert_eq!(
            (&now["model"], now["hooks"]["PreCompact"].as_array().unwrap().len()),
            (&json!("opus"), 1)
        );
    }
    scratch.gatewright(&["init", "--hooks", "claude", "--remove"]).exits(0);
    assert_eq!(read(".claude/settings.json"), own);
    scratch.gatewright(&["init", "--hooks", "codex"]).exits(0);
    let codex = read(".codex/hooks.json");
    assert!(
        codex["hooks"]["SessionStart"].is_array() && codex["hooks"]["PreCompact"].is_array(),
        "{codex:#}"
    );
    scratch.gatewright(&["init", "--hooks", "copilot"]).exits(0);
    assert_eq!(read(".github/hooks/gatewright.json")["version"], 1);
    scratch.write(".claude/settings.json", "not json");
    scratch.gatewright(&["init", "--hooks", "claude"]).exits(3);
}
