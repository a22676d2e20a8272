//! The machine and the project: git, disk, state directory, configuration, workflow files.

use std::{path::Path, process::Command};

use gatewright_attempts::{Git, LockHolder, SandboxSupport, lock_holder, sandbox_support};
use gatewright_host::{
    project::{Project, user_config},
    user_key::{KEY_FILE, UserKey},
};
use gatewright_workflow::{
    config::{Config, ConfigText},
    diagnostic::Diagnostic,
    frozen::Sandbox,
    load::{LoadOptions, lint},
};

use super::{Finding, Level, agents::on_path};
use crate::{
    command_error::CommandError,
    definitions::{configuration_text, find, of_project},
    render::text::bytes as size_words,
};

const SPACE_SCARCE_BYTES: u64 = 512 * 1000 * 1000;
const SPACE_NONE_BYTES: u64 = 20 * 1000 * 1000;

/// Where the doctor looks: works with a broken configuration too.
pub struct Here {
    pub project: Project,
    pub config: Config,
}

pub fn git() -> Vec<Finding> {
    if on_path("git").is_none() {
        return vec![Finding::new(Level::Error, "git is not there: looked for `git` on PATH", "install git")];
    }
    match Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let old = major_minor(&version).is_some_and(|version| version < (2, 20));
            if old {
                vec![Finding::new(Level::Warning, format!("{version} is old"), "install git 2.20 or newer")]
            } else {
                vec![Finding::new(Level::Note, version, "")]
            }
        }
        Ok(_) | Err(_) => {
            vec![Finding::new(Level::Error, "git is there but does not run", "try `git --version`")]
        }
    }
}

fn major_minor(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The project and its configuration; what is wrong with the files becomes findings.
pub fn configuration(findings: &mut Vec<Finding>) -> Result<Here, CommandError> {
    let project = Project::here()?;
    let mut layers = Vec::new();
    for path in [user_config(), Some(project.root.join(".gatewright/config.yaml"))].into_iter().flatten() {
        match configuration_text(&project, &path) {
            Ok(text) => layers.push(ConfigText { label: path.display().to_string(), text }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => findings.push(Finding::new(
                Level::Error,
                format!("{}: cannot be read: {error}", path.display()),
                "make it readable",
            )),
        }
    }
    let (config, diagnostics) = Config::parse(&layers);
    findings.extend(diagnostics.iter().map(|diagnostic| of_diagnostic(diagnostic, "mend the file")));
    let project = match &config.state_dir {
        Some(dir) if std::env::var_os("GATEWRIGHT_STATE_DIR").is_none() => {
            Project::at(&project.root, &project.root.join(dir))
        }
        Some(_) | None => project,
    };
    for name in of_project(&project.root) {
        match find(&project.root, &name) {
            Ok(definition) => {
                let found =
                    lint(&definition.label, &definition.text, &definition.files, &LoadOptions::new(&config));
                let remedy = format!("gatewright lint {name}");
                findings.extend(
                    found
                        .iter()
                        .filter(|diagnostic| diagnostic.is_error())
                        .map(|diagnostic| of_diagnostic(diagnostic, &remedy)),
                );
            }
            Err(error) => {
                findings.push(Finding::new(Level::Error, error.message, format!("gatewright lint {name}")));
            }
        }
    }
    Ok(Here { project, config })
}

fn of_diagnostic(diagnostic: &Diagnostic, remedy: &str) -> Finding {
    let level = if diagnostic.is_error() { Level::Error } else { Level::Warning };
    let remedy = if diagnostic.remedy.is_empty() {
        remedy.to_owned()
    } else {
        format!("{}; {remedy}", diagnostic.remedy)
    };
    Finding::new(
        level,
        format!("{}:{}:{}: {}", diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.message),
        remedy,
    )
}

pub fn repository(project: &Project) -> Vec<Finding> {
    let git = |arguments: &[&str]| Git::at(&project.root).text(arguments).ok();
    if on_path("git").is_none() {
        return Vec::new();
    }
    if git(&["rev-parse", "--is-inside-work-tree"]).as_deref() != Some("true") {
        return vec![Finding::new(
            Level::Warning,
            format!(
                "{} is not in a git repository: what agents change cannot be told or undone",
                project.root.display()
            ),
            "git init",
        )];
    }
    let mut findings = Vec::new();
    if git(&["rev-parse", "--verify", "-q", "HEAD"]).is_none() {
        findings.push(Finding::new(
            Level::Note,
            "the repository has no commit yet",
            "git commit --allow-empty -m start",
        ));
    }
    let folder = git(&["rev-parse", "--absolute-git-dir"]).unwrap_or_default();
    for (file, what) in [
        ("MERGE_HEAD", "merge"),
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
    ] {
        if Path::new(&folder).join(file).exists() {
            findings.push(Finding::new(
                Level::Warning,
                format!("a {what} is not finished in the repository ({file})"),
                "finish or abort it before the next run",
            ));
        }
    }
    let common = git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).unwrap_or_default();
    findings.extend(locks(project, Path::new(&folder), Path::new(&common)));
    findings
}

/// Lock files of git that keep every other git out, ours included.
fn locks(project: &Project, own: &Path, common: &Path) -> Vec<Finding> {
    let places = [
        own.join("index.lock"),
        own.join("HEAD.lock"),
        common.join("packed-refs.lock"),
        common.join("config.lock"),
    ];
    let trees = [project.root.clone(), common.to_owned()];
    let found = places.iter().filter(|lock| lock.exists()).map(|lock| {
        let path = lock.display();
        match lock_holder(lock, &trees) {
            LockHolder::Process { pid } => {
                Finding::new(Level::Note, format!("{path}: git is at work (pid {pid})"), "wait for it")
            }
            LockHolder::Nobody | LockHolder::Unknown => Finding::new(
                Level::Warning,
                format!("{path}: left behind by a git that is gone; every other git gives up because of it"),
                format!("if no git is at work in the repository, in containers neither: rm {path}"),
            ),
        }
    });
    found.collect()
}

pub fn state_directory(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    let exists = project.state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    if rustix::fs::access(exists, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_err()
        || !exists.is_dir()
    {
        findings.push(Finding::new(
            Level::Error,
            format!(
                "the state directory {} cannot be written (looked at {})",
                project.state.display(),
                exists.display()
            ),
            "make it writable, or set GATEWRIGHT_STATE_DIR to a folder of yours",
        ));
    }
    if project.state.starts_with(&project.root) {
        findings.push(Finding::new(
            Level::Warning,
            format!(
                "the state directory {} lies inside the project: agents can reach it",
                project.state.display()
            ),
            "set GATEWRIGHT_STATE_DIR to a folder outside",
        ));
    }
    if UserKey::is_exposed(project.state_root()) {
        let key = project.state_root().join(KEY_FILE);
        findings.push(Finding::new(
            Level::Warning,
            format!("{}: others may read the key that authenticates your answers", key.display()),
            format!("chmod 600 {}", key.display()),
        ));
    }
    for (name, folder) in [("the state directory", exists), ("the project", project.root.as_path())] {
        let Ok(space) = rustix::fs::statvfs(folder) else { continue };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < SPACE_SCARCE_BYTES {
            let level = if free < SPACE_NONE_BYTES { Level::Error } else { Level::Warning };
            findings.push(Finding::new(
                level,
                format!("only {} are free where {name} is", size_words(free)),
                "free some space; gatewright clean removes runs that are over",
            ));
        }
    }
    findings
}

/// What the kernel can do to keep agents to their places, and who is let out.
pub fn sandbox(config: &Config) -> Vec<Finding> {
    let support = sandbox_support();
    let mut findings = vec![match support {
        SandboxSupport::None { why } => Finding::new(
            Level::Warning,
            format!("no sandbox: {why}; what agents write elsewhere is not prevented"),
            "Linux 5.13 or newer with Landlock",
        ),
        SandboxSupport::Landlock { abi } => {
            let mut missing = Vec::new();
            if !support.network() {
                missing.push("`network: off` (needs 4)");
            }
            if !support.signals() {
                missing.push("signals to other processes (needs 6)");
            }
            let words = if missing.is_empty() {
                "files, network, signals".to_owned()
            } else {
                format!("files; not enforced: {}", missing.join(", "))
            };
            Finding::new(Level::Note, format!("sandbox: Landlock {abi}: {words}"), "")
        }
    }];
    let off: Vec<&str> = config
        .agents
        .iter()
        .filter(|(_, agent)| agent.sandbox == Sandbox::Off)
        .map(|(name, _)| name.as_str())
        .collect();
    if config.sandbox == Sandbox::Off {
        findings.push(Finding::new(
            Level::Note,
            "the sandbox is off for all agents and checks (`sandbox: off`)",
            "remove it, or name the places they need: sandbox: { write: [...] }",
        ));
    } else if !off.is_empty() {
        findings.push(Finding::new(
            Level::Note,
            format!("the sandbox is off for {}", off.join(", ")),
            "name the places they need instead: sandbox: { write: [...] }",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_git_says() {
        assert_eq!(major_minor("git version 2.43.0"), Some((2, 43)));
        assert_eq!(major_minor("git version 2.39.3 (Apple Git-146)"), Some((2, 39)));
        assert_eq!(major_minor("nonsense"), None);
    }
}
