//! The engine: facts in, facts out.
//!
//! `decide` turns an input into events, `apply` is the only writer of state, `wanted` says what
//! should be under way now. No IO, no clock, no randomness, no hash order, no threads: a host
//! brings those (see ARCHITECTURE.md).

mod apply;
mod budget;
pub mod changed_files;
mod decide;
mod decision;
pub mod effect;
pub mod event;
pub mod explain;
pub mod fact;
mod fan_out;
mod gate;
pub mod ids;
pub mod input;
pub mod outcome;
pub mod plan;
mod replay;
mod restart;
mod review_loop;
mod schedule;
pub mod state;
mod step;
mod tagged;
pub mod transition;
pub mod verdict;
mod wanted;

pub use budget::{Left, left as budget_left, share as budget_share, wall_ms};
pub use decide::{Rejected, advance, decide, settle};
pub use decision::understand;
pub use fan_out::validate as validate_items;
pub use replay::{ReplayError, replay};
pub use wanted::wanted;
