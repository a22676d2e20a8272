//! The scratch project itself.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::{Ran, Running, Terminal, wait_for};

/// What every agent of a test can do. It notes each launch in `$HOME/calls` and keeps its prompt; both are
/// outside the repository, so that noting is no work.
const PRELUDE: &str = r#"
tag=$(printf %s "$GATEWRIGHT_STEP" | tr / _)
if [ -z "$KEEP_STDIN" ]; then cat > "$HOME/prompts/$tag.$GATEWRIGHT_ATTEMPT"; fi
printf '%s %s %s\n' "$GATEWRIGHT_STEP" "$GATEWRIGHT_ATTEMPT" "$GATEWRIGHT_ROUND" >> "$HOME/calls"
brief() { printf 'STATUS: %s\nFILE: %s\nSUMMARY: %s\nNEXT_INPUT: none\n' "$1" "${2:-none}" "${3:-It is done.}"; }
ok() { brief DONE none "$1"; }
put() { printf '%s\n' "${2:-content of $1}" > "$GATEWRIGHT_OUT/$1"; }
wrote() { put "$@"; brief DONE "$1" "Wrote $1."; }
approve() { echo '{"approved": true, "issues": [], "summary": "fine"}'; }
demand() { printf '{"approved": false, "issues": [{"severity": "%s", "description": "%s", "location": "src/a:1"}], "summary": "not yet"}\n' "${1:-high}" "${2:-no test}"; }
mark() { : > "$HOME/$1"; }
# Waits for the test, at most a minute: a test that died must not leave us here.
await() { turns=0; while [ ! -e "$HOME/$1" ]; do turns=$((turns+1)); [ $turns -lt 6000 ] || exit 99; sleep 0.01; done; }
"#;

/// A project in a temporary folder. When it is dropped nothing of it runs any more.
pub struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// A repository with one commit, and `mine`, the shell script of [`Scratch::agent`], as the agent.
    pub fn new() -> Scratch {
        let scratch = Scratch { dir: TempDir::with_prefix("gw-test-").unwrap() };
        for folder in ["repo/.gatewright/workflows", "repo/src", "home/prompts", "state", "output"] {
            std::fs::create_dir_all(scratch.dir.path().join(folder)).unwrap();
        }
        // Agents of tests note what they do in their home directory.
        std::fs::create_dir_all(scratch.home().join(".config/gatewright")).unwrap();
        std::fs::write(
            scratch.home().join(".config/gatewright/config.yaml"),
            "sandbox: { write: [\"~\"] }\n",
        )
        .unwrap();
        scratch.write("src/a.txt", "a\n");
        scratch.config("");
        // Methods that somebody changed to see a test fail: a project's own come before the built-in ones.
        if let Some(methods) = std::env::var_os("GATEWRIGHT_TEST_METHODS") {
            let mut copy = Command::new("cp");
            copy.arg("-r")
                .arg(Path::new(&methods).join("."))
                .arg(scratch.root().join(".gatewright/workflows"));
            assert!(copy.status().unwrap().success(), "the methods cannot be copied");
        }
        scratch.git(&["init", "-q", "-b", "main"]);
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-q", "-m", "start"]);
        scratch
    }

    /// A project with one workflow `w` and the cases of its agent.
    pub fn with(workflow: &str, agent: &str) -> Scratch {
        let scratch = Scratch::new();
        scratch.workflow("w", workflow);
        scratch.agent(agent);
        scratch
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("repo").canonicalize().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Writes a file of the repository.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join("repo").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The lines after `workflow: NAME`; `dir:` and the roles `planner coder reviewer reader` are there already.
    pub fn workflow(&self, name: &str, body: &str) {
        let roles = "roles:\n  planner: { prompt: Plan it. }\n  coder: { prompt: Build it. }\n  reviewer: { prompt: Review it. }\n  reader: { prompt: Look into it., may_write: [] }\n";
        let roles = if body.contains("\nroles:") || body.starts_with("roles:") { "" } else { roles };
        let text = format!("workflow: {name}\ndir: \".workflow/{{{{ run.id }}}}\"\n{roles}{body}\n");
        self.write(&format!(".gatewright/workflows/{name}.yaml"), &text);
    }

    /// The configuration: agent `mine`, and these lines.
    pub fn config(&self, more: &str) {
        let script = self.dir.path().join("agent.sh");
        let agent = format!("agent: mine\nagents:\n  mine:\n    command: [sh, \"{}\"]\n", script.display());
        self.write(".gatewright/config.yaml", &format!("{agent}{more}\n"));
    }

    /// The agent: cases of a shell `case $GATEWRIGHT_STEP in`.
    pub fn agent(&self, cases: &str) {
        let text = format!("{PRELUDE}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) ok;;\nesac\n");
        std::fs::write(self.dir.path().join("agent.sh"), text).unwrap();
    }

    /// The agent as a whole script, after what every agent of a test can do.
    pub fn script(&self, text: &str) {
        std::fs::write(self.dir.path().join("agent.sh"), format!("{PRELUDE}\n{text}")).unwrap();
    }

    /// What an agent waits for with `await`.
    pub fn mark(&self, name: &str) {
        std::fs::write(self.home().join(name), "").unwrap();
    }

    /// Waits for an agent's `mark`.
    pub fn marked(&self, name: &str) {
        wait_for(&format!("the agent's mark `{name}`"), || self.home().join(name).exists().then_some(()));
    }

    /// Every launch so far: `step attempt round`, in order.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The steps of all launches, in order.
    pub fn called(&self) -> Vec<String> {
        self.calls().iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    /// How often a step was launched.
    pub fn count(&self, step: &str) -> usize {
        self.called().iter().filter(|name| *name == step).count()
    }

    /// The prompt of an attempt.
    #[track_caller]
    pub fn prompt(&self, step: &str, attempt: u32) -> String {
        let path = self.home().join("prompts").join(format!("{}.{attempt}", step.replace('/', "_")));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.dir.path().join("repo"));
        self.surround(&mut git);
        assert!(git.status().unwrap().success(), "git {arguments:?}");
    }

    /// What git prints in the repository.
    #[track_caller]
    pub fn git_says(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.dir.path().join("repo"));
        self.surround(&mut git);
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// The run's state directory.
    #[track_caller]
    pub fn state_dir(&self, run: &str) -> PathBuf {
        PathBuf::from(text(&self.status(run)["state_dir"]))
    }

    /// The same few variables for everything that is started here.
    fn surround(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        command.env("GATEWRIGHT_STATE_DIR", self.dir.path().join("state"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Test")
                .env(format!("GIT_{who}_EMAIL"), "test@example.org");
            command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
    }

    /// The binary, in the repository.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
        command.args(arguments).current_dir(self.dir.path().join("repo"));
        self.surround(&mut command);
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments), &self.dir.path().join("output"), None)
    }

    pub fn start_with(&self, mut command: Command, stdin: Option<&str>) -> Running {
        Running::start(&mut command, &self.dir.path().join("output"), stdin)
    }

    #[track_caller]
    pub fn gatewright(&self, arguments: &[&str]) -> Ran {
        self.start(arguments).ended()
    }

    pub fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(&mut self.command(arguments))
    }

    /// Runs workflow `w` until it rests; the exit code has to be this. Gives back the run id.
    #[track_caller]
    pub fn run(&self, code: i32) -> String {
        self.gatewright(&["run", "w", "Add a greeting"]).exits(code).id()
    }

    /// `status RUN --json`.
    #[track_caller]
    pub fn status(&self, run: &str) -> Value {
        let ran = self.gatewright(&["status", run, "--json"]);
        serde_json::from_str(&ran.out)
            .unwrap_or_else(|error| panic!("status: {error}\n{}\n{}", ran.out, ran.err))
    }

    /// The run's state in one word.
    #[track_caller]
    pub fn state(&self, run: &str) -> String {
        text(&self.status(run)["state"])
    }

    /// One step of `status --json`.
    #[track_caller]
    pub fn step(&self, run: &str, step: &str) -> Value {
        let status = self.status(run);
        let steps = status["steps"].as_array().unwrap().clone();
        let found = steps.iter().find(|other| other["id"] == step).cloned();
        found.unwrap_or_else(|| panic!("no step {step} in {status:#}"))
    }

    #[track_caller]
    pub fn step_state(&self, run: &str, step: &str) -> String {
        text(&self.step(run, step)["state"])
    }

    /// One decision of `status --json`.
    #[track_caller]
    pub fn decision(&self, run: &str, id: &str) -> Value {
        let status = self.status(run);
        let decisions = status["decisions"].as_array().unwrap().clone();
        let found = decisions.iter().find(|other| other["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("no decision {id} in {:#}", status["decisions"]))
    }

    /// Why the run is blocked or paused: `(reason, message)`.
    #[track_caller]
    pub fn blocked_by(&self, run: &str) -> (String, String) {
        let status = self.status(run);
        let by = &status["blocked_by"];
        assert!(by.is_object(), "nothing blocks the run: {status:#}");
        (text(&by["reason"]), text(&by["message"]))
    }

    /// The journal.
    #[track_caller]
    pub fn events(&self, run: &str) -> Vec<Value> {
        let ran = self.gatewright(&["events", run]).exits(0);
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Events of one type.
    #[track_caller]
    pub fn events_of(&self, run: &str, kind: &str) -> Vec<Value> {
        self.events(run).into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The most attempts of these steps that were under way at the same time.
    #[track_caller]
    pub fn most_at_once(&self, run: &str, counts: impl Fn(&str) -> bool) -> usize {
        let (mut live, mut most) = (0, 0);
        for event in self.events(run).iter().filter(|event| event["step"].as_str().is_some_and(&counts)) {
            match event["type"].as_str() {
                Some("step.attempt.started") => live += 1,
                Some("step.attempt.ended") => live -= 1,
                _ => {}
            }
            most = most.max(live);
        }
        most
    }

    /// A file of the run directory, if it is there.
    #[track_caller]
    pub fn published(&self, run: &str, name: &str) -> Option<String> {
        std::fs::read_to_string(self.run_dir(run).join(name)).ok()
    }

    #[track_caller]
    pub fn run_dir(&self, run: &str) -> PathBuf {
        PathBuf::from(text(&self.status(run)["dir"]))
    }

    /// Waits until the run is in this state.
    #[track_caller]
    pub fn reaches(&self, run: &str, state: &str) {
        wait_for(&format!("{run} is {state}"), || (self.state(run) == state).then_some(()));
    }

    /// Processes that belong to this scratch project: `(pid, command line)`.
    pub fn processes(&self) -> Vec<(u32, String)> {
        processes_of(self.dir.path())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever is about to end by itself may; everybody else is ended by its id.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(3);
        let mut left = self.processes();
        while !left.is_empty() && !std::thread::panicking() && std::time::Instant::now() < patience {
            std::thread::sleep(std::time::Duration::from_millis(5));
            left = self.processes();
        }
        for (pid, _) in &left {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                // It may have ended just now.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        assert!(left.is_empty() || std::thread::panicking(), "left behind: {left:?}");
    }
}

/// A text of a JSON document.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// Our own processes apart, everything whose environment or command line names the folder.
fn processes_of(dir: &Path) -> Vec<(u32, String)> {
    let wanted = dir.as_os_str().as_encoded_bytes().to_vec();
    let names = |bytes: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if names(&line) || names(&environment) {
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}
