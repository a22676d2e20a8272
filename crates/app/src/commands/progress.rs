//! `gatewright progress`: the progress spine. Files in `DIR/progress`: `plan.json`, and one file per agent.
//! Exit codes: 0 ok, 1 arguments, 2 exists, 3 JSON, 4 validation, 5 no plan.
//!
//! Inside a run these files are computed by the engine. What an agent says there is a hint: it is kept with
//! its attempt and told to its successor, and it changes no state.

mod files;
mod hint;
mod plan;
mod reconcile;
mod view;

use std::path::Path;

use gatewright_host::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::{
    cli::{ProgressArgs, ProgressCommand, ProgressUpdateArgs},
    command_error::CommandError,
};

/// What scripts rely on.
pub mod code {
    pub const OK: u8 = 0;
    pub const ARGUMENTS: u8 = 1;
    pub const EXISTS: u8 = 2;
    pub const JSON: u8 = 3;
    pub const VALIDATION: u8 = 4;
    pub const NO_PLAN: u8 = 5;
}

/// Why a command ended otherwise.
#[derive(Debug)]
pub struct Refusal {
    pub code: u8,
    pub message: String,
}

impl Refusal {
    pub fn new(code: u8, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

pub fn progress(args: &ProgressArgs) -> Result<u8, CommandError> {
    let dir = &args.project_dir;
    let done = match &args.command {
        ProgressCommand::Init(args) => plan::init(dir, args),
        ProgressCommand::Milestone(args) => plan::milestone(dir, args),
        ProgressCommand::Subtask(args) => plan::subtask(dir, args),
        ProgressCommand::Gate(args) => plan::gate(dir, args),
        ProgressCommand::Decision(args) => plan::decision(dir, args),
        ProgressCommand::Migrate(args) => plan::migrate(dir, args.force),
        ProgressCommand::Update(args) => update(dir, args),
        ProgressCommand::View(args) => view::view(dir, args),
        ProgressCommand::Reconcile(args) => reconcile::reconcile(dir, args),
    };
    match done {
        Ok(said) => {
            let is_asked_for =
                matches!(args.command, ProgressCommand::View(_) | ProgressCommand::Reconcile(_));
            if !said.is_empty() && (is_asked_for || !args.quiet) {
                println!("{said}");
            }
            Ok(code::OK)
        }
        Err(refusal) => {
            eprintln!("progress: {}", refusal.message);
            Ok(refusal.code)
        }
    }
}

/// The time as everybody writes it.
pub fn now() -> String {
    gatewright_host::document::iso(SystemClock.now())
}

/// An agent's file: one entry more. Inside an attempt it is a hint.
fn update(dir: &Path, args: &ProgressUpdateArgs) -> Result<String, Refusal> {
    if hint::is_agents() { hint::leave(args) } else { append(dir, args) }
}

fn append(dir: &Path, args: &ProgressUpdateArgs) -> Result<String, Refusal> {
    // The plan is not an agent's to write: `view` brings together what all of them say.
    let plan = files::plan(dir)?;
    let path = files::agent_path(dir, &args.agent)?;
    let _alone = files::alone(dir)?;
    let at = now();
    let mut file = files::read(&path)?.unwrap_or_else(|| {
        json!({"agent": args.agent, "pipeline_id": plan["pipeline_id"], "started_at": at, "updated_at": at, "status": "running", "updates": []})
    });
    let status = args.status.as_str();
    file["updated_at"] = json!(at);
    file["current_milestone"] = json!(args.milestone);
    file["current_subtask"] = json!(args.subtask);
    file["status"] = json!(match status {
        "completed" | "skipped" => "completed",
        "blocked" => "blocked",
        "failed" => "failed",
        _ => "running",
    });
    if args.subtask.is_some() && matches!(status, "completed" | "skipped") {
        // A part of the work is done, not the work.
        file["status"] = json!("running");
    }
    if let Value::Array(updates) = &mut file["updates"] {
        updates.push(entry(args, &at));
    }
    files::write(&path, &file, "progress_agent")?;
    Ok(format!("{}: {} {status}", args.agent, args.milestone))
}

/// The words of the plan that the file of an agent does not have are written in its own.
fn entry(args: &ProgressUpdateArgs, at: &str) -> Value {
    let (status, word) = match args.status.as_str() {
        word @ "pending" => ("started", Some(word)),
        word @ "skipped" => ("completed", Some(word)),
        other => (other, None),
    };
    let summary = match (word, args.summary.as_deref()) {
        (Some(word), Some(summary)) => Some(format!("{word}: {summary}")),
        (Some(word), None) => Some(word.to_owned()),
        (None, summary) => summary.map(str::to_owned),
    };
    let summary = summary.as_deref().map(short);
    json!({"milestone_id": args.milestone, "subtask_id": args.subtask, "status": status, "summary": summary, "files_touched": list(args.files.as_deref()), "error": args.error, "timestamp": at})
}

/// At most 100 characters.
fn short(text: &str) -> String {
    if text.chars().count() <= 100 { text.to_owned() } else { text.chars().take(99).chain(['…']).collect() }
}

/// `a, b` and `a b` are two.
pub fn list(text: Option<&str>) -> Vec<String> {
    let words = text.unwrap_or_default().split([',', ' ', '\n']);
    words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
