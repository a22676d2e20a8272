//! The review JSON of S2 (`approved`, S2-17) and S4 (`status`, S4-19): a judgement and its issues.
//!
//! More fields are allowed (metrics, filesReviewed, …); a misspelled one is not, and the judgement
//! and the issues must be there (J-07).

use gatewright_core::outcome::{Outcome, Reply};
use serde_json::Value;

use super::{
    ReplyFormat,
    channel::strictness,
    object::{Fields, OUR_FIELDS, accepted, ask_summary, findings, kind, read_our_fields},
    words::WordMap,
};

const STATUS_WORDS: &[&str] = &["approved", "needs_revision", "blocked"];
const FIELDS: &[&str] = &[
    "approved",
    "status",
    "issues",
    "summary",
    "readyForCommit",
    "overallQuality",
    "metrics",
    "filesReviewed",
];

/// A judgement somewhere in the reply.
struct Judgement {
    outcome: Outcome,
    word: String,
}

pub(crate) fn read(fields: &Fields<'_>, words: &WordMap) -> Result<Reply, Vec<String>> {
    let mut violations = Vec::new();
    fields.refuse_misspelled(&[FIELDS, OUR_FIELDS].concat(), &mut violations);
    let judgements = judgements(fields, words, &mut violations);
    match fields.object.get("issues") {
        Some(Value::Array(_)) => {}
        Some(other) => violations.push(format!("/issues: expected a list, found {}", kind(other))),
        None => violations.push("/issues: the required list is missing (it may be empty)".to_owned()),
    }
    let mut reply = Reply::new(Outcome::Error);
    if fields.object.get("issues").is_some_and(Value::is_array) {
        reply.findings = findings(fields, "issues", words, &mut violations);
    }
    reply.summary = fields.text("summary", &mut violations).unwrap_or_default();
    read_our_fields(fields, &mut reply, &mut violations);
    settle(&judgements, &mut reply);
    ask_summary(&mut reply, false);
    accepted(reply, violations)
}

/// `approved` and `status`, and `readyForCommit: false`, which contradicts an approval.
fn judgements(fields: &Fields<'_>, words: &WordMap, violations: &mut Vec<String>) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    let meaning = |word: &str| words.outcome_in(ReplyFormat::Review, word);
    if !fields.has("approved") && !fields.has("status") {
        violations.push("/: neither `approved` (true or false) nor `status` is there".to_owned());
    }
    if fields.object.get("approved").is_some_and(Value::is_null) {
        violations.push("/approved: expected true or false, found null".to_owned());
    }
    if let Some(approved) = fields.flag("approved", violations) {
        let word = if approved { "approved" } else { "not approved" };
        // The defaults hold both words and overriding cannot remove one.
        let outcome = meaning(word).unwrap_or(Outcome::Failed);
        judgements.push(Judgement { outcome, word: word.to_owned() });
    }
    if fields.has("status") {
        let word = fields.required_text("status", violations);
        let known =
            STATUS_WORDS.iter().any(|known| known.eq_ignore_ascii_case(&word)) || words.is_added(&word);
        match meaning(&word).filter(|_| known) {
            Some(outcome) => judgements.push(Judgement { outcome, word }),
            None if word.is_empty() => {}
            None => violations.push(format!("/status: `{word}` is not one of {}", STATUS_WORDS.join(", "))),
        }
    }
    if fields.flag("readyForCommit", violations) == Some(false) {
        judgements.push(Judgement { outcome: Outcome::Failed, word: "readyForCommit: false".to_owned() });
    }
    judgements
}

/// The strictest judgement holds; a contradiction is recorded. The word stays the reviewer's own.
fn settle(judgements: &[Judgement], reply: &mut Reply) {
    let Some(first) = judgements.first() else { return };
    let strictest = judgements.iter().fold(first, |strictest, judgement| {
        if strictness(judgement.outcome) > strictness(strictest.outcome) { judgement } else { strictest }
    });
    reply.outcome = strictest.outcome;
    reply.word.clone_from(&strictest.word);
    for judgement in judgements {
        let milder = strictness(judgement.outcome) < strictness(strictest.outcome);
        if milder {
            reply.disagreements.push(format!(
                "the review says `{}` and `{}`; the stricter one, `{}`, holds",
                judgement.word, strictest.word, strictest.word
            ));
        }
    }
}

/// A sentence outside the JSON that takes an approval back (J-52). Only statements in the present
/// count: conditions, negations of them and reports of earlier rounds do not.
pub(crate) fn objection(prose: &str) -> Option<&str> {
    const OTHERWISE: &[&str] =
        &["if ", "unless", "would", "was not approved", "previous", "earlier", "until", "when ", "`", "\""];
    prose.split(['\n', '.', '!', '?', ';']).map(str::trim).find(|sentence| {
        let sentence = sentence.to_lowercase();
        sentence.contains("not approved") && !OTHERWISE.iter().any(|other| sentence.contains(other))
    })
}
