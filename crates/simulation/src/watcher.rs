//! A sceptical reader of the journal: folds what is durable, event by event, and checks it with rules
//! that are not the engine's.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use gatewright_core::{event::Event, ids::Timestamp, state::State};
use gatewright_host::{
    disk::SimulatedDisk,
    journal::{JournalReader, Record},
};
use gatewright_workflow::frozen::Frozen;

use crate::{
    common::{event_word, phase_word},
    invariants,
    ledger::Ledger,
    subject::subject,
};

/// Pairs of a step's phase and the event that met it, with how often.
pub type Coverage = BTreeMap<(&'static str, String), u64>;

pub struct Watcher {
    frozen: Arc<Frozen>,
    reader: JournalReader,
    pub shadow: State,
    ledger: Ledger,
    pub coverage: Coverage,
    pub events: u64,
    /// The story, if anybody wants to hear it.
    pub story: Option<Vec<String>>,
}

impl Watcher {
    pub fn new(disk: &SimulatedDisk, journal: &Path, frozen: Arc<Frozen>, tell: bool) -> Watcher {
        Watcher {
            reader: JournalReader::follow(Arc::new(disk.durable_view()), journal, "run", None),
            shadow: State::new(&frozen.plan),
            frozen,
            ledger: Ledger::default(),
            coverage: Coverage::new(),
            events: 0,
            story: tell.then(Vec::new),
        }
    }

    /// Takes in what became durable since the last look. What was durable once must still be there.
    pub fn look(&mut self) -> Result<(), String> {
        let records = self.reader.read_new().map_err(|error| format!("what was durable is gone: {error}"))?;
        let by_person = records.iter().any(|record| record.event_type() == "inbox.message.taken");
        for record in &records {
            self.see(record, !by_person)?;
        }
        if records.is_empty() { Ok(()) } else { invariants::check(&self.frozen.plan, &self.shadow) }
    }

    fn see(&mut self, record: &Record, automatic: bool) -> Result<(), String> {
        let event: Event = record.event().map_err(|error| format!("record {}: {error}", record.seq))?;
        self.events += 1;
        if let Some(story) = &mut self.story {
            story.push(format!("     {} {}", record.seq, record.event_json()));
        }
        let phase = subject(&event).and_then(|step| self.shadow.steps.get(step)).map(|own| &own.phase);
        if let Some(phase) = phase {
            *self.coverage.entry((phase_word(phase), event_word(&event))).or_default() += 1;
        }
        if let Event::MessageTaken { message } = &event
            && self.shadow.messages_taken.contains(message)
        {
            return Err(format!("the order {message} was carried out twice"));
        }
        self.ledger.see(&self.frozen.plan, &self.shadow, &event, automatic)?;
        self.shadow.apply(&self.frozen.plan, &event, Timestamp(record.at_ms));
        Ok(())
    }

    /// The engine may act only on what is durable.
    pub fn must_be(&mut self, state: &State) -> Result<(), String> {
        self.look()?;
        if *state == self.shadow {
            return Ok(());
        }
        let (engine, durable) = (format!("{state:#?}"), format!("{:#?}", self.shadow));
        let differing = engine.lines().zip(durable.lines()).filter(|(engine, durable)| engine != durable);
        Err(format!(
            "the engine acts on what is not durable (engine, journal): {:?}",
            differing.take(3).collect::<Vec<_>>()
        ))
    }

    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }
}
