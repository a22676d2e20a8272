//! How attempts end by themselves, and what the agent finds and leaves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use gatewright_attempts::{Ended, LaunchSpec, OutputStream, Started};

use crate::fixture::{Fixture, is_alive, supervisor_program};

/// What `ls` finds in its own `/proc/self/fd`; the last is that directory.
const OPEN: &str = "0\n1\n2\n3\n";

#[test]
fn an_agent_that_succeeds() {
    let attempt = Fixture::new();
    let record = attempt.run(&attempt.script("echo hello; echo trouble >&2; echo x > $GATEWRIGHT_OUT/made"));
    assert_eq!(record.ended, Ended::Exited { code: 0 });
    assert_eq!((record.stdout_bytes, record.stderr_bytes, record.dropped_bytes), (6, 8, 0));
    assert_eq!(record.left_behind, Vec::<String>::new());
    assert!(record.started_at_ms > 0 && record.ended_at_ms >= record.started_at_ms);
    assert_eq!(attempt.stdout(), "hello\n");
    assert_eq!(
        attempt.dir.read_output_tail(OutputStream::Stderr, 100).unwrap(),
        (b"trouble\n".to_vec(), false)
    );
    assert_eq!(fs::read_to_string(attempt.dir.out_dir().join("made")).unwrap(), "x\n");
}

#[test]
fn an_exit_code_is_recorded() {
    let attempt = Fixture::new();
    assert_eq!(attempt.run(&attempt.script("exit 42")).ended, Ended::Exited { code: 42 });
}

#[test]
fn a_signal_is_recorded() {
    let attempt = Fixture::new();
    assert_eq!(attempt.run(&attempt.script("kill -KILL $$")).ended, Ended::Signalled { signal: 9 });
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    for program in ["no-such-agent", "/no/such/agent"] {
        let attempt = Fixture::new();
        let spec = LaunchSpec { argv: vec![program.to_owned()], ..attempt.script("") };
        let record = attempt.run(&spec);
        let Ended::StartFailed { message } = record.ended else { panic!("{record:?}") };
        assert!(message.contains(&format!("`{program}`")), "{message}");
    }
}

#[test]
fn a_directory_or_an_input_that_does_not_exist_is_named() {
    let missing = std::path::PathBuf::from("/no/such/place");
    let attempt = Fixture::new();
    let record = attempt.run(&LaunchSpec { cwd: missing.clone(), ..attempt.script("true") });
    let Ended::StartFailed { message } = record.ended else { panic!("{record:?}") };
    assert!(message.contains("/no/such/place") && message.contains("`sh`"), "{message}");

    let attempt = Fixture::new();
    let record = attempt.run(&LaunchSpec { stdin: Some(missing), ..attempt.script("true") });
    let Ended::StartFailed { message } = record.ended else { panic!("{record:?}") };
    assert!(message.contains("/no/such/place") && message.contains("No such file"), "{message}");
}

#[test]
fn the_environment_is_exactly_the_given_one() {
    let attempt = Fixture::new();
    let env = BTreeMap::from([("ONLY", "this"), ("AND", "that = \"so\"")]);
    let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let spec = LaunchSpec { argv: vec!["/usr/bin/env".to_owned()], env, ..attempt.script("") };
    assert_eq!(attempt.run(&spec).ended, Ended::Exited { code: 0 });
    assert_eq!(attempt.stdout(), "AND=that = \"so\"\nONLY=this\n");
}

#[test]
fn the_agent_has_its_directory_its_input_and_nothing_else_open() {
    let attempt = Fixture::new();
    let input = attempt.root.path().join("prompt");
    fs::write(&input, "do it\n").unwrap();
    let spec = LaunchSpec { stdin: Some(input), ..attempt.script("cat; pwd; exec ls /proc/self/fd") };
    attempt.run(&spec);
    let work = attempt.work().canonicalize().unwrap();
    assert_eq!(attempt.stdout(), format!("do it\n{}\n{OPEN}", work.display()));
}

#[test]
fn the_agent_begins_with_no_signal_blocked_or_ignored() {
    let attempt = Fixture::new();
    attempt.run(&LaunchSpec {
        argv: ["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"].map(str::to_owned).to_vec(),
        ..attempt.script("")
    });
    // glibc's posix_spawn ignores the two signals it keeps for itself (32, 33); nobody else sends them.
    let own_of_glibc = "SigIgn:\t0000000180000000";
    let output = attempt.stdout().replace(own_of_glibc, "SigIgn:\t0000000000000000");
    assert_eq!(output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

#[test]
fn without_an_input_there_is_none() {
    let attempt = Fixture::new();
    attempt.run(&attempt.script("readlink /proc/$$/fd/0"));
    assert_eq!(attempt.stdout(), "/dev/null\n");
}

#[test]
fn output_that_is_not_utf8_is_kept_as_it_is() {
    let attempt = Fixture::new();
    let record = attempt.run(&attempt.script("printf '\\377\\000\\200a'"));
    assert_eq!(record.stdout_bytes, 4);
    let (bytes, _) = attempt.dir.read_output_tail(OutputStream::Stdout, 100).unwrap();
    assert_eq!(bytes, b"\xff\x00\x80a");
}

#[test]
fn files_are_for_the_user_only() {
    let attempt = Fixture::new();
    attempt.run(&attempt.script("echo secret"));
    for name in ["stdout", "stderr", "launch.json", "pid.json", "exit.json", "lock"] {
        let mode = fs::metadata(attempt.dir.path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mode = fs::metadata(&attempt.dir.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut names: Vec<_> =
        fs::read_dir(&attempt.dir.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["exit.json", "launch.json", "lock", "out", "pid.json", "stderr", "stdout"]);
}

#[test]
fn what_the_agent_leaves_behind_is_ended_and_named() {
    let attempt = Fixture::new();
    // Both keep the output open; the second is in a session of its own and its parent is gone.
    let record = attempt.run(
        &attempt.script("sleep 300 & echo $! > one; setsid sh -c 'sleep 301 & echo $! > two'; echo done"),
    );
    assert_eq!(record.ended, Ended::Exited { code: 0 });
    assert_eq!(record.left_behind, ["sleep", "sleep"]);
    assert_eq!(attempt.stdout(), "done\n");
    assert!(record.duration_ms < 30_000);
    assert!(!is_alive(attempt.number("one")) && !is_alive(attempt.number("two")));
}

#[test]
fn what_ends_right_after_the_agent_may_finish() {
    let attempt = Fixture::new();
    let record = attempt.run(&attempt.script("(:; :; echo late) & echo early"));
    assert_eq!(record.left_behind, Vec::<String>::new());
    assert!(["early\nlate\n", "late\nearly\n"].contains(&attempt.stdout().as_str()));
}

#[test]
fn starting_what_has_ended_starts_nothing() {
    let attempt = Fixture::new();
    let spec = attempt.script("echo run >> runs");
    let record = attempt.run(&spec);
    assert_eq!(attempt.start(&spec), Started::AlreadyEnded(record.clone()));
    attempt.supervise_again();
    assert_eq!(attempt.wait(), record);
    assert_eq!(fs::read_to_string(attempt.work().join("runs")).unwrap(), "run\n");
}

#[test]
fn what_the_engine_inherited_reaches_nobody() {
    let attempt = Fixture::new();
    let spec = attempt.script("ls -l /proc/$PPID/fd > ../supervisor; exec ls /proc/self/fd");
    let spec_path = attempt.root.path().join("spec.json");
    fs::write(&spec_path, serde_json::to_vec(&spec).unwrap()).unwrap();
    let marker = attempt.root.path().join("inherited");
    // The shell leaves a descriptor open for the engine.
    let engine = std::process::Command::new("sh")
        .args(["-c", "exec 9>\"$1\"; exec \"$2\" start \"$3\" \"$4\"", "sh"])
        .args([&marker, &supervisor_program(), &spec_path, &attempt.dir.path])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&engine.stdout), "Launched\n");
    attempt.wait();
    assert_eq!(attempt.stdout(), OPEN);
    let open = fs::read_to_string(attempt.root.path().join("supervisor")).unwrap();
    // Only root may look into a process that is not dumpable; for others this says nothing.
    assert!(!open.contains("/inherited"), "{open}");
}
