//! Questions to people: how they are put, how an answer is understood, what it does.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    decide::Rejected,
    event::{About, BlockReason, Cause, Decision, Event, RunEnd, Skip},
    gate,
    ids::{ArtifactName, ContentHash, DecisionId, StepId},
    input,
    outcome::Question as Asked,
    plan::{Answer, AnswerEffect, Gate, Must, Obligation, Plan, Question},
    restart, review_loop,
    state::{DecisionState, DecisionStatus, Phase, State},
    step,
    verdict::{Finding, Severity},
};

/// The question of a decision step, bound to what the record says is shown.
pub fn of_step(state: &State, step: &StepId, question: &Question) -> Decision {
    let own_name =
        question.name.as_ref().filter(|_| state.steps.get(step).is_some_and(|own| own.scope.is_top()));
    let id = own_name.map_or_else(|| DecisionId::new(step.as_str()), DecisionId::new);
    Decision {
        id,
        step: step.clone(),
        about: About::Step,
        question: question.question.clone(),
        to_render: question.template,
        answers: question.answers.clone(),
        show: question.show.clone(),
        bound: bound_now(state, &question.show),
    }
}

/// Hashes of those shown things that the record knows; the rest is hashed by the host.
fn bound_now(state: &State, show: &[ArtifactName]) -> BTreeMap<ArtifactName, ContentHash> {
    show.iter()
        .filter_map(|name| state.artifacts.get(name).map(|artifact| (name.clone(), artifact.hash.clone())))
        .collect()
}

pub fn ad_hoc(
    plan: &Plan,
    state: &State,
    step: &StepId,
    about: About,
    question: String,
    answers: Vec<Answer>,
) -> Decision {
    let id = state.next_decision_id(plan, 0);
    Decision {
        id,
        step: step.clone(),
        about,
        question,
        to_render: false,
        answers,
        show: Vec::new(),
        bound: BTreeMap::new(),
    }
}

fn answer_word(word: &str, synonyms: &[&str], effect: AnswerEffect) -> Answer {
    Answer {
        word: word.to_owned(),
        synonyms: synonyms.iter().map(|word| (*word).to_owned()).collect(),
        effect,
    }
}

/// Ways out when a review cannot end by itself.
pub fn after_review() -> Vec<Answer> {
    vec![
        answer_word("accept", &[], AnswerEffect::Accept),
        answer_word("again", &["retry"], AnswerEffect::Again),
        answer_word("abort", &[], AnswerEffect::Abort),
    ]
}

pub fn after_ping_pong() -> Vec<Answer> {
    vec![
        answer_word("again", &["retry", "continue"], AnswerEffect::Again),
        answer_word("block", &["stop"], AnswerEffect::Block),
        answer_word("abort", &[], AnswerEffect::Abort),
    ]
}

pub fn soft_gate(plan: &Plan, state: &State, step: &StepId, gate: &Gate, missing: &str) -> Decision {
    let answers = vec![
        answer_word("proceed", &["yes", "y", "continue"], AnswerEffect::Accept),
        answer_word("stop", &["no", "n"], AnswerEffect::Block),
    ];
    let question = format!("`{step}` would start although {missing}. Proceed?");
    ad_hoc(plan, state, step, About::Gate { gate: gate.id.clone() }, question, answers)
}

pub fn hand_edit(
    plan: &Plan,
    state: &State,
    step: &StepId,
    name: &ArtifactName,
    found: &ContentHash,
) -> Decision {
    let answers = vec![
        answer_word("adopt", &["keep"], AnswerEffect::Accept),
        answer_word("restore", &["undo"], AnswerEffect::Again),
    ];
    let question = format!(
        "`{name}` was changed by hand after it was accepted. Adopt the change, or restore what was accepted?"
    );
    ad_hoc(plan, state, step, About::HandEdit { name: name.clone(), found: found.clone() }, question, answers)
}

/// The list of a fan-out at work says something else now. Its items go on; the fan-out does not end before the answer.
pub fn changed_list(
    plan: &Plan,
    state: &State,
    step: &StepId,
    name: &ArtifactName,
    found: &ContentHash,
    what: &str,
) -> Decision {
    let answers = vec![
        answer_word("adopt", &[], AnswerEffect::Accept),
        answer_word("ignore", &[], AnswerEffect::Again),
    ];
    let question = format!(
        "{what}. Adopt the new list, or ignore it and go on with the one it began with? Adopted, it is worked on as soon \
         as the items under way are through; finished items that are the same are kept, all others run."
    );
    ad_hoc(plan, state, step, About::List { name: name.clone(), found: found.clone() }, question, answers)
}

/// Everything is through, and what must have happened has not. The question belongs to the run.
pub fn obligation(plan: &Plan, state: &State, obligation: &Obligation) -> Decision {
    let target = gate::could_run(plan, state, obligation);
    let misses = match &obligation.must {
        Must::Role { role } => format!("no step of role `{role}` has passed"),
        Must::Step { step } => format!("`{step}` has not passed"),
        Must::Decision { step } => format!("`{step}` was not answered"),
    };
    let mut answers = vec![
        answer_word("waive", &["accept"], AnswerEffect::Accept),
        answer_word("abort", &[], AnswerEffect::Abort),
    ];
    let mut ways = "Waive it (with a reason), or abort?".to_owned();
    if let Some(step) = &target {
        answers.insert(0, answer_word("run", &["again"], AnswerEffect::Again));
        ways = format!("Run `{step}`, waive it (with a reason), or abort?");
    }
    let question = format!("Obligation `{}` is not met: {misses}. {ways}", obligation.name);
    let step = target.unwrap_or_else(|| gate::subject(obligation));
    ad_hoc(plan, state, &step, About::Obligation { name: obligation.name.clone() }, question, answers)
}

/// One of an agent's questions; `place` is its place in the batch.
pub fn question(
    plan: &Plan,
    state: &State,
    step: &StepId,
    batch: u32,
    asked: &Asked,
    place: u32,
) -> Decision {
    let answers = asked.options.iter().map(|option| answer_word(option, &[], AnswerEffect::Again)).collect();
    Decision {
        id: state.next_decision_id(plan, place),
        step: step.clone(),
        about: About::Question { batch, asked: asked.clone() },
        question: asked.question.clone(),
        to_render: false,
        answers,
        show: Vec::new(),
        bound: BTreeMap::new(),
    }
}

/// What a person's words mean: the canonical answer and a comment.
pub fn understand(answers: &[Answer], value: &str) -> Option<(Answer, Option<String>)> {
    let plain = |text: &str| text.trim().trim_matches(['"', '\'', '.', '!']).trim().to_lowercase();
    let find = |text: &str| {
        let text = plain(text);
        let hit = |answer: &&Answer| {
            plain(&answer.word) == text || answer.synonyms.iter().any(|word| plain(word) == text)
        };
        answers.iter().find(hit).cloned()
    };
    if let Some(answer) = find(value) {
        return Some((answer, None));
    }
    if let Some((word, comment)) = value.split_once(':')
        && let Some(answer) = find(word)
    {
        let comment = comment.trim();
        return Some((answer, (!comment.is_empty()).then(|| comment.to_owned())));
    }
    // `fix *` is said by "fix the name": what was said is the comment.
    let said = plain(value);
    let begins = |answer: &&Answer| {
        let opened = answer.synonyms.iter().filter_map(|synonym| synonym.strip_suffix('*'));
        opened.map(str::to_lowercase).any(|prefix| said.starts_with(&prefix))
    };
    answers.iter().find(begins).map(|answer| (answer.clone(), Some(value.trim().to_owned())))
}

/// `fix 1, 3: both soon` and `fix: 1, 3` choose two of what was noted: the words without the numbers, and the numbers.
fn chosen_of(value: &str) -> (String, Vec<u32>) {
    let (head, comment) = value.split_once(':').map_or((value, ""), |(head, comment)| (head, comment));
    let split = |text: &str| -> (usize, Vec<u32>) {
        let words: Vec<&str> = text.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        let number = |word: &str| word.trim_end_matches('.').parse::<u32>().ok();
        let joins = |word: &str| matches!(word.to_lowercase().as_str(), "and" | "&" | "+");
        let last = words.iter().rev().take_while(|word| number(word).is_some() || joins(word)).count();
        let mut named: Vec<u32> = words.iter().rev().take(last).filter_map(|word| number(word)).collect();
        named.sort_unstable();
        named.dedup();
        (words.len() - last, named)
    };
    let ((said, in_head), (others, in_comment)) = (split(head), split(comment));
    if !in_head.is_empty() && said > 0 {
        let words: Vec<&str> =
            head.split([' ', ',', ';']).filter(|word| !word.is_empty()).take(said).collect();
        let comment = comment.trim();
        let words = words.join(" ");
        return (if comment.is_empty() { words } else { format!("{words}: {comment}") }, in_head);
    }
    if in_head.is_empty() && others == 0 && !in_comment.is_empty() {
        return (head.to_owned(), in_comment);
    }
    (value.to_owned(), Vec::new())
}

/// What the review of this step found the last time, in the order in which it is listed to people.
fn noted<'s>(state: &'s State, step: &StepId) -> impl Iterator<Item = &'s Finding> {
    let looped = state.steps.get(step).and_then(|own| own.review.as_ref());
    looped.into_iter().flat_map(|looped| looped.verdicts.values()).flat_map(|judgement| &judgement.findings)
}

/// A person answered: is it an answer, and what follows?
pub fn answer(plan: &Plan, state: &State, given: &input::Answer) -> Result<Vec<Event>, Rejected> {
    let decision = open_decision(state, &given.decision)?;
    let changed: Vec<ArtifactName> = decision
        .decision
        .bound
        .iter()
        .filter(|(name, hash)| given.seen.get(*name).is_some_and(|seen| seen != *hash))
        .map(|(name, _)| name.clone())
        .collect();
    if !changed.is_empty() {
        return Err(Rejected::ChangedSinceShown { decision: given.decision.clone(), changed });
    }
    if let About::HandEdit { name, found } | About::List { name, found } = &decision.decision.about
        && given.seen.get(name).is_some_and(|seen| seen != found)
    {
        let changed = vec![name.clone()];
        return Err(Rejected::ChangedSinceShown { decision: given.decision.clone(), changed });
    }
    if !decision.decision.is_put() {
        return Err(Rejected::NotShownYet { decision: given.decision.clone() });
    }
    if decision.decision.answers.is_empty() {
        return free_text(given);
    }
    let allowed = || decision.decision.answers.iter().map(|answer| answer.word.clone()).collect();
    let refused = || Rejected::NotAnAnswer {
        decision: given.decision.clone(),
        value: given.value.clone(),
        allowed: allowed(),
    };
    let (value, chosen) = match decision.decision.about {
        About::Notes => chosen_of(&given.value),
        _ => (given.value.clone(), Vec::new()),
    };
    let (understood, inline) = understand(&decision.decision.answers, &value).ok_or_else(refused)?;
    let noted = noted(state, &decision.decision.step).count();
    let are_there = chosen.iter().all(|place| *place > 0 && *place as usize <= noted);
    let may_choose = are_there && understood.effect == AnswerEffect::Again;
    if !chosen.is_empty() && !may_choose {
        return Err(refused());
    }
    let comment = match (given.comment.clone().filter(|text| !text.trim().is_empty()), inline) {
        (Some(comment), Some(inline)) => Some(format!("{inline}\n{comment}")),
        (comment, inline) => comment.or(inline),
    };
    let approves = matches!(understood.effect, AnswerEffect::Pass | AnswerEffect::Accept);
    if matches!(decision.decision.about, About::Obligation { .. }) {
        // A waiver has a reason (decision 11); here the comment is that, not a condition.
        if approves && comment.is_none() {
            return Err(Rejected::ReasonMissing);
        }
    } else if approves && comment.is_some() && !given.confirmed {
        return Err(Rejected::ApprovalWithComment { decision: given.decision.clone() });
    }
    if let (Some(route), AnswerEffect::Redo { routes, .. }) = (&given.route, &understood.effect) {
        let leads = |steps: &Vec<StepId>| leads_somewhere(plan, state, &decision.decision.step, steps);
        if !routes.get(route).is_some_and(leads) {
            let open = routes.iter().filter(|(_, steps)| leads(steps));
            return Err(Rejected::NoSuchRoute {
                decision: given.decision.clone(),
                route: route.clone(),
                allowed: open.map(|(role, _)| role.as_str().to_owned()).collect(),
            });
        }
    }
    Ok(vec![Event::DecisionAnswered {
        id: given.decision.clone(),
        answer: understood.word.clone(),
        comment,
        route: given.route.clone(),
        said: Some(given.value.trim().to_owned()).filter(|said| *said != understood.word),
        chosen,
        channel: given.channel.clone(),
    }])
}

/// Somebody would work if these steps were redone. What its condition leaves out would be left out again, and the
/// same would be asked as if it had been corrected.
fn leads_somewhere(plan: &Plan, state: &State, asker: &StepId, steps: &[StepId]) -> bool {
    let Some(own) = state.steps.get(asker) else { return false };
    let left_out =
        |phase: &Phase| matches!(phase, Phase::Skipped { why: Skip::Condition | Skip::Disabled, .. });
    restart::instances(plan, state, own, &steps.iter().cloned().collect())
        .iter()
        .filter_map(|id| state.steps.get(id))
        .any(|step| !left_out(&step.phase))
}

fn free_text(given: &input::Answer) -> Result<Vec<Event>, Rejected> {
    if given.value.trim().is_empty() {
        return Err(Rejected::NotAnAnswer {
            decision: given.decision.clone(),
            value: String::new(),
            allowed: vec!["any text".to_owned()],
        });
    }
    Ok(vec![Event::DecisionAnswered {
        id: given.decision.clone(),
        answer: given.value.clone(),
        comment: given.comment.clone(),
        route: None,
        said: None,
        chosen: Vec::new(),
        channel: given.channel.clone(),
    }])
}

/// The decision, if it waits for an answer.
pub fn open_decision<'s>(state: &'s State, id: &DecisionId) -> Result<&'s DecisionState, Rejected> {
    let decision =
        state.decisions.get(id).ok_or_else(|| Rejected::NoSuchDecision { decision: id.clone() })?;
    if decision.status == DecisionStatus::Pending {
        Ok(decision)
    } else {
        Err(Rejected::NotOpen {
            decision: id.clone(),
            status: decision.status,
            answer: decision.answer.clone(),
        })
    }
}

/// What follows from an answer, or from a question that was put off; `raised`: a limit was raised
/// for it already.
pub fn consequences(plan: &Plan, state: &State, id: &DecisionId, raised: bool) -> Vec<Event> {
    let Some(resolved) = state.decisions.get(id) else { return Vec::new() };
    let step = &resolved.decision.step;
    let events = match resolved.status {
        DecisionStatus::Answered => effects(plan, state, resolved, raised),
        DecisionStatus::Cancelled
        | DecisionStatus::Skipped
        | DecisionStatus::Stale
        | DecisionStatus::Pending => Vec::new(),
    };
    if !events.is_empty() {
        return events;
    }
    let (reason, message) = match resolved.status {
        DecisionStatus::Answered => {
            let word = resolved.answer.clone().unwrap_or_default();
            (BlockReason::AnsweredBlock, format!("`{id}` was answered `{word}`, which leads nowhere"))
        }
        DecisionStatus::Cancelled
        | DecisionStatus::Skipped
        | DecisionStatus::Stale
        | DecisionStatus::Pending => {
            let why = resolved.reason.clone().unwrap_or_default();
            (BlockReason::MandatoryUserDecisionMissing, format!("`{id}` was put off: {why}"))
        }
    };
    vec![Event::StepBlocked { step: step.clone(), reason, message }]
}

fn effects(plan: &Plan, state: &State, resolved: &DecisionState, raised: bool) -> Vec<Event> {
    let step = &resolved.decision.step;
    let word = resolved.answer.clone().unwrap_or_default();
    let Some(answer) = resolved.decision.answers.iter().find(|answer| answer.word == word) else {
        return Vec::new();
    };
    let waiver = || format!("{}: {}", resolved.decision.id, resolved.comment.clone().unwrap_or(word.clone()));
    match (&resolved.decision.about, &answer.effect) {
        (About::Question { .. }, _) => Vec::new(),
        (About::Obligation { name }, AnswerEffect::Accept) => {
            vec![Event::ObligationWaived { name: name.clone(), reason: waiver() }]
        }
        (About::Obligation { name }, AnswerEffect::Again) => {
            vec![Event::ObligationOpened { name: name.clone(), step: step.clone() }]
        }
        (About::HandEdit { name, found } | About::List { name, found }, AnswerEffect::Accept) => {
            vec![Event::ArtifactAdopted { name: name.clone(), hash: found.clone() }]
        }
        (About::HandEdit { name, .. }, _) => vec![Event::ArtifactRestored { name: name.clone() }],
        (About::Gate { gate }, AnswerEffect::Accept) => {
            vec![Event::GateWaived { step: step.clone(), gate: gate.clone(), reason: waiver() }]
        }
        (about, AnswerEffect::Pass) => {
            vec![Event::StepPassed { step: step.clone(), notes: kept_notes(state, step, about) }]
        }
        (about, AnswerEffect::Accept) => {
            let mut notes = kept_notes(state, step, about);
            notes.push(format!("accepted by a person: {}", waiver()));
            vec![Event::StepPassed { step: step.clone(), notes }]
        }
        (_, AnswerEffect::Again) => again(plan, state, step, resolved, raised),
        (_, AnswerEffect::Redo { steps, routes }) => {
            let chosen = resolved.route.as_ref().and_then(|route| routes.get(route)).unwrap_or(steps);
            let targets = state
                .steps
                .get(step)
                .map(|own| restart::instances(plan, state, own, &chosen.iter().cloned().collect()));
            let cause =
                Cause::Changes { decision: resolved.decision.id.clone(), comment: resolved.comment.clone() };
            restart::redo_for(plan, state, step, &targets.unwrap_or_default(), cause)
        }
        (_, AnswerEffect::Restart { stage }) => restart::restart(plan, state, stage, &waiver(), Some(step)),
        (_, AnswerEffect::Skip) => {
            vec![Event::StepSkipped { step: step.clone(), why: Skip::Waiver, reason: waiver() }]
        }
        (_, AnswerEffect::Block) => {
            let reason = BlockReason::AnsweredBlock;
            vec![Event::StepBlocked { step: step.clone(), reason, message: waiver() }]
        }
        (_, AnswerEffect::Abort) => vec![Event::RunEnded { how: RunEnd::Abandoned, reason: waiver() }],
    }
}

/// A person grants one more: a round of a loop, or a fresh set of attempts.
fn again(plan: &Plan, state: &State, id: &StepId, resolved: &DecisionState, raised: bool) -> Vec<Event> {
    let about = &resolved.decision.about;
    let of_notes = *about == About::Notes;
    let loops =
        of_notes || matches!(about, About::Exhausted { loops: true } | About::HardStop | About::Stalled);
    let fresh = Event::Invalidated { steps: BTreeSet::from([id.clone()]), cause: Cause::Resumed };
    let (true, Some(review), Some(own)) = (loops, step::review_of(plan, state, id), state.steps.get(id))
    else {
        return vec![fresh];
    };
    if own.round >= review.rounds_max + own.granted && !raised {
        return vec![Event::LimitRaised { step: id.clone() }];
    }
    let meant = |finding: &Finding, place: u32| {
        if resolved.chosen.is_empty() {
            let left = own.review.as_ref().is_some_and(|looped| review_loop::is_kept(looped, finding));
            finding.blocks(review.block_at) || of_notes && review.asks_about(finding) && !left
        } else {
            resolved.chosen.contains(&place)
        }
    };
    let listed = noted(state, id).zip(1_u32..);
    let mut demands: Vec<Finding> = listed
        .filter(|(finding, place)| meant(finding, *place))
        .map(|(finding, _)| finding.clone())
        .collect();
    // What the person said is a demand like those of the reviewer, and goes with them.
    demands.extend(resolved.comment.as_ref().map(|comment| guidance(comment)));
    vec![review_loop::open_round(plan, state, id, review, own.round + 1, demands)]
}

fn guidance(comment: &str) -> Finding {
    Finding { category: Some("guidance".to_owned()), ..Finding::new(Severity::Critical, comment) }
}

/// What a person let stand stays on record with the step: the findings themselves, or why the last attempt failed.
fn kept_notes(state: &State, step: &StepId, about: &About) -> Vec<String> {
    let Some(own) = state.steps.get(step) else { return Vec::new() };
    let judged = own.review.as_deref().filter(|_| {
        matches!(about, About::Notes | About::Exhausted { loops: true } | About::Stalled | About::HardStop)
    });
    let mut notes = judged.map(review_loop::all_notes).unwrap_or_default();
    if let (About::Exhausted { loops: false }, Some(failure)) = (about, &own.last_failure) {
        notes.push(format!("failed ({}): {}", failure.class.word(), failure.message));
    }
    if matches!(about, About::Exhausted { .. } | About::Stalled) {
        // What the last attempt said of its work besides, such as what it left out.
        let reply = own.report.as_ref().and_then(|report| report.reply.as_ref());
        notes.extend(reply.map(|reply| reply.disagreements.clone()).unwrap_or_default());
    }
    notes
}

/// A decision is put off for good; what waits for it is blocked.
pub fn cancel(state: &State, id: &DecisionId, reason: &str) -> Result<Vec<Event>, Rejected> {
    open_decision(state, id)?;
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Rejected::ReasonMissing);
    }
    Ok(vec![Event::DecisionCancelled { id: id.clone(), reason: reason.to_owned() }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: &str) -> Option<(String, Option<String>)> {
        let answers = [
            answer_word("approved", &["looks good"], AnswerEffect::Pass),
            answer_word("changes-requested", &["fix *", "i have concerns*"], AnswerEffect::Block),
        ];
        understand(&answers, value).map(|(answer, comment)| (answer.word, comment))
    }

    #[test]
    fn s1_74_numbers_after_the_word_choose_among_the_notes() {
        let chosen = |value: &str| chosen_of(value);
        assert_eq!(chosen("fix 1, 3"), ("fix".to_owned(), vec![1, 3]));
        assert_eq!(chosen("fix 3 and 1: soon"), ("fix: soon".to_owned(), vec![1, 3]));
        assert_eq!(chosen("fix: 2"), ("fix".to_owned(), vec![2]));
        assert_eq!(chosen("fix: the 2 names"), ("fix: the 2 names".to_owned(), vec![]));
        assert_eq!(chosen("fix"), ("fix".to_owned(), vec![]));
        assert_eq!(chosen("7"), ("7".to_owned(), vec![]));
    }

    #[test]
    fn s1_72_an_open_synonym_is_a_beginning_and_what_was_said_is_the_comment() {
        let changes = |comment: &str| Some(("changes-requested".to_owned(), Some(comment.to_owned())));
        assert_eq!(said("Looks good!"), Some(("approved".to_owned(), None)));
        assert_eq!(said("Fix the name"), changes("Fix the name"));
        assert_eq!(said("I have concerns"), changes("I have concerns"));
        assert_eq!(said("fix: the name"), None, "not the word itself");
        assert_eq!(said("fixed it"), None);
        assert_eq!(said("hm"), None);
        assert_eq!(said("approved but fix the name"), None);
    }
}
