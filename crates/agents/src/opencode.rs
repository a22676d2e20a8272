//! opencode, headless (`opencode run --format json`).

use std::collections::BTreeSet;

use gatewright_core::fact::TroubleKind;
use serde_json::{Map, Value, json};

use crate::{
    adapter::{Adapter, Capabilities, Exit, Help, Means, Moved, Places, Reader},
    dialect::{ended_early, foreign_modes, number_at, target, text_at},
    event::{Event, Usage, price},
    order::{Conversation, DESK, Launch, Order, Policy, QuietFile},
    role::{own_names, strange_tools},
    told::Told,
    trouble::Trouble,
};

#[derive(Debug)]
pub struct Opencode;

/// Claude Code's tools by its names. It has one permission for every way to change a file.
const TOOLS: [(&str, &str); 10] = [
    ("Edit", "edit"),
    ("Write", "edit"),
    ("Bash", "bash"),
    ("Read", "read"),
    ("Grep", "grep"),
    ("Glob", "glob"),
    ("WebFetch", "webfetch"),
    ("WebSearch", "websearch"),
    ("Task", "task"),
    ("Skill", "skill"),
];

/// Says on lines of its own what it keeps to itself otherwise: that it waits for its provider and how long; headless, which
/// tool it begins to use; over ACP, where its stdout is the protocol's, what each call of its model has spent, and the number
/// beside the words of a provider's error.
const PLUGIN: &str = r#"export const Gatewright = async () => {
  const acp = process.argv.includes("acp")
  const say = (line) => (acp ? process.stderr : process.stdout).write(JSON.stringify(line) + "\n")
  if (acp) say({ type: "counts" })
  return {
    event: async ({ event }) => {
      const { sessionID, status, info, error } = event.properties ?? {}
      if (event.type === "session.status" && status.type === "retry") {
        const wait_ms = Math.max(0, Math.round(status.next - Date.now()))
        say({ type: "retry", sessionID, message: status.message, wait_ms })
      }
      if (acp && event.type === "message.updated" && info.role === "assistant" && info.time.completed)
        say({ type: "spent", sessionID: info.sessionID, id: info.id, tokens: info.tokens, cost: info.cost })
      if (acp && event.type === "session.error") say({ type: "failed", sessionID, status: error?.data?.statusCode })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!acp) say({ type: "tool_begins", sessionID, tool, callID, input: args })
    },
  }
}
"#;

/// What a reviewer may run unless its role says otherwise.
const LOOKING: [&str; 4] = ["git diff*", "git log*", "git show*", "git status*"];

impl Adapter for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let mut launch = Launch::of(order, self.program());
        launch.arg(&["run", "--format", "json", "--dir", order.workdir]);
        launch.option("-m", order.model);
        launch.option("--variant", order.policy.effort.as_deref());
        if let Conversation::Resumed { session } = order.conversation {
            launch.arg(&["--session", session]);
        }
        launch.argv.extend(order.args.iter().cloned());
        let mut config = json!({"autoupdate": false, "share": "disabled", "permission": permission(order)});
        if order.extras {
            let path = format!("{}/gatewright-plugin.js", order.home);
            config["plugin"] = json!([format!("file://{path}")]);
            launch.files.push(QuietFile { path, text: PLUGIN.to_owned() });
        }
        if let Some(desk) = order.desk {
            let command: Vec<&String> = std::iter::once(&desk.program).chain(&desk.args).collect();
            config["mcp"] = json!({DESK: {"type": "local", "command": command, "enabled": true}});
        }
        launch.set(&[
            ("OPENCODE_CONFIG_CONTENT", &config.to_string()),
            // Processes that make one database at the same time collide: each step has its own.
            ("OPENCODE_DB", &format!("{}/opencode.db", order.home)),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ]);
        launch.pass =
            vec!["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY"];
        launch
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<OpencodeReader>::default()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            session_chosen: false,
            resume: Means::Yes("`--session`"),
            read_only: Means::Yes("`permission.edit`: deny, but below `GATEWRIGHT_OUT`"),
            read_only_writes_out: true,
            desk: Means::Yes("`mcp`"),
            listed_commands: Means::Yes("`permission.bash`"),
            network: Means::No("its web tool only, not its shell"),
            effort: Means::Yes("`--variant`"),
            max_turns: Means::No(""),
            tokens: true,
            cost: true,
            spending: true,
            shows_waiting: true,
            fallback_models: Means::No(""),
            structured_reply: Means::No(""),
            stopping: "SIGTERM; its command is swept up",
            quiet: "`OPENCODE_DISABLE_AUTOUPDATE` and three more",
            own_data: "a database of its own for each step",
        }
    }

    fn cannot(&self, policy: &Policy) -> Vec<String> {
        let mut said: Vec<String> = strange_tools(&policy.disallowed_tools, &TOOLS).into_iter().collect();
        if policy.network == Some(false) && policy.may_run.as_ref().is_none_or(|list| !list.is_empty()) {
            said.push("`network: false` keeps its web tool away, but not the commands it runs".to_owned());
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
            &[".local/share/opencode/auth.json"],
            &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        )
    }

    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        None
    }

    fn places(&self) -> Places {
        Places {
            folders: &[
                ".config/opencode",
                ".local/share/opencode",
                ".local/state/opencode",
                ".cache/opencode",
            ],
            files: &[],
            moved: &[
                Moved { variable: "XDG_CONFIG_HOME", folder: ".config/opencode", below: "opencode" },
                Moved { variable: "XDG_DATA_HOME", folder: ".local/share/opencode", below: "opencode" },
                Moved { variable: "XDG_STATE_HOME", folder: ".local/state/opencode", below: "opencode" },
                Moved { variable: "XDG_CACHE_HOME", folder: ".cache/opencode", below: "opencode" },
                Moved { variable: "OPENCODE_CONFIG_DIR", folder: "", below: "" },
            ],
        }
    }

    /// One permission is for every way to change a file.
    fn writes_files(&self, policy: &Policy) -> bool {
        !own_names(&policy.disallowed_tools, &TOOLS).0.iter().any(|tool| tool == "edit")
    }

    /// With a plugin it waits for this package, which it installs at its first start, before it does anything.
    fn extras(&self) -> Option<&'static str> {
        Some(".config/opencode/node_modules/@opencode-ai/plugin/package.json")
    }

    fn login_remedy(&self) -> &'static str {
        "run `opencode auth login`"
    }

    fn traps(&self) -> &'static [&'static str] {
        &[
            "exits with 0 after a rejected permission: only its stream tells",
            "tries a failing provider again five times, for about 75 s; that it waits, and which tool it begins to use, is told by a plugin of ours, once it has installed what plugins need",
            "does not end on SIGTERM while it waits for the provider: it is ended 5 s later",
            "installs a package from the npm registry into its configuration folder at its first start",
            "a prompt as an argument would be wrapped in quotes; it comes on stdin",
        ]
    }

    fn help(&self) -> Help {
        Help { args: &["run", "--help"], flags: &["--format", "--dir", "--model", "--variant", "--session"] }
    }

    fn package(&self) -> &'static str {
        "opencode-ai"
    }

    fn tried_version(&self) -> &'static str {
        "1.18.33"
    }
}

/// Nothing is ever asked: what is not allowed is denied, and it goes on.
fn permission(order: &Order<'_>) -> Value {
    let policy = order.policy;
    let out = format!("{}/**", order.out);
    let rules = |usual: &str, allowed: &[String]| -> Value {
        let mut map = Map::new();
        map.insert("*".to_owned(), json!(usual));
        map.extend(allowed.iter().map(|pattern| (pattern.clone(), json!("allow"))));
        Value::Object(map)
    };
    // A path outside is compared as it is from the folder it works in, so by its last parts.
    let parts: Vec<&str> = order.out.rsplit('/').take(3).collect();
    let last: String = parts.into_iter().rev().collect::<Vec<_>>().join("/");
    let outside = [out, format!("*/{last}/*")];
    let edit = match (policy.read_only, &policy.may_write) {
        (true, _) => rules("deny", &outside),
        (false, None) => json!("allow"),
        (false, Some(globs)) => {
            let mut all = globs.clone();
            all.extend(outside.clone());
            rules("deny", &all)
        }
    };
    let bash = match (&policy.may_run, policy.read_only) {
        (Some(list), _) => rules("deny", list),
        (None, true) => rules("deny", &LOOKING.map(str::to_owned)),
        (None, false) => json!("allow"),
    };
    let web = if policy.network == Some(false) { "deny" } else { "allow" };
    let mut map = json!({
        "edit": edit, "bash": bash, "webfetch": web, "external_directory": rules("deny", &outside), "doom_loop": "deny",
    });
    for tool in own_names(&policy.disallowed_tools, &TOOLS).0 {
        map[tool] = json!("deny");
    }
    map
}

#[derive(Debug, Default)]
struct OpencodeReader {
    told: Told,
    spent: Usage,
    /// What was said in the step that is under way.
    said: String,
    reason: Option<String>,
    error: Option<Trouble>,
    /// The last thing that it said is that it waits.
    waits: Option<Trouble>,
    /// Calls of tools that the plugin has told of and that have not ended.
    begun: BTreeSet<String>,
}

/// The longest wait of its own; a longer one was asked for by the provider.
const OWN_WAIT_MS: u64 = 30_000;

/// A wait for the provider, as the plugin says it. It knows the words of the provider, not the number.
fn wait(value: &Value) -> Trouble {
    let wait_ms = number_at(value, "/wait_ms");
    let mut trouble = Trouble::read(None, text_at(value, "/message").unwrap_or("the provider"));
    if trouble.kind == TroubleKind::Unknown && wait_ms.is_some_and(|wait| wait > OWN_WAIT_MS) {
        trouble.kind = TroubleKind::Rate;
    }
    Trouble { wait_ms, ..trouble }
}

/// What the provider's answer says of the time to wait.
fn asked_wait_ms(value: &Value) -> Option<u64> {
    let header =
        |name: &str| text_at(value, &format!("/error/data/responseHeaders/{name}"))?.parse::<f64>().ok();
    let ms = header("retry-after-ms").or_else(|| header("retry-after").map(|seconds| seconds * 1000.0))?;
    (ms.is_finite() && (0.0..1e12).contains(&ms)).then_some(ms as u64)
}

impl OpencodeReader {
    fn tool(&mut self, value: &Value) -> Vec<Event> {
        let tool = text_at(value, "/part/tool").unwrap_or("a tool").to_owned();
        let on = target(value.pointer("/part/state/input"));
        let ok = text_at(value, "/part/state/status") == Some("completed");
        let error = text_at(value, "/part/state/error").unwrap_or_default().to_lowercase();
        let mut events = Vec::new();
        if !text_at(value, "/part/callID").is_some_and(|id| self.begun.remove(id)) {
            events.push(Event::ToolStarted { tool: tool.clone(), on });
        }
        if !ok
            && (error.contains("rejected permission")
                || error.contains("prevents you from using")
                || error.contains("permission"))
        {
            events.push(self.told.deny(&tool));
        }
        events.push(Event::ToolEnded { tool, ok });
        events
    }

    fn step_finish(&mut self, value: &Value) -> Vec<Event> {
        let tokens = |name: &str| number_at(value, &format!("/part/tokens/{name}"));
        self.spent.add_call(&Usage {
            input_tokens: tokens("input"),
            output_tokens: tokens("output"),
            cached_tokens: tokens("cache/read"),
            micro_usd: price(value.pointer("/part/cost").and_then(Value::as_f64)),
        });
        self.told.usage = self.spent;
        self.reason = text_at(value, "/part/reason").map(str::to_owned);
        vec![Event::Usage { usage: self.spent }]
    }
}

impl Reader for OpencodeReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = match self.told.json(line) {
            Ok(value) => value,
            Err(events) => return events,
        };
        let mut events = Vec::new();
        if self.told.session.is_none()
            && let Some(session) = text_at(&value, "/sessionID")
        {
            self.told.session = Some(session.to_owned());
            events.push(Event::Started { session: self.told.session.clone(), model: None });
        }
        let kind = text_at(&value, "/type");
        if kind != Some("retry") {
            self.waits = None;
        }
        match kind {
            Some("step_start") => {
                self.said.clear();
                self.reason = None;
            }
            Some("text") => {
                let text = text_at(&value, "/part/text").unwrap_or_default().to_owned();
                self.said.push_str(&text);
                events.push(Event::Text { text });
            }
            Some("tool_use") => events.extend(self.tool(&value)),
            Some("step_finish") => events.extend(self.step_finish(&value)),
            Some("error") => {
                let message = text_at(&value, "/error/data/message")
                    .or_else(|| text_at(&value, "/error/name"))
                    .unwrap_or("it reports an error");
                let trouble = Trouble::read(number_at(&value, "/error/data/statusCode"), message);
                self.error = Some(Trouble { wait_ms: asked_wait_ms(&value), ..trouble });
                events.push(Event::Finished { ok: false });
            }
            Some("retry") => {
                let waits = wait(&value);
                events.push(Event::Waiting { why: waits.message.clone(), wait_ms: waits.wait_ms });
                self.waits = Some(waits);
            }
            Some("tool_begins") => {
                let tool = text_at(&value, "/tool").unwrap_or("a tool").to_owned();
                self.begun.extend(text_at(&value, "/callID").map(str::to_owned));
                events.push(Event::ToolStarted { tool, on: target(value.get("input")) });
            }
            Some("reasoning") => {}
            other => events.extend(self.told.unknown(other)),
        }
        events
    }

    fn waits(&self) -> Option<Trouble> {
        self.waits.clone()
    }

    /// Exit code 0 and a last step that stopped by itself. There is no closing event.
    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        self.said.clone_into(&mut told.text);
        told.trouble = match (self.error.as_ref().or(self.waits.as_ref()), self.reason.as_deref(), exit.code)
        {
            (Some(trouble), ..) => Some(trouble.clone()),
            (None, Some("stop"), Some(0)) => None,
            (None, Some("tool-calls"), Some(0)) if !told.denied.is_empty() => Some(Trouble::new(
                TroubleKind::Denied,
                format!("it stopped because it may not use {}", told.denied.join(", ")),
            )),
            (None, Some("length"), Some(0)) => Some(Trouble::new(TroubleKind::Unknown, "its answer was cut")),
            (None, _, Some(0)) => Some(Trouble::new(TroubleKind::Network, "its turn has no end")),
            (None, ..) => Some(ended_early(exit)),
        };
        told
    }
}
