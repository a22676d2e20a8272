//! JSON into template values and back, and the names a template sees.

use std::{collections::BTreeMap, sync::Arc};

use minijinja::value::{Value, ValueKind};
use serde_json::{Map, Number, Value as Json};

use super::filters::{VALUE_BYTES_MAX, size};

/// The names visible to a template. Cloning is cheap; binding a name makes a new scope.
#[derive(Clone, Debug)]
pub struct Scope {
    names: Arc<BTreeMap<String, Value>>,
}

/// One element of a list, in the form in which a scope keeps it.
#[derive(Clone, Debug)]
pub struct Item(Value);

impl Scope {
    /// The keys of a JSON object as names; any other document has none.
    pub fn new(context: &Json) -> Self {
        let names = match context {
            Json::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), from_json(value))).collect()
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                BTreeMap::new()
            }
        };
        Self { names: Arc::new(names) }
    }

    /// The same names and one more, which hides an outer one.
    pub fn bind(&self, name: &str, item: Item) -> Self {
        let mut bound = self.clone();
        Arc::make_mut(&mut bound.names).insert(name.to_owned(), item.0);
        bound
    }

    pub fn bind_json(&self, name: &str, value: &Json) -> Self {
        self.bind(name, Item(from_json(value)))
    }

    pub(super) fn root(&self) -> Value {
        Value::from_dyn_object(Arc::clone(&self.names))
    }

    /// The first segment of `path` that is not there, and what is there at its level.
    pub(super) fn missing<'p>(&self, path: &'p [String]) -> Option<(&'p str, Vec<String>)> {
        let mut level = self.root();
        for segment in path {
            let next = level.get_attr(segment).ok()?;
            if next.is_undefined() {
                let known = level.try_iter().ok()?.filter_map(|key| key.as_str().map(str::to_owned));
                let known = if level.kind() == ValueKind::Map { known.collect() } else { Vec::new() };
                return Some((segment, known));
            }
            level = next;
        }
        None
    }
}

impl Item {
    /// The parts of an element that is itself a list, for `a, b in pairs`.
    pub fn parts(&self) -> Option<Vec<Item>> {
        items(&self.0)
    }
}

/// Why a template value has no JSON form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotJson {
    #[error("a value inside the result is not defined")]
    Undefined,
    #[error("{0} is not a finite number that JSON can hold")]
    Number(String),
    #[error("a {0} has no JSON form")]
    Kind(ValueKind),
    #[error("{0}")]
    Invalid(String),
    #[error("the result has more than {VALUE_BYTES_MAX} bytes")]
    TooLarge,
}

pub(super) fn items(value: &Value) -> Option<Vec<Item>> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Some(value.try_iter().ok()?.map(Item).collect()),
        _ => None,
    }
}

fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => from_number(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(values) => Value::from(values.iter().map(from_json).collect::<Vec<_>>()),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(key, value)| (Value::from(key.as_str()), from_json(value))))
        }
    }
}

fn from_number(number: &Number) -> Value {
    if let Some(value) = number.as_i64() {
        return Value::from(value);
    }
    if let Some(value) = number.as_u64() {
        return Value::from(value);
    }
    // Without arbitrary precision every number is one of the three.
    number.as_f64().map_or(Value::from(()), Value::from)
}

pub(super) fn to_json(value: &Value) -> Result<Json, NotJson> {
    // Here each is what it was only called before: one text may be in a list many times.
    if size(value) > VALUE_BYTES_MAX {
        return Err(NotJson::TooLarge);
    }
    json(value)
}

fn json(value: &Value) -> Result<Json, NotJson> {
    match value.kind() {
        ValueKind::Undefined => Err(NotJson::Undefined),
        ValueKind::None => Ok(Json::Null),
        ValueKind::Bool => Ok(Json::Bool(value.is_true())),
        ValueKind::Number => to_number(value),
        ValueKind::String => Ok(Json::String(value.to_string())),
        ValueKind::Seq | ValueKind::Iterable => {
            elements(value)?.iter().map(json).collect::<Result<Vec<_>, _>>().map(Json::Array)
        }
        ValueKind::Map => to_object(value),
        kind => Err(NotJson::Kind(kind)),
    }
}

fn elements(value: &Value) -> Result<Vec<Value>, NotJson> {
    let elements = value.try_iter().map_err(|error| NotJson::Invalid(error.to_string()))?;
    elements.checked().collect::<Result<_, _>>().map_err(|error| NotJson::Invalid(error.to_string()))
}

fn to_object(value: &Value) -> Result<Json, NotJson> {
    let mut fields = Map::new();
    for key in elements(value)? {
        let field = value.get_item(&key).map_err(|error| NotJson::Invalid(error.to_string()))?;
        fields.insert(key.to_string(), json(&field)?);
    }
    Ok(Json::Object(fields))
}

fn to_number(value: &Value) -> Result<Json, NotJson> {
    let refused = || NotJson::Number(value.to_string());
    if value.is_integer() {
        if let Some(number) = value.as_i64() {
            return Ok(Json::from(number));
        }
        return u64::try_from(value.clone()).map(Json::from).map_err(|_| refused());
    }
    let number = f64::try_from(value.clone()).map_err(|_| refused())?;
    Number::from_f64(number).map(Json::Number).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_comes_back_as_it_went() {
        let documents = [
            json!({"z": 1, "a": {"y": [null, true, -1, u64::MAX, 1.5, 1.0, 1e300]}, "": ""}),
            json!(["\u{0}\u{1f600}\"\\\n", i64::MIN]),
        ];
        for document in documents {
            let back = to_json(&from_json(&document)).unwrap();
            assert_eq!(back.to_string(), document.to_string());
        }
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        assert_eq!(to_json(&Value::UNDEFINED), Err(NotJson::Undefined));
        assert!(matches!(to_json(&Value::from(f64::NAN)), Err(NotJson::Number(_))));
        assert!(matches!(to_json(&Value::from(u128::MAX)), Err(NotJson::Number(_))));
    }
}
