//! Files that look like secrets: by name, and by the one thing in a file that is never an accident.

use std::path::Path;

use gatewright_workflow::globs::{Bare, Globs};

use crate::plain_file;

const NAMES: [&str; 20] = [
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    "credentials.json",
];
/// Made to be shared.
const HARMLESS: [&str; 5] = [".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"];
/// More is not read for the look inside.
const LOOK_BYTES: u64 = 1024 * 1024;

/// Why this file of the tree must not be committed.
pub fn looks_secret(root: &Path, path: &str) -> Option<&'static str> {
    let is = |patterns: &[&str]| Globs::new(patterns, Bare::Anywhere).contains(path);
    if is(&HARMLESS) {
        return None;
    }
    if is(&NAMES) {
        return Some("its name is that of a file with secrets");
    }
    let file = root.join(path);
    let small = std::fs::symlink_metadata(&file).is_ok_and(|data| data.is_file() && data.len() <= LOOK_BYTES);
    let bytes = if small { plain_file::read(&file).unwrap_or_default() } else { Vec::new() };
    holds_private_key(&bytes).then_some("a private key is in it")
}

/// A whole line `-----BEGIN … PRIVATE KEY-----`: a text that only speaks of one has it elsewhere.
fn holds_private_key(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii();
        line.starts_with(b"-----BEGIN ") && line.ends_with(b"PRIVATE KEY-----")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_are_seen_and_examples_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let key = format!("x\n-----BEGIN OPENSSH {}\nabc\n", "PRIVATE KEY-----");
        std::fs::write(folder.path().join("notes.txt"), key).unwrap();
        std::fs::write(folder.path().join("plain.txt"), "about a -----BEGIN X PRIVATE KEY----- line")
            .unwrap();
        for (path, secret) in [
            (".env", true),
            ("deploy/.env.production", true),
            (".env.example", false),
            ("certs/server.pem", true),
            ("id_ed25519.pub", false),
            ("notes.txt", true),
            ("plain.txt", false),
            ("src/keys.rs", false),
        ] {
            assert_eq!(looks_secret(folder.path(), path).is_some(), secret, "{path}");
        }
    }
}
