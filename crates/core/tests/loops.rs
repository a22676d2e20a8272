//! Review loops, restarts, referrals: everything that goes round, and where it stops.

mod common;

use common::{Bench, Draft, answer, ask, draft, findings, hash, reply};
use gatewright_core::{
    event::{About, Cause, Event},
    fact::{AttemptReport, ProcessEnd},
    input::Input,
    outcome::Outcome,
    plan::{AnswerEffect, Exhaustion, FixRoute, Rereview, Rerun},
    state::{Phase, RunStatus},
    verdict::{Finding, Severity},
};

fn reviewed(rounds: u32) -> Draft {
    draft()
        .agent("write")
        .agent("build")
        .needs(&["write"])
        .review("look", &["write"])
        .needs(&["build"])
        .rounds(rounds)
}

#[test]
fn s0_32_a_demand_opens_a_loop_and_nothing_proceeds() {
    let mut run = reviewed(3).agent("next").needs(&["look"]).run();
    run.done(&["write", "build"]);
    run.revises("look");
    run.is("look", "fixing");
    run.is("next", "pending");
    run.wants("run write#2");
    assert!(run.why("look").contains("the fix by `write`"), "{}", run.why("look"));
}

#[test]
fn s0_33_fix_n_follows_review_n_and_review_n_plus_1_follows_fix_n() {
    let mut run = reviewed(3).run();
    run.done(&["write", "build"]);
    for round in 2..=3 {
        run.revises("look");
        assert_eq!(run.state.steps["look"].round, round);
        assert!(
            matches!(run.state.steps["write"].cause.as_deref(), Some(Cause::Fix { review, .. }) if review.as_str() == "look")
        );
        run.done(&["write"]);
        // Everything between the fix and the review runs again too.
        run.wants(&format!("run build#{round}"));
        run.done(&["build"]);
        run.wants(&format!("run look#{round}"));
    }
    run.done(&["look"]);
    run.status(RunStatus::Done);
}

#[test]
fn j_11_and_s2_14_a_loop_stops_at_its_limit_also_across_crashes() {
    let mut run = reviewed(3).run();
    for round in 1..=3 {
        run.done(&["write", "build"]);
        run.crash();
        assert_eq!(run.state.steps["look"].round, round);
        run.revises("look");
        run.crash();
    }
    assert_eq!(run.blocked("look"), "rounds_exhausted");
    assert_eq!(run.count("step.judged"), 3);
    assert!(run.why("look").contains("1 blocking finding(s) remain after 3 round(s)"));
}

#[test]
fn j_11_two_reviews_with_a_common_fixer_do_not_reset_each_other_for_ever() {
    let mut run = draft()
        .agent("write")
        .review("one", &["write"])
        .needs(&["write"])
        .rounds(3)
        .review("two", &["write"])
        .needs(&["write"])
        .rounds(3)
        .run();
    let mut judged = 0;
    while run.state.status() == RunStatus::Running {
        run.done(&["write"]);
        // They take turns in being content.
        let (content, other) = if judged % 2 == 0 { ("one", "two") } else { ("two", "one") };
        run.done(&[content]);
        run.revises(other);
        judged += 1;
        assert!(judged <= 6, "endless");
    }
    run.status(RunStatus::Blocked);
}

#[test]
fn s1_57_three_repairs_are_four_rounds() {
    let mut run = reviewed(4).run();
    run.done(&["write", "build"]);
    for _ in 0..3 {
        run.revises("look");
        run.done(&["write", "build"]);
    }
    run.revises("look");
    assert_eq!(run.blocked("look"), "rounds_exhausted");
    assert_eq!(run.state.steps["write"].attempts, 4, "the work and three repairs");
}

#[test]
fn s0_41_and_s1_58_exhaustion_asks_and_acceptance_is_a_note() {
    let ways = vec![ask(&[
        ("accept", AnswerEffect::Accept),
        ("again", AnswerEffect::Again),
        ("abort", AnswerEffect::Abort),
    ])];
    let mut run = reviewed(1).on_exhausted(ways).run();
    run.done(&["write", "build"]);
    run.revises("look");
    run.wants("ask D-1");
    assert!(
        run.state.decisions["D-1"]
            .decision
            .question
            .contains("1 blocking finding(s) remain after 1 round(s)")
    );
    run.answer("D-1", "again");
    // Exactly one more.
    run.done(&["write", "build"]);
    run.revises("look");
    run.wants("ask D-2");
    run.answer("D-2", "accept");
    let Phase::Passed { notes } = &run.state.steps["look"].phase else { panic!("not passed") };
    assert_eq!(*notes, ["[high] problem", "accepted by a person: D-2: accept"], "what is accepted is named");
    run.status(RunStatus::Done);
}

#[test]
fn s1_58_a_person_who_accepts_a_broken_step_leaves_on_record_why_it_failed() {
    let ways = vec![ask(&[("accept", AnswerEffect::Accept)])];
    let mut run = draft().agent("build").attempts(1).on_exhausted(ways).run();
    run.dies("build", ProcessEnd::Exited { code: 3 });
    run.wants("ask D-1");
    run.answer("D-1", "accept");
    let Phase::Passed { notes } = &run.state.steps["build"].phase else { panic!("not passed") };
    assert!(notes[0].starts_with("failed (crash): "), "{notes:?}");
    assert_eq!(notes[1], "accepted by a person: D-1: accept");
}

fn noted(ask_at: Severity) -> Bench {
    let answers = vec![
        answer("fix", &[], AnswerEffect::Again),
        answer("keep", &[], AnswerEffect::Pass),
        answer("accept", &[], AnswerEffect::Accept),
    ];
    reviewed(2)
        .review_edit(|review| {
            review.block_at = Severity::High;
            review.ask_at = Some(ask_at);
            review.on_notes = answers;
        })
        .run()
}

fn finds(run: &mut Bench, outcome: Outcome, found: &[(Severity, &str)]) {
    let mut report = reply(outcome);
    if let Some(reply) = &mut report.reply {
        reply.findings = found.iter().map(|(severity, problem)| Finding::new(*severity, *problem)).collect();
    }
    run.ends("look", report);
}

#[test]
fn s1_74_notes_at_or_above_the_bar_are_asked_about_and_can_be_mended() {
    let mut run = noted(Severity::Medium);
    run.done(&["write", "build"]);
    finds(&mut run, Outcome::Passed, &[(Severity::Medium, "slow"), (Severity::Low, "a typo")]);
    run.wants("ask D-1");
    let question = &run.state.decisions["D-1"].decision.question;
    assert!(question.contains("1. [medium] slow") && question.contains("2. [low] a typo"), "{question}");
    run.crash();
    run.answer("D-1", "fix: only the first");
    let demands: Vec<&str> = match run.state.steps["write"].cause.as_deref() {
        Some(Cause::Fix { findings, .. }) => findings.iter().map(|one| one.problem.as_str()).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(demands, ["slow", "only the first"], "what was asked about, and what the person said");
    run.done(&["write", "build"]);
    finds(&mut run, Outcome::Passed, &[(Severity::Low, "a typo")]);
    assert!(matches!(&run.state.steps["look"].phase, Phase::Passed { notes } if notes == &["[low] a typo"]));
    run.status(RunStatus::Done);
}

#[test]
fn notes_that_a_person_keeps_stay_on_record() {
    let mut run = noted(Severity::Note);
    run.done(&["write", "build"]);
    finds(&mut run, Outcome::Passed, &[(Severity::Note, "a name")]);
    run.answer("D-1", "keep");
    assert!(matches!(&run.state.steps["look"].phase, Phase::Passed { notes } if notes == &["[note] a name"]));
    assert!(run.state.waivers.is_empty(), "nothing was let pass that should not");
}

#[test]
fn s1_52_a_reviewer_that_leaves_it_to_a_person_is_asked_about_without_a_second_review() {
    let mut run = noted(Severity::Medium);
    run.done(&["write", "build"]);
    finds(&mut run, Outcome::NeedsInput, &[(Severity::Low, "a weak hash")]);
    run.wants("ask D-1");
    assert_eq!(run.state.decisions["D-1"].decision.about, About::Notes);
    run.answer("D-1", "accept");
    assert_eq!(run.state.steps["look"].attempts, 1);
    assert_eq!(run.state.waivers.len(), 1, "an accepted risk is on record");
    run.status(RunStatus::Done);
}

#[test]
fn j_46_a_fresh_set_of_attempts_is_not_another_round() {
    let ways = vec![ask(&[("again", AnswerEffect::Again)])];
    let mut run = reviewed(1).edit(|step| step.retry.on_exhausted = ways).attempts(1).run();
    run.done(&["write", "build"]);
    run.dies("look", ProcessEnd::Exited { code: 1 });
    run.answer("D-1", "again");
    run.revises("look");
    assert_eq!(run.blocked("look"), "rounds_exhausted");
}

#[test]
fn s2_13_an_exhausted_loop_may_complete_with_notes() {
    let mut run = reviewed(2).on_exhausted(vec![Exhaustion::CompleteWithNotes]).run();
    run.done(&["write", "build"]);
    run.revises("look");
    run.done(&["write", "build"]);
    run.revises("look");
    assert!(matches!(&run.state.steps["look"].phase, Phase::Passed { notes } if !notes.is_empty()));
    run.status(RunStatus::Done);
}

fn panel(rereview: Rereview, final_pass: bool) -> Bench {
    draft()
        .agent("write")
        .agent("fix")
        .dormant()
        .panel("look", &["fix"], &["perf", "sec"])
        .needs(&["write"])
        .review_edit(|review| {
            review.rerun = Rerun::Listed;
            review.rereview = rereview;
            review.final_pass = final_pass;
        })
        .agent("next")
        .needs(&["look"])
        .run()
}

#[test]
fn j_10_one_of_a_pair_fails_only_the_fix_step_runs_then_both_look_again() {
    let mut run = panel(Rereview::All, false);
    run.done(&["write"]);
    run.wants("run look/perf#1, run look/sec#1");
    run.done(&["look/perf"]);
    run.revises("look/sec");
    run.wants("run fix#1");
    assert_eq!(run.state.steps["write"].attempts, 1);
    run.done(&["fix"]);
    run.wants("run look/perf#2, run look/sec#2");
    run.done(&["look/perf", "look/sec"]);
    run.wants("run next#1");
}

#[test]
fn j_10_or_the_failed_only_and_a_last_look_by_all() {
    let mut run = panel(Rereview::Failed, true);
    run.done(&["write", "look/perf"]);
    run.revises("look/sec");
    run.done(&["fix"]);
    run.wants("run look/sec#2");
    run.done(&["look/sec"]);
    // The last look is a round like any other.
    run.wants("run look/perf#2, run look/sec#3");
    assert_eq!(run.state.steps["look"].round, 3);
    run.done(&["look/perf"]);
    run.revises("look/sec");
    assert_eq!(run.blocked("look"), "rounds_exhausted");
}

#[test]
fn s0_53_a_panel_member_that_breaks_blocks_the_panel_and_resume_brings_it_back() {
    let mut run = panel(Rereview::All, false);
    run.done(&["write", "look/perf"]);
    run.ends("look/sec", reply(Outcome::Error));
    assert_eq!(run.blocked("look"), "items_failed");
    run.is("next", "pending");
    run.resume();
    run.wants("run look/sec#2");
    run.done(&["look/sec"]);
    run.wants("run next#1");
}

#[test]
fn s0_42_and_s0_29_findings_go_to_the_fixer_of_their_route() {
    let mut run = draft()
        .agent("write")
        .agent("qa")
        .dormant()
        .agent("dev")
        .dormant()
        .agent("refactorer")
        .dormant()
        .review("look", &[])
        .needs(&["write"])
        .review_edit(|review| {
            review.rerun = Rerun::Listed;
            review.fix = vec![
                FixRoute { route: Some("tests".to_owned()), steps: vec!["qa".into(), "dev".into()] },
                FixRoute { route: None, steps: vec!["refactorer".into()] },
            ];
        })
        .run();
    run.done(&["write"]);
    let mut report = findings(Outcome::Failed, &[Severity::High]);
    report.reply.as_mut().unwrap().findings[0].route = Some("tests".to_owned());
    run.ends("look", report);
    // Listed fixers run one after the other.
    run.wants("run qa#1");
    run.done(&["qa"]);
    run.wants("run dev#1");
    run.done(&["dev"]);
    run.wants("run look#2");
    run.is("refactorer", "dormant");
}

#[test]
fn s0_36_a_fixer_sees_only_blocking_findings() {
    let mut run = reviewed(3).run();
    run.done(&["write", "build"]);
    run.ends("look", findings(Outcome::Failed, &[Severity::High, Severity::Note]));
    let Some(Cause::Fix { findings, .. }) = run.state.steps["write"].cause.as_deref() else {
        panic!("no fix")
    };
    assert_eq!(findings.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::High]);
}

#[test]
fn j_10_a_fixer_that_two_reviews_share_finishes_for_one_before_it_serves_the_other() {
    let fixed_by = |draft: Draft| draft.needs(&["write"]).review_edit(|review| review.rerun = Rerun::Listed);
    let plan = draft().agent("write").agent("fix").dormant();
    let plan = fixed_by(plan.review("one", &["fix"]));
    let mut run = fixed_by(plan.review("two", &["fix"])).run();
    run.done(&["write"]);
    run.revises("one");
    run.revises("two");
    run.wants("run fix#1");
    run.done(&["fix"]);
    // The second demand is worked on by an attempt of its own.
    run.wants("run fix#2, run one#2");
    run.done(&["fix", "one", "two"]);
    run.status(RunStatus::Done);
}

#[test]
fn s4_20_a_hard_stop_asks_whatever_the_severities() {
    let mut run = reviewed(3).review_edit(|review| review.hard_stop_on_blocked = true).run();
    run.done(&["write", "build"]);
    run.ends("look", findings(Outcome::Blocked, &[Severity::Note]));
    run.wants("ask D-1");
    run.is("look", "waiting");
    run.answer("D-1", "abort");
    run.status(RunStatus::Abandoned);
}

#[test]
fn j_23_a_referral_that_comes_back_without_improvement_is_asked_about() {
    let mut run = draft()
        .agent("design")
        .agent("code")
        .needs(&["design"])
        .edit(|step| step.back = vec!["design".into()])
        .run();
    let back = |work: &str| {
        let mut report = AttemptReport { work: Some(hash(work)), ..reply(Outcome::Done) };
        report.reply.as_mut().unwrap().back_to = Some("design".into());
        report
    };
    run.done(&["design"]);
    run.ends("code", back("one"));
    run.wants("run design#2");
    run.done(&["design"]);
    run.ends("code", back("one"));
    run.wants("ask D-1");
    run.answer("D-1", "again");
    run.ends("code", back("two"));
    run.wants("run design#3");
    run.done(&["design"]);
    // A person's word allowed one more, not many.
    run.ends("code", back("three"));
    run.done(&["design"]);
    run.ends("code", back("four"));
    run.wants("ask D-2");
    run.answer("D-2", "block");
    assert_eq!(run.blocked("code"), "answered_block");
    // And whoever says no has allowed nothing.
    run.resume();
    run.ends("code", back("five"));
    run.wants("ask D-3");
}

#[test]
fn j_23_a_referral_survives_a_crash_at_every_point() {
    for keep in 1..=5 {
        let mut run = draft()
            .agent("design")
            .agent("code")
            .needs(&["design"])
            .edit(|step| step.back = vec!["design".into()])
            .run();
        run.done(&["design"]);
        let before = run.log.len();
        let mut report = AttemptReport { work: Some(hash("w")), ..reply(Outcome::Done) };
        report.reply.as_mut().unwrap().back_to = Some("design".into());
        run.ends("code", report);
        run.crash_keeping((before + keep).min(run.log.len()));
        run.wants("run design#2");
        run.is("code", "pending");
        assert_eq!(run.count("step.referred_back"), 1);
    }
}

#[test]
fn j_23_a_review_that_repeats_itself_is_asked_about() {
    let mut run = reviewed(10).review_edit(|review| review.stalled_after = Some(2)).run();
    run.done(&["write", "build"]);
    run.revises("look");
    run.done(&["write", "build"]);
    run.revises("look");
    run.wants("ask D-1");
}

fn staged() -> Draft {
    draft()
        .agent("plan")
        .stage("implement")
        .agent("code")
        .writes("code.md")
        .needs(&["plan"])
        .agent("fix")
        .dormant()
        .review("look", &["fix"])
        .needs(&["code"])
        .rounds(2)
        .review_edit(|review| review.rerun = Rerun::Listed)
        .on_exhausted(vec![
            Exhaustion::RestartStage { stage: "implement".into() },
            ask(&[("force", AnswerEffect::Accept), ("abort", AnswerEffect::Abort)]),
        ])
        .stage("test")
        .agent("test")
        .needs(&["look"])
}

fn exhaust(run: &mut Bench) {
    run.ends("code", common::writing(reply(Outcome::Done), &[("code.md", "c")]));
    run.revises("look");
    run.done(&["fix"]);
    run.revises("look");
}

#[test]
fn j_30_and_s4_25_a_restart_resets_the_loop_state_and_keeps_what_was_before() {
    let mut run = staged().run();
    run.done(&["plan"]);
    exhaust(&mut run);
    run.wants("run code#2");
    assert_eq!(run.state.steps["look"].round, 1);
    assert_eq!(run.state.steps["look"].visit, 2);
    run.is("fix", "dormant");
    run.is("plan", "passed");
    assert!(run.state.artifacts.is_empty(), "unpublished");
    assert_eq!(run.count("step.judged"), 2, "the history stays");
}

#[test]
fn s4_26_restarts_are_limited_exactly() {
    let mut run = staged().run();
    run.done(&["plan"]);
    for restart in 1..=3 {
        exhaust(&mut run);
        assert_eq!(run.state.restarts["implement"], restart);
    }
    exhaust(&mut run);
    run.wants("ask D-1");
    assert_eq!(run.count("stage.restarted"), 3);
    run.answer("D-1", "force");
    run.wants("run test#1");
}

#[test]
fn s4_23_the_first_way_that_applies_is_taken_a_disabled_stage_does_not() {
    let restart = |stage: &str| Exhaustion::RestartStage { stage: stage.into() };
    let plan = |off: bool| {
        draft()
            .stage("implement")
            .agent("code")
            .stage("test")
            .stage_edit(|stage| stage.disabled = off.then(|| "switched off".to_owned()))
            .agent("test")
            .needs(&["code"])
            .stage("final")
            .review("look", &[])
            // The resolver links past a disabled stage.
            .needs(if off { &["test", "code"] } else { &["test"] })
            .rounds(1)
            .on_exhausted(vec![restart("test"), restart("implement")])
    };
    let mut run = plan(false).run();
    run.done(&["code", "test"]);
    run.revises("look");
    run.wants("run test#2");
    let mut run = plan(true).run();
    run.done(&["code"]);
    run.revises("look");
    run.wants("run code#2");
    run.done(&["code"]);
    run.is("test", "skipped");
    run.wants("run look#2");
}

#[test]
fn s4_27_a_restart_of_an_earlier_stage_clears_the_current_one_too() {
    let mut run = staged().run();
    run.done(&["plan", "code", "look"]);
    run.wants("run test#1");
    run.feed(Input::RestartStage { stage: "implement".into(), reason: "logic error".to_owned() });
    run.wants("stop test#1, run code#2");
    run.is("test", "pending");
    run.is("look", "pending");
    run.is("plan", "passed");
}

#[test]
fn s4_24_a_restart_by_an_answer_always_moves_the_one_that_asked() {
    let ways = vec![ask(&[("restart", AnswerEffect::Restart { stage: "other".into() })])];
    let mut run = draft().agent("a").attempts(1).on_exhausted(ways).stage("other").agent("b").run();
    run.dies("a", ProcessEnd::Exited { code: 1 });
    run.answer("D-1", "restart");
    run.wants("stop b#1, run a#2, run b#2");
}

#[test]
fn j_31_and_s4_28_a_disabled_stage_is_skipped_on_record_and_relinked() {
    let run = draft()
        .stage("implement")
        .agent("code")
        .stage("test")
        .stage_edit(|stage| stage.disabled = Some("--no-test".to_owned()))
        .agent("test")
        .needs(&["code"])
        .agent("test-review")
        .needs(&["test"])
        .stage("final")
        .agent("ship")
        .needs(&["test-review", "code"])
        .run();
    run.is("test", "skipped");
    run.is("test-review", "skipped");
    assert!(run.why("test").contains("--no-test"));
    run.wants("run code#1");
    run.is("ship", "pending");
}

#[test]
fn s4_29_a_restart_does_not_wake_a_disabled_stage() {
    let mut run = draft()
        .stage("implement")
        .agent("code")
        .stage("test")
        .stage_edit(|stage| stage.disabled = Some("off".to_owned()))
        .agent("test")
        .needs(&["code"])
        .run();
    run.feed(Input::RestartStage { stage: "implement".into(), reason: "again".to_owned() });
    run.done(&["code"]);
    run.is("test", "skipped");
    run.status(RunStatus::Done);
}

#[test]
fn s4_04_every_step_is_passed_or_skipped_with_a_reason_before_the_end() {
    let mut run = draft().agent("a").agent("b").run();
    run.done(&["a"]);
    run.status(RunStatus::Running);
    run.skip("b");
    run.status(RunStatus::Done);
    assert_eq!(run.state.waivers[0].step.as_str(), "b");
    run.wants("stop b#1");
}

#[test]
fn j_23_findings_of_two_rounds_are_compared_by_place_and_words() {
    let mut run = reviewed(10).review_edit(|review| review.stalled_after = Some(2)).run();
    for (place, asks) in [("a.rs:1", false), ("b.rs:1", false), ("b.rs:1", true)] {
        run.done(&["write", "build"]);
        let mut report = findings(Outcome::Failed, &[]);
        let mut finding = Finding::new(Severity::High, "same words");
        finding.location = Some(place.to_owned());
        report.reply.as_mut().unwrap().findings = vec![finding];
        let events = run.ends("look", report);
        assert_eq!(events.iter().any(|event| matches!(event, Event::DecisionOpened { .. })), asks);
    }
}

#[test]
fn j_23_a_review_is_asked_about_after_as_many_equal_rounds_in_a_row_as_the_plan_says() {
    let asked_in = |rounds: &[&str]| {
        let mut run = reviewed(10).review_edit(|review| review.stalled_after = Some(3)).run();
        for (place, problem) in rounds.iter().enumerate() {
            run.done(&["write", "build"]);
            let mut report = findings(Outcome::Failed, &[]);
            report.reply.as_mut().unwrap().findings = vec![Finding::new(Severity::High, *problem)];
            run.ends("look", report);
            if run.state.status() == RunStatus::Waiting {
                return Some(place + 1);
            }
        }
        None
    };
    assert_eq!(asked_in(&["slow"; 5]), Some(3));
    assert_eq!(asked_in(&["slow", "slow", "wrong", "slow", "slow"]), None);
    assert_eq!(asked_in(&["slow", "wrong", "wrong", "wrong"]), Some(4));
}

#[test]
fn j_30_what_is_sent_round_goes_on_counting_and_what_rests_on_it_starts_from_one() {
    let counts = |run: &Bench, step: &str| (run.state.steps[step].visit, run.state.steps[step].round);
    let plan = || reviewed(3).decision("ok", &["write"]).needs(&["look"]).run();
    let mut run = plan();
    run.done(&["write", "build"]);
    run.revises("look");
    run.done(&["write", "build"]);
    // The review holds the second round over the work of a second round.
    assert_eq!(
        (counts(&run, "write"), counts(&run, "build"), counts(&run, "look")),
        ((1, 2), (2, 1), (1, 2))
    );
    run.done(&["look"]);
    run.answer("ok", "changes");
    assert_eq!(
        (counts(&run, "write"), counts(&run, "build"), counts(&run, "look")),
        ((1, 3), (3, 1), (2, 1))
    );
}

#[test]
fn s4_25_a_restart_keeps_what_was_published_before_the_stage_and_counts_referrals_anew() {
    let referring = |work: &str| {
        let mut report = AttemptReport { work: Some(hash(work)), ..reply(Outcome::Done) };
        report.reply.as_mut().unwrap().back_to = Some("design".into());
        report
    };
    let mut run = draft()
        .agent("plan")
        .writes("plan.md")
        .stage("build")
        .agent("design")
        .needs(&["plan"])
        .writes("design.md")
        .agent("code")
        .needs(&["design"])
        .edit(|step| step.back = vec!["design".into()])
        .run();
    run.ends("plan", common::writing(reply(Outcome::Done), &[("plan.md", "one")]));
    run.ends("design", common::writing(reply(Outcome::Done), &[("design.md", "one")]));
    run.ends("code", referring("same"));
    run.ends("design", common::writing(reply(Outcome::Done), &[("design.md", "two")]));
    run.feed(Input::RestartStage { stage: "build".into(), reason: "again".to_owned() });
    let published: Vec<&str> = run.state.artifacts.keys().map(|name| name.as_str()).collect();
    assert_eq!(published, ["plan.md"]);
    run.done(&["design"]);
    run.ends("code", referring("same"));
    assert!(run.state.decisions.is_empty(), "it is the first time in this visit");
    run.is("design", "running");
    // A restart of what comes later forgets nothing of it.
    let mut run = draft()
        .agent("design")
        .agent("code")
        .needs(&["design"])
        .edit(|step| step.back = vec!["design".into()])
        .stage("later")
        .agent("end")
        .run();
    run.done(&["design"]);
    run.ends("code", referring("same"));
    run.feed(Input::RestartStage { stage: "later".into(), reason: "again".to_owned() });
    run.done(&["design"]);
    run.ends("code", referring("same"));
    assert_eq!(run.state.decisions.len(), 1, "it comes back without improvement");
}
