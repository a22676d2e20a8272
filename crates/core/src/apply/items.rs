//! Fan-outs: a list is worked on, item by item.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    event::ItemEnd,
    fact::Item,
    ids::{ContentHash, StepId, Timestamp},
    plan::{Kind, Plan},
    state::{FanOutState, ItemState, Phase, ScopeId, State},
};

impl State {
    pub(super) fn fan_out_started(
        &mut self,
        plan: &Plan,
        step: &StepId,
        hash: &ContentHash,
        items: &[Item],
        at: Timestamp,
    ) {
        let waves = self
            .definition(plan, step)
            .is_some_and(|definition| matches!(&definition.kind, Kind::FanOut(fan_out) if fan_out.waves));
        let states = item_states(items, waves);
        let mut ready: VecDeque<String> =
            items.iter().filter(|item| item.needs.is_empty()).map(|item| item.key.clone()).collect();
        if waves {
            ready.make_contiguous().sort_by_key(|key| states.get(key).map_or(0, |item| item.wave));
        }
        let mut wave_left = BTreeMap::new();
        for item in states.values() {
            *wave_left.entry(item.wave).or_insert(0) += 1;
        }
        let fan_out = FanOutState {
            hash: hash.clone(),
            items: states,
            order: items.iter().map(|item| item.key.clone()).collect(),
            ready,
            doomed: VecDeque::new(),
            wave_left,
            open: 0,
            ended: 0,
            list_asked: None,
        };
        self.fan_outs.insert(step.clone(), fan_out);
        self.set_phase(plan, step, Phase::Open, at);
        self.queues.fan_outs.insert(step.clone());
    }

    pub(super) fn item_opened(&mut self, plan: &Plan, step: &StepId, key: &str, at: Timestamp) {
        self.take_aside(step, key);
        if !self.item_begins(step, key) {
            return;
        }
        let body =
            self.definition(plan, step).map(|definition| definition.body().to_vec()).unwrap_or_default();
        let scope = ScopeId(format!("{step}/{key}"));
        self.instantiate(plan, &scope, Some(step), Some(key), &body, at);
    }

    /// The item leaves the line of those that wait to be opened.
    pub(super) fn item_begins(&mut self, step: &StepId, key: &str) -> bool {
        let Some(fan_out) = self.fan_outs.get_mut(step) else { return false };
        // The scheduler opens the first one; anything else would be a journal of another program.
        if fan_out.ready.front().is_some_and(|first| first == key) {
            fan_out.ready.pop_front();
        } else {
            fan_out.ready.retain(|other| other != key);
        }
        fan_out.open += 1;
        if let Some(item) = fan_out.items.get_mut(key) {
            item.opened = true;
        }
        true
    }

    pub(super) fn item_ended(&mut self, step: &StepId, key: &str, end: &ItemEnd) {
        let Some(fan_out) = self.fan_outs.get_mut(step) else { return };
        let Some(item) = fan_out.items.get_mut(key) else { return };
        if item.opened {
            fan_out.open = fan_out.open.saturating_sub(1);
        }
        fan_out.ended += 1;
        item.end = Some(end.clone());
        if let Some(left) = fan_out.wave_left.get_mut(&item.wave) {
            *left = left.saturating_sub(1);
        }
        for dependent in item.dependents.clone() {
            let Some(other) = fan_out.items.get_mut(&dependent) else { continue };
            if *end == ItemEnd::Passed {
                other.unmet = other.unmet.saturating_sub(1);
                if other.unmet == 0 && other.end.is_none() && !other.opened {
                    fan_out.ready.push_back(dependent);
                }
            } else if !other.opened && other.end.is_none() && !fan_out.doomed.contains(&dependent) {
                fan_out.doomed.push_back(dependent);
            }
        }
        fan_out.doomed.retain(|other| other != key);
        self.queues.quiet.remove(&ScopeId(format!("{step}/{key}")));
        self.queues.fan_outs.insert(step.clone());
    }

    /// Something in an item that had ended runs again. What was given up because of it waits again.
    pub(super) fn reopen_item(&mut self, fan: &StepId, key: &str) {
        let Some(fan_out) = self.fan_outs.get_mut(fan) else { return };
        let Some(item) = fan_out.items.get(key) else { return };
        let Some(end) = item.end.clone() else { return };
        let dependents = item.dependents.clone();
        fan_out.reopen(key);
        if end == ItemEnd::Passed {
            for dependent in dependents {
                if let Some(other) = fan_out.items.get_mut(&dependent) {
                    other.unmet += 1;
                    fan_out.ready.retain(|waiting| *waiting != dependent);
                }
            }
            return;
        }
        let mut queue = dependents;
        let mut again = Vec::new();
        while let Some(next) = queue.pop() {
            let Some(other) = fan_out.items.get(&next) else { continue };
            if matches!(other.end, Some(ItemEnd::Blocked { .. })) {
                queue.extend(other.dependents.clone());
                fan_out.reopen(&next);
                again.push(next);
            }
        }
        // Another item that is still lost may have doomed them too.
        fan_out.doomed.extend(again);
        fan_out.doomed.retain(|waiting| {
            fan_out.items.get(waiting).is_some_and(|item| {
                item.needs.iter().any(|need| {
                    fan_out
                        .items
                        .get(need)
                        .is_some_and(|need| !matches!(need.end, None | Some(ItemEnd::Passed)))
                })
            })
        });
    }
}

impl FanOutState {
    fn reopen(&mut self, key: &str) {
        let Some(item) = self.items.get_mut(key) else { return };
        if item.end.take().is_some() {
            self.ended = self.ended.saturating_sub(1);
            self.open += u32::from(item.opened);
            *self.wave_left.entry(item.wave).or_insert(0) += 1;
        }
    }
}

fn item_states(items: &[Item], waves: bool) -> BTreeMap<String, ItemState> {
    let depth = if waves { wave_numbers(items) } else { BTreeMap::new() };
    let mut states: BTreeMap<String, ItemState> = items
        .iter()
        .map(|item| {
            let state = ItemState {
                needs: item.needs.clone(),
                dependents: Vec::new(),
                unmet: item.needs.len() as u32,
                wave: depth.get(&item.key).copied().unwrap_or(0),
                opened: false,
                end: None,
                element: item.element.clone(),
                kept: false,
            };
            (item.key.clone(), state)
        })
        .collect();
    for item in items {
        for need in &item.needs {
            if let Some(other) = states.get_mut(need) {
                other.dependents.push(item.key.clone());
            }
        }
    }
    states
}

/// The longest chain of needs before each item, by counting down what each still waits for.
fn wave_numbers(items: &[Item]) -> BTreeMap<String, u32> {
    let mut dependents: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        for need in &item.needs {
            dependents.entry(need).or_default().push(item);
        }
    }
    let mut left: BTreeMap<&str, usize> =
        items.iter().map(|item| (item.key.as_str(), item.needs.len())).collect();
    let mut waves: BTreeMap<String, u32> = items.iter().map(|item| (item.key.clone(), 0)).collect();
    let mut queue: VecDeque<&str> =
        items.iter().filter(|item| item.needs.is_empty()).map(|item| item.key.as_str()).collect();
    while let Some(key) = queue.pop_front() {
        let next = waves.get(key).copied().unwrap_or(0) + 1;
        for item in dependents.get(key).into_iter().flatten() {
            if let Some(wave) = waves.get_mut(&item.key) {
                *wave = next.max(*wave);
            }
            if let Some(count) = left.get_mut(item.key.as_str()) {
                *count -= 1;
                if *count == 0 {
                    queue.push_back(item.key.as_str());
                }
            }
        }
    }
    waves
}
