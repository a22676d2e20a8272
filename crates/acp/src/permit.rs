//! What a role may do, asked by an agent one tool call at a time. Whoever may not be told yes is told no:
//! nothing waits for a dialog.

use agent_client_protocol::v1::schema::{PermissionOption, PermissionOptionKind, ToolKind};
use serde_json::Value;

/// The policy of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permit {
    /// It may change nothing.
    pub read_only: bool,
    /// Commands it may run, `git *`; `None` = any.
    pub may_run: Option<Vec<String>>,
    pub no_network: bool,
}

impl Permit {
    /// May the agent use a tool of this kind on this?
    pub fn allows(&self, kind: ToolKind, title: &str, input: Option<&Value>) -> bool {
        match kind {
            ToolKind::Read | ToolKind::Search | ToolKind::Think => true,
            ToolKind::Fetch => !self.no_network,
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => !self.read_only,
            ToolKind::Execute => self.may_execute(title, input),
            // Its own mode is not for the agent to choose.
            ToolKind::SwitchMode => false,
            // Tools of servers that the engine itself handed over come as this kind, too.
            _ => !self.read_only || is_our_tool(title),
        }
    }

    fn may_execute(&self, title: &str, input: Option<&Value>) -> bool {
        let Some(listed) = &self.may_run else { return !self.read_only };
        let command = command_of(input).unwrap_or_else(|| title.trim_matches('`').to_owned());
        // One plain command: a list of commands could begin with a harmless one.
        let plain = !command.contains([';', '|', '&', '$', '`', '\n', '<', '>', '(', ')']);
        plain && listed.iter().any(|pattern| fits(pattern, &command))
    }
}

fn is_our_tool(title: &str) -> bool {
    ["submit_report", "submit_review", "update_progress", "ask_human"].iter().any(|tool| title.contains(tool))
}

/// `git *` fits `git` with any arguments, `cargo test` only itself.
fn fits(pattern: &str, command: &str) -> bool {
    let command: Vec<&str> = command.split_whitespace().collect();
    match pattern.trim().strip_suffix('*') {
        Some(start) => {
            let start: Vec<&str> = start.split_whitespace().collect();
            command.len() >= start.len() && command[..start.len()] == start[..]
        }
        None => pattern.split_whitespace().collect::<Vec<_>>() == command,
    }
}

fn command_of(input: Option<&Value>) -> Option<String> {
    let command = input?.get("command").or_else(|| input?.get("cmd"))?;
    match command {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // `["bash", "-lc", "git status"]`: what the shell is told counts.
            match words.as_slice() {
                [shell, flag, line] if flag.starts_with('-') && shell.ends_with("sh") => {
                    Some((*line).to_owned())
                }
                _ => Some(words.join(" ")),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The option that says yes or no once; without one the request is cancelled.
pub(crate) fn option(options: &[PermissionOption], yes: bool) -> Option<&PermissionOption> {
    let wanted: [PermissionOptionKind; 2] = if yes {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    wanted.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reader_changes_nothing_and_runs_nothing() {
        let reader = Permit { read_only: true, ..Permit::default() };
        for kind in [ToolKind::Edit, ToolKind::Delete, ToolKind::Move, ToolKind::Execute, ToolKind::Other] {
            assert!(!reader.allows(kind, "something", None), "{kind:?}");
        }
        assert!(reader.allows(ToolKind::Read, "a file", None));
        assert!(reader.allows(ToolKind::Other, "mcp__gatewright__submit_review", None));
        assert!(Permit::default().allows(ToolKind::Edit, "a file", None));
        assert!(!Permit { no_network: true, ..Permit::default() }.allows(ToolKind::Fetch, "x", None));
    }

    #[test]
    fn only_listed_commands_run_and_none_behind_another() {
        let listed =
            Permit { may_run: Some(vec!["git *".to_owned(), "cargo test".to_owned()]), ..Permit::default() };
        let run = |command: serde_json::Value| {
            listed.allows(ToolKind::Execute, "t", Some(&json!({"command": command})))
        };
        assert!(run(json!("git status -s")));
        assert!(run(json!(["bash", "-lc", "git log"])));
        assert!(run(json!("cargo test")));
        for no in [
            "cargo test --release",
            "gitk",
            "git status; rm -rf x",
            "git log $(rm x)",
            "git log > x",
            "rm -rf x",
        ] {
            assert!(!run(json!(no)), "{no}");
        }
        assert!(!run(json!(["bash", "-lc", "rm x"])));
        assert!(!listed.allows(ToolKind::Execute, "rm x", None));
    }
}
