//! The template and expression language: the one place that owns minijinja.
//!
//! A text is rendered, an expression evaluated, over a JSON document and nothing else: no files, no
//! clock, no environment, no includes. Equal input gives equal output, within fixed limits.

use std::{collections::BTreeSet, io};

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, syntax::SyntaxConfig};
use serde_json::Value as Json;

use crate::diagnostic::suggestion;

pub mod filters;
mod tree;
mod value;

pub use tree::{FreeTextUse, UsedPath};
pub use value::{Item, Scope};

/// Instructions one text or expression may take.
pub const FUEL_MAX: u64 = 200_000;
/// Bytes one text may become.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// One expression: whoever reads it goes as deep as it has parts.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// Nested blocks and recursive loops.
const DEPTH_MAX: usize = 100;

/// What is wrong with a template or an expression, or with the data it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateProblem {
    /// What the caller called the text: a file, or a place in a definition.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters; unknown for some failures while rendering.
    pub column: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl std::error::Error for TemplateProblem {}

impl std::fmt::Display for TemplateProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:", self.name, self.line)?;
        if let Some(column) = self.column {
            write!(f, "{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// The language with its filters and limits; make one and keep it.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    syntax: SyntaxConfig,
}

impl Default for Templates {
    fn default() -> Self {
        Self::new()
    }
}

impl Templates {
    pub fn new() -> Self {
        // Empty, not `new()`: our language is the list in `filters`, not what a library update adds.
        let mut environment = Environment::empty();
        filters::add_filters(&mut environment);
        filters::add_tests(&mut environment);
        filters::add_functions(&mut environment);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_recursion_limit(DEPTH_MAX);
        environment.set_fuel(Some(FUEL_MAX));
        // Errors then carry their range and the name that was undefined.
        environment.set_debug(true);
        let syntax = text_syntax();
        environment.set_syntax(syntax.clone());
        Self { environment, syntax }
    }

    /// Renders a text. One without `{{`, `{%` and `{#` renders to itself.
    pub fn render(&self, name: &str, source: &str, context: &Json) -> Result<String, TemplateProblem> {
        self.render_in(name, source, &Scope::new(context))
    }

    /// The value of an expression; undefined anywhere in it is a problem, never `null`.
    pub fn evaluate(&self, name: &str, expression: &str, context: &Json) -> Result<Json, TemplateProblem> {
        self.evaluate_in(name, expression, &Scope::new(context))
    }

    /// Whether a condition holds. Only `true` and `false` are answers: a gate that asks
    /// `steps.review.outcome` instead of comparing it would otherwise always be open.
    pub fn holds(&self, name: &str, expression: &str, context: &Json) -> Result<bool, TemplateProblem> {
        self.holds_in(name, expression, &Scope::new(context))
    }

    /// Syntax errors and unknown filters, tests, functions and methods of a text.
    pub fn check(&self, name: &str, source: &str) -> Vec<TemplateProblem> {
        match tree::Tree::of_text(source, self.syntax.clone()) {
            Ok(tree) => tree.unknown_names(name),
            Err(error) => vec![problem(name, source, &error, None)],
        }
    }

    /// The same for an expression.
    pub fn check_expression(&self, name: &str, expression: &str) -> Vec<TemplateProblem> {
        match tree::Tree::of_expression(expression) {
            Ok(tree) => tree.unknown_names(name),
            Err(error) => vec![problem(name, expression, &error, None)],
        }
    }

    /// The top-level names an expression takes from its context.
    pub fn free_variables(&self, expression: &str) -> Result<BTreeSet<String>, TemplateProblem> {
        Ok(first_names(self.used_paths(expression)?))
    }

    /// The top-level names a text takes from its context.
    pub fn free_variables_of_text(&self, source: &str) -> Result<BTreeSet<String>, TemplateProblem> {
        Ok(first_names(self.used_paths_of_text(source)?))
    }

    /// Every `name.field["field"]` an expression reads from its context, with its place.
    pub fn used_paths(&self, expression: &str) -> Result<Vec<UsedPath>, TemplateProblem> {
        let tree = tree::Tree::of_expression(expression);
        tree.map(|tree| tree.used_paths()).map_err(|error| problem("expression", expression, &error, None))
    }

    pub fn used_paths_of_text(&self, source: &str) -> Result<Vec<UsedPath>, TemplateProblem> {
        let tree = tree::Tree::of_text(source, self.syntax.clone());
        tree.map(|tree| tree.used_paths()).map_err(|error| problem("template", source, &error, None))
    }

    /// Where an expression compares one of `fields` with a literal text.
    pub fn free_text_uses(
        &self,
        name: &str,
        expression: &str,
        fields: &[&str],
    ) -> Result<Vec<FreeTextUse>, TemplateProblem> {
        let tree = tree::Tree::of_expression(expression);
        tree.map(|tree| tree.free_text_uses(fields)).map_err(|error| problem(name, expression, &error, None))
    }

    pub fn render_in(&self, name: &str, source: &str, scope: &Scope) -> Result<String, TemplateProblem> {
        let failed = |error: &Error| problem(name, source, error, Some(scope));
        is_short_text(source).map_err(|error| failed(&error))?;
        let environment: &Environment<'_> = &self.environment;
        let template = environment.template_from_named_str(name, source).map_err(|error| failed(&error))?;
        let mut output = Limited { bytes: Vec::new(), overflowed: false };
        let rendered = template.render_captured_to(scope.root(), &mut output).map(|_| ());
        if output.overflowed {
            let message = format!("the text grows beyond {OUTPUT_BYTES_MAX} bytes");
            return Err(TemplateProblem {
                name: name.to_owned(),
                line: 1,
                column: None,
                message,
                hint: None,
            });
        }
        rendered.map_err(|error| failed(&error))?;
        String::from_utf8(output.bytes)
            .map_err(|error| plain_problem(name, format!("the text is not UTF-8: {error}")))
    }

    pub fn evaluate_in(&self, name: &str, expression: &str, scope: &Scope) -> Result<Json, TemplateProblem> {
        let value = self.value_in(name, expression, scope)?;
        value::to_json(&value).map_err(|reason| plain_problem(name, reason.to_string()))
    }

    pub fn holds_in(&self, name: &str, expression: &str, scope: &Scope) -> Result<bool, TemplateProblem> {
        match self.evaluate_in(name, expression, scope)? {
            Json::Bool(holds) => Ok(holds),
            Json::Null | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
                let message = format!("`{}` is neither true nor false", expression.trim());
                let hint = "compare it (`… == …`) or ask `… is not none`".to_owned();
                Err(TemplateProblem { hint: Some(hint), ..plain_problem(name, message) })
            }
        }
    }

    /// The elements of a list expression, each ready to be bound in a scope.
    pub fn list_in(&self, name: &str, expression: &str, scope: &Scope) -> Result<Vec<Item>, TemplateProblem> {
        let value = self.value_in(name, expression, scope)?;
        value::items(&value).ok_or_else(|| {
            let message = format!("`{}` is a {}, not a list", expression.trim(), value.kind());
            let hint = (value.kind() == minijinja::value::ValueKind::Map)
                .then(|| "`… | items` lists the pairs of a map".to_owned());
            TemplateProblem { hint, ..plain_problem(name, message) }
        })
    }

    fn value_in(
        &self,
        name: &str,
        expression: &str,
        scope: &Scope,
    ) -> Result<minijinja::Value, TemplateProblem> {
        let failed = |error: &Error| problem(name, expression, error, Some(scope));
        is_short(expression).map_err(|error| failed(&error))?;
        let environment: &Environment<'_> = &self.environment;
        let compiled = environment.compile_expression(expression).map_err(|error| failed(&error))?;
        let value = compiled.eval(scope.root()).map_err(|error| failed(&error))?;
        if value.is_undefined() {
            return Err(undefined_result(name, expression, scope));
        }
        Ok(value)
    }
}

fn is_short(expression: &str) -> Result<(), Error> {
    if expression.len() <= EXPRESSION_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("an expression has more than {EXPRESSION_BYTES_MAX} bytes; give its parts names with `set`");
    Err(Error::new(ErrorKind::SyntaxError, message))
}

/// The same for every expression of a text.
fn is_short_text(source: &str) -> Result<(), Error> {
    let mut rest = source;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        let inside = &rest[at + 2..];
        let end = if rest[at..].starts_with("{{") { "}}" } else { "%}" };
        let length = inside.find(end).unwrap_or(inside.len());
        is_short(&inside[..length])?;
        rest = &inside[length..];
    }
    Ok(())
}

/// Block tags on lines of their own leave no empty lines; the last newline stays.
fn text_syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    // Only delimiters can be refused, and they are the defaults.
    builder.build().unwrap_or_default()
}

fn first_names(paths: Vec<UsedPath>) -> BTreeSet<String> {
    paths.into_iter().filter_map(|used| used.path.into_iter().next()).collect()
}

fn plain_problem(name: &str, message: String) -> TemplateProblem {
    TemplateProblem { name: name.to_owned(), line: 1, column: None, message, hint: None }
}

/// The expression as a whole has no value: a missing name, or an `if` without `else`.
fn undefined_result(name: &str, expression: &str, scope: &Scope) -> TemplateProblem {
    let trimmed = expression.trim();
    let offset = expression.len() - expression.trim_start().len();
    let (line, column) = place(expression, offset);
    let (message, hint) = match tree::plain_path(expression) {
        Some(path) => (format!("`{trimmed}` is not defined"), missing_hint(&path, scope)),
        None => {
            (format!("`{trimmed}` has no value"), Some("give it an `else`, or a `| default(…)`".to_owned()))
        }
    };
    TemplateProblem { name: name.to_owned(), line, column: Some(column), message, hint }
}

fn problem(name: &str, source: &str, error: &Error, scope: Option<&Scope>) -> TemplateProblem {
    let (line, column) = match error.range() {
        Some(range) => {
            let (line, column) = place(source, range.start);
            (line, Some(column))
        }
        None => (error.line().unwrap_or(1), None),
    };
    let missing = error.detail().and_then(undefined_path);
    let column = missing.and_then(|path| column_in_line(source, line, path)).or(column);
    let (message, hint) = explain(error, scope);
    TemplateProblem { name: name.to_owned(), line, column, message, hint }
}

/// A range begins in the middle of a path; the path as written is the better place.
fn column_in_line(source: &str, line: usize, path: &str) -> Option<usize> {
    let text = source.split('\n').nth(line.checked_sub(1)?)?;
    text.find(path).map(|at| text[..at].chars().count() + 1)
}

fn explain(error: &Error, scope: Option<&Scope>) -> (String, Option<String>) {
    let detail = error.detail().unwrap_or_default();
    if let Some(path) = undefined_path(detail) {
        let hint = tree::plain_path(path).zip(scope).and_then(|(path, scope)| missing_hint(&path, scope));
        return (format!("`{path}` is not defined"), hint);
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return (format!("it takes more than {FUEL_MAX} instructions"), None);
    }
    let mut message = match detail {
        "" => error.kind().to_string(),
        detail => format!("{}: {detail}", error.kind()),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    (message, unknown_hint(error.kind(), detail))
}

/// minijinja writes "… `steps.x` is undefined …" when it knows which name had no value.
fn undefined_path(detail: &str) -> Option<&str> {
    let (before, _) = detail.split_once("` is undefined")?;
    before.rsplit_once('`').map(|(_, path)| path)
}

fn unknown_hint(kind: ErrorKind, detail: &str) -> Option<String> {
    let (word, known) = match kind {
        ErrorKind::UnknownFilter => (detail.strip_prefix("filter ")?, filters::FILTERS),
        ErrorKind::UnknownTest => (detail.strip_prefix("test ")?, filters::TESTS),
        ErrorKind::UnknownFunction => (detail, filters::FUNCTIONS),
        _ => return None,
    };
    some_text(suggestion(word.strip_suffix(" is unknown")?, known.iter().copied()))
}

/// The nearest name at the level at which the path leaves the known ones.
fn missing_hint(path: &[String], scope: &Scope) -> Option<String> {
    let (missing, known) = scope.missing(path)?;
    some_text(suggestion(missing, known.iter().map(String::as_str)))
}

fn some_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Line and column, both from 1, of a byte offset.
fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset.min(source.len())).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Refuses to grow beyond the limit instead of filling the memory.
struct Limited {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl io::Write for Limited {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + buffer.len() > OUTPUT_BYTES_MAX {
            self.overflowed = true;
            return Err(io::Error::other("the text is too large"));
        }
        self.bytes.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "template/tests.rs"]
mod tests;
