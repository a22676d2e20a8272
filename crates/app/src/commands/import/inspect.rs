//! What is in a folder, held against what its workflow says of it. Reads, and changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use gatewright_core::{
    ids::{StageId, StepId},
    plan::{Hardness, Kind, Step},
};
use gatewright_host::{artifact_data::report_data, given};
use gatewright_workflow::{
    contract::{self, Contract, Level, Violation},
    frozen::{Frozen, Import, Write},
    globs::{Bare, Globs},
    projection::filled,
    report::Report,
    template::{Templates, filters::slug},
    yaml::parse_yaml_value,
};
use serde_json::{Value, json};

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
    files: Vec<String>,
    content: Value,
    plan: Value,
    import: Import,
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
    /// Reviews that were held, by step.
    pub rounds: BTreeMap<StepId, u32>,
    /// How often stages were started again.
    pub restarts: BTreeMap<StageId, u32>,
    /// The first step that is to be done.
    pub next: Option<StepId>,
}

/// One way in which the folder is not what it should be.
pub struct Problem {
    pub file: PathBuf,
    violation: Violation,
}

impl Problem {
    /// Where in the file; empty for the file as a whole.
    fn place(&self) -> &str {
        self.violation.place.split_once(", ").map_or("", |(_, place)| place)
    }

    fn remedy(&self) -> String {
        let expected = &self.violation.expected;
        match self.violation.level {
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
            files,
            plan: json!({"steps": steps, "stages": stages}),
            import: import.clone(),
            folder,
        };
        found.supply();
        Ok(found)
    }

    /// Makes the files that such folders do not have.
    fn supply(&mut self) {
        let (templates, document) = (Templates::new(), self.document());
        for (name, skeleton) in &self.import.supply {
            let made = filled(skeleton, &templates, &document).filter(|_| !self.files.contains(name));
            self.supplied.extend(made.map(|value| (name.clone(), format!("{value:#}\n"))));
        }
    }

    fn has(&self, name: &String) -> bool {
        self.files.contains(name) || self.supplied.contains_key(name)
    }

    /// What templates and expressions of an import see.
    pub fn document(&self) -> Value {
        let folder = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({
            "folder": folder, "data": self.data, "files": self.files, "content": self.content,
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

    fn unreadable(&self, what: &str, why: &str) -> CommandError {
        let marker = self.folder.join(&self.marker);
        CommandError::refused(format!("{}: it does not say its {what}: {why}", marker.display()))
            .hint(format!("gatewright import {} --check says what is wrong with it", self.folder.display()))
    }
}

/// What is in the JSON, YAML and Markdown files, by name.
fn content(folder: &Path, files: &[String]) -> Value {
    let read = |name: &String| {
        let ending = Path::new(name).extension()?.to_str()?;
        if !["json", "yaml", "yml", "md"].contains(&ending) {
            return None;
        }
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        let value = if ending == "md" {
            report_data(&Report::parse(text.as_bytes()))
        } else {
            parse_yaml_value(&text).ok()?
        };
        Some((name.clone(), value))
    };
    Value::Object(files.iter().filter_map(read).collect())
}

/// Everything that is wrong with the folder, and how far it has come.
pub fn inspect(found: &Found, frozen: &Frozen) -> Result<Inspected, CommandError> {
    let mut inspected = Inspected::default();
    let mut look = |file: &str, contract: &Contract| {
        inspected.problems.extend(problems(found, file, contract));
    };
    look(&found.marker, &found.import.contract);
    for (glob, contract) in &found.import.files {
        let globs = Globs::new(&[glob], Bare::InRoot);
        let meant = found.files.iter().filter(|file| **file != found.marker && globs.contains(file));
        meant.for_each(|file| look(file, contract));
    }
    if found.data.is_null() {
        return Ok(inspected);
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
    let claimed = Claimed {
        done: claimed(found, frozen, &templates, &document)?,
        left_out: left_out(found, &templates, &document)?,
    };
    take_stock(found, frozen, &claimed, &mut inspected);
    items_done(found, frozen, &templates, &document, &mut inspected)?;
    let said = |source: &Value| counts(source, &templates, &document);
    inspected.rounds =
        said(&found.import.rounds).into_iter().map(|(step, count)| (StepId::new(&step), count)).collect();
    inspected.restarts = said(&found.import.restarts)
        .into_iter()
        .map(|(stage, count)| (StageId::new(&stage), count))
        .collect();
    Ok(inspected)
}

/// Numbers that the folder says of steps or stages. What it does not say is none.
fn counts(source: &Value, templates: &Templates, document: &Value) -> BTreeMap<String, u32> {
    let Value::Object(steps) = source else { return BTreeMap::new() };
    let whole = steps.keys().any(|key| key.starts_with('$'));
    let said: Vec<(String, Value)> = if whole {
        let made = filled(source, templates, document);
        made.and_then(|made| made.as_object().cloned()).into_iter().flatten().collect()
    } else {
        // Step by step: one that is not known takes nothing from the others.
        let one =
            |(step, source): (&String, &Value)| Some((step.clone(), filled(source, templates, document)?));
        steps.iter().filter_map(one).collect()
    };
    let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
    said.iter()
        .filter_map(|(name, value)| Some((name.clone(), count(value)?)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// What the folder says of its steps.
struct Claimed {
    done: Vec<StepId>,
    /// Somebody went past these, and said so.
    left_out: BTreeSet<String>,
}

/// The words of a list that an expression or a skeleton makes.
fn words(
    found: &Found,
    what: &str,
    source: &Value,
    templates: &Templates,
    document: &Value,
) -> Result<BTreeSet<String>, CommandError> {
    let value = match source {
        Value::Null => Value::Null,
        Value::String(expression) => templates
            .evaluate(what, expression, document)
            .map_err(|problem| found.unreadable(what, &problem.message))?,
        skeleton => filled(skeleton, templates, document)
            .ok_or_else(|| found.unreadable(what, "it is not written as it has to be"))?,
    };
    Ok(value.as_array().into_iter().flatten().filter_map(|word| Some(word.as_str()?.to_owned())).collect())
}

fn left_out(
    found: &Found,
    templates: &Templates,
    document: &Value,
) -> Result<BTreeSet<String>, CommandError> {
    words(found, "left-out steps", &found.import.skipped, templates, document)
}

/// Single items, `STEP/KEY`, count where the run goes on with that very fan-out: everything before it was taken over,
/// so the list is the one that they were done for.
fn items_done(
    found: &Found,
    frozen: &Frozen,
    templates: &Templates,
    document: &Value,
    inspected: &mut Inspected,
) -> Result<(), CommandError> {
    let Some(next) = inspected.next.clone() else { return Ok(()) };
    let inside = format!("{next}/");
    let each = format!("{next}/*/");
    let graph = frozen.plan.graph(&frozen.plan.profile);
    let substeps: Vec<&str> = graph.steps.keys().filter_map(|id| id.as_str().strip_prefix(&each)).collect();
    for word in words(found, "progress", &found.import.done, templates, document)? {
        if !word.starts_with(&inside) {
            continue;
        }
        for substep in &substeps {
            let id = StepId::new(format!("{word}/{substep}"));
            inspected.done.insert(id, format!("done before, in `{}`", name_of(found)));
        }
    }
    Ok(())
}

fn problems(found: &Found, file: &str, contract: &Contract) -> Vec<Problem> {
    let path = found.folder.join(file);
    let checked = match (found.supplied.get(file), std::fs::read(&path)) {
        (Some(text), _) => contract::check(contract, file, text.as_bytes()),
        (None, Ok(bytes)) => contract::check(contract, file, &bytes),
        (None, Err(_)) => Err(vec![contract::missing(file)]),
    };
    let violations = checked.err().unwrap_or_default();
    violations.into_iter().map(|violation| Problem { file: path.clone(), violation }).collect()
}

/// The steps that the folder says are done, in the order of the plan.
fn claimed(
    found: &Found,
    frozen: &Frozen,
    templates: &Templates,
    document: &Value,
) -> Result<Vec<StepId>, CommandError> {
    let graph = frozen.plan.graph(&frozen.plan.profile);
    let top = || {
        let stages = graph.stages.iter().filter(|stage| stage.disabled.is_none());
        stages
            .flat_map(|stage| &stage.steps)
            .filter(|id| graph.steps.get(*id).is_some_and(|step| !step.dormant))
    };
    if found.import.done.is_null() {
        // Nobody keeps a list: it has come as far as its last file.
        let there = |id: &&StepId| {
            let outputs = outputs(found, frozen, id);
            // A judgement alone proves nothing: what comes after it was not made yet.
            let by_agent = graph.steps.get(*id).is_some_and(|step| matches!(step.kind, Kind::Agent { .. }));
            by_agent && !outputs.is_empty() && outputs.iter().all(|(name, _)| found.has(name))
        };
        let last = top().collect::<Vec<_>>().iter().rposition(there).map_or(0, |place| place + 1);
        return Ok(top().take(last).cloned().collect());
    }
    let words = words(found, "progress", &found.import.done, templates, document)?;
    let named = |id: &&StepId| {
        let stage = graph.steps.get(*id).map(|step| step.stage.to_string()).unwrap_or_default();
        words.contains(id.as_str()) || words.contains(&stage)
    };
    Ok(top().filter(named).cloned().collect())
}

/// What a step must have written, under the names that its files have.
fn outputs<'f>(found: &'f Found, frozen: &'f Frozen, step: &StepId) -> Vec<(String, &'f Contract)> {
    let texts = frozen.steps.get(&frozen.plan.profile).and_then(|texts| texts.get(step));
    let name = |write: &Write| {
        let template = write.first.as_ref().unwrap_or(&write.name);
        let request = found.import.request.clone();
        let request = Templates::new().render("request", &request, &found.document()).unwrap_or_default();
        let known =
            json!({"slug": slug(&request), "round": 1, "request": request, "settings": frozen.settings});
        Templates::new().render("writes", template, &known).ok()
    };
    let writes = texts.map(|text| text.writes.as_slice()).unwrap_or_default();
    let required = writes.iter().filter(|write| !write.optional);
    required
        .filter_map(|write| {
            let name = name(write)?;
            let usual = write.first_contract.as_ref().unwrap_or(&write.contract);
            let contract = found.import.accept.get(&name).unwrap_or(usual);
            Some((name, contract))
        })
        .collect()
}

/// Goes through what is claimed until something is missing or broken: everything from there on is run.
fn take_stock(found: &Found, frozen: &Frozen, claimed: &Claimed, inspected: &mut Inspected) {
    let graph = frozen.plan.graph(&frozen.plan.profile);
    let stages = graph.stages.iter().filter(|stage| stage.disabled.is_none());
    let mut broken = false;
    for id in stages.flat_map(|stage| &stage.steps) {
        let Some(step) = graph.steps.get(id).filter(|step| !step.dormant) else { continue };
        if !broken && claimed.left_out.contains(id.as_str()) {
            inspected.done.insert(id.clone(), format!("left out before, in `{}`", name_of(found)));
            continue;
        }
        if broken || !claimed.done.contains(id) {
            inspected.next.get_or_insert_with(|| id.clone());
            continue;
        }
        if matches!(step.kind, Kind::Check { .. }) && !found.import.evidence.contains(&id.to_string()) {
            inspected.next.get_or_insert_with(|| id.clone());
            inspected.run_again.insert(id.clone());
            continue;
        }
        let outputs = outputs(found, frozen, id);
        let none = outputs.iter().all(|(name, _)| !found.has(name));
        if !outputs.is_empty() && none && is_conditional(step) {
            inspected.done.insert(id.clone(), format!("`{}` has none", name_of(found)));
            continue;
        }
        let wrong: Vec<Problem> =
            outputs.iter().flat_map(|(name, contract)| problems(found, name, contract)).collect();
        if !wrong.is_empty() {
            let known: Vec<String> = inspected.problems.iter().map(ToString::to_string).collect();
            inspected
                .problems
                .extend(wrong.into_iter().filter(|problem| !known.contains(&problem.to_string())));
            inspected.next.get_or_insert_with(|| id.clone());
            broken = true;
        } else if outputs.is_empty() {
            // What people decided is theirs to say again: nobody here has heard them.
            if matches!(step.kind, Kind::Decision(_)) {
                inspected.next.get_or_insert_with(|| id.clone());
            } else {
                inspected.done.insert(id.clone(), format!("done before, in `{}`", name_of(found)));
            }
        } else {
            inspected.given.insert(id.clone());
        }
    }
}

fn is_conditional(step: &Step) -> bool {
    step.gates.iter().any(|gate| gate.hardness == Hardness::Skip)
}

fn name_of(found: &Found) -> String {
    found.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
