//! Where a run may begin, and how it ends.

use super::schedule::Schedule;
use crate::support::Scratch;

#[test]
fn s4_31_a_run_begins_later_only_with_what_the_stage_needs() {
    // A plan from elsewhere.
    let scratch = Schedule::project("2.2-simplify) brief ERROR;;");
    let external = ["--profile", "external-plan", "--set", "plan=docs/plan.md"];
    let schedule = Schedule::start(scratch, &external, 11);
    assert_eq!(schedule.scratch.calls().len(), 0, "nobody starts without it");
    assert!(schedule.scratch.blocked_by(&schedule.run).1.contains("docs/plan.md"));
    schedule.scratch.write("docs/plan.md", "# Plan\n- end them\n");
    schedule.scratch.gatewright(&["resume", &schedule.run]).exits(11);
    assert_eq!(
        schedule.scratch.called(),
        ["1.2-plan", "1.3-plan-review", "2.1-waves/one/easy", "2.2-simplify"]
    );
    assert!(schedule.inputs("1.2-plan", 1).contains("1.2-external-plan.md"));
    // A later stage, from what an earlier run left.
    let schedule = Schedule::runs(&["--set", "gitWorkflow=commit"], "", 0);
    let earlier = schedule.scratch.root().join("earlier");
    std::fs::rename(schedule.scratch.run_dir(&schedule.run).join("phases"), &earlier).unwrap();
    let from = ["--profile", "from-test", "--set", "from=earlier", "--set", "gitWorkflow=none"];
    let before = schedule.scratch.calls().len();
    let later = Schedule::start(schedule.scratch, &from, 0);
    assert_eq!(later.scratch.called()[before..], ["3.3-test-review", "4.1-docs", "4.2-final-review"]);
    assert_eq!(later.state()["stages"]["IMPLEMENT"]["status"], "skipped");
    // A review that did not approve is none.
    let review = earlier.join("2.3-impl-review.json");
    let text = std::fs::read_to_string(&review).unwrap().replace("approved", "needs_revision");
    std::fs::write(&review, text).unwrap();
    let refused = Schedule::start(later.scratch, &from, 11);
    assert!(refused.scratch.blocked_by(&refused.run).1.contains("2.3-impl-review.json"));
}

#[test]
fn s4_31_every_stage_can_be_the_first_with_what_an_earlier_run_left() {
    let schedule = Schedule::runs(&["--set", "gitWorkflow=commit"], "", 0);
    let earlier = schedule.scratch.root().join("earlier");
    std::fs::rename(schedule.scratch.run_dir(&schedule.run).join("phases"), &earlier).unwrap();
    let mut scratch = schedule.scratch;
    for (profile, until, needs, called) in [
        (
            "from-plan",
            "PLAN",
            "0-explore.md",
            &[
                "1.1-brainstorm",
                "1.2-planners/page/plan",
                "1.2-planners/store/plan",
                "1.2-plan",
                "1.3-plan-review",
            ][..],
        ),
        (
            "from-implement",
            "IMPLEMENT",
            "1.2-plan.json",
            &["2.1-waves/one/easy", "2.2-simplify", "2.3-impl-review"],
        ),
        ("from-final", "FINAL", "3.1-test-results.json", &["4.1-docs", "4.2-final-review"]),
    ] {
        let from =
            ["--profile", profile, "--set", "from=earlier", "--set", "gitWorkflow=none", "--until", until];
        // Nobody starts while a file is missing.
        let (there, away) = (earlier.join(needs), earlier.join("away"));
        std::fs::rename(&there, &away).unwrap();
        let before = scratch.calls().len();
        let refused = Schedule::start(scratch, &from, 11);
        assert!(refused.scratch.blocked_by(&refused.run).1.contains(needs), "{profile}");
        assert_eq!(refused.scratch.calls().len(), before, "{profile}");
        refused.scratch.gatewright(&["abort", &refused.run]).exits(0);
        std::fs::rename(&away, &there).unwrap();
        let code = if until == "FINAL" { 0 } else { 12 };
        let begun = Schedule::start(refused.scratch, &from, code);
        let mut found = begun.scratch.called()[before..].to_vec();
        // Planners plan at the same time.
        if let Some(planners) = found.get_mut(1..3).filter(|_| profile == "from-plan") {
            planners.sort();
        }
        assert_eq!(found, called, "{profile}");
        begun.scratch.gatewright(&["abort", &begun.run]);
        scratch = begun.scratch;
    }
}

#[test]
fn s4_24_a_delivery_that_fails_is_a_persons_and_nothing_is_completed() {
    let scratch = Schedule::project("");
    let config = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    let command = "pull_request: { command: \"test -e $HOME/online\" }\n";
    scratch.write(".gatewright/config.yaml", &format!("{config}{command}"));
    let schedule = Schedule::start(scratch, &[], 10);
    let asked = schedule.scratch.decision(&schedule.run, "D-1")["answers"].to_string();
    for way in ["retry", "restart-stage", "restart-previous", "skip", "abort"] {
        assert!(asked.contains(&format!("\"{way}\"")), "{way}: {asked}");
    }
    let state = schedule.state();
    assert_eq!(
        (&state["currentPhase"], &state["status"]),
        (&"4.3".into(), &"in_progress".into()),
        "{state:#}"
    );
    schedule.scratch.mark("online");
    schedule.answer("D-1", "retry", 0);
    assert_eq!(schedule.state()["status"], "completed");
}

#[test]
fn s4_17_a_branch_becomes_a_pull_request_by_the_configured_command() {
    let scratch = Schedule::project("");
    let config = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    let command = "pull_request: { command: \"printf '%s|%s' {branch} {base} > $HOME/asked\" }\n";
    scratch.write(".gatewright/config.yaml", &format!("{config}{command}"));
    let schedule = Schedule::start(scratch, &[], 0);
    let asked = std::fs::read_to_string(schedule.scratch.home().join("asked")).unwrap();
    assert_eq!(asked, format!("gatewright/{}/_run|main", schedule.run));
    for (step, state) in [("4.3-pull-request", "passed"), ("4.3-keep", "skipped"), ("4.3-commit", "skipped")]
    {
        assert_eq!(schedule.scratch.step_state(&schedule.run, step), state, "{step}");
    }
    assert!(!schedule.scratch.root().join("src/one.txt").exists(), "your branch stays as it is");
    let files =
        schedule.scratch.git_says(&["ls-tree", "-r", "--name-only", asked.split('|').next().unwrap()]);
    assert!(files.contains("src/one.txt") && !files.contains(".agents"), "{files}");
    assert_eq!(schedule.state()["stages"]["FINAL"]["phases"]["4.3"]["status"], "completed");
}

#[test]
fn s4_30_the_projects_configuration_is_over_the_users() {
    let scratch = Schedule::project("0-areas) brief ERROR;;");
    let config = scratch.home().join(".config/gatewright/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}settings: {{ test: users, blockOnSeverity: high }}\n")).unwrap();
    let project = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    scratch.write(".gatewright/config.yaml", &format!("{project}settings: {{ test: projects }}\n"));
    let run = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11).id();
    let frozen = frozen(&scratch, &run);
    assert_eq!(frozen["settings"]["test"], "projects");
    assert_eq!(frozen["settings"]["blockOnSeverity"], "high");
    assert_eq!(frozen["settings"]["lint"], "make lint");
}

#[test]
fn s4_30_a_value_that_cannot_be_is_named_and_the_default_is_used() {
    let scratch = Schedule::project("0-areas) brief ERROR;;");
    let project = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    let settings = "settings: { blockOnSeverity: urgent, exploreAgents: 11, maxRetries: 2 }\n";
    scratch.write(".gatewright/config.yaml", &format!("{project}{settings}"));
    let ran = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11);
    for part in [
        "warning",
        ".gatewright/config.yaml",
        "`urgent` is no value of `blockOnSeverity`: `low` is used",
        "`11` is no value of `exploreAgents`: `10` is used",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let frozen = frozen(&scratch, &ran.id());
    assert_eq!(frozen["settings"]["blockOnSeverity"], "low");
    assert_eq!(frozen["settings"]["exploreAgents"], 10);
    assert_eq!(frozen["settings"]["maxRetries"], 2);
    // Who says it now is told at once.
    let ran =
        scratch.gatewright(&["run", "staged-schedule", "x", "--set", "blockOnSeverity=urgent"]).exits(3);
    assert!(ran.err.contains("`urgent` is no value of `blockOnSeverity`"), "{}", ran.err);
}

/// The plan that a run is worked off by.
fn frozen(scratch: &Scratch, run: &str) -> serde_json::Value {
    let plans = scratch.state_dir(run).join("plans");
    let plan = std::fs::read_dir(plans).unwrap().flatten().next().unwrap().path();
    serde_json::from_str(&std::fs::read_to_string(plan).unwrap()).unwrap()
}

#[test]
fn s4_21_the_last_failure_is_on_record_with_its_class() {
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], "0-areas) echo nonsense;;", 10);
    let state = schedule.state();
    assert_eq!(state["failure"]["class"], "malformed", "{state:#}");
    assert_eq!(state["failure"]["phase"], "0", "{state:#}");
    assert!(state["failure"]["error"].as_str().unwrap().contains("no_outcome"), "{state:#}");
    // Who tries again on a person's word is told of it too.
    schedule.scratch.gatewright(&["answer", &schedule.run, "D-1", "retry"]).exits(10);
    let told = schedule.scratch.prompt("0-areas", 2);
    assert!(told.contains("no_outcome"), "{told}");
}

#[test]
fn s4_35_what_an_earlier_run_left_in_the_same_folder_is_not_read_as_if_it_were_of_this_one() {
    let flags = ["--set", "gitWorkflow=none"];
    let first = Schedule::runs(&flags, "", 0);
    first.scratch.write(".agents/tmp/phases/3.2-analysis.json", "{\"located\": \"test\"}\n");
    let second = Schedule::start(first.scratch, &flags, 0);
    assert!(second.scratch.run_dir(&second.run).ends_with(".agents/tmp"));
    let inputs = second.inputs("3.3-test-review", 1);
    assert!(inputs.contains("3.1-test-results.json") && !inputs.contains("3.2-analysis.json"), "{inputs}");
}

#[test]
fn s4_32_a_stop_lets_the_phase_end_and_the_run_goes_on_after_it() {
    let scratch =
        Schedule::project("1.1-brainstorm) mark there; await go; standard;;\n1.2-plan) brief ERROR;;");
    let engine = scratch.start(&["run", "staged-schedule", "x", "--agent", "mine", "--set", "backoff=1ms"]);
    let run = engine.id();
    scratch.marked("there");
    scratch.gatewright(&["stop", &run]).exits(0);
    scratch.mark("go");
    engine.ended().exits(12);
    let schedule = Schedule { scratch, run };
    let state = schedule.state();
    assert_eq!((&state["status"], state["stoppedAt"].is_string()), (&"stopped".into(), true), "{state:#}");
    assert_eq!(state["stages"]["PLAN"]["phases"]["1.1"]["status"], "completed", "{state:#}");
    assert_eq!(schedule.scratch.count("1.2-planners/store/plan"), 0);
    schedule.scratch.gatewright(&["resume", &schedule.run]).exits(11);
    assert_eq!((schedule.scratch.count("1.1-brainstorm"), schedule.scratch.count("1.2-plan")), (1, 1));
}

#[test]
fn s4_05_s4_34_nobody_but_the_engine_writes_the_state_and_a_torn_one_is_made_whole() {
    let forges = r#"1.1-brainstorm) sed -i 's/"currentPhase": "1.1"/"currentPhase": "4.3"/' "$GATEWRIGHT_RUN_DIR/state.json" 2>/dev/null; standard;;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&[], forges, 11);
    assert_eq!(schedule.scratch.called().last().unwrap(), "2.2-simplify", "every phase came in its turn");
    let whole = schedule.state();
    assert_eq!(whole["currentPhase"], "2.2");
    let path = schedule.scratch.run_dir(&schedule.run).join("state.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    std::fs::write(path.with_extension("json.tmp"), "half").unwrap();
    schedule.scratch.gatewright(&["resume", &schedule.run]).exits(11);
    let state = schedule.state();
    assert_eq!((&state["currentPhase"], &state["stages"]["PLAN"]), (&"2.2".into(), &whole["stages"]["PLAN"]));
}

#[test]
fn s4_31_what_an_earlier_tool_left_need_not_have_our_layout() {
    let schedule = Schedule::runs(&["--set", "gitWorkflow=commit"], "", 0);
    let earlier = schedule.scratch.root().join("earlier");
    std::fs::rename(schedule.scratch.run_dir(&schedule.run).join("phases"), &earlier).unwrap();
    std::fs::write(earlier.join("0-explore.md"), "Sessions are rows.\n").unwrap();
    std::fs::write(earlier.join("1.2-plan.md"), "# Implementation Plan\n\n## Overview\nOne task.\n").unwrap();
    let from = |stage: &str| {
        let flags = ["--profile", stage, "--set", "from=earlier", "--set", "gitWorkflow=none"];
        flags.map(str::to_owned)
    };
    let start = |scratch: Scratch, stage: &str, code: i32| {
        let flags = from(stage);
        Schedule::start(scratch, &flags.each_ref().map(String::as_str), code)
    };
    let planned = start(schedule.scratch, "from-plan", 0);
    assert!(planned.inputs("1.1-brainstorm", 1).contains("0-explore.md"));
    let built = start(planned.scratch, "from-implement", 0);
    assert_eq!(built.state()["stages"]["PLAN"]["status"], "skipped");
    // Tasks are the engine's to start: without them it says what to do.
    std::fs::remove_file(earlier.join("1.2-plan.json")).unwrap();
    let refused = start(built.scratch, "from-implement", 11);
    let said = refused.scratch.blocked_by(&refused.run).1;
    assert!(said.contains("1.2-plan.json") && said.contains("external-plan"), "{said}");
}
