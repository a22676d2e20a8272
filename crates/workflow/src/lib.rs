//! Text to a workflow that can be run, and back to text: definitions, contracts, replies, templates.
//!
//! Pure over bytes: no files, no processes, no clock.

pub mod config;
pub mod contract;
pub mod definition;
pub mod diagnostic;
pub mod expression_lint;
pub mod frozen;
pub mod globs;
pub mod isolate;
pub mod json;
pub mod lint;
pub mod load;
pub mod projection;
pub mod reply;
pub mod report;
pub mod resolve;
pub mod role_file;
pub mod schema;
pub mod template;
pub mod tenure;
pub mod test_counts;
pub mod yaml;
