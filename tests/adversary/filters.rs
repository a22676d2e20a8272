//! Programs that git runs by itself because of what lies in a folder: filters and monitors, of a repository inside
//! the repository, of a submodule, of a worktree's own settings, and scripts in the tree. The engine looks at such
//! folders after the agent has gone; whatever git comes to run then has no more rights than the agent had.

use crate::{
    proof::Proof,
    stage::{Sandbox, Stage, case, reads},
    support::Ran,
};

const WORKTREE: &str =
    "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
const EVIL: &str = "'echo evil >> \"$HOME/.profile\"; cat'";

/// With the sandbox on nothing is harmed, however often the engine looks. The trap is live: an ordinary git of the
/// user in `folder` runs it.
#[track_caller]
fn is_harmless(proof: &Proof, stage: &Stage, ran: &Ran, run: &str, folder: &str) {
    let profile = stage.scratch.home().join(".profile");
    let harmed = || reads(&profile).contains("evil");
    assert!(!harmed(), "{}", ran.err);
    stage.scratch.gatewright(&["doctor"]);
    stage.scratch.gatewright(&["status", run]);
    assert!(!harmed(), "by doctor or status");
    proof.told(&stage.says(run, ran));
    let tree = stage.tree_of(run);
    std::process::Command::new("git")
        .args(["add", "-A", "--renormalize", "."])
        .current_dir(tree.join(folder))
        .env("HOME", stage.scratch.home())
        .output()
        .unwrap();
    proof.damage(harmed(), &format!("an ordinary git in {}", tree.join(folder).display()));
    std::fs::write(&profile, "true\n").unwrap();
    stage.scratch.gatewright(&["abort", run, "--reason", "enough"]);
    stage.scratch.gatewright(&["doctor", "--remove-worktrees"]);
    assert!(!harmed(), "by the end of the run or doctor: {}", reads(&profile));
}

/// The attempt fails, so that its worktree stays to be looked at.
fn failing(script: &str) -> String {
    case("code", &format!("{script}\nbrief ERROR; exit 0"))
}

#[test]
fn a_filter_of_a_repository_inside_the_repository() {
    let proof = Proof::of("a_filter_of_a_repository_inside_the_repository");
    let script = format!(
        "git init -q inner; cd inner; echo l > l.txt; git add -A; git -c user.name=x -c user.email=x@x commit -qm l
git config filter.x.clean {EVIL}; mkdir -p .git/info; echo '*.txt filter=x' > .git/info/attributes; touch -d 2020-01-01 l.txt; cd .."
    );
    let stage = Stage::new(Sandbox::On, WORKTREE, &failing(&script));
    let (run, ran) = stage.play();
    is_harmless(&proof, &stage, &ran, &run, "inner");
    // Also where the attempt is accepted, committed and its folder taken away.
    let stage = Stage::new(Sandbox::On, WORKTREE, &case("code", &script));
    stage.play();
    assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"));
}

#[test]
fn a_filter_in_the_settings_of_a_submodule() {
    let proof = Proof::of("a_filter_in_the_settings_of_a_submodule");
    let script = format!(
        "git -C vendor/lib config filter.x.clean {EVIL}; d=$(git -C vendor/lib rev-parse --absolute-git-dir); mkdir -p $d/info; echo '*.txt filter=x' > $d/info/attributes; touch -d 2020-01-01 vendor/lib/lib.txt; echo x > src/x"
    );
    let stage = Stage::new(Sandbox::On, WORKTREE, &failing(&script));
    let lib = stage.scratch.home().join("lib");
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("lib.txt"), "l\n").unwrap();
    let lib = lib.to_str().unwrap();
    stage.scratch.git(&["-C", lib, "init", "-q"]);
    stage.scratch.git(&["-C", lib, "add", "-A"]);
    stage.scratch.git(&["-C", lib, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "lib"]);
    stage.scratch.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", lib, "vendor/lib"]);
    stage.scratch.git(&["commit", "-qam", "submodule"]);
    let (run, ran) = stage.play();
    is_harmless(&proof, &stage, &ran, &run, "vendor/lib");
}

#[test]
fn a_filter_in_the_settings_of_the_worktree() {
    let proof = Proof::of("a_filter_in_the_settings_of_the_worktree");
    let script = format!(
        "git config --worktree filter.x.clean {EVIL}; echo '*.txt filter=x' > .gitattributes; echo x > src/x.txt"
    );
    let stage = Stage::new(Sandbox::On, WORKTREE, &failing(&script));
    stage.scratch.git(&["config", "extensions.worktreeConfig", "true"]);
    let (run, ran) = stage.play();
    is_harmless(&proof, &stage, &ran, &run, ".");
}

/// The filter is the user's own, its script lies in the tree.
#[test]
fn a_filter_whose_script_is_in_the_tree() {
    let proof = Proof::of("a_filter_whose_script_is_in_the_tree");
    let script =
        "printf '#!/bin/sh\\necho evil >> \"$HOME/.profile\"\\ncat\\n' > tools/fmt.sh; echo x >> src/a.txt";
    let stage = Stage::new(Sandbox::On, WORKTREE, &failing(script));
    stage.scratch.write("tools/fmt.sh", "#!/bin/sh\ncat\n");
    stage.scratch.write(".gitattributes", "src/* filter=fmt\n");
    let tool = stage.scratch.root().join("tools/fmt.sh");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    stage.scratch.git(&["config", "filter.fmt.clean", "./tools/fmt.sh"]);
    stage.scratch.git(&["config", "filter.fmt.smudge", "./tools/fmt.sh"]);
    stage.scratch.git(&["add", "-A"]);
    stage.scratch.git(&["commit", "-qm", "filter"]);
    let (run, ran) = stage.play();
    is_harmless(&proof, &stage, &ran, &run, ".");
}

/// The command for pull requests has the user's rights, so no hook of the tree is run for it.
#[test]
fn a_hook_in_the_tree_when_a_branch_is_pushed() {
    let proof = Proof::of("a_hook_in_the_tree_when_a_branch_is_pushed");
    let script = "mkdir -p .hooks; printf '#!/bin/sh\\necho evil >> \"$HOME/.profile\"\\n' > .hooks/pre-push; chmod +x .hooks/pre-push; echo x > src/new";
    for hooks in [None, Some(".hooks")] {
        let stage = Stage::new(
            Sandbox::On,
            "steps: [ { id: code, role: coder }, { id: home, finish: pull_request } ]",
            &case("code", script),
        );
        let remote = stage.scratch.home().join("remote.git");
        stage.scratch.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
        stage.scratch.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        if let Some(folder) = hooks {
            stage.scratch.git(&["config", "core.hooksPath", folder]);
        }
        stage.scratch.config("pull_request: { command: \"git push -q origin {branch}\" }");
        let (run, ran) = stage.play();
        let ran = ran.exits(0);
        proof.told(&stage.says(&run, &ran));
        assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"), "{hooks:?}");
        let branches = stage.scratch.git_says(&["ls-remote", "origin"]);
        assert!(branches.contains(&run), "it was pushed: {branches}");
        if hooks.is_some() {
            // The control: the user's own push out of the tree of the run runs it.
            let branch = format!("gatewright/{run}/_run");
            stage.scratch.git(&["worktree", "add", "-q", "../of-the-run", &branch]);
            let tree = stage.scratch.root().join("../of-the-run");
            std::process::Command::new("git")
                .args(["push", "-q", "origin", "HEAD:again"])
                .current_dir(tree)
                .env("HOME", stage.scratch.home())
                .output()
                .unwrap();
            proof.damage(
                reads(&stage.scratch.home().join(".profile")).contains("evil"),
                "the user's own push",
            );
        }
    }
}
