//! The scripted model, as a process beside the test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::support::wait_for;

pub struct FakeModel {
    child: Child,
    pub port: u16,
    log: PathBuf,
}

impl FakeModel {
    pub fn start(dir: &Path, rules: &Value) -> FakeModel {
        fs::create_dir_all(dir).unwrap();
        let (script, port, log) = (dir.join("rules.json"), dir.join("port"), dir.join("log.jsonl"));
        fs::write(&script, rules.to_string()).unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/fake_model.py");
        let child = Command::new("python3")
            .arg(program)
            .args([Path::new("--script"), &script, Path::new("--port-file"), &port, Path::new("--log"), &log])
            .args(std::env::var_os("FAKE_DUMP").map(|_| format!("--dump={}", dir.join("dump").display())))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let number = wait_for("the port of the scripted model", || fs::read_to_string(&port).ok());
        FakeModel { child, port: number.trim().parse().unwrap(), log }
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Requests whose last user text has this.
    pub fn asked(&self, text: &str) -> Vec<Value> {
        let has = |one: &Value| one["user"].as_str().is_some_and(|user| user.contains(text));
        self.log().into_iter().filter(has).collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
