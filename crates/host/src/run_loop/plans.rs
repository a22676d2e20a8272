//! Frozen workflows as they are stored with a run.

use std::path::Path;

use gatewright_core::{event::Event, ids::Timestamp};
use gatewright_workflow::frozen::{Frozen, is_frozen_as};

use super::EngineError;
use crate::{disk::Disk, run_context::RunContext};

/// Every workflow that the run adopted on its way.
pub(super) fn adopted_plans(
    context: &RunContext,
    events: &[(Timestamp, Event)],
) -> Result<Vec<(String, Frozen)>, EngineError> {
    let digests = events.iter().filter_map(|(_, event)| {
        if let Event::PlanAdopted { digest } = event { Some(digest.clone()) } else { None }
    });
    digests.map(|digest| read_plan(context, &digest).map(|frozen| (digest, frozen))).collect()
}

/// Reads a frozen workflow and rebuilds what is derived in it.
pub fn read_plan(context: &RunContext, digest: &str) -> Result<Frozen, EngineError> {
    read_verified(context.disk.as_ref(), &context.paths.plan(digest), digest)
}

/// Reads a frozen workflow and refuses one that is not what its digest says: an engine obeys no other.
pub fn read_verified(disk: &dyn Disk, path: &Path, digest: &str) -> Result<Frozen, EngineError> {
    let bytes = disk.read(path).map_err(|source| EngineError::Plan { path: path.to_owned(), source })?;
    let format = |source| EngineError::PlanFormat { path: path.to_owned(), source };
    if !is_frozen_as(&bytes, digest).map_err(format)? {
        return Err(EngineError::PlanForged { path: path.to_owned() });
    }
    parse(path, &bytes)
}

pub fn read_frozen(disk: &dyn Disk, path: &Path) -> Result<Frozen, EngineError> {
    let bytes = disk.read(path).map_err(|source| EngineError::Plan { path: path.to_owned(), source })?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Frozen, EngineError> {
    let mut frozen: Frozen = serde_json::from_slice(bytes)
        .map_err(|source| EngineError::PlanFormat { path: path.to_owned(), source })?;
    for graph in frozen.plan.graphs.values_mut() {
        graph.index();
    }
    Ok(frozen)
}
