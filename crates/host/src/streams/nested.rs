//! Repositories inside a worktree: submodules, and whatever an agent made there. The commits of a submodule lie
//! in a folder that goes with the worktree, so the checkout's own gets them before anything refers to them. What
//! no commit of ours could hold is refused in words that say what to do.

use std::path::Path;

use gatewright_attempts::{Git, GitError};

use super::judged;

/// How git marks an entry that is a commit of another repository.
const LINK_MODE: &str = "160000";
const SHORT: usize = 10;

/// One file that differs from the last commit, or one repository in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    /// It is not there any more.
    pub gone: bool,
    pub nested: Option<Nested>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {
    /// A submodule that stands on another commit.
    Moved,
    /// A submodule with changes inside that are in no commit.
    Dirty,
    /// A repository that was not there before and is no submodule.
    Unknown,
}

/// What differs from the last commit, ignored files apart.
pub fn changes(git: &Git) -> Result<Vec<Change>, GitError> {
    let arguments = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"];
    let entries = git.names(&arguments)?;
    let known = |path: &str| is_submodule(git.folder(), path);
    Ok(entries.iter().filter_map(|entry| parse(entry, &known)).collect())
}

/// One entry of `git status --porcelain=v2`.
fn parse(entry: &str, is_submodule: &dyn Fn(&str) -> bool) -> Option<Change> {
    let (kind, rest) = entry.split_once(' ')?;
    if kind == "?" {
        // All untracked files are listed, so what ends like a folder is a repository.
        let nested = rest.ends_with('/').then_some(Nested::Unknown);
        return Some(Change { path: rest.trim_end_matches('/').to_owned(), gone: false, nested });
    }
    // Before the path: the states, the submodule, the modes and the ids, each of one version more than the last.
    let (fields, in_head, in_tree) = match kind {
        "1" => (8, 2, 4),
        "u" => (10, 2, 5),
        _ => return None,
    };
    let parts: Vec<&str> = rest.splitn(fields, ' ').collect();
    let path = (*parts.get(fields - 1)?).to_owned();
    let gone = parts[in_tree] == "000000";
    let nested = (parts[1].starts_with('S') && !gone).then(|| {
        if parts[in_head] != LINK_MODE && !is_submodule(&path) {
            Nested::Unknown
        } else if parts[1].contains(['M', 'U']) {
            Nested::Dirty
        } else {
            Nested::Moved
        }
    });
    Some(Change { path, gone, nested })
}

/// Whether the tree itself says so.
fn is_submodule(tree: &Path, path: &str) -> bool {
    let listed = Git::at(tree).names(&[
        "config",
        "--file",
        ".gitmodules",
        "-z",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ]);
    listed.unwrap_or_default().iter().any(|entry| entry.split_once('\n').is_some_and(|(_, own)| own == path))
}

/// Why this must not be committed or taken away, and what to do about it.
pub fn refusal(changes: &[Change]) -> Option<String> {
    changes.iter().find_map(|change| {
        let path = &change.path;
        match change.nested? {
            Nested::Moved => None,
            Nested::Dirty => Some(format!(
                "submodule `{path}` has changes inside that are in no commit of its own; commit them inside \
                 `{path}`, or take them back"
            )),
            Nested::Unknown => Some(format!(
                "`{path}` is a git repository of its own, and only a reference to it could be committed, not its \
                 files; remove `{path}/.git` to keep the files, move it elsewhere, or ignore it with .gitignore"
            )),
        }
    })
}

/// What the program of LFS would have made of a file begins like this.
const POINTER: &[u8] = b"version https://";

/// Changed files that belong to LFS and are staged as they are, because its program is not there: whoever has it
/// could not read them.
pub fn unfiltered(git: &Git, changes: &[Change]) -> Result<Option<String>, GitError> {
    let tracked = git.names(&["ls-files", "-z", "--", ":(attr:filter=lfs)"])?;
    for path in tracked.iter().filter(|path| changes.iter().any(|change| change.path == **path)) {
        let staged = git.bytes(&["cat-file", "blob", &format!(":{path}")])?;
        if !staged.is_empty() && !staged.starts_with(POINTER) {
            return Ok(Some(format!(
                "`{path}` belongs to LFS (filter=lfs in .gitattributes), and git-lfs does not work here; install it, or \
                 leave the file as it is"
            )));
        }
    }
    Ok(None)
}

/// A submodule and the commit that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub path: String,
    pub commit: String,
}

/// The links that this comparison (`--cached HEAD`, or two commits) ends with.
pub fn links(git: &Git, compared: &[&str]) -> Result<Vec<Link>, GitError> {
    let arguments = [&["diff", "--raw", "--no-abbrev", "--no-renames", "-z"], compared].concat();
    let parts = git.names(&arguments)?;
    let link = |pair: &[String]| {
        // `:OLD_MODE NEW_MODE OLD NEW STATUS`, then the path.
        let [about, path] = pair else { return None };
        let mut words = about.split(' ').skip(1);
        let (mode, commit) = (words.next()?, words.nth(1)?);
        (mode == LINK_MODE).then(|| Link { path: path.clone(), commit: commit.to_owned() })
    };
    Ok(parts.chunks(2).filter_map(link).collect())
}

/// Sees to it that the checkout's own submodule has this commit, and keeps it.
pub fn bring(root: &Path, tree: &Path, link: &Link, keeper: &str) -> Result<(), String> {
    let (home, there) = (root.join(&link.path), tree.join(&link.path));
    let commit = link.commit.as_str();
    if home.join(".git").exists() {
        let git = judged::writing(&home).map_err(|error| error.to_string())?;
        let reference = format!("refs/gatewright/{keeper}");
        let known = git.holds(&["cat-file", "-e", &format!("{commit}^{{commit}}")]);
        let kept = if known {
            git.text(&["update-ref", &reference, commit])
        } else {
            let from = there.to_string_lossy();
            let wanted = format!("+{commit}:{reference}");
            let quiet = ["fetch", "-q", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
            git.text(&[&quiet[..], &[&from, &wanted]].concat())
        };
        return kept.map(|_| ()).map_err(|error| {
            format!("the commits of submodule `{}` cannot be brought to your checkout: {error}", link.path)
        });
    }
    let remote =
        judged::reading(&there).text(&["for-each-ref", "--count=1", "--contains", commit, "refs/remotes"]);
    if remote.is_ok_and(|found| !found.is_empty()) {
        return Ok(());
    }
    let short = &commit[..commit.len().min(SHORT)];
    Err(format!(
        "`{0}` stands on commit {short}, which is in this worktree only: your checkout has no submodule there that could \
         keep it; push it from `{0}`, or add the submodule to your checkout (`git submodule update --init {0}`), then try again",
        link.path
    ))
}

/// Before a worktree is taken away: everything of its submodules is in the checkout's own, and nothing is there that
/// no patch could hold.
pub fn rescue(root: &Path, git: &Git, keeper: &str) -> Result<(), String> {
    let tree = git.folder();
    let changes = changes(git).unwrap_or_default();
    if let Some(message) = refusal(&changes) {
        return Err(format!("{}: {message}", tree.display()));
    }
    let all = git.names(&["ls-files", "--stage", "-z"]).unwrap_or_default();
    let paths =
        all.iter().filter(|entry| entry.starts_with(LINK_MODE)).filter_map(|entry| entry.split_once('\t'));
    for (_, path) in paths.filter(|(_, path)| tree.join(path).join(".git").exists()) {
        let Ok(commit) = judged::reading(&tree.join(path)).text(&["rev-parse", "--verify", "-q", "HEAD"])
        else {
            continue;
        };
        bring(root, tree, &Link { path: path.to_owned(), commit }, keeper)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_git_are_read_with_what_is_a_repository_of_its_own() {
        let known = |path: &str| path == "new";
        let read = |entry: &str| parse(entry, &known).unwrap();
        let id = "1111111111111111111111111111111111111111";
        let change = |path: &str, gone, nested| Change { path: path.to_owned(), gone, nested };
        for (entry, expected) in [
            ("? inner/".to_owned(), change("inner", false, Some(Nested::Unknown))),
            ("? a b".to_owned(), change("a b", false, None)),
            (format!("1 .M N... 100644 100644 100644 {id} {id} a b"), change("a b", false, None)),
            (format!("1 D. N... 100644 000000 000000 {id} {id} x"), change("x", true, None)),
            (
                format!("1 .M S.M. 160000 160000 160000 {id} {id} lib"),
                change("lib", false, Some(Nested::Dirty)),
            ),
            (
                format!("1 .M SC.. 160000 160000 160000 {id} {id} lib"),
                change("lib", false, Some(Nested::Moved)),
            ),
            (
                format!("1 A. S... 000000 160000 160000 {id} {id} in"),
                change("in", false, Some(Nested::Unknown)),
            ),
            (
                format!("1 A. S... 000000 160000 160000 {id} {id} new"),
                change("new", false, Some(Nested::Moved)),
            ),
            (format!("u UU N... 100644 100644 100644 100644 {id} {id} {id} c d"), change("c d", false, None)),
        ] {
            assert_eq!(read(&entry), expected, "{entry}");
        }
    }
}
