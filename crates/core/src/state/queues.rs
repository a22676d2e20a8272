//! What is derived from the rest of the state, and what still has to follow from recorded facts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ScopeId;
use crate::ids::{AgentId, ArtifactName, DecisionId, PoolId, StepId, TenureId, Timestamp};

/// Derived from the rest of the state; kept so that the next action is found without a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Ready steps that need places, by the set of pools they count against, first come first.
    pub lanes: BTreeMap<Lane, VecDeque<StepId>>,
    /// When each lane was last served, for fairness between them.
    pub served: BTreeMap<Lane, u64>,
    pub serial: u64,
    pub pool_use: BTreeMap<PoolId, u32>,
    /// Live steps of each tenure of the shared checkout.
    pub tenure_use: BTreeMap<TenureId, u32>,
    /// Running or verifying.
    pub live: BTreeSet<StepId>,
    /// Attempts that are still alive but no longer wanted.
    pub superseded: BTreeSet<(StepId, u32)>,
    pub backoff: BTreeSet<(Timestamp, StepId)>,
    /// Gated, and expressions are not evaluated yet.
    pub gating: BTreeSet<StepId>,
    /// Gated, and some gate does not hold: the scheduler says what follows.
    pub closed: BTreeSet<StepId>,
    /// Ready decisions and groups: the scheduler opens them.
    pub openable: BTreeSet<StepId>,
    /// Ready decisions that are put once for all items, while one of those asks.
    pub held: BTreeSet<StepId>,
    /// Ready fan-outs: their list is wanted.
    pub listing: BTreeSet<StepId>,
    /// Fan-outs in which an item could be opened or the whole could be ended.
    pub fan_outs: BTreeSet<StepId>,
    /// Groups (and items) in which nothing is active any more.
    pub quiet: BTreeSet<ScopeId>,
    /// Steps of disabled stages that are not recorded as skipped yet.
    pub disabled: BTreeSet<StepId>,
    pub pending_decisions: BTreeSet<DecisionId>,
    /// The one of them that is about an obligation: it is put when everything else is through.
    pub obligation_asked: Option<DecisionId>,
    /// Steps about which a fact is recorded but not yet what follows from it.
    pub due: BTreeMap<StepId, Due>,
    /// Decisions whose shown artifacts have changed, and which those are.
    pub stale: BTreeMap<DecisionId, BTreeSet<ArtifactName>>,
    /// Reviews whose next fix step can be sent round.
    pub fix_next: BTreeSet<StepId>,
    /// Which reviews wait for this step as part of a fix.
    pub awaited_by: BTreeMap<StepId, BTreeSet<StepId>>,
    pub scopes: BTreeMap<ScopeId, ScopeCount>,
    pub failed: BTreeSet<StepId>,
    pub blocked: BTreeSet<StepId>,
}

/// What has to be concluded from a recorded fact. Part of the state, so that a crash between the
/// fact and its consequence loses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Its attempt is over, and so are the checks: does it count?
    Conclusion,
    /// A person answered or put the question off.
    Answer { decision: DecisionId, raised: bool },
    /// It refers the work back.
    Referral { to: StepId, reason: String },
}

/// The group (so that two fan-outs share fairly), the agent (whose quota may be used up) and the
/// pools a step counts against.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    pub group: Option<StepId>,
    pub agent: Option<AgentId>,
    pub pools: Vec<PoolId>,
    pub tenure: Option<TenureId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeCount {
    pub active: u32,
    /// Steps that count for the end and are not satisfied.
    pub unsatisfied: u32,
}
