//! Runs a plan on this machine: journal, inbox, run loop. Must not know commands, colours or HTTP.

pub mod artifact_data;
pub mod atomic_file;
mod claims;
pub mod clock;
pub mod collect;
pub mod disk;
pub mod document;
pub mod fault;
pub mod inbox;
pub mod inputs;
pub mod journal;
pub mod launch;
pub mod mask;
pub mod perform;
pub mod project;
pub mod prompt;
pub mod publish;
pub mod quota;
pub mod run_context;
pub mod run_loop;
pub mod run_meta;
pub mod scope;
pub mod store;
pub mod summary;
pub mod user_key;
pub mod voice;
pub mod work;
