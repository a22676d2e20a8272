//! Lock files that a killed git left behind: ours go, the user's are named with the remedy, and none that a living
//! process holds is touched.

use std::path::PathBuf;

use crate::support::{Scratch, text};

const ON_A_BRANCH: &str = "
isolation: worktree
steps:
  - { id: one, role: coder, retry: { attempts_max: 1 } }
  - { id: two, role: coder }
";

/// The lock files that a git which dies at the wrong moment leaves.
const LEAVE: &str = r"own=$(git rev-parse --absolute-git-dir); common=$(git rev-parse --path-format=absolute --git-common-dir)
leave() { : > $own/index.lock; : > $own/HEAD.lock; : > $common/refs/heads/$(git branch --show-current).lock; }";

#[test]
fn what_a_killed_git_left_in_a_worktree_of_ours_is_cleared_before_the_commit_and_before_the_next_agent() {
    let scratch = Scratch::with(
        ON_A_BRANCH,
        &format!(
            "one) {LEAVE}\n echo 1 > src/one; leave; ok;;\ntwo) ls $(git rev-parse --absolute-git-dir) > $HOME/seen; git add -A || exit 1; echo 2 > src/two; ok;;"
        ),
    );
    let run = scratch.run(0);
    let branch = format!("gatewright/{run}/_run");
    assert_eq!(scratch.git_says(&["show", &format!("{branch}:src/one")]), "1");
    assert_eq!(scratch.git_says(&["show", &format!("{branch}:src/two")]), "2");
    let seen = std::fs::read_to_string(scratch.home().join("seen")).unwrap();
    assert!(seen.contains("HEAD") && !seen.contains(".lock"), "{seen}");
}

/// A git that was killed while it made the branch leaves its lock before there is a worktree.
#[test]
fn the_lock_of_a_branch_whose_worktree_was_half_made_is_cleared_before_it_is_made() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps: [ { id: build, role: coder } ]
",
        "plan) heads=$(git rev-parse --absolute-git-dir)/refs/heads/gatewright/$GATEWRIGHT_RUN; mkdir -p $heads; : > $heads/b.lock
 put tasks.yaml \"$(printf 'tasks:\\n- {id: b}')\"; brief DONE tasks.yaml;;
*/build) echo b > src/b; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.git_says(&["show", &format!("gatewright/{run}/b:src/b")]), "b");
}

#[test]
fn a_lock_that_a_living_process_holds_stays_and_its_holder_is_named() {
    let scratch = Scratch::with(
        ON_A_BRANCH,
        "one) git rev-parse --absolute-git-dir > $HOME/own; echo 1 > src/one; mark at; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at");
    let own = std::fs::read_to_string(scratch.home().join("own")).unwrap();
    let lock = PathBuf::from(own.trim()).join("index.lock");
    let held = std::fs::File::create(&lock).unwrap();
    scratch.mark("go");
    engine.ended().exits(11);
    assert!(lock.exists(), "somebody has it");
    let (_, message) = scratch.blocked_by(&run);
    let pid = std::process::id().to_string();
    assert!(
        message.contains("index.lock") && message.contains(&format!("held by process {pid}")),
        "{message}"
    );
    drop(held);
    scratch.gatewright(&["resume", &run]).exits(0);
    assert!(!lock.exists());
}

#[test]
fn a_lock_in_the_users_checkout_is_never_removed_and_named_with_the_remedy() {
    let scratch = Scratch::with(
        "steps:\n  - { id: code, role: coder }\n  - { id: home, finish: merge, retry: { attempts_max: 1 } }",
        "code) echo new > src/new.txt; ok;;",
    );
    let locks = ["index.lock", "packed-refs.lock"].map(|name| scratch.root().join(".git").join(name));
    for lock in &locks {
        std::fs::write(lock, "").unwrap();
    }
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains(&format!("`rm {}`, then resume", locks[0].display())), "{message}");
    let doctor = scratch.gatewright(&["doctor"]).out;
    for lock in &locks {
        assert!(lock.exists(), "{} is not ours", lock.display());
        assert!(doctor.contains(&format!("rm {}", lock.display())), "{doctor}");
        std::fs::remove_file(lock).unwrap();
    }
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(text(&serde_json::json!(scratch.git_says(&["show", "main:src/new.txt"]))), "new");
    assert!(!scratch.gatewright(&["doctor"]).out.contains(".lock"));
}
