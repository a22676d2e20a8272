//! A machine on which a run lives: a journal that survives, processes that outlive the engine, and
//! everything that goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    Rejected, advance,
    effect::Effect,
    event::Event,
    explain::{blocked_by, explain_run},
    fact::{AttemptReport, CommitFact, ListNow, ProcessEnd},
    ids::{DecisionId, StepId, Timestamp},
    input::Input,
    plan::Plan,
    replay,
    state::{RunStatus, State},
    wanted,
};

use crate::{
    common::{event_word, hash, phase_word},
    fortune::{Fortune, Weather},
    invariants,
    ledger::Ledger,
    plans::random_plan,
    random::Random,
    subject::subject,
};

pub struct World {
    plan: Plan,
    fortune: Fortune,
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
            fortune: Fortune { random, weather },
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
            self.feed(
                Input::Start {
                    run: "run".to_owned(),
                    request: "do it".to_owned(),
                    beginning: gatewright_core::event::Beginning::default(),
                },
                false,
            )?;
        }
        let turns = self.fortune.random.between(5, 70);
        for _ in 0..turns {
            if self.state.is_over() {
                break;
            }
            self.turn()?;
        }
        let sunny = self.fortune.weather == Weather::Sunny;
        self.fortune.weather = Weather::Healing;
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
        match self.fortune.random.below(100) {
            0..=66 => self.act(),
            67..=69 => self.list_changes(),
            70..=84 => self.time_passes(),
            85..=92 => self.person(),
            93..=96 => match self.fortune.random.pick(&self.sent).cloned() {
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
        self.now = match self.fortune.random.below(10) {
            // Somebody sets the clock back.
            0 => Timestamp(self.now.0.saturating_sub(self.fortune.random.below(3_000))),
            1 => self.now.plus_ms(100_000),
            2..=5 if wake.is_some() => wake.unwrap_or(self.now).min(self.now.plus_ms(200_000)),
            _ => self.now.plus_ms(self.fortune.random.below(3_000)),
        };
        self.feed(Input::Tick, false)
    }

    /// Does one of the things that are wanted.
    fn act(&mut self) -> Outcomes {
        let effects = wanted(&self.plan, &self.state, self.now).effects;
        match self.fortune.random.pick(&effects).cloned() {
            Some(effect) => self.perform(&effect),
            None => self.time_passes(),
        }
    }

    fn perform(&mut self, effect: &Effect) -> Outcomes {
        match effect {
            Effect::Run { step, attempt } => self.run_attempt(step, *attempt),
            Effect::Check { step, attempt, check } => {
                let fact = self.fortune.check();
                let (step, check) = (step.clone(), check.clone());
                self.feed(Input::CheckEnded { step, attempt: *attempt, check, fact }, false)
            }
            Effect::Commit { step, attempt } => self.commit(step, *attempt),
            Effect::Evaluate { step, gate } => {
                let value = self.fortune.gate();
                self.feed(Input::Evaluated { step: step.clone(), gate: gate.clone(), value }, false)
            }
            Effect::ReadList { step }
                if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(8) =>
            {
                let found = hash(&format!("edit {}", self.fortune.random.below(3)));
                self.feed(Input::ListEdited { step: step.clone(), name: "list.json".into(), found }, false)
            }
            Effect::ReadList { step } => {
                let items = self.fortune.list(&self.state);
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
                if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(40) {
                    return Ok(());
                }
                self.answer(decision)
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
        let known = self.commits.contains(&key);
        let fact = self.fortune.commit(known);
        if matches!(fact, CommitFact::Made { .. }) {
            self.commits.insert(key);
        }
        // The engine may die between the commit and its record.
        if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(15) {
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
            if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(30) {
                return Ok(());
            }
            self.alive.remove(&key);
            let report = self.fortune.report(&self.plan, &self.state, step, self.now);
            self.records.insert(key.clone(), report);
        }
        // A process that vanished with the machine left no record.
        let lost = AttemptReport::new(ProcessEnd::Interrupted);
        let report = self.records.entry(key).or_insert(lost).clone();
        self.feed(Input::AttemptEnded { step: step.clone(), attempt, report }, false)
    }

    fn answer(&mut self, decision: &DecisionId) -> Outcomes {
        let Some(asked) = self.state.decisions.get(decision) else { return Ok(()) };
        let answer = self.fortune.answer(decision, &asked.decision);
        self.feed(Input::Answer(answer), true)
    }

    /// Somebody edits the list of a fan-out at work, and the engine sees it.
    fn list_changes(&mut self) -> Outcomes {
        let open: Vec<StepId> = self.state.queues.fan_outs.iter().cloned().collect();
        let Some(step) = self.fortune.random.pick(&open).cloned() else { return self.act() };
        let now = match self.fortune.random.below(6) {
            0 => ListNow::AsItBegan,
            1 => ListNow::Unusable,
            word => ListNow::Changed { found: hash(&format!("list {word}")), what: "it changed".to_owned() },
        };
        self.feed(Input::ListChanged { step, name: "list.json".into(), now }, false)
    }

    /// What people do without being asked.
    fn person(&mut self) -> Outcomes {
        if self.fortune.weather == Weather::Sunny {
            return self.act();
        }
        let order = self.fortune.order(&self.plan, &self.state);
        self.feed(order, true)
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
        let dies = self.fortune.weather != Weather::Healing && self.fortune.random.chance(6);
        if dies {
            let kept = durable + self.fortune.random.below(events.len() as u64 + 1) as usize;
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
        if self.fortune.random.chance(30) {
            self.alive.clear();
        }
        self.now = self.now.plus_ms(self.fortune.random.below(5_000));
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
                if let Some(waiver) = self.fortune.closed_gate(&self.plan, &self.state) {
                    self.feed(waiver, true)?;
                }
            }
            let raise = self.fortune.raise(&self.state);
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
