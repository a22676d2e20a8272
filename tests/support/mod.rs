//! A scratch project for tests with the real binary: a git repository, a home, a state directory,
//! agents that are shell scripts. Knows no rule; run directories are never written by hand here.

mod process;
mod scratch;
mod terminal;

pub use self::{
    process::{Ran, Running},
    scratch::{Scratch, text},
    terminal::Terminal,
};

use std::time::{Duration, Instant};

/// No single wait of a test is longer. Generous: a loaded machine is no failure.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// Polls until `probe` gives something; fails with `what` at the deadline.
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
