//! What a task agent of S4 says of its task: whose task it was, how it ended, which files it changed.
//!
//! `needs_context` is a question: the files it asks for are named in it.

use gatewright_core::outcome::{Outcome, Question, Reply};
use serde_json::Value;

use super::{
    ReplyFormat,
    object::{Fields, OUR_FIELDS, accepted, read_our_fields},
    words::WordMap,
};

const STATUS_WORDS: &[&str] = &["completed", "failed", "needs_context"];
const FIELDS: &[&str] =
    &["taskId", "status", "summary", "filesModified", "errors", "error", "requestedFiles"];

pub(crate) fn read(fields: &Fields<'_>, words: &WordMap) -> Result<Reply, Vec<String>> {
    let mut violations = Vec::new();
    fields.refuse_misspelled(&[FIELDS, OUR_FIELDS].concat(), &mut violations);
    let task = fields.required_text("taskId", &mut violations);
    let word = fields.required_text("status", &mut violations);
    let known = STATUS_WORDS.iter().any(|known| known.eq_ignore_ascii_case(&word)) || words.is_added(&word);
    let outcome = words.outcome_in(ReplyFormat::Task, &word).filter(|_| known);
    if outcome.is_none() && !word.is_empty() {
        violations.push(format!("/status: `{word}` is not one of {}", STATUS_WORDS.join(", ")));
    }
    let mut reply = Reply::new(outcome.unwrap_or(Outcome::Error));
    reply.summary = fields.required_text("summary", &mut violations);
    reply.files = fields.texts("filesModified", &mut violations);
    reply.changed.clone_from(&reply.files);
    let errors = errors(fields, &mut violations);
    hold_errors(&errors, &word, &mut reply);
    reply.notes.extend(errors);
    read_our_fields(fields, &mut reply, &mut violations);
    let wanted = fields.texts("requestedFiles", &mut violations);
    if reply.outcome == Outcome::NeedsInput && reply.questions.is_empty() {
        reply.questions.push(question(&task, &wanted, &reply.summary));
    }
    reply.word = word;
    accepted(reply, violations)
}

/// One text under `error`, or a list under `errors`, of texts or of objects with a message.
fn errors(fields: &Fields<'_>, violations: &mut Vec<String>) -> Vec<String> {
    let told = |item: &Value| {
        let message = item.as_str().or_else(|| item.get("message").and_then(Value::as_str));
        message.map_or_else(|| item.to_string(), str::to_owned)
    };
    let list = fields.list("errors", violations).iter().map(told);
    list.chain(fields.text("error", violations)).filter(|text| !text.trim().is_empty()).collect()
}

/// Who names errors and says `completed` has not completed it (J-52).
fn hold_errors(errors: &[String], word: &str, reply: &mut Reply) {
    let Some(first) = errors.first().filter(|_| reply.outcome == Outcome::Done) else { return };
    reply.disagreements.push(format!("status says `{word}`, errors say `{first}`; the stricter one holds"));
    reply.outcome = Outcome::Failed;
}

fn question(task: &str, wanted: &[String], summary: &str) -> Question {
    let files: Vec<String> = wanted.iter().map(|file| format!("`{file}`")).collect();
    let question = if files.is_empty() {
        summary.to_owned()
    } else {
        format!("Task {task} asks for {}: {summary}", files.join(", "))
    };
    Question { question, options: Vec::new(), recommendation: None, security: false }
}
