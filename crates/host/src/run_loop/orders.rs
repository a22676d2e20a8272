//! Orders of people: from the terminal, by signal, through the inbox. What they saw is compared with what
//! is there, an order has one effect, and unclear answers are counted.

use std::{collections::BTreeMap, sync::mpsc::Receiver};

use gatewright_core::{
    Rejected, decide,
    event::{About, Decision, Event},
    fact::{Intrusion, IntrusionKind},
    ids::{ArtifactName, ContentHash},
    input::Input,
};
use gatewright_workflow::frozen::Frozen;

use super::{EngineError, INBOX_EVERY, Observer, Order, Rest, RunLoop};
use crate::{
    inbox::{Acknowledgement, MessageId, Verdict, order},
    perform::{
        Performer, changed_lists,
        facts::{self, DiskFailure},
    },
};

impl<P: Performer> RunLoop<P> {
    pub(super) fn orders(
        &mut self,
        orders: &Receiver<Order>,
        observer: &mut dyn Observer,
        stay: &mut bool,
    ) -> Result<Option<Rest>, EngineError> {
        while let Ok(order) = orders.try_recv() {
            match order {
                Order::Leave => return Ok(Some(Rest::Left)),
                Order::NobodyAnswers => *stay = false,
                Order::AskAgain => self.asked.clear(),
                Order::Input(input) => {
                    let outcome = self.human(&input)?;
                    if let Ok(events) = &outcome {
                        observer.events(&self.context, &self.state, events);
                    } else if let Err(rejected) = outcome {
                        match (&rejected, &input) {
                            // The one refusal that a word of the same person, there and then, lifts.
                            (Rejected::ApprovalWithComment { .. }, Input::Answer(answer)) => {
                                observer.confirm(&self.context, answer);
                            }
                            _ => {
                                observer.warn(&format!("refused: {rejected}"));
                                self.asked.clear();
                            }
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// An input of a person: what they saw is compared with what is there, unclear answers are counted.
    pub fn human(&mut self, input: &Input) -> Result<Result<Vec<Event>, Rejected>, EngineError> {
        self.human_by(input, None)
    }

    fn human_by(
        &mut self,
        input: &Input,
        message: Option<&MessageId>,
    ) -> Result<Result<Vec<Event>, Rejected>, EngineError> {
        let mut input = input.clone();
        if let Input::Answer(answer) = &mut input
            && let Some(pending) = self.state.decisions.get(&answer.decision)
        {
            answer.seen = self.seen(&pending.decision)?;
        }
        let outcome = self.take_marked(&input, message)?;
        match &outcome {
            Err(Rejected::ChangedSinceShown { decision, .. }) => {
                let asked = self.state.decisions.get(decision);
                let bound =
                    asked.map(|pending| self.seen(&pending.decision)).transpose()?.unwrap_or_default();
                // The first closes the question as stale, the second binds the one asked in its place.
                for _ in 0..2 {
                    let _ = self.take(&Input::Bound {
                        decision: decision.clone(),
                        bound: bound.clone(),
                        question: None,
                    })?;
                }
                self.look_at_lists_again()?;
            }
            Err(Rejected::NotAnAnswer { decision, .. }) => {
                let count = self.misunderstood.entry(decision.clone()).or_insert(0);
                *count += 1;
                if *count > self.context.frozen.plan.reasks_max {
                    let _ = self.take(&Input::GiveUpDecision { decision: decision.clone() })?;
                }
            }
            Ok(_) | Err(_) => {}
        }
        Ok(outcome)
    }

    /// What a question is about, as it is at this moment.
    fn seen(&self, asked: &Decision) -> Result<BTreeMap<ArtifactName, ContentHash>, DiskFailure> {
        let workdir = self.context.workdir(&self.state, &asked.step);
        if let Some(list) = changed_lists::seen(&self.context, &self.state, &asked.step, &asked.about)? {
            return Ok(BTreeMap::from([list]));
        }
        match &asked.about {
            About::HandEdit { name, .. } => facts::shown(&self.context, &workdir, std::slice::from_ref(name)),
            _ => facts::shown(&self.context, &workdir, &asked.show),
        }
    }

    pub(super) fn read_inbox(&mut self, observer: &mut dyn Observer) -> Result<(), EngineError> {
        if !self.is_due(self.inbox_seen, INBOX_EVERY) {
            return Ok(());
        }
        self.inbox_seen = Some(self.context.clock.monotonic());
        let drained = self.inbox.drain()?;
        for rejected in &drained.rejected {
            observer.warn(&format!("warning: a message was rejected: {rejected}"));
        }
        for (id, body) in drained.messages {
            let (_, events) = self.message(&id, &body)?;
            observer.events(&self.context, &self.state, &events);
        }
        Ok(())
    }

    /// Reads what is in the inbox before anything else is done; says what became of each message.
    pub fn drain_inbox(&mut self) -> Result<Vec<(MessageId, Acknowledgement)>, EngineError> {
        let drained = self.inbox.drain()?;
        drained.messages.iter().map(|(id, body)| Ok((id.clone(), self.message(id, body)?.0))).collect()
    }

    /// Carries out one order. It is journaled with the mark of its message, so that one that is read
    /// again after a crash has no second effect.
    fn message(&mut self, id: &MessageId, body: &str) -> Result<(Acknowledgement, Vec<Event>), EngineError> {
        let refused = |message: String| Acknowledgement { verdict: Verdict::Refused, message };
        let accepted = Acknowledgement { verdict: Verdict::Accepted, message: "accepted".to_owned() };
        let mut happened = Vec::new();
        let opened = match &self.context.key {
            Some(key) => order::open(key, id, body),
            // Without a key (it cannot be read) nothing is sealed, and status and doctor say so.
            None => Ok(body.to_owned()),
        };
        let body = match opened {
            Ok(body) => body,
            Err(why) => return self.not_authentic(id, &why),
        };
        let acknowledgement = match serde_json::from_str::<Input>(&body) {
            _ if self.state.messages_taken.contains(id.as_str()) => accepted,
            Ok(input) if is_human(&input) => match self.human_by(&input, Some(id))? {
                Ok(events) => {
                    happened = events;
                    accepted
                }
                Err(rejected) => refused(rejected.to_string()),
            },
            Ok(_) => refused("only people's orders are taken from the inbox".to_owned()),
            Err(error) => refused(format!("not understood: {error}")),
        };
        self.inbox.acknowledge(id, &acknowledgement)?;
        Ok((acknowledgement, happened))
    }

    /// A message of somebody who is not the user: it changes nothing, and it is on record (J-38).
    fn not_authentic(
        &mut self,
        id: &MessageId,
        why: &order::NotAuthentic,
    ) -> Result<(Acknowledgement, Vec<Event>), EngineError> {
        let intrusion = Intrusion {
            kind: IntrusionKind::UnsealedOrder,
            what: format!("message {id} in the inbox: {why}"),
            by: Vec::new(),
        };
        let events = self.take(&Input::Noticed { intrusion })?.unwrap_or_default();
        let message = format!("not a person's order: {why}. Orders are given with the `gatewright` command");
        let acknowledgement = Acknowledgement { verdict: Verdict::Refused, message };
        self.inbox.acknowledge(id, &acknowledgement)?;
        Ok((acknowledgement, events))
    }

    /// Goes on with another frozen workflow, which is stored under its digest already. Refused, the run
    /// keeps the one it has.
    pub fn adopt(&mut self, frozen: Frozen, digest: &str) -> Result<Result<(), Rejected>, EngineError> {
        let order = Input::Adopt { digest: digest.to_owned() };
        let now = self.context.clock.now();
        if let Err(rejected) = decide(&self.context.frozen.plan, &self.state, &order, now) {
            return Ok(Err(rejected));
        }
        self.context.frozen = std::sync::Arc::new(frozen);
        self.context.once = std::sync::Arc::default();
        Ok(self.take(&order)?.map(|_| ()))
    }
}

/// Orders that people give; anything else in an inbox is not believed.
fn is_human(input: &Input) -> bool {
    match input {
        Input::Answer(_)
        | Input::CancelDecision { .. }
        | Input::Stop
        | Input::Abort { .. }
        | Input::Resume { .. }
        | Input::RunUntil { .. }
        | Input::Give { .. }
        | Input::RestartStage { .. }
        | Input::Skip { .. }
        | Input::WaiveGate { .. } => true,
        Input::Start { .. }
        | Input::AttemptEnded { .. }
        | Input::Underway { .. }
        | Input::CheckEnded { .. }
        | Input::CommitEnded { .. }
        | Input::Evaluated { .. }
        | Input::ListRead { .. }
        | Input::ListEdited { .. }
        | Input::ListChanged { .. }
        | Input::Bound { .. }
        | Input::GiveUpDecision { .. }
        | Input::Noticed { .. }
        | Input::Unwritten { .. }
        | Input::Tick
        | Input::Adopt { .. } => false,
    }
}
