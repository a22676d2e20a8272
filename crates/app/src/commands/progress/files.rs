//! The files of the spine: read whole, held against their schemas, replaced atomically.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Refusal, code};
use crate::commands::validate::schema;

pub fn plan_path(dir: &Path) -> PathBuf {
    dir.join("progress/plan.json")
}

/// The file of one agent; its name is part of a path.
pub fn agent_path(dir: &Path, agent: &str) -> Result<PathBuf, Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !agent.is_empty() && agent.chars().all(fits) && !agent.starts_with('.') && agent != "plan";
    if !is_name {
        return Err(Refusal::new(code::ARGUMENTS, format!("`{agent}` is no name of an agent")));
    }
    Ok(dir.join("progress").join(format!("{agent}.json")))
}

/// The plan; without one nothing can be tracked.
pub fn plan(dir: &Path) -> Result<Value, Refusal> {
    let path = plan_path(dir);
    read(&path)?.ok_or_else(|| {
        Refusal::new(
            code::NO_PLAN,
            format!("there is no plan: {} does not exist; progress init makes one", path.display()),
        )
    })
}

pub fn read(path: &Path) -> Result<Option<Value>, Refusal> {
    match std::fs::read_to_string(path) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => Ok(Some(value)),
            Ok(_) => Err(Refusal::new(code::VALIDATION, format!("{}: is no JSON object", path.display()))),
            Err(error) => Err(Refusal::new(code::JSON, format!("{}: is no JSON: {error}", path.display()))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Refusal::new(code::JSON, format!("{}: cannot be read: {error}", path.display()))),
    }
}

/// All agents' files, by name.
pub fn agents(dir: &Path) -> Result<Vec<Value>, Refusal> {
    let entries = std::fs::read_dir(dir.join("progress")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json") && *path != plan_path(dir))
        .collect();
    paths.sort();
    Ok(paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// One writer at a time: of two who write in the same moment, neither's words are lost. Until the handle is dropped.
pub fn alone(dir: &Path) -> Result<File, Refusal> {
    let folder = dir.join("progress");
    let failed = |error: std::io::Error| {
        Refusal::new(code::JSON, format!("{}: cannot be written: {error}", folder.display()))
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let handle = File::open(&folder).map_err(failed)?;
    handle.lock().map_err(failed)?;
    Ok(handle)
}

/// Written in full beside its place, then renamed; what breaks its schema is not written.
pub fn write(path: &Path, value: &Value, schema_name: &str) -> Result<(), Refusal> {
    let held = schema::find(schema_name)
        .and_then(|schema| schema::hold(&schema, value, &path.display().to_string()));
    held.map_err(|fault| Refusal::new(code::VALIDATION, fault.problems.join("; ")))?;
    let failed = |error: std::io::Error| {
        Refusal::new(code::JSON, format!("{}: cannot be written: {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let beside = folder.join(format!(".{}.tmp", std::process::id()));
    let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    std::fs::write(&beside, text).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}
