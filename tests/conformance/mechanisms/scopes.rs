//! Write scopes: what a role may not touch fails its attempt, is named, and can be undone.

use crate::support::{Scratch, wait_for};

const SCOPED: &str = "
roles:
  coder: { prompt: Build it., may_write: [\"src/**\", \"!src/generated/**\"] }
  reviewer: { prompt: Review it., may_write: [] }
steps:
  - { id: code, role: coder, retry: { attempts_max: 2 } }
  - { id: review, review: code, by: reviewer, retry: { attempts_max: 2 } }
";

fn read(scratch: &Scratch, name: &str) -> Option<String> {
    std::fs::read_to_string(scratch.root().join(name)).ok()
}

#[test]
fn a_change_inside_the_scope_is_none_of_the_engines_business() {
    let scratch = Scratch::with(
        SCOPED,
        "code) echo b > src/a.txt; mkdir -p src/x; echo c > src/x/c; ok;;\nreview) approve;;",
    );
    let run = scratch.run(0);
    let changed = scratch.status(&run)["changed_files"].clone();
    assert_eq!(changed[0]["path"], "src/a.txt", "{changed}");
    assert_eq!(changed[0]["change_type"], "modified");
    assert_eq!(changed[1]["path"], "src/x/c");
    assert_eq!(changed[1]["change_type"], "added");
}

/// The role and the files are named, whatever kind of change it is and whatever the agent says of it.
#[test]
fn a_change_outside_the_scope_fails_the_attempt_and_names_role_and_files() {
    for (deed, file) in [
        ("echo x > new.txt", "new.txt (added)"),
        ("mkdir -p src/generated; echo x > src/generated/y", "src/generated/y (added)"),
        ("rm README.md", "README.md (deleted)"),
        ("mv README.md src/README.md", "README.md (deleted)"),
        ("git update-index --assume-unchanged README.md; echo x > README.md", "README.md (modified)"),
        ("echo x > README.md; git add -A; git commit -qm x", "README.md (modified)"),
        ("git init -q inner; echo x > inner/x", "inner/x (added)"),
    ] {
        let once = SCOPED.replace("attempts_max: 2", "attempts_max: 1");
        let scratch = Scratch::with(&once, &format!("code) {deed}; ok;;\nreview) approve;;"));
        scratch.write("README.md", "read me, and read me again\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-q", "-m", "readme"]);
        let run = scratch.run(11);
        let (_, message) = scratch.blocked_by(&run);
        assert!(message.contains("`coder`") && message.contains(file), "{deed}: {message}");
        assert!(message.contains("(reality)"), "{deed}: {message}");
        assert_eq!(scratch.count("review"), 0, "{deed}");
    }
}

/// A reader that edits what it judges is not heard, however content it is.
#[test]
fn s3_22_a_reviewer_that_changes_code_is_not_heard() {
    let once = SCOPED.replace("attempts_max: 2", "attempts_max: 1");
    let scratch = Scratch::with(&once, "code) ok;;\nreview) echo mended > src/a.txt; approve;;");
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("`reviewer`") && message.contains("src/a.txt (modified)"), "{message}");
    assert_eq!(scratch.step_state(&run, "review"), "blocked");
}

/// What was changed stays (it may be a person's), and counts against the next attempt until it is gone.
#[test]
fn a_trespass_that_is_left_there_fails_the_next_attempt_too() {
    let scratch = Scratch::with(
        SCOPED,
        "code) case $GATEWRIGHT_ATTEMPT in 1) echo x > new.txt;; esac; ok;;\nreview) approve;;",
    );
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("new.txt (since attempt 1)"), "{message}");
    assert!(read(&scratch, "new.txt").is_some(), "nothing was thrown away");
    assert!(scratch.prompt("code", 2).contains("new.txt"), "the next attempt is told");
    std::fs::remove_file(scratch.root().join("new.txt")).unwrap();
    scratch.gatewright(&["resume", &run]).exits(0);
}

#[test]
fn an_attempt_may_undo_what_an_earlier_one_should_not_have_touched() {
    let scratch = Scratch::with(
        SCOPED,
        "code) case $GATEWRIGHT_ATTEMPT in 1) echo x > new.txt;; 2) rm new.txt;; esac; ok;;\nreview) approve;;",
    );
    scratch.run(0);
}

/// `on_trespass: restore`: the tree is as before, uncommitted work of the user included; the change is kept.
#[test]
fn a_trespass_is_undone_where_that_is_configured_and_kept_as_a_patch() {
    let scratch = Scratch::with(
        SCOPED,
        "code) case $GATEWRIGHT_ATTEMPT in 1) echo evil > README.md; echo x > new.txt; echo good > src/a.txt;; esac; ok;;\nreview) approve;;",
    );
    scratch.config("on_trespass: restore");
    scratch.write("README.md", "committed\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "readme"]);
    scratch.write("README.md", "not committed yet\n");
    let run = scratch.run(0);
    assert_eq!(read(&scratch, "README.md").as_deref(), Some("not committed yet\n"));
    assert_eq!(read(&scratch, "new.txt"), None);
    assert_eq!(read(&scratch, "src/a.txt").as_deref(), Some("good\n"), "what it may write stays");
    let message = scratch.events_of(&run, "step.retry.scheduled")[0]["message"].as_str().unwrap().to_owned();
    let patch = message.split("kept in ").nth(1).unwrap().trim().to_owned();
    let patch = std::fs::read_to_string(patch).unwrap();
    assert!(patch.contains("+evil") && patch.contains("new.txt"), "{patch}");
}

/// Also those that git knows, and for a role that may change everything else.
#[test]
fn tracked_files_that_are_protected_are_nobodys() {
    for file in [".env", "deep/.env.local", ".gatewright/notes.md", "secrets/key"] {
        for (deed, how) in [("echo x >>", "modified"), ("rm", "deleted")] {
            let scratch = Scratch::with(
                "
roles: { coder: { prompt: p } }
protect: [\"secrets/**\"]
steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]
",
                &format!("code) echo b > src/a.txt; {deed} {file}; ok;;"),
            );
            scratch.write(file, "mine\n");
            scratch.git(&["add", "-A", "-f"]);
            scratch.git(&["commit", "-qm", "all of it"]);
            let run = scratch.run(11);
            let (_, message) = scratch.blocked_by(&run);
            assert!(message.contains(&format!("{file} ({how})")), "{message}");
            assert!(!message.contains("src/a.txt"), "the rest is its own: {message}");
        }
    }
}

/// Decision 28: ignored files are free, protected ones are not, for any role.
#[test]
fn ignored_files_are_free_except_protected_ones() {
    let workflow = "
roles: { coder: { prompt: p, may_write: [\"src/**\"] }, other: { prompt: p } }
protect: [\"secrets/**\"]
steps: [ { id: code, role: ROLE, retry: { attempts_max: 1 } } ]
";
    for (role, deed, touched) in [
        ("coder", "mkdir -p target; echo x > target/x; echo x > a.log", ""),
        ("coder", "echo x > .env", ".env (modified)"),
        ("other", "echo x > .env.local", ".env.local (added)"),
        ("other", "mkdir -p deep/er; echo x > deep/er/.env", "deep/er/.env (added)"),
        ("other", "echo x >> .git/config", ".git/config (modified)"),
        ("other", "echo x > .git/hooks/post-commit", ".git/hooks/post-commit (added)"),
        ("other", "echo x > .gatewright/workflows/evil.yaml", ".gatewright/workflows/evil.yaml (added)"),
        ("other", "echo x > secrets/key", "secrets/key (modified)"),
    ] {
        let scratch = Scratch::with(&workflow.replace("ROLE", role), &format!("code) {deed}; ok;;"));
        scratch.write(".gitignore", "target/\n*.log\n.env*\nsecrets/\n");
        scratch.write(".env", "KEY=1\n");
        scratch.write("secrets/key", "1\n");
        if touched.is_empty() {
            scratch.run(0);
            continue;
        }
        let run = scratch.run(11);
        let (_, message) = scratch.blocked_by(&run);
        assert!(message.contains(touched) && message.contains(&format!("`{role}`")), "{deed}: {message}");
    }
}

/// Another step's artifact is not this one's to write.
#[test]
fn an_artifact_of_another_step_is_protected() {
    let scratch = Scratch::with(
        "
roles: { planner: { prompt: p }, coder: { prompt: p, may_write: [\"src/**\"] } }
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: code, role: coder, reads: [plan.md], retry: { attempts_max: 1 } }
",
        "plan) wrote plan.md;;\ncode) echo easier > $GATEWRIGHT_RUN_DIR/plan.md; ok;;",
    );
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("plan.md"), "{message}");
}

/// A snapshot survives the engine: whoever collects the attempt compares with the tree before its launch.
#[test]
fn j_51_the_tree_before_the_launch_is_known_to_the_next_engine() {
    let scratch =
        Scratch::with(SCOPED, "code) echo x > new.txt; mark written; await go; ok;;\nreview) approve;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("written");
    engine.kill();
    scratch.mark("go");
    wait_for("the agent has ended", || scratch.processes().is_empty().then_some(()));
    scratch.gatewright(&["resume", &run]).exits(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("new.txt"), "{message}");
}

/// Decision 27, inside one run: overlapping writers one after the other, disjoint ones together.
#[test]
fn writers_of_the_same_files_are_never_there_together() {
    let scratch = Scratch::with(
        "
roles:
  one: { prompt: p, may_write: [\"src/**\"] }
  two: { prompt: p, may_write: [\"src/a.txt\"] }
  docs: { prompt: p, may_write: [\"docs/**\"] }
steps:
  - { id: one, role: one, needs: [] }
  - { id: two, role: two, needs: [] }
  - { id: docs, role: docs, needs: [] }
",
        "
one) mark one; await docs; await go; echo 1 > src/b; ok;;
docs) await one; mark docs; mkdir -p docs; echo d > docs/d; ok;;
two) mark two; echo 2 > src/a.txt; ok;;
",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("docs");
    let why = wait_for("two waits and says why", || {
        let ran = scratch.gatewright(&["why", &run, "two"]);
        ran.out.contains("same checkout").then_some(ran.out)
    });
    assert!(why.contains("`one`"), "{why}");
    assert!(!scratch.home().join("two").exists());
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.most_at_once(&run, |step| step == "one" || step == "two"), 1);
}

/// Decision 27: a role that names no scope may change every file, so nobody is there beside it.
#[test]
fn a_role_without_a_scope_is_alone_in_the_checkout() {
    let scratch = Scratch::with(
        "
roles:
  any: { prompt: p }
  docs: { prompt: p, may_write: [\"docs/**\"] }
  reader: { prompt: p, may_write: [] }
checks: { quick: { run: \"true\" } }
steps:
  - { id: one, role: any, needs: [] }
  - { id: two, role: any, needs: [] }
  - { id: docs, role: docs, needs: [] }
  - { id: look, role: reader, needs: [] }
  - { id: proof, check: quick, needs: [] }
",
        "*) mark at-$GATEWRIGHT_STEP; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    let why = wait_for("a second one waits and says why", || {
        let all = ["one", "two"].map(|step| scratch.gatewright(&["why", &run, step]).out);
        all.into_iter().find(|why| why.contains("same checkout"))
    });
    assert!(why.contains("one writer at a time"), "{why}");
    scratch.mark("go");
    engine.ended().exits(0);
    for beside in ["one", "docs", "look", "proof"] {
        assert_eq!(scratch.most_at_once(&run, |step| step == "two" || step == beside), 1, "{beside}");
    }
}

/// A step's own globs come before those of its role: for the agent, for the check, and for who may be beside it.
#[test]
fn a_step_has_a_narrower_scope_than_its_role() {
    let scratch = Scratch::with(
        "
roles: { coder: { prompt: p, may_write: [\"src/**\"] } }
steps:
  - { id: think, role: coder, may_write: [], needs: [], retry: { attempts_max: 1 } }
  - { id: look, role: coder, may_write: [], needs: [], retry: { attempts_max: 1 } }
",
        "think) mark at-think; await at-look; echo x > src/a.txt; ok;; look) mark at-look; await at-think; ok;;",
    );
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("src/a.txt") && message.contains("`coder`"), "{message}");
    // Two readers were there, and the tree does not say which of them it was.
    assert!(message.contains("by it or by `"), "{message}");
}

/// Also for its commit: what a hook adds is judged by the step's globs, not by those of its role.
#[test]
fn a_step_with_a_narrower_scope_commits_no_more_than_that() {
    let hook = "#!/bin/sh\nmkdir -p docs; echo x > docs/hooked; git add docs/hooked\n";
    for (own, code) in [("", 0), (", may_write: [\"src/**\"]", 11)] {
        let scratch = Scratch::with(
            &format!(
                "roles: {{ coder: {{ prompt: p, may_write: [\"src/**\", \"docs/**\"] }} }}\nisolation: worktree\nsteps: [ {{ id: code, role: coder{own} }} ]"
            ),
            "code) echo c > src/c; ok;;",
        );
        let path = scratch.root().join(".git/hooks/pre-commit");
        std::fs::write(&path, hook).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let run = scratch.run(code);
        let files = scratch.git_says(&["diff", "--name-only", "main", &format!("gatewright/{run}/_run")]);
        if code == 0 {
            assert_eq!(files, "docs/hooked\nsrc/c", "its role may");
        } else {
            let (_, message) = scratch.blocked_by(&run);
            // What the hook left in the worktree is in the way of the next attempt too.
            assert!(message.contains("docs/hooked"), "{message}");
            assert_eq!(files, "", "nothing is committed");
        }
    }
}

/// And for what its agent is told: a reader is started as one although its role may write.
#[test]
fn an_agent_is_told_the_scope_of_the_step_not_of_the_role() {
    let scratch = Scratch::with(
        "
roles: { coder: { prompt: p, may_write: [\"src/**\"] } }
steps:
  - { id: think, role: coder, may_write: [], retry: { attempts_max: 1 } }
  - { id: build, role: coder, needs: [], retry: { attempts_max: 1 } }
",
        "",
    );
    // A program in the place of codex: how it is started is what counts. Without our sandbox its own is used.
    let fake = scratch.home().join("codex");
    std::fs::write(&fake, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    scratch.write(
        ".gatewright/config.yaml",
        &format!(
            "agent: codex\nagents: {{ codex: {{ adapter: codex, command: [\"{}\"], sandbox: off }} }}\n",
            fake.display()
        ),
    );
    let run = scratch.gatewright(&["run", "w", "x"]).id();
    let mode = |step: &str| {
        let path = scratch.state_dir(&run).join(format!("attempts/{step}/1/launch.json"));
        let order: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let words = order["argv"].as_array().unwrap().clone();
        let at = words.iter().position(|word| word == "-s").unwrap();
        words[at + 1].as_str().unwrap().to_owned()
    };
    assert_eq!((mode("think").as_str(), mode("build").as_str()), ("read-only", "workspace-write"));
}

/// Decision 27, across runs: whoever comes back to a checkout in which another one writes waits for it.
#[test]
fn a_writing_run_that_comes_back_waits_for_the_one_at_work_and_says_so() {
    let scratch = Scratch::with(
        "
roles: { coder: { prompt: p, may_write: [\"src/**\"] } }
steps: [ { id: go, decide: \"On?\", answers: { yes: pass } }, { id: code, role: coder } ]
",
        "code) mark $GATEWRIGHT_RUN; await go; echo $GATEWRIGHT_RUN >> src/a.txt; ok;;",
    );
    scratch.workflow("now", "roles: { coder: { prompt: p } }\nsteps: [ { id: code, role: coder } ]");
    let first = scratch.run(10);
    // Nobody drives the first one now: the second has the checkout.
    let second = scratch.start(&["run", "now", "second"]);
    let id = second.id();
    scratch.marked(&id);
    let back = scratch.start(&["answer", &first, "go", "yes"]);
    let why = wait_for("it says why it waits", || {
        let ran = scratch.gatewright(&["why", &first, "code"]);
        ran.out.contains("same checkout").then_some(ran.out)
    });
    assert!(why.contains(&id), "{why}");
    assert!(!scratch.home().join(&first).exists(), "it was not launched");
    scratch.mark("go");
    second.ended().exits(0);
    back.ended().exits(0);
    assert_eq!(read(&scratch, "src/a.txt"), Some(format!("a\n{id}\n{first}\n")));
}

const ONE_READER: &str = "steps: [ { id: code, role: reader, retry: { attempts_max: 2 } } ]";

/// A rule that ignores itself and what lies beside it hides neither. Caches that programs make for themselves do so too,
/// and are free like other ignored files.
#[test]
fn a_rule_of_git_that_ignores_itself_hides_nothing() {
    let hide = "printf '*\\n' > src/.gitignore; echo x > src/conftest.py";
    let scratch = Scratch::with(ONE_READER, &format!("code) {hide}; ok;;"));
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("src/.gitignore"), "{message}");
    let once = format!("code) case $GATEWRIGHT_ATTEMPT in 1) {hide};; esac; ok;;");
    let scratch = Scratch::with(ONE_READER, &once);
    scratch.config("on_trespass: restore");
    let run = scratch.run(0);
    assert_eq!(read(&scratch, "src/conftest.py"), None, "what was hidden is undone with the rule");
    let said = scratch.events_of(&run, "step.retry.scheduled")[0]["message"].to_string();
    assert!(said.contains("it had hidden src/conftest.py"), "{said}");
    let cache = "mkdir -p .pytest_cache; printf '*\\n' > .pytest_cache/.gitignore; echo x > .pytest_cache/x";
    Scratch::with(ONE_READER, &format!("code) {cache}; ok;;")).run(0);
}

#[test]
fn a_file_that_is_tracked_although_it_is_ignored_is_compared() {
    let scratch =
        Scratch::with(ONE_READER, "code) echo evil >> dist/bundle.js; echo x > dist/other.js; ok;;");
    scratch.write("dist/bundle.js", "ok\n");
    scratch.write(".gitignore", "dist/\n");
    scratch.git(&["add", "-f", ".gitignore", "dist/bundle.js"]);
    scratch.git(&["commit", "-qm", "bundle"]);
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("dist/bundle.js"), "{message}");
    assert!(!message.contains("other.js"), "ignored and not tracked is free: {message}");
}

/// Bytes that are no text are names like any other: told, undone, and remembered.
#[test]
fn names_that_are_no_text_are_compared_and_undone() {
    use std::os::unix::ffi::OsStrExt;
    let agent = "code) case $GATEWRIGHT_ATTEMPT in 1) echo x > \"src/$(printf '\\377').txt\";; esac; ok;;";
    for (config, code) in [("", 11), ("on_trespass: restore", 0)] {
        let scratch = Scratch::with(ONE_READER, agent);
        scratch.config(config);
        let run = scratch.run(code);
        let said = scratch.events_of(&run, "step.retry.scheduled")[0]["message"].to_string();
        assert!(said.contains("src/\\\\xff.txt (added)"), "{said}");
        let file = scratch.root().join("src").join(std::ffi::OsStr::from_bytes(b"\xff.txt"));
        assert_eq!(file.exists(), code == 11, "{config}");
        if code == 11 {
            let (_, message) = scratch.blocked_by(&run);
            assert!(message.contains("src/\\xff.txt (since attempt 1)"), "{message}");
        }
    }
}

/// The user's branches and tags are nothing that a reader may move. Who may write may commit; the rest is told.
#[test]
fn branches_and_tags_of_the_checkout_are_compared() {
    let commit = "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m evil";
    let deed = format!("git branch -q -D other; git tag -d v1; {commit}");
    for (role, code) in [("reader", 11), ("coder", 0)] {
        let scratch = Scratch::with(
            &ONE_READER.replace("reader", role),
            &format!("code) case $GATEWRIGHT_ATTEMPT in 1) {deed} >&2;; esac; ok;;"),
        );
        scratch.git(&["branch", "other"]);
        scratch.git(&["tag", "v1"]);
        let other = scratch.git_says(&["rev-parse", "other"]);
        let run = scratch.run(code);
        let noticed = scratch.events_of(&run, "intrusion.noticed");
        if code == 11 {
            let said = scratch.events_of(&run, "step.retry.scheduled")[0]["message"].to_string();
            assert!(said.contains(&format!("refs/heads/other (deleted; it was {other})")), "{said}");
            assert!(said.contains("refs/heads/main (modified") && said.contains("refs/tags/v1"), "{said}");
            let (_, message) = scratch.blocked_by(&run);
            assert!(message.contains(".git/refs/heads/other (since attempt 1)"), "{message}");
        } else {
            let said = noticed[0].to_string();
            assert!(
                said.contains("refs/heads/other (deleted") && !said.contains("refs/heads/main"),
                "{said}"
            );
        }
    }
}

/// In one place all of them: an agent in a worktree has to be able to write there.
#[test]
fn branches_of_the_user_that_are_in_one_table_are_compared_from_a_worktree_too() {
    let scratch = Scratch::with(
        "isolation: worktree\nsteps: [ { id: code, role: coder } ]",
        "code) git branch -q -D other; echo made > src/made; ok;;",
    );
    scratch.git(&["branch", "other"]);
    // Git does not take them along.
    std::fs::remove_dir_all(scratch.root().join(".git/logs")).unwrap();
    scratch.git(&["refs", "migrate", "--ref-format=reftable"]);
    let run = scratch.run(0);
    let noticed = scratch.events_of(&run, "intrusion.noticed");
    assert!(noticed.iter().any(|one| one.to_string().contains("refs/heads/other (deleted")), "{noticed:?}");
}

/// Git would take one object for another from here on; the engine's own does not.
#[test]
fn objects_that_are_to_stand_for_others_are_told() {
    for (role, code) in [("reader", 11), ("coder", 0)] {
        let scratch = Scratch::with(
            &ONE_READER.replace("reader", role),
            "code) git replace -f HEAD HEAD~1 >&2 || git replace -f HEAD $(git -c user.name=x -c user.email=x@x commit-tree -m x HEAD^{tree}) >&2; ok;;",
        );
        let run = scratch.run(code);
        let events = scratch.gatewright(&["events", &run]).exits(0).out;
        assert!(events.contains("refs/replace/"), "{role}: {events}");
    }
}

/// What programs of the user believe without asking, where no sandbox keeps an agent from it.
#[test]
fn files_of_the_user_that_git_and_ssh_read_are_compared_without_a_sandbox() {
    let files = [".config/git/ignore", ".config/git/attributes", ".ssh/rc"];
    let write: Vec<String> = files.iter().map(|file| format!("echo evil > $HOME/{file}")).collect();
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        &format!("code) mkdir -p $HOME/.config/git $HOME/.ssh; {}; ok;;", write.join("; ")),
    );
    scratch.config("sandbox: off");
    let run = scratch.run(0);
    let noticed = format!("{:?}", scratch.events_of(&run, "intrusion.noticed"));
    for file in files {
        assert!(noticed.contains(&format!("{file} (added)")), "{file}: {noticed}");
    }
}

/// What pictures do not show is remembered and put back like the rest.
#[test]
fn protected_files_that_git_does_not_show_fail_every_attempt_until_they_are_back() {
    for (file, deed, back) in [
        (".env", "echo KEY=evil > .env", "echo KEY=1 > .env"),
        (".env.new", "echo KEY=evil > .env.new", "rm .env.new"),
        (
            ".git/config",
            "cp .git/config $HOME/was; echo '[core] pager = evil' >> .git/config",
            "cp $HOME/was .git/config",
        ),
        (".git/hooks/post-commit", "echo evil > .git/hooks/post-commit", "rm .git/hooks/post-commit"),
    ] {
        let agent =
            |second: &str| format!("code) case $GATEWRIGHT_ATTEMPT in 1) {deed};; 2) {second};; esac; ok;;");
        let scratch = |agent: &str, config: &str| {
            let scratch =
                Scratch::with("steps: [ { id: code, role: coder, retry: { attempts_max: 2 } } ]", agent);
            scratch.config(config);
            scratch.write(".gitignore", ".env*\n");
            scratch.write(".env", "KEY=1\n");
            scratch
        };
        let kept = scratch(&agent("true"), "");
        let run = kept.run(11);
        let (_, message) = kept.blocked_by(&run);
        assert!(message.contains(&format!("{file} (since attempt 1)")), "{file}: {message}");
        assert!(read(&kept, file).unwrap().contains("evil"), "{file}: nothing was thrown away");
        // The next attempt may put it back, and so may anybody.
        scratch(&agent(back), "").run(0);
        let restored = scratch(&agent("true"), "on_trespass: restore");
        let before = read(&restored, file);
        let run = restored.run(0);
        assert_eq!(read(&restored, file), before, "{file} is as before");
        let undone = restored.state_dir(&run).join("attempts/code/1/undone").join(file);
        assert!(std::fs::read_to_string(undone).unwrap().contains("evil"), "{file}: what was undone is kept");
    }
}

#[test]
fn published_files_of_other_runs_fail_every_attempt_until_they_are_back() {
    let agent = "
quiet) wrote note.md;;
code) case $GATEWRIGHT_ATTEMPT in 1) for f in .workflow/*/note.md; do echo evil > $f; done;; esac; ok;;";
    for (config, code) in [("", 11), ("on_trespass: restore", 0)] {
        let scratch =
            Scratch::with("steps: [ { id: code, role: coder, retry: { attempts_max: 2 } } ]", agent);
        scratch.workflow("q", "steps: [ { id: quiet, role: coder, writes: { note.md: any } } ]");
        scratch.config(config);
        let other = scratch.gatewright(&["run", "q", "x"]).exits(0).id();
        let run = scratch.run(code);
        let note = scratch.published(&other, "note.md").unwrap();
        if code == 11 {
            let (_, message) = scratch.blocked_by(&run);
            assert!(message.contains("note.md (since attempt 1)"), "{message}");
            assert_eq!(note, "evil\n");
        } else {
            assert_eq!(note, "content of note.md\n", "what counts is back");
        }
    }
}
