//! The tools by which an agent reports: `submit_report`, `submit_review`, `update_progress`, `ask_human`.
//!
//! One server per attempt, started by the agent itself and so inside its sandbox. What it writes below
//! `GATEWRIGHT_OUT` is a claim like any other file; no tool answers a decision or moves a gate.

mod desk;
mod promised;
mod server;

pub use desk::{Answer, Desk, Progress, Question, Report, Review, ReviewFinding};
pub use promised::{Promised, PromisedOutput};
pub use server::{ServeError, serve};
