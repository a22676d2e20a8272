//! Where steps stand, and everything that is derived from it.

use std::collections::BTreeSet;

use crate::{
    gate,
    ids::{GateId, StepId, Timestamp},
    plan::{Kind, Plan},
    state::{Lane, Phase, ScopeId, State, Waiver},
};

impl State {
    /// The one place where a phase changes; keeps everything that is derived from phases.
    pub(super) fn set_phase(&mut self, plan: &Plan, id: &StepId, phase: Phase, at: Timestamp) {
        let Some(state) = self.steps.get_mut(id) else { return };
        let old = std::mem::replace(&mut state.phase, phase.clone());
        if matches!(phase, Phase::Running { .. }) && state.started_at.is_none() {
            state.started_at = Some(at);
        }
        if matches!(
            phase,
            Phase::Passed { .. } | Phase::Failed { .. } | Phase::Blocked { .. } | Phase::Skipped { .. }
        ) {
            state.ended_at = Some(at);
        }
        let scope = state.scope.clone();
        // On its way to its turn a step may still owe something to an answer; see `reset`.
        if !matches!(phase, Phase::Pending | Phase::Gated | Phase::Ready) {
            self.queues.due.remove(id);
        }
        self.leave(plan, id, &old, &phase, at);
        self.enter(plan, id, &old, &phase, at);
        let counts = self.queues.scopes.entry(scope.clone()).or_default();
        counts.active = counts.active + u32::from(phase.is_active()) - u32::from(old.is_active());
        let counted = |phase: &Phase| u32::from(!phase.is_satisfied() && !matches!(phase, Phase::Dormant));
        counts.unsatisfied = counts.unsatisfied + counted(&phase) - counted(&old);
        if counts.active == 0 {
            self.queues.quiet.insert(scope);
        } else {
            self.queues.quiet.remove(&scope);
        }
        if old.is_satisfied() != phase.is_satisfied() {
            self.tell_dependents(plan, id, phase.is_satisfied(), at);
        }
    }

    /// Takes a step out of the queues of its old phase.
    pub(super) fn leave(&mut self, plan: &Plan, id: &StepId, old: &Phase, new: &Phase, at: Timestamp) {
        match old {
            // What else was asked about it (an edit by hand beside an approval) is no longer the question.
            Phase::Waiting if *new != Phase::Waiting => {
                self.close_decisions_of(id, "what it was about goes on", at);
            }
            Phase::Waiting => {}
            Phase::Ready => {
                self.queues.openable.remove(id);
                self.queues.held.remove(id);
                self.queues.listing.remove(id);
                if let Some(lane) = self.lane(plan, id)
                    && let Some(queue) = self.queues.lanes.get_mut(&lane)
                    && let Some(place) = queue.iter().position(|other| other == id)
                {
                    queue.remove(place);
                    if queue.is_empty() {
                        self.queues.lanes.remove(&lane);
                    }
                    if matches!(new, Phase::Running { .. }) {
                        self.queues.serial += 1;
                        self.queues.served.insert(lane, self.queues.serial);
                    }
                }
            }
            Phase::Gated => {
                self.queues.gating.remove(id);
                self.queues.closed.remove(id);
            }
            Phase::Running { .. } | Phase::Verifying { .. } => {
                if !matches!(new, Phase::Running { .. } | Phase::Verifying { .. }) {
                    self.queues.live.remove(id);
                    self.count_pools(plan, id, false);
                    self.clock_stops(plan, id, at);
                }
            }
            Phase::Backoff { until } => {
                self.queues.backoff.remove(&(*until, id.clone()));
            }
            Phase::Failed { .. } => {
                self.queues.failed.remove(id);
            }
            Phase::Blocked { .. } => {
                self.queues.blocked.remove(id);
            }
            Phase::Open => {
                self.list_no_longer_asked(id, "the list is no longer worked on", at);
                self.queues.fan_outs.remove(id);
                self.queues.quiet.remove(&ScopeId(id.as_str().to_owned()));
            }
            Phase::Fixing => self.leave_loop(id),
            Phase::Dormant | Phase::Pending | Phase::Passed { .. } | Phase::Skipped { .. } => {}
        }
    }

    /// Puts a step into the queues of its new phase.
    pub(super) fn enter(&mut self, plan: &Plan, id: &StepId, old: &Phase, new: &Phase, at: Timestamp) {
        match new {
            Phase::Ready => self.enqueue(plan, id),
            Phase::Running { .. } | Phase::Verifying { .. } => {
                if !matches!(old, Phase::Running { .. } | Phase::Verifying { .. }) {
                    self.queues.live.insert(id.clone());
                    self.count_pools(plan, id, true);
                    self.clock_starts(plan, id, at);
                }
            }
            Phase::Backoff { until } => {
                self.queues.backoff.insert((*until, id.clone()));
            }
            Phase::Failed { .. } => {
                self.queues.failed.insert(id.clone());
            }
            Phase::Blocked { .. } => {
                self.queues.blocked.insert(id.clone());
            }
            Phase::Dormant
            | Phase::Pending
            | Phase::Gated
            | Phase::Waiting
            | Phase::Open
            | Phase::Fixing
            | Phase::Passed { .. }
            | Phase::Skipped { .. } => {}
        }
    }

    pub(super) fn enqueue(&mut self, plan: &Plan, id: &StepId) {
        let Some(definition) = self.definition(plan, id) else { return };
        match &definition.kind {
            Kind::FanOut(_) => {
                self.queues.listing.insert(id.clone());
            }
            Kind::Decision(question) if question.once && self.is_asked_elsewhere(id) => {
                self.queues.held.insert(id.clone());
            }
            Kind::Decision(_) | Kind::SubRun { .. } => {
                self.queues.openable.insert(id.clone());
            }
            Kind::Review(review) if review.reviewers.len() > 1 => {
                self.queues.openable.insert(id.clone());
            }
            Kind::Agent { .. }
            | Kind::Review(_)
            | Kind::Check { .. }
            | Kind::Merge { .. }
            | Kind::Finish { .. } => {
                if let Some(lane) = self.lane(plan, id) {
                    self.queues.lanes.entry(lane).or_default().push_back(id.clone());
                }
            }
        }
    }

    pub(crate) fn lane(&self, plan: &Plan, id: &StepId) -> Option<Lane> {
        let definition = self.definition(plan, id)?;
        let group = self.steps.get(id)?.owner.clone();
        Some(Lane {
            group,
            agent: definition.agent().cloned(),
            pools: definition.pools.clone(),
            tenure: definition.tenure.clone(),
        })
    }

    pub(super) fn count_pools(&mut self, plan: &Plan, id: &StepId, more: bool) {
        let Some(definition) = self.definition(plan, id) else { return };
        for pool in &definition.pools {
            let used = self.queues.pool_use.entry(pool.clone()).or_default();
            *used = if more { *used + 1 } else { used.saturating_sub(1) };
        }
        if let Some(tenure) = &definition.tenure {
            let used = self.queues.tenure_use.entry(tenure.clone()).or_default();
            *used = if more { *used + 1 } else { used.saturating_sub(1) };
        }
    }

    /// A pending step without unmet needs goes on to its gates, and through them if they hold.
    pub(super) fn wake(&mut self, plan: &Plan, id: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get(id) else { return };
        if !matches!(state.phase, Phase::Pending | Phase::Gated)
            || state.unmet > 0
            || self.queues.disabled.contains(id)
        {
            return;
        }
        if self.done_before.contains_key(id) {
            // In its turn, not before what it rests on.
            self.queues.disabled.insert(id.clone());
            return;
        }
        let Some(definition) = self.definition(plan, id) else { return };
        let unevaluated = definition.gates.iter().any(|gate| gate::needs_evaluation(gate, state));
        let open = definition.gates.iter().all(|gate| gate::holds(plan, self, id, gate));
        if open && !unevaluated {
            self.set_phase(plan, id, Phase::Ready, at);
            return;
        }
        self.set_phase(plan, id, Phase::Gated, at);
        if unevaluated {
            self.queues.gating.insert(id.clone());
        } else {
            self.queues.closed.insert(id.clone());
        }
    }

    pub(super) fn wake_all(&mut self, plan: &Plan, steps: &BTreeSet<StepId>, at: Timestamp) {
        for step in steps {
            self.wake(plan, step, at);
        }
    }

    pub(super) fn tell_dependents(&mut self, plan: &Plan, id: &StepId, satisfied: bool, at: Timestamp) {
        let Some(state) = self.steps.get(id) else { return };
        let graph = self.graph(plan);
        let dependents: Vec<StepId> = graph
            .dependents
            .get(&state.template)
            .into_iter()
            .flatten()
            .map(|template| self.sibling(plan, state, template))
            .collect();
        for dependent in dependents {
            let Some(other) = self.steps.get_mut(&dependent) else { continue };
            if satisfied {
                other.unmet = other.unmet.saturating_sub(1);
                self.wake(plan, &dependent, at);
            } else {
                other.unmet += 1;
                // What its gates said was said of a record that is changing.
                if matches!(other.phase, Phase::Gated | Phase::Ready | Phase::Backoff { .. }) {
                    other.gates.clear();
                    self.set_phase(plan, &dependent, Phase::Pending, at);
                }
            }
        }
        if satisfied {
            self.no_longer_awaited(plan, id, at);
        }
    }

    pub(super) fn unmet_needs(&self, plan: &Plan, step: &StepId) -> u32 {
        let Some(state) = self.steps.get(step) else { return 0 };
        let Some(definition) = self.definition(plan, step) else { return 0 };
        definition
            .needs
            .iter()
            .map(|edge| self.sibling(plan, state, &edge.from))
            .filter(|need| !self.steps.get(need).is_some_and(|other| other.phase.is_satisfied()))
            .count() as u32
    }

    pub(super) fn gate_evaluated(
        &mut self,
        plan: &Plan,
        step: &StepId,
        gate: &GateId,
        value: &Result<bool, String>,
        at: Timestamp,
    ) {
        if let Some(state) = self.steps.get_mut(step) {
            state.gates.insert(gate.clone(), value.clone());
        }
        self.wake(plan, step, at);
    }

    pub(super) fn gate_waived(
        &mut self,
        plan: &Plan,
        step: &StepId,
        gate: &GateId,
        reason: &str,
        at: Timestamp,
    ) {
        let gate_waiver = Waiver { gate: Some(gate.clone()), ..Waiver::of_step(step, reason, at) };
        self.waivers.push(gate_waiver);
        if let Some(state) = self.steps.get_mut(step) {
            state.gates_waived.insert(gate.clone());
        }
        self.queues.due.remove(step);
        self.set_phase(plan, step, Phase::Pending, at);
        // A group that was lost because the gate was closed is not lost any more.
        self.reopen_owners(plan, step, at);
        self.wake(plan, step, at);
    }
}
