//! What the prompts of the built-in methods show as an example, filled in, is what their contracts ask for: the prompts as
//! agents get them, held against what the engine holds the agents to.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gatewright_workflow::{
    contract::{self, Contract},
    frozen::Frozen,
    reply::{ReplyFormat, parse_reply},
};
use serde_json::Value;

use crate::support::Scratch;

/// Every reviewer objects once, so that those who repair and those who look again are told something too.
const OBJECTIONS: &str = r#"
agents:
  tests-review: &once [ { findings: [ { severity: high, problem: not good enough } ] }, pass ]
  stabilization: *once
  acceptance: *once
  performance-security/performance: *once
  performance-security/security: *once
  code-review: [ { findings: [ { severity: high, problem: it lies, route: functional }, { severity: high, problem: it is twisted, route: structural } ] }, pass ]
  "tasks/*/review": *once
  "tasks/*/qa": *once
  specify-review: *once
  review: *once
"#;

/// What a person says who wants to see the end of it.
const WISHES: [&str; 7] =
    ["approved", "per-batch", "accept", "accept-with-known-issues", "proceed", "keep", "continue"];

/// A run of a method with rehearsed agents, as far as it goes.
fn played(words: &[&str]) -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.write("new.txt", "something to look at\n");
    scratch.write("objections.yaml", OBJECTIONS);
    let words = [&["run"], words, &["--agent", "rehearsal", "--scenario", "objections.yaml"]].concat();
    let run = scratch.gatewright(&words).id();
    for _ in 0..12 {
        let status = scratch.status(&run);
        let open = status["decisions"].as_array().unwrap().iter().find(|one| one["status"] == "pending");
        let Some(open) = open else { break };
        let answers: Vec<&str> =
            open["answers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let word = WISHES.iter().find(|wish| answers.contains(wish)).or(answers.first()).copied();
        let _ = scratch.gatewright(&["answer", &run, open["id"].as_str().unwrap(), word.unwrap_or("Yes")]);
    }
    (scratch, run)
}

fn prompts_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            prompts_below(&path, found);
        } else if path.ends_with("prompt.md") {
            found.push(path);
        }
    }
}

/// A block that is fenced, with the words before it.
struct Shown<'t> {
    before: String,
    section: &'t str,
    language: &'t str,
    text: String,
}

/// The examples of a role: what stands before the directory of the run.
fn shown(prompt: &str) -> Vec<Shown<'_>> {
    let own = prompt.split("## Workflow Directory\n").next().unwrap();
    let (mut all, mut before, mut section) = (Vec::new(), String::new(), "");
    let mut lines = own.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let fence: String = line.chars().take_while(|letter| *letter == '`').collect();
        if fence.len() < 3 {
            before.push_str(line);
            before.push('\n');
            continue;
        }
        let text: String =
            lines.by_ref().take_while(|line| *line != fence).map(|line| format!("{line}\n")).collect();
        all.push(Shown {
            before: std::mem::take(&mut before),
            section,
            language: &line[fence.len()..],
            text,
        });
    }
    all
}

/// The block that is an example of this file.
fn example<'s, 't>(shown: &'s [Shown<'t>], name: &str, alone: bool) -> Option<&'s Shown<'t>> {
    let language = match name.rsplit('.').next() {
        Some("md") => "markdown",
        Some("json") => "json",
        _ => "yaml",
    };
    let file = name.rsplit('/').next().unwrap_or(name);
    let is_of = |one: &&Shown<'_>| one.language == language && !one.section.starts_with("Your reply, ");
    let named = |one: &&Shown<'_>| {
        one.before.contains(&format!("`{name}`")) || one.before.contains(&format!("`{file}`"))
    };
    let mut fitting = shown.iter().filter(is_of);
    fitting.clone().find(named).or_else(|| fitting.next().filter(|_| alone))
}

/// What is wrong with the examples of one prompt.
fn faults(prompt: &Path, frozen: &Frozen, every: bool, seen: &mut BTreeSet<String>) -> Vec<String> {
    let text = std::fs::read_to_string(prompt).unwrap();
    let promised = std::fs::read_to_string(prompt.with_file_name("outputs.json")).unwrap();
    let promised: Value = serde_json::from_str(&promised).unwrap();
    let shown = shown(&text);
    let step = prompt.parent().unwrap().to_string_lossy().into_owned();
    let required: Vec<&Value> =
        promised["outputs"].as_array().unwrap().iter().filter(|one| one["optional"] == false).collect();
    let mut faults = Vec::new();
    for output in &required {
        let name = output["name"].as_str().unwrap();
        let contract: Contract = serde_json::from_value(output["contract"].clone()).unwrap();
        seen.insert(name.to_owned());
        match example(&shown, name, required.len() == 1) {
            None if every => faults.push(format!("{step}: no example of `{name}`")),
            None => {}
            Some(one) => {
                let wrong = contract::check(&contract, name, one.text.as_bytes()).err().unwrap_or_default();
                faults.extend(wrong.iter().map(|violation| format!("{step}: {violation:?}")));
            }
        }
    }
    let format: Option<ReplyFormat> = serde_json::from_value(promised["reply"].clone()).unwrap();
    for one in shown.iter().filter(|one| one.section == "Your reply") {
        if let Err(problem) = parse_reply(one.text.as_bytes(), format, &frozen.words) {
            faults.push(format!("{step}: the reply that is shown: {problem:?}\n{}", one.text));
        }
    }
    faults
}

#[track_caller]
fn all_examples_hold(words: &[&str], files: &[&str]) {
    examples_hold(words, true, files);
}

/// `every`: each file that is asked for has an example.
#[track_caller]
fn examples_hold(words: &[&str], every: bool, files: &[&str]) {
    let (scratch, run) = played(words);
    let state = scratch.state_dir(&run);
    let plan = std::fs::read_dir(state.join("plans")).unwrap().next().unwrap().unwrap().path();
    let frozen: Frozen = serde_json::from_slice(&std::fs::read(plan).unwrap()).unwrap();
    let mut prompts = Vec::new();
    prompts_below(&state.join("attempts"), &mut prompts);
    let mut seen = BTreeSet::new();
    let faults: Vec<String> =
        prompts.iter().flat_map(|prompt| faults(prompt, &frozen, every, &mut seen)).collect();
    assert!(faults.is_empty(), "{words:?}:\n{}", faults.join("\n"));
    for file in files {
        assert!(seen.contains(*file), "{words:?}: nobody was asked for {file}: {seen:?}");
    }
}

#[test]
fn examples_of_report_chain_keep_their_contracts() {
    let loops = ["loop-iterations/tests-review-fix-1.md", "loop-iterations/code-review-review-2.md"];
    all_examples_hold(
        &["report-chain", "Add it"],
        &[&loops[..], &["requirements.md", "documentation.md"]].concat(),
    );
    all_examples_hold(&["report-chain/fix-bug", "Mend it"], &["codebase-analysis.md", loops[0]]);
    all_examples_hold(&["report-chain/refactor", "Split it"], &["test-refactoring.md", loops[1]]);
    all_examples_hold(&["report-chain/refactor-tests", "Split them"], &["refactoring.md", loops[1]]);
    all_examples_hold(&["report-chain/devops-change", "Pin it"], &["implementation.md", loops[1]]);
    all_examples_hold(&["report-chain/complete-review", "See"], &["security.md", "tests-review.md"]);
}

#[test]
fn examples_of_gated_session_keep_their_contracts() {
    let files =
        ["spec.md", "acceptance.json", "intake.json", "architecture.md", "plan/tasks.yaml", "report.md"];
    all_examples_hold(&["gated-session", "Add it", "--set", "ci=false"], &files);
    all_examples_hold(&["gated-session", "Add it", "--profile", "lean"], &files[..2]);
}

#[test]
fn examples_of_phase_review_and_quick_keep_their_contracts() {
    all_examples_hold(&["phase-review", "Add it"], &["spec.md", "tasks.md", "verification.md"]);
    all_examples_hold(&["quick", "Add it"], &["implementation.md", "review.md"]);
}

/// Their roles show the data that other programs read; what is for people alone has no example.
#[test]
fn examples_of_stream_dag_keep_their_contracts() {
    examples_hold(&["stream-dag", "Add it"], false, &["spec_output.json", "plan_output.json"]);
}

#[test]
fn examples_of_staged_schedule_keep_their_contracts() {
    examples_hold(&["staged-schedule", "Add it"], false, &["phases/1.2-plan.json"]);
}
