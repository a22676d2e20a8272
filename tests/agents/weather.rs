//! Providers that fail: a server error, a dropped stream, a limit with a time, a refused key; a question that a person
//! answers, and a reply against its schema. All in one run, beside each other.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cells::shown,
    denies::agent_events,
    forms,
    ground::Ground,
    rules::{DONE, rule, say, tools},
};

const ASKS: &str = "STATUS: NEEDS_INPUT\nFILE: none\nSUMMARY: Something is unclear.\nNEXT_INPUT: none\n---\n- Q: Which language?";

/// What the model says after an outage.
const GOES_ON: &str = "I go on after:";

/// An outage that the agent gives up on. Opencode would try a 500 for more than a minute, and heeds how soon to try again.
/// (Qwen tries a 500 for more than a minute; what a 503 asks for it takes for a limit, which the run waits for.)
fn outage(agent: &str) -> Value {
    match agent {
        "opencode" | "opencode-acp" => json!({"status": 503, "message": "scripted outage", "retry_after": 1}),
        _ => json!({"status": 500, "message": "scripted outage"}),
    }
}

/// It keeps no conversation in which its model has said nothing.
const KEEPS_NOTHING_UNANSWERED: &str = "gemini";

/// When it has asked often enough it ends well with half an answer, which is mended in its conversation.
const TAKES_A_CUT_FOR_AN_END: &str = "qwen";

/// Those whose stream says that they wait for their provider. (Codex says so when it reconnects, which it is told not to do
/// here.)
const TELLS_WAITING: [&str; 4] = ["claude", "opencode", "qwen", "pi"];

fn workflow() -> String {
    let retry = "needs: [], retry: { attempts_max: 5 }";
    // Who changes nothing may be in the checkout beside others.
    format!(
        "workflow: w\nparallel_max: 3\n\
         roles: {{ worker: {{ prompt: You work., may_write: [] }}, judge: {{ prompt: STEP-FORM, may_write: [] }} }}\nsteps:\n\
         - {{ id: server, role: worker, prompt: STEP-SERVER, {retry} }}\n\
         - {{ id: form, review: server, by: judge, retry: {{ attempts_max: 3 }} }}\n\
         - {{ id: outage, role: worker, prompt: STEP-OUTAGE, {retry} }}\n\
         - {{ id: drop, role: worker, prompt: STEP-DROP, {retry} }}\n\
         - {{ id: cut, role: worker, prompt: STEP-CUT, {retry} }}\n\
         - {{ id: rate, role: worker, prompt: STEP-RATE, {retry} }}\n\
         - {{ id: ask, role: worker, prompt: STEP-ASK, {retry} }}\n"
    )
}

fn rules(agent: &str, root: &Path) -> Value {
    let look = || tools(json!([{"do": "read", "path": format!("{}/src/a.txt", root.display())}]));
    let error = |status: u32, message: &str, times: u32| json!({"text": DONE, "error": {"status": status, "message": message, "retry_after": 2, "times": times}});
    let mut rules = forms::rules();
    rules.extend([
        rule("cannot be used yet", say(DONE)),
        rule("STEP-SERVER", error(500, "scripted failure", 2)),
        rule("(?s)STEP-OUTAGE.*Inspect the working tree first", say(&format!("{GOES_ON} outage\n{DONE}"))),
        rule("STEP-OUTAGE", json!([look(), {"error": outage(agent)}])),
        rule("(?s)STEP-CUT.*Inspect the working tree first", say(&format!("{GOES_ON} cut\n{DONE}"))),
        rule("STEP-CUT", json!([look(), {"text": DONE, "drop": true}])),
        rule("(?s)STEP-DROP.*Previous Attempt", say(DONE)),
        rule("STEP-DROP", json!([look(), {"text": DONE, "drop": 2}])),
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
    let ground = Ground::new(agent, |root| rules(agent, root));
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow());
    let run = ground.run(&["run", "w", "Go"]).exits(10, &ground).id();

    let server = ground.reports(&run, "server");
    assert_eq!(server.last().unwrap()["reply"]["outcome"], "done");
    assert_eq!(server.len(), 1, "{server:#?}");
    goes_on_after(&ground, &run, "outage", "server");
    shown(agent, "500", "✓ by itself, ✓ resumed when it gave up");

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
    goes_on(&ground, &run, "drop");
    let gave_up = if agent == TAKES_A_CUT_FOR_AN_END {
        let cut = ground.reports(&run, "cut");
        assert_eq!((cut.len(), &cut[0]["repairs"]), (1, &json!(1)), "{cut:#?}");
        "mended"
    } else {
        goes_on_after(&ground, &run, "cut", "network");
        "resumed"
    };
    shown(agent, "drop", &format!("{how}, ✓ {gave_up} when it gave up"));

    let rate = ground.reports(&run, "rate");
    assert_eq!(rate.last().unwrap()["reply"]["outcome"], "done");
    let waited = ground.events(&run, "quota.waiting");
    let kinds: Vec<&Value> = rate.iter().filter_map(|report| report.pointer("/trouble/kind")).collect();
    assert!(kinds.iter().all(|kind| **kind == "rate"), "{kinds:?}");
    // Every end by a limit is waited for, whether a time was named or not.
    assert_eq!(waited.len() + 1, rate.len(), "{rate:#?}");
    let how = match (waited.is_empty(), agent) {
        (true, _) => "✓ waits by itself",
        (false, KEEPS_NOTHING_UNANSWERED) => "✓ the engine waits",
        (false, _) => {
            goes_on(&ground, &run, "rate");
            "✓ the engine waits, resumed"
        }
    };
    shown(agent, "429", how);
    forms::forms(agent, &ground, &run);
    if TELLS_WAITING.contains(&agent) {
        let events = agent_events(&ground, &run);
        assert!(events.iter().any(|event| event["type"] == "agent.waiting"), "{agent} waits in silence");
    }

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

/// The attempts of a step are one conversation, also of agents that began beside each other.
fn goes_on(ground: &Ground, run: &str, step: &str) {
    let reports = ground.reports(run, step);
    let sessions: Vec<String> = reports.iter().map(Ground::session).collect();
    assert!(sessions.iter().all(|one| *one == sessions[0]), "{reports:#?}");
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
fn goes_on_after(ground: &Ground, run: &str, step: &str, kind: &str) {
    let reports = ground.reports(run, step);
    assert_eq!(reports.len(), 2, "{reports:#?}");
    assert_eq!(reports[0]["trouble"]["kind"], kind, "{:#}", reports[0]);
    let session = Ground::session(&reports[0]);
    assert_eq!(session, Ground::session(&reports[1]));
    let argv = ground.argv(run, step, 2);
    let place = argv.iter().position(|word| *word == session).unwrap_or_else(|| panic!("{argv:?}"));
    assert!(
        ["--resume", "resume", "--session-id", "--session"].contains(&argv[place - 1].as_str()),
        "{argv:?}"
    );
    // And its model is told what was said before.
    let log = ground.model.log();
    let words = format!("{GOES_ON} {step}");
    let says = |one: &&Value| one["reply"]["text"].as_str().is_some_and(|text| text.starts_with(&words));
    let told: Vec<&Value> = log.iter().filter(says).collect();
    assert!(told.iter().any(|one| one["before"].as_u64() >= Some(1)), "{told:#?}");
}

/// A refused key is said at once and not tried again.
pub fn auth(agent: &str) {
    let rules = |_: &Path| {
        json!([rule("STEP-AUTH", json!({"error": {"status": 401, "message": "scripted failure"}}))])
    };
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

/// Gemini CLI tidies up when it starts: what another one has just begun would be gone.
#[test]
fn a_gemini_that_starts_leaves_the_conversation_that_another_has_begun() {
    let ground = Ground::new("gemini", |_: &Path| json!([rule("STEP-ONE", say(DONE))]));
    let step = "- { id: one, role: worker, prompt: STEP-ONE }";
    let workflow = format!("workflow: w\nroles: {{ worker: {{ prompt: You work. }} }}\nsteps:\n{step}\n");
    ground.scratch.write(".gatewright/workflows/w.yaml", &workflow);
    ground.run(&["run", "w", "Go"]).exits(0, &ground);
    let chats = ground.scratch.home().join(".gemini/tmp/repo/chats");
    let kept = std::fs::read_dir(&chats).unwrap().flatten().next().unwrap().path();
    // As it is between its first line and its first message.
    let text = std::fs::read_to_string(kept).unwrap();
    let begun = chats.join("session-2026-01-01T00-00-0badcafe.jsonl");
    std::fs::write(&begun, format!("{}\n", text.lines().next().unwrap())).unwrap();
    ground.run(&["run", "w", "Go"]).exits(0, &ground);
    assert!(begun.exists(), "it was taken away");
}
