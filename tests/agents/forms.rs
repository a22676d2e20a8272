//! Replies that are JSON: told to the agent by its own option where it has one, and never believed. And a model that has
//! no place, for which the next one answers.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say, tools},
};

fn good() -> Value {
    let none = Value::Null;
    json!({"approved": true, "issues": [], "summary": "Fine.", "questions": none, "back_to": none, "reason": none})
}

fn open_good() -> Value {
    json!({"approved": true, "issues": [], "summary": "Fine."})
}

/// A reviewer (`STEP-FORM`) whose first reply is against its schema.
pub fn rules() -> Vec<Value> {
    // In the same conversation or by a new attempt, which is told why.
    let again = "(?s)cannot be used yet.*approved|STEP-FORM.*Previous Attempt";
    let by_tool = |name: &str| {
        rule(again, json!([tools(json!([{"name": name, "input": open_good()}])), say("Handed in.")]))
    };
    vec![
        by_tool("StructuredOutput"),
        by_tool("structured_output"),
        rule(again, say(&good().to_string())),
        rule("STEP-FORM", say("{\"approved\": \"yes\"}")),
    ]
}

/// A reply that is against its schema does not count, whatever option the agent was given.
pub fn forms(agent: &str, ground: &Ground, run: &str) {
    let option = match agent {
        "claude" | "qwen" => Some("--json-schema"),
        "codex" => Some("--output-schema"),
        _ => None,
    };
    let argv = ground.argv(run, "form", 1);
    for flag in ["--json-schema", "--output-schema"] {
        assert_eq!(argv.iter().any(|word| word == flag), option == Some(flag), "{argv:?}");
    }
    let reviews = ground.reports(run, "form");
    let (last, before) = reviews.split_last().unwrap();
    assert_eq!(last["reply"]["outcome"], "passed", "{last:#}");
    let mended = last["repairs"].as_u64().is_some_and(|turns| turns > 0);
    assert!(mended || !before.is_empty(), "a reply against its schema was believed: {reviews:#?}");
    let how = if mended { "✓ mended" } else { "✓ tried again" };
    shown(
        agent,
        "schema",
        &option.map_or_else(|| format!("no option, {how}"), |flag| format!("`{flag}`, {how}")),
    );
}

/// Codex has no flag for models to fall back to.
#[test]
fn the_next_model_answers_where_the_first_has_no_place() {
    let rules = |_: &Path| {
        let limit = json!({"error": {"status": 429, "message": "rate limit", "resets_in": 3600}});
        json!([{"match": "STEP-MODEL", "model": "^gone$", "reply": limit}, rule("STEP-MODEL", say(DONE))])
    };
    let ground = Ground::new("codex", rules);
    ground.configure("codex: {", "codex: {\"fallback\": [\"fake-codex\"], ");
    let step = "- { id: work, role: worker, model: gone, prompt: STEP-MODEL, retry: { attempts_max: 2 } }";
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(0, &ground).id();
    let work = ground.reports(&run, "work");
    assert_eq!((work.len(), &work[0]["next_model"]), (2, &json!("fake-codex")), "{work:#?}");
    assert_eq!((&work[1]["model"], &work[1]["instead_of"]), (&json!("fake-codex"), &json!("gone")));
    assert_eq!(Ground::session(&work[0]), Ground::session(&work[1]), "it is a conversation of its own");
}
