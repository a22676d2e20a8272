//! The commands that read, with the real program in a scratch project.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

struct Scratch {
    root: tempfile::TempDir,
}

/// What a command said and how it ended.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Scratch {
    fn new() -> Scratch {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        Scratch { root }
    }

    fn with_workflow(name: &str, text: &str) -> Scratch {
        let scratch = Scratch::new();
        let folder = scratch.project().join(".gatewright/workflows");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
        scratch
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewright"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .env("GATEWRIGHT_STATE_DIR", self.state())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).output().unwrap())
    }

    /// The command has to succeed with one JSON document.
    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(arguments);
        let document: Value = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err));
        assert_eq!(document["schema_version"], 1);
        document
    }
}

fn said(output: Output) -> Said {
    let said = Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!said.err.contains("panicked"), "{}", said.err);
    assert!(!said.err.contains('\x1b'), "colours without a terminal: {}", said.err);
    said
}

/// Every journal below the state directory.
fn journal(state: &Path) -> PathBuf {
    let projects = std::fs::read_dir(state.join("projects")).unwrap().next().unwrap().unwrap().path();
    let run = std::fs::read_dir(projects.join("runs")).unwrap().next().unwrap().unwrap().path();
    run.join("journal.jsonl")
}

#[test]
fn an_empty_project_has_nothing_and_says_so() {
    let scratch = Scratch::new();
    assert_eq!(scratch.json(&["list", "--json"])["runs"], serde_json::json!([]));
    let status = scratch.run(&["status"]);
    assert_eq!((status.code, status.out.as_str()), (0, ""));
    assert!(status.err.contains("no runs"));
    for next in ["\n\nhint: gatewright run quick \"", "gatewright methods", "hint: gatewright demo"] {
        assert!(status.err.contains(next), "what to type next: {}", status.err);
        assert!(scratch.run(&["list"]).err.contains(next));
    }
    for command in
        [&["status", "latest"][..], &["why", "x"], &["show", "x"], &["logs", "x"], &["events", "x"]]
    {
        let said = scratch.run(command);
        assert_eq!(said.code, 2, "{command:?}: {}", said.err);
        assert!(
            said.out.is_empty() && said.err.starts_with("error: ") && said.err.contains("\n\nhint: "),
            "{}",
            said.err
        );
    }
    let clean = scratch.run(&["clean", "--yes"]);
    assert_eq!((clean.code, clean.out.as_str()), (0, ""));
}

#[test]
fn init_writes_at_most_five_files_and_never_over_one() {
    let scratch = Scratch::new();
    let dry = scratch.run(&["init", "--dry-run"]);
    assert_eq!(dry.code, 0);
    assert!(!scratch.project().join(".gatewright").exists());
    assert!(
        dry.out.lines().count() <= 5 && dry.out.lines().all(|line| line.starts_with("would write ")),
        "{}",
        dry.out
    );
    std::fs::create_dir_all(scratch.project().join(".gatewright")).unwrap();
    std::fs::write(scratch.project().join(".gatewright/config.yaml"), "agent: codex\n").unwrap();
    let real = scratch.run(&["init"]);
    assert_eq!(real.code, 0, "{}", real.err);
    assert!(real.out.contains("kept  .gatewright/config.yaml"), "{}", real.out);
    assert!(real.err.contains("next: gatewright run ship"), "{}", real.err);
    assert_eq!(
        std::fs::read_to_string(scratch.project().join(".gatewright/config.yaml")).unwrap(),
        "agent: codex\n"
    );
    let lint = scratch.run(&["lint"]);
    assert_eq!(lint.code, 0, "{}{}", lint.out, lint.err);
    assert!(lint.out.contains("0 error(s), 0 warning(s)"), "{}", lint.out);
    let again = scratch.run(&["init"]);
    assert!(again.out.lines().all(|line| line.starts_with("kept ")), "{}", again.out);
    let unknown = scratch.run(&["init", "--method", "nonsense"]);
    assert_eq!(unknown.code, 3);
}

#[test]
fn a_workflow_is_drawn_in_three_formats() {
    let scratch = Scratch::new();
    scratch.run(&["init"]);
    let mermaid = scratch.run(&["graph", "ship"]);
    assert_eq!(mermaid.code, 0, "{}", mermaid.err);
    for expected in [
        "flowchart TD",
        "subgraph s0[\"design\"]",
        "{\"approve-plan<br/>Build it this way?\"}",
        "-.->|\"changes-requested\"|",
        "-.->|\"fix, ≤ 3 rounds\"|",
    ] {
        assert!(mermaid.out.contains(expected), "{expected} is not in\n{}", mermaid.out);
    }
    let dot = scratch.run(&["graph", "ship", "--format", "dot"]);
    assert!(
        dot.out.starts_with("digraph \"ship\" {")
            && dot.out.contains("shape=diamond")
            && dot.out.contains("style=dashed"),
        "{}",
        dot.out
    );
    let svg = scratch.run(&["graph", "ship", "--format", "svg"]);
    assert!(svg.out.starts_with("<svg ") && svg.out.ends_with("</svg>\n"));
    assert_eq!(svg.out, scratch.run(&["graph", "ship", "--format", "svg"]).out);
    let unknown = scratch.run(&["graph", "nonsense"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("no workflow and no run `nonsense`"), "{}", unknown.err);
}

#[test]
fn built_in_methods_are_listed_drawn_and_ejected() {
    let scratch = Scratch::new();
    let document = scratch.json(&["methods", "--json"]);
    let methods = document["methods"].as_array().unwrap();
    for method in methods {
        let name = method["name"].as_str().unwrap();
        let graph = scratch.run(&["graph", name, "--format", "svg"]);
        assert_eq!(graph.code, 0, "{name}: {}", graph.err);
        let ejected = scratch.run(&["methods", "eject", name]);
        assert_eq!(ejected.code, 0, "{name}: {}", ejected.err);
        assert!(scratch.project().join(".gatewright/workflows").join(name).join("workflow.yaml").is_file());
        let again = scratch.run(&["methods", "eject", name]);
        assert!(again.out.lines().all(|line| line.starts_with("kept ")), "{}", again.out);
    }
    let unknown = scratch.run(&["methods", "eject", "../nonsense"]);
    assert_eq!(unknown.code, 3);
}

#[test]
fn the_doctor_names_what_is_wrong_and_the_remedy() {
    let scratch = Scratch::new();
    let folder = scratch.project().join(".gatewright");
    std::fs::create_dir_all(&folder).unwrap();
    let config =
        "agent: mine\nagents: { mine: { command: [no-such-program-here] }, shell: { command: [sh] } }\n";
    std::fs::write(folder.join("config.yaml"), config).unwrap();
    let said = scratch.run(&["doctor", "--json"]);
    assert_eq!(said.code, 1);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let missing =
        findings.iter().find(|finding| finding["what"].as_str().unwrap().contains("`mine`")).unwrap();
    assert_eq!(missing["level"], "error");
    assert!(
        missing["what"].as_str().unwrap().contains("no-such-program-here")
            && !missing["remedy"].as_str().unwrap().is_empty()
    );
    let agents = document["agents"].as_array().unwrap();
    let found = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap()["found"].clone();
    assert_eq!((found("mine"), found("shell")), (false.into(), true.into()));
    std::fs::write(folder.join("config.yaml"), "agnet: x\n").unwrap();
    let broken = scratch.run(&["doctor"]);
    assert_eq!(broken.code, 1);
    assert!(
        broken.out.contains("config.yaml:1:1") && broken.out.contains("did you mean `agent`?"),
        "{}",
        broken.out
    );
}

#[test]
fn completions_are_scripts_that_ask_the_program() {
    let scratch = Scratch::with_workflow("tiny", TINY);
    for shell in ["bash", "zsh", "fish"] {
        let said = scratch.run(&["completions", shell]);
        assert_eq!(said.code, 0);
        assert!(said.out.contains("GATEWRIGHT_COMPLETE") && said.out.contains("gatewright"), "{}", said.out);
    }
    let mut command = scratch.command(&["--", "gatewright", "run", ""]);
    let asked = said(command.env("GATEWRIGHT_COMPLETE", "fish").output().unwrap());
    assert!(asked.out.lines().any(|line| line.starts_with("tiny")), "{}{}", asked.out, asked.err);
}

const TINY: &str = r#"
workflow: tiny
checks:
  ok: { run: "printf 'fine \\033[31mred\\n'" }
stages:
  - id: first
    steps:
      - { id: one, check: ok }
      - { id: ask, decide: "Go <on>?", answers: { "yes": pass, "no": { redo: one } } }
  - id: second
    steps:
      - { id: two, check: ok }
"#;

/// A run that waits for its decision; its id.
fn waiting(scratch: &Scratch) -> String {
    let said = scratch.run(&["run", "tiny", "do it"]);
    assert_eq!(said.code, 10, "{}", said.err);
    said.out.lines().next().unwrap().to_owned()
}

#[test]
fn a_waiting_run_says_what_to_type() {
    let scratch = Scratch::with_workflow("tiny", TINY);
    let id = waiting(&scratch);
    let human = scratch.run(&["status", &id[..id.len() - 2]]);
    assert_eq!(human.code, 10);
    assert!(!human.out.contains('\x1b'), "colours without a terminal: {}", human.out);
    for expected in [
        "? ask: Go <on>?",
        &format!("gatewright answer {id} ask yes\n"),
        &format!("gatewright answer {id} ask no --comment"),
        "✓ one",
        "· two",
    ] {
        assert!(human.out.contains(expected), "{expected} is not in\n{}", human.out);
    }
    let said = scratch.run(&["status", &id, "--json"]);
    assert_eq!(said.code, 10);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (document["id"].as_str(), document["state"].as_str(), document["workflow"].as_str()),
        (Some(id.as_str()), Some("waiting"), Some("tiny"))
    );
    assert!(
        Path::new(document["dir"].as_str().unwrap()).is_absolute()
            && Path::new(document["state_dir"].as_str().unwrap()).is_dir()
    );
    assert_eq!(document["blocked_by"], Value::Null);
    let steps: Vec<_> = document["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (
                step["id"].as_str().unwrap(),
                step["state"].as_str().unwrap(),
                step["attempts"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(steps, [("one", "passed", 1), ("ask", "waiting", 0), ("two", "pending", 0)]);
    let decision = &document["decisions"][0];
    assert_eq!((decision["id"].as_str(), decision["status"].as_str()), (Some("ask"), Some("pending")));
    assert_eq!(decision["answers"], serde_json::json!(["yes", "no"]));
    let why = scratch.json(&["why", &id, "--json"]);
    assert_eq!(why["run"]["turn"], "person");
    assert_eq!(why["steps"][1]["misses"][0], "`ask` waits for a person");
    let step = scratch.run(&["why", &id, "tow"]);
    assert_eq!(step.code, 2);
    assert!(step.err.contains("did you mean two"), "{}", step.err);
    let drawn = scratch.run(&["graph", &id, "--format", "svg"]);
    assert!(drawn.out.contains("class=\"waiting\"") && drawn.out.contains("Go &lt;on&gt;?"), "{}", drawn.out);
    let clean = scratch.run(&["clean", &id, "--yes"]);
    assert_eq!(clean.code, 4, "{}", clean.err);
}

#[test]
fn a_finished_run_is_read_and_removed() {
    let scratch = Scratch::with_workflow("tiny", TINY);
    let id = waiting(&scratch);
    let answered = scratch.run(&["answer", &id, "ask", "yes"]);
    assert_eq!(answered.code, 0, "{}", answered.err);
    assert_eq!(scratch.run(&["status", &id]).code, 0);
    let why = scratch.run(&["why", &id]).out;
    assert!(why.contains("it is done") && !why.contains("gatewright resume"), "nothing goes on: {why}");
    let nothing = scratch.run(&["status"]).err;
    assert!(
        nothing.contains("1 run over: gatewright list") && nothing.contains("hint: gatewright run "),
        "{nothing}"
    );
    let listed = scratch.json(&["list", "--json"]);
    assert_eq!(
        (listed["runs"][0]["id"].as_str(), listed["runs"][0]["state"].as_str()),
        (Some(id.as_str()), Some("done"))
    );
    let events = scratch.run(&["events", "latest", "-f"]);
    assert_eq!(events.code, 0);
    for (index, line) in events.out.lines().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["seq"], index + 1);
        assert!(event["at"].is_string() && event["type"].is_string());
    }
    assert!(events.out.contains("\"type\":\"run.ended\""));
    let logs = scratch.run(&["logs", "latest"]);
    assert_eq!(logs.out.matches("==> ").count(), 2, "{}", logs_shown(&logs.out));
    let one = scratch.run(&["logs", "latest", "one", "-f"]);
    assert!(one.out.contains("fine"), "{}", one.out);
    assert_eq!(scratch.run(&["logs", "latest", "one", "--attempt", "7"]).code, 2);
    let step = scratch.run(&["show", &id, "one"]);
    assert_eq!(step.code, 0);
    assert!(step.out.contains("check: ok"), "{}", step.out);
    let listing = scratch.run(&["clean"]);
    assert!(listing.out.contains(&format!("would remove {id}")), "{}", listing.out);
    assert_eq!(scratch.run(&["clean", "--yes", "--artifacts"]).code, 0);
    assert_eq!(scratch.json(&["list", "--json"])["runs"], serde_json::json!([]));
    assert!(!scratch.project().join(".gatewright/runs").join(&id).exists());
}

fn logs_shown(text: &str) -> String {
    text.escape_debug().to_string()
}

#[test]
fn a_broken_journal_is_named_by_every_reader() {
    let scratch = Scratch::with_workflow("tiny", TINY);
    let id = waiting(&scratch);
    let path = journal(&scratch.state());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("do it", "do ti", 1)).unwrap();
    let status = scratch.run(&["status", &id]);
    assert_eq!(status.code, 70);
    assert!(
        status.err.contains("journal.jsonl line 1") && status.err.contains("hint: gatewright doctor"),
        "{}",
        status.err
    );
    let doctor = scratch.run(&["doctor"]);
    assert!(
        doctor.out.contains("cannot be read") && doctor.out.contains("journal.jsonl line 1"),
        "{}",
        doctor.out
    );
}

/// A program that calls itself an old Claude Code, and one that never answers.
#[test]
fn the_doctor_says_which_flags_an_agent_takes_and_which_it_lacks() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let folder = scratch.root.path().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let claude = "#!/bin/sh\ncase $1 in --version) echo '1.0.7 (Claude Code)';; --help) echo '  --model <m>  Model'; echo '  --resume, --verbose' >&2;; esac\n";
    let pi = "#!/bin/sh\ncase $1 in --version) echo 0.73.1;; *) echo '--mode'; exit 1;; esac\n";
    let codex = "#!/bin/sh\ncase $1 in --version) echo codex-cli 0.166.0;; exec) echo '  --json'; echo '  --config <k=v>';; esac\n";
    for (name, text) in [("claude", claude), ("pi", pi), ("codex", codex)] {
        std::fs::write(folder.join(name), text).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let doctor = |arguments: &[&str]| said(scratch.command(arguments).env("PATH", &path).output().unwrap());
    let document: Value = serde_json::from_str(&doctor(&["doctor", "--json"]).out).unwrap();
    let agents = document["agents"].as_array().unwrap();
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap().clone();
    let claude = agent("claude");
    assert_eq!(claude["flags"], serde_json::json!(["--model", "--resume", "--verbose"]), "{claude:#}");
    let missing = claude["flags_missing"].to_string();
    assert!(missing.contains("--json-schema") && !missing.contains("--model"), "{missing}");
    let findings = document["findings"].as_array().unwrap();
    let lacks = findings.iter().find(|one| one["what"].as_str().unwrap().contains("does not know")).unwrap();
    assert_eq!(lacks["level"], "warning", "it is the default agent: {lacks}");
    assert!(
        lacks["remedy"].as_str().unwrap().starts_with("npm install -g @anthropic-ai/claude-code@"),
        "{lacks}"
    );
    let pi = agent("pi");
    assert!(pi["flags"].is_null() && pi["flags_missing"] == serde_json::json!([]), "it did not say: {pi:#}");
    assert!(pi["traps"].to_string().contains("has no `--session-id`"), "a trap of old versions: {pi:#}");
    assert_eq!(agent("claude")["login"], "no");
    let logged_out = |findings: &Value| {
        let mut all = findings.as_array().unwrap().iter();
        all.find(|one| one["what"] == "agent `claude` seems not to be logged in").cloned()
    };
    let remedy = logged_out(&document["findings"]).unwrap()["remedy"].to_string();
    assert!(remedy.contains("/login") && remedy.contains("ANTHROPIC_API_KEY"), "{remedy}");
    // Pi leaves an empty file at its first start.
    let keys = scratch.root.path().join("home/.pi/agent/auth.json");
    std::fs::create_dir_all(keys.parent().unwrap()).unwrap();
    for (text, login) in [("{}\n", "no"), ("{\"anthropic\": {\"type\": \"oauth\"}}", "yes")] {
        std::fs::write(&keys, text).unwrap();
        let document: Value = serde_json::from_str(&doctor(&["doctor", "--json"]).out).unwrap();
        let agents = document["agents"].as_array().unwrap();
        assert_eq!(agents.iter().find(|one| one["name"] == "pi").unwrap()["login"], login, "{text}");
    }
    // With a key nobody has to log in; a model is not asked for that.
    let mut command = scratch.command(&["doctor", "--json"]);
    let with_key = said(command.env("PATH", &path).env("ANTHROPIC_API_KEY", "k").output().unwrap()).out;
    let with_key: Value = serde_json::from_str(&with_key).unwrap();
    assert_eq!(logged_out(&with_key["findings"]), None);
    let page = doctor(&["doctor"]).out;
    assert!(page.contains("takes --verbose --resume --model"), "{page}");
    // The same of one that is there and that nobody has asked for.
    assert!(page.contains("takes --json --config"), "{page}");
    assert!(page.contains("note: codex in its own sandbox .git is read-only"), "{page}");
    assert!(page.contains("  not logged in"), "{page}");
    // Settings of its own may name another way to a provider: then only its model could say.
    let settings = scratch.root.path().join("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "{}").unwrap();
    let document: Value = serde_json::from_str(&doctor(&["doctor", "--json"]).out).unwrap();
    let agents = document["agents"].as_array().unwrap();
    let claude = agents.iter().find(|one| one["name"] == "claude").unwrap();
    assert_eq!((logged_out(&document["findings"]), &claude["login"]), (None, &Value::Null));
    let unclear = "whether agent `claude` is logged in cannot be told without asking its model";
    let found = document["findings"].as_array().unwrap().iter().find(|one| one["what"] == unclear).unwrap();
    assert_eq!(
        (&found["level"], &found["remedy"]),
        (&"note".into(), &"gatewright doctor --probe claude".into())
    );
    let page = doctor(&["doctor"]).out;
    let line = page.lines().find(|line| line.contains("✓ claude")).unwrap();
    assert!(line.contains("  login not known") && !line.contains("not logged in"), "{page}");
}

/// An agent over ACP of which nothing is known, and one that is set up in the configuration: nobody says that they are not
/// logged in.
#[test]
fn doctor_does_not_say_that_somebody_is_logged_out_where_nothing_can_be_told() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.project().join(".gatewright")).unwrap();
    std::fs::write(
        scratch.project().join(".gatewright/config.yaml"),
        "agent: other\nagents:\n  other: { command: [sh], protocol: acp }\n  codex: { command: [sh], adapter: codex, set: { MY_KEY: k } }\n  opencode: { command: [sh], adapter: opencode }\n",
    )
    .unwrap();
    let document: Value = serde_json::from_str(&scratch.run(&["doctor", "--json"]).out).unwrap();
    for name in ["other", "codex", "opencode"] {
        let agents = document["agents"].as_array().unwrap();
        let agent = agents.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!((&agent["found"], &agent["login"]), (&true.into(), &Value::Null), "{agent:#}");
    }
    assert!(!document["findings"].to_string().contains("seems not to be logged in"), "{document:#}");
}

/// Who asks for an agent that nobody knows is told where it was looked for, what there is, and what to type next.
#[test]
fn an_unknown_agent_is_answered_with_those_that_work() {
    let scratch = Scratch::with_workflow(
        "w",
        "workflow: w\nroles: { coder: { prompt: p } }\nsteps:\n  - { id: code, role: coder }\n",
    );
    std::fs::write(
        scratch.project().join(".gatewright/config.yaml"),
        "agents: { mine: { command: [sh] } }\n",
    )
    .unwrap();
    let said = scratch.run(&["run", "w", "x", "--agent", "nobody"]).err;
    assert!(said.contains("there is no agent `nobody`: it is neither built in nor under `agents`"), "{said}");
    assert!(said.contains("gatewright doctor"), "{said}");
    for (name, listed) in
        [("mine", true), ("claude", true), ("rehearsal", true), ("copilot", false), ("goose", false)]
    {
        assert_eq!(said.contains(&format!("`{name}`")), listed, "{name}: {said}");
    }
}
