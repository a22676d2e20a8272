//! What an attempt left for git to run: settings that name programs, hooks, and files of the tree that the user's own
//! settings name. The engine's git is shut in where it may come to run them; the user's is not, so they are named.
//! Settings of the repository itself are protected files and no matter of this.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gatewright_attempts::Git;
use gatewright_core::fact::{Intrusion, IntrusionKind};

use super::{
    listed, name,
    picture::{Difference, Picture, common_git_dir, git_dir},
    protect::{Marks, differing, mark_of},
};
use crate::streams::judged;

/// Repositories inside a folder that are looked at, and files below each.
pub(super) const REPOSITORIES_MAX: usize = 200;
const FILES_MAX: usize = 500;

/// Settings whose value git runs, or that lead it to others: the beginning and the end of their names.
const PROGRAMS: [(&str, &str); 36] = [
    ("alias.", ""),
    ("browser.", ".cmd"),
    ("core.alternaterefscommand", ""),
    ("core.askpass", ""),
    ("core.editor", ""),
    ("core.fsmonitor", ""),
    ("core.gitproxy", ""),
    ("core.hookspath", ""),
    ("core.pager", ""),
    ("core.sshcommand", ""),
    ("credential.", ".helper"),
    ("credential.helper", ""),
    ("diff.", ".command"),
    ("diff.", ".textconv"),
    ("diff.external", ""),
    ("difftool.", ".cmd"),
    ("filter.", ".clean"),
    ("filter.", ".process"),
    ("filter.", ".smudge"),
    ("gpg.", "program"),
    ("gpg.ssh.defaultkeycommand", ""),
    ("hook.", ".command"),
    ("include.path", ""),
    ("includeif.", ".path"),
    ("interactive.difffilter", ""),
    ("merge.", ".driver"),
    ("mergetool.", ".cmd"),
    ("pager.", ""),
    ("remote.", ".receivepack"),
    ("remote.", ".uploadpack"),
    ("sequence.editor", ""),
    ("submodule.", ".update"),
    ("tar.", ".command"),
    ("trailer.", ".cmd"),
    ("trailer.", ".command"),
    ("uploadpack.packobjectshook", ""),
];

fn names_a_program(key: &str) -> bool {
    PROGRAMS.iter().any(|(begin, end)| {
        let long_enough = key.len() >= begin.len() + end.len();
        long_enough && key.starts_with(begin) && key.ends_with(end) && (begin.ends_with('.') || key == *begin)
    })
}

/// Settings and hooks of the folder's own and of repositories inside it that make git run programs.
pub fn look(folder: &Path, picture: &Picture) -> Marks {
    let mut marks = Marks::new();
    if let Some(own) = git_dir(folder) {
        settings(&own.join("config.worktree"), ".git/config.worktree", &mut marks);
    }
    for name in picture.repository_folders().take(REPOSITORIES_MAX) {
        if let Some(dir) = git_dir(&folder.join(name::path_of(name))) {
            repository(&dir, &format!("{name}/.git"), &mut marks);
        }
    }
    marks
}

fn repository(dir: &Path, name: &str, marks: &mut Marks) {
    for file in ["config", "config.worktree"] {
        settings(&dir.join(file), &format!("{name}/{file}"), marks);
    }
    hooks(&dir.join("hooks"), &format!("{name}/hooks"), marks);
    // Submodules of its own.
    let mut open = vec![(dir.join("modules"), format!("{name}/modules"))];
    while let Some((folder, name)) = open.pop() {
        for (path, name) in entries(&folder, &name).into_iter().filter(|(path, _)| path.is_dir()) {
            if marks.len() >= FILES_MAX {
                return;
            }
            if path.join("HEAD").exists() {
                settings(&path.join("config"), &format!("{name}/config"), marks);
                hooks(&path.join("hooks"), &format!("{name}/hooks"), marks);
            } else {
                open.push((path, name));
            }
        }
    }
}

fn entries(folder: &Path, name: &str) -> Vec<(PathBuf, String)> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    all.map(|entry| (entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()))).collect()
}

fn hooks(folder: &Path, name: &str, marks: &mut Marks) {
    let all = entries(folder, name).into_iter().filter(|(path, _)| is_hook(path));
    marks.extend(all.filter_map(|(path, name)| Some((name, mark_of(&path)?))));
}

/// What git brings along is an example, and ends like one.
fn is_hook(path: &Path) -> bool {
    path.extension().is_none_or(|end| end != "sample")
}

fn settings(file: &Path, name: &str, marks: &mut Marks) {
    if !file.is_file() {
        return;
    }
    let folder = file.parent().unwrap_or(file);
    let path = file.to_string_lossy();
    for (key, value) in programs(folder, &["--file", &path, "--no-includes"]) {
        marks.insert(format!("{name}: {key}"), value);
    }
}

/// Whether git may come to run anything when it commits here: hooks, or programs that it passes files through.
pub fn commits_run_something(folder: &Path) -> bool {
    let named = programs(folder, &[]);
    let passes = |key: &str| key.starts_with("filter.") || key.starts_with("merge.");
    let elsewhere = named.iter().any(|(key, _)| key.eq_ignore_ascii_case("core.hooksPath") || passes(key));
    let own = common_git_dir(folder).map(|dir| dir.join("hooks"));
    elsewhere || own.is_some_and(|dir| entries(&dir, "").iter().any(|(path, _)| is_hook(path)))
}

/// Settings that name programs, as git reads them; reading them runs nothing.
fn programs(folder: &Path, of: &[&str]) -> Vec<(String, String)> {
    let git: Git = judged::reading(folder);
    let arguments = [&["config"], of, &["--list", "-z"]].concat();
    let all = git.names(&arguments).unwrap_or_default();
    let pairs = all.iter().filter_map(|entry| entry.split_once('\n'));
    let named = pairs.filter(|(key, value)| names_a_program(&key.to_lowercase()) && !value.trim().is_empty());
    named.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What was left, in one sentence.
pub fn noticed(
    folder: &Path,
    before: &Marks,
    after: &Marks,
    differences: &[Difference],
) -> Option<Intrusion> {
    let changed = differing(before, after).into_iter().filter(|(_, how)| *how != "deleted");
    let mut named: Vec<String> = changed.map(|(name, how)| format!("{name} ({how})")).collect();
    let there: Vec<&Difference> = differences.iter().filter(|one| one.after.is_some()).collect();
    if !there.is_empty() {
        let of_user = programs(folder, &[]);
        named.extend(there.iter().filter_map(|one| {
            let (key, _) = of_user.iter().find(|(key, value)| runs(folder, key, value, &one.path))?;
            Some(format!("{} ({}), which {key} names", one.path, one.word()))
        }));
    }
    (!named.is_empty()).then(|| Intrusion {
        kind: IntrusionKind::Watched,
        what: format!(
            "programs were left for git to run: {}; what the engine's git runs of them has no more rights than their author had, your own git has yours",
            listed(&named)
        ),
        by: Vec::new(),
    })
}

/// Whether a setting makes git run this file of the tree.
fn runs(folder: &Path, key: &str, value: &str, path: &str) -> bool {
    let inside = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        let plain = word.strip_prefix("./").unwrap_or(word);
        Path::new(plain)
            .strip_prefix(folder)
            .map_or_else(|_| plain.to_owned(), |rest| rest.display().to_string())
    };
    if key.eq_ignore_ascii_case("core.hooksPath") {
        let file = Path::new(path);
        return file.parent() == Some(Path::new(&inside(value))) && is_hook(file);
    }
    value.split_whitespace().any(|word| inside(word) == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_programs_are_known_by_their_names() {
        for key in [
            "filter.x.clean",
            "core.fsmonitor",
            "alias.st",
            "gpg.ssh.program",
            "gpg.ssh.defaultkeycommand",
            "gpg.program",
            "credential.https://x.helper",
            "pager.log",
        ] {
            assert!(names_a_program(key), "{key}");
        }
        for key in [
            "user.name",
            "filter.x.required",
            "core.autocrlf",
            "core.fsmonitorhookversion",
            "remote.origin.url",
            "submodule.x.url",
        ] {
            assert!(!names_a_program(key), "{key}");
        }
    }

    #[test]
    fn a_file_of_the_tree_is_found_in_the_words_of_a_setting() {
        let folder = Path::new("/work/tree");
        for (key, value, path, expected) in [
            ("filter.fmt.clean", "./tools/fmt.sh --clean %f", "tools/fmt.sh", true),
            ("filter.fmt.clean", "sh 'tools/fmt.sh'", "tools/fmt.sh", true),
            ("filter.fmt.clean", "/work/tree/tools/fmt.sh", "tools/fmt.sh", true),
            ("filter.fmt.clean", "fmt", "tools/fmt.sh", false),
            ("core.hooksPath", ".hooks", ".hooks/pre-push", true),
            ("core.hooksPath", ".hooks/", ".hooks/pre-push", true),
            ("core.hookspath", "/work/tree/.hooks", ".hooks/pre-push", true),
            ("core.hooksPath", ".hooks", ".hooks/pre-push.sample", false),
            ("core.hooksPath", ".hooks", ".hooks/lib/common.sh", false),
            ("core.hooksPath", "/elsewhere", ".hooks/pre-push", false),
        ] {
            assert_eq!(runs(folder, key, value, path), expected, "{key}={value} {path}");
        }
    }
}
