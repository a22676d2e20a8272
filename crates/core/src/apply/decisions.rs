//! Questions to people: put, answered, withdrawn, out of date.

use std::collections::BTreeMap;

use crate::{
    event::{About, Decision},
    ids::{ArtifactName, ContentHash, DecisionId, RoleId, StepId, Timestamp},
    plan::{AnswerEffect, Kind, Plan},
    state::{DecisionState, DecisionStatus, Due, Phase, State, Waiver},
};

impl State {
    pub(super) fn decision_opened(&mut self, plan: &Plan, decision: &Decision, at: Timestamp) {
        if decision.about != About::Step {
            self.decisions_numbered += 1;
        }
        let history = self.decisions.get(&decision.id).map(|state| state.history.clone()).unwrap_or_default();
        let state = DecisionState {
            decision: decision.clone(),
            status: DecisionStatus::Pending,
            answer: None,
            said: None,
            comment: None,
            route: None,
            chosen: Vec::new(),
            reason: None,
            opened_at: at,
            resolved_at: None,
            history,
        };
        self.decisions.insert(decision.id.clone(), state);
        self.queues.pending_decisions.insert(decision.id.clone());
        self.queues.stale.remove(&decision.id);
        if matches!(decision.about, About::Obligation { .. }) {
            // It is the run that waits; no step of it has to go through this again.
            self.queues.obligation_asked = Some(decision.id.clone());
            return;
        }
        if matches!(decision.about, About::List { .. }) {
            // Its items go on; only the end of the fan-out waits.
            self.list_no_longer_asked(&decision.step, "the list was changed once more", at);
            if let Some(fan_out) = self.fan_outs.get_mut(&decision.step) {
                fan_out.list_asked = Some(decision.id.clone());
            }
            return;
        }
        if matches!(decision.about, About::Exhausted { loops: false }) {
            self.note_last_failure(plan, &decision.step, at);
        }
        self.set_phase(plan, &decision.step, Phase::Waiting, at);
        self.hold_siblings(plan, decision);
        if matches!(decision.about, About::Question { .. })
            && let Some(own) = self.steps.get_mut(&decision.step)
        {
            own.questions_put += 1;
            let asked = own.report.as_ref().and_then(|report| report.reply.as_ref());
            if asked.is_some_and(|reply| reply.questions.len() > own.questions_put as usize) {
                self.queues.due.insert(decision.step.clone(), Due::Conclusion);
            }
        }
    }

    /// A question that is put once: the other items that are about to put it wait for what is answered to this one.
    fn hold_siblings(&mut self, plan: &Plan, decision: &Decision) {
        let definition = self.definition(plan, &decision.step).map(|step| &step.kind);
        let once = matches!(definition, Some(Kind::Decision(question)) if question.once);
        if decision.about != About::Step || !once {
            return;
        }
        let same = |id: &StepId| self.is_same_template(id, &decision.step);
        let held: Vec<StepId> = self.queues.openable.iter().filter(|id| same(id)).cloned().collect();
        for id in held {
            self.queues.openable.remove(&id);
            self.queues.held.insert(id);
        }
    }

    fn is_same_template(&self, one: &StepId, other: &StepId) -> bool {
        let template = |id: &StepId| self.steps.get(id).map(|own| &own.template);
        template(one).is_some() && template(one) == template(other)
    }

    /// Another item of the same fan-out waits for the answer to this question.
    pub(super) fn is_asked_elsewhere(&self, step: &StepId) -> bool {
        self.decisions.values().any(|known| {
            known.status == DecisionStatus::Pending
                && known.decision.about == About::Step
                && known.decision.step != *step
                && self.is_same_template(&known.decision.step, step)
        })
    }

    pub(super) fn decision_bound(
        &mut self,
        id: &DecisionId,
        bound: &BTreeMap<ArtifactName, ContentHash>,
        question: Option<&str>,
    ) {
        if let Some(state) = self.decisions.get_mut(id) {
            state.decision.bound.extend(bound.clone());
            if let Some(question) = question {
                question.clone_into(&mut state.decision.question);
                state.decision.to_render = false;
                // Names in the plan may be templates: what is shown is what was found under them.
                let known = &state.decision.bound;
                let mut show = std::mem::take(&mut state.decision.show);
                show.retain(|name| known.contains_key(name));
                show.extend(bound.keys().filter(|name| !show.contains(name)).cloned().collect::<Vec<_>>());
                state.decision.show = show;
            }
        }
    }

    pub(super) fn decision_answered(
        &mut self,
        plan: &Plan,
        id: &DecisionId,
        answer: &str,
        comment: Option<&str>,
        route: Option<&RoleId>,
        at: Timestamp,
    ) {
        if let Some(state) = self.decisions.get_mut(id) {
            state.status = DecisionStatus::Answered;
            state.answer = Some(answer.to_owned());
            state.comment = comment.map(str::to_owned);
            state.route = route.cloned();
            state.resolved_at = Some(at);
            state.history.push((answer.to_owned(), comment.map(str::to_owned), at));
            let accepts = state
                .decision
                .answers
                .iter()
                .any(|one| one.word == answer && matches!(one.effect, AnswerEffect::Accept));
            let about_work = match state.decision.about {
                About::Step
                | About::Exhausted { .. }
                | About::PingPong { .. }
                | About::HardStop
                | About::Stalled
                | About::Notes => true,
                // A waived gate or obligation is on record by its own event; the others let nothing pass.
                About::Gate { .. }
                | About::Obligation { .. }
                | About::Question { .. }
                | About::HandEdit { .. }
                | About::List { .. } => false,
            };
            if accepts && about_work {
                let reason = format!("{id}: {}", comment.unwrap_or(answer));
                self.waivers.push(Waiver::of_step(&state.decision.step, &reason, at));
            }
        }
        self.decision_resolved(plan, id, Some(answer), at);
    }

    /// Some notes are to be mended: the others stay as they are, and nobody is asked about them again.
    pub(super) fn keep_what_was_not_chosen(&mut self, id: &DecisionId, chosen: &[u32]) {
        let Some(step) = self.decisions.get(id).map(|state| state.decision.step.clone()) else { return };
        self.answers_before.remove(&step);
        let Some(looped) = self.steps.get_mut(&step).and_then(|own| own.review.as_mut()) else { return };
        if chosen.is_empty() {
            return;
        }
        let noted = looped.verdicts.values().flat_map(|judgement| judgement.findings.clone());
        let left =
            noted.zip(1_u32..).filter(|(_, place)| !chosen.contains(place)).map(|(finding, _)| finding);
        looped.kept.extend(left.collect::<Vec<_>>());
    }

    pub(super) fn decision_cancelled(&mut self, plan: &Plan, id: &DecisionId, reason: &str, at: Timestamp) {
        self.close_decision(id, DecisionStatus::Cancelled, reason, at);
        self.decision_resolved(plan, id, None, at);
    }

    pub(super) fn decision_skipped(&mut self, id: &DecisionId, reason: &str, at: Timestamp) {
        self.close_decision(id, DecisionStatus::Skipped, reason, at);
    }

    pub(super) fn close_decision(
        &mut self,
        id: &DecisionId,
        status: DecisionStatus,
        reason: &str,
        at: Timestamp,
    ) {
        self.no_longer_asked(id);
        if let Some(state) = self.decisions.get_mut(id) {
            state.status = status;
            state.reason = Some(reason.to_owned());
            state.resolved_at = Some(at);
        }
    }

    fn no_longer_asked(&mut self, id: &DecisionId) {
        self.queues.pending_decisions.remove(id);
        self.queues.stale.remove(id);
        if self.queues.obligation_asked.as_ref() == Some(id) {
            self.queues.obligation_asked = None;
        }
        // The next one comes to the same question: it is answered for it, or asks anew.
        let asked = self.decisions.get(id).filter(|known| known.decision.about == About::Step);
        let next = asked.and_then(|known| {
            self.queues.held.iter().find(|held| self.is_same_template(held, &known.decision.step)).cloned()
        });
        if let Some(step) = next {
            self.queues.held.remove(&step);
            self.queues.openable.insert(step);
        }
    }

    /// Whatever was asked about this step is no longer the question.
    pub(super) fn close_decisions_of(&mut self, step: &StepId, reason: &str, at: Timestamp) {
        let open: Vec<DecisionId> = self
            .queues
            .pending_decisions
            .iter()
            .filter(|id| self.decisions.get(*id).is_some_and(|state| state.decision.step == *step))
            .cloned()
            .collect();
        for id in open {
            self.close_decision(&id, DecisionStatus::Skipped, reason, at);
        }
    }

    /// Nobody has to say any more what becomes of the list of this fan-out as it was then.
    pub(super) fn list_no_longer_asked(&mut self, fan: &StepId, reason: &str, at: Timestamp) {
        let asked = self.fan_outs.get(fan).and_then(|fan_out| fan_out.list_asked.clone());
        if let Some(id) = asked.filter(|id| self.queues.pending_decisions.contains(id)) {
            self.close_decision(&id, DecisionStatus::Skipped, reason, at);
        }
    }

    /// What an answer means for the step at once; the rest is due.
    fn decision_resolved(&mut self, plan: &Plan, id: &DecisionId, answer: Option<&str>, at: Timestamp) {
        self.no_longer_asked(id);
        let Some(resolved) = self.decisions.get(id) else { return };
        let step = resolved.decision.step.clone();
        let effect = resolved.decision.answers.iter().find(|known| Some(known.word.as_str()) == answer);
        let again = effect.is_some_and(|known| known.effect == AnswerEffect::Again);
        match resolved.decision.about.clone() {
            About::Question { asked, .. } => {
                if let Some(state) = self.steps.get_mut(&step) {
                    state.answers.push((asked, answer.unwrap_or("(no response provided)").to_owned()));
                }
                if !self.has_pending_decision(&step) && !self.queues.due.contains_key(&step) {
                    self.requeue(plan, &step, at);
                }
                return;
            }
            About::Obligation { name } if answer.is_none() => {
                self.obligations_put_off.insert(name);
                return;
            }
            About::HandEdit { .. } if answer.is_some() => self.requeue(plan, &step, at),
            About::List { name, found } => {
                // Of a published list the new version counts from now on; everything else is for `fan_out::next`.
                let adopts = effect.is_some_and(|known| known.effect == AnswerEffect::Accept);
                let differs = self.artifacts.get(&name).is_some_and(|known| known.hash != found);
                if !(adopts && differs) {
                    return;
                }
            }
            About::PingPong { to } if again => {
                if let Some(referral) = self.referrals.get_mut(&(step.clone(), to)) {
                    referral.granted += 1;
                    referral.last_work = None;
                }
            }
            About::HandEdit { .. }
            | About::PingPong { .. }
            | About::Step
            | About::Exhausted { .. }
            | About::Gate { .. }
            | About::Obligation { .. }
            | About::HardStop
            | About::Stalled
            | About::Notes => {}
        }
        self.queues.due.insert(step, Due::Answer { decision: id.clone(), raised: false });
    }

    fn has_pending_decision(&self, step: &StepId) -> bool {
        let mut pending = self.queues.pending_decisions.iter();
        pending.any(|other| self.decisions.get(other).is_some_and(|state| state.decision.step == *step))
    }

    /// What was shown has changed: the step asks again.
    pub(super) fn decision_staled(
        &mut self,
        plan: &Plan,
        id: &DecisionId,
        changed: &[ArtifactName],
        at: Timestamp,
    ) {
        let reason = changed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        self.close_decision(id, DecisionStatus::Stale, &reason, at);
        let Some(step) = self.decisions.get(id).map(|state| state.decision.step.clone()) else { return };
        self.set_phase(plan, &step, Phase::Pending, at);
        self.reopen_owners(plan, &step, at);
        self.requeue(plan, &step, at);
    }

    pub(super) fn artifact_adopted(&mut self, name: &ArtifactName, hash: &ContentHash) {
        if let Some(artifact) = self.artifacts.get_mut(name) {
            artifact.hash = hash.clone();
            artifact.adopted = true;
        }
        self.hand_edit_settled(name);
        self.note_stale(name);
    }

    /// What a person wanted done about a hand edit is done.
    pub(super) fn hand_edit_settled(&mut self, edited: &ArtifactName) {
        let decisions = &self.decisions;
        self.queues.due.retain(|_, due| match due {
            Due::Answer { decision, .. } => !decisions.get(decision).is_some_and(
                |state| matches!(&state.decision.about, About::HandEdit { name, .. } | About::List { name, .. } if name == edited),
            ),
            Due::Conclusion | Due::Referral { .. } => true,
        });
    }

    /// Approvals that are bound to another version of what is published now (J-35).
    pub(super) fn note_stale(&mut self, name: &ArtifactName) {
        let Some(artifact) = self.artifacts.get(name) else { return };
        for (id, decision) in &self.decisions {
            let differs = decision.decision.bound.get(name).is_some_and(|bound| *bound != artifact.hash);
            let step = self.steps.get(&decision.decision.step).map(|own| &own.phase);
            let counts = match decision.status {
                DecisionStatus::Pending => true,
                DecisionStatus::Answered => step.is_some_and(Phase::is_satisfied),
                DecisionStatus::Cancelled | DecisionStatus::Skipped | DecisionStatus::Stale => false,
            };
            if differs && counts && decision.decision.about == About::Step {
                self.queues.stale.entry(id.clone()).or_default().insert(name.clone());
            }
        }
    }

    /// Back to the start of the line, nothing forgotten.
    pub(super) fn requeue(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        self.set_phase(plan, step, Phase::Pending, at);
        let unmet = self.unmet_needs(plan, step);
        if let Some(state) = self.steps.get_mut(step) {
            state.unmet = unmet;
        }
        self.wake(plan, step, at);
    }
}
