//! Review loops: a round is opened, its fixers are sent, the review looks again.

use crate::{
    ids::{StepId, Timestamp},
    plan::Plan,
    state::{Due, Phase, State},
    verdict::Finding,
};

impl State {
    pub(super) fn round_opened(
        &mut self,
        plan: &Plan,
        review: &StepId,
        round: u32,
        fix: &[StepId],
        findings: &[Finding],
        at: Timestamp,
    ) {
        self.set_phase(plan, review, Phase::Fixing, at);
        let blocking: Vec<String> = findings.iter().map(fingerprint).collect();
        if let Some(state) = self.steps.get_mut(review) {
            state.round = round;
            state.tries = 0;
            state.interruptions = 0;
            state.report = None;
            state.inputs.clear();
            if let Some(looped) = &mut state.review {
                looped.fix_queue = fix.iter().cloned().collect();
                looped.demands = findings.to_vec();
                looped.exhausted_in = None;
                looped.stalled_rounds =
                    if looped.last_blocking == blocking { looped.stalled_rounds + 1 } else { 1 };
                looped.last_blocking = blocking;
            }
        }
        self.go_on_fixing(plan, review, at);
    }

    /// The next fixer can be sent, or everything is mended and the review looks again.
    fn go_on_fixing(&mut self, plan: &Plan, review: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get(review) else { return };
        let Some(looped) = &state.review else { return };
        if state.phase != Phase::Fixing || !looped.awaits.is_empty() {
            return;
        }
        if looped.fix_queue.is_empty() {
            self.set_phase(plan, review, Phase::Pending, at);
            self.wake(plan, review, at);
        } else {
            self.queues.fix_next.insert(review.clone());
        }
    }

    /// A fix step was sent round: the review waits for it.
    pub(super) fn fix_sent(&mut self, review: &StepId, step: &StepId) {
        let Some(state) = self.steps.get_mut(review) else { return };
        if state.phase != Phase::Fixing {
            return;
        }
        let Some(looped) = &mut state.review else { return };
        self.queues.fix_next.remove(review);
        looped.fix_queue.retain(|other| other != step);
        looped.awaits.insert(step.clone());
        self.queues.awaited_by.entry(step.clone()).or_default().insert(review.clone());
    }

    /// Nobody has to wait for this step any more: it has passed, or it is not wanted after all.
    pub(super) fn no_longer_awaited(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        for review in self.queues.awaited_by.remove(step).unwrap_or_default() {
            if let Some(looped) = self.steps.get_mut(&review).and_then(|state| state.review.as_mut()) {
                looped.awaits.remove(step);
            }
            self.go_on_fixing(plan, &review, at);
        }
    }

    /// The review no longer waits for fixers, for whatever reason.
    pub(super) fn leave_loop(&mut self, review: &StepId) {
        self.queues.fix_next.remove(review);
        let Some(looped) = self.steps.get_mut(review).and_then(|state| state.review.as_mut()) else { return };
        looped.fix_queue.clear();
        for step in std::mem::take(&mut looped.awaits) {
            if let Some(waiting) = self.queues.awaited_by.get_mut(&step) {
                waiting.remove(review);
                if waiting.is_empty() {
                    self.queues.awaited_by.remove(&step);
                }
            }
        }
    }

    pub(super) fn loop_exhausted(&mut self, review: &StepId, rounds: u32) {
        if let Some(looped) = self.steps.get_mut(review).and_then(|state| state.review.as_mut()) {
            looped.exhausted_in = Some(rounds);
        }
    }

    pub(super) fn limit_raised(&mut self, step: &StepId) {
        if let Some(state) = self.steps.get_mut(step) {
            state.granted += 1;
        }
        if let Some(Due::Answer { raised, .. }) = self.queues.due.get_mut(step) {
            *raised = true;
        }
    }

    pub(super) fn referred_back(&mut self, from: &StepId, to: &StepId, reason: &str) {
        let work = self
            .steps
            .get(from)
            .and_then(|state| state.report.as_ref())
            .and_then(|report| report.work.clone());
        let referral = self.referrals.entry((from.clone(), to.clone())).or_default();
        referral.count += 1;
        referral.last_work = work;
        self.queues.due.insert(from.clone(), Due::Referral { to: to.clone(), reason: reason.to_owned() });
    }
}

/// What makes two findings of two rounds the same one.
pub(crate) fn fingerprint(finding: &Finding) -> String {
    let squeezed = finding.problem.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    format!("{}|{squeezed}", finding.location.as_deref().unwrap_or(""))
}
