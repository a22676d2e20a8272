//! What an attempt says of itself, after any method's vocabulary was mapped to ours.
//!
//! An outcome is a claim. Whether it counts is decided by `verdict` and `step` from recorded facts.

use serde::{Deserialize, Serialize};

use crate::{ids::StepId, verdict::Finding};

/// How an attempt says it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A producer finished its work.
    Done,
    /// A reviewer is content.
    Passed,
    /// A reviewer demands work, or a producer reports failure.
    Failed,
    /// It cannot go on for a reason that a new attempt would not remove.
    Blocked,
    /// It has questions for a person.
    NeedsInput,
    /// A required input was missing or an output could not be written: halt, never retry.
    Error,
}

/// One question of an agent to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub question: String,
    /// Closed answers, when the agent offers some; free text otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// A security question is never cancelled for want of an answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub security: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The reply of an attempt in our vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub outcome: Outcome,
    /// The status word as the agent wrote it (`PARTIAL`, `needs_revision`, …).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Files the agent says it wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Of these, files that it says it changed in this attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The reply's format lists every changed file: what is not listed was not to be changed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed_is_all: bool,
    /// Commits that it says it made or stands on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// Files the agent says the next one should read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_input: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// Machine-readable reason of `blocked` (`complexity`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// An earlier step to which the agent refers the work back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<StepId>,
    /// Two channels disagreed; the stricter holds. In words, for the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<String>,
}

impl Reply {
    pub fn new(outcome: Outcome) -> Self {
        Reply {
            outcome,
            word: String::new(),
            summary: String::new(),
            files: Vec::new(),
            changed: Vec::new(),
            changed_is_all: false,
            commits: Vec::new(),
            next_input: Vec::new(),
            notes: Vec::new(),
            findings: Vec::new(),
            questions: Vec::new(),
            reason: None,
            back_to: None,
            disagreements: Vec::new(),
        }
    }
}

/// Why no reply could be read. Never success (J-03).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum ReplyProblem {
    /// Nothing in the output looks like a reply.
    NoOutcome,
    /// Something does, but it breaks its own format; the list says where.
    Malformed { violations: Vec<String> },
}
