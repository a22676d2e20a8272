//! Files computed from a run's state: the state document in, paths and bytes out.
//!
//! A projection never reads a file and never edits one: the same context gives the same bytes, so a
//! file that differs was edited by hand. Everything is put through a serializer, read back and
//! checked before a byte leaves this module (S1-20, S1-29, S1-70).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    contract::{self, Contract, Shape, Violation},
    frozen::{Projection, ProjectionFormat},
    json::parse_json_value,
    template::{Scope, TemplateProblem, Templates},
    yaml::parse_yaml_value,
};

pub mod skeleton;

use skeleton::{Place, SkeletonProblem};

/// Bytes of the largest file; readers of ours refuse more.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the longest path.
const PATH_BYTES_MAX: usize = 1024;
/// Files one projection may make.
const FILES_MAX: usize = 10_000;

/// What a file must be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedFile {
    /// Relative to the run directory, with `/`.
    pub path: String,
    /// `None`: the file must not exist.
    pub bytes: Option<Vec<u8>>,
}

/// Why a projection gives no file. `projection` is its path as the definition has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionProblem {
    #[error("{projection}: {source}")]
    Template { projection: String, source: TemplateProblem },
    #[error("{projection}: content{source}")]
    Skeleton { projection: String, source: Box<SkeletonProblem> },
    #[error("{projection}: {reason}")]
    Content { projection: String, reason: String },
    #[error("{projection}: the path `{path}` {reason}")]
    Path { projection: String, path: String, reason: &'static str },
    #[error("{projection}: {files} files, at most {FILES_MAX} are written")]
    Files { projection: String, files: usize },
    #[error("{path}: {bytes} bytes, at most {FILE_BYTES_MAX} are written")]
    Size { path: String, bytes: usize },
    #[error("{path}: what was written does not read back: {reason}")]
    ReadBack { path: String, reason: String },
    /// The places name the path and a JSON pointer.
    #[error("{path}: {}", listed(violations))]
    Schema { path: String, violations: Vec<Violation> },
}

/// The files of one projection for one state.
///
/// With `each`, files of elements that are gone are not mentioned: the caller knows what it wrote.
pub fn project(
    projection: &Projection,
    context: &Value,
    templates: &Templates,
) -> Result<Vec<ProjectedFile>, ProjectionProblem> {
    let place = Place::parse(&projection.content).map_err(|mut problems| {
        let source = Box::new(problems.swap_remove(0));
        ProjectionProblem::Skeleton { projection: projection.path.clone(), source }
    })?;
    let maker = Maker { projection, templates, place };
    let scope = Scope::new(context);
    let Some(each) = &projection.each else { return Ok(vec![maker.file(&scope)?]) };

    let items = maker.template(templates.list_in("each", each, &scope))?;
    if items.len() > FILES_MAX {
        return Err(ProjectionProblem::Files { projection: projection.path.clone(), files: items.len() });
    }
    let mut seen = BTreeSet::new();
    let mut files = Vec::with_capacity(items.len());
    for item in items {
        let file = maker.file(&scope.bind("item", item))?;
        if !seen.insert(file.path.clone()) {
            return Err(maker.path(file.path, "is that of two elements"));
        }
        files.push(file);
    }
    Ok(files)
}

/// A skeleton filled outside a projection; nothing if something that it speaks of is not there.
pub fn filled(content: &Value, templates: &Templates, document: &Value) -> Option<Value> {
    skeleton::Place::parse(content).ok()?.fill(templates, &Scope::new(document)).ok().flatten()
}

/// Everything wrong with a projection that can be said without a run.
pub fn check(projection: &Projection, templates: &Templates) -> Vec<ProjectionProblem> {
    let template = |source| ProjectionProblem::Template { projection: projection.path.clone(), source };
    let skeleton = |source| ProjectionProblem::Skeleton {
        projection: projection.path.clone(),
        source: Box::new(source),
    };
    let mut problems: Vec<ProjectionProblem> =
        templates.check("path", &projection.path).into_iter().map(template).collect();
    for (name, expression) in [("each", &projection.each), ("when", &projection.when)] {
        let found = expression.iter().flat_map(|expression| templates.check_expression(name, expression));
        problems.extend(found.map(template));
    }
    match (&projection.format, &projection.content) {
        (ProjectionFormat::Markdown | ProjectionFormat::Text, Value::String(text)) => {
            problems.extend(templates.check("content", text).into_iter().map(template));
        }
        (ProjectionFormat::Markdown | ProjectionFormat::Text, _) => {
            problems.push(not_a_text(projection));
        }
        (ProjectionFormat::Json | ProjectionFormat::JsonLines | ProjectionFormat::Yaml, content) => {
            let found =
                Place::parse(content).map_or_else(|problems| problems, |place| place.check(templates));
            problems.extend(found.into_iter().map(skeleton));
        }
    }
    problems.extend(schema_problem(projection));
    problems
}

fn schema_problem(projection: &Projection) -> Option<ProjectionProblem> {
    let schema = projection.schema.as_ref()?;
    let reason = match projection.format {
        ProjectionFormat::Markdown | ProjectionFormat::Text => "a schema is for JSON and YAML".to_owned(),
        ProjectionFormat::Json | ProjectionFormat::JsonLines | ProjectionFormat::Yaml => {
            let problems = Contract::from_value(&json!({ "json": schema })).err()?;
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
    };
    Some(ProjectionProblem::Content { projection: projection.path.clone(), reason })
}

struct Maker<'p> {
    projection: &'p Projection,
    templates: &'p Templates,
    place: Place,
}

impl Maker<'_> {
    fn file(&self, scope: &Scope) -> Result<ProjectedFile, ProjectionProblem> {
        let path = self.template(self.templates.render_in("path", &self.projection.path, scope))?;
        if let Some(reason) = path_problem(&path) {
            return Err(self.path(path, reason));
        }
        if let Some(when) = &self.projection.when
            && !self.template(self.templates.holds_in("when", when, scope))?
        {
            return Ok(ProjectedFile { path, bytes: None });
        }
        let bytes = match self.projection.format {
            ProjectionFormat::Markdown | ProjectionFormat::Text => self.text(scope)?.into_bytes(),
            ProjectionFormat::Json => self.json(&path, &self.value(scope)?)?,
            ProjectionFormat::JsonLines => self.json_lines(&path, &self.value(scope)?)?,
            ProjectionFormat::Yaml => self.yaml(&path, &self.value(scope)?)?,
        };
        Ok(ProjectedFile { path, bytes: Some(bytes) })
    }

    fn text(&self, scope: &Scope) -> Result<String, ProjectionProblem> {
        let Value::String(source) = &self.projection.content else {
            return Err(not_a_text(self.projection));
        };
        let mut text = self.template(self.templates.render_in("content", source, scope))?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }

    fn value(&self, scope: &Scope) -> Result<Value, ProjectionProblem> {
        let value = self.place.fill(self.templates, scope).map_err(|source| ProjectionProblem::Skeleton {
            projection: self.projection.path.clone(),
            source: Box::new(source),
        })?;
        value.ok_or_else(|| self.content("its content is left out; `when` decides whether there is a file"))
    }

    fn json(&self, path: &str, value: &Value) -> Result<Vec<u8>, ProjectionProblem> {
        let mut text = serde_json::to_string_pretty(value).map_err(|error| read_back(path, error))?;
        text.push('\n');
        read_back_as(path, value, parse_json_value(&text))?;
        self.accepted(path, text.into_bytes(), Shape::Json)
    }

    fn json_lines(&self, path: &str, value: &Value) -> Result<Vec<u8>, ProjectionProblem> {
        let Value::Array(elements) = value else {
            return Err(self.content("JSON lines are made from a list"));
        };
        let mut bytes = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let line = serde_json::to_string(element).map_err(|error| read_back(path, error))?;
            read_back_as(path, element, parse_json_value(&line))?;
            let name = format!("{path}, line {}", index + 1);
            bytes.extend(self.accepted(&name, line.into_bytes(), Shape::Json)?);
            bytes.push(b'\n');
        }
        sized(path, bytes)
    }

    fn yaml(&self, path: &str, value: &Value) -> Result<Vec<u8>, ProjectionProblem> {
        // The library's defaults quote what a YAML 1.1 reader would take for something else
        // (`yes`, `12:30`, dates), so that other people's tools read the same strings.
        let text = serde_saphyr::to_string(value).map_err(|error| read_back(path, error))?;
        read_back_as(path, value, parse_yaml_value(&text))?;
        self.accepted(path, text.into_bytes(), Shape::Yaml)
    }

    /// The bytes, if they are not too many and the schema accepts what they say.
    fn accepted(
        &self,
        path: &str,
        bytes: Vec<u8>,
        shape: fn(Value) -> Shape,
    ) -> Result<Vec<u8>, ProjectionProblem> {
        let bytes = sized(path, bytes)?;
        if let Some(schema) = &self.projection.schema {
            let contract = Contract { shape: shape(schema.clone()), bytes_max: FILE_BYTES_MAX as u64 };
            contract::check(&contract, path, &bytes)
                .map_err(|violations| ProjectionProblem::Schema { path: path.to_owned(), violations })?;
        }
        Ok(bytes)
    }

    fn template<T>(&self, result: Result<T, TemplateProblem>) -> Result<T, ProjectionProblem> {
        result.map_err(|source| ProjectionProblem::Template {
            projection: self.projection.path.clone(),
            source,
        })
    }

    fn path(&self, path: String, reason: &'static str) -> ProjectionProblem {
        ProjectionProblem::Path { projection: self.projection.path.clone(), path, reason }
    }

    fn content(&self, reason: &str) -> ProjectionProblem {
        ProjectionProblem::Content { projection: self.projection.path.clone(), reason: reason.to_owned() }
    }
}

fn not_a_text(projection: &Projection) -> ProjectionProblem {
    let reason = "Markdown and text are made from a template, not from a skeleton".to_owned();
    ProjectionProblem::Content { projection: projection.path.clone(), reason }
}

fn sized(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>, ProjectionProblem> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ProjectionProblem::Size { path: path.to_owned(), bytes: bytes.len() });
    }
    Ok(bytes)
}

fn read_back_as<E: std::fmt::Display>(
    path: &str,
    written: &Value,
    read: Result<Value, E>,
) -> Result<(), ProjectionProblem> {
    let read = read.map_err(|error| read_back(path, error))?;
    if read == *written { Ok(()) } else { Err(read_back(path, "another value came back")) }
}

fn read_back(path: &str, reason: impl std::fmt::Display) -> ProjectionProblem {
    ProjectionProblem::ReadBack { path: path.to_owned(), reason: reason.to_string() }
}

/// Paths stay inside the run directory and mean the same file on every system.
fn path_problem(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.len() > PATH_BYTES_MAX {
        return Some("is too long");
    }
    if path.chars().any(|character| character.is_control() || character == '\\') {
        return Some("contains a control character or a backslash");
    }
    path.split('/').find_map(|segment| match segment {
        "" => Some("has an empty segment"),
        "." | ".." => Some("has a segment that is only dots"),
        segment if segment.len() > 255 => Some("has a segment that is too long"),
        _ => None,
    })
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
#[path = "projection/tests.rs"]
mod tests;
