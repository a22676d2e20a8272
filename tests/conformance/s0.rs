//! The method `report-chain` against the rules of its source (S0-01 … S0-63).

mod briefs;
pub mod chain;
mod contracts;
mod files;
mod forms;
mod imports;
mod loops;
mod repairs;
mod roles;
mod summary;
mod words;
