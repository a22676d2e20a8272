//! `progress reconcile`: what an interrupted agent had done, by its own words and by git. Reads only.

use std::{collections::BTreeSet, path::Path};

use gatewright_attempts::Git;
use serde_json::{Value, json};

use super::{Refusal, files, now};
use crate::cli::ProgressReconcileArgs;

pub fn reconcile(dir: &Path, args: &ProgressReconcileArgs) -> Result<String, Refusal> {
    let plan = files::plan(dir)?;
    let file = files::read(&files::agent_path(dir, &args.agent)?)?;
    let status = file.as_ref().and_then(|file| file["status"].as_str()).unwrap_or("not_started").to_owned();
    let completed = completed(file.as_ref());
    let wanted = wanted(&plan, &args.agent);
    let pending: Vec<&String> = wanted.iter().filter(|id| !completed.contains(*id)).collect();
    let git = Git::at(dir);
    let committed = args
        .pre_sha
        .as_ref()
        .and_then(|sha| git.names(&["diff", "-z", "--name-only", sha.as_str(), "HEAD"]).ok())
        .unwrap_or_default();
    let listed = git.names(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
    let uncommitted: Vec<String> = listed
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.get(3..))
        .filter(|name| !name.contains("progress/"))
        .map(str::to_owned)
        .collect();
    let hint = hint(&completed, &pending, !uncommitted.is_empty());
    let value = json!({
        "agent": args.agent, "reported_status": status,
        "frs_completed": completed, "frs_pending": pending,
        "git_committed_files": committed, "git_uncommitted_files": uncommitted,
        "has_uncommitted_work": !uncommitted.is_empty(),
        "resume_hint": hint, "reconciled_at": now(),
    });
    Ok(serde_json::to_string_pretty(&value).unwrap_or_default())
}

/// Requirements that its summaries name, where it had got on.
fn completed(file: Option<&Value>) -> BTreeSet<String> {
    let updates = file.and_then(|file| file["updates"].as_array()).cloned().unwrap_or_default();
    let got_on = |update: &&Value| matches!(update["status"].as_str(), Some("in_progress" | "completed"));
    updates
        .iter()
        .filter(got_on)
        .flat_map(|update| requirements(update["summary"].as_str().unwrap_or_default()))
        .collect()
}

/// `FR-nnn` in a text.
fn requirements(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_one = |word: &&str| {
        word.strip_prefix("FR-")
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
    };
    words.filter(is_one).map(str::to_owned).collect()
}

/// What the plan gives this agent; parts without a name of their own are everybody's.
fn wanted(plan: &Value, agent: &str) -> BTreeSet<String> {
    let milestones = plan["milestones"].as_array().cloned().unwrap_or_default();
    let parts = milestones.iter().flat_map(|one| one["subtasks"].as_array().cloned().unwrap_or_default());
    let mine =
        parts.filter(|part| part["agent_hint"].as_str().is_none_or(|hint| hint.is_empty() || hint == agent));
    mine.flat_map(|part| part["fr_ids"].as_array().cloned().unwrap_or_default())
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect()
}

fn hint(completed: &BTreeSet<String>, pending: &[&String], dirty: bool) -> String {
    let look = if dirty { " Review git diff first: keep, fix or discard what is uncommitted." } else { "" };
    match (completed.is_empty(), pending.first()) {
        (true, _) => format!("Nothing is reported as done: start afresh.{look}"),
        (false, Some(next)) => {
            let done: Vec<&str> = completed.iter().map(String::as_str).collect();
            format!("Skip {}; resume from {next}.{look}", done.join(", "))
        }
        (false, None) => format!("Every requirement is done: write the output file only.{look}"),
    }
}
