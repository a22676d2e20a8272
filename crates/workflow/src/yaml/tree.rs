//! A YAML document as a tree in which every node knows its place. Knows nothing of workflows.
//!
//! serde stops at the first error and loses places in tagged enums, so files that people write are
//! read into this tree and walked by us. The event parser is the one inside serde-saphyr; it is
//! named in this file and nowhere else. Scalars follow the core schema of YAML 1.2 (`yes` and `on`
//! are text). Merge keys (`<<`) are not supported: a definition is read by people.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span as Marked};

/// Limits of one document. Each is far above what a person writes and below what hurts.
pub mod limits {
    use super::super::Limits;

    pub const BYTES_MAX: usize = Limits::USUAL.bytes;
    pub const DEPTH_MAX: usize = Limits::USUAL.depth;
    /// Less than of a list: nobody writes so many, and each has a place.
    pub const NODES_MAX: usize = 200_000;
    pub const ALIASES_MAX: usize = Limits::USUAL.aliases;
}

/// Which of the loaded texts a place is in; an index into [`crate::diagnostic::Texts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// A place: line and column count from 1, in characters; `start..end` are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub source: SourceId,
    pub line: usize,
    pub column: usize,
    /// Characters to underline on that line, at least 1.
    pub length: usize,
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: NodeValue,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    Null,
    Bool(bool),
    /// The text is kept: an id written `1.10` is not `1.1`.
    Number {
        value: Number,
        text: String,
    },
    String(String),
    /// Shared between copies: a definition is copied for each profile and step, and changed in few places.
    Sequence(Arc<Vec<Node>>),
    Mapping(Arc<Vec<(Key, Node)>>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub text: String,
    pub span: Span,
}

/// What is wrong with a text as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TreeProblem {
    pub span: Span,
    pub message: String,
}

impl Node {
    pub fn null(span: Span) -> Node {
        Node { value: NodeValue::Null, span }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }

    pub fn key(&self, key: &str) -> Option<&Key> {
        self.entries().iter().find(|(name, _)| name.text == key).map(|(name, _)| name)
    }

    /// The entries of a mapping; of anything else none.
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            NodeValue::Mapping(entries) => entries,
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number { .. }
            | NodeValue::String(_)
            | NodeValue::Sequence(_) => &[],
        }
    }

    /// The elements of a sequence; of anything else none.
    pub fn elements(&self) -> &[Node] {
        match &self.value {
            NodeValue::Sequence(elements) => elements,
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number { .. }
            | NodeValue::String(_)
            | NodeValue::Mapping(_) => &[],
        }
    }

    /// A scalar that can be a name or a text: a string, or a number as it was written.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) | NodeValue::Number { text, .. } => Some(text),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Sequence(_) | NodeValue::Mapping(_) => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.value == NodeValue::Null
    }

    /// The same data without places.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number { value, .. } => Value::Number(value.clone()),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::Sequence(elements) => Value::Array(elements.iter().map(Node::to_json).collect()),
            NodeValue::Mapping(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect())
            }
        }
    }

    fn count(&self) -> usize {
        match &self.value {
            NodeValue::Sequence(elements) => 1 + elements.iter().map(Node::count).sum::<usize>(),
            NodeValue::Mapping(entries) => 1 + entries.iter().map(|(_, node)| node.count()).sum::<usize>(),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => 1,
        }
    }
}

/// Reads exactly one document. An empty text is `Null`. All duplicate keys are reported at once.
pub fn parse_tree(text: &str, source: SourceId) -> Result<Node, Vec<TreeProblem>> {
    match read_tree(text, source) {
        (Some(tree), problems) if problems.is_empty() => Ok(tree),
        (_, problems) => Err(problems),
    }
}

/// The same, with the tree also where its only problems are duplicate keys, so that whatever else
/// is wrong with it can be told too; the first of two counts.
pub fn read_tree(text: &str, source: SourceId) -> (Option<Node>, Vec<TreeProblem>) {
    let origin = Span { source, line: 1, column: 1, length: 1, start: 0, end: 0 };
    if text.len() > limits::BYTES_MAX {
        let message = format!("the file has more than {} bytes, which are read at most", limits::BYTES_MAX);
        return (None, vec![TreeProblem { span: origin, message }]);
    }
    let mut builder = Builder::new(source, text);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, marked)) => {
                if let Err(problem) = builder.take(event, &marked) {
                    builder.problems.push(problem);
                    return (None, builder.problems);
                }
            }
            Err(error) => {
                let marker = *error.marker();
                let start = marker.byte_offset().unwrap_or(0).min(text.len());
                let span = Span {
                    source,
                    line: marker.line().max(1),
                    column: marker.col() + 1,
                    length: 1,
                    start,
                    end: start,
                };
                builder.problems.push(TreeProblem { span, message: error.info() });
                return (None, builder.problems);
            }
        }
    }
    (Some(builder.root.unwrap_or_else(|| Node::null(origin))), builder.problems)
}

/// A collection that is still open.
enum Open {
    Sequence { span: Span, anchor: usize, elements: Vec<Node> },
    Mapping { span: Span, anchor: usize, entries: Vec<(Key, Node)>, pending: Option<Key> },
}

/// The stack of open collections is on the heap, so no input can exhaust the thread's stack.
struct Builder<'a> {
    source: SourceId,
    text: &'a str,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    aliases: usize,
    documents: usize,
    problems: Vec<TreeProblem>,
}

impl<'a> Builder<'a> {
    fn new(source: SourceId, text: &'a str) -> Self {
        Builder {
            source,
            text,
            open: Vec::new(),
            root: None,
            anchors: BTreeMap::new(),
            nodes: 0,
            aliases: 0,
            documents: 0,
            problems: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, marked: &Marked) -> Result<(), TreeProblem> {
        let span = self.span(marked);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(problem(span, "a second document starts here; one file holds one"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let quoted = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix() == "str");
                let value = if quoted { NodeValue::String(text.into_owned()) } else { plain(&text) };
                self.finish(Node { value, span }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.push(Open::Sequence { span, anchor, elements: Vec::new() }, span)
            }
            Event::MappingStart(_, anchor, _) => {
                self.push(Open::Mapping { span, anchor, entries: Vec::new(), pending: None }, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            // Comments, stream and document ends carry no data; the parser may learn more of the kind.
            _ => Ok(()),
        }
    }

    fn push(&mut self, open: Open, span: Span) -> Result<(), TreeProblem> {
        if self.open.len() >= limits::DEPTH_MAX {
            return Err(problem(span, format!("nested deeper than {} levels", limits::DEPTH_MAX)));
        }
        if let Some(Open::Mapping { pending: None, .. }) = self.open.last() {
            return Err(problem(span, "a list or mapping cannot be a key"));
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), TreeProblem> {
        let (value, mut span, anchor) = match self.open.pop() {
            Some(Open::Sequence { span, anchor, elements }) => {
                (NodeValue::Sequence(Arc::new(elements)), span, anchor)
            }
            Some(Open::Mapping { span, anchor, entries, .. }) => {
                (NodeValue::Mapping(Arc::new(entries)), span, anchor)
            }
            None => return Err(problem(end, "a collection ends that never began")),
        };
        span.end = end.end.max(span.start);
        self.finish(Node { value, span }, anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), TreeProblem> {
        self.aliases += 1;
        if self.aliases > limits::ALIASES_MAX {
            return Err(problem(span, format!("more than {} aliases", limits::ALIASES_MAX)));
        }
        let Some(mut node) = self.anchors.get(&anchor).cloned() else {
            return Err(problem(span, "this alias refers to itself or to nothing"));
        };
        self.nodes += node.count();
        if self.open.len() + depth(&node) > limits::DEPTH_MAX {
            return Err(problem(span, format!("nested deeper than {} levels", limits::DEPTH_MAX)));
        }
        node.span = span;
        self.finish(node, 0)
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), TreeProblem> {
        self.nodes += 1;
        if self.nodes > limits::NODES_MAX {
            return Err(problem(node.span, format!("more than {} values", limits::NODES_MAX)));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence { elements, .. }) => elements.push(node),
            Some(Open::Mapping { entries, pending, .. }) => match pending.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Some(text) = key_text(&node) else {
                        return Err(problem(node.span, "a list or mapping cannot be a key"));
                    };
                    if let Some((first, _)) = entries.iter().find(|(key, _)| key.text == text) {
                        let message =
                            format!("the key `{text}` is here twice; first on line {}", first.span.line);
                        self.problems.push(TreeProblem { span: node.span, message });
                    }
                    *pending = Some(Key { text, span: node.span });
                }
            },
        }
        Ok(())
    }

    fn span(&self, marked: &Marked) -> Span {
        let start = marked.start.byte_offset().unwrap_or(0).min(self.text.len());
        let end = marked.end.byte_offset().unwrap_or(start).clamp(start, self.text.len());
        let line = marked.start.line().max(1);
        let length = if marked.end.line() == marked.start.line() {
            marked.end.col().saturating_sub(marked.start.col()).max(1)
        } else {
            1
        };
        Span { source: self.source, line, column: marked.start.col() + 1, length, start, end }
    }
}

fn problem(span: Span, message: impl Into<String>) -> TreeProblem {
    TreeProblem { span, message: message.into() }
}

fn depth(node: &Node) -> usize {
    match &node.value {
        NodeValue::Sequence(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        NodeValue::Mapping(entries) => 1 + entries.iter().map(|(_, node)| depth(node)).max().unwrap_or(0),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => 0,
    }
}

fn key_text(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::Null => Some("null".to_owned()),
        NodeValue::Bool(value) => Some(value.to_string()),
        NodeValue::Number { text, .. } | NodeValue::String(text) => Some(text.clone()),
        NodeValue::Sequence(_) | NodeValue::Mapping(_) => None,
    }
}

/// A plain scalar by the core schema.
fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        _ => {}
    }
    match number(text) {
        Some(value) => NodeValue::Number { value, text: text.to_owned() },
        None => NodeValue::String(text.to_owned()),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Number::from);
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        return unsigned
            .parse::<u64>()
            .map(Number::from)
            .or_else(|_| unsigned.parse::<i64>().map(Number::from))
            .ok();
    }
    let float = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if float && digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return text.parse::<f64>().ok().and_then(Number::from_f64);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Node {
        parse_tree(text, SourceId(0)).unwrap()
    }

    #[test]
    fn places_are_lines_and_columns_of_the_text() {
        let tree = parse("a: 1\nlist:\n  - {x: ü, y: two}\n");
        let element = &tree.get("list").unwrap().elements()[0];
        assert_eq!((element.span.line, element.span.column), (3, 5));
        let y = element.key("y").unwrap();
        assert_eq!((y.span.line, y.span.column, y.span.length), (3, 12, 1));
        let two = element.get("y").unwrap();
        assert_eq!((two.span.column, two.span.length), (15, 3));
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let json = parse("{a: yes, b: true, c: 1.10, d: ~, e: 0x10, f: '1', g: 1.2.3, i: 2026-01-02}");
        assert_eq!(
            json.to_json(),
            serde_json::json!({"a": "yes", "b": true, "c": 1.1, "d": null, "e": 16, "f": "1",
                "g": "1.2.3", "i": "2026-01-02"})
        );
        assert_eq!(json.get("c").unwrap().text(), Some("1.10"));
    }

    #[test]
    fn every_duplicate_key_is_an_error() {
        let problems = parse_tree("a: 1\na: 2\nb: {c: 1, c: 2}\n", SourceId(0)).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0].span.line, 2);
        assert!(problems[0].message.contains("first on line 1"));
    }

    #[test]
    fn aliases_are_expanded_within_limits() {
        assert_eq!(parse("a: &x [1]\nb: *x\n").to_json()["b"], serde_json::json!([1]));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let refs = vec![format!("*a{}", i - 1); 9].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        assert!(parse_tree(&bomb, SourceId(0)).is_err());
        assert!(parse_tree("a: &a [*a]", SourceId(0)).is_err());
    }

    #[test]
    fn depth_is_limited() {
        assert!(parse_tree(&"[".repeat(10_000), SourceId(0)).is_err());
        assert!(parse_tree(&"- ".repeat(10_000), SourceId(0)).is_err());
    }

    #[test]
    fn two_documents_are_refused() {
        assert!(parse_tree("a: 1\n---\nb: 2\n", SourceId(0)).is_err());
        assert!(parse("").is_null());
        assert!(parse("# only a comment\n").is_null());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[-a-c{}\\[\\]:,&*!|>'\"\\n\\t #%@~0-9.ü]{0,80}") {
            let _ = parse_tree(&text, SourceId(0));
        }
    }
}
