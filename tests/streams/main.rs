//! Kills at random moments of a fan-out of 24 items in worktrees, four at a time, with dependencies, commits
//! and a merge: afterwards nothing that was finished ran again, no commit is there twice, nothing is missing.
//!
//! `STREAM_KILLS=N` makes the campaign longer, `STREAM_SEED=N` repeats one.
#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

const ITEMS: usize = 24;
/// No single wait is longer; a loaded machine is no failure.
const DEADLINE: Duration = Duration::from_mins(10);

const WORKFLOW: &str = r#"
workflow: wide
dir: "work/{{ run.id }}"
roles: { worker: { agent: mine, prompt: "Work on {{ item.id }}." }, planner: { agent: mine, prompt: "Plan." } }
steps:
  - { id: plan, role: planner, writes: { tasks.json: any } }
  - id: each
    for_each: tasks.json
    isolation: worktree
    parallel_max: 4
    steps:
      - { id: build, role: worker }
      - { id: test, role: worker }
  - { id: together, merge: each }
"#;

const AGENT: &str = r#"
cat > /dev/null
echo "$GATEWRIGHT_RUN $GATEWRIGHT_STEP $GATEWRIGHT_ATTEMPT" >> "$AGENT_LOG"
file=none
case $GATEWRIGHT_STEP in
  plan) cp "$TASKS" "$GATEWRIGHT_OUT/tasks.json"; file=tasks.json ;;
  */build) echo "$GATEWRIGHT_ITEM" > "$GATEWRIGHT_ITEM.txt" ;;
  */test) echo "tested" > "$GATEWRIGHT_ITEM.test" ;;
esac
printf 'STATUS: DONE\nFILE: %s\nSUMMARY: done\nNEXT_INPUT: none\n' "$file"
"#;

struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap() };
        let root = project.root();
        fs::create_dir_all(root.join(".gatewright/workflows")).unwrap();
        fs::write(root.join(".gatewright/workflows/wide.yaml"), WORKFLOW).unwrap();
        fs::write(root.join("agent.sh"), AGENT).unwrap();
        fs::write(root.join("start.txt"), "start\n").unwrap();
        let tasks = project.dir.path().join("tasks.json");
        fs::write(&tasks, tasks_json()).unwrap();
        let config = format!(
            "agents:\n  mine:\n    command: [\"sh\", \"{}\"]\n    set: {{ AGENT_LOG: \"{}\", TASKS: \"{}\" }}\n    sandbox: {{ write: [\"{}\"] }}\n",
            root.join("agent.sh").display(),
            project.log().display(),
            tasks.display(),
            project.log().parent().unwrap().display()
        );
        fs::create_dir_all(project.log().parent().unwrap()).unwrap();
        fs::write(root.join(".gatewright/config.yaml"), config).unwrap();
        project.git(&["init", "-q", "-b", "main"]);
        for (key, value) in [("user.name", "Test"), ("user.email", "test@example.org")] {
            project.git(&["config", key, value]);
        }
        project.git(&["add", "-A"]);
        project.git(&["commit", "-qm", "start"]);
        project
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log/agents.log")
    }

    fn surround(&self, command: &mut Command) {
        command
            .current_dir(self.root())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GATEWRIGHT_STATE_DIR", self.dir.path().join("state"))
            .stdin(Stdio::null());
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        self.surround(command.args(arguments));
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
        self.surround(command.args(arguments));
        let said = fs::File::create(self.said_path()).unwrap();
        command.stdout(Stdio::null()).stderr(said).spawn().unwrap()
    }

    fn said_path(&self) -> PathBuf {
        self.dir.path().join("engine.log")
    }

    fn says(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
        self.surround(command.args(arguments));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.says(&["status", "latest", "--json"])).ok()
    }

    fn events(&self) -> Vec<Value> {
        let text = self.says(&["events", "latest"]);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Our own processes apart, every git that works for this project.
    fn gits(&self) -> Vec<u32> {
        let wanted = self.dir.path().as_os_str().as_encoded_bytes().to_vec();
        let names = |bytes: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            read("comm").starts_with(b"git") && names(&read("environ"))
        })
        .collect()
    }
}

/// Chains and diamonds: every fourth item waits for nothing.
fn tasks_json() -> String {
    let items: Vec<Value> = (0..ITEMS)
        .map(|place| {
            let needs: Vec<String> = match place % 4 {
                0 => Vec::new(),
                3 => vec![format!("k{}", place - 1), format!("k{}", place - 2)],
                _ => vec![format!("k{}", place - 1)],
            };
            serde_json::json!({"id": format!("k{place}"), "depends_on": needs})
        })
        .collect();
    serde_json::json!({ "tasks": items }).to_string()
}

fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
        // It may have ended just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Waits for the end, at most for `patience`; then kills, and with it the gits, if told. Was it killed?
fn killed(project: &Project, mut engine: Child, patience: Duration, gits_too: bool) -> bool {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if engine.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
    if gits_too {
        project.gits().into_iter().for_each(kill);
    }
    true
}

fn assert_whole(project: &Project, story: &str) {
    let status = project.status().unwrap();
    let said = fs::read_to_string(project.said_path()).unwrap();
    assert_eq!(status["state"], "done", "{story}\n{status:#}\nthe engine said:\n{said}");
    let run = status["id"].as_str().unwrap().to_owned();
    // No attempt ran twice, and none after its step had passed.
    let log = fs::read_to_string(project.log()).unwrap();
    let mine: Vec<&str> = log.lines().filter(|line| line.starts_with(&run)).collect();
    let unique: BTreeSet<&&str> = mine.iter().collect();
    assert_eq!(unique.len(), mine.len(), "{story}: an attempt ran twice");
    let mut passed: BTreeSet<String> = BTreeSet::new();
    let mut ended: BTreeSet<String> = BTreeSet::new();
    for event in project.events() {
        let step = event["step"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "step.attempt.started" => {
                assert!(!passed.contains(&step), "{story}: {step} had passed and ran again");
                let item = step.rsplit_once('/').map_or("", |(item, _)| item);
                assert!(!ended.contains(item), "{story}: {item} was finished and ran again");
            }
            "step.passed" => assert!(passed.insert(step.clone()), "{story}: {step} passed twice"),
            "fanout.item.ended" => {
                ended.insert(format!("{step}/{}", event["key"].as_str().unwrap()));
            }
            _ => {}
        }
    }
    // On the run's branch: every commit once, every stream once, every file.
    let branch = format!("gatewright/{run}/_run");
    let trailer = |key: &str| format!("%(trailers:key=Gatewright-{key},valueonly,separator=%x2c)");
    let format = format!("--format={}|{}", trailer("Step"), trailer("Stream"));
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for line in project.git(&["log", &format, &format!("main..{branch}")]).lines() {
        *made.entry(line.to_owned()).or_default() += 1;
    }
    for place in 0..ITEMS {
        for line in
            [format!("each/k{place}/build|"), format!("each/k{place}/test|"), format!("together|k{place}")]
        {
            // A stream whose work came in with another one that builds on it needs no merge of its own.
            let least = usize::from(!line.starts_with("together"));
            let count = made.get(&line).copied().unwrap_or(0);
            assert!((least..=1).contains(&count), "{story}: {line} is there {count} times\n{made:#?}");
        }
    }
    let files = project.git(&["ls-tree", "--name-only", &branch]);
    for place in 0..ITEMS {
        for name in [format!("k{place}.txt"), format!("k{place}.test")] {
            assert!(files.lines().any(|file| file == name), "{story}: {name} is missing\n{files}");
        }
    }
    assert_eq!(project.git(&["status", "--porcelain", "--untracked-files=no"]), "", "{story}: the checkout");
    let left = project.git(&["worktree", "list", "--porcelain"]);
    let left: Vec<String> = left
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .skip(1)
        .map(|path| format!("{path}\n{}", project.git(&["-C", path, "status"])))
        .collect();
    assert!(left.is_empty(), "{story}: worktrees are left: {left:#?}");
}

/// Resumes inside the fan-out: nothing finished is run again, no commit is doubled.
#[test]
fn a_hundred_kills_inside_a_fan_out_repeat_nothing_and_lose_nothing() {
    let wanted = told("STREAM_KILLS").unwrap_or(100);
    let seed = told("STREAM_SEED").unwrap_or(0x9E37_79B9_7F4A_7C15);
    println!("STREAM_SEED={seed}");
    let mut random = seed;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut kills = 0;
    let mut runs = 0;
    while kills < wanted {
        let project = Project::new();
        runs += 1;
        let until = Instant::now() + DEADLINE;
        let mut arguments = vec!["run", "wide", "go"];
        // At most half of the campaign in one run, so that runs end too.
        let mut here = 0;
        loop {
            let patience =
                if here < wanted.div_ceil(2) { Duration::from_micros(next() % 700_000) } else { DEADLINE };
            let gits_too = next() % 4 == 0;
            let was_killed = killed(&project, project.spawn(&arguments), patience, gits_too);
            here += u64::from(was_killed);
            let begun = project.status().is_some();
            arguments = if begun { vec!["resume", "latest"] } else { vec!["run", "wide", "go"] };
            if !was_killed {
                break;
            }
            assert!(Instant::now() < until, "no end after {here} kills: {:#?}", project.status());
        }
        kills += here;
        assert_whole(&project, &format!("run {runs}, {here} kills"));
    }
    println!("{kills} kills in {runs} runs");
}
