//! What an agent's process gets, and where it may leave its files.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::Scratch;

/// The environment that an agent saw.
fn environment(scratch: &Scratch, name: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(scratch.home().join(name)).unwrap();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn an_agent_gets_exactly_the_variables_of_the_interface() {
    let scratch =
        Scratch::with("steps: [ { id: code, role: coder } ]", "code) env > $HOME/env; pwd > $HOME/pwd; ok;;");
    scratch.config("    env: [OPENAI_API_KEY]\n    set: { MODE: fast }");
    let mut command = scratch.command(&["run", "w", "Add a greeting"]);
    command
        .env("SECRET_TOKEN", "s3cret")
        .env("OPENAI_API_KEY", "key")
        .env("GATEWRIGHT_OTHER", "x")
        .env("SSH_AUTH_SOCK", "/x");
    let ran = scratch.start_with(command, None).ended().exits(0);
    let found = environment(&scratch, "env");
    let of_the_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: BTreeSet<&str> =
        found.keys().map(String::as_str).filter(|name| !of_the_shell.contains(name)).collect();
    let expected = [
        "GATEWRIGHT_ATTEMPT",
        "GATEWRIGHT_BIN",
        "GATEWRIGHT_OUT",
        "GATEWRIGHT_ROLE",
        "GATEWRIGHT_ROUND",
        "GATEWRIGHT_RUN",
        "GATEWRIGHT_RUN_DIR",
        "GATEWRIGHT_STEP",
        "HOME",
        "LANG",
        "MODE",
        "OPENAI_API_KEY",
        "PATH",
        "TMPDIR",
        "TZ",
    ];
    assert_eq!(names, BTreeSet::from(expected), "nothing secret, not even where the state is");
    let is = |name: &str, value: &str| assert_eq!(found[name], value, "{name}");
    is("GATEWRIGHT_RUN", &ran.id());
    is("GATEWRIGHT_RUN_DIR", &scratch.run_dir(&ran.id()).display().to_string());
    is("GATEWRIGHT_BIN", env!("CARGO_BIN_EXE_gatewright"));
    is("GATEWRIGHT_STEP", "code");
    is("GATEWRIGHT_ROLE", "coder");
    is("GATEWRIGHT_ATTEMPT", "1");
    is("GATEWRIGHT_ROUND", "1");
    is("MODE", "fast");
    is("OPENAI_API_KEY", "key");
    let cwd = std::fs::read_to_string(scratch.home().join("pwd")).unwrap();
    assert_eq!(cwd.trim(), scratch.root().display().to_string(), "in the repository");
}

#[test]
fn attempts_are_counted_over_the_whole_life_and_the_fix_after_review_n_is_round_n_plus_1() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder }, { id: review, review: code, by: reviewer } ]",
        "
code) case $GATEWRIGHT_ATTEMPT in 1|3) exit 1;; esac; ok;;
review) if [ $GATEWRIGHT_ROUND = 3 ]; then approve; else demand; fi;;",
    );
    let run = scratch.run(0);
    let expected = [
        "code 1 1",
        "code 2 1",
        "review 1 1",
        "code 3 2",
        "code 4 2",
        "review 2 2",
        "code 5 3",
        "review 3 3",
    ];
    assert_eq!(scratch.calls(), expected);
    assert_eq!(scratch.step(&run, "code")["attempts"], 5);
    assert_eq!(scratch.step(&run, "review")["rounds"], 3);
}

#[test]
fn an_item_of_a_fan_out_is_named_in_the_environment_and_in_the_step() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: build, for_each: tasks.yaml, steps: [ { id: code, role: coder } ] }
",
        "
plan) env > $HOME/env.plan; wrote tasks.yaml 'tasks: [ { id: T-1, title: First }, { id: 2 } ]';;
*) env > $HOME/env.$GATEWRIGHT_ITEM; ok;;",
    );
    scratch.run(0);
    assert_eq!(environment(&scratch, "env.T-1")["GATEWRIGHT_STEP"], "build/T-1/code");
    assert_eq!(environment(&scratch, "env.2")["GATEWRIGHT_STEP"], "build/2/code");
    assert!(!environment(&scratch, "env.plan").contains_key("GATEWRIGHT_ITEM"));
}

#[test]
fn the_prompt_comes_by_stdin_by_argument_or_by_file() {
    let reply = "printf 'STATUS: DONE\\nFILE: none\\nSUMMARY: s.\\nNEXT_INPUT: none\\n'";
    for (via, command, take) in [
        ("stdin", "", "cat"),
        ("argument", "", "printf '%s\\n' \"$1\""),
        ("argument", ", \"--prompt={prompt}\"", "printf '%s\\n' \"${1#--prompt=}\""),
        ("file", "", "cat \"$1\""),
        (
            "file",
            ", --read, \"{prompt_file}\", \"{role}\", \"{step}\"",
            "[ \"$1 $3 $4\" = '--read coder code' ] && cat \"$2\"",
        ),
    ] {
        let scratch = Scratch::with(
            "roles: { coder: { prompt: \"It's {{ request }}; \\\"quoted\\\" $HOME\" } }\nsteps: [ { id: code, role: coder } ]",
            "",
        );
        let tool = scratch.home().join("tool.sh");
        std::fs::write(&tool, format!("{take} > $HOME/got\n{reply}\n")).unwrap();
        let config = format!(
            "agent: mine\nagents: {{ mine: {{ prompt: {via}, command: [sh, \"{}\"{command}] }} }}\n",
            tool.display()
        );
        scratch.write(".gatewright/config.yaml", &config);
        scratch.run(0);
        let got = std::fs::read_to_string(scratch.home().join("got")).unwrap();
        assert!(got.contains("It's Add a greeting; \"quoted\" $HOME"), "{via}{command}: {got}");
        assert!(got.contains("NEXT_INPUT:"), "{via}{command}: the whole of it");
    }
}

#[test]
fn an_artifact_written_to_its_published_place_is_copied_and_the_copy_counts() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { docs/plan.md: any } }, { id: code, role: coder, reads: [docs/plan.md] } ]",
        "
plan) mkdir -p $GATEWRIGHT_RUN_DIR/docs; echo here > $GATEWRIGHT_RUN_DIR/docs/plan.md; brief DONE docs/plan.md;;
code) rm $GATEWRIGHT_RUN_DIR/docs/plan.md; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.events_of(&run, "step.attempt.ended")[0]["report"]["artifacts"][0]["bytes"], 5);
    let shown = scratch.gatewright(&["show", &run, "docs/plan.md"]).exits(0);
    assert!(shown.out.contains("here"), "the copy is there whatever happens to the file: {}", shown.out);
}

#[test]
fn a_file_that_the_step_does_not_declare_is_never_published() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder, reads: [plan.md] } ]",
        "plan) wrote plan.md good;; code) echo bad > $GATEWRIGHT_OUT/plan.md; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.published(&run, "plan.md").as_deref(), Some("good\n"));
}

#[test]
fn file_may_be_bare_relative_to_the_run_directory_or_the_repository_or_absolute() {
    let scratch = Scratch::with(
        "
steps:
  - { id: bare, role: coder, writes: { deep/bare.md: any } }
  - { id: whole, role: coder, writes: { deep/whole.md: any } }
  - { id: repository, role: coder, writes: { repository.md: any } }
  - { id: absolute, role: coder, writes: { absolute.md: any } }
  - { id: published, role: coder, writes: { published.md: any } }
  - { id: source, role: coder }
",
        "
bare) put deep/bare.md; brief DONE bare.md;;
whole) put deep/whole.md; brief DONE deep/whole.md;;
repository) echo x > $GATEWRIGHT_RUN_DIR/repository.md; brief DONE .workflow/$GATEWRIGHT_RUN/repository.md;;
absolute) put absolute.md; brief DONE $GATEWRIGHT_OUT/absolute.md;;
published) put published.md; brief DONE $GATEWRIGHT_RUN_DIR/published.md;;
source) echo more >> src/a.txt; brief DONE src/a.txt;;",
    );
    let run = scratch.run(0);
    assert_eq!(
        scratch.called(),
        ["bare", "whole", "repository", "absolute", "published", "source"],
        "each at once"
    );
    for name in ["deep/bare.md", "deep/whole.md", "repository.md", "absolute.md", "published.md"] {
        assert!(scratch.published(&run, name).is_some(), "{name}");
    }
}
