//! How a feature ends.

use super::feature::Feature;

#[test]
fn s2_26_s2_31_the_history_is_there_while_it_is_worked_on_and_gone_afterwards() {
    let feature = Feature::runs("standard", "", 10);
    assert!(feature.history().is_some());
    assert!(!feature.meta().to_string().contains("Reviewer Feedback"), "only a summary");
    feature.answer("finish", "merge", 0);
    assert!(feature.history().is_none());
    let meta = feature.meta();
    assert_eq!(meta["status"], "completed");
    assert!(meta["completed"].is_string());
}

#[test]
fn s2_30_s2_39_a_feature_is_active_completed_or_abandoned_and_never_opened_again() {
    let feature = Feature::runs("hotfix", "", 10);
    assert_eq!(feature.meta()["status"], "active");
    feature.answer("finish", "pr", 10);
    assert_eq!(feature.meta()["status"], "active", "nothing here opens a pull request");
    feature.answer("pr-by-hand", "opened", 0);
    assert_eq!(feature.meta()["status"], "completed");
    feature.scratch.gatewright(&["restart", &feature.run, "--stage", "implement"]).exits(4);
    assert_eq!(feature.meta()["status"], "completed");
    let feature = Feature::runs("hotfix", "", 10);
    feature.answer("finish", "discard", 10);
    assert_eq!(feature.meta()["status"], "active", "not before it is confirmed");
    feature.answer("confirm-discard", "discard-it", 0);
    assert_eq!(feature.meta()["status"], "abandoned");
}

#[test]
fn s2_33_a_verification_that_passes_is_on_record_and_only_advice() {
    let feature = Feature::runs("standard", "", 10);
    assert_eq!(feature.meta()["phases"]["verify"]["verified"], true);
    assert_eq!(feature.meta()["phases"]["implement"]["verified"], false);
    assert_eq!(feature.meta()["currentPhase"], "verify");
    // Whatever it says, the feature goes on, and nobody works again because of it.
    for word in ["FAIL", "PARTIAL"] {
        let says = format!(
            "verify) file verification.md Findings Verdict; brief {word} verification.md 'Broken.';;"
        );
        let feature = Feature::runs("standard", &says, 10);
        assert_eq!(feature.meta()["phases"]["verify"]["verified"], false, "{word}");
        assert_eq!(feature.meta()["currentPhase"], "verify");
        assert_eq!((feature.scratch.count("verify"), feature.scratch.count("implement")), (1, 1));
        let question = feature.scratch.decision(&feature.run, "finish")["question"].to_string();
        assert!(question.contains("the verification did not pass: Broken."), "{question}");
    }
}

#[test]
fn s2_37_what_is_not_committed_cannot_be_finished_and_keeping_leaves_it_active() {
    let feature = Feature::runs("hotfix", "implement) echo more >> src/a.txt; standard;;", 11);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("uncommitted"), "{message}");
    let feature = Feature::runs("hotfix", NEW_FILE, 11);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("?? src/new.txt"), "new files count: {message}");
    let feature = Feature::runs("hotfix", "", 10);
    feature.answer("finish", "keep", 11);
    assert_eq!(feature.meta()["status"], "active");
    assert!(feature.meta()["completed"].is_null());
}

#[test]
fn s2_37_who_finishes_is_told_of_tasks_that_are_open() {
    let told = |done: &str| {
        let cases = format!("implement) built '{done}'; brief DONE implementation.md 'Built.';;");
        let feature = Feature::runs("quick", &cases, 10);
        feature.scratch.decision(&feature.run, "finish")["question"].as_str().unwrap().to_owned()
    };
    let question = told("T1");
    assert!(
        question.contains("Warning: 1 of 2 tasks in tasks.md is not done, as implementation.md has it: T2: "),
        "{question}"
    );
    assert!(told("T11").contains("2 of 2 tasks in tasks.md are not done"), "another number is another task");
    let question = told("T1, **T2**");
    assert!(!question.contains("Warning"), "{question}");
    // Tasks without numbers could not be told apart.
    let bare = "create-tasks) file tasks.md Tasks; brief DONE tasks.md 'Cut.';;";
    let feature = Feature::runs("quick", bare, 11);
    assert!(feature.scratch.blocked_by(&feature.run).1.contains("an id of the form `Tn`"));
}

#[test]
fn s2_31_what_nothing_here_can_merge_is_active_until_a_person_has() {
    let feature = Feature::runs("quick", "", 10);
    feature.answer("finish", "merge", 10);
    assert_eq!(feature.meta()["status"], "active");
    feature.answer("merge-by-hand", "back", 10);
    feature.answer("finish", "merge", 10);
    feature.answer("merge-by-hand", "merged", 0);
    assert_eq!(feature.meta()["status"], "completed");
}

#[test]
fn features_can_be_committed() {
    let feature = Feature::runs("hotfix", "", 10);
    let ignored = feature.scratch.git_says(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(ignored.contains(&format!("?? docs/features/{}/implementation.md", feature.run)), "{ignored}");
}

/// The implementer's work is on the branch of the feature.
const NEW_FILE: &str = "implement) echo new > src/new.txt; standard;;";

fn worktrees(feature: &Feature) -> usize {
    feature.scratch.git_says(&["worktree", "list"]).lines().count()
}

#[test]
fn s2_31_a_merged_feature_is_in_the_checkout_and_its_worktree_is_gone() {
    let feature = Feature::runs("standard", NEW_FILE, 10);
    assert_eq!(worktrees(&feature), 2);
    assert!(!feature.scratch.root().join("src/new.txt").exists(), "the checkout is nobody's until then");
    feature.answer("finish", "merge", 0);
    assert!(feature.scratch.root().join("src/new.txt").exists());
    assert_eq!(worktrees(&feature), 1);
    let meta = feature.meta();
    assert!(meta["worktree"].is_null() && meta["status"] == "completed", "{meta}");
    assert_eq!(branches(&feature), "main", "its branch is in another one that stays");
}

fn branches(feature: &Feature) -> String {
    feature.scratch.git_says(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]).replace('\n', " ")
}

#[test]
fn s2_31_the_branch_has_the_features_name_and_stays_until_it_is_merged_or_discarded() {
    let feature = Feature::runs("standard", NEW_FILE, 10);
    let name = format!("feature/{}", feature.run);
    assert_eq!(feature.scratch.git_says(&["show", &format!("{name}:src/new.txt")]), "new");
    let asked = {
        feature.answer("finish", "pr", 10);
        feature.scratch.decision(&feature.run, "pr-by-hand")["question"].as_str().unwrap().to_owned()
    };
    assert!(asked.contains(&format!("`{name}`")), "{asked}");
    feature.answer("pr-by-hand", "opened", 0);
    assert_eq!(
        (worktrees(&feature), branches(&feature)),
        (1, format!("{name} main")),
        "one branch, of that name"
    );
    assert_eq!(feature.scratch.git_says(&["show", &format!("{name}:src/new.txt")]), "new");
    let feature = Feature::runs("standard", NEW_FILE, 10);
    feature.answer("finish", "discard", 10);
    feature.answer("confirm-discard", "discard-it", 0);
    assert_eq!(branches(&feature), "main");
}

#[test]
fn s2_29_a_place_that_is_taken_is_left_alone() {
    let scratch = Feature::project("");
    let taken = scratch
        .root()
        .with_file_name(format!("{}-001-remember-me", scratch.root().file_name().unwrap().to_string_lossy()));
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("mine"), "mine").unwrap();
    scratch.git(&["branch", "feature/001-remember-me"]);
    let words = ["run", "phase-review", "Remember me", "--until", "brainstorm"];
    let run = scratch.gatewright(&words).exits(12).id();
    let feature = Feature { scratch, run };
    let stored = feature.meta()["worktree"].as_str().unwrap().to_owned();
    let tree = feature.scratch.root().join(stored).canonicalize().unwrap();
    assert!(tree.join("src/a.txt").exists() && tree != taken.canonicalize().unwrap());
    assert_eq!(std::fs::read_to_string(taken.join("mine")).unwrap(), "mine");
}

#[test]
fn s2_31_a_discarded_feature_is_abandoned_and_a_kept_one_stays_as_it_is() {
    let feature = Feature::runs("standard", NEW_FILE, 10);
    feature.answer("finish", "discard", 10);
    assert_eq!((worktrees(&feature), &feature.meta()["status"]), (2, &"active".into()), "not yet confirmed");
    feature.answer("confirm-discard", "discard-it", 0);
    assert_eq!((worktrees(&feature), &feature.meta()["status"]), (1, &"abandoned".into()));
    assert!(!feature.scratch.root().join("src/new.txt").exists());
    let feature = Feature::runs("standard", NEW_FILE, 10);
    feature.answer("finish", "keep", 11);
    assert_eq!((worktrees(&feature), &feature.meta()["status"]), (2, &"active".into()));
}
