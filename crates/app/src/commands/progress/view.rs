//! `progress view`: the plan and all agents' files as one. For whoever drives, not for agents.

use std::path::Path;

use serde_json::{Value, json};

use super::{Refusal, code, files, hint, plan};
use crate::cli::ProgressViewArgs;

pub fn view(dir: &Path, args: &ProgressViewArgs) -> Result<String, Refusal> {
    if hint::is_agents() {
        return Err(Refusal::new(code::VALIDATION, "agents write progress and do not view it"));
    }
    let agents = files::agents(dir)?;
    let plan = plan::merged(&files::plan(dir)?, &agents);
    let format = if args.json { "json" } else { args.format.as_str() };
    match format {
        "json" => {
            let merged = json!({"plan": plan, "agents": agents, "summary": counts(&plan)});
            Ok(serde_json::to_string_pretty(&merged).unwrap_or_default())
        }
        "tree" => Ok(tree(&plan, &agents)),
        "table" => Ok(table(&plan)),
        "summary" => Ok(summary(&plan, &agents)),
        other => Err(Refusal::new(
            code::ARGUMENTS,
            format!("--format is tree, table, summary or json, not `{other}`"),
        )),
    }
}

fn list(value: &Value, key: &str) -> Vec<Value> {
    value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn counts(plan: &Value) -> Value {
    let milestones = list(plan, "milestones");
    let done = milestones.iter().filter(|one| matches!(text(one, "status"), "completed" | "skipped")).count();
    json!({"milestones": milestones.len(), "completed": done})
}

fn mark(status: &str) -> &'static str {
    match status {
        "completed" | "passed" => "✓",
        "in_progress" | "running" | "started" => "▶",
        "blocked" | "failed" => "■",
        "skipped" => "–",
        _ => "·",
    }
}

fn tree(plan: &Value, agents: &[Value]) -> String {
    let mut lines = vec![format!("{} ({})", text(plan, "pipeline_id"), text(plan, "feature_type"))];
    for one in list(plan, "milestones") {
        lines.push(format!("{} {} {}", mark(text(&one, "status")), text(&one, "id"), text(&one, "title")));
        for part in list(&one, "subtasks") {
            lines.push(format!(
                "  {} {} {}",
                mark(text(&part, "status")),
                text(&part, "id"),
                text(&part, "title")
            ));
        }
        for agent in agents.iter().filter(|agent| text(agent, "current_milestone") == text(&one, "id")) {
            let last = list(agent, "updates").last().map(|update| text(update, "summary").to_owned());
            lines.push(format!(
                "  {} {}: {}",
                mark(text(agent, "status")),
                text(agent, "agent"),
                last.unwrap_or_default()
            ));
        }
    }
    lines.extend(
        list(plan, "gates").iter().map(|gate| format!("{} {}", mark(text(gate, "status")), text(gate, "id"))),
    );
    lines.join("\n")
}

fn table(plan: &Value) -> String {
    let rows = list(plan, "milestones");
    let row = |one: &Value| {
        format!(
            "{:<24} {:<16} {:<12} {}",
            text(one, "id"),
            text(one, "phase"),
            text(one, "status"),
            text(one, "title")
        )
    };
    let head = format!("{:<24} {:<16} {:<12} {}", "id", "phase", "status", "title");
    std::iter::once(head).chain(rows.iter().map(row)).collect::<Vec<_>>().join("\n")
}

fn summary(plan: &Value, agents: &[Value]) -> String {
    let counted = counts(plan);
    let running: Vec<&str> =
        agents.iter().filter(|one| text(one, "status") == "running").map(|one| text(one, "agent")).collect();
    let at_work = if running.is_empty() { "nobody".to_owned() } else { running.join(", ") };
    format!(
        "{}: {} of {} milestones, at work: {at_work}",
        text(plan, "pipeline_id"),
        counted["completed"],
        counted["milestones"]
    )
}
