//! pi, headless (`pi --mode json -p`).

use gatewright_core::fact::TroubleKind;
use serde_json::Value;

use crate::{
    adapter::{Adapter, Capabilities, Exit, Help, Means, Moved, Places, Reader},
    dialect::{ended_early, foreign_modes, number_at, target, text_at},
    event::{Event, Usage, price},
    order::{Conversation, Launch, Order, Policy},
    role::{effort_among, own_names, strange_effort, strange_tools},
    told::Told,
    trouble::Trouble,
};

#[derive(Debug)]
pub struct Pi;

/// Claude Code's tools by its names.
const TOOLS: [(&str, &str); 6] = [
    ("Edit", "edit"),
    ("Write", "write"),
    ("Bash", "bash"),
    ("Read", "read"),
    ("Grep", "grep"),
    ("Glob", "find"),
];
const EFFORTS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

impl Adapter for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        launch.arg(&["--mode", "json", "-p"]);
        match order.conversation {
            Conversation::New { session } | Conversation::Resumed { session } => {
                launch.arg(&["--session-id", session, "--session-dir", order.home]);
            }
        }
        launch.option("--model", order.model);
        let policy = order.policy;
        let effort = policy.effort.as_deref().and_then(|effort| effort_among(effort, &EFFORTS));
        launch.option("--thinking", effort);
        if policy.read_only {
            launch.arg(&["--tools", "read,grep,find,ls"]);
        }
        let (mut excluded, _) = own_names(&policy.disallowed_tools, &TOOLS);
        if policy.may_run.as_ref().is_some_and(Vec::is_empty) && !policy.read_only {
            excluded.push("bash".to_owned());
        }
        if !excluded.is_empty() {
            launch.arg(&["--exclude-tools", &excluded.join(",")]);
        }
        launch.argv.extend(order.args.iter().cloned());
        launch.set(&[("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0")]);
        launch.pass = vec!["PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<PiReader>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: true,
            resume: Means::Yes("`--session-id`"),
            read_only: Means::Yes("`--tools read,grep,find,ls`"),
            read_only_writes_out: false,
            desk: Means::No(""),
            listed_commands: Means::No("all or none"),
            network: Means::No(""),
            effort: Means::Yes("`--thinking`"),
            max_turns: Means::No(""),
            tokens: true,
            cost: true,
            spending: true,
            shows_waiting: true,
            fallback_models: Means::No(""),
            structured_reply: Means::No(""),
            stopping: "SIGTERM; it ends its command",
            quiet: "`PI_OFFLINE` `PI_TELEMETRY`",
            own_data: "its sessions, for each step",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        let mut said: Vec<String> = strange_tools(&policy.disallowed_tools, &TOOLS).into_iter().collect();
        said.extend(strange_effort(policy, &EFFORTS));
        if policy.may_run.as_ref().is_some_and(|list| !list.is_empty()) {
            said.push("it has no permissions: a list of commands cannot be given".to_owned());
        }
        if !policy.read_only && policy.may_write.is_some() {
            said.push("`may_write` is checked after the attempt, not prevented".to_owned());
        }
        if policy.network == Some(false) {
            said.push("`network: false` has no flag".to_owned());
        }
        if policy.max_turns.is_some() {
            said.push("`max_turns` has no flag".to_owned());
        }
        said.extend(foreign_modes(policy));
        said
    }

    fn model_of_tier(&self, _tier: &str) -> Option<&'static str> {
        None
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (
            &[".pi/agent/auth.json"],
            &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
        )
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        Some((&[".pi/agent/models.json", ".pi/agent/settings.json"], &["PI_CODING_AGENT_DIR"]))
    }

    fn places(&self) -> Places {
        Places {
            folders: &[".pi"],
            files: &[],
            moved: &[Moved { variable: "PI_CODING_AGENT_DIR", folder: ".pi", below: "" }],
        }
    }

    fn login_remedy(&self) -> &'static str {
        "run `pi` once and type /login, or set the key of its provider"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "exits with 0 whatever the provider says: only its stream tells",
            "has no permissions of its own: what a role may not use is not offered to its model",
        ]
    }

    fn old_traps(&self) -> &'static [(&'static str, &'static str)] {
        &[("0.87.0", "has no `--session-id`: its attempts fail, install a later one")]
    }

    fn help(&self) -> Help {
        Help {
            args: &["--help"],
            flags: &[
                "--mode",
                "--print",
                "--session-id",
                "--session-dir",
                "--model",
                "--thinking",
                "--tools",
                "--exclude-tools",
            ],
        }
    }

    fn package(&self) -> &'static str {
        "@earendil-works/pi-coding-agent"
    }

    fn tried_version(&self) -> &'static str {
        "0.87.1"
    }
}

#[derive(Debug, Default)]
struct PiReader {
    told: Told,
    spent: Usage,
    /// The last message of the assistant: why it stopped, and what went wrong.
    stopped: Option<(String, String)>,
    settled: bool,
    /// It tries again after this.
    waits: Option<Trouble>,
}

impl PiReader {
    fn message(&mut self, value: &Value) -> Vec<Event> {
        let Some(message) = value.get("message").filter(|one| text_at(one, "/role") == Some("assistant"))
        else {
            return Vec::new();
        };
        let mut events = Vec::new();
        let parts = message.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
        let text: String = parts
            .iter()
            .filter(|part| text_at(part, "/type") == Some("text"))
            .filter_map(|part| text_at(part, "/text"))
            .collect();
        if !text.is_empty() {
            events.push(Event::Text { text: text.clone() });
        }
        self.told.text = text;
        self.told.model = text_at(message, "/model").map(str::to_owned);
        self.spent.add_call(&Usage {
            input_tokens: number_at(message, "/usage/input"),
            output_tokens: number_at(message, "/usage/output"),
            cached_tokens: number_at(message, "/usage/cacheRead"),
            micro_usd: price(message.pointer("/usage/cost/total").and_then(Value::as_f64)),
        });
        self.told.usage = self.spent;
        events.push(Event::Usage { usage: self.spent });
        let why = text_at(message, "/stopReason").unwrap_or_default().to_owned();
        self.stopped = Some((why, text_at(message, "/errorMessage").unwrap_or_default().to_owned()));
        events
    }
}

impl Reader for PiReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = match self.told.json(line) {
            Ok(value) => value,
            Err(events) => return events,
        };
        let kind = text_at(&value, "/type");
        // A turn that failed is over before the wait begins; what comes after the wait is a new one.
        if matches!(kind, Some("auto_retry_end" | "turn_start" | "message_start")) {
            self.waits = None;
        }
        match kind {
            Some("session") => {
                self.told.session = text_at(&value, "/id").map(str::to_owned);
                vec![Event::Started { session: self.told.session.clone(), model: None }]
            }
            Some("message_end") => self.message(&value),
            Some("tool_execution_start") => vec![Event::ToolStarted {
                tool: text_at(&value, "/toolName").unwrap_or("a tool").to_owned(),
                on: target(value.get("args")),
            }],
            Some("tool_execution_end") => {
                let tool = text_at(&value, "/toolName").unwrap_or("a tool").to_owned();
                let failed = value.get("isError").and_then(Value::as_bool) == Some(true);
                let words = text_at(&value, "/result/content/0/text").unwrap_or_default();
                if failed && words.contains("not found") && words.contains(&tool) {
                    return vec![self.told.deny(&tool), Event::ToolEnded { tool, ok: false }];
                }
                vec![Event::ToolEnded { tool, ok: !failed }]
            }
            Some("auto_retry_start") => {
                let why = text_at(&value, "/errorMessage").unwrap_or("the provider").to_owned();
                let wait_ms = number_at(&value, "/delayMs");
                self.waits = Some(Trouble { wait_ms, ..Trouble::read(None, &why) });
                vec![Event::Waiting { why, wait_ms }]
            }
            Some("agent_end") => {
                self.settled = true;
                let ok = self.stopped.as_ref().is_some_and(|(why, _)| why == "stop");
                vec![Event::Finished { ok }]
            }
            Some(
                "agent_start"
                | "turn_start"
                | "turn_end"
                | "message_start"
                | "message_update"
                | "tool_execution_update"
                | "auto_retry_end"
                | "agent_settled"
                | "entry_appended",
            ) => Vec::new(),
            other => self.told.unknown(other),
        }
    }

    fn waits(&self) -> Option<Trouble> {
        self.waits.clone()
    }

    /// The last message stopped by itself; the exit code is 0 for every error of the provider.
    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        told.trouble = match (&self.stopped, self.settled) {
            _ if self.waits.is_some() => self.waits(),
            (Some((why, _)), true) if why == "stop" => None,
            (Some((why, words)), _) if why == "error" => Some(Trouble::read(None, words)),
            (Some((why, words)), _) if why == "aborted" => Some(Trouble::new(
                TroubleKind::Interrupted,
                if words.is_empty() { "it was interrupted" } else { words },
            )),
            (Some((why, _)), true) if why == "length" => {
                Some(Trouble::new(TroubleKind::Unknown, "its answer was cut"))
            }
            (_, _) if exit.code == Some(0) => {
                Some(Trouble::new(TroubleKind::Interrupted, "it was ended before its turn was over"))
            }
            (_, _) => Some(ended_early(exit)),
        };
        told
    }
}
