//! What runs again: steps become open again, and what rested on them goes away.

use std::collections::BTreeSet;

use crate::{
    event::{About, BlockReason, Cause, Skip},
    gate,
    ids::{DecisionId, StageId, StepId, Timestamp},
    plan::{Hardness, Plan},
    state::{Due, Phase, State, Waiver},
};

/// How much of what was counted survives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counters {
    /// The same work is looked at again: limits go on counting.
    Kept,
    /// The work goes round once more.
    NextRound,
    /// Everything starts from 1.
    Fresh,
}

impl State {
    pub(super) fn invalidated(
        &mut self,
        plan: &Plan,
        steps: &BTreeSet<StepId>,
        cause: &Cause,
        at: Timestamp,
    ) {
        for step in steps {
            self.reset(plan, step, cause, at);
            self.reopen_owners(plan, step, at);
        }
        match cause {
            Cause::Fix { review, .. } => {
                for step in steps {
                    self.fix_sent(review, step);
                }
            }
            Cause::Changes { decision, .. } => {
                if let Some(step) = self.decisions.get(decision).map(|state| state.decision.step.clone()) {
                    self.queues.due.remove(&step);
                }
            }
            Cause::ReferredBack { from, .. } => {
                self.queues.due.remove(from);
            }
            Cause::Upstream { .. }
            | Cause::Restart { .. }
            | Cause::BadList { .. }
            | Cause::ListAdopted { .. }
            | Cause::Resumed
            | Cause::Stale { .. } => {}
        }
        self.wake_all(plan, steps, at);
    }

    pub(super) fn stage_restarted(
        &mut self,
        plan: &Plan,
        stage: &StageId,
        count: u32,
        steps: &BTreeSet<StepId>,
        reason: &str,
        at: Timestamp,
    ) {
        self.restarts.insert(stage.clone(), count);
        let cause = Cause::Restart { stage: stage.clone(), reason: reason.to_owned() };
        self.artifacts.retain(|_, artifact| !steps.iter().any(|step| is_at_or_below(&artifact.step, step)));
        self.referrals.retain(|(from, _), _| !steps.contains(from));
        for step in steps {
            self.reset(plan, step, &cause, at);
        }
        self.wake_all(plan, steps, at);
    }

    pub(super) fn obligation_opened(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let conditional = matches!(
            self.steps.get(step).map(|own| &own.phase),
            Some(Phase::Skipped { why: Skip::Condition, .. })
        );
        self.reset(plan, step, &Cause::Resumed, at);
        if conditional {
            // The person wants it although its condition does not hold: that would leave it out again.
            let conditions: Vec<_> = self
                .definition(plan, step)
                .map(|definition| definition.gates.iter().filter(|gate| gate.hardness == Hardness::Skip))
                .into_iter()
                .flatten()
                .map(|gate| gate.id.clone())
                .collect();
            if let Some(own) = self.steps.get_mut(step) {
                own.gates_waived.extend(conditions);
            }
        }
        self.wake(plan, step, at);
    }

    /// A person lets the run end without it.
    pub(super) fn obligation_waived(&mut self, plan: &Plan, name: &str, reason: &str, at: Timestamp) {
        self.obligations_waived.insert(name.to_owned());
        let about = |id: &DecisionId| self.decisions.get(id).map(|known| &known.decision.about);
        let answered = |due: &Due| {
            matches!(due, Due::Answer { decision, .. }
                if matches!(about(decision), Some(About::Obligation { name: other }) if other == name))
        };
        let asked: Vec<StepId> =
            self.queues.due.iter().filter(|(_, due)| answered(due)).map(|(step, _)| step.clone()).collect();
        for step in &asked {
            self.queues.due.remove(step);
        }
        let obligation = self.graph(plan).obligations.iter().find(|known| known.name == name);
        let step = obligation.map_or_else(|| StepId::new(name), gate::subject);
        let waiver = Waiver { obligation: Some(name.to_owned()), ..Waiver::of_step(&step, reason, at) };
        self.waivers.push(waiver);
    }

    /// Everything about this step is open again, for this cause. Does not wake it.
    pub(super) fn reset(&mut self, plan: &Plan, step: &StepId, cause: &Cause, at: Timestamp) {
        let Some(definition) = self.definition(plan, step) else { return };
        let is_review = definition.rounds().is_some();
        let counters = self.counters_after(cause, is_review);
        // Nobody calls for a dormant step just because something before it runs again.
        let sleeps = definition.dormant && matches!(cause, Cause::Upstream { .. } | Cause::Restart { .. });
        let due = self.queues.due.remove(step);
        if counters != Counters::Kept {
            self.done_before.remove(step);
        }
        self.supersede(step);
        self.close_decisions_of(step, "what it was about runs again", at);
        self.set_items_aside(plan, step, cause);
        self.remove_below(plan, step, at);
        self.set_phase(plan, step, if sleeps { Phase::Dormant } else { Phase::Pending }, at);
        self.forget(plan, step, counters, is_review);
        if let Some(state) = self.steps.get_mut(step) {
            let bad_list = matches!(cause, Cause::BadList { .. });
            state.bad_lists = if bad_list { state.bad_lists + 1 } else { 0 };
            // Whoever was sent to mend something and is resumed still has to mend it.
            let sent = matches!(
                state.cause.as_deref(),
                Some(
                    Cause::Fix { .. }
                        | Cause::Changes { .. }
                        | Cause::ReferredBack { .. }
                        | Cause::BadList { .. }
                )
            );
            if !(sent && *cause == Cause::Resumed) {
                state.cause = Some(Box::new(cause.clone()));
            }
        }
        // A person's wish to redo what is before this step outlives the step's own reset.
        if matches!(cause, Cause::Upstream { .. })
            && let Some(due @ (Due::Answer { .. } | Due::Referral { .. })) = due
        {
            self.queues.due.insert(step.clone(), due);
        }
        if sleeps {
            self.no_longer_awaited(plan, step, at);
        }
        if self.is_disabled(plan, step) {
            self.queues.disabled.insert(step.clone());
        }
    }

    fn counters_after(&self, cause: &Cause, is_review: bool) -> Counters {
        match cause {
            Cause::Resumed => Counters::Kept,
            // Two reviews whose fixers lie before both would reset each other for ever (J-11).
            Cause::Fix { .. } if is_review => Counters::Kept,
            Cause::Upstream { step } if is_review && self.is_about_to_be_sent(step) => Counters::Kept,
            Cause::Changes { .. } | Cause::ReferredBack { .. } if is_review => Counters::Fresh,
            Cause::Fix { .. }
            | Cause::Changes { .. }
            | Cause::ReferredBack { .. }
            | Cause::BadList { .. } => Counters::NextRound,
            Cause::Upstream { .. }
            | Cause::Restart { .. }
            | Cause::ListAdopted { .. }
            | Cause::Stale { .. } => Counters::Fresh,
        }
    }

    /// Is some review about to send this step round to mend something?
    fn is_about_to_be_sent(&self, step: &StepId) -> bool {
        self.queues.fix_next.iter().any(|review| {
            let looped = self.steps.get(review).and_then(|state| state.review.as_ref());
            looped.is_some_and(|looped| looped.fix_queue.contains(step))
        })
    }

    fn forget(&mut self, plan: &Plan, step: &StepId, counters: Counters, is_review: bool) {
        let unmet = self.unmet_needs(plan, step);
        let Some(state) = self.steps.get_mut(step) else { return };
        state.unmet = unmet;
        state.tries = 0;
        state.failed_before = 0;
        state.interruptions = 0;
        state.question_rounds = 0;
        state.quota_waits = 0;
        state.questions_put = 0;
        state.checks.clear();
        state.check_failure = None;
        state.commit = None;
        state.gates.clear();
        state.ended_at = None;
        state.report = None;
        state.inputs.clear();
        if let Some(looped) = &mut state.review {
            looped.exhausted_in = None;
        }
        match counters {
            Counters::Kept => {}
            Counters::NextRound => {
                state.given = None;
                state.round += 1;
                state.answers.clear();
                state.last_error = None;
            }
            Counters::Fresh => {
                state.given = None;
                state.visit += 1;
                state.round = 1;
                state.granted = 0;
                state.model = None;
                state.last_failure = None;
                state.last_error = None;
                state.answers.clear();
                state.gates_waived.clear();
                state.review = is_review.then(Box::default);
            }
        }
    }

    fn is_disabled(&self, plan: &Plan, step: &StepId) -> bool {
        let top = self.steps.get(step).is_some_and(|state| state.scope.is_top());
        let stage = self.definition(plan, step).and_then(|step| self.graph(plan).stage(&step.stage));
        top && stage.is_some_and(|stage| stage.disabled.is_some())
    }

    /// Something below a group that had come to its end runs again: so does the group.
    pub(super) fn reopen_owners(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get(step) else { return };
        let (Some(owner), item) = (state.owner.clone(), state.item.clone()) else { return };
        if let Some(key) = item {
            self.reopen_item(&owner, &key);
        }
        let ended = self.steps.get(&owner).is_some_and(|state| {
            matches!(state.phase, Phase::Blocked { .. } | Phase::Failed { .. } | Phase::Passed { .. })
        });
        if ended {
            self.set_phase(plan, &owner, Phase::Open, at);
            if self.fan_outs.contains_key(&owner) {
                self.queues.fan_outs.insert(owner.clone());
            }
            self.reopen_owners(plan, &owner, at);
        }
    }

    /// A person left a step out: the group that was lost because of it may not be lost any more.
    pub(super) fn reopen_lost_owner(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let owner = self.steps.get(step).and_then(|state| state.owner.clone());
        let lost = owner.and_then(|owner| self.steps.get(&owner)).is_some_and(|state| {
            matches!(state.phase, Phase::Open | Phase::Blocked { reason: BlockReason::ItemsFailed, .. })
        });
        if lost {
            self.reopen_owners(plan, step, at);
        }
    }
}

fn is_at_or_below(step: &StepId, owner: &StepId) -> bool {
    step.as_str().strip_prefix(owner.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
