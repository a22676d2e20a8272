//! To be written.

use crate::command_error::CommandError;
pub fn demo(_args: &crate::cli::DemoArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
