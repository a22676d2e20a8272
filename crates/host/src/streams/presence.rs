//! Who of this engine's agents was at work at the same time, and whom nothing kept in his own tree: the suspects
//! when something is found in a tree that the agent who worked there does not speak of.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use gatewright_core::ids::StepId;

static BOOK: Mutex<Book> = Mutex::new(Book { moment: 0, entries: Vec::new() });

struct Book {
    /// Grows with every beginning and every end.
    moment: u64,
    entries: Vec<Entry>,
}

struct Entry {
    step: StepId,
    folder: PathBuf,
    /// No sandbox keeps it in its folder.
    loose: bool,
    began: u64,
    ended: Option<u64>,
}

/// An agent at work, until it is dropped.
#[derive(Debug)]
pub struct Presence {
    began: u64,
}

impl Presence {
    pub fn new(step: &StepId, folder: &Path, loose: bool) -> Presence {
        let mut book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
        book.moment += 1;
        let began = book.moment;
        book.entries.push(Entry { step: step.clone(), folder: folder.to_owned(), loose, began, ended: None });
        Presence { began }
    }

    /// Those without a sandbox who worked elsewhere at any moment since this one began.
    pub fn suspects(&self) -> Vec<StepId> {
        let book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = book.entries.iter().find(|entry| entry.began == self.began) else {
            return Vec::new();
        };
        let beside = |entry: &&Entry| {
            entry.loose
                && entry.began != own.began
                && entry.folder != own.folder
                && entry.ended.is_none_or(|ended| ended > own.began)
        };
        let mut found: Vec<StepId> =
            book.entries.iter().filter(beside).map(|entry| entry.step.clone()).collect();
        found.sort();
        found.dedup();
        found
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
        book.moment += 1;
        let now = book.moment;
        if let Some(own) = book.entries.iter_mut().find(|entry| entry.began == self.began) {
            own.ended = Some(now);
        }
        // Who ended before the eldest that is still at work began is nobody's suspect any more.
        let eldest = book.entries.iter().filter(|entry| entry.ended.is_none()).map(|entry| entry.began).min();
        book.entries.retain(|entry| match (entry.ended, eldest) {
            (None, _) => true,
            (Some(ended), Some(eldest)) => ended > eldest,
            (Some(_), None) => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the book is the process's.
    #[test]
    fn suspects_are_those_without_a_sandbox_who_worked_elsewhere_at_the_same_time() {
        let at = |step: &str, loose: bool| Presence::new(&StepId::new(step), Path::new(step), loose);
        let before = at("before", true);
        drop(before);
        let own = at("own", false);
        let kept_in = at("kept-in", false);
        let over = at("over", true);
        drop(over);
        let still = at("still", true);
        let same_tree = Presence::new(&StepId::new("same-tree"), Path::new("own"), true);
        assert_eq!(own.suspects(), [StepId::new("over"), StepId::new("still")]);
        assert_eq!(still.suspects(), [StepId::new("same-tree")]);
        drop((own, kept_in, still, same_tree));
        assert!(BOOK.lock().unwrap().entries.is_empty());
    }
}
