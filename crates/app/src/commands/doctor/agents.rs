//! Agents on this machine: which program each is, where it is found, what version it says it has.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use gatewright_agents::{Adapter, acp_named, adapter_named};
use gatewright_workflow::{
    config::{BUILT_IN_AGENTS, Config, DEFAULT_AGENT},
    frozen::Agent as Configured,
};
use serde_json::{Value, json};

use super::{
    Finding, Level,
    ask::{ask, flags_in, is_before},
};

/// An agent that is configured or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    pub command: Vec<String>,
    pub configured: bool,
    pub default: bool,
    pub path: Option<PathBuf>,
    pub version: Option<String>,
    /// The flags that its page of help names; `None` = it has none, or did not say in time.
    pub flags: Option<Vec<String>>,
    /// Whether somebody is logged in, as far as files and variables tell; `None` = only its model could say.
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

    /// It has a login, and only its model could say whether somebody is.
    pub fn login_is_unclear(&self) -> bool {
        self.adapter.is_some() && self.login.is_none()
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
            "tried_version": self.tried_version(),
            "flags": self.flags, "flags_missing": self.flags_missing(), "traps": self.traps(),
        })
    }

    /// Flags that are used with it and that it knows.
    pub fn flags_taken(&self) -> Vec<&'static str> {
        self.flags_used(|known, flag| known.iter().any(|one| one == flag))
    }

    /// Flags that would be used with it and that it does not know.
    fn flags_missing(&self) -> Vec<&'static str> {
        self.flags_used(|known, flag| !known.iter().any(|one| one == flag))
    }

    fn flags_used(&self, keep: impl Fn(&[String], &str) -> bool) -> Vec<&'static str> {
        let (Some(adapter), Some(known)) = (self.adapter(), &self.flags) else { return Vec::new() };
        adapter.help().flags.iter().copied().filter(|flag| keep(known, flag)).collect()
    }

    /// What is odd about this version of it.
    fn traps(&self) -> Vec<&'static str> {
        let Some(adapter) = self.adapter() else { return Vec::new() };
        let is_old = |until: &str| self.version.as_ref().is_some_and(|version| is_before(version, until));
        let old = adapter.old_traps().iter().filter(|(until, _)| is_old(until)).map(|(_, trap)| *trap);
        adapter.traps().iter().copied().chain(old).collect()
    }

    /// The version that the tests run; none: nobody has tried this way to drive it.
    fn tried_version(&self) -> Option<&'static str> {
        self.adapter().map(|adapter| adapter.tried_version()).filter(|version| !version.is_empty())
    }

    /// How its program is had.
    fn installed_by(&self) -> Option<String> {
        let package =
            self.adapter().map(|adapter| adapter.package()).filter(|package| !package.is_empty())?;
        Some(format!("npm install -g {package}"))
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
    // Beside each other, but each is asked one thing after the other.
    let asked: Vec<_> = found
        .iter()
        .map(|agent| {
            let help = agent.adapter().map_or(&[][..], |adapter| adapter.help().args);
            let path = agent.path.clone()?;
            Some(std::thread::spawn(move || (version_of(&path), flags_of(&path, help))))
        })
        .collect();
    for (agent, answers) in found.iter_mut().zip(asked) {
        let answers = answers.and_then(|thread| thread.join().ok());
        (agent.version, agent.flags) = answers.unwrap_or_default();
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
        flags: None,
        login: adapter.and_then(|adapter| is_logged_in(adapter, &known)),
        adapter: adapter.map(|adapter| adapter.name()),
        acp: known.protocol.is_some(),
    }
}

/// A file of a login, or a key in a variable that the agent will get: yes. What the file holds is not looked at, only
/// whether it holds anything. Where there are other ways to its provider, and somebody may have taken one, nobody can say.
fn is_logged_in(adapter: &dyn Adapter, agent: &Configured) -> Option<bool> {
    let (files, variables) = adapter.login();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let is_set = |name: &&str| agent.set.contains_key(*name) || std::env::var_os(name).is_some();
    if files.iter().any(|file| holds_something(&home.join(file))) || variables.iter().any(&is_set) {
        return Some(true);
    }
    let (settings, switches) = adapter.other_logins()?;
    let here = std::env::current_dir().unwrap_or_default();
    let other_way = settings.iter().any(|file| home.join(file).exists() || here.join(file).exists())
        || switches.iter().any(is_set);
    let told_more =
        !(agent.set.is_empty() && agent.env.is_empty() && agent.args.is_empty() && agent.command.is_empty());
    // There they keep it in the system's own store.
    (!other_way && !told_more && !cfg!(target_os = "macos")).then_some(false)
}

/// Some agents leave an empty file at their first start.
fn holds_something(path: &Path) -> bool {
    // What cannot be read may be a login.
    path.exists() && std::fs::read(path).map_or(true, |bytes| !matches!(bytes.trim_ascii(), b"" | b"{}"))
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
    let unclear = agents
        .iter()
        .filter(|agent| agent.is_wanted() && agent.path.is_some() && agent.login_is_unclear())
        .map(|agent| {
            let what = format!(
                "whether agent `{}` is logged in cannot be told without asking its model",
                agent.name
            );
            Finding::new(Level::Note, what, format!("gatewright doctor --probe {}", agent.name))
        });
    let untried = agents.iter().filter_map(|agent| {
        let (_, version) = (agent.adapter()?, agent.version.as_ref()?);
        let tried = match agent.tried_version() {
            Some(tried) if version.contains(tried) => return None,
            Some(tried) => format!("its adapter was tried with {tried}"),
            None if agent.acp => "over ACP no version of it was tried".to_owned(),
            None => return None,
        };
        let what = format!("agent `{}` is {version}; {tried}", agent.name);
        Some(Finding::new(Level::Note, what, format!("gatewright doctor --probe {} tries it", agent.name)))
    });
    let traps = agents.iter().filter(|agent| agent.path.is_some()).flat_map(|agent| {
        let name = &agent.name;
        agent.traps().into_iter().map(move |trap| Finding::new(Level::Note, format!("{name} {trap}"), ""))
    });
    let unknown_flags = agents.iter().filter(|agent| !agent.flags_missing().is_empty()).map(|agent| {
        let what = format!(
            "agent `{}` does not know {}, which is used with it",
            agent.name,
            agent.flags_missing().join(", ")
        );
        let tried = agent.tried_version().unwrap_or_default();
        let remedy = agent.installed_by().map(|command| format!("{command}@{tried}")).unwrap_or_default();
        let level = if agent.is_wanted() { Level::Warning } else { Level::Note };
        Finding::new(level, what, remedy)
    });
    let missing = missing
        .map(|agent| {
            let role = if agent.default { "the default agent" } else { "agent" };
            let what = format!("{role} `{}` is not there: {}", agent.name, agent.looked_for());
            let install = agent.installed_by().unwrap_or_else(|| "install it".to_owned());
            let remedy = if present.is_empty() {
                format!("{install}, or name another program under `agents:` in .gatewright/config.yaml; `gatewright demo` works without any")
            } else {
                format!("{install}, or use one that is there: --agent {}, or `agent: {}` in .gatewright/config.yaml", present[0], present[0])
            };
            Finding::new(if agent.default { Level::Error } else { Level::Warning }, what, remedy)
        });
    missing.chain(logged_out).chain(unclear).chain(unknown_flags).chain(untried).chain(traps).collect()
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

/// What its page of help names; nothing if it has none.
fn flags_of(path: &Path, help: &[&str]) -> Option<Vec<String>> {
    let page = if help.is_empty() { None } else { ask(path, help) }?;
    Some(flags_in(&page)).filter(|flags| !flags.is_empty())
}

/// The first line that the program prints for `--version`.
fn version_of(path: &Path) -> Option<String> {
    let said = ask(path, &["--version"])?;
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}
