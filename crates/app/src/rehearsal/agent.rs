//! One attempt of a rehearsed role: a real process that reads its prompt, does what the scenario
//! says, writes its files and replies. The engine treats it like any other agent.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use gatewright_core::verdict::Severity;
use gatewright_workflow::{
    contract::{self, Contract},
    frozen::ListText,
    reply::{ReplyFormat, WordMap},
    report::{Report, findings_of_report},
};
use serde::Deserialize;

use super::{
    behaviour::{Behaviour, Ending, Writes},
    content::{Subject, content},
    reply_text::{ReplySubject, reply_text},
    scenario::{self, Scenario},
};

/// The variable with the path of the scenario.
pub const SCENARIO_VARIABLE: &str = "REHEARSAL_SCENARIO";

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("this is no attempt: {name} is not set; the engine starts this command")]
    NotAnAttempt { name: &'static str },
    #[error("{}: cannot be read", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: is not what an engine writes there", path.display())]
    Format { path: PathBuf, source: serde_json::Error },
    #[error("{}: {count} error(s)", path.display())]
    Scenario { path: PathBuf, count: usize },
    #[error("{}: cannot be written", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the output cannot be written")]
    Print(#[from] std::io::Error),
}

/// `outputs.json` in the attempt's directory.
#[derive(Debug, Default, Deserialize)]
struct Promised {
    #[serde(default)]
    request: String,
    #[serde(default)]
    reviewer: bool,
    #[serde(default)]
    reply: Option<ReplyFormat>,
    #[serde(default)]
    block_at: Option<Severity>,
    #[serde(default)]
    outputs: Vec<PromisedOutput>,
}

#[derive(Debug, Deserialize)]
struct PromisedOutput {
    name: String,
    #[serde(default)]
    declared: String,
    #[serde(default)]
    optional: bool,
    contract: Contract,
    #[serde(default)]
    list: Option<ListText>,
}

/// What an attempt knows of itself.
struct Attempt {
    step: String,
    role: String,
    attempt: u32,
    out: PathBuf,
    promised: Promised,
}

/// Plays one attempt; the code is what the process exits with.
pub fn play() -> Result<u8, AgentError> {
    let attempt = Attempt::of_environment()?;
    // Whoever does not read its prompt gets a broken pipe in the engine's log.
    let mut prompt = String::new();
    let _ = std::io::stdin().read_to_string(&mut prompt);
    let scenario = scenario_of_environment()?;
    let behaviour = scenario.behaviour(&attempt.step, &attempt.role, attempt.attempt);
    perform(&attempt, &behaviour)
}

fn variable(name: &'static str) -> Result<String, AgentError> {
    std::env::var(name).map_err(|_| AgentError::NotAnAttempt { name })
}

impl Attempt {
    fn of_environment() -> Result<Attempt, AgentError> {
        let out = PathBuf::from(variable("GATEWRIGHT_OUT")?);
        let path = out.parent().unwrap_or(&out).join("outputs.json");
        let promised = match std::fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|source| AgentError::Format { path, source })?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Promised::default(),
            Err(source) => return Err(AgentError::Read { path, source }),
        };
        Ok(Attempt {
            step: variable("GATEWRIGHT_STEP")?,
            role: variable("GATEWRIGHT_ROLE")?,
            attempt: variable("GATEWRIGHT_ATTEMPT")?.parse().unwrap_or(1),
            out,
            promised,
        })
    }
}

fn scenario_of_environment() -> Result<Scenario, AgentError> {
    let Some(path) = std::env::var_os(SCENARIO_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
    else {
        return Ok(Scenario::default());
    };
    let text =
        std::fs::read_to_string(&path).map_err(|source| AgentError::Read { path: path.clone(), source })?;
    match scenario::parse(&path.to_string_lossy(), &text) {
        Ok(script) => Ok(script.scenario),
        Err(problems) => {
            eprint!("{}", gatewright_workflow::diagnostic::render_all(&problems));
            Err(AgentError::Scenario { path, count: problems.len() })
        }
    }
}

fn perform(attempt: &Attempt, behaviour: &Behaviour) -> Result<u8, AgentError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "Rehearsing `{}` as {}, attempt {}.", attempt.step, attempt.role, attempt.attempt)?;
    out.flush()?;
    if behaviour.slow_ms > 0 {
        std::thread::sleep(Duration::from_millis(behaviour.slow_ms));
    }
    print_noise(&mut out, behaviour.noise_bytes)?;
    write_edits(&behaviour.edits)?;
    write_edits(&behaviour.edits_outside)?;
    match &behaviour.ending {
        Ending::Crash { code } => {
            eprintln!("rehearsed crash");
            return Ok(u8::try_from(*code).unwrap_or(1));
        }
        Ending::Hang => loop {
            std::thread::park();
        },
        Ending::Quota { for_ms } => {
            let until = jiff::Timestamp::now() + Duration::from_millis(*for_ms);
            println_to(&mut out, &format!("Usage limit reached; resets at {until}."))?;
            return Ok(1);
        }
        Ending::Malformed => {
            println_to(&mut out, "I think everything is fine now. Let me know if there is anything else.")?;
            return Ok(0);
        }
        Ending::Good
        | Ending::Findings(_)
        | Ending::WrongStatus
        | Ending::Asks(_)
        | Ending::Blocked { .. }
        | Ending::Error { .. }
        | Ending::BackTo { .. }
        | Ending::Reply(_) => {}
    }
    let files = write_outputs(attempt, behaviour)?;
    let ending = match &behaviour.ending {
        Ending::Findings(list) if is_reported(attempt, &files, list.len()) => Ending::Findings(Vec::new()),
        other => other.clone(),
    };
    let summary = behaviour
        .summary
        .clone()
        .unwrap_or_else(|| format!("Rehearsed {} of {}.", attempt.role, attempt.step));
    let subject = ReplySubject {
        format: attempt.promised.reply,
        reviewer: attempt.promised.reviewer,
        files: &files,
        summary: &summary,
        block_at: attempt.promised.block_at.unwrap_or(Severity::Medium),
        step: &attempt.step,
        attempt: attempt.attempt,
    };
    println_to(&mut out, "")?;
    out.write_all(reply_text(&ending, &subject).as_bytes())?;
    out.flush()?;
    Ok(0)
}

fn println_to(out: &mut impl Write, line: &str) -> Result<(), AgentError> {
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn print_noise(out: &mut impl Write, bytes: u64) -> Result<(), AgentError> {
    const LINE: &[u8] = b"a rehearsed line of output that says nothing in particular, sixty-four\n";
    let mut left = bytes;
    while left > 0 {
        let now = left.min(LINE.len() as u64) as usize;
        out.write_all(&LINE[..now])?;
        left -= now as u64;
    }
    if bytes > 0 {
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<(), AgentError> {
    let failed = |source| AgentError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

/// Relative to the working directory: the repository, or the stream's worktree.
fn write_edits(edits: &BTreeMap<String, String>) -> Result<(), AgentError> {
    edits.iter().try_for_each(|(path, text)| write_file(Path::new(path), text))
}

/// Findings that the report holds in full are not said again in a brief.
fn is_reported(attempt: &Attempt, files: &[String], findings: usize) -> bool {
    let brief = attempt.promised.reply.is_none_or(|format| format == ReplyFormat::Brief);
    let words = WordMap::default();
    let held = files.iter().filter_map(|name| std::fs::read(attempt.out.join(name)).ok());
    brief
        && held.map(|bytes| findings_of_report(&Report::parse(&bytes), &words).len()).sum::<usize>()
            >= findings
}

/// Does this ending come with the work done? Questions, blocks and errors come without.
fn delivers(behaviour: &Behaviour) -> bool {
    match &behaviour.ending {
        Ending::Good
        | Ending::Findings(_)
        | Ending::WrongStatus
        | Ending::BackTo { .. }
        | Ending::Reply(_) => true,
        Ending::Asks(_)
        | Ending::Blocked { .. }
        | Ending::Error { .. }
        | Ending::Crash { .. }
        | Ending::Hang
        | Ending::Malformed
        | Ending::Quota { .. } => false,
    }
}

/// Writes what was promised; gives back the names that the reply claims.
fn write_outputs(attempt: &Attempt, behaviour: &Behaviour) -> Result<Vec<String>, AgentError> {
    if !delivers(behaviour) {
        return Ok(Vec::new());
    }
    let findings = match &behaviour.ending {
        Ending::Findings(list) => list.as_slice(),
        _ => &[],
    };
    let mut claimed = Vec::new();
    for output in &attempt.promised.outputs {
        let given = behaviour.files.get(&output.name).or_else(|| behaviour.files.get(&output.declared));
        if given.is_none() && output.optional {
            continue;
        }
        claimed.push(output.name.clone());
        if behaviour.writes == Writes::Nothing {
            continue;
        }
        let subject = Subject {
            name: &output.name,
            role: &attempt.role,
            request: &attempt.promised.request,
            reviewer: attempt.promised.reviewer,
            findings,
            block_at: attempt.promised.block_at.unwrap_or(Severity::Medium),
            list: output.list.as_ref(),
        };
        let text = given.cloned().unwrap_or_else(|| content(&output.contract, &subject));
        if let Err(violations) = contract::check(&output.contract, &output.name, text.as_bytes())
            && given.is_none()
        {
            eprintln!(
                "the rehearsal cannot make up a `{}` that its contract accepts; give it with `files:`",
                output.name
            );
            for violation in violations {
                eprintln!("  {violation}");
            }
        }
        write_file(&attempt.out.join(&output.name), &text)?;
    }
    Ok(claimed)
}
