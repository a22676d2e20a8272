//! What is told to agents over ACP in a way of its own for each: the model, and Codex's sandbox.

use std::path::Path;

use serde_json::json;

use crate::{
    ground::Ground,
    rules::{DONE, rule, say, tools, write},
};

/// A step that names a model, and writes a file: both arrive.
fn has_its_model(agent: &str, model: &str, asked: &str) {
    let rules = |root: &Path| {
        let file = write(format!("{}/greeting.txt", root.display()), "Hello\n");
        json!([rule("STEP-MODEL", json!([tools(json!([file])), say(DONE)]))])
    };
    let ground = Ground::new(agent, rules);
    let step = format!(
        "- {{ id: work, role: worker, model: {model}, prompt: STEP-MODEL, retry: {{ attempts_max: 1 }} }}"
    );
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();
    let requests: Vec<_> = ground.model.log().into_iter().filter(|one| one["rule"].is_u64()).collect();
    assert!(!requests.is_empty(), "it never asked its model");
    for request in requests {
        assert_eq!(request["model"], asked, "{request:#}");
    }
    let text = std::fs::read_to_string(ground.scratch.root().join("greeting.txt")).unwrap_or_default();
    assert_eq!(text.trim(), "Hello", "its tool did nothing: {:#?}", ground.reports(&run, "work"));
}

#[test]
fn claude_over_acp_has_the_model_of_its_step() {
    has_its_model("claude-acp", "claude-other", "claude-other");
}

#[test]
fn opencode_over_acp_has_the_model_of_its_step() {
    has_its_model("opencode-acp", "fake/other", "other");
}

/// Inside our sandbox its own cannot be made: its commands run all the same.
#[test]
fn codex_over_acp_has_the_model_of_its_step_and_its_tools_work() {
    has_its_model("codex-acp", "gpt-other", "gpt-other");
}

/// By our sandbox, as its own cannot be made inside.
#[test]
fn codex_over_acp_is_read_only_where_its_role_is() {
    let rules = |root: &Path| {
        let file = write(format!("{}/src/intruder.txt", root.display()), "I was here\n");
        json!([rule("STEP-READ", json!([tools(json!([file])), say(DONE)]))])
    };
    let ground = Ground::new("codex-acp", rules);
    let workflow = "workflow: w\nroles: { reader: { prompt: You read., may_write: [] } }\nsteps:\n- { id: read, role: reader, prompt: STEP-READ }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    ground.run(&["run", "w", "Go"]).exits(0, &ground);
    assert!(!ground.model.log().iter().all(|one| one["calls"] == json!([])), "it never tried");
    assert!(
        !ground.scratch.root().join("src/intruder.txt").exists(),
        "a read-only role wrote into the repository"
    );
}
