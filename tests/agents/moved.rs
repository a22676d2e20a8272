//! Users who have put an agent's own folder elsewhere, in the sandbox as it is by default: it works, and its conversations
//! go on.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    ground::Ground,
    rules::{DONE, rule, say},
};

/// A reply that has to be mended in the same conversation, by an agent with these variables. `home`: where its settings
/// are moved to from.
fn works_elsewhere(agent: &str, variable: &str, home: &str, below: &str) {
    let rules =
        |_: &Path| json!([rule("cannot be used yet", say(DONE)), rule("STEP-MOVED", say("I am done."))]);
    let ground = Ground::new(agent, rules);
    let elsewhere = ground.scratch.home().join("elsewhere");
    let folder = elsewhere.join(below);
    let usual = ground.scratch.home().join(home);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    if usual.exists() {
        fs::rename(&usual, &folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    let before = fs::read_dir(&folder).unwrap().count();
    let workflow = "workflow: w\nroles: { worker: { prompt: You work. } }\nsteps:\n- { id: moved, role: worker, prompt: STEP-MOVED, retry: { attempts_max: 1 } }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    // Gatewright's own state is below one of them: that is told to the agent only.
    if variable == "XDG_STATE_HOME" {
        let set = json!({"set": {variable: elsewhere}});
        ground.configure(&format!("{agent}: {{}}"), &format!("{agent}: {set}"));
    }
    let inherited = [(variable, elsewhere.to_str().unwrap())];
    let inherited = if variable == "XDG_STATE_HOME" { &inherited[..0] } else { &inherited[..] };
    let run = ground.run_with(&["run", "w", "Go"], inherited).exits(0, &ground).id();
    let report = &ground.reports(&run, "moved")[0];
    assert_eq!(report["repairs"], 1, "{report:#}");
    assert!(report["remarks"].is_null(), "its conversation was lost: {report:#}");
    // Of its state nothing has to stay.
    let kept = fs::read_dir(&folder).unwrap().count() > before;
    assert!(kept || variable == "XDG_STATE_HOME", "it kept nothing in {}", folder.display());
    assert!(!usual.exists(), "it was at its usual place");
}

#[test]
fn codex_works_where_its_home_is_elsewhere() {
    works_elsewhere("codex", "CODEX_HOME", ".codex", "");
}

#[test]
fn claude_keeps_its_conversations_where_its_folder_is_elsewhere() {
    works_elsewhere("claude", "CLAUDE_CONFIG_DIR", ".claude", "");
}

#[test]
fn gemini_works_where_its_home_is_elsewhere() {
    works_elsewhere("gemini", "GEMINI_CLI_HOME", ".gemini", ".gemini");
}

#[test]
fn opencode_works_where_its_state_is_elsewhere() {
    works_elsewhere("opencode", "XDG_STATE_HOME", ".local/state/opencode", "opencode");
}

#[test]
fn opencode_works_where_its_data_are_elsewhere() {
    works_elsewhere("opencode", "XDG_DATA_HOME", ".local/share/opencode", "opencode");
}

#[test]
fn qwen_works_where_its_home_is_elsewhere() {
    works_elsewhere("qwen", "QWEN_HOME", ".qwen", "");
}

#[test]
fn pi_works_where_its_folder_is_elsewhere() {
    works_elsewhere("pi", "PI_CODING_AGENT_DIR", ".pi/agent", "");
}
