//! What real agents would be started with where a rehearsed one is: command line, environment, prompt. Nothing of it is
//! started.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_core::{
    ids::StepId,
    plan::{Kind, Plan, Step},
    state::State,
};
use gatewright_host::{perform::agent::preview, run_context::RunContext};
use gatewright_workflow::{frozen::Frozen, load::LoadOptions};
use serde_json::{Map, Value, json};

use super::scenario::Scenario;
use crate::{command_error::CommandError, definitions::Session};

/// Directories of attempts that are not begun are numbered from here.
const NUMBER: u32 = 1_000_000;

/// The same workflow, all roles played by one agent of the configuration.
#[derive(Clone)]
pub struct House {
    name: String,
    frozen: Arc<Frozen>,
}

/// The agents that are asked for.
pub fn houses(
    session: &Session,
    workflow: &str,
    profile: Option<&str>,
    scenario: &Scenario,
    names: &[String],
) -> Result<Vec<House>, CommandError> {
    let house = |name: &String| {
        let options = LoadOptions {
            profile: profile.map(str::to_owned).or_else(|| scenario.profile.clone()),
            settings: scenario.settings.clone(),
            agent: Some(name.clone()),
            config: &session.config,
        };
        let frozen = Arc::new(session.load(workflow, &options)?);
        Ok(House { name: name.clone(), frozen })
    };
    names.iter().map(house).collect()
}

/// What was made for them so far.
#[derive(Clone, Default)]
pub struct Launches {
    houses: Vec<House>,
    /// A home directory that is nobody's: folders of agents are made there.
    home: PathBuf,
    made: Vec<Value>,
    /// What could not be made, and why.
    pub problems: Vec<(String, String)>,
    /// By role, and whether it was not the first attempt of its step.
    played: BTreeSet<(String, bool)>,
    roles: BTreeSet<String>,
}

impl Launches {
    pub fn new(houses: &[House], home: &Path) -> Launches {
        let roles = houses.iter().flat_map(|house| roles(&house.frozen.plan)).collect();
        Launches { houses: houses.to_vec(), home: home.to_owned(), roles, ..Launches::default() }
    }

    /// For `--json`; nothing if nobody was asked for. `unplayed`: roles of the workflow whose turn never came.
    pub fn to_json(&self) -> Map<String, Value> {
        let played: BTreeSet<&String> = self.played.iter().map(|(role, _)| role).collect();
        let unplayed: Vec<&String> = self.roles.iter().filter(|role| !played.contains(role)).collect();
        let fields = [("launches", json!(self.made)), ("unplayed", json!(unplayed))];
        let asked = fields.into_iter().filter(|_| !self.houses.is_empty());
        asked.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Makes them for an attempt that begins: for each role the first one, and the first that is not the first of its step.
    pub fn look(&mut self, context: &RunContext, state: &State, step: &StepId, attempt: u32) {
        let plan = &context.frozen.plan;
        let own = state.steps.get(step).filter(|own| own.given.is_none());
        let role = state.definition(plan, step).and_then(|definition| definition.role());
        let (Some(own), Some(role), false) = (own, role, self.houses.is_empty()) else { return };
        let (role, again) = (role.to_string(), own.round > 1 || attempt > 1);
        if !self.played.insert((role.clone(), again)) {
            return;
        }
        for house in self.houses.clone() {
            let mut environment: Vec<(String, String)> = context.environment.as_ref().clone();
            environment.retain(|(name, _)| name != "HOME");
            environment.push(("HOME".to_owned(), self.home.display().to_string()));
            let theirs = RunContext {
                frozen: house.frozen.clone(),
                environment: Arc::new(environment),
                ..context.clone()
            };
            match preview(&theirs, state, step, NUMBER + attempt) {
                Ok(made) => self.made.push(json!({
                    "step": step, "attempt": attempt, "round": own.round, "role": role, "agent": house.name,
                    "argv": made.spec.argv, "environment": made.spec.env, "out": made.out,
                    "folder": made.spec.cwd, "writable": made.spec.sandbox.map(|limits| limits.write),
                    "outputs": made.outputs, "prompt": made.prompt,
                })),
                Err(problem) => {
                    let what = format!("`{step}` as {role} by `{}`", house.name);
                    self.problems.push((what, format!("{problem:?}")));
                }
            }
        }
    }
}

/// Roles of the steps of all profiles.
fn roles(plan: &Plan) -> BTreeSet<String> {
    let steps = plan.graphs.values().flat_map(|graph| graph.steps.values());
    let of_step = |step: &Step| -> Vec<String> {
        match &step.kind {
            Kind::Review(review) => review.reviewers.iter().map(|one| one.role.to_string()).collect(),
            _ => step.role().map(ToString::to_string).into_iter().collect(),
        }
    };
    steps.flat_map(|step| of_step(step)).collect()
}
