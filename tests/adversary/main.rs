//! One hostile agent, many attacks, each with the sandbox and without it. None may pass a gate, none may lose
//! another run's data. Without the sandbox the same script is the control: there its damage is seen to be real.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "shared with other suites, which use other parts")]
mod support;

mod evidence;
mod executed;
mod files;
mod processes;
mod stage;
mod words;
