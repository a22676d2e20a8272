//! Stages that run again.

use crate::support::Scratch;

const STAGES: &str = "
stages:
  - id: plan
    steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]
  - id: build
    steps:
      - { id: code, role: coder, writes: { code.md: any } }
      - { id: notes, role: coder, writes: { notes.md: any } }
  - id: test
    steps: [ { id: test, role: coder, writes: { test.md: any }, retry: { attempts_max: 1, on_exhausted: [ { restart_stage: build }, block ] } } ]
";

#[test]
fn s4_25_a_restart_runs_all_of_the_stage_again_and_leaves_earlier_ones_alone() {
    let scratch = Scratch::with(
        STAGES,
        "
plan) wrote plan.md;;
code) if [ $GATEWRIGHT_ATTEMPT = 2 ]; then ls $GATEWRIGHT_RUN_DIR > $HOME/there; fi; wrote code.md \"code $GATEWRIGHT_ATTEMPT\";;
notes) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then brief ERROR; else wrote notes.md; fi;;
test) wrote test.md;;",
    );
    let run = scratch.run(11);
    scratch.gatewright(&["restart", &run, "--stage", "nothing"]).exits(4);
    scratch.gatewright(&["restart", &run, "--stage", "build", "--reason", "other way"]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code", "notes", "code", "notes", "test"]);
    let there = std::fs::read_to_string(scratch.home().join("there")).unwrap();
    assert!(there.contains("plan.md"), "earlier outputs are preserved: {there}");
    assert!(!there.contains("code.md"), "those of the stage are unpublished: {there}");
    assert_eq!(scratch.published(&run, "code.md").as_deref(), Some("code 2\n"));
    let restarted = scratch.events_of(&run, "stage.restarted");
    assert_eq!((&restarted[0]["count"], &restarted[0]["reason"]), (&1.into(), &"other way".into()));
    assert!(scratch.prompt("code", 2).contains("other way"));
}

#[test]
fn s4_27_a_restart_across_stages_clears_both_and_resumes_at_the_earlier_one() {
    let scratch = Scratch::with(
        STAGES,
        "
plan) wrote plan.md;;
code) ls $GATEWRIGHT_RUN_DIR > $HOME/there; wrote code.md \"code $GATEWRIGHT_ATTEMPT\";;
notes) wrote notes.md;;
test) put test.md; if [ $GATEWRIGHT_ATTEMPT = 1 ]; then exit 1; fi; brief DONE test.md;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.called(), ["plan", "code", "notes", "test", "code", "notes", "test"]);
    let there = std::fs::read_to_string(scratch.home().join("there")).unwrap();
    assert!(
        there.contains("plan.md")
            && !there.contains("code.md")
            && !there.contains("notes.md")
            && !there.contains("test.md"),
        "{there}"
    );
    let restarted = scratch.events_of(&run, "stage.restarted");
    assert_eq!((&restarted[0]["stage"], &restarted[0]["count"]), (&"build".into(), &1.into()));
    assert!(
        restarted[0]["reason"].as_str().unwrap().contains("exited with 1"),
        "with the reason: {restarted:#?}"
    );
}

#[test]
fn s4_28_a_stage_that_a_profile_disables_is_skipped_also_by_a_restart() {
    let workflow = format!("{STAGES}profiles: {{ quick: {{ stages: {{ test: {{ enabled: false }} }} }} }}\n");
    let scratch = Scratch::with(
        &workflow,
        "plan) wrote plan.md;; code) wrote code.md;; notes) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then brief ERROR; else wrote notes.md; fi;;",
    );
    let run = scratch.gatewright(&["run", "w", "x", "--profile", "quick"]).exits(11).id();
    scratch.gatewright(&["restart", &run, "--stage", "build"]).exits(0);
    assert_eq!(scratch.count("test"), 0);
    assert_eq!(scratch.step_state(&run, "test"), "skipped");
}
