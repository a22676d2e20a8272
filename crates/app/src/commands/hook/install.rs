//! `gatewright init --hooks NAME`: enters our hooks in an agent's own configuration and takes them out again.
//! Everything else in that file stays as it is; a file that cannot be read is not touched.

use std::path::{Path, PathBuf};

use serde::Serialize as _;
use serde_json::{Map, Serializer, Value, json, ser::PrettyFormatter};

use crate::{cli::Harness, command_error::CommandError, commands::methods::shown};

/// Name of the event there, and ours.
const EVENTS: [(&str, &str, &str); 2] =
    [("SessionStart", "sessionStart", "session-start"), ("PreCompact", "preCompact", "pre-compact")];
const OURS: &str = "gatewright hook ";

pub fn set_up(root: &Path, harness: Harness, remove: bool, dry_run: bool) -> Result<String, CommandError> {
    let path = root.join(file_of(harness));
    let text = read(&path)?;
    let old = parse(&path, text.as_deref().unwrap_or("{}"), harness)?;
    let cleared = without(old.clone(), harness);
    let new = if remove { cleared } else { with(cleared, harness) };
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
    write(&path, &new, &indent_of(text.as_deref().unwrap_or_default()))?;
    Ok(format!("wrote {}", shown(root, &path)))
}

fn file_of(harness: Harness) -> &'static str {
    match harness {
        Harness::Claude => ".claude/settings.json",
        Harness::Codex => ".codex/hooks.json",
        Harness::Copilot => ".github/hooks/gatewright.json",
    }
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::invalid(format!(
            "{}: cannot be read, it is left alone: {error}",
            path.display()
        ))),
    }
}

/// The settings, if there is room for ours in them; what somebody else means by them is not guessed.
fn parse(path: &Path, text: &str, harness: Harness) -> Result<Value, CommandError> {
    let refused = |what: String| {
        let entry = serde_json::to_string(&with(json!({}), harness)["hooks"]).unwrap_or_default();
        CommandError::invalid(format!("{}: {what}; it is left alone", path.display()))
            .hint(format!("mend it, or enter this by hand: \"hooks\": {entry}"))
    };
    let settings: Value = serde_json::from_str(text)
        .map_err(|error| refused(format!("is no JSON (comments are none): {error}")))?;
    if !settings.is_object() {
        return Err(refused("is no JSON object".to_owned()));
    }
    let Some(hooks) = settings.get("hooks") else { return Ok(settings) };
    let Some(events) = hooks.as_object() else {
        return Err(refused("`hooks` is no object".to_owned()));
    };
    if let Some((event, _)) = events.iter().find(|(_, list)| !list.is_array()) {
        return Err(refused(format!("`hooks.{event}` is no list")));
    }
    Ok(settings)
}

/// How the file is indented; two spaces if nothing is.
fn indent_of(text: &str) -> String {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']));
    let spaces = indented.map(|line| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect());
    spaces.unwrap_or_else(|| "  ".to_owned())
}

/// Replaced as a whole, where a link leads, with the rights it had.
fn write(path: &Path, value: &Value, indent: &str) -> Result<(), CommandError> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder: PathBuf = path.parent().map(Path::to_path_buf).unwrap_or_default();
    std::fs::create_dir_all(&folder)?;
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut text, formatter))?;
    text.push(b'\n');
    let beside = folder.join(format!(".gatewright-{}.tmp", std::process::id()));
    std::fs::write(&beside, text)?;
    if let Ok(metadata) = std::fs::metadata(&path) {
        std::fs::set_permissions(&beside, metadata.permissions())?;
    }
    std::fs::rename(&beside, path)?;
    Ok(())
}

fn with(mut settings: Value, harness: Harness) -> Value {
    if harness == Harness::Copilot {
        settings["version"] = json!(1);
    }
    for (theirs, copilots, ours) in EVENTS {
        let (name, entry) = match harness {
            Harness::Copilot => {
                let command = format!("{OURS}{ours} --for copilot");
                (copilots, json!({"type": "command", "bash": command, "timeoutSec": 10}))
            }
            Harness::Claude | Harness::Codex => {
                let dialect = if harness == Harness::Codex { "codex" } else { "claude" };
                let command = format!("{OURS}{ours} --for {dialect}");
                (theirs, json!({"hooks": [{"type": "command", "command": command, "timeout": 10}]}))
            }
        };
        if settings.get("hooks").is_none() {
            settings["hooks"] = json!({});
        }
        match settings["hooks"].get_mut(name).and_then(Value::as_array_mut) {
            Some(list) => list.push(entry),
            None => settings["hooks"][name] = json!([entry]),
        }
    }
    settings
}

/// The settings without anything of ours, and without what is empty only for that.
fn without(mut settings: Value, harness: Harness) -> Value {
    let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) else { return settings };
    let mut emptied = Vec::new();
    for (event, list) in hooks.iter_mut() {
        let Some(entries) = list.as_array_mut() else { continue };
        let before = entries.len();
        entries.retain_mut(|entry| !is_ours(entry) && !emptied_by_us(entry));
        if entries.is_empty() && before > 0 {
            emptied.push(event.clone());
        }
    }
    emptied.iter().for_each(|event| {
        hooks.shift_remove(event);
    });
    if hooks.is_empty()
        && !emptied.is_empty()
        && let Some(object) = settings.as_object_mut()
    {
        object.shift_remove("hooks");
        if harness == Harness::Copilot && object.len() == 1 {
            object.shift_remove("version");
        }
    }
    settings
}

fn is_ours(entry: &Value) -> bool {
    let said = |key: &str| entry.get(key).and_then(Value::as_str).is_some_and(|text| text.starts_with(OURS));
    ["command", "bash"].into_iter().any(said)
}

/// A group is taken out if nothing but ours was in it; what somebody put beside ours stays.
fn emptied_by_us(group: &mut Value) -> bool {
    let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|entry| !is_ours(entry));
    list.is_empty() && before > 0
}
