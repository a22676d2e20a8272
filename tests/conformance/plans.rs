//! The frozen plan of every workflow of every method, as it is kept: who does what after whom, with which
//! gates and limits.

use std::{collections::BTreeMap, path::PathBuf};

use super::ledger::{holds, root};
use crate::support::Scratch;

/// `method` or `method/workflow`, with the file.
fn workflows() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for method in std::fs::read_dir(root().join("methods")).unwrap() {
        let folder = method.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        found.insert(name.clone(), folder.join("workflow.yaml"));
        for other in std::fs::read_dir(folder.join("workflows")).into_iter().flatten() {
            let path = other.unwrap().path();
            found.insert(format!("{name}/{}", path.file_stem().unwrap().to_string_lossy()), path);
        }
    }
    found
}

/// The names below `profiles:`.
fn profiles(text: &str) -> Vec<String> {
    let below = text.lines().skip_while(|line| line.trim_end() != "profiles:").skip(1);
    let block = below.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let names = block.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with([' ', '#'])));
    names.filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

#[test]
fn every_plan_is_the_one_that_is_kept() {
    let scratch = Scratch::new();
    for (workflow, path) in workflows() {
        let mut text = scratch.gatewright(&["graph", &workflow]).exits(0).out;
        for profile in profiles(&std::fs::read_to_string(&path).unwrap()) {
            let drawn = scratch.gatewright(&["graph", &workflow, "--profile", &profile]).exits(0).out;
            text.push_str(&format!("\n%% profile {profile}\n{drawn}"));
        }
        holds(&root().join(format!("tests/conformance/plans/{}.mmd", workflow.replace('/', "-"))), &text);
    }
}
