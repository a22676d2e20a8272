//! A workflow or a run as boxes and arrows, for any format. Pure over plan and state.

pub mod dot;
pub mod layout;
pub mod mermaid;
pub mod svg;

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::{StageId, StepId},
    plan::{AnswerEffect, Condition, Exhaustion, Gate, Graph, Hardness, Kind, Step},
    state::State,
};
use gatewright_host::document::step_word;

use crate::render::text::one_line;

/// Everything that is drawn, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    pub title: String,
    pub stages: Vec<Frame>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// A frame around nodes: a stage, a fan-out, a sub-run, a panel of reviewers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub title: String,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// Index in [`Picture::nodes`].
    Node(usize),
    Frame(Frame),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Work,
    Review,
    Check,
    Decision,
    Group,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub step: StepId,
    pub shape: Shape,
    pub title: String,
    /// Who does it, or what it asks.
    pub subtitle: String,
    /// Only of runs.
    pub state: Option<&'static str>,
    pub dormant: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub label: String,
    /// A way back: a loop, a redo, a restart.
    pub back: bool,
}

/// Draws one graph; with a state, as the run stands in it.
pub fn picture(title: &str, graph: &Graph, state: Option<&State>) -> Picture {
    let mut builder = Builder {
        graph,
        state,
        picture: Picture { title: one_line(title), ..Picture::default() },
        at: BTreeMap::new(),
    };
    for stage in &graph.stages {
        let mut frame = Frame { title: one_line(stage.id.as_str()), members: Vec::new() };
        if let Some(reason) = &stage.disabled {
            frame.title.push_str(&format!(" (off: {})", one_line(reason)));
        }
        for id in &stage.steps {
            builder.member(id, &mut frame);
        }
        builder.picture.stages.push(frame);
    }
    builder.edges();
    builder.picture
}

struct Builder<'a> {
    graph: &'a Graph,
    state: Option<&'a State>,
    picture: Picture,
    at: BTreeMap<StepId, usize>,
}

impl Builder<'_> {
    fn member(&mut self, id: &StepId, frame: &mut Frame) {
        let Some(step) = self.graph.steps.get(id) else { return };
        let below = members(id, step);
        if below.is_empty() {
            let node = self.node(id, step);
            frame.members.push(Member::Node(node));
            return;
        }
        let mut inner = Frame { title: frame_title(id, step), members: Vec::new() };
        let own = self.node(id, step);
        inner.members.push(Member::Node(own));
        for child in below {
            self.member(&child, &mut inner);
        }
        frame.members.push(Member::Frame(inner));
    }

    fn node(&mut self, id: &StepId, step: &Step) -> usize {
        let (shape, subtitle) = face(step);
        let state = self.state.and_then(|state| state_of(state, id));
        let counts = self.state.and_then(|state| counts_of(state, id));
        let subtitle = counts.map_or(subtitle, |counts| counts);
        let node = Node {
            step: id.clone(),
            shape,
            title: one_line(&step.name),
            subtitle,
            state,
            dormant: step.dormant,
        };
        self.picture.nodes.push(node);
        let index = self.picture.nodes.len() - 1;
        self.at.insert(id.clone(), index);
        index
    }

    fn edges(&mut self) {
        let forward = self.forward();
        for (id, step) in &self.graph.steps {
            self.gates(id, step, &forward);
            self.loops(id, step);
        }
        self.picture.edges.sort_by_key(|edge| (edge.back, edge.from, edge.to));
        self.picture.edges.dedup();
    }

    /// Needs, without those that follow from others; labels come from gates. Adds the edges.
    fn forward(&mut self) -> BTreeSet<(usize, usize)> {
        let mut drawn = BTreeSet::new();
        for (id, step) in &self.graph.steps {
            let direct: BTreeSet<StepId> = step.needs.iter().map(|edge| edge.from.clone()).collect();
            let implied: BTreeSet<StepId> =
                direct.iter().flat_map(|from| self.graph.upstream(from)).collect();
            for from in direct.difference(&implied) {
                for exit in self.exits(from) {
                    for entry in self.entries(id) {
                        drawn.insert((exit, entry));
                    }
                }
            }
            drawn.extend(self.inside(id, step));
        }
        for (from, to) in &drawn {
            self.picture.edges.push(Edge { from: *from, to: *to, label: String::new(), back: false });
        }
        drawn
    }

    /// From a group to the first steps below it, or from reviewers to their panel.
    fn inside(&self, id: &StepId, step: &Step) -> Vec<(usize, usize)> {
        let Some(own) = self.at.get(id).copied() else { return Vec::new() };
        let below = members(id, step);
        if matches!(step.kind, Kind::Review(_)) {
            return below.iter().filter_map(|child| self.at.get(child).map(|at| (*at, own))).collect();
        }
        let first = below.iter().filter(|child| {
            self.graph.steps.get(*child).is_some_and(|child| child.needs.is_empty() && !child.dormant)
        });
        first.flat_map(|child| self.entries(child)).map(|to| (own, to)).collect()
    }

    /// Where the way into a step leads.
    fn entries(&self, id: &StepId) -> Vec<usize> {
        let Some(step) = self.graph.steps.get(id) else { return Vec::new() };
        let below = members(id, step);
        if matches!(step.kind, Kind::Review(_)) && !below.is_empty() {
            return below.iter().filter_map(|child| self.at.get(child).copied()).collect();
        }
        self.at.get(id).copied().into_iter().collect()
    }

    /// Where the way out of a step begins: the last steps of a group.
    fn exits(&self, id: &StepId) -> Vec<usize> {
        let Some(step) = self.graph.steps.get(id) else { return Vec::new() };
        let below = members(id, step);
        let needed: BTreeSet<&StepId> = below
            .iter()
            .filter_map(|child| self.graph.steps.get(child))
            .flat_map(|child| child.needs.iter().map(|edge| &edge.from))
            .collect();
        let last = below.iter().filter(|child| {
            !needed.contains(child) && self.graph.steps.get(*child).is_some_and(|child| !child.dormant)
        });
        let ends: Vec<usize> = last.flat_map(|child| self.exits(child)).collect();
        if ends.is_empty() || matches!(step.kind, Kind::Review(_)) {
            self.at.get(id).copied().into_iter().collect()
        } else {
            ends
        }
    }

    /// A gate is written on the edge from what it asks about; one that asks about nothing on the first edge.
    fn gates(&mut self, id: &StepId, step: &Step, forward: &BTreeSet<(usize, usize)>) {
        for gate in &step.gates {
            let (about, label) = gate_words(gate);
            for to in self.entries(id) {
                let asked: Vec<usize> = about.map(|from| self.exits(from)).unwrap_or_default();
                let into = forward.iter().find(|(_, entry)| *entry == to).map(|(from, _)| *from);
                let Some(from) = asked.first().copied().or(into) else {
                    self.picture.nodes[to].subtitle.push_str(&format!(" [{label}]"));
                    continue;
                };
                match self
                    .picture
                    .edges
                    .iter_mut()
                    .find(|edge| !edge.back && edge.from == from && edge.to == to)
                {
                    Some(edge) if edge.label.is_empty() => edge.label.clone_from(&label),
                    Some(edge) => edge.label.push_str(&format!(", {label}")),
                    None => {
                        self.picture.edges.push(Edge { from, to, label: label.clone(), back: from >= to });
                    }
                }
            }
        }
    }

    fn loops(&mut self, id: &StepId, step: &Step) {
        let Some(from) = self.at.get(id).copied() else { return };
        let mut back = |to: Option<usize>, label: String| {
            if let Some(to) = to {
                self.picture.edges.push(Edge { from, to, label, back: true });
            }
        };
        if let Kind::Review(review) = &step.kind {
            for route in &review.fix {
                let word =
                    route.route.as_ref().map(|route| format!("{} ", one_line(route))).unwrap_or_default();
                for fix in &route.steps {
                    back(self.at.get(fix).copied(), format!("{word}fix, ≤ {} rounds", review.rounds_max));
                }
            }
        }
        if let Kind::Decision(question) = &step.kind {
            for answer in &question.answers {
                for to in targets(self.graph, &answer.effect) {
                    back(self.at.get(&to).copied(), one_line(&answer.word));
                }
            }
        }
        for exhaustion in step.retry.on_exhausted.iter().chain(review_exhaustion(step)) {
            if let Exhaustion::RestartStage { stage } = exhaustion {
                back(
                    first_of(self.graph, stage).and_then(|to| self.at.get(&to).copied()),
                    "restart".to_owned(),
                );
            }
        }
        for to in &step.back {
            back(self.at.get(to).copied(), format!("refer back, ≤ {}", step.back_max));
        }
    }
}

fn review_exhaustion(step: &Step) -> impl Iterator<Item = &Exhaustion> {
    let list: &[Exhaustion] = if let Kind::Review(review) = &step.kind { &review.on_exhausted } else { &[] };
    list.iter()
}

fn first_of(graph: &Graph, stage: &StageId) -> Option<StepId> {
    graph.stage(stage).and_then(|stage| stage.steps.first().cloned())
}

fn targets(graph: &Graph, effect: &AnswerEffect) -> Vec<StepId> {
    match effect {
        AnswerEffect::Redo { steps, routes } => {
            steps.iter().chain(routes.values().flatten()).cloned().collect()
        }
        AnswerEffect::Restart { stage } => first_of(graph, stage).into_iter().collect(),
        AnswerEffect::Pass
        | AnswerEffect::Accept
        | AnswerEffect::Again
        | AnswerEffect::Skip
        | AnswerEffect::Block
        | AnswerEffect::Abort => Vec::new(),
    }
}

/// Templates below a step that are drawn inside its frame.
fn members(id: &StepId, step: &Step) -> Vec<StepId> {
    match &step.kind {
        Kind::Review(review) => review
            .reviewers
            .iter()
            .map(|reviewer| reviewer.step.clone())
            .filter(|reviewer| reviewer != id)
            .collect(),
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => step.body().to_vec(),
    }
}

fn frame_title(id: &StepId, step: &Step) -> String {
    match &step.kind {
        Kind::FanOut(fan_out) => format!(
            "{id}: for each item of {}, {} at a time",
            one_line(fan_out.over.as_str()),
            fan_out.parallel_max
        ),
        Kind::Review(_) => format!("{id}: panel"),
        Kind::Agent { .. }
        | Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => format!("{id}: sub-run"),
    }
}

fn face(step: &Step) -> (Shape, String) {
    match &step.kind {
        Kind::Agent { role, agent } => (Shape::Work, format!("{role} · {agent}")),
        Kind::Review(review) => match review.reviewers.as_slice() {
            [one] => (Shape::Review, format!("review by {} · {}", one.role, one.agent)),
            several => (Shape::Review, format!("{} reviewers", several.len())),
        },
        Kind::Check { check } => (Shape::Check, format!("check {check}")),
        Kind::Decision(question) => (Shape::Decision, one_line(&question.question)),
        Kind::FanOut(fan_out) => (Shape::Group, format!("for each of {}", one_line(fan_out.over.as_str()))),
        Kind::Merge { of, .. } => (Shape::Work, format!("merge of {of}")),
        Kind::Finish { .. } => (Shape::Work, "finish the branch".to_owned()),
        Kind::SubRun { .. } => (Shape::Group, "sub-run".to_owned()),
    }
}

/// What a gate is about, and its words.
fn gate_words(gate: &Gate) -> (Option<&StepId>, String) {
    let (about, words) = match &gate.condition {
        Condition::Artifact { step, name } => (Some(step), one_line(name.as_str())),
        Condition::Verdict { step, at_most } => {
            let word = serde_json::to_value(at_most)
                .ok()
                .and_then(|word| word.as_str().map(|word| word.replace('_', " ")));
            (Some(step), format!("verdict ≤ {}", word.unwrap_or_default()))
        }
        Condition::Check { step, check } => (Some(step), format!("{check} ok")),
        Condition::Decision { step, answers } => {
            (Some(step), answers.iter().map(|answer| one_line(answer)).collect::<Vec<_>>().join(" | "))
        }
        Condition::Obligation { name } => (None, one_line(name)),
        Condition::Expression { source } => (None, format!("if {}", one_line(source))),
    };
    match gate.hardness {
        Hardness::Hard | Hardness::Skip => (about, words),
        Hardness::Soft => (about, format!("{words} (or a person)")),
    }
}

/// The state of a step; of a template the worst of its instances.
fn state_of(state: &State, id: &StepId) -> Option<&'static str> {
    let words: BTreeSet<&'static str> =
        instances(state, id).map(|(own_id, own)| step_word(state, own_id, own)).collect();
    ["failed", "blocked", "waiting", "running", "pending", "passed_with_notes", "passed", "skipped"]
        .into_iter()
        .find(|word| words.contains(word))
}

fn instances<'a>(
    state: &'a State,
    id: &'a StepId,
) -> impl Iterator<Item = (&'a StepId, &'a gatewright_core::state::StepState)> {
    state.steps.iter().filter(move |(_, own)| own.template == *id).map(|(known, own)| (known, &**own))
}

/// How many instances of a template are in which state; nothing for a step of the outermost scope.
fn counts_of(state: &State, id: &StepId) -> Option<String> {
    if !id.as_str().contains("/*/") {
        return state.fan_outs.get(id).map(|fan_out| crate::render::rows::ItemCounts::of(fan_out).words());
    }
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (own_id, own) in instances(state, id) {
        *counts.entry(step_word(state, own_id, own)).or_default() += 1;
    }
    (!counts.is_empty()).then(|| {
        counts
            .iter()
            .map(|(word, number)| format!("{number} {}", word.replace('_', " ")))
            .collect::<Vec<_>>()
            .join(", ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::Sample;

    fn drawn(sample: &Sample, with_state: bool) -> Picture {
        let graph = sample.state.graph(&sample.frozen.plan);
        picture("sample", graph, with_state.then_some(&sample.state))
    }

    #[test]
    fn a_fan_out_is_a_frame_and_loops_go_back() {
        let picture = drawn(&Sample::started(), false);
        let names: Vec<&str> = picture.nodes.iter().map(|node| node.title.as_str()).collect();
        assert_eq!(names, ["plan", "agree", "tasks", "code", "review"]);
        let edges: Vec<_> = picture
            .edges
            .iter()
            .map(|edge| (names[edge.from], names[edge.to], edge.label.as_str(), edge.back))
            .collect();
        let expected = [
            ("plan", "agree", "", false),
            ("agree", "tasks", "", false),
            ("tasks", "code", "", false),
            ("code", "review", "", false),
            ("agree", "plan", "no", true),
            ("review", "code", "fix, ≤ 3 rounds", true),
        ];
        assert_eq!(edges, expected);
        assert!(matches!(&picture.stages[1].members[..], [Member::Frame(frame)] if frame.members.len() == 3));
    }

    #[test]
    fn a_run_is_drawn_with_its_states() {
        let picture = drawn(&Sample::in_the_middle(), true);
        let states: Vec<_> = picture.nodes.iter().map(|node| node.state.unwrap_or_default()).collect();
        assert_eq!(states, ["passed", "passed", "running", "running", "pending"]);
        assert_eq!(picture.nodes[3].subtitle, "2 running");
        assert!(mermaid::render(&picture).contains(":::running"));
        assert!(dot::render(&picture).contains("class=\"running\""));
        assert!(svg::render(&picture).contains("<g class=\"running\">"));
    }

    #[test]
    fn boxes_do_not_overlap_and_stay_on_the_page() {
        let layout = layout::layout(&drawn(&Sample::in_the_middle(), true));
        let boxes: Vec<_> = layout.nodes.values().collect();
        for (index, one) in boxes.iter().enumerate() {
            assert!(
                one.x >= 0
                    && one.y >= 0
                    && one.x + one.width <= layout.width
                    && one.y + one.height <= layout.height
            );
            for other in &boxes[index + 1..] {
                let apart = one.x + one.width <= other.x
                    || other.x + other.width <= one.x
                    || one.y + one.height <= other.y
                    || other.y + other.height <= one.y;
                assert!(apart, "{one:?} and {other:?}");
            }
        }
    }
}
