//! The one place that knows the YAML library: text in, a JSON value or a place out.
//!
//! Agents write YAML too, so depth, nodes, aliases and size are bounded before anything is built.

use serde_json::Value;

pub mod tree;

/// Larger texts are refused unread.
pub const YAML_BYTES_MAX: usize = 4 * 1024 * 1024;
const DEPTH_MAX: usize = 64;
const NODES_MAX: usize = 200_000;
const ALIASES_MAX: usize = 1_000;
/// What aliases may add up to once expanded ("billion laughs").
const REPLAYED_EVENTS_MAX: usize = 200_000;

/// Why a text is not YAML that we read, and where; line and column count from 1, 0 = unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlProblem {
    pub line: u64,
    pub column: u64,
    pub message: String,
}

/// Reads one YAML 1.2 document. A key that appears twice is an error, `yes` and `no` are strings.
pub fn parse_yaml_value(text: &str) -> Result<Value, YamlProblem> {
    if text.len() > YAML_BYTES_MAX {
        let message = format!("the text has {} bytes, at most {YAML_BYTES_MAX} are read", text.len());
        return Err(YamlProblem { line: 0, column: 0, message });
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let error = error.without_snippet();
        let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
        YamlProblem { line, column, message: limit_of(&error.to_string()) }
    })
}

/// A limit in words of ours; anything else as the library says it.
fn limit_of(said: &str) -> String {
    let is = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if is(&["recursion limit", "Depth", "nesting"]) {
        return format!("nested deeper than {DEPTH_MAX} levels, which are read at most");
    }
    if is(&["alias", "Alias", "anchor", "Anchor"]) && is(&["limit", "breached", "exceeded"]) {
        return format!(
            "its aliases add up to more than is read: {ALIASES_MAX} aliases, {REPLAYED_EVENTS_MAX} values in all"
        );
    }
    if is(&["breached: Nodes"]) {
        return format!("more than {NODES_MAX} values, which are read at most");
    }
    said.to_owned()
}

fn options() -> serde_saphyr::Options {
    let mut aliases = serde_saphyr::options::AliasLimits::default();
    aliases.max_total_replayed_events = REPLAYED_EVENTS_MAX;
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: aliases,
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_people_write() {
        let text = "a: [1, 2.5, yes, true, null, 2026-01-02]\nb: {c: \"x\"}\n1: one\n";
        let expected = json!({"a": [1, 2.5, "yes", true, null, "2026-01-02"], "b": {"c": "x"}, "1": "one"});
        assert_eq!(parse_yaml_value(text), Ok(expected));
    }

    #[test]
    fn a_problem_has_its_place() {
        let problem = parse_yaml_value("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!((problem.line, problem.column), (3, 1), "{problem}");
        assert!(parse_yaml_value("a: [1, 2\nb: 3").unwrap_err().line > 0);
    }

    #[test]
    fn limits_hold() {
        let says = |text: &str, words: &str| {
            let problem = parse_yaml_value(text).unwrap_err();
            assert!(problem.message.contains(words), "{problem}");
        };
        says(&format!("{}{}", "[".repeat(70), "]".repeat(70)), "deeper than 64 levels");
        says(&format!("- {}", "- ".repeat(70)), "deeper than 64 levels");
        says(&"- { id: 1 }\n".repeat(100_000), "more than 200000 values");
        assert!(parse_yaml_value(&"[".repeat(2_000)).is_err());
        assert!(parse_yaml_value(&format!("a: {}", "x".repeat(YAML_BYTES_MAX))).is_err());
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let previous = format!("*a{}", level - 1);
            laughs.push_str(&format!("a{level}: &a{level} [{}]\n", vec![previous; 10].join(", ")));
        }
        says(&laughs, "1000 aliases, 200000 values");
        let many: String = (0..1_001).map(|n| format!("- &a{n} x\n- *a{n}\n")).collect();
        says(&many, "1000 aliases");
        assert!(parse_yaml_value("a: 1\n---\nb: 2\n").is_err(), "one document only");
    }
}
