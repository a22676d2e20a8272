//! Worktrees: made one at a time, looked at before every launch, taken away when nothing in them can be lost.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use gatewright_attempts::{Git, GitError};
use gatewright_workflow::globs::{Bare, Globs};
use serde::{Deserialize, Serialize};

use super::{
    commit::{self, By},
    judged, lock, lost_locks, nested,
    place::{RUN_STREAM, Stream, Workplace},
    public_name, tip,
};
use crate::{perform::sandbox, plain_file, project::RunPaths, run_context::RunContext};

pub const RECORD_VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is no git repository with a commit: `git init`, commit something, then resume", .0.display())]
    NoRepository(PathBuf),
    #[error(
        "{}: is on `{found}` instead of `{expected}`; `git -C {} switch {expected}`, then resume",
        path.display(), path.display()
    )]
    OtherBranch { path: PathBuf, expected: String, found: String },
    #[error("{}: is there, but is no worktree of {}; move it away, then resume", path.display(), root.display())]
    Foreign { path: PathBuf, root: PathBuf },
    #[error(
        "the worktree {} and its branch `{branch}` are gone; restore the branch (`git branch {branch} COMMIT`), then resume",
        path.display()
    )]
    Gone { path: PathBuf, branch: String },
    #[error("{0}")]
    Nested(String),
    #[error(
        "what `{branch}` depends on does not go together: `{other}` and the others {message}; bring them together yourself \
         (`git -C {} merge {other}`, mend the files, `git commit`), then resume", path.display()
    )]
    Dependencies { path: PathBuf, branch: String, other: String, message: String },
}

/// What is known of a stream's worktree, beside the run's journal: `streams/NAME.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub version: u32,
    pub name: String,
    pub branch: String,
    pub path: PathBuf,
    /// The commit it branched off from, and with what it depends on.
    pub base: String,
    /// Everything about it was made; what is missing later was taken away.
    pub ready: bool,
    /// It was found clean and is being taken away: what is left of it holds nothing that could be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// Where its branch stands, as whoever worked there by right left it; none in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
}

impl Record {
    pub fn read(paths: &RunPaths, name: &str) -> Option<Record> {
        serde_json::from_slice(&std::fs::read(paths.stream(name)).ok()?).ok()
    }

    /// Every stream of a run that ever had a worktree.
    pub fn all(paths: &RunPaths) -> Vec<Record> {
        let folder = paths.streams();
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        names.sort();
        let records = names.iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
        let read = |path: &PathBuf| serde_json::from_slice::<Record>(&std::fs::read(path).ok()?).ok();
        // What an engine that was killed left half written has another name.
        records.filter_map(|path| read(path).filter(|record| paths.stream(&record.name) == *path)).collect()
    }

    pub fn write(&self, context: &RunContext) -> Result<(), WorktreeError> {
        let path = context.paths.stream(&self.name);
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| {
            let durable = crate::atomic_file::Durability::Durable;
            crate::atomic_file::replace(context.disk.as_ref(), &path, &bytes, durable)
        })
        .map_err(|source| WorktreeError::Io { path, source })
    }
}

/// The place is there and as it must be; a worktree that is missing is made.
pub fn ensure(context: &RunContext, place: &Workplace, by: &By) -> Result<(), WorktreeError> {
    let Workplace::Worktree(stream) = place else { return Ok(()) };
    let record = Record::read(&context.paths, &stream.name);
    if record.as_ref().is_some_and(|record| record.ready) && stream.path.join(".git").exists() {
        lost_locks::clear(context, stream);
        return check(context, stream);
    }
    ensure(context, &stream.parent, by)?;
    let _busy = super::intrusion::Busy::new(&stream.path);
    let lock = lock::take(&context.paths.worktree_lock())
        .map_err(|source| WorktreeError::Io { path: context.paths.worktree_lock(), source })?;
    make(context, stream, record, &lock, by)
}

fn held(git: Git, lock: &File) -> Git {
    match lock.try_clone() {
        Ok(lock) => git.with_lock(lock),
        Err(_) => git,
    }
}

/// Git in the stream's folder: it checks out and merges what agents committed, filters and all.
fn inside(context: &RunContext, stream: &Stream, lock: &File) -> Git {
    held(judged::git(context, &stream.path, &sandbox::common(context)), lock)
}

/// A worktree of this repository, on its branch.
fn check(context: &RunContext, stream: &Stream) -> Result<(), WorktreeError> {
    let git = Git::at(&stream.path);
    let said = git.text(&["rev-parse", "--show-toplevel", "--git-common-dir"])?;
    let mut lines = said.lines().map(PathBuf::from);
    let (top, common) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let same = |left: &Path, right: &Path| matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right);
    let ours =
        Git::at(&context.meta.root).text(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    if !same(&top, &stream.path) || !same(&stream.path.join(common), Path::new(&ours)) {
        return Err(WorktreeError::Foreign { path: stream.path.clone(), root: context.meta.root.clone() });
    }
    let found = git.text(&["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_default();
    if found != stream.branch {
        let found = if found.is_empty() { "no branch (detached HEAD)".to_owned() } else { found };
        let (path, expected) = (stream.path.clone(), stream.branch.clone());
        return Err(WorktreeError::OtherBranch { path, expected, found });
    }
    Ok(())
}

fn make(
    context: &RunContext,
    stream: &Stream,
    record: Option<Record>,
    lock: &File,
    by: &By,
) -> Result<(), WorktreeError> {
    let root = &context.meta.root;
    let git = held(Git::at(root), lock);
    // Another thread, or a git that outlived its engine, may have made it while we waited for the lock.
    if let Some(known) = Record::read(&context.paths, &stream.name)
        && known.ready
        && stream.path.join(".git").exists()
    {
        return check(context, stream);
    }
    let head = Git::at(stream.parent.folder()).text(&["rev-parse", "--verify", "-q", "HEAD^{commit}"]);
    let head = head.map_err(|_| WorktreeError::NoRepository(root.clone()))?;
    if is_foreign(context, stream, record.as_ref()) {
        return Err(WorktreeError::Foreign { path: stream.path.clone(), root: root.clone() });
    }
    let begun = record.is_some() || stream.path.exists();
    let mut record = record.unwrap_or(Record {
        version: RECORD_VERSION,
        name: stream.name.clone(),
        branch: stream.branch.clone(),
        path: stream.path.clone(),
        base: head,
        ready: false,
        leaving: false,
        tip: None,
    });
    let empty = !record.ready || record.leaving;
    record.leaving = false;
    if stream.path.exists() && !empty {
        // Somebody worked in it and it lost its link: it stays, under another name.
        let aside = stream.path.with_extension(format!("aside-{}", std::process::id()));
        std::fs::rename(&stream.path, &aside)
            .map_err(|source| WorktreeError::Io { path: stream.path.clone(), source })?;
    }
    clear_half_made(context, &git);
    if begun {
        // Half made or half taken away when an engine was killed: nobody has worked in it.
        forget(&git, &stream.path);
    }
    record.write(context)?;
    if let Some(folder) = stream.path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| WorktreeError::Io { path: folder.to_owned(), source })?;
    }
    // Whoever made it when the engine was killed may have left the lock of its branch.
    lost_locks::clear_branch(context, stream);
    let known = git.holds(&["rev-parse", "--verify", "-q", &format!("refs/heads/{}", stream.branch)]);
    if record.ready && !known {
        return Err(WorktreeError::Gone { path: stream.path.clone(), branch: stream.branch.clone() });
    }
    add(&git, stream, known, &record.base)?;
    let inside = || inside(context, stream, lock);
    check_out(&inside)?;
    submodules(root, &stream.path, &inside);
    seed(context, root, &stream.path)?;
    if !record.ready {
        for other in &stream.after {
            build_on(context, stream, other, inside(), by)?;
        }
        if !stream.after.is_empty() {
            submodules(root, &stream.path, &inside);
            record.base = Git::at(&stream.path).text(&["rev-parse", "HEAD"])?;
        }
    }
    public_name::give(context, stream);
    record.ready = true;
    record.tip = tip::stands(context, &record.branch);
    record.write(context)
}

/// Outside the engine's own folders a place may have become somebody else's: what we did not make is not ours to clear.
fn is_foreign(context: &RunContext, stream: &Stream, record: Option<&Record>) -> bool {
    let beside = context.meta.beside && stream.name == RUN_STREAM;
    let filled = || std::fs::read_dir(&stream.path).is_ok_and(|mut entries| entries.next().is_some());
    beside && filled() && (record.is_none() || !stream.path.join(".git").exists())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Makes the folder and its branch, without a file.
fn add(git: &Git, stream: &Stream, known: bool, base: &str) -> Result<(), GitError> {
    let path = text(&stream.path);
    let mut arguments = vec!["worktree", "add", "-q", "--no-checkout"];
    if known {
        arguments.extend(["--force", "--force", &path, &stream.branch]);
    } else {
        arguments.extend(["--no-track", "-b", &stream.branch, &path, base]);
    }
    git.text(&arguments).map(drop)
}

/// Checks the branch out. Content filters of programs that are not installed (LFS) must not be in the way:
/// then their files are there as they are stored.
fn check_out(inside: &dyn Fn() -> Git) -> Result<(), GitError> {
    const ALL: [&str; 3] = ["reset", "-q", "--hard"];
    let Err(first) = inside().text(&ALL) else { return Ok(()) };
    // What was wrong first is what a person has to know.
    inside().without_lfs().text(&ALL).map(drop).map_err(|_| first)
}

/// Submodules that the checkout has are taken from there, without the network, at the commits that the index
/// names. One that cannot be had stays as it is, or an empty folder as in a fresh clone.
pub fn submodules(root: &Path, path: &Path, inside: &dyn Fn() -> Git) {
    if !path.join(".gitmodules").exists() {
        return;
    }
    let list =
        Git::at(root).text(&["config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"]);
    for line in list.unwrap_or_default().lines() {
        let Some((key, folder)) = line.split_once(' ') else { continue };
        let name = key.trim_start_matches("submodule.").trim_end_matches(".path");
        let source = root.join(folder);
        if !source.join(".git").exists() {
            continue;
        }
        let git = inside()
            .with_setting("protocol.file.allow=always")
            .with_setting(format!("submodule.{name}.url={}", source.display()))
            .with_setting(format!("submodule.{name}.active=true"));
        let _ = git.text(&["submodule", "update", "-q", "--init", "--", folder]);
    }
}

/// Copies ignored files that the configuration names; what is there already stays.
fn seed(context: &RunContext, root: &Path, path: &Path) -> Result<(), WorktreeError> {
    if context.frozen.seed.is_empty() {
        return Ok(());
    }
    let ignored = Git::at(root).names(&["ls-files", "-z", "--others", "--ignored", "--exclude-standard"])?;
    let seeds = Globs::new(&context.frozen.seed, Bare::Anywhere);
    let wanted = |file: &&String| seeds.contains(file);
    for file in ignored.iter().filter(wanted) {
        let (from, to) = (root.join(file), path.join(file));
        let plain = std::fs::symlink_metadata(&from).is_ok_and(|data| data.is_file());
        if !plain || std::fs::symlink_metadata(&to).is_ok() {
            continue;
        }
        let made = to.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::copy(&from, &to).map(|_| ()))
            .map_err(|source| WorktreeError::Io { path: to, source })?;
    }
    Ok(())
}

fn build_on(
    context: &RunContext,
    stream: &Stream,
    other: &str,
    inside: Git,
    by: &By,
) -> Result<(), WorktreeError> {
    let git = inside.with_setting("rerere.enabled=false");
    tip::put_back_branch(context, other);
    if !git.holds(&["rev-parse", "--verify", "-q", &format!("refs/heads/{other}")]) {
        return Ok(());
    }
    let message = format!("Build on {other}");
    commit::merge_in(context, stream, &git, &["--ff", other], &message, by).map_err(|message| {
        let (path, branch, other) = (stream.path.clone(), stream.branch.clone(), other.to_owned());
        WorktreeError::Dependencies { path, branch, other, message }
    })
}

/// Everything that differs from where the stream began, committed or not, as one patch.
pub fn patch(context: &RunContext, record: &Record) -> Result<Vec<u8>, WorktreeError> {
    if !judged::is_linked(context, &record.path) {
        let (path, root) = (record.path.clone(), context.meta.root.clone());
        return Err(WorktreeError::Foreign { path, root });
    }
    let scratch = context.paths.streams().join(format!("{}.patching", record.name));
    Ok(judged::with_index(context.paths.state_root(), &record.path, &scratch, |git| {
        everything_since(git, &record.base)
    })?)
}

/// What differs from a commit, committed or not, as a patch that any git can apply.
pub fn everything_since(git: &Git, base: &str) -> Result<Vec<u8>, GitError> {
    git.text(&["read-tree", "HEAD"])?;
    git.text(&["add", "-A"])?;
    git.bytes(&["diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", base])
}

/// Nothing in it that is not committed, ignored files apart.
pub fn is_clean(path: &Path) -> bool {
    judged::reading(path)
        .bytes(&["status", "--porcelain=v1", "--untracked-files=all"])
        .is_ok_and(|found| found.is_empty())
}

/// Takes the folder away; the branch stays, and so does everything that was committed in its submodules.
pub fn remove(root: &Path, path: &Path) -> Result<(), WorktreeError> {
    let _busy = super::intrusion::Busy::new(path);
    if path.join(".git").exists() {
        let parts: Vec<String> =
            path.iter().rev().take(2).map(|part| part.to_string_lossy().into_owned()).collect();
        let keeper = parts.into_iter().rev().collect::<Vec<_>>().join("/");
        nested::rescue(root, &judged::reading(path), &keeper).map_err(WorktreeError::Nested)?;
    }
    forget(&Git::at(root), path);
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) => {
            let source = std::io::Error::other("the folder cannot be taken away");
            Err(WorktreeError::Io { path: path.to_owned(), source })
        }
    }
}

/// A git that was killed while it made a worktree of ours may leave a folder in which every later git finds its
/// own files missing and gives up, whatever it was to do. Whoever calls this holds the lock of worktrees.
fn clear_half_made(context: &RunContext, git: &Git) {
    let Ok(common) = git.text(&["rev-parse", "--path-format=absolute", "--git-common-dir"]) else { return };
    let ours = context.paths.worktrees();
    let records = Record::all(&context.paths);
    let names: Vec<String> = records
        .iter()
        .filter_map(|record| Some(record.path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    for entry in std::fs::read_dir(Path::new(&common).join("worktrees")).into_iter().flatten().flatten() {
        let folder = entry.path();
        let read = |name: &str| plain_file::read_to_string(&folder.join(name)).unwrap_or_default();
        if !read("commondir").trim().is_empty() {
            continue;
        }
        let leads = read("gitdir");
        let is_ours = if leads.trim().is_empty() {
            // Before it says where it leads; git adds a number to a name that is taken.
            let own = entry.file_name().to_string_lossy().into_owned();
            names.iter().any(|name| {
                own.strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
            })
        } else {
            let leads = Path::new(leads.trim());
            leads.starts_with(&ours) || records.iter().any(|record| leads.starts_with(&record.path))
        };
        if is_ours {
            // What stays is named by the git that finds it.
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// The folder and what git knows of it. The folder first, by ourselves: git would refuse one that is only
/// half there, and one with submodules. Other worktrees that are missing are somebody else's to prune.
fn forget(git: &Git, path: &Path) {
    // What is in the way is named by whoever needs the place.
    let _ = std::fs::remove_dir_all(path);
    let _ = git.text(&["worktree", "remove", "--force", "--force", &text(path)]);
}
