//! A scratch folder with a git repository in it: made, filled, and taken away with every process
//! that works in it.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use gatewright_attempts::{AttemptDir, kill_now};

#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error("{}: the scratch folder cannot be {action}", path.display())]
    Folder { action: &'static str, path: PathBuf, source: io::Error },
    #[error("`git` could not be started: it is needed for a scratch repository")]
    NoGit { source: io::Error },
    #[error("`git {arguments}` failed: {message}")]
    Git { arguments: String, message: String },
}

/// Removed with its processes when dropped, unless it is kept.
#[derive(Debug)]
pub struct Scratch {
    pub root: PathBuf,
    kept: bool,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    /// A new folder for this user only, below the system's folder for such things.
    pub fn new(purpose: &str) -> Result<Scratch, ScratchError> {
        let base = std::env::temp_dir();
        let base = base.canonicalize().unwrap_or(base);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let root = base.join(format!("gatewright-{purpose}-{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&root) {
                Ok(()) => return Ok(Scratch { root, kept: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(source) => return Err(ScratchError::Folder { action: "made", path: root, source }),
            }
        }
    }

    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// It stays when this value goes.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Writes files below a folder of it.
    pub fn write(&self, folder: &str, files: &[(&str, &str)]) -> Result<(), ScratchError> {
        files.iter().try_for_each(|(name, text)| write(&self.root.join(folder).join(name), text))
    }

    /// A repository with everything in it committed, whatever the user's git configuration says.
    pub fn repository(&self, name: &str) -> Result<PathBuf, ScratchError> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).map_err(|source| ScratchError::Folder {
            action: "filled",
            path: path.clone(),
            source,
        })?;
        git(&path, &["-c", "init.defaultBranch=main", "init", "--quiet"])?;
        git(&path, &["config", "user.name", "Rehearsal"])?;
        git(&path, &["config", "user.email", "rehearsal@example.org"])?;
        git(&path, &["config", "commit.gpgsign", "false"])?;
        git(&path, &["add", "--all"])?;
        git(&path, &["commit", "--quiet", "--allow-empty", "--message", "Before the run"])?;
        Ok(path)
    }

    /// Ctrl-C leaves nothing behind either. `child` is a process of ours that is under way; 0 = none.
    pub fn goes_with_signals(&self, child: &Arc<AtomicU32>) {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
        let (root, kept, child) = (self.root.clone(), self.kept, Arc::clone(child));
        std::thread::spawn(move || {
            let Some(signal) = signals.forever().next() else { return };
            let id = i32::try_from(child.load(Ordering::SeqCst)).unwrap_or(0);
            if let Some(id) = rustix::process::Pid::from_raw(id) {
                // One that has ended meanwhile needs no signal.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
            drop(Scratch { root, kept });
            std::process::exit(128 + signal);
        });
    }

    /// Ends every attempt below the state folder that is still alive.
    pub fn end_attempts(&self) {
        for path in attempt_dirs(&self.state()) {
            let Ok(dir) = AttemptDir::open(&path) else { continue };
            let alive = matches!((dir.exit_record(), dir.pid_record()), (Ok(None), Ok(Some(_))));
            if alive {
                // What cannot be ended cannot be waited for either; the folder goes all the same.
                let _ = kill_now(&dir);
            }
        }
    }

    /// Processes of agents that are alive now.
    pub fn living_attempts(&self) -> usize {
        let lives = |path: &PathBuf| {
            AttemptDir::open(path)
                .is_ok_and(|dir| matches!((dir.exit_record(), dir.pid_record()), (Ok(None), Ok(Some(_)))))
        };
        attempt_dirs(&self.state()).iter().filter(|path| lives(path)).count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.end_attempts();
        if !self.kept {
            // A folder below the system's temporary one that cannot be removed is the system's to clean.
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// `state/projects/*/runs/*/attempts/*/*`.
fn attempt_dirs(state: &Path) -> Vec<PathBuf> {
    let below = |dirs: Vec<PathBuf>| -> Vec<PathBuf> {
        dirs.iter()
            .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .collect()
    };
    let inside =
        |dirs: Vec<PathBuf>, name: &str| -> Vec<PathBuf> { dirs.iter().map(|dir| dir.join(name)).collect() };
    let runs = below(inside(below(vec![state.join("projects")]), "runs"));
    below(below(inside(runs, "attempts")))
}

/// What somebody else does in a repository meanwhile: these files, in a commit on the branch that is checked out.
pub fn commit(repository: &Path, files: &BTreeMap<String, String>) -> Result<(), ScratchError> {
    for (name, text) in files {
        write(&repository.join(name), text)?;
        git(repository, &["add", "--", name])?;
    }
    git(repository, &["commit", "--quiet", "--message", "Meanwhile"])
}

fn write(path: &Path, text: &str) -> Result<(), ScratchError> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| std::fs::write(path, text)).map_err(|source| ScratchError::Folder {
        action: "filled",
        path: path.to_owned(),
        source,
    })
}

fn git(dir: &Path, arguments: &[&str]) -> Result<(), ScratchError> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ScratchError::NoGit { source })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ScratchError::Git { arguments: arguments.join(" "), message })
}
