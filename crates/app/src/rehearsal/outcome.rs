//! How a played scenario compares with what its script expects; for people and as JSON.

use std::collections::BTreeMap;

use gatewright_core::explain;
use gatewright_host::document;
use serde_json::{Value, json};

use super::{
    order::{first_difference, order_of},
    performance::Played,
    scenario::Expect,
};

/// One thing that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    pub expected: String,
    pub found: String,
}

/// What happened, in the terms of `expect`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub state: String,
    pub order: Vec<String>,
    pub attempts: BTreeMap<String, u64>,
    pub rounds: BTreeMap<String, u64>,
    pub steps: BTreeMap<String, String>,
    pub files: Vec<String>,
    pub decisions: BTreeMap<String, String>,
    pub blocked_by: Option<(String, String)>,
    pub events: Vec<String>,
    pub refused: Vec<String>,
}

impl Outcome {
    pub fn of(played: &Played) -> Outcome {
        let state = &played.snapshot.state;
        let event_type = |event| {
            serde_json::to_value(event)
                .ok()
                .and_then(|value: Value| value.get("type")?.as_str().map(str::to_owned))
        };
        let by = explain::blocked_by(&played.snapshot.frozen.plan, state);
        Outcome {
            state: played.snapshot.state_word().to_owned(),
            order: order_of(&played.events),
            attempts: state.steps.iter().map(|(id, own)| (id.to_string(), u64::from(own.attempts))).collect(),
            rounds: state
                .steps
                .iter()
                .map(|(id, own)| (id.to_string(), u64::from(document::rounds(own))))
                .collect(),
            steps: state
                .steps
                .iter()
                .map(|(id, own)| (id.to_string(), document::step_word(state, id, own).to_owned()))
                .collect(),
            files: played.files.iter().cloned().collect(),
            decisions: state
                .decisions
                .values()
                .filter_map(|other| Some((other.decision.id.to_string(), other.answer.clone()?)))
                .collect(),
            blocked_by: by.map(|by| (by.reason, by.message)),
            events: played.events.iter().filter_map(event_type).collect(),
            refused: played.refused.clone(),
        }
    }

    /// Everything that is not as expected. Without a word about the state, `done` is expected.
    pub fn differences(&self, expect: &Expect) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut differs = |what: String, expected: String, was: String| {
            if expected != was {
                found.push(Difference { what, expected, found: was });
            }
        };
        differs(
            "state".to_owned(),
            expect.state.clone().unwrap_or_else(|| "done".to_owned()),
            self.state_with_reason(expect),
        );
        for (step, expected) in &expect.attempts {
            differs(format!("attempts of `{step}`"), expected.to_string(), number(&self.attempts, step));
        }
        for (step, expected) in &expect.rounds {
            differs(format!("rounds of `{step}`"), expected.to_string(), number(&self.rounds, step));
        }
        for (step, expected) in &expect.steps {
            differs(
                format!("state of `{step}`"),
                expected.clone(),
                self.steps.get(step).cloned().unwrap_or_else(|| "no such step".to_owned()),
            );
        }
        for (decision, expected) in &expect.decisions {
            let was = self.decisions.get(decision).cloned().unwrap_or_else(|| "no answer".to_owned());
            differs(format!("answer of `{decision}`"), expected.clone(), was);
        }
        if let Some(expected) = &expect.blocked_by {
            let was = self.blocked_by.as_ref().map_or("nothing".to_owned(), |(reason, _)| reason.clone());
            differs("blocked by".to_owned(), expected.clone(), was);
        }
        for name in expect.files.iter().filter(|name| !self.files.contains(*name)) {
            differs(format!("file `{name}`"), "published".to_owned(), "not there".to_owned());
        }
        for refused in &self.refused {
            differs("the script".to_owned(), "taken".to_owned(), format!("refused: {refused}"));
        }
        found.extend(self.order_difference(expect));
        found.extend(self.missing_event(expect));
        found
    }

    /// An unexpected rest is told with its reason: that is what one wants to know next.
    fn state_with_reason(&self, expect: &Expect) -> String {
        let expected = expect.state.as_deref().unwrap_or("done");
        match &self.blocked_by {
            Some((_, message)) if self.state != expected => format!("{} ({message})", self.state),
            _ => self.state.clone(),
        }
    }

    fn order_difference(&self, expect: &Expect) -> Option<Difference> {
        let expected = expect.order.as_ref()?;
        let (at, wanted) = first_difference(expected, &self.order)?;
        let entry = |group: &Vec<String>| {
            if group.len() == 1 { group[0].clone() } else { format!("[{}]", group.join(", ")) }
        };
        let there = self.order.get(at).map_or("the end".to_owned(), |step| format!("`{step}`"));
        Some(Difference {
            what: format!("order, place {}: expected {wanted}, found {there}", at + 1),
            expected: expected.iter().map(entry).collect::<Vec<_>>().join(", "),
            found: self.order.join(", "),
        })
    }

    fn missing_event(&self, expect: &Expect) -> Option<Difference> {
        let mut happened = self.events.iter();
        let missing = expect.events.iter().find(|wanted| !happened.any(|event| event == *wanted))?;
        Some(Difference {
            what: format!("events: `{missing}` is missing or out of order"),
            expected: expect.events.join(", "),
            found: self.events.join(", "),
        })
    }

    pub fn to_json(&self) -> Value {
        json!({
            "state": self.state,
            "order": self.order,
            "attempts": self.attempts,
            "rounds": self.rounds,
            "steps": self.steps,
            "files": self.files,
            "decisions": self.decisions,
            "blocked_by": self.blocked_by.as_ref().map(|(reason, message)| json!({"reason": reason, "message": message})),
            "refused": self.refused,
        })
    }
}

fn number(of: &BTreeMap<String, u64>, step: &str) -> String {
    of.get(step).map_or("no such step".to_owned(), u64::to_string)
}

impl Difference {
    /// Three lines: what, expected, found.
    pub fn lines(&self) -> String {
        format!("  {}\n    expected: {}\n    found:    {}\n", self.what, self.expected, self.found)
    }

    pub fn to_json(&self) -> Value {
        json!({"what": self.what, "expected": self.expected, "found": self.found})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_compared() {
        let outcome = Outcome { state: "done".to_owned(), order: vec!["a".to_owned()], ..Outcome::default() };
        assert_eq!(outcome.differences(&Expect::default()), Vec::new());
    }

    #[test]
    fn every_difference_is_named() {
        let outcome = Outcome {
            state: "blocked".to_owned(),
            order: ["a", "b"].map(str::to_owned).to_vec(),
            attempts: BTreeMap::from([("a".to_owned(), 2)]),
            blocked_by: Some(("gate".to_owned(), "b: closed".to_owned())),
            events: ["run.started", "step.passed"].map(str::to_owned).to_vec(),
            ..Outcome::default()
        };
        let expect = Expect {
            order: Some(vec![vec!["a".to_owned()], vec!["c".to_owned()]]),
            attempts: BTreeMap::from([("a".to_owned(), 1), ("x".to_owned(), 1)]),
            files: vec!["plan.md".to_owned()],
            events: ["step.passed", "run.started"].map(str::to_owned).to_vec(),
            ..Expect::default()
        };
        let shown: String = outcome.differences(&expect).iter().map(Difference::lines).collect();
        for part in [
            "blocked (b: closed)",
            "attempts of `a`",
            "no such step",
            "file `plan.md`",
            "place 2: expected `c`, found `b`",
            "`run.started` is missing",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }
}
