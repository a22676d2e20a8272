//! Which step an event is about: for the coverage of transitions.

use gatewright_core::{event::Event, ids::StepId};

/// The step an event is about.
pub fn subject(event: &Event) -> Option<&StepId> {
    match event {
        Event::AttemptStarted { step, .. }
        | Event::AttemptEnded { step, .. }
        | Event::ResultIgnored { step, .. }
        | Event::CheckEnded { step, .. }
        | Event::CommitEnded { step, .. }
        | Event::RetryScheduled { step, .. }
        | Event::Judged { step, .. }
        | Event::StepPassed { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepBlocked { step, .. }
        | Event::StepSkipped { step, .. }
        | Event::GateEvaluated { step, .. }
        | Event::GateWaived { step, .. }
        | Event::LimitRaised { step }
        | Event::FanOutStarted { step, .. }
        | Event::ItemOpened { step, .. }
        | Event::ItemKept { step, .. }
        | Event::ItemDropped { step, .. }
        | Event::ItemEnded { step, .. }
        | Event::GroupOpened { step }
        | Event::StepGiven { step, .. }
        | Event::AttemptLaunched { step, .. }
        | Event::ConversationBegan { step, .. }
        | Event::ProgressTold { step, .. }
        | Event::QuotaWaiting { step, .. }
        | Event::ObligationOpened { step, .. } => Some(step),
        Event::RoundOpened { review, .. } | Event::LoopExhausted { review, .. } => Some(review),
        Event::ReferredBack { from, .. } => Some(from),
        Event::DecisionOpened { decision } => Some(&decision.step),
        Event::Invalidated { steps, .. } | Event::StageRestarted { steps, .. } => steps.first(),
        Event::RunStarted { .. }
        | Event::UntilSet { .. }
        | Event::StopRequested
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::RunEnded { .. }
        | Event::PlanAdopted { .. }
        | Event::ProfileEscalated { .. }
        | Event::DecisionBound { .. }
        | Event::DecisionAnswered { .. }
        | Event::DecisionCancelled { .. }
        | Event::DecisionSkipped { .. }
        | Event::DecisionStaled { .. }
        | Event::BudgetRaised { .. }
        | Event::ArtifactAdopted { .. }
        | Event::MessageTaken { .. }
        | Event::MessageDropped { .. }
        | Event::ObligationWaived { .. }
        | Event::IntrusionNoticed { .. }
        | Event::ArtifactRestored { .. } => None,
    }
}
