//! Tries the pure core with every combination of outcomes, up to a number of deviations from the
//! path on which everything goes well. No process, no clock, no file.
//!
//! Paths are walked in the order of their deviations, so that a search that is cut short has seen
//! the likely ones. Something that goes wrong every time (a reviewer who is never content) is one
//! deviation: that is how limits are reached. What runs at the same time is ended in one fixed order: interleavings are not
//! explored, outcomes are.

pub mod choice;
pub mod invariant;
pub mod report;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gatewright_core::{
    advance,
    effect::Effect,
    event::Beginning,
    explain,
    ids::Timestamp,
    input::Input,
    plan::Plan,
    state::{RunStatus, State},
    wanted,
};
use gatewright_host::document::status_word;

use self::{
    choice::{Choice, ChoiceKind, choices},
    invariant::Checker,
};
use super::coverage::Coverage;

/// So many states are looked at; then the search says that it was cut.
pub const STATES_MAX: usize = 20_000;
/// A path with more inputs than this does not end.
const INPUTS_MAX: usize = 5_000;
/// The time of every path's beginning: not zero, so that a missing time is seen.
const BEGINNING: Timestamp = Timestamp(1_000_000);

/// A path on which something does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub message: String,
    /// The deviations that lead there.
    pub path: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Explored {
    pub paths: usize,
    pub states: usize,
    /// There was more to see.
    pub cut: bool,
    /// How many paths ended or rested in which state.
    pub ends: BTreeMap<String, usize>,
    pub violations: Vec<Violation>,
    pub coverage: Coverage,
}

/// What makes a path: single deviations by place, and one thing that happens every time.
#[derive(Clone, Debug, Default)]
struct Path {
    /// At each choice: 0 = as usual, else which other option.
    prefix: Vec<u8>,
    always: Option<String>,
}

impl Path {
    fn deviations(&self) -> u32 {
        self.prefix.iter().filter(|option| **option > 0).count() as u32 + u32::from(self.always.is_some())
    }
}

/// Walks all paths with at most `depth` deviations.
pub fn explore(plan: &Plan, depth: u32, states_max: usize) -> Explored {
    let mut explored = Explored { coverage: Coverage::of(plan), ..Explored::default() };
    let mut queue: VecDeque<Path> = VecDeque::from([Path::default()]);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut habits: BTreeSet<String> = BTreeSet::new();
    while let Some(path) = queue.pop_front() {
        if explored.states >= states_max {
            explored.cut = true;
            break;
        }
        let walk = Walk::new(plan, path.always.clone()).along(&path.prefix, &mut explored.coverage);
        explored.paths += 1;
        explored.states += walk.states;
        *explored.ends.entry(walk.end.clone()).or_insert(0) += 1;
        for message in &walk.violations {
            if seen.insert(message.clone()) {
                explored
                    .violations
                    .push(Violation { message: message.clone(), path: walk.deviations.clone() });
            }
        }
        if path.deviations() >= depth {
            continue;
        }
        // What a first deviation brings to light can go wrong every time, too.
        if path.deviations() <= 1 {
            for habit in &walk.alternatives {
                if habits.insert(habit.clone()) {
                    queue.push_back(Path { prefix: Vec::new(), always: Some(habit.clone()) });
                }
            }
        }
        // A habit is combined with one other deviation; more of them lead to the same places.
        if path.always.is_none() || path.deviations() == 1 {
            explored.cut |= branch(&path, &walk.widths, states_max, &mut queue);
        }
    }
    explored
}

/// Adds every path that deviates once more, after the prefix; says whether some were left out.
fn branch(path: &Path, widths: &[u8], most: usize, queue: &mut VecDeque<Path>) -> bool {
    for (place, width) in widths.iter().enumerate().skip(path.prefix.len()) {
        for option in 1..*width {
            if queue.len() >= most {
                return true;
            }
            let mut next = path.clone();
            next.prefix.resize(place, 0);
            next.prefix.push(option);
            queue.push_back(next);
        }
    }
    false
}

/// One path from the start to its end or rest.
struct Walk<'p> {
    plan: &'p Plan,
    state: State,
    now: Timestamp,
    /// How many options there were at each choice.
    widths: Vec<u8>,
    deviations: Vec<String>,
    /// What the world could have done instead.
    alternatives: BTreeSet<String>,
    /// What happens whenever it can.
    always: Option<String>,
    violations: Vec<String>,
    /// States beyond those that the prefix leads through.
    states: usize,
    end: String,
}

impl<'p> Walk<'p> {
    fn new(plan: &'p Plan, always: Option<String>) -> Walk<'p> {
        Walk {
            plan,
            state: State::new(plan),
            now: BEGINNING,
            widths: Vec::new(),
            deviations: always.iter().map(|habit| format!("{habit} every time")).collect(),
            alternatives: BTreeSet::new(),
            always,
            violations: Vec::new(),
            states: 0,
            end: String::new(),
        }
    }

    fn along(mut self, prefix: &[u8], coverage: &mut Coverage) -> Walk<'p> {
        let mut checker = Checker::default();
        let start = Input::Start {
            run: "explored".to_owned(),
            request: "Explore the workflow".to_owned(),
            beginning: Beginning::default(),
        };
        self.take(&start, &mut checker, coverage);
        for _ in 0..INPUTS_MAX {
            let wish = wanted(self.plan, &self.state, self.now);
            let effect = wish
                .effects
                .iter()
                .find(|effect| !matches!(effect, Effect::Ask { .. }))
                .or(wish.effects.first());
            let input = match (effect, wish.wake_at) {
                (Some(effect), _) => self.choose(effect, prefix),
                (None, Some(at)) if self.state.status() == RunStatus::Running => {
                    self.now = self.now.max(at);
                    Input::Tick
                }
                (None, _) => {
                    self.rest();
                    return self;
                }
            };
            if self.widths.len() >= prefix.len() {
                self.states += 1;
            }
            self.take(&input, &mut checker, coverage);
        }
        self.violations.push(format!("the run does not come to rest within {INPUTS_MAX} inputs"));
        "endless".clone_into(&mut self.end);
        self
    }

    fn choose(&mut self, effect: &Effect, prefix: &[u8]) -> Input {
        let mut options: Vec<Choice> = choices(self.plan, &self.state, effect);
        if options.len() <= 1 {
            return options.pop().map_or(Input::Tick, |choice| choice.input);
        }
        let world = options.iter().skip(1).filter(|choice| choice.kind == ChoiceKind::World);
        self.alternatives.extend(world.map(|choice| choice.label.clone()));
        let usual = self.usual(&options);
        let asked = usize::from(prefix.get(self.widths.len()).copied().unwrap_or(0));
        // The other options in their order, without the usual one.
        let others = (0..options.len()).filter(|option| *option != usual);
        let option = if asked == 0 { usual } else { others.take(asked).last().unwrap_or(usual) };
        self.widths.push(u8::try_from(options.len()).unwrap_or(u8::MAX));
        let choice = options.swap_remove(option);
        if option != usual {
            self.deviations.push(choice.label);
        }
        choice.input
    }

    /// The good news, unless this path has a habit. Where things go wrong every time, a person who
    /// keeps going would go on for ever.
    fn usual(&self, options: &[Choice]) -> usize {
        let Some(habit) = &self.always else { return 0 };
        let keeps_going = |choice: &Choice| choice.kind == ChoiceKind::Person { keeps_going: true };
        let habitual = options.iter().position(|choice| choice.label == *habit);
        habitual.or_else(|| options.iter().position(|choice| !keeps_going(choice))).unwrap_or(0)
    }

    fn take(&mut self, input: &Input, checker: &mut Checker, coverage: &mut Coverage) {
        let mut seen = self.state.clone();
        match advance(self.plan, &mut self.state, input, self.now) {
            Ok(events) => {
                for event in &events {
                    coverage.before(self.plan, &seen, event);
                    seen.apply(self.plan, event, self.now);
                    coverage.after(self.plan, &seen, event);
                    checker.after(self.plan, &seen, event, &mut self.violations);
                }
                if seen != self.state {
                    self.violations.push("replaying the events gives another state".to_owned());
                }
            }
            Err(rejected) => self.violations.push(format!("a result that was wanted is refused: {rejected}")),
        }
    }

    /// Nothing is wanted any more: the run is over, or says why it is not.
    fn rest(&mut self) {
        status_word(&self.state).clone_into(&mut self.end);
        match self.state.status() {
            RunStatus::Done | RunStatus::Failed | RunStatus::Abandoned => {}
            RunStatus::Blocked | RunStatus::Paused => {
                let explained =
                    explain::blocked_by(self.plan, &self.state).is_some_and(|by| !by.message.is_empty());
                if !explained {
                    self.violations.push(format!("the run is {} and nobody can say why", self.end));
                }
            }
            RunStatus::Running | RunStatus::Waiting => {
                self.violations.push(format!("the run is {} but wants nothing", self.end));
            }
        }
    }
}
