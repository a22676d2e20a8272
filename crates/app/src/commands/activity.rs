//! `gatewright events --agents`: what agents do, between the records of the journal that begin and end their
//! attempts. Read from their streams; nothing of it is in the journal, so it has no number.

use gatewright_agents::Reader;
use gatewright_attempts::{AttemptDir, OutputStream};
use gatewright_core::{event::Event, ids::StepId};
use gatewright_host::{
    journal::Record,
    mask::Masks,
    perform::repair,
    run_masks,
    store::RunStore,
    voice::{Lines, Voice},
};
use serde_json::{Value, json};

/// The attempts whose streams are read.
#[derive(Default)]
pub struct Activity {
    attempts: Vec<Attempt>,
}

struct Attempt {
    step: StepId,
    number: u32,
    dir: AttemptDir,
    voice: Voice,
    /// What its run was given and must not be shown.
    masks: Masks,
    /// Its turns: the first, and those that mended it.
    turns: Vec<(Box<dyn Reader>, Lines, Masks)>,
}

impl Activity {
    /// What has to be printed before this record.
    pub fn before(&mut self, store: &RunStore, run: &str, record: &Record) -> Vec<Value> {
        match record.event_type() {
            "step.attempt.started" => {
                if let Ok(Event::AttemptStarted { step, attempt, .. }) = record.event() {
                    self.attempts.extend(Attempt::new(store, run, &step, attempt));
                }
                Vec::new()
            }
            "step.attempt.ended" => match record.event() {
                Ok(Event::AttemptEnded { step, attempt, .. }) => {
                    let is_it = |one: &mut Attempt| one.step == step && one.number == attempt;
                    self.attempts.extract_if(.., is_it).flat_map(|mut one| one.read(true)).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// What the others did since the last time.
    pub fn since(&mut self) -> Vec<Value> {
        self.attempts.iter_mut().flat_map(|one| one.read(false)).collect()
    }
}

impl Attempt {
    fn new(store: &RunStore, run: &str, step: &StepId, number: u32) -> Option<Attempt> {
        // Which agent it is stands in the plan that holds now.
        let snapshot = store.snapshot(run, None).ok()?;
        let name = snapshot.state.definition(&snapshot.frozen.plan, step)?.agent()?;
        let voice = Voice::of(name.as_str(), snapshot.frozen.agents.get(name)?);
        let dir = AttemptDir { path: snapshot.paths.attempt(step.as_str(), number) };
        voice.reader()?;
        let masks = run_masks::of_reader(&snapshot.paths, &snapshot.frozen);
        Some(Attempt { step: step.clone(), number, dir, voice, masks, turns: Vec::new() })
    }

    fn read(&mut self, over: bool) -> Vec<Value> {
        loop {
            let turn = match self.turns.len() as u32 {
                0 => self.dir.clone(),
                mend => AttemptDir { path: repair::turn_dir(&self.dir, mend) },
            };
            let (true, Some(reader)) = (turn.output_path(OutputStream::Stdout).exists(), self.voice.reader())
            else {
                break;
            };
            let launch = turn.launch_spec().ok().flatten();
            let masks = launch.map(|launch| Masks::of_launch(&launch.env)).unwrap_or_default();
            let masks = masks.and(&self.masks);
            self.turns.push((reader, Lines::new(turn.output_path(OutputStream::Stdout)), masks));
        }
        let mut said = Vec::new();
        for (reader, lines, masks) in &mut self.turns {
            lines.each(over, |line| {
                // A secret is covered before the line is understood: what is understood is then without it.
                for event in reader.line(&masks.mask(line)) {
                    let mut value = json!(event);
                    let kind = value["event"].as_str().unwrap_or_default().to_owned();
                    if let Value::Object(fields) = &mut value {
                        fields.remove("event");
                        fields.insert("type".to_owned(), json!(format!("agent.{kind}")));
                        fields.insert("step".to_owned(), json!(self.step));
                        fields.insert("attempt".to_owned(), json!(self.number));
                    }
                    said.push(value);
                }
            });
        }
        said
    }
}
