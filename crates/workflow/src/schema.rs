//! JSON Schemas for editors, printed from the tables that the walker itself uses.
//!
//! They are looser than the walker where JSON Schema has no words for a rule (which keys a kind of
//! step knows); they never refuse what the walker accepts.

use std::collections::BTreeMap;

use gatewright_core::plan::limits::LIMIT_CEILING;
use serde_json::{Map, Value, json};

use crate::{
    definition::{
        keys::{CONFIG, WORKFLOW},
        shape::{Need, Shape, Table},
    },
    resolve::from_setting,
};

/// The schema of a workflow file; `docs/workflow.schema.json`.
pub fn workflow_schema() -> Value {
    document(&WORKFLOW, "A Gatewright workflow")
}

/// The schema of `.gatewright/config.yaml`; `docs/config.schema.json`.
pub fn config_schema() -> Value {
    document(&CONFIG, "A Gatewright configuration")
}

fn document(table: &'static Table, title: &str) -> Value {
    let from_settings = std::ptr::eq(table, &raw const WORKFLOW);
    let mut tables = Tables { from_settings, ..Tables::default() };
    tables.add(table);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": format!("#/$defs/{}", definition_name(table)),
        "$defs": tables.done,
    })
}

/// "an entry of `writes`" → `entry_of_writes`.
fn definition_name(table: &Table) -> String {
    let name = table.name.trim_start_matches("an ").trim_start_matches("a ");
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// Tables printed so far; a table may be inside itself (a step of a fan-out is a step).
#[derive(Default)]
struct Tables {
    done: BTreeMap<String, Value>,
    /// Values of some keys may come from settings.
    from_settings: bool,
}

impl Tables {
    fn add(&mut self, table: &'static Table) -> Value {
        let name = definition_name(table);
        if !self.done.contains_key(&name) {
            self.done.insert(name.clone(), Value::Null);
            let mut properties = Map::new();
            for rule in table.keys {
                let mut schema = self.shape(&rule.shape);
                let is_text = schema["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
                if self.from_settings && from_setting::KEYS.contains(&rule.name) && !is_text {
                    schema = json!({ "anyOf": [schema, { "type": "string", "pattern": "^\\$" }] });
                }
                schema["description"] = json!(rule.doc);
                properties.insert(rule.name.to_owned(), schema);
            }
            let required: Vec<&str> =
                table.keys.iter().filter(|rule| rule.need == Need::Required).map(|rule| rule.name).collect();
            // `claude:` with nothing behind it is an empty mapping.
            let types = if required.is_empty() { json!(["object", "null"]) } else { json!("object") };
            let mut schema =
                json!({ "type": types, "additionalProperties": false, "properties": properties });
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            self.done.insert(name.clone(), schema);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    fn shape(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Any => json!({}),
            Shape::Text | Shape::Template | Shape::File | Shape::PlainFile | Shape::Glob => {
                json!({ "type": ["string", "number"] })
            }
            Shape::Name | Shape::Path => json!({ "type": ["string", "number"] }),
            Shape::Expression => json!({ "type": ["string", "number", "boolean"] }),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Count => json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_CEILING }),
            Shape::CountOrZero => json!({ "type": "integer", "minimum": 0, "maximum": LIMIT_CEILING }),
            Shape::Natural => json!({ "type": "integer", "minimum": 0 }),
            Shape::Duration => json!({ "type": "string", "pattern": "^\\s*([0-9]+(ms|s|m|h|d))+\\s*$" }),
            Shape::Money => json!({ "type": "number", "minimum": 0 }),
            Shape::Word(words) => json!({ "enum": words }),
            Shape::Object(table) => self.add(table),
            Shape::MapOf(inner) | Shape::MapOfFiles(inner) => {
                json!({ "type": ["object", "null"], "additionalProperties": self.shape(inner) })
            }
            Shape::ListOf(inner) => json!({ "type": ["array", "null"], "items": self.shape(inner) }),
            Shape::OneOf(shapes) => {
                let any: Vec<Value> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({ "anyOf": any })
            }
            Shape::Switch { key, with, without } => json!({
                "if": { "type": "object", "required": [key] },
                "then": self.shape(with),
                "else": self.shape(without),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::yaml::tree::{SourceId, parse_tree};

    fn same_as_file(name: &str, schema: &Value) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
        if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, text, "{} is stale: run with GATEWRIGHT_BLESS=1", path.display());
    }

    #[test]
    fn the_schemas_in_docs_are_those_of_the_tables() {
        same_as_file("workflow.schema.json", &workflow_schema());
        same_as_file("config.schema.json", &config_schema());
    }

    #[test]
    fn the_schema_accepts_the_sample_and_refuses_an_unknown_key() {
        let validator = jsonschema::validator_for(&workflow_schema()).unwrap();
        let sample = include_str!("load/sample.yaml");
        let tree = parse_tree(sample, SourceId(0)).unwrap().to_json();
        let errors: Vec<String> = validator.iter_errors(&tree).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        let wrong = parse_tree(&sample.replace("rounds_max", "rounds_mx"), SourceId(0)).unwrap().to_json();
        assert!(!validator.is_valid(&wrong));
    }
}
