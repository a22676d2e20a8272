//! What an agent does while it works, in one vocabulary for all of them.

use serde::{Deserialize, Serialize};

/// One thing that happened, as the agent's stream tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The agent is up and has a conversation.
    Started {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    Text {
        text: String,
    },
    ToolStarted {
        tool: String,
        /// What it is used on: a path, a command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        on: String,
    },
    ToolEnded {
        tool: String,
        ok: bool,
    },
    /// It waits before it asks the model again.
    Waiting {
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    /// It wanted to use a tool and may not.
    Denied {
        tool: String,
    },
    /// What was spent since the start.
    Usage {
        usage: Usage,
    },
    /// The turn is over.
    Finished {
        ok: bool,
    },
    /// A line that this version does not know. It is kept in the raw stream.
    Unknown {
        kind: String,
    },
}

/// Tokens and money of one attempt so far. `None` = the agent does not tell, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Part of the input that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl Usage {
    /// All tokens; nothing if neither direction is known.
    pub fn tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }

    pub fn is_known(&self) -> bool {
        *self != Usage::default()
    }

    /// One more call of the model. Its cached part is counted beside the rest of its input.
    pub(crate) fn add_call(&mut self, call: &Usage) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        let cached = call.cached_tokens;
        let input = call.input_tokens.map(|input| input.saturating_add(cached.unwrap_or(0)));
        add(&mut self.input_tokens, input);
        add(&mut self.output_tokens, call.output_tokens);
        add(&mut self.cached_tokens, cached);
        add(&mut self.micro_usd, call.micro_usd);
    }

    /// Two turns of one attempt together. What one of them does not tell is unknown for both.
    pub fn plus(&self, other: &Usage) -> Usage {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Usage {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            micro_usd: sum(self.micro_usd, other.micro_usd),
        }
    }
}

/// Dollars of one call. A model without a price costs 0, which is not known to be free.
pub(crate) fn price(usd: Option<f64>) -> Option<u64> {
    usd.filter(|usd| *usd > 0.0).and_then(micro_usd)
}

/// Dollars as an agent writes them.
pub(crate) fn micro_usd(usd: f64) -> Option<u64> {
    (usd.is_finite() && (0.0..1e9).contains(&usd)).then(|| (usd * 1e6).round() as u64)
}
