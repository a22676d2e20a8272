//! What must hold on every path, told from the events and not from the engine's own counters.

use std::collections::BTreeMap;

use gatewright_core::{
    event::{About, Event, FailureClass, RunEnd},
    ids::StepId,
    plan::{Condition, Gate, Hardness, Kind, Plan},
    state::{DecisionStatus, Phase, State, StepState},
};

/// Watches one path.
#[derive(Debug, Default)]
pub struct Checker {
    /// Failed attempts of the present round.
    failures: BTreeMap<StepId, u32>,
    /// Rounds that people granted.
    granted: BTreeMap<StepId, u32>,
}

impl Checker {
    /// Looks at one event and the state right after it.
    pub fn after(&mut self, plan: &Plan, state: &State, event: &Event, violations: &mut Vec<String>) {
        match event {
            Event::RetryScheduled { step, class, .. } if *class != FailureClass::Interrupted => {
                let failed = self.failures.entry(step.clone()).or_insert(0);
                *failed += 1;
                let max =
                    state.definition(plan, step).map_or(u32::MAX, |definition| definition.retry.attempts_max);
                if *failed >= max {
                    violations
                        .push(format!("`{step}` is tried again after {failed} failures of {max} attempts"));
                }
            }
            Event::Judged { step, round, .. } => self.judged(plan, state, step, *round, violations),
            Event::LimitRaised { step } => *self.granted.entry(step.clone()).or_insert(0) += 1,
            Event::StepPassed { step, .. } | Event::StepSkipped { step, .. } => self.forget(step),
            Event::Invalidated { steps, .. } | Event::StageRestarted { steps, .. } => {
                for step in steps {
                    self.forget(step);
                }
            }
            Event::RoundOpened { review, fix, .. } => {
                self.forget(review);
                for step in fix {
                    self.forget(step);
                }
            }
            Event::GroupOpened { step } | Event::FanOutStarted { step, .. } => {
                self.forget(step);
                started(plan, state, step, violations);
            }
            Event::AttemptStarted { step, .. } => started(plan, state, step, violations),
            Event::DecisionOpened { decision } if decision.about == About::Step => {
                started(plan, state, &decision.step, violations);
            }
            Event::RunEnded { how: RunEnd::Done, .. } => done(plan, state, violations),
            Event::ProfileEscalated { .. } => *self = Checker::default(),
            _ => {}
        }
    }

    /// A step, with everything below it, begins anew.
    fn forget(&mut self, step: &StepId) {
        let below = format!("{step}/");
        self.failures.retain(|other, _| other != step && !other.as_str().starts_with(&below));
    }

    fn judged(&self, plan: &Plan, state: &State, step: &StepId, round: u32, violations: &mut Vec<String>) {
        let holder = state.panel_of(plan, step).unwrap_or_else(|| step.clone());
        let Some(Kind::Review(review)) = state.definition(plan, &holder).map(|definition| &definition.kind)
        else {
            return;
        };
        let granted = self.granted.get(&holder).copied().unwrap_or(0);
        if round > review.rounds_max + granted {
            violations.push(format!(
                "`{holder}` judges in round {round}; {} rounds and {granted} granted ones are allowed",
                review.rounds_max
            ));
        }
    }
}

/// A step that begins has its needs met and its gates open.
fn started(plan: &Plan, state: &State, step: &StepId, violations: &mut Vec<String>) {
    let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else { return };
    for edge in &definition.needs {
        let need = state.sibling(plan, own, &edge.from);
        if !state.steps.get(&need).is_some_and(|other| other.phase.is_satisfied()) {
            violations.push(format!("`{step}` begins although `{need}` has not passed"));
        }
    }
    for gate in &definition.gates {
        if is_open(plan, state, own, gate) == Some(false) {
            let kind = match gate.hardness {
                Hardness::Hard => "hard gate",
                Hardness::Soft => "soft gate",
                Hardness::Skip => "condition",
            };
            violations.push(format!("`{step}` begins although its {kind} `{}` is closed", gate.id));
        }
    }
}

/// Nothing that counts is open at the end of a run that is done.
fn done(plan: &Plan, state: &State, violations: &mut Vec<String>) {
    for (id, own) in state.steps.iter().filter(|(_, own)| own.scope.is_top()) {
        if !own.phase.is_satisfied() && own.phase != Phase::Dormant {
            violations.push(format!("the run is done although `{id}` has not passed"));
        }
        let Some(definition) = state.definition(plan, id) else { continue };
        let passed = matches!(own.phase, Phase::Passed { .. });
        for gate in definition.gates.iter().filter(|gate| passed && gate.hardness == Hardness::Hard) {
            if is_open(plan, state, own, gate) == Some(false) {
                violations.push(format!(
                    "the run is done although the hard gate `{}` of `{id}` is closed",
                    gate.id
                ));
            }
        }
    }
    let open = state.decisions.values().filter(|other| other.status == DecisionStatus::Pending);
    violations.extend(
        open.map(|other| format!("the run is done although `{}` is not answered", other.decision.id)),
    );
}

/// Is a gate open, by the record? `None` where only the engine can tell.
pub fn is_open(plan: &Plan, state: &State, own: &StepState, gate: &Gate) -> Option<bool> {
    if own.gates_waived.contains(&gate.id) {
        return Some(true);
    }
    let has_passed = |step: StepId| {
        let phase = state.steps.get(&step).map(|own| &own.phase);
        matches!(phase, Some(Phase::Passed { .. }))
    };
    if gate.asked_at.iter().any(|step| has_passed(state.sibling(plan, own, step))) {
        return Some(true);
    }
    match &gate.condition {
        Condition::Expression { .. } => Some(own.gates.get(&gate.id) == Some(&Ok(true))),
        Condition::Artifact { step, name } => {
            let id = state.sibling(plan, own, step);
            let writer = state.steps.get(&id)?;
            let counts = state.artifacts.values().any(|artifact| {
                artifact.step == id
                    && artifact.declared == *name
                    && Some(artifact.attempt) == writer.accepted
                    && artifact.holds
            });
            Some(matches!(writer.phase, Phase::Passed { .. }) && counts)
        }
        Condition::Verdict { step, at_most } => {
            let review = state.steps.get(&state.sibling(plan, own, step))?.review.as_ref()?;
            Some(
                review
                    .verdicts
                    .values()
                    .map(|judgement| judgement.verdict)
                    .max()
                    .is_some_and(|verdict| verdict <= *at_most),
            )
        }
        Condition::Check { step, check } => {
            let other = state.steps.get(&state.sibling(plan, own, step))?;
            Some(other.checks.get(check) == Some(&true))
        }
        Condition::Decision { step, answers } => {
            let id = state.sibling(plan, own, step);
            let decision = state
                .decisions
                .values()
                .find(|other| other.decision.step == id && other.decision.about == About::Step)?;
            let word = decision.answer.as_deref().unwrap_or_default();
            Some(decision.status == DecisionStatus::Answered && answers.iter().any(|answer| answer == word))
        }
        Condition::Obligation { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::ids::{ProfileId, Timestamp};
    use gatewright_workflow::{
        config::Config,
        load::{LoadOptions, MapSources, load},
    };

    use super::*;

    const FLOW: &str = "
workflow: flow
roles: { coder: { prompt: Code. }, reviewer: { prompt: Look. } }
steps:
  - { id: code, role: coder, retry: { attempts_max: 2 } }
  - { id: review, review: code, by: reviewer, rounds_max: 2 }
  - { id: end, role: coder, gates: [ { expr: 'true' } ] }
";

    /// What a checker says that sees these events, whatever an engine would have made of them.
    fn said(events: &[Event]) -> Vec<String> {
        let config = Config::default();
        let frozen =
            load("flow.yaml", FLOW, &MapSources::default(), &LoadOptions::new(&config)).frozen.unwrap();
        let mut state = State::new(&frozen.plan);
        let start = Event::RunStarted {
            run: "r".to_owned(),
            workflow: "flow".to_owned(),
            profile: ProfileId::new("default"),
            request: String::new(),
            beginning: gatewright_core::event::Beginning::default(),
        };
        let (mut checker, mut violations) = (Checker::default(), Vec::new());
        for event in std::iter::once(&start).chain(events) {
            state.apply(&frozen.plan, event, Timestamp(1));
            checker.after(&frozen.plan, &state, event, &mut violations);
        }
        violations
    }

    #[test]
    fn an_engine_that_breaks_its_word_is_found_out() {
        assert_eq!(said(&[]), Vec::<String>::new());
        let done = said(&[Event::RunEnded { how: RunEnd::Done, reason: String::new() }]);
        assert!(done.iter().any(|said| said.contains("although `review` has not passed")), "{done:?}");
        let early = said(&[Event::AttemptStarted { step: "end".into(), attempt: 1, round: 1 }]);
        assert!(early.iter().any(|said| said.contains("although `review` has not passed")), "{early:?}");
        assert!(early.iter().any(|said| said.contains("hard gate")), "{early:?}");
        let retry = Event::RetryScheduled {
            step: "code".into(),
            class: FailureClass::Crash,
            message: String::new(),
            at: Timestamp(1),
        };
        let start = |attempt| Event::AttemptStarted { step: "code".into(), attempt, round: 1 };
        assert_eq!(said(&[start(1), retry.clone(), start(2)]), Vec::<String>::new());
        let often = said(&[start(1), retry.clone(), start(2), retry]);
        assert!(often.iter().any(|said| said.contains("2 failures of 2 attempts")), "{often:?}");
        let verdict = gatewright_core::verdict::Verdict::Revise;
        let rounds = said(&[Event::Judged { step: "review".into(), round: 3, verdict }]);
        assert!(rounds.iter().any(|said| said.contains("round 3")), "{rounds:?}");
    }
}
