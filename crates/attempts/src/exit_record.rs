//! How an attempt ended: the contents of `exit.json`. An attempt is finished when this file exists.
//! It must not know whether the end was a success: that is for gates.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub version: u32,
    pub ended: Ended,
    pub started_at_ms: u64,
    pub ended_at_ms: u64,
    /// By the monotonic clock; for `Interrupted` the difference of the two times above.
    pub duration_ms: u64,
    /// Bytes in the file `stdout`.
    pub stdout_bytes: u64,
    /// Bytes in the file `stderr`.
    pub stderr_bytes: u64,
    /// Bytes of both streams that were not kept.
    pub dropped_bytes: u64,
    /// Names of processes that outlived the agent and had to be ended.
    pub left_behind: Vec<String>,
    /// It was asked to end, did not within `grace_ms`, and was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// It printed more than `output_stop_bytes` and was stopped for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flooded: bool,
    /// It had more processes at once than this, `processes_max`, and was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarmed: Option<u32>,
    /// Somebody else had written a record while the agent was at work; this one is the supervisor's, or of
    /// whoever settled the attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forged: bool,
    /// The supervisor was ended by a signal, as the engine that started it knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supervisor_killed: bool,
}

impl ExitRecord {
    pub const VERSION: u32 = 1;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// The agent ended by itself.
    Exited { code: i32 },
    /// A signal that was not the supervisor's ended the agent.
    Signalled { signal: i32 },
    /// It ran longer than `timeout_ms`.
    TimedOut,
    /// It wrote nothing for `idle_timeout_ms`.
    Idle,
    /// A stop was requested, before or after the agent's start.
    Stopped,
    /// The supervisor died; how the agent fared is not known.
    Interrupted,
    /// No agent was started.
    StartFailed { message: String },
}
