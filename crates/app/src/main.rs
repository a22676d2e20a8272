//! The program: reads the command line, calls one command, exits with its code.

mod at_the_end;
mod callers;
mod cli;
mod command_error;
mod commands;
mod definitions;
mod drive;
mod live_tree;
mod rehearsal;
mod render;
mod terminal;
mod worktree_warning;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    cli::{Cli, Command},
    command_error::{CommandError, exit},
};

fn main() -> ExitCode {
    // These are called often and want nothing of the command line parser.
    let mut arguments = std::env::args_os().skip(1);
    let (first, second) = (arguments.next(), arguments.next());
    if second.is_none() && first.as_ref().is_some_and(|word| word == "--version" || word == "-V") {
        return commands::version();
    }
    if first.as_ref().is_some_and(|word| word == gatewright_attempts::ADOPT) {
        gatewright_attempts::keep_to_itself();
        return ExitCode::from(gatewright_attempts::adopt(&std::env::args_os().skip(2).collect::<Vec<_>>()));
    }
    if first.is_some_and(|word| word == "supervise")
        && let Some(dir) = second
    {
        return match gatewright_attempts::supervise(std::path::Path::new(&dir)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(exit::INTERNAL),
        };
    }
    terminal::pipes_end_quietly();
    // Set by the script of `gatewright completions`: then this prints candidates and exits.
    clap_complete::CompleteEnv::with_factory(commands::completions::command)
        .var(commands::completions::VARIABLE)
        .complete();
    let cli = Cli::try_parse().unwrap_or_else(|error| commands::usage_error(&error));
    if !cli.command.is_an_agents() {
        // The user's environment is in here, and the user's secret may be.
        gatewright_attempts::keep_to_itself();
    }
    terminal::set_colors(cli.color);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli.command)));
    match outcome {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            error.print();
            ExitCode::from(error.code())
        }
        Err(_) => {
            eprintln!(
                "error: an assumption of the program did not hold; nothing that was acknowledged is lost"
            );
            eprintln!("\nhint: gatewright resume latest goes on from the journal");
            ExitCode::from(exit::INTERNAL)
        }
    }
}

fn run(command: Command) -> Result<u8, CommandError> {
    use commands as c;
    match command {
        Command::Demo(args) => c::demo::demo(&args),
        Command::Init(args) => c::init::init(&args),
        Command::Doctor(args) => c::doctor::doctor(&args),
        Command::Methods(args) => c::methods::methods(&args),
        Command::Lint(args) => c::lint::lint(&args),
        Command::Graph(args) => c::graph::graph(&args),
        Command::Run(args) => c::run::run(&args),
        Command::Status(args) => c::status::status(&args),
        Command::List(args) => c::status::list(&args),
        Command::Why(args) => c::why::why(&args),
        Command::Show(args) => c::show::show(&args),
        Command::Logs(args) => c::logs::logs(&args),
        Command::Events(args) => c::logs::events(&args),
        Command::Decisions(args) => c::answer::decisions(&args),
        Command::Answer(args) => c::answer::answer(&args),
        Command::Approve(args) => c::answer::approve(&args),
        Command::Reject(args) => c::answer::reject(&args),
        Command::Resume(args) => c::resume::resume(&args),
        Command::Stop(args) => c::orders::stop(&args),
        Command::Abort(args) => c::orders::abort(&args),
        Command::Import(args) => c::import::import(&args),
        Command::Phase(args) => c::phase::phase(&args),
        Command::Restart(args) => c::orders::restart(&args),
        Command::Skip(args) => c::orders::skip(&args),
        Command::Rehearse(args) => c::rehearse::rehearse(&args),
        Command::Clean(args) => c::clean::clean(&args),
        Command::Validate(args) => c::validate::validate(&args),
        Command::Progress(args) => c::progress::progress(&args),
        Command::Hook(args) => c::hook::hook(&args),
        Command::Completions(args) => c::completions::completions(&args),
        Command::Mcp(args) => c::mcp::mcp(&args),
        Command::AcpTurn(args) => c::acp_turn::acp_turn(&args),
        Command::Supervise { dir } => Ok(gatewright_attempts::supervise(&dir).map(|()| exit::DONE)?),
        Command::Engine { run } => c::run::engine(&run),
        Command::RehearsalAgent => c::rehearsal_agent::rehearsal_agent(),
    }
}
