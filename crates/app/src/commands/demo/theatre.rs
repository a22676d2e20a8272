//! The stage of the demo: a scratch repository, the real program as child processes, and the
//! journal, from which everything that is told is told.

use std::{
    cell::Cell,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use gatewright_core::{event::Event, ids::Timestamp, state::State};
use gatewright_host::{
    disk::{RealDisk, SharedDisk},
    project::Project,
    store::{RunStore, Snapshot},
};

use crate::{
    command_error::CommandError,
    rehearsal::scratch::Scratch,
    render::{event_line::event_line, text::shell_word},
    terminal::{Style, paint},
};

const REPOSITORY: &str = "greeter";
/// Longer than anything in the demo takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
const FILES: &[(&str, &str)] = &[
    ("greet.sh", include_str!("../../../demo/greet.sh")),
    ("tests/greet_test.sh", include_str!("../../../demo/greet_test.sh")),
    (".gatewright/workflows/ship.yaml", include_str!("../../../demo/ship.yaml")),
    (".gatewright/workflows/report.md", include_str!("../../../demo/report.md")),
    (".gatewright/workflows/reports/plan.yaml", include_str!("../../../demo/reports/plan.yaml")),
    (".gatewright/scenario.yaml", include_str!("../../../demo/scenario.yaml")),
];
const CONFIG: &str = include_str!("../../../demo/config.yaml");

pub struct Theatre {
    scratch: Scratch,
    repository: PathBuf,
    program: PathBuf,
    store: RunStore,
    pause: Duration,
    keep: bool,
    scenes: u32,
    /// The last line that was printed is a blank one.
    blank: Cell<bool>,
    /// Records that were told already.
    told: usize,
    /// An engine that runs while the scene goes on.
    engine: Option<Child>,
    /// The child that is under way, for the thread that cleans up after a signal; 0 = none.
    engine_id: Arc<AtomicU32>,
}

impl Theatre {
    pub fn open(keep: bool, pause: Duration) -> Result<Theatre, CommandError> {
        let mut scratch = Scratch::new("demo")?;
        if keep {
            scratch.keep();
        }
        scratch.write(REPOSITORY, FILES)?;
        let scenario = scratch.root.join(REPOSITORY).join(".gatewright/scenario.yaml");
        let config = CONFIG.replace("{scenario}", &scenario.display().to_string());
        scratch.write(REPOSITORY, &[(".gatewright/config.yaml", &config)])?;
        let repository = scratch.repository(REPOSITORY)?;
        let disk: SharedDisk = Arc::new(RealDisk);
        let store = RunStore::new(disk, Project::at(&repository, &scratch.state()));
        let engine_id = Arc::new(AtomicU32::new(0));
        scratch.goes_with_signals(&engine_id);
        Ok(Theatre {
            repository,
            program: std::env::current_exe()?,
            store,
            pause,
            keep,
            scenes: 0,
            blank: Cell::new(false),
            told: 0,
            engine: None,
            engine_id,
            scratch,
        })
    }

    /// Prints lines; never two blank ones in a row.
    fn print(&self, text: &str) {
        for line in text.split('\n') {
            if !(line.is_empty() && self.blank.replace(line.is_empty())) {
                println!("{line}");
            }
            self.blank.set(line.is_empty());
        }
    }

    pub fn scene(&mut self, title: &str) {
        if self.scenes > 0 && !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
        self.scenes += 1;
        self.print(&format!("\n{}\n", paint(Style::Bold, &format!("{}. {title}", self.scenes))));
    }

    pub fn say(&self, text: &str) {
        self.print(text);
    }

    pub fn print_indented(&self, text: &str) {
        for line in text.trim_end().lines() {
            self.print(format!("    {line}").trim_end());
        }
        self.print("");
    }

    pub fn show_file(&self, name: &str) -> Result<(), CommandError> {
        self.typed(&format!("cat {name}"));
        let text = std::fs::read_to_string(self.repository.join(name))?;
        self.print_indented(&text);
        Ok(())
    }

    fn typed(&self, line: &str) {
        self.print(&paint(Style::Cyan, &format!("  $ {line}")));
    }

    /// The program with the surroundings of the demo and of nothing else.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GATEWRIGHT_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.repository)
            .env("GATEWRIGHT_STATE_DIR", self.scratch.state())
            .env("XDG_CONFIG_HOME", self.scratch.root.join("config"))
            .stdin(Stdio::null());
    }

    /// Runs a command to its end; a signal to the demo ends it too.
    fn output(&self, mut command: Command) -> std::io::Result<Output> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        self.engine_id.store(child.id(), Ordering::SeqCst);
        let output = child.wait_with_output();
        self.engine_id.store(0, Ordering::SeqCst);
        output
    }

    /// Runs a command that drives the run to its next rest, and tells what happened.
    pub fn engine(&mut self, arguments: &[&str], expected: u8) -> Result<(), CommandError> {
        self.type_program(arguments);
        let output = self.output(self.command(arguments))?;
        self.tell()?;
        expect(arguments, &output, expected)
    }

    /// Runs a command that reads or refuses, and shows what it says.
    pub fn read(&self, arguments: &[&str], expected: u8) -> Result<(), CommandError> {
        self.type_program(arguments);
        let output = self.output(self.command(arguments))?;
        self.print_indented(&said(&output));
        expect(arguments, &output, expected)
    }

    pub fn shell(&self, line: &str, expected: u8) -> Result<(), CommandError> {
        self.typed(line);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        self.surround(&mut command);
        let output = self.output(command)?;
        self.print_indented(&said(&output));
        expect(&["sh", "-c", line], &output, expected)
    }

    fn type_program(&self, arguments: &[&str]) {
        let words: Vec<String> = arguments.iter().map(|word| shell_word(word)).collect();
        self.typed(&format!("gatewright {}", words.join(" ")));
    }

    /// Starts a command that goes on while the scene does.
    pub fn start(&mut self, arguments: &[&str]) -> Result<(), CommandError> {
        self.type_program(arguments);
        let child = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.engine_id.store(child.id(), Ordering::SeqCst);
        self.engine = Some(child);
        Ok(())
    }

    /// Looks at the journal until the condition holds.
    pub fn wait_until(
        &mut self,
        what: &str,
        holds: impl Fn(&Snapshot, usize) -> bool,
    ) -> Result<(), CommandError> {
        let give_up_at = Instant::now() + PATIENCE;
        while !holds(&self.snapshot()?, self.living()) {
            if Instant::now() > give_up_at {
                return Err(broken(&format!("waited {} s for {what}", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.tell()
    }

    /// `kill -9` of the engine.
    pub fn kill(&mut self) -> Result<(), CommandError> {
        let Some(mut engine) = self.engine.take() else { return Err(broken("there is no engine to kill")) };
        self.typed(&format!("kill -9 {}", engine.id()));
        engine.kill()?;
        let status = engine.wait()?;
        self.engine_id.store(0, Ordering::SeqCst);
        self.print("");
        if status.code().is_some() {
            return Err(broken("the engine had ended before it was killed"));
        }
        Ok(())
    }

    /// Processes of agents that are alive.
    pub fn living(&self) -> usize {
        self.scratch.living_attempts()
    }

    pub fn snapshot(&self) -> Result<Snapshot, CommandError> {
        Ok(self.store.snapshot(&self.store.find("latest")?, None)?)
    }

    /// A file of the run directory.
    pub fn run_file(&self, name: &str) -> Result<String, CommandError> {
        let path = self.snapshot()?.meta.run_dir.join(name);
        let shown = path.strip_prefix(&self.repository).unwrap_or(&path).display().to_string();
        self.typed(&format!("cat {shown}"));
        std::fs::read_to_string(&path).map_err(|error| broken(&format!("{}: {error}", path.display())))
    }

    pub fn count(&self, wanted: impl Fn(&Event) -> bool) -> Result<usize, CommandError> {
        let events = self.events()?;
        Ok(events.iter().filter(|(_, event)| wanted(event)).count())
    }

    fn events(&self) -> Result<Vec<(Timestamp, Event)>, CommandError> {
        let records = self.snapshot()?.records;
        let events: Result<Vec<_>, serde_json::Error> =
            records.iter().map(|record| Ok((Timestamp(record.at_ms), record.event()?))).collect();
        Ok(events?)
    }

    /// What has been recorded since the last time.
    fn tell(&mut self) -> Result<(), CommandError> {
        let snapshot = self.snapshot()?;
        let plan = &snapshot.frozen.plan;
        let mut state = State::new(plan);
        let events = self.events()?;
        if self.told == 0 {
            self.print(&format!("    {}", snapshot.meta.id));
        }
        for (place, (at, event)) in events.iter().enumerate() {
            state.apply(plan, event, *at);
            if place < self.told {
                continue;
            }
            if let Event::DecisionOpened { decision } = event {
                self.print(&format!("    ? {}: {}", decision.id, decision.question));
            } else if let Some(line) = event_line(plan, &state, event) {
                self.print(&format!("    {line}"));
            }
        }
        self.print("");
        self.told = events.len();
        Ok(())
    }

    /// A claim of the story that must be true.
    pub fn promise(&self, holds: bool, what: &str) -> Result<(), CommandError> {
        if !holds {
            return Err(broken(&format!("it is not true that {what}")));
        }
        self.print(&format!("{} {what}.", paint(Style::Green, "✓")));
        Ok(())
    }

    /// Takes everything away; says how many processes could not be.
    pub fn close(mut self) -> usize {
        if let Some(mut engine) = self.engine.take() {
            let _ = engine.kill();
            let _ = engine.wait();
            self.engine_id.store(0, Ordering::SeqCst);
        }
        self.scratch.end_attempts();
        let left = self.scratch.living_attempts();
        if self.keep {
            println!("\nThe scratch repository stays in {}", self.repository.display());
            println!(
                "  cd {}; GATEWRIGHT_STATE_DIR={} gatewright status",
                self.repository.display(),
                self.scratch.state().display()
            );
        }
        left
    }
}

/// The exit code is the promised one.
fn expect(arguments: &[&str], output: &Output, expected: u8) -> Result<(), CommandError> {
    if output.status.code() == Some(i32::from(expected)) {
        return Ok(());
    }
    let found = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
    Err(broken(&format!(
        "`{}` ended with {found}, not with {expected}:\n{}",
        arguments.join(" "),
        said(output)
    )))
}

/// What a command printed: data first, then talk.
fn said(output: &Output) -> String {
    let data = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    [data.trim_end(), talk.trim_end()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn broken(what: &str) -> CommandError {
    CommandError::failed(format!("the demo does not keep its promise: {what}"))
        .hint("that is a bug: gatewright demo --keep leaves everything in place for a look")
}
