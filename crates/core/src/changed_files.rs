//! Which files a run has changed, summed up over its attempts. Must not know how changes are found.
//!
//! What a path held before the run's first change of it is kept, so that a file that is changed back is
//! no change, and one that was added and removed again never was.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::fact::FileChange;

/// By path: the content before the run, the content now, and the name it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    files: BTreeMap<String, FileChange>,
    /// Changes that attempts did not list because there were too many.
    pub left_out: u64,
}

/// How a file differs from what it was before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeType {
    Added,
    Modified,
    Deleted,
    Renamed,
}

/// One line of the list that people, reviewers and projections get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    pub path: String,
    pub change_type: ChangeType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
}

impl ChangedFiles {
    /// Adds what one attempt changed.
    pub(crate) fn add(&mut self, changes: &[FileChange], left_out: u64) {
        self.left_out += left_out;
        // Before anything is summed up: the entry of an old name may be gone afterwards.
        let origins: Vec<Option<String>> =
            changes.iter().map(|change| change.from.as_ref().map(|from| self.origin_of(from))).collect();
        for (change, from) in changes.iter().zip(origins) {
            let before = match self.files.get(&change.path) {
                Some(known) => known.before.clone(),
                None => change.before.clone(),
            };
            if before == change.after {
                self.files.remove(&change.path);
                continue;
            }
            let from = from.or_else(|| self.files.get(&change.path).and_then(|known| known.from.clone()));
            let summed = FileChange { path: change.path.clone(), before, after: change.after.clone(), from };
            self.files.insert(change.path.clone(), summed);
        }
    }

    /// The name a file had before the run.
    fn origin_of(&self, path: &str) -> String {
        self.files.get(path).and_then(|known| known.from.clone()).unwrap_or_else(|| path.to_owned())
    }

    /// The list, by path. The old name of a renamed file is no entry of its own.
    pub fn list(&self) -> Vec<ChangedFile> {
        let is_gone = |path: &String| {
            self.files.get(path).is_some_and(|file| file.before.is_some() && file.after.is_none())
        };
        let old_name = |file: &FileChange| {
            file.from.clone().filter(|from| file.before.is_none() && file.after.is_some() && is_gone(from))
        };
        let renamed: Vec<String> = self.files.values().filter_map(old_name).collect();
        self.files
            .values()
            .filter(|file| !renamed.contains(&file.path))
            .map(|file| {
                let old_path = old_name(file);
                let change_type = match (&old_path, &file.before, &file.after) {
                    (Some(_), ..) => ChangeType::Renamed,
                    (None, None, _) => ChangeType::Added,
                    (None, Some(_), None) => ChangeType::Deleted,
                    (None, Some(_), Some(_)) => ChangeType::Modified,
                };
                ChangedFile { path: file.path.clone(), change_type, old_path }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, before: Option<&str>, after: Option<&str>, from: Option<&str>) -> FileChange {
        let own = |text: Option<&str>| text.map(str::to_owned);
        FileChange { path: path.to_owned(), before: own(before), after: own(after), from: own(from) }
    }

    fn check(attempts: &[&[FileChange]], expected: &[(&str, ChangeType, Option<&str>)]) {
        let mut files = ChangedFiles::default();
        for changes in attempts {
            files.add(changes, 0);
        }
        let list = files.list();
        let found: Vec<_> =
            list.iter().map(|one| (one.path.as_str(), one.change_type, one.old_path.as_deref())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn s1_39_changes_of_all_attempts_are_summed_up_with_their_type() {
        use ChangeType::{Added, Deleted, Modified, Renamed};
        let (added, modified) = (change("a", None, Some("1"), None), change("a", Some("1"), Some("2"), None));
        check(&[std::slice::from_ref(&added), std::slice::from_ref(&modified)], &[("a", Added, None)]);
        check(&[&[added], &[change("a", Some("1"), None, None)]], &[]);
        check(&[std::slice::from_ref(&modified), &[change("a", Some("2"), Some("1"), None)]], &[]);
        check(&[&[modified], &[change("a", Some("2"), None, None)]], &[("a", Deleted, None)]);
        let renamed = [change("a", Some("1"), None, None), change("b", None, Some("1"), Some("a"))];
        check(&[&renamed], &[("b", Renamed, Some("a"))]);
        let again = [change("b", Some("1"), None, None), change("c", None, Some("2"), Some("b"))];
        check(&[&renamed, &again], &[("c", Renamed, Some("a"))]);
        let back = [change("b", Some("1"), None, None), change("a", None, Some("3"), Some("b"))];
        check(&[&renamed, &back], &[("a", Modified, None)]);
    }

    #[test]
    fn s1_39_only_what_is_gone_was_renamed() {
        use ChangeType::{Added, Modified};
        // A copy: what it came from is still there, untouched or changed.
        check(&[&[change("b", None, Some("1"), Some("a"))]], &[("b", Added, None)]);
        let copied = [change("a", Some("1"), Some("2"), None), change("b", None, Some("1"), Some("a"))];
        check(&[&copied], &[("a", Modified, None), ("b", Added, None)]);
        // What it came from was never there before the run.
        let passing = [change("a", None, Some("1"), None), change("b", None, Some("1"), Some("a"))];
        check(&[&passing], &[("a", Added, None), ("b", Added, None)]);
        // A file that was there and took over the content of one that is gone is not that one renamed.
        let onto = [change("a", Some("1"), None, None), change("b", Some("0"), Some("1"), Some("a"))];
        check(&[&onto], &[("a", ChangeType::Deleted, None), ("b", Modified, None)]);
    }

    #[test]
    fn what_was_left_out_adds_up() {
        let mut files = ChangedFiles::default();
        files.add(&[], 3);
        files.add(&[], 4);
        assert_eq!(files.left_out, 7);
    }
}
