//! Stories that once ended badly: each stays here so that it does not again.

use crate::support::{Scratch, wait_for};

const SHOWN: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"Go?\", show: [plan.md], answers: { approved: pass, no: block } }
  - { id: code, role: coder, reads: [plan.md] }
";

/// Decision 26: a hand edit of what is shown is a question of its own, and the gate can be answered after it.
#[test]
fn j_35_a_hand_edit_of_a_shown_file_is_adopted_or_restored_and_then_judged() {
    for (word, content) in [("adopt", "edited\n"), ("restore", "content of plan.md\n")] {
        let scratch = Scratch::with(SHOWN, "plan) wrote plan.md;;");
        let run = scratch.run(10);
        std::fs::write(scratch.run_dir(&run).join("plan.md"), "edited\n").unwrap();
        scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(4);
        scratch.gatewright(&["answer", &run, "D-1", word]).exits(10);
        assert_eq!(scratch.published(&run, "plan.md").as_deref(), Some(content), "{word}");
        assert_eq!(scratch.count("code"), 0, "nothing was approved yet");
        scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
        assert_eq!(scratch.count("code"), 1);
    }
}

/// The work of an attempt at its published place is collected after the engine died.
#[test]
fn j_51_work_at_its_published_place_survives_the_engine() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]",
        "plan) echo planned > \"$GATEWRIGHT_RUN_DIR/plan.md\"; mark written; await go; brief DONE plan.md;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("written");
    engine.signal(rustix::process::Signal::KILL);
    let _ = engine.ended();
    scratch.mark("go");
    wait_for("the agent has ended", || scratch.processes().is_empty().then_some(()));
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.count("plan"), 1);
    assert_eq!(scratch.published(&run, "plan.md").as_deref(), Some("planned\n"));
}

/// Numbers that no machine can mean end as unknown, never as a broken run.
#[test]
fn j_43_absurd_numbers_of_agents_break_nothing() {
    let scratch = Scratch::with(
        "
steps:
  - { id: one, role: coder, retry: { attempts_max: 1, on_exhausted: [complete_with_notes] } }
  - { id: two, role: coder }
  - { id: three, role: coder }
",
        "
one) echo 'rate limit: retry after 18446744073709551615'; exit 1;;
two|three) echo '{\"tokens\": 18446744073709551615, \"usd\": 1e300}' > \"$GATEWRIGHT_OUT/usage.json\"; ok;;
",
    );
    let run = scratch.run(0);
    for field in ["tokens", "usd"] {
        assert!(scratch.status(&run)["cost"][field].is_null(), "unknown is not zero");
    }
}

/// A journal that somebody changed is an error for readers too, with what is wrong.
#[test]
fn a_changed_journal_is_no_truth_for_readers() {
    let scratch = Scratch::with(SHOWN, "plan) wrote plan.md;;");
    let run = scratch.run(10);
    let state = scratch.status(&run)["state_dir"].as_str().unwrap().to_owned();
    let journal = std::path::Path::new(&state).join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("\"attempt\":1", "\"attempt\":2", 1)).unwrap();
    for words in [["status", "latest"], ["why", "latest"], ["resume", "latest"], ["show", "latest"]] {
        let ran = scratch.gatewright(&words).exits(70);
        assert!(ran.err.contains("journal.jsonl"), "{words:?}: {}", ran.err);
    }
}

/// What a person accepts although it should not have passed is a waiver, shown for ever.
#[test]
fn s0_41_accepting_what_remains_is_a_waiver() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, rounds_max: 1, on_exhausted: [ask] }
",
        "review) demand high 'no test';;",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "D-1", "accept"]).exits(0);
    let waivers = scratch.status(&run)["waivers"].clone();
    assert_eq!(waivers[0]["step"], "review", "{waivers}");
}

/// An agent's last words count, however much it said before.
#[test]
fn j_14_the_reply_after_very_much_output_is_read() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        "code) head -c 70000000 /dev/zero | tr '\\0' 'x'; echo; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.step_state(&run, "code"), "passed");
}
