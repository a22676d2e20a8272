//! What agents say of themselves.

use crate::support::Scratch;

const ONE: &str = "steps: [ { id: code, role: coder }, { id: after, role: coder } ]";
const REVIEWED: &str = "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, block_at: critical, rounds_max: 1, retry: { attempts_max: 1 } }
  - { id: after, role: coder }
";

#[test]
fn j_03_output_without_a_status_is_no_outcome() {
    let scratch = Scratch::with(ONE, "code) echo 'All done, everything works and all tests pass.';;");
    let run = scratch.run(11);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("no_outcome"), "{message}");
    assert_eq!(scratch.called(), ["code", "code"], "`after` never starts");
}

#[test]
fn j_04_a_status_that_is_only_quoted_does_not_count() {
    let scratch = Scratch::with(
        ONE,
        "code) echo 'I would end like this:'; echo '```'; brief DONE; echo '```'; echo 'But I am not through.';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "after")["attempts"], 0);
}

#[test]
fn j_04_of_two_status_blocks_the_last_counts() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } }, { id: after, role: coder } ]",
        "code) brief DONE none 'First word.'; echo; echo 'Then I looked again.'; echo; brief ERROR none 'Last word.';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["summary"], "Last word.");
    assert_eq!(scratch.step(&run, "after")["attempts"], 0);
    scratch.agent(
        "code) brief ERROR none 'First word.'; echo; echo 'Found it.'; echo; brief DONE none 'Last word.';;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.step(&run, "code")["summary"], "Last word.");
}

#[test]
fn j_05_quotes_and_newlines_and_strange_bytes_are_stored_intact() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer }
",
        r#"
code) printf 'STATUS: DONE\nFILE: none\nSUMMARY: He said "it'"'"'s {{ done }}" \\ & $HOME – ünï \377.\nNEXT_INPUT: none\n';;
review) printf '{"approved": true, "issues": [], "summary": "line \\"one\\"\\nline two: {}"}\n';;
"#,
    );
    let request = "Say \"hi\",\nit's {{ request }} \\ $HOME & ünï";
    let run = scratch.gatewright(&["run", "w", request]).exits(0).id();
    assert_eq!(scratch.status(&run)["request"], request);
    assert_eq!(
        scratch.step(&run, "code")["summary"],
        "He said \"it's {{ done }}\" \\ & $HOME – ünï \u{fffd}."
    );
    assert_eq!(scratch.step(&run, "review")["summary"], "line \"one\"\nline two: {}");
    assert!(scratch.prompt("code", 1).contains(request), "the agent is told the very words");
    let events = scratch.events(&run);
    assert_eq!(events[0]["request"], request, "and the journal is JSON lines still");
}

#[test]
fn j_06_any_unknown_severity_counts_as_the_highest() {
    let scratch = Scratch::with(REVIEWED, "");
    for severity in ["CRITICAL", "critical", "Blocker", "catastrophic", ""] {
        scratch.agent(&format!("review) printf '{{\"approved\": true, \"issues\": [{{\"severity\": \"{severity}\", \"description\": \"bad\"}}], \"summary\": \"s\"}}\\n';;"));
        let run = scratch.run(11);
        assert_eq!(scratch.step(&run, "review")["verdict"], "revise", "{severity:?}");
        assert_eq!(scratch.step(&run, "after")["attempts"], 0, "{severity:?}");
    }
}

#[test]
fn j_06_a_known_severity_below_the_bar_does_not_block() {
    let scratch = Scratch::with(
        REVIEWED,
        "review) printf '{\"approved\": true, \"issues\": [{\"severity\": \"Medium\", \"description\": \"so so\"}], \"summary\": \"s\"}\\n';;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.step_state(&run, "review"), "passed_with_notes");
}

#[test]
fn j_07_a_review_that_demands_work_or_says_nothing_is_no_pass() {
    let replies = [
        r#"{"status": "needs_revision", "issues": [], "summary": "s"}"#,
        r#"{"status": "blocked", "issues": [], "summary": "s"}"#,
        r#"{"approved": false, "issues": [], "summary": "s"}"#,
        "{}",
        r#"{"aproved": true, "issues": [], "summary": "s"}"#,
        r#"{"approved": true, "isues": [{"severity": "blocker", "description": "d"}], "summary": "s"}"#,
        r#"{"approved": "yes", "issues": [], "summary": "s"}"#,
        r#"{"approved": true, "summary": "s"}"#,
    ];
    let scratch = Scratch::with(REVIEWED, "");
    for reply in replies {
        scratch.agent(&format!("review) cat <<'END'\n{reply}\nEND\n;;"));
        let run = scratch.run(11);
        assert_eq!(scratch.step_state(&run, "review"), "blocked", "{reply}");
        assert_eq!(scratch.step(&run, "after")["attempts"], 0, "{reply}");
    }
}

#[test]
fn j_08_approved_with_a_blocking_finding_is_no_pass() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, block_at: high }
",
        r#"review) if [ $GATEWRIGHT_ROUND = 1 ]; then printf '{"approved": true, "issues": [{"severity": "blocker", "description": "loses data"}], "summary": "fine"}\n'; else approve; fi;;"#,
    );
    let run = scratch.run(0);
    assert_eq!(scratch.called(), ["code", "review", "code", "review"], "it was mended and looked at again");
    assert_eq!(scratch.step(&run, "review")["rounds"], 2);
    assert!(scratch.prompt("code", 2).contains("loses data"));
}

#[test]
fn j_52_a_report_that_is_stricter_than_its_brief_holds() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, writes: { review.md: any }, rounds_max: 1 }
  - { id: after, role: coder }
",
        "review) printf '# Code Review Report\\n\\n**Status:** FAIL\\n\\n## Summary\\n- bad\\n' > $GATEWRIGHT_OUT/review.md; brief PASS review.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "review")["verdict"], "revise");
    let ended = scratch.events_of(&run, "step.attempt.ended");
    let disagreements = &ended[1]["report"]["reply"]["disagreements"];
    assert!(
        disagreements[0].as_str().is_some_and(|text| text.contains("PASS") && text.contains("FAIL")),
        "recorded: {ended:#?}"
    );
}

#[test]
fn j_52_prose_that_takes_an_approval_back_holds() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, rounds_max: 1 }
",
        "review) echo 'This change is not approved.'; approve;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "review")["verdict"], "revise");
    let ended = scratch.events_of(&run, "step.attempt.ended");
    assert!(ended[1]["report"]["reply"]["disagreements"][0].is_string(), "recorded");
}
