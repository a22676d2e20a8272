//! The only writer of state. An event is never refused here: `decide` and `schedule` made it from
//! this very state, and replay feeds back what was stored.
//!
//! A crash may keep any prefix of the events that one input led to. So no event leaves behind a
//! duty that only the next one would do: what still has to follow is part of the state
//! (`Queues::due`, `Queues::stale`, `Queues::fix_next`), and `schedule` goes on from there.

mod attempts;
mod decisions;
mod groups;
mod items;
mod kept_items;
mod loops;
mod phases;
mod resets;
mod run;

pub(crate) use loops::fingerprint;

use crate::{event::Event, ids::Timestamp, plan::Plan, state::State};

impl State {
    /// Makes one event true. A table and nothing else, hence longer than a function should be.
    pub fn apply(&mut self, plan: &Plan, event: &Event, at: Timestamp) {
        self.updated_at = at;
        match event {
            Event::RunStarted { run, request, profile, beginning, .. } => {
                self.run_started(plan, run, request, profile, beginning, at);
            }
            Event::UntilSet { stage, skipped, reason } => self.until_set(plan, stage, skipped, reason, at),
            Event::StopRequested => self.stop_requested(),
            Event::RunPaused { why } => self.run_paused(why),
            Event::RunResumed { substitutes } => self.run_resumed(substitutes),
            Event::RunEnded { how, reason } => self.run_ended(plan, *how, reason, at),
            Event::PlanAdopted { digest } => self.plan_adopted(plan, digest),
            Event::ProfileEscalated { to, .. } => self.escalated(plan, to),
            Event::BudgetRaised { raise } => self.raise_budget(raise),
            Event::MessageTaken { message } => {
                self.messages_taken.insert(message.clone());
            }
            Event::MessageDropped { message } => {
                self.messages_taken.remove(message);
            }

            Event::IntrusionNoticed { intrusion } => self.intrusions.push(intrusion.clone()),

            Event::StepGiven { step, from } => self.step_given(plan, step, from, at),
            Event::AttemptStarted { step, attempt, .. } => self.attempt_started(plan, step, *attempt, at),
            Event::AttemptLaunched { step, attempt, fact } => self.attempt_launched(step, *attempt, fact),
            Event::ConversationBegan { step, conversation, .. } => self.conversed(step, conversation),
            Event::ProgressTold { step, attempt, hints } => self.progress_told(step, *attempt, hints),
            Event::AttemptEnded { step, attempt, report } => {
                self.attempt_ended(plan, step, *attempt, report, at);
            }
            Event::ResultIgnored { step, attempt, usage, .. } => {
                self.result_ignored(plan, step, *attempt, usage.as_ref());
            }
            Event::CheckEnded { step, check, fact, .. } => self.check_ended(plan, step, check, fact, at),
            Event::CommitEnded { step, fact, .. } => self.commit_ended(plan, step, fact, at),
            Event::RetryScheduled { step, class, message, at: due } => {
                self.retry_scheduled(plan, step, *class, message, *due, at);
            }
            Event::QuotaWaiting { step, until } => self.quota_waiting(plan, step, *until, at),
            Event::Judged { step, round, verdict } => self.judged(plan, step, *round, *verdict, at),
            Event::StepPassed { step, notes } => self.step_passed(plan, step, notes, at),
            Event::StepFailed { step, message } => self.step_failed(plan, step, message, at),
            Event::StepBlocked { step, reason, message } => {
                self.step_blocked(plan, step, *reason, message, at);
            }
            Event::StepSkipped { step, why, reason } => self.step_skipped(plan, step, *why, reason, at),
            Event::Invalidated { steps, cause } => self.invalidated(plan, steps, cause, at),

            Event::GateEvaluated { step, gate, value } => self.gate_evaluated(plan, step, gate, value, at),
            Event::GateWaived { step, gate, reason } => self.gate_waived(plan, step, gate, reason, at),
            Event::RoundOpened { review, round, fix, findings } => {
                self.round_opened(plan, review, *round, fix, findings, at);
            }
            Event::LoopExhausted { review, rounds, .. } => self.loop_exhausted(review, *rounds),
            Event::LimitRaised { step } => self.limit_raised(step),

            Event::FanOutStarted { step, hash, items } => self.fan_out_started(plan, step, hash, items, at),
            Event::ItemOpened { step, key } => self.item_opened(plan, step, key, at),
            Event::ItemKept { step, key } => self.item_kept(plan, step, key, at),
            Event::ItemDropped { step, key } => self.item_dropped(step, key),
            Event::ItemEnded { step, key, end } => self.item_ended(step, key, end),
            Event::GroupOpened { step } => self.group_opened(plan, step, at),

            Event::DecisionOpened { decision } => self.decision_opened(plan, decision, at),
            Event::DecisionBound { id, bound, question } => {
                self.decision_bound(id, bound, question.as_deref());
            }
            Event::DecisionAnswered { id, answer, comment, route, said, chosen, .. } => {
                if let Some(state) = self.decisions.get_mut(id) {
                    state.said = Some(said.as_ref().unwrap_or(answer).clone());
                    state.chosen.clone_from(chosen);
                }
                self.keep_what_was_not_chosen(id, chosen);
                self.decision_answered(plan, id, answer, comment.as_deref(), route.as_ref(), at);
            }
            Event::DecisionCancelled { id, reason } => self.decision_cancelled(plan, id, reason, at),
            Event::DecisionSkipped { id, reason } => self.decision_skipped(id, reason, at),
            Event::DecisionStaled { id, changed } => self.decision_staled(plan, id, changed, at),
            Event::ArtifactAdopted { name, hash } => self.artifact_adopted(name, hash),
            Event::ArtifactRestored { name } => self.hand_edit_settled(name),

            Event::StageRestarted { stage, count, steps, reason } => {
                self.stage_restarted(plan, stage, *count, steps, reason, at);
            }
            Event::ReferredBack { from, to, reason } => self.referred_back(from, to, reason),
            Event::ObligationOpened { step, .. } => self.obligation_opened(plan, step, at),
            Event::ObligationWaived { name, reason } => self.obligation_waived(plan, name, reason, at),
        }
    }
}
