//! The brief of S0: at most ten lines that begin with STATUS, FILE, SUMMARY and NEXT_INPUT (S0-11…13).
//!
//! Bullets after `---` are notes, except a few forms, in capitals so that `Blocking: 2` stays a note:
//! - `- Q: text` is a question;
//! - `- BLOCKING: text`, `- NON-BLOCKING: text` and `- [high] text` are findings; a last
//!   `(src/a.rs:4)` is the location, a last `ROUTE: name` the route;
//! - `- ROUTE: name` is the route of the finding before it.

use gatewright_core::{
    outcome::{Question, Reply},
    verdict::Finding,
};

use super::{
    Candidate, ReplyFormat,
    object::{accepted, ask_summary, clipped},
    scan::{Text, field, file_list, plain},
    words::WordMap,
};

const LINES_MAX: usize = 10;
const STATUS_WORDS: &[&str] = &["PASS", "PARTIAL", "FAIL", "DONE", "ERROR", "BLOCKED", "NEEDS_INPUT"];
const FIELDS_AFTER_STATUS: [&str; 3] = ["FILE", "SUMMARY", "NEXT_INPUT"];

/// Every place where a brief begins.
pub(crate) fn candidates(text: &Text, words: &WordMap) -> Vec<Candidate> {
    let starts = (0..text.lines.len()).filter(|index| begins(text, *index, words));
    starts.filter_map(|index| read(text, index, words)).collect()
}

/// A line `STATUS: …` that either says nothing but a known word or is followed by another field. A
/// sentence that happens to begin with `STATUS:` is neither.
fn begins(text: &Text, index: usize, words: &WordMap) -> bool {
    let Some(("STATUS", value)) = field(text.line(index)) else { return false };
    is_status(plain(value), words)
        || text.next_filled(index + 1).is_some_and(|next| {
            field(text.line(next)).is_some_and(|(name, _)| FIELDS_AFTER_STATUS.contains(&name))
        })
}

fn is_status(word: &str, words: &WordMap) -> bool {
    STATUS_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) || words.is_added(word)
}

fn read(text: &Text, first: usize, words: &WordMap) -> Option<Candidate> {
    let mut violations = Vec::new();
    let word = field(text.line(first)).map_or("", |(_, value)| plain(value));
    if !is_status(word, words) {
        let word = clipped(word);
        violations.push(format!("STATUS is `{word}`, expected one of {}", STATUS_WORDS.join(", ")));
    }
    let (values, mut last) = read_fields(text, first, &mut violations);
    let mut lines = 1 + values.iter().filter(|value| value.is_some()).count();
    let bullets = read_bullets(text, &mut last, &mut lines, &mut violations);
    if lines > LINES_MAX {
        violations.push(format!("the brief has {lines} lines, at most {LINES_MAX} are allowed"));
    }
    let [file, summary, next_input] = values.map(Option::unwrap_or_default);
    // A word that passed the check above is in every map: the defaults hold all of STATUS_WORDS.
    let result = match words.outcome_in(ReplyFormat::Brief, word) {
        Some(outcome) => {
            let mut reply = Reply::new(outcome);
            word.clone_into(&mut reply.word);
            reply.summary = summary;
            reply.files = file_list(&file);
            reply.changed.clone_from(&reply.files);
            reply.next_input = file_list(&next_input);
            sort_bullets(bullets, &mut reply, words);
            ask_summary(&mut reply, false);
            accepted(reply, violations)
        }
        None => Err(violations),
    };
    let (start, end) = (text.lines[first].start, text.lines[last].end);
    Candidate::admitted(text, ReplyFormat::Brief, start..end, false, result)
}

/// FILE, SUMMARY and NEXT_INPUT in this order, each on one line; also the last line that was used.
fn read_fields(text: &Text, first: usize, violations: &mut Vec<String>) -> ([Option<String>; 3], usize) {
    let mut values = [None, None, None];
    let mut last = first;
    for (place, name) in FIELDS_AFTER_STATUS.iter().enumerate() {
        let next = text.next_filled(last + 1);
        match next.and_then(|next| field(text.line(next)).map(|(found, value)| (next, found, value))) {
            Some((next, found, value)) if found == *name => {
                if plain(value).is_empty() {
                    violations
                        .push(format!("{name} is empty{}", if place == 1 { "" } else { ", write `none`" }));
                }
                values[place] = Some(value.to_owned());
                last = next;
            }
            _ => {
                let after = if place == 0 { "STATUS" } else { FIELDS_AFTER_STATUS[place - 1] };
                let found =
                    next.map_or("the end".to_owned(), |next| format!("`{}`", clipped(text.line(next))));
                violations.push(format!("expected `{name}:` on the line after {after}, found {found}"));
                break;
            }
        }
    }
    (values, last)
}

/// The bullets after `---`; each may go on in indented lines.
fn read_bullets(
    text: &Text,
    last: &mut usize,
    lines: &mut usize,
    violations: &mut Vec<String>,
) -> Vec<String> {
    let mut bullets: Vec<String> = Vec::new();
    let Some(mut next) = text.next_filled(*last + 1) else { return bullets };
    let rule = text.line(next).trim();
    if rule.len() >= 3 && rule.chars().all(|c| c == '-') {
        *lines += 1;
        *last = next;
    } else if bullet(rule).is_some() && violations.is_empty() {
        violations.push("expected `---` on the line before the bullets".to_owned());
    } else {
        return bullets;
    }
    while let Some(index) = text.next_filled(*last + 1) {
        next = index;
        let line = text.line(next);
        if let Some(point) = bullet(line.trim()) {
            bullets.push(point.to_owned());
        } else if let Some(open) = bullets.last_mut().filter(|_| next == *last + 1 && line.starts_with("  "))
        {
            open.push('\n');
            open.push_str(line.trim());
        } else {
            break;
        }
        *lines += 1;
        *last = next;
    }
    bullets
}

fn bullet(line: &str) -> Option<&str> {
    ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

fn sort_bullets(bullets: Vec<String>, reply: &mut Reply, words: &WordMap) {
    for point in bullets {
        if let Some(question) = point.strip_prefix("Q:") {
            let question = question.trim().to_owned();
            reply.questions.push(Question {
                question,
                options: Vec::new(),
                recommendation: None,
                security: false,
            });
        } else if let Some(step) = point.strip_prefix("BACK TO:").map(plain).filter(|step| !step.is_empty()) {
            reply.back_to = Some(step.into());
        } else if let Some(finding) = finding(&point, words) {
            reply.findings.push(finding);
        } else if let (Some(route), Some(open)) = (point.strip_prefix("ROUTE:"), reply.findings.last_mut()) {
            open.route = Some(plain(route).to_owned());
        } else {
            reply.notes.push(point);
        }
    }
}

fn finding(point: &str, words: &WordMap) -> Option<Finding> {
    let (word, rest) = match point.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(word, _)| words.severity(word).is_some())?,
        None => field(point).filter(|(name, _)| ["BLOCKING", "NON-BLOCKING"].contains(name))?,
    };
    let rest = rest.trim();
    // `BLOCKING: 0`, `BLOCKING: 2 of 5` and `BLOCKING: none` are counts.
    let first = rest.split_whitespace().next()?.trim_end_matches(['.', ',']);
    if first.chars().all(|c| c.is_ascii_digit()) || first.eq_ignore_ascii_case("none") {
        return None;
    }
    let (rest, route) = match rest.rsplit_once("ROUTE:") {
        Some((rest, route)) => {
            (rest.trim_end_matches([' ', ',', ';', '(']), Some(plain(route.trim_end_matches(')'))))
        }
        None => (rest, None),
    };
    let (problem, location) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((problem, place)) if is_place(place) => (problem.trim(), Some(plain(place))),
        _ => (rest, None),
    };
    let mut finding = Finding::new(words.severity_or_highest(word), problem);
    word.clone_into(&mut finding.severity_word);
    finding.location = location.map(str::to_owned);
    finding.route = route.map(str::to_owned);
    Some(finding)
}

fn is_place(text: &str) -> bool {
    !text.contains(char::is_whitespace) && text.contains(['.', '/', ':'])
}
