//! Progress that people can follow on a terminal.

use crate::support::{Scratch, Terminal};

/// The same figures as in `status` and `status --json` (mechanisms::streams).
#[test]
fn the_live_tree_tells_how_the_items_stand_and_how_long_each_stream_has_been_at_work() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: each, for_each: tasks.yaml, isolation: worktree, steps: [ { id: build, role: coder }, { id: test, role: coder } ] }
",
        r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b, depends_on: [a]}\n- {id: c}')"; brief DONE tasks.yaml;;
*/a/build) brief ERROR;;
*/c/test) await go; ok;;"#,
    );
    let mut command = scratch.command(&["run", "w", "go"]);
    let terminal = Terminal::start(command.env("TERM", "xterm"));
    terminal.shows("0 of 3 done, 1 running, 1 blocked, 1 failed", 1);
    // It grows while nothing happens.
    terminal.shows("c for 1.", 1);
    terminal.shows("c for 2.", 1);
    scratch.mark("go");
    terminal.shows("1 of 3 done, 1 blocked, 1 failed", 1);
    assert_eq!(terminal.exit_code(), 11);
}

#[test]
fn a_terminal_is_rung_when_a_person_is_needed_and_when_the_run_ends() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Ship it?\", answers: { approved: pass, no: block } } ]\n",
        "",
    );
    let mut command = scratch.command(&["run", "w", "go"]);
    let mut terminal = Terminal::start(command.env("TERM", "xterm"));
    terminal.shows("\u{7}\u{1b}]9;", 1);
    terminal.shows("agree > ", 1);
    terminal.types("approved");
    terminal.shows("\u{7}\u{1b}]9;", 2);
    assert_eq!(terminal.exit_code(), 0);
}
