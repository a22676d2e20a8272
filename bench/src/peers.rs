//! The same chain of trivial processes on other engines, in the same run. What is not installed is said, not guessed.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    floor::{self, Shape},
    project::{self, scratch},
};

/// Engines that keep every step and are driven by a script; `bench/peers/install` puts them there.
const SCRIPTED: [&str; 4] = ["restate", "dbos", "langgraph", "prefect"];

/// What a chain took, and how much of that is there for a chain of one step already: starting a program or a server.
#[derive(Clone, Copy)]
struct Took {
    whole: Duration,
    start: Duration,
}

impl Took {
    fn steps(self) -> f64 {
        self.whole.saturating_sub(self.start).as_secs_f64()
    }
}

pub fn table(program: &Path, steps: usize, repeats: usize) -> io::Result<()> {
    println!(
        "\n| chain of {steps} | durable | ms/step | beside gatewright | ms/step without the start | beside gatewright |\n|---|---|---|---|---|---|"
    );
    let ours = both(repeats, steps, |steps| Ok(Some(project::run(program, Shape::Chain, steps, 1)?.wall)))?;
    let Some(ours) = ours else { return Ok(()) };
    line("gatewright", true, steps, Some(ours), ours);
    line(
        "floor",
        true,
        steps,
        both(repeats, steps, |steps| Ok(Some(floor::run(Shape::Chain, steps, 1)?)))?,
        ours,
    );
    line("ninja", false, steps, both(repeats, steps, ninja)?, ours);
    for name in SCRIPTED {
        line(name, true, steps, both(1, steps, |steps| scripted(name, steps))?, ours);
    }
    line("dagu", true, steps, both(1, steps, dagu)?, ours);
    Ok(())
}

fn line(name: &str, durable: bool, steps: usize, took: Option<Took>, ours: Took) {
    let durable = if durable { "yes" } else { "no" };
    let Some(took) = took else {
        println!("| {name} | {durable} | not run | not run | not run | not run |");
        return;
    };
    let whole = took.whole.as_secs_f64();
    println!(
        "| {name} | {durable} | {:.3} | {:.2} | {:.3} | {:.2} |",
        whole * 1e3 / steps as f64,
        whole / ours.whole.as_secs_f64(),
        took.steps() * 1e3 / steps as f64,
        took.steps() / ours.steps()
    );
}

/// The best of several runs of the chain, and of a chain of one.
fn both(
    repeats: usize,
    steps: usize,
    mut measure: impl FnMut(usize) -> io::Result<Option<Duration>>,
) -> io::Result<Option<Took>> {
    let mut best: Option<Took> = None;
    for _ in 0..repeats.max(1) {
        let (Some(start), Some(whole)) = (measure(1)?, measure(steps)?) else { return Ok(best) };
        best = Some(best.map_or(Took { whole, start }, |known| Took {
            whole: known.whole.min(whole),
            start: known.start.min(start),
        }));
    }
    Ok(best)
}

/// `None` where the program is not installed.
fn timed(command: &mut Command) -> io::Result<Option<Duration>> {
    let begin = Instant::now();
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match ended {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(status) if status.success() => Ok(Some(begin.elapsed())),
        Ok(status) => Err(io::Error::other(format!("{command:?} exited with {status}"))),
    }
}

fn ninja(steps: usize) -> io::Result<Option<Duration>> {
    let dir = scratch("ninja")?;
    let mut text = String::from("rule t\n  command = true && touch $out\n");
    for index in 0..steps {
        let before = index.checked_sub(1).map(|before| format!("f{before}")).unwrap_or_default();
        let _ = writeln!(text, "build f{index}: t {before}");
    }
    fs::write(dir.join("build.ninja"), text)?;
    let took = timed(Command::new("ninja").args(["-j", "1"]).current_dir(&dir));
    fs::remove_dir_all(dir)?;
    took
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A peer with a script that runs one chain and ends.
fn scripted(name: &str, steps: usize) -> io::Result<Option<Duration>> {
    let installed = root().join(".cache/peers").join(name);
    if !installed.join("ready").exists() {
        return Ok(None);
    }
    let own = installed.join("bin/python");
    let python = if own.exists() { own } else { PathBuf::from("python3") };
    let script = root().join("bench/peers").join(format!("{name}.py"));
    let dir = scratch(name)?;
    let took = timed(Command::new(&python).arg(&script).arg(steps.to_string()).env("TMPDIR", &dir));
    fs::remove_dir_all(dir)?;
    took
}

fn dagu(steps: usize) -> io::Result<Option<Duration>> {
    let program = root().join(".cache/peers/dagu/node_modules/@dagu-org/dagu-linux-x64/bin/dagu");
    let dir = scratch("dagu")?;
    let mut text = String::from("name: bench\ntype: graph\nmaxActiveSteps: 1\nsteps:\n");
    for index in 0..steps {
        let _ = writeln!(text, "  - name: s{index}\n    command: \"true\"");
        if let Some(before) = index.checked_sub(1) {
            let _ = writeln!(text, "    depends: [s{before}]");
        }
    }
    fs::write(dir.join("bench.yaml"), text)?;
    let took = timed(
        Command::new(program)
            .args(["start", "--quiet", "--run-id=r1", "bench.yaml"])
            .current_dir(&dir)
            .env("DAGU_HOME", dir.join("home")),
    );
    fs::remove_dir_all(dir)?;
    took
}
