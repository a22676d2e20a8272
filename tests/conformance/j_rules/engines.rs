//! Engines that die, meet, or are not seen.

use crate::support::{Scratch, text, wait_for};

#[test]
fn j_16_killed_at_any_moment_the_state_is_readable_and_the_run_ends_right() {
    let workflow = "
parallel_max: 3
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: a, role: coder, needs: [plan], writes: { a.md: any } }
  - { id: b, role: coder, needs: [plan], writes: { b.md: any } }
  - { id: review, review: [a, b], needs: [a, b], by: reviewer }
";
    let agent = "plan) wrote plan.md;; a) wrote a.md;; b) wrote b.md;; review) if [ $GATEWRIGHT_ROUND = 1 ]; then demand; else approve; fi;;";
    for events in [1, 3, 6, 10] {
        let scratch = Scratch::with(workflow, agent);
        let engine = scratch.start(&["run", "w", "Add a greeting"]);
        let run = engine.id();
        wait_for("so many events", || (scratch.events(&run).len() >= events).then_some(()));
        engine.kill();
        let found = scratch.events(&run);
        assert!(found.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "no gaps");
        let state = scratch.state(&run);
        assert!(state == "interrupted" || state == "done", "{state}");
        scratch.gatewright(&["resume", &run]).exits(0);
        for step in ["plan", "a", "b", "review"] {
            let launches = if step == "plan" { 1 } else { 2 };
            assert_eq!(scratch.count(step), launches, "killed after {events} events: {:?}", scratch.calls());
        }
    }
}

#[test]
fn j_17_a_second_engine_on_a_run_is_refused() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "code) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    scratch.gatewright(&["resume", &run]).exits(4).says("another engine");
    scratch.gatewright(&["engine", &run]).exits(4);
    assert_eq!(scratch.state(&run), "running");
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.count("code"), 1);
}

#[test]
fn j_17_of_two_that_resume_together_one_drives() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "code) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    let both = [scratch.start(&["resume", &run]), scratch.start(&["resume", &run])];
    wait_for("one of them is refused", || {
        both.iter().any(|one| one.err().contains("another engine")).then_some(())
    });
    scratch.mark("go");
    let mut codes = both.map(|one| one.ended().code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 4]);
    assert_eq!(scratch.calls(), ["code 1 1"]);
}

#[test]
fn j_17_s0_03_two_runs_in_one_repository_share_nothing() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder, reads: [plan.md] } ]",
        "plan) mark at-$GATEWRIGHT_RUN; await go; wrote plan.md $GATEWRIGHT_RUN;;",
    );
    let engines = [0, 1, 2].map(|_| scratch.start(&["run", "w", "Add a greeting"]));
    let runs = [0, 1, 2].map(|place: usize| engines[place].id());
    for run in &runs {
        scratch.marked(&format!("at-{run}"));
    }
    assert!(runs[0] != runs[1] && runs[1] != runs[2] && runs[0] != runs[2], "also in one second: {runs:?}");
    scratch.mark("go");
    for engine in engines {
        engine.ended().exits(0);
    }
    for run in &runs {
        assert_eq!(scratch.published(run, "plan.md"), Some(format!("{run}\n")));
        assert_eq!(scratch.step(run, "code")["attempts"], 1);
    }
}

#[test]
fn j_17_of_two_runs_with_one_fixed_directory_the_second_gets_its_own() {
    let scratch = Scratch::with("", "plan) await go; wrote plan.md $GATEWRIGHT_RUN;;");
    let text = "workflow: fixed\ndir: .agents/tmp/phases\nroles: { planner: { prompt: Plan it. } }\nsteps: [ { id: plan, role: planner, writes: { plan.md: any } } ]\n";
    scratch.write(".gatewright/workflows/fixed.yaml", text);
    let first = scratch.start(&["run", "fixed", "One"]);
    let first_id = first.id();
    let second = scratch.start(&["run", "fixed", "Two"]);
    let second_id = second.id();
    assert_eq!(scratch.run_dir(&first_id), scratch.root().join(".agents/tmp/phases"));
    assert_eq!(
        scratch.run_dir(&second_id),
        scratch.root().join(format!(".agents/tmp/phases-{second_id}")),
        "decision 19"
    );
    scratch.mark("go");
    first.ended().exits(0);
    second.ended().exits(0);
    assert_eq!(scratch.published(&first_id, "plan.md"), Some(format!("{first_id}\n")));
    assert_eq!(scratch.published(&second_id, "plan.md"), Some(format!("{second_id}\n")));
}

#[test]
fn j_50_a_detached_run_has_its_id_before_any_agent_and_every_shell_can_reach_it() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner }
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder }
",
        "plan) await plan-go; echo 'planning hard'; ok;; code) mark coding; await code-go; ok;;",
    );
    let run = scratch.gatewright(&["run", "w", "Add a greeting", "--detach"]).exits(0).id();
    let listed = scratch.gatewright(&["list", "--json"]).exits(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed["runs"][0]["id"], run.as_str());
    let follower = scratch.start(&["events", &run, "-f"]);
    wait_for("it is at work", || (scratch.count("plan") == 1).then_some(()));
    scratch.mark("plan-go");
    scratch.reaches(&run, "waiting");
    assert!(scratch.gatewright(&["logs", &run, "plan"]).exits(0).out.contains("planning hard"));
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    scratch.marked("coding");
    scratch.gatewright(&["stop", &run]).exits(0);
    scratch.mark("code-go");
    scratch.reaches(&run, "paused");
    assert_eq!(scratch.step_state(&run, "code"), "passed", "stop let it finish");
    scratch.gatewright(&["resume", &run]).exits(0);
    scratch.reaches(&run, "done");
    let followed = follower.ended().exits(0);
    assert!(followed.out.lines().count() >= 3 && followed.out.contains("run.started"), "{}", followed.out);
}

#[test]
fn j_45_an_edited_definition_changes_a_run_only_when_adopted() {
    let before = "
roles: { coder: { prompt: OLD WORDS }, reviewer: { prompt: Review it. } }
steps:
  - { id: first, decide: \"One?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder }
  - { id: second, decide: \"Two?\", answers: { approved: pass, no: block } }
  - { id: more, role: coder }
";
    let scratch = Scratch::with(before, "");
    let run = scratch.run(10);
    scratch.workflow("w", &before.replace("OLD WORDS", "NEW WORDS"));
    scratch.gatewright(&["answer", &run, "first", "approved"]).exits(10);
    assert!(scratch.prompt("code", 1).contains("OLD WORDS"), "the definition it started with");
    scratch.gatewright(&["resume", &run]).exits(10).says("--adopt");
    scratch.gatewright(&["resume", &run, "--adopt"]).exits(10);
    assert_eq!(scratch.events_of(&run, "run.plan.adopted").len(), 1);
    scratch.gatewright(&["answer", &run, "second", "approved"]).exits(0);
    assert!(scratch.prompt("more", 1).contains("NEW WORDS"));
    assert_eq!(scratch.count("code"), 1, "what had passed stays");
}

#[test]
fn j_45_a_definition_that_is_broken_is_not_adopted() {
    let workflow = "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }, { id: code, role: coder } ]";
    let scratch = Scratch::with(workflow, "");
    let run = scratch.run(10);
    scratch.workflow("w", "steps: [ { id: agree, role: nobody } ]");
    scratch.gatewright(&["resume", &run, "--adopt"]).exits(3).says("nobody");
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    assert_eq!(scratch.state(&run), "done", "it goes on with its own");
}

#[test]
fn s0_57_a_run_whose_engine_is_gone_is_interrupted_with_a_way_on() {
    let scratch = Scratch::with(
        "steps: [ { id: plan, role: planner }, { id: code, role: coder } ]",
        "code) mark at-work; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    let ran = scratch.gatewright(&["status", &run]).exits(12);
    assert!(ran.out.contains("interrupted: no engine drives it; `plan` was completed last"), "{}", ran.out);
    for command in [format!("gatewright resume {run}\n"), format!("gatewright clean {run} --artifacts")] {
        assert!(ran.out.contains(&command), "the next commands are named: {}", ran.out);
    }
    let listed: serde_json::Value =
        serde_json::from_str(&scratch.gatewright(&["list", "--json"]).exits(0).out).unwrap();
    assert_eq!(text(&listed["runs"][0]["state"]), "interrupted");
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
}
