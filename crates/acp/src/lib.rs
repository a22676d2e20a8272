//! One turn of an agent that speaks the Agent Client Protocol, as a program like any other: the prompt in,
//! JSON lines out, an exit code at the end.
//!
//! Permission requests are answered by the role's policy, never by waiting for somebody.

mod client;
mod permit;
mod transcript;

pub use client::{Turn, TurnError, run_turn};
pub use permit::Permit;
