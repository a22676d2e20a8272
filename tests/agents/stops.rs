//! An engine that is killed while the agent works, an agent that falls silent, and an abort while a
//! tool runs: nothing is lost, nothing is run twice, nothing is left behind.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

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
        rule("(?s)STEP-HANG.*Previous Attempt", say(DONE)),
        rule("STEP-HANG", json!({"text": "starting, then silent for a long time", "hang": 160})),
        rule("STEP-CANCEL", json!([tools(json!([shell("true && sleep 301.5")])), say(DONE)])),
    ])
}

#[track_caller]
fn until(ground: &Ground, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > deadline {
            panic!("waited in vain: {what}\n{}", ground.run(&["logs", "latest"]).out);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn runs(ground: &Ground, command: &str) -> bool {
    ground.scratch.processes().iter().any(|(_, line)| line.starts_with(command))
}

pub fn stops(agent: &str) {
    let ground = Ground::new(agent, rules);
    let idle = if agent == "opencode" { "60s" } else { "30s" };
    ground.scratch.write(
        ".gatewright/workflows/w.yaml",
        &format!(
            "workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n\
             - {{ id: kill, role: worker, prompt: STEP-KILL }}\n\
             - {{ id: hang, role: worker, prompt: STEP-HANG, idle_timeout: {idle}, retry: {{ attempts_max: 3 }} }}\n\
             - {{ id: cancel, role: worker, prompt: STEP-CANCEL }}\n"
        ),
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

    let hang = ground.reports("latest", "hang");
    assert_eq!(hang[0]["ended"]["how"], "idle", "{:#}", hang[0]);
    assert_eq!(hang.last().unwrap()["reply"]["outcome"], "done");
    if hang[0]["conversation"].is_object() {
        assert_eq!(Ground::session(&hang[0]), Ground::session(hang.last().unwrap()));
    }
    shown(agent, "hang", if hang[0]["conversation"].is_object() { "✓ resumed" } else { "✓ began anew" });

    ground.run(&["abort", "latest"]).exits(0, &ground);
    until(&ground, "the engine ends", || engine.try_wait().unwrap().is_some());
    until(&ground, "nothing is left behind", || !runs(&ground, "sleep 301.5"));
    shown(agent, "cancel", "✓");
}
