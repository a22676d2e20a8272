//! What the tree says after an attempt, held against what its role may write. Facts only, like all of this part.

use std::{collections::BTreeSet, fs};

use gatewright_attempts::AttemptDir;
use gatewright_core::fact::{Intrusion, IntrusionKind};
use gatewright_workflow::{
    frozen::OnTrespass,
    globs::{Bare, Globs},
};

use super::{
    After, Before, CHANGES_MAX, Left, Of, UNDONE_DIR, UNDONE_FILE, VERSION, Watch, change,
    checkout::Beside,
    files_of, id, is_of_the_engine, kept, listed,
    picture::{Difference, IGNORE_FILE, Picture, PictureError},
    pictures, planted,
    protect::{Marks, differing},
    protected, refs, refs_of,
    run_dirs::{Edited, edited_at, edited_in_run_dirs, ledger},
};
use crate::run_context::RunContext;

/// What the tree looks like after the attempt.
pub(super) struct Found {
    pub(super) picture: Picture,
    pub(super) differences: Vec<Difference>,
    main: Vec<Difference>,
    /// Protected files that pictures do not show.
    marks: Marks,
    refs: Marks,
    run_dirs: Vec<Edited>,
}

pub(super) fn look(context: &RunContext, before: &Before, watch: &Watch) -> Result<Found, String> {
    let text = |error: PictureError| error.to_string();
    let pictures = pictures(context, &before.folder);
    let picture = pictures.take().map_err(text)?;
    let differences = pictures.differences(&before.picture, &picture).map_err(text)?;
    let main = match &before.main {
        None => Vec::new(),
        Some((root, main)) => {
            let pictures = super::pictures(context, root);
            let now = pictures.take().map_err(text)?;
            pictures.differences(main, &now).map_err(text)?
        }
    };
    let marks = protected(context, &before.folder, watch).marks(&pictures, &picture);
    // Repositories that were there before: what became of others is no loss.
    let refs = before.refs.as_ref().map(|known| refs_of(&before.folder, watch, &before.picture, Some(known)));
    let refs = refs.unwrap_or_default();
    Ok(Found { picture, differences, main, marks, refs, run_dirs: edited_in_run_dirs(context, watch) })
}

/// What an attempt should not have touched.
#[derive(Default)]
struct Wrong {
    outside: Vec<Difference>,
    forbidden: Vec<Difference>,
    protected: Vec<(String, &'static str)>,
    refs: Vec<(String, &'static str)>,
    /// What else git keeps, and nobody can put back: it fails the attempt that did it, and no other.
    git_kept: Vec<(String, &'static str)>,
    published: Vec<Edited>,
}

impl Wrong {
    fn tree(&self) -> impl Iterator<Item = &Difference> {
        self.outside.iter().chain(&self.forbidden)
    }

    /// What tells the engine what to do: the next command of the user would obey it.
    fn of_the_engine(&self) -> Wrong {
        let own =
            |list: &[Difference]| list.iter().filter(|one| is_of_the_engine(&one.path)).cloned().collect();
        Wrong {
            outside: own(&self.outside),
            forbidden: own(&self.forbidden),
            protected: self.protected.iter().filter(|(path, _)| is_of_the_engine(path)).cloned().collect(),
            ..Wrong::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.tree().next().is_none()
            && self.protected.is_empty()
            && self.refs.is_empty()
            && self.git_kept.is_empty()
            && self.published.is_empty()
    }
}

impl Found {
    pub(super) fn judge(
        self,
        context: &RunContext,
        dir: &AttemptDir,
        before: &Before,
        watch: &Watch,
        beside: &Beside,
    ) -> After {
        let wrong = self.wrong(context, before, watch, beside, &self.differences);
        let mut trespasses = self.in_words(before, watch, beside, &wrong);
        let records = before.watched.as_ref().and_then(|all| all.trespass(context, dir, &watch.role));
        trespasses.extend(records);
        let still: Vec<&Left> =
            before.left.iter().filter(|left| self.is_still_there(context, before, left)).collect();
        if !still.is_empty() {
            let since = |left: &&Left| format!("{} (since attempt {})", left.path, left.attempt);
            let list: Vec<String> = still.iter().map(since).collect();
            trespasses.push(format!(
                "role `{}` left what changed while an earlier attempt was at work: {}; undo it",
                watch.role,
                listed(&list)
            ));
        }
        let mut left = self.left_now(watch.attempt, before, &wrong, &still);
        let undoes = if watch.on_trespass == OnTrespass::Restore { &wrong } else { &wrong.of_the_engine() };
        if !undoes.is_empty() {
            let undone = self.undo(context, dir, before, watch, beside, undoes);
            trespasses.push(undone.words);
            left.retain(|left| !undone.back.contains(&(left.of as u8, left.path.clone())));
        }
        let is_back = |one: &Difference| {
            !left.iter().any(|left| left.path == one.path) && undoes.tree().any(|other| other == one)
        };
        let changed: Vec<&Difference> = files_of(&self.differences).filter(|one| !is_back(one)).collect();
        After {
            version: VERSION,
            changes: changed.iter().take(CHANGES_MAX).map(|one| change(one)).collect(),
            changes_left_out: changed.len().saturating_sub(CHANGES_MAX) as u64,
            alone: beside.scopes.is_empty(),
            trespasses,
            left,
            found: self.found(context, before, watch),
            picture: self.picture,
        }
    }

    /// Everything that it should not have touched, what it put back apart.
    fn wrong(
        &self,
        context: &RunContext,
        before: &Before,
        watch: &Watch,
        beside: &Beside,
        differences: &[Difference],
    ) -> Wrong {
        let globs = watch.may_write.as_ref().map(|globs| Globs::new(globs, Bare::InRoot));
        let others: Vec<Globs> =
            beside.scopes.iter().flatten().map(|globs| Globs::new(globs, Bare::InRoot)).collect();
        let protected = protected(context, &before.folder, watch);
        let undoes = |of: Of, path: &str, now: Option<&String>| {
            before.left.iter().any(|left| left.of == of && left.path == path && left.before.as_ref() == now)
        };
        let may = |one: &Difference| {
            globs.as_ref().is_none_or(|globs| globs.contains(&one.path))
                || others.iter().any(|globs| globs.contains(&one.path))
        };
        let (forbidden, outside) = differences
            .iter()
            .filter(|one| protected.contains(&one.path) || !may(one))
            .filter(|one| !undoes(Of::Tree, &one.path, id(one.after.as_ref()).as_ref()))
            .cloned()
            .partition(|one| protected.contains(&one.path));
        let marks = differing(&before.marks, &self.marks).into_iter();
        let refs = before.refs.as_ref().filter(|_| watch.is_reader());
        let refs = refs.map(|before| refs::moved(before, &self.refs)).unwrap_or_default().into_iter();
        // Gone with their repository, which is told by itself.
        let whole = |path: &str| {
            let gone = |one: &Difference| one.is_repository() && path.starts_with(&format!("{}/", one.path));
            differences.iter().any(gone)
        };
        let (git_kept, refs): (Vec<_>, Vec<_>) =
            refs.filter(|(path, _)| !whole(path)).partition(|(path, _)| refs::is_kept(path));
        Wrong {
            git_kept,
            outside,
            forbidden,
            protected: marks.filter(|(path, _)| !undoes(Of::Protected, path, self.marks.get(path))).collect(),
            refs: refs.into_iter().filter(|(path, _)| !undoes(Of::Ref, path, self.refs.get(path))).collect(),
            published: self.run_dirs.clone(),
        }
    }

    fn in_words(&self, before: &Before, watch: &Watch, beside: &Beside, wrong: &Wrong) -> Vec<String> {
        let mut trespasses = Vec::new();
        let named = |list: &[Difference]| {
            list.iter().map(|one| format!("{} ({})", one.path, one.word())).collect::<Vec<_>>()
        };
        let role = &watch.role;
        if !wrong.outside.is_empty() {
            let scope = match watch.may_write.as_deref() {
                Some([]) => "it may write nothing".to_owned(),
                Some(globs) => format!("it may write {}", globs.join(", ")),
                None => String::new(),
            };
            let list = listed(&named(&wrong.outside));
            // Nobody who was there had the right, and nobody can tell who it was.
            trespasses.push(match beside.steps.as_slice() {
                [] => format!("role `{role}` changed {list}; {scope}"),
                others => format!(
                    "while role `{role}` was at work, {list} was changed, by it or by {}; {scope}",
                    others.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
                ),
            });
        }
        let touched: BTreeSet<String> = wrong
            .protected
            .iter()
            .map(|(path, how)| format!("{path} ({how})"))
            .chain(named(&wrong.forbidden))
            .collect();
        if !touched.is_empty() {
            let touched: Vec<String> = touched.into_iter().collect();
            trespasses.push(format!("role `{role}` changed protected files: {}", listed(&touched)));
        }
        if let Some((root, _)) = before.main.as_ref().filter(|_| !self.main.is_empty()) {
            trespasses.push(format!(
                "role `{role}` works in {} and changed the main checkout {}: {}",
                before.folder.display(),
                root.display(),
                listed(&named(&self.main))
            ));
        }
        if !wrong.published.is_empty() {
            let list: Vec<String> = wrong.published.iter().map(|one| one.shown.clone()).collect();
            trespasses.push(format!(
                "role `{role}` changed files that are not its own in run directories: {}",
                listed(&list)
            ));
        }
        if let Some(known) = before.refs.as_ref().filter(|_| !wrong.refs.is_empty()) {
            trespasses.push(format!(
                "role `{role}` may write nothing and moved branches or tags: {}",
                listed(&moved_in_words(known, &wrong.refs))
            ));
        }
        if !wrong.git_kept.is_empty() {
            let list: Vec<String> =
                wrong.git_kept.iter().map(|(path, how)| format!("{path} ({how})")).collect();
            trespasses.push(format!(
                "role `{role}` may write nothing and changed what git keeps: {}",
                listed(&list)
            ));
        }
        trespasses
    }

    /// What else a person should know of.
    fn found(&self, context: &RunContext, before: &Before, watch: &Watch) -> Vec<Intrusion> {
        let mut found = found_around(context, before);
        if let Some(planted) = &before.planted {
            let now = planted::look(&before.folder, &self.picture);
            found.extend(planted::noticed(&before.folder, planted, &now, &self.differences));
        }
        found.extend(self.moved_refs(before, watch));
        found
    }

    /// Who may write may commit on the branch that is checked out; the others are the user's.
    fn moved_refs(&self, before: &Before, watch: &Watch) -> Option<Intrusion> {
        if watch.is_reader() {
            return None;
        }
        let known = before.refs.as_ref()?;
        let own = before.branch.as_ref().map(|branch| format!(".git/refs/heads/{branch}"));
        let mut moved = refs::moved(known, &self.refs);
        moved.retain(|(path, how)| own.as_ref() != Some(path) || *how == "deleted");
        (!moved.is_empty()).then(|| Intrusion {
            kind: IntrusionKind::Watched,
            what: format!(
                "branches or tags of the user were moved while it was at work: {}",
                listed(&moved_in_words(known, &moved))
            ),
            by: Vec::new(),
        })
    }

    fn is_still_there(&self, context: &RunContext, before: &Before, left: &Left) -> bool {
        match left.of {
            Of::Tree => match self.differences.iter().find(|one| one.path == left.path) {
                Some(one) => id(one.after.as_ref()) == left.after,
                None => {
                    let now = pictures(context, &before.folder).content_at(&self.picture, &left.path);
                    now.is_ok_and(|now| id(now.as_ref()) == left.after)
                }
            },
            Of::Protected => self.marks.get(&left.path) == left.after.as_ref(),
            Of::Ref => self.refs.get(&left.path) == left.after.as_ref(),
            Of::Published => {
                let now = edited_at(context, &left.path);
                now.is_some_and(|now| Some(&now.now.0) == left.after.as_ref())
            }
        }
    }

    fn left_now(&self, attempt: u32, before: &Before, wrong: &Wrong, still: &[&Left]) -> Vec<Left> {
        // What it was before anybody touched it, however often it was touched since.
        let first = |of: Of, path: &str, found: Option<String>| {
            let known = before.left.iter().find(|left| left.of == of && left.path == path);
            known.map_or(found, |left| left.before.clone())
        };
        let left = |of: Of, path: &str, then: Option<String>, after: Option<String>| Left {
            path: path.to_owned(),
            before: first(of, path, then),
            after,
            attempt,
            of,
        };
        let tree = wrong
            .tree()
            .map(|one| left(Of::Tree, &one.path, id(one.before.as_ref()), id(one.after.as_ref())));
        let protected = wrong.protected.iter().map(|(path, _)| {
            left(Of::Protected, path, before.marks.get(path).cloned(), self.marks.get(path).cloned())
        });
        let refs = wrong.refs.iter().map(|(path, _)| {
            let then = before.refs.as_ref().and_then(|refs| refs.get(path)).cloned();
            left(Of::Ref, path, then, self.refs.get(path).cloned())
        });
        let published = wrong.published.iter().map(|one| {
            left(Of::Published, &one.shown, Some(one.accepted.0.clone()), Some(one.now.0.clone()))
        });
        let fresh: Vec<Left> = tree.chain(protected).chain(refs).chain(published).collect();
        let known = |left: &&&Left| !fresh.iter().any(|one| (one.of, &one.path) == (left.of, &left.path));
        let still: Vec<Left> = still.iter().filter(known).map(|left| (*left).clone()).collect();
        fresh.into_iter().chain(still).collect()
    }

    /// Puts back what was there, keeps what is undone, and says so.
    fn undo(
        &self,
        context: &RunContext,
        dir: &AttemptDir,
        before: &Before,
        watch: &Watch,
        beside: &Beside,
        wrong: &Wrong,
    ) -> Undone {
        let mut undone = Undone::default();
        let mut words = Vec::new();
        let tree: Vec<Difference> = wrong.tree().cloned().collect();
        words.extend(undone.tree(context, dir, before, &self.picture, &tree));
        words.extend(undone.files(context, dir, before, wrong));
        // What the rules of git hid comes to light when they are as before.
        let rules = |path: &str| path.ends_with(IGNORE_FILE) || path == ".git/info/exclude";
        if undone.back.iter().any(|(_, path)| rules(path)) {
            let pictures = pictures(context, &before.folder);
            let now = pictures.take().and_then(|now| Ok((pictures.differences(&before.picture, &now)?, now)));
            match now {
                Ok((differences, now)) => {
                    let hidden = self.wrong(context, before, watch, beside, &differences);
                    let known = |one: &Difference| tree.iter().any(|other| other.path == one.path);
                    let hidden: Vec<Difference> = hidden.tree().filter(|one| !known(one)).cloned().collect();
                    if !hidden.is_empty() {
                        let names: Vec<String> = hidden.iter().map(|one| one.path.clone()).collect();
                        words.push(format!("it had hidden {}", listed(&names)));
                        words.extend(undone.tree(context, dir, before, &now, &hidden));
                    }
                }
                Err(error) => words.push(format!("what it hid cannot be told: {error}")),
            }
        }
        if !wrong.git_kept.is_empty() {
            words.push("what is staged and logs of branches are not put back".to_owned());
        }
        if !wrong.refs.is_empty() {
            words.push("branches and tags are not put back: `git update-ref NAME COMMIT` does it".to_owned());
        }
        undone.words = words.join("; ");
        undone
    }
}

/// What became of it.
#[derive(Default)]
struct Undone {
    words: String,
    /// What is as it was, by where it is and its name.
    back: BTreeSet<(u8, String)>,
}

impl Undone {
    /// What pictures show, kept as a patch.
    fn tree(
        &mut self,
        context: &RunContext,
        dir: &AttemptDir,
        before: &Before,
        after: &Picture,
        wrong: &[Difference],
    ) -> Option<String> {
        if wrong.is_empty() {
            return None;
        }
        let pictures = pictures(context, &before.folder);
        let paths: Vec<&str> = wrong.iter().map(|one| one.path.as_str()).collect();
        let patch = dir.path.join(UNDONE_FILE);
        let kept = pictures.patch(&before.picture, after, &paths).map_err(|error| error.to_string());
        let kept = kept.and_then(|bytes| {
            let mut all = fs::read(&patch).unwrap_or_default();
            all.extend(bytes);
            fs::write(&patch, all).map_err(|error| format!("{}: {error}", patch.display()))
        });
        if let Err(problem) = kept {
            // Nothing is thrown away that could not be kept.
            return Some(format!("nothing was undone, because what was changed cannot be kept: {problem}"));
        }
        let mut failed = Vec::new();
        for one in wrong {
            match pictures.restore(one) {
                Ok(()) => drop(self.back.insert((Of::Tree as u8, one.path.clone()))),
                Err(error) => failed.push(error.to_string()),
            }
        }
        let kept = format!("it is kept in {}", patch.display());
        Some(if failed.is_empty() {
            format!("the change was undone; {kept}")
        } else {
            format!("the change could not be undone everywhere ({}); {kept}", failed.join("; "))
        })
    }

    /// What pictures do not show, kept as it is.
    fn files(
        &mut self,
        context: &RunContext,
        dir: &AttemptDir,
        before: &Before,
        wrong: &Wrong,
    ) -> Option<String> {
        let kept = kept(context, dir, &before.folder);
        let mut failed = Vec::new();
        let mut done = Vec::new();
        for (path, _) in &wrong.protected {
            // One that pictures show as well is back already.
            let by_picture = self.back.contains(&(Of::Tree as u8, path.clone()));
            let put = if by_picture {
                Ok(())
            } else {
                kept.put_back(path, before.marks.get(path).map(String::as_str))
            };
            match put {
                Ok(()) => {
                    self.back.insert((Of::Protected as u8, path.clone()));
                    done.extend((!by_picture).then(|| path.clone()));
                }
                Err(problem) => failed.push(format!("{path}: {problem}")),
            }
        }
        for one in &wrong.published {
            let put = one.accepted_bytes().ok_or_else(|| "what counts is gone".to_owned());
            let put =
                put.and_then(|bytes| kept.write_back(&one.path, &one.shown, one.run_dir.clone(), &bytes));
            match put {
                Ok(()) => {
                    self.back.insert((Of::Published as u8, one.shown.clone()));
                    done.push(one.shown.clone());
                }
                Err(problem) => failed.push(format!("{}: {problem}", one.shown)),
            }
        }
        let place = dir.path.join(UNDONE_DIR);
        match (done.is_empty(), failed.is_empty()) {
            (true, true) => None,
            (false, true) => {
                Some(format!("put back: {}; what was there is kept in {}", listed(&done), place.display()))
            }
            (true, false) => Some(format!("not put back: {}", listed(&failed))),
            (false, false) => Some(format!(
                "put back: {}; what was there is kept in {}; not put back: {}",
                listed(&done),
                place.display(),
                listed(&failed)
            )),
        }
    }
}

/// Each with what it stood for, so that it can be put back.
fn moved_in_words(before: &Marks, moved: &[(String, &'static str)]) -> Vec<String> {
    let was = |path: &str| before.get(path).map(String::as_str).unwrap_or_default();
    let in_words =
        |(path, how): &(String, &'static str)| format!("{} ({how}; it was {})", refs::shown(path), was(path));
    moved.iter().map(in_words).collect()
}

/// What was changed meanwhile and may have been changed by others too.
fn found_around(context: &RunContext, before: &Before) -> Vec<Intrusion> {
    let around = before.watched.as_ref().map(|all| all.noticed(context, &before.folder));
    let mut found = around.unwrap_or_default();
    let ledger = ledger(&context.paths.dir);
    let is_missing = |name: &&String| {
        ledger.artifacts.contains_key(name.as_str()) && !context.meta.run_dir.join(name).exists()
    };
    let removed: Vec<String> = before.published.iter().filter(is_missing).cloned().collect();
    if !removed.is_empty() {
        let what = format!(
            "published files were removed from the run directory while it was at work: {}; what counts is elsewhere",
            listed(&removed)
        );
        found.push(Intrusion { kind: IntrusionKind::Watched, what, by: Vec::new() });
    }
    found
}
