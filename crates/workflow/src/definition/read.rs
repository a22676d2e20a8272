//! Typed reads from a tree. A value of the wrong shape reads as absent: it was reported already.

use super::scalar::{Counted, count, duration_ms, micro_usd};
use crate::yaml::tree::{Node, NodeValue, Span};

/// A text with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub span: Span,
}

impl Word {
    pub fn of(node: &Node) -> Option<Word> {
        node.text().map(|text| Word { text: text.to_owned(), span: node.span })
    }
}

impl Node {
    pub fn word(&self, key: &str) -> Option<Word> {
        self.get(key).and_then(Word::of)
    }

    pub fn string(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Node::text).map(str::to_owned)
    }

    pub fn string_or_empty(&self, key: &str) -> String {
        self.string(key).unwrap_or_default()
    }

    /// One text or a list of texts.
    pub fn words(&self, key: &str) -> Vec<Word> {
        self.get(key).map(Node::as_words).unwrap_or_default()
    }

    pub fn strings(&self, key: &str) -> Vec<String> {
        self.words(key).into_iter().map(|word| word.text).collect()
    }

    pub fn as_words(&self) -> Vec<Word> {
        match &self.value {
            NodeValue::Sequence(elements) => elements.iter().filter_map(Word::of).collect(),
            NodeValue::String(_) | NodeValue::Number { .. } => Word::of(self).into_iter().collect(),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Mapping(_) => Vec::new(),
        }
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.value {
            NodeValue::Bool(value) => Some(value),
            NodeValue::Null
            | NodeValue::Number { .. }
            | NodeValue::String(_)
            | NodeValue::Sequence(_)
            | NodeValue::Mapping(_) => None,
        }
    }

    pub fn is_on(&self, key: &str) -> bool {
        self.flag(key) == Some(true)
    }

    pub fn limit(&self, key: &str) -> Option<u32> {
        match count(self.get(key)?, 0) {
            Counted::Fine(number) => Some(number),
            Counted::OutOfRange | Counted::NoCount => None,
        }
    }

    pub fn whole(&self, key: &str) -> Option<u64> {
        match &self.get(key)?.value {
            NodeValue::Number { value, .. } => value.as_u64(),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::String(_)
            | NodeValue::Sequence(_)
            | NodeValue::Mapping(_) => None,
        }
    }

    pub fn milliseconds(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Node::text).and_then(duration_ms)
    }

    pub fn micro_usd(&self, key: &str) -> Option<u64> {
        match &self.get(key)?.value {
            NodeValue::Number { value, .. } => micro_usd(value),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::String(_)
            | NodeValue::Sequence(_)
            | NodeValue::Mapping(_) => None,
        }
    }

    /// The place of a key's value, of the mapping if the key is absent.
    pub fn place(&self, key: &str) -> Span {
        self.get(key).map_or(self.span, |node| node.span)
    }

    /// The place of the key itself.
    pub fn key_place(&self, key: &str) -> Span {
        self.key(key).map_or(self.span, |key| key.span)
    }
}
