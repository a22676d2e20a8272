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
        ("fix", "**Iteration:** Fix NUMBER", "**Iteration:** again", "(of the form `Fix n`)"),
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
