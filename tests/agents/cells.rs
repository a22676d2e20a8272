//! The table agent × scenario, filled by tests that passed.

use std::{fs, io::Write, path::PathBuf};

/// The last two over the Agent Client Protocol.
pub const AGENTS: [&str; 8] =
    ["claude", "codex", "gemini", "opencode", "qwen", "pi", "claude-acp", "opencode-acp"];

/// Rows of the table, in its order.
pub const SCENARIOS: [(&str, &str); 24] = [
    ("run", "a whole `quick` run"),
    ("repair", "malformed reply mended in its conversation"),
    ("fix", "failed review fixed in the same conversation"),
    ("rounds", "fix rounds: resumed, after `resume_rounds` a fresh conversation"),
    ("read-only", "read-only reviewer that tries to write"),
    ("denied", "denied tool"),
    ("usage", "tokens; cost"),
    ("watch", "what it does, in `events --agents` and the live tree"),
    ("401", "refused key: blocked, not tried again"),
    ("400", "refused request, context that is full: blocked, not tried again"),
    ("unreached", "provider that is not there"),
    ("429", "provider's limit, over soon"),
    ("reset", "provider's limit with its time: ended, the run pauses and names it"),
    ("500", "failing provider that recovers"),
    ("drop", "dropped stream"),
    ("hang", "silence: idle timeout, then resumed"),
    ("killed", "engine killed, result collected once"),
    ("cancel", "cancelled with a tool running, nothing left"),
    ("quiet", "talks to nobody but its provider"),
    ("mcp", "report rejected once by our tools, then accepted"),
    ("schema", "JSON reply against its schema refused, then accepted"),
    ("doctor", "`doctor`: version, flags"),
    ("probe", "`doctor --probe`"),
    ("answer", "a question ends its attempt, the answer goes in by resuming"),
];

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/agents")
}

/// Something was shown.
pub fn shown(agent: &str, scenario: &str, how: &str) {
    assert!(SCENARIOS.iter().any(|(name, _)| *name == scenario), "{scenario} is not in the table");
    fs::create_dir_all(folder()).unwrap();
    let path = folder().join(format!("{agent}.tsv"));
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{scenario}\t{how}\n").as_bytes()).unwrap();
}
