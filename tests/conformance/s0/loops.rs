//! Reviews that object: fix reports, second looks, and what each of them reads.

use super::chain::Chain;

/// Performance is content in its third review.
const THREE: &str = "performance-security/performance) if [ $GATEWRIGHT_ROUND -lt 3 ]; then objects 'a query per row'; else standard; fi;;";

#[test]
fn s0_37_who_looks_again_reads_findings_repairs_and_the_present_state() {
    let chain = Chain::runs(&[], THREE, 0);
    let second = chain.inputs("performance-security/performance", 2);
    for file in ["performance.md", "loop-iterations/performance-fix-1.md", "implementation.md"] {
        assert!(second.contains(&file.to_owned()), "{file}: {second:?}");
    }
    let third = chain.inputs("performance-security/performance", 3);
    for file in [
        "performance.md",
        "loop-iterations/performance-review-2.md",
        "loop-iterations/performance-fix-2.md",
        "implementation.md",
    ] {
        assert!(third.contains(&file.to_owned()), "{file}: {third:?}");
    }
    for round in 2..=3 {
        let report = chain.file(&format!("loop-iterations/performance-review-{round}.md"));
        assert!(report.contains(&format!("**Iteration:** Review {round}")), "{report}");
    }
}

#[test]
fn s0_38_a_fix_report_says_which_fix_it_is_and_accounts_for_every_issue() {
    let broken = [
        ("fix", "**Iteration:** Fix NUMBER", "**Iteration:** again", "(one of Fix 1)"),
        ("fix", "**Iteration:** Fix NUMBER", "**Iteration:** Fix 7", "(one of Fix 1)"),
        (
            "fix",
            "**Iteration:** Fix NUMBER\n",
            "",
            "tests-review-fix-1.md, header: expected a header line `**Iteration:**",
        ),
        ("fix", "## Issues Addressed", "## Done", "a section `## Issues Addressed`"),
        ("fix", "## Issues NOT Addressed", "## Left", "a section `## Issues NOT Addressed`"),
        ("fix", "- **Original Finding:**", "- Was:", "`- Original Finding: …` under the item"),
        ("fix", "- **Fix Applied:**", "- Is:", "`- Fix Applied: …` under the item"),
        ("fix", "- **Files Modified:**", "- Where:", "`- Files Modified: …` under the item"),
        ("fix", "- **Test Verification:**", "- Proof:", "`- Test Verification: …` under the item"),
    ];
    let once = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;";
    let chain = Chain::refuses(&broken, once);
    assert!(chain.file("loop-iterations/tests-review-fix-1.md").contains("**Iteration:** Fix 1"));
}

#[test]
fn s0_39_s0_60_a_second_review_says_what_became_of_every_issue() {
    let table = "the columns Issue, Original Status, Current Status, Notes";
    let broken = [
        ("re-review", "**Iteration:** Review NUMBER", "**Iteration:** Review 9", "(one of Review 2)"),
        ("re-review", "## Previous Issues Status", "## Before", "a section `## Previous Issues Status`"),
        ("re-review", "| Current Status |", "| Now |", table),
        ("re-review", "| Notes |", "| Words |", table),
        (
            "re-review",
            "| BLOCKING |",
            "| BAD |",
            "one of BLOCKING, NON-BLOCKING in the column Original Status",
        ),
        (
            "re-review",
            "| ✅ RESOLVED |",
            "| fine |",
            "one of RESOLVED, PARTIAL, UNRESOLVED, DEFERRED in the column Current Status",
        ),
        ("re-review", "## New Issues Found", "## New", "a section `## New Issues Found`"),
        ("re-review", "## Verdict", "## Word", "a section `## Verdict`"),
        ("re-review", "## Handoff Notes", "## Later", "a section `## Handoff Notes`"),
    ];
    let once = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;";
    Chain::refuses_and_ends(&broken, &format!("{once}\nimplementation) brief ERROR;;"), 11);
}

/// What the source has the orchestrator return when a loop is at its limit.
#[test]
fn s0_41_an_exhausted_loop_is_told_in_a_brief_of_its_own_and_left_to_a_person() {
    let cases = "acceptance) objects 'no 401'; printf -- '- BLOCKING: no log (src/session.txt:2)\\n';;";
    let chain = Chain::runs(&[], cases, 10);
    let last = format!(".workflow/{}/loop-iterations/acceptance-review-5.md", chain.run);
    let brief = chain.file("loop-iterations/acceptance-exhausted.md");
    let lines: Vec<&str> = brief.lines().collect();
    assert_eq!(lines[0], "STATUS: PARTIAL");
    assert_eq!(lines[1], format!("FILE: {last}"), "{brief}");
    assert_eq!(lines[2], "SUMMARY: Max iterations reached with 3 BLOCKING issues remaining");
    assert_eq!(lines[3], format!("NEXT_INPUT: {last}"));
    assert_eq!(lines[4..6], ["---", "- Loop exhausted after 5 iterations"]);
    // What the last report still has as not resolved counts too.
    for issue in ["- Remaining BLOCKING: ", "no 401", "no log"] {
        assert!(lines[6].contains(issue), "{issue}: {brief}");
    }
    assert!(lines[7].starts_with("- User decision required: accept or abort"), "{brief}");
    assert_eq!(chain.scratch.decision(&chain.run, "D-1")["answers"], serde_json::json!(["accept", "abort"]));
    assert_eq!(chain.scratch.count("performance-security/security"), 0);
    chain.scratch.gatewright(&["answer", &chain.run, "D-1", "accept"]).exits(0);
    assert!(chain.file("loop-iterations/acceptance-exhausted.md").contains("- User decision: accept"));
    assert!(chain.file("summary.md").contains("no 401"), "what was accepted is told at the end");
}

#[test]
fn while_it_judges_automation_qa_changes_no_test() {
    let meddles = "stabilization) mkdir -p tests; echo x > tests/late.txt; standard;;";
    let chain = Chain::runs(&[], meddles, 11);
    let failure = chain.scratch.step(&chain.run, "stabilization")["failure"].to_string();
    assert!(failure.contains("tests/late.txt"), "{failure}");
    let repairs = "stabilization) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;
        stabilization-tests-fix) mkdir -p tests; echo x > tests/late.txt; standard;;";
    Chain::runs(&[], repairs, 0);
}

#[test]
fn a_complete_review_looks_at_the_difference_to_its_base() {
    let chain = Chain::project("");
    chain.write("src/session.txt", "new\n");
    chain.git(&["checkout", "-q", "-b", "work"]);
    chain.git(&["add", "-A"]);
    chain.git(&["commit", "-q", "-m", "more"]);
    let base = chain.git_says(&["rev-parse", "HEAD~1"]);
    let words = ["run", "report-chain/complete-review", "See"];
    let nothing = chain.gatewright(&words).exits(11).id();
    assert_eq!(chain.step_state(&nothing, "changes"), "blocked", "nothing that is not committed");
    let run = chain.gatewright(&[&words[..], &["--set", &format!("base={base}")]].concat()).exits(0).id();
    assert!(chain.prompt("review/code-review", 1).contains(&format!("git diff {base}")));
    assert!(chain.published(&run, "summary.md").is_some());
}

#[test]
fn j_10_when_one_of_the_pair_objects_both_look_again() {
    let once = "performance-security/security) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'a key leaks'; else standard; fi;;";
    let chain = Chain::runs(&[], once, 0);
    assert_eq!(chain.scratch.count("performance-security/security"), 2);
    assert_eq!(
        chain.scratch.count("performance-security/performance"),
        2,
        "what was repaired may be slow now"
    );
    assert_eq!(chain.scratch.count("performance-security-fix"), 1);
}
