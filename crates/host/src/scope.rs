//! Write scopes: the tree before and after every attempt, and what was touched that should not have been.
//! Facts only; that a trespass fails the attempt is the core's to say.
//!
//! What was there before is kept with the attempt, under the user's seal, before its process starts: an
//! engine that comes later compares with the same picture.

pub mod checkout;
pub mod executed;
mod found;
pub mod meanwhile;
pub mod name;
pub mod picture;
mod planted;
mod protect;
mod put_back;
mod refs;
mod run_dirs;
mod sealed;
mod special;
pub mod watched;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use gatewright_attempts::{AttemptDir, Defence};
use gatewright_core::{
    fact::{FileChange, Intrusion},
    ids::StepId,
};
use gatewright_workflow::frozen::OnTrespass;
use serde::{Deserialize, Serialize};

use crate::{journal::lock_path, plain_file, run_context::RunContext};
use checkout::{Checkout, Holder};
use found::look;
use picture::{Content, Difference, Picture, Pictures, common_git_dir, git_dir};
use protect::{Marks, Protected};
use put_back::Kept;
use run_dirs::published;
pub(crate) use run_dirs::run_dirs;
use sealed::{read_sealed, write_sealed};
use watched::Watched;

const VERSION: u32 = 1;
/// Pictures of a project's folders, below its state.
pub const PICTURES_DIR: &str = "pictures";
const BEFORE_FILE: &str = "scope-before.json";
const AFTER_FILE: &str = "scope-after.json";
const UNCLAIMED_FILE: &str = "scope-unclaimed.json";
/// What was undone, beside the attempt.
pub const UNDONE_FILE: &str = "undone.patch";
/// The same for files that no patch shows.
const UNDONE_DIR: &str = "undone";
/// Protected files as they were, below the run's state.
const KEPT_DIR: &str = "protected";
/// Changes that the journal keeps of one attempt.
const CHANGES_MAX: usize = 2_000;
/// How git writes that a file is plain.
const PLAIN_MODE: &str = "100644";
/// Files that a message names.
const NAMED_MAX: usize = 12;

/// What an attempt may do to the tree.
#[derive(Clone, Debug)]
pub struct Watch {
    pub step: StepId,
    pub attempt: u32,
    pub role: String,
    /// `None` = everything that is not protected.
    pub may_write: Option<Vec<String>>,
    pub protect: Vec<String>,
    pub on_trespass: OnTrespass,
    /// Published names that this attempt may write to their places in the run directory.
    pub outputs: Vec<String>,
    /// The sandbox keeps it out of the main checkout: what changes there was not changed by it.
    pub apart: bool,
    /// A sandbox keeps it in its places, wherever it works.
    pub kept_in: bool,
}

/// The state before the launch, kept with the attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    version: u32,
    pub folder: PathBuf,
    pub picture: Picture,
    /// The main checkout, when the agent works elsewhere (J-48).
    #[serde(default)]
    main: Option<(PathBuf, Picture)>,
    marks: Marks,
    /// The commit and the branch the attempt starts from (decision 14).
    pub commit: Option<String>,
    pub branch: Option<String>,
    /// Trespasses of earlier attempts that are still in the tree.
    #[serde(default)]
    left: Vec<Left>,
    /// What earlier attempts left in the tree without speaking of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unclaimed: Option<Unclaimed>,
    /// Files that no agent may change, where no sandbox keeps it from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watched: Option<Watched>,
    /// Published files of this run that were in their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    published: Vec<String>,
    /// What git would run in the folder; `None`: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planted: Option<Marks>,
    /// Branches and tags, where it works in the user's own checkout or no sandbox can tell them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refs: Option<Marks>,
}

impl Before {
    /// The tree without anything that nobody spoke of.
    pub fn since(&self) -> &Picture {
        self.unclaimed.as_ref().map_or(&self.picture, |unclaimed| &unclaimed.since)
    }
}

/// Changes that no attempt of a step named although it was to name all of its own: kept with the attempt that
/// kept silent, so that the next one cannot pass by keeping silent too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unclaimed {
    version: u32,
    since: Picture,
    left: Vec<Left>,
}

/// A trespass that was not undone: it fails the next attempt too as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    path: String,
    before: Option<String>,
    after: Option<String>,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Of::is_tree")]
    of: Of,
}

/// Where something was left, and so what `before` and `after` of it are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Of {
    /// In the pictures: ids of git.
    #[default]
    Tree,
    /// Among the protected files that pictures do not show: marks.
    Protected,
    /// A branch, a tag or `HEAD`: what it stands for.
    Ref,
    /// In a run directory: hashes of contents.
    Published,
}

impl Of {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_tree(&self) -> bool {
        *self == Of::Tree
    }
}

/// What the comparison found; kept, so that a second look after a crash says the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    version: u32,
    pub picture: Picture,
    pub trespasses: Vec<String>,
    pub changes: Vec<FileChange>,
    pub changes_left_out: u64,
    /// Nobody else was in the checkout meanwhile.
    #[serde(default)]
    pub alone: bool,
    #[serde(default)]
    left: Vec<Left>,
    /// What was changed around it by somebody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Intrusion>,
}

/// An attempt in its checkout.
#[derive(Debug)]
pub struct Entered {
    checkout: Checkout,
    holder: Holder,
    folder: PathBuf,
    /// `None`: nothing can be compared, and nothing has to be.
    before: Option<Before>,
}

/// What is known of the tree around one attempt.
#[derive(Debug)]
pub struct Evidence {
    /// Where the agent worked.
    pub folder: PathBuf,
    pub before: Option<Before>,
    pub after: After,
}

impl Evidence {
    /// Whether a file of the folder is another than before the attempt; `None` if nobody can say (it is
    /// ignored, or nothing was compared).
    pub fn is_changed(&self, context: &RunContext, path: &str) -> Option<bool> {
        let before = self.before.as_ref()?;
        let below = format!("{}/", path.trim_end_matches('/'));
        let is_it = |other: &str| other == path || other.starts_with(&below);
        if self.after.changes.iter().any(|one| is_it(&one.path)) {
            return Some(true);
        }
        // What an earlier attempt changed in silence may be named now.
        if before.unclaimed.iter().flat_map(|unclaimed| &unclaimed.left).any(|left| is_it(&left.path)) {
            return Some(true);
        }
        let pictures = pictures(context, &self.folder);
        let now = pictures.content_at(&self.after.picture, path).ok()??;
        let then = pictures.content_at(&before.picture, path).ok()?;
        Some(then.as_ref() != Some(&now))
    }

    /// Files that it changed and that nobody beside it can have changed.
    pub fn own_changes(&self) -> &[FileChange] {
        if self.after.alone { &self.after.changes } else { &[] }
    }

    /// What earlier attempts left without speaking of it, and is still there.
    pub fn still_unclaimed(&self, context: &RunContext) -> Vec<String> {
        let Some(unclaimed) = self.before.as_ref().and_then(|before| before.unclaimed.as_ref()) else {
            return Vec::new();
        };
        let pictures = pictures(context, &self.folder);
        let is_there = |left: &&Left| {
            let now = pictures.content_at(&self.after.picture, &left.path);
            now.is_ok_and(|now| id(now.as_ref()) == left.after)
        };
        unclaimed.left.iter().filter(is_there).map(|left| left.path.clone()).collect()
    }

    /// A change that takes back what nobody spoke of is no work.
    pub fn takes_back(&self, change: &FileChange) -> bool {
        let unclaimed = self.before.as_ref().and_then(|before| before.unclaimed.as_ref());
        unclaimed
            .into_iter()
            .flat_map(|unclaimed| &unclaimed.left)
            .any(|left| left.path == change.path && left.before == change.after)
    }

    /// Keeps what nobody spoke of for the next attempt.
    pub fn keep_unclaimed(&self, context: &RunContext, dir: &AttemptDir, paths: &[String]) {
        let Some(before) = self.before.as_ref().filter(|_| !paths.is_empty()) else { return };
        let known: Vec<&Left> = before.unclaimed.iter().flat_map(|unclaimed| &unclaimed.left).collect();
        let left = paths.iter().filter_map(|path| {
            let fresh = self.after.changes.iter().find(|one| one.path == *path).map(|one| Left {
                path: one.path.clone(),
                before: one.before.clone(),
                after: one.after.clone(),
                of: Of::Tree,
                attempt: dir.path.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0),
            });
            fresh.or_else(|| known.iter().find(|left| left.path == *path).map(|left| (*left).clone()))
        });
        let unclaimed = Unclaimed { version: VERSION, since: before.since().clone(), left: left.collect() };
        // Without it the next attempt is compared with the tree as it found it.
        let _ = write_sealed(context, &dir.path.join(UNCLAIMED_FILE), &unclaimed);
    }

    /// What it changed outside its scope and is still there.
    pub fn left_outside(&self) -> Vec<String> {
        self.after.left.iter().filter(|left| left.of == Of::Tree).map(|left| left.path.clone()).collect()
    }

    /// When the tree was looked at before the launch.
    pub fn started(&self, dir: &AttemptDir) -> Option<std::time::SystemTime> {
        fs::metadata(dir.path.join(BEFORE_FILE)).and_then(|data| data.modified()).ok()
    }
}

/// Waits for the checkout and keeps what is there. `Err`: the attempt must not start. `Ok(None)`: it was
/// told to stop while it waited.
pub fn enter(
    context: &RunContext,
    dir: &AttemptDir,
    folder: &Path,
    watch: &Watch,
) -> Result<Option<Entered>, String> {
    let store = context.paths.project_dir();
    let checkout = Checkout::of(folder, &store.join("checkouts"));
    let holder = Holder {
        version: VERSION,
        run: context.meta.id.clone(),
        step: watch.step.to_string(),
        attempt: watch.attempt,
        attempt_dir: dir.path.clone(),
        run_lock: lock_path(&context.paths.journal()),
        may_write: watch.may_write.clone(),
        beside: Vec::new(),
        neighbours: Vec::new(),
        observes: false,
        came: 0,
        went: None,
    };
    let stopped = || dir.path.join("stop").exists();
    let entered = checkout.enter(&holder, &stopped);
    if !entered.map_err(|error| format!("the checkout cannot be entered: {error}"))? {
        return Ok(None);
    }
    let before = match before(context, dir, folder, watch) {
        Ok(before) => before,
        Err(problem) if watch.may_write.is_some() => {
            let _ = checkout.leave(&holder);
            let role = &watch.role;
            return Err(format!("the write scope of role `{role}` cannot be held: {problem}"));
        }
        Err(_) => None,
    };
    Ok(Some(Entered { checkout, holder, folder: folder.to_owned(), before }))
}

/// Files of the folder that are others now than before this attempt, and those before it that left their work
/// uncommitted; `None` if nobody can say.
pub fn changed_since(
    context: &RunContext,
    step: &StepId,
    attempt: u32,
    folder: &Path,
) -> Option<BTreeSet<String>> {
    let read = |attempt: u32| {
        let path = context.paths.attempt(step.as_str(), attempt).join(BEFORE_FILE);
        read_sealed::<Before>(context, &path).ok()
    };
    let head = head_of(folder).commit;
    let same_base = |before: &Before| before.folder == folder && before.commit == head;
    let before = (1..=attempt).filter_map(read).find(same_base)?;
    let pictures = pictures(context, folder);
    let now = pictures.take().ok()?;
    let differences = pictures.differences(before.since(), &now).ok()?;
    // A file that was moved is gone from where it was.
    let files = differences.into_iter().filter(|one| !one.is_repository());
    let both = files.flat_map(|one| std::iter::once(one.path).chain(one.from));
    // Those who ask have names from git's words.
    Some(both.map(|path| name::lossy(&path)).collect())
}

fn before(
    context: &RunContext,
    dir: &AttemptDir,
    folder: &Path,
    watch: &Watch,
) -> Result<Option<Before>, String> {
    let path = dir.path.join(BEFORE_FILE);
    if path.exists() {
        return read_sealed(context, &path).map(Some);
    }
    if dir.launch_spec().ok().flatten().is_some() {
        return Err("it was started before anybody looked at the tree".to_owned());
    }
    let pictures = pictures(context, folder);
    let take = |pictures: &Pictures| pictures.take().map_err(|error| error.to_string());
    let root = &context.meta.root;
    let main = if folder == root || watch.apart {
        None
    } else {
        Some((root.clone(), take(&self::pictures(context, root))?))
    };
    let head = head_of(folder);
    let picture = take(&pictures)?;
    let marks = protected(context, folder, watch).marks(&pictures, &picture);
    kept(context, dir, folder).keep(&to_be_kept(watch, &marks));
    let before = Before {
        version: VERSION,
        folder: folder.to_owned(),
        planted: Some(planted::look(folder, &picture)),
        refs: (folder == root || refs::are_together(folder)).then(|| refs_of(folder, watch, &picture, None)),
        marks,
        picture,
        main,
        commit: head.commit,
        branch: head.branch,
        left: left_by_earlier(context, watch),
        unclaimed: unclaimed_by_earlier(context, watch),
        watched: (!watch.kept_in).then(|| Watched::look(context, dir, folder)),
        published: published(context),
    };
    write_sealed(context, &path, &before).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Some(before))
}

/// Who may write nothing may take nothing away either; who may write may commit.
fn refs_of(folder: &Path, watch: &Watch, picture: &Picture, known: Option<&Marks>) -> Marks {
    if watch.is_reader() { refs::look_closely(folder, picture, known) } else { refs::look(folder) }
}

impl Watch {
    fn is_reader(&self) -> bool {
        self.may_write.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Entered {
    /// Compares, undoes if that is configured, and leaves the checkout.
    pub fn leave(self, context: &RunContext, dir: &AttemptDir, watch: &Watch) -> Evidence {
        let after = self.compare(context, dir, watch);
        Evidence { folder: self.folder, before: self.before, after }
    }

    /// What the tree says between two turns: nothing is judged, undone or kept, the checkout stays its own.
    pub fn so_far(&self, context: &RunContext, watch: &Watch) -> Option<Evidence> {
        let before = self.before.as_ref()?;
        let found = look(context, before, watch).ok()?;
        let after = After {
            changes: files_of(&found.differences).take(CHANGES_MAX).map(change).collect(),
            picture: found.picture,
            ..After::default()
        };
        Some(Evidence { folder: self.folder.clone(), before: self.before.clone(), after })
    }

    /// It never started.
    pub fn give_up(self) {
        let _ = self.checkout.leave(&self.holder);
    }

    fn compare(&self, context: &RunContext, dir: &AttemptDir, watch: &Watch) -> After {
        let path = dir.path.join(AFTER_FILE);
        if path.exists() {
            let _ = self.checkout.leave(&self.holder);
            return read_sealed(context, &path)
                .unwrap_or_else(|problem| After { trespasses: vec![problem], ..After::default() });
        }
        let Some(before) = &self.before else {
            let _ = self.checkout.leave(&self.holder);
            return After::default();
        };
        let looked = look(context, before, watch);
        // The picture is taken: from here on others may write.
        let beside = self.checkout.leave(&self.holder).unwrap_or_default();
        let after = match looked {
            Ok(found) => found.judge(context, dir, before, watch, &beside),
            // Nobody can tell what it did: then it does not count.
            Err(problem) => After {
                trespasses: vec![format!("what role `{}` changed cannot be told: {problem}", watch.role)],
                ..After::default()
            },
        };
        // Without the file a second look after a crash compares again.
        let _ = write_sealed(context, &path, &After { version: VERSION, ..after.clone() });
        after
    }
}

/// What a path holds: the content, and whether it is more than a plain file. A change of the mode alone is one too.
fn id(content: Option<&Content>) -> Option<String> {
    content.map(|content| match content.mode.as_str() {
        "" | PLAIN_MODE => content.id.clone(),
        mode => format!("{} {mode}", content.id),
    })
}

fn files_of(differences: &[Difference]) -> impl Iterator<Item = &Difference> {
    differences.iter().filter(|one| !one.is_repository())
}

fn change(one: &Difference) -> FileChange {
    FileChange {
        path: one.path.clone(),
        before: id(one.before.as_ref()),
        after: id(one.after.as_ref()),
        from: one.from.clone(),
    }
}

pub fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED_MAX).map(|name| name::shown(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The pictures of a folder, without the run directory, whose files have their own ledger, and without the
/// state directory, should that lie inside.
pub fn pictures(context: &RunContext, folder: &Path) -> Pictures {
    let except = [context.meta.run_dir.as_path(), context.paths.state_root()];
    Pictures::of(folder, &context.paths.project_dir().join(PICTURES_DIR), &except)
}

/// What tells the engine what to do. It is put back whatever `on_trespass` says: a command in there would run with the
/// rights of the user as soon as they type the next one.
fn is_of_the_engine(path: &str) -> bool {
    (path.starts_with(".gatewright/") || path == ".gatewright") && !Defence::PutBack.is_off()
}

/// The protected files that may have to be put back.
fn to_be_kept(watch: &Watch, marks: &Marks) -> Marks {
    let all = watch.on_trespass == OnTrespass::Restore;
    let wanted = marks.iter().filter(|(path, _)| all || is_of_the_engine(path));
    wanted.map(|(path, mark)| (path.clone(), mark.clone())).collect()
}

/// Protected files as they were, to be put back.
fn kept(context: &RunContext, dir: &AttemptDir, folder: &Path) -> Kept {
    Kept::new(folder, context.paths.dir.join(KEPT_DIR), dir.path.join(UNDONE_DIR))
}

fn protected(context: &RunContext, folder: &Path, watch: &Watch) -> Protected {
    let mut except: Vec<PathBuf> = run_dirs(context).into_iter().map(|(_, dir)| dir).collect();
    except.push(context.paths.state_root().to_owned());
    Protected::new(folder, &watch.protect, except)
}

/// Trespasses that the last attempt of this step that was compared left in the tree.
fn left_by_earlier(context: &RunContext, watch: &Watch) -> Vec<Left> {
    let after = |attempt: u32| {
        let path = context.paths.attempt(watch.step.as_str(), attempt).join(AFTER_FILE);
        path.exists().then(|| read_sealed::<After>(context, &path).ok()).flatten()
    };
    (1..watch.attempt).rev().find_map(after).map(|after| after.left).unwrap_or_default()
}

/// What the last attempt of this step that said anything kept silent about.
fn unclaimed_by_earlier(context: &RunContext, watch: &Watch) -> Option<Unclaimed> {
    let before = watch.attempt.checked_sub(1).filter(|before| *before > 0)?;
    let path = context.paths.attempt(watch.step.as_str(), before).join(UNCLAIMED_FILE);
    path.exists().then(|| read_sealed(context, &path).ok()).flatten()
}

/// Where a checkout stands, read without git: no configuration of the repository is looked at.
#[derive(Debug, Default)]
pub struct Head {
    pub commit: Option<String>,
    pub branch: Option<String>,
}

pub fn head_of(folder: &Path) -> Head {
    let Some(own) = git_dir(folder) else { return Head::default() };
    let Ok(head) = plain_file::read_to_string(&own.join("HEAD")) else { return Head::default() };
    let Some(name) = head.trim().strip_prefix("ref:").map(str::trim) else {
        return Head { commit: Some(head.trim().to_owned()), branch: None };
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    let common = common_git_dir(folder).unwrap_or(own);
    let loose = plain_file::read_to_string(&common.join(name)).ok().map(|text| text.trim().to_owned());
    let packed = || {
        let text = plain_file::read_to_string(&common.join("packed-refs")).ok()?;
        text.lines()
            .find_map(|line| line.split_once(' ').filter(|(_, other)| *other == name))
            .map(|(id, _)| id.to_owned())
    };
    Head { commit: loose.or_else(packed), branch: Some(branch) }
}
