//! `gatewright demo` with the real program: it keeps its promises and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene up has failed")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The program under a name of its own: a build beside the test must not pull it from under a run.
fn program(temp: &Path) -> PathBuf {
    let path = temp.join("gatewright");
    let built = env!("CARGO_BIN_EXE_gatewright");
    if !path.exists() && std::fs::hard_link(built, &path).is_err() {
        std::fs::copy(built, &path).unwrap();
    }
    path
}

fn demo(temp: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let home = temp.join("home");
    let scratch = temp.join("scratch");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&scratch).unwrap();
    let output = Command::new(program(temp))
        .arg("demo")
        .args(arguments)
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &scratch)
        .env("GATEWRIGHT_STATE_DIR", temp.join("state-of-the-user"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn entries(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Processes that work below a folder, by their command lines and working directories.
fn processes_below(dir: &Path) -> Vec<String> {
    let dir = dir.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if line.contains(&dir) || cwd.to_string_lossy().starts_with(&dir) {
            found.push(line);
        }
    }
    found
}

#[test]
fn the_demo_keeps_its_promises_and_leaves_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let (code, out, err) = demo(temp.path(), &["--fast"]);
    assert_eq!(code, Some(0), "{out}\n{err}");
    let mut rest = out.as_str();
    for part in [
        "1. A repository",
        "got \"Hello, world!\"",
        "$ gatewright run ship 'Greet people by name'",
        "? approve-plan: Build it this way?",
        "`approve-plan` waits for a person",
        "may be a condition",
        "✓ plan passed: The same plan on one page.",
        "✓ docs passed",
        "$ kill -9 ",
        "interrupted",
        "$ gatewright resume latest",
        "✓ code passed: greet.sh says the name.",
        "review: round 1: revise",
        "✓ code passed: Without a name it greets the world.",
        "■ release is blocked (gate)",
        "$ gatewright why latest release",
        "✓ the release did not start.",
        "✓ docs passed: docs/usage.md says that the name may be left out.",
        "✓ code passed: Nothing left to do.",
        "✓ release passed",
        "The run is done.",
        "1 test passed",
        "Hello, Ada!",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not in the rest of:\n{out}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(entries(&temp.path().join("scratch")), Vec::<String>::new(), "no folder is left");
    assert_eq!(entries(&temp.path().join("home")), Vec::<String>::new(), "nothing in the user's home");
    assert!(!temp.path().join("state-of-the-user").exists(), "nothing in the user's state");
    assert_eq!(processes_below(temp.path()), Vec::<String>::new(), "no process is left");
}

#[test]
fn kept_scenery_can_be_looked_at() {
    let temp = tempfile::tempdir().unwrap();
    let (code, out, err) = demo(temp.path(), &["--fast", "--keep"]);
    assert_eq!(code, Some(0), "{out}\n{err}");
    let scratch = temp.path().join("scratch");
    let [folder] = entries(&scratch).try_into().unwrap_or_else(|found| panic!("one folder, not {found:?}"));
    let repository = scratch.join(folder).join("greeter");
    assert!(out.contains(&repository.canonicalize().unwrap().display().to_string()), "{out}");
    let status = Command::new(program(temp.path()))
        .args(["status", "latest"])
        .current_dir(&repository)
        .env("HOME", temp.path().join("home"))
        .env("GATEWRIGHT_STATE_DIR", repository.with_file_name("state"))
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stdout));
    assert_eq!(processes_below(temp.path()), Vec::<String>::new(), "no process is left");
}
