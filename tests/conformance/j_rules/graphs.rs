//! The order of things: gates, branches, lists, obligations.

use std::collections::BTreeSet;

use crate::support::{Scratch, text, wait_for};

#[test]
fn j_20_nothing_starts_before_what_it_needs_has_passed() {
    let scratch = Scratch::with(
        "
stages:
  - id: design
    steps:
      - { id: plan, role: planner }
      - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - id: build
    steps:
      - { id: a, role: coder }
      - { id: b, role: coder, needs: [] }
      - { id: join, role: coder, needs: [a, b] }
",
        "b) await go; ok;;",
    );
    let run = scratch.run(10);
    for step in ["a", "b", "join"] {
        assert_eq!(scratch.step(&run, step)["attempts"], 0, "{step}: a stage starts after the one before");
    }
    let engine = scratch.start(&["approve", &run]);
    wait_for("a has passed", || (scratch.step_state(&run, "a") == "passed").then_some(()));
    assert_eq!(scratch.step(&run, "join")["attempts"], 0);
    scratch.mark("go");
    engine.ended().exits(0);
    let needs = [("a", "agree"), ("b", "agree"), ("join", "a"), ("join", "b"), ("agree", "plan")];
    let mut passed = BTreeSet::new();
    for event in scratch.events(&run) {
        let Some(step) = event["step"].as_str() else { continue };
        match event["type"].as_str() {
            Some("step.passed") => {
                passed.insert(step.to_owned());
            }
            Some("step.attempt.started") => {
                for (_, need) in needs.iter().filter(|(who, _)| *who == step) {
                    assert!(passed.contains(*need), "{step} started before {need} had passed");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn j_20_a_hard_gate_that_does_not_hold_stops_the_step() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, block_at: high }
  - { id: ship, role: coder, gates: [ { verdict: review, at_most: pass } ] }
",
        "review) printf '{\"approved\": true, \"issues\": [{\"severity\": \"low\", \"description\": \"typo\"}], \"summary\": \"s\"}\\n';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step_state(&run, "review"), "passed_with_notes");
    assert_eq!((scratch.count("ship"), scratch.blocked_by(&run).0.as_str()), (0, "gate"));
    scratch.gatewright(&["resume", &run]).exits(11);
    assert_eq!(scratch.count("ship"), 0, "resuming opens no gate");
}

const TASKS: &str = "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any }, retry: { attempts_max: 9 } }
  - id: build
    for_each: tasks.yaml
    ON_FAILURE
    steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]
";

fn tasks(list: &str) -> String {
    format!("plan) cat > $GATEWRIGHT_OUT/tasks.yaml <<'END'\ntasks:\n{list}\nEND\nbrief DONE tasks.yaml;;")
}

#[test]
fn j_22_an_item_whose_dependency_failed_is_left_out_with_the_reason() {
    let list = "- { id: a }\n- { id: b, depends_on: [a] }\n- { id: c }\n- { id: d, depends_on: [b] }";
    let scratch = Scratch::with(
        &TASKS.replace("ON_FAILURE", "parallel_max: 1"),
        &format!("{}\nbuild/a/code) exit 3;;", tasks(list)),
    );
    let run = scratch.run(11);
    assert_eq!(
        scratch.called(),
        ["plan", "build/a/code", "build/c/code"],
        "independent work goes on, no loop"
    );
    let ended = scratch.events_of(&run, "fanout.item.ended");
    let end = |key: &str| ended.iter().find(|event| event["key"] == key).unwrap()["end"].clone();
    assert_eq!(end("b"), serde_json::json!({"how": "blocked", "by": ["a"]}));
    assert_eq!(end("d"), serde_json::json!({"how": "blocked", "by": ["b"]}));
    let build = scratch.step(&run, "build");
    assert!(text(&build["message"]).contains("a, b, d"), "{build}");
}

#[test]
fn j_28_a_generated_plan_that_is_none_goes_back_with_the_exact_reason() {
    let plans = "plan) case $GATEWRIGHT_ATTEMPT in
1) list='[ { id: a, depends_on: [b] }, { id: b, depends_on: [a] } ]';;
2) list='[ { id: a, depends_on: [zz] } ]';;
3) list='[ { id: a, depends_on: [a] } ]';;
4) list='[ { id: a }, { id: a } ]';;
5) list='[ { id: ../a } ]';;
*) list='[ { id: a }, { id: b, depends_on: [a] } ]';;
esac; wrote tasks.yaml \"tasks: $list\";;";
    let scratch = Scratch::with(&TASKS.replace("    ON_FAILURE\n", ""), plans);
    let run = scratch.run(0);
    assert_eq!(scratch.step(&run, "plan")["attempts"], 6);
    assert_eq!(scratch.called()[6..], ["build/a/code", "build/b/code"], "nothing of a bad plan was started");
    for (attempt, reason) in
        [(2, "a → b → a"), (3, "zz"), (4, "depends on itself"), (5, "used twice"), (6, "../a")]
    {
        let prompt = scratch.prompt("plan", attempt);
        assert!(prompt.contains(reason), "attempt {attempt} is told {reason:?}: {prompt}");
    }
}

#[test]
fn j_28_a_plan_that_is_none_is_refused_before_anybody_is_asked_about_it() {
    let workflow = TASKS.replace("    ON_FAILURE\n", "").replace(
        "  - id: build\n",
        "  - { id: approve, decide: \"Build it?\", show: [tasks.yaml], answers: { approved: pass } }\n  - id: build\n",
    );
    let plans = "plan) case $GATEWRIGHT_ATTEMPT in
1) list='[ { id: a, depends_on: [b] }, { id: b, depends_on: [a] } ]';;
*) list='[ { id: a }, { id: b, depends_on: [a] } ]';;
esac; wrote tasks.yaml \"tasks: $list\";;";
    let scratch = Scratch::with(&workflow, plans);
    let run = scratch.run(10);
    assert_eq!(scratch.count("plan"), 2);
    assert!(scratch.prompt("plan", 2).contains("the dependencies run in a circle: a → b → a"));
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1, "nobody was asked about the circle");
    assert_eq!(scratch.published(&run, "tasks.yaml").unwrap().matches("depends_on").count(), 1);
}

#[test]
fn j_28_a_planner_that_never_gets_it_right_is_stopped_at_its_limit() {
    let plan = |cases: &str| {
        let scratch = Scratch::with(
            &TASKS.replace("    ON_FAILURE\n", "").replace("attempts_max: 9", "attempts_max: 3"),
            cases,
        );
        let run = scratch.run(11);
        (scratch.count("plan"), scratch.blocked_by(&run).0)
    };
    let another = "plan) wrote tasks.yaml \"tasks: [ { id: a, depends_on: [x$GATEWRIGHT_ATTEMPT] } ]\";;";
    assert_eq!(plan(another), (3, "attempts_exhausted".to_owned()));
    // The same plan twice is not tried a third time (J-27).
    assert_eq!(plan(&tasks("- { id: a, depends_on: [a] }")), (2, "same_error".to_owned()));
}

#[test]
fn j_31_a_disabled_stage_is_skipped_and_linked_past() {
    let workflow = "
stages:
  - id: design
    steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]
  - id: test
    enabled: false
    steps: [ { id: check, role: coder, writes: { test.md: any } } ]
  - id: final
    steps: [ { id: ship, role: coder, reads: [plan.md, test.md] } ]
";
    let scratch = Scratch::with(workflow, "plan) await go; wrote plan.md;;");
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    wait_for("the planner works", || (scratch.count("plan") == 1).then_some(()));
    assert_eq!(scratch.step(&run, "ship")["attempts"], 0, "ship now waits for plan itself");
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.called(), ["plan", "ship"]);
    assert_eq!(scratch.step_state(&run, "check"), "skipped");
    let skipped = scratch.events_of(&run, "step.skipped");
    assert_eq!(
        (&skipped[0]["step"], &skipped[0]["why"]),
        (&"check".into(), &"disabled".into()),
        "and recorded"
    );
}

#[test]
fn j_34_the_sample_of_the_interface_loads_and_every_command_has_its_help() {
    let scratch = Scratch::new();
    scratch.write(".gatewright/workflows/ship.yaml", SHIP);
    scratch.write(".gatewright/workflows/roles/planner.md", "Plan it.\n");
    scratch.write(".gatewright/workflows/reports/plan.yaml", PLAN_CONTRACT);
    scratch.config("  claude: { command: [sh] }\n  codex: { command: [sh] }");
    scratch.gatewright(&["lint"]).exits(0);
    let plan = scratch.gatewright(&["run", "ship", "Add a greeting", "--dry-run"]).exits(0);
    for word in ["plan", "approve-plan", "code", "review"] {
        assert!(plan.out.contains(word), "{}", plan.out);
    }
    assert_eq!(
        scratch.gatewright(&["list", "--json"]).exits(0).out.matches("\"id\"").count(),
        0,
        "a dry run is no run"
    );
    let help = scratch.gatewright(&["--help"]).exits(0).out;
    let commands = [
        "demo",
        "init",
        "doctor",
        "methods",
        "lint",
        "graph",
        "run",
        "status",
        "list",
        "why",
        "show",
        "logs",
        "events",
        "decisions",
        "answer",
        "approve",
        "reject",
        "resume",
        "stop",
        "abort",
        "restart",
        "skip",
        "rehearse",
    ];
    for command in commands {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in:\n{help}");
        scratch.gatewright(&[command, "--help"]).exits(0);
    }
}

const SHIP: &str = r#"workflow: ship
description: Plan it, agree on it, build it, prove it, review it.
dir: ".workflow/{{ run.id }}"
roles:
  planner:  { from: roles/planner.md }            # also .claude/agents/*.md, .github/agents/*.md, .codex/agents/*.toml
  coder:    { agent: claude, may_write: ["src/**", "tests/**"], prompt: "Build what plan.md says. Request: {{ request }}" }
  reviewer: { agent: codex, may_write: [], prompt: "Review the change against plan.md." }
checks:
  tests: { run: "cargo nextest run --profile ci", junit: target/nextest/ci/junit.xml, tests_min: 1 }
stages:
  - id: design
    steps:
      - { id: plan, role: planner, writes: { plan.md: reports/plan } }
      - { id: approve-plan, decide: "Build it this way?", show: [plan.md], answers: { approved: pass, changes-requested: { redo: plan } } }
  - id: build
    steps:
      - { id: code, role: coder, reads: [plan.md], checks: [tests], retry: { attempts_max: 2 } }
      - { id: review, review: code, by: reviewer, reads: [plan.md], block_at: medium, rounds_max: 3, on_exhausted: [ask] }
"#;
const PLAN_CONTRACT: &str = r#"markdown:
  header: { Status: [DONE], Agent: any, Timestamp: iso8601, "Input Files": any }
  sections:
    Summary: { bullets: [1, 5] }
    Requirements: { ids: "REQ-{n}", min: 1 }
    Implementation Plan: { sections: { Test Steps: { items_min: 1 }, Implementation Steps: { items_min: 1 } } }
    Affected Files: {}
    Handoff Notes: {}
"#;

#[test]
fn j_39_an_obligation_on_a_branch_that_was_not_visited_is_met_at_the_end() {
    let workflow = "
obligations: [ { name: audited, role: reviewer, else_run: audit } ]
steps:
  - { id: code, role: coder }
  - { id: look, role: reviewer, when: \"false\" }
  - { id: audit, role: reviewer, dormant: true }
";
    let scratch = Scratch::with(workflow, "");
    let run = scratch.run(0);
    assert_eq!(scratch.called(), ["code", "audit"]);
    assert_eq!(scratch.events_of(&run, "obligation.opened").len(), 1);
    let scratch = Scratch::with(&workflow.replace("\"false\"", "\"true\""), "");
    scratch.run(0);
    assert_eq!(scratch.called(), ["code", "look"], "one that was met on the way is not run again");
}

#[test]
fn j_39_an_obligation_that_nothing_meets_keeps_the_run_from_its_end() {
    let scratch = Scratch::with(
        "
obligations: [ { name: audited, step: look } ]
steps: [ { id: code, role: coder }, { id: look, role: reviewer, when: \"false\" } ]
",
        "",
    );
    let run = scratch.run(10);
    assert!(scratch.decision(&run, "D-1")["question"].as_str().unwrap().contains("audited"));
    scratch.gatewright(&["answer", &run, "D-1", "--cancel", "not today"]).exits(11);
    assert_eq!(scratch.blocked_by(&run).0, "obligation");
    assert!(scratch.blocked_by(&run).1.contains("audited"));
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(scratch.decision(&run, "D-2")["status"], "pending", "it is asked again");
}

#[test]
fn j_40_a_join_after_branches_that_all_failed_fails() {
    let scratch = Scratch::with(
        "
steps:
  - { id: a, role: coder, retry: { attempts_max: 1, on_exhausted: [fail] } }
  - { id: b, role: coder, needs: [], retry: { attempts_max: 1, on_exhausted: [fail] } }
  - { id: join, role: coder, needs: [a, b] }
",
        "a) exit 1;; b) exit 1;;",
    );
    let run = scratch.run(1);
    assert_eq!(scratch.state(&run), "failed");
    assert_eq!(scratch.count("join"), 0);
}

#[test]
fn j_40_a_fan_out_whose_items_all_failed_does_not_pass_whatever_its_policy() {
    let scratch = Scratch::with(
        &TASKS.replace("ON_FAILURE", "on_item_failure: note"),
        &format!("{}\nbuild/*) exit 3;;", tasks("- { id: a }\n- { id: b }")),
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step_state(&run, "build"), "blocked");
    scratch.agent(&format!("{}\nbuild/a/*) exit 3;;", tasks("- { id: a }\n- { id: b }")));
    let run = scratch.run(0);
    assert_eq!(scratch.step_state(&run, "build"), "passed_with_notes", "one of two: passed, and it is shown");
}

/// Changed while no attempt was at work: an edit beside one is held against whoever was working (J-48).
#[test]
fn j_41_a_list_that_changes_between_two_engines_is_read_by_identity() {
    let steps = "steps: [ { id: code, role: coder }, { id: go, decide: \"On?\", answers: { yes: pass } } ]";
    let workflow = TASKS
        .replace("ON_FAILURE", "parallel_max: 1")
        .replace("steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]", steps);
    let scratch = Scratch::with(&workflow, &tasks("- { id: a }\n- { id: b }\n- { id: c }"));
    let run = scratch.run(10);
    std::fs::write(
        scratch.run_dir(&run).join("tasks.yaml"),
        "tasks:\n- { id: x }\n- { id: c }\n- { id: a }\n",
    )
    .unwrap();
    let found = scratch.gatewright(&["doctor", "--json"]).out;
    assert!(found.contains("tasks.yaml"), "that items vanished from the list is reported: {found}");
    for item in ["a", "b", "c"] {
        scratch.gatewright(&["answer", &run, &format!("build/{item}/go"), "yes"]).exits(10);
    }
    let asked = text(&scratch.decision(&run, "D-1")["question"]);
    assert!(asked.contains("new: x; gone: b"), "it goes on meanwhile, and does not end: {asked}");
    scratch.gatewright(&["answer", &run, "D-1", "ignore"]).exits(0);
    assert_eq!(
        scratch.called(),
        ["plan", "build/a/code", "build/b/code", "build/c/code"],
        "by id, each once, as it began"
    );
}
