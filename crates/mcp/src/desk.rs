//! Takes what an agent hands in: checks it against the step's contracts, says every violation at once,
//! and keeps what is in order below `GATEWRIGHT_OUT`. Files only; knows no protocol.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use gatewright_core::{
    outcome::{self, Outcome, Reply},
    verdict::{Finding, Severity},
};
use gatewright_workflow::{
    contract,
    reply::{
        strictness,
        tool_file::{TOOL_PROGRESS_FILE, TOOL_REPLY_FILE, read_tool_reply, write_tool_reply},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::promised::{Promised, PromisedOutput};

/// Notes of progress beyond this are no longer kept; the agent goes on.
const PROGRESS_BYTES_MAX: u64 = 1024 * 1024;
/// One question or note is not longer than this.
const TEXT_BYTES_MAX: usize = 16 * 1024;
const QUESTIONS_MAX: usize = 20;

/// How the work ended, in the words of every method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The work is done.
    Done,
    /// It was tried and did not succeed.
    Failed,
    /// It cannot go on, for a reason that another attempt would not remove.
    Blocked,
    /// A required input is missing, or an output cannot be written.
    Error,
}

/// One file of the step, and how the work ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub status: Status,
    /// One sentence on what was done.
    pub summary: String,
    /// The name of the file that this report is for, as your task names it. May be left out where there is only one.
    #[serde(default)]
    pub file: Option<String>,
    /// The whole text of that file. Leave it out if you have written the file already.
    #[serde(default)]
    pub content: Option<String>,
    /// Files of the repository that you changed, relative to it.
    #[serde(default)]
    pub files: Vec<String>,
    /// Points that the next one should know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A short word for the reason of `blocked`.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    Critical,
    High,
    Medium,
    Low,
    Note,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFinding {
    pub severity: FindingSeverity,
    /// What is wrong.
    pub problem: String,
    /// Where: a file, with line if there is one.
    #[serde(default)]
    pub location: Option<String>,
    /// What would settle it.
    #[serde(default)]
    pub fix: Option<String>,
    #[serde(default)]
    pub category: Option<String>,
    /// The id that an earlier review gave it, if it is still open.
    #[serde(default)]
    pub id: Option<String>,
    /// Who should settle it, where your task names routes.
    #[serde(default)]
    pub route: Option<String>,
}

/// A review: content or not, and every finding.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// True only if nothing has to be changed.
    pub approved: bool,
    /// One sentence.
    pub summary: String,
    #[serde(default)]
    pub findings: Vec<ReviewFinding>,
    /// The name of the review's file, if your task asks for one and there are several.
    #[serde(default)]
    pub file: Option<String>,
    /// The whole text of that file. Leave it out if you have written it already, or if none is asked for.
    #[serde(default)]
    pub content: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// What you are doing now, in one sentence.
    pub message: String,
    /// How far you are, 0 to 100.
    #[serde(default)]
    pub percent: Option<u8>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    pub question: String,
    /// The possible answers, if they are few.
    #[serde(default)]
    pub options: Vec<String>,
    /// Which of them you would choose.
    #[serde(default)]
    pub recommendation: Option<String>,
}

/// What the agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Accepted(String),
    /// Nothing was kept; the text says what to change.
    Rejected(String),
}

/// The desk of one attempt.
#[derive(Clone, Debug)]
pub struct Desk {
    out: PathBuf,
    promised: Promised,
}

impl Desk {
    pub fn new(out: PathBuf, promised: Promised) -> Desk {
        Desk { out, promised }
    }

    pub fn submit_report(&self, report: Report) -> Answer {
        let outcome = match report.status {
            Status::Done => Outcome::Done,
            Status::Failed => Outcome::Failed,
            Status::Blocked => Outcome::Blocked,
            Status::Error => Outcome::Error,
        };
        if self.promised.reviewer && outcome == Outcome::Done {
            return Answer::Rejected("this step is a review: hand it in with submit_review".to_owned());
        }
        let mut reply = Reply::new(outcome);
        reply.summary = report.summary;
        reply.files = report.files;
        reply.notes = report.notes;
        reply.reason = report.reason;
        self.take(reply, report.file.as_deref(), report.content.as_deref())
    }

    pub fn submit_review(&self, review: Review) -> Answer {
        if !self.promised.reviewer {
            return Answer::Rejected("this step is no review: hand it in with submit_report".to_owned());
        }
        if !review.approved && review.findings.is_empty() {
            return Answer::Rejected(
                "a review that does not approve needs at least one finding that says what to change"
                    .to_owned(),
            );
        }
        let mut reply = Reply::new(if review.approved { Outcome::Passed } else { Outcome::Failed });
        reply.summary = review.summary;
        reply.findings = review.findings.into_iter().map(finding).collect();
        self.take(reply, review.file.as_deref(), review.content.as_deref())
    }

    /// The question is kept and the agent is sent home: nobody waits inside a tool call for a person.
    pub fn ask_human(&self, question: Question) -> Answer {
        let text = question.question.trim();
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Answer::Rejected(format!("a question has 1 to {TEXT_BYTES_MAX} bytes"));
        }
        let mut reply = self.kept().unwrap_or_else(|| Reply::new(Outcome::NeedsInput));
        if reply.questions.len() >= QUESTIONS_MAX {
            return Answer::Rejected(format!(
                "{QUESTIONS_MAX} questions are enough: stop now and wait for the answers"
            ));
        }
        if strictness(reply.outcome) < strictness(Outcome::NeedsInput) {
            reply.outcome = Outcome::NeedsInput;
        }
        if !reply.questions.iter().any(|asked| asked.question == text) {
            reply.questions.push(outcome::Question {
                question: text.to_owned(),
                options: question.options,
                recommendation: question.recommendation,
                security: false,
            });
        }
        match self.keep(&reply) {
            Ok(()) => Answer::Accepted(
                "The question is kept for a person. Ask what else you must know, then end your turn now: you will be called again with the answers."
                    .to_owned(),
            ),
            Err(problem) => problem,
        }
    }

    pub fn update_progress(&self, progress: &Progress) -> Answer {
        let path = self.out.join(TOOL_PROGRESS_FILE);
        let full = fs::metadata(&path).is_ok_and(|data| data.len() > PROGRESS_BYTES_MAX);
        if full || progress.message.len() > TEXT_BYTES_MAX {
            return Answer::Accepted("not kept: too long".to_owned());
        }
        let summary = match progress.percent {
            Some(part) => format!("{} %: {}", part.min(100), progress.message),
            None => progress.message.clone(),
        };
        // In the words of `gatewright progress update`, but it says nothing of how the work stands.
        let line = serde_json::json!({"status": "note", "summary": summary});
        let written = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        match written {
            Ok(()) => Answer::Accepted("noted".to_owned()),
            Err(error) => not_stored(&path, &error),
        }
    }

    /// Checks the file that goes with a reply, keeps both, and says what is still missing.
    fn take(&self, mut reply: Reply, file: Option<&str>, content: Option<&str>) -> Answer {
        let wants_files = matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed);
        let output = match (file, content) {
            (Some(name), _) => match self.promised.output(name) {
                Some(output) => Some(output),
                None => {
                    return Answer::Rejected(format!(
                        "this step does not write `{name}`; its files are: {}",
                        self.promised.names()
                    ));
                }
            },
            (None, Some(_)) => match self.promised.only_output() {
                Some(output) => Some(output),
                None => {
                    return Answer::Rejected(format!(
                        "`file` must say which file `content` is for; this step's files are: {}",
                        self.promised.names()
                    ));
                }
            },
            (None, None) => self.promised.only_output().filter(|output| wants_files && !output.optional),
        };
        if let Some(output) = output
            && let Err(rejected) = self.take_file(output, content)
        {
            return rejected;
        }
        if let Some(kept) = self.kept() {
            reply.questions = kept.questions;
            if strictness(kept.outcome) == strictness(Outcome::NeedsInput) {
                reply.outcome = Outcome::NeedsInput;
            }
        }
        reply.files.extend(output.map(|output| output.name.clone()));
        reply.files.dedup();
        if let Err(problem) = self.keep(&reply) {
            return problem;
        }
        let missing = if wants_files { self.missing() } else { Vec::new() };
        Answer::Accepted(if missing.is_empty() {
            "Accepted. Nothing else is needed: end your turn with your reply.".to_owned()
        } else {
            format!("Accepted. Still missing: {}.", missing.join(", "))
        })
    }

    fn take_file(&self, output: &PromisedOutput, content: Option<&str>) -> Result<(), Answer> {
        let path = self.out.join(&output.name);
        let bytes = match content {
            Some(text) => text.as_bytes().to_vec(),
            None => fs::read(&path).map_err(|_| {
                Answer::Rejected(format!(
                    "`{}` has not been written: give its whole text as `content`, or write it to {}",
                    output.name,
                    path.display()
                ))
            })?,
        };
        contract::check(&output.contract, &output.name, &bytes).map_err(|violations| {
            let list: Vec<String> = violations.iter().map(|violation| format!("- {violation}")).collect();
            Answer::Rejected(format!(
                "rejected, nothing was kept. Change this and hand it in again:\n{}",
                list.join("\n")
            ))
        })?;
        if content.is_some() {
            replace(&path, &bytes).map_err(|error| not_stored(&path, &error))?;
        }
        Ok(())
    }

    fn missing(&self) -> Vec<String> {
        let required = self.promised.outputs.iter().filter(|output| !output.optional);
        required
            .filter(|output| !self.out.join(&output.name).is_file())
            .map(|output| format!("`{}`", output.name))
            .collect()
    }

    /// What was handed in before, by this server or one that the agent ended.
    fn kept(&self) -> Option<Reply> {
        let bytes = fs::read(self.out.join(TOOL_REPLY_FILE)).ok()?;
        read_tool_reply(&bytes).ok()
    }

    fn keep(&self, reply: &Reply) -> Result<(), Answer> {
        let path = self.out.join(TOOL_REPLY_FILE);
        let bytes = write_tool_reply(reply)
            .map_err(|error| Answer::Rejected(format!("the reply cannot be written down: {error}")))?;
        replace(&path, &bytes).map_err(|error| not_stored(&path, &error))
    }
}

fn finding(said: ReviewFinding) -> Finding {
    let severity = match said.severity {
        FindingSeverity::Critical => Severity::Critical,
        FindingSeverity::High => Severity::High,
        FindingSeverity::Medium => Severity::Medium,
        FindingSeverity::Low => Severity::Low,
        FindingSeverity::Note => Severity::Note,
    };
    let mut finding = Finding::new(severity, said.problem);
    finding.location = said.location;
    finding.fix = said.fix;
    finding.category = said.category;
    finding.id = said.id;
    finding.route = said.route;
    finding
}

fn not_stored(path: &Path, error: &std::io::Error) -> Answer {
    Answer::Rejected(format!("{} cannot be written: {error}", path.display()))
}

/// Whole or not at all: a client may end this process at any moment.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let staged = path.with_file_name(name);
    fs::write(&staged, bytes)?;
    fs::rename(&staged, path)
}
