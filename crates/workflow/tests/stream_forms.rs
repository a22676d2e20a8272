//! Every form in which the agents of a stream pipeline speak, as their own documents lay it out, is understood.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gatewright_core::{
    outcome::{Outcome, Reply},
    verdict::Severity,
};
use gatewright_workflow::reply::{Ladder, ReplyFormat, WordMap, parse_reply};

fn words() -> WordMap {
    let partial =
        serde_json::from_value::<WordMap>(serde_json::json!({"outcomes": {"partial": "done"}})).unwrap();
    partial.with_ladder(Ladder::S3)
}

#[track_caller]
fn read(text: &str, format: ReplyFormat) -> Reply {
    parse_reply(text.as_bytes(), Some(format), &words())
        .unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
}

#[track_caller]
fn refused(text: &str, format: ReplyFormat, part: &str) {
    let problem = parse_reply(text.as_bytes(), Some(format), &words()).expect_err(text);
    assert!(format!("{problem:?}").contains(part), "{problem:?}\n{text}");
}

#[test]
fn s3_16_the_pipeline_completion_in_each_status() {
    let block = |status: &str, issues: &str| {
        format!(
            "> Did it.\n>\n> **Output**: `se_go_output.json` written to `docs/plans/PROJ-1/x/`\n> **Status**: {status}\n> **Blocking issues**: {issues}\n"
        )
    };
    let reply = read(&block("complete", "[none]"), ReplyFormat::Completion);
    assert_eq!((reply.outcome, reply.summary.as_str()), (Outcome::Done, "Did it."));
    assert_eq!(reply.files, ["docs/plans/PROJ-1/x/se_go_output.json"]);
    assert_eq!(read(&block("partial", "none"), ReplyFormat::Completion).outcome, Outcome::Done);
    let blocked = read(&block("blocked", "[which store?]"), ReplyFormat::Completion);
    assert_eq!(
        (blocked.outcome, blocked.notes.as_slice()),
        (Outcome::Blocked, ["which store?".to_owned()].as_slice())
    );
    refused(&block("blocked", "none"), ReplyFormat::Completion, "no blocking issue is named");
    refused(&block("complete | partial | blocked", "none"), ReplyFormat::Completion, "Status");
}

#[test]
fn s3_45_interactive_completions_name_the_next_command_and_the_word() {
    let block = |summary: &str, next: &str, say: &str| {
        format!(
            "> {summary}\n>\n> **Next**: {next}\n>\n> Say **'{say}'** to proceed, or provide corrections.\n"
        )
    };
    for (summary, next, say, outcome) in [
        (
            "Implementation complete. Created/modified 3 files.",
            "Run `/test` to write tests.",
            "continue",
            Outcome::Done,
        ),
        (
            "Tests complete. 9 test cases covering 4 scenarios.",
            "Run `/review` to review them.",
            "continue",
            Outcome::Done,
        ),
        (
            "API design complete. 4 resources, 12 endpoints defined.",
            "Run `/implement`, or `/design`.",
            "continue",
            Outcome::Done,
        ),
        (
            "Design specification complete. 8 components specified.",
            "Run `/implement`.",
            "continue",
            Outcome::Done,
        ),
        (
            "Review complete. Found 1 blocking, 0 important, 2 optional issues.",
            "Address them with `/implement`.",
            "fix",
            Outcome::Failed,
        ),
        (
            "Review complete. No blocking issues found.",
            "Ready to commit and create PR.",
            "commit",
            Outcome::Passed,
        ),
    ] {
        let reply = read(&block(summary, next, say), ReplyFormat::Completion);
        assert_eq!((reply.outcome, reply.summary.as_str()), (outcome, summary));
        assert_eq!(reply.notes, [format!("next: {next}")]);
        // Whoever is asked for any format never takes a review that found something for success.
        assert_eq!(
            parse_reply(block(summary, next, say).as_bytes(), None, &words()).unwrap().outcome,
            outcome
        );
    }
    let unfinished = "> Implementation complete.\n>\n> **Next**: Run `/test`.\n";
    assert!(parse_reply(unfinished.as_bytes(), None, &words()).is_err(), "prose is never success");
}

#[test]
fn s3_20_a_question_with_and_without_a_title_over_its_options() {
    let whole = "[Context]: Working on the importer, found a row without a date.\n\nOptions:\nA) Refuse it — plain\nB) Take today — quiet\n\nRecommendation: A because it is never wrong.\n\n**[Awaiting your decision]**\n";
    let short = "Rows without a date can be handled in two ways:\n\nA) Refuse it — plain\nB) Take today — quiet\n\nRecommendation: A because it is never wrong.\n\n**[Awaiting your decision]**\n";
    for (text, begins) in [(whole, "Working on the importer"), (short, "Rows without a date")] {
        let reply = read(text, ReplyFormat::Completion);
        assert_eq!(reply.outcome, Outcome::NeedsInput);
        let [question] = reply.questions.as_slice() else { panic!("{reply:?}") };
        assert!(question.question.starts_with(begins), "{question:?}");
        assert_eq!(question.options, ["Refuse it", "Take today"]);
        assert_eq!(question.recommendation.as_deref(), Some("A because it is never wrong."));
    }
    // An older question above is not mixed up with the last one.
    let twice = format!("{whole}\nLater:\n\n{short}");
    assert_eq!(read(&twice, ReplyFormat::Completion).questions[0].options.len(), 2);
    refused(
        "Which?\n\nA) One — only\n\nRecommendation: A because.\n\n**[Awaiting your decision]**\n",
        ReplyFormat::Completion,
        "two options",
    );
}

#[test]
fn s3_26_feedback_in_markdown_is_a_review() {
    let feedback = |must: &str, counts: &str, action: &str| {
        format!(
            "Looked at all of it.\n\n### 🔴 Must Fix (Blocking)\n{must}\n### 🟡 Should Fix (Important)\n- [ ] `file.py:87` — **Issue**: the retry never ends\n  **Fix**: count\n\n### 🟢 Consider (Optional)\n- [ ] `file.py:120` — **Suggestion**: a longer name\n\n### Summary\n{counts}\n{action}\n"
        )
    };
    let one =
        "- [ ] `file.py:42` — **Issue**: the caller is logged out too\n  **Fix**: leave its own id out\n";
    let reply = read(
        &feedback(
            one,
            "Review: 1 blocking | 1 important | 1 suggestions",
            "Action: Fix blocking and re-review",
        ),
        ReplyFormat::Review,
    );
    assert_eq!(reply.outcome, Outcome::Failed);
    let told: Vec<_> = reply
        .findings
        .iter()
        .map(|one| (one.severity, one.location.as_deref(), one.problem.as_str(), one.fix.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (
                Severity::High,
                Some("file.py:42"),
                "the caller is logged out too",
                Some("leave its own id out")
            ),
            (Severity::Medium, Some("file.py:87"), "the retry never ends", Some("count")),
            (Severity::Low, Some("file.py:120"), "a longer name", None),
        ]
    );
    let none =
        feedback("- none\n", "Review: 0 blocking | 1 important | 1 suggestions", "Action: Ready to proceed");
    assert_eq!(read(&none, ReplyFormat::Review).outcome, Outcome::Passed);
    // It demands work and lists nothing that must be done: never a pass.
    let demands = feedback(
        "- none\n",
        "Review: 0 blocking | 1 important | 1 suggestions",
        "Action: Fix blocking and re-review",
    );
    assert_eq!(read(&demands, ReplyFormat::Review).outcome, Outcome::Failed);
    // It counts what it does not list, or counts nothing.
    refused(
        &feedback("- none\n", "Review: 2 blocking | 1 important | 1 suggestions", "Action: Ready to proceed"),
        ReplyFormat::Review,
        "says 2 blocking, 0 stand above it",
    );
    refused(
        &feedback(one, "", "Action: Fix blocking and re-review"),
        ReplyFormat::Review,
        "is missing below the findings",
    );
    refused(
        &feedback(one, "Review: X blocking | Y important | Z suggestions", "Action: Ready to proceed"),
        ReplyFormat::Review,
        "does not say how many",
    );
}

#[test]
fn s3_35_a_handoff_alone_is_a_completion_and_beside_one_it_is_for_the_next_agent() {
    let handoff = |status: &str, issues: &str| {
        format!(
            r#"{{"handoff": {{"from_agent": "software_engineer_backend", "to_agent": "test_writer", "status": "{status}", "branch": "PROJ-1_x", "files_modified": ["src/a.go"], "decisions_made": [{{"question": "q", "decision": "d", "rationale": "r"}}], "blocking_issues": [{issues}], "context_keys": {{"jira_issue": "PROJ-1", "plan_path": "plan.md", "output_json": "se_go_output.json"}}}}}}"#
        )
    };
    let alone = read(&handoff("partial", ""), ReplyFormat::Completion);
    assert_eq!(
        (alone.outcome, alone.changed.as_slice()),
        (Outcome::Done, ["src/a.go".to_owned()].as_slice())
    );
    assert_eq!(
        parse_reply(handoff("blocked", "\"which?\"").as_bytes(), None, &words()).unwrap().outcome,
        Outcome::Blocked
    );
    refused(&handoff("finished", ""), ReplyFormat::Completion, "complete, partial, blocked");
    let block = "> Did it.\n>\n> **Output**: none\n> **Status**: complete\n> **Blocking issues**: none\n\n";
    let both = read(&format!("{block}```json\n{}\n```\n", handoff("complete", "")), ReplyFormat::Completion);
    assert_eq!((both.outcome, both.summary.as_str()), (Outcome::Done, "Did it."));
    assert!(both.disagreements.is_empty(), "{both:?}");
    let stricter = read(
        &format!("{block}```json\n{}\n```\n", handoff("blocked", "\"which?\"")),
        ReplyFormat::Completion,
    );
    assert_eq!(stricter.outcome, Outcome::Blocked);
}
