//! `gatewright doctor`: what is missing or wrong here, each with its remedy. Changes nothing, unless told to
//! take leftover worktrees away.

pub mod agents;
mod ask;
mod machine;
mod probe;
mod runs;
pub mod untold;
mod worktrees;

use serde_json::json;

use crate::{
    cli::DoctorArgs,
    command_error::{CommandError, exit},
    render::text::{columns, one_line, pad, put, put_json},
    terminal::{Style, paint},
};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing can be run before it is mended.
    Error,
    /// Something does not work or needs a person.
    Warning,
    /// Good to know; nothing is wrong.
    Note,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    pub what: String,
    pub remedy: String,
}

impl Finding {
    pub fn new(level: Level, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level, what: what.into(), remedy: remedy.into() }
    }
}

pub fn doctor(args: &DoctorArgs) -> Result<u8, CommandError> {
    if let Some(agent) = &args.probe {
        return probe::probe(agent);
    }
    let mut findings = machine::git();
    let here = machine::configuration(&mut findings)?;
    findings.extend(machine::repository(&here.project));
    findings.extend(machine::state_directory(&here.project));
    findings.extend(machine::sandbox(&here.config));
    let agents = agents::agents(&here.config);
    findings.extend(agents::findings(&agents));
    findings.extend(untold::findings(&here.project.root, &here.config));
    findings.extend(runs::findings(&here.project));
    findings.extend(worktrees::findings(&here.project, args.remove_worktrees));
    let wrong = findings.iter().filter(|finding| finding.level != Level::Note).count();
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|one| json!({"level": one.level.word(), "what": one.what, "remedy": one.remedy}))
            .collect();
        let agents: Vec<_> = agents.iter().map(agents::Agent::json).collect();
        put_json(&json!({
            "schema_version": 1, "project": here.project.root, "state_dir": here.project.state, "findings": list, "agents": agents,
        }))?;
    } else {
        put(human(&here, &findings, &agents).as_bytes())?;
        if wrong == 0 {
            eprintln!("\nnothing is wrong");
        }
    }
    Ok(if wrong == 0 { exit::DONE } else { exit::FAILED })
}

fn human(here: &machine::Here, findings: &[Finding], agents: &[agents::Agent]) -> String {
    let mut text = format!(
        "project  {}\nstate    {}\n\nagents\n",
        here.project.root.display(),
        here.project.state.display()
    );
    let width = agents.iter().map(|agent| columns(&agent.name)).max().unwrap_or(0);
    for agent in agents.iter().filter(|agent| agent.is_wanted() || agent.path.is_some()) {
        let mark = if agent.path.is_some() { "✓" } else { "✗" };
        let mut words = match &agent.path {
            Some(path) => path.display().to_string(),
            None => format!("not found ({})", one_line(&agent.looked_for())),
        };
        if let Some(version) = &agent.version {
            words.push_str(&format!("  {}", one_line(version)));
        }
        if agent.path.is_some() && agent.login == Some(false) {
            words.push_str("  not logged in");
        }
        if agent.path.is_some() && agent.login_is_unclear() {
            words.push_str("  login not known");
        }
        let default = if agent.default { "  (default)" } else { "" };
        text.push_str(&format!("  {mark} {}  {words}{default}\n", pad(&agent.name, width)));
        let taken = agent.flags_taken();
        if !taken.is_empty() {
            text.push_str(&format!("    {}  takes {}\n", pad("", width), taken.join(" ")));
        }
    }
    if !findings.is_empty() {
        text.push_str("\nfindings\n");
    }
    for finding in findings {
        let (mark, style) = match finding.level {
            Level::Error => ("✗", Style::Red),
            Level::Warning => ("!", Style::Yellow),
            Level::Note => ("·", Style::Dim),
        };
        text.push_str(&format!(
            "  {} {}\n",
            paint(style, &format!("{mark} {}:", finding.level.word())),
            one_line(&finding.what)
        ));
        if !finding.remedy.is_empty() {
            text.push_str(&format!("      {}\n", one_line(&finding.remedy)));
        }
    }
    text
}
