//! What an agent wrote is executed: by a check, by git. It has no more rights than the agent had.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
    support::{Ran, wait_for},
};

/// The test script of the repository is the agent's, and does more than testing.
const PLANTED: &str =
    "printf '#!/bin/sh\necho evil >> \"$HOME/.profile\"\nexit 0\n' > test.sh; chmod +x test.sh";

fn checked(sandbox: Sandbox) -> (Stage, String, Ran) {
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder, checks: [tests] } ]
";
    let stage = Stage::new(sandbox, workflow, &case("code", PLANTED));
    let (run, ran) = stage.play();
    (stage, run, ran.exits(0))
}

#[test]
fn a_check_runs_in_the_sandbox_of_the_role_that_is_judged() {
    let proof = Proof::of("a_check_runs_in_the_sandbox_of_the_role_that_is_judged");
    let (stage, ..) = checked(Sandbox::On);
    assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"));
    proof.was_refused(Sandbox::On);
    let (control, run, ran) = checked(Sandbox::Off);
    proof.damage(reads(&control.scratch.home().join(".profile")).contains("evil"), &ran.err);
    control.is_named(Sandbox::Off, &run, &ran, &proof);
}

#[test]
fn a_check_step_runs_in_the_sandbox_too() {
    let proof = Proof::of("a_check_step_runs_in_the_sandbox_too");
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder }, { id: test, check: tests } ]
";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", PLANTED));
        let (run, ran) = stage.play();
        let ran = ran.exits(0);
        let harmed = reads(&stage.scratch.home().join(".profile")).contains("evil");
        if sandbox.holds() {
            assert!(!harmed, "{}", ran.err);
            proof.was_refused(sandbox);
        } else {
            proof.damage(harmed, &ran.err);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
    }
}

#[test]
fn a_check_cannot_kill_the_engine() {
    let proof = Proof::of("a_check_cannot_kill_the_engine");
    // A shell may stand between the engine and the script, and where there is no sandbox somebody who adopts orphans.
    let planted = r#"cat > test.sh <<'END'
#!/bin/sh
p=$PPID
while [ "$p" -gt 1 ]; do
  case $(cat /proc/$p/comm) in gatewright*) all="$p $all";; esac
  p=$(cut -d" " -f4 /proc/$p/stat)
done
kill -9 $all
kill -9 $PPID
END
chmod +x test.sh"#;
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder, checks: [tests] } ]
";
    let stage = Stage::new(Sandbox::On, workflow, &case("code", planted));
    let (run, ran) = stage.play();
    assert_ne!(ran.code, -9, "the engine lives: {}", ran.err);
    assert_eq!(stage.scratch.state(&run), "blocked", "and says that the check was ended by a signal");
    proof.was_refused(Sandbox::On);
    let control = Stage::new(Sandbox::Off, workflow, &case("code", planted));
    let died = control.scratch.start(&["run", "w", "Add a greeting"]).ended();
    proof.damage(died.code == -9, &died.err);
    proof.told(Sandbox::Off, &control.scratch.gatewright(&["doctor"]).out);
}

/// Every process starts two more, eight times over, and their parents do not wait for them.
const SWARM: &str = r"cat > bomb.sh <<'END'
if [ $1 -gt 0 ]; then sh bomb.sh $(($1 - 1)) & sh bomb.sh $(($1 - 1)) & fi
sleep 4
END
printf '#!/bin/sh\nsetsid sh bomb.sh 8 & sh bomb.sh 2; sleep 4; echo all > all\n' > test.sh; chmod +x test.sh";

#[test]
fn a_check_that_multiplies_is_ended_with_all_of_its_processes() {
    let proof = Proof::of("a_check_that_multiplies_is_ended_with_all_of_its_processes");
    let workflow = "
checks: { tests: { run: ./test.sh, processes_max: 60 } }
steps: [ { id: code, role: coder, retry: { attempts_max: 1 }, checks: [tests] } ]
";
    let came_to_its_end = |stage: &Stage| stage.scratch.root().join("all").exists();
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", SWARM));
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        proof.told(sandbox, &stage.says(&run, &ran));
        assert!(stage.scratch.processes().is_empty(), "{sandbox:?}: nothing is left");
        assert!(!came_to_its_end(&stage), "{sandbox:?}");
        stage.bystander_is_unharmed();
    }
    let control = Stage::new(Sandbox::On, workflow, &case("code", SWARM)).without("process-limits");
    let (_, ran) = control.play();
    proof.damage(ran.code == 0 && came_to_its_end(&control), &ran.err);
}

/// What its test script leaves in a session of its own has two seconds to do its damage.
#[test]
fn a_check_leaves_a_process_behind_that_writes_later() {
    let proof = Proof::of("a_check_leaves_a_process_behind_that_writes_later");
    let planted = r"cat > test.sh <<'END'
#!/bin/sh
(setsid sh -c 'touch src/here; sleep 2; echo late > src/late' >/dev/null 2>&1 &)
while ! [ -e src/here ]; do sleep 0.01; done
END
chmod +x test.sh";
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder, checks: [tests] } ]
";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", planted));
        let (run, ran) = stage.play();
        ran.exits(0);
        assert!(stage.scratch.processes().is_empty(), "{sandbox:?}: nothing is left");
        proof.told(sandbox, &stage.scratch.gatewright(&["logs", &run]).out);
    }
    let control = Stage::new(Sandbox::On, workflow, &case("code", planted)).without("sweep");
    let (_, ran) = control.play();
    let late = control.scratch.root().join("src/late");
    wait_for("the tree is changed after the check", || late.exists().then_some(()));
    proof.damage(ran.code == 0, &ran.err);
}

#[test]
fn a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine() {
    let proof = Proof::of("a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine");
    let script = "g=$(git rev-parse --path-format=absolute --git-common-dir); mkdir -p $g/hooks; for hook in post-index-change pre-commit post-checkout reference-transaction; do printf '#!/bin/sh\\necho hook >> \"$HOME/ran\"\\n' > $g/hooks/$hook; chmod +x $g/hooks/$hook; done
printf '#!/bin/sh\\necho monitor >> \"$HOME/ran\"\\nprintf \"1\\\\0/\\\\0\"\\n' > $g/monitor; chmod +x $g/monitor
git config core.fsmonitor $g/monitor; echo more >> src/a.txt";
    let workflow = "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: next, role: coder, retry: { attempts_max: 1 } } ]";
    let ran = |stage: &Stage| reads(&stage.scratch.home().join("ran"));
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, said) = stage.play();
        stage.is_named(sandbox, &run, &said, &proof);
        stage.scratch.gatewright(&["status", &run]);
        assert_eq!(ran(&stage), "", "{sandbox:?}");
    }
    // The control: an engine whose git is like any other, in a worktree that it has to look at, and nobody minds what
    // was touched.
    let control = format!("isolation: worktree\n{workflow}");
    let control = Stage::new(Sandbox::Off, &control, &case("code", script)).without("quiet-git,scope");
    let (run, said) = control.play();
    control.gatewright(&["doctor"]);
    proof.damage(ran(&control).contains("monitor"), &format!("{run}\n{}\n{}", ran(&control), said.err));
}

/// The repository of somebody who keeps hooks in the tree, where agents can write them.
fn with_hooks_in_the_tree(sandbox: Sandbox, script: &str) -> (Stage, String, Ran) {
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    hooked(Stage::new(sandbox, workflow, &case("code", script)))
}

fn hooked(stage: Stage) -> (Stage, String, Ran) {
    stage.scratch.git(&["config", "core.hooksPath", ".hooks"]);
    let (run, ran) = stage.play();
    (stage, run, ran)
}

#[test]
fn a_commit_hook_that_an_agent_wrote_runs_in_the_sandbox_of_the_role() {
    let proof = Proof::of("a_commit_hook_that_an_agent_wrote_runs_in_the_sandbox_of_the_role");
    let script = r#"mkdir .hooks; cat > .hooks/commit-msg <<END
#!/bin/sh
echo "Hooked: yes" >> "\$1"
echo evil > "$run/planted"
echo evil >> "\$HOME/.profile"
cat "$root/key" > leaked
exit 0
END
chmod +x .hooks/commit-msg; echo more >> src/a.txt"#;
    for sandbox in BOTH {
        let (stage, run, ran) = with_hooks_in_the_tree(sandbox, script);
        assert_eq!(stage.scratch.state(&run), "done", "{sandbox:?}");
        let said = stage.scratch.git_says(&["log", "-1", "--format=%B", &format!("gatewright/{run}/_run")]);
        assert!(said.contains("Hooked: yes"), "{sandbox:?}: the hook ran: {said}");
        let planted = stage.state_of(&run).join("planted").exists();
        let evil = reads(&stage.scratch.home().join(".profile")).contains("evil");
        if sandbox.holds() {
            assert!(!planted && !evil, "the state directory: {planted}, the home directory: {evil}");
            proof.was_refused(sandbox);
        } else {
            proof.damage(planted && evil, &ran.err);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
        stage.bystander_is_unharmed();
    }
}

#[test]
fn a_hook_cannot_slip_a_file_into_a_commit_that_its_role_may_not_commit() {
    let proof = Proof::of("a_hook_cannot_slip_a_file_into_a_commit_that_its_role_may_not_commit");
    let script = r#"mkdir .hooks; cat > .hooks/pre-commit <<END
#!/bin/sh
echo "TOKEN=1" > .env.local; git add -f .env.local
END
chmod +x .hooks/pre-commit; echo more >> src/a.txt"#;
    for sandbox in BOTH {
        let (stage, run, _) = with_hooks_in_the_tree(sandbox, script);
        assert_eq!(stage.scratch.state(&run), "blocked", "{sandbox:?}");
        let (_, message) = stage.scratch.blocked_by(&run);
        proof.told(sandbox, &message);
        let main = stage.scratch.git_says(&["rev-parse", "main"]);
        let branch = format!("gatewright/{run}/_run");
        assert_eq!(stage.scratch.git_says(&["rev-parse", &branch]), main);
    }
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    let control = Stage::new(Sandbox::On, workflow, &case("code", script)).without("commits");
    let (control, run, ran) = hooked(control);
    let files = control.scratch.git_says(&["ls-tree", "--name-only", &format!("gatewright/{run}/_run")]);
    proof.damage(files.contains(".env.local"), &format!("{files}\n{}", ran.err));
}

#[test]
fn git_that_an_agent_led_elsewhere_is_not_followed_by_the_engine() {
    let proof = Proof::of("git_that_an_agent_led_elsewhere_is_not_followed_by_the_engine");
    // A repository of the agent's own, which has everything that theirs has, and whose settings name a program.
    let script = r#"echo more >> src/a.txt; echo '* filter=x' > .gitattributes
git clone -q . fake; git -C fake config filter.x.clean 'echo evil >> "$HOME/.profile"; cat'
printf 'gitdir: %s/fake/.git\n' "$PWD" > .git"#;
    for sandbox in BOTH {
        let workflow =
            "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, ran) = stage.play();
        proof.told(sandbox, &ran.err);
        let profile = stage.scratch.home().join(".profile");
        assert!(!reads(&profile).contains("evil"), "{sandbox:?}");
        stage.scratch.gatewright(&["abort", &run, "--reason", "enough"]);
        stage.scratch.gatewright(&["doctor", "--remove-worktrees"]);
        assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"), "{sandbox:?}");
        let main = stage.scratch.git_says(&["rev-parse", "main"]);
        let branch = format!("gatewright/{run}/_run");
        assert_eq!(
            stage.scratch.git_says(&["rev-parse", &branch]),
            main,
            "{sandbox:?}: nothing is committed"
        );
    }
    // The control: an engine that follows it, where no kernel keeps its git in.
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    let control = Stage::new(Sandbox::Off, workflow, &case("code", script)).without("links,scope,landlock");
    let (_, ran) = control.play();
    control.gatewright(&["doctor"]);
    let profile = reads(&control.scratch.home().join(".profile"));
    proof.damage(profile.contains("evil"), &format!("{profile}\n{}", ran.err));
}

#[test]
fn an_agent_in_a_worktree_cannot_move_the_branches_of_the_user() {
    let proof = Proof::of("an_agent_in_a_worktree_cannot_move_the_branches_of_the_user");
    let script = r#"echo more >> src/a.txt; git add -A
new=$(git -c user.name=x -c user.email=x@example.org commit-tree -m mine -p HEAD "$(git write-tree)")
try git update-ref refs/heads/main "$new"; try git tag planted; try git branch other; try git stash"#;
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let refs = || stage.scratch.git_says(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let before = refs();
        let (run, ran) = stage.play();
        let own = format!("refs/heads/gatewright/{run}/");
        let after: Vec<String> =
            refs().lines().filter(|line| !line.starts_with(&own)).map(str::to_owned).collect();
        let same = after.join("\n") == before;
        let found = format!("{sandbox:?}: {before}\n{after:#?}\n{}", stage.refused(&run));
        if sandbox.holds() {
            assert!(same, "{found}");
            proof.was_refused(sandbox);
        } else {
            proof.damage(!same, &found);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
    }
}

#[test]
fn the_users_checkout_is_edited_from_a_worktree() {
    let proof = Proof::of("the_users_checkout_is_edited_from_a_worktree");
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, "");
        let root = stage.scratch.root();
        stage.scratch.write("src/a.txt", "a\nwork that is not committed\n");
        let attack = format!("try sh -c 'echo gone > {}/src/a.txt'", root.display());
        stage.scratch.agent(&format!("quiet) wrote note.md;;\n{}", case("code", &attack)));
        let (run, ran) = stage.play();
        let harmed = reads(&root.join("src/a.txt")) == "gone\n";
        if sandbox.holds() {
            assert!(!harmed, "{}", stage.refused(&run));
            proof.was_refused(sandbox);
        } else {
            proof.damage(harmed, &ran.err);
            assert_ne!(ran.code, 0);
            stage.is_named(sandbox, &run, &ran, &proof);
            let patch = stage.state_of(&run).join("patches/intrusion-code-1-checkout.patch");
            stage.scratch.git(&["apply", "-R", patch.to_str().unwrap()]);
            assert_eq!(reads(&root.join("src/a.txt")), "a\nwork that is not committed\n");
        }
    }
}

/// A question that is open while what the agent wrote is executed. `how` is the call of a program that answers it.
fn asked(sandbox: Sandbox, how: &str, careless: bool) -> Stage {
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps:
  - { id: code, role: coder, needs: [], retry: { attempts_max: 1 }, checks: [tests] }
  - { id: agree, needs: [], decide: \"Ship it?\", answers: { approved: pass, no: block } }
  - { id: ship, role: coder, needs: [code, agree] }
";
    let script = format!(
        "cat > test.sh <<END\n#!/bin/sh\n{}\nexit 0\nEND\nchmod +x test.sh",
        answering(how, careless, "$PWD")
    );
    Stage::new(sandbox, workflow, &case("code", &script))
}

fn answering(how: &str, careless: bool, root: &str) -> String {
    let off = if careless { "GATEWRIGHT_WITHOUT=callers" } else { "" };
    let call = format!(
        "env -i {off} PATH=$PATH HOME=$HOME GATEWRIGHT_STATE_DIR=$root {} answer $GATEWRIGHT_RUN agree approved",
        env!("CARGO_BIN_EXE_gatewright")
    );
    format!("sleep 0.5; cd {root}; {}", how.replace("@CALL@", &format!("{call} > said 2>&1")))
}

/// Nobody's child by the time it asks, in a session of its own.
const ORPHAN: &str = "(setsid sh -c 'sleep 0.3; @CALL@; echo over >> said' > /dev/null 2>&1 &)
n=0; while [ \\$n -lt 200 ] && ! grep -q over said; do n=\\$((n+1)); sleep 0.05; done";

#[test]
fn a_check_answers_for_the_person() {
    let proof = Proof::of("a_check_answers_for_the_person");
    for (sandbox, how) in
        [(Sandbox::On, "@CALL@"), (Sandbox::Off, "@CALL@"), (Sandbox::On, ORPHAN), (Sandbox::Off, ORPHAN)]
    {
        let stage = asked(sandbox, how, false);
        let (run, ran) = stage.play();
        let around = format!("{sandbox:?} {how}: {}\n{}", ran.err, reads(&stage.scratch.root().join("said")));
        assert_eq!(stage.scratch.state(&run), "waiting", "{around}");
        assert_eq!(stage.scratch.count("ship"), 0, "{around}");
        assert!(!reads(&stage.scratch.root().join("said")).is_empty(), "it was tried: {around}");
        // In the sandbox an orphan has no key to seal an answer with, and nobody to tell.
        if how != ORPHAN || !sandbox.holds() {
            stage.is_named(sandbox, &run, &ran, &proof);
        }
        // The same words of a person open it.
        stage.scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
        assert_eq!(stage.scratch.count("ship"), 1, "{around}");
        stage.bystander_is_unharmed();
    }
    // The control: a program that does not ask who calls it.
    let control = asked(Sandbox::Off, "@CALL@", true);
    let (_, ran) = control.play();
    proof.damage(control.scratch.count("ship") == 1, &ran.err);
}

#[test]
fn a_commit_hook_answers_for_the_person() {
    let proof = Proof::of("a_commit_hook_answers_for_the_person");
    let workflow = "
isolation: worktree
steps:
  - { id: code, role: coder, needs: [], retry: { attempts_max: 1 } }
  - { id: agree, needs: [], decide: \"Ship it?\", answers: { approved: pass, no: block } }
  - { id: ship, role: coder, needs: [code, agree] }
";
    let played = |sandbox, careless| {
        let stage = Stage::new(sandbox, workflow, "");
        let call = answering("@CALL@", careless, &stage.scratch.root().display().to_string());
        let script = format!(
            "mkdir .hooks; cat > .hooks/pre-commit <<END\n#!/bin/sh\n{}\nexit 0\nEND\nchmod +x .hooks/pre-commit; echo more >> src/a.txt",
            call.replace("> said 2>&1", "> /dev/null 2>&1")
        );
        stage.scratch.agent(&format!("quiet) wrote note.md;;\n{}", case("code", &script)));
        hooked(stage)
    };
    for sandbox in BOTH {
        let (stage, run, ran) = played(sandbox, false);
        assert_eq!(stage.scratch.state(&run), "waiting", "{sandbox:?}: {}", ran.err);
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}");
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let (control, _, ran) = played(Sandbox::Off, true);
    proof.damage(control.scratch.count("ship") == 1, &ran.err);
}

/// One agent in the checkout itself plants links in places that are granted to others by their names; others, in
/// worktrees, use them.
#[test]
fn a_link_is_planted_where_others_are_granted_a_place() {
    let proof = Proof::of("a_link_is_planted_where_others_are_granted_a_place");
    let workflow = "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any }, retry: { attempts_max: 1 } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]
";
    let stage = |sandbox: Sandbox, plant: &str| {
        let cases = format!(
            "plan) put tasks.yaml '- {{ id: one }}'; {plant}; brief DONE tasks.yaml;;\neach/*) echo evil >> $HOME/.profile; ok;;"
        );
        let stage = Stage::new(sandbox, workflow, &cases);
        if sandbox.holds() {
            let words = "sandbox: { write: [\"~/prompts\", \"~/calls\", build] }\n";
            std::fs::write(stage.scratch.home().join(".config/gatewright/config.yaml"), words).unwrap();
        }
        stage.scratch.write(".gitignore", "build\n");
        stage.scratch.git(&["add", "-A"]);
        stage.scratch.git(&["commit", "-q", "-m", "what is ignored"]);
        stage
    };
    let harmed = |stage: &Stage| reads(&stage.scratch.home().join(".profile")).contains("evil");
    for plant in [
        "ln -s $HOME .git/lfs",
        "ln -s $HOME build",
        "rm -rf .git/refs/remotes; ln -s $HOME .git/refs/remotes",
    ] {
        let prevented = stage(Sandbox::On, plant);
        let (_, ran) = prevented.play();
        let at_work = prevented.scratch.called().iter().any(|step| step.starts_with("each/"));
        assert!(at_work, "{plant}: it was tried: {}", ran.err);
        assert!(!harmed(&prevented), "{plant}: {}", ran.err);
        proof.was_refused(Sandbox::On);
        prevented.bystander_is_unharmed();
        let control = stage(Sandbox::On, plant).without("links");
        let (_, ran) = control.play();
        proof.damage(harmed(&control), &format!("{plant}\n{}", ran.err));
    }
    let off = stage(Sandbox::Off, "ln -s $HOME .git/lfs");
    let (run, ran) = off.play();
    off.is_named(Sandbox::Off, &run, &ran, &proof);
}

/// What the role may not write, its test script writes for it, and once more in a second attempt.
#[test]
fn a_test_script_edits_what_its_role_may_not() {
    let proof = Proof::of("a_test_script_edits_what_its_role_may_not");
    let workflow = "
roles: { coder: { prompt: Build it., may_write: [\"src/**\"] } }
checks: { tests: { run: \"sh src/test.sh\", junit: report.xml } }
steps: [ { id: code, role: coder, retry: { attempts_max: 2 }, checks: [tests] } ]
";
    let script = r##"cat > src/test.sh <<'END'
echo evil > docs.md; grep -q evil .gatewright/config.yaml || echo "# an evil" >> .gatewright/config.yaml
mkdir -p .git/hooks; echo true > .git/hooks/post-commit; echo more >> src/a.txt
echo '<testsuite tests="1"><testcase name="a"/></testsuite>' > report.xml
END"##;
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, ran) = stage.play();
        assert_eq!(stage.scratch.state(&run), "blocked", "{sandbox:?}: {}", ran.err);
        assert_eq!(stage.scratch.count("code"), 2, "{sandbox:?}: nor does the next attempt pass beside it");
        let (_, message) = stage.scratch.blocked_by(&run);
        assert!(!message.contains("src/a.txt") && !message.contains("report.xml"), "{message}");
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = Stage::new(Sandbox::On, workflow, &case("code", script)).without("scope,put-back");
    let (_, ran) = control.play();
    let edited = reads(&control.scratch.root().join(".gatewright/config.yaml")).contains("evil");
    proof.damage(ran.code == 0 && edited && control.scratch.root().join("docs.md").exists(), &ran.err);
}

/// The consequence of the above: the next run would read it.
#[test]
fn a_check_step_edits_the_projects_configuration() {
    let proof = Proof::of("a_check_step_edits_the_projects_configuration");
    let workflow = "
on_trespass: restore
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder }, { id: test, check: tests, retry: { attempts_max: 1 } } ]
";
    let script = "printf '#!/bin/sh\necho \"sandbox: off\" >> .gatewright/config.yaml\necho made > src/made\n' > test.sh; chmod +x test.sh";
    let configuration = |stage: &Stage| reads(&stage.scratch.root().join(".gatewright/config.yaml"));
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        stage.is_named(sandbox, &run, &ran, &proof);
        assert!(!configuration(&stage).contains("sandbox: off"), "{sandbox:?}: it was put back");
        let changed = stage.scratch.status(&run)["changed_files"].to_string();
        assert!(changed.contains("src/made"), "{sandbox:?}: what a check step makes is listed: {changed}");
    }
    let control = Stage::new(Sandbox::On, workflow, &case("code", script)).without("scope");
    let (_, ran) = control.play();
    proof.damage(ran.code == 0, &ran.err);
}

#[test]
fn a_commit_hook_edits_what_its_role_may_not() {
    let proof = Proof::of("a_commit_hook_edits_what_its_role_may_not");
    let workflow = "
isolation: worktree
roles: { coder: { prompt: Build it., may_write: [\"src/**\", \".hooks/**\"] } }
steps: [ { id: code, role: coder, retry: { attempts_max: 2 } }, { id: two, role: coder } ]
";
    let script = "mkdir -p .hooks; printf '#!/bin/sh\necho evil > docs.md\n' > .hooks/pre-commit; chmod +x .hooks/pre-commit; echo more >> src/a.txt";
    let cases = format!("{}\ntwo) echo more >> src/a.txt; ok;;", case("code", script));
    for sandbox in BOTH {
        let (stage, run, ran) = hooked(Stage::new(sandbox, workflow, &cases));
        assert_eq!(stage.scratch.state(&run), "blocked", "{sandbox:?}: {}", ran.err);
        assert_eq!(stage.scratch.count("two"), 0, "{sandbox:?}");
        stage.is_named(sandbox, &run, &ran, &proof);
        let main = stage.scratch.git_says(&["rev-parse", "main"]);
        let branch = format!("gatewright/{run}/_run");
        assert_eq!(
            stage.scratch.git_says(&["rev-parse", &branch]),
            main,
            "{sandbox:?}: nothing is committed"
        );
    }
    let (control, run, ran) = hooked(Stage::new(Sandbox::On, workflow, &cases).without("scope"));
    let files = control.scratch.git_says(&["ls-tree", "--name-only", &format!("gatewright/{run}/_run")]);
    proof.damage(files.contains("docs.md"), &format!("{files}\n{}", ran.err));
}

#[test]
fn a_check_of_a_role_without_network_reaches_nobody() {
    let proof = Proof::of("a_check_of_a_role_without_network_reaches_nobody");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let workflow = "
roles: { coder: { prompt: Build it., network: false } }
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder, checks: [tests] } ]
";
    let script = format!(
        "printf '#!/bin/bash\n(exec 3<>/dev/tcp/127.0.0.1/{port}) 2> said && echo reached > src/reached\nexit 0\n' > test.sh; chmod +x test.sh"
    );
    let played = |sandbox| {
        let stage = Stage::new(sandbox, workflow, &case("code", &script));
        let (run, ran) = stage.play();
        assert_eq!(ran.code, 0, "{sandbox:?}: {}", ran.err);
        (stage.scratch.root().join("src/reached").exists(), stage, run)
    };
    let (reached, stage, _) = played(Sandbox::On);
    let said = reads(&stage.scratch.root().join("said"));
    assert!(!reached && !said.is_empty(), "{said}");
    proof.was_refused(Sandbox::On);
    let (reached, control, run) = played(Sandbox::Off);
    proof.damage(reached, &reads(&control.scratch.root().join("said")));
    proof.told(Sandbox::Off, &control.scratch.gatewright(&["status", &run]).out);
}

#[test]
fn a_check_replaces_what_was_accepted() {
    let proof = Proof::of("a_check_replaces_what_was_accepted");
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: code, role: coder, retry: { attempts_max: 1 }, checks: [tests] }
  - { id: ship, role: coder, reads: [plan.md] }
";
    let script = "cat > test.sh <<END
#!/bin/sh
echo mine > $run/attempts/plan/1/out/plan.md
for one in $runs/*; do [ \\$one = $run ] || rm \\$one/journal.jsonl; done
exit 0
END
chmod +x test.sh";
    for sandbox in BOTH {
        let cases = format!("plan) wrote plan.md good;;\n{}", case("code", script));
        let stage = Stage::new(sandbox, workflow, &cases);
        let (run, ran) = stage.play();
        let staged = reads(&stage.state_of(&run).join("attempts/plan/1/out/plan.md"));
        let deleted = !stage.state_of(&stage.bystander).join("journal.jsonl").exists();
        if sandbox.holds() {
            assert_eq!((staged.as_str(), deleted), ("good\n", false));
            stage.bystander_is_unharmed();
            proof.was_refused(sandbox);
        } else {
            proof.damage(staged == "mine\n" && deleted, &ran.err);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
        assert_eq!(stage.scratch.count("ship"), usize::from(sandbox.holds()), "{sandbox:?}");
    }
}
