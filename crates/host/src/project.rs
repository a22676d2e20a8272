//! Where things are: the repository a command was typed in, and the user's state directory.
//!
//! Truth lives outside the working tree (decision 20), one folder per project.

use std::path::{Path, PathBuf};

/// The folder that runs belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The nearest folder upwards with `.gatewright` or `.git`; else the working directory.
    pub root: PathBuf,
    /// This project's folder below the state directory.
    pub state: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("the working directory cannot be read")]
    WorkingDirectory { source: std::io::Error },
    #[error(
        "neither GATEWRIGHT_STATE_DIR nor XDG_STATE_HOME nor HOME is set: set GATEWRIGHT_STATE_DIR to a folder of yours"
    )]
    NoStateDir,
}

impl Project {
    /// The project of the working directory.
    pub fn here() -> Result<Project, ProjectError> {
        let cwd = std::env::current_dir().map_err(|source| ProjectError::WorkingDirectory { source })?;
        Ok(Project::at(&cwd, &state_root()?))
    }

    /// The project of a folder, with its state below `state_root`.
    pub fn at(folder: &Path, state_root: &Path) -> Project {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let marks = |dir: &&Path| dir.join(".gatewright").is_dir() || dir.join(".git").exists();
        let root = folder.ancestors().find(marks).unwrap_or(&folder).to_owned();
        let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        let name: String = root
            .file_name()
            .map(|name| {
                name.to_string_lossy()
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                    .take(40)
                    .collect()
            })
            .unwrap_or_else(|| "root".to_owned());
        Project { root, state: state_root.join("projects").join(format!("{name}-{}", &hash[..12])) }
    }

    /// The state directory that this project's folder is in.
    pub fn state_root(&self) -> &Path {
        self.state.ancestors().nth(2).unwrap_or(&self.state)
    }

    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }

    pub fn run(&self, id: &str) -> RunPaths {
        RunPaths { dir: self.runs().join(id) }
    }
}

/// `GATEWRIGHT_STATE_DIR`, else `$XDG_STATE_HOME/gatewright`, else `~/.local/state/gatewright`.
pub fn state_root() -> Result<PathBuf, ProjectError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = set("GATEWRIGHT_STATE_DIR")
        .or_else(|| set("XDG_STATE_HOME").map(|dir| dir.join("gatewright")))
        .or_else(|| set("HOME").map(|dir| dir.join(".local/state/gatewright")))
        .ok_or(ProjectError::NoStateDir)?;
    Ok(if root.is_absolute() {
        root
    } else {
        std::env::current_dir().map_err(|source| ProjectError::WorkingDirectory { source })?.join(root)
    })
}

/// `~/.config/gatewright/config.yaml`, if there is a home.
pub fn user_config() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CONFIG_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".config")))
        .map(|dir| dir.join("gatewright/config.yaml"))
}

/// Files of one run below the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPaths {
    pub dir: PathBuf,
}

impl RunPaths {
    /// The user's state directory: this is `ROOT/projects/PROJECT/runs/ID`.
    pub fn state_root(&self) -> &Path {
        self.dir.ancestors().nth(4).unwrap_or(&self.dir)
    }

    /// The project's folder below the state directory.
    pub fn project_dir(&self) -> &Path {
        self.dir.ancestors().nth(2).unwrap_or(&self.dir)
    }

    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    pub fn meta(&self) -> PathBuf {
        self.dir.join("run.json")
    }

    /// The frozen workflow with this digest.
    pub fn plan(&self, digest: &str) -> PathBuf {
        self.dir.join("plans").join(format!("{digest}.json"))
    }

    pub fn inbox(&self) -> PathBuf {
        self.dir.join("inbox")
    }

    /// The state in short, valid as long as the journal has the length it names.
    pub fn summary(&self) -> PathBuf {
        self.dir.join("summary.json")
    }

    /// What was written into the run directory, with hashes: to tell our bytes from somebody else's.
    pub fn published(&self) -> PathBuf {
        self.dir.join("published.json")
    }

    /// A person's version of an artifact, kept when it was adopted.
    pub fn adopted(&self, hash: &str) -> PathBuf {
        self.dir.join("adopted").join(hash)
    }

    /// Records of the run's worktrees, and the locks of what is done in them.
    pub fn streams(&self) -> PathBuf {
        self.dir.join("streams")
    }

    pub fn stream(&self, name: &str) -> PathBuf {
        self.streams().join(format!("{name}.json"))
    }

    /// Where the run's worktrees are: beside the runs, not among what is true of them.
    pub fn worktrees(&self) -> PathBuf {
        let project = self.dir.parent().and_then(Path::parent).unwrap_or(&self.dir);
        project.join("worktrees").join(self.dir.file_name().unwrap_or_default())
    }

    /// Held by whoever makes or removes a worktree of this project.
    pub fn worktree_lock(&self) -> PathBuf {
        let project = self.dir.parent().and_then(Path::parent).unwrap_or(&self.dir);
        project.join("worktrees").join("lock")
    }

    /// Places that all runs of this user share.
    pub fn machine_pools(&self) -> PathBuf {
        self.dir.ancestors().nth(4).unwrap_or(&self.dir).join("pools")
    }

    /// There while a step waits for such a place, with the reason.
    pub fn pool_note(&self, step: &str) -> PathBuf {
        self.dir.join("pools").join(file_name(step))
    }

    /// What a stream that did not pass would have changed.
    pub fn patch(&self, name: &str) -> PathBuf {
        self.dir.join("patches").join(format!("{name}.patch"))
    }

    /// Work that was there before the run, or was handed in, under this name.
    pub fn given(&self, label: &str) -> PathBuf {
        self.dir.join("given").join(file_name(label))
    }

    pub fn engine_log(&self) -> PathBuf {
        self.dir.join("engine.log")
    }

    /// The frozen copy of a fan-out's list.
    pub fn list(&self, step: &str, hash: &str) -> PathBuf {
        self.dir.join("lists").join(format!("{}-{}.json", file_name(step), &hash[..hash.len().min(16)]))
    }

    /// Marks of checks that are under way.
    pub fn checks(&self) -> PathBuf {
        self.dir.join("checks")
    }

    /// What a check of this attempt is called while it is under way.
    pub fn check_name(&self, step: &str, attempt: u32, check: &str) -> PathBuf {
        self.checks().join(format!("{}.{attempt}.{}", file_name(step), file_name(check)))
    }

    pub fn attempts(&self) -> PathBuf {
        self.dir.join("attempts")
    }

    pub fn attempt(&self, step: &str, attempt: u32) -> PathBuf {
        self.attempts().join(file_name(step)).join(attempt.to_string())
    }
}

/// Any text as one file name: what is not plain is written as `%XX`, what is too long is hashed.
pub fn file_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() <= 180 {
        return name;
    }
    format!("{}-{}", &name[..140], &blake3::hash(text.as_bytes()).to_hex()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment_and_never_collide() {
        let names =
            ["a/b", "a%2Fb", "a b", "..", ".", "ä", &"x/".repeat(200), &"x/".repeat(201)].map(file_name);
        for name in &names {
            assert!(!name.contains('/') && name.len() <= 180 && name != "." && name != "..", "{name}");
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
