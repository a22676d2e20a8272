//! What is surely on a simulated disk, for those who check others. It reads without operations: faults do not hit it.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::world::{Node, not_found};
use super::{Disk, DiskFile, DiskLock, FileIdentity, FileKind, FileStat, SimulatedDisk};

/// Only bytes and names that survive every power cut.
#[derive(Clone)]
pub struct DurableView {
    pub(super) disk: SimulatedDisk,
}

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

impl Disk for DurableView {
    fn below(&self, _folder: &Path) -> io::Result<Box<dyn Disk + '_>> {
        Ok(Box::new(self.clone()))
    }

    fn read_range(&self, path: &Path, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let world = self.disk.world();
        let Some(Node::File(inode)) = world.durable_names.get(path) else { return Err(not_found(path)) };
        let bytes = world.inodes.get(inode).map_or(&[][..], |inode| &inode.durable);
        let start = (offset as usize).min(bytes.len());
        let end = start.saturating_add(usize::try_from(bytes_max).unwrap_or(usize::MAX)).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        let world = self.disk.world();
        let (inode, kind) = match world.durable_names.get(path) {
            Some(Node::File(inode)) => (*inode, FileKind::File),
            Some(Node::Directory) => (0, FileKind::Directory),
            None => return Err(not_found(path)),
        };
        let len = world.inodes.get(&inode).map_or(0, |inode| inode.durable.len() as u64);
        Ok(FileStat { len, identity: FileIdentity { device: 0, inode }, kind, modified_ns: 0, changed_ns: 0 })
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let world = self.disk.world();
        let inside = world.durable_names.keys().filter(|name| name.parent() == Some(path));
        Ok(inside.filter_map(|name| name.file_name().map(OsString::from)).collect())
    }

    fn lock_is_held(&self, path: &Path) -> io::Result<bool> {
        Ok(self.disk.world().locks.contains(path))
    }

    fn open_append(&self, _path: &Path) -> io::Result<Box<dyn DiskFile>> {
        read_only()
    }

    fn create_new(&self, _path: &Path) -> io::Result<Box<dyn DiskFile>> {
        read_only()
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        read_only()
    }

    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove_file(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn try_lock(&self, _path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        read_only()
    }
}
