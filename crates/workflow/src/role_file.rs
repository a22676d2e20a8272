//! Role files: Markdown with YAML front matter (ours, `.claude/agents/*.md`,
//! `.github/agents/*.agent.md`) and `.codex/agents/*.toml`. Text in, a role out; no file system.
//!
//! Keys we do not know are kept in `extra` for the agent's adapter: these formats belong to other
//! programs and grow without us. The body of our own files is a template; that of others is taken
//! literally, since `{{` in it was not written for us.

mod toml;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::yaml::tree::{Node, SourceId, limits, parse_tree};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleFile {
    pub name: Option<String>,
    pub description: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub may_write: Option<Vec<String>>,
    pub may_run: Option<Vec<String>>,
    pub network: Option<bool>,
    pub parallel_max: Option<u32>,
    /// A template.
    pub prompt: String,
    pub extra: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleFileProblem {
    #[error("line {line}, column {column}: {message}")]
    FrontMatter { line: usize, column: usize, message: String },
    #[error("the front matter that starts with `---` on line 1 never ends")]
    Unclosed,
    #[error("line {line}: {message}")]
    Toml { line: usize, message: String },
    #[error("`developer_instructions` is missing")]
    NoInstructions,
    #[error("it has no text besides its front matter")]
    Empty,
    #[error("it has more than {} bytes, which are read at most", limits::BYTES_MAX)]
    TooLarge,
}

/// Reads a role file; the name tells the format.
pub fn parse_role_file(path: &str, text: &str) -> Result<RoleFile, RoleFileProblem> {
    if text.len() > limits::BYTES_MAX {
        return Err(RoleFileProblem::TooLarge);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_toml = path.rsplit('.').next().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
    if is_toml { parse_codex(text) } else { parse_markdown(path, text) }
}

/// Whether the file is in another program's format, in which braces mean nothing.
pub fn is_foreign(path: &str) -> bool {
    let path = path.replace('\\', "/");
    [".claude/", ".github/", ".codex/", ".copilot/"].iter().any(|folder| path.contains(folder))
        || path.ends_with(".agent.md")
}

/// A literal text as a template.
fn literal(text: &str) -> String {
    if text.contains("{{") || text.contains("{%") || text.contains("{#") {
        let safe = text.replace("{% endraw %}", "{% endraw %}{{ '{% endraw %}' }}{% raw %}");
        format!("{{% raw %}}{safe}{{% endraw %}}")
    } else {
        text.to_owned()
    }
}

fn parse_markdown(path: &str, text: &str) -> Result<RoleFile, RoleFileProblem> {
    let (front, body) = split_front_matter(text)?;
    let mut role = RoleFile::default();
    if let Some(front) = front {
        let node = parse_tree(front, SourceId(0)).map_err(|problems| {
            let first = problems.into_iter().next();
            first.map_or(RoleFileProblem::Unclosed, |problem| RoleFileProblem::FrontMatter {
                line: problem.span.line + 1,
                column: problem.span.column,
                message: problem.message,
            })
        })?;
        for (key, value) in node.entries() {
            take(&mut role, &key.text, value);
        }
    }
    let body = body.trim();
    if body.is_empty() {
        return Err(RoleFileProblem::Empty);
    }
    role.prompt = if is_foreign(path) { literal(body) } else { body.to_owned() };
    Ok(role)
}

fn take(role: &mut RoleFile, key: &str, value: &Node) {
    match key {
        "name" => role.name = value.text().map(str::to_owned),
        "description" => value.text().unwrap_or_default().trim().clone_into(&mut role.description),
        "agent" => role.agent = value.text().map(str::to_owned),
        "model" => {
            // A list is in the order of preference.
            let mut models = value.as_words().into_iter().map(|word| word.text);
            role.model = models.next().filter(|model| model != "inherit");
            let fallback: Vec<Value> = models.map(Value::String).collect();
            if !fallback.is_empty() {
                role.extra.insert("fallback".to_owned(), Value::Array(fallback));
            }
        }
        "may_run" => role.may_run = Some(value.as_words().into_iter().map(|word| word.text).collect()),
        "network" => role.network = value.to_json().as_bool(),
        "may_write" => {
            role.may_write = Some(value.as_words().into_iter().map(|word| word.text).collect());
        }
        "parallel_max" => role.parallel_max = value.text().and_then(|text| text.parse().ok()),
        _ => {
            role.extra.insert(key.to_owned(), value.to_json());
        }
    }
}

/// The front matter and what follows it.
fn split_front_matter(text: &str) -> Result<(Option<&str>, &str), RoleFileProblem> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok((None, text));
    };
    let start = first.len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((Some(&text[start..end]), &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(RoleFileProblem::Unclosed)
}

fn parse_codex(text: &str) -> Result<RoleFile, RoleFileProblem> {
    let values = toml::parse(text).map_err(|(line, message)| RoleFileProblem::Toml { line, message })?;
    let mut role = RoleFile::default();
    for (key, value) in values {
        let text = value.as_str().map(str::to_owned);
        match key.as_str() {
            "name" => role.name = text,
            "description" => role.description = text.unwrap_or_default(),
            "model" => role.model = text,
            "developer_instructions" => role.prompt = literal(text.unwrap_or_default().trim()),
            _ => {
                role.extra.insert(key, value);
            }
        }
    }
    if role.prompt.is_empty() { Err(RoleFileProblem::NoInstructions) } else { Ok(role) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn our_own_file_is_a_template_with_front_matter() {
        let role = parse_role_file(
            "roles/planner.md",
            "---\ndescription: Plans.\nmay_write: []\nmodel: opus\n---\n\nPlan {{ request }}.\n",
        )
        .unwrap();
        assert_eq!(role.prompt, "Plan {{ request }}.");
        assert_eq!(role.may_write, Some(vec![]));
        assert_eq!(role.model.as_deref(), Some("opus"));
        assert_eq!(parse_role_file("roles/x.md", "Just text\n").unwrap().prompt, "Just text");
    }

    #[test]
    fn a_claude_agent_keeps_its_tools_and_its_braces() {
        let role = parse_role_file(
            ".claude/agents/reviewer.md",
            "---\nname: reviewer\ndescription: Looks.\ntools: Read, Grep\nmodel: inherit\nbogus: 1\n---\nUse {{ x }}.\n",
        )
        .unwrap();
        assert_eq!(role.name.as_deref(), Some("reviewer"));
        assert_eq!(role.model, None);
        assert_eq!(role.extra["tools"], json!("Read, Grep"));
        assert_eq!(role.extra["bogus"], json!(1));
        assert_eq!(role.prompt, "{% raw %}Use {{ x }}.{% endraw %}");
    }

    #[test]
    fn a_codex_agent_is_toml() {
        let role = parse_role_file(
            ".codex/agents/coder.toml",
            "# c\nname = \"coder\"\ndescription = \"Codes\"\nmodel = 'gpt'\ndeveloper_instructions = \"\"\"\nBuild\nit \\\"now\\\".\n\"\"\"\ntools = [\"a\", # x\n \"b\"]\n[mcp_servers.x]\ncommand = \"y\"\n",
        )
        .unwrap();
        assert_eq!(role.prompt, "Build\nit \"now\".");
        assert_eq!(role.extra["tools"], json!(["a", "b"]));
        assert_eq!(role.model.as_deref(), Some("gpt"));
        assert_eq!(role.extra["mcp_servers.x"], json!({"command": "y"}));
    }

    #[test]
    fn broken_files_say_where() {
        assert_eq!(parse_role_file("a.md", "---\na: 1\n"), Err(RoleFileProblem::Unclosed));
        assert_eq!(parse_role_file("a.md", "---\na: 1\n---\n\n"), Err(RoleFileProblem::Empty));
        assert!(matches!(
            parse_role_file("a.md", "---\na: [\n---\nx"),
            Err(RoleFileProblem::FrontMatter { .. })
        ));
        assert_eq!(parse_role_file("a.toml", "name = \"x\""), Err(RoleFileProblem::NoInstructions));
        assert!(matches!(parse_role_file("a.toml", "x y"), Err(RoleFileProblem::Toml { line: 1, .. })));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[-a-c=\\[\\]\"'#\\\\{}\\n.: 0-9ü]{0,80}") {
            let _ = parse_role_file("a.md", &text);
            let _ = parse_role_file("a.toml", &text);
        }
    }
}
