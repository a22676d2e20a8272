//! What a run takes besides time: memory with a thousand attempts at work, bytes on disk and syncs for each step.

use std::{
    fmt::Write as _,
    fs, io,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::project::{self, Memory, Project};

const ATTEMPTS: usize = 1_000;
const STEPS: usize = 1_000;
const WAITING_RUNS: usize = 500;
/// So long nobody new may come.
const PATIENCE: Duration = Duration::from_mins(1);

pub fn table(program: &Path) -> io::Result<()> {
    println!("\n| size | value | target |\n|---|---|---|");
    println!("| engine with {ATTEMPTS} attempts at work, MB | {:.1} | 64 |", waiting(program)? / 1024.0);
    println!("| processes while {WAITING_RUNS} runs wait for people | {} | 0 |", people(program)?);
    let (bytes, allocated) = disk(program)?;
    println!("| bytes a step leaves in the state directory | {bytes} | |");
    println!("| of those allocated, with blocks | {allocated} | |");
    match syncs(program)? {
        Some(count) => println!("| syncs a step, one after the other | {count:.2} | |"),
        None => println!("| syncs a step | not counted: strace is not installed | |"),
    }
    Ok(())
}

/// The engine's memory while a thousand agents are at work.
fn waiting(program: &Path) -> io::Result<f64> {
    let mut text = format!(
        "workflow: bench\nparallel_max: {ATTEMPTS}\nroles: {{ waiter: {{ agent: waiter, prompt: \"Wait.\", may_write: [] }} }}\nsteps:\n"
    );
    for index in 0..ATTEMPTS {
        let _ = writeln!(text, "  - {{ id: s{index}, role: waiter, needs: [] }}");
    }
    let project = Project::new("waiting", &text)?;
    fs::create_dir_all(project.dir().join(".gatewright"))?;
    let agent =
        "agents:\n  waiter: { command: [sh, -c, \"echo here >> here; exec sleep 1000\"], sandbox: off }\n";
    fs::write(project.dir().join(".gatewright/config.yaml"), agent)?;
    let mut engine = project.command(program, &["run", "./bench.yaml", "x"]).spawn()?;
    let here = project.dir().join("here");
    let began = wait_for(&mut engine, || fs::read_to_string(&here).unwrap_or_default().lines().count());
    let now = Memory::of(engine.id()).unwrap_or_default();
    // Whatever was measured, nobody stays behind.
    project.quietly(program, &["abort", "latest"])?;
    engine.wait()?;
    project.remove()?;
    began.map(|()| now.resident_kb as f64)
}

/// Until all attempts are at work; an error says how many came.
fn wait_for(engine: &mut Child, count: impl Fn() -> usize) -> io::Result<()> {
    let (mut came, mut last) = (0, Instant::now());
    while came < ATTEMPTS {
        let now = count();
        if now > came {
            (came, last) = (now, Instant::now());
        }
        if last.elapsed() > PATIENCE || engine.try_wait()?.is_some() {
            return Err(io::Error::other(format!("only {came} of {ATTEMPTS} attempts began")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// How many processes are there for runs that wait for a person: those in whose environment this project's state is.
fn people(program: &Path) -> io::Result<usize> {
    let text =
        "workflow: bench\nsteps:\n  - { id: ask, decide: \"Go on?\", answers: { yes: pass, no: block } }\n";
    let project = Project::new("people", text)?;
    for _ in 0..WAITING_RUNS {
        let (_, status) = project.run(program, &["run", "./bench.yaml", "x"])?;
        if status.code() != Some(10) {
            return Err(io::Error::other(format!("a run that asks exited with {status}")));
        }
    }
    let mark = project.state().display().to_string();
    let mut found = 0;
    for entry in fs::read_dir("/proc")? {
        let environment = fs::read(entry?.path().join("environ")).unwrap_or_default();
        found += usize::from(String::from_utf8_lossy(&environment).contains(&mark));
    }
    project.remove()?;
    Ok(found)
}

/// What a run leaves behind, by length and by blocks.
fn disk(program: &Path) -> io::Result<(u64, u64)> {
    let project = Project::new("disk", &project::trivial(STEPS))?;
    project.expect_done(program, &["run", "./bench.yaml", "x"])?;
    let mut folders = vec![project.state()];
    let (mut bytes, mut blocks) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let stat = entry.metadata()?;
            if stat.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += stat.len();
                blocks += std::os::unix::fs::MetadataExt::blocks(&stat) * 512;
            }
        }
    }
    project.remove()?;
    Ok((bytes / STEPS as u64, blocks / STEPS as u64))
}

/// How often the engine waits for the disk, for each step of a chain.
fn syncs(program: &Path) -> io::Result<Option<f64>> {
    let found = Command::new("strace").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let project = Project::new("syncs", &project::trivial(STEPS))?;
    let list = project.dir().join("syncs");
    let list_text = list.display().to_string();
    let arguments = ["-f", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", &list_text];
    let mut command = Command::new("strace");
    command.args(arguments).arg(program).args(["run", "./bench.yaml", "x"]);
    let status = project.place(&mut command).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the traced run exited with {status}")));
    }
    let count = fs::read_to_string(&list)?.lines().filter(|line| line.contains("sync")).count();
    project.remove()?;
    Ok(Some(count as f64 / STEPS as f64))
}
