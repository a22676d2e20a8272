//! A machine on which a run lives: a journal that survives, processes that outlive the engine, and
//! everything that goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    Rejected, advance,
    effect::Effect,
    event::{BlockReason, Event, Pause},
    explain::{blocked_by, explain_run},
    fact::{AttemptReport, CommitFact, Item, ProcessEnd, Usage},
    ids::{StepId, Timestamp},
    input::{self, Input, Raise},
    outcome::{Outcome, Question, Reply},
    plan::{Budget, Kind, Plan},
    replay,
    state::{ItemAside, Phase, RunPhase, RunStatus, ScopeId, State, StepState},
    verdict::{Finding, Severity},
    wanted,
};

use crate::{
    common::{checked, event_word, findings, hash, phase_word, reply, writing},
    invariants,
    ledger::Ledger,
    plans::{passing, random_plan},
    random::Random,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Every attempt succeeds, every answer passes; only the engine may crash.
    Sunny,
    Stormy,
    /// After the storm.
    Healing,
}

pub struct World {
    plan: Plan,
    random: Random,
    weather: Weather,
    now: Timestamp,
    state: State,
    /// The state as a reader of the journal sees it.
    shadow: State,
    log: Vec<(Timestamp, Event, bool)>,
    ledger: Ledger,
    started: BTreeSet<(StepId, u32)>,
    alive: BTreeSet<(StepId, u32)>,
    records: BTreeMap<(StepId, u32), AttemptReport>,
    /// Attempts whose changes are in the repository.
    commits: BTreeSet<(StepId, u32)>,
    sent: Vec<(Input, bool)>,
    pub coverage: BTreeMap<(&'static str, String), u64>,
    pub story: Vec<String>,
    pub tell: bool,
    pub events: u64,
    pub crashes: u64,
    skipped: bool,
}

type Outcomes = Result<(), String>;

impl World {
    pub fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let plan = random_plan(&mut random);
        let weather = if random.chance(15) { Weather::Sunny } else { Weather::Stormy };
        let state = State::new(&plan);
        World {
            shadow: state.clone(),
            state,
            plan,
            random,
            weather,
            now: Timestamp(1_000),
            log: Vec::new(),
            ledger: Ledger::default(),
            started: BTreeSet::new(),
            alive: BTreeSet::new(),
            records: BTreeMap::new(),
            commits: BTreeSet::new(),
            sent: Vec::new(),
            coverage: BTreeMap::new(),
            story: Vec::new(),
            tell: false,
            events: 0,
            crashes: 0,
            skipped: false,
        }
    }

    /// A whole life: the storm, then everything heals.
    pub fn live(&mut self) -> Outcomes {
        while self.log.is_empty() {
            self.feed(Input::Start { run: "run".to_owned(), request: "do it".to_owned() }, false)?;
        }
        let turns = self.random.between(5, 70);
        for _ in 0..turns {
            if self.state.is_over() {
                break;
            }
            self.turn()?;
        }
        let sunny = self.weather == Weather::Sunny;
        self.weather = Weather::Healing;
        self.heal()?;
        self.full_replay()?;
        if sunny && !self.skipped {
            let status = self.state.status();
            let excused = status == RunStatus::Blocked && self.blocked_by_plan();
            if status != RunStatus::Done && !excused {
                return Err(format!("nothing failed, yet the run is {status:?}"));
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> Outcomes {
        match self.random.below(100) {
            0..=69 => self.act(),
            70..=84 => self.time_passes(),
            85..=92 => self.person(),
            93..=96 => match self.random.pick(&self.sent).cloned() {
                Some((input, by_person)) => self.feed(input, by_person),
                None => Ok(()),
            },
            _ => {
                let everything = self.log.len();
                self.crash(everything)
            }
        }
    }

    fn time_passes(&mut self) -> Outcomes {
        let wake = wanted(&self.plan, &self.state, self.now).wake_at;
        self.now = match self.random.below(10) {
            // Somebody sets the clock back.
            0 => Timestamp(self.now.0.saturating_sub(self.random.below(3_000))),
            1 => self.now.plus_ms(100_000),
            2..=5 if wake.is_some() => wake.unwrap_or(self.now).min(self.now.plus_ms(200_000)),
            _ => self.now.plus_ms(self.random.below(3_000)),
        };
        self.feed(Input::Tick, false)
    }

    /// Does one of the things that are wanted.
    fn act(&mut self) -> Outcomes {
        let effects = wanted(&self.plan, &self.state, self.now).effects;
        match self.random.pick(&effects).cloned() {
            Some(effect) => self.perform(&effect),
            None => self.time_passes(),
        }
    }

    fn perform(&mut self, effect: &Effect) -> Outcomes {
        match effect {
            Effect::Run { step, attempt } => self.run_attempt(step, *attempt),
            Effect::Check { step, attempt, check } => {
                let ok = self.weather != Weather::Stormy || self.random.chance(75);
                let message = if self.random.chance(50) { "red" } else { "very red" };
                let fact = checked(ok, message);
                let (step, check) = (step.clone(), check.clone());
                self.feed(Input::CheckEnded { step, attempt: *attempt, check, fact }, false)
            }
            Effect::Commit { step, attempt } => self.commit(step, *attempt),
            Effect::Evaluate { step, gate } => {
                let value = match self.random.below(10) {
                    _ if self.weather != Weather::Stormy => Ok(true),
                    0 => Err("undefined".to_owned()),
                    1..=3 => Ok(false),
                    _ => Ok(true),
                };
                self.feed(Input::Evaluated { step: step.clone(), gate: gate.clone(), value }, false)
            }
            Effect::ReadList { step } => {
                let items = self.list();
                self.feed(Input::ListRead { step: step.clone(), hash: hash("list"), items }, false)
            }
            Effect::Bind { decision } => {
                let shown = &self.state.decisions[decision].decision.show;
                let bound = shown.iter().map(|name| (name.clone(), hash("tree"))).collect();
                let pending = &self.state.decisions[decision].decision;
                let question = pending.to_render.then(|| Ok(pending.question.clone()));
                self.feed(Input::Bound { decision: decision.clone(), bound, question }, false)
            }
            Effect::Ask { decision } => {
                if self.weather == Weather::Stormy && self.random.chance(40) {
                    return Ok(());
                }
                self.answer(decision.as_str())
            }
            Effect::Stop { step, attempt } => {
                let key = (step.clone(), *attempt);
                self.alive.remove(&key);
                let stopped = AttemptReport::new(ProcessEnd::Stopped);
                let report = self.records.entry(key).or_insert(stopped).clone();
                self.feed(Input::AttemptEnded { step: step.clone(), attempt: *attempt, report }, false)
            }
        }
    }

    /// The repository outlives the engine: a commit that is there is found, never made again.
    fn commit(&mut self, step: &StepId, attempt: u32) -> Outcomes {
        let key = (step.clone(), attempt);
        let stormy = self.weather == Weather::Stormy;
        let known = self.commits.contains(&key);
        let fact = match self.random.below(10) {
            0 if stormy && !known => CommitFact::Refused { message: "`.env` looks like a secret".to_owned() },
            1 if !known => CommitFact::Nothing,
            _ => {
                self.commits.insert(key);
                CommitFact::Made { commit: "c0ffee".to_owned(), branch: "b".to_owned(), files: 1 }
            }
        };
        // The engine may die between the commit and its record.
        if stormy && self.random.chance(15) {
            let everything = self.log.len();
            return self.crash(everything);
        }
        self.feed(Input::CommitEnded { step: step.clone(), attempt, fact }, false)
    }

    fn run_attempt(&mut self, step: &StepId, attempt: u32) -> Outcomes {
        let key = (step.clone(), attempt);
        if self.started.insert(key.clone()) {
            self.alive.insert(key);
            return Ok(());
        }
        if self.alive.contains(&key) {
            if self.weather == Weather::Stormy && self.random.chance(30) {
                return Ok(());
            }
            self.alive.remove(&key);
            let report = self.report(step);
            self.records.insert(key.clone(), report);
        }
        // A process that vanished with the machine left no record.
        let lost = AttemptReport::new(ProcessEnd::Interrupted);
        let report = self.records.entry(key).or_insert(lost).clone();
        self.feed(Input::AttemptEnded { step: step.clone(), attempt, report }, false)
    }

    fn report(&mut self, step: &StepId) -> AttemptReport {
        let definition = self.state.definition(&self.plan, step);
        let writes = definition.is_some_and(|definition| !definition.writes.is_empty());
        let command = definition.is_some_and(|definition| matches!(definition.kind, Kind::Check { .. }));
        let back = definition.and_then(|definition| definition.back.first().cloned());
        let reviewer = definition.is_some_and(|definition| matches!(definition.kind, Kind::Review(_)))
            || self.state.panel_of(&self.plan, step).is_some();
        let mut report = match self.weather {
            Weather::Stormy if reviewer && self.random.chance(40) => self.demands(),
            Weather::Stormy => self.any_report(back),
            Weather::Sunny | Weather::Healing => reply(Outcome::Done),
        };
        if command {
            let ok = self.weather != Weather::Stormy || self.random.chance(70);
            report.check = Some(checked(ok, "red"));
        }
        let dry = self.weather == Weather::Stormy && self.random.chance(8);
        if writes && report.reply.is_some() && !dry {
            let content = if self.random.chance(70) { "one" } else { "two" };
            report = writing(report, &[("out.md", content)]);
        } else if writes && report.reply.is_some() {
            report = writing(report, &[("out.md", "")]);
        }
        if let (Some(artifact), true) = (self.state.artifacts.get("out.md"), self.random.chance(60)) {
            report.inputs.push(("out.md".into(), artifact.hash.clone()));
        }
        report.usage = self.random.chance(70).then_some(Usage { tokens: Some(100), micro_usd: Some(50_000) });
        report.work = self.random.chance(80).then(|| hash(&format!("work{}", self.random.below(3))));
        report
    }

    fn any_report(&mut self, back: Option<StepId>) -> AttemptReport {
        let blank = |ended| AttemptReport::new(ended);
        match self.random.below(32) {
            0 => blank(ProcessEnd::Interrupted),
            1 => blank(ProcessEnd::TimedOut),
            2 => blank(ProcessEnd::Idle),
            3 => blank(ProcessEnd::Exited { code: 1 }),
            4 => blank(ProcessEnd::Exited { code: 0 }),
            5 => blank(ProcessEnd::StartFailed { message: "no such program".to_owned() }),
            6 => {
                let until = Timestamp((self.now.0 + 4_000).saturating_sub(self.random.below(5_000)));
                AttemptReport { quota_until: Some(until), ..blank(ProcessEnd::Exited { code: 1 }) }
            }
            7 => missing(&mut self.random),
            8 => reply(Outcome::Error),
            9 => reply(Outcome::NeedsInput),
            10 | 11 => asking(self.random.between(1, 3)),
            12 => {
                let mut report = reply(Outcome::Blocked);
                let complex = self.random.chance(50);
                if let (Some(reply), true) = (&mut report.reply, complex) {
                    reply.reason = Some("complexity".to_owned());
                }
                report
            }
            13..=17 => self.demands(),
            18 => findings(Outcome::Passed, &[Severity::Low]),
            19 => with_reply(|reply| reply.findings = vec![Finding::new(Severity::Critical, "bad")]),
            20 | 21 if back.is_some() => with_reply(|reply| reply.back_to = back),
            22 => with_reply(|reply| reply.back_to = Some("nowhere".into())),
            23 => AttemptReport {
                contradictions: vec!["src/x does not exist".to_owned()],
                ..reply(Outcome::Done)
            },
            _ => reply(Outcome::Done),
        }
    }

    /// A reviewer is not content, or an agent reports failure.
    fn demands(&mut self) -> AttemptReport {
        let count = self.random.between(0, 2) as usize;
        let mut report = findings(Outcome::Failed, &vec![Severity::High; count]);
        let word = self.random.below(2);
        for finding in report.reply.iter_mut().flat_map(|reply| &mut reply.findings) {
            finding.problem = format!("problem {word}");
        }
        report
    }

    fn list(&mut self) -> Result<Vec<Item>, String> {
        let bad = self.weather == Weather::Stormy && self.random.chance(12);
        if bad && self.random.chance(50) {
            return Err("not a list".to_owned());
        }
        // Mostly the same list again: what was done for it may be kept.
        let again = self.state.set_aside.values().next().cloned().unwrap_or_default();
        if !bad && !again.is_empty() && self.random.chance(70) {
            let kept = again.iter().filter(|_| self.random.chance(85)).map(|(key, aside)| (key, aside));
            let kept: BTreeMap<_, _> = kept.collect();
            let needs = |aside: &ItemAside| {
                aside.needs.iter().filter(|need| kept.contains_key(*need)).cloned().collect()
            };
            return Ok(kept
                .iter()
                .map(|(key, aside)| Item {
                    key: (*key).clone(),
                    needs: needs(aside),
                    element: Some(aside.element.clone()),
                })
                .collect());
        }
        let count = self.random.between(0, 4);
        let mut items: Vec<Item> = (0..count)
            .map(|place| {
                let needs = (0..place).filter(|_| self.random.chance(40)).map(|other| format!("k{other}"));
                let needs: Vec<String> = needs.collect();
                let word = self.random.below(2);
                let element = self.random.chance(90).then(|| hash(&format!("k{place} {word}")));
                Item { key: format!("k{place}"), needs, element }
            })
            .collect();
        if let (true, Some(first)) = (bad, items.first_mut()) {
            first.needs.push("k9".to_owned());
        }
        Ok(items)
    }

    fn answer(&mut self, decision: &str) -> Outcomes {
        let Some(state) = self.state.decisions.get(decision) else { return Ok(()) };
        let answers = state.decision.answers.clone();
        let word = match self.weather {
            Weather::Stormy if self.random.chance(10) => Some("hmm".to_owned()),
            Weather::Stormy => self.random.pick(&answers).map(|answer| answer.word.clone()),
            Weather::Sunny | Weather::Healing => {
                answers.iter().min_by_key(|answer| passing(&answer.effect)).map(|answer| answer.word.clone())
            }
        };
        let answer = input::Answer {
            decision: decision.into(),
            value: word.unwrap_or_else(|| "some text".to_owned()),
            comment: (self.weather == Weather::Healing || self.random.chance(20))
                .then(|| "because".to_owned()),
            route: None,
            confirmed: self.weather != Weather::Stormy || self.random.chance(80),
            channel: "terminal".to_owned(),
            seen: BTreeMap::new(),
        };
        self.feed(Input::Answer(answer), true)
    }

    /// What people do without being asked.
    fn person(&mut self) -> Outcomes {
        if self.weather == Weather::Sunny {
            return self.act();
        }
        let steps: Vec<StepId> = self.state.steps.keys().cloned().collect();
        let decisions: Vec<_> = self.state.decisions.keys().cloned().collect();
        let input = match self.random.below(18) {
            0 | 1 => Input::Stop,
            2..=6 => Input::Resume { raise: self.raise(), substitutes: BTreeMap::new() },
            7 => Input::RestartStage { stage: "stage0".into(), reason: "again".to_owned() },
            8 => Input::RestartStage { stage: "stage1".into(), reason: "again".to_owned() },
            9 | 10 => match self.random.pick(&steps) {
                Some(step) => Input::Skip { step: step.clone(), reason: "not needed".to_owned() },
                None => Input::Tick,
            },
            11 => match self.random.pick(&decisions) {
                Some(decision) => {
                    Input::CancelDecision { decision: decision.clone(), reason: "later".to_owned() }
                }
                None => Input::Tick,
            },
            12 => match self.random.pick(&decisions) {
                Some(decision) => Input::GiveUpDecision { decision: decision.clone() },
                None => Input::Tick,
            },
            13 => Input::Adopt { digest: "same".to_owned() },
            14 | 15 => match self.closed_gate() {
                Some(waiver) => waiver,
                None => Input::Tick,
            },
            16 if self.random.chance(20) => Input::Abort { reason: "enough".to_owned() },
            _ => match self.random.pick(&decisions).cloned() {
                Some(decision) => return self.answer(decision.as_str()),
                None => Input::Tick,
            },
        };
        self.feed(input, true)
    }

    fn raise(&mut self) -> Raise {
        let more = self.weather == Weather::Healing || self.random.chance(50);
        let much = if self.weather == Weather::Healing { u64::MAX / 4 } else { 1_000_000 };
        let limit = more.then_some(much);
        // Only what is limited can be raised, and only to more than it is.
        let paused = match &self.state.phase {
            RunPhase::Paused(Pause::Budget { scope: Some(step), .. }) => ScopeId(step.as_str().to_owned()),
            _ => ScopeId::top(),
        };
        let known = [ScopeId::top(), paused].map(|scope| self.state.budgets.get(&scope).cloned());
        let known = known.iter().flatten();
        let top = |of: fn(&Budget) -> Option<u64>| {
            let most = known.clone().filter_map(of).max();
            most.and(limit).map(|limit| limit.max(most.unwrap_or(0) + 1))
        };
        Raise {
            wall_ms: top(|budget| budget.wall_ms),
            tokens: top(|budget| budget.tokens),
            micro_usd: top(|budget| budget.micro_usd),
            launches: top(|budget| budget.launches),
            quota_wait_ms: None,
        }
    }

    /// The waiver of some gate that blocks a step.
    fn closed_gate(&mut self) -> Option<Input> {
        let shut = |own: &StepState| matches!(own.phase, Phase::Blocked { reason: BlockReason::Gate, .. });
        let steps: Vec<StepId> =
            self.state.steps.iter().filter(|(_, own)| shut(own)).map(|(id, _)| id.clone()).collect();
        let step = self.random.pick(&steps)?.clone();
        let gates: Vec<_> =
            self.state.definition(&self.plan, &step)?.gates.iter().map(|gate| gate.id.clone()).collect();
        let gate = self.random.pick(&gates)?.clone();
        Some(Input::WaiveGate { step, gate: Some(gate), reason: "it is fine".to_owned() })
    }

    /// An input reaches the engine; perhaps the engine dies before all of it is durable.
    fn feed(&mut self, input: Input, by_person: bool) -> Outcomes {
        self.skipped |= matches!(input, Input::Skip { .. } | Input::Stop | Input::Abort { .. });
        if self.tell {
            self.story.push(format!(
                "{} <- {}",
                self.now.0,
                serde_json::to_string(&input).unwrap_or_default()
            ));
        }
        if self.sent.len() < 40 {
            self.sent.push((input.clone(), by_person));
        }
        let events = match advance(&self.plan, &mut self.state, &input, self.now) {
            Ok(events) => events,
            Err(refused) => {
                self.tell_refusal(&refused);
                return require(self.state == self.shadow, || "a refusal changed something".to_owned());
            }
        };
        let durable = self.log.len();
        for event in &events {
            self.see(event, !by_person)?;
        }
        require(self.state == self.shadow, || self.difference())?;
        let dies = self.weather != Weather::Healing && self.random.chance(6);
        if dies {
            let kept = durable + self.random.below(events.len() as u64 + 1) as usize;
            return self.crash(kept);
        }
        Ok(())
    }

    fn tell_refusal(&mut self, refused: &Rejected) {
        if self.tell {
            self.story.push(format!("     refused: {refused}"));
        }
    }

    /// One event becomes durable: everything that must hold is checked.
    fn see(&mut self, event: &Event, automatic: bool) -> Outcomes {
        self.events += 1;
        if self.tell {
            self.story.push(format!("     {}", serde_json::to_string(event).unwrap_or_default()));
        }
        if let Some(phase) = subject(event).and_then(|step| self.shadow.steps.get(step)).map(|own| &own.phase)
        {
            *self.coverage.entry((phase_word(phase), event_word(event))).or_default() += 1;
        }
        self.ledger.see(&self.plan, &self.shadow, event, automatic)?;
        self.shadow.apply(&self.plan, event, self.now);
        self.log.push((self.now, event.clone(), automatic));
        invariants::check(&self.plan, &self.shadow)
    }

    fn difference(&self) -> String {
        let (live, read) = (format!("{:#?}", self.state), format!("{:#?}", self.shadow));
        let lines = live.lines().zip(read.lines()).filter(|(live, read)| live != read);
        format!("replay differs: {:?}", lines.take(3).collect::<Vec<_>>())
    }

    fn crash(&mut self, kept: usize) -> Outcomes {
        self.crashes += 1;
        self.log.truncate(kept);
        if self.tell {
            self.story.push(format!("     crash; {kept} events are durable"));
        }
        if self.random.chance(30) {
            self.alive.clear();
        }
        self.now = self.now.plus_ms(self.random.below(5_000));
        self.full_replay()?;
        if self.log.is_empty() { Ok(()) } else { self.feed(Input::Tick, false) }
    }

    /// The journal is read from the beginning, through its text.
    fn full_replay(&mut self) -> Outcomes {
        self.ledger = Ledger::default();
        let mut folded = State::new(&self.plan);
        for (at, event, automatic) in &self.log {
            self.ledger.see(&self.plan, &folded, event, *automatic)?;
            folded.apply(&self.plan, event, *at);
        }
        let text: Vec<(Timestamp, String)> = self
            .log
            .iter()
            .map(|(at, event, _)| (*at, serde_json::to_string(event).unwrap_or_default()))
            .collect();
        let parsed: Result<Vec<(Timestamp, Event)>, _> =
            text.iter().map(|(at, text)| serde_json::from_str(text).map(|event| (*at, event))).collect();
        let parsed = parsed.map_err(|error| error.to_string())?;
        let (read, _) =
            replay(&self.plan, parsed, |_| Some(&self.plan)).map_err(|error| error.to_string())?;
        require(read == folded, || "the journal's text says something else".to_owned())?;
        self.state = read;
        self.shadow = folded;
        Ok(())
    }

    /// Everything succeeds from now on: the run must come to an end, or say what stops it.
    fn heal(&mut self) -> Outcomes {
        let mut resumes = 0;
        for _ in 0..3_000 {
            let wanted = wanted(&self.plan, &self.state, self.now);
            if let Some(effect) = wanted.effects.first() {
                self.perform(effect)?;
                continue;
            }
            if self.state.is_over() {
                return Ok(());
            }
            if let Some(at) = wanted.wake_at {
                self.now = at.max(self.now).plus_ms(1);
                self.feed(Input::Tick, false)?;
                continue;
            }
            let said = explain_run(&self.plan, &self.state);
            require(!said.because.is_empty(), || "nobody knows why it rests".to_owned())?;
            if resumes >= 8 {
                return self.rests_rightly();
            }
            resumes += 1;
            // A closed gate is no dead end: a person can waive it. Which one it is they have to find out.
            for _ in 0..20 {
                if let Some(waiver) = self.closed_gate() {
                    self.feed(waiver, true)?;
                }
            }
            let raise = self.raise();
            self.feed(Input::Resume { raise, substitutes: BTreeMap::new() }, true)?;
        }
        Err("it never comes to rest".to_owned())
    }

    /// People have waived, answered and resumed, and everything succeeds: nothing may stop it.
    fn rests_rightly(&self) -> Outcomes {
        let status = self.state.status();
        Err(format!("it rests as {status:?}: {:?}", blocked_by(&self.plan, &self.state)))
    }

    fn blocked_by_plan(&self) -> bool {
        let by = blocked_by(&self.plan, &self.state);
        by.is_some_and(|by| by.reason == "gate")
    }
}

fn require(holds: bool, problem: impl FnOnce() -> String) -> Outcomes {
    if holds { Ok(()) } else { Err(problem()) }
}

fn with_reply(edit: impl FnOnce(&mut Reply)) -> AttemptReport {
    let mut report = reply(Outcome::Done);
    if let Some(reply) = &mut report.reply {
        edit(reply);
    }
    report
}

fn asking(count: u32) -> AttemptReport {
    let mut report = reply(Outcome::NeedsInput);
    if let Some(reply) = &mut report.reply {
        reply.questions = (0..count)
            .map(|place| Question {
                question: format!("question {place}?"),
                options: if place == 1 { vec!["left".to_owned(), "right".to_owned()] } else { Vec::new() },
                recommendation: None,
                security: place == 2,
            })
            .collect();
    }
    report
}

fn missing(random: &mut Random) -> AttemptReport {
    use gatewright_core::fact::InputProblem;
    let problem = if random.chance(50) {
        InputProblem::Missing { name: "in.md".to_owned(), near: Vec::new(), available: Vec::new() }
    } else {
        InputProblem::Changed { name: "out.md".into(), expected: hash("one"), found: hash("by hand") }
    };
    AttemptReport::new(ProcessEnd::NotStarted { problem })
}

/// The step an event is about.
fn subject(event: &Event) -> Option<&StepId> {
    match event {
        Event::AttemptStarted { step, .. }
        | Event::AttemptEnded { step, .. }
        | Event::ResultIgnored { step, .. }
        | Event::CheckEnded { step, .. }
        | Event::CommitEnded { step, .. }
        | Event::RetryScheduled { step, .. }
        | Event::Judged { step, .. }
        | Event::StepPassed { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepBlocked { step, .. }
        | Event::StepSkipped { step, .. }
        | Event::GateEvaluated { step, .. }
        | Event::GateWaived { step, .. }
        | Event::LimitRaised { step }
        | Event::FanOutStarted { step, .. }
        | Event::ItemOpened { step, .. }
        | Event::ItemKept { step, .. }
        | Event::ItemDropped { step, .. }
        | Event::ItemEnded { step, .. }
        | Event::GroupOpened { step }
        | Event::QuotaWaiting { step, .. }
        | Event::ObligationOpened { step, .. } => Some(step),
        Event::RoundOpened { review, .. } | Event::LoopExhausted { review, .. } => Some(review),
        Event::ReferredBack { from, .. } => Some(from),
        Event::DecisionOpened { decision } => Some(&decision.step),
        Event::Invalidated { steps, .. } | Event::StageRestarted { steps, .. } => steps.first(),
        Event::RunStarted { .. }
        | Event::StopRequested
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::RunEnded { .. }
        | Event::PlanAdopted { .. }
        | Event::ProfileEscalated { .. }
        | Event::DecisionBound { .. }
        | Event::DecisionAnswered { .. }
        | Event::DecisionCancelled { .. }
        | Event::DecisionSkipped { .. }
        | Event::DecisionStaled { .. }
        | Event::BudgetRaised { .. }
        | Event::ArtifactAdopted { .. }
        | Event::MessageTaken { .. }
        | Event::MessageDropped { .. }
        | Event::ObligationWaived { .. }
        | Event::IntrusionNoticed { .. }
        | Event::ArtifactRestored { .. } => None,
    }
}
