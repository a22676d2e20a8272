//! The frozen graph of a run: what may happen, in which order, how often. Data only.
//!
//! It knows nothing of prompts, files, commands or text: those stay with the workflow crate, keyed
//! by the same ids. A plan never changes while a run uses it.
//!
//! Steps inside a fan-out or a sub-run are stored flat under *template ids*: `STEP/*/SUB` for a
//! fan-out, `STEP/SUB` for a sub-run or a reviewer of a panel. An *instance* of a template lives in
//! `State`, with the key of its item in the place of the star.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AgentId, ArtifactName, CheckId, GateId, PoolId, ProfileId, RoleId, StageId, StepId, TenureId},
    verdict::{Finding, Severity, Verdict},
};

/// Version of the plan format on disk.
pub const PLAN_VERSION: u32 = 1;

/// Limits that hold when a definition names none. Each is a number somebody can point at.
pub mod limits {
    pub const ATTEMPTS_MAX: u32 = 2;
    /// Of a check step: nobody does anything between two of its attempts, so a second one is only for who asks for it.
    pub const CHECK_ATTEMPTS_MAX: u32 = 1;
    pub const ROUNDS_MAX: u32 = 3;
    pub const INTERRUPTIONS_MAX: u32 = 3;
    pub const RESTARTS_MAX: u32 = 3;
    pub const QUESTION_ROUNDS_MAX: u32 = 3;
    pub const BACK_MAX: u32 = 2;
    pub const REASKS_MAX: u32 = 3;
    pub const PARALLEL_MAX: u32 = 4;
    /// How long in a row the quota of one agent is waited for before a person is told.
    pub const QUOTA_WAIT_MS: u64 = 24 * 3_600_000;
    /// So many waits of one step in a row; a further one is an attempt that failed.
    pub const QUOTA_WAITS_MAX: u32 = 20;
    /// Pause before a failing provider is asked again, if the step names none; doubled up to the second one.
    pub const OUTAGE_PAUSE_MS: u64 = 2_000;
    pub const OUTAGE_PAUSE_MAX_MS: u64 = 60_000;
    /// Refused orders and foreign edits that a run keeps; a flood of them must not become one of records.
    pub const INTRUSIONS_MAX: usize = 100;
    /// What an agent may tell on the way of one attempt; the rest is not recorded.
    pub const HINTS_MAX: usize = 200;
    /// Of so many attempts of a step what they told is remembered.
    pub const HINTED_ATTEMPTS_MAX: usize = 5;
    pub const STEPS_MAX: usize = 100_000;
    pub const ITEMS_MAX: usize = 100_000;
    /// No limit a person writes may be above this; it is a typing error.
    pub const LIMIT_CEILING: u32 = 1_000_000;
}

/// A whole plan: one graph per profile that the run can be in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    pub workflow: String,
    /// The profile the run starts in.
    pub profile: ProfileId,
    /// The starting profile and every one it can escalate to.
    pub graphs: BTreeMap<ProfileId, Graph>,
    pub budget: Budget,
    /// Budgets of profiles that have another one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<ProfileId, Budget>,
    /// Ad-hoc decisions are numbered with this prefix (`D-1`, `UD-1`).
    pub decision_prefix: String,
    pub reasks_max: u32,
}

impl Plan {
    /// The graph of a profile. `profile` always comes from this plan or from an event checked
    /// against it, so its absence is a corrupt journal, which replay reports before this is called.
    pub fn graph(&self, profile: &ProfileId) -> &Graph {
        &self.graphs[profile]
    }

    /// What a run in this profile may spend.
    pub fn budget_of(&self, profile: &ProfileId) -> &Budget {
        self.budgets.get(profile).unwrap_or(&self.budget)
    }
}

/// The graph of one profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    pub stages: Vec<Stage>,
    /// Every step by template id, nested ones too.
    pub steps: BTreeMap<StepId, Box<Step>>,
    /// Named limits on what runs at the same time. `run` is the limit of the whole run.
    pub pools: BTreeMap<PoolId, u32>,
    pub obligations: Vec<Obligation>,
    /// Which tenures of the shared checkout may not be live together; both sides are listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludes: BTreeMap<TenureId, BTreeSet<TenureId>>,
    /// A `blocked` reply with this reason leaves the profile for another one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub escalations: BTreeMap<String, ProfileId>,
    /// Derived by [`Graph::index`]: who needs this step, inside the same scope.
    #[serde(skip)]
    pub dependents: BTreeMap<StepId, Vec<StepId>>,
}

impl Graph {
    /// Computes what is derived from the steps. To be called once after building or reading a plan.
    pub fn index(&mut self) {
        let mut dependents: BTreeMap<StepId, Vec<StepId>> = BTreeMap::new();
        for (id, step) in &self.steps {
            for edge in &step.needs {
                dependents.entry(edge.from.clone()).or_default().push(id.clone());
            }
        }
        self.dependents = dependents;
    }

    /// Steps of the outermost scope, in the order of the stages.
    pub fn top(&self) -> impl Iterator<Item = &StepId> {
        self.stages.iter().flat_map(|stage| stage.steps.iter())
    }

    pub fn stage(&self, id: &StageId) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == *id)
    }

    /// Every step of the same scope that cannot start before one of `from` has passed.
    pub fn downstream(&self, from: &BTreeSet<StepId>) -> BTreeSet<StepId> {
        let mut found = BTreeSet::new();
        let mut queue: Vec<&StepId> = from.iter().collect();
        while let Some(id) = queue.pop() {
            for dependent in self.dependents.get(id).into_iter().flatten() {
                if found.insert(dependent.clone()) {
                    queue.push(dependent);
                }
            }
        }
        found
    }

    /// Every step of the same scope that has to pass before `of` can start.
    pub fn upstream(&self, of: &StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::new();
        let mut queue = vec![of];
        while let Some(id) = queue.pop() {
            for edge in self.steps.get(id).map(|step| step.needs.as_slice()).unwrap_or_default() {
                if found.insert(edge.from.clone()) {
                    queue.push(&edge.from);
                }
            }
        }
        found
    }
}

/// A named group of steps, the unit of restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub id: StageId,
    pub steps: Vec<StepId>,
    pub restarts_max: u32,
    /// Switched off by profile or configuration: its steps are skipped, the reason is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The last part of its id.
    pub name: String,
    pub stage: StageId,
    pub needs: Vec<Edge>,
    /// Predicates that must hold before it starts, on top of its edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    pub kind: Kind,
    /// Limits it counts against while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolId>,
    /// What it does to the checkout it works in; absent = it has one of its own, or nobody promised anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenure: Option<TenureId>,
    /// Declared outputs, under their declared (unrendered) names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<ArtifactName>,
    /// Run by the engine after every attempt that says it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckId>,
    /// What an accepted attempt changed is committed before the step counts as passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commit: bool,
    pub retry: Retry,
    /// Runs only when a loop or an obligation calls for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dormant: bool,
    /// Earlier steps to which its agent may refer the work back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<StepId>,
    #[serde(default = "default_back_max")]
    pub back_max: u32,
}

fn default_back_max() -> u32 {
    limits::BACK_MAX
}

/// "Not before that one has passed."
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub from: StepId,
}

/// A predicate over recorded facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    pub id: GateId,
    pub condition: Condition,
    pub hardness: Hardness,
    /// Steps before this one that have the same gate of their stage: where one of them passed, it was asked there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_at: Vec<StepId>,
}

/// What happens at a gate that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hardness {
    /// The step is blocked; only a waiver lets it pass.
    Hard,
    /// A person is asked whether to go on.
    Soft,
    /// The step is skipped: a condition, not an obstacle.
    Skip,
}

/// What a gate asks of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Condition {
    /// The step that counts for this artifact passed, and its contract held.
    Artifact { step: StepId, name: ArtifactName },
    /// The last verdict of a review is at most this strict.
    Verdict { step: StepId, at_most: Verdict },
    /// The last execution of the check that this step ran succeeded.
    Check { step: StepId, check: CheckId },
    /// A decision was answered with one of these.
    Decision { step: StepId, answers: Vec<String> },
    /// An obligation is met.
    Obligation { name: String },
    /// An expression, evaluated outside; its value is journaled before it counts.
    Expression { source: String },
}

/// What kind of node it is, with what only that kind has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    Agent {
        role: RoleId,
        agent: AgentId,
    },
    Review(Box<Review>),
    /// A command of the engine's own. `class` says what its failure means.
    Check {
        check: CheckId,
    },
    Decision(Box<Question>),
    FanOut(Box<FanOut>),
    /// The streams of a fan-out are brought together. `repair`: who mends what cannot be merged, how
    /// often, and what then; its rounds are those of a review.
    Merge {
        of: StepId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repair: Option<Box<Review>>,
    },
    /// The run's branch is brought home, or not: the only step that touches the user's checkout.
    Finish {
        /// The decision that says how; absent = the definition says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<StepId>,
    },
    SubRun {
        body: Vec<StepId>,
        budget: Box<Budget>,
    },
}

/// A review with its loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// What is judged.
    pub of: Vec<StepId>,
    /// Exactly one: the step itself is the reviewer. More: each is a step of its own, below this one.
    pub reviewers: Vec<Reviewer>,
    pub block_at: Severity,
    /// `blocked` from a reviewer stops the run whatever the severities.
    #[serde(default)]
    pub hard_stop_on_blocked: bool,
    pub rounds_max: u32,
    /// Which steps run again for which findings. The entry without a route takes the rest.
    pub fix: Vec<FixRoute>,
    pub rerun: Rerun,
    pub rereview: Rereview,
    /// After re-reviews of the failed only: one more round of all, within `rounds_max`.
    #[serde(default)]
    pub final_pass: bool,
    /// So many rounds in a row with the same blocking findings: a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_after: Option<u32>,
    pub on_exhausted: Vec<Exhaustion>,
    /// A pass with notes at or above this severity is a person's to judge, with these answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_at: Option<Severity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_notes: Vec<Answer>,
}

impl Review {
    /// Is a person to judge this finding, which does not block by itself?
    pub fn asks_about(&self, finding: &Finding) -> bool {
        !finding.out_of_scope && self.ask_at.is_some_and(|bar| finding.severity >= bar)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    /// Template id: the review's own id when it is the only one.
    pub step: StepId,
    pub role: RoleId,
    pub agent: AgentId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixRoute {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    pub steps: Vec<StepId>,
}

/// What runs again before the next review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerun {
    /// The fix steps and everything between them and the review.
    Between,
    /// Exactly the steps that the route lists.
    Listed,
}

/// Who looks again after a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rereview {
    All,
    Failed,
}

/// What happens when a limit is used up, in order until one applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum Exhaustion {
    Ask {
        answers: Vec<Answer>,
    },
    Block,
    /// Passed *with notes*, and shown as such.
    CompleteWithNotes,
    /// Applies while the stage has restarts left.
    RestartStage {
        stage: StageId,
    },
    Fail,
}

/// A question to a person with closed answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The id under which people know it; the step's id if it has no other name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub question: String,
    /// Several items of a fan-out come to it with the same words: one asks, and its answer holds for the others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub once: bool,
    /// The question is a template: the host renders it before anybody is asked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub template: bool,
    /// What is shown, and so what an answer is bound to. `tree` = the whole working tree.
    pub show: Vec<ArtifactName>,
    pub answers: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The canonical word; only this is ever stored.
    pub word: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<String>,
    pub effect: AnswerEffect,
}

/// What an answer does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "does", rename_all = "snake_case")]
pub enum AnswerEffect {
    Pass,
    /// Let the exhausted step pass with its notes: a waiver.
    Accept,
    /// One more round, or a fresh set of attempts.
    Again,
    /// Run these again, with the comment; a route named by the person picks other steps.
    Redo {
        steps: Vec<StepId>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        routes: BTreeMap<RoleId, Vec<StepId>>,
    },
    Restart {
        stage: StageId,
    },
    /// Leave the step out: a waiver.
    Skip,
    Block,
    Abort,
}

/// A sub-list of steps per item of a list that an artifact holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// The artifact that holds the list.
    pub over: ArtifactName,
    /// Template ids of the steps of one item, in order.
    pub body: Vec<StepId>,
    /// Items that may be open at the same time.
    pub parallel_max: u32,
    /// One after the other in the order of dependency levels, with a barrier between them.
    #[serde(default)]
    pub waves: bool,
    pub items_max: usize,
    pub on_item_failure: ItemFailure,
    /// The step that wrote the list: it is redone with the exact reason when the list is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_by: Option<StepId>,
}

/// What a failed item means for the fan-out once the others have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemFailure {
    Block,
    /// Passed with notes, the failures are data; all items failed is never a pass (J-40).
    Note,
}

/// How often an attempt that broke is repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Executions per round: exactly so many.
    pub attempts_max: u32,
    /// The machine's fault is counted apart.
    pub interruptions_max: u32,
    /// Pause before the second, third, … attempt; the last one repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backoff_ms: Vec<u64>,
    pub on_exhausted: Vec<Exhaustion>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts_max: limits::ATTEMPTS_MAX,
            interruptions_max: limits::INTERRUPTIONS_MAX,
            backoff_ms: Vec::new(),
            on_exhausted: vec![Exhaustion::Block],
        }
    }
}

/// What must have happened before the end, whatever the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obligation {
    pub name: String,
    pub must: Must,
    /// A dormant step that fulfils it when nothing else did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub else_run: Option<StepId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "have", rename_all = "snake_case")]
pub enum Must {
    /// Some step of this role has passed.
    Role { role: RoleId },
    /// This step has passed.
    Step { step: StepId },
    /// This decision was answered.
    Decision { step: StepId },
}

/// What a run may spend. Absent = no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar, so that sums are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u64>,
    /// How long in a row the quota of one agent is waited for; absent = [`limits::QUOTA_WAIT_MS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_wait_ms: Option<u64>,
}

impl Step {
    /// The role whose work this step is, if an agent does it.
    pub fn role(&self) -> Option<&RoleId> {
        match &self.kind {
            Kind::Agent { role, .. } => Some(role),
            Kind::Review(review) => review.reviewers.first().map(|reviewer| &reviewer.role),
            Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. }
            | Kind::SubRun { .. } => None,
        }
    }

    /// The rounds of this step: a review's, or those in which a merge is mended.
    pub fn rounds(&self) -> Option<&Review> {
        match &self.kind {
            Kind::Review(review) => Some(review),
            Kind::Merge { repair, .. } => repair.as_deref(),
            Kind::Agent { .. }
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Finish { .. }
            | Kind::SubRun { .. } => None,
        }
    }

    pub fn agent(&self) -> Option<&AgentId> {
        match &self.kind {
            Kind::Agent { agent, .. } => Some(agent),
            Kind::Review(review) => review.reviewers.first().map(|reviewer| &reviewer.agent),
            Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. }
            | Kind::SubRun { .. } => None,
        }
    }

    /// Steps that live below this one.
    pub fn body(&self) -> &[StepId] {
        match &self.kind {
            Kind::FanOut(fan_out) => &fan_out.body,
            Kind::SubRun { body, .. } => body,
            Kind::Agent { .. }
            | Kind::Review(_)
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. } => &[],
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
