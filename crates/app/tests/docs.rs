//! The documents tell the truth: every console block is run, every file they show is written first.
//!
//! In a document, `<!-- file: PATH -->` before a code block writes that block. In a `console` block
//! a line `$ command` is run (`# exits N` behind it names its exit code) and the lines after it are
//! what stdout must hold, with `…` for anything in a line and `...` for any lines. `DOCS=agents.md`
//! runs the documents of that name only.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch { dir: tempfile::tempdir().unwrap() };
        for folder in ["home", "state", "repository", "bin"] {
            fs::create_dir(scratch.dir.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_gatewright"),
            scratch.dir.path().join("bin/gatewright"),
        )
        .unwrap();
        // Whoever types what is shown has told git who they are.
        scratch.shell("git init -q . && git config user.name A && git config user.email a@example.org && git commit -q --allow-empty -m start");
        scratch
    }

    fn repository(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    fn shell(&self, line: &str) -> (i32, String, String) {
        let path = format!("{}:{}", self.dir.path().join("bin").display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.repository())
            .env("HOME", self.dir.path().join("home"))
            .env("GATEWRIGHT_STATE_DIR", self.dir.path().join("state"))
            .env("PATH", path)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

/// A code block: its language, the file it is to be written to, its lines, the line it starts at.
struct Block {
    language: String,
    file: Option<String>,
    lines: Vec<String>,
    at: usize,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    let mut file = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            if !open {
                found.push(Block {
                    language: language.trim().to_owned(),
                    file: file.take(),
                    lines: Vec::new(),
                    at: number + 1,
                });
            }
            open = !open;
        } else if open {
            found.last_mut().unwrap().lines.push(line.to_owned());
        } else if let Some(path) = line.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"))
        {
            file = Some(path.to_owned());
        }
    }
    found
}

fn fits(expected: &[String], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if any.trim() == "..." => (0..=found.len()).any(|skip| fits(rest, &found[skip..])),
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, others)| line_fits(line, first) && fits(rest, others))
        }
    }
}

fn line_fits(expected: &str, found: &str) -> bool {
    let mut rest = found.trim_end();
    let parts: Vec<&str> = expected.trim_end().split('…').collect();
    for (place, part) in parts.iter().enumerate() {
        let Some(at) = rest.find(part) else { return false };
        if place == 0 && at != 0 {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || expected.trim_end().ends_with('…')
}

fn run_block(scratch: &Scratch, document: &Path, block: &Block) {
    let mut lines = block.lines.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            panic!("{}:{}: `{line}` belongs to no command", document.display(), block.at)
        };
        let mut expected = Vec::new();
        while let Some(more) = lines.next_if(|more| !more.starts_with("$ ")) {
            expected.push(more.clone());
        }
        let (command, code) = command
            .split_once("# exits ")
            .map_or((command, 0), |(command, code)| (command, code.trim().parse().unwrap()));
        let (exit, stdout, stderr) = scratch.shell(command);
        let place = format!("{}:{}: $ {command}", document.display(), block.at);
        assert_eq!(exit, code, "{place}\n{stdout}\n{stderr}");
        let found: Vec<&str> = stdout.lines().collect();
        assert!(
            expected.is_empty() || fits(&expected, &found),
            "{place}\nexpected:\n{}\nfound:\n{stdout}\n{stderr}",
            expected.join("\n")
        );
    }
}

/// Writes the files and runs the console blocks of one document, in order; how many commands there were.
fn run_document(document: &Path) -> usize {
    let scratch = Scratch::new();
    let mut commands = 0;
    for block in blocks(&fs::read_to_string(document).unwrap()) {
        if let Some(file) = &block.file {
            let path = scratch.repository().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, block.lines.join("\n") + "\n").unwrap();
        } else if block.language == "console" {
            commands += block.lines.iter().filter(|line| line.starts_with("$ ")).count();
            run_block(&scratch, document, &block);
        }
    }
    commands
}

#[test]
fn every_console_block_of_the_documents_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut documents = vec![root.join("README.md")];
    for folder in ["docs", "methods"] {
        let mut folders = vec![root.join(folder)];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "md")
                    && !path.components().any(|part| part.as_os_str() == "roles")
                {
                    documents.push(path);
                }
            }
        }
    }
    let wanted = std::env::var("DOCS").ok();
    documents.retain(|document| wanted.as_ref().is_none_or(|wanted| document.ends_with(wanted)));
    // Each document has a scratch repository of its own, so they do not wait for each other.
    let commands: usize = std::thread::scope(|scope| {
        let running: Vec<_> =
            documents.iter().map(|document| scope.spawn(|| run_document(document))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    });
    let least = if wanted.is_some() { 1 } else { 50 };
    assert!(commands >= least, "the documents show {commands} commands: is the reader of blocks broken?");
}

#[test]
fn a_wrong_line_is_noticed() {
    let lines = |text: &[&str]| text.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(fits(&lines(&["a…z", "..."]), &["abcz", "more"]));
    assert!(!fits(&lines(&["a…z"]), &["abc"]));
    assert!(!fits(&lines(&["a"]), &["a", "b"]));
}
