//! Who runs before whom, across fan-outs, sub-runs and panels.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::StepId,
    plan::{Graph, Kind},
};

use crate::{
    resolve::Built,
    yaml::tree::{Node, Span},
};

pub struct Order<'b> {
    pub built: &'b Built,
    /// The step that a step lives below.
    pub owner: BTreeMap<StepId, StepId>,
    /// Lists of steps: the top, and each body.
    pub scopes: Vec<Vec<StepId>>,
    before: BTreeMap<StepId, Row>,
    /// Steps that wait for each other, which was reported: their order is not known.
    circles: Vec<Vec<StepId>>,
    /// Steps that may come after more than the graph says.
    open: BTreeSet<StepId>,
}

/// A step's place in its list, and which others of the list come before it, a bit each.
struct Row {
    scope: usize,
    index: usize,
    bits: Vec<u64>,
}

impl<'b> Order<'b> {
    pub fn new(built: &'b Built, circles: Vec<Vec<StepId>>) -> Self {
        let graph = &built.graph;
        let mut owner = BTreeMap::new();
        let mut scopes = vec![graph.top().cloned().collect::<Vec<_>>()];
        for (id, step) in &graph.steps {
            if !step.body().is_empty() {
                scopes.push(step.body().to_vec());
            }
            for child in step.body() {
                owner.insert(child.clone(), id.clone());
            }
            if let Kind::Review(review) = &step.kind {
                let fixes = review.fix.iter().flat_map(|route| &route.steps);
                for child in review.reviewers.iter().map(|reviewer| &reviewer.step).chain(fixes) {
                    if is_below(child, id) {
                        owner.insert(child.clone(), id.clone());
                    }
                }
            }
        }
        let closing = circles.iter().filter_map(|circle| Some((circle.last()?, circle.first()?))).collect();
        let before: BTreeMap<StepId, Row> =
            scopes.iter().enumerate().flat_map(|(at, scope)| rows(graph, scope, at, &closing)).collect();
        // A step that needs itself was meant to need another.
        let own = circles.iter().filter(|circle| circle.len() == 1).flatten().cloned();
        let unknown: BTreeSet<StepId> = built.unknown.needs.iter().cloned().chain(own).collect();
        let open = open(&unknown, &scopes, &before);
        Order { built, owner, scopes, before, circles, open }
    }

    pub fn graph(&self) -> &'b Graph {
        &self.built.graph
    }

    /// The step and everything it lives below, itself first.
    pub fn chain<'a>(&'a self, id: &'a StepId) -> Vec<&'a StepId> {
        let mut chain = vec![id];
        while let Some(owner) = chain.last().and_then(|last| self.owner.get(*last)) {
            chain.push(owner);
        }
        chain
    }

    /// Whether `first` has passed whenever `second` starts. A step is not before itself; what lives
    /// below a step is not before it, but before what follows it.
    pub fn is_before(&self, first: &StepId, second: &StepId) -> bool {
        let firsts = self.chain(first);
        let seconds = self.chain(second);
        seconds.iter().filter_map(|second| self.before.get(*second)).any(|second| {
            firsts.iter().filter_map(|first| self.before.get(*first)).any(|first| {
                first.scope == second.scope && second.bits[first.index / 64] >> (first.index % 64) & 1 == 1
            })
        })
    }

    /// The same, or nobody can tell: a mistake that was reported hides what `second` waits for.
    pub fn may_be_before(&self, first: &StepId, second: &StepId) -> bool {
        let (firsts, seconds) = (self.chain(first), self.chain(second));
        // What comes after one step of a circle comes after all of it, if it comes at all.
        let around = |circle: &Vec<StepId>| {
            firsts.iter().any(|id| circle.contains(id))
                && (seconds.iter().any(|id| circle.contains(id))
                    || circle.iter().any(|member| self.is_before(member, second)))
        };
        self.is_before(first, second)
            || seconds.iter().any(|id| self.open.contains(*id))
            || self.circles.iter().any(around)
    }

    /// One lives below the other, or they are the same.
    pub fn is_nested(&self, left: &StepId, right: &StepId) -> bool {
        self.chain(left).contains(&right) || self.chain(right).contains(&left)
    }

    pub fn is_off(&self, id: &StepId) -> bool {
        self.chain(id).iter().any(|step| self.built.disabled.contains(*step))
    }

    /// Dormant itself or below a dormant one: it runs at any time.
    pub fn is_dormant(&self, id: &StepId) -> bool {
        self.is_unknown(id)
            || self
                .chain(id)
                .iter()
                .any(|step| self.graph().steps.get(*step).is_some_and(|step| step.dormant))
    }

    /// A mistake hides what the step is, or whether it runs at all.
    pub fn is_unknown(&self, id: &StepId) -> bool {
        self.built.unknown.kinds.contains(id)
    }

    pub fn node(&self, id: &StepId) -> Option<&'b Node> {
        self.built.nodes.get(id)
    }

    /// The place of a key of a step, of the whole step if the key is not there.
    pub fn place(&self, id: &StepId, key: &str) -> Span {
        self.node(id).map(|node| node.place(key)).unwrap_or_default()
    }

    /// A shortest way along needs from one step to a later one of the same list, both named.
    pub fn path(&self, from: &StepId, to: &StepId) -> String {
        let mut came: BTreeMap<&StepId, &StepId> = BTreeMap::new();
        let mut queue = vec![to];
        let mut at = 0;
        while let Some(step) = queue.get(at).copied().filter(|step| *step != from) {
            at += 1;
            for edge in self.graph().steps.get(step).map(|step| step.needs.as_slice()).unwrap_or_default() {
                if edge.from != *to && !came.contains_key(&edge.from) {
                    came.insert(&edge.from, step);
                    queue.push(&edge.from);
                }
            }
        }
        let mut path = vec![from.as_str()];
        let mut step = from;
        while let Some(next) = came.get(step).filter(|_| path.len() <= came.len()) {
            path.push(next.as_str());
            step = next;
        }
        path.join(" → ")
    }
}

/// A step that waits for something that is not known, and whatever comes after it.
fn open(
    unknown: &BTreeSet<StepId>,
    scopes: &[Vec<StepId>],
    before: &BTreeMap<StepId, Row>,
) -> BTreeSet<StepId> {
    let comes_after = |id: &StepId, scope: &[StepId]| {
        let Some(row) = before.get(id) else { return false };
        let is_before =
            |index: usize| row.bits.get(index / 64).is_some_and(|bits| bits >> (index % 64) & 1 == 1);
        scope.iter().enumerate().any(|(index, other)| unknown.contains(other) && is_before(index))
    };
    let mut open = unknown.clone();
    for scope in scopes.iter().filter(|_| !unknown.is_empty()) {
        open.extend(scope.iter().filter(|id| comes_after(id, scope)).cloned());
    }
    open
}

/// Needs stay inside a list, so each list has its own small table. The edges that close a circle
/// are left out.
fn rows(
    graph: &Graph,
    scope: &[StepId],
    at: usize,
    closing: &BTreeSet<(&StepId, &StepId)>,
) -> Vec<(StepId, Row)> {
    let index: BTreeMap<&StepId, usize> = scope.iter().enumerate().map(|(index, id)| (id, index)).collect();
    let words = scope.len().div_ceil(64);
    let mut bits: Vec<Option<Vec<u64>>> = vec![None; scope.len()];
    for start in 0..scope.len() {
        // A stack instead of recursion: a chain may be long.
        let mut stack = vec![start];
        while let Some(step) = stack.last().copied() {
            let edges = graph.steps.get(&scope[step]).map(|step| step.needs.as_slice()).unwrap_or_default();
            let edges = edges.iter().filter(|edge| !closing.contains(&(&scope[step], &edge.from)));
            let needs: Vec<usize> = edges.filter_map(|edge| index.get(&edge.from).copied()).collect();
            let open: Vec<usize> = needs.iter().copied().filter(|need| bits[*need].is_none()).collect();
            if bits[step].is_none() && !open.is_empty() {
                stack.extend(open);
                continue;
            }
            stack.pop();
            if bits[step].is_some() {
                continue;
            }
            let mut row = vec![0u64; words];
            for need in needs {
                row[need / 64] |= 1 << (need % 64);
                for (word, other) in row.iter_mut().zip(bits[need].iter().flatten()) {
                    *word |= other;
                }
            }
            bits[step] = Some(row);
        }
    }
    let rows = bits.into_iter().enumerate();
    rows.map(|(index, bits)| (scope[index].clone(), Row { scope: at, index, bits: bits.unwrap_or_default() }))
        .collect()
}

fn is_below(child: &StepId, parent: &StepId) -> bool {
    child.as_str().strip_prefix(parent.as_str()).is_some_and(|rest| rest.starts_with('/'))
}
