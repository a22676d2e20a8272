//! Streams from the plan: order, scope, steps inside, the validator.

use super::cycle::{Cycle, plan};

const BACKEND: &str = "software_engineer_backend";
const FRONTEND: &str = "software_engineer_frontend";

#[test]
fn s3_05_streams_run_by_their_groups_each_with_its_requirements() {
    let three = plan(
        &[("WS-1", BACKEND, &[]), ("WS-2", FRONTEND, &[]), ("WS-3", BACKEND, &["WS-1", "WS-2"])],
        &[&["WS-1", "WS-2"], &["WS-3"]],
    );
    let both = "streams/WS-1/backend) mark one; await two; standard;;\nstreams/WS-2/frontend) mark two; await one; standard;;";
    let cycle = Cycle::built(&three, both, 10);
    assert!(cycle.place("streams/WS-1/test") < cycle.place("streams/WS-3/backend"));
    assert!(cycle.place("streams/WS-2/test") < cycle.place("streams/WS-3/backend"));
    let prompt = cycle.scratch.prompt("streams/WS-3/backend", 1);
    assert!(prompt.contains("Its requirements are your scope: FR-003. Nothing else is."), "{prompt}");
    let wrong = plan(&[("WS-1", BACKEND, &["WS-2"]), ("WS-2", BACKEND, &[])], &[&["WS-1", "WS-2"]]);
    let cycle = Cycle::refused(&wrong);
    assert_eq!(cycle.scratch.count("impl_planner"), 2, "groups and dependencies disagree");
    assert!(cycle.scratch.prompt("impl_planner", 2).contains("not in an earlier parallelism group"));
    // A group that follows another one for no reason would not be worked off after it.
    let idle = plan(&[("WS-1", BACKEND, &[]), ("WS-2", BACKEND, &[])], &[&["WS-1"], &["WS-2"]]);
    let cycle = Cycle::refused(&idle);
    let told = cycle.scratch.prompt("impl_planner", 2);
    assert!(told.contains("WS-2 is in parallelism group 2 and waits for nobody in group 1"), "{told}");
}

#[test]
fn s3_17_a_partial_stream_hands_on_and_is_said_to_be_partial() {
    let half = "streams/WS-1/backend) work; se WS-1/se_multi_output.json; say partial 'One of two.';;";
    let cycle = Cycle::built("", half, 10);
    assert_eq!(cycle.scratch.count("streams/WS-1/test"), 1, "{:?}", cycle.scratch.called());
    assert_eq!(cycle.json("WS-1_completion.json")["status"], "partial");
    let told = cycle.scratch.prompt("streams/WS-1/test", 1);
    assert!(told.contains("\"status\": \"partial\""), "{told}");
    assert_eq!(Cycle::built("", "", 10).json("WS-1_completion.json")["status"], "complete");
}

#[test]
fn s3_06_a_frontend_waits_for_the_contract_and_a_backend_for_its_schema() {
    let coupled = plan(&[("WS-1", BACKEND, &[]), ("WS-2", FRONTEND, &["WS-1"])], &[&["WS-1"], &["WS-2"]]);
    let cycle = Cycle::refused(&coupled);
    assert!(cycle.scratch.prompt("impl_planner", 2).contains("let it wait for the API contract"));
    let early = plan(&[("WS-1", "database_designer", &[]), ("WS-2", BACKEND, &[])], &[&["WS-1", "WS-2"]]);
    let cycle = Cycle::refused(&early);
    assert!(cycle.scratch.prompt("impl_planner", 2).contains("does not wait for the schema stream WS-1"));
    let apart = plan(&[("WS-1", BACKEND, &[]), ("WS-2", FRONTEND, &[])], &[&["WS-1", "WS-2"]]);
    let slow = "streams/WS-1/backend) await frontend-tested; standard;;\nstreams/WS-2/test) mark frontend-tested; standard;;";
    let cycle = Cycle::built(&apart, slow, 10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams"), "passed");
    assert!(cycle.inputs("streams/WS-2/frontend").contains(&"api_spec.yaml".to_owned()));
}

#[test]
fn s3_09_a_stream_implements_commits_tests_commits_and_completes() {
    let cycle = Cycle::built("", "", 10);
    let branch = format!("gatewright/{}/_run", cycle.run);
    let log = cycle.scratch.git_says(&[
        "log",
        "--reverse",
        "--no-merges",
        "--format=%s",
        &format!("main..{branch}"),
    ]);
    let subjects: Vec<&str> = log.lines().filter(|line| line.starts_with("streams/")).collect();
    assert_eq!(subjects.len(), 2, "{log}");
    assert!(
        subjects[0].starts_with("streams/WS-1/backend") && subjects[1].starts_with("streams/WS-1/test"),
        "{log}"
    );
    let completion = cycle.json("WS-1_completion.json");
    let names: Vec<&str> =
        completion["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["se", "commit_implementation", "test", "commit_tests", "se_verification"]);
    let files = completion["files_modified"].to_string();
    assert!(files.contains("src/WS-1.txt") && files.contains("tests/WS-1.test.txt"), "{files}");
    assert_eq!(
        (&completion["status"], &completion["se_independently_verified"]),
        (&"complete".into(), &true.into())
    );
}

#[test]
fn s3_10_j_26_what_a_stream_deleted_is_seen_since_it_began() {
    let deletes = "streams/WS-1/backend) rm src/a.txt; standard;;";
    let cycle = Cycle::built("", deletes, 10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "passed");
    let files = cycle.json("WS-1_completion.json")["files_modified"].to_string();
    assert!(files.contains("src/a.txt") && files.contains("tests/WS-1.test.txt"), "{files}");
    assert_eq!(cycle.scratch.step_state(&cycle.run, "g4"), "waiting");
}

#[test]
fn s3_10_after_each_stream_the_validator_runs_and_its_number_decides() {
    // Builds for its engineers, and no longer when the stream is committed and validated.
    let tester = "streams/WS-1/test) mkdir -p tests; echo $GATEWRIGHT_ATTEMPT > tests/WS-1.test.txt; fine;;";
    let cycle = Cycle::planned("", tester, &["--set", "build=test -n \"$(git status --porcelain)\""]);
    cycle.answer("G3", "go ahead", 10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "waiting");
    let asked = cycle.scratch.decision(&cycle.run, "D-1");
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("(build)") && question.contains("exited with 3"), "{question}");
    for way in ["different-approach", "skip-stream", "stop"] {
        assert!(asked["answers"].to_string().contains(way), "{way}");
    }
    assert_eq!(cycle.scratch.count("review"), 0);
    // Another approach is the engineer's, who is told what the validator said; not the same check of the same work.
    cycle.answer("D-1", "different-approach", 10);
    let called = |step: &str| cycle.scratch.count(step);
    assert_eq!((called("streams/WS-1/backend"), called("streams/WS-1/test")), (2, 2));
    assert!(cycle.scratch.prompt("streams/WS-1/backend", 2).contains("exited with 3"));
}

#[test]
fn s3_07_s3_14_without_a_sandbox_nobody_is_accused_of_what_the_engine_publishes() {
    let scratch = Cycle::project(
        "designer) await planning; standard;;\nimpl_planner) mark planning; await published; standard;;",
    );
    let off = |scratch: &crate::support::Scratch| {
        std::fs::write(scratch.home().join(".config/gatewright/config.yaml"), "sandbox: off\n").unwrap();
    };
    off(&scratch);
    let cycle = Cycle::of(scratch, "stream-dag", &["--profile", "fullstack"], 10);
    let engine = cycle.scratch.start(&["answer", &cycle.run, "G1", "approved"]);
    crate::support::wait_for("the design is published while the planner works", || {
        cycle.scratch.published(&cycle.run, "design.md")
    });
    cycle.scratch.mark("published");
    engine.ended().exits(10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "g2"), "waiting");
    assert_eq!(cycle.scratch.count("impl_planner"), 1);
    assert!(cycle.scratch.events_of(&cycle.run, "intrusion.noticed").is_empty());
    // Somebody else's change of the checkout is seen as before.
    let scratch =
        Cycle::project("domain_expert) echo stray > \"$(cat \"$HOME/root\")/stray.txt\"; standard;;");
    off(&scratch);
    std::fs::write(scratch.home().join("root"), scratch.root().to_str().unwrap()).unwrap();
    let cycle = Cycle::of(scratch, "stream-dag", &[], 10);
    let seen = cycle.scratch.events_of(&cycle.run, "intrusion.noticed");
    assert!(seen.iter().any(|one| one.to_string().contains("stray.txt")), "{seen:?}");
    assert!(!seen.iter().any(|one| one.to_string().contains("spec.md")), "{seen:?}");
}

#[test]
fn s3_12_whoever_claims_what_is_not_there_is_relaunched_with_what_is_missing() {
    let claims = "se WS-1/se_multi_output.json; fine";
    for (first, missing) in [
        (claims, "no file was modified"),
        ("work -other; se WS-1/se_multi_output.json; fine", "`src/WS-1.txt`"),
    ] {
        let cases = format!(
            "streams/WS-1/backend) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then {first}; else standard; fi;;"
        );
        let cycle = Cycle::built("", &cases, 10);
        assert_eq!(cycle.scratch.count("streams/WS-1/backend"), 2);
        let told = cycle.scratch.prompt("streams/WS-1/backend", 2);
        assert!(told.contains("RETRY 2/2") && told.contains("(reality)") && told.contains(missing), "{told}");
        assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "passed");
    }
    // What the tests break is for who wrote them.
    let breaks = "streams/WS-1/test) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then standard; else git clean -fdq tests; mkdir -p tests; echo t > tests/other.test.txt; fine; fi;;";
    let cycle = Cycle::planned("", breaks, &["--set", "build=test ! -e tests/WS-1.test.txt"]);
    cycle.answer("G3", "go ahead", 10);
    assert!(cycle.scratch.prompt("streams/WS-1/test", 2).contains("RETRY 2/2"));
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "passed");
}

#[test]
fn a_stream_that_was_left_out_is_not_said_to_be_completed() {
    let cycle = Cycle::planned("", "streams/WS-1/backend) exit 3;;", &[]);
    cycle.answer("G3", "go ahead", 10);
    let _ = cycle.scratch.gatewright(&["answer", &cycle.run, "D-1", "skip-stream"]);
    let plan = cycle.json("progress/plan.json");
    let built = plan["milestones"].as_array().unwrap().iter().find(|one| one["id"] == "M-build").unwrap();
    assert_eq!(built["subtasks"][0]["status"], "skipped", "{built}");
    let file = cycle.json("progress/software_engineer_backend-WS-1.json");
    let last = file["updates"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&file["status"], &last["status"]), (&"failed".into(), &"failed".into()), "{file:#}");
    assert!(last["error"].is_string(), "{file:#}");
    let told = cycle.scratch.prompt("review", 1);
    assert!(told.contains("WS-1 was left out by a person"), "{told}");
    assert!(!told.contains("WS-1/se_multi_output.json"), "{told}");
    let asked = cycle.scratch.decision(&cycle.run, "G4")["question"].as_str().unwrap().to_owned();
    assert!(asked.contains("Left out: streams/WS-1/backend"), "{asked}");
}

#[test]
fn s3_06_schemas_and_apis_may_be_streams_of_their_own() {
    let streams = plan(
        &[("WS-1", "schema-designer", &[]), ("WS-2", BACKEND, &["WS-1"]), ("WS-3", "api-designer", &[])],
        &[&["WS-1", "WS-3"], &["WS-2"]],
    );
    let cycle = Cycle::built(&streams, "", 10);
    assert!(cycle.place("streams/WS-1/schema") < cycle.place("streams/WS-2/backend"));
    for stream in ["WS-1", "WS-2", "WS-3"] {
        assert_eq!(cycle.json(&format!("{stream}_completion.json"))["status"], "complete", "{stream}");
    }
    let branch = format!("gatewright/{}/_run", cycle.run);
    let files = cycle.scratch.git_says(&["ls-tree", "-r", "--name-only", &branch]);
    assert!(files.contains("db/migrations/WS-1.sql") && files.contains("docs/openapi.yaml"), "{files}");
}

#[test]
fn j_28_streams_that_wait_for_each_other_go_back_to_the_planner_before_anybody_is_asked() {
    let circle = plan(&[("WS-1", BACKEND, &["WS-2"]), ("WS-2", BACKEND, &["WS-1"])], &[&["WS-1"], &["WS-2"]]);
    let cycle = Cycle::refused(&circle);
    assert_eq!(cycle.scratch.count("impl_planner"), 2);
    let told = cycle.scratch.prompt("impl_planner", 2);
    assert!(told.contains("WS-1") && told.contains("WS-2") && told.contains("wait"), "{told}");
    assert_eq!(cycle.scratch.count("api_designer"), 0);
}

#[test]
fn s3_05_a_gate_that_the_plan_has_behind_a_group_is_a_persons_to_open() {
    let two = plan(&[("WS-1", BACKEND, &[]), ("WS-2", BACKEND, &["WS-1"])], &[&["WS-1"], &["WS-2"]]);
    let gated = two.replace("\"streams\":[\"WS-1\"]", "\"streams\":[\"WS-1\"],\"gate_after\":\"contract\"");
    let last = gated.replace("\"streams\":[\"WS-2\"]", "\"streams\":[\"WS-2\"],\"gate_after\":\"G4\"");
    let cycle = Cycle::built(&last, "", 10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "passed");
    assert_eq!(cycle.scratch.count("streams/WS-2/backend"), 0, "nothing begins before the gate is open");
    let asked = cycle.scratch.decision(&cycle.run, "streams/WS-2/gate");
    assert!(asked["question"].as_str().unwrap().contains("contract"), "{asked}");
    cycle.answer("streams/WS-2/gate", "okay", 4);
    cycle.answer("streams/WS-2/gate", "go ahead", 10);
    assert_eq!(cycle.scratch.count("streams/WS-2/test"), 1);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "g4"), "waiting", "the last one is G4 itself");
    cycle
        .validate(&["--progress-check", "--project-dir", cycle.scratch.run_dir(&cycle.run).to_str().unwrap()])
        .exits(0);
    // Without one nobody is asked.
    let cycle = Cycle::built(&two, "", 10);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-2/gate"), "skipped");
    assert_eq!(cycle.scratch.count("streams/WS-2/test"), 1);
}

#[test]
fn s3_05_a_gate_behind_a_group_is_asked_once_for_all_streams_behind_it() {
    let three = plan(
        &[("WS-1", BACKEND, &[]), ("WS-2", BACKEND, &["WS-1"]), ("WS-3", BACKEND, &["WS-1"])],
        &[&["WS-1"], &["WS-2", "WS-3"]],
    );
    let gated = three.replace("\"streams\":[\"WS-1\"]", "\"streams\":[\"WS-1\"],\"gate_after\":\"contract\"");
    let pending = |cycle: &Cycle| -> Vec<String> {
        let status = cycle.scratch.status(&cycle.run);
        let open = status["decisions"].as_array().unwrap().iter().filter(|one| one["status"] == "pending");
        open.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let cycle = Cycle::built(&gated, "", 10);
    assert_eq!(pending(&cycle), ["streams/WS-2/gate"]);
    let asked = cycle.scratch.decision(&cycle.run, "streams/WS-2/gate");
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("(WS-1)") && question.contains("(WS-2, WS-3)"), "{question}");
    let why = cycle.scratch.gatewright(&["why", &cycle.run, "streams/WS-3/gate"]);
    assert!(why.out.contains("the same question"), "{}", why.out);
    // One answer for both.
    cycle.answer("streams/WS-2/gate", "go ahead", 10);
    assert_eq!(pending(&cycle), ["G4"]);
    assert_eq!(cycle.scratch.decision(&cycle.run, "streams/WS-3/gate")["answer"], "approved");
    assert_eq!((cycle.scratch.count("streams/WS-2/test"), cycle.scratch.count("streams/WS-3/test")), (1, 1));
    // Who says stop is not asked for every stream either, and after `resume` once more.
    let cycle = Cycle::built(&gated, "", 10);
    cycle.answer("streams/WS-2/gate", "stop", 11);
    assert_eq!(pending(&cycle), Vec::<String>::new());
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-3/gate"), "blocked");
    cycle.scratch.gatewright(&["resume", &cycle.run]).exits(10);
    assert_eq!(pending(&cycle), ["streams/WS-2/gate"]);
    cycle.answer("streams/WS-2/gate", "yes", 10);
    assert_eq!(pending(&cycle), ["G4"]);
}

#[test]
fn s3_05_what_comes_behind_a_gate_waits_for_all_before_it() {
    let loose = plan(
        &[("WS-1", BACKEND, &[]), ("WS-2", BACKEND, &[]), ("WS-3", BACKEND, &["WS-1"])],
        &[&["WS-1", "WS-2"], &["WS-3"]],
    );
    let gated = loose.replace("[\"WS-1\",\"WS-2\"]", "[\"WS-1\",\"WS-2\"],\"gate_after\":\"look\"");
    let told = Cycle::refused(&gated).scratch.prompt("impl_planner", 2);
    assert!(told.contains("has the gate `look` behind it, and WS-3 does not wait for WS-2"), "{told}");
}

#[test]
fn s3_07_s3_14_a_stream_begins_as_soon_as_its_own_dependencies_are_through() {
    let three = plan(
        &[("WS-1", BACKEND, &[]), ("WS-2", BACKEND, &[]), ("WS-3", BACKEND, &["WS-1"])],
        &[&["WS-1", "WS-2"], &["WS-3"]],
    );
    // The second stream ends only when the third, which waits for the first alone, has begun.
    let slow = "streams/WS-2/backend) await third; standard;;\nstreams/WS-3/backend) mark third; standard;;";
    let cycle = Cycle::built(&three, slow, 10);
    assert!(cycle.place("streams/WS-3/backend") < cycle.place("streams/WS-2/test"));
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams"), "passed");
}

#[test]
fn s3_11_each_class_of_failure_has_its_own_words_for_who_tries_again() {
    let twice = |first: &str, more: &[&str]| {
        let cases = format!(
            "streams/WS-1/backend) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then {first}; else touch src/mended; standard; fi;;"
        );
        let cycle = Cycle::planned("", &cases, more);
        cycle.answer("G3", "go ahead", 10);
        assert_eq!(cycle.scratch.count("streams/WS-1/backend"), 2);
        cycle.scratch.prompt("streams/WS-1/backend", 2)
    };
    let told = twice("work; echo '{\"metadata\": {}}' | out WS-1/se_multi_output.json; fine", &[]);
    assert!(
        told.contains("RETRY 2/2") && told.contains("files_changed"),
        "schema: the fields that must be there: {told}"
    );
    let told =
        twice("standard", &["--set", "build=test -e src/mended || { echo cannot find Sesion >&2; exit 1; }"]);
    assert!(told.contains("(build)") && told.contains("cannot find Sesion"), "build: what it said: {told}");
}

#[test]
fn s3_13_who_hangs_is_ended_and_somebody_else_goes_on() {
    let hangs = "streams/WS-1/backend) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then exec sleep 600; fi; standard;;";
    let short = ["--set", "steps.streams/backend.timeout=20s", "--set", "steps.streams/backend.extension=1s"];
    let cycle = Cycle::planned("", hangs, &short);
    cycle.answer("G3", "go ahead", 10);
    assert_eq!(cycle.scratch.count("streams/WS-1/backend"), 2);
    assert_eq!(cycle.scratch.step_state(&cycle.run, "streams/WS-1/completion"), "passed");
    assert!(cycle.scratch.prompt("streams/WS-1/backend", 2).contains("RETRY 2/2"));
    // As shipped: an hour, and five minutes more for who still speaks. The graph says what holds.
    let cycle = Cycle::planned("", "", &[]);
    let nodes = cycle.json("execution_dag.json")["nodes"].as_array().unwrap().clone();
    let node = |id: &str| nodes.iter().find(|node| node["id"] == id).unwrap().clone();
    assert_eq!((&node("tpm")["timeout_minutes"], &node("tpm")["max_attempts"]), (&120.into(), &2.into()));
    assert_eq!(node("together")["max_attempts"], 10);
    cycle.answer("G3", "go ahead", 10);
    let nodes = cycle.json("execution_dag.json")["nodes"].as_array().unwrap().clone();
    let node = |id: &str| nodes.iter().find(|node| node["id"] == id).unwrap().clone();
    assert_eq!(node("streams/WS-1/backend")["timeout_minutes"], 60);
    assert_eq!(node("streams/WS-1/completion")["max_attempts"], 1);
    let shipped = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../methods/stream-dag/workflow.yaml"
    ))
    .unwrap();
    assert_eq!(shipped.matches("            timeout: 60m\n            extension: 5m\n").count(), 6);
}
