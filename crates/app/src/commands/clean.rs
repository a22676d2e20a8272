//! To be written.

use crate::command_error::CommandError;
pub fn clean(_args: &crate::cli::CleanArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
