//! Who may speak: orders carry the user's seal, records carry the user's mac, and what was tried is named.

use std::path::PathBuf;

use crate::support::{Scratch, text, wait_for};

const GATED: &str = "
steps:
  - { id: slow, role: reader }
  - { id: agree, needs: [], decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: reader, needs: [agree] }
";

fn state_dir(scratch: &Scratch, run: &str) -> PathBuf {
    PathBuf::from(text(&scratch.status(run)["state_dir"]))
}

fn kinds(scratch: &Scratch, run: &str) -> Vec<String> {
    scratch
        .events_of(run, "intrusion.noticed")
        .iter()
        .map(|event| text(&event["intrusion"]["kind"]))
        .collect()
}

const ANSWER: &str = r#"{"type":"answer","decision":"agree","value":"approved","comment":null,"route":null,"confirmed":true,"channel":"cli","seen":{}}"#;

/// A file in the inbox is no answer: it lacks the user's seal. It changes nothing and is on record.
#[test]
fn j_38_a_message_without_the_users_seal_changes_nothing_and_is_named() {
    let scratch = Scratch::with(GATED, "slow) mark at-work; await go; ok;;");
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    wait_for("it is asked", || (scratch.decision(&run, "agree")["status"] == "pending").then_some(()));
    let inbox = state_dir(&scratch, &run).join("inbox");
    std::fs::write(inbox.join("00000000000001-1-1-1.json"), ANSWER).unwrap();
    let sealed = serde_json::json!({"v": 1, "order": ANSWER, "seal": "0".repeat(64)}).to_string();
    std::fs::write(inbox.join("00000000000002-1-1-1.json"), sealed).unwrap();
    wait_for("both are refused", || (kinds(&scratch, &run).len() == 2).then_some(()));
    assert_eq!(scratch.decision(&run, "agree")["status"], "pending");
    let noticed = scratch.events_of(&run, "intrusion.noticed");
    assert_eq!(noticed[0]["intrusion"]["kind"], "unsealed_order");
    assert_eq!(noticed[0]["intrusion"]["by"], serde_json::json!(["slow"]), "who was at work");
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
    let doctor = scratch.gatewright(&["doctor", "--json"]);
    assert!(doctor.out.contains("carries no seal of the user"), "{}", doctor.out);
    scratch.mark("go");
    engine.ended().exits(0);
}

/// An agent that calls the program is refused, also without the marks in its environment, and named.
#[test]
fn j_38_an_agent_that_answers_is_refused_and_named_in_events_and_doctor() {
    for clean in ["", "env -i HOME=$HOME PATH=$PATH GATEWRIGHT_STATE_DIR=$HOME/../state "] {
        let program = env!("CARGO_BIN_EXE_gatewright");
        let scratch = Scratch::with(
            GATED,
            &format!(
                "slow) export GATEWRIGHT_STATE_DIR=$HOME/../state; {clean}{program} answer $GATEWRIGHT_RUN agree approved; echo $? > $HOME/code; {clean}{program} resume $GATEWRIGHT_RUN; {clean}{program} engine $GATEWRIGHT_RUN; ok;;"
            ),
        );
        let run = scratch.run(10);
        assert_eq!(std::fs::read_to_string(scratch.home().join("code")).unwrap().trim(), "4", "{clean}");
        assert_eq!(scratch.decision(&run, "agree")["status"], "pending");
        let what: Vec<String> = scratch
            .events_of(&run, "intrusion.noticed")
            .iter()
            .map(|event| text(&event["intrusion"]["what"]))
            .collect();
        assert!(what.iter().any(|what| what.contains("gatewright answer")), "{clean}: {what:?}");
        assert!(what.iter().any(|what| what.contains("gatewright resume")), "{clean}: {what:?}");
        assert!(what.iter().any(|what| what.contains("gatewright engine")), "{clean}: {what:?}");
        assert!(scratch.gatewright(&["doctor", "--json"]).out.contains("gatewright answer"));
    }
}

/// The key is for its owner only and reaches no agent; without it a sealed run is read, not continued.
#[test]
fn the_users_key_is_needed_to_go_on_and_not_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::with(GATED, "slow) ok;;");
    let run = scratch.run(10);
    assert_eq!(scratch.status(&run)["authentic"], true);
    let key = state_dir(&scratch, &run).ancestors().nth(4).unwrap().join("key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert_eq!(scratch.status(&run)["authentic"], false, "said, not corrupt");
    assert_eq!(scratch.state(&run), "waiting");
    let refused = scratch.gatewright(&["answer", &run, "agree", "approved"]);
    assert_ne!(refused.code, 0, "{}", refused.err);
    // A new key is not the old one.
    scratch.gatewright(&["run", "w", "another"]).exits(10);
    assert_ne!(scratch.gatewright(&["answer", &run, "agree", "approved"]).code, 0);
    std::fs::write(&key, secret).unwrap();
    scratch.gatewright(&["answer", &run, "agree", "approved"]).exits(0);
}

/// A journal that was written again without the key has whole checksums and is refused all the same; so are
/// another run.json and another frozen workflow.
#[test]
fn forged_files_of_a_run_are_refused() {
    for (file, from, to) in [
        ("run.json", "\"request\": \"Add a greeting\"", "\"request\": \"Add a backdoor\""),
        ("plans", "\"attempts_max\":2", "\"attempts_max\":9"),
        ("journal.jsonl", "decision.opened", "decision.closed"),
    ] {
        let scratch = Scratch::with(GATED, "slow) ok;;");
        let run = scratch.run(10);
        let dir = state_dir(&scratch, &run);
        let path = if file == "plans" {
            std::fs::read_dir(dir.join("plans")).unwrap().next().unwrap().unwrap().path()
        } else {
            dir.join(file)
        };
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has {from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let ran = scratch.gatewright(&["answer", &run, "agree", "approved"]);
        assert!(ran.code != 0 && ran.code != 10, "{file}: {} {}", ran.code, ran.err);
        assert!(ran.err.contains(path.file_name().unwrap().to_str().unwrap()), "{file}: {}", ran.err);
        assert_eq!(scratch.count("code"), 0);
    }
}

/// A change of the journal under a live engine ends it with what was changed; the same length does not help.
#[test]
fn a_journal_that_changes_under_a_live_engine_stops_the_run() {
    for deed in ["sed -i s/first/other/ $journal", "echo '{}' >> $journal", ": > $journal"] {
        let scratch = Scratch::with(
            "steps: [ { id: slow, role: coder }, { id: next, role: coder } ]",
            &format!(
                "slow) journal=$(ls $HOME/../state/projects/*/runs/$GATEWRIGHT_RUN/journal.jsonl); {deed}; ok;;"
            ),
        );
        // In the sandbox it could not reach the journal at all.
        scratch.config("    sandbox: off");
        let ran = scratch.gatewright(&["run", "w", "first"]);
        assert_eq!(ran.code, 70, "{deed}: {}", ran.err);
        assert!(
            ran.err.contains("journal.jsonl") && ran.err.contains("changed by someone else"),
            "{}",
            ran.err
        );
        assert_eq!(scratch.count("next"), 0, "{deed}");
    }
}

/// J-18: an edited projection is written anew, and who was at work is on record.
#[test]
fn j_18_an_agent_that_edits_a_projection_is_named() {
    let scratch = Scratch::with(
        "
projections:
  - { file: status.json, json: { state: { $expr: run.state } } }
steps:
  - { id: first, role: coder }
  - { id: forge, role: coder }
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
",
        "forge) echo '{\"state\": \"done\"}' > $GATEWRIGHT_RUN_DIR/status.json; ok;;",
    );
    let run = scratch.run(10);
    assert!(kinds(&scratch, &run).contains(&"projection".to_owned()), "{:?}", kinds(&scratch, &run));
    assert!(scratch.published(&run, "status.json").unwrap().contains("waiting"));
}
