//! What is known of a run: types and questions about them. Changed only by `apply`.
//!
//! Everything under [`Queues`] is derived and stored redundantly, so that nobody ever has to scan
//! all steps: a run of ten thousand stays linear.

mod few;
mod queues;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{
    changed_files::ChangedFiles,
    event::{AnsweredBefore, BlockReason, Cause, Decision, FailureClass, ItemEnd, Pause, RunEnd, Skip},
    fact::{AttemptReport, CheckFact, CommitFact, Conversation, Hint, Intrusion, LaunchFact, Usage},
    ids::{
        AgentId, ArtifactName, CheckId, ContentHash, DecisionId, GateId, ProfileId, RoleId, StageId, StepId,
        Timestamp,
    },
    outcome::Question,
    plan::{Budget, Graph, Kind, Plan, Step},
    verdict::{Finding, Verdict},
};

pub use few::Few;
pub use queues::{Due, Lane, Queues, ScopeCount};

/// A run, as far as its journal tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub run: String,
    pub request: String,
    pub profile: ProfileId,
    pub phase: RunPhase,
    /// It rests when this stage is through.
    pub until: Option<StageId>,
    /// Steps that were done before the run, with what is known of that; left out when it is their turn.
    pub done_before: BTreeMap<StepId, String>,
    /// Reviews that were held before the run, for steps that there may not be yet.
    pub rounds_before: BTreeMap<StepId, u32>,
    /// What people answered before the run, for decisions that have not been put yet.
    pub answers_before: BTreeMap<StepId, AnsweredBefore>,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    /// Boxed: most of a node of such a map is room for what may come.
    pub steps: BTreeMap<StepId, Box<StepState>>,
    /// Published artifacts by published name.
    pub artifacts: BTreeMap<ArtifactName, Artifact>,
    pub decisions: BTreeMap<DecisionId, DecisionState>,
    /// Ad-hoc decisions opened so far, for their numbers.
    pub decisions_numbered: u32,
    pub fan_outs: BTreeMap<StepId, FanOutState>,
    /// Items that had passed when the author of their list was sent round again.
    pub set_aside: BTreeMap<StepId, BTreeMap<String, ItemAside>>,
    pub restarts: BTreeMap<StageId, u32>,
    pub spent: BTreeMap<ScopeId, Spent>,
    /// The same by role; of attempts whose step is gone nobody knows the role any more.
    pub spent_by_role: BTreeMap<Option<RoleId>, Spent>,
    pub budgets: BTreeMap<ScopeId, Budget>,
    pub quota: BTreeMap<AgentId, Timestamp>,
    /// How long each agent's quota has been waited for since it last worked.
    pub quota_waited_ms: BTreeMap<AgentId, u64>,
    pub waivers: Vec<Waiver>,
    pub obligations_waived: BTreeSet<String>,
    /// A person does not want to be asked about these before somebody resumes.
    pub obligations_put_off: BTreeSet<String>,
    /// Inputs that a person replaced by another file.
    pub substitutes: BTreeMap<String, String>,
    pub referrals: BTreeMap<(StepId, StepId), Referral>,
    /// Last attempt number of steps that were taken away with their group: never used again.
    pub attempts_used: BTreeMap<StepId, u32>,
    pub plan_digest: Option<String>,
    pub results_ignored: u64,
    /// Orders from the inbox that have had their effect.
    pub messages_taken: BTreeSet<String>,
    /// What was tried and refused, oldest first, at most `limits::INTRUSIONS_MAX`.
    pub intrusions: Vec<Intrusion>,
    /// Files that attempts of this run changed, by path.
    pub changed: ChangedFiles,
    pub queues: Queues,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Nothing has happened yet.
    Created,
    Running,
    /// A stop was asked for; what runs may finish.
    Stopping,
    /// Nothing runs and nothing is started until somebody resumes.
    Paused(Pause),
    Ended {
        how: RunEnd,
        reason: String,
    },
}

/// Where a step stands. One writer: `State::set_phase`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Runs only when called for, and nobody has.
    Dormant,
    /// Some need is not met.
    Pending,
    /// Needs met; its gates are being looked at, or one of them does not hold.
    Gated,
    /// Needs met, gates open: waits for a free place, its list, or its question to be put.
    Ready,
    /// `AttemptStarted` is durable; its end is not.
    Running {
        attempt: u32,
    },
    /// The process is gone; the engine's own checks of this attempt are under way.
    Verifying {
        attempt: u32,
    },
    /// Tries again at this time.
    Backoff {
        until: Timestamp,
    },
    /// A person is asked.
    Waiting,
    /// Steps below it run (sub-run, fan-out, panel of reviewers).
    Open,
    /// A review whose demands are being worked on.
    Fixing,
    Passed {
        notes: Vec<String>,
    },
    Failed {
        message: String,
    },
    Blocked {
        reason: BlockReason,
        message: String,
    },
    Skipped {
        why: Skip,
        reason: String,
    },
}

impl Phase {
    /// Those who need this step may go on.
    pub fn is_satisfied(&self) -> bool {
        matches!(self, Phase::Passed { .. } | Phase::Skipped { .. })
    }

    /// It can still change without a person or another step doing something first.
    pub fn is_active(&self) -> bool {
        match self {
            Phase::Gated
            | Phase::Ready
            | Phase::Running { .. }
            | Phase::Verifying { .. }
            | Phase::Backoff { .. }
            | Phase::Waiting
            | Phase::Open => true,
            Phase::Dormant
            | Phase::Pending
            | Phase::Fixing
            | Phase::Passed { .. }
            | Phase::Failed { .. }
            | Phase::Blocked { .. }
            | Phase::Skipped { .. } => false,
        }
    }
}

/// The scope a step lives in: empty for the run itself, `fan/key` or `sub` below.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScopeId(pub String);

impl ScopeId {
    pub fn top() -> ScopeId {
        ScopeId::default()
    }

    pub fn child(&self, name: &str) -> StepId {
        if self.0.is_empty() { StepId::new(name) } else { StepId::new(format!("{}/{name}", self.0)) }
    }

    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }
}

/// One step, or one instance of a template. A run may have ten thousand of them, so what few steps ever have is boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepState {
    /// Its definition in the graph.
    pub template: StepId,
    pub scope: ScopeId,
    /// The group step it belongs to, and the key of its item.
    pub owner: Option<StepId>,
    pub item: Option<String>,
    pub phase: Phase,
    /// Needs that are not satisfied.
    pub unmet: u32,
    /// How often the work was sent round again, from 1.
    pub round: u32,
    /// How often everything about it was declared void, from 1.
    pub visit: u32,
    /// Attempts started over its whole life.
    pub attempts: u32,
    /// Of these, launches that never happened because an input was not as it must be.
    pub not_started: u32,
    /// Attempts of this round.
    pub tries: u32,
    /// Of a check step: how often its command failed in this round and was run again with nothing done about it.
    pub failed_before: u32,
    pub interruptions: u32,
    /// Attempts or rounds that people granted on top of the limit.
    pub granted: u32,
    pub question_rounds: u32,
    /// Waits for a quota in a row.
    pub quota_waits: u32,
    /// Questions of the last attempt that have been put so far.
    pub questions_put: u32,
    /// How often in a row the list it wrote could not be used.
    pub bad_lists: u32,
    pub cause: Option<Box<Cause>>,
    /// The folder with its work, which somebody handed in: its next attempt takes that.
    pub given: Option<String>,
    pub last_failure: Option<Box<Failure>>,
    /// The last failure that was not the machine's fault, to see an error come back (J-27).
    pub last_error: Option<Box<Failure>>,
    /// The last attempt's report, until the step has passed.
    pub report: Option<Box<AttemptReport>>,
    /// What the attempt read that made it pass, with the hashes that were there at launch.
    pub inputs: Vec<(ArtifactName, ContentHash)>,
    /// The last conversation of its agent, and the visit it belongs to.
    pub conversation: Option<Box<(Conversation, u32)>>,
    /// The model to fall back to in the next attempt, because there was no place for the one before.
    pub model: Option<String>,
    /// What its attempts by agents have cost.
    pub spent: Spent,
    /// The attempt that counts.
    pub accepted: Option<u32>,
    pub summary: String,
    /// The status word of the last reply, as its agent wrote it.
    pub word: String,
    /// The last attempt that began to work, and with what.
    pub launched: Option<Box<(u32, LaunchFact)>>,
    /// What its agents said on the way, by attempt: the last one that said something and those before it.
    pub hints: BTreeMap<u32, Vec<Hint>>,
    pub checks: Few<CheckId, bool>,
    /// Checks that were ok only after they had failed without a change in between.
    pub flaky: BTreeMap<CheckId, u64>,
    /// What the check said that failed.
    pub check_failure: Option<Box<CheckFact>>,
    /// What became of the changes of the last attempt.
    pub commit: Option<Box<CommitFact>>,
    pub gates: BTreeMap<GateId, Result<bool, String>>,
    pub gates_waived: BTreeSet<GateId>,
    pub review: Option<Box<ReviewState>>,
    /// Questions of its agent, answered so far in this round.
    pub answers: Vec<(Question, String)>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    pub message: String,
    pub work: Option<ContentHash>,
    /// What the check printed that failed.
    pub output: String,
}

/// The loop of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewState {
    /// Reviews of this visit that have been judged.
    pub rounds_done: u32,
    /// Fix steps that were sent round and have to pass before the review goes on.
    pub awaits: BTreeSet<StepId>,
    /// Fix steps that have not been sent round yet.
    pub fix_queue: VecDeque<StepId>,
    /// What the fix steps have to mend.
    pub demands: Vec<Finding>,
    /// Last verdict of each reviewer, and the round it was given in.
    pub verdicts: BTreeMap<StepId, Judgement>,
    /// Every judgement so far, oldest first.
    pub history: Vec<Judged>,
    /// Notes that a person left as they are while others were to be mended: nobody is asked about them again.
    pub kept: Vec<Finding>,
    /// Blocking findings of the round before, to see whether anything moves.
    pub last_blocking: Vec<String>,
    pub stalled_rounds: u32,
    /// The round in which the limit was found to be used up.
    pub exhausted_in: Option<u32>,
}

/// A judgement as it was given, kept for those who tell the story of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    pub reviewer: StepId,
    pub round: u32,
    pub at: Timestamp,
    pub verdict: Verdict,
    pub summary: String,
    pub findings: Vec<Finding>,
    /// What those whose work was judged had said of it.
    pub work: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub round: u32,
    /// Of the reviewer.
    pub attempt: u32,
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    /// The reviewer leaves it to a person.
    pub doubts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub step: StepId,
    pub attempt: u32,
    pub declared: ArtifactName,
    pub hash: ContentHash,
    /// A person changed it by hand and chose to keep that.
    pub adopted: bool,
    /// Its contract held when it was published.
    pub holds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    Pending,
    Answered,
    Cancelled,
    Skipped,
    Stale,
}

impl DecisionStatus {
    pub fn word(self) -> &'static str {
        match self {
            DecisionStatus::Pending => "pending",
            DecisionStatus::Answered => "answered",
            DecisionStatus::Cancelled => "cancelled",
            DecisionStatus::Skipped => "skipped",
            DecisionStatus::Stale => "stale",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionState {
    pub decision: Decision,
    pub status: DecisionStatus,
    pub answer: Option<String>,
    /// The answer in the person's own words.
    pub said: Option<String>,
    pub comment: Option<String>,
    pub route: Option<RoleId>,
    /// Of what was noted: what the answer is about, counted from 1.
    pub chosen: Vec<u32>,
    pub reason: Option<String>,
    pub opened_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    /// Everything answered before under the same id: `(answer, comment, at)`.
    pub history: Vec<(String, Option<String>, Timestamp)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOutState {
    pub hash: ContentHash,
    pub items: BTreeMap<String, ItemState>,
    /// Keys in the order of the list.
    pub order: Vec<String>,
    /// Open-able keys, in order.
    pub ready: VecDeque<String>,
    /// Keys that can never open because an item they wait for did not pass.
    pub doomed: VecDeque<String>,
    /// Items of each wave that have not ended.
    pub wave_left: BTreeMap<u32, u32>,
    pub open: u32,
    pub ended: u32,
    /// The last question about its list, which was changed after this fan-out began.
    pub list_asked: Option<DecisionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemState {
    pub needs: Vec<String>,
    pub dependents: Vec<String>,
    pub unmet: u32,
    pub wave: u32,
    pub opened: bool,
    pub end: Option<ItemEnd>,
    pub element: Option<ContentHash>,
    /// What an earlier turn of the fan-out did for it counts.
    pub kept: bool,
}

/// An item that passed, and everything that is known of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemAside {
    pub element: ContentHash,
    pub needs: Vec<String>,
    pub steps: BTreeMap<StepId, Box<StepState>>,
    /// Fan-outs among its steps.
    pub fan_outs: BTreeMap<StepId, FanOutState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub tokens: u64,
    pub micro_usd: u64,
    pub launches: u64,
    /// Attempts of agents whose cost nobody told.
    pub unpriced: u64,
    /// Attempts of agents that told their cost, and those that told their tokens.
    pub priced: u64,
    pub counted: u64,
    /// Time during which at least one attempt was live.
    pub active_ms: u64,
    pub active_since: Option<Timestamp>,
    /// Attempts that are live now.
    pub live: u32,
}

impl Spent {
    /// What one attempt of an agent cost. Not told is not zero.
    pub(crate) fn add(&mut self, usage: Option<&Usage>) {
        self.tokens = self.tokens.saturating_add(usage.and_then(|usage| usage.tokens).unwrap_or(0));
        self.micro_usd = self.micro_usd.saturating_add(usage.and_then(|usage| usage.micro_usd).unwrap_or(0));
        self.unpriced += u64::from(usage.is_none_or(|usage| usage.micro_usd.is_none()));
        self.priced += u64::from(usage.is_some_and(|usage| usage.micro_usd.is_some()));
        self.counted += u64::from(usage.is_some_and(|usage| usage.tokens.is_some()));
    }

    /// What the attempts that told it have cost; nobody has told yet = unknown, never zero (J-43).
    pub fn known_micro_usd(&self) -> Option<u64> {
        (self.priced > 0 || (self.launches == 0 && self.unpriced == 0)).then_some(self.micro_usd)
    }

    pub fn known_tokens(&self) -> Option<u64> {
        (self.counted > 0 || (self.launches == 0 && self.unpriced == 0)).then_some(self.tokens)
    }
}

/// What a person let pass although it should not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiver {
    pub step: StepId,
    pub reason: String,
    pub at: Timestamp,
    /// The gate it lets pass; none = the step as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateId>,
    /// The obligation it lets go; then `step` is the one that would have met it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obligation: Option<String>,
}

impl Waiver {
    /// A step that counts although it did not pass.
    pub fn of_step(step: &StepId, reason: &str, at: Timestamp) -> Waiver {
        Waiver { step: step.clone(), reason: reason.to_owned(), at, gate: None, obligation: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referral {
    pub count: u32,
    pub granted: u32,
    pub last_work: Option<ContentHash>,
}

impl State {
    pub fn new(plan: &Plan) -> State {
        State {
            run: String::new(),
            request: String::new(),
            profile: plan.profile.clone(),
            phase: RunPhase::Created,
            until: None,
            done_before: BTreeMap::new(),
            rounds_before: BTreeMap::new(),
            answers_before: BTreeMap::new(),
            started_at: Timestamp(0),
            updated_at: Timestamp(0),
            steps: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            decisions: BTreeMap::new(),
            decisions_numbered: 0,
            fan_outs: BTreeMap::new(),
            set_aside: BTreeMap::new(),
            restarts: BTreeMap::new(),
            spent: BTreeMap::new(),
            spent_by_role: BTreeMap::new(),
            budgets: BTreeMap::from([(ScopeId::top(), plan.budget_of(&plan.profile).clone())]),
            quota: BTreeMap::new(),
            quota_waited_ms: BTreeMap::new(),
            waivers: Vec::new(),
            obligations_waived: BTreeSet::new(),
            obligations_put_off: BTreeSet::new(),
            substitutes: BTreeMap::new(),
            referrals: BTreeMap::new(),
            attempts_used: BTreeMap::new(),
            plan_digest: None,
            results_ignored: 0,
            messages_taken: BTreeSet::new(),
            intrusions: Vec::new(),
            changed: ChangedFiles::default(),
            queues: Queues::default(),
        }
    }

    pub fn graph<'p>(&self, plan: &'p Plan) -> &'p Graph {
        plan.graph(&self.profile)
    }

    /// The definition of an instance.
    pub fn definition<'p>(&self, plan: &'p Plan, step: &StepId) -> Option<&'p Step> {
        self.graph(plan).steps.get(&self.steps.get(step)?.template).map(|step| &**step)
    }

    /// The instance of `template` in the scope of `of`.
    pub fn sibling(&self, plan: &Plan, of: &StepState, template: &StepId) -> StepId {
        if of.scope.is_top() {
            return template.clone();
        }
        let name = self.graph(plan).steps.get(template).map_or(template.as_str(), |step| step.name.as_str());
        of.scope.child(name)
    }

    /// Is this step one of several reviewers of a panel? Then the panel.
    pub fn panel_of(&self, plan: &Plan, step: &StepId) -> Option<StepId> {
        let owner = self.steps.get(step)?.owner.clone()?;
        let definition = self.definition(plan, &owner)?;
        matches!(definition.kind, Kind::Review(_)).then_some(owner)
    }

    /// Has a group around this step passed, or was it left out?
    pub fn is_inside_of_satisfied(&self, step: &StepId) -> bool {
        let mut owner = self.steps.get(step).and_then(|own| own.owner.as_ref());
        while let Some(group) = owner.and_then(|id| self.steps.get(id)) {
            if group.phase.is_satisfied() {
                return true;
            }
            owner = group.owner.as_ref();
        }
        false
    }

    /// Everything that is left inside this open group waits for a person.
    pub fn waits_inside(&self, group: &StepId) -> bool {
        let inside =
            |id: &StepId| id.as_str().strip_prefix(group.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let queues = &self.queues;
        let here = |step: &StepId| step == group || inside(step);
        let asked = |id: &DecisionId| self.decisions.get(id).is_some_and(|known| here(&known.decision.step));
        let due = queues.due.keys().chain(&queues.gating).chain(&queues.closed).chain(&queues.openable);
        queues.pending_decisions.iter().any(asked)
            && !queues.live.iter().any(inside)
            && !queues.backoff.iter().any(|(_, id)| inside(id))
            && !queues.lanes.values().flatten().any(inside)
            && !due.chain(&queues.listing).chain(&queues.fix_next).any(inside)
    }

    pub fn has_live_attempts(&self) -> bool {
        !self.queues.live.is_empty()
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, RunPhase::Ended { .. })
    }

    /// The next number of an ad-hoc decision.
    pub fn next_decision_id(&self, plan: &Plan, ahead: u32) -> DecisionId {
        DecisionId::new(format!("{}{}", plan.decision_prefix, self.decisions_numbered + 1 + ahead))
    }
}

/// What the whole run is doing, in the words of the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Waiting,
    Blocked,
    Paused,
    Done,
    Failed,
    Abandoned,
}

impl State {
    pub fn status(&self) -> RunStatus {
        match &self.phase {
            RunPhase::Created | RunPhase::Stopping => RunStatus::Running,
            RunPhase::Paused(Pause::Unwritten { .. }) => RunStatus::Blocked,
            RunPhase::Paused(_) => RunStatus::Paused,
            RunPhase::Ended { how: RunEnd::Done, .. } => RunStatus::Done,
            RunPhase::Ended { how: RunEnd::Failed, .. } => RunStatus::Failed,
            RunPhase::Ended { how: RunEnd::Abandoned, .. } => RunStatus::Abandoned,
            RunPhase::Running if self.can_progress() => RunStatus::Running,
            RunPhase::Running if !self.queues.pending_decisions.is_empty() => RunStatus::Waiting,
            RunPhase::Running => RunStatus::Blocked,
        }
    }

    /// Something happens without anybody's help: a process, a timer, an evaluation.
    pub fn can_progress(&self) -> bool {
        let queues = &self.queues;
        !(queues.live.is_empty()
            && queues.due.is_empty()
            && queues.stale.is_empty()
            && !queues.fix_next.iter().any(|review| self.can_send_fixers(review))
            && queues.backoff.is_empty()
            && queues.gating.is_empty()
            && queues.listing.is_empty()
            && queues.openable.is_empty()
            && queues.closed.is_empty()
            && queues.lanes.values().all(VecDeque::is_empty))
    }

    /// A review whose fixers still work for another review has to wait for that one; if it rests, so does this.
    fn can_send_fixers(&self, review: &StepId) -> bool {
        let looped = self.steps.get(review).and_then(|own| own.review.as_ref());
        looped.is_some_and(|looped| {
            looped.fix_queue.iter().all(|fixer| !self.queues.awaited_by.contains_key(fixer))
        })
    }
}
