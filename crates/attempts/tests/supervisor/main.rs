//! Agents under a real supervisor process, from start to exit record.
//! Every wait is for a condition and has a deadline; every process ends with its test.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests, too, may end a test")]

mod ends;
mod fixture;
mod interruptions;
mod limits;
