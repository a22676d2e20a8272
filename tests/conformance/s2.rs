//! The method `phase-review` against the rules of its source (S2-01 … S2-44).

mod ends;
pub mod feature;
mod loops;
mod phases;
