//! What an artifact must look like, and whether it does: pure over bytes.
//!
//! Every violation is found at once and says in one sentence what a model has to change (J-09).

mod data;
mod definition;
mod markdown;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::definition::ContractProblem;

/// Artifacts beyond this are refused unread unless their contract says otherwise.
pub const ARTIFACT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// More violations than this help nobody; the rest is counted.
const VIOLATIONS_MAX: usize = 50;

/// A contract in the shape of its file; made from a value in which schema names are resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Contract {
    #[serde(flatten)]
    pub shape: Shape,
    pub bytes_max: u64,
}

/// What kind of content is expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Exists and is not empty; a Markdown file has more than headings.
    Any(AnyRules),
    Text(TextRules),
    Markdown(MarkdownRules),
    /// JSON that the schema accepts.
    Json(Value),
    /// YAML that the schema accepts.
    Yaml(Value),
}

/// No rules; a struct so that the shape is written as an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnyRules {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TextRules {
    pub min_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkdownRules {
    /// The exact title, in any case; `{}` in it stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, HeaderRule>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<String, SectionRule>,
    /// Sections that must stand in this order, where they are there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// An id of a section's pattern may be given to one item only.
    pub ids_unique: bool,
    /// Further rules for reports whose header says something: who writes PASS may list no failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<WhenRule>,
}

/// Rules of sections that hold if every named header field says one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WhenRule {
    pub header: BTreeMap<String, Vec<String>>,
    pub sections: BTreeMap<String, SectionRule>,
}

/// What a header field may say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderRule {
    Any,
    Iso8601,
    #[serde(untagged)]
    OneOf(Vec<String>),
    /// A text with a number in it: `Fix {n}`; `Fix {file_n}` has the number that the file's name ends with.
    #[serde(untagged)]
    Form(String),
}

/// What a section must hold. Everything that is said must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SectionRule {
    /// The section may be missing; one that is there is checked.
    pub optional: bool,
    /// The section may be empty.
    pub may_be_empty: bool,
    /// Fewest and most list items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bullets: Option<(usize, usize)>,
    /// Items carry ids of this form: `REQ-{n}`, `AC-{nnn}` (at least three digits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<String>,
    /// Fewest ids, or fewest items where no ids are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<usize>,
    /// Fewest items or sub-sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_min: Option<usize>,
    /// Most items or sub-sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_max: Option<usize>,
    /// A table with at least these columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_min: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// At least one of these texts is in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains_any: Vec<String>,
    /// None of these texts is in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// What stands behind `Name:`, wherever in the section that is, begins with one of these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub says: BTreeMap<String, Vec<String>>,
    /// Its first word is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Every item has these `Field:` sub-bullets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Every item names a file: `` `src/a.rs:12` ``, `docs/`, `Makefile.am`.
    #[serde(skip_serializing_if = "is_false")]
    pub paths: bool,
    /// A code block is in it, or below it: commands, or what they printed.
    #[serde(skip_serializing_if = "is_false")]
    pub code: bool,
    /// What the cells of a column, or a field of every item, may begin with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<String, SectionRule>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// How badly an artifact fails, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something required is not there.
    Missing,
    /// It is there with nothing in it.
    Empty,
    /// Headings and header fields without any content.
    HeaderOnly,
    /// What is in it is not what was agreed.
    Content,
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Level::Missing => "missing",
            Level::Empty => "empty",
            Level::HeaderOnly => "header_only",
            Level::Content => "content",
        }
    }
}

/// One way in which an artifact breaks its contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    pub level: Level,
    /// The artifact's name and the place in it: "plan.md, ## Requirements", "tasks.yaml, /tasks/0/id".
    pub place: String,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.place, self.expected, self.found)
    }
}

impl Contract {
    /// Exists and is not empty.
    pub fn any() -> Contract {
        Contract { shape: Shape::Any(AnyRules {}), bytes_max: ARTIFACT_BYTES_MAX }
    }

    /// Reads a contract; every mistake in it is named. `json:` and `yaml:` hold the schema itself.
    pub fn from_value(value: &Value) -> Result<Contract, Vec<ContractProblem>> {
        definition::read(value)
    }

    /// The schema file that `json:` or `yaml:` names, for the caller to load and put in its place.
    pub fn schema_name(value: &Value) -> Option<(&'static str, &str)> {
        ["json", "yaml"].into_iter().find_map(|key| Some((key, value.get(key)?.as_str()?)))
    }
}

/// Whether a value is what a JSON Schema says. A schema that cannot be used allows nothing.
pub fn fits(schema: &Value, value: &Value) -> bool {
    data::compile(schema).is_ok_and(|validator| validator.is_valid(value))
}

/// Checks the bytes of an artifact; all violations at once. A file that is not there is the
/// caller's to report with [`missing`].
pub fn check(contract: &Contract, name: &str, bytes: &[u8]) -> Result<(), Vec<Violation>> {
    let mut violations = Vec::new();
    let whole =
        |level, expected: String, found: String| Violation { level, place: String::new(), expected, found };
    if bytes.len() as u64 > contract.bytes_max {
        let found = format!("{} bytes", bytes.len());
        violations.push(whole(Level::Content, format!("at most {} bytes", contract.bytes_max), found));
    } else if bytes.is_empty() {
        violations.push(whole(Level::Empty, "content".to_owned(), "a file of 0 bytes".to_owned()));
    } else if String::from_utf8_lossy(bytes).chars().all(|c| c.is_whitespace() || c == '\u{feff}') {
        violations.push(whole(Level::Empty, "content".to_owned(), "only whitespace".to_owned()));
    } else {
        match &contract.shape {
            // `any` promises no more than that there is something.
            Shape::Any(AnyRules {}) => {}
            Shape::Text(rules) => violations.extend(check_text(rules, bytes)),
            Shape::Markdown(rules) => violations.extend(markdown::check(rules, name, bytes)),
            Shape::Json(schema) => violations.extend(data::check_json(schema, bytes)),
            Shape::Yaml(schema) => violations.extend(data::check_yaml(schema, bytes)),
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    let more = violations.len().saturating_sub(VIOLATIONS_MAX);
    violations.truncate(VIOLATIONS_MAX);
    for violation in &mut violations {
        let place = std::mem::take(&mut violation.place);
        violation.place = if place.is_empty() { name.to_owned() } else { format!("{name}, {place}") };
    }
    if more > 0 {
        let place = name.to_owned();
        let found = format!("{more} more violations");
        violations.push(Violation {
            level: Level::Content,
            place,
            expected: "none of these".to_owned(),
            found,
        });
    }
    Err(violations)
}

/// The violation of an artifact that was not written.
pub fn missing(name: &str) -> Violation {
    Violation {
        level: Level::Missing,
        place: name.to_owned(),
        expected: "the file to be written".to_owned(),
        found: "no file".to_owned(),
    }
}

fn check_text(rules: &TextRules, bytes: &[u8]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let place = String::new();
    if (bytes.len() as u64) < rules.min_bytes {
        violations.push(Violation {
            level: Level::Content,
            place: place.clone(),
            expected: format!("at least {} bytes", rules.min_bytes),
            found: format!("{} bytes", bytes.len()),
        });
    }
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    for wanted in rules.contains.iter().filter(|wanted| !text.contains(&wanted.to_lowercase())) {
        violations.push(Violation {
            level: Level::Content,
            place: place.clone(),
            expected: format!("the text `{wanted}`"),
            found: "no such text".to_owned(),
        });
    }
    violations
}
