//! Fix rounds: the first goes on with the implementer's conversation, and when that did not get there a fresh one begins,
//! with the model that is named for it.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say},
};

/// A reviewer that is content with the third look. It needs no model: this is about who mends.
const REVIEWER: &str = r#"cat > /dev/null; case $GATEWRIGHT_ROUND in 1|2) echo '{"approved": false, "issues": [{"severity": "high", "description": "no test", "location": "src/a:1"}], "summary": "not yet"}';; *) echo '{"approved": true, "issues": [], "summary": "fine"}';; esac"#;

/// Another model than its usual one: how it is named to the agent, and what the provider is asked for.
fn other_model(agent: &str) -> (&'static str, &'static str) {
    match agent {
        "claude" | "claude-acp" => ("claude-other", "claude-other"),
        "codex" => ("gpt-other", "gpt-other"),
        "gemini" => ("gemini-2.5-flash", "gemini-2.5-flash"),
        "opencode" | "opencode-acp" => ("fake/other", "other"),
        "qwen" | "pi" => ("other", "other"),
        agent => panic!("{agent} has no other model here"),
    }
}

pub fn rounds(agent: &str) {
    let ground = Ground::new(agent, |_: &Path| json!([rule("STEP-CODE", say(DONE))]));
    let (named, asked) = other_model(agent);
    ground.set(agent, "/resume_rounds", json!(1));
    ground.set(agent, "/models/fresh", json!(named));
    ground.add_agent("judge", &json!({"command": ["sh", "-c", REVIEWER]}));
    let workflow = "workflow: w\nroles: { coder: { prompt: You code. }, judge: { prompt: You judge., agent: judge, may_write: [] } }\nsteps:\n- { id: code, role: coder, prompt: STEP-CODE }\n- { id: review, review: code, by: judge, rounds_max: 4 }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();

    let code = ground.reports(&run, "code");
    assert_eq!(code.len(), 3, "{code:#?}");
    let sessions: Vec<String> = code.iter().map(Ground::session).collect();
    assert_eq!(sessions[0], sessions[1], "the first fix is a conversation of its own");
    assert_ne!(sessions[1], sessions[2], "the second fix goes on with what did not get there");
    // The ids are the agent's word; what its model was told is the proof.
    let log = ground.model.log();
    // A request without tools is for the title of a conversation.
    let of_turn = |one: &&Value| one["rule"] == 0 && one["offered"] != json!([]);
    let turns: Vec<(&Value, &Value)> =
        log.iter().filter(of_turn).map(|one| (&one["before"], &one["model"])).collect();
    assert_eq!(turns.len(), 3, "{log:#?}");
    let usual = turns[0].1;
    assert_ne!(usual, asked);
    let expected = [(&json!(0), usual), (&json!(1), usual), (&json!(0), &json!(asked))];
    assert_eq!(turns, expected, "texts before, model");
    let launched = ground.events(&run, "step.attempt.launched");
    let models: Vec<&Value> = launched
        .iter()
        .filter(|event| event["step"] == "code")
        .map(|event| &event["fact"]["model"])
        .collect();
    assert_eq!(models[2], named, "{models:?}");
    shown(agent, "rounds", "✓ resumed, then fresh with another model");
}
