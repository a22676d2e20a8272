//! Providers that fail: a server error, a dropped stream, a limit with a time, a refused key; and a
//! question that a person answers.

use std::path::Path;

use gatewright_agents::is_lost;
use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say},
};

const ASKS: &str = "STATUS: NEEDS_INPUT\nFILE: none\nSUMMARY: Something is unclear.\nNEXT_INPUT: none\n---\n- Q: Which language?";

/// Those that give up on a failing provider soon, and keep the conversation.
const GIVE_UP: [&str; 3] = ["claude", "codex", "pi"];

fn workflow(agent: &str) -> String {
    let retry = "retry: { attempts_max: 5 }";
    let outage = if GIVE_UP.contains(&agent) {
        format!("- {{ id: outage, role: worker, prompt: STEP-OUTAGE, {retry} }}\n")
    } else {
        String::new()
    };
    format!(
        "workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n\
         - {{ id: server, role: worker, prompt: STEP-SERVER, {retry} }}\n\
         {outage}\
         - {{ id: drop, role: worker, prompt: STEP-DROP, {retry} }}\n\
         - {{ id: rate, role: worker, prompt: STEP-RATE, {retry} }}\n\
         - {{ id: ask, role: worker, prompt: STEP-ASK, {retry} }}\n"
    )
}

fn rules(_: &Path) -> Value {
    let error = |status: u32, message: &str, times: u32| json!({"text": DONE, "error": {"status": status, "message": message, "retry_after": 2, "times": times}});
    // Codex reads the time at which its limit is over from a field of its own provider.
    let limit = |times: u32| json!({"text": DONE, "error": {"status": 429, "message": "limit", "resets_in": 2, "times": times}});
    json!([
        rule("cannot be used yet", say(DONE)),
        rule("STEP-SERVER", error(500, "scripted failure", 2)),
        rule("(?s)STEP-OUTAGE.*Previous Attempt", say(DONE)),
        rule("STEP-OUTAGE", json!({"error": {"status": 500, "message": "scripted outage"}})),
        rule("(?s)STEP-DROP.*Previous Attempt", say(DONE)),
        rule("STEP-DROP", json!({"text": DONE, "drop": 2})),
        json!({"match": "STEP-RATE", "model": "^fake-codex$", "reply": limit(1)}),
        rule("STEP-RATE", error(429, "rate limit reached, retry after 2", 4)),
        rule("(?s)STEP-ASK.*Answer: German", say(DONE)),
        rule("STEP-ASK", say(ASKS)),
    ])
}

pub fn weather(agent: &str) {
    let ground = Ground::new(agent, rules);
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow(agent));
    let run = ground.run(&["run", "w", "Go"]).exits(10, &ground).id();

    let server = ground.reports(&run, "server");
    assert_eq!(server.last().unwrap()["reply"]["outcome"], "done");
    let resumed = if GIVE_UP.contains(&agent) { ", ✓ resumed" } else { "" };
    if !resumed.is_empty() {
        goes_on_after_an_outage(&ground, &run);
    }
    shown(agent, "500", &format!("✓ by itself{resumed}"));
    assert_eq!(server.len(), 1, "{server:#?}");

    let drop = ground.reports(&run, "drop");
    assert_eq!(drop.last().unwrap()["reply"]["outcome"], "done");
    let first = &drop[0];
    let asked = ground.model.log().iter().filter(|one| one["reply"]["drop"].is_u64()).count();
    assert!(asked >= 1, "no answer was cut");
    let how = match (&first["trouble"]["kind"], first["repairs"].as_u64()) {
        (Value::String(kind), _) if kind == "network" => "✓ network",
        (Value::Null, Some(1..)) => "✓ mended",
        (Value::Null, None) => {
            assert_eq!((drop.len(), asked), (1, 2), "a cut answer was taken for an end: {first:#}");
            "✓ asks again by itself"
        }
        _ => panic!("a cut answer was taken for something else: {first:#}"),
    };
    let sessions: Vec<String> = drop.iter().map(Ground::session).collect();
    // An agent that keeps nothing of a turn that failed says so when it should go on with it.
    let lost = (1..=drop.len()).any(|attempt| {
        let number = attempt.to_string();
        is_lost(&ground.run(&["logs", &run, "drop", "--attempt", &number, "--raw"]).out)
    });
    assert!(lost || sessions.iter().all(|one| *one == sessions[0]), "{drop:#?}");
    shown(agent, "drop", &format!("{how}{}", if lost { ", began anew" } else { "" }));

    let rate = ground.reports(&run, "rate");
    assert_eq!(rate.last().unwrap()["reply"]["outcome"], "done");
    let waited = ground.events(&run, "quota.waiting");
    let kinds: Vec<&Value> = rate.iter().filter_map(|report| report.pointer("/trouble/kind")).collect();
    assert!(kinds.iter().all(|kind| **kind == "rate"), "{kinds:?}");
    // Every end by a limit is waited for, whether a time was named or not.
    assert_eq!(waited.len() + 1, rate.len(), "{rate:#?}");
    shown(agent, "429", if waited.is_empty() { "✓ waits by itself" } else { "✓ the engine waits" });

    let decisions: Value = serde_json::from_str(&ground.run(&["decisions", &run, "--json"]).out).unwrap();
    let id = decisions
        .pointer("/decisions/0/id")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{decisions:#}"));
    ground.run(&["answer", &run, id, "German"]).exits(0, &ground);
    let ask = ground.reports(&run, "ask");
    assert_eq!(ask.len(), 2, "{ask:#?}");
    assert_eq!(Ground::session(&ask[0]), Ground::session(&ask[1]), "the answer goes into its conversation");
    shown(agent, "answer", "✓");
}

/// The second start carries the first one's conversation on its command line.
fn goes_on_after_an_outage(ground: &Ground, run: &str) {
    let outage = ground.reports(run, "outage");
    assert_eq!(outage.len(), 2, "{outage:#?}");
    assert_eq!(outage[0]["trouble"]["kind"], "server", "{:#}", outage[0]);
    let session = Ground::session(&outage[0]);
    assert_eq!(session, Ground::session(&outage[1]));
    let argv = ground.argv(run, "outage", 2);
    let place = argv.iter().position(|word| *word == session).unwrap_or_else(|| panic!("{argv:?}"));
    assert!(["--resume", "resume", "--session-id"].contains(&argv[place - 1].as_str()), "{argv:?}");
}

/// A refused key is said at once and not tried again.
pub fn auth(agent: &str) {
    // Over ACP opencode tells only the provider's words.
    let words =
        if agent == "opencode-acp" { "Incorrect API key provided: scripted" } else { "scripted failure" };
    let rules = |_: &Path| json!([rule("STEP-AUTH", json!({"error": {"status": 401, "message": words}}))]);
    let ground = Ground::new(agent, rules);
    let step = "- { id: auth, role: worker, prompt: STEP-AUTH, retry: { attempts_max: 3 } }";
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(11, &ground).id();
    let reports = ground.reports(&run, "auth");
    assert_eq!(reports.len(), 1, "a refused key was tried again: {reports:#?}");
    assert_eq!(reports[0]["trouble"]["kind"], "auth");
    let status: Value = serde_json::from_str(&ground.run(&["status", &run, "--json"]).out).unwrap();
    assert_eq!(status["blocked_by"]["reason"], "tool_unavailable", "{status:#}");
    shown(agent, "401", "✓");
}
