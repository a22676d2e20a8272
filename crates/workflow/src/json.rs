//! JSON as agents write it, read strictly: a key that appears twice is an error, not "the last one".
//!
//! serde_json keeps the last of two equal keys; `{"approved": false, "approved": true}` must not pass.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::yaml::Limits;

/// Lists and maps inside each other, as in YAML.
const LEVELS_MAX: usize = Limits::USUAL.depth;

/// Reads one JSON document; the message names the place.
pub fn parse_json_value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|Strict(value)| value)
}

/// Reads the JSON value at the beginning of a text and says how long it is. Nesting beyond the limit
/// is an error, which also bounds the work on hostile text.
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
        Level(0).deserialize(deserializer).map(Strict)
    }
}

/// A value with so many lists and maps around it.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn inside<E: serde::de::Error>(self) -> Result<Level, E> {
        if self.0 < LEVELS_MAX {
            return Ok(Level(self.0 + 1));
        }
        Err(E::custom(format_args!("nested deeper than {LEVELS_MAX} levels, which are read at most")))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
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
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(inside)?;
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
    fn as_deep_as_yaml_and_no_deeper() {
        let lists = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let maps = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        for nested in [&lists as &dyn Fn(usize) -> String, &maps] {
            let text = nested(64);
            assert!(parse_json_value(&text).is_ok() && crate::yaml::parse_yaml_value(&text).is_ok());
            for text in [nested(65), nested(100_000)] {
                let error = parse_json_value(&text).unwrap_err().to_string();
                assert!(error.contains("nested deeper than 64 levels, which are read at most"), "{error}");
                assert!(crate::yaml::parse_yaml_value(&text).is_err());
                let error = parse_json_prefix(&text).unwrap_err().to_string();
                assert!(error.contains("nested deeper than 64 levels"), "{error}");
            }
        }
    }

    #[test]
    fn a_repeated_key_is_an_error() {
        let error = parse_json_value(r#"{"approved": false, "approved": true}"#).unwrap_err();
        assert!(error.to_string().contains("`approved` appears twice"), "{error}");
    }
}
