//! A kernel without Landlock: runs work, everybody is told, and what the sandbox would prevent is detected. That the
//! attacks on files are, each of them shows itself (`on_a_file`).

use crate::stage::{Sandbox, Stage, case, reads};

const ONE: &str = "
checks: { there: { run: \"test -f src/new\" } }
steps: [ { id: code, role: coder, checks: [there] } ]
";

#[test]
fn a_kernel_without_a_sandbox_runs_everything_and_says_so() {
    let script = case("code", "echo x > src/new; echo x > $HOME/outside");
    for (sandbox, expected) in [
        (Sandbox::On, serde_json::json!([])),
        (Sandbox::Nowhere, serde_json::json!(["no sandbox here: it was taken away by a test"])),
        (Sandbox::Off, serde_json::json!(["sandbox: off for mine"])),
    ] {
        let stage = Stage::new(sandbox, ONE, &script);
        let (run, ran) = stage.play();
        ran.exits(0);
        let is_outside = reads(&stage.scratch.home().join("outside")) == "x\n";
        assert_eq!(is_outside, !sandbox.holds(), "{sandbox:?}: the kernel keeps it in, or nobody does");
        let status = stage.gatewright(&["status", &run, "--json"]).out;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["unprotected"], expected, "{sandbox:?}");
        let doctor = stage.gatewright(&["doctor"]).out;
        let says_none =
            doctor.contains("no sandbox: it was taken away by a test; what agents write elsewhere");
        assert_eq!(says_none, sandbox == Sandbox::Nowhere, "{sandbox:?}: {doctor}");
    }
    let stage = Stage::new(Sandbox::Nowhere, ONE, &script);
    let (run, _) = stage.play();
    let shown = stage.gatewright(&["status", &run]).out;
    assert!(shown.contains("no sandbox here"), "{shown}");
}

/// Codex is told to leave its own sandbox only where it is in ours: a kernel without one leaves it that of codex.
#[test]
fn codex_keeps_its_own_sandbox_where_there_is_none_of_ours() {
    for (sandbox, mode) in [
        (Sandbox::On, "danger-full-access"),
        (Sandbox::Nowhere, "workspace-write"),
        (Sandbox::Off, "workspace-write"),
    ] {
        let stage =
            Stage::new(sandbox, "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]", "");
        // A program in its place: how it is started is what counts.
        let fake = stage.scratch.home().join("codex");
        std::fs::write(&fake, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let config = format!(
            "agent: codex\nagents: {{ codex: {{ adapter: codex, command: [\"{}\"] }} }}\n",
            fake.display()
        );
        stage.scratch.write(".gatewright/config.yaml", &config);
        let (run, ran) = stage.play();
        let order = reads(&stage.state_of(&run).join("attempts/code/1/launch.json"));
        let order: serde_json::Value = serde_json::from_str(&order).unwrap_or_else(|_| panic!("{}", ran.err));
        let words: Vec<&str> =
            order["argv"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        let at = words.iter().position(|word| *word == "-s").unwrap();
        assert_eq!(words[at + 1], mode, "{sandbox:?}: {words:?}");
    }
}
