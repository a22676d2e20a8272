//! Several channels of one attempt, one reply: the stricter outcome holds (J-52).
//!
//! Knows nothing of formats; each channel was read before.

use gatewright_core::outcome::{Outcome, Reply, ReplyProblem};
use serde::{Deserialize, Serialize};

/// Where a reply was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    FinalMessage,
    /// The header of a report that the attempt wrote. It can make a reply stricter, never replace it:
    /// an attempt without a reply has no outcome (J-03).
    ReportHeader,
    /// A judgement as JSON that a reviewer wrote (`1.3-plan-review.json`). Like a header it only makes stricter.
    JsonFile,
    /// A tool call over MCP.
    Tool,
}

impl Channel {
    fn only_makes_stricter(self) -> bool {
        match self {
            Channel::ReportHeader | Channel::JsonFile => true,
            Channel::FinalMessage | Channel::Tool => false,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Channel::FinalMessage => "the final message",
            Channel::ReportHeader => "the report header",
            Channel::JsonFile => "the JSON file",
            Channel::Tool => "the tool call",
        }
    }
}

/// Order of strictness; `done` and `passed` are equally content.
pub fn strictness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done | Outcome::Passed => 0,
        Outcome::Failed => 1,
        Outcome::NeedsInput => 2,
        Outcome::Blocked => 3,
        Outcome::Error => 4,
    }
}

/// One reply from all channels: the strictest outcome, everything that any of them reported, and
/// every disagreement in words.
///
/// A channel without an outcome is skipped while another has one; a malformed one spoils the reply,
/// because what it meant to say may have been stricter.
pub fn combine(channels: Vec<(Channel, Result<Reply, ReplyProblem>)>) -> Result<Reply, ReplyProblem> {
    let mut replies = Vec::new();
    let mut broken = Vec::new();
    for (channel, result) in channels {
        match result {
            Ok(reply) => replies.push((channel, reply)),
            Err(ReplyProblem::NoOutcome) => {}
            Err(ReplyProblem::Malformed { violations }) => {
                broken.extend(
                    violations.into_iter().map(|violation| format!("{}: {violation}", channel.words())),
                );
            }
        }
    }
    if !broken.is_empty() {
        return Err(ReplyProblem::Malformed { violations: broken });
    }
    if replies.iter().all(|(channel, _)| channel.only_makes_stricter()) {
        return Err(ReplyProblem::NoOutcome);
    }
    let strictest = (0..replies.len())
        .reduce(|best, other| {
            if strictness(replies[other].1.outcome) > strictness(replies[best].1.outcome) {
                other
            } else {
                best
            }
        })
        .unwrap_or(0);
    let (held_by, mut reply) = replies.remove(strictest);
    for (channel, other) in replies {
        if strictness(other.outcome) != strictness(reply.outcome) {
            reply.disagreements.push(format!(
                "{} says `{}`, {} says `{}`; the stricter one, `{}`, holds",
                channel.words(),
                said(&other),
                held_by.words(),
                said(&reply),
                said(&reply)
            ));
        }
        absorb(&mut reply, other);
    }
    Ok(reply)
}

fn said(reply: &Reply) -> String {
    if reply.word.is_empty() { format!("{:?}", reply.outcome).to_lowercase() } else { reply.word.clone() }
}

/// Adds what the other reply reported and this one did not.
fn absorb(reply: &mut Reply, other: Reply) {
    if reply.summary.is_empty() {
        reply.summary = other.summary;
    }
    append(&mut reply.files, other.files);
    append(&mut reply.changed, other.changed);
    append(&mut reply.commits, other.commits);
    reply.changed_is_all |= other.changed_is_all;
    append(&mut reply.next_input, other.next_input);
    append(&mut reply.notes, other.notes);
    append(&mut reply.findings, other.findings);
    append(&mut reply.questions, other.questions);
    append(&mut reply.disagreements, other.disagreements);
    reply.reason = reply.reason.take().or(other.reason);
    reply.back_to = reply.back_to.take().or(other.back_to);
}

fn append<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::verdict::{Finding, Severity};

    use super::*;

    fn said(outcome: Outcome, word: &str) -> Result<Reply, ReplyProblem> {
        let mut reply = Reply::new(outcome);
        word.clone_into(&mut reply.word);
        Ok(reply)
    }

    #[test]
    fn j_52_the_stricter_channel_holds_whatever_the_order() {
        let mut channels = vec![
            (Channel::FinalMessage, said(Outcome::Passed, "PASS")),
            (Channel::ReportHeader, said(Outcome::Failed, "FAIL")),
        ];
        for _ in 0..2 {
            let reply = combine(channels.clone()).unwrap();
            assert_eq!((reply.outcome, reply.word.as_str()), (Outcome::Failed, "FAIL"));
            assert_eq!(
                reply.disagreements,
                [
                    "the final message says `PASS`, the report header says `FAIL`; the stricter one, `FAIL`, holds"
                ]
            );
            channels.reverse();
        }
    }

    #[test]
    fn j_52_agreement_is_no_disagreement_and_findings_are_united() {
        let mut header = Reply::new(Outcome::Done);
        header.findings.push(Finding::new(Severity::High, "a"));
        header.findings.push(Finding::new(Severity::High, "b"));
        let mut message = Reply::new(Outcome::Passed);
        message.findings.push(Finding::new(Severity::High, "a"));
        let reply =
            combine(vec![(Channel::FinalMessage, Ok(message)), (Channel::ReportHeader, Ok(header))]).unwrap();
        assert_eq!(reply.outcome, Outcome::Passed);
        assert_eq!(reply.findings.len(), 2);
        assert!(reply.disagreements.is_empty());
    }

    #[test]
    fn j_52_a_malformed_channel_is_never_outvoted() {
        let malformed = Err(ReplyProblem::Malformed { violations: vec!["/status: missing".to_owned()] });
        let result = combine(vec![
            (Channel::FinalMessage, said(Outcome::Passed, "PASS")),
            (Channel::JsonFile, malformed),
        ]);
        let violations = vec!["the JSON file: /status: missing".to_owned()];
        assert_eq!(result, Err(ReplyProblem::Malformed { violations }));
    }

    #[test]
    fn j_03_what_stands_in_files_alone_is_no_outcome() {
        let silent = (Channel::FinalMessage, Err(ReplyProblem::NoOutcome));
        for channel in [Channel::ReportHeader, Channel::JsonFile] {
            let file = (channel, said(Outcome::Passed, "PASS"));
            assert_eq!(combine(vec![file, silent.clone()]), Err(ReplyProblem::NoOutcome));
        }
        assert_eq!(combine(Vec::new()), Err(ReplyProblem::NoOutcome));
        let tool = (Channel::Tool, said(Outcome::Done, "complete"));
        assert_eq!(combine(vec![silent, tool]).unwrap().outcome, Outcome::Done);
    }
}
