//! Named points at which a test can stop the process or make an operation fail. Must not know who uses them.
//!
//! Only the cargo feature `fault-injection` gives the points a body; without it nothing of it is compiled.

#[cfg(feature = "fault-injection")]
mod armed;
#[cfg(feature = "fault-injection")]
pub use armed::{clock_jump_ms, plan, point, read, write_point, yaml_limits};

/// An agent's words as they are. With the feature a test can have them read carelessly.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn read(words: Vec<u8>) -> Vec<u8> {
    words
}

/// How much is read of a list. With the feature a test can have it read without a limit.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn yaml_limits() -> gatewright_workflow::yaml::Limits {
    gatewright_workflow::yaml::Limits::USUAL
}

/// A plan as it is. With the feature a test can have one whose lists may be of any length.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn plan(plan: gatewright_core::plan::Plan) -> gatewright_core::plan::Plan {
    plan
}

/// Passes. With the feature `fault-injection` it aborts or fails where `GATEWRIGHT_FAULT` says.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn point(_kind: &str) -> std::io::Result<()> {
    Ok(())
}
