//! To be written.

use crate::command_error::CommandError;
pub fn doctor(_args: &crate::cli::DoctorArgs) -> Result<u8, CommandError> { Err(CommandError::usage("not there yet")) }
