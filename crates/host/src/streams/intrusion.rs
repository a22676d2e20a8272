//! An agent that leaves its worktree is caught (J-48): the user's checkout and the worktrees beside its own are
//! compared before and after. Who works in a worktree by right is known, so that only what nobody may have
//! changed counts. What was changed is kept as a patch, which takes it back with `git apply -R`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use gatewright_attempts::{Git, GitError};
use serde::{Deserialize, Serialize};

use super::{judged, place::Workplace, worktree::Record};
use crate::run_context::RunContext;

/// Worktrees beside the own one that are looked at; more would cost more than they tell.
const SIBLINGS_MAX: usize = 8;
const NAMED_FILES: usize = 5;

/// Who is at work where, in this engine.
static WORK: Mutex<BTreeMap<PathBuf, Work>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    live: u32,
    /// Grows with every beginning and every end.
    changes: u64,
}

fn work_in(folder: &Path) -> Work {
    WORK.lock().unwrap_or_else(PoisonError::into_inner).get(folder).copied().unwrap_or_default()
}

/// Somebody works here by right, until it is dropped.
#[derive(Debug)]
pub struct Busy {
    folder: PathBuf,
}

impl Busy {
    pub fn new(folder: &Path) -> Busy {
        let mut known = WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let work = known.entry(folder.to_owned()).or_default();
        work.live += 1;
        work.changes += 1;
        Busy { folder: folder.to_owned() }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut known = WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let work = known.entry(self.folder.clone()).or_default();
        work.live = work.live.saturating_sub(1);
        work.changes += 1;
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
    /// Of this engine only: an engine that comes later knows nothing of worktrees, only of the checkout.
    #[serde(skip)]
    changes: Option<u64>,
}

impl Beside {
    /// Looks at what an attempt in this place must not touch.
    pub fn begin(context: &RunContext, place: &Workplace) -> Beside {
        let mut trees = Vec::new();
        let own = place.folder();
        if let Workplace::Worktree(_) = place {
            let checkout = context.meta.root.clone();
            let tree = tree_of(context, &checkout).ok();
            trees.extend(tree.map(|tree| Seen { folder: checkout, tree, changes: None }));
        }
        let beside = Record::all(&context.paths).into_iter().filter(|record| record.path != *own);
        for record in beside.filter(|record| record.path.exists()).take(SIBLINGS_MAX) {
            let work = work_in(&record.path);
            if work.live == 0
                && let Ok(tree) = tree_of(context, &record.path)
            {
                trees.push(Seen { folder: record.path, tree, changes: Some(work.changes) });
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
    fn intrusion(&self, context: &RunContext, name: &str) -> Option<String> {
        let is_checkout = self.folder == context.meta.root;
        if !is_checkout {
            let work = work_in(&self.folder);
            // Somebody worked there by right meanwhile, or nobody knows.
            if work.live > 0 || self.changes != Some(work.changes) {
                return None;
            }
        }
        let now = tree_of(context, &self.folder).ok().filter(|now| *now != self.tree)?;
        let git = judged::reading(&self.folder);
        let files = git.names(&["diff", "--name-only", "--no-renames", "-z", &self.tree, &now]).ok()?;
        let patch =
            git.bytes(&["diff", "--binary", "--no-ext-diff", "--no-textconv", &self.tree, &now]).ok()?;
        let path = context.paths.patch(&format!("intrusion-{name}"));
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let _ = made.and_then(|()| std::fs::write(&path, patch));
        let named: Vec<String> = files.iter().take(NAMED_FILES).map(|file| format!("`{file}`")).collect();
        let more = files.len().saturating_sub(NAMED_FILES);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let whose = if is_checkout { "your checkout" } else { "the worktree of another stream" };
        Some(format!(
            "while it worked in its own folder, {whose} ({}) was changed: {}{rest}; `git -C {} apply -R {}` takes that back",
            self.folder.display(),
            named.join(", "),
            self.folder.display(),
            path.display()
        ))
    }
}

/// Everything in a folder that git does not ignore, as the id of a tree. The folder's own index is not touched.
fn tree_of(context: &RunContext, folder: &Path) -> Result<String, GitError> {
    if folder != context.meta.root && !judged::is_linked(context, folder) {
        return Ok("git leads elsewhere from there".to_owned());
    }
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    let unique = std::thread::current().id();
    let scratch = context.paths.streams().join(format!("watch-{}-{unique:?}", &hash[..8]));
    let own = Git::at(folder).text(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
    judged::with_index(context.paths.state_root(), folder, &scratch, |git| {
        // With what git knows of unchanged files it need not read them again.
        let _ = std::fs::copy(own, scratch.join("index"));
        git.text(&["add", "-A"])?;
        git.text(&["write-tree"])
    })
}
