//! The only writer of state. An event is never refused here: `decide` and `schedule` made it from
//! this very state, and replay feeds back what was stored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    event::{About, Cause, Decision, Event, ItemEnd, RunEnd, Skip},
    fact::{AttemptReport, Item, ProcessEnd},
    gate,
    ids::{ContentHash, DecisionId, StepId, Timestamp},
    outcome::Outcome,
    plan::{Graph, Kind, Plan, Rereview, Rerun},
    state::{
        Artifact, DecisionState, DecisionStatus, Failure, FanOutState, ItemState, Judgement, Lane, Phase,
        Queues, ReviewState, RunPhase, ScopeCount, ScopeId, State, StepState, Waiver,
    },
    verdict::{Finding, Verdict},
};

impl State {
    /// Makes one event true.
    pub fn apply(&mut self, plan: &Plan, event: &Event, at: Timestamp) {
        self.updated_at = at;
        match event {
            Event::RunStarted { run, request, profile, .. } => {
                self.run.clone_from(run);
                self.request.clone_from(request);
                self.profile = profile.clone();
                self.phase = RunPhase::Running;
                self.started_at = at;
                self.instantiate_top(plan);
            }
            Event::StopRequested => self.phase = RunPhase::Stopping,
            Event::RunPaused { why } => self.phase = RunPhase::Paused(why.clone()),
            Event::RunResumed { substitutes } => {
                self.phase = RunPhase::Running;
                self.substitutes.extend(substitutes.clone());
            }
            Event::RunEnded { how, reason } => self.end_run(plan, *how, reason, at),
            Event::PlanAdopted { digest } => {
                self.plan_digest = Some(digest.clone());
                self.adopt(plan);
            }
            Event::ProfileEscalated { to, .. } => self.escalate(plan, to.clone()),
            Event::AttemptStarted { step, attempt, .. } => self.attempt_started(plan, step, *attempt, at),
            Event::AttemptEnded { step, attempt, report } => {
                self.attempt_ended(plan, step, *attempt, report, at)
            }
            Event::ResultIgnored { step, attempt, .. } => {
                self.results_ignored += 1;
                self.queues.superseded.remove(&(step.clone(), *attempt));
            }
            Event::CheckEnded { step, check, fact, .. } => {
                if let Some(state) = self.steps.get_mut(step) {
                    state.checks.insert(check.clone(), fact.ok);
                }
            }
            Event::RetryScheduled { step, class, message, at: due } => {
                if let Some(state) = self.steps.get_mut(step) {
                    let work = state.report.as_ref().and_then(|report| report.work.clone());
                    state.last_failure = Some(Failure { class: *class, message: message.clone(), work });
                    state.checks.clear();
                }
                self.set_phase(plan, step, Phase::Backoff { until: *due }, at);
            }
            Event::QuotaWaiting { step, until } => {
                if let Some(agent) =
                    self.definition(plan, step).and_then(|definition| definition.agent().cloned())
                {
                    self.quota.insert(agent, *until);
                }
                self.set_phase(plan, step, Phase::Backoff { until: *until }, at);
            }
            Event::Judged { step, round, verdict } => self.judged(plan, step, *round, *verdict),
            Event::StepPassed { step, notes } => {
                self.publish(step);
                self.set_phase(plan, step, Phase::Passed { notes: notes.clone() }, at);
            }
            Event::StepFailed { step, message } => {
                self.set_phase(plan, step, Phase::Failed { message: message.clone() }, at);
            }
            Event::StepBlocked { step, reason, message } => {
                self.set_phase(plan, step, Phase::Blocked { reason: *reason, message: message.clone() }, at);
            }
            Event::StepSkipped { step, why, reason } => {
                self.queues.disabled.remove(step);
                if *why == Skip::Waiver {
                    self.waivers.push(Waiver { step: step.clone(), reason: reason.clone(), at });
                }
                self.supersede(step);
                self.set_phase(plan, step, Phase::Skipped { why: *why, reason: reason.clone() }, at);
            }
            Event::Invalidated { steps, cause } => {
                for step in steps {
                    self.reset(plan, step, cause, at);
                    self.reopen_owners(plan, step, at);
                }
                self.wake_all(plan, steps, at);
            }
            Event::GateEvaluated { step, gate, value } => {
                if let Some(state) = self.steps.get_mut(step) {
                    state.gates.insert(gate.clone(), value.clone());
                }
                self.wake(plan, step, at);
            }
            Event::GateWaived { step, gate, reason } => {
                self.waivers.push(Waiver { step: step.clone(), reason: reason.clone(), at });
                if let Some(state) = self.steps.get_mut(step) {
                    state.gates_waived.insert(gate.clone());
                }
                self.set_phase(plan, step, Phase::Pending, at);
                self.wake(plan, step, at);
            }
            Event::RoundOpened { review, round, fix, findings } => {
                self.round_opened(plan, review, *round, fix, findings, at);
            }
            Event::LoopExhausted { .. } => {}
            Event::LimitRaised { step } => {
                if let Some(state) = self.steps.get_mut(step) {
                    state.granted += 1;
                }
            }
            Event::FanOutStarted { step, hash, items } => self.fan_out_started(plan, step, hash, items, at),
            Event::ItemOpened { step, key } => self.item_opened(plan, step, key, at),
            Event::ItemEnded { step, key, end } => self.item_ended(step, key, end),
            Event::GroupOpened { step } => self.group_opened(plan, step, at),
            Event::DecisionOpened { decision } => self.decision_opened(plan, decision, at),
            Event::DecisionBound { id, bound } => {
                if let Some(state) = self.decisions.get_mut(id) {
                    state.decision.bound.extend(bound.clone());
                }
            }
            Event::DecisionAnswered { id, answer, comment, route, .. } => {
                if let Some(state) = self.decisions.get_mut(id) {
                    state.status = DecisionStatus::Answered;
                    state.answer = Some(answer.clone());
                    state.comment.clone_from(comment);
                    state.route.clone_from(route);
                    state.resolved_at = Some(at);
                    state.history.push((answer.clone(), comment.clone(), at));
                }
                self.decision_resolved(plan, id, Some(answer), at);
            }
            Event::DecisionCancelled { id, reason } => {
                self.close_decision(id, DecisionStatus::Cancelled, reason, at);
                self.decision_resolved(plan, id, None, at);
            }
            Event::DecisionSkipped { id, reason } => {
                self.close_decision(id, DecisionStatus::Skipped, reason, at);
            }
            Event::DecisionStaled { id, changed } => {
                let reason = changed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                self.close_decision(id, DecisionStatus::Stale, &reason, at);
                if let Some(step) = self.decisions.get(id).map(|state| state.decision.step.clone()) {
                    self.requeue(plan, &step, at);
                }
            }
            Event::StageRestarted { stage, count, steps, reason } => {
                self.restarts.insert(stage.clone(), *count);
                let cause = Cause::Restart { stage: stage.clone(), reason: reason.clone() };
                for step in steps {
                    self.artifacts
                        .retain(|_, artifact| artifact.step != *step && !is_below(&artifact.step, step));
                    self.reset(plan, step, &cause, at);
                }
                self.wake_all(plan, steps, at);
            }
            Event::ReferredBack { from, to, .. } => {
                let work = self
                    .steps
                    .get(from)
                    .and_then(|state| state.report.as_ref())
                    .and_then(|report| report.work.clone());
                let referral = self.referrals.entry((from.clone(), to.clone())).or_default();
                referral.count += 1;
                referral.last_work = work;
            }
            Event::BudgetRaised { raise } => self.raise_budget(raise),
            Event::ObligationOpened { step, .. } => {
                self.reset(plan, step, &Cause::Resumed, at);
                self.wake(plan, step, at);
            }
            Event::ArtifactAdopted { name, hash } => {
                if let Some(artifact) = self.artifacts.get_mut(name) {
                    artifact.hash = hash.clone();
                    artifact.adopted = true;
                }
            }
            Event::ArtifactRestored { .. } => {}
        }
    }

    fn instantiate_top(&mut self, plan: &Plan) {
        let graph = self.graph(plan);
        let templates: Vec<StepId> = graph.top().cloned().collect();
        for stage in graph.stages.iter().filter(|stage| stage.disabled.is_some()) {
            self.queues.disabled.extend(stage.steps.iter().cloned());
        }
        self.instantiate(plan, &ScopeId::top(), None, None, &templates, self.started_at);
    }

    /// Creates the steps of a scope and wakes those that need nothing.
    fn instantiate(
        &mut self,
        plan: &Plan,
        scope: &ScopeId,
        owner: Option<&StepId>,
        item: Option<&str>,
        templates: &[StepId],
        at: Timestamp,
    ) {
        let graph = self.graph(plan);
        let mut created = Vec::with_capacity(templates.len());
        for template in templates {
            let Some(definition) = graph.steps.get(template) else { continue };
            let id = if scope.is_top() { template.clone() } else { scope.child(&definition.name) };
            let phase = if definition.dormant { Phase::Dormant } else { Phase::Pending };
            let state = StepState {
                template: template.clone(),
                scope: scope.clone(),
                owner: owner.cloned(),
                item: item.map(str::to_owned),
                phase,
                unmet: definition.needs.len() as u32,
                round: 1,
                visit: 1,
                attempts: 0,
                tries: 0,
                interruptions: 0,
                granted: 0,
                question_rounds: 0,
                cause: None,
                last_failure: None,
                report: None,
                accepted: None,
                summary: String::new(),
                checks: BTreeMap::new(),
                gates: BTreeMap::new(),
                gates_waived: BTreeSet::new(),
                review: matches!(definition.kind, Kind::Review(_)).then(ReviewState::default),
                answers: Vec::new(),
                started_at: None,
                ended_at: None,
            };
            let counts = self.queues.scopes.entry(scope.clone()).or_default();
            counts.unsatisfied += u32::from(!definition.dormant);
            self.steps.insert(id.clone(), state);
            created.push(id);
        }
        if self.queues.scopes.get(scope).is_none_or(|counts| counts.active == 0) {
            self.queues.scopes.entry(scope.clone()).or_default();
            self.queues.quiet.insert(scope.clone());
        }
        for id in created {
            self.wake(plan, &id, at);
        }
    }

    /// A pending step without unmet needs goes on to its gates, and through them if they hold.
    fn wake(&mut self, plan: &Plan, id: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get(id) else { return };
        if !matches!(state.phase, Phase::Pending | Phase::Gated)
            || state.unmet > 0
            || self.queues.disabled.contains(id)
        {
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

    fn wake_all(&mut self, plan: &Plan, steps: &BTreeSet<StepId>, at: Timestamp) {
        for step in steps {
            self.wake(plan, step, at);
        }
    }

    /// The one place where a phase changes; keeps everything that is derived from phases.
    fn set_phase(&mut self, plan: &Plan, id: &StepId, phase: Phase, at: Timestamp) {
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
    fn leave(&mut self, plan: &Plan, id: &StepId, old: &Phase, new: &Phase, at: Timestamp) {
        match old {
            Phase::Ready => {
                self.queues.openable.remove(id);
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
                    if self.queues.live.is_empty() {
                        self.rest(at);
                    }
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
                self.queues.fan_outs.remove(id);
                self.queues.quiet.remove(&ScopeId(id.as_str().to_owned()));
            }
            Phase::Dormant
            | Phase::Pending
            | Phase::Waiting
            | Phase::Fixing
            | Phase::Passed { .. }
            | Phase::Skipped { .. } => {}
        }
    }

    /// Puts a step into the queues of its new phase.
    fn enter(&mut self, plan: &Plan, id: &StepId, old: &Phase, new: &Phase, at: Timestamp) {
        match new {
            Phase::Ready => self.enqueue(plan, id),
            Phase::Running { .. } | Phase::Verifying { .. } => {
                if !matches!(old, Phase::Running { .. } | Phase::Verifying { .. }) {
                    if self.queues.live.is_empty() {
                        self.spent.entry(ScopeId::top()).or_default().active_since = Some(at);
                    }
                    self.queues.live.insert(id.clone());
                    self.count_pools(plan, id, true);
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

    fn enqueue(&mut self, plan: &Plan, id: &StepId) {
        let Some(definition) = self.definition(plan, id) else { return };
        match &definition.kind {
            Kind::FanOut(_) => {
                self.queues.listing.insert(id.clone());
            }
            Kind::Decision(_) | Kind::SubRun { .. } => {
                self.queues.openable.insert(id.clone());
            }
            Kind::Review(review) if review.reviewers.len() > 1 => {
                self.queues.openable.insert(id.clone());
            }
            Kind::Agent { .. } | Kind::Review(_) | Kind::Check { .. } | Kind::Merge { .. } => {
                if let Some(lane) = self.lane(plan, id) {
                    self.queues.lanes.entry(lane).or_default().push_back(id.clone());
                }
            }
        }
    }

    pub(crate) fn lane(&self, plan: &Plan, id: &StepId) -> Option<Lane> {
        let definition = self.definition(plan, id)?;
        let group = self.steps.get(id)?.owner.clone();
        Some(Lane { group, agent: definition.agent().cloned(), pools: definition.pools.clone() })
    }

    fn count_pools(&mut self, plan: &Plan, id: &StepId, more: bool) {
        let Some(definition) = self.definition(plan, id) else { return };
        for pool in &definition.pools {
            let used = self.queues.pool_use.entry(pool.clone()).or_default();
            *used = if more { *used + 1 } else { used.saturating_sub(1) };
        }
    }

    /// The last live attempt is gone: the wall clock of the budget stands still.
    fn rest(&mut self, at: Timestamp) {
        let spent = self.spent.entry(ScopeId::top()).or_default();
        if let Some(since) = spent.active_since.take() {
            spent.active_ms += at.since(since);
        }
    }

    fn tell_dependents(&mut self, plan: &Plan, id: &StepId, satisfied: bool, at: Timestamp) {
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
                if matches!(other.phase, Phase::Gated | Phase::Ready) {
                    self.set_phase(plan, &dependent, Phase::Pending, at);
                }
            }
        }
        if satisfied {
            for review in self.queues.awaited_by.remove(id).unwrap_or_default() {
                self.fix_passed(plan, &review, id, at);
            }
        }
    }

    fn fix_passed(&mut self, plan: &Plan, review: &StepId, fixed: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get_mut(review) else { return };
        let Some(looped) = &mut state.review else { return };
        looped.awaits.remove(fixed);
        if state.phase != Phase::Fixing {
            return;
        }
        if !looped.fix_queue.is_empty() {
            self.queues.fix_next.insert(review.clone());
        } else if looped.awaits.is_empty() {
            self.set_phase(plan, review, Phase::Pending, at);
            self.wake(plan, review, at);
        }
    }

    fn attempt_started(&mut self, plan: &Plan, step: &StepId, attempt: u32, at: Timestamp) {
        let by_agent = self.definition(plan, step).is_some_and(|definition| definition.agent().is_some());
        if let Some(state) = self.steps.get_mut(step) {
            state.attempts = attempt;
            state.tries += 1;
            state.report = None;
            state.checks.clear();
        }
        if by_agent {
            for scope in self.budget_scopes(plan, step) {
                self.spent.entry(scope).or_default().launches += 1;
            }
        }
        self.set_phase(plan, step, Phase::Running { attempt }, at);
    }

    fn attempt_ended(
        &mut self,
        plan: &Plan,
        step: &StepId,
        attempt: u32,
        report: &AttemptReport,
        at: Timestamp,
    ) {
        let by_agent = self.definition(plan, step).is_some_and(|definition| definition.agent().is_some());
        let started = !matches!(report.ended, ProcessEnd::NotStarted { .. });
        for scope in self.budget_scopes(plan, step) {
            let spent = self.spent.entry(scope).or_default();
            if !started {
                spent.launches = spent.launches.saturating_sub(u64::from(by_agent));
            } else if by_agent {
                let usage = report.usage.clone().unwrap_or_default();
                spent.tokens += usage.tokens.unwrap_or(0);
                spent.micro_usd += usage.micro_usd.unwrap_or(0);
                spent.unpriced += u64::from(usage.micro_usd.is_none());
            }
        }
        if let Some(state) = self.steps.get_mut(step) {
            let asked = report.reply.as_ref().is_some_and(|reply| reply.outcome == Outcome::NeedsInput);
            let interrupted = matches!(report.ended, ProcessEnd::Interrupted | ProcessEnd::Stopped);
            if !started {
                state.attempts = state.attempts.saturating_sub(1);
            }
            if !started || interrupted || asked || report.quota_until.is_some() {
                state.tries = state.tries.saturating_sub(1);
            }
            state.interruptions += u32::from(interrupted);
            state.question_rounds += u32::from(asked);
            if let Some(reply) = &report.reply {
                state.summary.clone_from(&reply.summary);
            }
            state.report = Some(Box::new(report.clone()));
        }
        self.set_phase(plan, step, Phase::Verifying { attempt }, at);
    }

    fn judged(&mut self, plan: &Plan, step: &StepId, round: u32, verdict: Verdict) {
        let findings = self
            .steps
            .get(step)
            .and_then(|state| state.report.as_ref())
            .and_then(|report| report.reply.as_ref())
            .map(|reply| reply.findings.clone())
            .unwrap_or_default();
        self.publish(step);
        let holder = self.panel_of(plan, step).unwrap_or_else(|| step.clone());
        if let Some(looped) = self.steps.get_mut(&holder).and_then(|state| state.review.as_mut()) {
            looped.rounds_done = looped.rounds_done.max(round);
            looped.verdicts.insert(step.clone(), Judgement { round, verdict, findings });
        }
    }

    /// The last attempt counts: its artifacts are the published ones.
    fn publish(&mut self, step: &StepId) {
        let Some(state) = self.steps.get_mut(step) else { return };
        let Some(report) = &state.report else { return };
        let attempt = state.attempts;
        state.accepted = Some(attempt);
        for fact in &report.artifacts {
            let Some(hash) = &fact.hash else { continue };
            let artifact = Artifact {
                step: step.clone(),
                attempt,
                declared: fact.declared.clone(),
                hash: hash.clone(),
                adopted: false,
            };
            self.artifacts.insert(fact.name.clone(), artifact);
        }
    }

    /// Everything about this step is open again, for this cause. Does not wake it.
    fn reset(&mut self, plan: &Plan, step: &StepId, cause: &Cause, at: Timestamp) {
        self.supersede(step);
        self.remove_below(plan, step, at);
        self.set_phase(plan, step, Phase::Pending, at);
        let unmet = self.unmet_needs(plan, step);
        let is_review =
            self.definition(plan, step).is_some_and(|definition| matches!(definition.kind, Kind::Review(_)));
        let Some(state) = self.steps.get_mut(step) else { return };
        state.unmet = unmet;
        state.tries = 0;
        state.interruptions = 0;
        state.question_rounds = 0;
        state.checks.clear();
        state.gates.clear();
        state.ended_at = None;
        state.report = None;
        match cause {
            Cause::Fix { .. }
            | Cause::Changes { .. }
            | Cause::ReferredBack { .. }
            | Cause::BadList { .. } => {
                state.round += 1;
                state.answers.clear();
            }
            Cause::Upstream { .. } | Cause::Restart { .. } | Cause::Stale { .. } => {
                state.visit += 1;
                state.round = 1;
                state.granted = 0;
                state.last_failure = None;
                state.answers.clear();
                state.gates_waived.clear();
                state.review = is_review.then(ReviewState::default);
            }
            Cause::Resumed => {}
        }
        state.cause = Some(cause.clone());
        if let Cause::Fix { review, .. } = cause {
            self.fix_sent(review, step);
        }
        if is_review {
            // Whatever it was waiting for belongs to a loop that no longer exists.
            self.queues.fix_next.remove(step);
            for waiting in self.queues.awaited_by.values_mut() {
                waiting.remove(step);
            }
        }
    }

    /// A fix step was sent round: it is no longer in the queue of its review.
    fn fix_sent(&mut self, review: &StepId, step: &StepId) {
        self.queues.fix_next.remove(review);
        if let Some(looped) = self.steps.get_mut(review).and_then(|state| state.review.as_mut()) {
            looped.fix_queue.retain(|other| other != step);
        }
        self.queues.awaited_by.entry(step.clone()).or_default().insert(review.clone());
    }

    /// Something below a group that had come to its end runs again: so does the group.
    fn reopen_owners(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let Some(state) = self.steps.get(step) else { return };
        let (Some(owner), item) = (state.owner.clone(), state.item.clone()) else { return };
        if let (Some(fan_out), Some(key)) = (self.fan_outs.get_mut(&owner), item) {
            let reopen: Vec<String> = fan_out
                .items
                .iter()
                .filter(|(other, item)| {
                    matches!(item.end, Some(ItemEnd::Blocked { .. }))
                        || (**other == key && item.end.is_some())
                })
                .map(|(other, _)| other.clone())
                .collect();
            for other in reopen {
                let Some(item) = fan_out.items.get_mut(&other) else { continue };
                item.end = None;
                fan_out.ended = fan_out.ended.saturating_sub(1);
                fan_out.open += u32::from(item.opened);
                *fan_out.wave_left.entry(item.wave).or_insert(0) += 1;
            }
        }
        if let Some(phase) = self.steps.get(&owner).map(|state| state.phase.clone())
            && !matches!(phase, Phase::Open | Phase::Dormant)
        {
            self.set_phase(plan, &owner, Phase::Open, at);
            if self.fan_outs.contains_key(&owner) {
                self.queues.fan_outs.insert(owner.clone());
            }
            self.reopen_owners(plan, &owner, at);
        }
    }

    fn unmet_needs(&self, plan: &Plan, step: &StepId) -> u32 {
        let Some(state) = self.steps.get(step) else { return 0 };
        let Some(definition) = self.definition(plan, step) else { return 0 };
        definition
            .needs
            .iter()
            .map(|edge| self.sibling(plan, state, &edge.from))
            .filter(|need| !self.steps.get(need).is_some_and(|other| other.phase.is_satisfied()))
            .count() as u32
    }

    /// A live attempt of this step is no longer wanted.
    fn supersede(&mut self, step: &StepId) {
        if let Some(StepState { phase: Phase::Running { attempt }, .. }) = self.steps.get(step) {
            self.queues.superseded.insert((step.clone(), *attempt));
        }
    }

    /// Takes away what a group step had opened below it. The journal keeps it.
    fn remove_below(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let prefix = format!("{step}/");
        let mut owners = BTreeSet::from([step.clone()]);
        let mut gone = Vec::new();
        for (id, state) in self.steps.range(StepId::new(&prefix)..) {
            if !id.as_str().starts_with(&prefix) {
                break;
            }
            if state.owner.as_ref().is_some_and(|owner| owners.contains(owner)) {
                owners.insert(id.clone());
                gone.push(id.clone());
            }
        }
        for id in &gone {
            self.supersede(id);
            self.set_phase(plan, id, Phase::Dormant, at);
        }
        for id in &gone {
            if let Some(state) = self.steps.remove(id) {
                self.queues.scopes.remove(&state.scope);
                self.queues.quiet.remove(&state.scope);
            }
        }
        for owner in &owners {
            self.fan_outs.remove(owner);
        }
        let orphans: Vec<DecisionId> = self
            .queues
            .pending_decisions
            .iter()
            .filter(|id| self.decisions.get(*id).is_some_and(|state| gone.contains(&state.decision.step)))
            .cloned()
            .collect();
        for id in orphans {
            self.close_decision(&id, DecisionStatus::Skipped, "what it was about runs again", at);
        }
    }

    fn round_opened(
        &mut self,
        plan: &Plan,
        review: &StepId,
        round: u32,
        fix: &[StepId],
        findings: &[Finding],
        at: Timestamp,
    ) {
        let in_order = self.definition(plan, review).is_some_and(
            |definition| matches!(&definition.kind, Kind::Review(loops) if loops.rerun == Rerun::Listed),
        );
        let blocking: Vec<String> = findings.iter().map(fingerprint).collect();
        if let Some(state) = self.steps.get_mut(review) {
            state.round = round;
            state.tries = 0;
            state.interruptions = 0;
            state.report = None;
            if let Some(looped) = &mut state.review {
                looped.awaits = fix.iter().cloned().collect();
                looped.fix_queue = if in_order { fix.iter().cloned().collect() } else { VecDeque::new() };
                looped.demands = findings.to_vec();
                looped.stalled_rounds =
                    if looped.last_blocking == blocking { looped.stalled_rounds + 1 } else { 1 };
                looped.last_blocking = blocking;
            }
        }
        for step in fix {
            self.queues.awaited_by.entry(step.clone()).or_default().insert(review.clone());
        }
        self.set_phase(plan, review, Phase::Fixing, at);
        if fix.is_empty() {
            self.set_phase(plan, review, Phase::Pending, at);
            self.wake(plan, review, at);
        } else if in_order {
            self.queues.fix_next.insert(review.clone());
        }
    }

    fn fan_out_started(
        &mut self,
        plan: &Plan,
        step: &StepId,
        hash: &ContentHash,
        items: &[Item],
        at: Timestamp,
    ) {
        let waves = self
            .definition(plan, step)
            .is_some_and(|definition| matches!(&definition.kind, Kind::FanOut(fan_out) if fan_out.waves));
        let depth = if waves { wave_numbers(items) } else { BTreeMap::new() };
        let mut states: BTreeMap<String, ItemState> = items
            .iter()
            .map(|item| {
                let state = ItemState {
                    needs: item.needs.clone(),
                    dependents: Vec::new(),
                    unmet: item.needs.len() as u32,
                    wave: depth.get(&item.key).copied().unwrap_or(0),
                    opened: false,
                    end: None,
                };
                (item.key.clone(), state)
            })
            .collect();
        for item in items {
            for need in &item.needs {
                if let Some(other) = states.get_mut(need) {
                    other.dependents.push(item.key.clone());
                }
            }
        }
        let order: Vec<String> = items.iter().map(|item| item.key.clone()).collect();
        let mut ready: VecDeque<String> =
            items.iter().filter(|item| item.needs.is_empty()).map(|item| item.key.clone()).collect();
        if waves {
            ready.make_contiguous().sort_by_key(|key| states.get(key).map_or(0, |item| item.wave));
        }
        let mut wave_left = BTreeMap::new();
        for item in states.values() {
            *wave_left.entry(item.wave).or_insert(0) += 1;
        }
        let hash = hash.clone();
        let fan_out = FanOutState {
            hash,
            items: states,
            order,
            ready,
            doomed: VecDeque::new(),
            wave_left,
            open: 0,
            ended: 0,
        };
        self.fan_outs.insert(step.clone(), fan_out);
        self.set_phase(plan, step, Phase::Open, at);
        self.queues.fan_outs.insert(step.clone());
    }

    fn item_opened(&mut self, plan: &Plan, step: &StepId, key: &str, at: Timestamp) {
        let Some(fan_out) = self.fan_outs.get_mut(step) else { return };
        // The scheduler opens the first one; anything else would be a journal of another program.
        if fan_out.ready.front().is_some_and(|first| first == key) {
            fan_out.ready.pop_front();
        } else {
            fan_out.ready.retain(|other| other != key);
        }
        fan_out.open += 1;
        if let Some(item) = fan_out.items.get_mut(key) {
            item.opened = true;
        }
        let body =
            self.definition(plan, step).map(|definition| definition.body().to_vec()).unwrap_or_default();
        let scope = ScopeId(format!("{step}/{key}"));
        self.instantiate(plan, &scope, Some(step), Some(key), &body, at);
    }

    fn item_ended(&mut self, step: &StepId, key: &str, end: &ItemEnd) {
        let Some(fan_out) = self.fan_outs.get_mut(step) else { return };
        let Some(item) = fan_out.items.get_mut(key) else { return };
        if item.opened {
            fan_out.open = fan_out.open.saturating_sub(1);
        }
        fan_out.ended += 1;
        item.end = Some(end.clone());
        if let Some(left) = fan_out.wave_left.get_mut(&item.wave) {
            *left = left.saturating_sub(1);
        }
        for dependent in item.dependents.clone() {
            let Some(other) = fan_out.items.get_mut(&dependent) else { continue };
            if *end != ItemEnd::Passed {
                fan_out.doomed.push_back(dependent);
                continue;
            }
            other.unmet = other.unmet.saturating_sub(1);
            if other.unmet == 0 && other.end.is_none() {
                fan_out.ready.push_back(dependent);
            }
        }
        fan_out.doomed.retain(|other| other != key);
        self.queues.quiet.remove(&ScopeId(format!("{step}/{key}")));
        self.queues.fan_outs.insert(step.clone());
    }

    /// A sub-run, or a panel of reviewers for its first or next round.
    fn group_opened(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let Some(definition) = self.definition(plan, step) else { return };
        let scope = ScopeId(step.as_str().to_owned());
        self.set_phase(plan, step, Phase::Open, at);
        match &definition.kind {
            Kind::SubRun { body, budget } => {
                self.budgets.entry(scope.clone()).or_insert_with(|| budget.clone());
                self.instantiate(plan, &scope, Some(step), None, body, at);
            }
            Kind::Review(review) => {
                let members: Vec<StepId> =
                    review.reviewers.iter().map(|reviewer| reviewer.step.clone()).collect();
                let round = self.steps.get(step).map_or(1, |state| state.round);
                let failed_only = review.rereview == Rereview::Failed && !self.full_pass_is_due(plan, step);
                let existing: Vec<StepId> = members
                    .iter()
                    .filter_map(|member| self.graph(plan).steps.get(member))
                    .map(|member| scope.child(&member.name))
                    .collect();
                if existing.iter().all(|id| !self.steps.contains_key(id)) {
                    self.instantiate(plan, &scope, Some(step), None, &members, at);
                } else {
                    let again: Vec<StepId> = existing
                        .into_iter()
                        .filter(|id| !failed_only || self.last_verdict(step, id) >= Some(Verdict::Revise))
                        .collect();
                    for id in &again {
                        self.reset(plan, id, &Cause::Resumed, at);
                    }
                    for id in &again {
                        if let Some(state) = self.steps.get_mut(id) {
                            state.round = round;
                        }
                        self.wake(plan, id, at);
                    }
                }
                for member in self.steps.values_mut().filter(|state| state.owner.as_ref() == Some(step)) {
                    member.round = member.round.max(1);
                }
            }
            Kind::Agent { .. }
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. } => {}
        }
    }

    pub(crate) fn last_verdict(&self, review: &StepId, reviewer: &StepId) -> Option<Verdict> {
        let looped = self.steps.get(review)?.review.as_ref()?;
        looped.verdicts.get(reviewer).map(|judgement| judgement.verdict)
    }

    fn decision_opened(&mut self, plan: &Plan, decision: &Decision, at: Timestamp) {
        if decision.about != About::Step {
            self.decisions_numbered += 1;
        }
        let history = self.decisions.get(&decision.id).map(|state| state.history.clone()).unwrap_or_default();
        let state = DecisionState {
            decision: decision.clone(),
            status: DecisionStatus::Pending,
            answer: None,
            comment: None,
            route: None,
            reason: None,
            opened_at: at,
            resolved_at: None,
            history,
        };
        self.decisions.insert(decision.id.clone(), state);
        self.queues.pending_decisions.insert(decision.id.clone());
        self.set_phase(plan, &decision.step, Phase::Waiting, at);
    }

    fn close_decision(&mut self, id: &DecisionId, status: DecisionStatus, reason: &str, at: Timestamp) {
        self.queues.pending_decisions.remove(id);
        if let Some(state) = self.decisions.get_mut(id) {
            state.status = status;
            state.reason = Some(reason.to_owned());
            state.resolved_at = Some(at);
        }
    }

    /// What an answer means for the step beyond the events that follow it.
    fn decision_resolved(&mut self, plan: &Plan, id: &DecisionId, answer: Option<&str>, at: Timestamp) {
        self.queues.pending_decisions.remove(id);
        let Some(resolved) = self.decisions.get(id) else { return };
        let step = resolved.decision.step.clone();
        match resolved.decision.about.clone() {
            About::Question { asked, .. } => {
                if let Some(state) = self.steps.get_mut(&step) {
                    state.answers.push((asked, answer.unwrap_or("(no response provided)").to_owned()));
                }
                let more =
                    self.queues.pending_decisions.iter().any(|other| {
                        self.decisions.get(other).is_some_and(|state| state.decision.step == step)
                    });
                if !more {
                    self.requeue(plan, &step, at);
                }
            }
            About::HandEdit { .. } => self.requeue(plan, &step, at),
            About::PingPong { to } => {
                if let Some(referral) = self.referrals.get_mut(&(step, to)) {
                    referral.granted += 1;
                    referral.last_work = None;
                }
            }
            About::Step | About::Exhausted { .. } | About::Gate { .. } | About::HardStop | About::Stalled => {
            }
        }
    }

    /// Back to the start of the line, nothing forgotten.
    fn requeue(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        self.set_phase(plan, step, Phase::Pending, at);
        let unmet = self.unmet_needs(plan, step);
        if let Some(state) = self.steps.get_mut(step) {
            state.unmet = unmet;
        }
        self.wake(plan, step, at);
    }

    fn end_run(&mut self, plan: &Plan, how: RunEnd, reason: &str, at: Timestamp) {
        for step in self.queues.live.clone() {
            self.supersede(&step);
            self.set_phase(plan, &step, Phase::Failed { message: "the run was given up".to_owned() }, at);
        }
        for id in self.queues.pending_decisions.clone() {
            self.close_decision(&id, DecisionStatus::Skipped, "the run has ended", at);
        }
        self.phase = RunPhase::Ended { how, reason: reason.to_owned() };
    }

    fn escalate(&mut self, plan: &Plan, to: crate::ids::ProfileId) {
        for step in self.queues.live.clone() {
            self.supersede(&step);
        }
        self.rest(self.updated_at);
        for id in self.queues.pending_decisions.clone() {
            self.close_decision(&id, DecisionStatus::Skipped, "the run changed its profile", self.updated_at);
        }
        let superseded = std::mem::take(&mut self.queues.superseded);
        self.queues = Queues { superseded, ..Queues::default() };
        self.steps.clear();
        self.fan_outs.clear();
        self.artifacts.clear();
        self.restarts.clear();
        self.referrals.clear();
        self.profile = to;
        self.instantiate_top(plan);
    }

    /// The plan changed on a person's order: what is known of steps that still exist stays.
    fn adopt(&mut self, plan: &Plan) {
        let graph: &Graph = self.graph(plan);
        let keep = |state: &StepState| graph.steps.contains_key(&state.template);
        let gone: Vec<StepId> =
            self.steps.iter().filter(|(_, state)| !keep(state)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.supersede(&id);
            self.steps.remove(&id);
        }
        let at = self.updated_at;
        let fresh: Vec<StepId> = graph.top().filter(|id| !self.steps.contains_key(*id)).cloned().collect();
        let superseded = std::mem::take(&mut self.queues.superseded);
        let pending_decisions = std::mem::take(&mut self.queues.pending_decisions);
        let awaited_by = std::mem::take(&mut self.queues.awaited_by);
        self.queues = Queues { superseded, pending_decisions, awaited_by, ..Queues::default() };
        for stage in graph.stages.iter().filter(|stage| stage.disabled.is_some()) {
            self.queues.disabled.extend(stage.steps.iter().cloned());
        }
        let old: Vec<StepId> = self.steps.keys().cloned().collect();
        for id in &old {
            let phase = self.steps.get(id).map(|state| state.phase.clone()).unwrap_or(Phase::Dormant);
            let scope = self.steps.get(id).map(|state| state.scope.clone()).unwrap_or_default();
            let counts = self.queues.scopes.entry(scope).or_insert_with(ScopeCount::default);
            counts.unsatisfied += u32::from(!phase.is_satisfied() && phase != Phase::Dormant);
            counts.active += u32::from(phase.is_active());
            self.enter(plan, id, &Phase::Dormant, &phase, at);
        }
        self.instantiate(plan, &ScopeId::top(), None, None, &fresh, at);
        for id in &old {
            let unmet = self.unmet_needs(plan, id);
            if let Some(state) = self.steps.get_mut(id) {
                state.unmet = unmet;
            }
            if matches!(self.steps.get(id).map(|state| &state.phase), Some(Phase::Gated | Phase::Ready)) {
                self.set_phase(plan, id, Phase::Pending, at);
            }
        }
        for id in self.steps.keys().cloned().collect::<Vec<_>>() {
            let unmet = self.unmet_needs(plan, &id);
            if let Some(state) = self.steps.get_mut(&id) {
                state.unmet = unmet;
            }
            self.wake(plan, &id, at);
        }
        self.queues.fan_outs.extend(self.fan_outs.keys().cloned());
    }
}

/// What makes two findings of two rounds the same one.
pub(crate) fn fingerprint(finding: &Finding) -> String {
    let squeezed = finding.problem.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    format!("{}|{squeezed}", finding.location.as_deref().unwrap_or(""))
}

fn is_below(step: &StepId, owner: &StepId) -> bool {
    step.as_str().strip_prefix(owner.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// The longest chain of needs before each item.
fn wave_numbers(items: &[Item]) -> BTreeMap<String, u32> {
    let mut waves: BTreeMap<String, u32> = BTreeMap::new();
    let mut left: Vec<&Item> = items.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|item| {
            let known: Option<Vec<u32>> = item.needs.iter().map(|need| waves.get(need).copied()).collect();
            match known {
                Some(depths) => {
                    waves.insert(item.key.clone(), depths.into_iter().max().map_or(0, |depth| depth + 1));
                    false
                }
                None => true,
            }
        });
        if left.len() == before {
            break;
        }
    }
    waves
}
