//! Money, time and quotas.

use crate::support::Scratch;

#[test]
fn j_42_no_watchdog_fires_while_a_person_is_waited_for() {
    let scratch = Scratch::with(
        "
budget: { wall: 1500ms }
steps:
  - { id: plan, role: planner, timeout: 1500ms, idle_timeout: 1500ms }
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder }
",
        "",
    );
    let mut terminal = scratch.terminal(&["run", "w", "Add a greeting"]);
    terminal.shows("agree > ", 1);
    // Longer than every limit above: what is proved is that this time does not count.
    std::thread::sleep(std::time::Duration::from_millis(1600));
    assert_eq!(scratch.state("latest"), "waiting");
    terminal.types("approved");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn j_43_a_budget_that_is_used_up_pauses_with_the_figures() {
    let scratch = Scratch::with(
        "budget: { launches: 1, usd: 5 }\nsteps: [ { id: plan, role: planner }, { id: code, role: coder } ]",
        "",
    );
    let ran =
        scratch.gatewright(&["run", "w", "Add a greeting"]).exits(12).says("1 of 1 launches").says("resume");
    let run = ran.id();
    assert_eq!(scratch.state(&run), "paused");
    assert_eq!(scratch.blocked_by(&run).0, "paused");
    let cost = &scratch.status(&run)["cost"];
    assert!(cost["usd"].is_null(), "nobody told a cost, which is not zero: {cost}");
    assert_eq!(cost["unpriced_attempts"], 1);
    scratch.gatewright(&["resume", &run]).exits(12);
    assert_eq!(scratch.count("code"), 0, "resuming alone raises nothing");
    scratch.gatewright(&["resume", &run, "--raise", "launches=2"]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code"]);
}

#[test]
fn j_43_the_budget_of_a_nested_run_pauses_too() {
    let scratch = Scratch::with(
        "steps: [ { id: nested, run: inner, budget: { launches: 1 } }, { id: code, role: coder } ]",
        "",
    );
    scratch.workflow("inner", "steps: [ { id: one, role: coder }, { id: two, role: coder } ]");
    let run = scratch.gatewright(&["run", "w", "Add a greeting"]).exits(12).id();
    assert_eq!(scratch.called(), ["nested/one"]);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("nested") && message.contains("1 of 1"), "{message}");
    scratch.gatewright(&["resume", &run, "--raise", "launches=9"]).exits(0);
    assert_eq!(scratch.called(), ["nested/one", "nested/two", "code"]);
}

#[test]
fn j_43_time_that_is_used_up_pauses_and_loses_no_work() {
    let scratch = Scratch::with(
        "budget: { wall: 200ms }\nsteps: [ { id: plan, role: planner }, { id: code, role: coder } ]",
        "plan) sleep 0.3; ok;;",
    );
    let run = scratch.run(12);
    assert!(scratch.blocked_by(&run).1.contains("budget"));
    assert_eq!(scratch.step_state(&run, "plan"), "passed", "what was under way is kept");
    scratch.gatewright(&["resume", &run, "--raise", "wall=1h"]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code"]);
}

#[test]
fn j_44_a_quota_with_a_reset_time_is_waited_for() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo 'error: usage limit reached, resets in 400ms' >&2; exit 1; fi; ok;;",
    );
    let run = scratch.run(0);
    let waiting = scratch.events_of(&run, "quota.waiting");
    let until = waiting[0]["until"].as_u64().unwrap();
    let started = scratch.events_of(&run, "step.attempt.started");
    assert_eq!(started.len(), 2, "it went on by itself, and the wait was no failed attempt");
    let again: jiff::Timestamp = started[1]["at"].as_str().unwrap().parse().unwrap();
    assert!(again.as_millisecond().cast_unsigned() >= until, "not before the time that was named");
}
