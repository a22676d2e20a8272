//! What a rehearsed agent does in one attempt, as a scenario says it. Data and its reading only.

use std::collections::BTreeMap;

use gatewright_workflow::{
    definition::{
        check_shape::check_shape,
        scalar::duration_ms,
        shape::{Shape, Table},
    },
    diagnostic::{Report, codes, suggestion},
    yaml::tree::{Node, NodeValue},
};
use serde_json::{Value, json};

use super::keys::{BEHAVIOUR, FINDING, QUESTION, WORDS};

/// One attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Behaviour {
    pub ending: Ending,
    pub writes: Writes,
    /// Waits first.
    pub slow_ms: u64,
    /// Prints so much first.
    pub noise_bytes: u64,
    /// Files of the repository, relative to it.
    pub edits: BTreeMap<String, String>,
    /// Files that it should not touch; may lead out of the repository.
    pub edits_outside: BTreeMap<String, String>,
    /// By declared output: what is written there.
    pub files: BTreeMap<String, String>,
    pub summary: Option<String>,
}

/// How the attempt ends. Exactly one of these.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ending {
    /// Done, or a content reviewer: whatever is good news for the step.
    #[default]
    Good,
    /// A reviewer's findings, as the objects of the review JSON.
    Findings(Vec<Value>),
    Crash {
        code: i32,
    },
    /// Sleeps until it is killed.
    Hang,
    /// Words without a reply.
    Malformed,
    /// A reply with a status that does not exist.
    WrongStatus,
    /// Questions, as objects.
    Asks(Vec<Value>),
    /// The provider's quota is used up.
    Quota {
        for_ms: u64,
    },
    Blocked {
        reason: String,
    },
    Error {
        message: String,
    },
    BackTo {
        step: String,
    },
    /// Exactly this text.
    Reply(String),
}

/// What becomes of the declared outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    #[default]
    All,
    /// Claimed, but not written.
    Nothing,
}

/// The keys that say how an attempt ends.
const ENDINGS: &[&str] = &[
    "done",
    "pass",
    "findings",
    "crash",
    "hang",
    "malformed",
    "wrong_status",
    "missing_file",
    "stale_file",
    "asks",
    "quota",
    "blocked",
    "error",
    "back_to",
    "reply",
];
const SLOW_MS: u64 = 300;
const QUOTA_MS: u64 = 1_000;
const NOISE_BYTES: u64 = 1 << 20;
const OUTSIDE: &str = "outside-its-scope.txt";

/// One behaviour or a list of them.
pub fn read_all(node: &Node, report: &mut Report) -> Vec<Behaviour> {
    match &node.value {
        NodeValue::Sequence(elements) => {
            if elements.is_empty() {
                report.error(codes::BAD_VALUE, node.span, "the list of behaviours is empty", "`[done]`");
            }
            elements.iter().filter_map(|element| read(element, report)).collect()
        }
        _ => read(node, report).into_iter().collect(),
    }
}

fn read(node: &Node, report: &mut Report) -> Option<Behaviour> {
    match &node.value {
        NodeValue::String(word) => of_word(word, node, report),
        NodeValue::Mapping(_) => {
            check_shape(node, &Shape::Object(&BEHAVIOUR), "the behaviour", report);
            Some(of_mapping(node, report))
        }
        _ => {
            let remedy = format!("one of {}, or a mapping", WORDS.join(", "));
            report.error(codes::WRONG_TYPE, node.span, "a behaviour is a word or a mapping", remedy);
            None
        }
    }
}

fn of_word(word: &str, node: &Node, report: &mut Report) -> Option<Behaviour> {
    if !WORDS.contains(&word) {
        let remedy = suggestion(word, WORDS.iter().copied());
        let remedy = if remedy.is_empty() { format!("known: {}", WORDS.join(", ")) } else { remedy };
        report.error(codes::BAD_VALUE, node.span, format!("there is no behaviour `{word}`"), remedy);
        return None;
    }
    let mut behaviour = Behaviour::default();
    apply(&mut behaviour, word, &Node::null(node.span), report);
    Some(behaviour)
}

fn of_mapping(node: &Node, report: &mut Report) -> Behaviour {
    let endings: Vec<&str> =
        node.entries().iter().map(|(key, _)| key.text.as_str()).filter(|key| ENDINGS.contains(key)).collect();
    if endings.len() > 1 {
        let message = format!("an attempt ends in one way; here are {}", endings.join(", "));
        report.error(codes::BAD_VALUE, node.span, message, "make a list: one entry for each attempt");
    }
    let mut behaviour = Behaviour::default();
    for (key, value) in node.entries() {
        apply(&mut behaviour, &key.text, value, report);
    }
    behaviour
}

/// What one key means; a null value takes the key's default.
fn apply(behaviour: &mut Behaviour, key: &str, value: &Node, report: &mut Report) {
    let text = || value.text().map(str::to_owned);
    match key {
        "findings" => behaviour.ending = Ending::Findings(findings(value, report)),
        "crash" => behaviour.ending = Ending::Crash { code: exit_code(value, report) },
        "hang" => behaviour.ending = Ending::Hang,
        "malformed" => behaviour.ending = Ending::Malformed,
        "wrong_status" => behaviour.ending = Ending::WrongStatus,
        "missing_file" | "stale_file" => behaviour.writes = Writes::Nothing,
        "asks" => behaviour.ending = Ending::Asks(questions(value, report)),
        "quota" => behaviour.ending = Ending::Quota { for_ms: duration(value, QUOTA_MS, report) },
        "blocked" => {
            behaviour.ending = Ending::Blocked { reason: text().unwrap_or_else(|| "rehearsed".to_owned()) };
        }
        "error" => {
            behaviour.ending =
                Ending::Error { message: text().unwrap_or_else(|| "a rehearsed error".to_owned()) };
        }
        "back_to" => behaviour.ending = Ending::BackTo { step: text().unwrap_or_default() },
        "reply" => behaviour.ending = Ending::Reply(text().unwrap_or_default()),
        "slow" => behaviour.slow_ms = duration(value, SLOW_MS, report),
        "huge_output" => behaviour.noise_bytes = size(value, report),
        "edits" => behaviour.edits = edits(value, report),
        "edits_outside" => behaviour.edits_outside = outside(value),
        "files" => behaviour.files = texts(value),
        "summary" => behaviour.summary = text(),
        // `done` and `pass` are the default; anything else was reported already.
        _ => {}
    }
}

fn texts(node: &Node) -> BTreeMap<String, String> {
    let entries = node.entries().iter();
    entries.filter_map(|(key, value)| Some((key.text.clone(), value.text()?.to_owned()))).collect()
}

fn edits(node: &Node, report: &mut Report) -> BTreeMap<String, String> {
    for (key, _) in node.entries() {
        if key.text.starts_with('/') || key.text.split('/').any(|part| part == "..") {
            let message = format!("`{}` leaves the repository", key.text);
            report.error(codes::BAD_VALUE, key.span, message, "`edits_outside` is for that");
        }
    }
    texts(node)
}

fn outside(node: &Node) -> BTreeMap<String, String> {
    let content = "written by a rehearsed agent outside its scope\n".to_owned();
    match &node.value {
        NodeValue::Mapping(_) => texts(node),
        NodeValue::String(path) => BTreeMap::from([(path.clone(), content)]),
        _ => BTreeMap::from([(OUTSIDE.to_owned(), content)]),
    }
}

fn exit_code(node: &Node, report: &mut Report) -> i32 {
    if node.is_null() {
        return 1;
    }
    let code = node.text().and_then(|text| text.parse().ok()).filter(|code| (1..=255).contains(code));
    code.unwrap_or_else(|| {
        report.error(codes::BAD_VALUE, node.span, "an exit code of a crash is a number from 1 to 255", "");
        1
    })
}

fn duration(node: &Node, default: u64, report: &mut Report) -> u64 {
    if node.is_null() {
        return default;
    }
    node.text().and_then(duration_ms).unwrap_or_else(|| {
        report.error(codes::BAD_VALUE, node.span, "this is no duration", "`500ms`, `2s`");
        default
    })
}

/// `200MB`, `64KB`, a number of bytes.
fn size(node: &Node, report: &mut Report) -> u64 {
    if node.is_null() {
        return NOISE_BYTES;
    }
    let read = |text: &str| {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().ok()?;
        let factor = match text[digits..].trim() {
            "" | "B" => 1,
            "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return None,
        };
        number.checked_mul(factor)
    };
    node.text().and_then(read).unwrap_or_else(|| {
        report.error(codes::BAD_VALUE, node.span, "this is no size", "`64KB`, `200MB`");
        NOISE_BYTES
    })
}

fn findings(node: &Node, report: &mut Report) -> Vec<Value> {
    objects(node, &FINDING, "problem", report)
        .into_iter()
        .map(|mut finding| {
            if finding.get("severity").is_none() {
                finding["severity"] = json!("high");
            }
            finding
        })
        .collect()
}

fn questions(node: &Node, report: &mut Report) -> Vec<Value> {
    objects(node, &QUESTION, "question", report)
}

/// A list of texts and mappings; a text stands for a mapping with one key.
fn objects(node: &Node, table: &'static Table, main: &str, report: &mut Report) -> Vec<Value> {
    let one = |element: &Node, report: &mut Report| match &element.value {
        NodeValue::String(text) => Some(json!({main: text})),
        NodeValue::Mapping(_) => {
            check_shape(element, &Shape::Object(table), table.name, report);
            Some(element.to_json())
        }
        _ => {
            let message = format!("{} is a text or a mapping", table.name);
            report.error(codes::WRONG_TYPE, element.span, message, "");
            None
        }
    };
    let found: Vec<Value> = match &node.value {
        NodeValue::Sequence(elements) => elements.iter().filter_map(|element| one(element, report)).collect(),
        _ => one(node, report).into_iter().collect(),
    };
    if found.is_empty() {
        report.error(codes::BAD_VALUE, node.span, format!("at least one {main} is needed"), "");
    }
    found
}
