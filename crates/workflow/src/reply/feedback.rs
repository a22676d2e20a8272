//! The feedback of S3 in Markdown (S3-26): must fix, should fix, consider, then the counts and what is to be done.
//!
//! What is listed counts; the counts and the action below it can only make it stricter.

use gatewright_core::{
    outcome::{Outcome, Reply},
    verdict::Finding,
};

use super::{
    Candidate, ReplyFormat,
    object::{accepted, clipped},
    scan::{Text, field, plain},
    words::WordMap,
};
use crate::report::findings::is_none;

/// The headings, each with the severity of what stands below it.
const SECTIONS: [(&str, &str); 3] =
    [("must fix", "must"), ("should fix", "should"), ("consider", "consider")];
/// How the line of counts names them.
const COUNTED: [&str; 3] = ["blocking", "important", "suggestion"];

pub(crate) fn candidates(text: &Text, words: &WordMap) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let mut next = 0;
    while let Some(first) = (next..text.lines.len()).find(|index| severity_of(text.line(*index)).is_some()) {
        let block = Block::from(text, first);
        next = block.end + 1;
        // A lone heading is somebody's prose.
        if block.counts.is_none() && severity_of(text.line(first)) == Some("consider") {
            continue;
        }
        let span = text.lines[first].start..text.lines[block.end].end;
        let result = block.read(text, words);
        candidates.extend(Candidate::admitted(text, ReplyFormat::Review, span, false, result));
    }
    candidates
}

fn heading(line: &str) -> Option<String> {
    let title = line.trim().strip_prefix('#')?.trim_start_matches(|c: char| !c.is_alphanumeric());
    Some(title.to_lowercase())
}

/// `### 🔴 Must Fix (Blocking)`.
fn severity_of(line: &str) -> Option<&'static str> {
    let title = heading(line)?;
    SECTIONS.iter().find(|(name, _)| title.starts_with(name)).map(|(_, severity)| *severity)
}

/// Which lines of the output are one feedback.
struct Block {
    first: usize,
    end: usize,
    counts: Option<usize>,
    action: Option<usize>,
}

impl Block {
    fn from(text: &Text, first: usize) -> Block {
        let mut block = Block { first, end: first, counts: None, action: None };
        for index in first..text.lines.len() {
            let line = text.line(index);
            let known = severity_of(line).is_some() && block.counts.is_none();
            if text.lines[index].fence
                || heading(line).is_some_and(|title| !known && !title.starts_with("summary"))
            {
                break;
            }
            match field(line).map(|(name, _)| name.to_lowercase()).as_deref() {
                Some("review") => block.counts = Some(index),
                Some("action") => block.action = Some(index),
                _ => {}
            }
            if !line.trim().is_empty() {
                block.end = index;
            }
            if block.action.is_some() {
                break;
            }
        }
        block
    }

    fn read(&self, text: &Text, words: &WordMap) -> Result<Reply, Vec<String>> {
        let mut violations = Vec::new();
        let mut reply = Reply::new(Outcome::Passed);
        let mut severity = "";
        let mut listed = [0_usize; 3];
        for index in self.first..=self.end {
            let line = text.line(index);
            if let Some(found) = severity_of(line) {
                severity = found;
            } else if heading(line).is_some() || self.counts.is_some_and(|counts| index >= counts) {
                break;
            } else if let Some(item) = open_item(line) {
                let finding = finding(item, severity, words, &mut violations);
                let place = SECTIONS.iter().position(|(_, known)| *known == severity).unwrap_or(0);
                listed[place] += 1;
                reply.findings.push(finding);
            } else if let Some((name, fix)) = field(line)
                && name.eq_ignore_ascii_case("fix")
                && let Some(last) = reply.findings.last_mut()
            {
                last.fix = Some(fix.to_owned());
            }
        }
        self.hold_counts(text, listed, &mut reply, &mut violations);
        let demands = self.action.is_some_and(|index| {
            let said = text.line(index).to_lowercase();
            said.contains("fix") && !said.contains("ready")
        });
        if listed[0] > 0 || demands {
            reply.outcome = Outcome::Failed;
        }
        reply.word = if reply.outcome == Outcome::Failed { "not approved" } else { "approved" }.to_owned();
        accepted(reply, violations)
    }

    fn hold_counts(&self, text: &Text, listed: [usize; 3], reply: &mut Reply, violations: &mut Vec<String>) {
        let Some(index) = self.counts else {
            violations.push(
                "`Review: N blocking | N important | N suggestions` is missing below the findings".to_owned(),
            );
            return;
        };
        let line = text.line(index).trim().to_owned();
        for (what, listed) in COUNTED.iter().zip(listed) {
            let part = line.split(['|', ':']).find(|part| part.to_lowercase().contains(what));
            let said = part
                .and_then(|part| part.split_whitespace().find_map(|word| plain(word).parse::<usize>().ok()));
            match said {
                Some(said) if said != listed => {
                    violations
                        .push(format!("`{}` says {said} {what}, {listed} stand above it", clipped(&line)));
                }
                Some(_) => {}
                None => violations.push(format!("`{}` does not say how many are {what}", clipped(&line))),
            }
        }
        reply.summary = line;
    }
}

/// What a list item says; one that is ticked off, or says that there is nothing, is none.
fn open_item(line: &str) -> Option<&str> {
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let item = item.strip_prefix("[ ]").unwrap_or(item).trim();
    let settled = ["[x]", "[X]"].iter().any(|mark| item.starts_with(mark));
    (!settled && !item.is_empty() && !is_none(item)).then_some(item)
}

/// `` `file.py:42` — **Issue**: what is wrong ``.
fn finding(item: &str, severity: &str, words: &WordMap, violations: &mut Vec<String>) -> Finding {
    let quoted = item.strip_prefix('`').and_then(|rest| rest.split_once('`'));
    let (location, rest) = quoted.map_or((None, item), |(place, rest)| (Some(place.to_owned()), rest));
    let rest = rest.trim_start_matches([' ', '—', '–', '-', ':']);
    let said =
        field(rest).filter(|(name, _)| ["issue", "suggestion"].contains(&name.to_lowercase().as_str()));
    let problem = said.map_or(rest, |(_, problem)| problem).trim();
    if problem.is_empty() {
        violations.push(format!("`{}` does not say what is wrong", clipped(item)));
    }
    Finding {
        severity_word: severity.to_owned(),
        location,
        ..Finding::new(words.severity_or_highest(severity), problem)
    }
}
