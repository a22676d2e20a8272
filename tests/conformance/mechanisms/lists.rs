//! Lists of fan-outs: frozen when the fan-out begins, changed afterwards only by a person's decision (J-41).

use crate::support::{Scratch, text, wait_for};

const PLAN: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b, depends_on: [a]}\n- {id: c}')"; brief DONE tasks.yaml;;"#;

const BETWEEN: &str = r#"
roles: { coder: { agent: mine, prompt: "Build." } }
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any } }
  - { id: go, decide: "On?", answers: { yes: pass } }
  - { id: each, for_each: tasks.yaml, steps: [ { id: build, role: coder } ] }
"#;

/// Decision 26 for the list of a fan-out: what was accepted is what is worked on, unless a person says otherwise.
#[test]
fn j_41_a_list_that_was_edited_before_its_fan_out_begins_is_adopted_only_by_a_decision() {
    for (word, item) in [("adopt", "x"), ("restore", "c")] {
        let scratch = Scratch::with(BETWEEN, PLAN);
        let run = scratch.run(10);
        std::fs::write(scratch.run_dir(&run).join("tasks.yaml"), "tasks:\n- {id: x}\n").unwrap();
        scratch.gatewright(&["answer", &run, "go", "yes"]).exits(10);
        let asked = scratch.decision(&run, "D-1");
        assert_eq!((text(&asked["about"]), text(&asked["step"])), ("hand_edit".into(), "each".into()));
        assert!(scratch.called().iter().all(|step| step == "plan"), "{:?}", scratch.called());
        scratch.gatewright(&["answer", &run, "D-1", word]).exits(0);
        let built = scratch.called();
        assert!(built.contains(&format!("each/{item}/build")), "{word}: {built:?}");
        assert_eq!(built.contains(&"each/x/build".to_owned()), word == "adopt", "{built:?}");
    }
}

const HELD: &str = r#"
roles: { planner: { agent: mine, prompt: "Plan." }, coder: { agent: mine, prompt: "Build {{ item.what | default('it') }}." } }
steps:
  - { id: each, for_each: LIST, parallel_max: 1, steps: [ { id: build, role: coder }, { id: go, decide: "On?", answers: { yes: pass } } ] }
"#;

fn go(scratch: &Scratch, run: &str, item: &str, code: i32) {
    scratch.gatewright(&["answer", run, &format!("each/{item}/go"), "yes"]).exits(code);
}

#[test]
fn j_41_a_list_that_changes_while_its_fan_out_is_open_is_reported_and_adopted_only_by_a_decision() {
    for word in ["ignore", "adopt"] {
        let scratch = Scratch::with(&HELD.replace("LIST", "./tasks.yaml"), "");
        scratch.write("tasks.yaml", "tasks:\n- {id: a}\n- {id: b}\n- {id: c, what: one}\n");
        let run = scratch.run(10);
        go(&scratch, &run, "a", 10);
        scratch.write("tasks.yaml", "tasks:\n- {id: x}\n- {id: a}\n- {id: c, what: two}\n");
        scratch.gatewright(&["resume", &run]).exits(10);
        scratch.gatewright(&["resume", &run]).exits(10);
        let noticed = scratch.events_of(&run, "intrusion.noticed");
        assert_eq!(noticed.len(), 1, "once: {noticed:#?}");
        let asked = scratch.decision(&run, "D-1");
        assert_eq!((text(&asked["about"]), text(&asked["step"])), ("list".into(), "each".into()));
        for said in [text(&noticed[0]["intrusion"]["what"]), text(&asked["question"])] {
            for part in ["`tasks.yaml`, the list of `each`, was changed", "new: x", "gone: b", "changed: c"] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        let said = scratch.gatewright(&["status", &run]).out;
        assert!(said.contains("changed lists") && said.contains("D-1"), "{said}");
        // Nothing has changed yet, and what is under way goes on.
        assert_eq!(scratch.called(), ["each/a/build", "each/b/build"], "{word}");
        scratch.gatewright(&["answer", &run, "D-1", word]).exits(10);
        assert_eq!(scratch.called(), ["each/a/build", "each/b/build"], "{word}");
        let rest: &[&str] = if word == "adopt" { &["b", "x", "c"] } else { &["b", "c"] };
        for (place, item) in rest.iter().enumerate() {
            go(&scratch, &run, item, if place + 1 == rest.len() { 0 } else { 10 });
        }
        let built: Vec<String> =
            scratch.called().iter().filter_map(|step| step.split('/').nth(1).map(str::to_owned)).collect();
        let expected: &[&str] = if word == "adopt" { &["a", "b", "x", "c"] } else { &["a", "b", "c"] };
        assert_eq!(built, expected, "{word}: what is finished and the same is not run again");
        let c = scratch.prompt("each/c/build", 1);
        assert_eq!(c.contains("Build two."), word == "adopt", "{c}");
    }
}

/// The end of a fan-out waits for the answer: what a person added is not lost because the last item was quick.
#[test]
fn j_41_a_fan_out_whose_list_is_asked_about_does_not_end_before_the_answer() {
    let scratch = Scratch::with(&HELD.replace("LIST", "./tasks.yaml"), "");
    scratch.write("tasks.yaml", "tasks:\n- {id: a}\n");
    let run = scratch.run(10);
    scratch.write("tasks.yaml", "tasks:\n- {id: a}\n- {id: x}\n");
    scratch.gatewright(&["resume", &run]).exits(10);
    go(&scratch, &run, "a", 10);
    let why = scratch.gatewright(&["why", &run, "each"]).out;
    assert!(why.contains("waits for a person") && why.contains("D-1"), "{why}");
    // What was answered is what was shown, not what is there by then.
    scratch.write("tasks.yaml", "tasks:\n- {id: a}\n- {id: y}\n");
    let answered = scratch.gatewright(&["answer", &run, "D-1", "adopt"]);
    assert_ne!(answered.code, 0, "{}{}", answered.out, answered.err);
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(text(&scratch.decision(&run, "D-1")["status"]), "skipped");
    assert!(text(&scratch.decision(&run, "D-2")["question"]).contains("new: y"));
    // As it was again: nothing is left to ask.
    scratch.write("tasks.yaml", "tasks: [ {id: a} ]\n");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.called(), ["each/a/build"]);
}

#[test]
fn j_41_a_list_that_is_deleted_or_broken_while_its_fan_out_is_open_is_reported_and_its_items_go_on() {
    let broken = "tasks:\n- {id: a\n";
    for (content, words) in [
        (None, "cannot be used any more since it began: it is gone"),
        (Some(broken), "cannot be used any more since it began: line"),
        (Some("tasks:\n- {id: a, depends_on: [z]}\n"), "`a` depends on `z`, which is not in the list"),
    ] {
        let scratch =
            Scratch::with(&HELD.replace("LIST", "tasks.yaml").replace("  - { id: each", PLANNED), PLAN);
        let run = scratch.run(10);
        let list = scratch.run_dir(&run).join("tasks.yaml");
        match content {
            None => std::fs::remove_file(&list).unwrap(),
            Some(content) => std::fs::write(&list, content).unwrap(),
        }
        scratch.gatewright(&["resume", &run]).exits(10);
        let said = scratch.gatewright(&["status", &run]).out;
        assert!(
            said.contains("`tasks.yaml`, the list of `each`,") && said.contains(words),
            "{words}: {said}"
        );
        let noticed = scratch.events_of(&run, "intrusion.noticed");
        assert_eq!(
            noticed.iter().filter(|one| one["intrusion"]["kind"] == "list").count(),
            1,
            "{noticed:#?}"
        );
        for (item, code) in [("a", 10), ("c", 10), ("b", 0)] {
            go(&scratch, &run, item, code);
        }
        assert_eq!(scratch.called().len(), 4, "{:?}", scratch.called());
    }
}

const PLANNED: &str = "  - { id: plan, role: planner, writes: { tasks.yaml: any } }\n  - { id: each";

/// Not only an engine that comes back sees it.
#[test]
fn j_41_a_published_list_that_changes_under_a_working_engine_is_asked_about_and_adopted() {
    let scratch = Scratch::with(
        &BETWEEN.replace("  - { id: go, decide: \"On?\", answers: { yes: pass } }\n", ""),
        &format!("{PLAN}\n*/a/build) mark at; await seen; ok;;"),
    );
    let running = scratch.start(&["run", "w", "go"]);
    let run = running.id();
    scratch.marked("at");
    std::fs::write(scratch.run_dir(&run).join("tasks.yaml"), "tasks:\n- {id: c}\n- {id: x}\n").unwrap();
    wait_for("the question", || {
        let asked = scratch.events_of(&run, "decision.opened");
        asked.iter().any(|one| one["decision"]["about"]["about"] == "list").then_some(())
    });
    scratch.gatewright(&["answer", &run, "D-1", "adopt"]);
    scratch.mark("seen");
    running.ended().exits(0);
    let built = scratch.called();
    assert_eq!(built.iter().filter(|step| *step == "each/c/build").count(), 1, "{built:?}");
    assert!(built.contains(&"each/x/build".to_owned()), "{built:?}");
    assert!(!built.contains(&"each/b/build".to_owned()), "{built:?}");
    assert_eq!(scratch.events_of(&run, "artifact.adopted").len(), 1);
}

#[test]
fn j_41_an_adopted_list_merges_what_it_names_and_the_branch_of_what_it_dropped_stays() {
    let body = HELD.replace("LIST", "tasks.yaml, isolation: worktree").replace("  - { id: each", PLANNED)
        + "  - { id: together, merge: each }\n";
    let agent = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: b}')"; brief DONE tasks.yaml;;
*/build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;"#;
    let scratch = Scratch::with(&body, agent);
    let run = scratch.run(10);
    go(&scratch, &run, "a", 10);
    std::fs::write(scratch.run_dir(&run).join("tasks.yaml"), "tasks:\n- {id: a}\n- {id: x}\n").unwrap();
    scratch.gatewright(&["resume", &run]).exits(10);
    scratch.gatewright(&["answer", &run, "D-1", "adopt"]).exits(10);
    go(&scratch, &run, "b", 10);
    go(&scratch, &run, "x", 0);
    assert_eq!(scratch.called(), ["plan", "each/a/build", "each/b/build", "each/x/build"]);
    let of = |branch: &str| {
        scratch.git_says(&["ls-tree", "-r", "--name-only", &format!("gatewright/{run}/{branch}")])
    };
    let merged = of("_run");
    for (file, is_in) in [("src/a.new", true), ("src/x.new", true), ("src/b.new", false)] {
        assert_eq!(merged.lines().any(|line| line == file), is_in, "{file}: {merged}");
    }
    assert!(of("b").contains("src/b.new"), "finished work is not lost");
}

#[test]
fn a_list_that_is_not_committed_is_named_with_what_helps() {
    let flow = r#"
roles: { coder: { agent: mine, prompt: "Build." } }
steps:
  - { id: each, for_each: ./tasks.yaml, isolation: worktree, steps: [ { id: build, role: coder } ] }
  - { id: together, merge: each }
"#;
    let scratch = Scratch::with(flow, "*) echo x > \"src/$GATEWRIGHT_ITEM.txt\"; ok;;");
    scratch.write("tasks.yaml", "tasks:\n- {id: a}\n");
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(
        message.contains("is not in the commit that this run began with: commit it and run again"),
        "{message}"
    );
    scratch.git(&["add", "tasks.yaml"]);
    scratch.git(&["commit", "-q", "-m", "list"]);
    scratch.run(0);
    assert_eq!(scratch.count("each/a/build"), 1);
}
