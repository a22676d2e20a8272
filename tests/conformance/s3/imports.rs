//! Pipelines that were begun without this engine.

use serde_json::{Value, json};

use super::cycle::Cycle;
use crate::support::Scratch;

const FOLDER: &str = "docs/implementation_plans/PROJ-1/remember";

/// A project with a folder that tools and people have filled up to here: `files` of the registry.
fn begun(files: &[&str]) -> Scratch {
    let scratch = Cycle::project("");
    let meta = |agent: &str| json!({"agent": agent, "version": "1.0", "status": "approved"});
    for file in files {
        let text = match *file {
            "spec_output.json" => {
                json!({"metadata": meta("tpm"), "feature_type": "backend", "requirements": [{"id": "FR-001", "description": "it holds"}]})
            }
            "domain_output.json" => {
                json!({"metadata": meta("domain_expert"), "terms": [{"term": "a", "meaning": "b"}]})
            }
            "domain_model.json" => json!({"metadata": meta("domain_modeller"), "entities": [{"name": "A"}]}),
            "design_system.tokens.json" => json!({"color": {"a": "red"}}),
            "design_output.json" => {
                json!({"metadata": meta("designer"), "components": [{"name": "c"}], "options": [{"id": "option-1", "title": "one", "trade_off": "x"}, {"id": "option-2", "title": "two", "trade_off": "y"}]})
            }
            "plan_output.json" => {
                json!({"metadata": meta("impl_planner"), "requirements": [{"id": "FR-001", "description": "d"}], "parallelism_groups": [{"group": 1, "streams": ["WS-1"]}], "work_streams": [{"id": "WS-1", "name": "Store", "agent": "software_engineer_backend", "requirements": ["FR-001"], "depends_on": []}]})
            }
            "api_design_output.json" => {
                json!({"metadata": meta("api_designer"), "resources": [{"name": "r", "endpoints": []}]})
            }
            "api_spec.yaml" => json!({"openapi": "3.1.0"}),
            text => Value::String(format!("# {text}\n")),
        };
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        scratch.write(&format!("{FOLDER}/{file}"), &text);
    }
    scratch
}

const DISCOVERY: &[&str] = &[
    "spec.md",
    "research.md",
    "decisions.md",
    "spec_output.json",
    "domain_analysis.md",
    "domain_output.json",
    "domain_model.md",
    "domain_model.json",
];
const PLAN: &[&str] = &["plan.md", "plan_output.json"];
const DESIGN: &[&str] = &["design.md", "design_system.tokens.json", "design_output.json"];
const CONTRACT: &[&str] = &["schema_design.md", "api_design.md", "api_spec.yaml", "api_design_output.json"];

/// The spine as the tools write it.
fn spine(scratch: &Scratch, feature_type: &str, passed: &[&str]) {
    let progress = |words: &[&str]| {
        scratch.gatewright(&[&["progress"], words, &["--project-dir", FOLDER, "--quiet"]].concat()).exits(0);
    };
    progress(&["init", "--pipeline-id", "PROJ-1_remember", "--feature-type", feature_type]);
    progress(&["milestone", "--id", "M-discovery", "--title", "Discovery", "--phase", "discovery"]);
    for gate in passed {
        progress(&["gate", "--id", gate, "--status", "passed"]);
    }
}

#[track_caller]
fn imported(scratch: Scratch, code: i32) -> Cycle {
    scratch.gatewright(&["import", FOLDER, "--check"]).exits(0);
    let words = ["import", FOLDER, "--set", "build=true", "--set", "test=true"];
    let run = scratch.gatewright(&words).exits(code).id();
    Cycle { scratch, run }
}

/// What waits for a person.
fn waits(cycle: &Cycle) -> Vec<String> {
    let status = cycle.scratch.status(&cycle.run);
    let list = status["decisions"].as_array().unwrap().clone();
    let open = list.iter().filter(|one| one["status"] == "pending");
    open.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_spine_goes_on_behind_the_gate_that_was_passed() {
    let scratch = begun(DISCOVERY);
    spine(&scratch, "backend", &["G1"]);
    let cycle = imported(scratch, 10);
    assert_eq!(waits(&cycle), ["G3"]);
    let called = cycle.scratch.called();
    assert_eq!(called.iter().filter(|step| *step != "impl_planner").count(), 2, "{called:?}");
    assert_eq!(called[0], "impl_planner", "{called:?}");
    let answer = cycle.scratch.decision(&cycle.run, "G1");
    assert_eq!(answer["answer"], "approved", "{answer:#}");
    // Not one that is still open.
    let scratch = begun(DISCOVERY);
    spine(&scratch, "backend", &[]);
    let cycle = imported(scratch, 10);
    assert_eq!((waits(&cycle), cycle.scratch.called()), (vec!["G1".to_owned()], Vec::new()));
}

#[test]
fn a_clear_domain_without_a_model_was_approved_without_it() {
    let files: Vec<&str> = DISCOVERY.iter().copied().filter(|file| !file.contains("domain_model")).collect();
    let scratch = begun(&files);
    spine(&scratch, "backend", &["G1"]);
    let cycle = imported(scratch, 10);
    assert_eq!((waits(&cycle), cycle.scratch.called()[0].as_str()), (vec!["G3".to_owned()], "impl_planner"));
    let scratch = begun(&files);
    state(&scratch, |state| {
        state["stages"]["domain_modeller"]["status"] = json!("skipped");
        state["current_gate"] = json!("G3");
    });
    let cycle = imported(scratch, 10);
    assert_eq!((waits(&cycle), cycle.scratch.called()[0].as_str()), (vec!["G3".to_owned()], "impl_planner"));
}

#[test]
fn a_spine_goes_on_with_its_streams_behind_g3() {
    let scratch = begun(&[DISCOVERY, PLAN, CONTRACT].concat());
    spine(&scratch, "backend", &["G1", "G3"]);
    let cycle = imported(scratch, 10);
    assert_eq!(waits(&cycle), ["G4"]);
    let called = cycle.scratch.called();
    assert_eq!(
        called,
        ["streams/WS-1/backend", "streams/WS-1/test", "review"],
        "nothing before is done again"
    );
}

#[test]
fn the_direction_that_was_chosen_is_the_one_that_is_built() {
    for chosen in ["option-2", "Option 2", "option B"] {
        let scratch = begun(&[DISCOVERY, PLAN, DESIGN].concat());
        spine(&scratch, "ui", &["G1", "G2"]);
        let said =
            ["decision", "--gate", "G2", "--question", "Which?", "--chosen", chosen, "--project-dir", FOLDER];
        scratch.gatewright(&[&["progress"], &said[..]].concat()).exits(0);
        let cycle = imported(scratch, 10);
        assert_eq!(
            (waits(&cycle), cycle.scratch.called()),
            (vec!["G3".to_owned()], vec!["api_designer".to_owned()])
        );
        assert_eq!(cycle.scratch.decision(&cycle.run, "G2")["answer"], "option-2");
        assert!(cycle.scratch.prompt("api_designer", 1).contains("The design direction is option-2."));
    }
}

/// `pipeline_state.json` of a tool that knew no spine.
fn state(scratch: &Scratch, change: impl FnOnce(&mut Value)) {
    let stages = [
        "tpm",
        "domain_expert",
        "domain_modeller",
        "designer",
        "impl_planner",
        "database_designer",
        "api_designer",
        "software_engineer_backend",
        "software_engineer_frontend",
        "test_writer",
        "code_reviewer",
        "observability_engineer",
    ];
    let stages: serde_json::Map<String, Value> =
        stages.iter().map(|name| ((*name).to_owned(), json!({"status": "pending"}))).collect();
    let mut state = json!({"pipeline_id": "PROJ-1_remember", "feature_type": "backend", "stages": stages, "current_gate": "none", "decisions": []});
    change(&mut state);
    scratch.write(&format!("{FOLDER}/pipeline_state.json"), &state.to_string());
}

#[test]
fn a_state_from_before_the_spine_goes_on_behind_its_gates() {
    let decision = |gate: &str, chosen: &str| json!({"id": "D1", "gate": gate, "stage": "tpm", "question": "?", "chosen": chosen, "decided_by": "user", "timestamp": "2026-01-01T00:00:00Z"});
    let next = |change: &dyn Fn(&mut Value)| {
        let scratch = begun(DISCOVERY);
        state(&scratch, change);
        let cycle = imported(scratch, 10);
        (waits(&cycle), cycle.scratch.called().first().cloned().unwrap_or_default())
    };
    let (behind, before) =
        ((vec!["G3".to_owned()], "impl_planner".to_owned()), (vec!["G1".to_owned()], String::new()));
    // In the words of a person, as a time, or by the gate that it has come to.
    assert_eq!(next(&|state| state["decisions"] = json!([decision("G1", "go ahead")])), behind);
    assert_eq!(next(&|state| state["stages"]["tpm"]["approved_at"] = json!("2026-01-01T00:00:00Z")), behind);
    assert_eq!(next(&|state| state["current_gate"] = json!("G3")), behind);
    assert_eq!(next(&|_| ()), before);
    assert_eq!(next(&|state| state["current_gate"] = json!("G1")), before);
}

#[test]
fn a_state_that_waits_at_its_last_gate_has_not_come_to_its_end() {
    let all = [DISCOVERY, PLAN, CONTRACT].concat();
    let says = |shipped: bool| {
        let scratch = begun(&all);
        state(&scratch, |state| {
            for stage in state["stages"].as_object_mut().unwrap().values_mut() {
                stage["status"] = json!("completed");
            }
            state["current_gate"] = json!("G4");
            if shipped {
                state["decisions"] = json!([{"id": "D4", "gate": "G4", "stage": "review", "question": "?", "chosen": "merge", "decided_by": "user", "timestamp": "2026-01-01T00:00:00Z"}]);
            }
        });
        let ran = scratch.gatewright(&["import", FOLDER, "--check"]);
        format!("{}{}", ran.out, ran.err)
    };
    assert!(says(false).contains("a run would go on with `streams`"), "{}", says(false));
    assert!(says(true).contains("it has come to its end"), "{}", says(true));
}
