//! Whole lives of runs: the real run loop, journal, inbox and publisher on a simulated machine, whose
//! disk loses and fails, whose clock jumps, whose processes outlive the engine, whose people answer
//! when they like. Everything follows from a seed; one thread lives one life.
//!
//! Plans, agents' fortune and what must always hold are those of the core's own simulation; they are
//! read where they stand, so that there is one of each.

pub mod campaign;
mod clock;
pub mod equivalence;
mod life;
mod lists;
mod machine;
mod people;
mod setting;
mod watcher;

#[path = "../../core/tests/common/mod.rs"]
mod common;
#[path = "../../core/tests/simulation/fortune.rs"]
mod fortune;
#[path = "../../core/tests/simulation/ledger.rs"]
mod ledger;
#[path = "../../core/tests/simulation/plans.rs"]
mod plans;
#[path = "../../core/tests/simulation/random.rs"]
mod random;
#[path = "../../core/tests/simulation/subject.rs"]
mod subject;

use common::invariants;
pub use life::{Lived, live};
