//! The simulated machine: a process table that outlives the engine, a disk, a clock, and everything
//! that goes wrong. The run loop's performer and its observer.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::Duration,
};

use gatewright_core::{
    effect::Effect,
    event::Event,
    fact::{AttemptReport, CommitFact, InputProblem, ProcessEnd},
    ids::{DecisionId, StepId},
    input::Input,
    state::State,
};
use gatewright_host::{
    clock::Clock,
    disk::SimulatedDisk,
    perform::{
        Arrival, Performer,
        facts::{self, DiskFailure},
    },
    run_context::{RunContext, hash_bytes},
    run_loop::{Observer, Order},
};

use crate::{
    clock::SimulatedClock,
    fortune::{Fortune, Weather},
    lists::Lists,
    people::People,
    watcher::Watcher,
};

/// A life that never rests is cut here.
const WAITS_MAX: u32 = 30_000;
const LATE_MAX: usize = 20;

/// What the process table knows of an attempt. It is there for ever: attempts are started once.
enum Process {
    Alive { ends_ms: u64 },
    Ended(Box<AttemptReport>),
}

pub struct Machine {
    pub fortune: Fortune,
    pub disk: SimulatedDisk,
    pub clock: Arc<SimulatedClock>,
    pub context: RunContext,
    pub watcher: Watcher,
    pub people: People,
    /// Storm that is left, in waits of the engine.
    pub storm_left: u32,
    pub problem: Option<String>,
    /// Something did not go well, so that the run may end badly.
    pub something_failed: bool,
    processes: BTreeMap<(StepId, u32), Process>,
    /// Attempts whose changes are in the repository.
    commits: BTreeSet<(StepId, u32)>,
    lists: Lists,
    /// Effects of this engine by the time at which they are through.
    due: BTreeMap<(u64, u64), Effect>,
    due_count: u64,
    results: Option<Sender<Arrival>>,
    /// Results that were delivered once; some come again.
    late: Vec<Input>,
    waits: u32,
}

impl Machine {
    pub fn new(
        fortune: Fortune,
        disk: SimulatedDisk,
        clock: Arc<SimulatedClock>,
        context: RunContext,
        tell: bool,
    ) -> Machine {
        let watcher = Watcher::new(&disk, &context.paths.journal(), context.frozen.clone(), tell);
        let people = People::new(disk.clone(), context.paths.inbox(), context.meta.run_dir.clone());
        Machine {
            storm_left: 0,
            problem: None,
            something_failed: false,
            processes: BTreeMap::new(),
            commits: BTreeSet::new(),
            lists: Lists::default(),
            due: BTreeMap::new(),
            due_count: 0,
            results: None,
            late: Vec::new(),
            waits: 0,
            fortune,
            disk,
            clock,
            context,
            watcher,
            people,
        }
    }

    /// A new engine knows nothing of what the last one had under way.
    pub fn new_engine(&mut self, orders: Sender<Order>) {
        self.due.clear();
        self.results = None;
        self.people.orders = Some(orders);
    }

    /// No process survives a power cut.
    pub fn power_cut(&mut self) {
        self.disk.crash();
        for process in self.processes.values_mut() {
            if matches!(process, Process::Alive { .. }) {
                self.something_failed = true;
                *process = Process::Ended(Box::new(AttemptReport::new(ProcessEnd::Interrupted)));
            }
        }
    }

    pub fn hold(&mut self, outcome: Result<(), String>) {
        if let Err(problem) = outcome
            && self.problem.is_none()
        {
            self.problem = Some(problem);
            self.disk.halt();
        }
    }

    fn delay(&mut self) -> u64 {
        match self.fortune.random.below(10) {
            _ if self.fortune.weather == Weather::Healing => self.fortune.random.below(20),
            0..=5 => self.fortune.random.below(30),
            6..=8 => self.fortune.random.below(300),
            _ => self.fortune.random.below(4_000),
        }
    }

    fn later(&mut self, at_ms: u64, effect: &Effect) {
        self.due_count += 1;
        self.due.insert((at_ms, self.due_count), effect.clone());
    }

    fn start(&mut self, state: &State, effect: &Effect, results: &Sender<Arrival>) {
        if self.disk.is_halted() {
            return;
        }
        let durable = self.watcher.must_be(state);
        self.hold(durable);
        if self.fortune.weather != Weather::Healing && self.fortune.random.below(200) == 0 {
            self.watcher.tell(|| format!("     the engine dies before {effect:?}"));
            self.disk.halt();
            return;
        }
        self.watcher.tell(|| format!("     start {effect:?}"));
        self.results.get_or_insert_with(|| results.clone());
        let now = self.clock.monotonic_ms();
        let ends_ms = now + self.delay();
        match effect {
            Effect::Ask { .. } => {}
            Effect::Run { step, attempt } => {
                let key = (step.clone(), *attempt);
                let at = match self.processes.entry(key).or_insert(Process::Alive { ends_ms }) {
                    Process::Alive { ends_ms } => *ends_ms,
                    Process::Ended(_) => now,
                };
                self.later(at, effect);
            }
            Effect::Check { .. }
            | Effect::Commit { .. }
            | Effect::Evaluate { .. }
            | Effect::ReadList { .. }
            | Effect::Bind { .. }
            | Effect::Stop { .. } => self.later(ends_ms, effect),
        }
    }

    /// The engine rests, the world does not.
    fn go_on(&mut self, at_most: Duration) {
        let at_most = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX).max(1);
        self.waits += 1;
        if self.waits > WAITS_MAX {
            self.hold(Err("it never comes to rest".to_owned()));
        }
        if self.disk.is_halted() {
            self.clock.pass(at_most);
            return;
        }
        if self.fortune.weather != Weather::Healing {
            self.storm_left = self.storm_left.saturating_sub(1);
            if self.storm_left == 0 {
                self.people.leave();
            }
        }
        self.people.act(&mut self.fortune, &self.context.frozen.plan, &self.watcher.shadow, &self.clock);
        if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(2) {
            self.lists.edit(&self.context, &self.watcher.shadow, &self.disk, &mut self.fortune);
        }
        self.jump();
        let now = self.clock.monotonic_ms();
        match self.due.first_key_value().map(|((at, _), _)| *at) {
            Some(at) if at <= now + at_most => {
                self.clock.pass(at.saturating_sub(now));
                self.deliver(at.max(now));
            }
            // Nobody promises that a machine wakes in time.
            Some(at) => self.clock.pass(at_most.max(self.fortune.random.below(at - now + 1))),
            None => self.clock.pass(at_most * (1 + self.fortune.random.below(40))),
        }
        if self.fortune.weather == Weather::Stormy && self.fortune.random.chance(3) {
            let again = self.fortune.random.pick(&self.late).cloned();
            if let (Some(input), Some(results)) = (again, &self.results) {
                self.watcher.tell(|| format!("     again {input:?}"));
                let _ = results.send(Arrival { effect: None, input });
            }
        }
    }

    fn jump(&mut self) {
        if self.fortune.weather == Weather::Stormy && self.fortune.random.below(60) == 0 {
            let by = [-3_600_000, 3_600_000, -2_000, 100_000][self.fortune.random.below(4) as usize];
            self.watcher.tell(|| format!("     the clock jumps by {by} ms"));
            self.clock.jump(by);
        }
    }

    /// Everything that is through at this time, in any order.
    fn deliver(&mut self, now_ms: u64) {
        let mut through: Vec<(u64, u64)> =
            self.due.range(..=(now_ms, u64::MAX)).map(|(key, _)| *key).collect();
        while !through.is_empty() {
            let place = self.fortune.random.below(through.len() as u64) as usize;
            let Some(effect) = self.due.remove(&through.swap_remove(place)) else { continue };
            let Some(input) = self.result(&effect) else { continue };
            let twice = self.fortune.weather == Weather::Stormy && self.fortune.random.chance(5);
            let Some(results) = &self.results else { continue };
            if twice {
                let _ = results.send(Arrival { effect: None, input: input.clone() });
            }
            if self.late.len() < LATE_MAX {
                self.late.push(input.clone());
            }
            let _ = results.send(Arrival { effect: Some(effect), input });
        }
    }

    fn result(&mut self, effect: &Effect) -> Option<Input> {
        Some(match effect {
            Effect::Run { step, attempt } => {
                let report = self.end_of(step, *attempt);
                Input::AttemptEnded { step: step.clone(), attempt: *attempt, report }
            }
            Effect::Stop { step, attempt } => {
                let key = (step.clone(), *attempt);
                let stopped = || Process::Ended(Box::new(AttemptReport::new(ProcessEnd::Stopped)));
                let process = self.processes.entry(key).or_insert_with(stopped);
                if matches!(process, Process::Alive { .. }) {
                    *process = stopped();
                }
                let Process::Ended(report) = process else { return None };
                Input::AttemptEnded { step: step.clone(), attempt: *attempt, report: (**report).clone() }
            }
            Effect::Check { step, attempt, check } => {
                let fact = self.fortune.check();
                self.something_failed |= !fact.ok;
                Input::CheckEnded { step: step.clone(), attempt: *attempt, check: check.clone(), fact }
            }
            Effect::Commit { step, attempt } => {
                let key = (step.clone(), *attempt);
                let fact = self.fortune.commit(self.commits.contains(&key));
                if matches!(fact, CommitFact::Made { .. }) {
                    self.commits.insert(key);
                }
                Input::CommitEnded { step: step.clone(), attempt: *attempt, fact }
            }
            Effect::Evaluate { step, gate } => {
                let value = self.fortune.gate();
                self.something_failed |= value != Ok(true);
                Input::Evaluated { step: step.clone(), gate: gate.clone(), value }
            }
            Effect::ReadList { step } => {
                let (context, state) = (&self.context, &self.watcher.shadow);
                let Some(read) = self.lists.read(context, state, step, &self.disk, &mut self.fortune) else {
                    self.later(self.clock.monotonic_ms() + 1, effect);
                    return None;
                };
                read
            }
            Effect::Bind { decision } => {
                let show = self.watcher.shadow.decisions.get(decision)?.decision.show.clone();
                let Ok(bound) = facts::shown(&self.context, &self.context.meta.root, &show) else {
                    self.later(self.clock.monotonic_ms() + 1, effect);
                    return None;
                };
                let pending = &self.watcher.shadow.decisions.get(decision)?.decision;
                let question = pending.to_render.then(|| Ok(pending.question.clone()));
                Input::Bound { decision: decision.clone(), bound, question }
            }
            Effect::Ask { .. } => return None,
        })
    }

    /// The attempt ends, or has ended: its record never changes.
    fn end_of(&mut self, step: &StepId, attempt: u32) -> AttemptReport {
        let key = (step.clone(), attempt);
        if let Some(Process::Ended(report)) = self.processes.get(&key) {
            return (**report).clone();
        }
        let (plan, state) = (&self.context.frozen.plan, &self.watcher.shadow);
        let mut report = self.fortune.report(plan, state, step, self.clock.now());
        self.leave_files(step, attempt, &mut report);
        self.something_failed |= self.fortune.weather == Weather::Stormy;
        self.processes.insert(key, Process::Ended(Box::new(report.clone())));
        report
    }

    /// What an attempt wrote is there, with its hash; what somebody changed by hand is changed.
    fn leave_files(&mut self, step: &StepId, attempt: u32, report: &mut AttemptReport) {
        let out = self.context.paths.attempt(step.as_str(), attempt).join("out");
        for artifact in &mut report.artifacts {
            if let Some(written) = &artifact.hash {
                let bytes = written.0.clone().into_bytes();
                self.disk.overwrite(&out.join(artifact.name.as_str()), &bytes);
                artifact.hash = Some(hash_bytes(&bytes));
            }
        }
        let ProcessEnd::NotStarted { problem } = &mut report.ended else { return };
        let InputProblem::Changed { name, found, expected } = problem else { return };
        let path: PathBuf = self.context.meta.run_dir.join(name.as_str());
        match self.disk.peek(&path) {
            Some(bytes) => {
                *expected = hash_bytes(&bytes);
                let by_hand = format!("by hand {step} {attempt}").into_bytes();
                *found = hash_bytes(&by_hand);
                self.disk.overwrite(&path, &by_hand);
            }
            None => {
                let name = name.as_str().to_owned();
                *problem = InputProblem::Missing { name, near: Vec::new(), available: Vec::new() };
            }
        }
    }
}

/// The machine as the run loop's performer.
pub struct Hands(pub Rc<RefCell<Machine>>);

impl Performer for Hands {
    fn start(
        &mut self,
        _context: &RunContext,
        state: &State,
        effect: &Effect,
        results: &Sender<Arrival>,
    ) -> Result<(), DiskFailure> {
        self.0.borrow_mut().start(state, effect, results);
        Ok(())
    }

    fn wait(&mut self, results: &Receiver<Arrival>, at_most: Duration) -> Vec<Arrival> {
        self.0.borrow_mut().go_on(at_most);
        results.try_iter().collect()
    }
}

/// The watcher as the run loop's observer.
pub struct Eyes(pub Rc<RefCell<Machine>>);

impl Observer for Eyes {
    fn events(&mut self, _context: &RunContext, state: &State, _events: &[Event]) {
        let mut machine = self.0.borrow_mut();
        if !machine.disk.is_halted() {
            let outcome = machine.watcher.must_be(state);
            machine.hold(outcome);
        }
    }

    fn asked(&mut self, _context: &RunContext, _state: &State, open: &BTreeSet<DecisionId>) {
        let mut machine = self.0.borrow_mut();
        let pending = &machine.watcher.shadow.queues.pending_decisions;
        let stray = open.iter().find(|id| !pending.contains(*id)).cloned();
        if let (Some(id), false) = (stray, machine.disk.is_halted()) {
            machine.hold(Err(format!("{id} is asked and nobody has to answer it")));
        }
    }

    fn tick(&mut self, _context: &RunContext, _state: &State) {}

    fn warn(&mut self, text: &str) {
        self.0.borrow_mut().watcher.tell(|| format!("     {text}"));
    }
}
