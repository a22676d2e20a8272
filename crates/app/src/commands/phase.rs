//! `gatewright phase NAME`: one stage of a run, then rest. Whether it may begin is said by the order of the
//! stages and by their gates; what a person has to confirm is asked here, what they decided is an order.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gatewright_core::{
    event::Pause,
    ids::{StageId, StepId},
    input::Input,
    plan::{Kind, Stage},
    state::{Phase, RunPhase, State},
    transition::{self, Transition, TransitionKind},
};
use gatewright_host::{clock::Clock as _, document::SCHEMA_VERSION, given, store::Snapshot};
use serde_json::json;

use crate::{
    callers,
    cli::PhaseArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    drive::{self, Delivered, Engine},
    render::text::{put, put_json},
    terminal, worktree_warning,
};

pub fn phase(args: &PhaseArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let stage = StageId::new(&args.stage);
    let snapshot = find(&session, args.run.as_deref(), &stage)?;
    let plan = &snapshot.frozen.plan;
    let transition = transition::validate(plan, &snapshot.state, &stage)
        .ok_or_else(|| no_such_stage(&snapshot, &stage))?;
    if args.check {
        return check(args, &snapshot, &stage, &transition);
    }
    callers::refuse_agents(&session)?;
    let id = snapshot.meta.id.clone();
    if !transition.allowed {
        let message = transition.message.unwrap_or_default();
        return Err(CommandError::refused(message).hint(format!("gatewright why {id}")));
    }
    if let Some(warning) = worktree_warning::once(&snapshot.paths, &snapshot.meta) {
        eprintln!("{warning}");
    }
    let orders = orders(&session, args, &snapshot, &stage, &transition)?;
    give(&session, &id, &orders, &stage)
}

/// The run that is meant: the one that is named, or the latest under way with such a stage.
fn find(session: &Session, wanted: Option<&str>, stage: &StageId) -> Result<Snapshot, CommandError> {
    let store = session.store();
    if let Some(wanted) = wanted {
        return Ok(store.snapshot(&store.find(wanted)?, None)?);
    }
    let has = |snapshot: &Snapshot| {
        !snapshot.state.is_over() && snapshot.state.graph(&snapshot.frozen.plan).stage(stage).is_some()
    };
    let mut ids = store.ids()?;
    ids.reverse();
    let found = ids.iter().filter_map(|id| store.snapshot(id, None).ok()).find(has);
    found.ok_or_else(|| {
        CommandError::refused(format!("no run under way has a stage `{stage}`"))
            .hint(format!("start one: gatewright run WORKFLOW \"what is to be done\" --until {stage}"))
            .hint("gatewright list shows all runs")
    })
}

fn no_such_stage(snapshot: &Snapshot, stage: &StageId) -> CommandError {
    let stages = &snapshot.state.graph(&snapshot.frozen.plan).stages;
    let names: Vec<&str> = stages.iter().map(|stage| stage.id.as_str()).collect();
    CommandError::usage(format!("{} has no stage `{stage}`", snapshot.meta.id))
        .hint(format!("its stages: {}", names.join(", ")))
}

fn check(
    args: &PhaseArgs,
    snapshot: &Snapshot,
    stage: &StageId,
    transition: &Transition,
) -> Result<u8, CommandError> {
    let (plan, state) = (&snapshot.frozen.plan, &snapshot.state);
    let partial = state.graph(plan).stage(stage).is_some_and(|stage| transition::is_partial(state, stage));
    if args.json {
        let document = json!({
            "schema_version": SCHEMA_VERSION, "run": snapshot.meta.id, "stage": stage,
            "currentPhase": transition::current(plan, state).map(|stage| &stage.id),
            "artifacts": artifacts(snapshot), "partial": partial,
            "allowed": transition.allowed, "type": transition.kind, "message": transition.message,
        });
        put_json(&document)?;
    } else {
        let word = match transition.kind {
            TransitionKind::Proceed => "proceed",
            TransitionKind::Warning => "warning",
            TransitionKind::Blocked => "blocked",
        };
        let message = transition.message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        let begun = if partial { " (begun, not completed)" } else { "" };
        put(format!("{word}{message}{begun}\n").as_bytes())?;
    }
    Ok(if transition.allowed { exit::DONE } else { exit::REFUSED })
}

/// Which files of the plan are there and count, by the name without its ending.
fn artifacts(snapshot: &Snapshot) -> BTreeMap<String, bool> {
    let graph = snapshot.state.graph(&snapshot.frozen.plan);
    let declared = graph.steps.values().flat_map(|step| &step.writes);
    declared
        .map(|name| {
            let counts =
                |artifact: &gatewright_core::state::Artifact| artifact.declared == *name && artifact.holds;
            let stem = name.as_str().rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            (stem.to_owned(), snapshot.state.artifacts.values().any(counts))
        })
        .collect()
}

/// What the person wants of a stage that is neither untouched nor to be run for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Continue,
    Fresh,
    Review,
}

/// The orders that make it so, one after the other.
fn orders(
    session: &Session,
    args: &PhaseArgs,
    snapshot: &Snapshot,
    stage: &StageId,
    transition: &Transition,
) -> Result<Vec<Input>, CommandError> {
    let (plan, state) = (&snapshot.frozen.plan, &snapshot.state);
    let definition = state.graph(plan).stage(stage).ok_or_else(|| no_such_stage(snapshot, stage))?;
    let mut orders = Vec::new();
    let mut skipping = None;
    if transition::is_through(state, definition) {
        if !args.fresh {
            let message = transition.message.clone().unwrap_or_default();
            return Err(CommandError::refused(message)
                .hint(format!("gatewright phase {stage} {} --fresh", snapshot.meta.id)));
        }
        orders.push(restart(stage));
    } else {
        if transition.kind == TransitionKind::Warning && !args.through {
            skipping = Some(confirmed(args, snapshot, transition)?);
        }
        match partial(args, snapshot, definition)? {
            Choice::Continue => {}
            Choice::Fresh => orders.push(restart(stage)),
            Choice::Review => orders.extend(to_the_reviewer(session, snapshot, definition)?),
        }
    }
    // Last: whatever was blocked is tried again by it, and what is handed in must not have begun by then.
    orders.push(Input::RunUntil { stage: stage.clone(), skipping });
    Ok(orders)
}

fn restart(stage: &StageId) -> Input {
    Input::RestartStage { stage: stage.clone(), reason: format!("`{stage}` is begun anew") }
}

/// The reason that is recorded for everything that is left out; refused unless a person confirms.
fn confirmed(args: &PhaseArgs, snapshot: &Snapshot, transition: &Transition) -> Result<String, CommandError> {
    let message = transition.message.clone().unwrap_or_default();
    eprintln!("warning: {message}");
    let said = if args.yes { "--yes".to_owned() } else { terminal::ask("Proceed anyway? (yes | no) > ")? };
    if args.yes || matches!(said.to_lowercase().as_str(), "y" | "yes") {
        return Ok(format!("{message}, confirmed by a person before `{}`", args.stage));
    }
    Err(CommandError::refused(format!("`{}` was not begun: {message}", args.stage))
        .hint(format!("leave them out: gatewright phase {} {} --yes", args.stage, snapshot.meta.id))
        .hint(format!("run them first: gatewright phase {} {} --through", args.stage, snapshot.meta.id)))
}

/// A stage that was begun and not completed is the person's to judge (continue, fresh, review).
fn partial(args: &PhaseArgs, snapshot: &Snapshot, stage: &Stage) -> Result<Choice, CommandError> {
    if args.fresh {
        return Ok(Choice::Fresh);
    }
    if args.review {
        return Ok(Choice::Review);
    }
    let asks = |id: &StepId| snapshot.state.steps.get(id).is_some_and(|own| own.phase == Phase::Waiting);
    // Where a question is open there is nothing to choose: it is put again.
    if args.go_on || !transition::is_partial(&snapshot.state, stage) || stage.steps.iter().any(asks) {
        return Ok(Choice::Continue);
    }
    let question = format!("`{}` was begun and not completed. (continue | fresh | review) > ", stage.id);
    match terminal::ask(&question)?.to_lowercase().as_str() {
        "continue" | "c" => Ok(Choice::Continue),
        "fresh" | "f" => Ok(Choice::Fresh),
        "review" | "r" => Ok(Choice::Review),
        _ => {
            let command = format!("gatewright phase {} {}", stage.id, snapshot.meta.id);
            Err(CommandError::refused(format!("`{}` was begun and not completed", stage.id))
                .hint(format!("go on with what is there: {command} --continue"))
                .hint(format!("discard it and begin anew: {command} --fresh"))
                .hint(format!("let the reviewer see it as it is: {command} --review")))
        }
    }
}

/// What is judged in this stage and not done yet is handed in as it lies there.
fn to_the_reviewer(
    session: &Session,
    snapshot: &Snapshot,
    stage: &Stage,
) -> Result<Vec<Input>, CommandError> {
    let (plan, state) = (&snapshot.frozen.plan, &snapshot.state);
    let reviews = stage.steps.iter().filter_map(|id| match &state.definition(plan, id)?.kind {
        Kind::Review(review) if !state.steps.get(id)?.phase.is_satisfied() => Some(review),
        _ => None,
    });
    let judged: Vec<&StepId> = reviews.flat_map(|review| &review.of).collect();
    if judged.is_empty() {
        return Err(CommandError::refused(format!("nothing of `{}` is left to review", stage.id)));
    }
    let open = |id: &&&StepId| state.steps.get(**id).is_some_and(|own| !own.phase.is_satisfied());
    judged.iter().filter(open).map(|id| hand_in(session, snapshot, id)).collect()
}

/// Copies what the step left, in the run directory or with its last attempt, to where it counts.
fn hand_in(session: &Session, snapshot: &Snapshot, step: &StepId) -> Result<Input, CommandError> {
    let state = &snapshot.state;
    let label = format!("{step}-{}", session.clock.now().0);
    let names =
        state.definition(&snapshot.frozen.plan, step).map(|step| step.writes.clone()).unwrap_or_default();
    let attempts = state.steps.get(step).map_or(0, |own| own.attempts);
    let tried =
        (1..=attempts).rev().map(|attempt| snapshot.paths.attempt(step.as_str(), attempt).join("out"));
    let places: Vec<PathBuf> = std::iter::once(snapshot.meta.run_dir.clone()).chain(tried).collect();
    for name in names {
        let file = Path::new(name.as_str());
        let Some(place) = places.iter().find(|place| place.join(file).is_file()) else {
            return Err(CommandError::refused(format!("there is no `{name}` yet that could be reviewed"))
                .hint(format!("write it: {}", snapshot.meta.run_dir.join(file).display())));
        };
        given::keep_one(place, file, &snapshot.paths.given(&label))?;
    }
    Ok(Input::Give { step: step.clone(), from: label })
}

/// Gives the orders to whoever drives the run, or drives it here until it rests.
fn give(session: &Session, id: &str, orders: &[Input], stage: &StageId) -> Result<u8, CommandError> {
    let mut engine: Option<Box<Engine>> = None;
    for order in orders {
        match &mut engine {
            Some(engine) => {
                engine.human(order)?.map_err(CommandError::refused)?;
            }
            None => match drive::deliver(session, id, order)? {
                Delivered::ByEngine => {}
                Delivered::Here(taken) => engine = Some(taken),
            },
        }
    }
    let Some(mut engine) = engine else {
        eprintln!("the engine of {id} goes on up to {stage}");
        return Ok(exit::DONE);
    };
    if engine.context.meta.detached {
        return drive::go_on(session, engine);
    }
    let code = drive::drive(session, &mut engine)?;
    Ok(if rests_after(&engine.state, stage) { exit::DONE } else { code })
}

/// It did what it was asked for, and nothing more.
fn rests_after(state: &State, stage: &StageId) -> bool {
    matches!(&state.phase, RunPhase::Paused(Pause::Until { stage: reached }) if reached == stage)
}
