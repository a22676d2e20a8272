//! Breaks one line of a method and runs the test that must notice it. Methods are data: a patched copy is put
//! into the scratch project of the test, so nothing is built anew.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, atomic::AtomicUsize, atomic::Ordering},
};

use super::ledger::{Patch, patches, root};

/// Tried at the same time.
const AT_ONCE: usize = 2;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Whether a test passes with the methods as they are below this folder.
fn passes(test: &str, methods: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test]).env("GATEWRIGHT_TEST_METHODS", methods).env("RUST_BACKTRACE", "0");
    let output = child.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "there is no test {test}: {said}");
    output.status.success()
}

/// What is wrong with a patch; `None` if its test turns red and is green without it.
fn fault(patch: &Patch) -> Option<String> {
    let Patch { rule, file, old, new, test } = patch;
    let folder = tempfile::TempDir::with_prefix("gw-patch-").unwrap();
    copy(&root().join("methods"), &folder.path().join("methods"));
    let methods = folder.path().join("methods");
    if !passes(test, &methods) {
        return Some(format!("{rule}: {test} is red without any patch"));
    }
    let path = folder.path().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen(old.as_str(), new, 1)).unwrap();
    passes(test, &methods).then(|| format!("{rule}: {test} is green with `{new}` for `{old}` in {file}"))
}

/// `PATCHES=all` tries every one, `PATCHES=12` so many, spread over the list; `PATCHES=S0-18,S4-15` those of these rules.
#[test]
#[ignore = "it runs other tests; ./test patches"]
fn patched_methods_turn_their_tests_red() {
    let wanted = std::env::var("PATCHES").unwrap_or_else(|_| "6".to_owned());
    let all = patches();
    let chosen: Vec<&Patch> = match wanted.parse::<usize>() {
        Ok(count) => {
            let step = all.len().div_ceil(count.max(1));
            all.iter().step_by(step.max(1)).collect()
        }
        Err(_) if wanted == "all" => all.iter().collect(),
        Err(_) => {
            let named = |patch: &&Patch| wanted.split(',').any(|rule| patch.rule == rule);
            all.iter().filter(named).collect()
        }
    };
    assert!(!chosen.is_empty(), "no patch for `{wanted}`");
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(patch) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
                    match fault(patch) {
                        Some(fault) => {
                            println!("NOT  {fault}");
                            faults.lock().unwrap().push(fault);
                        }
                        None => println!("red  {} {}", patch.rule, patch.test),
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
    println!("{} patches, each turned its test red", chosen.len());
}
