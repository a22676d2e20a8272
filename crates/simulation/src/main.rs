//! `gatewright-simulation SEED` repeats one life and tells its story;
//! `gatewright-simulation SEED --keep FOLDER` also keeps its plan and its journal, as `crates/host/tests/golden` has them;
//! `gatewright-simulation --runs N [--from SEED] [--threads N]` lives many and prints what they met.

use std::{path::Path, process::ExitCode};

use gatewright_simulation::{campaign::campaign, live};

const RUNS: u64 = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    match arguments.first().map(|first| first.parse::<u64>()) {
        Some(Ok(seed)) => {
            let place = arguments.iter().position(|argument| argument == "--keep");
            let folder = place.and_then(|place| arguments.get(place + 1));
            tell(seed, folder.map(Path::new))
        }
        _ => {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
            let from = number("--from").unwrap_or(0);
            many(from, number("--runs").unwrap_or(RUNS), number("--threads").unwrap_or(cores))
        }
    }
}

fn tell(seed: u64, keep: Option<&Path>) -> ExitCode {
    let lived = live(seed, true);
    for (name, bytes) in keep.iter().flat_map(|_| &lived.files) {
        let folder = keep.unwrap_or(Path::new("."));
        if let Err(error) =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(folder.join(name), bytes))
        {
            eprintln!("error: {}: {error}", folder.join(name).display());
            return ExitCode::FAILURE;
        }
    }
    for line in &lived.story {
        println!("{line}");
    }
    match lived.outcome {
        Ok(()) => {
            println!("seed {seed}: {}, {} events, {} engines", lived.ended, lived.events, lived.engines);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("seed {seed}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn many(from: u64, runs: u64, threads: u64) -> ExitCode {
    println!("seeds {from} to {}", from + runs.saturating_sub(1));
    let tally = campaign(from, runs, threads);
    println!(
        "{} runs, {} events, {} engines, {} crashes, {} ended by a disk error; ends: {:?}",
        tally.runs, tally.events, tally.engines, tally.crashes, tally.disk_errors, tally.ended
    );
    println!("{} pairs of a step's phase and an event:", tally.coverage.len());
    for ((phase, event), count) in &tally.coverage {
        println!("  {phase:10} {event:24} {count}");
    }
    match tally.failed {
        None => ExitCode::SUCCESS,
        Some((seed, problem)) => {
            println!("seed {seed}: {problem}");
            println!("repeat it: cargo run -p gatewright-simulation -- {seed}");
            ExitCode::FAILURE
        }
    }
}
