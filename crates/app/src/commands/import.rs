//! `gatewright import DIR`: a folder that people and tools made under the conventions of a method, without
//! this engine. Says where it breaks them, and starts a run that goes on from it. Which workflow reads which
//! layout is said by the workflows.

mod inspect;
mod stock;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gatewright_attempts::Git;
use gatewright_core::event::Beginning;
use gatewright_host::{
    document::SCHEMA_VERSION,
    launch::{GivenWork, NewRun, RunPlace},
    run_meta::StartedWith,
};
use gatewright_workflow::{
    frozen::{Frozen, Import},
    load::{LoadOptions, load},
    template::Templates,
};
use serde_json::{Value, json};

use self::inspect::{Found, Inspected, Problem, broken, inspect, problems};
use crate::{
    callers,
    cli::ImportArgs,
    command_error::{CommandError, exit},
    commands::run,
    definitions::{Session, built_in, of_project},
    render::text::{put, put_json},
};

/// The name under which a run keeps what it was started from.
const LABEL: &str = "imported";

pub fn import(args: &ImportArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let found = only(&args.dir, find(&session, args)?)?;
    let (with, frozen, inspected) = match understood(&session, args, &found) {
        Ok(all) => all,
        // Why it cannot be understood is what is wrong with it.
        Err(error) => match broken(&found) {
            problems if problems.is_empty() => return Err(error),
            problems => return unfit(args, &found, &problems),
        },
    };
    if args.check {
        return check(args, &found, &frozen, &inspected);
    }
    callers::refuse_agents(&session)?;
    for problem in &inspected.problems {
        eprintln!("{problem}");
    }
    if let Some(note) = found.note() {
        eprintln!("note: {note}");
    }
    start(&session, args, &found, frozen, with, inspected)
}

/// The plan that the folder asks for, and how far it has come in it.
fn understood(
    session: &Session,
    args: &ImportArgs,
    found: &Found,
) -> Result<(StartedWith, Frozen, Inspected), CommandError> {
    if !found.certain {
        return Err(found.unreadable("workflow", "no condition of a workflow holds"));
    }
    let with = StartedWith {
        workflow: found.workflow.clone(),
        profile: args.start.profile.clone().or(found.profile()?),
        agent: args.start.agent.clone(),
        settings: run::settings(&args.start.set)?,
    };
    let frozen = run::load(session, &with)?;
    let inspected = inspect(found, &frozen)?;
    Ok((with, frozen, inspected))
}

/// The file that says where it stands does not say it: what is wrong is said, and nothing starts.
fn unfit(args: &ImportArgs, found: &Found, problems: &[Problem]) -> Result<u8, CommandError> {
    let shown = found.folder.display();
    let refused = format!("no run can go on from this: `{}` does not say where it stands", found.marker);
    if !args.check {
        for problem in problems {
            eprintln!("{problem}");
        }
        return Err(CommandError::refused(format!("{shown}: {refused}"))
            .hint("mend what is named above, then import it again"));
    }
    if args.json {
        let problems: Vec<Value> = problems.iter().map(Problem::to_json).collect();
        put_json(&json!({
            "schema_version": SCHEMA_VERSION, "dir": found.folder, "workflow": found.workflow, "profile": null, "request": "",
            "over": false, "problems": problems, "given": [], "done": [], "run_again": [], "rounds": {}, "restarts": {},
            "next": null, "answers": {},
        }))?;
    } else {
        for problem in problems {
            put(format!("{problem}\n").as_bytes())?;
        }
        put(format!("{}: {} problem(s); {refused}\n", found.workflow, problems.len()).as_bytes())?;
    }
    Ok(exit::FAILED)
}

/// The folder of this kind that a path means: the folder itself, its marker, or something between them.
fn folder_of(path: &Path, marker: &str) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let depth = Path::new(marker).components().count();
    path.ancestors().take(depth + 1).find(|folder| folder.join(marker).is_file()).map(Path::to_owned)
}

/// Every workflow that can read this folder.
fn find(session: &Session, args: &ImportArgs) -> Result<Vec<Found>, CommandError> {
    if !args.dir.exists() {
        return Err(CommandError::usage(format!("{}: there is no such folder", args.dir.display()))
            .hint("name the folder of one run, for example: gatewright import .workflow/NAME --check"));
    }
    let methods = built_in().into_iter().flat_map(|(method, workflows)| {
        let named: Vec<String> = workflows.iter().map(|workflow| format!("{method}/{workflow}")).collect();
        std::iter::once(method).chain(named)
    });
    let names: Vec<String> = match &args.workflow {
        Some(name) => vec![name.clone()],
        None => of_project(&session.project.root).into_iter().chain(methods).collect(),
    };
    let mut found: Vec<Found> = Vec::new();
    let mut doubtful: Vec<Found> = Vec::new();
    let mut markers: Vec<String> = Vec::new();
    for name in names {
        let definition = session.find(&name)?;
        if !definition.text.contains("\nimport:") {
            continue;
        }
        let options = LoadOptions::new(&session.config);
        // What is wrong with a workflow that is not meant is somebody else's question.
        let Some(frozen) = load(&definition.label, &definition.text, &definition.files, &options).frozen
        else {
            continue;
        };
        markers.extend(frozen.imports.iter().map(|import| import.marker.clone()));
        for import in &frozen.imports {
            let Some(one) = matching(&name, &frozen, import, &args.dir)? else { continue };
            if one.certain { &mut found } else { &mut doubtful }.push(one);
        }
    }
    if found.is_empty() && args.workflow.is_some() {
        // Whoever names the workflow has said which is meant.
        found = doubtful
            .drain(..)
            .map(|mut one| {
                one.certain = true;
                one
            })
            .collect();
    }
    // A method that was ejected into the project is meant rather than the one it came from.
    found.dedup_by(|later, earlier| {
        later.frozen_name == earlier.frozen_name && later.marker == earlier.marker
    });
    if found.is_empty()
        && let Some(one) = meant(doubtful)?
    {
        found.push(one);
    }
    if found.is_empty() {
        markers.sort();
        markers.dedup();
        return Err(CommandError::refused(format!(
            "{}: no workflow knows how to read this",
            args.dir.display()
        ))
        .hint(format!("folders are known by one of these files: {}", markers.join(", "))));
    }
    Ok(found)
}

fn matching(name: &str, frozen: &Frozen, import: &Import, dir: &Path) -> Result<Option<Found>, CommandError> {
    let Some(folder) = folder_of(dir, &import.marker) else { return Ok(None) };
    let mut found = Found::read(name, frozen, import, folder)?;
    let holds = |when: &String| Templates::new().holds("when", when, &found.document()).unwrap_or(false);
    // What cannot be read at all is shown by whoever would read it.
    found.certain = found.data.is_null() || import.when.as_ref().is_none_or(holds);
    Ok(Some(found))
}

/// A folder that has the file of its kind, and of which no workflow's condition holds: what is wrong with that file is to be
/// said if something is, otherwise who would have read it when.
fn meant(doubtful: Vec<Found>) -> Result<Option<Found>, CommandError> {
    let condition =
        |one: &Found| Some(format!("{} reads it when {}", one.workflow, one.import.when.as_ref()?));
    let conditions: Vec<String> = doubtful.iter().filter_map(condition).collect();
    let Some(first) = doubtful.first() else { return Ok(None) };
    let marker = first.folder.join(&first.marker);
    let whole = |one: &Found| problems(one, &one.marker, &one.import.contract).is_empty();
    if let Some(broken) = doubtful.into_iter().find(|one| !whole(one)) {
        return Ok(Some(broken));
    }
    let error = CommandError::refused(format!("{}: no workflow reads what this says", marker.display()));
    let error = conditions.into_iter().fold(error, CommandError::hint);
    Err(error.hint("or say which is meant: --workflow NAME"))
}

fn only(dir: &Path, mut found: Vec<Found>) -> Result<Found, CommandError> {
    if found.len() > 1 && !found.iter().all(|one| one.data.is_null()) {
        let names: Vec<&str> = found.iter().map(|one| one.workflow.as_str()).collect();
        return Err(CommandError::refused(format!("{}: several workflows could read this", dir.display()))
            .hint(format!("name one: --workflow {}", names.join(" | --workflow "))));
    }
    Ok(found.swap_remove(0))
}

/// A run on a branch of its own begins with the last commit: what belongs to the folder and is in none is not there.
fn warn_of_uncommitted(root: &Path, folder: &Path) {
    let look = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];
    let changed = Git::at(root).names(&look).unwrap_or_default();
    let own = folder.strip_prefix(root).unwrap_or(folder);
    let others = changed.iter().filter_map(|entry| entry.get(3..)).map(Path::new);
    let others = others.filter(|file| !file.starts_with(own) && !file.starts_with(".gatewright")).count();
    if others > 0 {
        eprintln!(
            "warning: {others} changed file(s) of your checkout are in no commit; the run works on a branch from your last \
             commit and does not see them\n  remedy: commit what belongs to it, then import it"
        );
    }
}

fn check(
    args: &ImportArgs,
    found: &Found,
    frozen: &Frozen,
    inspected: &Inspected,
) -> Result<u8, CommandError> {
    if args.json {
        let problems: Vec<Value> = inspected.problems.iter().map(Problem::to_json).collect();
        put_json(&json!({
            "schema_version": SCHEMA_VERSION, "dir": found.folder, "workflow": found.workflow,
            "profile": frozen.plan.profile, "request": inspected.request, "over": inspected.over,
            "problems": problems, "given": inspected.given, "done": inspected.done.keys().collect::<Vec<_>>(),
            "run_again": inspected.run_again, "rounds": inspected.rounds, "restarts": inspected.restarts, "next": inspected.next,
            "answers": inspected.answered.iter().map(|(step, before)| (step.to_string(), json!({"answer": before.answer, "comment": before.comment}))).collect::<serde_json::Map<_, _>>(),
        }))?;
    } else {
        for problem in &inspected.problems {
            put(format!("{problem}\n").as_bytes())?;
        }
        for (step, before) in &inspected.answered {
            put(format!("answered before: {step}: {}\n", before.answer).as_bytes())?;
        }
        let next = match (&inspected.next, inspected.over) {
            (_, true) => "it has come to its end; nothing goes on from it".to_owned(),
            (Some(next), false) => format!("a run would go on with `{next}`"),
            (None, false) => "nothing is left to do".to_owned(),
        };
        let count = inspected.problems.len();
        if let Some(note) = found.note() {
            put(format!("note: {note}\n").as_bytes())?;
        }
        put(format!("{} ({}): {count} problem(s); {next}\n", found.workflow, frozen.plan.profile).as_bytes())?;
    }
    Ok(if inspected.problems.is_empty() { exit::DONE } else { exit::FAILED })
}

fn start(
    session: &Session,
    args: &ImportArgs,
    found: &Found,
    mut frozen: Frozen,
    with: StartedWith,
    inspected: Inspected,
) -> Result<u8, CommandError> {
    let shown = found.folder.display();
    if inspected.over {
        return Err(CommandError::refused(format!(
            "{shown}: it has come to its end; nothing goes on from it"
        ))
        .hint("new work is a new run: gatewright run"));
    }
    let root = session.project.root.canonicalize()?;
    if !found.folder.starts_with(&root) || found.folder == root {
        return Err(CommandError::refused(format!("{shown} is not inside this repository"))
            .hint(format!("copy it to where {} has its runs: {}", frozen.workflow, frozen.dir)));
    }
    let store = session.store();
    let same = |meta_dir: &Path| meta_dir.canonicalize().is_ok_and(|dir| dir == found.folder);
    if let Some(run) = store.list()?.into_iter().find(|run| same(&run.meta.run_dir)) {
        return Err(CommandError::refused(format!(
            "{shown} belongs to run {}, which is {}",
            run.meta.id, run.state
        ))
        .hint(format!("gatewright resume {}", run.meta.id))
        .hint(format!("or, once it is over: gatewright run … --continue {}", run.meta.id)));
    }
    if frozen.isolated {
        warn_of_uncommitted(&root, &found.folder);
    }
    run::complete_agents(&session.project.root, &mut frozen, args.start.scenario.as_deref())?;
    let run_dir = session.project.root.join(found.folder.strip_prefix(&root).unwrap_or(&found.folder));
    let until = run::until(&frozen, args.start.until.as_deref())?;
    let work = GivenWork { folder: found.folder.clone(), more: found.supplied.clone() };
    let given = inspected.given.iter().map(|step| (step.clone(), LABEL.to_owned())).collect();
    let new = NewRun {
        detached: args.start.detach,
        beginning: Beginning {
            until,
            given,
            done: inspected.done,
            rounds: inspected.rounds,
            restarts: inspected.restarts,
            answered: inspected.answered,
            numbered: inspected.numbered,
        },
        given: BTreeMap::from([(LABEL.to_owned(), work)]),
        imported: inspected.kept,
        place: RunPlace::Taken { run_dir, continues: None },
        ..NewRun::new(&session.project, frozen, &inspected.request, with)
    };
    run::begin(session, new)
}
