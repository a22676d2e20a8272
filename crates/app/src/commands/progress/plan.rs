//! `plan.json`: milestones, their parts, gates, decisions.

use std::path::Path;

use serde_json::{Value, json};

use super::{Refusal, code, files, list, now};
use crate::cli::{
    ProgressDecisionArgs, ProgressGateArgs, ProgressInitArgs, ProgressMilestoneArgs, ProgressSubtaskArgs,
};

const GATES: [&str; 4] = ["G1", "G2", "G3", "G4"];

pub fn init(dir: &Path, args: &ProgressInitArgs) -> Result<String, Refusal> {
    let _alone = files::alone(dir)?;
    let path = files::plan_path(dir);
    if path.exists() && !args.force {
        return Err(Refusal::new(code::EXISTS, format!("{} exists; --force writes it anew", path.display())));
    }
    files::write(&path, &fresh(&args.pipeline_id, &args.feature_type), "progress_plan")?;
    Ok(format!("wrote {}", path.display()))
}

fn fresh(pipeline: &str, feature_type: &str) -> Value {
    let at = now();
    let gates: Vec<Value> = GATES
        .iter()
        .filter(|gate| **gate != "G2" || feature_type != "backend")
        .map(|gate| json!({"id": gate, "after_milestones": [], "status": "pending", "passed_at": null}))
        .collect();
    json!({"pipeline_id": pipeline, "feature_type": feature_type, "created_at": at, "updated_at": at, "milestones": [], "gates": gates, "decisions": []})
}

pub fn milestone(dir: &Path, args: &ProgressMilestoneArgs) -> Result<String, Refusal> {
    files::plan(dir)?;
    let _alone = files::alone(dir)?;
    let mut plan = files::plan(dir)?;
    let old = find(&mut plan, "milestones", &args.id).cloned();
    let kept = |key: &str, other: Value| old.as_ref().and_then(|old| old.get(key)).cloned().unwrap_or(other);
    let new = json!({
        "id": args.id,
        "title": args.title.as_ref().map_or_else(|| kept("title", json!(args.id)), |title| json!(title)),
        "phase": args.phase.as_ref().map_or_else(|| kept("phase", json!("implementation")), |phase| json!(phase)),
        "status": args.status.as_ref().map_or_else(|| kept("status", json!("pending")), |status| json!(plain(status))),
        "depends_on": args.depends_on.as_ref().map_or_else(|| kept("depends_on", json!([])), |names| json!(list(Some(names)))),
        "subtasks": kept("subtasks", json!([])),
        "tags": args.tags.as_ref().map_or_else(|| kept("tags", json!([])), |names| json!(list(Some(names)))),
        "description": args.description.as_ref().map_or_else(|| kept("description", json!("")), |text| json!(text)),
    });
    put(&mut plan, "milestones", &args.id, new);
    save(dir, plan)?;
    Ok(format!("milestone {}", args.id))
}

pub fn subtask(dir: &Path, args: &ProgressSubtaskArgs) -> Result<String, Refusal> {
    files::plan(dir)?;
    let _alone = files::alone(dir)?;
    let mut plan = files::plan(dir)?;
    let Some(milestone) = find(&mut plan, "milestones", &args.milestone) else {
        return Err(Refusal::new(code::VALIDATION, format!("there is no milestone `{}`", args.milestone)));
    };
    let status = args.status.as_deref().map_or("pending", plain);
    let new = json!({"id": args.id, "title": args.title.as_ref().unwrap_or(&args.id), "agent_hint": args.agent_hint.clone().unwrap_or_default(), "fr_ids": list(args.fr_ids.as_deref()), "status": status});
    if milestone.get("subtasks").is_none() {
        milestone["subtasks"] = json!([]);
    }
    put(milestone, "subtasks", &args.id, new);
    save(dir, plan)?;
    Ok(format!("subtask {} of {}", args.id, args.milestone))
}

pub fn gate(dir: &Path, args: &ProgressGateArgs) -> Result<String, Refusal> {
    files::plan(dir)?;
    let _alone = files::alone(dir)?;
    let mut plan = files::plan(dir)?;
    let passed_at = (args.status == "passed").then(now);
    let after = find(&mut plan, "gates", &args.id).and_then(|gate| gate.get("after_milestones").cloned());
    let new = json!({"id": args.id, "after_milestones": after.unwrap_or(json!([])), "status": args.status, "passed_at": passed_at});
    put(&mut plan, "gates", &args.id, new);
    save(dir, plan)?;
    Ok(format!("gate {} {}", args.id, args.status))
}

/// Numbered D1, D2, … by itself.
pub fn decision(dir: &Path, args: &ProgressDecisionArgs) -> Result<String, Refusal> {
    files::plan(dir)?;
    let _alone = files::alone(dir)?;
    let mut plan = files::plan(dir)?;
    let known = plan.get("decisions").and_then(Value::as_array).cloned().unwrap_or_default();
    let number = |one: &Value| one["id"].as_str()?.strip_prefix('D')?.parse::<u64>().ok();
    let id = format!("D{}", known.iter().filter_map(number).max().unwrap_or(0) + 1);
    let new = json!({
        "id": id, "gate": args.gate, "stage": args.stage, "question": args.question,
        "options_presented": args.options.as_deref().map(|text| text.split(',').map(str::trim).collect::<Vec<_>>()).unwrap_or_default(),
        "chosen": args.chosen, "rationale": args.rationale, "decided_by": args.decided_by, "timestamp": now(),
    });
    put(&mut plan, "decisions", &id, new);
    save(dir, plan)?;
    Ok(format!("decision {id}"))
}

/// From the older `pipeline_state.json`: a milestone for each stage.
pub fn migrate(dir: &Path, force: bool) -> Result<String, Refusal> {
    let from = dir.join("pipeline_state.json");
    let Some(old) = files::read(&from)? else {
        return Err(Refusal::new(code::NO_PLAN, format!("there is no {}", from.display())));
    };
    let _alone = files::alone(dir)?;
    let path = files::plan_path(dir);
    if path.exists() && !force {
        return Err(Refusal::new(code::EXISTS, format!("{} exists; --force writes it anew", path.display())));
    }
    let text = |key: &str, other: &str| old.get(key).and_then(Value::as_str).unwrap_or(other).to_owned();
    let mut plan = fresh(&text("pipeline_id", "unknown"), &text("feature_type", "pending_detection"));
    let stages = old.get("stages").and_then(Value::as_object).cloned().unwrap_or_default();
    let milestones: Vec<Value> = stages
        .iter()
        .map(|(name, stage)| {
            let status = stage.get("status").and_then(Value::as_str).unwrap_or("pending");
            json!({"id": format!("M-{}", name.replace('_', "-")), "title": name.replace('_', " "), "phase": phase(name), "status": plain(status), "depends_on": [], "subtasks": [], "tags": [], "description": ""})
        })
        .collect();
    plan["milestones"] = json!(milestones);
    for gate in plan["gates"].as_array_mut().into_iter().flatten() {
        if let Some(at) = gate["id"].as_str().and_then(|id| passed(&old, id)) {
            gate["status"] = json!("passed");
            gate["passed_at"] = at;
        }
    }
    plan["decisions"] = old.get("decisions").filter(|list| list.is_array()).cloned().unwrap_or(json!([]));
    files::write(&path, &plan, "progress_plan")?;
    Ok(format!("wrote {} from {}", path.display(), from.display()))
}

/// What people say who let it pass (S3-21), besides an option that they choose.
const APPROVALS: [&str; 16] = [
    "approved",
    "approve",
    "yes",
    "yep",
    "y",
    "go ahead",
    "proceed",
    "do it",
    "looks good",
    "implement it",
    "/implement",
    "continue",
    "pr",
    "done",
    "merge",
    "keep",
];

/// When a gate of the older file was passed, null if nobody wrote that down: by the last word that was said there; without one
/// because the work before it was approved, or because a later gate was come to.
fn passed(old: &Value, gate: &str) -> Option<Value> {
    let mut said = old["decisions"].as_array().into_iter().flatten();
    if let Some(last) = said.rfind(|one| one["gate"] == gate) {
        let word = last["chosen"].as_str().unwrap_or_default().trim().to_lowercase();
        let lets_pass = APPROVALS.contains(&word.as_str()) || word.starts_with("option");
        return lets_pass.then(|| last["timestamp"].clone());
    }
    let before: &[&str] = match gate {
        "G1" => &["domain_modeller", "domain_expert", "tpm"],
        "G2" => &["designer"],
        "G3" => &["api_designer", "impl_planner"],
        _ => &["code_reviewer"],
    };
    let approved = before.iter().map(|stage| &old["stages"][stage]["approved_at"]).find(|at| at.is_string());
    let later = old["current_gate"].as_str().is_some_and(|now| GATES.contains(&now) && now > gate);
    approved.cloned().or(later.then_some(Value::Null))
}

fn phase(stage: &str) -> &'static str {
    match stage {
        "tpm" | "domain_expert" | "domain_modeller" => "discovery",
        "designer" | "database_designer" | "api_designer" => "design",
        "impl_planner" => "planning",
        "code_reviewer" => "review",
        _ => "implementation",
    }
}

/// Words of other files, as milestones say them.
fn plain(status: &str) -> &str {
    match status {
        "started" => "in_progress",
        "failed" => "blocked",
        other => other,
    }
}

/// The plan with what the agents have told since: in the order in which they told it, where the plan knows it, and not
/// against a word that the plan has itself.
pub fn merged(plan: &Value, agents: &[Value]) -> Value {
    let mut merged = plan.clone();
    let mut told: Vec<&Value> =
        agents.iter().filter_map(|agent| agent["updates"].as_array()).flatten().collect();
    told.sort_by_key(|update| update["timestamp"].as_str().unwrap_or_default().to_owned());
    let is_open = |one: &Value| matches!(one["status"].as_str(), Some("pending" | "in_progress"));
    for update in told {
        let [Some(milestone), Some(status)] = ["milestone_id", "status"].map(|key| update[key].as_str())
        else {
            continue;
        };
        // How an agent's file says the words of the plan that it does not have.
        let summary = update["summary"].as_str().unwrap_or_default();
        let status = match status {
            "completed" if summary.starts_with("skipped") => "skipped",
            "started" if summary.starts_with("pending") => "pending",
            other => plain(other),
        };
        let known = find_in(plan, "milestones", milestone).filter(|one| is_open(one));
        let (Some(known), Some(found)) = (known, find(&mut merged, "milestones", milestone)) else {
            continue;
        };
        match update["subtask_id"].as_str() {
            Some(subtask) => {
                let open = find_in(known, "subtasks", subtask).is_some_and(is_open);
                if let Some(part) = find(found, "subtasks", subtask).filter(|_| open) {
                    part["status"] = json!(status);
                }
                if found["status"] == "pending" {
                    found["status"] = json!("in_progress");
                }
            }
            None => found["status"] = json!(status),
        }
    }
    merged
}

fn find_in<'v>(value: &'v Value, list: &str, id: &str) -> Option<&'v Value> {
    value.get(list)?.as_array()?.iter().find(|one| one["id"] == id)
}

fn find<'v>(value: &'v mut Value, list: &str, id: &str) -> Option<&'v mut Value> {
    value.get_mut(list)?.as_array_mut()?.iter_mut().find(|one| one["id"] == id)
}

fn put(value: &mut Value, list: &str, id: &str, new: Value) {
    match find(value, list, id) {
        Some(old) => *old = new,
        None => {
            if let Some(Value::Array(entries)) = value.get_mut(list) {
                entries.push(new);
            }
        }
    }
}

fn save(dir: &Path, mut plan: Value) -> Result<(), Refusal> {
    plan["updated_at"] = json!(now());
    files::write(&files::plan_path(dir), &plan, "progress_plan")
}
