//! What tells the engine what to do, while somebody is at work in the checkout. It is put back when that ends; until
//! then, and as long as no engine is there to do it, nobody is told anything by what was changed. Must not know roles.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::state::Phase;

use super::{
    BEFORE_FILE, Before, KEPT_DIR,
    checkout::{Checkout, Holder},
    is_of_the_engine,
    protect::{Marks, Protected, differing, mark_of},
    run_dirs::run_dirs_below,
    sealed::read_sealed_with,
};
use crate::{disk::RealDisk, plain_file, project::Project, store::RunStore};

/// The folder of what tells the engine what to do, as a pattern.
const OF_ENGINE: &str = ".gatewright/**";

/// What somebody who is at work in a checkout found there.
#[derive(Debug)]
pub struct Meanwhile {
    pub run: String,
    pub step: String,
    root: PathBuf,
    before: Marks,
    now: Marks,
    kept: PathBuf,
}

impl Meanwhile {
    /// Files that are others now, each with what happened to it.
    pub fn edited(&self) -> Vec<(String, &'static str)> {
        differing(&self.before, &self.now)
    }

    /// A file as it was, if it is another now; `Ok(None)`: it was not there. What was not kept is an error.
    pub fn as_it_was(&self, path: &Path) -> Option<Result<Option<Vec<u8>>, String>> {
        let name = path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned();
        self.edited().iter().find(|(edited, _)| *edited == name)?;
        let Some(mark) = self.before.get(&name) else { return Some(Ok(None)) };
        let kept = self.kept.join(mark);
        // Whoever can write there may have written something else.
        let is_it = mark_of(&kept).as_ref() == Some(mark);
        let read = || plain_file::read(&kept).ok().filter(|_| is_it);
        Some(read().map(Some).ok_or_else(|| "what was there before was not kept".to_owned()))
    }
}

/// Who is at work in the checkout of a project, with or without an engine, and began with something else than is there
/// now. Read from the list of the checkout, so it costs nothing where nobody is.
pub fn changed(project: &Project) -> Option<Meanwhile> {
    let runs = project.runs();
    let holders = Checkout::of(&project.root, &runs.parent()?.join("checkouts")).holders();
    if holders.is_empty() {
        return None;
    }
    let run_dirs = run_dirs_below(&runs);
    let mut except: Vec<PathBuf> = run_dirs.iter().map(|(_, dir)| dir.clone()).collect();
    except.push(project.state_root().to_owned());
    let now = marks_of(&project.root, &except);
    let is_ours = |name: &String| {
        // What an engine puts beside run directories is no edit.
        let folder = project.root.join(name);
        except.iter().any(|dir| dir.parent() == folder.parent()) && folder.ends_with(".gitignore")
    };
    let store = RunStore::new(Arc::new(RealDisk), project.clone());
    holders.into_iter().filter(|holder| !holder.observes).find_map(|holder| {
        let paths = project.run(&holder.run);
        let path = holder.attempt_dir.join(BEFORE_FILE);
        let before = read_sealed_with::<Before>(store.key_of(&paths, &holder.run).as_ref(), &path).ok()?;
        let mut marks = before.marks;
        marks.retain(|name, _| is_of_the_engine(name));
        let mut now = now.clone();
        now.retain(|name, _| marks.contains_key(name) || !is_ours(name));
        let found = Meanwhile {
            root: project.root.clone(),
            before: marks,
            now,
            kept: paths.dir.join(KEPT_DIR),
            run: holder.run.clone(),
            step: holder.step.clone(),
        };
        // What is the same needs no journal to be read.
        let differs = before.folder == project.root && !found.edited().is_empty();
        (differs && is_at_work(&store, &holder)).then_some(found)
    })
}

fn marks_of(root: &Path, except: &[PathBuf]) -> Marks {
    let mut marks = BTreeMap::new();
    let folder = OF_ENGINE.trim_end_matches("/**");
    Protected::new(root, &[OF_ENGINE.to_owned()], except.to_vec()).walk(
        &root.join(folder),
        folder,
        &mut marks,
    );
    marks.retain(|name, _| is_of_the_engine(name));
    marks
}

/// The list may name somebody whose engine died and whose run went on without it, or is over.
fn is_at_work(store: &RunStore, holder: &Holder) -> bool {
    let Ok(snapshot) = store.snapshot(&holder.run, None) else { return false };
    let mut steps = snapshot.state.steps.iter();
    let own = steps.find(|(id, _)| id.as_str() == holder.step).map(|(_, own)| &own.phase);
    let is_it = |attempt: u32| attempt == holder.attempt;
    !snapshot.state.is_over()
        && matches!(own, Some(Phase::Running { attempt } | Phase::Verifying { attempt }) if is_it(*attempt))
}
