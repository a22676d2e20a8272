//! Time that passes only when the simulated machine lets it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use gatewright_core::ids::Timestamp;
use gatewright_host::clock::Clock;

/// Two clocks, as on a real machine: one that people set and one that never goes back.
#[derive(Debug)]
pub struct SimulatedClock {
    wall_ms: AtomicU64,
    monotonic_ms: AtomicU64,
}

impl SimulatedClock {
    pub fn new() -> SimulatedClock {
        SimulatedClock { wall_ms: AtomicU64::new(1_000_000_000), monotonic_ms: AtomicU64::new(1) }
    }

    pub fn pass(&self, ms: u64) {
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
        self.monotonic_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Somebody sets the clock.
    pub fn jump(&self, by_ms: i64) {
        let wall = self.wall_ms.load(Ordering::Relaxed);
        self.wall_ms.store(wall.saturating_add_signed(by_ms), Ordering::Relaxed);
    }

    pub fn monotonic_ms(&self) -> u64 {
        self.monotonic_ms.load(Ordering::Relaxed)
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms())
    }
}
