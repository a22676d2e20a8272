//! What agents cannot be told of the permissions of the roles they play.

use std::{collections::BTreeSet, path::Path};

use gatewright_agents::untold_of_definition;
use gatewright_core::plan::{Kind, Step};
use gatewright_workflow::{
    config::Config,
    frozen::{Frozen, policy},
    load::{LoadOptions, load},
};

use super::{Finding, Level};
use crate::definitions::{find, of_project};

/// One sentence for each limit of a role that its agent knows no means for.
pub fn untold(frozen: &Frozen) -> Vec<String> {
    let steps = frozen.plan.graphs.iter().flat_map(|(profile, graph)| {
        let text =
            |id| frozen.steps.get(profile).and_then(|texts| texts.get(id)).cloned().unwrap_or_default();
        graph.steps.iter().map(move |(id, step)| (text(id), step))
    });
    let mut said = BTreeSet::new();
    for (text, (role, name)) in
        steps.flat_map(|(text, step)| players(step).into_iter().map(move |player| (text.clone(), player)))
    {
        let (Some(known), Some(agent)) = (frozen.roles.get(role.as_str()), frozen.agents.get(name.as_str()))
        else {
            continue;
        };
        for sentence in untold_of_definition(&known.extra) {
            said.insert(format!("role `{role}`: {sentence}"));
        }
        let Some(adapter) = agent.adapter(&name) else {
            let policy = policy(&text, Some(known));
            let limits = [
                ("may_run", policy.may_run.is_some()),
                ("network: false", policy.network == Some(false)),
                ("disallowedTools", !policy.disallowed_tools.is_empty()),
                ("permissionMode", policy.permission_mode.is_some()),
                ("sandbox_mode", policy.sandbox_mode.is_some()),
                ("effort", policy.effort.is_some()),
                ("maxTurns", policy.max_turns.is_some()),
            ];
            for (limit, _) in limits.into_iter().filter(|(_, set)| *set) {
                said.insert(format!(
                    "role `{role}` by `{name}`: a plain command is not told of `{limit}`; only `agents.{name}.sandbox` limits it"
                ));
            }
            continue;
        };
        for sentence in adapter.cannot(&policy(&text, Some(known))) {
            said.insert(format!("role `{role}` by `{name}`: {sentence}"));
        }
        if let Some(tier @ ("strong" | "fast")) = known.model.as_deref()
            && !agent.models.contains_key(tier)
            && adapter.model_of_tier(tier).is_none()
        {
            said.insert(format!(
                "role `{role}` by `{name}`: `model: {tier}` means nothing to it; set `agents.{name}.models.{tier}`"
            ));
        }
        if let Some(model) = known.model.as_deref().filter(|model| CLAUDES_MODELS.contains(model))
            && adapter.name() != "claude"
            && !agent.models.contains_key(model)
        {
            said.insert(format!(
                "role `{role}` by `{name}`: `model: {model}` is Claude's word for it; set `agents.{name}.models.{model}`"
            ));
        }
    }
    said.into_iter().collect()
}

/// Short names of models in definitions of Claude Code.
const CLAUDES_MODELS: [&str; 4] = ["haiku", "sonnet", "opus", "fable"];

fn players(step: &Step) -> Vec<(String, String)> {
    match &step.kind {
        Kind::Agent { role, agent, .. } => vec![(role.to_string(), agent.to_string())],
        Kind::Review(review) => {
            let pair = |one: &gatewright_core::plan::Reviewer| (one.role.to_string(), one.agent.to_string());
            review.reviewers.iter().map(pair).collect()
        }
        Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => Vec::new(),
    }
}

/// For the workflows of a project.
pub fn findings(root: &Path, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in of_project(root) {
        let Ok(definition) = find(root, &name) else { continue };
        let loaded = load(&definition.label, &definition.text, &definition.files, &LoadOptions::new(config));
        let sentences = loaded.frozen.as_ref().map(untold).unwrap_or_default();
        findings.extend(
            sentences
                .into_iter()
                .map(|sentence| Finding::new(Level::Note, format!("workflow `{name}`: {sentence}"), "")),
        );
    }
    findings
}
