//! A folder in which others can write, too, behind the `Disk` trait. Every name is looked up from an open folder, and no
//! link on the way is followed, so that whoever puts one there meanwhile leads nobody anywhere. Must not know what the
//! files mean.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::real::{RealFile, stat_of};
use super::{Disk, DiskFile, DiskLock, FileKind, FileStat};
use crate::{fault, plain_file};

/// What becomes of links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Refused,
    /// Followed as long as they lead to somewhere below the folder; where the kernel cannot tell, refused.
    Inside,
}

/// Everything below one folder.
#[derive(Debug)]
pub struct BelowFolder {
    folder: OwnedFd,
    path: PathBuf,
    links: Links,
}

impl BelowFolder {
    /// How the folder itself is reached is the user's matter.
    pub fn open(path: &Path, links: Links) -> io::Result<BelowFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(BelowFolder { folder, path: path.to_owned(), links })
    }

    /// The names on the way from the folder to this place.
    fn names<'p>(&self, path: &'p Path) -> io::Result<Vec<&'p OsStr>> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it leads out of its folder");
        let inside = path.strip_prefix(&self.path).map_err(|_| outside())?;
        let name = |part| match part {
            Component::Normal(name) => Ok(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                Err(outside())
            }
        };
        inside.components().map(name).collect()
    }

    fn folder_of(&self, names: &[&OsStr]) -> io::Result<OwnedFd> {
        if names.is_empty() {
            return self.folder.try_clone();
        }
        #[cfg(target_os = "linux")]
        match self.folder_at_once(names) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other.map_err(refused),
        }
        let mut folder = self.folder.try_clone()?;
        for name in names {
            folder = step(&folder, name)?;
        }
        Ok(folder)
    }

    /// In one call; older kernels, and filters in containers, do not have it.
    #[cfg(target_os = "linux")]
    fn folder_at_once(&self, names: &[&OsStr]) -> rustix::io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let way: PathBuf = names.iter().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = match self.links {
            Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        };
        // Where somebody moves folders meanwhile the kernel asks for another try.
        let mut tries = 16;
        loop {
            match rustix::fs::openat2(&self.folder, &way, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries > 0 => tries -= 1,
                other => return other,
            }
        }
    }

    /// The folder that holds a name, and the name.
    fn place<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let names = self.names(path)?;
        let (name, folders) =
            names.split_last().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        Ok((self.folder_of(folders)?, name))
    }

    fn open_file(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let (folder, name) = self.place(path)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o666));
        Ok(File::from(opened.map_err(refused)?))
    }
}

fn step(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(refused)
}

/// A link in the place of a folder is told like anything else that is none.
fn refused(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::XDEV => io::Error::new(io::ErrorKind::NotADirectory, "a link is in the way"),
        other => other.into(),
    }
}

impl Disk for BelowFolder {
    fn read_range(&self, path: &Path, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        fault::point("open")?;
        let mut file = plain_file::of_file(self.open_file(path, OFlags::RDONLY | OFlags::NONBLOCK)?)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        if self.names(path)?.is_empty() {
            return Ok(stat_of(&File::from(self.folder.try_clone()?).metadata()?));
        }
        let (folder, name) = self.place(path)?;
        // A name that is not opened, because opening a pipe or a device does things.
        let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(super::real::stat_of_name(&found, kind_of(&found)))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        fault::point("open")?;
        Ok(Box::new(RealFile(self.open_file(path, OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK)?)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        fault::point("create")?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        Ok(Box::new(RealFile(self.open_file(path, flags)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let names = self.names(path)?;
        if self.folder_of(&names).is_ok() {
            return Ok(());
        }
        let mut folder = self.folder.try_clone()?;
        for name in names {
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => folder = step(&folder, name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fault::point("fsync")?;
        File::from(self.folder_of(&self.names(path)?)?).sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fault::point("rename")?;
        let ((from, old), (to, new)) = (self.place(from)?, self.place(to)?);
        Ok(rustix::fs::renameat(from, old, to, new)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fault::point("link")?;
        let ((from, old), (to, new)) = (self.place(from)?, self.place(to)?);
        Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fault::point("remove")?;
        let (folder, name) = self.place(path)?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStringExt;
        let entries = rustix::fs::Dir::new(self.folder_of(&self.names(path)?)?)?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Nothing that is locked lies where others write.
    fn try_lock(&self, _path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock_is_held(&self, _path: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn below(&self, folder: &Path) -> io::Result<Box<dyn Disk + '_>> {
        let inner = self.folder_of(&self.names(folder)?)?;
        Ok(Box::new(BelowFolder { folder: inner, path: folder.to_owned(), links: self.links }))
    }
}

fn kind_of(stat: &rustix::fs::Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::atomic_file::{self, Durability};

    struct Place {
        _dir: tempfile::TempDir,
        folder: PathBuf,
        outside: PathBuf,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let (folder, outside) = (dir.path().join("folder"), dir.path().join("outside"));
        for path in [&folder, &outside] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(outside.join("file"), "of the user").unwrap();
        Place { _dir: dir, folder, outside }
    }

    #[test]
    fn files_below_the_folder_are_like_any_other() {
        let Place { folder, .. } = &place();
        let disk = BelowFolder::open(folder, Links::Refused).unwrap();
        let file = folder.join("a/b/file");
        atomic_file::create_dir_durable(&disk, file.parent().unwrap()).unwrap();
        atomic_file::replace(&disk, &file, b"one", Durability::Durable).unwrap();
        atomic_file::replace(&disk, &file, b"three", Durability::Rebuildable).unwrap();
        assert_eq!(disk.read(&file).unwrap(), b"three");
        assert_eq!(disk.read_range(&file, 2, 2).unwrap(), b"re");
        assert_eq!(std::fs::read(&file).unwrap(), b"three");
        assert_eq!(disk.stat(&file).unwrap(), super::super::RealDisk.stat(&file).unwrap());
        assert_eq!(disk.list_dir(file.parent().unwrap()).unwrap(), ["file"]);
        disk.remove_file(&file).unwrap();
        assert!(!disk.exists(&file).unwrap());
    }

    /// Whatever is done with a name, a link on the way to it leads nowhere.
    #[test]
    fn no_link_on_the_way_is_followed() {
        let Place { folder, outside, .. } = &place();
        symlink(outside, folder.join("link")).unwrap();
        symlink(outside.join("file"), folder.join("name")).unwrap();
        let disk = BelowFolder::open(folder, Links::Refused).unwrap();
        let through = folder.join("link/file");
        assert!(disk.read(&through).is_err());
        assert!(disk.stat(&through).is_err());
        assert!(disk.open_append(&through).is_err());
        assert!(disk.create_new(&folder.join("link/new")).is_err());
        assert!(disk.create_dir_all(&folder.join("link/new")).is_err());
        assert!(disk.remove_file(&through).is_err());
        assert!(disk.sync_dir(&folder.join("link")).is_err());
        assert!(disk.list_dir(&folder.join("link")).is_err());
        std::fs::write(folder.join("own"), "x").unwrap();
        assert!(disk.rename(&folder.join("own"), &through).is_err());
        assert!(disk.link(&folder.join("own"), &folder.join("link/new")).is_err());
        assert!(disk.read(&folder.join("name")).is_err());
        assert!(disk.open_append(&folder.join("name")).is_err());
        assert_eq!(disk.stat(&folder.join("name")).unwrap().kind, FileKind::Other);
        assert!(disk.read(&folder.join("../outside/file")).is_err());
        assert!(disk.read(&outside.join("file")).is_err());
        // The link itself can be replaced and taken away.
        atomic_file::replace(&disk, &folder.join("name"), b"ours", Durability::Durable).unwrap();
        disk.remove_file(&folder.join("link")).unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "of the user");
        assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1);
    }

    /// A folder that becomes a link while files are written below it, again and again.
    #[test]
    fn a_link_that_comes_between_two_looks_leads_nowhere() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let Place { folder, outside, .. } = &place();
        let (real, aside) = (folder.join("sub"), folder.join("aside"));
        std::fs::create_dir(&real).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::fs::rename(&real, &aside).unwrap();
                    symlink(outside, &real).unwrap();
                    std::fs::remove_file(&real).unwrap();
                    std::fs::rename(&aside, &real).unwrap();
                    std::thread::yield_now();
                }
            });
            let disk = BelowFolder::open(folder, Links::Refused).unwrap();
            let mut written = 0;
            for number in 0..2_000 {
                let made = disk.create_new(&real.join(format!("new-{number}")));
                written += u32::from(made.is_ok());
                let _ = atomic_file::replace(&disk, &real.join("file"), b"ours", Durability::Rebuildable);
                let _ = disk.remove_file(&real.join("file"));
            }
            over.store(true, Ordering::Relaxed);
            assert!(written > 0, "nothing was written at all");
        });
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "of the user");
        assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1, "something was written through the link");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_that_stay_inside_can_be_allowed() {
        let Place { folder, outside, .. } = &place();
        std::fs::create_dir(folder.join("real")).unwrap();
        std::fs::write(folder.join("real/file"), "inside").unwrap();
        symlink("real", folder.join("inside")).unwrap();
        symlink(outside, folder.join("out")).unwrap();
        let disk = BelowFolder::open(folder, Links::Inside).unwrap();
        assert_eq!(disk.read(&folder.join("inside/file")).unwrap(), b"inside");
        assert!(disk.read(&folder.join("out/file")).is_err());
        assert!(disk.remove_file(&folder.join("out/file")).is_err());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let Place { folder, .. } = &place();
        let pipe = folder.join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let disk = BelowFolder::open(folder, Links::Refused).unwrap();
        assert!(disk.read(&pipe).is_err());
        assert!(super::super::RealDisk.read(&pipe).is_err());
    }
}
