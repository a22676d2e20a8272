//! To be written.

use crate::command_error::CommandError;
pub fn methods(_args: &crate::cli::MethodsArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
