//! What may come in with our dependencies: their licences, where they come from, and who may use the heavy ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the house fails")]

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

const LICENCES: [&str; 14] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "Unicode-3.0",
    "Zlib",
    "ISC",
    "MPL-2.0",
    "0BSD",
    "BSL-1.0",
    "Unlicense",
];
/// Nothing here talks to a network.
const FORBIDDEN: [&str; 3] = ["openssl-sys", "native-tls", "reqwest"];
/// Threads and channels are enough; only the protocols of agents and of their tools need an executor.
const MAY_USE_TOKIO: [&str; 4] = ["rmcp", "tokio-util", "gatewright-mcp", "gatewright-acp"];

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = found["packages"].as_array().unwrap().len();
    assert!(count > 50, "is the reader of the metadata broken? {count} packages");
    found
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().unwrap()
}

fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

/// Whether an SPDX expression can be satisfied with the licences of the list.
fn permitted(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any(&words, &mut at) && at == words.len()
}

fn any(words: &[&str], at: &mut usize) -> bool {
    let mut holds = all(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        holds |= all(words, at);
    }
    holds
}

fn all(words: &[&str], at: &mut usize) -> bool {
    let mut holds = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at);
    }
    holds
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let holds = any(words, at);
        *at += 1;
        return holds;
    }
    if words.get(*at) == Some(&"WITH") {
        let name = format!("{word} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return LICENCES.contains(&name.as_str());
    }
    LICENCES.contains(word)
}

#[test]
fn an_expression_of_licences_is_understood() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(permitted(good), "{good}");
    }
    for bad in
        ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND SSPL-1.0", "GPL-2.0 WITH Classpath-exception", ""]
    {
        assert!(!permitted(bad), "{bad}");
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_permitted() {
    let metadata = metadata();
    let foreign = packages(&metadata).iter().filter(|package| !is_ours(package));
    let refused: Vec<String> = foreign
        .filter(|package| !package["license"].as_str().is_some_and(permitted))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn dependencies_come_from_one_registry_and_with_a_version() {
    let metadata = metadata();
    let foreign = packages(&metadata).iter().filter(|package| !is_ours(package));
    let places: BTreeSet<&str> = foreign.filter_map(|package| package["source"].as_str()).collect();
    assert!(places.len() == 1 && places.iter().all(|place| place.starts_with("registry+")), "{places:?}");
    for package in packages(&metadata).iter().filter(|package| is_ours(package)) {
        for dependency in package["dependencies"].as_array().unwrap() {
            let wild = dependency["path"].is_null() && dependency["req"] == "*";
            assert!(!wild, "{} takes any version of {}", package["name"], dependency["name"]);
        }
    }
}

#[test]
fn nobody_brings_a_network_and_few_an_executor() {
    let metadata = metadata();
    let name = |id: &Value| {
        let package = packages(&metadata).iter().find(|package| package["id"] == *id).unwrap();
        package["name"].as_str().unwrap()
    };
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let user = name(&node["id"]);
        assert!(!FORBIDDEN.contains(&user), "{user} talks to a network");
        for used in node["deps"].as_array().unwrap() {
            let allowed = name(&used["pkg"]) != "tokio" || MAY_USE_TOKIO.contains(&user);
            assert!(allowed, "{user} must not use tokio");
        }
    }
}
