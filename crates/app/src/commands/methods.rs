//! `gatewright methods`: what is built in; `eject` copies one into the project for editing.

use std::path::Path;

use gatewright_workflow::load::{LoadOptions, load};
use serde_json::{Value, json};

use crate::{
    cli::{MethodsAction, MethodsArgs},
    command_error::{CommandError, exit},
    definitions::{Session, built_in, files_of},
    render::text::{columns, fit, near, one_line, pad, put, put_json},
    terminal,
};

pub fn methods(args: &MethodsArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    if let Some(MethodsAction::Eject { name }) = &args.action {
        return eject(&session.project.root, name);
    }
    let methods: Vec<(String, Vec<String>, String)> = built_in()
        .into_iter()
        .map(|(name, workflows)| (name.clone(), workflows, description(&session, &name)))
        .collect();
    if args.json {
        let list: Vec<Value> =
            methods.iter().map(|(name, workflows, description)| json!({"name": name, "description": description, "workflows": workflows})).collect();
        put_json(&json!({"schema_version": 1, "methods": list}))?;
        return Ok(exit::DONE);
    }
    let width = methods.iter().map(|(name, ..)| columns(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (name, workflows, description) in &methods {
        let room = terminal::width().saturating_sub(width + 4).max(30);
        text.push_str(&format!("  {}  {}\n", pad(name, width), fit(&one_line(description), room)));
        if !workflows.is_empty() {
            let names: Vec<String> = workflows.iter().map(|workflow| format!("{name}/{workflow}")).collect();
            text.push_str(&format!("  {}  also: {}\n", pad("", width), names.join(", ")));
        }
    }
    put(text.as_bytes())?;
    if methods.is_empty() {
        eprintln!("no method is built into this program");
    } else {
        eprintln!(
            "\nstart one: gatewright run NAME \"what to do\"; look at one: gatewright graph NAME; edit one: gatewright methods eject NAME"
        );
    }
    Ok(exit::DONE)
}

/// What the method says of itself; nothing if it cannot be loaded here.
fn description(session: &Session, name: &str) -> String {
    let Ok(definition) = session.find(name) else { return String::new() };
    let loaded =
        load(&definition.label, &definition.text, &definition.files, &LoadOptions::new(&session.config));
    loaded.frozen.map(|frozen| frozen.description).unwrap_or_default()
}

fn eject(root: &Path, name: &str) -> Result<u8, CommandError> {
    let known = built_in();
    if !known.contains_key(name) {
        return Err(unknown_method(name));
    }
    let folder = root.join(".gatewright/workflows").join(name);
    let (mut written, mut kept) = (0, 0);
    for (path, text) in files_of(name) {
        let target = folder.join(path);
        if write_new(&target, text)? {
            written += 1;
            put(format!("wrote {}\n", shown(root, &target)).as_bytes())?;
        } else {
            kept += 1;
            put(format!("kept  {} (it exists)\n", shown(root, &target)).as_bytes())?;
        }
    }
    eprintln!("{written} written, {kept} kept; `{name}` is now this project's own: gatewright lint {name}");
    Ok(exit::DONE)
}

/// The error for a method that is not built in.
pub fn unknown_method(name: &str) -> CommandError {
    let known: Vec<String> = built_in().into_keys().collect();
    let error = CommandError::invalid(format!("no method `{}` is built in", one_line(name)));
    match near(name, known.iter().map(String::as_str)).first() {
        Some(close) => error.hint(format!("did you mean `{close}`?")),
        None => error.hint(format!("built in: {}", known.join(", "))),
    }
}

/// Writes a file that is not there yet, with its folders; `false` = it was there and stays as it is.
pub fn write_new(path: &Path, text: &str) -> Result<bool, CommandError> {
    use std::io::Write;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            CommandError::failed(format!("{}: cannot be created: {error}", folder.display()))
        })?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).map_err(|error| {
                CommandError::failed(format!("{}: cannot be written: {error}", path.display()))
            })?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(CommandError::failed(format!("{}: cannot be written: {error}", path.display()))),
    }
}

/// A path as people see it from the root of their project.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
