//! What a process may do, made true by Linux Landlock. It must not know agents, roles or configuration: it is
//! given lists of paths. Where the kernel has no Landlock the process runs without, and callers can ask.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The limits of one process and of everything it starts. An allow-list: what is not named is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Folders and files that may be written, with everything below. What does not exist grants nothing.
    pub write: Vec<PathBuf>,
    /// Whoever made the list has followed every link in `write`: one that is there by now is not followed, and its
    /// place is not granted.
    #[serde(default)]
    pub settled: bool,
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
pub(crate) use linux::{SandboxError, run_limited};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::sandbox_support;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{SandboxError, run_limited};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{SandboxSpec, SandboxSupport};

    #[derive(Debug, thiserror::Error)]
    pub(crate) enum SandboxError {}

    pub fn sandbox_support() -> SandboxSupport {
        SandboxSupport::None { why: "this is not Linux" }
    }

    pub(crate) fn run_limited<T>(_spec: &SandboxSpec, work: impl FnOnce() -> T) -> Result<T, SandboxError> {
        Ok(work())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use std::sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    };
    use std::time::SystemTime;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, RestrictionStatus, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    };

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::thread::{CapabilitySet, CapabilitySets};

    use super::{Network, SandboxSpec, SandboxSupport};
    use crate::defence::Defence;

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
        #[error("the sandbox cannot be set up: {0}")]
        Clone(io::Error),
        #[error("the sandbox cannot be set up: rights of root cannot be given up: {0}")]
        Capabilities(io::Error),
        #[error("the sandbox cannot be set up: no thread for it: {0}")]
        Thread(io::Error),
        #[error("the sandbox cannot be set up: its thread ended too early")]
        Lost,
        #[error("the sandbox cannot be set up: {path} cannot be listed")]
        List { path: PathBuf, source: io::Error },
    }

    /// What the kernel can do does not change while this program runs.
    pub fn sandbox_support() -> SandboxSupport {
        static SUPPORT: std::sync::LazyLock<SandboxSupport> = std::sync::LazyLock::new(ask);
        *SUPPORT
    }

    /// A kernel that has nothing to offer, for tests.
    const TAKEN_AWAY: SandboxSupport = SandboxSupport::None { why: "it was taken away by a test" };

    /// Asks the kernel. Takes a thread, because the only sure way to know is to be restricted.
    fn ask() -> SandboxSupport {
        if Defence::Landlock.is_off() {
            return TAKEN_AWAY;
        }
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

    /// Does something on a thread with these limits, and gives back what came of it. Every process that it
    /// starts has them too. Other threads of this process stay as they are: credentials belong to threads. This
    /// is why no code has to run between fork and exec, and posix_spawn stays possible.
    pub(crate) fn run_limited<T: Send + 'static>(
        spec: &SandboxSpec,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SandboxError> {
        if matches!(sandbox_support(), SandboxSupport::None { .. }) {
            return Ok(work());
        }
        let (number, ready) = prepared(spec)?;
        let worker = match ready {
            Ready::Idle(worker) => worker,
            Ready::New(ruleset) => Worker::start(ruleset)?,
        };
        let (answer, result) = channel();
        let job: Job = Box::new(move || {
            // Whoever asked waits for it below.
            let _ = answer.send(work());
        });
        worker.jobs.send(job).map_err(|_| SandboxError::Lost)?;
        let outcome = result.recv().map_err(|_| SandboxError::Lost)?;
        if let Some(made) = lock().iter_mut().find(|made| made.number == number) {
            made.idle.push(worker);
        }
        Ok(outcome)
    }

    /// Rules that were made and can be used again, the latest last. Many checks in a row have the same, and
    /// making them takes longer than many a check.
    static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());
    const MADE_MAX: usize = 8;

    fn lock() -> MutexGuard<'static, Vec<Made>> {
        // Nothing is left half done while it is held.
        MADE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    struct Made {
        number: u64,
        spec: SandboxSpec,
        ruleset: RulesetCreated,
        /// What the rules follow from. They stand for files, not for names: when one of these is another
        /// now, or has got or lost an entry, they are made anew.
        seen: Vec<(PathBuf, Option<Seen>)>,
        /// Threads that have the limits already and wait for the next process to start.
        idle: Vec<Worker>,
    }

    type Job = Box<dyn FnOnce() + Send>;

    /// A thread that took the limits upon itself. It ends when nobody can give it a job any more.
    struct Worker {
        jobs: Sender<Job>,
    }

    impl Worker {
        fn start(ruleset: RulesetCreated) -> Result<Worker, SandboxError> {
            let (jobs, given) = channel::<Job>();
            let (told, limited) = channel();
            let life = move || {
                let restricted = ruleset.restrict_self().map(drop).map_err(SandboxError::from);
                let restricted = restricted.and_then(|()| give_up_capabilities());
                let failed = restricted.is_err();
                if told.send(restricted).is_err() || failed {
                    return;
                }
                given.into_iter().for_each(|job| job());
            };
            let thread = std::thread::Builder::new().name("sandbox".to_owned());
            thread.spawn(life).map_err(SandboxError::Thread)?;
            limited.recv().map_err(|_| SandboxError::Lost)??;
            Ok(Worker { jobs })
        }
    }

    /// Rights of root that Landlock knows nothing of, and with which root would get around it: into other processes
    /// (newer kernels show their memory and environment to who may measure performance), into the kernel, and onto
    /// disks by way of devices of one's own. What concerns files, owners, users and the network stays: package
    /// managers and test suites that run as root need it.
    const GIVEN_UP: [CapabilitySet; 8] = [
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::PERFMON,
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::BPF,
        CapabilitySet::SYS_MODULE,
        CapabilitySet::SYS_RAWIO,
        CapabilitySet::SYS_BOOT,
        CapabilitySet::MKNOD,
    ];

    /// For this thread and whatever it starts. Nobody gets them back: no program may gain rights in the sandbox.
    fn give_up_capabilities() -> Result<(), SandboxError> {
        let given_up = GIVEN_UP.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
        let failed = |error: rustix::io::Errno| SandboxError::Capabilities(error.into());
        let has = rustix::thread::capabilities(None).map_err(failed)?;
        if (has.permitted | has.inheritable).intersection(given_up).is_empty() {
            return Ok(());
        }
        for capability in GIVEN_UP {
            // One that this kernel does not know, or a set that this process may not touch: the next call decides.
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
        let less = CapabilitySets {
            effective: has.effective.difference(given_up),
            permitted: has.permitted.difference(given_up),
            inheritable: has.inheritable.difference(given_up),
        };
        rustix::thread::set_capabilities(None, less).map_err(failed)
    }

    enum Ready {
        Idle(Worker),
        New(RulesetCreated),
    }

    /// What a name stood for.
    #[derive(PartialEq, Eq)]
    struct Seen {
        device: u64,
        inode: u64,
        /// Numbers of inodes are used again.
        born: Option<SystemTime>,
        /// Of a folder whose entries were listed.
        changed: Option<(i64, i64)>,
    }

    impl Seen {
        fn of(path: &Path, listed: bool) -> Option<Seen> {
            let data = std::fs::metadata(path).ok()?;
            let changed = listed.then(|| (data.mtime(), data.mtime_nsec()));
            Some(Seen { device: data.dev(), inode: data.ino(), born: data.created().ok(), changed })
        }
    }

    impl Made {
        fn still_holds(&self) -> bool {
            self.seen.iter().all(|(path, before)| {
                let listed = before.as_ref().is_some_and(|seen| seen.changed.is_some());
                Seen::of(path, listed) == *before
            })
        }

        fn ready(&mut self) -> Result<(u64, Ready), SandboxError> {
            let ready = match self.idle.pop() {
                Some(worker) => Ready::Idle(worker),
                None => Ready::New(self.ruleset.try_clone().map_err(SandboxError::Clone)?),
            };
            Ok((self.number, ready))
        }
    }

    /// The rules for this, as they are right now, and the number under which they are kept.
    fn prepared(spec: &SandboxSpec) -> Result<(u64, Ready), SandboxError> {
        let mut made = lock();
        made.retain(|known| known.spec != *spec || known.still_holds());
        if let Some(known) = made.iter_mut().find(|known| known.spec == *spec) {
            return known.ready();
        }
        let mut seen = Vec::new();
        let ruleset = make(spec, &mut seen)?;
        if made.len() == MADE_MAX {
            made.remove(0);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut new = Made { number, spec: spec.clone(), ruleset, seen, idle: Vec::new() };
        let ready = new.ready();
        made.push(new);
        ready
    }

    static NUMBER: AtomicU64 = AtomicU64::new(1);

    fn make(
        spec: &SandboxSpec,
        seen: &mut Vec<(PathBuf, Option<Seen>)>,
    ) -> Result<RulesetCreated, SandboxError> {
        let write = AccessFs::from_write(WANTED);
        seen.extend(spec.hide.iter().map(|path| (path.clone(), Seen::of(path, false))));
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
            let Ok(path) = Path::new(path).canonicalize() else { continue };
            created = grant(created, &path, write)?;
        }
        for path in &spec.write {
            seen.push((path.clone(), Seen::of(path, false)));
            let Ok(real) = path.canonicalize() else { continue };
            if spec.settled && real != *path {
                continue;
            }
            for part in around(&real, &hide, seen)? {
                created = grant(created, &part, write | read)?;
            }
        }
        if !hide.is_empty() {
            for part in around(Path::new("/"), &hide, seen)? {
                created = grant(created, &part, read)?;
            }
            for path in &spec.read {
                seen.push((path.clone(), Seen::of(path, false)));
                let Ok(real) = path.canonicalize() else { continue };
                created = grant(created, &real, read)?;
            }
        }
        Ok(created)
    }

    /// A path without links; one that somebody puts there meanwhile is not followed.
    fn grant(
        created: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, SandboxError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        // Gone, or not ours to look at: then nothing is granted.
        let Ok(descriptor) = opened else { return Ok(created) };
        let data = rustix::fs::fstat(&descriptor);
        let is_folder = data.is_ok_and(|data| rustix::fs::FileType::from_raw_mode(data.st_mode).is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(WANTED) };
        Ok(created.add_rule(PathBeneath::new(descriptor, access))?)
    }

    /// The folder without what is hidden in it, as paths that together hold all the rest. Rules cannot take
    /// away, so a folder on the way to something hidden is given child by child: what comes into such a
    /// folder later is not in it. Links are left out; where they lead has a path of its own.
    fn around(
        folder: &Path,
        hide: &[PathBuf],
        seen: &mut Vec<(PathBuf, Option<Seen>)>,
    ) -> Result<Vec<PathBuf>, SandboxError> {
        if hide.iter().any(|hidden| hidden == folder) {
            return Ok(Vec::new());
        }
        if !hide.iter().any(|hidden| hidden.starts_with(folder)) {
            return Ok(vec![folder.to_owned()]);
        }
        let failed = |source| SandboxError::List { path: folder.to_owned(), source };
        // Before its entries are read: one that comes meanwhile is noticed.
        seen.push((folder.to_owned(), Seen::of(folder, true)));
        let mut parts = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                parts.extend(around(&entry.path(), hide, seen)?);
            }
        }
        Ok(parts)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_link_in_a_settled_list_grants_nothing() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            for folder in ["place", "elsewhere"] {
                std::fs::create_dir(root.join(folder)).unwrap();
            }
            std::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
            let writes = |settled: bool, path: &str| {
                let spec = SandboxSpec { write: vec![root.join(path)], settled, ..SandboxSpec::default() };
                let file = root.join(path).join("file");
                run_limited(&spec, move || std::fs::write(file, "x").is_ok()).unwrap()
            };
            assert!(writes(true, "place"));
            if sandbox_support().files() {
                assert!(writes(false, "link") && !writes(true, "link"));
            }
        }

        #[test]
        fn what_is_hidden_is_left_out_and_links_are_not_followed() {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            for folder in ["home/state/runs", "home/other", "tools"] {
                std::fs::create_dir_all(root.join(folder)).unwrap();
            }
            std::fs::write(root.join("home/file"), "").unwrap();
            std::os::unix::fs::symlink(root.join("home/state"), root.join("home/link")).unwrap();
            let mut parts = around(&root, &[root.join("home/state")], &mut Vec::new()).unwrap();
            parts.sort();
            assert_eq!(parts, ["home/file", "home/other", "tools"].map(|path| root.join(path)));
            assert_eq!(
                around(&root.join("home/state/runs"), &[root.join("home/state")], &mut Vec::new()).unwrap(),
                [root.join("home/state/runs")]
            );
            assert_eq!(
                around(&root.join("home/state"), &[root.join("home/state")], &mut Vec::new()).unwrap(),
                Vec::<PathBuf>::new()
            );
        }
    }
}
