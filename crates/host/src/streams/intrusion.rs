//! An agent that leaves its worktree is caught (J-48): the user's checkout and the worktrees beside its own are
//! compared before and after. Who works in a worktree by right is known, so that only what nobody may have
//! changed counts. What was changed is kept as a patch, which takes it back with `git apply -R`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use gatewright_attempts::{Git, GitError};
use serde::{Deserialize, Serialize};

use super::{judged, leftovers::folders, place::Workplace};
use crate::{run_context::RunContext, scope::run_dirs};

const NAMED_FILES: usize = 5;

/// Who is at work where, in this engine.
static WORK: Mutex<BTreeMap<PathBuf, u32>> = Mutex::new(BTreeMap::new());

/// How often somebody began and ended to work in a worktree by right, for engines of other runs and for those that
/// come later: `streams/NAME.work` of the run that it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Work {
    begun: u64,
    ended: u64,
}

impl Work {
    /// Where it is kept: the folder is `PROJECT/worktrees/RUN/NAME`. A checkout has nothing of the kind.
    fn file(folder: &Path) -> Option<PathBuf> {
        let (run, name) = (folder.parent()?, folder.file_name()?.to_str()?);
        let all = run.parent().filter(|all| all.file_name().is_some_and(|last| last == "worktrees"))?;
        let of_run = all.parent()?.join("runs").join(run.file_name()?);
        of_run.is_dir().then(|| of_run.join("streams").join(format!("{name}.work")))
    }

    fn of(folder: &Path) -> Work {
        let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
        Self::file(folder).and_then(read).unwrap_or_default()
    }

    fn is_live(self) -> bool {
        self.begun != self.ended
    }

    fn write(self, folder: &Path) {
        // Without it the work of this moment may be taken for somebody else's, or is not compared.
        let Some(path) = Self::file(folder) else { return };
        let _ = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = serde_json::to_vec(&self).map(|bytes| std::fs::write(path, bytes));
    }
}

/// How often somebody had begun to work here by right; `None`: somebody is at work, or was when an engine was killed
/// and nobody has come back yet.
pub fn idle_since(folder: &Path) -> Option<u64> {
    let known = WORK.lock().unwrap_or_else(PoisonError::into_inner);
    let work = Work::of(folder);
    (known.get(folder).copied().unwrap_or(0) == 0 && !work.is_live()).then_some(work.begun)
}

/// Somebody works here by right, until it is dropped.
#[derive(Debug)]
pub struct Busy {
    folder: PathBuf,
}

impl Busy {
    pub fn new(folder: &Path) -> Busy {
        let mut known = WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let live = known.entry(folder.to_owned()).or_default();
        let mut work = Work::of(folder);
        if *live == 0 {
            // A run has one engine: whoever began and did not end was one that was killed.
            work.ended = work.begun;
        }
        *live += 1;
        work.begun += 1;
        work.write(folder);
        Busy { folder: folder.to_owned() }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut known = WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let live = known.entry(self.folder.clone()).or_default();
        *live = live.saturating_sub(1);
        let mut work = Work::of(&self.folder);
        work.ended = work.begun.min(work.ended + 1);
        work.write(&self.folder);
    }
}

/// What the other trees were like before an attempt: `watch.json` beside its launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    version: u32,
    trees: Vec<Seen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    folder: PathBuf,
    tree: String,
    /// How often somebody had worked there by right; none for the checkout, where nobody counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begun: Option<u64>,
}

impl Beside {
    /// Looks at what an attempt in this place must not touch.
    pub fn begin(context: &RunContext, place: &Workplace) -> Beside {
        let mut trees = Vec::new();
        let own = place.folder();
        if let Workplace::Worktree(_) = place {
            let checkout = context.meta.root.clone();
            let tree = tree_of(context, &checkout).ok();
            trees.extend(tree.map(|tree| Seen { folder: checkout, tree, begun: None }));
        }
        for folder in worktrees(context).into_iter().filter(|folder| folder != own) {
            let work = Work::of(&folder);
            if !work.is_live()
                && let Ok(tree) = tree_of(context, &folder)
            {
                trees.push(Seen { folder, tree, begun: Some(work.begun) });
            }
        }
        Beside { version: 1, trees }
    }

    pub fn read(path: &Path) -> Option<Beside> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    pub fn write(&self, path: &Path) {
        // Without it an attempt that is picked up by another engine is only not watched.
        let _ = serde_json::to_vec(self).map(|bytes| std::fs::write(path, bytes));
    }

    /// What is different now, in words that name the files; each with its patch.
    pub fn end(&self, context: &RunContext, name: &str) -> Vec<String> {
        self.trees.iter().filter_map(|watched| watched.intrusion(context, name)).collect()
    }
}

impl Seen {
    /// The tree as a part of a file name.
    fn label(&self, context: &RunContext) -> String {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if self.folder == context.meta.root {
            return "checkout".to_owned();
        }
        let run = self.folder.parent().map(name).unwrap_or_default();
        if run == name(&context.paths.dir) {
            name(&self.folder)
        } else {
            format!("{run}-{}", name(&self.folder))
        }
    }

    fn intrusion(&self, context: &RunContext, name: &str) -> Option<String> {
        let is_checkout = self.folder == context.meta.root;
        let is_as_before = || {
            let work = Work::of(&self.folder);
            // Somebody worked there by right meanwhile, or nobody knows.
            is_checkout || (!work.is_live() && self.begun == Some(work.begun))
        };
        if !is_as_before() {
            return None;
        }
        let now = tree_of(context, &self.folder).ok().filter(|now| *now != self.tree)?;
        if !is_as_before() {
            return None;
        }
        let git = judged::reading(&self.folder);
        let places = without_run_dirs(context, &self.folder);
        let look = ["diff", "--name-only", "--no-renames", "-z", &self.tree, &now, "--"];
        let files = git.names(&with(&look, &places)).ok()?;
        if files.is_empty() {
            // The same files, committed or not.
            return None;
        }
        let look = ["diff", "--binary", "--no-ext-diff", "--no-textconv", &self.tree, &now, "--"];
        let patch = git.bytes(&with(&look, &places)).ok()?;
        let path = context.paths.patch(&format!("intrusion-{name}-{}", self.label(context)));
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = made.and_then(|()| std::fs::write(&path, patch));
        let named: Vec<String> = files.iter().take(NAMED_FILES).map(|file| format!("`{file}`")).collect();
        let more = files.len().saturating_sub(NAMED_FILES);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let whose = if is_checkout {
            "your checkout"
        } else if self.folder.starts_with(context.paths.worktrees()) {
            "the worktree of another stream"
        } else {
            "a worktree of another run"
        };
        Some(format!(
            "while it worked in its own folder, {whose} ({}) was changed: {}{rest}; `git -C {} apply -R {}` takes that back",
            self.folder.display(),
            named.join(", "),
            self.folder.display(),
            path.display()
        ))
    }
}

/// The worktrees of all runs of this project.
fn worktrees(context: &RunContext) -> Vec<PathBuf> {
    let own = context.paths.worktrees();
    let runs = folders(own.parent().unwrap_or(&own));
    let elsewhere =
        super::leftovers::beside(&context.paths.project_dir().join("runs")).into_iter().map(|(_, path)| path);
    let inside = runs.iter().flat_map(|run| folders(run));
    inside.chain(elsewhere).filter(|folder| folder.join(".git").exists()).collect()
}

/// What is looked at in a folder, as git takes it: everything but run directories. Engines publish there at any time,
/// and who else changes that is told by their ledgers.
fn without_run_dirs(context: &RunContext, folder: &Path) -> Vec<String> {
    let dirs: BTreeSet<PathBuf> = run_dirs(context).into_iter().map(|(_, dir)| dir).collect();
    // Most have a `.gitignore` of ours beside them.
    let shown = dirs.iter().filter(|dir| !dir.with_file_name(".gitignore").exists());
    let names = shown.filter_map(|dir| dir.strip_prefix(folder).ok()?.to_str());
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let everything = ":(top)".to_owned();
    if names.is_empty() {
        return vec![everything];
    }
    // Git refuses to leave out what it ignores already. It fails if that is none of them.
    let asked: Vec<&str> = ["check-ignore", "--"].into_iter().chain(names.iter().copied()).collect();
    let git = judged::reading(folder).with_setting("core.quotePath=off");
    let ignored = git.text(&asked).unwrap_or_default();
    let excluded = names.iter().filter(|name| !ignored.lines().any(|one| one == **name));
    let excluded = excluded.map(|name| format!(":(top,literal,exclude){name}"));
    std::iter::once(everything).chain(excluded).collect()
}

fn with<'a>(words: &[&'a str], places: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(places.iter().map(String::as_str)).collect()
}

/// The commit that a folder is as, if nothing in it differs from that: so it is with nearly all idle worktrees, and
/// one git tells it.
fn commit_of(folder: &Path, places: &[String]) -> Option<String> {
    let look = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--"];
    let said = judged::reading(folder).names(&with(&look, places)).ok()?;
    let clean = said.iter().all(|line| line.starts_with("# "));
    let commit = said.iter().find_map(|line| line.strip_prefix("# branch.oid "));
    commit.filter(|_| clean).map(str::to_owned)
}

/// Everything in a folder that git does not ignore, run directories apart, as the id of a commit or a tree. The
/// folder's own index is not touched.
fn tree_of(context: &RunContext, folder: &Path) -> Result<String, GitError> {
    if folder != context.meta.root && !judged::is_linked(context, folder) {
        return Ok("git leads elsewhere from there".to_owned());
    }
    let places = without_run_dirs(context, folder);
    if let Some(commit) = commit_of(folder, &places) {
        return Ok(commit);
    }
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    let unique = std::thread::current().id();
    let scratch = context.paths.streams().join(format!("watch-{}-{unique:?}", &hash[..8]));
    let own = Git::at(folder).text(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
    judged::with_index(context.paths.state_root(), folder, &scratch, |git| {
        // With what git knows of unchanged files it need not read them again.
        let index = scratch.join("index");
        if std::fs::copy(&own, &index).is_ok()
            && let Ok(written) = std::fs::metadata(&own).and_then(|data| data.modified())
        {
            // Files as young as the index are read all the same, so it must not look younger than it is.
            let _ = std::fs::File::options().write(true).open(&index).map(|file| file.set_modified(written));
        }
        git.text(&with(&["add", "-A", "--"], &places))?;
        git.text(&["write-tree"])
    })
}
