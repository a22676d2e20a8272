//! Where settings come from: the defaults, the files of the tool, the configuration.

use serde_json::Value;

use super::schedule::Schedule;
use crate::support::Scratch;

const FILE: &str = ".claude/subagents-config.json";

/// The plan that a run is worked off by; the last one of several.
fn frozen(scratch: &Scratch, run: &str) -> Value {
    let entries = std::fs::read_dir(scratch.state_dir(run).join("plans")).unwrap().flatten();
    let plan = entries.max_by_key(|entry| entry.metadata().unwrap().modified().unwrap()).unwrap().path();
    serde_json::from_str(&std::fs::read_to_string(plan).unwrap()).unwrap()
}

fn users(scratch: &Scratch, text: &str) {
    let path = scratch.home().join(FILE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const STOP: &str = "0-areas) brief ERROR;;";

#[test]
fn s4_30_the_tools_own_files_are_read_the_projects_over_the_users() {
    let scratch = Schedule::project(STOP);
    users(
        &scratch,
        r#"{"defaults": {"blockOnSeverity": "high", "gitWorkflow": "none"}, "retries": {"maxPerStage": 1, "backoffSeconds": [1, 2]}, "stages": {"TEST": {"commands": {"lint": "users", "test": "users"}}}}"#,
    );
    scratch.write(FILE, r#"{"stages": {"TEST": {"commands": {"test": "projects"}}, "FINAL": {"git": {"workflow": "commit"}, "review": {"maxRetries": 0}}, "PLAN": {"review": {"tool": "other"}}}}"#);
    let run = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11).id();
    let settings = frozen(&scratch, &run)["settings"].clone();
    for (name, value) in [
        ("blockOnSeverity", serde_json::json!("high")),
        ("maxPerStage", serde_json::json!(1)),
        ("backoff", serde_json::json!(["1s", "2s"])),
        ("lint", serde_json::json!("users")),
        ("test", serde_json::json!("projects")),
        ("gitWorkflow", serde_json::json!("commit")),
        ("finalMaxRetries", serde_json::json!(0)),
        ("planReviewTool", serde_json::json!("other")),
        ("exploreAgents", serde_json::json!(10)),
    ] {
        assert_eq!(settings[name], value, "{name}: {settings:#}");
    }
    // Our own configuration is over both, and a flag over everything.
    let config = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    scratch.write(".gatewright/config.yaml", &format!("{config}settings: {{ test: ours, lint: ours }}\n"));
    let flags = ["run", "staged-schedule", "x", "--agent", "mine", "--set", "lint=now"];
    let run = scratch.gatewright(&flags).exits(11).id();
    let settings = frozen(&scratch, &run)["settings"].clone();
    assert_eq!((settings["test"].as_str(), settings["lint"].as_str()), (Some("ours"), Some("now")));
}

#[test]
fn s4_30_what_a_file_of_the_tool_cannot_mean_is_named_and_not_used() {
    let scratch = Schedule::project(STOP);
    users(&scratch, r#"{"retries": {"maxPerPhase": 1}}"#);
    scratch.write(FILE, r#"{"stages": {"EXPLORE": {"maxParallelAgents": 11}, "TEST": {"comands": {}}}, "retries": {"maxPerPhase": "often"}}"#);
    let ran = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11);
    for part in [
        FILE,
        "`11` is no value of `stages.EXPLORE.maxParallelAgents`: `10` is used",
        "`often` is no value of `retries.maxPerPhase`: `1` is used",
        "`stages.TEST.comands` is not known here and not used",
        "stages.TEST.commands",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let settings = frozen(&scratch, &ran.id())["settings"].clone();
    assert_eq!((settings["exploreAgents"].as_u64(), settings["maxPerPhase"].as_u64()), (Some(10), Some(1)));
    // Not JSON at all: the file is named, and the run begins with what else is there.
    scratch.write(FILE, "{");
    let ran = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11);
    assert!(ran.err.contains("nothing in `.claude/subagents-config.json` is used"), "{}", ran.err);
}

#[test]
fn s4_30_what_is_said_of_this_workflow_alone_is_held_against_the_same_values() {
    let scratch = Schedule::project(STOP);
    let config = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    let own = "settings: { maxRetries: 1, lint: all }\nworkflows:\n  staged-schedule:\n    settings: { blockOnSeverity: urgent, maxRetries: 2, exploreAgnts: 3 }\n";
    scratch.write(".gatewright/config.yaml", &format!("{config}{own}"));
    let ran = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11);
    for part in [
        "`urgent` is no value of `blockOnSeverity`: `low` is used",
        "the workflow has no setting `exploreAgnts`: it is not used",
        "exploreAgents",
        ".gatewright/config.yaml",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let settings = frozen(&scratch, &ran.id())["settings"].clone();
    assert_eq!(settings["blockOnSeverity"], "low");
    assert_eq!(settings["maxRetries"], 2, "of this workflow before of all");
    assert_eq!(settings["lint"], "all");
}

#[test]
fn s4_28_a_stage_that_the_tools_file_switches_off_is_skipped() {
    let scratch = Schedule::project("4.1-docs) brief ERROR;;");
    scratch.write(FILE, r#"{"stages": {"TEST": {"enabled": false}}}"#);
    let schedule = Schedule::start(scratch, &[], 11);
    assert_eq!(schedule.scratch.count("3.3-test-review"), 0);
    let state = schedule.state();
    assert_eq!(
        (&state["stages"]["TEST"]["status"], &state["stages"]["TEST"]["enabled"]),
        (&"skipped".into(), &false.into())
    );
    assert!(
        state["gates"]["IMPLEMENT->FINAL"].is_object() && state["gates"]["TEST->FINAL"].is_null(),
        "{state:#}"
    );
}

/// All but one stage, up to the end: what state.json has between those that are left.
#[test]
fn s4_28_every_stage_can_be_switched_off_and_the_others_are_worked_off() {
    let [plan, implement, end] = [
        ["EXPLORE->PLAN", "PLAN->IMPLEMENT"],
        ["PLAN->IMPLEMENT", "IMPLEMENT->TEST"],
        ["TEST->FINAL", "FINAL->COMPLETE"],
    ];
    for (off, gates) in [
        ("EXPLORE", [&implement[..], &end].concat()),
        ("PLAN", [&["EXPLORE->IMPLEMENT", "IMPLEMENT->TEST"][..], &end].concat()),
        ("IMPLEMENT", [&["EXPLORE->PLAN", "PLAN->TEST"][..], &end].concat()),
        ("FINAL", [&plan[..], &implement[1..]].concat()),
    ] {
        let scratch = Schedule::project("");
        scratch.write(FILE, &format!(r#"{{"stages": {{"{off}": {{"enabled": false}}}}}}"#));
        let schedule = Schedule::start(scratch, &["--set", "gitWorkflow=none"], 0);
        let state = schedule.state();
        for (phase, stage) in super::schedule::PHASES {
            let status = if stage == off { "skipped" } else { "completed" };
            assert_eq!(state["stages"][stage]["status"], status, "without {off}: {state:#}");
            assert_eq!(state["stages"][stage]["phases"][phase]["status"], status, "without {off}: {phase}");
        }
        let found: Vec<&String> = state["gates"].as_object().unwrap().keys().collect();
        assert_eq!(found, gates, "without {off}");
        if off == "PLAN" {
            assert_eq!(schedule.scratch.count("2.1-waves/request/medium"), 1, "the request is the task");
            let told = schedule.scratch.prompt("2.1-waves/request/medium", 1);
            assert!(told.contains("\"instructions\": \"End other sessions\""), "{told}");
            let plan = schedule.scratch.published(&schedule.run, "phases/1.2-plan.md").unwrap();
            assert!(plan.contains("End other sessions") && plan.contains("phases/0-explore.md"), "{plan}");
        }
    }
}

#[test]
fn s4_33_a_task_has_ten_minutes() {
    let scratch = Schedule::project(STOP);
    let run = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11).id();
    let steps = frozen(&scratch, &run)["steps"]["default"].clone();
    for task in ["easy", "medium", "hard"] {
        assert_eq!(steps[format!("2.1-waves/*/{task}")]["timeout_ms"], 600_000, "{task}");
    }
}

#[test]
fn s4_30_a_changed_file_is_taken_when_the_run_goes_on_with_it() {
    let scratch = Schedule::project(STOP);
    scratch.write(FILE, r#"{"retries": {"maxPerStage": 1}}"#);
    let run = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11).id();
    scratch.write(FILE, r#"{"retries": {"maxPerStage": 2}}"#);
    scratch.gatewright(&["resume", &run]).exits(11);
    assert_eq!(frozen(&scratch, &run)["settings"]["maxPerStage"], 1, "frozen with the plan");
    scratch.gatewright(&["resume", &run, "--adopt"]).exits(11);
    assert_eq!(frozen(&scratch, &run)["settings"]["maxPerStage"], 2);
}

#[test]
fn s4_30_what_the_tools_file_excludes_is_never_committed() {
    let cases = "2.1-waves/*) mkdir -p drafts; echo d > drafts/a.md; echo l > src/run.log; echo changed > src/a.txt; echo x > \"src/$item.txt\"; did;;\n2.2-simplify) echo l > src/again.log; standard;;";
    let scratch = Schedule::project(cases);
    scratch.write(FILE, r#"{"stages": {"FINAL": {"git": {"workflow": "commit", "excludePatterns": [".agents/**", "*.log", "drafts/**", "src/a.txt"]}}}}"#);
    let before = scratch.git_says(&["rev-parse", "main:src/a.txt"]);
    let schedule = Schedule::start(scratch, &[], 0);
    let files = schedule.scratch.git_says(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(files.contains("src/one.txt"), "{files}");
    assert!(!files.contains("drafts") && !files.contains(".log"), "{files}");
    assert_eq!(
        schedule.scratch.git_says(&["rev-parse", "main:src/a.txt"]),
        before,
        "nor a file that git knows"
    );
    // Without the setting they are work like any other.
    let scratch = Schedule::project(cases);
    scratch.write(FILE, r#"{"stages": {"FINAL": {"git": {"workflow": "commit"}}}}"#);
    let schedule = Schedule::start(scratch, &[], 0);
    let files = schedule.scratch.git_says(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(files.contains("drafts/a.md") && files.contains("src/run.log"), "{files}");
}
