//! What an attempt promised to write: `outputs.json`, which the engine puts beside the prompt.

use std::path::Path;

use gatewright_workflow::contract::Contract;
use serde::Deserialize;

/// Read with everything unknown ignored: the engine that started the attempt may be newer or older.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Promised {
    #[serde(default)]
    pub reviewer: bool,
    #[serde(default)]
    pub outputs: Vec<PromisedOutput>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct PromisedOutput {
    pub name: String,
    #[serde(default)]
    pub optional: bool,
    pub contract: Contract,
}

impl Promised {
    /// The promises of the attempt whose artifacts go to `out`.
    pub fn of_attempt(out: &Path) -> std::io::Result<Promised> {
        let path = out.parent().unwrap_or(out).join("outputs.json");
        let bytes = std::fs::read(path)?;
        serde_json::from_slice(&bytes).map_err(std::io::Error::other)
    }

    pub fn output(&self, name: &str) -> Option<&PromisedOutput> {
        let name = name.trim().trim_start_matches("./");
        self.outputs.iter().find(|output| output.name == name)
    }

    /// The only required output, for a report that names no file.
    pub fn only_output(&self) -> Option<&PromisedOutput> {
        let mut required = self.outputs.iter().filter(|output| !output.optional);
        match (required.next(), required.next()) {
            (Some(one), None) => Some(one),
            (None, _) if self.outputs.len() == 1 => self.outputs.first(),
            _ => None,
        }
    }

    /// Names for a message.
    pub fn names(&self) -> String {
        let names: Vec<String> = self.outputs.iter().map(|output| format!("`{}`", output.name)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}
