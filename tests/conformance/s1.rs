//! The method `gated-session` against the rules of its source (S1-01 … S1-76).

mod approval;
mod asking;
mod continuing;
mod dispatch;
mod ending;
mod forms;
mod imports;
mod intake;
pub mod session;
mod strategy;
mod tasks;
