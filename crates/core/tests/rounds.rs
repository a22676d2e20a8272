//! Rounds of reviews and what runs again: who mends what, what is told at the end, and what stays as it is.

mod common;

use common::{Bench, Draft, ask, draft, reply};
use gatewright_core::{
    event::{Cause, Event},
    outcome::Outcome,
    plan::{AnswerEffect, FixRoute, Rereview, Rerun},
    state::{Phase, RunStatus},
    verdict::{Finding, Severity},
};

fn demands(run: &mut Bench, review: &str, problems: &[(&str, Option<&str>)]) {
    let mut report = reply(Outcome::Failed);
    if let Some(reply) = &mut report.reply {
        let finding = |(problem, route): &(&str, Option<&str>)| Finding {
            route: route.map(str::to_owned),
            ..Finding::new(Severity::High, *problem)
        };
        reply.findings = problems.iter().map(finding).collect();
    }
    run.ends(review, report);
}

fn says(run: &mut Bench, step: &str, summary: &str) {
    let mut report = reply(Outcome::Done);
    if let Some(reply) = &mut report.reply {
        summary.clone_into(&mut reply.summary);
    }
    run.ends(step, report);
}

fn reviewed(rounds: u32) -> Draft {
    draft().agent("write").review("look", &["write"]).needs(&["write"]).rounds(rounds)
}

fn blocked_because(run: &Bench, step: &str) -> String {
    match &run.state.steps[step].phase {
        Phase::Blocked { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_has_to_decide_at_the_end_of_a_loop_is_told_what_is_left_and_what_was_tried() {
    let mut run = reviewed(1).run();
    says(&mut run, "write", "wrote it");
    demands(&mut run, "look", &[("slow", None), ("two\nlines", None)]);
    assert_eq!(
        blocked_because(&run, "look"),
        "2 blocking finding(s) remain after 1 round(s): slow; two lines",
        "nobody has tried to mend anything"
    );

    let mut run = reviewed(2).run();
    says(&mut run, "write", "wrote it");
    demands(&mut run, "look", &[("slow", None)]);
    says(&mut run, "write", "made it\nfaster");
    let many = ["1", "2", "3", "4", "5", "6", "7"].map(|problem| (problem, None));
    demands(&mut run, "look", &many);
    assert_eq!(
        blocked_because(&run, "look"),
        "7 blocking finding(s) remain after 2 round(s): 1; 2; 3; 4; 5; and 2 more; `write` said: made it faster"
    );

    let mut run = reviewed(2).run();
    says(&mut run, "write", "wrote it");
    demands(&mut run, "look", &[]);
    says(&mut run, "write", "");
    demands(&mut run, "look", &[]);
    assert_eq!(
        blocked_because(&run, "look"),
        "the reviewer still demands work after 2 round(s), without naming any"
    );
}

#[test]
fn the_end_of_a_loop_is_recorded_once() {
    let ended = |run: &Bench| {
        let of = |(_, event): &(_, Event)| match event {
            Event::LoopExhausted { review, rounds, .. } => Some((review.as_str().to_owned(), *rounds)),
            _ => None,
        };
        run.log.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mut run = reviewed(1).on_exhausted(vec![ask(&[("again", AnswerEffect::Again)])]).run();
    run.done(&["write"]);
    run.revises("look");
    assert_eq!(ended(&run), [("look".to_owned(), 1)]);
    run.answer("D-1", "again");
    run.done(&["write"]);
    run.revises("look");
    assert_eq!(ended(&run), [("look".to_owned(), 1), ("look".to_owned(), 2)]);
}

fn routed(fix: Vec<(Option<&str>, &str)>) -> Bench {
    let routes = fix
        .into_iter()
        .map(|(route, step)| FixRoute { route: route.map(str::to_owned), steps: vec![step.into()] })
        .collect();
    draft()
        .agent("code")
        .dormant()
        .agent("docs")
        .dormant()
        .agent("rest")
        .dormant()
        .review("look", &[])
        .review_edit(|review| {
            review.fix = routes;
            review.rerun = Rerun::Between;
        })
        .run()
}

#[test]
fn a_finding_goes_to_those_of_its_route_and_one_without_a_known_route_to_the_rest() {
    let with_rest = || routed(vec![(Some("code"), "code"), (Some("docs"), "docs"), (None, "rest")]);
    let without = || routed(vec![(Some("code"), "code"), (Some("docs"), "docs")]);
    let sent = |mut run: Bench, findings: &[(&str, Option<&str>)]| {
        demands(&mut run, "look", findings);
        let begun = ["code", "docs", "rest"];
        begun.into_iter().filter(|step| run.state.steps[*step].attempts > 0).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sent(with_rest(), &[("a", Some("docs"))]), "docs");
    assert_eq!(sent(with_rest(), &[("a", Some("docs")), ("b", Some("code"))]), "code docs");
    assert_eq!(sent(with_rest(), &[("a", Some("docs")), ("b", None)]), "docs rest");
    assert_eq!(sent(with_rest(), &[("a", Some("unknown"))]), "rest");
    assert_eq!(sent(with_rest(), &[]), "rest");
    assert_eq!(sent(without(), &[("a", Some("docs"))]), "docs");
    assert_eq!(sent(without(), &[("a", None)]), "code docs", "nobody is there for the rest: everybody is");
    assert_eq!(sent(without(), &[("a", Some("unknown"))]), "code docs");
}

#[test]
fn a_last_look_by_all_needs_a_round_of_its_own() {
    let panel = |rounds| {
        draft()
            .agent("fix")
            .dormant()
            .panel("look", &["fix"], &["perf", "sec"])
            .rounds(rounds)
            .review_edit(|review| {
                review.rereview = Rereview::Failed;
                review.final_pass = true;
            })
            .run()
    };
    let until_content = |run: &mut Bench| {
        run.done(&["look/perf"]);
        run.revises("look/sec");
        run.done(&["fix", "look/sec"]);
    };
    let mut run = panel(2);
    until_content(&mut run);
    assert_eq!(run.blocked("look"), "rounds_exhausted");
    assert_eq!(blocked_because(&run, "look"), "no round is left for a last look by all reviewers");
    let mut run = panel(3);
    until_content(&mut run);
    run.wants("run look/perf#2, run look/sec#3");
    // Whoever is not content is heard first.
    let mut run = panel(3);
    run.done(&["look/perf"]);
    run.revises("look/sec");
    run.done(&["fix"]);
    run.revises("look/sec");
    run.wants("run fix#2");
}

#[test]
fn what_runs_again_makes_void_what_rested_on_it_and_nothing_else() {
    let mut run = draft()
        .agent("a")
        .agent("beside")
        .agent("b")
        .needs(&["a"])
        .decision("ok", &["a"])
        .needs(&["b"])
        .agent("later")
        .needs(&["ok"])
        .run();
    run.done(&["a", "beside", "b"]);
    run.answer("ok", "changes");
    let void: Vec<(Vec<&str>, bool)> = run
        .log
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Invalidated { steps, cause } => {
                Some((steps.iter().map(|id| id.as_str()).collect(), matches!(cause, Cause::Upstream { .. })))
            }
            _ => None,
        })
        .collect();
    assert_eq!(void, [(vec!["b", "ok"], true), (vec!["a"], false)], "what had not begun is not made void");
    assert_eq!(run.state.steps["later"].visit, 1);
    assert_eq!(run.state.steps["beside"].attempts, 1);
}

#[test]
fn a_loop_that_runs_the_listed_steps_leaves_what_is_on_the_way_as_it_is() {
    let plan = |rerun| {
        draft()
            .agent("write")
            .agent("build")
            .needs(&["write"])
            .review("look", &["write"])
            .needs(&["build"])
            .review_edit(|review| review.rerun = rerun)
            .agent("side")
            .needs(&["write"])
            .run()
    };
    let mut run = plan(Rerun::Listed);
    run.done(&["write", "build", "side"]);
    run.revises("look");
    run.done(&["write"]);
    run.wants("run look#2, run side#2");
    assert_eq!(run.state.steps["build"].attempts, 1);
    let mut run = plan(Rerun::Between);
    run.done(&["write", "build", "side"]);
    run.revises("look");
    run.done(&["write"]);
    run.wants("run build#2, run side#2");
}

#[test]
fn a_review_whose_fixer_works_for_another_that_waits_for_a_person_waits_too() {
    let mut run = draft().agent("fix").dormant().review("one", &["fix"]).review("two", &["fix"]).run();
    run.revises("one");
    run.wants("run fix#1, run two#1");
    run.revises("two");
    run.status(RunStatus::Running);
    run.ends("fix", common::questions(&["which?"]));
    run.status(RunStatus::Waiting);
    run.answer("D-1", "the first");
    run.status(RunStatus::Running);
    run.done(&["fix"]);
    run.wants("run fix#3, run one#2");
}

#[test]
fn a_review_looks_again_only_when_all_its_fixers_are_through() {
    let mut run =
        draft().agent("code").dormant().agent("docs").dormant().review("look", &["code", "docs"]).run();
    run.revises("look");
    run.wants("run code#1, run docs#1");
    run.done(&["code"]);
    run.wants("run docs#1");
    run.done(&["docs"]);
    run.wants("run look#2");
}
