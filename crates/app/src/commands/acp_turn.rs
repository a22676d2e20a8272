//! `gatewright acp-turn`: an agent that speaks the Agent Client Protocol, driven like a command.

use std::io::Read;

use gatewright_acp::{Permit, Turn, run_turn};

use crate::{
    cli::AcpTurnArgs,
    command_error::{CommandError, Kind, exit},
};

pub fn acp_turn(args: &AcpTurnArgs) -> Result<u8, CommandError> {
    let mut prompt = String::new();
    std::io::stdin().read_to_string(&mut prompt)?;
    let listed = (args.may_run_nothing || !args.may_run.is_empty()).then(|| args.may_run.clone());
    let program = gatewright_host::launch::own_program().to_string_lossy().into_owned();
    let tools = args
        .out
        .as_ref()
        .map(|out| vec![program, "mcp".to_owned(), "--out".to_owned(), out.to_string_lossy().into_owned()]);
    let turn = Turn {
        agent: args.agent.clone(),
        prompt,
        cwd: std::env::current_dir()?,
        resume: args.resume.clone(),
        permit: Permit { read_only: args.read_only, may_run: listed, no_network: args.no_network },
        mode: args.mode.clone(),
        model: args.model.clone(),
        tools: tools.unwrap_or_default(),
    };
    run_turn(&turn).map_err(|error| CommandError::from_error(Kind::Failed, &error))?;
    Ok(exit::DONE)
}
