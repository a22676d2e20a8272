//! What a run may spend and how long it waits: limits exact in both directions, each with its scope.

mod common;

use std::collections::BTreeMap;

use common::{Bench, Draft, draft, reply};
use gatewright_core::{
    Left, budget_left, budget_share,
    event::{BudgetKind, Pause},
    fact::{AttemptReport, ProcessEnd, Usage},
    ids::Timestamp,
    input::{Input, Raise},
    outcome::Outcome,
    plan::{Budget, Hardness, Kind, limits},
    state::{RunPhase, RunStatus, ScopeId},
    wall_ms, wanted,
};

const HOUR: u64 = 3_600_000;

fn spends(run: &mut Bench, step: &str, tokens: u64, micro_usd: u64) {
    let usage = Some(Usage { tokens: Some(tokens), micro_usd: Some(micro_usd) });
    run.ends(step, AttemptReport { usage, ..reply(Outcome::Done) });
}

fn out_of_quota(run: &mut Bench, step: &str, for_ms: u64) {
    let quota_until = Some(run.now.plus_ms(for_ms));
    run.ends(step, AttemptReport { quota_until, ..AttemptReport::new(ProcessEnd::Exited { code: 1 }) });
}

fn with_sub_run(limits: Budget) -> Draft {
    draft().sub_run("sub").edit(|step| match &mut step.kind {
        Kind::SubRun { budget, .. } => **budget = limits,
        _ => panic!("a sub-run"),
    })
}

fn wake_at(run: &Bench) -> Option<Timestamp> {
    wanted(&run.plan, &run.state, run.now).wake_at
}

fn raise(run: &mut Bench, raise: Raise) {
    run.feed(Input::Resume { raise, substitutes: BTreeMap::new() });
}

#[test]
fn every_budget_around_a_step_says_what_is_left_of_it() {
    let top = Budget { tokens: Some(100), micro_usd: Some(1000), ..Budget::default() };
    let inner = Budget { tokens: Some(40), ..Budget::default() };
    let mut run = with_sub_run(inner)
        .agent("sub/a")
        .agent("sub/b")
        .needs(&["sub/a"])
        .agent("sub/c")
        .needs(&["sub/a"])
        .budget(top)
        .run();
    let left = |run: &Bench| budget_left(&run.plan, &run.state, &"sub/b".into());
    let of = |tokens, micro_usd| Left { tokens, micro_usd };
    let sub = || ScopeId("sub".to_owned());
    assert_eq!(left(&run), [(ScopeId::top(), of(Some(100), Some(1000))), (sub(), of(Some(40), None))]);
    spends(&mut run, "sub/a", 30, 400);
    assert_eq!(left(&run), [(ScopeId::top(), of(Some(70), Some(600))), (sub(), of(Some(10), None))]);
    // Two are under way: each may be told half of the least that is left.
    assert_eq!(budget_share(&run.plan, &run.state, &"sub/b".into()), of(Some(5), Some(300)));
    spends(&mut run, "sub/b", 30, 400);
    assert_eq!(left(&run), [(ScopeId::top(), of(Some(40), Some(200))), (sub(), of(Some(0), None))]);
    assert_eq!(budget_share(&run.plan, &run.state, &"sub/c".into()), of(Some(0), Some(200)));
}

#[test]
fn without_a_limit_nothing_is_said_about_what_is_left() {
    let run = draft().agent("a").run();
    assert_eq!(budget_left(&run.plan, &run.state, &"a".into()), [(ScopeId::top(), Left::default())]);
    assert_eq!(budget_share(&run.plan, &run.state, &"a".into()), Left::default());
}

#[test]
fn the_wall_clock_runs_only_while_something_is_under_way_and_adds_up() {
    let budget = Budget { wall_ms: Some(5000), ..Budget::default() };
    let mut run =
        draft().agent("a").decision("ok", &[]).needs(&["a"]).agent("b").needs(&["ok"]).budget(budget).run();
    let used = |run: &Bench| wall_ms(&run.state.spent[&ScopeId::top()], run.now);
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(5000)), "when the time will be up");
    run.later(2000);
    assert_eq!(used(&run), 2000);
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(3000)));
    run.done(&["a"]);
    run.later(HOUR);
    assert_eq!(used(&run), 2000, "nobody works while a person thinks");
    assert_eq!(wake_at(&run), None);
    run.answer("ok", "approved");
    run.later(1000);
    assert_eq!(used(&run), 3000);
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(2000)));
    run.later(1999);
    run.status(RunStatus::Running);
    run.later(1);
    let RunPhase::Paused(why) = &run.state.phase else { panic!("{:?}", run.state.phase) };
    assert_eq!(*why, Pause::Budget { kind: BudgetKind::Wall, used: 5000, limit: 5000, scope: None });
}

#[test]
fn two_at_once_use_up_one_clock() {
    let mut run = draft().agent("a").agent("b").decision("ok", &[]).run();
    run.later(1000);
    run.done(&["a"]);
    run.later(1000);
    run.done(&["b"]);
    run.later(1000);
    assert_eq!(wall_ms(&run.state.spent[&ScopeId::top()], run.now), 2000);
}

#[test]
fn the_clock_of_a_nested_run_names_it_and_is_raised_with_the_runs() {
    let limits = Budget { wall_ms: Some(1000), ..Budget::default() };
    let mut run = with_sub_run(limits).agent("sub/do").agent("sub/more").needs(&["sub/do"]).run();
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(1000)));
    run.later(1000);
    let RunPhase::Paused(why) = &run.state.phase else { panic!("{:?}", run.state.phase) };
    let scope = Some("sub".into());
    assert_eq!(*why, Pause::Budget { kind: BudgetKind::Wall, used: 1000, limit: 1000, scope });
    raise(&mut run, Raise { wall_ms: Some(3000), ..Raise::default() });
    run.status(RunStatus::Running);
    let limit = |scope: ScopeId| run.state.budgets[&scope].wall_ms;
    assert_eq!((limit(ScopeId("sub".to_owned())), limit(ScopeId::top())), (Some(3000), None));
}

#[test]
fn what_a_superseded_attempt_in_a_nested_run_cost_counts_there_and_nowhere_else() {
    let limits = Budget { tokens: Some(1000), ..Budget::default() };
    let mut run = with_sub_run(limits).agent("sub/do").sub_run("subway").agent("subway/do").run();
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    let usage = Some(Usage { tokens: Some(7), micro_usd: None });
    let report = AttemptReport { usage, ..AttemptReport::new(ProcessEnd::Stopped) };
    run.feed(Input::AttemptEnded { step: "subway/do".into(), attempt: 1, report: report.clone() });
    let tokens = |run: &Bench, scope: &str| {
        run.state.spent.get(&ScopeId(scope.to_owned())).map_or(0, |spent| spent.tokens)
    };
    assert_eq!((tokens(&run, ""), tokens(&run, "sub"), tokens(&run, "subway")), (7, 0, 7));
    run.feed(Input::AttemptEnded { step: "sub/do".into(), attempt: 1, report });
    assert_eq!((tokens(&run, ""), tokens(&run, "sub"), tokens(&run, "subway")), (14, 7, 7));
}

#[test]
fn a_limit_of_each_kind_is_raised_on_its_own() {
    let budget = Budget {
        wall_ms: Some(1),
        tokens: Some(1),
        micro_usd: Some(1),
        launches: Some(1),
        ..Budget::default()
    };
    let full = |wall_ms, tokens, micro_usd, launches| Budget {
        wall_ms: Some(wall_ms),
        tokens: Some(tokens),
        micro_usd: Some(micro_usd),
        launches: Some(launches),
        ..Budget::default()
    };
    let mut run = draft().agent("a").budget(budget).run();
    raise(&mut run, Raise { wall_ms: Some(2), ..Raise::default() });
    raise(&mut run, Raise { tokens: Some(3), ..Raise::default() });
    raise(&mut run, Raise { micro_usd: Some(4), ..Raise::default() });
    raise(&mut run, Raise { launches: Some(5), ..Raise::default() });
    assert_eq!(run.state.budgets[&ScopeId::top()], full(2, 3, 4, 5));
    raise(&mut run, Raise { quota_wait_ms: Some(limits::QUOTA_WAIT_MS + 1), ..Raise::default() });
    assert_eq!(run.state.budgets[&ScopeId::top()].quota_wait_ms, Some(limits::QUOTA_WAIT_MS + 1));
}

#[test]
fn a_refused_raise_names_both_figures_as_people_write_them() {
    let budget = Budget {
        wall_ms: Some(90_000),
        tokens: Some(10),
        micro_usd: Some(2_500_000),
        launches: Some(3),
        ..Budget::default()
    };
    let mut run = draft().agent("a").budget(budget).run();
    for (wish, says) in [
        (
            Raise { wall_ms: Some(61_000), ..Raise::default() },
            "`wall` is limited to 1m 30s already, and 1m 01s is not more",
        ),
        (
            Raise { tokens: Some(10), ..Raise::default() },
            "`tokens` is limited to 10 already, and 10 is not more",
        ),
        (
            Raise { micro_usd: Some(2_490_000), ..Raise::default() },
            "`usd` is limited to 2.50 already, and 2.49 is not more",
        ),
        (
            Raise { launches: Some(2), ..Raise::default() },
            "`launches` is limited to 3 already, and 2 is not more",
        ),
        (
            Raise { quota_wait_ms: Some(HOUR), ..Raise::default() },
            "`quota_wait` is limited to 24h 00m already, and 1h 00m is not more",
        ),
    ] {
        let refused = run.try_feed(Input::Resume { raise: wish, substitutes: BTreeMap::new() }).unwrap_err();
        assert_eq!(refused.to_string(), says);
    }
    let mut run = draft().agent("a").run();
    let wish = Raise { launches: Some(2), ..Raise::default() };
    let refused = run.try_feed(Input::Resume { raise: wish, substitutes: BTreeMap::new() }).unwrap_err();
    assert_eq!(refused.to_string(), "the run has no limit on `launches` that could be raised");
}

#[test]
fn another_profile_may_allow_less() {
    let budget = |launches| Budget { launches: Some(launches), ..Budget::default() };
    let full = draft().agent("full").budget(budget(2));
    let mut run = draft().agent("lean").budget(budget(5)).escalates("complexity", "full", full).run();
    let mut report = reply(Outcome::Blocked);
    report.reply.as_mut().unwrap().reason = Some("complexity".to_owned());
    run.ends("lean", report);
    assert_eq!(run.state.budgets[&ScopeId::top()].launches, Some(2), "nobody had raised it");
}

#[test]
fn a_quota_is_waited_for_exactly_as_long_as_allowed() {
    let mut run = draft().agent("a").run();
    out_of_quota(&mut run, "a", limits::QUOTA_WAIT_MS);
    run.status(RunStatus::Running);
    let mut run = draft().agent("a").run();
    out_of_quota(&mut run, "a", limits::QUOTA_WAIT_MS + 1);
    run.status(RunStatus::Paused);
    assert_eq!(limits::QUOTA_WAIT_MS, 24 * HOUR);
}

#[test]
fn a_quota_that_takes_too_long_pauses_only_when_nothing_else_is_left() {
    let long = 30 * HOUR;
    // Somebody is at work.
    let mut run = draft().agent("a").agent("b").edit(other_agent).run();
    out_of_quota(&mut run, "a", long);
    run.status(RunStatus::Running);
    run.done(&["b"]);
    run.status(RunStatus::Paused);
    // A gate is looked at.
    let mut run = draft().agent("a").agent("b").edit(other_agent).expression("when", Hardness::Hard).run();
    out_of_quota(&mut run, "a", long);
    run.status(RunStatus::Running);
    run.evaluated("b", "when", false);
    run.status(RunStatus::Paused);
    // A list is read.
    let mut run = draft().agent("a").fan_out("f").agent("f/*/do").run();
    out_of_quota(&mut run, "a", long);
    run.status(RunStatus::Running);
    // Another one tries again by itself in time.
    let mut run =
        draft().agent("a").agent("b").edit(other_agent).edit(|step| step.retry.backoff_ms = vec![1000]).run();
    out_of_quota(&mut run, "a", long);
    run.dies("b", ProcessEnd::Exited { code: 1 });
    run.status(RunStatus::Running);
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(1000)));
}

fn other_agent(step: &mut gatewright_core::plan::Step) {
    step.kind = Kind::Agent { role: "other".into(), agent: "other".into() };
}

#[test]
fn a_run_wakes_for_whatever_comes_first() {
    let mut run =
        draft().agent("a").edit(|step| step.retry.backoff_ms = vec![5000]).agent("b").edit(other_agent).run();
    assert_eq!(wake_at(&run), None, "nothing happens by itself");
    run.dies("a", ProcessEnd::Exited { code: 1 });
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(5000)));
    out_of_quota(&mut run, "b", 2000);
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(2000)));
    run.feed(Input::Stop);
    assert_eq!(wake_at(&run), None, "it rests");
}

#[test]
fn a_check_costs_no_launch() {
    let budget = Budget { launches: Some(1), ..Budget::default() };
    let mut run = draft()
        .agent("a")
        .check_step("check")
        .needs(&["a"])
        .agent("b")
        .needs(&["check"])
        .budget(budget)
        .run();
    run.done(&["a"]);
    run.wants("run check#1");
    let check = Some(common::checked(true, ""));
    run.ends("check", AttemptReport { check, ..AttemptReport::new(ProcessEnd::Exited { code: 0 }) });
    run.status(RunStatus::Paused);
}

#[test]
fn what_nobody_told_is_unknown() {
    let mut run = draft().agent("a").agent("b").run();
    let known = |run: &Bench, step: &str| {
        let spent = &run.state.steps[step].spent;
        (spent.known_tokens(), spent.known_micro_usd())
    };
    let untouched = draft().agent("a").dormant().agent("b").run();
    assert_eq!(known(&untouched, "a"), (Some(0), Some(0)), "nothing was launched");
    assert_eq!(known(&run, "a"), (None, None), "it is at work");
    run.done(&["a"]);
    assert_eq!(known(&run, "a"), (None, None));
    let usage = Some(Usage { tokens: Some(3), micro_usd: None });
    run.ends("b", AttemptReport { usage, ..reply(Outcome::Done) });
    assert_eq!(known(&run, "b"), (Some(3), None));
    let top = &run.state.spent[&ScopeId::top()];
    assert_eq!((top.unpriced, top.priced, top.counted, top.launches), (2, 0, 1, 2));
}

#[test]
fn who_waits_for_the_quota_of_another_wakes_with_it() {
    let mut run = draft().pool("run", 1).agent("a").agent("b").run();
    out_of_quota(&mut run, "a", 2000);
    run.skip("a");
    run.wants("");
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(2000)));
    run.later(2000);
    run.wants("run b#1");
}

#[test]
fn a_retry_that_is_due_and_finds_no_place_is_no_reason_to_wake() {
    let mut run =
        draft().pool("run", 1).agent("a").edit(|step| step.retry.backoff_ms = vec![1000]).agent("b").run();
    run.dies("a", ProcessEnd::Exited { code: 1 });
    run.wants("run b#1");
    assert_eq!(wake_at(&run), Some(run.now.plus_ms(1000)));
    run.later(1000);
    run.wants("run b#1");
    assert_eq!(wake_at(&run), None, "the end of `b` is");
    run.done(&["b"]);
    run.wants("run a#2");
}

#[test]
fn a_superseded_attempt_that_told_nothing_has_an_unknown_price() {
    let mut run = draft().agent("a").run();
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    let report = AttemptReport::new(ProcessEnd::Stopped);
    run.feed(Input::AttemptEnded { step: "a".into(), attempt: 1, report });
    assert_eq!(run.state.spent[&ScopeId::top()].unpriced, 1);
}
