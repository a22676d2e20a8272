//! What is on record about the rules: which test shows which, and which one-line change of a method turns a
//! test red. `docs/conformance.md` is made from both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use gatewright_workflow::yaml::parse_yaml_value;
use serde_json::Value;

/// The sources and how many rules each has.
const SOURCES: [(&str, &str, u32); 6] = [
    ("S0", "report-chain", 63),
    ("S1", "gated-session", 76),
    ("S2", "phase-review", 44),
    ("S3", "stream-dag", 48),
    ("S4", "staged-schedule", 37),
    ("J", "the engine", 54),
];

/// A test names at most so many rules.
const RULES_PER_TEST_MAX: usize = 2;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A change of one place of a method, and the test that must notice it.
pub struct Patch {
    pub rule: String,
    pub file: String,
    pub old: String,
    pub new: String,
    pub test: String,
}

/// The patches that are kept in `patches.yaml`.
pub fn patches() -> Vec<Patch> {
    let text = include_str!("patches.yaml");
    let list = parse_yaml_value(text).unwrap();
    let field = |entry: &Value, key: &str| {
        entry[key].as_str().unwrap_or_else(|| panic!("`{key}` is missing in {entry}")).to_owned()
    };
    let entries = list.as_array().unwrap().iter();
    entries
        .map(|entry| Patch {
            rule: field(entry, "rule"),
            file: field(entry, "file"),
            old: field(entry, "old"),
            new: field(entry, "new"),
            test: field(entry, "test"),
        })
        .collect()
}

/// Test names by rule, each with its file.
type Shown = BTreeMap<String, Vec<(String, String)>>;

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The rules at the beginning of a test's name: `s0_40_s0_41_and_so_on`.
fn rules_of(name: &str) -> Vec<String> {
    let mut rules = Vec::new();
    let mut words = name.split('_').peekable();
    while let Some(word) = words.next() {
        if word == "and" && !rules.is_empty() {
            continue;
        }
        let is_source = SOURCES.iter().any(|(source, ..)| source.eq_ignore_ascii_case(word));
        let number = words.peek().and_then(|next| next.parse::<u32>().ok());
        match number {
            Some(number) if is_source => rules.push(format!("{}-{number:02}", word.to_uppercase())),
            _ => break,
        }
        words.next();
    }
    rules
}

fn shown() -> Shown {
    let root = root();
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        rust_files(&root.join(folder), &mut files);
    }
    let mut shown = Shown::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let place = path.strip_prefix(&root).unwrap().display().to_string();
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")) {
            let name = line.split('(').next().unwrap();
            for rule in rules_of(name) {
                shown.entry(rule).or_default().push((name.to_owned(), place.clone()));
            }
        }
    }
    shown
}

fn words(name: &str) -> String {
    let rules = rules_of(name);
    let mut rest = name;
    for rule in &rules {
        let begin = rule.to_lowercase().replace('-', "_");
        rest = rest
            .trim_start_matches("and_")
            .strip_prefix(begin.as_str())
            .unwrap_or(rest)
            .trim_start_matches('_');
    }
    rest.replace('_', " ")
}

fn document() -> String {
    let (shown, patches) = (shown(), patches());
    let mut text = String::from(
        "<!-- Made from the tests and tests/conformance/patches.yaml; written anew with
     GATEWRIGHT_BLESS=1 cargo nextest run -p gatewright --test conformance ledger -->

# Which test shows which rule

A rule is named by its source and its number; a test is named after the rules it shows, two at most where it runs the
real program. The sentence is the test's name. Below each table stands, for some rules, the change of one line that turns
the test red: each was tried, and `./test patches` tries some of them again.
",
    );
    for (source, of, last) in SOURCES {
        let _ = write!(text, "\n## {source}: {of}\n\n| rule | what is shown | test in |\n|---|---|---|\n");
        for number in 1..=last {
            let rule = format!("{source}-{number:02}");
            let Some(tests) = shown.get(&rule) else {
                let _ = writeln!(text, "| {rule} | no test yet | |");
                continue;
            };
            for (name, place) in tests {
                let _ = writeln!(text, "| {rule} | {} | `{place}` |", words(name));
            }
        }
        let mine: Vec<&Patch> =
            patches.iter().filter(|patch| patch.rule.starts_with(&format!("{source}-"))).collect();
        if !mine.is_empty() {
            let _ = write!(text, "\n| rule | file | line | becomes | red |\n|---|---|---|---|---|\n");
        }
        for patch in mine {
            let cell = |text: &str| {
                let line = text.replace('\n', " ⏎ ").replace('|', "\\|");
                if line.trim().is_empty() { "(nothing)".to_owned() } else { format!("`` {} ``", line.trim()) }
            };
            let test = patch.test.rsplit("::").next().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | `{}` | {} | {} | `{test}` |",
                patch.rule,
                patch.file,
                cell(&patch.old),
                cell(&patch.new)
            );
        }
    }
    text
}

/// Compares a kept file with what it should be; writes it with `GATEWRIGHT_BLESS=1`.
#[track_caller]
pub fn holds(path: &Path, wanted: &str) {
    if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, wanted).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    if kept != wanted {
        let differs = kept.lines().zip(wanted.lines()).find(|(one, two)| one != two);
        panic!("{} is not what it should be; first difference: {differs:?}", path.display());
    }
}

#[test]
fn the_ledger_in_the_documents_is_that_of_the_tests() {
    holds(&root().join("docs/conformance.md"), &document());
}

#[test]
fn a_test_through_the_real_program_names_at_most_two_rules() {
    let shown = shown();
    let many: BTreeSet<&String> = shown
        .values()
        .flatten()
        .filter(|(name, place)| {
            place.starts_with("tests/conformance/") && rules_of(name).len() > RULES_PER_TEST_MAX
        })
        .map(|(name, _)| name)
        .collect();
    assert!(many.is_empty(), "{many:#?}");
}

/// A unit test shows that a part can do it; only the program shows that it does. Failing disks (J-54) are made by
/// the crash campaign, with the same program.
#[test]
fn every_rule_has_a_test_through_the_real_program() {
    let shown = shown();
    let mut missing = Vec::new();
    for (source, _, last) in SOURCES {
        let folder = if source == "J" { "tests/" } else { "tests/conformance/" };
        let rules = (1..=last).map(|number| format!("{source}-{number:02}"));
        missing.extend(rules.filter(|rule| {
            let tests = shown.get(rule).into_iter().flatten();
            !tests.into_iter().any(|(_, place)| place.starts_with(folder))
        }));
    }
    assert!(missing.is_empty(), "only unit tests, or none at all: {missing:?}");
}

#[test]
fn every_patch_fits_its_file_once_and_names_a_test_of_its_rule() {
    let shown = shown();
    for Patch { rule, file, old, new, test } in patches() {
        let text =
            std::fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(text.matches(old.as_str()).count(), 1, "{rule}: {file} has not exactly one `{old}`");
        assert_ne!(old, new, "{rule}");
        let name = test.rsplit("::").next().unwrap();
        let tests = shown.get(&rule).unwrap_or_else(|| panic!("{rule} has no test"));
        assert!(tests.iter().any(|(other, _)| other == name), "{rule}: {test} is none of {tests:?}");
    }
}
