//! Agents on this machine: which program each is, where it is found, what version it says it has.

use std::{
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gatewright_agents::{Adapter, acp_named, adapter_named};
use gatewright_workflow::{
    config::{BUILT_IN_AGENTS, Config, DEFAULT_AGENT},
    frozen::Agent as Configured,
};
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
    /// Whether somebody is logged in, as far as files and variables tell; `None` = nobody can say.
    pub login: Option<bool>,
    /// What drives it, if it is one that we know.
    pub adapter: Option<&'static str>,
    /// Over the Agent Client Protocol.
    pub acp: bool,
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

    pub fn adapter(&self) -> Option<&'static dyn Adapter> {
        if self.acp { self.adapter.map(acp_named) } else { self.adapter.and_then(adapter_named) }
    }

    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "command": self.command, "configured": self.configured, "default": self.default,
            "found": self.path.is_some(), "path": self.path, "version": self.version,
            "login": self.login.map(|there| if there { "yes" } else { "no" }),
            "tried_version": self.adapter().map(|adapter| adapter.tried_version()),
            "traps": self.adapter().map(|adapter| adapter.traps()).unwrap_or_default(),
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
    let known = config.agent_named(name);
    let adapter = known.adapter(name);
    let command = configured.map(|agent| agent.command.clone()).filter(|command| !command.is_empty());
    let command =
        command.unwrap_or_else(|| vec![known.program(name).unwrap_or_else(|| program_of(name).to_owned())]);
    let path = command.first().and_then(|program| on_path(program));
    Agent {
        name: name.to_owned(),
        command,
        configured: configured.is_some(),
        default: name == default,
        path,
        version: None,
        login: adapter.map(|adapter| is_logged_in(adapter, &known)),
        adapter: adapter.map(|adapter| adapter.name()),
        acp: known.protocol.is_some(),
    }
}

/// A file of a login, or a key in a variable that the agent will get. What the file holds is not looked at.
fn is_logged_in(adapter: &dyn Adapter, agent: &Configured) -> bool {
    let (files, variables) = adapter.login();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    files.iter().any(|file| home.join(file).exists())
        || variables.iter().any(|name| agent.set.contains_key(*name) || std::env::var_os(name).is_some())
        // Another provider's key, or a program that brings its own.
        || agent.set.keys().any(|name| name.ends_with("_KEY") || name.ends_with("_TOKEN"))
}

/// The program of a built-in agent.
pub fn program_of(agent: &str) -> &str {
    if agent == "cursor" { "cursor-agent" } else { agent }
}

pub fn findings(agents: &[Agent]) -> Vec<Finding> {
    let present: Vec<&str> =
        agents.iter().filter(|agent| agent.path.is_some()).map(|agent| agent.name.as_str()).collect();
    let missing = agents.iter().filter(|agent| agent.is_wanted() && agent.path.is_none());
    let logged_out =
        agents.iter().filter(|agent| agent.path.is_some() && agent.login == Some(false)).map(|agent| {
            let remedy = agent.adapter().map(|adapter| adapter.login_remedy()).unwrap_or_default();
            // Only who is to be used has to be logged in.
            let level = if agent.is_wanted() { Level::Warning } else { Level::Note };
            Finding::new(level, format!("agent `{}` seems not to be logged in", agent.name), remedy)
        });
    let untried = agents.iter().filter_map(|agent| {
        let (adapter, version) = (agent.adapter()?, agent.version.as_ref()?);
        let tried = adapter.tried_version();
        (!version.contains(tried)).then(|| {
            let what = format!("agent `{}` is {version}; its adapter was tried with {tried}", agent.name);
            Finding::new(Level::Note, what, format!("gatewright doctor --probe {} tries it", agent.name))
        })
    });
    let traps = agents.iter().filter(|agent| agent.is_wanted() && agent.path.is_some()).flat_map(|agent| {
        let traps = agent.adapter().map(|adapter| adapter.traps()).unwrap_or_default();
        traps.iter().map(|trap| Finding::new(Level::Note, format!("{} {trap}", agent.name), ""))
    });
    let missing = missing
        .map(|agent| {
            let role = if agent.default { "the default agent" } else { "agent" };
            let what = format!("{role} `{}` is not there: {}", agent.name, agent.looked_for());
            let remedy = if present.is_empty() {
                "install it, or name another program under `agents:` in .gatewright/config.yaml; `gatewright demo` works without any".to_owned()
            } else {
                format!("install it, or use one that is there: --agent {}, or `agent: {}` in .gatewright/config.yaml", present[0], present[0])
            };
            Finding::new(if agent.default { Level::Error } else { Level::Warning }, what, remedy)
        });
    missing.chain(logged_out).chain(untried).chain(traps).collect()
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
