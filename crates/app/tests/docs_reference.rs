//! The reference pages are complete: every command and flag of the program, every key of the
//! language, every filter and every type of event is named in the page that is about it.
//!
//! Only the outside is asked: the program's own help, the generated schemas, the source of the
//! closed lists. What a page says of a name is for readers to judge.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewright"))
        .args(arguments)
        .arg("--help")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names below `Commands:` of a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// The long flags of a help text, but for those that every command has.
fn flags(help: &str) -> BTreeSet<String> {
    let options = help.lines().skip_while(|line| *line != "Options:").skip(1);
    let words = options
        .filter(|line| line.trim_start().starts_with('-'))
        .flat_map(|line| line.split([' ', ',', '<', '[']));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned);
    flags.filter(|flag| !["--help", "--color", "--version"].contains(&flag.as_str())).collect()
}

/// The text below the heading of a command, up to the next heading.
fn section<'t>(page: &'t str, command: &str) -> Option<&'t str> {
    let heading = format!("\n### `{command}`\n");
    let rest = &page[page.find(&heading)? + heading.len()..];
    Some(rest.find("\n## ").into_iter().chain(rest.find("\n### ")).min().map_or(rest, |end| &rest[..end]))
}

#[test]
fn every_command_and_flag_is_in_commands_md() {
    let page = page("commands.md");
    let known = commands(&help(&[]));
    assert!(known.len() > 20, "is the reader of the help broken? {known:?}");
    let mut missing = Vec::new();
    for command in &known {
        if !page.contains(&format!("\n| [`{command}`](#{command}) |")) {
            missing.push(format!("`{command}` is not in the table of commands"));
        }
        let Some(section) = section(&page, command) else {
            missing.push(format!("`{command}` has no section"));
            continue;
        };
        if command == "help" {
            continue;
        }
        for flag in flags(&help(&[command])) {
            if !section.contains(&flag) {
                missing.push(format!("`{command}` does not speak of `{flag}`"));
            }
        }
    }
    for row in
        page.lines().filter_map(|line| line.strip_prefix("| [`")).filter_map(|line| line.split_once('`'))
    {
        if !known.iter().any(|command| command == row.0) {
            missing.push(format!("there is no command `{}`", row.0));
        }
    }
    assert!(missing.is_empty(), "docs/commands.md:\n{}", missing.join("\n"));
}

/// Every name of a property in a JSON Schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                names.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| properties(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| properties(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keys_of(schema: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    properties(&serde_json::from_str(&page(schema)).unwrap(), &mut names);
    names
}

/// The name stands as code, alone or as the beginning of an example (`reads: [FILE]`, `{ redo: … }`).
fn names(page: &str, name: &str) -> bool {
    page.split('`')
        .skip(1)
        .step_by(2)
        .any(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name))
}

fn assert_named(pages: &[&str], wanted: impl IntoIterator<Item = String>) {
    // Fenced blocks are examples; a name has to stand in the text.
    let text: String = pages.iter().map(|name| without_blocks(&page(name))).collect();
    let missing: Vec<String> = wanted.into_iter().filter(|name| !names(&text, name)).collect();
    assert!(missing.is_empty(), "{} does not name: {}", pages.join(", "), missing.join(", "));
}

fn without_blocks(text: &str) -> String {
    let mut open = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            open = !open;
        } else if !open {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn every_key_of_a_workflow_is_in_workflows_md() {
    let keys = keys_of("workflow.schema.json");
    assert!(keys.len() > 60, "is the reader of the schema broken? {keys:?}");
    assert_named(&["workflows.md"], keys);
}

#[test]
fn every_key_of_the_configuration_is_in_the_pages() {
    assert_named(&["commands.md", "agents.md", "workflows.md"], keys_of("config.schema.json"));
}

#[test]
fn every_filter_of_templates_is_in_workflows_md() {
    let filters = gatewright_workflow::template::filters::FILTERS.iter().map(|name| (*name).to_owned());
    let functions = gatewright_workflow::template::filters::FUNCTIONS.iter().map(|name| (*name).to_owned());
    assert_named(&["workflows.md"], filters.chain(functions));
}

#[test]
fn every_type_of_event_is_in_commands_md() {
    let source = fs::read_to_string(root().join("crates/core/src/event.rs")).unwrap();
    let types: Vec<&str> = source
        .split("#[serde(rename = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|name| name.contains('.'))
        .collect();
    assert!(types.len() > 30, "is the reader of the source broken? {types:?}");
    let page = page("commands.md");
    let missing: Vec<&&str> = types.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/commands.md does not name: {missing:?}");
}

#[test]
fn every_variable_that_agents_get_is_in_agents_md() {
    let source = fs::read_to_string(root().join("crates/host/src/perform/agent.rs")).unwrap();
    let variables: BTreeSet<String> =
        source.split('"').filter(|word| word.starts_with("GATEWRIGHT_")).map(str::to_owned).collect();
    assert!(variables.len() > 6, "is the reader of the source broken? {variables:?}");
    assert_named(&["agents.md"], variables);
}

#[test]
fn what_a_retry_is_told_is_in_agents_md() {
    let source = fs::read_to_string(root().join("crates/host/src/prompt.rs")).unwrap();
    let remedies = source.split("fn remedy(").nth(1).and_then(|rest| rest.split("\n}\n").next()).unwrap();
    let told: Vec<&str> = remedies.split('"').skip(1).step_by(2).collect();
    assert!(told.len() > 6, "is the reader of the source broken? {told:?}");
    let page = page("agents.md");
    let missing: Vec<&&str> = told.iter().filter(|sentence| !page.contains(**sentence)).collect();
    assert!(missing.is_empty(), "docs/agents.md does not have: {missing:#?}");
}

/// A link to a page or a heading leads somewhere.
#[test]
fn links_between_the_pages_lead_somewhere() {
    let anchor = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    let pages = ["workflows.md", "streams.md", "commands.md", "agents.md", "testing.md", "lint.md"];
    let mut broken = Vec::new();
    for name in pages {
        let text = without_blocks(&page(name));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") {
                continue;
            }
            let (file, heading) =
                target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
            let file = if file.is_empty() { name } else { file };
            let path = root().join("docs").join(file);
            let found = path.exists()
                && heading.is_none_or(|heading| {
                    let text = without_blocks(&fs::read_to_string(&path).unwrap());
                    text.lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|line| anchor(line.trim_start_matches('#')) == heading)
                });
            if !found {
                broken.push(format!("docs/{name}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What stands between a mark and its end.
fn between<'p>(page: &'p str, mark: &str, end: &str) -> &'p str {
    let from = page.find(mark).unwrap_or_else(|| panic!("docs/agents.md has no `{mark}`")) + mark.len();
    &page[from..from + page[from..].find(end).unwrap()]
}

#[test]
fn agents_md_says_what_the_adapters_say() {
    let parts = [
        ("--test docs_reference -->\n", "<!-- end of the table -->", gatewright_agents::capability_table()),
        ("<!-- generated like the table -->\n", "<!-- end of the list -->", gatewright_agents::agent_list()),
    ];
    let mut page = page("agents.md");
    let mut stale = Vec::new();
    for (mark, end, wanted) in parts {
        let found = between(&page, mark, end).to_owned();
        let wanted = format!("\n{wanted}\n");
        if found != wanted {
            page = page.replacen(&format!("{mark}{found}{end}"), &format!("{mark}{wanted}{end}"), 1);
            stale.push(end);
        }
    }
    let bless = std::env::var_os("GATEWRIGHT_BLESS").is_some();
    for (name, text) in gatewright_agents::agent_pages() {
        let path = root().join(format!("docs/agents/{name}.md"));
        if bless {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        } else {
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                found, text,
                "docs/agents/{name}.md is not what its adapter says: run with GATEWRIGHT_BLESS=1"
            );
        }
    }
    if bless {
        fs::write(root().join("docs/agents.md"), &page).unwrap();
    } else {
        assert!(stale.is_empty(), "docs/agents.md is not what the adapters say: run with GATEWRIGHT_BLESS=1");
    }
}
