//! Reads `GATEWRIGHT_FAULT` and acts at the n-th operation of a kind. Must not know disks or journals.
//!
//! `GATEWRIGHT_FAULT=<abort|error|tear>:<kind>:<n>`; n counts from 1, per kind and per process. `tear` is for
//! `write`: half of the bytes are written, then the process aborts. With `GATEWRIGHT_FAULT_LOG=<file>` each
//! operation appends the line `<kind> <n> <pid>`, from which a test learns how many there are.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use gatewright_attempts::Defence;
use gatewright_core::plan::{Kind, Plan};
use gatewright_workflow::yaml::Limits;

/// What happens at the chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The process ends before the operation.
    Abort,
    /// The operation is not done and returns an error.
    Error,
    /// The write is done by half, then the process ends.
    Tear,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    action: Action,
    kind: String,
    at: u64,
}

struct Points {
    fault: Option<Fault>,
    log: Option<PathBuf>,
    counts: Mutex<BTreeMap<String, u64>>,
}

/// Counts one operation of `kind`; aborts the process or returns an error when it is the chosen one.
pub fn point(kind: &str) -> io::Result<()> {
    match reached(kind) {
        None => Ok(()),
        Some(Action::Error) => Err(injected(kind)),
        Some(Action::Abort | Action::Tear) => std::process::abort(),
    }
}

/// As [`point`] for `write`; `tear` is given half of the bytes to write before the process ends.
pub fn write_point(bytes: &[u8], tear: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
    match reached("write") {
        None => Ok(()),
        Some(Action::Error) => Err(injected("write")),
        Some(Action::Abort) => std::process::abort(),
        Some(Action::Tear) => {
            // The process ends either way; whether the half arrived is the disk's business.
            let _ = tear(&bytes[..bytes.len() / 2]);
            std::process::abort()
        }
    }
}

/// How far the clock is off: the number in the file that `GATEWRIGHT_CLOCK_FILE` names, read each time, so that a
/// test can set the clock of a running engine.
pub fn clock_jump_ms() -> i64 {
    let file = std::env::var_os("GATEWRIGHT_CLOCK_FILE");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// What a careless reader makes of an agent's words, if [`Defence::CarefulReading`] was taken away: code blocks and
/// quotations are as good as anything else, and nobody reads on after the first reply.
pub fn read(words: Vec<u8>) -> Vec<u8> {
    if !Defence::CarefulReading.is_off() {
        return words;
    }
    let text = String::from_utf8_lossy(&words).into_owned();
    let mut read = String::new();
    for line in text.lines().filter(|line| !line.starts_with("```")) {
        let line = line.strip_prefix("> ").unwrap_or(line);
        read.push_str(line);
        read.push('\n');
        if line.starts_with("NEXT_INPUT:") {
            break;
        }
    }
    read.into_bytes()
}

/// What holds where [`Defence::InputLimits`] was taken away: as much as there is.
pub fn yaml_limits() -> Limits {
    if !Defence::InputLimits.is_off() {
        return Limits::USUAL;
    }
    let any = usize::MAX / 4;
    Limits { bytes: any, depth: Limits::USUAL.depth, nodes: any, aliases: any, replayed: any }
}

/// The same for the number of items.
pub fn plan(mut plan: Plan) -> Plan {
    if Defence::InputLimits.is_off() {
        let steps = plan.graphs.values_mut().flat_map(|graph| graph.steps.values_mut());
        for step in steps {
            if let Kind::FanOut(fan_out) = &mut step.kind {
                fan_out.items_max = usize::MAX;
            }
        }
    }
    plan
}

fn injected(kind: &str) -> io::Error {
    io::Error::other(format!("injected by GATEWRIGHT_FAULT at {kind}"))
}

fn reached(kind: &str) -> Option<Action> {
    let points = points();
    let count = {
        let mut counts = points.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(kind.to_owned()).or_insert(0);
        *count += 1;
        *count
    };
    if let Some(path) = &points.log {
        let line = format!("{kind} {count} {}\n", std::process::id());
        let written = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            stop(&format!("GATEWRIGHT_FAULT_LOG={}: {error}", path.display()));
        }
    }
    points.fault.as_ref().filter(|fault| fault.kind == kind && fault.at == count).map(|fault| fault.action)
}

fn points() -> &'static Points {
    static POINTS: OnceLock<Points> = OnceLock::new();
    POINTS.get_or_init(|| Points {
        fault: std::env::var("GATEWRIGHT_FAULT").ok().filter(|text| !text.is_empty()).map(|text| {
            parse(&text).unwrap_or_else(|| {
                stop(&format!("GATEWRIGHT_FAULT={text}: expected <abort|error|tear>:<kind>:<n from 1>"))
            })
        }),
        log: std::env::var_os("GATEWRIGHT_FAULT_LOG").filter(|text| !text.is_empty()).map(PathBuf::from),
        counts: Mutex::new(BTreeMap::new()),
    })
}

/// A mistyped fault would let a crash test pass without a crash, so it ends the process.
fn stop(message: &str) -> ! {
    eprintln!("fault injection: {message}");
    std::process::exit(70)
}

fn parse(text: &str) -> Option<Fault> {
    let mut parts = text.split(':');
    let (action, kind, at) = (parts.next()?, parts.next()?, parts.next()?);
    let action = match action {
        "abort" => Action::Abort,
        "error" => Action::Error,
        "tear" if kind == "write" => Action::Tear,
        _ => return None,
    };
    let at = at.parse().ok().filter(|at| *at > 0)?;
    (parts.next().is_none() && !kind.is_empty()).then(|| Fault { action, kind: kind.to_owned(), at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_parsed_or_refused() {
        let fault = |action, kind: &str, at| Some(Fault { action, kind: kind.to_owned(), at });
        assert_eq!(parse("abort:write:17"), fault(Action::Abort, "write", 17));
        assert_eq!(parse("error:fsync:3"), fault(Action::Error, "fsync", 3));
        assert_eq!(parse("tear:write:1"), fault(Action::Tear, "write", 1));
        for text in ["", "abort", "abort:write", "abort:write:0", "abort:write:x", "stop:write:1", "abort::1"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("tear:fsync:1"), None);
        assert_eq!(parse("abort:write:1:2"), None);
    }
}
