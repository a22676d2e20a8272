//! Which ways through a plan were taken: edges, gates, answers, loops, ends of limits, restarts, referrals.

use std::{collections::BTreeMap, fmt::Write as _};

use gatewright_core::{
    event::{About, BlockReason, Event, RunEnd, Skip},
    ids::{StepId, Timestamp},
    plan::{Condition, Exhaustion, Gate, Graph, Hardness, Kind, Plan, Step},
    state::State,
};

use serde_json::{Value, json};

use super::explore::invariant::is_open;

/// What kind of way it is, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A profile in which a run came to its end.
    Profile,
    Edge,
    Gate,
    Answer,
    /// A review sent the work back to these.
    Loop,
    Exhaustion,
    /// A stage that was done again as a whole.
    Restart,
    Referral,
    Escalation,
    Obligation,
}

impl Way {
    pub const ALL: [Way; 10] = [
        Way::Profile,
        Way::Edge,
        Way::Gate,
        Way::Answer,
        Way::Loop,
        Way::Exhaustion,
        Way::Restart,
        Way::Referral,
        Way::Escalation,
        Way::Obligation,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Way::Profile => "profile",
            Way::Edge => "edge",
            Way::Gate => "gate",
            Way::Answer => "answer",
            Way::Loop => "loop",
            Way::Exhaustion => "exhaustion",
            Way::Restart => "restart",
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
    /// All ways of all profiles of the plan, none taken.
    pub fn of(plan: &Plan) -> Coverage {
        let mut coverage = Coverage::default();
        for (profile, graph) in &plan.graphs {
            coverage.know(Way::Profile, profile.to_string());
            for stage in graph.stages.iter().filter(|stage| stage.disabled.is_none()) {
                coverage.know(Way::Restart, stage.id.to_string());
            }
            for (id, step) in graph.steps.iter().filter(|(_, step)| !is_switched_off(step)) {
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
        if let Kind::Decision(question) = &step.kind {
            for answer in &question.answers {
                self.know(Way::Answer, format!("{id}: {}", answer.word));
            }
        }
        if let Some(review) = step.rounds() {
            // Of one round alone nobody is sent back.
            for route in review.fix.iter().filter(|_| review.rounds_max > 1) {
                self.know(Way::Loop, looped(id, &route.steps));
            }
            self.know_exhaustion(id, "rounds", &review.on_exhausted);
        }
        let speaks_itself = matches!(&step.kind, Kind::Review(review) if review.reviewers.len() == 1);
        if works || speaks_itself {
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
            Event::RoundOpened { review, fix, .. } => self.sent_back(plan, state, review, fix),
            Event::RunEnded { how: RunEnd::Done, .. } => self.take(Way::Profile, state.profile.to_string()),
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
            Event::StageRestarted { stage, reason, .. } => {
                self.take(Way::Restart, stage.to_string());
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

    /// A round can serve several routes at once.
    fn sent_back(&mut self, plan: &Plan, state: &State, review: &StepId, fix: &[StepId]) {
        let Some(rounds) = state.definition(plan, review).and_then(|definition| definition.rounds()) else {
            return;
        };
        let sent: Vec<StepId> = fix.iter().map(|step| template(state, step)).collect();
        for route in rounds.fix.iter().filter(|route| route.steps.iter().all(|step| sent.contains(step))) {
            self.take(Way::Loop, looped(&template(state, review), &route.steps));
        }
    }

    /// What a run that is over or rests has walked, by its journal.
    pub fn walk<'e>(&mut self, plan: &Plan, events: impl IntoIterator<Item = (Timestamp, &'e Event)>) {
        (self.exhausting, self.ended) = (None, None);
        let mut state = State::new(plan);
        for (at, event) in events {
            self.before(plan, &state, event);
            state.apply(plan, event, at);
            self.after(plan, &state, event);
        }
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

/// A table of how many ways of which kind were taken, with the names of those that were not.
pub fn table(coverage: &Coverage) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{:<12}{:>9}  never taken", "", "taken");
    for way in Way::ALL {
        let (taken, all) = coverage.count(way);
        if all == 0 {
            continue;
        }
        let mut never = coverage.never(way);
        let first = never.next().unwrap_or("–");
        let _ = writeln!(out, "{:<12}{:>9}  {first}", way.word(), format!("{taken}/{all}"));
        for name in never {
            let _ = writeln!(out, "{:<12}{:>9}  {name}", "", "");
        }
    }
    out
}

pub fn to_json(coverage: &Coverage) -> Value {
    let ways = coverage.ways.iter();
    ways.map(|((way, name), taken)| json!({"kind": way.word(), "name": name, "taken": taken})).collect()
}

/// A step that its profile has not: nothing leads to it.
fn is_switched_off(step: &Step) -> bool {
    let never =
        |gate: &Gate| matches!(&gate.condition, Condition::Expression { source } if source == "false");
    step.gates.iter().any(|gate| gate.hardness == Hardness::Skip && never(gate))
}

fn looped(review: &StepId, fix: &[StepId]) -> String {
    let names: Vec<&str> = fix.iter().map(StepId::as_str).collect();
    format!("{review} → {}", names.join(", "))
}

fn template(state: &State, step: &StepId) -> StepId {
    state.steps.get(step).map_or_else(|| step.clone(), |own| own.template.clone())
}
