//! Lists of fan-outs: files like those that planners write and people edit. The engine reads them with its own code.

use std::{collections::BTreeMap, path::PathBuf, sync::mpsc::channel};

use gatewright_core::{
    effect::Effect,
    event::Cause,
    fact::Item,
    ids::{ContentHash, StepId},
    input::Input,
    plan::Kind,
    state::State,
};
use gatewright_host::{
    disk::SimulatedDisk,
    perform::facts,
    run_context::{RunContext, hash_bytes},
};
use serde_json::{Value, json};

use crate::fortune::Fortune;

#[derive(Default)]
pub struct Lists {
    /// Elements that were written once, by their hash: the same item is the same element again.
    elements: BTreeMap<ContentHash, Value>,
}

impl Lists {
    /// What reading the list of a fan-out says; nothing, if the disk failed meanwhile. Its author has just written it,
    /// unless it is there because a person adopted it.
    pub fn read(
        &mut self,
        context: &RunContext,
        state: &State,
        step: &StepId,
        disk: &SimulatedDisk,
        fortune: &mut Fortune,
    ) -> Option<Input> {
        let adopted = matches!(state.steps.get(step)?.cause.as_deref(), Some(Cause::ListAdopted { .. }));
        let path = path_of(context, state, step)?;
        if !adopted || disk.peek(&path).is_none() {
            let bytes = self.file(&fortune.list(state));
            disk.overwrite(&path, &bytes);
        }
        let (results, arrived) = channel();
        let effect = Effect::ReadList { step: step.clone() };
        facts::read_list(context, state, step, &effect, &results).ok()?;
        arrived.try_recv().ok().map(|arrival| arrival.input)
    }

    /// Somebody edits the list of a fan-out at work.
    pub fn edit(&mut self, context: &RunContext, state: &State, disk: &SimulatedDisk, fortune: &mut Fortune) {
        let open: Vec<&StepId> = state.queues.fan_outs.iter().collect();
        let Some(path) = fortune.random.pick(&open).and_then(|step| path_of(context, state, step)) else {
            return;
        };
        let bytes = self.file(&fortune.list(state));
        disk.overwrite(&path, &bytes);
    }

    fn file(&mut self, items: &Result<Vec<Item>, String>) -> Vec<u8> {
        let elements = match items {
            Ok(items) => items.iter().map(|item| self.element(item)).collect(),
            Err(problem) => json!(problem),
        };
        elements.to_string().into_bytes()
    }

    fn element(&mut self, item: &Item) -> Value {
        let known = item.element.as_ref().and_then(|hash| self.elements.get(hash));
        if let Some(known) = known.filter(|known| known["depends_on"] == json!(item.needs)) {
            return known.clone();
        }
        let word = item.element.as_ref().map(|hash| hash.0.clone());
        let element = json!({"id": item.key, "depends_on": item.needs, "word": word});
        let bytes = serde_json::to_vec(&element).unwrap_or_default();
        self.elements.insert(hash_bytes(&bytes), element.clone());
        element
    }
}

/// A list that is written once, without what was written before it.
pub fn file(items: &Result<Vec<Item>, String>) -> Vec<u8> {
    Lists::default().file(items)
}

pub fn path_of(context: &RunContext, state: &State, step: &StepId) -> Option<PathBuf> {
    match &state.definition(&context.frozen.plan, step)?.kind {
        Kind::FanOut(fan_out) => Some(context.meta.run_dir.join(fan_out.over.as_str())),
        _ => None,
    }
}
