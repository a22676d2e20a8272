//! A review: who looks, who repairs, how often.

use gatewright_core::{
    ids::{ArtifactName, StepId},
    plan::{FixRoute, Kind, Rereview, Rerun, Review, Reviewer, Step, limits},
    verdict::Severity,
};

use super::{
    answer::{self, Asking},
    build::Builder,
    names::{self, fix_name, is_inline},
    step::{self, Place},
    unit::Unit,
    unknown,
};
use crate::{
    definition::{keys::SEVERITIES, read::Word},
    diagnostic::{codes, suggestion},
    frozen::StepText,
    yaml::tree::{Node, NodeValue},
};

pub fn review(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
    text: &mut StepText,
) {
    let of: Vec<StepId> = node
        .words("review")
        .iter()
        .filter_map(|word| unit.names.find(place.scope, word, builder.report))
        .collect();
    let reviewers = if names::is_panel(node) {
        panel(builder, unit, place, node, id, text)
    } else {
        single(builder, unit, node, id, step, text)
    };
    let on_exhausted = node.get("on_exhausted");
    let on_notes = node.get("on_notes");
    step.kind = Kind::Review(Box::new(Review {
        fix: fixes(builder, unit, place, node, id, &of),
        of,
        reviewers,
        block_at: severity(builder, unit, node, "block_at", Severity::Medium),
        hard_stop_on_blocked: node.is_on("hard_stop_on_blocked"),
        rounds_max: node.limit("rounds_max").unwrap_or(limits::ROUNDS_MAX),
        rerun: if node.string("rerun").as_deref() == Some("listed") { Rerun::Listed } else { Rerun::Between },
        rereview: if node.string("rereview").as_deref() == Some("failed") {
            Rereview::Failed
        } else {
            Rereview::All
        },
        final_pass: node.is_on("final_pass"),
        stalled_after: node.limit("stalled_after"),
        on_exhausted: answer::exhaustion(
            builder,
            unit,
            place.scope,
            on_exhausted,
            place.stage,
            Asking::Review,
        ),
        ask_at: on_notes.map(|_| severity(builder, unit, node, "ask_at", Severity::Note)),
        on_notes: on_notes
            .map(|answers| answer::answers(builder, unit, place.scope, answers))
            .unwrap_or_default(),
    }));
}

fn severity(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    node: &Node,
    key: &str,
    absent: Severity,
) -> Severity {
    let Some(word) = node.word(key) else { return absent };
    if let Some(severity) = Severity::from_word(&word.text).or_else(|| unit.words.severity(&word.text)) {
        return severity;
    }
    builder.report.error(
        codes::BAD_VALUE,
        word.span,
        format!("`{}` is no severity", word.text),
        suggestion(&word.text, SEVERITIES.iter().copied()),
    );
    absent
}

/// One reviewer: the review is its step.
fn single(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    node: &Node,
    id: &StepId,
    step: &mut Step,
    text: &mut StepText,
) -> Vec<Reviewer> {
    let by = node.get("by");
    let by = by.and_then(|by| by.elements().first()).or(by);
    let Some(by) = by else { return Vec::new() };
    let Some(word) = Word::of(by).or_else(|| by.word("role")) else { return Vec::new() };
    let role = unit.role_named(builder, &word);
    let own = if by.get("agent").is_some() { by } else { node };
    let agent = unit.agent_of(builder, own, &role);
    step.pools = unit.pools_of(builder, node, Some((&role, &agent)));
    if by.get("role").is_some() {
        let more = step::text(builder, unit, by, text.isolation);
        add(text, more, by);
        step.writes = text.writes.iter().map(|write| ArtifactName::new(&write.name)).collect();
    }
    vec![Reviewer { step: id.clone(), role: role.id, agent }]
}

/// What a reviewer says for itself, over what the review says for all.
fn add(text: &mut StepText, more: StepText, by: &Node) {
    if !text.prompt.is_empty() && !more.prompt.is_empty() {
        text.prompt.push_str("\n\n");
    }
    text.prompt.push_str(&more.prompt);
    for read in more.reads {
        if !text.reads.iter().any(|known| known.name == read.name) {
            text.reads.push(read);
        }
    }
    text.writes.extend(more.writes);
    if !more.points.is_empty() {
        text.points = more.points;
    }
    if by.get("reply").is_some() {
        text.reply = more.reply;
    }
    if !more.title.is_empty() {
        text.title = more.title;
    }
    text.timeout_ms = more.timeout_ms.or(text.timeout_ms);
    text.idle_timeout_ms = more.idle_timeout_ms.or(text.idle_timeout_ms);
    text.model = more.model.or(text.model.take());
    text.words = more.words.or(text.words.take());
    text.route = by.string("route").or(text.route.take());
    text.may_write = more.may_write.or(text.may_write.take());
    text.data.extend(more.data);
}

/// Several reviewers, each a step below the review, which itself runs nothing.
fn panel(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    text: &StepText,
) -> Vec<Reviewer> {
    let mut reviewers: Vec<Reviewer> = Vec::new();
    for by in node.get("by").map(Node::elements).unwrap_or_default() {
        let Some(name) = names::reviewer_name(by) else { continue };
        let Some(word) = Word::of(by).or_else(|| by.word("role")) else { continue };
        let child = id.child(&name.text);
        if reviewers.iter().any(|reviewer| reviewer.step == child) {
            continue;
        }
        let role = unit.role_named(builder, &word);
        let agent = unit.agent_of(builder, if by.get("agent").is_some() { by } else { node }, &role);
        let pools = unit.pools_of(builder, node, Some((&role, &agent)));
        let mut child_text = StepText { writes: Vec::new(), ..text.clone() };
        let more = step::text(builder, unit, by, text.isolation);
        add(&mut child_text, more, by);
        let kind = Kind::Agent { role: role.id.clone(), agent: agent.clone() };
        let retry_of = if by.get("retry").is_some() { by } else { node };
        let mut step = step::below(builder, unit, place, retry_of, &name.text, kind, pools);
        step.writes = child_text.writes.iter().map(|write| ArtifactName::new(&write.name)).collect();
        step.checks = Vec::new();
        builder.insert(child.clone(), step, child_text, by);
        reviewers.push(Reviewer { step: child, role: role.id, agent });
    }
    reviewers
}

/// The routes; the one without a name takes the rest and is always there.
pub fn fixes(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    node: &Node,
    id: &StepId,
    of: &[StepId],
) -> Vec<FixRoute> {
    let Some(fix) = node.get("fix").filter(|fix| !fix.is_null()) else {
        return vec![FixRoute { route: None, steps: of.to_vec() }];
    };
    let is_routes = matches!(fix.value, NodeValue::Mapping(_)) && !is_inline(fix);
    if !is_routes {
        return vec![FixRoute { route: None, steps: fixers(builder, unit, place, fix, id) }];
    }
    let mut routes: Vec<FixRoute> = Vec::new();
    for (key, value) in fix.entries() {
        let steps = fixers(builder, unit, place, value, id);
        let route = (key.text != "default").then(|| key.text.clone());
        routes.push(FixRoute { route, steps });
    }
    if !routes.iter().any(|route| route.route.is_none()) {
        routes.push(FixRoute { route: None, steps: of.to_vec() });
    }
    routes
}

fn fixers(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    place: &Place<'_>,
    fix: &Node,
    id: &StepId,
) -> Vec<StepId> {
    let list: Vec<&Node> = match &fix.value {
        NodeValue::Sequence(elements) => elements.iter().collect(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number { .. }
        | NodeValue::String(_)
        | NodeValue::Mapping(_) => vec![fix],
    };
    let mut steps = Vec::new();
    for node in list {
        if is_inline(node) {
            steps.push(inline(builder, unit, place, node, id));
        } else if let Some(word) = Word::of(node) {
            steps.extend(unknown::called(builder, unit, place.scope, &word));
        }
    }
    steps
}

/// A fix written in place becomes a dormant step beside the review, in the same list.
fn inline(builder: &mut Builder<'_>, unit: &Unit<'_>, place: &Place<'_>, node: &Node, id: &StepId) -> StepId {
    let review = id.as_str().rsplit('/').next().unwrap_or_default();
    let name = fix_name(review, node);
    let beside = place.scope.id(&name);
    let text = step::text(builder, unit, node, place.isolation);
    let mut step = step::below(
        builder,
        unit,
        place,
        node,
        &name,
        Kind::Merge { of: id.clone(), repair: None },
        Vec::new(),
    );
    step::agent(builder, unit, node, &mut step);
    step.writes = text.writes.iter().map(|write| ArtifactName::new(&write.name)).collect();
    step.dormant = true;
    builder.insert(beside.clone(), step, text, node);
    builder.beside.push(beside.clone());
    beside
}
