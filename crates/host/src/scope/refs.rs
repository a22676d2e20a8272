//! Where the branches and tags of a repository stand, and its `HEAD`, read from git's own files; for whoever may change
//! nothing also what else is lost when it is gone: what is staged, what branches stood for before, a merge that is not
//! over, and all of that in repositories inside. Must not know roles.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    name,
    picture::{Picture, common_git_dir, git_dir},
    planted::REPOSITORIES_MAX,
    protect::{Marks, mark_of},
};
use crate::{plain_file, streams::judged};

/// What stands before the names of what is kept here: they are places below `.git`.
const BELOW: &str = ".git/";
/// Branches of runs are the engine's, and what leads to one of them.
const OF_RUNS: &str = "refs/heads/gatewright/";
/// Objects that git takes for others.
const REPLACED: &str = "refs/replace/";
/// What was fetched, at any time and by anybody, also by git itself, and what is pruned when it is gone elsewhere.
const OF_REMOTES: &str = "refs/remotes/";
const FETCHED_AHEAD: &str = "refs/prefetch/";
/// More are not looked at one by one.
const REFS_MAX: usize = 50_000;
/// Logs of branches that are read.
const LOGS_MAX: usize = 5_000;
/// What is older git itself may throw away when it tidies up, stashes apart.
const LOGS_KEPT: Duration = Duration::from_hours(30 * 24);
const LOGS: &str = "logs";
const STASHES: &str = "logs/refs/stash";
const INDEX: &str = "index";
/// What git keeps of something that is not over.
const UNDER_WAY: [&str; 9] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "rebase-merge/done",
    "rebase-merge/git-rebase-todo",
    "rebase-apply/next",
];

/// Whether all branches of a repository are in one place, which whoever may commit may write.
pub fn are_together(folder: &Path) -> bool {
    common_git_dir(folder).is_some_and(|common| common.join("reftable").exists())
}

/// Where everything stands that is the user's.
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
        !name.starts_with(OF_RUNS)
            && !name.starts_with(OF_REMOTES)
            && !name.starts_with(FETCHED_AHEAD)
            && !id.strip_prefix("ref:").is_some_and(|to| to.trim().starts_with(OF_RUNS))
    });
    found.into_iter().map(|(name, id)| (format!("{BELOW}{name}"), id)).collect()
}

/// The same, and everything else in `.git` that a reader could take away, also of repositories inside. `known` is what
/// was there before: what of a log was there then is looked for now.
pub fn look_closely(folder: &Path, picture: &Picture, known: Option<&Marks>) -> Marks {
    let mut found = closely(folder, "", known);
    for inside in picture.repository_folders().take(REPOSITORIES_MAX) {
        found.extend(closely(&folder.join(name::path_of(inside)), &format!("{inside}/"), known));
    }
    found
}

fn closely(folder: &Path, prefix: &str, known: Option<&Marks>) -> Marks {
    let (Some(own), Some(common)) = (git_dir(folder), common_git_dir(folder)) else { return Marks::new() };
    let mut found = look(folder);
    // By what is staged: the file is another whenever somebody asks what has changed.
    let staged = judged::reading(folder).bytes(&["ls-files", "-s", "-v", "-z"]);
    let mark = staged.map_or_else(|_| "unreadable".to_owned(), |all| hash(&all));
    found.insert(format!("{BELOW}{INDEX}"), mark);
    for name in UNDER_WAY {
        found.extend(mark_of(&own.join(name)).map(|mark| (format!("{BELOW}{name}"), mark)));
    }
    let mut logs = Vec::new();
    list_logs(&common.join(LOGS), LOGS, &mut logs);
    let since = SystemTime::now().checked_sub(LOGS_KEPT).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    for name in logs {
        let Ok(bytes) = plain_file::read(&common.join(name::path_of(&name))) else { continue };
        let full = format!("{BELOW}{name}");
        let before = known.and_then(|known| known.get(&format!("{prefix}{full}")));
        let since = if name == STASHES { 0 } else { since.unwrap_or_default().as_secs() };
        let mark = match before.and_then(|mark| LogMark::parse(mark)) {
            Some(before) => LogMark::of(&bytes, before.since, before.entries),
            None => LogMark::of(&bytes, since, usize::MAX),
        };
        found.insert(full, mark.text());
    }
    found.into_iter().map(|(name, mark)| (format!("{prefix}{name}"), mark)).collect()
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

fn list_logs(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{below}/{}", name::of_bytes(entry.file_name().as_encoded_bytes()));
        let reference = name.strip_prefix("logs/").unwrap_or(&name);
        let theirs = [OF_RUNS, OF_REMOTES, FETCHED_AHEAD]
            .iter()
            .any(|other| format!("{reference}/").starts_with(other));
        if found.len() >= LOGS_MAX || theirs || name.strip_suffix(".lock").is_some() {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list_logs(&entry.path(), &name, found),
            Ok(kind) if kind.is_file() => found.push(name),
            Ok(_) | Err(_) => {}
        }
    }
}

/// The first entries of a log that are not older than a moment. Git only adds to a log, and throws away what is old.
#[derive(Debug, PartialEq, Eq)]
struct LogMark {
    since: u64,
    entries: usize,
    hash: String,
}

impl LogMark {
    fn of(bytes: &[u8], since: u64, entries_max: usize) -> LogMark {
        let is_young = |line: &&[u8]| at(line).is_some_and(|at| at >= since);
        let young: Vec<&[u8]> =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(is_young).take(entries_max).collect();
        LogMark { since, entries: young.len(), hash: hash(&young.concat()) }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.since, self.entries, self.hash)
    }

    fn parse(text: &str) -> Option<LogMark> {
        let mut words = text.split(' ');
        let (since, entries, hash) = (words.next()?, words.next()?, words.next()?);
        Some(LogMark { since: since.parse().ok()?, entries: entries.parse().ok()?, hash: hash.to_owned() })
    }
}

/// When an entry of a log was made: `OLD NEW NAME <MAIL> SECONDS ZONE\tWORDS`.
fn at(line: &[u8]) -> Option<u64> {
    let who = line.split(|byte| *byte == b'\t').next()?;
    let behind = who.rsplit(|byte| *byte == b'>').next()?;
    std::str::from_utf8(behind).ok()?.split_whitespace().next()?.parse().ok()
}

/// Whether this is no branch, tag or `HEAD`, but something else that git keeps: nobody can put it back by a command.
pub fn is_kept(name: &str) -> bool {
    let below = name.rsplit_once(BELOW).map_or(name, |(_, below)| below);
    below == INDEX || below.starts_with("logs/") || UNDER_WAY.contains(&below)
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
        if found.len() >= REFS_MAX || format!("{name}/") == OF_REMOTES {
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
    let deleted = |name: &str| changed.iter().any(|(other, how)| other == name && *how == "deleted");
    // The log goes with its branch.
    let told_by_branch = |name: &str| deleted(&name.replacen(".git/logs/", BELOW, 1));
    let wanted = |(name, how): &&(String, &'static str)| {
        takes_away(name, how) && !(name.contains(".git/logs/") && told_by_branch(name))
    };
    changed.iter().filter(wanted).cloned().collect()
}

/// `.git/refs/heads/main` is called `refs/heads/main`.
pub fn shown(name: &str) -> &str {
    name.strip_prefix(BELOW).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A repository with something staged, something stashed, a note, and another repository inside.
    fn kept() -> (tempfile::TempDir, impl Fn(&str)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_owned();
        let sh = move |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-ec", script]).current_dir(&folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
            for (name, value) in [("NAME", "x"), ("EMAIL", "x@x")] {
                command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
            }
            assert!(command.status().unwrap().success(), "{script}");
        };
        sh("git init -q -b main; echo a > a; git add a; git commit -qm one; git commit -q --allow-empty -m two
            git notes add -m note; git update-ref refs/own/thing HEAD; git update-ref refs/prefetch/x HEAD
            echo b > a; git stash -q; echo c > a; git stash -q; echo s > staged; git add staged
            git init -q -b main inner; git -C inner commit -q --allow-empty -m one; git -C inner tag v1");
        (dir, sh)
    }

    #[test]
    fn what_a_reader_takes_away_is_found_wherever_git_keeps_it() {
        for (script, expected) in [
            ("touch a; git status >/dev/null; git log -g >/dev/null", &[][..]),
            ("git tag new; git commit -q --allow-empty -m three", &[".git/refs/heads/main modified"]),
            ("rm .git/index", &[".git/index modified"]),
            ("git reset -q", &[".git/index modified"]),
            ("git update-index --skip-worktree a", &[".git/index modified"]),
            ("git notes remove HEAD", &[".git/refs/notes/commits modified"]),
            ("git update-ref -d refs/prefetch/x", &[]),
            ("git update-ref -d refs/own/thing", &[".git/refs/own/thing deleted"]),
            ("git stash drop -q stash@{1}", &[".git/logs/refs/stash modified"]),
            ("rm .git/logs/HEAD", &[".git/logs/HEAD deleted"]),
            ("sed -i 2d .git/logs/refs/heads/main", &[".git/logs/refs/heads/main modified"]),
            ("git -C inner tag -d v1 >/dev/null", &["inner/.git/refs/tags/v1 deleted"]),
            ("rm inner/.git/logs/HEAD", &["inner/.git/logs/HEAD deleted"]),
        ] {
            let (dir, sh) = kept();
            let inner = [("inner/.git".to_owned(), String::new())];
            let picture = Picture { repositories: Some(inner.into()), ..Picture::default() };
            let before = look_closely(dir.path(), &picture, None);
            sh(script);
            let found = moved(&before, &look_closely(dir.path(), &picture, Some(&before)));
            let words: Vec<String> = found.iter().map(|(name, how)| format!("{name} {how}")).collect();
            assert_eq!(words, expected, "{script}");
        }
    }

    #[test]
    fn old_entries_of_a_log_are_gits_to_throw_away() {
        let entry = |at: u64| format!("0 1 A <a@a> {at} +0000\tcommit: x > y\n");
        let before = LogMark::of(format!("{}{}", entry(5), entry(20)).as_bytes(), 10, usize::MAX);
        assert_eq!(LogMark::parse(&before.text()), Some(LogMark { ..before }));
        let before = LogMark::of(format!("{}{}", entry(5), entry(20)).as_bytes(), 10, usize::MAX);
        let now = |text: String| LogMark::of(text.as_bytes(), before.since, before.entries);
        assert_eq!(now(entry(20) + &entry(30)), before);
        assert_ne!(now(entry(5) + &entry(30)), before);
        assert_ne!(now(entry(5)), before);
    }

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
