//! The sequence, its modes and its hard prerequisites.

use super::feature::Feature;

const PRODUCERS: [&str; 7] =
    ["brainstorm", "specify", "design", "create-plan", "create-tasks", "implement", "verify"];

fn producers(feature: &Feature) -> Vec<String> {
    let called = feature.scratch.called();
    called.into_iter().filter(|step| PRODUCERS.contains(&step.as_str())).collect()
}

#[test]
fn s2_02_s2_06_the_phases_come_in_their_order_without_a_question() {
    let feature = Feature::runs("standard", "", 10);
    assert_eq!(producers(&feature), PRODUCERS);
    let open = feature.scratch.gatewright(&["decisions", &feature.run]).exits(0).out;
    assert!(open.contains("finish"), "the only question is the last one: {open}");
    assert_eq!(feature.scratch.events_of(&feature.run, "decision.opened").len(), 1);
}

#[test]
fn s2_03_nothing_is_implemented_without_a_specification() {
    let feature = Feature::runs("quick", "specify) exit 1;;", 11);
    feature.scratch.gatewright(&["skip", &feature.run, "specify", "--reason", "we know it"]).exits(11);
    assert_eq!(feature.scratch.count("implement"), 0);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("spec.md"), "{message}");
}

#[test]
fn s2_04_there_are_no_tasks_without_a_plan() {
    let feature = Feature::runs("standard", "create-plan) exit 1;;", 11);
    feature.scratch.gatewright(&["skip", &feature.run, "create-plan", "--reason", "we know it"]).exits(11);
    assert_eq!(feature.scratch.count("create-tasks"), 0);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("plan.md"), "{message}");
}

#[test]
fn s2_09_s2_14_each_mode_has_its_number_of_iterations_and_never_one_more() {
    for (mode, limit) in [("hotfix", 1), ("quick", 2), ("standard", 3), ("full", 5)] {
        let feature = Feature::runs(mode, "implement-review) demand blocker 'no test';;", 10);
        assert_eq!(feature.scratch.count("implement-review"), limit, "{mode}");
        assert_eq!(feature.scratch.count("implement"), limit, "{mode}");
        assert_eq!(feature.meta()["phases"]["implement"]["iterations"], limit, "{mode}");
    }
}

#[test]
fn s2_38_modes_have_their_phases_and_a_feature_its_number() {
    let feature = Feature::runs("hotfix", "", 10);
    assert_eq!(producers(&feature), ["implement"]);
    let quick = [
        "run",
        "phase-review",
        "Remember me for a very long time on all of my devices",
        "--profile",
        "quick",
    ];
    let second = feature.scratch.gatewright(&quick).exits(10).id();
    assert!(feature.run.starts_with("001-") && second.starts_with("002-"), "{} {second}", feature.run);
    let second = Feature { run: second, scratch: feature.scratch };
    let meta = second.meta();
    assert_eq!((&meta["id"], &meta["mode"]), (&"002".into(), &"quick".into()));
    assert!(meta["name"].as_str().unwrap().len() <= 30, "{meta}");
    assert_eq!(producers(&second)[1..], ["specify", "create-tasks", "implement"]);
}

/// A hotfix has no worktree, a quick feature the one that somebody asked for, the others always have one.
#[test]
fn s2_38_a_quick_feature_works_where_a_person_says() {
    let quick = ["run", "phase-review", "Remember me", "--profile", "quick"];
    let scratch = Feature::project("implement) echo b > src/a.txt; standard;;");
    let mut terminal = scratch.terminal(&quick);
    terminal.shows("worktree | shared", 1);
    terminal.types("");
    terminal.shows("worktree | shared", 2);
    terminal.types("perhaps");
    terminal.shows("worktree | shared", 3);
    assert!(scratch.called().is_empty(), "nothing begins before it is said");
    terminal.types("worktree");
    terminal.shows("How does this feature end?", 1);
    terminal.types("merge");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(scratch.git_says(&["show", "HEAD:src/a.txt"]), "b", "the engine has brought it home");
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);

    // Nobody is there: the checkout, and it is said how to have it otherwise.
    let scratch = Feature::project("");
    let ran = scratch.gatewright(&quick).exits(10);
    assert!(ran.err.contains("--set place=worktree"), "{}", ran.err);
    let feature = Feature { run: ran.id(), scratch };
    assert!(feature.meta()["worktree"].is_null());
    let words = [&quick[..], &["--set", "place=worktree"]].concat();
    let ran = feature.scratch.gatewright(&words).exits(10);
    assert!(!ran.err.contains("--set place"), "who has said it is not asked: {}", ran.err);
    let run = ran.id();
    let feature = Feature { run, scratch: feature.scratch };
    let worktree = feature.meta()["worktree"].as_str().unwrap().to_owned();
    assert!(worktree.starts_with("../") && worktree.ends_with("-002-remember-me"), "{worktree}");
    let branches = feature.scratch.git_says(&["branch", "--list", "feature/*"]);
    assert!(branches.contains("feature/002-remember-me"), "{branches}");
    for (mode, has) in [("hotfix", false), ("standard", true), ("full", true)] {
        assert_eq!(Feature::runs(mode, "", 10).meta()["worktree"].is_string(), has, "{mode}");
    }
}

#[test]
fn s2_34_brainstorm_and_verify_have_no_loop() {
    let feature = Feature::runs("standard", "", 10);
    let reviews: Vec<String> =
        feature.scratch.called().into_iter().filter(|step| step.ends_with("-review")).collect();
    assert_eq!(
        reviews,
        [
            "specify-review",
            "design-review",
            "create-plan-review",
            "create-tasks-review",
            "implement-review",
            "final-review"
        ]
    );
}

#[test]
fn s2_10_s2_24_a_phase_is_started_before_its_work_and_completed_after_its_review() {
    let feature = Feature::runs("standard", "design-review) demand blocker 'no interface';;", 10);
    let seen = feature.seen("design", 2);
    let phase = &seen["phases"]["design"];
    assert!(phase["started"].is_string() && phase["completed"].is_null(), "{seen:#}");
    assert_eq!(seen["currentPhase"], "specify", "the furthest completed one");
    let phase = &feature.meta()["phases"]["design"];
    assert!(phase["completed"].is_string());
    assert_eq!((&phase["iterations"], &phase["verified"]), (&3.into(), &false.into()));
    assert!(phase["reviewerNotes"].to_string().contains("no interface"), "{phase}");
}

#[test]
fn s2_23_s2_32_the_state_is_in_the_features_own_folder_and_outlives_the_engine() {
    let feature = Feature::runs("standard", "", 10);
    let path = feature.scratch.root().join("docs/features").join(&feature.run).join(".meta.json");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    feature.scratch.gatewright(&["resume", &feature.run]).exits(10);
    let (before, after): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(&before).unwrap(),
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap(),
    );
    assert_eq!(before["phases"], after["phases"]);
    assert_eq!(after["currentPhase"], "verify");
}
