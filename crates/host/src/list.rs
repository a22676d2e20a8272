//! The list of a fan-out: what is in its file, as items, and whether anybody could begin with them. Knows no run and no disk.

use gatewright_core::{fact::Item, ids::ContentHash, plan::FanOut, validate_items};
use gatewright_workflow::{frozen::ListText, yaml::parse_yaml_within};
use serde_json::Value;

use crate::{
    fault,
    mask::Masks,
    run_context::{hash_bytes, text_of},
};

/// A fan-out that begins with what its author writes.
#[derive(Clone, Debug)]
pub struct Begun {
    pub fan_out: FanOut,
    pub shape: ListText,
}

impl Begun {
    /// Why it could not begin with this: said to the author at once, before anybody is asked or anything rests on it.
    pub fn problem(&self, bytes: &[u8]) -> Option<String> {
        let items = elements(&self.shape, bytes.to_vec())
            .and_then(|(elements, _)| items(&self.shape, &Masks::default(), &elements));
        let problem = items.and_then(|items| validate_items(&self.fan_out, &items)).err()?;
        Some(format!("`{}` cannot be worked on: {problem}", self.fan_out.over))
    }
}

/// Where the list is, if its fan-out says nothing of it.
pub fn shape(said: Option<ListText>) -> ListText {
    said.unwrap_or_else(|| ListText {
        pointer: "?".to_owned(),
        key: "id".to_owned(),
        needs_of: Some("depends_on".to_owned()),
    })
}

/// The elements of the list, and the hash of them all.
pub fn elements(shape: &ListText, bytes: Vec<u8>) -> Result<(Vec<Value>, ContentHash), String> {
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let document: Value = parse_yaml_within(&text, &fault::yaml_limits())
        .map_err(|problem| format!("line {}: {}", problem.line, problem.message))?;
    let elements = shape.find(&document).ok_or_else(|| format!("there is no list at `{}`", shape.pointer))?;
    let bytes = serde_json::to_vec(elements).map_err(|error| error.to_string())?;
    Ok((elements.clone(), hash_bytes(&bytes)))
}

/// What they are called by names steps, folders and branches, and is shown everywhere: it may be no secret.
pub fn items(shape: &ListText, masks: &Masks, elements: &[Value]) -> Result<Vec<Item>, String> {
    elements.iter().enumerate().map(|(place, element)| item(shape, masks, place, element)).collect()
}

fn item(shape: &ListText, masks: &Masks, place: usize, element: &Value) -> Result<Item, String> {
    let key = text_of(element).or_else(|| element.get(&shape.key).and_then(text_of));
    let key = key.ok_or_else(|| format!("item {} has no `{}`", place + 1, shape.key))?;
    let needs = shape.needs_of.as_ref().and_then(|field| element.get(field));
    let needs = match needs {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().filter_map(text_of).collect(),
        Some(other) => text_of(other).into_iter().collect(),
    };
    if std::iter::once(&key).chain(&needs).any(|name| masks.finds_in(name)) {
        return Err(format!(
            "the `{}` of item {} looks like a secret; call it something else",
            shape.key,
            place + 1
        ));
    }
    let element = serde_json::to_vec(element).ok().map(|bytes| hash_bytes(&bytes));
    Ok(Item { key, needs, element })
}
