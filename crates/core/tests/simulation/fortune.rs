//! What agents, lists, expressions and people do by chance.

use std::collections::BTreeMap;

use gatewright_core::{
    event::{BlockReason, Decision, Pause},
    fact::{AttemptReport, CommitFact, Item, ProcessEnd, Usage},
    ids::{DecisionId, StepId, Timestamp},
    input::{self, Input, Raise},
    outcome::{Outcome, Question, Reply},
    plan::{Budget, Kind, Plan},
    state::{ItemAside, Phase, RunPhase, ScopeId, State, StepState},
    verdict::{Finding, Severity},
};

use crate::{
    common::{checked, findings, hash, reply, writing},
    plans::passing,
    random::Random,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Every attempt succeeds, every answer passes; only the engine may crash.
    Sunny,
    Stormy,
    /// After the storm.
    Healing,
}

pub struct Fortune {
    pub random: Random,
    pub weather: Weather,
}

impl Fortune {
    /// What an attempt at this step leaves.
    pub fn report(&mut self, plan: &Plan, state: &State, step: &StepId, now: Timestamp) -> AttemptReport {
        let definition = state.definition(plan, step);
        let writes = definition.is_some_and(|definition| !definition.writes.is_empty());
        let command = definition.is_some_and(|definition| matches!(definition.kind, Kind::Check { .. }));
        let back = definition.and_then(|definition| definition.back.first().cloned());
        let reviewer = definition.is_some_and(|definition| matches!(definition.kind, Kind::Review(_)))
            || state.panel_of(plan, step).is_some();
        let mut report = match self.weather {
            Weather::Stormy if reviewer && self.random.chance(40) => self.demands(),
            Weather::Stormy => self.any_report(back, now),
            Weather::Sunny | Weather::Healing => reply(Outcome::Done),
        };
        if command {
            let ok = self.weather != Weather::Stormy || self.random.chance(70);
            report.check = Some(checked(ok, "red"));
        }
        let dry = self.weather == Weather::Stormy && self.random.chance(8);
        if writes && report.reply.is_some() && !dry {
            let content = if self.random.chance(70) { "one" } else { "two" };
            report = writing(report, &[("out.md", content)]);
        } else if writes && report.reply.is_some() {
            report = writing(report, &[("out.md", "")]);
        }
        if let (Some(artifact), true) = (state.artifacts.get("out.md"), self.random.chance(60)) {
            report.inputs.push(("out.md".into(), artifact.hash.clone()));
        }
        report.usage = self.random.chance(70).then_some(Usage { tokens: Some(100), micro_usd: Some(50_000) });
        report.work = self.random.chance(80).then(|| hash(&format!("work{}", self.random.below(3))));
        report
    }

    fn any_report(&mut self, back: Option<StepId>, now: Timestamp) -> AttemptReport {
        let blank = |ended| AttemptReport::new(ended);
        match self.random.below(32) {
            0 => blank(ProcessEnd::Interrupted),
            1 => blank(ProcessEnd::TimedOut),
            2 => blank(ProcessEnd::Idle),
            3 => blank(ProcessEnd::Exited { code: 1 }),
            4 => blank(ProcessEnd::Exited { code: 0 }),
            5 => blank(ProcessEnd::StartFailed { message: "no such program".to_owned() }),
            6 => {
                let until = Timestamp((now.0 + 4_000).saturating_sub(self.random.below(5_000)));
                AttemptReport { quota_until: Some(until), ..blank(ProcessEnd::Exited { code: 1 }) }
            }
            7 => missing(&mut self.random),
            8 => reply(Outcome::Error),
            9 => reply(Outcome::NeedsInput),
            10 | 11 => asking(self.random.between(1, 3)),
            12 => {
                let mut report = reply(Outcome::Blocked);
                let complex = self.random.chance(50);
                if let (Some(reply), true) = (&mut report.reply, complex) {
                    reply.reason = Some("complexity".to_owned());
                }
                report
            }
            13..=17 => self.demands(),
            18 => findings(Outcome::Passed, &[Severity::Low]),
            19 => with_reply(|reply| reply.findings = vec![Finding::new(Severity::Critical, "bad")]),
            20 | 21 if back.is_some() => with_reply(|reply| reply.back_to = back),
            22 => with_reply(|reply| reply.back_to = Some("nowhere".into())),
            23 => AttemptReport {
                contradictions: vec!["src/x does not exist".to_owned()],
                ..reply(Outcome::Done)
            },
            _ => reply(Outcome::Done),
        }
    }

    /// A reviewer is not content, or an agent reports failure.
    fn demands(&mut self) -> AttemptReport {
        let count = self.random.between(0, 2) as usize;
        let mut report = findings(Outcome::Failed, &vec![Severity::High; count]);
        let word = self.random.below(2);
        for finding in report.reply.iter_mut().flat_map(|reply| &mut reply.findings) {
            finding.problem = format!("problem {word}");
        }
        report
    }

    /// The list of a fan-out.
    pub fn list(&mut self, state: &State) -> Result<Vec<Item>, String> {
        let bad = self.weather == Weather::Stormy && self.random.chance(12);
        if bad && self.random.chance(50) {
            return Err("not a list".to_owned());
        }
        // Mostly the same list again: what was done for it may be kept.
        let again = state.set_aside.values().next().cloned().unwrap_or_default();
        if !bad && !again.is_empty() && self.random.chance(70) {
            let kept: BTreeMap<_, _> = again.iter().filter(|_| self.random.chance(85)).collect();
            let needs = |aside: &ItemAside| {
                aside.needs.iter().filter(|need| kept.contains_key(*need)).cloned().collect()
            };
            return Ok(kept
                .iter()
                .map(|(key, aside)| Item {
                    key: (*key).clone(),
                    needs: needs(aside),
                    element: Some(aside.element.clone()),
                })
                .collect());
        }
        let count = self.random.between(0, 4);
        let mut items: Vec<Item> = (0..count)
            .map(|place| {
                let needs = (0..place).filter(|_| self.random.chance(40)).map(|other| format!("k{other}"));
                let needs: Vec<String> = needs.collect();
                let word = self.random.below(2);
                let element = self.random.chance(90).then(|| hash(&format!("k{place} {word}")));
                Item { key: format!("k{place}"), needs, element }
            })
            .collect();
        if let (true, Some(first)) = (bad, items.first_mut()) {
            first.needs.push("k9".to_owned());
        }
        Ok(items)
    }

    /// The value of an expression gate.
    pub fn gate(&mut self) -> Result<bool, String> {
        match self.random.below(10) {
            _ if self.weather != Weather::Stormy => Ok(true),
            0 => Err("undefined".to_owned()),
            1..=3 => Ok(false),
            _ => Ok(true),
        }
    }

    /// What comes of a commit; one that is in the repository already is found again.
    pub fn commit(&mut self, known: bool) -> CommitFact {
        match self.random.below(10) {
            0 if self.weather == Weather::Stormy && !known => {
                CommitFact::Refused { message: "`.env` looks like a secret".to_owned() }
            }
            1 if !known => CommitFact::Nothing,
            _ => CommitFact::Made { commit: "c0ffee".to_owned(), branch: "b".to_owned(), files: 1 },
        }
    }

    /// What a check after an attempt says.
    pub fn check(&mut self) -> gatewright_core::fact::CheckFact {
        let ok = self.weather != Weather::Stormy || self.random.chance(75);
        let message = if self.random.chance(50) { "red" } else { "very red" };
        checked(ok, message)
    }

    /// How a person answers.
    pub fn answer(&mut self, id: &DecisionId, decision: &Decision) -> input::Answer {
        let word = match self.weather {
            Weather::Stormy if self.random.chance(10) => Some("hmm".to_owned()),
            Weather::Stormy => self.random.pick(&decision.answers).map(|answer| answer.word.clone()),
            Weather::Sunny | Weather::Healing => {
                let best = decision.answers.iter().min_by_key(|answer| passing(&answer.effect));
                best.map(|answer| answer.word.clone())
            }
        };
        input::Answer {
            decision: id.clone(),
            value: word.unwrap_or_else(|| "some text".to_owned()),
            comment: (self.weather == Weather::Healing || self.random.chance(20))
                .then(|| "because".to_owned()),
            route: None,
            confirmed: self.weather != Weather::Stormy || self.random.chance(80),
            channel: "terminal".to_owned(),
            seen: BTreeMap::new(),
        }
    }

    /// What people do without being asked.
    pub fn order(&mut self, plan: &Plan, state: &State) -> Input {
        let steps: Vec<StepId> = state.steps.keys().cloned().collect();
        let decisions: Vec<DecisionId> = state.decisions.keys().cloned().collect();
        match self.random.below(18) {
            0 | 1 => Input::Stop,
            2..=6 => Input::Resume { raise: self.raise(state), substitutes: BTreeMap::new() },
            7 => Input::RestartStage { stage: "stage0".into(), reason: "again".to_owned() },
            8 => Input::RestartStage { stage: "stage1".into(), reason: "again".to_owned() },
            9 | 10 => match self.random.pick(&steps) {
                Some(step) => Input::Skip { step: step.clone(), reason: "not needed".to_owned() },
                None => Input::Tick,
            },
            11 => match self.random.pick(&decisions) {
                Some(decision) => {
                    Input::CancelDecision { decision: decision.clone(), reason: "later".to_owned() }
                }
                None => Input::Tick,
            },
            12 => match self.random.pick(&decisions) {
                Some(decision) => Input::GiveUpDecision { decision: decision.clone() },
                None => Input::Tick,
            },
            13 => Input::Adopt { digest: "same".to_owned() },
            14 | 15 => self.closed_gate(plan, state).unwrap_or(Input::Tick),
            16 if self.random.chance(20) => Input::Abort { reason: "enough".to_owned() },
            _ => match self.random.pick(&decisions).and_then(|id| state.decisions.get_key_value(id)) {
                Some((id, asked)) => Input::Answer(self.answer(id, &asked.decision)),
                None => Input::Tick,
            },
        }
    }

    /// New limits for whatever has run out.
    pub fn raise(&mut self, state: &State) -> Raise {
        let more = self.weather == Weather::Healing || self.random.chance(50);
        let much = if self.weather == Weather::Healing { u64::MAX / 4 } else { 1_000_000 };
        let limit = more.then_some(much);
        // Only what is limited can be raised, and only to more than it is.
        let paused = match &state.phase {
            RunPhase::Paused(Pause::Budget { scope: Some(step), .. }) => ScopeId(step.as_str().to_owned()),
            _ => ScopeId::top(),
        };
        let known = [ScopeId::top(), paused].map(|scope| state.budgets.get(&scope).cloned());
        let known = known.iter().flatten();
        let top = |of: fn(&Budget) -> Option<u64>| {
            let most = known.clone().filter_map(of).max();
            most.and(limit).map(|limit| limit.max(most.unwrap_or(0) + 1))
        };
        Raise {
            wall_ms: top(|budget| budget.wall_ms),
            tokens: top(|budget| budget.tokens),
            micro_usd: top(|budget| budget.micro_usd),
            launches: top(|budget| budget.launches),
            quota_wait_ms: match state.phase {
                RunPhase::Paused(Pause::Quota { waited_ms, .. }) => limit.map(|limit| limit.max(waited_ms)),
                _ => None,
            },
        }
    }

    /// The waiver of some gate that blocks a step.
    pub fn closed_gate(&mut self, plan: &Plan, state: &State) -> Option<Input> {
        let shut = |own: &StepState| matches!(own.phase, Phase::Blocked { reason: BlockReason::Gate, .. });
        let steps: Vec<StepId> =
            state.steps.iter().filter(|(_, own)| shut(own)).map(|(id, _)| id.clone()).collect();
        let step = self.random.pick(&steps)?.clone();
        let gates: Vec<_> = state.definition(plan, &step)?.gates.iter().map(|gate| gate.id.clone()).collect();
        let gate = self.random.pick(&gates)?.clone();
        Some(Input::WaiveGate { step, gate: Some(gate), reason: "it is fine".to_owned() })
    }
}

fn with_reply(edit: impl FnOnce(&mut Reply)) -> AttemptReport {
    let mut report = reply(Outcome::Done);
    if let Some(reply) = &mut report.reply {
        edit(reply);
    }
    report
}

fn asking(count: u32) -> AttemptReport {
    let mut report = reply(Outcome::NeedsInput);
    if let Some(reply) = &mut report.reply {
        reply.questions = (0..count)
            .map(|place| Question {
                question: format!("question {place}?"),
                options: if place == 1 { vec!["left".to_owned(), "right".to_owned()] } else { Vec::new() },
                recommendation: None,
                security: place == 2,
            })
            .collect();
    }
    report
}

fn missing(random: &mut Random) -> AttemptReport {
    use gatewright_core::fact::InputProblem;
    let problem = if random.chance(50) {
        InputProblem::Missing { name: "in.md".to_owned(), near: Vec::new(), available: Vec::new() }
    } else {
        InputProblem::Changed { name: "out.md".into(), expected: hash("one"), found: hash("by hand") }
    };
    AttemptReport::new(ProcessEnd::NotStarted { problem })
}
