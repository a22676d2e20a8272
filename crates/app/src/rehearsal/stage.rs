//! Where rehearsed agents play: processes of this machine, in an order that does not depend on its mood.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender},
    },
    time::Duration,
};

use gatewright_core::{effect::Effect, ids::StepId, state::State};
use gatewright_host::{
    perform::{Arrival, LocalPerformer, Performer, facts::DiskFailure},
    run_context::RunContext,
};

use super::{launches::Launches, scenario::names};

/// Steps whose end somebody waits for with an order.
pub type Cues = Arc<Mutex<BTreeSet<String>>>;

/// One engine's hands. While a step is at work whose end is the cue of an order, nobody else's end is taken: the order
/// would come before or after it as the machine likes.
#[derive(Default)]
pub struct Stage {
    /// What others would be started with is made when rehearsed agents are.
    launches: Arc<Mutex<Launches>>,
    cues: Cues,
    under_way: BTreeSet<Effect>,
    held: Vec<Arrival>,
}

impl Stage {
    pub fn new(launches: Launches, cues: Cues) -> Stage {
        Stage { launches: Arc::new(Mutex::new(launches)), cues, ..Stage::default() }
    }

    /// For the engine after this one: what ended meanwhile is collected by it.
    pub fn for_next_engine(&self) -> Stage {
        Stage { launches: self.launches.clone(), cues: self.cues.clone(), ..Stage::default() }
    }

    pub fn launches(&self) -> Launches {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_cue(&self, effect: &Effect) -> bool {
        let cues = self.cues.lock().unwrap_or_else(PoisonError::into_inner);
        step_of(effect).is_some_and(|step| cues.iter().any(|cue| names(cue, step.as_str())))
    }

    /// What may be taken now of what has arrived.
    fn release(&mut self) -> Vec<Arrival> {
        let all = std::mem::take(&mut self.held);
        if !self.under_way.iter().any(|effect| self.is_cue(effect)) {
            return all;
        }
        let (now, later): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|arrival| arrival.effect.as_ref().is_none_or(|effect| self.is_cue(effect)));
        self.held = later;
        now
    }
}

/// The step whose state an effect's end may change. A question is nobody's work.
fn step_of(effect: &Effect) -> Option<&StepId> {
    match effect {
        Effect::Run { step, .. }
        | Effect::Check { step, .. }
        | Effect::Commit { step, .. }
        | Effect::Evaluate { step, .. }
        | Effect::ReadList { step } => Some(step),
        Effect::Bind { .. } | Effect::Ask { .. } | Effect::Stop { .. } => None,
    }
}

impl Performer for Stage {
    fn start(
        &mut self,
        context: &RunContext,
        state: &State,
        effect: &Effect,
        results: &Sender<Arrival>,
    ) -> Result<(), DiskFailure> {
        if let Effect::Run { step, attempt } = effect {
            let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
            launches.look(context, state, step, *attempt);
        }
        if step_of(effect).is_some() {
            self.under_way.insert(effect.clone());
        }
        LocalPerformer::default().start(context, state, effect, results)
    }

    fn cancel(&mut self, context: &RunContext, effect: &Effect) {
        LocalPerformer::default().cancel(context, effect);
    }

    fn wait(&mut self, results: &Receiver<Arrival>, at_most: Duration) -> Vec<Arrival> {
        let mut now = self.release();
        if now.is_empty() {
            self.held.extend(results.recv_timeout(at_most).into_iter().chain(results.try_iter()));
            now = self.release();
        }
        for effect in now.iter().filter_map(|arrival| arrival.effect.as_ref()) {
            self.under_way.remove(effect);
        }
        now
    }

    fn sweep(&mut self, context: &RunContext, state: &State) {
        LocalPerformer::default().sweep(context, state);
    }

    fn rest(&mut self, context: &RunContext) {
        LocalPerformer::default().rest(context);
    }
}
