//! Which sandbox an attempt or a check runs in. The lists are made here; `attempts` makes them true.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gatewright_agents::{Adapter, adapter_named};
use gatewright_attempts::{
    Defence, Network, SandboxSpec, SandboxSupport, agent_places, cache_places, sandbox_support,
};
use gatewright_core::{
    ids::{AgentId, StepId},
    state::State,
};
use gatewright_workflow::frozen::{Frozen, Sandbox};

use crate::{plain_file, run_context::RunContext};

/// The places of one process, besides those that every process of the run has.
#[derive(Debug)]
pub struct Place<'a> {
    /// Where it works: the repository or a stream's worktree.
    pub workdir: &'a Path,
    /// The attempt's directory: readable, and its `out/` writable.
    pub attempt: Option<&'a Path>,
    /// The attempt that a check looks at: readable only.
    pub evidence: Option<&'a Path>,
    pub private_tmp: &'a Path,
    /// Names of the agents whose own folders it needs, and the variables that each is given.
    pub agents: Vec<(&'a str, &'a BTreeMap<String, String>)>,
}

/// The sandbox of a process with this configuration; `None`: it is off.
pub fn spec(context: &RunContext, configured: &Sandbox, place: &Place<'_>) -> Option<SandboxSpec> {
    let Sandbox::On { write, network } = configured else { return None };
    let home = home(context);
    let mut places =
        vec![place.workdir.to_owned(), context.meta.run_dir.clone(), place.private_tmp.to_owned()];
    places.extend(git_places(context, place.workdir));
    places.extend(place.attempt.map(|attempt| attempt.join("out")));
    if let Some(home) = &home {
        places.extend(cache_places(home));
        for (adapter, env) in place.agents.iter().filter_map(|(name, env)| Some((adapter_named(name)?, env)))
        {
            let own = adapter.places();
            let folders = own.folders_of(home, place.workdir, &|name| env.get(name).cloned());
            let folders: Vec<&str> = folders.iter().filter_map(|folder| folder.to_str()).collect();
            places.extend(agent_places(&folders, own.files, home));
        }
    }
    places.extend(write.iter().map(|path| expand(path, home.as_deref(), &context.meta.root)));
    let root = context.paths.state_root();
    // A state directory inside the tree cannot be kept from whoever may write the tree; it is said so.
    let hide = if root.starts_with(place.workdir) {
        Vec::new()
    } else {
        vec![root.join("projects"), root.join("key")]
    };
    Some(SandboxSpec {
        write: outermost(places).iter().filter_map(|path| settled(context, path)).collect(),
        settled: !Defence::Links.is_off(),
        hide,
        read: place.attempt.or(place.evidence).map(Path::to_owned).into_iter().collect(),
        network: if *network { Network::On } else { Network::Off },
    })
}

/// The sandbox of a step that is judged by all: off only where every agent's is.
pub fn common(context: &RunContext) -> Sandbox {
    context.once.sandbox.get_or_init(|| common_of(&context.frozen)).clone()
}

fn common_of(frozen: &Frozen) -> Sandbox {
    let used: BTreeSet<_> = agents_of(frozen).collect();
    let agents: Vec<&Sandbox> =
        used.iter().filter_map(|id| frozen.agents.get(*id)).map(|agent| &agent.sandbox).collect();
    if frozen.sandbox == Sandbox::Off
        || (!agents.is_empty() && agents.iter().all(|one| **one == Sandbox::Off))
    {
        return Sandbox::Off;
    }
    let mut write = Vec::new();
    let mut open = true;
    for sandbox in agents.into_iter().chain([&frozen.sandbox]) {
        if let Sandbox::On { write: more, network } = sandbox {
            write.extend(more.iter().cloned());
            open &= *network;
        }
    }
    Sandbox::On { write, network: open }
}

/// The sandbox of the agent that works on a step; what all have in common if it is not known. What the role may not
/// do, nothing may that executes its work: nobody there has a model to talk to.
pub fn of_step(context: &RunContext, state: &State, step: &StepId) -> Sandbox {
    let definition = state.definition(&context.frozen.plan, step);
    let agent = definition.and_then(|definition| definition.agent());
    let of_agent = agent
        .and_then(|id| context.frozen.agents.get(id))
        .map_or_else(|| common(context), |agent| agent.sandbox.clone());
    let role = definition.and_then(|definition| definition.role());
    let off_network =
        role.and_then(|role| context.frozen.roles.get(role)).is_some_and(|role| role.network == Some(false));
    match of_agent {
        Sandbox::On { write, network } => Sandbox::On { write, network: network && !off_network },
        Sandbox::Off => Sandbox::Off,
    }
}

/// Whether agents take part in the workflow at all: if not, nothing of theirs is executed.
pub fn has_agents(context: &RunContext) -> bool {
    *context.once.agents.get_or_init(|| agents_of(&context.frozen).next().is_some())
}

/// Whether nothing that is executed with this configuration can leave its places.
pub fn confines(judged: &Sandbox) -> bool {
    *judged != Sandbox::Off && is_enforced()
}

/// Whether this kernel holds what a sandbox says about files.
pub fn is_enforced() -> bool {
    sandbox_support().files_for_sure()
}

/// Whether a process in a worktree cannot change the user's checkout, nor the worktree of anybody else: then
/// whatever changes there meanwhile was changed by others, most likely the user.
pub fn keeps_apart(context: &RunContext, workdir: &Path, limits: Option<&SandboxSpec>) -> bool {
    let Some(limits) = limits.filter(|_| sandbox_support().files_for_sure()) else { return false };
    let root = &context.meta.root;
    let trees = context.paths.worktrees();
    // As the places are: with every link followed.
    let real = |path: &Path| follow(path, &|_| false).unwrap_or_else(|| path.to_owned());
    let (workdir, all_trees) = (&real(workdir), &real(trees.parent().unwrap_or(&trees)));
    let harmless =
        |place: &PathBuf| place.starts_with(&context.meta.run_dir) || place.starts_with(root.join(".git"));
    let reaches = |place: &PathBuf| {
        let meets = |tree: &Path| tree.starts_with(place) || place.starts_with(tree);
        !place.starts_with(workdir) && !harmless(place) && (meets(root) || meets(all_trees))
    };
    workdir != root && !limits.write.iter().any(reaches)
}

/// Who works without the protection of a sandbox, in words; empty when nobody does.
pub fn unprotected(frozen: &Frozen, root: &Path, state_root: &Path) -> Vec<String> {
    let mut words = Vec::new();
    let used: BTreeSet<_> = agents_of(frozen).collect();
    let off: Vec<&str> = used
        .iter()
        .filter(|id| frozen.agents.get(**id).is_some_and(|agent| agent.sandbox == Sandbox::Off))
        .map(|id| id.as_str())
        .collect();
    if !off.is_empty() {
        words.push(format!("sandbox: off for {}", off.join(", ")));
    }
    if off.len() < used.len()
        && let SandboxSupport::None { why } = sandbox_support()
    {
        words.push(format!("no sandbox here: {why}"));
    }
    if state_root.starts_with(root) {
        words.push("the state directory lies inside the project".to_owned());
    }
    words
}

fn agents_of(frozen: &Frozen) -> impl Iterator<Item = &AgentId> {
    frozen.plan.graphs.values().flat_map(|graph| graph.steps.values()).filter_map(|step| step.agent())
}

fn home(context: &RunContext) -> Option<PathBuf> {
    let value = context.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value);
    value.map(PathBuf::from).filter(|home| home.is_absolute())
}

/// `~` is the user's home; what is relative is in the repository.
fn expand(path: &str, home: Option<&Path>, root: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (None, Some(home)) if path == "~" => home.to_owned(),
        _ => root.join(path),
    }
}

/// Links on the way to one place; more lead nowhere.
const LINKS_MAX: usize = 40;

/// Where a place really is, every link followed. One that an agent can have put there is not followed, and the place
/// not granted: whoever may write a folder would choose what others may write.
pub fn settled(context: &RunContext, path: &Path) -> Option<PathBuf> {
    if Defence::Links.is_off() {
        return Some(path.to_owned());
    }
    follow(path, &|folder| is_within_reach(context, folder))
}

fn follow(path: &Path, is_within_reach: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    if is_without_links(path) {
        return Some(path.to_owned());
    }
    let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut left: Vec<OsString> = parts(path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        if !std::fs::symlink_metadata(&next).is_ok_and(|data| data.file_type().is_symlink()) {
            real = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX || is_within_reach(&real) {
            return None;
        }
        let to: Vec<OsString> = parts(&std::fs::read_link(&next).ok()?);
        left.extend(to);
    }
    Some(real)
}

/// The usual case, by one call of the kernel's. A path that is not there yet is looked at part by part.
#[cfg(target_os = "linux")]
fn is_without_links(path: &Path) -> bool {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    let plain = path.is_absolute() && path.components().all(|part| part != std::path::Component::ParentDir);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    plain && rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_without_links(_path: &Path) -> bool {
    false
}

/// Whether some agent of the workflow may write this folder: the project, its worktrees, what the configuration and
/// the adapters list.
fn is_within_reach(context: &RunContext, folder: &Path) -> bool {
    let frozen = &context.frozen;
    let (root, home) = (&context.meta.root, home(context));
    let trees = context.paths.worktrees();
    let mut places = vec![root.clone(), trees.parent().unwrap_or(&trees).to_owned()];
    places.extend(common_dir(root));
    let configured = frozen.agents.values().map(|agent| &agent.sandbox).chain([&frozen.sandbox]);
    for sandbox in configured {
        if let Sandbox::On { write, .. } = sandbox {
            places.extend(write.iter().map(|path| expand(path, home.as_deref(), root)));
        }
    }
    if let Some(home) = &home {
        places.extend(cache_places(home));
        for (id, agent) in &frozen.agents {
            let Some(own) = agent.adapter(id.as_str()).map(Adapter::places) else { continue };
            let inherited = |name: &str| context.environment.iter().find(|(other, _)| other == name);
            let value = |name: &str| agent.set.get(name).or_else(|| inherited(name).map(|(_, value)| value));
            places.extend(own.folders.iter().map(|path| home.join(path)));
            places.extend(own.folders_of(home, root, &|name| value(name).cloned()));
        }
    }
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    places.iter().any(|place| folder.starts_with(real(place)))
}

/// What lies inside another place is left out: it is granted already, and a link that an agent put there
/// would lead the grant elsewhere.
fn outermost(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    places.sort();
    places.dedup();
    let all = places.clone();
    places.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other)));
    places
}

/// What git writes outside a linked worktree when it commits or fetches there: its own folder, objects, the
/// branches of the run and those of remotes, with their logs. Not the settings and not the hooks of the
/// repository, and not the branches of the user.
pub fn git_places(context: &RunContext, workdir: &Path) -> Vec<PathBuf> {
    let Some((own, common)) = link_of(&context.meta.root, workdir) else { return Vec::new() };
    let branches = format!("refs/heads/{}", context.branches());
    let mut places = vec![own];
    for part in [branches.as_str(), "refs/remotes"] {
        for folder in [common.join(part), common.join("logs").join(part)] {
            // Git takes away folders of branches that it packs; what is not there could not be granted.
            if is_itself(&folder) {
                let _ = std::fs::create_dir_all(&folder);
            }
            places.push(folder);
        }
    }
    // Most repositories have neither of the last two.
    places.extend(["objects", "reftable", "lfs"].map(|part| common.join(part)));
    places.retain(|place| is_itself(place) || Defence::Links.is_off());
    places
}

/// No link is on the way to it: an agent in the checkout itself can put one below `.git`.
fn is_itself(path: &Path) -> bool {
    follow(path, &|_| true).is_some()
}

/// Git leads from this folder to a worktree of this very repository, and nowhere else.
pub fn is_linked(root: &Path, workdir: &Path) -> bool {
    link_of(root, workdir).is_some() || Defence::Links.is_off()
}

/// The file `.git` in a worktree is the agent's to write, so it is believed only if it leads to a worktree
/// of this very repository that leads back: its own folder, and that of the repository.
fn link_of(root: &Path, workdir: &Path) -> Option<(PathBuf, PathBuf)> {
    if workdir == root {
        return None;
    }
    let read = |path: PathBuf| plain_file::read_to_string(&path).ok().map(|text| text.trim().to_owned());
    let pointer = read(workdir.join(".git"))?;
    let own = workdir.join(pointer.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let common = own.join(read(own.join("commondir"))?).canonicalize().ok()?;
    let back = PathBuf::from(read(own.join("gitdir"))?).canonicalize().ok()?;
    let is_ours = common == common_dir(root)?
        && own.parent()? == common.join("worktrees")
        && back == workdir.join(".git").canonicalize().ok()?;
    is_ours.then_some((own, common))
}

/// The repository that a checkout of the user belongs to; the checkout may be a linked worktree itself.
fn common_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let pointer = plain_file::read_to_string(&dot_git).ok()?;
    let own = root.join(pointer.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    match plain_file::read_to_string(&own.join("commondir")) {
        Ok(common) => own.join(common.trim()).canonicalize().ok(),
        Err(_) => Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_places_are_granted() {
        let places = ["/a/b", "/a", "/ab", "/a/b/c", "/ab"].map(PathBuf::from).to_vec();
        assert_eq!(outermost(places), ["/a", "/ab"].map(PathBuf::from));
    }

    #[test]
    fn places_of_the_configuration_may_be_below_home_and_in_the_repository() {
        let (home, root) = (Path::new("/home/u"), Path::new("/repo"));
        for (path, expected) in [
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("/data", "/data"),
            ("build", "/repo/build"),
            ("~x", "/repo/~x"),
        ] {
            assert_eq!(expand(path, Some(home), root), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn a_link_that_an_agent_can_have_put_there_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        for folder in ["home/real/data", "repo/build", "elsewhere"] {
            std::fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, scratch.join(at)).unwrap();
        link("real", "home/of-user");
        link("../elsewhere", "repo/planted");
        link("../../../elsewhere", "home/real/data/planted");
        link("loop", "home/loop");
        let reach = [scratch.join("repo"), scratch.join("home/real/data")];
        let within = |folder: &Path| reach.iter().any(|place| folder.starts_with(place));
        let settled = |path: &str| follow(&scratch.join(path), &within);
        for (path, expected) in [
            ("home/of-user/data", Some("home/real/data")),
            ("home/of-user/../repo", Some("home/repo")),
            ("repo/build", Some("repo/build")),
            ("repo/not-yet/there", Some("repo/not-yet/there")),
            ("repo/planted", None),
            ("repo/planted/below", None),
            ("home/of-user/data/planted", None),
            ("home/loop", None),
        ] {
            assert_eq!(settled(path), expected.map(|path| scratch.join(path)), "{path}");
        }
    }

    #[test]
    fn a_worktree_is_believed_only_if_the_repository_knows_it() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        let (root, tree) = (scratch.join("repo"), scratch.join("tree"));
        let own = root.join(".git/worktrees/tree");
        for folder in [&own, &tree, &root.join(".git/objects"), &scratch.join("elsewhere")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        std::fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(link_of(&root, &tree), Some((own.clone(), root.join(".git"))));
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", scratch.join("elsewhere").display()))
            .unwrap();
        assert!(!is_linked(&root, &tree) && !is_linked(&root, &root));
        // Seen from another worktree of the same repository it is the same.
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        let (other, link) = (scratch.join("other"), root.join(".git/worktrees/other"));
        std::fs::create_dir_all(&other).unwrap();
        std::fs::create_dir_all(&link).unwrap();
        std::fs::write(link.join("commondir"), "../..\n").unwrap();
        std::fs::write(other.join(".git"), format!("gitdir: {}\n", link.display())).unwrap();
        assert!(is_linked(&other, &tree));
    }
}
