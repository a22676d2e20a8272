//! What a supervisor needs to start one agent: the contents of `launch.json`.
//! It must not know why the agent runs or how its command line was made.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sandbox::SandboxSpec;

/// The order to run one agent, complete in itself: the supervisor reads nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub version: u32,
    /// The program and its arguments. A bare name is looked up on the `PATH` of `env`; a relative path
    /// is relative to `cwd`.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment of the agent. Nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// A file that becomes the agent's stdin. Without one it is `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// Wall time from the start, by the monotonic clock.
    pub timeout_ms: Option<u64>,
    /// Time without a byte on either stream.
    pub idle_timeout_ms: Option<u64>,
    /// Added to `timeout_ms`, once, if there was output within this time before it.
    #[serde(default)]
    pub extension_ms: Option<u64>,
    /// What asks it to stop.
    #[serde(default, skip_serializing_if = "StopSignal::is_usual")]
    pub stop: StopSignal,
    /// Time between that and SIGKILL.
    pub grace_ms: u64,
    /// What is kept of each stream. What exceeds it is counted and dropped.
    pub output_max_bytes: u64,
    /// An agent that prints more than this on both streams together is stopped.
    #[serde(default)]
    pub output_stop_bytes: Option<u64>,
    /// An agent that has more processes than this at once is ended, with all of them.
    #[serde(default)]
    pub processes_max: Option<u32>,
    /// What `ps` shows as the supervisor's name (the first twelve bytes).
    pub label: String,
    /// What the agent may do. `None`: whatever the user may.
    #[serde(default)]
    pub sandbox: Option<SandboxSpec>,
    /// A folder of this attempt alone, made before the agent starts and removed when it has ended. The
    /// caller names it in `env` (`TMPDIR`) and in the sandbox.
    #[serde(default)]
    pub private_tmp: Option<PathBuf>,
}

/// The signal that an agent is asked to stop with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// SIGTERM.
    #[default]
    Terminate,
    /// SIGINT, for those that end their own processes on that only.
    Interrupt,
}

impl StopSignal {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_usual(&self) -> bool {
        *self == StopSignal::Terminate
    }
}

impl LaunchSpec {
    pub const VERSION: u32 = 1;
    pub const GRACE_MS: u64 = 5_000;
    pub const OUTPUT_MAX_BYTES: u64 = 64 * 1024 * 1024;
    pub const OUTPUT_STOP_BYTES: u64 = 1024 * 1024 * 1024;

    pub const PROCESSES_MAX: u32 = 2_000;

    /// A launch without timeouts, with the default limits; the caller sets the rest by field.
    pub fn new(argv: Vec<String>, cwd: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            version: Self::VERSION,
            label: argv.first().cloned().unwrap_or_default(),
            argv,
            cwd,
            env,
            stdin: None,
            timeout_ms: None,
            idle_timeout_ms: None,
            extension_ms: None,
            stop: StopSignal::Terminate,
            grace_ms: Self::GRACE_MS,
            output_max_bytes: Self::OUTPUT_MAX_BYTES,
            output_stop_bytes: Some(Self::OUTPUT_STOP_BYTES),
            processes_max: Some(Self::PROCESSES_MAX),
            sandbox: None,
            private_tmp: None,
        }
    }
}
