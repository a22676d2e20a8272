//! One phase a command: what may begin, what has to be confirmed, and what becomes of a phase that was
//! begun and not completed.

use serde_json::{Value, json};

use super::feature::Feature;

const PHASES: [&str; 8] =
    ["brainstorm", "specify", "design", "create-plan", "create-tasks", "implement", "verify", "finish"];

/// A feature that rests after its first phase.
#[track_caller]
fn brainstormed(cases: &str) -> Feature {
    let scratch = Feature::project(cases);
    let arguments = ["run", "phase-review", "Remember me", "--until", "brainstorm"];
    let run = scratch.gatewright(&arguments).exits(12).id();
    Feature { scratch, run }
}

impl Feature {
    #[track_caller]
    fn phase(&self, words: &[&str], code: i32) -> String {
        let ran = self.scratch.gatewright(&[&["phase"], words].concat()).exits(code);
        ran.err
    }

    #[track_caller]
    fn may_begin(&self, phase: &str, code: i32) -> Value {
        let ran = self.scratch.gatewright(&["phase", phase, "--check", "--json"]).exits(code);
        serde_json::from_str(&ran.out).unwrap()
    }
}

#[test]
fn phases_are_run_one_command_at_a_time() {
    let feature = brainstormed("");
    for phase in &PHASES[1..7] {
        feature.phase(&[phase], 0);
        assert_eq!(feature.meta()["currentPhase"], *phase);
    }
    assert_eq!(
        feature.scratch.called().iter().filter(|step| !step.ends_with("-review")).collect::<Vec<_>>(),
        PHASES[..7].iter().collect::<Vec<_>>()
    );
    feature.phase(&["finish"], 10);
    feature.answer("finish", "merge", 0);
    assert_eq!(feature.meta()["status"], "completed");
    // The rest in one go.
    let feature = brainstormed("");
    feature.phase(&["specify"], 0);
    feature.scratch.gatewright(&["resume", &feature.run]).exits(10);
    assert_eq!(feature.scratch.count("verify"), 1);
}

#[test]
fn s2_01_s2_07_every_transition_is_allowed_warned_of_or_blocked() {
    let feature = brainstormed("");
    let said = feature.may_begin("specify", 0);
    let wanted = json!({"allowed": true, "type": "proceed", "message": null});
    assert_eq!(json!({"allowed": said["allowed"], "type": said["type"], "message": said["message"]}), wanted);
    let said = feature.may_begin("design", 0);
    assert_eq!((&said["allowed"], &said["type"]), (&json!(true), &json!("warning")));
    assert!(said["message"].as_str().unwrap().contains("specify"), "{said}");
    for (phase, file) in [("create-tasks", "plan.md"), ("implement", "spec.md")] {
        let said = feature.may_begin(phase, 4);
        assert_eq!((&said["allowed"], &said["type"]), (&json!(false), &json!("blocked")));
        assert!(said["message"].as_str().unwrap().contains(file), "{said}");
        // Nobody gets past it by confirming.
        assert!(feature.phase(&[phase, "--yes"], 4).contains(file));
        assert_eq!(feature.scratch.count(phase), 0);
    }
    // To ask changes nothing.
    assert_eq!(feature.scratch.called(), ["brainstorm"]);
}

#[test]
fn s2_05_a_phase_is_skipped_only_if_a_person_confirms_it() {
    let feature = brainstormed("");
    let said = feature.phase(&["design"], 4);
    assert!(said.contains("warning: skipping specify") && said.contains("--yes"), "{said}");
    assert_eq!(feature.scratch.count("design"), 0);
    feature.phase(&["design", "--yes"], 0);
    // Without a specification no design is approved (S2-19), so it takes all three iterations.
    assert_eq!((feature.scratch.count("specify"), feature.scratch.count("design")), (0, 3));
    let waived = feature.scratch.status(&feature.run)["waivers"].to_string();
    assert!(waived.contains("skipping specify, confirmed by a person"), "{waived}");
    let meta = feature.meta();
    assert!(meta["phases"]["specify"].is_null() && meta["currentPhase"] == "design", "{meta}");
    // Or it runs what is missing.
    let feature = brainstormed("");
    feature.phase(&["design", "--through"], 0);
    assert_eq!((feature.scratch.count("specify"), feature.scratch.count("design")), (1, 1));
}

/// The first look is not content; whoever revises breaks until there is a file `mend`.
const BREAKS: &str = r#"
design)
  [ -f "$GATEWRIGHT_RUN_DIR/design.md" ] && touch "$HOME/found.$GATEWRIGHT_ATTEMPT"
  [ $GATEWRIGHT_ATTEMPT = 1 ] || [ -f "$HOME/mend" ] || exit 1
  standard;;
design-review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then demand blocker 'no interface'; else approve; fi;;"#;

#[track_caller]
fn partial() -> Feature {
    let feature = brainstormed(BREAKS);
    feature.phase(&["specify"], 0);
    feature.phase(&["design"], 11);
    feature.scratch.mark("mend");
    let launched = feature.scratch.count("design");
    let said = feature.phase(&["design"], 4);
    assert!(said.contains("begun and not completed"), "{said}");
    for word in ["--continue", "--fresh", "--review"] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(feature.scratch.count("design"), launched, "nothing begins before the person has chosen");
    feature
}

#[test]
fn s2_08_a_partial_phase_is_continued_with_its_artifact_and_its_count() {
    let feature = partial();
    let next = feature.scratch.count("design") + 1;
    feature.phase(&["design", "--continue"], 0);
    assert_eq!(feature.scratch.count("design"), next);
    assert!(feature.scratch.home().join(format!("found.{next}")).exists(), "the artifact is still there");
    assert_eq!(feature.meta()["phases"]["design"]["iterations"], 2, "the count goes on");
    assert!(feature.scratch.prompt("design", next.try_into().unwrap()).contains("no interface"));
}

#[test]
fn s2_08_a_partial_phase_is_begun_anew_without_its_artifact_and_its_count() {
    let feature = partial();
    let next = feature.scratch.count("design") + 1;
    feature.phase(&["design", "--fresh"], 0);
    assert_eq!(feature.scratch.count("design"), next);
    assert!(!feature.scratch.home().join(format!("found.{next}")).exists(), "the artifact is discarded");
    assert_eq!(feature.meta()["phases"]["design"]["iterations"], 1, "so is the count");
}

#[test]
fn s2_08_the_artifact_of_a_partial_phase_goes_straight_to_the_reviewer() {
    let feature = partial();
    let (made, judged) = (feature.scratch.count("design"), feature.scratch.count("design-review"));
    let path = feature.scratch.run_dir(&feature.run).join("design.md");
    let own = format!("{}- what a person added\n", std::fs::read_to_string(&path).unwrap());
    std::fs::write(&path, &own).unwrap();
    feature.phase(&["design", "--review"], 0);
    assert_eq!(feature.scratch.count("design"), made, "nobody produces anything");
    assert_eq!(feature.scratch.count("design-review"), judged + 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), own, "as it lies there");
    assert_eq!(feature.meta()["currentPhase"], "design");
}

#[test]
fn s2_40_the_method_has_the_names_of_its_source() {
    let feature = brainstormed("");
    for phase in PHASES {
        let ran = feature.scratch.gatewright(&["phase", phase, "--check"]);
        assert!([0, 4].contains(&ran.code), "{phase}: {}", ran.err);
    }
    let ran = feature.scratch.gatewright(&["phase", "deploy", &feature.run]).exits(2);
    assert!(ran.err.contains("brainstorm, specify, design"), "{}", ran.err);
    assert_eq!(feature.scratch.step(&feature.run, "design-review")["role"], "chain-reviewer");
    assert_eq!(feature.scratch.step(&feature.run, "final-review")["role"], "final-reviewer");
    let told = feature.scratch.gatewright(&["hook", "session-start"]).exits(0).out;
    assert!(told.contains("gatewright phase specify"), "the hook names the next command: {told}");
}

#[test]
fn s2_43_who_watches_sees_that_a_phase_is_complete_and_after_how_many_iterations() {
    let cases =
        "specify-review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand blocker 'R1 is vague'; else approve; fi;;
design-review) demand blocker 'no interface';;
brainstorm) if [ $GATEWRIGHT_ATTEMPT -lt 3 ]; then exit 1; fi; standard;;";
    let scratch = Feature::project(cases);
    let run =
        scratch.gatewright(&["run", "phase-review", "Remember me", "--until", "brainstorm"]).exits(11).id();
    let feature = Feature { scratch, run };
    let said = feature.may_begin("brainstorm", 0);
    assert!(said["currentPhase"].is_null(), "nothing is completed yet: {said}");
    assert_eq!(said["artifacts"]["spec"], false);
    feature.phase(&["brainstorm", "--continue"], 0);
    let said = feature.phase(&["specify"], 0);
    assert!(said.contains("Phase complete (2 iterations)"), "{said}");
    let said = feature.may_begin("design", 0);
    assert_eq!((&said["currentPhase"], &said["artifacts"]["spec"]), (&json!("specify"), &json!(true)));
    let said = feature.phase(&["design"], 0);
    assert!(said.contains("Phase complete (3 iterations). Reviewer concerns:"), "{said}");
    assert!(said.contains("no interface"), "{said}");
}

#[test]
fn s2_44_a_phase_that_is_started_past_the_normal_way_is_still_checked() {
    let feature = brainstormed("");
    for step in
        ["specify", "specify-review", "design", "design-review", "create-tasks", "create-tasks-review"]
    {
        feature.scratch.gatewright(&["skip", &feature.run, step, "--reason", "we know it"]).exits(12);
    }
    feature.scratch.gatewright(&["resume", &feature.run]).exits(11);
    let (_, message) = feature.scratch.blocked_by(&feature.run);
    assert!(message.contains("spec.md"), "{message}");
    feature.scratch.gatewright(&["restart", &feature.run, "--stage", "implement"]).exits(11);
    assert!(feature.phase(&["implement", "--continue"], 4).contains("spec.md"));
    assert_eq!(feature.scratch.count("implement"), 0);
}

#[test]
fn s2_29_the_worktree_is_stored_relative_and_found_where_it_is() {
    let feature = brainstormed("");
    let stored = feature.meta()["worktree"].as_str().unwrap().to_owned();
    let project = feature.scratch.root().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(stored, format!("../{project}-{}", feature.run), "beside the repository, under its names");
    let tree = feature.scratch.root().join(&stored).canonicalize().unwrap();
    assert!(tree.join("src/a.txt").exists(), "{}", tree.display());
    let told = feature.scratch.gatewright(&["hook", "session-start"]).exits(0).out;
    assert!(told.contains(&format!("it works in {}", tree.display())), "{told}");
    assert!(Feature::runs("hotfix", "", 10).meta()["worktree"].is_null());
}

#[test]
fn s2_28_a_command_warns_who_is_elsewhere_unless_that_was_said_in_this_session() {
    let feature = brainstormed("");
    let said = feature.phase(&["specify"], 0);
    assert!(said.contains("Warning: it works in") && said.contains("you are in"), "{said}");
    assert!(!feature.phase(&["design"], 0).contains("Warning"), "once a session");
    // At the start of a session it is said in any case, and then no command says it again.
    let feature = brainstormed("");
    let told = feature.scratch.gatewright(&["hook", "session-start"]).exits(0).out;
    assert!(told.contains("Warning: it works in"), "{told}");
    assert!(!feature.phase(&["specify"], 0).contains("Warning"));
    // Without a worktree there is nothing to warn of.
    let scratch = Feature::project("");
    let quick = ["run", "phase-review", "Remember me", "--profile", "quick", "--until", "specify"];
    scratch.gatewright(&quick).exits(12);
    assert!(!scratch.gatewright(&["phase", "create-tasks"]).exits(0).err.contains("Warning"));
}

#[test]
fn s2_27_a_session_is_told_of_active_features_their_phase_their_mode_and_the_next_command() {
    let feature = brainstormed("");
    let hook = || feature.scratch.gatewright(&["hook", "session-start"]).exits(0).out;
    let told = hook();
    for part in
        [&feature.run, "(phase-review, standard)", "at brainstorm (complete)", "gatewright phase specify"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    feature.scratch.gatewright(&["abort", &feature.run]);
    assert_eq!(hook(), "", "only what is active");
}
