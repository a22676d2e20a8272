//! What a run may spend, and the pause when it is spent. Sub-runs count against their parents too.

use crate::{
    event::{BudgetKind, Event, Pause},
    ids::{StepId, Timestamp},
    input::Raise,
    plan::{Budget, Kind, Plan},
    state::{RunPhase, ScopeId, Spent, State},
};

impl State {
    /// Every scope whose budget an attempt of this step counts against: the run, and each sub-run
    /// around it.
    pub(crate) fn budget_scopes(&self, plan: &Plan, step: &StepId) -> Vec<ScopeId> {
        let mut scopes = vec![ScopeId::top()];
        let mut owner = self.steps.get(step).and_then(|state| state.owner.clone());
        while let Some(id) = owner {
            if self
                .definition(plan, &id)
                .is_some_and(|definition| matches!(definition.kind, Kind::SubRun { .. }))
            {
                scopes.push(ScopeId(id.as_str().to_owned()));
            }
            owner = self.steps.get(&id).and_then(|state| state.owner.clone());
        }
        scopes
    }

    pub(crate) fn raise_budget(&mut self, raise: &Raise) {
        let paused = match &self.phase {
            RunPhase::Paused(Pause::Budget { scope, .. }) => {
                scope.as_ref().map(|step| ScopeId(step.as_str().to_owned()))
            }
            RunPhase::Paused(Pause::Stop)
            | RunPhase::Created
            | RunPhase::Running
            | RunPhase::Stopping
            | RunPhase::Ended { .. } => None,
        };
        for scope in [Some(ScopeId::top()), paused].into_iter().flatten() {
            let budget = self.budgets.entry(scope).or_default();
            let lift = |limit: &mut Option<u64>, to: Option<u64>| {
                if let (Some(old), Some(new)) = (limit.as_mut(), to) {
                    *old = new.max(*old);
                }
            };
            lift(&mut budget.wall_ms, raise.wall_ms);
            lift(&mut budget.tokens, raise.tokens);
            lift(&mut budget.micro_usd, raise.micro_usd);
            lift(&mut budget.launches, raise.launches);
        }
    }
}

/// The pause that has to come before `launch` is started, if any limit is reached.
pub fn exhausted(plan: &Plan, state: &State, launch: Option<&StepId>, now: Timestamp) -> Option<Event> {
    let scopes = match launch {
        Some(step) => state.budget_scopes(plan, step),
        None => state.budgets.keys().cloned().collect(),
    };
    let launches = launch.is_some_and(|step| {
        state.definition(plan, step).is_some_and(|definition| definition.agent().is_some())
    });
    for scope in scopes {
        let Some(budget) = state.budgets.get(&scope) else { continue };
        let nothing = Spent::default();
        let spent = state.spent.get(&scope).unwrap_or(&nothing);
        if let Some((kind, used, limit)) = over(budget, spent, launches, now) {
            let scope = (!scope.is_top()).then(|| StepId::new(&scope.0));
            return Some(Event::RunPaused { why: Pause::Budget { kind, used, limit, scope } });
        }
    }
    None
}

fn over(budget: &Budget, spent: &Spent, launches: bool, now: Timestamp) -> Option<(BudgetKind, u64, u64)> {
    let reached = |kind, used, limit: Option<u64>| {
        limit.filter(|limit| used >= *limit).map(|limit| (kind, used, limit))
    };
    reached(BudgetKind::Usd, spent.micro_usd, budget.micro_usd)
        .or_else(|| reached(BudgetKind::Tokens, spent.tokens, budget.tokens))
        .or_else(|| reached(BudgetKind::Wall, wall_ms(spent, now), budget.wall_ms))
        .or_else(
            || if launches { reached(BudgetKind::Launches, spent.launches, budget.launches) } else { None },
        )
}

/// Time during which something was under way.
pub fn wall_ms(spent: &Spent, now: Timestamp) -> u64 {
    spent.active_ms + spent.active_since.map_or(0, |since| now.since(since))
}

/// When the wall budget of the run will be used up, if nothing ends before.
pub fn wall_ends_at(state: &State) -> Option<Timestamp> {
    let limit = state.budgets.get(&ScopeId::top())?.wall_ms?;
    let spent = state.spent.get(&ScopeId::top())?;
    let since = spent.active_since?;
    Some(since.plus_ms(limit.saturating_sub(spent.active_ms)))
}
