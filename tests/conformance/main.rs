//! Every rule that can be shown from outside, shown with the real binary and real processes: one test a
//! rule, named after it. Knows commands, exit codes and `--json`, nothing of the crates.

#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

#[path = "../support/mod.rs"]
mod support;

mod j_rules;
mod ledger;
mod mechanisms;
mod patches;
mod plans;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod side_by_side;
