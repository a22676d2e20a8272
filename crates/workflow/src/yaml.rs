//! The one place that knows the YAML library: text in, a JSON value or a place out.
//!
//! Agents write YAML too, so depth, nodes, aliases and size are bounded before anything is built.

use serde_json::Value;

pub mod tree;

/// How much is read of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Larger texts are refused unread.
    pub bytes: usize,
    pub depth: usize,
    /// Keys, values, lists and maps together. A list of as many items as a fan-out takes, with four keys each, fits.
    pub nodes: usize,
    pub aliases: usize,
    /// What aliases may add up to once expanded ("billion laughs").
    pub replayed: usize,
}

impl Limits {
    pub const USUAL: Limits =
        Limits { bytes: 4 << 20, depth: 64, nodes: 1_000_000, aliases: 1_000, replayed: 200_000 };
}

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
    parse_yaml_within(text, &Limits::USUAL)
}

/// The same with other limits.
pub fn parse_yaml_within(text: &str, limits: &Limits) -> Result<Value, YamlProblem> {
    if text.len() > limits.bytes {
        let message = format!("the text has {} bytes, at most {} are read", text.len(), limits.bytes);
        return Err(YamlProblem { line: 0, column: 0, message });
    }
    serde_saphyr::from_str_with_options(text, options(limits)).map_err(|error| {
        let error = error.without_snippet();
        let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
        YamlProblem { line, column, message: limit_of(&error.to_string(), limits) }
    })
}

/// A limit in words of ours; anything else as the library says it.
fn limit_of(said: &str, limits: &Limits) -> String {
    let Limits { depth, nodes, aliases, replayed, .. } = limits;
    let is = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if is(&["recursion limit", "Depth", "nesting"]) {
        return format!("nested deeper than {depth} levels, which are read at most");
    }
    if is(&["alias", "Alias", "anchor", "Anchor"]) && is(&["limit", "breached", "exceeded"]) {
        return format!(
            "its aliases add up to more than is read: {aliases} aliases, {replayed} values in all"
        );
    }
    if is(&["breached: Nodes", "breached: Events"]) {
        return format!("more than {nodes} values, which are read at most");
    }
    said.to_owned()
}

fn options(limits: &Limits) -> serde_saphyr::Options {
    let mut replay = serde_saphyr::options::AliasLimits::default();
    replay.max_total_replayed_events = limits.replayed;
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.depth,
            flow_nesting_limit: limits.depth,
            max_nodes: limits.nodes,
            // A list or a map has a beginning and an end.
            max_events: limits.nodes.saturating_mul(2).saturating_add(16),
            max_aliases: limits.aliases,
            max_anchors: limits.aliases,
        },
        alias_limits: replay,
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
        says(&"- { id: 1 }\n".repeat(340_000), "more than 1000000 values");
        says(&"- 1\n".repeat(1_000_001), "more than 1000000 values");
        assert!(parse_yaml_value(&"[".repeat(2_000)).is_err());
        assert!(parse_yaml_value(&format!("a: {}", "x".repeat(Limits::USUAL.bytes))).is_err());
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

    /// The limits fit each other: whatever a fan-out takes can be read.
    #[test]
    fn a_list_of_as_many_items_as_a_fan_out_takes_is_read() {
        let items = gatewright_core::plan::limits::ITEMS_MAX;
        for keys in ["", ", b: 1, c: 2, d: 3"] {
            let list: String = (0..items).map(|n| format!("- {{ id: T{n}{keys} }}\n")).collect();
            let read = parse_yaml_value(&list).unwrap();
            assert_eq!(read.as_array().map(Vec::len), Some(items));
        }
    }
}
