//! How runs are shown to people: rows of steps, event lines, Markdown. Decides nothing, writes no state.

pub mod agent_line;
pub mod commands_for;
pub mod event_line;
pub mod markdown;
pub mod picture;
pub mod plain_lines;
pub mod rows;
#[cfg(test)]
pub mod sample;
pub mod text;

use gatewright_host::run_loop::Observer;

use crate::{
    live_tree::LiveTree,
    render::plain_lines::{PlainLines, Silent},
    terminal,
};

/// Who tells a person at this terminal what a run does. All of it goes to stderr.
pub fn observer(json_quiet: bool) -> Box<dyn Observer> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if json_quiet {
        Box::new(Silent)
    } else if terminal::stderr_is_terminal() && !dumb {
        Box::new(LiveTree::new(std::io::stderr()))
    } else {
        Box::new(PlainLines::new(std::io::stderr()))
    }
}
