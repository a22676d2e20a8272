//! Gemini CLI, headless.

use gatewright_core::fact::TroubleKind;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    adapter::{Adapter, Capabilities, Exit, Help, Means, Moved, Places, Reader},
    dialect::{ended_early, foreign_modes, milliseconds_after, number_at, target, text_at},
    event::{Event, Usage},
    order::{DESK, Launch, Order, Policy, QuietFile},
    role::{own_names, strange_tools},
    told::Told,
    trouble::Trouble,
};

#[derive(Debug)]
pub struct Gemini;

/// Claude Code's tools by its names.
const TOOLS: [(&str, &str); 8] = [
    ("Edit", "replace"),
    ("Write", "write_file"),
    ("Bash", "run_shell_command"),
    ("Read", "read_file"),
    ("Grep", "grep_search"),
    ("Glob", "glob"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "google_web_search"),
];

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        launch.arg(&["-o", "stream-json", "--skip-trust"]);
        launch.talk(order.conversation);
        launch.option("-m", order.model);
        let policy = order.policy;
        permissions(&mut launch, order, "auto_edit");
        launch.argv.extend(order.args.iter().cloned());
        let settings = format!("{}/gemini-settings.json", order.home);
        launch.set(&[("GEMINI_CLI_SYSTEM_SETTINGS_PATH", &settings), ("GEMINI_CLI_NO_RELAUNCH", "1")]);
        let (mut excluded, _) = own_names(&policy.disallowed_tools, &TOOLS);
        if policy.network == Some(false) {
            excluded.extend(["web_fetch", "google_web_search"].map(str::to_owned));
        }
        let mut quiet = json!({
            "general": {
                "enableAutoUpdate": false,
                "enableAutoUpdateNotification": false,
                // The engine tries again by itself, in the same conversation.
                "maxAttempts": 3,
                // When it starts it removes conversations of its project that hold nothing yet: those of others that start
                // beside it.
                "sessionRetention": {"enabled": false},
            },
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
        });
        if !excluded.is_empty() {
            quiet["tools"] = json!({"exclude": excluded});
        }
        if let Some(desk) = order.desk {
            let server = json!({"command": desk.program, "args": desk.args, "trust": true});
            quiet["mcpServers"] = json!({DESK: server});
        }
        if let Some(turns) = policy.max_turns {
            quiet["model"] = json!({"maxSessionTurns": turns});
        }
        launch.files.push(QuietFile { path: settings, text: quiet.to_string() });
        launch.pass = vec!["GEMINI_*", "GOOGLE_*"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<GeminiReader>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: true,
            resume: Means::Yes("`--resume`"),
            read_only: Means::Yes("`--approval-mode default`: no tool that writes is offered"),
            read_only_writes_out: false,
            desk: Means::Yes("`mcpServers` in a settings file of ours"),
            listed_commands: Means::Yes("`--allowed-tools \"run_shell_command(…)\"`"),
            network: Means::No("its web tools only, not its shell"),
            effort: Means::No(""),
            max_turns: Means::Yes("`maxSessionTurns` in a settings file of ours"),
            tokens: true,
            cost: false,
            spending: false,
            shows_waiting: false,
            fallback_models: Means::No(""),
            structured_reply: Means::No(""),
            stopping: "SIGTERM; its command is swept up",
            quiet: "a settings file of ours",
            own_data: "`~/.gemini`, or `.gemini` in `GEMINI_CLI_HOME`",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        limits(policy, &TOOLS)
    }

    fn model_of_tier(&self, tier: &str) -> Option<&'static str> {
        match tier {
            "strong" => Some("gemini-2.5-pro"),
            "fast" => Some("gemini-2.5-flash"),
            _ => None,
        }
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (
            &[".gemini/oauth_creds.json"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        )
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        Some((
            &[".gemini/settings.json", ".gemini/.env", ".env"],
            &["GEMINI_CLI_HOME", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENAI_USE_VERTEXAI"],
        ))
    }

    fn places(&self) -> Places {
        Places {
            folders: &[".gemini"],
            files: &[],
            moved: &[Moved { variable: "GEMINI_CLI_HOME", folder: ".gemini", below: ".gemini" }],
        }
    }

    fn login_remedy(&self) -> &'static str {
        "run `gemini` once and choose how to log in; with GEMINI_API_KEY also set `security.auth.selectedType` in ~/.gemini/settings.json"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "exits with 0 after signals and on an answer that was cut: only its stream tells",
            "is silent while it waits for the provider: leave its idle timeout generous",
            "without a model its router makes one more call per turn: name one",
            "a prompt of more than 8 MiB is cut",
        ]
    }

    fn help(&self) -> Help {
        Help {
            args: &["--help"],
            flags: &[
                "--output-format",
                "--skip-trust",
                "--session-id",
                "--resume",
                "--model",
                "--include-directories",
                "--approval-mode",
                "--allowed-tools",
            ],
        }
    }

    fn package(&self) -> &'static str {
        "@google/gemini-cli"
    }

    fn tried_version(&self) -> &'static str {
        "0.61.0"
    }
}

/// What its descendant Qwen Code is told the same way. `edits`: the mode in which it edits unasked.
pub(crate) fn permissions(launch: &mut Launch, order: &Order<'_>, edits: &str) {
    launch.arg(&["--include-directories", order.out]);
    let policy = order.policy;
    let mode = match (policy.read_only, &policy.may_run) {
        (true, _) => "default",
        (false, Some(_)) => edits,
        (false, None) => "yolo",
    };
    launch.arg(&["--approval-mode", mode]);
    for command in policy.may_run.iter().flatten() {
        let tool = format!("run_shell_command({})", command.trim_end_matches(['*', ' ']));
        launch.arg(&["--allowed-tools", &tool]);
    }
}

/// What neither Gemini CLI nor its descendant can be told.
pub(crate) fn limits(policy: &Policy, tools: &[(&str, &str)]) -> Vec<String> {
    let mut said: Vec<String> = strange_tools(&policy.disallowed_tools, tools).into_iter().collect();
    if !policy.read_only && policy.may_write.is_some() {
        said.push("`may_write` is checked after the attempt, not prevented".to_owned());
    }
    if policy.network == Some(false) && policy.may_run.as_ref().is_none_or(|list| !list.is_empty()) {
        said.push("`network: false` keeps its web tools away, but not the commands it runs".to_owned());
    }
    let exact = policy.may_run.iter().flatten().filter(|command| !command.trim_end().ends_with('*'));
    said.extend(exact.map(|command| {
        format!("`{command}` of `may_run` is the beginning of a command: `{command} …` may be run as well")
    }));
    if policy.effort.is_some() {
        said.push("`effort` has no flag".to_owned());
    }
    said.extend(foreign_modes(policy));
    said
}

#[derive(Debug, Default)]
struct GeminiReader {
    told: Told,
    calls: BTreeMap<String, String>,
    /// What the assistant said since the last tool ended.
    said: String,
    result: Option<Value>,
    /// The last thing that it said is that it waits.
    waits: Option<Trouble>,
}

/// What it says on stderr when the provider names the time at which a limit is over.
fn limit(line: &str) -> Option<Trouble> {
    let wait_ms = milliseconds_after(line, "Retrying after ", "ms")?;
    let words = line.split_once("failed: ").map_or(line, |(_, words)| words);
    Some(Trouble { wait_ms: Some(wait_ms), ..Trouble::read(Some(429), words) })
}

impl Reader for GeminiReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = match self.told.json(line) {
            Ok(value) => value,
            Err(events) => return events,
        };
        self.waits = None;
        match text_at(&value, "/type") {
            Some("init") => {
                self.told.session = text_at(&value, "/session_id").map(str::to_owned);
                self.told.model = text_at(&value, "/model").map(str::to_owned);
                vec![Event::Started { session: self.told.session.clone(), model: self.told.model.clone() }]
            }
            Some("message") => {
                if text_at(&value, "/role") != Some("assistant") {
                    return Vec::new();
                }
                let text = text_at(&value, "/content").unwrap_or_default().to_owned();
                self.said.push_str(&text);
                vec![Event::Text { text }]
            }
            Some("tool_use") => {
                let tool = text_at(&value, "/tool_name").unwrap_or("a tool").to_owned();
                if let Some(id) = text_at(&value, "/tool_id") {
                    self.calls.insert(id.to_owned(), tool.clone());
                }
                vec![Event::ToolStarted { tool, on: target(value.get("parameters")) }]
            }
            Some("tool_result") => {
                self.said.clear();
                let tool = text_at(&value, "/tool_id").and_then(|id| self.calls.remove(id));
                let tool = tool.unwrap_or_else(|| "a tool".to_owned());
                let ok = text_at(&value, "/status") == Some("success");
                let words = text_at(&value, "/error/message").unwrap_or_default().to_lowercase();
                let denied = words.contains("not found in registry")
                    || words.contains("denied")
                    || words.contains("not allowed")
                    || words.contains("requires user confirmation");
                if !ok && denied {
                    return vec![self.told.deny(&tool), Event::ToolEnded { tool, ok }];
                }
                vec![Event::ToolEnded { tool, ok }]
            }
            Some("result") => {
                let usage = Usage {
                    input_tokens: number_at(&value, "/stats/input_tokens"),
                    output_tokens: number_at(&value, "/stats/output_tokens"),
                    cached_tokens: number_at(&value, "/stats/cached"),
                    micro_usd: None,
                };
                self.told.usage = usage;
                let ok = text_at(&value, "/status") == Some("success");
                self.result = Some(value);
                vec![Event::Usage { usage }, Event::Finished { ok }]
            }
            other => self.told.unknown(other),
        }
    }

    fn aside(&mut self, line: &str) {
        self.waits = limit(line).or(self.waits.take());
    }

    fn waits(&self) -> Option<Trouble> {
        self.waits.clone()
    }

    /// Success and something said: after a signal there is no result, and a cut answer is called one.
    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        self.said.clone_into(&mut told.text);
        told.trouble = match &self.result {
            None if exit.stderr.lines().any(|line| limit(line).is_some()) => {
                exit.stderr.lines().rev().find_map(limit)
            }
            None if exit.code == Some(0) => {
                Some(Trouble::new(TroubleKind::Interrupted, "it was ended before its turn was over"))
            }
            None => Some(ended_early(exit)),
            Some(result) if text_at(result, "/status") == Some("success") => self
                .said
                .trim()
                .is_empty()
                .then(|| Trouble::new(TroubleKind::Network, "the provider's answer is empty")),
            Some(result) => {
                let words = text_at(result, "/error/message").unwrap_or("it says that it failed");
                let trouble = Trouble::read(None, words);
                // The exit code is the provider's status, as far as it fits in a byte.
                let status =
                    exit.code.filter(|code| (144..=255).contains(code)).map(|code| code as u64 + 256);
                let from_code = status.filter(|_| trouble.kind == TroubleKind::Unknown);
                let model = exit.stderr.contains("ModelNotFoundError");
                Some(match from_code {
                    Some(status) => Trouble::read(Some(status), words),
                    None if model => Trouble::new(TroubleKind::BadRequest, words),
                    None => trouble,
                })
            }
        };
        told
    }
}
