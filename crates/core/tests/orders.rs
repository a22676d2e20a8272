//! What people order and what is refused: the words of every refusal, and that nothing changes.

mod common;

use std::collections::BTreeMap;

use common::{Bench, checked, draft, hash, questions, reply, writing};
use gatewright_core::{
    Rejected, advance,
    event::{Beginning, Event, RunEnd},
    explain::blocked_by,
    fact::{
        AttemptReport, CommitFact, Hint, InputProblem, Intrusion, IntrusionKind, LaunchFact, News, ProcessEnd,
    },
    input::{Input, Raise},
    outcome::Outcome,
    plan::{Condition, Exhaustion, Hardness, ItemFailure, limits},
    state::{DecisionStatus, RunPhase, RunStatus, State},
    transition::{self, TransitionKind},
};

fn start() -> Input {
    Input::Start { run: "run".to_owned(), request: String::new(), beginning: Beginning::default() }
}

fn refused(run: &mut Bench, input: Input) -> String {
    let before = run.state.clone();
    let refusal = run.try_feed(input).expect_err("it is refused");
    assert_eq!(run.state, before, "a refusal changes nothing");
    refusal.to_string()
}

fn give(step: &str) -> Input {
    Input::Give { step: step.into(), from: "given".to_owned() }
}

fn skip(step: &str, reason: &str) -> Input {
    Input::Skip { step: step.into(), reason: reason.to_owned() }
}

fn waive(step: &str, gate: Option<&str>, reason: &str) -> Input {
    Input::WaiveGate { step: step.into(), gate: gate.map(Into::into), reason: reason.to_owned() }
}

#[test]
fn a_run_that_has_not_started_takes_nothing_but_its_start() {
    let plan = draft().agent("a").plan();
    let mut state = State::new(&plan);
    let now = gatewright_core::ids::Timestamp(1);
    let refusal = advance(&plan, &mut state, &Input::Tick, now).unwrap_err();
    assert_eq!(refusal.to_string(), "the run has not started");
    assert_eq!(state.status(), RunStatus::Running);
    advance(&plan, &mut state, &start(), now).expect("it starts");
    assert_eq!(advance(&plan, &mut state, &start(), now), Err(Rejected::AlreadyStarted));
    assert_eq!(Rejected::AlreadyStarted.to_string(), "the run has started already");
}

#[test]
fn a_run_that_has_ended_takes_only_what_was_under_way() {
    for (how, word) in [(RunEnd::Done, "done"), (RunEnd::Failed, "failed"), (RunEnd::Abandoned, "abandoned")]
    {
        let mut run = draft().agent("a").attempts(1).on_exhausted(vec![Exhaustion::Fail]).run();
        match how {
            RunEnd::Done => run.done(&["a"]),
            RunEnd::Failed => run.dies("a", ProcessEnd::Exited { code: 1 }),
            RunEnd::Abandoned => {
                run.feed(Input::Abort { reason: "enough".to_owned() });
            }
        }
        assert!(run.state.is_over());
        for order in [start(), Input::Tick, Input::Stop, skip("a", "why"), give("a")] {
            assert_eq!(refused(&mut run, order), format!("the run has ended: it is {word}"));
        }
    }
    let mut run = draft().agent("a").agent("b").checks(&["lint"]).run();
    run.done(&["b"]);
    run.feed(Input::Abort { reason: "enough".to_owned() });
    let report = AttemptReport::new(ProcessEnd::Stopped);
    let events = run.feed(Input::AttemptEnded { step: "a".into(), attempt: 1, report });
    assert!(matches!(events.as_slice(), [Event::ResultIgnored { .. }]), "{events:?}");
    let late =
        Input::CheckEnded { step: "b".into(), attempt: 1, check: "lint".into(), fact: checked(true, "") };
    assert_eq!(refused(&mut run, late), "`b` does not wait for this");
    let late = Input::CommitEnded { step: "b".into(), attempt: 1, fact: CommitFact::Nothing };
    assert_eq!(refused(&mut run, late), "`b` does not wait for this");
}

#[test]
fn what_is_not_there_is_named() {
    let mut run = draft().agent("a").run();
    let none = "there is no step `nobody`";
    assert_eq!(refused(&mut run, give("nobody")), none);
    assert_eq!(refused(&mut run, skip("nobody", "why")), none);
    assert_eq!(refused(&mut run, waive("nobody", None, "why")), none);
    let report = AttemptReport::new(ProcessEnd::Stopped);
    assert_eq!(refused(&mut run, Input::AttemptEnded { step: "nobody".into(), attempt: 1, report }), none);
    let fact = checked(true, "");
    let check = Input::CheckEnded { step: "nobody".into(), attempt: 1, check: "lint".into(), fact };
    assert_eq!(refused(&mut run, check), none);
    let stage = "there is no stage `nowhere`";
    let again = Input::RestartStage { stage: "nowhere".into(), reason: "again".to_owned() };
    assert_eq!(refused(&mut run, again), stage);
    assert_eq!(refused(&mut run, Input::RunUntil { stage: "nowhere".into(), skipping: None }), stage);
    let nothing = run.say("nothing", "yes");
    assert_eq!(refused(&mut run, Input::Answer(nothing)), "there is no decision `nothing`");
}

#[test]
fn work_is_handed_in_only_for_an_agent_that_writes_and_has_not_passed() {
    let mut run = draft()
        .agent("writer")
        .writes("a.md")
        .agent("talker")
        .check_step("check")
        .writes("b.md")
        .sub_run("sub")
        .agent("sub/writer")
        .writes("c.md")
        .attempts(1)
        .agent("other")
        .run();
    let no = |step: &str| {
        format!("`{step}` cannot be handed in: it is not the work of an agent, or it writes nothing")
    };
    assert_eq!(refused(&mut run, give("talker")), no("talker"));
    assert_eq!(refused(&mut run, give("check")), no("check"));
    run.feed(give("writer"));
    assert_eq!(run.state.steps["writer"].given.as_deref(), Some("given"));
    run.skip("sub");
    let passed = |step: &str| format!("`{step}`, or what it belongs to, has passed already");
    assert_eq!(refused(&mut run, give("sub/writer")), "there is no step `sub/writer`");
    run.skip("writer");
    assert_eq!(refused(&mut run, give("writer")), passed("writer"));
    assert_eq!(refused(&mut run, skip("writer", "again")), passed("writer"));
}

/// A fan-out that passes with a note although one of its items is lost.
fn lost_inside() -> Bench {
    let mut run = draft()
        .fan_out("f")
        .fan_out_edit(|fan_out| fan_out.on_item_failure = ItemFailure::Note)
        .agent("f/*/do")
        .writes("a.md")
        .attempts(1)
        .gate("closed", Hardness::Hard, Condition::Check { step: "f/*/do".into(), check: "never".into() })
        .agent("other")
        .run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run
}

#[test]
fn nothing_inside_of_a_group_that_is_through_is_set_going_again() {
    let mut run = lost_inside();
    run.skip("f/b/do");
    run.is("f", "passed");
    run.is("f/a/do", "blocked");
    let passed = "`f/a/do`, or what it belongs to, has passed already";
    assert_eq!(refused(&mut run, give("f/a/do")), passed);
    assert_eq!(refused(&mut run, skip("f/a/do", "why")), passed);
    assert_eq!(refused(&mut run, waive("f/a/do", None, "why")), passed);
}

#[test]
fn a_waiver_needs_a_reason_and_a_closed_gate() {
    let shut = |id: &str| (id.to_owned(), Condition::Check { step: "a".into(), check: "never".into() });
    let (one, two) = (shut("one"), shut("two"));
    let mut run = draft()
        .agent("a")
        .agent("b")
        .needs(&["a"])
        .gate(&one.0, Hardness::Hard, one.1)
        .gate(&two.0, Hardness::Hard, two.1)
        .agent("keep")
        .run();
    assert_eq!(
        refused(&mut run, waive("b", None, "why")),
        "no gate of `b` is closed: it waits for steps before it"
    );
    run.done(&["a"]);
    assert_eq!(run.blocked("b"), "gate");
    assert_eq!(refused(&mut run, waive("b", None, "  ")), "a reason is needed");
    assert_eq!(refused(&mut run, skip("b", " \n")), "a reason is needed");
    assert_eq!(
        refused(&mut run, waive("b", None, "why")),
        "several gates of `b` are closed, name one of them: one, two"
    );
    assert_eq!(
        refused(&mut run, waive("b", Some("three"), "why")),
        "`b` has no closed gate `three`; closed are: one, two"
    );
    run.feed(waive("b", Some("one"), "why"));
    assert_eq!(run.blocked("b"), "gate");
    assert_eq!(
        refused(&mut run, waive("b", Some("one"), "why")),
        "`b` has no closed gate `one`; closed are: two"
    );
    run.feed(waive("b", None, " it is fine "));
    run.wants("run b#1, run keep#1");
    assert_eq!(run.state.waivers.last().unwrap().reason, "it is fine");
}

#[test]
fn a_launch_is_recorded_once_for_each_attempt() {
    let mut run = draft().agent("a").run();
    let launched = |attempt| Input::Underway {
        step: "a".into(),
        attempt,
        news: News::Launched { fact: LaunchFact::default() },
    };
    assert_eq!(run.feed(launched(1)).len(), 1);
    assert_eq!(run.feed(launched(1)).len(), 0, "it is known");
    assert_eq!(refused(&mut run, launched(2)), "`a` does not wait for this");
    run.dies("a", ProcessEnd::Exited { code: 1 });
    assert_eq!(run.feed(launched(2)).len(), 1, "another attempt is another launch");
}

#[test]
fn what_an_agent_says_on_its_way_is_recorded_once_and_up_to_a_limit() {
    let mut run = draft().agent("a").run();
    let told = |count: usize| {
        let hint: Hint = serde_json::from_str(r#"{"status":"at work"}"#).expect("a hint");
        let hints = vec![hint; count];
        Input::Underway { step: "a".into(), attempt: 1, news: News::Told { hints } }
    };
    assert_eq!(run.feed(told(2)).len(), 1);
    assert_eq!(run.feed(told(2)).len(), 0, "nothing is new");
    run.feed(told(3));
    assert_eq!(run.state.steps["a"].hints[&1].len(), 3);
    run.feed(told(limits::HINTS_MAX + 5));
    assert_eq!(run.state.steps["a"].hints[&1].len(), limits::HINTS_MAX);
}

#[test]
fn only_the_last_attempts_that_said_something_are_remembered() {
    let most = limits::HINTED_ATTEMPTS_MAX;
    let mut run = draft().agent("a").attempts(most as u32 + 3).run();
    for attempt in 1..=most as u32 + 2 {
        let hint: Hint = serde_json::from_str(r#"{"status":"at work"}"#).expect("a hint");
        run.feed(Input::Underway { step: "a".into(), attempt, news: News::Told { hints: vec![hint] } });
        run.dies("a", ProcessEnd::Exited { code: attempt as i32 });
    }
    let kept: Vec<u32> = run.state.steps["a"].hints.keys().copied().collect();
    assert_eq!(kept, (3..=most as u32 + 2).collect::<Vec<_>>());
}

#[test]
fn what_the_end_of_an_attempt_tells_of_intrusions_is_kept_with_who_did_it() {
    let mut run = draft().agent("a").run();
    let found = |by: Vec<gatewright_core::ids::StepId>| Intrusion {
        kind: IntrusionKind::UnsealedOrder,
        what: "found".to_owned(),
        by,
    };
    let report = AttemptReport {
        noticed: vec!["an order".to_owned()],
        found: vec![found(Vec::new()), found(vec!["somebody".into()])],
        trespasses: vec!["a file".to_owned()],
        ..reply(Outcome::Done)
    };
    run.ends("a", report);
    let kept: Vec<(IntrusionKind, &str, &str)> = run
        .state
        .intrusions
        .iter()
        .map(|intrusion| (intrusion.kind, intrusion.what.as_str(), intrusion.by[0].as_str()))
        .collect();
    assert_eq!(
        kept,
        [
            (IntrusionKind::AgentOrder, "an order", "a"),
            (IntrusionKind::Trespass, "a file", "a"),
            (IntrusionKind::UnsealedOrder, "found", "a"),
            (IntrusionKind::UnsealedOrder, "found", "somebody"),
        ]
    );
}

#[test]
fn an_order_to_a_resting_run_sets_it_going() {
    let mut run = draft().agent("a").agent("b").needs(&["a"]).run();
    run.feed(Input::Stop);
    run.done(&["a"]);
    run.status(RunStatus::Paused);
    run.feed(Input::RestartStage { stage: "main".into(), reason: "again".to_owned() });
    run.status(RunStatus::Running);
    run.wants("run a#2");
    assert_eq!(run.feed(Input::Resume { raise: Raise::default(), substitutes: BTreeMap::new() }).len(), 0);
    let substitutes = BTreeMap::from([("fake".to_owned(), "other".to_owned())]);
    run.feed(Input::Resume { raise: Raise::default(), substitutes: substitutes.clone() });
    assert_eq!(run.state.substitutes, substitutes);
}

#[test]
fn stopping_twice_is_stopping_once() {
    let mut run = draft().agent("a").run();
    assert_eq!(run.feed(Input::Stop).len(), 1);
    assert_eq!(run.feed(Input::Stop).len(), 0);
    assert_eq!(run.state.phase, RunPhase::Stopping);
}

#[test]
fn an_answer_that_is_none_is_refused_with_the_answers_there_are() {
    let mut run = draft().decision("ok", &["a"]).agent("a").run();
    let mut say = |value: &str, comment: Option<&str>, route: Option<&str>| {
        let mut answer = run.say("ok", value);
        answer.comment = comment.map(str::to_owned);
        answer.route = route.map(Into::into);
        refused(&mut run, Input::Answer(answer))
    };
    assert_eq!(
        say("perhaps", None, None),
        "`perhaps` is no answer to `ok`; answers are: approved, changes, stop, abort"
    );
    assert_eq!(
        say("approved", Some("but rename it"), None),
        "an approval of `ok` with a comment may be a condition: confirm it, or ask for changes"
    );
    assert_eq!(say("changes", None, Some("nobody")), "`ok` has no route to `nobody`; routes are: ");
    run.answer("ok", "approved");
    assert_eq!(
        refused(&mut run, Input::Answer(run_answer("ok"))),
        "decision `ok` is not open: it is answered (`approved`)"
    );
}

fn run_answer(decision: &str) -> gatewright_core::input::Answer {
    gatewright_core::input::Answer {
        decision: decision.into(),
        value: "approved".to_owned(),
        comment: None,
        route: None,
        confirmed: false,
        channel: "terminal".to_owned(),
        seen: BTreeMap::new(),
    }
}

#[test]
fn what_changed_since_it_was_shown_is_named() {
    let mut run =
        draft().agent("a").writes("a.md").decision("ok", &["a"]).needs(&["a"]).show(&["a.md"]).run();
    run.ends("a", writing(reply(Outcome::Done), &[("a.md", "one")]));
    let mut late = run_answer("ok");
    late.seen = BTreeMap::from([("a.md".into(), hash("two"))]);
    assert_eq!(
        refused(&mut run, Input::Answer(late)),
        "what `ok` shows has changed since it was shown: a.md"
    );
    let mut seen = run_answer("ok");
    seen.seen = BTreeMap::from([("a.md".into(), hash("one"))]);
    run.feed(Input::Answer(seen));
    assert_eq!(run.state.decisions["ok"].status, DecisionStatus::Answered);
    let mut run = draft().decision("ok", &[]).show(&["tree"]).run();
    assert_eq!(refused(&mut run, Input::Answer(run_answer("ok"))), "`ok` has not been shown yet");
}

#[test]
fn giving_up_or_putting_off_a_question_needs_it_to_be_open() {
    let mut run = draft().decision("ok", &[]).agent("keep").run();
    let cancel = |reason: &str| Input::CancelDecision { decision: "ok".into(), reason: reason.to_owned() };
    assert_eq!(refused(&mut run, cancel(" ")), "a reason is needed");
    run.feed(cancel(" later "));
    assert_eq!(run.state.decisions["ok"].reason.as_deref(), Some("later"));
    assert_eq!(refused(&mut run, cancel("again")), "decision `ok` is not open: it is cancelled");
    let give_up = Input::GiveUpDecision { decision: "ok".into() };
    assert_eq!(refused(&mut run, give_up), "decision `ok` is not open: it is cancelled");
    let mut run = draft().agent("a").run();
    run.ends("a", questions(&["which?"]));
    run.feed(Input::GiveUpDecision { decision: "D-1".into() });
    assert_eq!(run.state.decisions["D-1"].reason.as_deref(), Some("no response provided"));
    let mut run = draft().decision("ok", &[]).run();
    run.feed(Input::GiveUpDecision { decision: "ok".into() });
    assert_eq!(run.state.decisions["ok"].reason.as_deref(), Some("no answer to `ok` could be understood"));
}

fn stages() -> common::Draft {
    draft()
        .stage_edit(|stage| stage.id = "plan".into())
        .agent("plan")
        .writes("plan.md")
        .stage("build")
        .agent("build")
        .needs(&["plan"])
        .gate("has-plan", Hardness::Hard, Condition::Artifact { step: "plan".into(), name: "plan.md".into() })
        .stage("look")
        .agent("look")
        .needs(&["build"])
        .gate("tested", Hardness::Hard, Condition::Check { step: "look".into(), check: "own".into() })
}

fn may_begin(run: &Bench, stage: &str) -> (bool, TransitionKind, Option<String>) {
    let found = transition::validate(&run.plan, &run.state, &stage.into()).expect("a stage");
    (found.allowed, found.kind, found.message)
}

#[test]
fn whether_a_stage_may_begin_is_said_with_the_reason() {
    let text = |text: &str| Some(text.to_owned());
    let mut run = stages().run();
    assert_eq!(may_begin(&run, "plan"), (true, TransitionKind::Proceed, None));
    assert_eq!(
        may_begin(&run, "build"),
        (
            false,
            TransitionKind::Blocked,
            text("`build` cannot begin: `plan.md` does not count yet: `plan` has not passed")
        )
    );
    // A gate that asks about the stage itself is no obstacle to its beginning.
    assert_eq!(may_begin(&run, "look"), (true, TransitionKind::Warning, text("skipping plan, build")));
    assert!(transition::validate(&run.plan, &run.state, &"nowhere".into()).is_none());
    assert_eq!(transition::next(&run.plan, &run.state).map(|stage| stage.id.as_str()), Some("plan"));
    assert!(transition::current(&run.plan, &run.state).is_none());
    let stage =
        |run: &Bench, id: &str| run.plan.graph(&run.state.profile).stage(&id.into()).cloned().unwrap();
    assert!(transition::is_partial(&run.state, &stage(&run, "plan")));
    assert!(!transition::is_partial(&run.state, &stage(&run, "build")));
    run.ends("plan", writing(reply(Outcome::Done), &[("plan.md", "text")]));
    assert!(!transition::is_partial(&run.state, &stage(&run, "plan")), "it is through");
    assert!(transition::is_through(&run.state, &stage(&run, "plan")));
    assert!(!transition::is_through(&run.state, &stage(&run, "build")));
    assert_eq!(
        may_begin(&run, "plan"),
        (true, TransitionKind::Warning, text("`plan` is complete: what rests on it would be void"))
    );
    assert_eq!(may_begin(&run, "build"), (true, TransitionKind::Proceed, None));
    assert_eq!(may_begin(&run, "look"), (true, TransitionKind::Warning, text("skipping build")));
    assert_eq!(transition::next(&run.plan, &run.state).map(|stage| stage.id.as_str()), Some("build"));
    assert_eq!(transition::current(&run.plan, &run.state).map(|stage| stage.id.as_str()), Some("plan"));
    run.skip("build");
    assert_eq!(
        transition::current(&run.plan, &run.state).map(|stage| stage.id.as_str()),
        Some("plan"),
        "what was left out as a whole is not reached"
    );
    run.feed(Input::Abort { reason: "enough".to_owned() });
    assert_eq!(
        may_begin(&run, "look"),
        (false, TransitionKind::Blocked, text("the run has ended: it is abandoned"))
    );
}

#[test]
fn a_stage_with_a_question_is_begun_and_one_that_only_helps_is_through() {
    let run =
        draft().decision("ok", &[]).stage("help").agent("fix").dormant().stage("last").agent("keep").run();
    let stage = |id: &str| run.plan.graph(&run.state.profile).stage(&id.into()).cloned().unwrap();
    assert!(transition::is_partial(&run.state, &stage("main")), "somebody is asked");
    assert!(transition::is_through(&run.state, &stage("help")));
    assert!(transition::current(&run.plan, &run.state).is_none(), "nothing of it has passed");
}

#[test]
fn a_stage_that_the_profile_leaves_out_cannot_begin() {
    let mut run = draft()
        .agent("a")
        .stage("extra")
        .stage_edit(|stage| stage.disabled = Some("lean".to_owned()))
        .agent("b")
        .stage("last")
        .agent("keep")
        .run();
    let message = "`extra` is not part of profile `first`: lean";
    assert_eq!(may_begin(&run, "extra"), (false, TransitionKind::Blocked, Some(message.to_owned())));
    for skipping in [None, Some("in a hurry".to_owned())] {
        assert_eq!(refused(&mut run, Input::RunUntil { stage: "extra".into(), skipping }), message);
    }
    assert_eq!(may_begin(&run, "last"), (true, TransitionKind::Warning, Some("skipping main".to_owned())));
    assert_eq!(transition::next(&run.plan, &run.state).map(|stage| stage.id.as_str()), Some("main"));
}

#[test]
fn who_goes_past_a_stage_needs_a_reason_and_gates_that_can_be_passed() {
    let until = |stage: &str, skipping: Option<&str>| Input::RunUntil {
        stage: stage.into(),
        skipping: skipping.map(str::to_owned),
    };
    let mut run = stages().run();
    assert_eq!(refused(&mut run, until("look", Some("  "))), "a reason is needed");
    assert_eq!(
        refused(&mut run, until("build", Some("in a hurry"))),
        "`build` cannot begin: `plan.md` does not count yet: `plan` has not passed"
    );
    run.feed(until("build", None));
    run.is("plan", "running");
    let events = run.feed(until("look", Some(" in a hurry ")));
    let Event::UntilSet { skipped, reason, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(reason, "in a hurry");
    assert_eq!(skipped.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["build", "plan"]);
    run.is("plan", "skipped");
    run.is("build", "skipped");
}

#[test]
fn going_on_up_to_a_stage_tries_again_what_is_blocked_and_not_left_out() {
    let mut run = draft()
        .agent("first")
        .attempts(1)
        .agent("done")
        .agent("helper")
        .dormant()
        .stage("second")
        .agent("second")
        .attempts(1)
        .stage("third")
        .agent("third")
        .run();
    run.dies("first", ProcessEnd::Exited { code: 1 });
    run.dies("second", ProcessEnd::Exited { code: 1 });
    run.done(&["done"]);
    let events = run.feed(Input::RunUntil { stage: "second".into(), skipping: Some("enough".to_owned()) });
    let Event::UntilSet { skipped, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(skipped.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["first"]);
    run.is("first", "skipped");
    run.is("helper", "dormant");
    run.is("second", "running");
}

#[test]
fn an_answer_about_an_edited_file_is_for_the_file_as_it_was_found() {
    let edited = || {
        let mut run = draft().agent("a").writes("a.md").agent("b").needs(&["a"]).run();
        run.ends("a", writing(reply(Outcome::Done), &[("a.md", "one")]));
        let (expected, found) = (hash("one"), hash("two"));
        let problem = InputProblem::Changed { name: "a.md".into(), expected, found };
        run.dies("b", ProcessEnd::NotStarted { problem });
        run
    };
    let says = |run: &Bench, seen: &str| {
        let words: Vec<String> =
            run.state.decisions["D-1"].decision.answers.iter().map(|answer| answer.word.clone()).collect();
        let mut answer = run.say("D-1", &words[0]);
        answer.seen = BTreeMap::from([("a.md".into(), hash(seen))]);
        Input::Answer(answer)
    };
    let mut run = edited();
    let late = says(&run, "three");
    assert_eq!(refused(&mut run, late), "what `D-1` shows has changed since it was shown: a.md");
    let mut run = edited();
    let good = says(&run, "two");
    run.feed(good);
    assert_eq!(run.state.decisions["D-1"].status, DecisionStatus::Answered);
}

#[test]
fn a_run_whose_files_cannot_be_written_is_blocked_until_somebody_resumes_it() {
    let unwritten = || Input::Unwritten { problem: "status.json: cannot write it".to_owned() };
    let mut run = draft().pool("run", 1).agent("a").agent("b").run();
    run.feed(unwritten());
    run.status(RunStatus::Blocked);
    let by = blocked_by(&run.plan, &run.state).expect("it says why");
    assert_eq!((by.reason.as_str(), by.message.as_str()), ("unwritten", "status.json: cannot write it"));
    assert!(run.feed(unwritten()).is_empty(), "it is said once");
    // What is at work may finish, and nothing new begins.
    run.done(&["a"]);
    run.is("b", "ready");
    run.crash();
    run.status(RunStatus::Blocked);
    run.resume();
    run.is("b", "running");
}
