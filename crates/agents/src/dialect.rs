//! Claude Code's stream of JSON lines, which Qwen Code speaks too.

use gatewright_core::fact::TroubleKind;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    adapter::{Exit, Reader},
    event::{Event, Usage, micro_usd},
    order::Policy,
    told::Told,
    trouble::Trouble,
};

/// The shortest wait of Qwen Code for a limit, and longer than it waits for anything else.
const QWEN_LIMIT_WAIT_MS: u64 = 60_000;

/// What was seen of one stream so far.
#[derive(Debug, Default)]
pub struct ClaudeDialect {
    told: Told,
    /// Names of tools by the id of their call, to say which one ended.
    calls: BTreeMap<String, String>,
    /// Usage by message: a message comes in several lines, each with the usage of the whole.
    messages: BTreeMap<String, Usage>,
    result: Option<Value>,
    /// The last wait that it announced.
    waited: Option<(Option<u64>, String, Option<u64>)>,
    /// Nothing came after that.
    waits: bool,
    last_text: String,
}

pub(crate) fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

pub(crate) fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// What a tool is used on, short enough for one line.
pub(crate) fn target(input: Option<&Value>) -> String {
    const KEYS: [&str; 9] =
        ["command", "cmd", "file_path", "filePath", "path", "pattern", "url", "absolute_path", "description"];
    let Some(input) = input else { return String::new() };
    let found = KEYS.iter().find_map(|key| input.get(key));
    let text = match found {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    shortened(text.lines().next().unwrap_or_default())
}

pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 160;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST - 1).chain(['…']).collect()
}

impl ClaudeDialect {
    fn assistant(&mut self, value: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        // It may be another than at the start: one to fall back to. Its own words have a name in brackets.
        if let Some(model) = text_at(value, "/message/model").filter(|model| !model.starts_with('<')) {
            self.told.model = Some(model.to_owned());
        }
        let content =
            value.pointer("/message/content").and_then(Value::as_array).cloned().unwrap_or_default();
        for part in &content {
            match part.get("type").and_then(Value::as_str) {
                Some("text") => {
                    let text = text_at(part, "/text").unwrap_or_default().to_owned();
                    text.clone_into(&mut self.last_text);
                    events.push(Event::Text { text });
                }
                Some("tool_use") => {
                    let tool = text_at(part, "/name").unwrap_or("a tool").to_owned();
                    if let Some(id) = text_at(part, "/id") {
                        self.calls.insert(id.to_owned(), tool.clone());
                    }
                    events.push(Event::ToolStarted { tool, on: target(part.get("input")) });
                }
                Some(_) | None => {}
            }
        }
        if let (Some(id), Some(usage)) = (text_at(value, "/message/id"), value.pointer("/message/usage")) {
            self.messages.insert(id.to_owned(), usage_of(usage));
            let usage = self.sum();
            if usage.is_known() {
                self.told.usage = usage;
                events.push(Event::Usage { usage });
            }
        }
        events
    }

    fn sum(&self) -> Usage {
        let nothing =
            Usage { input_tokens: Some(0), output_tokens: Some(0), cached_tokens: Some(0), micro_usd: None };
        self.messages.values().fold(nothing, |sum, one| Usage { micro_usd: None, ..sum.plus(one) })
    }

    fn user(&mut self, value: &Value) -> Vec<Event> {
        let content =
            value.pointer("/message/content").and_then(Value::as_array).cloned().unwrap_or_default();
        let results = content.iter().filter(|part| text_at(part, "/type") == Some("tool_result"));
        results
            .map(|part| Event::ToolEnded {
                tool: text_at(part, "/tool_use_id")
                    .and_then(|id| self.calls.remove(id))
                    .unwrap_or_else(|| "a tool".to_owned()),
                ok: part.get("is_error").and_then(Value::as_bool) != Some(true),
            })
            .collect()
    }

    fn system(&mut self, value: &Value) -> Vec<Event> {
        match text_at(value, "/subtype") {
            Some("init") => {
                self.told.model = text_at(value, "/model").map(str::to_owned);
                vec![Event::Started { session: self.told.session.clone(), model: self.told.model.clone() }]
            }
            Some("api_retry" | "retry") => {
                let wait_ms =
                    number_at(value, "/retry_delay_ms").or_else(|| number_at(value, "/data/delayMs"));
                // Qwen does not say why. Nothing but a limit makes it wait so long.
                let limit = wait_ms.is_some_and(|wait| wait >= QWEN_LIMIT_WAIT_MS).then_some(429);
                let status = number_at(value, "/error_status").or(limit);
                let why = if limit.is_some() { "the limit is reached" } else { "the provider" };
                let why = text_at(value, "/error").unwrap_or(why).to_owned();
                self.waited = Some((status, why.clone(), wait_ms));
                self.waits = true;
                vec![Event::Waiting { why, wait_ms }]
            }
            Some("permission_denied") => {
                vec![self.told.deny(text_at(value, "/tool_name").unwrap_or("a tool"))]
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn result(&mut self, value: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        for denial in value.pointer("/permission_denials").and_then(Value::as_array).into_iter().flatten() {
            let tool = text_at(denial, "/tool_name").unwrap_or("a tool");
            // Claude Code has said it already; Qwen Code says it here only.
            if !self.told.denied.iter().any(|known| known == tool) {
                events.push(self.told.deny(tool));
            }
        }
        let mut usage = value.pointer("/usage").map(usage_of).unwrap_or_default();
        usage.micro_usd = value.pointer("/total_cost_usd").and_then(Value::as_f64).and_then(micro_usd);
        self.told.usage = usage;
        let ok = value.get("is_error").and_then(Value::as_bool) == Some(false);
        self.result = Some(value.clone());
        events.extend([Event::Usage { usage }, Event::Finished { ok }]);
        events
    }

    /// `result` with `is_error: false`; `subtype` is "success" even for errors of the provider.
    fn trouble(&self, exit: &Exit<'_>) -> Option<Trouble> {
        let Some(result) = &self.result else {
            return Some(self.without_result(exit));
        };
        if result.get("is_error").and_then(Value::as_bool) == Some(false) {
            return None;
        }
        let words = text_at(result, "/result")
            .or_else(|| text_at(result, "/error/message"))
            .or_else(|| text_at(result, "/errors/0"))
            .unwrap_or("it says that it failed");
        let subtype = text_at(result, "/subtype").unwrap_or_default();
        let mut trouble = match subtype {
            "error_max_turns" => Trouble::new(TroubleKind::Budget, "the limit of turns is reached"),
            "error_max_budget_usd" => Trouble::new(TroubleKind::Budget, "its budget is spent"),
            // Qwen calls every error so, and then has words for it.
            "error_during_execution" if text_at(result, "/error/message").is_none() => {
                Trouble::new(TroubleKind::Interrupted, "it was interrupted")
            }
            _ => {
                let status = number_at(result, "/api_error_status")
                    .or_else(|| self.waited.as_ref().and_then(|(status, ..)| *status));
                Trouble::read(status, words)
            }
        };
        trouble.wait_ms = self.waited.as_ref().and_then(|(.., wait)| *wait);
        Some(trouble)
    }

    fn without_result(&self, exit: &Exit<'_>) -> Trouble {
        let on_stderr = || {
            let wait_ms = exit.stderr.lines().rev().find_map(qwen_heartbeat)?;
            Some(Trouble { wait_ms: Some(wait_ms), ..Trouble::read(Some(429), "the limit is reached") })
        };
        self.waits().or_else(on_stderr).unwrap_or_else(|| ended_early(exit))
    }
}

/// What Qwen Code says on stderr every half minute while it waits until a limit is over.
fn qwen_heartbeat(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("Waiting for API capacity")?;
    milliseconds_after(rest, "retry in ", "s")
}

/// The number between these words, as milliseconds.
pub(crate) fn milliseconds_after(line: &str, before: &str, unit: &str) -> Option<u64> {
    let (_, rest) = line.split_once(before)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let number: u64 = rest[..digits].parse().ok()?;
    let factor = if unit == "ms" { 1 } else { 1000 };
    rest[digits..].starts_with(unit).then(|| number.saturating_mul(factor))
}

/// Words of Claude's and Codex's role definitions that mean nothing to any other agent.
pub(crate) fn foreign_modes(policy: &Policy) -> Vec<String> {
    let sandbox =
        policy.sandbox_mode.as_ref().map(|mode| format!("`sandbox_mode: {mode}` is Codex's; it has none"));
    let permission = policy
        .permission_mode
        .as_ref()
        .map(|mode| format!("`permissionMode: {mode}` is Claude's; the role's own permissions are used"));
    sandbox.into_iter().chain(permission).collect()
}

/// The stream has no end: what the process says for itself.
pub(crate) fn ended_early(exit: &Exit<'_>) -> Trouble {
    let words = exit.stderr.trim();
    let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // What is below the line that tells the kind is advice.
    let telling = |kind: TroubleKind| {
        let tells = |line: &&str| kind != TroubleKind::Unknown && Trouble::read(None, line).kind == kind;
        words.lines().find(tells).unwrap_or(last)
    };
    match exit.code {
        None | Some(129 | 130 | 137 | 143) => {
            Trouble::new(TroubleKind::Interrupted, "it was ended before its turn was over")
        }
        Some(code) if last.is_empty() => Trouble::new(
            TroubleKind::Unknown,
            format!("it ended with {code} before its turn was over and said nothing"),
        ),
        Some(_) => {
            let trouble = Trouble::read(None, words);
            Trouble { message: shortened(telling(trouble.kind).trim()), ..trouble }
        }
    }
}

fn usage_of(usage: &Value) -> Usage {
    let cached = number_at(usage, "/cache_read_input_tokens");
    let written = number_at(usage, "/cache_creation_input_tokens");
    Usage {
        // Anthropic counts cached input beside the rest.
        input_tokens: number_at(usage, "/input_tokens")
            .map(|input| input.saturating_add(cached.unwrap_or(0)).saturating_add(written.unwrap_or(0))),
        output_tokens: number_at(usage, "/output_tokens"),
        cached_tokens: cached,
        micro_usd: None,
    }
}

impl Reader for ClaudeDialect {
    fn line(&mut self, line: &str) -> Vec<Event> {
        let value = match self.told.json(line) {
            Ok(value) => value,
            Err(events) => return events,
        };
        if let Some(session) = text_at(&value, "/session_id") {
            self.told.session = Some(session.to_owned());
        }
        let kind = text_at(&value, "/type");
        if matches!(kind, Some("assistant" | "user" | "result")) {
            self.waits = false;
        }
        match kind {
            Some("assistant") => self.assistant(&value),
            Some("user") => self.user(&value),
            Some("system") => self.system(&value),
            Some("result") => self.result(&value),
            Some("tool_progress" | "stream_event") => Vec::new(),
            other => self.told.unknown(other),
        }
    }

    fn aside(&mut self, line: &str) {
        if let Some(wait_ms) = qwen_heartbeat(line) {
            self.waited = Some((Some(429), "the limit is reached".to_owned(), Some(wait_ms)));
            self.waits = true;
        }
    }

    fn waits(&self) -> Option<Trouble> {
        let (status, why, wait_ms) = self.waited.as_ref().filter(|_| self.waits)?;
        Some(Trouble { wait_ms: *wait_ms, ..Trouble::read(*status, why) })
    }

    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut told = self.told.clone();
        let said = self.result.as_ref().and_then(|result| text_at(result, "/result"));
        said.filter(|text| !text.is_empty()).unwrap_or(&self.last_text).clone_into(&mut told.text);
        told.trouble = self.trouble(exit);
        told
    }
}
