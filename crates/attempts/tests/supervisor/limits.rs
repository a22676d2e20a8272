//! Timeouts, stops and caps.

use std::time::{Duration, Instant};

use gatewright_attempts::{
    Ended, LaunchSpec, OutputStream, StartError, StopSignal, kill_now, request_stop, wait_for_exit,
};

use crate::fixture::{Fixture, is_alive, send, status_number, wait_until};

#[test]
fn a_timeout_ends_every_process() {
    let attempt = Fixture::new();
    let spec = LaunchSpec {
        timeout_ms: Some(1500),
        ..attempt.script(
            "trap '' TERM; echo $$ > agent; sleep 300 & echo $! > child; \
             setsid sh -c 'trap \"\" TERM; echo $$ > session; sleep 301 & echo $! > orphan; wait' & \
             (setsid sh -c 'sleep 302 & echo $! > daemon'); wait; wait",
        )
    };
    let record = attempt.run(&spec);
    assert_eq!(record.ended, Ended::TimedOut);
    assert!(record.duration_ms >= 1500 && record.duration_ms < 20_000, "{record:?}");
    for name in ["agent", "child", "session", "orphan", "daemon"] {
        assert!(!is_alive(attempt.number(name)), "{name} survived");
    }
    assert!(record.left_behind.contains(&"sleep".to_owned()), "{record:?}");
    assert!(record.killed, "it hears no SIGTERM: {record:?}");
}

#[test]
fn an_agent_that_ends_on_sigterm_is_not_killed() {
    let attempt = Fixture::new();
    let spec = LaunchSpec {
        timeout_ms: Some(300),
        grace_ms: 30_000,
        ..attempt.script("trap 'echo saved; exit 3' TERM; while :; do sleep 0.01; done")
    };
    let record = attempt.run(&spec);
    assert_eq!(record.ended, Ended::TimedOut);
    assert_eq!(attempt.stdout(), "saved\n");
    assert!(record.duration_ms < 20_000 && !record.killed, "{record:?}");
}

/// The signal that it ends well on comes alone; the other one would come too late to be heard.
#[test]
fn an_agent_is_asked_to_stop_by_the_signal_that_it_ends_well_on() {
    for (stop, expected) in [(StopSignal::Terminate, "TERM\n"), (StopSignal::Interrupt, "INT\n")] {
        let attempt = Fixture::new();
        let script = "for s in INT TERM; do trap \"echo $s; exit 3\" $s; done; while :; do sleep 0.01; done";
        let spec = LaunchSpec { timeout_ms: Some(300), grace_ms: 30_000, stop, ..attempt.script(script) };
        assert_eq!(attempt.run(&spec).ended, Ended::TimedOut);
        assert_eq!(attempt.stdout(), expected);
    }
}

#[test]
fn silence_ends_an_agent_and_output_keeps_it() {
    let attempt = Fixture::new();
    let spec = LaunchSpec {
        idle_timeout_ms: Some(1000),
        ..attempt.script("for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i >&2; done; sleep 300")
    };
    let record = attempt.run(&spec);
    assert_eq!(record.ended, Ended::Idle);
    assert_eq!(record.stderr_bytes, 16);
    assert!(record.duration_ms >= 2600, "{record:?}");
    assert!(!is_alive(attempt.agent_pid()));
}

#[test]
fn dropped_output_is_output_too() {
    let attempt = Fixture::new();
    let spec = LaunchSpec {
        idle_timeout_ms: Some(1000),
        output_max_bytes: 3,
        ..attempt.script("for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i; done")
    };
    let record = attempt.run(&spec);
    assert_eq!(record.ended, Ended::Exited { code: 0 });
    assert_eq!(record.dropped_bytes, 0, "what did not fit at first is short enough to be the end");
    assert!(attempt.dir.last_output_at().unwrap().is_some());
}

#[test]
fn a_stop_request_ends_an_agent() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; sleep 300"));
    let agent = attempt.number("agent");
    request_stop(&attempt.dir).unwrap();
    assert_eq!(attempt.wait().ended, Ended::Stopped);
    assert!(!is_alive(agent));
    request_stop(&attempt.dir).unwrap();
    assert_eq!(attempt.wait().ended, Ended::Stopped);
}

#[test]
fn the_stop_file_alone_is_a_request() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; sleep 300"));
    attempt.number("agent");
    std::fs::write(attempt.dir.path.join("stop"), "").unwrap();
    assert_eq!(attempt.wait().ended, Ended::Stopped);
}

#[test]
fn a_stop_request_before_the_start_starts_no_agent() {
    let attempt = Fixture::new();
    request_stop(&attempt.dir).unwrap();
    assert_eq!(attempt.run(&attempt.script("touch ran")).ended, Ended::Stopped);
    assert!(!attempt.work().join("ran").exists());
}

#[test]
fn a_supervisor_stops_on_sigterm_only() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; while :; do echo tick; sleep 0.01; done"));
    let (agent, supervisor) = (attempt.number("agent"), attempt.supervisor_pid());
    send(supervisor, "HUP");
    send(supervisor, "INT");
    let seen = attempt.dir.read_output_tail(OutputStream::Stdout, 1 << 20).unwrap().0.len();
    wait_until("more output", || {
        attempt.dir.read_output_tail(OutputStream::Stdout, 1 << 20).unwrap().0.len() > seen + 20
    });
    assert!(is_alive(agent) && attempt.dir.exit_record().unwrap().is_none());
    send(supervisor, "TERM");
    assert_eq!(attempt.wait().ended, Ended::Stopped);
    assert!(!is_alive(agent));
}

#[test]
fn kill_now_has_no_grace() {
    let attempt = Fixture::new();
    let script = "trap '' TERM; echo $$ > agent; setsid sh -c 'trap \"\" TERM; echo $$ > session; \
                  while :; do sleep 1; done' & while :; do sleep 1; done";
    attempt.start(&LaunchSpec { grace_ms: 300_000, ..attempt.script(script) });
    let (agent, session) = (attempt.number("agent"), attempt.number("session"));
    let record = kill_now(&attempt.dir).unwrap().unwrap();
    assert_eq!(record.ended, Ended::Stopped);
    assert!(!is_alive(agent) && !is_alive(session));
}

#[test]
fn kill_now_ends_a_supervisor_that_does_not_react() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; sleep 300"));
    let agent = attempt.number("agent");
    send(attempt.supervisor_pid(), "STOP");
    let record = kill_now(&attempt.dir).unwrap().unwrap();
    assert_eq!(record.ended, Ended::Interrupted);
    assert!(!is_alive(agent));
}

#[test]
fn what_was_never_started_is_not_waited_for() {
    let attempt = Fixture::new();
    let never = || false;
    let waited = wait_for_exit(&attempt.dir, &never, Duration::from_secs(1));
    assert!(matches!(waited, Err(StartError::NotStarted { .. })), "{waited:?}");
    assert_eq!(kill_now(&attempt.dir).unwrap(), None);
}

#[test]
fn waiting_can_be_cancelled() {
    let attempt = Fixture::new();
    attempt.start(&attempt.script("echo $$ > agent; sleep 300"));
    attempt.number("agent");
    let until = Instant::now() + Duration::from_millis(50);
    let waited = wait_for_exit(&attempt.dir, &|| Instant::now() > until, Duration::from_millis(10));
    assert_eq!(waited.unwrap(), None);
}

#[test]
fn much_output_costs_little_memory() {
    let attempt = Fixture::new();
    let mut spec = attempt.script(
        "head -c 200000000 /dev/zero; head -c 5000 /dev/zero >&2; echo 1 > written; \
         while ! [ -e go ]; do sleep 0.01; done; echo last words",
    );
    spec.output_max_bytes = 100_000;
    attempt.start(&spec);
    attempt.number("written");
    let peak_kib = status_number(attempt.supervisor_pid(), "VmHWM").unwrap();
    std::fs::write(attempt.work().join("go"), "").unwrap();
    let record = attempt.wait();
    assert_eq!(record.ended, Ended::Exited { code: 0 });
    let end = 256 * 1024;
    assert!((100_000 + end..100_100 + end).contains(&record.stdout_bytes), "{record:?}");
    assert_eq!(record.stderr_bytes, 5000);
    assert_eq!(record.dropped_bytes, 200_000_011 - 100_000 - end);
    assert!(peak_kib < 16 * 1024, "{peak_kib} KiB");
    let (tail, truncated) = attempt.dir.read_output_tail(OutputStream::Stdout, 11).unwrap();
    assert_eq!((tail.as_slice(), truncated), (b"last words\n".as_slice(), true));
}

/// S3-13: who still speaks when its time is up gets the extension, once; who is silent does not.
#[test]
fn s3_13_an_extension_is_granted_once_to_who_still_speaks() {
    let limited = |attempt: &Fixture, extension_ms: u64, script: &str| {
        let spec =
            LaunchSpec { timeout_ms: Some(1000), extension_ms: Some(extension_ms), ..attempt.script(script) };
        attempt.run(&spec)
    };
    let speaking = Fixture::new();
    let record = limited(&speaking, 60_000, "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.2; done");
    assert_eq!(record.ended, Ended::Exited { code: 0 }, "it ended within its extension");
    let endless = Fixture::new();
    let record = limited(&endless, 1000, "while :; do echo on; sleep 0.05; done");
    assert_eq!(record.ended, Ended::TimedOut);
    assert!(record.duration_ms >= 2000, "{record:?}");
    let silent = Fixture::new();
    let record = limited(&silent, 500, "sleep 300");
    assert_eq!(record.ended, Ended::TimedOut);
    assert!(record.duration_ms < 60_000, "{record:?}");
}
