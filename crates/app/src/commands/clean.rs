//! `gatewright clean`: removes runs that are over. Lists only, unless it is confirmed.

use std::path::{Path, PathBuf};

use gatewright_attempts::Defence;
use gatewright_core::ids::Timestamp;
use gatewright_host::{
    clock::Clock,
    journal::lock_path,
    scope::{PICTURES_DIR, picture::prune},
    store::{Listed, RunStore, is_over},
};

use crate::{
    callers,
    cli::CleanArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    render::text::{bytes, count, put},
    terminal,
};

const DAY_MS: u64 = 24 * 3600 * 1000;

pub fn clean(args: &CleanArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let store = session.store();
    let all = store.list()?;
    let now = session.clock.now();
    let wanted = wanted(&store, &all, args, now)?;
    for run in &wanted {
        let folder = removable_dir(run, &all, args);
        let ago = terminal::duration(now.since(Timestamp(run.summary.updated_at_ms)));
        if args.yes {
            remove(&store, run, folder.as_deref())?;
        }
        let word = if args.yes { "removed" } else { "would remove" };
        let also = folder.map(|folder| format!(" and {}", folder.display())).unwrap_or_default();
        put(format!("{word} {} ({}, {ago} ago){also}\n", run.meta.id, run.state).as_bytes())?;
    }
    if args.yes {
        empty_bin(&store);
        forget_pictures(&store);
    }
    let kept = all.iter().filter(|run| !is_over(&run.state)).count();
    let kept = if kept > 0 { format!("; {} not over, kept", count(kept, "run")) } else { String::new() };
    let below = args.under.as_ref().map(|folder| format!(" below {}", folder.display())).unwrap_or_default();
    match (wanted.is_empty(), args.yes) {
        (true, _) => eprintln!("there is nothing to remove{below}{kept}"),
        (false, true) => eprintln!("{} removed{kept}", count(wanted.len(), "run")),
        (false, false) => eprintln!(
            "nothing was removed yet{kept}\n\nhint: the same with --yes removes {}",
            count(wanted.len(), "run")
        ),
    }
    Ok(exit::DONE)
}

/// Runs to remove. One that was named but is not over is refused, and then nothing is removed.
fn wanted<'a>(
    store: &RunStore,
    all: &'a [Listed],
    args: &CleanArgs,
    now: Timestamp,
) -> Result<Vec<&'a Listed>, CommandError> {
    let named: Vec<String> = args.runs.iter().map(|run| store.find(run)).collect::<Result<_, _>>()?;
    for run in all.iter().filter(|run| named.contains(&run.meta.id)) {
        if !is_over(&run.state) {
            return Err(CommandError::refused(format!(
                "{} is {}: only runs that are over are removed",
                run.meta.id, run.state
            ))
            .hint(format!("to give it up first: gatewright abort {}", run.meta.id)));
        }
        if store.is_held(&store.project.run(&run.meta.id)) {
            return Err(CommandError::refused(format!("{} is held by an engine", run.meta.id))
                .hint("wait for it, or gatewright stop"));
        }
    }
    let old_enough = |run: &Listed| {
        let age = now.since(Timestamp(run.summary.updated_at_ms));
        args.older_than_days.is_none_or(|days| age >= days.saturating_mul(DAY_MS))
    };
    let placed = |run: &Listed| {
        args.under.as_ref().is_none_or(|folder| {
            let folder = run.meta.root.join(folder);
            run.meta.run_dir.starts_with(&folder) && run.meta.run_dir != folder
        })
    };
    let ended_well = |run: &Listed| !args.completed || run.state == "done";
    let chosen =
        |run: &Listed| placed(run) && ended_well(run) && (named.is_empty() || named.contains(&run.meta.id));
    let free = |run: &Listed| !store.is_held(&store.project.run(&run.meta.id));
    Ok(all.iter().filter(|run| is_over(&run.state) && chosen(run) && old_enough(run) && free(run)).collect())
}

/// The run directory in the repository, if it may go: inside the project, not the project itself, and
/// not used by a run that stays.
fn removable_dir(run: &Listed, all: &[Listed], args: &CleanArgs) -> Option<PathBuf> {
    let dir = &run.meta.run_dir;
    let inside = dir.starts_with(&run.meta.root)
        && *dir != run.meta.root
        && dir.components().all(|part| part != std::path::Component::ParentDir);
    let shared = all.iter().any(|other| {
        other.meta.id != run.meta.id && (other.meta.run_dir.starts_with(dir) && !is_over(&other.state))
    });
    let real = dir.canonicalize().is_ok_and(|real| {
        run.meta.root.canonicalize().is_ok_and(|root| real.starts_with(&root) && real != root)
    });
    (args.artifacts && inside && !shared && real).then(|| dir.clone())
}

/// Whether the journal itself says that the run is over. The list may be drawn from a file that anybody can write. A
/// run that cannot be read is not listed, so it is not here either.
fn is_over_for_sure(store: &RunStore, run: &Listed) -> bool {
    Defence::Journals.is_off()
        || store.snapshot(&run.meta.id, None).is_ok_and(|snapshot| snapshot.state.is_over())
}

/// Takes the run's lock, moves its state out of sight in one step, then deletes.
fn remove(store: &RunStore, run: &Listed, folder: Option<&Path>) -> Result<(), CommandError> {
    let paths = store.project.run(&run.meta.id);
    let Some(lock) = store.disk.try_lock(&lock_path(&paths.journal()))? else {
        return Err(CommandError::refused(format!("{} is held by an engine", run.meta.id))
            .hint("wait for it, or gatewright stop"));
    };
    if !is_over_for_sure(store, run) {
        return Err(CommandError::refused(format!(
            "{} is not over, although {} says so",
            run.meta.id,
            paths.summary().display()
        ))
        .hint(format!("gatewright status {}", run.meta.id)));
    }
    let bin = bin(store);
    std::fs::create_dir_all(&bin)?;
    let failed = |path: &Path, error: std::io::Error| {
        CommandError::failed(format!("{}: cannot be removed: {error}", path.display()))
    };
    if let Some(folder) = folder {
        std::fs::remove_dir_all(folder).map_err(|error| failed(folder, error))?;
    }
    let gone = bin.join(format!("{}-{}", run.meta.id, std::process::id()));
    std::fs::rename(&paths.dir, &gone).map_err(|error| failed(&paths.dir, error))?;
    drop(lock);
    std::fs::remove_dir_all(&gone).map_err(|error| failed(&gone, error))
}

/// Pictures of working trees are needed by the attempts of runs that are not over.
fn forget_pictures(store: &RunStore) {
    let is_over = |id: &str| store.snapshot(id, None).is_ok_and(|snapshot| snapshot.state.is_over());
    let worktrees = store.project.state.join("worktrees");
    let worktrees = worktrees.canonicalize().unwrap_or(worktrees);
    // Asked anew for each folder: a run that began meanwhile has been there since before its first picture.
    let is_needed = |folder: &Path| match folder.strip_prefix(&worktrees) {
        Ok(inside) => {
            let run = inside.iter().next().unwrap_or_default().to_string_lossy();
            store.project.run(&run).dir.exists() && !is_over(&run)
        }
        Err(_) => store.ids().unwrap_or_default().iter().any(|id| !is_over(id)),
    };
    let freed = prune(&store.project.state.join(PICTURES_DIR), &is_needed);
    if freed > 0 {
        eprintln!("pictures of working trees removed: {}", bytes(freed));
    }
}

fn bin(store: &RunStore) -> PathBuf {
    store.project.state.join("removed")
}

/// What an earlier removal could not finish.
fn empty_bin(store: &RunStore) {
    // Not being able to is no reason to fail: the runs are out of the list already.
    let _ = std::fs::remove_dir_all(bin(store));
}
