//! Runs every example of docs/lint.md and compares what it says with what is written there.
//! `GATEWRIGHT_BLESS=1` writes it anew.

use std::{fmt::Write as _, fs, path::PathBuf};

use gatewright_workflow::{
    config::Config,
    diagnostic::{codes, render_all},
    load::{LoadOptions, MapSources, lint},
};

const STAGED: &str = "
workflow: staged
roles: { coder: { prompt: Build it. } }
stages:
  - id: build
    steps:
      - { id: code, role: coder, retry: { on_exhausted: [ { restart_stage: build } ] } }
";

const SMALL: &str = "workflow: small\nchecks: { ok: 'true' }\nsteps: [ { id: ok, check: ok } ]\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md")
}

/// What the findings of one code look like for an example.
fn shown(code: &str, yaml: &str, setting: Option<&str>) -> String {
    let config = Config::default();
    let mut options = LoadOptions::new(&config);
    if let Some((key, value)) = setting.and_then(|setting| setting.split_once('=')) {
        options.settings.insert(key.to_owned(), value.to_owned());
    }
    let sources = MapSources::default()
        .with("roles/planner.md", "Plan it.\n")
        .with("reports/plan.yaml", "any: {}\n")
        .with("registry.yaml", "coder: { reads: [plan.md], writes: [report.md] }\n")
        .with_workflow("example", yaml, MapSources::default())
        .with_workflow("staged", STAGED, MapSources::default())
        .with_workflow("small", SMALL, MapSources::default());
    let found = lint("example.yaml", yaml, &sources, &options);
    let others: Vec<String> =
        found.iter().filter(|found| found.code.0 != code).map(|found| found.render()).collect();
    assert!(others.is_empty(), "the example of {code} shows something else too:\n{}", others.join("\n"));
    render_all(&found)
}

/// Walks the page; `text` blocks are made from the `yaml` block before them.
#[test]
fn j_28_every_rule_has_an_example_that_shows_it() {
    let before = fs::read_to_string(page()).expect("docs/lint.md is part of the repository");
    let mut after = String::new();
    let (mut code, mut yaml, mut setting) = (String::new(), String::new(), None);
    let (mut repeat, mut shown_codes) = (None, Vec::new());
    let mut seen = Vec::new();
    let mut block: Option<&str> = None;
    for line in before.lines() {
        match (block, line) {
            (None, "```yaml") => {
                yaml.clear();
                block = Some("yaml");
            }
            (None, "```text") => {
                let text = shown(&code, &yaml, setting.take().as_deref());
                assert!(text.contains(&format!("[{code}]")), "the example of {code} shows nothing:\n{yaml}");
                assert!(text.contains('^'), "{code} has no caret:\n{text}");
                assert_eq!(
                    text.matches("= help: ").count(),
                    text.matches(&format!("[{code}]")).count(),
                    "{code} has no remedy:\n{text}"
                );
                shown_codes.push(code.clone());
                let _ = write!(after, "```text\n{text}");
                block = Some("text");
                continue;
            }
            (Some(_), "```") => block = None,
            (Some("yaml"), line) => {
                // A line with `{n}` stands for as many as the page says.
                let times = if line.contains("{n}") { repeat.take().unwrap_or(1) } else { 1 };
                for n in 1..=times {
                    let _ = writeln!(yaml, "{}", line.replace("{n}", &n.to_string()));
                }
            }
            (Some("text"), _) => continue,
            (None, line) => {
                if let Some(heading) = line.strip_prefix("### ") {
                    code = heading.split(':').next().unwrap_or_default().to_owned();
                    seen.push(code.clone());
                }
                if let Some(times) = line.strip_prefix("<!-- repeat: ") {
                    repeat = times.strip_suffix(" -->").and_then(|times| times.parse::<usize>().ok());
                }
                if let Some(given) = line.strip_prefix("<!-- set: ") {
                    setting = given.strip_suffix(" -->").map(str::to_owned);
                }
            }
            (Some(_), _) => {}
        }
        after.push_str(line);
        after.push('\n');
    }
    let all: Vec<&str> = codes::ALL.iter().map(|code| code.0).collect();
    assert_eq!(shown_codes, all, "every code has an example");
    assert_eq!(seen, all, "docs/lint.md has a section for every code, in order");
    if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
        fs::write(page(), after).expect("docs/lint.md is writable");
    } else {
        assert_eq!(before, after, "docs/lint.md is stale: run with GATEWRIGHT_BLESS=1");
    }
}
