//! Reads the fields of a JSON reply and collects what is wrong with them, each with its JSON path.
//!
//! Knows how findings, questions and other fields of ours look in any JSON dialect; not what a
//! dialect requires.

use gatewright_core::{
    ids::StepId,
    outcome::{Outcome, Question, Reply},
    verdict::{Finding, Severity},
};
use serde_json::{Map, Value};

use super::words::WordMap;

/// Optional fields of ours that any JSON reply may have.
pub(crate) const OUR_FIELDS: &[&str] = &["questions", "back_to", "reason"];
/// Names under which dialects give a finding's text; the first that is there counts.
const PROBLEM_FIELDS: &[&str] = &["description", "issue", "problem", "message"];
const FIX_FIELDS: &[&str] = &["suggestion", "suggested_fix", "recommended_fix", "fix"];

/// A walk over one JSON object that collects violations.
pub(crate) struct Fields<'a> {
    pub object: &'a Map<String, Value>,
    pub path: String,
}

impl<'a> Fields<'a> {
    pub fn new(object: &'a Map<String, Value>, path: impl Into<String>) -> Self {
        Fields { object, path: path.into() }
    }

    pub fn at(&self, key: &str) -> String {
        format!("{}/{key}", self.path)
    }

    pub fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// A text; absent and null are `None`.
    pub fn text(&self, key: &str, violations: &mut Vec<String>) -> Option<String> {
        match self.object.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => {
                violations.push(format!("{}: expected a string, found {}", self.at(key), kind(other)));
                None
            }
        }
    }

    pub fn required_text(&self, key: &str, violations: &mut Vec<String>) -> String {
        let before = violations.len();
        let text = self.text(key, violations).unwrap_or_default();
        if text.trim().is_empty() && violations.len() == before {
            let found = if self.has(key) { "is empty" } else { "is missing" };
            violations.push(format!("{}: the required text {found}", self.at(key)));
        }
        text
    }

    pub fn flag(&self, key: &str, violations: &mut Vec<String>) -> Option<bool> {
        match self.object.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                violations.push(format!("{}: expected true or false, found {}", self.at(key), kind(other)));
                None
            }
        }
    }

    pub fn list(&self, key: &str, violations: &mut Vec<String>) -> &'a [Value] {
        match self.object.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                violations.push(format!("{}: expected a list, found {}", self.at(key), kind(other)));
                &[]
            }
        }
    }

    pub fn texts(&self, key: &str, violations: &mut Vec<String>) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, item) in self.list(key, violations).iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => violations.push(format!(
                    "{}/{index}: expected a string, found {}",
                    self.at(key),
                    kind(other)
                )),
            }
        }
        texts
    }

    /// The object at `key`; missing is a violation.
    pub fn required_object(&self, key: &str, violations: &mut Vec<String>) -> Option<Fields<'a>> {
        match self.object.get(key) {
            Some(Value::Object(object)) => Some(Fields::new(object, self.at(key))),
            Some(other) => {
                violations.push(format!("{}: expected an object, found {}", self.at(key), kind(other)));
                None
            }
            None => {
                violations.push(format!("{}: the required object is missing", self.at(key)));
                None
            }
        }
    }

    /// Every key must be one of these.
    pub fn refuse_unknown(&self, known: &[&str], violations: &mut Vec<String>) {
        for key in self.object.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint =
                nearest(key, known).map(|known| format!(", did you mean `{known}`?")).unwrap_or_default();
            violations.push(format!("{}: unknown field{hint}", self.at(key)));
        }
    }

    /// More keys are allowed, misspelled ones are not: their content would be lost (J-07).
    pub fn refuse_misspelled(&self, known: &[&str], violations: &mut Vec<String>) {
        for key in self.object.keys().filter(|key| !known.contains(&key.as_str())) {
            if let Some(meant) = nearest(key, known).filter(|meant| !self.has(meant)) {
                violations.push(format!("{}: unknown field, did you mean `{meant}`?", self.at(key)));
            }
        }
    }
}

/// Reads a list of findings. An entry without a severity, or with one nobody knows, has the highest.
pub(crate) fn findings(
    fields: &Fields<'_>,
    key: &str,
    words: &WordMap,
    violations: &mut Vec<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, item) in fields.list(key, violations).iter().enumerate() {
        let path = format!("{}/{index}", fields.at(key));
        match item {
            Value::Object(object) => findings.push(finding(&Fields::new(object, path), words, violations)),
            other => violations.push(format!("{path}: expected an object, found {}", kind(other))),
        }
    }
    findings
}

fn finding(fields: &Fields<'_>, words: &WordMap, violations: &mut Vec<String>) -> Finding {
    let problem_field = PROBLEM_FIELDS.iter().find(|key| fields.has(key)).unwrap_or(&PROBLEM_FIELDS[0]);
    let mut finding = Finding::new(Severity::Critical, fields.required_text(problem_field, violations));
    match fields.object.get("severity") {
        Some(Value::String(word)) => {
            finding.severity = words.severity_or_highest(word);
            finding.severity_word.clone_from(word);
        }
        Some(Value::Null) | None => {}
        Some(other) => finding.severity_word = other.to_string(),
    }
    finding.id = fields.text("id", violations);
    finding.location = fields.text("location", violations).or_else(|| file_and_line(fields, violations));
    finding.category = fields.text("category", violations);
    finding.fix = FIX_FIELDS.iter().find(|key| fields.has(key)).and_then(|key| fields.text(key, violations));
    finding.route = fields.text("route", violations);
    finding.out_of_scope = fields.flag("out_of_scope", violations).unwrap_or(false);
    if let Some(requirement) = fields.text("requirement", violations) {
        finding.problem = format!("{requirement}: {}", finding.problem);
    }
    finding
}

/// S1 gives a location in two fields.
fn file_and_line(fields: &Fields<'_>, violations: &mut Vec<String>) -> Option<String> {
    let file = fields.text("file", violations)?;
    match fields.object.get("line") {
        Some(Value::Number(line)) => Some(format!("{file}:{line}")),
        Some(Value::String(line)) if !line.is_empty() => Some(format!("{file}:{line}")),
        _ => Some(file),
    }
}

/// Reads the fields of ours into the reply.
pub(crate) fn read_our_fields(fields: &Fields<'_>, reply: &mut Reply, violations: &mut Vec<String>) {
    for (index, item) in fields.list("questions", violations).iter().enumerate() {
        let path = format!("{}/{index}", fields.at("questions"));
        match item {
            Value::Object(object) => {
                let fields = Fields::new(object, path);
                fields.refuse_unknown(&["question", "options", "recommendation", "security"], violations);
                reply.questions.push(Question {
                    question: fields.required_text("question", violations),
                    options: fields.texts("options", violations),
                    recommendation: fields.text("recommendation", violations),
                    security: fields.flag("security", violations).unwrap_or(false),
                });
            }
            other => violations.push(format!("{path}: expected an object, found {}", kind(other))),
        }
    }
    reply.back_to = fields.text("back_to", violations).map(StepId::from);
    if let Some(reason) = fields.text("reason", violations) {
        reply.reason = Some(reason);
    }
}

/// Who needs input and asks nothing asks its summary.
pub(crate) fn ask_summary(reply: &mut Reply, security: bool) {
    if reply.outcome == Outcome::NeedsInput && reply.questions.is_empty() {
        let question = reply.summary.clone();
        reply.questions.push(Question { question, options: Vec::new(), recommendation: None, security });
    }
}

/// Result of a format's reader: the reply, or everything that is wrong with it.
pub(crate) fn accepted(reply: Reply, violations: Vec<String>) -> Result<Reply, Vec<String>> {
    if violations.is_empty() { Ok(reply) } else { Err(violations) }
}

pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", clipped(&format!("{text:?}"))),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// At most 60 characters of a text, for messages.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The known name that this one is a slip of: other case or separators, or two letters off.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let bare = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let name = bare(name);
    let best = known.iter().map(|known| (distance(&name, &bare(known)), *known)).min()?;
    (best.0 <= 2 && best.0 * 3 <= name.chars().count()).then_some(best.1)
}

/// Edit distance; names are short, so texts beyond 40 characters are simply far.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len() > 40 || b.len() > 40 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
