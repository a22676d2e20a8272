//! `plan.json`: milestones, their parts, gates, decisions.

use std::path::Path;

use serde_json::{Value, json};

use super::{Refusal, code, files, list, now};
use crate::cli::{
    ProgressDecisionArgs, ProgressGateArgs, ProgressInitArgs, ProgressMilestoneArgs, ProgressSubtaskArgs,
};

const GATES: [&str; 4] = ["G1", "G2", "G3", "G4"];

pub fn init(dir: &Path, args: &ProgressInitArgs) -> Result<String, Refusal> {
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
    let mut plan = files::plan(dir)?;
    let count = plan.get("decisions").and_then(Value::as_array).map_or(0, Vec::len);
    let id = format!("D{}", count + 1);
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
    plan["decisions"] = old.get("decisions").filter(|list| list.is_array()).cloned().unwrap_or(json!([]));
    files::write(&path, &plan, "progress_plan")?;
    Ok(format!("wrote {} from {}", path.display(), from.display()))
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

/// What an agent reports shows in the plan, where the plan knows it.
pub fn mark(plan: &mut Value, milestone: &str, subtask: Option<&str>, status: &str) {
    let Some(found) = find(plan, "milestones", milestone) else { return };
    match subtask {
        Some(subtask) => {
            if let Some(part) = find(found, "subtasks", subtask) {
                part["status"] = json!(plain(status));
            }
            if found["status"] == "pending" {
                found["status"] = json!("in_progress");
            }
        }
        None => found["status"] = json!(plain(status)),
    }
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
