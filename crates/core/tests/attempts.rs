//! Attempts: what counts, what is tried again, what stops.

mod common;

use common::{Bench, ask, checked, draft, findings, hash, questions, reply, writing};
use gatewright_core::{
    Rejected,
    event::FailureClass,
    fact::{AttemptReport, InputProblem, Intrusion, IntrusionKind, ProcessEnd, Trouble, TroubleKind, Usage},
    ids::Timestamp,
    input::{Input, Raise},
    outcome::{Outcome, ReplyProblem},
    plan::{AnswerEffect, Budget, Exhaustion, Kind},
    state::{Phase, RunStatus},
    verdict::Severity,
};

fn two_steps() -> Bench {
    draft().agent("write").writes("a.md").agent("next").needs(&["write"]).run()
}

#[test]
fn j_01_done_without_the_file_never_advances() {
    let mut run = two_steps();
    run.ends("write", writing(reply(Outcome::Done), &[("a.md", "")]));
    assert_eq!(run.last_class("write"), Some(FailureClass::Reality));
    run.wants("run write#2");
    run.ends("write", writing(reply(Outcome::Done), &[("a.md", "")]));
    assert_eq!(run.blocked("write"), "same_error");
    run.is("next", "pending");
}

#[test]
fn j_02_a_file_of_an_earlier_attempt_does_not_count_for_a_later_one() {
    let mut run = draft()
        .agent("write")
        .agent("next")
        .needs(&["write"])
        .gate(
            "has-file",
            gatewright_core::plan::Hardness::Hard,
            gatewright_core::plan::Condition::Artifact { step: "write".into(), name: "a.md".into() },
        )
        .decision("ok", &["write"])
        .needs(&["next"])
        .run();
    run.ends("write", writing(reply(Outcome::Done), &[("a.md", "one")]));
    run.done(&["next"]);
    run.answer("ok", "changes");
    run.wants("run write#2");
    // The second attempt leaves nothing; the file of the first is still published.
    run.done(&["write"]);
    assert!(run.state.artifacts.contains_key("a.md"));
    assert_eq!(run.blocked("next"), "gate");
    assert!(
        run.why("next").contains("was not written by the attempt of `write` that counts"),
        "{}",
        run.why("next")
    );
}

#[test]
fn j_03_no_outcome_is_an_error_and_never_success() {
    let mut run = two_steps();
    run.dies("write", ProcessEnd::Exited { code: 0 });
    assert_eq!(run.last_class("write"), Some(FailureClass::Malformed));
    assert!(run.why("write").contains("no_outcome") || run.attempt("write") == 2);
    let report = AttemptReport {
        reply_problem: Some(ReplyProblem::Malformed { violations: vec!["two blocks".to_owned()] }),
        ..AttemptReport::new(ProcessEnd::Exited { code: 0 })
    };
    run.ends("write", report);
    assert_eq!(run.blocked("write"), "attempts_exhausted");
    assert!(run.why("write").contains("two blocks"));
}

#[test]
fn s0_46_an_error_halts_and_is_not_retried() {
    let mut run = draft().agent("write").attempts(5).run();
    run.ends("write", reply(Outcome::Error));
    assert_eq!(run.blocked("write"), "agent_error");
    run.wants("");
    run.status(RunStatus::Blocked);
}

#[test]
fn s0_43_a_missing_input_blocks_before_launch_and_names_near_matches() {
    let mut run = two_steps();
    let problem = InputProblem::Missing {
        name: "plan.md".to_owned(),
        near: vec!["plans.md".to_owned()],
        available: vec!["plans.md".to_owned()],
    };
    run.dies("write", ProcessEnd::NotStarted { problem });
    assert_eq!(run.blocked("write"), "missing_input");
    assert!(run.why("write").contains("plans.md"));
    assert_eq!(run.state.steps["write"].tries, 0, "it was no attempt");
    assert_eq!(run.state.spent[&gatewright_core::state::ScopeId::top()].launches, 0);
    run.resume();
    // The number is not used twice: a late report of the first can never be taken for this one.
    run.wants("run write#2");
}

#[test]
fn j_12_a_silent_agent_is_tried_again_and_then_escalated() {
    let mut run = draft().agent("write").attempts(2).run();
    run.dies("write", ProcessEnd::Idle);
    run.wants("run write#2");
    run.dies("write", ProcessEnd::TimedOut);
    assert_eq!(run.blocked("write"), "attempts_exhausted");
    run.status(RunStatus::Blocked);
}

#[test]
fn j_13_the_end_of_the_process_is_the_truth() {
    let mut run = two_steps();
    // Nobody was told that the attempt ended. After the engine came back the same wish stands, and
    // whoever collects the exit record moves the run on.
    run.crash();
    run.wants("run write#1");
    run.ends("write", writing(reply(Outcome::Done), &[("a.md", "one")]));
    run.wants("run next#1");
}

#[test]
fn j_27_the_same_error_after_a_retry_blocks() {
    let mut run = draft().agent("write").attempts(5).checks(&["tests"]).run();
    for _ in 0..2 {
        run.ends("write", AttemptReport { work: Some(hash("w")), ..reply(Outcome::Done) });
        run.check_ends("write", "tests", checked(false, "3 failed"));
    }
    assert_eq!(run.blocked("write"), "same_error");
}

#[test]
fn j_27_the_same_error_asks_at_once_where_the_end_of_attempts_would() {
    let ways = vec![
        Exhaustion::CompleteWithNotes,
        ask(&[("again", AnswerEffect::Again), ("skip", AnswerEffect::Skip)]),
    ];
    let mut run = draft().agent("write").attempts(5).checks(&["tests"]).on_exhausted(ways).run();
    for _ in 0..2 {
        run.ends("write", AttemptReport { work: Some(hash("w")), ..reply(Outcome::Done) });
        run.check_ends("write", "tests", checked(false, "3 failed"));
    }
    run.wants("ask D-1");
    assert!(run.state.decisions["D-1"].decision.question.contains("the same"));
    run.answer("D-1", "skip");
    run.status(RunStatus::Done);
}

#[test]
fn j_27_an_interruption_between_two_equal_errors_does_not_hide_them() {
    let mut run = draft().check_step("tests").attempts(5).run();
    let red = || AttemptReport {
        check: Some(checked(false, "red")),
        ..AttemptReport::new(ProcessEnd::Exited { code: 1 })
    };
    run.ends("tests", red());
    run.dies("tests", ProcessEnd::Interrupted);
    run.ends("tests", red());
    assert_eq!(run.blocked("tests"), "same_error");
}

#[test]
fn j_27_changed_work_is_not_the_same_error() {
    let mut run = draft().agent("write").attempts(3).checks(&["tests"]).run();
    for work in ["one", "two", "three"] {
        run.ends("write", AttemptReport { work: Some(hash(work)), ..reply(Outcome::Done) });
        run.check_ends("write", "tests", checked(false, "3 failed"));
    }
    assert_eq!(run.blocked("write"), "attempts_exhausted");
}

#[test]
fn s1_67_two_retries_means_three_executions() {
    let mut run = draft().agent("write").attempts(3).run();
    for attempt in 1..=3 {
        run.wants(&format!("run write#{attempt}"));
        run.dies("write", ProcessEnd::Exited { code: 1 });
    }
    assert_eq!(run.blocked("write"), "attempts_exhausted");
    assert_eq!(run.count("step.attempt.started"), 3);
}

#[test]
fn j_46_interruptions_are_counted_apart_and_exactly() {
    let mut run = draft().agent("write").attempts(1).run();
    for _ in 0..3 {
        run.dies("write", ProcessEnd::Interrupted);
    }
    assert_eq!(run.blocked("write"), "interrupted");
    assert_eq!(run.count("step.attempt.started"), 3);
    assert_eq!(run.state.steps["write"].tries, 0);
}

#[test]
fn j_46_to_need_input_and_ask_nothing_uses_up_attempts() {
    let mut run = draft().agent("write").attempts(2).run();
    run.ends("write", reply(Outcome::NeedsInput));
    run.ends("write", reply(Outcome::NeedsInput));
    assert_eq!(run.blocked("write"), "attempts_exhausted");
}

#[test]
fn s3_12_backoff_is_a_time_and_the_retry_starts_at_it() {
    let mut run = draft().agent("write").edit(|step| step.retry.backoff_ms = vec![500]).run();
    run.dies("write", ProcessEnd::Exited { code: 1 });
    run.is("write", "backoff");
    run.later(499);
    run.is("write", "backoff");
    run.later(1);
    run.wants("run write#2");
}

#[test]
fn s3_12_attempts_used_up_ask_a_person_with_the_error() {
    let mut run = draft()
        .agent("write")
        .attempts(1)
        .on_exhausted(vec![ask(&[("again", AnswerEffect::Again), ("skip", AnswerEffect::Skip)])])
        .run();
    run.dies("write", ProcessEnd::Exited { code: 3 });
    run.wants("ask D-1");
    assert!(run.state.decisions["D-1"].decision.question.contains("exited with 3"));
    run.answer("D-1", "again");
    run.wants("run write#2");
    run.dies("write", ProcessEnd::Exited { code: 3 });
    run.answer("D-2", "skip");
    run.status(RunStatus::Done);
    assert_eq!(run.state.waivers.len(), 1);
}

#[test]
fn j_32_all_questions_are_one_batch_and_survive_every_crash() {
    for keep in 0..=4 {
        let mut run = draft().agent("write").attempts(1).run();
        let before = run.log.len();
        run.ends("write", questions(&["which colour?", "which size?"]));
        if keep > 0 {
            run.crash_keeping(before + keep.min(run.log.len() - before));
        }
        run.wants("ask D-1, ask D-2");
        run.answer("D-1", "red");
        run.is("write", "waiting");
        run.crash();
        run.wants("ask D-2");
        run.answer("D-2", "large");
        run.wants("run write#2");
        let answers: Vec<&str> =
            run.state.steps["write"].answers.iter().map(|(_, answer)| answer.as_str()).collect();
        assert_eq!(answers, ["red", "large"]);
        assert_eq!(run.state.steps["write"].tries, 1, "a question is no failed attempt");
    }
}

#[test]
fn j_46_questions_are_put_exactly_three_times() {
    let mut run = draft().agent("write").attempts(1).run();
    for batch in 1..=3 {
        run.ends("write", questions(&["and now?"]));
        run.answer(&format!("D-{batch}"), "text");
    }
    run.ends("write", questions(&["and now?"]));
    assert_eq!(run.blocked("write"), "questions_exhausted");
    assert_eq!(run.count("decision.opened"), 3);
}

#[test]
fn j_33_a_late_result_of_a_superseded_attempt_changes_nothing() {
    let mut run = draft().agent("write").agent("read").needs(&["write"]).run();
    run.done(&["write"]);
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    run.wants("stop read#1, run write#2");
    let late = Input::AttemptEnded { step: "read".into(), attempt: 1, report: reply(Outcome::Done) };
    run.feed(late.clone());
    run.wants("run write#2");
    assert_eq!(run.state.results_ignored, 1);
    assert_eq!(run.try_feed(late), Err(Rejected::NotExpected { step: "read".into() }));
    let early = Input::AttemptEnded { step: "write".into(), attempt: 1, report: reply(Outcome::Done) };
    assert!(run.try_feed(early).is_err());
    run.is("write", "running");
}

#[test]
fn j_33_attempts_of_a_group_that_runs_again_get_new_numbers() {
    let mut run = draft().sub_run("sub").agent("sub/do").run();
    run.wants("run sub/do#1");
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    run.wants("stop sub/do#1, run sub/do#2");
    let old = Input::AttemptEnded { step: "sub/do".into(), attempt: 1, report: reply(Outcome::Done) };
    run.feed(old);
    run.is("sub/do", "running");
}

#[test]
fn j_51_the_engine_dies_while_an_agent_works() {
    let mut run = two_steps();
    run.crash();
    run.wants("run write#1");
    run.ends("write", writing(reply(Outcome::Done), &[("a.md", "one")]));
    run.crash();
    run.wants("run next#1");
    assert_eq!(run.count("step.attempt.started"), 2, "nothing that finished is run twice");
}

#[test]
fn j_51_a_result_counts_whatever_part_of_its_consequences_was_durable() {
    for keep in 1..=3 {
        let mut run = two_steps();
        let before = run.log.len();
        run.ends("write", writing(reply(Outcome::Done), &[("a.md", "one")]));
        run.crash_keeping(before + keep);
        run.wants("run next#1");
        run.is("write", "passed");
    }
}

#[test]
fn j_42_nothing_fires_while_a_person_is_waited_for() {
    let mut run =
        draft().budget(Budget { wall_ms: Some(1000), ..Budget::default() }).decision("ok", &[]).run();
    run.later(1_000_000_000);
    run.wants("ask ok");
    run.status(RunStatus::Waiting);
    run.answer("ok", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn j_43_a_used_up_budget_is_a_pause_with_figures() {
    let budget = Budget { micro_usd: Some(1_000_000), ..Budget::default() };
    let mut run = draft().budget(budget).agent("a").agent("b").needs(&["a"]).run();
    let usage = Some(Usage { tokens: None, micro_usd: Some(1_200_000) });
    run.ends("a", AttemptReport { usage, ..reply(Outcome::Done) });
    run.status(RunStatus::Paused);
    let said = gatewright_core::explain::blocked_by(&run.plan, &run.state).unwrap().message;
    assert_eq!(said, "the budget is used up: 1.20 of 1.00 usd");
    run.resume();
    run.status(RunStatus::Paused);
    let raise = Raise { micro_usd: Some(2_000_000), ..Raise::default() };
    run.feed(Input::Resume { raise, substitutes: std::collections::BTreeMap::new() });
    run.wants("run b#1");
    run.done(&["b"]);
    run.status(RunStatus::Done);
    assert_eq!(run.state.spent[&gatewright_core::state::ScopeId::top()].unpriced, 1, "unknown is not zero");
}

#[test]
fn j_43_the_budget_of_a_nested_run_pauses_too_and_only_while_it_runs() {
    let limits = Budget { wall_ms: Some(1000), launches: Some(1), ..Budget::default() };
    let mut run = draft()
        .sub_run("sub")
        .edit(|step| {
            if let Kind::SubRun { budget, .. } = &mut step.kind {
                **budget = limits;
            }
        })
        .agent("sub/do")
        .agent("after")
        .needs(&["sub"])
        .run();
    run.later(1000);
    run.status(RunStatus::Paused);
    run.done(&["sub/do"]);
    run.resume();
    run.wants("run after#1");
    run.status(RunStatus::Running);
}

#[test]
fn j_43_what_a_superseded_attempt_cost_is_counted() {
    let mut run = draft().agent("a").run();
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    let usage = Some(Usage { tokens: Some(7), micro_usd: Some(9) });
    let report = AttemptReport { usage, ..AttemptReport::new(ProcessEnd::Stopped) };
    run.feed(Input::AttemptEnded { step: "a".into(), attempt: 1, report });
    let spent = &run.state.spent[&gatewright_core::state::ScopeId::top()];
    assert_eq!((spent.tokens, spent.micro_usd, spent.launches), (7, 9, 2));
}

#[test]
fn j_46_a_budget_of_launches_is_exact() {
    let budget = Budget { launches: Some(2), ..Budget::default() };
    let mut run = draft().budget(budget).agent("a").agent("b").needs(&["a"]).agent("c").needs(&["b"]).run();
    run.done(&["a", "b"]);
    run.status(RunStatus::Paused);
    assert_eq!(run.count("step.attempt.started"), 2);
}

#[test]
fn j_44_a_quota_with_a_reset_time_waits_and_goes_on_by_itself() {
    let mut run = draft().agent("a").attempts(1).agent("b").pool("run", 1).run();
    let until = Some(Timestamp(run.now.0 + 60_000));
    run.ends("a", AttemptReport { quota_until: until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    // Another step of the same agent would hit the same wall.
    run.wants("");
    run.status(RunStatus::Running);
    assert_eq!(gatewright_core::wanted(&run.plan, &run.state, run.now).wake_at, until);
    assert!(run.why("b").contains("quota"), "{}", run.why("b"));
    run.later(60_000);
    run.wants("run a#2");
    assert_eq!(run.state.steps["a"].tries, 1, "it was not the agent's fault");
}

#[test]
fn j_44_a_reset_time_that_has_passed_is_an_attempt_like_any_other() {
    let mut run = draft().agent("a").attempts(2).run();
    for _ in 0..2 {
        let quota_until = Some(run.now);
        run.ends("a", AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    }
    assert_eq!(run.blocked("a"), "attempts_exhausted");
}

fn out_of_quota(run: &mut common::Bench, step: &str, for_ms: u64) {
    let quota_until = Some(run.now.plus_ms(for_ms));
    run.ends(step, AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
}

#[test]
fn j_44_a_quota_is_waited_for_only_so_long_and_then_the_run_is_paused_with_the_figures() {
    let mut run = draft().agent("a").run();
    out_of_quota(&mut run, "a", 20 * 3_600_000);
    run.status(RunStatus::Running);
    run.later(20 * 3_600_000);
    out_of_quota(&mut run, "a", 10 * 3_600_000);
    run.status(RunStatus::Paused);
    let said = gatewright_core::explain::blocked_by(&run.plan, &run.state).unwrap().message;
    assert!(said.contains("30h 00m") && said.contains("24h 00m") && said.contains("`fake`"), "{said}");
    run.crash();
    run.resume();
    run.status(RunStatus::Paused);
    let raise = Raise { quota_wait_ms: Some(48 * 3_600_000), ..Raise::default() };
    run.feed(Input::Resume { raise, substitutes: std::collections::BTreeMap::new() });
    run.status(RunStatus::Running);
    run.later(10 * 3_600_000);
    run.wants("run a#3");
    run.done(&["a"]);
    assert!(run.state.quota_waited_ms.is_empty(), "it works again");
}

#[test]
fn j_44_after_the_reset_time_a_plain_resume_goes_on() {
    let mut run = draft().agent("a").run();
    out_of_quota(&mut run, "a", 30 * 3_600_000);
    run.status(RunStatus::Paused);
    run.later(30 * 3_600_000);
    run.status(RunStatus::Paused);
    run.resume();
    run.wants("run a#2");
}

#[test]
fn j_44_an_agent_that_asks_for_a_moment_again_and_again_uses_up_its_attempts() {
    let mut run = draft().agent("a").attempts(1).run();
    for _ in 0..gatewright_core::plan::limits::QUOTA_WAITS_MAX {
        out_of_quota(&mut run, "a", 1000);
        run.is("a", "backoff");
        run.later(1000);
    }
    out_of_quota(&mut run, "a", 1000);
    assert_eq!(run.blocked("a"), "attempts_exhausted");
}

#[test]
fn j_43_only_a_higher_limit_is_a_raise() {
    let budget = Budget { micro_usd: Some(1_000_000), ..Budget::default() };
    let mut run = draft().budget(budget).agent("a").run();
    for (raise, says) in [
        (Raise { micro_usd: Some(900_000), ..Raise::default() }, "1.00"),
        (Raise { micro_usd: Some(1_000_000), ..Raise::default() }, "1.00"),
        (Raise { tokens: Some(5), ..Raise::default() }, "tokens"),
        (Raise { quota_wait_ms: Some(1000), ..Raise::default() }, "24h 00m"),
    ] {
        let order = Input::Resume { raise, substitutes: std::collections::BTreeMap::new() };
        let refused = run.try_feed(order).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn s1_08_an_escalated_run_has_the_budget_of_its_new_profile() {
    let complex = |run: &mut common::Bench| {
        let mut report = reply(Outcome::Blocked);
        report.reply.as_mut().unwrap().reason = Some("complexity".to_owned());
        run.ends("lean", report);
    };
    let plan = || {
        let budget = |launches, tokens| Budget { launches: Some(launches), tokens, ..Budget::default() };
        let full = draft().agent("full").budget(budget(3, None));
        draft().agent("lean").budget(budget(2, Some(100))).escalates("complexity", "full", full)
    };
    let top = gatewright_core::state::ScopeId::top();
    let mut run = plan().run();
    complex(&mut run);
    assert_eq!(run.state.budgets[&top], Budget { launches: Some(3), ..Budget::default() });
    assert_eq!(run.state.spent[&top].launches, 2, "what was spent stays spent");
    let mut run = plan().run();
    let raise = Raise { launches: Some(50), ..Raise::default() };
    run.feed(Input::Resume { raise, substitutes: std::collections::BTreeMap::new() });
    complex(&mut run);
    assert_eq!(run.state.budgets[&top].launches, Some(50), "what a person raised stays raised");
}

#[test]
fn s4_12_a_reviewer_that_breaks_blocks_and_is_never_content() {
    let mut run = draft()
        .agent("a")
        .review("look", &["a"])
        .needs(&["a"])
        .edit(|step| step.retry.on_exhausted = vec![Exhaustion::CompleteWithNotes])
        .attempts(1)
        .agent("next")
        .needs(&["look"])
        .run();
    run.done(&["a"]);
    run.dies("look", ProcessEnd::Exited { code: 1 });
    assert_eq!(run.blocked("look"), "attempts_exhausted");
    run.is("next", "pending");
}

#[test]
fn s2_13_complete_with_notes_is_passed_with_notes() {
    let mut run = draft().agent("a").attempts(1).on_exhausted(vec![Exhaustion::CompleteWithNotes]).run();
    run.dies("a", ProcessEnd::Exited { code: 1 });
    assert!(matches!(&run.state.steps["a"].phase, Phase::Passed { notes } if notes.len() == 1));
    run.status(RunStatus::Done);
}

#[test]
fn s1_08_a_block_with_a_known_reason_escalates_to_another_profile() {
    let full = draft().agent("intake").agent("design").needs(&["intake"]);
    let mut run =
        draft().agent("intake").agent("code").needs(&["intake"]).escalates("complexity", "full", full).run();
    run.done(&["intake"]);
    let mut report = reply(Outcome::Blocked);
    report.reply.as_mut().unwrap().reason = Some("complexity".to_owned());
    run.ends("code", report);
    assert_eq!(run.state.profile.as_str(), "full");
    // Same id, new number: the result of the lean intake is not taken for this one.
    run.wants("run intake#2");
    run.done(&["intake", "design"]);
    run.status(RunStatus::Done);
}

#[test]
fn s1_65_a_block_without_a_known_reason_blocks() {
    let mut run = two_steps();
    run.ends("write", reply(Outcome::Blocked));
    assert_eq!(run.blocked("write"), "agent_blocked");
}

#[test]
fn s0_52_done_goes_on_and_checks_stand_between() {
    let mut run = draft().agent("a").checks(&["lint", "tests"]).agent("b").needs(&["a"]).run();
    run.done(&["a"]);
    run.wants("check a#1 lint");
    run.check_ends("a", "lint", checked(true, ""));
    run.wants("check a#1 tests");
    run.crash();
    run.wants("check a#1 tests");
    run.check_ends("a", "tests", checked(true, ""));
    run.wants("run b#1");
}

#[test]
fn s4_32_stop_lets_the_attempt_finish_and_is_resumable() {
    let mut run = draft().agent("a").agent("b").needs(&["a"]).run();
    run.feed(Input::Stop);
    run.wants("run a#1");
    run.done(&["a"]);
    run.status(RunStatus::Paused);
    run.wants("");
    run.crash();
    run.status(RunStatus::Paused);
    run.resume();
    run.wants("run b#1");
}

#[test]
fn j_07_a_reviewer_that_finds_nothing_but_is_not_content_is_not_a_pass() {
    let mut run = draft().agent("a").review("look", &["a"]).needs(&["a"]).run();
    run.done(&["a"]);
    run.ends("look", findings(Outcome::Failed, &[]));
    run.is("look", "fixing");
    run.wants("run a#2");
}

#[test]
fn s0_40_only_notes_pass_with_notes() {
    let mut run = draft().agent("a").review("look", &["a"]).needs(&["a"]).run();
    run.done(&["a"]);
    run.ends("look", findings(Outcome::Failed, &[Severity::Low]));
    assert!(matches!(&run.state.steps["look"].phase, Phase::Passed { notes } if notes[0].contains("[low]")));
    run.status(RunStatus::Done);
}

/// Decision 27: two writers of one checkout never overlap, a disjoint one may, and the one who waits says why.
#[test]
fn one_writer_at_a_time_in_a_shared_checkout() {
    let tenure = |name: &str| {
        let name = name.to_owned();
        move |step: &mut gatewright_core::plan::Step| step.tenure = Some(name.as_str().into())
    };
    let mut run = draft()
        .excludes("src", &["src", "nothing"])
        .excludes("nothing", &["src"])
        .agent("one")
        .edit(tenure("src"))
        .agent("two")
        .edit(tenure("src"))
        .agent("docs")
        .edit(tenure("docs"))
        .agent("review")
        .edit(tenure("nothing"))
        .run();
    // Who only reads came first: both writers of what it reads wait, the writer of something else does not.
    run.is("docs", "running");
    run.is("review", "running");
    run.is("one", "ready");
    run.is("two", "ready");
    run.done(&["review"]);
    run.is("one", "running");
    run.is("two", "ready");
    let why = gatewright_core::explain::explain_step(&run.plan, &run.state, &"two".into()).unwrap();
    assert!(why.misses.iter().any(|miss| miss.contains("`one` is at work in the same checkout")), "{why:?}");
    run.done(&["one"]);
    run.is("two", "running");
}

/// What an attempt touched outside its scope counts before anything it says.
#[test]
fn a_trespass_fails_the_attempt_whatever_it_says() {
    for outcome in [Outcome::Done, Outcome::Blocked, Outcome::Error, Outcome::NeedsInput] {
        let mut run = draft().agent("x").attempts(1).run();
        let mut report = reply(outcome);
        report.trespasses = vec!["role `x` may not write `b.txt` (modified)".to_owned()];
        run.ends("x", report);
        run.is("x", "blocked");
        let events = format!("{:?}", run.state.steps["x"].phase);
        assert!(events.contains("reality") && events.contains("b.txt"), "{events}");
    }
}

#[test]
fn intrusions_are_kept_up_to_a_limit_with_those_who_were_at_work() {
    let mut run = draft().agent("x").run();
    for number in 0..300 {
        let what = format!("message {number}");
        let intrusion = Intrusion { kind: IntrusionKind::UnsealedOrder, what, by: Vec::new() };
        run.feed(Input::Noticed { intrusion });
    }
    assert_eq!(run.state.intrusions.len(), gatewright_core::plan::limits::INTRUSIONS_MAX);
    assert_eq!(run.state.intrusions[0].by, ["x".into()]);
    run.is("x", "running");
}

fn troubled(kind: TroubleKind) -> AttemptReport {
    let trouble = Trouble { kind, message: "the provider fails".to_owned() };
    AttemptReport { trouble: Some(trouble), ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) }
}

#[test]
fn a_failing_provider_is_given_time_and_another_model_is_asked_at_once() {
    let pauses = |reports: &[AttemptReport]| -> Vec<u64> {
        let mut run = draft().agent("write").attempts(9).run();
        let ended = reports.iter().map(|report| {
            let before = run.now;
            run.ends("write", report.clone());
            match run.state.steps["write"].phase {
                Phase::Backoff { until } => {
                    run.later(until.since(before));
                    until.since(before)
                }
                _ => 0,
            }
        });
        ended.collect()
    };
    let server = troubled(TroubleKind::Server);
    let doubled = pauses(&[server.clone(), server.clone(), server.clone()]);
    assert!(doubled[0] > 0 && doubled[1] == 2 * doubled[0] && doubled[2] == 2 * doubled[1], "{doubled:?}");
    let other = AttemptReport { next_model: Some("small".to_owned()), ..server };
    assert_eq!(pauses(&[other]), [0]);
    assert_eq!(pauses(&[troubled(TroubleKind::Unknown)]), [0]);
}

#[test]
fn the_model_to_fall_back_to_holds_until_an_attempt_ends_without_one() {
    let mut run = draft().agent("write").attempts(9).run();
    let next =
        |model: &str| AttemptReport { next_model: Some(model.to_owned()), ..troubled(TroubleKind::Rate) };
    run.ends("write", next("middle"));
    assert_eq!(run.state.steps["write"].model.as_deref(), Some("middle"));
    run.ends("write", AttemptReport::new(ProcessEnd::Interrupted));
    assert_eq!(
        run.state.steps["write"].model.as_deref(),
        Some("middle"),
        "the machine's fault tells nothing"
    );
    run.ends("write", next("small"));
    assert_eq!(run.state.steps["write"].model.as_deref(), Some("small"));
    run.ends("write", troubled(TroubleKind::Unknown));
    assert_eq!(run.state.steps["write"].model, None, "from the first one again");
}

#[test]
fn j_43_each_step_and_each_role_has_its_cost_and_unknown_is_not_zero() {
    let mut run = draft().agent("write").attempts(3).agent("next").needs(&["write"]).run();
    let usage = |tokens: u64| Some(Usage { tokens: Some(tokens), micro_usd: Some(7) });
    run.ends("write", AttemptReport { usage: usage(100), ..reply(Outcome::Failed) });
    run.ends("write", AttemptReport { usage: usage(30), ..reply(Outcome::Done) });
    run.done(&["next"]);
    let step = |id: &str| run.state.steps[id].spent.clone();
    assert_eq!((step("write").known_tokens(), step("write").launches), (Some(130), 2));
    assert_eq!((step("next").known_tokens(), step("next").known_micro_usd()), (None, None));
    let role = |id: &str| run.state.spent_by_role[&Some(id.into())].clone();
    assert_eq!((role("role-write").known_micro_usd(), role("role-write").unpriced), (Some(14), 0));
    assert_eq!((role("role-next").known_tokens(), role("role-next").unpriced), (None, 1));
}

#[test]
fn an_attempt_that_fails_while_what_it_needs_is_asked_again_waits_for_that() {
    let mut run = draft()
        .agent("design")
        .writes("design.md")
        .decision("approve", &["design"])
        .show(&["design.md"])
        .needs(&["design"])
        .agent("code")
        .needs(&["approve"])
        .agent("redesign")
        .writes("design.md")
        .run();
    run.ends("design", writing(reply(Outcome::Done), &[("design.md", "one")]));
    run.answer("approve", "approved");
    run.ends("redesign", writing(reply(Outcome::Done), &[("design.md", "two")]));
    run.wants("run code#1, ask approve");
    run.dies("code", ProcessEnd::Exited { code: 1 });
    run.wants("ask approve");
    run.is("code", "pending");
    run.answer("approve", "approved");
    run.wants("run code#2");
}

#[test]
fn a_step_began_with_its_first_attempt() {
    let mut run = draft().agent("a").agent("b").needs(&["a"]).decision("ok", &[]).run();
    let began = |run: &Bench, step: &str| run.state.steps[step].started_at;
    assert_eq!((began(&run, "a"), began(&run, "b"), began(&run, "ok")), (Some(run.now), None, None));
    let first = run.now;
    run.later(500);
    run.dies("a", ProcessEnd::Exited { code: 1 });
    run.wants("run a#2, ask ok");
    assert_eq!(began(&run, "a"), Some(first));
}
