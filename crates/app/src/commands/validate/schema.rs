//! Schemas by name: those of the built-in methods, and the project's own in `schemas/`.

use std::path::Path;

use gatewright_workflow::contract::{Contract, check};
use serde_json::{Value, json};

use super::{Fault, code};
use crate::definitions::{method_schema, method_schemas};

/// `progress-plan`, `progress_plan.schema.json` and `schemas/progress_plan.schema.json` are one name.
pub fn plain_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_suffix(".schema.json").or_else(|| name.strip_suffix(".json")).unwrap_or(name);
    name.replace('-', "_")
}

pub fn find(name: &str) -> Result<Value, Fault> {
    let plain = plain_name(name);
    let own = std::fs::read_to_string(Path::new("schemas").join(format!("{plain}.schema.json"))).ok();
    let Some(text) = own.or_else(|| method_schema(&plain)) else {
        let known = method_schemas().join(", ");
        return Err(Fault::new(code::USAGE, format!("there is no schema `{name}`; there are: {known}")));
    };
    serde_json::from_str(&text)
        .map_err(|error| Fault::new(code::USAGE, format!("the schema `{plain}` is no JSON: {error}")))
}

/// Everything about a value that its schema does not allow.
pub fn hold(schema: &Value, value: &Value, label: &str) -> Result<(), Fault> {
    let contract = Contract::from_value(&json!({"json": schema}))
        .map_err(|problems| Fault::new(code::USAGE, format!("the schema cannot be used: {problems:?}")))?;
    check(&contract, label, value.to_string().as_bytes()).map_err(|violations| Fault {
        code: code::SCHEMA,
        problems: violations.iter().map(ToString::to_string).collect(),
    })
}
