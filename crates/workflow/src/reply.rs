//! Reads what an agent says of itself at the end of its output, in any method's format.
//!
//! Lenient about wrapping (code fences, prose around, CRLF, colours, bold), strict about content.
//! Prose is never success: without a well-formed reply there is no outcome (J-03). Pure over bytes.

pub mod channel;
pub mod echo;
pub mod schema;
pub mod tool_file;
pub mod words;

pub(crate) mod brief;
pub(crate) mod completion;
pub(crate) mod feedback;
pub(crate) mod object;
pub(crate) mod review;
pub(crate) mod scan;
pub(crate) mod task;
pub(crate) mod universal;

use std::ops::Range;

use gatewright_core::outcome::{Outcome, Reply, ReplyProblem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    channel::{Channel, combine, strictness},
    scan::OUTPUT_BYTES_MAX,
    schema::schema_of,
    words::{Ladder, WordMap, WordOverrides},
};
use self::{object::Fields, scan::Text};

/// The formats in which agents reply; `reply:` of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// STATUS, FILE, SUMMARY, NEXT_INPUT in at most ten lines (S0).
    Brief,
    /// The output JSON that all agents of S1 share.
    Universal,
    /// `approved` or `status`, and `issues` (S2, S4).
    Review,
    /// The completion block or the stream_completion JSON (S3).
    Completion,
    /// What a task agent says of its task (S4).
    Task,
}

impl ReplyFormat {
    pub fn word(self) -> &'static str {
        match self {
            ReplyFormat::Brief => "brief",
            ReplyFormat::Universal => "universal",
            ReplyFormat::Review => "review",
            ReplyFormat::Completion => "completion",
            ReplyFormat::Task => "task",
        }
    }
}

/// Reads the reply out of an agent's output (or its tail).
///
/// The last well-formed block counts, one in a code block or inside a line only if nothing follows
/// it. `None`: of any format. If there is none but something looks like one, the violations of the
/// last such block are named, all of them.
pub fn parse_reply(
    output: &[u8],
    format: Option<ReplyFormat>,
    words: &WordMap,
) -> Result<Reply, ReplyProblem> {
    let text = Text::new(output);
    let mut candidates = outermost(candidates(&text, format, words));
    let Some(last) = candidates.iter().rposition(|candidate| candidate.result.is_ok()) else {
        return Err(match candidates.pop().map(|candidate| candidate.result) {
            Some(Err(violations)) => ReplyProblem::Malformed { violations },
            Some(Ok(_)) | None => ReplyProblem::NoOutcome,
        });
    };
    let later_broken = candidates.split_off(last + 1);
    let Some(Candidate { format, span, result: Ok(mut reply) }) = candidates.pop() else {
        return Err(ReplyProblem::NoOutcome);
    };
    for broken in later_broken {
        let line = text.line_at(broken.span.start) + 1;
        let why = broken.result.err().unwrap_or_default().join("; ");
        reply
            .disagreements
            .push(format!("a later block at line {line} is malformed and did not count: {why}"));
    }
    hold_objection(&text, format, &span, &mut reply);
    Ok(reply)
}

/// The text in a field of the reply that counts, if that is JSON and has it: names on the way to it with dots between.
pub fn text_in_reply(
    output: &[u8],
    format: Option<ReplyFormat>,
    words: &WordMap,
    field: &str,
) -> Option<String> {
    let text = Text::new(output);
    let counts = outermost(candidates(&text, format, words)).into_iter().rfind(|one| one.result.is_ok())?;
    let whole: Value = serde_json::from_str(&text.text[counts.span]).ok()?;
    let found = field.split('.').try_fold(&whole, |value, name| value.get(name))?;
    found.as_str().map(str::to_owned)
}

/// A place in the output that may be the reply.
pub(crate) struct Candidate {
    format: ReplyFormat,
    span: Range<usize>,
    result: Result<Reply, Vec<String>>,
}

impl Candidate {
    /// `None` for a quotation in the middle of the output.
    pub(crate) fn admitted(
        text: &Text,
        format: ReplyFormat,
        span: Range<usize>,
        inside_line: bool,
        result: Result<Reply, Vec<String>>,
    ) -> Option<Candidate> {
        text.admits(span.start, span.end, inside_line).then_some(Candidate { format, span, result })
    }
}

fn candidates(text: &Text, format: Option<ReplyFormat>, words: &WordMap) -> Vec<Candidate> {
    let wants = |wanted: ReplyFormat| format.is_none_or(|format| format == wanted);
    let mut candidates = Vec::new();
    if wants(ReplyFormat::Brief) {
        candidates.extend(brief::candidates(text, words));
    }
    if wants(ReplyFormat::Completion) {
        candidates.extend(completion::candidates(text, words));
    }
    if wants(ReplyFormat::Review) {
        candidates.extend(feedback::candidates(text, words));
    }
    if format != Some(ReplyFormat::Brief) {
        candidates.extend(json_candidates(text, format, words));
    }
    candidates.sort_by_key(|candidate| (candidate.span.start, candidate.span.end));
    leave_handoffs(text, candidates)
}

/// A handoff beside a completion says the same for the next agent. It is the reply only where there is no other, or where
/// it is stricter (J-52).
fn leave_handoffs(text: &Text, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let is_handoff = |one: &Candidate| completion::begins_handoff(&text.text[one.span.clone()]);
    let how_strict = |one: &Candidate| one.result.as_ref().ok().map(|reply| strictness(reply.outcome));
    let other = candidates.iter().filter(|one| !is_handoff(one)).filter_map(how_strict).next_back();
    let Some(other) = other else { return candidates };
    candidates
        .into_iter()
        .filter(|one| !is_handoff(one) || how_strict(one).is_some_and(|strict| strict > other))
        .collect()
}

fn json_candidates(text: &Text, format: Option<ReplyFormat>, words: &WordMap) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for block in text.json_blocks() {
        let (start, end) = (block.start, block.end);
        let is_last = text.nothing_follows(end);
        let (kind, result) = match block.value {
            Ok(Value::Object(object)) => match format.or_else(|| format_of(&object)) {
                Some(kind) if is_last || format_of(&object) == Some(kind) => {
                    (kind, read_object(kind, &object, words))
                }
                None if is_last => (ReplyFormat::Review, read_object(ReplyFormat::Review, &object, words)),
                Some(_) | None => continue,
            },
            Ok(_) => continue,
            Err(problem) => {
                let source = &text.text[start..end];
                if !is_last && !["\"approved\"", "\"status\""].iter().any(|key| source.contains(key)) {
                    continue;
                }
                (format.unwrap_or(ReplyFormat::Review), Err(vec![format!("this is not JSON: {problem}")]))
            }
        };
        candidates.extend(Candidate::admitted(text, kind, start..end, text.is_inside_line(start), result));
    }
    candidates
}

fn read_object(
    kind: ReplyFormat,
    object: &Map<String, Value>,
    words: &WordMap,
) -> Result<Reply, Vec<String>> {
    let fields = Fields::new(object, "");
    match kind {
        ReplyFormat::Universal => universal::read(&fields, words),
        ReplyFormat::Completion => completion::read(&fields, words),
        ReplyFormat::Task => task::read(&fields, words),
        // A brief is no JSON; callers never ask for one here.
        ReplyFormat::Review | ReplyFormat::Brief => review::read(&fields, words),
    }
}

/// The judgement that a file of JSON holds, if it holds one in the format that is asked for. `None`: it is about
/// something else, and its contract has to say whether it is in order.
pub fn judgement_in_file(
    bytes: &[u8],
    format: Option<ReplyFormat>,
    words: &WordMap,
) -> Option<Result<Reply, ReplyProblem>> {
    let object: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    let kind = format_of(&object).filter(|kind| format.is_none_or(|format| format == *kind))?;
    let judges = ["approved", "status"].iter().any(|key| object.contains_key(*key));
    match read_object(kind, &object, words) {
        Ok(reply) => Some(Ok(reply)),
        Err(violations) if judges && format.is_some() => Some(Err(ReplyProblem::Malformed { violations })),
        Err(_) => None,
    }
}

/// Which JSON reply this object means to be, judged by the keys that only one format has.
fn format_of(object: &Map<String, Value>) -> Option<ReplyFormat> {
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    let status = object.get("status").and_then(Value::as_str).unwrap_or_default();
    if has(&["approved"]) {
        Some(ReplyFormat::Review)
    } else if has(&["taskId"]) {
        Some(ReplyFormat::Task)
    } else if has(&["stream", "steps", "handoff"]) {
        Some(ReplyFormat::Completion)
    } else if has(&["artifacts", "gates", "next"]) {
        Some(ReplyFormat::Universal)
    } else if has(&["issues"]) || ["approved", "needs_revision"].contains(&status) {
        Some(ReplyFormat::Review)
    } else if ["OK", "NEEDS_INFO", "NEEDS_DECISION", "FAIL", "BLOCKED"].contains(&status) {
        Some(ReplyFormat::Universal)
    } else if has(&["git_sha"]) {
        Some(ReplyFormat::Completion)
    } else {
        None
    }
}

/// Drops what stands inside another block, whether that one is well-formed or not.
fn outermost(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        // Sorted by start, then end: the later of two with one start is the larger.
        kept.retain(|other| {
            !(candidate.span.start <= other.span.start && other.span.end <= candidate.span.end)
        });
        if !kept.iter().any(|other| candidate.span.end <= other.span.end) {
            kept.push(candidate);
        }
    }
    kept
}

/// "Not approved" in the words around an approving review holds (J-52).
fn hold_objection(text: &Text, format: ReplyFormat, span: &Range<usize>, reply: &mut Reply) {
    if format != ReplyFormat::Review || !matches!(reply.outcome, Outcome::Passed | Outcome::Done) {
        return;
    }
    let said =
        text.lines.iter().filter(|line| !line.quoted && (line.end <= span.start || line.start >= span.end));
    let prose = said.map(|line| &text.text[line.start..line.end]).collect::<Vec<_>>().join("\n");
    let objection = review::objection(&prose).or_else(|| review::objection(&reply.summary));
    if let Some(sentence) = objection.map(object::clipped) {
        reply.disagreements.push(format!(
            "the review says `{}`, the text says \"{sentence}\"; the stricter one, not approved, holds",
            reply.word
        ));
        reply.outcome = Outcome::Failed;
    }
}
