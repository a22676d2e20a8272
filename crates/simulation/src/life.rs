//! One life of a run: engines come and go through a storm, then everything heals and it must end.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    sync::mpsc::channel,
};

use gatewright_core::{
    explain::{blocked_by, explain_run},
    input::Input,
    state::{RunPhase, RunStatus},
};
use gatewright_host::{
    disk::{Disk, SimulatedDisk},
    document::{self, Extent},
    journal::JournalError,
    run_context::{RunContext, hash_bytes},
    run_loop::{EngineError, Order, Rest, RunLoop},
};
use gatewright_workflow::projection;

use crate::{
    clock::SimulatedClock,
    fortune::{Fortune, Weather},
    machine::{Eyes, Hands, Machine},
    plans::random_plan,
    random::Random,
    setting,
    watcher::Coverage,
};

/// Engines in the storm, and after it.
const ENGINES_MAX: u32 = 40;
const RESUMES_MAX: u32 = 8;

/// What a life was like.
pub struct Lived {
    pub outcome: Result<(), String>,
    pub events: u64,
    pub engines: u64,
    pub crashes: u64,
    pub disk_errors: u64,
    pub ended: &'static str,
    pub coverage: Coverage,
    pub story: Vec<String>,
    /// Plan and journal as they are on disk at the end, when the story was wanted.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// Lives the life of a seed. With `tell` its story is kept, event by event.
pub fn live(seed: u64, tell: bool) -> Lived {
    let lived = Life::new(seed, tell).map(|mut life| {
        let outcome = life.live();
        life.lived(outcome)
    });
    lived.unwrap_or_else(|problem| Lived {
        outcome: Err(problem),
        events: 0,
        engines: 0,
        crashes: 0,
        disk_errors: 0,
        ended: "not born",
        coverage: Coverage::new(),
        story: Vec::new(),
        files: Vec::new(),
    })
}

struct Life {
    machine: Rc<RefCell<Machine>>,
    context: RunContext,
    disk: SimulatedDisk,
    adopts: bool,
    engines: u64,
    crashes: u64,
    disk_errors: u64,
    /// An opener could not make durable what it found. Whoever opens next cannot know that; only a power cut shows
    /// what is there (see `Journal::open`).
    disk_lies: Cell<bool>,
}

/// How an engine ended.
enum End {
    Rested,
    Left,
    Died,
}

impl Life {
    fn new(seed: u64, tell: bool) -> Result<Life, String> {
        let mut random = Random::new(seed);
        let plan = random_plan(&mut random);
        let weather = if random.chance(15) { Weather::Sunny } else { Weather::Stormy };
        let (projected, adopts) = (random.chance(12), random.chance(8));
        let disk = SimulatedDisk::new(seed);
        let clock = Arc::new(SimulatedClock::new());
        let frozen = setting::frozen(plan, projected)?;
        let context = setting::context(Arc::new(disk.clone()), clock.clone(), frozen)?;
        if adopts {
            setting::store_second(&disk, &context)?;
        }
        let storm = random.between(5, 90);
        let fortune = Fortune { random, weather };
        let mut machine = Machine::new(fortune, disk.clone(), clock, context.clone(), tell);
        machine.storm_left = storm;
        let machine = Rc::new(RefCell::new(machine));
        Ok(Life {
            machine,
            context,
            disk,
            adopts,
            engines: 0,
            crashes: 0,
            disk_errors: 0,
            disk_lies: Cell::new(false),
        })
    }

    fn lived(self, outcome: Result<(), String>) -> Lived {
        let mut machine = self.machine.borrow_mut();
        let told = machine.watcher.story.is_some();
        let files = |life: &Life| {
            let plan = serde_json::to_vec(&*life.context.frozen).unwrap_or_default();
            let journal = life.disk.peek(&life.context.paths.journal()).unwrap_or_default();
            vec![("plan.json", plan), ("journal.jsonl", journal)]
        };
        Lived {
            files: if told { files(&self) } else { Vec::new() },
            outcome,
            events: machine.watcher.events,
            engines: self.engines,
            crashes: self.crashes,
            disk_errors: self.disk_errors,
            ended: document::status_word(&machine.watcher.shadow),
            coverage: std::mem::take(&mut machine.watcher.coverage),
            story: machine.watcher.story.take().unwrap_or_default(),
        }
    }

    fn live(&mut self) -> Result<(), String> {
        let sunny = self.machine.borrow().fortune.weather == Weather::Sunny;
        for _ in 0..ENGINES_MAX {
            if self.machine.borrow().storm_left == 0 || self.machine.borrow().watcher.shadow.is_over() {
                break;
            }
            let end = self.engine()?;
            self.after(end)?;
        }
        self.machine.borrow_mut().fortune.weather = Weather::Healing;
        self.heal()?;
        self.check_end(sunny)
    }

    /// One engine from its start to its end, with perhaps a fault on its way.
    fn engine(&mut self) -> Result<End, String> {
        self.engines += 1;
        let (sender, orders) = channel();
        let stay = {
            let mut machine = self.machine.borrow_mut();
            machine.new_engine(sender);
            self.place_fault(&mut machine);
            machine.watcher.tell(|| format!("engine {}", self.engines));
            machine.fortune.weather != Weather::Healing && machine.fortune.random.chance(30)
        };
        let outcome = self.drive(&orders, stay);
        let mut machine = self.machine.borrow_mut();
        machine.people.orders = None;
        if let Some(problem) = machine.problem.take() {
            return Err(problem);
        }
        match outcome {
            Ok(Rest::AtRest) => Ok(End::Rested),
            Ok(Rest::Left) => Ok(End::Left),
            Err(_) if self.disk.has_failed() => Ok(End::Died),
            Err(problem) => Err(format!("the engine failed and nothing was wrong: {problem}")),
        }
    }

    fn drive(&self, orders: &std::sync::mpsc::Receiver<Order>, stay: bool) -> Result<Rest, String> {
        let hands = || Hands(self.machine.clone());
        let told = |error: EngineError| {
            self.machine.borrow_mut().watcher.tell(|| format!("     {error}"));
            error.to_string()
        };
        let born = self.disk.exists(&self.context.paths.journal()).unwrap_or(false);
        let mut engine = if born {
            let opened = RunLoop::open(self.context.clone(), hands(), None);
            self.disk_lies.set(matches!(&opened, Err(EngineError::Journal(JournalError::Sync { .. }))));
            opened.map_err(told)?.engine
        } else {
            RunLoop::create(self.context.clone(), hands(), None).map_err(told)?
        };
        if self.adopts && self.machine.borrow_mut().fortune.random.chance(20) {
            let digest = setting::digest(&self.context.frozen)?;
            let _ = engine.adopt((*self.context.frozen).clone(), &digest).map_err(told)?;
        }
        engine.run(&mut Eyes(self.machine.clone()), orders, stay).map_err(told)
    }

    fn place_fault(&self, machine: &mut Machine) {
        if machine.fortune.weather == Weather::Healing {
            return;
        }
        let kind = machine.fortune.random.below(100);
        let at = self.disk.counts().operations + 1 + machine.fortune.random.below(160);
        match kind {
            0..=39 => {}
            40..=74 => self.disk.halt_at(at),
            _ => self.disk.fail_at(at),
        }
    }

    /// What happens while no engine is there.
    fn after(&mut self, end: End) -> Result<(), String> {
        let mut machine = self.machine.borrow_mut();
        let machine = &mut *machine;
        let sunny = machine.fortune.weather == Weather::Sunny;
        let died = matches!(end, End::Died) || self.disk.has_failed();
        self.disk_errors += u64::from(died && !self.disk.is_halted());
        let cut = !sunny && machine.fortune.random.chance(if died { 45 } else { 8 });
        self.crashes += u64::from(died || cut);
        if cut {
            machine.watcher.tell(|| "power cut".to_owned());
            machine.power_cut();
        } else if self.disk_lies.replace(false) {
            self.disk.crash();
        } else {
            self.disk.kill();
        }
        machine.watcher.look()?;
        machine.people.check_acknowledged(&machine.watcher.shadow)?;
        machine.clock.pass(machine.fortune.random.below(3_000));
        for _ in 0..machine.fortune.random.below(3) {
            machine.people.act(
                &mut machine.fortune,
                &self.context.frozen.plan,
                &machine.watcher.shadow,
                &machine.clock,
            );
        }
        let rests = matches!(end, End::Rested) && machine.fortune.weather == Weather::Stormy;
        if rests && machine.fortune.random.chance(60) {
            let resume = Input::Resume {
                raise: machine.fortune.raise(&machine.watcher.shadow),
                substitutes: Default::default(),
            };
            machine.people.send(&resume, &machine.clock);
        }
        if matches!(end, End::Rested) {
            machine.storm_left = machine.storm_left.saturating_sub(5);
        }
        Ok(())
    }

    /// Everything succeeds from now on: the run must come to an end, or say what stops it.
    fn heal(&mut self) -> Result<(), String> {
        self.disk.kill();
        let mut resumes = 0;
        for _ in 0..ENGINES_MAX * 4 {
            let End::Rested = self.engine()? else {
                return Err("an engine left without an order".to_owned());
            };
            let mut machine = self.machine.borrow_mut();
            let machine = &mut *machine;
            let state = &machine.watcher.shadow;
            match state.status() {
                RunStatus::Done | RunStatus::Failed | RunStatus::Abandoned => return Ok(()),
                RunStatus::Running => return Err("it rests and says that it runs".to_owned()),
                RunStatus::Waiting => {
                    for id in state.queues.pending_decisions.clone() {
                        machine.people.answer(&mut machine.fortune, state, &machine.clock, &id);
                    }
                }
                RunStatus::Blocked | RunStatus::Paused => {
                    let said = explain_run(&self.context.frozen.plan, state);
                    if said.because.is_empty() {
                        return Err("nobody knows why it rests".to_owned());
                    }
                    if resumes >= RESUMES_MAX {
                        return self.rests_rightly(machine);
                    }
                    resumes += 1;
                    // A closed gate is no dead end: a person can waive it. Which one it is they have to find out.
                    for _ in 0..20 {
                        if let Some(waiver) = machine.fortune.closed_gate(&self.context.frozen.plan, state) {
                            machine.people.send(&waiver, &machine.clock);
                        }
                    }
                    let raise = machine.fortune.raise(&machine.watcher.shadow);
                    machine
                        .people
                        .send(&Input::Resume { raise, substitutes: Default::default() }, &machine.clock);
                }
            }
        }
        Err("it never comes to an end".to_owned())
    }

    /// Only the plan itself may stop a run in which everything succeeds.
    fn rests_rightly(&self, machine: &Machine) -> Result<(), String> {
        let status = machine.watcher.shadow.status();
        if status == RunStatus::Blocked && self.blocked_by_plan(machine) {
            return Ok(());
        }
        Err(format!(
            "it rests as {status:?}: {:?}",
            blocked_by(&self.context.frozen.plan, &machine.watcher.shadow)
        ))
    }

    fn blocked_by_plan(&self, machine: &Machine) -> bool {
        let by = blocked_by(&self.context.frozen.plan, &machine.watcher.shadow);
        by.is_some_and(|by| by.reason == "gate")
    }

    fn check_end(&self, sunny: bool) -> Result<(), String> {
        let mut machine = self.machine.borrow_mut();
        let machine = &mut *machine;
        machine.watcher.look()?;
        machine.people.check_acknowledged(&machine.watcher.shadow)?;
        machine.people.check_nobody_waits()?;
        let state = &machine.watcher.shadow;
        let status = state.status();
        let excused = status == RunStatus::Blocked && self.blocked_by_plan(machine);
        if sunny && !machine.people.content_with_less && status != RunStatus::Done && !excused {
            return Err(format!("nothing failed, yet the run is {status:?}"));
        }
        if status == RunStatus::Failed && !machine.something_failed {
            return Err("the run failed and nothing had".to_owned());
        }
        if matches!(state.phase, RunPhase::Ended { .. }) || excused {
            self.check_files(machine)?;
        }
        Ok(())
    }

    /// The run directory is what the journal says.
    fn check_files(&self, machine: &Machine) -> Result<(), String> {
        let state = &machine.watcher.shadow;
        let file = |name: &str| self.disk.peek(&self.context.meta.run_dir.join(name));
        for (name, artifact) in &state.artifacts {
            let found = file(name.as_str()).unwrap_or_default();
            // An edit that nobody decided on is left to the next launch that reads the file.
            if hash_bytes(&found) != artifact.hash && !found.starts_with(b"by hand") {
                return Err(format!("{name} is not as it was accepted"));
            }
        }
        let document = self.context.document(state, Extent::All);
        for wanted in &self.context.frozen.projections {
            let projected = projection::project(wanted, &document, &self.context.templates);
            for expected in projected.map_err(|problem| problem.to_string())? {
                if file(&expected.path) != expected.bytes {
                    return Err(format!("{} is stale", expected.path));
                }
            }
        }
        Ok(())
    }
}
