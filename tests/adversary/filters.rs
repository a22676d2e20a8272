//! Programs that git runs by itself because of what lies in a folder: filters and monitors, of a repository inside
//! the repository, of a submodule, of a worktree's own settings, and scripts in the tree. The engine looks at such
//! folders after the agent has gone; whatever git comes to run then has no more rights than the agent had.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
};

const WORKTREE: &str =
    "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]";
const EVIL: &str = "'echo evil >> \"$HOME/.profile\"; cat'";

/// In the sandbox and where it is off nothing is harmed, however often the engine looks: to look is its own wish, and
/// whatever git runs for it then can write nothing. The control is a kernel that can keep nobody in: there the trap is
/// sprung by the engine itself. Everywhere a user is told what was left.
#[track_caller]
fn is_harmless(test: &str, stage: impl Fn(Sandbox) -> Stage) {
    let proof = Proof::of(test);
    for sandbox in [Sandbox::On, Sandbox::Off, Sandbox::Nowhere] {
        let stage = stage(sandbox);
        let (run, ran) = stage.play();
        let harmed = || reads(&stage.scratch.home().join(".profile")).contains("evil");
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.gatewright(&["doctor"]);
        stage.gatewright(&["status", &run]);
        if sandbox == Sandbox::Nowhere {
            stage.gatewright(&["abort", &run, "--reason", "enough"]);
            stage.gatewright(&["doctor", "--remove-worktrees"]);
            proof.damage(harmed(), &format!("{run}\n{}", ran.err));
            continue;
        }
        assert!(!harmed(), "{sandbox:?}: by the run, doctor or status: {}", ran.err);
        stage.gatewright(&["abort", &run, "--reason", "enough"]);
        stage.gatewright(&["doctor", "--remove-worktrees"]);
        assert!(!harmed(), "{sandbox:?}: by the end of the run or doctor");
        stage.bystander_is_unharmed();
    }
}

/// The attempt fails, so that its worktree stays to be looked at.
fn failing(script: &str) -> String {
    case("code", &format!("{script}\nbrief ERROR; exit 0"))
}

#[test]
fn a_filter_of_a_repository_inside_the_repository() {
    let script = format!(
        "git init -q inner; cd inner; echo l > l.txt; git add -A; git -c user.name=x -c user.email=x@x commit -qm l
git config filter.x.clean {EVIL}; mkdir -p .git/info; echo '*.txt filter=x' > .git/info/attributes; touch -d 2020-01-01 l.txt; cd ..; git add inner"
    );
    is_harmless("a_filter_of_a_repository_inside_the_repository", |sandbox| {
        Stage::new(sandbox, WORKTREE, &failing(&script))
    });
    // Also where the attempt is accepted, committed and its folder taken away.
    let stage = Stage::new(Sandbox::On, WORKTREE, &case("code", &script));
    stage.play();
    assert!(!reads(&stage.scratch.home().join(".profile")).contains("evil"));
}

#[test]
fn a_filter_in_the_settings_of_a_submodule() {
    let script = format!(
        "git -C vendor/lib config filter.x.clean {EVIL}; d=$(git -C vendor/lib rev-parse --absolute-git-dir); mkdir -p $d/info; echo '*.txt filter=x' > $d/info/attributes; touch -d 2020-01-01 vendor/lib/lib.txt; echo x > src/x"
    );
    is_harmless("a_filter_in_the_settings_of_a_submodule", |sandbox| {
        let stage = Stage::new(sandbox, WORKTREE, &failing(&script));
        with_submodule(&stage);
        stage
    });
}

fn with_submodule(stage: &Stage) {
    let lib = stage.scratch.home().join("lib");
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("lib.txt"), "l\n").unwrap();
    let lib = lib.to_str().unwrap();
    stage.scratch.git(&["-C", lib, "init", "-q"]);
    stage.scratch.git(&["-C", lib, "add", "-A"]);
    stage.scratch.git(&["-C", lib, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "lib"]);
    stage.scratch.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", lib, "vendor/lib"]);
    stage.scratch.git(&["commit", "-qam", "submodule"]);
}

#[test]
fn a_filter_in_the_settings_of_the_worktree() {
    let script = format!(
        "git config --worktree filter.x.clean {EVIL}; echo '*.txt filter=x' > .gitattributes; echo x > src/x.txt"
    );
    is_harmless("a_filter_in_the_settings_of_the_worktree", |sandbox| {
        let stage = Stage::new(sandbox, WORKTREE, &failing(&script));
        stage.scratch.git(&["config", "extensions.worktreeConfig", "true"]);
        stage
    });
}

/// The filter is the user's own, its script lies in the tree.
#[test]
fn a_filter_whose_script_is_in_the_tree() {
    let script =
        "printf '#!/bin/sh\\necho evil >> \"$HOME/.profile\"\\ncat\\n' > tools/fmt.sh; echo x >> src/a.txt";
    is_harmless("a_filter_whose_script_is_in_the_tree", |sandbox| {
        let stage = Stage::new(sandbox, WORKTREE, &failing(script));
        stage.scratch.write("tools/fmt.sh", "#!/bin/sh\ncat\n");
        stage.scratch.write(".gitattributes", "src/* filter=fmt\n");
        let tool = stage.scratch.root().join("tools/fmt.sh");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        stage.scratch.git(&["config", "filter.fmt.clean", "./tools/fmt.sh"]);
        stage.scratch.git(&["config", "filter.fmt.smudge", "./tools/fmt.sh"]);
        stage.scratch.git(&["add", "-A"]);
        stage.scratch.git(&["commit", "-qm", "filter"]);
        stage
    });
}

/// The command for pull requests has the user's rights, so no hook of the tree is run for it.
#[test]
fn a_hook_in_the_tree_when_a_branch_is_pushed() {
    let proof = Proof::of("a_hook_in_the_tree_when_a_branch_is_pushed");
    let script = "mkdir -p .hooks; printf '#!/bin/sh\\necho evil >> \"$HOME/.profile\"\\n' > .hooks/pre-push; chmod +x .hooks/pre-push; echo x > src/new";
    let pushed = |sandbox, without: &str| {
        let stage = Stage::new(
            sandbox,
            "steps: [ { id: code, role: coder }, { id: home, finish: pull_request } ]",
            &case("code", script),
        );
        let remote = stage.scratch.home().join("remote.git");
        stage.scratch.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
        stage.scratch.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        stage.scratch.git(&["config", "core.hooksPath", ".hooks"]);
        stage.scratch.config("pull_request: { command: \"git push -q origin {branch}\" }");
        let stage = stage.without(without);
        let (run, ran) = stage.play();
        let ran = ran.exits(0);
        let branches = stage.scratch.git_says(&["ls-remote", "origin"]);
        assert!(branches.contains(&run), "it was pushed: {branches}");
        let harmed = reads(&stage.scratch.home().join(".profile")).contains("evil");
        (stage, run, ran, harmed)
    };
    for sandbox in BOTH {
        let (stage, run, ran, harmed) = pushed(sandbox, "");
        assert!(!harmed, "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let (_, _, ran, harmed) = pushed(Sandbox::On, "quiet-git");
    proof.damage(harmed, &ran.err);
}
