//! `gatewright hook EVENT`: called by an agent's own program when a session starts or its memory is about to be
//! compacted. It tells what is under way, in the dialect of the caller, and is silent when nothing is. It never
//! fails and never blocks: whatever goes wrong here must not stop somebody's work.

pub mod install;

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Read as _},
    path::Path,
};

use gatewright_attempts::Git;
use gatewright_core::{
    event::Pause,
    ids::ArtifactName,
    state::{Artifact, RunPhase, State},
    transition,
};
use gatewright_host::{
    document,
    store::{Listed, RunStore, Snapshot},
};
use serde_json::{Value, json};

use crate::{
    cli::{Harness, HookArgs, HookEvent},
    command_error::{CommandError, exit},
    definitions::Session,
    worktree_warning,
};

const INPUT_MAX: u64 = 1024 * 1024;
const RUNS_MAX: usize = 5;
const FILES_MAX: usize = 20;
const STEPS_MAX: usize = 40;

pub fn hook(args: &HookArgs) -> Result<u8, CommandError> {
    let input = input();
    let harness = args.harness.unwrap_or_else(|| harness_of(&input));
    if let Some(folder) = input.get("cwd").and_then(Value::as_str) {
        // A folder that is gone is no reason to complain.
        let _ = std::env::set_current_dir(folder);
    }
    if let Some(text) = told(args.event) {
        println!("{}", in_dialect(harness, args.event, &text));
    }
    Ok(exit::DONE)
}

/// What the caller says about itself; nothing if it says nothing that can be read.
fn input() -> Value {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Value::Null;
    }
    let mut text = String::new();
    let _ = stdin.lock().take(INPUT_MAX).read_to_string(&mut text);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Codex sends what Claude Code does and the number of the turn; Copilot names nothing with underscores.
fn harness_of(input: &Value) -> Harness {
    let has = |key: &str| input.get(key).is_some();
    if has("hook_event_name") && has("turn_id") {
        Harness::Codex
    } else if has("hook_event_name") || has("session_id") || !has("timestamp") {
        Harness::Claude
    } else {
        Harness::Copilot
    }
}

fn in_dialect(harness: Harness, event: HookEvent, text: &str) -> String {
    match (harness, event) {
        (Harness::Copilot, _) => json!({"additionalContext": text}).to_string(),
        (Harness::Claude | Harness::Codex, HookEvent::SessionStart) => {
            json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
                .to_string()
        }
        // There the output itself is added to the instructions for the compaction.
        (Harness::Claude, HookEvent::PreCompact) => text.to_owned(),
        (Harness::Codex, HookEvent::PreCompact) => json!({"systemMessage": text}).to_string(),
    }
}

/// What is to be told; nothing if no run is under way or none can be read.
fn told(event: HookEvent) -> Option<String> {
    let own = std::env::var("GATEWRIGHT_RUN").ok().filter(|run| !run.is_empty());
    if own.is_some() && event == HookEvent::SessionStart {
        // The session of an attempt: its prompt says what it is there for.
        return None;
    }
    let (session, _) = Session::as_it_is().ok()?;
    let store = session.store();
    let is_meant = |run: &Listed| is_active(&run.state) && own.as_ref().is_none_or(|own| run.meta.id == *own);
    let (open, _) = store.open_runs().ok()?;
    let runs: Vec<Listed> = open.runs.into_iter().rev().filter(is_meant).take(RUNS_MAX).collect();
    if runs.is_empty() {
        return None;
    }
    Some(match event {
        HookEvent::SessionStart => at_start(&store, &runs),
        HookEvent::PreCompact => before_compaction(&store, &runs, &session.project.root),
    })
}

fn is_active(state: &str) -> bool {
    !matches!(state, "done" | "failed" | "abandoned")
}

fn at_start(store: &RunStore, runs: &[Listed]) -> String {
    let mut text = String::from("Gatewright runs under way here:\n");
    for run in runs {
        let snapshot = store.snapshot(&run.meta.id, None).ok();
        let at = snapshot.as_ref().and_then(|snapshot| phase(&snapshot.state));
        let at = at.map(|phase| format!(", at {phase}")).unwrap_or_default();
        let mode = snapshot.as_ref().map(|snapshot| snapshot.state.profile.to_string());
        let mode = mode.filter(|mode| mode != "default").map(|mode| format!(", {mode}")).unwrap_or_default();
        let next =
            snapshot.and_then(|snapshot| next_stage(&run.meta.id, &snapshot)).unwrap_or_else(|| next(run));
        let (id, workflow, state) = (&run.meta.id, &run.meta.workflow, &run.state);
        let _ = writeln!(text, "- {id} ({workflow}{mode}): {state}{at}. Next: {next}");
        if let Some(warning) = worktree_warning::warning(&run.meta) {
            let _ = writeln!(text, "  {warning}");
            worktree_warning::said(&store.project.run(&run.meta.id));
        }
    }
    text
}

/// A run that goes stage by stage and rests between two of them.
fn next_stage(id: &str, snapshot: &Snapshot) -> Option<String> {
    if !matches!(snapshot.state.phase, RunPhase::Paused(Pause::Until { .. })) {
        return None;
    }
    let next = transition::next(&snapshot.frozen.plan, &snapshot.state)?;
    Some(format!("gatewright phase {} {id}", next.id))
}

/// The steps at work, else the last stage that is through.
fn phase(state: &State) -> Option<String> {
    if let RunPhase::Paused(Pause::Until { stage }) = &state.phase {
        return Some(format!("{stage} (complete)"));
    }
    let at_work: Vec<String> = state
        .steps
        .iter()
        .filter(|(_, own)| own.phase.is_active())
        .map(|(id, _)| id.to_string())
        .take(3)
        .collect();
    (!at_work.is_empty()).then(|| at_work.join(", "))
}

fn next(run: &Listed) -> String {
    let id = &run.meta.id;
    match (run.state.as_str(), run.summary.waiting_for.first()) {
        ("waiting", Some(decision)) => format!("gatewright answer {id} {decision} …"),
        ("running", _) => format!("gatewright status {id}"),
        _ => format!("gatewright resume {id}"),
    }
}

/// What must survive: branch, changed files, where each run stands, and the handoff.
fn before_compaction(store: &RunStore, runs: &[Listed], root: &Path) -> String {
    let git = Git::at(root);
    let branch =
        git.text(&["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_else(|_| "(detached)".to_owned());
    let changed = git.names(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]);
    // What runs publish is not what somebody changed, and would leave no room for that.
    let dirs: Vec<String> =
        runs.iter().map(|run| format!("{}/", document::relative_dir(&run.meta))).collect();
    let files: Vec<String> = changed
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.get(3..))
        .filter(|file| !dirs.iter().any(|dir| file.starts_with(dir.as_str())))
        .take(FILES_MAX)
        .map(str::to_owned)
        .collect();
    let mut text = format!(
        "Keep this through the compaction.\nBranch: {branch}\nModified files: {}\n",
        files.join(", ")
    );
    for run in runs {
        let snapshot = store.snapshot(&run.meta.id, None).ok();
        let (id, workflow, state) = (&run.meta.id, &run.meta.workflow, &run.state);
        let stage = snapshot.as_ref().and_then(|snapshot| next_stage(id, snapshot));
        let _ =
            writeln!(text, "Run {id} ({workflow}): {state}; next: {}", stage.unwrap_or_else(|| next(run)));
        let Some(snapshot) = snapshot else { continue };
        for line in begun(&snapshot.state) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "{}", handoff(run, &snapshot, &branch, &files));
    }
    text
}

/// Steps that are not merely waiting for their turn.
fn begun(state: &State) -> Vec<String> {
    let words = state.steps.iter().map(|(id, own)| (id, document::step_word(state, id, own)));
    words
        .filter(|(_, word)| *word != "pending")
        .take(STEPS_MAX)
        .map(|(id, word)| format!("{id}: {word}"))
        .collect()
}

/// The issue that a run is about: as its setting says, else as its branch does, `PROJ-123_name`.
fn issue(snapshot: &Snapshot, branch: &str) -> String {
    let settings = snapshot.frozen.settings_of(&snapshot.state.profile);
    let set = settings.get("jira_issue").and_then(Value::as_str).filter(|set| !set.is_empty());
    let is_key = |key: &&str| {
        let parts = key.rsplit_once('-');
        parts.is_some_and(|(project, number)| {
            !project.is_empty()
                && project.to_uppercase() == project
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let named = || branch.split_once('_').map(|(key, _)| key).filter(is_key);
    set.or_else(named).unwrap_or_default().to_owned()
}

/// The JSON that was published last; of one step its `…_output.json`.
fn last_output(state: &State) -> Option<&ArtifactName> {
    let is_json = |name: &ArtifactName| Path::new(name.as_str()).extension().is_some_and(|end| end == "json");
    let outputs = state.artifacts.iter().filter(|(name, _)| is_json(name));
    let age = |(name, artifact): &(&ArtifactName, &Artifact)| {
        let ended = state.steps.get(&artifact.step).and_then(|step| step.ended_at);
        (ended, name.as_str().ends_with("_output.json"))
    };
    outputs.max_by_key(age).map(|(name, _)| name)
}

fn handoff(run: &Listed, snapshot: &Snapshot, branch: &str, files: &[String]) -> Value {
    let state = &snapshot.state;
    let decided = state.decisions.values().filter_map(|one| {
        let answer = one.answer.as_ref()?;
        Some(json!({"question": one.decision.question, "decision": answer, "rationale": one.comment}))
    });
    let blocked: Vec<String> = run.summary.blocked_by.iter().cloned().collect();
    let dir = document::relative_dir(&run.meta);
    let at = |name: Option<&ArtifactName>| name.map(|name| format!("{dir}/{name}")).unwrap_or_default();
    let plan = state.artifacts.keys().find(|name| name.as_str().ends_with("plan.md"));
    json!({"handoff": {
        "from_agent": "before compaction", "to_agent": "after compaction",
        "status": if run.state == "blocked" { "blocked" } else { "partial" },
        "branch": branch, "files_modified": files,
        "decisions_made": decided.collect::<Vec<_>>(), "blocking_issues": blocked,
        "context_keys": {"jira_issue": issue(snapshot, branch), "plan_path": at(plan), "output_json": at(last_output(state))},
    }})
}
