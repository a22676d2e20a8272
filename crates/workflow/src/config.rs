//! `.gatewright/config.yaml`: the project's over the user's over defaults.
//!
//! Same walker and same diagnostics as workflows; an unknown key is an error with the nearest one.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_agents::{Declared, Fields, ReplyFrom, SessionFlags, adapter_named};
use gatewright_core::plan::Budget;
use serde_json::Value;

use crate::{
    definition::{check_shape::check_shape, keys::CONFIG, shape::Shape},
    diagnostic::{Diagnostic, Report, codes, suggestion},
    frozen::{Agent, PromptVia, Sandbox},
    yaml::tree::{Node, parse_tree},
};

/// Agents that need no configuration; an agent with one of these names and no command is its adapter.
pub const BUILT_IN_AGENTS: &[&str] = &[
    "claude",
    "codex",
    "gemini",
    "opencode",
    "copilot",
    "cursor",
    "aider",
    "amp",
    "goose",
    "qwen",
    "pi",
    "rehearsal",
];

/// Where an agent was looked for.
pub(crate) fn no_such_agent(name: &str) -> String {
    format!("there is no agent `{name}`: it is neither built in nor under `agents` of a configuration")
}

/// The agent of roles that name none, when no configuration does.
pub const DEFAULT_AGENT: &str = "claude";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub agent: Option<String>,
    pub agents: BTreeMap<String, Agent>,
    pub budget: Budget,
    /// A shell line or a command with arguments, with `{title}`, `{body}`, `{run}`.
    pub notify: Vec<String>,
    pub parallel_max: Option<u32>,
    pub protect: Vec<String>,
    /// For agents and checks that say nothing else.
    pub sandbox: Sandbox,
    /// Agents that name a sandbox of their own.
    own_sandboxes: BTreeSet<String>,
    /// `keep` or `restore`.
    pub on_trespass: Option<String>,
    pub state_dir: Option<String>,
    pub settings: BTreeMap<String, Value>,
    /// Globs of ignored files that worktrees get a copy of.
    pub seed: Vec<String>,
    /// A shell line or a command with arguments, with `{branch}`, `{base}`, `{title}`, `{run}`.
    pub pull_request: Vec<String>,
    /// The texts themselves, the user's first: `workflows: {NAME: …}` is merged into a definition's
    /// tree, and what is wrong with it is shown in this file.
    pub layers: Vec<ConfigText>,
}

/// One configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    pub label: String,
    pub text: String,
}

impl Config {
    /// Reads the layers, lowest first (user, project). What is wrong is reported for all of them;
    /// a layer with errors counts as far as it could be read.
    pub fn parse(layers: &[ConfigText]) -> (Config, Vec<Diagnostic>) {
        let mut report = Report::default();
        let mut config = Config { layers: layers.to_vec(), ..Config::default() };
        for layer in layers {
            let source = report.texts.add(&layer.label, &layer.text);
            match parse_tree(&layer.text, source) {
                Ok(tree) => {
                    check_shape(&tree, &Shape::Object(&CONFIG), "the configuration", &mut report);
                    config.take(&tree);
                    config.check_agents(&tree, &mut report);
                }
                Err(problems) => {
                    for problem in problems {
                        report.error(codes::SYNTAX, problem.span, problem.message, "");
                    }
                }
            }
        }
        config.share_sandbox();
        (config, report.into_sorted())
    }

    fn take(&mut self, tree: &Node) {
        self.agent = tree.string("agent").or(self.agent.take());
        for (name, node) in tree.get("agents").map(Node::entries).unwrap_or_default() {
            let below = self.agents.remove(&name.text);
            if node.get("sandbox").is_some() {
                self.own_sandboxes.insert(name.text.clone());
            }
            self.agents.insert(name.text.clone(), agent(node, below));
        }
        if let Some(budget) = tree.get("budget") {
            self.budget = budget_of(budget, &self.budget);
        }
        if let Some(notify) = tree.get("notify") {
            self.notify = notify.strings("command");
        }
        if let Some(request) = tree.get("pull_request") {
            self.pull_request = request.strings("command");
        }
        self.seed.extend(tree.strings("seed"));
        self.parallel_max = tree.limit("parallel_max").or(self.parallel_max);
        self.protect.extend(tree.strings("protect"));
        if let Some(sandbox) = tree.get("sandbox") {
            self.sandbox = sandbox_of(sandbox);
        }
        self.on_trespass = tree.string("on_trespass").or(self.on_trespass.take());
        self.state_dir = tree.string("state_dir").or(self.state_dir.take());
        for (key, value) in tree.get("settings").map(Node::entries).unwrap_or_default() {
            self.settings.insert(key.text.clone(), value.to_json());
        }
    }

    /// The common sandbox for agents without one; its places for the others too.
    fn share_sandbox(&mut self) {
        for (name, agent) in &mut self.agents {
            if !self.own_sandboxes.contains(name) {
                agent.sandbox = self.sandbox.clone();
            } else if let (Sandbox::On { write, .. }, Sandbox::On { write: common, .. }) =
                (&mut agent.sandbox, &self.sandbox)
            {
                write.extend(common.iter().cloned());
            }
        }
    }

    fn check_agents(&self, tree: &Node, report: &mut Report) {
        for (name, _) in tree.get("agents").map(Node::entries).unwrap_or_default() {
            let known = BUILT_IN_AGENTS.contains(&name.text.as_str());
            let empty = self
                .agents
                .get(&name.text)
                .is_none_or(|agent| agent.command.is_empty() && agent.adapter.is_none());
            if !known && empty {
                report.error(
                    codes::MISSING_KEY,
                    name.span,
                    format!("agent `{}` has no `command` and is not built in", name.text),
                    suggestion(&name.text, BUILT_IN_AGENTS.iter().copied()),
                );
            }
        }
        if let Some(agent) = tree.word("agent").filter(|agent| !self.knows_agent(&agent.text)) {
            report.error(
                codes::UNKNOWN_AGENT,
                agent.span,
                no_such_agent(&agent.text),
                self.instead_of_agent(&agent.text),
            );
        }
    }

    /// What to do about an agent that nobody knows: one that it may have meant, and how to find those that are there.
    pub(crate) fn instead_of_agent(&self, name: &str) -> String {
        let configured = self.agents.iter().filter(|(name, agent)| agent.program(name).is_some());
        let mut known: Vec<&str> = configured.map(|(name, _)| name.as_str()).collect();
        let works = |name: &&str| *name == "rehearsal" || adapter_named(name).is_some();
        known.extend(BUILT_IN_AGENTS.iter().copied().filter(works));
        known.sort_unstable();
        known.dedup();
        let near = suggestion(name, known);
        let gap = if near.is_empty() {
            ""
        } else if near.ends_with('?') {
            " "
        } else {
            "; "
        };
        format!("{near}{gap}`gatewright doctor` shows the agents that are there")
    }

    pub fn knows_agent(&self, name: &str) -> bool {
        self.agents.contains_key(name) || BUILT_IN_AGENTS.contains(&name)
    }

    /// The agent as configured; a built-in one that nobody configured has an empty command.
    pub fn agent_named(&self, name: &str) -> Agent {
        self.agents.get(name).cloned().unwrap_or_else(|| Agent {
            sandbox: self.sandbox.clone(),
            ..agent(&Node::null(crate::yaml::tree::Span::default()), None)
        })
    }
}

fn agent(node: &Node, below: Option<Agent>) -> Agent {
    let mut agent = below.unwrap_or(Agent {
        command: Vec::new(),
        prompt: PromptVia::Stdin,
        env: Vec::new(),
        set: BTreeMap::new(),
        parallel_max: None,
        processes_max: None,
        timeout_ms: None,
        idle_timeout_ms: None,
        sandbox: Sandbox::default(),
        adapter: None,
        protocol: None,
        args: Vec::new(),
        models: BTreeMap::new(),
        fallback: Vec::new(),
        declared: Declared::default(),
        repairs_max: None,
        resume_rounds: None,
    });
    if node.get("command").is_some() {
        agent.command = node.strings("command");
    }
    match node.string("prompt").as_deref() {
        Some("stdin") => agent.prompt = PromptVia::Stdin,
        Some("argument") => agent.prompt = PromptVia::Argument,
        Some("file") => agent.prompt = PromptVia::File,
        Some(_) | None => {}
    }
    if node.get("env").is_some() {
        agent.env = node.strings("env");
    }
    for (key, value) in node.get("set").map(Node::entries).unwrap_or_default() {
        agent.set.insert(key.text.clone(), value.text().unwrap_or_default().to_owned());
    }
    if let Some(sandbox) = node.get("sandbox") {
        agent.sandbox = sandbox_of(sandbox);
    }
    agent.adapter = node.string("adapter").or(agent.adapter.take());
    agent.protocol = node.string("protocol").or(agent.protocol.take());
    if node.get("args").is_some() {
        agent.args = node.strings("args");
    }
    for (tier, model) in node.get("models").map(Node::entries).unwrap_or_default() {
        agent.models.insert(tier.text.clone(), model.text().unwrap_or_default().to_owned());
    }
    if node.get("fallback").is_some() {
        agent.fallback = node.strings("fallback");
    }
    if let Some(reply) = node.get("reply") {
        agent.declared.reply = reply_from(reply);
    }
    if let Some(session) = node.get("session") {
        let flags = SessionFlags { start: session.strings("start"), resume: session.strings("resume") };
        agent.declared.session = Some(flags);
    }
    agent.repairs_max = natural(node, "repairs_max").or(agent.repairs_max);
    agent.resume_rounds = natural(node, "resume_rounds").or(agent.resume_rounds);
    agent.parallel_max = node.limit("parallel_max").or(agent.parallel_max);
    agent.processes_max = node.limit("processes_max").or(agent.processes_max);
    agent.timeout_ms = node.milliseconds("timeout").or(agent.timeout_ms);
    agent.idle_timeout_ms = node.milliseconds("idle_timeout").or(agent.idle_timeout_ms);
    agent
}

fn natural(node: &Node, key: &str) -> Option<u32> {
    node.whole(key).and_then(|number| u32::try_from(number).ok())
}

/// Where a declared agent's last message is.
fn reply_from(node: &Node) -> ReplyFrom {
    let fields = || Fields {
        text: node.string_or_empty("text"),
        only: node.string("only"),
        session: node.string("session"),
        tokens: node.string("tokens"),
        usd: node.string("usd"),
        error: node.string("error"),
    };
    match node.text().map_or_else(|| node.string("format"), |text| Some(text.to_owned())).as_deref() {
        Some("json") => ReplyFrom::Json(fields()),
        Some("jsonl") => ReplyFrom::Jsonl(fields()),
        Some(_) | None => ReplyFrom::Text,
    }
}

fn sandbox_of(node: &Node) -> Sandbox {
    match node.text() {
        Some("off") => Sandbox::Off,
        Some(_) | None => Sandbox::On {
            write: node.strings("write"),
            network: node.string("network").as_deref() != Some("off"),
        },
    }
}

/// A budget; what it does not name is taken from below.
pub fn budget_of(node: &Node, below: &Budget) -> Budget {
    Budget {
        wall_ms: node.milliseconds("wall").or(below.wall_ms),
        tokens: node.whole("tokens").or(below.tokens),
        micro_usd: node.micro_usd("usd").or(below.micro_usd),
        launches: node.whole("launches").or(below.launches),
        quota_wait_ms: node.milliseconds("quota_wait").or(below.quota_wait_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(label: &str, text: &str) -> ConfigText {
        ConfigText { label: label.to_owned(), text: text.to_owned() }
    }

    const SAMPLE: &str = r#"
agent: claude                     # the default agent for roles that name none
agents:
  claude: {}                      # built in: claude, codex, gemini, opencode, … , rehearsal
  mine:                           # any program: no code needed
    command: ["python3", "tools/agent.py", "--role", "{role}"]
    prompt: stdin                 # stdin | argument | file
    env: [OPENAI_API_KEY]         # names passed on, besides a small default set
    sandbox: { write: ["/data/cache"] }   # more places it may write; sandbox: off
budget: { usd: 20, wall: 4h }
notify: { command: "notify-send {title} {body}" }
"#;

    #[test]
    fn the_sample_of_the_interface_loads() {
        let (config, diagnostics) = Config::parse(&[layer("config.yaml", SAMPLE)]);
        assert_eq!(diagnostics, vec![]);
        assert_eq!(config.agents["mine"].command[1], "tools/agent.py");
        assert_eq!(
            config.agents["mine"].sandbox,
            Sandbox::On { write: vec!["/data/cache".to_owned()], network: true }
        );
        assert_eq!(config.budget.micro_usd, Some(20_000_000));
        assert_eq!(config.budget.wall_ms, Some(14_400_000));
        assert_eq!(config.notify, vec!["notify-send {title} {body}".to_owned()]);
    }

    #[test]
    fn s4_30_the_project_is_over_the_user_is_over_defaults() {
        let user = layer(
            "user.yaml",
            "agent: codex\nbudget: { usd: 5, wall: 1h }\nagents: { m: { command: [a], env: [X] } }",
        );
        let project = layer("project.yaml", "budget: { usd: 7 }\nagents: { m: { command: [b] } }");
        let (config, diagnostics) = Config::parse(&[user, project]);
        assert_eq!(diagnostics, vec![]);
        assert_eq!(config.agent.as_deref(), Some("codex"));
        assert_eq!((config.budget.micro_usd, config.budget.wall_ms), (Some(7_000_000), Some(3_600_000)));
        assert_eq!(config.agents["m"].command, vec!["b"]);
        assert_eq!(config.agents["m"].env, vec!["X"]);
    }

    /// In one word: for all and for one, either way, whatever the other says.
    #[test]
    fn a_sandbox_is_switched_by_a_word() {
        let usual = Sandbox::default();
        assert_eq!(usual, Sandbox::On { write: Vec::new(), network: true });
        for (text, common, own) in [
            ("", &usual, &usual),
            ("sandbox: on\n", &usual, &usual),
            ("sandbox: off\n", &Sandbox::Off, &Sandbox::Off),
            ("sandbox: \"off\"\n", &Sandbox::Off, &Sandbox::Off),
        ] {
            for (word, expected) in [("", own), (", sandbox: on", &usual), (", sandbox: off", &Sandbox::Off)]
            {
                let text = format!("{text}agents:\n  m: {{ command: [x]{word} }}\n");
                let (config, diagnostics) = Config::parse(&[layer("config.yaml", &text)]);
                assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
                assert_eq!((&config.sandbox, &config.agents["m"].sandbox), (common, expected), "{text}");
            }
        }
        let (_, diagnostics) = Config::parse(&[layer("config.yaml", "sandbox: of\n")]);
        assert_eq!(diagnostics.len(), 1, "a word that is none is an error, not a sandbox that is on or off");
    }

    #[test]
    fn a_number_of_processes_is_an_agents_own() {
        let text = "agents:\n  m: { command: [x], processes_max: 50 }\n  n: { command: [x] }\n";
        let (config, diagnostics) = Config::parse(&[layer("config.yaml", text)]);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(config.agents["m"].processes_max, Some(50));
        assert_eq!(config.agents["n"].processes_max, None);
        let (_, diagnostics) = Config::parse(&[layer("config.yaml", &text.replace("50", "0"))]);
        assert_eq!(diagnostics.len(), 1, "none at all is no limit but a mistake");
    }

    #[test]
    fn a_sandbox_for_all_is_the_default_of_each_and_its_places_are_everybodys() {
        let text = "sandbox: { write: [a], network: off }\nagents:\n  m: { command: [x] }\n  n: { command: [x], sandbox: { write: [b] } }\n  o: { command: [x], sandbox: off }\n";
        let (config, diagnostics) = Config::parse(&[layer("c.yaml", text)]);
        assert_eq!(diagnostics, vec![]);
        let on = |write: &[&str], network| Sandbox::On {
            write: write.iter().map(ToString::to_string).collect(),
            network,
        };
        assert_eq!(config.agents["m"].sandbox, on(&["a"], false));
        assert_eq!(config.agents["n"].sandbox, on(&["b", "a"], true));
        assert_eq!(config.agents["o"].sandbox, Sandbox::Off);
        assert_eq!(config.agent_named("claude").sandbox, on(&["a"], false));
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let (_, diagnostics) = Config::parse(&[layer("c.yaml", "agnet: claude\nagents:\n  clude: {}\n")]);
        assert_eq!(diagnostics.len(), 2);
        assert_eq!(diagnostics[0].remedy, "did you mean `agent`?");
        assert_eq!(diagnostics[1].remedy, "did you mean `claude`?");
        assert!(diagnostics[0].render().contains("1 | agnet: claude\n  | ^^^^^\n"));
    }
}
