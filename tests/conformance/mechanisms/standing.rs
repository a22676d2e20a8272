//! What `status` says of groups, attempts and cost; approvals at the terminal; items that are kept.

use crate::support::{Scratch, wait_for};

#[test]
fn a_fan_out_waits_when_all_that_is_left_in_it_waits_for_a_person() {
    let scratch = Scratch::with(
        "steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    steps:
      - { id: do, role: coder }
      - { id: ok, decide: \"Good?\", answers: { approved: pass, no: block } }",
        "plan) wrote tasks.yaml '[{id: a}, {id: b}]';;\neach/b/do) mark at-work; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    wait_for("a waits", || (scratch.step_state(&run, "each/a/ok") == "waiting").then_some(()));
    assert_eq!(scratch.step_state(&run, "each"), "running", "b is at work");
    assert_eq!(scratch.step(&run, "each/b/do")["attempts"], 1);
    scratch.mark("go");
    engine.ended().exits(10);
    assert_eq!(scratch.step_state(&run, "each"), "waiting");
    let why = scratch.gatewright(&["why", &run, "each"]).out;
    assert!(why.contains("waits for a person") && why.contains("each/a/ok"), "{why}");
    scratch.gatewright(&["answer", &run, "each/a/ok", "approved"]).exits(10);
    scratch.gatewright(&["answer", &run, "each/b/ok", "approved"]).exits(0);
}

#[test]
fn a_fan_out_of_which_an_item_passed_with_notes_has_notes_itself() {
    let scratch = Scratch::with(
        "steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    steps:
      - { id: do, role: coder }
      - { id: look, review: do, by: reviewer, block_at: high }",
        "plan) wrote tasks.yaml '[{id: a}, {id: b}]';;\neach/a/look) demand low 'a nit';;\n*look) approve;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.step_state(&run, "each/a/look"), "passed_with_notes");
    let each = scratch.step(&run, "each");
    assert_eq!(each["state"], "passed_with_notes");
    assert!(each["notes"][0].as_str().unwrap().contains("each/a/look"), "{each:#}");
}

#[test]
fn j_43_a_cost_that_nobody_told_is_unknown_from_the_first_launch_on() {
    let scratch = Scratch::with("steps: [ { id: a, role: coder } ]", "a) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    for _ in 0..2 {
        let cost = scratch.status(&run)["cost"].clone();
        assert!(cost["usd"].is_null() && cost["tokens"].is_null(), "{cost:#}");
        let text = scratch.gatewright(&["status", &run]).out;
        assert!(text.contains("cost unknown") || text.contains("unknown, tokens unknown"), "{text}");
        assert!(!text.contains("$0.00"), "{text}");
        scratch.mark("go");
        wait_for("it is done", || (scratch.state(&run) == "done").then_some(()));
    }
    engine.ended().exits(0);
}

#[test]
fn j_19_at_the_terminal_an_approval_with_a_comment_is_confirmed_in_place() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }, { id: code, role: coder } ]",
        "",
    );
    let mut terminal = scratch.terminal(&["run", "w", "x"]);
    terminal.shows("agree > ", 1);
    terminal.types("approved: but rename it");
    terminal.shows("Really approve `agree` with this comment?", 1);
    terminal.types("hm");
    terminal.shows("agree > ", 2);
    assert_eq!(scratch.count("code"), 0);
    terminal.types("approved: thanks");
    terminal.shows("Really approve", 2);
    terminal.types("yes");
    assert_eq!(terminal.exit_code(), 0);
    let run = scratch.gatewright(&["list", "--json"]).out;
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let decision = scratch.decision(run["runs"][0]["id"].as_str().unwrap(), "agree");
    assert_eq!((&decision["answer"], &decision["comment"]), (&"approved".into(), &"thanks".into()));
}

#[test]
fn j_36_a_rejection_says_what_has_to_change() {
    let scratch = Scratch::with(
        "steps:
  - { id: plan, role: planner }
  - { id: agree, decide: \"Go?\", answers: { approved: pass, changes-requested: { redo: plan } } }",
        "",
    );
    let run = scratch.run(10);
    for nothing in ["", "  "] {
        scratch.gatewright(&["reject", &run, nothing]).exits(2).says("what has to change?");
    }
    assert_eq!(scratch.decision(&run, "agree")["status"], "pending");
    scratch.gatewright(&["reject", &run, "shorter"]).exits(10);
    assert_eq!(scratch.count("plan"), 2);
}

#[test]
fn j_41_a_changed_plan_runs_only_what_changed() {
    let scratch = Scratch::with(
        "steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    steps: [ { id: do, role: coder, writes: { \"{{ item.id }}.md\": any } } ]
  - { id: agree, decide: \"Good?\", answers: { approved: pass, changes-requested: { redo: plan } } }",
        "plan) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then wrote tasks.yaml '[{id: a, t: 1}, {id: b, t: 1}, {id: c, t: 1}]'; else wrote tasks.yaml '[{id: b, t: 2}, {id: a, t: 1}]'; fi;;
each/*/do) wrote $GATEWRIGHT_ITEM.md;;",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["reject", &run, "b differently, no c"]).exits(10);
    assert_eq!(["a", "b", "c"].map(|key| scratch.count(&format!("each/{key}/do"))), [1, 2, 1]);
    assert_eq!(scratch.events_of(&run, "fanout.item.kept")[0]["key"], "a");
    assert_eq!(scratch.events_of(&run, "fanout.item.dropped")[0]["key"], "c");
    assert_eq!(scratch.published(&run, "c.md"), None, "what was done for `c` does not count");
    assert!(scratch.published(&run, "a.md").is_some());
    scratch.gatewright(&["approve", &run]).exits(0);
    assert_eq!(scratch.step(&run, "each/a/do")["attempts"], 1);
}

#[test]
fn j_44_a_quota_that_takes_too_long_pauses_the_run() {
    let scratch = Scratch::with(
        "budget: { quota_wait: 30m }\nsteps: [ { id: a, role: coder } ]",
        "a) [ -e $HOME/filled ] && { ok; exit 0; }; echo 'usage limit reached, resets in 2h'; exit 1;;",
    );
    let run = scratch.run(12);
    let (_, message) = scratch.blocked_by(&run);
    assert!(
        message.contains("2h 00m") && message.contains("0h 30m") || message.contains("30m 00s"),
        "{message}"
    );
    let text = scratch.gatewright(&["status", &run]).out;
    assert!(text.contains(&format!("gatewright resume {run} --raise quota_wait=")), "{text}");
    scratch.gatewright(&["resume", &run]).exits(12);
    assert_eq!(scratch.count("a"), 1);
    let engine = scratch.start(&["resume", &run, "--raise", "quota_wait=4h"]);
    wait_for("it waits", || (scratch.state(&run) == "running").then_some(()));
    scratch.gatewright(&["abort", &run]).exits(0);
    engine.ended().exits(1);
}
