//! Attacks on processes: the engine's, the supervisor's, and those that stay behind.

use crate::stage::{Sandbox, Stage, case, reads};

/// The supervisor is the parent of the agent's shell.
const KILL_SUPERVISOR: &str = "try kill -9 $PPID; sleep 2; echo lived > $GATEWRIGHT_OUT/lived";

#[test]
fn the_supervisor_is_killed() {
    let stage = Stage::code(Sandbox::On, KILL_SUPERVISOR);
    let (run, ran) = stage.play();
    ran.exits(0);
    assert!(stage.refused(&run).contains("not permitted"), "{}", stage.refused(&run));
    let control = Stage::code(Sandbox::Off, KILL_SUPERVISOR);
    let (run, ran) = control.play();
    assert_ne!(ran.code, 0, "no supervisor, no proof of the end: never success");
    control.is_named(&run, &ran, "the supervisor of its attempt was killed");
    let out = control.state_of(&run).join("attempts/code/1");
    assert!(!out.join("out/lived").exists(), "what survived the supervisor was ended");
    assert!(reads(&out.join("exit.json")).contains("interrupted"));
}

#[test]
fn the_engine_is_killed() {
    let script = "pid=$(awk '/^PPid/ { print $2 }' /proc/$PPID/status); if tr '\\0' ' ' < /proc/$pid/cmdline | grep -q '[r]un w Add'; then try kill -9 $pid; fi";
    let stage = Stage::code(Sandbox::On, script);
    let (run, ran) = stage.play();
    ran.exits(0);
    assert!(stage.refused(&run).contains("not permitted"), "{}", stage.refused(&run));
    let control = Stage::code(Sandbox::Off, script);
    let started = control.scratch.start(&["run", "w", "Add a greeting"]).ended();
    assert_eq!(started.code, -9, "without the sandbox it dies: {}", started.err);
    let run = started.id();
    let doctor = control.scratch.gatewright(&["doctor"]).out;
    assert!(doctor.contains(&format!("run {run} is interrupted")), "{doctor}");
    control.scratch.gatewright(&["resume", &run]);
    assert_eq!(control.scratch.state(&run), "done", "and nothing is lost by it");
    assert_eq!(control.scratch.count("code"), 1);
}

#[test]
fn the_engines_environment_is_read() {
    let script = "for pid in $(ls /proc | grep '^[0-9]*$'); do try sh -c 'tr \"\\0\" \"\\n\" < /proc/$0/environ' $pid | grep SECRET_OF_THE_USER >> $GATEWRIGHT_OUT/loot; done";
    let loot = |sandbox| {
        let stage = Stage::code(sandbox, script);
        // The control: a process of the user that does not keep its environment to itself.
        let mut careless = std::process::Command::new("sleep");
        let mut careless = careless.arg("60").env("SECRET_OF_THE_USER", "careless").spawn().unwrap();
        let mut command = stage.scratch.command(&["run", "w", "Add a greeting"]);
        command.env("SECRET_OF_THE_USER", "hunter2hunter2");
        let run = stage.scratch.start_with(command, None).ended().exits(0).id();
        careless.kill().unwrap();
        careless.wait().unwrap();
        let loot = reads(&stage.state_of(&run).join("attempts/code/1/out/loot"));
        assert!(sandbox == Sandbox::On || loot.contains("careless"), "{loot}");
        loot.lines().filter(|line| line.contains("hunter2")).collect::<String>()
    };
    assert_eq!(loot(Sandbox::On), "");
    assert_eq!(loot(Sandbox::Off), "", "the engine keeps itself to itself");
}

#[test]
fn a_process_stays_behind_to_change_the_report_later() {
    let script = "put report.md good; (setsid sh -c 'sleep 2; echo forged > $GATEWRIGHT_OUT/report.md' >/dev/null 2>&1 &); echo 'STATUS: DONE\nFILE: report.md\nSUMMARY: s.\nNEXT_INPUT: none'; exit 0";
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(
            sandbox,
            "steps: [ { id: code, role: coder, writes: { report.md: any } } ]",
            &case("code", script),
        );
        let (run, ran) = stage.play();
        let ran = ran.exits(0);
        assert!(ran.err.contains("process(es) behind, which were ended"), "{}", ran.err);
        let record = reads(&stage.state_of(&run).join("attempts/code/1/exit.json"));
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_ne!(record["left_behind"], serde_json::json!([]), "it was found and ended");
        assert_eq!(stage.scratch.published(&run, "report.md").as_deref(), Some("good\n"));
        assert!(stage.scratch.processes().is_empty(), "nothing is left");
    }
}

#[test]
fn many_processes_are_left_behind() {
    let script = "i=0; while [ $i -lt 150 ]; do setsid sleep 300 & i=$((i+1)); done";
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::code(sandbox, script);
        let (run, ran) = stage.play();
        let ran = ran.exits(0);
        assert!(
            ran.err.contains("left at least 100 process(es) behind, which were ended: sleep"),
            "{}",
            ran.err
        );
        assert!(reads(&stage.state_of(&run).join("attempts/code/1/exit.json")).contains("sleep"));
        assert!(stage.scratch.processes().is_empty(), "nothing is left");
    }
}

#[test]
fn much_output_is_kept_in_bounds() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::code(sandbox, "head -c 150000000 /dev/zero | tr '\\0' 'x'; echo");
        let (run, ran) = stage.play();
        ran.exits(0);
        let attempt = stage.state_of(&run).join("attempts/code/1");
        let kept = std::fs::metadata(attempt.join("stdout")).unwrap().len();
        assert!(kept < 70_000_000, "{kept}");
        assert!(!reads(&attempt.join("exit.json")).contains("\"dropped_bytes\":0"));
    }
}

/// Ten gigabytes, and more if nobody ends it: it is stopped long before, and the words say why.
#[test]
fn output_without_end_is_stopped_and_said() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::code(sandbox, "head -c 10G /dev/zero; echo printed > $GATEWRIGHT_OUT/all");
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        let (_, message) = stage.scratch.blocked_by(&run);
        assert!(message.contains("printed more than 1024 MiB and was stopped"), "{sandbox:?}: {message}");
        let attempt = stage.state_of(&run).join("attempts/code/1");
        let kept = std::fs::metadata(attempt.join("stdout")).unwrap().len();
        assert!(kept < 70_000_000, "{sandbox:?}: {kept}");
        assert!(!attempt.join("out/all").exists(), "{sandbox:?}: it did not come to its end");
        stage.bystander_is_unharmed();
    }
}

#[test]
fn raw_logs_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::code(sandbox, "");
        let (run, _) = stage.play();
        for file in ["stdout", "stderr", "launch.json", "exit.json"] {
            let path = stage.state_of(&run).join("attempts/code/1").join(file);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        }
    }
}
