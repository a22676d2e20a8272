//! `target/agents/table.md`, from what the tests have shown.

use std::{collections::BTreeMap, fs};

use crate::cells::{AGENTS, SCENARIOS, folder};

/// Run by `./test agents` after all others.
#[test]
#[ignore = "reads what the other tests left"]
fn table() {
    let mut cells: BTreeMap<(String, String), String> = BTreeMap::new();
    for agent in AGENTS {
        let text = fs::read_to_string(folder().join(format!("{agent}.tsv"))).unwrap_or_default();
        for (scenario, how) in text.lines().filter_map(|line| line.split_once('\t')) {
            cells.insert((agent.to_owned(), scenario.to_owned()), how.to_owned());
        }
    }
    let mut page = format!("| | {} |\n|---|{}\n", AGENTS.join(" | "), "---|".repeat(AGENTS.len()));
    let mut empty = Vec::new();
    for (scenario, title) in SCENARIOS {
        page.push_str(&format!("| {title} |"));
        for agent in AGENTS {
            let cell = cells.get(&(agent.to_owned(), scenario.to_owned()));
            if cell.is_none() {
                empty.push(format!("{agent}: {title}"));
            }
            page.push_str(&format!(" {} |", cell.map_or("", String::as_str)));
        }
        page.push('\n');
    }
    fs::write(folder().join("table.md"), &page).unwrap();
    println!("{page}");
    assert!(empty.is_empty(), "cells without a test that passed:\n{}", empty.join("\n"));
}
