//! The user's secret: what tells a person's orders and our own records from those of any other process.
//!
//! One file for the whole state directory, for its owner only. Agents are never given it: not in their
//! environment, not by descriptor, and the sandbox keeps its directory from them. Must not know what it seals.

use std::{
    fmt, io,
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::journal::JournalKey;

/// The file below the state directory.
pub const KEY_FILE: &str = "key";
const HEADER: &str = "gatewright-key-1 ";
const KEY_BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{}: the key that authenticates orders and journals cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: is not a key; restore it from a copy, or move it away to get a new one (runs of the old one can then only be read)", path.display())]
    Format { path: PathBuf },
    #[error("{}: the key that authenticates orders and journals cannot be made", path.display())]
    Create { path: PathBuf, source: io::Error },
}

/// The secret of the user who owns a state directory.
#[derive(Clone, PartialEq, Eq)]
pub struct UserKey([u8; KEY_BYTES]);

impl UserKey {
    /// The key below a state directory; `None` if there is none yet.
    pub fn load(state_root: &Path) -> Result<Option<UserKey>, KeyError> {
        let path = state_root.join(KEY_FILE);
        let mut text = String::new();
        let opened = std::fs::File::open(&path).and_then(|file| file.take(1024).read_to_string(&mut text));
        match opened {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(KeyError::Read { path, source }),
        }
        let hash = text.trim_end().strip_prefix(HEADER).and_then(|hex| blake3::Hash::from_hex(hex).ok());
        hash.map(|hash| Some(UserKey(*hash.as_bytes()))).ok_or(KeyError::Format { path })
    }

    /// The key, made if there is none; of several makers the first wins.
    pub fn load_or_create(state_root: &Path) -> Result<UserKey, KeyError> {
        if let Some(key) = UserKey::load(state_root)? {
            return Ok(key);
        }
        let path = state_root.join(KEY_FILE);
        create(state_root, &path).map_err(|source| KeyError::Create { path: path.clone(), source })?;
        UserKey::load(state_root)?.ok_or(KeyError::Format { path })
    }

    /// The secret of one run: what is sealed for it means nothing in another.
    pub fn for_run(&self, run: &str) -> RunKey {
        RunKey(*blake3::Hasher::new_keyed(&self.0).update(run.as_bytes()).finalize().as_bytes())
    }

    /// Whether others than the owner may look at the key.
    pub fn is_exposed(state_root: &Path) -> bool {
        std::fs::metadata(state_root.join(KEY_FILE))
            .is_ok_and(|data| data.permissions().mode().trailing_zeros() < 6)
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UserKey(hidden)")
    }
}

fn create(state_root: &Path, path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(state_root)?;
    let mut secret = [0; KEY_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let temporary = state_root.join(format!(".tmp-key-{}", std::process::id()));
    // What a process with our number left behind when it died.
    let _ = std::fs::remove_file(&temporary);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    writeln!(file, "{HEADER}{}", blake3::Hash::from_bytes(secret).to_hex())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&temporary, path);
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::File::open(state_root)?.sync_all()
}

/// The secret of one run, and what can be done with it.
#[derive(Clone, PartialEq, Eq)]
pub struct RunKey([u8; KEY_BYTES]);

impl RunKey {
    /// For the records of the journal.
    pub fn journal(&self) -> JournalKey {
        JournalKey::new(*self.derive("journal").as_bytes())
    }

    /// The seal of a text for one purpose (`order`, `run.json`, …), in hex.
    pub fn seal(&self, purpose: &str, parts: &[&[u8]]) -> String {
        self.sealed(purpose, parts).to_hex().to_string()
    }

    /// Whether a seal is the one for exactly this.
    pub fn holds(&self, purpose: &str, parts: &[&[u8]], seal: &str) -> bool {
        // Comparing hashes takes the same time wherever they differ.
        blake3::Hash::from_hex(seal).is_ok_and(|found| found == self.sealed(purpose, parts))
    }

    fn derive(&self, purpose: &str) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.0).update(purpose.as_bytes()).finalize()
    }

    fn sealed(&self, purpose: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(self.derive(purpose).as_bytes());
        for part in parts {
            // With their lengths, so that nothing moves from one part to the next.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RunKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(UserKey::load(dir.path()).unwrap(), None);
        let made = UserKey::load_or_create(dir.path()).unwrap();
        assert_eq!(UserKey::load_or_create(dir.path()).unwrap(), made);
        let mode = std::fs::metadata(dir.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!UserKey::is_exposed(dir.path()));
        std::fs::set_permissions(dir.path().join(KEY_FILE), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(UserKey::is_exposed(dir.path()));
        std::fs::write(dir.path().join(KEY_FILE), "nonsense").unwrap();
        assert!(matches!(UserKey::load_or_create(dir.path()), Err(KeyError::Format { .. })));
        assert!(!format!("{made:?} {:?}", made.for_run("r")).contains(char::is_numeric), "never printed");
    }

    #[test]
    fn a_seal_holds_for_its_run_its_purpose_and_its_parts_only() {
        let key = UserKey([7; KEY_BYTES]);
        let run = key.for_run("r1");
        let seal = run.seal("order", &[b"id", b"text"]);
        assert!(run.holds("order", &[b"id", b"text"], &seal));
        for (other, purpose, parts) in [
            (key.for_run("r2"), "order", [b"id".as_slice(), b"text"]),
            (run.clone(), "run.json", [b"id", b"text"]),
            (run.clone(), "order", [b"i", b"dtext"]),
            (run.clone(), "order", [b"id", b"Text"]),
        ] {
            assert!(!other.holds(purpose, &parts, &seal));
        }
        assert!(!run.holds("order", &[b"id", b"text"], "") && !run.holds("order", &[b"id", b"text"], "00"));
    }
}
