//! What is wanted from a host. Effects are level-triggered: the same wish has the same value before
//! and after a crash, and a host starts only what is not under way already.

use serde::{Deserialize, Serialize};

use crate::ids::{CheckId, DecisionId, GateId, StepId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Start this attempt, or attach to it if it lives, or collect it if it ended.
    Run { step: StepId, attempt: u32 },
    /// Run a check over what this attempt left.
    Check { step: StepId, attempt: u32, check: CheckId },
    /// Commit what this attempt changed, unless that has been done already.
    Commit { step: StepId, attempt: u32 },
    /// Evaluate an expression gate over recorded facts.
    Evaluate { step: StepId, gate: GateId },
    /// Read the list of a fan-out.
    ReadList { step: StepId },
    /// Hash what a decision shows beyond artifacts.
    Bind { decision: DecisionId },
    /// Put a decision before a person.
    Ask { decision: DecisionId },
    /// End an attempt that is no longer wanted.
    Stop { step: StepId, attempt: u32 },
}

/// What should be under way now, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub effects: Vec<Effect>,
    pub wake_at: Option<Timestamp>,
}
