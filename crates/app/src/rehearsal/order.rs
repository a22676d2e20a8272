//! In which order the steps of a run began, as scenarios write it.
//!
//! Attempts of one step in one round count once: a crash that is retried, a reply that is asked for
//! again, an agent that waits for an answer do not change what happens in which order.

use std::collections::BTreeSet;

use gatewright_core::{
    event::{About, Event},
    ids::StepId,
};

/// Steps in the order of their beginnings; decisions when they are put.
pub fn order_of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    let mut order: Vec<(StepId, u32)> = Vec::new();
    let mut retrying: BTreeSet<StepId> = BTreeSet::new();
    for event in events {
        match event {
            Event::AttemptStarted { step, round, .. } => {
                let again = retrying.remove(step)
                    || order.last().is_some_and(|(last, at)| last == step && at == round);
                if !again {
                    order.push((step.clone(), *round));
                }
            }
            Event::RetryScheduled { step, .. } | Event::QuotaWaiting { step, .. } => {
                retrying.insert(step.clone());
            }
            Event::DecisionOpened { decision } => match decision.about {
                About::Step => order.push((decision.step.clone(), 0)),
                About::Question { .. } => {
                    retrying.insert(decision.step.clone());
                }
                About::Exhausted { .. }
                | About::Gate { .. }
                | About::HandEdit { .. }
                | About::List { .. }
                | About::PingPong { .. }
                | About::HardStop
                | About::Stalled
                | About::Notes
                | About::Obligation { .. } => {}
            },
            Event::Invalidated { steps, .. } | Event::StageRestarted { steps, .. } => {
                retrying.retain(|step| !steps.contains(step));
            }
            _ => {}
        }
    }
    order.into_iter().map(|(step, _)| step.to_string()).collect()
}

/// Where the expected order and the real one part: the place, and what was expected there.
pub fn first_difference(expected: &[Vec<String>], found: &[String]) -> Option<(usize, String)> {
    let mut at = 0;
    for group in expected {
        let next: Vec<&String> = found.iter().skip(at).take(group.len()).collect();
        let mut missing: Vec<&String> = group.iter().collect();
        for (offset, step) in next.iter().enumerate() {
            match missing.iter().position(|wanted| wanted == step) {
                Some(place) => {
                    missing.remove(place);
                }
                None => return Some((at + offset, words(&missing))),
            }
        }
        at += next.len();
        if !missing.is_empty() {
            return Some((at, words(&missing)));
        }
    }
    (at < found.len()).then(|| (at, "the end".to_owned()))
}

fn words(steps: &[&String]) -> String {
    steps.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(list: &[&[&str]]) -> Vec<Vec<String>> {
        list.iter().map(|group| group.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn groups_are_in_any_order_and_the_rest_is_not() {
        let found = ["plan", "b", "a", "end"].map(str::to_owned);
        assert_eq!(first_difference(&groups(&[&["plan"], &["a", "b"], &["end"]]), &found), None);
        assert_eq!(
            first_difference(&groups(&[&["plan"], &["a"], &["b"]]), &found),
            Some((1, "`a`".to_owned()))
        );
        assert_eq!(
            first_difference(&groups(&[&["plan"], &["a", "b"]]), &found),
            Some((3, "the end".to_owned()))
        );
        assert_eq!(
            first_difference(&groups(&[&["plan"], &["a", "b"], &["end"], &["x"]]), &found),
            Some((4, "`x`".to_owned()))
        );
    }
}
