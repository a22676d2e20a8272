//! The method `phase-review` against the rules of its source (S2-01 … S2-44).

mod commands;
mod ends;
pub mod feature;
mod imports;
mod loops;
mod phases;
