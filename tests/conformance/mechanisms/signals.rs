//! Ctrl-C once is `stop`; twice, or a hang-up, is leaving while agents go on.

use rustix::process::Signal;

use crate::support::{Running, Scratch, wait_for};

const TWO: &str = "steps: [ { id: a, role: coder }, { id: b, role: coder } ]";

fn at_work() -> (Scratch, Running, String) {
    let scratch = Scratch::with(TWO, "a) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    (scratch, engine, run)
}

#[test]
fn the_first_interrupt_or_term_is_a_stop() {
    for signal in [Signal::INT, Signal::TERM] {
        let (scratch, engine, run) = at_work();
        engine.signal(signal);
        wait_for("it says so", || engine.err().contains("stopping").then_some(()));
        wait_for("it is recorded", || {
            (scratch.events_of(&run, "run.stop.requested").len() == 1).then_some(())
        });
        scratch.mark("go");
        engine.ended().exits(12);
        assert_eq!(
            (scratch.state(&run).as_str(), scratch.step_state(&run, "a").as_str()),
            ("paused", "passed")
        );
        scratch.gatewright(&["resume", &run]).exits(0);
        assert_eq!(scratch.called(), ["a", "b"]);
    }
}

#[test]
fn the_second_interrupt_leaves_and_agents_go_on() {
    let (scratch, engine, run) = at_work();
    engine.signal(Signal::INT);
    wait_for("it says so", || engine.err().contains("stopping").then_some(()));
    engine.signal(Signal::INT);
    engine.ended().exits(12).says("resume");
    assert!(!scratch.processes().is_empty(), "the agent works on");
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["a", "b"], "its result was collected, not made again");
}

#[test]
fn a_hang_up_leaves_at_once_and_agents_go_on() {
    let (scratch, engine, run) = at_work();
    engine.signal(Signal::HUP);
    engine.ended().exits(12);
    assert_eq!(scratch.state(&run), "interrupted");
    assert!(!scratch.processes().is_empty());
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["a", "b"]);
}
