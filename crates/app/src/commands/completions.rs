//! `gatewright completions`: the script that asks this program for candidates, and the candidates.

use std::{ffi::OsString, path::Path};

use clap::{CommandFactory, builder::StyledStr};
use clap_complete::{
    ArgValueCandidates, CompletionCandidate,
    env::{Bash, EnvCompleter, Fish, Zsh},
};
use gatewright_host::store::RunStore;

use crate::{
    cli::{Cli, CompletionsArgs, Shell},
    command_error::{CommandError, exit},
    definitions::{Session, built_in, of_project},
    render::text::{fit, one_line, put},
};

/// Set by the script when it asks for candidates.
pub const VARIABLE: &str = "GATEWRIGHT_COMPLETE";

pub fn completions(args: &CompletionsArgs) -> Result<u8, CommandError> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let typed = std::env::args_os().next().unwrap_or_else(|| OsString::from("gatewright"));
    // A bare name is looked up again when completing; a path has to hold in every directory.
    let program = if Path::new(&typed).components().count() > 1 {
        std::env::current_exe()?.into_os_string()
    } else {
        typed
    };
    let mut script = Vec::new();
    shell.write_registration(
        VARIABLE,
        "gatewright",
        "gatewright",
        &program.to_string_lossy(),
        &mut script,
    )?;
    put(&script)?;
    Ok(exit::DONE)
}

/// The command line with candidates for runs, workflows, decisions and steps.
pub fn command() -> clap::Command {
    Cli::command().mut_subcommands(|subcommand| {
        subcommand.mut_args(|argument| match argument.get_id().as_str() {
            "run" | "runs" => argument.add(ArgValueCandidates::new(runs)),
            "workflow" | "files" | "method" => argument.add(ArgValueCandidates::new(workflows)),
            "decision" => argument.add(ArgValueCandidates::new(decisions)),
            "step" => argument.add(ArgValueCandidates::new(steps)),
            "what"
                if argument
                    .get_value_names()
                    .is_some_and(|names| names.iter().any(|name| *name == "WORKFLOW|RUN")) =>
            {
                argument.add(ArgValueCandidates::new(|| {
                    workflows().into_iter().chain(runs()).collect::<Vec<_>>()
                }))
            }
            _ => argument,
        })
    })
}

/// Nothing is said while completing: without a session there are no candidates.
fn store() -> Option<RunStore> {
    Session::open().ok().map(|session| session.store())
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(StyledStr::from(fit(&one_line(help), 60))))
}

fn runs() -> Vec<CompletionCandidate> {
    let listed = store().and_then(|store| store.list().ok()).unwrap_or_default();
    let mut found: Vec<CompletionCandidate> = listed
        .iter()
        .rev()
        .map(|run| candidate(&run.meta.id, &format!("{}: {}", run.state, run.meta.request)))
        .collect();
    if !found.is_empty() {
        found.push(candidate("latest", "the run that was started last"));
    }
    found
}

fn workflows() -> Vec<CompletionCandidate> {
    let own = Session::open().map(|session| of_project(&session.project.root)).unwrap_or_default();
    let mut found: Vec<CompletionCandidate> =
        own.iter().map(|name| candidate(name, "of this project")).collect();
    found.extend(built_in().keys().map(|name| candidate(name, "built in")));
    found
}

fn decisions() -> Vec<CompletionCandidate> {
    let Some(snapshot) = run_on_the_line().and_then(|run| snapshot(&run)) else { return Vec::new() };
    let open =
        snapshot.state.queues.pending_decisions.iter().filter_map(|id| snapshot.state.decisions.get(id));
    open.map(|pending| candidate(pending.decision.id.as_str(), &pending.decision.question)).collect()
}

fn steps() -> Vec<CompletionCandidate> {
    let Some(snapshot) = run_on_the_line().and_then(|run| snapshot(&run)) else { return Vec::new() };
    snapshot
        .state
        .steps
        .iter()
        .map(|(id, own)| {
            candidate(id.as_str(), gatewright_host::document::step_word(&snapshot.state, id, own))
        })
        .collect()
}

fn snapshot(run: &str) -> Option<gatewright_host::store::Snapshot> {
    let store = store()?;
    let id = store.find(run).ok()?;
    store.snapshot(&id, None).ok()
}

/// The first word after the subcommand on the line that is being completed: RUN, wherever there is one.
fn run_on_the_line() -> Option<String> {
    let words: Vec<String> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(2)
        .filter_map(|word| word.into_string().ok())
        .collect();
    words.into_iter().filter(|word| !word.starts_with('-')).nth(1)
}
