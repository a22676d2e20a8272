//! Streams are brought together: everything that passed, verified, and nothing is dropped on the way.

use crate::support::{Scratch, text, wait_for};

const PLAN: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: b, depends_on: [a]}\n- {id: a}\n- {id: c}')"; brief DONE tasks.yaml;;"#;

/// A fan-out in worktrees, and a merge with these keys.
fn merging(merge: &str, more: &str, agent: &str) -> Scratch {
    let body = format!(
        r#"
roles: {{ coder: {{ agent: mine, prompt: "Build." }}, fixer: {{ agent: mine, prompt: "Mend the merge." }} }}
checks: {{ whole: {{ run: "test ! -e src/broken || test -e src/mended" }} }}
steps:
  - {{ id: plan, role: coder, writes: {{ tasks.yaml: any }} }}
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    on_item_failure: note
    steps: [ {{ id: build, role: coder }} ]
  - {{ id: together, merge: each, checks: [whole]{merge} }}
{more}"#
    );
    Scratch::with(&body, &format!("{PLAN}\n{agent}"))
}

fn on(scratch: &Scratch, run: &str, file: &str) -> String {
    scratch.git_says(&["show", &format!("gatewright/{run}/_run:{file}")])
}

#[test]
fn j_49_every_stream_that_passed_is_merged_in_the_order_of_dependencies_with_its_checks() {
    let scratch = merging("", "", "*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;");
    let before = scratch.git_says(&["rev-parse", "HEAD"]);
    let run = scratch.run(0);
    for key in ["a", "b", "c"] {
        assert_eq!(on(&scratch, &run, &format!("src/{key}.new")), key);
    }
    let trailer = "--format=%(trailers:key=Gatewright-Stream,valueonly)";
    let log =
        scratch.git_says(&["log", "--merges", "--reverse", trailer, &format!("main..gatewright/{run}/_run")]);
    let merged: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(merged, ["a", "c", "b"]);
    // Nobody allowed anything with the user's checkout.
    assert_eq!(scratch.git_says(&["rev-parse", "HEAD"]), before);
    assert_eq!(scratch.git_says(&["status", "--porcelain", "--untracked-files=no"]), "");
    // What is in the run's branch needs no branch of its own any more, and no folder.
    let left = scratch.git_says(&["branch", "--list", "--format=%(refname:short)", "gatewright/*"]);
    assert_eq!(left, format!("gatewright/{run}/_run"));
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn j_49_a_conflict_stops_that_merge_only_and_a_fixer_gets_both_sides_and_the_base() {
    let agent = r#"
*/a/build) echo from-a > src/a.txt; ok;;
*/c/build) echo from-c > src/a.txt; echo c > src/c.new; ok;;
*/b/build) echo b > src/b.new; ok;;
together-fix) cp src/a.txt "$HOME/conflict"; printf 'from-a\nfrom-c\n' > src/a.txt; ok Mended.;;"#;
    let scratch = merging(", fix: { role: fixer }", "", agent);
    let run = scratch.run(0);
    assert_eq!(on(&scratch, &run, "src/a.txt"), "from-a\nfrom-c");
    assert_eq!(
        (on(&scratch, &run, "src/b.new"), on(&scratch, &run, "src/c.new")),
        ("b".to_owned(), "c".to_owned())
    );
    let seen = std::fs::read_to_string(scratch.home().join("conflict")).unwrap();
    for part in ["from-a", "from-c", "\na\n", "<<<<<<<", "|||||||", ">>>>>>>"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let prompt = scratch.prompt("together-fix", 1);
    for part in ["src/a.txt", "base: git show", "stream: git show"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(scratch.count("together-fix"), 1);
}

#[test]
fn j_49_a_failed_check_after_a_merge_is_routed_to_the_fixer_and_then_to_a_person() {
    let agent = r#"
*/c/build) echo c > src/broken; ok;;
*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;
together-fix) ok "I did nothing.";;"#;
    let scratch = merging(", fix: { role: fixer }, rounds_max: 2", "", agent);
    let run = scratch.run(10);
    assert_eq!(scratch.count("together-fix"), 1);
    // The others are in already; the broken one is not, and not lost.
    assert_eq!(on(&scratch, &run, "src/a.new"), "a");
    assert_eq!(scratch.git_says(&["show", &format!("gatewright/{run}/c:src/broken")]), "c");
    let broken = scratch.git_says(&["ls-tree", "--name-only", &format!("gatewright/{run}/_run"), "src/"]);
    assert!(!broken.contains("broken"), "{broken}");
    let decision = scratch.status(&run)["decisions"][0].clone();
    let id = text(&decision["id"]);
    scratch.gatewright(&["answer", &run, &id, "accept"]).exits(0);
    assert_eq!(scratch.state(&run), "done");
    assert_eq!(scratch.git_says(&["show", &format!("gatewright/{run}/c:src/broken")]), "c");
}

#[test]
fn a_stream_that_failed_is_named_and_kept_and_the_others_are_merged() {
    let agent = "*/c/build) brief ERROR;;\n*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;";
    let scratch = merging("", "", agent);
    let run = scratch.run(0);
    assert_eq!(on(&scratch, &run, "src/b.new"), "b");
    let notes = scratch.step(&run, "together")["notes"].to_string();
    assert!(notes.contains("stream `c` did not pass"), "{notes}");
    assert!(scratch.git_says(&["branch", "--list", "gatewright/*"]).contains("/c"));
}

#[test]
fn steps_after_a_merge_see_what_was_merged() {
    let more = "  - { id: look, role: coder }";
    let agent = "*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;\nlook) ls src > \"$HOME/seen\"; ok;;";
    let scratch = merging("", more, agent);
    scratch.run(0);
    let seen = std::fs::read_to_string(scratch.home().join("seen")).unwrap();
    assert!(["a.new", "b.new", "c.new"].iter().all(|name| seen.contains(name)), "{seen}");
}

const BUILD: &str = "*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;";

#[test]
fn only_the_finish_touches_the_checkout_and_uncommitted_work_is_never_lost() {
    let scratch = merging("", "  - { id: home, finish: merge }", BUILD);
    scratch.write("src/a.txt", "a\nmy own work\n");
    scratch.write("notes.txt", "untracked\n");
    let run = scratch.run(0);
    assert_eq!(std::fs::read_to_string(scratch.root().join("src/c.new")).unwrap(), "c\n");
    assert_eq!(std::fs::read_to_string(scratch.root().join("src/a.txt")).unwrap(), "a\nmy own work\n");
    assert_eq!(std::fs::read_to_string(scratch.root().join("notes.txt")).unwrap(), "untracked\n");
    assert_eq!(scratch.git_says(&["branch", "--list", "gatewright/*"]), "", "all of {run} is home");
}

#[test]
fn a_finish_that_would_overwrite_the_users_work_is_refused_and_changes_nothing() {
    let scratch = merging("", "  - { id: home, finish: merge, retry: { attempts_max: 1 } }", BUILD);
    scratch.write("src/c.new", "mine, and not committed\n");
    let head = scratch.git_says(&["rev-parse", "HEAD"]);
    let run = scratch.run(11);
    assert_eq!(
        std::fs::read_to_string(scratch.root().join("src/c.new")).unwrap(),
        "mine, and not committed\n"
    );
    assert_eq!(scratch.git_says(&["rev-parse", "HEAD"]), head);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("your checkout was left as it is"), "{message}");
    std::fs::remove_file(scratch.root().join("src/c.new")).unwrap();
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(std::fs::read_to_string(scratch.root().join("src/c.new")).unwrap(), "c\n");
}

#[test]
fn a_branch_is_thrown_away_only_after_a_second_word_and_a_patch_is_kept() {
    let more = "  - { id: how, decide: \"And now?\", answers: { merge: pass, keep: pass, pull_request: pass, discard: pass } }\n  - { id: home, finish: how }";
    let scratch = merging("", more, BUILD);
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "how", "discard"]).exits(10);
    assert!(!scratch.git_says(&["branch", "--list", "gatewright/*"]).is_empty());
    let open = scratch.status(&run)["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["status"] == "pending")
        .cloned()
        .unwrap();
    scratch.gatewright(&["answer", &run, &text(&open["id"]), "discard"]).exits(0);
    assert_eq!(scratch.git_says(&["branch", "--list", "gatewright/*"]), "");
    let patch =
        std::fs::read_to_string(scratch.state_dir(&run).join("patches/discarded-_run.patch")).unwrap();
    assert!(patch.contains("src/c.new"), "{patch}");
}

#[test]
fn a_pull_request_is_opened_by_the_configured_command() {
    let scratch = merging("", "  - { id: home, finish: pull_request }", BUILD);
    scratch.config("pull_request: { command: \"printf '%s|%s|%s' {branch} {base} {title} > $HOME/asked\" }");
    let run = scratch.run(0);
    let asked = std::fs::read_to_string(scratch.home().join("asked")).unwrap();
    assert_eq!(asked, format!("gatewright/{run}/_run|main|Add a greeting"));
}

#[test]
fn j_49_a_deletion_outside_the_streams_own_diff_stops_the_merge_and_goes_to_the_fixer() {
    let agent = r#"
*/a/build) echo from-a > src/a.txt; ok;;
*/c/build) echo from-c > src/a.txt; ok;;
*/b/build) echo b > src/b.new; ok;;
together-fix) printf 'from-a\nfrom-c\n' > src/a.txt
if [ "$GATEWRIGHT_ATTEMPT" = 1 ]; then rm src/b.new; else git checkout -q HEAD -- src/b.new; fi; ok Mended.;;"#;
    let scratch = merging(", fix: { role: fixer }", "", agent);
    let run = scratch.run(0);
    assert_eq!(scratch.count("together-fix"), 2, "{:?}", scratch.calls());
    let prompts: Vec<String> = (1..=2).map(|attempt| scratch.prompt("together-fix", attempt)).collect();
    assert!(!prompts[0].contains("would delete"), "{}", prompts[0]);
    assert!(prompts[1].contains("would delete `src/b.new`"), "{}", prompts[1]);
    assert_eq!(on(&scratch, &run, "src/b.new"), "b");
    assert_eq!(on(&scratch, &run, "src/a.txt"), "from-a\nfrom-c");
}

#[test]
fn checks_run_after_each_merge_and_see_what_was_merged_before() {
    let scratch = merging("", "", BUILD);
    let note = scratch.home().join("checked");
    let file = scratch.root().join(".gatewright/workflows/w.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let check = "test ! -e src/broken || test -e src/mended";
    assert!(text.contains(check));
    std::fs::write(&file, text.replace(check, &format!("ls src | grep -c new >> {}", note.display())))
        .unwrap();
    scratch.run(0);
    assert_eq!(std::fs::read_to_string(note).unwrap(), "1\n2\n3\n");
}

/// While no agent is at work the branch is a person's to move: what they commit there between two engines is merged.
#[test]
fn what_a_person_commits_on_the_branch_of_a_run_between_two_engines_stays() {
    let workflow = "isolation: worktree\nsteps:\n  - { id: code, role: coder }\n  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }\n  - { id: home, finish: merge }";
    let scratch = Scratch::with(workflow, "code) echo made > src/made; ok;;");
    let run = scratch.run(10);
    let branch = format!("gatewright/{run}/_run");
    let listed = scratch.git_says(&["worktree", "list", "--porcelain"]);
    let folder = listed.split("\n\n").find(|part| part.contains(&branch)).unwrap();
    let folder = folder.lines().next().unwrap().trim_start_matches("worktree ").to_owned();
    let commit =
        "echo by hand > src/hand; git add src/hand; git -c user.name=p -c user.email=p@p commit -qm hand";
    let made = std::process::Command::new("sh").args(["-ec", commit]).current_dir(folder).status();
    assert!(made.unwrap().success());
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    assert_eq!(scratch.git_says(&["show", "main:src/hand"]), "by hand");
    assert!(scratch.events_of(&run, "intrusion.noticed").is_empty());
}

/// One that was ok only when it was run again is told with the stream it was run for, and what checks print is kept.
#[test]
fn a_flaky_check_of_a_merge_is_shown_as_flaky_with_what_it_printed() {
    let scratch = merging("", "", BUILD);
    let runs = scratch.home().join("runs");
    let file = scratch.root().join(".gatewright/workflows/w.yaml");
    let text_of = std::fs::read_to_string(&file).unwrap();
    let check = "{ run: \"test ! -e src/broken || test -e src/mended\" }";
    assert!(text_of.contains(check), "{text_of}");
    let flaky = format!(
        "{{ run: \"echo as printed; echo x >> {0}; test $(wc -l < {0}) -ge 2\", reruns: 1 }}",
        runs.display()
    );
    std::fs::write(&file, text_of.replace(check, &flaky)).unwrap();
    let run = scratch.run(0);
    let step = scratch.step(&run, "together");
    let notes = step["notes"].to_string();
    assert!(notes.contains("is flaky: with `") && notes.contains("it failed 1 time(s)"), "{step:#}");
    let ended = scratch.events_of(&run, "step.attempt.ended");
    let merge = ended.iter().find(|event| event["step"] == "together").unwrap();
    assert!(text(&merge["report"]["check"]["output"]).contains("as printed"), "{merge:#}");
}

/// Three streams change the same line, the fourth has a file of its own.
const CLASH: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: b}\n- {id: c}\n- {id: d}\n- {id: e}')"; brief DONE tasks.yaml;;
*/e/build) echo e > src/e.new; ok;;
*/build) echo $GATEWRIGHT_ITEM > src/a.txt; ok;;"#;

#[test]
fn every_stream_that_is_not_merged_is_asked_about_counted_and_named_with_its_branch() {
    let scratch = merging("", "  - { id: home, finish: keep }", "");
    scratch.agent(CLASH);
    let run = scratch.run(10);
    // What goes together is in already.
    assert_eq!((on(&scratch, &run, "src/a.txt"), on(&scratch, &run, "src/e.new")), ("b".into(), "e".into()));
    let decision = scratch.status(&run)["decisions"][0].clone();
    let question = text(&decision["question"]);
    assert!(question.contains("stream `c`") && question.contains("stream `d`"), "{question}");
    let summary = text(&scratch.step(&run, "together")["summary"]);
    assert!(summary.starts_with("2 of 4 streams"), "{summary}");
    scratch.gatewright(&["answer", &run, &text(&decision["id"]), "accept"]).exits(0);
    let step = scratch.step(&run, "together");
    assert!(text(&step["summary"]).starts_with("2 of 4 streams"), "{step:#}");
    let notes: Vec<String> = step["notes"].as_array().unwrap().iter().map(text).collect();
    for key in ["c", "d"] {
        let branch = format!("gatewright/{run}/{key}");
        let named =
            |note: &String| note.contains(&format!("stream `{key}` is not merged")) && note.contains(&branch);
        assert!(notes.iter().any(named), "{key}: {notes:?}");
        assert_eq!(scratch.git_says(&["show", &format!("{branch}:src/a.txt")]), key, "its work is there");
    }
}

#[test]
fn one_conflict_after_the_other_is_mended_and_the_last_one_too() {
    let agent = r#"
together-fix) git show MERGE_HEAD:src/a.txt > "$HOME/theirs-$GATEWRIGHT_ATTEMPT"
git show HEAD:src/a.txt > "$HOME/all"; cat "$HOME/theirs-$GATEWRIGHT_ATTEMPT" >> "$HOME/all"; cp "$HOME/all" src/a.txt; ok Mended.;;"#;
    let scratch = merging(", fix: { role: fixer }, rounds_max: 4", "", "");
    scratch.agent(&format!("{CLASH}{agent}"));
    let run = scratch.run(0);
    assert_eq!(on(&scratch, &run, "src/a.txt"), "b\nc\nd");
    assert_eq!(scratch.count("together-fix"), 2);
    let prompt = scratch.prompt("together-fix", 1);
    assert!(prompt.contains("its turn comes after `c`"), "{prompt}");
    assert_eq!(scratch.step(&run, "together")["notes"], serde_json::json!([]));
}

#[test]
fn a_merge_that_a_person_let_be_is_in_nobodys_way_afterwards() {
    for (finish, moved) in [("merge", true), ("keep", false)] {
        let scratch = merging("", &format!("  - {{ id: home, finish: {finish} }}"), "");
        scratch.agent(CLASH);
        let run = scratch.run(10);
        if moved {
            scratch.write("src/other.txt", "other\n");
            scratch.git(&["add", "src/other.txt"]);
            scratch.git(&["commit", "-qm", "other"]);
        }
        let id = text(&scratch.status(&run)["decisions"][0]["id"]);
        scratch.gatewright(&["answer", &run, &id, "accept"]).exits(0);
        assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1, "{finish}: nothing is left");
        let patch = std::fs::read_to_string(scratch.state_dir(&run).join("patches/unfinished-merge.patch"));
        assert!(patch.unwrap().contains("<<<<<<<"), "{finish}: what was in the tree is kept");
        let doctor = scratch.gatewright(&["doctor"]).out;
        assert!(!doctor.contains("which is over"), "{doctor}");
        if moved {
            assert_eq!(scratch.git_says(&["show", "main:src/e.new"]), "e");
            assert_eq!(scratch.git_says(&["show", "main:src/other.txt"]), "other");
        }
    }
}

#[test]
fn a_failed_check_stops_that_merge_only() {
    // b is in the list before c, and a comes first.
    let agent = r"
*/a/build) echo a > src/broken; ok;;
*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;";
    let scratch = merging("", "", agent);
    let run = scratch.run(10);
    assert_eq!(on(&scratch, &run, "src/c.new"), "c", "the one after it is in before anybody answers");
    let files = scratch.git_says(&["ls-tree", "--name-only", &format!("gatewright/{run}/_run"), "src/"]);
    assert!(!files.contains("broken"), "{files}");
}

#[test]
fn a_merge_has_its_own_time_for_each_check_and_takes_its_place_in_a_pool_of_the_machine() {
    let scratch = merging(", timeout: 300ms, pools: [database]", "", BUILD);
    let file = scratch.root().join(".gatewright/workflows/w.yaml");
    let text_of = std::fs::read_to_string(&file).unwrap();
    let check = "test ! -e src/broken || test -e src/mended";
    let slow = format!(
        "ls {0}/state/pools/* > {0}/home/places; sleep 20",
        scratch.home().parent().unwrap().display()
    );
    let text_of = text_of.replace(check, &slow).replace(
        "steps:\n  - { id: plan",
        "pools: { database: { depth: 1, scope: machine } }\nsteps:\n  - { id: plan",
    );
    std::fs::write(&file, text_of).unwrap();
    // Somebody looks from outside: in the sandbox the places are not to be seen.
    scratch.config("sandbox: off");
    let run = scratch.run(10);
    let question = text(&scratch.status(&run)["decisions"][0]["question"]);
    assert!(question.contains("ran longer than 300 ms"), "{question}");
    let places = std::fs::read_to_string(scratch.home().join("places")).unwrap();
    assert!(places.lines().any(|line| line.trim() == "1"), "a place is taken while it works: {places}");
}

#[test]
fn the_end_of_a_branch_takes_its_place_in_a_pool_of_the_machine() {
    let scratch = merging("", "  - { id: home, finish: pull_request, pools: [database] }", BUILD);
    let file = scratch.root().join(".gatewright/workflows/w.yaml");
    let workflow = std::fs::read_to_string(&file).unwrap();
    let pool = "pools: { database: { depth: 1, scope: machine } }\nsteps:\n  - { id: plan";
    std::fs::write(&file, workflow.replace("steps:\n  - { id: plan", pool)).unwrap();
    let command =
        "touch $HOME/at-$(basename $(dirname {branch})); until test -e $HOME/go; do sleep 0.05; done";
    scratch.config(&format!("pull_request: {{ command: {command:?} }}"));
    let at = |run: &str| scratch.home().join(format!("at-{run}")).exists();
    let first = scratch.start(&["run", "w", "first"]);
    let one = first.id();
    wait_for("the first one's command", || at(&one).then_some(()));
    let second = scratch.start(&["run", "w", "second"]);
    let two = second.id();
    wait_for("the second one waits for the place", || {
        let said = scratch.gatewright(&["why", &two, "home"]).out;
        (said.contains("`database` on this machine") && said.contains(&one)).then_some(())
    });
    assert!(!at(&two), "one place, and it is taken");
    std::fs::write(scratch.home().join("go"), "").unwrap();
    first.ended().exits(0);
    second.ended().exits(0);
    assert!(at(&two));
}

/// A fixer works in the tree of the merge: what it may not change does not come in with it.
#[test]
fn a_fixers_work_in_a_merge_is_held_against_its_scope_and_against_secrets() {
    for (does, named) in [
        ("echo KEY=1 > src/.env", "`src/.env` looks like a secret"),
        ("echo x > outside.txt", "outside.txt"),
        // An attempt that failed leaves its work to the next one; that makes it nobody else's.
        ("test $GATEWRIGHT_ATTEMPT != 1 || echo x > outside.txt", "outside.txt"),
    ] {
        let agent = format!(
            r"
*/c/build) echo c > src/broken; ok;;
*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;
together-fix) echo mended > src/mended; {does}; ok;;"
        );
        let scratch = merging(", fix: { role: fixer }", "", &agent);
        let file = scratch.root().join(".gatewright/workflows/w.yaml");
        let workflow = std::fs::read_to_string(&file).unwrap();
        let held = "prompt: \"Mend the merge.\", may_write: [\"src/**\"]";
        std::fs::write(&file, workflow.replace("prompt: \"Mend the merge.\"", held)).unwrap();
        let run = scratch.run(11);
        let (_, message) = scratch.blocked_by(&run);
        for part in ["together-fix", named] {
            assert!(message.contains(part), "{does}: {part}: {message}");
        }
        if named == "outside.txt" {
            assert!(message.contains("fixer"), "{message}");
        }
        let merged = scratch.git_says(&["ls-tree", "-r", "--name-only", &format!("gatewright/{run}/_run")]);
        for file in ["src/.env", "outside.txt", "src/broken"] {
            assert!(!merged.lines().any(|line| line == file), "{does}: {merged}");
        }
        assert_eq!(on(&scratch, &run, "src/a.new"), "a", "the others are in");
        assert_eq!(scratch.git_says(&["show", &format!("gatewright/{run}/c:src/broken")]), "c", "not lost");
    }
}

#[test]
fn merges_of_the_engine_have_its_trailers_and_the_signature_of_the_user() {
    let scratch = merging("", "  - { id: home, finish: merge }", "");
    let around = scratch.root().parent().unwrap().to_owned();
    scratch.agent(
        r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: c}\n- {id: d, depends_on: [a, c]}')"; brief DONE tasks.yaml;;
*/d/build) echo d > src/d.new; mark at; await go; ok;;
*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;"#,
    );
    let gpg = around.join("gpg");
    // The keyring is where no sandbox lets anybody write.
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho signed >> {} || exit 2\nprintf '\\n[GNUPG:] SIG_CREATED D 1 8 00 0 0\\n' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nof the user\\n-----END PGP SIGNATURE-----\\n'\n",
        around.join("keyring").display()
    );
    std::fs::write(&gpg, script).unwrap();
    std::fs::set_permissions(&gpg, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (key, value) in [("gpg.program", gpg.to_str().unwrap()), ("commit.gpgSign", "true")] {
        scratch.git(&["config", key, value]);
    }
    let running = scratch.start(&["run", "w", "go"]);
    let run = running.id();
    scratch.marked("at");
    scratch.write("src/other.txt", "other\n");
    scratch.git(&["add", "src/other.txt"]);
    scratch.git(&["-c", "commit.gpgSign=false", "commit", "-qm", "other"]);
    let own = scratch.git_says(&["rev-list", "main"]);
    scratch.mark("go");
    running.ended().exits(0);
    let after = scratch.git_says(&["rev-list", "main"]);
    assert!(own.lines().all(|commit| after.contains(commit)), "the user's own commits are as they were");
    let trailer = |commit: &str, key: &str| {
        let format = format!("--format=%(trailers:key=Gatewright-{key},valueonly)");
        scratch.git_says(&["log", "-1", &format, commit]).trim().to_owned()
    };
    let find = |subject: &str| {
        let commit = scratch.git_says(&["log", "-1", "--format=%H", &format!("--grep=^{subject}"), "main"]);
        assert!(!commit.is_empty(), "{subject}");
        commit
    };
    for (subject, step) in
        [("Build on", "each/d/build"), ("Merge main into", "home"), ("Merge gatewright/", "together")]
    {
        let commit = find(subject);
        assert_eq!(
            (trailer(&commit, "Run"), trailer(&commit, "Step"), trailer(&commit, "Attempt")),
            (run.clone(), step.to_owned(), "1".to_owned()),
            "{subject}"
        );
        let stored = scratch.git_says(&["cat-file", "commit", &commit]);
        assert!(stored.contains("gpgsig "), "{stored}");
    }
}

#[test]
fn an_item_without_work_has_nothing_to_merge_and_nobody_waits_for_its_branch() {
    let body = r#"
roles: { coder: { agent: mine, prompt: "Build." } }
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps: [ { id: build, role: coder, when: 'item.kind == "code"' } ]
  - { id: together, merge: each }
"#;
    let agent = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a, kind: code}\n- {id: b, kind: none, depends_on: [a]}\n- {id: c, kind: code, depends_on: [b]}')"; brief DONE tasks.yaml;;
*/c/build) cat src/a.new > src/c.new; ok;;
*/build) echo from-$GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;"#;
    let scratch = Scratch::with(body, agent);
    let run = scratch.run(0);
    assert_eq!(on(&scratch, &run, "src/c.new"), "from-a", "c builds on what is before b");
    assert!(!scratch.called().contains(&"each/b/build".to_owned()));
    let notes = scratch.step(&run, "together")["notes"].to_string();
    assert!(notes.contains("`b` had nothing to do"), "{notes}");
}
