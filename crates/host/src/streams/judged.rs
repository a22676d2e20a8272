//! Git in a folder that agents have worked in. It may come to execute what they wrote: hooks in the tree,
//! filters, a `.git` that leads elsewhere. So it has the rights of the role that is judged, and no more.

use std::{collections::BTreeMap, path::Path};

use gatewright_attempts::{
    CheckCommand, CheckSpec, Git, GitError, Network, SandboxSpec, allowed_environment, create_group_tmp,
    grouped_tmp_path, run_check,
};
use gatewright_workflow::frozen::Sandbox;

use super::commit::Alone;
use crate::{perform::sandbox, run_context::RunContext};

/// A hook that runs longer than this is ended.
const HOOKS_MS: u64 = 10 * 60 * 1000;
/// What tells git who the user is; everything else of the environment is as for agents and checks.
const IDENTITY: [&str; 3] = ["GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_CONFIG_*"];

pub fn git(context: &RunContext, folder: &Path, judged: &Sandbox) -> Git {
    Git::at(folder).with_sandbox(limits(context, folder, judged, folder))
}

/// Git that only looks: whatever it comes to execute can write nothing and connect to nobody. Configured or not,
/// because to look is the engine's own wish.
pub fn reading(folder: &Path) -> Git {
    let nothing = SandboxSpec { network: Network::Off, ..SandboxSpec::default() };
    Git::at(folder).with_sandbox(Some(nothing))
}

/// Git in a repository of the user that takes something over from an agent's: it can write there, and nowhere else.
pub fn writing(folder: &Path) -> Result<Git, GitError> {
    let common = Git::at(folder).text(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let limits = SandboxSpec { write: vec![common.into()], network: Network::Off, ..SandboxSpec::default() };
    Ok(Git::at(folder).with_sandbox(Some(limits)))
}

/// Git with an index of its own in `scratch`, which is made for it and taken away. Besides that it can add
/// objects, and not read what is hidden in `state_root`.
pub fn with_index<T>(
    state_root: &Path,
    folder: &Path,
    scratch: &Path,
    work: impl FnOnce(&Git) -> Result<T, GitError>,
) -> Result<T, GitError> {
    let io = |source| GitError::Start { folder: folder.to_owned(), source };
    let common = Git::at(folder).text(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    std::fs::create_dir_all(scratch).map_err(io)?;
    let inside = state_root.starts_with(folder);
    let hidden = [state_root.join("projects"), state_root.join("key")];
    let limits = SandboxSpec {
        write: vec![scratch.to_owned(), Path::new(&common).join("objects")],
        hide: hidden.into_iter().filter(|_| !inside).collect(),
        read: vec![folder.to_owned()],
        network: Network::Off,
        ..SandboxSpec::default()
    };
    let index = scratch.join("index").to_string_lossy().into_owned();
    let git = Git::at(folder).with_sandbox(Some(limits)).with_variable("GIT_INDEX_FILE", &index);
    let done = work(&git);
    let _ = std::fs::remove_dir_all(scratch);
    done
}

fn limits(context: &RunContext, folder: &Path, judged: &Sandbox, tmp: &Path) -> Option<SandboxSpec> {
    let place = sandbox::Place {
        workdir: folder,
        attempt: None,
        evidence: None,
        private_tmp: tmp,
        agents: Vec::new(),
    };
    sandbox::spec(context, judged, &place)
}

/// Git leads to this repository from there, and nowhere else.
pub fn is_linked(context: &RunContext, folder: &Path) -> bool {
    sandbox::is_linked(&context.meta.root, folder)
}

/// `git commit` with the hooks of the repository, in the name of the user, without a signature: the key is no
/// business of a hook.
pub fn commit(
    context: &RunContext,
    folder: &Path,
    judged: &Sandbox,
    alone: &Alone,
    arguments: &[&str],
) -> Result<(), String> {
    let unsigned = || Git::at(folder).with_hooks().with_setting("commit.gpgSign=false");
    let first = run(context, folder, judged, alone, &unsigned(), arguments);
    let Err(said) = &first else { return first };
    if !Git::is_about_lfs(said) {
        return first;
    }
    // Nothing was committed: git looks at the files first.
    run(context, folder, judged, alone, &unsigned().without_lfs(), arguments).or(first)
}

fn run(
    context: &RunContext,
    folder: &Path,
    judged: &Sandbox,
    alone: &Alone,
    git: &Git,
    arguments: &[&str],
) -> Result<(), String> {
    let mut argv = vec!["git".to_owned()];
    argv.extend(git.arguments(arguments));
    let checks = context.paths.checks();
    // What they have in common with checks is where word is left for the engine.
    let (shared, tmp) = match create_group_tmp(&checks) {
        Ok(shared) => (shared, grouped_tmp_path(&checks, alone.mark())),
        Err(error) => return Err(error.to_string()),
    };
    let mut env: BTreeMap<String, String> =
        allowed_environment(&IDENTITY.map(str::to_owned), context.environment.iter().cloned());
    env.insert(Alone::VARIABLE.to_owned(), alone.mark().to_string_lossy().into_owned());
    env.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
    env.insert("GIT_EDITOR".to_owned(), "true".to_owned());
    env.insert("GIT_NO_REPLACE_OBJECTS".to_owned(), "1".to_owned());
    env.insert("TMPDIR".to_owned(), tmp.to_string_lossy().into_owned());
    let mut spec = CheckSpec::new(CheckCommand::Argv(argv), folder.to_owned(), env);
    spec.sandbox = limits(context, folder, judged, &shared);
    spec.adopter = (!sandbox::confines(judged)).then(|| context.adopter());
    spec.private_tmp = Some(tmp);
    spec.timeout_ms = Some(HOOKS_MS);
    spec.carrier = Some(format!("{}={}", Alone::VARIABLE, alone.mark().display()));
    let result = run_check(&spec);
    if result.succeeded() {
        return Ok(());
    }
    if let Some(error) = result.spawn_error {
        return Err(error);
    }
    if let Some(most) = result.swarmed {
        return Err(format!(
            "`git commit` had more than {most} processes at once (a hook?) and was ended with all of them"
        ));
    }
    if result.timed_out {
        return Err("`git commit` ran longer than 10 minutes (a hook?)".to_owned());
    }
    let skip = result.output.chars().count().saturating_sub(1500);
    let said: String = result.output.chars().skip(skip).collect();
    Err(format!("`git commit` was refused: {}", said.trim()))
}
