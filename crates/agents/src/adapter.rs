//! The one trait that every agent is behind, and the list of those that are known.

use crate::{
    claude::Claude,
    codex::Codex,
    event::Event,
    gemini::Gemini,
    opencode::Opencode,
    order::{Launch, Order, Policy},
    pi::Pi,
    qwen::Qwen,
    told::Told,
    trouble::Trouble,
};

/// One coding agent.
pub trait Adapter: Sync {
    fn name(&self) -> &'static str;

    /// Its program on `PATH`.
    fn program(&self) -> &'static str {
        self.name()
    }

    /// How to start it for this attempt.
    fn launch(&self, order: &Order<'_>) -> Launch;

    /// Reads its stream, line by line.
    fn reader(&self) -> Box<dyn Reader>;

    fn capabilities(&self) -> Capabilities;

    /// What of a policy this agent cannot be told, each in one sentence.
    fn cannot(&self, policy: &Policy) -> Vec<String>;

    /// The model that a tier (`strong`, `fast`) means, where that is stable enough to be built in.
    fn model_of_tier(&self, tier: &str) -> Option<&'static str>;

    /// Files below the user's home directory that show a login, and variables that hold a key.
    fn login(&self) -> (&'static [&'static str], &'static [&'static str]);

    /// A file below the user's home directory that the agent has got for itself, without which it would have to be told
    /// less.
    fn extras(&self) -> Option<&'static str> {
        None
    }

    /// What it must be able to write in the user's home directory, besides where it works.
    fn places(&self) -> Places;

    /// How a person logs in.
    fn login_remedy(&self) -> &'static str;

    /// What users of the version that was tried should know.
    fn traps(&self) -> &'static [&'static str];

    /// What users of an older version should know: the first version without the trap, and the trap.
    fn old_traps(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// How it is asked for its flags, and which of them this adapter needs.
    fn help(&self) -> Help;

    /// The npm package that has it; empty: it comes in another way.
    fn package(&self) -> &'static str;

    /// The version that the tests run.
    fn tried_version(&self) -> &'static str;
}

/// Where an agent keeps what is its own: below the home directory, or absolute. What each was seen to need for a
/// whole task with file and shell tools, in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders of its sessions and settings. Missing ones are made: the agent could not do so itself.
    pub folders: &'static [&'static str],
    /// Files that it rewrites in place, and devices. Missing ones are left missing.
    pub files: &'static [&'static str],
}

/// What an agent's own page of help is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Help {
    /// Arguments that make it print the page; none: it has no page.
    pub args: &'static [&'static str],
    /// Flags that the adapter uses and the page names.
    pub flags: &'static [&'static str],
}

/// Turns an agent's lines into events and, at the end, into what they say together.
pub trait Reader: Send {
    fn line(&mut self, line: &str) -> Vec<Event>;

    /// A line of its stderr, where some of them say that they wait.
    fn aside(&mut self, _line: &str) {}

    /// What it waits for, if that is the last thing it said: it does nothing until that is over.
    fn waits(&self) -> Option<Trouble> {
        None
    }

    /// What was said, given how the process ended.
    fn told(&self, exit: &Exit<'_>) -> Told;
}

/// The end of the process.
#[derive(Clone, Copy, Debug)]
pub struct Exit<'a> {
    /// Absent: it was ended by a signal.
    pub code: Option<i32>,
    /// The end of its stderr.
    pub stderr: &'a str,
}

/// How something is done, in the table of docs/agents.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    Yes(&'static str),
    No(&'static str),
}

/// What an agent can do, row by row.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The id of the conversation is chosen before the start.
    pub session_chosen: bool,
    pub resume: Means,
    pub read_only: Means,
    /// A read-only role can still write its report; otherwise it gives it in its last message.
    pub read_only_writes_out: bool,
    /// Takes the tools by which work is handed in.
    pub desk: Means,
    pub listed_commands: Means,
    pub network: Means,
    pub effort: Means,
    pub max_turns: Means,
    pub tokens: bool,
    pub cost: bool,
    /// It tells what it spends while it works, not only when its turn is over.
    pub spending: bool,
    /// It says in its stream that it waits for the provider.
    pub shows_waiting: bool,
    pub fallback_models: Means,
    /// Its own option for the form of the last message.
    pub structured_reply: Means,
    pub quiet: &'static str,
    pub own_data: &'static str,
}

/// Every adapter, in the order of the documentation.
pub static ADAPTERS: [&dyn Adapter; 6] = [&Claude, &Codex, &Gemini, &Opencode, &Qwen, &Pi];

pub fn adapter_named(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().copied().find(|adapter| adapter.name() == name)
}
