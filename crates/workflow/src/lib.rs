//! Text to a workflow that can be run, and back to text: definitions, contracts, replies, templates.
//!
//! Pure over bytes: no files, no processes, no clock.

pub mod frozen;
pub mod contract;
pub mod json;
pub mod reply;
pub mod report;
pub mod yaml;
pub mod expression_lint;
pub mod projection;
pub mod template;
pub mod test_counts;
pub mod diagnostic;
pub mod config;
pub mod definition;
pub mod lint;
pub mod load;
pub mod resolve;
pub mod role_file;
pub mod schema;
