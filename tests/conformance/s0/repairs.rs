//! Who repairs what a review objects to, how often, and when a loop ends.

use super::chain::Chain;

#[test]
fn s0_29_s0_42_every_issue_of_the_code_review_goes_to_the_fixers_of_its_route() {
    let both = ["code-review-tests-fix", "code-review-fix"];
    for (route, wanted) in [
        ("refactorer", &["code-review-refactoring-fix"][..]),
        ("structural", &["code-review-refactoring-fix"]),
        ("automation-qa + backend-developer", &both),
        ("functional", &both),
        ("", &both),
    ] {
        let cases = format!(
            "code-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'two of one' '{route}'; else standard; fi;;\ndocumentation) brief ERROR;;"
        );
        let chain = Chain::runs(&[], &cases, 11);
        let called = chain.scratch.called();
        let from = called.iter().position(|step| step == "code-review").unwrap();
        let expected = [&["code-review"], wanted, &["code-review", "documentation"]].concat();
        assert_eq!(called[from..], expected, "`{route}`");
        for fixer in wanted {
            assert!(chain.inputs(fixer, 1).contains(&"code-review.md".to_owned()), "{fixer}");
        }
        assert!(chain.file("code-review.md").contains("FAIL"), "the first review keeps its name");
    }
}

#[test]
fn s0_33_fix_n_follows_review_n_and_review_n_plus_1_follows_fix_n() {
    let three = "tests-review) if [ $GATEWRIGHT_ROUND -lt 3 ]; then objects 'no test'; else standard; fi;;\nimplementation) brief ERROR;;";
    let chain = Chain::runs(&[], three, 11);
    let called = chain.scratch.called();
    let from = called.iter().position(|step| step == "tests-review").unwrap();
    let (review, fix) = ("tests-review", "tests-review-fix");
    let mut steps: Vec<&str> =
        called[from..].iter().map(String::as_str).filter(|step| *step != "tests-design").collect();
    steps.pop();
    assert_eq!(steps, [review, fix, review, fix, review]);
    assert!(chain.file("tests-review.md").contains("FAIL"));
    for (name, iteration) in
        [("fix-1", "Fix 1"), ("review-2", "Review 2"), ("fix-2", "Fix 2"), ("review-3", "Review 3")]
    {
        let file = chain.file(&format!("loop-iterations/tests-review-{name}.md"));
        assert!(file.contains(&format!("**Iteration:** {iteration}")), "{name}: {file}");
    }
    for absent in ["review-1", "fix-3", "review-4"] {
        assert!(
            chain
                .scratch
                .published(&chain.run, &format!("loop-iterations/tests-review-{absent}.md"))
                .is_none()
        );
    }
    assert!(
        chain.inputs(fix, 2).contains(&"loop-iterations/tests-review-review-2.md".to_owned()),
        "the latest findings"
    );
}

#[test]
fn s0_36_who_repairs_is_given_what_blocks_and_nothing_else_and_says_done() {
    let cases = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'the edge is not tested'; printf -- '- NON-BLOCKING: a shorter name\\n'; else standard; fi;;
tests-review-fix) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then report; sed -i 's/Status:\\*\\* DONE/Status:** PASS/' \"$GATEWRIGHT_OUT/$file\"; reply DONE; else standard; fi;;
implementation) brief ERROR;;";
    let chain = Chain::runs(&[], cases, 11);
    let prompt = chain.scratch.prompt("tests-review-fix", 1);
    assert!(prompt.contains("the edge is not tested"), "{prompt}");
    assert!(!prompt.contains("a shorter name"), "{prompt}");
    assert_eq!(
        chain.scratch.count("tests-review-fix"),
        2,
        "the report of a repair says DONE and nothing else"
    );
    assert!(chain.file("loop-iterations/tests-review-fix-1.md").contains("**Status:** DONE"));
    // And so does its reply, as that of everybody who makes something; who judges never says it.
    let cases = "plan) report; reply PASS;;";
    let chain = Chain::runs(&["--set", "steps.plan.retry.attempts_max=1"], cases, 11);
    let (_, message) = chain.scratch.blocked_by(&chain.run);
    assert!(message.contains("STATUS is `PASS`, expected one of DONE, ERROR"), "{message}");
    let cases = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;
tests-review-fix) report; reply PASS;;";
    let once = "steps.tests-review-fix.retry.attempts_max=1";
    let chain = Chain::runs(&["--set", once], cases, 11);
    let (_, message) = chain.scratch.blocked_by(&chain.run);
    assert!(message.contains("STATUS is `PASS`, expected one of DONE, ERROR"), "{message}");
    assert_eq!(chain.scratch.count("implementation"), 0);
    let cases = "tests-review) report; reply DONE;;";
    let chain = Chain::runs(&["--set", "steps.tests-review.retry.attempts_max=1"], cases, 11);
    let (_, message) = chain.scratch.blocked_by(&chain.run);
    assert!(message.contains("STATUS is `DONE`, expected one of PASS, PARTIAL, FAIL, ERROR"), "{message}");
}

#[test]
fn s0_40_a_loop_ends_with_a_pass_with_notes_only_or_when_a_person_accepts_what_is_left() {
    let end = "implementation) brief ERROR;;";
    let notes = format!(
        "tests-review) report; sed -i 's/^\\*\\*Status:\\*\\* PASS/**Status:** PARTIAL/' \"$GATEWRIGHT_OUT/$file\"; reply PARTIAL; printf -- '---\\n- NON-BLOCKING: a shorter name\\n';;\n{end}"
    );
    let chain = Chain::runs(&[], &notes, 11);
    assert_eq!((chain.scratch.count("tests-review"), chain.scratch.count("tests-review-fix")), (1, 0));
    assert_eq!(chain.scratch.step_state(&chain.run, "tests-review"), "passed_with_notes");
    // Five reviews if nobody says otherwise, then a person.
    let never = format!("tests-review) objects 'no test';;\n{end}");
    let chain = Chain::runs(&[], &never, 10);
    assert_eq!((chain.scratch.count("tests-review"), chain.scratch.count("tests-review-fix")), (5, 4));
    assert_eq!(chain.scratch.decision(&chain.run, "D-1")["answers"], serde_json::json!(["accept", "abort"]));
    chain.scratch.gatewright(&["answer", &chain.run, "D-1", "accept"]).exits(11);
    assert_eq!(chain.scratch.count("implementation"), 1, "accepted: it goes on");
    // As many as are configured.
    let chain = Chain::runs(&["--set", "steps.tests-review.rounds_max=2"], &never, 10);
    assert_eq!(chain.scratch.count("tests-review"), 2);
    chain.scratch.gatewright(&["answer", &chain.run, "D-1", "abort"]).exits(1);
    assert_eq!(chain.scratch.count("implementation"), 0);
}

#[test]
fn s0_53_performance_and_security_look_at_the_same_time_and_both_must_be_content() {
    let pair = "performance-security/performance) mark performance; await security; standard;;
performance-security/security) mark security; await performance; if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'a key leaks'; else standard; fi;;
refactoring) brief ERROR;;";
    let chain = Chain::runs(&[], pair, 11);
    let both = |step: &str| step.starts_with("performance-security/");
    assert_eq!(chain.scratch.most_at_once(&chain.run, both), 2);
    let called = chain.scratch.called();
    let after = called.iter().position(|step| step == "refactoring").unwrap();
    let fix = called.iter().position(|step| step == "performance-security-fix").unwrap();
    assert!(fix < after, "one of them objected: {called:?}");
    let given = chain.inputs("performance-security-fix", 1);
    assert!(
        given.contains(&"performance.md".to_owned()) && given.contains(&"security.md".to_owned()),
        "{given:?}"
    );
    // One after the other, each with its own loop, where that is wanted.
    let one = "performance) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'a query per row'; else standard; fi;;\nrefactoring) brief ERROR;;";
    let chain = Chain::runs(&["--profile", "sequential"], one, 11);
    let called = chain.scratch.called();
    let from = called.iter().position(|step| step == "performance").unwrap();
    let steps: Vec<&str> =
        called[from..].iter().map(String::as_str).filter(|step| *step != "implementation").collect();
    assert_eq!(steps, ["performance", "performance-fix", "performance", "security", "refactoring"]);
}

#[test]
fn s0_15_the_header_that_an_agent_is_shown_names_what_it_reads() {
    let cases = "tests-review|stabilization|acceptance|performance-security/performance|code-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'not so'; else standard; fi;;";
    let chain = Chain::runs(&[], cases, 0);
    let inside = format!("{}/", chain.run);
    let mut seen = 0;
    for entry in std::fs::read_dir(chain.scratch.home().join("prompts")).unwrap() {
        let prompt = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let shown = prompt.lines().find_map(|line| line.strip_prefix("**Input Files:** ")).unwrap();
        let listed = prompt.split_once("\n## Input Files\n").map_or("", |(_, rest)| rest);
        let listed = listed.lines().map_while(|line| line.strip_prefix("- "));
        let names: Vec<&str> =
            listed.map(|path| path.rsplit_once(&inside).map_or(path, |(_, name)| name)).collect();
        let wanted = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        assert_eq!(shown, wanted, "{prompt}");
        seen += 1;
    }
    assert_eq!(seen, chain.scratch.calls().len());
    let repair = chain.scratch.prompt("performance-security-fix", 1);
    assert!(
        repair.contains("**Input Files:** plan.md, implementation.md, performance.md, security.md\n"),
        "{repair}"
    );
    assert!(!repair.contains("they are red"), "who repairs is not told that the tests are red: {repair}");
}
