//! How attempts end: what each kind of end means, in the words people get.

mod common;

use common::{Bench, checked, draft, findings, hash, questions, reply, writing};
use gatewright_core::{
    event::{BlockReason, FailureClass},
    fact::{ArtifactFact, AttemptReport, CheckFact, InputProblem, ProcessEnd, Trouble, TroubleKind},
    input::Input,
    outcome::{Outcome, ReplyProblem},
    plan::{Kind, limits},
    state::{DecisionStatus, Phase},
    verdict::Severity,
};

fn exited(code: i32) -> AttemptReport {
    AttemptReport::new(ProcessEnd::Exited { code })
}

fn troubled(kind: TroubleKind) -> AttemptReport {
    AttemptReport { trouble: Some(Trouble { kind, message: "it fails".to_owned() }), ..exited(1) }
}

fn one(attempts: u32) -> Bench {
    draft().agent("a").attempts(attempts).agent("keep").run()
}

/// How the step stands: why it is blocked, or why it is tried again.
fn after(report: AttemptReport) -> String {
    let mut run = one(3);
    run.ends("a", report);
    let own = &run.state.steps["a"];
    match &own.phase {
        Phase::Blocked { reason, message } => format!("blocked {}: {message}", reason.word()),
        Phase::Running { attempt: 2 } | Phase::Backoff { .. } => {
            let last = own.last_failure.as_ref().expect("it failed");
            format!("again {}: {}", last.class.word(), last.message)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_end_of_a_process_has_its_meaning() {
    let ended = |ended| after(AttemptReport::new(ended));
    assert_eq!(ended(ProcessEnd::TimedOut), "again timeout: it ran longer than its timeout");
    assert_eq!(ended(ProcessEnd::Idle), "again idle: it was silent for longer than its idle timeout");
    assert_eq!(ended(ProcessEnd::Signalled { signal: 11 }), "again crash: it was ended by signal 11");
    assert_eq!(ended(ProcessEnd::Exited { code: 2 }), "again crash: it exited with 2");
    assert_eq!(
        ended(ProcessEnd::Exited { code: 0 }),
        "again malformed: it ended without an outcome (no_outcome)"
    );
    assert_eq!(ended(ProcessEnd::Interrupted), "again interrupted: it was interrupted");
    assert_eq!(ended(ProcessEnd::Stopped), "again interrupted: it was interrupted");
    let message = "no such program".to_owned();
    assert_eq!(ended(ProcessEnd::StartFailed { message }), "blocked tool_unavailable: no such program");
    let problem = InputProblem::Unusable { message: "no folder".to_owned() };
    assert_eq!(ended(ProcessEnd::NotStarted { problem }), "blocked tool_unavailable: no folder");
}

#[test]
fn a_missing_input_is_told_with_what_there_is() {
    let missing = |near: &[&str], available: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let problem =
            InputProblem::Missing { name: "plan.md".to_owned(), near: own(near), available: own(available) };
        after(AttemptReport::new(ProcessEnd::NotStarted { problem }))
    };
    let starts = "blocked missing_input: required input `plan.md` does not exist";
    assert_eq!(
        missing(&["plans.md"], &["plans.md", "x.md"]),
        format!("{starts}; near matches: plans.md; there are: plans.md, x.md")
    );
    assert_eq!(missing(&[], &["x.md"]), format!("{starts}; there are: x.md"));
    assert_eq!(missing(&[], &[]), format!("{starts}; the run directory is empty"));
}

#[test]
fn an_agents_own_word_that_it_failed_counts_more_than_its_exit_code() {
    assert_eq!(after(troubled(TroubleKind::Auth)), "blocked tool_unavailable: it fails (auth)");
    assert_eq!(after(troubled(TroubleKind::BadRequest)), "blocked agent_error: it fails (bad_request)");
    assert_eq!(after(troubled(TroubleKind::Context)), "blocked agent_error: it fails (context)");
    assert_eq!(after(troubled(TroubleKind::Network)), "again crash: it fails (network)");
    let well = AttemptReport { trouble: troubled(TroubleKind::Denied).trouble, ..reply(Outcome::Done) };
    assert_eq!(after(well), "again crash: it fails (denied)");
    let killed = AttemptReport {
        trouble: troubled(TroubleKind::Auth).trouble,
        ..AttemptReport::new(ProcessEnd::TimedOut)
    };
    assert_eq!(after(killed), "again timeout: it ran longer than its timeout", "nobody heard the end of it");
    let signalled = ProcessEnd::Signalled { signal: 9 };
    let killed =
        AttemptReport { trouble: troubled(TroubleKind::Auth).trouble, ..AttemptReport::new(signalled) };
    assert_eq!(after(killed), "blocked tool_unavailable: it fails (auth)");
}

#[test]
fn a_quota_that_is_waited_for_is_no_trouble() {
    let mut run = one(3);
    let quota_until = Some(run.now.plus_ms(1000));
    run.ends("a", AttemptReport { quota_until, ..troubled(TroubleKind::Auth) });
    assert_eq!(run.state.steps["a"].phase, Phase::Backoff { until: run.now.plus_ms(1000) });
    assert_eq!(run.state.steps["a"].tries, 0, "and no attempt");
}

#[test]
fn an_outage_is_waited_for_twice_as_long_each_time_up_to_a_limit() {
    let mut run = draft().agent("a").attempts(20).run();
    let mut pauses = Vec::new();
    for _ in 0..14 {
        run.ends("a", troubled(TroubleKind::Server));
        let Phase::Backoff { until } = run.state.steps["a"].phase else { panic!("it waits") };
        pauses.push(until.since(run.now));
        run.later(until.since(run.now));
    }
    assert_eq!(pauses[0], limits::OUTAGE_PAUSE_MS);
    assert!(
        pauses.windows(2).all(|pair| pair[1] == (2 * pair[0]).min(limits::OUTAGE_PAUSE_MAX_MS)),
        "{pauses:?}"
    );
    assert_eq!(pauses.last(), Some(&limits::OUTAGE_PAUSE_MAX_MS));
}

#[test]
fn what_an_agent_says_is_kept_in_its_words() {
    let says = |outcome, summary: &str, notes: &[&str], seen: &[&str]| {
        let mut report = reply(outcome);
        if let Some(reply) = &mut report.reply {
            summary.clone_into(&mut reply.summary);
            reply.notes = notes.iter().map(|note| (*note).to_owned()).collect();
        }
        report.remarks = seen.iter().map(|note| (*note).to_owned()).collect();
        after(report)
    };
    assert_eq!(says(Outcome::Error, "", &[], &[]), "blocked agent_error: the agent reports an error");
    assert_eq!(
        says(Outcome::Error, "no\naccess", &["tried twice"], &["the file is there"]),
        "blocked agent_error: no access; tried twice; the file is there"
    );
    assert_eq!(says(Outcome::Blocked, "", &[], &[]), "blocked agent_blocked: the agent says it is blocked");
    assert_eq!(says(Outcome::Blocked, "no key", &[], &[]), "blocked agent_blocked: no key");
    assert_eq!(says(Outcome::Failed, "red", &[], &[]), "again crash: the agent reports failure: red");
    let malformed = ReplyProblem::Malformed { violations: vec!["no word".to_owned(), "no file".to_owned()] };
    let report = AttemptReport { reply_problem: Some(malformed), ..exited(0) };
    assert_eq!(after(report), "again malformed: its reply is malformed: no word; no file");
    assert_eq!(after(questions(&[])), "again malformed: it says that it needs input but asks nothing");
}

#[test]
fn what_was_seen_counts_more_than_what_is_said() {
    let fact = |hash_of: Option<&str>, violations: &[&str], optional| ArtifactFact {
        declared: "a.md".into(),
        name: "a.md".into(),
        hash: hash_of.map(hash),
        bytes: 1,
        violations: violations.iter().map(|text| (*text).to_owned()).collect(),
        optional,
    };
    let with = |fact: ArtifactFact| after(AttemptReport { artifacts: vec![fact], ..reply(Outcome::Done) });
    assert_eq!(with(fact(None, &["a link"], false)), "again reality: a.md: a link");
    assert_eq!(with(fact(None, &["a link"], true)), "again reality: a.md: a link");
    assert_eq!(with(fact(None, &[], false)), "again reality: claimed but not found: a.md");
    assert_eq!(with(fact(None, &[], true)), "Passed { notes: [] }");
    assert_eq!(with(fact(Some("x"), &["no heading"], false)), "again schema: a.md: no heading");
    assert_eq!(with(fact(Some("x"), &["no heading"], true)), "again schema: a.md: no heading");
    assert_eq!(with(fact(Some("x"), &[], false)), "Passed { notes: [] }");
    let contradictions = vec!["b.md does not exist".to_owned(), "c.md too".to_owned()];
    assert_eq!(
        after(AttemptReport { contradictions, ..reply(Outcome::Done) }),
        "again reality: b.md does not exist; c.md too"
    );
}

#[test]
fn a_check_that_is_ok_only_in_the_end_is_a_note() {
    let note = "check `lint` is flaky: it failed 2 time(s) before it was ok";
    let flaky = || CheckFact { flaky: 2, ..checked(true, "") };
    let mut run = draft().agent("a").checks(&["lint"]).agent("keep").run();
    run.done(&["a"]);
    run.check_ends("a", "lint", flaky());
    assert_eq!(run.state.steps["a"].phase, Phase::Passed { notes: vec![note.to_owned()] });
    let mut run = draft().agent("a").checks(&["lint"]).agent("keep").run();
    run.done(&["a"]);
    run.check_ends("a", "lint", checked(true, ""));
    assert_eq!(run.state.steps["a"].phase, Phase::Passed { notes: Vec::new() });
    let mut run = draft().check_step("a").agent("keep").run();
    run.ends("a", AttemptReport { check: Some(flaky()), ..exited(0) });
    let note = "check `tests` is flaky: it failed 2 time(s) before it was ok";
    assert_eq!(run.state.steps["a"].phase, Phase::Passed { notes: vec![note.to_owned()] });
    let mut run = draft().check_step("a").agent("keep").run();
    run.ends("a", AttemptReport { check: Some(checked(true, "")), ..exited(0) });
    assert_eq!(run.state.steps["a"].phase, Phase::Passed { notes: Vec::new() });
}

#[test]
fn a_check_step_that_is_ok_at_a_later_attempt_is_flaky() {
    let note = "check `tests` is flaky: it failed 3 time(s) before it was ok";
    let fails = |how| AttemptReport { check: Some(checked(false, how)), ..exited(1) };
    let mut run = draft().check_step("a").attempts(3).agent("keep").run();
    run.ends("a", fails("one test failed"));
    // The machine's fault says nothing about the check.
    run.ends("a", AttemptReport::new(ProcessEnd::Interrupted));
    run.ends("a", fails("another test failed"));
    run.ends("a", AttemptReport { check: Some(CheckFact { flaky: 1, ..checked(true, "") }), ..exited(0) });
    assert_eq!(run.state.steps["a"].phase, Phase::Passed { notes: vec![note.to_owned()] });
}

#[test]
fn a_failed_check_has_the_class_that_it_says() {
    let class = |fact: CheckFact| {
        let mut run = draft().agent("a").checks(&["lint"]).attempts(2).run();
        run.done(&["a"]);
        run.check_ends("a", "lint", fact);
        run.last_class("a")
    };
    let failed = || checked(false, "bad");
    assert_eq!(class(failed()), Some(FailureClass::Test));
    assert_eq!(class(CheckFact { build: true, ..failed() }), Some(FailureClass::Build));
    assert_eq!(
        class(CheckFact { class: Some(FailureClass::Schema), build: true, ..failed() }),
        Some(FailureClass::Schema)
    );
    assert_eq!(class(CheckFact { timed_out: true, build: true, ..failed() }), Some(FailureClass::Timeout));
}

#[test]
fn what_cannot_be_merged_is_mended_like_findings_where_somebody_may_mend_it() {
    let plan = |repair: bool| {
        let mut draft = draft().agent("fix").dormant().review("merge", &["fix"]);
        draft = draft.edit(|step| {
            let Kind::Review(review) = step.kind.clone() else { panic!("a review") };
            step.kind = Kind::Merge { of: "f".into(), repair: repair.then_some(review) };
        });
        draft.attempts(1).agent("keep").run()
    };
    let conflict = |severities: &[Severity]| AttemptReport {
        check: Some(checked(false, "a conflict")),
        ..findings(Outcome::Failed, severities)
    };
    let mut run = plan(true);
    run.ends("merge", conflict(&[Severity::High]));
    run.wants("run fix#1, run keep#1");
    run.is("merge", "fixing");
    let mut run = plan(true);
    run.ends("merge", conflict(&[]));
    assert_eq!(run.blocked("merge"), "attempts_exhausted");
    let mut run = plan(false);
    run.ends("merge", conflict(&[Severity::High]));
    assert_eq!(run.blocked("merge"), "attempts_exhausted");
    let mut run = plan(true);
    run.ends("merge", AttemptReport { check: Some(checked(true, "")), ..reply(Outcome::Done) });
    run.is("merge", "passed");
}

#[test]
fn a_decision_that_is_stale_when_a_step_is_launched_is_asked_again() {
    let mut run = draft().decision("ok", &[]).agent("a").needs(&["ok"]).agent("keep").run();
    run.answer("ok", "approved");
    let problem = InputProblem::Stale { decision: "ok".into(), changed: vec!["tree".into()] };
    run.dies("a", ProcessEnd::NotStarted { problem: problem.clone() });
    assert_eq!(run.state.decisions["ok"].status, DecisionStatus::Pending, "{}", run.story());
    run.is("a", "pending");
    run.answer("ok", "approved");
    run.wants("run a#2, run keep#1");
    assert_eq!(run.count("decision.staled"), 1, "{}", run.story());
}

#[test]
fn the_last_failure_is_known_when_the_attempts_are_used_up() {
    let mut run = one(1);
    run.dies("a", ProcessEnd::Exited { code: 4 });
    assert_eq!(run.blocked("a"), BlockReason::AttemptsExhausted.word());
    let last = run.state.steps["a"].last_failure.as_ref().expect("it is known");
    assert_eq!((last.class, last.message.as_str()), (FailureClass::Crash, "it exited with 4"));
}

#[test]
fn a_referral_is_for_those_it_may_go_to_and_counted() {
    let plan = |back_max| {
        draft()
            .agent("design")
            .agent("code")
            .needs(&["design"])
            .edit(move |step| {
                step.back = vec!["design".into()];
                step.back_max = back_max;
            })
            .attempts(1)
            .run()
    };
    let back = |to: &str, work: Option<&str>| {
        let mut report = AttemptReport { work: work.map(hash), ..reply(Outcome::Done) };
        if let Some(reply) = &mut report.reply {
            reply.back_to = Some(to.into());
        }
        report
    };
    let mut run = plan(5);
    run.done(&["design"]);
    run.ends("code", back("nobody", None));
    assert!(
        run.why("code").contains("it refers the work back to `nobody`, which it may not (allowed: design)"),
        "{}",
        run.why("code")
    );
    // The first time is never without improvement, whatever the work is like; nor is unknown work.
    let mut run = plan(5);
    run.done(&["design"]);
    for round in 2..5 {
        run.ends("code", back("design", None));
        run.wants(&format!("run design#{round}"));
        run.done(&["design"]);
    }
    let mut run = plan(1);
    run.done(&["design"]);
    run.ends("code", back("design", Some("one")));
    run.wants("run design#2");
    run.done(&["design"]);
    run.ends("code", back("design", Some("two")));
    run.wants("ask D-1");
    assert_eq!(
        run.state.decisions["D-1"].decision.question,
        "`code` refers the work back to `design` again without improvement. What now?"
    );
}

#[test]
fn a_work_that_is_taken_over_counts_for_nobody() {
    let mut run = draft().agent("a").writes("a.md").agent("keep").run();
    run.feed(Input::Give { step: "a".into(), from: "old".to_owned() });
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "text")]));
    let spent = &run.state.steps["a"].spent;
    assert_eq!((spent.unpriced, spent.priced), (0, 0), "nobody worked");
}

#[test]
fn j_27_after_a_resume_the_same_error_is_tried_again_once() {
    let mut run = one(9);
    let unfinished = || writing(reply(Outcome::Done), &[("a.md", "")]);
    run.ends("a", unfinished());
    run.ends("a", unfinished());
    assert_eq!(run.blocked("a"), "same_error");
    run.resume();
    run.ends("a", unfinished());
    run.is("a", "running");
    run.ends("a", unfinished());
    assert_eq!(run.blocked("a"), "same_error");
}

#[test]
fn launches_that_never_happened_are_counted_apart() {
    let mut run = one(3);
    for count in 1..=2 {
        let problem = InputProblem::Unusable { message: "no folder".to_owned() };
        run.dies("a", ProcessEnd::NotStarted { problem });
        assert_eq!(run.state.steps["a"].not_started, count);
        run.resume();
    }
    run.dies("a", ProcessEnd::Exited { code: 1 });
    let own = &run.state.steps["a"];
    assert_eq!((own.not_started, own.attempts, own.tries), (2, 4, 2));
    assert_eq!(own.spent.launches, 2, "what was not started cost nothing: {own:?}");
}

#[test]
fn waits_for_a_quota_in_a_row_end_with_an_attempt_that_was_not_interrupted() {
    let mut run = one(9);
    let waits = |run: &Bench| run.state.steps["a"].quota_waits;
    let quota = |run: &mut Bench| {
        let quota_until = Some(run.now.plus_ms(1000));
        run.ends("a", AttemptReport { quota_until, ..exited(1) });
        run.later(1000);
    };
    quota(&mut run);
    quota(&mut run);
    assert_eq!(waits(&run), 2);
    run.dies("a", ProcessEnd::Interrupted);
    assert_eq!(waits(&run), 2, "the machine's fault tells nothing");
    run.dies("a", ProcessEnd::Exited { code: 1 });
    assert_eq!(waits(&run), 0);
}
