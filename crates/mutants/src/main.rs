//! Tries every mutant of the core that cargo-mutants knows, with one build for all of them.
//!
//! `cargo run -p gatewright-mutants -- [--jobs N] [--every N [--offset N]] [--again] [--alone] [--quick] [PART…]`:
//! all of them, every n-th, those that survived the last time, those whose place alone says that they need a build of their
//! own, without the simulation, those whose description holds one of the parts. Each mutant is woven into a
//! copy of the core behind a switch that the environment sets; the tests that reach it must fail when it is on.
//! `cargo run -p gatewright-mutants -- named [NAME…]`: the mistakes with a name, which the simulation must notice.

mod copy;
mod explained;
mod list;
mod named;
mod sites;
mod trial;
mod weave;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use copy::Copy;
use list::Mutant;
use trial::{Outcome, Tests};

const PACKAGE: &str = "gatewright-core";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What of the list is tried.
struct Order {
    jobs: usize,
    every: usize,
    offset: usize,
    again: bool,
    alone: bool,
    quick: bool,
    parts: Vec<String>,
}

impl Order {
    fn read(mut words: impl Iterator<Item = String>) -> io::Result<Order> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut order =
            Order { jobs, every: 1, offset: 0, again: false, alone: false, quick: false, parts: Vec::new() };
        while let Some(word) = words.next() {
            let mut number = || {
                let given = words.next().and_then(|text| text.parse().ok());
                given.ok_or_else(|| io::Error::other(format!("{word} takes a number")))
            };
            match word.as_str() {
                "--jobs" => order.jobs = number()?,
                "--every" => order.every = number()?,
                "--offset" => order.offset = number()?,
                "--again" => order.again = true,
                "--alone" => order.alone = true,
                "--quick" => order.quick = true,
                _ if word.starts_with("--") => {
                    return Err(io::Error::other(format!("there is no option {word}")));
                }
                _ => order.parts.push(word),
            }
        }
        if order.every == 0 || order.offset >= order.every {
            return Err(io::Error::other("--every is at least 1, --offset is less than it"));
        }
        Ok(order)
    }
}

fn run(words: &[String]) -> io::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target: PathBuf = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    match words.split_first() {
        Some((first, names)) if first == "named" => named::run(&root, &target, names),
        Some(_) | None => run_all(&Order::read(words.iter().cloned())?, &root, &target.join("mutants")),
    }
}

fn run_all(order: &Order, root: &Path, at: &Path) -> io::Result<bool> {
    let begun = Instant::now();
    let kept = at.join("outcomes.txt");
    let explained = explained::read(&root.join("crates/mutants/explained.txt"))?;
    let mutants = list::read(root, PACKAGE)?;
    let again = if order.again { Some(trial::last_survivors(&kept)?) } else { None };
    let wanted = |mutant: &&Mutant| {
        mutant.number % order.every == order.offset
            && again.as_ref().is_none_or(|last| last.contains(&mutant.key))
            && (order.parts.is_empty() || order.parts.iter().any(|part| mutant.name.contains(part)))
    };
    let copy = Copy::new(root, at)?;
    let mut chosen: Vec<&Mutant> = mutants.iter().filter(wanted).collect();
    if order.alone {
        let fate = copy.look(&mutants)?;
        chosen.retain(|mutant| fate.alone.contains(&mutant.number));
    }
    println!("{} mutants, {} of them are tried (offset {})", mutants.len(), chosen.len(), order.offset);
    let mut outcomes = if order.alone {
        BTreeMap::new()
    } else {
        try_behind_switches(order, &copy, &mutants, &chosen, begun)?
    };
    let all = chosen.len() == mutants.len();
    let (behind_switch, alone): (Vec<&Mutant>, Vec<&Mutant>) =
        chosen.iter().partition(|mutant| outcomes.contains_key(&mutant.number));
    let now = behind_switch.iter().map(|mutant| (mutant.key.clone(), outcomes[&mutant.number].word()));
    trial::keep(&kept, now, all)?;
    println!("{} need a build of their own (after {} s)", alone.len(), begun.elapsed().as_secs());
    for mutant in alone {
        let outcome = try_alone(&copy, mutant, order.quick)?;
        println!("      {:14} {}", outcome.word(), mutant.name);
        trial::keep(&kept, std::iter::once((mutant.key.clone(), outcome.word())), false)?;
        outcomes.insert(mutant.number, outcome);
    }
    println!("after {} s", begun.elapsed().as_secs());
    Ok(report(&chosen, &outcomes, &explained, all))
}

/// What becomes of those that can be behind a switch; the others are not in it.
fn try_behind_switches(
    order: &Order,
    copy: &Copy,
    mutants: &[Mutant],
    chosen: &[&Mutant],
    begun: Instant,
) -> io::Result<BTreeMap<usize, Outcome>> {
    let fate = copy.weave(mutants)?;
    let programs = copy.build_tests()?.into_iter().filter(|program| !order.quick || !is_simulation(program));
    let tests = Tests::explore(programs.collect(), copy.package(), order.jobs)?;
    println!("built with {} tests (after {} s)", tests.count(), begun.elapsed().as_secs());

    let done = AtomicUsize::new(0);
    let woven = trial::in_parallel(order.jobs, chosen, |_, mutant| {
        let number = mutant.number;
        let outcome = match () {
            () if fate.unviable.contains(&number) => Outcome::Unviable,
            () if fate.alone.contains(&number) => return Ok(None),
            () => tests.attempt(number)?,
        };
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        if outcome.survived() || outcome == Outcome::TimedOut {
            println!("{count:5} {:14} {}", outcome.word(), mutant.name);
        }
        Ok(Some(outcome))
    })?;
    let outcome_of = |(mutant, outcome): (&&Mutant, Option<Outcome>)| Some((mutant.number, outcome?));
    Ok(chosen.iter().zip(woven).filter_map(outcome_of).collect())
}

/// A mutant that cannot be behind a switch. The simulation is built only for those that nothing else catches.
fn try_alone(copy: &Copy, mutant: &Mutant, quick: bool) -> io::Result<Outcome> {
    if !copy.write_alone(mutant)? {
        return Ok(Outcome::Unviable);
    }
    let outcome = trial::attempt_alone(&copy.build_scenarios()?, &copy.package())?;
    if quick || outcome != Outcome::Survived {
        return Ok(outcome);
    }
    trial::attempt_alone(&copy.build_simulation()?, &copy.package())
}

fn is_simulation(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with(copy::SIMULATION))
}

/// Whether every survivor is explained, and nothing else is.
fn report(
    chosen: &[&Mutant],
    outcomes: &BTreeMap<usize, Outcome>,
    explained: &BTreeMap<String, String>,
    all: bool,
) -> bool {
    let count = |outcome: Outcome| outcomes.values().filter(|found| **found == outcome).count();
    let caught = count(Outcome::Caught) + count(Outcome::TimedOut);
    let survived = count(Outcome::Survived) + count(Outcome::Unreached);
    let viable = caught + survived;
    let known =
        |mutant: &&&Mutant| outcomes[&mutant.number].survived() && explained.contains_key(&mutant.key);
    let known = chosen.iter().filter(known).count();
    println!(
        "\n| caught | of these timed out | survived | of these never reached | of these explained | unviable | score |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!(
        "| {caught} | {} | {survived} | {} | {known} | {} | {:.1} % of {viable} |",
        count(Outcome::TimedOut),
        count(Outcome::Unreached),
        count(Outcome::Unviable),
        100.0 * caught as f64 / viable.max(1) as f64,
    );
    let mut good = true;
    for mutant in chosen {
        let survived = outcomes[&mutant.number].survived();
        match (survived, explained.get(&mutant.key)) {
            (true, None) => println!("not explained: {}\n    {}", mutant.name, mutant.key),
            (false, Some(_)) => {
                println!("explained, but {}: {}", outcomes[&mutant.number].word(), mutant.key);
            }
            (true, Some(_)) | (false, None) => continue,
        }
        good = false;
    }
    if all {
        for key in explained.keys().filter(|key| !chosen.iter().any(|mutant| mutant.key == **key)) {
            println!("explained, but there is no such mutant: {key}");
            good = false;
        }
    }
    good
}
