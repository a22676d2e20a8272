//! The temporary folder of one attempt: found again by whoever cleans up, short enough for sockets.
//! It must not know who works in it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the temporary folder of this attempt (or check) is, below the system's. The name follows from the
/// owner's path, so that a folder whose supervisor was killed is found and removed.
pub fn private_tmp_path(owner: &Path) -> PathBuf {
    let hash = blake3::hash(owner.as_os_str().as_encoded_bytes()).to_hex();
    std::env::temp_dir().join(format!("gatewright-{}", &hash[..16]))
}

/// Where the temporary folder of one of many short processes is: below a folder that they have in common, so that
/// all of them may have the same sandbox. `group` is whose they are.
pub fn grouped_tmp_path(group: &Path, owner: &Path) -> PathBuf {
    let hash = blake3::hash(owner.as_os_str().as_encoded_bytes()).to_hex();
    private_tmp_path(group).join(&hash[..16])
}

/// Makes the folder that a group has in common, unless it is there already and the user's own.
pub fn create_group_tmp(group: &Path) -> io::Result<PathBuf> {
    let path = private_tmp_path(group);
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            is_own_folder(&path, &fs::symlink_metadata(&path)?).map(|()| path)
        }
        made => made.map(|()| path),
    }
}

/// Removes it with everything in it, when nobody of the group is at work any more.
pub fn remove_group_tmp(group: &Path) {
    // What cannot be removed is the system's to clean.
    drop(remove(&private_tmp_path(group)));
}

/// Makes it, empty and for the user only. What an interrupted attempt left there is removed; what is not
/// ours is refused.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().mode(0o700).create(path);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if is_empty(path) {
                return Ok(());
            }
            remove(path)?;
            make()
        }
        made => made,
    }
}

/// It is as if it had just been made.
pub(crate) fn is_empty(path: &Path) -> bool {
    let as_made = |data: &fs::Metadata| is_own_folder(path, data).is_ok() && data.mode() & 0o777 == 0o700;
    fs::symlink_metadata(path).is_ok_and(|data| as_made(&data))
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes it with everything in it. One that is gone is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let data = match fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // Whoever worked there may have put something else in its place; only the name of a link is removed.
    if !data.is_dir() && data.uid() == rustix::process::geteuid().as_raw() {
        return fs::remove_file(path);
    }
    is_own_folder(path, &data)?;
    fs::remove_dir_all(path)
}

fn is_own_folder(path: &Path, data: &fs::Metadata) -> io::Result<()> {
    if data.is_dir() && data.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("{} is there and is not a folder of yours", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// One that no other test has.
#[cfg(test)]
pub(crate) fn tests_path(root: &Path) -> PathBuf {
    root.join("private")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_new_each_time_whatever_was_put_in_its_place() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("private");
        create(&path).unwrap();
        fs::write(path.join("left"), "").unwrap();
        assert!(!is_empty(&path));
        create(&path).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(!is_empty(&path), "not as it was made");
        create(&path).unwrap();
        assert!(is_empty(&path));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        remove(&path).unwrap();
        remove(&path).unwrap();
        fs::write(root.path().join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(root.path(), &path).unwrap();
        create(&path).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_dir() && is_empty(&path));
        assert!(root.path().join("kept").exists());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "").unwrap();
        create(&path).unwrap();
        assert!(is_empty(&path));
    }
}
