//! Agents: the prompt is made, the inputs are resolved, the supervisor is started or found again,
//! and what the attempt left is examined when it has ended.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
    time::Duration,
};

use gatewright_agents::{Conversation, Means};
use gatewright_attempts::{
    AttemptDir, Defence, LaunchSpec, OutputStream, Started, request_stop, start_or_attach, wait_for_exit,
};
use gatewright_core::{
    budget_share,
    effect::Effect,
    event::Cause,
    fact::{
        AttemptReport, Conversation as Known, InputProblem, Intrusion, IntrusionKind, LaunchFact, News,
        ProcessEnd,
    },
    ids::{ArtifactName, CheckId, DecisionId, StepId},
    input::Input,
    plan::{FanOut, Kind, Plan},
    state::{DecisionState, DecisionStatus, State},
    verdict::{Finding, Severity},
};
use gatewright_workflow::{
    definition::file_name,
    frozen::{StepText, may_write, policy},
    reply::{WordMap, schema_of},
};
use serde_json::{Value, json};

use crate::{
    collect::{Expectation, Output, claims, collect, contradictions, hold_against},
    document::relative_dir,
    hints, inputs,
    list::{self, Begun},
    machine_pools::Wish,
    mask::Masks,
    perform::{
        Arrival, check, facts, given, in_thread, repair, sandbox, stream, threads,
        turn::{self, Models, Turn},
    },
    prompt::{self, Place, PromptParts},
    purse::Allowance,
    run_context::RunContext,
    run_masks,
    scope::{self, Entered, Watch},
    streams::{
        commit::By,
        intrusion::{Beside, Busy},
        judged, merge,
        place::Workplace,
        presence::Presence,
        tip, worktree,
    },
    unclaimed::Ended,
    voice::{Meter, Voice},
};

/// Used when neither step nor agent names a timeout; nothing runs for ever.
const TIMEOUT_MS: u64 = gatewright_workflow::frozen::ATTEMPT_TIMEOUT_MS;
/// A silent agent is given this long.
const IDLE_TIMEOUT_MS: u64 = 20 * 60 * 1000;

/// Starts, attaches to, or collects an attempt.
pub fn run(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let definition = state.definition(&context.frozen.plan, step);
    if let Some(from) = state.steps.get(step).and_then(|own| own.given.as_deref()) {
        let document = context.step_document(state, step);
        match rendered_outputs(context, state, step, &context.text(state, step), &document) {
            Ok(outputs) => given::take(context, state, step, attempt, from, outputs, effect, results),
            Err(problem) => not_started(step, attempt, problem, effect, results),
        }
        return;
    }
    match definition.map(|definition| &definition.kind) {
        Some(Kind::Check { check }) => match prepare_check(context, state, step, attempt, check) {
            Ok(job) => check::step(context, state, step, attempt, check, job, effect, results),
            Err(problem) => not_started(step, attempt, problem, effect, results),
        },
        Some(Kind::Merge { of, .. }) => stream::merge(context, state, step, attempt, of, effect, results),
        Some(Kind::Finish { asked }) => {
            stream::finish(context, state, step, attempt, asked.as_ref(), effect, results);
        }
        Some(
            Kind::Agent { .. } | Kind::Review(_) | Kind::Decision(_) | Kind::FanOut(_) | Kind::SubRun { .. },
        )
        | None => match prepare(context, state, step, attempt) {
            Ok(job) => launch(context, step, attempt, job, effect, results),
            Err(problem) => not_started(step, attempt, problem, effect, results),
        },
    }
}

/// Ends an attempt that is no longer wanted, and reports its end.
pub fn stop(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    if let Some(Kind::Check { check }) =
        state.definition(&context.frozen.plan, step).map(|definition| &definition.kind)
    {
        check::cancel(context, step, attempt, check);
        // It has no supervisor that could be asked.
        let report = AttemptReport::new(ProcessEnd::Stopped);
        let input = Input::AttemptEnded { step: step.clone(), attempt, report };
        let _ = results.send(Arrival { effect: Some(effect.clone()), input });
        return;
    }
    let (path, step) = (context.paths.attempt(step.as_str(), attempt), step.clone());
    in_thread(effect, results, move || {
        if let Ok(dir) = AttemptDir::open(&path) {
            // An attempt that cannot be asked has ended or never began; either way it is over.
            let _ = request_stop(&dir);
            let _ = wait_for_exit(&dir, &|| false, Duration::from_millis(500));
            repair::stop(&dir);
        }
        Input::AttemptEnded { step, attempt, report: AttemptReport::new(ProcessEnd::Stopped) }
    });
}

fn not_started(
    step: &StepId,
    attempt: u32,
    problem: InputProblem,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let report = AttemptReport::new(ProcessEnd::NotStarted { problem });
    let input = Input::AttemptEnded { step: step.clone(), attempt, report };
    let _ = results.send(Arrival { effect: Some(effect.clone()), input });
}

/// An attempt that is ready to be started, or to be found again.
pub struct Job {
    place: Workplace,
    /// Places of the machine that it needs; an attempt that lives already has them.
    wish: Wish,
    /// It mends a merge that is in the tree; anybody else finds the tree without it.
    mends: bool,
    pub dir: AttemptDir,
    pub turn: Turn,
    pub prompt: String,
    conversation: Conversation,
    /// Of a conversation that this attempt begins.
    pub fresh_session: String,
    pub expectation: Expectation,
    spec: LaunchSpec,
    pub allowance: Allowance,
    watch: Watch,
}

impl Job {
    /// Step and attempt as one file name.
    fn label(&self) -> String {
        let number = self.dir.path.file_name().unwrap_or_default().to_string_lossy();
        let step = self.dir.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        format!("{step}-{number}")
    }
}

fn launch(
    context: &RunContext,
    step: &StepId,
    attempt: u32,
    job: Job,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let (context, step) = (context.clone(), step.clone());
    let heard = results.clone();
    in_thread(effect, results, move || {
        let masks = Masks::of_launch(&job.spec.env).and(run_masks::of_engine(&context));
        let tell = |news: News| {
            let input = Input::Underway { step: step.clone(), attempt, news };
            // Nobody listens any more when the engine is leaving.
            let _ = heard.send(Arrival { effect: None, input });
        };
        let report = masks.mask_record(run_attempt(&context, &job, &masks, &tell));
        Input::AttemptEnded { step: step.clone(), attempt, report }
    });
}

/// With what it begins to work.
fn launch_fact(job: &Job) -> LaunchFact {
    let git = judged::reading(&job.turn.workdir);
    let commit = git.text(&["rev-parse", "--verify", "-q", "HEAD^{commit}"]).ok();
    let wanted = job.turn.models.asked.clone().or_else(|| job.turn.tier.clone());
    LaunchFact {
        commit,
        model: wanted.or_else(|| Some("default".to_owned())),
        conversation: known_conversation(job),
    }
}

/// The conversation of an attempt, where it is known without a word of its agent.
fn known_conversation(job: &Job) -> Option<Known> {
    let session = match &job.conversation {
        Conversation::Resumed { session } => session,
        Conversation::New { session } if job.turn.voice.chooses_session() => session,
        Conversation::New { .. } => return None,
    };
    Some(Known { agent: job.turn.agent_name.clone(), session: session.clone() })
}

/// A declared agent that was to go on with a conversation and ended badly without a word does not know it: nobody here
/// knows its words for that.
fn is_lost_without_a_word(job: &Job, report: &AttemptReport) -> bool {
    matches!((&job.turn.voice, &job.conversation), (Voice::Declared(_), Conversation::Resumed { .. }))
        && matches!(report.ended, ProcessEnd::Exited { code } if code != 0)
        && std::fs::metadata(job.dir.output_path(OutputStream::Stdout)).is_ok_and(|data| data.len() == 0)
}

/// An attempt whose process is there.
struct AtWork {
    _busy: Busy,
    presence: Presence,
    beside: Beside,
    entered: Entered,
    /// The order that it was given.
    spec: LaunchSpec,
    before: LaunchFact,
    started: Started,
}

fn failed(error: &dyn std::fmt::Display) -> AttemptReport {
    AttemptReport::new(ProcessEnd::StartFailed { message: error.to_string() })
}

/// Starts the process, or finds it. `Err`: there is none, and this is the end of the attempt.
fn begin(context: &RunContext, job: &Job) -> Result<AtWork, Box<AttemptReport>> {
    let by = By { step: job.watch.step.clone(), attempt: job.watch.attempt };
    // At every launch and every resume: it is there, it is ours, it is on its branch.
    worktree::ensure(context, &job.place, &by).map_err(|error| {
        let problem = InputProblem::Unusable { message: error.to_string() };
        AttemptReport::new(ProcessEnd::NotStarted { problem })
    })?;
    if !job.mends {
        merge::undo_left_over(context, &job.place);
    }
    let busy = Busy::new(job.place.folder());
    let presence = Presence::new(&job.watch.step, job.place.folder(), !job.watch.kept_in);
    let noted = job.dir.path.join("beside.json");
    let beside = Beside::read(&noted).unwrap_or_else(|| {
        let beside = if job.watch.apart { Beside::default() } else { Beside::begin(context, &job.place) };
        beside.write(&noted);
        beside
    });
    // The tree is kept as it is before the process starts, and compared when it is gone.
    let entered = scope::enter(context, &job.dir, &job.spec.cwd, &job.watch)
        .map_err(|message| failed(&message))?
        .ok_or_else(|| AttemptReport::new(ProcessEnd::Stopped))?;
    let mut spec = job.spec.clone();
    if let Some(limits) = &mut spec.sandbox {
        // The order was made before the worktree was there to be looked at.
        let places = sandbox::git_places(context, &spec.cwd);
        limits
            .write
            .extend(places.into_iter().filter(|place| !limits.write.contains(place)).collect::<Vec<_>>());
    }
    let before = launch_fact(job);
    match start_or_attach(&job.dir, &spec, &context.supervisor) {
        Ok(started) => Ok(AtWork { _busy: busy, presence, beside, entered, spec, before, started }),
        Err(error) => {
            entered.give_up();
            Err(Box::new(failed(&error)))
        }
    }
}

fn run_attempt(context: &RunContext, job: &Job, masks: &Masks, tell: &dyn Fn(News)) -> AttemptReport {
    if let Err(error) = crate::fault::point("spawn") {
        return failed(&error);
    }
    let wanted = || !job.dir.stop_requested();
    let launched = job.dir.launch_spec().ok().flatten().is_some();
    let _places = match job.wish.take(&context.paths.machine_pools(), launched, &wanted) {
        // What is not wanted any more begins without a place and ends at once, as stopped.
        Ok(places) => places,
        Err(error) => return failed(&error),
    };
    let begun = match threads::apart(|| begin(context, job)) {
        Ok(begun) => begun,
        Err(report) => return *report,
    };
    let AtWork { _busy, presence, beside, entered, spec, before, started } = begun;
    match (started == Started::Launched, known_conversation(job)) {
        (true, _) => tell(News::Launched { fact: before }),
        // The engine that launched it may have been killed before that was written down.
        (false, Some(conversation)) => tell(News::Conversed { conversation }),
        (false, None) => {}
    }
    let listener = RefCell::new(hints::Listener::new(&job.dir.out_dir(), masks.clone()));
    let listen = || {
        if let Some(hints) = listener.borrow_mut().more() {
            tell(News::Told { hints });
        }
    };
    let nothing = gatewright_agents::Usage::default();
    let patience = Duration::from_millis(job.turn.idle_timeout_ms);
    let meter = RefCell::new(Meter::new(&job.turn.voice, &job.dir, &job.allowance, nothing, patience));
    // Spent while it works is spent: it is stopped, and the run rests before the next start.
    let over = || {
        meter.borrow_mut().watch(&job.dir, &context.purse, &job.allowance);
        if let Some(session) = meter.borrow_mut().new_session() {
            let conversation = Known { agent: job.turn.agent_name.clone(), session };
            tell(News::Conversed { conversation });
        }
        listen();
        // Until the next look.
        gatewright_attempts::give_back_stack();
        false
    };
    let ended = wait_for_exit(&job.dir, &over, Duration::from_secs(1));
    listen();
    match ended {
        Ok(Some(record)) => {
            let mut first = collect(context, &job.dir, &record, &job.expectation);
            if is_lost_without_a_word(job, &first) {
                first.conversation =
                    Some(Known { agent: job.turn.agent_name.clone(), session: String::new() });
            }
            // Not every agent repeats the id that was chosen for it.
            first.conversation = first.conversation.or_else(|| known_conversation(job));
            let so_far = |report: &AttemptReport| match entered.so_far(context, &job.watch) {
                Some(evidence) => contradictions(context, &job.dir, &job.expectation, &evidence, report),
                None => Vec::new(),
            };
            let mut report = repair::mend(context, job, first, &so_far);
            let evidence = entered.leave(context, &job.dir, &job.watch);
            hold_against(context, &job.dir, &job.expectation, &evidence, &mut report);
            settle_branches(context, job, &mut report);
            let other_order =
                started == Started::Launched && job.dir.launch_spec().ok().flatten() != Some(spec);
            if other_order {
                let message = "somebody rewrote the order it was started with (launch.json)";
                report.trespasses.push(message.to_owned());
            }
            if record.supervisor_killed {
                let what = "the supervisor of its attempt was killed while it was at work".to_owned();
                report.found.push(Intrusion { kind: IntrusionKind::AttemptFile, what, by: Vec::new() });
            }
            if record.forged {
                let message = "somebody else than its supervisor wrote the record of its end (exit.json)";
                report.trespasses.push(message.to_owned());
            }
            report.trespasses.extend(beside.end(context, &job.label()));
            if Defence::Scope.is_off() {
                report.trespasses.clear();
            }
            let ended = Ended {
                context,
                dir: &job.dir,
                evidence: &evidence,
                suspects: presence.suspects(),
                label: job.label(),
            };
            ended.tell(&claims(context, &job.dir, &job.expectation, &evidence), &mut report);
            report
        }
        Ok(None) => AttemptReport::new(ProcessEnd::Interrupted),
        Err(error) => failed(&error),
    }
}

/// Who may write may commit where it works; nobody may move another branch of the run.
fn settle_branches(context: &RunContext, job: &Job, report: &mut AttemptReport) {
    if let Workplace::Worktree(stream) = &job.place {
        if job.watch.may_write.as_ref().is_some_and(Vec::is_empty) {
            let moved = tip::put_back_own(context, stream);
            let role = &job.watch.role;
            report.trespasses.extend(moved.map(|what| format!("role `{role}` may write nothing: {what}")));
        } else {
            tip::keep(context, stream);
        }
    }
    let moved = tip::put_back(context).into_iter();
    let noticed = moved.map(|what| Intrusion { kind: IntrusionKind::Watched, what, by: Vec::new() });
    report.found.extend(noticed);
}

/// What an attempt of this step may do to the tree.
pub fn watch(context: &RunContext, state: &State, step: &StepId, attempt: u32, outputs: &[Output]) -> Watch {
    let definition = state.definition(&context.frozen.plan, step);
    let role = definition.and_then(|definition| definition.role()).cloned();
    let declared = role.as_ref().and_then(|role| context.frozen.roles.get(role));
    Watch {
        step: step.clone(),
        attempt,
        role: role.map(|role| role.to_string()).unwrap_or_default(),
        may_write: may_write(Some(&context.text(state, step)), declared),
        protect: context.frozen.protect.clone(),
        on_trespass: context.frozen.on_trespass,
        outputs: outputs.iter().map(|output| output.name.clone()).collect(),
        apart: false,
        kept_in: false,
    }
}

/// What an attempt would be started with.
#[derive(Clone, Debug)]
pub struct Preview {
    pub prompt: String,
    pub spec: LaunchSpec,
    /// Files that it is to write, and where.
    pub outputs: Vec<String>,
    pub out: PathBuf,
}

/// Makes what an attempt is started with, and starts nothing.
pub fn preview(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
) -> Result<Preview, InputProblem> {
    let job = prepare(context, state, step, attempt)?;
    let outputs = job.expectation.outputs.into_iter().map(|output| output.name).collect();
    Ok(Preview { prompt: job.prompt, spec: job.spec, outputs, out: job.dir.out_dir() })
}

/// Everything up to the launch. The same call after a crash prepares the same attempt.
fn prepare(context: &RunContext, state: &State, step: &StepId, attempt: u32) -> Result<Job, InputProblem> {
    let unusable = |message: String| InputProblem::Unusable { message };
    let text = context.text(state, step);
    let place = context.place(state, step);
    let mut document = context.step_document(state, step);
    let path = context.paths.attempt(step.as_str(), attempt);
    // What was found at the first launch counts: an attempt that lives is attached to as it is.
    let launched = AttemptDir::open(&path).ok().and_then(|dir| dir.launch_spec().ok().flatten()).is_some();
    if !launched && let Some((decision, changed)) = stale_decision(context, state, step) {
        return Err(InputProblem::Stale { decision, changed });
    }
    let outputs = rendered_outputs(context, state, step, &text, &document)?;
    let resolved = match inputs::resolve(context, state, step, &text.reads, &document) {
        Ok(resolved) => resolved,
        Err(_) if launched => inputs::Resolved::default(),
        Err(problem) => return Err(problem),
    };
    let dir = AttemptDir::create(&path).map_err(|error| unusable(format!("{error}")))?;
    let out = dir.out_dir();
    if let Value::Object(object) = &mut document {
        let paths: Vec<&str> = resolved.places.iter().map(|place| place.path.as_str()).collect();
        object.insert("inputs".to_owned(), json!(paths));
        object.insert("resumed".to_owned(), hints::resumed(context, state, step));
    }
    let mut turn = turn(context, state, step, attempt, &text, &document, &out)?;
    let by_message = gives_files_by_message(&turn);
    // Files in the last message and a message that is JSON do not go together.
    if !by_message || outputs.is_empty() {
        let reviewing = is_reviewer(&context.frozen.plan, state, step);
        let words = text.words.as_ref().unwrap_or(&context.frozen.words);
        let format = prompt::asked_format(&text, reviewing, outputs.is_empty());
        turn.reply_schema = schema_of(format, words.ladder);
    }
    let mut expectation = expectation(context, state, step, &text, &outputs, resolved.hashes, &turn);
    let finds = context.templates.render("finds", &text.finds, &document);
    let finds = finds.map_err(|problem| unusable(problem.to_string()))?;
    expectation.findings = found_anyway(&finds, &expectation.words);
    let places: Vec<Place> = outputs
        .iter()
        .map(|output| Place {
            name: output.name.clone(),
            path: out.join(&output.name).to_string_lossy().into_owned(),
        })
        .collect();
    // Seen from a worktree, the run directory is elsewhere.
    let run_dir = match &place {
        Workplace::Checkout(_) => relative_dir(&context.meta),
        Workplace::Worktree(_) => context.meta.run_dir.to_string_lossy().into_owned(),
    };
    let parts = PromptParts {
        frozen: &context.frozen,
        state,
        step,
        text: &text,
        context: &document,
        run_dir: &run_dir,
        out_dir: &out.to_string_lossy(),
        inputs: &resolved.places,
        outputs: &places,
        by_message,
        by_tool: matches!(&turn.voice, Voice::Adapter(adapter) if matches!(adapter.capabilities().desk, Means::Yes(_))),
    };
    let prompt =
        prompt::render(&context.templates, &parts).map_err(|problem| unusable(problem.to_string()))?;
    let prompt_file = dir.path.join("prompt.md");
    if !launched {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).map_err(|error| unusable(format!("{}: {error}", path.display())))
        };
        write(&prompt_file, prompt.clone())?;
        write(&dir.path.join("outputs.json"), promised(context, state, step, &text, &expectation))?;
        for folder in outputs.iter().filter_map(|output| out.join(&output.name).parent().map(Path::to_owned))
        {
            std::fs::create_dir_all(&folder)
                .map_err(|error| unusable(format!("{}: {error}", folder.display())))?;
        }
    }
    let conversation = begun_conversation(&dir.path)
        .filter(|_| launched)
        .unwrap_or_else(|| turn::conversation(context, state, step, attempt, &turn));
    let spec = turn.spec(context, &prompt, &prompt_file, &conversation)?;
    if !launched {
        // Before the start: what a killed engine finds is what was asked for.
        let known = json!({"version": 1, "agent": turn.agent_name, "model": turn.models.asked, "conversation": conversation});
        std::fs::write(dir.path.join("conversation.json"), known.to_string())
            .map_err(|error| unusable(format!("{}: {error}", dir.path.display())))?;
    }
    let allowance = context.purse.allowance(&context.frozen.plan, state, step, attempt);
    let mends = launched || mends_a_merge(context, state, step);
    let wish = Wish::of(context, state, step, attempt);
    let mut watch = watch(context, state, step, attempt, &outputs);
    watch.apart = sandbox::keeps_apart(context, &turn.workdir, spec.sandbox.as_ref());
    watch.kept_in = spec.sandbox.is_some() && sandbox::is_enforced();
    let fresh_session = turn::session_id(context, step, attempt);
    Ok(Job {
        place,
        wish,
        mends,
        dir,
        turn,
        prompt,
        conversation,
        fresh_session,
        expectation,
        spec,
        allowance,
        watch,
    })
}

/// The conversation with which an attempt was started.
fn begun_conversation(attempt: &Path) -> Option<Conversation> {
    let text = std::fs::read_to_string(attempt.join("conversation.json")).ok()?;
    let mut known: Value = serde_json::from_str(&text).ok()?;
    serde_json::from_value(known.get_mut("conversation")?.take()).ok()
}

/// A merge sent it.
fn mends_a_merge(context: &RunContext, state: &State, step: &StepId) -> bool {
    let Some(Cause::Fix { review, .. }) = state.steps.get(step).and_then(|own| own.cause.as_deref()) else {
        return false;
    };
    let sender = state.definition(&context.frozen.plan, review);
    sender.is_some_and(|sender| matches!(sender.kind, Kind::Merge { .. }))
}

/// Its agent may write nothing at all, or has no tool to, so its files come in its last message.
fn gives_files_by_message(turn: &Turn) -> bool {
    match &turn.voice {
        Voice::Adapter(adapter) => !adapter.writes_files(&turn.policy),
        Voice::Declared(_) => false,
    }
}

/// What a check step reads and writes, found and named before its command runs.
fn prepare_check(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    check: &CheckId,
) -> Result<check::Job, InputProblem> {
    let text = context.text(state, step);
    let plain = text.reads.is_empty() && text.writes.is_empty() && !check::reads_the_run(context, check);
    let document = if plain { Value::Null } else { context.step_document(state, step) };
    let resolved = inputs::resolve(context, state, step, &text.reads, &document)?;
    Ok(check::Job {
        place: context.place(state, step),
        wish: Wish::of(context, state, step, attempt),
        line: check::line(context, check, &document),
        timeout_ms: text.timeout_ms,
        outputs: rendered_outputs(context, state, step, &text, &document)?,
        inputs: resolved.hashes,
    })
}

/// A decision right before this step that was bound to the working tree, which has changed since.
fn stale_decision(
    context: &RunContext,
    state: &State,
    step: &StepId,
) -> Option<(DecisionId, Vec<ArtifactName>)> {
    let own = state.steps.get(step)?;
    let definition = state.definition(&context.frozen.plan, step)?;
    let tree = ArtifactName::new("tree");
    definition.needs.iter().find_map(|edge| {
        let asked = state.sibling(&context.frozen.plan, own, &edge.from);
        let bound = |other: &&DecisionState| {
            other.decision.step == asked
                && other.status == DecisionStatus::Answered
                && other.decision.bound.contains_key(&tree)
        };
        let decision = state.decisions.values().find(bound)?;
        let now = facts::tree(context, &context.workdir(state, &asked));
        (decision.decision.bound.get(&tree) != Some(&now))
            .then(|| (decision.decision.id.clone(), vec![tree.clone()]))
    })
}

fn rendered_outputs(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    document: &Value,
) -> Result<Vec<Output>, InputProblem> {
    let round = state.steps.get(step).map_or(1, |own| own.round);
    text.writes
        .iter()
        .map(|write| {
            let source = write.first.as_ref().filter(|_| round == 1).unwrap_or(&write.name);
            let name = context
                .render("writes", source, document)
                .map_err(|problem| InputProblem::Unusable { message: problem.to_string() })?;
            let begins = begins_with(context, state, step, &write.name);
            Ok(Output { begins, ..Output::new(write, name, round) })
        })
        .collect()
}

/// The fan-outs that begin with this file of this step.
fn begins_with(context: &RunContext, state: &State, step: &StepId, declared: &str) -> Vec<Begun> {
    let Some(template) = state.steps.get(step).map(|own| &own.template) else { return Vec::new() };
    let texts = context.frozen.steps.get(&state.profile);
    let begun = |id: &StepId, fan_out: &FanOut| {
        let shape = list::shape(texts.and_then(|texts| texts.get(id)).and_then(|text| text.list.clone()));
        let is_its = fan_out.over.as_str() == declared && fan_out.planned_by.as_ref() == Some(template);
        is_its.then(|| Begun { fan_out: fan_out.clone(), shape })
    };
    let steps = state.graph(&context.frozen.plan).steps.iter();
    steps
        .filter_map(|(id, other)| if let Kind::FanOut(fan) = &other.kind { begun(id, fan) } else { None })
        .collect()
}

/// `outputs.json` beside the prompt: what the attempt promises to write, with contracts, for agents
/// that are programs (the rehearsal).
fn promised(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    expected: &Expectation,
) -> String {
    let plan = &context.frozen.plan;
    let list_of = |declared: &str| {
        let texts = context.frozen.steps.get(&state.profile);
        let over = |id: &StepId| texts.and_then(|texts| texts.get(id)).and_then(|text| text.list.clone());
        let mut fans = state
            .graph(plan)
            .steps
            .iter()
            .filter(|(_, step)| matches!(&step.kind, Kind::FanOut(fan) if fan.over.as_str() == declared));
        fans.find_map(|(id, _)| over(id))
    };
    let outputs: Vec<Value> = expected
        .outputs
        .iter()
        .map(|output| {
            json!({"name": output.name, "declared": output.declared, "optional": output.optional, "contract": output.contract, "list": list_of(&output.declared)})
        })
        .collect();
    let holder = state.panel_of(plan, step).unwrap_or_else(|| step.clone());
    let block_at = match state.definition(plan, &holder).map(|definition| &definition.kind) {
        Some(Kind::Review(review)) => Some(review.block_at),
        _ => None,
    };
    json!({"version": 1, "request": state.request, "reviewer": expected.reviewer, "reply": text.reply, "block_at": block_at, "outputs": outputs}).to_string()
}

/// `severity: what is wrong`, one a line. Without a severity it is of the highest, like a reviewer's.
fn found_anyway(text: &str, words: &WordMap) -> Vec<Finding> {
    let finding = |line: &str| {
        let (word, problem) =
            line.split_once(':').map_or(("", line), |(word, rest)| (word.trim(), rest.trim()));
        match words.severity(word) {
            Some(severity) => Finding { severity_word: word.to_owned(), ..Finding::new(severity, problem) },
            None => Finding::new(Severity::Critical, line),
        }
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(finding).collect()
}

fn found_before(plan: &Plan, state: &State, step: &StepId) -> Vec<Finding> {
    let holder = state.panel_of(plan, step).unwrap_or_else(|| step.clone());
    let looped = state.steps.get(&holder).and_then(|own| own.review.as_ref());
    looped.and_then(|looped| looped.verdicts.get(step)).map(|last| last.findings.clone()).unwrap_or_default()
}

/// What the steps read that follow this one, or that it may set to work as a review.
fn read_next(context: &RunContext, state: &State, step: &StepId) -> Option<Vec<String>> {
    let plan = &context.frozen.plan;
    let template = &state.steps.get(step)?.template;
    let graph = state.graph(plan);
    let texts = context.frozen.steps.get(&state.profile)?;
    let mut next: Vec<&StepId> = graph.dependents.get(template).into_iter().flatten().collect();
    if let Some(Kind::Review(review)) = graph.steps.get(template).map(|step| &step.kind) {
        next.extend(review.fix.iter().flat_map(|route| &route.steps));
    }
    let read = next.iter().filter_map(|id| texts.get(*id)).flat_map(|text| &text.reads);
    let names: Vec<String> = read.map(|read| file_name::pattern(&read.name)).collect();
    (!names.is_empty()).then_some(names)
}

fn is_reviewer(plan: &Plan, state: &State, step: &StepId) -> bool {
    let kind = state.definition(plan, step).map(|definition| &definition.kind);
    matches!(kind, Some(Kind::Review(_))) || state.panel_of(plan, step).is_some()
}

fn expectation(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    outputs: &[Output],
    inputs: Vec<(gatewright_core::ids::ArtifactName, gatewright_core::ids::ContentHash)>,
    turn: &Turn,
) -> Expectation {
    let plan = &context.frozen.plan;
    Expectation {
        outputs: outputs.to_vec(),
        format: text.reply,
        points: text.points.clone(),
        words: text.words.clone().unwrap_or_else(|| context.frozen.words.clone()),
        reviewer: is_reviewer(plan, state, step),
        route: text.route.clone(),
        findings: Vec::new(),
        inputs,
        found_before: found_before(plan, state, step),
        read_next: read_next(context, state, step),
        agent: turn.agent_name.clone(),
        models: turn.models.clone(),
        quota_waits: state.steps.get(step).map_or(0, |own| own.quota_waits),
        voice: turn.voice.clone(),
        workdir: turn.workdir.clone(),
    }
}

/// Everything about the agent's turn but its prompt.
fn turn(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    text: &StepText,
    document: &Value,
    out: &Path,
) -> Result<Turn, InputProblem> {
    let definition = state.definition(&context.frozen.plan, step);
    let role =
        definition.and_then(|definition| definition.role()).map(ToString::to_string).unwrap_or_default();
    let agent_id = definition.and_then(|definition| definition.agent()).cloned();
    let unusable = |message: String| InputProblem::Unusable { message };
    let agent = agent_id.as_ref().and_then(|id| context.frozen.agents.get(id));
    let agent = agent.ok_or_else(|| unusable(format!("no agent is configured for role `{role}`")))?;
    let agent_name = agent_id.map(|id| id.to_string()).unwrap_or_default();
    if agent.program(&agent_name).is_none() {
        return Err(unusable(format!(
            "agent `{agent_name}` has no command: set `agents.{agent_name}.command` in .gatewright/config.yaml"
        )));
    }
    let known = context.frozen.roles.get(role.as_str());
    let wanted = text.model.as_deref().or_else(|| known.and_then(|role| role.model.as_deref()));
    let wanted = wanted
        .map(|model| {
            context.render("model", model, document).map_err(|problem| unusable(problem.to_string()))
        })
        .transpose()?;
    let tier = wanted.as_deref().map(|model| model.trim().to_owned());
    let share = budget_share(&context.frozen.plan, state, step);
    let own = state.steps.get(step);
    let stronger = turn::model_of_fresh_fix(&agent_name, agent, own.map(|own| &**own));
    let models = Models::new(
        stronger.or_else(|| turn::model(&agent_name, agent, tier.as_deref())),
        turn::fallbacks(&agent_name, agent, known),
        own.and_then(|own| own.model.as_deref()),
    );
    Ok(Turn {
        voice: Voice::of(&agent_name, agent),
        policy: policy(text, known),
        off_network: known.is_some_and(|role| role.network == Some(false)),
        models,
        reply_schema: None,
        tier,
        workdir: context.workdir(state, step),
        run_dir: context.meta.run_dir.clone(),
        out: out.to_owned(),
        home: turn::home(context, &agent_name, step),
        micro_usd_max: share.micro_usd,
        markers: markers(context, state, step, attempt, &role, out),
        timeout_ms: text.timeout_ms.or(agent.timeout_ms).unwrap_or(TIMEOUT_MS),
        idle_timeout_ms: text.idle_timeout_ms.or(agent.idle_timeout_ms).unwrap_or(IDLE_TIMEOUT_MS),
        extension_ms: text.extension_ms,
        agent: agent.clone(),
        agent_name,
        role,
        step: step.clone(),
    })
}

/// What every agent's process is told about itself.
fn markers(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    role: &str,
    out: &Path,
) -> BTreeMap<String, String> {
    let own = state.steps.get(step);
    let round = own.map_or(1, |own| own.round);
    // A reviewer of a panel is in the panel's round, a fixer in the round of the review that sent it.
    let sender = state.panel_of(&context.frozen.plan, step).or_else(|| {
        match own.and_then(|own| own.cause.as_deref()) {
            Some(Cause::Fix { review, .. }) => Some(review.clone()),
            _ => None,
        }
    });
    let sender_round = sender.and_then(|id| state.steps.get(&id)).map(|sender| sender.round);
    let mut env = BTreeMap::from([
        ("GATEWRIGHT_RUN".to_owned(), context.meta.id.clone()),
        ("GATEWRIGHT_RUN_DIR".to_owned(), context.meta.run_dir.to_string_lossy().into_owned()),
        ("GATEWRIGHT_STEP".to_owned(), step.to_string()),
        ("GATEWRIGHT_ROLE".to_owned(), role.to_owned()),
        (
            "GATEWRIGHT_ATTEMPT".to_owned(),
            attempt.saturating_sub(own.map_or(0, |own| own.not_started)).to_string(),
        ),
        ("GATEWRIGHT_ROUND".to_owned(), sender_round.unwrap_or(round).to_string()),
        ("GATEWRIGHT_OUT".to_owned(), out.to_string_lossy().into_owned()),
    ]);
    if let Some(item) = own.and_then(|own| own.item.clone()) {
        env.insert("GATEWRIGHT_ITEM".to_owned(), item);
    }
    env.extend(crate::launch::program_variable());
    env
}
