//! Rules for the scripted model; the first that fits answers.

use serde_json::{Value, json};

/// The reply of a worker.
pub const DONE: &str = "STATUS: DONE\nFILE: none\nSUMMARY: It is done.\nNEXT_INPUT: none";

pub fn rule(matches: &str, reply: Value) -> Value {
    json!({"match": matches, "reply": reply})
}

pub fn say(text: &str) -> Value {
    json!({"text": text, "usage": {"input": 200, "output": 40}})
}

pub fn tools(calls: Value) -> Value {
    json!({"text": "I work.", "tools": calls, "usage": {"input": 100, "output": 20}})
}

pub fn write(path: impl std::fmt::Display, content: &str) -> Value {
    json!({"do": "write", "path": path.to_string(), "content": content})
}

pub fn shell(command: &str) -> Value {
    json!({"do": "shell", "command": command})
}
