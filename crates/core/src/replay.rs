//! Folding a journal back into a state.

use crate::{
    event::Event,
    ids::Timestamp,
    plan::Plan,
    state::{RunPhase, State},
};

/// Why a journal cannot be folded with these plans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error("event {place} comes before the run has started")]
    BeforeStart { place: usize },
    #[error("event {place} names the profile `{profile}`, which the plan does not have")]
    UnknownProfile { place: usize, profile: String },
    #[error("event {place} adopts the plan {digest}, which is not there")]
    UnknownPlan { place: usize, digest: String },
}

/// Folds events. `plan_of` finds the plan that was adopted under a digest.
pub fn replay<'p>(
    first: &'p Plan,
    events: impl IntoIterator<Item = (Timestamp, Event)>,
    plan_of: impl Fn(&str) -> Option<&'p Plan>,
) -> Result<(State, &'p Plan), ReplayError> {
    let mut plan = first;
    let mut state = State::new(plan);
    for (place, (at, event)) in events.into_iter().enumerate() {
        match &event {
            Event::RunStarted { profile, .. } | Event::ProfileEscalated { to: profile, .. }
                if !plan.graphs.contains_key(profile) =>
            {
                return Err(ReplayError::UnknownProfile { place: place + 1, profile: profile.to_string() });
            }
            Event::PlanAdopted { digest } => {
                plan = plan_of(digest)
                    .ok_or_else(|| ReplayError::UnknownPlan { place: place + 1, digest: digest.clone() })?;
            }
            other if state.phase == RunPhase::Created && !matches!(other, Event::RunStarted { .. }) => {
                return Err(ReplayError::BeforeStart { place: place + 1 });
            }
            _ => {}
        }
        state.apply(plan, &event, at);
    }
    Ok((state, plan))
}
