//! `gatewright validate`: the validator of pipeline outputs. Its exit code is the answer: 0 ok, 1 schema,
//! 2 reality, 3 build, 4 tests, 5 graph, 10 usage. Whoever calls it branches on the number, never on text.

mod graph;
mod language;
mod reality;
pub mod schema;
mod streams;
mod test_files;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{cli::ValidateArgs, command_error::CommandError};

/// What scripts rely on.
pub mod code {
    pub const OK: u8 = 0;
    pub const SCHEMA: u8 = 1;
    pub const REALITY: u8 = 2;
    pub const BUILD: u8 = 3;
    pub const TESTS: u8 = 4;
    pub const GRAPH: u8 = 5;
    pub const USAGE: u8 = 10;
}

/// Why something is not valid: the exit code and everything that is wrong.
#[derive(Debug)]
pub struct Fault {
    pub code: u8,
    pub problems: Vec<String>,
}

impl Fault {
    pub fn new(code: u8, problem: impl Into<String>) -> Fault {
        Fault { code, problems: vec![problem.into()] }
    }
}

pub fn validate(args: &ValidateArgs) -> Result<u8, CommandError> {
    match run(args) {
        Ok(said) => {
            said.iter().for_each(|line| println!("{line}"));
            Ok(code::OK)
        }
        Err(fault) => {
            let word = match fault.code {
                code::SCHEMA => "schema",
                code::REALITY => "reality",
                code::BUILD => "build",
                code::TESTS => "tests",
                code::GRAPH => "dag",
                _ => "usage",
            };
            for problem in &fault.problems {
                eprintln!("{word}: {problem}");
            }
            Ok(fault.code)
        }
    }
}

fn run(args: &ValidateArgs) -> Result<Vec<String>, Fault> {
    let modes = [
        args.schema.is_some(),
        args.reality_check,
        args.build_check,
        args.test_check,
        args.dag_check,
        args.progress_check,
        args.full,
    ];
    if modes.iter().filter(|mode| **mode).count() != 1 {
        return Err(Fault::new(
            code::USAGE,
            "name one of --schema NAME, --reality-check, --build-check, --test-check, --dag-check, --progress-check, --full",
        ));
    }
    let lang = || language::Language::of(args.lang.as_deref());
    if let Some(name) = &args.schema {
        return named(name, &file(args)?);
    }
    if args.reality_check {
        return reality::check(&read(&file(args)?)?, &file(args)?, args.pre_sha.as_deref());
    }
    if args.build_check {
        return language::build(lang()?, command(args.build_command.as_ref()));
    }
    if args.test_check {
        return language::test(lang()?, command(args.test_command.as_ref()), &args.test_files);
    }
    if args.dag_check {
        let path = file(args)?;
        // First the graph: what is wrong with it has a number of its own, also where the schema would say it too.
        let said = graph::check(&read(&path)?)?;
        named("execution_dag", &path)?;
        return Ok(said);
    }
    if args.progress_check {
        return progress(args);
    }
    full(args)
}

fn command(given: Option<&String>) -> Option<&str> {
    given.map(String::as_str).filter(|line| !line.trim().is_empty())
}

/// Schema, then reality, then build, then tests if a `test` step passed; the first failure ends it.
fn full(args: &ValidateArgs) -> Result<Vec<String>, Fault> {
    let path = file(args)?;
    let lang = language::Language::of(args.lang.as_deref())?;
    let mut said = named("stream_completion", &path)?;
    let completion = read(&path)?;
    said.extend(reality::check(&completion, &path, args.pre_sha.as_deref())?);
    said.extend(language::build(lang, command(args.build_command.as_ref()))?);
    if reality::passed(&completion, |name| name.starts_with("test")) {
        said.extend(language::test(lang, command(args.test_command.as_ref()), &args.test_files)?);
    }
    Ok(said)
}

/// One file against the schema of this name, and what a schema cannot say about it.
fn named(name: &str, path: &Path) -> Result<Vec<String>, Fault> {
    let schema = schema::find(name)?;
    let value = read(path)?;
    schema::hold(&schema, &value, &path.display().to_string())?;
    if value.get("work_streams").is_some() {
        streams::check(&value)?;
    }
    Ok(vec![format!("ok  schema {}: {}", schema::plain_name(name), path.display())])
}

fn progress(args: &ValidateArgs) -> Result<Vec<String>, Fault> {
    let Some(dir) = &args.project_dir else {
        return Err(Fault::new(code::USAGE, "--progress-check needs --project-dir DIR"));
    };
    let folder = dir.join("progress");
    let plan = folder.join("plan.json");
    let mut said = named("progress_plan", &plan)?;
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut agents: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json") && *path != plan).collect();
    agents.sort();
    for path in agents {
        said.extend(named("progress_agent", &path)?);
    }
    Ok(said)
}

fn file(args: &ValidateArgs) -> Result<PathBuf, Fault> {
    args.file.clone().ok_or_else(|| Fault::new(code::USAGE, "this needs --file FILE"))
}

/// A file that is not there or is no JSON breaks its schema.
pub fn read(path: &Path) -> Result<Value, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::new(code::SCHEMA, format!("{}: cannot be read: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Fault::new(code::SCHEMA, format!("{}: is no JSON: {error}", path.display())))
}
