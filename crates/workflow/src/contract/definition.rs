//! Reads a contract from its value and names every mistake with its place.
//!
//! serde would stop at the first and lose the place; a contract is written by people.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    ARTIFACT_BYTES_MAX, AnyRules, Contract, HeaderRule, MarkdownRules, SectionRule, Shape, TextRules,
    WhenRule, data,
};
use crate::reply::object::{kind, nearest};

const SHAPES: &[&str] = &["any", "text", "markdown", "json", "yaml"];
const SECTION_FIELDS: &[&str] = &[
    "optional",
    "not_empty",
    "may_be_empty",
    "bullets",
    "ids",
    "min",
    "items_min",
    "items_max",
    "columns",
    "rows_min",
    "contains",
    "contains_any",
    "lacks",
    "says",
    "one_of",
    "fields",
    "paths",
    "code",
    "values",
    "sections",
];

/// A mistake in a contract, with the path of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", if path.is_empty() { "contract" } else { path.as_str() })]
pub struct ContractProblem {
    pub path: String,
    pub message: String,
}

/// All mistakes in one message, for serde.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ContractProblems(Vec<ContractProblem>);

impl TryFrom<Value> for Contract {
    type Error = ContractProblems;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        read(&value).map_err(ContractProblems)
    }
}

/// A walk that collects problems.
#[derive(Default)]
struct Walk {
    problems: Vec<ContractProblem>,
}

pub(super) fn read(value: &Value) -> Result<Contract, Vec<ContractProblem>> {
    let mut walk = Walk::default();
    let contract = match value {
        Value::String(word) if word == "any" => Some(Contract::any()),
        Value::Object(map) => walk.contract(map),
        other => {
            walk.expected("", "`any` or one of markdown, json, yaml, text", other);
            None
        }
    };
    match contract {
        Some(contract) if walk.problems.is_empty() => Ok(contract),
        Some(_) | None => Err(walk.problems),
    }
}

impl Walk {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(ContractProblem { path: path.into(), message: message.into() });
    }

    fn expected(&mut self, path: &str, expected: &str, found: &Value) {
        self.problem(path, format!("expected {expected}, found {}", kind(found)));
    }

    fn refuse_unknown(&mut self, path: &str, map: &Map<String, Value>, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint = nearest(key, known).map_or_else(
                || format!("known are {}", known.join(", ")),
                |meant| format!("did you mean `{meant}`?"),
            );
            self.problem(format!("{path}/{key}"), format!("unknown key; {hint}"));
        }
    }

    fn contract(&mut self, map: &Map<String, Value>) -> Option<Contract> {
        self.refuse_unknown("", map, &[SHAPES, &["bytes_max"]].concat());
        let bytes_max = self.number(map, "", "bytes_max").unwrap_or(ARTIFACT_BYTES_MAX);
        let named: Vec<&str> = SHAPES.iter().filter(|shape| map.contains_key(**shape)).copied().collect();
        let [shape] = named.as_slice() else {
            let found = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
            self.problem("", format!("expected exactly one of {}, found {found}", SHAPES.join(", ")));
            return None;
        };
        let value = &map[*shape];
        let shape = match *shape {
            "text" => Shape::Text(self.text_rules(value)),
            "markdown" => Shape::Markdown(self.markdown_rules(value)),
            "json" => Shape::Json(self.schema("/json", value)),
            "yaml" => Shape::Yaml(self.schema("/yaml", value)),
            _ => Shape::Any(AnyRules {}),
        };
        Some(Contract { shape, bytes_max })
    }

    fn schema(&mut self, path: &str, value: &Value) -> Value {
        if let Value::String(name) = value {
            self.problem(path, format!("the schema `{name}` was not loaded"));
        } else if let Err(message) = data::compile(value) {
            self.problem(path, format!("this is not a usable JSON Schema: {message}"));
        }
        value.clone()
    }

    fn object<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            other => {
                self.expected(path, "a mapping", other);
                None
            }
        }
    }

    fn text_rules(&mut self, value: &Value) -> TextRules {
        let Some(map) = self.object("/text", value) else { return TextRules::default() };
        self.refuse_unknown("/text", map, &["min_bytes", "contains"]);
        TextRules {
            min_bytes: self.number(map, "/text", "min_bytes").unwrap_or(0),
            contains: self.texts(map, "/text", "contains"),
        }
    }

    fn markdown_rules(&mut self, value: &Value) -> MarkdownRules {
        let path = "/markdown";
        let Some(map) = self.object(path, value) else { return MarkdownRules::default() };
        self.refuse_unknown(path, map, &["title", "header", "sections", "order", "ids_unique", "when"]);
        let mut rules = MarkdownRules { ids_unique: true, ..MarkdownRules::default() };
        match map.get("title") {
            None => {}
            Some(Value::String(title)) => rules.title = Some(title.clone()),
            Some(other) => self.expected("/markdown/title", "a text", other),
        }
        if let Some(header) = map.get("header").and_then(|value| self.object("/markdown/header", value)) {
            for (name, value) in header {
                if let Some(rule) = self.header_rule(&format!("/markdown/header/{name}"), value) {
                    rules.header.insert(name.clone(), rule);
                }
            }
        }
        rules.sections = self.sections(map, path);
        rules.order = self.order(map, &rules.sections);
        if let Some(unique) = self.flag(map, path, "ids_unique") {
            rules.ids_unique = unique;
        }
        rules.when = self.when_rules(map, &rules.header);
        rules
    }

    /// `[{ header: { Status: [PASS] }, sections: … }]`
    fn when_rules(
        &mut self,
        map: &Map<String, Value>,
        known: &BTreeMap<String, HeaderRule>,
    ) -> Vec<WhenRule> {
        let items = match map.get("when") {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.expected("/markdown/when", "a list", other);
                return Vec::new();
            }
        };
        let mut rules = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = format!("/markdown/when/{at}");
            let Some(item) = self.object(&path, item) else { continue };
            self.refuse_unknown(&path, item, &["header", "sections"]);
            let header = self.allowed(item, &path, "header");
            if header.is_empty() {
                self.problem(&path, "no header field is named; expected `header: { Status: [PASS] }`");
            }
            for name in header.keys().filter(|name| !known.contains_key(*name)) {
                self.problem(format!("{path}/header/{name}"), "not one of the fields under `header`");
            }
            rules.push(WhenRule { header, sections: self.sections(item, &path) });
        }
        rules
    }

    /// `true`: as the sections are listed in the contract; or a list of names.
    fn order(&mut self, map: &Map<String, Value>, sections: &BTreeMap<String, SectionRule>) -> Vec<String> {
        match map.get("order") {
            None | Some(Value::Bool(false)) => Vec::new(),
            Some(Value::Bool(true)) => {
                let listed = map.get("sections").and_then(Value::as_object);
                listed.map(|listed| listed.keys().cloned().collect()).unwrap_or_default()
            }
            Some(_) => {
                let order = self.texts(map, "/markdown", "order");
                for name in order.iter().filter(|name| !sections.contains_key(*name)) {
                    self.problem("/markdown/order", format!("`{name}` is not one of the sections"));
                }
                order
            }
        }
    }

    fn header_rule(&mut self, path: &str, value: &Value) -> Option<HeaderRule> {
        match value {
            Value::String(word) if word == "any" => Some(HeaderRule::Any),
            Value::String(word) if word == "iso8601" => Some(HeaderRule::Iso8601),
            Value::String(form)
                if super::markdown::IdPattern::parse(form).is_some()
                    || form.matches(super::markdown::FILE_NUMBER).count() == 1 =>
            {
                Some(HeaderRule::Form(form.clone()))
            }
            Value::Array(items) if !items.is_empty() => {
                let words: Vec<String> =
                    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                if words.len() < items.len() {
                    self.problem(path, "every allowed value is a text; put it in quotes");
                }
                Some(HeaderRule::OneOf(words))
            }
            other => {
                self.expected(
                    path,
                    "a list of allowed values, `any`, `iso8601` or a form such as `Fix {n}`",
                    other,
                );
                None
            }
        }
    }

    fn sections(&mut self, map: &Map<String, Value>, path: &str) -> BTreeMap<String, SectionRule> {
        let path = format!("{path}/sections");
        let mut rules = BTreeMap::new();
        if let Some(sections) = map.get("sections").and_then(|value| self.object(&path, value)) {
            for (name, value) in sections {
                let place = format!("{path}/{name}");
                let rule = match value {
                    Value::Null => SectionRule::default(),
                    value => match self.object(&place, value) {
                        Some(map) => self.section(map, &place),
                        None => continue,
                    },
                };
                rules.insert(name.clone(), rule);
            }
        }
        rules
    }

    fn section(&mut self, map: &Map<String, Value>, path: &str) -> SectionRule {
        self.refuse_unknown(path, map, SECTION_FIELDS);
        let not_empty = self.flag(map, path, "not_empty").unwrap_or(true);
        let size = |number: Option<u64>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        SectionRule {
            optional: self.flag(map, path, "optional").unwrap_or(false),
            may_be_empty: self.flag(map, path, "may_be_empty").unwrap_or(!not_empty),
            bullets: self.range(map, path, "bullets"),
            ids: self.id_pattern(map, path),
            min: size(self.number(map, path, "min")),
            items_min: size(self.number(map, path, "items_min")),
            items_max: size(self.number(map, path, "items_max")),
            columns: self.texts(map, path, "columns"),
            rows_min: size(self.number(map, path, "rows_min")),
            contains: self.texts(map, path, "contains"),
            contains_any: self.texts(map, path, "contains_any"),
            lacks: self.texts(map, path, "lacks"),
            says: self.allowed(map, path, "says"),
            one_of: self.texts(map, path, "one_of"),
            fields: self.texts(map, path, "fields"),
            paths: self.flag(map, path, "paths").unwrap_or(false),
            code: self.flag(map, path, "code").unwrap_or(false),
            values: self.values(map, path),
            sections: self.sections(map, path),
        }
    }

    /// The closed values of columns and fields, by name.
    fn values(&mut self, map: &Map<String, Value>, path: &str) -> BTreeMap<String, Vec<String>> {
        let closed = self.allowed(map, path, "values");
        let named = [self.texts(map, path, "columns"), self.texts(map, path, "fields")].concat();
        for name in closed.keys().filter(|name| !named.contains(name)) {
            let place = format!("{path}/values/{name}");
            self.problem(place, "neither one of its `columns` nor of its `fields`");
        }
        closed
    }

    /// `{ Name: [value, …], … }`
    fn allowed(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> BTreeMap<String, Vec<String>> {
        let place = format!("{path}/{key}");
        let Some(values) = map.get(key).and_then(|value| self.object(&place, value)) else {
            return BTreeMap::new();
        };
        let mut closed = BTreeMap::new();
        for name in values.keys() {
            let allowed = self.texts(values, &place, name);
            if allowed.is_empty() {
                self.problem(format!("{place}/{name}"), "no value is allowed; expected a list of texts");
            }
            closed.insert(name.clone(), allowed);
        }
        closed
    }

    fn id_pattern(&mut self, map: &Map<String, Value>, path: &str) -> Option<String> {
        let path = format!("{path}/ids");
        match map.get("ids")? {
            Value::String(pattern) if super::markdown::IdPattern::parse(pattern).is_some() => {
                Some(pattern.clone())
            }
            other => {
                self.expected(&path, "a pattern such as `REQ-{n}`", other);
                None
            }
        }
    }

    /// `[min, max]`.
    fn range(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<(usize, usize)> {
        let value = map.get(key)?;
        let numbers: Option<Vec<usize>> = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_u64().and_then(|number| usize::try_from(number).ok())).collect()
        });
        match numbers.as_deref() {
            Some([min, max]) if min <= max => Some((*min, *max)),
            _ => {
                self.problem(format!("{path}/{key}"), "expected [fewest, most]");
                None
            }
        }
    }

    fn number(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<u64> {
        let value = map.get(key)?;
        if value.as_u64().is_none() {
            self.expected(&format!("{path}/{key}"), "a number from 0", value);
        }
        value.as_u64()
    }

    fn flag(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<bool> {
        let value = map.get(key)?;
        if value.as_bool().is_none() {
            self.expected(&format!("{path}/{key}"), "true or false", value);
        }
        value.as_bool()
    }

    fn texts(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Vec<String> {
        let path = format!("{path}/{key}");
        match map.get(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                for item in items.iter().filter(|item| !item.is_string()) {
                    self.expected(&path, "texts only", item);
                }
                items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(other) => {
                self.expected(&path, "a list of texts", other);
                Vec::new()
            }
        }
    }
}
