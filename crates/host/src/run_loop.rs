//! One run, one thread, one channel: inputs in, events to the journal, effects out.
//!
//! Resume is this loop; there is no other recovery. State is changed in memory, made durable, and
//! only then acted on or acknowledged. A journal that fails ends the engine.

mod lists;
mod orders;
mod plans;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use crate::{
    disk::{Disk, SharedDisk},
    inbox::{Inbox, InboxError, MessageId},
    journal::{Journal, JournalError, JournalKey, Recovery},
    perform::{Arrival, Performer, facts::DiskFailure},
    project::RunPaths,
    publish::{PublishError, Publisher},
    run_context::RunContext,
    summary,
};
use gatewright_core::{
    Rejected, advance,
    effect::{Effect, Wanted},
    event::{Event, Pause},
    fact::{Intrusion, IntrusionKind},
    ids::{DecisionId, StepId, Timestamp},
    input::{Answer, Input},
    replay, settle,
    state::{RunPhase, RunStatus, State},
    wanted,
};

use plans::adopted_plans;
pub use plans::{read_frozen, read_plan, read_verified};

/// How often the inbox is looked into while nothing else happens.
const INBOX_EVERY: Duration = Duration::from_millis(40);
/// Projections are written at most so often while work goes on; always at rest.
const PROJECT_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Disk(#[from] DiskFailure),
    #[error("the journal of `{run}` does not fit its plan")]
    Replay { run: String, source: gatewright_core::ReplayError },
    #[error(
        "record {seq} of the journal of `{run}` cannot be understood; was it written by a newer version?"
    )]
    Record { run: String, seq: u64, source: serde_json::Error },
    #[error("an event cannot be written")]
    Serialise { source: serde_json::Error },
    #[error("{}: the frozen workflow cannot be read", path.display())]
    Plan { path: PathBuf, source: std::io::Error },
    #[error("{}: the frozen workflow was changed by somebody else: it is not what its name says. Restore it from a copy", path.display())]
    PlanForged { path: PathBuf },
    #[error("{}: the frozen workflow is not of a version this program knows", path.display())]
    PlanFormat { path: PathBuf, source: serde_json::Error },
    #[error(
        "{}: the journal of `{run}` holds nothing although the run had begun ({} is there); restore the journal from a copy, or remove {}",
        path.display(), evidence.display(), path.parent().unwrap_or(path).display()
    )]
    JournalLost { run: String, path: PathBuf, evidence: PathBuf },
}

/// What only a run has that had begun: an empty journal beside it was emptied, not created a moment ago.
pub fn journal_is_lost(disk: &dyn Disk, paths: &RunPaths, run: &str) -> Result<(), EngineError> {
    let attempted = disk.list_dir(&paths.attempts()).is_ok_and(|names| !names.is_empty());
    let mut traces = attempted.then(|| paths.attempts()).into_iter().chain(
        [paths.summary(), paths.published()].into_iter().filter(|path| disk.exists(path).unwrap_or(false)),
    );
    match traces.next() {
        None => Ok(()),
        Some(evidence) => {
            Err(EngineError::JournalLost { run: run.to_owned(), path: paths.journal(), evidence })
        }
    }
}

/// Who watches a run: the terminal, a log. Told after things are durable.
pub trait Observer {
    fn events(&mut self, context: &RunContext, state: &State, events: &[Event]);
    /// A person is needed for these; called whenever the set changes.
    fn asked(&mut self, context: &RunContext, state: &State, open: &BTreeSet<DecisionId>);
    /// An approval with a comment may be a condition: the person is asked whether it is one.
    fn confirm(&mut self, _context: &RunContext, _answer: &Answer) {}
    /// Nothing happened for a while.
    fn tick(&mut self, context: &RunContext, state: &State);
    /// Something that changes nothing and that a person should know.
    fn warn(&mut self, text: &str) {
        eprintln!("{text}");
    }
}

/// Orders from outside the journal: signals, the terminal.
#[derive(Debug)]
pub enum Order {
    Input(Input),
    /// The open questions are put once more.
    AskAgain,
    /// Leave now; agents go on.
    Leave,
    /// End of input on the terminal: nobody will answer there any more.
    NobodyAnswers,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The run is over, or cannot go on by itself.
    AtRest,
    /// Somebody told the engine to leave.
    Left,
}

/// The engine of one run.
pub struct RunLoop<P: Performer> {
    pub context: RunContext,
    pub state: State,
    journal: Journal,
    inbox: Inbox,
    performer: P,
    publisher: Publisher,
    under_way: BTreeSet<Effect>,
    /// Checks that were told to end and have not yet.
    cancelled: BTreeSet<Effect>,
    results: (Sender<Arrival>, Receiver<Arrival>),
    asked: BTreeSet<DecisionId>,
    dirty: bool,
    /// When, by the monotonic clock.
    projected: Option<Duration>,
    inbox_seen: Option<Duration>,
    lists: lists::Lists,
    /// Answers that could not be understood, per decision; of this sitting only (S1-18).
    misunderstood: std::collections::BTreeMap<DecisionId, u32>,
}

/// A run that was opened, and what opening found.
pub struct Opened<P: Performer> {
    pub engine: RunLoop<P>,
    pub recovery: Recovery,
}

/// The journal of an existing run, with its lock, and what it says.
pub struct TakenJournal {
    journal: Journal,
    events: Vec<(Timestamp, Event)>,
    recovery: Recovery,
}

/// Takes the lock of an existing run and reads its journal. What the events mean is only known with its plan, which
/// can be read meanwhile.
pub fn take_journal(
    disk: SharedDisk,
    paths: &RunPaths,
    run: &str,
    key: Option<JournalKey>,
) -> Result<TakenJournal, EngineError> {
    let path = paths.journal();
    let (journal, records, recovery) = match Journal::open(disk.clone(), &path, run, key.clone()) {
        // A run exists from its run.json on; a crash may have come before its journal.
        Err(JournalError::NotFound { .. }) => {
            journal_is_lost(disk.as_ref(), paths, run)?;
            let created = Journal::create(disk.clone(), &path, run, key)?;
            (created, Vec::new(), Recovery::default())
        }
        opened => opened?,
    };
    if records.is_empty() {
        journal_is_lost(disk.as_ref(), paths, run)?;
    }
    let events = records
        .iter()
        .map(|record| {
            let unknown = |source| EngineError::Record { run: run.to_owned(), seq: record.seq, source };
            Ok((Timestamp(record.at_ms), record.event().map_err(unknown)?))
        })
        .collect::<Result<_, EngineError>>()?;
    Ok(TakenJournal { journal, events, recovery })
}

impl<P: Performer> RunLoop<P> {
    /// Takes the lock of a new run and makes its first records durable.
    pub fn create(
        context: RunContext,
        performer: P,
        key: Option<JournalKey>,
    ) -> Result<RunLoop<P>, EngineError> {
        let journal = Journal::create(context.disk.clone(), &context.paths.journal(), &context.meta.id, key)?;
        let state = State::new(&context.frozen.plan);
        let mut engine = RunLoop::with(context, state, journal, performer)?;
        let start = Input::Start {
            run: engine.context.meta.id.clone(),
            request: engine.context.meta.request.clone(),
            beginning: engine.context.meta.beginning.clone(),
        };
        // A fresh run refuses nothing.
        let _ = engine.take(&start)?;
        Ok(engine)
    }

    /// Takes the lock of an existing run and folds its journal.
    pub fn open(
        context: RunContext,
        performer: P,
        key: Option<JournalKey>,
    ) -> Result<Opened<P>, EngineError> {
        let taken = take_journal(context.disk.clone(), &context.paths, &context.meta.id, key)?;
        RunLoop::take_up(context, performer, taken)
    }

    /// Goes on from a journal that was taken and read.
    pub fn take_up(
        mut context: RunContext,
        performer: P,
        taken: TakenJournal,
    ) -> Result<Opened<P>, EngineError> {
        let TakenJournal { journal, events, recovery } = taken;
        let run = context.meta.id.clone();
        let torn_mark = match events.last() {
            Some((_, Event::MessageTaken { message })) => Some(message.clone()),
            _ => None,
        };
        let adopted = adopted_plans(&context, &events)?;
        let find =
            |digest: &str| adopted.iter().find(|(known, _)| known == digest).map(|(_, frozen)| &frozen.plan);
        let (state, _) = replay(&context.frozen.plan, events, find)
            .map_err(|source| EngineError::Replay { run, source })?;
        if let Some((_, frozen)) = state
            .plan_digest
            .as_ref()
            .and_then(|digest| adopted.into_iter().find(|(known, _)| known == digest))
        {
            context.frozen = std::sync::Arc::new(frozen);
            context.once = std::sync::Arc::default();
        }
        let mut engine = RunLoop::with(context, state, journal, performer)?;
        engine.performer.sweep(&engine.context, &engine.state);
        if let Some(message) = torn_mark {
            let dropped = Event::MessageDropped { message };
            let now = engine.context.clock.now();
            engine.state.apply(&engine.context.frozen.plan, &dropped, now);
            engine.commit(&[dropped], now)?;
        }
        if engine.state.phase == RunPhase::Created {
            let start = Input::Start {
                run: engine.context.meta.id.clone(),
                request: engine.context.meta.request.clone(),
                beginning: engine.context.meta.beginning.clone(),
            };
            let _ = engine.take(&start)?;
        } else {
            engine.settle()?;
        }
        Ok(Opened { engine, recovery })
    }

    fn with(
        context: RunContext,
        state: State,
        journal: Journal,
        performer: P,
    ) -> Result<RunLoop<P>, EngineError> {
        let inbox = Inbox::open(context.disk.clone(), &context.paths.inbox())?;
        let publisher = Publisher::open(&context);
        Ok(RunLoop {
            context,
            state,
            journal,
            inbox,
            performer,
            publisher,
            under_way: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            results: channel(),
            asked: BTreeSet::new(),
            dirty: true,
            projected: None,
            inbox_seen: None,
            lists: lists::Lists::default(),
            misunderstood: std::collections::BTreeMap::new(),
        })
    }

    /// Consequences that a crash cut off: a batch may have been written in part.
    fn settle(&mut self) -> Result<(), EngineError> {
        let now = self.context.clock.now();
        let mut events = Vec::new();
        settle(&self.context.frozen.plan, &mut self.state, now, &mut events);
        self.commit(&events, now)
    }

    /// One input: decided, applied, durable. `Ok(Err(_))` = refused, nothing changed.
    pub fn take(&mut self, input: &Input) -> Result<Result<Vec<Event>, Rejected>, EngineError> {
        self.take_marked(input, None)
    }

    fn take_marked(
        &mut self,
        input: &Input,
        message: Option<&MessageId>,
    ) -> Result<Result<Vec<Event>, Rejected>, EngineError> {
        let now = self.context.clock.now();
        match advance(&self.context.frozen.plan, &mut self.state, input, now) {
            Ok(mut events) => {
                // An order that changes nothing leaves no mark: read again, it changes nothing again.
                if let Some(id) = message.filter(|_| !events.is_empty()) {
                    // First in its batch: what survives of the batch has the mark, and what follows from
                    // the order is drawn from the state. A mark with nothing behind it is dropped at open.
                    let taken = Event::MessageTaken { message: id.as_str().to_owned() };
                    self.state.apply(&self.context.frozen.plan, &taken, now);
                    events.insert(0, taken);
                }
                self.commit(&events, now)?;
                Ok(Ok(events))
            }
            Err(rejected) => Ok(Err(rejected)),
        }
    }

    fn commit(&mut self, events: &[Event], now: gatewright_core::ids::Timestamp) -> Result<(), EngineError> {
        if events.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = events
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()
            .map_err(|source| EngineError::Serialise { source })?;
        for event in events {
            if let Event::ArtifactAdopted { name, hash } = event {
                self.publisher.keep_adopted(&self.context, name.as_str(), hash)?;
            }
        }
        self.journal.append(now.0, &lines)?;
        self.dirty = true;
        for event in events {
            if let Event::ArtifactRestored { name } = event {
                self.publisher.restore(name.as_str());
            }
        }
        Ok(())
    }

    /// Drives the run until it rests or somebody tells the engine to leave. With `stay` it also
    /// waits while a person is asked (they answer here or by another door).
    pub fn run(
        &mut self,
        observer: &mut dyn Observer,
        orders: &Receiver<Order>,
        stay: bool,
    ) -> Result<Rest, EngineError> {
        let mut stay = stay;
        observer.events(&self.context, &self.state, &[]);
        loop {
            self.look_at_lists(observer)?;
            if let Some(rest) = self.orders(orders, observer, &mut stay)? {
                self.flush(observer)?;
                return Ok(rest);
            }
            self.read_inbox(observer)?;
            self.reconcile(observer)?;
            if self.is_at_rest(stay) {
                // Whoever dropped a message before our lock is free is answered by us.
                self.inbox_seen = None;
                self.read_inbox(observer)?;
                if self.is_at_rest(stay) {
                    self.performer.rest(&self.context);
                    self.flush(observer)?;
                    return Ok(Rest::AtRest);
                }
                continue;
            }
            self.wait(observer)?;
        }
    }

    fn is_at_rest(&self, stay: bool) -> bool {
        if !self.under_way.iter().all(|effect| matches!(effect, Effect::Ask { .. }))
            || !self.state.queues.superseded.is_empty()
        {
            return false;
        }
        match self.state.status() {
            RunStatus::Done | RunStatus::Failed | RunStatus::Abandoned | RunStatus::Blocked => true,
            RunStatus::Paused => !self.state.has_live_attempts(),
            RunStatus::Waiting => !stay,
            RunStatus::Running => false,
        }
    }

    /// Starts what is wanted and not under way.
    fn reconcile(&mut self, observer: &mut dyn Observer) -> Result<(), EngineError> {
        let now = self.context.clock.now();
        let mut wish = wanted(&self.context.frozen.plan, &self.state, now);
        let fresh = self.fresh(&wish);
        let reads = fresh.iter().any(|effect| {
            matches!(effect, Effect::Run { .. } | Effect::ReadList { .. } | Effect::Bind { .. })
        });
        if self.dirty && reads {
            self.publisher.artifacts(&self.context, &self.state)?;
        }
        // Agents, commands and people all read projections: none of them may see a state of before.
        let told = fresh.iter().any(|effect| matches!(effect, Effect::Run { .. } | Effect::Ask { .. }));
        if self.dirty && (told || self.is_due(self.projected, PROJECT_EVERY)) {
            let events = self.project()?;
            if !events.is_empty() {
                observer.events(&self.context, &self.state, &events);
                wish = wanted(&self.context.frozen.plan, &self.state, now);
            }
        }
        let open: BTreeSet<DecisionId> = wish
            .effects
            .iter()
            .filter_map(
                |effect| if let Effect::Ask { decision } = effect { Some(decision.clone()) } else { None },
            )
            .collect();
        self.under_way
            .retain(|effect| !matches!(effect, Effect::Ask { .. }) || wish.effects.contains(effect));
        let unwanted = self
            .under_way
            .iter()
            .filter(|effect| matches!(effect, Effect::Check { .. }) && !wish.effects.contains(effect));
        for effect in unwanted.cloned().collect::<Vec<_>>() {
            if self.cancelled.insert(effect.clone()) {
                self.performer.cancel(&self.context, &effect);
            }
        }
        for effect in self.fresh(&wish) {
            self.under_way.insert(effect.clone());
            self.performer.start(&self.context, &self.state, &effect, &self.results.0)?;
        }
        if open != self.asked {
            self.asked = open;
            observer.asked(&self.context, &self.state, &self.asked);
        }
        Ok(())
    }

    /// Whether `last` is at least `every` ago, or never was.
    fn is_due(&self, last: Option<Duration>, every: Duration) -> bool {
        last.is_none_or(|at| self.context.clock.monotonic().saturating_sub(at) >= every)
    }

    /// What is wanted and not under way. While files cannot be written nobody begins who would have to read them.
    fn fresh(&self, wish: &Wanted) -> Vec<Effect> {
        let unwritten = matches!(self.state.phase, RunPhase::Paused(Pause::Unwritten { .. }));
        let began = |step: &StepId, attempt: &u32| {
            let launched = self.state.steps.get(step).and_then(|own| own.launched.as_ref());
            launched.is_some_and(|launched| launched.0 == *attempt)
        };
        let may = |effect: &&Effect| match effect {
            Effect::Run { step, attempt } => !unwritten || began(step, attempt),
            _ => true,
        };
        wish.effects.iter().filter(|effect| !self.under_way.contains(effect)).filter(may).cloned().collect()
    }

    /// Brings the run directory up to date; the projection that cannot be written, if there is one.
    fn publish(&mut self) -> Result<Option<PublishError>, EngineError> {
        self.publisher.artifacts(&self.context, &self.state)?;
        let unwritten = self.publisher.projections(&self.context, &self.state)?;
        let unwritten = self.notice_foreign_edits()?.or(unwritten);
        self.projected = Some(self.context.clock.monotonic());
        self.dirty = unwritten.is_some();
        Ok(unwritten)
    }

    /// The same for a run that is driven: what cannot be written blocks it, and that is what follows (S1-21).
    fn project(&mut self) -> Result<Vec<Event>, EngineError> {
        let Some(unwritten) = self.publish()? else { return Ok(Vec::new()) };
        let cause = std::error::Error::source(&unwritten).map(|cause| format!(": {cause}"));
        let problem = format!("{unwritten}{}", cause.unwrap_or_default());
        match self.take(&Input::Unwritten { problem })? {
            Ok(events) => Ok(events),
            // A run that has ended takes no more records.
            Err(_) => Err(unwritten.into()),
        }
    }

    /// Somebody changed a file that only the engine writes: it is written anew, and it is on record (J-18).
    fn notice_foreign_edits(&mut self) -> Result<Option<PublishError>, EngineError> {
        let foreign = self.publisher.take_foreign();
        for name in &foreign {
            let intrusion = Intrusion {
                kind: IntrusionKind::Projection,
                what: format!("{name} in the run directory was changed by somebody else and is written anew"),
                by: Vec::new(),
            };
            // A run that has ended takes no more records; doctor compares the files itself.
            let _ = self.take(&Input::Noticed { intrusion })?;
        }
        if foreign.is_empty() {
            return Ok(None);
        }
        Ok(self.publisher.projections(&self.context, &self.state)?)
    }

    /// Brings everything derived up to date for a run that rests: a crash may have come between its
    /// last record and its last file.
    pub fn tidy(&mut self) -> Result<(), EngineError> {
        if let Some(unwritten) = self.publish()? {
            return Err(unwritten.into());
        }
        self.leave();
        Ok(())
    }

    fn leave(&self) {
        crate::streams::tidy::tidy(&self.context, &self.state);
        // The last of all: while it is missing or old, whoever looks at the run next does all of this again.
        summary::write(&self.context, &self.state, self.journal.last_seq(), self.journal.head());
    }

    /// Everything derived is as the journal has it.
    fn flush(&mut self, observer: &mut dyn Observer) -> Result<(), EngineError> {
        let events = self.project()?;
        if !events.is_empty() {
            observer.events(&self.context, &self.state, &events);
            // The files that can be written say that it is blocked.
            self.publish()?;
        }
        self.leave();
        observer.tick(&self.context, &self.state);
        Ok(())
    }

    /// Waits for the next result and takes everything that arrived together, in one commit.
    fn wait(&mut self, observer: &mut dyn Observer) -> Result<(), EngineError> {
        let now = self.context.clock.now();
        let wake = wanted(&self.context.frozen.plan, &self.state, now).wake_at;
        let due = wake.map_or(INBOX_EVERY, |at| Duration::from_millis(at.since(now)).min(INBOX_EVERY));
        let arrivals = self.performer.wait(&self.results.1, due);
        if arrivals.is_empty() {
            let _ =
                self.take(&Input::Tick)?.map(|events| observer.events(&self.context, &self.state, &events));
            observer.tick(&self.context, &self.state);
            return Ok(());
        }
        let now = self.context.clock.now();
        let mut events = Vec::new();
        for arrival in arrivals {
            if let Some(effect) = &arrival.effect {
                self.under_way.remove(effect);
                self.cancelled.remove(effect);
            }
            // A result that is no longer wanted changes nothing (J-33).
            if let Ok(more) = advance(&self.context.frozen.plan, &mut self.state, &arrival.input, now) {
                events.extend(more);
            }
        }
        self.commit(&events, now)?;
        observer.events(&self.context, &self.state, &events);
        Ok(())
    }
}
