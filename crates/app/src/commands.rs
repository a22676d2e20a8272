//! One file per command.

pub mod acp_turn;
pub mod answer;
pub mod clean;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod graph;
pub mod init;
pub mod lint;
pub mod logs;
pub mod mcp;
pub mod methods;
pub mod orders;
pub mod rehearsal_agent;
pub mod rehearse;
pub mod resume;
pub mod run;
pub mod show;
pub mod status;
pub mod why;
