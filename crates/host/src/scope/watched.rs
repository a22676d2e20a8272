//! Files that are nobody's work and that no agent may change: what the engine keeps of an attempt and its run, other
//! runs of the project, and files of the user that decide what runs with the user's rights. In the sandbox they are
//! out of reach. Without one they are looked at before and after; what changed is named, nothing is undone.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_attempts::{AttemptDir, Git};
use gatewright_core::fact::{Intrusion, IntrusionKind};
use serde::{Deserialize, Serialize};

use super::{
    checkout::is_locked,
    listed,
    protect::{Marks, differing, mark_of},
};
use crate::{
    disk::RealDisk,
    journal::lock_path,
    project::{Project, user_config},
    run_context::RunContext,
    store::RunStore,
};

/// Files of an attempt that are written before its process starts, and never again.
const OF_ATTEMPT: [&str; 3] = ["prompt.md", "outputs.json", "conversation.json"];
/// What programs of the user execute or believe without asking, below the home directory.
const OF_HOME: [&str; 14] = [
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".gitconfig",
    ".config/git/config",
    ".config/git/attributes",
    ".config/git/ignore",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".ssh/rc",
];
/// Files of other runs that are looked at, the newest runs first.
const OTHERS_MAX: usize = 5_000;

/// Files that earlier attempts of the run delivered, those that are looked at.
const DELIVERED_MAX: usize = 500;

/// How the files were before an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Of the attempt and of its run: nobody writes them, so a change fails the attempt.
    own: Marks,
    around: Around,
}

/// Files that others may have reasons to change: a change is only noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    user: Marks,
    others: BTreeMap<String, Marks>,
    /// Branches and tags of the user, seen from a worktree.
    refs: Marks,
}

impl Watched {
    pub fn look(context: &RunContext, dir: &AttemptDir, folder: &Path) -> Watched {
        Watched { own: of_run(context, Some(dir)), around: Around::look(context, folder) }
    }

    /// The same around something that is no attempt.
    pub fn look_around(context: &RunContext, folder: &Path) -> Watched {
        Watched { own: of_run(context, None), around: Around::look(context, folder) }
    }

    /// What the attempt changed of its own records, in words.
    pub fn trespass(&self, context: &RunContext, dir: &AttemptDir, role: &str) -> Option<String> {
        self.kept(&of_run(context, Some(dir)), &format!("role `{role}`"))
    }

    /// The same of something that is no attempt.
    pub fn trespass_around(&self, context: &RunContext, who: &str) -> Option<String> {
        self.kept(&of_run(context, None), who)
    }

    fn kept(&self, now: &Marks, who: &str) -> Option<String> {
        let changed: Vec<String> = differing(&self.own, now)
            .into_iter()
            .filter(|(_, how)| *how != "added")
            .map(|(path, how)| format!("{path} ({how})"))
            .collect();
        (!changed.is_empty())
            .then(|| format!("{who} changed what the engine keeps of the run: {}", listed(&changed)))
    }

    pub fn noticed(&self, context: &RunContext, folder: &Path) -> Vec<Intrusion> {
        self.noticed_while(context, folder, "it was at work")
    }

    /// `meanwhile`: what went on, as the end of a sentence.
    pub fn noticed_while(&self, context: &RunContext, folder: &Path, meanwhile: &str) -> Vec<Intrusion> {
        self.around.noticed(context, folder, meanwhile)
    }
}

impl Around {
    pub fn look(context: &RunContext, folder: &Path) -> Around {
        Around { user: of_user(context), others: of_other_runs(context), refs: of_refs(context, folder) }
    }

    /// What is different now, one sentence for each kind.
    fn noticed(&self, context: &RunContext, folder: &Path, meanwhile: &str) -> Vec<Intrusion> {
        let mut said = Vec::new();
        let mut say = |whose: &str, changed: Vec<(String, &'static str)>| {
            let names: Vec<String> = changed.iter().map(|(path, how)| format!("{path} ({how})")).collect();
            if !names.is_empty() {
                let what = format!("{whose} changed while {meanwhile} without a sandbox: {}", listed(&names));
                said.push(Intrusion { kind: IntrusionKind::Watched, what, by: Vec::new() });
            }
        };
        say("files of the user", differing(&self.user, &of_user(context)));
        say("files of other runs", self.of_others(context));
        say("branches and tags of the user", differing(&self.refs, &of_refs(context, folder)));
        said
    }

    fn of_others(&self, context: &RunContext) -> Vec<(String, &'static str)> {
        let now = of_other_runs(context);
        let mut found = Vec::new();
        for (run, before) in &self.others {
            let gone = !runs_dir(context).join(run).exists();
            match now.get(run) {
                // At work again: its own engine watches over it.
                None if !gone => {}
                Some(after) if after == before || is_authentic(context, run, before, after) => {}
                other => {
                    let empty = Marks::new();
                    let changed = differing(before, other.unwrap_or(&empty));
                    found.extend(changed.into_iter().filter(|(_, how)| *how != "added"));
                }
            }
        }
        found
    }
}

/// The user went on with that run meanwhile: its journal grew and is sealed by the user's key.
fn is_authentic(context: &RunContext, run: &str, before: &Marks, after: &Marks) -> bool {
    let only_records = differing(before, after)
        .iter()
        .all(|(path, how)| *how == "added" || (*how == "modified" && path.ends_with("journal.jsonl")));
    let project = Project::at(&context.meta.root, context.paths.state_root());
    let store = RunStore::new(Arc::new(RealDisk), project);
    only_records && store.snapshot(run, None).is_ok_and(|snapshot| snapshot.authentic)
}

fn runs_dir(context: &RunContext) -> PathBuf {
    context.paths.dir.parent().map(Path::to_owned).unwrap_or_default()
}

fn of_run(context: &RunContext, dir: Option<&AttemptDir>) -> Marks {
    let mut marks = Marks::new();
    let mut mark = |name: String, path: &Path| {
        marks.extend(mark_of(path).map(|mark| (name, mark)));
    };
    for (name, dir) in OF_ATTEMPT.iter().zip(dir.into_iter().cycle()) {
        mark(format!("{name} of its attempt"), &dir.path.join(name));
    }
    mark("run.json".to_owned(), &context.paths.meta());
    let plans = context.paths.plan(&context.meta.digest);
    for entry in fs::read_dir(plans.parent().unwrap_or(&plans)).into_iter().flatten().flatten() {
        mark(format!("plans/{}", entry.file_name().to_string_lossy()), &entry.path());
    }
    for (name, path) in delivered(context, dir) {
        marks.extend(quick_mark(&path).map(|mark| (name, mark)));
    }
    // A folder that became a link would lead to files of somebody else.
    let is_folder = |dir: &AttemptDir| fs::symlink_metadata(dir.out_dir()).is_ok_and(|data| data.is_dir());
    if dir.is_some_and(is_folder) {
        marks.insert("out of its attempt".to_owned(), "folder".to_owned());
    }
    marks
}

/// What attempts of this run that are over have delivered: attempts are immutable.
fn delivered(context: &RunContext, dir: Option<&AttemptDir>) -> Vec<(String, PathBuf)> {
    let attempts = folders(&context.paths.attempts()).into_iter().flat_map(|step| folders(&step));
    let is_own = |attempt: &Path| dir.is_some_and(|dir| dir.path == attempt);
    let over = attempts.filter(|attempt| !is_own(attempt) && attempt.join("exit.json").exists());
    let files = over.flat_map(|attempt| files_below(&attempt.join("out")));
    let named = files.filter_map(|path| {
        let inside = path.strip_prefix(&context.paths.dir).ok()?;
        Some((inside.to_string_lossy().into_owned(), path))
    });
    named.take(DELIVERED_MAX).collect()
}

fn of_user(context: &RunContext) -> Marks {
    let mut marks = Marks::new();
    let home = context.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone());
    let of_home = home.iter().flat_map(|home| OF_HOME.iter().map(|name| Path::new(home).join(name)));
    let key = context.paths.state_root().join(crate::user_key::KEY_FILE);
    for path in of_home.chain(user_config()).chain([key]) {
        marks.extend(mark_of(&path).map(|mark| (path.display().to_string(), mark)));
    }
    marks
}

/// Runs that no engine holds, by their records and by what counts of their attempts.
fn of_other_runs(context: &RunContext) -> BTreeMap<String, Marks> {
    let entries = fs::read_dir(runs_dir(context)).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|run| *run != context.paths.dir && run.is_dir());
    runs.sort_by_key(|run| std::cmp::Reverse(fs::metadata(run).and_then(|data| data.modified()).ok()));
    let mut left = OTHERS_MAX;
    let mut others = BTreeMap::new();
    for run in runs {
        let journal = run.join("journal.jsonl");
        if is_locked(&lock_path(&journal)) {
            continue;
        }
        let mut marks = Marks::new();
        let mut files = vec![journal, run.join("run.json")];
        let attempts = folders(&run.join("attempts")).into_iter().flat_map(|step| folders(&step));
        files.extend(attempts.flat_map(|attempt| files_below(&attempt.join("out"))));
        if files.len() > left {
            break;
        }
        left -= files.len();
        marks.extend(files.iter().filter_map(|path| Some((path.display().to_string(), quick_mark(path)?))));
        if let Some(name) = run.file_name() {
            others.insert(name.to_string_lossy().into_owned(), marks);
        }
    }
    others
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) if files.len() < OTHERS_MAX => files.push(entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    files
}

/// No process can set a file's change time.
fn quick_mark(path: &Path) -> Option<String> {
    let data = fs::symlink_metadata(path).ok()?;
    Some(format!("{}-{}-{}.{}", data.len(), data.ino(), data.ctime(), data.ctime_nsec()))
}

/// An agent in the checkout itself may commit there; one in a worktree has no business with the user's branches.
fn of_refs(context: &RunContext, folder: &Path) -> Marks {
    if folder == context.meta.root {
        return Marks::new();
    }
    let arguments = ["for-each-ref", "--format=%(refname) %(objectname)"];
    let said = Git::at(&context.meta.root).text(&arguments).unwrap_or_default();
    let is_users =
        |name: &str| !name.starts_with("refs/heads/gatewright/") && !name.starts_with("refs/remotes/");
    let lines = said.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| is_users(name));
    lines.map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
}
