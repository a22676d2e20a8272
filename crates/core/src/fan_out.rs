//! Fan-outs: which item opens next, when the whole is through, and what a list must be like.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    decide::Rejected,
    decision,
    event::{About, BlockReason, Cause, Event, ItemEnd},
    fact::{Item, ListNow},
    ids::{ArtifactName, ContentHash, StepId},
    plan::{Answer, AnswerEffect, FanOut, ItemFailure, Kind, Plan},
    restart,
    state::{DecisionState, DecisionStatus, FanOutState, Phase, ScopeId, State, StepState},
};

/// What is wrong with a generated list, exactly enough for its author to mend it (J-28).
pub fn validate(fan_out: &FanOut, items: &[Item]) -> Result<(), String> {
    if items.len() > fan_out.items_max {
        return Err(format!(
            "the list has {} items, at most {} are allowed (`items_max`)",
            items.len(),
            fan_out.items_max
        ));
    }
    let mut problems = Vec::new();
    let mut keys = BTreeSet::new();
    for (place, item) in items.iter().enumerate() {
        let usable = !item.key.is_empty()
            && item.key != "."
            && item.key != ".."
            && !item.key.contains(['/', '\\', '\0', '\n']);
        if !usable {
            problems.push(format!(
                "item {} has the id `{}`, which cannot be a file name",
                place + 1,
                item.key.escape_debug()
            ));
        }
        if !keys.insert(item.key.as_str()) {
            problems.push(format!("the id `{}` is used twice", item.key));
        }
    }
    for item in items {
        for need in &item.needs {
            if *need == item.key {
                problems.push(format!("`{}` depends on itself", item.key));
            } else if !keys.contains(need.as_str()) {
                problems.push(format!("`{}` depends on `{need}`, which is not in the list", item.key));
            }
        }
    }
    if problems.is_empty()
        && let Some(cycle) = find_cycle(items)
    {
        problems.push(format!("the dependencies run in a circle: {}", cycle.join(" → ")));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn find_cycle(items: &[Item]) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, &[String]> =
        items.iter().map(|item| (item.key.as_str(), item.needs.as_slice())).collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in needs.keys() {
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&str> = BTreeSet::from([*start]);
        while let Some((key, next)) = path.last_mut() {
            if done.contains(key) {
                on_path.remove(*key);
                path.pop();
                continue;
            }
            let Some(need) = needs.get(key).and_then(|list| list.get(*next)) else {
                done.insert(key);
                on_path.remove(*key);
                path.pop();
                continue;
            };
            *next += 1;
            if on_path.contains(need.as_str()) {
                let from = path.iter().position(|(key, _)| *key == need.as_str()).unwrap_or(0);
                let mut cycle: Vec<String> = path[from..].iter().map(|(key, _)| (*key).to_owned()).collect();
                cycle.push(need.clone());
                return Some(cycle);
            }
            if !done.contains(need.as_str()) {
                on_path.insert(need);
                path.push((need, 0));
            }
        }
    }
    None
}

/// The list was read: the fan-out starts, or its author is told why it cannot.
pub fn list_read(
    plan: &Plan,
    state: &State,
    step: &StepId,
    fan_out: &FanOut,
    hash: &ContentHash,
    items: &Result<Vec<Item>, String>,
) -> Vec<Event> {
    let problem = match items {
        Ok(items) => match validate(fan_out, items) {
            Ok(()) => {
                return vec![Event::FanOutStarted {
                    step: step.clone(),
                    hash: hash.clone(),
                    items: items.clone(),
                }];
            }
            Err(problem) => problem,
        },
        Err(problem) => problem.clone(),
    };
    let reason = format!("`{}` cannot be worked on: {problem}", fan_out.over);
    let Some(own) = state.steps.get(step) else { return Vec::new() };
    if let Some(author) = fan_out.planned_by.as_ref().map(|template| state.sibling(plan, own, template))
        && let (Some(planner), Some(definition)) = (state.steps.get(&author), state.definition(plan, &author))
        && planner.bad_lists + 1 < definition.retry.attempts_max
    {
        return restart::redo(plan, state, &BTreeSet::from([author]), Cause::BadList { reason }, None);
    }
    vec![Event::StepBlocked { step: step.clone(), reason: BlockReason::BadList, message: reason }]
}

/// What becomes of a list that is no longer what its fan-out at work began with (J-41): a person is asked, once for
/// each version of it, and nothing changes before they say so.
pub fn list_changed(
    plan: &Plan,
    state: &State,
    step: &StepId,
    name: &ArtifactName,
    now: &ListNow,
) -> Result<Vec<Event>, Rejected> {
    let open = state.steps.get(step).is_some_and(|own| own.phase == Phase::Open);
    let Some(fan_out) = state.fan_outs.get(step).filter(|_| open) else {
        return Err(Rejected::NotExpected { step: step.clone() });
    };
    let asked = question_of(state, fan_out);
    let pending = asked.filter(|known| known.status == DecisionStatus::Pending);
    let withdrawn = |reason: &str| {
        let skip = |known: &DecisionState| Event::DecisionSkipped {
            id: known.decision.id.clone(),
            reason: reason.to_owned(),
        };
        pending.map(skip).into_iter().collect::<Vec<_>>()
    };
    Ok(match now {
        ListNow::AsItBegan => withdrawn("the list says again what it said when it began"),
        ListNow::Unusable => withdrawn("the list cannot be used any more"),
        ListNow::Changed { found, .. } if asked.is_some_and(|known| is_settled(known, found)) => Vec::new(),
        // It takes the place of one that is pending: the fan-out must not end between the two.
        ListNow::Changed { found, what } => {
            let decision = decision::changed_list(plan, state, step, name, found, what);
            vec![Event::DecisionOpened { decision }]
        }
    })
}

fn question_of<'s>(state: &'s State, fan_out: &FanOutState) -> Option<&'s DecisionState> {
    fan_out.list_asked.as_ref().and_then(|id| state.decisions.get(id))
}

/// Somebody was asked about this very version, and the question was not withdrawn.
fn is_settled(known: &DecisionState, found: &ContentHash) -> bool {
    let stands = match known.status {
        DecisionStatus::Pending | DecisionStatus::Answered | DecisionStatus::Cancelled => true,
        DecisionStatus::Skipped | DecisionStatus::Stale => false,
    };
    stands && matches!(&known.decision.about, About::List { found: asked, .. } if asked == found)
}

fn is_adopted(known: &DecisionState) -> bool {
    let accepts = |answer: &Answer| {
        answer.effect == AnswerEffect::Accept && Some(&answer.word) == known.answer.as_ref()
    };
    known.status == DecisionStatus::Answered && known.decision.answers.iter().any(accepts)
}

/// What happens next in an open fan-out by itself.
pub fn next(plan: &Plan, state: &State, step: &StepId) -> Option<Vec<Event>> {
    let fan_out = state.fan_outs.get(step)?;
    match question_of(state, fan_out).filter(|known| is_adopted(known)) {
        None => next_item(plan, state, step, fan_out).map(|event| vec![event]),
        // What is under way comes to its end first.
        Some(_) if fan_out.open > 0 => None,
        Some(known) => {
            let cause = Cause::ListAdopted { decision: known.decision.id.clone() };
            Some(restart::redo(plan, state, &BTreeSet::from([step.clone()]), cause, None))
        }
    }
}

fn next_item(plan: &Plan, state: &State, step: &StepId, fan_out: &FanOutState) -> Option<Event> {
    let Kind::FanOut(definition) = &state.definition(plan, step)?.kind else { return None };
    if let Some(key) =
        fan_out.doomed.iter().find(|key| fan_out.items.get(*key).is_some_and(|item| item.end.is_none()))
    {
        let by = blockers(fan_out, key);
        return Some(Event::ItemEnded { step: step.clone(), key: key.clone(), end: ItemEnd::Blocked { by } });
    }
    let gone = |key: &&String| !fan_out.items.contains_key(*key);
    if let Some(key) = state.set_aside.get(step).and_then(|aside| aside.keys().find(gone)) {
        return Some(Event::ItemDropped { step: step.clone(), key: key.clone() });
    }
    if let Some(key) = fan_out.ready.front()
        && (!definition.waves || wave_is_open(fan_out, key))
    {
        if asks_for_the_same(state, step, fan_out, key) {
            return Some(Event::ItemKept { step: step.clone(), key: key.clone() });
        }
        if fan_out.open < definition.parallel_max {
            return Some(Event::ItemOpened { step: step.clone(), key: key.clone() });
        }
    }
    let is_asked = question_of(state, fan_out).is_some_and(|known| known.status == DecisionStatus::Pending);
    let through = fan_out.ended as usize == fan_out.items.len() && !is_asked;
    through.then(|| finish(state, step, fan_out, definition))
}

/// The fan-out that has as many items at work as it may, if this step would make one more, and how many these
/// are. Items that were lost and are tried again come back all at once, and have to wait for each other.
pub fn crowded(plan: &Plan, state: &State, step: &StepId) -> Option<(StepId, u32)> {
    let mut scope = state.steps.get(step)?.scope.0.as_str();
    while let Some((fan, _)) = scope.rsplit_once('/') {
        if let Some(fan_out) = state.fan_outs.get(fan)
            && let Some(Kind::FanOut(definition)) =
                state.definition(plan, &StepId::new(fan)).map(|definition| &definition.kind)
            && fan_out.open > definition.parallel_max
            && !live_items(state, fan).any(|item| item == scope)
            && live_items(state, fan).count() >= definition.parallel_max as usize
        {
            return Some((StepId::new(fan), definition.parallel_max));
        }
        scope = fan;
    }
    None
}

/// The scopes of a fan-out's items in which something is at work.
fn live_items<'s>(state: &'s State, fan: &str) -> impl Iterator<Item = &'s str> {
    let prefix = format!("{fan}/");
    let mut last = "";
    let below = state.queues.live.range(StepId::new(&prefix)..);
    below
        .map(StepId::as_str)
        .map_while(move |id| {
            let rest = id.strip_prefix(prefix.as_str())?;
            let key = rest.split('/').next().unwrap_or(rest);
            Some(&id[..prefix.len() + key.len()])
        })
        // In order of their names, so that the steps of one item follow each other.
        .filter(move |item| *item != std::mem::replace(&mut last, item))
}

/// The author of the list ran again, and for this item nothing has changed: its element is the same,
/// so is everything its steps read, and so is all of what it waits for.
fn asks_for_the_same(state: &State, step: &StepId, fan_out: &FanOutState, key: &str) -> bool {
    let aside = state.set_aside.get(step).and_then(|aside| aside.get(key));
    let (Some(aside), Some(item)) = (aside, fan_out.items.get(key)) else { return false };
    let kept = |need: &String| fan_out.items.get(need).is_some_and(|need| need.kept);
    item.element.as_ref() == Some(&aside.element)
        && item.needs == aside.needs
        && item.needs.iter().all(kept)
        && aside.steps.iter().all(|(id, own)| rests_on_the_same(state, id, own))
}

/// Everything this step read, or showed to a person who answered, is published as it was then.
fn rests_on_the_same(state: &State, id: &StepId, own: &StepState) -> bool {
    let same = |name: &ArtifactName, hash: &ContentHash| {
        state.artifacts.get(name).is_some_and(|artifact| artifact.hash == *hash)
    };
    let shown = state.decisions.get(id.as_str()).map(|known| &known.decision.bound);
    let read = own.report.iter().flat_map(|report| &report.inputs).chain(&own.inputs);
    read.into_iter().all(|(name, hash)| same(name, hash))
        && shown.into_iter().flatten().all(|(name, hash)| same(name, hash))
}

fn blockers(fan_out: &FanOutState, key: &str) -> Vec<String> {
    let needs = fan_out.items.get(key).map(|item| item.needs.as_slice()).unwrap_or_default();
    let lost = |need: &&String| {
        fan_out.items.get(*need).is_some_and(|item| !matches!(item.end, None | Some(ItemEnd::Passed)))
    };
    needs.iter().filter(lost).cloned().collect()
}

/// Every earlier wave has ended.
fn wave_is_open(fan_out: &FanOutState, key: &str) -> bool {
    let wave = fan_out.items.get(key).map_or(0, |item| item.wave);
    fan_out.wave_left.range(..wave).all(|(_, left)| *left == 0)
}

fn finish(state: &State, step: &StepId, fan_out: &FanOutState, definition: &FanOut) -> Event {
    let lost: Vec<&String> = fan_out
        .order
        .iter()
        .filter(|key| fan_out.items.get(*key).is_some_and(|item| item.end != Some(ItemEnd::Passed)))
        .collect();
    if lost.is_empty() {
        let notes = if fan_out.items.is_empty() {
            vec![format!("`{}` holds no items: nothing was done", definition.over)]
        } else {
            notes_inside(state, step)
        };
        return Event::StepPassed { step: step.clone(), notes };
    }
    let names = lost.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(", ");
    let message = format!("{} of {} items did not pass: {names}", lost.len(), fan_out.items.len());
    match definition.on_item_failure {
        ItemFailure::Note if lost.len() < fan_out.items.len() => {
            let notes = [vec![message], notes_inside(state, step)].concat();
            Event::StepPassed { step: step.clone(), notes }
        }
        ItemFailure::Note | ItemFailure::Block => {
            Event::StepBlocked { step: step.clone(), reason: BlockReason::ItemsFailed, message }
        }
    }
}

/// A pass with notes inside a group is no plain pass of the group: who reads only the group sees it.
pub fn notes_inside(state: &State, group: &StepId) -> Vec<String> {
    let prefix = format!("{group}/");
    let noted: Vec<&str> = state
        .steps
        .range(StepId::new(&prefix)..)
        .take_while(|(id, _)| id.as_str().starts_with(&prefix))
        .filter(|(_, own)| matches!(&own.phase, Phase::Passed { notes } if !notes.is_empty()))
        .map(|(id, _)| id.as_str())
        .collect();
    if noted.is_empty() { Vec::new() } else { vec![format!("passed with notes: {}", noted.join(", "))] }
}

/// Nothing moves any more in the scope of one item.
pub fn item_is_quiet(state: &State, owner: &StepId, scope: &ScopeId) -> Option<Event> {
    let key = scope.0.strip_prefix(owner.as_str())?.strip_prefix('/')?.to_owned();
    let item = state.fan_outs.get(owner)?.items.get(&key)?;
    if !item.opened || item.end.is_some() {
        return None;
    }
    let unsatisfied = state.queues.scopes.get(scope).map_or(0, |counts| counts.unsatisfied);
    let end = if unsatisfied == 0 { ItemEnd::Passed } else { ItemEnd::Failed { by: culprits(state, scope) } };
    Some(Event::ItemEnded { step: owner.clone(), key, end })
}

/// The blocked or failed steps of a scope.
pub fn culprits(state: &State, scope: &ScopeId) -> Vec<StepId> {
    state
        .queues
        .blocked
        .iter()
        .chain(state.queues.failed.iter())
        .filter(|id| state.steps.get(*id).is_some_and(|step| step.scope == *scope))
        .cloned()
        .collect()
}

/// A group that is blocked because of what is below it is not tried again as a whole: what is lost
/// below is.
pub fn is_lost_through_children(state: &State, step: &StepId) -> bool {
    let group = state
        .steps
        .get(step)
        .is_some_and(|own| matches!(own.phase, Phase::Blocked { reason: BlockReason::ItemsFailed, .. }));
    let below =
        |id: &StepId| id.as_str().strip_prefix(step.as_str()).is_some_and(|rest| rest.starts_with('/'));
    group && state.queues.blocked.iter().chain(state.queues.failed.iter()).any(below)
}
