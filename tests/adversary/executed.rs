//! What an agent wrote is executed: by a check, by git. It has no more rights than the agent had.

use crate::stage::{Sandbox, Stage, case, reads};

/// The test script of the repository is the agent's, and does more than testing.
const PLANTED: &str =
    "printf '#!/bin/sh\necho evil >> \"$HOME/.profile\"\nexit 0\n' > test.sh; chmod +x test.sh";

fn checked(sandbox: Sandbox) -> (Stage, String) {
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder, checks: [tests] } ]
";
    let stage = Stage::new(sandbox, workflow, &case("code", PLANTED));
    let (run, ran) = stage.play();
    ran.exits(0);
    (stage, run)
}

#[test]
fn a_check_runs_in_the_sandbox_of_the_role_that_is_judged() {
    let (stage, _) = checked(Sandbox::On);
    assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"));
    let (control, _) = checked(Sandbox::Off);
    assert!(reads(&control.scratch.home().join(".profile")).contains("evil"));
}

#[test]
fn a_check_step_runs_in_the_sandbox_too() {
    let workflow = "
checks: { tests: { run: ./test.sh } }
steps: [ { id: code, role: coder }, { id: test, check: tests } ]
";
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(sandbox, workflow, &case("code", PLANTED));
        let (_, ran) = stage.play();
        ran.exits(0);
        let harmed = reads(&stage.scratch.home().join(".profile")).contains("evil");
        assert_eq!(harmed, sandbox == Sandbox::Off, "{sandbox:?}");
    }
}

#[test]
fn a_check_cannot_kill_the_engine() {
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
    assert_eq!(died.code, -9, "without the sandbox: {}", died.err);
}

#[test]
fn a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine() {
    let script = "mkdir -p .git/hooks; for hook in post-index-change pre-commit post-checkout reference-transaction; do printf '#!/bin/sh\\necho hook >> \"$HOME/ran\"\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done
printf '#!/bin/sh\\necho monitor >> \"$HOME/ran\"\\nprintf \"1\\\\0/\\\\0\"\\n' > .git/monitor; chmod +x .git/monitor
git config core.fsmonitor \"$PWD/.git/monitor\"; echo more >> src/a.txt";
    let workflow = "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: next, role: coder, retry: { attempts_max: 1 } } ]";
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        stage.play();
        let ran = stage.scratch.home().join("ran");
        assert!(!ran.exists(), "{sandbox:?}: {}", reads(&ran));
        // The control: an ordinary git runs both.
        let root = stage.scratch.root();
        let mut git = std::process::Command::new("git");
        git.args(["status", "--short"])
            .current_dir(&root)
            .env("HOME", stage.scratch.home())
            .output()
            .unwrap();
        assert!(reads(&ran).contains("monitor"), "{sandbox:?}: the trap was set");
    }
}
