//! Scopes: steps are created in them and taken away with the group that opened them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    event::Cause,
    ids::{StepId, Timestamp},
    plan::{Kind, Plan, Rereview, Review},
    state::{DecisionStatus, Few, Phase, ScopeId, Spent, State, StepState},
    verdict::Verdict,
};

impl State {
    pub(super) fn instantiate_top(&mut self, plan: &Plan) {
        let graph = self.graph(plan);
        let templates: Vec<StepId> = graph.top().cloned().collect();
        for stage in graph.stages.iter().filter(|stage| stage.disabled.is_some()) {
            self.queues.disabled.extend(stage.steps.iter().cloned());
        }
        self.instantiate(plan, &ScopeId::top(), None, None, &templates, self.updated_at);
    }

    /// Creates the steps of a scope and wakes those that need nothing.
    pub(super) fn instantiate(
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
            // The number of an attempt names it for ever, also across resets of its group.
            let attempts = self.attempts_used.get(&id).copied().unwrap_or(0);
            let mut state = Box::new(StepState {
                template: template.clone(),
                scope: scope.clone(),
                owner: owner.cloned(),
                item: item.map(str::to_owned),
                phase,
                unmet: definition.needs.len() as u32,
                round: 1,
                visit: 1,
                attempts,
                not_started: 0,
                tries: 0,
                failed_before: 0,
                interruptions: 0,
                granted: 0,
                question_rounds: 0,
                quota_waits: 0,
                questions_put: 0,
                bad_lists: 0,
                cause: None,
                given: None,
                last_failure: None,
                last_error: None,
                report: None,
                inputs: Vec::new(),
                conversation: None,
                model: None,
                spent: Spent::default(),
                accepted: None,
                summary: String::new(),
                word: String::new(),
                launched: None,
                hints: BTreeMap::new(),
                checks: Few::default(),
                flaky: BTreeMap::new(),
                check_failure: None,
                commit: None,
                gates: BTreeMap::new(),
                gates_waived: BTreeSet::new(),
                review: definition.rounds().map(|_| Box::default()),
                answers: Vec::new(),
                started_at: None,
                ended_at: None,
            });
            let held = self.rounds_before.get(&id).copied().unwrap_or(0);
            if let (Some(review), Some(looped)) = (definition.rounds(), state.review.as_mut()) {
                // At least one review is held here: what was before was not judged by this engine.
                state.round = (held + 1).min(review.rounds_max.max(1));
                looped.rounds_done = held;
            } else {
                // And at least one attempt, for the same reason.
                state.tries = held.min(definition.retry.attempts_max.saturating_sub(1));
            }
            let counts = self.queues.scopes.entry(scope.clone()).or_default();
            counts.unsatisfied += u32::from(!definition.dormant);
            self.steps.insert(id.clone(), state);
            created.push(id);
        }
        if self.queues.scopes.entry(scope.clone()).or_default().active == 0 {
            self.queues.quiet.insert(scope.clone());
        }
        for id in &created {
            let unmet = self.unmet_needs(plan, id);
            if let Some(state) = self.steps.get_mut(id) {
                state.unmet = unmet;
            }
        }
        self.wake_all(plan, &created.into_iter().collect(), at);
    }

    /// A sub-run, or a panel of reviewers for its first or next round.
    pub(super) fn group_opened(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let Some(definition) = self.definition(plan, step) else { return };
        let scope = ScopeId(step.as_str().to_owned());
        self.set_phase(plan, step, Phase::Open, at);
        match &definition.kind {
            Kind::SubRun { body, budget } => {
                self.budgets.entry(scope.clone()).or_insert_with(|| (**budget).clone());
                self.instantiate(plan, &scope, Some(step), None, body, at);
            }
            Kind::Review(review) => self.panel_opened(plan, step, review, at),
            Kind::Agent { .. }
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. } => {}
        }
    }

    /// All reviewers for the first round; later all of them or those who were not content.
    fn panel_opened(&mut self, plan: &Plan, panel: &StepId, review: &Review, at: Timestamp) {
        let scope = ScopeId(panel.as_str().to_owned());
        let round = self.steps.get(panel).map_or(1, |state| state.round);
        let failed_only = review.rereview == Rereview::Failed && !self.full_pass_is_due(plan, panel);
        let templates: Vec<StepId> = review.reviewers.iter().map(|reviewer| reviewer.step.clone()).collect();
        let members: Vec<StepId> = templates
            .iter()
            .filter_map(|member| self.graph(plan).steps.get(member))
            .map(|member| scope.child(&member.name))
            .collect();
        let begun = members.iter().any(|id| self.steps.contains_key(id));
        if begun {
            let again: BTreeSet<StepId> = members
                .iter()
                .filter(|id| {
                    !failed_only || self.last_verdict(panel, id).is_none_or(|last| last >= Verdict::Revise)
                })
                .cloned()
                .collect();
            for id in &again {
                self.reset(plan, id, &Cause::Resumed, at);
            }
            self.wake_all(plan, &again, at);
            if again.is_empty() {
                self.queues.quiet.insert(scope);
            }
        } else {
            self.instantiate(plan, &scope, Some(panel), None, &templates, at);
        }
        for id in &members {
            if let Some(state) = self.steps.get_mut(id) {
                state.round = round;
            }
        }
    }

    pub(crate) fn last_verdict(&self, review: &StepId, reviewer: &StepId) -> Option<Verdict> {
        let looped = self.steps.get(review)?.review.as_ref()?;
        looped.verdicts.get(reviewer).map(|judgement| judgement.verdict)
    }

    /// Takes away what a group step had opened below it. The journal keeps it.
    pub(super) fn remove_below(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        let prefix = format!("{step}/");
        let gone: BTreeSet<StepId> = self
            .steps
            .range(StepId::new(&prefix)..)
            .map(|(id, _)| id)
            .take_while(|id| id.as_str().starts_with(&prefix))
            .cloned()
            .collect();
        for id in &gone {
            self.supersede(id);
            self.set_phase(plan, id, Phase::Dormant, at);
        }
        let orphans: Vec<_> = self
            .queues
            .pending_decisions
            .iter()
            .filter(|id| self.decisions.get(*id).is_some_and(|state| gone.contains(&state.decision.step)))
            .cloned()
            .collect();
        for id in orphans {
            self.close_decision(&id, DecisionStatus::Skipped, "what it was about runs again", at);
        }
        for id in &gone {
            self.remove_step(id);
        }
        self.fan_outs.remove(step);
        self.queues.scopes.remove(&ScopeId(step.as_str().to_owned()));
        self.queues.quiet.remove(&ScopeId(step.as_str().to_owned()));
    }

    /// Forgets a step except for the numbers of its attempts. Its phase is `Dormant` already, so it
    /// is in no queue.
    pub(super) fn remove_step(&mut self, id: &StepId) {
        let Some(state) = self.steps.remove(id) else { return };
        self.attempts_used.insert(id.clone(), state.attempts);
        self.queues.scopes.remove(&state.scope);
        self.queues.quiet.remove(&state.scope);
        self.queues.awaited_by.remove(id);
        self.queues.disabled.remove(id);
        self.fan_outs.remove(id);
        self.set_aside.remove(id);
    }
}
