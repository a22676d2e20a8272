//! States, artifacts, intake and design.

use super::session::Session;

const DESIGN_ONLY: &str = "intake) spec; acceptance; triage true true; fine;;";

#[test]
fn s1_01_states_schema_and_dispatch_have_each_their_own_source() {
    let session = Session::designed("");
    // States come from the workflow, the schema from a contract, the dispatch from the one shared prompt.
    let plan = session.scratch.gatewright(&["run", "gated-session", "Remember me", "--dry-run"]).exits(0).out;
    for stage in ["intake", "design", "approve-design", "plan", "review-strategy", "implement", "integrate"] {
        assert!(plan.contains(&format!("stage {stage}")), "{stage}: {plan}");
    }
    let prompts = [session.scratch.prompt("intake", 1), session.scratch.prompt("architecture", 1)];
    assert!(prompts.iter().all(|prompt| prompt.contains("Order of authority, highest first")));
    assert!(session.status()["gate_tracking"]["APPROVE_DESIGN"].is_object());
}

#[test]
fn s1_02_full_goes_through_every_state_in_order() {
    let session = Session::built("per-batch", "task T-001", "", 0);
    let order = ["intake", "architecture", "plan", "tasks/T-001/code", "integrate", "docs"];
    let states: Vec<String> = order
        .iter()
        .map(|step| session.seen(step, 1)["current_state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["INTAKE", "DESIGN", "PLAN", "IMPLEMENT_LOOP", "INTEGRATE", "RELEASE"]);
    assert_eq!(session.current_state(), "DONE");
    let called = session.scratch.called();
    let places: Vec<usize> =
        order.iter().map(|step| called.iter().position(|one| one == step).unwrap()).collect();
    assert!(places.is_sorted(), "{called:?}");
}

#[test]
fn s1_02_lean_has_four_states() {
    let session = Session::lean("", 0);
    assert_eq!(
        session.scratch.called(),
        ["intake-lean", "tasks/T-001/code", "tasks/T-001/review", "tasks/T-001/qa"]
    );
    assert_eq!(session.seen("intake-lean", 1)["current_state"], "INTAKE_LEAN");
    assert_eq!(session.seen("tasks/T-001/code", 1)["current_state"], "IMPLEMENT_LOOP");
    assert_eq!(session.current_state(), "DONE");
}

#[test]
fn s1_03_everything_is_in_the_sessions_folder_and_earlier_sessions_keep_theirs() {
    let first = Session::lean("", 0);
    let folder = first.scratch.root().join(".agents-work").join(&first.run);
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let (date, slug) = name.split_once('_').unwrap();
    assert_eq!((date.len(), slug), (10, "remember-me"), "{name}");
    let before = std::fs::read_to_string(folder.join("status.json")).unwrap();
    // The same request on the same day is another session.
    let again = first
        .scratch
        .gatewright(&["run", "gated-session", "Remember me", "--profile", "lean", "--set", "ci=true"])
        .exits(0)
        .id();
    assert_ne!(again, first.run);
    assert!(first.scratch.root().join(".agents-work").join(&again).join("status.json").exists());
    assert_eq!(std::fs::read_to_string(folder.join("status.json")).unwrap(), before, "read only");
}

#[test]
fn s1_04_s1_05_intake_leaves_three_files_and_each_criterion_can_be_verified() {
    let session = Session::designed("");
    for file in ["spec.md", "acceptance.json", "status.json"] {
        assert!(session.scratch.published(&session.run, file).is_some(), "{file}");
    }
    // A criterion that nobody can verify closes the gate.
    let cases = "intake) spec '- AC-002: it is fast\n'; acceptance; triage false false; fine;;";
    let session = Session::starts(Session::project(cases), &[], 11);
    assert_eq!(session.scratch.count("architecture"), 0);
    let (_, message) = session.scratch.blocked_by(&session.run);
    assert!(message.contains("AC-002"), "{message}");
    assert_eq!(session.current_state(), "BLOCKED");
}

#[test]
fn s1_06_a_lean_intake_is_short_and_has_one_task() {
    let session = Session::lean("", 0);
    assert!(session.scratch.published(&session.run, "architecture.md").is_none());
    let tasks = session.scratch.published(&session.run, "tasks.yaml").unwrap();
    assert_eq!(tasks.matches("- id: T-").count(), 1, "{tasks}");
    // Two tasks are no lean session.
    let scratch = Session::project("");
    std::fs::write(scratch.home().join("tasks"), "task T-001; task T-002").unwrap();
    let session = Session::starts(scratch, &["--profile", "lean"], 10);
    assert_eq!(session.scratch.decision(&session.run, "UD-1")["about"], "exhausted");
    assert_eq!(session.scratch.count("tasks/T-001/code"), 0);
}

#[test]
fn s1_07_the_engine_writes_nothing_in_place_of_an_agent() {
    let session = Session::starts(Session::project("intake) exit 1;;"), &[], 11);
    assert_eq!(session.scratch.count("intake"), 3);
    for file in ["spec.md", "acceptance.json", "plan/tasks.yaml", "report.md"] {
        assert!(session.scratch.published(&session.run, file).is_none(), "{file}");
    }
    // The exception: a lean session whose SpecAgent is not to be had, and a person who goes on without.
    let session = Session::lean("intake-lean) exit 1;;", 10);
    assert!(session.scratch.published(&session.run, "spec.md").is_none());
    session.answer("UD-1", "without", 0);
    let spec = session.scratch.published(&session.run, "spec.md").unwrap();
    assert!(spec.contains("AC-001: Remember me"), "{spec}");
    assert_eq!(session.scratch.count("tasks/T-001/code"), 1);
}

#[test]
fn s1_08_complexity_leaves_lean_and_starts_the_full_intake() {
    let blocked = r#"*/code) say BLOCKED "too big" "" ',"reason":"complexity"';;"#;
    let session = Session::lean(blocked, 10);
    assert_eq!(session.scratch.called(), ["intake-lean", "tasks/T-001/code", "intake", "architecture"]);
    assert_eq!(session.status()["mode"], "full");
    assert_eq!(session.current_state(), "APPROVE_DESIGN");
}

#[test]
fn s1_09_research_then_architecture_then_design() {
    let session = Session::designed(DESIGN_ONLY);
    assert_eq!(session.scratch.called(), ["intake", "research", "architecture", "design"]);
    let session = Session::designed("");
    assert_eq!(session.scratch.called(), ["intake", "architecture"], "only when they are needed");
}

#[test]
fn s1_10_the_design_gate_reads_contents() {
    let session = Session::starts(Session::project("architecture) architecture AC-009; fine;;"), &[], 11);
    let (_, message) = session.scratch.blocked_by(&session.run);
    assert!(message.contains("architecture.md does not name AC-001"), "{message}");
    let session = Session::starts(Session::project("architecture) architecture AC-001 ''; fine;;"), &[], 11);
    let (_, message) = session.scratch.blocked_by(&session.run);
    assert!(message.contains("Risks"), "{message}");
    let cases = format!("{DESIGN_ONLY}\nresearch) fine;;");
    let session = Session::starts(Session::project(&cases), &[], 11);
    assert_eq!(session.scratch.count("architecture"), 0, "the research that was asked for is not there");
    let cases = format!("{DESIGN_ONLY}\ndesign) fine;;");
    let session = Session::starts(Session::project(&cases), &[], 11);
    assert_ne!(session.current_state(), "APPROVE_DESIGN", "the design specification is not there");
}
