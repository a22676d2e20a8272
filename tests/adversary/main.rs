//! One hostile agent, many attacks, each with the sandbox and without it. None may pass a gate, none may lose
//! another run's data. Without the sandbox the same script is the control: there its damage is seen to be real, and it
//! is detected instead of prevented: named in the events of the run (or by the run that stops) and by `doctor`. What
//! leaves no trace that anybody could find is said to be so where it is tried (`unseen`), and in docs/security.md.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "shared with other suites, which use other parts")]
mod support;

mod attacks;
mod commits;
mod evidence;
mod executed;
mod files;
mod filters;
mod nowhere;
mod processes;
mod proof;
mod stage;
mod words;
