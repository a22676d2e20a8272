//! Features that were begun without this engine.

use super::feature::Feature;
use crate::support::Scratch;

const FOLDER: &str = "docs/features/007-remember-me";

fn phase(completed: bool) -> String {
    let completed = if completed { "\"2025-01-31T10:00:00Z\"" } else { "null" };
    format!(
        r#"{{"started": "2025-01-31T09:00:00Z", "completed": {completed}, "verified": false, "iterations": 2, "reviewerNotes": []}}"#
    )
}

fn begun(cases: &str, spec: &str, iterations: &str) -> Scratch {
    let scratch = Feature::project(cases);
    let meta = format!(
        r#"{{"id": "007", "name": "remember-me", "mode": "standard", "status": "active", "created": "2025-01-31T09:00:00Z", "completed": null, "worktree": null, "currentPhase": "specify", "phases": {{"brainstorm": {}, "specify": {}, "design": {}}}}}"#,
        phase(true),
        phase(true).replace("\"iterations\": 2", &format!("\"iterations\": {iterations}")),
        phase(false)
    );
    scratch.write(&format!("{FOLDER}/.meta.json"), &meta);
    scratch.write(
        &format!("{FOLDER}/brainstorm.md"),
        "# B\n## Problem\nOne\n## Options\n- One\n## Intent\nOne\n",
    );
    scratch.write(&format!("{FOLDER}/spec.md"), spec);
    scratch
}

const SPEC: &str =
    "# S\n## Requirements\n- R1: theirs\n## Acceptance Criteria\n- R1: holds\n## Scope\n- In: it\n";

#[test]
fn a_feature_goes_on_after_its_last_completed_phase() {
    let scratch = begun("", SPEC, "2");
    scratch.gatewright(&["import", FOLDER, "--check"]).exits(0).prints("go on with `design`");
    let run = scratch.gatewright(&["import", FOLDER]).exits(10).id();
    assert_eq!(run, "007-remember-me");
    let feature = Feature { scratch, run };
    assert_eq!(feature.scratch.called()[0], "design", "{:?}", feature.scratch.called());
    assert_eq!(feature.scratch.published(&feature.run, "spec.md").as_deref(), Some(SPEC));
    assert_eq!(feature.meta()["currentPhase"], "verify");
    // Reviews that were held count, and go on being counted.
    assert_eq!(feature.meta()["phases"]["specify"]["iterations"], 2, "{:#}", feature.meta());
    assert_eq!(feature.meta()["phases"]["design"]["iterations"], 3, "{:#}", feature.meta());
    // What was done counts in its turn: nothing begins before what it rests on was taken over.
    let events = feature.scratch.events(&feature.run);
    let at = |kind: &str, step: &str| {
        let found = events.iter().position(|event| event["type"] == kind && event["step"] == step);
        found.unwrap_or_else(|| panic!("no {kind} of {step}"))
    };
    assert!(at("step.passed", "specify") < at("step.skipped", "specify-review"));
    assert!(at("step.skipped", "specify-review") < at("step.attempt.started", "design"));
    let next =
        feature.scratch.gatewright(&["run", "phase-review", "Next", "--profile", "hotfix"]).exits(10).id();
    assert!(next.starts_with("008-"), "{next}");
    // Phase by phase works as well.
    let scratch = begun("", SPEC, "2");
    scratch.gatewright(&["import", FOLDER, "--until", "design"]).exits(12);
    scratch.gatewright(&["phase", "create-plan"]).exits(0);
}

#[test]
fn a_feature_that_breaks_its_schema_goes_on_where_it_is_still_whole() {
    let scratch = begun("", "# S\n## Requirements\n- R1: theirs\n", "\"two\"");
    let said = scratch.gatewright(&["import", FOLDER, "--check"]).exits(1).out;
    for part in [".meta.json, /phases/specify/iterations: expected", "spec.md", "Scope", "remedy: "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let run = scratch.gatewright(&["import", FOLDER, "--until", "specify"]).exits(12).id();
    let feature = Feature { scratch, run };
    assert_eq!(feature.scratch.called(), ["specify", "specify-review"], "what is broken is made again");
    // And so is everything that rests on it, however whole it is.
    let scratch = begun("", SPEC, "2");
    scratch.write(&format!("{FOLDER}/brainstorm.md"), "# B\n");
    scratch.gatewright(&["import", FOLDER, "--until", "specify"]).exits(12);
    assert_eq!(scratch.called(), ["brainstorm", "specify", "specify-review"]);
}

#[test]
fn who_imports_a_feature_with_a_worktree_is_told_where_its_work_is() {
    let scratch = begun("", SPEC, "2");
    let path = scratch.root().join(FOLDER).join(".meta.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"worktree\": null", "\"worktree\": \"../shop-007-remember-me\""))
        .unwrap();
    let said = scratch.gatewright(&["import", FOLDER, "--check"]).exits(0).out;
    assert!(said.contains("note: its work so far is in ../shop-007-remember-me"), "{said}");
}
