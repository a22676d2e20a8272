//! The run as a whole: its start, rest, end, and the change of its plan.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    event::{About, Beginning, Pause, RunEnd, Skip},
    ids::{DecisionId, ProfileId, StageId, StepId, Timestamp},
    plan::Plan,
    state::{DecisionState, DecisionStatus, Due, Phase, Queues, RunPhase, ScopeId, State},
    step,
};

impl State {
    pub(super) fn run_started(
        &mut self,
        plan: &Plan,
        run: &str,
        request: &str,
        profile: &ProfileId,
        beginning: &Beginning,
        at: Timestamp,
    ) {
        run.clone_into(&mut self.run);
        request.clone_into(&mut self.request);
        self.profile = profile.clone();
        self.phase = RunPhase::Running;
        self.started_at = at;
        self.until.clone_from(&beginning.until);
        self.decisions_numbered = beginning.numbered;
        self.done_before.clone_from(&beginning.done);
        self.rounds_before.clone_from(&beginning.rounds);
        self.restarts.clone_from(&beginning.restarts);
        self.answers_before.clone_from(&beginning.answered);
        self.instantiate_top(plan);
        for (step, from) in &beginning.given {
            if let Some(own) = self.steps.get_mut(step) {
                own.given = Some(from.clone());
            }
        }
        for (step, held) in &beginning.rounds {
            // What is handed in is the last of them; otherwise the next one is to come.
            let is_there = beginning.given.contains_key(step) || beginning.done.contains_key(step);
            if let Some(own) = self.steps.get_mut(step).filter(|own| is_there && own.review.is_some()) {
                own.round = (*held).max(1);
            }
        }
    }

    pub(super) fn until_set(
        &mut self,
        plan: &Plan,
        stage: &StageId,
        skipped: &BTreeSet<StepId>,
        reason: &str,
        at: Timestamp,
    ) {
        self.until = Some(stage.clone());
        self.phase = RunPhase::Running;
        self.obligations_put_off.clear();
        for step in skipped {
            self.step_skipped(plan, step, Skip::Waiver, reason, at);
        }
    }

    pub(super) fn stop_requested(&mut self) {
        self.phase = RunPhase::Stopping;
    }

    pub(super) fn run_paused(&mut self, why: &Pause) {
        self.phase = RunPhase::Paused(why.clone());
    }

    pub(super) fn run_resumed(&mut self, substitutes: &BTreeMap<String, String>) {
        if matches!(self.phase, RunPhase::Paused(Pause::Until { .. })) {
            // It rests where it was to rest; whoever resumes it now wants the rest of it.
            self.until = None;
        }
        self.phase = RunPhase::Running;
        self.obligations_put_off.clear();
        self.substitutes.extend(substitutes.clone());
    }

    pub(super) fn run_ended(&mut self, plan: &Plan, how: RunEnd, reason: &str, at: Timestamp) {
        for step in self.queues.live.clone() {
            self.supersede(&step);
            self.set_phase(plan, &step, Phase::Failed { message: "the run was given up".to_owned() }, at);
        }
        self.close_all_decisions("the run has ended", at);
        self.queues.due.clear();
        self.queues.stale.clear();
        self.phase = RunPhase::Ended { how, reason: reason.to_owned() };
    }

    fn close_all_decisions(&mut self, reason: &str, at: Timestamp) {
        for id in self.queues.pending_decisions.clone() {
            self.close_decision(&id, DecisionStatus::Skipped, reason, at);
        }
    }

    pub(super) fn escalated(&mut self, plan: &Plan, to: &ProfileId) {
        let at = self.updated_at;
        for step in self.queues.live.clone() {
            self.supersede(&step);
        }
        self.clocks_stop(at);
        self.close_all_decisions("the run changed its profile", at);
        // Answers were given to questions of the other profile, even under the same name.
        let answered = |state: &&mut DecisionState| state.status == DecisionStatus::Answered;
        for state in self.decisions.values_mut().filter(answered) {
            state.status = DecisionStatus::Stale;
            state.reason = Some("the run changed its profile".to_owned());
        }
        for (id, state) in std::mem::take(&mut self.steps) {
            self.attempts_used.insert(id, state.attempts);
        }
        let superseded = std::mem::take(&mut self.queues.superseded);
        self.queues = Queues { superseded, ..Queues::default() };
        self.fan_outs.clear();
        self.set_aside.clear();
        self.artifacts.clear();
        self.restarts.clear();
        self.done_before.clear();
        self.referrals.clear();
        // Sub-runs of the other profile have budgets of their own, even under the same name.
        self.budgets.retain(|scope, _| scope.is_top());
        self.spent.retain(|scope, _| scope.is_top());
        self.change_budget(plan, to);
        // What was let go belongs to the other profile; the record of it stays.
        self.obligations_waived.clear();
        self.obligations_put_off.clear();
        self.profile = to.clone();
        self.instantiate_top(plan);
    }

    /// The plan changed on a person's order: what is known of steps that still exist stays, and
    /// everything derived is made anew.
    pub(super) fn plan_adopted(&mut self, plan: &Plan, digest: &str) {
        let at = self.updated_at;
        self.plan_digest = Some(digest.to_owned());
        // What an item's steps are is another question in another plan.
        self.set_aside.clear();
        self.clocks_stop(at);
        let superseded = std::mem::take(&mut self.queues.superseded);
        let old = std::mem::replace(&mut self.queues, Queues { superseded, ..Queues::default() });
        let graph = self.graph(plan);
        let top: BTreeSet<StepId> = graph.top().cloned().collect();
        let gone: Vec<StepId> =
            self.steps.keys().filter(|id| !self.still_exists(plan, &top, id)).cloned().collect();
        for id in gone {
            self.supersede(&id);
            self.remove_step(&id);
        }
        self.drop_orphaned_decisions(old.pending_decisions, at);
        let kept: Vec<StepId> = self.steps.keys().cloned().collect();
        for id in &kept {
            self.enter_again(plan, id, at);
        }
        for stage in graph.stages.iter().filter(|stage| stage.disabled.is_some()) {
            let open = |id: &&StepId| self.steps.get(*id).is_none_or(|state| !state.phase.is_satisfied());
            self.queues.disabled.extend(stage.steps.iter().filter(open).cloned());
        }
        let fresh: Vec<StepId> = top.into_iter().filter(|id| !self.steps.contains_key(id)).collect();
        self.instantiate(plan, &ScopeId::top(), None, None, &fresh, at);
        self.look_for_quiet_scopes();
        for id in self.steps.keys().cloned().collect::<Vec<_>>() {
            self.wake(plan, &id, at);
        }
    }

    /// Its definition is still there, in the same place, and so is everything around it.
    fn still_exists(&self, plan: &Plan, top: &BTreeSet<StepId>, id: &StepId) -> bool {
        let Some(state) = self.steps.get(id) else { return false };
        if self.definition(plan, id).is_none() {
            return false;
        }
        match &state.owner {
            None => top.contains(id),
            Some(owner) => self.still_exists(plan, top, owner),
        }
    }

    fn drop_orphaned_decisions(&mut self, pending: BTreeSet<DecisionId>, at: Timestamp) {
        for id in pending {
            let step = self.decisions.get(&id).map(|state| state.decision.step.clone());
            let of_run = self
                .decisions
                .get(&id)
                .is_some_and(|state| matches!(state.decision.about, About::Obligation { .. }));
            if of_run {
                // Asked again, should the new plan demand it too.
                self.close_decision(&id, DecisionStatus::Skipped, "the plan was replaced", at);
            } else if step.is_some_and(|step| self.steps.contains_key(&step)) {
                self.queues.pending_decisions.insert(id);
            } else {
                self.close_decision(&id, DecisionStatus::Skipped, "the plan no longer has its step", at);
            }
        }
    }

    /// Puts a step that outlived a change of the plan back into the queues of its phase.
    fn enter_again(&mut self, plan: &Plan, id: &StepId, at: Timestamp) {
        let unmet = self.unmet_needs(plan, id);
        let Some(state) = self.steps.get_mut(id) else { return };
        state.unmet = unmet;
        if matches!(state.phase, Phase::Gated | Phase::Ready) {
            state.phase = Phase::Pending;
        }
        let phase = state.phase.clone();
        let awaits = state.review.as_ref().map(|looped| looped.awaits.clone()).unwrap_or_default();
        let queued = state.review.as_ref().is_some_and(|looped| !looped.fix_queue.is_empty());
        let counts = self.queues.scopes.entry(state.scope.clone()).or_default();
        counts.unsatisfied += u32::from(!phase.is_satisfied() && phase != Phase::Dormant);
        counts.active += u32::from(phase.is_active());
        if phase == Phase::Fixing {
            if awaits.is_empty() && queued {
                self.queues.fix_next.insert(id.clone());
            }
            for step in awaits {
                self.queues.awaited_by.entry(step).or_default().insert(id.clone());
            }
        }
        self.enter(plan, id, &Phase::Dormant, &phase, at);
        if phase == Phase::Open && self.fan_outs.contains_key(id) {
            self.queues.fan_outs.insert(id.clone());
        }
        if matches!(phase, Phase::Verifying { .. }) && !step::conclude(plan, self, id, at).is_empty() {
            self.queues.due.insert(id.clone(), Due::Conclusion);
        }
    }

    fn look_for_quiet_scopes(&mut self) {
        let quiet: Vec<ScopeId> = self
            .queues
            .scopes
            .iter()
            .filter(|(scope, counts)| counts.active == 0 && self.can_end(scope))
            .map(|(scope, _)| scope.clone())
            .collect();
        self.queues.quiet.extend(quiet);
    }

    /// Is there something that would come to its end with this scope?
    fn can_end(&self, scope: &ScopeId) -> bool {
        if scope.is_top() || self.steps.get(scope.0.as_str()).is_some_and(|own| own.phase == Phase::Open) {
            return true;
        }
        let Some((fan, key)) = scope.0.rsplit_once('/') else { return false };
        let item = self.fan_outs.get(fan).and_then(|fan_out| fan_out.items.get(key));
        item.is_some_and(|item| item.opened && item.end.is_none())
    }
}
