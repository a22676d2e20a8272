//! To be written.

use crate::command_error::CommandError;
pub fn init(_args: &crate::cli::InitArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
