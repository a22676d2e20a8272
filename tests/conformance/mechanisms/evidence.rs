//! Evidence: checks with test counts, names of loop files, files that are read back, liveness.

use crate::{
    s0::chain::Chain,
    support::{Scratch, text},
};

fn counted(run: &str, more: &str) -> Scratch {
    let checks = format!("checks:\n  tests: {{ run: \"{run}\"{more} }}\n");
    Scratch::with(
        &format!(
            "{checks}steps:\n  - {{ id: code, role: coder, checks: [tests], retry: {{ attempts_max: 1 }} }}\n  - {{ id: next, role: coder }}\n"
        ),
        "",
    )
}

#[test]
fn j_47_tests_that_did_not_run_verify_nothing() {
    for (output, why) in [
        ("echo 'test result: ok. 0 passed; 0 failed; 7 ignored'", "0 test(s) ran"),
        ("echo no tests ran in 0.01s", "0 test(s) ran"),
        ("echo all good", "names no number of tests"),
    ] {
        let scratch = counted(output, ", tests_min: 1");
        let run = scratch.run(11);
        assert!(scratch.blocked_by(&run).1.contains(why), "{output}: {:?}", scratch.blocked_by(&run));
        assert_eq!(scratch.count("next"), 0);
    }
    let skipped =
        counted("echo 'test result: ok. 3 passed; 0 failed; 7 ignored'", ", tests_min: 1, skipped_max: 2");
    let run = skipped.run(11);
    assert!(skipped.blocked_by(&run).1.contains("7 test(s) were skipped"));
    let enough = counted("echo 'test result: ok. 3 passed; 0 failed; 0 ignored'", ", tests_min: 3");
    let run = enough.run(0);
    assert_eq!(enough.events_of(&run, "step.check.ended")[0]["fact"]["tests"]["run"], 3);
}

/// Of long output the middle is not kept, but it is read.
#[test]
fn j_47_what_a_long_output_says_in_its_middle_counts() {
    let long = "yes filler | head -n 60000";
    let red = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'";
    let green = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'";
    let hidden = counted(&format!("{long}; {red}; {long}; {green}"), ", tests_min: 1");
    let run = hidden.run(11);
    let said = hidden.blocked_by(&run).1;
    assert!(said.contains("2 test(s) failed although it exited with 0"), "{said}");
    let enough = counted(&format!("{green}; {long}; {green}; {long}; {green}"), ", tests_min: 9");
    let run = enough.run(0);
    assert_eq!(enough.events_of(&run, "step.check.ended")[0]["fact"]["tests"]["run"], 9);
}

/// Two programs' tests in one command: the second does not speak for the first.
#[test]
fn j_47_a_green_summary_hides_no_red_one_before_it() {
    let both = counted(
        "echo '=== 1 failed, 2 passed in 0.1s ==='; echo 'test result: ok. 9 passed; 0 failed; 0 ignored'",
        ", tests_min: 1",
    );
    let run = both.run(11);
    assert!(both.blocked_by(&run).1.contains("1 test(s) failed"), "{}", both.blocked_by(&run).1);
}

/// A report that breaks off says nothing about what is missing, and what was not run is no test that ran.
#[test]
fn j_47_a_junit_report_that_breaks_off_or_names_no_test_that_ran_verifies_nothing() {
    for (report, said) in [
        ("<testsuites><testsuite><testcase name='a'/>", "not a complete JUnit report"),
        ("<testsuite><testcase name='a' status='notrun'/></testsuite>", "0 test(s) ran"),
    ] {
        let scratch =
            counted(&format!("cat > r.xml <<END\n{report}\nEND").replace('\n', "\\n"), ", junit: r.xml");
        let run = scratch.run(11);
        assert!(scratch.blocked_by(&run).1.contains(said), "{}", scratch.blocked_by(&run).1);
    }
}

/// Nobody has to say that a command runs tests for it to prove nothing when none ran; one that speaks of no tests is
/// judged by how it ends.
#[test]
fn j_47_a_command_that_says_itself_that_no_test_ran_verifies_nothing() {
    let none = counted("echo 'test result: ok. 0 passed; 0 failed; 3 ignored'", "");
    let run = none.run(11);
    assert!(none.blocked_by(&run).1.contains("0 test(s) ran"), "{}", none.blocked_by(&run).1);
    let broken = counted("echo '1 error in 0.1s'; exit 2", ", expect_failure: true");
    let run = broken.run(11);
    assert!(broken.blocked_by(&run).1.contains("none of its tests did"), "{}", broken.blocked_by(&run).1);
    counted("true", "").run(0);
    counted("test -e nothing", ", expect_failure: true").run(0);
    counted("echo '1 failed, 2 passed in 0.1s'; exit 1", ", expect_failure: true").run(0);
}

/// The agent says that tests pass; the engine runs them itself.
#[test]
fn j_25_an_agents_word_about_tests_proves_nothing() {
    let scratch = Scratch::with(
        "
checks:
  tests: { run: \"cat tests.log\", junit: report.xml, tests_min: 1 }
steps:
  - { id: code, role: coder, checks: [tests], retry: { attempts_max: 2 } }
",
        // The report is left by the agent, not by a test run: it does not count.
        "code) echo '<testsuite><testcase name=\"a\"/></testsuite>' > report.xml; echo ok > tests.log; brief DONE none 'All 12 tests pass.';;",
    );
    let run = scratch.run(11);
    let (reason, message) = scratch.blocked_by(&run);
    assert!(message.contains("not verified"), "{reason}: {message}");
    assert_eq!(scratch.count("code"), 2);
}

#[test]
fn s0_34_loop_files_are_named_after_their_round() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - id: performance
    review: code
    by: reviewer
    rounds_max: 5
    writes: { \"loop-iterations/performance-review-{{ round }}.md\": { contract: any, first: performance.md } }
    fix:
      role: coder
      writes: { \"loop-iterations/performance-fix-{{ steps['performance'].round - 1 }}.md\": any }
",
        "
code) ok;;
performance-fix) wrote loop-iterations/performance-fix-$((GATEWRIGHT_ROUND - 1)).md;;
performance)
  if [ $GATEWRIGHT_ROUND = 1 ]; then put performance.md; brief FAIL performance.md; else f=loop-iterations/performance-review-$GATEWRIGHT_ROUND.md; put $f; if [ $GATEWRIGHT_ROUND = 3 ]; then brief PASS $f; else brief FAIL $f; fi; fi;;
",
    );
    let run = scratch.run(0);
    for name in [
        "performance.md",
        "loop-iterations/performance-fix-1.md",
        "loop-iterations/performance-review-2.md",
        "loop-iterations/performance-fix-2.md",
        "loop-iterations/performance-review-3.md",
    ] {
        assert!(scratch.published(&run, name).is_some(), "{name}");
    }
    assert!(
        scratch.published(&run, "loop-iterations/performance-review-1.md").is_none(),
        "the first review has its own name"
    );
    assert_eq!(scratch.step(&run, "performance")["rounds"], 3);
}

const PROJECTED: &str = "
projections:
  - { file: status.json, json: { state: { $expr: run.state }, request: { $expr: request }, open: { $for: \"d in decisions\", each: { $expr: d.status } } } }
steps:
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder }
";

/// The file a gate is told by is read back after it was written; what somebody else made of it is
/// never read, only written anew.
#[test]
fn s1_20_a_forged_state_file_opens_no_gate_and_is_written_anew() {
    let scratch = Scratch::with(PROJECTED, "");
    let run = scratch.run(10);
    let read = || {
        serde_json::from_str::<serde_json::Value>(&scratch.published(&run, "status.json").unwrap()).unwrap()
    };
    assert_eq!(read()["open"][0], "pending", "written before anybody is asked");
    std::fs::write(
        scratch.run_dir(&run).join("status.json"),
        "{\"state\": \"done\", \"open\": [\"answered\"]}",
    )
    .unwrap();
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(scratch.count("code"), 0);
    assert_eq!(read()["open"][0], "pending");
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    assert_eq!(
        (text(&read()["state"]), text(&read()["open"][0])),
        ("done".to_owned(), "answered".to_owned())
    );
}

/// A state file that cannot be written blocks the run; what was decided is kept.
#[test]
fn s1_21_a_state_file_that_cannot_be_written_blocks_the_run_and_loses_nothing() {
    let scratch = Scratch::with(PROJECTED, "");
    let run = scratch.run(10);
    let file = scratch.run_dir(&run).join("status.json");
    std::fs::remove_file(&file).unwrap();
    // A folder in its place cannot be replaced by a file.
    std::fs::create_dir_all(file.join("in the way")).unwrap();
    let refused = scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(11);
    assert!(refused.err.contains("status.json: cannot write it: "), "{}", refused.err);
    assert!(refused.err.contains(&format!("hint: gatewright resume {run}")), "{}", refused.err);
    let (reason, message) = scratch.blocked_by(&run);
    assert!(reason == "unwritten" && message.contains("status.json"), "{reason}: {message}");
    assert_eq!(scratch.called(), Vec::<String>::new(), "nobody works for people who cannot see it");
    // It is tried again when somebody says so, and not before.
    scratch.gatewright(&["resume", &run]).exits(11);
    std::fs::remove_dir_all(&file).unwrap();
    assert_eq!(scratch.decision(&run, "agree")["status"], "answered", "the answer was durable before");
    assert_eq!(scratch.status(&run)["state"], "blocked");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.events_of(&run, "decision.answered").len(), 1, "nobody was asked twice");
}

/// Silent and unfinished is hung: ended, tried again, and the next one counts.
#[test]
fn s3_13_a_hung_attempt_is_ended_and_tried_again() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, idle_timeout: 300ms, timeout: 30s, retry: { attempts_max: 2 } } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then sleep 60; fi; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.count("code"), 2);
    assert_eq!(scratch.events_of(&run, "step.retry.scheduled")[0]["class"], "idle");
}

/// Output that goes on is life, however long it takes.
#[test]
fn s3_13_an_attempt_that_speaks_is_not_hung() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, idle_timeout: 1s, timeout: 30s, retry: { attempts_max: 1 } } ]",
        "code) for i in 1 2 3 4 5 6 7 8; do echo at work; sleep 0.25; done; ok;;",
    );
    scratch.run(0);
}

#[test]
fn s1_43_s1_42_a_run_that_rests_at_a_gate_resumes_there() {
    let scratch = Scratch::with(PROJECTED, "");
    let run = scratch.run(10);
    for _ in 0..3 {
        scratch.gatewright(&["resume", &run]).exits(10);
    }
    assert_eq!(scratch.events_of(&run, "decision.opened").len(), 1, "resuming asks nothing anew");
    assert_eq!(scratch.called(), Vec::<String>::new());
}

/// Everything in the run directory is derived: deleted, it comes back byte for byte.
#[test]
fn s4_34_the_run_directory_is_rebuilt_identically() {
    let scratch = Scratch::with(
        "
projections:
  - { file: status.json, json: { state: { $expr: run.state }, at: { $expr: \"run.updated_at | iso\" }, steps: { $for: \"s in step_list\", $key: s.id, each: { $expr: s.state } } } }
  - { file: tasks.yaml, yaml: { note: \"yes: 'no'\", text: { $expr: request } } }
  - { file: log.jsonl, jsonl: { $for: \"s in step_list\", each: { id: { $expr: s.id }, state: { $expr: s.state } } } }
  - { file: report.md, markdown: \"# {{ request }}\\n\\n{% for s in step_list %}- {{ s.id }}: {{ s.state }}\\n{% endfor %}\" }
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"Go?\", show: [plan.md], answers: { approved: pass, no: block } }
",
        "plan) wrote plan.md;;",
    );
    let run = scratch.run(10);
    let names = ["status.json", "tasks.yaml", "log.jsonl", "report.md", "plan.md"];
    let before: Vec<Option<String>> = names.iter().map(|name| scratch.published(&run, name)).collect();
    assert!(before.iter().all(Option::is_some), "{before:?}");
    std::fs::remove_dir_all(scratch.run_dir(&run)).unwrap();
    scratch.gatewright(&["resume", &run]).exits(10);
    let after: Vec<Option<String>> = names.iter().map(|name| scratch.published(&run, name)).collect();
    assert_eq!(after, before);
}

/// The last program of a pipe says how the command ends; the tests say how they ended.
#[test]
fn j_47_tests_that_failed_are_not_made_good_by_an_exit_code_of_zero() {
    let failed = counted("echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'", ", tests_min: 1");
    let run = failed.run(11);
    assert!(failed.blocked_by(&run).1.contains("2 test(s) failed although it exited with 0"));
}

/// A report is read and removed where the check runs, not where a link leads, and a pipe is not waited for.
#[test]
fn j_53_a_report_that_leads_elsewhere_is_neither_read_nor_removed() {
    for (make, said) in [
        ("ln -s ../precious reports", "leads out of the folder"),
        ("mkdir reports; mkfifo reports/r.xml; touch keep", "is not a file"),
    ] {
        // What the check leaves is what the agent left: it makes no report of its own.
        let scratch = Scratch::with(
            "
checks: { tests: { run: \"test -e keep && mkfifo reports/r.xml; true\", junit: reports/r.xml } }
steps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 1 } } ]
",
            &format!("code) {make}; ok;;"),
        );
        let report = scratch.root().parent().unwrap().join("precious/r.xml");
        std::fs::create_dir_all(report.parent().unwrap()).unwrap();
        std::fs::write(&report, "<testsuite><testcase name=\"a\"/></testsuite>").unwrap();
        let run = scratch.run(11);
        assert!(scratch.blocked_by(&run).1.contains(said), "{}", scratch.blocked_by(&run).1);
        assert!(report.exists(), "a file of the user's was removed");
    }
}

/// Code that does not build is not red, and what names no tests is neither red nor green (S0-20).
#[test]
fn s0_20_a_method_that_demands_red_tests_takes_no_build_error_for_them() {
    let tested = |suite: &str| {
        let scratch = Chain::project("");
        scratch.write("suite.sh", suite);
        let flags = [
            "--profile",
            "tested",
            "--set",
            "test=sh suite.sh",
            "--set",
            "steps.tests-design.retry.attempts_max=1",
        ];
        let mut words = vec!["run", "report-chain", "End other sessions"];
        words.extend(flags);
        let run = scratch.gatewright(&words).id();
        (scratch, run)
    };
    for suite in ["echo 'error: could not compile'; exit 101", "exit 1", "echo '2 errors in 0.1s'; exit 2"] {
        let (scratch, run) = tested(suite);
        let checks = scratch.events_of(&run, "step.check.ended");
        assert!(
            checks[0]["fact"]["message"].as_str().unwrap().contains("not verified"),
            "{suite}: {checks:?}"
        );
        assert_eq!(scratch.count("tests-review"), 0, "{suite}");
    }
    let (scratch, run) = tested("echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101");
    assert_eq!(scratch.events_of(&run, "step.check.ended")[0]["fact"]["ok"], true);
    assert_eq!(scratch.count("tests-review"), 1, "red is confirmed");
}

/// A file that git reads has become a pipe: nobody waits for it, and it is named.
#[test]
fn a_pipe_where_git_reads_is_named_and_not_waited_for() {
    for (pipe, git) in
        [(".gitignore", true), (".git/config", true), (".git/info/exclude", true), (".gitignore", false)]
    {
        let scratch = Scratch::with(
            "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
            &format!("code) rm -f {pipe}; mkfifo {pipe}; ok;;"),
        );
        if !git {
            std::fs::remove_dir_all(scratch.root().join(".git")).unwrap();
        }
        let started = std::time::Instant::now();
        let run = scratch.run(11);
        assert!(started.elapsed() < std::time::Duration::from_mins(1), "{pipe}");
        let said = scratch.blocked_by(&run).1;
        assert!(said.contains(pipe), "git: {git}: {said}");
    }
}

/// What git passes over is a change all the same.
#[test]
fn a_pipe_or_socket_under_a_protected_name_is_noticed() {
    for name in [".env", "sub/.env.local"] {
        let scratch = Scratch::with(
            "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
            &format!("code) mkdir -p sub; mkfifo {name}; ok;;"),
        );
        let run = scratch.run(11);
        let said = scratch.blocked_by(&run).1;
        assert!(said.contains(&format!("changed protected files: {name} (added)")), "{said}");
    }
    let ignored = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
        "code) mkfifo .env; ok;;",
    );
    ignored.write(".gitignore", ".env\n");
    let run = ignored.run(11);
    assert!(ignored.blocked_by(&run).1.contains(".env (added)"), "{}", ignored.blocked_by(&run).1);
}

/// What an item is called by is shown everywhere, and names folders and branches.
#[test]
fn a_secret_is_no_id_of_an_item() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: each, for_each: tasks.yaml, steps: [ { id: do, role: coder } ] }
",
        &format!(
            "plan) echo '- {{ id: sk-ant-{} }}' > $GATEWRIGHT_OUT/tasks.yaml; brief DONE tasks.yaml;;",
            "abcdefghij".repeat(2)
        ),
    );
    let run = scratch.gatewright(&["run", "w", "Go"]).id();
    let journal = std::fs::read_to_string(scratch.state_dir(&run).join("journal.jsonl")).unwrap();
    assert!(journal.contains("looks like a secret"), "{journal}");
    assert!(!journal.contains("abcdefghijabcdefghij"), "{journal}");
    assert_eq!(scratch.count("do"), 0);
}
