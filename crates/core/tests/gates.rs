//! Gates and obligations: what each kind asks the record, in both directions, and what it says when it is closed.

mod common;

use common::{Bench, Draft, checked, draft, findings, reply, writing};
use gatewright_core::{
    event::About,
    explain::explain_step,
    fact::{AttemptReport, ProcessEnd},
    input::Input,
    outcome::Outcome,
    plan::{Condition, Hardness, Must},
    state::RunStatus,
    verdict::{Severity, Verdict},
};

fn gated(plan: Draft, condition: Condition) -> Draft {
    plan.agent("x").gate("gate", Hardness::Hard, condition)
}

/// What keeps `x` from running.
fn shut(run: &Bench) -> String {
    assert_eq!(run.blocked("x"), "gate", "{}", run.story());
    let said = explain_step(&run.plan, &run.state, &"x".into()).expect("it is explained").because;
    said.strip_prefix("it is blocked (gate): gate `gate` is closed: ").expect("its gate").to_owned()
}

fn artifact() -> Condition {
    Condition::Artifact { step: "a".into(), name: "a.md".into() }
}

#[test]
fn a_gate_on_an_artifact_wants_the_one_of_the_attempt_that_counts() {
    let plan = || draft().agent("a").writes("a.md").agent("keep");
    let run = gated(plan(), artifact()).run();
    assert_eq!(shut(&run), "`a.md` does not count yet: `a` has not passed");
    let after = || gated(plan(), artifact()).needs(&["a"]);
    let mut run = after().run();
    run.skip("a");
    assert_eq!(shut(&run), "`a.md` was not written: `a` was skipped");
    let mut run = after().run();
    run.done(&["a"]);
    assert_eq!(shut(&run), "`a.md` was not written by the attempt of `a` that counts");
    let mut run = after().run();
    run.ends("a", writing(reply(Outcome::Done), &[("b.md", "text")]));
    assert_eq!(shut(&run), "`a.md` was not written by the attempt of `a` that counts");
    let mut run = after().run();
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
    run.is("x", "running");
    let gone = Condition::Artifact { step: "gone".into(), name: "a.md".into() };
    assert_eq!(shut(&gated(plan(), gone).run()), "`gone`, which writes `a.md`, does not exist");
}

#[test]
fn a_gate_on_a_verdict_is_as_strict_as_it_says() {
    let at_most = |at_most| Condition::Verdict { step: "look".into(), at_most };
    let plan = || draft().agent("fix").dormant().review("look", &["fix"]).rounds(1).agent("keep");
    let run = gated(plan(), at_most(Verdict::Pass)).run();
    assert_eq!(shut(&run), "`look` has given no verdict");
    let note = |run: &mut Bench| {
        run.ends("look", findings(Outcome::Passed, &[Severity::Low]));
    };
    let mut run = gated(plan(), at_most(Verdict::Pass)).needs(&["look"]).run();
    note(&mut run);
    assert_eq!(shut(&run), "the verdict of `look` is pass_with_notes, at most pass is allowed");
    let mut run = gated(plan(), at_most(Verdict::PassWithNotes)).needs(&["look"]).run();
    note(&mut run);
    run.is("x", "running");
    let mut run = gated(plan(), at_most(Verdict::Pass)).needs(&["look"]).run();
    run.ends("look", reply(Outcome::Passed));
    run.is("x", "running");
}

#[test]
fn a_gate_on_a_check_wants_it_ok() {
    let condition = || Condition::Check { step: "a".into(), check: "lint".into() };
    let plan = || draft().agent("a").checks(&["lint"]).attempts(1).agent("keep");
    assert_eq!(shut(&gated(plan(), condition()).run()), "check `lint` of `a` has not run");
    let mut run = gated(plan(), condition()).needs(&["a"]).run();
    run.done(&["a"]);
    run.check_ends("a", "lint", checked(true, ""));
    run.is("x", "running");
    let mut run = gated(plan(), condition()).needs(&["later"]).agent("later").run();
    run.done(&["a"]);
    run.check_ends("a", "lint", checked(false, "bad"));
    run.done(&["later"]);
    assert_eq!(shut(&run), "check `lint` of `a` failed");
}

#[test]
fn a_gate_on_a_decision_wants_an_answer_that_stands() {
    let condition =
        || Condition::Decision { step: "ok".into(), answers: vec!["approved".to_owned(), "stop".to_owned()] };
    let plan = || draft().decision("ok", &[]).agent("keep");
    assert_eq!(shut(&gated(plan(), condition()).run()), "`ok` is not answered");
    let mut run = gated(plan(), condition()).needs(&["ok"]).run();
    run.answer("ok", "approved");
    run.is("x", "running");
    let other = Condition::Decision { step: "ok".into(), answers: vec!["changes".to_owned()] };
    let mut run = gated(plan(), other).needs(&["ok"]).run();
    run.answer("ok", "approved");
    assert_eq!(shut(&run), "`ok` was answered `approved`");
    // An answer to a question that is to be put again does not count any more.
    let mut run = draft()
        .agent("a")
        .decision("ok", &["a"])
        .needs(&["a"])
        .agent("later")
        .agent("x")
        .needs(&["later"])
        .gate("gate", Hardness::Hard, condition())
        .run();
    run.done(&["a"]);
    run.answer("ok", "approved");
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    run.done(&["later"]);
    assert_eq!(shut(&run), "`ok` is not answered");
    // Nor does the answer to another question.
    let mut run = gated(draft().decision("aa", &[]).decision("ok", &[]).agent("keep"), condition())
        .needs(&["aa"])
        .run();
    run.answer("aa", "approved");
    assert_eq!(shut(&run), "`ok` is not answered");
    let mut run = gated(draft().decision("aa", &[]).decision("ok", &[]), condition()).needs(&["ok"]).run();
    run.answer("ok", "approved");
    run.is("x", "running");
    // Nor does what else was asked about the same step, before it.
    let mut run = gated(draft().decision("ok", &[]).expression("soft", Hardness::Soft), condition())
        .needs(&["ok"])
        .run();
    run.evaluated("ok", "soft", false);
    run.answer("D-1", "yes");
    run.answer("ok", "approved");
    run.is("x", "running");
    let mut run = gated(plan(), condition()).needs(&["keep"]).run();
    run.skip("ok");
    run.done(&["keep"]);
    assert_eq!(shut(&run), "`ok` is not answered");
}

#[test]
fn a_gate_on_an_obligation_wants_it_met_or_waived() {
    let condition = || Condition::Obligation { name: "looked-at".to_owned() };
    let plan =
        || draft().agent("a").obligation("looked-at", Must::Step { step: "a".into() }, None).agent("keep");
    assert_eq!(shut(&gated(plan(), condition()).run()), "obligation `looked-at` is not met");
    let mut run = gated(plan(), condition()).needs(&["a"]).run();
    run.done(&["a"]);
    run.is("x", "running");
    let mut run = gated(plan(), condition()).needs(&["a"]).run();
    run.skip("a");
    assert_eq!(shut(&run), "obligation `looked-at` is not met");
    run.state.obligations_waived.insert("looked-at".to_owned());
    let open = gatewright_core::transition::validate(&run.plan, &run.state, &"main".into()).expect("a stage");
    assert!(open.allowed, "{open:?}");
    let unknown = gated(plan(), Condition::Obligation { name: "unknown".to_owned() }).run();
    unknown.is("x", "running");
}

#[test]
fn a_gate_on_an_expression_says_why_it_is_closed() {
    let source = |source: &str| Condition::Expression { source: source.to_owned() };
    let mut run = gated(draft().agent("keep"), source("rounds > 2")).run();
    run.evaluated("x", "gate", false);
    assert_eq!(shut(&run), "`rounds > 2` is false");
    let mut run = gated(draft().agent("keep"), source("false")).run();
    run.evaluated("x", "gate", false);
    assert_eq!(shut(&run), "it is switched off");
    let mut run = gated(draft().agent("keep"), source("rounds > 2")).run();
    run.feed(Input::Evaluated { step: "x".into(), gate: "gate".into(), value: Err("no rounds".to_owned()) });
    assert_eq!(shut(&run), "`rounds > 2` cannot be evaluated: no rounds");
    let mut run = gated(draft().agent("keep"), source("rounds > 2")).run();
    run.evaluated("x", "gate", true);
    run.is("x", "running");
    let again = Input::Evaluated { step: "x".into(), gate: "gate".into(), value: Ok(false) };
    assert!(run.try_feed(again).is_err(), "it was evaluated");
}

#[test]
fn a_gate_that_cannot_be_evaluated_blocks_however_soft_it_is() {
    for hardness in [Hardness::Hard, Hardness::Soft, Hardness::Skip] {
        let mut run = draft().agent("keep").agent("x").expression("gate", hardness).run();
        run.feed(Input::Evaluated {
            step: "x".into(),
            gate: "gate".into(),
            value: Err("no such name".to_owned()),
        });
        assert_eq!(shut(&run), "`gate` cannot be evaluated: no such name");
    }
    let after = |hardness| {
        let mut run = draft().agent("keep").agent("x").expression("gate", hardness).run();
        run.evaluated("x", "gate", false);
        common::phase_word(&run.state.steps["x"].phase)
    };
    assert_eq!(
        [after(Hardness::Hard), after(Hardness::Soft), after(Hardness::Skip)],
        ["blocked", "waiting", "skipped"]
    );
}

#[test]
fn a_closed_gate_is_said_at_once_and_not_when_there_is_a_place() {
    let run = gated(draft().pool("run", 1).agent("a"), artifact()).run();
    assert_eq!(shut(&run), "`a.md` does not count yet: `a` has not passed");
}

#[test]
fn an_artifact_that_breaks_its_contract_is_no_artifact_for_a_gate() {
    let mut run = gated(draft().agent("a").writes("a.md").agent("keep"), artifact()).needs(&["a"]).run();
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
    run.is("x", "running");
    if let Some(artifact) = run.state.artifacts.get_mut("a.md") {
        artifact.holds = false;
    }
    let gate = run.plan.graph(&run.state.profile).steps["x"].gates[0].clone();
    assert_eq!(gate.id.as_str(), "gate");
    let open = gatewright_core::transition::validate(&run.plan, &run.state, &"main".into()).expect("a stage");
    assert!(open.allowed, "a gate on the stage itself is no obstacle: {open:?}");
}

fn obliged(must: Must, else_run: Option<&str>) -> Draft {
    draft().agent("a").agent("helper").dormant().decision("ok", &[]).obligation("must", must, else_run)
}

fn asked(run: &Bench) -> Option<String> {
    let pending = run.state.queues.pending_decisions.iter().filter_map(|id| run.state.decisions.get(id));
    let mut about = pending.filter(|known| matches!(known.decision.about, About::Obligation { .. }));
    about.next().map(|known| format!("{} for {}", known.decision.question, known.decision.step))
}

#[test]
fn an_obligation_is_met_by_what_it_names() {
    for must in [
        Must::Step { step: "a".into() },
        Must::Role { role: "role-a".into() },
        Must::Decision { step: "ok".into() },
    ] {
        let mut run = obliged(must.clone(), None).run();
        run.done(&["a"]);
        run.answer("ok", "approved");
        run.status(RunStatus::Done);
        let mut run = obliged(must.clone(), None).run();
        run.skip("a");
        run.skip("ok");
        assert!(asked(&run).is_some(), "{must:?}: {}", run.story());
        run.status(RunStatus::Waiting);
    }
}

#[test]
fn the_question_about_an_obligation_is_no_answer_to_it() {
    let mut run = obliged(Must::Decision { step: "ok".into() }, None).run();
    run.done(&["a"]);
    run.skip("ok");
    let id = run.state.queues.pending_decisions.iter().next().cloned().expect("somebody is asked");
    let about = &run.state.decisions[&id].decision;
    assert_eq!(about.step.as_str(), "ok");
    let waives = about
        .answers
        .iter()
        .find(|answer| answer.effect == gatewright_core::plan::AnswerEffect::Accept)
        .map(|answer| answer.word.clone())
        .expect("it can be let go");
    assert!(run.try_answer(id.as_str(), &waives).is_err(), "not without a reason");
    let mut answer = run.say(id.as_str(), &waives);
    answer.comment = Some("it is small".to_owned());
    run.feed(Input::Answer(answer));
    run.status(RunStatus::Done);
    let waiver = run.state.waivers.last().expect("it is on record");
    assert_eq!((waiver.obligation.as_deref(), waiver.reason.contains("it is small")), (Some("must"), true));
}

#[test]
fn the_plans_own_step_for_an_obligation_runs_once() {
    let mut run = obliged(Must::Role { role: "role-helper".into() }, Some("helper")).run();
    run.done(&["a"]);
    run.answer("ok", "approved");
    run.wants("run helper#1");
    run.done(&["helper"]);
    run.status(RunStatus::Done);
    let mut run = obliged(Must::Role { role: "role-helper".into() }, Some("helper")).run();
    run.done(&["a"]);
    run.answer("ok", "approved");
    run.skip("helper");
    assert!(asked(&run).is_some_and(|asked| asked.ends_with(" for helper")), "{:?}", asked(&run));
}

#[test]
fn an_obligation_that_somebody_met_meanwhile_is_not_asked_about() {
    let mut run = obliged(Must::Step { step: "a".into() }, None).run();
    run.skip("a");
    run.answer("ok", "approved");
    assert!(asked(&run).is_some());
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    assert!(asked(&run).is_none(), "the run goes on");
    run.done(&["a"]);
    run.answer("ok", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn a_check_step_is_judged_by_its_result() {
    let mut run = draft().check_step("tests").attempts(1).agent("keep").run();
    let check = Some(checked(false, "two tests failed"));
    run.ends("tests", AttemptReport { check, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    assert!(run.why("tests").contains("(test): two tests failed"), "{}", run.why("tests"));
    let mut run = draft().check_step("tests").attempts(1).agent("keep").run();
    run.ends("tests", AttemptReport::new(ProcessEnd::Exited { code: 0 }));
    assert!(run.why("tests").contains("the command gave no result"), "{}", run.why("tests"));
}

#[test]
fn the_question_about_an_obligation_offers_to_run_only_what_can_be_run() {
    let mut run = obliged(Must::Step { step: "a".into() }, None).run();
    run.skip("a");
    run.answer("ok", "approved");
    assert_eq!(
        asked(&run).as_deref(),
        Some(
            "Obligation `must` is not met: `a` has not passed. Run `a`, waive it (with a reason), or abort? for a"
        )
    );
    // Inside of a group nothing is run on its own.
    let must = Must::Step { step: "sub/a".into() };
    let mut run = draft().sub_run("sub").agent("sub/a").obligation("must", must, None).run();
    run.skip("sub/a");
    assert_eq!(
        asked(&run).as_deref(),
        Some(
            "Obligation `must` is not met: `sub/a` has not passed. Waive it (with a reason), or abort? for sub/a"
        )
    );
    // What the profile leaves out is not offered.
    let mut run = draft()
        .agent("a")
        .stage("extra")
        .stage_edit(|stage| stage.disabled = Some("lean".to_owned()))
        .agent("b")
        .obligation("must", Must::Role { role: "role-b".into() }, None)
        .run();
    run.done(&["a"]);
    assert_eq!(
        asked(&run).as_deref(),
        Some(
            "Obligation `must` is not met: no step of role `role-b` has passed. Waive it (with a reason), or abort? \
             for role-b"
        )
    );
}

#[test]
fn a_new_plan_without_the_obligation_withdraws_the_question_about_it() {
    let mut run = obliged(Must::Step { step: "a".into() }, None).run();
    run.skip("a");
    run.answer("ok", "approved");
    assert!(asked(&run).is_some());
    run.adopt(draft().agent("a").agent("helper").dormant().decision("ok", &[]));
    assert!(asked(&run).is_none());
    run.status(RunStatus::Done);
}

/// A gate of a stage hangs on every step that may begin it; whoever passed through it has asked for those after it.
#[test]
fn a_gate_that_a_step_before_passed_through_is_not_asked_again() {
    let never = || Condition::Verdict { step: "look".into(), at_most: Verdict::Pass };
    let plan = || {
        let first = draft().agent("first").gate("gate", Hardness::Hard, never());
        let second = first.agent("x").needs(&["first"]).gate("gate", Hardness::Hard, never());
        second.edit(|step| step.gates[0].asked_at = vec!["first".into()]).agent("keep")
    };
    let mut run = plan().run();
    run.waive_gate("first", None).unwrap();
    run.done(&["first"]);
    run.is("x", "running");
    // Left out, it has passed through nothing.
    let mut run = plan().run();
    run.skip("first");
    assert_eq!(shut(&run), "`look` has given no verdict");
}
