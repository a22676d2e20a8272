//! To be written.

use crate::command_error::CommandError;
pub fn rehearsal_agent() -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
