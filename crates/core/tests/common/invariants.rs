//! What must hold after every event. Queues are computed again here from the phases alone, by other
//! code than the engine's.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    event::{About, ItemEnd},
    explain::explain_step,
    ids::{PoolId, StepId},
    plan::{Condition, Kind, Plan},
    state::{DecisionStatus, Phase, RunPhase, ScopeId, State, StepState},
};

macro_rules! same {
    ($what:expr, $found:expr, $expected:expr) => {
        match (&$found, &$expected) {
            (found, expected) if found == expected => {}
            (found, expected) => return Err(format!("{}: is {found:?}, should be {expected:?}", $what)),
        }
    };
}

type Check = Result<(), String>;

pub fn check(plan: &Plan, state: &State) -> Check {
    phases(plan, state)?;
    ready(plan, state)?;
    scopes(state)?;
    loops(plan, state)?;
    fan_outs(state)?;
    decisions(state)?;
    limits(plan, state)?;
    explained(plan, state)
}

fn in_phase<'s>(state: &'s State, is: impl Fn(&Phase) -> bool + 's) -> BTreeSet<StepId> {
    state.steps.iter().filter(|(_, own)| is(&own.phase)).map(|(id, _)| id.clone()).collect()
}

fn phases(plan: &Plan, state: &State) -> Check {
    let queues = &state.queues;
    let live = in_phase(state, |phase| matches!(phase, Phase::Running { .. } | Phase::Verifying { .. }));
    same!("live", queues.live, live);
    same!("failed", queues.failed, in_phase(state, |phase| matches!(phase, Phase::Failed { .. })));
    same!("blocked", queues.blocked, in_phase(state, |phase| matches!(phase, Phase::Blocked { .. })));
    let mut used: BTreeMap<PoolId, u32> = BTreeMap::new();
    for id in &live {
        for pool in &state.definition(plan, id).ok_or("no definition")?.pools {
            *used.entry(pool.clone()).or_default() += 1;
        }
    }
    let known =
        queues.pool_use.iter().filter(|(_, count)| **count > 0).map(|(id, count)| (id.clone(), *count));
    same!("pools", known.collect::<BTreeMap<_, _>>(), used);
    for (id, own) in &state.steps {
        if let Phase::Backoff { until } = own.phase {
            same!("backoff", queues.backoff.contains(&(until, id.clone())), true);
        }
        same!(format!("unmet needs of {id}"), own.unmet, unmet(plan, state, own).len() as u32);
    }
    let backing = in_phase(state, |phase| matches!(phase, Phase::Backoff { .. }));
    same!("backoff", queues.backoff.len(), backing.len());
    for (scope, spent) in &state.spent {
        let below = |id: &&StepId| {
            scope.is_top() || id.as_str().strip_prefix(&scope.0).is_some_and(|rest| rest.starts_with('/'))
        };
        same!(format!("live in {scope:?}"), spent.live as usize, live.iter().filter(below).count());
        same!(format!("clock of {scope:?}"), spent.active_since.is_some(), spent.live > 0);
    }
    for (id, attempt) in &queues.superseded {
        let current = state.steps.get(id).map(|own| &own.phase);
        same!("superseded", current == Some(&Phase::Running { attempt: *attempt }), false);
    }
    Ok(())
}

/// Needs of a step that are not satisfied.
pub fn unmet(plan: &Plan, state: &State, own: &StepState) -> Vec<StepId> {
    let needs = state.graph(plan).steps.get(&own.template).map(|step| step.needs.clone()).unwrap_or_default();
    needs
        .iter()
        .map(|edge| sibling(own, &edge.from))
        .filter(|id| !state.steps.get(id).is_some_and(|other| other.phase.is_satisfied()))
        .collect()
}

fn sibling(own: &StepState, template: &StepId) -> StepId {
    let name = template.as_str().rsplit('/').next().unwrap_or_default();
    if own.scope.is_top() { template.clone() } else { own.scope.child(name) }
}

fn ready(plan: &Plan, state: &State) -> Check {
    let queues = &state.queues;
    let (mut openable, mut listing, mut laned) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut gating, mut closed, mut disabled) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (id, own) in &state.steps {
        let definition = state.definition(plan, id).ok_or("no definition")?;
        match (&own.phase, &definition.kind) {
            (Phase::Ready, Kind::Decision(_) | Kind::SubRun { .. }) => openable.insert(id.clone()),
            (Phase::Ready, Kind::Review(review)) if review.reviewers.len() > 1 => openable.insert(id.clone()),
            (Phase::Ready, Kind::FanOut(_)) => listing.insert(id.clone()),
            (Phase::Ready, _) => laned.insert(id.clone()),
            (Phase::Gated, _) => {
                let unknown = definition.gates.iter().any(|gate| {
                    matches!(gate.condition, Condition::Expression { .. })
                        && !own.gates.contains_key(&gate.id)
                        && !own.gates_waived.contains(&gate.id)
                });
                if unknown { gating.insert(id.clone()) } else { closed.insert(id.clone()) }
            }
            _ => false,
        };
        let stage = state.graph(plan).stage(&definition.stage);
        if own.scope.is_top()
            && stage.is_some_and(|stage| stage.disabled.is_some())
            && !own.phase.is_satisfied()
        {
            disabled.insert(id.clone());
        }
    }
    same!("openable", queues.openable.union(&queues.held).cloned().collect::<BTreeSet<_>>(), openable);
    same!("listing", queues.listing, listing);
    same!("gating", queues.gating, gating);
    same!("closed", queues.closed, closed);
    same!("disabled", queues.disabled, disabled);
    let queued: Vec<StepId> = queues.lanes.values().flatten().cloned().collect();
    same!("lanes have no doubles", queued.len(), laned.len());
    same!("lanes", queued.into_iter().collect::<BTreeSet<_>>(), laned);
    Ok(())
}

fn scopes(state: &State) -> Check {
    let mut counts: BTreeMap<ScopeId, (u32, u32)> = BTreeMap::new();
    for own in state.steps.values() {
        let entry = counts.entry(own.scope.clone()).or_default();
        let active = !matches!(
            own.phase,
            Phase::Dormant
                | Phase::Pending
                | Phase::Fixing
                | Phase::Passed { .. }
                | Phase::Failed { .. }
                | Phase::Blocked { .. }
                | Phase::Skipped { .. }
        );
        entry.0 += u32::from(active);
        entry.1 += u32::from(!own.phase.is_satisfied() && own.phase != Phase::Dormant);
    }
    let known = state.queues.scopes.iter().map(|(id, count)| (id.clone(), (count.active, count.unsatisfied)));
    let known: BTreeMap<ScopeId, (u32, u32)> = known.collect();
    for (id, count) in &counts {
        same!(format!("scope {id:?}"), known.get(id), Some(count));
    }
    for (id, count) in &known {
        same!(format!("empty scope {id:?}"), counts.contains_key(id) || *count == (0, 0), true);
    }
    if state.is_over() {
        return Ok(());
    }
    let quiet: BTreeSet<ScopeId> = known
        .iter()
        .filter(|(id, count)| count.0 == 0 && can_end(state, id))
        .map(|(id, _)| id.clone())
        .collect();
    let listed: BTreeSet<ScopeId> =
        state.queues.quiet.iter().filter(|id| can_end(state, id)).cloned().collect();
    same!("quiet", listed, quiet);
    Ok(())
}

fn can_end(state: &State, scope: &ScopeId) -> bool {
    if scope.is_top() || state.steps.get(scope.0.as_str()).is_some_and(|own| own.phase == Phase::Open) {
        return true;
    }
    let Some((fan, key)) = scope.0.rsplit_once('/') else { return false };
    let open = state.steps.get(fan).is_some_and(|own| own.phase == Phase::Open);
    let item = state.fan_outs.get(fan).and_then(|fan_out| fan_out.items.get(key));
    open && item.is_some_and(|item| item.opened && item.end.is_none())
}

fn loops(plan: &Plan, state: &State) -> Check {
    let mut awaited: BTreeMap<StepId, BTreeSet<StepId>> = BTreeMap::new();
    let mut next = BTreeSet::new();
    for (id, own) in &state.steps {
        let Some(looped) = &own.review else { continue };
        if own.phase != Phase::Fixing {
            same!(format!("{id} waits for fixers"), (looped.awaits.len(), looped.fix_queue.len()), (0, 0));
            continue;
        }
        for step in &looped.awaits {
            awaited.entry(step.clone()).or_default().insert(id.clone());
            let phase = state.steps.get(step).map(|own| &own.phase);
            let done = phase.is_none_or(|phase| phase.is_satisfied() || *phase == Phase::Dormant);
            same!(format!("{id} waits for {step}, which is {phase:?}"), done, false);
        }
        same!(
            format!("{id} is fixing something"),
            looped.awaits.is_empty() && looped.fix_queue.is_empty(),
            false
        );
        if looped.awaits.is_empty() {
            next.insert(id.clone());
        }
    }
    same!("awaited_by", state.queues.awaited_by, awaited);
    same!("fix_next", state.queues.fix_next, next);
    for (id, own) in &state.steps {
        let definition = state.definition(plan, id).ok_or("no definition")?;
        if let Kind::Review(review) = &definition.kind {
            let within = own.round <= review.rounds_max + own.granted;
            same!(format!("{id}: round {} of {}", own.round, review.rounds_max), within, true);
        }
    }
    Ok(())
}

fn fan_outs(state: &State) -> Check {
    let open = in_phase(state, |phase| *phase == Phase::Open);
    let expected: BTreeSet<StepId> = open.into_iter().filter(|id| state.fan_outs.contains_key(id)).collect();
    same!("fan_outs", state.queues.fan_outs, expected);
    for (id, fan_out) in &state.fan_outs {
        same!(format!("{id} has its state"), state.steps.contains_key(id), true);
        let items = || fan_out.items.iter();
        for (key, item) in items().filter(|(_, item)| item.kept && item.end == Some(ItemEnd::Passed)) {
            let aside = state.set_aside.get(id).is_some_and(|aside| aside.contains_key(key));
            same!(format!("{id}/{key} is kept and set aside"), aside || !item.opened, false);
        }
        let count = |is: fn(&(bool, bool)) -> bool| {
            items().filter(|(_, item)| is(&(item.opened, item.end.is_some()))).count()
        };
        same!(format!("{id} open"), fan_out.open as usize, count(|(opened, ended)| *opened && !*ended));
        same!(format!("{id} ended"), fan_out.ended as usize, count(|(_, ended)| *ended));
        let lost = |need: &String| !matches!(fan_out.items[need].end, None | Some(ItemEnd::Passed));
        for (key, item) in items() {
            let open_needs =
                item.needs.iter().filter(|need| fan_out.items[*need].end != Some(ItemEnd::Passed));
            same!(format!("{id}/{key} unmet"), item.unmet as usize, open_needs.count());
        }
        let idle = || items().filter(|(_, item)| !item.opened && item.end.is_none());
        let ready: BTreeSet<&String> =
            idle().filter(|(_, item)| item.unmet == 0).map(|(key, _)| key).collect();
        same!(format!("{id} ready"), fan_out.ready.iter().collect::<BTreeSet<_>>(), ready);
        same!(format!("{id} ready has no doubles"), fan_out.ready.len(), ready.len());
        let doomed: BTreeSet<&String> =
            idle().filter(|(_, item)| item.needs.iter().any(lost)).map(|(key, _)| key).collect();
        same!(format!("{id} doomed"), fan_out.doomed.iter().collect::<BTreeSet<_>>(), doomed);
        let mut waves: BTreeMap<u32, u32> = BTreeMap::new();
        for (_, item) in items() {
            *waves.entry(item.wave).or_default() += u32::from(item.end.is_none());
        }
        same!(format!("{id} waves"), fan_out.wave_left, waves);
    }
    Ok(())
}

fn decisions(state: &State) -> Check {
    let pending: BTreeSet<_> = state
        .decisions
        .iter()
        .filter(|(_, decision)| decision.status == DecisionStatus::Pending)
        .map(|(id, _)| id.clone())
        .collect();
    same!("pending decisions", state.queues.pending_decisions, pending);
    let asked = state.queues.obligation_asked.iter().all(|id| pending.contains(id));
    same!("the question of the run is pending", asked, true);
    for id in &pending {
        let step = &state.decisions[id].decision.step;
        if matches!(state.decisions[id].decision.about, About::Obligation { .. }) {
            same!("the question of the run", state.queues.obligation_asked.as_ref(), Some(id));
            continue;
        }
        if matches!(state.decisions[id].decision.about, About::List { .. }) {
            let open = state.steps.get(step).is_some_and(|own| own.phase == Phase::Open);
            let asked = state.fan_outs.get(step).and_then(|fan_out| fan_out.list_asked.as_ref());
            same!(format!("{step} is asked about its list"), (open, asked), (true, Some(id)));
            continue;
        }
        let waits = state.steps.get(step).is_some_and(|own| own.phase == Phase::Waiting);
        same!(format!("{step} waits for {id}"), waits, true);
    }
    if state.is_over() {
        return Ok(());
    }
    for (id, own) in state.steps.iter().filter(|(_, own)| own.phase == Phase::Waiting) {
        let asked = pending.iter().any(|decision| state.decisions[decision].decision.step == *id);
        same!(
            format!("{id} is waited for ({:?})", own.cause),
            asked || state.queues.due.contains_key(id),
            true
        );
    }
    for id in state.queues.stale.keys() {
        same!("stale decisions are about steps", state.decisions[id].decision.about, About::Step);
    }
    Ok(())
}

fn limits(plan: &Plan, state: &State) -> Check {
    for (id, own) in &state.steps {
        let retry = &state.definition(plan, id).ok_or("no definition")?.retry;
        same!(
            format!("{id}: try {} of {}", own.tries, retry.attempts_max),
            own.tries <= retry.attempts_max,
            true
        );
    }
    let pools = &state.graph(plan).pools;
    for (pool, used) in &state.queues.pool_use {
        same!(format!("pool {pool}"), used <= &pools[pool], true);
    }
    alone_in_the_checkout(plan, state)
}

/// Decision 27: of two steps whose tenures exclude each other, at most one is live.
fn alone_in_the_checkout(plan: &Plan, state: &State) -> Check {
    let tenure = |id: &StepId| state.definition(plan, id).and_then(|step| step.tenure.clone());
    for (id, own) in state.queues.live.iter().filter_map(|id| tenure(id).map(|own| (id, own))) {
        let excluded = state.graph(plan).excludes.get(&own).cloned().unwrap_or_default();
        let beside = state.queues.live.iter().filter(|other| *other != id).filter_map(tenure);
        for other in beside {
            same!(format!("{id} beside {other}"), excluded.contains(&other), false);
        }
    }
    Ok(())
}

fn explained(plan: &Plan, state: &State) -> Check {
    if state.phase == RunPhase::Created {
        return Ok(());
    }
    for id in state.steps.keys() {
        let said = explain_step(plan, state, id).is_some_and(|explanation| !explanation.because.is_empty());
        same!(format!("{id} is explained"), said, true);
    }
    Ok(())
}
