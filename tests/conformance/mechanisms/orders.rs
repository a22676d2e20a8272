//! `stop`, `abort`, `skip`, `resume`.

use crate::support::{Scratch, wait_for};

const TWO: &str = "steps: [ { id: a, role: coder }, { id: b, role: coder } ]";

#[test]
fn s4_32_stop_lets_what_runs_finish_and_resume_goes_on() {
    let scratch = Scratch::with(TWO, "a) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    scratch.gatewright(&["stop", &run]).exits(0);
    assert_eq!(scratch.state(&run), "running", "the attempt is let finish");
    scratch.mark("go");
    engine.ended().exits(12);
    assert_eq!((scratch.state(&run).as_str(), scratch.step_state(&run, "a").as_str()), ("paused", "passed"));
    assert_eq!(scratch.count("b"), 0);
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["a", "b"]);
    scratch.gatewright(&["stop", &run]).exits(4);
    scratch.gatewright(&["resume", &run]).exits(0);
}

#[test]
fn abort_ends_the_agents_and_the_run() {
    let scratch = Scratch::with(TWO, "a) (trap '' TERM; mark child; sleep 600) & mark at-work; sleep 600;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    scratch.marked("child");
    scratch.gatewright(&["abort", &run, "--reason", "not needed"]).exits(0);
    engine.ended().exits(1);
    wait_for("nothing of it lives", || scratch.processes().is_empty().then_some(()));
    assert_eq!(scratch.state(&run), "abandoned");
    assert_eq!(scratch.events_of(&run, "run.ended")[0]["reason"], "not needed");
    scratch.gatewright(&["resume", &run]).exits(1);
    scratch.gatewright(&["answer", &run, "x", "y"]).exits(4);
    assert_eq!(scratch.count("b"), 0);
}

#[test]
fn abort_ends_agents_that_an_engine_left_behind() {
    let scratch = Scratch::with(TWO, "a) mark at-work; sleep 600;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    assert!(!scratch.processes().is_empty(), "the agent goes on");
    scratch.gatewright(&["abort", &run]).exits(0);
    assert_eq!(scratch.processes(), []);
    assert_eq!(scratch.state(&run), "abandoned");
}

#[test]
fn skip_is_a_waiver_with_a_reason_that_is_shown_for_ever() {
    let scratch = Scratch::with(TWO, "a) exit 1;;");
    let run = scratch.run(11);
    scratch.gatewright(&["skip", &run, "a"]).exits(2);
    scratch.gatewright(&["skip", &run, "a", "--reason", " "]).exits(4);
    scratch.gatewright(&["skip", &run, "nothing", "--reason", "r"]).exits(4);
    scratch.gatewright(&["skip", &run, "a", "--reason", "done by hand"]).exits(0);
    assert_eq!(scratch.step_state(&run, "a"), "skipped");
    let status = scratch.status(&run);
    assert_eq!(status["waivers"][0]["reason"], "done by hand");
    assert!(scratch.gatewright(&["status", &run]).out.contains("done by hand"), "and people see it");
    scratch.gatewright(&["skip", &run, "b", "--reason", "r"]).exits(4);
}

#[test]
fn resume_gives_a_blocked_step_its_attempts_again() {
    let scratch = Scratch::with(TWO, "a) [ -e $HOME/mended ] || exit 1; ok;;");
    let run = scratch.run(11);
    assert_eq!(scratch.count("a"), 2);
    scratch.mark("mended");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.calls(), ["a 1 1", "a 2 1", "a 3 1", "b 1 1"]);
}

#[test]
fn s4_32_resume_is_defined_for_every_state() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block, away: abort } } ]",
        "",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["resume", &run]).exits(10);
    scratch.gatewright(&["answer", &run, "agree", "no"]).exits(11);
    scratch.gatewright(&["resume", &run]).exits(10);
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    scratch.gatewright(&["resume", &run]).exits(0);
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "agree", "away"]).exits(1);
    scratch.gatewright(&["resume", &run]).exits(1);
}

#[test]
fn a_detached_run_goes_on_in_the_background_after_an_answer() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }, { id: code, role: coder } ]",
        "code) await go; ok;;",
    );
    let run = scratch.gatewright(&["run", "w", "x", "--detach"]).exits(0).id();
    scratch.reaches(&run, "waiting");
    wait_for("its engine rests", || scratch.processes().is_empty().then_some(()));
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    wait_for("the answer's process is gone, the work goes on", || (scratch.count("code") == 1).then_some(()));
    assert_eq!(scratch.state(&run), "running");
    scratch.mark("go");
    scratch.reaches(&run, "done");
    wait_for("nothing is left", || scratch.processes().is_empty().then_some(()));
}

#[test]
fn abort_ends_a_check_that_is_under_way() {
    for steps in ["{ id: a, role: coder, checks: [long] }", "{ id: a, check: long }"] {
        let scratch = Scratch::with(
            &format!(
                "checks: {{ long: {{ run: \"touch $HOME/checking; sleep 600\" }} }}\nsteps: [ {steps} ]"
            ),
            "",
        );
        let engine = scratch.start(&["run", "w", "x"]);
        let run = engine.id();
        scratch.marked("checking");
        scratch.gatewright(&["abort", &run]).exits(0);
        engine.ended().exits(1);
        assert_eq!(scratch.processes(), [], "{steps}");
    }
}
