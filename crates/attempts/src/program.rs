//! Turns a command line into a `Command` that starts it with a complete environment.
//! It must not know who waits for the process, or how it ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::descriptors;
use crate::sandbox::{self, SandboxError, SandboxSpec};

/// A program that cannot be started, in words for the user: the program is always named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("cannot start a program: the command line is empty")]
    Empty,
    #[error("cannot start `{program}`: it is not on PATH ({search_path})")]
    NotOnPath { program: String, search_path: String },
    #[error("cannot start `{program}`: the working directory {cwd} is not a directory")]
    NoDirectory { program: String, cwd: PathBuf },
    #[error("cannot start `{program}`: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("cannot start `{program}`: {source}")]
    Sandbox { program: String, source: SandboxError },
}

const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The command with its environment, directory and an own process group; stdio is for the caller.
/// The program is looked up here and not by std: an absolute path lets std use posix_spawn, which is
/// several times faster than fork in a large engine.
pub(crate) fn command(
    argv: &[String],
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> Result<Command, ProgramError> {
    descriptors::keep_inherited_from_children();
    let (program, arguments) = argv.split_first().ok_or(ProgramError::Empty)?;
    if program.is_empty() {
        return Err(ProgramError::Empty);
    }
    let mut command = Command::new(locate(program, cwd, env)?);
    command.arg0(program).args(arguments).current_dir(cwd).env_clear().envs(env).process_group(0);
    Ok(command)
}

/// The same for a line whose program is a path already.
pub(crate) fn below(line: &[OsString], cwd: &Path, env: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(line.first().map(OsString::as_os_str).unwrap_or_default());
    command.args(line.iter().skip(1)).current_dir(cwd).env_clear().envs(env).process_group(0);
    command
}

/// Starts it, in its sandbox if there is one. A sandbox that cannot be set up starts nothing. The command is
/// gone afterwards: it holds the writing ends of pipes, and with them open no output would ever end.
pub(crate) fn spawn(
    mut command: Command,
    program: &str,
    cwd: &Path,
    sandbox: Option<&SandboxSpec>,
) -> Result<Child, ProgramError> {
    let Some(spec) = sandbox else { return spawn_here(&mut command, program, cwd) };
    let (name, folder) = (program.to_owned(), cwd.to_owned());
    sandbox::run_limited(spec, move || spawn_here(&mut command, &name, &folder))
        .unwrap_or_else(|source| Err(ProgramError::Sandbox { program: program.to_owned(), source }))
}

fn spawn_here(command: &mut Command, program: &str, cwd: &Path) -> Result<Child, ProgramError> {
    // Another thread that forks while a script is written keeps it open for writing until it execs.
    const BUSY_TRIES: u32 = 20;
    let mut tries = 0;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) if !cwd.is_dir() => {
                return Err(ProgramError::NoDirectory { program: program.to_owned(), cwd: cwd.to_owned() });
            }
            Err(source) => return Err(ProgramError::Spawn { program: program.to_owned(), source }),
        }
    }
}

fn locate(program: &str, cwd: &Path, env: &BTreeMap<String, String>) -> Result<PathBuf, ProgramError> {
    if program.contains('/') {
        return Ok(cwd.join(program));
    }
    let search_path = env.get("PATH").map_or(SEARCH_PATH, String::as_str);
    search_path
        .split(':')
        .map(|folder| cwd.join(folder).join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| ProgramError::NotOnPath {
            program: program.to_owned(),
            search_path: search_path.to_owned(),
        })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(path: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("PATH".to_owned(), path.to_owned())])
    }

    #[test]
    fn a_bare_name_is_looked_up_on_the_given_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "").unwrap();
        let path = format!("/nonexistent:{}:/bin", folder.path().display());
        let missing = locate("tool", Path::new("/"), &env(&path)).unwrap_err();
        assert!(missing.to_string().contains("`tool`") && missing.to_string().contains("/nonexistent"));
        std::fs::set_permissions(folder.path().join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(locate("tool", Path::new("/"), &env(&path)).unwrap(), folder.path().join("tool"));
    }

    #[test]
    fn a_relative_path_is_relative_to_the_working_directory() {
        assert_eq!(locate("./x", Path::new("/w"), &env("/bin")).unwrap(), Path::new("/w/./x"));
        assert_eq!(locate("/x", Path::new("/w"), &env("/bin")).unwrap(), Path::new("/x"));
    }

    #[test]
    fn an_empty_command_line_is_refused() {
        assert!(matches!(command(&[], Path::new("/"), &env("/bin")), Err(ProgramError::Empty)));
        assert!(matches!(command(&[String::new()], Path::new("/"), &env("/bin")), Err(ProgramError::Empty)));
    }
}
