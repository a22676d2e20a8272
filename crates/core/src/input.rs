//! What may arrive. A closed list: every cause of a change of state is one of these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    event::Beginning,
    fact::{AttemptReport, CheckFact, CommitFact, Intrusion, Item, ListNow, News},
    ids::{ArtifactName, CheckId, ContentHash, DecisionId, GateId, RoleId, StageId, StepId},
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// The run begins.
    Start { run: String, request: String, beginning: Beginning },
    /// The process of an attempt is gone and its remains were examined.
    AttemptEnded { step: StepId, attempt: u32, report: AttemptReport },
    /// The process of an attempt is at work: with what it began, or what it says on its way.
    Underway { step: StepId, attempt: u32, news: News },
    /// A check after an attempt is through.
    CheckEnded { step: StepId, attempt: u32, check: CheckId, fact: CheckFact },
    /// What an attempt changed is committed, or may not be.
    CommitEnded { step: StepId, attempt: u32, fact: CommitFact },
    /// An expression has a value, or could not be evaluated.
    Evaluated { step: StepId, gate: GateId, value: Result<bool, String> },
    /// The list of a fan-out was read, or is no list.
    ListRead { step: StepId, hash: ContentHash, items: Result<Vec<Item>, String> },
    /// The list of a fan-out is not what was accepted: a person says whether that counts.
    ListEdited { step: StepId, name: ArtifactName, found: ContentHash },
    /// What the list of a fan-out at work says now, where that is no longer what it began with, or was not when
    /// somebody was asked about it.
    ListChanged { step: StepId, name: ArtifactName, now: ListNow },
    /// What a decision shows was hashed outside (the working tree).
    /// `question`: the question as it is put, where the plan has a template, or why there is none.
    Bound {
        decision: DecisionId,
        bound: BTreeMap<ArtifactName, ContentHash>,
        question: Option<Result<String, String>>,
    },
    /// A person answered.
    Answer(Answer),
    /// A person puts a decision off for good.
    CancelDecision { decision: DecisionId, reason: String },
    /// So many answers could not be understood that asking on is useless.
    GiveUpDecision { decision: DecisionId },
    /// Let what runs finish, then rest.
    Stop,
    /// Give up the run; what runs is ended.
    Abort { reason: String },
    /// Go on after a stop, a pause, a block.
    Resume { raise: Raise, substitutes: BTreeMap<String, String> },
    /// Go on up to the end of this stage. With a reason, what comes before it and is not through is left
    /// out; without one, it runs.
    RunUntil { stage: StageId, skipping: Option<String> },
    /// The work of this step is there already, in this folder of the run.
    Give { step: StepId, from: String },
    /// Run a stage again.
    RestartStage { stage: StageId, reason: String },
    /// A waiver: leave this step out.
    Skip { step: StepId, reason: String },
    /// A waiver: this step runs although its gate is closed. Without a name: the one that is closed.
    WaiveGate { step: StepId, gate: Option<GateId>, reason: String },
    /// Somebody tried what only people may, or changed what only the engine writes. Nothing came of it.
    Noticed { intrusion: Intrusion },
    /// A projection cannot be written, however often it was tried.
    Unwritten { problem: String },
    /// Time has passed.
    Tick,
    /// The plan was replaced on a person's order; the host has checked and stored it.
    Adopt { digest: String },
}

/// An answer as it came, before it is understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub decision: DecisionId,
    pub value: String,
    pub comment: Option<String>,
    /// Who should do what the answer asks for.
    pub route: Option<RoleId>,
    /// The person confirmed that a comment beside an approval is no condition.
    pub confirmed: bool,
    /// Which human channel it came by.
    pub channel: String,
    /// What the shown things are now; must be what they were when shown.
    pub seen: BTreeMap<ArtifactName, ContentHash>,
}

/// New limits of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    pub wall_ms: Option<u64>,
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
    pub launches: Option<u64>,
    #[serde(default)]
    pub quota_wait_ms: Option<u64>,
}
