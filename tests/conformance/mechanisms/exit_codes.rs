//! Exit codes, and what stands on stdout.

use crate::support::Scratch;

const DECIDE: &str =
    "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block, away: abort } } ]";

#[test]
fn exit_codes_of_run_and_answer() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "");
    let run = scratch.run(0);
    scratch.gatewright(&["status", &run]).exits(0);
    let scratch = Scratch::with(DECIDE, "");
    let waiting = scratch.run(10);
    scratch.gatewright(&["status", &waiting]).exits(10);
    scratch.gatewright(&["answer", &waiting, "agree", "perhaps"]).exits(4);
    scratch.gatewright(&["answer", &waiting, "agree", "no"]).exits(11);
    scratch.gatewright(&["status", &waiting]).exits(11);
    let given_up = scratch.run(10);
    scratch.gatewright(&["answer", &given_up, "agree", "away"]).exits(1);
    assert_eq!(scratch.state(&given_up), "abandoned");
    scratch.gatewright(&["status", &given_up]).exits(1);
    let stopped = scratch.run(10);
    scratch.gatewright(&["stop", &stopped]).exits(0);
    scratch.gatewright(&["status", &stopped]).exits(12);
    scratch.gatewright(&["resume", &stopped]).exits(10);
}

#[test]
fn exit_code_2_is_usage() {
    let scratch = Scratch::with(DECIDE, "");
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["run", "w", "  "],
        &["run", "w", "x", "--set", "novalue"],
        &["status", "no-such-run"],
        &["answer", "no-such-run", "agree", "approved"],
        &["resume", "no-such-run"],
    ] {
        let ran = scratch.gatewright(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "talk is on stderr");
    }
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run]).exits(2);
    scratch.gatewright(&["answer", &run, "agree"]).exits(2);
    scratch.gatewright(&["resume", &run, "--raise", "much"]).exits(2);
}

#[test]
fn exit_code_3_is_a_definition_a_configuration_or_an_agent_that_is_invalid() {
    let scratch = Scratch::with("steps: [ { id: code, role: nobody } ]", "");
    let ran = scratch.gatewright(&["run", "w", "x"]).exits(3).says("nobody").says("w.yaml");
    assert_eq!(ran.out, "");
    scratch.gatewright(&["run", "no-such-workflow", "x"]).exits(3).says("no-such-workflow");
    scratch.workflow("w", DECIDE);
    scratch.gatewright(&["run", "w", "x", "--profile", "none"]).exits(3);
    scratch.config("agnet: mine");
    scratch.gatewright(&["run", "w", "x"]).exits(3).says("did you mean `agent`?");
    assert!(!scratch.root().join(".workflow").exists(), "nothing was begun");
}

#[test]
fn exit_code_13_is_running_and_comes_from_status_only() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "code) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    scratch.marked("at-work");
    scratch.gatewright(&["status", &engine.id()]).exits(13);
    assert_eq!(scratch.state(&engine.id()), "running");
    scratch.mark("go");
    engine.ended().exits(0);
}

#[test]
fn the_run_id_is_the_first_line_before_any_agent_starts() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "code) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    let printed = std::fs::metadata(engine.out_path()).unwrap().modified().unwrap();
    let started = std::fs::metadata(scratch.home().join("calls")).unwrap().modified().unwrap();
    assert!(printed <= started, "the id was there when the agent began");
    scratch.mark("go");
    let ran = engine.ended().exits(0);
    assert_eq!(ran.out.lines().next(), Some(run.as_str()));
    assert!(run.starts_with("w-add-a-greeting-"), "S0-01: {run}");
    assert_eq!(scratch.status(&run)["id"], run.as_str());
}

#[test]
fn a_run_is_named_by_its_id_a_unique_prefix_or_latest() {
    let scratch = Scratch::with(DECIDE, "");
    let first = scratch.gatewright(&["run", "w", "Alpha"]).exits(10).id();
    let second = scratch.gatewright(&["run", "w", "Beta"]).exits(10).id();
    assert_eq!(scratch.status("w-al")["id"], first.as_str());
    assert_eq!(scratch.status("latest")["id"], second.as_str());
    scratch.gatewright(&["status", "w-"]).exits(2).says(&first);
}

#[test]
fn every_json_document_has_a_schema_version_and_status_has_what_is_promised() {
    let scratch = Scratch::with(DECIDE, "");
    let run = scratch.run(10);
    for arguments in
        [&["status", "latest", "--json"][..], &["list", "--json"], &["decisions", "latest", "--json"]]
    {
        let ran = scratch.gatewright(arguments);
        let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert!(document["schema_version"].is_u64(), "{arguments:?}");
    }
    let status = scratch.status(&run);
    for key in
        ["id", "workflow", "profile", "state", "dir", "steps", "decisions", "blocked_by", "cost", "state_dir"]
    {
        assert!(status.get(key).is_some(), "{key}");
    }
    assert!(scratch.run_dir(&run).is_absolute());
    let step = scratch.step(&run, "agree");
    assert_eq!(
        (&step["state"], &step["attempts"], &step["rounds"]),
        (&"waiting".into(), &0.into(), &0.into())
    );
    let decision = scratch.decision(&run, "agree");
    assert_eq!((&decision["status"], &decision["question"]), (&"pending".into(), &"Go?".into()));
    assert_eq!(decision["answers"], serde_json::json!(["approved", "no", "away"]));
    let events = scratch.events(&run);
    assert!(
        events
            .iter()
            .zip(1..)
            .all(|(event, seq)| event["seq"] == seq && event["at"].is_string() && event["type"].is_string())
    );
}
