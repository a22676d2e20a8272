//! What a run remembers of what was said: of judged work, of red tests, of conversations, of questions put once.

mod common;

use std::collections::BTreeMap;

use common::{Bench, checked, draft, hash, reply};
use gatewright_core::{
    fact::{Conversation, News, TestCounts},
    input::Input,
    outcome::Outcome,
    plan::{FixRoute, Rerun},
    state::{DecisionStatus, RunStatus},
    verdict::{Finding, Severity},
};

fn says(run: &mut Bench, step: &str, summary: &str) {
    let mut report = reply(Outcome::Done);
    if let Some(reply) = &mut report.reply {
        summary.clone_into(&mut reply.summary);
    }
    run.ends(step, report);
}

fn demands(run: &mut Bench, review: &str, route: &str) {
    let mut report = reply(Outcome::Failed);
    if let Some(reply) = &mut report.reply {
        let finding = Finding { route: Some(route.to_owned()), ..Finding::new(Severity::High, "slow") };
        reply.findings = vec![finding];
    }
    run.ends(review, report);
}

/// What had been said of the work at each judgement.
fn work_at_judgements(run: &Bench, review: &str) -> Vec<Vec<String>> {
    let looped = run.state.steps[review].review.as_ref().expect("a review");
    looped.history.iter().map(|judged| judged.work.clone()).collect()
}

#[test]
fn a_judgement_remembers_what_was_said_of_the_work_it_judged() {
    let routes =
        ["code", "docs"].map(|step| FixRoute { route: Some(step.to_owned()), steps: vec![step.into()] });
    let mut run = draft()
        .agent("code")
        .agent("docs")
        .agent("tests")
        .review("look", &[])
        .needs(&["code", "docs", "tests"])
        .rounds(4)
        .review_edit(|review| {
            review.of = ["code", "docs", "tests"].map(Into::into).to_vec();
            review.fix = routes.to_vec();
            review.rerun = Rerun::Listed;
        })
        .run();
    says(&mut run, "code", "wrote it");
    says(&mut run, "docs", "wrote it");
    says(&mut run, "tests", "");
    demands(&mut run, "look", "docs");
    says(&mut run, "docs", "said more");
    demands(&mut run, "look", "code");
    says(&mut run, "code", "");
    run.done(&["look"]);
    assert_eq!(
        work_at_judgements(&run, "look"),
        [vec!["wrote it".to_owned()], vec!["said more".to_owned()], Vec::new()],
        "at first of all that is judged, each word once; then of those who mended in this round"
    );
}

#[test]
fn tests_are_red_when_one_ran_and_failed() {
    let counts = |failed, broken| TestCounts { run: 3, failed, skipped: 0, broken };
    assert!(counts(1, 0).is_red() && counts(2, 1).is_red());
    assert!(!counts(0, 0).is_red() && !counts(2, 2).is_red(), "what does not load did not run");
}

#[test]
fn a_conversation_is_recorded_when_it_begins_and_again_only_if_it_is_another_one() {
    let mut run = draft().agent("a").run();
    let begun = |agent: &str, session: &str| Input::Underway {
        step: "a".into(),
        attempt: 1,
        news: News::Conversed {
            conversation: Conversation { agent: agent.to_owned(), session: session.to_owned() },
        },
    };
    let known =
        |run: &Bench| run.state.steps["a"].conversation.as_deref().map(|(known, _)| known.session.clone());
    assert_eq!(known(&run), None);
    assert_eq!(run.feed(begun("fake", "one")).len(), 1);
    assert_eq!(known(&run).as_deref(), Some("one"));
    assert_eq!(run.feed(begun("fake", "one")).len(), 0, "it is known");
    assert_eq!(run.feed(begun("fake", "two")).len(), 1);
    assert_eq!(known(&run).as_deref(), Some("two"));
}

#[test]
fn a_failed_check_is_remembered_with_what_it_printed() {
    let mut run = draft().agent("a").checks(&["tests"]).run();
    run.done(&["a"]);
    let mut fact = checked(false, "exit code 1");
    fact.output = "2 failed".to_owned();
    run.feed(Input::CheckEnded { step: "a".into(), attempt: 1, check: "tests".into(), fact });
    let failure = run.state.steps["a"].last_failure.as_ref().expect("it failed");
    assert_eq!(failure.output, "2 failed");
}

#[test]
fn two_questions_that_are_put_once_are_two_questions() {
    let mut run = draft()
        .fan_out("tasks")
        .decision("tasks/*/first", &[])
        .once()
        .decision("tasks/*/second", &[])
        .once()
        .run();
    run.list("tasks", &[("a", &[]), ("b", &[]), ("c", &[])]);
    let pending = |run: &Bench| {
        let asked = run.state.queues.pending_decisions.iter().map(|id| id.to_string());
        asked.map(|id| id.rsplit('/').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(pending(&run), ["first", "second"], "each once for all items");
    run.answer("tasks/a/first", "approved");
    assert_eq!(pending(&run), ["second"], "the other one is not answered by it");
    run.answer("tasks/a/second", "approved");
    run.status(RunStatus::Done);
}

/// Two items that ask once for both of them.
fn asked_once(show: &[&str]) -> Bench {
    let mut run = draft()
        .fan_out("tasks")
        .agent("tasks/*/do")
        .decision("tasks/*/ok", &[])
        .show(show)
        .once()
        .needs(&["tasks/*/do"])
        .run();
    run.list("tasks", &[("a", &[]), ("b", &[])]);
    run
}

fn shown(run: &mut Bench, decision: &str, content: &str) {
    let bound = BTreeMap::from([("tree".into(), hash(content))]);
    run.feed(Input::Bound { decision: decision.into(), bound, question: None });
}

#[test]
fn an_answer_to_what_another_item_showed_holds_only_for_the_same_content() {
    let status = |run: &Bench, id: &str| run.state.decisions[id].status;
    for (content, expected) in [("one", DecisionStatus::Answered), ("two", DecisionStatus::Pending)] {
        let mut run = asked_once(&["tree"]);
        run.done(&["tasks/a/do"]);
        shown(&mut run, "tasks/a/ok", "one");
        run.answer("tasks/a/ok", "approved");
        run.done(&["tasks/b/do"]);
        shown(&mut run, "tasks/b/ok", content);
        assert_eq!(status(&run, "tasks/b/ok"), expected, "after {content}");
    }
}

#[test]
fn what_was_answered_to_an_item_that_somebody_left_out_afterwards_holds_for_nobody() {
    let mut run = asked_once(&[]);
    run.done(&["tasks/a/do"]);
    run.answer("tasks/a/ok", "stop");
    run.skip("tasks/a/ok");
    run.done(&["tasks/b/do"]);
    run.wants("ask tasks/b/ok");
}

#[test]
fn items_that_come_to_a_question_at_the_same_moment_put_it_once_if_it_is_put_once() {
    for (once, expected) in [(true, vec!["tasks/a/ok"]), (false, vec!["tasks/a/ok", "tasks/b/ok"])] {
        let plan = draft().fan_out("tasks").decision("tasks/*/ok", &[]);
        let mut run = if once { plan.once().run() } else { plan.run() };
        run.list("tasks", &[("a", &[]), ("b", &[])]);
        run.answer("tasks/a/ok", "stop");
        if !once {
            run.answer("tasks/b/ok", "stop");
        }
        run.status(RunStatus::Blocked);
        run.resume();
        let asked = run.state.queues.pending_decisions.iter().map(|id| id.as_str()).collect::<Vec<_>>();
        assert_eq!(asked, expected, "\n{}", run.story());
    }
}

#[test]
fn the_first_judgement_remembers_only_what_was_said_of_what_it_judges() {
    let mut run = draft()
        .agent("plan")
        .agent("code")
        .needs(&["plan"])
        .review("look", &["plan"])
        .needs(&["code"])
        .review_edit(|review| review.of = vec!["code".into()])
        .run();
    says(&mut run, "plan", "planned it");
    says(&mut run, "code", "wrote it");
    run.done(&["look"]);
    assert_eq!(work_at_judgements(&run, "look"), [vec!["wrote it".to_owned()]]);
}
