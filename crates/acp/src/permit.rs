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

/// What is known of a tool that an agent asks leave for. Its title is for people: nothing follows from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// What the tool is called in programs.
    pub name: Option<String>,
    pub kind: Option<ToolKind>,
    pub input: Option<Value>,
}

impl Permit {
    /// May the agent use this tool?
    pub fn allows(&self, asked: &Asked) -> bool {
        if asked.name.as_deref().is_some_and(is_our_tool) {
            return true;
        }
        match asked.kind {
            Some(ToolKind::Read | ToolKind::Search | ToolKind::Think) => true,
            Some(ToolKind::Fetch) => !self.no_network,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => !self.read_only,
            Some(ToolKind::Execute) => self.may_execute(asked.input.as_ref()),
            // Its own mode is not for the agent to choose.
            Some(ToolKind::SwitchMode) => false,
            // It could be anything: only who may do anything may do that.
            Some(_) | None => *self == Permit::default(),
        }
    }

    fn may_execute(&self, input: Option<&Value>) -> bool {
        let Some(listed) = &self.may_run else { return !self.read_only };
        let Some(command) = command_of(input) else { return false };
        // One plain command: a list of commands could begin with a harmless one.
        let plain = !command.contains([';', '|', '&', '$', '`', '\n', '<', '>', '(', ')']);
        plain && listed.iter().any(|pattern| fits(pattern, &command))
    }
}

/// A tool of the server that the engine itself handed over, by its whole name: agents put the server's before it, each in
/// its own way (`mcp__gatewright__submit_review`, `gatewright_submit_review`).
fn is_our_tool(name: &str) -> bool {
    let of_server = name.strip_prefix("mcp__").or_else(|| name.strip_prefix("mcp_")).unwrap_or(name);
    let tool = of_server.strip_prefix("gatewright").map(|rest| rest.trim_start_matches(['_', '.', '/', ':']));
    tool.is_some_and(|tool| {
        tool.len() < of_server.len() - "gatewright".len()
            && ["submit_report", "submit_review", "update_progress", "ask_human"].contains(&tool)
    })
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

    fn asked(kind: ToolKind) -> Asked {
        Asked { kind: Some(kind), ..Asked::default() }
    }

    #[test]
    fn a_reader_changes_nothing_and_runs_nothing() {
        let reader = Permit { read_only: true, ..Permit::default() };
        for kind in [ToolKind::Edit, ToolKind::Delete, ToolKind::Move, ToolKind::Execute, ToolKind::Other] {
            assert!(!reader.allows(&asked(kind)), "{kind:?}");
        }
        assert!(reader.allows(&asked(ToolKind::Read)));
        assert!(Permit::default().allows(&asked(ToolKind::Edit)));
        assert!(!Permit { no_network: true, ..Permit::default() }.allows(&asked(ToolKind::Fetch)));
    }

    #[test]
    fn only_a_whole_name_tells_our_tools_and_what_is_not_known_is_denied_to_who_has_limits() {
        let named = |name: &str| Asked { name: Some(name.to_owned()), ..Asked::default() };
        let limited = [
            Permit { read_only: true, ..Permit::default() },
            Permit { may_run: Some(vec!["git *".to_owned()]), ..Permit::default() },
            Permit { no_network: true, ..Permit::default() },
        ];
        for permit in limited {
            for ours in
                ["mcp__gatewright__submit_review", "mcp_gatewright_ask_human", "gatewright_submit_report"]
            {
                assert!(permit.allows(&named(ours)), "{ours}");
            }
            for other in [
                "submit_report",
                "gatewrightsubmit_report",
                "rm -rf x # gatewright_submit_report",
                "gatewright_submit_report; rm x",
                "mcp__other__submit_report",
                "",
            ] {
                assert!(!permit.allows(&named(other)), "{other}");
            }
            assert!(!permit.allows(&Asked::default()));
        }
        assert!(Permit::default().allows(&Asked::default()), "who may do anything may do that");
    }

    #[test]
    fn only_listed_commands_run_and_none_behind_another() {
        let listed =
            Permit { may_run: Some(vec!["git *".to_owned(), "cargo test".to_owned()]), ..Permit::default() };
        let run = |command: serde_json::Value| {
            let input = Some(json!({"command": command}));
            listed.allows(&Asked { input, ..asked(ToolKind::Execute) })
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
        assert!(!listed.allows(&asked(ToolKind::Execute)), "which command it is was not said");
    }
}
