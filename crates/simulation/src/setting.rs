//! The scene of a life: the files that a launch leaves, and the surroundings that the run loop is given.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use gatewright_core::plan::Plan;
use gatewright_host::{
    atomic_file::create_dir_durable,
    clock::Clock,
    disk::{Disk, SharedDisk},
    launch::{context_of, store_plan},
    project::RunPaths,
    run_context::RunContext,
    run_meta::RunMeta,
};
use gatewright_workflow::{frozen::Frozen, template::Templates};
use serde_json::json;

/// Parsed once: ten thousands of lives share it.
static FROZEN: LazyLock<Option<Frozen>> = LazyLock::new(|| {
    let plan = crate::common::draft().agent("a").plan();
    serde_json::from_value(json!({
        "version": 1, "workflow": "test", "dir": "work", "run_id": "run", "plan": plan, "roles": {},
        "checks": {}, "steps": {}, "projections": [], "words": {}, "settings": {}, "agents": {}, "sources": {},
    }))
    .ok()
});

/// What a projection of the whole run looks like.
fn projection() -> Option<gatewright_workflow::frozen::Projection> {
    let content = json!({
        "state": {"$expr": "run.state"},
        "steps": {"$for": "step in step_list", "$key": "step.id", "each": {"$expr": "step.state"}},
    });
    serde_json::from_value(json!({"path": "state.json", "format": "json", "content": content})).ok()
}

pub fn frozen(plan: Plan, projected: bool) -> Result<Frozen, String> {
    let mut frozen = FROZEN.clone().ok_or("the frozen workflow of the simulation is out of date")?;
    frozen.plan = plan;
    if projected {
        frozen.projections = vec![projection().ok_or("the projection of the simulation is out of date")?];
    }
    Ok(frozen)
}

/// Everything that is durable before a journal is.
pub fn context(disk: SharedDisk, clock: Arc<dyn Clock>, frozen: Frozen) -> Result<RunContext, String> {
    let meta: RunMeta = serde_json::from_value(json!({
        "version": 1, "id": "run", "workflow": "test", "root": "/repository", "run_dir": "/repository/work",
        "request": "do it", "created_at_ms": 0, "digest": "first", "detached": false,
    }))
    .map_err(|error| error.to_string())?;
    let paths = RunPaths { dir: PathBuf::from("/state/runs/run") };
    for folder in [paths.dir.as_path(), Path::new("/repository/work")] {
        create_dir_durable(disk.as_ref(), folder).map_err(|error| error.to_string())?;
    }
    static TEMPLATES: LazyLock<Arc<Templates>> = LazyLock::new(|| Arc::new(Templates::new()));
    let mut context = context_of(disk, clock, paths, meta, frozen);
    context.templates = TEMPLATES.clone();
    Ok(context)
}

/// Stores the plan once more, for an engine that will be told to adopt it.
pub fn store_second(disk: &dyn Disk, context: &RunContext) -> Result<(), String> {
    store_plan(disk, &context.paths, &context.frozen).map(drop).map_err(|error| error.to_string())
}

/// Under which the plan can be adopted a second time.
pub fn digest(frozen: &Frozen) -> Result<String, String> {
    frozen.digest().map_err(|error| error.to_string())
}
