//! Repositories inside a worktree: what is committed in a submodule outlives the worktree, and what no commit of the
//! engine could hold is refused with what to do about it.

use crate::support::{Scratch, text};

const STREAMS: &str = r#"
roles: { coder: { agent: mine, prompt: "Build." } }
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps: [ { id: build, role: coder, retry: { attempts_max: 1 } } ]
  - { id: together, merge: each }
  - { id: home, finish: HOW }
"#;
const PLAN: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b, depends_on: [a]}')"; brief DONE tasks.yaml;;"#;
/// A commit inside the submodule.
const INSIDE: &str = "(cd vendor/lib; echo more > more.txt; git add -A; git -c user.name=x -c user.email=x@example.org commit -qm more)";

/// A project with a submodule `vendor/lib`, and streams that end like this.
fn with_library(how: &str, agent: &str) -> Scratch {
    let scratch = Scratch::with(&STREAMS.replace("HOW", how), &format!("{PLAN}\n{agent}"));
    let library = scratch.root().parent().unwrap().join("library");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("lib.txt"), "library\n").unwrap();
    let at = ["-C", library.to_str().unwrap()];
    for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "library"]] {
        scratch.git(&[&at[..], words].concat());
    }
    let allowed = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "add", "-q", library.to_str().unwrap(), "vendor/lib"];
    scratch.git(&[&allowed[..], &add].concat());
    scratch.git(&["commit", "-qm", "with a library"]);
    scratch
}

fn link(scratch: &Scratch, branch: &str) -> String {
    scratch.git_says(&["rev-parse", &format!("{branch}:vendor/lib")])
}

#[test]
fn what_a_stream_commits_in_a_submodule_is_in_the_checkouts_own_when_the_worktree_is_gone() {
    let agent = format!(
        "*/a/build) {INSIDE}; ok;;\n*/b/build) cat vendor/lib/more.txt > \"$HOME/seen\"; echo b > src/b.new; ok;;"
    );
    let scratch = with_library("merge", &agent);
    let before = link(&scratch, "main");
    scratch.run(0);
    let after = link(&scratch, "main");
    assert_ne!(after, before);
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1, "the worktrees are gone");
    assert_eq!(scratch.git_says(&["-C", "vendor/lib", "show", &format!("{after}:more.txt")]), "more");
    // A stream that builds on it has it, and the user's own checkout can be brought to it.
    assert_eq!(std::fs::read_to_string(scratch.home().join("seen")).unwrap(), "more\n");
    scratch.git(&["submodule", "update", "-q", "--no-fetch"]);
    assert_eq!(scratch.git_says(&["-C", "vendor/lib", "rev-parse", "HEAD"]), after);
    // And it stays when git tidies up.
    scratch.git(&["-C", "vendor/lib", "gc", "-q", "--prune=now"]);
    assert_eq!(scratch.git_says(&["-C", "vendor/lib", "cat-file", "-t", &after]), "commit");
}

#[test]
fn what_a_failed_stream_committed_in_a_submodule_outlives_the_removal_by_doctor() {
    let agent =
        format!("*/a/build) {INSIDE}; git -C vendor/lib rev-parse HEAD > \"$HOME/lost\"; brief ERROR;;");
    let scratch = with_library("keep", &agent);
    let run = scratch.run(11);
    scratch.gatewright(&["abort", &run, "--reason", "enough"]);
    scratch.gatewright(&["doctor", "--remove-worktrees"]);
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1);
    let commit = std::fs::read_to_string(scratch.home().join("lost")).unwrap();
    assert_eq!(
        scratch.git_says(&["-C", "vendor/lib", "show", &format!("{}:more.txt", commit.trim())]),
        "more"
    );
}

#[test]
fn changes_in_a_submodule_that_are_in_no_commit_are_refused_with_what_to_do() {
    for change in ["echo changed > vendor/lib/lib.txt", "echo new > vendor/lib/new.txt"] {
        let scratch = with_library("keep", &format!("*/a/build) {change}; ok;;"));
        let run = scratch.run(11);
        let said = text(&scratch.step(&run, "each/a/build")["message"]);
        assert!(said.contains("submodule `vendor/lib` has changes inside"), "{said}");
        assert!(said.contains("commit them inside `vendor/lib`"), "{said}");
        assert_eq!(link(&scratch, &format!("gatewright/{run}/a")), link(&scratch, "main"));
    }
}

#[test]
fn a_repository_that_an_agent_made_is_refused_and_no_reference_to_it_is_committed() {
    let commit = "echo l > inner/l.txt; git -C inner add -A; git -C inner -c user.name=x -c user.email=x@example.org commit -qm l";
    for more in [commit, "true", &format!("{commit}; git add inner 2>&1")] {
        let scratch = Scratch::with(
            "isolation: worktree\nsteps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
            &format!("code) git init -q inner; {more}; ok;;"),
        );
        let run = scratch.run(11);
        let said = text(&scratch.step(&run, "code")["message"]);
        assert!(said.contains("`inner` is a git repository of its own"), "{more}: {said}");
        assert!(said.contains("remove `inner/.git`") && !said.contains("fatal"), "{more}: {said}");
        let branch = format!("gatewright/{run}/_run");
        assert_eq!(scratch.git_says(&["rev-parse", &branch]), scratch.git_says(&["rev-parse", "main"]));
    }
}
