//! Rules of the methods that are mechanisms of the engine, each shown with a small workflow.

use crate::support::{Scratch, text, wait_for};

#[test]
fn s0_01_s0_04_a_run_has_its_own_name_and_folder() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]",
        "plan) wrote plan.md \"by $GATEWRIGHT_RUN\";;",
    );
    let runs = [scratch.run(0), scratch.run(0)];
    for run in &runs {
        let seconds = run.strip_prefix("w-add-a-greeting-").unwrap_or_else(|| panic!("{run}"));
        assert!(seconds.split('-').all(|part| part.parse::<u64>().is_ok()), "{run}");
        assert!(scratch.run_dir(run).ends_with(format!(".workflow/{run}")));
        assert_eq!(scratch.published(run, "plan.md").unwrap(), format!("by {run}\n"));
    }
    assert_ne!(runs[0], runs[1]);
}

#[test]
fn s0_10_s0_14_the_report_stays_on_disk_and_the_brief_is_what_the_engine_keeps() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]",
        "plan) wrote plan.md 'a very long report';;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.published(&run, "plan.md").unwrap(), "a very long report\n");
    assert_eq!(scratch.step(&run, "plan")["summary"], "Wrote plan.md.");
    let journal = scratch.gatewright(&["events", &run]).out;
    assert!(journal.contains("Wrote plan.md.") && !journal.contains("a very long report"), "{journal}");
}

#[test]
fn s0_54_nothing_is_built_before_the_tests_are_approved() {
    let scratch = Scratch::with(
        "steps:
  - { id: tests-design, role: coder }
  - { id: tests-review, review: tests-design, by: reviewer, rounds_max: 4 }
  - { id: implementation, role: coder }",
        "tests-review) [ $GATEWRIGHT_ROUND -lt 3 ] && { demand; exit 0; }; approve;;",
    );
    scratch.run(0);
    let called = scratch.called();
    assert_eq!(called.iter().filter(|step| *step == "tests-review").count(), 3);
    assert_eq!(called.last().unwrap(), "implementation");
    assert_eq!(scratch.count("implementation"), 1);
}

#[test]
fn s0_55_reviewers_work_in_the_background_and_all_are_waited_for() {
    let scratch = Scratch::with(
        "steps:
  - { id: code, role: coder }
  - { id: performance, review: code, by: reader }
  - { id: security, review: code, by: reader, needs: [code] }
  - { id: docs, role: coder, needs: [performance, security] }",
        "performance) mark p; await go; approve;;\nsecurity) mark s; await go; approve;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("p");
    scratch.marked("s");
    assert_eq!(scratch.count("docs"), 0);
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.most_at_once(&run, |step| step != "docs"), 2);
    assert_eq!(scratch.called().last().unwrap(), "docs");
}

#[test]
fn s1_35_only_the_engine_says_that_a_task_is_complete() {
    let scratch = Scratch::with(
        "checks: { tests: \"false\" }\nsteps: [ { id: task, role: coder, checks: [tests], retry: { attempts_max: 1 } } ]",
        "task) echo '{\"status\": \"OK\", \"summary\": \"completed, all gates passed\"}';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step_state(&run, "task"), "blocked");
    assert!(scratch.events_of(&run, "step.passed").is_empty());
}

#[test]
fn s2_06_in_the_right_order_nobody_is_asked() {
    let scratch = Scratch::with(
        "steps:
  - { id: specify, role: planner, writes: { spec.md: any } }
  - { id: plan, role: planner, reads: [spec.md], gates: [ { artifact: spec.md, soft: true } ] }",
        "specify) wrote spec.md;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.status(&run)["decisions"], serde_json::json!([]));
}

#[test]
fn s2_10_a_phase_is_marked_started_before_its_work_and_completed_apart() {
    let scratch =
        Scratch::with("steps: [ { id: design, role: planner } ]", "design) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    assert_eq!(scratch.events_of(&run, "step.attempt.started").len(), 1, "on record before the agent works");
    assert!(scratch.events_of(&run, "step.passed").is_empty());
    let design = scratch.step(&run, "design");
    assert!(design["started_at"].is_string() && design["ended_at"].is_null(), "{design:#}");
    scratch.mark("go");
    engine.ended().exits(0);
    assert!(scratch.step(&run, "design")["ended_at"].is_string());
}

#[test]
fn s2_12_s2_41_each_review_is_on_record_and_the_work_is_revised_on_its_feedback() {
    let scratch = Scratch::with(
        "steps:
  - { id: design, role: planner }
  - { id: look, review: design, by: reviewer, rounds_max: 3 }",
        "look) [ $GATEWRIGHT_ROUND = 1 ] && { demand high 'no interfaces named'; exit 0; }; approve;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.calls(), ["design 1 1", "look 1 1", "design 2 2", "look 2 2"]);
    assert!(scratch.prompt("design", 2).contains("no interfaces named"));
    let judged: Vec<String> =
        scratch.events_of(&run, "step.judged").iter().map(|event| text(&event["verdict"])).collect();
    assert_eq!(judged, ["revise", "pass"]);
    assert_eq!(scratch.step(&run, "look")["rounds"], 2);
}

#[test]
fn s2_15_s2_22_a_reviewer_is_another_process_and_who_produces_knows_nothing_of_it() {
    let scratch = Scratch::with(
        "steps:
  - { id: design, role: planner }
  - { id: look, review: design, by: reviewer }",
        "design) echo $$ > $HOME/one; echo 'a thought of my own'; ok;;\nlook) echo $$ > $HOME/two; approve;;",
    );
    scratch.run(0);
    let pid = |name: &str| std::fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_ne!(pid("one"), pid("two"));
    assert!(!scratch.prompt("look", 1).contains("a thought of my own"), "fresh context");
    let first = scratch.prompt("design", 1).to_lowercase();
    assert!(!first.contains("review"), "{first}");
}

#[test]
fn s2_35_only_blockers_block_where_the_bar_is_high() {
    for (severity, state) in
        [("warning", "passed_with_notes"), ("note", "passed_with_notes"), ("blocker", "blocked")]
    {
        let scratch = Scratch::with(
            "steps:
  - { id: spec, role: planner }
  - { id: look, review: spec, by: reviewer, block_at: high, rounds_max: 1 }",
            &format!(
                "look) echo '{{\"approved\": true, \"issues\": [{{\"severity\": \"{severity}\", \"description\": \"d\", \"location\": \"a:1\"}}], \"summary\": \"s\"}}';;"
            ),
        );
        let run = scratch.gatewright(&["run", "w", "x"]).id();
        assert_eq!(scratch.step_state(&run, "look"), state, "{severity}");
    }
}

#[test]
fn s4_02_s4_03_the_position_in_the_schedule_survives_the_engine() {
    let scratch = Scratch::with(
        "stages:
  - { id: explore, steps: [ { id: e, role: planner } ] }
  - { id: plan, steps: [ { id: p, role: planner } ] }
  - { id: implement, steps: [ { id: i, role: coder } ] }",
        "p) mark at-work; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    assert_eq!(["e", "p", "i"].map(|step| scratch.step_state(&run, step)), ["passed", "running", "pending"]);
    engine.kill();
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["e", "p", "i"]);
}

#[test]
fn s4_07_a_stage_starts_only_when_what_it_rests_on_is_there() {
    let scratch = Scratch::with(
        "stages:
  - { id: explore, steps: [ { id: e, role: planner, writes: { 0-explore.md: any }, retry: { attempts_max: 1, on_exhausted: [complete_with_notes] } } ] }
  - { id: plan, steps: [ { id: p, role: planner, gates: [ { artifact: 0-explore.md } ] } ] }",
        "e) [ -e $HOME/found ] && { wrote 0-explore.md; exit 0; }; ok;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.blocked_by(&run).0, "gate");
    assert!(scratch.blocked_by(&run).1.contains("0-explore.md"));
    assert_eq!(scratch.count("p"), 0);
    scratch.mark("found");
    scratch.gatewright(&["restart", &run, "--stage", "explore"]).exits(0);
    assert_eq!(scratch.count("p"), 1);
}

#[test]
fn s4_21_a_failure_is_recorded_with_its_class() {
    let scratch = Scratch::with(
        "checks: { build: { run: \"false\", class: build } }
steps:
  - { id: crash, role: coder, retry: { attempts_max: 2 } }
  - { id: build, role: coder, needs: [], checks: [build], retry: { attempts_max: 2 } }",
        "crash) exit 3;;",
    );
    let run = scratch.run(11);
    let classes: Vec<(String, String)> = scratch
        .events_of(&run, "step.retry.scheduled")
        .iter()
        .map(|event| (text(&event["step"]), text(&event["class"])))
        .collect();
    for (step, class) in [("crash", "crash"), ("build", "build")] {
        assert!(classes.contains(&(step.to_owned(), class.to_owned())), "{classes:?}");
        assert_eq!(scratch.step(&run, step)["failure"]["class"], class);
    }
}

#[test]
fn s3_24_between_two_gates_nobody_is_asked() {
    let scratch = Scratch::with(
        "steps:
  - { id: g1, decide: \"Right problem?\", answers: { approved: pass, no: block } }
  - { id: a, role: coder }
  - { id: b, role: coder }
  - { id: g2, decide: \"Ship?\", answers: { approved: pass, no: block } }",
        "",
    );
    let run = scratch.run(10);
    assert_eq!(scratch.called(), Vec::<String>::new());
    scratch.gatewright(&["answer", &run, "g1", "approved"]).exits(10);
    assert_eq!(scratch.called(), ["a", "b"]);
    wait_for("the next gate is open", || (scratch.decision(&run, "g2")["status"] == "pending").then_some(()));
    assert_eq!(scratch.status(&run)["decisions"].as_array().unwrap().len(), 2);
}
