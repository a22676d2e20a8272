//! The completion of S3: a quoted Markdown block (S3-16) or the stream_completion JSON.
//!
//! What the JSON claims (files, tests, build) is evidence to verify elsewhere, never proof.

use std::ops::RangeInclusive;

use gatewright_core::outcome::{Outcome, Question, Reply};
use serde_json::Value;

use super::{
    Candidate, ReplyFormat,
    channel::strictness,
    object::{Fields, accepted, ask_summary, clipped, kind, read_our_fields},
    scan::{Text, field, file_list, plain},
    words::WordMap,
};

const STATUS_WORDS: &[&str] = &["complete", "partial", "blocked", "failed"];
const STEP_WORDS: &[&str] = &["passed", "failed", "skipped"];
const FIELDS: &[&str] = &[
    "stream",
    "status",
    "steps",
    "git_sha",
    "files_modified",
    "attempt",
    "started_at",
    "completed_at",
    "output_files",
    "build_passed",
    "tests_passed",
    "tests_total",
    "tests_failed",
    "se_independently_verified",
    "summary",
    "questions",
    "back_to",
    "reason",
];

const HANDOFF: &[&str] = &[
    "from_agent",
    "to_agent",
    "status",
    "branch",
    "files_modified",
    "decisions_made",
    "blocking_issues",
    "context_keys",
];

/// Every Markdown block with a `**Status**:` and an `**Output**:` line, and every question that waits.
pub(crate) fn candidates(text: &Text, words: &WordMap) -> Vec<Candidate> {
    let mut candidates = questions(text);
    let mut next = 0;
    while next < text.lines.len() {
        let Some(block) = block_at(text, next) else {
            next += 1;
            continue;
        };
        next = block.end() + 1;
        let read = read_block(text, block.clone(), words).or_else(|| read_interactive(text, block.clone()));
        if let Some(result) = read {
            let span = text.lines[*block.start()].start..text.lines[*block.end()].end;
            candidates.extend(Candidate::admitted(text, ReplyFormat::Completion, span, false, result));
        }
    }
    candidates
}

/// A run of `>` lines, or of lines up to the next fence or heading that end with the fields.
fn block_at(text: &Text, first: usize) -> Option<RangeInclusive<usize>> {
    let is_quote = |index: usize| text.line(index).trim_start().starts_with('>');
    if is_quote(first) {
        let end = (first..text.lines.len()).take_while(|index| is_quote(*index)).last()?;
        return Some(first..=end);
    }
    // Without `>`: the line before `**Output**:` is the summary and the fields end the block.
    let is_field =
        |index: usize| field(text.line(index)).is_some_and(|(name, _)| block_field(name).is_some());
    let summary = !is_field(first) && !text.line(first).trim().is_empty() && !text.lines[first].fence;
    let output = text.next_filled(first + 1).filter(|_| summary)?;
    field(text.line(output)).filter(|(name, _)| block_field(name) == Some(0))?;
    let mut end = output;
    while let Some(next) = text.next_filled(end + 1) {
        let continues = next == end + 1 && is_list_item(text.line(next));
        if !continues && !is_field(next) {
            break;
        }
        end = next;
    }
    Some(first..=end)
}

fn is_list_item(line: &str) -> bool {
    line.trim_start().starts_with("- ") || line.trim_start().starts_with("* ")
}

fn block_field(name: &str) -> Option<usize> {
    ["output", "status", "blocking issues"].iter().position(|known| name.eq_ignore_ascii_case(known))
}

/// `None` if the block has no Status and no Output line: an ordinary quotation.
fn read_block(
    text: &Text,
    block: RangeInclusive<usize>,
    words: &WordMap,
) -> Option<Result<Reply, Vec<String>>> {
    let mut values: [Option<String>; 3] = [None, None, None];
    let mut summary: Vec<String> = Vec::new();
    let mut issues: Vec<String> = Vec::new();
    for index in block {
        let line = text.line(index).trim_start().trim_start_matches('>').trim();
        match field(line).and_then(|(name, value)| block_field(name).map(|place| (place, value))) {
            Some((place, value)) => values[place] = Some(value.to_owned()),
            None if line.is_empty() => {}
            None if values[2].is_some() => issues.push(line.trim_start_matches(['-', '*', ' ']).to_owned()),
            None if values[0].is_none() => summary.push(line.to_owned()),
            None => {}
        }
    }
    if values[0].is_none() || values[1].is_none() {
        return None;
    }
    let mut violations = Vec::new();
    if summary.len() != 1 {
        violations.push(format!("expected a summary of one line before **Output**, found {}", summary.len()));
    }
    if values[2].is_none() {
        violations.push("`**Blocking issues**:` is missing, write `none` if there are none".to_owned());
    }
    let [output, status, inline] = values.map(Option::unwrap_or_default);
    let word = plain(&status);
    let Some(outcome) = outcome_of(word, words) else {
        violations.push(format!(
            "**Status** is `{}`, expected one of {}",
            clipped(word),
            STATUS_WORDS.join(", ")
        ));
        return Some(Err(violations));
    };
    let inline = inline.trim_start_matches('[').trim_end_matches(']').trim();
    if !inline.is_empty() {
        issues.insert(0, inline.to_owned());
    }
    issues.retain(|issue| !plain(issue).trim_end_matches('.').eq_ignore_ascii_case("none"));
    let mut reply = Reply::new(outcome);
    word.clone_into(&mut reply.word);
    reply.summary = summary.pop().unwrap_or_default();
    reply.files = output_files(&output);
    reply.changed.clone_from(&reply.files);
    hold_blocking_issues(&mut reply, issues, &mut violations);
    Some(accepted(reply, violations))
}

/// The completion for a person at a terminal: a line that says what was done, the next command, and the word to say.
fn read_interactive(text: &Text, block: RangeInclusive<usize>) -> Option<Result<Reply, Vec<String>>> {
    let lines = block.map(|index| text.line(index).trim_start().trim_start_matches('>').trim());
    let mut lines = lines.filter(|line| !line.is_empty());
    let summary = lines.next().filter(|line| field(line).is_none())?;
    let next = lines.next().and_then(field).filter(|(name, _)| name.eq_ignore_ascii_case("next"))?;
    let say = lines.next()?.strip_prefix("Say ")?;
    let word = say.split(['\'', '’', '‘']).nth(1)?.to_lowercase();
    // Who offers to have something mended is not content with it.
    let outcome = match word.as_str() {
        "continue" => Outcome::Done,
        "commit" => Outcome::Passed,
        "fix" => Outcome::Failed,
        _ => return None,
    };
    let mut reply = Reply::new(outcome);
    reply.word = word;
    summary.clone_into(&mut reply.summary);
    reply.notes.push(format!("next: {}", next.1));
    Some(Ok(reply))
}

/// Whether JSON is the handoff object of S3-35.
pub(crate) fn begins_handoff(source: &str) -> bool {
    let inside = source.trim_start().strip_prefix('{').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with("\"handoff\""))
}

/// The handoff object: what the next agent is told, and so how this one ended.
fn read_handoff(fields: &Fields<'_>, words: &WordMap) -> Result<Reply, Vec<String>> {
    let mut violations = Vec::new();
    let Some(handoff) = fields.required_object("handoff", &mut violations) else { return Err(violations) };
    handoff.refuse_misspelled(HANDOFF, &mut violations);
    let word = handoff.required_text("status", &mut violations);
    let outcome = outcome_of(&word, words).filter(|_| word != "failed");
    if outcome.is_none() && !word.is_empty() {
        violations.push(format!("/handoff/status: `{word}` is not one of complete, partial, blocked"));
    }
    let mut reply = Reply::new(outcome.unwrap_or(Outcome::Error));
    let [from, to] = ["from_agent", "to_agent"].map(|key| handoff.required_text(key, &mut violations));
    reply.summary = format!("{from} hands off to {to}: {word}");
    reply.word = word;
    reply.changed = handoff.texts("files_modified", &mut violations);
    for (index, one) in handoff.list("decisions_made", &mut violations).iter().enumerate() {
        match one {
            Value::Object(object) => {
                let decision = Fields::new(object, format!("/handoff/decisions_made/{index}"));
                for key in ["question", "decision"] {
                    decision.required_text(key, &mut violations);
                }
            }
            other => violations
                .push(format!("/handoff/decisions_made/{index}: expected an object, found {}", kind(other))),
        }
    }
    let issues = handoff.texts("blocking_issues", &mut violations);
    hold_blocking_issues(&mut reply, issues, &mut violations);
    accepted(reply, violations)
}

/// A completion that is content but names blocking issues is blocked (J-52).
fn hold_blocking_issues(reply: &mut Reply, issues: Vec<String>, violations: &mut Vec<String>) {
    if reply.outcome == Outcome::Blocked && issues.is_empty() {
        violations.push("**Status** is blocked but no blocking issue is named".to_owned());
    }
    if !issues.is_empty() && strictness(reply.outcome) < strictness(Outcome::Blocked) {
        reply.disagreements.push(format!(
            "the completion says `{}` and names blocking issues; the stricter reading, `blocked`, holds",
            reply.word
        ));
        reply.outcome = Outcome::Blocked;
    }
    reply.notes.extend(issues);
}

/// `` `a.json` written to `dir/` `` or a list.
fn output_files(output: &str) -> Vec<String> {
    let quoted: Vec<&str> = output.split('`').skip(1).step_by(2).map(str::trim).collect();
    match quoted.as_slice() {
        [] => file_list(output),
        [name, folder] if output.contains("written to") => {
            vec![format!("{}/{name}", folder.trim_end_matches('/'))]
        }
        names => names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn outcome_of(word: &str, words: &WordMap) -> Option<Outcome> {
    let known = STATUS_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) || words.is_added(word);
    words.outcome_in(ReplyFormat::Completion, word).filter(|_| known)
}

/// The stream_completion JSON.
pub(crate) fn read(fields: &Fields<'_>, words: &WordMap) -> Result<Reply, Vec<String>> {
    if fields.has("handoff") && !fields.has("stream") {
        return read_handoff(fields, words);
    }
    let mut violations = Vec::new();
    fields.refuse_misspelled(FIELDS, &mut violations);
    let word = fields.required_text("status", &mut violations);
    let outcome = outcome_of(&word, words);
    if outcome.is_none() && !word.is_empty() {
        violations.push(format!("/status: `{word}` is not one of {}", STATUS_WORDS.join(", ")));
    }
    let mut reply = Reply::new(outcome.unwrap_or(Outcome::Error));
    let stream = fields.required_text("stream", &mut violations);
    for key in ["started_at", "completed_at"] {
        fields.required_text(key, &mut violations);
    }
    let commit = fields.required_text("git_sha", &mut violations);
    reply.commits.extend((!commit.is_empty()).then_some(commit));
    for key in ["steps", "files_modified"].iter().filter(|key| !fields.has(key)) {
        violations.push(format!("/{key}: the required list is missing"));
    }
    if fields.object.get("attempt").and_then(Value::as_u64).is_none_or(|attempt| attempt == 0) {
        violations.push("/attempt: expected a number from 1".to_owned());
    }
    reply.files = fields.texts("files_modified", &mut violations);
    reply.files.extend(fields.texts("output_files", &mut violations));
    reply.changed.clone_from(&reply.files);
    reply.changed_is_all = true;
    reply.summary =
        fields.text("summary", &mut violations).unwrap_or_else(|| format!("stream {stream}: {word}"));
    let failed = read_steps(fields, &mut reply, &mut violations);
    let build_passed = fields.flag("build_passed", &mut violations);
    match reply.outcome {
        Outcome::Done if word.eq_ignore_ascii_case("complete") => {
            if failed > 0 {
                violations.push(format!("/steps: status is complete but {failed} of them failed"));
            }
            if build_passed != Some(true) {
                violations.push("/build_passed: status is complete, so it must be true".to_owned());
            }
        }
        Outcome::Failed if word.eq_ignore_ascii_case("failed") && failed == 0 => {
            violations.push("/steps: status is failed but no step failed".to_owned());
        }
        _ => {}
    }
    reply.word = word;
    read_our_fields(fields, &mut reply, &mut violations);
    ask_summary(&mut reply, false);
    accepted(reply, violations)
}

/// Checks the steps, notes the errors, and counts those that failed.
fn read_steps(fields: &Fields<'_>, reply: &mut Reply, violations: &mut Vec<String>) -> usize {
    let steps = fields.list("steps", violations);
    if steps.is_empty() && fields.object.get("steps").is_some_and(Value::is_array) {
        violations.push("/steps: expected at least one step".to_owned());
    }
    let mut failed = 0;
    for (index, step) in steps.iter().enumerate() {
        let Value::Object(object) = step else {
            violations.push(format!("/steps/{index}: expected an object, found {}", kind(step)));
            continue;
        };
        let step = Fields::new(object, format!("/steps/{index}"));
        let name = step.required_text("name", violations);
        let status = step.required_text("status", violations);
        if !status.is_empty() && !STEP_WORDS.contains(&status.as_str()) {
            violations.push(format!(
                "{}: `{status}` is not one of {}",
                step.at("status"),
                STEP_WORDS.join(", ")
            ));
        }
        let error = step.text("error", violations);
        if status == "failed" {
            failed += 1;
            match error {
                Some(error) => reply.notes.push(format!("{name} failed: {error}")),
                None => violations.push(format!("{}: a failed step names its error", step.at("error"))),
            }
        }
    }
    failed
}

const AWAITING: &str = "**[Awaiting your decision]**";

/// Questions in the form of S3-20: context, `A) option — trade-off` with or without `Options:` above, `Recommendation:`,
/// and the line that says somebody is waited for.
fn questions(text: &Text) -> Vec<Candidate> {
    let ends = (0..text.lines.len()).filter(|index| text.line(*index).trim() == AWAITING);
    let read = ends.filter_map(|end| {
        let is_title = |index: &usize| text.line(*index).trim() == "Options:";
        let is_first = |line: &str| line.starts_with("A)") || line.starts_with("1)");
        let first_option = (0..end).rev().find(|index| is_first(text.line(*index).trim()));
        let title = (0..first_option.unwrap_or(end)).rev().find(|index| !text.line(*index).trim().is_empty());
        let options = title.filter(is_title).or(first_option).or_else(|| (0..end).rev().find(is_title))?;
        let first = context_before(text, options);
        let reply = question(text, first, options, end);
        let span = text.lines[first].start..text.lines[end].end;
        Candidate::admitted(text, ReplyFormat::Completion, span, false, reply)
    });
    read.collect()
}

/// Where the context of a question begins: the paragraph before its options.
fn context_before(text: &Text, options: usize) -> usize {
    let filled = |index: &usize| !text.line(*index).trim().is_empty() && !text.lines[*index].fence;
    let last = (0..options).rev().find(filled).unwrap_or(options);
    (0..=last).rev().take_while(filled).last().unwrap_or(options)
}

fn question(text: &Text, first: usize, options: usize, end: usize) -> Result<Reply, Vec<String>> {
    let lines = |from: usize, to: usize| (from..to).map(|index| text.line(index).trim().to_owned());
    let context: Vec<String> = lines(first, options).filter(|line| !line.is_empty()).collect();
    let is_option = |line: &str| {
        let mut letters = line.chars();
        letters.next().is_some_and(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            && letters.next() == Some(')')
    };
    let offered: Vec<String> = lines(options, end).filter(|line| is_option(line)).collect();
    let recommendation = lines(options, end)
        .find_map(|line| line.strip_prefix("Recommendation:").map(|rest| rest.trim().to_owned()));
    let mut violations = Vec::new();
    if context.is_empty() {
        violations.push("the question has no context: say what it is about before `Options:`".to_owned());
    }
    if offered.len() < 2 {
        violations.push(format!(
            "expected at least two options (`A) option — trade-off`), found {}",
            offered.len()
        ));
    }
    if recommendation.is_none() {
        violations.push("`Recommendation:` is missing".to_owned());
    }
    let asked = context.join(" ");
    let asked = asked.strip_prefix("[Context]:").unwrap_or(&asked).trim().to_owned();
    let mut reply = Reply::new(Outcome::NeedsInput);
    "needs_input".clone_into(&mut reply.word);
    reply.summary.clone_from(&asked);
    reply.questions.push(Question {
        question: format!("{asked}\n{}", offered.join("\n")),
        options: offered.iter().map(|line| short(line)).collect(),
        recommendation,
        security: false,
    });
    accepted(reply, violations)
}

/// `A) Reject — explicit` is answered with `Reject`.
fn short(option: &str) -> String {
    let text = option.split_once(')').map_or(option, |(_, text)| text).trim();
    text.split_once(" — ").map_or(text, |(name, _)| name).trim().to_owned()
}
