//! Pipeline and interactive mode.

use super::cycle::Cycle;

const INTERACTIVE: &[&str] = &["--profile", "interactive"];

#[test]
fn s3_15_s3_44_the_flag_in_the_prompt_tells_the_mode_and_pipelines_never_prompt() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", &[], 0);
    for step in ["backend", "test", "review"] {
        assert!(cycle.scratch.prompt(step, 1).contains("PIPELINE_MODE=true\n"), "{step}");
    }
    assert!(cycle.scratch.prompt("backend", 1).contains("you do not ask for it again"));
    let without = "backend) work; fine;;";
    let cycle = Cycle::of(Cycle::project(without), "stream-dag/quick-fix", &[], 10);
    assert_eq!(cycle.scratch.count("backend"), 2, "structured output is required");
    let cycle = Cycle::of(Cycle::project(without), "stream-dag/quick-fix", INTERACTIVE, 10);
    cycle.answer("approval", "yes", 10);
    assert!(!cycle.scratch.prompt("backend", 1).contains("PIPELINE_MODE"));
    assert_eq!(cycle.scratch.step_state(&cycle.run, "backend"), "passed", "structured output is optional");
}

#[test]
fn s3_37_an_approval_is_quoted_before_anything_is_implemented() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", INTERACTIVE, 10);
    assert_eq!(cycle.scratch.called(), Vec::<String>::new());
    let asked = cycle.scratch.decision(&cycle.run, "approval")["question"].as_str().unwrap().to_owned();
    assert!(asked.contains("Approval Required") && asked.contains("`/implement`"), "{asked}");
    for words in ["okay", "interesting", "let me think about it", "why?"] {
        cycle.answer("approval", words, 4);
    }
    assert_eq!(cycle.scratch.called(), Vec::<String>::new());
    cycle.answer("approval", "Go ahead!", 10);
    assert!(cycle.scratch.prompt("backend", 1).contains("✓ Approval found: \"Go ahead!\""));
    // The canonical word is quoted like any other.
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", INTERACTIVE, 10);
    cycle.answer("approval", "approved", 10);
    assert!(cycle.scratch.prompt("backend", 1).contains("✓ Approval found: \"approved\""));
}

#[test]
fn s3_37_what_is_said_to_a_design_is_the_approval_to_implement_it() {
    for (workflow, step, words) in
        [("api-design", "backend", "/implement"), ("ui-design", "frontend", "continue")]
    {
        let cycle = Cycle::of(Cycle::project(""), &format!("stream-dag/{workflow}"), INTERACTIVE, 10);
        assert_eq!(cycle.scratch.count(step), 0);
        cycle.answer("designed", "interesting", 4);
        cycle.answer("designed", words, 10);
        let prompt = cycle.scratch.prompt(step, 1);
        assert!(prompt.contains(&format!("✓ Approval found: \"{words}\"")), "{prompt}");
        assert!(!prompt.contains("Implement nothing"), "{prompt}");
        // What was implemented is shown like everything else.
        let asked =
            cycle.scratch.decision(&cycle.run, "implemented")["question"].as_str().unwrap().to_owned();
        assert!(asked.contains("Run `/test`"), "{asked}");
        cycle.answer("implemented", "continue", 0);
    }
}

#[test]
fn s3_45_who_says_fix_to_a_review_has_it_implemented_and_reviewed_again() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", INTERACTIVE, 10);
    for (decision, words) in [
        ("approval", "yes"),
        ("implemented", "continue"),
        ("tested", "continue"),
        ("decide-review", "fix the name too"),
    ] {
        cycle.answer(decision, words, 10);
    }
    assert_eq!((cycle.scratch.count("backend"), cycle.scratch.count("review")), (2, 1));
    assert!(cycle.scratch.prompt("backend", 2).contains("fix the name too"));
    for (decision, words) in [("implemented", "continue"), ("tested", "continue")] {
        cycle.answer(decision, words, 10);
    }
    assert_eq!(cycle.scratch.count("review"), 2);
    // What the run changed is committed, and nothing else that lies about.
    cycle.scratch.write("mine.txt", "not of the run\n");
    cycle.answer("decide-review", "commit", 0);
    let made = cycle.scratch.git_says(&["show", "--name-only", "--format=%s", "HEAD"]);
    assert!(made.starts_with("Remember me\n"), "{made}");
    assert!(made.contains("src/allbackend.txt") && made.contains("tests/a.test.txt"), "{made}");
    assert!(!made.contains("mine.txt"), "{made}");
}

#[test]
fn s3_39_s3_45_what_a_review_finds_is_mended_when_a_person_says_fix_and_not_before() {
    let once = "review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds must 'off by one'; else pass; fi;;";
    for (workflow, fixer, asked) in
        [("quick-fix", "backend", true), ("test-only", "test", true), ("review-only", "fix_backend", false)]
    {
        let scratch = Cycle::project(once);
        scratch.write("src/a.txt", "changed\n");
        let cycle = Cycle::of(scratch, &format!("stream-dag/{workflow}"), INTERACTIVE, 10);
        let go_on = || {
            for decision in ["approval", "implemented", "tested"] {
                let status = cycle.scratch.status(&cycle.run);
                let open = status["decisions"].as_array().unwrap().clone();
                if open.iter().any(|one| one["id"] == decision && one["status"] == "pending") {
                    cycle.answer(decision, if decision == "approval" { "yes" } else { "continue" }, 10);
                }
            }
        };
        go_on();
        let before = cycle.scratch.count(fixer);
        assert_eq!(cycle.scratch.count("review"), 1, "{workflow}: nobody said fix");
        let question =
            cycle.scratch.decision(&cycle.run, "decide-review")["question"].as_str().unwrap().to_owned();
        assert!(question.contains("Say **'fix'**") && question.contains("off by one"), "{question}");
        cycle.answer("decide-review", "fix", 10);
        assert_eq!(cycle.scratch.count(fixer), before + 1, "{workflow}");
        let attempt = u32::try_from(before).unwrap() + 1;
        assert!(cycle.scratch.prompt(fixer, attempt).contains("off by one"), "{workflow}");
        if asked {
            go_on();
        }
        assert_eq!(cycle.scratch.count("review"), 2, "{workflow}");
        cycle.answer("decide-review", "commit", 0);
    }
}

#[test]
fn s3_15_structured_output_is_optional_wherever_a_person_looks_on() {
    let without = "api_designer) note api_design.md; echo 'openapi: 3.1.0' | out api_spec.yaml; fine;;\ndesigner) note design.md; echo '{\"color\":{\"a\":\"red\"}}' | out design_system.tokens.json; fine;;\nbackend|frontend) work; fine;;";
    for workflow in ["api-design", "ui-design"] {
        let name = format!("stream-dag/{workflow}");
        let cycle = Cycle::of(Cycle::project(without), &name, INTERACTIVE, 10);
        cycle.answer("designed", "continue", 10);
        cycle.answer("implemented", "continue", 0);
        // A pipeline needs it.
        let cycle = Cycle::of(Cycle::project(without), &name, &[], 10);
        assert_eq!(cycle.scratch.called().len(), 2, "{workflow}");
    }
}

#[test]
fn s3_44_a_pipeline_without_steps_of_its_own_for_people_has_no_interactive_mode() {
    for workflow in ["stream-dag", "stream-dag/build", "stream-dag/audit", "stream-dag/audit-fix"] {
        let said = Cycle::project("").gatewright(&["run", workflow, "Go", "--set", "mode=interactive"]);
        assert_eq!(said.code, 3, "{workflow}: {}", said.err);
        assert!(said.err.contains("mode") && said.err.contains("pipeline"), "{workflow}: {}", said.err);
    }
}

#[test]
fn s3_38_a_downgrade_is_announced_and_can_be_refused_and_reviewers_are_never_downgraded() {
    let model = |words: &str, more: &[&str]| {
        let scratch = Cycle::project("");
        scratch.config("    models: { strong: big, fast: small }\n    args: [\"{model}\"]");
        let script = std::fs::read_to_string(scratch.root().join("../agent.sh")).unwrap();
        std::fs::write(
            scratch.root().join("../agent.sh"),
            format!("echo \"$1\" > \"$HOME/model.$GATEWRIGHT_STEP\"\n{script}"),
        )
        .unwrap();
        let mut all = vec!["--profile", "interactive"];
        all.extend(more);
        let cycle = Cycle::of(scratch, "stream-dag/quick-fix", &all, 10);
        let asked = cycle.scratch.decision(&cycle.run, "approval")["question"].as_str().unwrap().to_owned();
        assert_eq!(asked.contains("Say 'opus' to override"), !more.is_empty(), "{asked}");
        cycle.answer("approval", words, 10);
        cycle.answer("implemented", "continue", 10);
        cycle.answer("tested", "continue", 10);
        let used = |step: &str| {
            std::fs::read_to_string(cycle.scratch.home().join(format!("model.{step}")))
                .unwrap()
                .trim()
                .to_owned()
        };
        assert_eq!(used("review"), "big");
        used("backend")
    };
    assert_eq!(model("yes", &[]), "big");
    assert_eq!(model("yes", &["--set", "simple=true"]), "small");
    assert_eq!(model("opus", &["--set", "simple=true"]), "big");
}

#[test]
fn s3_39_an_interactive_completion_waits_for_continue_or_corrections() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/test-only", INTERACTIVE, 10);
    let asked = cycle.scratch.decision(&cycle.run, "tested")["question"].as_str().unwrap().to_owned();
    assert!(asked.contains("**Next**: Run `/review`") && asked.contains("Say **'continue'**"), "{asked}");
    cycle.answer("tested", "fix the name", 10);
    assert!(cycle.scratch.prompt("test", 2).contains("fix the name"));
    assert_eq!(cycle.scratch.count("review"), 0);
    cycle.answer("tested", "continue", 10);
    assert_eq!(cycle.scratch.count("review"), 1);
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/test-only", &[], 0);
    assert!(cycle.scratch.prompt("test", 1).contains("return and end"), "a pipeline ends by itself");
}

#[test]
fn s3_45_each_completion_names_its_next_command() {
    let question = |cycle: &Cycle, id: &str| {
        cycle.scratch.decision(&cycle.run, id)["question"].as_str().unwrap().to_owned()
    };
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/api-design", INTERACTIVE, 10);
    let asked = question(&cycle, "designed");
    assert!(asked.contains("`/implement`") && asked.contains("`/design`"), "{asked}");
    assert!(asked.contains("API design complete. 1 resources, 0 endpoints defined."), "{asked}");
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/ui-design", INTERACTIVE, 10);
    assert!(question(&cycle, "designed").contains("Run `/implement`"));
    let cases = "review) if [ $GATEWRIGHT_ATTEMPT -le 3 ]; then finds must wrong; else pass; fi;;";
    let cycle = Cycle::of(Cycle::project(cases), "stream-dag/quick-fix", INTERACTIVE, 10);
    cycle.answer("approval", "yes", 10);
    assert!(question(&cycle, "implemented").contains("Run `/test`"));
    cycle.answer("implemented", "continue", 10);
    assert!(question(&cycle, "tested").contains("Run `/review`"));
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/test-only", INTERACTIVE, 10);
    cycle.answer("tested", "continue", 10);
    let asked = question(&cycle, "decide-review");
    assert!(asked.contains("Say **'commit'**") && asked.contains("commit and create a PR"), "{asked}");
    let scratch = Cycle::project("review) finds must wrong;;");
    scratch.write("src/a.txt", "changed\n");
    let cycle = Cycle::of(scratch, "stream-dag/review-only", INTERACTIVE, 10);
    let asked = question(&cycle, "decide-review");
    assert!(
        asked.contains("Say **'fix'**") && asked.contains("`/implement`, then re-run `/review`"),
        "{asked}"
    );
}
