//! One file per command.

pub mod acp_turn;
pub mod activity;
pub mod answer;
pub mod clean;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod graph;
pub mod hook;
pub mod import;
pub mod init;
pub mod lint;
pub mod logs;
pub mod mcp;
pub mod methods;
pub mod orders;
pub mod phase;
pub mod progress;
pub mod rehearsal_agent;
pub mod rehearse;
pub mod resume;
pub mod run;
pub mod show;
pub mod status;
pub mod validate;
pub mod why;

use std::{io::Write, process::ExitCode};

use crate::{command_error::exit, terminal};

/// `--version` on its own, as the parser of the command line would print it.
pub fn version() -> ExitCode {
    terminal::pipes_end_quietly();
    match writeln!(std::io::stdout(), concat!("gatewright ", env!("CARGO_PKG_VERSION"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::INTERNAL),
    }
}

/// Ends the program with what is wrong with the command line. `validate` and `progress` stand in for tools whose
/// exit codes for that are their own.
pub fn usage_error(error: &clap::Error) -> ! {
    let code = match std::env::args().nth(1).as_deref() {
        _ if !error.use_stderr() => 0,
        Some("validate") => validate::code::USAGE,
        Some("progress") => progress::code::ARGUMENTS,
        _ => error.exit(),
    };
    // What cannot be printed cannot be helped.
    let _ = error.print();
    std::process::exit(code.into())
}
