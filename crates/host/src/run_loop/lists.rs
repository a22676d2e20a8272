//! Lists of fan-outs at work: a fan-out works on the list that it began with, whatever becomes of the file (J-41). That
//! it says something else now is on record, and a person is asked.

use std::{collections::BTreeMap, time::Duration};

use gatewright_core::{
    event::Event,
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
        let events = self.lists_now()?;
        if !events.is_empty() {
            observer.events(&self.context, &self.state, &events);
        }
        Ok(())
    }

    fn lists_now(&mut self) -> Result<Vec<Event>, EngineError> {
        self.lists.looked = Some(self.context.clock.monotonic());
        let mut events = Vec::new();
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
                    events.extend(self.take(&Input::Noticed { intrusion })?.unwrap_or_default());
                }
            }
            let now = Input::ListChanged { step, name: look.name, now: look.now };
            events.extend(self.take(&now)?.unwrap_or_default());
        }
        Ok(events)
    }

    /// What somebody was asked about is not what is there.
    pub(super) fn look_at_lists_again(&mut self) -> Result<(), EngineError> {
        self.lists = Lists::default();
        self.lists_now().map(drop)
    }
}
