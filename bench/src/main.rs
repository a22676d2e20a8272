//! The program against the machine's limits, side by side in one run: ratios, never absolute times.
//!
//! `bench/run` builds everything and prints the table. The floor is the smallest engine that is still honest:
//! a start record is durable before a child is spawned, its end record before anything that needs it; what
//! arrives together is written together.

mod commands;
mod floor;
mod peers;
mod pictures;
mod project;
mod size;
mod streams;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use floor::Shape;
use project::{Measured, Memory};

/// Every measurement is repeated; the best of each side counts, because noise only adds.
const REPEATS: usize = 3;

/// The tables, in the order in which they are printed.
const TABLES: [&str; 8] = ["steps", "growth", "items", "worktrees", "commands", "size", "peers", "pictures"];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next().map(PathBuf::from) else {
        eprintln!(
            "usage: gatewright-bench PATH-OF-GATEWRIGHT [STEPS] [TABLE…]\ntables: {}",
            TABLES.join(" ")
        );
        return ExitCode::from(2);
    };
    let (mut steps, mut tables) = (1000, Vec::new());
    for word in arguments.map(|word| word.to_string_lossy().into_owned()) {
        match word.parse::<usize>() {
            Ok(number) => steps = number.max(10),
            Err(_) if TABLES.contains(&word.as_str()) => tables.push(word),
            Err(_) => {
                eprintln!("`{word}` is no table; there are: {}", TABLES.join(" "));
                return ExitCode::from(2);
            }
        }
    }
    for table in TABLES.iter().filter(|table| tables.is_empty() || tables.iter().any(|own| own == *table)) {
        if let Err(error) = print(table, &program, steps) {
            eprintln!("{table}: {error}");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

fn print(table: &str, program: &Path, steps: usize) -> std::io::Result<()> {
    match table {
        "steps" => chains_and_graphs(program, steps),
        "growth" => growth(program, steps),
        "items" => streams::items(program, &[steps, steps * 10], REPEATS),
        "worktrees" => streams::worktrees(program, REPEATS),
        "commands" => commands::table(program, REPEATS),
        "size" => size::table(program),
        "peers" => peers::table(program, steps, REPEATS),
        _ => pictures::table(),
    }
}

fn chains_and_graphs(program: &Path, steps: usize) -> std::io::Result<()> {
    println!("| work | steps | at once | floor ms/step | gatewright ms/step | ratio | peak MB |");
    println!("|---|---|---|---|---|---|---|");
    let rows = [
        (Shape::Chain, steps, 1),
        (Shape::Wide, steps, 8),
        (Shape::Layered, steps, 8),
        (Shape::Layered, steps * 10, 8),
    ];
    for (shape, steps, at_once) in rows {
        row(program, shape, steps, at_once)?;
    }
    Ok(())
}

fn row(program: &Path, shape: Shape, steps: usize, at_once: usize) -> std::io::Result<()> {
    let mut floor = Duration::MAX;
    let mut ours: Option<Measured> = None;
    for _ in 0..REPEATS {
        floor = floor.min(floor::run(shape, steps, at_once)?);
        let measured = project::run(program, shape, steps, at_once)?;
        if ours.as_ref().is_none_or(|best| measured.wall < best.wall) {
            ours = Some(measured);
        }
    }
    let Some(ours) = ours else { return Ok(()) };
    let per_step = |time: Duration| time.as_secs_f64() * 1e3 / steps as f64;
    println!(
        "| {} | {steps} | {at_once} | {:.3} | {:.3} | {:.2} | {:.1} |",
        shape.word(),
        per_step(floor),
        per_step(ours.wall),
        ours.wall.as_secs_f64() / floor.as_secs_f64(),
        ours.peak_kb as f64 / 1024.0
    );
    Ok(())
}

/// Does the last step of a long run cost what its first one does? Both are of the same run: a tenth at its
/// beginning beside a tenth at its end, by the times in its journal.
fn growth(program: &Path, steps: usize) -> std::io::Result<()> {
    let (steps, tenth) = (steps * 10, steps);
    let (mut first, mut last, mut used) = (f64::MAX, f64::MAX, Memory::default());
    for _ in 0..REPEATS {
        let project = project::Project::new("growth", &project::trivial(steps))?;
        let measured = project.expect_done(program, &["run", "./bench.yaml", "x"])?;
        let ends = project.ends_of_steps()?;
        project.remove()?;
        let took = |range: std::ops::Range<usize>| (ends[range.end - 1] - ends[range.start]) as f64;
        // The first steps also pay for what is set up once.
        first = first.min(took(10..tenth + 10));
        last = last.min(took(steps - tenth..steps));
        used.peak_kb = used.peak_kb.max(measured.peak_kb);
        used.resident_kb = used.resident_kb.max(measured.resident_kb);
    }
    println!("\n| chain of {steps} | value | target |\n|---|---|---|");
    println!("| the last {tenth} steps beside the first {tenth} | {:.2} | 1.1 |", last / first);
    println!(
        "| memory of the engine among its last steps, MB | {:.1} | 30 |",
        used.resident_kb as f64 / 1024.0
    );
    println!("| most memory, while it reads the definition, MB | {:.1} | |", used.peak_kb as f64 / 1024.0);
    Ok(())
}
