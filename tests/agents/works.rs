//! A whole run of the built-in method: the work, a reply that is mended, a review that fails once and
//! tries to write, a fix in the same conversation, and what it all cost.

use std::{fs, path::Path, time::Instant};

use serde_json::{Value, json};

use crate::{
    cells::shown,
    ground::{Ground, PATIENCE},
    rules::{DONE, rule, say, tools, write},
};

const REPORT: &str = "# Implementation\n**Status:** DONE\n## Summary\n- A greeting.\n## Changed Files\n- greeting.txt\n## How It Was Checked\nBy reading it.\n## Open Points\nNone\n";
const BRIEF: &str =
    "STATUS: DONE\nFILE: implementation.md\nSUMMARY: The greeting is written.\nNEXT_INPUT: implementation.md";
const FAILS: &str = "# Review\n**Status:** FAIL\n## Summary\nNobody is greeted by name.\n## Checked\n- greeting.txt\n## Blocking Issues\n- No name\n  - Severity: High\n  - Location: greeting.txt:1\n  - Problem: nobody is greeted by name\n  - Fix: write name.txt\n## Non-Blocking Issues\n- None\n";
const FAILS_BRIEF: &str = "STATUS: FAIL\nFILE: review.md\nSUMMARY: One finding.\nNEXT_INPUT: review.md";
const PASSES: &str = "# Review\n**Status:** PASS\n## Summary\nFine.\n## Checked\n- greeting.txt\n## Blocking Issues\n- None\n## Non-Blocking Issues\n- None\n";
const PASSES_BRIEF: &str = "STATUS: PASS\nFILE: review.md\nSUMMARY: Fine.\nNEXT_INPUT: review.md";

fn message(report: &str, brief: &str) -> Value {
    say(&format!("<<<FILE review.md\n{report}>>>END\n{brief}"))
}

fn rules(root: &Path) -> Value {
    let root = root.display();
    let file = |name: &str| format!(r"(?s){name}. in full to: (?P<out>\S+)");
    let to_out = |text: &str| write("${out}", text);
    let intruder = || tools(json!([write(format!("{root}/src/intruder.txt"), "I was here\n")]));
    let hand_in = |text: &str| {
        let input =
            json!({"status": "done", "summary": "A name.", "file": "implementation.md", "content": text});
        tools(json!([{"name": "submit_report", "input": input}]))
    };
    let (second, by_message) = ("This is review iteration 2", "<<<FILE review.md");
    json!([
        rule("whether you can be reached", say(DONE)),
        rule("(?s)cannot be used yet.*implementation", say(BRIEF)),
        // By our tools if they are offered: first without a section, which they say.
        rule(
            "(?s)This is fix iteration 1.*implementation",
            json!([
                tools(
                    json!([write(format!("{root}/name.txt"), "Ada\n"), {"name": "submit_report", "input": {
                        "status": "done", "summary": "A name.", "file": "implementation.md", "content": "# Implementation\n**Status:** DONE\n",
                    }}])
                ),
                hand_in(REPORT),
                say(BRIEF)
            ])
        ),
        rule(
            &format!("(?s)This is fix iteration 1.*{}", &file("implementation.md")[4..]),
            json!([tools(json!([write(format!("{root}/name.txt"), "Ada\n"), to_out(REPORT)])), say(BRIEF)])
        ),
        rule(
            &file("implementation.md"),
            json!([
                tools(json!([write(format!("{root}/greeting.txt"), "Hello\n"), to_out(REPORT)])),
                say("I wrote everything.")
            ])
        ),
        rule(
            &format!("(?s){second}.*{}", &file("review.md")[4..]),
            json!([tools(json!([to_out(PASSES)])), say(PASSES_BRIEF)])
        ),
        rule(&format!("(?s){second}.*{by_message}"), message(PASSES, PASSES_BRIEF)),
        rule(&file("review.md"), json!([intruder(), tools(json!([to_out(FAILS)])), say(FAILS_BRIEF)])),
        rule(&format!("(?s){by_message}"), json!([intruder(), message(FAILS, FAILS_BRIEF)])),
        rule(&format!("(?s){by_message}"), message(FAILS, FAILS_BRIEF)),
    ])
}

pub fn works(agent: &str) {
    let ground = Ground::new(agent, rules);
    let run = ground.run(&["run", "quick", "Greet people"]).exits(0, &ground).id();
    let root = ground.scratch.root();
    let text = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    assert_eq!((text("greeting.txt").trim(), text("name.txt").trim()), ("Hello", "Ada"));
    shown(agent, "run", "✓");

    let work = ground.reports(&run, "implement");
    assert_eq!(work.len(), 2, "{work:#?}");
    assert_eq!(work[0]["repairs"], 1, "{:#}", work[0]);
    shown(agent, "repair", "✓");
    assert_eq!(Ground::session(&work[0]), Ground::session(&work[1]), "the fix is a conversation of its own");
    shown(agent, "fix", "✓");

    assert!(!root.join("src/intruder.txt").exists(), "a read-only reviewer wrote into the repository");
    let reviews = ground.reports(&run, "review");
    assert_ne!(
        Ground::session(&reviews[0]),
        Ground::session(&reviews[1]),
        "a reviewer looks with fresh eyes"
    );
    denied(agent, &ground, &reviews[0]);

    handed_in(agent, &ground);
    let reports: Vec<&Value> = work.iter().chain(&reviews).collect();
    let told = spent(agent, &ground, &run, &reports);
    watched(agent, &ground, &run);
    let probed = ground.run(&["doctor", "--probe", agent]).exits(0, &ground);
    assert!(probed.out.starts_with(&format!("{agent} answers")), "{}", probed.out);
    shown(agent, "probe", "✓");
    doctor(agent, &ground);
    shown(agent, "usage", if told { "tokens, cost" } else { "tokens, cost unknown" });
}

/// The model gets the exact violations of its first report, and the second one is accepted.
fn handed_in(agent: &str, ground: &Ground) {
    let log = ground.model.log();
    let calls = |one: &&Value| format!("{}{}", one["calls"], one["asked"]).contains("submit_report");
    if agent == "pi" {
        assert_eq!(log.iter().filter(calls).count(), 0);
        return shown(agent, "mcp", "no MCP");
    }
    assert_eq!(log.iter().filter(calls).count(), 2, "rejected once, then accepted");
    // What an answer to a call was is in the request after it.
    let second = log.iter().position(|one| calls(&one) && one["turn"] == 1).unwrap();
    let results: Vec<&str> = log
        .iter()
        .filter(|one| one["rule"] == log[second]["rule"])
        .filter_map(|one| one["result"].as_str())
        .collect();
    let rejected = log[second]["result"].as_str().unwrap_or_default();
    let missing = "a section `## Summary`";
    assert!(rejected.contains(missing), "the model was not told what is missing: {rejected}");
    let accepted = results.last().unwrap();
    assert!(!accepted.contains(missing) && accepted.contains("Accepted."), "{accepted}");
    shown(agent, "mcp", "✓");
}

/// Every call of the model is counted, once: what is told of the attempts is what the model has given.
fn spent(agent: &str, ground: &Ground, run: &str, reports: &[&Value]) -> bool {
    let log = ground.model.log();
    // Beside what the script knows, qwen asks for something of its own, and counts it.
    let counts = |one: &&Value| one["rule"].is_u64() || agent == "qwen";
    let sum = |what: fn(&Value) -> u64| -> u64 { log.iter().filter(counts).map(what).sum() };
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let tokens = sum(|one| one["spent"][0].as_u64().unwrap() + one["spent"][1].as_u64().unwrap());
    let told: u64 = reports.iter().map(|report| number(&report["usage"]["tokens"])).sum();
    assert!(reports.iter().all(|report| report["usage"]["tokens"].is_u64()), "{reports:#?}");
    // Over ACP opencode does not tell of one call an attempt, which is of this size.
    let untold = if agent == "opencode-acp" { 120 * reports.len() as u64 } else { 0 };
    assert_eq!(told + untold, tokens, "{reports:#?}");
    let status: Value = serde_json::from_str(&ground.run(&["status", run, "--json"]).out).unwrap();
    assert_eq!(status["cost"]["tokens"], told, "{status:#}");
    let costs = reports.iter().all(|report| report["usage"]["micro_usd"].is_u64());
    assert_eq!(costs, !matches!(agent, "codex" | "gemini" | "qwen"), "{reports:#?}");
    // A millionth of a dollar for each token of input, two for each of output.
    if matches!(agent, "opencode" | "pi") {
        let price = sum(|one| one["spent"][0].as_u64().unwrap() + 2 * one["spent"][1].as_u64().unwrap());
        let told: u64 = reports.iter().map(|report| number(&report["usage"]["micro_usd"])).sum();
        assert_eq!(told, price, "{reports:#?}");
    }
    assert_eq!(status["cost"]["usd"].is_null(), !costs, "{:#}", status["cost"]);
    costs
}

/// Text, tools and what was spent are among the events on demand, in the words of every agent.
fn watched(agent: &str, ground: &Ground, run: &str) {
    let lines = ground.run(&["events", run, "--agents"]).out;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Of opencode's stream the end is the end of the process.
    let end = if agent == "opencode" { "usage" } else { "finished" };
    for kind in ["started", "text", "tool_started", "tool_ended", "usage", end] {
        let of_implement = |event: &&Value| event["step"] == "implement";
        let found = events.iter().filter(of_implement).any(|event| event["type"] == format!("agent.{kind}"));
        assert!(found, "{agent}: no agent.{kind}\n{lines}");
    }
    let told = ground.run(&["logs", run, "implement", "--attempt", "1"]).out;
    assert!(told.contains("I work."), "{told}");
}

/// Its version is the one that was tried, and it takes every flag that is used with it.
fn doctor(agent: &str, ground: &Ground) {
    let look = || {
        let found: Value = serde_json::from_str(&ground.alone(agent, &["doctor", "--json"])).unwrap();
        let agents = found["agents"].as_array().unwrap().clone();
        agents.into_iter().find(|one| one["name"] == agent).unwrap()
    };
    // On a busy machine a program may be too slow to be waited for.
    let over_acp = agent.ends_with("-acp");
    let told = |one: &Value| one["version"].is_string() && (over_acp || one["flags"].is_array());
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        let one = look();
        if told(&one) || Instant::now() > deadline {
            break one;
        }
    };
    assert_eq!(found["found"], true, "{found:#}");
    assert_eq!(found["flags_missing"], json!([]), "{found:#}");
    assert!(!found["traps"].as_array().unwrap().is_empty(), "{found:#}");
    let version = found["version"].as_str().unwrap_or_else(|| panic!("{found:#}"));
    let tried = found["tried_version"].as_str().unwrap_or_else(|| panic!("{found:#}"));
    assert!(!tried.is_empty() && version.contains(tried), "{found:#}");
    if over_acp {
        return shown(agent, "doctor", "✓ no flags");
    }
    let flags = found["flags"].as_array().unwrap_or_else(|| panic!("{found:#}")).len();
    shown(agent, "doctor", &format!("✓ {flags} flags"));
}

/// Either the tool was refused and that is on record, or it was not even offered.
fn denied(agent: &str, ground: &Ground, review: &Value) {
    let tools = review["denied"].as_array().cloned().unwrap_or_default();
    if !tools.is_empty() {
        shown(agent, "read-only", "✓ refused");
        if agent == "codex" {
            shown(agent, "denied", "✓ recorded");
        }
        return;
    }
    let asked = ground.model.asked("review.md");
    assert!(!asked.is_empty(), "the reviewer never asked its model");
    for request in asked {
        let offered = request["offered"].to_string();
        for tool in ["\"write", "\"Write", "shell", "\"bash", "\"edit", "apply_patch"] {
            assert!(!offered.contains(tool), "{agent} offers {tool} to a reviewer: {offered}");
        }
    }
    shown(agent, "read-only", "✓ not offered");
}
