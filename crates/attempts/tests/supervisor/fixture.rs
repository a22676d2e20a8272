//! One attempt in a temporary directory, and what tests ask of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gatewright_attempts::{
    AttemptDir, ExitRecord, LaunchSpec, OutputStream, Started, SupervisorCommand, kill_now, start_or_attach,
    wait_for_exit,
};

pub const DEADLINE: Duration = Duration::from_mins(1);

pub struct Fixture {
    pub root: tempfile::TempDir,
    pub dir: AttemptDir,
}

impl Fixture {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = AttemptDir::create(root.path().join("attempt")).unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root, dir }
    }

    /// An agent that is a shell script, in `work`, with a short grace.
    pub fn script(&self, script: &str) -> LaunchSpec {
        let env = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("GATEWRIGHT_OUT".to_owned(), self.dir.out_dir().to_str().unwrap().to_owned()),
        ]);
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        LaunchSpec { grace_ms: 200, ..LaunchSpec::new(argv, self.work(), env) }
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn start(&self, spec: &LaunchSpec) -> Started {
        start_or_attach(&self.dir, spec, &supervisor_command()).unwrap()
    }

    pub fn wait(&self) -> ExitRecord {
        let give_up_at = Instant::now() + DEADLINE;
        wait_for_exit(&self.dir, &|| Instant::now() > give_up_at, Duration::from_millis(100))
            .unwrap()
            .expect("the attempt ends in time")
    }

    /// Starts the agent and waits for its end.
    pub fn run(&self, spec: &LaunchSpec) -> ExitRecord {
        assert_eq!(self.start(spec), Started::Launched);
        self.wait()
    }

    pub fn stdout(&self) -> String {
        let (bytes, truncated) = self.dir.read_output_tail(OutputStream::Stdout, 1 << 20).unwrap();
        assert!(!truncated);
        String::from_utf8(bytes).unwrap()
    }

    /// The number an agent writes to a file in `work` when it has come so far.
    pub fn number(&self, name: &str) -> i32 {
        let path = self.work().join(name);
        let read = || fs::read_to_string(&path).ok()?.strip_suffix('\n')?.parse().ok();
        wait_for(&format!("a number in {name}"), read)
    }

    pub fn supervisor_pid(&self) -> i32 {
        wait_for("pid.json", || self.dir.pid_record().unwrap()).supervisor.pid
    }

    pub fn agent_pid(&self) -> i32 {
        wait_for("the agent's pid", || self.dir.pid_record().unwrap()?.agent).pid
    }

    /// Runs a supervisor by hand to its end.
    pub fn supervise_again(&self) {
        let status = Command::new(supervisor_program())
            .arg("supervise")
            .arg(&self.dir.path)
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Not unwrapped: a panic while a failed test unwinds would hide the failure.
        drop(kill_now(&self.dir));
    }
}

/// The example is built along with the tests (`cargo nextest run -p gatewright-attempts`).
pub fn supervisor_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples/supervise");
    assert!(program.exists(), "{} is missing: build the examples too", program.display());
    program
}

pub fn supervisor_command() -> SupervisorCommand {
    SupervisorCommand { program: supervisor_program(), args: vec!["supervise".to_owned()] }
}

pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up_at, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat).into_owned();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A number from `/proc/PID/status`, such as `VmHWM` in KiB.
pub fn status_number(pid: i32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

pub fn send(pid: i32, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap().success());
}
