//! What an attempt says it did, held against what is there (J-26, J-53). Facts only; the core judges.

use std::path::{Component, Path, PathBuf};

use gatewright_attempts::{AttemptDir, Defence};
use gatewright_core::outcome::{Outcome, Reply};

use crate::{
    collect::{Output, changed_at},
    run_context::RunContext,
    scope::{Evidence, listed},
    work,
};

/// What claims are held against.
pub struct Claims<'a> {
    pub context: &'a RunContext,
    pub dir: &'a AttemptDir,
    pub outputs: &'a [Output],
    pub evidence: &'a Evidence,
}

impl Claims<'_> {
    /// Every claim of a reply about work that is not so.
    pub fn contradictions(&self, reply: &Reply) -> Vec<String> {
        let is_work = matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed);
        if !is_work || Defence::Claims.is_off() {
            return Vec::new();
        }
        let named = reply.files.iter().filter(|file| !self.names_an_output(file));
        let mut found: Vec<String> = named.filter_map(|file| self.is_not_there(file)).collect();
        if found.is_empty() {
            let changed = reply.changed.iter().filter(|file| !self.names_an_output(file));
            found.extend(changed.filter_map(|file| self.was_not_changed(file)));
        }
        found.extend(reply.commits.iter().filter_map(|commit| self.is_no_commit(commit)));
        found.extend(self.not_named(reply));
        found
    }

    /// A staged output under any of its names: bare, relative to the run directory or the repository,
    /// absolute there or here. What it is like was examined already; its published place is still empty.
    fn names_an_output(&self, file: &str) -> bool {
        let out = self.dir.out_dir();
        let path = plain(file);
        let is_bare = path.components().count() == 1;
        let staged =
            self.outputs.iter().filter(|output| std::fs::symlink_metadata(out.join(&output.name)).is_ok());
        staged.into_iter().any(|output| {
            let published = self.context.meta.run_dir.join(&output.name);
            let bare = is_bare && Path::new(&output.name).file_name() == path.file_name();
            bare || path == Path::new(&output.name)
                || path == out.join(&output.name)
                || self.context.meta.root.join(path) == published
        })
    }

    /// Where a claim can lead: where it worked, and the run directory. From a worktree the user's checkout is not its
    /// own. What else it put beside its artifacts is meant only by whoever says so with the whole path.
    fn roots(&self) -> [PathBuf; 2] {
        [self.evidence.folder.clone(), self.context.meta.run_dir.clone()]
    }

    /// The file that a claim means, if it is there.
    fn find(&self, path: &Path) -> Option<PathBuf> {
        let candidates: Vec<PathBuf> = if path.is_absolute() {
            vec![path.to_owned()]
        } else {
            self.roots().iter().map(|root| root.join(path)).collect()
        };
        candidates.into_iter().find(|path| std::fs::symlink_metadata(path).is_ok())
    }

    fn is_not_there(&self, file: &str) -> Option<String> {
        let path = plain(file);
        let [folder, run_dir] = self.roots();
        let roots = [folder, run_dir, self.dir.out_dir()];
        let leaves = path.components().any(|part| part == Component::ParentDir)
            || (path.is_absolute() && !roots.iter().any(|root| path.starts_with(root)));
        if leaves {
            return Some(format!("`{file}` leaves the run directory and the repository"));
        }
        let Some(found) = self.find(path) else {
            // A file that it says it changed by removing it.
            let removed = self.evidence.after.changes.iter().any(|one| {
                one.after.is_none()
                    && (Path::new(&one.path) == path || self.evidence.folder.join(&one.path) == path)
            });
            return (!removed).then(|| format!("claimed to write `{file}` but the file was not found"));
        };
        let Ok(real) = found.canonicalize() else {
            return Some(format!("`{file}` is a link that leads nowhere"));
        };
        let inside =
            roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| real.starts_with(root));
        (!inside).then(|| format!("`{file}` is a link that leads out of the repository"))
    }

    /// A file that is as it was before the attempt: an earlier one wrote it, or nobody did (J-02).
    fn was_not_changed(&self, file: &str) -> Option<String> {
        let found = self.find(plain(file))?;
        let unchanged = || Some(format!("claimed to write `{file}` but it was not changed in this attempt"));
        if found.starts_with(self.dir.out_dir()) {
            return None;
        }
        // A repository inside the repository is a change of its folder.
        let is_change = |path: &Path| {
            self.evidence.after.changes.iter().any(|one| self.evidence.folder.join(&one.path) == path)
        };
        if found.is_dir() && !is_change(&found) {
            return Some(format!("`{file}` is a folder, not a file: name each file in it that was changed"));
        }
        if let Ok(inside) = found.strip_prefix(&self.evidence.folder)
            && let Some(changed) = self.evidence.is_changed(self.context, &inside.to_string_lossy())
        {
            return if changed { None } else { unchanged() };
        }
        // Ignored by git, or in the run directory: the time of its last change tells, which nobody can set.
        let started = self.evidence.started(self.dir)?;
        let touched = changed_at(&found)?;
        let slack = std::time::Duration::from_millis(50);
        if touched + slack >= started { None } else { unchanged() }
    }

    /// A commit counts if it is on the branch that the attempt began on, whatever is checked out by now, and was made
    /// since, or is the one it began with: where the engine commits there is no other to name.
    fn is_no_commit(&self, commit: &str) -> Option<String> {
        let hex = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex {
            return Some(format!("`{commit}` is no commit"));
        }
        let git = |arguments: &[&str]| work::git(&self.evidence.folder, arguments);
        if git(&["rev-parse", "--git-dir"]).is_none() {
            return Some(format!(
                "claimed commit `{commit}` does not exist: {} is in no git repository",
                self.evidence.folder.display()
            ));
        }
        let object = format!("{commit}^{{commit}}");
        let found = git(&["rev-parse", "--verify", "-q", &object]).unwrap_or_default();
        let found = String::from_utf8_lossy(&found).trim().to_owned();
        // A branch or tag can have a name that looks like the beginning of an id.
        if !found.starts_with(&commit.to_ascii_lowercase()) {
            return Some(format!("claimed commit `{commit}` does not exist"));
        }
        let is_below = |of: &str| git(&["merge-base", "--is-ancestor", &found, of]).is_some();
        let before = self.evidence.before.as_ref();
        let branch = before.and_then(|before| before.branch.as_deref());
        let tip = branch.map_or_else(|| "HEAD".to_owned(), full_name);
        if !is_below(&tip) {
            let name = branch.map(|branch| format!(" (`{branch}`)")).unwrap_or_default();
            return Some(format!("claimed commit `{commit}` is not on the branch it worked on{name}"));
        }
        let base = before.and_then(|before| before.commit.as_deref()).filter(|base| *base != found)?;
        is_below(base).then(|| format!("claimed commit `{commit}` was there before this attempt"))
    }

    /// The other direction: what it changed and kept silent about, where its reply lists every file.
    fn not_named(&self, reply: &Reply) -> Option<String> {
        if !reply.changed_is_all || reply.outcome != Outcome::Done {
            return None;
        }
        // Of the rest nobody can say whether it was named.
        let more = self.evidence.after.changes_left_out;
        if more > 0 {
            let compared = self.evidence.after.changes.len();
            return Some(format!(
                "changed {more} more files than the {compared} that are compared with its words: do it in smaller parts"
            ));
        }
        let silent = self.not_spoken_of(Some(reply));
        (!silent.is_empty()).then(|| format!("changed but not named: {}", listed(&silent)))
    }

    /// Files that this attempt, or one before it, changed without a word, as far as words were to be expected.
    pub fn not_spoken_of(&self, reply: Option<&Reply>) -> Vec<String> {
        let named = |path: &str| {
            reply.into_iter().flat_map(|reply| &reply.changed).map(|file| plain(file)).any(|claim| {
                let claim = claim.strip_prefix(&self.evidence.folder).unwrap_or(claim);
                // Whoever names a folder names nothing.
                Path::new(path) == claim
            })
        };
        let lists_all = reply.is_some_and(|reply| reply.changed_is_all && reply.outcome == Outcome::Done);
        let own =
            self.evidence.own_changes().iter().filter(|one| lists_all && !self.evidence.takes_back(one));
        let own = own.map(|one| one.path.clone());
        let earlier = self.evidence.still_unclaimed(self.context);
        let mut silent: Vec<String> = own.chain(earlier).filter(|path| !named(path)).collect();
        silent.sort();
        silent.dedup();
        silent
    }
}

/// A tag may have the name of a branch.
fn full_name(branch: &str) -> String {
    if branch.starts_with("refs/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}

fn plain(file: &str) -> &Path {
    let path = Path::new(file.trim().trim_matches('`'));
    path.strip_prefix(".").unwrap_or(path)
}
