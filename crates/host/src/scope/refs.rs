//! Where the branches and tags of a repository stand, and its `HEAD`, read from git's own files. Must not know roles.

use std::{fs, path::Path};

use super::{
    name,
    picture::{common_git_dir, git_dir},
    protect::Marks,
};
use crate::{plain_file, streams::judged};

/// What stands before the names of what is kept here: they are places below `.git`.
const BELOW: &str = ".git/";
/// Branches of runs are the engine's, and what leads to one of them.
const OF_RUNS: &str = "refs/heads/gatewright/";
/// Objects that git takes for others.
const REPLACED: &str = "refs/replace/";
/// More are not looked at one by one.
const REFS_MAX: usize = 50_000;

/// Whether all branches of a repository are in one place, which whoever may commit may write.
pub fn are_together(folder: &Path) -> bool {
    common_git_dir(folder).is_some_and(|common| common.join("reftable").exists())
}

/// Where everything stands that is the user's. What remotes have is fetched at any time, by anybody.
pub fn look(folder: &Path) -> Marks {
    let (Some(own), Some(common)) = (git_dir(folder), common_git_dir(folder)) else { return Marks::new() };
    let mut found = Marks::new();
    if are_together(folder) {
        let said = judged::reading(folder).text(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let lines = said.unwrap_or_default();
        let lines = lines.lines().filter_map(|line| line.split_once(' '));
        found.extend(lines.map(|(name, id)| (name.to_owned(), id.to_owned())));
    } else {
        packed(&common, &mut found);
        loose(&common.join("refs"), "refs", &mut found);
    }
    if let Ok(head) = plain_file::read_to_string(&own.join("HEAD")) {
        // A commit that is checked out without a branch, or the branch; where that stands is its own matter.
        found.insert("HEAD".to_owned(), head.trim().to_owned());
    }
    found.retain(|name, id| {
        let known = name == "HEAD"
            || name == "refs/stash"
            || ["refs/tags/", REPLACED, "refs/notes/"].iter().any(|folder| name.starts_with(folder));
        (known || (name.starts_with("refs/heads/") && !name.starts_with(OF_RUNS)))
            && !id.strip_prefix("ref:").is_some_and(|to| to.trim().starts_with(OF_RUNS))
    });
    found.into_iter().map(|(name, id)| (format!("{BELOW}{name}"), id)).collect()
}

fn packed(common: &Path, found: &mut Marks) {
    let bytes = plain_file::read(&common.join("packed-refs")).unwrap_or_default();
    for line in bytes.split(|byte| *byte == b'\n').take(REFS_MAX) {
        let line = name::of_bytes(line);
        if let Some((id, name)) = line.split_once(' ').filter(|_| !line.starts_with(['#', '^'])) {
            found.insert(name.trim().to_owned(), id.to_owned());
        }
    }
}

fn loose(folder: &Path, below: &str, found: &mut Marks) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{below}/{}", name::of_bytes(entry.file_name().as_encoded_bytes()));
        let Ok(kind) = entry.file_type() else { continue };
        if found.len() >= REFS_MAX || name == "refs/remotes" {
            continue;
        }
        if kind.is_dir() {
            loose(&entry.path(), &name, found);
        } else if name.strip_suffix(".lock").is_none()
            && let Ok(text) = plain_file::read_to_string(&entry.path())
        {
            found.insert(name, text.trim().to_owned());
        }
    }
}

/// What is no longer where it stood. A new branch or tag takes nothing away from anybody; what makes git take one
/// object for another does.
pub fn moved(before: &Marks, after: &Marks) -> Vec<(String, &'static str)> {
    let changed = super::protect::differing(before, after);
    let takes_away = |name: &str, how: &str| how != "added" || shown(name).starts_with(REPLACED);
    changed.into_iter().filter(|(name, how)| takes_away(name, how)).collect()
}

/// `.git/refs/heads/main` is called `refs/heads/main`.
pub fn shown(name: &str) -> &str {
    name.strip_prefix(BELOW).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn branches_and_tags_are_known_wherever_git_keeps_them() {
        let dir = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"];
            let all = [who.as_slice(), arguments].concat();
            assert!(Command::new("git").args(all).current_dir(dir.path()).status().unwrap().success());
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        for name in ["other", "deep/er", "gatewright/run/step"] {
            git(&["branch", name]);
        }
        git(&["tag", "v1"]);
        git(&["symbolic-ref", "refs/heads/mine", "refs/heads/gatewright/run/step"]);
        let loose = look(dir.path());
        git(&["pack-refs", "--all"]);
        let before = look(dir.path());
        assert_eq!(before, loose);
        let names: Vec<&str> = before.keys().map(|name| shown(name)).collect();
        assert_eq!(
            names,
            ["HEAD", "refs/heads/deep/er", "refs/heads/main", "refs/heads/other", "refs/tags/v1"]
        );
        git(&["branch", "-q", "-D", "other"]);
        git(&["tag", "-d", "v1"]);
        git(&["branch", "new"]);
        git(&["commit", "-q", "--allow-empty", "-m", "two"]);
        git(&["checkout", "-q", "--detach"]);
        let found = moved(&before, &look(dir.path()));
        let expected = [
            ("refs/heads/other", "deleted"),
            ("refs/tags/v1", "deleted"),
            ("HEAD", "modified"),
            ("refs/heads/main", "modified"),
        ];
        for (name, how) in expected {
            assert!(found.contains(&(format!(".git/{name}"), how)), "{name} {how}: {found:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
}
