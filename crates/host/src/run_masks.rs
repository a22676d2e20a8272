//! What must not be shown of a run, whoever prints it: the values that any of its agents and checks is given. One writes
//! what it was given into the tree, and another one reads it out.

use std::fs;

use gatewright_attempts::{AttemptDir, allowed_environment};
use gatewright_workflow::frozen::Frozen;

use crate::{mask::Masks, project::RunPaths, run_context::RunContext};

/// As the engine knows it, before anything is started. It stays the same as long as the engine lives.
pub fn of_engine(context: &RunContext) -> &Masks {
    context.once.masks.get_or_init(|| of_context(context))
}

fn of_context(context: &RunContext) -> Masks {
    let environment = || context.environment.iter().cloned();
    let all = environment().collect();
    let agents = context.frozen.agents.values();
    let given = agents.map(|agent| Masks::of_launch(&allowed_environment(&agent.env, environment())));
    // Adapters name variables of their own; what a name says to be a secret is one for everybody.
    let secrets = Masks::of_names(&all);
    given.fold(secrets.and(&of_definition(&context.frozen)), |masks, more| masks.and(&more))
}

/// As somebody knows it who reads the run later, perhaps with other variables: by what was started.
pub fn of_reader(paths: &RunPaths, frozen: &Frozen) -> Masks {
    let folders = |of: &std::path::Path| {
        let entries = fs::read_dir(of).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let attempts = folders(&paths.attempts()).into_iter().flat_map(|step| folders(&step));
    // An attempt and the turns that mended it.
    let turns = attempts.flat_map(|attempt| {
        let mends = folders(&attempt).into_iter().filter(|dir| dir.join("launch.json").exists());
        mends.chain([attempt.clone()]).collect::<Vec<_>>()
    });
    let launches = turns.filter_map(|path| AttemptDir { path }.launch_spec().ok().flatten());
    let mut masks = of_definition(frozen);
    for launch in launches {
        let more = Masks::of_launch(&launch.env);
        if !masks.covers(&more) {
            masks = masks.and(&more);
        }
    }
    masks
}

/// What the definition itself gives to agents and checks.
fn of_definition(frozen: &Frozen) -> Masks {
    let agents = frozen.agents.values().map(|agent| &agent.set);
    let checks = frozen.checks.values().map(|check| &check.env);
    agents.chain(checks).fold(Masks::default(), |masks, env| masks.and(&Masks::of_launch(env)))
}
