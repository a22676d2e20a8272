//! What happens in a turn, as JSON lines: one object with `event` per line, the last one `finished`.

use std::{collections::BTreeMap, io::Write};

use agent_client_protocol::v1::schema::{ContentBlock, SessionUpdate, ToolCallStatus, ToolCallUpdate};
use serde_json::{Value, json};

use crate::permit::Asked;

/// Of the wire so much is kept: what the turn says in the end has to have its place in the stream.
const WIRE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Who reads a line of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Agent,
    Client,
}

/// What one call of the model has spent. The cached part of the input is counted beside the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Call {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub usd: f64,
}

/// Writes the lines and keeps what is needed for the last one.
pub struct Transcript<W: Write> {
    out: W,
    /// The message that is being written, piece by piece.
    open: String,
    /// What was said since the last tool was used.
    last: String,
    tools: BTreeMap<String, String>,
    /// What the agent has told of its tool calls in fields for programs.
    known: BTreeMap<String, Asked>,
    /// How much of the wire may still be kept.
    wire_left: usize,
    /// Tools that were announced before anything was said of what they are used on: name and title.
    announced: BTreeMap<String, (String, String)>,
    usage: Option<Value>,
    cost: Option<f64>,
    /// Somebody beside the protocol tells of every call.
    counts: bool,
    calls: BTreeMap<String, Call>,
    last_call: Option<Call>,
    /// The turn has failed, and with which answer of the provider, if it was one.
    failed: bool,
    status: Option<u64>,
    /// Updates before the prompt are a replay of what was said earlier.
    listening: bool,
}

impl<W: Write> Transcript<W> {
    pub fn new(out: W) -> Self {
        Transcript {
            out,
            open: String::new(),
            last: String::new(),
            tools: BTreeMap::new(),
            known: BTreeMap::new(),
            wire_left: WIRE_BYTES_MAX,
            announced: BTreeMap::new(),
            usage: None,
            cost: None,
            counts: false,
            calls: BTreeMap::new(),
            last_call: None,
            failed: false,
            status: None,
            listening: false,
        }
    }

    /// `resumed`: an earlier turn has begun the conversation.
    pub fn started(&mut self, session: &str, resumed: bool) {
        self.listening = true;
        self.line(&if resumed {
            json!({"event": "started", "session": session, "resumed": true})
        } else {
            json!({"event": "started", "session": session})
        });
    }

    /// A line of the protocol as it went over the wire. What is understood of it are the other events.
    pub fn wire(&mut self, to: To, line: &str) {
        if self.wire_left == 0 {
            return;
        }
        let to = match to {
            To::Agent => "agent",
            To::Client => "client",
        };
        if let Some(left) = self.wire_left.checked_sub(line.len()) {
            self.wire_left = left;
            self.line(&json!({"event": "wire", "to": to, "line": line}));
        } else {
            self.wire_left = 0;
            self.line(&json!({"event": "wire", "left_off": true}));
        }
    }

    /// What the agent asks leave for: what the request says, and where it says nothing, what the announcement of the call
    /// said.
    pub fn asked(&self, call: &ToolCallUpdate) -> Asked {
        let known = self.known.get(&call.tool_call_id.to_string()).cloned().unwrap_or_default();
        Asked {
            name: call.fields.name.clone().or(known.name),
            kind: call.fields.kind.or(known.kind),
            input: call.fields.raw_input.clone().or(known.input),
        }
    }

    pub fn update(&mut self, update: &SessionUpdate) {
        if !self.listening {
            return;
        }
        self.note(update);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let ContentBlock::Text(text) = &chunk.content {
                    self.open.push_str(&text.text);
                }
            }
            SessionUpdate::ToolCall(call) => {
                let id = call.tool_call_id.to_string();
                let name = call.name.as_deref().unwrap_or(&call.title);
                match target(call.raw_input.as_ref()) {
                    Some(on) => self.tool_started(&id, name, &on),
                    None => {
                        self.announced.insert(id.clone(), (name.to_owned(), call.title.clone()));
                    }
                }
                self.tool_ended(&id, Some(call.status));
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let id = update.tool_call_id.to_string();
                if let (Some((name, _)), Some(on)) =
                    (self.announced.get(&id).cloned(), target(update.fields.raw_input.as_ref()))
                {
                    self.tool_started(&id, &name, &on);
                }
                // Some agents deny by their own settings, without asking, and say so in the result.
                let failed = update.fields.status == Some(ToolCallStatus::Failed);
                if failed && says_that_it_may_not(&json!(update.fields).to_string()) {
                    let known = self.tools.get(&id).cloned();
                    let announced = || self.announced.get(&id).map(|(name, _)| name.clone());
                    let tool = known.or_else(announced).unwrap_or_else(|| "a tool".to_owned());
                    self.denied(&tool);
                }
                self.tool_ended(&id, update.fields.status);
            }
            SessionUpdate::UsageUpdate(update) => {
                // A model without a price costs 0, which is not known to be free.
                let cost = update.cost.as_ref().filter(|cost| cost.currency == "USD" && cost.amount > 0.0);
                self.cost = cost.map(|cost| cost.amount).or(self.cost);
            }
            // What it was told itself.
            SessionUpdate::UserMessageChunk(_) => {}
            // Nobody here knows what it means; it is kept as it came.
            other => {
                let update = json!(other);
                let kind = update["sessionUpdate"].as_str().unwrap_or("update").to_owned();
                self.unknown(&kind, &update);
            }
        }
    }

    /// Keeps what tells one tool from another.
    fn note(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::ToolCall(call) => {
                let asked =
                    Asked { name: call.name.clone(), kind: Some(call.kind), input: call.raw_input.clone() };
                self.known.insert(call.tool_call_id.to_string(), asked);
            }
            SessionUpdate::ToolCallUpdate(call) => {
                let asked = self.asked(call);
                self.known.insert(call.tool_call_id.to_string(), asked);
            }
            _ => {}
        }
    }

    pub fn unknown(&mut self, kind: &str, said: &Value) {
        self.line(&json!({"event": "unknown", "kind": kind, "said": said}));
    }

    /// It waits for its provider before it goes on.
    pub fn waiting(&mut self, why: &str, wait_ms: Option<u64>) {
        self.line(&json!({"event": "waiting", "why": first_line(why), "wait_ms": wait_ms}));
    }

    /// A tool is used; some agents ask for leave first and announce the call afterwards or never.
    pub fn tool_started(&mut self, id: &str, tool: &str, on: &str) {
        if self.tools.contains_key(id) {
            return;
        }
        self.announced.remove(id);
        self.say();
        self.last.clear();
        self.tools.insert(id.to_owned(), tool.to_owned());
        self.line(&json!({"event": "tool_started", "tool": first_line(tool), "on": first_line(on)}));
    }

    fn tool_ended(&mut self, id: &str, status: Option<ToolCallStatus>) {
        let ok = match status {
            Some(ToolCallStatus::Completed) => true,
            Some(ToolCallStatus::Failed) => false,
            _ => return,
        };
        if let Some((name, title)) = self.announced.remove(id) {
            self.tool_started(id, &name, &title);
        }
        self.known.remove(id);
        if let Some(tool) = self.tools.remove(id) {
            self.say();
            self.last.clear();
            self.line(&json!({"event": "tool_ended", "tool": tool, "ok": ok}));
        }
    }

    pub fn denied(&mut self, tool: &str) {
        self.say();
        self.last.clear();
        self.line(&json!({"event": "denied", "tool": first_line(tool)}));
    }

    pub fn spent(&mut self, input: u64, output: u64, cached: Option<u64>) {
        self.usage = Some(json!({"input_tokens": input, "output_tokens": output, "cached_tokens": cached}));
    }

    /// From now on every call is told by itself.
    pub fn counts_calls(&mut self) {
        self.counts = true;
    }

    /// A call of the model that is over. One that is told again counts once.
    pub fn call(&mut self, id: &str, call: Call) {
        if !self.listening {
            return;
        }
        self.last_call = Some(call);
        self.calls.insert(id.to_owned(), call);
        let sum = self.calls.values().fold(Call::default(), |sum, one| Call {
            input: sum.input.saturating_add(one.input).saturating_add(one.cached),
            output: sum.output.saturating_add(one.output),
            cached: sum.cached.saturating_add(one.cached),
            usd: sum.usd + one.usd,
        });
        let mut usage =
            json!({"input_tokens": sum.input, "output_tokens": sum.output, "cached_tokens": sum.cached});
        // A model without a price costs 0, which is not known to be free.
        if sum.usd > 0.0 {
            usage["micro_usd"] = json!((sum.usd * 1e6).round() as u64);
        }
        self.line(&json!({"event": "usage", "usage": usage, "summed": true}));
    }

    /// Whether nothing more is to come of the last call, which the protocol says has spent so much.
    pub fn has_heard(&self, input: u64, output: u64) -> bool {
        !self.counts || self.last_call.is_some_and(|call| (call.input, call.output) == (input, output))
    }

    /// Somebody beside the protocol tells that the turn has failed.
    pub fn failed(&mut self, status: Option<u64>) {
        if self.listening {
            self.failed = true;
            self.status = status;
        }
    }

    /// Whether nothing more is to come of a turn that has failed.
    pub fn has_heard_failure(&self) -> bool {
        !self.counts || self.failed
    }

    /// The last line. `trouble`: why the turn did not end well.
    pub fn finished(&mut self, stop_reason: &str, trouble: Option<&str>) {
        self.say();
        if self.calls.is_empty() && (self.usage.is_some() || self.cost.is_some()) {
            let mut usage = self.usage.take().unwrap_or_else(|| json!({}));
            if let (Some(cost), Value::Object(fields)) = (self.cost, &mut usage) {
                fields.insert("micro_usd".to_owned(), json!((cost * 1e6).round() as u64));
            }
            self.line(&json!({"event": "usage", "usage": usage}));
        }
        let text = std::mem::take(&mut self.last);
        let mut end = json!({
            "event": "finished", "ok": trouble.is_none(), "stop_reason": stop_reason, "text": text, "trouble": trouble,
        });
        if let (Some(status), Some(_)) = (self.status, trouble) {
            end["status"] = json!(status);
        }
        self.line(&end);
    }

    fn say(&mut self) {
        if self.open.trim().is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.open);
        self.last.push_str(&text);
        self.line(&json!({"event": "text", "text": text}));
    }

    fn line(&mut self, value: &Value) {
        // Nobody reads any more: the turn goes on, and its end says how it went.
        let _ = writeln!(self.out, "{value}").and_then(|()| self.out.flush());
    }
}

/// What a tool is used on, as its input says.
fn target(input: Option<&Value>) -> Option<String> {
    const KEYS: [&str; 8] =
        ["command", "cmd", "file_path", "filePath", "path", "absolute_path", "pattern", "url"];
    KEYS.iter().find_map(|key| input?.get(key)?.as_str()).map(str::to_owned)
}

fn says_that_it_may_not(result: &str) -> bool {
    ["prevents you from using", "rejected permission", "permission denied by", "Permission denied by"]
        .iter()
        .any(|words| result.contains(words))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(value: Value) -> SessionUpdate {
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
    }

    fn chunk(text: &str) -> SessionUpdate {
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
    }

    #[test]
    fn the_last_words_are_those_after_the_last_tool_and_a_replay_is_not_heard() {
        let mut out = Vec::new();
        let mut transcript = Transcript::new(&mut out);
        transcript.update(&chunk("from last week"));
        transcript.started("s1", false);
        transcript.update(&chunk("I will "));
        transcript.update(&chunk("write it."));
        transcript.update(&update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Write a.txt", "kind": "edit"}),
        ));
        let input =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": {"path": "a.txt"}});
        transcript.update(&update(input));
        transcript.update(&update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}),
        ));
        transcript.update(&chunk("STATUS: DONE"));
        let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "think", "priority": "high", "status": "pending"}]});
        transcript.update(&update(plan.clone()));
        transcript.spent(10, 2, None);
        transcript.finished("end_turn", None);
        let lines: Vec<Value> = String::from_utf8_lossy(&out)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_default())
            .collect();
        let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(
            events,
            ["started", "text", "tool_started", "tool_ended", "unknown", "text", "usage", "finished"]
        );
        assert_eq!(lines[2]["on"], "a.txt", "what it is used on comes after the announcement");
        assert_eq!(lines[1]["text"], "I will write it.");
        assert_eq!((&lines[4]["kind"], &lines[4]["said"]["entries"]), (&json!("plan"), &plan["entries"]));
        assert_eq!(lines[7]["text"], "STATUS: DONE");
        assert_eq!(lines[7]["ok"], true);
    }

    #[test]
    fn the_number_of_a_failure_stands_beside_its_words() {
        let last = |resumed: bool, trouble: Option<&str>| {
            let mut out = Vec::new();
            let mut transcript = Transcript::new(&mut out);
            transcript.counts_calls();
            transcript.failed(Some(500));
            transcript.started("s1", resumed);
            assert!(!transcript.has_heard_failure(), "that was of a turn before");
            transcript.failed(Some(400));
            assert!(transcript.has_heard_failure());
            transcript.finished("cancelled", trouble);
            let text = String::from_utf8_lossy(&out).into_owned();
            serde_json::from_str::<Value>(text.lines().last().unwrap_or_default()).unwrap_or_default()
        };
        assert_eq!(last(false, Some("what?"))["status"], 400);
        assert_eq!(last(true, None)["status"], Value::Null, "it went well in the end");
    }

    #[test]
    fn calls_that_are_told_one_by_one_are_summed_up_and_count_once() {
        let mut out = Vec::new();
        let mut transcript = Transcript::new(&mut out);
        let call = |input, usd| Call { input, output: 2, cached: 1, usd };
        assert!(transcript.has_heard(7, 7), "nobody counts");
        transcript.counts_calls();
        transcript.call("of-before", call(99, 9.0));
        transcript.started("s1", true);
        transcript.call("a", call(10, 0.25));
        transcript.call("b", call(20, 0.5));
        transcript.call("b", call(30, 0.5));
        assert!(transcript.has_heard(30, 2) && !transcript.has_heard(20, 2));
        transcript.spent(30, 2, None);
        transcript.finished("end_turn", None);
        let text = String::from_utf8_lossy(&out).into_owned();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
        assert_eq!(lines[0]["resumed"], true);
        let usage: Vec<&Value> = lines.iter().filter(|line| line["event"] == "usage").collect();
        assert!(usage.iter().all(|line| line["summed"] == true), "{text}");
        let last = json!({"input_tokens": 42, "output_tokens": 4, "cached_tokens": 2, "micro_usd": 750_000});
        assert_eq!(usage.last().map(|line| &line["usage"]), Some(&last), "{text}");
    }
}
