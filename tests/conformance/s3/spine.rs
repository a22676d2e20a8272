//! The progress spine of a run.

use super::cycle::Cycle;

const CALL: &str = "\"$GATEWRIGHT_BIN\" progress";

#[test]
fn s3_08_all_state_keeps_its_schema_from_beginning_to_end() {
    let cycle = Cycle::built("", "", 10);
    let dir = cycle.scratch.run_dir(&cycle.run);
    for (schema, file) in [
        ("execution_dag", "execution_dag.json"),
        ("pipeline_state", "pipeline_state.json"),
        ("stream_completion", "WS-1_completion.json"),
        ("progress_plan", "progress/plan.json"),
        ("progress_agent", "progress/tpm.json"),
        ("plan_output", "plan_output.json"),
    ] {
        let path = dir.join(file);
        cycle.validate(&["--schema", schema, "--file", path.to_str().unwrap()]).exits(0);
    }
    cycle.validate(&["--dag-check", "--file", dir.join("execution_dag.json").to_str().unwrap()]).exits(0);
    let state = cycle.json("pipeline_state.json");
    assert_eq!(state["stages"]["tpm"]["status"], "completed");
    assert_eq!(state["stages"]["designer"]["status"], "skipped");
    let nodes = cycle.json("execution_dag.json")["nodes"].as_array().unwrap().clone();
    assert!(nodes.iter().any(|node| node["id"] == "streams/WS-1/test"
        && node["status"] == "completed"
        && node["stream"] == "WS-1"));
    // Each node with the commit it began on, and the model it was given.
    let node = |id: &str| nodes.iter().find(|node| node["id"] == id).unwrap().clone();
    let (first, second) = (node("streams/WS-1/backend"), node("streams/WS-1/test"));
    let branch = format!("gatewright/{}/_run", cycle.run);
    let commits = cycle.scratch.git_says(&["log", "--format=%H %s", &branch]);
    let made = commits.lines().find(|line| line.contains("streams/WS-1/backend")).unwrap();
    assert_eq!(second["pre_sha"].as_str().unwrap(), made.split(' ').next().unwrap());
    assert_ne!(first["pre_sha"], second["pre_sha"]);
    assert_eq!((&first["model"], &second["model"]), (&"opus".into(), &"sonnet".into()));
    // An artifact that breaks its schema is no state.
    let cycle = Cycle::starts("tpm) spec ',\"cynefin\":\"odd\"'; fine;;", &[], 10);
    assert_eq!(cycle.scratch.count("tpm"), 2);
    assert!(cycle.scratch.prompt("tpm", 2).contains("cynefin"), "a schema failure names the field");
}

#[test]
fn s3_27_each_agent_has_its_file_and_nobody_writes_anothers() {
    let cases = format!(
        "domain_expert) expert; {CALL} update --project-dir \"$GATEWRIGHT_RUN_DIR\" --agent tpm --milestone M-discovery --status completed --summary mine --quiet; echo $? > \"$HOME/code\"; fine;;"
    );
    let cycle = Cycle::starts(&cases, &[], 10);
    assert_eq!(std::fs::read_to_string(cycle.scratch.home().join("code")).unwrap().trim(), "4");
    for agent in ["tpm", "domain_expert", "domain_modeller"] {
        assert_eq!(cycle.json(&format!("progress/{agent}.json"))["agent"], *agent);
    }
    assert!(!cycle.json("progress/tpm.json").to_string().contains("mine"));
    let view = cycle
        .scratch
        .gatewright(&[
            "progress",
            "view",
            "--json",
            "--project-dir",
            cycle.scratch.run_dir(&cycle.run).to_str().unwrap(),
        ])
        .exits(0);
    assert!(view.out.contains("domain_modeller"), "the driver reads and merges: {}", view.out);
}

#[test]
fn s3_28_updates_are_short_and_their_failure_stops_nobody() {
    let long = "x".repeat(150);
    let cases = format!(
        "tpm) spec; {CALL} update --project-dir /nowhere --agent tpm --milestone M-discovery --status nonsense --quiet || true; {CALL} update --project-dir \"$GATEWRIGHT_RUN_DIR\" --agent tpm --milestone M-discovery --status in_progress --summary {long} --quiet; cp \"$GATEWRIGHT_OUT/progress.jsonl\" \"$HOME/hints\"; fine;;"
    );
    let cycle = Cycle::starts(&cases, &[], 10);
    assert_eq!(cycle.scratch.count("tpm"), 1);
    let hint: serde_json::Value =
        serde_json::from_str(std::fs::read_to_string(cycle.scratch.home().join("hints")).unwrap().trim())
            .unwrap();
    assert_eq!(hint["summary"].as_str().unwrap().chars().count(), 100);
    let told = cycle.scratch.prompt("tpm", 1);
    assert!(
        told.contains("whenever you start, finish a requirement, finish, or are stuck")
            && told.contains("|| true"),
        "{told}"
    );
    let updates = cycle.json("progress/domain_expert.json")["updates"].as_array().unwrap().clone();
    let words: Vec<&str> = updates.iter().map(|update| update["status"].as_str().unwrap()).collect();
    assert_eq!(words, ["started", "completed"]);
}

#[test]
fn s3_28_what_an_agent_says_on_the_way_is_journaled_and_changes_no_state() {
    let said = |status: &str, summary: &str| {
        format!(
            "{CALL} update --project-dir \"$GATEWRIGHT_RUN_DIR\" --agent tpm --milestone M-discovery --status {status} --summary '{summary}' --files src/a.txt --quiet"
        )
    };
    let cases = format!(
        "tpm) {}; {}; say blocked 'No way on.' none 'the store is gone';;",
        said("in_progress", "FR-001 done"),
        said("completed", "FR-002 done")
    );
    let cycle = Cycle::starts(&cases, &[], 11);
    let told = cycle.scratch.events_of(&cycle.run, "step.progress.told");
    let hints: Vec<&str> = told
        .iter()
        .flat_map(|event| event["hints"].as_array().unwrap())
        .map(|hint| hint["summary"].as_str().unwrap())
        .collect();
    assert_eq!(hints, ["FR-001 done", "FR-002 done"]);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "tpm"), "blocked", "its word is no state");
    // The file is a projection of both; a read only reconcile finds there what was said.
    let path = cycle.scratch.run_dir(&cycle.run).join("progress/tpm.json");
    let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(file["status"], "blocked", "{file:#}");
    let words: Vec<&str> =
        file["updates"].as_array().unwrap().iter().map(|update| update["status"].as_str().unwrap()).collect();
    assert_eq!(words, ["started", "in_progress", "completed", "blocked"], "{file:#}");
    assert_eq!(file["updates"][1]["files_touched"], serde_json::json!(["src/a.txt"]));
    cycle.validate(&["--schema", "progress_agent", "--file", path.to_str().unwrap()]).exits(0);
}

#[test]
fn s3_29_plan_and_agents_are_shown_as_one() {
    let cycle = Cycle::starts("", &[], 10);
    let dir = cycle.scratch.run_dir(&cycle.run);
    let seen =
        cycle.scratch.gatewright(&["progress", "view", "--project-dir", dir.to_str().unwrap()]).exits(0).out;
    assert!(seen.contains("M-discovery") && seen.contains("✓ tpm"), "{seen}");
    let shown = cycle.scratch.gatewright(&["status", &cycle.run]).out;
    assert!(shown.contains("✓ tpm") && shown.contains("? g1"), "{shown}");
}

#[test]
fn s3_42_the_plan_of_progress_begins_with_the_tpm_and_is_refined_by_the_planner() {
    let touch = "database_designer) mkdir -p \"$GATEWRIGHT_RUN_DIR/progress\" && echo '{}' > \"$GATEWRIGHT_RUN_DIR/progress/plan.json\"; schema; fine;;";
    let cycle = Cycle::planned("", touch, &[]);
    assert!(!cycle.scratch.home().join("seen/tpm.1.plan.json").exists(), "not before the TPM");
    let build = |plan: &serde_json::Value| {
        plan["milestones"].as_array().unwrap().iter().find(|one| one["id"] == "M-build").unwrap()["subtasks"]
            .clone()
    };
    assert_eq!(build(&cycle.seen("domain_expert", "plan")), serde_json::json!([]));
    let refined = cycle.json("progress/plan.json");
    assert_eq!(build(&refined)[0]["fr_ids"], serde_json::json!(["FR-001"]), "{refined:#}");
}

#[test]
fn s3_47_agents_are_quiet_and_do_not_view() {
    let cases = format!(
        "tpm) spec; {CALL} update --project-dir \"$GATEWRIGHT_RUN_DIR\" --agent tpm --milestone M-discovery --status started --quiet > \"$HOME/printed\"; {CALL} view --project-dir \"$GATEWRIGHT_RUN_DIR\" > \"$HOME/view\" 2>&1; echo $? >> \"$HOME/view\"; fine;;"
    );
    let cycle = Cycle::starts(&cases, &[], 10);
    let read = |name: &str| std::fs::read_to_string(cycle.scratch.home().join(name)).unwrap();
    assert_eq!(read("printed"), "");
    assert!(read("view").contains("do not view it") && read("view").ends_with("4\n"), "{}", read("view"));
    assert!(cycle.scratch.prompt("tpm", 1).contains("you never call `progress view`"));
}
