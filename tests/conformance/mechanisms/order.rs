//! What runs beside what, what waits for what, and what is left out.

use crate::support::{Scratch, wait_for};

/// Runs to the end while every agent waits until `together` of them are at work.
fn most_at_once(workflow: &str, config: &str, together: usize) -> usize {
    let scratch = Scratch::with(
        workflow,
        "plan) wrote tasks.yaml 'tasks: [ { id: 1 }, { id: 2 }, { id: 3 }, { id: 4 } ]';; *) await go; ok;;",
    );
    scratch.config(config);
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    wait_for("so many at work", || {
        (scratch.called().iter().filter(|step| *step != "plan").count() >= together).then_some(())
    });
    scratch.mark("go");
    engine.ended().exits(0);
    scratch.most_at_once(&run, |step| step != "plan")
}

const FOUR: &str = "
steps:
  - { id: a, role: reader, needs: [] }
  - { id: b, role: reader, needs: [] }
  - { id: c, role: reader, needs: [] }
  - { id: d, role: reader, needs: [] }
";

#[test]
fn parallel_max_of_the_run() {
    assert_eq!(most_at_once(&format!("parallel_max: 3\n{FOUR}"), "", 3), 3);
    assert_eq!(most_at_once(&format!("parallel_max: 1\n{FOUR}"), "", 1), 1);
}

#[test]
fn parallel_max_of_a_role() {
    let workflow = format!("roles: {{ reader: {{ prompt: p, may_write: [], parallel_max: 2 }} }}\n{FOUR}");
    assert_eq!(most_at_once(&workflow, "", 2), 2);
}

#[test]
fn parallel_max_of_an_agent() {
    assert_eq!(most_at_once(FOUR, "    parallel_max: 2", 2), 2);
}

#[test]
fn parallel_max_of_a_pool() {
    let workflow =
        format!("pools: {{ database: 1 }}\n{}", FOUR.replace("needs: []", "needs: [], pools: [database]"));
    assert_eq!(most_at_once(&workflow, "", 1), 1);
}

#[test]
fn parallel_max_of_a_fan_out() {
    let workflow = "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: build, for_each: tasks.yaml, parallel_max: 2, steps: [ { id: code, role: reader } ] }
";
    assert_eq!(most_at_once(workflow, "", 2), 2);
}

#[test]
fn s3_07_there_is_no_barrier_between_unrelated_branches() {
    let scratch = Scratch::with(
        "
steps:
  - { id: slow, role: reader }
  - { id: quick, role: reader, needs: [] }
  - { id: next, role: reader, needs: [quick] }
  - { id: last, role: reader, needs: [next] }
  - { id: join, role: reader, needs: [slow, last] }
",
        "slow) await go; ok;; last) mark at-last; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-last");
    assert_eq!(
        scratch.step_state(&run, "slow"),
        "running",
        "the other branch is through while this one works"
    );
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.called().last().map(String::as_str), Some("join"));
}

#[test]
fn a_fan_out_runs_items_as_soon_as_their_own_needs_are_met() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: build
    for_each: tasks.yaml
    key: name
    needs_of: after
    steps:
      - { id: code, role: reader, prompt: \"Build {{ item.title }}.\" }
      - { id: review, review: code, by: reader }
  - { id: ship, role: coder }
",
        "
plan) wrote tasks.yaml 'tasks: [ { name: c, after: [a, b], title: Three }, { name: a, title: One }, { name: b, title: Two }, { name: d, after: [a], title: Four } ]';;
build/b/code) await go; ok;;
build/d/review) mark d-done; approve;;
*/review) approve;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("d-done");
    assert_eq!(scratch.count("build/c/code"), 0, "c waits for b");
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.called().last().map(String::as_str), Some("ship"));
    assert!(scratch.prompt("build/c/code", 1).contains("Build Three."));
    let steps = scratch.status(&run)["steps"].as_array().unwrap().len();
    assert_eq!(steps, 3 + 4 * 2, "every item's steps are in the status");
}

#[test]
fn a_sub_run_is_part_of_its_parents_journal() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner }, { id: nested, run: inner }, { id: ship, role: coder } ]",
        "nested/review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand; else approve; fi;;",
    );
    scratch.workflow(
        "inner",
        "steps: [ { id: code, role: coder }, { id: review, review: code, by: reviewer } ]",
    );
    let run = scratch.run(0);
    assert_eq!(
        scratch.called(),
        ["plan", "nested/code", "nested/review", "nested/code", "nested/review", "ship"]
    );
    assert_eq!(scratch.step_state(&run, "nested"), "passed");
    assert_eq!(scratch.step(&run, "nested/review")["rounds"], 2);
    let listed: serde_json::Value =
        serde_json::from_str(&scratch.gatewright(&["list", "--json"]).out).unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "one run");
}

#[test]
fn a_profile_changes_steps_limits_and_stages() {
    let scratch = Scratch::with(
        "
stages:
  - id: design
    steps: [ { id: plan, role: planner } ]
  - id: build
    steps: [ { id: code, role: coder }, { id: review, review: code, by: reviewer, rounds_max: 3 } ]
profiles:
  lean: { stages: { design: { enabled: false } }, steps: { review: { rounds_max: 1 } } }
",
        "review) demand;;",
    );
    let run = scratch.gatewright(&["run", "w", "x", "--profile", "lean"]).exits(11).id();
    assert_eq!(scratch.called(), ["code", "review"]);
    assert_eq!(scratch.status(&run)["profile"], "lean");
    assert_eq!(scratch.step_state(&run, "plan"), "skipped");
}

#[test]
fn s1_08_a_blocked_reply_with_a_reason_leaves_the_profile() {
    let scratch = Scratch::with(
        "
stages:
  - id: design
    steps: [ { id: plan, role: planner } ]
  - id: build
    steps: [ { id: code, role: coder, reply: universal } ]
profiles:
  lean: { stages: { design: { enabled: false } }, escalate_to: full }
  full: {}
",
        r#"code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo '{"status": "BLOCKED", "summary": "too big", "artifacts": {}, "gates": {}, "next": {}, "reason": "complexity"}'; else echo '{"status": "OK", "summary": "ok", "artifacts": {}, "gates": {}, "next": {}}'; fi;;"#,
    );
    let run = scratch.gatewright(&["run", "w", "x", "--profile", "lean"]).exits(0).id();
    assert_eq!(scratch.called(), ["code", "plan", "code"], "from the start of the fuller way");
    assert_eq!(scratch.status(&run)["profile"], "full");
    assert_eq!(scratch.events_of(&run, "run.profile.escalated")[0]["reason"], "complexity");
}

#[test]
fn s2_05_past_a_soft_gate_only_after_a_person_confirms() {
    let workflow = "
steps:
  - { id: plan, role: planner }
  - { id: code, role: coder, gates: [ { expr: \"settings.ready\", soft: true } ] }
settings: { ready: false }
";
    let scratch = Scratch::with(workflow, "");
    let run = scratch.run(10);
    assert_eq!(scratch.count("code"), 0);
    let status = scratch.status(&run);
    let decision = &status["decisions"][0];
    assert_eq!(
        (&decision["about"], &decision["answers"]),
        (&"gate".into(), &serde_json::json!(["proceed", "stop"]))
    );
    scratch.gatewright(&["answer", &run, "D-1", "proceed"]).exits(0);
    assert_eq!(scratch.count("code"), 1);
    assert_eq!(scratch.events_of(&run, "gate.waived").len(), 1, "and that is on record");
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "D-1", "stop"]).exits(11);
    let run = scratch.gatewright(&["run", "w", "x", "--set", "ready=true"]).exits(0).id();
    assert_eq!(scratch.status(&run)["decisions"], serde_json::json!([]), "S2-06: in order, silently");
}

#[test]
fn a_condition_that_does_not_hold_skips_and_what_follows_goes_on() {
    let workflow = "
steps:
  - { id: plan, role: planner }
  - { id: design, role: coder, when: \"settings.ui and steps.plan.state == 'passed'\" }
  - { id: code, role: coder }
settings: { ui: false }
";
    let scratch = Scratch::with(workflow, "");
    let run = scratch.run(0);
    assert_eq!(scratch.called(), ["plan", "code"]);
    assert_eq!(scratch.step_state(&run, "design"), "skipped");
    assert_eq!(scratch.events_of(&run, "step.skipped")[0]["why"], "condition");
    scratch.gatewright(&["run", "w", "x", "--set", "ui=true"]).exits(0);
    assert_eq!(scratch.called()[2..], ["plan", "design", "code"]);
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_no_reason_to_skip() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner }, { id: code, role: coder, when: \"steps.plan.summary.nothing.there\" } ]",
        "",
    );
    let run = scratch.run(11);
    assert_eq!((scratch.count("code"), scratch.blocked_by(&run).0.as_str()), (0, "gate"));
}

/// A stage whose first step may be left out: its gate is asked of whoever begins then.
fn gated_stage(first: &str, gate: &str) -> String {
    format!(
        "settings: {{ on: true }}
stages:
  - {{ id: before, steps: [ {{ id: plan, role: planner, writes: {{ plan.md: {{ contract: any, optional: true }} }} }} ] }}
  - id: after
    gates: [ {gate} ]
    steps:
      - {{ id: first, role: reader{first} }}
      - {{ id: second, role: reader }}
      - {{ id: third, role: reader }}
profiles:
  whole: {{}}
  less: {{ steps: {{ first: {{ enabled: false }} }} }}"
    )
}

#[test]
fn j_20_the_gate_of_a_stage_is_asked_of_whichever_step_begins_it() {
    let gate = "{ artifact: plan.md }";
    for (first, flags) in [
        ("", &[][..]),
        (", enabled: false", &[]),
        ("", &["--profile", "less"]),
        (", when: \"false\"", &[]),
        (", when: settings.on", &["--set", "on=false"]),
        (", enabled: $on", &["--set", "on=false"]),
    ] {
        let scratch = Scratch::with(&gated_stage(first, gate), "");
        let words = [&["run", "w", "x"][..], flags].concat();
        let run = scratch.gatewright(&words).exits(11).id();
        assert_eq!(scratch.called(), ["plan"], "{first} {flags:?}");
        assert_eq!(scratch.blocked_by(&run).0, "gate", "{first} {flags:?}");
        // Beside each other, too, and behind two that are left out.
        let both = gated_stage(first, gate)
            .replace("id: second, role: reader", "id: second, role: reader, when: \"false\"");
        scratch.workflow("w", &both);
        let run = scratch.gatewright(&words).exits(11).id();
        assert_eq!(scratch.called(), ["plan", "plan"], "{first} {flags:?}");
        assert_eq!(scratch.blocked_by(&run).0, "gate", "{first} {flags:?}");
    }
}

#[test]
fn a_soft_gate_of_a_stage_is_asked_once() {
    let gate = "{ expr: \"false\", soft: true }";
    for (first, called) in [
        (", when: settings.on", &["plan", "first", "second", "third"][..]),
        (", when: \"false\"", &["plan", "second", "third"]),
    ] {
        let scratch = Scratch::with(&gated_stage(first, gate), "");
        let run = scratch.run(10);
        scratch.gatewright(&["answer", &run, "D-1", "proceed"]).exits(0);
        assert_eq!(scratch.called(), called, "{first}");
        assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1, "{first}");
    }
    // The same for one that a person waives.
    let scratch = Scratch::with(&gated_stage(", when: settings.on", "{ expr: \"false\" }"), "");
    let run = scratch.run(11);
    scratch.gatewright(&["skip", &run, "first", "--gate", "--reason", "good enough"]).exits(0);
    assert_eq!(scratch.called(), ["plan", "first", "second", "third"]);
}
