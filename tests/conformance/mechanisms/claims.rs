//! What an attempt claims about itself has to fit what it did.

use crate::support::Scratch;

/// "`attempts` = number of attempts started", "`GATEWRIGHT_ATTEMPT` (from 1 …)": a launch that never
/// happened, because an input was missing, is no attempt.
#[test]
fn s0_43_a_launch_that_never_happened_is_no_attempt() {
    let scratch = Scratch::with(
        "
steps:
  - { id: measure, role: coder, writes: { perf.md: any, performance.md: { optional: true } } }
  - { id: code, role: coder, reads: [performance.md] }
",
        "measure) wrote perf.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["attempts"], 0, "nothing was started");
    scratch.gatewright(&["resume", &run, "--use", "performance.md=perf.md"]).exits(0);
    assert_eq!(scratch.calls(), ["measure 1 1", "code 1 1"]);
}

/// "`FILE: none` only where the step writes nothing": such a brief does not fit what was written.
#[test]
fn s0_12_file_none_from_a_step_that_writes_is_no_well_formed_brief() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any }, reply: brief, retry: { attempts_max: 2 } } ]",
        "plan) put plan.md; brief DONE none;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "plan")["failure"]["class"], "malformed");
}
