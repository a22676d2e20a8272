//! The same plan and the same inputs, once on the core alone in memory and once on the run loop with its
//! journal, killed again and again: both must end in the same state.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use gatewright_core::{
    advance,
    effect::Effect,
    event::Event,
    fact::{AttemptReport, InputProblem, ProcessEnd},
    ids::{DecisionId, Timestamp},
    input::{self, Input},
    plan::Plan,
    state::State,
    wanted,
};
use gatewright_host::{
    clock::Clock,
    disk::SimulatedDisk,
    perform::{Arrival, Performer, facts::DiskFailure},
    run_context::{RunContext, hash_bytes},
    run_loop::{Observer, RunLoop},
};

use crate::{
    clock::SimulatedClock,
    common::hash,
    fortune::{Fortune, Weather},
    lists,
    plans::random_plan,
    random::Random,
    setting,
};

/// A run that takes more inputs than this is not compared: it turns in a circle that people keep going.
const INPUTS_MAX: u32 = 500;
/// How long the run loop rests at most when nothing is due.
const REST_MS: u64 = 40;

/// What was compared.
pub struct Compared {
    pub kills: u32,
    pub events: usize,
}

/// Lives one plan on both hosts. `None`: the run is too short for so many kills, or never ends.
pub fn compare(seed: u64, kills_wanted: u32) -> Result<Option<Compared>, String> {
    let mut random = Random::new(seed);
    let plan = random_plan(&mut random);
    let Some((reference, events)) = in_memory(&plan, seed) else { return Ok(None) };
    let (state, kills) = on_the_journal(plan, seed, &mut random, kills_wanted)?;
    if state != reference {
        let (there, here) = (format!("{state:#?}"), format!("{reference:#?}"));
        let differing = there.lines().zip(here.lines()).filter(|(there, here)| there != here);
        return Err(format!("journal and memory differ: {:?}", differing.take(4).collect::<Vec<_>>()));
    }
    Ok((kills >= kills_wanted).then_some(Compared { kills, events }))
}

/// What comes of an effect: a function of the seed, the effect and the state, so that it is the same however
/// often it is asked for.
fn result(seed: u64, plan: &Plan, state: &State, effect: &Effect, now: Timestamp) -> Option<Input> {
    let age: u64 = state.steps.values().map(|own| u64::from(own.attempts) + u64::from(own.visit)).sum();
    let mut mixed = seed;
    for byte in format!("{effect:?} {age}").bytes() {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut fortune = Fortune { random: Random::new(mixed), weather: Weather::Stormy };
    Some(match effect {
        Effect::Run { step, attempt } => {
            let mut report = fortune.report(plan, state, step, now);
            if let ProcessEnd::NotStarted { problem: InputProblem::Changed { .. } } = report.ended {
                report = AttemptReport::new(ProcessEnd::Exited { code: 1 });
            }
            Input::AttemptEnded { step: step.clone(), attempt: *attempt, report }
        }
        Effect::Stop { step, attempt } => {
            let report = AttemptReport::new(ProcessEnd::Stopped);
            Input::AttemptEnded { step: step.clone(), attempt: *attempt, report }
        }
        Effect::Check { step, attempt, check } => Input::CheckEnded {
            step: step.clone(),
            attempt: *attempt,
            check: check.clone(),
            fact: fortune.check(),
        },
        Effect::Commit { step, attempt } => {
            Input::CommitEnded { step: step.clone(), attempt: *attempt, fact: fortune.commit(false) }
        }
        Effect::Evaluate { step, gate } => {
            Input::Evaluated { step: step.clone(), gate: gate.clone(), value: fortune.gate() }
        }
        Effect::ReadList { step } => {
            let items = fortune.list(state);
            Input::ListRead { step: step.clone(), hash: hash_bytes(&lists::file(&items)), items }
        }
        Effect::Bind { decision } => {
            let show = &state.decisions.get(decision)?.decision.show;
            let bound = show.iter().map(|name| (name.clone(), hash("shown"))).collect();
            let pending = &state.decisions.get(decision)?.decision;
            let question = pending.to_render.then(|| Ok(pending.question.clone()));
            Input::Bound { decision: decision.clone(), bound, question }
        }
        Effect::Ask { decision } => {
            let answers = &state.decisions.get(decision)?.decision.answers;
            let word = fortune.random.pick(answers).map(|answer| answer.word.clone());
            Input::Answer(input::Answer {
                decision: decision.clone(),
                value: word.unwrap_or_else(|| "some text".to_owned()),
                comment: Some("because".to_owned()),
                route: None,
                confirmed: true,
                channel: "terminal".to_owned(),
                seen: std::collections::BTreeMap::new(),
            })
        }
    })
}

/// The core alone: the least wanted effect first, until nothing is wanted.
fn in_memory(plan: &Plan, seed: u64) -> Option<(State, usize)> {
    let clock = SimulatedClock::new();
    let mut state = State::new(plan);
    let start = Input::Start {
        run: "run".to_owned(),
        request: "do it".to_owned(),
        beginning: gatewright_core::event::Beginning::default(),
    };
    let mut events = advance(plan, &mut state, &start, clock.now()).ok()?.len();
    for _ in 0..INPUTS_MAX {
        let now = clock.now();
        let wish = wanted(plan, &state, now);
        let input = match (wish.effects.iter().min(), wish.wake_at) {
            (Some(effect), _) => result(seed, plan, &state, effect, now)?,
            (None, Some(at)) => {
                clock.pass(at.since(now).clamp(1, REST_MS));
                Input::Tick
            }
            (None, None) => return Some((state, events)),
        };
        events += advance(plan, &mut state, &input, clock.now()).ok()?.len();
    }
    None
}

fn on_the_journal(
    plan: Plan,
    seed: u64,
    random: &mut Random,
    kills_wanted: u32,
) -> Result<(State, u32), String> {
    let disk = SimulatedDisk::new(seed);
    let clock = Arc::new(SimulatedClock::new());
    let frozen = setting::frozen(plan, false)?;
    let context = setting::context(Arc::new(disk.clone()), clock.clone(), frozen)?;
    let mut kills = 0;
    loop {
        if kills < kills_wanted {
            disk.halt_at(disk.counts().operations + 5 + random.below(45));
        }
        let last = Last::default();
        let (disk_of_agents, clock, under_way) = (disk.clone(), clock.clone(), BTreeSet::new());
        let oracle = Oracle { seed, disk: disk_of_agents, clock, under_way, last: last.clone() };
        let outcome = RunLoop::open(context.clone(), oracle, None).and_then(|opened| {
            let mut engine = opened.engine;
            let (_orders, none) = channel();
            engine.run(&mut Mirror(last), &none, true).map(|_| engine.state.clone())
        });
        match outcome {
            Ok(state) if !disk.has_failed() => return Ok((state, kills)),
            Err(error) if !disk.has_failed() => return Err(error.to_string()),
            Ok(_) | Err(_) => kills += 1,
        }
        if random.chance(50) { disk.crash() } else { disk.kill() }
    }
}

/// What the engine last said of itself.
type Last = Rc<RefCell<Option<(RunContext, State)>>>;

/// Carries effects out in the order of the reference, one at a time.
struct Oracle {
    seed: u64,
    disk: SimulatedDisk,
    clock: Arc<SimulatedClock>,
    under_way: BTreeSet<Effect>,
    last: Last,
}

impl Performer for Oracle {
    fn start(
        &mut self,
        _context: &RunContext,
        _state: &State,
        effect: &Effect,
        _results: &Sender<Arrival>,
    ) -> Result<(), DiskFailure> {
        self.under_way.insert(effect.clone());
        Ok(())
    }

    fn wait(&mut self, _results: &Receiver<Arrival>, at_most: Duration) -> Vec<Arrival> {
        let next = self.next();
        if next.is_none() {
            self.clock.pass(u64::try_from(at_most.as_millis()).unwrap_or(1).max(1));
        }
        next.into_iter().collect()
    }
}

impl Oracle {
    fn next(&mut self) -> Option<Arrival> {
        let last = self.last.borrow();
        let (context, state) = last.as_ref()?;
        let (plan, now) = (&context.frozen.plan, self.clock.now());
        let wish = wanted(plan, state, now);
        let Some(effect) = wish.effects.into_iter().filter(|effect| self.under_way.contains(effect)).min()
        else {
            // Nobody wants the rest any more: it ends without a result.
            let effect = self.under_way.pop_first()?;
            return Some(Arrival { effect: Some(effect), input: Input::Tick });
        };
        self.under_way.remove(&effect);
        let input = result(self.seed, plan, state, &effect, now)?;
        if let Input::AttemptEnded { step, attempt, report } = &input {
            let out = context.paths.attempt(step.as_str(), *attempt).join("out");
            for artifact in report.artifacts.iter().filter(|artifact| artifact.hash.is_some()) {
                self.disk.overwrite(&out.join(artifact.name.as_str()), b"written");
            }
        }
        if let Input::ListRead { step, items, .. } = &input
            && let Some(path) = lists::path_of(context, state, step)
        {
            self.disk.overwrite(&path, &lists::file(items));
        }
        Some(Arrival { effect: Some(effect), input })
    }
}

struct Mirror(Last);

impl Observer for Mirror {
    fn events(&mut self, context: &RunContext, state: &State, _events: &[Event]) {
        *self.0.borrow_mut() = Some((context.clone(), state.clone()));
    }
    fn asked(&mut self, _context: &RunContext, _state: &State, _open: &BTreeSet<DecisionId>) {}
    fn tick(&mut self, _context: &RunContext, _state: &State) {}
    fn warn(&mut self, _text: &str) {}
}
