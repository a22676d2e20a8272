//! Replies of every dialect as agents print them, good and bad, and what is read from each.

use gatewright_core::{
    outcome::{Outcome, Reply, ReplyProblem},
    verdict::{Severity, Verdict, verdict_of},
};
use gatewright_workflow::reply::{Ladder, ReplyFormat, WordMap, judgement_in_file, parse_reply};

const BRIEF: &str =
    "STATUS: DONE\nFILE: plan.md\nSUMMARY: One sentence.\nNEXT_INPUT: plan.md\n---\n- a point\n";
const APPROVED: &str = r#"{"approved": true, "issues": [], "summary": "Fine."}"#;
const UNIVERSAL: &str = r#"{"status": "OK", "summary": "Built.", "artifacts": {"files_changed": ["src/a.rs"], "notes": ["n"]},
 "gates": {"meets_definition_of_done": true, "needs_review": true, "needs_tests": false, "security_concerns": []},
 "next": {"recommended_agent": "Reviewer", "recommended_task_id": "T-001", "reason": "built"}}"#;
const COMPLETION: &str = "> Built the service\n>\n> **Output**: `se_go_output.json` written to `docs/plans/`\n> **Status**: complete\n> **Blocking issues**: none\n";
const STREAM: &str = r#"{"stream": "backend", "status": "complete", "steps": [{"name": "build", "status": "passed"}],
 "git_sha": "abc1234", "files_modified": ["a.go"], "attempt": 1, "started_at": "2026-01-02T03:04:05Z",
 "completed_at": "2026-01-02T03:05:05Z", "build_passed": true}"#;

fn parse(output: &str, format: Option<ReplyFormat>) -> Result<Reply, ReplyProblem> {
    parse_reply(output.as_bytes(), format, &WordMap::default())
}

#[track_caller]
fn good(output: &str) -> Reply {
    parse(output, None).unwrap_or_else(|problem| panic!("{problem:?} in:\n{output}"))
}

#[track_caller]
fn violations(output: &str, format: Option<ReplyFormat>) -> Vec<String> {
    match parse(output, format) {
        Err(ReplyProblem::Malformed { violations }) => violations,
        other => panic!("expected malformed, found {other:?} in:\n{output}"),
    }
}

#[track_caller]
fn violated(output: &str, format: Option<ReplyFormat>, expected: &str) {
    let violations = violations(output, format);
    assert!(
        violations.iter().any(|violation| violation.contains(expected)),
        "{expected} not in {violations:?}"
    );
}

fn universal(status: &str, artifacts: &str, more: &str) -> String {
    format!(
        r#"{{"status": "{status}", "summary": "s", "artifacts": {artifacts}, "gates": {{}}, "next": {{}}{more}}}"#
    )
}

#[test]
fn s0_12_a_brief_has_its_fields_in_order() {
    let reply = good(BRIEF);
    assert_eq!(reply.outcome, Outcome::Done);
    assert_eq!(reply.word, "DONE");
    assert_eq!(reply.summary, "One sentence.");
    assert_eq!((reply.files, reply.next_input), (vec!["plan.md".to_owned()], vec!["plan.md".to_owned()]));
    assert_eq!(reply.notes, ["a point"]);
    // `---` may be missing when no bullets follow; FILE and NEXT_INPUT may be `none` or lists.
    let reply = good("STATUS: PASS\nFILE: none\nSUMMARY: s\nNEXT_INPUT: `a.md`, b.md");
    assert_eq!((reply.files.len(), reply.next_input), (0, vec!["a.md".to_owned(), "b.md".to_owned()]));

    let brief = Some(ReplyFormat::Brief);
    violated(
        "STATUS: DONE\nSUMMARY: s\nFILE: a\nNEXT_INPUT: a\n",
        brief,
        "expected `FILE:` on the line after STATUS",
    );
    violated("STATUS: DONE\nFILE: a\nSUMMARY: s\n---\n- x\n", brief, "expected `NEXT_INPUT:`");
    violated("STATUS: DONE\n", brief, "found the end");
    violated("STATUS: DONE\nFILE: a\nSUMMARY: one\ntwo\nNEXT_INPUT: a\n", brief, "found `two`");
    violated("STATUS: DONE\nFILE:\nSUMMARY:\nNEXT_INPUT: a\n", brief, "SUMMARY is empty");
    violated("STATUS: DONE\nFILE: a\nSUMMARY: s\nNEXT_INPUT: a\n- x\n", brief, "expected `---`");
}

#[test]
fn s0_11_a_brief_has_at_most_ten_lines() {
    let with = |bullets: usize| {
        format!("STATUS: DONE\nFILE: a\nSUMMARY: s\nNEXT_INPUT: a\n---\n{}", "- x\n".repeat(bullets))
    };
    assert_eq!(good(&with(5)).notes.len(), 5);
    violated(&with(6), None, "the brief has 11 lines, at most 10");
}

#[test]
fn s0_13_status_words_are_a_closed_set() {
    for (word, outcome) in [
        ("PASS", Outcome::Passed),
        ("PARTIAL", Outcome::Failed),
        ("FAIL", Outcome::Failed),
        ("DONE", Outcome::Done),
        ("ERROR", Outcome::Error),
        ("BLOCKED", Outcome::Blocked),
        ("pass", Outcome::Passed),
    ] {
        let reply = good(&format!("STATUS: {word}\nFILE: none\nSUMMARY: s\nNEXT_INPUT: none\n"));
        assert_eq!((reply.outcome, reply.word.as_str()), (outcome, word));
    }
    for word in
        ["PASS | PARTIAL | FAIL | DONE", "OK", "approved", "PASS (mostly)", "SUCCESS", "universal:fail", ""]
    {
        violated(&format!("STATUS: {word}\nFILE: none\nSUMMARY: s\nNEXT_INPUT: none\n"), None, "STATUS is");
    }
    let words: WordMap = serde_json::from_str(r#"{"outcomes": {"READY_FOR_REVIEW": "done"}}"#).unwrap();
    let output = b"STATUS: READY_FOR_REVIEW\nFILE: none\nSUMMARY: s\nNEXT_INPUT: none\n";
    assert_eq!(parse_reply(output, None, &words).unwrap().outcome, Outcome::Done);
}

#[test]
fn questions_and_findings_of_a_brief() {
    let reply = good(
        "STATUS: NEEDS_INPUT\nFILE: none\nSUMMARY: s\nNEXT_INPUT: none\n---\n- Q: Which database?\n- Q: Which port?\n",
    );
    assert_eq!(reply.outcome, Outcome::NeedsInput);
    assert_eq!(
        reply.questions.iter().map(|q| q.question.as_str()).collect::<Vec<_>>(),
        ["Which database?", "Which port?"]
    );
    let reply = good(
        "STATUS: FAIL\nFILE: r.md\nSUMMARY: s\nNEXT_INPUT: r.md\n---\n- BLOCKING: no test (src/a.rs:4)\n- ROUTE: functional\n- [medium] slow loop ROUTE: structural\n- NON-BLOCKING: naming\n- Blocking: 1\n",
    );
    let found: Vec<_> = reply
        .findings
        .iter()
        .map(|f| (f.severity, f.problem.as_str(), f.location.as_deref(), f.route.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            (Severity::High, "no test", Some("src/a.rs:4"), Some("functional")),
            (Severity::Medium, "slow loop", None, Some("structural")),
            (Severity::Low, "naming", None, None),
        ]
    );
    assert_eq!(reply.notes, ["Blocking: 1"]);
    let counts = good(
        "STATUS: PASS\nFILE: r.md\nSUMMARY: s\nNEXT_INPUT: r.md\n---\n- BLOCKING: 0\n- BLOCKING: none\n- [x] done\n",
    );
    assert_eq!((counts.findings.len(), counts.notes.len()), (0, 3));
}

#[test]
fn wrapping_is_forgiven() {
    let fenced = format!("All done.\n\n```text\n{BRIEF}```\n\n");
    let bold = "**STATUS:** DONE\r\n**FILE:** `plan.md`\r\n**SUMMARY:** One sentence.\r\n**NEXT_INPUT:** plan.md\r\n\r\n---\r\n\r\n- a point\r\n";
    let coloured = format!("\u{1b}[32m{BRIEF}\u{1b}[0m");
    let surrounded = format!("I wrote it.\n\n{BRIEF}\nHope this helps!\n");
    for output in [&fenced, bold, &coloured, &surrounded] {
        let reply = good(output);
        assert_eq!(
            (reply.outcome, reply.summary.as_str(), reply.files.as_slice(), reply.notes.as_slice()),
            (
                Outcome::Done,
                "One sentence.",
                ["plan.md".to_owned()].as_slice(),
                ["a point".to_owned()].as_slice()
            ),
            "{output}"
        );
    }
    for output in [
        format!("```json\n{APPROVED}\n```"),
        format!("Here is my review:\n{APPROVED}\nThanks."),
        format!("Verdict: {APPROVED}\r\n"),
        format!("{COMPLETION}\n{APPROVED}"),
    ] {
        assert_eq!(good(&output).outcome, Outcome::Passed, "{output}");
    }
    assert_eq!(good(&format!("```markdown\n{COMPLETION}```")).outcome, Outcome::Done);
    assert_eq!(good(&COMPLETION.replace("> ", "").replace(">\n", "\n")).outcome, Outcome::Done);
}

#[test]
fn j_03_no_status_is_no_outcome() {
    for output in [
        "",
        "   \n\n",
        "Everything works, all tests pass, status is good.",
        "FILE: plan.md\nSUMMARY: s\nNEXT_INPUT: plan.md\n---\n- x\n",
        "Status: PASS\n",
        "fn main() { println!(\"{}\", 1) }",
        "{\"name\": \"x\"} is what the server answered",
        "> a quotation\n> of somebody\n",
    ] {
        assert_eq!(parse(output, None), Err(ReplyProblem::NoOutcome), "{output}");
    }
}

#[test]
fn j_04_the_last_well_formed_block_counts() {
    let second = BRIEF.replace("DONE", "ERROR");
    assert_eq!(good(&format!("{BRIEF}\n\n{second}")).outcome, Outcome::Error);
    assert_eq!(good(&format!("{second}\n\n{BRIEF}")).outcome, Outcome::Done);
    assert_eq!(good(&format!("{APPROVED}\n{BRIEF}")).outcome, Outcome::Done);
    assert_eq!(good(&format!("{BRIEF}\n{APPROVED}")).outcome, Outcome::Passed);
    // The format of the step decides which blocks are looked at.
    let mixed = format!("{BRIEF}\n{APPROVED}");
    assert_eq!(parse(&mixed, Some(ReplyFormat::Brief)).unwrap().outcome, Outcome::Done);
    // A later attempt that is broken does not count, but it is told.
    let reply = good(&format!("{BRIEF}\nSTATUS: FAIL\nFILE: x\n"));
    assert_eq!(reply.outcome, Outcome::Done);
    assert!(reply.disagreements[0].contains("line 8"), "{:?}", reply.disagreements);
}

#[test]
fn j_04_a_quotation_is_not_the_reply() {
    let quoted = format!("# Report\n\nThe agent said:\n```\n{BRIEF}```\n\nThat is all I know.\n");
    assert_eq!(parse(&quoted, None), Err(ReplyProblem::NoOutcome));
    let failed = BRIEF.replace("DONE", "FAIL");
    assert_eq!(good(&format!("{failed}\nFormat:\n~~~\n{BRIEF}~~~\nbye\n")).outcome, Outcome::Failed);
    let indented = format!("    {}", BRIEF.replace('\n', "\n    "));
    assert_eq!(parse(&format!("Like this:\n\n{indented}\nbye"), None), Err(ReplyProblem::NoOutcome));
    let sentence = "I will end with STATUS: PASS when done.\nSTATUS: PASS would be wrong here.\n";
    assert_eq!(parse(sentence, None), Err(ReplyProblem::NoOutcome));
    let json =
        format!("```json\n{APPROVED}\n```\nis what I would say if the tests passed, but they do not.\n");
    assert_eq!(parse(&json, None), Err(ReplyProblem::NoOutcome));
    let inline = format!("I would answer `{APPROVED}` if the tests passed.\n");
    assert_eq!(parse(&inline, None), Err(ReplyProblem::NoOutcome));
    // A part of a broken reply is not the reply either.
    let nested = format!("{{\"approved\": false, \"issues\": [], \"previous\": {APPROVED}, }}");
    violated(&nested, None, "not JSON");
    let cut = format!("{{\"approved\": false, \"previous\": {APPROVED}");
    assert_eq!(parse(&cut, None), Err(ReplyProblem::NoOutcome));
}

#[test]
fn j_05_text_is_stored_intact() {
    let reply =
        good("STATUS: DONE\nFILE: none\nSUMMARY: say \"a: b\" and 'c' \\n `d` — ü\nNEXT_INPUT: none\n");
    assert_eq!(reply.summary, "say \"a: b\" and 'c' \\n `d` — ü");
    let reply = good(r#"{"approved": true, "issues": [], "summary": "line one\nline \"two\"\t{\u00fc}"}"#);
    assert_eq!(reply.summary, "line one\nline \"two\"\t{ü}");
    let output = b"noise \xff\xfe\nSTATUS: DONE\nFILE: none\nSUMMARY: caf\xe9 is open\nNEXT_INPUT: none\n";
    let reply = parse_reply(output, None, &WordMap::default()).unwrap();
    assert_eq!(reply.summary, "caf\u{fffd} is open");
}

#[test]
fn j_06_severities_nobody_knows_are_the_highest() {
    let output = r#"{"approved": true, "summary": "s", "issues": [
        {"severity": "CRITICAL", "description": "a"}, {"severity": "critical", "description": "b"},
        {"severity": "catastrophic", "description": "c"}, {"description": "d"}, {"severity": 7, "description": "e"},
        {"severity": "note", "description": "f"}]}"#;
    let reply = good(output);
    let severities: Vec<_> = reply.findings.iter().map(|f| (f.severity, f.severity_word.as_str())).collect();
    assert_eq!(
        severities,
        [
            (Severity::Critical, "CRITICAL"),
            (Severity::Critical, "critical"),
            (Severity::Critical, "catastrophic"),
            (Severity::Critical, ""),
            (Severity::Critical, "7"),
            (Severity::Note, "note"),
        ]
    );
    assert_eq!(verdict_of(&reply, Severity::Critical, false), Verdict::Revise);
}

#[test]
fn j_07_what_is_not_a_judgement_is_malformed() {
    let review = Some(ReplyFormat::Review);
    for format in [None, review] {
        violated("{}", format, "neither `approved`");
        violated(r#"{"aproved": true, "issues": [], "summary": "s"}"#, format, "did you mean `approved`?");
        violated(
            r#"{"approved": true, "isues": [], "summary": "s"}"#,
            format,
            "/issues: the required list is missing",
        );
        violated(r#"{"approved": true, "issues": [], "sumary": "s"}"#, format, "did you mean `summary`?");
        violated(r#"{"approved": "true", "issues": []}"#, format, "/approved: expected true or false");
        violated(
            r#"{"approved": null, "issues": []}"#,
            format,
            "/approved: expected true or false, found null",
        );
        violated(r#"{"approved": true, "issues": ["x"]}"#, format, "/issues/0: expected an object");
        violated(r#"{"approved": true, "issues": [{"severity": "note"}]}"#, format, "/issues/0/description");
        violated(r#"{"status": "lgtm", "issues": []}"#, format, "`lgtm` is not one of");
        violated(r#"{"approved": false, "approved": true, "issues": []}"#, format, "appears twice");
        violated(r#"{"approved": true, "issues": [],}"#, format, "not JSON");
    }
    // All mistakes at once.
    assert_eq!(violations(r#"{"approved": 1, "issues": [{}, 2], "summary": 3}"#, review).len(), 4);
    // Demands without issues are well-formed and never pass.
    for output in [r#"{"status": "needs_revision", "issues": []}"#, r#"{"status": "blocked", "issues": []}"#]
    {
        assert!(verdict_of(&good(output), Severity::Critical, false) >= Verdict::Revise, "{output}");
    }
}

#[test]
fn s2_17_the_chain_reviewer() {
    let output = r#"{"approved": false, "issues": [
        {"severity": "blocker", "description": "no test", "location": "src/a.rs:4"},
        {"severity": "warning", "description": "vague", "location": null},
        {"severity": "note", "description": "typo"}], "summary": "One sentence."}"#;
    let reply = good(output);
    assert_eq!((reply.outcome, reply.word.as_str()), (Outcome::Failed, "not approved"));
    assert_eq!(reply.findings[0].location.as_deref(), Some("src/a.rs:4"));
    assert_eq!(reply.findings[1].location, None);
    let severities: Vec<_> = reply.findings.iter().map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Critical, Severity::Medium, Severity::Note]);
    let words = WordMap::default().with_ladder(Ladder::S2);
    let reply = parse_reply(output.as_bytes(), Some(ReplyFormat::Review), &words).unwrap();
    assert_eq!(reply.findings[0].severity, Severity::High);
    assert_eq!(good(r#"{"approved": true, "issues": []}"#).outcome, Outcome::Passed);
    // The final reviewer adds fields, and we have some of our own.
    let reply = good(
        r#"{"approved": false, "back_to": "plan", "reason": "complexity", "issues": [{"severity": "blocker",
        "category": "missing", "requirement": "R3", "description": "not built", "route": "functional", "out_of_scope": true}],
        "questions": [{"question": "Keep it?", "options": ["yes", "no"], "recommendation": "no", "security": true}]}"#,
    );
    let finding = &reply.findings[0];
    assert_eq!((finding.category.as_deref(), finding.problem.as_str()), (Some("missing"), "R3: not built"));
    assert!(finding.out_of_scope && finding.route.as_deref() == Some("functional"));
    assert_eq!(reply.back_to.unwrap().as_str(), "plan");
    assert_eq!(reply.reason.as_deref(), Some("complexity"));
    assert!(reply.questions[0].security && reply.questions[0].options == ["yes", "no"]);
}

#[test]
fn s4_19_review_statuses() {
    for (status, outcome) in
        [("approved", Outcome::Passed), ("needs_revision", Outcome::Failed), ("blocked", Outcome::Blocked)]
    {
        let output = format!(
            r#"{{"status": "{status}", "issues": [{{"severity": "LOW", "location": "a:1", "issue": "i", "suggestion": "f"}}],
             "summary": "s", "filesReviewed": ["a"], "metrics": {{"tasksCompleted": 1}}, "overallQuality": "high"}}"#
        );
        let reply = good(&output);
        assert_eq!((reply.outcome, reply.word.as_str()), (outcome, status));
        assert_eq!((reply.findings[0].problem.as_str(), reply.findings[0].fix.as_deref()), ("i", Some("f")));
        assert_eq!(reply.findings[0].severity, Severity::Low);
    }
    violated(r#"{"status": "OK", "issues": []}"#, Some(ReplyFormat::Review), "/status: `OK` is not one of");
    let blocked = good(r#"{"status": "blocked", "issues": []}"#);
    assert_eq!(verdict_of(&blocked, Severity::High, true), Verdict::HardStop);
}

#[test]
fn s4_20_not_ready_to_commit_is_no_approval() {
    let reply = good(r#"{"status": "approved", "issues": [], "summary": "s", "readyForCommit": false}"#);
    assert_eq!(reply.outcome, Outcome::Failed);
    assert_eq!(reply.disagreements.len(), 1);
}

#[test]
fn s1_66_the_universal_output() {
    let reply = good(UNIVERSAL);
    assert_eq!((reply.outcome, reply.word.as_str(), reply.summary.as_str()), (Outcome::Done, "OK", "Built."));
    assert_eq!((reply.files, reply.notes), (vec!["src/a.rs".to_owned()], vec!["n".to_owned()]));
    for (status, outcome) in [
        ("OK", Outcome::Done),
        ("BLOCKED", Outcome::Blocked),
        ("NEEDS_INFO", Outcome::NeedsInput),
        ("NEEDS_DECISION", Outcome::NeedsInput),
        ("FAIL", Outcome::Error),
    ] {
        let reply = good(&universal(status, "{}", ""));
        assert_eq!(reply.outcome, outcome, "{status}");
        assert_eq!(reply.questions.len(), usize::from(outcome == Outcome::NeedsInput), "{status}");
        assert_eq!(reply.questions.iter().any(|q| q.security), status == "NEEDS_DECISION");
    }
    let comments = r#"{"review_comments": [{"severity": "major", "category": "Logic", "file": "a.rs", "line": 3, "message": "m", "suggested_fix": "f"}],
        "findings": [{"severity": "high", "category": "XSS", "file": "b.rs", "description": "d", "recommended_fix": "r"}]}"#;
    let reply = good(&universal("BLOCKED", comments, ""));
    let found: Vec<_> = reply
        .findings
        .iter()
        .map(|f| (f.severity, f.location.as_deref(), f.problem.as_str(), f.fix.as_deref()))
        .collect();
    assert_eq!(
        found,
        [(Severity::High, Some("a.rs:3"), "m", Some("f")), (Severity::High, Some("b.rs"), "d", Some("r"))]
    );
    let words: WordMap = serde_json::from_str(r#"{"outcomes": {"BLOCKED": "failed"}}"#).unwrap();
    let output = universal("BLOCKED", "{}", "");
    assert_eq!(parse_reply(output.as_bytes(), None, &words).unwrap().outcome, Outcome::Failed);
}

#[test]
fn s1_66_violations_name_their_path() {
    let format = Some(ReplyFormat::Universal);
    let output = r#"{"status": "GREAT", "sumary": "s", "artifacts": [], "gates": {"needs_review": "no", "done": true}, "next": {"agent": "x"}}"#;
    let violations = violations(output, format);
    for expected in [
        "/status:",
        "/sumary: unknown",
        "/summary:",
        "/artifacts:",
        "/gates/needs_review:",
        "/gates/done:",
        "/next/agent:",
    ] {
        assert!(violations.iter().any(|v| v.starts_with(expected)), "{expected} not in {violations:?}");
    }
    violated(&universal("OK", r#"{"review_comment": []}"#, ""), None, "did you mean `review_comments`?");
    violated(&universal("OK", "{}", r#", "verdict": "PASS""#), None, "/verdict: unknown field");
    violated(r#"{"status": "OK", "summary": "s"}"#, None, "/artifacts: the required object is missing");
    violated("All good, nothing to report.\n{}", format, "/status: the required text is missing");
    assert_eq!(parse("OK", format), Err(ReplyProblem::NoOutcome));
}

#[test]
fn s3_16_the_completion_block() {
    let reply = good(COMPLETION);
    assert_eq!((reply.outcome, reply.summary.as_str()), (Outcome::Done, "Built the service"));
    assert_eq!(reply.files, ["docs/plans/se_go_output.json"]);
    for (status, outcome) in [("partial", Outcome::Failed), ("failed", Outcome::Failed)] {
        assert_eq!(good(&COMPLETION.replace("complete", status)).outcome, outcome);
    }
    let blocked = COMPLETION.replace("complete", "blocked").replace(": none", ": need the API key");
    let reply = good(&blocked);
    assert_eq!((reply.outcome, reply.notes), (Outcome::Blocked, vec!["need the API key".to_owned()]));
    violated(&COMPLETION.replace("complete", "blocked"), None, "no blocking issue is named");
    violated(&COMPLETION.replace("complete", "complete | partial | blocked"), None, "**Status** is");
    violated(
        &COMPLETION.replace("> **Blocking issues**: none\n", ""),
        None,
        "`**Blocking issues**:` is missing",
    );
    let contradiction = good(&COMPLETION.replace(": none", ":\n> - need a key"));
    assert_eq!((contradiction.outcome, contradiction.disagreements.len()), (Outcome::Blocked, 1));
}

#[test]
fn s3_16_the_stream_completion() {
    let reply = good(STREAM);
    assert_eq!((reply.outcome, reply.files), (Outcome::Done, vec!["a.go".to_owned()]));
    violated(&STREAM.replace("\"passed\"", "\"failed\""), None, "/steps: status is complete but 1");
    violated(&STREAM.replace("\"build_passed\": true", "\"build_passed\": false"), None, "/build_passed");
    violated(&STREAM.replace("\"status\": \"complete\"", "\"status\": \"failed\""), None, "no step failed");
    violated(
        &STREAM.replace("\"git_sha\": \"abc1234\",", ""),
        None,
        "/git_sha: the required text is missing",
    );
    violated(&STREAM.replace("\"attempt\": 1", "\"attempt\": 0"), None, "/attempt");
    let words: WordMap = serde_json::from_str(r#"{"outcomes": {"partial": "done"}}"#).unwrap();
    let partial = STREAM.replace("\"status\": \"complete\"", "\"status\": \"partial\"");
    assert_eq!(parse_reply(partial.as_bytes(), None, &words).unwrap().outcome, Outcome::Done);
}

#[test]
fn j_52_prose_against_an_approval_holds() {
    let reply = good(&format!("The change is not approved: tests are missing.\n\n{APPROVED}"));
    assert_eq!(reply.outcome, Outcome::Failed);
    assert_eq!(reply.disagreements.len(), 1, "{:?}", reply.disagreements);
    for harmless in
        ["It was not approved in round 1.", "If a test fails it is not approved.", "All approved."]
    {
        let reply = good(&format!("{harmless}\n\n{APPROVED}"));
        assert_eq!((reply.outcome, reply.disagreements.len()), (Outcome::Passed, 0), "{harmless}");
    }
    let both = good(r#"{"approved": true, "status": "needs_revision", "issues": []}"#);
    assert_eq!((both.outcome, both.disagreements.len()), (Outcome::Failed, 1));
    let summary = UNIVERSAL.replace("Built.", "NEEDS FIXES: two blockers");
    let reply = good(&summary);
    assert_eq!((reply.outcome, reply.disagreements.len()), (Outcome::Failed, 1));
}

#[test]
fn j_52_numbers_and_gates_against_an_ok_hold() {
    let not_done = UNIVERSAL.replace("done\": true", "done\": false");
    assert_ne!(not_done, UNIVERSAL);
    let counted = |results: &str| {
        UNIVERSAL.replace("\"notes\": [\"n\"]", &format!("\"notes\": [], \"test_results\": {results}"))
    };
    for (reply, word) in [
        (not_done.clone(), "meets_definition_of_done"),
        (counted(r#"{"passed": 4, "failed": 3, "skipped": 0, "output": ""}"#), "3 failed"),
        (counted(r#"{"passed": 0, "failed": 0, "skipped": 7, "output": ""}"#), "no test that ran"),
    ] {
        let reply = good(&reply);
        assert_eq!((reply.outcome, reply.disagreements.len()), (Outcome::Failed, 1), "{word}");
        assert!(reply.disagreements[0].contains(word), "{:?}", reply.disagreements);
    }
    let green = good(&counted(r#"{"passed": 4, "failed": 0, "skipped": 0, "output": ""}"#));
    assert_eq!((green.outcome, green.disagreements.len()), (Outcome::Done, 0));
    // Who plans says truly that nothing is done yet.
    let planner = good(&not_done.replace("files_changed", "files_to_create_or_update"));
    assert_eq!((planner.outcome, planner.disagreements.len()), (Outcome::Done, 0));
}

#[test]
fn a_file_is_a_judgement_only_in_the_format_that_is_asked_for() {
    let words = WordMap::default();
    let read = |text: &str, format| judgement_in_file(text.as_bytes(), format, &words);
    let review = r#"{"status": "needs_revision", "issues": []}"#;
    let said = read(review, Some(ReplyFormat::Review)).unwrap().unwrap();
    assert_eq!(said.outcome, Outcome::Failed);
    assert!(read(review, Some(ReplyFormat::Universal)).is_none());
    assert!(read(r#"{"coverage": 80}"#, Some(ReplyFormat::Review)).is_none());
    assert!(read("not JSON", Some(ReplyFormat::Review)).is_none());
    // What means to judge and cannot be read may have meant something stricter.
    let broken = read(r#"{"status": "needs_revison", "issues": []}"#, Some(ReplyFormat::Review)).unwrap();
    assert!(matches!(broken, Err(ReplyProblem::Malformed { .. })), "{broken:?}");
}

#[test]
fn only_the_tail_of_a_huge_output_is_read() {
    let mut output = "x".repeat(3 * 1024 * 1024);
    output.push('\n');
    output.push_str(BRIEF);
    assert_eq!(good(&output).outcome, Outcome::Done);
}

#[test]
fn a_brief_refers_the_work_back() {
    let brief = "STATUS: FAIL\nFILE: none\nSUMMARY: The plan contradicts itself.\nNEXT_INPUT: none\n---\n- BACK TO: `plan`\n- the rest is fine\n";
    let reply = good(brief);
    assert_eq!(reply.back_to, Some("plan".into()));
    assert_eq!(reply.notes, ["the rest is fine"]);
}
