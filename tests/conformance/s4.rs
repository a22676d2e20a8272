//! The method `staged-schedule` against the rules of its source (S4-01 … S4-37).

mod dispatch;
mod ends;
mod gates;
mod imports;
mod restarts;
mod reviews;
pub mod schedule;
mod settings;
mod words;
