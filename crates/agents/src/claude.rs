//! Claude Code, headless (`claude -p`).

use serde_json::json;

use crate::{
    adapter::{Adapter, Capabilities, Help, Means, Moved, Places, Reader},
    dialect::ClaudeDialect,
    order::{DESK, Launch, Order, Policy},
    role::{effort_among, strange_effort},
};

#[derive(Debug)]
pub struct Claude;

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// What a reviewer may run unless its role says otherwise.
const LOOKING: [&str; 4] = ["git diff *", "git log *", "git show *", "git status *"];
const READING_TOOLS: &str = "Read,Grep,Glob,Bash,Write,Edit";

impl Adapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        launch.arg(&["-p", "--output-format", "stream-json", "--verbose"]);
        launch.talk(order.conversation);
        launch.option("--model", order.model);
        if !order.fallbacks.is_empty() {
            launch.arg(&["--fallback-model", &order.fallbacks.join(",")]);
        }
        let effort = order.policy.effort.as_deref().and_then(|effort| effort_among(effort, &EFFORTS));
        launch.option("--effort", effort);
        launch.option("--max-turns", order.policy.max_turns.map(|turns| turns.to_string()).as_deref());
        if let Some(limit) = order.micro_usd_max {
            launch.arg(&["--max-budget-usd", &format!("{:.6}", limit as f64 / 1e6)]);
        }
        permissions(&mut launch, order);
        if let Some(desk) = order.desk {
            // Without `alwaysLoad` the tools hide behind a search.
            let server = json!({"command": desk.program, "args": desk.args, "alwaysLoad": true});
            launch.arg(&["--mcp-config", &json!({"mcpServers": {DESK: server}}).to_string()]);
        }
        if let Some(schema) = order.reply_schema {
            launch.arg(&["--json-schema", &schema.open.to_string()]);
        }
        // What the folder's own .mcp.json offers was not agreed to by anybody here.
        launch.arg(&["--strict-mcp-config"]);
        launch.argv.extend(order.args.iter().cloned());
        launch.set(&[
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // The engine tries again by itself, in the same conversation.
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
        ]);
        launch.pass =
            vec!["ANTHROPIC_*", "CLAUDE_*", "AWS_*", "GOOGLE_APPLICATION_CREDENTIALS", "IS_SANDBOX"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ClaudeDialect>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: true,
            resume: Means::Yes("`--resume`"),
            read_only: Means::Yes("`--tools` and `dontAsk`; edits only below `GATEWRIGHT_OUT`"),
            read_only_writes_out: true,
            desk: Means::Yes("`--mcp-config`"),
            listed_commands: Means::Yes("`--allowedTools \"Bash(…)\"`"),
            network: Means::No("its web tools only, not its shell"),
            effort: Means::Yes("`--effort`"),
            max_turns: Means::Yes("`--max-turns`"),
            tokens: true,
            cost: true,
            spending: true,
            shows_waiting: true,
            fallback_models: Means::Yes("`--fallback-model`"),
            structured_reply: Means::Yes("`--json-schema`"),
            stopping: "SIGTERM; it ends its command",
            quiet: "`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC` `DISABLE_AUTOUPDATER`",
            own_data: "`~/.claude`, or `CLAUDE_CONFIG_DIR`",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        let mut said: Vec<String> = strange_effort(policy, &EFFORTS).into_iter().collect();
        if policy.network == Some(false) && policy.may_run.as_ref().is_none_or(|list| !list.is_empty()) {
            said.push("`network: false` keeps its web tools away, but not the commands it runs".to_owned());
        }
        if let Some(mode) = &policy.sandbox_mode {
            said.push(format!("`sandbox_mode: {mode}` is Codex's; it has none"));
        }
        if policy.permission_mode.as_deref() == Some("bypassPermissions") {
            said.push(
                "`bypassPermissions` is refused when it runs as root, unless IS_SANDBOX=1 is set".to_owned(),
            );
        }
        said.extend(overruled_mode(policy));
        said
    }

    fn model_of_tier(&self, tier: &str) -> Option<&'static str> {
        match tier {
            "strong" => Some("opus"),
            "fast" => Some("haiku"),
            _ => None,
        }
    }

    fn login(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (
            &[".claude/.credentials.json"],
            &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        )
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        Some((
            &[".claude/settings.json", ".claude/settings.local.json"],
            &[
                "CLAUDE_CONFIG_DIR",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLAUDE_CODE_USE_FOUNDRY",
                "ANTHROPIC_BASE_URL",
            ],
        ))
    }

    fn places(&self) -> Places {
        // `~/.claude.json` is replaced by rename if the home directory is writable, else rewritten in place.
        Places {
            folders: &[".claude"],
            files: &[".claude.json"],
            moved: &[Moved { variable: "CLAUDE_CONFIG_DIR", folder: ".claude", below: "" }],
        }
    }

    /// Without a tool for that, and while it only plans, it writes nothing at all.
    fn writes_files(&self, policy: &Policy) -> bool {
        let has_tool = policy.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| writes(tool)));
        has_tool && !policy.has_lost("Write") && policy.permission_mode.as_deref() != Some("plan")
    }

    fn login_remedy(&self) -> &'static str {
        "run `claude` once and type /login, or set ANTHROPIC_API_KEY"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "exits with 0 after SIGINT and after denied tools: only its stream tells",
            "a resumed conversation keeps its old system prompt",
            "its Bash tool refuses a command that begins with a long `sleep`",
        ]
    }

    fn help(&self) -> Help {
        Help {
            args: &["--help"],
            flags: &[
                "--output-format",
                "--verbose",
                "--session-id",
                "--resume",
                "--model",
                "--fallback-model",
                "--effort",
                "--max-budget-usd",
                "--mcp-config",
                "--json-schema",
                "--strict-mcp-config",
                "--add-dir",
                "--tools",
                "--permission-mode",
                "--allowedTools",
                "--disallowedTools",
            ],
        }
    }

    fn package(&self) -> &'static str {
        "@anthropic-ai/claude-code"
    }

    fn tried_version(&self) -> &'static str {
        "2.1.325"
    }
}

/// Whether a tool writes files.
fn writes(tool: &str) -> bool {
    matches!(tool.split('(').next(), Some("Write" | "Edit" | "MultiEdit" | "NotebookEdit"))
}

/// A limit of the role that holds only as long as what is not listed is denied.
fn is_held_by_denial(policy: &Policy) -> bool {
    let listed = policy.may_run.as_ref().is_some_and(|list| !list.is_empty());
    policy.read_only || policy.may_write.is_some() || listed
}

/// The mode that a definition names, unless that would lift a limit of its role.
pub(crate) fn own_mode(policy: &Policy) -> Option<&str> {
    let strict = |mode: &&str| matches!(*mode, "plan" | "dontAsk");
    policy.permission_mode.as_deref().filter(|mode| strict(mode) || !is_held_by_denial(policy))
}

/// What is said of a mode that is not used.
pub(crate) fn overruled_mode(policy: &Policy) -> Option<String> {
    let mode = policy.permission_mode.as_deref().filter(|_| own_mode(policy).is_none())?;
    Some(format!("`permissionMode: {mode}` would lift what its role may not do; `dontAsk` is used"))
}

fn permissions(launch: &mut Launch, order: &Order<'_>) {
    let policy = order.policy;
    launch.arg(&["--add-dir", order.out]);
    let out = format!("Edit(/{}/**)", order.out);
    let mut allowed: Vec<String> = Vec::new();
    let mut denied: Vec<String> = policy.disallowed_tools.clone();
    if order.desk.is_some() {
        allowed.push(format!("mcp__{DESK}"));
    }
    let shell = |allowed: &mut Vec<String>, denied: &mut Vec<String>, usual: &[&str]| match &policy.may_run {
        Some(list) if list.is_empty() => denied.push("Bash".to_owned()),
        Some(list) => allowed.extend(list.iter().map(|command| format!("Bash({command})"))),
        None if usual.is_empty() => allowed.push("Bash".to_owned()),
        None => allowed.extend(usual.iter().map(|command| format!("Bash({command})"))),
    };
    let mode = if policy.read_only {
        if policy.tools.is_none() {
            launch.arg(&["--tools", READING_TOOLS]);
        }
        allowed.extend(["Read", "Grep", "Glob"].map(str::to_owned));
        shell(&mut allowed, &mut denied, &LOOKING);
        allowed.push(out);
        "dontAsk"
    } else {
        shell(&mut allowed, &mut denied, &[]);
        let anywhere = ["**".to_owned()];
        // Who accepts edits also accepts commands that change files, `touch` and `rm`, listed or not.
        let listed = policy.may_run.as_ref().is_some_and(|list| !list.is_empty());
        match policy.may_write.as_deref().or(listed.then_some(&anywhere)) {
            // What is not listed is denied, and the denial is recorded.
            Some(globs) => {
                allowed.extend(["Read", "Grep", "Glob"].map(str::to_owned));
                allowed.extend(globs.iter().map(|glob| format!("Edit({glob})")));
                allowed.push(out);
                "dontAsk"
            }
            None => "acceptEdits",
        }
    };
    match policy.network {
        Some(false) => denied.extend(["WebFetch", "WebSearch"].map(str::to_owned)),
        Some(true) => allowed.extend(["WebFetch", "WebSearch"].map(str::to_owned)),
        None => {}
    }
    if let Some(tools) = &policy.tools {
        let names: Vec<&str> = tools.iter().map(|tool| tool.split('(').next().unwrap_or(tool)).collect();
        launch.arg(&["--tools", &names.join(",")]);
        // What may be edited and run is listed already: a bare name beside it would allow everything.
        let scoped = is_held_by_denial(policy);
        let listed = |tool: &&String| (scoped && writes(tool)) || tool.split('(').next() == Some("Bash");
        if !policy.read_only {
            allowed.extend(tools.iter().filter(|tool| !listed(tool)).cloned());
        }
    }
    launch.arg(&["--permission-mode", own_mode(policy).unwrap_or(mode)]);
    for (flag, list) in [("--allowedTools", &allowed), ("--disallowedTools", &denied)] {
        if !list.is_empty() {
            launch.arg(&[flag, &list.join(",")]);
        }
    }
}
