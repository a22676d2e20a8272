//! People: they answer, order, change their minds, send things twice, and do so whether or not an
//! engine is there.

use std::{collections::BTreeMap, path::PathBuf, sync::mpsc::Sender};

use gatewright_core::{event::About, ids::DecisionId, input::Input, plan::Plan, state::State};
use gatewright_host::{
    clock::Clock,
    disk::SimulatedDisk,
    inbox::{Inbox, MessageId, Verdict},
    run_context::hash_bytes,
    run_loop::Order,
};

use crate::{
    clock::SimulatedClock,
    fortune::{Fortune, Weather},
};

pub struct People {
    disk: SimulatedDisk,
    inbox: PathBuf,
    run_dir: PathBuf,
    /// The terminal of the engine that is there now.
    pub orders: Option<Sender<Order>>,
    /// Messages that are durable in the inbox, and whether their sender was told.
    messages: BTreeMap<MessageId, Message>,
    count: u64,
    /// Somebody asked for less than everything.
    pub content_with_less: bool,
}

struct Message {
    body: String,
    acknowledged: bool,
}

impl People {
    pub fn new(disk: SimulatedDisk, inbox: PathBuf, run_dir: PathBuf) -> People {
        People {
            disk,
            inbox,
            run_dir,
            orders: None,
            messages: BTreeMap::new(),
            count: 0,
            content_with_less: false,
        }
    }

    /// Somebody tells the engine to go.
    pub fn leave(&mut self) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(Order::Leave);
        }
    }

    /// What people do in a moment: mostly nothing.
    pub fn act(&mut self, fortune: &mut Fortune, plan: &Plan, state: &State, clock: &SimulatedClock) {
        let patience = if fortune.weather == Weather::Stormy { 12 } else { 40 };
        let pending = &state.queues.pending_decisions;
        if !pending.is_empty() && fortune.random.chance(patience) {
            let place = fortune.random.below(pending.len() as u64) as usize;
            if let Some(id) = pending.iter().nth(place) {
                self.answer(fortune, state, clock, id);
            }
        }
        if fortune.weather != Weather::Stormy {
            return;
        }
        match fortune.random.below(100) {
            0..=2 => {
                let order = fortune.order(plan, state);
                self.send(&order, clock);
            }
            3 => {
                let order = fortune.order(plan, state);
                self.say(order);
            }
            4 => self.repeat(fortune),
            _ => {}
        }
    }

    /// Answers at the terminal or from elsewhere.
    pub fn answer(&mut self, fortune: &mut Fortune, state: &State, clock: &SimulatedClock, id: &DecisionId) {
        let Some(asked) = state.decisions.get(id) else { return };
        let mut answer = fortune.answer(id, &asked.decision);
        // Who is asked about an edit looks at the file.
        if let About::HandEdit { name, found } = &asked.decision.about
            && self.disk.peek(&self.run_dir.join(name.as_str())).map(|bytes| hash_bytes(&bytes)).as_ref()
                != Some(found)
        {
            "restore".clone_into(&mut answer.value);
        }
        let answer = Input::Answer(answer);
        if fortune.random.chance(30) && self.orders.is_some() {
            self.say(answer);
        } else {
            self.send(&answer, clock);
        }
    }

    fn say(&mut self, input: Input) {
        // Restarts by people have no limit; the watcher knows people by their messages.
        let by_message_only = matches!(input, Input::RestartStage { .. } | Input::Tick | Input::Adopt { .. });
        if let (Some(orders), false) = (&self.orders, by_message_only) {
            self.content_with_less |= is_less(&input);
            let _ = orders.send(Order::Input(input));
        }
    }

    /// Drops a message. Who gets an error does not know whether it arrived.
    pub fn send(&mut self, input: &Input, clock: &SimulatedClock) {
        self.count += 1;
        let name = format!("{:014}-1-{:08}-0", clock.now().0, self.count);
        let (Some(id), Ok(body)) = (MessageId::parse(&name), serde_json::to_string(input)) else { return };
        self.content_with_less |= is_less(input);
        if Inbox::send_as(&self.disk, &self.inbox, &id, &body).is_ok() {
            self.messages.insert(id, Message { body, acknowledged: false });
        }
    }

    /// The same message once more, as a sender does who was cut off.
    fn repeat(&mut self, fortune: &mut Fortune) {
        let ids: Vec<&MessageId> = self.messages.keys().collect();
        let Some(id) = fortune.random.pick(&ids).map(|id| (*id).clone()) else { return };
        if let Some(message) = self.messages.get(&id) {
            let _ = Inbox::send_as(&self.disk, &self.inbox, &id, &message.body);
        }
    }

    /// Who was told "accepted" is on record. To be called while no engine is there.
    pub fn check_acknowledged(&mut self, state: &State) -> Result<(), String> {
        for (id, message) in self.messages.iter_mut().filter(|(_, message)| !message.acknowledged) {
            let found = Inbox::read_ack(&self.disk, &self.inbox, id).map_err(|error| error.to_string())?;
            let Some(found) = found else { continue };
            message.acknowledged = true;
            // Who orders what is so already is told "accepted", and nothing is written down.
            let may_change_nothing = ["resume", "stop", "restart_stage"]
                .iter()
                .any(|kind| message.body.starts_with(&format!("{{\"type\":\"{kind}\"")));
            let on_record = may_change_nothing || state.messages_taken.contains(id.as_str());
            if found.verdict == Verdict::Accepted && !on_record {
                return Err(format!("{id} was accepted and is not on record: {}", message.body));
            }
        }
        Ok(())
    }

    /// At the end everybody was told.
    pub fn check_nobody_waits(&self) -> Result<(), String> {
        match self.messages.iter().find(|(_, message)| !message.acknowledged) {
            Some((id, message)) => Err(format!("nobody answered to {id}: {}", message.body)),
            None => Ok(()),
        }
    }
}

/// Whether a run may end otherwise than in success because a person wanted it so.
fn is_less(input: &Input) -> bool {
    match input {
        Input::Skip { .. }
        | Input::Stop
        | Input::Abort { .. }
        | Input::CancelDecision { .. }
        | Input::WaiveGate { .. } => true,
        Input::Answer(_)
        | Input::GiveUpDecision { .. }
        | Input::Resume { .. }
        | Input::RestartStage { .. }
        | Input::RunUntil { .. }
        | Input::Give { .. }
        | Input::Start { .. }
        | Input::AttemptEnded { .. }
        | Input::Underway { .. }
        | Input::CheckEnded { .. }
        | Input::CommitEnded { .. }
        | Input::Noticed { .. }
        | Input::Unwritten { .. }
        | Input::Evaluated { .. }
        | Input::ListRead { .. }
        | Input::ListEdited { .. }
        | Input::ListChanged { .. }
        | Input::Bound { .. }
        | Input::Tick
        | Input::Adopt { .. } => false,
    }
}
