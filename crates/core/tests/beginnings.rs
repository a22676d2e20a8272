//! Runs that begin with something: work that is there, answers that were given, counts that go on, a stage to rest after.

mod common;

use std::collections::BTreeMap;

use common::{Bench, Draft, draft, hash, reply, writing};
use gatewright_core::{
    event::{AnsweredBefore, Beginning, Pause, Skip},
    fact::ProcessEnd,
    input::Input,
    outcome::Outcome,
    plan::Exhaustion,
    state::{DecisionStatus, Phase, RunPhase, RunStatus},
};

fn begun(draft: Draft, beginning: Beginning) -> Bench {
    Bench::begun(draft.plan(), beginning)
}

fn answered(answer: &str, seen: &[(&str, &str)]) -> Beginning {
    let before = AnsweredBefore {
        answer: answer.to_owned(),
        comment: Some("as it is".to_owned()),
        route: None,
        channel: "paper".to_owned(),
        seen: seen.iter().map(|(name, content)| ((*name).into(), hash(content))).collect(),
    };
    Beginning { answered: BTreeMap::from([("ok".into(), before)]), ..Beginning::default() }
}

#[test]
fn an_answer_given_before_is_taken_when_its_question_is_put() {
    let plan = || draft().agent("a").decision("ok", &[]).needs(&["a"]).agent("keep");
    let mut run = begun(plan(), answered("approved", &[]));
    run.is("ok", "pending");
    run.done(&["a"]);
    run.is("ok", "passed");
    let known = &run.state.decisions["ok"];
    assert_eq!((known.status, known.answer.as_deref()), (DecisionStatus::Answered, Some("approved")));
    assert_eq!(known.comment.as_deref(), Some("as it is"));
    // One that is none of its words stays unheard.
    let mut run = begun(plan(), answered("perhaps", &[]));
    run.done(&["a"]);
    run.is("ok", "waiting");
    // One to another question too.
    let other = || draft().agent("a").decision("other", &[]).needs(&["a"]).agent("keep");
    let mut run = begun(other(), answered("approved", &[]));
    run.done(&["a"]);
    run.is("other", "waiting");
}

#[test]
fn an_answer_given_before_holds_only_for_what_was_shown_then() {
    let plan =
        || draft().agent("a").writes("a.md").decision("ok", &[]).needs(&["a"]).show(&["a.md"]).agent("keep");
    for (seen, phase) in [("text", "passed"), ("other", "waiting")] {
        let mut run = begun(plan(), answered("approved", &[("a.md", seen)]));
        run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
        run.is("ok", phase);
    }
    let mut run = begun(plan(), answered("approved", &[]));
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
    run.is("ok", "waiting");
    // What is not shown yet has no answer yet.
    let run = begun(draft().decision("ok", &[]).show(&["tree"]).agent("keep"), answered("approved", &[]));
    run.is("ok", "waiting");
    run.wants("run keep#1, bind ok");
}

#[test]
fn an_answer_given_before_is_for_the_question_of_the_step_and_no_other() {
    let ways = vec![common::ask(&[("approved", gatewright_core::plan::AnswerEffect::Again)])];
    let mut run = begun(draft().agent("ok").attempts(1).on_exhausted(ways), answered("approved", &[]));
    run.dies("ok", gatewright_core::fact::ProcessEnd::Exited { code: 1 });
    run.is("ok", "waiting");
}

#[test]
fn a_run_rests_after_the_stage_it_was_to_go_to() {
    let plan = || draft().agent("a").stage("second").agent("b").needs(&["a"]);
    let until = |stage: &str| Beginning { until: Some(stage.into()), ..Beginning::default() };
    let mut run = begun(plan(), until("main"));
    run.status(RunStatus::Running);
    run.is("a", "running");
    run.done(&["a"]);
    assert_eq!(run.state.phase, RunPhase::Paused(Pause::Until { stage: "main".into() }));
    run.wants("");
    run.resume();
    run.wants("run b#1");
    run.done(&["b"]);
    run.status(RunStatus::Done);
    // After the last one nothing comes.
    let mut run = begun(plan(), until("second"));
    run.done(&["a", "b"]);
    run.status(RunStatus::Done);
}

#[test]
fn what_was_done_before_is_left_out_with_what_is_known_of_it() {
    let beginning = Beginning {
        done: BTreeMap::from([("a".into(), "in March".to_owned())]),
        numbered: 4,
        ..Beginning::default()
    };
    let mut run = begun(
        draft().agent("a").agent("b").needs(&["a"]).obligation(
            "must",
            gatewright_core::plan::Must::Step { step: "a".into() },
            None,
        ),
        beginning,
    );
    assert_eq!(
        run.state.steps["a"].phase,
        Phase::Skipped { why: Skip::Elsewhere, reason: "in March".to_owned() }
    );
    run.wants("run b#1");
    run.ends("b", common::questions(&["which?"]));
    run.wants("ask D-5");
    run.answer("D-5", "the first");
    run.done(&["b"]);
    run.status(RunStatus::Done);
}

#[test]
fn a_stage_that_is_switched_off_says_why() {
    let run = draft()
        .agent("a")
        .stage("extra")
        .stage_edit(|stage| stage.disabled = Some("lean".to_owned()))
        .agent("b")
        .run();
    assert_eq!(run.state.steps["b"].phase, Phase::Skipped { why: Skip::Disabled, reason: "lean".to_owned() });
}

#[test]
fn rounds_and_restarts_before_count_against_the_limits() {
    let beginning = Beginning {
        rounds: BTreeMap::from([("look".into(), 2)]),
        restarts: BTreeMap::from([("main".into(), 3)]),
        ..Beginning::default()
    };
    let ways = vec![Exhaustion::RestartStage { stage: "main".into() }, Exhaustion::Block];
    let plan = || {
        draft()
            .agent("write")
            .review("look", &["write"])
            .needs(&["write"])
            .rounds(3)
            .on_exhausted(ways.clone())
    };
    let mut run = begun(plan(), beginning);
    run.done(&["write"]);
    assert_eq!(run.state.steps["look"].round, 3);
    run.revises("look");
    assert_eq!(run.blocked("look"), "rounds_exhausted");
    let beginning = Beginning { rounds: BTreeMap::from([("look".into(), 2)]), ..Beginning::default() };
    let mut run = begun(plan(), beginning);
    run.done(&["write"]);
    run.revises("look");
    assert_eq!(run.state.restarts["main"], 1);
    run.wants("run write#2");
}

#[test]
fn work_that_is_there_is_taken_by_the_first_attempt() {
    let beginning =
        Beginning { given: BTreeMap::from([("a".into(), "old".to_owned())]), ..Beginning::default() };
    let mut run = begun(draft().agent("a").writes("a.md").agent("b").needs(&["a"]), beginning);
    assert_eq!(run.state.steps["a"].given.as_deref(), Some("old"));
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
    assert_eq!(run.state.steps["a"].given, None, "it was taken");
    run.wants("run b#1");
}

#[test]
fn attempts_before_count_against_the_limit_but_one_is_always_left() {
    for held in [2, 7] {
        let beginning = Beginning { rounds: BTreeMap::from([("a".into(), held)]), ..Beginning::default() };
        let mut run = begun(draft().agent("a").attempts(3).agent("keep"), beginning);
        run.dies("a", ProcessEnd::Exited { code: 1 });
        assert_eq!(run.blocked("a"), "attempts_exhausted", "after {held} before");
    }
    let beginning = Beginning { rounds: BTreeMap::from([("a".into(), 1)]), ..Beginning::default() };
    let mut run = begun(draft().agent("a").attempts(3).agent("keep"), beginning);
    run.dies("a", ProcessEnd::Exited { code: 1 });
    run.wants("run a#2, run keep#1");
}

#[test]
fn a_review_that_was_held_or_is_handed_in_is_the_last_of_those_before() {
    let plan = || draft().agent("write").review("look", &["write"]).needs(&["write"]).rounds(5);
    let rounds = || BTreeMap::from([("look".into(), 2)]);
    let round = |beginning: Beginning| begun(plan(), beginning).state.steps["look"].round;
    assert_eq!(round(Beginning { rounds: rounds(), ..Beginning::default() }), 3, "the next one is to come");
    let given = BTreeMap::from([("look".into(), "old".to_owned())]);
    assert_eq!(round(Beginning { rounds: rounds(), given, ..Beginning::default() }), 2);
    let done = BTreeMap::from([("look".into(), "it was held".to_owned())]);
    assert_eq!(round(Beginning { rounds: rounds(), done, ..Beginning::default() }), 2);
}

#[test]
fn what_was_done_before_the_run_is_void_when_its_stage_is_restarted() {
    let beginning = || Beginning {
        done: BTreeMap::from([("b".into(), "it was done".to_owned())]),
        ..Beginning::default()
    };
    let plan = || draft().agent("a").agent("b").needs(&["a"]).agent("keep");
    let mut run = begun(plan(), beginning());
    run.done(&["a"]);
    run.is("b", "skipped");
    let mut run = begun(plan(), beginning());
    run.feed(Input::RestartStage { stage: "main".into(), reason: "from the start".to_owned() });
    run.done(&["a"]);
    run.is("b", "running");
}
