//! Ends what an agent left behind below its supervisor: lets it end, asks it to, kills it.
//! It must not know the agent, nor wait: the supervisor waits and calls again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process_table::{self, ProcessIdentity};

/// The `tee` of a wrapper script ends right after the agent. It is given the time to write its last bytes.
const LINGER: Duration = Duration::from_millis(250);
/// The agent had its own grace; what it left has at most this.
const GRACE_MAX: Duration = Duration::from_secs(1);
/// SIGKILL does not end a process that is stuck in the kernel or belongs to another user. A record with
/// the name of such a process is better than none.
const GIVE_UP: Duration = Duration::from_secs(10);
const SCAN_EVERY: Duration = Duration::from_millis(50);
const NAMES_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Sweep {
    ask_at: Instant,
    kill_at: Instant,
    give_up_at: Instant,
    scan_at: Instant,
    asked: BTreeSet<ProcessIdentity>,
    names: Vec<String>,
}

impl Sweep {
    pub(crate) fn new(now: Instant, grace: Duration) -> Self {
        let ask_at = now + LINGER;
        let kill_at = ask_at + grace.min(GRACE_MAX);
        Self {
            ask_at,
            kill_at,
            give_up_at: kill_at + GIVE_UP,
            scan_at: now,
            asked: BTreeSet::new(),
            names: Vec::new(),
        }
    }

    /// No more patience: kill from now on.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.ask_at = self.ask_at.min(now);
        self.kill_at = self.kill_at.min(now);
    }

    /// One look at what is left. Returns how long to wait before the next one; `None`: give up.
    pub(crate) fn pass(&mut self, now: Instant) -> Option<Duration> {
        if now >= self.give_up_at {
            return None;
        }
        if now < self.ask_at {
            return Some(self.ask_at - now);
        }
        if now >= self.scan_at {
            self.signal_all(now >= self.kill_at);
            self.scan_at = now + SCAN_EVERY;
        }
        Some(SCAN_EVERY)
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    fn signal_all(&mut self, kill: bool) {
        let own_pid = BTreeSet::from([std::process::id().cast_signed()]);
        for left in process_table::descendants(&own_pid, &process_table::all()) {
            if self.asked.insert(left.identity) {
                if self.names.len() < NAMES_MAX {
                    self.names.push(left.name.clone());
                }
                process_table::signal(left.identity, Signal::TERM);
                // One that is stopped would not hear the first signal.
                process_table::signal(left.identity, Signal::CONT);
            }
            if kill {
                process_table::signal(left.identity, Signal::KILL);
            }
        }
    }
}
