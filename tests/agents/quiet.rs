//! Whom an agent talks to besides its provider: everything that is not this machine goes through a proxy that takes note.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::json;

use crate::{
    cells::shown,
    ground::Ground,
    rules::{DONE, rule, say},
};

/// Installs what its plugins need at its first start.
const INSTALLS: [&str; 2] = ["opencode", "opencode-acp"];

pub fn quiet(agent: &str) {
    let heard = talks_to(agent, &[]);
    let registry = |line: &&String| INSTALLS.contains(&agent) && line.contains("registry.npmjs.org");
    let others: Vec<&String> = heard.iter().filter(|line| !registry(line)).collect();
    assert!(others.is_empty(), "{agent} talks to others than its provider: {others:#?}");
    shown(agent, "quiet", if others.len() == heard.len() { "✓" } else { "✓ but the npm registry" });
}

/// What would be seen of agents that are not told to be quiet.
#[test]
fn without_our_settings_they_talk_to_others() {
    let nowhere = "/nonexistent/settings.json";
    for (agent, loud) in [
        ("claude", &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", ""), ("DISABLE_AUTOUPDATER", "")][..]),
        ("gemini", &[("GEMINI_CLI_SYSTEM_SETTINGS_PATH", nowhere)]),
        ("qwen", &[("QWEN_CODE_SYSTEM_SETTINGS_PATH", nowhere)]),
    ] {
        assert!(!talks_to(agent, loud).is_empty(), "{agent}: the proxy sees nothing");
    }
}

/// The first lines that the proxy was sent while an agent did one thing.
fn talks_to(agent: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = heard.clone();
    std::thread::spawn(move || {
        for stream in proxy.incoming().flatten() {
            let mut line = String::new();
            // Whoever says nothing has talked to somebody all the same.
            let _ = BufReader::new(stream).read_line(&mut line);
            noted.lock().unwrap().push(line.trim().to_owned());
        }
    });
    let ground = Ground::new(agent, |_: &Path| json!([rule("STEP-QUIET", say(DONE))]));
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        ground.set(agent, &format!("/set/{name}"), json!(address));
    }
    for (name, value) in [("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1"), ("NODE_USE_ENV_PROXY", "1")] {
        ground.set(agent, &format!("/set/{name}"), json!(value));
    }
    for (name, value) in variables {
        ground.set(agent, &format!("/set/{name}"), json!(value));
    }
    let workflow = "workflow: w\nroles: { worker: { prompt: You work. } }\nsteps:\n- { id: one, role: worker, prompt: STEP-QUIET }\n";
    ground.scratch.write(".gatewright/workflows/w.yaml", workflow);
    ground.run(&["run", "w", "Go"]).exits(0, &ground);
    heard.lock().unwrap().clone()
}
