//! Where a step works: the user's checkout, the worktree of its run, or the worktree of its stream.
//! Computed from state and definition alone; nothing here looks at the disk.

use std::path::PathBuf;

use gatewright_core::{
    ids::StepId,
    plan::Kind,
    state::{State, StepState},
};

use crate::{project::file_name, run_context::RunContext};

/// The name of the run's own worktree. No stream is called like this: names of streams that begin with an
/// underscore get another beginning.
pub const RUN_STREAM: &str = "_run";

/// A folder with a branch of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The last part of the branch and the name of the folder.
    pub name: String,
    pub branch: String,
    pub path: PathBuf,
    /// What it branches off from.
    pub parent: Box<Workplace>,
    /// Branches whose work it builds on: merged into it when it is made.
    pub after: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workplace {
    /// The user's own.
    Checkout(PathBuf),
    Worktree(Stream),
}

impl Workplace {
    pub fn folder(&self) -> &PathBuf {
        match self {
            Workplace::Checkout(folder) => folder,
            Workplace::Worktree(stream) => &stream.path,
        }
    }

    pub fn stream(&self) -> Option<&Stream> {
        match self {
            Workplace::Checkout(_) => None,
            Workplace::Worktree(stream) => Some(stream),
        }
    }
}

impl RunContext {
    /// Where this step works.
    pub fn place(&self, state: &State, step: &StepId) -> Workplace {
        let Some(own) = state.steps.get(step) else { return self.run_place() };
        let text = self.text(state, step);
        let by_agent = state
            .definition(&self.frozen.plan, step)
            .is_some_and(|definition| matches!(definition.kind, Kind::Agent { .. }));
        if text.own_worktree && by_agent {
            let parent = self.around(state, own);
            return Workplace::Worktree(self.stream(&step.as_str().replace('/', "-"), parent, Vec::new()));
        }
        self.around(state, own)
    }

    /// The place that the group around a step gives it.
    fn around(&self, state: &State, own: &StepState) -> Workplace {
        let Some(owner) = &own.owner else { return self.run_place() };
        if let Some(key) = &own.item
            && self.text(state, owner).own_worktree
        {
            return Workplace::Worktree(self.item_stream(state, owner, key));
        }
        self.place(state, owner)
    }

    /// The stream of one item of a fan-out.
    pub fn item_stream(&self, state: &State, fan_out: &StepId, key: &str) -> Stream {
        let parent = state.steps.get(fan_out).map_or_else(|| self.run_place(), |own| self.around(state, own));
        let mut after = Vec::new();
        self.builds_on(state, fan_out, key, &mut after);
        self.stream(&self.stream_name(state, fan_out, key), parent, after)
    }

    /// The branches of the items it depends on. One that had nothing to do has none; then it is those before it.
    fn builds_on(&self, state: &State, fan_out: &StepId, key: &str, after: &mut Vec<String>) {
        let items = state.fan_outs.get(fan_out).map(|fan_out| &fan_out.items);
        for need in items.and_then(|items| items.get(key)).into_iter().flat_map(|item| &item.needs) {
            if !has_worked(state, fan_out, need) {
                self.builds_on(state, fan_out, need, after);
                continue;
            }
            let branch = self.branch(&branch_part(&self.stream_name(state, fan_out, need)));
            if !after.contains(&branch) {
                after.push(branch);
            }
        }
    }

    /// The key, as long as no other fan-out of the run could have the same one.
    fn stream_name(&self, state: &State, fan_out: &StepId, key: &str) -> String {
        let texts = self.frozen.steps.get(&state.profile);
        let others = texts.into_iter().flatten().filter(|(_, text)| text.own_worktree).count();
        if others <= 1 && !fan_out.as_str().contains('/') {
            key.to_owned()
        } else {
            format!("{}-{key}", fan_out.as_str().replace('/', "-"))
        }
    }

    fn stream(&self, name: &str, parent: Workplace, after: Vec<String>) -> Stream {
        let name = branch_part(name);
        Stream {
            branch: self.branch(&name),
            path: self.paths.worktrees().join(&name),
            name,
            parent: Box::new(parent),
            after,
        }
    }

    fn branch(&self, name: &str) -> String {
        format!("{}/{name}", self.branches())
    }

    /// The branch of a run that has one, as people know it.
    pub fn own_branch(&self) -> Option<String> {
        self.meta.isolated.then(|| self.meta.branch.clone().unwrap_or_else(|| run_branch(&self.meta.id)))
    }

    /// What the names of all branches of this run begin with.
    pub fn branches(&self) -> String {
        format!("gatewright/{}", branch_part(&self.meta.id))
    }

    /// Where steps work that belong to no stream.
    pub fn run_place(&self) -> Workplace {
        let checkout = Workplace::Checkout(self.meta.root.clone());
        if !self.meta.isolated {
            return checkout;
        }
        let mut stream = self.stream("run", checkout, Vec::new());
        stream.name = RUN_STREAM.to_owned();
        stream.branch = self.branch(RUN_STREAM);
        let beside = self.meta.worktree.as_ref().filter(|_| self.meta.beside);
        stream.path = match beside {
            Some(path) => crate::launch::lexical(&self.meta.root.join(path)),
            None => self.paths.worktrees().join(RUN_STREAM),
        };
        Workplace::Worktree(stream)
    }
}

/// The engine's own name of a run's branch.
pub fn run_branch(run: &str) -> String {
    format!("gatewright/{}/{RUN_STREAM}", branch_part(run))
}

/// Any text as one part of a branch name that is a plain file name too. What had to be changed gets a hash,
/// so that two texts never share a name.
/// Whether anything of an item was ever started. Without that it has no worktree and no branch.
pub fn has_worked(state: &State, fan_out: &StepId, key: &str) -> bool {
    let inside = format!("{fan_out}/{key}/");
    let from = StepId::new(&inside);
    let mut own = state.steps.range(from..).take_while(|(id, _)| id.as_str().starts_with(&inside)).peekable();
    // Of one that is not known here it is not claimed.
    own.peek().is_none() || own.any(|(_, own)| own.attempts > own.not_started)
}

fn branch_part(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '%') { c } else { '-' })
        .collect();
    let plain = plain.replace("..", "--");
    let mut plain = plain.trim_start_matches(['.', '-', '_']).trim_end_matches('.').to_owned();
    // Git refuses exactly this ending.
    if plain.rsplit_once('.').is_some_and(|(_, end)| end == "lock") {
        plain.push('-');
    }
    plain.truncate(80);
    if plain == text {
        return plain;
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    file_name(&format!("{plain}-{}", &hash[..8])).replace('%', "-").trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_branches_are_valid_and_differ() {
        let texts =
            ["a", "a b", "a-b", "..", "x.lock", "_run", "-f", "ä", "a~b", "a:b", "9", "a..b", "@{", "x."];
        let names: Vec<String> = texts.iter().map(|text| branch_part(text)).collect();
        for name in &names {
            let git = gatewright_attempts::Git::at(".");
            assert!(git.holds(&["check-ref-format", &format!("refs/heads/gatewright/r/{name}")]), "{name}");
            assert!(!name.starts_with('_') && !name.is_empty(), "{name}");
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
        assert_eq!(names[0], "a");
    }
}
