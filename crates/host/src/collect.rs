//! After an attempt's process is gone: what did it really leave? Facts only; the core judges.

use std::{
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use gatewright_attempts::{AttemptDir, Ended, ExitRecord, OutputStream};
use gatewright_core::{
    fact::{ArtifactFact, AttemptReport, ProcessEnd, Usage},
    ids::{ArtifactName, ContentHash, Timestamp},
    outcome::{Outcome, Reply, ReplyProblem},
};
use gatewright_workflow::{
    contract::{self, Contract},
    frozen::Write,
    reply::{
        self, Channel, ReplyFormat, WordMap,
        tool_file::{TOOL_REPLY_FILE, read_tool_reply},
    },
    report::{self, Report, findings::findings_of_report},
};

use crate::{
    claims::Claims,
    quota,
    run_context::{RunContext, hash_bytes, is_plain_relative},
    scope::Evidence,
    work,
};

/// How much of an agent's output is read for its reply.
const REPLY_BYTES: u64 = 256 * 1024;
/// Where a refused order of an agent's process leaves its words, among what the attempt wrote.
pub const REFUSED_FILE: &str = ".gatewright-refused";
const REFUSED_BYTES: u64 = 16 * 1024;
const REFUSED_MAX: usize = 10;
/// How much of the output is kept in the journal for messages.
const TAIL_BYTES: usize = 1500;

/// One declared output with its rendered name.
#[derive(Clone, Debug)]
pub struct Output {
    pub declared: String,
    pub name: String,
    pub contract: Contract,
    pub optional: bool,
}

impl Output {
    pub fn new(write: &Write, name: String) -> Output {
        Output {
            declared: write.name.clone(),
            name,
            contract: write.contract.clone(),
            optional: write.optional,
        }
    }
}

/// What is needed to examine an attempt; made before it starts.
#[derive(Clone)]
pub struct Expectation {
    pub outputs: Vec<Output>,
    pub format: Option<ReplyFormat>,
    pub words: WordMap,
    pub reviewer: bool,
    /// Of findings that name none.
    pub route: Option<String>,
    pub inputs: Vec<(ArtifactName, ContentHash)>,
}

/// The report of an attempt that has an exit record.
pub fn collect(
    context: &RunContext,
    dir: &AttemptDir,
    record: &ExitRecord,
    expected: &Expectation,
    evidence: &Evidence,
) -> AttemptReport {
    let mut report = AttemptReport::new(process_end(&record.ended));
    report.duration_ms = record.duration_ms;
    report.inputs.clone_from(&expected.inputs);
    report.noticed = refused_orders(&dir.out_dir());
    report.trespasses.clone_from(&evidence.after.trespasses);
    report.changes.clone_from(&evidence.after.changes);
    report.changes_left_out = evidence.after.changes_left_out;
    let output =
        dir.read_output_tail(OutputStream::Stdout, REPLY_BYTES).map(|(bytes, _)| bytes).unwrap_or_default();
    let errors = dir
        .read_output_tail(OutputStream::Stderr, TAIL_BYTES as u64)
        .map(|(bytes, _)| bytes)
        .unwrap_or_default();
    report.tail = tail(&output, &errors);
    let until = quota::reset_time(&report.tail, Timestamp(record.ended_at_ms));
    if !matches!(record.ended, Ended::Exited { code: 0 }) {
        report.quota_until = until;
        if !matches!(record.ended, Ended::Exited { .. }) {
            return report;
        }
    }
    report.usage = usage(&dir.out_dir());
    adopt_published(context, dir, record, expected);
    report.artifacts = expected.outputs.iter().map(|output| examine(&dir.out_dir(), output)).collect();
    let reply = read_reply(&dir.out_dir(), &output, expected)
        .and_then(|reply| names_its_files(&output, expected, reply));
    match reply {
        Ok(mut reply) => {
            for finding in reply.findings.iter_mut().filter(|finding| finding.route.is_none()) {
                finding.route.clone_from(&expected.route);
            }
            let claims = Claims { context, dir, outputs: &expected.outputs, evidence };
            report.contradictions = claims.contradictions(&reply);
            report.reply = Some(reply);
        }
        Err(problem) => {
            report.reply_problem = Some(problem);
            // Words about a quota count only beside work that did not arrive.
            report.quota_until = until;
        }
    }
    report.work = Some(work::fingerprint(context, &report.artifacts, &evidence.after.picture.tree));
    report
}

/// What the attempt's processes asked of this program although only people may.
fn refused_orders(out: &Path) -> Vec<String> {
    let Ok(bytes) = read_regular(&out.join(REFUSED_FILE), out) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(REFUSED_BYTES as usize)]).into_owned();
    let shown = |line: &str| line.chars().filter(|c| !c.is_control()).take(300).collect::<String>();
    text.lines().filter(|line| !line.trim().is_empty()).take(REFUSED_MAX).map(shown).collect()
}

fn process_end(ended: &Ended) -> ProcessEnd {
    match ended {
        Ended::Exited { code } => ProcessEnd::Exited { code: *code },
        Ended::Signalled { signal } => ProcessEnd::Signalled { signal: *signal },
        Ended::TimedOut => ProcessEnd::TimedOut,
        Ended::Idle => ProcessEnd::Idle,
        Ended::Stopped => ProcessEnd::Stopped,
        Ended::Interrupted => ProcessEnd::Interrupted,
        Ended::StartFailed { message } => ProcessEnd::StartFailed { message: message.clone() },
    }
}

fn tail(output: &[u8], errors: &[u8]) -> String {
    let last = |bytes: &[u8], most: usize| {
        let text = String::from_utf8_lossy(bytes);
        let skip = text.chars().count().saturating_sub(most);
        text.chars().skip(skip).collect::<String>()
    };
    let mut text = last(output, TAIL_BYTES);
    if !errors.is_empty() {
        text.push_str("\n[stderr] ");
        text.push_str(&last(errors, TAIL_BYTES));
    }
    text
}

/// A file that the agent wrote to its published place counts if it changed since the attempt began:
/// it is copied to the attempt, and the copy counts.
fn adopt_published(context: &RunContext, dir: &AttemptDir, record: &ExitRecord, expected: &Expectation) {
    for output in &expected.outputs {
        let staged = dir.out_dir().join(&output.name);
        if !is_plain_relative(Path::new(&output.name)) || std::fs::symlink_metadata(&staged).is_ok() {
            continue;
        }
        let published = context.meta.run_dir.join(&output.name);
        let Ok(bytes) = read_regular(&published, &context.meta.run_dir) else { continue };
        let touched = std::fs::metadata(&published).and_then(|data| data.modified()).is_ok_and(|time| {
            time.duration_since(UNIX_EPOCH).unwrap_or_default() >= Duration::from_millis(record.started_at_ms)
        });
        if !touched {
            continue;
        }
        let made = staged.parent().map_or(Ok(()), std::fs::create_dir_all);
        // If the copy fails the artifact is missing, which is what the report will say.
        let _ = made.and_then(|()| std::fs::write(&staged, &bytes));
    }
}

fn examine(out: &Path, output: &Output) -> ArtifactFact {
    let mut fact = ArtifactFact {
        declared: ArtifactName::new(&output.declared),
        name: ArtifactName::new(&output.name),
        hash: None,
        bytes: 0,
        violations: Vec::new(),
        optional: output.optional,
    };
    if !is_plain_relative(Path::new(&output.name)) {
        fact.violations.push(format!("`{}` leaves its folder", output.name));
        return fact;
    }
    match read_regular(&out.join(&output.name), out) {
        Ok(bytes) => {
            fact.bytes = bytes.len() as u64;
            if let Err(violations) = contract::check(&output.contract, &output.name, &bytes) {
                let own = format!("{}: ", output.name);
                fact.violations = violations
                    .iter()
                    .map(|one| one.to_string())
                    .map(|text| text.strip_prefix(&own).map_or(text.clone(), str::to_owned))
                    .collect();
            }
            fact.hash = Some(hash_bytes(&bytes));
        }
        Err(Unreadable::Missing) => {}
        Err(Unreadable::Refused(why)) => fact.violations.push(why),
    }
    fact
}

enum Unreadable {
    Missing,
    Refused(String),
}

/// Reads a file that is a plain file inside `root`, however it is reached (J-53).
fn read_regular(path: &Path, root: &Path) -> Result<Vec<u8>, Unreadable> {
    let data = std::fs::symlink_metadata(path).map_err(|_| Unreadable::Missing)?;
    let refuse = |why: &str| {
        Err(Unreadable::Refused(format!(
            "`{}` {why}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )))
    };
    if data.file_type().is_symlink() {
        return refuse("is a link, not a file");
    }
    if !data.is_file() {
        return refuse("is not a file");
    }
    if data.len() > contract::ARTIFACT_BYTES_MAX * 4 {
        return refuse("is too large");
    }
    let inside = match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => real.starts_with(root),
        _ => false,
    };
    if !inside {
        return refuse("leads out of its folder");
    }
    std::fs::read(path).map_err(|error| Unreadable::Refused(format!("`{}`: {error}", path.display())))
}

/// `FILE: none` is a well-formed brief only where the step writes nothing.
fn names_its_files(output: &[u8], expected: &Expectation, reply: Reply) -> Result<Reply, ReplyProblem> {
    let text = String::from_utf8_lossy(output);
    let file = text
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("FILE:"))
        .map(|rest| rest.trim().to_lowercase());
    let must: Vec<&str> =
        expected.outputs.iter().filter(|one| !one.optional).map(|one| one.name.as_str()).collect();
    let says_work = matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed);
    if says_work && reply.files.is_empty() && file.as_deref() == Some("none") && !must.is_empty() {
        let violation = format!("FILE is none, but the step writes {}", must.join(", "));
        return Err(ReplyProblem::Malformed { violations: vec![violation] });
    }
    Ok(reply)
}

/// What the attempt says it spent, in `usage.json` beside its artifacts: `{"tokens": 1200, "usd": 0.35}`.
/// What is missing or not a sane number is unknown, never zero (J-43).
fn usage(out: &Path) -> Option<Usage> {
    let bytes = read_regular(&out.join("usage.json"), out).ok()?;
    let said: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let usd = said
        .get("usd")
        .and_then(serde_json::Value::as_f64)
        .filter(|usd| usd.is_finite() && (0.0..1e9).contains(usd));
    Some(Usage {
        tokens: said.get("tokens").and_then(serde_json::Value::as_u64).filter(|tokens| *tokens < 1 << 50),
        micro_usd: usd.map(|usd| (usd * 1e6).round() as u64),
    })
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

/// The reply of the final message, made stricter by what the reports say of themselves (J-52).
fn read_reply(out: &Path, output: &[u8], expected: &Expectation) -> Result<Reply, ReplyProblem> {
    let mut channels =
        vec![(Channel::FinalMessage, reply::parse_reply(output, expected.format, &expected.words))];
    if let Ok(bytes) = read_regular(&out.join(TOOL_REPLY_FILE), out) {
        channels.push((Channel::Tool, read_tool_reply(&bytes)));
    }
    for artifact in expected.outputs.iter().filter(|artifact| is_markdown(&artifact.name)) {
        let Ok(bytes) = read_regular(&out.join(&artifact.name), out) else { continue };
        let parsed = Report::parse(&bytes);
        let Some(header) = report::header_reply(&parsed, &expected.words) else { continue };
        let mut said = Reply::new(header.outcome);
        said.word = header.word;
        if expected.reviewer {
            said.findings = findings_of_report(&parsed, &expected.words);
        }
        channels.push((Channel::ReportHeader, Ok(said)));
    }
    reply::combine(channels)
}
