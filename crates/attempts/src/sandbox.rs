//! What a process may do, made true by Linux Landlock. It must not know agents, roles or configuration: it is
//! given lists of paths. Where the kernel has no Landlock the process runs without, and callers can ask.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The limits of one process and of everything it starts. An allow-list: what is not named is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Folders and files that may be written, with everything below. What does not exist grants nothing.
    pub write: Vec<PathBuf>,
    /// Folders whose files may not even be read, apart from what `write` and `read` name inside them. A
    /// folder of `write` that holds one of these is granted without it, child by child.
    #[serde(default)]
    pub hide: Vec<PathBuf>,
    /// What may be read inside `hide`.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    #[serde(default)]
    pub network: Network,
}

/// TCP of a process in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    On,
    /// No TCP connection out and no TCP port opened, not even on this machine.
    Off,
}

/// What the kernel can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxSupport {
    /// Not Linux, or a kernel without Landlock, or one that was started with it off.
    None { why: &'static str },
    /// The version of the kernel's Landlock interface.
    Landlock { abi: u32 },
}

impl SandboxSupport {
    /// Files: writes and reads are limited (ABI 1; moves between folders since 2, truncation since 3).
    pub fn files(self) -> bool {
        matches!(self, Self::Landlock { abi } if abi >= 1)
    }

    /// No way to change a file outside is left: moves and truncation are refused too.
    pub fn files_for_sure(self) -> bool {
        matches!(self, Self::Landlock { abi } if abi >= 3)
    }

    /// TCP can be refused.
    pub fn network(self) -> bool {
        matches!(self, Self::Landlock { abi } if abi >= 4)
    }

    /// Signals to processes outside, and abstract sockets of theirs, are refused.
    pub fn signals(self) -> bool {
        matches!(self, Self::Landlock { abi } if abi >= 6)
    }
}

#[cfg(target_os = "linux")]
pub use linux::sandbox_support;
#[cfg(target_os = "linux")]
pub(crate) use linux::{SandboxError, restrict_this_thread};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::sandbox_support;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{SandboxError, restrict_this_thread};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{SandboxSpec, SandboxSupport};

    #[derive(Debug, thiserror::Error)]
    pub(crate) enum SandboxError {}

    pub fn sandbox_support() -> SandboxSupport {
        SandboxSupport::None { why: "this is not Linux" }
    }

    pub(crate) fn restrict_this_thread(_spec: &SandboxSpec) -> Result<(), SandboxError> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
        Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    };

    use super::{Network, SandboxSpec, SandboxSupport};

    /// The newest interface that is asked for; an older kernel gives what it has. Version 9 would also
    /// refuse sockets by path, which agents need for tools of their own.
    const WANTED: ABI = ABI::V7;

    /// Devices without a memory: every program expects to write them. No terminals: a keystroke put into
    /// the user's terminal would be an answer of the user's.
    const DEVICES: [&str; 6] =
        ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm"];

    #[derive(Debug, thiserror::Error)]
    pub(crate) enum SandboxError {
        #[error("the sandbox cannot be set up: {0}")]
        Ruleset(#[from] RulesetError),
        #[error("the sandbox cannot be set up: {path} cannot be listed")]
        List { path: PathBuf, source: io::Error },
    }

    /// What the kernel can do does not change while this program runs.
    pub fn sandbox_support() -> SandboxSupport {
        static SUPPORT: std::sync::LazyLock<SandboxSupport> = std::sync::LazyLock::new(ask);
        *SUPPORT
    }

    /// Asks the kernel. Takes a thread, because the only sure way to know is to be restricted.
    fn ask() -> SandboxSupport {
        let asked = std::thread::spawn(|| {
            Ruleset::default().handle_access(AccessFs::MakeBlock).and_then(Ruleset::create)?.restrict_self()
        });
        match asked.join() {
            Ok(Ok(RestrictionStatus {
                landlock: LandlockStatus::Available { effective_abi, kernel_abi },
                ..
            })) => {
                let known = effective_abi as i32;
                SandboxSupport::Landlock { abi: kernel_abi.unwrap_or(known).cast_unsigned() }
            }
            Ok(Ok(RestrictionStatus { landlock: LandlockStatus::NotEnabled, .. })) => SandboxSupport::None {
                why: "Landlock is built into this kernel but was switched off at boot",
            },
            Ok(Ok(_)) => SandboxSupport::None { why: "this kernel has no Landlock" },
            Ok(Err(_)) | Err(_) => SandboxSupport::None { why: "the kernel refuses Landlock" },
        }
    }

    /// Limits the calling thread for good, and every process that it starts from now on. Other threads of
    /// this process stay as they are: credentials belong to threads. This is why no code has to run between
    /// fork and exec, and posix_spawn stays possible.
    pub(crate) fn restrict_this_thread(spec: &SandboxSpec) -> Result<(), SandboxError> {
        let write = AccessFs::from_write(WANTED);
        let hide: Vec<PathBuf> = spec.hide.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut ruleset = Ruleset::default().handle_access(write)?.scope(Scope::from_all(WANTED))?;
        // Reading is limited only where something is hidden; a rule may name nothing that is not limited.
        let read: BitFlags<AccessFs> =
            if hide.is_empty() { BitFlags::empty() } else { AccessFs::ReadFile.into() };
        if !read.is_empty() {
            ruleset = ruleset.handle_access(read)?;
        }
        if spec.network == Network::Off {
            ruleset = ruleset.handle_access(AccessNet::from_all(WANTED))?;
        }
        let mut created = ruleset.create()?;
        for path in DEVICES {
            created = grant(created, Path::new(path), write)?;
        }
        for path in &spec.write {
            let Ok(path) = path.canonicalize() else { continue };
            for part in around(&path, &hide)? {
                created = grant(created, &part, write | read)?;
            }
        }
        if !hide.is_empty() {
            for part in around(Path::new("/"), &hide)? {
                created = grant(created, &part, read)?;
            }
            for path in &spec.read {
                created = grant(created, path, read)?;
            }
        }
        created.restrict_self()?;
        Ok(())
    }

    fn grant(
        created: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, SandboxError> {
        // Gone, or not ours to look at: then nothing is granted.
        let Ok(descriptor) = PathFd::new(path) else { return Ok(created) };
        let is_folder = std::fs::metadata(path).is_ok_and(|data| data.is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(WANTED) };
        Ok(created.add_rule(PathBeneath::new(descriptor, access))?)
    }

    /// The folder without what is hidden in it, as paths that together hold all the rest. Rules cannot take
    /// away, so a folder on the way to something hidden is given child by child: what comes into such a
    /// folder later is not in it. Links are left out; where they lead has a path of its own.
    fn around(folder: &Path, hide: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        if hide.iter().any(|hidden| hidden == folder) {
            return Ok(Vec::new());
        }
        if !hide.iter().any(|hidden| hidden.starts_with(folder)) {
            return Ok(vec![folder.to_owned()]);
        }
        let failed = |source| SandboxError::List { path: folder.to_owned(), source };
        let mut parts = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                parts.extend(around(&entry.path(), hide)?);
            }
        }
        Ok(parts)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_is_hidden_is_left_out_and_links_are_not_followed() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            for folder in ["home/state/runs", "home/other", "tools"] {
                std::fs::create_dir_all(root.join(folder)).unwrap();
            }
            std::fs::write(root.join("home/file"), "").unwrap();
            std::os::unix::fs::symlink(root.join("home/state"), root.join("home/link")).unwrap();
            let mut parts = around(&root, &[root.join("home/state")]).unwrap();
            parts.sort();
            assert_eq!(parts, ["home/file", "home/other", "tools"].map(|path| root.join(path)));
            assert_eq!(
                around(&root.join("home/state/runs"), &[root.join("home/state")]).unwrap(),
                [root.join("home/state/runs")]
            );
            assert_eq!(
                around(&root.join("home/state"), &[root.join("home/state")]).unwrap(),
                Vec::<PathBuf>::new()
            );
        }
    }
}
