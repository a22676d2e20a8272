//! A disk in memory that forgets what was not synced. Must not know journals or inboxes.
//!
//! The model, a little worse than ext4, xfs and btrfs: within one file un-synced changes reach the disk in order
//! and the last of them at any byte, possibly followed by zeros; un-synced names (create, link, rename, remove)
//! are kept or lost one by one; a failed sync leaves the bytes readable but never written ("fsyncgate").
//! `crash` is a power cut; `kill` ends the processes only, so un-synced data stay.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, DiskLock, FileIdentity, FileKind, FileStat};
use world::{ByteChange, Fault, Inode, NameChange, Node, World, not_found};

mod durable_view;
mod world;

pub use durable_view::DurableView;

/// Clones share the disk: each stands for a process on the same machine.
#[derive(Clone)]
pub struct SimulatedDisk {
    world: Arc<Mutex<World>>,
}

/// What was done since the disk was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Every operation, whether it failed or not; faults are placed by this number.
    pub operations: u64,
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub syncs: u64,
}

impl SimulatedDisk {
    /// A disk with an empty root directory; `seed` decides everything that is left to chance.
    pub fn new(seed: u64) -> Self {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Directory)]);
        let world = World {
            random: seed,
            counts: OperationCounts::default(),
            fault: None,
            halted: false,
            syncs_ignored: false,
            epoch: 0,
            inode_next: 1,
            inodes: BTreeMap::new(),
            names: root.clone(),
            durable_names: root,
            pending_names: Vec::new(),
            locks: BTreeSet::new(),
            failures: 0,
        };
        SimulatedDisk { world: Arc::new(Mutex::new(world)) }
    }

    /// The operation with this number (from 1, as in [`OperationCounts::operations`]) fails, once.
    pub fn fail_at(&self, operation: u64) {
        self.world().fault = Some((operation, Fault::Error));
    }

    /// From the operation with this number on, everything fails until `crash` or `kill`.
    pub fn halt_at(&self, operation: u64) {
        self.world().fault = Some((operation, Fault::Halt));
    }

    /// No fault is placed any more.
    pub fn clear_fault(&self) {
        let mut world = self.world();
        world.fault = None;
        world.halted = false;
    }

    /// From now on syncs do nothing and say that all went well: the negative control of a crash test.
    pub fn ignore_syncs(&self) {
        self.world().syncs_ignored = true;
    }

    /// The process dies here: everything fails until `crash` or `kill`.
    pub fn halt(&self) {
        let mut world = self.world();
        world.halted = true;
        world.failures += 1;
    }

    pub fn is_halted(&self) -> bool {
        self.world().halted
    }

    /// Whether any operation was made to fail since the processes were started.
    pub fn has_failed(&self) -> bool {
        self.world().failures > 0
    }

    /// What is seen at `path`, without an operation.
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.world();
        let inode = world.file_at(path).ok()?;
        world.inodes.get(&inode).map(|inode| inode.bytes.clone())
    }

    /// What a power cut at this moment would surely leave.
    pub fn durable_view(&self) -> DurableView {
        DurableView { disk: self.clone() }
    }

    pub fn counts(&self) -> OperationCounts {
        self.world().counts
    }

    /// A power cut: locks are free, open files are dead, un-synced bytes and names may be gone.
    pub fn crash(&self) {
        let mut world = self.world();
        world.end_processes();
        let changes = std::mem::take(&mut world.pending_names);
        for change in changes {
            if world.chance(2) {
                change.apply(&mut world.durable_names);
            }
        }
        let mut names = world.durable_names.clone();
        let directories: BTreeSet<PathBuf> = names
            .iter()
            .filter(|(_, node)| **node == Node::Directory)
            .map(|(path, _)| path.clone())
            .collect();
        names.retain(|path, _| path.ancestors().skip(1).all(|parent| directories.contains(parent)));
        world.durable_names = names.clone();
        world.names = names;
        world.forget_nameless();
        let inodes: Vec<u64> = world.inodes.keys().copied().collect();
        for inode in inodes {
            world.tear(inode);
        }
    }

    /// The processes end, the machine stays: locks are free, open files are dead, data are as they were.
    pub fn kill(&self) {
        self.world().end_processes();
    }

    /// Puts bytes in place of a file without any operation, durable at once with its folders: what a stranger did.
    pub fn overwrite(&self, path: &Path, bytes: &[u8]) {
        let mut world = self.world();
        for folder in path.ancestors().skip(1) {
            for seen_or_durable in [true, false] {
                let world = &mut *world;
                let names = if seen_or_durable { &mut world.names } else { &mut world.durable_names };
                names.entry(folder.to_owned()).or_insert(Node::Directory);
            }
        }
        let inode = match world.names.get(path) {
            Some(Node::File(inode)) => *inode,
            Some(Node::Directory) | None => world.new_inode(),
        };
        world.names.insert(path.to_owned(), Node::File(inode));
        world.durable_names.insert(path.to_owned(), Node::File(inode));
        world
            .inodes
            .insert(inode, Inode { bytes: bytes.to_vec(), durable: bytes.to_vec(), pending: Vec::new() });
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A test that panicked while it held the disk has failed already; the others may go on.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, world: &World, inode: u64) -> Box<dyn DiskFile> {
        Box::new(SimulatedFile { disk: self.clone(), inode, epoch: world.epoch })
    }
}

impl Disk for SimulatedDisk {
    /// There are no links on it.
    fn below(&self, _folder: &Path) -> io::Result<Box<dyn Disk + '_>> {
        Ok(Box::new(self.clone()))
    }

    fn read_range(&self, path: &Path, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut world = self.world();
        world.operation()?;
        let inode = world.file_at(path)?;
        let bytes = &world.inodes[&inode].bytes;
        let start = (offset as usize).min(bytes.len());
        let end = start.saturating_add(usize::try_from(bytes_max).unwrap_or(usize::MAX)).min(bytes.len());
        let range = bytes[start..end].to_vec();
        world.counts.reads += 1;
        world.counts.bytes_read += range.len() as u64;
        Ok(range)
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        let mut world = self.world();
        world.operation()?;
        match world.names.get(path) {
            Some(Node::File(inode)) => Ok(world.stat_of(*inode)),
            Some(Node::Directory) => {
                let identity = FileIdentity { device: 0, inode: 0 };
                Ok(FileStat { len: 0, identity, kind: FileKind::Directory, modified_ns: 0, changed_ns: 0 })
            }
            None => Err(not_found(path)),
        }
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        world.operation()?;
        let inode = world.file_at(path)?;
        Ok(self.file(&world, inode))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        world.operation()?;
        world.must_be_free(path)?;
        let inode = world.new_inode();
        world.change(NameChange::Add { path: path.to_owned(), node: Node::File(inode) });
        Ok(self.file(&world, inode))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation()?;
        let parents: Vec<&Path> = path.ancestors().collect();
        for directory in parents.into_iter().rev() {
            match world.names.get(directory) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(io::Error::from(io::ErrorKind::NotADirectory)),
                None => world.change(NameChange::Add { path: directory.to_owned(), node: Node::Directory }),
            }
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation()?;
        if world.names.get(path) != Some(&Node::Directory) {
            return Err(not_found(path));
        }
        world.counts.syncs += 1;
        if world.syncs_ignored {
            return Ok(());
        }
        let (synced, kept) =
            std::mem::take(&mut world.pending_names).into_iter().partition(|change| change.touches(path));
        world.pending_names = kept;
        let synced: Vec<NameChange> = synced;
        for change in synced {
            change.apply(&mut world.durable_names);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation()?;
        let node = Node::File(world.file_at(from)?);
        world.parent_must_exist(to)?;
        world.change(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), node });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation()?;
        let node = Node::File(world.file_at(from)?);
        world.must_be_free(to)?;
        world.change(NameChange::Add { path: to.to_owned(), node });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation()?;
        world.file_at(path)?;
        world.change(NameChange::Remove { path: path.to_owned() });
        Ok(())
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let mut world = self.world();
        world.operation()?;
        if world.names.get(path) != Some(&Node::Directory) {
            return Err(not_found(path));
        }
        let inside = world.names.keys().filter(|name| name.parent() == Some(path));
        Ok(inside.filter_map(|name| name.file_name().map(OsString::from)).collect())
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        let mut world = self.world();
        world.operation()?;
        world.parent_must_exist(path)?;
        if !world.locks.insert(path.to_owned()) {
            return Ok(None);
        }
        let lock = SimulatedLock { disk: self.clone(), path: path.to_owned(), epoch: world.epoch };
        Ok(Some(Box::new(lock)))
    }

    fn lock_is_held(&self, path: &Path) -> io::Result<bool> {
        let mut world = self.world();
        world.operation()?;
        Ok(world.locks.contains(path))
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    inode: u64,
    epoch: u64,
}

impl SimulatedFile {
    fn world(&self) -> io::Result<MutexGuard<'_, World>> {
        let world = self.disk.world();
        if world.epoch == self.epoch { Ok(world) } else { Err(io::Error::other("the process is dead")) }
    }
}

impl DiskFile for SimulatedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world()?;
        let result = world.operation();
        let kept = match &result {
            Ok(()) => bytes.len(),
            Err(_) => world.below(bytes.len() as u64 + 1) as usize,
        };
        world.counts.writes += 1;
        world.counts.bytes_written += kept as u64;
        let inode = world.inode(self.inode);
        inode.bytes.extend_from_slice(&bytes[..kept]);
        inode.pending.push(ByteChange::Append { bytes: bytes[..kept].to_vec(), written: true });
        result
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let mut world = self.world()?;
        let result = world.operation();
        world.counts.syncs += 1;
        if world.syncs_ignored {
            return result;
        }
        let halted = world.halted;
        let inode = world.inode(self.inode);
        if let Err(error) = result {
            // A process that never got here did not ask the kernel, so nothing was given up.
            if !halted {
                inode.forget_pending();
            }
            return Err(error);
        }
        for change in std::mem::take(&mut inode.pending) {
            change.apply(&mut inode.durable);
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut world = self.world()?;
        world.operation()?;
        let inode = world.inode(self.inode);
        inode.bytes.resize(len as usize, 0);
        inode.pending.push(ByteChange::SetLen(len));
        Ok(())
    }

    fn stat(&self) -> io::Result<FileStat> {
        let mut world = self.world()?;
        world.operation()?;
        Ok(world.stat_of(self.inode))
    }
}

struct SimulatedLock {
    disk: SimulatedDisk,
    path: PathBuf,
    epoch: u64,
}

impl DiskLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut world = self.disk.world();
        if world.epoch == self.epoch {
            world.locks.remove(&self.path);
        }
    }
}
