//! An engine that is killed while the agent works, and an abort while a tool runs: nothing is lost,
//! nothing is run twice, nothing is left behind. An agent that falls silent is ended.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use gatewright_agents::{acp_named, adapter_named, is_lost};
use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::{Ground, PATIENCE},
    rules::{DONE, rule, say, shell, tools},
    support::Terminal,
};

/// It has no way to use our tools.
const WITHOUT_MCP: &str = "pi";

fn rules(root: &Path) -> Value {
    let slow = format!("true && sleep 4.25 && echo once >> {}/killed.txt", root.display());
    json!([
        rule("(?s)STEP-CLIENT.*Inspect the working tree first", say(DONE)),
        rule("STEP-CLIENT", json!([tools(json!([shell("true && sleep 302.5")])), say(DONE)])),
        rule("STEP-KILL", json!([tools(json!([shell(&slow)])), say(DONE)])),
        rule("STEP-CANCEL", json!([tools(json!([shell("true && sleep 301.5")])), say(DONE)])),
    ])
}

#[track_caller]
fn until(ground: &Ground, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        let in_time = Instant::now() <= deadline;
        assert!(in_time, "waited in vain: {what}\n{}", ground.run(&["logs", "latest"]).out);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn runs(ground: &Ground, command: &str) -> bool {
    ground.scratch.processes().iter().any(|(_, line)| line.starts_with(command))
}

pub fn stops(agent: &str) {
    let ground = Ground::new(agent, rules);
    // Over ACP an agent dies with its client.
    let acp = agent.ends_with("-acp");
    let client = if acp { "- { id: client, role: worker, prompt: STEP-CLIENT }\n" } else { "" };
    let steps = format!(
        "- {{ id: kill, role: worker, prompt: STEP-KILL }}\n{client}- {{ id: cancel, role: worker, prompt: STEP-CANCEL }}\n"
    );
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{steps}");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let start = |arguments: &[&str]| {
        let mut command = ground.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut engine = start(&["run", "w", "Go"]);
    until(&ground, "the tool of `kill` runs", || runs(&ground, "sleep 4.25"));
    engine.kill().unwrap();
    engine.wait().unwrap();

    let mut command = ground.command(&["resume", "latest"]);
    let engine = Terminal::start(command.env("TERM", "xterm"));
    if acp {
        client_killed(&ground);
    }
    until(&ground, "the tool of `cancel` runs", || runs(&ground, "sleep 301.5"));
    let killed = ground.reports("latest", "kill");
    assert_eq!(killed.len(), 1, "{killed:#?}");
    assert_eq!(killed[0]["reply"]["outcome"], "done", "{:#}", killed[0]);
    let text = std::fs::read_to_string(ground.scratch.root().join("killed.txt")).unwrap_or_default();
    assert_eq!(text, "once\n", "the tool's work was lost or done twice");
    shown(agent, "killed", if acp { "✓, its client killed: resumed" } else { "✓" });
    engine.shows("sleep 301.5", 1);
    follows(&ground);
    if agent != WITHOUT_MCP {
        desk_is_inside(&ground);
    }
    shown(agent, "watch", "✓");

    ground.run(&["abort", "latest"]).exits(0, &ground);
    assert_eq!(engine.exit_code(), 1, "an aborted run has failed");
    until(&ground, "nothing is left behind", || !runs(&ground, "sleep 301.5"));
    if acp {
        let wire = ground.run(&["logs", "latest", "cancel", "--raw"]).out;
        assert!(wire.contains("session/cancel"), "it was not asked to cancel: {wire}");
        assert!(wire.contains("cancelled"), "it did not say that it has: {wire}");
    }
    let tool = ended_when_asked(agent, &ground);
    shown(agent, "cancel", &format!("✓ ended when asked, {tool}"));
}

/// The agent ended in its own way, as its page says: it was not killed. What became of its tool.
fn ended_when_asked(agent: &str, ground: &Ground) -> &'static str {
    let house = agent.trim_end_matches("-acp");
    let adapter = if house == agent { adapter_named(house).unwrap() } else { acp_named(house) };
    let (asked, tool) = adapter.capabilities().stopping.split_once("; ").unwrap();
    let launch = ground.attempt_file("latest", "cancel", 1, "launch.json");
    assert_eq!(launch["stop"] == "interrupt", asked == "SIGINT", "{launch:#}");
    assert_eq!(asked == "`session/cancel`", house != agent);
    let exit = ground.attempt_file("latest", "cancel", 1, "exit.json");
    assert_eq!(exit["ended"]["how"], "stopped", "{exit:#}");
    assert_eq!(exit["killed"], Value::Null, "it was killed: {exit:#}");
    // Processes of its own may end a moment after it (Qwen's do).
    let left = exit["left_behind"].as_array().is_some_and(|names| names.contains(&json!("sleep")));
    assert_eq!(!left, tool == "it ends its command", "{exit:#}");
    tool
}

/// The server of our tools, which the agent starts, is in the sandbox that the agent is in.
fn desk_is_inside(ground: &Ground) {
    let all = ground.scratch.processes();
    let desk = all.iter().find(|(_, line)| line.contains(" mcp --out ")).map(|(pid, _)| *pid);
    let desk = desk.unwrap_or_else(|| panic!("no server of our tools: {all:#?}"));
    let status = |pid: u32, key: &str| -> i64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim().parse().unwrap_or_else(|_| panic!("{key} {text}"))
    };
    // A kernel's sandbox holds for everything below who entered it, and demands this of who enters.
    assert_eq!(status(desk, "NoNewPrivs:"), 1, "it could get rights that the agent has not");
    let agent = ground.attempt_file("latest", "cancel", 1, "pid.json")["agent"]["pid"].as_i64().unwrap();
    let mut above = desk;
    while i64::from(above) != agent {
        above = u32::try_from(status(above, "PPid:")).unwrap();
        assert!(above > 1, "it is not below the agent");
    }
}

/// What it says is seen while it works.
fn follows(ground: &Ground) {
    let path = ground.scratch.home().join("followed");
    let mut logs = ground
        .command(&["logs", "latest", "cancel", "--follow"])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&path).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(ground, "its lines", || std::fs::read_to_string(&path).is_ok_and(|text| text.contains("I work.")));
    assert!(runs(ground, "sleep 301.5"), "it has ended meanwhile");
    assert!(logs.try_wait().unwrap().is_none(), "it does not wait for more");
    logs.kill().unwrap();
    logs.wait().unwrap();
}

/// The agent is gone with the client that drove it; the next attempt goes on with the conversation.
fn client_killed(ground: &Ground) {
    until(ground, "the tool of `client` runs", || runs(ground, "sleep 302.5"));
    let (client, _) = ground
        .scratch
        .processes()
        .into_iter()
        .find(|(_, line)| line.contains(" acp-turn ") && !line.contains(" supervise"))
        .unwrap_or_else(|| panic!("no client: {:?}", ground.scratch.processes()));
    let client = rustix::process::Pid::from_raw(client.cast_signed()).unwrap();
    rustix::process::kill_process(client, rustix::process::Signal::KILL).unwrap();
    until(ground, "`client` is tried again", || ground.reports("latest", "client").len() == 2);
    let reports = ground.reports("latest", "client");
    assert_eq!(reports[0]["ended"]["how"], "signalled", "{reports:#?}");
    assert_eq!(reports[1]["reply"]["outcome"], "done", "{reports:#?}");
    assert_eq!(Ground::session(&reports[0]), Ground::session(&reports[1]));
    assert!(!runs(ground, "sleep 302.5"), "its tool goes on");
}

/// Of whom nothing is heard is ended by the idle timeout, and the next attempt goes on with its conversation if
/// it had told which one that is.
pub fn silent(agent: &str) {
    let rules = |_: &Path| {
        json!([
            rule("(?s)STEP-HANG.*Inspect the working tree first", say(DONE)),
            rule("STEP-HANG", json!({"text": "starting, then silent for a long time", "hang": 160})),
        ])
    };
    let ground = Ground::new(agent, rules);
    // Long enough for every one of them to have asked its model; one that is too slow for that is ended once more.
    let idle = if agent.starts_with("opencode") { "30s" } else { "15s" };
    let step = format!(
        "- {{ id: hang, role: worker, prompt: STEP-HANG, idle_timeout: {idle}, retry: {{ attempts_max: 8 }} }}"
    );
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();
    let hang = ground.reports(&run, "hang");
    let (last, before) = hang.split_last().unwrap();
    assert_eq!(last["reply"]["outcome"], "done");
    assert!(!before.is_empty(), "it was not silent: {hang:#?}");
    for report in before {
        assert_eq!(report["ended"]["how"], "idle", "{report:#}");
    }
    let began = before.iter().find(|report| report["conversation"].is_object());
    let resumed = began.is_some_and(|report| Ground::session(report) == Ground::session(last));
    let lost = (1..=hang.len()).any(|attempt| {
        let number = attempt.to_string();
        is_lost(&ground.run(&["logs", &run, "hang", "--attempt", &number, "--raw"]).out)
    });
    assert!(resumed || began.is_none() || lost, "it forgot its conversation: {hang:#?}");
    shown(agent, "hang", if resumed { "✓ resumed" } else { "✓ began anew" });
}

/// What an agent spends is watched while it works, if it tells: one that uses tools without end is ended.
#[test]
fn a_budget_ends_claude_that_goes_on_and_on() {
    a_budget_ends("claude");
}

#[test]
fn a_budget_ends_opencode_that_goes_on_and_on() {
    a_budget_ends("opencode");
}

#[test]
fn a_budget_ends_pi_that_goes_on_and_on() {
    a_budget_ends("pi");
}

fn a_budget_ends(agent: &str) {
    let rules = |_: &Path| {
        let mut again = tools(json!([shell("true && echo more")]));
        again["usage"] = json!({"input": 4000, "output": 100});
        json!([rule("STEP-BUDGET", again)])
    };
    let ground = Ground::new(agent, rules);
    let workflow = "workflow: w\nbudget: { tokens: 20000 }\nroles: { worker: { prompt: You work. } }\nsteps:\n- { id: spend, role: worker, prompt: STEP-BUDGET }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(12, &ground).id();
    let why = ground.events(&run, "run.paused")[0]["why"].clone();
    assert_eq!(why["kind"], "tokens", "{why:#}");
    let reports = ground.reports(&run, "spend");
    assert_eq!((reports.len(), &reports[0]["ended"]["how"]), (1, &json!("stopped")), "{reports:#?}");
}
