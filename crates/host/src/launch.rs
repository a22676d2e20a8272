//! A new run: its id, its directories, its frozen workflow. Everything durable before the journal.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use gatewright_attempts::{Git, SupervisorCommand};
use gatewright_core::event::Beginning;
use gatewright_workflow::{
    frozen::Frozen,
    template::{TemplateProblem, Templates, filters::slug},
};
use serde_json::json;

use crate::{
    atomic_file::{self, Durability},
    clock::Clock,
    disk::{Disk, SharedDisk},
    fault, given,
    project::{Project, RunPaths, file_name},
    run_context::{RunContext, is_plain_relative},
    run_loop::read_verified,
    run_meta::{Continued, META_VERSION, MetaError, RunMeta, StartedWith, Surroundings},
    scope::{listed, meanwhile},
    store::RunStore,
    user_key::{KeyError, UserKey},
};

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the run id or its directory cannot be made")]
    Template {
        #[from]
        source: TemplateProblem,
    },
    #[error("the run directory `{dir}` leaves the repository: `dir:` must be a relative path without `..`")]
    Dir { dir: String },
    #[error("{}: is a link that leads out of the repository, and the run directory is below it; remove the link", path.display())]
    Led { path: PathBuf },
    #[error("{}: cannot be written", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Meta(#[from] MetaError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the frozen workflow cannot be stored")]
    Freeze { source: serde_json::Error },
    #[error("no free run id was found for `{id}`")]
    NoFreeId { id: String },
    #[error(
        "{files} was changed while `{step}` of run {run} is at work in this checkout: no run begins with it"
    )]
    Meanwhile { files: String, step: String, run: String },
}

/// What a new run is made of.
#[derive(Debug)]
pub struct NewRun<'a> {
    pub project: &'a Project,
    pub frozen: Frozen,
    pub request: &'a str,
    pub detached: bool,
    pub started_with: StartedWith,
    pub beginning: Beginning,
    /// Folders with work that is there already, by the name that `beginning` has for them.
    pub given: BTreeMap<String, GivenWork>,
    /// What its workflow keeps of the folder that it is imported from.
    pub imported: Option<serde_json::Value>,
    pub place: RunPlace,
}

impl<'a> NewRun<'a> {
    /// One that begins with nothing, where its workflow has it, in this terminal.
    pub fn new(
        project: &'a Project,
        frozen: Frozen,
        request: &'a str,
        started_with: StartedWith,
    ) -> NewRun<'a> {
        NewRun {
            project,
            frozen,
            request,
            detached: false,
            started_with,
            beginning: Beginning::default(),
            given: BTreeMap::new(),
            imported: None,
            place: RunPlace::default(),
        }
    }
}

/// Work that is there already.
#[derive(Clone, Debug)]
pub struct GivenWork {
    pub folder: PathBuf,
    /// Files that are not in it, and what is in them.
    pub more: BTreeMap<String, String>,
}

/// Where the files of a new run are.
#[derive(Clone, Debug, Default)]
pub enum RunPlace {
    /// As its workflow has it.
    #[default]
    Fresh,
    /// In a folder that is there: of a run that is over (`continues`), or of one that was no run of ours.
    Taken { run_dir: PathBuf, continues: Option<Continued> },
}

/// `GATEWRIGHT_BIN`: this program, for agents and checks that call it.
pub fn program_variable() -> [(String, String); 1] {
    [("GATEWRIGHT_BIN".to_owned(), own_program().to_string_lossy().into_owned())]
}

/// Whoever starts a run holds this until the run is locked: of two that start at once, one is the second.
pub fn starting(project: &Project) -> Result<std::fs::File, LaunchError> {
    let path = project.state.join("starting.lock");
    crate::streams::lock::take(&path).map_err(|source| LaunchError::Io { path, source })
}

/// The run that is at work in the checkout and could write the same files as this one (decision 27). Where
/// there is nothing to branch off from, runs wait for each other instead.
pub fn writer_beside(disk: &SharedDisk, project: &Project, frozen: &Frozen) -> Option<String> {
    let store = RunStore::new(disk.clone(), project.clone());
    let beside = |id: &String| {
        let paths = project.run(id);
        let Ok(meta) = RunMeta::read(disk.as_ref(), &paths) else { return false };
        let other = || read_verified(disk.as_ref(), &paths.plan(&meta.digest), &meta.digest);
        meta.root == project.root && !meta.isolated && other().is_ok_and(|other| frozen.writes_beside(&other))
    };
    let held = store.ids().unwrap_or_default().into_iter().filter(|id| store.is_held(&project.run(id)));
    let other = held.into_iter().find(beside)?;
    let has_commit = Git::at(&project.root).holds(&["rev-parse", "--verify", "-q", "HEAD^{commit}"]);
    has_commit.then_some(other)
}

/// Creates a run on disk, up to but without its journal.
pub fn create(disk: SharedDisk, clock: Arc<dyn Clock>, new: NewRun<'_>) -> Result<RunContext, LaunchError> {
    // An agent may have written what this run is made of. It is put back when the attempt ends, by an engine.
    if let Some(found) = meanwhile::changed(new.project) {
        let files: Vec<String> = found.edited().iter().map(|(path, how)| format!("{path} ({how})")).collect();
        return Err(LaunchError::Meanwhile { files: listed(&files), step: found.step, run: found.run });
    }
    let user_key = UserKey::load_or_create(new.project.state_root())?;
    let templates = Templates::new();
    let now = clock.now();
    let number = next_number(new.project, &new.frozen.dir);
    let names = json!({
        "number": number,
        "workflow": new.frozen.workflow, "slug": slug(new.request), "seconds": now.0 / 1000, "now": now.0,
        "request": new.request, "settings": new.frozen.settings, "profile": new.frozen.plan.profile,
    });
    let wanted = match &new.place {
        RunPlace::Taken { run_dir, continues: None } => {
            file_name(&run_dir.file_name().unwrap_or_default().to_string_lossy())
        }
        RunPlace::Fresh | RunPlace::Taken { .. } => {
            file_name(templates.render("run_id", &new.frozen.run_id, &names)?.trim())
        }
    };
    let (id, paths) = claim(disk.as_ref(), new.project, &wanted)?;
    let key = user_key.for_run(&id);
    let branch = Git::at(&new.project.root).text(&["symbolic-ref", "-q", "--short", "HEAD"]).ok();
    let context = json!({"run": {"id": id}, "number": number, "workflow": new.frozen.workflow, "slug": slug(new.request), "seconds": now.0 / 1000, "now": now.0, "settings": new.frozen.settings, "profile": new.frozen.plan.profile, "branch": branch.clone().unwrap_or_default()});
    let dir = templates.render("dir", &new.frozen.dir, &context)?;
    let dir = dir.trim().trim_end_matches('/');
    if !is_plain_relative(Path::new(dir)) {
        return Err(LaunchError::Dir { dir: dir.to_owned() });
    }
    let wish = Wish::of(&new, &templates, context)?;
    let (run_dir, continues) = match new.place {
        RunPlace::Fresh => (free_dir(&disk, new.project, &new.project.root.join(dir), &id), None),
        RunPlace::Taken { run_dir, continues } => (run_dir, continues),
    };
    for (label, work) in &new.given {
        let io = |source| LaunchError::Io { path: work.folder.clone(), source };
        given::keep(&work.folder, &paths.given(label)).map_err(io)?;
        for (name, text) in &work.more {
            given::write(&paths.given(label).join(name), text).map_err(io)?;
        }
    }
    let digest = store_plan(disk.as_ref(), &paths, &new.frozen)?;
    let run_dir = without_links(&new.project.root, &run_dir)?;
    make_run_dir(&new.project.root, &run_dir, &new.frozen)?;
    let meta = RunMeta {
        version: META_VERSION,
        id,
        workflow: new.frozen.workflow.clone(),
        root: new.project.root.clone(),
        run_dir,
        request: new.request.to_owned(),
        created_at_ms: now.0,
        digest,
        isolated: new.frozen.isolated,
        base_branch: branch,
        detached: new.detached,
        started_with: new.started_with,
        beginning: new.beginning,
        continues,
        imported: new.imported,
        worktree: new.frozen.isolated.then(|| {
            let usual = || paths.worktrees().join(crate::streams::place::RUN_STREAM);
            relative(&new.project.root, &wish.worktree.clone().unwrap_or_else(usual))
        }),
        beside: wish.worktree.is_some(),
        branch: wish.branch,
        surroundings: Some(Surroundings::look(&new.project.root, &new.frozen.detect, now.0)),
        seal: None,
    };
    let meta = meta.sealed(&key);
    meta.write(disk.as_ref(), &paths)?;
    Ok(context_of(disk, clock, paths, meta, new.frozen))
}

/// What the workflow wishes for the branch of a run and its worktree, as far as it can be had: what is taken already
/// is nobody's reason not to begin.
#[derive(Default)]
struct Wish {
    branch: Option<String>,
    worktree: Option<PathBuf>,
}

impl Wish {
    fn of(
        new: &NewRun<'_>,
        templates: &Templates,
        mut known: serde_json::Value,
    ) -> Result<Wish, LaunchError> {
        if !new.frozen.isolated {
            return Ok(Wish::default());
        }
        let root = &new.project.root;
        known["project"] = json!(root.file_name().unwrap_or_default().to_string_lossy());
        let rendered = |key: &str, template: &Option<String>| {
            let text = template.as_ref().map(|text| templates.render(key, text, &known)).transpose()?;
            Ok::<_, LaunchError>(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
        };
        let git = Git::at(root);
        let free = |name: &String| {
            git.holds(&["check-ref-format", "--branch", name])
                && !git.holds(&["rev-parse", "--verify", "-q", &format!("refs/heads/{name}")])
        };
        let outside = |path: &PathBuf| {
            let parent = path.parent().is_some_and(Path::is_dir);
            let meets = |other: &Path| path.starts_with(other) || other.starts_with(path);
            parent
                && !meets(root)
                && !meets(new.project.state_root())
                && std::fs::symlink_metadata(path).is_err()
        };
        Ok(Wish {
            branch: rendered("branch", &new.frozen.branch)?.filter(free),
            worktree: rendered("worktree", &new.frozen.worktree)?
                .map(|path| lexical(&root.join(path)))
                .filter(outside),
        })
    }
}

/// A path without `.` and `..`, by its words alone.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// One more than the highest number with which a folder beside the run directory begins. Two runs
/// that start at once may get the same; their ids and folders differ all the same.
fn next_number(project: &Project, dir: &str) -> u64 {
    let beside = dir.split("{{").next().unwrap_or_default();
    let beside = beside.rsplit_once('/').map_or("", |(folder, _)| folder);
    let entries = std::fs::read_dir(project.root.join(beside)).into_iter().flatten().flatten();
    let leading = |name: String| {
        let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok().filter(|_| name[digits.len()..].starts_with(['-', '_']))
    };
    let numbers = entries.filter_map(|entry| leading(entry.file_name().to_string_lossy().into_owned()));
    numbers.max().unwrap_or(0).saturating_add(1)
}

/// Claims a run id by creating its directory: two runs in one second never share one (S0-03).
fn claim(disk: &dyn Disk, project: &Project, wanted: &str) -> Result<(String, RunPaths), LaunchError> {
    let runs = project.runs();
    atomic_file::create_dir_durable(disk, &runs)
        .map_err(|source| LaunchError::Io { path: runs.clone(), source })?;
    shut(&project.state_root().join("projects"));
    for number in 1..1000 {
        let id = if number == 1 { wanted.to_owned() } else { format!("{wanted}-{number}") };
        let paths = project.run(&id);
        match std::fs::create_dir(&paths.dir) {
            Ok(()) => {
                disk.sync_dir(&runs).map_err(|source| LaunchError::Io { path: runs, source })?;
                return Ok((id, paths));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(LaunchError::Io { path: paths.dir, source }),
        }
    }
    Err(LaunchError::NoFreeId { id: wanted.to_owned() })
}

/// What runs say and hold is for the user's eyes: definitions may carry secrets, and so may what agents print. A folder
/// that is somebody else's stays as it is.
fn shut(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & 0o077 != 0);
    if open {
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    }
}

/// Where a source fixes one path per repository, the first live run gets it and one started
/// meanwhile gets it with its id appended (decision 19).
fn free_dir(disk: &SharedDisk, project: &Project, wanted: &Path, id: &str) -> PathBuf {
    let taken = wanted.exists() && {
        let store = RunStore::new(disk.clone(), project.clone());
        // By the journal: the list may be drawn from a file that anybody can write.
        let over = |id: &str| store.snapshot(id, None).is_ok_and(|snapshot| snapshot.state.is_over());
        store.list().unwrap_or_default().iter().any(|run| run.meta.run_dir == wanted && !over(&run.meta.id))
    };
    if !taken {
        return wanted.to_owned();
    }
    let name = wanted.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    wanted.with_file_name(format!("{name}-{id}"))
}

/// Stores it under its digest, which is given back.
pub fn store_plan(disk: &dyn Disk, paths: &RunPaths, frozen: &Frozen) -> Result<String, LaunchError> {
    let freeze = |source| LaunchError::Freeze { source };
    let (bytes, digest) = frozen.stored().map_err(freeze)?;
    let path = paths.plan(&digest);
    let made = path.parent().map_or(Ok(()), |folder| atomic_file::create_dir_durable(disk, folder));
    made.and_then(|()| atomic_file::replace(disk, &path, &bytes, Durability::Durable))
        .map_err(|source| LaunchError::Io { path, source })?;
    Ok(digest)
}

/// The same place without links on the way to it from the repository. One that leads out of it is refused: an agent may
/// have put it there (J-53).
fn without_links(root: &Path, run_dir: &Path) -> Result<PathBuf, LaunchError> {
    if !run_dir.starts_with(root) {
        return Ok(run_dir.to_owned());
    }
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| LaunchError::Io { path, source }
    };
    let there = run_dir.ancestors().find(|folder| std::fs::symlink_metadata(folder).is_ok()).unwrap_or(root);
    let (real, real_root) =
        (there.canonicalize().map_err(io(there))?, root.canonicalize().map_err(io(root))?);
    let inside = real.strip_prefix(&real_root).map_err(|_| LaunchError::Led { path: there.to_owned() })?;
    Ok(root.join(inside).join(run_dir.strip_prefix(there).unwrap_or(Path::new(""))).components().collect())
}

/// The run directory and, beside the runs, a `.gitignore` so that none of it is ever committed (S0-05), unless the method
/// is one whose files people commit.
fn make_run_dir(root: &Path, run_dir: &Path, frozen: &Frozen) -> Result<(), LaunchError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| LaunchError::Io { path, source }
    };
    std::fs::create_dir_all(run_dir).map_err(io(run_dir))?;
    for folder in frozen.folders.iter().filter(|folder| is_plain_relative(Path::new(folder))) {
        let folder = run_dir.join(folder);
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
    }
    if frozen.dir_committed {
        return Ok(());
    }
    let folder = run_dir.parent().filter(|folder| *folder != root).unwrap_or(run_dir);
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").map_err(io(&ignore))?;
    }
    Ok(())
}

/// The way from one folder to another place.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(left, right)| left == right).count();
    let up = from.components().skip(shared).map(|_| std::path::Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// This program's path. After an upgrade in the middle of a run the kernel marks the old file as
/// deleted; the new one under the same name is as good.
pub fn own_program() -> PathBuf {
    // Every check is told; it does not change.
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("gatewright"));
        let text = path.to_string_lossy();
        text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from)
    });
    PATH.clone()
}

/// The surroundings of a run.
pub fn context_of(
    disk: SharedDisk,
    clock: Arc<dyn Clock>,
    paths: RunPaths,
    meta: RunMeta,
    frozen: Frozen,
) -> RunContext {
    let program = own_program();
    // A key that cannot be read is none: then an authenticated journal is refused by name.
    let key = UserKey::load(paths.state_root()).ok().flatten().map(|key| key.for_run(&meta.id));
    RunContext {
        disk,
        clock,
        paths,
        meta: Arc::new(meta),
        frozen: Arc::new(Frozen { plan: fault::plan(frozen.plan), ..frozen }),
        templates: Arc::new(Templates::new()),
        key,
        supervisor: Arc::new(SupervisorCommand { program, args: vec!["supervise".to_owned()] }),
        environment: Arc::new(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        ),
        data: Arc::default(),
        purse: Arc::default(),
        once: Arc::default(),
    }
}
