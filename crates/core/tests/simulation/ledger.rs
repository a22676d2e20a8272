//! What a sceptical reader of the journal checks event by event, knowing only the state before.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    event::{About, Event, ItemEnd, RunEnd},
    fact::{CommitFact, Item, ProcessEnd},
    ids::{ArtifactName, ContentHash, DecisionId, StepId},
    plan::{Condition, Hardness, Must, Plan},
    state::{Due, Phase, RunPhase, State, StepState},
};

use crate::invariants;

#[derive(Default)]
pub struct Ledger {
    /// Highest attempt number ever started.
    attempts: BTreeMap<StepId, u32>,
    /// Steps whose question was answered and not opened again by anything.
    answered: BTreeMap<DecisionId, StepId>,
    ended: BTreeSet<(StepId, u32)>,
    waived: BTreeSet<String>,
    /// The list of each fan-out as it was last read.
    lists: BTreeMap<StepId, Vec<Item>>,
    /// Items when they last passed: the element, and what their steps had read.
    passed: BTreeMap<(StepId, String), (Item, Vec<Input>)>,
    /// Attempts whose commit is on record.
    committed: BTreeSet<(StepId, u32)>,
}

type Input = (ArtifactName, ContentHash);

impl Ledger {
    /// `automatic`: no person asked for this.
    pub fn see(&mut self, plan: &Plan, before: &State, event: &Event, automatic: bool) -> Result<(), String> {
        match event {
            Event::AttemptStarted { step, attempt, .. } => {
                starts_rightly(plan, before, step)?;
                let last = self.attempts.insert(step.clone(), *attempt).unwrap_or(0);
                require(*attempt == last + 1, || format!("{step}: attempt {attempt} after {last}"))
            }
            Event::AttemptEnded { step, attempt, .. } => {
                let new = self.ended.insert((step.clone(), *attempt));
                require(new, || format!("{step}#{attempt} ended twice"))
            }
            Event::CommitEnded { step, attempt, .. } => {
                let new = self.committed.insert((step.clone(), *attempt));
                require(new, || format!("{step}#{attempt} was committed twice"))
            }
            Event::StepPassed { step, .. } => is_committed(plan, before, step),
            Event::DecisionOpened { decision } => {
                let known = self.answered.contains_key(&decision.id);
                require(!known, || format!("{} was answered and is asked again", decision.id))
            }
            Event::DecisionAnswered { id, .. } => {
                let state = before.decisions.get(id).ok_or_else(|| format!("{id} was never asked"))?;
                if state.decision.about == About::Step {
                    self.answered.insert(id.clone(), state.decision.step.clone());
                }
                Ok(())
            }
            Event::DecisionStaled { id, .. } => {
                self.answered.remove(id);
                Ok(())
            }
            Event::Invalidated { steps, .. } => {
                self.reopened(steps);
                Ok(())
            }
            Event::StageRestarted { stage, count, steps, .. } => {
                self.reopened(steps);
                let max = before.graph(plan).stage(stage).map_or(0, |stage| stage.restarts_max);
                let answered = before.queues.due.values().any(|due| matches!(due, Due::Answer { .. }));
                require(answered || !automatic || *count <= max, || {
                    format!("restart {count} of {stage}, at most {max}")
                })
            }
            Event::ProfileEscalated { .. } => {
                self.answered.clear();
                self.waived.clear();
                Ok(())
            }
            Event::StepSkipped { step, .. } | Event::ObligationOpened { step, .. } => {
                self.reopened(&BTreeSet::from([step.clone()]));
                Ok(())
            }
            Event::RunEnded { how: RunEnd::Done, .. } => everything_is_done(plan, before, &self.waived),
            Event::ObligationWaived { name, reason } => {
                self.waived.insert(name.clone());
                require(!reason.trim().is_empty(), || format!("{name} is waived without a reason"))
            }
            Event::GateWaived { step, reason, .. } => {
                require(!reason.trim().is_empty(), || format!("a gate of {step} is waived without a reason"))
            }
            Event::FanOutStarted { step, items, .. } => {
                self.lists.insert(step.clone(), items.clone());
                Ok(())
            }
            Event::ItemEnded { step, key, end: ItemEnd::Passed } => {
                self.item_passed(before, step, key);
                Ok(())
            }
            Event::ItemKept { step, key } => require(self.is_unchanged(before, step, key), || {
                format!("{step}/{key} is kept although it changed")
            }),
            Event::ItemOpened { step, key } => {
                let due = before.set_aside.get(step).is_some_and(|aside| aside.contains_key(key));
                let unchanged = due && self.is_unchanged(before, step, key);
                self.passed.remove(&(step.clone(), key.clone()));
                require(!unchanged, || format!("{step}/{key} runs again although nothing changed"))
            }
            _ => Ok(()),
        }
    }

    fn item_passed(&mut self, before: &State, fan: &StepId, key: &str) {
        let Some(item) = self.listed(fan, key).cloned() else { return };
        let prefix = format!("{fan}/{key}/");
        let inside = before.steps.iter().filter(|(id, _)| id.as_str().starts_with(&prefix));
        let inputs =
            inside.filter_map(|(_, own)| own.report.as_ref()).flat_map(|report| report.inputs.clone());
        self.passed.insert((fan.clone(), key.to_owned()), (item, inputs.collect()));
    }

    fn listed(&self, fan: &StepId, key: &str) -> Option<&Item> {
        self.lists.get(fan)?.iter().find(|item| item.key == key)
    }

    /// The same element, the same inputs, and whatever it waits for was kept too.
    fn is_unchanged(&self, before: &State, fan: &StepId, key: &str) -> bool {
        let (Some(now), Some((then, inputs))) =
            (self.listed(fan, key), self.passed.get(&(fan.clone(), key.to_owned())))
        else {
            return false;
        };
        let kept = |need: &String| before.fan_outs[fan].items.get(need).is_some_and(|item| item.kept);
        now.element.is_some()
            && now == then
            && now.needs.iter().all(kept)
            && inputs
                .iter()
                .all(|(name, hash)| before.artifacts.get(name).is_some_and(|artifact| artifact.hash == *hash))
    }

    fn reopened(&mut self, steps: &BTreeSet<StepId>) {
        let below = |step: &StepId| {
            steps.iter().any(|owner| {
                step.as_str()
                    .strip_prefix(owner.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.answered.retain(|_, step| !below(step));
    }
}

fn require(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// An attempt that counts is committed before its step passes. (A waiver or an empty exhaustion lets a step
/// pass without an attempt that counts.)
fn is_committed(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(step), before.definition(plan, step)) else {
        return Ok(());
    };
    let verifying = matches!(own.phase, Phase::Verifying { .. });
    let good = own.report.as_ref().is_some_and(|report| {
        matches!(report.ended, ProcessEnd::Exited { code: 0 })
            && report.contradictions.is_empty()
            && report.artifacts.iter().all(|fact| fact.holds())
            && report.reply.is_some()
    });
    if !definition.commit || !verifying || !good || own.check_failure.is_some() {
        return Ok(());
    }
    let exhausted = own.tries >= definition.retry.attempts_max;
    let fine = match &own.commit {
        Some(CommitFact::Made { .. } | CommitFact::Nothing) => true,
        Some(CommitFact::Refused { .. }) => exhausted,
        None => exhausted,
    };
    require(fine, || format!("{step} passes with {:?}", own.commit))
}

fn starts_rightly(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    let own = before.steps.get(step).ok_or_else(|| format!("{step} does not exist"))?;
    require(before.phase == RunPhase::Running, || format!("{step} starts in a run that rests"))?;
    require(matches!(own.phase, Phase::Ready | Phase::Backoff { .. }), || {
        format!("{step} was {:?}", own.phase)
    })?;
    let unmet = invariants::unmet(plan, before, own);
    require(unmet.is_empty(), || format!("{step} starts before {unmet:?}"))?;
    for gate in &before.definition(plan, step).ok_or("no definition")?.gates {
        let waived = own.gates_waived.contains(&gate.id);
        let open = waived || gate_is_open(before, own, &gate.id, &gate.condition);
        let broken = gate.hardness == Hardness::Skip && !open;
        require(open && !broken, || format!("{step} starts although gate {} is closed", gate.id))?;
    }
    Ok(())
}

fn gate_is_open(
    before: &State,
    own: &StepState,
    gate: &gatewright_core::ids::GateId,
    condition: &Condition,
) -> bool {
    match condition {
        Condition::Expression { .. } => own.gates.get(gate) == Some(&Ok(true)),
        Condition::Artifact { step, name } => {
            let accepted = before.steps.get(step).and_then(|writer| writer.accepted);
            let artifact = before.artifacts.get(name);
            before.steps.get(step).is_some_and(|writer| matches!(writer.phase, Phase::Passed { .. }))
                && artifact
                    .is_some_and(|artifact| artifact.step == *step && Some(artifact.attempt) == accepted)
        }
        Condition::Verdict { step, at_most } => {
            let looped = before.steps.get(step).and_then(|review| review.review.as_ref());
            looped.is_some_and(|looped| {
                !looped.verdicts.is_empty() && looped.verdicts.values().all(|last| last.verdict <= *at_most)
            })
        }
        Condition::Check { .. } | Condition::Decision { .. } | Condition::Obligation { .. } => true,
    }
}

fn everything_is_done(plan: &Plan, before: &State, waived: &BTreeSet<String>) -> Result<(), String> {
    for (id, own) in before.steps.iter().filter(|(_, own)| own.scope.is_top()) {
        let done = own.phase.is_satisfied() || own.phase == Phase::Dormant;
        require(done, || format!("done although {id} is {:?}", own.phase))?;
    }
    require(before.queues.live.is_empty(), || "done although something runs".to_owned())?;
    for obligation in &before.graph(plan).obligations {
        let met = match &obligation.must {
            Must::Role { role } => before.steps.iter().any(|(id, own)| {
                matches!(own.phase, Phase::Passed { .. })
                    && before.definition(plan, id).is_some_and(|step| step.role() == Some(role))
            }),
            Must::Step { step } => matches!(before.steps[step].phase, Phase::Passed { .. }),
            Must::Decision { .. } => true,
        };
        let met = met || waived.contains(&obligation.name);
        require(met, || format!("done although obligation {} is not met", obligation.name))?;
    }
    Ok(())
}
