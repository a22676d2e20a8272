//! Kills of the real program at every durable operation and at random moments; afterwards nothing is
//! lost, nothing finished runs twice, nobody is asked twice, nothing is left over.
//!
//! Built with the feature `fault-injection`, the engine aborts before its n-th write, fsync, rename,
//! create or spawn (and an answer on its way to the inbox before its n-th link); n grows until the run ends without reaching it. `CRASH_RANDOM=N` makes the campaign
//! of random kills longer.

#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

mod disks;
mod project;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use project::Project;

/// What every story must look like after it ended, whatever happened on the way.
fn assert_whole(project: &Project, story: &str) {
    let status = project.status();
    assert_eq!(status["state"], "done", "{story}\n{status:#}");
    let lines = project.agent_log();
    let unique: BTreeSet<&String> = lines.iter().collect();
    let repeated: Vec<&String> =
        lines.iter().filter(|line| lines.iter().filter(|other| other == line).count() > 1).collect();
    assert_eq!(unique.len(), lines.len(), "{story}: an attempt ran twice: {repeated:?}");
    // Attempts of a step are numbered without gaps: none was lost, none was invented.
    for step in status["steps"].as_array().unwrap() {
        let (id, attempts) = (step["id"].as_str().unwrap(), step["attempts"].as_u64().unwrap());
        let ran = lines.iter().filter(|line| line.split(' ').next() == Some(id)).count() as u64;
        assert!(ran <= attempts, "{story}: {id} has {attempts} attempts on the record, {ran} ran");
    }
    let events = project.events();
    let opened = events.iter().filter(|event| event["type"] == "decision.opened").count();
    let answered = events.iter().filter(|event| event["type"] == "decision.answered").count();
    assert_eq!((opened, answered), (1, 1), "{story}: a decision was asked or answered more than once");
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], place as u64 + 1, "{story}: the journal has a gap");
    }
    let rounds: Vec<u64> = events
        .iter()
        .filter(|event| event["type"] == "step.judged")
        .map(|event| event["round"].as_u64().unwrap())
        .collect();
    assert_eq!(rounds, [1, 2], "{story}: the loop did not take its two rounds");
    project.assert_files(story);
    project.assert_nothing_runs(story);
}

/// Which of the two processes of a story is hit: up to the question, or from the answer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Run,
    Answer,
}

/// One story: one act with a fault, then without until the end. Was the fault reached?
fn with_fault(act: Act, fault: &str) -> bool {
    let project = Project::new();
    let hit = |wanted| (act == wanted).then_some(fault);
    let mut last = project.gatewright(&["run", "all", "go"], hit(Act::Run));
    if act == Act::Answer {
        last = project.gatewright(&["answer", "latest", "agree", "approved"], hit(Act::Answer));
    }
    let story = format!("{act:?} {fault}");
    project.finish(&story);
    assert_whole(&project, &story);
    last.code.is_none()
}

/// More than any act has.
const OPERATIONS_MAX: u32 = 100_000;

/// Every n of one kind, until the act ends without reaching it.
fn every(act: Act, action: &str, kind: &str) {
    let kills = (1..OPERATIONS_MAX).take_while(|n| with_fault(act, &format!("{action}:{kind}:{n}"))).count();
    println!("{act:?} {action}:{kind}: {kills} kills");
    assert!(kills < OPERATIONS_MAX as usize - 1, "{kind}: there was no end of it");
    assert!(kills > 0, "no {kind} was reached: is the program built with fault-injection?");
}

macro_rules! campaigns {
    ($($name:ident: $act:ident $action:literal $kind:literal;)*) => {
        $(#[test] fn $name() { every(Act::$act, $action, $kind); })*
    };
}

campaigns! {
    run_killed_at_every_write: Run "abort" "write";
    run_torn_at_every_write: Run "tear" "write";
    run_killed_at_every_fsync: Run "abort" "fsync";
    run_killed_at_every_rename: Run "abort" "rename";
    run_killed_at_every_create: Run "abort" "create";
    run_killed_at_every_spawn: Run "abort" "spawn";
    answer_killed_at_every_write: Answer "abort" "write";
    answer_torn_at_every_write: Answer "tear" "write";
    answer_killed_at_every_fsync: Answer "abort" "fsync";
    answer_killed_at_every_rename: Answer "abort" "rename";
    answer_killed_at_every_create: Answer "abort" "create";
    answer_killed_at_every_spawn: Answer "abort" "spawn";
}

/// Disk errors: the engine stops with a clear error or gets over it; what was acknowledged is still there (J-54).
/// Operations are counted first, so that every one of them fails once, also those whose failure nobody sees.
fn every_failure(act: Act, kind: &str) {
    let project = Project::new();
    let counted = match act {
        Act::Run => project.count_operations(&["run", "all", "go"]),
        Act::Answer => {
            project.gatewright(&["run", "all", "go"], None);
            project.count_operations(&["answer", "latest", "agree", "approved"])
        }
    };
    let last = counted.get(kind).copied().unwrap_or(0);
    assert!(last > 0, "no {kind} was done: {counted:?}");
    for n in 1..=last {
        let project = Project::new();
        let fault = format!("error:{kind}:{n}");
        let hit = |wanted| (act == wanted).then_some(fault.as_str());
        let mut hurt = project.gatewright(&["run", "all", "go"], hit(Act::Run));
        if act == Act::Answer {
            hurt = project.gatewright(&["answer", "latest", "agree", "approved"], hit(Act::Answer));
        }
        assert!(hurt.code.is_some(), "{fault}: it must not be killed by an error");
        assert!(hurt.code != Some(70) || hurt.stderr.contains("error:"), "{fault}: {}", hurt.stderr);
        assert!(!hurt.stderr.contains("panicked"), "{fault}: {}", hurt.stderr);
        project.finish(&fault);
        assert_whole(&project, &fault);
    }
    println!("{act:?} error:{kind}: {last} failures");
}

#[test]
fn j_54_every_failing_write_of_a_run_loses_nothing() {
    every_failure(Act::Run, "write");
}

#[test]
fn j_54_every_failing_fsync_of_a_run_loses_nothing() {
    every_failure(Act::Run, "fsync");
}

#[test]
fn j_54_every_failing_rename_of_a_run_loses_nothing() {
    every_failure(Act::Run, "rename");
}

#[test]
fn j_54_every_failing_create_of_a_run_loses_nothing() {
    every_failure(Act::Run, "create");
}

#[test]
fn j_54_every_failing_open_of_a_run_loses_nothing() {
    every_failure(Act::Run, "open");
}

#[test]
fn j_54_every_failing_write_of_an_answer_loses_nothing() {
    every_failure(Act::Answer, "write");
}

#[test]
fn j_54_every_failing_fsync_of_an_answer_loses_nothing() {
    every_failure(Act::Answer, "fsync");
}

#[test]
fn j_54_every_failing_rename_of_an_answer_loses_nothing() {
    every_failure(Act::Answer, "rename");
}

#[test]
fn j_54_every_failing_create_of_an_answer_loses_nothing() {
    every_failure(Act::Answer, "create");
}

#[test]
fn j_54_every_failing_open_of_an_answer_loses_nothing() {
    every_failure(Act::Answer, "open");
}

/// Who is killed while an agent is at work, known to be there.
fn killed_at_work(words: &[&str], engine_too: bool) {
    let story = format!("{words:?} killed at work, engine too: {engine_too}");
    let project = Project::new();
    project.hold();
    let mut engine = project.spawn(&["run", "all", "go"], None);
    Project::wait_for(|| !project.agent_log().is_empty());
    if engine_too {
        Project::signal(engine.id(), "KILL");
    }
    let victims: Vec<u32> = words.iter().flat_map(|word| project.processes(word)).collect();
    assert!(words.is_empty() || !victims.is_empty(), "{story}: nobody was there");
    for pid in victims {
        Project::signal(pid, "KILL");
    }
    project.let_go();
    let _ = engine.wait();
    project.finish(&story);
    let status = project.status();
    assert_eq!(status["state"], "done", "{story}\n{status:#}");
    let lines = project.agent_log();
    let unique: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(unique.len(), lines.len(), "{story}: an attempt ran twice");
    let plans = lines.iter().filter(|line| line.starts_with("plan ")).count();
    assert_eq!(
        plans,
        if words.is_empty() { 1 } else { 2 },
        "{story}: a lost attempt is made again, under a new number"
    );
    project.assert_files(&story);
    project.assert_nothing_runs(&story);
}

#[test]
fn the_engine_is_killed_while_an_agent_works() {
    killed_at_work(&[], true);
}

#[test]
fn the_supervisor_is_killed_while_an_agent_works() {
    killed_at_work(&["supervise"], false);
}

#[test]
fn the_agent_is_killed_while_it_works() {
    killed_at_work(&["agent.sh"], false);
}

#[test]
fn engine_supervisor_and_agent_are_killed_at_once() {
    killed_at_work(&["supervise", "agent.sh"], true);
}

/// The clock jumps by an hour, back and forth, while the engine is at work and between two engines.
#[test]
fn clock_jumps_of_an_hour_change_nothing() {
    for (first, second) in [(3_600_000, 0), (-3_600_000, 3_600_000)] {
        let story = format!("clock {first} {second}");
        let project = Project::new();
        project.hold();
        let mut engine = project.spawn(&["run", "all", "go"], None);
        Project::wait_for(|| !project.agent_log().is_empty());
        project.set_clock(first);
        project.let_go();
        let _ = engine.wait();
        let jumped: BTreeSet<String> = project
            .events()
            .iter()
            .filter_map(|event| event["at"].as_str().map(|at| at[..13].to_owned()))
            .collect();
        assert!(jumped.len() > 1, "{story}: the jump is not in the journal: {jumped:?}");
        project.set_clock(second);
        project.finish(&story);
        assert_whole(&project, &story);
    }
}

/// Random moments: the engine, the supervisors, the agents, or all at once.
#[test]
fn killed_at_random_moments() {
    let kills_wanted: u32 =
        std::env::var("CRASH_RANDOM").ok().and_then(|text| text.parse().ok()).unwrap_or(80);
    let seed = std::env::var("CRASH_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x9E37_79B9_7F4A_7C15_u64);
    println!("CRASH_SEED={seed}");
    let mut random = seed;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut kills = 0;
    while kills < kills_wanted {
        let project = Project::new();
        let mut engine_only = true;
        for _ in 0..4 {
            let victim = next() % 4;
            engine_only &= victim == 0;
            let patience = Duration::from_micros(next() % 250_000);
            kills += u32::from(project.run_and_kill(victim, patience));
        }
        project.finish("random");
        if engine_only {
            assert_whole(&project, "random, engine only");
        } else {
            // An agent that was killed is an attempt that broke; it is tried again, the rest holds.
            let status = project.status();
            assert_eq!(status["state"], "done", "random\n{status:#}");
            project.assert_files("random");
            project.assert_nothing_runs("random");
        }
    }
    println!("{kills} kills");
}

/// Two engines on one run: the second is refused, the first goes on (J-17).
#[test]
fn j_17_a_second_engine_is_refused() {
    let project = Project::new();
    project.hold();
    let mut first = project.spawn(&["run", "all", "go"], None);
    Project::wait_for(|| !project.agent_log().is_empty());
    let second = project.gatewright(&["resume", "latest"], None);
    assert_eq!(second.code, Some(4), "{}", second.stderr);
    assert!(second.stderr.contains("another engine"), "{}", second.stderr);
    project.let_go();
    let _ = first.wait();
    project.finish("two engines");
    assert_whole(&project, "two engines");
}

/// A laptop's sleep: the engine is stopped and goes on later.
#[test]
fn a_stopped_engine_goes_on() {
    let project = Project::new();
    project.hold();
    let mut engine = project.spawn(&["run", "all", "go"], None);
    Project::wait_for(|| !project.agent_log().is_empty());
    Project::signal(engine.id(), "STOP");
    project.let_go();
    let until = Instant::now() + Duration::from_millis(300);
    Project::wait_for(|| Instant::now() > until);
    Project::signal(engine.id(), "CONT");
    let _ = engine.wait();
    project.finish("sleep");
    assert_whole(&project, "sleep");
}

/// An answer to a living engine is killed at each of its own steps: it arrives once or not at all.
#[test]
fn j_15_an_answer_killed_on_its_way_is_taken_once_or_not_at_all() {
    for kind in ["write", "fsync", "link"] {
        for n in 1.. {
            let project = Project::new();
            // The engine stays although it waits: another branch is held at work.
            project.hold_step("busy");
            let mut engine = project.spawn(&["run", "two", "go"], None);
            Project::wait_for(|| {
                project.agent_log().iter().any(|line| line.starts_with("busy")) && project.is_asked()
            });
            let fault = format!("abort:{kind}:{n}");
            let sent = project.gatewright(&["answer", "latest", "agree", "approved"], Some(&fault));
            project.let_go();
            let _ = engine.wait();
            project.finish(&fault);
            let events = project.events();
            let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
            assert_eq!((count("decision.opened"), count("decision.answered")), (1, 1), "{fault}");
            project.assert_nothing_runs(&fault);
            if sent.code.is_some() {
                assert!(n > 1, "no {kind} was reached");
                break;
            }
        }
    }
}

/// The engine dies after an order is journaled and before its sender is told: it is not carried out
/// a second time, although it is still in the inbox.
#[test]
fn an_order_whose_acknowledgement_was_lost_has_one_effect() {
    let project = Project::new();
    project.hold_step("busy");
    let mut engine = project.spawn(&["run", "two", "go"], Some("abort:link:1"));
    Project::wait_for(|| {
        project.agent_log().iter().any(|line| line.starts_with("busy")) && project.is_asked()
    });
    let mut order = project.spawn(&["restart", "latest", "--stage", "main"], None);
    assert_eq!(engine.wait().unwrap().code(), None, "the engine was to be killed at its acknowledgement");
    project.let_go();
    let _ = order.wait();
    project.finish("lost acknowledgement");
    let restarts = project.events().iter().filter(|event| event["type"] == "stage.restarted").count();
    assert_eq!(restarts, 1);
    project.assert_nothing_runs("lost acknowledgement");
}

/// Fifty runs at once in one repository.
#[test]
fn fifty_runs_at_once_do_not_disturb_each_other() {
    let project = Project::new();
    let mut engines: Vec<_> =
        (0..50).map(|number| project.spawn(&["run", "small", &format!("go {number}")], None)).collect();
    for engine in &mut engines {
        assert_eq!(engine.wait().unwrap().code(), Some(0));
    }
    let runs = project.runs();
    assert_eq!(runs.len(), 50);
    let dirs: BTreeSet<String> = runs.iter().map(|run| run["dir"].as_str().unwrap().to_owned()).collect();
    assert_eq!(dirs.len(), 50, "two runs share a directory");
    assert!(runs.iter().all(|run| run["state"] == "done"));
    project.assert_nothing_runs("fifty runs");
}
