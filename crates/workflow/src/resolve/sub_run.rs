//! A sub-run: another workflow, its steps inlined below the step that runs it.

use gatewright_core::{
    ids::StepId,
    plan::{Budget, Kind, Step},
};

use super::{build::Builder, from_setting, placeholder, profile, step::Place, unit::Unit};
use crate::{
    config::budget_of,
    definition::{check_shape::check_shape, keys::WORKFLOW, overrides, shape::Shape},
    diagnostic::codes,
    frozen::StepText,
    load::parse_workflow,
    yaml::tree::Node,
};

/// Sub-runs inside sub-runs.
pub const DEPTH_MAX: usize = 5;
/// In one plan, whatever their depth: five levels of wide sub-runs would fill the memory.
pub const SUB_RUNS_MAX: usize = 1_000;

pub fn sub_run(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
    text: &mut StepText,
) {
    text.request = node.string("request");
    let budget = node.get("budget").map(|node| budget_of(node, &Budget::default())).unwrap_or_default();
    let body = inline(builder, unit, place, node, id);
    // A workflow that cannot be read may write anything.
    builder.built.unknown.writers |= body.is_none();
    step.kind = Kind::SubRun { body: body.unwrap_or_default(), budget: Box::new(budget) };
}

fn inline(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
) -> Option<Vec<StepId>> {
    let name = node.word("run")?;
    let Some((label, text, sources)) = unit.sources.workflow(&name.text) else {
        builder.report.error(
            codes::UNKNOWN_WORKFLOW,
            name.span,
            format!("there is no workflow `{}`", name.text),
            "a name in .gatewright/workflows, a built-in method, or a path",
        );
        return None;
    };
    if builder.chain.contains(&label) || builder.chain.len() > DEPTH_MAX {
        let mut chain = builder.chain.clone();
        chain.push(label);
        let message = if chain.len() > DEPTH_MAX + 1 {
            format!("sub-runs go deeper than {DEPTH_MAX}: {}", chain.join(" → "))
        } else {
            format!("a workflow cannot run itself: {}", chain.join(" → "))
        };
        builder.report.error(codes::SUB_RUN_CYCLE, name.span, message, "");
        return None;
    }
    builder.sub_runs += 1;
    if builder.sub_runs > SUB_RUNS_MAX {
        let message = format!("more than {SUB_RUNS_MAX} sub-runs in one plan");
        builder.report.error(codes::TOO_MANY_STEPS, name.span, message, "");
        return None;
    }
    builder.shared.read(&label, &text);
    let mut tree = parse_workflow(&label, &text, builder.report)?;
    let wanted = node.word("profile").or_else(|| tree.word("profile"));
    if let Some(wanted) = wanted {
        let over = profile::find(&tree, &wanted, builder.report)?.clone();
        overrides::apply(&mut tree, &over, builder.report);
    }
    let declared = from_setting::declared(&tree);
    from_setting::fill(&mut tree, &declared, builder.report);
    check_shape(&tree, &Shape::Object(&WORKFLOW), "the workflow", builder.report);
    let prefix = format!("{id}/");
    placeholder::fill(&mut tree, &prefix, builder.report);
    for (key, value) in tree.get("settings").map(Node::entries).unwrap_or_default() {
        builder.shared.settings.entry(key.text.clone()).or_insert_with(|| value.to_json());
    }
    builder.chain.push(label.clone());
    let stage = Some(place.stage.clone());
    let inner = Unit::new(builder, &tree, &label, sources.as_ref(), &prefix, &prefix, stage);
    let stages = inner.resolve(builder);
    builder.chain.pop();
    for (pool, depth) in profile::pools(&tree) {
        builder.pool(pool, depth);
    }
    profile::obligations(builder, &inner);
    for stage in &stages {
        if stage.disabled.is_some() {
            builder.built.disabled.extend(stage.steps.iter().cloned());
        }
    }
    Some(stages.into_iter().flat_map(|stage| stage.steps).collect())
}
