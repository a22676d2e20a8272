//! What happens when a limit is used up.

use crate::support::{Scratch, text};

#[test]
fn s1_67_two_retries_then_blocked_with_the_reason() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 3 }, reply: universal }, { id: after, role: coder } ]",
        "code) echo 'not JSON';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.called(), ["code", "code", "code"], "and nobody substitutes for the agent");
    assert_eq!(scratch.blocked_by(&run).0, "attempts_exhausted");
    assert!(scratch.blocked_by(&run).1.contains("malformed"), "{:?}", scratch.blocked_by(&run));
}

#[test]
fn s2_13_at_the_limit_a_phase_is_completed_with_notes_and_the_user_sees_them() {
    let scratch = Scratch::with(
        "
steps:
  - { id: spec, role: planner }
  - { id: review, review: spec, by: reviewer, rounds_max: 2, on_exhausted: [complete_with_notes] }
  - { id: code, role: coder }
",
        "review) demand high 'no acceptance criteria';;",
    );
    let ran = scratch.gatewright(&["run", "w", "x"]).exits(0);
    assert_eq!(scratch.called(), ["spec", "review", "spec", "review", "code"]);
    let review = scratch.step(&ran.id(), "review");
    assert_eq!((&review["state"], &review["rounds"]), (&"passed_with_notes".into(), &2.into()));
    assert!(review["findings"].to_string().contains("no acceptance criteria"));
    let status = scratch.gatewright(&["status", &ran.id()]).exits(0).out;
    assert!(status.contains("1 blocking finding"), "never a silent pass: {status}");
    assert_eq!(scratch.events_of(&ran.id(), "loop.exhausted").len(), 1);
}

#[test]
fn s0_41_an_exhausted_loop_asks_accept_or_abort() {
    let workflow = "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, rounds_max: 1, on_exhausted: [ask] }
  - { id: after, role: coder }
";
    let scratch = Scratch::with(workflow, "review) if [ -e $HOME/content ]; then approve; else demand; fi;;");
    let run = scratch.run(10);
    let decision = scratch.decision(&run, "D-1");
    assert!(text(&decision["question"]).contains("1 blocking finding"), "{decision}");
    assert_eq!(decision["answers"], serde_json::json!(["accept", "again", "abort"]));
    scratch.gatewright(&["answer", &run, "D-1", "accept"]).exits(0);
    assert_eq!(scratch.step_state(&run, "review"), "passed_with_notes", "a waiver is shown as one");
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "D-1", "abort"]).exits(1);
    assert_eq!(scratch.state(&run), "abandoned");
    let run = scratch.run(10);
    scratch.mark("content");
    scratch.gatewright(&["answer", &run, "D-1", "again"]).exits(0);
    assert_eq!(scratch.step(&run, "review")["rounds"], 2, "one more round, by a person's word");
}

#[test]
fn s4_24_after_the_last_attempt_a_person_has_every_way_on() {
    let workflow = "
stages:
  - id: plan
    steps: [ { id: plan, role: planner } ]
  - id: build
    steps:
      - { id: first, role: coder }
      - id: code
        role: coder
        retry:
          attempts_max: 1
          on_exhausted: [ { ask: { retry: again, restart: { restart: build }, back: { restart: plan }, skip: skip, abort: abort } } ]
      - { id: after, role: coder }
";
    let all = ["plan", "first", "code"];
    for (answer, more, code) in [
        ("retry", &["code", "after"][..], 0),
        ("restart", &["first", "code", "after"], 0),
        ("back", &["plan", "first", "code", "after"], 0),
        ("skip", &["after"], 0),
        ("abort", &[], 1),
    ] {
        let scratch = Scratch::with(workflow, "code) [ -e $HOME/mended ] || exit 1; ok;;");
        let run = scratch.run(10);
        scratch.mark("mended");
        scratch.gatewright(&["answer", &run, "D-1", answer]).exits(code);
        assert_eq!(scratch.called(), [&all[..], more].concat(), "{answer}");
        if answer == "skip" {
            assert_eq!(scratch.status(&run)["waivers"][0]["step"], "code", "with a warning for ever");
        }
        if answer == "abort" {
            assert_eq!(scratch.events_of(&run, "run.ended").len(), 1, "its state is saved");
        }
    }
}

#[test]
fn a_pause_between_attempts_is_kept() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 2, backoff: 300ms } } ]",
        "code) [ $GATEWRIGHT_ATTEMPT = 2 ] || exit 1; ok;;",
    );
    let run = scratch.run(0);
    let scheduled = scratch.events_of(&run, "step.retry.scheduled")[0]["at"].clone();
    assert!(!scheduled.is_null());
    let started = scratch.events_of(&run, "step.attempt.started");
    let at = |place: usize| {
        started[place]["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
    };
    assert!(at(1) - at(0) >= 300, "{started:#?}");
}
