//! Commits in the user's name, made by the engine: what an accepted attempt changed, with run, step and
//! attempt as trailers. Only on branches of the engine's own, never twice for one attempt.

use std::path::{Path, PathBuf};

use gatewright_attempts::{Defence, Git, GitError, end_carriers};
use gatewright_core::{fact::CommitFact, ids::StepId};
use gatewright_workflow::{
    frozen::Sandbox,
    globs::{Bare, Globs},
};

use super::{
    intrusion::Busy,
    judged, lock, lost_locks, merge,
    nested::{self, Change},
    place::{Stream, Workplace},
    secrets, signature, tip,
    worktree::{self, Record},
};
use crate::{
    run_context::RunContext,
    scope::{self, picture::git_dir},
};

const SUBJECT_CHARS: usize = 72;
const NAMED_FILES: usize = 5;
/// Names on one command line.
const NAMED_AT_ONCE: usize = 200;

/// For whom something is committed.
#[derive(Clone, Debug)]
pub struct By {
    pub step: StepId,
    pub attempt: u32,
}

/// What is committed, and under which words.
#[derive(Clone, Debug)]
pub struct Order {
    pub step: StepId,
    pub attempt: u32,
    /// One sentence of the attempt about itself.
    pub summary: String,
    pub role: String,
    /// Globs the role may change; `None` = everything.
    pub may_write: Option<Vec<String>>,
    /// What the role may do, and so its hooks.
    pub judged: Sandbox,
}

/// Commits what is there, or finds the commit that was made before a crash.
pub fn commit(context: &RunContext, place: &Workplace, order: &Order) -> CommitFact {
    let refused = |message: String| CommitFact::Refused { message };
    let Workplace::Worktree(stream) = place else {
        return refused(
            "commits are made in worktrees only, and this step works in your checkout".to_owned(),
        );
    };
    let _busy = Busy::new(&stream.path);
    match try_commit(context, stream, order) {
        Ok(fact) => fact,
        Err(error) => refused(error.to_string()),
    }
}

fn try_commit(
    context: &RunContext,
    stream: &Stream,
    order: &Order,
) -> Result<CommitFact, worktree::WorktreeError> {
    let path = context.paths.streams().join(format!("{}.lock", stream.name));
    let lock = lock::take(&path).map_err(|source| worktree::WorktreeError::Io { path, source })?;
    if !judged::is_linked(context, &stream.path) {
        let (path, root) = (stream.path.clone(), context.meta.root.clone());
        return Err(worktree::WorktreeError::Foreign { path, root });
    }
    let git = judged::git(context, &stream.path, &order.judged).with_lock(lock);
    let fact = commit_with(context, stream, order, &git);
    tip::keep(context, stream);
    fact
}

/// The same for whoever holds the lock of the stream.
fn commit_with(
    context: &RunContext,
    stream: &Stream,
    order: &Order,
    git: &Git,
) -> Result<CommitFact, worktree::WorktreeError> {
    let branch = git.text(&["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_default();
    if branch != stream.branch {
        return Ok(CommitFact::Refused { message: other_branch(&branch, &stream.branch) });
    }
    let alone = Alone::new(context, &stream.name);
    lost_locks::clear(context, stream);
    if merge::is_left_for_a_fixer(context, stream, git) {
        // A fixer's work: it is committed with the merge, once that is verified.
        let refused = refused_in_merge(context, stream, order, nested::changes(git)?);
        return Ok(refused.map_or(CommitFact::Nothing, |message| CommitFact::Refused { message }));
    }
    own_index(git, &stream.path)?;
    if in_merge(git) {
        // Of an agent, and no merge of ours: what is committed has one parent.
        git.text(&["merge", "--quit"])?;
    }
    let (changes, left_out) = wanted(context, nested::changes(git)?);
    if changes.is_empty() {
        if existing(context, git, stream, order)?.is_none() {
            return Ok(CommitFact::Nothing);
        }
        // An engine may have been killed between the commit and its signature.
        if let Err(message) = sign(context, stream) {
            return Ok(CommitFact::Refused { message });
        }
        let commit = existing(context, git, stream, order)?.unwrap_or_default();
        return Ok(CommitFact::Made { commit, branch, files: 0 });
    }
    if let Some(message) = nested::refusal(&changes).or_else(|| refusal(context, stream, order, &changes)) {
        return Ok(CommitFact::Refused { message });
    }
    stage(git, &left_out)?;
    let links = nested::links(git, &["--cached", "HEAD"])?;
    let unfiltered = nested::unfiltered(git, &changes)?;
    if let Some(message) = unfiltered.or_else(|| keep_links(context, stream, &links).err()) {
        git.text(&["reset", "-q"])?;
        return Ok(CommitFact::Refused { message });
    }
    let message = subject(order);
    let before = git.text(&["rev-parse", "HEAD"])?;
    if let Err(message) =
        make(context, stream, &alone, &order.judged, &message, &trailers(context, &order.step, order.attempt))
    {
        return Ok(CommitFact::Refused { message });
    }
    let commit = git.text(&["rev-parse", "HEAD"])?;
    // A hook may have added to it.
    let committed = added_by_hooks(git, &changes, &before, &commit)?;
    let refused = nested::refusal(&committed).or_else(|| refusal(context, stream, order, &committed));
    if let Some(message) = refused.filter(|_| !Defence::Commits.is_off()) {
        git.text(&["reset", "-q", "--soft", &before])?;
        return Ok(CommitFact::Refused { message });
    }
    Ok(CommitFact::Made { commit, branch, files: changes.len() as u32 })
}

/// The commit that was made does not count: what it holds is staged again.
pub fn take_back(context: &RunContext, place: &Workplace, order: &Order, before: &str) {
    let _busy = Busy::new(place.folder());
    if let Workplace::Worktree(stream) = place
        && tip::loosen(context, stream).is_err()
    {
        return;
    }
    let git = judged::git(context, place.folder(), &order.judged);
    // If it fails, the next commit of this attempt is refused, because there is one already.
    let _ = git.text(&["reset", "-q", "--soft", before]);
    if let Workplace::Worktree(stream) = place {
        tip::keep(context, stream);
    }
}

/// What goes into a commit, and the names of what the definition keeps out of it.
pub fn wanted(context: &RunContext, changes: Vec<Change>) -> (Vec<Change>, Vec<String>) {
    let kept_out = Globs::new(&context.frozen.not_committed, Bare::Anywhere);
    let (left_out, wanted): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| kept_out.contains(&change.path));
    (wanted, left_out.into_iter().map(|change| change.path).collect())
}

/// An index in which nobody but the engine has written anything: what agents staged, hid from git by flags or said of
/// the times of files is forgotten, and every file is looked at.
pub fn own_index(git: &Git, folder: &Path) -> Result<(), GitError> {
    if Defence::OwnIndex.is_off() {
        return Ok(());
    }
    if let Some(own) = git_dir(folder) {
        let gone = std::fs::remove_file(own.join("index"));
        if let Err(source) = gone.or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }) {
            return Err(GitError::Start { folder: folder.to_owned(), source });
        }
    }
    git.text(&["read-tree", "HEAD"]).map(drop)
}

/// Everything is staged but these.
pub fn stage(git: &Git, left_out: &[String]) -> Result<(), GitError> {
    git.text(&["add", "-A"])?;
    for names in left_out.chunks(NAMED_AT_ONCE) {
        let mut words = vec!["--literal-pathspecs", "reset", "-q", "--"];
        words.extend(names.iter().map(String::as_str));
        git.text(&words)?;
    }
    Ok(())
}

/// What is in the commit beyond what was to be committed.
fn added_by_hooks(git: &Git, wanted: &[Change], before: &str, commit: &str) -> Result<Vec<Change>, GitError> {
    let names = |more: &[&str]| {
        let arguments = [&["diff", "--name-only", "--no-renames", "-z"], more, &[before, commit]].concat();
        git.names(&arguments)
    };
    let (all, gone) = (names(&[])?, names(&["--diff-filter=D"])?);
    let links = nested::links(git, &[before, commit])?;
    let added = all.into_iter().filter(|path| !wanted.iter().any(|change| change.path == *path));
    Ok(added
        .map(|path| Change {
            gone: gone.contains(&path),
            nested: links.iter().any(|link| link.path == path).then_some(nested::Nested::Unknown),
            path,
        })
        .collect())
}

/// Commits of submodules that a commit refers to outlive the worktree.
pub fn keep_links(context: &RunContext, stream: &Stream, links: &[nested::Link]) -> Result<(), String> {
    let keeper = stream.branch.trim_start_matches("gatewright/");
    links.iter().try_for_each(|link| nested::bring(&context.meta.root, &stream.path, link, keeper))
}

fn other_branch(found: &str, expected: &str) -> String {
    if found.is_empty() {
        return format!("HEAD is detached; the work belongs on `{expected}`");
    }
    format!("the worktree was switched to `{found}`, and commits go to `{expected}` only")
}

/// A commit with its hooks is a plain child: one whose engine was killed lives on. Its mark is still there
/// then, and it is ended before anybody looks whether its commit was made.
pub struct Alone {
    mark: PathBuf,
}

impl Alone {
    pub const VARIABLE: &str = "GATEWRIGHT_COMMIT";

    pub fn new(context: &RunContext, name: &str) -> Alone {
        let mark = context.paths.streams().join(format!("{name}.committing"));
        if mark.exists() {
            end_carriers(&format!("{}={}", Self::VARIABLE, mark.display()));
        }
        // Without the mark (a full disk) it is committed all the same; it is only not found again.
        let _ = std::fs::write(&mark, b"");
        Alone { mark }
    }

    pub fn mark(&self) -> &Path {
        &self.mark
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.mark);
    }
}

/// The commit with exactly these trailers, if it was made already.
fn existing(
    context: &RunContext,
    git: &Git,
    stream: &Stream,
    order: &Order,
) -> Result<Option<String>, GitError> {
    let base = Record::read(&context.paths, &stream.name).map(|record| record.base).unwrap_or_default();
    let range = if base.is_empty() { "HEAD".to_owned() } else { format!("{base}..HEAD") };
    let field = |key: &str| format!("%x1f%(trailers:key={key},valueonly,separator=%x1e)");
    let format = format!(
        "--format=%H{}{}{}",
        field("Gatewright-Run"),
        field("Gatewright-Step"),
        field("Gatewright-Attempt")
    );
    let attempt = order.attempt.to_string();
    let wanted = [context.meta.id.as_str(), order.step.as_str(), attempt.as_str()];
    let log = git.text(&["log", "-n", "500", &format, &range])?;
    Ok(log.lines().find_map(|line| {
        let mut parts = line.split('\u{1f}');
        let commit = parts.next()?;
        parts.eq(wanted).then(|| commit.to_owned())
    }))
}

/// In the middle of a merge?
pub fn in_merge(git: &Git) -> bool {
    git.holds(&["rev-parse", "--verify", "-q", "MERGE_HEAD"])
}

/// Why what a fixer did to a merge must not go into it. What the streams bring along is not the fixer's.
fn refused_in_merge(
    context: &RunContext,
    stream: &Stream,
    order: &Order,
    mut changes: Vec<Change>,
) -> Option<String> {
    let Some(own) = scope::changed_since(context, &order.step, order.attempt, &stream.path) else {
        // Nobody can say whose they are, so nobody's scope is held against them.
        return refusal(context, stream, &Order { may_write: None, ..order.clone() }, &changes);
    };
    changes.retain(|change| own.contains(&change.path));
    refusal(context, stream, order, &changes)
}

/// Why these files must not be committed.
fn refusal(context: &RunContext, stream: &Stream, order: &Order, changes: &[Change]) -> Option<String> {
    // What is gone gives nothing away.
    let there = changes.iter().filter(|change| !change.gone).map(|change| &change.path);
    let secret = there.into_iter().find_map(|file| Some((file, secrets::looks_secret(&stream.path, file)?)));
    if let Some((file, why)) = secret {
        return Some(format!("`{file}` looks like a secret: {why}; ignore it with .gitignore or remove it"));
    }
    let scope = order.may_write.as_ref()?;
    let globs = Globs::new(scope, Bare::InRoot);
    let mut outside: Vec<&String> =
        changes.iter().map(|change| &change.path).filter(|file| !globs.contains(file)).collect();
    if outside.is_empty() {
        return None;
    }
    // Steps before it may have left work for this commit; that is theirs.
    if let Some(since) = scope::changed_since(context, &order.step, order.attempt, &stream.path) {
        outside.retain(|file| since.contains(*file));
        if outside.is_empty() {
            return None;
        }
    }
    let named: Vec<String> = outside.iter().take(NAMED_FILES).map(|file| format!("`{file}`")).collect();
    let more = outside.len().saturating_sub(NAMED_FILES);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "role `{}` may not change {}{rest} (may_write: {})",
        order.role,
        named.join(", "),
        if scope.is_empty() { "nothing".to_owned() } else { scope.join(", ") }
    ))
}

fn subject(order: &Order) -> String {
    let line = order.summary.lines().next().unwrap_or_default().trim();
    let text = if line.is_empty() { order.step.to_string() } else { format!("{}: {line}", order.step) };
    let mut subject: String = text.chars().take(SUBJECT_CHARS).collect();
    if subject.len() < text.len() {
        subject.push('…');
    }
    subject
}

pub fn trailers(context: &RunContext, step: &StepId, attempt: u32) -> Vec<String> {
    vec![
        format!("Gatewright-Run: {}", context.meta.id),
        format!("Gatewright-Step: {step}"),
        format!("Gatewright-Attempt: {attempt}"),
    ]
}

/// A merge that needs nobody's judgement, made and signed like any commit of ours.
pub fn merge_in(
    context: &RunContext,
    stream: &Stream,
    git: &Git,
    arguments: &[&str],
    message: &str,
    by: &By,
) -> Result<(), String> {
    tip::loosen(context, stream)?;
    let text = format!("{message}\n\n{}", trailers(context, &by.step, by.attempt).join("\n"));
    let words = [&["-c", "commit.gpgSign=false", "merge", "-q", "-m", &text], arguments].concat();
    if let Err(error) = git.text(&words) {
        let conflicts = git.names(&["diff", "--name-only", "--diff-filter=U", "-z"]).unwrap_or_default();
        let _ = git.text(&["merge", "--abort"]);
        tip::keep(context, stream);
        let named: Vec<String> = conflicts.iter().take(NAMED_FILES).map(|file| format!("`{file}`")).collect();
        return Err(if named.is_empty() {
            error.to_string()
        } else {
            format!("change the same places of {}", named.join(", "))
        });
    }
    sign_own(context, stream, git)?;
    tip::keep(context, stream);
    Ok(())
}

/// Signs the last commit of a stream, if it is one of ours.
pub fn sign_own(context: &RunContext, stream: &Stream, git: &Git) -> Result<(), String> {
    let run = git.text(&["log", "-1", "--format=%(trailers:key=Gatewright-Run,valueonly)"]);
    if run.is_ok_and(|run| run.trim() == context.meta.id) { sign(context, stream) } else { Ok(()) }
}

/// `git commit` as the user would type it: their identity, their hooks, their signing key; the hooks in the
/// sandbox of whoever is judged.
pub fn make(
    context: &RunContext,
    stream: &Stream,
    alone: &Alone,
    judged: &Sandbox,
    message: &str,
    trailers: &[String],
) -> Result<(), String> {
    let mut arguments = vec!["commit", "-q", "--no-edit", "-m", message];
    for trailer in trailers {
        arguments.extend(["--trailer", trailer]);
    }
    let git = judged::git(context, &stream.path, judged);
    let before = git.text(&["rev-parse", "HEAD"]).map_err(|error| error.to_string())?;
    tip::loosen(context, stream)?;
    judged::commit(context, &stream.path, judged, alone, &arguments)?;
    sign(context, stream).inspect_err(|_| {
        // What is not signed is not committed. A merge is undone by whoever made it.
        let _ = git.text(&["reset", "-q", "--soft", &before]);
    })
}

fn sign(context: &RunContext, stream: &Stream) -> Result<(), String> {
    let scratch = context.paths.streams().join(format!("{}.message", stream.name));
    signature::sign(context, &stream.branch, &scratch)
}
