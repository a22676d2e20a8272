//! Work in worktrees: made, seeded, committed in, taken away or kept.

use serde_json::Value;

use crate::support::{Scratch, text};

const STREAMS: &str = r#"
roles: { planner: { agent: mine, prompt: "Plan it." }, coder: { agent: mine, prompt: "Build {{ item.id }}." } }
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps:
      - { id: build, role: coder }
      - { id: test, role: coder }
"#;

const PLAN: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b, depends_on: [a]}\n- {id: c}')"; brief DONE tasks.yaml;;"#;

/// `build` writes a file of its item, `test` another one beside it.
const BUILD: &str = r#"
*/build) echo "$GATEWRIGHT_ITEM" > "src/part-$GATEWRIGHT_ITEM.txt"; ok "Built $GATEWRIGHT_ITEM.";;
*/test) ls src > "$HOME/seen-$GATEWRIGHT_ITEM"; echo tested > "src/$GATEWRIGHT_ITEM.test"; ok;;"#;

fn streams(more: &str) -> Scratch {
    Scratch::with(STREAMS, &format!("{PLAN}{BUILD}{more}"))
}

/// Commits of a branch beyond `main`, newest first: `subject | run | step | attempt`.
fn commits(scratch: &Scratch, branch: &str) -> Vec<String> {
    let trailer = |key: &str| format!("%(trailers:key=Gatewright-{key},valueonly,separator=%x2c)");
    let format = format!("--format=%s | {} | {} | {}", trailer("Run"), trailer("Step"), trailer("Attempt"));
    let log = scratch.git_says(&["log", "--no-merges", &format, &format!("main..{branch}")]);
    log.lines().map(str::to_owned).collect()
}

fn branches(scratch: &Scratch) -> Vec<String> {
    let list = scratch.git_says(&["branch", "--list", "--format=%(refname:short)", "gatewright/*"]);
    list.lines().map(str::to_owned).collect()
}

#[test]
fn each_stream_has_a_branch_of_its_own_and_each_accepted_step_a_commit_with_its_trailers() {
    let scratch = streams("");
    let run = scratch.run(0);
    let of = |key: &str| format!("gatewright/{run}/{key}");
    assert_eq!(branches(&scratch), [of("a"), of("b"), of("c")]);
    assert_eq!(
        commits(&scratch, &of("c")),
        [
            format!("each/c/test: It is done. | {run} | each/c/test | 1"),
            format!("each/c/build: Built c. | {run} | each/c/build | 1"),
        ]
    );
    // A stream that depends on another one has its work.
    assert!(std::fs::read_to_string(scratch.home().join("seen-b")).unwrap().contains("part-a.txt"));
    assert!(!std::fs::read_to_string(scratch.home().join("seen-c")).unwrap().contains("part-a.txt"));
    // The user's checkout has seen nothing of it.
    assert_eq!(scratch.git_says(&["status", "--porcelain", "--untracked-files=no"]), "");
    assert!(!scratch.root().join("src/a.txt.test").exists());
    assert!(!scratch.root().join("src/part-b.txt").exists());
    let made = scratch.events_of(&run, "step.commit.ended");
    let made: Vec<&Value> = made.iter().filter(|event| event["fact"]["how"] == "made").collect();
    assert_eq!(made.len(), 6);
    // Through with it: the folders are gone, the branches hold the work.
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_working_directory_of_an_agent_is_its_worktree_on_its_branch() {
    let scratch = Scratch::with(
        STREAMS,
        &format!(
            "{PLAN}\n*) pwd > \"$HOME/where-$tag\"; git branch --show-current >> \"$HOME/where-$tag\"; ok;;"
        ),
    );
    let run = scratch.run(0);
    let said = std::fs::read_to_string(scratch.home().join("where-each_c_build")).unwrap();
    let mut lines = said.lines();
    let folder = lines.next().unwrap();
    assert!(folder.ends_with(&format!("worktrees/{run}/c")), "{folder}");
    assert!(!folder.starts_with(&*scratch.root().to_string_lossy()), "{folder}");
    assert_eq!(lines.next(), Some(format!("gatewright/{run}/c").as_str()));
    let prompt = scratch.prompt("each/c/build", 1);
    assert!(prompt.contains("Build c."), "{prompt}");
}

#[test]
fn ignored_files_that_the_configuration_names_are_there_and_no_others() {
    let scratch = Scratch::with(
        STREAMS,
        &format!(
            "{PLAN}\n*/build) cat .env hooks/local > \"$HOME/seen-$GATEWRIGHT_ITEM\" 2>&1; ls -a > \"$HOME/all-$GATEWRIGHT_ITEM\"; ok;;"
        ),
    );
    scratch.config("seed: [.env, \"hooks/*\"]");
    scratch.write(".gitignore", ".env\nhooks/\nbuild/\n.workflow/\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "ignore"]);
    scratch.write(".env", "KEY=1\n");
    scratch.write("hooks/local", "mine\n");
    scratch.write("build/out", "large\n");
    scratch.run(0);
    assert_eq!(std::fs::read_to_string(scratch.home().join("seen-c")).unwrap(), "KEY=1\nmine\n");
    let all = std::fs::read_to_string(scratch.home().join("all-c")).unwrap();
    assert!(!all.lines().any(|name| name == "build"), "{all}");
}

#[test]
fn hooks_of_the_repository_run_at_the_engines_commits_and_may_refuse() {
    let scratch = streams("");
    let hook = scratch.root().join(".git/hooks/pre-commit");
    std::fs::write(
        &hook,
        "#!/bin/sh\nif git diff --cached --name-only | grep -q part-c.txt; then echo 'no c here'; exit 1; fi\n",
    )
    .unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = scratch.run(11);
    assert_eq!(scratch.step_state(&run, "each/b/test"), "passed");
    assert_eq!(scratch.step_state(&run, "each/c/build"), "blocked");
    let step = scratch.step(&run, "each/c/build");
    assert!(text(&step["message"]).contains("no c here"), "{step:#}");
    // Kept, with a patch.
    let folder = scratch.state_dir(&run);
    let patch = std::fs::read_to_string(folder.join("patches/c.patch")).unwrap();
    assert!(patch.contains("+++ b/src/part-c.txt"), "{patch}");
    assert_eq!(
        scratch.git_says(&["worktree", "list"]).lines().filter(|line| line.contains("/c]")).count(),
        1
    );
}

#[test]
fn files_that_look_like_secrets_and_files_outside_the_roles_scope_are_not_committed() {
    let body = STREAMS.replace("prompt: \"Build", "may_write: [\"src/**\"], prompt: \"Build");
    let scratch = Scratch::with(
        &body,
        &format!("{PLAN}\n*/a/build) echo KEY=1 > src/.env; ok;;\n*/c/build) echo x > README.md; ok;;"),
    );
    let run = scratch.run(11);
    let message = |step: &str| text(&scratch.step(&run, step)["message"]);
    assert!(
        message("each/a/build").contains("`src/.env` looks like a secret"),
        "{}",
        message("each/a/build")
    );
    assert!(message("each/c/build").contains("README.md"), "{}", message("each/c/build"));
    assert_eq!(commits(&scratch, &format!("gatewright/{run}/a")), Vec::<String>::new());
}

#[test]
fn an_agent_that_leaves_its_branch_is_refused() {
    for (how, says) in [
        ("git switch -qc other", "switched to `other`"),
        ("git checkout -q --detach", "detached"),
        ("git symbolic-ref HEAD refs/heads/main", "switched to `main`"),
    ] {
        let scratch = streams("");
        // In the sandbox there are no other branches to be made.
        scratch.config("sandbox: off");
        scratch.agent(&format!("{PLAN}\n*/c/build) {how}; echo x > src/x; ok;;{BUILD}"));
        let run = scratch.run(11);
        let step = scratch.step(&run, "each/c/build");
        let failure = format!("{}{}", step["message"], step["failure"]);
        assert!(failure.contains(says), "{how}: {failure}");
        assert_eq!(scratch.git_says(&["log", "--format=%s", "main"]), "start", "{how}");
    }
}

#[test]
fn a_worktree_that_was_taken_away_comes_back_from_its_branch() {
    let scratch = streams("");
    scratch.agent(&format!("{PLAN}\n*/c/test) if [ -e \"$HOME/go\" ]; then ls src > \"$HOME/back\"; ok; else brief ERROR; fi;;{BUILD}"));
    let run = scratch.run(11);
    scratch.mark("go");
    let list = scratch.git_says(&["worktree", "list", "--porcelain"]);
    let folder = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .find(|path| path.ends_with("/c"))
        .unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    scratch.gatewright(&["resume", &run]).exits(0);
    assert!(std::fs::read_to_string(scratch.home().join("back")).unwrap().contains("part-c.txt"));
}

#[test]
fn submodules_of_the_checkout_are_there_in_a_worktree() {
    let scratch = streams("");
    let other = scratch.root().parent().unwrap().join("library");
    std::fs::create_dir_all(&other).unwrap();
    let inside = |arguments: &[&str]| {
        let at = ["-C", other.to_str().unwrap()];
        scratch.git(&[&at[..], arguments].concat());
    };
    inside(&["init", "-q", "-b", "main"]);
    std::fs::write(other.join("lib.txt"), "library\n").unwrap();
    inside(&["add", "-A"]);
    inside(&["commit", "-qm", "library"]);
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        other.to_str().unwrap(),
        "vendor/lib",
    ]);
    scratch.git(&["commit", "-qm", "with a library"]);
    scratch.agent(&format!(
        "{PLAN}\n*/c/build) cat vendor/lib/lib.txt > \"$HOME/lib\"; echo c > src/c.txt; ok;;{BUILD}"
    ));
    let run = scratch.run(0);
    assert_eq!(std::fs::read_to_string(scratch.home().join("lib")).unwrap(), "library\n");
    assert_eq!(commits(&scratch, &format!("gatewright/{run}/c")).len(), 2);
    assert_eq!(
        scratch.git_says(&["worktree", "list"]).lines().count(),
        1,
        "removed although it has submodules"
    );
}

/// A file of LFS, and the settings of `git lfs install` for a program that is not there.
fn with_lfs(workflow: &str, agent: &str) -> Scratch {
    let scratch = Scratch::with(workflow, agent);
    scratch.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "pointer"]);
    scratch.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "attributes"]);
    for (key, value) in [
        ("clean", "git-lfs-is-not-here clean -- %f"),
        ("smudge", "git-lfs-is-not-here smudge -- %f"),
        ("process", "git-lfs-is-not-here filter-process"),
        ("required", "true"),
    ] {
        scratch.git(&["config", &format!("filter.lfs.{key}"), value]);
    }
    scratch
}

#[test]
fn files_of_a_filter_that_is_not_installed_do_not_break_a_worktree() {
    let finish = format!("{STREAMS}  - {{ id: together, merge: each }}\n  - {{ id: home, finish: merge }}\n");
    // Touched and not changed: git has to look at what is in it.
    let touch = "*/c/build) touch big.bin; echo c > src/part-c.txt; ok;;";
    let scratch = with_lfs(&finish, &format!("{PLAN}\n{touch}{BUILD}"));
    scratch.run(0);
    assert_eq!(scratch.git_says(&["show", "main:src/part-c.txt"]), "c");
    assert!(scratch.git_says(&["show", "main:big.bin"]).starts_with("version https://git-lfs"));
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_file_of_lfs_is_not_committed_without_the_program_of_lfs() {
    let scratch = with_lfs(
        "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
        "code) echo data > big.bin; ok;;",
    );
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("`big.bin` belongs to LFS") && message.contains("install it"), "{message}");
    assert!(scratch.git_says(&["show", &format!("gatewright/{run}/_run:big.bin")]).starts_with("version"));
}

#[test]
fn a_run_that_commits_works_in_a_worktree_of_its_own_and_the_checkout_is_left_alone() {
    let scratch = Scratch::with(
        "isolation: worktree\nsteps:\n  - { id: code, role: coder }\n  - { id: more, role: coder }",
        "code) echo new > src/new.txt; echo mine >> src/a.txt; ok Coded.;;\nmore) ls src > \"$HOME/seen\"; ok;;",
    );
    scratch.write("src/a.txt", "a\nuncommitted work of the user\n");
    let run = scratch.run(0);
    assert_eq!(
        commits(&scratch, &format!("gatewright/{run}/_run")),
        [format!("code: Coded. | {run} | code | 1")]
    );
    assert!(std::fs::read_to_string(scratch.home().join("seen")).unwrap().contains("new.txt"));
    assert!(!scratch.root().join("src/new.txt").exists());
    assert_eq!(
        std::fs::read_to_string(scratch.root().join("src/a.txt")).unwrap(),
        "a\nuncommitted work of the user\n"
    );
}

#[test]
fn a_pool_of_the_machine_is_shared_by_all_runs_and_why_says_who_has_it() {
    let scratch = Scratch::with(
        "pools: { database: { depth: 1, scope: machine } }\nsteps: [ { id: code, role: coder, pools: [database] } ]",
        "code) mark \"at-$GATEWRIGHT_RUN\"; await go; ok;;",
    );
    let first = scratch.start(&["run", "w", "first"]);
    let one = first.id();
    scratch.marked(&format!("at-{one}"));
    let second = scratch.start(&["run", "w", "second"]);
    let two = second.id();
    crate::support::wait_for("the second run waits for the pool", || {
        let said = scratch.gatewright(&["why", &two, "code"]).out;
        (said.contains("`database` on this machine") && said.contains(&one)).then_some(())
    });
    assert!(!scratch.home().join(format!("at-{two}")).exists());
    scratch.mark("go");
    first.ended().exits(0);
    second.ended().exits(0);
    assert!(scratch.home().join(format!("at-{two}")).exists());
}

#[test]
fn status_tells_how_the_items_stand_and_how_long_each_stream_has_been_at_work() {
    let scratch = streams("");
    scratch.agent(&format!("{PLAN}\n*/c/test) mark at; await go; ok;;\n*/a/build) brief ERROR;;{BUILD}"));
    let running = scratch.start(&["run", "w", "go"]);
    let run = running.id();
    scratch.marked("at");
    crate::support::wait_for("item a has failed", || {
        let of = scratch.status(&run)["fan_outs"][0].clone();
        (of["failed"] == 1 && of["blocked"] == 1 && of["running"] == 1).then_some(())
    });
    let of = scratch.status(&run)["fan_outs"][0].clone();
    assert_eq!(
        (&of["done"], &of["pending"], &of["total"]),
        (&Value::from(0), &Value::from(0), &Value::from(3))
    );
    let item =
        |key: &str| of["items"].as_array().unwrap().iter().find(|item| item["key"] == key).unwrap().clone();
    assert!(item("c")["elapsed_ms"].is_u64() && item("c")["state"] == "running", "{of:#}");
    assert_eq!(item("b")["state"], "blocked");
    let said = scratch.gatewright(&["status", &run]).out;
    assert!(
        said.contains("0 of 3 done, 1 running, 1 blocked, 1 failed") && said.contains("c for "),
        "{said}"
    );
    scratch.mark("go");
    running.ended().exits(11);
    let of = scratch.status(&run)["fan_outs"][0].clone();
    assert_eq!(of["done"], 1);
    let item =
        |key: &str| of["items"].as_array().unwrap().iter().find(|item| item["key"] == key).unwrap().clone();
    assert!(item("c")["elapsed_ms"].is_u64() && item("a")["elapsed_ms"].is_u64(), "{of:#}");
    // Of those that are through, too.
    let said = scratch.gatewright(&["status", &run]).out;
    let row = said.lines().find(|line| line.contains("1 of 3 done")).unwrap();
    assert!(row.contains("took: a ") && row.contains(", c "), "{row}");
}

#[test]
fn doctor_lists_worktrees_of_runs_that_are_over_and_takes_them_away_on_request() {
    let scratch = streams("");
    scratch.agent(&format!("{PLAN}\n*/c/build) echo lost > src/lost.txt; brief ERROR;;{BUILD}"));
    let run = scratch.run(11);
    let find = |extra: &[&str]| scratch.gatewright(&[&["doctor"], extra].concat()).out;
    assert!(!find(&[]).contains("which is over"), "the run is blocked, not over");
    scratch.gatewright(&["abort", &run, "--reason", "enough"]);
    let listed = find(&[]);
    assert!(listed.contains(&format!("worktrees/{run}/c")) && listed.contains("on no branch"), "{listed}");
    let removed = find(&["--remove-worktrees"]);
    assert!(removed.contains("was taken away"), "{removed}");
    let project = scratch.state_dir(&run).parent().unwrap().parent().unwrap().to_owned();
    let patch = std::fs::read_to_string(project.join(format!("patches/{run}-c.patch"))).unwrap();
    assert!(patch.contains("+++ b/src/lost.txt") && patch.contains("+lost"), "{patch}");
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
    assert!(!find(&[]).contains("which is over"));
    assert!(scratch.git_says(&["branch", "--list", "gatewright/*"]).contains("/b"), "branches stay");
}

/// Why the first attempt of a step did not count.
fn failure_of(scratch: &Scratch, run: &str, step: &str) -> String {
    let retries = scratch.events_of(run, "step.retry.scheduled");
    let own = retries.iter().find(|event| event["step"] == step);
    text(&own.unwrap_or_else(|| panic!("{step} was not tried again"))["message"])
}

#[test]
fn j_48_an_agent_that_reaches_into_the_users_checkout_is_caught_and_named_and_a_patch_takes_it_back() {
    let scratch = streams("");
    let root = scratch.root();
    // In the sandbox it could not even try.
    scratch.config("sandbox: off");
    scratch.write("src/a.txt", "a\nwork of the user that is not committed\n");
    // Its second attempt finds the file changed already and does not touch it: those beside it have a second one too.
    let reach = format!("grep -qx gone {0}/src/a.txt || echo gone > {0}/src/a.txt", root.display());
    scratch.agent(&format!("{PLAN}\n*/c/build) {reach}; ok;;{BUILD}"));
    let run = scratch.run(0);
    let said = failure_of(&scratch, &run, "each/c/build");
    assert!(said.contains("your checkout") && said.contains("src/a.txt"), "{said}");
    let patch = scratch.state_dir(&run).join("patches/intrusion-each%2Fc%2Fbuild-1-checkout.patch");
    scratch.git(&["apply", "-R", patch.to_str().unwrap()]);
    assert_eq!(
        std::fs::read_to_string(root.join("src/a.txt")).unwrap(),
        "a\nwork of the user that is not committed\n"
    );
}

#[test]
fn j_48_an_agent_that_reaches_into_a_siblings_worktree_is_caught_and_named() {
    let scratch = streams("");
    scratch.config("sandbox: off");
    // b comes after a: by then nobody has anything to do in the worktree of a.
    scratch.agent(&format!("{PLAN}\n*/b/build) echo gone > ../a/src/a.txt; echo b > src/b.txt; ok;;{BUILD}"));
    let run = scratch.run(0);
    let said = failure_of(&scratch, &run, "each/b/build");
    assert!(said.contains("worktree of another stream") && said.contains("src/a.txt"), "{said}");
}

#[test]
fn j_48_in_the_sandbox_neither_the_checkout_nor_the_worktree_of_a_busy_stream_can_be_reached() {
    let scratch = streams("");
    let root = scratch.root();
    scratch.agent(&format!(
        "{PLAN}\n\
         */a/build) echo a > src/part-a.txt; mark busy; await tried; ok;;\n\
         */c/build) await busy; echo gone > {}/src/a.txt; echo gone > ../a/src/part-a.txt; echo gone > ../a/src/new.txt; \
         mv src/a.txt ../a/src/a.txt; truncate -s 0 ../a/src/part-a.txt; mark tried; echo c > src/part-c.txt; ok;;{BUILD}",
        root.display()
    ));
    let run = scratch.run(0);
    assert_eq!(std::fs::read_to_string(root.join("src/a.txt")).unwrap(), "a\n");
    let of_a = |file: &str| scratch.git_says(&["show", &format!("gatewright/{run}/a:src/{file}")]);
    assert_eq!((of_a("part-a.txt").as_str(), of_a("a.txt").as_str()), ("a", "a"));
    let files = scratch.git_says(&["ls-tree", "-r", "--name-only", &format!("gatewright/{run}/a")]);
    assert!(!files.contains("new.txt"), "{files}");
}

#[test]
fn what_the_user_changes_in_the_checkout_meanwhile_is_not_held_against_an_agent_that_cannot_reach_it() {
    let scratch = streams("");
    scratch.agent(&format!("{PLAN}\n*/c/build) mark at; await edited; echo c > src/part-c.txt; ok;;{BUILD}"));
    let running = scratch.start(&["run", "w", "go"]);
    let run = running.id();
    scratch.marked("at");
    scratch.write("src/a.txt", "a\nmy own work\n");
    scratch.mark("edited");
    running.ended().exits(0);
    assert_eq!(scratch.count("each/c/build"), 1, "{:?}", scratch.calls());
    assert!(scratch.events_of(&run, "step.retry.scheduled").is_empty());
    assert_eq!(std::fs::read_to_string(scratch.root().join("src/a.txt")).unwrap(), "a\nmy own work\n");
}

#[test]
fn commits_have_the_users_identity_and_signature_and_the_key_is_used_outside_the_sandbox() {
    let scratch = streams("");
    let keyring = scratch.root().parent().unwrap().join("keyring");
    let gpg = scratch.root().parent().unwrap().join("gpg");
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho signed >> {}\nprintf '\\n[GNUPG:] SIG_CREATED D 1 8 00 0 0\\n' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nof the user\\n-----END PGP SIGNATURE-----\\n'\n",
        keyring.display()
    );
    std::fs::write(&gpg, script).unwrap();
    std::fs::set_permissions(&gpg, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (key, value) in [("gpg.program", gpg.to_str().unwrap()), ("commit.gpgSign", "true")] {
        scratch.git(&["config", key, value]);
    }
    let run = scratch.run(0);
    let branch = format!("gatewright/{run}/c");
    let who = scratch.git_says(&["log", "-1", "--format=%an <%ae> %cn <%ce>", &branch]);
    assert_eq!(who, "Test <test@example.org> Test <test@example.org>");
    for commit in [branch.clone(), format!("{branch}~1")] {
        let stored = scratch.git_says(&["cat-file", "commit", &commit]);
        assert!(stored.contains("gpgsig ") && stored.contains("of the user"), "{stored}");
    }
    assert_eq!(commits(&scratch, &branch).len(), 2, "every commit is there once");
    assert_eq!(std::fs::read_to_string(&keyring).unwrap().lines().count(), 6, "two of each of three streams");
    // A key that cannot be used commits nothing.
    std::fs::write(&gpg, "#!/bin/sh\necho no key >&2; exit 2\n").unwrap();
    let run = scratch.run(11);
    assert_eq!(commits(&scratch, &format!("gatewright/{run}/c")), Vec::<String>::new());
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("cannot be signed"), "{message}");
}

#[test]
fn a_place_of_a_pool_stays_taken_while_the_attempt_lives_although_its_engine_was_killed() {
    let scratch = Scratch::with(
        "pools: { database: { depth: 1, scope: machine } }\nsteps: [ { id: code, role: coder, pools: [database] } ]",
        "code) mark \"at-$GATEWRIGHT_RUN\"; await go; ok;;",
    );
    let first = scratch.start(&["run", "w", "first"]);
    let one = first.id();
    scratch.marked(&format!("at-{one}"));
    first.kill();
    // Its agent lives and has the place, whoever asks.
    let second = scratch.start(&["run", "w", "second"]);
    let two = second.id();
    crate::support::wait_for("the second run waits for the agent of the first", || {
        let said = scratch.gatewright(&["why", &two, "code"]).out;
        (said.contains("`database` on this machine") && said.contains(&one)).then_some(())
    });
    assert!(!scratch.home().join(format!("at-{two}")).exists());
    scratch.mark("go");
    // With the agent's end the place is free: nobody has to resume the first run for that.
    second.ended().exits(0);
    scratch.gatewright(&["resume", &one]).exits(0);
    assert_eq!(scratch.count("code"), 2, "{:?}", scratch.calls());
}

#[test]
fn what_the_items_came_to_is_data_for_later_steps_in_order_failures_included() {
    let scratch = Scratch::with(
        &format!(
            "{}    on_item_failure: note\n  - id: tell\n    role: planner\n    prompt: \"{{% for one in fan_outs.each %}}{{{{ one.key }}}}={{{{ one.state }}}} ({{{{ one.message or one.summary }}}})\\n{{% endfor %}}\"\n",
            STREAMS.trim_start_matches('\n')
        ),
        &format!(
            "plan) put tasks.yaml \"$(printf 'tasks:\\n- {{id: z}}\\n- {{id: b, depends_on: [x]}}\\n- {{id: x}}')\"; brief DONE tasks.yaml;;\n\
             */x/build) brief ERROR none 'Not today.';;\n*/test) ok \"Tested $GATEWRIGHT_ITEM.\";;{BUILD}"
        ),
    );
    scratch.run(0);
    let prompt = scratch.prompt("tell", 1);
    let lines: Vec<&str> = prompt.lines().filter(|line| line.contains('=')).collect();
    assert!(lines[0].starts_with("z=passed (Tested z.)"), "{prompt}");
    assert!(lines[1].starts_with("b=blocked (waits for what did not pass: x)"), "{prompt}");
    assert!(lines[2].starts_with("x=failed (each/x/build: "), "{prompt}");
}

#[test]
fn worktrees_are_made_one_at_a_time() {
    let scratch = streams("");
    let projects = scratch.home().parent().unwrap().join("state/projects");
    let first = scratch.run(0);
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    // Whoever makes one holds this.
    let lock = std::fs::File::open(project.join("worktrees/lock")).unwrap();
    lock.lock().unwrap();
    let running = scratch.start(&["run", "w", "again"]);
    let run = running.id();
    assert_ne!(run, first);
    let at_work = |step: &str| {
        scratch.status(&run)["steps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["id"] == step && one["state"] == "running")
    };
    crate::support::wait_for("two items have begun", || {
        (at_work("each/a/build") && at_work("each/c/build")).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1, "none is made before its turn");
    lock.unlock().unwrap();
    running.ended().exits(0);
}

#[test]
fn a_worktree_on_another_branch_is_refused_at_resume() {
    let scratch = streams("");
    scratch
        .agent(&format!("{PLAN}\n*/c/test) if [ -e \"$HOME/go\" ]; then ok; else brief ERROR; fi;;{BUILD}"));
    let run = scratch.run(11);
    scratch.mark("go");
    let list = scratch.git_says(&["worktree", "list", "--porcelain"]);
    let folder =
        list.lines().filter_map(|line| line.strip_prefix("worktree ")).find(|path| path.ends_with("/c"));
    let folder = folder.unwrap().to_owned();
    scratch.git(&["-C", &folder, "switch", "-q", "-c", "elsewhere"]);
    let before = scratch.count("each/c/test");
    scratch.gatewright(&["resume", &run]).exits(11);
    assert_eq!(scratch.count("each/c/test"), before, "nobody was launched there");
    let said = scratch.step(&run, "each/c/test").to_string();
    assert!(said.contains("elsewhere") && said.contains("switch"), "{said}");
    scratch.git(&["-C", &folder, "switch", "-q", &format!("gatewright/{run}/c")]);
    scratch.gatewright(&["resume", &run]).exits(0);
}

#[test]
fn a_run_on_a_detached_head_has_its_branch_and_nothing_is_brought_home_to_nowhere() {
    let scratch = Scratch::with(
        "steps:\n  - { id: code, role: coder }\n  - { id: home, finish: merge, retry: { attempts_max: 1 } }",
        "code) echo new > src/new.txt; ok;;",
    );
    scratch.git(&["checkout", "-q", "--detach"]);
    let head = scratch.git_says(&["rev-parse", "HEAD"]);
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("no branch"), "{message}");
    assert_eq!(scratch.git_says(&["rev-parse", "HEAD"]), head);
    assert_eq!(scratch.git_says(&["show", &format!("gatewright/{run}/_run:src/new.txt")]), "new");
}

/// A git that is killed while it makes a worktree leaves a folder that makes every later git give up.
#[test]
fn what_a_killed_git_left_of_a_worktree_is_in_nobodys_way() {
    let ghost = r#"
*/a/build) half="$(git rev-parse --path-format=absolute --git-common-dir)/worktrees/ghost"; mkdir "$half";
  echo "$(dirname "$PWD")/ghost/.git" > "$half/gitdir"; echo initializing > "$half/locked"; : > "$half/commondir";
  git worktree list > "$HOME/list" 2>&1; ok;;"#;
    let scratch = Scratch::with(STREAMS, &format!("{PLAN}{ghost}{BUILD}"));
    scratch.config("    sandbox: off");
    let workflow = scratch.root().join(".gatewright/workflows/w.yaml");
    let one_after_the_other =
        std::fs::read_to_string(&workflow).unwrap().replace("isolation:", "parallel_max: 1\n    isolation:");
    std::fs::write(&workflow, one_after_the_other).unwrap();
    scratch.run(0);
    let said = std::fs::read_to_string(scratch.home().join("list")).unwrap();
    assert!(said.contains("commondir"), "it was in nobody's way before: {said}");
    assert!(!scratch.root().join(".git/worktrees/ghost").exists());
}

#[test]
fn a_commit_is_judged_by_what_its_attempt_changed_not_by_what_steps_before_it_left() {
    let scratch = Scratch::with(
        "roles: { writer: { agent: mine, prompt: W, may_write: [\"docs/**\"] }, coder: { agent: mine, prompt: C, may_write: [\"src/**\"] } }\n\
         isolation: worktree\nsteps:\n  - { id: one, role: writer, commit: false }\n  - { id: two, role: coder, retry: { attempts_max: 1 } }",
        "one) mkdir -p docs; echo d > docs/d; ok;;\ntwo) echo c > src/c; ok;;",
    );
    let run = scratch.run(0);
    let branch = format!("gatewright/{run}/_run");
    let files = scratch.git_says(&["diff", "--name-only", "main", &branch]);
    assert_eq!(files, "docs/d\nsrc/c");
    // What a hook adds is in nobody's scope.
    let hook = scratch.root().join(".git/hooks/pre-commit");
    std::fs::write(&hook, "#!/bin/sh\necho x > docs/hooked; git add docs/hooked\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("docs/hooked") && message.contains("src/**"), "{message}");
}

#[test]
fn a_file_with_secrets_may_be_deleted() {
    let scratch = Scratch::with(
        "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
        "code) git rm -q .env; ok;;",
    );
    scratch.write(".env", "KEY=1\n");
    scratch.git(&["add", "-f", ".env"]);
    scratch.git(&["commit", "-qm", "by mistake"]);
    let run = scratch.run(0);
    let files = scratch.git_says(&["diff", "--name-status", "main", &format!("gatewright/{run}/_run")]);
    assert_eq!(files, "D\t.env");
}

#[test]
fn commits_have_the_identity_of_the_users_git_configuration() {
    let scratch = streams("");
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
        scratch.git(&["config", key, value]);
    }
    let mut command = scratch.command(&["run", "w", "go"]);
    for name in ["AUTHOR", "COMMITTER"].map(|who| ["NAME", "EMAIL"].map(|part| format!("GIT_{who}_{part}"))) {
        name.iter().for_each(|name| {
            command.env_remove(name);
        });
    }
    let ran = scratch.start_with(command, None).ended().exits(0);
    let who = ["log", "-1", "--format=%an <%ae> %cn <%ce>", &format!("gatewright/{}/c", ran.id())];
    assert_eq!(scratch.git_says(&who), "Ada <ada@example.org> Ada <ada@example.org>");
}

#[test]
fn dependencies_that_do_not_go_together_are_said_with_what_to_do_and_that_helps() {
    let scratch = Scratch::with(
        STREAMS,
        r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b}\n- {id: c, depends_on: [a, b]}')"; brief DONE tasks.yaml;;
*/c/build) cat src/a.txt > "$HOME/seen"; ok;;
*/build) echo "from-$GATEWRIGHT_ITEM" > src/a.txt; ok;;"#,
    );
    let run = scratch.run(11);
    let said = text(&scratch.step(&run, "each/c/build")["message"]);
    let (folder, other) = (format!("worktrees/{run}/c"), format!("gatewright/{run}/b"));
    for part in ["does not go together", "`src/a.txt`", &folder, &format!("merge {other}`"), "then resume"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("CONFLICT") && !said.contains("`git merge"), "not git's own words: {said}");
    // As it says.
    let list = scratch.git_says(&["worktree", "list", "--porcelain"]);
    let folder =
        list.lines().filter_map(|line| line.strip_prefix("worktree ")).find(|path| path.ends_with("/c"));
    let folder = folder.unwrap();
    let mut merge = std::process::Command::new("git");
    merge.args(["-C", folder, "-c", "user.name=x", "-c", "user.email=x@x", "merge", "-q", &other]);
    assert!(!merge.output().unwrap().status.success(), "there is something to mend");
    assert!(scratch.git_says(&["-C", folder, "rev-parse", "MERGE_HEAD"]).len() >= 40);
    std::fs::write(std::path::Path::new(folder).join("src/a.txt"), "both\n").unwrap();
    scratch.git(&["-C", folder, "add", "-A"]);
    scratch.git(&["-C", folder, "commit", "-qm", "together"]);
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(std::fs::read_to_string(scratch.home().join("seen")).unwrap(), "both\n");
}

#[test]
fn pools_of_a_group_are_refused_with_where_they_belong() {
    let scratch = Scratch::with(
        &STREAMS.replace("    isolation: worktree", "    isolation: worktree\n    pools: [database]"),
        "",
    );
    let said = scratch.gatewright(&["lint", "w"]);
    assert_ne!(said.code, 0);
    let said = format!("{}{}", said.out, said.err);
    assert!(
        said.contains("`pools` means nothing in a fan-out")
            && said.contains("each step inside names its own"),
        "{said}"
    );
}

#[test]
fn pools_of_a_sub_run_are_refused_with_where_they_belong() {
    let scratch = Scratch::with("steps: [ { id: sub, run: inner, pools: [database] } ]", "");
    scratch.workflow("inner", "steps: [ { id: code, role: coder } ]");
    for command in [&["lint", "w"][..], &["run", "w", "go"]] {
        let said = scratch.gatewright(command);
        assert_ne!(said.code, 0, "{command:?}");
        let said = format!("{}{}", said.out, said.err);
        for part in ["`pools` means nothing in a sub-run", "each step inside names its own"] {
            assert!(said.contains(part), "{command:?}: {part}: {said}");
        }
    }
    assert!(scratch.called().is_empty());
}

#[test]
fn work_that_is_in_no_commit_outlives_a_run_that_is_done() {
    let body = STREAMS.replace("{ id: test, role: coder }", "{ id: test, role: coder, commit: false }");
    let scratch = Scratch::with(&body, &format!("{PLAN}{BUILD}"));
    let run = scratch.run(0);
    let list = scratch.git_says(&["worktree", "list", "--porcelain"]);
    for item in ["a", "b", "c"] {
        let mut folders = list.lines().filter_map(|line| line.strip_prefix("worktree "));
        let folder = folders.find(|path| path.ends_with(&format!("/{item}")));
        let folder = folder.unwrap_or_else(|| panic!("the worktree of {item} is gone: {list}"));
        let left = std::fs::read_to_string(format!("{folder}/src/{item}.test")).unwrap();
        assert_eq!(left, "tested\n");
        let patch = scratch.state_dir(&run).join(format!("patches/{item}.patch"));
        let patch = std::fs::read_to_string(patch).unwrap();
        assert!(patch.contains(&format!("+++ b/src/{item}.test")), "{patch}");
    }
}

#[test]
fn nothing_is_thrown_away_unasked() {
    let steps =
        "steps:\n  - { id: code, role: coder }\nDECIDE  - { id: home, finish: discard, confirm: false }";
    let scratch = Scratch::with(&steps.replace("DECIDE", ""), "code) echo x > src/new; ok;;");
    let ran = scratch.gatewright(&["run", "w", "x"]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("GW211") && ran.err.contains("nobody is asked"), "{}", ran.err);
    assert_eq!(scratch.count("code"), 0);
    let asked = "  - { id: how, decide: \"And now?\", answers: { keep: block, discard: pass } }\n";
    scratch.workflow("w", &steps.replace("DECIDE", asked));
    scratch.gatewright(&["lint", "w"]).exits(0);
}
