//! Agents' processes: hung, lost, loud, late.

use crate::support::{Scratch, wait_for};

#[test]
fn j_12_a_hung_agent_is_ended_with_all_it_started_and_tried_again() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, idle_timeout: 900ms } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then (trap '' TERM; sleep 600) & sleep 600; fi; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.step(&run, "code")["attempts"], 2);
    assert_eq!(scratch.events_of(&run, "step.retry.scheduled")[0]["class"], "idle");
    assert_eq!(scratch.processes(), [], "the whole tree is gone");
    assert!(scratch.prompt("code", 2).contains("silent"), "the second attempt is told why");
}

#[test]
fn j_12_an_agent_that_always_hangs_escalates() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, timeout: 200ms, retry: { attempts_max: 2 } } ]",
        "code) while :; do echo busy; sleep 0.02; done;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.count("code"), 2);
    assert_eq!(scratch.blocked_by(&run).0, "attempts_exhausted");
    assert!(scratch.blocked_by(&run).1.contains("timeout"));
}

#[test]
fn j_13_the_end_of_the_process_counts_not_the_end_of_its_output() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder }, { id: after, role: coder } ]",
        "code) sleep 600 & ok 'It is done.';;",
    );
    let run = scratch.run(0);
    assert_eq!(
        scratch.step(&run, "code")["summary"],
        "It is done.",
        "although a child still holds its output open"
    );
    assert_eq!(scratch.processes(), [], "and that child is gone");
}

#[test]
fn j_13_a_result_that_nobody_was_told_of_is_collected() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, writes: { code.md: any } } ]",
        "code) mark at-work; await go; wrote code.md;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    scratch.mark("go");
    wait_for("the agent and its supervisor end alone", || scratch.processes().is_empty().then_some(()));
    assert_eq!(scratch.state(&run), "interrupted");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.count("code"), 1, "what finished is not run again");
    assert!(scratch.published(&run, "code.md").is_some());
}

#[test]
fn j_14_huge_output_is_streamed_and_the_journal_stays_small() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        "code) yes 'a line of forty characters, more or less' | head -c 60000000; echo; mark printed; await go; ok 'It is done.';;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("printed");
    for (pid, line) in scratch.processes().into_iter().filter(|(_, line)| line.contains("gatewright")) {
        let kilobytes = peak_memory(pid);
        assert!(kilobytes < 40_000, "{kilobytes} kB for {line}");
    }
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.step(&run, "code")["summary"], "It is done.", "the reply at its end is found");
    let journal: usize = scratch.events(&run).iter().map(|event| event.to_string().len()).sum();
    assert!(journal < 20_000, "{journal} bytes of journal");
}

fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn j_29_an_agent_that_is_not_there_is_said_before_anything_starts() {
    let scratch = Scratch::with("steps: [ { id: code, role: coder } ]", "");
    scratch.write(
        ".gatewright/config.yaml",
        "agent: mine\nagents: { mine: { command: [no-such-program-xyz] } }\n",
    );
    let ran = scratch
        .gatewright(&["run", "w", "Add a greeting"])
        .exits(3)
        .says("no-such-program-xyz")
        .says("hint: ");
    assert_eq!(ran.out, "", "no run was made");
}

#[test]
fn j_29_an_agent_that_vanishes_on_the_way_blocks_at_once_and_clearly() {
    let scratch = Scratch::with("steps: [ { id: plan, role: planner }, { id: code, role: coder } ]", "");
    let tool = scratch.home().join("tool");
    std::fs::write(&tool, "#!/bin/sh\ncat > /dev/null\nrm -f \"$0\"\nprintf 'STATUS: DONE\\nFILE: none\\nSUMMARY: s.\\nNEXT_INPUT: none\\n'\n").unwrap();
    std::os::unix::fs::PermissionsExt::set_mode(&mut std::fs::metadata(&tool).unwrap().permissions(), 0o755);
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    scratch.write(
        ".gatewright/config.yaml",
        &format!("agent: mine\nagents: {{ mine: {{ command: [\"{}\"] }} }}\n", tool.display()),
    );
    let ran = scratch.gatewright(&["run", "w", "Add a greeting"]).exits(11).says("hint: ");
    let run = ran.id();
    let (reason, message) = scratch.blocked_by(&run);
    assert_eq!(reason, "tool_unavailable");
    assert!(message.contains("tool"), "{message}");
    assert_eq!(scratch.step(&run, "code")["attempts"], 1, "trying again would not help");
}

#[test]
fn j_29_a_check_that_cannot_run_is_no_pass() {
    let scratch = Scratch::with(
        "checks: { tests: { run: no-such-validator-xyz } }\nsteps: [ { id: code, role: coder, checks: [tests] }, { id: after, role: coder } ]",
        "",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.called(), ["code", "code"], "no bypass, no endless loop");
    assert!(
        scratch.blocked_by(&run).1.contains("no-such-validator-xyz"),
        "the message names it: {:?}",
        scratch.blocked_by(&run)
    );
}

#[test]
fn j_33_the_late_result_of_a_superseded_attempt_changes_nothing() {
    let scratch = Scratch::with(
        "stages: [ { id: build, steps: [ { id: code, role: coder, writes: { code.md: any } } ] } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then
  trap 'put code.md late; brief DONE code.md Late.; exit 0' TERM
  mark at-work; while :; do sleep 0.01; done
fi; wrote code.md new;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    scratch.gatewright(&["restart", &run, "--stage", "build", "--reason", "once more"]).exits(0);
    engine.ended().exits(0);
    assert_eq!(scratch.published(&run, "code.md").as_deref(), Some("new\n"));
    let ignored = scratch.events_of(&run, "step.result.ignored");
    assert_eq!((&ignored[0]["step"], &ignored[0]["attempt"]), (&"code".into(), &1.into()));
    let ended: Vec<_> = scratch.events_of(&run, "step.attempt.ended");
    assert_eq!(ended.len(), 1, "only the second attempt has an end that counts");
    assert_eq!(ended[0]["attempt"], 2);
}

#[test]
fn j_42_a_silent_branch_is_judged_alone() {
    let scratch = Scratch::with(
        "
steps:
  - { id: loud, role: reader, idle_timeout: 900ms }
  - { id: mute, role: reader, needs: [], idle_timeout: 900ms, retry: { attempts_max: 1 } }
",
        "
loud) turns=0; while [ $turns -lt 2000 ] && ! grep -q ended \"$HOME/seen\" 2>/dev/null; do echo work; turns=$((turns+1)); sleep 0.05; done; ok;;
mute) sleep 600;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    wait_for("the silent one is ended", || (scratch.step_state(&run, "mute") == "blocked").then_some(()));
    assert_eq!(scratch.step_state(&run, "loud"), "running", "others go on");
    std::fs::write(scratch.home().join("seen"), "ended\n").unwrap();
    engine.ended().exits(11);
    assert_eq!(scratch.step_state(&run, "loud"), "passed");
    assert!(scratch.blocked_by(&run).1.contains("idle"));
}

#[test]
fn j_51_an_agent_that_lives_is_picked_up_again() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, writes: { code.md: any } } ]",
        "code) mark at-work; await go; wrote code.md;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    let second = scratch.start(&["resume", &run]);
    scratch.reaches(&run, "running");
    scratch.mark("go");
    second.ended().exits(0);
    assert_eq!(scratch.calls(), ["code 1 1"], "the same attempt, not a second one");
    assert_eq!(scratch.step(&run, "code")["attempts"], 1);
    assert_eq!(scratch.published(&run, "code.md").as_deref(), Some("content of code.md\n"));
}

#[test]
fn j_51_a_killed_supervisor_is_the_machines_fault_and_not_counted_as_a_try() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then mark at-work; await never; fi; ok;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("at-work");
    let (supervisor, _) =
        scratch.processes().into_iter().find(|(_, line)| line.contains(" supervise ")).unwrap();
    let pid = rustix::process::Pid::from_raw(supervisor.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    engine.ended().exits(0);
    assert_eq!(scratch.step(&run, "code")["attempts"], 2);
    assert_eq!(scratch.events_of(&run, "step.retry.scheduled")[0]["class"], "interrupted");
    assert!(scratch.prompt("code", 2).contains("interrupted"));
}

/// Two test suites in one tree would disturb each other. A zombie (an empty command line) is dead.
#[test]
fn j_51_a_check_whose_engine_died_never_runs_beside_its_successor() {
    let scratch = Scratch::with(
        "
checks:
  tests:
    run: |
      before=$(tail -n 1 $HOME/checks 2>/dev/null)
      if [ -n \"$before\" ] && tr '\\0' ' ' < /proc/$before/cmdline | grep -q .; then exit 9; fi
      echo $$ >> $HOME/checks
      turns=0; until [ -e $HOME/go ] || [ $turns -gt 3000 ]; do turns=$((turns+1)); sleep 0.01; done
steps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 1 } } ]
",
        "",
    );
    let checks =
        || std::fs::read_to_string(scratch.home().join("checks")).unwrap_or_default().lines().count();
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    wait_for("the check runs", || (checks() == 1).then_some(()));
    engine.kill();
    let resumed = scratch.start(&["resume", &run]);
    wait_for("it runs again or is refused", || {
        (checks() == 2 || scratch.state(&run) == "blocked").then_some(())
    });
    scratch.mark("go");
    resumed.ended().exits(0);
    assert_eq!(scratch.count("code"), 1, "the attempt had finished");
}
