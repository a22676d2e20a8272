//! A new plan on a person's order, at every point of a run: what is known of steps that are still there stays, and what
//! follows is what would follow if it had been the plan from the beginning.

mod common;

use common::{Draft, checked, draft, questions, reply};
use gatewright_core::{
    fact::ProcessEnd,
    input::Input,
    outcome::Outcome,
    plan::{Budget, Hardness, Rerun},
    state::{DecisionStatus, RunStatus},
};

/// The same plan with one more step.
fn more(draft: Draft) -> Draft {
    draft.agent("more").needs(&["last"])
}

#[test]
fn j_45_a_step_that_is_gone_is_stopped_and_what_was_asked_about_it_is_withdrawn() {
    let with = || draft().agent("a").agent("b").decision("ok", &[]).agent("c");
    let mut run = with().run();
    run.ends("c", questions(&["which?"]));
    run.wants("run a#1, run b#1, ask D-1, ask ok");
    run.adopt(draft().agent("a"));
    run.wants("stop b#1, run a#1");
    let asked: Vec<_> = run.state.decisions.values().map(|known| known.status).collect();
    assert_eq!(asked, [DecisionStatus::Skipped; 2]);
    assert_eq!(run.state.decisions["ok"].reason.as_deref(), Some("the plan no longer has its step"));
    run.done(&["a"]);
    run.status(RunStatus::Done);
    // The number of an attempt names it for ever.
    let mut run = with().run();
    run.adopt(draft().agent("a"));
    run.adopt(with());
    run.wants("stop b#1, stop c#1, run a#1, run b#2, run c#2, ask ok");
}

#[test]
fn j_45_a_question_about_a_step_that_is_still_there_stays_open() {
    let plan = || draft().decision("ok", &[]).agent("asker").agent("last").needs(&["ok", "asker"]);
    let mut run = plan().run();
    run.ends("asker", questions(&["which?"]));
    assert_eq!(run.adopt(more(plan())).len(), 1, "it is not asked again");
    run.wants("ask D-1, ask ok");
    run.answer("ok", "approved");
    run.answer("D-1", "the first");
    run.done(&["asker"]);
    run.done(&["last", "more"]);
    run.status(RunStatus::Done);
}

#[test]
fn j_45_what_is_at_work_stays_at_work_and_counts() {
    let plan = || draft().pool("run", 1).agent("a").agent("last").needs(&["a"]);
    let budget = Budget { wall_ms: Some(5000), ..Budget::default() };
    let mut run = plan().budget(budget.clone()).run();
    run.later(3000);
    run.adopt(more(plan()).agent("beside").budget(budget));
    run.wants("run a#1");
    run.is("beside", "ready");
    run.later(1000);
    run.status(RunStatus::Running);
    run.later(1000);
    run.wants("run a#1");
    run.status(RunStatus::Paused);
}

#[test]
fn j_45_an_attempt_that_is_being_checked_is_concluded_with_the_checks_of_the_new_plan() {
    let plan = |checks: &[&str]| draft().agent("last").checks(checks);
    let mut run = plan(&["lint", "tests"]).run();
    run.done(&["last"]);
    run.check_ends("last", "lint", checked(true, ""));
    run.adopt(more(plan(&["lint", "tests"])));
    run.wants("check last#1 tests");
    run.adopt(more(plan(&["lint"])));
    run.wants("run more#1");
}

#[test]
fn j_45_a_review_waits_for_the_fixers_it_has_sent_and_sends_the_next() {
    let plan = || {
        draft()
            .agent("one")
            .agent("two")
            .review("last", &["one", "two"])
            .needs(&["one", "two"])
            .review_edit(|review| review.rerun = Rerun::Listed)
    };
    let mut run = plan().run();
    run.done(&["one", "two"]);
    run.revises("last");
    run.adopt(more(plan()));
    run.wants("run one#2");
    run.done(&["one"]);
    run.adopt(more(plan()));
    run.wants("run two#2");
    run.done(&["two"]);
    run.wants("run last#2");
}

#[test]
fn j_45_a_review_whose_fixer_works_for_another_is_served_after_a_new_plan() {
    let plan = || {
        draft()
            .agent("fix")
            .dormant()
            .review("one", &["fix"])
            .review("two", &["fix"])
            .agent("last")
            .needs(&["one", "two"])
    };
    let mut run = plan().run();
    run.revises("one");
    run.revises("two");
    run.wants("run fix#1");
    run.adopt(more(plan()));
    run.wants("run fix#1");
    run.done(&["fix"]);
    run.wants("run fix#2, run one#2");
    run.done(&["fix"]);
    run.wants("run one#2, run two#2");
}

/// A fan-out of two items, a sub-run and a panel, each with something below it.
fn groups() -> Draft {
    draft()
        .fan_out("f")
        .fan_out_edit(|fan_out| fan_out.parallel_max = 1)
        .agent("f/*/do")
        .attempts(1)
        .sub_run("s")
        .agent("s/do")
        .agent("s/then")
        .needs(&["s/do"])
        .agent("fix")
        .dormant()
        .panel("p", &["fix"], &["perf", "sec"])
        .agent("last")
        .needs(&["f", "s", "p"])
}

#[test]
fn j_45_open_groups_stay_open_and_come_to_their_end() {
    let mut run = groups().run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run.adopt(more(groups()));
    run.wants("run f/a/do#1, run p/perf#1, run p/sec#1, run s/do#1");
    run.done(&["f/a/do", "s/do", "p/perf"]);
    run.adopt(more(groups()));
    run.wants("run f/b/do#1, run p/sec#1, run s/then#1");
    run.done(&["f/b/do", "s/then", "p/sec"]);
    run.adopt(more(groups()));
    run.wants("run last#1");
    run.done(&["last", "more"]);
    run.status(RunStatus::Done);
}

#[test]
fn j_45_a_lost_item_stays_lost_until_somebody_resumes() {
    let mut run = groups().run();
    run.skip("s");
    run.skip("p");
    run.list("f", &[("a", &[]), ("b", &["a"])]);
    run.dies("f/a/do", ProcessEnd::Exited { code: 1 });
    assert_eq!(run.blocked("f"), "items_failed");
    run.adopt(more(groups()));
    assert_eq!(run.blocked("f"), "items_failed");
    run.status(RunStatus::Blocked);
    run.resume();
    run.is("f/a/do", "running");
}

#[test]
fn j_45_a_group_that_is_gone_takes_everything_below_it_with_it() {
    let mut run = groups().run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run.adopt(draft().agent("last"));
    run.wants("stop f/a/do#1, stop p/perf#1, stop p/sec#1, stop s/do#1, run last#1");
    let left: Vec<&str> = run.state.steps.keys().map(|id| id.as_str()).collect();
    assert_eq!(left, ["last"]);
    assert!(run.state.fan_outs.is_empty());
    run.done(&["last"]);
    run.status(RunStatus::Done);
    // What was stopped is told of when it ends, and changes nothing.
    let mut run = groups().run();
    run.adopt(draft().agent("last"));
    run.feed(Input::AttemptEnded { step: "s/do".into(), attempt: 1, report: reply(Outcome::Done) });
    assert_eq!(run.state.results_ignored, 1);
}

#[test]
fn j_45_a_step_that_waits_for_its_turn_meets_the_needs_and_gates_of_the_new_plan() {
    let plan = || draft().agent("a").agent("last").expression("when", Hardness::Hard);
    let mut run = plan().run();
    run.is("last", "gated");
    run.adopt(draft().agent("a").agent("last").needs(&["a"]));
    run.is("last", "pending");
    run.done(&["a"]);
    run.wants("run last#1");
    let mut run = plan().run();
    run.adopt(draft().agent("a").agent("last"));
    run.wants("run a#1, run last#1");
    let mut run = draft().pool("run", 1).agent("a").agent("last").run();
    run.is("last", "ready");
    run.adopt(draft().pool("run", 2).agent("a").agent("last"));
    run.wants("run a#1, run last#1");
}

#[test]
fn j_45_a_stage_that_the_new_plan_switches_off_is_left_out_unless_it_is_through() {
    let plan = |off: Option<&str>| {
        let stage = draft()
            .agent("a")
            .stage("extra")
            .stage_edit(|stage| stage.disabled = off.map(str::to_owned))
            .agent("b")
            .agent("c");
        stage.stage("end").agent("last").needs(&["a", "b", "c"])
    };
    let mut run = plan(None).run();
    run.done(&["b"]);
    run.adopt(plan(Some("lean")));
    run.is("b", "passed");
    run.is("c", "skipped");
    run.wants("stop c#1, run a#1");
    run.done(&["a", "last"]);
    run.status(RunStatus::Done);
}

#[test]
fn j_45_a_retry_keeps_its_time() {
    let plan = || draft().agent("last").edit(|step| step.retry.backoff_ms = vec![1000]);
    let mut run = plan().run();
    run.dies("last", ProcessEnd::Exited { code: 1 });
    run.adopt(more(plan()));
    run.is("last", "backoff");
    run.later(999);
    run.is("last", "backoff");
    run.later(1);
    run.wants("run last#2");
}

#[test]
fn j_45_the_end_of_a_run_is_found_with_the_new_plan() {
    let mut run = draft().agent("a").agent("b").run();
    run.done(&["a"]);
    run.adopt(draft().agent("a"));
    run.status(RunStatus::Done);
    assert_eq!(run.count("run.ended"), 1);
}
