//! Questions to people: who may answer what, when, and what an answer is bound to.

mod common;

use std::collections::BTreeMap;

use common::{Bench, draft, hash, questions, reply, writing};
use gatewright_core::{
    Rejected,
    event::Cause,
    fact::{AttemptReport, InputProblem, ProcessEnd},
    ids::RoleId,
    input::Input,
    outcome::Outcome,
    plan::{AnswerEffect, Hardness, Kind},
    state::{DecisionStatus, RunStatus},
};

fn gate() -> Bench {
    let mut run = draft()
        .agent("design")
        .writes("design.md")
        .decision("approve", &["design"])
        .show(&["design.md"])
        .needs(&["design"])
        .agent("plan")
        .needs(&["approve"])
        .run();
    run.ends("design", writing(reply(Outcome::Done), &[("design.md", "one")]));
    run
}

#[test]
fn s1_13_and_j_20_nothing_behind_the_gate_starts_without_approval() {
    let mut run = gate();
    run.wants("ask approve");
    run.is("plan", "pending");
    run.later(10_000_000);
    run.is("plan", "pending");
    run.answer("approve", "approved");
    run.wants("run plan#1");
}

#[test]
fn s1_14_the_question_is_on_record_before_anybody_is_asked() {
    let run = gate();
    assert_eq!(run.state.decisions["approve"].status, DecisionStatus::Pending);
    assert_eq!(run.count("decision.opened"), 1);
}

#[test]
fn s1_15_only_the_canonical_word_is_stored() {
    let mut run = gate();
    run.answer("approve", "  Go ahead! ");
    assert_eq!(run.state.decisions["approve"].answer.as_deref(), Some("approved"));
}

#[test]
fn s1_16_changes_go_to_the_author_and_the_same_decision_is_asked_again() {
    let mut run = gate();
    run.answer("approve", "changes: name the risks");
    run.wants("run design#2");
    assert!(matches!(
        run.state.steps["design"].cause.as_deref(),
        Some(Cause::Changes { comment: Some(comment), .. }) if comment == "name the risks"
    ));
    run.ends("design", writing(reply(Outcome::Done), &[("design.md", "two")]));
    run.wants("ask approve");
    let decision = &run.state.decisions["approve"];
    assert_eq!(decision.history.len(), 1);
    assert_eq!(decision.decision.bound["design.md"], hash("two"));
}

#[test]
fn s1_17_and_j_15_a_correction_is_dispatched_once_whatever_was_durable() {
    for keep in 1..=4 {
        let mut run = gate();
        let before = run.log.len();
        run.answer("approve", "changes: more");
        run.crash_keeping((before + keep).min(run.log.len()));
        run.wants("run design#2");
        assert_eq!(run.count("decision.answered"), 1, "it is not asked again");
        run.is("approve", "pending");
    }
}

#[test]
fn j_15_an_answer_is_never_asked_for_twice() {
    for keep in 1..=3 {
        let mut run = gate();
        let before = run.log.len();
        run.answer("approve", "approved");
        run.crash_keeping((before + keep).min(run.log.len()));
        run.wants("run plan#1");
    }
}

#[test]
fn s1_22_corrections_have_no_limit() {
    let mut run = gate();
    for round in 2..=20 {
        run.answer("approve", "changes: again");
        run.ends("design", writing(reply(Outcome::Done), &[("design.md", &format!("v{round}"))]));
    }
    run.wants("ask approve");
}

#[test]
fn j_19_ambiguous_words_are_no_approval() {
    let mut run = gate();
    for text in ["okay", "approved but rename it", "", "interesting", "approve?", "let me think about it"] {
        assert!(
            matches!(run.try_answer("approve", text), Err(Rejected::NotAnAnswer { .. })),
            "`{text}` was taken for an answer"
        );
    }
    assert!(matches!(
        run.try_answer("approve", "approved: but rename it"),
        Err(Rejected::ApprovalWithComment { .. })
    ));
    run.wants("ask approve");
    let mut confirmed = run.say("approve", "approved: nice work");
    confirmed.confirmed = true;
    run.feed(Input::Answer(confirmed));
    run.wants("run plan#1");
}

#[test]
fn s1_18_and_j_36_answers_that_nobody_understands_block_and_resume_asks_again() {
    let mut run = gate();
    run.feed(Input::GiveUpDecision { decision: "approve".into() });
    assert_eq!(run.blocked("approve"), "mandatory_user_decision_missing");
    run.is("plan", "pending");
    run.resume();
    run.wants("ask approve");
}

#[test]
fn s1_19_a_decision_that_is_put_off_blocks_with_its_reason() {
    let cancel =
        |reason: &str| Input::CancelDecision { decision: "approve".into(), reason: reason.to_owned() };
    for keep in 1..=2 {
        let mut run = gate();
        assert_eq!(run.try_feed(cancel(" ")), Err(Rejected::ReasonMissing));
        let before = run.log.len();
        run.feed(cancel("after the holidays"));
        run.crash_keeping(before + keep);
        assert_eq!(run.blocked("approve"), "mandatory_user_decision_missing");
        assert!(run.why("approve").contains("after the holidays"));
    }
}

#[test]
fn j_37_the_first_answer_stands() {
    let mut run = gate();
    run.answer("approve", "approved");
    let Err(Rejected::NotOpen { status, answer, .. }) = run.try_answer("approve", "changes") else {
        panic!("a second answer was taken")
    };
    assert_eq!((status, answer.as_deref()), (DecisionStatus::Answered, Some("approved")));
    assert!(matches!(run.try_answer("nothing", "approved"), Err(Rejected::NoSuchDecision { .. })));
}

#[test]
fn j_35_an_approval_is_bound_to_what_was_shown() {
    let mut run = draft()
        .agent("design")
        .decision("approve", &[])
        .show(&["design.md"])
        .needs(&["design"])
        .agent("polish")
        .needs(&["design"])
        .agent("plan")
        .needs(&["approve", "polish"])
        .run();
    run.ends("design", writing(reply(Outcome::Done), &[("design.md", "one")]));
    run.answer("approve", "approved");
    // A later step publishes another version: whatever of this is durable, the gate asks again.
    let before = run.log.len();
    run.ends("polish", writing(reply(Outcome::Done), &[("design.md", "two")]));
    for keep in (before + 1..=run.log.len()).rev() {
        run.crash_keeping(keep);
        run.wants("ask approve");
        run.is("plan", "pending");
    }
    run.answer("approve", "approved");
    run.wants("run plan#1");
}

#[test]
fn j_35_what_changed_between_showing_and_answering_is_refused() {
    let mut run = gate();
    let mut answer = run.say("approve", "approved");
    answer.seen = BTreeMap::from([("design.md".into(), hash("edited"))]);
    assert!(matches!(run.try_feed(Input::Answer(answer)), Err(Rejected::ChangedSinceShown { .. })));
    run.wants("ask approve");
}

#[test]
fn j_35_the_tree_is_hashed_before_anybody_is_asked_and_a_change_asks_anew() {
    let mut run = draft().decision("ship", &[]).show(&["tree"]).run();
    run.wants("bind ship");
    assert!(matches!(run.try_answer("ship", "approved"), Err(Rejected::NotShownYet { .. })));
    let bound = |text: &str| Input::Bound {
        decision: "ship".into(),
        bound: BTreeMap::from([("tree".into(), hash(text))]),
        question: None,
    };
    run.feed(bound("t1"));
    run.wants("ask ship");
    run.feed(bound("t2"));
    run.wants("bind ship");
    run.feed(bound("t2"));
    run.answer("ship", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn j_35_binding_a_hand_edited_file_does_not_go_round_for_ever() {
    let mut run = draft().agent("a").decision("ship", &[]).show(&["a.md", "tree"]).needs(&["a"]).run();
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "one")]));
    run.wants("bind ship");
    let bound = BTreeMap::from([("a.md".into(), hash("edited")), ("tree".into(), hash("t"))]);
    run.feed(Input::Bound { decision: "ship".into(), bound, question: None });
    run.wants("ask ship");
    assert_eq!(run.state.decisions["ship"].decision.bound["a.md"], hash("edited"));
}

#[test]
fn s1_45_what_was_pending_before_a_restart_is_asked_and_nothing_else() {
    let mut run = draft().decision("one", &[]).decision("two", &[]).run();
    run.answer("one", "approved");
    run.crash();
    run.wants("ask two");
}

#[test]
fn s1_48_an_unanswered_question_is_cancelled_but_never_a_security_question() {
    let mut report = questions(&["colour?", "may it open a port?"]);
    report.reply.as_mut().unwrap().questions[1].security = true;
    let mut run = draft().agent("a").run();
    run.ends("a", report);
    run.feed(Input::GiveUpDecision { decision: "D-1".into() });
    assert_eq!(run.try_feed(Input::GiveUpDecision { decision: "D-2".into() }), Err(Rejected::ReasonMissing));
    run.wants("ask D-2");
    run.feed(Input::CancelDecision { decision: "D-2".into(), reason: "the team decides".to_owned() });
    run.wants("run a#2");
    assert_eq!(run.state.steps["a"].answers[0].1, "(no response provided)");
}

#[test]
fn s1_16_a_route_picks_who_corrects() {
    let mut run = draft()
        .agent("spec")
        .agent("design")
        .needs(&["spec"])
        .decision("approve", &["design"])
        .needs(&["design"])
        .edit(|step| {
            let Kind::Decision(question) = &mut step.kind else { return };
            let routes = BTreeMap::from([(RoleId::new("analyst"), vec!["spec".into()])]);
            question.answers[1].effect = AnswerEffect::Redo { steps: vec!["design".into()], routes };
        })
        .run();
    run.done(&["spec", "design"]);
    let mut answer = run.say("approve", "changes");
    answer.route = Some("nobody".into());
    assert!(matches!(run.try_feed(Input::Answer(answer.clone())), Err(Rejected::NoSuchRoute { .. })));
    answer.route = Some("analyst".into());
    run.feed(Input::Answer(answer));
    run.wants("run spec#2");
    run.is("design", "pending");
}

/// Nobody would work on it, and the unchanged thing would be asked about as if it had been corrected.
#[test]
fn s1_16_a_route_to_what_is_left_out_is_refused() {
    let mut run = draft()
        .agent("spec")
        .agent("design")
        .needs(&["spec"])
        .expression("when", Hardness::Skip)
        .decision("approve", &["spec"])
        .needs(&["design"])
        .edit(|step| {
            let Kind::Decision(question) = &mut step.kind else { return };
            let routes = BTreeMap::from([
                (RoleId::new("analyst"), vec!["spec".into()]),
                (RoleId::new("designer"), vec!["design".into()]),
            ]);
            question.answers[1].effect = AnswerEffect::Redo { steps: vec!["spec".into()], routes };
        })
        .run();
    run.done(&["spec"]);
    run.evaluated("design", "when", false);
    let mut answer = run.say("approve", "changes");
    answer.route = Some("designer".into());
    let refused = run.try_feed(Input::Answer(answer.clone())).unwrap_err();
    assert_eq!(refused.to_string(), "`approve` has no route to `designer`; routes are: analyst");
    run.wants("ask approve");
    answer.route = Some("analyst".into());
    run.feed(Input::Answer(answer));
    run.wants("run spec#2");
}

#[test]
fn a_redo_of_nothing_blocks_instead_of_waiting_for_ever() {
    let mut run = draft().decision("ok", &[]).run();
    run.answer("ok", "changes");
    assert_eq!(run.blocked("ok"), "answered_block");
}

#[test]
fn a_hand_edit_is_adopted_or_restored_before_a_dependent_starts() {
    let found = |run: &mut Bench| {
        let problem =
            InputProblem::Changed { name: "design.md".into(), expected: hash("one"), found: hash("mine") };
        run.ends("plan", AttemptReport::new(ProcessEnd::NotStarted { problem }));
        run.wants("ask D-1");
    };
    let mut run = gate();
    run.answer("approve", "approved");
    found(&mut run);
    run.answer("D-1", "restore");
    run.wants("run plan#2");
    let mut run = gate();
    run.answer("approve", "approved");
    found(&mut run);
    let before = run.log.len();
    run.answer("D-1", "adopt");
    // What was approved is not what is there now: the approval is stale.
    for keep in (before + 1..=run.log.len()).rev() {
        run.crash_keeping(keep);
        run.wants("ask approve");
        assert_eq!(run.state.artifacts["design.md"].hash, hash("mine"));
    }
}

#[test]
fn j_35_a_file_that_is_edited_once_more_is_not_adopted_by_the_answer_about_the_edit_before() {
    let edited = |content: &str| InputProblem::Changed {
        name: "design.md".into(),
        expected: hash("one"),
        found: hash(content),
    };
    let mut run = gate();
    run.answer("approve", "approved");
    run.ends("plan", AttemptReport::new(ProcessEnd::NotStarted { problem: edited("mine") }));
    run.wants("ask D-1");
    let bound = |content: &str| Input::Bound {
        decision: "D-1".into(),
        bound: BTreeMap::from([("design.md".into(), hash(content))]),
        question: None,
    };
    run.feed(bound("mine"));
    run.wants("ask D-1");
    run.feed(bound("again"));
    assert_eq!(run.state.decisions["D-1"].status, DecisionStatus::Stale);
    assert!(run.try_answer("D-1", "adopt").is_err(), "nobody is asked about that any more");
    // The next launch finds what is there now, and asks about that.
    run.wants("run plan#2");
    run.ends("plan", AttemptReport::new(ProcessEnd::NotStarted { problem: edited("again") }));
    run.wants("ask D-2");
    run.answer("D-2", "adopt");
    assert_eq!(run.state.artifacts["design.md"].hash, hash("again"));
}

fn put(question: Result<&str, &str>) -> Input {
    let question = question.map(str::to_owned).map_err(str::to_owned);
    Input::Bound { decision: "ship".into(), bound: BTreeMap::new(), question: Some(question) }
}

#[test]
fn a_question_with_templates_is_put_into_words_before_anybody_is_asked() {
    let mut run = draft().decision("ship", &[]).asks_template().run();
    run.wants("bind ship");
    assert!(matches!(run.try_answer("ship", "approved"), Err(Rejected::NotShownYet { .. })));
    run.feed(put(Ok("Ship version 3?")));
    assert_eq!(run.state.decisions["ship"].decision.question, "Ship version 3?");
    run.wants("ask ship");
    // What was asked stays what was asked.
    run.feed(put(Ok("Ship version 4?")));
    assert_eq!(run.state.decisions["ship"].decision.question, "Ship version 3?");
    run.answer("ship", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn a_question_that_cannot_be_put_into_words_is_not_asked() {
    let mut run = draft().decision("ship", &[]).asks_template().run();
    run.feed(put(Err("`steps.x` is not defined")));
    let decision = &run.state.decisions["ship"];
    assert_eq!(decision.status, DecisionStatus::Cancelled);
    assert!(decision.reason.as_deref().unwrap_or_default().contains("`steps.x` is not defined"));
    run.status(RunStatus::Blocked);
}

#[test]
fn what_is_shown_is_what_was_found_under_the_names_in_the_plan() {
    let mut run = draft().decision("ship", &[]).asks_template().show(&["{{ item }}.md", "tree"]).run();
    let bound = BTreeMap::from([("a.md".into(), hash("one")), ("tree".into(), hash("t"))]);
    let question = Some(Ok("Ship a?".to_owned()));
    run.feed(Input::Bound { decision: "ship".into(), bound, question });
    run.wants("ask ship");
    let shown: Vec<&str> =
        run.state.decisions["ship"].decision.show.iter().map(|name| name.as_str()).collect();
    assert_eq!(shown, ["tree", "a.md"]);
}

/// An approval is asked for, and meanwhile somebody edited what it shows.
fn edited_meanwhile() -> Bench {
    let mut run = gate();
    let bound = BTreeMap::from([("design.md".into(), hash("mine"))]);
    run.feed(Input::Bound { decision: "approve".into(), bound, question: None });
    run.wants("ask D-1, ask approve");
    run
}

#[test]
fn what_else_was_asked_about_a_step_is_withdrawn_when_it_goes_on() {
    let mut run = edited_meanwhile();
    run.answer("approve", "approved");
    run.is("approve", "passed");
    let edit = &run.state.decisions["D-1"];
    assert_eq!(edit.status, DecisionStatus::Skipped);
    assert_eq!(edit.reason.as_deref(), Some("what it was about goes on"));
    run.wants("run plan#1");
}

#[test]
fn who_puts_off_what_becomes_of_an_edit_puts_off_the_step_and_what_else_is_asked_about_it() {
    let mut run = edited_meanwhile();
    run.feed(Input::CancelDecision { decision: "D-1".into(), reason: "later".to_owned() });
    assert_eq!(run.blocked("approve"), "mandatory_user_decision_missing");
    let approval = &run.state.decisions["approve"];
    assert_eq!(approval.status, DecisionStatus::Skipped);
    assert_eq!(approval.reason.as_deref(), Some("`D-1` was put off: later"));
}

#[test]
fn the_end_of_a_run_withdraws_what_was_asked() {
    let mut run = draft().decision("ok", &[]).agent("a").run();
    run.feed(Input::Abort { reason: "enough".to_owned() });
    let asked = &run.state.decisions["ok"];
    assert_eq!((asked.status, asked.reason.as_deref()), (DecisionStatus::Skipped, Some("the run has ended")));
    run.wants("stop a#1");
}
