//! The engine's own git: the `git` program, with everything off that would run somebody's code (hooks,
//! file system monitor, pager, background maintenance). It must not know runs, streams or branches' meaning.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    defence::Defence,
    git_lock,
    git_wait::{Stuck, wait_for_git},
    program::{self, ProgramError},
    sandbox::SandboxSpec,
};

/// Programs that git would run whenever it looks.
const MONITOR_OFF: &str = "core.fsmonitor=false";
const HOOKS_OFF: &str = "core.hooksPath=/dev/null";

/// Switched off for every call of the engine; a commit in the user's name asks for hooks by itself.
const QUIET: [&str; 7] = [
    "core.untrackedCache=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "submodule.recurse=false",
];

/// What is said when the program of LFS is not there, or fails: by git, or by the shell that looked for it.
const LFS_FAILED: [&str; 2] = ["filter 'lfs' failed", "filter-process"];
/// Files of LFS as they are stored: without its program there is no other way to have them.
const LFS_OFF: [&str; 4] =
    ["filter.lfs.clean=cat", "filter.lfs.smudge=cat", "filter.lfs.process=", "filter.lfs.required=false"];

/// Where git looks for a repository, should this program itself have been started by a hook.
pub const GIT_PLACES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git could not be started in {}: {source}", folder.display())]
    Start { folder: PathBuf, source: io::Error },
    #[error("git could not be started in {}: {message}", folder.display())]
    Limits { folder: PathBuf, message: String },
    #[error("`git {command}` failed: {message}")]
    Failed { command: String, message: String },
    #[error("`git {command}` failed: {remedy}")]
    Locked { command: String, remedy: String },
    #[error("`git {command}` failed: {source}")]
    Stuck { command: String, source: Stuck },
}

/// Git in one folder.
#[derive(Debug)]
pub struct Git {
    folder: PathBuf,
    hooks: bool,
    settings: Vec<String>,
    variables: Vec<(String, String)>,
    /// Held by every git that is started, beyond our own end: whoever takes this lock knows that none of
    /// an engine that was killed is still at work.
    lock: Option<File>,
    sandbox: Option<SandboxSpec>,
}

impl Git {
    pub fn at(folder: impl Into<PathBuf>) -> Git {
        Git {
            folder: folder.into(),
            hooks: false,
            settings: Vec::new(),
            variables: Vec::new(),
            lock: None,
            sandbox: None,
        }
    }

    /// The hooks of the repository run: a commit in the user's name.
    #[must_use]
    pub fn with_hooks(mut self) -> Git {
        self.hooks = true;
        self
    }

    /// One more setting, `key=value`, for these calls only.
    #[must_use]
    pub fn with_setting(mut self, setting: impl Into<String>) -> Git {
        self.settings.push(setting.into());
        self
    }

    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Git {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where others have worked git may come to execute what they wrote (a filter, a `.git` that leads
    /// elsewhere): then it has the limits that they had.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Option<SandboxSpec>) -> Git {
        self.sandbox = sandbox;
        self
    }

    /// Every git started from here holds this lock until it has ended itself.
    #[must_use]
    pub fn with_lock(mut self, lock: File) -> Git {
        self.lock = Some(lock);
        self
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Program and arguments, for whoever starts it in another way.
    pub fn arguments<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Vec<String> {
        let mut all = vec!["--no-pager".to_owned()];
        let quiet = !Defence::QuietGit.is_off();
        let monitor = quiet.then_some(MONITOR_OFF);
        let hooks = (quiet && !self.hooks).then_some(HOOKS_OFF);
        let own = QUIET.into_iter().chain(monitor).chain(hooks).map(str::to_owned);
        let settings = own.chain(self.settings.clone());
        all.extend(settings.flat_map(|setting| ["-c".to_owned(), setting]));
        all.extend(arguments.iter().map(|one| one.as_ref().to_string_lossy().into_owned()));
        all
    }

    /// The same without the filters of LFS.
    #[must_use]
    pub fn without_lfs(mut self) -> Git {
        self.settings.extend(LFS_OFF.map(str::to_owned));
        self
    }

    /// Whether the filters of LFS are what something failed by.
    pub fn is_about_lfs(said: &str) -> bool {
        LFS_FAILED.iter().any(|part| said.contains(part))
    }

    fn output<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Output, GitError> {
        let first = self.output_with(arguments, &[])?;
        if first.status.success() || !Git::is_about_lfs(&String::from_utf8_lossy(&first.stderr)) {
            return Ok(first);
        }
        let second = self.output_with(arguments, &LFS_OFF)?;
        // What was wrong first is what a person has to know.
        Ok(if second.status.success() { second } else { first })
    }

    fn output_with<S: AsRef<OsStr>>(&self, arguments: &[S], more: &[&str]) -> Result<Output, GitError> {
        let start = |source| GitError::Start { folder: self.folder.clone(), source };
        let mut command = Command::new("git");
        command.args(more.iter().flat_map(|setting| ["-c", *setting]));
        command.args(self.arguments(arguments)).current_dir(&self.folder);
        for name in GIT_PLACES {
            command.env_remove(name);
        }
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.env("GIT_EDITOR", "true").env("GIT_MERGE_AUTOEDIT", "no");
        // No object is taken for another: who may be in the repository can say which.
        command.env("GIT_NO_REPLACE_OBJECTS", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(match &self.lock {
            Some(lock) => Stdio::from(lock.try_clone().map_err(start)?),
            None => Stdio::null(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = match &self.sandbox {
            None => command.spawn().map_err(start)?,
            Some(limits) => program::spawn(command, "git", &self.folder, Some(limits)).map_err(|error| {
                let message = match &error {
                    ProgramError::Sandbox { source, .. } => format!("{error}: {source}"),
                    _ => error.to_string(),
                };
                GitError::Limits { folder: self.folder.clone(), message }
            })?,
        };
        let stuck = |source| GitError::Stuck { command: joined(arguments), source };
        wait_for_git(child).map_err(start)?.map_err(stuck)
    }

    /// What it prints, as it is.
    pub fn bytes<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Vec<u8>, GitError> {
        let output = self.output(arguments)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        let (command, message) = (joined(arguments), String::from_utf8_lossy(said).trim().to_owned());
        Err(match git_lock::named_in(&message) {
            Some(lock) => GitError::Locked { command, remedy: git_lock::remedy(&lock, &self.folder) },
            None => GitError::Failed { command, message },
        })
    }

    /// What it prints, without the last line end.
    pub fn text<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String, GitError> {
        let bytes = self.bytes(arguments)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Names that it prints with `-z`.
    pub fn names<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Vec<String>, GitError> {
        let bytes = self.bytes(arguments)?;
        let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Did it end with 0?
    pub fn holds<S: AsRef<OsStr>>(&self, arguments: &[S]) -> bool {
        self.output(arguments).is_ok_and(|output| output.status.success())
    }
}

fn joined<S: AsRef<OsStr>>(arguments: &[S]) -> String {
    let words: Vec<String> =
        arguments.iter().map(|one| one.as_ref().to_string_lossy().into_owned()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(folder.path());
        git.text(&["init", "-q", "-b", "trunk"]).unwrap();
        folder
    }

    #[test]
    fn a_hook_runs_only_where_it_is_asked_for() {
        let folder = repository();
        let hook = folder.path().join(".git/hooks/pre-commit");
        std::fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let who = ["user.name=T", "user.email=t@example.org"];
        let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
        let named = |git: Git| who.iter().fold(git, |git, setting| git.with_setting(*setting));
        named(Git::at(folder.path())).text(&commit).unwrap();
        assert!(!folder.path().join("ran").exists());
        named(Git::at(folder.path()).with_hooks()).text(&commit).unwrap();
        assert!(folder.path().join("ran").exists());
    }

    #[test]
    fn a_failure_names_the_command_and_what_git_said() {
        let folder = repository();
        let error = Git::at(folder.path()).text(&["rev-parse", "--verify", "nowhere"]).unwrap_err();
        assert!(error.to_string().starts_with("`git rev-parse --verify nowhere` failed: fatal"), "{error}");
    }

    #[test]
    fn a_lock_file_that_is_in_the_way_is_named_with_the_remedy() {
        let folder = repository();
        let lock = folder.path().join(".git/packed-refs.lock");
        std::fs::write(&lock, "").unwrap();
        let error = Git::at(folder.path()).text(&["pack-refs", "--all"]).unwrap_err();
        assert!(matches!(error, GitError::Locked { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("rm {}", lock.display())) && said.contains("resume"), "{said}");
        assert!(lock.exists(), "it is not ours to take away");
    }

    #[test]
    fn the_lock_is_held_until_git_itself_has_ended() {
        let folder = repository();
        let path = folder.path().join("lock");
        let lock = File::create(&path).unwrap();
        lock.lock().unwrap();
        let git = Git::at(folder.path()).with_lock(lock.try_clone().unwrap());
        // An alias is a child of git with the same stdin, as a slow git would be.
        let child = Command::new("git")
            .args(["-c", "alias.w=!sleep 0.4", "w"])
            .current_dir(folder.path())
            .stdin(Stdio::from(lock.try_clone().unwrap()))
            .spawn()
            .unwrap();
        drop(git);
        drop(lock);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err(), "the lock is free although git is at work");
        let mut child = child;
        child.wait().unwrap();
        other.try_lock().unwrap();
    }
}
