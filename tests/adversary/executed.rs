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
    // A shell may stand between the engine and the script.
    let planted = "printf '#!/bin/sh\nkill -9 $(cut -d\" \" -f4 /proc/$PPID/stat)\nkill -9 $PPID\n' > test.sh; chmod +x test.sh";
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
