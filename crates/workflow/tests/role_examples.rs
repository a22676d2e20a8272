//! What the roles of a method show as an example of their work is accepted when somebody delivers just that.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gatewright_workflow::{
    config::Config,
    contract::{Contract, Shape, check},
    diagnostic::render_all,
    frozen::Frozen,
    load::{LoadOptions, Sources, load},
    reply::parse_reply,
};

struct Folder(PathBuf);

impl Sources for Folder {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn workflow(&self, name: &str) -> Option<(String, String, Box<dyn Sources>)> {
        let text = fs::read_to_string(self.0.join(format!("{name}.yaml"))).ok()?;
        Some((name.to_owned(), text, Box::new(Folder(self.0.clone()))))
    }
}

/// Those that are held to it so far.
const METHODS: [&str; 2] = ["staged-schedule", "stream-dag"];

fn workflows() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for method in METHODS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../methods").join(method);
        files.push(folder.join("workflow.yaml"));
        let others = fs::read_dir(folder.join("workflows")).into_iter().flatten().flatten();
        files.extend(others.map(|file| file.path()));
    }
    files.sort();
    files
}

fn frozen(file: &Path) -> Frozen {
    let text = fs::read_to_string(file).unwrap();
    let folder = Folder(file.parent().unwrap().to_owned());
    let config = Config::default();
    let loaded = load(&file.display().to_string(), &text, &folder, &LoadOptions::new(&config));
    loaded.frozen.unwrap_or_else(|| panic!("{}", render_all(&loaded.diagnostics)))
}

/// Fenced blocks of a text: their language and what is in them. A fence ends with as many marks as it began with.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let marks: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match &mut open {
            Some(fence) if line.trim() == fence.as_str() => {
                open = None;
            }
            Some(_) => {
                let (_, body) = found.last_mut().unwrap();
                body.push_str(line);
                body.push('\n');
            }
            None if marks.len() >= 3 => {
                let language = line.trim().trim_start_matches('`').to_owned();
                found.push((language, String::new()));
                open = Some(marks);
            }
            None => {}
        }
    }
    found
}

#[test]
fn every_role_shows_an_example_that_keeps_its_contract() {
    let mut looked_at = 0;
    let mut faults: Vec<String> = Vec::new();
    for file in workflows() {
        let frozen = frozen(&file);
        let label = file
            .components()
            .rev()
            .take(3)
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>();
        let label = label.into_iter().rev().collect::<Vec<_>>().join("/");
        // What each role writes; what a dormant one mends, it is given.
        let mut owed: BTreeMap<String, Vec<(String, Contract)>> = BTreeMap::new();
        let mut makes = BTreeSet::new();
        for (profile, steps) in &frozen.steps {
            for (id, text) in steps {
                let Some(step) = frozen.plan.graphs.get(profile).and_then(|graph| graph.steps.get(id)) else {
                    continue;
                };
                let Some(role) = step.role() else { continue };
                let own = owed.entry(role.to_string()).or_default();
                if step.dormant {
                    continue;
                }
                makes.insert(role.to_string());
                for write in &text.writes {
                    for (name, contract) in [
                        (Some(&write.name), Some(&write.contract)),
                        (write.first.as_ref(), write.first_contract.as_ref()),
                    ] {
                        let Some(contract) = contract else { continue };
                        own.push((name.unwrap_or(&write.name).clone(), contract.clone()));
                    }
                }
            }
        }
        for (role, contracts) in owed {
            let Some(definition) =
                frozen.roles.iter().find(|(id, _)| id.as_str() == role).map(|(_, role)| role)
            else {
                continue;
            };
            looked_at += 1;
            let blocks = blocks(&definition.prompt);
            let keeps = |contract: &Contract, body: &str| check(contract, "example", body.as_bytes()).is_ok();
            for (name, contract) in &contracts {
                if matches!(contract.shape, Shape::Any(_)) {
                    continue;
                }
                if !blocks.iter().any(|(_, body)| keeps(contract, body)) {
                    faults
                        .push(format!("{label}: {role} shows no example of {name} that keeps its contract"));
                }
            }
            for (language, body) in &blocks {
                // Who only mends here shows what it writes in the workflows in which it makes something.
                let is_data = language == "json"
                    && makes.contains(&role)
                    && !body.contains("{{")
                    && !body.contains("{%");
                let is_reply = || parse_reply(body.as_bytes(), None, &frozen.words).is_ok();
                if is_data && !contracts.iter().any(|(_, contract)| keeps(contract, body)) && !is_reply() {
                    faults.push(format!(
                        "{label}: {role} shows JSON that is neither its file nor its reply:\n{body}"
                    ));
                }
                if body.trim_start().starts_with("STATUS:") && !is_reply() {
                    faults.push(format!("{label}: {role} shows a brief that is none:\n{body}"));
                }
                if is_data && body.contains("\"…\"") {
                    faults.push(format!("{label}: the example of {role} is not filled in"));
                }
            }
            for heading in ["## When you stop", "## Your reply"] {
                if !definition.prompt.contains(heading) {
                    faults.push(format!("{label}: {role} has no `{heading}`"));
                }
            }
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(looked_at > 30, "{looked_at} roles");
}
