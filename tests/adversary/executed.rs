//! What an agent wrote is executed: by a check, by git. It has no more rights than the agent had.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
    support::Ran,
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
    let (control, run, ran) = checked(Sandbox::Off);
    proof.damage(reads(&control.scratch.home().join(".profile")).contains("evil"), &ran.err);
    control.is_named(&run, &ran, &proof);
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
        } else {
            proof.damage(harmed, &ran.err);
            stage.is_named(&run, &ran, &proof);
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
    let control = Stage::new(Sandbox::Off, workflow, &case("code", planted));
    let died = control.scratch.start(&["run", "w", "Add a greeting"]).ended();
    proof.damage(died.code == -9, &died.err);
    proof.told(&control.scratch.gatewright(&["doctor"]).out);
}

#[test]
fn a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine() {
    let proof = Proof::of("a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine");
    let script = "mkdir -p .git/hooks; for hook in post-index-change pre-commit post-checkout reference-transaction; do printf '#!/bin/sh\\necho hook >> \"$HOME/ran\"\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done
printf '#!/bin/sh\\necho monitor >> \"$HOME/ran\"\\nprintf \"1\\\\0/\\\\0\"\\n' > .git/monitor; chmod +x .git/monitor
git config core.fsmonitor \"$PWD/.git/monitor\"; echo more >> src/a.txt";
    let workflow = "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: next, role: coder, retry: { attempts_max: 1 } } ]";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, said) = stage.play();
        let ran = stage.scratch.home().join("ran");
        assert!(!ran.exists(), "{sandbox:?}: {}", reads(&ran));
        stage.is_named(&run, &said, &proof);
        // The control: an ordinary git runs both.
        let root = stage.scratch.root();
        let mut git = std::process::Command::new("git");
        git.args(["status", "--short"])
            .current_dir(&root)
            .env("HOME", stage.scratch.home())
            .output()
            .unwrap();
        proof.damage(reads(&ran).contains("monitor"), "an ordinary git");
    }
}

/// The repository of somebody who keeps hooks in the tree, where agents can write them.
fn with_hooks_in_the_tree(sandbox: Sandbox, script: &str) -> (Stage, String, Ran) {
    let workflow = "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
    let stage = Stage::new(sandbox, workflow, &case("code", script));
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
        } else {
            proof.damage(planted && evil, &ran.err);
            stage.is_named(&run, &ran, &proof);
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
        proof.told(&message);
        let main = stage.scratch.git_says(&["rev-parse", "main"]);
        let branch = format!("gatewright/{run}/_run");
        assert_eq!(stage.scratch.git_says(&["rev-parse", &branch]), main);
        // The control: a commit of an ordinary git in the same tree takes it along.
        let tree = stage.tree_of(&run);
        let tree = tree.to_str().unwrap();
        stage.scratch.git(&["-C", tree, "add", "-A", "src", ".hooks"]);
        stage.scratch.git(&["-C", tree, "commit", "-q", "-m", "careless"]);
        let files = stage.scratch.git_says(&["ls-tree", "--name-only", &branch]);
        proof.damage(files.contains(".env.local"), &files);
    }
}

#[test]
fn git_that_an_agent_led_elsewhere_is_not_followed_by_the_engine() {
    let proof = Proof::of("git_that_an_agent_led_elsewhere_is_not_followed_by_the_engine");
    // A repository of the agent's own, whose settings name a program.
    let script = r#"echo more >> src/a.txt; echo '* filter=x' > .gitattributes
git init -q fake; git -C fake config filter.x.clean 'echo evil >> "$HOME/.profile"; cat'
printf 'gitdir: %s/fake/.git\n' "$PWD" > .git"#;
    for sandbox in BOTH {
        let workflow =
            "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, ran) = stage.play();
        proof.told(&ran.err);
        // The control: an ordinary git in the same tree follows it.
        let profile = stage.scratch.home().join(".profile");
        assert!(!reads(&profile).contains("evil"), "{sandbox:?}");
        let mut git = std::process::Command::new("git");
        git.args(["add", "-A"]).current_dir(stage.tree_of(&run)).env("HOME", stage.scratch.home());
        git.output().unwrap();
        proof.damage(reads(&profile).contains("evil"), "an ordinary git");
        std::fs::write(&profile, "true\n").unwrap();
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
        } else {
            proof.damage(!same, &found);
            stage.is_named(&run, &ran, &proof);
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
        } else {
            proof.damage(harmed, &ran.err);
            assert_ne!(ran.code, 0);
            stage.is_named(&run, &ran, &proof);
            let patch = stage.state_of(&run).join("patches/intrusion-code-1-checkout.patch");
            stage.scratch.git(&["apply", "-R", patch.to_str().unwrap()]);
            assert_eq!(reads(&root.join("src/a.txt")), "a\nwork that is not committed\n");
        }
    }
}
