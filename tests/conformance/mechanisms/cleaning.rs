//! What `clean` takes away besides runs.

use std::path::{Path, PathBuf};

use crate::support::Scratch;

/// Every picture of a working tree, by the folder that it shows.
fn pictures(scratch: &Scratch, run: &str) -> Vec<PathBuf> {
    let store = scratch.state_dir(run).ancestors().nth(2).unwrap().join("pictures");
    let entries = std::fs::read_dir(store).unwrap().flatten();
    let shown =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("gatewright.folder")).ok());
    let mut shown: Vec<PathBuf> = shown.map(PathBuf::from).collect();
    shown.sort();
    shown
}

#[test]
fn pictures_of_trees_go_when_no_run_needs_them_and_not_before() {
    let scratch = Scratch::with(
        "isolation: worktree\nsteps: [ { id: code, role: coder } ]",
        "code) echo new > src/new.txt; ok;;",
    );
    scratch.workflow(
        "here",
        "roles: { coder: { prompt: p, may_write: [\"src/**\"] } }\nsteps: [ { id: code, role: coder }, { id: on, decide: \"On?\", answers: { yes: pass } }, { id: more, role: coder } ]",
    );
    let open = scratch.gatewright(&["run", "here", "x"]).exits(10).id();
    let over = scratch.run(0);
    let root = scratch.root().canonicalize().unwrap();
    let is_stream = |path: &Path| path.ends_with(format!("worktrees/{over}/_run"));
    let before = pictures(&scratch, &open);
    assert!(before.contains(&root) && before.iter().any(|path| is_stream(path)), "{before:?}");
    scratch.gatewright(&["clean"]).exits(0);
    assert_eq!(pictures(&scratch, &open), before, "without --yes nothing goes");
    let cleaned = scratch.gatewright(&["clean", "--yes"]).exits(0);
    assert!(cleaned.err.contains("pictures of working trees removed"), "{}", cleaned.err);
    assert_eq!(
        pictures(&scratch, &open),
        std::slice::from_ref(&root),
        "of the checkout a run may still need them"
    );
    // It goes on with what it knows.
    scratch.gatewright(&["answer", &open, "on", "yes"]).exits(0);
    let dir = scratch.state_dir(&open);
    scratch.gatewright(&["clean", "--yes"]).exits(0);
    let store = dir.ancestors().nth(2).unwrap().join("pictures");
    let left: usize = std::fs::read_dir(&store)
        .unwrap()
        .flatten()
        .map(|entry| std::fs::read_dir(entry.path()).unwrap().count())
        .sum();
    assert!(left <= 1, "only the lock of the checkout's is left: {left}");
    scratch.gatewright(&["run", "here", "again"]).exits(10);
}
