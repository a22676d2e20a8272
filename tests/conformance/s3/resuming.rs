//! Interrupted agents and their successors.

use super::cycle::{Cycle, plan};
use crate::support::Scratch;

/// A stream of two requirements whose engineer is cut off after saying this.
fn interrupted(said: &str) -> Cycle {
    let plan = plan(&[("WS-1", "software_engineer_backend", &[])], &[&["WS-1"]]).replace("$(stream WS-1 software_engineer_backend '')", "{\\\"id\\\":\\\"WS-1\\\",\\\"name\\\":\\\"one\\\",\\\"agent\\\":\\\"software_engineer_backend\\\",\\\"requirements\\\":[\\\"FR-001\\\",\\\"FR-002\\\"],\\\"depends_on\\\":[]}");
    let cases = format!(
        "streams/WS-1/backend) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then {said}; mark working; await never; else standard; fi;;"
    );
    let cycle = Cycle::planned(&plan, &cases, &[]);
    let engine = cycle.scratch.start(&["answer", &cycle.run, "G3", "go ahead"]);
    cycle.scratch.marked("working");
    let (supervisor, _) =
        cycle.scratch.processes().into_iter().find(|(_, line)| line.contains(" supervise ")).unwrap();
    let pid = rustix::process::Pid::from_raw(supervisor.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    engine.ended().exits(10);
    cycle
}

const SAY: &str = "\"$GATEWRIGHT_BIN\" progress update --project-dir \"$GATEWRIGHT_RUN_DIR\" --agent software_engineer_backend --milestone M-build --status in_progress --quiet --summary";

#[test]
fn s3_30_s3_32_a_successor_is_told_what_was_done_and_where_to_go_on() {
    let cycle = interrupted(&format!("echo half > src/half.txt; {SAY} 'FR-001 done'"));
    let prompt = cycle.scratch.prompt("streams/WS-1/backend", 2);
    for part in [
        "RESUME_CONTEXT=true",
        "Completed FRs: FR-001 (skip these)",
        "Uncommitted changes: src/half.txt",
        "Resume from: FR-002",
        "What is there and right is not to be done again.",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(!cycle.scratch.prompt("streams/WS-1/backend", 1).contains("RESUME_CONTEXT"));
    assert!(!prompt.contains("Nothing in git bears out"), "{prompt}");
    // What it says is held against git.
    let cycle = interrupted(&format!("{SAY} 'FR-001 done'"));
    let prompt = cycle.scratch.prompt("streams/WS-1/backend", 2);
    assert!(prompt.contains("Nothing in git bears out what it said was done"), "{prompt}");
}

#[test]
fn s3_33_none_some_and_all_done_are_three_scenarios() {
    let none = interrupted("true").scratch.prompt("streams/WS-1/backend", 2);
    assert!(none.contains("Completed FRs: none") && none.contains("Resume from: FR-001"), "{none}");
    let all = interrupted(&format!("{SAY} 'FR-001 done'; {SAY} 'FR-002 done'"))
        .scratch
        .prompt("streams/WS-1/backend", 2);
    assert!(all.contains("only the output file is missing"), "{all}");
    let scratch = spine();
    for (said, wanted) in [
        (None, "start afresh"),
        (Some("FR-001 done"), "resume from FR-002"),
        (Some("FR-002 done"), "write the output file only"),
    ] {
        if let Some(said) = said {
            scratch
                .gatewright(&[
                    "progress",
                    "update",
                    "--project-dir",
                    "p",
                    "--agent",
                    "se",
                    "--milestone",
                    "M-build",
                    "--status",
                    "in_progress",
                    "--summary",
                    said,
                ])
                .exits(0);
        }
        let found = reconciled(&scratch, &[]);
        assert!(found["resume_hint"].as_str().unwrap().contains(wanted), "{found:#}");
    }
}

/// A plan with two requirements, outside of runs.
fn spine() -> Scratch {
    let scratch = Scratch::new();
    for words in [
        vec!["init", "--pipeline-id", "P_main", "--feature-type", "backend"],
        vec!["milestone", "--id", "M-build", "--title", "Build", "--phase", "implementation"],
        vec![
            "subtask",
            "--milestone",
            "M-build",
            "--id",
            "s1",
            "--agent-hint",
            "se",
            "--fr-ids",
            "FR-001,FR-002",
        ],
    ] {
        let mut all = vec!["progress"];
        all.extend(words);
        all.extend(["--project-dir", "p"]);
        scratch.gatewright(&all).exits(0);
    }
    scratch
}

fn reconciled(scratch: &Scratch, more: &[&str]) -> serde_json::Value {
    let mut words = vec!["progress", "reconcile", "--project-dir", "p", "--agent", "se"];
    words.extend(more);
    serde_json::from_str(&scratch.gatewright(&words).exits(0).out).unwrap()
}

#[test]
fn s3_31_reconcile_reads_only_and_says_what_is_done_and_what_is_not() {
    let scratch = spine();
    let before = scratch.git_says(&["rev-parse", "HEAD"]);
    scratch
        .gatewright(&[
            "progress",
            "update",
            "--project-dir",
            "p",
            "--agent",
            "se",
            "--milestone",
            "M-build",
            "--status",
            "in_progress",
            "--summary",
            "FR-001 done",
            "--files",
            "src/b.txt",
        ])
        .exits(0);
    scratch.write("src/b.txt", "b\n");
    scratch.git(&["add", "src"]);
    scratch.git(&["commit", "-q", "-m", "one"]);
    scratch.write("src/c.txt", "c\n");
    let files = || {
        let read = |name: &str| std::fs::read(scratch.root().join("p/progress").join(name)).unwrap();
        (read("plan.json"), read("se.json"), scratch.git_says(&["status", "--porcelain"]))
    };
    let untouched = files();
    let found = reconciled(&scratch, &["--pre-sha", &before]);
    assert_eq!(files(), untouched);
    assert_eq!(found["reported_status"], "running");
    assert_eq!(
        (&found["frs_completed"], &found["frs_pending"]),
        (&serde_json::json!(["FR-001"]), &serde_json::json!(["FR-002"]))
    );
    assert_eq!(found["git_committed_files"], serde_json::json!(["src/b.txt"]));
    assert!(
        found["git_uncommitted_files"].to_string().contains("src/c.txt")
            && found["has_uncommitted_work"] == true,
        "{found:#}"
    );
    assert!(found["reconciled_at"].is_string());
    // The plan may know the agent by another name: then what is planned is its too.
    let words =
        ["progress", "update", "--project-dir", "p", "--agent", "other_engineer", "--milestone", "M-build"];
    let told = [&words[..], &["--status", "in_progress", "--summary", "FR-001 done"]].concat();
    scratch.gatewright(&told).exits(0);
    let ran =
        scratch.gatewright(&["progress", "reconcile", "--project-dir", "p", "--agent", "other_engineer"]);
    let found: serde_json::Value = serde_json::from_str(&ran.exits(0).out).unwrap();
    assert_eq!(found["frs_pending"], serde_json::json!(["FR-002"]), "{found:#}");
    assert!(found["resume_hint"].as_str().unwrap().contains("resume from FR-002"), "{found:#}");
}

#[test]
fn s3_34_an_agent_is_told_to_look_before_it_builds() {
    let cycle = interrupted("echo half > src/half.txt");
    for attempt in [1, 2] {
        let prompt = cycle.scratch.prompt("streams/WS-1/backend", attempt);
        assert!(prompt.contains("Look at the code and at `git diff` before you write a line"), "{prompt}");
        assert!(prompt.contains("what to keep, what to mend, what to discard"), "{prompt}");
    }
    assert!(cycle.scratch.prompt("streams/WS-1/backend", 2).contains("src/half.txt"));
}
