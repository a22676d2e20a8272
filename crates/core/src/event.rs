//! What has happened: the only thing that is stored, and the only thing that changes state.
//!
//! Names on the wire are dotted lower case. A field is added with a default, never changed in
//! meaning: old journals stay readable.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    fact::{AttemptReport, CheckFact, CommitFact, Conversation, Hint, Intrusion, Item, LaunchFact, Usage},
    ids::{
        AgentId, ArtifactName, CheckId, ContentHash, DecisionId, GateId, ProfileId, RoleId, StageId, StepId,
        Timestamp,
    },
    outcome::Question,
    plan::Answer,
    tagged::{Tagged, Tagging},
    verdict::{Finding, Verdict},
};

/// Version of events on disk.
pub const EVENT_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Event {
    #[serde(rename = "run.started")]
    RunStarted {
        run: String,
        workflow: String,
        profile: ProfileId,
        request: String,
        #[serde(default, skip_serializing_if = "Beginning::is_plain")]
        beginning: Beginning,
    },
    /// The run goes on up to the end of this stage. A person left out what comes before it and is not
    /// through: a waiver for each of these steps.
    #[serde(rename = "run.until.set")]
    UntilSet {
        stage: StageId,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        skipped: BTreeSet<StepId>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    #[serde(rename = "run.stop.requested")]
    StopRequested,
    #[serde(rename = "run.paused")]
    RunPaused { why: Pause },
    #[serde(rename = "run.resumed")]
    RunResumed {
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        substitutes: BTreeMap<String, String>,
    },
    #[serde(rename = "run.ended")]
    RunEnded {
        how: RunEnd,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    #[serde(rename = "run.plan.adopted")]
    PlanAdopted { digest: String },
    #[serde(rename = "run.profile.escalated")]
    ProfileEscalated { from: ProfileId, to: ProfileId, by: StepId, reason: String },

    /// An order came through the inbox; what it did is in the same batch. Read again after a crash it
    /// is recognised.
    #[serde(rename = "inbox.message.taken")]
    MessageTaken { message: String },
    /// Only the mark of the order survived a crash, not what it did: it is read again.
    #[serde(rename = "inbox.message.dropped")]
    MessageDropped { message: String },

    /// Somebody tried what only people may, or changed what only the engine writes. Nothing came of it.
    #[serde(rename = "intrusion.noticed")]
    IntrusionNoticed { intrusion: Intrusion },

    /// The work of this step is there already: its next attempt takes these files and starts nobody.
    #[serde(rename = "step.given")]
    StepGiven { step: StepId, from: String },
    #[serde(rename = "step.attempt.started")]
    AttemptStarted { step: StepId, attempt: u32, round: u32 },
    /// Its process is at work.
    #[serde(rename = "step.attempt.launched")]
    AttemptLaunched { step: StepId, attempt: u32, fact: LaunchFact },
    /// Its agent has told which conversation it works in: whoever comes after it can go on with that.
    #[serde(rename = "step.conversation.began")]
    ConversationBegan { step: StepId, attempt: u32, conversation: Conversation },
    /// What its agent says on the way. Changes nothing but what is told to others.
    #[serde(rename = "step.progress.told")]
    ProgressTold { step: StepId, attempt: u32, hints: Vec<Hint> },
    #[serde(rename = "step.attempt.ended")]
    AttemptEnded { step: StepId, attempt: u32, report: Box<AttemptReport> },
    /// A result that nobody wants any more, or that came twice.
    #[serde(rename = "step.result.ignored")]
    ResultIgnored {
        step: StepId,
        attempt: u32,
        why: String,
        /// It was spent all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    #[serde(rename = "step.check.ended")]
    CheckEnded { step: StepId, attempt: u32, check: CheckId, fact: CheckFact },
    /// What the attempt changed was committed by the engine, or could not be.
    #[serde(rename = "step.commit.ended")]
    CommitEnded { step: StepId, attempt: u32, fact: CommitFact },
    /// The attempt does not count; the step tries again, not before `at`.
    #[serde(rename = "step.retry.scheduled")]
    RetryScheduled { step: StepId, class: FailureClass, message: String, at: Timestamp },
    #[serde(rename = "step.judged")]
    Judged { step: StepId, round: u32, verdict: Verdict },
    #[serde(rename = "step.passed")]
    StepPassed {
        step: StepId,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    #[serde(rename = "step.failed")]
    StepFailed { step: StepId, message: String },
    #[serde(rename = "step.blocked")]
    StepBlocked { step: StepId, reason: BlockReason, message: String },
    #[serde(rename = "step.skipped")]
    StepSkipped { step: StepId, why: Skip, reason: String },
    /// Facts that these steps rested on have changed: they have to run again.
    #[serde(rename = "step.invalidated")]
    Invalidated { steps: BTreeSet<StepId>, cause: Cause },

    #[serde(rename = "gate.evaluated")]
    GateEvaluated { step: StepId, gate: GateId, value: Result<bool, String> },
    #[serde(rename = "gate.waived")]
    GateWaived { step: StepId, gate: GateId, reason: String },

    /// The review demands work: these steps run again, then the review, as this round.
    #[serde(rename = "loop.round.opened")]
    RoundOpened { review: StepId, round: u32, fix: Vec<StepId>, findings: Vec<Finding> },
    #[serde(rename = "loop.exhausted")]
    LoopExhausted { review: StepId, rounds: u32, message: String },
    /// A person grants one more.
    #[serde(rename = "limit.raised")]
    LimitRaised { step: StepId },

    #[serde(rename = "fanout.started")]
    FanOutStarted { step: StepId, hash: ContentHash, items: Vec<Item> },
    #[serde(rename = "fanout.item.opened")]
    ItemOpened { step: StepId, key: String },
    /// Its author ran again and asks for the same: what was done for it counts.
    #[serde(rename = "fanout.item.kept")]
    ItemKept { step: StepId, key: String },
    /// Its author ran again and does not ask for it any more: what was done for it does not count.
    #[serde(rename = "fanout.item.dropped")]
    ItemDropped { step: StepId, key: String },
    #[serde(rename = "fanout.item.ended")]
    ItemEnded { step: StepId, key: String, end: ItemEnd },
    /// A sub-run or a panel of reviewers began.
    #[serde(rename = "group.opened")]
    GroupOpened { step: StepId },

    #[serde(rename = "decision.opened")]
    DecisionOpened { decision: Decision },
    #[serde(rename = "decision.bound")]
    DecisionBound {
        id: DecisionId,
        bound: BTreeMap<ArtifactName, ContentHash>,
        /// The question as it is put, where the plan has a template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    #[serde(rename = "decision.answered")]
    DecisionAnswered {
        id: DecisionId,
        answer: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<RoleId>,
        /// What the person said, where it is not the word itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// Of what was noted: what the answer is about, counted from 1. Nothing is everything.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chosen: Vec<u32>,
        channel: String,
    },
    #[serde(rename = "decision.cancelled")]
    DecisionCancelled { id: DecisionId, reason: String },
    #[serde(rename = "decision.skipped")]
    DecisionSkipped { id: DecisionId, reason: String },
    /// What was shown has changed: the answer, or the question, no longer counts.
    #[serde(rename = "decision.staled")]
    DecisionStaled { id: DecisionId, changed: Vec<ArtifactName> },

    #[serde(rename = "stage.restarted")]
    StageRestarted { stage: StageId, count: u32, steps: BTreeSet<StepId>, reason: String },
    #[serde(rename = "step.referred_back")]
    ReferredBack { from: StepId, to: StepId, reason: String },
    #[serde(rename = "budget.raised")]
    BudgetRaised { raise: crate::input::Raise },
    #[serde(rename = "quota.waiting")]
    QuotaWaiting { step: StepId, until: Timestamp },
    #[serde(rename = "obligation.opened")]
    ObligationOpened { name: String, step: StepId },
    /// A person lets the run end although this did not happen.
    #[serde(rename = "obligation.waived")]
    ObligationWaived { name: String, reason: String },
    #[serde(rename = "artifact.adopted")]
    ArtifactAdopted { name: ArtifactName, hash: ContentHash },
    #[serde(rename = "artifact.restored")]
    ArtifactRestored { name: ArtifactName },
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Event::serialize(self, Tagging(serializer))
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        Event::deserialize(Tagged(deserializer))
    }
}

/// What a run starts with besides its request. One event: half of it would be another run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// It rests when this stage is through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<StageId>,
    /// Steps whose work is there already, with the folder it is in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<StepId, String>,
    /// Steps that were done before this run, with what is known of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub done: BTreeMap<StepId, String>,
    /// Reviews that were held before this run, by the step that goes on with them: they count against its limit.
    /// Of a step that is no review: attempts that were made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rounds: BTreeMap<StepId, u32>,
    /// Restarts of stages before this run: they count against their limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restarts: BTreeMap<StageId, u32>,
    /// What people answered before this run, by decision step; taken when the question is put.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answered: BTreeMap<StepId, AnsweredBefore>,
    /// Ad-hoc decisions that have their numbers already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub numbered: u32,
}

/// An answer that a person gave where no engine heard it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredBefore {
    pub answer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RoleId>,
    /// Where and when, in words.
    pub channel: String,
    /// What it was given to: it holds for nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<ArtifactName, ContentHash>,
}

impl Beginning {
    /// Nothing is there and everything is wanted.
    pub fn is_plain(&self) -> bool {
        *self == Beginning::default()
    }
}

/// Why nothing new is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Pause {
    Stop,
    /// It was to go on up to this stage, which is through.
    Until {
        stage: StageId,
    },
    Budget {
        kind: BudgetKind,
        used: u64,
        limit: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<StepId>,
    },
    /// A provider's quota has been waited for long enough.
    Quota {
        agent: AgentId,
        /// When it says that it goes on.
        until: Timestamp,
        waited_ms: u64,
        limit_ms: u64,
    },
    /// A file that people and agents read cannot be written: the run is blocked.
    Unwritten {
        problem: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    Wall,
    Tokens,
    Usd,
    Launches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    Done,
    Failed,
    Abandoned,
}

impl RunEnd {
    pub fn word(self) -> &'static str {
        match self {
            RunEnd::Done => "done",
            RunEnd::Failed => "failed",
            RunEnd::Abandoned => "abandoned",
        }
    }
}

/// Kind of a failed attempt. Each has its own retry prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    Crash,
    Timeout,
    Idle,
    Malformed,
    Schema,
    Reality,
    Build,
    Test,
    Interrupted,
}

impl FailureClass {
    /// The same work gives the same result: trying a third time is useless (J-27). The other
    /// classes are the weather's fault and get every attempt they are allowed.
    pub fn is_deterministic(self) -> bool {
        match self {
            FailureClass::Schema | FailureClass::Reality | FailureClass::Build | FailureClass::Test => true,
            FailureClass::Crash
            | FailureClass::Timeout
            | FailureClass::Idle
            | FailureClass::Malformed
            | FailureClass::Interrupted => false,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            FailureClass::Crash => "crash",
            FailureClass::Timeout => "timeout",
            FailureClass::Idle => "idle",
            FailureClass::Malformed => "malformed",
            FailureClass::Schema => "schema",
            FailureClass::Reality => "reality",
            FailureClass::Build => "build",
            FailureClass::Test => "test",
            FailureClass::Interrupted => "interrupted",
        }
    }
}

/// Why a step cannot go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// Attempts are used up.
    AttemptsExhausted,
    /// The same error twice with unchanged work.
    SameError,
    /// Interrupted too often.
    Interrupted,
    /// Rounds are used up.
    RoundsExhausted,
    /// The agent says it cannot go on.
    AgentBlocked,
    /// The agent reports an error that a retry would repeat.
    AgentError,
    MissingInput,
    Gate,
    MandatoryUserDecisionMissing,
    AnsweredBlock,
    ItemsFailed,
    BadList,
    PingPong,
    QuestionsExhausted,
    Obligation,
    HardStop,
    ToolUnavailable,
}

impl BlockReason {
    pub fn word(self) -> &'static str {
        match self {
            BlockReason::AttemptsExhausted => "attempts_exhausted",
            BlockReason::SameError => "same_error",
            BlockReason::Interrupted => "interrupted",
            BlockReason::RoundsExhausted => "rounds_exhausted",
            BlockReason::AgentBlocked => "agent_blocked",
            BlockReason::AgentError => "agent_error",
            BlockReason::MissingInput => "missing_input",
            BlockReason::Gate => "gate",
            BlockReason::MandatoryUserDecisionMissing => "mandatory_user_decision_missing",
            BlockReason::AnsweredBlock => "answered_block",
            BlockReason::ItemsFailed => "items_failed",
            BlockReason::BadList => "bad_list",
            BlockReason::PingPong => "ping_pong",
            BlockReason::QuestionsExhausted => "questions_exhausted",
            BlockReason::Obligation => "obligation",
            BlockReason::HardStop => "hard_stop",
            BlockReason::ToolUnavailable => "tool_unavailable",
        }
    }
}

/// Why a step was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Its stage is switched off.
    Disabled,
    /// Its condition does not hold.
    Condition,
    /// A person decided so.
    Waiver,
    /// It was done before this run, by somebody else.
    Elsewhere,
}

/// Why a step runs again; what its next prompt is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// A review demands work.
    Fix {
        review: StepId,
        findings: Vec<Finding>,
    },
    /// A person asks for changes.
    Changes {
        decision: DecisionId,
        comment: Option<String>,
    },
    /// A later step referred the work back.
    ReferredBack {
        from: StepId,
        reason: String,
    },
    /// Something it rests on runs again.
    Upstream {
        step: StepId,
    },
    Restart {
        stage: StageId,
        reason: String,
    },
    /// The list it wrote cannot be used.
    BadList {
        reason: String,
    },
    /// A person adopted what the list of this fan-out says now.
    ListAdopted {
        decision: DecisionId,
    },
    /// A person resumed a blocked run.
    Resumed,
    /// What an approval was bound to has changed.
    Stale {
        changed: Vec<ArtifactName>,
    },
}

/// How one item of a fan-out ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum ItemEnd {
    Passed,
    Failed {
        by: Vec<StepId>,
    },
    /// An item it waits for did not pass.
    Blocked {
        by: Vec<String>,
    },
}

/// A question as it was put, with everything needed to understand its answer for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub id: DecisionId,
    /// The step that waits for it.
    pub step: StepId,
    pub about: About,
    pub question: String,
    /// The question is still a template; nobody is asked before it is rendered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub to_render: bool,
    /// Closed answers; empty = free text (an agent's open question).
    pub answers: Vec<Answer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<ArtifactName>,
    /// Hashes of what was shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<ArtifactName, ContentHash>,
}

impl Decision {
    /// Everything that is shown is hashed and the question is in words: somebody may be asked.
    pub fn is_put(&self) -> bool {
        !self.to_render && self.show.iter().all(|name| self.bound.contains_key(name))
    }
}

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// A decision step of the plan.
    Step,
    /// One of an agent's questions; the batch is answered together.
    Question { batch: u32, asked: Question },
    /// A limit is used up.
    Exhausted { loops: bool },
    /// A soft gate does not hold.
    Gate { gate: GateId },
    /// A published artifact was changed by hand.
    HandEdit { name: ArtifactName, found: ContentHash },
    /// The list of a fan-out at work says something else than what it began with. Its items go on meanwhile.
    List { name: ArtifactName, found: ContentHash },
    /// The same referral came back without improvement.
    PingPong { to: StepId },
    /// The reviewer forbids going on.
    HardStop,
    /// The review repeats itself.
    Stalled,
    /// The review is content, and what it noted is a person's to judge.
    Notes,
    /// Everything is through, and this has not happened.
    Obligation { name: String },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
