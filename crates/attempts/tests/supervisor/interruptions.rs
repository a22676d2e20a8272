//! Engines and supervisors that die, come late or come twice.

use std::fs;
use std::process::Command;

use gatewright_attempts::{AttemptDir, Ended, LaunchSpec, Started, SupervisorCommand, start_or_attach};

use crate::fixture::{Fixture, is_alive, send, supervisor_program, wait_until};

#[test]
fn the_agent_goes_on_when_the_engine_is_gone() {
    let attempt = Fixture::new();
    let spec = attempt
        .script("echo $$ > agent; while ! [ -e go ]; do sleep 0.01; done; echo run >> runs; echo done");
    let spec_path = attempt.root.path().join("spec.json");
    fs::write(&spec_path, serde_json::to_vec(&spec).unwrap()).unwrap();
    // The engine is the leader of a group and gone when this returns; what it started is not in the group.
    let engine = Command::new(supervisor_program())
        .arg("start")
        .args([&spec_path, &attempt.dir.path])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&engine.stdout), "Launched\n");
    let agent = attempt.number("agent");
    assert!(is_alive(agent));
    assert_eq!(attempt.start(&spec), Started::Attached);
    fs::write(attempt.work().join("go"), "").unwrap();
    let record = attempt.wait();
    assert_eq!(record.ended, Ended::Exited { code: 0 });
    assert_eq!(attempt.stdout(), "done\n");
    assert_eq!(attempt.start(&spec), Started::AlreadyEnded(record));
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn the_timeout_holds_when_the_engine_is_gone() {
    let attempt = Fixture::new();
    let spec = LaunchSpec { timeout_ms: Some(300), ..attempt.script("sleep 300") };
    let spec_path = attempt.root.path().join("spec.json");
    fs::write(&spec_path, serde_json::to_vec(&spec).unwrap()).unwrap();
    let engine =
        Command::new(supervisor_program()).arg("start").args([&spec_path, &attempt.dir.path]).status();
    assert!(engine.unwrap().success());
    wait_until("the record, without anybody waiting", || attempt.dir.exit_record().unwrap().is_some());
    assert_eq!(attempt.wait().ended, Ended::TimedOut);
}

/// The engine that comes later did not start the supervisor, so nobody tells it that it was killed; that the agent
/// lives beside the record of its end is all there is to see.
#[test]
fn a_record_of_the_end_beside_a_living_agent_is_not_believed() {
    let attempt = Fixture::new();
    let spec = attempt.script("echo $$ > agent; sleep 300");
    let spec_path = attempt.root.path().join("spec.json");
    fs::write(&spec_path, serde_json::to_vec(&spec).unwrap()).unwrap();
    let engine =
        Command::new(supervisor_program()).arg("start").args([&spec_path, &attempt.dir.path]).status();
    assert!(engine.unwrap().success());
    let agent = attempt.number("agent");
    assert_eq!(attempt.agent_pid(), agent);
    let forged = r#"{"version":1,"ended":{"how":"exited","code":0},"started_at_ms":1,"ended_at_ms":2,"duration_ms":7777,"stdout_bytes":0,"stderr_bytes":0,"dropped_bytes":0,"left_behind":[]}"#;
    fs::write(attempt.dir.path.join("exit.json"), forged).unwrap();
    send(attempt.supervisor_pid(), "KILL");
    let record = attempt.wait();
    assert!(record.forged, "{record:?}");
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(!is_alive(agent), "what survived was ended");
    let aside = fs::read_to_string(attempt.dir.path.join("exit.forged.json")).unwrap();
    assert_eq!(aside, forged, "and what somebody wrote is kept");
}

/// An agent with a child, one in a session of its own, and an orphan in yet another one.
const FAMILY: &str = "echo run >> runs; sleep 300 & echo $! > child; \
    setsid sh -c 'echo $$ > session; sleep 301' & \
    (setsid sh -c 'sleep 302 & echo $! > daemon'); echo $$ > agent; wait; wait";
const FAMILY_NAMES: [&str; 4] = ["child", "session", "daemon", "agent"];

fn kill_supervisor_of_family(attempt: &Fixture) -> Vec<i32> {
    assert_eq!(attempt.start(&attempt.script(FAMILY)), Started::Launched);
    let family: Vec<i32> = FAMILY_NAMES.iter().map(|name| attempt.number(name)).collect();
    assert!(family.iter().all(|pid| is_alive(*pid)));
    assert_eq!(attempt.agent_pid(), family[3]);
    send(attempt.supervisor_pid(), "KILL");
    family
}

fn check_interrupted(attempt: &Fixture, family: &[i32]) {
    let record = attempt.wait();
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(record.left_behind.len() >= 4, "{record:?}");
    for (pid, name) in family.iter().zip(FAMILY_NAMES) {
        assert!(!is_alive(*pid), "{name} survived");
    }
    assert_eq!(attempt.start(&attempt.script(FAMILY)), Started::AlreadyEnded(record));
    attempt.supervise_again();
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn who_waits_settles_what_a_killed_supervisor_left() {
    let attempt = Fixture::new();
    let family = kill_supervisor_of_family(&attempt);
    check_interrupted(&attempt, &family);
}

#[test]
fn who_resumes_settles_what_a_killed_supervisor_left() {
    let attempt = Fixture::new();
    let family = kill_supervisor_of_family(&attempt);
    let mut started = attempt.start(&attempt.script(FAMILY));
    wait_until("the lock to be free", || {
        started = attempt.start(&attempt.script(FAMILY));
        started != Started::Attached
    });
    let Started::AlreadyEnded(record) = started else { panic!("{started:?}") };
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(family.iter().all(|pid| !is_alive(*pid)));
    check_interrupted(&attempt, &family);
}

#[test]
fn a_late_supervisor_settles_what_a_killed_one_left() {
    let attempt = Fixture::new();
    let family = kill_supervisor_of_family(&attempt);
    wait_until("a supervisor to get the lock", || {
        attempt.supervise_again();
        attempt.dir.exit_record().unwrap().is_some()
    });
    check_interrupted(&attempt, &family);
}

#[test]
fn a_second_supervisor_quits_while_the_first_lives() {
    let attempt = Fixture::new();
    attempt
        .start(&attempt.script("echo run >> runs; echo $$ > agent; while ! [ -e go ]; do sleep 0.01; done"));
    let agent = attempt.number("agent");
    attempt.supervise_again();
    assert_eq!(attempt.start(&attempt.script("touch never")), Started::Attached);
    assert!(is_alive(agent) && attempt.dir.exit_record().unwrap().is_none());
    assert_eq!(attempt.agent_pid(), agent);
    fs::write(attempt.work().join("go"), "").unwrap();
    assert_eq!(attempt.wait().ended, Ended::Exited { code: 0 });
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn of_many_starters_one_starts() {
    let attempt = Fixture::new();
    let spec = attempt.script("echo run >> runs; while ! [ -e go ]; do sleep 0.01; done");
    let launched = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| attempt.start(&spec))).collect();
        threads
            .into_iter()
            .filter_map(|thread| (thread.join().unwrap() == Started::Launched).then_some(()))
            .count()
    });
    assert_eq!(launched, 1);
    fs::write(attempt.work().join("go"), "").unwrap();
    assert_eq!(attempt.wait().ended, Ended::Exited { code: 0 });
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn an_attempt_whose_supervisor_never_began_is_started_afresh() {
    let attempt = Fixture::new();
    let spec = attempt.script("echo run >> runs");
    // It starts and does nothing: as if it were killed before its first act.
    let dead = SupervisorCommand { program: "/bin/true".into(), args: Vec::new() };
    assert_eq!(start_or_attach(&attempt.dir, &spec, &dead).unwrap(), Started::Launched);
    assert!(attempt.dir.launch_spec().unwrap().is_some() && attempt.dir.pid_record().unwrap().is_none());
    wait_until("the lock to be free", || attempt.start(&spec) == Started::Launched);
    assert_eq!(attempt.wait().ended, Ended::Exited { code: 0 });
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn who_waits_for_a_supervisor_that_never_began_is_told() {
    let attempt = Fixture::new();
    let dead = SupervisorCommand { program: "/bin/true".into(), args: Vec::new() };
    start_or_attach(&attempt.dir, &attempt.script("touch never"), &dead).unwrap();
    assert_eq!(attempt.wait().ended, Ended::Interrupted);
    attempt.supervise_again();
    assert!(!attempt.work().join("never").exists());
}

#[test]
fn a_supervisor_that_cannot_be_started_is_an_error_and_holds_nothing() {
    let attempt = Fixture::new();
    let missing = SupervisorCommand { program: "/no/such/gatewright".into(), args: Vec::new() };
    let error = start_or_attach(&attempt.dir, &attempt.script(""), &missing).unwrap_err();
    assert!(error.to_string().contains("/no/such/gatewright"), "{error}");
    assert_eq!(attempt.run(&attempt.script("exit 5")).ended, Ended::Exited { code: 5 });
}

#[test]
fn supervisor_and_agent_leave_the_session_of_the_engine() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; while ! [ -e go ]; do sleep 0.01; done"));
    let (agent, supervisor) = (attempt.number("agent"), attempt.supervisor_pid());
    let pids = AttemptDir::open(&attempt.dir.path).unwrap().pid_record().unwrap().unwrap();
    assert_eq!(pids.session, supervisor);
    let stat = fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let (parent, group, session) = (fields[1], fields[2], fields[3]);
    assert_eq!(parent, supervisor.to_string());
    assert_eq!(group, agent.to_string());
    assert_eq!(session, supervisor.to_string());
    fs::write(attempt.work().join("go"), "").unwrap();
    assert_eq!(attempt.wait().ended, Ended::Exited { code: 0 });
    wait_until("the supervisor to be gone, also as a zombie", || {
        !fs::exists(format!("/proc/{supervisor}")).unwrap()
    });
}
