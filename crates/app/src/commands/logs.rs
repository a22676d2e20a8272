//! To be written.

use crate::command_error::CommandError;
pub fn logs(_args: &crate::cli::LogsArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
pub fn events(_args: &crate::cli::EventsArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
