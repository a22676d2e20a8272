//! Definition, profile and configuration to a frozen workflow.
//!
//! A profile is an override of the definition's tree; each profile of the run is resolved into a
//! graph of its own (`unit` for one workflow file, `step` for one step). References that lead
//! nowhere are reported with the nearest name; proofs over whole graphs are the business of `lint`.

mod answer;
mod build;
mod contract_source;
mod disabled;
mod elsewhere;
mod fan_out;
pub mod from_setting;
mod gate;
mod import_source;
mod merge;
mod names;
mod placeholder;
mod profile;
mod projection_source;
mod review;
mod role;
mod setting;
mod step;
mod sub_run;
mod unit;
mod unknown;

pub use build::{Built, Shared};
pub use merge::FINISH_ASK;
pub use profile::{Profiles, resolve};
pub use unknown::Unknown;
