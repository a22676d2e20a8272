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
};

fn rules(root: &Path) -> Value {
    let slow = format!("true && sleep 4.25 && echo once >> {}/killed.txt", root.display());
    json!([
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
    ground.scratch.write(
        ".gatewright/workflows/w.yaml",
        "workflow: w\nroles: { worker: { prompt: You work. } }\nsteps:\n\
         - { id: kill, role: worker, prompt: STEP-KILL }\n\
         - { id: cancel, role: worker, prompt: STEP-CANCEL }\n",
    );
    let start = |arguments: &[&str]| {
        let mut command = ground.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut engine = start(&["run", "w", "Go"]);
    until(&ground, "the tool of `kill` runs", || runs(&ground, "sleep 4.25"));
    engine.kill().unwrap();
    engine.wait().unwrap();

    let mut engine = start(&["resume", "latest"]);
    until(&ground, "the tool of `cancel` runs", || runs(&ground, "sleep 301.5"));
    let killed = ground.reports("latest", "kill");
    assert_eq!(killed.len(), 1, "{killed:#?}");
    assert_eq!(killed[0]["reply"]["outcome"], "done", "{:#}", killed[0]);
    let text = std::fs::read_to_string(ground.scratch.root().join("killed.txt")).unwrap_or_default();
    assert_eq!(text, "once\n", "the tool's work was lost or done twice");
    shown(agent, "killed", "✓");

    ground.run(&["abort", "latest"]).exits(0, &ground);
    until(&ground, "the engine ends", || engine.try_wait().unwrap().is_some());
    until(&ground, "nothing is left behind", || !runs(&ground, "sleep 301.5"));
    shown(agent, "cancel", "✓");
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
    let idle = if agent.starts_with("opencode") { "45s" } else { "20s" };
    let step = format!(
        "- {{ id: hang, role: worker, prompt: STEP-HANG, idle_timeout: {idle}, retry: {{ attempts_max: 4 }} }}"
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
