//! `gatewright import`: every layout that a built-in method knows, read back from a folder that no run made.

use serde_json::Value;

use crate::support::Scratch;

/// Runs a method with rehearsed agents, and copies what it left to a folder of which nobody knows.
#[track_caller]
fn left_by(scratch: &Scratch, words: &[&str], code: i32, to: &str) {
    let words = [&["run"], words, &["--agent", "rehearsal"]].concat();
    let run = scratch.gatewright(&words).exits(code).id();
    let from = scratch.run_dir(&run);
    let target = scratch.root().join(to);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    let copied = std::process::Command::new("cp").arg("-r").arg(&from).arg(&target).status().unwrap();
    assert!(copied.success());
    scratch.gatewright(&["abort", &run]);
}

#[track_caller]
fn checked(scratch: &Scratch, dir: &str, code: i32) -> Value {
    let ran = scratch.gatewright(&["import", dir, "--check", "--json"]);
    assert_eq!(ran.code, code, "{}\n{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn every_layout_is_read_and_a_run_goes_on_where_it_stands() {
    let layouts: [(&[&str], i32, &str, &str, &str); 4] = [
        (
            &["report-chain", "Remember me", "--until", "prepare"],
            12,
            ".workflow/old-1",
            "report-chain",
            "tests-design",
        ),
        (
            &["report-chain/fix-bug", "Mend it", "--until", "understand"],
            12,
            ".workflow/old-2",
            "report-chain/fix-bug",
            "",
        ),
        (&["stream-dag", "Remember me"], 10, "docs/plans/old", "stream-dag", ""),
        (&["staged-schedule", "Remember me", "--until", "EXPLORE"], 12, ".agents/old", "staged-schedule", ""),
    ];
    for (words, code, folder, workflow, next) in layouts {
        let scratch = Scratch::new();
        left_by(&scratch, words, code, folder);
        let said = checked(&scratch, folder, 0);
        assert_eq!(said["workflow"], workflow, "{said:#}");
        assert!(next.is_empty() || said["next"] == next, "{workflow}: {said:#}");
        let given: Vec<&str> =
            said["given"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        assert!(!given.is_empty(), "{workflow}: {said:#}");
        let stage = ["--agent", "rehearsal"];
        let ran = scratch.gatewright(&[&["import", folder], &stage[..]].concat());
        let run = ran.id();
        // What was there is not made again.
        for step in given {
            let started = scratch.events_of(&run, "step.attempt.ended");
            let own: Vec<&Value> = started.iter().filter(|event| event["step"] == step).collect();
            assert_eq!(own.len(), 1, "{workflow}: {step}: {}", ran.err);
            let summary = own[0]["report"]["reply"]["summary"].as_str().unwrap_or_default().to_owned();
            assert!(summary.starts_with("Taken over"), "{workflow}: {step}: {summary}");
        }
    }
}

#[test]
fn a_command_is_run_whatever_the_folder_says_of_it_unless_its_file_is_the_evidence() {
    let scratch = Scratch::new();
    let settings = ["--set", "lint=", "--set", "test=true", "--set", "gitWorkflow=none"];
    let words = [&["staged-schedule", "Remember me", "--until", "TEST"], &settings[..]].concat();
    left_by(&scratch, &words, 12, ".agents/old");
    let said = checked(&scratch, ".agents/old", 0);
    assert_eq!(said["next"], "3.1-test-results", "{said:#}");
    let named = |list: &str, step: &str| said[list].as_array().unwrap().iter().any(|one| one == step);
    assert!(named("run_again", "3.1-test-results") && !named("given", "3.1-test-results"), "{said:#}");
    assert!(named("given", "2.1-tasks") && !named("run_again", "2.1-tasks"), "{said:#}");
    // Its tests are red by now.
    let words = [
        &["import", ".agents/old", "--agent", "rehearsal"],
        &settings[..2],
        &["--set", "test=echo ran >> \"$HOME/ran\"; false"],
    ];
    let run = scratch.gatewright(&words.concat()).id();
    assert!(scratch.home().join("ran").exists(), "{}", scratch.gatewright(&["status", &run]).out);
    let results = scratch.published(&run, "phases/3.1-test-results.json").unwrap_or_default();
    assert!(!results.contains("\"passed\":true"), "{results}");
}

#[test]
fn what_breaks_its_schema_is_named_with_file_place_and_remedy() {
    let scratch = Scratch::new();
    left_by(&scratch, &["report-chain", "Remember me", "--until", "prepare"], 12, ".workflow/old-1");
    let path = scratch.root().join(".workflow/old-1/metadata.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("in_progress", "halfway")).unwrap();
    scratch.write(".workflow/old-1/plan.md", "# Plan\n");
    let ran = scratch.gatewright(&["import", ".workflow/old-1", "--check"]).exits(1);
    assert!(
        ran.out.contains(
            "metadata.json, /status: expected one of `in_progress`, `completed`, `aborted`, `failed`"
        ) && ran.out.contains("remedy: "),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("plan.md"), "{}", ran.out);
    // As far as it is whole, a run goes on from it.
    let ran =
        scratch.gatewright(&["import", ".workflow/old-1", "--agent", "rehearsal", "--until", "prepare"]);
    assert!(ran.err.contains("metadata.json, /status"), "{}", ran.err);
    let run = ran.exits(12).id();
    assert_eq!(run, "old-1");
    let ended = scratch.events_of(&run, "step.attempt.ended");
    let said = |step: &str| {
        let event = ended.iter().find(|event| event["step"] == step).unwrap();
        event["report"]["reply"]["summary"].as_str().unwrap_or_default().starts_with("Taken over")
    };
    assert!(said("requirements") && !said("plan"), "the broken one is made again");
}

#[test]
fn what_is_over_unreadable_unknown_or_a_runs_own_is_refused() {
    let scratch = Scratch::new();
    left_by(&scratch, &["report-chain", "Remember me", "--until", "prepare"], 12, ".workflow/old-1");
    let path = scratch.root().join(".workflow/old-1/metadata.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let import =
        |dir: &str, code: i32| scratch.gatewright(&["import", dir, "--agent", "rehearsal"]).exits(code).err;
    std::fs::write(&path, text.replace("in_progress", "completed")).unwrap();
    assert!(import(".workflow/old-1", 4).contains("come to its end"));
    std::fs::write(&path, "{").unwrap();
    let said = import(".workflow/old-1", 4);
    assert!(said.contains("metadata.json, line 1") && said.contains("no run can go on"), "{said}");
    scratch.write("elsewhere/notes.txt", "nothing");
    assert!(import("elsewhere", 4).contains("metadata.json"), "the known markers are named");
    std::fs::write(&path, text).unwrap();
    scratch
        .gatewright(&["import", ".workflow/old-1", "--agent", "rehearsal", "--until", "prepare"])
        .exits(12);
    assert!(import(".workflow/old-1", 4).contains("belongs to run old-1"));
}

/// The file that says where a folder stands, of every layout, as somebody may have left it.
#[test]
fn a_folder_whose_own_file_is_broken_is_told_what_is_wrong_with_it() {
    let layouts = [
        (".workflow/old", "metadata.json", "report-chain", "command"),
        (".agents-work/2025-01-31_old", "status.json", "gated-session", "current_state"),
        ("docs/features/007-old", ".meta.json", "phase-review", "mode"),
        ("docs/plans/old", "progress/plan.json", "stream-dag", "pipeline_id"),
        (".agents/old", "state.json", "staged-schedule", "stages"),
    ];
    let scratch = Scratch::new();
    for (folder, marker, workflow, required) in layouts {
        let told = |text: &str, said: &str| {
            assert!(said.contains(&format!("{folder}/{marker}")), "{workflow}, {text}: {said}");
            assert!(said.contains("expected ") && said.contains("remedy: "), "{workflow}, {text}: {said}");
            assert!(said.contains("no run can go on from this"), "{workflow}, {text}: {said}");
            let add = format!("remedy: add the property `{required}`");
            assert!(text != "{}" || said.contains(&add), "{workflow}: {said}");
            assert!(!text.contains(",,") || said.contains("line 1"), "{workflow}: {said}");
        };
        let wrong = "{\"mode\": \"fancy\", \"status\": 7}";
        for text in ["{\"a\": 1,,", "nothing of the kind\n", wrong, "{}"] {
            scratch.write(&format!("{folder}/{marker}"), text);
            told(text, &scratch.gatewright(&["import", folder, "--check"]).exits(1).out);
        }
        let problems = checked(&scratch, folder, 1)["problems"].clone();
        assert!(!problems.as_array().unwrap().is_empty(), "{workflow}");
        let refused = scratch.gatewright(&["import", folder, "--agent", "rehearsal"]).exits(4);
        told("{}", &refused.err);
        assert!(refused.err.contains("import it again"), "{}", refused.err);
    }
    assert_eq!(scratch.gatewright(&["list"]).exits(0).out, "", "nothing began");
}

#[test]
fn a_folder_that_is_whole_and_no_workflows_is_told_who_would_read_it() {
    let scratch = Scratch::new();
    let meta = r#"{"taskId": "paint-it-1", "command": "paint", "feature": "Paint it", "started": "2023-12-17T17:36:07Z", "currentStep": 1, "status": "in_progress"}"#;
    scratch.write(".workflow/paint-it-1/metadata.json", meta);
    let said = scratch.gatewright(&["import", ".workflow/paint-it-1", "--check"]).exits(4).err;
    assert!(said.contains("metadata.json: no workflow reads what this says"), "{said}");
    assert!(
        said.contains("report-chain/fix-bug reads it when") && said.contains("--workflow NAME"),
        "{said}"
    );
    // Whoever names one has said what it is.
    let words = ["import", ".workflow/paint-it-1", "--check", "--workflow", "report-chain/fix-bug"];
    scratch.gatewright(&words).exits(0).prints("a run would go on with `requirements`");
}
