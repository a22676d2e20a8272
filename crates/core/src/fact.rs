//! Facts that hosts bring back: how a process ended, what it wrote, what a check said.
//!
//! They are recorded in events as they came. What they mean is decided in `step` and `verdict`.

use serde::{Deserialize, Serialize};

use crate::{
    event::FailureClass,
    ids::{ArtifactName, ContentHash, DecisionId, StepId, Timestamp},
    outcome::{Outcome, Reply, ReplyProblem},
};

/// How the process of an attempt ended, as far as the machine can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum ProcessEnd {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    TimedOut,
    Idle,
    /// Ended on the engine's order.
    Stopped,
    /// The machine's fault: supervisor or computer went away.
    Interrupted,
    /// The program could not be started at all.
    StartFailed {
        message: String,
    },
    /// The engine did not start it: an input is not as it must be. Not an attempt.
    NotStarted {
        problem: InputProblem,
    },
}

/// Why a step could not be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum InputProblem {
    Missing {
        name: String,
        near: Vec<String>,
        available: Vec<String>,
    },
    /// Somebody changed a published artifact by hand.
    Changed {
        name: ArtifactName,
        expected: ContentHash,
        found: ContentHash,
    },
    /// What a decision before it was bound to is no longer what it was.
    Stale {
        decision: DecisionId,
        changed: Vec<ArtifactName>,
    },
    /// The prompt could not be made, the working directory is gone, …
    Unusable {
        message: String,
    },
}

/// One declared output of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactFact {
    /// As the definition declares it.
    pub declared: ArtifactName,
    /// Where it is published.
    pub name: ArtifactName,
    /// Absent = it was not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    #[serde(default)]
    pub bytes: u64,
    /// What its contract misses; empty = it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl ArtifactFact {
    pub fn holds(&self) -> bool {
        self.violations.is_empty() && (self.hash.is_some() || self.optional)
    }
}

/// A file of the working tree before and after. The contents are named by hash; absent = not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The name it had before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Something that tried to change what it may not. It changed nothing of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intrusion {
    pub kind: IntrusionKind,
    /// One sentence.
    pub what: String,
    /// Whose attempts were under way: the suspects, or the one that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<StepId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntrusionKind {
    /// A message in the inbox without the user's seal.
    UnsealedOrder,
    /// An agent's process called a command that is for people.
    AgentOrder,
    /// A file that the engine derives was changed by somebody else.
    Projection,
    /// A file of an attempt was changed by somebody else.
    AttemptFile,
    /// An attempt touched what it may not, and does not count.
    Trespass,
    /// Changed by somebody while an agent was at work: without a sandbox a file of the user or of another run, or one
    /// in another stream's worktree; anywhere a program that git may come to run. Nothing was undone.
    Watched,
    /// The file that the list of an open fan-out was read from says something else now. It is not looked at.
    List,
}

/// What was spent. `None` = the agent does not tell, which is not zero (J-43).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

/// What a check said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFact {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Failed while building rather than while testing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub build: bool,
    /// What its failure means, where the exit code says so; else `build` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Why it is not ok, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Head and tail of its output when it is small or it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// It failed this many times before it was ok, without any change in between.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flaky: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u64,
    /// Files of the tree that it changed, where it looks at an attempt. Those of a step of its own are in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_left_out: u64,
}

/// What became of an attempt's changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum CommitFact {
    Made {
        commit: String,
        branch: String,
        #[serde(default)]
        files: u32,
    },
    /// Nothing was changed.
    Nothing,
    /// A protected branch, a file that looks like a secret, a hook that says no, …
    Refused { message: String },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    pub run: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Of those that failed: what they need was not there (a file that does not load), so they did not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u64,
}

impl TestCounts {
    /// A test ran and failed.
    pub fn is_red(&self) -> bool {
        self.failed > self.broken
    }
}

/// What kept an agent from ending well, by its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Not logged in, or the key is refused.
    Auth,
    /// The provider's limit is reached.
    Rate,
    /// The provider fails.
    Server,
    /// The provider is not reached, or the answer broke off.
    Network,
    /// The conversation is too long for the model.
    Context,
    /// The request itself is refused: an unknown model, a malformed option.
    BadRequest,
    /// A limit that was set for the agent itself: money, turns.
    Budget,
    /// It wanted to do what it may not, and stopped.
    Denied,
    /// Somebody ended it.
    Interrupted,
    Unknown,
}

impl TroubleKind {
    /// The same request would fail the same way: not tried again.
    pub fn is_final(self) -> bool {
        match self {
            TroubleKind::Auth | TroubleKind::BadRequest | TroubleKind::Context => true,
            TroubleKind::Rate
            | TroubleKind::Server
            | TroubleKind::Network
            | TroubleKind::Budget
            | TroubleKind::Denied
            | TroubleKind::Interrupted
            | TroubleKind::Unknown => false,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            TroubleKind::Auth => "auth",
            TroubleKind::Rate => "rate",
            TroubleKind::Server => "server",
            TroubleKind::Network => "network",
            TroubleKind::Context => "context",
            TroubleKind::BadRequest => "bad_request",
            TroubleKind::Budget => "budget",
            TroubleKind::Denied => "denied",
            TroubleKind::Interrupted => "interrupted",
            TroubleKind::Unknown => "unknown",
        }
    }
}

/// An agent's own word that it did not end well, whatever its exit code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub kind: TroubleKind,
    pub message: String,
}

/// A conversation with an agent that a later attempt can go on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent that knows it, by its configured name.
    pub agent: String,
    /// Empty: the agent does not know it any more.
    pub session: String,
}

/// Everything that is known of an attempt after it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    pub ended: ProcessEnd,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_problem: Option<ReplyProblem>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactFact>,
    /// What was read, with the hashes that were there at launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(ArtifactName, ContentHash)>,
    /// Claims that reality contradicts: files that do not exist, paths that leave their folder, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// What was changed outside its write scope, in words that name role and files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trespasses: Vec<String>,
    /// Files that are not as they were before the attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Changes beyond the number that is kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_left_out: u64,
    /// Orders that its processes gave although only people may; none had an effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noticed: Vec<String>,
    /// What else was changed around it that nobody may change, by it or by somebody beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Intrusion>,
    /// Fingerprint of the work after the attempt: two equal ones mean that nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's quota was hit; it says when it is filled again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckFact>,
    /// Last lines of the output, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What is odd and changes nothing: files announced for a step that does not read them, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What the reply was to speak of and does not. It counts all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaid: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// The model that answered, if the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model that was asked for and not to be had; `model` is the one it fell back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// The provider has no place for this attempt's model: the one that the next attempt asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_model: Option<String>,
    /// Tools that the agent wanted and may not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Turns in the same conversation that mended a reply or a file, within this attempt.
    #[serde(default, skip_serializing_if = "is_none_of")]
    pub repairs: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none_of(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl AttemptReport {
    pub fn new(ended: ProcessEnd) -> Self {
        AttemptReport {
            ended,
            duration_ms: 0,
            reply: None,
            reply_problem: None,
            artifacts: Vec::new(),
            inputs: Vec::new(),
            contradictions: Vec::new(),
            trespasses: Vec::new(),
            changes: Vec::new(),
            changes_left_out: 0,
            noticed: Vec::new(),
            found: Vec::new(),
            work: None,
            usage: None,
            quota_until: None,
            check: None,
            tail: String::new(),
            remarks: Vec::new(),
            unsaid: Vec::new(),
            trouble: None,
            conversation: None,
            model: None,
            instead_of: None,
            next_model: None,
            denied: Vec::new(),
            repairs: 0,
        }
    }

    /// It has questions for a person. To need input and ask nothing is no question.
    pub fn asks_something(&self) -> bool {
        self.reply
            .as_ref()
            .is_some_and(|reply| reply.outcome == Outcome::NeedsInput && !reply.questions.is_empty())
    }
}

/// What becomes known of an attempt while it is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum News {
    Launched {
        fact: LaunchFact,
    },
    /// It told which conversation it has begun.
    Conversed {
        conversation: Conversation,
    },
    /// Everything that it has told, from the first on: what is known already is not new.
    Told {
        hints: Vec<Hint>,
    },
}

/// With what an attempt began to work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFact {
    /// The commit that was checked out where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The model that was asked for: by name, or by its tier where the agent has no name for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation, where it is known before the first word: one that goes on, or one whose id is chosen for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
}

/// What an agent says on its way. A hint, never state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// Its own word for how far it is.
    pub status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtask: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When, by the agent's clock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// What the list of a fan-out at work says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "now", rename_all = "snake_case")]
pub enum ListNow {
    /// What it said when the fan-out began.
    AsItBegan,
    /// Something else: the hash of the file, and what differs, in words.
    Changed { found: ContentHash, what: String },
    /// It is gone, or no list any more. Nobody could adopt that.
    Unusable,
}

/// One element of the list that a fan-out runs over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub key: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Fingerprint of the whole element: an equal one means that the work it asks for is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<ContentHash>,
}
