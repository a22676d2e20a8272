//! A run in memory for tests of what is shown: a plan, a fan-out in the middle, a question. Fixed times.

use std::sync::Arc;

use gatewright_core::{
    advance,
    event::{Beginning, Event},
    fact::{ArtifactFact, AttemptReport, Item, ProcessEnd},
    ids::{ArtifactName, ContentHash, StepId, Timestamp},
    input::Input,
    outcome::{Outcome, Reply},
    state::State,
};
use gatewright_workflow::{
    config::Config,
    frozen::Frozen,
    load::{LoadOptions, MapSources, load},
};

const TEXT: &str = r#"
workflow: sample
roles:
  planner: { prompt: "Plan it." }
  coder: { prompt: "Build it.", may_write: [] }
stages:
  - id: design
    steps:
      - { id: plan, role: planner, writes: { tasks.yaml: any } }
      - { id: agree, decide: "Build it?", needs: [plan], answers: { "yes": pass, "no": { redo: plan } } }
  - id: build
    steps:
      - id: tasks
        for_each: tasks.yaml
        key: id
        parallel_max: 2
        steps:
          - { id: code, role: coder }
          - { id: review, review: code, by: coder, rounds_max: 3 }
"#;

/// When everything happens: a second after the other.
pub const NOW: Timestamp = Timestamp(1_000_000);

pub struct Sample {
    pub frozen: Arc<Frozen>,
    pub state: State,
    pub events: Vec<Event>,
}

impl Sample {
    /// Started: the first attempt of `plan` runs.
    pub fn started() -> Sample {
        let config = Config::default();
        let loaded = load("sample.yaml", TEXT, &MapSources::default(), &LoadOptions::new(&config));
        let frozen = Arc::new(loaded.frozen.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));
        let state = State::new(&frozen.plan);
        let mut sample = Sample { frozen, state, events: Vec::new() };
        sample.take(&Input::Start {
            run: "r-1".to_owned(),
            request: "Greet\nthe world".to_owned(),
            beginning: Beginning::default(),
        });
        sample
    }

    /// The plan is there and agreed on; three items, two of them open.
    pub fn in_the_middle() -> Sample {
        let mut sample = Sample::asked();
        sample.answer("yes");
        let hash = ContentHash("aa".to_owned());
        let items = ["T-1", "T-2", "T-3"]
            .map(|key| Item { key: key.to_owned(), needs: Vec::new(), element: None })
            .to_vec();
        sample.take(&Input::ListRead { step: StepId::new("tasks"), hash, items: Ok(items) });
        sample
    }

    /// The plan is there, a person is asked.
    pub fn asked() -> Sample {
        let mut sample = Sample::started();
        sample.ends("plan", "Three \x1b[31mtasks");
        sample
    }

    pub fn take(&mut self, input: &Input) {
        let now = Timestamp(NOW.0 - 60_000 + self.events.len() as u64 * 1000);
        let events = advance(&self.frozen.plan, &mut self.state, input, now)
            .unwrap_or_else(|rejected| panic!("{rejected}"));
        self.events.extend(events);
    }

    pub fn answer(&mut self, word: &str) {
        let decision = self.state.queues.pending_decisions.first().unwrap().clone();
        self.take(&Input::Answer(gatewright_core::input::Answer {
            decision,
            value: word.to_owned(),
            comment: None,
            route: None,
            confirmed: false,
            channel: "test".to_owned(),
            seen: std::collections::BTreeMap::new(),
        }));
    }

    /// The running attempt of a step says that it is done.
    pub fn ends(&mut self, step: &str, summary: &str) {
        let step = StepId::new(step);
        let attempt = self.state.steps[&step].attempts;
        let mut report = AttemptReport::new(ProcessEnd::Exited { code: 0 });
        let reviewer = step.as_str().ends_with("review");
        let mut reply = Reply::new(if reviewer { Outcome::Passed } else { Outcome::Done });
        summary.clone_into(&mut reply.summary);
        report.reply = Some(reply);
        let writes = self.state.definition(&self.frozen.plan, &step).unwrap().writes.clone();
        report.artifacts = writes
            .into_iter()
            .map(|name| ArtifactFact {
                declared: name.clone(),
                name: ArtifactName::new(name.as_str()),
                hash: Some(ContentHash("bb".to_owned())),
                bytes: 3,
                violations: Vec::new(),
                optional: false,
            })
            .collect();
        self.take(&Input::AttemptEnded { step, attempt, report });
    }
}
