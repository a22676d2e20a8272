//! Agents over the Agent Client Protocol. `gatewright acp-turn` is their client: one turn, a process like any
//! other, whose lines are already in our vocabulary. What an agent keeps to itself in its headless mode is asked
//! here, one tool call at a time, and answered by the role's policy.

use gatewright_core::fact::TroubleKind;
use serde_json::{Value, json};

use crate::{
    adapter::{Adapter, Capabilities, Exit, Help, Means, Places, Reader},
    claude::{Claude, overruled_mode, own_mode},
    codex::{self, Codex},
    dialect::{ended_early, foreign_modes, number_at, text_at},
    event::{Event, Usage},
    gemini::Gemini,
    opencode::Opencode,
    order::{Conversation, Launch, Order, Policy},
    qwen::Qwen,
    told::Told,
    trouble::Trouble,
};

/// One agent by this protocol.
pub struct Acp {
    /// How the same agent is driven without it: its environment, its places, its login.
    house: Option<&'static dyn Adapter>,
    /// Program and arguments that make it speak the protocol.
    command: &'static [&'static str],
    tried: &'static str,
    /// The npm package of a program of its own.
    package: &'static str,
    traps: &'static [&'static str],
}

/// Agents whose way to speak it is known.
static KNOWN: [Acp; 5] = [
    Acp {
        house: Some(&Claude),
        command: &["claude-agent-acp"],
        tried: "0.99.1",
        package: "@agentclientprotocol/claude-agent-acp",
        traps: &["over ACP it is a program of its own: npm package @agentclientprotocol/claude-agent-acp"],
    },
    Acp {
        house: Some(&Codex),
        command: &["codex-acp"],
        tried: "2.6.0",
        package: "@agentclientprotocol/codex-acp",
        traps: &[
            "over ACP it is a program of its own: npm package @agentclientprotocol/codex-acp",
            "over ACP a failing provider is told as text only: it is seen as a malformed reply",
            "over ACP it asks for nothing inside our sandbox, which holds what it does",
        ],
    },
    Acp {
        house: Some(&Gemini),
        command: &["gemini", "--acp"],
        tried: "",
        package: "",
        traps: &["over ACP its conversations can be gone on with once at most"],
    },
    Acp {
        house: Some(&Opencode),
        command: &["opencode", "acp"],
        tried: "1.18.33",
        package: "",
        traps: &[
            "over ACP it asks nothing: its own settings deny, and it goes on",
            "over ACP a provider's error is told by its words; its number by a plugin of ours, once it has installed what plugins need",
            "over ACP it tells the tokens of its last call and the cost of the whole conversation: what an attempt spends is told by a plugin of ours, once it has installed what plugins need, and is unknown before",
        ],
    },
    Acp { house: Some(&Qwen), command: &["qwen", "--acp"], tried: "", package: "", traps: &[] },
];

/// Any other; its command is in the configuration.
pub static ANY_ACP: Acp = Acp { house: None, command: &[], tried: "", package: "", traps: &[] };

/// Where the command of such an agent wants its model.
const MODEL: &str = "{model}";

fn with_model(part: &str, model: Option<&str>) -> String {
    part.replace(MODEL, model.unwrap_or_default())
}

/// The agent of this name, over the protocol.
pub fn acp_named(name: &str) -> &'static dyn Adapter {
    KNOWN.iter().find(|known| known.name() == name).unwrap_or(&ANY_ACP)
}

impl Adapter for Acp {
    fn name(&self) -> &'static str {
        self.house.map_or("acp", Adapter::name)
    }

    fn program(&self) -> &'static str {
        self.command.first().copied().unwrap_or_default()
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let house = self.house.map(|house| house.launch(order)).unwrap_or_default();
        let mut launch = Launch { argv: Vec::new(), prompt_on_stdin: true, ..house };
        // What it does unasked nobody else could prevent.
        launch.hold_read_only |= order.policy.contained && order.policy.read_only && self.house.is_none();
        let client = order.desk.map_or("gatewright", |desk| &desk.program);
        launch.arg(&[client, "acp-turn"]);
        if let Conversation::Resumed { session } = order.conversation {
            launch.arg(&["--resume", session]);
        }
        let policy = order.policy;
        if policy.read_only {
            launch.arg(&["--read-only"]);
        }
        if policy.may_run.as_ref().is_some_and(Vec::is_empty) {
            launch.arg(&["--may-run-nothing"]);
        }
        for command in policy.may_run.iter().flatten() {
            launch.arg(&["--may-run", command]);
        }
        if policy.network == Some(false) {
            launch.arg(&["--no-network"]);
        }
        // Nobody else knows its words.
        if self.name() == "claude" {
            launch.option("--mode", own_mode(policy));
        }
        // Known agents have ways of their own to be told.
        let in_command = |part: &String| part.contains(MODEL);
        let by_place = order.command.iter().chain(order.args).any(in_command);
        if self.house.is_none() && !by_place {
            launch.option("--model", order.model);
        }
        // Where the agent's own settings have the tools already, the session must not bring them again.
        if order.desk.is_some() && !self.settings_have_desk() {
            launch.arg(&["--out", order.out]);
        }
        launch.arg(&["--"]);
        if order.command.is_empty() {
            launch.arg(self.command);
        } else {
            launch.argv.extend(order.command.iter().map(|part| with_model(part, order.model)));
        }
        self.choose_model(&mut launch, order.model);
        if self.name() == "codex" {
            codex::configure_acp(&mut launch, order, self.program());
        }
        launch.argv.extend(order.args.iter().map(|part| with_model(part, order.model)));
        if self.name() == "claude" {
            // Its tools of servers would hide behind a search.
            launch.set(&[("ENABLE_TOOL_SEARCH", "false")]);
        }
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AcpReader { sums_up: self.name() != "opencode", ..AcpReader::default() })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: false,
            resume: Means::Yes("`session/resume` or `session/load`, if it has one"),
            read_only: Means::Yes(
                "its requests for leave are denied; others than the known ones by our sandbox too",
            ),
            read_only_writes_out: false,
            desk: Means::Yes("`mcpServers` of the session"),
            listed_commands: Means::Yes("its requests are answered by the list"),
            network: Means::No("its web tools only, not its shell"),
            effort: Means::No(""),
            max_turns: Means::No(""),
            tokens: true,
            cost: true,
            spending: false,
            shows_waiting: false,
            fallback_models: Means::No(""),
            structured_reply: Means::No(""),
            stopping: "`session/cancel`; it ends its command",
            quiet: "as without ACP",
            own_data: "as without ACP",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        let mut said = vec![
            "over ACP only what it asks for can be denied; what it does unasked is checked after".to_owned(),
        ];
        if !policy.read_only && policy.may_write.is_some() {
            said.push("`may_write` is checked after the attempt, not prevented".to_owned());
        }
        for (is_set, name) in [(policy.effort.is_some(), "effort"), (policy.max_turns.is_some(), "max_turns")]
        {
            if is_set {
                said.push(format!("`{name}` cannot be told over ACP"));
            }
        }
        if policy.network == Some(false) && policy.may_run.as_ref().is_none_or(|list| !list.is_empty()) {
            said.push("`network: false` keeps its web tools away, but not the commands it runs".to_owned());
        }
        if self.name() == "codex" && policy.may_run.is_some() {
            said.push(
                "a list of commands cannot be given; what runs is held by its sandbox or ours".to_owned(),
            );
        }
        if !policy.disallowed_tools.is_empty() {
            said.push("single tools cannot be taken away over ACP".to_owned());
        }
        if let Some(mode) = policy.sandbox_mode.as_ref().filter(|_| self.name() != "codex") {
            said.push(format!("`sandbox_mode: {mode}` cannot be told over ACP"));
        }
        let modes = Policy { sandbox_mode: None, ..policy.clone() };
        said.extend(if self.name() == "claude" {
            overruled_mode(policy).into_iter().collect()
        } else {
            foreign_modes(&modes)
        });
        // Who has no limits needs none to be told.
        if *policy == Policy::default() { Vec::new() } else { said }
    }

    fn model_of_tier(&self, tier: &str) -> Option<&'static str> {
        self.house.and_then(|house| house.model_of_tier(tier))
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        self.house.map_or((&[], &[]), Adapter::login)
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        self.house.and_then(Adapter::other_logins)
    }

    fn places(&self) -> Places {
        self.house.map(Adapter::places).unwrap_or_default()
    }

    fn extras(&self) -> Option<&'static str> {
        self.house.and_then(Adapter::extras)
    }

    fn login_remedy(&self) -> &'static str {
        self.house.map_or("log in as the agent's own documentation says", Adapter::login_remedy)
    }

    fn traps(&self) -> &'static [&'static str] {
        self.traps
    }

    /// What it takes is said by the protocol.
    fn help(&self) -> Help {
        Help { args: &[], flags: &[] }
    }

    fn package(&self) -> &'static str {
        if self.command.len() == 1 { self.package } else { self.house.map_or("", Adapter::package) }
    }

    fn tried_version(&self) -> &'static str {
        self.tried
    }
}

impl Acp {
    /// Gemini CLI and opencode find the server in the settings that are made for them anyway.
    fn settings_have_desk(&self) -> bool {
        matches!(self.name(), "gemini" | "opencode")
    }

    /// The protocol has no stable way to choose a model; agents have their own.
    fn choose_model(&self, launch: &mut Launch, model: Option<&str>) {
        let Some(model) = model else { return };
        match self.name() {
            "claude" => {
                launch.set(&[("ANTHROPIC_MODEL", model)]);
            }
            "gemini" | "qwen" => {
                launch.arg(&["-m", model]);
            }
            "opencode" => {
                let settings = launch.env.get("OPENCODE_CONFIG_CONTENT");
                if let Some(Ok(mut settings)) = settings.map(|text| serde_json::from_str::<Value>(text)) {
                    settings["model"] = json!(model);
                    launch.set(&[("OPENCODE_CONFIG_CONTENT", &settings.to_string())]);
                }
            }
            _ => {}
        }
    }
}

/// Reads the lines of `gatewright acp-turn`.
#[derive(Debug, Default)]
struct AcpReader {
    told: Told,
    end: Option<Value>,
    /// The last thing that it said is that it waits.
    waits: Option<Trouble>,
    /// What it tells by the protocol is what the turn has spent.
    sums_up: bool,
    /// It went on with a conversation.
    resumed: bool,
    /// It has used a tool: its model was called more than once.
    worked: bool,
}

impl AcpReader {
    /// What of a line of usage is known to be that of the turn.
    fn known(&self, usage: Usage, line: &Value) -> Usage {
        let summed = line.get("summed").and_then(Value::as_bool) == Some(true);
        if self.sums_up || summed {
            return usage;
        }
        // The tokens are of the last call, the cost is of the whole conversation.
        let cost = usage.micro_usd.filter(|_| !self.resumed);
        let calls = if self.worked { Usage::default() } else { usage };
        Usage { micro_usd: cost, ..calls }
    }
}

impl Reader for AcpReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = serde_json::from_str::<Value>(line).unwrap_or_default();
        // Kept to be read again; what it means stands beside it.
        if text_at(&value, "/event") == Some("wire") {
            return Vec::new();
        }
        let Ok(mut event) = serde_json::from_value::<Event>(value.clone()) else {
            return self.told.unknown(text_at(&value, "/event").or(Some("text")));
        };
        if let Event::Usage { usage } = &mut event {
            *usage = self.known(*usage, &value);
        }
        self.waits = match &event {
            Event::Waiting { why, wait_ms } => {
                Some(Trouble { wait_ms: *wait_ms, ..Trouble::read(None, why) })
            }
            Event::Usage { .. } | Event::Finished { .. } => self.waits.take(),
            _ => None,
        };
        match &event {
            Event::Started { session, .. } => {
                self.told.session.clone_from(session);
                self.resumed = value.get("resumed").and_then(Value::as_bool) == Some(true);
            }
            Event::Denied { tool } => drop(self.told.deny(tool)),
            Event::Usage { usage } => self.told.usage = *usage,
            Event::Finished { .. } => self.end = Some(value),
            Event::Unknown { .. } => self.told.unknown += 1,
            Event::ToolStarted { .. } | Event::ToolEnded { .. } => self.worked = true,
            Event::Text { .. } | Event::Waiting { .. } => {}
        }
        vec![event]
    }

    fn waits(&self) -> Option<Trouble> {
        self.waits.clone()
    }

    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        let Some(end) = &self.end else {
            told.trouble = Some(self.waits().unwrap_or_else(|| ended_early(exit)));
            return told;
        };
        text_at(end, "/text").unwrap_or_default().clone_into(&mut told.text);
        told.trouble = match text_at(end, "/trouble") {
            None if exit.code == Some(0) => None,
            None => Some(self.waits().unwrap_or_else(|| ended_early(exit))),
            Some(words) if words == "it was interrupted" => {
                Some(self.waits().unwrap_or_else(|| Trouble::new(TroubleKind::Interrupted, words)))
            }
            // The protocol's own number for it.
            Some(words) if words.contains("(code -32000)") => Some(Trouble::new(TroubleKind::Auth, words)),
            Some(words) => Some(Trouble::read(number_at(end, "/status"), words)),
        };
        told
    }
}
