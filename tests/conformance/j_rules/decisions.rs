//! People and their answers.

use crate::support::Scratch;

const AGREE: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"This way?\", show: [plan.md], answers: { approved: pass, changes-requested: { redo: plan } } }
  - { id: code, role: coder, reads: [plan.md] }
";
const PLANS: &str = "plan) wrote plan.md \"plan $GATEWRIGHT_ATTEMPT\";;";

#[test]
fn j_15_an_answer_that_was_given_is_never_asked_again() {
    let scratch = Scratch::with(AGREE, PLANS);
    let run = scratch.run(10);
    // A stopped run takes the answer and starts nothing: exactly the moment between the two.
    scratch.gatewright(&["stop", &run]).exits(0);
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(12);
    assert_eq!(scratch.decision(&run, "agree")["status"], "answered");
    assert_eq!(scratch.count("code"), 0);
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code"]);
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1, "asked once");
    assert_eq!(scratch.events_of(&run, "decision.answered").len(), 1);
}

#[test]
fn j_15_an_engine_killed_right_after_an_answer_goes_on_without_asking() {
    let scratch = Scratch::with(AGREE, "plan) wrote plan.md;; code) mark at-work; await go; ok;;");
    let run = scratch.run(10);
    let answering = scratch.start(&["answer", &run, "agree", "approved"]);
    scratch.marked("at-work");
    answering.kill();
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["plan", "code"], "dispatched once");
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1);
}

#[test]
fn j_15_s1_17_a_correction_that_was_dispatched_is_not_dispatched_twice() {
    let scratch = Scratch::with(
        AGREE,
        "plan) if [ $GATEWRIGHT_ROUND = 2 ]; then mark correcting; await go; fi; wrote plan.md \"plan $GATEWRIGHT_ATTEMPT\";;",
    );
    let run = scratch.run(10);
    let answering = scratch.start(&["answer", &run, "agree", "changes-requested: shorter"]);
    scratch.marked("correcting");
    answering.kill();
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(scratch.calls(), ["plan 1 1", "plan 2 2"], "one correction");
    assert!(scratch.prompt("plan", 2).contains("shorter"));
    assert_eq!(
        scratch.decision(&run, "agree")["status"],
        "pending",
        "the same question again, about the new plan"
    );
    scratch.gatewright(&["approve", &run]).exits(0);
    assert_eq!(scratch.published(&run, "plan.md").as_deref(), Some("plan 2\n"));
}

#[test]
fn j_19_an_ambiguous_answer_is_no_approval() {
    let scratch = Scratch::with(AGREE, PLANS);
    let run = scratch.run(10);
    let ambiguous = [
        "okay",
        "ok",
        "I see",
        "interesting",
        "approved but rename it",
        "approved, if tests pass",
        "not approved",
        "approved?",
        "sure, maybe",
    ];
    for words in ambiguous {
        let ran = scratch.gatewright(&["answer", &run, "agree", words]).exits(4);
        assert!(ran.err.contains("approved"), "{words:?}: what is allowed is said: {}", ran.err);
        assert_eq!(scratch.decision(&run, "agree")["status"], "pending", "{words:?}");
    }
    assert_eq!(scratch.count("code"), 0);
    scratch.gatewright(&["answer", &run, "agree", "looks good"]).exits(0);
    assert_eq!(
        scratch.decision(&run, "agree")["answer"],
        "approved",
        "a synonym is stored as the canonical word"
    );
}

#[test]
fn j_19_an_approval_with_a_comment_is_refused_unless_confirmed() {
    let scratch = Scratch::with(AGREE, PLANS);
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "agree", "approved", "--comment", "rename it"]).exits(4);
    scratch.gatewright(&["answer", &run, "agree", "approved: rename it"]).exits(4);
    scratch.gatewright(&["approve", &run, "--comment", "rename it"]).exits(4);
    assert_eq!(scratch.decision(&run, "agree")["status"], "pending");
    scratch.gatewright(&["approve", &run, "--comment", "well done", "--yes"]).exits(0);
    let decision = scratch.decision(&run, "agree");
    assert_eq!((&decision["answer"], &decision["comment"]), (&"approved".into(), &"well done".into()));
}

#[test]
fn j_32_all_questions_of_an_agent_are_one_batch_and_it_is_told_the_answers() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then printf 'STATUS: NEEDS_INPUT\\nFILE: none\\nSUMMARY: I have questions.\\nNEXT_INPUT: none\\n---\\n- Q: Which colour?\\n- Q: Which size?\\n'; else ok; fi;;",
    );
    let run = scratch.run(10);
    let status = scratch.status(&run);
    let asked: Vec<&str> =
        status["decisions"].as_array().unwrap().iter().map(|one| one["question"].as_str().unwrap()).collect();
    assert_eq!(asked, ["Which colour?", "Which size?"], "both are there before anybody answers");
    let ids: Vec<String> = status["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["D-1", "D-2"], "S1-47: one record a question, numbered");
    scratch.gatewright(&["answer", &run, "D-1", "green"]).exits(10);
    assert_eq!(scratch.count("code"), 1, "one answer of two: not yet");
    scratch.gatewright(&["answer", &run, "D-2", "very \"large\""]).exits(0);
    assert_eq!(scratch.calls(), ["code 1 1", "code 2 1"]);
    let prompt = scratch.prompt("code", 2);
    for text in ["Which colour?", "green", "Which size?", "very \"large\""] {
        assert!(prompt.contains(text), "{text} in {prompt}");
    }
}

#[test]
fn j_32_questions_survive_a_crash_and_cost_no_try() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: slow, role: coder, needs: [] } ]",
        "
code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then printf 'STATUS: NEEDS_INPUT\\nFILE: none\\nSUMMARY: I have questions.\\nNEXT_INPUT: none\\n---\\n- Q: A?\\n- Q: B?\\n'; else ok; fi;;
slow) await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    crate::support::wait_for("both questions", || {
        (scratch.status(&run)["decisions"].as_array().unwrap().len() == 2).then_some(())
    });
    scratch.gatewright(&["answer", &run, "D-1", "one"]).exits(0);
    engine.kill();
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(scratch.decision(&run, "D-1")["status"], "answered", "what was acknowledged is kept");
    assert_eq!(scratch.status(&run)["decisions"].as_array().unwrap().len(), 2, "nothing is asked twice");
    scratch.gatewright(&["answer", &run, "D-2", "two"]).exits(0);
    assert_eq!(scratch.count("code"), 2, "to ask is no failed attempt");
}

#[test]
fn j_36_empty_words_and_objections_are_never_approval() {
    let scratch = Scratch::with(AGREE, PLANS);
    let run = scratch.run(10);
    for words in ["", "  ", "no", "I have concerns", "stop"] {
        scratch.gatewright(&["answer", &run, "agree", words]).exits(4);
        assert_eq!(scratch.decision(&run, "agree")["status"], "pending", "{words:?}");
    }
}

#[test]
fn j_36_without_a_terminal_nothing_is_asked_and_stdin_is_no_answer() {
    let scratch = Scratch::with(AGREE, PLANS);
    let ran = scratch
        .start_with(scratch.command(&["run", "w", "Add a greeting"]), Some("approved\nyes\n"))
        .ended()
        .exits(10);
    assert_eq!(scratch.decision(&ran.id(), "agree")["status"], "pending");
}

#[test]
fn j_36_at_a_terminal_an_empty_line_is_asked_again_and_end_of_input_leaves_it_pending() {
    let scratch = Scratch::with(AGREE, PLANS);
    let mut terminal = scratch.terminal(&["run", "w", "Add a greeting"]);
    terminal.shows("agree > ", 1);
    terminal.types("");
    terminal.shows("agree > ", 2);
    terminal.types("okay");
    terminal.shows("agree > ", 3);
    terminal.ends_input();
    assert_eq!(terminal.exit_code(), 10);
    assert_eq!(scratch.decision("latest", "agree")["status"], "pending");
    assert_eq!(scratch.count("code"), 0);
}

#[test]
fn j_36_at_a_terminal_an_answer_goes_on_there_and_then() {
    let scratch = Scratch::with(AGREE, PLANS);
    let mut terminal = scratch.terminal(&["run", "w", "Add a greeting"]);
    terminal.shows("agree > ", 1);
    terminal.types("approved");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(scratch.called(), ["plan", "code"]);
}

#[test]
fn j_37_an_answer_to_a_gate_that_is_not_open_is_refused() {
    let scratch = Scratch::with(
        "
steps:
  - { id: first, decide: \"One?\", answers: { approved: pass, no: block } }
  - { id: second, decide: \"Two?\", answers: { approved: pass, no: block } }
",
        "",
    );
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "second", "approved"]).exits(4).says("first");
    assert_eq!(scratch.decision(&run, "first")["status"], "pending");
    scratch.gatewright(&["answer", &run, "first", "approved"]).exits(10);
    scratch.gatewright(&["answer", &run, "first", "no"]).exits(4).says("approved");
    assert_eq!(scratch.decision(&run, "first")["answer"], "approved", "the first answer stands");
    scratch.gatewright(&["answer", &run, "second", "approved"]).exits(0);
    scratch.gatewright(&["answer", &run, "second", "no"]).exits(4);
    scratch.gatewright(&["answer", &run, "nothing", "approved"]).exits(4);
}

#[test]
fn j_37_of_two_people_who_answer_together_one_is_refused() {
    let scratch = Scratch::with(AGREE, PLANS);
    let run = scratch.run(10);
    let both = [
        scratch.start(&["answer", &run, "agree", "approved"]),
        scratch.start(&["answer", &run, "agree", "approved"]),
    ];
    let mut codes = both.map(|one| one.ended().code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 4]);
    assert_eq!(scratch.events_of(&run, "decision.answered").len(), 1);
    assert_eq!(scratch.count("code"), 1);
}

/// What an agent tries, with the variables it was given and without them.
fn agent_that_types(scratch: &Scratch, line: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_gatewright");
    let state = scratch.root().parent().unwrap().join("state");
    let state = format!("GATEWRIGHT_STATE_DIR='{}'", state.display());
    let bare = format!("setsid -w env -i HOME=$HOME PATH=$PATH {state} {binary} {line}");
    let ways = [
        format!("{state} {binary} {line}"),
        format!("env -u GATEWRIGHT_STEP -u GATEWRIGHT_ATTEMPT -u GATEWRIGHT_RUN_DIR {state} {binary} {line}"),
        bare.clone(),
    ];
    let tried = ways.map(|way| format!("{way} >> $HOME/said 2>&1; echo $? >> $HOME/codes")).join("\n");
    // An orphan, away from its parents and its session.
    format!(
        "code) {tried}\n( ( {bare} >> $HOME/said 2>&1; echo $? >> $HOME/codes; mark orphan ) & )\nawait orphan; ok;;"
    )
}

#[test]
fn j_38_an_agent_cannot_answer_approve_waive_or_give_orders() {
    let workflow = "
steps:
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder, needs: [] }
";
    for line in [
        "answer latest agree approved",
        "approve latest",
        "skip latest agree --reason because",
        "restart latest --stage default",
        "abort latest",
        "resume latest",
    ] {
        let scratch = Scratch::with(workflow, "");
        scratch.agent(&agent_that_types(&scratch, line));
        let run = scratch.run(10);
        let codes = std::fs::read_to_string(scratch.home().join("codes")).unwrap();
        let said = std::fs::read_to_string(scratch.home().join("said")).unwrap();
        assert_eq!(codes, "4\n4\n4\n4\n", "{line}: {said}");
        assert!(said.contains("agent"), "{said}");
        assert_eq!(scratch.decision(&run, "agree")["status"], "pending", "{line}");
        assert_eq!(scratch.status(&run)["waivers"].as_array().map(Vec::len), Some(0));
    }
}
