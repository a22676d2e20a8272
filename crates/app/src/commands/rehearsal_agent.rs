//! `gatewright rehearsal-agent`: the program behind the agent `rehearsal`. The engine starts it.

use crate::{
    command_error::{CommandError, Kind},
    rehearsal::agent,
};

pub fn rehearsal_agent() -> Result<u8, CommandError> {
    agent::play().map_err(|error| match error {
        agent::AgentError::NotAnAttempt { .. } => CommandError::from_error(Kind::Usage, &error)
            .hint("play all roles of a run with it: gatewright run WORKFLOW \"…\" --agent rehearsal"),
        other => CommandError::from_error(Kind::Failed, &other),
    })
}
