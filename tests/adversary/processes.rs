//! Attacks on processes: the engine's, the supervisor's, and those that stay behind.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
    support::wait_for,
};

/// The supervisor is the parent of the agent's shell.
const KILL_SUPERVISOR: &str = "try kill -9 $PPID; sleep 2; echo lived > $GATEWRIGHT_OUT/lived";

#[test]
fn the_supervisor_is_killed() {
    let proof = Proof::of("the_supervisor_is_killed");
    let stage = Stage::code(Sandbox::On, KILL_SUPERVISOR);
    let (run, ran) = stage.play();
    ran.exits(0);
    assert!(stage.refused(&run).contains("not permitted"), "{}", stage.refused(&run));
    proof.was_refused(Sandbox::On);
    let control = Stage::code(Sandbox::Off, KILL_SUPERVISOR);
    let (run, ran) = control.play();
    assert_ne!(ran.code, 0, "no supervisor, no proof of the end: never success");
    let record = reads(&control.state_of(&run).join("attempts/code/1/exit.json"));
    proof.damage(record.contains("supervisor_killed"), &record);
    control.is_named(Sandbox::Off, &run, &ran, &proof);
    let out = control.state_of(&run).join("attempts/code/1");
    assert!(!out.join("out/lived").exists(), "what survived the supervisor was ended");
    assert!(reads(&out.join("exit.json")).contains("interrupted"));
}

#[test]
fn the_engine_is_killed() {
    let proof = Proof::of("the_engine_is_killed");
    let script = "pid=$(awk '/^PPid/ { print $2 }' /proc/$PPID/status); if tr '\\0' ' ' < /proc/$pid/cmdline | grep -q '[r]un w Add'; then try kill -9 $pid; fi";
    let stage = Stage::code(Sandbox::On, script);
    let (run, ran) = stage.play();
    ran.exits(0);
    assert!(stage.refused(&run).contains("not permitted"), "{}", stage.refused(&run));
    proof.was_refused(Sandbox::On);
    let control = Stage::code(Sandbox::Off, script);
    let started = control.scratch.start(&["run", "w", "Add a greeting"]).ended();
    proof.damage(started.code == -9, &started.err);
    let run = started.id();
    let doctor = control.scratch.gatewright(&["doctor"]).out;
    proof.told(Sandbox::Off, &doctor);
    assert!(doctor.contains(&format!("run {run} is interrupted")), "{doctor}");
    control.scratch.gatewright(&["resume", &run]);
    assert_eq!(control.scratch.state(&run), "done", "and nothing is lost by it");
    assert_eq!(control.scratch.count("code"), 1);
}

#[test]
fn the_engines_environment_is_read() {
    let proof = Proof::of("the_engines_environment_is_read");
    let script = "for pid in $(ls /proc | grep '^[0-9]*$'); do try sh -c 'tr \"\\0\" \"\\n\" < /proc/$0/environ' $pid | grep SECRET_OF_THE_USER >> $GATEWRIGHT_OUT/loot; done";
    // Somebody else's program, which has nothing to do with the run.
    let mut other = std::process::Command::new("sleep");
    let mut other = other.arg("600").env("SECRET_OF_THE_USER", "of-a-bystander").spawn().unwrap();
    let loot = |sandbox: Sandbox, without: &str| {
        let stage = Stage::code(sandbox, script);
        let mut command = stage.scratch.command(&["run", "w", "Add a greeting"]);
        command.env("SECRET_OF_THE_USER", "hunter2hunter2").env("GATEWRIGHT_WITHOUT", without);
        let run = stage.scratch.start_with(command, None).ended().exits(0).id();
        if sandbox.holds() {
            let refused = stage.refused(&run);
            assert!(refused.contains("denied") || refused.contains("not permitted"), "{refused}");
            proof.was_refused(sandbox);
        } else {
            proof.told(sandbox, &stage.scratch.gatewright(&["status", &run]).out);
        }
        let loot = reads(&stage.state_of(&run).join("attempts/code/1/out/loot"));
        loot.lines().filter(|line| line.contains("hunter2") || line.contains("bystander")).collect::<String>()
    };
    assert_eq!(loot(Sandbox::On, ""), "", "neither of the engine nor of anybody else, not even by root");
    let found = loot(Sandbox::Off, "");
    assert!(!found.contains("hunter2"), "the engine keeps itself to itself: {found}");
    assert!(
        found.contains("bystander"),
        "what anybody of the same user may read is there to be found: {found}"
    );
    let found = loot(Sandbox::Off, "privacy");
    other.kill().unwrap();
    other.wait().unwrap();
    proof.damage(found.contains("hunter2"), &found);
}

/// What the script leaves behind has two seconds to do its damage.
const LATER: &str = "put report.md good; (setsid sh -c 'sleep 2; echo forged > $GATEWRIGHT_OUT/report.md' >/dev/null 2>&1 &); echo 'STATUS: DONE\nFILE: report.md\nSUMMARY: s.\nNEXT_INPUT: none'; exit 0";

#[test]
fn a_process_stays_behind_to_change_the_report_later() {
    let proof = Proof::of("a_process_stays_behind_to_change_the_report_later");
    let stage = |sandbox| {
        let workflow = "steps: [ { id: code, role: coder, writes: { report.md: any } } ]";
        Stage::new(sandbox, workflow, &case("code", LATER))
    };
    for sandbox in BOTH {
        let stage = stage(sandbox);
        let (run, ran) = stage.play();
        proof.told(sandbox, &ran.exits(0).err);
        let record = reads(&stage.state_of(&run).join("attempts/code/1/exit.json"));
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_ne!(record["left_behind"], serde_json::json!([]), "it was found and ended");
        assert_eq!(stage.scratch.published(&run, "report.md").as_deref(), Some("good\n"));
        assert!(stage.scratch.processes().is_empty(), "nothing is left");
    }
    let control = stage(Sandbox::On).without("sweep");
    let (run, ran) = control.play();
    let staged = control.state_of(&run).join("attempts/code/1/out/report.md");
    wait_for("what was accepted is replaced", || reads(&staged).contains("forged").then_some(()));
    proof.damage(ran.code == 0, &ran.err);
}

#[test]
fn many_processes_are_left_behind() {
    let proof = Proof::of("many_processes_are_left_behind");
    let script =
        |seconds: u32| format!("i=0; while [ $i -lt 150 ]; do setsid sleep {seconds} & i=$((i+1)); done");
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, &script(300));
        let (run, ran) = stage.play();
        proof.told(sandbox, &ran.exits(0).err);
        assert!(reads(&stage.state_of(&run).join("attempts/code/1/exit.json")).contains("sleep"));
        assert!(stage.scratch.processes().is_empty(), "nothing is left");
    }
    let control = Stage::code(Sandbox::On, &script(5)).without("sweep");
    let (_, ran) = control.play();
    let left = control.scratch.processes().len();
    proof.damage(ran.code == 0 && left == 150, &format!("{left} are left\n{}", ran.err));
    wait_for("they have ended by themselves", || control.scratch.processes().is_empty().then_some(()));
}

/// Every process starts two more, eight times over: more than five hundred if nobody ends them.
const BOMB: &str = r#"cat > bomb.sh <<'END'
if [ $1 -gt 0 ]; then sh bomb.sh $(($1 - 1)) & sh bomb.sh $(($1 - 1)) & fi
echo x >> "$HOME/prompts/born"
sleep 4
END
sh bomb.sh 8; sleep 4; echo all > "$GATEWRIGHT_OUT/all""#;

#[test]
fn processes_without_end_are_ended_and_said() {
    let proof = Proof::of("processes_without_end_are_ended_and_said");
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, BOMB);
        stage.scratch.config("    processes_max: 60");
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        proof.told(sandbox, &stage.says(&run, &ran));
        assert!(!stage.state_of(&run).join("attempts/code/1/out/all").exists(), "{sandbox:?}");
        assert!(stage.scratch.processes().is_empty(), "{sandbox:?}: nothing is left");
        stage.bystander_is_unharmed();
    }
    let control = Stage::code(Sandbox::On, BOMB).without("process-limits");
    control.scratch.config("    processes_max: 60");
    let (run, ran) = control.play();
    let born = reads(&control.scratch.home().join("prompts/born")).lines().count();
    let all = control.state_of(&run).join("attempts/code/1/out/all").exists();
    proof.damage(ran.code == 0 && born == 511 && all, &format!("{born} were born\n{}", ran.err));
}

#[test]
fn much_output_is_kept_in_bounds() {
    let proof = Proof::of("much_output_is_kept_in_bounds");
    let script = "head -c 150000000 /dev/zero | tr '\\0' 'x'; echo";
    let kept = |stage: &Stage, run: &str| {
        std::fs::metadata(stage.state_of(run).join("attempts/code/1/stdout")).unwrap().len()
    };
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, script);
        let (run, ran) = stage.play();
        ran.exits(0);
        assert!(kept(&stage, &run) < 70_000_000, "{}", kept(&stage, &run));
        let attempt = stage.state_of(&run).join("attempts/code/1");
        assert!(!reads(&attempt.join("exit.json")).contains("\"dropped_bytes\":0"));
        let stdout = std::fs::read(attempt.join("stdout")).unwrap();
        proof.told(sandbox, &String::from_utf8_lossy(&stdout[stdout.len() - 300_000..]));
    }
    let control = Stage::code(Sandbox::On, script).without("output-limits");
    let (run, ran) = control.play();
    proof.damage(kept(&control, &run) > 150_000_000, &ran.err);
}

/// Ten gigabytes, and more if nobody ends it: it is stopped long before, and the words say why.
#[test]
fn output_without_end_is_stopped_and_said() {
    let proof = Proof::of("output_without_end_is_stopped_and_said");
    let script = |size: &str| format!("head -c {size} /dev/zero; echo printed > $GATEWRIGHT_OUT/all");
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, &script("10G"));
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        proof.told(sandbox, &stage.scratch.blocked_by(&run).1);
        let attempt = stage.state_of(&run).join("attempts/code/1");
        let kept = std::fs::metadata(attempt.join("stdout")).unwrap().len();
        assert!(kept < 70_000_000, "{sandbox:?}: {kept}");
        assert!(!attempt.join("out/all").exists(), "{sandbox:?}: it did not come to its end");
        stage.bystander_is_unharmed();
    }
    // The control: a little more than the limit, all of which ends up on the disk.
    let control = Stage::code(Sandbox::On, &script("1100M")).without("output-limits");
    let (run, ran) = control.play();
    let attempt = control.state_of(&run).join("attempts/code/1");
    let kept = std::fs::metadata(attempt.join("stdout")).unwrap().len();
    proof.damage(attempt.join("out/all").exists() && kept > 1 << 30, &format!("{kept}\n{}", ran.err));
}

/// One that is told which run, and one that would begin another in the same project.
#[test]
fn a_second_engine_is_started() {
    let proof = Proof::of("a_second_engine_is_started");
    let script = format!(
        "put report.md; export GATEWRIGHT_STATE_DIR=$root
try env -i PATH=$PATH HOME=$HOME GATEWRIGHT_STATE_DIR=$root {0} resume $GATEWRIGHT_RUN
try env -i PATH=$PATH HOME=$HOME GATEWRIGHT_STATE_DIR=$root {0} run quiet Second",
        env!("CARGO_BIN_EXE_gatewright")
    );
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, &script);
        let (run, ran) = stage.play();
        stage.is_named(sandbox, &run, &ran, &proof);
        assert_eq!(stage.scratch.count("quiet"), 1, "{sandbox:?}: only the one before the attack");
        assert!(stage.refused(&run).contains("this is an agent's process"), "{}", stage.refused(&run));
        stage.bystander_is_unharmed();
    }
    // The control: a program that does not ask who calls it.
    let careless = script.replace("env -i", "env -i GATEWRIGHT_WITHOUT=callers");
    let control = Stage::code(Sandbox::Off, &careless);
    let (run, ran) = control.play();
    let tried = format!("{}\n{}", ran.err, control.refused(&run));
    proof.damage(control.scratch.count("quiet") == 2, &tried);
}

#[test]
fn raw_logs_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, "");
        let (run, _) = stage.play();
        for file in ["stdout", "stderr", "launch.json", "exit.json"] {
            let path = stage.state_of(&run).join("attempts/code/1").join(file);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        }
        // Settings and variables of a definition are in its plan.
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let state = stage.state_of(&run);
        for entry in std::fs::read_dir(state.join("plans")).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        for file in ["run.json", "journal.jsonl"] {
            assert_eq!(mode(&state.join(file)), 0o600, "{file}");
        }
        assert_eq!(mode(&stage.state().join("projects")), 0o700, "whatever else is below");
    }
}
