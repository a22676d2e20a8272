//! `gatewright lint`: everything wrong with definitions, at once.

use gatewright_workflow::{
    diagnostic::{Diagnostic, render_all},
    load::{LoadOptions, lint as lint_text, load},
};
use serde_json::json;

use crate::{
    cli::LintArgs,
    command_error::{CommandError, exit},
    commands::doctor::untold,
    definitions::{Session, of_project},
};

pub fn lint(args: &LintArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let names = if args.files.is_empty() { of_project(&session.project.root) } else { args.files.clone() };
    if names.is_empty() {
        return Err(CommandError::usage("there is no workflow in .gatewright/workflows")
            .hint("name a file, or write one with: gatewright init"));
    }
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut unsaid: Vec<String> = Vec::new();
    for name in &names {
        let definition = session.find(name)?;
        let options = LoadOptions::new(&session.config);
        found.extend(lint_text(&definition.label, &definition.text, &definition.files, &options));
        let loaded = load(&definition.label, &definition.text, &definition.files, &options);
        unsaid.extend(loaded.frozen.as_ref().map(untold::untold).unwrap_or_default());
    }
    let errors = found.iter().filter(|diagnostic| diagnostic.is_error()).count();
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|one| json!({"code": one.code.0, "error": one.is_error(), "file": one.file, "line": one.line, "column": one.column, "message": one.message, "remedy": one.remedy}))
            .collect();
        println!(
            "{}",
            serde_json::to_string_pretty(
                &json!({"schema_version": 1, "files": names, "errors": errors, "diagnostics": list, "untold": unsaid})
            )?
        );
    } else {
        print!("{}", render_all(&found));
        for sentence in &unsaid {
            println!("note: {sentence}");
        }
        let warnings = found.len() - errors;
        println!("{} checked: {errors} error(s), {warnings} warning(s)", names.join(", "));
    }
    Ok(if errors == 0 { exit::DONE } else { exit::INVALID })
}
