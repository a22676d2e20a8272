//! Codex, headless (`codex exec --json`).

use gatewright_core::fact::TroubleKind;
use serde_json::{Map, Value, json};

use crate::{
    adapter::{Adapter, Capabilities, Exit, Help, Means, Moved, Places, Reader, Stop},
    dialect::{ended_early, number_at, shortened, text_at},
    event::{Event, Usage},
    order::{Conversation, DESK, Launch, Order, Policy, QuietFile},
    role::{effort_among, strange_effort},
    told::Told,
    trouble::Trouble,
};

#[derive(Debug)]
pub struct Codex;

const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// Updates and telemetry.
const QUIET: [&str; 5] = [
    "analytics.enabled",
    "feedback.enabled",
    "check_for_update_on_startup",
    "features.apps",
    "features.plugins",
];

const WORKSPACE: &str = "workspace-write";
const FULL_ACCESS: &str = "danger-full-access";

/// Whether the commands it runs may use the network. A definition that names one of its sandboxes means that sandbox,
/// which has none.
fn has_network(policy: &Policy) -> bool {
    policy.network.unwrap_or(!matches!(policy.sandbox_mode.as_deref(), Some("read-only" | WORKSPACE)))
}

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn counts_conversations(&self) -> bool {
        true
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        let policy = order.policy;
        let usual =
            if policy.read_only { "read-only" } else { policy.sandbox_mode.as_deref().unwrap_or(WORKSPACE) };
        // Its own sandbox needs user namespaces, which the engine's refuses: every command would fail.
        let sandbox = if policy.contained { FULL_ACCESS } else { usual };
        launch.hold_read_only = policy.contained && policy.read_only;
        launch.arg(&["exec", "--json", "-C", order.workdir, "--skip-git-repo-check"]);
        let network = has_network(policy);
        if sandbox == FULL_ACCESS && !network {
            // Every file and no network, which needs no namespaces: the network is taken away by its filter of system calls.
            launch.arg(&["-c", "default_permissions=\"gatewright\""]);
            launch.arg(&["-c", "permissions.gatewright.filesystem={\":root\"=\"write\"}"]);
            launch.arg(&["-c", "permissions.gatewright.network.enabled=false"]);
        } else {
            // Always said: a folder that was trusted once would be writable by default.
            launch.arg(&["-s", sandbox]);
        }
        launch.option("-m", order.model);
        let mut configure = |setting: String| {
            launch.arg(&["-c", &setting]);
        };
        for quiet in QUIET {
            configure(format!("{quiet}=false"));
        }
        if let Some(effort) = policy.effort.as_deref().and_then(|effort| effort_among(effort, &EFFORTS)) {
            configure(format!("model_reasoning_effort={}", quoted(effort)));
        }
        if policy.network == Some(false) {
            configure("web_search=\"disabled\"".to_owned());
        }
        if sandbox == WORKSPACE {
            configure(format!("sandbox_workspace_write.network_access={network}"));
            configure(format!("sandbox_workspace_write.writable_roots=[{}]", quoted(order.out)));
        }
        if let Some(desk) = order.desk {
            let args: Vec<String> = desk.args.iter().map(|arg| quoted(arg)).collect();
            configure(format!("mcp_servers.{DESK}.command={}", quoted(&desk.program)));
            configure(format!("mcp_servers.{DESK}.args=[{}]", args.join(",")));
            // Nobody is there to approve a call.
            configure(format!("mcp_servers.{DESK}.default_tools_approval_mode=\"approve\""));
        }
        // Its provider refuses an open one.
        if let Some(schema) = order.reply_schema.and_then(|schema| schema.closed.as_ref()) {
            let path = format!("{}/reply-schema.json", order.home);
            launch.arg(&["--output-schema", &path]);
            launch.files.push(QuietFile { path, text: schema.to_string() });
        }
        launch.argv.extend(order.args.iter().cloned());
        if let Conversation::Resumed { session } = order.conversation {
            launch.arg(&["resume", session]);
        }
        launch.arg(&["-"]);
        launch.pass = vec!["CODEX_*", "OPENAI_*", "AZURE_OPENAI_*"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<CodexReader>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: false,
            resume: Means::Yes("`exec resume ID`"),
            read_only: Means::Yes("`-s read-only`; inside our sandbox by that"),
            read_only_writes_out: false,
            desk: Means::Yes("`mcp_servers`"),
            listed_commands: Means::No("its sandbox instead"),
            network: Means::Yes(
                "`sandbox_workspace_write.network_access`; inside our sandbox a permission profile without network",
            ),
            effort: Means::Yes("`model_reasoning_effort`"),
            max_turns: Means::No(""),
            tokens: true,
            cost: false,
            spending: false,
            shows_waiting: true,
            fallback_models: Means::No(""),
            structured_reply: Means::Yes("`--output-schema`, for reviews"),
            stopping: "SIGINT; it ends its command",
            quiet: "`-c analytics.enabled=false` and four more",
            own_data: "`~/.codex`, or `CODEX_HOME`",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        let mut said: Vec<String> = strange_effort(policy, &EFFORTS).into_iter().collect();
        if policy.may_run.is_some() {
            said.push("a list of commands cannot be given; what runs is held by its sandbox".to_owned());
        }
        if !policy.read_only && policy.may_write.is_some() {
            said.push("`may_write` is checked after the attempt, not prevented".to_owned());
        }
        if policy.max_turns.is_some() {
            said.push("`max_turns` has no flag".to_owned());
        }
        if !policy.disallowed_tools.is_empty() {
            said.push("single tools cannot be taken away".to_owned());
        }
        if policy.sandbox_mode.as_deref() == Some(FULL_ACCESS) {
            said.push(format!(
                "`sandbox_mode: {FULL_ACCESS}` is held by the engine's sandbox all the same, unless its `sandbox` is off"
            ));
        }
        if let Some(mode) = &policy.permission_mode {
            said.push(format!("`permissionMode: {mode}` is Claude's; the role's own permissions are used"));
        }
        said
    }

    fn model_of_tier(&self, _tier: &str) -> Option<&'static str> {
        None
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&[".codex/auth.json"], &["OPENAI_API_KEY", "CODEX_API_KEY"])
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        Some((&[".codex/config.toml"], &["CODEX_HOME", "OPENAI_BASE_URL"]))
    }

    fn places(&self) -> Places {
        Places {
            folders: &[".codex"],
            files: &[],
            moved: &[Moved { variable: "CODEX_HOME", folder: ".codex", below: "" }],
        }
    }

    /// Without its own sandbox around them, its commands outlive it after SIGTERM.
    fn stop(&self) -> Stop {
        Stop::Interrupt
    }

    fn login_remedy(&self) -> &'static str {
        "run `codex login`"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "in its own sandbox .git is read-only: it cannot commit",
            "a refused connection is waited for without end: it is ended when it has waited as long as it may be idle",
            "a prompt of more than 1 048 576 characters is refused",
        ]
    }

    fn help(&self) -> Help {
        Help {
            args: &["exec", "--help"],
            flags: &[
                "--json",
                "--cd",
                "--skip-git-repo-check",
                "--sandbox",
                "--model",
                "--config",
                "--output-schema",
            ],
        }
    }

    fn package(&self) -> &'static str {
        "@openai/codex"
    }

    fn tried_version(&self) -> &'static str {
        "0.166.0"
    }
}

/// What its program for ACP is told: that takes no arguments, but one object of settings for its sessions, their mode, and
/// the Codex to start. Updates and telemetry are not a matter of sessions, so that is a script which starts Codex without.
pub(crate) fn configure_acp(launch: &mut Launch, order: &Order<'_>, program: &str) {
    let policy = order.policy;
    let mut settings = Map::new();
    let quiet: String = QUIET.iter().map(|setting| format!(" -c {setting}=false")).collect();
    let program = order.command.first().map_or(program, String::as_str).replace('\'', r"'\''");
    let script = format!("#!/bin/sh\nunset CODEX_PATH\nexec '{program}' cli{quiet} \"$@\"\n");
    let path = format!("{}/quiet-codex", order.home);
    launch.set(&[("CODEX_PATH", &path)]);
    launch.files.push(QuietFile { path, text: script });
    if let Some(model) = order.model {
        settings.insert("model".to_owned(), json!(model));
    }
    if policy.network == Some(false) {
        settings.insert("web_search".to_owned(), json!("disabled"));
    }
    // Its own sandbox cannot be made inside ours. Otherwise it asks for what its sandbox refuses, and is answered.
    let mode = match (policy.contained, policy.read_only, policy.sandbox_mode.as_deref()) {
        (true, ..) | (false, false, Some(FULL_ACCESS)) => "agent-full-access",
        (false, true, _) | (false, false, Some("read-only")) => "read-only",
        (false, false, _) => WORKSPACE,
    };
    launch.set(&[("CODEX_CONFIG", &Value::Object(settings).to_string()), ("INITIAL_AGENT_MODE", mode)]);
}

/// A TOML string.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[derive(Debug, Default)]
struct CodexReader {
    told: Told,
    completed: bool,
    failed: Option<String>,
    last_error: Option<String>,
    /// The last thing that it said is that it waits.
    waits: Option<Trouble>,
}

fn tool_of(item: &Value) -> Option<(String, String)> {
    match text_at(item, "/type")? {
        "command_execution" => {
            Some(("shell".to_owned(), shortened(text_at(item, "/command").unwrap_or_default())))
        }
        "file_change" => {
            Some(("edit".to_owned(), text_at(item, "/changes/0/path").unwrap_or_default().to_owned()))
        }
        "mcp_tool_call" => Some((text_at(item, "/tool").unwrap_or("a tool").to_owned(), String::new())),
        "web_search" => {
            Some(("web search".to_owned(), text_at(item, "/query").unwrap_or_default().to_owned()))
        }
        _ => None,
    }
}

impl CodexReader {
    fn item(&mut self, value: &Value, started: bool) -> Vec<Event> {
        let Some(item) = value.get("item") else { return Vec::new() };
        if let Some((tool, on)) = tool_of(item) {
            if started {
                return vec![Event::ToolStarted { tool, on }];
            }
            let ok = text_at(item, "/status") != Some("failed")
                && number_at(item, "/exit_code").is_none_or(|code| code == 0);
            let output = text_at(item, "/aggregated_output").unwrap_or_default();
            let refusals = ["Read-only file system", "Operation not permitted", "Permission denied"];
            if !ok && refusals.iter().any(|words| output.contains(words)) {
                return vec![self.told.deny(&tool), Event::ToolEnded { tool, ok }];
            }
            return vec![Event::ToolEnded { tool, ok }];
        }
        match text_at(item, "/type") {
            Some("agent_message") if !started => {
                let text = text_at(item, "/text").unwrap_or_default().to_owned();
                text.clone_into(&mut self.told.text);
                vec![Event::Text { text }]
            }
            // An `error` item is a warning; the real ones are lines of their own.
            Some("agent_message" | "error" | "reasoning" | "todo_list") => Vec::new(),
            other => self.told.unknown(Some(&format!("item {}", other.unwrap_or_default()))),
        }
    }
}

impl Reader for CodexReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = match self.told.json(line) {
            Ok(value) => value,
            Err(events) => return events,
        };
        // An item of that type is a warning beside whatever it does.
        if text_at(&value, "/item/type") != Some("error") {
            self.waits = None;
        }
        match text_at(&value, "/type") {
            Some("thread.started") => {
                self.told.session = text_at(&value, "/thread_id").map(str::to_owned);
                vec![Event::Started { session: self.told.session.clone(), model: None }]
            }
            Some("turn.started" | "item.updated") => Vec::new(),
            Some("item.started") => self.item(&value, true),
            Some("item.completed") => self.item(&value, false),
            Some("turn.completed") => {
                let usage = Usage {
                    input_tokens: number_at(&value, "/usage/input_tokens"),
                    output_tokens: number_at(&value, "/usage/output_tokens"),
                    cached_tokens: number_at(&value, "/usage/cached_input_tokens"),
                    micro_usd: None,
                };
                self.told.usage = usage;
                self.completed = true;
                vec![Event::Usage { usage }, Event::Finished { ok: true }]
            }
            Some("turn.failed") => {
                self.failed = text_at(&value, "/error/message").map(str::to_owned);
                vec![Event::Finished { ok: false }]
            }
            Some("error") => {
                let message = text_at(&value, "/message").unwrap_or_default().to_owned();
                self.waits = message.starts_with("Reconnecting").then(|| Trouble::read(None, &message));
                self.last_error = Some(message.clone());
                let waits = self.waits.is_some();
                if waits { vec![Event::Waiting { why: message, wait_ms: None }] } else { Vec::new() }
            }
            other => self.told.unknown(other),
        }
    }

    fn waits(&self) -> Option<Trouble> {
        self.waits.clone()
    }

    /// `turn.completed` and exit code 0.
    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        told.trouble = match (&self.failed, self.completed, exit.code) {
            (Some(message), ..) => Some(Trouble::read(None, message)),
            (None, true, Some(0)) => None,
            (None, true, _) => Some(ended_early(exit)),
            (None, false, Some(0)) => Some(Trouble::new(TroubleKind::Unknown, "its turn has no end")),
            (None, false, None | Some(129 | 130 | 137 | 143)) => {
                Some(self.waits().unwrap_or_else(|| ended_early(exit)))
            }
            (None, false, _) => Some(match &self.last_error {
                Some(message) => Trouble::read(None, message),
                None => ended_early(exit),
            }),
        };
        told
    }
}
