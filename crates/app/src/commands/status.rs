//! `gatewright status` and `gatewright list`: where runs stand.

use gatewright_core::{
    explain,
    fact::IntrusionKind,
    ids::{RoleId, StepId, Timestamp},
    state::{DecisionStatus, Phase, Spent, State},
};
use gatewright_host::{
    clock::Clock,
    document::{self, SCHEMA_VERSION},
    perform::sandbox,
    store::{Broken, Listed, Snapshot, Survey, is_over},
};
use serde_json::{Value, json};

use crate::{
    cli::{ListArgs, StatusArgs},
    command_error::{CommandError, code_of_state, exit},
    definitions::Session,
    drive,
    live_tree::cost_words,
    render::{
        commands_for,
        rows::{in_plan_order, line, name_columns, rows},
        text::{columns, count, fit, iso, one_line, pad, put, put_json},
    },
    terminal::{self, Style, mark_of, paint, style_of},
};

const NO_RUNS: &str = "there are no runs in this project yet";

/// What to type when nothing is under way.
const BEGIN: &str = "hint: gatewright run quick \"what is to be done\" starts one, gatewright methods lists what else can be run\n\
                     hint: gatewright demo shows one in a scratch repository";

/// Items of a fan-out that `status` lists; the rest is in the counts and in `--json`.
const ITEMS_MAX: usize = 20;

pub fn status(args: &StatusArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let Some(run) = &args.run else { return open_runs(&session, args.json) };
    let id = store.find(run)?;
    drive::tidy(&session, &id);
    let snapshot = store.snapshot(&id, None)?;
    let word = snapshot.state_word();
    if args.json {
        put_json(&json_of(&snapshot, session.clock.now()))?;
    } else {
        put(human(&snapshot, session.clock.now(), terminal::width()).as_bytes())?;
    }
    Ok(code_of_state(word))
}

pub fn list(args: &ListArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let Survey { runs, mut broken } = session.store().survey()?;
    let runs = tidied(&session, runs, &mut broken);
    if args.json {
        put_json(&list_json(&runs, &broken))?;
        return Ok(exit::DONE);
    }
    if runs.is_empty() && broken.is_empty() {
        eprintln!("{NO_RUNS}\n\n{BEGIN}");
    }
    put(lines(&runs, session.clock.now(), terminal::width()).as_bytes())?;
    put(broken_lines(&broken).as_bytes())?;
    Ok(exit::DONE)
}

/// Brings the files of runs up to date that rest without a summary, and looks at those again.
fn tidied(session: &Session, runs: Vec<Listed>, broken: &mut Vec<Broken>) -> Vec<Listed> {
    let (store, mut all) = (session.store(), Vec::with_capacity(runs.len()));
    for run in runs {
        if run.summed_up || run.state == "running" || run.state == "interrupted" {
            all.push(run);
            continue;
        }
        drive::tidy(session, &run.meta.id);
        let id = run.meta.id.clone();
        match store.listed(run.meta) {
            Ok(again) => all.push(again),
            Err(error) => broken.push(store.broken(id, &error)),
        }
    }
    all
}

/// Runs that cannot be read: what is wrong and what helps.
fn broken_lines(broken: &[Broken]) -> String {
    let line = |run: &Broken| {
        let word = paint(Style::Red, "broken");
        format!("✗ {}  {word}  {}\n    {}\n", run.id, one_line(&run.problem), run.remedy)
    };
    broken.iter().map(line).collect()
}

/// Without a run: everything that is not over.
fn open_runs(session: &Session, as_json: bool) -> Result<u8, CommandError> {
    let (Survey { runs: open, broken }, over) = session.store().open_runs()?;
    if as_json {
        put_json(&list_json(&open, &broken))?;
        return Ok(exit::DONE);
    }
    if open.is_empty() && broken.is_empty() {
        if over == 0 {
            eprintln!("{NO_RUNS}\n\n{BEGIN}");
        } else {
            eprintln!("nothing is under way ({} over: gatewright list)\n\n{BEGIN}", count(over, "run"));
        }
    }
    put(lines(&open, session.clock.now(), terminal::width()).as_bytes())?;
    put(broken_lines(&broken).as_bytes())?;
    Ok(exit::DONE)
}

fn list_json(runs: &[Listed], broken: &[Broken]) -> Value {
    let list: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({
                "id": run.meta.id,
                "workflow": run.meta.workflow,
                "state": run.state,
                "dir": run.meta.run_dir,
                "request": run.meta.request,
                "started_at": time(Timestamp(started(run))),
                "updated_at": time(Timestamp(run.summary.updated_at_ms.max(started(run)))),
                "done": run.summary.done,
                "steps": run.summary.steps,
                "waiting_for": run.summary.waiting_for,
                "blocked_by": run.summary.blocked_by,
                "detached": run.meta.detached,
            })
        })
        .collect();
    let broken: Vec<Value> = broken
        .iter()
        .map(|run| json!({"id": run.id, "problem": run.problem, "remedy": run.remedy}))
        .collect();
    json!({"schema_version": SCHEMA_VERSION, "runs": list, "broken": broken})
}

fn started(run: &Listed) -> u64 {
    if run.summary.started_at_ms > 0 { run.summary.started_at_ms } else { run.meta.created_at_ms }
}

/// One line per run, aligned.
fn lines(runs: &[Listed], now: Timestamp, width: usize) -> String {
    let id_columns = runs.iter().map(|run| columns(&run.meta.id)).max().unwrap_or(0).min(44);
    let mut text = String::new();
    for run in runs {
        let since = terminal::duration(now.since(Timestamp(run.summary.updated_at_ms.max(started(run)))));
        let what = if !run.summary.waiting_for.is_empty() && !is_over(&run.state) {
            format!("waits for you: {}", run.summary.waiting_for.join(", "))
        } else {
            run.summary.blocked_by.clone().unwrap_or_else(|| run.meta.request.clone())
        };
        let head = format!("{} {}  ", mark_of(&run.state), pad(&fit(&run.meta.id, id_columns), id_columns));
        let steps = format!("{}/{}", run.summary.done, run.summary.steps);
        let tail = format!("  {steps:>7}  {:>8} ago  {}", since, one_line(&what));
        let room = width.saturating_sub(columns(&head) + 11);
        text.push_str(&format!(
            "{head}{}{}\n",
            paint(style_of(&run.state), &pad(&run.state, 11)),
            fit(&tail, room)
        ));
    }
    text
}

fn time(at: Timestamp) -> String {
    document::iso(at)
}

/// Milliseconds in these fields of a document as times people and programs read.
pub fn with_times(mut value: Value) -> Value {
    if let Value::Object(object) = &mut value {
        for key in ["started_at", "ended_at", "opened_at", "resolved_at", "at"] {
            if let Some(ms) = object.get(key).and_then(Value::as_u64) {
                object.insert(key.to_owned(), json!(time(Timestamp(ms))));
            }
        }
        if let Some(Value::Array(history)) = object.get_mut("history") {
            *history = history.drain(..).map(with_times).collect();
        }
    }
    value
}

fn json_of(snapshot: &Snapshot, now: Timestamp) -> Value {
    let Snapshot { meta, frozen, state, paths, .. } = snapshot;
    let plan = &frozen.plan;
    let steps: Vec<Value> = in_plan_order(plan, state)
        .iter()
        .filter_map(|one| {
            let own = state.steps.get(&one.id)?;
            let mut step = with_times(document::step(plan, state, &one.id, own));
            step["cost"] = document::spent(&own.spent);
            Some(step)
        })
        .collect();
    let fan_outs: Vec<Value> =
        state.fan_outs.keys().filter_map(|step| document::progress(state, step, now)).collect();
    let decisions: Vec<Value> =
        state.decisions.values().map(|pending| with_times(document::decision(pending))).collect();
    let waivers: Vec<Value> = state.waivers.iter().map(|waiver| with_times(json!(waiver))).collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "id": meta.id,
        "workflow": frozen.workflow,
        "profile": state.profile,
        "state": snapshot.state_word(),
        "dir": meta.run_dir,
        "state_dir": paths.dir,
        "request": meta.request,
        "started_at": time(started_at(snapshot)),
        "updated_at": time(state.updated_at.max(started_at(snapshot))),
        "held": snapshot.held,
        "detached": meta.detached,
        "steps": steps,
        "fan_outs": fan_outs,
        "decisions": decisions,
        "blocked_by": explain::blocked_by(plan, state),
        "waivers": waivers,
        "changed_files": state.changed.list(),
        "changed_files_left_out": state.changed.left_out,
        "intrusions": state.intrusions,
        "authentic": snapshot.authentic,
        "cost": cost_by_role(state),
        "unprotected": unprotected(snapshot),
    })
}

/// What the run has cost, and of it each role.
fn cost_by_role(state: &State) -> Value {
    let mut cost = document::cost(state);
    let known = state.spent_by_role.iter().filter(|(_, spent)| spent.launches > 0 || spent.unpriced > 0);
    let name = |role: &Option<RoleId>| role.as_ref().map_or_else(String::new, ToString::to_string);
    cost["roles"] = known.map(|(role, spent)| (name(role), document::spent(spent))).collect();
    cost
}

fn started_at(snapshot: &Snapshot) -> Timestamp {
    if snapshot.state.started_at.0 > 0 {
        snapshot.state.started_at
    } else {
        Timestamp(snapshot.meta.created_at_ms)
    }
}

fn unprotected(snapshot: &Snapshot) -> Vec<String> {
    sandbox::unprotected(&snapshot.frozen, &snapshot.meta.root, snapshot.paths.state_root())
}

fn human(snapshot: &Snapshot, now: Timestamp, width: usize) -> String {
    let Snapshot { meta, frozen, state, .. } = snapshot;
    let word = snapshot.state_word();
    let mut text =
        format!("{} {}  {}\n", mark_of(word), paint(Style::Bold, &meta.id), paint(style_of(word), word));
    let mut field = |name: &str, value: &str| {
        let value = fit(&one_line(value), width.saturating_sub(13).max(20));
        text.push_str(&format!("  {}  {value}\n", paint(Style::Dim, &pad(name, 9))));
    };
    field("workflow", &format!("{} ({})", frozen.workflow, state.profile));
    field("request", meta.request.lines().next().unwrap_or_default());
    field("since", &since(snapshot, now));
    field("cost", &cost(state));
    field("directory", &meta.run_dir.to_string_lossy());
    let open = unprotected(snapshot);
    if !open.is_empty() {
        field("protected", &format!("no: {}", open.join("; ")));
    }
    text.push('\n');
    let rows = rows(&frozen.plan, state, now, ITEMS_MAX);
    let names = name_columns(&rows);
    for row in &rows {
        text.push_str(&line(row, None, names, width.max(60)));
        text.push('\n');
    }
    text.push_str(&decisions(snapshot, now));
    text.push_str(&blocked(snapshot));
    text.push_str(&waivers(state));
    text.push_str(&changed_lists(state));
    text
}

/// Lists that say something else now than what is worked on, as long as that matters.
fn changed_lists(state: &State) -> String {
    let open = |step: &StepId| state.steps.get(step).is_some_and(|own| own.phase == Phase::Open);
    let mut text = String::new();
    for one in &state.intrusions {
        if one.kind == IntrusionKind::List && one.by.iter().any(open) {
            text.push_str(&format!("  ! {}\n", one_line(&one.what)));
        }
    }
    if text.is_empty() { text } else { format!("\n{}\n{text}", paint(Style::Bold, "changed lists")) }
}

/// What people let pass although it should not have, for ever.
pub fn waivers(state: &State) -> String {
    if state.waivers.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint(Style::Bold, "waivers"));
    for waiver in &state.waivers {
        let what = match (&waiver.obligation, &waiver.gate) {
            (Some(obligation), _) => format!("obligation {obligation}"),
            (None, Some(gate)) => format!("gate {gate} of {}", waiver.step),
            (None, None) => waiver.step.to_string(),
        };
        text.push_str(&format!("  ! {what}: {} ({})\n", one_line(&waiver.reason), iso(waiver.at)));
    }
    text
}

fn since(snapshot: &Snapshot, now: Timestamp) -> String {
    let started = started_at(snapshot);
    let updated = snapshot.state.updated_at.max(started);
    if snapshot.state.is_over() {
        return format!(
            "{}, took {}, ended {} ago",
            iso(started),
            terminal::duration(updated.since(started)),
            terminal::duration(now.since(updated))
        );
    }
    format!("{}, last change {} ago", iso(started), terminal::duration(now.since(updated)))
}

fn cost(state: &State) -> String {
    let spent = state.spent.get(&gatewright_core::state::ScopeId::top()).cloned().unwrap_or_default();
    spent_words(&spent, &cost_words(state))
}

/// Money, tokens and launches of a run or a step.
pub fn spent_words(spent: &Spent, money: &str) -> String {
    let mut parts = vec![money.trim_start_matches("cost ").to_owned()];
    match spent.known_tokens() {
        Some(0) => {}
        Some(tokens) => parts.push(format!("{tokens} tokens")),
        None => parts.push("tokens unknown".to_owned()),
    }
    parts.push(
        count(usize::try_from(spent.launches).unwrap_or(usize::MAX), "agent launch")
            .replace("launchs", "launches"),
    );
    parts.join(", ")
}

fn decisions(snapshot: &Snapshot, now: Timestamp) -> String {
    let state = &snapshot.state;
    let pending: Vec<_> =
        state.decisions.values().filter(|pending| pending.status == DecisionStatus::Pending).collect();
    if pending.is_empty() || state.is_over() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint(Style::Bold, "waiting for you"));
    for pending in pending {
        let ago = terminal::duration(now.since(pending.opened_at));
        text.push_str(&format!(
            "  ? {}: {}  (since {ago})\n",
            paint(Style::Yellow, pending.decision.id.as_str()),
            one_line(&pending.decision.question)
        ));
        for name in &pending.decision.show {
            text.push_str(&format!(
                "      see  gatewright show {} {}\n",
                snapshot.meta.id,
                crate::render::text::shell_word(name.as_str())
            ));
        }
        for command in commands_for::answers(&snapshot.meta.id, pending) {
            text.push_str(&format!("      {command}\n"));
        }
    }
    text
}

/// How far a run has come that nobody drives.
fn last_completed(state: &State) -> String {
    let passed = state.steps.iter().filter(|(_, own)| matches!(own.phase, Phase::Passed { .. }));
    match passed.max_by_key(|(_, own)| own.ended_at) {
        Some((id, _)) => format!("`{id}` was completed last"),
        None => "no step was completed".to_owned(),
    }
}

/// Why it does not go on, and the commands that help.
fn blocked(snapshot: &Snapshot) -> String {
    let word = snapshot.state_word();
    let interrupted = word == "interrupted";
    let by = explain::blocked_by(&snapshot.frozen.plan, &snapshot.state);
    let reason = match (&by, interrupted) {
        (_, true) => format!("interrupted: no engine drives it; {}", last_completed(&snapshot.state)),
        (Some(by), false) if word == "paused" => format!("paused: {}", one_line(&by.message)),
        (Some(by), false) => format!("{word} by {}: {}", by.reason, one_line(&by.message)),
        (None, false) => return String::new(),
    };
    let mut text = format!("\n{}\n", paint(style_of(word), &reason));
    for command in commands_for::remedies(&snapshot.meta.id, &snapshot.state, interrupted) {
        text.push_str(&format!("      {command}\n"));
    }
    text
}
