//! Providers that fail: a server error, a dropped stream, a limit with a time, a refused key; a question that a person
//! answers, and a reply against its schema. All in one run, beside each other.

use std::path::Path;

use gatewright_agents::is_lost;
use serde_json::{Value, json};

use crate::{
    cells::shown,
    forms,
    ground::Ground,
    rules::{DONE, rule, say, tools},
};

const ASKS: &str = "STATUS: NEEDS_INPUT\nFILE: none\nSUMMARY: Something is unclear.\nNEXT_INPUT: none\n---\n- Q: Which language?";

/// Those that give up on a failing provider soon, and keep the conversation.
const GIVE_UP: [&str; 3] = ["claude", "codex", "pi"];

fn workflow(agent: &str) -> String {
    let retry = "needs: [], retry: { attempts_max: 5 }";
    let outage = if GIVE_UP.contains(&agent) {
        format!("- {{ id: outage, role: worker, prompt: STEP-OUTAGE, {retry} }}\n")
    } else {
        String::new()
    };
    // Who changes nothing may be in the checkout beside others.
    format!(
        "workflow: w\nparallel_max: 3\n\
         roles: {{ worker: {{ prompt: You work., may_write: [] }}, judge: {{ prompt: STEP-FORM, may_write: [] }} }}\nsteps:\n\
         - {{ id: server, role: worker, prompt: STEP-SERVER, {retry} }}\n\
         - {{ id: form, review: server, by: judge, retry: {{ attempts_max: 3 }} }}\n\
         {outage}\
         - {{ id: drop, role: worker, prompt: STEP-DROP, {retry} }}\n\
         - {{ id: rate, role: worker, prompt: STEP-RATE, {retry} }}\n\
         - {{ id: ask, role: worker, prompt: STEP-ASK, {retry} }}\n"
    )
}

fn rules(_: &Path) -> Value {
    let error = |status: u32, message: &str, times: u32| json!({"text": DONE, "error": {"status": status, "message": message, "retry_after": 2, "times": times}});
    let mut rules = forms::rules();
    rules.extend([
        rule("cannot be used yet", say(DONE)),
        rule("STEP-SERVER", error(500, "scripted failure", 2)),
        rule("(?s)STEP-OUTAGE.*Previous Attempt", say(DONE)),
        rule("STEP-OUTAGE", json!({"error": {"status": 500, "message": "scripted outage"}})),
        rule("(?s)STEP-DROP.*Previous Attempt", say(DONE)),
        rule("STEP-DROP", json!({"text": DONE, "drop": 2})),
        // Codex never tries again by itself.
        json!({"match": "STEP-RATE", "model": "^fake-codex$", "reply": error(429, "rate limit reached", 1)}),
        rule("STEP-RATE", error(429, "rate limit reached, retry after 2", 4)),
        rule("(?s)STEP-ASK.*Answer: German", say(DONE)),
        // By our tool if it is offered: it tells the agent to stop, and that is all that is said.
        rule(
            "STEP-ASK",
            json!([
                tools(json!([{"name": "ask_human", "input": {"question": "Which language?"}}])),
                say("I wait.")
            ]),
        ),
        rule("STEP-ASK", say(ASKS)),
    ]);
    Value::Array(rules)
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
    let lost = goes_on(&ground, &run, "drop");
    shown(agent, "drop", &format!("{how}{}", if lost { ", began anew" } else { "" }));

    let rate = ground.reports(&run, "rate");
    assert_eq!(rate.last().unwrap()["reply"]["outcome"], "done");
    let waited = ground.events(&run, "quota.waiting");
    let kinds: Vec<&Value> = rate.iter().filter_map(|report| report.pointer("/trouble/kind")).collect();
    assert!(kinds.iter().all(|kind| **kind == "rate"), "{kinds:?}");
    // Every end by a limit is waited for, whether a time was named or not.
    assert_eq!(waited.len() + 1, rate.len(), "{rate:#?}");
    goes_on(&ground, &run, "rate");
    shown(agent, "429", if waited.is_empty() { "✓ waits by itself" } else { "✓ the engine waits, resumed" });
    forms::forms(agent, &ground, &run);

    asks(agent, &ground, &run);
}

/// The question ends the attempt, and the answer goes into the same conversation.
fn asks(agent: &str, ground: &Ground, run: &str) {
    let tools = "submit_report submit_review update_progress ask_human";
    let mut by_tool = false;
    for request in ground.model.log() {
        by_tool |= request["calls"].to_string().contains("ask_human");
        for tool in request["offered"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let ours = tool.split_once("gatewright").map(|(_, rest)| rest.trim_start_matches('_'));
            assert!(ours.is_none_or(|name| tools.contains(name)), "a tool that decides something: {tool}");
        }
    }
    assert_eq!(by_tool, agent != "pi", "pi has no MCP, all others have");
    let before = ground.reports(run, "ask");
    assert_eq!(before.len(), 1, "{before:#?}");
    assert_eq!(
        (&before[0]["reply"]["outcome"], &before[0]["repairs"]),
        (&json!("needs_input"), &Value::Null)
    );
    let decisions: Value = serde_json::from_str(&ground.run(&["decisions", run, "--json"]).out).unwrap();
    let id = decisions
        .pointer("/decisions/0/id")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{decisions:#}"));
    ground.run(&["answer", run, id, "German"]).exits(0, ground);
    let ask = ground.reports(run, "ask");
    assert_eq!(ask.len(), 2, "{ask:#?}");
    assert_eq!(Ground::session(&ask[0]), Ground::session(&ask[1]), "the answer goes into its conversation");
    shown(agent, "answer", if by_tool { "✓ `ask_human`" } else { "✓ by its reply" });
}

/// The attempts of a step are one conversation, unless the agent keeps nothing of a turn that failed and says so when it
/// should go on with it: whether that was so.
fn goes_on(ground: &Ground, run: &str, step: &str) -> bool {
    let reports = ground.reports(run, step);
    let sessions: Vec<String> = reports.iter().map(Ground::session).collect();
    let lost = (1..=reports.len()).any(|attempt| {
        let number = attempt.to_string();
        is_lost(&ground.run(&["logs", run, step, "--attempt", &number, "--raw"]).out)
    });
    assert!(lost || sessions.iter().all(|one| *one == sessions[0]), "{reports:#?}");
    lost
}

/// Those that hand on what their provider says beside its words: a header, or a field of its own.
const BESIDE_WORDS: [&str; 4] = ["codex", "opencode", "opencode-acp", "qwen"];

/// A limit that is over in some minutes: nobody waits for it with a process. The run pauses, because that is longer than
/// it may wait, and names the time.
pub fn limit(agent: &str) {
    let silent = BESIDE_WORDS.contains(&agent);
    let words = if silent { "rate limit reached" } else { "rate limit reached, please try again in 200s." };
    let rules = |_: &Path| {
        let limit =
            |more: &str| json!({"error": {"status": 429, "message": words, "retry_after": 200, more: 200}});
        json!([
            {"match": "STEP-LIMIT", "model": "^fake-codex$", "reply": limit("resets_in")},
            {"match": "STEP-LIMIT", "model": "^gemini", "reply": limit("retry_info")},
            rule("STEP-LIMIT", limit("of_no_meaning")),
        ])
    };
    let ground = Ground::new(agent, rules);
    let step = "- { id: limit, role: worker, prompt: STEP-LIMIT, retry: { attempts_max: 1 } }";
    let workflow = format!(
        "workflow: w\nbudget: {{ quota_wait: 20s }}\nroles: {{ worker: {{ prompt: You work., may_write: [] }} }}\nsteps:\n{step}\n"
    );
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    let run = ground.run(&["run", "w", "Go"]).exits(12, &ground).id();
    let reports = ground.reports(&run, "limit");
    assert_eq!(reports.len(), 1, "{reports:#?}");
    assert_eq!(reports[0]["trouble"]["kind"], "rate", "{:#}", reports[0]);
    let why = ground.events(&run, "run.paused")[0]["why"].clone();
    let seconds = why["waited_ms"].as_u64().unwrap_or_default() / 1000;
    // Codex names the minute, Qwen tells after half of one how much is left.
    assert!(
        (100..=270).contains(&seconds),
        "the provider's time was not understood: {why:#}\n{:#}",
        reports[0]
    );
    let said = ground.run(&["status", &run]).out;
    assert!(
        said.contains(&format!("the quota of `{agent}` is used up until 20")),
        "the time is not named: {said}"
    );
    assert!(ground.scratch.processes().iter().all(|(_, line)| line.contains("fake_model")), "somebody waits");
    shown(agent, "reset", if silent { "✓ beside the words" } else { "✓ by the words" });
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
