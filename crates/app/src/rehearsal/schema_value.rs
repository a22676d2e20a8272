//! A small value that a JSON Schema accepts. Deterministic; knows the schema and nothing else.
//!
//! It covers what contracts of methods use (types, required, enum, const, formats, bounds, patterns
//! of ids, local references). What it cannot make, a scenario gives with `files:`.

use serde_json::{Map, Value, json};

/// References and nesting are followed so deep.
const DEPTH_MAX: usize = 40;

/// A value for the schema.
pub fn value_for(schema: &Value) -> Value {
    Maker { root: schema }.make(schema, &Place::default())
}

/// Where in the document a value stands.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The last property on the way here.
    name: String,
    /// The place in the nearest list, so that elements differ.
    index: usize,
    in_list: bool,
    depth: usize,
}

impl Place {
    fn property(&self, name: &str) -> Place {
        Place { name: name.to_owned(), depth: self.depth + 1, ..self.clone() }
    }

    fn element(&self, index: usize) -> Place {
        Place { index, in_list: true, depth: self.depth + 1, ..self.clone() }
    }
}

struct Maker<'s> {
    root: &'s Value,
}

impl Maker<'_> {
    fn make(&self, schema: &Value, place: &Place) -> Value {
        if place.depth > DEPTH_MAX {
            return Value::Null;
        }
        let schema = self.flat(schema, place.depth);
        let get = |key: &str| schema.get(key);
        if let Some(fixed) = get("const").or_else(|| get("enum").and_then(|list| list.get(0))) {
            return fixed.clone();
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(first) = get(key).and_then(|list| list.get(0)) {
                return self.make(&merged(&without(&schema, key), first), place);
            }
        }
        match kind(&schema) {
            "object" => self.object(&schema, place),
            "array" => self.array(&schema, place),
            "string" => Value::String(text(&schema, place)),
            "integer" => json!(number(&schema).ceil() as i64),
            "number" => json!(number(&schema)),
            "boolean" => json!(true),
            _ => Value::Null,
        }
    }

    /// The schema with its references followed and its `allOf` put together.
    fn flat(&self, schema: &Value, depth: usize) -> Value {
        let mut flat = match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) if depth <= DEPTH_MAX => {
                let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                let target = target.map_or(Value::Null, |target| self.flat(target, depth + 1));
                merged(&target, &without(schema, "$ref"))
            }
            Some(_) | None => schema.clone(),
        };
        let all = flat.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default();
        for part in all {
            flat = merged(&without(&flat, "allOf"), &self.flat(&part, depth + 1));
        }
        flat
    }

    fn object(&self, schema: &Value, place: &Place) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut object = Map::new();
        // In the order of the definition, so that the file reads like its contract.
        for (name, schema) in &properties {
            if required.iter().any(|wanted| wanted == name) {
                object.insert(name.clone(), self.make(schema, &place.property(name)));
            }
        }
        for name in required.iter().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), Value::String(format!("{name} (rehearsed)")));
            }
        }
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0) as usize;
        for (name, schema) in &properties {
            if object.len() < least && !object.contains_key(name) {
                object.insert(name.clone(), self.make(schema, &place.property(name)));
            }
        }
        let more =
            schema.get("additionalProperties").filter(|more| more.is_object()).cloned().unwrap_or(json!({}));
        let mut extra = 1;
        while object.len() < least && extra < 100 {
            let name = format!("key-{extra}");
            object.insert(name.clone(), self.make(&more, &place.property(&name)));
            extra += 1;
        }
        Value::Object(object)
    }

    /// As few elements as allowed, but a list of the document itself is not left empty: something
    /// is to be worked on. Lists inside elements (what they depend on) stay empty.
    fn array(&self, schema: &Value, place: &Place) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64).map(|number| number as usize);
        let usual = usize::from(!place.in_list);
        let count = bound("minItems")
            .unwrap_or(usual)
            .max(usual)
            .min(bound("maxItems").unwrap_or(usize::MAX))
            .min(1000);
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let items = schema.get("items").cloned().unwrap_or(json!({"type": "string"}));
        let element = |index: usize| {
            let schema = first.and_then(|list| list.get(index)).unwrap_or(&items);
            self.make(schema, &place.element(index))
        };
        Value::Array((0..count.max(first.map_or(0, Vec::len))).map(element).collect())
    }
}

fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(word)) => Some(word.as_str()),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).find(|word| *word != "null"),
        _ => None,
    };
    let has = |keys: &[&str]| keys.iter().any(|key| schema.get(key).is_some());
    named.unwrap_or(if has(&["properties", "required", "minProperties"]) {
        "object"
    } else if has(&["items", "minItems", "prefixItems"]) {
        "array"
    } else if has(&["minimum", "maximum", "multipleOf"]) {
        "number"
    } else {
        "string"
    })
}

fn without(schema: &Value, key: &str) -> Value {
    let mut rest = schema.clone();
    if let Value::Object(object) = &mut rest {
        object.remove(key);
    }
    rest
}

/// Both at once: properties and required lists are united, the second wins elsewhere.
fn merged(first: &Value, second: &Value) -> Value {
    let (Value::Object(first), Value::Object(second)) = (first, second) else {
        return if second.is_object() { second.clone() } else { first.clone() };
    };
    let mut both = first.clone();
    for (key, value) in second {
        let merged = match (both.get(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if key == "properties" => Value::Object(
                old.iter().chain(new).map(|(name, schema)| (name.clone(), schema.clone())).collect(),
            ),
            (Some(Value::Array(old)), Value::Array(new)) if key == "required" => {
                Value::Array(old.iter().chain(new).cloned().collect())
            }
            _ => value.clone(),
        };
        both.insert(key.clone(), merged);
    }
    Value::Object(both)
}

fn number(schema: &Value) -> f64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
    let value = least.unwrap_or_else(|| most.map_or(1.0, |most| most.min(1.0)));
    match bound("multipleOf").filter(|step| *step > 0.0) {
        Some(step) => (value / step).ceil() * step,
        None => value,
    }
}

fn text(schema: &Value, place: &Place) -> String {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        return of_pattern(pattern, place.index);
    }
    let word = if place.name.is_empty() { "text" } else { place.name.as_str() };
    let mut text = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-02T03:04:05Z".to_owned(),
        Some("date") => "2026-01-02".to_owned(),
        Some("time") => "03:04:05Z".to_owned(),
        Some("email") => "rehearsal@example.org".to_owned(),
        Some("uri" | "uri-reference" | "iri") => "https://example.org/rehearsed".to_owned(),
        Some("uuid") => format!("00000000-0000-4000-8000-{:012}", place.index + 1),
        _ => format!("{word}-{}", place.index + 1),
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64).map(|number| number as usize);
    while text.chars().count() < bound("minLength").unwrap_or(0).min(100_000) {
        text.push('x');
    }
    text.chars().take(bound("maxLength").unwrap_or(usize::MAX)).collect()
}

/// A text of a simple pattern: literals, classes, counts, the first of alternatives. `index` goes
/// into the digits, so that the ids of a list differ.
fn of_pattern(pattern: &str, index: usize) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut walk = PatternWalk { chars: &chars, at: 0, index };
    walk.alternatives()
}

struct PatternWalk<'p> {
    chars: &'p [char],
    at: usize,
    index: usize,
}

impl PatternWalk<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.chars.get(self.at).copied();
        self.at += 1;
        next
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Up to the end or the closing bracket; only the first alternative is kept.
    fn alternatives(&mut self) -> String {
        let mut first = None;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            match c {
                ')' => break,
                '|' => {
                    self.at += 1;
                    first.get_or_insert(std::mem::take(&mut text));
                }
                _ => {
                    let atom = self.atom();
                    text.push_str(&atom.repeat(self.times()));
                }
            }
        }
        first.unwrap_or(text)
    }

    fn atom(&mut self) -> String {
        match self.next() {
            Some('^' | '$') | None => String::new(),
            Some('.') => "x".to_owned(),
            Some('[') => self.class(),
            Some('(') => {
                if self.peek() == Some('?') {
                    // `(?:` and its kin: what stands before the colon says nothing about the text.
                    while !matches!(self.next(), Some(':') | None) {}
                }
                let text = self.alternatives();
                self.at += 1;
                text
            }
            Some('\\') => self.next().map(|c| self.escaped(c)).unwrap_or_default().to_string(),
            Some(c) => c.to_string(),
        }
    }

    fn escaped(&self, c: char) -> char {
        match c {
            'd' => self.digit(),
            'w' | 'S' | 'D' => 'x',
            's' | 'W' => ' ',
            other => other,
        }
    }

    fn digit(&self) -> char {
        char::from(b'0' + ((self.index + 1) % 10) as u8)
    }

    fn class(&mut self) -> String {
        let negated = self.peek() == Some('^');
        let mut members: Vec<(char, char)> = Vec::new();
        if negated {
            self.at += 1;
        }
        while let Some(c) = self.next().filter(|c| *c != ']') {
            let from = if c == '\\' { self.next().map(|c| self.escaped(c)).unwrap_or(c) } else { c };
            if self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|c| *c != ']') {
                self.at += 1;
                let to = self.next().unwrap_or(from);
                members.push((from, to));
            } else {
                members.push((from, from));
            }
        }
        let has = |c: char| members.iter().any(|(from, to)| (*from..=*to).contains(&c));
        let wanted = |c: &char| has(*c) != negated;
        let candidates = [self.digit(), 'x', 'X', '1', '-', '_', ' '];
        let first = members.first().map(|(from, _)| *from).filter(|_| !negated);
        candidates.into_iter().find(wanted).or(first).map(String::from).unwrap_or_default()
    }

    /// How often the atom before is repeated at least.
    fn times(&mut self) -> usize {
        let count = match self.peek() {
            Some('*' | '?') => {
                self.at += 1;
                0
            }
            Some('+') => {
                self.at += 1;
                1
            }
            Some('{') => {
                self.at += 1;
                let mut digits = String::new();
                while let Some(c) = self.next().filter(|c| *c != '}') {
                    digits.push(c);
                }
                digits.split(',').next().and_then(|least| least.parse().ok()).unwrap_or(1)
            }
            _ => return 1,
        };
        if matches!(self.peek(), Some('?' | '+')) {
            self.at += 1;
        }
        count.min(10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_workflow::contract::{Contract, check};

    #[track_caller]
    fn holds(schema: Value) -> Value {
        let contract = Contract::from_value(&json!({"json": schema})).unwrap();
        let value = value_for(&schema);
        check(&contract, "a.json", value.to_string().as_bytes())
            .unwrap_or_else(|problems| panic!("{value}: {problems:?}"));
        value
    }

    #[test]
    fn what_it_makes_is_accepted() {
        holds(json!({"type": "string", "minLength": 12}));
        holds(json!({"type": "integer", "minimum": 3, "multipleOf": 5}));
        holds(json!({"enum": ["b", "a"]}));
        holds(json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string"}}));
        holds(
            json!({"type": ["null", "object"], "required": ["a"], "properties": {"a": {"format": "date-time", "type": "string"}}}),
        );
        holds(
            json!({"anyOf": [{"type": "object", "required": ["x"], "properties": {"x": {"const": 1}}}, {"type": "null"}]}),
        );
        holds(
            json!({"allOf": [{"required": ["a"], "properties": {"a": {"type": "number"}}}, {"required": ["b"], "properties": {"b": {"type": "boolean"}}}]}),
        );
        holds(json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}));
    }

    #[test]
    fn a_list_of_tasks_has_different_ids_and_no_dependencies() {
        let value = holds(json!({
            "type": "object", "required": ["tasks"],
            "properties": {"tasks": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/task"}}},
            "$defs": {"task": {"type": "object", "required": ["id", "depends_on", "title"], "additionalProperties": false, "properties": {
                "id": {"type": "string", "pattern": "^T-[0-9]{2}$"}, "title": {"type": "string"},
                "depends_on": {"type": "array", "items": {"type": "string"}}}}}
        }));
        assert_eq!(value["tasks"][0]["id"], "T-11");
        assert_eq!(value["tasks"][1]["id"], "T-22");
        assert_eq!(value["tasks"][0]["depends_on"], json!([]));
    }

    #[test]
    fn patterns_of_ids() {
        for pattern in [
            "^REQ-\\d+$",
            "^(feat|fix)/[a-z][a-z0-9-]*$",
            "^[A-Z]{2,4}-[0-9]{3}$",
            "^v\\d+\\.\\d+(\\.\\d+)?$",
            "^[^/ ]+$",
            "^(?:a|b)+$",
        ] {
            holds(json!({"type": "string", "pattern": pattern}));
        }
    }
}
