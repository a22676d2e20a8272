//! The chain reviewer, the final reviewer, and what is kept of their words.

use super::feature::Feature;

#[test]
fn s2_11_s2_12_a_reviewer_who_objects_has_the_artifact_revised_and_one_who_approves_ends_it() {
    let cases =
        "design-review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand blocker 'no interface'; else approve; fi;;";
    let feature = Feature::runs("standard", cases, 10);
    assert_eq!(feature.scratch.count("design"), 2);
    let prompt = feature.scratch.prompt("design", 2);
    assert!(prompt.contains("no interface") && prompt.contains("Revise your artifact"), "{prompt}");
    assert_eq!(feature.meta()["phases"]["design"]["iterations"], 2);
    assert_eq!(feature.meta()["phases"]["design"]["reviewerNotes"], serde_json::json!([]));
}

#[test]
fn s2_16_s2_20_the_reviewer_gets_both_artifacts_and_what_the_next_phase_needs() {
    let feature = Feature::runs("standard", "", 10);
    let needs = [
        ("specify-review", "brainstorm.md", "spec.md", "acceptance criteria defined"),
        ("design-review", "spec.md", "design.md", "interfaces specified"),
        ("create-plan-review", "design.md", "plan.md", "ordered steps"),
        ("create-tasks-review", "plan.md", "tasks.md", "15 minutes"),
        ("implement-review", "tasks.md", "implementation.md", "tests that exist and pass"),
    ];
    for (review, before, now, need) in needs {
        let prompt = feature.scratch.prompt(review, 1);
        let inputs = prompt.split("## Input Files").nth(1).unwrap();
        assert!(inputs.contains(before) && inputs.contains(now), "{review}: {inputs}");
        assert!(prompt.contains(need), "{review}: {need}");
    }
    // In a mode without a plan the specification is what went before the tasks.
    let feature = Feature::runs("quick", "", 10);
    let prompt = feature.scratch.prompt("create-tasks-review", 1);
    let inputs = prompt.split("## Input Files").nth(1).unwrap();
    assert!(inputs.contains("/spec.md") && inputs.contains("/tasks.md"), "{inputs}");
    assert!(!prompt.contains("is missing: that"), "there is no plan to miss: {prompt}");
    // Nothing before: the reviewer is told of one artifact.
    let feature = Feature::runs("hotfix", "", 10);
    let prompt = feature.scratch.prompt("implement-review", 1);
    assert!(!prompt.split("## Input Files").nth(1).unwrap().contains("tasks.md"));
}

#[test]
fn s2_19_an_empty_artifact_never_reaches_the_next_phase() {
    let feature =
        Feature::runs("standard", "design) : > \"$GATEWRIGHT_OUT/design.md\"; brief DONE design.md;;", 11);
    assert_eq!(feature.scratch.count("design-review"), 0);
    assert_eq!(feature.scratch.count("create-plan"), 0);
}

#[test]
fn s2_19_a_phase_whose_required_predecessor_is_missing_is_not_approved_whoever_approves_it() {
    let scratch = Feature::project("");
    let run =
        scratch.gatewright(&["run", "phase-review", "Remember me", "--until", "brainstorm"]).exits(12).id();
    scratch.gatewright(&["phase", "design", &run, "--yes"]).exits(0);
    let prompt = scratch.prompt("design-review", 1);
    assert!(
        prompt.contains("`spec.md`, from which it has to follow, is missing: that is a blocker"),
        "{prompt}"
    );
    // The reviewer approved all the same, and it did not count.
    let feature = Feature { scratch, run };
    let missing = "`spec.md`, from which it has to follow, is missing";
    assert_eq!((feature.scratch.count("design"), feature.scratch.count("design-review")), (3, 3));
    assert_eq!(feature.meta()["phases"]["design"]["reviewerNotes"], serde_json::json!([missing]));
    let history = feature.history().unwrap();
    assert_eq!(history.matches(&format!("- [blocker] {missing}\n")).count(), 3, "{history}");
    let whole = Feature::runs("standard", "", 10);
    let prompt = whole.scratch.prompt("design-review", 1);
    assert!(!prompt.contains("is missing: that"), "{prompt}");
    assert_eq!(whole.scratch.count("design"), 1);
}

#[test]
fn s2_18_s2_35_only_blockers_within_the_scope_send_the_work_back() {
    let cases = r#"
design-review) echo '{"approved": true, "issues": [{"severity": "warning", "description": "thin"}, {"severity": "note", "description": "a word"}], "summary": "fine"}';;
create-plan-review) echo '{"approved": true, "issues": [{"severity": "blocker", "description": "also export it", "out_of_scope": true}], "summary": "fine"}';;"#;
    let feature = Feature::runs("standard", cases, 10);
    assert_eq!(feature.scratch.count("design"), 1);
    assert_eq!(feature.scratch.count("create-plan"), 1);
    // Approved beside a blocker is not approved.
    let cases = r#"design-review) echo '{"approved": true, "issues": [{"severity": "blocker", "description": "no interface"}], "summary": "fine"}';;"#;
    assert_eq!(Feature::runs("standard", cases, 10).scratch.count("design"), 3);
}

#[test]
fn s2_21_s2_36_the_final_reviewers_findings_are_a_persons_to_address_or_to_note() {
    let cases = "final-review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then demand blocker 'R2 is missing'; else approve; fi;;";
    let feature = Feature::runs("standard", cases, 10);
    assert_eq!(feature.scratch.count("verify"), 0);
    let prompt = feature.scratch.prompt("final-review", 1);
    assert!(prompt.contains("spec.md") && prompt.contains("missing") && prompt.contains("extra"), "{prompt}");
    feature.answer("D-1", "address", 10);
    assert_eq!(feature.scratch.count("implement"), 2);
    assert!(feature.scratch.prompt("implement", 2).contains("R2 is missing"));
    assert_eq!(feature.scratch.count("verify"), 1);
    // What was addressed is an iteration like any other: the chain reviewer sees it, and it is in the history.
    assert_eq!(feature.scratch.count("implement-review"), 2);
    assert_eq!(feature.meta()["phases"]["implement"]["iterations"], 2);
    let history = feature.history().unwrap();
    let of_phase = history.split("## Phase: implement").nth(1).unwrap();
    assert!(of_phase.contains("### Iteration 1 - ") && of_phase.contains("### Iteration 2 - "), "{history}");
    assert!(of_phase.contains("**Changes Made:**\nBuilt, take 2."), "{history}");
    // What a person lets stand is noted, in its own words, where people look.
    let feature = Feature::runs("standard", cases, 10);
    feature.answer("D-1", "proceed", 10);
    assert_eq!(feature.scratch.count("implement"), 1);
    let notes = feature.scratch.step(&feature.run, "final-review")["notes"].to_string();
    assert!(notes.contains("proceed"), "{notes}");
    let noted = feature.meta()["phases"]["implement"]["reviewerNotes"].to_string();
    assert!(noted.contains("R2 is missing") && noted.contains("proceed"), "{noted}");
    let question = feature.scratch.decision(&feature.run, "finish")["question"].to_string();
    assert!(question.contains("not addressed: [high] R2 is missing"), "{question}");
}

/// As the source writes it down, in every part of it.
#[test]
fn s2_17_a_review_is_read_as_the_source_defines_it() {
    let objects = r#"specify-review) if [ $GATEWRIGHT_ROUND = 1 ]; then printf '%s\n' '```json' '{"approved": false, "issues": [{"severity": "blocker", "description": "no scope", "location": null}, {"severity": "note", "description": "fine words", "location": "Scope"}], "summary": "Not enough."}' '```'; else standard; fi;;"#;
    let feature = Feature::runs("standard", objects, 10);
    assert_eq!(feature.scratch.count("specify"), 2);
    assert!(feature.scratch.prompt("specify", 2).contains("no scope"));
    let history = feature.history().unwrap();
    assert!(history.contains("- [blocker] no scope") && history.contains("- [note] fine words"), "{history}");
}

#[test]
fn s2_22_who_produces_does_not_know_of_the_loop() {
    let feature = Feature::runs("standard", "", 10);
    for step in ["specify", "design", "create-plan", "create-tasks", "implement"] {
        let prompt = feature.scratch.prompt(step, 1);
        let (role, rest) = prompt.split_once("## Workflow Directory").unwrap();
        let task = rest.split("## Task").nth(1).unwrap();
        for text in [role, task] {
            let text = text.to_lowercase();
            assert!(!text.contains("review") && !text.contains("iteration"), "{step}: {text}");
        }
    }
}

#[test]
fn s2_25_s2_41_every_iteration_leaves_its_entry() {
    let cases =
        "design-review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand blocker 'no interface'; else approve; fi;;";
    let feature = Feature::runs("standard", cases, 10);
    let history = feature.history().unwrap();
    let design = history.split("## Phase: design").nth(1).unwrap().split("## Phase:").next().unwrap();
    assert_eq!(design.matches("### Iteration ").count(), 2, "{history}");
    for part in [
        "**Reviewer Feedback:**\nnot yet",
        "- [blocker] no interface",
        "**Changes Made:**\nDesigned, take 2.",
        "---",
    ] {
        assert!(design.contains(part), "{part}: {design}");
    }
    assert_eq!(history.matches("## Phase: ").count(), 5, "approved ones too: {history}");
}

#[test]
fn s2_15_the_reviewer_is_somebody_else_with_fresh_eyes_and_changes_nothing() {
    let feature = Feature::runs("hotfix", "implement-review) echo mended > src/a.txt; approve;;", 11);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("chain-reviewer") && message.contains("src/a.txt"), "{message}");
    let feature = Feature::runs("hotfix", "", 10);
    let (maker, judge) =
        (feature.scratch.prompt("implement", 1), feature.scratch.prompt("implement-review", 1));
    assert!(judge.starts_with("You have one question") && !maker.contains("You have one question"));
    assert!(!judge.contains("Built, take 1"), "it hears nothing of what the maker said");
}

#[test]
fn j_08_a_chain_reviewer_who_approves_beside_a_blocker_has_not_approved() {
    let cases = r#"design-review) if [ $GATEWRIGHT_ROUND = 1 ]; then echo '{"approved": true, "issues": [{"severity": "blocker", "description": "no interface"}], "summary": "fine"}'; else approve; fi;;"#;
    assert_eq!(Feature::runs("standard", cases, 10).scratch.count("design"), 2);
}

#[test]
fn j_46_three_iterations_are_three_reviews_and_not_one_more() {
    let feature = Feature::runs("standard", "design-review) demand blocker 'no interface';;", 10);
    assert_eq!(feature.scratch.count("design-review"), 3);
    assert_eq!(feature.meta()["phases"]["design"]["iterations"], 3);
}

#[test]
fn j_09_a_design_of_headings_only_is_none() {
    let headings = r#"design) printf '# D\n## Components\n## Interfaces\n## Dependencies\n## Risks\n' > "$GATEWRIGHT_OUT/design.md"; brief DONE design.md;;"#;
    let feature = Feature::runs("standard", headings, 11);
    assert_eq!(feature.scratch.count("design-review"), 0);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("design.md") && message.contains("Components"), "{message}");
}

#[test]
fn s2_13_at_the_limit_a_phase_is_completed_with_what_the_reviewer_still_misses() {
    let scratch = Feature::project("specify-review) demand blocker 'R1 is vague';;");
    let words = ["run", "phase-review", "Remember me", "--until", "specify"];
    let ran = scratch.gatewright(&words).exits(12);
    assert!(
        ran.err.contains("Phase complete (3 iterations). Reviewer concerns: R1 is vague\n"),
        "{}",
        ran.err
    );
    let feature = Feature { run: ran.id(), scratch };
    let phase = feature.meta()["phases"]["specify"].clone();
    assert_eq!((&phase["iterations"], phase["completed"].is_string()), (&3.into(), true), "{phase}");
    assert_eq!(phase["reviewerNotes"], serde_json::json!(["R1 is vague"]));
}

#[test]
fn s2_42_an_entry_of_the_history_has_its_layout() {
    let cases =
        "specify-review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand blocker 'R1 is vague'; else approve; fi;;";
    let feature = Feature::runs("standard", cases, 10);
    let history = feature.history().unwrap();
    let entry: Vec<&str> = history.lines().skip_while(|line| *line != "## Phase: specify").collect();
    let mut at = 0;
    for (beginning, whole) in [
        ("## Phase: specify", true),
        ("### Iteration 1 - 20", false),
        ("**Reviewer Feedback:**", true),
        ("**Issues:**", true),
        ("- [blocker] R1 is vague", false),
        ("**Changes Made:**", true),
        ("---", true),
    ] {
        let found = entry[at..]
            .iter()
            .position(|line| if whole { *line == beginning } else { line.starts_with(beginning) });
        at += found.unwrap_or_else(|| panic!("{beginning} after line {at}: {history}"));
    }
}
