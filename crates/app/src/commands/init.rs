//! `gatewright init`: a configuration, a small workflow of one's own, an ignore file. Nothing of the
//! user's is ever written over.

use std::path::{Path, PathBuf};

use gatewright_workflow::config::{BUILT_IN_AGENTS, DEFAULT_AGENT};

use crate::{
    cli::InitArgs,
    command_error::{CommandError, exit},
    commands::{
        doctor::agents::{on_path, program_of},
        methods::{shown, unknown_method, write_new},
    },
    definitions::{Session, built_in},
    render::text::put,
};

/// The workflow that is written when no method is named.
const OWN_WORKFLOW: &str = "ship";

pub fn init(args: &InitArgs) -> Result<u8, CommandError> {
    if let Some(method) = &args.method
        && !built_in().contains_key(method)
    {
        return Err(unknown_method(method));
    }
    let session = Session::open()?;
    let root = session.project.root.clone();
    if let Some(harness) = args.hooks {
        let line = super::hook::install::set_up(&root, harness, args.remove, args.dry_run)?;
        put(format!("{line}\n").as_bytes())?;
        return Ok(exit::DONE);
    }
    let files = files(&root, args.method.as_deref());
    for (path, text) in &files {
        let line = if args.dry_run {
            let word = if path.exists() { "would keep " } else { "would write" };
            format!("{word} {}\n", shown(&root, path))
        } else if write_new(path, text)? {
            format!("wrote {}\n", shown(&root, path))
        } else {
            format!("kept  {} (it exists)\n", shown(&root, path))
        };
        put(line.as_bytes())?;
    }
    let workflow = args.method.as_deref().unwrap_or(OWN_WORKFLOW);
    if args.dry_run {
        eprintln!(
            "\nnothing was written; to do so: gatewright init{}",
            args.method.as_ref().map(|method| format!(" --method {method}")).unwrap_or_default()
        );
    } else {
        if args.method.is_some() {
            eprintln!("\nto change the method itself: gatewright methods eject {workflow}");
        }
        eprintln!(
            "\nnext: gatewright run {workflow} \"what to do\"\n      (gatewright doctor checks that its agents are there; gatewright rehearse {workflow} tries it without them)"
        );
    }
    Ok(exit::DONE)
}

/// Files of a fresh project: at most five.
fn files(root: &Path, method: Option<&str>) -> Vec<(PathBuf, String)> {
    let folder = root.join(".gatewright");
    let mut files = vec![
        (folder.join("config.yaml"), config(agent_found_here(), method)),
        (
            folder.join(".gitignore"),
            "# Run directories are working material; copy what is worth keeping.\nruns/\n".to_owned(),
        ),
    ];
    if method.is_none() {
        files.push((folder.join("workflows").join(format!("{OWN_WORKFLOW}.yaml")), workflow(tests_of(root))));
    }
    files
}

/// The first built-in agent whose program is on PATH.
fn agent_found_here() -> &'static str {
    let found = BUILT_IN_AGENTS
        .iter()
        .filter(|name| **name != "rehearsal")
        .find(|name| on_path(program_of(name)).is_some());
    found.copied().unwrap_or(DEFAULT_AGENT)
}

/// How this repository is tested, as far as its files tell.
fn tests_of(root: &Path) -> Option<&'static str> {
    let known = [
        ("Cargo.toml", "cargo test"),
        ("go.mod", "go test ./..."),
        ("package.json", "npm test"),
        ("pyproject.toml", "python3 -m pytest"),
        ("Makefile", "make test"),
    ];
    known.into_iter().find(|(file, _)| root.join(file).is_file()).map(|(_, command)| command)
}

fn config(agent: &str, method: Option<&str>) -> String {
    let method = method.map(|name| format!("\n# Changes to a built-in method without copying it; steps by their id.\n# workflows:\n#   {name}:\n#     steps: {{ review: {{ rounds_max: 2 }} }}\n")).unwrap_or_default();
    format!(
        r#"# Gatewright, this project. Over ~/.config/gatewright/config.yaml; flags and GATEWRIGHT_* are over both.

# The agent of roles that name none.
agent: {agent}

# Any program can be an agent: it gets a prompt and ends with its reply.
# agents:
#   mine:
#     command: ["python3", "tools/agent.py", "--role", "{{role}}"]
#     prompt: stdin              # stdin | argument | file
#     env: [OPENAI_API_KEY]      # names that are passed on, besides a small default set

# A run that reaches a limit pauses; `gatewright resume RUN --raise usd=30` goes on.
# budget: {{ usd: 20, wall: 4h }}

# Called when a run needs you or has ended.
# notify: {{ command: "notify-send {{title}} {{body}}" }}
{method}"#
    )
}

fn workflow(tests: Option<&str>) -> String {
    let (checks, of_code) = match tests {
        Some(command) => (format!("checks:\n  tests: {{ run: {command:?} }}\n"), ", checks: [tests]"),
        None => (
            "# checks:\n#   tests: { run: \"make test\" }     # then, in the step below: checks: [tests]\n"
                .to_owned(),
            "",
        ),
    };
    format!(
        r#"# gatewright graph {OWN_WORKFLOW} draws this; gatewright lint says what is wrong with it.
workflow: {OWN_WORKFLOW}
description: Plan it, agree on it, build it, review it.
roles:
  planner:
    prompt: |
      Plan the smallest change that does what is asked: {{{{ request }}}}
      Say which files change, how it is tested, and what could go wrong.
    may_write: []
  coder:
    prompt: |
      Build what plan.md says, with tests. The request was: {{{{ request }}}}
  reviewer:
    prompt: |
      Review the change in the working tree against plan.md. Report what is wrong, with place and severity.
    may_write: []
{checks}stages:
  - id: design
    steps:
      - {{ id: plan, role: planner, writes: {{ plan.md: any }} }}
      - {{ id: approve-plan, decide: "Build it this way?", show: [plan.md], answers: {{ approved: pass, changes-requested: {{ redo: plan }} }} }}
  - id: build
    steps:
      - {{ id: code, role: coder, reads: [plan.md]{of_code} }}
      - {{ id: review, review: code, by: reviewer, reads: [plan.md], block_at: medium, rounds_max: 3, on_exhausted: [ask] }}
"#
    )
}

#[cfg(test)]
mod tests {
    use gatewright_workflow::{
        config::{Config, ConfigText},
        load::{LoadOptions, MapSources, lint},
    };

    use super::*;

    #[test]
    fn what_is_written_has_nothing_wrong_with_it() {
        for method in [None, Some("quick")] {
            let text = config("claude", method);
            let (parsed, found) = Config::parse(&[ConfigText { label: "config.yaml".to_owned(), text }]);
            assert_eq!(found, vec![]);
            assert_eq!(parsed.agent.as_deref(), Some("claude"));
        }
        for tests in [None, Some("cargo test")] {
            let text = workflow(tests);
            let found =
                lint("ship.yaml", &text, &MapSources::default(), &LoadOptions::new(&Config::default()));
            assert_eq!(found, vec![], "{text}");
        }
    }

    #[test]
    fn at_most_five_files() {
        let root = Path::new("/nowhere");
        assert!(files(root, None).len() <= 5 && files(root, Some("quick")).len() <= 5);
    }
}
