//! Streams: work in worktrees of its own, committed by the engine, merged back as a step.

pub mod commit;
pub mod finish;
pub mod intrusion;
pub(crate) mod judged;
pub mod leftovers;
pub mod lock;
mod lost_locks;
pub mod merge;
pub(crate) mod nested;
pub mod place;
pub mod presence;
mod public_name;
pub mod secrets;
mod signature;
pub mod tidy;
pub mod tip;
pub mod worktree;
