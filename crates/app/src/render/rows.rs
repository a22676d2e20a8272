//! A run as rows: stages, steps in the order of the plan, items below their fan-out. Pure over state.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    event::ItemEnd,
    ids::{StepId, Timestamp},
    plan::{Kind, Plan},
    state::{FanOutState, Phase, State, StepState},
};
use gatewright_host::document;

use crate::{
    render::text::{columns, fit, one_line, pad},
    terminal::{self, Style, mark_of, paint, style_of},
};

/// A step and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of its stage in the plan; none for steps of a profile that was left.
    pub stage: Option<usize>,
    pub depth: usize,
    pub id: StepId,
}

/// Every step that matters to a reader, in the order of the plan. Steps that run only when called for
/// and never were are left out.
pub fn in_plan_order(plan: &Plan, state: &State) -> Vec<Placed> {
    let mut below: BTreeMap<&StepId, Vec<&StepId>> = BTreeMap::new();
    for (id, own) in &state.steps {
        if let Some(owner) = &own.owner {
            below.entry(owner).or_default().push(id);
        }
    }
    let mut placed = Vec::with_capacity(state.steps.len());
    let graph = state.graph(plan);
    for (index, stage) in graph.stages.iter().enumerate() {
        for id in &stage.steps {
            place(plan, state, &below, id, Some(index), 0, &mut placed);
        }
    }
    let known: BTreeSet<StepId> = placed.iter().map(|one| one.id.clone()).collect();
    for (id, own) in &state.steps {
        if !known.contains(id) && own.attempts > 0 {
            placed.push(Placed { stage: None, depth: 0, id: id.clone() });
        }
    }
    placed
}

fn place(
    plan: &Plan,
    state: &State,
    below: &BTreeMap<&StepId, Vec<&StepId>>,
    id: &StepId,
    stage: Option<usize>,
    depth: usize,
    placed: &mut Vec<Placed>,
) {
    let Some(own) = state.steps.get(id) else { return };
    if own.phase == Phase::Dormant && own.attempts == 0 {
        return;
    }
    placed.push(Placed { stage, depth, id: id.clone() });
    let Some(children) = below.get(id) else { return };
    let keys: BTreeMap<&str, usize> = state
        .fan_outs
        .get(id)
        .map(|fan_out| fan_out.order.iter().enumerate().map(|(index, key)| (key.as_str(), index)).collect())
        .unwrap_or_default();
    let body = members(plan, state, id);
    let rank = |child: &StepId| {
        let own = state.steps.get(child);
        let key = own.and_then(|own| own.item.as_deref()).and_then(|key| keys.get(key)).copied();
        let within = own.and_then(|own| body.iter().position(|template| *template == own.template));
        (key.unwrap_or(usize::MAX), within.unwrap_or(usize::MAX))
    };
    let mut ranked: Vec<((usize, usize), &StepId)> =
        children.iter().map(|child| (rank(child), *child)).collect();
    ranked.sort();
    for (_, child) in ranked {
        place(plan, state, below, child, stage, depth + 1, placed);
    }
}

/// Templates of the steps that live below this one, in order.
fn members(plan: &Plan, state: &State, id: &StepId) -> Vec<StepId> {
    let Some(definition) = state.definition(plan, id) else { return Vec::new() };
    match &definition.kind {
        Kind::Review(review) => review.reviewers.iter().map(|reviewer| reviewer.step.clone()).collect(),
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => definition.body().to_vec(),
    }
}

/// Items that are through and whose times a row tells.
const ENDED_MAX: usize = 6;

/// How a fan-out stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemCounts {
    pub passed: usize,
    pub running: usize,
    pub pending: usize,
    pub failed: usize,
    pub blocked: usize,
}

impl ItemCounts {
    pub fn of(fan_out: &FanOutState) -> ItemCounts {
        let mut counts = ItemCounts::default();
        for item in fan_out.items.values() {
            match (&item.end, item.opened) {
                (Some(ItemEnd::Passed), _) => counts.passed += 1,
                (Some(ItemEnd::Failed { .. }), _) => counts.failed += 1,
                (Some(ItemEnd::Blocked { .. }), _) => counts.blocked += 1,
                (None, true) => counts.running += 1,
                (None, false) => counts.pending += 1,
            }
        }
        counts
    }

    pub fn words(&self) -> String {
        let all = self.passed + self.running + self.pending + self.failed + self.blocked;
        let mut words = format!("{} of {all} done", self.passed);
        for (number, word) in [
            (self.running, "running"),
            (self.pending, "pending"),
            (self.blocked, "blocked"),
            (self.failed, "failed"),
        ] {
            if number > 0 {
                words.push_str(&format!(", {number} {word}"));
            }
        }
        words
    }
}

/// One line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub depth: usize,
    /// A heading (stage) has no step.
    pub step: Option<StepId>,
    pub name: String,
    pub state: &'static str,
    /// Round, attempt, time, items.
    pub details: String,
    pub summary: String,
}

impl Row {
    /// Still to be watched, or in need of somebody.
    pub fn is_live(&self) -> bool {
        matches!(self.state, "running" | "waiting" | "blocked" | "failed")
    }
}

/// The rows of a run. Below a fan-out only items that are not through are shown, at most `items_max`.
pub fn rows(plan: &Plan, state: &State, now: Timestamp, items_max: usize) -> Vec<Row> {
    let placed = in_plan_order(plan, state);
    let graph = state.graph(plan);
    let named = graph.stages.len() > 1
        || graph.stages.first().is_some_and(|stage| !matches!(stage.id.as_str(), "" | "main" | "steps"));
    let mut rows = Vec::new();
    let mut stage_before = None;
    let mut items: BTreeMap<StepId, BTreeSet<String>> = BTreeMap::new();
    for one in &placed {
        let Some(own) = state.steps.get(&one.id) else { continue };
        if named && stage_before != Some(one.stage) {
            stage_before = Some(one.stage);
            rows.push(stage_row(
                state,
                one.stage.and_then(|index| graph.stages.get(index)),
                &placed,
                one.stage,
            ));
        }
        if hidden_item(state, &one.id, items_max, &mut items) {
            continue;
        }
        rows.push(step_row(plan, state, one, own, now, usize::from(named)));
    }
    rows
}

fn stage_row(
    state: &State,
    stage: Option<&gatewright_core::plan::Stage>,
    placed: &[Placed],
    index: Option<usize>,
) -> Row {
    let words: Vec<&str> = placed
        .iter()
        .filter(|one| one.stage == index && one.depth == 0)
        .filter_map(|one| Some(document::step_word(state, &one.id, state.steps.get(&one.id)?)))
        .collect();
    let has = |word: &str| words.contains(&word);
    let word = if words.iter().all(|word| *word == "skipped") {
        "skipped"
    } else if words.iter().all(|word| matches!(*word, "passed" | "passed_with_notes" | "skipped")) {
        if has("passed_with_notes") { "passed_with_notes" } else { "passed" }
    } else {
        ["failed", "blocked", "running", "waiting"].into_iter().find(|word| has(word)).unwrap_or("pending")
    };
    let restarts = stage.and_then(|stage| state.restarts.get(&stage.id)).copied().unwrap_or(0);
    let details = if restarts > 0 { format!("restarted {restarts}×") } else { String::new() };
    let name = stage.map_or_else(|| "left behind".to_owned(), |stage| one_line(stage.id.as_str()));
    let summary = stage.and_then(|stage| stage.disabled.as_deref()).map(one_line).unwrap_or_default();
    Row { depth: 0, step: None, name, state: word, details, summary }
}

/// Items that passed or wait are told by the counts of their fan-out; a pass with notes is always shown.
fn hidden_item(
    state: &State,
    id: &StepId,
    items_max: usize,
    shown: &mut BTreeMap<StepId, BTreeSet<String>>,
) -> bool {
    let mut at = state.steps.get(id);
    let noted = at.is_some_and(|own| matches!(&own.phase, Phase::Passed { notes } if !notes.is_empty()));
    while let Some(own) = at {
        if let (Some(owner), Some(key)) = (&own.owner, &own.item) {
            let Some(item) = state.fan_outs.get(owner).and_then(|fan_out| fan_out.items.get(key)) else {
                return true;
            };
            if !item.opened || (item.end == Some(ItemEnd::Passed) && !noted) {
                return true;
            }
            let keys = shown.entry(owner.clone()).or_default();
            if !keys.contains(key) && keys.len() >= items_max {
                return true;
            }
            keys.insert(key.clone());
        }
        at = own.owner.as_ref().and_then(|owner| state.steps.get(owner));
    }
    false
}

fn step_row(plan: &Plan, state: &State, one: &Placed, own: &StepState, now: Timestamp, indent: usize) -> Row {
    let parent = own.owner.as_ref().map(|owner| format!("{owner}/"));
    let name =
        parent.as_deref().and_then(|parent| one.id.as_str().strip_prefix(parent)).unwrap_or(one.id.as_str());
    Row {
        depth: one.depth + indent,
        step: Some(one.id.clone()),
        name: one_line(name),
        state: document::step_word(state, &one.id, own),
        details: details(plan, state, &one.id, own, now),
        summary: summary(own),
    }
}

fn details(plan: &Plan, state: &State, id: &StepId, own: &StepState, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if let Some(fan_out) = state.fan_outs.get(id) {
        parts.push(ItemCounts::of(fan_out).words());
        parts.extend(times_of_ended(state, id, fan_out));
    }
    let rounds = document::rounds(own);
    let limit = match state.definition(plan, id).map(|definition| &definition.kind) {
        Some(Kind::Review(review)) => Some(review.rounds_max),
        _ => None,
    };
    match limit {
        Some(limit) if rounds > 0 => parts.push(format!("round {rounds} of {}", limit.max(rounds))),
        Some(_) | None if rounds > 1 => parts.push(format!("round {rounds}")),
        Some(_) | None => {}
    }
    match &own.phase {
        Phase::Fixing => parts.push("findings are being fixed".to_owned()),
        Phase::Verifying { .. } => parts.push("checking".to_owned()),
        Phase::Backoff { .. } => parts.push("tries again".to_owned()),
        Phase::Running { attempt } if *attempt > 1 => parts.push(format!("attempt {attempt}")),
        _ if document::started(own) > 1 => parts.push(format!("{} attempts", document::started(own))),
        _ => {}
    }
    if let Some(ms) = elapsed(own, now) {
        parts.push(terminal::duration(ms));
    }
    parts.extend(stream_words(state, own, now));
    parts.join(", ")
}

/// How long the items that are through were at work, the last ones of the list.
fn times_of_ended(state: &State, id: &StepId, fan_out: &FanOutState) -> Option<String> {
    let took = |key: &String| {
        fan_out.items.get(key)?.end.as_ref()?;
        let (started, ended) = document::item_times(state, id, key);
        Some(format!("{} {}", one_line(key), terminal::duration(ended?.since(started?))))
    };
    let all: Vec<String> = fan_out.order.iter().filter_map(took).collect();
    let more = all.len().saturating_sub(ENDED_MAX);
    let last = all.get(more..).filter(|last| !last.is_empty())?.join(", ");
    Some(if more > 0 { format!("took: {more} more, {last}") } else { format!("took: {last}") })
}

/// How long the item that a live step belongs to has been at work, all its steps together.
fn stream_words(state: &State, own: &StepState, now: Timestamp) -> Option<String> {
    let (owner, key) = (own.owner.as_ref()?, own.item.as_ref()?);
    if !matches!(own.phase, Phase::Running { .. } | Phase::Verifying { .. } | Phase::Open) {
        return None;
    }
    let started = document::item_times(state, owner, key).0?;
    Some(format!("{key} for {}", terminal::duration(now.since(started))))
}

/// How long a step has been at work, or was.
fn elapsed(own: &StepState, now: Timestamp) -> Option<u64> {
    let started = own.started_at?;
    match &own.phase {
        Phase::Running { .. } | Phase::Verifying { .. } | Phase::Open => Some(now.since(started)),
        Phase::Passed { .. } | Phase::Failed { .. } | Phase::Blocked { .. } => {
            own.ended_at.map(|ended| ended.since(started))
        }
        Phase::Dormant
        | Phase::Pending
        | Phase::Gated
        | Phase::Ready
        | Phase::Backoff { .. }
        | Phase::Waiting
        | Phase::Fixing
        | Phase::Skipped { .. } => None,
    }
}

fn summary(own: &StepState) -> String {
    let text = match &own.phase {
        Phase::Failed { message } | Phase::Blocked { message, .. } => message.clone(),
        Phase::Skipped { reason, .. } => reason.clone(),
        Phase::Passed { notes } if !notes.is_empty() => format!("{} ({})", own.summary, notes.join("; ")),
        _ => own.summary.clone(),
    };
    one_line(text.trim())
}

/// The row as text: mark, name, state, details, summary; at most so many columns.
pub fn line(row: &Row, mark: Option<&str>, name_columns: usize, width: usize) -> String {
    let indent = "  ".repeat(row.depth);
    let mark = mark.unwrap_or_else(|| mark_of(row.state));
    let name = pad(&row.name, name_columns.saturating_sub(columns(&indent)));
    let word = row.state.replace('_', " ");
    let mut tail = row.details.clone();
    if !row.summary.is_empty() {
        tail = if tail.is_empty() { row.summary.clone() } else { format!("{tail} · {}", row.summary) };
    }
    let head = format!("{indent}{mark} {name}  ");
    let used = columns(&head) + 18;
    let tail = fit(&tail, width.saturating_sub(used).max(8));
    let head =
        if row.step.is_none() { format!("{indent}{mark} {}  ", paint(Style::Bold, &name)) } else { head };
    format!("{head}{}{tail}", paint(style_of(row.state), &pad(&word, 18))).trim_end().to_owned()
}

/// Columns that the names of these rows need.
pub fn name_columns(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.depth * 2 + columns(&row.name)).max().unwrap_or(0).min(48)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NOW, Sample};

    fn tree(sample: &Sample) -> String {
        let rows = rows(&sample.frozen.plan, &sample.state, NOW, 20);
        let names = name_columns(&rows);
        rows.iter().map(|row| line(row, None, names, 100) + "\n").collect()
    }

    #[test]
    fn a_run_in_the_middle_of_a_fan_out() {
        let mut sample = Sample::in_the_middle();
        sample.ends("tasks/T-1/code", "coded");
        let expected = [
            "✓ design          passed",
            "  ✓ plan          passed            2.0s · Three \\u{1b}[31mtasks",
            "  ✓ agree         passed",
            "▶ build           running",
            "  ▶ tasks         running           0 of 3 done, 2 running, 1 pending",
            "    ✓ T-1/code    passed            5.0s · coded",
            "    ▶ T-1/review  running           48.0s, T-1 for 53.0s",
            "    ▶ T-2/code    running           53.0s, T-2 for 53.0s",
            "    · T-2/review  pending",
        ];
        assert_eq!(tree(&sample).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn items_that_are_through_are_only_counted() {
        let mut sample = Sample::in_the_middle();
        sample.ends("tasks/T-1/code", "coded");
        sample.ends("tasks/T-1/review", "fine");
        let shown = tree(&sample);
        assert!(shown.contains("1 of 3 done, 2 running, took: T-1 ") && !shown.contains("T-1/"), "{shown}");
        let placed = in_plan_order(&sample.frozen.plan, &sample.state);
        let ids: Vec<&str> = placed.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids[..5], ["plan", "agree", "tasks", "tasks/T-1/code", "tasks/T-1/review"]);
    }
}
