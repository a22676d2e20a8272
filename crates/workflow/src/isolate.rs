//! The shared checkout has one writer at a time (decision 27): a run that would write beside another one gets a
//! worktree of its own, and its last step asks what becomes of its branch.

use gatewright_core::{
    ids::{StageId, StepId},
    plan::{Edge, Graph, Kind, Retry, Stage, Step, limits},
};

use crate::{
    frozen::{Frozen, Isolation, StepText, may_write},
    globs::{Bare, Globs},
    resolve::FINISH_ASK,
};

/// The step that a run gets which did not expect to have a branch.
const HOME: &str = "bring-home";

/// The step and the stage that a run was given by [`Frozen::isolate`]: no part of its method.
pub fn is_errand(id: &str) -> bool {
    id.trim_end_matches('-') == HOME
}

impl Frozen {
    /// Puts the whole run into a worktree of its own: what its agents change is committed there, and offered in
    /// the end.
    pub fn isolate(&mut self) {
        if self.isolated {
            return;
        }
        self.isolated = true;
        self.settle_commits();
        for (profile, graph) in &mut self.plan.graphs {
            let id = bring_home(graph);
            let text = StepText { finish: Some(FINISH_ASK.to_owned()), ..StepText::default() };
            self.steps.entry(profile.clone()).or_default().insert(id, text);
        }
    }

    /// Whether the two could write the same file of the checkout. Readers write nothing, and what works in a
    /// worktree does not write the checkout.
    pub fn writes_beside(&self, other: &Frozen) -> bool {
        let theirs = other.scopes();
        self.scopes().iter().any(|one| theirs.iter().any(|two| collide(one.as_deref(), two.as_deref())))
    }

    /// What the roles at work in the checkout may write; `None`: everything.
    fn scopes(&self) -> Vec<Option<Vec<String>>> {
        if self.isolated {
            return Vec::new();
        }
        let mut scopes = Vec::new();
        for (profile, graph) in &self.plan.graphs {
            let texts = self.steps.get(profile);
            for (id, step) in &graph.steps {
                let text = texts.and_then(|texts| texts.get(id));
                let apart = text.is_some_and(|text| text.isolation == Isolation::Worktree);
                if let Some(role) = step.role().filter(|_| !apart) {
                    scopes.push(may_write(text, self.roles.get(role)));
                }
            }
        }
        scopes.sort();
        scopes.dedup();
        scopes
    }
}

fn collide(one: Option<&[String]>, two: Option<&[String]>) -> bool {
    match (one, two) {
        (Some([]), _) | (_, Some([])) => false,
        (None, _) | (_, None) => true,
        (Some(one), Some(two)) => !Globs::new(one, Bare::InRoot).is_disjoint(&Globs::new(two, Bare::InRoot)),
    }
}

/// After everything else.
fn bring_home(graph: &mut Graph) -> StepId {
    let mut name = HOME.to_owned();
    while graph.steps.contains_key(name.as_str()) || graph.stage(&StageId::new(&name)).is_some() {
        name.push('-');
    }
    let (id, stage) = (StepId::new(&name), StageId::new(&name));
    let called = |id: &&StepId| graph.steps.get(*id).is_some_and(|step| !step.dormant);
    let needs = graph.top().filter(called).map(|from| Edge { from: from.clone() }).collect();
    let step = Step {
        name,
        stage: stage.clone(),
        needs,
        gates: Vec::new(),
        kind: Kind::Finish { asked: None },
        pools: Vec::new(),
        tenure: None,
        writes: Vec::new(),
        checks: Vec::new(),
        commit: false,
        retry: Retry::default(),
        dormant: false,
        back: Vec::new(),
        back_max: limits::BACK_MAX,
    };
    let restarts_max = limits::RESTARTS_MAX;
    graph.stages.push(Stage { id: stage, steps: vec![id.clone()], restarts_max, disabled: None });
    graph.steps.insert(id.clone(), Box::new(step));
    graph.index();
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_collide_unless_their_globs_cannot_mean_the_same_file_and_readers_never() {
        let globs = |words: &[&str]| Some(words.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (one, two, expected) in [
            (None, None, true),
            (None, globs(&[]), false),
            (globs(&[]), globs(&[]), false),
            (globs(&["src/**"]), None, true),
            (globs(&["src/**"]), globs(&["docs/**"]), false),
            (globs(&["src/**"]), globs(&["src/a.txt"]), true),
        ] {
            assert_eq!(collide(one.as_deref(), two.as_deref()), expected, "{one:?} {two:?}");
            assert_eq!(collide(two.as_deref(), one.as_deref()), expected, "{two:?} {one:?}");
        }
    }
}
