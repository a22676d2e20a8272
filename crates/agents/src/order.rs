//! What one attempt asks of an agent, and how that agent is then to be started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything an adapter may need to know of an attempt. All paths are absolute.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub role: &'a str,
    pub step: &'a str,
    /// Program and leading arguments from the configuration; empty: the agent's usual name.
    pub command: &'a [String],
    /// More arguments from the configuration.
    pub args: &'a [String],
    pub prompt: &'a str,
    pub prompt_file: &'a str,
    /// Where the agent works.
    pub workdir: &'a str,
    /// Where the attempt's files go.
    pub out: &'a str,
    /// The run directory, where artifacts of other steps are read.
    pub run_dir: &'a str,
    /// A directory of this step that outlives its attempts, for an agent's own database and settings.
    pub home: &'a str,
    /// The user's home directory.
    pub user_home: &'a str,
    pub model: Option<&'a str>,
    /// Models to fall back to.
    pub fallbacks: &'a [String],
    pub conversation: &'a Conversation,
    pub policy: &'a Policy,
    /// What the attempt may still spend.
    pub micro_usd_max: Option<u64>,
    /// What its last message has to be like, where that is JSON and the agent may be told so. Never believed.
    pub reply_schema: Option<&'a ReplySchema>,
    /// What [`crate::Adapter::extras`] names is there.
    pub extras: bool,
    /// The tools by which it may hand in its work: an MCP server that it starts itself.
    pub desk: Option<&'a Desk>,
}

/// JSON Schemas of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplySchema {
    /// More fields than it names are allowed.
    pub open: Value,
    /// Every object is closed and every field required, which is all that some providers take. Absent where the reply
    /// cannot be said so.
    pub closed: Option<Value>,
}

/// A server on stdin and stdout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desk {
    pub program: String,
    pub args: Vec<String>,
}

/// What the server is called in agents' settings and in the names of its tools.
pub const DESK: &str = "gatewright";

/// Which conversation the attempt belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "conversation", rename_all = "snake_case")]
pub enum Conversation {
    /// A new one. The id is chosen by us; agents that choose their own ignore it.
    New { session: String },
    /// One that an earlier turn of the same step began.
    Resumed { session: String },
}

/// What a role may do, in terms that can be said to an agent. What it must not do at all is prevented by the
/// engine's own checks; this is the agent's own means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// It may change nothing in the repository.
    #[serde(default)]
    pub read_only: bool,
    /// Globs it may change; `None` = everything.
    #[serde(default)]
    pub may_write: Option<Vec<String>>,
    /// Commands it may run, `git *`; `None` = any, empty = none.
    #[serde(default)]
    pub may_run: Option<Vec<String>>,
    /// `None` = as the agent has it.
    #[serde(default)]
    pub network: Option<bool>,
    /// Tools by the agent's own names; `None` = the usual ones.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub disallowed_tools: Vec<String>,
    #[serde(default)]
    pub permission_mode: Option<String>,
    #[serde(default)]
    pub sandbox_mode: Option<String>,
    /// The engine's sandbox is around it. An agent's own cannot be made inside of that.
    #[serde(default)]
    pub contained: bool,
    #[serde(default)]
    pub effort: Option<String>,
    #[serde(default)]
    pub max_turns: Option<u64>,
}

impl Policy {
    /// A definition takes this tool away, by Claude Code's name for it and as a whole.
    pub(crate) fn has_lost(&self, tool: &str) -> bool {
        self.disallowed_tools.iter().any(|one| one == tool)
    }
}

/// How the agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub argv: Vec<String>,
    /// Set for the agent, below what the configuration sets.
    pub env: BTreeMap<String, String>,
    /// Names (`NAME`, `PREFIX_*`) that are passed on if they are set.
    pub pass: Vec<&'static str>,
    /// The prompt comes on stdin; otherwise stdin is empty.
    pub prompt_on_stdin: bool,
    /// Files that have to be there before the start.
    pub files: Vec<QuietFile>,
    /// Its own means to keep a read-only role from writing do not work here: the engine's sandbox has to.
    pub hold_read_only: bool,
}

/// A settings file of ours for an agent. One that begins with `#!` is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietFile {
    pub path: String,
    pub text: String,
}

impl Launch {
    /// A command line that begins with the configured program, or with this one.
    pub(crate) fn of(order: &Order<'_>, program: &str) -> Launch {
        let argv = if order.command.is_empty() { vec![program.to_owned()] } else { order.command.to_vec() };
        Launch { argv, prompt_on_stdin: true, ..Launch::default() }
    }

    pub(crate) fn arg(&mut self, words: &[&str]) -> &mut Launch {
        self.argv.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// The flags of those that let us choose the id of a conversation.
    pub(crate) fn talk(&mut self, conversation: &Conversation) -> &mut Launch {
        match conversation {
            Conversation::New { session } => self.arg(&["--session-id", session]),
            Conversation::Resumed { session } => self.arg(&["--resume", session]),
        }
    }

    /// `flag value`, if there is a value.
    pub(crate) fn option(&mut self, flag: &str, value: Option<&str>) -> &mut Launch {
        if let Some(value) = value {
            self.arg(&[flag, value]);
        }
        self
    }

    pub(crate) fn set(&mut self, pairs: &[(&str, &str)]) -> &mut Launch {
        self.env.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }
}
