//! `gatewright show`: artifacts, replies and reports of a run.

use std::{borrow::Cow, io::IsTerminal, path::PathBuf};

use gatewright_core::{
    event::Event,
    fact::AttemptReport,
    ids::{ArtifactName, StepId},
    state::{Artifact, Phase, StepState},
    verdict::Finding,
};
use gatewright_host::{
    artifact_data::masks_of,
    document::{self, SCHEMA_VERSION},
    run_context::hash_bytes,
    run_masks,
    store::Snapshot,
};
use serde_json::{Value, json};

use crate::{
    cli::ShowArgs,
    command_error::{CommandError, exit},
    commands::why::find_step,
    definitions::Session,
    drive,
    live_tree::dollars_of,
    render::{
        markdown,
        text::{bytes as size_words, clean, columns, count, near, one_line, pad, put, put_json, shell_word},
    },
    terminal::{self, Style, mark_of, paint, style_of},
};

pub fn show(args: &ShowArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let id = store.find(&args.run)?;
    drive::tidy(&session, &id);
    let snapshot = store.snapshot(&id, None)?;
    match &args.what {
        None => overview(&snapshot, args.json)?,
        Some(what) => match artifact_named(&snapshot, what) {
            Some((name, artifact)) => show_artifact(&snapshot, name, artifact, args.json)?,
            None => show_step(&snapshot, &step_or_error(&snapshot, what)?, args.json)?,
        },
    }
    Ok(exit::DONE)
}

fn step_or_error(snapshot: &Snapshot, what: &str) -> Result<StepId, CommandError> {
    find_step(snapshot, what).map_err(|error| {
        let mut error = CommandError {
            message: format!("`{}` has no step and no artifact `{}`", snapshot.meta.id, one_line(what)),
            ..error
        };
        let names = near(what, snapshot.state.artifacts.keys().map(ArtifactName::as_str));
        if !names.is_empty() {
            error = error.hint(format!("artifacts with a similar name: {}", names.join(", ")));
        }
        error.hint(format!("gatewright show {} lists its artifacts", snapshot.meta.id))
    })
}

fn artifact_named<'a>(snapshot: &'a Snapshot, what: &str) -> Option<(&'a ArtifactName, &'a Artifact)> {
    let artifacts = &snapshot.state.artifacts;
    if let Some(found) = artifacts.get_key_value(&ArtifactName::new(what)) {
        return Some(found);
    }
    // The last part of a path is enough where it is the only one, unless a step has that name.
    let mut ends = artifacts.iter().filter(|(name, _)| name.as_str().rsplit('/').next() == Some(what));
    let found = ends.next();
    if ends.next().is_some() || snapshot.state.steps.contains_key(&StepId::new(what)) { None } else { found }
}

/// The bytes that were accepted: the attempt's own copy, or what a person put in its place.
fn read(snapshot: &Snapshot, name: &ArtifactName, artifact: &Artifact) -> Result<Vec<u8>, CommandError> {
    let kept =
        snapshot.paths.attempt(artifact.step.as_str(), artifact.attempt).join("out").join(name.as_str());
    let published = snapshot.meta.run_dir.join(name.as_str());
    let paths = if artifact.adopted { [published, kept] } else { [kept, published] };
    let found = paths
        .iter()
        .find_map(|path| std::fs::read(path).ok().filter(|bytes| hash_bytes(bytes) == artifact.hash));
    found.or_else(|| std::fs::read(&paths[0]).ok()).ok_or_else(|| {
        CommandError::failed(format!("{}: the artifact cannot be read", paths[0].display()))
            .hint("gatewright doctor says what is wrong with runs")
    })
}

/// The same without the secrets that anybody in the run was given.
fn read_masked(
    snapshot: &Snapshot,
    name: &ArtifactName,
    artifact: &Artifact,
) -> Result<Vec<u8>, CommandError> {
    let bytes = read(snapshot, name, artifact)?;
    let of_run = run_masks::of_reader(&snapshot.paths, &snapshot.frozen);
    let masks = masks_of(&snapshot.paths, artifact).and(&of_run);
    Ok(match std::str::from_utf8(&bytes).map(|text| masks.mask(text)) {
        Ok(Cow::Owned(masked)) => masked.into_bytes(),
        Ok(Cow::Borrowed(_)) | Err(_) => bytes,
    })
}

fn path_of(snapshot: &Snapshot, name: &ArtifactName) -> PathBuf {
    snapshot.meta.run_dir.join(name.as_str())
}

fn artifact_json(snapshot: &Snapshot, name: &ArtifactName, artifact: &Artifact) -> Value {
    let bytes = read(snapshot, name, artifact).ok().map(|bytes| bytes.len());
    json!({
        "name": name, "step": artifact.step, "attempt": artifact.attempt, "bytes": bytes, "hash": artifact.hash,
        "adopted": artifact.adopted, "path": path_of(snapshot, name),
    })
}

fn table(snapshot: &Snapshot, artifacts: &[(&ArtifactName, &Artifact)]) -> String {
    let name_columns = artifacts.iter().map(|(name, _)| columns(name.as_str())).max().unwrap_or(0);
    let step_columns =
        artifacts.iter().map(|(_, artifact)| columns(artifact.step.as_str())).max().unwrap_or(0);
    let mut text = String::new();
    for (name, artifact) in artifacts {
        let bytes = read(snapshot, name, artifact)
            .map_or_else(|_| "missing".to_owned(), |bytes| size_words(bytes.len() as u64));
        let adopted = if artifact.adopted { "  (changed by hand, kept)" } else { "" };
        let (name, step) = (
            pad(&one_line(name.as_str()), name_columns),
            pad(&one_line(artifact.step.as_str()), step_columns),
        );
        text.push_str(&format!("  {name}  {step}  attempt {:<3} {bytes:>8}{adopted}\n", artifact.attempt));
    }
    text
}

fn overview(snapshot: &Snapshot, as_json: bool) -> Result<(), CommandError> {
    let artifacts: Vec<_> = snapshot.state.artifacts.iter().collect();
    let report = final_report(snapshot);
    if as_json {
        let list: Vec<Value> =
            artifacts.iter().map(|(name, artifact)| artifact_json(snapshot, name, artifact)).collect();
        let document = json!({"schema_version": SCHEMA_VERSION, "id": snapshot.meta.id, "state": snapshot.state_word(), "dir": snapshot.meta.run_dir,
            "artifacts": list, "waivers": snapshot.state.waivers, "report": report.as_ref().map(|(name, _)| name)});
        return put_json(&document);
    }
    let word = snapshot.state_word();
    let mut text = format!(
        "{} {}  {}\n",
        mark_of(word),
        paint(Style::Bold, &snapshot.meta.id),
        paint(style_of(word), word)
    );
    if artifacts.is_empty() {
        text.push_str("  no artifact was accepted so far\n");
    }
    text.push_str(&table(snapshot, &artifacts));
    text.push_str(&super::status::waivers(&snapshot.state));
    if let Some((name, bytes)) = report {
        text.push_str(&format!("\n── {} ──\n\n", one_line(&name)));
        text.push_str(&readable(&name, &bytes));
    }
    Ok(put(text.as_bytes())?)
}

/// What a run leaves as its last word, once it is over: a Markdown file that says so by its name, else
/// the newest one of its last stage.
fn final_report(snapshot: &Snapshot) -> Option<(String, Vec<u8>)> {
    if !snapshot.state.is_over() {
        return None;
    }
    let last_stage = snapshot.state.graph(&snapshot.frozen.plan).stages.last();
    let is_last = |name: &str| {
        let artifact = snapshot.state.artifacts.get(&ArtifactName::new(name));
        artifact.is_some_and(|artifact| last_stage.is_some_and(|stage| stage.steps.contains(&artifact.step)))
    };
    let says_so = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        (last.contains("final"), last.contains("report") || last.contains("summary"))
    };
    let all = snapshot.state.artifacts.keys().map(ToString::to_string).chain(projections(snapshot));
    let mut names: Vec<String> =
        all.filter(|name| is_markdown(name) && (is_last(name) || says_so(name) != (false, false))).collect();
    names.sort();
    let written_at = |name: &str| {
        let artifact = snapshot.state.artifacts.get(&ArtifactName::new(name))?;
        snapshot.state.steps.get(&artifact.step)?.ended_at
    };
    let rank = |name: &str| (says_so(name), written_at(name));
    let name = names.into_iter().max_by(|left, right| rank(left).cmp(&rank(right)))?;
    let bytes = match snapshot.state.artifacts.get_key_value(&ArtifactName::new(&name)) {
        Some((known, artifact)) => read_masked(snapshot, known, artifact).ok()?,
        None => std::fs::read(snapshot.meta.run_dir.join(&name)).ok()?,
    };
    Some((name, bytes))
}

/// Files that the engine computes into the run directory.
fn projections(snapshot: &Snapshot) -> Vec<String> {
    let stored = std::fs::read(snapshot.paths.published()).ok();
    let ledger =
        stored.and_then(|bytes| serde_json::from_slice::<gatewright_host::publish::Ledger>(&bytes).ok());
    ledger.map(|ledger| ledger.projections.into_keys().collect()).unwrap_or_default()
}

fn is_markdown(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

/// For a person at a terminal; for a pipe the same words without decoration.
fn readable(name: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if is_markdown(name) { markdown::render(&text, terminal::width().min(100)) } else { clean(&text) }
}

fn show_artifact(
    snapshot: &Snapshot,
    name: &ArtifactName,
    artifact: &Artifact,
    as_json: bool,
) -> Result<(), CommandError> {
    let bytes = read_masked(snapshot, name, artifact)?;
    if as_json {
        let mut value = artifact_json(snapshot, name, artifact);
        if let Value::Object(object) = &mut value {
            object.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
            object.insert("text".to_owned(), json!(String::from_utf8_lossy(&bytes)));
        }
        return put_json(&value);
    }
    if std::io::stdout().is_terminal() {
        let mut text = readable(name.as_str(), &bytes);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(put(text.as_bytes())?)
    } else {
        Ok(put(&bytes)?)
    }
}

/// The last report of a step that the journal has.
fn last_report(snapshot: &Snapshot, id: &StepId) -> Option<(u32, Box<AttemptReport>)> {
    let ends = snapshot.records.iter().rev().filter(|record| record.event_type() == "step.attempt.ended");
    ends.filter_map(|record| record.event::<Event>().ok()).find_map(|event| match event {
        Event::AttemptEnded { step, attempt, report } if step == *id => Some((attempt, report)),
        _ => None,
    })
}

fn show_step(snapshot: &Snapshot, id: &StepId, as_json: bool) -> Result<(), CommandError> {
    let Some(own) = snapshot.state.steps.get(id) else {
        return Err(CommandError::usage(format!("there is no step `{id}`")));
    };
    let artifacts: Vec<_> =
        snapshot.state.artifacts.iter().filter(|(_, artifact)| artifact.step == *id).collect();
    let report = last_report(snapshot, id);
    if as_json {
        let list: Vec<Value> =
            artifacts.iter().map(|(name, artifact)| artifact_json(snapshot, name, artifact)).collect();
        let mut step =
            super::status::with_times(document::step(&snapshot.frozen.plan, &snapshot.state, id, own));
        step["cost"] = document::spent(&own.spent);
        let attempt = report.map(|(attempt, report)| json!({"attempt": attempt, "report": report}));
        return put_json(
            &json!({"schema_version": SCHEMA_VERSION, "id": snapshot.meta.id, "step": step, "artifacts": list, "last_attempt": attempt}),
        );
    }
    let word = document::step_word(&snapshot.state, id, own);
    let mut text = format!(
        "{} {}  {}\n",
        mark_of(word),
        paint(Style::Bold, &one_line(id.as_str())),
        paint(style_of(word), &word.replace('_', " "))
    );
    text.push_str(&format!("  attempts {}, rounds {}\n", own.attempts, document::rounds(own)));
    if let Phase::Passed { notes } = &own.phase {
        for note in notes {
            text.push_str(&format!("  ! {}\n", one_line(note)));
        }
    }
    if own.spent.launches > 0 {
        text.push_str(&format!(
            "  cost {}\n",
            super::status::spent_words(&own.spent, &dollars_of(&own.spent, ""))
        ));
    }
    if let Some((attempt, report)) = &report {
        text.push_str(&report_text(*attempt, report));
    }
    text.push_str(&findings_text(&findings(own, report.as_ref().map(|(_, report)| &**report))));
    if !artifacts.is_empty() {
        text.push_str("artifacts\n");
        text.push_str(&table(snapshot, &artifacts));
    }
    text.push_str(&format!(
        "\nits output: gatewright logs {} {}\n",
        snapshot.meta.id,
        shell_word(id.as_str())
    ));
    Ok(put(text.as_bytes())?)
}

fn report_text(attempt: u32, report: &AttemptReport) -> String {
    let mut text = format!("  last attempt {attempt}, {}\n", terminal::duration(report.duration_ms));
    if let Some(reply) = &report.reply {
        let said = if reply.word.is_empty() { String::new() } else { format!("{}: ", one_line(&reply.word)) };
        text.push_str(&format!("  {said}{}\n", one_line(&reply.summary)));
        for note in &reply.notes {
            text.push_str(&format!("    - {}\n", one_line(note)));
        }
        for question in &reply.questions {
            text.push_str(&format!("    ? {}\n", one_line(&question.question)));
        }
    }
    if let Some(problem) = &report.reply_problem {
        text.push_str(&format!(
            "  no reply could be read: {}\n",
            one_line(&serde_json::to_string(problem).unwrap_or_default())
        ));
    }
    for fact in report.artifacts.iter().filter(|fact| !fact.holds()) {
        let why = if fact.violations.is_empty() {
            "was not written".to_owned()
        } else {
            fact.violations.join("; ")
        };
        text.push_str(&format!("  ✗ {}: {}\n", fact.name, one_line(&why)));
    }
    if let Some(model) = &report.model {
        let instead = report.instead_of.as_ref().map(|wanted| format!(" instead of {}", one_line(wanted)));
        text.push_str(&format!("  model {}{}\n", one_line(model), instead.unwrap_or_default()));
    }
    if report.repairs > 0 {
        text.push_str(&format!("  mended in {}\n", count(report.repairs as usize, "more turn")));
    }
    if !report.denied.is_empty() {
        let tools: Vec<String> = report.denied.iter().map(|tool| one_line(tool)).collect();
        text.push_str(&format!("  not allowed: {}\n", tools.join(", ")));
    }
    for contradiction in &report.contradictions {
        text.push_str(&format!("  ✗ {}\n", one_line(contradiction)));
    }
    if let Some(check) = &report.check {
        let said = if check.ok { "ok".to_owned() } else { one_line(&check.message) };
        text.push_str(&format!("  check: {said}\n"));
    }
    text
}

fn findings(own: &StepState, report: Option<&AttemptReport>) -> Vec<Finding> {
    match &own.review {
        Some(review) if !review.verdicts.is_empty() => {
            review.verdicts.values().flat_map(|judgement| judgement.findings.clone()).collect()
        }
        Some(_) | None => report
            .and_then(|report| report.reply.as_ref())
            .map(|reply| reply.findings.clone())
            .unwrap_or_default(),
    }
}

fn findings_text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = "findings\n".to_owned();
    for finding in findings {
        let place =
            finding.location.as_ref().map(|place| format!(" ({})", one_line(place))).unwrap_or_default();
        text.push_str(&format!("  {:<8} {}{place}\n", finding.severity.word(), one_line(&finding.problem)));
        if let Some(fix) = &finding.fix {
            text.push_str(&format!("           fix: {}\n", one_line(fix)));
        }
    }
    text
}
