//! Who may touch what: reviewers nothing, the test engineer tests, developers no tests.

use super::chain::Chain;

/// A step whose agent also does this is not heard, and the file is named.
#[track_caller]
fn trespasses(workflow: &str, step: &str, deed: &str, role: &str, file: &str) {
    let scratch = Chain::project(&format!("{step}) {deed}; standard;;"));
    let run = scratch.gatewright(&["run", workflow, "End other sessions"]).exits(11).id();
    let message = scratch.step(&run, step)["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("`{role}`")) && message.contains(file), "{step}: {message}");
    assert!(message.contains("(reality)"), "{step}: {message}");
    assert_eq!(scratch.step_state(&run, step), "blocked");
}

#[test]
fn j_24_a_reviewer_that_edits_source_and_a_tester_that_edits_production_code_are_not_heard() {
    let edit = "echo mended >> src/a.txt";
    for (step, role) in [
        ("tests-design", "automation-qa"),
        ("tests-review", "tests-reviewer"),
        ("stabilization", "automation-qa"),
        ("acceptance", "acceptance-reviewer"),
        ("performance-security/performance", "performance-specialist"),
        ("performance-security/security", "application-security-specialist"),
        ("code-review", "code-reviewer"),
    ] {
        trespasses("report-chain", step, edit, role, "src/a.txt");
    }
}

#[test]
fn a_refactoring_leaves_tests_alone_and_one_of_tests_leaves_production_code_alone() {
    let tests = "mkdir -p tests; echo weaker > tests/session.test.txt";
    for workflow in ["report-chain", "report-chain/refactor"] {
        trespasses(workflow, "refactoring", tests, "refactorer", "tests/session.test.txt");
    }
    let source = "echo mended >> src/a.txt";
    trespasses("report-chain/refactor-tests", "refactoring", source, "automation-qa", "src/a.txt");
}

#[test]
fn a_projects_own_definition_is_used_for_the_role_of_the_same_name() {
    let scratch = Chain::project("code-review) echo mended >> src/a.txt; standard;;");
    scratch.write(
        ".claude/agents/backend-developer.md",
        "---\nname: backend-developer\ndescription: Ours.\nmodel: sonnet\n---\nYou write {{ our }} kind of code.\n",
    );
    scratch.write(".github/agents/code-reviewer.agent.md", "You are our reviewer.\n");
    scratch.write(
        ".codex/agents/refactorer.toml",
        "name = \"refactorer\"\ndeveloper_instructions = \"You are our refactorer.\"\n",
    );
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "our own"]);
    let run = scratch.gatewright(&["run", "report-chain", "End other sessions"]).exits(11).id();
    for (step, ours) in [
        ("implementation", "You write {{ our }} kind of code."),
        ("code-review", "You are our reviewer."),
        ("refactoring", "You are our refactorer."),
    ] {
        let prompt = scratch.prompt(step, 1);
        assert!(prompt.starts_with(ours), "{step}: {prompt}");
        assert!(prompt.contains("## Your report"), "{step}: what the method needs of it stays");
    }
    assert!(!scratch.prompt("plan", 1).contains("You are our"), "nobody else");
    let message = scratch.step(&run, "code-review")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("src/a.txt"), "a reviewer still changes nothing: {message}");
}
