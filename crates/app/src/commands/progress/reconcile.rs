//! `progress reconcile`: what an interrupted agent had done, by its own words and by git. Reads only.

use std::{collections::BTreeSet, path::Path};

use gatewright_attempts::Git;
use serde_json::{Value, json};

use super::{Refusal, code, files, now};
use crate::cli::ProgressReconcileArgs;

pub fn reconcile(dir: &Path, args: &ProgressReconcileArgs) -> Result<String, Refusal> {
    let plan = files::plan(dir)?;
    let file = files::read(&files::agent_path(dir, &args.agent)?)?;
    let status = file.as_ref().and_then(|file| file["status"].as_str()).unwrap_or("not_started").to_owned();
    let completed = completed(file.as_ref());
    let wanted = wanted(&plan, &args.agent);
    let pending: Vec<&String> = wanted.iter().filter(|id| !completed.contains(*id)).collect();
    let git = Git::at(dir);
    let base = args.pre_sha.as_deref().map(str::trim).filter(|sha| !sha.is_empty());
    let committed = match base {
        None => Vec::new(),
        Some(sha) => git
            .names(&["diff", "-z", "--name-only", &format!("{sha}^{{commit}}"), "HEAD"])
            .map_err(|error| {
                Refusal::new(
                    code::ARGUMENTS,
                    format!("--pre-sha {sha}: git has no such commit here: {error}"),
                )
            })?,
    };
    // The spine is ours, not the agent's work.
    let spine = git.text(&["rev-parse", "--show-prefix"]).map(|prefix| format!("{prefix}progress/"));
    let is_spine = |name: &str| spine.as_ref().is_ok_and(|spine| name.starts_with(spine.as_str()));
    let listed = git.names(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
    let uncommitted: Vec<String> = listed
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.get(3..))
        .filter(|name| !is_spine(name))
        .map(str::to_owned)
        .collect();
    let hint = hint(&completed, &wanted, &pending, !uncommitted.is_empty());
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

/// What the plan gives this agent; parts without a name of their own are everybody's. Where no part is meant for it,
/// all of them are: a plan may know it by another name.
fn wanted(plan: &Value, agent: &str) -> BTreeSet<String> {
    let milestones = plan["milestones"].as_array().cloned().unwrap_or_default();
    let parts: Vec<Value> =
        milestones.iter().flat_map(|one| one["subtasks"].as_array().cloned().unwrap_or_default()).collect();
    // `software-engineer-backend` and `software_engineer_backend` are one.
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    let is_mine = |part: &&Value| {
        part["agent_hint"].as_str().is_none_or(|hint| hint.is_empty() || plain(hint) == plain(agent))
    };
    let ids = |parts: Vec<&Value>| -> BTreeSet<String> {
        let lists = parts.into_iter().filter_map(|part| part["fr_ids"].as_array());
        lists.flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect()
    };
    let mine = ids(parts.iter().filter(is_mine).collect());
    if mine.is_empty() { ids(parts.iter().collect()) } else { mine }
}

fn hint(completed: &BTreeSet<String>, wanted: &BTreeSet<String>, pending: &[&String], dirty: bool) -> String {
    let look = if dirty { " Review git diff first: keep, fix or discard what is uncommitted." } else { "" };
    match (completed.is_empty(), pending.first()) {
        (true, _) => format!("Nothing is reported as done: start afresh.{look}"),
        (false, None) if wanted.is_empty() => {
            let done: Vec<&str> = completed.iter().map(String::as_str).collect();
            format!(
                "Skip {}; the plan names no requirements, so look yourself what is left.{look}",
                done.join(", ")
            )
        }
        (false, Some(next)) => {
            let done: Vec<&str> = completed.iter().map(String::as_str).collect();
            format!("Skip {}; resume from {next}.{look}", done.join(", "))
        }
        (false, None) => format!("Every requirement is done: write the output file only.{look}"),
    }
}
