//! Secrets are masked wherever they are shown: on cuts, over blocks, and whoever prints them.

use crate::support::Scratch;

const TOKEN: &str = "correct-horse-battery-staple-99";
/// Any part of it that would help somebody.
const PART: &str = "battery-staple";

/// A run of `w` with `API_TOKEN` for agents that name it, and everything that is shown of it afterwards.
fn shown(scratch: &Scratch, code: i32) -> (String, String) {
    let mut command = scratch.command(&["run", "w", "Add a greeting"]);
    command.env("API_TOKEN", TOKEN);
    let ran = scratch.start_with(command, None).ended().exits(code);
    let run = ran.id();
    let logs = scratch.gatewright(&["logs", &run]).out;
    let rest = ["events", "why", "status"].map(|word| scratch.gatewright(&[word, &run]).out).concat();
    (logs, format!("{}{}{rest}", ran.out, ran.err))
}

fn is_masked(scratch: &Scratch, code: i32) -> String {
    let (logs, rest) = shown(scratch, code);
    for text in [&logs, &rest] {
        assert!(!text.contains(PART), "{}", text.split(PART).next().unwrap_or_default());
    }
    logs
}

/// The output of a check is recorded from its end: the cut goes through the secret.
#[test]
fn a_secret_on_the_cut_of_a_checks_output_is_masked() {
    for (exit, before) in [(1, 3970), (1, 3999), (0, 380), (0, 399)] {
        let scratch = Scratch::with(
            &format!(
                "checks: {{ tests: {{ env: {{ API_TOKEN: \"{TOKEN}\" }}, run: \"sh said.sh\" }} }}\nsteps: [ {{ id: tests, check: tests }} ]"
            ),
            "",
        );
        let said =
            format!("printf %s \"$API_TOKEN\"; head -c {before} /dev/zero | tr '\\0' x; exit {exit}\n");
        scratch.write("said.sh", &said);
        is_masked(&scratch, if exit == 0 { 0 } else { 11 });
    }
}

#[test]
fn a_secret_on_the_cut_of_an_agents_output_is_masked() {
    for stream in ["1", "2"] {
        let scratch = Scratch::with(
            "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
            &format!(
                "code) {{ printf %s \"$API_TOKEN\"; head -c 1475 /dev/zero | tr '\\0' x; }} >&{stream}; exit 3;;"
            ),
        );
        scratch.config("    env: [API_TOKEN]");
        is_masked(&scratch, 11);
    }
}

/// `logs` reads in blocks: a line without end, and a key over many lines, stand over one.
#[test]
fn a_secret_over_a_block_of_the_logs_is_masked() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder } ]",
        "code) head -c 65526 /dev/zero | tr '\\0' x; printf %s \"$API_TOKEN\"; head -c 5000 /dev/zero | tr '\\0' y; echo
i=0; while [ $i -lt 2044 ]; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done
echo '-----BEGIN RSA PRIVATE KEY-----'
i=0; while [ $i -lt 40 ]; do echo MIIEsecretsecretsecretsecretsecretsecretsecretsecretsecret; i=$((i+1)); done
echo '-----END RSA PRIVATE KEY-----'; echo after it; ok;;",
    );
    scratch.config("    env: [API_TOKEN]");
    let logs = is_masked(&scratch, 0);
    assert!(!logs.contains("MIIEsecret"), "a part of the key is shown");
    assert!(logs.contains("x[masked]y") && logs.contains("[masked]\nafter it"), "the rest is shown");
    assert!(logs.len() > 135_000, "{}", logs.len());
}

/// One agent was given it and wrote it into the tree; a check and another agent read it out.
#[test]
fn a_value_that_one_agent_was_given_is_masked_whoever_prints_it() {
    let scratch = Scratch::with(
        "
roles: { coder: { prompt: p }, other: { prompt: p, agent: other } }
checks: { tests: { run: \"cat src/t\" } }
steps: [ { id: code, role: coder, checks: [tests] }, { id: two, role: other } ]
",
        "code) echo $CHOSEN > src/t; ok;;\ntwo) cat src/t; brief DONE none \"It says $(cat src/t).\";;",
    );
    let script = scratch.root().parent().unwrap().join("agent.sh");
    scratch.config(&format!("    env: [CHOSEN]\n  other:\n    command: [sh, \"{}\"]", script.display()));
    let mut command = scratch.command(&["run", "w", "Add a greeting"]);
    command.env("CHOSEN", TOKEN);
    let run = scratch.start_with(command, None).ended().exits(0).id();
    for word in ["logs", "events", "why", "status"] {
        let ran = scratch.gatewright(&[word, &run]);
        assert!(!ran.out.contains(PART), "{word}: {}", ran.out);
    }
    assert_eq!(scratch.gatewright(&["logs", &run]).out.matches("[masked]").count(), 3);
}
