//! To be written.

use crate::command_error::CommandError;
pub fn graph(_args: &crate::cli::GraphArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
