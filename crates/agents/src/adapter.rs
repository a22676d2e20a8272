//! The one trait that every agent is behind, and the list of those that are known.

use std::path::{Path, PathBuf};

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

    /// Whether what it says to have used is that of its whole conversation, turns before this one included.
    fn counts_conversations(&self) -> bool {
        false
    }

    fn capabilities(&self) -> Capabilities;

    /// What of a policy this agent cannot be told, each in one sentence.
    fn cannot(&self, policy: &Policy) -> Vec<String>;

    /// The model that a tier (`strong`, `fast`) means, where that is stable enough to be built in.
    fn model_of_tier(&self, tier: &str) -> Option<&'static str>;

    /// Files below the user's home directory that show a login, and variables that hold a key.
    fn login(&self) -> (&'static [&'static str], &'static [&'static str]);

    /// Files below the home directory or in the project, and variables, by which somebody may have chosen another way to a
    /// provider: where one is there, a missing login says nothing. `None`: it works without a login, or nothing is known.
    fn other_logins(&self) -> Option<(&'static [&'static str], &'static [&'static str])>;

    /// A file below the user's home directory that the agent has got for itself, without which it would have to be told
    /// less.
    fn extras(&self) -> Option<&'static str> {
        None
    }

    /// What it must be able to write in the user's home directory, besides where it works.
    fn places(&self) -> Places;

    /// Whether a role with this policy can write a file below its `out/`. Otherwise it gives its files in its last message.
    fn writes_files(&self, policy: &Policy) -> bool {
        (!policy.read_only || self.capabilities().read_only_writes_out) && !policy.has_lost("Write")
    }

    /// How it is asked to stop, so that it ends what it has started.
    fn stop(&self) -> Stop {
        Stop::Terminate
    }

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
    /// Variables by which a user may have put a folder elsewhere.
    pub moved: &'static [Moved],
}

/// A folder of an agent that a variable can put elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub variable: &'static str,
    /// One of the folders; empty: what the variable names is used beside them.
    pub folder: &'static str,
    /// Where that folder is below what the variable names.
    pub below: &'static str,
}

impl Places {
    /// Where its folders are for a user with these variables. `here`: where it works, from which it reads a relative name.
    pub fn folders_of(
        &self,
        home: &Path,
        here: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<PathBuf> {
        let beside = self.moved.iter().filter(|moved| moved.folder.is_empty());
        let beside = beside.filter_map(|moved| moved.place(home, here, variable));
        self.folders.iter().map(|folder| self.find(folder, home, here, variable)).chain(beside).collect()
    }

    /// Where one of its files or folders is, which has its place below the home directory unless a variable moved it.
    pub fn find(
        &self,
        path: &str,
        home: &Path,
        here: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> PathBuf {
        let moved = self.moved.iter().filter(|moved| !moved.folder.is_empty()).find_map(|moved| {
            let rest = Path::new(path).strip_prefix(moved.folder).ok()?;
            Some(moved.place(home, here, variable)?.components().chain(rest.components()).collect())
        });
        moved.unwrap_or_else(|| home.join(path))
    }
}

impl Moved {
    fn place(&self, home: &Path, here: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let value = variable(self.variable).filter(|value| !value.is_empty())?;
        let from = value.strip_prefix("~/").map_or_else(|| here.join(&value), |rest| home.join(rest));
        let place = if self.below.is_empty() { from } else { from.join(self.below) };
        // A folder that has the home directory in it is nobody's own.
        (!home.starts_with(&place)).then_some(place)
    }
}

/// The signal that an agent ends well on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Terminate,
    Interrupt,
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
    /// How it is asked to stop, and what then becomes of the command that its tool runs.
    pub stopping: &'static str,
    pub quiet: &'static str,
    pub own_data: &'static str,
}

/// Every adapter, in the order of the documentation.
pub static ADAPTERS: [&dyn Adapter; 6] = [&Claude, &Codex, &Gemini, &Opencode, &Qwen, &Pi];

pub fn adapter_named(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().copied().find(|adapter| adapter.name() == name)
}
