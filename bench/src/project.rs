//! The same graph as a workflow, run by the real program in a scratch project.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::floor::Shape;

/// What one run took.
pub struct Measured {
    pub wall: Duration,
    /// Most memory that was resident, which it is while the definition is read.
    pub peak_kb: u64,
    /// What was resident when last looked at, which is among its last steps.
    pub resident_kb: u64,
}

/// A new folder for one measurement, beside the benchmark's own program: a real disk, and a folder in which
/// nobody else makes files. State is hidden from checks, and the folders around it are listed for that; in the
/// machine's temporary folder, where everybody makes and removes files, others would be measured.
pub fn scratch(name: &str) -> io::Result<PathBuf> {
    let stamp =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).unwrap_or(Path::new(".")).join("bench");
    let dir = folder.join(format!("{name}-{}-{stamp}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// A folder that is a project of its own, and not part of the one around it.
pub fn repository(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let status = Command::new("git").args(["init", "--quiet"]).current_dir(dir).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("git init: {status}"))) }
}

/// A scratch project with one workflow, `bench.yaml`, and its state beside it.
pub struct Project {
    scratch: PathBuf,
    dir: PathBuf,
}

impl Project {
    pub fn new(name: &str, workflow: &str) -> io::Result<Project> {
        let scratch = scratch(name)?;
        let dir = scratch.join("project");
        repository(&dir)?;
        std::fs::write(dir.join("bench.yaml"), workflow)?;
        Ok(Project { scratch, dir })
    }

    pub fn state(&self) -> PathBuf {
        self.scratch.join("state")
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// When each step of the only run passed, in milliseconds, in the order in which they did.
    pub fn ends_of_steps(&self) -> io::Result<Vec<i64>> {
        let journal = crate::commands::find(&self.state(), "journal.jsonl")?;
        let text = std::fs::read_to_string(journal)?;
        let passed = text.lines().filter(|line| line.contains("\"type\":\"step.passed\""));
        passed
            .map(|line| {
                let record: serde_json::Value = serde_json::from_str(line)?;
                let at = record["at"].as_str().unwrap_or_default();
                let at: jiff::Timestamp = at.parse().map_err(io::Error::other)?;
                Ok(at.as_millisecond())
            })
            .collect()
    }

    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.scratch)
    }

    /// Gives a command its place: the project's folder and state, nothing to read, nobody who listens.
    pub fn place<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.dir)
            .env("GATEWRIGHT_STATE_DIR", self.state())
            .env("HOME", &self.scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
    }

    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        self.place(command.args(arguments));
        command
    }

    /// How long a command takes, however it ends.
    pub fn quietly(&self, program: &Path, arguments: &[&str]) -> io::Result<Duration> {
        let begin = Instant::now();
        self.command(program, arguments).status()?;
        Ok(begin.elapsed())
    }

    pub fn expect_done(&self, program: &Path, arguments: &[&str]) -> io::Result<Measured> {
        let (measured, status) = self.run(program, arguments)?;
        if status.success() {
            return Ok(measured);
        }
        Err(io::Error::other(format!("the run exited with {status}")))
    }

    /// Runs a command to its end and watches its memory.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> io::Result<(Measured, ExitStatus)> {
        let begin = Instant::now();
        let mut child = self.command(program, arguments).spawn()?;
        let mut used = Memory::default();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            used = Memory::of(child.id()).unwrap_or(used);
            std::thread::sleep(Duration::from_millis(5));
        };
        let Memory { peak_kb, resident_kb } = used;
        Ok((Measured { wall: begin.elapsed(), peak_kb, resident_kb }, status))
    }
}

/// A chain of trivial checks.
pub fn trivial(steps: usize) -> String {
    workflow(Shape::Chain, steps, 1)
}

fn workflow(shape: Shape, steps: usize, at_once: usize) -> String {
    let mut text =
        format!("workflow: bench\nparallel_max: {at_once}\nchecks: {{ t: {{ run: \"true\" }} }}\nsteps:\n");
    for index in 0..steps {
        let needs: Vec<String> = shape.needs(index).iter().map(|need| format!("s{need}")).collect();
        let _ = writeln!(text, "  - {{ id: s{index}, check: t, needs: [{}] }}", needs.join(", "));
    }
    text
}

pub fn run(program: &Path, shape: Shape, steps: usize, at_once: usize) -> io::Result<Measured> {
    let project = Project::new("run", &workflow(shape, steps, at_once))?;
    let measured = project.expect_done(program, &["run", "./bench.yaml", "x"])?;
    project.remove()?;
    Ok(measured)
}

/// What a process holds of the machine's memory.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub peak_kb: u64,
    pub resident_kb: u64,
}

impl Memory {
    /// `None` when it is gone, or about to be.
    pub fn of(pid: u32) -> Option<Memory> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |label: &str| {
            let line = text.lines().find(|line| line.starts_with(label))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Some(Memory { peak_kb: number("VmHWM:")?, resident_kb: number("VmRSS:")? })
    }
}
