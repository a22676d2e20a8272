//! What executes an agent's work: checks, and commits with their hooks. The tree and the protected files are compared
//! around it as around an attempt: what a role may not do, its test script may not do for it. Facts only.

use std::{fs, path::PathBuf, time::SystemTime};

use gatewright_core::fact::{FileChange, Intrusion};
use gatewright_workflow::{
    frozen::OnTrespass,
    globs::{Bare, Globs},
};

pub use super::planted::commits_run_something;
use super::{
    AFTER_FILE, After, CHANGES_MAX, KEPT_DIR, Left, Of, UNDONE_DIR, VERSION, Watch, change,
    checkout::{Beside, Checkout, Holder},
    files_of, id, is_of_the_engine, left_by_earlier, listed,
    picture::{Difference, Picture},
    pictures,
    protect::{Marks, differing},
    protected,
    put_back::Kept,
    read_sealed,
    run_dirs::{edited_at, edited_since},
    to_be_kept,
    watched::Watched,
    write_sealed,
};
use crate::{journal::lock_path, run_context::RunContext};

/// Something that is executed.
#[derive(Clone, Debug)]
pub struct Execution {
    /// As a sentence begins with it: "check `tests`".
    pub what: String,
    /// Whose work it is and what they may write; without a role everything that is not protected.
    pub watch: Watch,
    pub folder: PathBuf,
    /// Files that may change all the same: a report that the check itself names, what is to be committed.
    pub spared: Vec<String>,
    /// Whether the tree is compared at all.
    pub tree: bool,
}

/// What was there before.
pub struct Watching<'a> {
    context: &'a RunContext,
    execution: &'a Execution,
    since: SystemTime,
    /// `None`: the tree is not compared.
    before: Option<(Checkout, Holder, Picture, Marks)>,
    watched: Option<Watched>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Seen {
    /// What was touched that may not be touched: then it does not count.
    pub trespasses: Vec<String>,
    pub found: Vec<Intrusion>,
    pub changes: Vec<FileChange>,
    pub changes_left_out: u64,
}

impl<'a> Watching<'a> {
    /// Looks at everything before it begins.
    pub fn begin(context: &'a RunContext, execution: &'a Execution) -> Result<Watching<'a>, String> {
        let Execution { watch, folder, .. } = execution;
        let since = SystemTime::now();
        let watched = (!watch.kept_in).then(|| Watched::look_around(context, folder));
        if !execution.tree {
            return Ok(Watching { context, execution, since, before: None, watched });
        }
        let checkout = Checkout::of(folder, &context.paths.project_dir().join("checkouts"));
        let holder = Holder {
            version: VERSION,
            run: context.meta.id.clone(),
            step: format!("{}: {}", watch.step, execution.what.replace('`', "")),
            attempt: watch.attempt,
            attempt_dir: context.paths.attempt(watch.step.as_str(), watch.attempt),
            run_lock: lock_path(&context.paths.journal()),
            may_write: watch.may_write.clone(),
            beside: Vec::new(),
            neighbours: Vec::new(),
            observes: true,
            came: 0,
            went: None,
        };
        checkout.enter(&holder, &|| false).map_err(|error| error.to_string())?;
        let pictures = pictures(context, folder);
        let picture = match pictures.take() {
            Ok(picture) => picture,
            Err(error) => {
                let _ = checkout.leave(&holder);
                return Err(error.to_string());
            }
        };
        let marks = protected(context, folder, watch).marks(&pictures, &picture);
        kept(context, execution).keep(&to_be_kept(watch, &marks));
        Ok(Watching { context, execution, since, before: Some((checkout, holder, picture, marks)), watched })
    }

    /// Compares when it is over.
    pub fn end(self) -> Seen {
        let Watching { context, execution, since, before, watched } = self;
        let (watch, who) = (&execution.watch, execution.what.as_str());
        let mut seen = Seen::default();
        if let Some((checkout, holder, picture, marks)) = before {
            let looked = Compared::look(context, execution, &picture, marks);
            // The picture is taken: from here on others may write.
            let beside = checkout.leave(&holder).unwrap_or_default();
            match looked {
                Ok(compared) => compared.judge(context, execution, &picture, &beside, &mut seen),
                Err(problem) => seen.trespasses.push(format!("what {who} changed cannot be told: {problem}")),
            }
            let edited = edited_since(context, since, &watch.outputs);
            if !edited.is_empty() {
                let list = listed(&edited.iter().map(|one| one.shown.clone()).collect::<Vec<_>>());
                seen.trespasses.push(format!("{who} changed files in run directories: {list}"));
                let left = edited.into_iter().map(|one| Left {
                    path: one.shown,
                    before: Some(one.accepted.0),
                    after: Some(one.now.0),
                    attempt: watch.attempt,
                    of: Of::Published,
                });
                remember(context, watch, left.collect());
            }
        }
        if let Some(watched) = &watched {
            seen.trespasses.extend(watched.trespass_around(context, who));
            let meanwhile = format!("what `{}` wrote was executed", watch.step);
            seen.found.extend(watched.noticed_while(context, &execution.folder, &meanwhile));
        }
        seen
    }
}

/// The tree and the protected files afterwards.
struct Compared {
    picture: Picture,
    differences: Vec<Difference>,
    before: Marks,
    after: Marks,
}

impl Compared {
    fn look(
        context: &RunContext,
        execution: &Execution,
        picture: &Picture,
        before: Marks,
    ) -> Result<Compared, String> {
        let pictures = pictures(context, &execution.folder);
        let now = pictures.take().map_err(|error| error.to_string())?;
        let differences = pictures.differences(picture, &now).map_err(|error| error.to_string())?;
        let after = protected(context, &execution.folder, &execution.watch).marks(&pictures, &now);
        Ok(Compared { picture: now, differences, before, after })
    }

    fn judge(
        self,
        context: &RunContext,
        execution: &Execution,
        before: &Picture,
        beside: &Beside,
        seen: &mut Seen,
    ) {
        let Execution { watch, folder, what, .. } = execution;
        let protected = protected(context, folder, watch);
        let globs = watch.may_write.as_ref().map(|globs| Globs::new(globs, Bare::InRoot));
        let others: Vec<Globs> =
            beside.scopes.iter().flatten().map(|globs| Globs::new(globs, Bare::InRoot)).collect();
        // Somebody was there who may write everything.
        let free = beside.scopes.contains(&None);
        let may = |path: &str| {
            free || globs.as_ref().is_none_or(|globs| globs.contains(path))
                || others.iter().any(|globs| globs.contains(path))
                || execution.spared.iter().any(|spared| spared == path)
        };
        let (forbidden, outside): (Vec<&Difference>, Vec<&Difference>) = self
            .differences
            .iter()
            .filter(|one| protected.contains(&one.path) || !may(&one.path))
            .partition(|one| protected.contains(&one.path));
        let named = |list: &[&Difference]| {
            list.iter().map(|one| format!("{} ({})", one.path, one.word())).collect::<Vec<_>>()
        };
        let suspects: Vec<String> = beside.steps.iter().map(|step| format!("`{step}`")).collect();
        let blamed = |list: &str| match suspects.as_slice() {
            [] => format!("{what} changed {list}"),
            others => format!("while {what} ran, {list} was changed, by it or by {}", others.join(", ")),
        };
        if !outside.is_empty() {
            let scope = match watch.may_write.as_deref() {
                Some([]) | None => "nothing".to_owned(),
                Some(globs) => globs.join(", "),
            };
            let list = blamed(&listed(&named(&outside)));
            let role = &watch.role;
            seen.trespasses
                .push(format!("{list}; it executes what role `{role}` wrote, which may write {scope}"));
        }
        let marked = differing(&self.before, &self.after);
        let mut touched: Vec<String> = marked.iter().map(|(path, how)| format!("{path} ({how})")).collect();
        touched.extend(named(&forbidden));
        touched.sort();
        touched.dedup();
        if !touched.is_empty() {
            seen.trespasses.push(blamed(&format!("protected files: {}", listed(&touched))));
        }
        let wrong: Vec<&Difference> = outside.iter().chain(&forbidden).copied().collect();
        let mut left = self.still_left(context, execution, seen);
        let restores = watch.on_trespass == OnTrespass::Restore;
        let is_undone = |path: &str| restores || is_of_the_engine(path);
        let (undone, stays): (Vec<&Difference>, Vec<&Difference>) =
            wrong.iter().copied().partition(|one| is_undone(&one.path));
        let names: Vec<&str> =
            marked.iter().map(|(path, _)| path.as_str()).filter(|path| is_undone(path)).collect();
        if !undone.is_empty() || !names.is_empty() {
            seen.trespasses.push(self.undo(context, execution, before, &undone, &names));
        }
        let marked: Vec<_> = marked.iter().filter(|(path, _)| !is_undone(path)).collect();
        if !stays.is_empty() || !marked.is_empty() {
            let attempt = watch.attempt;
            left.extend(stays.iter().map(|one| Left {
                path: one.path.clone(),
                before: id(one.before.as_ref()),
                after: id(one.after.as_ref()),
                attempt,
                of: Of::Tree,
            }));
            left.extend(marked.iter().map(|(path, _)| Left {
                path: path.clone(),
                before: self.before.get(path).cloned(),
                after: self.after.get(path).cloned(),
                attempt,
                of: Of::Protected,
            }));
            remember(context, watch, left);
        }
        let stays: Vec<&Difference> =
            files_of(&self.differences).filter(|one| !undone.contains(one)).collect();
        seen.changes = stays.iter().take(CHANGES_MAX).map(|one| change(one)).collect();
        seen.changes_left_out = stays.len().saturating_sub(CHANGES_MAX) as u64;
    }

    /// What was left behind before, by this very attempt (of an engine that was killed) or by one before it, and is
    /// still there.
    fn still_left(&self, context: &RunContext, execution: &Execution, seen: &mut Seen) -> Vec<Left> {
        let watch = &execution.watch;
        let next = Watch { attempt: watch.attempt.saturating_add(1), ..watch.clone() };
        let pictures = pictures(context, &execution.folder);
        let mut left = left_by_earlier(context, &next);
        left.retain(|left| match left.of {
            Of::Tree => {
                let now = pictures.content_at(&self.picture, &left.path);
                now.is_ok_and(|now| id(now.as_ref()) == left.after)
            }
            Of::Protected => self.after.get(&left.path) == left.after.as_ref(),
            Of::Published => {
                edited_at(context, &left.path).is_some_and(|one| Some(&one.now.0) == left.after.as_ref())
            }
            // They are compared around attempts.
            Of::Ref => false,
        });
        // What it did just now is said already.
        let again = |left: &Left| {
            self.differences.iter().any(|one| one.path == left.path)
                || self.before.get(&left.path) != self.after.get(&left.path)
        };
        let old: Vec<String> = left
            .iter()
            .filter(|left| !again(left))
            .map(|left| format!("{} (since attempt {})", left.path, left.attempt))
            .collect();
        if !old.is_empty() {
            let list = listed(&old);
            seen.trespasses.push(format!(
                "what was changed while {} ran is still there: {list}; undo it",
                execution.what
            ));
        }
        left
    }

    /// Puts back what was there, keeps what is undone, and says so.
    fn undo(
        &self,
        context: &RunContext,
        execution: &Execution,
        before: &Picture,
        wrong: &[&Difference],
        marked: &[&str],
    ) -> String {
        let Execution { watch, folder, .. } = execution;
        let pictures = pictures(context, folder);
        let paths: Vec<&str> = wrong.iter().map(|one| one.path.as_str()).collect();
        let dir = context.paths.attempt(watch.step.as_str(), watch.attempt);
        let label: String =
            execution.what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let patch = dir.join(format!("undone-{label}.patch"));
        let kept_patch = pictures
            .patch(before, &self.picture, &paths)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                let made = fs::create_dir_all(&dir).and_then(|()| fs::write(&patch, bytes));
                made.map_err(|error| format!("{}: {error}", patch.display()))
            });
        if let Err(problem) = kept_patch {
            // Nothing is thrown away that could not be kept.
            return format!("nothing was undone, because what was changed cannot be kept: {problem}");
        }
        let mut failed: Vec<String> = wrong
            .iter()
            .filter_map(|one| pictures.restore(one).err())
            .map(|error| error.to_string())
            .collect();
        let kept = kept(context, execution);
        let shown = |path: &str| wrong.iter().any(|one| one.path == path);
        for path in marked.iter().filter(|path| !shown(path)) {
            let put_back = kept.put_back(path, self.before.get(*path).map(String::as_str));
            failed.extend(put_back.err().map(|problem| format!("{path}: {problem}")));
        }
        if failed.is_empty() {
            format!("the change was undone; it is kept in {}", dir.display())
        } else {
            let failed = failed.join("; ");
            format!("the change could not be undone everywhere ({failed}); it is kept in {}", dir.display())
        }
    }
}

fn kept(context: &RunContext, execution: &Execution) -> Kept {
    let watch = &execution.watch;
    let dir = context.paths.attempt(watch.step.as_str(), watch.attempt);
    Kept::new(&execution.folder, context.paths.dir.join(KEPT_DIR), dir.join(UNDONE_DIR))
}

/// Kept with the attempt, so that the next one does not begin as if nothing had been.
fn remember(context: &RunContext, watch: &Watch, left: Vec<Left>) {
    let dir = context.paths.attempt(watch.step.as_str(), watch.attempt);
    let path = dir.join(AFTER_FILE);
    let known = if path.exists() {
        read_sealed::<After>(context, &path)
    } else {
        Ok(After { version: VERSION, ..After::default() })
    };
    // One that somebody else wrote is left as it is found.
    let Ok(mut after) = known else { return };
    for one in left {
        if !after.left.contains(&one) {
            after.left.push(one);
        }
    }
    let _ = fs::create_dir_all(&dir);
    let _ = write_sealed(context, &path, &After { version: VERSION, ..after });
}
