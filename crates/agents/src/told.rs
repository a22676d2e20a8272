//! What an agent's stream says of the attempt, when it is over. A claim like any other: whether the
//! reply and the files hold is for the engine to see.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::{
    event::{Event, Usage},
    trouble::Trouble,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The last message, where the reply stands.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// Tools that it was not allowed to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Why it did not end well; absent: its stream says that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Lines of a kind that this version does not know.
    #[serde(default)]
    pub unknown: u64,
}

impl Told {
    /// A tool that it may not use, kept once.
    pub(crate) fn deny(&mut self, tool: &str) -> Event {
        if !self.denied.iter().any(|known| known == tool) {
            self.denied.push(tool.to_owned());
        }
        Event::Denied { tool: tool.to_owned() }
    }

    /// A line of a kind that nobody here knows.
    pub(crate) fn unknown(&mut self, kind: Option<&str>) -> Vec<Event> {
        self.unknown += 1;
        vec![Event::Unknown { kind: kind.unwrap_or_default().to_owned() }]
    }

    /// The line as JSON, or what it is instead.
    pub(crate) fn json(&mut self, line: &str) -> Result<Value, Vec<Event>> {
        serde_json::from_str(line).map_err(|_| self.unknown(Some("text")))
    }
}
