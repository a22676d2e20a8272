//! Where things are, who plays, who is told.

use crate::support::{Scratch, wait_for};

#[test]
fn s0_05_run_directories_are_ignored_by_git() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]",
        "plan) wrote plan.md;;",
    );
    let run = scratch.run(0);
    assert_eq!(std::fs::read_to_string(scratch.root().join(".workflow/.gitignore")).unwrap(), "*\n");
    assert_eq!(scratch.run_dir(&run), scratch.root().join(".workflow").join(&run));
}

#[test]
fn a_command_works_from_any_folder_of_the_repository() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "code) pwd > $HOME/pwd; ok;;");
    let mut command = scratch.command(&["run", "w", "x"]);
    command.current_dir(scratch.root().join("src"));
    let run = scratch.start_with(command, None).ended().exits(0).id();
    assert_eq!(scratch.state(&run), "done", "the same project from its root");
    assert_eq!(
        std::fs::read_to_string(scratch.home().join("pwd")).unwrap().trim(),
        scratch.root().display().to_string()
    );
}

#[test]
fn agent_plays_every_role() {
    let scratch =
        Scratch::with("steps: [ { id: code, role: coder }, { id: review, review: code, by: reviewer } ]", "");
    let tool = scratch.home().join("other.sh");
    std::fs::write(&tool, "echo $GATEWRIGHT_ROLE >> $HOME/played; cat > /dev/null\nif [ $GATEWRIGHT_ROLE = reviewer ]; then echo '{\"approved\": true, \"issues\": [], \"summary\": \"s\"}'; else printf 'STATUS: DONE\\nFILE: none\\nSUMMARY: s.\\nNEXT_INPUT: none\\n'; fi\n").unwrap();
    scratch.config(&format!("  other:\n    command: [sh, \"{}\"]", tool.display()));
    let run = scratch.gatewright(&["run", "w", "x", "--agent", "other"]).exits(0).id();
    assert_eq!(std::fs::read_to_string(scratch.home().join("played")).unwrap(), "coder\nreviewer\n");
    assert_eq!(scratch.calls(), [""; 0]);
    assert_eq!(scratch.step(&run, "code")["agent"], "other");
}

#[test]
fn somebody_is_told_when_a_run_waits_and_a_request_is_never_a_command() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } } ]",
        "",
    );
    scratch.config("notify: { command: \"printf '%s|%s|%s\\\\n' {title} {body} {run} >> $HOME/told\" }");
    let request = "it's'; touch $HOME/hacked; echo '$(touch $HOME/hacked)";
    let run = scratch.gatewright(&["run", "w", request]).exits(10).id();
    let told = || std::fs::read_to_string(scratch.home().join("told")).unwrap_or_default();
    wait_for("the notice", || told().ends_with('\n').then_some(()));
    assert!(told().contains("waiting") && told().contains(&run) && told().contains(request), "{}", told());
    scratch.gatewright(&["approve", &run]).exits(0);
    wait_for("the second notice", || told().contains("done").then_some(()));
    assert!(!scratch.home().join("hacked").exists());
}

#[test]
fn an_item_may_be_called_almost_anything() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: build, for_each: tasks.yaml, steps: [ { id: code, role: coder, writes: { \"out-{{ item.id }}.md\": any } } ] }
",
        "
plan) wrote tasks.yaml 'tasks: [ { id: \"ü x*\" }, { id: \"%41\" }, { id: A }, { id: a } ]';;
*) wrote \"out-$GATEWRIGHT_ITEM.md\" \"$GATEWRIGHT_ITEM\";;",
    );
    let run = scratch.run(0);
    for key in ["ü x*", "%41", "A", "a"] {
        assert_eq!(scratch.published(&run, &format!("out-{key}.md")), Some(format!("{key}\n")));
    }
}

#[test]
fn a_restart_or_an_abort_of_a_run_that_is_over_is_refused() {
    let scratch = Scratch::with("stages: [ { id: build, steps: [ { id: code, role: coder } ] } ]", "");
    let run = scratch.run(0);
    scratch.gatewright(&["restart", &run, "--stage", "build"]).exits(4);
    scratch.gatewright(&["abort", &run]).exits(4);
    scratch.gatewright(&["skip", &run, "code", "--reason", "r"]).exits(4);
    assert_eq!((scratch.state(&run).as_str(), scratch.count("code")), ("done", 1));
}
