//! Why: what a step and a run say of themselves, word for word, and whose turn it is.

mod common;

use common::{Bench, ask, draft, questions, reply};
use gatewright_core::{
    event::Pause,
    explain::{blocked_by, dollars, explain_run, explain_step, progress},
    fact::{AttemptReport, Intrusion, IntrusionKind, ProcessEnd, Usage},
    input::Input,
    outcome::Outcome,
    plan::{AnswerEffect, Budget, Condition, Exhaustion, Hardness, ItemFailure, Kind, Must},
    state::{Phase, RunPhase},
};

/// One line: why, what it waits for, whose turn it is.
fn told(run: &Bench, step: &str) -> String {
    let found = explain_step(&run.plan, &run.state, &step.into()).expect("every step is explained");
    assert_eq!(found.step, Some(step.into()));
    format!("{} [{}] {:?}", found.because, found.misses.join(", "), found.turn)
}

fn told_of_run(run: &Bench) -> String {
    let found = explain_run(&run.plan, &run.state);
    assert_eq!(found.step, None);
    format!("{} [{}] {:?}", found.because, found.misses.join(", "), found.turn)
}

fn stopped_by(run: &Bench) -> Option<(String, String)> {
    blocked_by(&run.plan, &run.state).map(|by| (by.reason, by.message))
}

const HOUR: u64 = 3_600_000;

#[test]
fn a_step_that_has_not_begun_says_what_it_waits_for() {
    let run = draft()
        .agent("fix")
        .dormant()
        .agent("a")
        .agent("b")
        .needs(&["a", "fix"])
        .agent("gated")
        .expression("when", Hardness::Hard)
        .run();
    assert_eq!(told(&run, "fix"), "it runs only when a loop or an obligation calls for it [] Nobody");
    assert_eq!(told(&run, "b"), "it waits for steps before it [`a` is at work, `fix` has not passed] Engine");
    assert_eq!(told(&run, "gated"), "its gate is not open [`when` is not evaluated yet] Engine");
    assert!(explain_step(&run.plan, &run.state, &"nobody".into()).is_none());
}

#[test]
fn what_a_need_is_doing_is_said_in_a_word() {
    let mut run = draft()
        .agent("working")
        .agent("blocked")
        .attempts(1)
        .agent("failed")
        .attempts(1)
        .on_exhausted(vec![Exhaustion::Fail])
        .decision("asking", &[])
        .agent("checking")
        .checks(&["lint"])
        .sub_run("open")
        .agent("open/do")
        .agent("fix")
        .dormant()
        .review("fixing", &["fix"])
        .agent("passed")
        .agent("skipped")
        .agent("later")
        .edit(|step| step.retry.backoff_ms = vec![1000])
        .agent("last")
        .needs(&[
            "working", "blocked", "failed", "asking", "checking", "open", "fixing", "passed", "skipped",
            "later",
        ])
        .run();
    for step in ["blocked", "failed", "later"] {
        run.dies(step, ProcessEnd::Exited { code: 1 });
    }
    run.done(&["checking", "passed"]);
    run.revises("fixing");
    run.skip("skipped");
    assert_eq!(
        told(&run, "last"),
        "it waits for steps before it [`working` is at work, `blocked` is blocked, `failed` has failed, \
         `asking` waits for a person, `checking` is at work, `open` is at work, `fixing` is being worked on, \
         `later` has not passed] Engine"
    );
    assert_eq!(
        told(&run, "fixing"),
        "its findings are being worked on; round 2 follows [the fix by `fix`] Agent"
    );
    assert_eq!(told(&run, "passed"), "it has passed [] Nobody");
    assert_eq!(told(&run, "skipped"), "it was skipped: not needed [] Nobody");
    assert_eq!(
        told(&run, "failed"),
        "it has failed: 1 of 1 attempts failed; the last one (crash): it exited with 1 [] Nobody"
    );
    assert_eq!(
        told(&run, "blocked"),
        "it is blocked (attempts_exhausted): 1 of 1 attempts failed; the last one (crash): it exited with 1 \
         [] Person"
    );
    assert_eq!(told(&run, "asking"), "a person is asked [asking: asking?] Person");
    assert_eq!(told(&run, "open"), "steps below it are at work [] Agent");
}

#[test]
fn an_attempt_says_what_is_left_to_check() {
    let mut run = draft().agent("a").checks(&["lint", "tests"]).commits().run();
    assert_eq!(told(&run, "a"), "attempt 1 is at work [] Agent");
    run.done(&["a"]);
    assert_eq!(
        told(&run, "a"),
        "attempt 1 is being checked [check `lint`, check `tests`, its commit] Engine"
    );
    run.check_ends("a", "lint", common::checked(true, ""));
    assert_eq!(told(&run, "a"), "attempt 1 is being checked [check `tests`, its commit] Engine");
    run.check_ends("a", "tests", common::checked(true, ""));
    assert_eq!(told(&run, "a"), "attempt 1 is being checked [its commit] Engine");
    let mut run = draft().agent("a").checks(&["lint"]).run();
    run.done(&["a"]);
    assert_eq!(told(&run, "a"), "attempt 1 is being checked [check `lint`] Engine");
}

#[test]
fn a_pause_before_the_next_attempt_has_a_reason_and_an_end() {
    let mut run = draft().agent("a").edit(|step| step.retry.backoff_ms = vec![90_000]).agent("b").run();
    run.dies("a", ProcessEnd::Exited { code: 3 });
    assert_eq!(
        told(&run, "a"),
        "the last attempt failed (crash): it exited with 3 [tries again at 1970-01-01 00:01 UTC] Engine"
    );
    let quota_until = Some(run.now.plus_ms(25 * HOUR));
    run.ends("b", AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    assert_eq!(
        told(&run, "b"),
        "the quota of its agent is used up [tries again at 1970-01-02 01:00 UTC] Engine"
    );
}

#[test]
fn a_step_that_is_ready_says_which_place_is_missing() {
    let mut run = draft()
        .pool("run", 2)
        .pool("wide", 9)
        .agent("a")
        .edit(|step| step.pools.push("wide".into()))
        .agent("b")
        .agent("c")
        .edit(|step| step.pools = vec!["run".into(), "wide".into(), "unknown".into()])
        .run();
    assert_eq!(
        told(&run, "c"),
        "it is ready and waits for a free place [all 2 place(s) of `run` are taken] Engine"
    );
    run.feed(Input::Stop);
    assert_eq!(told(&run, "c"), "the run is stopping [all 2 place(s) of `run` are taken] Engine");
    run.done(&["a", "b"]);
    assert_eq!(told(&run, "c"), "stopped on request [] Engine");

    let run = draft().fan_out("f").agent("f/*/do").run();
    assert_eq!(told(&run, "f"), "it is ready and waits for a free place [the list in `list.json`] Engine");
}

#[test]
fn a_step_that_may_not_be_beside_another_says_who_is_there() {
    let run = draft()
        .excludes("write", &["write"])
        .agent("a")
        .edit(|step| step.tenure = Some("write".into()))
        .agent("reader")
        .edit(|step| step.tenure = Some("read".into()))
        .agent("b")
        .edit(|step| step.tenure = Some("write".into()))
        .run();
    assert_eq!(
        told(&run, "b"),
        "it is ready and waits for a free place [`a` is at work in the same checkout: one writer at a time, or \
         nobody could tell whose change is whose] Engine"
    );
}

#[test]
fn a_step_whose_agent_is_out_of_quota_says_until_when() {
    let mut run = draft().agent("a").pool("run", 1).agent("b").run();
    let quota_until = Some(run.now.plus_ms(HOUR));
    run.ends("a", AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    assert_eq!(
        told(&run, "b"),
        "it is ready and waits for a free place [the quota of its agent is used up until 1970-01-01 01:00 UTC] \
         Engine"
    );
}

#[test]
fn an_open_group_says_whether_it_works_or_waits() {
    let mut run = draft().sub_run("sub").agent("sub/a").agent("sub/b").agent("subway").run();
    run.ends("sub/a", questions(&["which?"]));
    run.ends("subway", questions(&["where?"]));
    assert_eq!(told(&run, "sub"), "steps below it are at work [] Agent");
    run.done(&["sub/b"]);
    assert_eq!(told(&run, "sub"), "what is left below it waits for a person [D-1: which?] Person");
    assert_eq!(told(&run, "sub/a"), "a person is asked [D-1: which?] Person");
    assert_eq!(told(&run, "subway"), "a person is asked [D-2: where?] Person");
    assert_eq!(told_of_run(&run), "it waits for you [D-1: which?, D-2: where?] Person");
}

#[test]
fn a_run_says_where_it_stands() {
    let mut run = draft().agent("a").decision("ok", &[]).agent("helper").dormant().run();
    assert_eq!(told_of_run(&run), "it is at work [ok: ok?] Agent");
    assert_eq!(progress(&run.state), (0, 2), "one that only runs when called for is not counted");
    assert_eq!(stopped_by(&run), None);
    run.done(&["a"]);
    assert_eq!(progress(&run.state), (1, 2));
    assert_eq!(told_of_run(&run), "it waits for you [ok: ok?] Person");
    run.answer("ok", "approved");
    assert_eq!(told_of_run(&run), "it is done [] Nobody");
    assert_eq!(progress(&run.state), (2, 2));
    assert_eq!(stopped_by(&run), None);

    let mut run = draft().agent("a").attempts(1).on_exhausted(vec![Exhaustion::Fail]).run();
    run.dies("a", ProcessEnd::TimedOut);
    assert_eq!(
        told_of_run(&run),
        "it has failed [`a`: 1 of 1 attempts failed; the last one (timeout): it ran longer than its timeout] Nobody"
    );

    let mut run = draft().agent("a").run();
    run.feed(Input::Abort { reason: "enough".to_owned() });
    assert_eq!(told_of_run(&run), "it was given up [enough] Nobody");
    let mut run = draft().agent("a").run();
    run.feed(Input::Abort { reason: String::new() });
    assert_eq!(told_of_run(&run), "it was given up [] Nobody");
    assert!(explain_run(&run.plan, &run.state).misses.is_empty(), "no reason is no sentence");
}

#[test]
fn a_blocked_run_names_the_step_that_blocks_it() {
    let mut run = draft().fan_out("f").agent("f/*/do").attempts(1).agent("other").run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run.dies("f/a/do", ProcessEnd::Exited { code: 7 });
    assert_eq!(stopped_by(&run), None, "others are at work");
    run.done(&["f/b/do", "other"]);
    let (reason, message) = stopped_by(&run).expect("it is blocked");
    assert_eq!(reason, "attempts_exhausted");
    assert_eq!(message, "f/a/do: 1 of 1 attempts failed; the last one (crash): it exited with 7");
    assert_eq!(
        told_of_run(&run),
        "it is blocked [f/a/do: 1 of 1 attempts failed; the last one (crash): it exited with 7] Person"
    );
}

#[test]
fn a_run_that_an_obligation_holds_says_so() {
    let mut run = draft().agent("a").obligation("looked-at", Must::Step { step: "never".into() }, None).run();
    run.done(&["a"]);
    let asked = run.state.queues.pending_decisions.iter().next().cloned().expect("somebody is asked");
    run.feed(Input::CancelDecision { decision: asked, reason: "later".to_owned() });
    let (reason, message) = stopped_by(&run).expect("it rests");
    assert_eq!(reason, "obligation");
    assert_eq!(
        message,
        "obligation `looked-at` is not met, and the question about it was put off: resume asks again"
    );
}

#[test]
fn a_paused_run_says_which_limit_was_reached_with_its_figures() {
    let usage = |tokens, micro_usd| Some(Usage { tokens: Some(tokens), micro_usd: Some(micro_usd) });
    let spends = |budget: Budget| {
        let mut run = draft().budget(budget).agent("a").agent("b").needs(&["a"]).run();
        run.now = run.now.plus_ms(61_500);
        run.ends("a", AttemptReport { usage: usage(1500, 2_345_678), ..reply(Outcome::Done) });
        assert_eq!(told(&run, "b").split(": ").next(), Some("the budget is used up"));
        told_of_run(&run)
    };
    assert_eq!(
        spends(Budget { micro_usd: Some(2_000_000), ..Budget::default() }),
        "it is paused [the budget is used up: 2.34 of 2.00 usd] Person"
    );
    assert_eq!(
        spends(Budget { tokens: Some(1500), ..Budget::default() }),
        "it is paused [the budget is used up: 1500 of 1500 tokens] Person"
    );
    assert_eq!(
        spends(Budget { wall_ms: Some(61_000), ..Budget::default() }),
        "it is paused [the budget is used up: 61 of 61 s] Person"
    );
    assert_eq!(
        spends(Budget { launches: Some(1), ..Budget::default() }),
        "it is paused [the budget is used up: 1 of 1 launches] Person"
    );
    let mut run = draft()
        .sub_run("sub")
        .edit(|step| match &mut step.kind {
            Kind::SubRun { budget, .. } => budget.launches = Some(1),
            _ => panic!("a sub-run"),
        })
        .agent("sub/a")
        .agent("sub/b")
        .needs(&["sub/a"])
        .run();
    run.done(&["sub/a"]);
    assert_eq!(
        stopped_by(&run).map(|by| by.1),
        Some("the budget of `sub` is used up: 1 of 1 launches".to_owned())
    );
    assert_eq!(stopped_by(&run).map(|by| by.0), Some("paused".to_owned()));
}

#[test]
fn a_run_that_was_to_go_on_up_to_a_stage_says_so() {
    let mut run = draft().agent("a").stage("second").agent("b").needs(&["a"]).run();
    run.feed(Input::RunUntil { stage: "main".into(), skipping: None });
    run.done(&["a"]);
    assert!(matches!(run.state.phase, RunPhase::Paused(Pause::Until { .. })), "{:?}", run.state.phase);
    assert_eq!(told_of_run(&run), "it is paused [it was to go on up to `main`, which is through] Person");
}

#[test]
fn a_run_that_waits_too_long_for_a_quota_says_for_how_long() {
    let mut run = draft().agent("a").run();
    let quota_until = Some(run.now.plus_ms(30 * HOUR));
    run.ends("a", AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    assert_eq!(
        told_of_run(&run),
        "it is paused [the quota of `fake` is used up until 1970-01-02 06:00 UTC: with this wait it would have been \
         waited for 30h 00m in a row, at most 24h 00m are allowed] Person"
    );
}

#[test]
fn a_closed_gate_says_what_it_misses() {
    let check = Condition::Check { step: "a".into(), check: "lint".into() };
    let run = draft()
        .agent("a")
        .agent("b")
        .gate("checked", Hardness::Soft, check)
        .gate(
            "decided",
            Hardness::Soft,
            Condition::Decision { step: "ok".into(), answers: vec!["approved".to_owned()] },
        )
        .gate(
            "judged",
            Hardness::Soft,
            Condition::Verdict { step: "a".into(), at_most: gatewright_core::verdict::Verdict::Pass },
        )
        .gate("made", Hardness::Soft, Condition::Artifact { step: "a".into(), name: "a.md".into() })
        .expression("when", Hardness::Soft)
        .decision("ok", &[])
        .run();
    assert_eq!(
        told(&run, "b"),
        "its gate is not open [check `lint` of `a` has not run, `ok` is not answered, `a` has given no verdict, \
         `a.md` does not count yet: `a` has not passed, `when` is not evaluated yet] Engine"
    );
}

#[test]
fn an_exhausted_step_asks_with_its_error() {
    let mut run =
        draft().agent("a").attempts(1).on_exhausted(vec![ask(&[("again", AnswerEffect::Again)])]).run();
    run.dies("a", ProcessEnd::Signalled { signal: 9 });
    assert!(matches!(run.state.steps["a"].phase, Phase::Waiting));
    assert_eq!(
        told(&run, "a"),
        "a person is asked [D-1: `a`: 1 of 1 attempts failed; the last one (crash): it was ended by signal 9. What \
         now?] Person"
    );
}

#[test]
fn money_is_written_with_two_digits() {
    let words: Vec<String> = [0, 9_999, 10_000, 1_000_000, 12_345_678].map(dollars).into();
    assert_eq!(words, ["0.00", "0.00", "0.01", "1.00", "12.34"]);
}

#[test]
fn what_was_lost_inside_of_a_group_that_passed_blocks_nothing() {
    let mut run = draft()
        .fan_out("f")
        .fan_out_edit(|fan_out| fan_out.on_item_failure = ItemFailure::Note)
        .agent("f/*/do")
        .attempts(1)
        .agent("z")
        .attempts(1)
        .run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run.dies("f/a/do", ProcessEnd::Exited { code: 7 });
    run.done(&["f/b/do"]);
    run.is("f", "passed");
    run.dies("z", ProcessEnd::Exited { code: 8 });
    let (_, message) = stopped_by(&run).expect("it is blocked");
    assert_eq!(message, "z: 1 of 1 attempts failed; the last one (crash): it exited with 8");
}

#[test]
fn a_quota_is_not_missed_any_more_when_its_time_has_come() {
    let mut run = draft()
        .pool("run", 1)
        .agent("a")
        .agent("b")
        .edit(|step| step.kind = Kind::Agent { role: "other".into(), agent: "other".into() })
        .agent("c")
        .run();
    let quota_until = Some(run.now.plus_ms(2000));
    run.ends("a", AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
    run.wants("run b#1");
    run.later(2000);
    let what = "something".to_owned();
    let intrusion = Intrusion { kind: IntrusionKind::UnsealedOrder, what, by: Vec::new() };
    run.feed(Input::Noticed { intrusion });
    assert_eq!(
        told(&run, "c"),
        "it is ready and waits for a free place [all 1 place(s) of `run` are taken] Engine"
    );
    assert_eq!(
        gatewright_core::wanted(&run.plan, &run.state, run.now).wake_at,
        None,
        "the end of `b` is waited for"
    );
}
