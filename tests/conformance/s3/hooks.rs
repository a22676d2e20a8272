//! Hooks in the settings of agents' programs: entered and taken out without touching what is the user's.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::cycle::Cycle;
use crate::support::Scratch;

const CLAUDE: &str = ".claude/settings.json";

fn read(scratch: &Scratch, file: &str) -> String {
    std::fs::read_to_string(scratch.root().join(file)).unwrap()
}

fn set_up(scratch: &Scratch, harness: &str, more: &[&str], code: i32) -> String {
    let mut words = vec!["init", "--hooks", harness];
    words.extend(more);
    scratch.gatewright(&words).exits(code).err
}

#[test]
fn s2_40_hooks_come_and_go_and_leave_the_rest_of_the_file_as_it_was() {
    let scratch = Scratch::new();
    // Four spaces, an order of its own, empty lists, a hook beside ours in one group.
    let own = "{\n    \"zeta\": 1,\n    \"alpha\": {\n        \"b\": [],\n        \"a\": null\n    },\n    \"hooks\": {\n        \"Stop\": [],\n        \"SessionStart\": [\n            {\n                \"matcher\": \"startup\",\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": \"mine\"\n                    }\n                ]\n            }\n        ]\n    }\n}\n";
    scratch.write(CLAUDE, own);
    set_up(&scratch, "claude", &[], 0);
    let with = read(&scratch, CLAUDE);
    assert!(with.starts_with("{\n    \"zeta\": 1,\n    \"alpha\""), "{with}");
    set_up(&scratch, "claude", &[], 0);
    assert_eq!(read(&scratch, CLAUDE), with, "twice is once");
    // Somebody put one of theirs beside ours.
    let mut beside: Value = serde_json::from_str(&with).unwrap();
    beside["hooks"]["PreCompact"][0]["hooks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "command", "command": "theirs"}));
    scratch.write(CLAUDE, &serde_json::to_string_pretty(&beside).unwrap());
    set_up(&scratch, "claude", &["--remove"], 0);
    let left: Value = serde_json::from_str(&read(&scratch, CLAUDE)).unwrap();
    assert_eq!(left["hooks"]["PreCompact"][0]["hooks"], json!([{"type": "command", "command": "theirs"}]));
    scratch.write(CLAUDE, &with);
    set_up(&scratch, "claude", &["--remove"], 0);
    assert_eq!(read(&scratch, CLAUDE), own);
    // Where there was nothing, nothing is left.
    set_up(&scratch, "codex", &[], 0);
    set_up(&scratch, "codex", &["--remove"], 0);
    assert!(!scratch.root().join(".codex/hooks.json").exists());
    set_up(&scratch, "copilot", &[], 0);
    let copilot: Value = serde_json::from_str(&read(&scratch, ".github/hooks/gatewright.json")).unwrap();
    let hook = &copilot["hooks"]["sessionStart"][0];
    assert_eq!(
        (&hook["type"], &hook["bash"]),
        (&json!("command"), &json!("gatewright hook session-start --for copilot"))
    );
    set_up(&scratch, "copilot", &["--remove"], 0);
    assert!(!scratch.root().join(".github/hooks/gatewright.json").exists());
}

#[test]
fn s2_40_settings_in_which_there_is_no_room_are_refused_and_kept() {
    let scratch = Scratch::new();
    for (text, said) in [
        ("{ // mine\n  \"model\": \"x\" }", "is no JSON"),
        ("{\"model\": ", "is no JSON"),
        ("[1]", "is no JSON object"),
        ("{\"hooks\": [1]}", "`hooks` is no object"),
        ("{\"hooks\": \"off\"}", "`hooks` is no object"),
        ("{\"hooks\": {\"SessionStart\": {\"mine\": 1}}}", "`hooks.SessionStart` is no list"),
    ] {
        scratch.write(CLAUDE, text);
        for more in [&[][..], &["--remove"], &["--dry-run"]] {
            let err = set_up(&scratch, "claude", more, 3);
            assert!(
                err.contains(said)
                    && err.contains("left alone")
                    && err.contains("gatewright hook session-start"),
                "{text}: {err}"
            );
            assert_eq!(read(&scratch, CLAUDE), text);
        }
    }
    // An empty file is nobody's settings.
    scratch.write(CLAUDE, "\n");
    set_up(&scratch, "claude", &[], 0);
}

#[test]
fn s2_40_a_link_and_its_rights_stay() {
    let scratch = Scratch::new();
    let real = scratch.home().join("settings.json");
    std::fs::write(&real, "{\"model\": \"x\"}").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir_all(scratch.root().join(".claude")).unwrap();
    std::os::unix::fs::symlink(&real, scratch.root().join(CLAUDE)).unwrap();
    set_up(&scratch, "claude", &[], 0);
    assert!(scratch.root().join(CLAUDE).symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("gatewright hook"));
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
}

/// What the hook prints, on both channels.
fn hook(scratch: &Scratch, event: &str, input: &str, env: &[(&str, &str)]) -> (String, String) {
    let mut command = scratch.command(&["hook", event]);
    command.envs(env.iter().copied());
    let ran = scratch.start_with(command, Some(input)).ended().exits(0);
    (ran.out, ran.err)
}

const CLAUDE_START: &str = r#"{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}"#;

#[test]
fn s2_27_a_hook_says_nothing_where_there_is_nothing_to_say() {
    let silent = (String::new(), String::new());
    let idle = Scratch::new();
    for event in ["session-start", "pre-compact"] {
        for input in [CLAUDE_START, "", "nonsense", "[]", "{\"cwd\": \"/nowhere/at/all\"}"] {
            assert_eq!(hook(&idle, event, input, &[]), silent, "{event} {input}");
        }
    }
    // A broken configuration is for those who run something.
    idle.write(".gatewright/config.yaml", "agnet: x\n");
    assert_eq!(hook(&idle, "session-start", CLAUDE_START, &[]), silent);
    // Outside of any repository.
    let outside = format!(
        "{{\"hook_event_name\": \"SessionStart\", \"session_id\": \"s\", \"cwd\": \"{}\"}}",
        idle.home().display()
    );
    assert_eq!(hook(&idle, "session-start", &outside, &[]), silent);
}

#[test]
fn s3_36_the_session_of_an_attempt_is_not_told_about_runs_and_before_compaction_of_its_own() {
    let cycle = Cycle::starts("", &[], 10);
    let other = Cycle::of(cycle.scratch, "stream-dag", &[], 10);
    let inside = [("GATEWRIGHT_RUN", cycle.run.as_str()), ("GATEWRIGHT_STEP", "tpm")];
    assert_eq!(hook(&other.scratch, "session-start", CLAUDE_START, &inside).0, "");
    let told = hook(
        &other.scratch,
        "pre-compact",
        r#"{"hook_event_name": "PreCompact", "session_id": "s"}"#,
        &inside,
    )
    .0;
    assert!(told.contains(&cycle.run) && !told.contains(&format!("Run {} ", other.run)), "{told}");
    // With a broken configuration a run under way is told all the same.
    let config =
        std::fs::read_to_string(other.scratch.root().join(".gatewright/config.yaml")).unwrap_or_default();
    other.scratch.write(".gatewright/config.yaml", &format!("{config}\nagnet: x\n"));
    assert!(hook(&other.scratch, "session-start", CLAUDE_START, &[]).0.contains(&other.run));
}
