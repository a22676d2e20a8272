//! An engine that is killed while the agent works, and an abort while a tool runs: nothing is lost,
//! nothing is run twice, nothing is left behind. An agent that falls silent is ended.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use gatewright_agents::is_lost;
use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::{Ground, PATIENCE},
    rules::{DONE, rule, say, shell, tools},
    support::Terminal,
};

/// It tells of a tool when that has ended.
const TELLS_TOOLS_LATE: &str = "opencode";

fn rules(root: &Path) -> Value {
    let slow = format!("true && sleep 4.25 && echo once >> {}/killed.txt", root.display());
    json!([
        rule("(?s)STEP-CLIENT.*Previous Attempt", say(DONE)),
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
    if agent != TELLS_TOOLS_LATE {
        engine.shows("sleep 301.5", 1);
    }
    shown(agent, "watch", if agent == TELLS_TOOLS_LATE { "✓, a tool when it has ended" } else { "✓" });

    ground.run(&["abort", "latest"]).exits(0, &ground);
    assert_eq!(engine.exit_code(), 1, "an aborted run has failed");
    until(&ground, "nothing is left behind", || !runs(&ground, "sleep 301.5"));
    shown(agent, "cancel", "✓");
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
            rule("(?s)STEP-HANG.*Previous Attempt", say(DONE)),
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
fn a_budget_ends_an_agent_that_goes_on_and_on() {
    let rules = |_: &Path| {
        let mut again = tools(json!([shell("true && echo more")]));
        again["usage"] = json!({"input": 4000, "output": 100});
        json!([rule("STEP-BUDGET", again)])
    };
    let ground = Ground::new("claude", rules);
    let workflow = "workflow: w\nbudget: { tokens: 20000 }\nroles: { worker: { prompt: You work. } }\nsteps:\n- { id: spend, role: worker, prompt: STEP-BUDGET }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(12, &ground).id();
    let why = ground.events(&run, "run.paused")[0]["why"].clone();
    assert_eq!(why["kind"], "tokens", "{why:#}");
    let reports = ground.reports(&run, "spend");
    assert_eq!((reports.len(), &reports[0]["ended"]["how"]), (1, &json!("stopped")), "{reports:#?}");
}
