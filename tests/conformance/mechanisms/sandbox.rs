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

/// A user who has put an agent's own folder elsewhere has it written there, and not at its usual place.
#[test]
fn a_folder_of_an_agent_that_a_variable_moved_can_be_written() {
    const HOUSE: &str = r#"
for place in "${CODEX_HOME:-/nowhere}" $HOME/.codex; do
  if echo x > $place/probe 2>/dev/null; then echo yes; else echo no; fi
done > src/places
printf '{"type":"thread.started","thread_id":"t"}\n{"type":"item.completed","item":{"type":"agent_message","text":"STATUS: DONE\\nFILE: none\\nSUMMARY: fine\\nNEXT_INPUT: none"}}\n{"type":"turn.completed"}\n'
"#;
    let scratch = by_default("");
    scratch.write("house.sh", HOUSE);
    let (usual, moved) = (scratch.home().join(".codex"), scratch.home().join("elsewhere"));
    std::fs::create_dir_all(&usual).unwrap();
    let wide = scratch.home().to_str().unwrap().to_owned();
    let own = moved.to_str().unwrap().to_owned();
    for (inherited, set, places) in [
        (None, "", "no\nyes\n"),
        (Some(&own), "", "yes\nno\n"),
        (None, &*format!(", set: {{ CODEX_HOME: \"{own}\" }}"), "yes\nno\n"),
        // The home directory itself is more than a folder of an agent.
        (Some(&wide), "", "no\nyes\n"),
    ] {
        let agent =
            format!("agent: codex\nagents:\n  codex: {{ adapter: codex, command: [sh, house.sh]{set} }}\n");
        scratch.write(".gatewright/config.yaml", &agent);
        let mut run = scratch.command(&["run", "w", "x"]);
        run.envs(inherited.map(|value| ("CODEX_HOME", value)));
        scratch.start_with(run, None).ended().exits(0);
        let found = std::fs::read_to_string(scratch.root().join("src/places")).unwrap();
        assert_eq!(found, places, "{inherited:?} {set}");
    }
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

/// A role that has to stay off the network does, whatever the command that plays it thinks of that.
#[test]
fn a_plain_command_is_kept_off_the_network_by_its_role() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let connect = format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\"");
    for (network, reached) in [("", "yes"), (", network: false", "no")] {
        let agent =
            format!("code) if {connect} 2>/dev/null; then echo yes; else echo no; fi > src/reached; ok;;");
        let scratch = by_default(&agent);
        scratch.workflow("w", &format!("roles: {{ coder: {{ prompt: p{network} }} }}\n{ONE}"));
        scratch.run(0);
        let found = std::fs::read_to_string(scratch.root().join("src/reached")).unwrap();
        assert_eq!(found.trim(), reached, "{network}");
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
    let commands = "a plain command is not told of `may_run`; only `agents.mine.sandbox` limits it";
    let kept = "`network: false` is kept by the sandbox: no TCP connection at all, not even to the provider of a model";
    let open = "`network: false` is not kept: `agents.mine.sandbox` is off";
    for (limits, sandbox, told) in [
        ("", "", vec![]),
        (", may_run: [\"git *\"]", "", vec![commands]),
        (", network: false", "", vec![kept]),
        (", network: false", "    sandbox: off", vec![open]),
        (", network: true", "", vec![]),
        (", may_run: [], network: false", "", vec![kept, commands]),
    ] {
        let scratch = Scratch::with(&format!("roles: {{ coder: {{ prompt: p{limits} }} }}\n{ONE}"), "");
        scratch.config(sandbox);
        let doctor = scratch.gatewright(&["doctor"]).out;
        let lint = scratch.gatewright(&["lint", "--json"]).out;
        let lint: serde_json::Value = serde_json::from_str(&lint).unwrap();
        for limit in [commands, kept, open] {
            let said = doctor.contains(&format!("workflow `w`: role `coder` by `mine`: {limit}"));
            assert_eq!(said, told.contains(&limit), "{limits}: {limit}: {doctor}");
        }
        let expected: Vec<String> =
            told.iter().map(|limit| format!("role `coder` by `mine`: {limit}")).collect();
        assert_eq!(lint["untold"], serde_json::json!(expected), "{limits}");
    }
}

/// A model that would not reach the agent is said by lint and doctor, whether the step or its role names it.
#[test]
fn a_model_that_an_agent_is_not_told_is_said() {
    let none = "its command has no `{model}`";
    let tier = "means nothing to it; set `agents.mine.models.strong`";
    let empty = "`{model}` of its command is empty";
    let place = "    args: [\"{model}\"]";
    for (role, step, config, said) in [
        ("", "", "", None),
        ("", "model: big", "", Some(none)),
        ("model: big", "", "", Some(none)),
        ("", "model: strong", "", Some(tier)),
        ("", "model: strong", place, Some(tier)),
        ("model: fast", "model: strong", "    args: [\"{model}\"]\n    models: { fast: f }", Some(tier)),
        ("", "model: big", place, None),
        ("", "model: strong", "    args: [\"{model}\"]\n    models: { strong: big }", None),
        ("", "", place, Some(empty)),
        ("", "", "    args: [\"{model}\"]\n    models: { default: big }", None),
        ("", "", "    fallback: [strong]", Some("`strong` of `fallback` means nothing to it")),
    ] {
        let scratch = Scratch::with(
            &format!(
                "roles: {{ coder: {{ prompt: p, {role} }} }}\nsteps: [ {{ id: code, role: coder, {step} }} ]"
            ),
            "",
        );
        scratch.config(config);
        let lint: serde_json::Value =
            serde_json::from_str(&scratch.gatewright(&["lint", "--json"]).out).unwrap();
        let told = lint["untold"].as_array().unwrap().clone();
        assert_eq!(told.len(), usize::from(said.is_some()), "{role} {step} {config}: {told:?}");
        if let Some(said) = said {
            assert!(told[0].as_str().unwrap().contains(said), "{told:?}");
            assert!(scratch.gatewright(&["doctor"]).out.contains(said), "{said}");
        }
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
