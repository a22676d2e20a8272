//! A fingerprint of the work: two equal ones mean that nothing was changed in between.

use std::path::Path;

use gatewright_core::{fact::ArtifactFact, ids::ContentHash};

use crate::{plain_file, run_context::RunContext, streams::judged};

/// Over what the attempt staged and the state of the repository.
///
/// `tree` is the picture of the working tree, if one was taken.
pub fn fingerprint(
    context: &RunContext,
    workdir: &Path,
    artifacts: &[ArtifactFact],
    tree: &str,
) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    for fact in artifacts {
        hasher.update(fact.name.as_str().as_bytes());
        hasher.update(fact.hash.as_ref().map_or(b"-".as_slice(), |hash| hash.0.as_bytes()));
    }
    if tree.is_empty() {
        hasher.update(tree_hash(workdir, &context.meta.run_dir).as_bytes());
    } else {
        hasher.update(tree.as_bytes());
    }
    ContentHash(hasher.finalize().to_hex().to_string())
}

/// The commit and every uncommitted change, by content; empty outside a git repository.
pub fn tree_hash(root: &Path, except: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    let Some(head) = git(root, &["rev-parse", "HEAD"]).or_else(|| git(root, &["rev-parse", "--git-dir"]))
    else {
        return String::new();
    };
    hasher.update(&head);
    let status = git(root, &["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])
        .unwrap_or_default();
    for entry in status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3) {
        let name = String::from_utf8_lossy(&entry[3..]).into_owned();
        let path = root.join(&name);
        if path.starts_with(except) {
            continue;
        }
        hasher.update(entry);
        match plain_file::read(&path) {
            Ok(bytes) => hasher.update(blake3::hash(&bytes).as_bytes()),
            Err(_) => hasher.update(b"-"),
        };
    }
    hasher.finalize().to_hex().to_string()
}

/// The branch that is checked out; none outside a repository, before the first commit and beside branches.
pub fn branch(root: &Path) -> Option<String> {
    let name = git(root, &["symbolic-ref", "--short", "-q", "HEAD"])?;
    let name = String::from_utf8_lossy(&name).trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// Git that only looks, where agents may have worked: nothing is fetched, and what a filter runs can write nothing.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    // An object that is not there is not fetched: where from, and by which program, an agent may have said.
    let git = judged::reading(root)
        .with_variable("GIT_NO_LAZY_FETCH", "1")
        .with_variable("GIT_ALLOW_PROTOCOL", "none");
    git.bytes(arguments).ok()
}
