//! Lists of fan-outs at work, looked at again: what they say now against what the fan-out began with (J-41).

use gatewright_core::{
    event::About,
    fact::{Item, ListNow},
    ids::{ArtifactName, ContentHash, StepId},
    plan::{FanOut, Kind},
    state::{FanOutState, Phase, State},
    validate_items,
};
use serde_json::Value;

use super::facts::{DiskFailure, NoList, Source, missing};
use crate::run_context::{RunContext, hash_bytes};

/// What a list says now.
pub struct Look {
    pub name: ArtifactName,
    /// The file as it is: who has seen this needs not look again.
    pub found: ContentHash,
    pub now: ListNow,
    /// In words, where it is not what it was.
    pub what: String,
}

/// Fan-outs at work, each with the list it works on.
pub fn at_work(state: &State) -> Vec<(StepId, ContentHash)> {
    let open = |step: &StepId| state.steps.get(step).is_some_and(|own| own.phase == Phase::Open);
    let open = state.fan_outs.iter().filter(|(step, _)| open(step));
    open.map(|(step, fan_out)| (step.clone(), fan_out.hash.clone())).collect()
}

/// Looks at the list of one fan-out, unless the file is as it was `seen`. A disk that fails is found by whoever
/// needs it.
pub fn look(context: &RunContext, state: &State, step: &StepId, seen: Option<&ContentHash>) -> Option<Look> {
    let Kind::FanOut(definition) = &state.definition(&context.frozen.plan, step)?.kind else { return None };
    let known = state.fan_outs.get(step)?;
    let source = Source::of(context, state, step).ok()?;
    let file = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (found, items) = match source.read(context) {
        Ok(bytes) => {
            let found = hash_bytes(&bytes);
            if Some(&found) == seen {
                return None;
            }
            (found, listed(context, &source, definition, bytes))
        }
        Err(NoList::Disk(_)) => return None,
        Err(NoList::Edited(..)) => (missing(), Err("it is gone".to_owned())),
        Err(NoList::Unusable(problem)) => (missing(), Err(problem)),
    };
    let of = format!("`{file}`, the list of `{step}`,");
    let (now, what) = match items {
        Err(problem) => {
            (ListNow::Unusable, format!("{of} cannot be used any more since it began: {problem}"))
        }
        Ok((_, hash)) if hash == known.hash => (ListNow::AsItBegan, String::new()),
        Ok((items, _)) => {
            let what = format!("{of} was changed since it began ({})", difference(known, &items));
            (ListNow::Changed { found: found.clone(), what: what.clone() }, what)
        }
    };
    Some(Look { name: definition.over.clone(), found, now, what }).filter(|look| Some(&look.found) != seen)
}

/// What a question about a list is about, as it is at this moment.
pub fn seen(
    context: &RunContext,
    state: &State,
    step: &StepId,
    about: &About,
) -> Result<Option<(ArtifactName, ContentHash)>, DiskFailure> {
    let (About::List { name, .. }, Ok(source)) = (about, Source::of(context, state, step)) else {
        return Ok(None);
    };
    let found = match source.read(context) {
        Ok(bytes) => hash_bytes(&bytes),
        Err(NoList::Disk(failure)) => return Err(failure),
        Err(NoList::Edited(..) | NoList::Unusable(_)) => missing(),
    };
    Ok(Some((name.clone(), found)))
}

/// The items, if a fan-out could begin with them.
fn listed(
    context: &RunContext,
    source: &Source,
    definition: &FanOut,
    bytes: Vec<u8>,
) -> Result<(Vec<Item>, ContentHash), String> {
    let (elements, hash): (Vec<Value>, _) = source.elements(bytes)?;
    let items = source.items(context, &elements)?;
    validate_items(definition, &items)?;
    Ok((items, hash))
}

fn difference(known: &FanOutState, items: &[Item]) -> String {
    let is_listed = |key: &&String| items.iter().any(|item| item.key == **key);
    let new = items.iter().map(|item| &item.key).filter(|key| !known.items.contains_key(*key));
    let gone = known.order.iter().filter(|key| !is_listed(key));
    let other = items.iter().filter(|item| {
        let then = known.items.get(&item.key);
        then.is_some_and(|then| then.element != item.element || then.needs != item.needs)
    });
    let kinds: [(&str, Vec<String>); 3] = [
        ("new", new.cloned().collect()),
        ("gone", gone.cloned().collect()),
        ("changed", other.map(|item| item.key.clone()).collect()),
    ];
    let words: Vec<String> = kinds
        .into_iter()
        .filter(|(_, keys)| !keys.is_empty())
        .map(|(what, keys)| format!("{what}: {}", crate::scope::listed(&keys)))
        .collect();
    if words.is_empty() { "another order".to_owned() } else { words.join("; ") }
}
