//! The reply at the end of a rehearsed agent's output, in the format of its step.

use std::fmt::Write as _;

use gatewright_core::verdict::Severity;
use gatewright_workflow::reply::{ReplyFormat, WordMap};
use serde_json::{Value, json};

use super::behaviour::Ending;

/// A brief has at most ten lines, five of them points.
const POINTS_MAX: usize = 5;

/// What the reply is about.
#[derive(Clone, Copy, Debug)]
pub struct ReplySubject<'a> {
    pub format: Option<ReplyFormat>,
    pub reviewer: bool,
    /// Names of the files it says it wrote.
    pub files: &'a [String],
    pub summary: &'a str,
    /// From here on a reviewer's finding blocks.
    pub block_at: Severity,
    pub step: &'a str,
    pub attempt: u32,
}

/// The text of a reply. Endings without one (a crash, a hang, mere words) have an empty text.
pub fn reply_text(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    match ending {
        Ending::Crash { .. } | Ending::Hang | Ending::Malformed | Ending::Quota { .. } => String::new(),
        Ending::Reply(text) => text.clone(),
        Ending::Good
        | Ending::Findings(_)
        | Ending::WrongStatus
        | Ending::Asks(_)
        | Ending::Blocked { .. }
        | Ending::Error { .. }
        | Ending::BackTo { .. } => match format_for(ending, subject) {
            ReplyFormat::Brief => brief(ending, subject),
            ReplyFormat::Review => review(ending, subject),
            ReplyFormat::Universal => universal(ending, subject),
            ReplyFormat::Completion => completion(ending, subject),
            ReplyFormat::Task => task(ending, subject),
        },
    }
}

/// The step's own format; without one, the plainest that can say it.
fn format_for(ending: &Ending, subject: &ReplySubject<'_>) -> ReplyFormat {
    if let Some(format) = subject.format {
        return format;
    }
    match ending {
        Ending::Findings(list) if list.len() > POINTS_MAX || !list.iter().all(fits_a_point) => {
            ReplyFormat::Review
        }
        Ending::Asks(list)
            if list.len() > POINTS_MAX || list.iter().any(|asked| asked.get("options").is_some()) =>
        {
            ReplyFormat::Universal
        }
        Ending::BackTo { .. } => ReplyFormat::Review,
        Ending::Blocked { .. } if !subject.reviewer => ReplyFormat::Universal,
        Ending::Good | Ending::Findings(_) | Ending::WrongStatus | Ending::Blocked { .. }
            if subject.reviewer && subject.files.is_empty() =>
        {
            ReplyFormat::Review
        }
        _ => ReplyFormat::Brief,
    }
}

/// A brief knows severity, problem, location and route of a finding, on one line.
fn fits_a_point(finding: &Value) -> bool {
    let known = text(finding, "severity").is_some_and(|word| WordMap::default().severity(word).is_some());
    let more = ["id", "category", "fix", "out_of_scope"].iter().any(|key| finding.get(key).is_some());
    known && !more
}

fn blocks(finding: &Value, block_at: Severity) -> bool {
    WordMap::default().severity_or_highest(text(finding, "severity").unwrap_or_default()) >= block_at
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the agent says in one sentence.
fn summary(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    one_line(match ending {
        Ending::Blocked { reason } => reason,
        Ending::Error { message } => message,
        _ => subject.summary,
    })
}

fn brief(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    let status = match ending {
        Ending::Findings(_) => "FAIL",
        Ending::WrongStatus => "LOOKS-GOOD",
        Ending::Asks(_) => "NEEDS_INPUT",
        Ending::Blocked { .. } => "BLOCKED",
        Ending::BackTo { .. } => "FAIL",
        Ending::Error { .. } => "ERROR",
        _ if subject.reviewer => "PASS",
        _ => "DONE",
    };
    let files = if subject.files.is_empty() { "none".to_owned() } else { subject.files.join(", ") };
    let mut reply = format!(
        "STATUS: {status}\nFILE: {files}\nSUMMARY: {}\nNEXT_INPUT: {files}\n",
        summary(ending, subject)
    );
    let points: Vec<String> = match ending {
        Ending::Findings(list) => list.iter().map(point).collect(),
        Ending::Asks(list) => list
            .iter()
            .map(|asked| format!("Q: {}", one_line(text(asked, "question").unwrap_or_default())))
            .collect(),
        Ending::BackTo { step } => vec![format!("BACK TO: {step}")],
        _ => Vec::new(),
    };
    if !points.is_empty() {
        reply.push_str("---\n");
    }
    for point in points.iter().take(POINTS_MAX) {
        let _ = writeln!(reply, "- {point}");
    }
    reply
}

fn point(finding: &Value) -> String {
    let mut point = format!(
        "[{}] {}",
        text(finding, "severity").unwrap_or("high"),
        one_line(text(finding, "problem").unwrap_or_default())
    );
    if let Some(location) = text(finding, "location") {
        let _ = write!(point, " ({location})");
    }
    if let Some(route) = text(finding, "route") {
        let _ = write!(point, " ROUTE: {route}");
    }
    point
}

/// Findings as the issues of a JSON reply.
fn issues(ending: &Ending) -> Vec<Value> {
    let Ending::Findings(list) = ending else { return Vec::new() };
    list.iter()
        .map(|finding| {
            let mut issue = finding.clone();
            if let Value::Object(object) = &mut issue
                && let Some(problem) = object.remove("problem")
            {
                object.insert("description".to_owned(), problem);
            }
            issue
        })
        .collect()
}

fn review(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    let issues = issues(ending);
    let summary = summary(ending, subject);
    let mut reply = match ending {
        Ending::WrongStatus => json!({"status": "looks-good", "issues": issues, "summary": summary}),
        Ending::Blocked { reason } => {
            json!({"status": "blocked", "issues": issues, "summary": summary, "reason": reason})
        }
        Ending::Asks(_) | Ending::Error { .. } => {
            json!({"approved": false, "issues": issues, "summary": summary})
        }
        _ => {
            json!({"approved": issues.is_empty() && !matches!(ending, Ending::BackTo { .. }), "issues": issues, "summary": summary})
        }
    };
    add_ours(&mut reply, ending);
    format!("{reply}\n")
}

fn universal(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    let issues = issues(ending);
    let status = match ending {
        Ending::WrongStatus => "LOOKS-GOOD",
        Ending::Asks(_) => "NEEDS_INFO",
        Ending::Blocked { .. } => "BLOCKED",
        // This word alone demands work, so notes do not go with it.
        Ending::Findings(list) if list.iter().any(|finding| blocks(finding, subject.block_at)) => "BLOCKED",
        Ending::Error { .. } => "FAIL",
        _ => "OK",
    };
    let mut reply = json!({
        "status": status,
        "summary": summary(ending, subject),
        "artifacts": {"files_changed": subject.files, "findings": issues},
        "gates": {"meets_definition_of_done": status == "OK", "needs_review": true, "needs_tests": false, "security_concerns": []},
        "next": {"recommended_agent": "", "recommended_task_id": "", "reason": ""},
    });
    if let (Value::Object(object), Ending::Blocked { reason }) = (&mut reply, ending) {
        object.insert("reason".to_owned(), json!(reason));
    }
    add_ours(&mut reply, ending);
    format!("{reply}\n")
}

fn task(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    let (status, errors) = match ending {
        Ending::WrongStatus => ("looks-good", Vec::new()),
        Ending::Asks(_) => ("needs_context", Vec::new()),
        Ending::Blocked { reason: why } | Ending::Error { message: why } => ("failed", vec![one_line(why)]),
        Ending::Findings(list) => ("failed", list.iter().map(point).collect()),
        _ => ("completed", Vec::new()),
    };
    let mut reply = json!({
        "taskId": subject.step.split('/').nth(1).unwrap_or(subject.step), "status": status,
        "summary": summary(ending, subject), "filesModified": subject.files, "errors": errors,
    });
    add_ours(&mut reply, ending);
    format!("{reply}\n")
}

/// Questions and referrals, which every JSON reply may carry.
fn add_ours(reply: &mut Value, ending: &Ending) {
    let Value::Object(object) = reply else { return };
    match ending {
        Ending::Asks(list) => {
            object.insert("questions".to_owned(), json!(list));
        }
        Ending::BackTo { step } => {
            object.insert("back_to".to_owned(), json!(step));
        }
        _ => {}
    }
}

fn completion(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    if matches!(ending, Ending::Asks(_) | Ending::BackTo { .. }) {
        return stream_completion(ending, subject);
    }
    let status = match ending {
        Ending::WrongStatus => "looks-good",
        Ending::Blocked { .. } | Ending::Findings(_) => "blocked",
        Ending::Error { .. } => "failed",
        _ => "complete",
    };
    let problems: Vec<String> = match ending {
        Ending::Findings(list) => list.iter().map(point).collect(),
        Ending::Blocked { reason } => vec![one_line(reason)],
        _ => Vec::new(),
    };
    let files = if subject.files.is_empty() {
        "none".to_owned()
    } else {
        subject.files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ")
    };
    let mut reply =
        format!("> {}\n>\n> **Output**: {files}\n> **Status**: {status}\n", summary(ending, subject));
    match problems.as_slice() {
        [] => reply.push_str("> **Blocking issues**: none\n"),
        list => {
            reply.push_str("> **Blocking issues**:\n");
            for problem in list {
                let _ = writeln!(reply, "> - {problem}");
            }
        }
    }
    reply
}

/// The JSON form: the block cannot ask or refer back.
fn stream_completion(ending: &Ending, subject: &ReplySubject<'_>) -> String {
    let mut reply = json!({
        "stream": subject.step, "status": "partial", "steps": [{"name": "rehearsal", "status": "passed"}],
        "git_sha": "rehearsed", "files_modified": subject.files, "attempt": subject.attempt,
        "started_at": "2026-01-02T03:04:05Z", "completed_at": "2026-01-02T03:04:06Z", "summary": summary(ending, subject),
    });
    add_ours(&mut reply, ending);
    format!("{reply}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_core::outcome::{Outcome, Reply};
    use gatewright_workflow::reply::parse_reply;

    #[track_caller]
    fn read(ending: &Ending, format: Option<ReplyFormat>, reviewer: bool, files: &[&str]) -> Reply {
        let files: Vec<String> = files.iter().map(ToString::to_string).collect();
        let subject = ReplySubject {
            format,
            reviewer,
            files: &files,
            summary: "Rehearsed.",
            block_at: Severity::Medium,
            step: "code",
            attempt: 1,
        };
        let text = format!("Some words before.\n\n{}", reply_text(ending, &subject));
        parse_reply(text.as_bytes(), format, &WordMap::default())
            .unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
    }

    const FORMATS: [Option<ReplyFormat>; 6] = [
        None,
        Some(ReplyFormat::Brief),
        Some(ReplyFormat::Review),
        Some(ReplyFormat::Universal),
        Some(ReplyFormat::Completion),
        Some(ReplyFormat::Task),
    ];

    #[test]
    fn good_news_is_good_news_in_every_format() {
        for format in FORMATS {
            for files in [&[][..], &["plan.md"][..]] {
                let outcome = read(&Ending::Good, format, false, files).outcome;
                assert!(matches!(outcome, Outcome::Done | Outcome::Passed), "{format:?}");
                let outcome = read(&Ending::Good, format, true, files).outcome;
                assert!(matches!(outcome, Outcome::Done | Outcome::Passed), "{format:?}");
            }
        }
    }

    #[test]
    fn findings_arrive_as_they_were_written() {
        let found = vec![
            json!({"severity": "high", "problem": "no test", "location": "src/a.rs:4", "route": "coder"}),
        ];
        for format in
            [None, Some(ReplyFormat::Brief), Some(ReplyFormat::Review), Some(ReplyFormat::Universal)]
        {
            let reply = read(&Ending::Findings(found.clone()), format, true, &["review.md"]);
            let finding = &reply.findings[0];
            assert_eq!(
                (finding.problem.as_str(), finding.location.as_deref(), finding.route.as_deref()),
                ("no test", Some("src/a.rs:4"), Some("coder")),
                "{format:?}"
            );
        }
        let many: Vec<Value> =
            (0..9).map(|number| json!({"severity": "low", "problem": format!("p{number}")})).collect();
        assert_eq!(read(&Ending::Findings(many), None, true, &["review.md"]).findings.len(), 9);
    }

    #[test]
    fn questions_blocks_errors_and_referrals() {
        let asked = vec![json!({"question": "Which one?", "options": ["a", "b"]})];
        let reply = read(&Ending::Asks(asked), None, false, &[]);
        assert_eq!((reply.outcome, reply.questions[0].options.len()), (Outcome::NeedsInput, 2));
        let reply = read(&Ending::Blocked { reason: "complexity".to_owned() }, None, false, &[]);
        assert_eq!((reply.outcome, reply.reason.as_deref()), (Outcome::Blocked, Some("complexity")));
        assert_eq!(
            read(&Ending::Error { message: "no".to_owned() }, None, false, &[]).outcome,
            Outcome::Error
        );
        for format in [None, Some(ReplyFormat::Brief)] {
            let reply = read(&Ending::BackTo { step: "plan".to_owned() }, format, false, &[]);
            assert_eq!(reply.back_to.map(|step| step.to_string()).as_deref(), Some("plan"));
        }
    }

    #[test]
    fn a_wrong_status_is_not_understood() {
        for format in FORMATS {
            let subject = ReplySubject {
                format,
                reviewer: false,
                files: &[],
                summary: "Rehearsed.",
                block_at: Severity::Medium,
                step: "code",
                attempt: 1,
            };
            let text = reply_text(&Ending::WrongStatus, &subject);
            assert!(parse_reply(text.as_bytes(), format, &WordMap::default()).is_err(), "{text}");
        }
    }
}
