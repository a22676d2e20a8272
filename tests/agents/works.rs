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

    let handed_in =
        ground.model.log().iter().filter(|one| one["calls"].to_string().contains("submit_report")).count();
    if agent == "pi" {
        shown(agent, "mcp", "no MCP");
    } else {
        assert_eq!(handed_in, 2, "rejected once, then accepted");
        shown(agent, "mcp", "✓");
    }

    for report in work.iter().chain(&reviews) {
        assert!(report["usage"]["tokens"].as_u64().is_some_and(|tokens| tokens >= 200), "{report:#}");
    }
    let told = work[0]["usage"]["micro_usd"].is_u64();
    assert_eq!(told, !matches!(agent, "codex" | "gemini" | "qwen"), "{:#}", work[0]);
    let status: Value = serde_json::from_str(&ground.run(&["status", &run, "--json"]).out).unwrap();
    assert!(status["cost"]["tokens"].as_u64().is_some_and(|tokens| tokens > 1000), "{status:#}");
    assert_eq!(status["cost"]["usd"].is_null(), !told, "{:#}", status["cost"]);
    watched(agent, &ground, &run);
    let probed = ground.run(&["doctor", "--probe", agent]).exits(0, &ground);
    assert!(probed.out.starts_with(&format!("{agent} answers")), "{}", probed.out);
    shown(agent, "probe", "✓");
    doctor(agent, &ground);
    shown(agent, "usage", if told { "tokens, cost" } else { "tokens, cost unknown" });
}

/// Text, tools and what was spent are among the events on demand, in the words of every agent.
fn watched(agent: &str, ground: &Ground, run: &str) {
    let lines = ground.run(&["events", run, "--agents"]).out;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in ["started", "text", "tool_started", "tool_ended", "usage"] {
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
    let told = |one: &Value| one["version"].is_string() && one["flags"].is_array();
    let over_acp = agent.ends_with("-acp");
    let deadline = Instant::now() + PATIENCE;
    let found = loop {
        let one = look();
        if over_acp || told(&one) || Instant::now() > deadline {
            break one;
        }
    };
    assert_eq!(found["found"], true, "{found:#}");
    assert_eq!(found["flags_missing"], json!([]), "{found:#}");
    assert!(!found["traps"].as_array().unwrap().is_empty(), "{found:#}");
    if over_acp {
        return shown(agent, "doctor", "✓ found");
    }
    let version = found["version"].as_str().unwrap_or_else(|| panic!("{found:#}"));
    assert!(version.contains(found["tried_version"].as_str().unwrap()), "{found:#}");
    let flags = found["flags"].as_array().unwrap_or_else(|| panic!("{found:#}")).len();
    shown(agent, "doctor", &format!("✓ {flags} flags"));
}

/// Either the tool was refused and that is on record, or it was not even offered.
fn denied(agent: &str, ground: &Ground, review: &Value) {
    let tools = review["denied"].as_array().cloned().unwrap_or_default();
    if !tools.is_empty() {
        shown(agent, "read-only", "✓ refused");
        shown(agent, "denied", "✓ recorded");
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
    shown(agent, "denied", "not offered");
}
