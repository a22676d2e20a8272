//! What trying again cannot mend is not tried again; a provider that is not there may come back.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say},
};

/// It waits for its provider without end, and says so.
const ENDLESS: &str = "codex";

pub fn nobody_there(agent: &str) {
    let ground = Ground::new(agent, |_: &Path| json!([rule("STEP-GONE", say(DONE))]));
    // A port of nobody.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    ground.moves_to(port);
    let step =
        "- { id: gone, role: worker, prompt: STEP-GONE, idle_timeout: IDLE, retry: { attempts_max: 1 } }"
            .replace("IDLE", if agent == ENDLESS { "30s" } else { "5m" });
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(11, &ground).id();
    let report: &Value = &ground.reports(&run, "gone")[0];
    assert_eq!(report["trouble"]["kind"], "network", "{report:#}");
    // It says so more often than it would be idle.
    let waits = agent == ENDLESS;
    assert_eq!(report["ended"]["how"] == "signalled", waits, "{report:#}");
    shown(agent, "unreached", if waits { "✓ ended when idle" } else { "✓ gives up" });
}

/// How a provider says that a conversation has become too long for its model.
fn too_long(agent: &str) -> &'static str {
    match agent {
        "claude" | "claude-acp" => "prompt is too long: 250000 tokens > 200000 maximum",
        "gemini" => "The input token count (1250000) exceeds the maximum number of tokens allowed (1048576).",
        _ => {
            "This model's maximum context length is 200000 tokens. However, your messages resulted in 250000 tokens."
        }
    }
}

pub fn refused(agent: &str) {
    let rules = |_: &Path| {
        let error = |message: &str| json!({"error": {"status": 400, "message": message}});
        json!([
            rule("STEP-BAD", error("scripted: there is no such option")),
            rule("STEP-LONG", error(too_long(agent))),
        ])
    };
    let ground = Ground::new(agent, rules);
    let step = |id: &str, prompt: &str| {
        format!(
            "- {{ id: {id}, role: worker, needs: [], prompt: {prompt}, idle_timeout: 60s, retry: {{ attempts_max: 3 }} }}\n"
        )
    };
    let workflow = format!(
        "workflow: w\nroles: {{ worker: {{ prompt: You work., may_write: [] }} }}\nsteps:\n{}{}",
        step("bad", "STEP-BAD"),
        step("long", "STEP-LONG")
    );
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(11, &ground).id();
    for (step, kind) in [("bad", "bad_request"), ("long", "context")] {
        let reports = ground.reports(&run, step);
        assert_eq!(reports[0]["trouble"]["kind"], kind, "{:#}", reports[0]);
        assert_eq!(reports.len(), 1, "it was tried again: {reports:#?}");
    }
    shown(agent, "400", "✓");
}
