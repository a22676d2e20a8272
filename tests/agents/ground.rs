//! A scratch project in which a real agent works, with its settings for the scripted model.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{fake_model::FakeModel, support::Scratch};

/// No single command of a test takes longer, on a machine that is busy with others.
pub const PATIENCE: Duration = Duration::from_secs(400);

pub struct Ground {
    // Dropped before the scratch project, which wants to be alone then.
    pub model: FakeModel,
    pub scratch: Scratch,
}

/// Where the agents are installed: by `./test agents`, or where the variable says.
pub fn cache() -> PathBuf {
    let place = std::env::var_os("GATEWRIGHT_TEST_AGENTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/agents"), PathBuf::from);
    place.canonicalize().unwrap_or_else(|error| {
        panic!("{}: {error}: run `tests/agents/install.sh {}`", place.display(), place.display())
    })
}

pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn exits(self, code: i32, ground: &Ground) -> Ended {
        if self.code != code {
            let logs = ground.run(&["logs", "latest"]);
            let events = ground.run(&["events", "latest"]);
            let model: Vec<String> = ground
                .model
                .log()
                .iter()
                .map(|one| format!("rule {} turn {} {}", one["rule"], one["turn"], one["user"]))
                .collect();
            panic!(
                "exit code {} instead of {code}\n--- stderr\n{}\n--- events\n{}\n--- logs\n{}\n--- model\n{}",
                self.code,
                self.err,
                events.out,
                logs.out,
                model.join("\n")
            );
        }
        self
    }

    pub fn id(&self) -> String {
        self.out.lines().next().unwrap_or_default().to_owned()
    }
}

impl Ground {
    /// A project with this agent as its default, and a model that follows the rules.
    pub fn new(agent: &str, rules: impl FnOnce(&Path) -> Value) -> Ground {
        Ground::with(&[agent], rules, "")
    }

    pub fn with(agents: &[&str], rules: impl FnOnce(&Path) -> Value, more: &str) -> Ground {
        let scratch = Scratch::new();
        // In the sandbox as it is by default: nothing but the places that the adapters list.
        fs::remove_file(scratch.home().join(".config/gatewright/config.yaml")).unwrap();
        let model = FakeModel::start(&scratch.home().join("model"), &rules(&scratch.root()));
        let ground = Ground { model, scratch };
        let mut config = format!("agent: {}\nagents:\n", agents[0]);
        for agent in agents {
            config.push_str(&format!("  {agent}: {}\n", ground.settings(agent)));
        }
        ground.scratch.write(".gatewright/config.yaml", &format!("{config}{more}\n"));
        ground
    }

    fn home_file(&self, path: &str, text: &str) {
        let path = self.scratch.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What a user of this agent would have set up, pointed at the scripted model.
    fn settings(&self, agent: &str) -> Value {
        let base = format!("http://127.0.0.1:{}", self.model.port);
        if let Some(house) = agent.strip_suffix("-acp") {
            let mut settings = self.settings(house);
            settings["adapter"] = json!(house);
            settings["protocol"] = json!("acp");
            return settings;
        }
        match agent {
            "claude" => json!({"set": {
                "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_MAX_RETRIES": "2",
            }}),
            "codex" => {
                self.home_file(
                    ".codex/config.toml",
                    &format!("model = \"fake-codex\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"{base}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 2\nstream_max_retries = 0\n"),
                );
                json!({"set": {"FAKE_KEY": "dummy"}})
            }
            "gemini" => {
                let settings = json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
                    "general": {"maxAttempts": 3},
                });
                self.home_file(".gemini/settings.json", &settings.to_string());
                json!({"models": {"default": "gemini-2.5-pro"}, "set": {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": base}})
            }
            "opencode" => {
                let settings = json!({
                    "model": "fake/fake", "small_model": "fake/fake", "enabled_providers": ["fake"],
                    "provider": {"fake": {
                        "npm": "@ai-sdk/openai-compatible", "name": "fake",
                        "options": {"baseURL": format!("{base}/v1"), "apiKey": "dummy"},
                        "models": {
                            "fake": {"name": "fake", "cost": {"input": 1, "output": 2}, "limit": {"context": 200_000, "output": 8000}},
                            "other": {"name": "other", "limit": {"context": 200_000, "output": 8000}},
                        },
                    }},
                });
                self.home_file(".config/opencode/opencode.json", &settings.to_string());
                // What it would install at its first start.
                let (from, to) =
                    (cache().join("pkg/opencode-plugin"), self.scratch.home().join(".config/opencode"));
                for name in ["package.json", "package-lock.json", "node_modules"] {
                    std::os::unix::fs::symlink(from.join(name), to.join(name)).unwrap();
                }
                json!({})
            }
            "qwen" => json!({
                "models": {"default": "fake"}, "args": ["--auth-type", "openai"],
                "set": {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": format!("{base}/v1"), "OPENAI_MODEL": "fake"},
            }),
            "pi" => {
                let model = |name: &str| {
                    json!({
                        "id": name, "name": name, "reasoning": false, "input": ["text"], "contextWindow": 200_000,
                        "maxTokens": 8000, "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
                    })
                };
                let models = json!({"providers": {"fake": {
                    "baseUrl": format!("{base}/v1"), "api": "openai-completions", "apiKey": "dummy",
                    "models": [model("fake"), model("other")],
                }}});
                self.home_file(".pi/agent/models.json", &models.to_string());
                json!({"models": {"default": "fake"}, "args": ["--provider", "fake"]})
            }
            other => panic!("{other} has no settings here"),
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.scratch.command(arguments);
        let mut path = cache().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
        command.env("PATH", path);
        command
    }

    /// What the program prints where no other agent than this one is on the path.
    pub fn alone(&self, agent: &str, arguments: &[&str]) -> String {
        let folder = self.scratch.home().join("only");
        let _ = fs::create_dir(&folder);
        let program = if agent == "claude-acp" { "claude-agent-acp" } else { agent.trim_end_matches("-acp") };
        for name in ["node", program] {
            let _ = std::os::unix::fs::symlink(cache().join("bin").join(name), folder.join(name));
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        let ended =
            self.command(arguments).env("PATH", path).stdin(std::process::Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, &[])
    }

    /// The same, for a user with these variables.
    pub fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let folder = self.scratch.home().join("output");
        fs::create_dir_all(&folder).unwrap();
        let number = fs::read_dir(&folder).unwrap().count();
        let (out, err) = (folder.join(format!("{number}.out")), folder.join(format!("{number}.err")));
        let mut child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(std::process::Stdio::null())
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!(
                    "{arguments:?} hangs\n{}\n{}",
                    fs::read_to_string(&err).unwrap_or_default(),
                    self.run(&["logs", "latest"]).out
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Ended { code: status.code().unwrap_or(-1), out: text(&out), err: text(&err) }
    }

    /// The journal's events of one type.
    pub fn events(&self, run: &str, kind: &str) -> Vec<Value> {
        let lines = self.run(&["events", run]).out;
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The reports of a step's attempts, in order.
    pub fn reports(&self, run: &str, step: &str) -> Vec<Value> {
        let ended = self.events(run, "step.attempt.ended");
        ended.iter().filter(|event| event["step"] == step).map(|event| event["report"].clone()).collect()
    }

    /// A file in the directory of an attempt.
    pub fn attempt_file(&self, run: &str, step: &str, attempt: u32, name: &str) -> Value {
        let status: Value = serde_json::from_str(&self.run(&["status", run, "--json"]).out).unwrap();
        let state = Path::new(status["state_dir"].as_str().unwrap());
        let path = state.join(format!("attempts/{step}/{attempt}/{name}"));
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
    }

    /// How an attempt was started.
    pub fn argv(&self, run: &str, step: &str, attempt: u32) -> Vec<String> {
        let order = self.attempt_file(run, step, attempt, "launch.json");
        serde_json::from_value(order["argv"].clone()).unwrap_or_else(|error| panic!("{error}: {order:#}"))
    }

    /// Edits the project's configuration.
    pub fn configure(&self, from: &str, to: &str) {
        let path = self.scratch.root().join(".gatewright/config.yaml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }

    /// From now on the model is expected at this port, wherever its address stands.
    pub fn moves_to(&self, port: u16) {
        let (from, to) = (format!("127.0.0.1:{}", self.model.port), format!("127.0.0.1:{port}"));
        let home = self.scratch.home();
        let settings = [
            self.scratch.root().join(".gatewright/config.yaml"),
            home.join(".codex/config.toml"),
            home.join(".config/opencode/opencode.json"),
            home.join(".pi/agent/models.json"),
        ];
        for path in settings.iter().filter(|path| path.exists()) {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replace(&from, &to)).unwrap();
        }
    }

    /// Sets something of an agent in the project's configuration, by its place in it.
    pub fn set(&self, agent: &str, place: &str, value: Value) {
        let path = self.scratch.root().join(".gatewright/config.yaml");
        let text = fs::read_to_string(&path).unwrap();
        let start = format!("  {agent}: ");
        let set = |line: &str| {
            let Some(settings) = line.strip_prefix(&start) else { return line.to_owned() };
            let mut settings: Value = serde_json::from_str(settings).unwrap();
            let mut at = &mut settings;
            for key in place.trim_start_matches('/').split('/') {
                at = &mut at[key];
            }
            *at = value.clone();
            format!("{start}{settings}")
        };
        fs::write(&path, text.lines().map(|line| set(line) + "\n").collect::<String>()).unwrap();
    }

    /// One more agent in the project's configuration.
    pub fn add_agent(&self, agent: &str, settings: &Value) {
        self.configure("agents:\n", &format!("agents:\n  {agent}: {settings}\n"));
    }

    pub fn session(report: &Value) -> String {
        report["conversation"]["session"]
            .as_str()
            .unwrap_or_else(|| panic!("no conversation: {report:#}"))
            .to_owned()
    }
}
