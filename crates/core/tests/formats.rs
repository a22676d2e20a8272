//! What is written down: nothing that goes without saying, and everything that does not.

mod common;

use common::{draft, reply};
use gatewright_core::{
    event::{Beginning, BlockReason, Event, FailureClass, RunEnd},
    fact::{AttemptReport, CheckFact, ProcessEnd, TroubleKind},
    ids::Timestamp,
    outcome::{Outcome, Question, Reply},
    plan::{Kind, Plan, Step, limits},
    replay,
    state::DecisionStatus,
    verdict::{Finding, Severity},
};
use serde_json::{Value, json};

fn written(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("it is JSON")
}

/// The words that stand in the text of the one and not in that of the other.
fn adds(plain: &Value, more: &Value) -> Vec<String> {
    let (plain, more) = (plain.as_object().expect("an object"), more.as_object().expect("an object"));
    assert!(plain.keys().all(|word| more.contains_key(word)), "{plain:?}");
    more.keys().filter(|word| !plain.contains_key(*word)).cloned().collect()
}

fn again<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("it is JSON");
    assert_eq!(serde_json::from_str::<T>(&text).expect("and can be read back"), *value);
}

#[test]
fn a_report_says_only_what_there_is_to_say() {
    let plain = AttemptReport::new(ProcessEnd::TimedOut);
    assert_eq!(written(&plain), json!({ "ended": { "how": "timed_out" } }));
    let more = AttemptReport { duration_ms: 1, changes_left_out: 2, repairs: 3, ..plain.clone() };
    assert_eq!(adds(&written(&plain), &written(&more)), ["duration_ms", "changes_left_out", "repairs"]);
    again(&plain);
    again(&more);
}

#[test]
fn a_check_says_only_what_there_is_to_say() {
    let plain: CheckFact = serde_json::from_value(json!({ "ok": true })).expect("a check");
    assert_eq!(written(&plain), json!({ "ok": true }));
    let more = CheckFact { flaky: 1, duration_ms: 2, timed_out: true, build: true, ..plain.clone() };
    assert_eq!(adds(&written(&plain), &written(&more)).len(), 4, "{}", written(&more));
    again(&more);
}

#[test]
fn a_start_says_what_was_there_before_only_if_something_was() {
    let started = |beginning: Beginning| Event::RunStarted {
        run: "run".to_owned(),
        workflow: "test".to_owned(),
        profile: "first".into(),
        request: "do it".to_owned(),
        beginning,
    };
    let (plain, counted) =
        (started(Beginning::default()), started(Beginning { numbered: 4, ..Beginning::default() }));
    assert_eq!(adds(&written(&plain), &written(&counted)), ["beginning"]);
    assert_eq!(written(&counted)["beginning"], json!({ "numbered": 4 }));
    again(&plain);
    again(&counted);
    assert!(Beginning::default().is_plain());
    let until = Beginning { until: Some("main".into()), ..Beginning::default() };
    assert!(!until.is_plain());
    assert_eq!(written(&until), json!({ "until": "main" }));
}

#[test]
fn a_question_says_only_what_there_is_to_say() {
    let plain = Question {
        question: "which?".to_owned(),
        options: Vec::new(),
        recommendation: None,
        security: false,
    };
    let secure = Question { security: true, ..plain.clone() };
    assert_eq!(adds(&written(&plain), &written(&secure)), ["security"]);
    again(&secure);
    again(&plain);
    let mut run = draft().decision("ok", &[]).run();
    assert!(run.story().contains("\"decision\""));
    assert!(!run.story().contains("to_render"), "{}", run.story());
    run = draft().decision("ok", &[]).asks_template().run();
    assert!(run.story().contains("\"to_render\":true"), "{}", run.story());
}

#[test]
fn a_reply_and_a_finding_say_only_what_there_is_to_say() {
    let plain = Reply::new(Outcome::Done);
    again(&plain);
    let whole = Reply { changed_is_all: true, ..plain.clone() };
    assert_eq!(adds(&written(&plain), &written(&whole)), ["changed_is_all"]);
    again(&whole);
    let finding = Finding::new(Severity::High, "slow");
    let beside = Finding { out_of_scope: true, ..finding.clone() };
    assert_eq!(adds(&written(&finding), &written(&beside)), ["out_of_scope"]);
    again(&finding);
    again(&beside);
}

#[test]
fn a_step_says_only_what_there_is_to_say() {
    let plan = draft().agent("a").agent("helper").dormant().agent("writer").commits().plan();
    let text = written(&plan);
    let step = |id: &str| text["graphs"]["first"]["steps"][id].clone();
    assert!(step("a").get("commit").is_none(), "{}", step("a"));
    assert_eq!(step("writer")["commit"], json!(true));
    let mut read: Value = step("a");
    read.as_object_mut().expect("an object").remove("back_max");
    let read: Step = serde_json::from_value(read).expect("a step");
    assert_eq!(read.back_max, limits::BACK_MAX, "where nothing is said");
    let question = |plan: Plan| written(&plan)["graphs"]["first"]["steps"]["ok"]["kind"].to_string();
    assert!(!question(draft().decision("ok", &[]).plan()).contains("template"));
    assert!(question(draft().decision("ok", &[]).asks_template().plan()).contains("\"template\":true"));
    let read: Plan = serde_json::from_value(text.clone()).expect("a plan");
    assert_eq!(written(&read), text);
    assert!(matches!(read.graphs["first"].steps["a"].kind, Kind::Agent { .. }));
}

#[test]
fn words_are_those_of_the_format() {
    let same = |word: &str, value: Value| assert_eq!(value, json!(word));
    for end in [RunEnd::Done, RunEnd::Failed, RunEnd::Abandoned] {
        same(end.word(), written(&end));
    }
    for kind in [
        TroubleKind::Auth,
        TroubleKind::Rate,
        TroubleKind::Server,
        TroubleKind::Network,
        TroubleKind::Context,
        TroubleKind::BadRequest,
        TroubleKind::Budget,
        TroubleKind::Denied,
        TroubleKind::Interrupted,
        TroubleKind::Unknown,
    ] {
        same(kind.word(), written(&kind));
    }
    for status in [
        DecisionStatus::Pending,
        DecisionStatus::Answered,
        DecisionStatus::Cancelled,
        DecisionStatus::Skipped,
        DecisionStatus::Stale,
    ] {
        same(status.word(), written(&status));
    }
    for reason in
        [BlockReason::Gate, BlockReason::AgentError, BlockReason::MissingInput, BlockReason::BadList]
    {
        same(reason.word(), written(&reason));
    }
    for class in [FailureClass::Crash, FailureClass::Timeout, FailureClass::Idle, FailureClass::Test] {
        same(class.word(), written(&class));
    }
    for severity in [Severity::Note, Severity::Low, Severity::Medium, Severity::High, Severity::Critical] {
        same(severity.word(), written(&severity));
        assert_eq!(Severity::from_word(severity.word()), Some(severity));
    }
    assert_eq!(Severity::from_word("urgent"), None);
}

#[test]
fn only_what_a_request_itself_spoils_is_not_tried_again() {
    let last: Vec<&str> = [
        TroubleKind::Auth,
        TroubleKind::Rate,
        TroubleKind::Server,
        TroubleKind::Network,
        TroubleKind::Context,
        TroubleKind::BadRequest,
        TroubleKind::Budget,
        TroubleKind::Denied,
        TroubleKind::Interrupted,
        TroubleKind::Unknown,
    ]
    .into_iter()
    .filter(|kind| kind.is_final())
    .map(TroubleKind::word)
    .collect();
    assert_eq!(last, ["auth", "context", "bad_request"]);
}

#[test]
fn a_journal_that_does_not_fit_is_refused_with_the_place() {
    let mut run = draft().agent("a").run();
    run.ends("a", reply(Outcome::Done));
    let events: Vec<(Timestamp, Event)> = run.log.clone();
    let fold =
        |events: &[(Timestamp, Event)]| replay(&run.plan, events.to_vec(), |_| None).map(|found| found.0);
    assert_eq!(fold(&events), Ok(run.state.clone()));
    let refused = |events: &[(Timestamp, Event)]| fold(events).unwrap_err().to_string();
    assert_eq!(refused(&events[1..]), "event 1 comes before the run has started");
    let with = |event: Event| [&events[..1], &[(Timestamp(5), event)]].concat();
    assert_eq!(
        refused(&with(Event::ProfileEscalated {
            from: "first".into(),
            to: "none".into(),
            by: "a".into(),
            reason: String::new()
        })),
        "event 2 names the profile `none`, which the plan does not have"
    );
    assert_eq!(
        refused(&with(Event::PlanAdopted { digest: "d".to_owned() })),
        "event 2 adopts the plan d, which is not there"
    );
    let mut other = run.plan.clone();
    other.workflow = "other".to_owned();
    let adopted = with(Event::PlanAdopted { digest: "d".to_owned() });
    let (_, plan) =
        replay(&run.plan, adopted, |digest| (digest == "d").then_some(&other)).expect("it is there");
    assert_eq!(plan.workflow, "other");
}

#[test]
fn a_graph_knows_what_comes_before_and_after_a_step() {
    let plan = draft()
        .agent("a")
        .agent("b")
        .needs(&["a"])
        .agent("c")
        .needs(&["b"])
        .agent("d")
        .needs(&["a", "c"])
        .agent("alone")
        .plan();
    let graph = &plan.graphs["first"];
    let names = |found: std::collections::BTreeSet<gatewright_core::ids::StepId>| {
        found.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(graph.upstream(&"d".into())), ["a", "b", "c"]);
    assert_eq!(names(graph.upstream(&"b".into())), ["a"]);
    assert!(graph.upstream(&"alone".into()).is_empty());
    assert_eq!(names(graph.downstream(&["b".into()].into())), ["c", "d"]);
    assert!(graph.downstream(&["d".into(), "alone".into()].into()).is_empty());
}

#[test]
fn an_id_is_a_string() {
    let refused = serde_json::from_str::<gatewright_core::ids::StepId>("5").unwrap_err().to_string();
    assert!(refused.contains("expected a string"), "{refused}");
}

#[test]
fn an_event_is_an_object_and_may_say_more_than_this_version_knows() {
    let read = |text: &str| serde_json::from_str::<Event>(text).map_err(|error| error.to_string());
    assert_eq!(read(r#"{"type":"run.stop.requested","by":{"a":[1]},"more":2}"#), Ok(Event::StopRequested));
    let refused = read("[]").unwrap_err();
    assert!(refused.contains("expected an object that begins with `type`"), "{refused}");
}
