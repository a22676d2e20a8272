//! Runs a plan on this machine: journal, inbox, run loop. Must not know commands, colours or HTTP.

pub mod atomic_file;
pub mod disk;
pub mod fault;
pub mod inbox;
pub mod journal;
pub mod clock;
pub mod collect;
pub mod document;
pub mod inputs;
pub mod perform;
pub mod project;
pub mod prompt;
pub mod publish;
pub mod quota;
pub mod run_context;
pub mod run_loop;
pub mod run_meta;
pub mod summary;
pub mod work;
pub mod launch;
pub mod store;
