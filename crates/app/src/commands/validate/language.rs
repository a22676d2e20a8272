//! Builds and tests by language. A tool that is not there, or that had nothing to look at, has not succeeded.

use std::{path::Path, process::Command};

use super::{Fault, code};

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

    fn test_line(self, files: Option<&str>) -> String {
        match self {
            Language::Go => format!("go test {}", files.unwrap_or("./...")),
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
    run(&lines, code::BUILD, "build", "--build-command")
}

pub fn test(language: Language, command: Option<&str>, files: Option<&str>) -> Result<Vec<String>, Fault> {
    let lines = match command {
        Some(line) => vec![line.to_owned()],
        None => language.all().iter().map(|one| one.test_line(files)).collect(),
    };
    run(&lines, code::TESTS, "tests", "--test-command")
}

fn run(lines: &[String], failed: u8, what: &str, flag: &str) -> Result<Vec<String>, Fault> {
    if lines.is_empty() {
        let message =
            format!("nothing was checked: no known language is here; name it with --lang, or {flag}");
        return Err(Fault::new(failed, message));
    }
    let mut said = Vec::new();
    for line in lines {
        let output = Command::new("/bin/sh").arg("-c").arg(line).output();
        match output {
            Ok(output) if output.status.success() => said.push(format!("ok  {what}: {line}")),
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
