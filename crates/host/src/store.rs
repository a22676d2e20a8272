//! Readers of runs: list them, find one by what a person types, fold one without disturbing its
//! engine. Never writes, never locks.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::{
    event::Event,
    ids::Timestamp,
    replay,
    state::{RunStatus, State},
};
use gatewright_workflow::frozen::Frozen;

use crate::{
    disk::{Disk, SharedDisk},
    journal::{JournalError, JournalKey, JournalReader, Record, lock_path},
    project::{Project, RunPaths},
    run_loop::{EngineError, journal_is_lost, read_frozen},
    run_meta::{MetaError, RunMeta},
    summary::{self, Summary},
    user_key::{RunKey, UserKey},
};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there are no runs in this project yet")]
    NoRuns,
    #[error("no run is called `{wanted}`{}", near(.known))]
    NotFound { wanted: String, known: Vec<String> },
    #[error("`{wanted}` is the beginning of several runs: {}", .candidates.join(", "))]
    Ambiguous { wanted: String, candidates: Vec<String> },
    #[error("{}: the runs cannot be listed", path.display())]
    List { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Meta(#[from] MetaError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Broken(Broken),
}

fn near(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; the latest are: {}", known.join(", ")) }
}

/// All runs of a project.
#[derive(Clone)]
pub struct RunStore {
    pub disk: SharedDisk,
    pub project: Project,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub meta: RunMeta,
    pub summary: Summary,
    /// With `interrupted` in place of `running` where no engine holds the run.
    pub state: String,
    /// Its `summary.json` was there and true.
    pub summed_up: bool,
}

/// All runs, those that can be read and those that cannot.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    pub runs: Vec<Listed>,
    pub broken: Vec<Broken>,
}

/// A run that cannot be read: it is named with what is wrong and what helps, never left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("run `{id}` is broken: {problem}")]
pub struct Broken {
    pub id: String,
    pub problem: String,
    pub remedy: String,
}

impl Broken {
    fn new(paths: &RunPaths, id: String, error: &StoreError) -> Broken {
        let lost = |path: &Path| {
            format!(
                "restore {} from a copy, or give the run up: rm -r {}",
                path.display(),
                paths.dir.display()
            )
        };
        let remedy = match error {
            StoreError::Meta(_) => lost(&paths.meta()),
            StoreError::Engine(EngineError::JournalLost { .. }) => lost(&paths.journal()),
            StoreError::Engine(EngineError::Plan { path, .. } | EngineError::PlanFormat { path, .. }) => {
                lost(path)
            }
            StoreError::NoRuns
            | StoreError::NotFound { .. }
            | StoreError::Ambiguous { .. }
            | StoreError::Broken(_)
            | StoreError::List { .. }
            | StoreError::Journal(_)
            | StoreError::Engine(_) => format!("gatewright events {id} prints what can still be read"),
        };
        let (mut problem, mut source) = (error.to_string(), std::error::Error::source(error));
        while let Some(cause) = source {
            let text = cause.to_string();
            if !problem.ends_with(&text) {
                problem.push_str(&format!(": {text}"));
            }
            source = cause.source();
        }
        Broken { id, problem, remedy }
    }
}

/// A run as far as its journal tells at this moment.
pub struct Snapshot {
    pub paths: RunPaths,
    pub meta: RunMeta,
    pub frozen: Arc<Frozen>,
    pub state: State,
    pub records: Vec<Record>,
    /// An engine holds the run.
    pub held: bool,
    /// Every record was written with the user's key. Otherwise they are whole, but nobody can say by whom.
    pub authentic: bool,
}

impl Snapshot {
    /// The state in the words of the outside.
    pub fn state_word(&self) -> &'static str {
        outside_word(&self.state, self.held)
    }
}

/// Nothing will happen in it any more.
pub fn is_over(state: &str) -> bool {
    matches!(state, "done" | "failed" | "abandoned")
}

/// A run that wants to work while nobody drives it is interrupted (decision 19).
pub fn outside_word(state: &State, held: bool) -> &'static str {
    if state.status() == RunStatus::Running && !held {
        "interrupted"
    } else {
        crate::document::status_word(state)
    }
}

impl RunStore {
    pub fn new(disk: SharedDisk, project: Project) -> RunStore {
        RunStore { disk, project }
    }

    /// Names of everything that is stored as a run.
    fn folders(&self) -> Result<Vec<String>, StoreError> {
        let path = self.project.runs();
        match self.disk.list_dir(&path) {
            Ok(names) => Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(StoreError::List { path, source }),
        }
    }

    /// What every `run.json` says, oldest first, and the runs whose file is gone or unreadable. A folder
    /// without a journal never was a run.
    fn metas(&self, mut wanted: impl FnMut(&str) -> bool) -> Result<(Vec<RunMeta>, Vec<Broken>), StoreError> {
        let (mut metas, mut broken) = (Vec::new(), Vec::new());
        for id in self.folders()?.into_iter().filter(|id| wanted(id)) {
            let paths = self.project.run(&id);
            match RunMeta::read(self.disk.as_ref(), &paths) {
                // A folder is what it is called, whatever somebody wrote into it.
                Ok(meta) => metas.push(RunMeta { id, ..meta }),
                Err(error) => {
                    if self.disk.exists(&paths.journal()).unwrap_or(true) {
                        broken.push(Broken::new(&paths, id, &error.into()));
                    }
                }
            }
        }
        metas.sort_by(|one, other| (one.created_at_ms, &one.id).cmp(&(other.created_at_ms, &other.id)));
        Ok((metas, broken))
    }

    /// Ids of all runs whose `run.json` can be read, oldest first.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.metas(|_| true)?.0.into_iter().map(|meta| meta.id).collect())
    }

    /// The run that a person means: an id, the beginning of one, or `latest`.
    pub fn find(&self, wanted: &str) -> Result<String, StoreError> {
        let fits = |id: &str| !wanted.is_empty() && id.starts_with(wanted);
        let (fitting, broken) = self.metas(fits)?;
        if let Some(exact) = fitting.iter().find(|meta| meta.id == wanted) {
            return Ok(exact.id.clone());
        }
        let mut candidates: Vec<String> = fitting.into_iter().map(|meta| meta.id).collect();
        if let (true, Some(run)) = (candidates.is_empty(), broken.into_iter().next()) {
            return Err(StoreError::Broken(run));
        }
        if wanted != "latest" && candidates.len() == 1 {
            return Ok(candidates.remove(0));
        }
        let ids = self.ids()?;
        let Some(last) = ids.last() else { return Err(StoreError::NoRuns) };
        if wanted == "latest" {
            return Ok(last.clone());
        }
        if candidates.is_empty() {
            let known = ids.into_iter().rev().take(3).collect();
            return Err(StoreError::NotFound { wanted: wanted.to_owned(), known });
        }
        Err(StoreError::Ambiguous { wanted: wanted.to_owned(), candidates })
    }

    /// The run that goes on in the folder of this one, which is over.
    pub fn continued_by(&self, id: &str) -> Option<String> {
        let metas = self.folders().ok()?.into_iter();
        let mut metas =
            metas.filter_map(|other| RunMeta::read(self.disk.as_ref(), &self.project.run(&other)).ok());
        metas.find(|meta| meta.continues.as_ref().is_some_and(|before| before.run == id)).map(|meta| meta.id)
    }

    /// Every run in short that can be read, oldest first.
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        Ok(self.survey()?.runs)
    }

    /// Every run in short, oldest first, and those that cannot be read, with the reason.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        let (metas, broken) = self.metas(|_| true)?;
        Ok(self.survey_of(metas, broken))
    }

    fn survey_of(&self, metas: Vec<RunMeta>, broken: Vec<Broken>) -> Survey {
        let mut survey = Survey { runs: Vec::with_capacity(metas.len()), broken };
        for meta in metas {
            let id = meta.id.clone();
            match self.listed(meta) {
                Ok(listed) => survey.runs.push(listed),
                Err(error) => survey.broken.push(self.broken(id, &error)),
            }
        }
        survey
    }

    pub fn broken(&self, id: String, error: &StoreError) -> Broken {
        Broken::new(&self.project.run(&id), id, error)
    }

    /// Every run that is not over, in short, oldest first, those that cannot be read, and how many are over. Of those
    /// that are over nothing but their summaries is read.
    pub fn open_runs(&self) -> Result<(Survey, usize), StoreError> {
        let over = |id: &str| {
            let summary = summary::read(self.disk.as_ref(), &self.project.run(id), id);
            summary.is_some_and(|summary| is_over(&summary.state))
        };
        let mut ended = 0;
        let (metas, broken) = self.metas(|id| {
            let over = over(id);
            ended += usize::from(over);
            !over
        })?;
        let mut survey = self.survey_of(metas, broken);
        let all = survey.runs.len();
        survey.runs.retain(|run| !is_over(&run.state));
        ended += all - survey.runs.len();
        Ok((survey, ended))
    }

    /// One run in short.
    pub fn listed(&self, meta: RunMeta) -> Result<Listed, StoreError> {
        let paths = self.project.run(&meta.id);
        if let Some(summary) = summary::read(self.disk.as_ref(), &paths, &meta.id) {
            let state = if summary.state == "running" && !self.is_held(&paths) {
                "interrupted".to_owned()
            } else {
                summary.state.clone()
            };
            return Ok(Listed { meta, summary, state, summed_up: true });
        }
        let snapshot = self.snapshot(&meta.id, None)?;
        let summary = summary::of(&snapshot.frozen, &snapshot.state, summary::JournalMark::default());
        Ok(Listed { state: snapshot.state_word().to_owned(), meta, summary, summed_up: false })
    }

    /// The user's secret for a run, if this process may read it.
    pub fn key_of(&self, paths: &RunPaths, id: &str) -> Option<RunKey> {
        UserKey::load(paths.state_root()).ok().flatten().map(|key| key.for_run(id))
    }

    pub fn is_held(&self, paths: &RunPaths) -> bool {
        self.disk.lock_is_held(&lock_path(&paths.journal())).unwrap_or(false)
    }

    /// Folds a run's journal as it is now.
    pub fn snapshot(&self, id: &str, key: Option<JournalKey>) -> Result<Snapshot, StoreError> {
        let paths = self.project.run(id);
        let meta = RunMeta::read(self.disk.as_ref(), &paths)?;
        let run_key = self.key_of(&paths, id);
        meta.verify(&paths, run_key.as_ref())?;
        let key = key.or_else(|| meta.journal_key(run_key.as_ref()));
        let first = read_frozen(self.disk.as_ref(), &paths.plan(&meta.digest))?;
        let held = self.is_held(&paths);
        let mut reader = JournalReader::follow(self.disk.clone(), &paths.journal(), id, key);
        let mut records = reader.read_new()?;
        let authentic = !reader.unauthenticated();
        // What is wrong behind the good records is said by the next reading: half a truth is none.
        records.extend(reader.read_new()?);
        if records.is_empty() {
            journal_is_lost(self.disk.as_ref(), &paths, id)?;
        }
        let mut events = Vec::with_capacity(records.len());
        for record in &records {
            let event: Event = record.event().map_err(|source| EngineError::Record {
                run: id.to_owned(),
                seq: record.seq,
                source,
            })?;
            events.push((Timestamp(record.at_ms), event));
        }
        let (state, frozen) = fold(self.disk.as_ref(), &paths, id, first, events)?;
        Ok(Snapshot { paths, meta, frozen: Arc::new(frozen), state, records, held, authentic })
    }
}

/// Folds events over the plan the run started with and those it adopted; gives back the one in force.
fn fold(
    disk: &dyn Disk,
    paths: &RunPaths,
    id: &str,
    first: Frozen,
    events: Vec<(Timestamp, Event)>,
) -> Result<(State, Frozen), EngineError> {
    let mut adopted = Vec::new();
    for (_, event) in &events {
        if let Event::PlanAdopted { digest } = event {
            adopted.push((digest.clone(), read_frozen(disk, &paths.plan(digest))?));
        }
    }
    let find =
        |digest: &str| adopted.iter().find(|(known, _)| known == digest).map(|(_, frozen)| &frozen.plan);
    let (state, _) = replay(&first.plan, events, find)
        .map_err(|source| EngineError::Replay { run: id.to_owned(), source })?;
    let in_force =
        state.plan_digest.as_ref().and_then(|digest| adopted.into_iter().find(|(known, _)| known == digest));
    Ok((state, in_force.map_or(first, |(_, frozen)| frozen)))
}
