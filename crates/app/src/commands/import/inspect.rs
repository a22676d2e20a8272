//! What is in a folder, held against what its workflow says of it. Reads, and changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use gatewright_core::{
    event::AnsweredBefore,
    ids::{StageId, StepId},
};
use gatewright_host::{artifact_data::report_data, given};
use gatewright_workflow::{
    contract::{self, Contract, Level, Violation},
    frozen::{Frozen, Import},
    globs::{Bare, Globs},
    projection::filled,
    report::Report,
    template::{Templates, filters::slug},
    yaml::parse_yaml_value,
};
use serde_json::{Value, json};

use super::stock;
use crate::command_error::CommandError;

/// A folder and the workflow that reads it.
pub struct Found {
    /// As a person would name it.
    pub workflow: String,
    pub frozen_name: String,
    pub marker: String,
    pub folder: PathBuf,
    /// What is in the marker; null if it cannot be read.
    pub data: Value,
    /// Files that it does not have and that follow from what it has.
    pub supplied: BTreeMap<String, String>,
    pub files: Vec<String>,
    content: Value,
    texts: Value,
    plan: Value,
    pub import: Import,
    /// Its workflow is the one that the folder means.
    pub certain: bool,
}

/// What came out of it.
#[derive(Default)]
pub struct Inspected {
    pub request: String,
    pub over: bool,
    pub problems: Vec<Problem>,
    /// Steps whose files are there and are as they must be.
    pub given: BTreeSet<StepId>,
    /// Steps without files that were done.
    pub done: BTreeMap<StepId, String>,
    /// Commands among what is claimed: nobody's word that they succeeded counts, they are run in their turn.
    pub run_again: BTreeSet<StepId>,
    /// Reviews that were held, by step; of other steps attempts that were made.
    pub rounds: BTreeMap<StepId, u32>,
    /// How often stages were started again.
    pub restarts: BTreeMap<StageId, u32>,
    /// What people answered, by decision step.
    pub answered: BTreeMap<StepId, AnsweredBefore>,
    /// Ad-hoc decisions that have their numbers.
    pub numbered: u32,
    /// What the workflow keeps of it.
    pub kept: Option<Value>,
    /// The first step that is to be done.
    pub next: Option<StepId>,
}

/// One way in which the folder is not what it should be.
pub struct Problem {
    pub file: PathBuf,
    pub violation: Violation,
}

impl Problem {
    /// Where in the file; empty for the file as a whole.
    fn place(&self) -> &str {
        self.violation.place.split_once(", ").map_or("", |(_, place)| place)
    }

    fn remedy(&self) -> String {
        let expected = &self.violation.expected;
        match self.violation.level {
            Level::Missing if !self.place().is_empty() => format!("add {expected}"),
            Level::Missing => format!("write {expected}; without it the step that makes it is run again"),
            Level::Empty => "write its content, or remove the file".to_owned(),
            Level::HeaderOnly => "write what belongs under its headings".to_owned(),
            Level::Content => format!("change it to {expected}"),
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "file": self.file, "place": self.place(), "expected": self.violation.expected,
            "found": self.violation.found, "remedy": self.remedy(),
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place() {
            "" => String::new(),
            place => format!(", {place}"),
        };
        let (expected, found) = (&self.violation.expected, &self.violation.found);
        writeln!(f, "{}{place}: expected {expected}, found {found}", self.file.display())?;
        write!(f, "  remedy: {}", self.remedy())
    }
}

impl Found {
    pub fn read(
        name: &str,
        frozen: &Frozen,
        import: &Import,
        folder: PathBuf,
    ) -> Result<Found, CommandError> {
        let text = std::fs::read_to_string(folder.join(&import.marker)).unwrap_or_default();
        let files = given::files(&folder)
            .map_err(|error| CommandError::failed(format!("{}: {error}", folder.display())))?;
        let graph = frozen.plan.graph(&frozen.plan.profile);
        let steps: Vec<Value> = graph
            .top()
            .filter_map(|id| Some(json!({"id": id, "stage": graph.steps.get(id)?.stage})))
            .collect();
        let stages: Vec<Value> = graph.stages.iter().map(|stage| json!({"id": stage.id})).collect();
        let files: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        let mut found = Found {
            workflow: name.to_owned(),
            frozen_name: frozen.workflow.clone(),
            marker: import.marker.clone(),
            // JSON is YAML.
            data: parse_yaml_value(&text).unwrap_or(Value::Null),
            supplied: BTreeMap::new(),
            content: content(&folder, &files),
            texts: texts(&folder, &files),
            files,
            plan: json!({"steps": steps, "stages": stages}),
            import: import.clone(),
            certain: true,
            folder,
        };
        found.supply();
        Ok(found)
    }

    /// Makes the files that such folders do not have.
    fn supply(&mut self) {
        let (templates, document) = (Templates::new(), self.document());
        for (name, skeleton) in &self.import.supply {
            let Ok(name) = templates.render("supply", name, &document) else { continue };
            let made = filled(skeleton, &templates, &document).filter(|_| !self.files.contains(&name));
            // A text is the file itself, everything else is data.
            let text = made.map(|value| match value {
                Value::String(text) => text,
                value => format!("{value:#}\n"),
            });
            self.supplied.extend(text.filter(|text| !text.trim().is_empty()).map(|text| (name, text)));
        }
    }

    pub fn has(&self, name: &String) -> bool {
        self.files.contains(name) || self.supplied.contains_key(name)
    }

    /// What templates and expressions of an import see.
    pub fn document(&self) -> Value {
        let folder = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let known =
            json!({"folder": folder, "data": self.data, "files": self.files, "content": self.content});
        let request = Templates::new().render("request", &self.import.request, &known).unwrap_or_default();
        json!({
            "request": request.trim(), "slug": slug(request.trim()),
            "folder": folder, "data": self.data, "files": self.files, "content": self.content, "texts": self.texts,
            "steps": self.plan["steps"], "stages": self.plan["stages"],
        })
    }

    /// The profile that the folder itself names.
    pub fn profile(&self) -> Result<Option<String>, CommandError> {
        let Some(template) = self.import.profile.as_ref().filter(|_| !self.data.is_null()) else {
            return Ok(None);
        };
        let rendered = Templates::new().render("profile", template, &self.document());
        let rendered = rendered.map_err(|problem| self.unreadable("profile", &problem.message))?;
        Ok(Some(rendered.trim().to_owned()).filter(|name| !name.is_empty()))
    }

    /// What its workflow has to say to whoever imports it.
    pub fn note(&self) -> Option<String> {
        let template = self.import.note.as_ref()?;
        let said = Templates::new().render("note", template, &self.document()).ok()?;
        Some(said.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub fn unreadable(&self, what: &str, why: &str) -> CommandError {
        let marker = self.folder.join(&self.marker);
        CommandError::refused(format!("{}: it does not say its {what}: {why}", marker.display()))
            .hint(format!("gatewright import {} --check says what is wrong with it", self.folder.display()))
    }
}

/// What is in the JSON, YAML, JSON Lines and Markdown files, by name.
fn content(folder: &Path, files: &[String]) -> Value {
    let read = |name: &String| {
        let ending = Path::new(name).extension()?.to_str()?;
        if !["json", "yaml", "yml", "jsonl", "md"].contains(&ending) {
            return None;
        }
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        let value = match ending {
            "md" => report_data(&Report::parse(text.as_bytes())),
            "jsonl" => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                Value::Array(lines.filter_map(|line| parse_yaml_value(line).ok()).collect())
            }
            _ => parse_yaml_value(&text).ok()?,
        };
        Some((name.clone(), value))
    };
    Value::Object(files.iter().filter_map(read).collect())
}

/// The text of Markdown files, by name.
fn texts(folder: &Path, files: &[String]) -> Value {
    let markdown = files.iter().filter(|name| Path::new(name).extension().is_some_and(|end| end == "md"));
    let read =
        |name: &String| Some((name.clone(), Value::String(std::fs::read_to_string(folder.join(name)).ok()?)));
    Value::Object(markdown.filter_map(read).collect())
}

/// In what its files are not what they have to be.
pub fn broken(found: &Found) -> Vec<Problem> {
    let mut all = problems(found, &found.marker, &found.import.contract);
    for (glob, contract) in &found.import.files {
        let globs = Globs::new(&[glob], Bare::InRoot);
        let meant = found.files.iter().filter(|file| **file != found.marker && globs.contains(file));
        all.extend(meant.flat_map(|file| problems(found, file, contract)));
    }
    let free = |file: &&String| **file != found.marker && found.import.contract_of(file).is_none();
    all.extend(found.files.iter().filter(free).flat_map(|file| no_data(found, file)));
    all
}

/// A file of which nobody says what it must be like is at least what its name says.
fn no_data(found: &Found, file: &str) -> Vec<Problem> {
    let path = found.folder.join(file);
    let ending = Path::new(file).extension().and_then(|ending| ending.to_str());
    let kind = match ending {
        Some("json" | "jsonl") => "json",
        Some("yaml" | "yml") => "yaml",
        _ => return Vec::new(),
    };
    let (Ok(contract), Ok(bytes)) = (Contract::from_value(&json!({kind: {}})), std::fs::read(&path)) else {
        return Vec::new();
    };
    let problem = |violation: Violation| Problem { file: path.clone(), violation };
    if ending != Some("jsonl") {
        return contract::check(&contract, file, &bytes).err().into_iter().flatten().map(problem).collect();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let wrong = lines.filter_map(|(index, line)| {
        let mut first = contract::check(&contract, file, line.as_bytes()).err()?.into_iter().next()?;
        first.place = format!("{file}, line {}", index + 1);
        Some(problem(first))
    });
    wrong.collect()
}

/// Everything that is wrong with the folder, and how far it has come.
pub fn inspect(found: &Found, frozen: &Frozen) -> Result<Inspected, CommandError> {
    let mut inspected = Inspected { problems: broken(found), ..Inspected::default() };
    if found.data.is_null() {
        return Err(found.unreadable("state", "it cannot be read"));
    }
    let templates = Templates::new();
    let document = found.document();
    let request = templates.render("request", &found.import.request, &document);
    inspected.request =
        request.map_err(|problem| found.unreadable("request", &problem.message))?.trim().to_owned();
    if let Some(over) = &found.import.over {
        let over = templates.holds("over", over, &document);
        inspected.over = over.map_err(|problem| found.unreadable("end", &problem.message))?;
    }
    inspected.rounds = counts(&found.import.rounds, &templates, &document);
    let restarts = counts(&found.import.restarts, &templates, &document);
    inspected.restarts =
        restarts.into_iter().map(|(stage, count)| (StageId::new(stage.as_str()), count)).collect();
    inspected.kept = filled(&found.import.keep, &templates, &document).filter(|kept| !kept.is_null());
    let numbered =
        found.import.numbered.as_ref().map(|source| templates.evaluate("numbered", source, &document));
    let numbered = numbered.and_then(Result::ok).and_then(|value| u32::try_from(value.as_u64()?).ok());
    inspected.numbered = numbered.unwrap_or(0);
    stock::take(found, frozen, &mut inspected)?;
    Ok(inspected)
}

/// What the folder says of how often something happened, by step; a mapping inside is of the steps below. What it does not
/// say is never.
pub fn counts(said: &Value, templates: &Templates, document: &Value) -> BTreeMap<StepId, u32> {
    let steps = match said {
        Value::Array(parts) => {
            return parts.iter().flat_map(|part| counts(part, templates, document)).collect();
        }
        Value::Object(steps) => steps,
        _ => return BTreeMap::new(),
    };
    let whole = steps.keys().any(|key| key.starts_with('$'));
    let said: Vec<(String, Value)> = if whole {
        let made = filled(said, templates, document);
        made.and_then(|made| made.as_object().cloned()).into_iter().flatten().collect()
    } else {
        // Step by step: one that is not known takes nothing from the others.
        let one =
            |(step, source): (&String, &Value)| Some((step.clone(), filled(source, templates, document)?));
        steps.iter().filter_map(one).collect()
    };
    let below = |(step, value): &(String, Value)| match value {
        Value::Object(inside) => {
            inside.iter().map(|(name, value)| (format!("{step}/{name}"), value.clone())).collect()
        }
        value => vec![(step.clone(), value.clone())],
    };
    let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
    said.iter()
        .flat_map(below)
        .filter_map(|(step, value)| Some((StepId::new(step), count(&value)?)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

pub fn problems(found: &Found, file: &str, contract: &Contract) -> Vec<Problem> {
    let path = found.folder.join(file);
    let checked = match (found.supplied.get(file), std::fs::read(&path)) {
        (Some(text), _) => contract::check(contract, file, text.as_bytes()),
        (None, Ok(bytes)) => contract::check(contract, file, &bytes),
        (None, Err(_)) => Err(vec![contract::missing(file)]),
    };
    let violations = checked.err().unwrap_or_default();
    violations.into_iter().map(|violation| Problem { file: path.clone(), violation }).collect()
}
