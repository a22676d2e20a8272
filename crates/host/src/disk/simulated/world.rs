//! The state of a simulated disk: what is seen, what is durable, what is between. Must not know the `Disk` trait.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::OperationCounts;
use crate::disk::{FileIdentity, FileKind, FileStat};

/// What happens at the chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// That one operation fails; a write leaves a part of its bytes.
    Error,
    /// That operation and every later one fail until `crash` or `kill`: the process has no say any more.
    Halt,
}

pub(super) struct World {
    pub(super) random: u64,
    pub(super) counts: OperationCounts,
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) halted: bool,
    pub(super) syncs_ignored: bool,
    /// Grows with each crash: handles and locks of dead processes carry an older one.
    pub(super) epoch: u64,
    pub(super) inode_next: u64,
    pub(super) inodes: BTreeMap<u64, Inode>,
    /// What processes see.
    pub(super) names: BTreeMap<PathBuf, Node>,
    /// What is left after a power cut at the worst moment.
    pub(super) durable_names: BTreeMap<PathBuf, Node>,
    pub(super) pending_names: Vec<NameChange>,
    pub(super) locks: BTreeSet<PathBuf>,
    /// Operations that were made to fail since the processes were started.
    pub(super) failures: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(u64),
}

#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) bytes: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<ByteChange>,
}

#[derive(Debug)]
pub(super) enum ByteChange {
    /// `written` is false after a failed sync: the kernel takes the bytes for clean and never writes them.
    Append {
        bytes: Vec<u8>,
        written: bool,
    },
    SetLen(u64),
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Add { path: PathBuf, node: Node },
    Remove { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, node: Node },
}

impl World {
    /// Counts one operation and lets it fail if it is the chosen one.
    pub(super) fn operation(&mut self) -> io::Result<()> {
        self.counts.operations += 1;
        let chosen = match self.fault {
            Some((at, fault)) if at == self.counts.operations => Some(fault),
            Some(_) | None => None,
        };
        self.halted |= chosen == Some(Fault::Halt);
        if self.halted || chosen.is_some() {
            self.failures += 1;
            return Err(io::Error::other(format!(
                "simulated failure of operation {}",
                self.counts.operations
            )));
        }
        Ok(())
    }

    pub(super) fn end_processes(&mut self) {
        self.epoch += 1;
        self.locks.clear();
        self.fault = None;
        self.halted = false;
        self.failures = 0;
    }

    /// Files without a name are gone when no process holds them open.
    pub(super) fn forget_nameless(&mut self) {
        let named: BTreeSet<u64> = self
            .names
            .values()
            .filter_map(|node| if let Node::File(inode) = node { Some(*inode) } else { None })
            .collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }

    /// After a power cut: an ordered part of the un-synced changes, the next append at any byte, maybe zeros.
    pub(super) fn tear(&mut self, id: u64) {
        let pending = std::mem::take(&mut self.inode(id).pending);
        let whole = self.below(pending.len() as u64 + 1) as usize;
        for (position, change) in pending.into_iter().enumerate() {
            if position < whole {
                change.apply(&mut self.inode(id).durable);
            } else if position == whole
                && let ByteChange::Append { bytes, written } = change
            {
                let cut = self.below(bytes.len() as u64 + 1) as usize;
                let zeros =
                    if self.chance(4) { self.below((bytes.len() - cut) as u64 + 1) as usize } else { 0 };
                let durable = &mut self.inode(id).durable;
                ByteChange::Append { bytes: bytes[..cut].to_vec(), written }.apply(durable);
                durable.resize(durable.len() + zeros, 0);
            }
        }
        let inode = self.inode(id);
        inode.bytes.clone_from(&inode.durable);
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    pub(super) fn new_inode(&mut self) -> u64 {
        let id = self.inode_next;
        self.inode_next += 1;
        self.inodes.insert(id, Inode::default());
        id
    }

    pub(super) fn inode(&mut self, id: u64) -> &mut Inode {
        self.inodes.entry(id).or_default()
    }

    pub(super) fn stat_of(&self, id: u64) -> FileStat {
        let len = self.inodes.get(&id).map_or(0, |inode| inode.bytes.len() as u64);
        let identity = FileIdentity { device: 0, inode: id };
        FileStat { len, identity, kind: FileKind::File, modified_ns: 0, changed_ns: 0 }
    }

    pub(super) fn file_at(&self, path: &Path) -> io::Result<u64> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Directory) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            None => Err(not_found(path)),
        }
    }

    pub(super) fn must_be_free(&self, path: &Path) -> io::Result<()> {
        self.parent_must_exist(path)?;
        match self.names.get(path) {
            Some(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            None => Ok(()),
        }
    }

    pub(super) fn parent_must_exist(&self, path: &Path) -> io::Result<()> {
        match path.parent().and_then(|parent| self.names.get(parent)) {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
            None => Err(not_found(path)),
        }
    }

    /// True once in `n` times.
    pub(super) fn chance(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// splitmix64; the bias of the remainder does not matter here.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % n.max(1)
    }
}

impl Inode {
    pub(super) fn forget_pending(&mut self) {
        for change in &mut self.pending {
            if let ByteChange::Append { written, .. } = change {
                *written = false;
            }
        }
    }
}

impl ByteChange {
    pub(super) fn apply(self, durable: &mut Vec<u8>) {
        match self {
            ByteChange::Append { bytes, written: true } => durable.extend(bytes),
            ByteChange::Append { bytes, written: false } => durable.resize(durable.len() + bytes.len(), 0),
            ByteChange::SetLen(len) => durable.resize(len as usize, 0),
        }
    }
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            NameChange::Add { path, node } => {
                names.insert(path.clone(), *node);
            }
            NameChange::Remove { path } => {
                names.remove(path);
            }
            NameChange::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }

    pub(super) fn touches(&self, directory: &Path) -> bool {
        let inside = |path: &Path| path.parent() == Some(directory);
        match self {
            NameChange::Add { path, .. } | NameChange::Remove { path } => inside(path),
            NameChange::Rename { from, to, .. } => inside(from) || inside(to),
        }
    }
}

pub(super) fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", path.display()))
}
