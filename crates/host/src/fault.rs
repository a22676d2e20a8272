//! Named points at which a test can stop the process or make an operation fail. Must not know who uses them.
//!
//! Only the cargo feature `fault-injection` gives the points a body; without it nothing of it is compiled.

#[cfg(feature = "fault-injection")]
mod armed;
#[cfg(feature = "fault-injection")]
pub use armed::{clock_jump_ms, point, write_point};

/// Passes. With the feature `fault-injection` it aborts or fails where `GATEWRIGHT_FAULT` says.
#[cfg(not(feature = "fault-injection"))]
#[inline]
pub fn point(_kind: &str) -> std::io::Result<()> {
    Ok(())
}
