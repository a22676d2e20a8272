//! Agents on this machine: which program each is, where it is found, what version it says it has.

use std::{
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gatewright_workflow::config::{BUILT_IN_AGENTS, Config, DEFAULT_AGENT};
use serde_json::{Value, json};

use super::{Finding, Level};

const VERSION_PATIENCE: Duration = Duration::from_secs(2);
const VERSION_BYTES_MAX: u64 = 16 * 1024;

/// An agent that is configured or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    pub command: Vec<String>,
    pub configured: bool,
    pub default: bool,
    pub path: Option<PathBuf>,
    pub version: Option<String>,
}

impl Agent {
    /// Somebody said that it is to be used.
    pub fn is_wanted(&self) -> bool {
        self.configured || self.default
    }

    pub fn looked_for(&self) -> String {
        let program = self.command.first().map_or("", String::as_str);
        if program.contains('/') {
            format!("looked for {program}")
        } else {
            format!("looked for `{program}` on PATH")
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "command": self.command, "configured": self.configured, "default": self.default,
            "found": self.path.is_some(), "path": self.path, "version": self.version,
        })
    }
}

/// Every agent: configured ones first, then the rest of the built-in ones.
pub fn agents(config: &Config) -> Vec<Agent> {
    let default = config.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let mut names: Vec<&str> = config.agents.keys().map(String::as_str).collect();
    for name in std::iter::once(default).chain(BUILT_IN_AGENTS.iter().copied()) {
        if !names.contains(&name) && name != "rehearsal" {
            names.push(name);
        }
    }
    let mut found: Vec<Agent> =
        names.iter().filter(|name| **name != "rehearsal").map(|name| agent(config, name, default)).collect();
    let versions: Vec<_> = found
        .iter()
        .map(|agent| agent.path.clone().map(|path| std::thread::spawn(move || version_of(&path))))
        .collect();
    for (agent, version) in found.iter_mut().zip(versions) {
        agent.version = version.and_then(|thread| thread.join().ok()).flatten();
    }
    found
}

fn agent(config: &Config, name: &str, default: &str) -> Agent {
    let configured = config.agents.get(name);
    let command = configured.map(|agent| agent.command.clone()).filter(|command| !command.is_empty());
    let command = command.unwrap_or_else(|| vec![program_of(name).to_owned()]);
    let path = command.first().and_then(|program| on_path(program));
    Agent {
        name: name.to_owned(),
        command,
        configured: configured.is_some(),
        default: name == default,
        path,
        version: None,
    }
}

/// The program of a built-in agent.
pub fn program_of(agent: &str) -> &str {
    if agent == "cursor" { "cursor-agent" } else { agent }
}

pub fn findings(agents: &[Agent]) -> Vec<Finding> {
    let present: Vec<&str> =
        agents.iter().filter(|agent| agent.path.is_some()).map(|agent| agent.name.as_str()).collect();
    let missing = agents.iter().filter(|agent| agent.is_wanted() && agent.path.is_none());
    missing
        .map(|agent| {
            let role = if agent.default { "the default agent" } else { "agent" };
            let what = format!("{role} `{}` is not there: {}", agent.name, agent.looked_for());
            let remedy = if present.is_empty() {
                "install it, or name another program under `agents:` in .gatewright/config.yaml; `gatewright demo` works without any".to_owned()
            } else {
                format!("install it, or use one that is there: --agent {}, or `agent: {}` in .gatewright/config.yaml", present[0], present[0])
            };
            Finding::new(if agent.default { Level::Error } else { Level::Warning }, what, remedy)
        })
        .collect()
}

/// Where a program is, as a shell would find it.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if program.is_empty() {
        return None;
    }
    if program.contains('/') {
        let path = PathBuf::from(program);
        return is_program(&path).then_some(path);
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

/// The first line that the program prints for `--version`; nothing if it takes too long or fails.
fn version_of(path: &Path) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = (&mut stdout).take(VERSION_BYTES_MAX).read_to_end(&mut text);
        text
    });
    let until = Instant::now() + VERSION_PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            // A grandchild may still hold the pipe: its reader is left behind, not waited for.
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    if !status.success() {
        return None;
    }
    while !reader.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = if reader.is_finished() { reader.join().ok()? } else { return None };
    let line = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned();
    (!line.is_empty()).then_some(line)
}
