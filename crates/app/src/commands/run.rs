//! `gatewright run`: a new run, in this terminal or in the background.

use std::{collections::BTreeMap, io::Write, path::Path, sync::Arc};

use gatewright_core::{
    event::Beginning,
    ids::StageId,
    plan::{Kind, Step},
};
use gatewright_host::{
    document,
    launch::{self, GivenWork, NewRun, RunPlace},
    perform::LocalPerformer,
    run_context::RunContext,
    run_loop::{RunLoop, read_verified},
    run_meta::{Continued, StartedWith},
    store::Snapshot,
};
use gatewright_workflow::{frozen::Frozen, load::LoadOptions};

use crate::{
    callers,
    cli::RunArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    drive, terminal,
};

pub fn run(args: &RunArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let mut started_with = StartedWith {
        workflow: args.workflow.clone(),
        profile: args.start.profile.clone(),
        agent: args
            .start
            .agent
            .clone()
            .or_else(|| std::env::var("GATEWRIGHT_AGENT").ok().filter(|name| !name.is_empty())),
        settings: settings(&args.start.set)?,
    };
    if args.request.trim().is_empty() {
        return Err(CommandError::usage("the request is empty")
            .hint(format!("gatewright run {} \"what is to be done\"", args.workflow)));
    }
    if !args.dry_run {
        callers::refuse_engines_of_agents(&session)?;
    }
    let mut frozen = load(&session, &started_with)?;
    if !args.dry_run && choose(&frozen, &mut started_with.settings)? {
        frozen = load(&session, &started_with)?;
    }
    complete_agents(&session.project.root, &mut frozen, args.start.scenario.as_deref())?;
    if args.dry_run {
        print_plan(&frozen);
        return Ok(exit::DONE);
    }
    let before = args.continues.as_deref().map(|wanted| over(&session, wanted)).transpose()?;
    let new = NewRun {
        detached: args.start.detach,
        beginning: Beginning {
            until: until(&frozen, args.start.until.as_deref())?,
            numbered: before.as_ref().map_or(0, |before| before.state.decisions_numbered),
            ..Beginning::default()
        },
        given: before.iter().map(|before| ("before".to_owned(), left_by(before))).collect(),
        place: before.as_ref().map(goes_on_in).unwrap_or_default(),
        ..NewRun::new(&session.project, frozen, &args.request, started_with)
    };
    begin(&session, new)
}

/// How often a setting is asked for.
const ASKED_MAX: usize = 3;

/// Asks for the settings that are a person's to choose; whether one was chosen. Where nobody sits, what is configured holds,
/// and is said.
fn choose(frozen: &Frozen, chosen: &mut BTreeMap<String, String>) -> Result<bool, CommandError> {
    let before = chosen.len();
    for (key, asked) in frozen.asked.iter().filter(|(key, _)| !chosen.contains_key(*key)).collect::<Vec<_>>()
    {
        let values = asked.values.join(" | ");
        let flag = format!("--set {key}={}", asked.values.join(&format!(" or --set {key}=")));
        if !terminal::somebody_is_there() {
            let used = frozen
                .settings
                .get(key)
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let used = used.unwrap_or_default();
            eprintln!("note: {} Nobody is here to say: `{used}` ({flag})", asked.question);
            continue;
        }
        let fits = |said: &String| asked.values.is_empty() || asked.values.contains(said);
        let mut said = String::new();
        for _ in 0..ASKED_MAX {
            said = terminal::ask(&format!("{} ({values}) > ", asked.question))?;
            if !said.is_empty() && fits(&said) {
                break;
            }
            said.clear();
        }
        if said.is_empty() {
            return Err(CommandError::refused(format!("`{key}` was not said: {}", asked.question)).hint(flag));
        }
        chosen.insert(key.clone(), said);
    }
    Ok(chosen.len() > before)
}

/// Starts a new run, here or in the background.
pub fn begin(session: &Session, mut new: NewRun<'_>) -> Result<u8, CommandError> {
    let starting = launch::starting(&session.project)?;
    let beside = launch::writer_beside(&session.disk, &session.project, &new.frozen);
    if beside.is_some() {
        new.frozen.isolate();
    }
    let detached = new.detached;
    let context = as_frozen(launch::create(session.disk.clone(), session.clock.clone(), new)?)?;
    let id = context.meta.id.clone();
    let engine = {
        let key = context.journal_key();
        RunLoop::create(context, LocalPerformer::default(), key)?
    };
    drop(starting);
    if let (Some(other), Some(stream)) = (beside, engine.context.run_place().stream()) {
        eprintln!(
            "note: {other} is at work in this checkout; this run works in a worktree of its own, on branch {}",
            stream.branch
        );
    }
    // Whoever reads the id can use it: its journal is there, and no agent has started.
    println!("{id}");
    std::io::stdout().flush()?;
    if detached {
        drop(engine);
        return drive::start_in_background(session, &id);
    }
    drive::to_the_end(session, engine)
}

/// A run begins with its plan as it stands on disk, as every later engine of it does. What was made from a definition
/// lies scattered among what it took to read that, and would keep half as much again for the whole run.
fn as_frozen(created: RunContext) -> Result<RunContext, CommandError> {
    let RunContext { disk, clock, paths, meta, frozen, .. } = created;
    drop(frozen);
    gatewright_attempts::give_back_memory();
    let frozen = read_verified(disk.as_ref(), &paths.plan(&meta.digest), &meta.digest)?;
    Ok(launch::context_of(disk, clock, paths, Arc::unwrap_or_clone(meta), frozen))
}

/// A run whose folder another one may go on in: it is over, and nobody did so before.
fn over(session: &Session, wanted: &str) -> Result<Snapshot, CommandError> {
    let store = session.store();
    let id = store.find(wanted)?;
    let snapshot = store.snapshot(&id, None)?;
    if !snapshot.state.is_over() {
        return Err(CommandError::refused(format!("{id} is not over: it is {}", snapshot.state_word()))
            .hint(format!("go on with it: gatewright resume {id}"))
            .hint(format!("or give it up first: gatewright abort {id}")));
    }
    if let Some(later) = store.continued_by(&id) {
        return Err(CommandError::refused(format!("{id} is continued by {later} already"))
            .hint(format!("--continue {later}, once that is over")));
    }
    drive::tidy(session, &id);
    Ok(snapshot)
}

/// The files of the run before, as it left them: the new one writes over some of them.
fn left_by(before: &Snapshot) -> GivenWork {
    GivenWork { folder: before.meta.run_dir.clone(), more: BTreeMap::new() }
}

fn goes_on_in(before: &Snapshot) -> RunPlace {
    let earlier = before.meta.continues.iter().flat_map(|earlier| earlier.decisions.clone());
    let own = before.state.decisions.values().map(document::decision);
    let continues = Continued { run: before.meta.id.clone(), decisions: earlier.chain(own).collect() };
    RunPlace::Taken { run_dir: before.meta.run_dir.clone(), continues: Some(continues) }
}

/// The stage after which a new run rests; it has to be one of its own.
pub fn until(frozen: &Frozen, wanted: Option<&str>) -> Result<Option<StageId>, CommandError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let graph = frozen.plan.graph(&frozen.plan.profile);
    let enabled = || graph.stages.iter().filter(|stage| stage.disabled.is_none());
    let found = enabled().find(|stage| stage.id.as_str() == wanted);
    let Some(stage) = found else {
        let names: Vec<&str> = enabled().map(|stage| stage.id.as_str()).collect();
        return Err(CommandError::usage(format!("`--until {wanted}`: there is no such stage here"))
            .hint(format!("stages of {} ({}): {}", frozen.workflow, frozen.plan.profile, names.join(", "))));
    };
    Ok(Some(stage.id.clone()))
}

/// `gatewright engine RUN`: drives a run with nobody at the terminal.
pub fn engine(id: &str) -> Result<u8, CommandError> {
    // Already the leader of a session if started by hand: that is as good.
    let _ = rustix::process::setsid();
    let session = Session::open()?;
    callers::refuse_engines_of_agents(&session)?;
    let id = session.store().find(id)?;
    match drive::open(&session, &id)? {
        Some(mut engine) => drive::drive(&session, &mut engine),
        None => Err(CommandError::refused(format!("another engine drives {id}"))),
    }
}

pub fn settings(set: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    set.iter()
        .map(|pair| {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| CommandError::usage(format!("`--set {pair}` is not KEY=VALUE")))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        })
        .collect()
}

/// Loads a definition the way a run was started.
pub fn load(session: &Session, with: &StartedWith) -> Result<Frozen, CommandError> {
    let options = LoadOptions {
        profile: with.profile.clone(),
        settings: with.settings.clone(),
        agent: with.agent.clone(),
        config: &session.config,
    };
    session.load(&with.workflow, &options)
}

/// Every agent that the plan needs is there, or the run does not start.
pub fn complete_agents(
    root: &Path,
    frozen: &mut Frozen,
    scenario: Option<&Path>,
) -> Result<(), CommandError> {
    let program = gatewright_host::launch::own_program();
    if let Some(agent) = frozen.agents.get_mut("rehearsal")
        && agent.command.is_empty()
    {
        agent.command = vec![program.display().to_string(), "rehearsal-agent".to_owned()];
        if let Some(scenario) = scenario {
            let path = scenario
                .canonicalize()
                .map_err(|error| CommandError::usage(format!("{}: {error}", scenario.display())))?;
            agent.set.insert("REHEARSAL_SCENARIO".to_owned(), path.display().to_string());
        }
    }
    let used: std::collections::BTreeSet<_> = frozen
        .plan
        .graphs
        .values()
        .flat_map(|graph| graph.steps.values())
        .flat_map(|step| agents_of(step))
        .collect();
    for name in used {
        let Some(agent) = frozen.agents.get(&name) else {
            return Err(no_agent(name.as_str(), "it is not configured"));
        };
        match agent.program(name.as_str()) {
            None => return Err(no_agent(name.as_str(), "it has no command")),
            Some(binary) if find_program(root, &binary).is_none() => {
                let path = std::env::var("PATH").unwrap_or_default();
                return Err(no_agent(name.as_str(), &format!("`{binary}` was not found on PATH ({path})")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn agents_of(step: &Step) -> Vec<gatewright_core::ids::AgentId> {
    match &step.kind {
        Kind::Agent { agent, .. } => vec![agent.clone()],
        Kind::Review(review) => review.reviewers.iter().map(|reviewer| reviewer.agent.clone()).collect(),
        Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => Vec::new(),
    }
}

fn no_agent(name: &str, why: &str) -> CommandError {
    CommandError::invalid(format!("agent `{name}` cannot be used: {why}"))
        .hint(format!("name its program in .gatewright/config.yaml:\n    agents:\n      {name}:\n        command: [\"/path/to/program\", \"--flag\"]"))
        .hint("or play all roles with another agent: --agent NAME; `--agent rehearsal` needs nothing")
        .hint("gatewright doctor shows what is found here")
}

/// A program on PATH, or a path that exists; relative ones start at the repository, as agents do.
pub fn find_program(root: &Path, binary: &str) -> Option<std::path::PathBuf> {
    if binary.contains('/') {
        let path = root.join(binary);
        return path.exists().then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(binary)).find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn print_plan(frozen: &Frozen) {
    let graph = frozen.plan.graph(&frozen.plan.profile);
    println!("workflow {} (profile {})", frozen.workflow, frozen.plan.profile);
    for stage in &graph.stages {
        println!(
            "stage {}{}",
            stage.id,
            stage.disabled.as_ref().map(|why| format!(" (skipped: {why})")).unwrap_or_default()
        );
        for id in &stage.steps {
            let Some(step) = graph.steps.get(id) else { continue };
            let needs: Vec<&str> = step.needs.iter().map(|edge| edge.from.as_str()).collect();
            let who = step
                .role()
                .map(|role| {
                    format!(" by {role} ({})", step.agent().map(ToString::to_string).unwrap_or_default())
                })
                .unwrap_or_default();
            println!(
                "  {id}{who}{}",
                if needs.is_empty() { String::new() } else { format!(", after {}", needs.join(", ")) }
            );
        }
    }
}
