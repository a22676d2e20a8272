//! Who supervises and who is supervised: the contents of `pid.json`. It is written before the agent is
//! started and again when its pid is known, never synced: no process survives a power cut.
//! It must not know what the processes do.

use serde::{Deserialize, Serialize};

use crate::process_table::ProcessIdentity;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidRecord {
    pub version: u32,
    /// Start times count from boot, so they mean nothing after the next one.
    pub boot_id: String,
    /// The session of the supervisor and of every agent process that made none of its own.
    pub session: i32,
    pub supervisor: ProcessIdentity,
    /// Also the id of the agent's process group. `None`: not started, or started a moment ago.
    pub agent: Option<ProcessIdentity>,
    pub started_at_ms: u64,
}

impl PidRecord {
    pub const VERSION: u32 = 1;
}
