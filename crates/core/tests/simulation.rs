//! Random plans in random weather: thousands of lives of a run, with crashes at every point.
//!
//! `SIM_RUNS=100000` lives longer; `SIM_SEED=42` repeats one life and tells its story.

mod common;
#[path = "simulation/fortune.rs"]
mod fortune;
#[path = "simulation/ledger.rs"]
mod ledger;
#[path = "simulation/plans.rs"]
mod plans;
#[path = "simulation/random.rs"]
mod random;
#[path = "simulation/subject.rs"]
mod subject;
#[path = "simulation/world.rs"]
mod world;

use std::collections::BTreeMap;

use common::invariants;
use world::World;

const RUNS: u64 = 20_000;
const PARTS: u64 = 8;

#[expect(clippy::disallowed_methods, reason = "the test may be told what to do")]
fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[expect(clippy::disallowed_macros, reason = "a test talks to whoever runs it")]
fn say(text: &str) {
    println!("{text}");
}

fn part(number: u64) {
    if told("SIM_SEED").is_some() {
        return;
    }
    let runs = told("SIM_RUNS").unwrap_or(RUNS) / PARTS;
    let (mut events, mut crashes) = (0, 0);
    let mut coverage: BTreeMap<(&'static str, String), u64> = BTreeMap::new();
    for seed in number * runs..(number + 1) * runs {
        let mut world = World::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live()));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => panic!("SIM_SEED={seed}: {problem}"),
            Err(panic) => {
                say(&format!("SIM_SEED={seed} panicked"));
                std::panic::resume_unwind(panic)
            }
        }
        events += world.events;
        crashes += world.crashes;
        for (pair, count) in world.coverage {
            *coverage.entry(pair).or_default() += count;
        }
    }
    say(&format!(
        "{runs} runs, {events} events, {crashes} crashes, {} pairs of phase and event:",
        coverage.len()
    ));
    for ((phase, event), count) in coverage {
        say(&format!("  {phase:10} {event:24} {count}"));
    }
}

#[test]
fn one_seed_tells_its_story() {
    let mut world = World::new(told("SIM_SEED").unwrap_or(1));
    world.tell = told("SIM_SEED").is_some();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live()));
    say(&world.story.join("\n"));
    match result {
        Ok(result) => result.expect("it holds"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

macro_rules! parts {
    ($($name:ident: $number:expr),*) => { $(#[test] fn $name() { part($number); })* };
}

parts!(
    lives_of_a_run_1: 0,
    lives_of_a_run_2: 1,
    lives_of_a_run_3: 2,
    lives_of_a_run_4: 3,
    lives_of_a_run_5: 4,
    lives_of_a_run_6: 5,
    lives_of_a_run_7: 6,
    lives_of_a_run_8: 7
);
