//! Time as an input: the one place in the host that reads a clock.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use gatewright_core::ids::Timestamp;

pub trait Clock: Send + Sync {
    /// What people call the time; it is written into records and may jump.
    fn now(&self) -> Timestamp;

    /// Time since some moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock, which may jump; nothing that must not be fooled by a jump uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        #[cfg(feature = "fault-injection")]
        let now = Timestamp(now.0.saturating_add_signed(crate::fault::clock_jump_ms()));
        now
    }

    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}
