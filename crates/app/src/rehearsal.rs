//! Rehearsals: the same engine with scripted agents, checks and people.
//!
//! `scenario` reads the script, `agent` plays one attempt of a role, `performance` runs a whole
//! scenario in a scratch repository, `outcome` compares, `coverage` says which ways through the plan were taken, `explore`
//! tries the pure core without any process.

pub mod agent;
pub mod behaviour;
pub mod content;
pub mod coverage;
pub mod explore;
pub mod keys;
pub mod launches;
pub mod order;
pub mod outcome;
pub mod performance;
pub mod reply_text;
pub mod scenario;
pub mod schema_value;
pub mod scratch;
pub mod stage;
