//! Rules about the house itself: who may know whom, and what must not stand in it.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the house fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The crates of ours that a crate names under `[dependencies]`.
fn knows(name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
    let section = text.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("gatewright-"))
        .map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_owned())
        .collect()
}

#[test]
fn crates_know_only_those_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("core", [].as_slice()),
        ("agents", &["core"]),
        ("workflow", &["core", "agents"]),
        ("attempts", &["core", "workflow"]),
        ("host", &["core", "agents", "workflow", "attempts"]),
        ("mcp", &["core", "workflow"]),
        ("acp", &[]),
        ("app", &["core", "agents", "workflow", "attempts", "host", "mcp", "acp"]),
        ("simulation", &["core", "workflow", "host"]),
        ("mutants", &[]),
    ]);
    let found: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in &found {
        let may = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("crates/{name} is new: say here whom it may know"));
        for other in knows(name) {
            assert!(may.contains(&other.as_str()), "crates/{name} must not know crates/{other}");
        }
    }
    assert_eq!(found.len(), allowed.len(), "a crate is gone: remove it here");
}

#[test]
fn the_core_has_two_dependencies() {
    let text = fs::read_to_string(root().join("crates/core/Cargo.toml")).unwrap();
    let section = text.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = section
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split(['.', ' ']).next().unwrap())
        .collect();
    assert_eq!(names, ["serde", "thiserror"]);
}

#[test]
fn adapters_touch_nothing() {
    let mut files = Vec::new();
    sources(&root().join("crates/agents/src"), &mut files);
    assert!(files.len() > 10, "is the reader of the house broken? {files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for forbidden in ["std::fs", "std::env", "std::process", "std::net", "std::time", "std::thread"] {
            assert!(!text.contains(forbidden), "{}: adapters have no {forbidden}", file.display());
        }
    }
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let mut files = Vec::new();
    for name in ["core", "agents", "workflow", "attempts", "host", "mcp", "acp", "app"] {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{}: the first line says what the file is for", file.display());
    }
}

#[test]
fn the_engine_knows_no_method_by_name() {
    let methods: Vec<String> = fs::read_dir(root().join("methods"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut files = Vec::new();
    for name in ["core", "agents", "workflow", "attempts", "host"] {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for method in methods.iter().filter(|name| name.contains('-')) {
            assert!(
                !text.contains(&format!("\"{method}\"")),
                "{} names the method {method}: a mechanism is missing",
                file.display()
            );
        }
    }
}

/// Rust files of the program itself, tests inside them left out.
fn program_texts() -> Vec<(String, String)> {
    let (mut open, mut found) = (vec![root().join("crates")], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.ends_with("/tests") && !name.ends_with("/target") {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((name, text.split("\nmod tests {").next().unwrap().to_owned()));
            }
        }
    }
    found
}

/// What an agent wrote must not run because the engine asked git something. What these switches do is shown by the
/// tests of `attempts/src/git.rs` and by the adversary suite.
#[test]
fn every_git_of_the_engine_has_hooks_and_file_system_monitor_off() {
    // Asks for nothing but its version; works in a repository that it has made itself a moment before.
    let harmless = ["crates/app/src/commands/doctor/machine.rs", "crates/app/src/rehearsal/scratch.rs"];
    let of_developers = |name: &str| name.starts_with("crates/mutants/");
    let mut callers = 0;
    for (name, text) in program_texts() {
        if !text.contains("Command::new(\"git\")") || of_developers(&name) {
            continue;
        }
        callers += 1;
        let off = ["core.hooksPath=/dev/null", "core.fsmonitor=false"].iter().all(|word| text.contains(word));
        assert!(off || harmless.contains(&name.as_str()), "{name} calls git with what the repository says");
    }
    assert_eq!(callers, 4, "a caller of git is new or gone: `gatewright_attempts::Git` is the usual way");
}
