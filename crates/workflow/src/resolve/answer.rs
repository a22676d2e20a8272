//! Answers of decisions and what happens when a limit is used up.

use std::collections::BTreeMap;

use gatewright_core::{
    ids::{ArtifactName, RoleId, StageId, StepId},
    plan::{Answer, AnswerEffect, Exhaustion, Question},
};

use super::{build::Builder, names::Scope, unit::Unit, unknown};
use crate::{
    definition::read::Word,
    diagnostic::{codes, suggestion},
    yaml::tree::{Node, NodeValue},
};

/// Said instead of `approved`. "ok" and "okay" are acknowledgements, not approvals (S3-21).
const APPROVING: &[&str] =
    &["yes", "yep", "y", "go ahead", "proceed", "do it", "approved", "approve", "looks good", "implement it"];
const REJECTING: &[&str] = &["changes", "changes requested", "request changes", "reject", "rejected"];

/// Which bare `ask` is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// A review used up its rounds.
    Review,
    /// A step used up its attempts.
    Retry,
}

pub fn question(builder: &mut Builder<'_>, unit: &Unit<'_>, scope: &Scope, node: &Node) -> Question {
    let answers =
        node.get("answers").map(|answers| self::answers(builder, unit, scope, answers)).unwrap_or_default();
    let question = node.string_or_empty("decide");
    let is_template = |text: &str| ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark));
    let shown = node.strings("show");
    Question {
        name: node.string("decision"),
        once: node.is_on("once"),
        // What is shown under a template is found when the question is put into words.
        template: is_template(&question) || shown.iter().any(|name| is_template(name)),
        question,
        show: shown
            .iter()
            .map(|name| if is_template(name) { name } else { name.strip_suffix('?').unwrap_or(name) })
            .map(ArtifactName::new)
            .collect(),
        answers,
    }
}

pub fn answers(builder: &mut Builder<'_>, unit: &Unit<'_>, scope: &Scope, node: &Node) -> Vec<Answer> {
    let mut answers: Vec<Answer> = node
        .entries()
        .iter()
        .map(|(word, node)| Answer {
            word: word.text.clone(),
            synonyms: synonyms(&word.text, node),
            effect: effect(builder, unit, scope, node),
        })
        .collect();
    // What two answers could mean means neither.
    let words: Vec<String> = answers.iter().map(|answer| answer.word.to_lowercase()).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for answer in &answers {
        for synonym in &answer.synonyms {
            *seen.entry(synonym.to_lowercase()).or_default() += 1;
        }
    }
    for answer in &mut answers {
        answer.synonyms.retain(|synonym| {
            let synonym = synonym.to_lowercase();
            !words.contains(&synonym) && seen.get(&synonym) == Some(&1)
        });
    }
    answers
}

fn synonyms(word: &str, node: &Node) -> Vec<String> {
    if node.get("synonyms").is_some() {
        return node.strings("synonyms");
    }
    let usual: &[&str] = match word {
        "approved" | "approve" | "yes" => APPROVING,
        "changes-requested" | "changes_requested" | "changes requested" => REJECTING,
        _ => &[],
    };
    usual.iter().filter(|synonym| **synonym != word).map(|synonym| (*synonym).to_owned()).collect()
}

fn effect(builder: &mut Builder<'_>, unit: &Unit<'_>, scope: &Scope, node: &Node) -> AnswerEffect {
    if let Some(word) = node.text() {
        return effect_named(word);
    }
    let told = ["does", "redo", "restart"].iter().filter(|key| node.get(key).is_some()).count();
    if told != 1 {
        builder.report.error(
            codes::BAD_VALUE,
            node.span,
            format!("an answer does one thing, this one {told}"),
            "one of `does`, `redo`, `restart`",
        );
    }
    if node.get("redo").is_some() {
        let steps = found(builder, unit, scope, node.words("redo"));
        let mut routes = BTreeMap::new();
        for (role, node) in node.get("routes").map(Node::entries).unwrap_or_default() {
            let word = Word { text: role.text.clone(), span: role.span };
            let known = unit.roles.get(&role.text).map(|role| role.id.clone());
            let id = known.unwrap_or_else(|| RoleId::new(&word.text));
            routes.insert(id, found(builder, unit, scope, node.as_words()));
        }
        return AnswerEffect::Redo { steps, routes };
    }
    if let Some(stage) = node.word("restart") {
        return restart(builder, unit, &stage);
    }
    effect_named(&node.string_or_empty("does"))
}

/// The stages of a sub-run are not stages of the run: restarting one is redoing its first steps.
fn restart(builder: &mut Builder<'_>, unit: &Unit<'_>, stage: &Word) -> AnswerEffect {
    let Some(id) = stage_named(builder, unit, stage) else { return AnswerEffect::Block };
    if unit.parent_stage.is_none() {
        return AnswerEffect::Restart { stage: id };
    }
    let steps = unit.first_steps.get(&stage.text).cloned().unwrap_or_default();
    AnswerEffect::Redo { steps, routes: BTreeMap::new() }
}

fn stage_named(builder: &mut Builder<'_>, unit: &Unit<'_>, stage: &Word) -> Option<StageId> {
    if unit.first_steps.contains_key(&stage.text) {
        return Some(StageId::new(&stage.text));
    }
    builder.report.error(
        codes::UNKNOWN_STAGE,
        stage.span,
        format!("there is no stage `{}`", stage.text),
        suggestion(&stage.text, unit.first_steps.keys().map(String::as_str)),
    );
    None
}

fn effect_named(word: &str) -> AnswerEffect {
    match word {
        "pass" => AnswerEffect::Pass,
        "accept" => AnswerEffect::Accept,
        "again" => AnswerEffect::Again,
        "skip" => AnswerEffect::Skip,
        "abort" => AnswerEffect::Abort,
        // `block`, and whatever was reported as no word of ours.
        _ => AnswerEffect::Block,
    }
}

fn found(builder: &mut Builder<'_>, unit: &Unit<'_>, scope: &Scope, words: Vec<Word>) -> Vec<StepId> {
    words.iter().filter_map(|word| unknown::called(builder, unit, scope, word)).collect()
}

/// `on_exhausted` of a review or a retry.
pub fn exhaustion(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    scope: &Scope,
    node: Option<&Node>,
    stage: &StageId,
    asking: Asking,
) -> Vec<Exhaustion> {
    let Some(node) = node.filter(|node| !node.is_null()) else { return vec![Exhaustion::Block] };
    let entries: Vec<&Node> = match &node.value {
        NodeValue::Sequence(elements) => elements.iter().collect(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number { .. }
        | NodeValue::String(_)
        | NodeValue::Mapping(_) => vec![node],
    };
    let mut list = Vec::new();
    for entry in entries {
        match entry.text() {
            Some("ask") => list.push(Exhaustion::Ask { answers: bare_ask(asking) }),
            Some("complete_with_notes") => list.push(Exhaustion::CompleteWithNotes),
            Some("fail") => list.push(Exhaustion::Fail),
            Some("restart_stage") => list.push(Exhaustion::RestartStage { stage: stage.clone() }),
            Some(_) => list.push(Exhaustion::Block),
            None => {
                if let Some(ask) = entry.get("ask") {
                    let given = ask.get("answers").unwrap_or(ask);
                    let mut answers = answers(builder, unit, scope, given);
                    for answer in &mut answers {
                        // Past a limit there is no plain pass: it is a waiver, and shown as one.
                        if answer.effect == AnswerEffect::Pass {
                            answer.effect = AnswerEffect::Accept;
                        }
                    }
                    list.push(Exhaustion::Ask { answers });
                }
                if let Some(word) = entry.word("restart_stage") {
                    list.extend(restart_on_exhaustion(builder, unit, &word));
                }
            }
        }
    }
    if list.is_empty() { vec![Exhaustion::Block] } else { list }
}

fn restart_on_exhaustion(builder: &mut Builder<'_>, unit: &Unit<'_>, word: &Word) -> Option<Exhaustion> {
    let stage = stage_named(builder, unit, word)?;
    if unit.parent_stage.is_some() {
        builder.report.warning(
            codes::IGNORED,
            word.span,
            "a sub-run has no stages of its own to restart; this entry is left out",
            "",
        );
        return None;
    }
    Some(Exhaustion::RestartStage { stage })
}

pub fn bare_ask(asking: Asking) -> Vec<Answer> {
    let words: &[(&str, AnswerEffect)] = match asking {
        Asking::Review => &[
            ("accept", AnswerEffect::Accept),
            ("again", AnswerEffect::Again),
            ("abort", AnswerEffect::Abort),
        ],
        Asking::Retry => {
            &[("again", AnswerEffect::Again), ("skip", AnswerEffect::Skip), ("abort", AnswerEffect::Abort)]
        }
    };
    words
        .iter()
        .map(|(word, effect)| Answer {
            word: (*word).to_owned(),
            synonyms: Vec::new(),
            effect: effect.clone(),
        })
        .collect()
}
