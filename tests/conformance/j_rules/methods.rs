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

#[test]
fn j_21_a_reviewer_who_looks_again_is_told_what_it_found() {
    let scratch = Scratch::new();
    scratch.agent(
        r#"
implement) echo "$GATEWRIGHT_ATTEMPT" > src/b.txt
  printf '# Changed\n\n**Status:** DONE\n\n## Summary\n- it\n\n## Changed Files\n- src/b.txt\n\n## How It Was Checked\n- read\n\n## Open Points\n- None\n' > "$GATEWRIGHT_OUT/implementation.md"; brief DONE implementation.md;;
review) word=PASS; issue='- None'
  if [ "$GATEWRIGHT_ATTEMPT" = 1 ]; then word=FAIL; issue='1. **No lock**
   - Severity: High
   - Location: src/b.txt:1
   - Problem: two at once
   - Fix: take one'; fi
  printf '# Review\n\n**Status:** %s\n\n## Summary\nSeen.\n\n## Checked\n- all\n\n## Blocking Issues\n%s\n\n## Non-Blocking Issues\n- None\n' "$word" "$issue" > "$GATEWRIGHT_OUT/review.md"; brief "$word" review.md;;"#,
    );
    scratch.gatewright(&["run", "quick", "Greet"]).exits(0);
    let again = scratch.prompt("review", 2);
    assert!(again.contains("### Earlier findings\n- [High] src/b.txt:1: No lock"), "{again}");
    assert!(!scratch.prompt("review", 1).contains("### Earlier findings"));
}
