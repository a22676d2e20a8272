//! Answers: while an engine holds the run and with none, in batches, by route, put off.

use crate::support::{Scratch, text, wait_for};

const AGREE_BESIDE_WORK: &str = "
steps:
  - { id: slow, role: reader }
  - { id: agree, needs: [], decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: reader, needs: [agree] }
";

#[test]
fn an_answer_while_an_engine_holds_the_run_is_acknowledged_by_it() {
    let scratch = Scratch::with(AGREE_BESIDE_WORK, "slow) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    wait_for("it is asked", || (scratch.decision(&run, "agree")["status"] == "pending").then_some(()));
    scratch.gatewright(&["answer", &run, "agree", "perhaps"]).exits(4).says("perhaps");
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    assert_eq!(scratch.decision(&run, "agree")["status"], "answered", "durable when the command is back");
    wait_for("the engine goes on with it", || (scratch.count("code") == 1).then_some(()));
    scratch.gatewright(&["answer", &run, "agree", "no"]).exits(4);
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.events_of(&run, "decision.answered")[0]["channel"], "cli");
}

#[test]
fn an_answer_with_no_engine_goes_on_in_its_own_process() {
    let scratch = Scratch::with(AGREE_BESIDE_WORK, "");
    let run = scratch.run(10);
    assert_eq!(scratch.called(), ["slow"], "it went on while anything else could progress");
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    assert_eq!(scratch.state(&run), "done");
}

#[test]
fn a_file_answers_a_batch() {
    let scratch = Scratch::with(
        "
steps:
  - { id: one, decide: \"One?\", answers: { approved: pass, no: block } }
  - { id: two, needs: [], decide: \"Two?\", answers: { left: pass, right: pass } }
",
        "",
    );
    let run = scratch.run(10);
    scratch.write("wrong.yaml", "one: approved\nthree: left\n");
    scratch.gatewright(&["answer", &run, "--file", "wrong.yaml"]).exits(4).says("three");
    scratch.write("unclear.yaml", "one: approved\ntwo: perhaps\n");
    scratch.gatewright(&["answer", &run, "--file", "unclear.yaml"]).exits(4).says("perhaps");
    scratch.write("broken.yaml", "one: [approved\n");
    scratch.gatewright(&["answer", &run, "--file", "broken.yaml"]).exits(2);
    assert_eq!(scratch.decision(&run, "one")["status"], "pending", "all or nothing");
    scratch.write("right.yaml", "one: approved\ntwo: right\n");
    scratch.gatewright(&["answer", &run, "--file", "right.yaml"]).exits(0);
    assert_eq!(scratch.decision(&run, "two")["answer"], "right");
}

#[test]
fn approve_and_reject_are_short_forms() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"This way?\", show: [plan.md], answers: { approved: pass, changes-requested: { redo: plan } } }
",
        "plan) wrote plan.md \"plan $GATEWRIGHT_ATTEMPT\";;",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["reject", &run, "make it \"shorter\""]).exits(10);
    assert!(scratch.prompt("plan", 2).contains("make it \"shorter\""));
    let decision = scratch.decision(&run, "agree");
    assert_eq!(decision["status"], "pending", "S1-16: the same decision, asked again");
    assert_eq!(decision["history"][0]["answer"], "changes-requested");
    scratch.gatewright(&["approve", &run]).exits(0);
    scratch.gatewright(&["approve", &run]).exits(4);
    scratch.gatewright(&["reject", &run, "too late"]).exits(4);
}

#[test]
fn a_route_says_who_makes_the_change() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner }
  - { id: code, role: coder }
  - { id: agree, decide: \"Ship?\", answers: { approved: pass, changes-requested: { redo: plan, routes: { coder: code } } } }
",
        "",
    );
    let run = scratch.run(10);
    scratch
        .gatewright(&["answer", &run, "agree", "changes-requested", "--comment", "c", "--route", "nobody"])
        .exits(4)
        .says("coder");
    scratch
        .gatewright(&["answer", &run, "agree", "changes-requested", "--comment", "c", "--route", "coder"])
        .exits(10);
    assert_eq!(scratch.called(), ["plan", "code", "code"]);
    scratch.gatewright(&["answer", &run, "agree", "changes-requested", "--comment", "all of it"]).exits(10);
    assert_eq!(scratch.called()[3..], ["plan", "code"], "what rests on the plan runs again too");
}

#[test]
fn s1_19_a_decision_that_is_put_off_blocks_with_the_reason() {
    let scratch = Scratch::with(AGREE_BESIDE_WORK, "");
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "agree", "--cancel", " "]).exits(4);
    scratch.gatewright(&["answer", &run, "agree", "--cancel", "next week"]).exits(11);
    assert_eq!(scratch.blocked_by(&run).0, "mandatory_user_decision_missing");
    assert!(scratch.blocked_by(&run).1.contains("next week"));
    assert_eq!(scratch.decision(&run, "agree")["status"], "cancelled");
    assert_eq!(scratch.count("code"), 0);
}

#[test]
fn s1_14_a_decision_is_pending_on_disk_before_anybody_is_asked() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } } ]",
        "",
    );
    let terminal = scratch.terminal(&["run", "w", "x"]);
    terminal.shows("agree > ", 1);
    assert_eq!(
        scratch.decision("latest", "agree")["status"],
        "pending",
        "durable while the question is shown"
    );
    let mut terminal = terminal;
    terminal.ends_input();
    assert_eq!(terminal.exit_code(), 10);
}

#[test]
fn s1_44_after_an_answer_the_step_that_asked_goes_on() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner }, { id: code, role: coder }, { id: after, role: coder } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then brief NEEDS_INPUT none 'Which way?'; else ok; fi;;",
    );
    let run = scratch.run(10);
    assert_eq!(scratch.step_state(&run, "code"), "waiting");
    assert_eq!(scratch.decision(&run, "D-1")["question"], "Which way?");
    assert_eq!(scratch.decision(&run, "D-1")["step"], "code");
    scratch.gatewright(&["answer", &run, "D-1", "left"]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code", "code", "after"]);
}

#[test]
fn s1_46_an_agents_question_never_ends_the_run() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then brief NEEDS_INPUT none 'Which way?'; else ok; fi;;",
    );
    let mut terminal = scratch.terminal(&["run", "w", "x"]);
    terminal.shows("Which way?", 1);
    terminal.shows("D-1 > ", 1);
    terminal.types("left, of course");
    assert_eq!(terminal.exit_code(), 0);
    assert!(scratch.prompt("code", 2).contains("left, of course"));
}

#[test]
fn s1_47_questions_are_numbered_on_after_a_resume() {
    let scratch = Scratch::with(
        "decisions: { prefix: UD- }\nsteps: [ { id: a, role: coder }, { id: b, role: coder } ]",
        "*) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then brief NEEDS_INPUT none \"About $GATEWRIGHT_STEP?\"; else ok; fi;;",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["stop", &run]).exits(0);
    scratch.gatewright(&["resume", &run]).exits(10);
    scratch.gatewright(&["answer", &run, "UD-1", "x"]).exits(10);
    assert_eq!(scratch.decision(&run, "UD-2")["question"], "About b?");
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 2);
}

#[test]
fn s1_50_an_acknowledged_answer_survives_the_engine() {
    let scratch = Scratch::with(AGREE_BESIDE_WORK, "slow) mark at-work; await go; ok;; code) await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    wait_for("it is asked", || (scratch.decision(&run, "agree")["status"] == "pending").then_some(()));
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    engine.kill();
    assert_eq!(scratch.decision(&run, "agree")["answer"], "approved");
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1, "never asked again");
}

#[test]
fn a_decision_about_a_file_that_changed_since_it_was_shown_is_asked_again() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"This way?\", show: [plan.md], answers: { approved: pass, no: block } }
  - { id: code, role: coder, reads: [plan.md] }
",
        "plan) wrote plan.md;;",
    );
    let run = scratch.run(10);
    std::fs::write(scratch.run_dir(&run).join("plan.md"), "something else\n").unwrap();
    let ran = scratch.gatewright(&["approve", &run]).exits(4);
    assert!(ran.err.contains("plan.md"), "J-35: {}", ran.err);
    assert_ne!(text(&scratch.decision(&run, "agree")["status"]), "answered");
    assert_eq!(scratch.count("code"), 0);
}
