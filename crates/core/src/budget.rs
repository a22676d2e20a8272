//! What a run may spend, and the pause when it is spent. Sub-runs count against their parents too.

use crate::{
    decide::Rejected,
    event::{BudgetKind, Event, Pause},
    ids::{AgentId, ProfileId, StepId, Timestamp},
    input::Raise,
    plan::{Budget, Kind, Plan, Step, limits},
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

    /// The same, from the id alone: its step may be gone.
    pub(crate) fn budget_scopes_of_id(&self, step: &StepId) -> Vec<ScopeId> {
        let around = |scope: &&ScopeId| {
            scope.is_top() || step.as_str().strip_prefix(&scope.0).is_some_and(|rest| rest.starts_with('/'))
        };
        self.budgets.keys().filter(around).cloned().collect()
    }

    /// An attempt is live: the wall clock runs for everything around it.
    pub(crate) fn clock_starts(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        for scope in self.budget_scopes(plan, step) {
            let spent = self.spent.entry(scope).or_default();
            spent.live += 1;
            spent.active_since.get_or_insert(at);
        }
    }

    pub(crate) fn clock_stops(&mut self, plan: &Plan, step: &StepId, at: Timestamp) {
        for scope in self.budget_scopes(plan, step) {
            let spent = self.spent.entry(scope).or_default();
            spent.live = spent.live.saturating_sub(1);
            if spent.live == 0 {
                spent.rest(at);
            }
        }
    }

    pub(crate) fn clocks_stop(&mut self, at: Timestamp) {
        for spent in self.spent.values_mut() {
            spent.live = 0;
            spent.rest(at);
        }
    }

    pub(crate) fn raise_budget(&mut self, raise: &Raise) {
        let paused = paused_scope(self);
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
        // This limit has a default, and only the run as a whole has it.
        if let Some(limit) = raise.quota_wait_ms {
            let known = self.quota_wait_limit();
            self.budgets.entry(ScopeId::top()).or_default().quota_wait_ms = Some(limit.max(known));
        }
    }

    pub(crate) fn quota_wait_limit(&self) -> u64 {
        self.budgets
            .get(&ScopeId::top())
            .and_then(|budget| budget.quota_wait_ms)
            .unwrap_or(limits::QUOTA_WAIT_MS)
    }

    /// The budget of another profile takes over; a limit that a person raised stays raised.
    pub(crate) fn change_budget(&mut self, plan: &Plan, to: &ProfileId) {
        let (old, new) = (plan.budget_of(&self.profile), plan.budget_of(to));
        let now = self.budgets.entry(ScopeId::top()).or_default();
        let change = |now: &mut Option<u64>, old: Option<u64>, new: Option<u64>| {
            let raised = now.filter(|limit| old.is_some_and(|old| *limit > old));
            *now = new.map(|limit| raised.map_or(limit, |raised| raised.max(limit)));
        };
        change(&mut now.wall_ms, old.wall_ms, new.wall_ms);
        change(&mut now.tokens, old.tokens, new.tokens);
        change(&mut now.micro_usd, old.micro_usd, new.micro_usd);
        change(&mut now.launches, old.launches, new.launches);
        change(&mut now.quota_wait_ms, old.quota_wait_ms, new.quota_wait_ms);
    }
}

impl Spent {
    fn rest(&mut self, at: Timestamp) {
        if let Some(since) = self.active_since.take() {
            self.active_ms += at.since(since);
        }
    }
}

/// A limit that would not be higher than it is, or that is not there, is not raised: whoever asks for
/// that is mistaken about the figures.
pub fn check_raise(state: &State, raise: &Raise) -> Result<(), Rejected> {
    let scopes = [Some(ScopeId::top()), paused_scope(state)];
    let limit = |of: fn(&Budget) -> Option<u64>| {
        let known = scopes.iter().flatten().filter_map(|scope| state.budgets.get(scope)).filter_map(of);
        known.min()
    };
    let wishes = [
        (BudgetWord("usd"), raise.micro_usd, limit(|budget| budget.micro_usd)),
        (BudgetWord("tokens"), raise.tokens, limit(|budget| budget.tokens)),
        (BudgetWord("wall"), raise.wall_ms, limit(|budget| budget.wall_ms)),
        (BudgetWord("launches"), raise.launches, limit(|budget| budget.launches)),
        (BudgetWord("quota_wait"), raise.quota_wait_ms, Some(state.quota_wait_limit())),
    ];
    for (word, wanted, limit) in wishes {
        match (wanted, limit) {
            (None, _) => {}
            (Some(_), None) => return Err(Rejected::NothingToRaise { limit: word.0.to_owned() }),
            (Some(wanted), Some(limit)) if wanted <= limit => {
                return Err(Rejected::NotHigher {
                    limit: word.0.to_owned(),
                    wanted: word.figure(wanted),
                    known: word.figure(limit),
                });
            }
            (Some(_), Some(_)) => {}
        }
    }
    Ok(())
}

fn paused_scope(state: &State) -> Option<ScopeId> {
    match &state.phase {
        RunPhase::Paused(Pause::Budget { scope, .. }) => {
            scope.as_ref().map(|step| ScopeId(step.as_str().to_owned()))
        }
        RunPhase::Paused(
            Pause::Stop | Pause::Until { .. } | Pause::Quota { .. } | Pause::Unwritten { .. },
        )
        | RunPhase::Created
        | RunPhase::Running
        | RunPhase::Stopping
        | RunPhase::Ended { .. } => None,
    }
}

/// The name of a limit as people type it.
struct BudgetWord(&'static str);

impl BudgetWord {
    fn figure(&self, value: u64) -> String {
        match self.0 {
            "usd" => crate::explain::dollars(value),
            "wall" | "quota_wait" => crate::explain::duration(value),
            _ => value.to_string(),
        }
    }
}

/// The pause that is due although something is still at work: its time is up.
pub fn time_is_up(state: &State, now: Timestamp) -> Option<Event> {
    state.spent.iter().filter(|(_, spent)| spent.live > 0).find_map(|(scope, spent)| {
        let limit = state.budgets.get(scope)?.wall_ms?;
        let used = wall_ms(spent, now);
        let place = (!scope.is_top()).then(|| StepId::new(&scope.0));
        let why = Pause::Budget { kind: BudgetKind::Wall, used, limit, scope: place };
        (used >= limit).then_some(Event::RunPaused { why })
    })
}

/// The pause that is due because everything that is left waits for a quota, for longer than it may.
pub fn quota_takes_too_long(plan: &Plan, state: &State, now: Timestamp) -> Option<Event> {
    let queues = &state.queues;
    if state.has_live_attempts() || !queues.gating.is_empty() || !queues.listing.is_empty() {
        return None;
    }
    let limit_ms = state.quota_wait_limit();
    let too_long = |agent: &AgentId| {
        let until = state.quota.get(agent).copied().filter(|until| *until > now)?;
        let waited_ms = state.quota_waited_ms.get(agent).copied().filter(|waited| *waited > limit_ms)?;
        Some(Pause::Quota { agent: agent.clone(), until, waited_ms, limit_ms })
    };
    let later = queues.backoff.iter().map(|(_, id)| state.definition(plan, id).and_then(Step::agent));
    let waiting = later.chain(queues.lanes.keys().map(|lane| lane.agent.as_ref()));
    // One that tries again by itself in time is waited for first.
    let pauses: Option<Vec<Pause>> = waiting.map(|agent| agent.and_then(too_long)).collect();
    pauses?.into_iter().next().map(|why| Event::RunPaused { why })
}

/// The pause that has to come before `step` is started, if any limit is reached.
pub fn exhausted(plan: &Plan, state: &State, step: &StepId, now: Timestamp) -> Option<Event> {
    let launches = state.definition(plan, step).is_some_and(|definition| definition.agent().is_some());
    for scope in state.budget_scopes(plan, step) {
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

/// What is left of tokens and money for an attempt of this step; `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
}

/// What each budget around the step has left. Attempts that are under way have spent of it what is not
/// recorded yet.
pub fn left(plan: &Plan, state: &State, step: &StepId) -> Vec<(ScopeId, Left)> {
    let scopes = state.budget_scopes(plan, step).into_iter();
    let with_budget = scopes.filter_map(|scope| Some((state.budgets.get(&scope)?, scope)));
    with_budget
        .map(|(budget, scope)| {
            let nothing = Spent::default();
            let spent = state.spent.get(&scope).unwrap_or(&nothing);
            let rest = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
            let left = Left {
                tokens: rest(budget.tokens, spent.tokens),
                micro_usd: rest(budget.micro_usd, spent.micro_usd),
            };
            (scope, left)
        })
        .collect()
}

/// What one attempt of this step may be told that it may spend: an equal part of what is left for all that
/// are under way.
pub fn share(plan: &Plan, state: &State, step: &StepId) -> Left {
    let mut share = Left::default();
    for (scope, left) in self::left(plan, state, step) {
        let live = u64::from(state.spent.get(&scope).map_or(1, |spent| spent.live)).max(1);
        let least = |known: Option<u64>, left: Option<u64>| {
            [known, left.map(|left| left / live)].into_iter().flatten().min()
        };
        share.tokens = least(share.tokens, left.tokens);
        share.micro_usd = least(share.micro_usd, left.micro_usd);
    }
    share
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

/// When the first wall budget will be used up, if nothing ends before.
pub fn wall_ends_at(state: &State) -> Option<Timestamp> {
    let ends = |(scope, spent): (&ScopeId, &Spent)| {
        let limit = state.budgets.get(scope)?.wall_ms?;
        Some(spent.active_since?.plus_ms(limit.saturating_sub(spent.active_ms)))
    };
    state.spent.iter().filter_map(ends).min()
}
