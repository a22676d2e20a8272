//! Two runs on one repository: they wait for what they really share and go side by side for the rest.

use crate::support::{Scratch, text};

const EDIT: &str = "steps: [ { id: code, role: coder } ]";
/// Everybody edits the same file, and all are at work at the same time.
const SAME_FILE: &str =
    r#"code) mark "at-$GATEWRIGHT_RUN"; await go; echo "$GATEWRIGHT_RUN" >> src/a.txt; ok Edited.;;"#;

fn contents(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.root().join("src/a.txt")).unwrap()
}

/// The question that a run waits with.
fn open_question(scratch: &Scratch, run: &str) -> serde_json::Value {
    let decisions = scratch.status(run)["decisions"].clone();
    let open = decisions.as_array().unwrap().iter().find(|one| one["status"] == "pending").cloned();
    open.unwrap_or_else(|| panic!("nothing is asked: {decisions:#}"))
}

#[test]
fn a_second_writing_run_gets_a_worktree_of_its_own_and_its_work_is_offered_in_the_end() {
    let scratch = Scratch::with(EDIT, SAME_FILE);
    let first = scratch.start(&["run", "w", "first"]);
    let one = first.id();
    scratch.marked(&format!("at-{one}"));
    let second = scratch.start(&["run", "w", "second"]);
    let two = second.id();
    // Side by side: both agents are at work.
    scratch.marked(&format!("at-{two}"));
    assert!(second.err().contains(&one) && second.err().contains("worktree of its own"), "{}", second.err());
    scratch.mark("go");
    first.ended().exits(0);
    second.ended().exits(10);
    assert_eq!(contents(&scratch), format!("a\n{one}\n"), "the checkout had one writer");
    let branch = format!("gatewright/{two}/_run");
    assert_eq!(scratch.git_says(&["show", &format!("{branch}:src/a.txt")]), format!("a\n{two}"));
    let asked = open_question(&scratch, &two);
    assert!(text(&asked["question"]).contains(&branch), "{asked:#}");
    // The work of the first is in the way, and nothing of it is lost.
    let id = text(&asked["id"]);
    scratch.gatewright(&["answer", &two, &id, "merge"]).exits(11);
    assert_eq!(contents(&scratch), format!("a\n{one}\n"));
    let (_, message) = scratch.blocked_by(&two);
    assert!(message.contains("your checkout was left as it is"), "{message}");
    scratch.git(&["checkout", "-q", "--", "src/a.txt"]);
    scratch.gatewright(&["resume", &two]).exits(0);
    assert_eq!(contents(&scratch), format!("a\n{two}\n"));
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_a_second_run_made_can_be_kept_or_thrown_away_after_a_second_word() {
    for (words, left) in
        [(&["keep"][..], true), (&["discard", "keep"], true), (&["discard", "discard"], false)]
    {
        let scratch = Scratch::with(EDIT, SAME_FILE);
        let first = scratch.start(&["run", "w", "first"]);
        scratch.marked(&format!("at-{}", first.id()));
        let second = scratch.start(&["run", "w", "second"]);
        let two = second.id();
        scratch.mark("go");
        first.ended().exits(0);
        second.ended().exits(10);
        for (place, word) in words.iter().enumerate() {
            let id = text(&open_question(&scratch, &two)["id"]);
            let code = if place + 1 == words.len() { 0 } else { 10 };
            scratch.gatewright(&["answer", &two, &id, word]).exits(code);
        }
        let branch = scratch.git_says(&["branch", "--list", &format!("gatewright/{two}/*")]);
        assert_eq!(!branch.is_empty(), left, "{words:?}");
        let patch = scratch.state_dir(&two).join("patches/discarded-_run.patch");
        assert_eq!(patch.exists(), !left, "{words:?}");
    }
}

#[test]
fn a_second_run_that_changed_nothing_asks_nothing() {
    let scratch = Scratch::with(EDIT, r#"code) mark "at-$GATEWRIGHT_RUN"; await go; ok;;"#);
    let first = scratch.start(&["run", "w", "first"]);
    scratch.marked(&format!("at-{}", first.id()));
    let second = scratch.start(&["run", "w", "second"]);
    let two = second.id();
    scratch.marked(&format!("at-{two}"));
    scratch.mark("go");
    first.ended().exits(0);
    second.ended().exits(0);
    assert_eq!(scratch.git_says(&["branch", "--list", "gatewright/*"]), "");
}

#[test]
fn readers_and_writers_of_other_files_share_the_checkout() {
    let scratch = Scratch::with(EDIT, SAME_FILE);
    let role = |globs: &str| format!("roles: {{ coder: {{ prompt: p, may_write: {globs} }} }}\n{EDIT}");
    scratch.workflow("src", &role("[\"src/**\"]"));
    scratch.workflow("docs", &role("[\"docs/**\"]"));
    scratch.agent(
        r#"code) mark "at-$GATEWRIGHT_RUN"; await go; case $GATEWRIGHT_RUN in
docs*) mkdir -p docs; echo d > docs/d;; src*) echo s >> src/a.txt;; esac; ok;;"#,
    );
    let first = scratch.start(&["run", "src", "first"]);
    scratch.marked(&format!("at-{}", first.id()));
    let second = scratch.start(&["run", "docs", "second"]);
    scratch.marked(&format!("at-{}", second.id()));
    scratch.mark("go");
    first.ended().exits(0);
    second.ended().exits(0);
    assert_eq!(contents(&scratch), "a\ns\n");
    assert_eq!(
        std::fs::read_to_string(scratch.root().join("docs/d")).unwrap(),
        "d\n",
        "in the checkout itself"
    );
}
