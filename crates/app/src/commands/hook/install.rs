//! `gatewright init --hooks NAME`: enters our hooks in an agent's own configuration and takes them out again.
//! Everything else in that file stays as it is; a file that cannot be read is not touched.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::{cli::Harness, command_error::CommandError, commands::methods::shown};

/// Name of the event there, and ours.
const EVENTS: [(&str, &str, &str); 2] =
    [("SessionStart", "sessionStart", "session-start"), ("PreCompact", "preCompact", "pre-compact")];
const OURS: &str = "gatewright hook ";

pub fn set_up(root: &Path, harness: Harness, remove: bool, dry_run: bool) -> Result<String, CommandError> {
    let path = root.join(file_of(harness));
    let old = read(&path)?;
    let new =
        if remove { without(old.clone(), harness) } else { with(without(old.clone(), harness), harness) };
    if new == old {
        return Ok(format!("kept  {} (nothing to change)", shown(root, &path)));
    }
    let is_empty = new.as_object().is_some_and(Map::is_empty);
    if dry_run {
        return Ok(format!("would {} {}", if is_empty { "remove" } else { "write" }, shown(root, &path)));
    }
    if is_empty {
        std::fs::remove_file(&path)?;
        return Ok(format!("removed {}", shown(root, &path)));
    }
    write(&path, &new)?;
    Ok(format!("wrote {}", shown(root, &path)))
}

fn file_of(harness: Harness) -> &'static str {
    match harness {
        Harness::Claude => ".claude/settings.json",
        Harness::Codex => ".codex/hooks.json",
        Harness::Copilot => ".github/hooks/gatewright.json",
    }
}

fn read(path: &Path) -> Result<Value, CommandError> {
    match std::fs::read_to_string(path) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => {
                Err(CommandError::invalid(format!("{}: is no JSON object; it is left alone", path.display())))
            }
            Err(error) => Err(CommandError::invalid(format!(
                "{}: is no JSON, it is left alone: {error}",
                path.display()
            ))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(json!({})),
        Err(error) => Err(error.into()),
    }
}

fn write(path: &Path, value: &Value) -> Result<(), CommandError> {
    let folder: PathBuf = path.parent().map(Path::to_path_buf).unwrap_or_default();
    std::fs::create_dir_all(&folder)?;
    let beside = folder.join(format!(".gatewright-{}.tmp", std::process::id()));
    std::fs::write(&beside, serde_json::to_string_pretty(value)? + "\n")?;
    std::fs::rename(&beside, path)?;
    Ok(())
}

fn with(mut settings: Value, harness: Harness) -> Value {
    if harness == Harness::Copilot {
        settings["version"] = json!(1);
    }
    for (theirs, copilots, ours) in EVENTS {
        let command = format!("{OURS}{ours}");
        let (name, entry) = match harness {
            Harness::Copilot => (copilots, json!({"type": "command", "bash": command, "timeoutSec": 10})),
            Harness::Claude | Harness::Codex => {
                (theirs, json!({"hooks": [{"type": "command", "command": command, "timeout": 10}]}))
            }
        };
        if !settings["hooks"].is_object() {
            settings["hooks"] = json!({});
        }
        match settings["hooks"].get_mut(name).and_then(Value::as_array_mut) {
            Some(list) => list.push(entry),
            None => settings["hooks"][name] = json!([entry]),
        }
    }
    settings
}

/// The settings without anything of ours, and without what is empty for it.
fn without(mut settings: Value, harness: Harness) -> Value {
    let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) else { return settings };
    for (_, list) in hooks.iter_mut() {
        if let Some(entries) = list.as_array_mut() {
            entries.retain(|entry| !is_ours(entry));
        }
    }
    hooks.retain(|_, list| list.as_array().is_none_or(|entries| !entries.is_empty()));
    if hooks.is_empty()
        && let Some(object) = settings.as_object_mut()
    {
        object.remove("hooks");
        if harness == Harness::Copilot && object.len() == 1 {
            object.remove("version");
        }
    }
    settings
}

fn is_ours(entry: &Value) -> bool {
    let says = |value: &Value| {
        ["command", "bash"]
            .iter()
            .any(|key| value.get(key).and_then(Value::as_str).is_some_and(|text| text.starts_with(OURS)))
    };
    says(entry)
        || entry
            .get("hooks")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty() && list.iter().all(says))
}
