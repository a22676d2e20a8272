//! `gatewright mcp`: the tools by which an agent reports, over stdin and stdout.

use std::path::PathBuf;

use crate::{
    cli::McpArgs,
    command_error::{CommandError, Kind, exit},
};

pub fn mcp(args: &McpArgs) -> Result<u8, CommandError> {
    let named = args.out.clone().or_else(|| std::env::var_os("GATEWRIGHT_OUT").map(PathBuf::from));
    let Some(out) = named.filter(|out| out.is_dir()) else {
        return Err(CommandError::usage(
            "there is no attempt to report for: this command is started by an agent",
        )
        .hint(
            "agents that gatewright starts are told to start it; GATEWRIGHT_OUT or --out names their folder",
        ));
    };
    gatewright_mcp::serve(out).map_err(|error| CommandError::from_error(Kind::Failed, &error))?;
    Ok(exit::DONE)
}
