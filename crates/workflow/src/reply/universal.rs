//! The universal output JSON of S1 (S1-66): status, summary, artifacts, gates, next.
//!
//! Top-level fields, gates and next are closed. `artifacts` differs by role, so more fields are
//! allowed there, but a misspelled one is refused: it would hide findings.

use gatewright_core::{
    outcome::{Outcome, Reply},
    verdict::{Finding, Severity},
};
use serde_json::Value;

use super::{
    ReplyFormat,
    object::{Fields, OUR_FIELDS, accepted, ask_summary, findings, kind, read_our_fields},
    words::WordMap,
};

const STATUS_WORDS: &[&str] = &["OK", "BLOCKED", "NEEDS_INFO", "NEEDS_DECISION", "FAIL"];
const FIELDS: &[&str] = &["status", "summary", "artifacts", "gates", "next"];
const GATE_FLAGS: &[&str] = &["meets_definition_of_done", "needs_review", "needs_tests"];
const NEXT_FIELDS: &[&str] = &["recommended_agent", "recommended_task_id", "reason"];
const FILE_FIELDS: &[&str] = &["files_to_create_or_update", "files_changed", "tests_added_or_updated"];
const NOTE_FIELDS: &[&str] = &["notes", "manual_steps", "patch_summary", "ci_notes", "coverage_gaps"];
const OTHER_ARTIFACTS: &[&str] = &[
    "review_comments",
    "findings",
    "commands_to_run",
    "checklist_summary",
    "test_results",
    "design_spec_inline",
    "design_spec_file",
    "research_summary",
    "confidence",
    "options",
];

pub(crate) fn read(fields: &Fields<'_>, words: &WordMap) -> Result<Reply, Vec<String>> {
    let mut violations = Vec::new();
    fields.refuse_unknown(&[FIELDS, OUR_FIELDS].concat(), &mut violations);
    let word = fields.required_text("status", &mut violations);
    let known = STATUS_WORDS.iter().any(|known| known.eq_ignore_ascii_case(&word)) || words.is_added(&word);
    let outcome = words.outcome_in(ReplyFormat::Universal, &word).filter(|_| known);
    if outcome.is_none() && !word.is_empty() {
        violations.push(format!("/status: `{word}` is not one of {}", STATUS_WORDS.join(", ")));
    }
    let mut reply = Reply::new(outcome.unwrap_or(Outcome::Error));
    reply.summary = fields.required_text("summary", &mut violations);
    if let Some(artifacts) = fields.required_object("artifacts", &mut violations) {
        read_artifacts(&artifacts, &mut reply, words, &mut violations);
    }
    if let Some(gates) = fields.required_object("gates", &mut violations) {
        read_gates(&gates, &mut reply, &mut violations);
    }
    if let Some(next) = fields.required_object("next", &mut violations) {
        next.refuse_unknown(NEXT_FIELDS, &mut violations);
        for key in NEXT_FIELDS {
            next.text(key, &mut violations);
        }
    }
    read_our_fields(fields, &mut reply, &mut violations);
    hold_objections(fields, &word, &mut reply);
    // Only Security says NEEDS_DECISION, so its question is about security.
    ask_summary(&mut reply, word.eq_ignore_ascii_case("NEEDS_DECISION"));
    reply.word = word;
    accepted(reply, violations)
}

fn read_artifacts(artifacts: &Fields<'_>, reply: &mut Reply, words: &WordMap, violations: &mut Vec<String>) {
    artifacts.refuse_misspelled(&[FILE_FIELDS, NOTE_FIELDS, OTHER_ARTIFACTS].concat(), violations);
    for key in FILE_FIELDS {
        for (index, item) in artifacts.list(key, violations).iter().enumerate() {
            // Roles write a path or an object with one.
            let path = item.as_str().or_else(|| item.get("path").and_then(|path| path.as_str()));
            match path {
                Some(path) if !reply.files.iter().any(|known| known == path) => {
                    reply.files.push(path.to_owned());
                    // A planner lists what others are to write.
                    if *key != "files_to_create_or_update" {
                        reply.changed.push(path.to_owned());
                    }
                }
                Some(_) => {}
                None => violations.push(format!(
                    "{}/{index}: expected a path, found {}",
                    artifacts.at(key),
                    kind(item)
                )),
            }
        }
    }
    for key in NOTE_FIELDS {
        for item in artifacts.list(key, violations) {
            reply.notes.push(item.as_str().map_or_else(|| item.to_string(), str::to_owned));
        }
    }
    for key in ["review_comments", "findings"] {
        reply.findings.extend(findings(artifacts, key, words, violations));
    }
}

fn read_gates(gates: &Fields<'_>, reply: &mut Reply, violations: &mut Vec<String>) {
    gates.refuse_unknown(&[GATE_FLAGS, &["security_concerns"]].concat(), violations);
    for key in GATE_FLAGS {
        gates.flag(key, violations);
    }
    for concern in gates.texts("security_concerns", violations) {
        reply.notes.push(format!("security concern: {concern}"));
    }
}

/// What a reply says against its own `OK` (J-52).
fn objections(fields: &Fields<'_>, reply: &Reply) -> Vec<String> {
    let artifacts = fields.object.get("artifacts");
    let artifact = |key: &str| artifacts.and_then(|artifacts| artifacts.get(key));
    let mut objections = Vec::new();
    // S1's reviewer writes its verdict into the summary.
    if reply.summary.to_uppercase().contains("NEEDS FIXES") {
        objections.push("the summary says `NEEDS FIXES`".to_owned());
    }
    let done = fields.object.get("gates").and_then(|gates| gates.get("meets_definition_of_done"));
    // Who plans says truly that nothing is done yet; who worked or judged speaks of that work.
    let judges =
        ["review_comments", "checklist_summary", "test_results"].iter().any(|key| artifact(key).is_some());
    if done == Some(&Value::Bool(false)) && (judges || !reply.changed.is_empty()) {
        objections.push("gates say `meets_definition_of_done: false`".to_owned());
    }
    if let Some(results) = artifact("test_results") {
        let count = |key: &str| results.get(key).and_then(Value::as_u64);
        match (count("passed"), count("failed")) {
            (_, Some(failed)) if failed > 0 => objections.push(format!("test_results count {failed} failed")),
            (Some(0), Some(0)) => objections.push("test_results count no test that ran".to_owned()),
            (_, _) => {}
        }
    }
    objections
}

/// Areas of the checklist in which something was found that no comment names: nobody knows how grave it is, so it counts as
/// the gravest (J-06).
fn unnamed(fields: &Fields<'_>, reply: &Reply) -> Vec<Finding> {
    let checklist = fields.object.get("artifacts").and_then(|artifacts| artifacts.get("checklist_summary"));
    let areas = checklist.and_then(Value::as_object).into_iter().flatten();
    let found = areas.filter(|(_, word)| {
        word.as_str().is_some_and(|word| word.trim().eq_ignore_ascii_case("issues_found"))
    });
    let squeezed = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let is_named = |area: &str| {
        let of_area = |category: &String| squeezed(category) == squeezed(area);
        reply.findings.iter().any(|finding| finding.category.as_ref().is_none_or(of_area))
    };
    let open = found.filter(|(area, _)| !is_named(area));
    open.map(|(area, _)| Finding {
        category: Some(area.clone()),
        ..Finding::new(
            Severity::Critical,
            format!("checklist_summary says `{area}: issues_found`, and no comment names one"),
        )
    })
    .collect()
}

/// They can only make the reply stricter.
fn hold_objections(fields: &Fields<'_>, word: &str, reply: &mut Reply) {
    if !matches!(reply.outcome, Outcome::Done | Outcome::Passed) {
        return;
    }
    let unnamed = unnamed(fields, reply);
    reply.findings.extend(unnamed);
    for objection in objections(fields, reply) {
        reply.disagreements.push(format!("status says `{word}`, {objection}; the stricter one holds"));
        reply.outcome = Outcome::Failed;
    }
}
