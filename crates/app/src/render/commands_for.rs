//! The next command to type: for a question, for a block. One place, so that every reader says the same.

use gatewright_core::{
    event::{About, BlockReason, BudgetKind, Pause},
    plan::AnswerEffect,
    state::{DecisionState, Phase, RunPhase, State},
};

use crate::render::text::{one_line, shell_word};

/// One command per answer of a pending decision.
pub fn answers(run: &str, pending: &DecisionState) -> Vec<String> {
    let (run, id) = (shell_word(run), shell_word(pending.decision.id.as_str()));
    if pending.decision.answers.is_empty() {
        return vec![format!("gatewright answer {run} {id} '…'")];
    }
    pending
        .decision
        .answers
        .iter()
        .map(|answer| {
            let told = match (&answer.effect, &pending.decision.about) {
                (AnswerEffect::Redo { .. }, _) => true,
                // A waiver has a reason.
                (AnswerEffect::Accept, About::Obligation { .. }) => true,
                _ => false,
            };
            let comment = if told { " --comment '…'" } else { "" };
            format!("gatewright answer {run} {id} {}{comment}", shell_word(&one_line(&answer.word)))
        })
        .collect()
}

/// What gets a run going again that does not go on by itself.
pub fn remedies(run: &str, state: &State, interrupted: bool) -> Vec<String> {
    let run = shell_word(run);
    if interrupted {
        return vec![
            format!("gatewright resume {run}"),
            format!("gatewright abort {run} && gatewright clean {run} --artifacts --yes    # removes it"),
        ];
    }
    match &state.phase {
        RunPhase::Paused(Pause::Until { .. }) => {
            return vec![format!(
                "gatewright resume {run}    # all the rest; or one stage: gatewright phase NAME"
            )];
        }
        RunPhase::Paused(Pause::Stop) => return vec![format!("gatewright resume {run}")],
        RunPhase::Paused(Pause::Unwritten { .. }) => {
            return vec![format!("gatewright resume {run}    # when it can be written again")];
        }
        RunPhase::Paused(Pause::Quota { waited_ms, .. }) => {
            let hours = waited_ms / 3_600_000 + 1;
            return vec![
                format!("gatewright resume {run} --raise quota_wait={hours}h"),
                format!("gatewright resume {run}    # after that time"),
            ];
        }
        RunPhase::Paused(Pause::Budget { kind, limit, .. }) => {
            return vec![format!("gatewright resume {run} --raise {}", raise(*kind, *limit))];
        }
        RunPhase::Ended { .. } => return Vec::new(),
        RunPhase::Created | RunPhase::Running | RunPhase::Stopping => {}
    }
    let leaf = state
        .queues
        .blocked
        .iter()
        .find(|id| !state.fan_outs.contains_key(*id))
        .or_else(|| state.queues.blocked.first());
    let Some(id) = leaf else { return vec![format!("gatewright resume {run}")] };
    let Some(Phase::Blocked { reason, .. }) = state.steps.get(id).map(|own| &own.phase) else {
        return Vec::new();
    };
    let step = shell_word(id.as_str());
    let mut commands = match reason {
        BlockReason::AttemptsExhausted
        | BlockReason::SameError
        | BlockReason::Interrupted
        | BlockReason::AgentError
        | BlockReason::ToolUnavailable => {
            vec![format!("gatewright logs {run} {step}")]
        }
        BlockReason::RoundsExhausted
        | BlockReason::HardStop
        | BlockReason::AgentBlocked
        | BlockReason::PingPong
        | BlockReason::QuestionsExhausted => {
            vec![format!("gatewright show {run} {step}")]
        }
        BlockReason::MissingInput => vec![format!("gatewright resume {run} --use FILE=OTHER")],
        BlockReason::Gate
        | BlockReason::MandatoryUserDecisionMissing
        | BlockReason::AnsweredBlock
        | BlockReason::ItemsFailed
        | BlockReason::BadList
        | BlockReason::Obligation => vec![format!("gatewright why {run} {step}")],
    };
    commands.push(format!("gatewright resume {run}"));
    if *reason == BlockReason::Gate {
        commands.push(format!("gatewright skip {run} {step} --gate --reason '…'    # runs it all the same"));
    }
    commands.push(format!("gatewright skip {run} {step} --reason '…'"));
    commands
}

/// Twice the limit, as a start.
fn raise(kind: BudgetKind, limit: u64) -> String {
    match kind {
        BudgetKind::Usd => format!("usd={}", (limit / 1_000_000).max(1) * 2),
        BudgetKind::Tokens => format!("tokens={}", limit.saturating_mul(2)),
        BudgetKind::Launches => format!("launches={}", limit.saturating_mul(2)),
        BudgetKind::Wall => format!("wall={}m", (limit / 60_000).max(1) * 2),
    }
}
