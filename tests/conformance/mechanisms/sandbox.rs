//! The sandbox as a user sees it: what is allowed, how it is opened, where it is said that it is off.

use crate::support::Scratch;

const ONE: &str = "steps: [ { id: code, role: coder } ]";

/// A project whose user says nothing about sandboxes: only the default places.
fn by_default(agent: &str) -> Scratch {
    let scratch = Scratch::with(ONE, agent);
    std::fs::write(
        scratch.home().join(".config/gatewright/config.yaml"),
        "sandbox: { write: [\"~/prompts\", \"~/calls\"] }\n",
    )
    .unwrap();
    std::fs::write(scratch.home().join("calls"), "").unwrap();
    scratch
}

#[test]
fn the_places_of_an_agent_can_be_written_and_no_others() {
    let scratch = by_default(
        "code) for place in $PWD $GATEWRIGHT_OUT $GATEWRIGHT_RUN_DIR $TMPDIR $HOME/.cache $HOME/.cargo/registry $HOME $HOME/.cargo/bin ${TMPDIR%/*}; do \
         if echo x > $place/probe 2>/dev/null; then echo yes; else echo no; fi; done > $GATEWRIGHT_OUT/places; \
         [ -c /dev/null ] && echo x > /dev/null; echo $TMPDIR >> src/tmpdir; ok;;",
    );
    for folder in [".cache", ".cargo/registry", ".cargo/bin"] {
        std::fs::create_dir_all(scratch.home().join(folder)).unwrap();
    }
    scratch.run(0);
    let found = std::process::Command::new("find")
        .args([scratch.home().parent().unwrap().join("state").to_str().unwrap(), "-name", "places"])
        .output()
        .unwrap();
    let places = std::fs::read_to_string(String::from_utf8(found.stdout).unwrap().trim()).unwrap();
    let answers: Vec<&str> = places.lines().collect();
    assert_eq!(answers, ["yes", "yes", "yes", "yes", "yes", "yes", "no", "no", "no"]);
    let tmpdir = std::fs::read_to_string(scratch.root().join("src/tmpdir")).unwrap();
    assert!(!std::path::Path::new(tmpdir.trim()).exists(), "the temporary folder is gone: {tmpdir}");
}

#[test]
fn more_places_are_a_matter_of_configuration() {
    let script = "code) echo x > $HOME/data/probe || exit 1; ok;;";
    let scratch = by_default(script);
    std::fs::create_dir_all(scratch.home().join("data")).unwrap();
    scratch.config("    sandbox: { write: [\"~/data\"] }");
    scratch.run(0);
    let closed = by_default(script);
    std::fs::create_dir_all(closed.home().join("data")).unwrap();
    let run = closed.gatewright(&["run", "w", "x"]).id();
    assert_ne!(closed.state(&run), "done");
    let logs = closed.gatewright(&["logs", &run]);
    assert!(
        logs.out.contains("ermission denied"),
        "the agent's own words say what it was refused: {}",
        logs.out
    );
}

#[test]
fn a_sandbox_that_is_off_is_shown() {
    let scratch = by_default("code) echo x > $HOME/outside; ok;;");
    let protected = scratch.run(0);
    assert_eq!(scratch.status(&protected)["unprotected"], serde_json::json!([]));
    scratch.config("    sandbox: off");
    let run = scratch.run(0);
    assert_eq!(scratch.status(&run)["unprotected"], serde_json::json!(["sandbox: off for mine"]));
    let shown = scratch.gatewright(&["status", &run]);
    assert!(shown.out.contains("sandbox: off for mine"), "{}", shown.out);
    let doctor = scratch.gatewright(&["doctor"]);
    assert!(doctor.out.contains("the sandbox is off for mine"), "{}", doctor.out);
    assert!(doctor.out.contains("sandbox: Landlock") || doctor.out.contains("no sandbox"), "{}", doctor.out);
}

#[test]
fn the_network_can_be_switched_off() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\"");
    for (network, reached) in [("on", "yes"), ("off", "no")] {
        let agent =
            format!("code) if {connect} 2>/dev/null; then echo yes; else echo no; fi > src/reached; ok;;");
        let scratch = by_default(&agent);
        scratch.config(&format!("    sandbox: {{ network: \"{network}\" }}"));
        scratch.run(0);
        let found = std::fs::read_to_string(scratch.root().join("src/reached")).unwrap();
        assert_eq!(found.trim(), reached, "network: {network}");
    }
}

/// Decision 20: a state directory inside the tree is possible and shown as unprotected; agents and checks work there.
#[test]
fn a_state_directory_inside_the_project_works_and_is_said() {
    let scratch = Scratch::with(
        "
roles: { coder: { prompt: Build it. } }
checks: { there: { run: \"test -f made.txt\" } }
steps:
  - { id: code, role: coder, checks: [there] }
",
        "code) echo x > made.txt; ok;;",
    );
    scratch.write(".gitignore", "state/\n");
    let inside = scratch.root().join("state");
    let mut run = scratch.command(&["run", "w", "Add a greeting"]);
    run.env("GATEWRIGHT_STATE_DIR", &inside);
    scratch.start_with(run, None).ended().exits(0);
    assert!(inside.join("projects").exists(), "its state is elsewhere");
    let mut status = scratch.command(&["status", "latest"]);
    status.env("GATEWRIGHT_STATE_DIR", &inside);
    let said = scratch.start_with(status, None).ended().exits(0).out;
    assert!(said.contains("the state directory lies inside the project"), "{said}");
}

/// A plain command knows no such limits: doctor and lint say so, each for the role that has it.
#[test]
fn what_a_plain_command_cannot_be_told_is_said() {
    let sentence = |limit: &str| {
        format!(
            "role `coder` by `mine`: a plain command is not told of `{limit}`; only `agents.mine.sandbox` limits it"
        )
    };
    for (limits, told) in [
        ("", vec![]),
        (", may_run: [\"git *\"]", vec!["may_run"]),
        (", network: false", vec!["network: false"]),
        (", network: true", vec![]),
        (", may_run: [], network: false", vec!["may_run", "network: false"]),
    ] {
        let scratch = Scratch::with(&format!("roles: {{ coder: {{ prompt: p{limits} }} }}\n{ONE}"), "");
        let doctor = scratch.gatewright(&["doctor"]).out;
        let lint = scratch.gatewright(&["lint", "--json"]).out;
        let lint: serde_json::Value = serde_json::from_str(&lint).unwrap();
        for limit in ["may_run", "network: false"] {
            let said = doctor.contains(&format!("workflow `w`: {}", sentence(limit)));
            assert_eq!(said, told.contains(&limit), "{limits}: {limit}: {doctor}");
        }
        let expected: Vec<String> = told.iter().map(|limit| sentence(limit)).collect();
        assert_eq!(lint["untold"], serde_json::json!(expected), "{limits}");
    }
}

/// In one word, for all: shown as off, and as on again for the one that says so.
#[test]
fn the_sandbox_is_switched_off_for_all_by_a_word() {
    let scratch = by_default("code) echo x > $HOME/outside; ok;;");
    let everybody = scratch.home().join(".config/gatewright/config.yaml");
    let outside = scratch.home().join("outside");
    std::fs::write(&everybody, "sandbox: off\n").unwrap();
    let run = scratch.run(0);
    assert!(outside.exists(), "nobody keeps it in");
    assert_eq!(scratch.status(&run)["unprotected"], serde_json::json!(["sandbox: off for mine"]));
    let doctor = scratch.gatewright(&["doctor"]).out;
    assert!(doctor.contains("the sandbox is off for all agents and checks (`sandbox: off`)"), "{doctor}");
    std::fs::remove_file(&outside).unwrap();
    scratch.config("    sandbox: on");
    // Its own notes are kept from it as well.
    let run = scratch.gatewright(&["run", "w", "x"]).id();
    assert!(!outside.exists(), "it is kept in again");
    assert_eq!(scratch.status(&run)["unprotected"], serde_json::json!([]));
}
