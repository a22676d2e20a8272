//! JSON and YAML artifacts against a schema: the one place that knows the JSON Schema library.
//!
//! References outside the schema are never fetched, from the network or from disk.

use serde_json::Value;

use super::{Level, Violation};
use crate::{
    json::parse_json_value,
    reply::object::{clipped, kind},
    yaml::parse_yaml_value,
};

pub(super) fn check_json(schema: &Value, bytes: &[u8]) -> Vec<Violation> {
    read(bytes, schema, |text| {
        parse_json_value(text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            unreadable(place, "valid JSON", error.to_string())
        })
    })
}

pub(super) fn check_yaml(schema: &Value, bytes: &[u8]) -> Vec<Violation> {
    read(bytes, schema, |text| {
        parse_yaml_value(text).map_err(|problem| {
            let place = format!("line {}, column {}", problem.line, problem.column);
            unreadable(place, "valid YAML", problem.message)
        })
    })
}

fn read(
    bytes: &[u8],
    schema: &Value,
    parse: impl FnOnce(&str) -> Result<Value, Violation>,
) -> Vec<Violation> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let place = format!("byte {}", error.valid_up_to());
            return vec![unreadable(place, "text in UTF-8", "other bytes".to_owned())];
        }
    };
    match parse(text) {
        Ok(value) => schema_violations(schema, &value),
        Err(violation) => vec![violation],
    }
}

fn unreadable(place: String, expected: &str, found: String) -> Violation {
    Violation { level: Level::Content, place, expected: expected.to_owned(), found }
}

/// Compiles a schema; the message says why it cannot be used.
pub(super) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| clipped_long(&error.to_string()))
}

fn schema_violations(schema: &Value, value: &Value) -> Vec<Violation> {
    let validator = match compile(schema) {
        Ok(validator) => validator,
        Err(message) => {
            return vec![unreadable("the contract's schema".to_owned(), "a usable JSON Schema", message)];
        }
    };
    let violations = validator.iter_errors(value).map(|error| {
        let path = error.instance_path().to_string();
        let level = if error.kind().keyword() == "required" { Level::Missing } else { Level::Content };
        Violation {
            level,
            place: if path.is_empty() { "/".to_owned() } else { path },
            expected: expected(schema, &error),
            found: found(&error),
        }
    });
    violations.collect()
}

/// The rule in words where it is a plain one, otherwise where the schema has it.
fn expected(schema: &Value, error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.schema_path().to_string();
    let shown =
        |value: &Value| value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`"));
    let list = |values: &[Value]| values.iter().map(shown).collect::<Vec<_>>().join(", ");
    let words = match (error.kind().keyword(), schema.pointer(&path)) {
        // One error for each property that is missing; the library's sentence begins with its name.
        ("required", _) => error.to_string().split('"').nth(1).map(|name| format!("the property `{name}`")),
        ("enum", Some(Value::Array(values))) => Some(format!("one of {}", list(values))),
        ("const", Some(value)) => Some(shown(value)),
        ("type", Some(Value::Array(kinds))) => Some(format!("a value of type {}", list(kinds))),
        ("type", Some(kind)) => Some(format!("a value of type {}", shown(kind))),
        ("pattern", Some(pattern)) => Some(format!("a text that fits {}", shown(pattern))),
        ("minItems" | "minLength" | "minimum", Some(least)) => Some(format!("at least {}", shown(least))),
        ("maxItems" | "maxLength" | "maximum", Some(most)) => Some(format!("at most {}", shown(most))),
        _ => None,
    };
    words.map_or_else(
        || format!("what its schema says at {path}"),
        |words| format!("{} (its schema: {path})", clipped_long(&words)),
    )
}

/// The library's sentence names the value and the rule; long values are clipped.
fn found(error: &jsonschema::ValidationError<'_>) -> String {
    let instance = kind(error.instance());
    format!("{instance}: {}", clipped_long(&error.masked_with("it").to_string()))
}

fn clipped_long(text: &str) -> String {
    if text.chars().count() <= 300 { text.to_owned() } else { clipped(text) }
}
