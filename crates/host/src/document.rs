//! The run as one JSON document: what templates, expressions, projections and `status --json` see.
//!
//! Everything in it comes from the journal, so that a projection rebuilt later has the same bytes.

use gatewright_core::{
    event::{About, Cause, ItemEnd},
    explain,
    ids::{StepId, Timestamp},
    plan::{Kind, Plan},
    state::{DecisionState, Phase, ScopeId, Spent, State, StepState},
};
use gatewright_workflow::{
    frozen::{ATTEMPT_TIMEOUT_MS, Frozen},
    isolate::is_errand,
    template::filters::slug,
};
use serde_json::{Map, Value, json};

use crate::run_meta::{self, RunMeta};

/// Which steps are in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    All,
    /// The outermost steps and those beside this one: enough for a prompt, and its cost does not
    /// grow with the number of items of a fan-out.
    Around(&'a StepId),
}

/// Version of the document, and of `--json`.
pub const SCHEMA_VERSION: u32 = 1;

pub fn document(frozen: &Frozen, meta: &RunMeta, state: &State, extent: Extent<'_>) -> Value {
    let plan = &frozen.plan;
    let scope = match extent {
        Extent::All => None,
        Extent::Around(step) => state.steps.get(step).map(|own| own.scope.clone()),
    };
    let shown =
        |own: &StepState| extent == Extent::All || own.scope.is_top() || Some(&own.scope) == scope.as_ref();
    let mut steps = Map::new();
    let mut list = Vec::new();
    for (id, own) in state.steps.iter().filter(|(_, own)| shown(own)) {
        let mut value = step(plan, state, id, own);
        value["timeout_ms"] = json!(timeout_ms(frozen, state, id, own));
        steps.insert(id.to_string(), value.clone());
        list.push(value);
    }
    let decisions: Vec<Value> = state.decisions.values().map(decision).collect();
    let mut document = json!({
        "request": state.request,
        "workflow": frozen.workflow,
        "slug": slug(&state.request),
        "profile": state.profile,
        "settings": frozen.settings_of(&state.profile),
        "run": {
            "id": meta.id,
            "dir": relative_dir(meta),
            "dir_absolute": meta.run_dir,
            "root": meta.root,
            "workflow": frozen.workflow,
            "profile": state.profile,
            "request": state.request,
            "state": status_word(state),
            "started_at": state.started_at.0,
            "updated_at": state.updated_at.0,
            "ended_at": if state.is_over() { json!(state.updated_at.0) } else { Value::Null },
            "reason": ended_reason(state),
            "branch": meta.surroundings.as_ref().and_then(|around| around.branch.clone()),
            "commit": meta.surroundings.as_ref().and_then(|around| around.commit.clone()),
            "looked_at": meta.surroundings.as_ref().map(|around| around.looked_at_ms),
            "changed_files": state.changed.list(),
            "pull_request": !frozen.pull_request.is_empty(),
            "worktree": meta.worktree,
            "own_branch": own_branch(meta),
            "continues": meta.continues.as_ref().map(|before| &before.run),
            "imported": meta.imported,
            "before": meta.continues.as_ref().map_or(&[][..], |before| &before.decisions),
        },
        "detected": detected(frozen, meta),
        "steps": steps,
        "step_list": list,
        "stages": stages(plan, state),
        "decisions": decisions,
        "waivers": state.waivers,
        "cost": cost(state),
        "blocked_by": explain::blocked_by(plan, state),
    });
    if let Value::Object(object) = &mut document {
        object.insert("artifacts".to_owned(), artifacts(state, scope.as_ref()));
        object.insert("fan_outs".to_owned(), fan_outs(state, extent));
        object.insert("edges".to_owned(), edges(plan, state, extent));
    }
    document
}

/// Takes out what the engine added for a run beside another one: files in a method's own format know only
/// the steps of the method.
pub fn hide_errands(meta: &RunMeta, document: &mut Value) {
    if !meta.isolated {
        return;
    }
    let names = |value: &Value, key: &str| value[key].as_str().is_some_and(is_errand);
    if let Some(steps) = document["steps"].as_object_mut() {
        steps.retain(|id, _| !is_errand(id));
    }
    for (list, key) in [("step_list", "id"), ("stages", "id"), ("edges", "to")] {
        if let Some(list) = document[list].as_array_mut() {
            list.retain(|one| !names(one, key));
        }
    }
}

/// The run directory relative to the repository, as agents and people name it.
pub fn relative_dir(meta: &RunMeta) -> String {
    meta.run_dir.strip_prefix(&meta.root).unwrap_or(&meta.run_dir).to_string_lossy().into_owned()
}

/// The branch on which a run works that has one, as people know it.
fn own_branch(meta: &RunMeta) -> Option<String> {
    let usual = || crate::streams::place::run_branch(&meta.id);
    meta.isolated.then(|| meta.branch.clone().unwrap_or_else(usual))
}

/// A run of an earlier version did not look; it is looked for now.
fn detected(frozen: &Frozen, meta: &RunMeta) -> Value {
    match &meta.surroundings {
        Some(around) => json!(around.detected),
        None => json!(run_meta::detect(&meta.root, &frozen.detect)),
    }
}

fn ended_reason(state: &State) -> String {
    match &state.phase {
        gatewright_core::state::RunPhase::Ended { reason, .. } => reason.clone(),
        _ => String::new(),
    }
}

/// The run's state in the words of the outside; `interrupted` is the reader's to find out.
pub fn status_word(state: &State) -> &'static str {
    use gatewright_core::state::RunStatus;
    match state.status() {
        RunStatus::Running => "running",
        RunStatus::Waiting => "waiting",
        RunStatus::Blocked => "blocked",
        RunStatus::Paused => "paused",
        RunStatus::Done => "done",
        RunStatus::Failed => "failed",
        RunStatus::Abandoned => "abandoned",
    }
}

/// A step's state in the words of the outside. A group of which only questions to people are left waits.
pub fn step_word(state: &State, id: &StepId, own: &StepState) -> &'static str {
    match &own.phase {
        Phase::Open if state.waits_inside(id) => "waiting",
        Phase::Dormant | Phase::Pending | Phase::Gated | Phase::Ready | Phase::Fixing => "pending",
        Phase::Running { .. } | Phase::Verifying { .. } | Phase::Backoff { .. } | Phase::Open => "running",
        Phase::Waiting => "waiting",
        Phase::Passed { notes } if notes.is_empty() => "passed",
        Phase::Passed { .. } => "passed_with_notes",
        Phase::Failed { .. } => "failed",
        Phase::Blocked { .. } => "blocked",
        Phase::Skipped { .. } => "skipped",
    }
}

/// Attempts that were really started; a number that an unusable input used up is not one.
pub fn started(own: &StepState) -> u32 {
    let at_work = matches!(own.phase, Phase::Running { .. } | Phase::Verifying { .. });
    own.attempts.saturating_sub(own.not_started).max(u32::from(at_work))
}

/// How often a review judged, or how often other work was sent round.
pub fn rounds(own: &StepState) -> u32 {
    match &own.review {
        Some(looped) => looped.rounds_done,
        None if own.attempts == 0 => 0,
        None => own.round,
    }
}

/// How often a review judges at most, or how often a merge is mended.
fn rounds_max(kind: &Kind) -> Option<u32> {
    match kind {
        Kind::Review(review) => Some(review.rounds_max),
        Kind::Merge { repair, .. } => repair.as_ref().map(|repair| repair.rounds_max),
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => None,
    }
}

/// The longest attempt of an agent at this step; none where no agent works.
fn timeout_ms(frozen: &Frozen, state: &State, id: &StepId, own: &StepState) -> Option<u64> {
    let agent = state.definition(&frozen.plan, id)?.agent()?;
    let text = frozen.steps.get(&state.profile).and_then(|texts| texts.get(&own.template));
    let of_agent = || frozen.agents.get(agent).and_then(|agent| agent.timeout_ms);
    let said = text.and_then(|text| text.timeout_ms).or_else(of_agent);
    Some(said.unwrap_or(ATTEMPT_TIMEOUT_MS))
}

fn kind_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Agent { .. } => "agent",
        Kind::Review(_) => "review",
        Kind::Check { .. } => "check",
        Kind::Decision(_) => "decision",
        Kind::FanOut(_) => "fan_out",
        Kind::Merge { .. } => "merge",
        Kind::Finish { .. } => "finish",
        Kind::SubRun { .. } => "sub_run",
    }
}

pub fn step(plan: &Plan, state: &State, id: &StepId, own: &StepState) -> Value {
    let definition = state.definition(plan, id);
    let (notes, message) = match &own.phase {
        Phase::Passed { notes } => (notes.clone(), Value::Null),
        Phase::Failed { message } | Phase::Blocked { message, .. } => (Vec::new(), json!(message)),
        Phase::Skipped { reason, .. } => (Vec::new(), json!(reason)),
        _ => (Vec::new(), Value::Null),
    };
    let judged = own.review.as_ref().map(|looped| {
        let findings: Vec<_> = looped.verdicts.values().flat_map(|judgement| &judgement.findings).collect();
        (looped.verdicts.values().map(|judgement| judgement.verdict).max(), json!(findings), &looped.verdicts)
    });
    let history: Vec<Value> = judged
        .iter()
        .flat_map(|(_, _, verdicts)| verdicts.iter())
        .map(|(reviewer, judgement)| json!({"reviewer": reviewer, "round": judgement.round, "verdict": judgement.verdict, "findings": judgement.findings}))
        .collect();
    json!({
        "id": id,
        "name": definition.map(|definition| definition.name.clone()),
        "kind": definition.map(|definition| kind_word(&definition.kind)),
        "stage": definition.map(|definition| definition.stage.clone()),
        "role": definition.and_then(|definition| definition.role().cloned()),
        "agent": definition.and_then(|definition| definition.agent().cloned()),
        "state": step_word(state, id, own),
        "dormant": own.phase == Phase::Dormant,
        "round": own.round,
        "rounds": rounds(own),
        "visit": own.visit,
        "attempts": started(own),
        "attempts_max": definition.map(|definition| definition.retry.attempts_max),
        "rounds_max": definition.and_then(|definition| rounds_max(&definition.kind)),
        "item": own.item,
        "parent": own.owner,
        "summary": own.summary,
        "word": own.word,
        "base": own.launched.as_ref().and_then(|launched| launched.1.commit.clone()),
        "model": own.launched.as_ref().and_then(|launched| launched.1.model.clone()),
        "hints": own.hints.values().flatten().map(crate::hints::update).collect::<Vec<_>>(),
        "notes": notes,
        "message": message,
        "checks": own.checks,
        "why": own.cause.as_ref().map(|cause| self::cause(Some(cause))["why"].clone()),
        "commit": own.commit,
        "verdict": judged.as_ref().and_then(|(verdict, _, _)| *verdict),
        "findings": judged.map_or_else(|| json!([]), |(_, findings, _)| findings),
        "verdicts": history,
        "history": own.review.as_ref().map_or_else(|| json!([]), |looped| json!(looped.history)),
        "failure": own.last_failure.as_ref().map(|failure| json!({"class": failure.class, "message": failure.message})),
        "started_at": own.started_at.map(|at| at.0),
        "ended_at": own.ended_at.map(|at| at.0),
    })
}

pub fn decision(pending: &DecisionState) -> Value {
    let about = match &pending.decision.about {
        About::Step => "step",
        About::Question { .. } => "question",
        About::Exhausted { .. } => "exhausted",
        About::Gate { .. } => "gate",
        About::HandEdit { .. } => "hand_edit",
        About::List { .. } => "list",
        About::PingPong { .. } => "ping_pong",
        About::HardStop => "hard_stop",
        About::Stalled => "stalled",
        About::Notes => "notes",
        About::Obligation { .. } => "obligation",
    };
    let history: Vec<Value> = pending
        .history
        .iter()
        .map(|(answer, comment, at)| json!({"answer": answer, "comment": comment, "at": at.0}))
        .collect();
    json!({
        "id": pending.decision.id,
        "step": pending.decision.step,
        "about": about,
        "status": pending.status.word(),
        "question": pending.decision.question,
        "answers": pending.decision.answers.iter().map(|answer| answer.word.clone()).collect::<Vec<_>>(),
        "show": pending.decision.show,
        "bound": pending.decision.bound,
        "answer": pending.answer,
        "said": pending.said,
        "comment": pending.comment,
        "route": pending.route,
        "chosen": pending.chosen,
        "reason": pending.reason,
        "opened_at": pending.opened_at.0,
        "resolved_at": pending.resolved_at.map(|at| at.0),
        "history": history,
    })
}

fn stages(plan: &Plan, state: &State) -> Vec<Value> {
    state
        .graph(plan)
        .stages
        .iter()
        .map(|stage| {
            let word = if stage.disabled.is_some() { "skipped" } else { stage_word(state, &stage.steps) };
            json!({"id": stage.id, "state": word, "steps": stage.steps, "restarts": state.restarts.get(&stage.id).copied().unwrap_or(0), "disabled": stage.disabled})
        })
        .collect()
}

/// How the steps of a stage stand, taken together.
fn stage_word(state: &State, steps: &[StepId]) -> &'static str {
    let known = steps.iter().filter_map(|id| state.steps.get(id).map(|own| (id, own)));
    let begun: Vec<_> = known.filter(|(_, own)| own.phase != Phase::Dormant).collect();
    if begun.iter().all(|(_, own)| own.phase.is_satisfied()) {
        return "passed";
    }
    if begun.iter().all(|(_, own)| own.phase == Phase::Pending) {
        return "pending";
    }
    let words: Vec<&str> = begun.iter().map(|(id, own)| step_word(state, id, own)).collect();
    let at_work = begun
        .iter()
        .any(|(_, own)| own.phase.is_active() && !matches!(own.phase, Phase::Waiting | Phase::Open));
    if words.contains(&"blocked") {
        "blocked"
    } else if words.contains(&"waiting") && !words.contains(&"running") && !at_work {
        "waiting"
    } else {
        "running"
    }
}

fn artifacts(state: &State, scope: Option<&ScopeId>) -> Value {
    let shown = |step: &StepId| {
        scope.is_none()
            || state.steps.get(step).is_none_or(|own| own.scope.is_top() || Some(&own.scope) == scope)
    };
    let entries = state.artifacts.iter().filter(|(_, artifact)| shown(&artifact.step)).map(|(name, artifact)| {
        let value = json!({"name": name, "step": artifact.step, "attempt": artifact.attempt, "hash": artifact.hash, "adopted": artifact.adopted});
        (name.to_string(), value)
    });
    Value::Object(entries.collect())
}

/// How the items of a fan-out stand, and how long each has been at work. `now` is for those that still are.
pub fn progress(state: &State, step: &StepId, now: Timestamp) -> Option<Value> {
    let fan_out = state.fan_outs.get(step)?;
    let mut counts = [("done", 0_u64), ("running", 0), ("pending", 0), ("blocked", 0), ("failed", 0)];
    let mut items = Vec::new();
    for key in &fan_out.order {
        let Some(item) = fan_out.items.get(key) else { continue };
        let word = item_word(item);
        let counted = if word == "passed" { "done" } else { word };
        for (_, count) in counts.iter_mut().filter(|(name, _)| *name == counted) {
            *count += 1;
        }
        let (started, ended) = item_times(state, step, key);
        let until = if item.end.is_some() { ended } else { started.map(|_| now) };
        let elapsed = started.zip(until).map(|(from, until)| until.since(from));
        items.push(json!({
            "key": key, "state": word, "needs": item.needs, "wave": item.wave,
            "started_at": started.map(iso), "elapsed_ms": elapsed,
        }));
    }
    let mut value = json!({"step": step, "items": items, "total": fan_out.items.len()});
    if let Value::Object(object) = &mut value {
        object.extend(counts.map(|(name, count)| (name.to_owned(), json!(count))));
    }
    Some(value)
}

/// When the first step of an item began and the last one ended.
pub fn item_times(state: &State, step: &StepId, key: &str) -> (Option<Timestamp>, Option<Timestamp>) {
    let steps = || item_steps(state, step, key);
    (steps().filter_map(|own| own.started_at).min(), steps().filter_map(|own| own.ended_at).max())
}

fn item_steps<'a>(state: &'a State, step: &StepId, key: &str) -> impl Iterator<Item = &'a StepState> {
    let prefix = format!("{step}/{key}/");
    let from = state.steps.range(StepId::new(&prefix)..);
    from.take_while(move |(id, _)| id.as_str().starts_with(&prefix)).map(|(_, own)| &**own)
}

fn item_word(item: &gatewright_core::state::ItemState) -> &'static str {
    match (&item.end, item.opened) {
        (Some(ItemEnd::Passed), _) => "passed",
        (Some(ItemEnd::Failed { .. }), _) => "failed",
        (Some(ItemEnd::Blocked { .. }), _) => "blocked",
        (None, true) => "running",
        (None, false) => "pending",
    }
}

/// What the items of fan-outs came to, in the order of the list, failures included. A step sees the fan-outs
/// beside it, so that the cost of a step inside one does not grow with the number of items.
fn fan_outs(state: &State, extent: Extent<'_>) -> Value {
    let scope = |step: &StepId| state.steps.get(step).map(|own| &own.scope);
    let is_seen = |fan_out: &StepId| match extent {
        Extent::All => true,
        // The one around it as well: what other items came to.
        Extent::Around(step) => {
            scope(fan_out) == scope(step)
                || state.steps.get(step).and_then(|own| own.owner.as_ref()) == Some(fan_out)
        }
    };
    let entries = state.fan_outs.iter().filter(|(step, _)| is_seen(step)).map(|(step, fan_out)| {
        let items: Vec<Value> = fan_out
            .order
            .iter()
            .filter_map(|key| fan_out.items.get(key).map(|item| (key, item)))
            .map(|(key, item)| {
                json!({
                    "key": key, "state": item_word(item), "needs": item.needs, "wave": item.wave,
                    "summary": item_summary(state, step, key), "message": item_message(state, item),
                })
            })
            .collect();
        (step.to_string(), json!(items))
    });
    Value::Object(entries.collect())
}

/// What waits for what: `from` must have passed before `to` starts. The first steps of an item wait for the last
/// ones of the items that it needs.
fn edges(plan: &Plan, state: &State, extent: Extent<'_>) -> Value {
    let mut edges = Vec::new();
    if extent != Extent::All {
        return json!(edges);
    }
    let needs = |own: &StepState, id: &StepId| -> Vec<StepId> {
        let needs = state.definition(plan, id).map(|definition| definition.needs.clone()).unwrap_or_default();
        needs.iter().map(|edge| state.sibling(plan, own, &edge.from)).collect()
    };
    for (id, own) in state.steps.iter().filter(|(_, own)| own.phase != Phase::Dormant) {
        let wanted = needs(own, id);
        edges.extend(wanted.iter().map(|from| json!({"from": from, "to": id})));
    }
    let needed: std::collections::BTreeSet<String> =
        edges.iter().filter_map(|edge| edge["from"].as_str().map(str::to_owned)).collect();
    for (id, own) in state.steps.iter().filter(|(_, own)| own.phase != Phase::Dormant) {
        let (Some(owner), Some(key)) = (&own.owner, &own.item) else { continue };
        if !needs(own, id).is_empty() {
            continue;
        }
        let before = state.fan_outs.get(owner).and_then(|fan_out| fan_out.items.get(key));
        for need in before.map(|item| item.needs.clone()).unwrap_or_default() {
            let prefix = format!("{owner}/{need}/");
            let ends = state.steps.keys().filter(|other| other.as_str().starts_with(&prefix));
            edges.extend(
                ends.filter(|other| !needed.contains(other.as_str()))
                    .map(|from| json!({"from": from, "to": id})),
            );
        }
    }
    json!(edges)
}

/// The sentence of the step of an item that ended last.
fn item_summary(state: &State, step: &StepId, key: &str) -> String {
    let ended = item_steps(state, step, key).filter(|own| own.ended_at.is_some());
    let last = ended.filter(|own| !own.summary.is_empty()).max_by_key(|own| own.ended_at);
    last.map(|own| own.summary.clone()).unwrap_or_default()
}

/// Why an item did not pass; empty if it did, or has not ended.
fn item_message(state: &State, item: &gatewright_core::state::ItemState) -> String {
    match &item.end {
        Some(ItemEnd::Failed { by }) => {
            let said = by.iter().filter_map(|step| {
                let own = state.steps.get(step)?;
                let why = own.last_failure.as_ref().map(|failure| failure.message.as_str());
                Some(format!("{step}: {}", why.unwrap_or_default()))
            });
            said.collect::<Vec<_>>().join("; ")
        }
        Some(ItemEnd::Blocked { by }) => format!("waits for what did not pass: {}", by.join(", ")),
        Some(ItemEnd::Passed) | None => String::new(),
    }
}

/// What was spent; a cost that nobody told is not zero (J-43).
pub fn cost(state: &State) -> Value {
    let spent = state.spent.get(&ScopeId::top()).cloned().unwrap_or_default();
    let budget = state.budgets.get(&ScopeId::top()).cloned().unwrap_or_default();
    json!({
        "usd": spent.known_micro_usd().map(|micro| micro as f64 / 1e6),
        "unpriced_attempts": spent.unpriced,
        "tokens": spent.known_tokens(),
        "launches": spent.launches,
        "wall_ms": gatewright_core::wall_ms(&spent, state.updated_at),
        "limits": {"usd": budget.micro_usd.map(|micro| micro as f64 / 1e6), "tokens": budget.tokens, "launches": budget.launches, "wall_ms": budget.wall_ms, "quota_wait_ms": budget.quota_wait_ms},
    })
}

/// What one step or one role has spent.
pub fn spent(spent: &Spent) -> Value {
    json!({
        "usd": spent.known_micro_usd().map(|micro| micro as f64 / 1e6),
        "unpriced_attempts": spent.unpriced,
        "tokens": spent.known_tokens(),
        "launches": spent.launches,
    })
}

/// Why a step runs again, for its prompt.
pub fn cause(cause: Option<&Cause>) -> Value {
    match cause {
        None => Value::Null,
        Some(Cause::Fix { review, findings }) => {
            json!({"why": "fix", "review": review, "findings": findings})
        }
        Some(Cause::Changes { decision, comment }) => {
            json!({"why": "changes", "decision": decision, "comment": comment})
        }
        Some(Cause::ReferredBack { from, reason }) => {
            json!({"why": "referred_back", "from": from, "reason": reason})
        }
        Some(Cause::Upstream { step }) => json!({"why": "upstream", "step": step}),
        Some(Cause::Restart { stage, reason }) => json!({"why": "restart", "stage": stage, "reason": reason}),
        Some(Cause::BadList { reason }) => json!({"why": "bad_list", "reason": reason}),
        Some(Cause::ListAdopted { decision }) => json!({"why": "list_adopted", "decision": decision}),
        Some(Cause::Resumed) => json!({"why": "resumed"}),
        Some(Cause::Stale { changed }) => json!({"why": "stale", "changed": changed}),
    }
}

/// Milliseconds as people read them.
pub fn iso(at: Timestamp) -> String {
    i64::try_from(at.0)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| at.0.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use gatewright_core::{decide, input::Input};
    use gatewright_workflow::{
        config::Config,
        lint::known::{STEP_FIELDS, is_known},
        load::{LoadOptions, MapSources, load},
    };

    use super::*;

    /// A name that lint does not know is reported as a mistake wherever somebody uses it.
    #[test]
    fn lint_knows_every_name_of_the_document() {
        let text = "workflow: flow\nchecks: { ok: 'true' }\nsteps: [ { id: ok, check: ok } ]\n";
        let config = Config::default();
        let loaded = load("flow.yaml", text, &MapSources::default(), &LoadOptions::new(&config));
        let frozen = loaded.frozen.unwrap();
        let meta: RunMeta = serde_json::from_value(json!({
            "version": 1, "id": "flow-1", "workflow": "flow", "root": "/r", "run_dir": "/r/d",
            "request": "x", "created_at_ms": 0, "digest": "", "detached": false,
        }))
        .unwrap();
        let mut state = State::new(&frozen.plan);
        let start = Input::Start {
            run: "flow-1".to_owned(),
            request: "x".to_owned(),
            beginning: gatewright_core::event::Beginning::default(),
        };
        for event in decide(&frozen.plan, &state, &start, Timestamp(1)).unwrap() {
            state.apply(&frozen.plan, &event, Timestamp(1));
        }
        let document = document(&frozen, &meta, &state, Extent::All);
        for (name, value) in document.as_object().unwrap() {
            assert!(is_known(&[name]), "{name}");
            let fields = if matches!(name.as_str(), "run" | "cost") { value.as_object() } else { None };
            for field in fields.into_iter().flatten() {
                assert!(is_known(&[name, field.0]), "{name}.{}", field.0);
            }
        }
        for field in document["step_list"][0].as_object().unwrap().keys() {
            assert!(STEP_FIELDS.contains(&field.as_str()), "{field}");
        }
    }
}
