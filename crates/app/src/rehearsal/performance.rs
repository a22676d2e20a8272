//! Runs one scenario: a scratch repository, the project's definition with rehearsed agents and
//! checks, the real engine in this process, people from the script.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
};

use gatewright_core::{
    Rejected,
    event::{About, Event},
    ids::{CheckId, DecisionId, RoleId, StageId, StepId, Timestamp},
    input::{Answer, Input, Raise},
    plan::{self, AnswerEffect},
    state::{DecisionState, State},
    verdict::Severity,
};
use gatewright_host::{
    launch::{NewRun, create},
    project::Project,
    run_context::RunContext,
    run_loop::{Observer, Order, Rest, RunLoop},
    run_meta::StartedWith,
    store::{RunStore, Snapshot},
};
use gatewright_workflow::{
    frozen::{Frozen, Sandbox},
    load::LoadOptions,
};

use super::{
    agent::SCENARIO_VARIABLE,
    content::{Subject, content},
    coverage::Coverage,
    launches::{House, Launches},
    scenario::{CheckScript, Ordered, Scenario, ScriptedAnswer, ScriptedOrder, names},
    scratch::{Scratch, ScratchError, commit},
    stage::{Cues, Stage},
};
use crate::{
    command_error::{CommandError, Kind},
    definitions::Session,
    drive,
};

/// The longest attempt of a scenario that names no other.
const TIMEOUT_MS: u64 = 30_000;
/// A script that keeps a run busy longer than this runs in circles.
const SITTINGS_MAX: u32 = 1_000;
/// So often a question about one step gets the same agreeable answer.
const PATIENCE: usize = 5;
/// Where the scratch repository is inside the scratch folder.
const REPOSITORY: &str = "repository";

/// A run that was played, as its journal tells it.
pub struct Played {
    pub snapshot: Snapshot,
    pub events: Vec<Event>,
    pub files: BTreeSet<String>,
    /// Answers and orders that the engine did not take.
    pub refused: Vec<String>,
    pub launches: Launches,
}

impl Played {
    /// Adds what this run walked.
    pub fn walk(&self, coverage: &mut Coverage) {
        let times = self.snapshot.records.iter().map(|record| Timestamp(record.at_ms));
        coverage.walk(&self.snapshot.frozen.plan, times.zip(&self.events));
    }
}

impl From<ScratchError> for CommandError {
    fn from(error: ScratchError) -> Self {
        CommandError::from_error(Kind::Failed, &error)
    }
}

/// The project's definition, all roles played by `rehearsal`.
pub fn load(
    session: &Session,
    workflow: &str,
    profile: Option<&str>,
    scenario: &Scenario,
) -> Result<Frozen, CommandError> {
    session.load(workflow, &options(session, profile, scenario))
}

/// The same with all profiles in its plan.
pub fn load_all(session: &Session, workflow: &str) -> Result<Frozen, CommandError> {
    session.load_all(workflow, &options(session, None, &Scenario::default()))
}

fn options<'s>(session: &'s Session, profile: Option<&str>, scenario: &Scenario) -> LoadOptions<'s> {
    LoadOptions {
        profile: profile.map(str::to_owned).or_else(|| scenario.profile.clone()),
        settings: scenario.settings.clone(),
        agent: Some("rehearsal".to_owned()),
        config: &session.config,
    }
}

/// Plays a scenario to its end or rest. `script` is the file that the agents read, if there is one.
pub fn play(
    session: &Session,
    workflow: &str,
    frozen: Frozen,
    scenario: &Scenario,
    script: Option<&Path>,
    houses: &[House],
) -> Result<Played, CommandError> {
    let scratch = Scratch::new("rehearsal")?;
    scratch.goes_with_signals(&Arc::default());
    let files: Vec<(&str, &str)> =
        scenario.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    scratch.write(REPOSITORY, &files)?;
    let repository = scratch.repository(REPOSITORY)?;
    let frozen = rehearsed(frozen, scenario, script, &scratch.root)?;
    let project = Project::at(&repository, &scratch.state());
    let started_with = StartedWith {
        workflow: workflow.to_owned(),
        agent: Some("rehearsal".to_owned()),
        ..StartedWith::default()
    };
    let request = scenario.request.as_deref().unwrap_or("Rehearse the workflow");
    let new = NewRun::new(&project, frozen, request, started_with);
    let context = create(session.disk.clone(), session.clock.clone(), new)?;
    let id = context.meta.id.clone();
    let run_dir = context.meta.run_dir.clone();
    let mut sitting = Sitting::new(context, scenario, script.is_none());
    sitting.stage =
        Stage::new(Launches::new(houses, &scratch.root.join("home")), sitting.watcher.cues.clone());
    sitting.play_to_the_end()?;
    let mut refused = std::mem::take(&mut sitting.refused);
    refused.append(&mut sitting.watcher.refused);
    let launches = sitting.stage.launches();
    drop(sitting);
    let snapshot = RunStore::new(session.disk.clone(), project).snapshot(&id, None)?;
    let events: Result<Vec<Event>, serde_json::Error> =
        snapshot.records.iter().map(|record| record.event()).collect();
    let files = gatewright_host::inputs::list_files(&run_dir, 10_000).into_iter().collect();
    Ok(Played { events: events?, snapshot, files, refused, launches })
}

/// The frozen workflow with what a rehearsal replaces: agents, checks, and waiting.
fn rehearsed(
    mut frozen: Frozen,
    scenario: &Scenario,
    script: Option<&Path>,
    scratch: &Path,
) -> Result<Frozen, CommandError> {
    let program = std::env::current_exe()?.display().to_string();
    // Never the user's own: nothing of a rehearsal leaves the scratch repository.
    frozen.pull_request =
        scenario.pull_request.map(|ok| if ok { "true" } else { "false" }.to_owned()).into_iter().collect();
    for agent in frozen.agents.values_mut() {
        agent.command = vec![program.clone(), "rehearsal-agent".to_owned()];
        agent.adapter = None;
        agent.declared = gatewright_agents::Declared::default();
        agent.args = Vec::new();
        agent.prompt = gatewright_workflow::frozen::PromptVia::Stdin;
        agent.set = BTreeMap::new();
        if let Some(script) = script {
            agent.set.insert(SCENARIO_VARIABLE.to_owned(), script.display().to_string());
        }
    }
    let longest = scenario.timeout_ms.unwrap_or(TIMEOUT_MS);
    let at_most = |own: Option<u64>| Some(own.map_or(longest, |own| own.min(longest)));
    for (profile, graph) in &frozen.plan.graphs {
        let texts = frozen.steps.entry(profile.clone()).or_default();
        for id in graph.steps.keys() {
            let text = texts.entry(id.clone()).or_default();
            text.timeout_ms = at_most(text.timeout_ms);
            text.idle_timeout_ms = at_most(text.idle_timeout_ms);
        }
    }
    // Pauses between attempts are for the weather outside, and there is none.
    for step in frozen.plan.graphs.values_mut().flat_map(|graph| graph.steps.values_mut()) {
        step.retry.backoff_ms.clear();
    }
    // A played check counts its executions beside the repository, where a sandbox would not let it.
    let counters = scratch.join("checks");
    std::fs::create_dir_all(&counters)?;
    let place = counters.display().to_string();
    let sandboxes = frozen.agents.values_mut().map(|agent| &mut agent.sandbox);
    for sandbox in sandboxes.chain(std::iter::once(&mut frozen.sandbox)) {
        if let Sandbox::On { write, .. } = sandbox {
            write.push(place.clone());
        }
    }
    let mut written = written_by_checks(&frozen, scratch)?;
    for (id, check) in &mut frozen.checks {
        let played = match scenario.checks.get(id.as_str()) {
            Some(CheckScript::Run) => continue,
            Some(CheckScript::Played(results)) => results.as_slice(),
            None => &[true],
        };
        check.run = written.remove(id).unwrap_or_default();
        check.run += &played_check(
            &counters.join(format!("check-{}", gatewright_host::project::file_name(id.as_str()))),
            played,
        );
        check.cwd = None;
        check.junit = None;
        check.tests_min = None;
        check.skipped_max = None;
        check.expect_failure = false;
    }
    Ok(frozen)
}

/// Shell lines that write what check steps promise: a played check does not run the command that would.
fn written_by_checks(frozen: &Frozen, scratch: &Path) -> Result<BTreeMap<CheckId, String>, CommandError> {
    let mut lines: BTreeMap<CheckId, String> = BTreeMap::new();
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    for (profile, texts) in &frozen.steps {
        let steps = frozen.plan.graphs.get(profile).map(|graph| &graph.steps);
        for (id, text) in texts {
            let Some(plan::Kind::Check { check }) =
                steps.and_then(|steps| steps.get(id)).map(|step| &step.kind)
            else {
                continue;
            };
            // A name that is a template is rendered with the line it stands in; quotes in it would be cut there.
            let can_stand_there = |name: &String| !name.contains("{{") || !name.contains('\'');
            for write in text.writes.iter().filter(|write| can_stand_there(&write.name)) {
                let name = write.first.as_ref().unwrap_or(&write.name);
                let contract = write.first_contract.as_ref().unwrap_or(&write.contract);
                let subject = Subject {
                    name,
                    role: check.as_str(),
                    request: "",
                    reviewer: false,
                    findings: &[],
                    block_at: Severity::Medium,
                    list: None,
                };
                let file =
                    scratch.join(format!("written-{}", lines.values().map(String::len).sum::<usize>()));
                std::fs::write(&file, content(contract, &subject))?;
                let line = lines.entry(check.clone()).or_default();
                line.push_str(&format!(
                    "case \"$GATEWRIGHT_STEP\" in {}) cp {} \"$GATEWRIGHT_OUT\"/{};; esac; ",
                    instances(id.as_str()),
                    quoted(&file.display().to_string()),
                    quoted(name)
                ));
            }
        }
    }
    Ok(lines)
}

/// The pattern of the steps that are made of a template: `each/check` is `each/KEY/check` in every item.
fn instances(template: &str) -> String {
    match template.rsplit_once('/') {
        Some((owner, name)) => format!("{template}|{owner}/*/{name}"),
        None => template.to_owned(),
    }
}

/// A shell line that counts its executions (a folder is made by exactly one) and succeeds or not.
fn played_check(mark: &Path, results: &[bool]) -> String {
    let code = |ok: &bool| if *ok { "exit 0" } else { "echo 'rehearsed failure'; exit 1" };
    let last = results.last().map_or("exit 0", code);
    let case = |(place, ok): (usize, &bool)| format!("{}) {};; ", place + 1, code(ok));
    let cases = results.iter().enumerate().map(case).collect::<Vec<_>>().concat();
    let mark = mark.display().to_string().replace('\'', "'\\''");
    format!(
        "n=1; while ! mkdir '{mark}'.$n 2>/dev/null; do n=$((n+1)); \
         [ $n -lt 10000 ] || {{ echo 'the rehearsal cannot count'; exit 99; }}; done; \
         case $n in {cases}*) {last};; esac"
    )
}

type Engine = RunLoop<Stage>;

/// One run with its script.
struct Sitting<'s> {
    context: RunContext,
    answers: BTreeMap<String, Vec<ScriptedAnswer>>,
    /// Nobody wrote a script: every question gets its first passing answer.
    agreeable: bool,
    /// How often such an answer was given about a step.
    agreed: BTreeMap<StepId, usize>,
    watcher: Watcher<'s>,
    stage: Stage,
    refused: Vec<String>,
}

impl<'s> Sitting<'s> {
    fn new(context: RunContext, scenario: &'s Scenario, agreeable: bool) -> Sitting<'s> {
        let mut answers = scenario.answers.clone();
        for list in answers.values_mut() {
            list.reverse();
        }
        let watcher = Watcher::new(&scenario.orders, &context.meta.root);
        let (agreed, stage) = (BTreeMap::new(), Stage::default());
        Sitting { context, answers, agreeable, agreed, watcher, stage, refused: Vec::new() }
    }

    fn play_to_the_end(&mut self) -> Result<(), CommandError> {
        let key = self.context.journal_key();
        let mut engine: Engine =
            RunLoop::create(self.context.clone(), self.stage.for_next_engine(), key.clone())?;
        for _ in 0..SITTINGS_MAX {
            let (orders, received): (Sender<Order>, Receiver<Order>) = channel();
            // Orders that an answer set off come first.
            for order in std::mem::take(&mut self.watcher.due) {
                let _ = orders.send(order);
            }
            self.watcher.orders = Some(orders);
            let rest = engine.run(&mut self.watcher, &received, false)?;
            self.watcher.orders = None;
            if rest == Rest::Left {
                // The engine that was killed is dropped first: its lock is what the next one takes.
                drop(engine);
                engine =
                    RunLoop::open(self.context.clone(), self.stage.for_next_engine(), key.clone())?.engine;
                continue;
            }
            if std::mem::take(&mut self.watcher.resume) {
                let resume = Input::Resume { raise: Raise::default(), substitutes: BTreeMap::new() };
                self.order(&mut engine, &resume, "resume")?;
                continue;
            }
            if !self.answer_all(&mut engine)? && self.watcher.due.is_empty() {
                return Ok(());
            }
        }
        Err(CommandError::failed("the scenario runs in circles")
            .hint("its answers keep the run going for ever"))
    }

    /// Gives a scripted answer to every open question that has one; says whether there was one.
    fn answer_all(&mut self, engine: &mut Engine) -> Result<bool, CommandError> {
        let mut answered = false;
        for id in engine.state.queues.pending_decisions.clone() {
            let Some(pending) = engine.state.decisions.get(&id).cloned() else { continue };
            let Some(input) = self.next_answer(&id, &pending) else { continue };
            answered |= self.order(engine, &input, &format!("the answer to `{id}`"))?;
        }
        Ok(answered)
    }

    fn order(&mut self, engine: &mut Engine, input: &Input, what: &str) -> Result<bool, CommandError> {
        match engine.human(input)? {
            Ok(events) => {
                self.watcher.look(&events);
                Ok(true)
            }
            // Shown again by the engine; the same answer is for what is shown now.
            Err(Rejected::ChangedSinceShown { .. }) => Ok(true),
            Err(rejected) => {
                self.refused.push(format!("{what}: {rejected}"));
                Ok(false)
            }
        }
    }

    fn next_answer(&mut self, id: &DecisionId, pending: &DecisionState) -> Option<Input> {
        if self.agreeable {
            let times = self.agreed.entry(pending.decision.step.clone()).or_default();
            *times += 1;
            let plain = drive::answer(id, &patient_word(pending, *times), "rehearsal");
            // A waiver has a reason.
            let comment =
                matches!(pending.decision.about, About::Obligation { .. }).then(|| "rehearsed".to_owned());
            return Some(Input::Answer(Answer { comment, ..plain }));
        }
        let step = pending.decision.step.as_str();
        let key =
            [id.as_str(), step].into_iter().find(|key| self.answers.contains_key(*key)).map(str::to_owned);
        let key = key.or_else(|| self.answers.keys().find(|key| names(key, step)).cloned())?;
        let scripted = self.answers.get_mut(&key)?.pop()?;
        if let Some(reason) = scripted.cancel {
            return Some(Input::CancelDecision { decision: id.clone(), reason });
        }
        let plain = drive::answer(id, &scripted.answer, "rehearsal");
        Some(Input::Answer(Answer {
            comment: scripted.comment,
            route: scripted.route.map(RoleId::from),
            confirmed: scripted.confirmed,
            ..plain
        }))
    }
}

/// The first answer that lets the run go on; when that one was of no use again and again, the others in turn.
fn patient_word(pending: &DecisionState, times: usize) -> String {
    let answers = &pending.decision.answers;
    match times.checked_sub(PATIENCE + 1) {
        Some(more) if !answers.is_empty() => answers[more % answers.len()].word.clone(),
        _ => agreeable_word(pending),
    }
}

/// The first answer that lets the run go on.
fn agreeable_word(pending: &DecisionState) -> String {
    let answers = &pending.decision.answers;
    let passes = |effect: &AnswerEffect| matches!(effect, AnswerEffect::Pass | AnswerEffect::Accept);
    let word = answers
        .iter()
        .find(|answer| passes(&answer.effect))
        .or(answers.first())
        .map(|answer| answer.word.clone());
    word.unwrap_or_else(|| "as you think best".to_owned())
}

/// Sees what happens and gives the scripted orders at their moments, each once.
struct Watcher<'s> {
    waiting: Vec<&'s ScriptedOrder>,
    /// What those wait for.
    cues: Cues,
    /// The way into the engine while it runs.
    orders: Option<Sender<Order>>,
    /// Orders that wait until it runs.
    due: Vec<Order>,
    /// The stop that was ordered is to be followed by a resume.
    resume: bool,
    repository: PathBuf,
    /// What could not be done.
    refused: Vec<String>,
}

impl<'s> Watcher<'s> {
    fn new(orders: &'s [ScriptedOrder], repository: &Path) -> Watcher<'s> {
        let mut watcher = Watcher {
            waiting: orders.iter().collect(),
            cues: Cues::default(),
            orders: None,
            due: Vec::new(),
            resume: false,
            repository: repository.to_owned(),
            refused: Vec::new(),
        };
        watcher.cue();
        watcher
    }

    fn look(&mut self, events: &[Event]) {
        for event in events {
            let (Event::StepPassed { step, .. } | Event::StepSkipped { step, .. }) = event else { continue };
            let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|order| names(&order.after, step.as_str()));
            self.waiting = later;
            for order in now {
                self.give(order);
            }
        }
        self.cue();
    }

    fn cue(&mut self) {
        let cues = self.waiting.iter().map(|order| order.after.clone()).collect();
        *self.cues.lock().unwrap_or_else(PoisonError::into_inner) = cues;
    }

    fn give(&mut self, scripted: &ScriptedOrder) {
        let reason = scripted.reason.clone();
        let order = match &scripted.what {
            Ordered::Restart { stage } => {
                Order::Input(Input::RestartStage { stage: StageId::new(stage), reason })
            }
            Ordered::Skip { step } => Order::Input(Input::Skip { step: StepId::new(step), reason }),
            Ordered::Stop { then_resume } => {
                self.resume = *then_resume;
                Order::Input(Input::Stop)
            }
            Ordered::Abort => Order::Input(Input::Abort { reason }),
            Ordered::Kill => Order::Leave,
            // Nobody asks the engine for this.
            Ordered::Commit { files } => {
                let done = commit(&self.repository, files);
                self.refused.extend(
                    done.err().map(|error| format!("the commits after `{}`: {error}", scripted.after)),
                );
                return;
            }
        };
        match &self.orders {
            // The receiver lives as long as the engine runs, and this is called from inside it.
            Some(orders) => drop(orders.send(order)),
            None => self.due.push(order),
        }
    }
}

impl Observer for Watcher<'_> {
    fn events(&mut self, _context: &RunContext, _state: &State, events: &[Event]) {
        self.look(events);
    }

    fn asked(&mut self, _context: &RunContext, _state: &State, _open: &BTreeSet<DecisionId>) {}

    fn tick(&mut self, _context: &RunContext, _state: &State) {}
}

/// The script's path as the agents will read it, from wherever they work.
pub fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    path.canonicalize().map_err(|error| CommandError::usage(format!("{}: {error}", path.display())))
}
