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
        if policy.may_run.is_none() {
            policy.may_run = within(&tools, Kind::Shell);
        }
        if may_write.is_none() && !policy.read_only {
            policy.may_write = within(&tools, Kind::Edit);
        }
        if policy.network.is_none() && !can(Kind::Web) {
            policy.network = Some(false);
        }
        // Only Claude Code's own names can be passed on as they are.
        let own = tools
            .iter()
            .all(|tool| tool.chars().next().is_some_and(char::is_uppercase) || tool.starts_with("mcp__"));
        policy.tools = (own && !tools.is_empty()).then_some(tools);
    } else if let Some(tools) = extra.get("disallowedTools").map(names) {
        take_away(&mut policy, may_write.is_none(), tools);
    }
    let text = |key: &str| match extra.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
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

/// What tools of a kind may be used on, where each of them says so: `Bash(git diff *)`, and `Bash(git diff:*)` in older
/// definitions. Nothing: one of them may be used on everything; an empty list: there is none.
fn within(tools: &[String], what: Kind) -> Option<Vec<String>> {
    let of_kind = tools.iter().filter(|tool| kind(tool) == Some(what));
    of_kind
        .map(|tool| {
            let (_, inner) = tool.strip_suffix(')')?.split_once('(')?;
            let inner = inner.trim();
            Some(inner.strip_suffix(":*").map_or_else(|| inner.to_owned(), |begin| format!("{begin}*")))
        })
        .collect()
}

/// Tools that a definition takes away: as what the role may do where all of a kind are gone, else by their names.
fn take_away(policy: &mut Policy, any_file: bool, tools: Vec<String>) {
    let gone = |all: &[&str]| all.iter().all(|name| tools.iter().any(|tool| tool == name));
    let mut said: Vec<&str> = Vec::new();
    if any_file && gone(&["Edit", "Write"]) {
        policy.read_only = true;
        said.extend(["Edit", "Write", "MultiEdit", "NotebookEdit"]);
    }
    if policy.may_run.is_none() && gone(&["Bash"]) {
        policy.may_run = Some(Vec::new());
        said.push("Bash");
    }
    if policy.network.is_none() && gone(&["WebFetch", "WebSearch"]) {
        policy.network = Some(false);
        said.extend(["WebFetch", "WebSearch"]);
    }
    policy.disallowed_tools = tools.iter().filter(|tool| !said.contains(&tool.as_str())).cloned().collect();
}

/// Whether a name is one of Claude Code's tools, and not an agent's own.
fn is_claudes(tool: &str) -> bool {
    tool.starts_with(char::is_uppercase) || tool.starts_with("mcp__")
}

/// Tools that are taken away, by an agent's own names (`known`: Claude Code's name, its own), and those it has no name
/// for.
pub(crate) fn own_names(tools: &[String], known: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let mut own = Vec::new();
    let mut strange = Vec::new();
    for tool in tools {
        match known.iter().find(|(claudes, _)| claudes == tool) {
            Some((_, name)) => own.push((*name).to_owned()),
            None if is_claudes(tool) => strange.push(tool.clone()),
            None => own.push(tool.clone()),
        }
    }
    own.dedup();
    (own, strange)
}

/// What is said of tools that an agent has no name for.
pub(crate) fn strange_tools(tools: &[String], known: &[(&str, &str)]) -> Option<String> {
    let (_, strange) = own_names(tools, known);
    (!strange.is_empty())
        .then(|| format!("it has no tool like {}, which cannot be taken away", strange.join(", ")))
}

/// Levels of effort, from little to much.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The level that an agent has for one that a definition names: the same, or the nearest. Nothing: it means nothing to it.
pub(crate) fn effort_among(effort: &str, known: &[&'static str]) -> Option<&'static str> {
    let place =
        |level: &str| EFFORTS.iter().position(|one| *one == if level == "off" { "none" } else { level });
    let wanted = place(effort)?;
    known.iter().copied().min_by_key(|level| place(level).map_or(usize::MAX, |own| own.abs_diff(wanted)))
}

/// What is said of an effort that means nothing to an agent.
pub(crate) fn strange_effort(policy: &Policy, known: &[&'static str]) -> Option<String> {
    let effort = policy.effort.as_deref().filter(|effort| effort_among(effort, known).is_none())?;
    Some(format!("`effort: {effort}` means nothing to it; it knows {}", known.join(", ")))
}

/// Keys of definitions that would change what an agent does and that no agent here is told.
const UNTOLD: [&str; 11] = [
    "skills",
    "mcpServers",
    "mcp-servers",
    "mcp_servers",
    "hooks",
    "memory",
    "isolation",
    "initialPrompt",
    "agents",
    "handoffs",
    "web_search",
];

/// What of a definition is not told to whoever plays the role, each in one sentence.
pub fn untold_of_definition(extra: &BTreeMap<String, Value>) -> Vec<String> {
    let keys = extra.keys().filter(|key| UNTOLD.contains(&key.split('.').next().unwrap_or(key)));
    let keys = keys.map(|key| format!("`{key}` of its definition is told to no agent"));
    let tools = extra.get("tools").map(names).unwrap_or_default();
    let servers: Vec<String> =
        tools.into_iter().filter(|tool| tool.starts_with("mcp__") || tool.contains('/')).collect();
    let servers = (!servers.is_empty())
        .then(|| format!("`tools` names {}, of a server that is not started for it", servers.join(", ")));
    keys.chain(servers).collect()
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
        assert_eq!(policy.may_run, Some(vec!["git diff, git log".to_owned()]));
        assert_eq!(policy.network, Some(false));
        assert_eq!(
            policy.tools.as_deref(),
            Some(["Read", "Grep", "Bash(git diff, git log)"].map(str::to_owned).as_slice())
        );
        assert_eq!((policy.max_turns, policy.effort.as_deref()), (Some(9), Some("high")));
    }

    #[test]
    fn what_a_tool_may_be_used_on_is_what_the_role_may_do() {
        let of = |tools: &str| policy_of(None, None, None, &extra(json!({"tools": tools})));
        let list = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let listed = of("Read, Edit, Bash(git status *), Bash(npm test:*)");
        assert_eq!((listed.may_run, listed.may_write), (list(&["git status *", "npm test*"]), None));
        assert_eq!(of("Read, Bash, Bash(git status *)").may_run, None, "one of them is for all commands");
        let scoped = of("Edit(docs/**), Write(docs/**), Bash");
        assert_eq!((scoped.read_only, scoped.may_write), (false, list(&["docs/**", "docs/**"])));
        let own = ["make *".to_owned()];
        let over = policy_of(Some(&own), Some(&own), None, &extra(json!({"tools": "Edit(x), Bash(git *)"})));
        assert_eq!((over.may_run, over.may_write), (list(&["make *"]), list(&["make *"])));
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
    fn tools_that_are_taken_away_are_what_the_role_may_not_do() {
        let away = |tools: Value| policy_of(None, None, None, &extra(json!({"disallowedTools": tools})));
        let reader = away(json!("Edit, Write, NotebookEdit, Bash"));
        assert!(reader.read_only && reader.disallowed_tools.is_empty(), "{reader:?}");
        assert_eq!((reader.may_run, reader.network), (Some(vec![]), None));
        assert_eq!(away(json!(["WebFetch", "WebSearch"])).network, Some(false));
        let one = away(json!(["Write", "Bash(rm *)"]));
        assert!(!one.read_only);
        assert_eq!(
            (one.may_run, one.disallowed_tools),
            (None, vec!["Write".to_owned(), "Bash(rm *)".to_owned()])
        );
        let listed = extra(json!({"tools": "Read, Bash", "disallowedTools": "Bash"}));
        assert_eq!(policy_of(None, None, None, &listed).may_run, None, "a list of tools is over it");
    }

    #[test]
    fn an_effort_is_the_nearest_that_the_agent_has() {
        let codex = ["none", "minimal", "low", "medium", "high", "xhigh"];
        assert_eq!(effort_among("max", &codex), Some("xhigh"));
        assert_eq!(effort_among("minimal", &["low", "medium", "high"]), Some("low"));
        assert_eq!(effort_among("none", &["off", "low"]), Some("off"));
        assert_eq!(effort_among("12", &codex), None);
        let number = policy_of(None, None, None, &extra(json!({"effort": 12})));
        assert_eq!(number.effort.as_deref(), Some("12"), "it is not forgotten");
    }

    #[test]
    fn what_no_agent_is_told_is_said() {
        let said = untold_of_definition(&extra(json!({
            "skills": ["x"], "color": "red", "mcp_servers.x": {"command": "y"}, "tools": ["Read", "mcp__hub__post"],
        })));
        let has = |words: &str| said.iter().filter(|one| one.contains(words)).count() == 1;
        assert!(
            said.len() == 3 && has("skills") && has("mcp_servers.x") && has("mcp__hub__post"),
            "{said:?}"
        );
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
