//! To be written.

use crate::command_error::CommandError;
pub fn rehearse(_args: &crate::cli::RehearseArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
