//! What may come back for an effect: the good news first, then everything else the core has to be
//! ready for.

use std::collections::BTreeMap;

use gatewright_core::{
    effect::Effect,
    event::About,
    fact::{ArtifactFact, AttemptReport, CheckFact, Item, ProcessEnd},
    ids::{ArtifactName, ContentHash, DecisionId, StepId},
    input::{Answer, Input},
    outcome::{Outcome, Question, Reply, ReplyProblem},
    plan::{AnswerEffect, Kind, Plan, Review, Step},
    state::State,
    verdict::Finding,
};

/// One possible result.
#[derive(Clone, Debug)]
pub struct Choice {
    pub label: String,
    pub input: Input,
    pub kind: ChoiceKind,
}

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    /// The world: an agent, a check, a condition.
    World,
    /// A person, who ends the matter or keeps the run going.
    Person { keeps_going: bool },
}

impl Choice {
    fn world(label: String, input: Input) -> Choice {
        Choice { label, input, kind: ChoiceKind::World }
    }
}

/// The possible results of an effect; the first is the one on the happy path.
pub fn choices(plan: &Plan, state: &State, effect: &Effect) -> Vec<Choice> {
    match effect {
        Effect::Run { step, attempt } => {
            let made = |(label, report): (String, AttemptReport)| {
                let input = Input::AttemptEnded { step: step.clone(), attempt: *attempt, report };
                Choice::world(format!("{step}: {label}"), input)
            };
            reports(plan, state, step, *attempt).into_iter().map(made).collect()
        }
        Effect::Check { step, attempt, check } => [true, false]
            .map(|ok| {
                let (step, check, fact) = (step.clone(), check.clone(), check_fact(ok));
                let label = format!("{step}: check {check} {}", if ok { "succeeds" } else { "fails" });
                Choice::world(label, Input::CheckEnded { step, attempt: *attempt, check, fact })
            })
            .to_vec(),
        Effect::Commit { step, attempt } => {
            let fact = gatewright_core::fact::CommitFact::Nothing;
            let input = Input::CommitEnded { step: step.clone(), attempt: *attempt, fact };
            vec![Choice::world(format!("{step}: committed"), input)]
        }
        Effect::Evaluate { step, gate } => [true, false]
            .map(|value| {
                let input = Input::Evaluated { step: step.clone(), gate: gate.clone(), value: Ok(value) };
                Choice::world(format!("{step}: {gate} is {value}"), input)
            })
            .to_vec(),
        Effect::ReadList { step } => {
            [2, 1, 0].map(|count| Choice::world(format!("{step}: {count} items"), list(step, count))).to_vec()
        }
        Effect::Bind { decision } => vec![bind(state, decision)],
        Effect::Ask { decision } => answers(state, decision),
        Effect::Stop { step, attempt } => {
            let report = AttemptReport::new(ProcessEnd::Stopped);
            let input = Input::AttemptEnded { step: step.clone(), attempt: *attempt, report };
            vec![Choice::world(String::new(), input)]
        }
    }
}

fn hash(text: impl Into<String>) -> ContentHash {
    ContentHash(text.into())
}

fn check_fact(ok: bool) -> CheckFact {
    let message = if ok { String::new() } else { "the check failed".to_owned() };
    CheckFact {
        ok,
        exit_code: Some(i32::from(!ok)),
        build: false,
        class: None,
        timed_out: false,
        message,
        output: String::new(),
        tests: None,
        flaky: 0,
        duration_ms: 0,
        changes: Vec::new(),
        changes_left_out: 0,
    }
}

fn list(step: &StepId, count: usize) -> Input {
    let items = ["a", "b"]
        .iter()
        .take(count)
        .map(|key| Item { key: (*key).to_owned(), needs: Vec::new(), element: None })
        .collect();
    Input::ListRead { step: step.clone(), hash: hash(format!("list of {count}")), items: Ok(items) }
}

fn bind(state: &State, id: &DecisionId) -> Choice {
    let show = state.decisions.get(id).map(|pending| pending.decision.show.clone()).unwrap_or_default();
    let bound: BTreeMap<ArtifactName, ContentHash> =
        show.into_iter().map(|name| (name, hash("shown"))).collect();
    let template = state.decisions.get(id).filter(|pending| pending.decision.to_render);
    let question = template.map(|pending| Ok(pending.decision.question.clone()));
    Choice::world(String::new(), Input::Bound { decision: id.clone(), bound, question })
}

/// Every allowed answer; those that let the run go on come first.
fn answers(state: &State, id: &DecisionId) -> Vec<Choice> {
    let Some(pending) = state.decisions.get(id) else { return Vec::new() };
    let given = |value: &str, keeps_going: bool| Choice {
        label: format!("{id}: {value}"),
        kind: ChoiceKind::Person { keeps_going },
        input: Input::Answer(Answer {
            decision: id.clone(),
            value: value.to_owned(),
            // A waiver has a reason.
            comment: matches!(pending.decision.about, About::Obligation { .. })
                .then(|| "explored".to_owned()),
            route: None,
            confirmed: true,
            channel: "explored".to_owned(),
            seen: BTreeMap::new(),
        }),
    };
    if pending.decision.answers.is_empty() || matches!(pending.decision.about, About::Question { .. }) {
        let word = pending.decision.answers.first().map_or("an answer", |answer| answer.word.as_str());
        return vec![given(word, false)];
    }
    let mut words: Vec<(u8, &str)> = pending
        .decision
        .answers
        .iter()
        .map(|answer| {
            let rank = match answer.effect {
                AnswerEffect::Pass | AnswerEffect::Accept => 0,
                AnswerEffect::Skip => 1,
                AnswerEffect::Again | AnswerEffect::Redo { .. } | AnswerEffect::Restart { .. } => 2,
                AnswerEffect::Block | AnswerEffect::Abort => 3,
            };
            (rank, answer.word.as_str())
        })
        .collect();
    words.sort_by_key(|(rank, _)| *rank);
    words.into_iter().map(|(rank, word)| given(word, rank == 2)).collect()
}

fn reports(plan: &Plan, state: &State, step: &StepId, attempt: u32) -> Vec<(String, AttemptReport)> {
    let Some(definition) = state.definition(plan, step) else { return Vec::new() };
    if matches!(definition.kind, Kind::Check { .. } | Kind::Merge { .. } | Kind::Finish { .. }) {
        return [true, false]
            .map(|ok| {
                let mut report = exited(step, attempt, i32::from(!ok));
                report.check = Some(check_fact(ok));
                (if ok { "succeeds" } else { "fails" }.to_owned(), report)
            })
            .to_vec();
    }
    let holder = state.panel_of(plan, step).unwrap_or_else(|| step.clone());
    match state.definition(plan, &holder).map(|holder| &holder.kind) {
        Some(Kind::Review(review)) => of_reviewer(state, step, attempt, definition, review),
        _ => of_agent(plan, state, step, attempt, definition),
    }
}

/// A process that ended by itself, with work that differs from every other attempt's.
fn exited(step: &StepId, attempt: u32, code: i32) -> AttemptReport {
    let mut report = AttemptReport::new(ProcessEnd::Exited { code });
    report.work = Some(hash(format!("{step} {attempt}")));
    report
}

fn replied(state: &State, step: &StepId, attempt: u32, definition: &Step, reply: Reply) -> AttemptReport {
    let mut report = exited(step, attempt, 0);
    let top = state.steps.get(step).is_none_or(|own| own.scope.is_top());
    report.artifacts = definition
        .writes
        .iter()
        .map(|declared| ArtifactFact {
            declared: declared.clone(),
            // Items of a fan-out write files of their own; their templates are not rendered here.
            name: if top { declared.clone() } else { ArtifactName::new(format!("{step}:{declared}")) },
            hash: Some(hash(format!("{step} {attempt} {declared}"))),
            bytes: 1,
            violations: Vec::new(),
            optional: false,
        })
        .collect();
    report.reply = Some(reply);
    report
}

fn broken(step: &StepId, attempt: u32) -> [(String, AttemptReport); 2] {
    let mut malformed = exited(step, attempt, 0);
    malformed.reply_problem = Some(ReplyProblem::NoOutcome);
    [("crashes".to_owned(), exited(step, attempt, 1)), ("replies nothing".to_owned(), malformed)]
}

fn of_agent(
    plan: &Plan,
    state: &State,
    step: &StepId,
    attempt: u32,
    definition: &Step,
) -> Vec<(String, AttemptReport)> {
    let with = |reply: Reply| replied(state, step, attempt, definition, reply);
    let mut options = vec![("is done".to_owned(), with(Reply::new(Outcome::Done)))];
    options.extend(broken(step, attempt));
    let mut blocked = Reply::new(Outcome::Blocked);
    "it cannot go on".clone_into(&mut blocked.summary);
    options.push(("is blocked".to_owned(), with(blocked.clone())));
    let mut asks = Reply::new(Outcome::NeedsInput);
    asks.questions = vec![Question {
        question: "Which way?".to_owned(),
        options: Vec::new(),
        recommendation: None,
        security: false,
    }];
    options.push(("asks".to_owned(), with(asks)));
    for target in &definition.back {
        let mut back = Reply::new(Outcome::Done);
        back.back_to = Some(target.clone());
        options.push((format!("refers back to {target}"), with(back)));
    }
    for reason in state.graph(plan).escalations.keys() {
        let mut reply = blocked.clone();
        reply.reason = Some(reason.clone());
        options.push((format!("is blocked by {reason}"), with(reply)));
    }
    options
}

fn of_reviewer(
    state: &State,
    step: &StepId,
    attempt: u32,
    definition: &Step,
    review: &Review,
) -> Vec<(String, AttemptReport)> {
    let with = |reply: Reply| replied(state, step, attempt, definition, reply);
    let mut options = vec![("passes".to_owned(), with(Reply::new(Outcome::Passed)))];
    let mut routes: Vec<Option<String>> = review.fix.iter().map(|route| route.route.clone()).collect();
    if routes.is_empty() {
        routes.push(None);
    }
    for route in routes {
        let mut reply = Reply::new(Outcome::Failed);
        // A new finding in every round: the loop moves.
        let mut finding = Finding::new(review.block_at, format!("finding of attempt {attempt}"));
        finding.route.clone_from(&route);
        reply.findings = vec![finding];
        let to = route.map(|route| format!(" by {route}")).unwrap_or_default();
        options.push((format!("demands work{to}"), with(reply)));
    }
    if review.hard_stop_on_blocked {
        options.push(("forbids going on".to_owned(), with(Reply::new(Outcome::Blocked))));
    }
    options.extend(broken(step, attempt));
    options
}
