//! Items of a fan-out that outlive a new turn of the step that wrote the list. Which of them do is
//! decided in `fan_out`; here they are set aside, put back, or dropped.

use crate::{
    event::{Cause, ItemEnd},
    ids::{StepId, Timestamp},
    plan::{Kind, Plan},
    state::{ItemAside, Phase, State},
};

impl State {
    /// A fan-out is about to lose everything below it. If only the author of its list runs again, or a person adopted
    /// a new list, what had passed is set aside: the new list may ask for the same. Any other cause makes it void.
    pub(super) fn set_items_aside(&mut self, plan: &Plan, fan: &StepId, cause: &Cause) {
        match cause {
            Cause::Upstream { step } if self.is_list_author(plan, fan, step) => {}
            Cause::ListAdopted { .. } => {}
            // Resumed after its list could not be read: what is set aside waits on.
            Cause::Resumed => return,
            Cause::Upstream { .. }
            | Cause::Fix { .. }
            | Cause::Changes { .. }
            | Cause::ReferredBack { .. }
            | Cause::Restart { .. }
            | Cause::BadList { .. }
            | Cause::Stale { .. } => {
                self.set_aside.remove(fan);
                return;
            }
        }
        let Some(fan_out) = self.fan_outs.get(fan) else { return };
        let passed = fan_out.items.iter().filter(|(_, item)| item.end == Some(ItemEnd::Passed));
        let mut aside = self.set_aside.remove(fan).unwrap_or_default();
        for (key, item) in passed {
            let Some(element) = item.element.clone() else { continue };
            let prefix = format!("{fan}/{key}/");
            let below = |id: &StepId| id.as_str().starts_with(&prefix);
            let steps = self.steps.range(StepId::new(&prefix)..).take_while(|(id, _)| below(id));
            let fan_outs = self.fan_outs.range(StepId::new(&prefix)..).take_while(|(id, _)| below(id));
            let state = ItemAside {
                element,
                needs: item.needs.clone(),
                steps: steps.map(|(id, own)| (id.clone(), own.clone())).collect(),
                fan_outs: fan_outs.map(|(id, own)| (id.clone(), own.clone())).collect(),
            };
            aside.insert(key.clone(), state);
        }
        if !aside.is_empty() {
            self.set_aside.insert(fan.clone(), aside);
        }
    }

    fn is_list_author(&self, plan: &Plan, fan: &StepId, step: &StepId) -> bool {
        let (Some(own), Some(definition)) = (self.steps.get(fan), self.definition(plan, fan)) else {
            return false;
        };
        match &definition.kind {
            Kind::FanOut(fan_out) => {
                let author = fan_out.planned_by.as_ref();
                author.is_some_and(|author| self.sibling(plan, own, author) == *step)
            }
            Kind::Agent { .. }
            | Kind::Review(_)
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. }
            | Kind::SubRun { .. } => false,
        }
    }

    /// What is set aside for an item, which from now on is settled one way or the other.
    pub(super) fn take_aside(&mut self, fan: &StepId, key: &str) -> Option<ItemAside> {
        let aside = self.set_aside.get_mut(fan)?;
        let taken = aside.remove(key);
        if aside.is_empty() {
            self.set_aside.remove(fan);
        }
        taken
    }

    /// The item is as it was.
    pub(super) fn item_kept(&mut self, plan: &Plan, fan: &StepId, key: &str, at: Timestamp) {
        let Some(aside) = self.take_aside(fan, key) else { return };
        if !self.item_begins(fan, key) {
            return;
        }
        if let Some(item) = self.fan_outs.get_mut(fan).and_then(|fan_out| fan_out.items.get_mut(key)) {
            item.kept = true;
        }
        self.fan_outs.extend(aside.fan_outs);
        for (id, own) in aside.steps {
            let (scope, phase) = (own.scope.clone(), own.phase.clone());
            self.steps.insert(id.clone(), own);
            // Nothing of an item that has passed is active; what was lost in a group inside it may count.
            let counts = self.queues.scopes.entry(scope).or_default();
            counts.unsatisfied += u32::from(!phase.is_satisfied() && phase != Phase::Dormant);
            self.enter(plan, &id, &Phase::Dormant, &phase, at);
        }
        self.item_ended(fan, key, &ItemEnd::Passed);
    }

    pub(super) fn item_dropped(&mut self, fan: &StepId, key: &str) {
        self.take_aside(fan, key);
        let prefix = format!("{fan}/{key}/");
        self.artifacts.retain(|_, artifact| !artifact.step.as_str().starts_with(&prefix));
    }
}
