//! Any other program, as the configuration declares it: no code is needed for a new agent.

use gatewright_core::fact::TroubleKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    adapter::{Exit, Reader},
    event::{Event, Usage, micro_usd},
    told::Told,
    trouble::Trouble,
};

/// How the output of a declared agent is read, and how it continues a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    #[serde(default)]
    pub reply: ReplyFrom,
    #[serde(default)]
    pub session: Option<SessionFlags>,
}

/// Where in the output the last message is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case")]
pub enum ReplyFrom {
    /// The output itself.
    #[default]
    Text,
    /// One JSON document.
    Json(Fields),
    /// JSON documents line by line.
    Jsonl(Fields),
}

/// Dotted paths (`item.text`) into a document. Of lines the last one counts that has the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    pub text: String,
    /// `type=agent_message`: only lines of which this is true have a text.
    #[serde(default)]
    pub only: Option<String>,
    #[serde(default)]
    pub session: Option<String>,
    #[serde(default)]
    pub tokens: Option<String>,
    #[serde(default)]
    pub usd: Option<String>,
    /// A field whose presence (not null, not false, not empty) means that it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// Arguments with `{session}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFlags {
    /// Added to a new conversation, whose id we choose; empty: the agent chooses it and tells.
    #[serde(default)]
    pub start: Vec<String>,
    /// Added when a conversation goes on; empty: it cannot.
    #[serde(default)]
    pub resume: Vec<String>,
}

/// Reads what a declared agent prints.
#[derive(Debug, Default)]
pub struct DeclaredReader {
    declared: Declared,
    told: Told,
    /// A document that stands on more than one line.
    document: String,
    failed: Option<String>,
    seen: bool,
}

/// No document of an agent is longer; what comes after is not read.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

impl DeclaredReader {
    pub fn new(declared: &Declared) -> DeclaredReader {
        DeclaredReader { declared: declared.clone(), ..DeclaredReader::default() }
    }

    fn take(&mut self, fields: &Fields, value: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(session) =
            fields.session.as_ref().and_then(|path| at(value, path)).and_then(Value::as_str)
            && self.told.session.as_deref() != Some(session)
        {
            self.told.session = Some(session.to_owned());
            events.push(Event::Started { session: self.told.session.clone(), model: None });
        }
        let wanted = fields.only.as_ref().is_none_or(|only| is_so(value, only));
        if let Some(text) = at(value, &fields.text).and_then(Value::as_str).filter(|_| wanted) {
            text.clone_into(&mut self.told.text);
            self.seen = true;
            events.push(Event::Text { text: text.to_owned() });
        }
        let tokens = fields.tokens.as_ref().and_then(|path| at(value, path)).and_then(Value::as_u64);
        let usd = fields.usd.as_ref().and_then(|path| at(value, path)).and_then(Value::as_f64);
        if tokens.is_some() || usd.is_some() {
            let before = self.told.usage;
            let usage = Usage {
                input_tokens: tokens.or(before.input_tokens),
                micro_usd: usd.and_then(micro_usd).or(before.micro_usd),
                ..before
            };
            self.told.usage = usage;
            events.push(Event::Usage { usage });
        }
        if let Some(error) =
            fields.error.as_ref().and_then(|path| at(value, path)).filter(|one| is_something(one))
        {
            self.failed = Some(error.as_str().map_or_else(|| error.to_string(), str::to_owned));
            events.push(Event::Finished { ok: false });
        }
        events
    }
}

/// The value at a dotted path.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

fn is_so(value: &Value, condition: &str) -> bool {
    let Some((path, wanted)) = condition.split_once('=') else { return false };
    at(value, path.trim()).is_some_and(|found| match found {
        Value::String(text) => text == wanted.trim(),
        other => *other == wanted.trim(),
    })
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

impl Reader for DeclaredReader {
    fn line(&mut self, line: &str) -> Vec<Event> {
        match self.declared.reply.clone() {
            ReplyFrom::Text => vec![Event::Text { text: format!("{line}\n") }],
            ReplyFrom::Json(_) => {
                if self.document.len() + line.len() < DOCUMENT_BYTES_MAX {
                    self.document.push_str(line);
                    self.document.push('\n');
                }
                Vec::new()
            }
            ReplyFrom::Jsonl(fields) => match serde_json::from_str::<Value>(line) {
                Ok(value) => self.take(&fields, &value),
                Err(_) => {
                    self.told.unknown += 1;
                    vec![Event::Unknown { kind: "text".to_owned() }]
                }
            },
        }
    }

    /// A declared agent's exit code counts, and a document has to be one.
    fn told(&self, exit: &Exit<'_>) -> Told {
        let mut reader = DeclaredReader {
            declared: self.declared.clone(),
            told: self.told.clone(),
            document: String::new(),
            failed: self.failed.clone(),
            seen: self.seen,
        };
        if let ReplyFrom::Json(fields) = &self.declared.reply {
            match serde_json::from_str::<Value>(&self.document) {
                Ok(value) => drop(reader.take(fields, &value)),
                Err(_) if exit.code == Some(0) => {
                    reader.failed = Some("its output is not a JSON document".to_owned());
                }
                Err(_) => {}
            }
        }
        let mut told = reader.told;
        told.trouble = match (&reader.failed, exit.code) {
            (Some(words), _) => Some(Trouble::read(None, words)),
            // The engine says itself how a process ended.
            (None, _)
                if !reader.seen
                    && !matches!(self.declared.reply, ReplyFrom::Text)
                    && exit.code == Some(0) =>
            {
                Some(Trouble::new(TroubleKind::Unknown, "its output has no message where one was declared"))
            }
            (None, _) => None,
        };
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reply: ReplyFrom, output: &str, code: i32) -> Told {
        let mut reader = DeclaredReader::new(&Declared { reply, session: None });
        for line in output.lines() {
            reader.line(line);
        }
        reader.told(&Exit { code: Some(code), stderr: "" })
    }

    fn fields() -> Fields {
        Fields {
            text: "item.text".to_owned(),
            only: Some("type=said".to_owned()),
            session: Some("thread".to_owned()),
            tokens: Some("usage.tokens".to_owned()),
            usd: Some("usage.usd".to_owned()),
            error: Some("error".to_owned()),
        }
    }

    #[test]
    fn lines_of_json_are_read_by_paths() {
        let output = "{\"thread\": \"t1\"}\nnoise\n{\"type\": \"said\", \"item\": {\"text\": \"one\"}}\n{\"type\": \"thought\", \"item\": {\"text\": \"hm\"}}\n{\"type\": \"said\", \"item\": {\"text\": \"two\"}}\n{\"usage\": {\"tokens\": 12, \"usd\": 0.5}}\n";
        let told = read(ReplyFrom::Jsonl(fields()), output, 0);
        assert_eq!(told.text, "two");
        assert_eq!(told.session.as_deref(), Some("t1"));
        assert_eq!((told.usage.tokens(), told.usage.micro_usd), (Some(12), Some(500_000)));
        assert_eq!((told.trouble, told.unknown), (None, 1));
    }

    #[test]
    fn a_document_that_is_none_and_an_error_field_are_trouble() {
        let message = |told: Told| told.trouble.map(|trouble| trouble.message).unwrap_or_default();
        assert_eq!(message(read(ReplyFrom::Json(fields()), "oops", 0)), "its output is not a JSON document");
        let told = read(ReplyFrom::Json(fields()), "{\"error\": \"401 unauthorized\"}", 0);
        assert_eq!(told.trouble.map(|trouble| trouble.kind), Some(TroubleKind::Auth));
        assert!(message(read(ReplyFrom::Jsonl(fields()), "{}", 0)).contains("no message"));
    }
}
