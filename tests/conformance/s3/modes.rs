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
