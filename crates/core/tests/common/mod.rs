//! Plans in a few words, and a bench that feeds a run with inputs and shows what it wants.
#![allow(dead_code, reason = "each test file uses another part of this; none leaves the same part unused")]
#![allow(clippy::unwrap_used, reason = "a broken test may panic")]

pub mod invariants;

use std::collections::BTreeMap;

use gatewright_core::{
    Rejected, advance,
    effect::Effect,
    event::{Beginning, Event, FailureClass},
    explain::explain_step,
    fact::{ArtifactFact, AttemptReport, CheckFact, Item, ProcessEnd},
    ids::{ArtifactName, CheckId, ContentHash, DecisionId, GateId, StepId, Timestamp},
    input::{self, Input, Raise},
    outcome::{Outcome, Question as Asked, Reply},
    plan::{
        Answer, AnswerEffect, Budget, Condition, Edge, Exhaustion, FanOut, FixRoute, Gate, Graph, Hardness,
        ItemFailure, Kind, Must, Obligation, PLAN_VERSION, Plan, Question, Rereview, Rerun, Retry, Review,
        Reviewer, Stage, Step, limits,
    },
    replay,
    state::{Phase, RunStatus, State},
    verdict::{Finding, Severity},
    wanted,
};

/// A plan that is being written down. Methods that refine speak of the step added last.
#[derive(Clone, Default)]
pub struct Draft {
    pub graph: Graph,
    pub budget: Budget,
    pub more: BTreeMap<String, Graph>,
    pub budgets: BTreeMap<String, Budget>,
    last: String,
}

pub fn draft() -> Draft {
    Draft::default().stage("main").pool("run", 100)
}

impl Draft {
    pub fn stage(mut self, id: &str) -> Self {
        self.graph.stages.push(Stage { id: id.into(), steps: Vec::new(), restarts_max: 3, disabled: None });
        self
    }

    pub fn stage_edit(mut self, edit: impl FnOnce(&mut Stage)) -> Self {
        edit(self.graph.stages.last_mut().unwrap());
        self
    }

    pub fn pool(mut self, id: &str, depth: u32) -> Self {
        self.graph.pools.insert(id.into(), depth);
        self
    }

    pub fn excludes(mut self, tenure: &str, others: &[&str]) -> Self {
        self.graph.excludes.insert(tenure.into(), others.iter().map(|other| (*other).into()).collect());
        self
    }

    /// `a` is a step of the last stage, `f/*/a` one of a fan-out, `s/a` one of a sub-run.
    pub fn step(mut self, id: &str, kind: Kind) -> Self {
        let stage = self.graph.stages.last_mut().unwrap();
        let name = id.rsplit('/').next().unwrap().to_owned();
        let step = Step {
            name,
            stage: stage.id.clone(),
            needs: Vec::new(),
            gates: Vec::new(),
            kind,
            pools: vec!["run".into()],
            tenure: None,
            writes: Vec::new(),
            checks: Vec::new(),
            commit: false,
            retry: Retry::default(),
            dormant: false,
            back: Vec::new(),
            back_max: limits::BACK_MAX,
        };
        match id.rsplit_once('/') {
            None => stage.steps.push(id.into()),
            Some((parent, _)) => {
                let parent = parent.trim_end_matches("/*");
                match &mut self.graph.steps.get_mut(parent).expect("the group comes first").kind {
                    Kind::FanOut(fan_out) => fan_out.body.push(id.into()),
                    Kind::SubRun { body, .. } => body.push(id.into()),
                    _ => {}
                }
            }
        }
        self.graph.steps.insert(id.into(), Box::new(step));
        id.clone_into(&mut self.last);
        self
    }

    pub fn agent(self, id: &str) -> Self {
        self.step(id, Kind::Agent { role: format!("role-{id}").as_str().into(), agent: "fake".into() })
    }

    pub fn check_step(self, id: &str) -> Self {
        self.step(id, Kind::Check { check: CheckId::new("tests") })
    }

    /// One reviewer, fix steps run again with everything between.
    pub fn review(self, id: &str, fix: &[&str]) -> Self {
        let reviewer = Reviewer { step: id.into(), role: "reviewer".into(), agent: "fake".into() };
        self.step(id, Kind::Review(Box::new(review(vec![reviewer], fix))))
    }

    pub fn panel(self, id: &str, fix: &[&str], members: &[&str]) -> Self {
        let reviewer = |name: &&str| Reviewer {
            step: format!("{id}/{name}").into(),
            role: (*name).into(),
            agent: "fake".into(),
        };
        let mut draft =
            self.step(id, Kind::Review(Box::new(review(members.iter().map(reviewer).collect(), fix))));
        for name in members {
            let kind = Kind::Agent { role: (*name).into(), agent: "fake".into() };
            draft = draft.step(&format!("{id}/{name}"), kind);
        }
        id.clone_into(&mut draft.last);
        draft
    }

    /// `approved` passes, `changes` redoes these steps, `stop` blocks, `abort` gives up.
    pub fn decision(self, id: &str, redo: &[&str]) -> Self {
        let steps: Vec<StepId> = redo.iter().map(|id| (*id).into()).collect();
        let answers = vec![
            answer("approved", &["yes", "go ahead"], AnswerEffect::Pass),
            answer("changes", &[], AnswerEffect::Redo { steps, routes: BTreeMap::new() }),
            answer("stop", &[], AnswerEffect::Block),
            answer("abort", &[], AnswerEffect::Abort),
        ];
        let question = Question {
            name: None,
            once: false,
            question: format!("{id}?"),
            template: false,
            show: Vec::new(),
            answers,
        };
        self.step(id, Kind::Decision(Box::new(question)))
    }

    pub fn show(self, names: &[&str]) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::Decision(question) => question.show = names.iter().map(|name| (*name).into()).collect(),
            _ => panic!("only decisions show"),
        })
    }

    pub fn once(self) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::Decision(question) => question.once = true,
            _ => panic!("only decisions are put once"),
        })
    }

    pub fn asks_template(self) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::Decision(question) => question.template = true,
            _ => panic!("only decisions ask"),
        })
    }

    pub fn fan_out(self, id: &str) -> Self {
        let kind = Kind::FanOut(Box::new(FanOut {
            over: ArtifactName::new("list.json"),
            body: Vec::new(),
            parallel_max: 10,
            waves: false,
            items_max: 100,
            on_item_failure: ItemFailure::Block,
            planned_by: None,
        }));
        self.step(id, kind)
    }

    pub fn fan_out_edit(self, edit: impl FnOnce(&mut FanOut)) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::FanOut(fan_out) => edit(fan_out),
            _ => panic!("not a fan-out"),
        })
    }

    pub fn sub_run(self, id: &str) -> Self {
        self.step(id, Kind::SubRun { body: Vec::new(), budget: Box::default() })
    }

    pub fn edit(mut self, edit: impl FnOnce(&mut Step)) -> Self {
        edit(self.graph.steps.get_mut(self.last.as_str()).unwrap());
        self
    }

    /// Goes back to a step that was added before.
    pub fn of(mut self, id: &str) -> Self {
        id.clone_into(&mut self.last);
        self
    }

    pub fn review_edit(self, edit: impl FnOnce(&mut Review)) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::Review(review) => edit(review),
            _ => panic!("not a review"),
        })
    }

    pub fn needs(self, from: &[&str]) -> Self {
        self.edit(|step| step.needs = from.iter().map(|id| Edge { from: (*id).into() }).collect())
    }

    pub fn dormant(self) -> Self {
        self.edit(|step| step.dormant = true)
    }

    pub fn writes(self, name: &str) -> Self {
        self.edit(|step| step.writes.push(name.into()))
    }

    pub fn checks(self, names: &[&str]) -> Self {
        self.edit(|step| step.checks = names.iter().map(|name| (*name).into()).collect())
    }

    pub fn commits(self) -> Self {
        self.edit(|step| step.commit = true)
    }

    pub fn attempts(self, max: u32) -> Self {
        self.edit(|step| step.retry.attempts_max = max)
    }

    pub fn on_exhausted(self, ways: Vec<Exhaustion>) -> Self {
        self.edit(|step| match &mut step.kind {
            Kind::Review(review) => review.on_exhausted = ways,
            _ => step.retry.on_exhausted = ways,
        })
    }

    pub fn rounds(self, max: u32) -> Self {
        self.review_edit(|review| review.rounds_max = max)
    }

    pub fn gate(self, id: &str, hardness: Hardness, condition: Condition) -> Self {
        self.edit(|step| {
            step.gates.push(Gate { id: GateId::new(id), condition, hardness, asked_at: Vec::new() });
        })
    }

    pub fn expression(self, id: &str, hardness: Hardness) -> Self {
        self.gate(id, hardness, Condition::Expression { source: id.to_owned() })
    }

    pub fn obligation(mut self, name: &str, must: Must, else_run: Option<&str>) -> Self {
        let else_run = else_run.map(StepId::from);
        self.graph.obligations.push(Obligation { name: name.to_owned(), must, else_run });
        self
    }

    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    pub fn escalates(mut self, reason: &str, to: &str, other: Draft) -> Self {
        self.graph.escalations.insert(reason.to_owned(), to.into());
        self.more.insert(to.to_owned(), other.graph);
        self.budgets.insert(to.to_owned(), other.budget);
        self
    }

    pub fn plan(self) -> Plan {
        let mut graphs = BTreeMap::from([("first".into(), self.graph)]);
        graphs.extend(self.more.into_iter().map(|(id, graph)| (id.into(), graph)));
        graphs.values_mut().for_each(Graph::index);
        Plan {
            version: PLAN_VERSION,
            workflow: "test".to_owned(),
            profile: "first".into(),
            graphs,
            budget: self.budget,
            budgets: self.budgets.into_iter().map(|(id, budget)| (id.into(), budget)).collect(),
            decision_prefix: "D-".to_owned(),
            reasks_max: limits::REASKS_MAX,
        }
    }

    pub fn run(self) -> Bench {
        Bench::new(self.plan())
    }
}

fn review(reviewers: Vec<Reviewer>, fix: &[&str]) -> Review {
    Review {
        of: fix.iter().map(|id| (*id).into()).collect(),
        reviewers,
        block_at: Severity::Medium,
        hard_stop_on_blocked: false,
        rounds_max: 3,
        fix: vec![FixRoute { route: None, steps: fix.iter().map(|id| (*id).into()).collect() }],
        rerun: Rerun::Between,
        rereview: Rereview::All,
        final_pass: false,
        stalled_after: None,
        on_exhausted: vec![Exhaustion::Block],
        ask_at: None,
        on_notes: Vec::new(),
    }
}

pub fn answer(word: &str, synonyms: &[&str], effect: AnswerEffect) -> Answer {
    Answer {
        word: word.to_owned(),
        synonyms: synonyms.iter().map(|word| (*word).to_owned()).collect(),
        effect,
    }
}

pub fn ask(effects: &[(&str, AnswerEffect)]) -> Exhaustion {
    Exhaustion::Ask {
        answers: effects.iter().map(|(word, effect)| answer(word, &[], effect.clone())).collect(),
    }
}

pub fn hash(text: &str) -> ContentHash {
    ContentHash(text.to_owned())
}

pub fn reply(outcome: Outcome) -> AttemptReport {
    AttemptReport { reply: Some(Reply::new(outcome)), ..AttemptReport::new(ProcessEnd::Exited { code: 0 }) }
}

pub fn findings(outcome: Outcome, severities: &[Severity]) -> AttemptReport {
    let mut report = reply(outcome);
    if let Some(reply) = &mut report.reply {
        reply.findings = severities.iter().map(|severity| Finding::new(*severity, "problem")).collect();
    }
    report
}

pub fn writing(mut report: AttemptReport, files: &[(&str, &str)]) -> AttemptReport {
    report.artifacts.extend(files.iter().map(|(name, content)| ArtifactFact {
        declared: (*name).into(),
        name: (*name).into(),
        hash: (!content.is_empty()).then(|| hash(content)),
        bytes: content.len() as u64,
        violations: Vec::new(),
        optional: false,
    }));
    report
}

pub fn questions(asked: &[&str]) -> AttemptReport {
    let mut report = reply(Outcome::NeedsInput);
    if let Some(reply) = &mut report.reply {
        reply.questions = asked
            .iter()
            .map(|text| Asked {
                question: (*text).to_owned(),
                options: Vec::new(),
                recommendation: None,
                security: false,
            })
            .collect();
    }
    report
}

pub fn checked(ok: bool, message: &str) -> CheckFact {
    CheckFact { ok, message: message.to_owned(), ..check_fact() }
}

fn check_fact() -> CheckFact {
    serde_json::from_str(r#"{"ok":true}"#).unwrap()
}

pub fn items(list: &[(&str, &[&str])]) -> Vec<Item> {
    list.iter()
        .map(|(key, needs)| Item {
            key: (*key).to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            element: Some(hash(&format!("element {key}"))),
        })
        .collect()
}

/// A run under test.
pub struct Bench {
    pub plan: Plan,
    pub state: State,
    pub now: Timestamp,
    pub log: Vec<(Timestamp, Event)>,
    /// Plans by the digest they were adopted under; the first one under none.
    plans: BTreeMap<String, Plan>,
}

impl Bench {
    pub fn new(plan: Plan) -> Bench {
        Bench::begun(plan, Beginning::default())
    }

    pub fn begun(plan: Plan, beginning: Beginning) -> Bench {
        let state = State::new(&plan);
        let mut bench = Bench { plan, state, now: Timestamp(1000), log: Vec::new(), plans: BTreeMap::new() };
        bench.feed(Input::Start { run: "run".to_owned(), request: "do it".to_owned(), beginning });
        bench
    }

    pub fn try_feed(&mut self, input: Input) -> Result<Vec<Event>, Rejected> {
        let events = advance(&self.plan, &mut self.state, &input, self.now)?;
        self.log.extend(events.iter().map(|event| (self.now, event.clone())));
        assert_eq!(self.replayed(), self.state, "replay differs after {input:?}");
        if let Err(broken) = invariants::check(&self.plan, &self.state) {
            panic!("{broken} after {input:?}\n{}", self.story());
        }
        Ok(events)
    }

    /// A person orders that the run goes on with another plan.
    pub fn adopt(&mut self, draft: Draft) -> Vec<Event> {
        let digest = format!("plan {}", self.plans.len() + 1);
        let before = std::mem::replace(&mut self.plan, draft.plan());
        self.plans.entry(String::new()).or_insert(before);
        self.plans.insert(digest.clone(), self.plan.clone());
        self.feed(Input::Adopt { digest })
    }

    pub fn feed(&mut self, input: Input) -> Vec<Event> {
        self.try_feed(input).expect("the input fits")
    }

    fn replayed(&self) -> State {
        let text = serde_json::to_string(&self.log).expect("events are JSON");
        let log: Vec<(Timestamp, Event)> = serde_json::from_str(&text).expect("and can be read back");
        let plan = |digest: &str| self.plans.get(digest).unwrap_or(&self.plan);
        replay(plan(""), log, |digest| Some(plan(digest))).expect("the journal is good").0
    }

    /// The engine dies; only `keep` events of the journal survive. What follows follows by itself.
    pub fn crash_keeping(&mut self, keep: usize) {
        self.log.truncate(keep);
        self.state = self.replayed();
        self.feed(Input::Tick);
    }

    /// The engine dies after everything was durable.
    pub fn crash(&mut self) {
        self.crash_keeping(self.log.len());
    }

    /// The attempt of this step that is at work.
    pub fn attempt(&self, step: &str) -> u32 {
        match self.state.steps.get(step).map(|own| &own.phase) {
            Some(Phase::Running { attempt } | Phase::Verifying { attempt }) => *attempt,
            other => panic!("`{step}` is not at work: {other:?}"),
        }
    }

    pub fn ends(&mut self, step: &str, report: AttemptReport) -> Vec<Event> {
        let attempt = self.attempt(step);
        self.feed(Input::AttemptEnded { step: step.into(), attempt, report })
    }

    pub fn done(&mut self, steps: &[&str]) {
        for step in steps {
            self.ends(step, reply(Outcome::Done));
        }
    }

    /// A reviewer demands work.
    pub fn revises(&mut self, step: &str) {
        self.ends(step, findings(Outcome::Failed, &[Severity::High]));
    }

    pub fn dies(&mut self, step: &str, ended: ProcessEnd) {
        self.ends(step, AttemptReport::new(ended));
    }

    pub fn check_ends(&mut self, step: &str, check: &str, fact: CheckFact) {
        let attempt = self.attempt(step);
        self.feed(Input::CheckEnded { step: step.into(), attempt, check: check.into(), fact });
    }

    pub fn evaluated(&mut self, step: &str, gate: &str, value: bool) {
        self.feed(Input::Evaluated { step: step.into(), gate: gate.into(), value: Ok(value) });
    }

    pub fn list(&mut self, step: &str, list: &[(&str, &[&str])]) {
        self.feed(Input::ListRead { step: step.into(), hash: hash("list"), items: Ok(items(list)) });
    }

    #[expect(clippy::unused_self, reason = "reads like the other sentences")]
    pub fn say(&self, decision: &str, value: &str) -> input::Answer {
        input::Answer {
            decision: DecisionId::new(decision),
            value: value.to_owned(),
            comment: None,
            route: None,
            confirmed: false,
            channel: "terminal".to_owned(),
            seen: BTreeMap::new(),
        }
    }

    pub fn try_answer(&mut self, decision: &str, value: &str) -> Result<Vec<Event>, Rejected> {
        let answer = self.say(decision, value);
        self.try_feed(Input::Answer(answer))
    }

    pub fn answer(&mut self, decision: &str, value: &str) {
        self.try_answer(decision, value).expect("it is an answer");
    }

    pub fn resume(&mut self) {
        self.feed(Input::Resume { raise: Raise::default(), substitutes: BTreeMap::new() });
    }

    pub fn skip(&mut self, step: &str) {
        self.feed(Input::Skip { step: step.into(), reason: "not needed".to_owned() });
    }

    pub fn waive_gate(&mut self, step: &str, gate: Option<&str>) -> Result<Vec<Event>, Rejected> {
        let reason = "it is fine".to_owned();
        self.try_feed(Input::WaiveGate { step: step.into(), gate: gate.map(Into::into), reason })
    }

    pub fn later(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.feed(Input::Tick);
    }

    /// What is wanted now, in words.
    #[track_caller]
    pub fn wants(&self, expected: &str) {
        let words: Vec<String> = wanted(&self.plan, &self.state, self.now)
            .effects
            .iter()
            .map(|effect| match effect {
                Effect::Run { step, attempt } => format!("run {step}#{attempt}"),
                Effect::Check { step, attempt, check } => format!("check {step}#{attempt} {check}"),
                Effect::Commit { step, attempt } => format!("commit {step}#{attempt}"),
                Effect::Evaluate { step, gate } => format!("evaluate {step} {gate}"),
                Effect::ReadList { step } => format!("list {step}"),
                Effect::Bind { decision } => format!("bind {decision}"),
                Effect::Ask { decision } => format!("ask {decision}"),
                Effect::Stop { step, attempt } => format!("stop {step}#{attempt}"),
            })
            .collect();
        assert_eq!(words.join(", "), expected, "\n{}", self.story());
    }

    #[track_caller]
    pub fn status(&self, expected: RunStatus) {
        assert_eq!(self.state.status(), expected, "\n{}", self.story());
    }

    #[track_caller]
    pub fn is(&self, step: &str, expected: &str) {
        let own = self.state.steps.get(step).unwrap_or_else(|| panic!("no step `{step}`"));
        assert_eq!(phase_word(&own.phase), expected, "`{step}`\n{}", self.story());
    }

    /// Why a step is blocked, in one word.
    pub fn blocked(&self, step: &str) -> &'static str {
        match &self.state.steps[step].phase {
            Phase::Blocked { reason, .. } => reason.word(),
            other => panic!("`{step}` is not blocked but {other:?}\n{}", self.story()),
        }
    }

    pub fn why(&self, step: &str) -> String {
        let explanation =
            explain_step(&self.plan, &self.state, &step.into()).expect("every step is explained");
        format!("{} {}", explanation.because, explanation.misses.join(" "))
    }

    /// Events of one type so far.
    pub fn count(&self, kind: &str) -> usize {
        self.log.iter().filter(|(_, event)| event_word(event) == kind).count()
    }

    pub fn story(&self) -> String {
        let line =
            |(at, event): &(Timestamp, Event)| format!("{} {}", at.0, serde_json::to_string(event).unwrap());
        self.log.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub fn last_class(&self, step: &str) -> Option<FailureClass> {
        self.state.steps[step].last_failure.as_ref().map(|failure| failure.class)
    }
}

/// The dotted name of an event.
pub fn event_word(event: &Event) -> String {
    match serde_json::to_value(event).expect("an event is JSON").get("type") {
        Some(word) => word.as_str().unwrap_or_default().to_owned(),
        None => String::new(),
    }
}

pub fn phase_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Dormant => "dormant",
        Phase::Pending => "pending",
        Phase::Gated => "gated",
        Phase::Ready => "ready",
        Phase::Running { .. } => "running",
        Phase::Verifying { .. } => "verifying",
        Phase::Backoff { .. } => "backoff",
        Phase::Waiting => "waiting",
        Phase::Open => "open",
        Phase::Fixing => "fixing",
        Phase::Passed { .. } => "passed",
        Phase::Failed { .. } => "failed",
        Phase::Blocked { .. } => "blocked",
        Phase::Skipped { .. } => "skipped",
    }
}
