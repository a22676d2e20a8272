//! Which ways through a plan were taken: edges, gates, answers, ends of limits, referrals.

use std::collections::BTreeMap;

use gatewright_core::{
    event::{About, BlockReason, Event, Skip},
    ids::StepId,
    plan::{Exhaustion, Graph, Hardness, Kind, Plan},
    state::State,
};

use super::invariant::is_open;

/// What kind of way it is, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Edge,
    Gate,
    Answer,
    Exhaustion,
    Referral,
    Escalation,
    Obligation,
}

impl Way {
    pub const ALL: [Way; 7] =
        [Way::Edge, Way::Gate, Way::Answer, Way::Exhaustion, Way::Referral, Way::Escalation, Way::Obligation];

    pub fn word(self) -> &'static str {
        match self {
            Way::Edge => "edge",
            Way::Gate => "gate",
            Way::Answer => "answer",
            Way::Exhaustion => "exhaustion",
            Way::Referral => "referral",
            Way::Escalation => "escalation",
            Way::Obligation => "obligation",
        }
    }
}

/// Every way of a plan, and whether some path took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub ways: BTreeMap<(Way, String), bool>,
    /// The step whose limit is being found to be used up.
    exhausting: Option<(StepId, &'static str)>,
    /// The step whose attempt ended last.
    ended: Option<StepId>,
}

impl Coverage {
    /// All ways of all profiles that the run can be in, none taken.
    pub fn of(plan: &Plan) -> Coverage {
        let mut coverage = Coverage::default();
        for (profile, graph) in &plan.graphs {
            for (id, step) in &graph.steps {
                for edge in &step.needs {
                    coverage.know(Way::Edge, format!("{} → {id}", edge.from));
                }
                for gate in &step.gates {
                    coverage.know(Way::Gate, format!("{id}: {} holds", gate.id));
                    coverage.know(Way::Gate, format!("{id}: {} is closed", gate.id));
                }
                for target in &step.back {
                    coverage.know(Way::Referral, format!("{id} → {target}"));
                }
                coverage.know_limits(graph, id);
            }
            for (reason, to) in &graph.escalations {
                coverage.know(Way::Escalation, format!("{profile} → {to} ({reason})"));
            }
            for obligation in graph.obligations.iter().filter(|obligation| obligation.else_run.is_some()) {
                coverage.know(Way::Obligation, obligation.name.clone());
            }
        }
        coverage
    }

    fn know_limits(&mut self, graph: &Graph, id: &StepId) {
        let Some(step) = graph.steps.get(id) else { return };
        let works = matches!(
            step.kind,
            Kind::Agent { .. } | Kind::Check { .. } | Kind::Merge { .. } | Kind::Finish { .. }
        );
        match &step.kind {
            Kind::Decision(question) => {
                for answer in &question.answers {
                    self.know(Way::Answer, format!("{id}: {}", answer.word));
                }
            }
            Kind::Review(review) => {
                self.know_exhaustion(id, "rounds", &review.on_exhausted);
                if review.reviewers.len() == 1 {
                    self.know_exhaustion(id, "attempts", &step.retry.on_exhausted);
                }
            }
            Kind::Agent { .. }
            | Kind::Check { .. }
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. }
            | Kind::SubRun { .. } => {}
        }
        if works {
            self.know_exhaustion(id, "attempts", &step.retry.on_exhausted);
        }
    }

    fn know_exhaustion(&mut self, id: &StepId, limit: &str, ways: &[Exhaustion]) {
        for way in ways {
            let word = match way {
                Exhaustion::Ask { answers } => {
                    for answer in answers {
                        self.know(Way::Answer, format!("{id} after {limit}: {}", answer.word));
                    }
                    "ask"
                }
                Exhaustion::Block => "block",
                Exhaustion::CompleteWithNotes => "complete_with_notes",
                Exhaustion::RestartStage { .. } => "restart_stage",
                Exhaustion::Fail => "fail",
            };
            self.know(Way::Exhaustion, format!("{id}: {limit} → {word}"));
        }
    }

    fn know(&mut self, way: Way, name: String) {
        self.ways.entry((way, name)).or_insert(false);
    }

    /// Only ways of the plan are counted; an implied last `block` is none of them.
    fn take(&mut self, way: Way, name: String) {
        if let Some(taken) = self.ways.get_mut(&(way, name)) {
            *taken = true;
        }
    }

    /// What has to be seen in the state before the event.
    pub fn before(&mut self, plan: &Plan, state: &State, event: &Event) {
        match event {
            Event::StepBlocked { step, reason: BlockReason::Gate, .. }
            | Event::StepSkipped { step, why: Skip::Condition, .. } => {
                self.gates(plan, state, step, false);
            }
            Event::DecisionAnswered { id, answer, .. } => {
                let Some(pending) = state.decisions.get(id) else { return };
                let template = template(state, &pending.decision.step);
                match pending.decision.about {
                    About::Step => self.take(Way::Answer, format!("{template}: {answer}")),
                    About::Exhausted { loops } => {
                        let limit = if loops { "rounds" } else { "attempts" };
                        self.take(Way::Answer, format!("{template} after {limit}: {answer}"));
                    }
                    About::Question { .. }
                    | About::Gate { .. }
                    | About::HandEdit { .. }
                    | About::List { .. }
                    | About::PingPong { .. }
                    | About::HardStop
                    | About::Stalled
                    | About::Notes
                    | About::Obligation { .. } => {}
                }
            }
            Event::ProfileEscalated { from, to, reason, .. } => {
                self.take(Way::Escalation, format!("{from} → {to} ({reason})"));
            }
            _ => {}
        }
    }

    /// What has to be seen in the state after the event.
    pub fn after(&mut self, plan: &Plan, state: &State, event: &Event) {
        match event {
            Event::AttemptStarted { step, .. }
            | Event::GroupOpened { step }
            | Event::FanOutStarted { step, .. } => {
                self.begun(plan, state, step);
            }
            Event::AttemptEnded { step, .. } | Event::CheckEnded { step, .. } => {
                self.ended = Some(step.clone());
            }
            Event::DecisionOpened { decision } => match &decision.about {
                About::Step => self.begun(plan, state, &decision.step),
                About::Exhausted { loops } => {
                    let limit = if *loops { "rounds" } else { "attempts" };
                    self.exhausted(state, &decision.step, limit, "ask");
                }
                About::Gate { gate } => {
                    let name = format!("{}: {gate} is closed", template(state, &decision.step));
                    self.take(Way::Gate, name);
                }
                About::Question { .. }
                | About::HandEdit { .. }
                | About::List { .. }
                | About::PingPong { .. }
                | About::HardStop
                | About::Stalled
                | About::Notes
                | About::Obligation { .. } => {}
            },
            Event::GateEvaluated { step, gate, value } => {
                let word = if *value == Ok(true) { "holds" } else { "is closed" };
                self.take(Way::Gate, format!("{}: {gate} {word}", template(state, step)));
            }
            Event::ReferredBack { from, to, .. } => {
                self.take(Way::Referral, format!("{} → {}", template(state, from), template(state, to)));
            }
            Event::ObligationOpened { name, .. } => self.take(Way::Obligation, name.clone()),
            Event::LoopExhausted { review, .. } => self.exhausting = Some((review.clone(), "rounds")),
            Event::StepBlocked { step, reason: BlockReason::RoundsExhausted, .. } => {
                self.exhausted(state, step, "rounds", "block");
            }
            Event::StepBlocked { step, reason: BlockReason::AttemptsExhausted, .. } => {
                self.exhausted(state, step, "attempts", "block");
            }
            Event::StepPassed { step, notes } => {
                self.ended_by_limit(state, step, notes.first(), "complete_with_notes");
            }
            Event::StepFailed { step, message } => self.ended_by_limit(state, step, Some(message), "fail"),
            Event::StageRestarted { reason, .. } => {
                let by_loop = self.exhausting.as_ref().map(|(step, _)| step.clone());
                if let Some(step) = by_loop.or_else(|| self.ended.clone()) {
                    self.ended_by_limit(state, &step, Some(reason), "restart_stage");
                }
            }
            _ => {}
        }
    }

    fn begun(&mut self, plan: &Plan, state: &State, step: &StepId) {
        let Some(definition) = state.definition(plan, step) else { return };
        let template = template(state, step);
        for edge in &definition.needs {
            self.take(Way::Edge, format!("{} → {template}", edge.from));
        }
        self.gates(plan, state, step, true);
    }

    /// The gates of a step that begins hold; of one that does not, those that are not open are closed.
    fn gates(&mut self, plan: &Plan, state: &State, step: &StepId, begun: bool) {
        let (Some(own), Some(definition)) = (state.steps.get(step), state.definition(plan, step)) else {
            return;
        };
        for gate in &definition.gates {
            let open = is_open(plan, state, own, gate).unwrap_or(begun);
            if open == begun && (begun || gate.hardness != Hardness::Soft) {
                let word = if begun { "holds" } else { "is closed" };
                self.take(Way::Gate, format!("{}: {} {word}", template(state, step), gate.id));
            }
        }
    }

    /// The core's words for used-up attempts and rounds tell an end by a limit from any other.
    fn ended_by_limit(&mut self, state: &State, step: &StepId, words: Option<&String>, way: &str) {
        let limit = match (&self.exhausting, words) {
            (Some((review, limit)), _) if review == step => limit,
            (_, Some(words)) if words.contains("attempts failed") => "attempts",
            _ => return,
        };
        self.exhausted(state, step, limit, way);
    }

    fn exhausted(&mut self, state: &State, step: &StepId, limit: &str, way: &str) {
        self.exhausting = None;
        self.take(Way::Exhaustion, format!("{}: {limit} → {way}", template(state, step)));
    }

    /// Taken and all ways of one kind.
    pub fn count(&self, way: Way) -> (usize, usize) {
        let of_kind = self.ways.iter().filter(|((kind, _), _)| *kind == way);
        of_kind.fold((0, 0), |(taken, all), (_, hit)| (taken + usize::from(*hit), all + 1))
    }

    pub fn never(&self, way: Way) -> impl Iterator<Item = &str> {
        self.ways
            .iter()
            .filter(move |((kind, _), hit)| *kind == way && !**hit)
            .map(|((_, name), _)| name.as_str())
    }
}

fn template(state: &State, step: &StepId) -> StepId {
    state.steps.get(step).map_or_else(|| step.clone(), |own| own.template.clone())
}
