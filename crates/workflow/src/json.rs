//! JSON as agents write it, read strictly: a key that appears twice is an error, not "the last one".
//!
//! serde_json keeps the last of two equal keys; `{"approved": false, "approved": true}` must not pass.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads one JSON document; the message names the place.
pub fn parse_json_value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|Strict(value)| value)
}

/// Reads the JSON value at the beginning of a text and says how long it is. Nesting beyond the
/// library's limit of 128 is an error, which also bounds the work on hostile text.
pub fn parse_json_prefix(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    match stream.next() {
        Some(Ok(Strict(value))) => Ok((value, stream.byte_offset())),
        Some(Err(error)) => Err(error),
        None => Err(serde_json::Error::custom("there is no value")),
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let Strict(value) = access.next_value()?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{key}` appears twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_every_kind_of_value() {
        let text = r#"{"a": [1, -1, 1.5, "x\n\"", true, null], "b": {}}"#;
        let value = parse_json_value(text).unwrap();
        assert_eq!(value, json!({"a": [1, -1, 1.5, "x\n\"", true, null], "b": {}}));
    }

    #[test]
    fn a_repeated_key_is_an_error() {
        let error = parse_json_value(r#"{"approved": false, "approved": true}"#).unwrap_err();
        assert!(error.to_string().contains("`approved` appears twice"), "{error}");
    }
}
