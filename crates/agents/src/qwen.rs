//! Qwen Code, headless. It speaks Claude Code's dialect.

use serde_json::json;

use crate::{
    adapter::{Adapter, Capabilities, Help, Means, Moved, Places, Reader},
    dialect::ClaudeDialect,
    gemini::{limits, permissions},
    order::{DESK, Launch, Order, Policy, QuietFile},
    role::own_names,
};

#[derive(Debug)]
pub struct Qwen;

/// Claude Code's tools by its names.
const TOOLS: [(&str, &str); 8] = [
    ("Edit", "edit"),
    ("Write", "write_file"),
    ("Bash", "run_shell_command"),
    ("Read", "read_file"),
    ("Grep", "grep_search"),
    ("Glob", "glob"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
];

impl Adapter for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn counts_conversations(&self) -> bool {
        true
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        launch.arg(&["-o", "stream-json"]);
        launch.talk(order.conversation);
        launch.option("-m", order.model);
        if !order.fallbacks.is_empty() {
            launch.arg(&["--fallback-model", &order.fallbacks.join(",")]);
        }
        launch
            .option("--max-session-turns", order.policy.max_turns.map(|turns| turns.to_string()).as_deref());
        let policy = order.policy;
        permissions(&mut launch, order, "auto-edit");
        for tool in own_names(&policy.disallowed_tools, &TOOLS).0 {
            launch.arg(&["--exclude-tools", &tool]);
        }
        if policy.network == Some(false) {
            launch.arg(&["--exclude-tools", "web_fetch", "--exclude-tools", "web_search"]);
        }
        if let Some(desk) = order.desk {
            let server =
                json!({"command": desk.program, "args": desk.args, "trust": true, "alwaysLoadTools": true});
            launch.arg(&["--mcp-config", &json!({"mcpServers": {DESK: server}}).to_string()]);
        }
        if let Some(schema) = order.reply_schema {
            launch.arg(&["--json-schema", &schema.open.to_string()]);
        }
        launch.argv.extend(order.args.iter().cloned());
        let settings = format!("{}/qwen-settings.json", order.home);
        launch.set(&[
            ("QWEN_CODE_SYSTEM_SETTINGS_PATH", &settings),
            ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
            // It then says every half minute how long it still waits for a limit, instead of waiting in silence.
            ("QWEN_CODE_UNATTENDED_RETRY", "1"),
        ]);
        let quiet = json!({
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "security": {"folderTrust": {"enabled": false}},
        });
        launch.files.push(QuietFile { path: settings, text: quiet.to_string() });
        launch.pass = vec!["OPENAI_*", "DASHSCOPE_*", "QWEN_*", "GEMINI_API_KEY", "ANTHROPIC_*"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ClaudeDialect>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: true,
            resume: Means::Yes("`--resume`"),
            read_only: Means::Yes("`--approval-mode default`: no tool that writes is offered"),
            read_only_writes_out: false,
            desk: Means::Yes("`--mcp-config`"),
            listed_commands: Means::Yes("`--allowed-tools \"run_shell_command(…)\"`"),
            network: Means::No("its web tools only, not its shell"),
            effort: Means::No(""),
            max_turns: Means::Yes("`--max-session-turns`"),
            tokens: true,
            cost: false,
            spending: true,
            shows_waiting: true,
            fallback_models: Means::Yes("`--fallback-model`"),
            structured_reply: Means::Yes("`--json-schema`"),
            stopping: "SIGTERM; it ends its command",
            quiet: "a settings file of ours",
            own_data: "`~/.qwen`, or `QWEN_HOME`",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        limits(policy, &TOOLS)
    }

    fn model_of_tier(&self, _tier: &str) -> Option<&'static str> {
        None
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&[".qwen/oauth_creds.json"], &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"])
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        Some((&[".qwen/settings.json", ".qwen/.env", ".env"], &["OPENAI_BASE_URL", "QWEN_HOME"]))
    }

    fn places(&self) -> Places {
        // Its shell tool opens a pseudo terminal and fails without.
        Places {
            folders: &[".qwen"],
            files: &["/dev/ptmx", "/dev/pts"],
            moved: &[
                Moved { variable: "QWEN_HOME", folder: ".qwen", below: "" },
                // What it writes while it runs; its settings stay.
                Moved { variable: "QWEN_RUNTIME_DIR", folder: "", below: "" },
            ],
        }
    }

    fn login_remedy(&self) -> &'static str {
        "run `qwen` once and choose how to log in, or set OPENAI_API_KEY and OPENAI_BASE_URL"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "says that it waits for a limit half a minute after it began to, on stderr",
            "takes a 503 of its provider for a limit, and so does the run, which waits for it",
            "a prompt of more than 8 MiB is cut",
        ]
    }

    fn help(&self) -> Help {
        Help {
            args: &["--help"],
            flags: &[
                "--output-format",
                "--session-id",
                "--resume",
                "--model",
                "--fallback-model",
                "--max-session-turns",
                "--include-directories",
                "--approval-mode",
                "--allowed-tools",
                "--exclude-tools",
                "--mcp-config",
                "--json-schema",
            ],
        }
    }

    fn package(&self) -> &'static str {
        "@qwen-code/qwen-code"
    }

    fn tried_version(&self) -> &'static str {
        "0.24.4"
    }
}
