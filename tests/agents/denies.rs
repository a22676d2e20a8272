//! Tools that an agent is offered and may not use on everything: it is refused, the refusal is on record, and it goes on.
//! And a role that has to stay off the network.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say, shell, tools},
};

/// It has no permissions: a tool is offered or not. A model that calls one that is not offered is refused.
const WITHOUT_PERMISSIONS: &str = "pi";
/// It cannot be given a list of commands; what it runs is held by a sandbox.
const BY_SANDBOX: &str = "codex";

pub fn denies(agent: &str) {
    match agent {
        WITHOUT_PERMISSIONS => not_offered(agent),
        BY_SANDBOX => off_the_network(agent),
        _ => unlisted_command(agent),
    }
}

/// A role that may run nothing has no tool for it.
fn not_offered(agent: &str) {
    let rules = |root: &Path| {
        let forbidden = shell(&format!("touch {}/forbidden.txt", root.display()));
        json!([
            rule("STEP-DENIED", json!([tools(json!([forbidden])), say(DONE)])),
            rule(
                "STEP-DENIED",
                json!([
                    tools(
                        json!([{"name": "bash", "input": {"command": forbidden["command"]}, "anyway": true}])
                    ),
                    say(DONE)
                ])
            )
        ])
    };
    for (limit, offered) in [("", true), (", may_run: []", false)] {
        let ground = Ground::new(agent, rules);
        let workflow = format!(
            "workflow: w\nroles: {{ worker: {{ prompt: You work.{limit} }} }}\nsteps:\n- {{ id: denied, role: worker, prompt: STEP-DENIED }}\n"
        );
        ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
        let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();
        let log = ground.model.log();
        let asked: Vec<&Value> = log.iter().filter(|one| one["rule"].is_u64()).collect();
        assert!(!asked.is_empty());
        for request in asked {
            let bash = request["offered"].as_array().unwrap().iter().any(|tool| tool == "bash");
            assert_eq!(bash, offered, "{limit}: {request:#}");
        }
        assert_eq!(ground.scratch.root().join("forbidden.txt").exists(), offered, "{limit}");
        let denied = &ground.reports(&run, "denied")[0]["denied"];
        assert_eq!(*denied == json!(["bash"]), !offered, "{denied:#}");
        let told = agent_events(&ground, &run).iter().any(|event| event["type"] == "agent.denied");
        assert_eq!(told, !offered, "{limit}");
    }
    shown(agent, "denied", "✓ not offered, recorded when called");
}

/// A command that is not on the role's list, by a tool that the agent has.
fn unlisted_command(agent: &str) {
    let rules = |root: &Path| {
        let forbidden = shell(&format!("touch {}/forbidden.txt", root.display()));
        json!([rule("STEP-DENIED", json!([tools(json!([forbidden])), say(DONE)]))])
    };
    let ground = Ground::new(agent, rules);
    let workflow = "workflow: w\nroles: { worker: { prompt: You work., may_run: [\"git status*\"] } }\nsteps:\n- { id: denied, role: worker, prompt: STEP-DENIED, retry: { attempts_max: 1 } }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();
    let asked = ground
        .model
        .log()
        .iter()
        .filter(|one| one["calls"].as_array().is_some_and(|calls| !calls.is_empty()))
        .count();
    assert!(asked >= 1, "the tool was not even offered: {:#?}", ground.model.log());
    assert!(!ground.scratch.root().join("forbidden.txt").exists(), "what is not listed was run");
    let report = &ground.reports(&run, "denied")[0];
    let denied = report["denied"].as_array().cloned().unwrap_or_default();
    assert!(
        !denied.is_empty(),
        "it is not on record: {report:#}\n{}",
        ground.run(&["logs", &run, "--raw"]).out
    );
    let events = agent_events(&ground, &run);
    for kind in ["agent.denied", "agent.finished"] {
        // Of opencode's stream the end is the end of the process.
        if kind == "agent.finished" && agent == "opencode" {
            continue;
        }
        assert!(events.iter().any(|event| event["type"] == kind), "{agent}: no {kind}: {events:#?}");
    }
    shown(agent, "denied", "✓ recorded");
}

pub fn agent_events(ground: &Ground, run: &str) -> Vec<Value> {
    let lines = ground.run(&["events", run, "--agents"]).out;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Inside our sandbox its own is left away; what its role says of the network is kept all the same.
fn off_the_network(agent: &str) {
    for (network, reached) in [("", true), (", network: false", false)] {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let rules = |root: &Path| {
            let root = root.display();
            let connect = format!(
                "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\" && touch {root}/reached.txt || touch {root}/refused.txt"
            );
            json!([rule("STEP-NETWORK", json!([tools(json!([shell(&connect)])), say(DONE)]))])
        };
        let ground = Ground::new(agent, rules);
        let workflow = format!(
            "workflow: w\nroles: {{ worker: {{ prompt: You work.{network} }} }}\nsteps:\n- {{ id: network, role: worker, prompt: STEP-NETWORK }}\n"
        );
        ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
        ground.run(&["run", "w", "Go"]).exits(0, &ground);
        let is_there = |name: &str| ground.scratch.root().join(name).exists();
        assert_eq!((is_there("reached.txt"), is_there("refused.txt")), (reached, !reached), "{network}");
    }
}
