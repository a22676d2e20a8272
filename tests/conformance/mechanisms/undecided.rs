//! Promises of the interface that do not hold yet and are not this crate's to mend; see the report.

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
