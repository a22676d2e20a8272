//! Builds and tests by language. A tool that is not there, or that had nothing to look at, has not succeeded.

use std::{
    path::Path,
    process::{Command, Output},
};

use gatewright_workflow::test_counts::OutputReader;

use super::{Fault, code, test_files::TestFiles};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Go,
    Python,
    Node,
    /// Whatever the folder has.
    Multi,
}

impl Language {
    /// By name; the names people use for one are the same.
    pub fn of(name: Option<&str>) -> Result<Language, Fault> {
        match name.unwrap_or("multi").to_lowercase().as_str() {
            "go" | "golang" => Ok(Language::Go),
            "python" | "py" => Ok(Language::Python),
            "node" | "typescript" | "ts" | "javascript" | "js" | "frontend" => Ok(Language::Node),
            "multi" => Ok(Language::Multi),
            other => {
                Err(Fault::new(code::USAGE, format!("--lang is go, python, node or multi, not `{other}`")))
            }
        }
    }

    fn found() -> Vec<Language> {
        let has = |names: &[&str]| names.iter().any(|name| Path::new(name).exists());
        let known = [
            (Language::Go, has(&["go.mod"])),
            (Language::Python, has(&["pyproject.toml", "setup.py", "requirements.txt"])),
            (Language::Node, has(&["package.json"])),
        ];
        known.into_iter().filter(|(_, is_there)| *is_there).map(|(language, _)| language).collect()
    }

    fn all(self) -> Vec<Language> {
        if self == Language::Multi { Language::found() } else { vec![self] }
    }

    fn build_lines(self) -> &'static [&'static str] {
        match self {
            Language::Go => &["go build ./...", "go vet ./..."],
            Language::Python => &["ruff check ."],
            Language::Node => &["npx --no-install tsc --noEmit"],
            Language::Multi => &[],
        }
    }

    /// Whether a file of this name is written in it.
    pub fn writes(self, file: &str) -> bool {
        let end = Path::new(file).extension().and_then(|end| end.to_str()).unwrap_or_default();
        match self {
            Language::Go => end == "go",
            Language::Python => end == "py",
            Language::Node => {
                ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"].contains(&end)
            }
            Language::Multi => true,
        }
    }

    /// The command that tests, and what it is to test: everything, or these.
    fn test_line(self, files: Option<&[String]>) -> String {
        let files = files.map(|files| files.join(" "));
        match self {
            // Only so does it say how many tests there were.
            Language::Go => format!("go test -v {}", files.unwrap_or("./...".to_owned())),
            Language::Python => format!("python3 -m pytest {}", files.unwrap_or_default()),
            Language::Node if Path::new("pnpm-lock.yaml").exists() => {
                format!("pnpm test {}", files.unwrap_or_default())
            }
            Language::Node => {
                format!("npm test {}", files.map(|files| format!("-- {files}")).unwrap_or_default())
            }
            Language::Multi => String::new(),
        }
    }
}

pub fn build(language: Language, command: Option<&str>) -> Result<Vec<String>, Fault> {
    let lines = match command {
        Some(line) => vec![line.to_owned()],
        None => {
            language.all().iter().flat_map(|one| one.build_lines()).map(|line| (*line).to_owned()).collect()
        }
    };
    run(&lines, command.is_some(), code::BUILD, "build", "--build-command", &|_| Ok(()))
}

pub fn test(language: Language, command: Option<&str>, files: &[String]) -> Result<Vec<String>, Fault> {
    let lines = match (command, TestFiles::find(files)?) {
        (Some(_), Some(_)) => {
            return Err(Fault::new(
                code::USAGE,
                "--test-files is for the command of --lang; write into --test-command what it is to test",
            ));
        }
        (Some(line), None) => vec![line.to_owned()],
        (None, None) => language.all().iter().map(|one| one.test_line(None)).collect(),
        (None, Some(files)) => lines_for(&language.all(), &files)?,
    };
    run(&lines, command.is_some(), code::TESTS, "tests", "--test-command", &have_run)
}

/// One command for each language that has something among the files.
fn lines_for(languages: &[Language], files: &TestFiles) -> Result<Vec<String>, Fault> {
    let own = languages.iter().map(|one| (one, files.of(*one))).filter(|(_, own)| !own.is_empty());
    let lines: Vec<String> = own.map(|(one, own)| one.test_line(Some(&own))).collect();
    if lines.is_empty() && !languages.is_empty() { Err(files.nothing_for(languages)) } else { Ok(lines) }
}

/// Where the output says how many tests there were, it must have been some, and none of them may have failed.
fn have_run(output: &Output) -> Result<(), String> {
    let mut reader = OutputReader::of_runners();
    reader.push(&output.stdout);
    reader.push(b"\n");
    reader.push(&output.stderr);
    match reader.finish() {
        Ok(counts) if counts.run == 0 => Err("no test ran".to_owned()),
        Ok(counts) if counts.failed > 0 => {
            Err(format!("{} test(s) failed although it exited with 0", counts.failed))
        }
        Ok(_) => Ok(()),
        // Without any test `go test -v` names none, whoever gave the command.
        Err(_) => {
            let text = String::from_utf8_lossy(&output.stdout);
            nothing(&text).map_or(Ok(()), |why| Err(why.to_owned()))
        }
    }
}

fn run(
    lines: &[String],
    is_given: bool,
    failed: u8,
    what: &str,
    flag: &str,
    verify: &dyn Fn(&Output) -> Result<(), String>,
) -> Result<Vec<String>, Fault> {
    if lines.is_empty() {
        let message =
            format!("nothing was checked: no known language is here; name it with --lang, or {flag}");
        return Err(Fault::new(failed, message));
    }
    let mut said = Vec::new();
    for line in lines {
        let output = Command::new("/bin/sh").arg("-c").arg(line).output();
        match output {
            Ok(output) if output.status.success() => {
                let text =
                    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
                if let Some(why) = nothing(&text).filter(|_| !is_given) {
                    return Err(Fault::new(failed, format!("`{line}` checked nothing: {why}")));
                }
                if let Err(problem) = verify(&output) {
                    return Err(Fault::new(failed, format!("nothing is verified by `{line}`: {problem}")));
                }
                said.push(format!("ok  {what}: {line}"));
            }
            Ok(output) => {
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                let text = if errors.trim().is_empty() { printed } else { errors };
                return Err(Fault::new(
                    failed,
                    format!("`{line}` failed ({}):\n{}", output.status, text.trim_end()),
                ));
            }
            Err(error) => return Err(Fault::new(failed, format!("`{line}` could not be started: {error}"))),
        }
    }
    Ok(said)
}

/// The line by which a tool says that it had nothing to look at, although it calls that success (J-47).
fn nothing(text: &str) -> Option<&str> {
    let says = |words: &[&str]| {
        text.lines().map(str::trim).find(|line| words.iter().any(|word| line.to_lowercase().contains(word)))
    };
    if let Some(line) = says(&["matched no packages", "no python files found"]) {
        return Some(line);
    }
    // `go test` says it package by package; `pytest` counts what it skipped.
    let empty = ["[no test files]", "[no tests to run]"];
    let ran = |line: &str| line.starts_with("ok") && !empty.iter().any(|word| line.contains(word));
    let skipped = text.lines().map(str::trim).rfind(|line| line.contains(" skipped in "));
    let skipped = skipped.filter(|line| !line.contains(" passed") && !line.contains(" failed"));
    skipped.or_else(|| says(&empty).filter(|_| !text.lines().any(ran)))
}
