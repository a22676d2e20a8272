//! What attempts have spent that the state does not know yet: those that are under way spend of the same budget,
//! so each is measured with the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use gatewright_agents::Usage;
use gatewright_core::{
    Left, budget_left,
    ids::StepId,
    plan::Plan,
    state::{Phase, ScopeId, State},
};

/// One attempt.
type Key = (StepId, u32);

/// Shared by all attempts that one engine follows.
#[derive(Debug, Default)]
pub struct Purse {
    spent: Mutex<BTreeMap<Key, Usage>>,
}

/// What an attempt may spend together with those beside it, as it was known when the attempt was prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    key: Key,
    left: Vec<(ScopeId, Left)>,
    /// What these spent is in the state already, and so not in `left` any more.
    settled: BTreeSet<Key>,
}

impl Purse {
    pub fn allowance(&self, plan: &Plan, state: &State, step: &StepId, attempt: u32) -> Allowance {
        let is_live = |(step, number): &Key| {
            state.steps.get(step).is_some_and(|own| own.phase == Phase::Running { attempt: *number })
        };
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        Allowance {
            key: (step.clone(), attempt),
            left: budget_left(plan, state, step),
            settled: spent.keys().filter(|key| !is_live(key)).cloned().collect(),
        }
    }

    /// Notes what an attempt has spent so far; whether all of them together spent more than there was.
    pub fn is_over(&self, allowance: &Allowance, usage: Usage) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.insert(allowance.key.clone(), usage);
        let counts = |scope: &ScopeId, step: &StepId| {
            scope.is_top() || step.as_str().strip_prefix(&scope.0).is_some_and(|rest| rest.starts_with('/'))
        };
        allowance.left.iter().any(|(scope, left)| {
            let beside = || {
                let others = spent.iter().filter(|(key, _)| !allowance.settled.contains(key));
                others.filter(|((step, _), _)| counts(scope, step)).map(|(_, usage)| usage)
            };
            let tokens: u64 = beside().filter_map(Usage::tokens).sum();
            let micro_usd: u64 = beside().filter_map(|usage| usage.micro_usd).sum();
            left.tokens.is_some_and(|left| tokens > left)
                || left.micro_usd.is_some_and(|left| micro_usd > left)
        })
    }
}

impl Allowance {
    pub fn is_limited(&self) -> bool {
        self.left.iter().any(|(_, left)| *left != Left::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(step: &str, scope: &str, tokens: u64, settled: &[&str]) -> Allowance {
        Allowance {
            key: (StepId::new(step), 1),
            left: vec![(ScopeId(scope.to_owned()), Left { tokens: Some(tokens), micro_usd: None })],
            settled: settled.iter().map(|step| (StepId::new(*step), 1)).collect(),
        }
    }

    fn tokens(count: u64) -> Usage {
        Usage { input_tokens: Some(count), ..Usage::default() }
    }

    #[test]
    fn attempts_beside_each_other_spend_of_one_budget() {
        let purse = Purse::default();
        let (one, two) = (allowance("a", "", 1000, &[]), allowance("b", "", 1000, &[]));
        assert!(!purse.is_over(&one, tokens(600)));
        assert!(purse.is_over(&two, tokens(600)));
        assert!(purse.is_over(&one, tokens(600)), "the first notices as well");
        assert!(!purse.is_over(&allowance("c", "", 1000, &["a", "b"]), tokens(600)), "they are settled");
    }

    #[test]
    fn who_is_outside_of_a_scope_does_not_spend_of_its_budget() {
        let purse = Purse::default();
        assert!(!purse.is_over(&allowance("subs/x", "", 5000, &[]), tokens(900)));
        assert!(!purse.is_over(&allowance("sub/a", "sub", 1000, &[]), tokens(600)));
        assert!(purse.is_over(&allowance("sub/b", "sub", 1000, &[]), tokens(600)));
    }
}
