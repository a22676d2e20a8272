//! Fan-outs: many items with trivial processes beside the floor, and streams with a worktree and a commit each
//! beside a bare loop of the same git commands.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    floor::{self, Shape},
    project::{self, scratch},
};

const AT_ONCE: usize = 8;
const STREAMS: usize = 50;

/// One line per size: what an item costs beside an item of the smallest honest engine.
pub fn items(program: &Path, sizes: &[usize], repeats: usize) -> io::Result<()> {
    println!(
        "\n| fan-out | items | at once | floor ms/item | gatewright ms/item | ratio |\n|---|---|---|---|---|---|"
    );
    for count in sizes {
        let (mut floor, mut ours) = (Duration::MAX, Duration::MAX);
        for _ in 0..repeats {
            floor = floor.min(floor::run(Shape::Wide, *count, AT_ONCE)?);
            ours = ours.min(fan_out(program, *count)?);
        }
        let per_item = |time: Duration| time.as_secs_f64() * 1e3 / *count as f64;
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        println!(
            "| one check each | {count} | {AT_ONCE} | {:.3} | {:.3} | {ratio:.2} |",
            per_item(floor),
            per_item(ours)
        );
    }
    Ok(())
}

fn fan_out(program: &Path, count: usize) -> io::Result<Duration> {
    let dir = scratch("items")?;
    project::repository(&dir)?;
    let mut list = String::from("tasks:\n");
    for index in 0..count {
        let _ = writeln!(list, "- {{ id: i{index} }}");
    }
    std::fs::write(dir.join("tasks.yaml"), list)?;
    let text = format!(
        "workflow: bench\nparallel_max: {AT_ONCE}\nchecks: {{ t: {{ run: \"true\" }} }}\nsteps:\n  - id: each\n    for_each: ./tasks.yaml\n    parallel_max: {AT_ONCE}\n    steps: [ {{ id: one, check: t }} ]\n"
    );
    timed(program, dir, &text)
}

/// What a stream costs beside the git commands it consists of.
pub fn worktrees(program: &Path, repeats: usize) -> io::Result<()> {
    let (mut bare, mut ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..repeats {
        bare = bare.min(bare_loop()?);
        ours = ours.min(streams(program)?);
    }
    let per_stream = |time: Duration| time.as_secs_f64() * 1e3 / STREAMS as f64;
    println!(
        "\n| worktrees | streams | at once | bare loop ms/stream | gatewright ms/stream | ratio |\n|---|---|---|---|---|---|"
    );
    println!(
        "| one commit each | {STREAMS} | 1 | {:.1} | {:.1} | {:.2} |",
        per_stream(bare),
        per_stream(ours),
        ours.as_secs_f64() / bare.as_secs_f64()
    );
    Ok(())
}

fn git(folder: &Path, arguments: &[&str]) -> io::Result<()> {
    let status = Command::new("git")
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.org"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("git {arguments:?}: {status}"))) }
}

/// A repository of a few hundred small files.
fn repository(name: &str) -> io::Result<PathBuf> {
    let dir = scratch(name)?;
    for folder in 0..10 {
        std::fs::create_dir_all(dir.join(format!("src/{folder}")))?;
        for file in 0..30 {
            std::fs::write(
                dir.join(format!("src/{folder}/{file}.txt")),
                format!("{folder} {file}\n").repeat(50),
            )?;
        }
    }
    std::fs::write(dir.join(".gitignore"), "/state\n/work\n/.gatewright/runs\n/trees\n")?;
    git(&dir, &["init", "-q", "-b", "main"])?;
    git(&dir, &["config", "user.name", "Bench"])?;
    git(&dir, &["config", "user.email", "bench@example.org"])?;
    git(&dir, &["add", "-A"])?;
    git(&dir, &["commit", "-qm", "start"])?;
    Ok(dir)
}

fn bare_loop() -> io::Result<Duration> {
    let dir = repository("loop")?;
    let begin = Instant::now();
    for index in 0..STREAMS {
        let (branch, path) = (format!("stream-{index}"), dir.join(format!("trees/{index}")));
        let folder = path.to_string_lossy().into_owned();
        git(&dir, &["worktree", "add", "-q", "-b", &branch, &folder, "HEAD"])?;
        let line = format!("echo {index} > new-{index}.txt");
        Command::new("sh").args(["-c", &line]).current_dir(&path).status()?;
        git(&path, &["add", "-A"])?;
        git(&path, &["commit", "-qm", "work"])?;
        git(&dir, &["worktree", "remove", "--force", &folder])?;
    }
    let wall = begin.elapsed();
    std::fs::remove_dir_all(&dir)?;
    Ok(wall)
}

fn streams(program: &Path) -> io::Result<Duration> {
    let dir = repository("streams")?;
    let mut list = String::from("tasks:\n");
    for index in 0..STREAMS {
        let _ = writeln!(list, "- {{ id: i{index} }}");
    }
    std::fs::write(dir.join("tasks.yaml"), list)?;
    std::fs::create_dir_all(dir.join(".gatewright"))?;
    let reply = "printf 'STATUS: DONE\\nFILE: none\\nSUMMARY: done\\nNEXT_INPUT: none\\n'";
    let script = format!("cat > /dev/null; echo $GATEWRIGHT_ITEM > new-$GATEWRIGHT_ITEM.txt; {reply}\n");
    std::fs::write(dir.join("agent.sh"), script)?;
    let agent = dir.join("agent.sh");
    std::fs::write(
        dir.join(".gatewright/config.yaml"),
        format!("agents: {{ mine: {{ command: [sh, \"{}\"] }} }}\n", agent.display()),
    )?;
    let text = "workflow: bench\nroles: { coder: { agent: mine, prompt: Build. } }\nsteps:\n  - id: each\n    for_each: ./tasks.yaml\n    isolation: worktree\n    parallel_max: 1\n    steps: [ { id: one, role: coder } ]\n";
    timed(program, dir, text)
}

fn timed(program: &Path, dir: PathBuf, workflow: &str) -> io::Result<Duration> {
    std::fs::write(dir.join("bench.yaml"), workflow)?;
    let state = dir.with_extension("state");
    let begin = Instant::now();
    let status = Command::new(program)
        .args(["run", "./bench.yaml", "x"])
        .current_dir(&dir)
        .env("GATEWRIGHT_STATE_DIR", &state)
        .env("HOME", &dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let wall = begin.elapsed();
    if !status.success() {
        return Err(io::Error::other(format!("the run in {} exited with {status}", dir.display())));
    }
    std::fs::remove_dir_all(&state)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(wall)
}
