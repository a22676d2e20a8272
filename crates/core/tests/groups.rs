//! Graphs, gates, fan-outs, sub-runs, obligations, pools.

mod common;

use common::{Bench, draft, hash, items, reply, writing};
use gatewright_core::{
    event::{Cause, Event, ItemEnd},
    fact::{ListNow, ProcessEnd},
    input::Input,
    outcome::Outcome,
    plan::{Condition, Hardness, ItemFailure, Must},
    state::{DecisionStatus, Phase, RunStatus, ScopeId},
    verdict::Verdict,
};

#[test]
fn s3_07_and_s3_14_a_node_starts_as_soon_as_its_own_needs_are_met() {
    let mut run = draft()
        .agent("schema")
        .agent("api")
        .agent("be")
        .needs(&["schema", "api"])
        .agent("fe")
        .needs(&["api"])
        .run();
    run.wants("run api#1, run schema#1");
    run.done(&["api"]);
    run.wants("run fe#1, run schema#1");
    run.done(&["schema"]);
    run.wants("run be#1, run fe#1");
}

#[test]
fn j_20_a_gate_is_never_passed_before_its_dependencies() {
    let mut run = draft().agent("a").agent("b").needs(&["a"]).expression("ready", Hardness::Hard).run();
    let early = Input::Evaluated { step: "b".into(), gate: "ready".into(), value: Ok(true) };
    assert!(run.try_feed(early).is_err(), "nobody asked for it yet");
    run.done(&["a"]);
    run.wants("evaluate b ready");
    run.is("b", "gated");
    run.evaluated("b", "ready", true);
    run.wants("run b#1");
}

#[test]
fn s4_06_a_closed_gate_halts_and_says_what_is_missing() {
    let mut run = draft()
        .agent("explore")
        .stage("plan")
        .agent("plan")
        .needs(&["explore"])
        .gate(
            "explore-to-plan",
            Hardness::Hard,
            Condition::Artifact { step: "explore".into(), name: "0-explore.md".into() },
        )
        .run();
    run.done(&["explore"]);
    assert_eq!(run.blocked("plan"), "gate");
    assert!(run.why("plan").contains("0-explore.md"));
    run.status(RunStatus::Blocked);
    run.feed(Input::RestartStage { stage: "main".into(), reason: "write it".to_owned() });
    run.ends("explore", writing(reply(Outcome::Done), &[("0-explore.md", "text")]));
    run.wants("run plan#1");
}

#[test]
fn s4_06_an_artifact_that_breaks_its_contract_opens_no_gate() {
    let mut run = draft()
        .agent("a")
        .attempts(1)
        .on_exhausted(vec![gatewright_core::plan::Exhaustion::CompleteWithNotes])
        .agent("b")
        .needs(&["a"])
        .gate("file", Hardness::Hard, Condition::Artifact { step: "a".into(), name: "a.md".into() })
        .run();
    let mut report = writing(reply(Outcome::Done), &[("a.md", "header only")]);
    report.artifacts[0].violations = vec!["section Risks is empty".to_owned()];
    run.ends("a", report);
    run.is("a", "passed");
    assert_eq!(run.blocked("b"), "gate");
    assert!(run.why("b").contains("breaks its contract"));
}

#[test]
fn s4_06_a_verdict_gate_reads_the_record() {
    let mut run = draft()
        .agent("a")
        .review("look", &["a"])
        .needs(&["a"])
        .agent("b")
        .needs(&["look"])
        .gate("clean", Hardness::Soft, Condition::Verdict { step: "look".into(), at_most: Verdict::Pass })
        .run();
    run.done(&["a"]);
    run.ends("look", common::findings(Outcome::Passed, &[gatewright_core::verdict::Severity::Low]));
    run.wants("ask D-1");
    assert!(run.state.decisions["D-1"].decision.question.contains("pass_with_notes"));
}

#[test]
fn s4_06_a_check_gate_reads_the_result_of_a_check_step() {
    let mut run = draft()
        .check_step("tests")
        .agent("b")
        .needs(&["tests"])
        .gate("green", Hardness::Hard, Condition::Check { step: "tests".into(), check: "tests".into() })
        .run();
    let mut report = gatewright_core::fact::AttemptReport::new(ProcessEnd::Exited { code: 0 });
    report.check = Some(common::checked(true, ""));
    run.ends("tests", report);
    run.wants("run b#1");
}

#[test]
fn s2_05_a_soft_gate_asks_and_goes_on_only_after_a_person_confirms() {
    let mut run = draft().agent("a").expression("order", Hardness::Soft).run();
    run.evaluated("a", "order", false);
    run.wants("ask D-1");
    run.crash();
    run.wants("ask D-1");
    run.answer("D-1", "yes");
    run.wants("run a#1");
    assert_eq!(run.state.waivers.len(), 1, "a waiver is shown for ever");
    let mut run = draft().agent("a").expression("order", Hardness::Soft).run();
    run.evaluated("a", "order", false);
    run.answer("D-1", "no");
    assert_eq!(run.blocked("a"), "answered_block");
}

#[test]
fn j_20_a_gate_is_looked_at_again_when_what_it_rests_on_changed_while_it_waited() {
    let mut run = draft()
        .pool("run", 1)
        .agent("a")
        .agent("other")
        .agent("b")
        .needs(&["a"])
        .gate("file", Hardness::Hard, Condition::Artifact { step: "a".into(), name: "x.md".into() })
        .run();
    run.ends("a", writing(reply(Outcome::Done), &[("x.md", "one")]));
    run.is("b", "ready");
    run.ends("other", writing(reply(Outcome::Done), &[("x.md", "two")]));
    assert_eq!(run.blocked("b"), "gate");
}

#[test]
fn s1_09_a_condition_that_does_not_hold_skips_and_a_broken_one_blocks() {
    let plan = || draft().agent("ui").expression("has-ui", Hardness::Skip).agent("next").needs(&["ui"]);
    let mut run = plan().run();
    run.evaluated("ui", "has-ui", false);
    run.is("ui", "skipped");
    run.wants("run next#1");
    let mut run = plan().run();
    run.feed(Input::Evaluated {
        step: "ui".into(),
        gate: "has-ui".into(),
        value: Err("undefined".to_owned()),
    });
    assert_eq!(run.blocked("ui"), "gate");
}

#[test]
fn j_39_and_s1_59_an_obligation_is_checked_at_the_end() {
    let plan = |else_run| {
        draft().agent("code").agent("security").dormant().obligation(
            "security",
            Must::Role { role: "role-security".into() },
            else_run,
        )
    };
    let mut run = plan(Some("security")).run();
    run.done(&["code"]);
    run.wants("run security#1");
    run.crash();
    run.done(&["security"]);
    run.status(RunStatus::Done);
    let mut run = plan(None).run();
    run.done(&["code"]);
    run.wants("ask D-1");
    run.crash();
    run.wants("ask D-1");
    run.answer("D-1", "run");
    run.wants("run security#1");
    run.done(&["security"]);
    run.status(RunStatus::Done);
    assert!(run.state.waivers.is_empty());
}

/// Decision 11: what must happen is let go only with a reason, and that is never forgotten.
#[test]
fn j_39_an_obligation_is_waived_with_a_reason_or_stays_open() {
    let mut run = draft().agent("code").obligation("seen", Must::Role { role: "nobody".into() }, None).run();
    run.done(&["code"]);
    run.status(RunStatus::Waiting);
    let words: Vec<&str> =
        run.state.decisions["D-1"].decision.answers.iter().map(|answer| answer.word.as_str()).collect();
    assert_eq!(words, ["waive", "abort"], "there is no step that could meet it");
    assert!(run.try_answer("D-1", "waive").is_err(), "a waiver has a reason");
    run.feed(Input::CancelDecision { decision: "D-1".into(), reason: "not today".to_owned() });
    run.status(RunStatus::Blocked);
    assert_eq!(gatewright_core::explain::blocked_by(&run.plan, &run.state).unwrap().reason, "obligation");
    run.crash();
    run.status(RunStatus::Blocked);
    run.resume();
    run.wants("ask D-2");
    run.answer("D-2", "waive: looked at by hand");
    run.status(RunStatus::Done);
    let waiver = &run.state.waivers[0];
    assert_eq!(waiver.obligation.as_deref(), Some("seen"));
    assert_eq!(waiver.step, "nobody".into(), "who would have met it");
    assert!(waiver.reason.contains("looked at by hand"), "{}", waiver.reason);
}

#[test]
fn j_39_a_question_about_an_obligation_is_withdrawn_when_the_run_goes_on() {
    let mut run = draft().agent("code").obligation("seen", Must::Role { role: "nobody".into() }, None).run();
    run.done(&["code"]);
    run.wants("ask D-1");
    run.feed(Input::RestartStage { stage: "main".into(), reason: "once more".to_owned() });
    run.wants("run code#2");
    run.done(&["code"]);
    run.wants("ask D-2");
}

/// Decision 11.
#[test]
fn a_hard_gate_is_passed_only_with_a_waiver_that_stays_on_record() {
    let mut run = draft()
        .agent("a")
        .expression("one", Hardness::Hard)
        .expression("two", Hardness::Hard)
        .agent("b")
        .needs(&["a"])
        .run();
    assert!(run.waive_gate("a", None).is_err(), "nothing is closed yet");
    run.evaluated("a", "one", false);
    run.evaluated("a", "two", false);
    assert_eq!(run.blocked("a"), "gate");
    assert!(run.waive_gate("b", None).is_err(), "it waits for a step, not for a gate");
    assert!(run.waive_gate("a", None).is_err(), "which of the two?");
    assert!(run.waive_gate("a", Some("three")).is_err());
    let mute = Input::WaiveGate { step: "a".into(), gate: Some("one".into()), reason: " ".to_owned() };
    assert!(run.try_feed(mute).is_err(), "a waiver has a reason");
    run.waive_gate("a", Some("one")).unwrap();
    assert_eq!(run.blocked("a"), "gate");
    assert!(run.why("a").contains("`two`"), "{}", run.why("a"));
    run.crash();
    run.waive_gate("a", None).unwrap();
    run.wants("run a#1");
    run.done(&["a", "b"]);
    run.status(RunStatus::Done);
    let gates: Vec<&str> = run
        .state
        .waivers
        .iter()
        .filter_map(|waiver| waiver.gate.as_ref())
        .map(|gate| gate.as_str())
        .collect();
    assert_eq!(gates, ["one", "two"]);
}

#[test]
fn a_waived_gate_inside_a_lost_group_sets_the_group_going_again() {
    let mut run = draft().sub_run("s").agent("s/do").expression("open", Hardness::Hard).run();
    run.evaluated("s/do", "open", false);
    assert_eq!(run.blocked("s"), "items_failed");
    run.waive_gate("s/do", None).unwrap();
    run.wants("run s/do#1");
    run.done(&["s/do"]);
    run.status(RunStatus::Done);
}

#[test]
fn j_39_a_gate_on_a_branch_that_was_left_out_keeps_the_run_from_its_end() {
    let mut run = draft()
        .agent("a")
        .agent("approve")
        .expression("full", Hardness::Skip)
        .obligation("approved", Must::Step { step: "approve".into() }, None)
        .run();
    run.evaluated("approve", "full", false);
    run.done(&["a"]);
    run.status(RunStatus::Waiting);
    // Asked for by a person it runs although its condition does not hold.
    run.answer("D-1", "run");
    run.wants("run approve#1");
    run.done(&["approve"]);
    run.status(RunStatus::Done);
}

fn tasks(note: bool) -> Bench {
    draft()
        .agent("plan")
        .fan_out("tasks")
        .needs(&["plan"])
        .fan_out_edit(|fan_out| {
            fan_out.planned_by = Some("plan".into());
            fan_out.on_item_failure = if note { ItemFailure::Note } else { ItemFailure::Block };
        })
        .agent("tasks/*/do")
        .attempts(1)
        .agent("after")
        .needs(&["tasks"])
        .run()
}

#[test]
fn s1_32_an_item_starts_only_when_the_items_it_needs_have_passed() {
    let mut run = tasks(false);
    run.done(&["plan"]);
    run.wants("list tasks");
    run.list("tasks", &[("t1", &[]), ("t2", &["t1"]), ("t3", &[])]);
    run.wants("run tasks/t1/do#1, run tasks/t3/do#1");
    run.done(&["tasks/t1/do"]);
    run.wants("run tasks/t2/do#1, run tasks/t3/do#1");
    run.done(&["tasks/t2/do", "tasks/t3/do"]);
    run.wants("run after#1");
}

#[test]
fn s4_33_and_j_22_a_failed_item_blocks_its_dependants_and_the_others_go_on() {
    let mut run = tasks(false);
    run.done(&["plan"]);
    run.list("tasks", &[("t1", &[]), ("t2", &["t1"]), ("t3", &["t2"]), ("t4", &[])]);
    run.dies("tasks/t1/do", ProcessEnd::Exited { code: 1 });
    let end = |key: &str| run.state.fan_outs["tasks"].items[key].end.clone();
    assert_eq!(end("t2"), Some(ItemEnd::Blocked { by: vec!["t1".to_owned()] }));
    assert_eq!(end("t3"), Some(ItemEnd::Blocked { by: vec!["t2".to_owned()] }));
    run.wants("run tasks/t4/do#1");
    run.done(&["tasks/t4/do"]);
    assert_eq!(run.blocked("tasks"), "items_failed");
    // Resume tries what was lost, and only that.
    run.resume();
    run.wants("run tasks/t1/do#2");
    run.done(&["tasks/t1/do", "tasks/t2/do", "tasks/t3/do"]);
    run.wants("run after#1");
    assert_eq!(run.state.steps["tasks/t4/do"].attempts, 1);
}

#[test]
fn s4_33_lost_items_that_are_tried_again_are_no_more_at_once_than_the_fan_out_allows() {
    let mut run = draft()
        .fan_out("tasks")
        .fan_out_edit(|fan_out| fan_out.parallel_max = 2)
        .agent("tasks/*/do")
        .attempts(1)
        .agent("tasks/*/tell")
        .needs(&["tasks/*/do"])
        .run();
    run.list("tasks", &[("t1", &[]), ("t2", &[]), ("t3", &[]), ("t4", &[])]);
    for step in ["tasks/t1/do", "tasks/t2/do", "tasks/t3/do", "tasks/t4/do"] {
        run.dies(step, ProcessEnd::Exited { code: 1 });
    }
    run.resume();
    run.wants("run tasks/t1/do#2, run tasks/t2/do#2");
    let why = gatewright_core::explain::explain_step(&run.plan, &run.state, &"tasks/t3/do".into());
    assert!(format!("{why:?}").contains("2 of its items"), "{why:?}");
    run.done(&["tasks/t1/do"]);
    run.wants("run tasks/t2/do#2, run tasks/t3/do#2");
    run.done(&["tasks/t2/do", "tasks/t3/do"]);
    run.done(&["tasks/t4/do", "tasks/t1/tell", "tasks/t2/tell", "tasks/t3/tell", "tasks/t4/tell"]);
    run.status(RunStatus::Done);
}

#[test]
fn s4_33_a_lost_item_that_a_person_leaves_out_is_not_lost_any_more() {
    let mut run = tasks(false);
    run.done(&["plan"]);
    run.list("tasks", &[("t1", &[]), ("t2", &["t1"])]);
    run.dies("tasks/t1/do", ProcessEnd::Exited { code: 1 });
    assert_eq!(run.blocked("tasks"), "items_failed");
    run.skip("tasks/t1/do");
    run.wants("run tasks/t2/do#1");
    run.done(&["tasks/t2/do"]);
    run.wants("run after#1");
}

#[test]
fn j_40_all_branches_failed_is_never_a_pass() {
    let mut run = tasks(true);
    run.done(&["plan"]);
    run.list("tasks", &[("t1", &[]), ("t2", &[])]);
    run.dies("tasks/t1/do", ProcessEnd::Exited { code: 1 });
    run.dies("tasks/t2/do", ProcessEnd::Exited { code: 1 });
    assert_eq!(run.blocked("tasks"), "items_failed");
    let mut run = tasks(true);
    run.done(&["plan"]);
    run.list("tasks", &[("t1", &[]), ("t2", &[])]);
    run.dies("tasks/t1/do", ProcessEnd::Exited { code: 1 });
    run.done(&["tasks/t2/do"]);
    assert!(matches!(&run.state.steps["tasks"].phase, Phase::Passed { notes } if notes[0].contains("t1")));
    let skip = Input::Skip { step: "tasks/t1/do".into(), reason: "late".to_owned() };
    assert!(run.try_feed(skip).is_err(), "it would set a group going that is through");
    // What was lost and noted stays so when the run is resumed for another reason.
    run.feed(Input::Stop);
    run.done(&["after"]);
    run.resume();
    run.status(RunStatus::Done);
}

#[test]
fn j_41_items_are_known_by_their_keys_and_finished_ones_are_not_run_again() {
    let mut run = tasks(false);
    run.done(&["plan"]);
    run.list("tasks", &[("t1", &[]), ("t2", &[])]);
    run.done(&["tasks/t1/do"]);
    run.crash();
    // The list on disk may say anything now: it was read, and is not read again.
    run.wants("run tasks/t2/do#1");
    let other =
        Input::ListRead { step: "tasks".into(), hash: common::hash("new"), items: Ok(items(&[("t9", &[])])) };
    assert!(run.try_feed(other).is_err());
    run.done(&["tasks/t2/do"]);
    assert_eq!(run.state.steps["tasks/t1/do"].attempts, 1);
}

#[test]
fn j_28_a_list_that_is_no_plan_goes_back_to_its_author_with_the_exact_reason() {
    type List = &'static [(&'static str, &'static [&'static str])];
    let bad: [(List, &str); 4] = [
        (&[("a", &["b"]), ("b", &["a"])], "a → b → a"),
        (&[("a", &["x"])], "`a` depends on `x`, which is not in the list"),
        (&[("a", &["a"])], "`a` depends on itself"),
        (&[("a", &[]), ("a", &[])], "the id `a` is used twice"),
    ];
    for (list, reason) in bad {
        let mut run = tasks(false);
        run.done(&["plan"]);
        run.list("tasks", list);
        run.wants("run plan#2");
        let Some(Cause::BadList { reason: told }) = run.state.steps["plan"].cause.as_deref() else {
            panic!("no cause")
        };
        assert!(told.contains(reason), "{told}");
        run.done(&["plan"]);
        run.list("tasks", list);
        assert_eq!(run.blocked("tasks"), "bad_list");
    }
}

#[test]
fn s4_16_waves_have_a_barrier_between_them() {
    let mut run = draft().fan_out("w").fan_out_edit(|fan_out| fan_out.waves = true).agent("w/*/do").run();
    run.list("w", &[("a", &[]), ("b", &[]), ("c", &["a"])]);
    run.done(&["w/a/do"]);
    run.wants("run w/b/do#1");
    run.done(&["w/b/do"]);
    run.wants("run w/c/do#1");
}

#[test]
fn j_46_a_pool_holds_exactly_so_many() {
    let mut run = draft().pool("run", 2).agent("a").agent("b").agent("c").run();
    run.wants("run a#1, run b#1");
    assert!(run.why("c").contains("all 2 place(s) of `run` are taken"));
    run.done(&["a"]);
    run.wants("run b#1, run c#1");
}

#[test]
fn j_46_two_fan_outs_share_a_pool_fairly() {
    let plan = draft().pool("run", 1).fan_out("x").agent("x/*/do").fan_out("y").agent("y/*/do");
    let mut run = plan.run();
    run.list("x", &[("1", &[]), ("2", &[])]);
    run.list("y", &[("1", &[]), ("2", &[])]);
    run.wants("run x/1/do#1");
    run.done(&["x/1/do"]);
    run.wants("run y/1/do#1");
    run.done(&["y/1/do"]);
    run.wants("run x/2/do#1");
}

#[test]
fn s1_32_a_sub_run_is_a_scope_of_its_own_and_ends_with_its_steps() {
    let mut run = draft()
        .sub_run("sub")
        .agent("sub/a")
        .agent("sub/b")
        .needs(&["sub/a"])
        .agent("after")
        .needs(&["sub"])
        .run();
    run.wants("run sub/a#1");
    run.done(&["sub/a"]);
    run.crash();
    run.done(&["sub/b"]);
    run.wants("run after#1");
    assert_eq!(run.state.steps["sub/a"].scope, ScopeId("sub".to_owned()));
}

#[test]
fn skipping_a_group_ends_what_is_at_work_below_it() {
    let mut run =
        draft().sub_run("sub").agent("sub/a").decision("sub/ok", &[]).agent("after").needs(&["sub"]).run();
    run.wants("run sub/a#1, ask sub/ok");
    run.skip("sub");
    run.wants("stop sub/a#1, run after#1");
}

#[test]
fn j_45_an_adopted_plan_keeps_what_is_done_and_starts_what_is_new() {
    let mut run = draft().agent("a").agent("b").needs(&["a"]).run();
    run.done(&["a"]);
    let events = run.adopt(draft().agent("a").agent("b").needs(&["a"]).agent("c").needs(&["b"]));
    assert_eq!(events.len(), 1);
    run.wants("run b#1");
    run.is("c", "pending");
}

#[test]
fn j_40_an_explicit_fail_ends_the_run_as_failed() {
    let mut run = draft()
        .agent("a")
        .attempts(1)
        .on_exhausted(vec![gatewright_core::plan::Exhaustion::Fail])
        .agent("b")
        .run();
    run.dies("a", ProcessEnd::Exited { code: 1 });
    run.status(RunStatus::Running);
    run.done(&["b"]);
    run.status(RunStatus::Failed);
}

#[test]
fn a_group_passes_with_notes_if_something_inside_did() {
    let mut run = draft()
        .fan_out("tasks")
        .agent("tasks/*/do")
        .attempts(1)
        .on_exhausted(vec![gatewright_core::plan::Exhaustion::CompleteWithNotes])
        .sub_run("s")
        .agent("s/do")
        .attempts(1)
        .on_exhausted(vec![gatewright_core::plan::Exhaustion::CompleteWithNotes])
        .run();
    run.list("tasks", &[("a", &[]), ("b", &[])]);
    run.done(&["tasks/a/do"]);
    run.dies("tasks/b/do", ProcessEnd::Exited { code: 1 });
    run.dies("s/do", ProcessEnd::Exited { code: 1 });
    for (group, inside) in [("tasks", "tasks/b/do"), ("s", "s/do")] {
        let Phase::Passed { notes } = &run.state.steps[group].phase else { panic!("{group} has not passed") };
        assert!(notes.len() == 1 && notes[0].contains(inside), "{notes:?}");
    }
}

#[test]
fn a_group_waits_when_all_that_is_left_in_it_waits_for_a_person() {
    let mut run =
        draft().fan_out("tasks").agent("tasks/*/do").decision("tasks/*/ok", &[]).needs(&["tasks/*/do"]).run();
    run.list("tasks", &[("a", &[]), ("b", &[])]);
    run.done(&["tasks/a/do"]);
    assert!(!run.state.waits_inside(&"tasks".into()), "b is at work");
    run.done(&["tasks/b/do"]);
    assert!(run.state.waits_inside(&"tasks".into()));
    run.answer("tasks/a/ok", "approved");
    run.answer("tasks/b/ok", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn s3_05_a_question_that_is_put_once_is_answered_for_all_items() {
    let asks = || {
        let mut run = draft()
            .fan_out("tasks")
            .agent("tasks/*/do")
            .decision("tasks/*/ok", &[])
            .once()
            .needs(&["tasks/*/do"])
            .run();
        run.list("tasks", &[("a", &[]), ("b", &[]), ("c", &[])]);
        run.done(&["tasks/b/do", "tasks/a/do"]);
        run
    };
    let pending =
        |run: &Bench| run.state.queues.pending_decisions.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    let mut run = asks();
    assert_eq!(pending(&run), ["tasks/b/ok"], "whoever comes first asks");
    run.done(&["tasks/c/do"]);
    assert!(run.state.waits_inside(&"tasks".into()) && !run.state.can_progress());
    run.answer("tasks/b/ok", "approved");
    run.status(RunStatus::Done);
    // Who comes after the answer is not asked either.
    let mut run = asks();
    run.answer("tasks/b/ok", "approved");
    assert_eq!(pending(&run), Vec::<String>::new());
    run.done(&["tasks/c/do"]);
    run.status(RunStatus::Done);
    // Another answer than one that stands is asked anew.
    let mut run = asks();
    run.answer("tasks/b/ok", "stop");
    assert_eq!(pending(&run), Vec::<String>::new());
    assert_eq!((run.blocked("tasks/a/ok"), run.blocked("tasks/b/ok")), ("answered_block", "answered_block"));
}

/// `plan` writes the list and `plan.md`, which `look` reads.
fn planned() -> Bench {
    draft()
        .agent("plan")
        .writes("plan.md")
        .decision("approve", &["plan"])
        .needs(&["plan"])
        .fan_out("tasks")
        .needs(&["plan"])
        .fan_out_edit(|fan_out| fan_out.planned_by = Some("plan".into()))
        .agent("tasks/*/do")
        .agent("tasks/*/look")
        .needs(&["tasks/*/do"])
        .decision("end", &["tasks"])
        .needs(&["tasks"])
        .run()
}

fn plan_says(run: &mut Bench, text: &str) {
    run.ends("plan", writing(reply(Outcome::Done), &[("plan.md", text)]));
}

fn item_done(run: &mut Bench, key: &str, plan: &str) {
    run.ends(
        &format!("tasks/{key}/do"),
        writing(reply(Outcome::Done), &[(format!("{key}.md").as_str(), key)]),
    );
    let mut report = reply(Outcome::Done);
    report.inputs = vec![
        ("plan.md".into(), common::hash(plan)),
        (format!("{key}.md").as_str().into(), common::hash(key)),
    ];
    run.ends(&format!("tasks/{key}/look"), report);
}

fn read(run: &mut Bench, list: &[(&str, &[&str], &str)]) {
    let plain: Vec<(&str, &[&str])> = list.iter().map(|(key, needs, _)| (*key, *needs)).collect();
    let mut items = items(&plain);
    for (item, (_, _, element)) in items.iter_mut().zip(list) {
        item.element = Some(common::hash(element));
    }
    run.feed(Input::ListRead { step: "tasks".into(), hash: common::hash("list"), items: Ok(items) });
}

#[test]
fn j_41_a_new_plan_runs_again_what_changed_and_keeps_the_rest() {
    let mut run = planned();
    plan_says(&mut run, "one");
    read(
        &mut run,
        &[("a", &[], "A"), ("b", &["a"], "B"), ("c", &[], "C"), ("d", &[], "D"), ("e", &["d"], "E")],
    );
    for key in ["a", "b", "c", "d", "e"] {
        item_done(&mut run, key, "one");
    }
    run.is("tasks", "passed");
    run.answer("approve", "changes: smaller");
    run.wants("run plan#2");
    plan_says(&mut run, "one");
    run.answer("approve", "approved");
    // `c` is gone, `d` asks for something else, `e` rests on `d`, `f` is new.
    read(
        &mut run,
        &[("a", &[], "A"), ("b", &["a"], "B"), ("d", &[], "D2"), ("e", &["d"], "E"), ("f", &[], "F")],
    );
    run.wants("run tasks/d/do#2, run tasks/f/do#1");
    assert_eq!((run.count("fanout.item.kept"), run.count("fanout.item.dropped")), (2, 1));
    assert!(!run.state.artifacts.contains_key("c.md"), "what was done for `c` does not count");
    run.crash();
    item_done(&mut run, "d", "one");
    item_done(&mut run, "f", "one");
    item_done(&mut run, "e", "one");
    run.is("tasks", "passed");
    let attempts = |key: &str| run.state.steps[format!("tasks/{key}/do").as_str()].attempts;
    assert_eq!(["a", "b", "d", "e", "f"].map(attempts), [1, 1, 2, 2, 1]);
}

#[test]
fn j_41_an_item_that_read_what_changed_runs_again() {
    let mut run = planned();
    plan_says(&mut run, "one");
    read(&mut run, &[("a", &[], "A")]);
    item_done(&mut run, "a", "one");
    run.answer("approve", "changes: smaller");
    plan_says(&mut run, "two");
    run.answer("approve", "approved");
    read(&mut run, &[("a", &[], "A")]);
    run.wants("run tasks/a/do#2");
}

#[test]
fn j_41_a_person_who_wants_the_items_again_gets_all_of_them() {
    let mut run = planned();
    plan_says(&mut run, "one");
    read(&mut run, &[("a", &[], "A")]);
    item_done(&mut run, "a", "one");
    run.answer("approve", "approved");
    run.answer("end", "changes: all of it");
    run.wants("list tasks");
    read(&mut run, &[("a", &[], "A")]);
    run.wants("run tasks/a/do#2");
    item_done(&mut run, "a", "one");
    run.feed(Input::RestartStage { stage: "main".into(), reason: "from the start".to_owned() });
    plan_says(&mut run, "one");
    read(&mut run, &[("a", &[], "A")]);
    run.wants("run tasks/a/do#3, ask approve");
}

fn changed(found: &str) -> Input {
    let now = ListNow::Changed { found: hash(found), what: format!("it says {found}") };
    Input::ListChanged { step: "all".into(), name: "list.json".into(), now }
}

fn at_work() -> Bench {
    let mut run = draft().fan_out("all").fan_out_edit(|own| own.parallel_max = 1).agent("all/*/do").run();
    run.list("all", &[("a", &[]), ("b", &[]), ("c", &[])]);
    run.done(&["all/a/do"]);
    run.wants("run all/b/do#1");
    run
}

#[test]
fn j_41_a_list_that_changes_at_work_is_adopted_only_by_an_answer_and_what_is_under_way_comes_first() {
    let mut run = at_work();
    run.feed(changed("new"));
    assert!(run.feed(changed("new")).is_empty(), "asked once");
    run.wants("run all/b/do#1, ask D-1");
    run.answer("D-1", "adopt");
    run.is("all/b/do", "running");
    let events = run.ends("all/b/do", reply(Outcome::Done));
    run.wants("list all");
    // Any part of that may be what is left on record.
    for missing in 0..events.len() {
        let mut torn = Bench::new(run.plan.clone());
        torn.log.clone_from(&run.log);
        torn.crash_keeping(run.log.len() - missing);
        torn.wants("list all");
    }
    run.list("all", &[("a", &[]), ("c", &[]), ("x", &[])]);
    assert_eq!((run.count("fanout.item.kept"), run.count("fanout.item.dropped")), (1, 1), "{}", run.story());
    run.done(&["all/c/do", "all/x/do"]);
    run.status(RunStatus::Done);
    assert_eq!(run.count("step.attempt.started"), 4, "a is not run again: {}", run.story());
}

#[test]
fn j_41_a_list_that_is_ignored_changes_nothing_and_is_asked_about_again_only_if_it_changes_again() {
    let mut run = at_work();
    run.feed(changed("new"));
    run.answer("D-1", "ignore");
    assert!(run.feed(changed("new")).is_empty(), "that was answered");
    run.feed(changed("newer"));
    run.done(&["all/b/do", "all/c/do"]);
    run.status(RunStatus::Waiting);
    run.is("all", "open");
    assert!(run.why("all").contains("D-2"), "{}", run.why("all"));
    run.feed(changed("newest"));
    run.wants("ask D-3");
    run.feed(Input::ListChanged { step: "all".into(), name: "list.json".into(), now: ListNow::AsItBegan });
    run.status(RunStatus::Done);
    assert_eq!(run.count("fanout.started"), 1);
}

#[test]
fn j_41_a_question_about_a_list_goes_with_its_fan_out() {
    let mut run = at_work();
    run.feed(changed("new"));
    run.skip("all");
    assert!(run.state.queues.pending_decisions.is_empty());
    run.status(RunStatus::Done);
    let mut run = at_work();
    assert!(
        run.feed(Input::ListChanged { step: "all".into(), name: "list.json".into(), now: ListNow::Unusable })
            .is_empty()
    );
    run.done(&["all/b/do", "all/c/do"]);
    run.status(RunStatus::Done);
    assert!(run.try_feed(changed("new")).is_err(), "it is over");
}

#[test]
fn j_41_an_adopted_list_that_was_published_counts_from_now_on_and_an_ignored_one_does_not() {
    let at_work = || {
        let mut run =
            draft().agent("plan").writes("list.json").fan_out("all").needs(&["plan"]).agent("all/*/do").run();
        run.ends("plan", writing(reply(Outcome::Done), &[("list.json", "old")]));
        run.list("all", &[("a", &[])]);
        run.feed(changed("new"));
        run
    };
    let published = |run: &Bench| run.state.artifacts["list.json"].hash.clone();
    let mut run = at_work();
    run.answer("D-1", "adopt");
    assert_eq!((published(&run), run.count("artifact.adopted")), (hash("new"), 1));
    run.done(&["all/a/do"]);
    run.wants("list all");
    let mut run = at_work();
    run.answer("D-1", "ignore");
    assert_eq!((published(&run), run.count("artifact.adopted")), (hash("old"), 0));
    run.wants("run all/a/do#1");
    run.done(&["all/a/do"]);
    run.status(RunStatus::Done);
    // Nothing is to be adopted if it is published like that already.
    let mut run = at_work();
    run.feed(changed("old"));
    run.answer("D-2", "adopt");
    assert_eq!(run.count("artifact.adopted"), 0);
    // Nor is a list that nobody published.
    let mut run = draft().fan_out("all").agent("all/*/do").run();
    run.list("all", &[("a", &[])]);
    run.feed(changed("new"));
    run.answer("D-1", "adopt");
    assert_eq!(run.count("artifact.adopted"), 0);
}

#[test]
fn an_item_that_a_journal_opened_out_of_turn_is_opened_once() {
    let mut run = draft().fan_out("all").fan_out_edit(|own| own.parallel_max = 1).agent("all/*/do").run();
    run.list("all", &[("a", &[]), ("b", &[]), ("c", &[])]);
    let opened = Event::ItemOpened { step: "all".into(), key: "c".to_owned() };
    run.log.push((run.now, opened));
    run.crash();
    run.done(&["all/a/do", "all/c/do", "all/b/do"]);
    run.status(RunStatus::Done);
}

#[test]
fn what_waits_for_an_item_that_was_through_waits_again_when_the_item_goes_on() {
    let mut run = draft()
        .agent("spec")
        .writes("spec.md")
        .agent("respec")
        .fan_out("all")
        .needs(&["spec"])
        .fan_out_edit(|own| own.parallel_max = 2)
        .decision("all/*/ok", &[])
        .show(&["spec.md"])
        .agent("all/*/do")
        .needs(&["all/*/ok"])
        .run();
    run.ends("spec", writing(reply(Outcome::Done), &[("spec.md", "one")]));
    // While `b` and `c` are under way, `d` and `e` have to wait for a place, `e` for `a` besides.
    run.list("all", &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[]), ("e", &["a"])]);
    for key in ["a", "b"] {
        run.answer(&format!("all/{key}/ok"), "approved");
    }
    run.done(&["all/a/do"]);
    run.is("all/c/ok", "waiting");
    assert_eq!(run.state.fan_outs["all"].ready, ["d", "e"]);
    // What was approved in `a` is something else now: it is asked again.
    run.ends("respec", writing(reply(Outcome::Done), &[("spec.md", "two")]));
    run.is("all/a/ok", "waiting");
    assert_eq!(run.state.fan_outs["all"].ready, ["d"], "`e` waits for `a` again");
    run.answer("all/a/ok", "approved");
    assert_eq!(run.state.fan_outs["all"].ready, ["d", "e"]);
}

#[test]
fn j_41_items_run_again_when_something_else_than_their_list_does() {
    let mut run = draft()
        .agent("setup")
        .agent("plan")
        .fan_out("tasks")
        .needs(&["setup", "plan"])
        .fan_out_edit(|fan_out| fan_out.planned_by = Some("plan".into()))
        .agent("tasks/*/do")
        .decision("end", &["setup"])
        .needs(&["tasks"])
        .run();
    run.done(&["setup", "plan"]);
    run.list("tasks", &[("a", &[])]);
    run.done(&["tasks/a/do"]);
    run.answer("end", "changes");
    run.done(&["setup"]);
    run.list("tasks", &[("a", &[])]);
    run.wants("run tasks/a/do#2");
}

#[test]
fn j_41_an_item_is_kept_with_what_sleeps_and_what_was_lost_inside_of_it() {
    let mut run = draft()
        .agent("plan")
        .decision("approve", &["plan"])
        .needs(&["plan"])
        .fan_out("tasks")
        .needs(&["plan"])
        .fan_out_edit(|fan_out| fan_out.planned_by = Some("plan".into()))
        .agent("tasks/*/help")
        .dormant()
        .fan_out("tasks/*/parts")
        .fan_out_edit(|fan_out| fan_out.on_item_failure = ItemFailure::Note)
        .agent("tasks/*/parts/*/do")
        .attempts(1)
        .run();
    let both: &[(&str, &[&str])] = &[("x", &[]), ("y", &[])];
    run.done(&["plan"]);
    run.list("tasks", &[("a", &[])]);
    run.list("tasks/a/parts", both);
    run.done(&["tasks/a/parts/x/do"]);
    run.dies("tasks/a/parts/y/do", ProcessEnd::Exited { code: 1 });
    run.is("tasks", "passed");
    run.answer("approve", "changes");
    run.done(&["plan"]);
    run.list("tasks", &[("a", &[])]);
    assert_eq!(run.count("fanout.item.kept"), 1);
    run.is("tasks/a/help", "dormant");
    run.is("tasks/a/parts/y/do", "blocked");
    run.is("tasks", "passed");
    run.answer("approve", "approved");
    run.status(RunStatus::Done);
}

#[test]
fn s1_08_an_escalated_run_forgets_what_was_answered_and_ends_what_was_at_work() {
    let other = draft().decision("ok", &[]).agent("a");
    let mut run = draft()
        .agent("a")
        .agent("b")
        .decision("ok", &[])
        .decision("no", &[])
        .escalates("risky", "second", other)
        .run();
    run.answer("ok", "approved");
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    run.answer("ok", "approved");
    run.feed(Input::CancelDecision { decision: "no".into(), reason: "later".to_owned() });
    let mut blocked = reply(Outcome::Blocked);
    blocked.reply.as_mut().unwrap().reason = Some("risky".to_owned());
    run.ends("b", blocked);
    run.wants("stop a#1, stop a#2, stop b#1, run a#3, ask ok");
    assert_eq!(run.state.decisions["no"].status, DecisionStatus::Cancelled, "it stays on record");
    assert_eq!(run.state.decisions["ok"].status, DecisionStatus::Pending, "it is asked in this profile too");
}
