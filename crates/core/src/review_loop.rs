//! Review, fix, review again: when a loop goes on, when it ends, who fixes what.

use std::collections::BTreeSet;

use crate::{
    apply::fingerprint,
    decision,
    event::{About, BlockReason, Cause, Decision, Event},
    fact::AttemptReport,
    ids::StepId,
    plan::{AnswerEffect, Kind, Plan, Rereview, Rerun, Review},
    restart,
    state::{ReviewState, ScopeId, State},
    step,
    verdict::{Finding, Verdict, verdict_of},
};

/// Findings that a question names.
const NAMED_MAX: usize = 5;

/// A reviewer's attempt counts: what follows for the review.
pub fn judge(plan: &Plan, state: &State, id: &StepId, review: &Review, report: &AttemptReport) -> Vec<Event> {
    let Some(reply) = &report.reply else { return Vec::new() };
    let panel = state.panel_of(plan, id);
    let holder = panel.as_ref().unwrap_or(id);
    let round = state.steps.get(holder).map_or(1, |own| own.round);
    let verdict = verdict_of(reply, review.block_at, review.hard_stop_on_blocked);
    let attempt = state.steps.get(id).map_or(0, |own| own.attempts);
    let looped = state.steps.get(holder).and_then(|own| own.review.as_ref());
    if looped.and_then(|looped| looped.verdicts.get(id)).is_none_or(|last| last.attempt != attempt) {
        return vec![Event::Judged { step: id.clone(), round, verdict }];
    }
    if panel.is_some() {
        return vec![Event::StepPassed { step: id.clone(), notes: Vec::new() }];
    }
    concluded(plan, state, id, review, round, verdict, &reply.findings)
}

/// Every reviewer of a panel has spoken, or one of them cannot.
pub fn panel_is_quiet(plan: &Plan, state: &State, panel: &StepId, review: &Review) -> Vec<Event> {
    let scope = ScopeId(panel.as_str().to_owned());
    let Some(own) = state.steps.get(panel) else { return Vec::new() };
    let Some(looped) = &own.review else { return Vec::new() };
    if state.queues.scopes.get(&scope).is_some_and(|counts| counts.unsatisfied > 0) {
        let names: Vec<String> =
            crate::fan_out::culprits(state, &scope).iter().map(|id| id.as_str().to_owned()).collect();
        let message = format!("no verdict from {}", names.join(", "));
        return vec![Event::StepBlocked { step: panel.clone(), reason: BlockReason::ItemsFailed, message }];
    }
    let verdict =
        looped.verdicts.values().map(|judgement| judgement.verdict).max().unwrap_or(Verdict::Revise);
    let findings: Vec<Finding> =
        looped.verdicts.values().flat_map(|judgement| judgement.findings.clone()).collect();
    let everybody_saw_it = looped.verdicts.values().all(|judgement| judgement.round == own.round);
    if verdict < Verdict::Revise && review.final_pass && !everybody_saw_it {
        if own.round < review.rounds_max + own.granted {
            return vec![Event::RoundOpened {
                review: panel.clone(),
                round: own.round + 1,
                fix: Vec::new(),
                findings: Vec::new(),
            }];
        }
        return exhausted(
            plan,
            state,
            panel,
            review,
            own.round,
            "no round is left for a last look by all reviewers",
        );
    }
    concluded(plan, state, panel, review, own.round, verdict, &findings)
}

impl State {
    /// Nobody demands work any more, but not everybody has seen the last state of it.
    pub(crate) fn full_pass_is_due(&self, plan: &Plan, panel: &StepId) -> bool {
        let Some(looped) = self.steps.get(panel).and_then(|own| own.review.as_ref()) else { return false };
        let rereview = self.definition(plan, panel).is_some_and(|definition| {
            matches!(&definition.kind, Kind::Review(review) if review.rereview == Rereview::Failed)
        });
        rereview
            && !looped.verdicts.is_empty()
            && looped.verdicts.values().all(|judgement| judgement.verdict < Verdict::Revise)
    }
}

fn concluded(
    plan: &Plan,
    state: &State,
    id: &StepId,
    review: &Review,
    round: u32,
    verdict: Verdict,
    findings: &[Finding],
) -> Vec<Event> {
    let looped = state.steps.get(id).and_then(|own| own.review.as_deref());
    let all_notes = || looped.map(all_notes).unwrap_or_default();
    match verdict {
        Verdict::Pass => vec![Event::StepPassed { step: id.clone(), notes: all_notes() }],
        Verdict::PassWithNotes if is_for_a_person(state, id, review, findings) => {
            vec![Event::DecisionOpened { decision: about_notes(plan, state, id, review, findings) }]
        }
        Verdict::PassWithNotes => vec![Event::StepPassed { step: id.clone(), notes: all_notes() }],
        Verdict::HardStop => {
            let question = format!("`{id}` forbids going on. What now?");
            vec![Event::DecisionOpened {
                decision: decision::ad_hoc(
                    plan,
                    state,
                    id,
                    About::HardStop,
                    question,
                    decision::after_review(),
                ),
            }]
        }
        Verdict::Revise => revise(plan, state, id, review, round, findings),
    }
}

/// A note is grave enough, or a reviewer says itself that a person has to judge.
fn is_for_a_person(state: &State, id: &StepId, review: &Review, findings: &[Finding]) -> bool {
    let doubts = || {
        let judged = state.steps.get(id).and_then(|own| own.review.as_ref());
        judged.is_some_and(|looped| looped.verdicts.values().any(|judgement| judgement.doubts))
    };
    let looped = state.steps.get(id).and_then(|own| own.review.as_ref());
    let is_new = |finding: &&Finding| looped.is_none_or(|looped| !is_kept(looped, finding));
    !review.on_notes.is_empty()
        && (findings.iter().filter(is_new).any(|finding| review.asks_about(finding)) || doubts())
}

/// A person has left this note as it is.
pub(crate) fn is_kept(looped: &ReviewState, finding: &Finding) -> bool {
    looped.kept.iter().any(|kept| fingerprint(kept) == fingerprint(finding))
}

/// What stays on record with a review that passes: what was left, and what is noted now.
pub(crate) fn all_notes(looped: &ReviewState) -> Vec<String> {
    let noted = looped.verdicts.values().flat_map(|judgement| judgement.findings.clone());
    let found: Vec<Finding> =
        looped.kept.iter().cloned().chain(noted.filter(|finding| !is_kept(looped, finding))).collect();
    notes(&found)
}

fn about_notes(plan: &Plan, state: &State, id: &StepId, review: &Review, findings: &[Finding]) -> Decision {
    let listed: String = notes(findings).iter().enumerate().fold(String::new(), |text, (place, note)| {
        text + &format!("\n{}. {}", place + 1, note.replace('\n', " "))
    });
    let question = if findings.is_empty() {
        let said = state.steps.get(id).map(|own| own.summary.clone()).unwrap_or_default();
        format!("`{id}` leaves it to a person: {said}")
    } else {
        let again = review.on_notes.iter().find(|answer| answer.effect == AnswerEffect::Again);
        let some = again.filter(|_| findings.len() > 1).map_or(String::new(), |answer| {
            format!(
                " `{} 1` mends only the first, `{} 1,2` the first two, and leaves the rest.",
                answer.word, answer.word
            )
        });
        format!("`{id}` blocks nothing and notes:{listed}\nWhat becomes of them?{some}")
    };
    decision::ad_hoc(plan, state, id, About::Notes, question, review.on_notes.clone())
}

pub fn notes(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("[{}] {}", finding.severity.word(), finding.problem)).collect()
}

fn revise(
    plan: &Plan,
    state: &State,
    id: &StepId,
    review: &Review,
    round: u32,
    findings: &[Finding],
) -> Vec<Event> {
    let Some(own) = state.steps.get(id) else { return Vec::new() };
    let blocking: Vec<Finding> =
        findings.iter().filter(|finding| finding.blocks(review.block_at)).cloned().collect();
    if round >= review.rounds_max + own.granted {
        let message = if blocking.is_empty() {
            format!("the reviewer still demands work after {round} round(s), without naming any")
        } else {
            format!(
                "{} blocking finding(s) remain after {round} round(s){}",
                blocking.len(),
                listed(&blocking)
            )
        };
        let message = message + &tried(plan, state, id, review, &blocking);
        return exhausted(plan, state, id, review, round, &message);
    }
    if is_stalled(own.review.as_deref(), review, &blocking) {
        let question = format!("`{id}` found the same again in round {round}. Go on?");
        return vec![Event::DecisionOpened {
            decision: decision::ad_hoc(plan, state, id, About::Stalled, question, decision::after_review()),
        }];
    }
    vec![open_round(plan, state, id, review, round + 1, blocking)]
}

/// Why it failed: the first few findings, for whoever has to decide now.
fn listed(blocking: &[Finding]) -> String {
    let named: Vec<String> =
        blocking.iter().take(NAMED_MAX).map(|finding| finding.problem.replace('\n', " ")).collect();
    let more = blocking.len().saturating_sub(NAMED_MAX);
    format!(": {}{}", named.join("; "), if more > 0 { format!("; and {more} more") } else { String::new() })
}

/// What was tried: the fixers' own words.
fn tried(plan: &Plan, state: &State, id: &StepId, review: &Review, blocking: &[Finding]) -> String {
    let Some(own) = state.steps.get(id) else { return String::new() };
    let said = fixers(review, blocking).into_iter().filter_map(|template| {
        let step = state.sibling(plan, own, &template);
        let summary = state.steps.get(&step).filter(|fixer| fixer.round > 1)?.summary.replace('\n', " ");
        (!summary.is_empty()).then(|| format!("`{step}` said: {summary}"))
    });
    said.fold(String::new(), |text, one| text + "; " + &one)
}

fn is_stalled(looped: Option<&ReviewState>, review: &Review, blocking: &[Finding]) -> bool {
    let (Some(limit), Some(looped)) = (review.stalled_after, looped) else { return false };
    let now: Vec<String> = blocking.iter().map(fingerprint).collect();
    looped.last_blocking == now && looped.stalled_rounds + 1 >= limit
}

/// The next round: the fixers of these findings run again, then the review.
pub fn open_round(
    plan: &Plan,
    state: &State,
    id: &StepId,
    review: &Review,
    round: u32,
    findings: Vec<Finding>,
) -> Event {
    let fix = state.steps.get(id).map(|own| {
        fixers(review, &findings)
            .into_iter()
            .map(|template| state.sibling(plan, own, &template))
            .filter(|step| state.steps.contains_key(step))
            .collect()
    });
    Event::RoundOpened { review: id.clone(), round, fix: fix.unwrap_or_default(), findings }
}

/// Sends the fixers of a round: all of them, or, in a loop that runs exactly the listed steps, one
/// after the other. A fixer that still works for another review is waited for.
pub fn next_fix(plan: &Plan, state: &State, id: &StepId) -> Option<Vec<Event>> {
    let looped = state.steps.get(id)?.review.as_ref()?;
    let rerun = state.definition(plan, id)?.rounds()?.rerun;
    let targets: BTreeSet<StepId> = match rerun {
        Rerun::Listed => looped.fix_queue.iter().take(1).cloned().collect(),
        Rerun::Between => looped.fix_queue.iter().cloned().collect(),
    };
    if targets.iter().any(|target| state.queues.awaited_by.contains_key(target)) {
        return None;
    }
    let cause = Cause::Fix { review: id.clone(), findings: looped.demands.clone() };
    Some(restart::redo(plan, state, &targets, cause, Some((id, rerun))))
}

/// Which steps mend these findings, in the order of the definition, each once.
fn fixers(review: &Review, findings: &[Finding]) -> Vec<StepId> {
    let known = |route: &str| review.fix.iter().any(|entry| entry.route.as_deref() == Some(route));
    let has_rest = findings.is_empty()
        || findings.iter().any(|finding| finding.route.as_deref().is_none_or(|route| !known(route)));
    let default_exists = review.fix.iter().any(|entry| entry.route.is_none());
    let called = |entry: &&crate::plan::FixRoute| match &entry.route {
        Some(route) => {
            findings.iter().any(|finding| finding.route.as_ref() == Some(route))
                || (has_rest && !default_exists)
        }
        None => has_rest,
    };
    let mut steps = Vec::new();
    for step in review.fix.iter().filter(called).flat_map(|entry| &entry.steps) {
        if !steps.contains(step) {
            steps.push(step.clone());
        }
    }
    steps
}

fn exhausted(
    plan: &Plan,
    state: &State,
    id: &StepId,
    review: &Review,
    rounds: u32,
    message: &str,
) -> Vec<Event> {
    let known =
        state.steps.get(id).and_then(|own| own.review.as_ref()).and_then(|looped| looped.exhausted_in);
    if known != Some(rounds) {
        return vec![Event::LoopExhausted { review: id.clone(), rounds, message: message.to_owned() }];
    }
    step::exhausted(plan, state, id, &review.on_exhausted, BlockReason::RoundsExhausted, message)
}
