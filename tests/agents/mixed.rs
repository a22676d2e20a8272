//! One run of a long method in which three houses work together.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    ground::Ground,
    rules::{rule, say, tools, write},
};

/// What the rehearsal wrote for each file of the method: the scripted model gives the same.
fn rehearsed(ground: &Ground) -> BTreeMap<String, String> {
    let run =
        ground.run(&["run", "report-chain", "Add a greeting", "--agent", "rehearsal"]).exits(0, ground).id();
    let status: Value = serde_json::from_str(&ground.run(&["status", &run, "--json"]).out).unwrap();
    let dir = status["dir"].as_str().unwrap().to_owned();
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let reports = files.filter(|path| path.extension().is_some_and(|end| end == "md"));
    reports
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn rules(files: &BTreeMap<String, String>) -> Value {
    let mut rules = Vec::new();
    for (name, text) in files {
        let reviewer = text.contains("Status: PASS") || text.contains("Status:** PASS");
        let status = if reviewer { "PASS" } else { "DONE" };
        let brief = format!("STATUS: {status}\nFILE: {name}\nSUMMARY: It is done.\nNEXT_INPUT: {name}");
        let place = format!(r"(?s)Write .{}. in full to: (?P<out>\S+)", name.replace('.', r"\."));
        rules.push(rule(&place, json!([tools(json!([write("${out}", text)])), say(&brief)])));
        let block = format!("<<<FILE {}", name.replace('.', r"\."));
        rules.push(rule(&block, say(&format!("<<<FILE {name}\n{text}\n>>>END\n{brief}"))));
    }
    Value::Array(rules)
}

#[test]
fn three_houses_in_one_run() {
    let first = Ground::new("claude", |_: &Path| json!([]));
    let files = rehearsed(&first);
    assert!(files.len() > 8, "{:?}", files.keys());
    drop(first);
    // Plans and code from one house, tests and their review from others.
    let more = "workflows:\n  develop-feature:\n    roles:\n      automation-qa: { agent: codex }\n      tests-reviewer: { agent: pi }\n      code-reviewer: { agent: codex }\n      acceptance-reviewer: { agent: pi }\n";
    let ground = Ground::with(&["claude", "codex", "pi"], |_| rules(&files), more);
    let run = ground.run(&["run", "report-chain", "Add a greeting"]).exits(0, &ground).id();
    let ended = ground.events(&run, "step.attempt.ended");
    let mut houses: Vec<String> = ended
        .iter()
        .filter_map(|event| event.pointer("/report/conversation/agent").and_then(Value::as_str))
        .map(str::to_owned)
        .collect();
    houses.sort();
    houses.dedup();
    assert_eq!(houses, ["claude", "codex", "pi"]);
}
