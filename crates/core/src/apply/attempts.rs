//! Attempts: their start, their end, their checks, what they leave behind.

use crate::{
    event::{BlockReason, Cause, FailureClass, Skip},
    fact::{AttemptReport, CheckFact, CommitFact, Conversation, Hint, LaunchFact, ProcessEnd, Usage},
    ids::{CheckId, StepId, Timestamp},
    outcome::Outcome,
    plan::{Kind, Plan, limits},
    state::{Artifact, Due, Failure, Judged, Judgement, Phase, Spent, State, StepState, Waiver},
    step,
    verdict::Verdict,
};

impl State {
    pub(super) fn attempt_started(&mut self, plan: &Plan, step: &StepId, attempt: u32, at: Timestamp) {
        let by_agent = self.is_by_agent(plan, step) && !self.is_given(step);
        if let Some(state) = self.steps.get_mut(step) {
            state.attempts = attempt;
            state.tries += 1;
            state.questions_put = 0;
            state.report = None;
            state.inputs.clear();
            state.checks.clear();
            state.flaky.clear();
            state.check_failure = None;
            state.commit = None;
        }
        if by_agent {
            self.each_spent(plan, step, |spent| spent.launches += 1);
        }
        self.set_phase(plan, step, Phase::Running { attempt }, at);
    }

    pub(super) fn attempt_launched(&mut self, step: &StepId, attempt: u32, fact: &LaunchFact) {
        if let Some(state) = self.steps.get_mut(step) {
            state.launched = Some(Box::new((attempt, fact.clone())));
        }
        if let Some(conversation) = &fact.conversation {
            self.conversed(step, conversation);
        }
    }

    pub(super) fn conversed(&mut self, step: &StepId, conversation: &Conversation) {
        if let Some(state) = self.steps.get_mut(step) {
            state.conversation = Some(Box::new((conversation.clone(), state.visit)));
        }
    }

    pub(super) fn progress_told(&mut self, step: &StepId, attempt: u32, hints: &[Hint]) {
        let Some(state) = self.steps.get_mut(step) else { return };
        state.hints.entry(attempt).or_default().extend_from_slice(hints);
        // A step that is tried for ever does not remember for ever.
        while state.hints.len() > limits::HINTED_ATTEMPTS_MAX {
            state.hints.pop_first();
        }
    }

    /// The work of this step; its next attempt is no launch.
    pub(super) fn step_given(&mut self, plan: &Plan, step: &StepId, from: &str, at: Timestamp) {
        self.reset(plan, step, &Cause::Resumed, at);
        self.reopen_owners(plan, step, at);
        if let Some(state) = self.steps.get_mut(step) {
            state.given = Some(from.to_owned());
        }
        self.wake(plan, step, at);
    }

    fn is_given(&self, step: &StepId) -> bool {
        self.steps.get(step).is_some_and(|state| state.given.is_some())
    }

    fn is_by_agent(&self, plan: &Plan, step: &StepId) -> bool {
        self.definition(plan, step).is_some_and(|definition| definition.agent().is_some())
    }

    pub(super) fn attempt_ended(
        &mut self,
        plan: &Plan,
        step: &StepId,
        attempt: u32,
        report: &AttemptReport,
        at: Timestamp,
    ) {
        let started = !matches!(report.ended, ProcessEnd::NotStarted { .. });
        self.count_cost(plan, step, report, started);
        self.quota_is_back(plan, step, report);
        self.changed.add(&report.changes, report.changes_left_out);
        let command = match self.definition(plan, step).map(|definition| &definition.kind) {
            Some(Kind::Check { check }) => Some(check.clone()),
            _ => None,
        };
        // Who touched what it may not is not heard, so that it cannot ask for ever.
        let asked =
            report.asks_something() && report.trespasses.is_empty() && !step::judges_notes(plan, self, step);
        if let Some(state) = self.steps.get_mut(step) {
            let interrupted = matches!(report.ended, ProcessEnd::Interrupted | ProcessEnd::Stopped);
            let quota = step::waits_for_quota(state, report, at);
            if !started || interrupted || asked || quota {
                state.tries = state.tries.saturating_sub(1);
            }
            if started && !interrupted && report.quota_until.is_none() {
                state.quota_waits = 0;
            }
            // Handed in once: if it is not good enough, somebody has to work.
            state.given = None;
            state.not_started += u32::from(!started);
            state.interruptions += u32::from(interrupted);
            state.question_rounds += u32::from(asked);
            if let Some(reply) = &report.reply {
                state.summary.clone_from(&reply.summary);
                state.word.clone_from(&reply.word);
            }
            if started && !interrupted {
                state.model.clone_from(&report.next_model);
            }
            if let Some(conversation) = &report.conversation {
                state.conversation = Some(Box::new((conversation.clone(), state.visit)));
            }
            if let (Some(check), Some(fact)) = (command, &report.check) {
                state.flaky.clear();
                // An attempt after one that failed is the same command once more, as much as a rerun is.
                let failures = fact.flaky + u64::from(state.failed_before);
                if failures > 0 {
                    state.flaky.insert(check.clone(), failures);
                }
                state.checks.insert(check, fact.ok);
            }
            state.report = Some(Box::new(report.clone()));
        }
        self.set_phase(plan, step, Phase::Verifying { attempt }, at);
        self.conclude_if_possible(plan, step, at);
    }

    /// An attempt that is good so far waits for the engine's own checks and for its commit.
    fn conclude_if_possible(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        if !step::conclude(plan, self, step, at).is_empty() {
            self.queues.due.insert(step.clone(), Due::Conclusion);
        }
    }

    /// An agent that ended its work by itself has quota again.
    fn quota_is_back(&mut self, plan: &Plan, step: &StepId, report: &AttemptReport) {
        if report.quota_until.is_none()
            && matches!(report.ended, ProcessEnd::Exited { code: 0 })
            && let Some(agent) = self.definition(plan, step).and_then(|definition| definition.agent())
        {
            self.quota_waited_ms.remove(agent);
        }
    }

    fn count_cost(&mut self, plan: &Plan, step: &StepId, report: &AttemptReport, started: bool) {
        if !self.is_by_agent(plan, step) || self.is_given(step) {
            return;
        }
        self.each_spent(plan, step, |spent| {
            if started {
                spent.add(report.usage.as_ref());
            } else {
                spent.launches = spent.launches.saturating_sub(1);
            }
        });
    }

    /// Everything that an attempt of this step is counted in: the run and the sub-runs around it, the step, its role.
    fn each_spent(&mut self, plan: &Plan, step: &StepId, mut count: impl FnMut(&mut Spent)) {
        for scope in self.budget_scopes(plan, step) {
            count(self.spent.entry(scope).or_default());
        }
        let role = self.definition(plan, step).and_then(|definition| definition.role().cloned());
        count(self.spent_by_role.entry(role).or_default());
        if let Some(state) = self.steps.get_mut(step) {
            count(&mut state.spent);
        }
    }

    /// Nobody wants the result any more, but what it cost was spent all the same (J-43).
    pub(super) fn result_ignored(&mut self, plan: &Plan, step: &StepId, attempt: u32, usage: Option<&Usage>) {
        self.results_ignored += 1;
        if !self.queues.superseded.remove(&(step.clone(), attempt)) {
            return;
        }
        let agentless = self.definition(plan, step).is_some_and(|definition| definition.agent().is_none());
        if usage.is_none() && agentless {
            return;
        }
        for scope in self.budget_scopes_of_id(step) {
            self.spent.entry(scope).or_default().add(usage);
        }
        let role = self.definition(plan, step).and_then(|definition| definition.role().cloned());
        self.spent_by_role.entry(role).or_default().add(usage);
        if let Some(state) = self.steps.get_mut(step) {
            state.spent.add(usage);
        }
    }

    pub(super) fn check_ended(
        &mut self,
        plan: &Plan,
        step: &StepId,
        check: &CheckId,
        fact: &CheckFact,
        at: Timestamp,
    ) {
        self.changed.add(&fact.changes, fact.changes_left_out);
        let Some(state) = self.steps.get_mut(step) else { return };
        state.checks.insert(check.clone(), fact.ok);
        if fact.flaky > 0 {
            state.flaky.insert(check.clone(), fact.flaky);
        }
        if !fact.ok {
            state.check_failure = Some(Box::new(fact.clone()));
        }
        self.conclude_if_possible(plan, step, at);
    }

    pub(super) fn commit_ended(&mut self, plan: &Plan, step: &StepId, fact: &CommitFact, at: Timestamp) {
        let Some(state) = self.steps.get_mut(step) else { return };
        state.commit = Some(Box::new(fact.clone()));
        self.conclude_if_possible(plan, step, at);
    }

    pub(super) fn retry_scheduled(
        &mut self,
        plan: &Plan,
        step: &StepId,
        class: FailureClass,
        message: &str,
        due: Timestamp,
        at: Timestamp,
    ) {
        let is_check =
            self.definition(plan, step).is_some_and(|known| matches!(known.kind, Kind::Check { .. }));
        if let Some(state) = self.steps.get_mut(step) {
            let failure = failure(state, class, message);
            if class != FailureClass::Interrupted {
                state.last_error = Some(Box::new(failure.clone()));
                state.failed_before += u32::from(is_check);
            }
            state.last_failure = Some(Box::new(failure));
            state.checks.clear();
            state.check_failure = None;
        }
        self.tries_again(plan, step, due, at);
    }

    /// The attempts are used up: what was wrong with the last one is known like that of any other.
    pub(super) fn note_last_failure(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let verified =
            self.steps.get(step).is_some_and(|state| matches!(state.phase, Phase::Verifying { .. }));
        let fault = if verified { step::fault_of(plan, self, step, at) } else { None };
        if let (Some(state), Some((class, message))) = (self.steps.get_mut(step), fault) {
            state.last_failure = Some(Box::new(failure(state, class, &message)));
        }
    }

    pub(super) fn quota_waiting(&mut self, plan: &Plan, step: &StepId, until: Timestamp, at: Timestamp) {
        if let Some(agent) = self.definition(plan, step).and_then(|definition| definition.agent().cloned()) {
            // Several steps wait for one quota at the same time: only what is added counts.
            let from = self.quota.get(&agent).copied().unwrap_or(at).max(at);
            *self.quota_waited_ms.entry(agent.clone()).or_default() += until.since(from);
            self.quota.insert(agent, until);
        }
        if let Some(state) = self.steps.get_mut(step) {
            state.quota_waits += 1;
        }
        self.tries_again(plan, step, until, at);
    }

    /// Not before `until`, and not before what it needs, should that have been taken back meanwhile.
    fn tries_again(&mut self, plan: &Plan, step: &StepId, until: Timestamp, at: Timestamp) {
        let waits = self.steps.get(step).is_some_and(|state| state.unmet > 0);
        self.set_phase(plan, step, if waits { Phase::Pending } else { Phase::Backoff { until } }, at);
        self.queues.due.remove(step);
    }

    pub(super) fn judged(&mut self, plan: &Plan, step: &StepId, round: u32, verdict: Verdict, at: Timestamp) {
        let Some(state) = self.steps.get(step) else { return };
        let attempt = state.attempts;
        let reply = state.report.as_ref().and_then(|report| report.reply.as_ref());
        let findings = reply.map(|reply| reply.findings.clone()).unwrap_or_default();
        let doubts = reply.is_some_and(|reply| reply.outcome == Outcome::NeedsInput);
        self.publish(step);
        let holder = self.panel_of(plan, step).unwrap_or_else(|| step.clone());
        let work = self.judged_work(plan, &holder);
        let summary = self.steps.get(step).map(|state| state.summary.clone()).unwrap_or_default();
        if let Some(looped) = self.steps.get_mut(&holder).and_then(|state| state.review.as_mut()) {
            looped.rounds_done = looped.rounds_done.max(round);
            let reviewer = step.clone();
            looped.history.push(Judged {
                reviewer,
                round,
                at,
                verdict,
                summary,
                findings: findings.clone(),
                work,
            });
            looped.verdicts.insert(step.clone(), Judgement { round, attempt, verdict, findings, doubts });
        }
    }

    /// What the judged steps, or their last fixers, said of their work.
    fn judged_work(&self, plan: &Plan, review: &StepId) -> Vec<String> {
        let Some(own) = self.steps.get(review) else { return Vec::new() };
        let Some(Kind::Review(loops)) = self.definition(plan, review).map(|definition| &definition.kind)
        else {
            return Vec::new();
        };
        let fixers = loops.fix.iter().flat_map(|route| &route.steps).filter(|_| own.round > 1);
        let of = loops.of.iter().filter(|_| own.round == 1);
        let mut said: Vec<String> = Vec::new();
        for template in fixers.chain(of) {
            let step = self.steps.get(&self.sibling(plan, own, template));
            let words = step
                .filter(|step| step.round == own.round || own.round == 1)
                .map(|step| step.summary.clone());
            said.extend(words.filter(|words| !words.is_empty() && !said.contains(words)));
        }
        said
    }

    pub(super) fn step_passed(&mut self, plan: &Plan, step: &StepId, notes: &[String], at: Timestamp) {
        self.publish(step);
        if let Some(state) = self.steps.get_mut(step) {
            state.last_failure = None;
            // Of an attempt that counts nothing else is asked any more; the journal has the rest.
            if let Some(report) = state.report.take() {
                state.inputs = report.inputs;
            }
        }
        self.set_phase(plan, step, Phase::Passed { notes: notes.to_vec() }, at);
    }

    pub(super) fn step_failed(&mut self, plan: &Plan, step: &StepId, message: &str, at: Timestamp) {
        self.note_last_failure(plan, step, at);
        self.set_phase(plan, step, Phase::Failed { message: message.to_owned() }, at);
    }

    pub(super) fn step_blocked(
        &mut self,
        plan: &Plan,
        step: &StepId,
        reason: BlockReason,
        message: &str,
        at: Timestamp,
    ) {
        self.note_last_failure(plan, step, at);
        self.close_decisions_of(step, message, at);
        self.set_phase(plan, step, Phase::Blocked { reason, message: message.to_owned() }, at);
    }

    pub(super) fn step_skipped(
        &mut self,
        plan: &Plan,
        step: &StepId,
        why: Skip,
        reason: &str,
        at: Timestamp,
    ) {
        self.queues.disabled.remove(step);
        self.done_before.remove(step);
        self.supersede(step);
        self.close_decisions_of(step, reason, at);
        self.set_aside.remove(step);
        self.remove_below(plan, step, at);
        self.set_phase(plan, step, Phase::Skipped { why, reason: reason.to_owned() }, at);
        if why == Skip::Waiver {
            self.waivers.push(Waiver::of_step(step, reason, at));
            self.reopen_lost_owner(plan, step, at);
        }
    }

    /// The last attempt counts: its artifacts are the published ones.
    pub(super) fn publish(&mut self, step: &StepId) {
        let Some(state) = self.steps.get_mut(step) else { return };
        let Some(report) = &state.report else { return };
        let attempt = state.attempts;
        state.accepted = Some(attempt);
        let facts = report.artifacts.clone();
        for fact in facts {
            let holds = fact.holds();
            let Some(hash) = fact.hash else { continue };
            let artifact = Artifact {
                step: step.clone(),
                attempt,
                declared: fact.declared,
                hash,
                adopted: false,
                holds,
            };
            self.artifacts.insert(fact.name.clone(), artifact);
            self.note_stale(&fact.name);
        }
    }

    /// A live attempt of this step is no longer wanted.
    pub(super) fn supersede(&mut self, step: &StepId) {
        if let Some(Phase::Running { attempt }) = self.steps.get(step).map(|state| &state.phase) {
            self.queues.superseded.insert((step.clone(), *attempt));
        }
    }
}

fn failure(state: &StepState, class: FailureClass, message: &str) -> Failure {
    let work = state.report.as_ref().and_then(|report| report.work.clone());
    let check = state.check_failure.as_deref().or(state.report.as_ref().and_then(|r| r.check.as_ref()));
    let output = check.filter(|fact| !fact.ok).map(|fact| fact.output.clone()).unwrap_or_default();
    Failure { class, message: message.to_owned(), work, output }
}
