//! `validate` and `progress` under the hands of scripts that were written for the old tools: every number, every spelling.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ran, Scratch};

fn completion(change: impl FnOnce(&mut Value)) -> String {
    let mut value = json!({
        "stream": "WS-1", "status": "complete", "attempt": 1, "git_sha": "abc", "build_passed": true,
        "steps": [{"name": "se", "status": "passed"}], "files_modified": ["src/a.txt"],
        "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:00:00Z",
    });
    change(&mut value);
    value.to_string()
}

#[test]
fn s3_10_what_is_wrong_with_a_graph_has_its_own_number() {
    let scratch = Scratch::new();
    let node = |id: &str| json!({"id": id, "type": "gate", "status": "pending"});
    let check = |nodes: Value, edges: Value, code: i32, said: &str| {
        scratch.write(
            "d.json",
            &json!({"pipeline_id": "P-1_x", "lang": "go", "nodes": nodes, "edges": edges}).to_string(),
        );
        let ran = scratch.gatewright(&["validate", "--dag-check", "--file", "d.json"]).exits(code);
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    };
    let none = || json!([]);
    check(json!([node("a"), node("a")]), none(), 5, "two nodes have the id `a`");
    check(json!([node("a")]), json!([{"from": "a", "to": "a"}]), 5, "waits for itself");
    check(
        json!([{"id": "a", "type": "agent", "status": "pending", "stream": "s", "timeout_minutes": 5}]),
        none(),
        5,
        "names no agent or no model",
    );
    check(
        json!([{"id": "a", "type": "gate", "status": "running", "pre_sha": "abcdef1", "started_at": "2026-01-01T00:00:00Z"}]),
        none(),
        5,
        "has no task_id",
    );
    // What is not about the graph is the schema's: a word nobody knows, no node at all, no JSON, no file.
    check(json!([{"id": "a", "type": "gate", "status": "asleep"}]), none(), 1, "asleep");
    check(none(), none(), 1, "nodes");
    check(json!([{"id": "a", "type": "gate", "status": "failed"}]), none(), 1, "error");
    scratch.write("d.json", "{");
    scratch.gatewright(&["validate", "--dag-check", "--file", "d.json"]).exits(1);
    scratch.gatewright(&["validate", "--dag-check", "--file", "none.json"]).exits(1);
    scratch.gatewright(&["validate", "--dag-check"]).exits(10);
}

#[test]
fn s3_10_what_is_gone_since_a_commit_was_changed() {
    let scratch = Scratch::new();
    scratch.write("c.json", &completion(|value| value["files_modified"] = json!(["src/a.txt", "src/b.txt"])));
    scratch.git(&["rm", "-q", "src/a.txt"]);
    scratch.git(&["commit", "-q", "-m", "gone"]);
    scratch.write("src/b.txt", "b\n");
    scratch.git(&["add", "src/b.txt"]);
    scratch.git(&["commit", "-q", "-m", "tests"]);
    let check = |more: &[&str], code: i32, said: &str| {
        let words = [&["validate", "--reality-check", "--file", "c.json"], more].concat();
        let ran = scratch.gatewright(&words).exits(code);
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    };
    check(&[], 2, "`src/a.txt` is said to be modified");
    check(&["--pre-sha", "HEAD~2"], 0, "");
    check(&["--pre-sha", "HEAD~1"], 2, "`src/a.txt`");
    for unknown in ["0123456", "--all", ""] {
        check(&[&format!("--pre-sha={unknown}")], 10, "git knows no commit");
    }
    let ran = scratch.gatewright(&["validate", "--schema", "nothing", "--file", "c.json"]).exits(10);
    assert!(ran.err.contains("there are: ") && ran.err.contains("stream_completion"), "{}", ran.err);
}

#[test]
fn s3_08_a_completion_that_contradicts_itself_breaks_its_schema() {
    let scratch = Scratch::new();
    let check = |text: &str, code: i32| {
        scratch.write("c.json", text);
        for name in ["stream_completion", "stream-completion", "schemas/stream_completion.schema.json"] {
            scratch.gatewright(&["validate", "--schema", name, "--file", "c.json"]).exits(code);
        }
    };
    check(&completion(|_| ()), 0);
    check(&completion(|value| value["steps"] = json!([{"name": "se", "status": "failed", "error": "x"}])), 1);
    check(&completion(|value| value["status"] = json!("failed")), 1);
    check(
        &completion(|value| {
            value["status"] = json!("failed");
            value["steps"] = json!([{"name": "se", "status": "failed"}]);
        }),
        1,
    );
    check(
        &completion(|value| {
            value["status"] = json!("failed");
            value["steps"] = json!([{"name": "se", "status": "failed", "error": "x"}]);
        }),
        0,
    );
    check(
        &completion(|value| {
            value["status"] = json!("partial");
            value["build_passed"] = json!(false);
        }),
        0,
    );
    check(&completion(|value| value["steps"] = json!([{"name": "SE step", "status": "passed"}])), 1);
    check(&completion(|value| value["steps"] = json!([])), 1);
    check(&completion(|value| value["attempt"] = json!(0)), 1);
    check(
        &completion(|value| {
            value["se_independently_verified"] = json!(true);
            value["steps"] =
                json!([{"name": "se", "status": "passed"}, {"name": "se_verification", "status": "passed"}]);
        }),
        0,
    );
}

#[test]
fn j_53_a_completion_does_not_point_out_of_the_repository() {
    let scratch = Scratch::new();
    let outside = scratch.home().join("secret");
    std::fs::write(&outside, "s").unwrap();
    std::os::unix::fs::symlink(scratch.home(), scratch.root().join("out")).unwrap();
    let check = |key: &str, name: &str, code: i32| {
        scratch.write("plans/c.json", &completion(|value| value[key] = json!([name])));
        scratch.gatewright(&["validate", "--reality-check", "--file", "plans/c.json"]).exits(code)
    };
    for key in ["files_modified", "output_files"] {
        for name in [outside.to_str().unwrap(), "../home/secret", "out/secret"] {
            let ran = check(key, name, 2);
            assert!(
                ran.err.contains("outside of the repository") || ran.err.contains("does not exist"),
                "{name}: {}",
                ran.err
            );
        }
        check(key, "/etc/passwd", 2).says("outside of the repository");
        check(key, "src/a.txt", 0);
        // Relative to the completion, and absolute inside.
        scratch.write("plans/beside.json", "{}");
        check(key, "beside.json", 0);
        check(key, scratch.root().join("src/a.txt").to_str().unwrap(), 0);
    }
}

/// `validate` with these programs on the path before the others.
fn with_programs(scratch: &Scratch, programs: &[(&str, &str)], words: &[&str]) -> Ran {
    let folder = scratch.home().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, body) in programs {
        std::fs::write(folder.join(name), format!("#!/bin/sh\n{body}\n")).unwrap();
        Command::new("chmod").arg("+x").arg(folder.join(name)).status().unwrap();
    }
    let mut all = vec!["validate"];
    all.extend(words);
    let mut command = scratch.command(&all);
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    scratch.start_with(command, None).ended()
}

#[test]
fn j_47_a_language_tool_that_looked_at_nothing_has_not_succeeded() {
    let scratch = Scratch::new();
    let test = |program: (&str, &str), lang: &str, code: i32| {
        with_programs(&scratch, &[program], &["--test-check", "--lang", lang]).exits(code)
    };
    let build = |program: (&str, &str), lang: &str, code: i32| {
        with_programs(&scratch, &[program], &["--build-check", "--lang", lang]).exits(code)
    };
    test(("go", "echo '?   	example/a	[no test files]'"), "go", 4).says("checked nothing");
    test(("go", "echo 'ok  	example/a	0.1s [no tests to run]'"), "go", 4);
    test(("go", "echo '?   	example/a	[no test files]'; echo 'ok  	example/b	0.1s'"), "go", 0);
    test(("python3", "echo '=== 3 skipped in 0.01s ==='"), "python", 4);
    test(("python3", "echo '=== 1 passed, 3 skipped in 0.01s ==='"), "python", 0);
    test(("python3", "echo none; exit 5"), "python", 4);
    build(("go", "echo 'go: warning: \"./...\" matched no packages' >&2"), "go", 3).says("checked nothing");
    build(("go", "true"), "go", 0);
    build(
        ("ruff", "echo 'warning: No Python files found under the given path(s)'; echo 'All checks passed!'"),
        "python",
        3,
    );
    build(("ruff", "echo 'All checks passed!'"), "python", 0);
    build(("ruff", "echo 'a.py:1: F401'; exit 1"), "python", 3).says("F401");
    // A tool that is not there, and a folder without a language.
    with_programs(&scratch, &[], &["--build-check", "--lang", "multi"]).exits(3).says("nothing was checked");
    with_programs(&scratch, &[], &["--test-check", "--lang", "cobol"]).exits(10);
}

#[test]
fn only_the_tests_that_are_named_are_run() {
    let scratch = Scratch::new();
    for name in [
        "tests/test_a.py",
        "tests/deep/test_b.py",
        "tests/two words.py",
        "tests/data.txt",
        "pkg/x/x_test.go",
        "pkg/x/y_test.go",
        "web/a.test.ts",
        "node_modules/m/n.test.ts",
        "go.mod",
        "package.json",
    ] {
        scratch.write(name, "x\n");
    }
    let told = |name: &str, words: &str| {
        format!(
            "for one in {name} \"$@\"; do printf '%s\\n' \"$one\"; done >> \"$HOME/given\"; echo '{words}'"
        )
    };
    let run = |words: &[&str], code: i32| {
        std::fs::write(scratch.home().join("given"), "").unwrap();
        let (go, python, npm) = (
            told("go", "ok  \texample/a\t0.1s"),
            told("python3", "=== 1 passed in 0.01s ==="),
            told("npm", ""),
        );
        let ran = with_programs(
            &scratch,
            &[("go", go.as_str()), ("python3", python.as_str()), ("npm", npm.as_str())],
            words,
        )
        .exits(code);
        let given = std::fs::read_to_string(scratch.home().join("given")).unwrap();
        (given.lines().map(str::to_owned).collect::<Vec<_>>(), ran)
    };
    let test = |lang: &str, files: &[&str]| {
        run(&[&["--test-check", "--lang", lang, "--test-files"], files].concat(), 0).0
    };
    let pytest = |files: &[&'static str]| [&["python3", "-m", "pytest"], files].concat();
    assert_eq!(test("python", &["tests/test_*.py"]), pytest(&["tests/test_a.py"]));
    assert_eq!(test("python", &["tests/**/test_*.py"]), pytest(&["tests/deep/test_b.py", "tests/test_a.py"]));
    assert_eq!(test("python", &["tests"]), pytest(&["tests"]));
    // What a shell made of a glob, a list, and a name with a space; what is in another language is not its.
    let two = pytest(&["tests/deep/test_b.py", "tests/test_a.py"]);
    assert_eq!(test("python", &["tests/test_a.py", "tests/deep/test_b.py", "tests/data.txt"]), two);
    assert_eq!(test("python", &["tests/test_a.py,tests/deep/test_b.py"]), two);
    assert_eq!(test("python", &["tests/two words.py"]), pytest(&["tests/two words.py"]));
    // Go tests packages.
    assert_eq!(test("go", &["pkg/**/*_test.go"]), ["go", "test", "-v", "./pkg/x"]);
    assert_eq!(test("go", &["./pkg/..."]), ["go", "test", "-v", "./pkg/..."]);
    assert_eq!(test("go", &["pkg"]), ["go", "test", "-v", "./pkg/..."]);
    assert_eq!(test("node", &["**/*.test.ts"]), ["npm", "test", "--", "web/a.test.ts"]);
    // Of several languages only those that have something there.
    assert_eq!(test("multi", &["web/*.test.ts"]), ["npm", "test", "--", "web/a.test.ts"]);
    assert_eq!(
        test("multi", &["web/*.test.ts", "pkg/x/*.go"]),
        ["go", "test", "-v", "./pkg/x", "npm", "test", "--", "web/a.test.ts"]
    );
    // Nothing said is everything; nothing found is no test.
    assert_eq!(test("python", &[""]), pytest(&[]));
    for (lang, word) in
        [("python", "spec/*.py"), ("python", "none.py"), ("go", "tests/*.py"), ("go", "$(touch x)")]
    {
        let (given, ran) = run(&["--test-check", "--lang", lang, "--test-files", word], 4);
        assert!(given.is_empty() && ran.err.contains("--test-files"), "{word}: {given:?} {}", ran.err);
    }
    assert!(!scratch.root().join("x").exists());
    run(&["--test-check", "--lang", "go", "--test-command", "true", "--test-files", "pkg"], 10);
    // In the whole, too, where a test step passed.
    let tested = completion(|value| {
        value["steps"] = json!([{"name": "se", "status": "passed"}, {"name": "test", "status": "passed"}]);
    });
    scratch.write("c.json", &tested);
    let words = ["--full", "--file", "c.json", "--lang", "python", "--build-command", "true", "--test-files"];
    assert_eq!(run(&[&words[..], &["tests/test_*.py"]].concat(), 0).0, pytest(&["tests/test_a.py"]));
    run(&[&words[..], &["spec/*.py"]].concat(), 4);
}

/// `progress` in `p` with these words.
#[track_caller]
fn progress(scratch: &Scratch, words: &[&str], code: i32) -> Ran {
    let mut all = vec!["progress"];
    all.extend(words);
    all.extend(["--project-dir", "p"]);
    scratch.gatewright(&all).exits(code)
}

fn spine() -> Scratch {
    let scratch = Scratch::new();
    progress(&scratch, &["init", "--pipeline-id", "P-1_x", "--feature-type", "backend", "--quiet"], 0);
    progress(
        &scratch,
        &["milestone", "--id", "M-build", "--title", "Build", "--phase", "implementation", "--quiet"],
        0,
    );
    progress(
        &scratch,
        &[
            "subtask",
            "--milestone",
            "M-build",
            "--id",
            "s1",
            "--agent-hint",
            "software_engineer_backend",
            "--fr-ids",
            "FR-001,FR-002",
            "--quiet",
        ],
        0,
    );
    scratch
}

fn read(scratch: &Scratch, name: &str) -> String {
    std::fs::read_to_string(scratch.root().join("p/progress").join(name)).unwrap()
}

#[test]
fn s3_27_an_update_writes_the_agents_own_file_and_the_view_brings_them_together() {
    let scratch = spine();
    let plan = read(&scratch, "plan.json");
    let update = |agent: &str, more: &[&str]| {
        let mut words = vec!["update", "--agent", agent, "--milestone", "M-build", "--quiet"];
        words.extend(more);
        assert_eq!(progress(&scratch, &words, 0).out, "");
    };
    let seen = || -> Value { serde_json::from_str(&progress(&scratch, &["view", "--json"], 0).out).unwrap() };
    update("se", &["--status", "started"]);
    assert_eq!(seen()["plan"]["milestones"][0]["status"], "in_progress");
    update("se", &["--status", "completed", "--subtask", "s1", "--summary", "FR-001 done"]);
    assert_eq!(seen()["plan"]["milestones"][0]["subtasks"][0]["status"], "completed");
    assert_eq!(seen()["plan"]["milestones"][0]["status"], "in_progress");
    update("se", &["--status", "completed", "--summary", "All of it"]);
    assert_eq!(
        (&seen()["plan"]["milestones"][0]["status"], &seen()["summary"]["completed"]),
        (&json!("completed"), &json!(1))
    );
    update("qa", &["--status", "skipped", "--summary", "nothing to test"]);
    assert_eq!(seen()["plan"]["milestones"][0]["status"], "skipped", "the last word counts");
    assert_eq!(read(&scratch, "plan.json"), plan, "the plan is not an agent's to write");
    assert!(progress(&scratch, &["view"], 0).out.contains("– M-build"));
    // What the driver says itself stands.
    progress(&scratch, &["milestone", "--id", "M-build", "--status", "blocked"], 0);
    assert_eq!(seen()["plan"]["milestones"][0]["status"], "blocked");
    scratch.gatewright(&["validate", "--progress-check", "--project-dir", "p"]).exits(0);
}

#[test]
fn s3_27_those_who_write_at_the_same_time_lose_nothing() {
    let scratch = spine();
    let started: Vec<_> = (0..12)
        .map(|number| {
            let summary = format!("FR-{number:03} done");
            let words: Vec<String> = if number % 3 == 0 {
                ["decision", "--question", "q", "--chosen", &summary].map(str::to_owned).to_vec()
            } else {
                let agent = format!("agent-{}", number % 3);
                [
                    "update",
                    "--agent",
                    &agent,
                    "--milestone",
                    "M-build",
                    "--status",
                    "in_progress",
                    "--summary",
                    &summary,
                ]
                .map(str::to_owned)
                .to_vec()
            };
            let mut all = vec!["progress".to_owned()];
            all.extend(words);
            all.extend(["--project-dir".to_owned(), "p".to_owned()]);
            scratch.start(&all.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    for one in started {
        one.ended().exits(0);
    }
    let count = |name: &str, key: &str| {
        serde_json::from_str::<Value>(&read(&scratch, name)).unwrap()[key].as_array().unwrap().len()
    };
    assert_eq!(
        (count("agent-1.json", "updates"), count("agent-2.json", "updates"), count("plan.json", "decisions")),
        (4, 4, 4)
    );
    scratch.gatewright(&["validate", "--progress-check", "--project-dir", "p"]).exits(0);
}

#[test]
fn s3_43_what_is_no_plan_is_refused_with_its_number_and_nothing_is_written() {
    let scratch = spine();
    let every = |code: i32| {
        for words in [
            &["milestone", "--id", "M-a", "--title", "A"][..],
            &["subtask", "--milestone", "M-build", "--id", "s"],
            &["gate", "--id", "G1", "--status", "passed"],
            &["decision", "--question", "q", "--chosen", "c"],
            &["update", "--agent", "se", "--milestone", "M-build", "--status", "started"],
            &["view"],
            &["reconcile", "--agent", "se"],
        ] {
            let ran = progress(&scratch, words, code);
            assert!(ran.err.contains("plan.json"), "{words:?}: {}", ran.err);
        }
    };
    for text in ["[]", "7", "\"x\"", "null"] {
        scratch.write("p/progress/plan.json", text);
        every(4);
        assert_eq!(read(&scratch, "plan.json"), text);
    }
    scratch.write("p/progress/plan.json", "{\"pipeline_id\"");
    every(3);
    std::fs::remove_file(scratch.root().join("p/progress/plan.json")).unwrap();
    every(5);
    for words in [
        &["update"][..],
        &["update", "--agent", "se", "--milestone", "M-a", "--status", "asleep"],
        &["gate", "--id", "G9", "--status", "passed"],
        &["view", "--format", "poem"],
        &["bogus"],
        &[],
    ] {
        let mut all = vec!["progress"];
        all.extend(words);
        let code = if words.first() == Some(&"view") { 5 } else { 1 };
        scratch.gatewright(&all).exits(code);
    }
    for agent in ["../x", "plan", "", ".hidden", "a/b"] {
        let scratch = spine();
        progress(&scratch, &["update", "--agent", agent, "--milestone", "M-build", "--status", "started"], 1);
    }
}

#[test]
fn s3_43_decisions_are_numbered_on_after_one_was_taken_out() {
    let scratch = spine();
    for chosen in ["a", "b", "c"] {
        progress(&scratch, &["decision", "--question", "q", "--chosen", chosen], 0);
    }
    let mut plan: Value = serde_json::from_str(&read(&scratch, "plan.json")).unwrap();
    plan["decisions"].as_array_mut().unwrap().remove(0);
    scratch.write("p/progress/plan.json", &plan.to_string());
    assert_eq!(progress(&scratch, &["decision", "--question", "q", "--chosen", "d"], 0).out, "decision D4\n");
    let plan: Value = serde_json::from_str(&read(&scratch, "plan.json")).unwrap();
    let chosen: Vec<&str> =
        plan["decisions"].as_array().unwrap().iter().map(|one| one["chosen"].as_str().unwrap()).collect();
    assert_eq!(chosen, ["b", "c", "d"]);
}

#[test]
fn s3_31_reconcile_takes_either_spelling_and_every_file_that_is_not_the_spine() {
    let scratch = spine();
    scratch.git(&["add", "p"]);
    scratch.git(&["commit", "-q", "-m", "spine"]);
    scratch.write("src/progress/bar.txt", "bar\n");
    progress(
        &scratch,
        &[
            "update",
            "--agent",
            "software-engineer-backend",
            "--milestone",
            "M-build",
            "--status",
            "in_progress",
            "--summary",
            "FR-001 done",
        ],
        0,
    );
    let reconcile = |more: &[&str]| -> Value {
        let mut words = vec!["reconcile", "--agent", "software-engineer-backend"];
        words.extend(more);
        serde_json::from_str(&progress(&scratch, &words, 0).out).unwrap()
    };
    let found = reconcile(&["--pre-sha", ""]);
    assert_eq!(
        (&found["frs_completed"], &found["frs_pending"]),
        (&json!(["FR-001"]), &json!(["FR-002"])),
        "{found:#}"
    );
    assert_eq!(found["git_uncommitted_files"], json!(["src/progress/bar.txt"]));
    assert_eq!(found["git_committed_files"], json!([]));
    let refused = progress(
        &scratch,
        &["reconcile", "--agent", "software-engineer-backend", "--pre-sha", "0123456789abcdef"],
        1,
    );
    assert!(refused.err.contains("0123456789abcdef"), "{}", refused.err);
}
