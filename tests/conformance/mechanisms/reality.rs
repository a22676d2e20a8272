//! What an attempt claims is held against what is there: files, changes in both directions, commits.

use crate::support::Scratch;

const DONE: &str = "steps: [ { id: code, role: coder, reply: REPLY, retry: { attempts_max: 1 } } ]";

fn blocked(reply: &str, agent: &str) -> String {
    let scratch = Scratch::with(&DONE.replace("REPLY", reply), agent);
    let run = scratch.run(11);
    let message = scratch.blocked_by(&run).1;
    assert!(message.contains("(reality)"), "{agent}: {message}");
    message
}

/// The completion of a stream, which lists every changed file.
fn completion(files: &str, commit: &str) -> String {
    format!(
        "printf '{{\"stream\":\"s\",\"status\":\"complete\",\"steps\":[{{\"name\":\"se\",\"status\":\"passed\"}}],\"git_sha\":\"%s\",\"files_modified\":{files},\"attempt\":1,\"started_at\":\"2026-01-01T00:00:00Z\",\"completed_at\":\"2026-01-01T00:00:00Z\",\"build_passed\":true}}\\n' \"{commit}\""
    )
}

#[test]
fn j_26_a_claimed_file_that_was_not_changed_in_this_attempt_is_no_work() {
    let message = blocked("brief", "code) brief DONE src/a.txt;;");
    assert!(message.contains("`src/a.txt`") && message.contains("not changed in this attempt"), "{message}");
}

#[test]
fn j_26_claimed_changes_agree_with_the_tree_in_both_directions() {
    let head = "$(git rev-parse HEAD)";
    let silent = blocked(
        "completion",
        &format!("code) echo b > src/a.txt; echo c > src/c.txt; {};;", completion("[\"src/a.txt\"]", head)),
    );
    assert!(silent.contains("changed but not named: src/c.txt"), "{silent}");
    let claimed = blocked(
        "completion",
        &format!("code) echo b > src/a.txt; {};;", completion("[\"src/a.txt\",\"src/gone.txt\"]", head)),
    );
    assert!(claimed.contains("src/gone.txt"), "{claimed}");
    let scratch = Scratch::with(
        &DONE.replace("REPLY", "completion"),
        &format!(
            "code) echo b > src/a.txt; echo c > src/c.txt; {};;",
            completion("[\"src/a.txt\",\"src/c.txt\"]", head)
        ),
    );
    scratch.run(0);
}

/// A file that is claimed because it was removed was changed.
#[test]
fn j_26_a_removed_file_is_a_change() {
    let scratch = Scratch::with(
        &DONE.replace("REPLY", "completion"),
        &format!("code) rm src/a.txt; {};;", completion("[\"src/a.txt\"]", "$(git rev-parse HEAD)")),
    );
    let run = scratch.run(0);
    assert_eq!(scratch.status(&run)["changed_files"][0]["change_type"], "deleted");
}

#[test]
fn claimed_commits_exist_on_the_branch_of_the_attempt() {
    let commit = "git -c user.name=x -c user.email=x@x commit -q";
    let claim = |deed: &str, sha: &str| {
        format!("code) echo b > src/a.txt; {deed}; {};;", completion("[\"src/a.txt\"]", sha))
    };
    let message = blocked("completion", &claim("true", "0123456789012345678901234567890123456789"));
    assert!(message.contains("does not exist"), "{message}");
    let other = format!(
        "git checkout -q -b other; {commit} -am x; sha=$(git rev-parse HEAD); git checkout -q main; echo b > src/a.txt"
    );
    let message = blocked("completion", &claim(&other, "$sha"));
    assert!(message.contains("not on the branch"), "{message}");
    let moved = format!("git checkout -q -b other; {commit} -am x");
    let message = blocked("completion", &claim(&moved, "$(git rev-parse HEAD)"));
    assert!(
        message.contains("not on the branch it worked on (`main`)"),
        "another was checked out: {message}"
    );
    // History is read as it is, not as a replacement shows it.
    let replaced = format!(
        "git checkout -q -b other; {commit} -am x; sha=$(git rev-parse HEAD); git checkout -q main; echo b > src/a.txt; \
         git replace --graft main $sha"
    );
    let message = blocked("completion", &claim(&replaced, "$sha"));
    assert!(message.contains("not on the branch"), "{message}");
    for made in [format!("{commit} -am x"), format!("{commit} --amend -am x"), "true".to_owned()] {
        let scratch =
            Scratch::with(&DONE.replace("REPLY", "completion"), &claim(&made, "$(git rev-parse HEAD)"));
        scratch.run(0);
    }
}

/// What an earlier attempt, or anybody before it, committed is not this attempt's work.
#[test]
fn claimed_commits_were_made_in_this_attempt() {
    let commit = "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x";
    let old =
        format!("code) echo b > src/a.txt; {};;", completion("[\"src/a.txt\"]", "$(git rev-parse HEAD~1)"));
    let scratch = Scratch::with(&DONE.replace("REPLY", "completion"), &old);
    let made = std::process::Command::new("sh").args(["-c", commit]).current_dir(scratch.root()).status();
    assert!(made.unwrap().success());
    let run = scratch.run(11);
    let message = scratch.blocked_by(&run).1;
    assert!(message.contains("was there before this attempt"), "{message}");
}

#[test]
fn a_claimed_commit_outside_of_a_repository_does_not_exist() {
    let claim = format!(
        "code) echo b > src/a.txt; {};;",
        completion("[\"src/a.txt\"]", "0123456789012345678901234567890123456789")
    );
    let scratch = Scratch::with(&DONE.replace("REPLY", "completion"), &claim);
    std::fs::remove_dir_all(scratch.root().join(".git")).unwrap();
    let run = scratch.run(11);
    let message = scratch.blocked_by(&run).1;
    assert!(message.contains("(reality)") && message.contains("is in no git repository"), "{message}");
}

/// S1-39: every file that any agent changed, with its type and the old name; also where there is no git.
#[test]
fn s1_39_changed_files_of_the_whole_run_are_data_for_templates_and_status() {
    for git in [true, false] {
        let scratch = Scratch::with(
            "
projections:
  - { file: files.json, json: { files: { $expr: run.changed_files } } }
steps:
  - { id: one, role: coder }
  - { id: two, role: coder, prompt: \"{% for f in run.changed_files %}{{ f.change_type }} {{ f.path }}; {% endfor %}\" }
",
            "
one) echo b >> src/a.txt; echo n > new; ok;;
two) rm new; mv src/long.txt src/moved.txt; ok;;
",
        );
        scratch.write("src/long.txt", &"a line that is long enough to be recognised\n".repeat(5));
        if !git {
            std::fs::remove_dir_all(scratch.root().join(".git")).unwrap();
        }
        let run = scratch.run(0);
        assert!(scratch.prompt("two", 1).contains("added new; modified src/a.txt;"), "git: {git}");
        let expected = serde_json::json!([
            {"path": "src/a.txt", "change_type": "modified"},
            {"path": "src/moved.txt", "change_type": "renamed", "old_path": "src/long.txt"},
        ]);
        assert_eq!(scratch.status(&run)["changed_files"], expected, "git: {git}");
        let file: serde_json::Value =
            serde_json::from_str(&scratch.published(&run, "files.json").unwrap()).unwrap();
        assert_eq!(file["files"], expected);
    }
}

/// Where every changed file has to be named, more than are listed cannot be held against what is named.
#[test]
fn j_26_more_changed_files_than_are_listed_are_too_many_for_a_claim() {
    let files = |number: u32| {
        let make = format!("mkdir -p many; for n in $(seq {number}); do echo $n > many/$n; done");
        let named = format!("files=$(seq -f '\"many/%g\"' -s , {number})");
        format!("code) {make}; {named}; {};;", completion("[%s]", "$(git rev-parse HEAD)\" \"$files"))
    };
    let scratch = Scratch::with(&DONE.replace("REPLY", "completion"), &files(2000));
    let run = scratch.run(0);
    assert_eq!(scratch.status(&run)["changed_files"].as_array().unwrap().len(), 2000);
    let message = blocked("completion", &files(2001));
    assert!(message.contains("changed 1 more files than the 2000 that are compared"), "{message}");
}

/// A command that was not found, or is no program, has not failed in a test.
#[test]
fn s0_20_what_cannot_be_run_is_not_red() {
    for command in ["no-such-program", "./src/a.txt"] {
        let workflow = format!(
            "checks: {{ red: {{ run: \"{command}\", expect_failure: true }} }}\nsteps: [ {{ id: tests, role: coder, checks: [red], retry: {{ attempts_max: 1 }} }} ]"
        );
        let scratch = Scratch::with(&workflow, "");
        let run = scratch.run(11);
        let message = scratch.blocked_by(&run).1;
        assert!(message.contains("not verified"), "{command}: {message}");
    }
    let fails = "checks: { red: { run: \"exit 1\", expect_failure: true } }\nsteps: [ { id: tests, role: coder, checks: [red] } ]";
    Scratch::with(fails, "").run(0);
}

/// A file that only became a program, or is none any more, is another file; as it was before it is none.
#[test]
fn s1_39_a_change_of_the_mode_alone_is_a_change() {
    for git in [true, false] {
        let scratch = Scratch::with(
            "steps: [ { id: one, role: coder }, { id: two, role: coder } ]",
            "one) chmod +x src/a.txt src/back.txt; ok;;\ntwo) chmod -x src/back.txt; ok;;",
        );
        scratch.write("src/back.txt", "there and back\n");
        if !git {
            std::fs::remove_dir_all(scratch.root().join(".git")).unwrap();
        }
        let run = scratch.run(0);
        let expected = serde_json::json!([{"path": "src/a.txt", "change_type": "modified"}]);
        assert_eq!(scratch.status(&run)["changed_files"], expected, "git: {git}");
    }
}

/// A check that is run again only as configured, and shown as flaky when that helped.
#[test]
fn a_flaky_check_is_run_again_as_configured_and_shown_as_flaky() {
    let workflow = |reruns: u32| {
        format!(
            "checks: {{ tests: {{ run: \"echo x >> $HOME/runs; test $(wc -l < $HOME/runs) -ge 3\", reruns: {reruns} }} }}\nsteps: [ {{ id: code, role: coder, checks: [tests], retry: {{ attempts_max: 1 }} }} ]"
        )
    };
    let flaky = Scratch::with(&workflow(2), "");
    let run = flaky.run(0);
    assert_eq!(flaky.step_state(&run, "code"), "passed_with_notes");
    assert!(flaky.step(&run, "code")["notes"].to_string().contains("flaky: it failed 2 time(s)"));
    assert_eq!(flaky.events_of(&run, "step.check.ended")[0]["fact"]["flaky"], 2);
    let strict = Scratch::with(&workflow(0), "");
    let run = strict.run(11);
    assert_eq!(strict.step_state(&run, "code"), "blocked");
}

/// A step that is a check: its command runs once, and once more only where `retry` says so.
#[test]
fn a_check_step_runs_again_as_configured_and_is_shown_as_flaky() {
    let workflow = |retry: &str| {
        format!(
            "checks: {{ tests: {{ run: \"echo x >> $HOME/runs; test $(wc -l < $HOME/runs) -ge 2\" }} }}\nsteps: [ {{ id: test, check: tests{retry} }} ]"
        )
    };
    for retry in ["", ", retry: { on_exhausted: [ask] }"] {
        let plain = Scratch::with(&workflow(retry), "");
        let run = plain.run(if retry.is_empty() { 11 } else { 10 });
        assert_eq!(plain.events_of(&run, "step.attempt.started").len(), 1);
        assert_eq!(std::fs::read_to_string(plain.home().join("runs")).unwrap(), "x\n");
    }
    let again = Scratch::with(&workflow(", retry: { attempts_max: 2 }"), "");
    let run = again.run(0);
    assert_eq!(again.step_state(&run, "test"), "passed_with_notes");
    let note = "check `tests` is flaky: it failed 1 time(s) before it was ok";
    assert_eq!(again.step(&run, "test")["notes"], serde_json::json!([note]));
    assert_eq!(again.events_of(&run, "step.passed")[0]["notes"], serde_json::json!([note]));
    let shown = again.gatewright(&["show", &run, "test"]).exits(0);
    assert!(shown.out.contains(note), "{}", shown.out);
}

/// S0-20: red by a failing test, not by code that does not build; then green.
#[test]
fn s0_20_red_is_confirmed_by_failing_tests_and_green_afterwards() {
    let workflow = "
checks:
  red: { run: \"cat result; exit $(cat code)\", expect_failure: true, tests_min: 1 }
  green: { run: \"cat result; exit $(cat code)\", tests_min: 1 }
steps:
  - { id: tests, role: coder, checks: [red], retry: { attempts_max: 1 } }
  - { id: build, role: coder, checks: [green], retry: { attempts_max: 1 } }
";
    let say = |result: &str, code: u32| format!("echo '{result}' > result; echo {code} > code; ok");
    let red = say("test result: FAILED. 1 passed; 2 failed; 0 ignored", 1);
    let green = say("test result: ok. 3 passed; 0 failed; 0 ignored", 0);
    let broken = say("error: could not compile", 1);
    let scratch = Scratch::with(workflow, &format!("tests) {red};;\nbuild) {green};;"));
    scratch.run(0);
    // It failed after all of its tests had passed: nothing is red.
    let unrelated = say("test result: ok. 3 passed; 0 failed; 0 ignored", 1);
    for (first, word) in [
        (green, "succeeded although it must fail first"),
        (broken, "not verified"),
        (unrelated, "it failed, but none of its tests did"),
    ] {
        let scratch = Scratch::with(workflow, &format!("tests) {first};;"));
        let run = scratch.run(11);
        assert!(scratch.blocked_by(&run).1.contains(word), "{}", scratch.blocked_by(&run).1);
    }
}

/// A file in its published place that was there before the attempt began is no output of the attempt.
#[test]
fn j_48_what_lay_in_the_run_directory_before_the_attempt_is_no_output() {
    let workflow = "
steps:
  - { id: before, role: planner }
  - { id: code, role: coder, writes: { report.md: any }, retry: { attempts_max: 1 } }
";
    let left = "before) mkdir -p $GATEWRIGHT_RUN_DIR; echo old > $GATEWRIGHT_RUN_DIR/report.md; touch -d 2020-01-01 $GATEWRIGHT_RUN_DIR/report.md; ok;;";
    let stale = Scratch::with(workflow, &format!("{left}\ncode) brief DONE report.md;;"));
    let run = stale.run(11);
    let (_, message) = stale.blocked_by(&run);
    assert!(message.contains("report.md"), "{message}");
    // The same place written by the attempt itself counts.
    let own = format!("{left}\ncode) echo new > $GATEWRIGHT_RUN_DIR/report.md; brief DONE report.md;;");
    let fresh = Scratch::with(workflow, &own);
    let run = fresh.run(0);
    assert_eq!(fresh.published(&run, "report.md").as_deref(), Some("new\n"));
}

/// S3-11: the next attempt gets what the check printed.
#[test]
fn s3_11_the_retry_prompt_carries_the_output_of_the_check() {
    let scratch = Scratch::with(
        "checks: { build: { run: \"echo first line; echo undefined name foo; echo last; exit 3\", class: build } }\nsteps: [ { id: code, role: coder, checks: [build], retry: { attempts_max: 2 } } ]",
        "",
    );
    scratch.run(11);
    let prompt = scratch.prompt("code", 2);
    assert!(prompt.contains("(build)") && prompt.contains("undefined name foo"), "{prompt}");
}

/// The commit that is claimed is looked for with git, which an agent may have told where to fetch what is missing.
#[test]
fn j_48_a_claimed_commit_that_is_missing_is_not_fetched_by_an_agents_program() {
    let missing = "1111111111111111111111111111111111111111";
    let scratch = Scratch::with(
        &DONE.replace("REPLY", "completion"),
        &format!(
            "code) git config core.repositoryformatversion 1; git config extensions.partialClone evil; git config remote.evil.promisor true; git config remote.evil.url \"ext::sh -c touch% $(dirname $PWD)/owned\"; git config protocol.ext.allow always; {};;",
            completion("[]", missing)
        ),
    );
    scratch.run(11);
    let owned = scratch.root().parent().unwrap().join("owned");
    assert!(!owned.exists(), "the engine ran what the agent had named");
    // The control: git itself would have run it.
    let _ = std::process::Command::new("git")
        .args(["cat-file", "-e", missing])
        .current_dir(scratch.root())
        .output();
    assert!(owned.exists(), "without the engine's care nothing happens either: this shows nothing");
}

/// Artifacts and projections are written below the run directory, not where a link leads that somebody put there.
#[test]
fn j_53_a_link_in_the_place_of_a_folder_leads_the_engine_nowhere() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, writes: { sub/plan.md: any } }, { id: more, role: coder, writes: { sub/more.md: any } } ]",
        "
code) mkdir -p $GATEWRIGHT_OUT/sub; echo mine > $GATEWRIGHT_OUT/sub/plan.md; rm -rf $GATEWRIGHT_RUN_DIR/sub; ln -s \"$PWD/precious\" $GATEWRIGHT_RUN_DIR/sub; brief DONE sub/plan.md;;
more) mkdir -p $GATEWRIGHT_OUT/sub; echo more > $GATEWRIGHT_OUT/sub/more.md; brief DONE sub/more.md;;
",
    );
    let precious = scratch.root().join("precious");
    std::fs::create_dir_all(&precious).unwrap();
    std::fs::write(precious.join("plan.md"), "the user's\n").unwrap();
    let run = scratch.run(0);
    assert_eq!(std::fs::read_to_string(precious.join("plan.md")).unwrap(), "the user's\n");
    assert!(!precious.join("more.md").exists());
    assert_eq!(scratch.published(&run, "sub/plan.md").as_deref(), Some("mine\n"));
    assert!(!scratch.events_of(&run, "intrusion.noticed").is_empty(), "nobody was told of the link");
}

/// Whoever names the folder of everything has named no change; a branch called like an id is no commit.
#[test]
fn j_26_a_claim_of_everything_and_a_name_that_looks_like_an_id_prove_nothing() {
    let silent = blocked(
        "completion",
        &format!("code) echo b > src/a.txt; {};;", completion("[\".\"]", "$(git rev-parse HEAD)")),
    );
    assert!(silent.contains("changed but not named: src/a.txt"), "{silent}");
    let named = blocked(
        "completion",
        &format!(
            "code) git branch deadbeef; echo b > src/a.txt; {};;",
            completion("[\"src/a.txt\"]", "deadbeef")
        ),
    );
    assert!(named.contains("claimed commit `deadbeef` does not exist"), "{named}");
}

/// A folder stands for nothing that is in it, changed or not.
#[test]
fn j_26_a_claimed_folder_is_no_claim_of_its_files() {
    let head = "$(git rev-parse HEAD)";
    let listed = blocked(
        "completion",
        &format!("code) echo b > src/a.txt; echo c > src/c.txt; {};;", completion("[\"src\"]", head)),
    );
    assert!(listed.contains("`src` is a folder") && listed.contains("name each file"), "{listed}");
    assert!(listed.contains("changed but not named: src/a.txt, src/c.txt"), "{listed}");
    let brief = blocked("brief", "code) echo b > src/a.txt; brief DONE src;;");
    assert!(brief.contains("`src` is a folder"), "{brief}");
}

/// A file among the artifacts that nobody declared does not stand for one of the tree, whatever it is called.
#[test]
fn j_26_a_file_beside_the_artifacts_stands_for_none_in_the_tree() {
    let out = "mkdir -p $GATEWRIGHT_OUT/src; echo x > $GATEWRIGHT_OUT/src/a.txt";
    let message = blocked("brief", &format!("code) {out}; brief DONE src/a.txt;;"));
    assert!(message.contains("not changed in this attempt"), "{message}");
    let message = blocked(
        "completion",
        &format!("code) {out}; {};;", completion("[\"src/a.txt\"]", "$(git rev-parse HEAD)")),
    );
    assert!(message.contains("not changed in this attempt"), "{message}");
    let message = blocked("brief", "code) echo x > $GATEWRIGHT_OUT/new.rs; brief DONE src/new.rs;;");
    assert!(message.contains("`src/new.rs`") && message.contains("not found"), "{message}");
}

#[test]
fn j_53_a_link_that_leads_nowhere_is_no_file() {
    let message = blocked("brief", "code) ln -s /nonexistent/zz src/new.rs; brief DONE src/new.rs;;");
    assert!(message.contains("`src/new.rs` is a link that leads nowhere"), "{message}");
}

/// From a worktree the user's checkout is not the attempt's own.
#[test]
fn j_26_a_file_of_the_users_checkout_is_no_work_of_a_worktree() {
    let scratch = Scratch::with(
        &format!("isolation: worktree\n{}", DONE.replace("REPLY", "brief")),
        "code) touch $HOME/../repo/notes.txt; brief DONE notes.txt;;",
    );
    scratch.write("notes.txt", "mine\n");
    let run = scratch.run(11);
    let message = scratch.blocked_by(&run).1;
    assert!(message.contains("`notes.txt`") && message.contains("not found"), "{message}");
}

/// A file of an earlier attempt stays one, whatever time it claims to have.
#[test]
fn j_02_a_published_file_of_an_earlier_attempt_does_not_count_for_a_later_one() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, reply: brief, writes: { report.md: any }, retry: { attempts_max: 2 } } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo old > $GATEWRIGHT_RUN_DIR/report.md; touch -d 2099-01-01 $GATEWRIGHT_RUN_DIR/report.md; exit 1; fi; brief DONE report.md;;",
    );
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("report.md"), "{message}");
}

/// A check runs in the tree that it judges, not where a link leads.
#[test]
fn j_53_the_folder_of_a_check_is_not_followed_out_of_the_tree() {
    let scratch = Scratch::with(
        "
checks: { tests: { run: \"sh test.sh\", cwd: pkg } }
steps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 1 } } ]
",
        "code) mkdir -p $HOME/fake; echo 'exit 0' > $HOME/fake/test.sh; mv pkg src/old; ln -s $HOME/fake pkg; ok;;",
    );
    scratch.write("pkg/test.sh", "exit 1\n");
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("its folder `pkg` leads out of"), "{message}");
    // A link inside the tree is a way to write it.
    let scratch = Scratch::with(
        "
checks: { tests: { run: \"sh test.sh\", cwd: pkg } }
steps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 1 } } ]
",
        "code) mv pkg src/pkg; ln -s src/pkg pkg; ok;;",
    );
    scratch.write("pkg/test.sh", "exit 0\n");
    scratch.run(0);
}

/// S1-39: what checks and check steps change is changed by the run like anything else.
#[test]
fn s1_39_files_that_checks_change_are_changed_files_of_the_run() {
    let scratch = Scratch::with(
        "
checks: { fmt: { run: \"echo formatted > src/a.txt\" }, gen: { run: \"echo made > src/made.txt\" } }
steps: [ { id: code, role: coder, checks: [gen] }, { id: fmt, check: fmt }, { id: two, role: coder } ]
",
        "code) echo b > src/b.txt; ok;;",
    );
    let run = scratch.run(0);
    let changed = scratch.status(&run)["changed_files"].clone();
    let list: Vec<String> = changed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", one["change_type"].as_str().unwrap(), one["path"].as_str().unwrap()))
        .collect();
    assert_eq!(list, ["modified src/a.txt", "added src/b.txt", "added src/made.txt"]);
}

/// J-47: nobody asked for a number of tests, but the output itself says that there were none.
#[test]
fn j_47_runners_that_found_nothing_to_run_verify_nothing() {
    for said in ["?   \\texample.org/p\\t[no test files]", "No tests found, exiting with code 0"] {
        let scratch = Scratch::with(
            "checks: { tests: { run: \"sh said.sh\" } }\nsteps: [ { id: tests, check: tests } ]",
            "",
        );
        scratch.write("said.sh", &format!("printf '{said}\\n'\n"));
        let run = scratch.run(11);
        let (_, message) = scratch.blocked_by(&run);
        assert!(message.contains("is not verified: 0 test(s) ran"), "{said}: {message}");
    }
}

/// Of a long output the record has the end; all that is kept is shown by `logs`.
#[test]
fn the_output_of_a_check_is_kept_from_its_head_and_from_its_tail() {
    for (exit, code) in [("0", 0), ("1", 11)] {
        let scratch = Scratch::with(
            "checks: { tests: { run: \"sh said.sh\" } }\nsteps: [ { id: tests, check: tests } ]",
            "",
        );
        scratch.write("said.sh", &format!("seq 1 100000; exit {exit}\n"));
        let run = scratch.run(code);
        let logs = scratch.gatewright(&["logs", &run]).exits(0).out;
        let lines: Vec<&str> = logs.lines().collect();
        assert_eq!(lines[..3], ["1", "2", "3"], "its head");
        assert_eq!(lines.last(), Some(&"100000"), "its tail");
        assert!(logs.contains("bytes left out"), "its middle");
        assert!((128_000..140_000).contains(&logs.len()), "{}", logs.len());
    }
}
