//! The same through the small method that everybody begins with.

use crate::support::Scratch;

#[test]
fn j_25_the_engine_runs_the_tests_itself_whatever_the_implementer_says() {
    let scratch = Scratch::new();
    let words = ["run", "quick", "Greet", "--agent", "rehearsal", "--set", "test=echo x >> $HOME/ran; false"];
    let run = scratch.gatewright(&words).exits(10).id();
    assert!(scratch.home().join("ran").exists());
    assert_eq!(scratch.step_state(&run, "implement"), "passed", "it said so");
    assert_eq!(scratch.step_state(&run, "checks"), "waiting", "and it was not so");
    assert_eq!(scratch.step(&run, "review")["attempts"], 0, "nobody reviews what is red");
}

#[test]
fn j_11_a_reviewer_who_is_never_content_is_heard_three_times() {
    let scratch = Scratch::new();
    scratch
        .write("never.yaml", "agents: { reviewer: { findings: [ { severity: high, problem: wrong } ] } }\n");
    let words = ["run", "quick", "Greet", "--agent", "rehearsal", "--scenario", "never.yaml"];
    let run = scratch.gatewright(&words).exits(10).id();
    assert_eq!(scratch.step(&run, "review")["rounds"], 3);
    assert_eq!(scratch.step_state(&run, "review"), "waiting", "a person decides");
}
