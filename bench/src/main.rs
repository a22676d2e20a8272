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

use std::{path::PathBuf, process::ExitCode, time::Duration};

use floor::Shape;
use project::Measured;

/// Every measurement is repeated; the best of each side counts, because noise only adds.
const REPEATS: usize = 3;

fn main() -> ExitCode {
    let Some(program) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: gatewright-bench PATH-OF-GATEWRIGHT [STEPS | streams] | pictures");
        return ExitCode::from(2);
    };
    if program.as_os_str() == "pictures" {
        return finish(pictures::table());
    }
    if std::env::args().nth(2).as_deref() == Some("streams") {
        let trees = streams::worktrees(&program, REPEATS);
        return finish(trees.and_then(|()| streams::items(&program, &[1_000, 10_000], REPEATS)));
    }
    let steps: usize = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1000);
    println!("| work | steps | at once | floor ms/step | gatewright ms/step | ratio | peak MB |");
    println!("|---|---|---|---|---|---|---|");
    for (shape, at_once) in [(Shape::Chain, 1), (Shape::Wide, 8), (Shape::Layered, 8)] {
        if let Err(error) = row(&program, shape, steps, at_once) {
            eprintln!("{shape:?}: {error}");
            return ExitCode::from(1);
        }
    }
    let more = growth(&program, steps)
        .and_then(|()| streams::items(&program, &[steps, steps * 10], REPEATS))
        .and_then(|()| streams::worktrees(&program, REPEATS))
        .and_then(|()| commands::table(&program, REPEATS))
        .and_then(|()| size::table(&program))
        .and_then(|()| peers::table(&program, steps, REPEATS))
        .and_then(|()| pictures::table());
    finish(more)
}

fn finish(outcome: std::io::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

fn row(program: &std::path::Path, shape: Shape, steps: usize, at_once: usize) -> std::io::Result<()> {
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

/// Does a step of a long run cost what a step of a short one does?
fn growth(program: &std::path::Path, steps: usize) -> std::io::Result<()> {
    let (short, long) = (steps / 2, steps * 5);
    let best = |steps: usize| -> std::io::Result<f64> {
        let mut best = f64::MAX;
        for _ in 0..REPEATS {
            best = best.min(project::run(program, Shape::Wide, steps, 8)?.wall.as_secs_f64() / steps as f64);
        }
        Ok(best)
    };
    let ratio = best(long)? / best(short)?;
    println!("\na step of {long} costs {ratio:.2} times a step of {short} (8 at once)");
    Ok(())
}
