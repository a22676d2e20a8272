//! What a sceptical reader of the journal checks event by event, knowing only the state before.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    event::{About, BlockReason, BudgetKind, Cause, Event, FailureClass, ItemEnd, Pause, RunEnd, Skip},
    fact::{AttemptReport, CommitFact, Item, ProcessEnd},
    ids::{ArtifactName, ContentHash, DecisionId, StepId},
    outcome::Outcome,
    plan::{Condition, Hardness, Kind, Must, Plan, Rerun},
    state::{DecisionStatus, Due, Phase, RunPhase, ScopeId, State, StepState},
    verdict::Verdict,
};

use crate::{invariants, subject::subject};

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
    /// What the last attempt of each step left.
    reports: BTreeMap<StepId, AttemptReport>,
    /// Launches of agents, counted here.
    launches: u64,
    /// Number of the event, and the numbers of the last beginning and the last end of each step.
    place: u64,
    begun: BTreeMap<StepId, u64>,
    through: BTreeMap<StepId, u64>,
    /// Steps that were left out and run at the end because somebody must have run them.
    late: BTreeSet<StepId>,
}

type Input = (ArtifactName, ContentHash);

impl Ledger {
    /// `automatic`: no person asked for this.
    pub fn see(&mut self, plan: &Plan, before: &State, event: &Event, automatic: bool) -> Result<(), String> {
        self.place += 1;
        self.order_of(event);
        self.lists_are_frozen(before, event)?;
        match event {
            Event::AttemptStarted { step, attempt, .. } => {
                starts_rightly(plan, before, step)?;
                works_beside_few(plan, before, step)?;
                self.launched(plan, before, step)?;
                let last = self.attempts.insert(step.clone(), *attempt).unwrap_or(0);
                require(*attempt == last + 1, || format!("{step}: attempt {attempt} after {last}"))
            }
            Event::AttemptEnded { step, attempt, report } => {
                self.reports.insert(step.clone(), report.as_ref().clone());
                // A launch that did not happen is not counted.
                let agent =
                    before.definition(plan, step).is_some_and(|definition| definition.agent().is_some());
                if agent && matches!(report.ended, ProcessEnd::NotStarted { .. }) {
                    self.launches = self.launches.saturating_sub(1);
                }
                let runs = before
                    .steps
                    .get(step)
                    .is_some_and(|own| own.phase == Phase::Running { attempt: *attempt });
                require(runs, || format!("the end of {step}#{attempt} counts although it is not running"))?;
                let new = self.ended.insert((step.clone(), *attempt));
                require(new, || format!("{step}#{attempt} ended twice"))
            }
            Event::CommitEnded { step, attempt, .. } => {
                let new = self.committed.insert((step.clone(), *attempt));
                require(new, || format!("{step}#{attempt} was committed twice"))
            }
            Event::CheckEnded { step, attempt, .. } => {
                let phase = before.steps.get(step).map(|own| &own.phase);
                let verifies = phase == Some(&Phase::Verifying { attempt: *attempt });
                require(verifies, || format!("a check of {step}#{attempt} counts although it is {phase:?}"))
            }
            Event::Judged { step, verdict, .. } => self.judged(plan, before, step, *verdict),
            Event::StepPassed { step, notes } => {
                is_committed(plan, before, step)?;
                if notes.is_empty() { checks_are_green(plan, before, step) } else { Ok(()) }
            }
            Event::StepSkipped { step, why: Skip::Condition, .. } => {
                self.reopened(&BTreeSet::from([step.clone()]));
                left_out_rightly(plan, before, step)
            }
            Event::StepBlocked { step, reason, .. } => limit_is_reached(plan, before, step, *reason),
            Event::RetryScheduled { step, class, .. } => limit_is_not_reached(plan, before, step, *class),
            Event::LoopExhausted { review, rounds, .. } => rounds_are_used_up(plan, before, review, *rounds),
            Event::RunPaused {
                why: Pause::Budget { kind: BudgetKind::Launches, limit, scope: None, .. },
            } => {
                let launches = self.launches;
                // More than the limit only after an escalation to a profile that allows less.
                require(launches >= *limit, || format!("paused after {launches} launches of {limit}"))
            }
            Event::RunEnded { how: RunEnd::Failed, .. } => {
                let failed = before.steps.values().any(|own| matches!(own.phase, Phase::Failed { .. }));
                require(failed, || "the run fails and no step has".to_owned())
            }
            Event::DecisionOpened { decision } => {
                let known = self.answered.contains_key(&decision.id);
                require(!known, || format!("{} was answered and is asked again", decision.id))
            }
            Event::DecisionAnswered { id, answer, .. } => {
                let state = before.decisions.get(id).ok_or_else(|| format!("{id} was never asked"))?;
                require(state.status == DecisionStatus::Pending, || {
                    format!("{id} is answered, but {:?}", state.status)
                })?;
                let answers = &state.decision.answers;
                let known = answers.is_empty() || answers.iter().any(|known| known.word == *answer);
                require(known, || format!("{id} takes `{answer}` for an answer"))?;
                if state.decision.about == About::Step {
                    self.answered.insert(id.clone(), state.decision.step.clone());
                }
                Ok(())
            }
            Event::DecisionStaled { id, .. } => {
                self.answered.remove(id);
                Ok(())
            }
            Event::Invalidated { steps, cause } => {
                self.reopened(steps);
                if let Cause::ListAdopted { decision } = cause {
                    adopted_rightly(before, steps, decision)
                } else {
                    Ok(())
                }
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
            Event::RunEnded { how: RunEnd::Done, .. } => {
                everything_is_done(plan, before, &self.waived)?;
                self.nothing_rests_on_the_past(plan, before)
            }
            Event::ObligationWaived { name, reason } => {
                self.waived.insert(name.clone());
                require(!reason.trim().is_empty(), || format!("{name} is waived without a reason"))
            }
            Event::GateWaived { step, reason, .. } => {
                require(!reason.trim().is_empty(), || format!("a gate of {step} is waived without a reason"))
            }
            Event::FanOutStarted { step, items, .. } => {
                self.lists.insert(step.clone(), items.clone());
                require(!before.fan_outs.contains_key(step), || {
                    format!("{step} begins although it is at work")
                })
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
                opens_beside_few(plan, before, step)?;
                require(!unchanged, || format!("{step}/{key} runs again although nothing changed"))
            }
            _ => Ok(()),
        }
    }

    /// J-41: what a fan-out works on is what it began with, and it does not end while somebody is asked about that.
    fn lists_are_frozen(&self, before: &State, event: &Event) -> Result<(), String> {
        let Some((step, fan_out)) = subject(event).and_then(|step| before.fan_outs.get_key_value(step))
        else {
            return Ok(());
        };
        let began = self.lists.get(step).into_iter().flatten().map(|item| &item.key);
        require(fan_out.order.iter().eq(began), || {
            format!("{step} works on another list than it began with")
        })?;
        let asked =
            fan_out.list_asked.as_ref().is_some_and(|id| before.queues.pending_decisions.contains(id));
        let ends = matches!(event, Event::StepPassed { .. } | Event::StepBlocked { .. });
        require(!(asked && ends), || format!("{step} ends although somebody is asked about its list"))
    }

    fn item_passed(&mut self, before: &State, fan: &StepId, key: &str) {
        let Some(item) = self.listed(fan, key).cloned() else { return };
        let prefix = format!("{fan}/{key}/");
        let inside = before.steps.iter().filter(|(id, _)| id.as_str().starts_with(&prefix));
        let inputs = inside.flat_map(|(_, own)| {
            own.report.iter().flat_map(|report| &report.inputs).chain(&own.inputs).cloned()
        });
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

    fn order_of(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted { step, .. }
            | Event::GroupOpened { step }
            | Event::FanOutStarted { step, .. } => {
                self.begun.insert(step.clone(), self.place);
            }
            Event::DecisionOpened { decision } if decision.about == About::Step => {
                self.begun.insert(decision.step.clone(), self.place);
            }
            Event::StepPassed { step, .. } => {
                self.through.insert(step.clone(), self.place);
            }
            Event::ObligationOpened { step, .. } => {
                self.late.insert(step.clone());
            }
            Event::StageRestarted { steps, .. } => self.late.retain(|step| !steps.contains(step)),
            _ => {}
        }
    }

    /// Launches of agents never exceed their limit; counted apart from the engine's own count.
    fn launched(&mut self, plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
        if before.definition(plan, step).is_none_or(|definition| definition.agent().is_none()) {
            return Ok(());
        }
        let limit = before.budgets.get(&ScopeId::top()).and_then(|budget| budget.launches);
        let launches = self.launches;
        self.launches += 1;
        require(limit.is_none_or(|limit| launches < limit), || {
            format!("{step} is launch {} of at most {limit:?}", launches + 1)
        })
    }

    /// A reviewer's word can only make its findings stricter.
    fn judged(&self, plan: &Plan, before: &State, step: &StepId, verdict: Verdict) -> Result<(), String> {
        let panel = before.panel_of(plan, step);
        let review = panel.as_ref().unwrap_or(step);
        let Some(Kind::Review(review)) = before.definition(plan, review).map(|definition| &definition.kind)
        else {
            return Err(format!("{step} is judged and is no review"));
        };
        let Some(reply) = self.reports.get(step).and_then(|report| report.reply.as_ref()) else {
            return Err(format!("{step} is judged without a reply"));
        };
        let blocking =
            reply.findings.iter().any(|finding| !finding.out_of_scope && finding.severity >= review.block_at);
        let demands = reply.outcome == Outcome::Failed && reply.findings.is_empty();
        require(!(blocking || demands) || verdict >= Verdict::Revise, || {
            format!("{step} demands work and its verdict is {verdict:?}")
        })?;
        let content = matches!(reply.outcome, Outcome::Done | Outcome::Passed) && !blocking;
        require(!content || verdict <= Verdict::PassWithNotes, || {
            format!("{step} demands nothing and its verdict is {verdict:?}")
        })
    }

    /// At the end, whatever passed began after what it needs was through for the last time.
    fn nothing_rests_on_the_past(&self, plan: &Plan, before: &State) -> Result<(), String> {
        let graph = before.graph(plan);
        let listed = |kind: &Kind| matches!(kind, Kind::Review(review) if review.rerun == Rerun::Listed);
        if graph.steps.values().any(|step| listed(&step.kind)) {
            return Ok(());
        }
        for (id, own) in before.steps.iter().filter(|(_, own)| own.scope.is_top()) {
            let (Phase::Passed { .. }, Some(begun)) = (&own.phase, self.begun.get(id)) else { continue };
            for need in graph.steps.get(&own.template).map(|step| step.needs.as_slice()).unwrap_or_default() {
                // An approval that became stale is asked for again; what went on in good faith stays.
                if graph.steps.get(&need.from).is_some_and(|from| matches!(from.kind, Kind::Decision(_))) {
                    continue;
                }
                // It went on without a step that was left out; that one ran later, for an obligation.
                if self.late.contains(&need.from) {
                    continue;
                }
                let through = self.through.get(&need.from).copied().unwrap_or(0);
                require(*begun > through, || format!("{id} rests on an older {}", need.from))?;
            }
        }
        Ok(())
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

/// No more items of a fan-out are at work than it allows, also when lost ones are tried again.
fn works_beside_few(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    for fan in before.fan_outs.keys() {
        let Some(Kind::FanOut(definition)) = before.definition(plan, fan).map(|known| &known.kind) else {
            continue;
        };
        let item = |id: &StepId| {
            let rest = id.as_str().strip_prefix(fan.as_str())?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_owned)
        };
        let Some(own) = item(step) else { continue };
        let mut busy: BTreeSet<String> = before.queues.live.iter().filter_map(item).collect();
        busy.insert(own);
        require(busy.len() <= definition.parallel_max as usize, || {
            format!("{step} starts, and {} items of {fan} are at work", busy.len())
        })?;
    }
    Ok(())
}

fn opens_beside_few(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    let Some(Kind::FanOut(definition)) = before.definition(plan, step).map(|definition| &definition.kind)
    else {
        return Err(format!("{step} opens an item and is no fan-out"));
    };
    let open = before.fan_outs.get(step).map_or(0, |fan_out| fan_out.open);
    require(open < definition.parallel_max, || format!("{step} opens one more item beside {open}"))
}

fn checks_are_green(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(step), before.definition(plan, step)) else {
        return Err(format!("{step} passes and does not exist"));
    };
    let red = definition.checks.iter().find(|check| own.checks.get(*check) != Some(&true));
    let verified = matches!(own.phase, Phase::Verifying { .. });
    match red {
        Some(check) if verified => Err(format!("{step} passes although check {check} is not green")),
        Some(_) | None => Ok(()),
    }
}

fn left_out_rightly(plan: &Plan, before: &State, step: &StepId) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(step), before.definition(plan, step)) else {
        return Err(format!("{step} is left out and does not exist"));
    };
    let closed = definition.gates.iter().any(|gate| {
        let value = own.gates.get(&gate.id);
        gate.hardness == Hardness::Skip
            && (value == Some(&Ok(false)) || !matches!(gate.condition, Condition::Expression { .. }))
    });
    require(closed, || format!("{step} is left out although its condition is not known to be false"))
}

/// Limits are exact: nothing is given up before they are reached.
fn limit_is_reached(plan: &Plan, before: &State, step: &StepId, reason: BlockReason) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(step), before.definition(plan, step)) else {
        return Ok(());
    };
    match reason {
        BlockReason::AttemptsExhausted => require(own.tries >= definition.retry.attempts_max, || {
            format!("{step} gives up after {} of {} attempts", own.tries, definition.retry.attempts_max)
        }),
        BlockReason::Interrupted => require(own.interruptions >= definition.retry.interruptions_max, || {
            format!("{step} gives up after {} interruptions", own.interruptions)
        }),
        _ => Ok(()),
    }
}

/// And nothing goes on after they are.
fn limit_is_not_reached(
    plan: &Plan,
    before: &State,
    step: &StepId,
    class: FailureClass,
) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(step), before.definition(plan, step)) else {
        return Ok(());
    };
    let retry = &definition.retry;
    match class {
        FailureClass::Interrupted => require(own.interruptions < retry.interruptions_max, || {
            format!("{step} goes on after {} interruptions", own.interruptions)
        }),
        _ => require(own.tries < retry.attempts_max, || {
            format!("{step} goes on after {} of {} attempts", own.tries, retry.attempts_max)
        }),
    }
}

fn rounds_are_used_up(plan: &Plan, before: &State, review: &StepId, rounds: u32) -> Result<(), String> {
    let (Some(own), Some(definition)) = (before.steps.get(review), before.definition(plan, review)) else {
        return Ok(());
    };
    let Kind::Review(definition) = &definition.kind else {
        return Err(format!("{review} has used up its rounds and is no review"));
    };
    let allowed = definition.rounds_max + own.granted;
    require(rounds == allowed && own.round == rounds, || {
        format!("{review} gives up in round {rounds} of {allowed}")
    })
}

/// A person said so, about this fan-out, and nothing of it was under way.
fn adopted_rightly(before: &State, steps: &BTreeSet<StepId>, id: &DecisionId) -> Result<(), String> {
    let known = before.decisions.get(id).ok_or_else(|| format!("{id} was never asked"))?;
    let step = &known.decision.step;
    let about =
        matches!(known.decision.about, About::List { .. }) && *steps == BTreeSet::from([step.clone()]);
    require(about && known.answer.as_deref() == Some("adopt"), || {
        format!("nobody adopted the list of {steps:?}")
    })?;
    let open = before.fan_outs.get(step).map(|fan_out| fan_out.open);
    require(open == Some(0), || format!("{open:?} items of {step} were under way"))
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
    let fine = match own.commit.as_deref() {
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
