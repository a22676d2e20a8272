//! To be written.

use crate::command_error::CommandError;
pub fn show(_args: &crate::cli::ShowArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
