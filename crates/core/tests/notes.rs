//! What a review notes and a person judges: which of the notes are mended, and which stay.

mod common;

use common::{Bench, answer, draft, reply};
use gatewright_core::{
    event::Cause,
    outcome::Outcome,
    plan::AnswerEffect,
    state::{Phase, RunStatus},
    verdict::{Finding, Severity},
};

fn noted(rounds: u32) -> Bench {
    let answers = vec![
        answer("fix", &[], AnswerEffect::Again),
        answer("keep", &[], AnswerEffect::Pass),
        answer("accept", &[], AnswerEffect::Accept),
    ];
    draft()
        .agent("write")
        .review("look", &["write"])
        .needs(&["write"])
        .rounds(rounds)
        .review_edit(|review| {
            review.block_at = Severity::High;
            review.ask_at = Some(Severity::Low);
            review.on_notes = answers;
        })
        .run()
}

fn finds(run: &mut Bench, problems: &[&str]) {
    let mut report = reply(Outcome::Passed);
    if let Some(reply) = &mut report.reply {
        reply.findings = problems.iter().map(|problem| Finding::new(Severity::Low, *problem)).collect();
    }
    run.ends("look", report);
}

fn demands(run: &Bench) -> Vec<(&str, Option<&str>)> {
    match run.state.steps["write"].cause.as_deref() {
        Some(Cause::Fix { findings, .. }) => {
            findings.iter().map(|one| (one.problem.as_str(), one.category.as_deref())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_notes_that_are_chosen_are_mended_and_the_others_are_left_for_good() {
    let mut run = noted(3);
    run.done(&["write"]);
    finds(&mut run, &["slow", "a typo", "a name"]);
    let question = &run.state.decisions["D-1"].decision.question;
    assert_eq!(
        question,
        "`look` blocks nothing and notes:\n1. [low] slow\n2. [low] a typo\n3. [low] a name\nWhat becomes of them? \
         `fix 1` mends only the first, `fix 1,2` the first two, and leaves the rest."
    );
    run.answer("D-1", "fix 3 and 1: soon");
    assert_eq!(demands(&run), [("slow", None), ("a name", None), ("soon", Some("guidance"))]);
    run.done(&["write"]);
    // What was left is not asked about again; something new is.
    finds(&mut run, &["a typo"]);
    assert_eq!(run.state.steps["look"].phase, Phase::Passed { notes: vec!["[low] a typo".to_owned()] });
    run.status(RunStatus::Done);
}

#[test]
fn what_a_person_left_is_not_mended_with_what_is_new() {
    let mut run = noted(4);
    run.done(&["write"]);
    finds(&mut run, &["slow", "a typo"]);
    run.answer("D-1", "fix 1");
    run.done(&["write"]);
    finds(&mut run, &["a typo", "a name"]);
    run.answer("D-2", "fix");
    assert_eq!(demands(&run), [("a name", None)]);
}

#[test]
fn only_notes_that_are_there_can_be_chosen_and_only_to_be_mended() {
    let mut run = noted(3);
    run.done(&["write"]);
    finds(&mut run, &["slow", "a typo"]);
    for wrong in ["fix 0", "fix 3", "fix 1, 3", "keep 1", "accept 2"] {
        let refused = run.try_answer("D-1", wrong).unwrap_err().to_string();
        assert_eq!(refused, format!("`{wrong}` is no answer to `D-1`; answers are: fix, keep, accept"));
    }
    run.answer("D-1", "fix: 1, 2");
    assert_eq!(demands(&run), [("slow", None), ("a typo", None)]);
}

#[test]
fn numbers_in_a_comment_choose_nothing() {
    let mut run = noted(3);
    run.done(&["write"]);
    finds(&mut run, &["slow", "a typo"]);
    run.answer("D-1", "fix: within 2");
    assert_eq!(demands(&run), [("slow", None), ("a typo", None), ("within 2", Some("guidance"))]);
}

#[test]
fn numbers_choose_nothing_where_no_notes_are_asked_about() {
    let mut run = draft().decision("ok", &[]).run();
    assert!(run.try_answer("ok", "approved 1").is_err());
}

#[test]
fn a_round_is_granted_only_when_none_is_left() {
    let mut run = noted(3);
    run.done(&["write"]);
    finds(&mut run, &["slow"]);
    assert_eq!(
        run.state.decisions["D-1"].decision.question,
        "`look` blocks nothing and notes:\n1. [low] slow\nWhat becomes of them?"
    );
    run.answer("D-1", "fix");
    assert_eq!(run.state.steps["look"].granted, 0, "a round was left");
    run.done(&["write"]);
    finds(&mut run, &["slow again"]);
    run.answer("D-2", "fix");
    assert_eq!(run.state.steps["look"].granted, 0);
    run.done(&["write"]);
    finds(&mut run, &["still slow"]);
    run.answer("D-3", "fix");
    assert_eq!(run.state.steps["look"].granted, 1, "the third round was the last");
    run.done(&["write"]);
    finds(&mut run, &["slow for ever"]);
    run.answer("D-4", "fix");
    assert_eq!(run.state.steps["look"].granted, 2, "and the one that was granted is used up");
}
