//! The forms of the source, filled in: its headings, field names, values and briefs are accepted as they are.

use super::chain::Chain;

const FORMS: [(&str, &str); 13] = [
    ("plan", include_str!("forms/plan.md")),
    ("tests-design", include_str!("forms/tests-design.md")),
    ("tests-review", include_str!("forms/tests-review.md")),
    ("implementation", include_str!("forms/implementation.md")),
    ("stabilization", include_str!("forms/stabilization.md")),
    ("acceptance", include_str!("forms/acceptance.md")),
    ("performance", include_str!("forms/performance.md")),
    ("security", include_str!("forms/security.md")),
    ("refactoring", include_str!("forms/refactoring.md")),
    ("code-review", include_str!("forms/code-review.md")),
    ("documentation", include_str!("forms/documentation.md")),
    ("fix", include_str!("forms/fix.md")),
    ("re-review", include_str!("forms/re-review.md")),
];

/// The brief of every step, in the words of the source. `STATUS` is that of the report.
const BRIEFS: &str = r#"
dir=.workflow/$GATEWRIGHT_RUN
brief() { printf 'STATUS: %s\nFILE: %s/%s\nSUMMARY: %s\nNEXT_INPUT: %s\n---\n' "$1" "$dir" "$file" "$2" "$(words | sed "s|\([a-z-]*\.md\)|$dir/\1|g")"; }
points() { for point in "$@"; do printf -- '- %s\n' "$point"; done; }
formed() {
  report
  status=$(sed -n 's/^\*\*Status:\*\* //p' "$GATEWRIGHT_OUT/$file")
  case $kind in
    plan) brief DONE 'Created implementation plan with 2 requirements and 4 steps'; points '2 requirements identified' '4 implementation steps planned' 'Key risk: two nodes';;
    tests-design) brief DONE 'Designed 3 tests covering 2 requirements, verified RED stage'; points '3 tests created in 2 files' 'All tests fail as expected (RED confirmed)' 'Run command: /run-tests tests/';;
    tests-review) brief "$status" '1 blocking issues found'; points '1/2 requirements covered' 'Blocking issues: 1' "Verdict: $status, the end of the lock is untested";;
    implementation) brief DONE 'Implemented feature in 2 steps, all 3 tests pass (GREEN)'; points '2 files modified' '3 tests passing' 'Ready for stabilization';;
    stabilization) brief "$status" '1 issues found'; points 'Broader test run: 19 passed, 1 failed' 'Additional tests needed: YES' "Verdict: $status";;
    acceptance) brief "$status" '1 gaps found'; points 'Requirements: 1/2 met' 'Blocking gaps: 1' "Verdict: $status";;
    performance|security|code-review) brief "$status" '1 blocking issues'; points 'Blocking: 1' 'Non-blocking: 1' "Verdict: $status";;
    refactoring) brief DONE 'Completed 1 refactoring steps, all tests pass'; points '1 refactoring steps' '1 files modified' 'All tests passing';;
    documentation) brief DONE 'Updated 1 documentation files'; points '1 files updated' 'docs/api.md';;
    re-review) brief PASS 'No blocking issues'; points 'Blocking: 0' 'Non-blocking: 1' 'Verdict: PASS';;
    *) brief DONE 'It is done'; points 'one point' 'another point';;
  esac
}
"#;

fn project() -> crate::support::Scratch {
    let scratch = Chain::project_with(BRIEFS, "*) formed;;");
    for (name, text) in FORMS {
        std::fs::write(scratch.home().join("reports").join(format!("{name}.md")), text).unwrap();
    }
    scratch
}

#[test]
fn the_forms_of_the_source_are_accepted_in_every_step_and_every_loop() {
    for flags in [&[][..], &["--profile", "sequential"]] {
        let chain = Chain::start(project(), flags, 0);
        let retried = chain.scratch.events_of(&chain.run, "step.retry.scheduled");
        assert!(retried.is_empty(), "{retried:#?}");
        // Every reviewer objected once and was content with the second look.
        for name in ["tests-review", "stabilization", "acceptance", "performance", "security", "code-review"]
        {
            assert!(
                chain.scratch.published(&chain.run, &format!("loop-iterations/{name}-review-2.md")).is_some(),
                "{name}"
            );
        }
        // What blocks is sent to whom it is routed, and nothing else is.
        let structural = chain.scratch.prompt("code-review-refactoring-fix", 1);
        let focus = structural.split("## Focus On\n").nth(1).unwrap().split("\n## ").next().unwrap();
        assert!(
            focus.contains("it imports the route") && !focus.contains("the store's error is lost"),
            "{focus}"
        );
        assert!(!focus.contains("a shorter name"), "{focus}");
        let functional = chain.scratch.prompt("code-review-fix", 1);
        assert!(functional.contains("the store's error is lost"), "{functional}");
    }
}

#[test]
fn s0_59_what_a_brief_leaves_out_is_on_record_and_the_briefs_of_the_source_leave_out_nothing() {
    let unsaid = |chain: &Chain, step: &str| {
        let ended = chain.scratch.events_of(&chain.run, "step.attempt.ended");
        let own = ended.iter().find(|event| event["step"] == step).unwrap_or_else(|| panic!("{step}"));
        own["report"]["unsaid"].as_array().cloned().unwrap_or_default()
    };
    let chain = Chain::start(project(), &[], 0);
    for step in [
        "plan",
        "tests-design",
        "tests-review",
        "implementation",
        "stabilization",
        "acceptance",
        "performance-security/performance",
        "performance-security/security",
        "refactoring",
        "code-review",
        "documentation",
    ] {
        assert!(unsaid(&chain, step).is_empty(), "{step}: {:?}", unsaid(&chain, step));
    }
    let silent = "plan) report; reply DONE; printf -- '---\\n- 2 requirements\\n- 4 steps\\n';;
      stabilization) report; reply PASS; printf -- '---\\n- it went well\\n';;";
    let chain = Chain::runs(&[], silent, 0);
    assert_eq!(unsaid(&chain, "plan"), ["risk"]);
    assert_eq!(unsaid(&chain, "stabilization"), ["passed", "failed", "additional", "verdict"]);
    let prompt = chain.scratch.prompt("plan", 1);
    assert!(prompt.contains("The points of the reply speak of: requirement, step, risk."), "{prompt}");
}
