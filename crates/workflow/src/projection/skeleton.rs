//! The content of a projected file before the run is known: JSON in which some objects are
//! instructions. It is parsed once into a tree, which is checked without and filled in with a run.

use serde_json::{Map, Value};

use crate::template::{Scope, TemplateProblem, Templates};

/// Keys that belong to documents (JSON Schema, mostly) and are kept as they are.
const LITERAL_KEYS: &[&str] = &[
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "$comment",
    "$anchor",
    "$vocabulary",
    "$dynamicRef",
    "$dynamicAnchor",
];
/// Files deeper than this are a mistake, and our own readers refuse them.
const DEPTH_MAX: usize = 48;

/// What is wrong at one place of a skeleton; the place is a JSON pointer into it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {reason}")]
pub struct SkeletonProblem {
    pub pointer: String,
    #[source]
    pub reason: SkeletonReason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkeletonReason {
    #[error(transparent)]
    Template(#[from] TemplateProblem),
    #[error("{0}")]
    Shape(String),
}

/// A parsed skeleton.
#[derive(Clone, Debug, PartialEq)]
pub enum Skeleton {
    Literal(Value),
    /// A text with `{{` or `{%` in it.
    Text(String),
    /// `{"$expr": …}`: the value itself, with its type.
    Expression(String),
    /// `{"$if": …, "then": …, "else": …}`; without `else` the place stays empty.
    Choice {
        condition: String,
        then: Box<Place>,
        otherwise: Option<Box<Place>>,
    },
    /// `{"$for": "name in list", "each": …}`, with `$key` an object instead of a list.
    Each {
        names: Vec<String>,
        list: String,
        key: Option<String>,
        each: Box<Place>,
    },
    List(Vec<Place>),
    /// Keys with `{{` in them are templates too.
    Object(Vec<(String, Place)>),
}

/// A part of a skeleton and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub pointer: String,
    pub skeleton: Skeleton,
}

impl Place {
    /// Reads a skeleton; every malformed instruction in it is named.
    pub fn parse(content: &Value) -> Result<Place, Vec<SkeletonProblem>> {
        let mut problems = Vec::new();
        let place = parse(content, String::new(), 0, &mut problems);
        if problems.is_empty() { Ok(place) } else { Err(problems) }
    }

    /// Syntax errors and unknown filters of every template and expression.
    pub fn check(&self, templates: &Templates) -> Vec<SkeletonProblem> {
        let mut problems = Vec::new();
        self.collect(templates, &mut problems);
        problems
    }

    /// The value for one run; `None` where a choice without `else` does not hold.
    pub fn fill(&self, templates: &Templates, scope: &Scope) -> Result<Option<Value>, SkeletonProblem> {
        match &self.skeleton {
            Skeleton::Literal(value) => Ok(Some(value.clone())),
            Skeleton::Text(text) => {
                let text = self.named(templates.render_in(&self.name(), text, scope))?;
                Ok(Some(Value::String(text)))
            }
            Skeleton::Expression(expression) => {
                self.named(templates.evaluate_in(&self.name(), expression, scope)).map(Some)
            }
            Skeleton::Choice { condition, then, otherwise } => {
                if self.named(templates.holds_in(&self.name(), condition, scope))? {
                    then.fill(templates, scope)
                } else {
                    otherwise.as_ref().map_or(Ok(None), |otherwise| otherwise.fill(templates, scope))
                }
            }
            Skeleton::Each { names, list, key, each } => {
                self.fill_each(templates, scope, (names, list), key.as_deref(), each).map(Some)
            }
            Skeleton::List(elements) => {
                let filled = elements.iter().filter_map(|element| element.fill(templates, scope).transpose());
                filled.collect::<Result<Vec<_>, _>>().map(|values| Some(Value::Array(values)))
            }
            Skeleton::Object(fields) => self.fill_object(templates, scope, fields).map(Some),
        }
    }

    fn fill_object(
        &self,
        templates: &Templates,
        scope: &Scope,
        fields: &[(String, Place)],
    ) -> Result<Value, SkeletonProblem> {
        let mut object = Map::new();
        for (key, place) in fields {
            let key = if is_template(key) {
                self.named(templates.render_in(&self.name(), key, scope))?
            } else {
                key.clone()
            };
            if let Some(value) = place.fill(templates, scope)? {
                self.insert(&mut object, key, value)?;
            }
        }
        Ok(Value::Object(object))
    }

    fn fill_each(
        &self,
        templates: &Templates,
        scope: &Scope,
        (names, list): (&[String], &str),
        key: Option<&str>,
        each: &Place,
    ) -> Result<Value, SkeletonProblem> {
        let items = self.named(templates.list_in(&self.name(), list, scope))?;
        let (mut array, mut object) = (Vec::new(), Map::new());
        for item in items {
            let scope = match names {
                [name] => scope.bind(name, item),
                names => {
                    let parts = item.parts().filter(|parts| parts.len() == names.len());
                    let parts = parts.ok_or_else(|| {
                        self.shape(format!("an element of `{list}` has not {} parts", names.len()))
                    })?;
                    names.iter().zip(parts).fold(scope.clone(), |scope, (name, part)| scope.bind(name, part))
                }
            };
            let Some(value) = each.fill(templates, &scope)? else { continue };
            match key {
                None => array.push(value),
                Some(key) => {
                    let key = self.named(templates.evaluate_in(&self.name(), key, &scope))?;
                    self.insert(&mut object, self.key_text(&key)?, value)?;
                }
            }
        }
        Ok(if key.is_some() { Value::Object(object) } else { Value::Array(array) })
    }

    fn key_text(&self, key: &Value) -> Result<String, SkeletonProblem> {
        match key {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.shape(format!("`$key` wants a text, found {key}")))
            }
        }
    }

    fn insert(
        &self,
        object: &mut Map<String, Value>,
        key: String,
        value: Value,
    ) -> Result<(), SkeletonProblem> {
        if object.contains_key(&key) {
            return Err(self.shape(format!("the key `{key}` appears twice")));
        }
        object.insert(key, value);
        Ok(())
    }

    fn collect(&self, templates: &Templates, problems: &mut Vec<SkeletonProblem>) {
        let expression = |expression: &str| templates.check_expression(&self.name(), expression);
        let mut found = Vec::new();
        match &self.skeleton {
            Skeleton::Literal(_) => {}
            Skeleton::Text(text) => found = templates.check(&self.name(), text),
            Skeleton::Expression(text) => found = expression(text),
            Skeleton::Choice { condition, then, otherwise } => {
                found = expression(condition);
                then.collect(templates, problems);
                if let Some(otherwise) = otherwise {
                    otherwise.collect(templates, problems);
                }
            }
            Skeleton::Each { names: _, list, key, each } => {
                found = expression(list);
                found.extend(key.iter().flat_map(|key| expression(key)));
                each.collect(templates, problems);
            }
            Skeleton::List(elements) => elements.iter().for_each(|place| place.collect(templates, problems)),
            Skeleton::Object(fields) => {
                for (key, place) in fields {
                    if is_template(key) {
                        found.extend(templates.check(&self.name(), key));
                    }
                    place.collect(templates, problems);
                }
            }
        }
        problems.extend(found.into_iter().map(|problem| self.template(problem)));
    }

    /// What template problems call this place.
    fn name(&self) -> String {
        if self.pointer.is_empty() { "content".to_owned() } else { format!("content{}", self.pointer) }
    }

    fn named<T>(&self, result: Result<T, TemplateProblem>) -> Result<T, SkeletonProblem> {
        result.map_err(|problem| self.template(problem))
    }

    fn template(&self, problem: TemplateProblem) -> SkeletonProblem {
        SkeletonProblem { pointer: self.pointer.clone(), reason: SkeletonReason::Template(problem) }
    }

    fn shape(&self, message: String) -> SkeletonProblem {
        SkeletonProblem { pointer: self.pointer.clone(), reason: SkeletonReason::Shape(message) }
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn parse(content: &Value, pointer: String, depth: usize, problems: &mut Vec<SkeletonProblem>) -> Place {
    if depth > DEPTH_MAX {
        let reason = SkeletonReason::Shape(format!("deeper than {DEPTH_MAX} levels"));
        problems.push(SkeletonProblem { pointer: pointer.clone(), reason });
        return Place { pointer, skeleton: Skeleton::Literal(Value::Null) };
    }
    let skeleton = match content {
        Value::Null | Value::Bool(_) | Value::Number(_) => Skeleton::Literal(content.clone()),
        Value::String(text) if is_template(text) => Skeleton::Text(text.clone()),
        Value::String(_) => Skeleton::Literal(content.clone()),
        Value::Array(elements) => {
            let places = elements.iter().enumerate();
            Skeleton::List(
                places
                    .map(|(index, element)| parse(element, format!("{pointer}/{index}"), depth + 1, problems))
                    .collect(),
            )
        }
        Value::Object(fields) => {
            let mut reader = Reader { fields, pointer: &pointer, depth, problems };
            reader.object()
        }
    };
    Place { pointer, skeleton }
}

/// Reads one object, which is an instruction if it has a key with `$` that we know.
struct Reader<'r> {
    fields: &'r Map<String, Value>,
    pointer: &'r str,
    depth: usize,
    problems: &'r mut Vec<SkeletonProblem>,
}

impl Reader<'_> {
    fn object(&mut self) -> Skeleton {
        if self.fields.contains_key("$expr") {
            self.only(&["$expr"]);
            return Skeleton::Expression(self.expression("$expr"));
        }
        if self.fields.contains_key("$if") {
            self.only(&["$if", "then", "else"]);
            let otherwise = self.fields.contains_key("else").then(|| Box::new(self.place("else")));
            let condition = self.expression("$if");
            return Skeleton::Choice { condition, then: Box::new(self.place("then")), otherwise };
        }
        if self.fields.contains_key("$for") {
            self.only(&["$for", "$key", "each"]);
            let key = self.fields.contains_key("$key").then(|| self.expression("$key"));
            let (names, list) = self.each();
            return Skeleton::Each { names, list, key, each: Box::new(self.place("each")) };
        }
        let fields = self.fields;
        for key in fields.keys().filter(|key| key.starts_with('$') && !LITERAL_KEYS.contains(&key.as_str())) {
            self.problem(format!("there is no instruction `{key}`; known are `$expr`, `$if` and `$for`"));
        }
        Skeleton::Object(fields.keys().map(|key| (key.clone(), self.place(key))).collect())
    }

    fn each(&mut self) -> (Vec<String>, String) {
        let text = self.expression("$for");
        let Some((names, list)) = text.split_once(" in ") else {
            self.problem(format!("`$for` wants `name in list`, found `{text}`"));
            return (Vec::new(), String::new());
        };
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
        for name in &names {
            let mut characters = name.chars();
            let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
            if !first || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.problem(format!("`{name}` is not a name"));
            }
        }
        (names, list.trim().to_owned())
    }

    fn only(&mut self, known: &[&str]) {
        let fields = self.fields;
        for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
            self.problem(format!("`{key}` does not belong beside `{}`", known[0]));
        }
    }

    fn expression(&mut self, key: &str) -> String {
        match self.fields.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(other) => {
                self.problem(format!("`{key}` wants an expression in a text, found {other}"));
                String::new()
            }
            None => String::new(),
        }
    }

    fn place(&mut self, key: &str) -> Place {
        let pointer = format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"));
        if let Some(value) = self.fields.get(key) {
            return parse(value, pointer, self.depth + 1, self.problems);
        }
        self.problem(format!("`{key}` is missing"));
        Place { pointer, skeleton: Skeleton::Literal(Value::Null) }
    }

    fn problem(&mut self, message: String) {
        let reason = SkeletonReason::Shape(message);
        self.problems.push(SkeletonProblem { pointer: self.pointer.to_owned(), reason });
    }
}
