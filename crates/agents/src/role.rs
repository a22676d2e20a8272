//! Fields of other programs' role definitions (Claude Code, Copilot, Codex) in one policy.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::order::Policy;

/// What a role may do, from its own keys and from what its definition file says in its own words.
pub fn policy_of(
    may_write: Option<&[String]>,
    may_run: Option<&[String]>,
    network: Option<bool>,
    extra: &BTreeMap<String, Value>,
) -> Policy {
    let mut policy = Policy {
        read_only: may_write.is_some_and(<[String]>::is_empty),
        may_write: may_write.filter(|globs| !globs.is_empty()).map(<[String]>::to_vec),
        may_run: may_run.map(<[String]>::to_vec),
        network,
        ..Policy::default()
    };
    if let Some(tools) = extra.get("tools").map(names).filter(|tools| !tools.iter().any(|tool| tool == "*")) {
        let can = |what: Kind| tools.iter().any(|tool| kind(tool) == Some(what));
        if may_write.is_none() && !can(Kind::Edit) {
            policy.read_only = true;
        }
        if policy.may_run.is_none() && !can(Kind::Shell) {
            policy.may_run = Some(Vec::new());
        }
        if policy.network.is_none() && !can(Kind::Web) {
            policy.network = Some(false);
        }
        // Only Claude Code's own names can be passed on as they are.
        let own = tools
            .iter()
            .all(|tool| tool.chars().next().is_some_and(char::is_uppercase) || tool.starts_with("mcp__"));
        policy.tools = (own && !tools.is_empty()).then_some(tools);
    }
    policy.disallowed_tools = extra.get("disallowedTools").map(names).unwrap_or_default();
    let text = |key: &str| extra.get(key).and_then(Value::as_str).map(str::to_owned);
    policy.permission_mode = text("permissionMode");
    if policy.permission_mode.as_deref() == Some("plan") {
        policy.read_only = true;
    }
    policy.sandbox_mode = text("sandbox_mode");
    if policy.sandbox_mode.as_deref() == Some("read-only") {
        policy.read_only = true;
    }
    policy.effort = text("effort").or_else(|| text("model_reasoning_effort"));
    policy.max_turns = extra.get("maxTurns").or_else(|| extra.get("max_turns")).and_then(Value::as_u64);
    policy
}

/// A list, or words with commas between them; a comma inside parentheses belongs to its word.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => {
            let mut depth = 0;
            let mut words = vec![String::new()];
            for letter in text.chars() {
                match letter {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    ',' if depth == 0 => {
                        words.push(String::new());
                        continue;
                    }
                    _ => {}
                }
                if let Some(word) = words.last_mut() {
                    word.push(letter);
                }
            }
            words.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Edit,
    Shell,
    Web,
}

/// What a tool of Claude Code or an alias of Copilot is for; unknown names are ignored, as Copilot does.
fn kind(tool: &str) -> Option<Kind> {
    match tool.split('(').next().unwrap_or(tool) {
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "edit" => Some(Kind::Edit),
        "Bash" | "execute" | "shell" => Some(Kind::Shell),
        "WebFetch" | "WebSearch" | "web" => Some(Kind::Web),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extra(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap_or_default()
    }

    #[test]
    fn claudes_tools_say_what_a_role_may_do() {
        let policy = policy_of(
            None,
            None,
            None,
            &extra(json!({"tools": "Read, Grep, Bash(git diff, git log)", "maxTurns": 9, "effort": "high"})),
        );
        assert!(policy.read_only);
        assert_eq!(policy.may_run, None);
        assert_eq!(policy.network, Some(false));
        assert_eq!(
            policy.tools.as_deref(),
            Some(["Read", "Grep", "Bash(git diff, git log)"].map(str::to_owned).as_slice())
        );
        assert_eq!((policy.max_turns, policy.effort.as_deref()), (Some(9), Some("high")));
    }

    #[test]
    fn copilots_aliases_are_understood_and_a_star_is_everything() {
        let policy =
            policy_of(None, None, None, &extra(json!({"tools": ["read", "edit", "search", "bogus"]})));
        assert!(!policy.read_only);
        assert_eq!((policy.may_run, policy.tools), (Some(vec![]), None));
        assert_eq!(policy_of(None, None, None, &extra(json!({"tools": ["*"]}))), Policy::default());
    }

    #[test]
    fn codexs_sandbox_and_effort_are_taken() {
        let policy = policy_of(
            None,
            None,
            None,
            &extra(json!({"sandbox_mode": "read-only", "model_reasoning_effort": "low"})),
        );
        assert!(policy.read_only);
        assert_eq!(policy.effort.as_deref(), Some("low"));
    }

    #[test]
    fn the_roles_own_keys_are_over_its_file() {
        let policy = policy_of(
            Some(&["src/**".to_owned()]),
            Some(&["make *".to_owned()]),
            Some(true),
            &extra(json!({"tools": ["read"]})),
        );
        assert!(!policy.read_only);
        assert_eq!(policy.may_run, Some(vec!["make *".to_owned()]));
        assert_eq!(policy.network, Some(true));
    }
}
