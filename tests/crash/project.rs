//! A scratch project with one workflow that has everything: an agent, a loop, a decision, a fan-out,
//! a check and a sub-run; and agents that write down every time they run.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

const ALL: &str = r#"
workflow: all
dir: "work/{{ run.id }}"
roles:
  worker: { agent: mine, prompt: "Work on {{ request }}." }
  builder: { agent: mine, prompt: "Work on {{ item.id }}.", may_write: [] }
  judge: { agent: mine, prompt: "Judge it.", may_write: [] }
checks:
  there: { run: "test -d work" }
projections:
  - file: state.json
    json: { state: { $expr: "run.state" }, steps: { $for: "step in step_list", $key: "step.id", each: { $expr: "step.state" } } }
steps:
  - { id: plan, role: worker, writes: { tasks.yaml: any } }
  - { id: agree, decide: "Go on?", show: [tasks.yaml], answers: { approved: pass, changes-requested: { redo: plan } } }
  - id: each
    for_each: tasks.yaml
    parallel_max: 2
    steps:
      - { id: build, role: builder }
      - { id: prove, check: there }
  - { id: code, role: worker, writes: { code.md: any }, checks: [there] }
  - { id: review, review: code, by: judge, reads: [code.md], rounds_max: 3 }
  - { id: inner, run: small }
"#;

const SMALL: &str = r#"
workflow: small
roles:
  worker: { agent: mine, prompt: "Work." }
checks:
  there: { run: "true" }
steps:
  - { id: one, role: worker }
  - { id: two, check: there }
"#;

/// A question beside a branch that is at work.
const TWO: &str = r#"
workflow: two
roles:
  worker: { agent: mine, prompt: "Work." }
steps:
  - { id: busy, role: worker, needs: [] }
  - { id: agree, decide: "Go on?", answers: { approved: pass, no: block }, needs: [] }
"#;

const AGENT: &str = r#"
cat > /dev/null
echo "$GATEWRIGHT_STEP $GATEWRIGHT_ATTEMPT $GATEWRIGHT_RUN" >> "$AGENT_LOG"
while [ -e hold ] || [ -e "hold-$GATEWRIGHT_STEP" ]; do sleep 0.01; done
file=none
case $GATEWRIGHT_STEP in
  plan) printf 'tasks:\n- {id: a}\n- {id: b, depends_on: [a]}\n' > "$GATEWRIGHT_OUT/tasks.yaml"; file=tasks.yaml ;;
  code) echo "round $GATEWRIGHT_ROUND" > "$GATEWRIGHT_OUT/code.md"; file=code.md ;;
  review)
    if [ "$GATEWRIGHT_ROUND" = 1 ]; then
      echo '{"approved": false, "issues": [{"severity": "blocker", "description": "no test"}], "summary": "not yet"}'
    else
      echo '{"approved": true, "issues": [], "summary": "good"}'
    fi
    exit 0 ;;
esac
printf 'STATUS: DONE\nFILE: %s\nSUMMARY: done\nNEXT_INPUT: none\n' "$file"
"#;

pub struct Project {
    dir: tempfile::TempDir,
    /// The state directory, if it is not beside the repository.
    state: Option<PathBuf>,
}

pub struct Finished {
    /// `None`: it was killed.
    pub code: Option<i32>,
    pub stderr: String,
}

impl Project {
    pub fn new() -> Project {
        Project::with_state(None)
    }

    /// A project whose state directory is elsewhere: on a disk that a test can fill, lock or cut off.
    pub fn with_state(state: Option<PathBuf>) -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap(), state };
        let root = project.root();
        fs::create_dir_all(root.join(".gatewright/workflows")).unwrap();
        fs::write(root.join(".gatewright/workflows/all.yaml"), ALL).unwrap();
        fs::write(root.join(".gatewright/workflows/small.yaml"), SMALL).unwrap();
        fs::write(root.join(".gatewright/workflows/two.yaml"), TWO).unwrap();
        fs::write(root.join("agent.sh"), AGENT).unwrap();
        let config = format!(
            "agents:\n  mine:\n    command: [\"sh\", \"agent.sh\"]\n    set: {{ AGENT_LOG: \"{}\" }}\n    sandbox: {{ write: [\"{}\"] }}\n",
            project.log().display(),
            project.log().parent().unwrap().display()
        );
        fs::create_dir_all(project.log().parent().unwrap()).unwrap();
        fs::write(root.join(".gatewright/config.yaml"), config).unwrap();
        project
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log/agents.log")
    }

    fn command(&self, arguments: &[&str], fault: Option<&str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
        command
            .args(arguments)
            .current_dir(self.root())
            .env("HOME", self.dir.path())
            .env("GATEWRIGHT_STATE_DIR", self.state.clone().unwrap_or_else(|| self.dir.path().join("state")))
            .env("GATEWRIGHT_CLOCK_FILE", self.clock_file())
            .env("GATEWRIGHT_FAULT", fault.unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    fn clock_file(&self) -> PathBuf {
        self.dir.path().join("clock")
    }

    /// Somebody sets the machine's clock: so many milliseconds off from now on.
    pub fn set_clock(&self, off_by_ms: i64) {
        fs::write(self.clock_file(), off_by_ms.to_string()).unwrap();
    }

    /// How many operations of each kind the engine does in an act that nothing disturbs.
    pub fn count_operations(&self, arguments: &[&str]) -> std::collections::BTreeMap<String, u64> {
        let log = self.dir.path().join("operations");
        let status = self.command(arguments, None).env("GATEWRIGHT_FAULT_LOG", &log).output().unwrap().status;
        assert!(matches!(status.code(), Some(0 | 10)), "{arguments:?} ends with {status}");
        let mut counts = std::collections::BTreeMap::new();
        for line in fs::read_to_string(&log).unwrap().lines() {
            let mut words = line.split(' ');
            let (kind, number) = (words.next().unwrap(), words.next().unwrap().parse::<u64>().unwrap());
            let known = counts.entry(kind.to_owned()).or_insert(0);
            *known = number.max(*known);
        }
        counts
    }

    pub fn gatewright(&self, arguments: &[&str], fault: Option<&str>) -> Finished {
        let output = self.command(arguments, fault).output().unwrap();
        Finished { code: output.status.code(), stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
    }

    pub fn spawn(&self, arguments: &[&str], fault: Option<&str>) -> Child {
        self.command(arguments, fault).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments, None).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "{arguments:?}: {error}\n{}\n{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }

    pub fn status(&self) -> Value {
        self.json(&["status", "latest", "--json"])
    }

    pub fn runs(&self) -> Vec<Value> {
        self.json(&["list", "--json"])["runs"].as_array().cloned().unwrap_or_default()
    }

    pub fn events(&self) -> Vec<Value> {
        let output = self.command(&["events", "latest"], None).output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn agent_log(&self) -> Vec<String> {
        fs::read_to_string(self.log()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Agents wait until they are let go.
    pub fn hold(&self) {
        fs::write(self.root().join("hold"), "").unwrap();
    }

    pub fn hold_step(&self, step: &str) {
        fs::write(self.root().join(format!("hold-{step}")), "").unwrap();
    }

    pub fn let_go(&self) {
        for entry in fs::read_dir(self.root())
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("hold"))
        {
            fs::remove_file(entry.path()).unwrap();
        }
    }

    /// A question is on record.
    pub fn is_asked(&self) -> bool {
        !self.runs().is_empty() && self.events().iter().any(|event| event["type"] == "decision.opened")
    }

    /// Resumes and answers until the run is over. A crash before the run was on record starts anew.
    pub fn finish(&self, story: &str) {
        for _ in 0..20 {
            if self.runs().is_empty() {
                self.gatewright(&["run", "all", "go"], None);
                continue;
            }
            let status = self.status();
            let finished = match status["state"].as_str().unwrap() {
                "done" | "failed" | "abandoned" => return,
                "waiting" => self.gatewright(&["answer", "latest", "agree", "approved"], None),
                _ => self.gatewright(&["resume", "latest"], None),
            };
            assert_ne!(finished.code, Some(70), "{story}: {}", finished.stderr);
        }
        panic!("{story}: the run does not end: {:#}", self.status());
    }

    /// Starts or resumes the run and kills something after a while; was anything killed?
    pub fn run_and_kill(&self, victim: u64, patience: Duration) -> bool {
        let mut engine = if self.runs().is_empty() {
            self.spawn(&["run", "all", "go"], None)
        } else if self.status()["state"] == "waiting" {
            self.spawn(&["answer", "latest", "agree", "approved"], None)
        } else {
            self.spawn(&["resume", "latest"], None)
        };
        let until = Instant::now() + patience;
        while Instant::now() < until {
            std::thread::yield_now();
        }
        let alive = engine.try_wait().unwrap().is_none();
        if victim == 0 || victim == 3 {
            let _ = engine.kill();
        }
        let words: &[&str] = match victim {
            0 => &[],
            1 => &["supervise"],
            2 => &["agent.sh"],
            _ => &["supervise", "agent.sh"],
        };
        for pid in words.iter().flat_map(|word| self.processes(word)) {
            Self::signal(pid, "KILL");
        }
        let _ = engine.wait();
        alive
    }

    /// Processes of this project whose command line has the word.
    pub fn processes(&self, word: &str) -> Vec<u32> {
        let mark = self.dir.path().display().to_string();
        let own = std::process::id();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| *pid != own)
            .filter(|pid| {
                let read = |file: &str| {
                    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default())
                        .replace('\0', " ")
                };
                let line = read("cmdline");
                line.contains(word) && (line.contains(&mark) || read("environ").contains(&mark))
            })
            .collect()
    }

    pub fn signal(pid: u32, name: &str) {
        let _ =
            Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
    }

    pub fn wait_for(holds: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_mins(1);
        while !holds() {
            assert!(Instant::now() < until, "waited too long");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Artifacts are there, and the projection says what the journal says.
    pub fn assert_files(&self, story: &str) {
        let status = self.status();
        let dir = PathBuf::from(status["dir"].as_str().unwrap());
        assert_eq!(fs::read_to_string(dir.join("code.md")).unwrap(), "round 2\n", "{story}");
        assert!(dir.join("tasks.yaml").exists(), "{story}");
        let projected: Value = serde_json::from_slice(&fs::read(dir.join("state.json")).unwrap()).unwrap();
        assert_eq!(projected["state"], "done", "{story}: a stale projection");
        for step in status["steps"].as_array().unwrap() {
            assert_eq!(
                projected["steps"][step["id"].as_str().unwrap()],
                step["state"],
                "{story}: a stale projection"
            );
        }
    }

    pub fn assert_nothing_runs(&self, story: &str) {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let left: Vec<u32> =
                self.processes("agent.sh").into_iter().chain(self.processes("supervise")).collect();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "{story}: processes are left over: {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
