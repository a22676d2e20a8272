//! Runs of this project: interrupted, unreadable, edited by hand, with processes left over.

use std::{path::Path, sync::Arc};

use gatewright_attempts::{AttemptDir, ProcessIdentity};
use gatewright_core::fact::IntrusionKind;
use gatewright_host::{
    clock::SystemClock,
    disk::RealDisk,
    launch::context_of,
    project::Project,
    publish::edited_by_hand,
    run_meta::RunMeta,
    store::{RunStore, Snapshot},
};

use super::{Finding, Level};

/// Edited files that are named one by one.
const EDITED_MAX: usize = 5;

pub fn findings(project: &Project) -> Vec<Finding> {
    let store = RunStore::new(Arc::new(RealDisk), project.clone());
    let mut findings = Vec::new();
    let entries = std::fs::read_dir(project.runs()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    for id in names {
        findings.extend(of_run(&store, &id));
    }
    let removed = project.state.join("removed");
    if removed.exists() {
        findings.push(Finding::new(
            Level::Warning,
            format!("{}: an unfinished removal", removed.display()),
            "gatewright clean --yes",
        ));
    }
    findings
}

fn of_run(store: &RunStore, id: &str) -> Vec<Finding> {
    let paths = store.project.run(id);
    if let Err(error) = RunMeta::read(store.disk.as_ref(), &paths) {
        if !paths.journal().exists() {
            let what = format!("{}: a run that never started", paths.dir.display());
            return vec![Finding::new(
                Level::Warning,
                what,
                format!(
                    "nothing is lost; remove it: rm -r {}",
                    crate::render::text::shell_word(&paths.dir.to_string_lossy())
                ),
            )];
        }
        return vec![Finding::new(
            Level::Error,
            full(&error),
            format!("restore {} from a copy", paths.meta().display()),
        )];
    }
    let snapshot = match store.snapshot(id, None) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            return vec![Finding::new(
                Level::Error,
                format!("run {id} cannot be read: {}", full(&error)),
                way_out(id),
            )];
        }
    };
    let mut findings = Vec::new();
    if snapshot.state_word() == "interrupted" {
        findings.push(Finding::new(
            Level::Warning,
            format!("run {id} is interrupted: no engine drives it"),
            format!("gatewright resume {id}"),
        ));
    }
    findings.extend(refused(&snapshot));
    findings.extend(edited(store, &snapshot));
    findings.extend(left_over(&snapshot));
    findings
}

/// What was tried by somebody who may not, and a journal that nobody can vouch for.
fn refused(snapshot: &Snapshot) -> Vec<Finding> {
    let id = &snapshot.meta.id;
    let over = snapshot.state.is_over();
    let level = if over { Level::Note } else { Level::Warning };
    let shown = snapshot.state.intrusions.iter().take(EDITED_MAX).map(|intrusion| {
        let by: Vec<&str> = intrusion.by.iter().map(|step| step.as_str()).collect();
        let by = if by.is_empty() { String::new() } else { format!(" (at work: {})", by.join(", ")) };
        Finding::new(
            level,
            format!("run {id}: {}{by}: {}", intrusion.what, consequence(intrusion.kind)),
            format!("look at what that agent was told and did: gatewright logs {id}"),
        )
    });
    let mut findings: Vec<Finding> = shown.collect();
    let more = snapshot.state.intrusions.len().saturating_sub(EDITED_MAX);
    if more > 0 {
        findings.push(Finding::new(
            Level::Note,
            format!("run {id}: {more} more attempts of this kind"),
            format!("gatewright events {id}"),
        ));
    }
    if !snapshot.authentic && !over {
        findings.push(Finding::new(
            Level::Note,
            format!("run {id}: its journal carries no seal of yours: who wrote it cannot be said"),
            format!(
                "it was started by an older version, or its key is gone: {}",
                snapshot.paths.state_root().join("key").display()
            ),
        ));
    }
    findings
}

/// What came of something that was tried.
fn consequence(kind: IntrusionKind) -> &'static str {
    match kind {
        IntrusionKind::UnsealedOrder | IntrusionKind::AgentOrder | IntrusionKind::Projection => {
            "refused, nothing came of it"
        }
        IntrusionKind::Trespass | IntrusionKind::AttemptFile => "the attempt did not count",
        IntrusionKind::Watched => "noticed, not undone",
        IntrusionKind::List => "not looked at",
    }
}

/// The error with everything below it; journal errors carry their own way out.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        source = cause.source();
    }
    text
}

fn way_out(id: &str) -> String {
    format!("as the message says; gatewright events {id} prints what can still be read")
}

fn edited(store: &RunStore, snapshot: &Snapshot) -> Vec<Finding> {
    let id = &snapshot.meta.id;
    let context = context_of(
        store.disk.clone(),
        Arc::new(SystemClock),
        snapshot.paths.clone(),
        snapshot.meta.clone(),
        snapshot.frozen.as_ref().clone(),
    );
    let over = snapshot.state.is_over();
    let taken_over = over && store.continued_by(id).is_some();
    if over && !snapshot.meta.run_dir.exists() || taken_over {
        return Vec::new();
    }
    let edited = edited_by_hand(&context);
    let more = edited.len().saturating_sub(EDITED_MAX);
    let mut findings: Vec<Finding> = edited
        .iter()
        .take(EDITED_MAX)
        .map(|(name, kind)| {
            let path = snapshot.meta.run_dir.join(name);
            let how = if path.exists() { "was changed by hand" } else { "was removed by hand" };
            let remedy = if *kind == "projection" {
                format!("it is written again by the engine; what it should say belongs into an order: gatewright status {id}")
            } else {
                format!("you are asked whether to keep it before the next step that needs it starts (a fan-out under way keeps the list it began with, unless you adopt the new one); gatewright show {id} {} prints what was accepted", crate::render::text::shell_word(name))
            };
            Finding::new(if over { Level::Note } else { Level::Warning }, format!("{kind} {} {how}", path.display()), remedy)
        })
        .collect();
    if more > 0 {
        findings.push(Finding::new(
            Level::Note,
            format!("{more} more files of run {id} were changed by hand"),
            "",
        ));
    }
    findings
}

/// Processes of attempts that live although nobody waits for them.
fn left_over(snapshot: &Snapshot) -> Vec<Finding> {
    if snapshot.held {
        return Vec::new();
    }
    let id = &snapshot.meta.id;
    let mut findings = Vec::new();
    for (step, own) in &snapshot.state.steps {
        // Only the newest attempts can live: an attempt ends before the next one starts.
        for attempt in own.attempts.saturating_sub(1).max(1)..=own.attempts {
            let Ok(dir) = AttemptDir::open(snapshot.paths.attempt(step.as_str(), attempt)) else { continue };
            if matches!(dir.exit_record(), Ok(Some(_))) {
                continue;
            }
            let Ok(Some(record)) = dir.pid_record() else { continue };
            let alive: Vec<String> = [Some(record.supervisor), record.agent]
                .into_iter()
                .flatten()
                .filter(|process| record.boot_id == boot_id() && is_alive(*process))
                .map(|process| process.pid.to_string())
                .collect();
            if alive.is_empty() {
                continue;
            }
            let what = format!(
                "attempt {attempt} of {step} in run {id} is at work (pid {}) and no engine waits for it",
                alive.join(", ")
            );
            let remedy = if snapshot.state.is_over() {
                format!("kill {}", alive.join(" "))
            } else {
                format!("gatewright resume {id} picks it up; gatewright abort {id} ends it")
            };
            findings.push(Finding::new(Level::Warning, what, remedy));
        }
    }
    findings
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The very process, not one that got its number later.
fn is_alive(process: ProcessIdentity) -> bool {
    let path = Path::new("/proc").join(process.pid.to_string()).join("stat");
    let Ok(stat) = std::fs::read_to_string(path) else { return false };
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let alive = !matches!(fields.next(), Some("Z" | "X") | None);
    alive && fields.nth(18).and_then(|ticks| ticks.parse().ok()) == Some(process.start_ticks)
}
