//! Lists of fan-outs at work: a fan-out works on the list that it began with, whatever becomes of the file (J-41). That
//! it says something else now is on record, and a person is asked.

use std::{collections::BTreeMap, time::Duration};

use gatewright_core::{
    fact::{Intrusion, IntrusionKind, ListNow},
    ids::{ContentHash, StepId},
    input::Input,
};

use super::{EngineError, Observer, RunLoop};
use crate::perform::{Performer, changed_lists};

/// How often they are looked at. The file is read, and parsed only if it is another one than last time.
const LISTS_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Lists {
    looked: Option<Duration>,
    /// The file as it was last seen, by fan-out and the list it works on.
    seen: BTreeMap<(StepId, ContentHash), ContentHash>,
}

impl<P: Performer> RunLoop<P> {
    pub(super) fn look_at_lists(&mut self, observer: &mut dyn Observer) -> Result<(), EngineError> {
        if !self.is_due(self.lists.looked, LISTS_EVERY) || self.state.is_over() {
            return Ok(());
        }
        self.lists.looked = Some(self.context.clock.monotonic());
        for key in changed_lists::at_work(&self.state) {
            let Some(look) =
                changed_lists::look(&self.context, &self.state, &key.0, self.lists.seen.get(&key))
            else {
                continue;
            };
            let step = key.0.clone();
            self.lists.seen.insert(key, look.found);
            if look.now != ListNow::AsItBegan {
                let what = format!("{}; it goes on with the list as it was", look.what);
                let intrusion = Intrusion { kind: IntrusionKind::List, what, by: vec![step.clone()] };
                if !self.state.intrusions.contains(&intrusion) {
                    self.tell(&Input::Noticed { intrusion }, observer)?;
                }
            }
            self.tell(&Input::ListChanged { step, name: look.name, now: look.now }, observer)?;
        }
        Ok(())
    }

    /// What was seen of lists may no longer be so.
    pub(super) fn look_again(&mut self) {
        self.lists = Lists::default();
    }

    fn tell(&mut self, input: &Input, observer: &mut dyn Observer) -> Result<(), EngineError> {
        if let Ok(events) = self.take(input)? {
            observer.events(&self.context, &self.state, &events);
        }
        Ok(())
    }
}
