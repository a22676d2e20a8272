//! What agents are told.

use crate::support::Scratch;

const LOOP: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: code, role: coder, reads: [plan.md], prompt: \"Follow the plan.\", writes: { code.md: any } }
  - { id: review, review: code, by: reviewer, reads: [plan.md, code.md] }
";
const OBJECTS_ONCE: &str = "
plan) wrote plan.md;;
code) wrote code.md $GATEWRIGHT_ROUND;;
review) if [ $GATEWRIGHT_ROUND = 1 ]; then printf '{\"approved\": false, \"issues\": [{\"severity\": \"blocker\", \"description\": \"loses data\", \"location\": \"src/a:4\"}, {\"severity\": \"note\", \"description\": \"rename it\"}], \"summary\": \"s\"}\\n'; else approve; fi;;";

/// The headings of a prompt, in order.
fn headings(prompt: &str) -> Vec<&str> {
    prompt.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

#[test]
fn s0_08_s0_09_every_prompt_has_the_workflow_directory_block() {
    let scratch = Scratch::with(LOOP, OBJECTS_ONCE);
    let run = scratch.run(0);
    let dir = format!(".workflow/{run}");
    for (step, attempt) in [("plan", 1), ("code", 1), ("review", 1), ("code", 2), ("review", 2)] {
        let prompt = scratch.prompt(step, attempt);
        let block = prompt.split("## Workflow Directory\n").nth(1).unwrap().split("\n## ").next().unwrap();
        for line in [
            format!("WORKFLOW_DIR: {dir}"),
            format!("Read from: {dir}/"),
            "Write to: ".to_owned(),
            format!("Loop files: {dir}/loop-iterations/"),
        ] {
            assert!(block.contains(&line), "{step} {attempt}: {line} in {block}");
        }
    }
    assert!(scratch.root().join(&dir).is_dir());
}

#[test]
fn s0_35_s0_62_loop_prompts_have_their_sections_in_order() {
    let scratch = Scratch::with(LOOP, OBJECTS_ONCE);
    let run = scratch.run(0);
    let fix = scratch.prompt("code", 2);
    assert_eq!(
        headings(&fix),
        ["Workflow Directory", "Task", "Iteration", "Input Files", "Focus On", "Output"]
    );
    assert!(fix.contains("This is fix iteration 1."), "{fix}");
    assert!(fix.contains(&format!(".workflow/{run}/plan.md")), "the files to read");
    let focus = fix.split("## Focus On\n").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(
        focus.contains("loses data") && focus.contains("src/a:4") && focus.contains("BLOCKING"),
        "{focus}"
    );
    assert!(!focus.contains("rename it"), "only what blocks: {focus}");
    let output = fix.split("## Output\n").nth(1).unwrap();
    assert!(
        output.contains("/out/code.md") && output.contains("STATUS:"),
        "the exact path, and the brief: {output}"
    );
    let review = scratch.prompt("review", 2);
    assert_eq!(headings(&review), ["Workflow Directory", "Task", "Iteration", "Input Files", "Output"]);
    assert!(review.contains("This is review iteration 2."), "{review}");
}

#[test]
fn a_first_prompt_has_the_role_the_task_and_the_request() {
    let scratch = Scratch::with(LOOP, OBJECTS_ONCE);
    scratch.run(0);
    let prompt = scratch.prompt("code", 1);
    assert!(prompt.starts_with("Build it."), "who it is comes first: {prompt}");
    assert!(prompt.contains("Follow the plan.") && prompt.contains("Add a greeting"));
    assert_eq!(headings(&prompt), ["Workflow Directory", "Task", "Input Files", "Output"]);
}

#[test]
fn s3_11_each_class_of_failure_has_its_own_retry_prompt() {
    let check = "checks: { build: { run: \"cat src/state; exit 1\", class: build }, tests: { run: \"grep -q good src/state || { echo 3 tests failed; exit 1; }\" } }\n";
    let contract = "contracts: { report: { markdown: { sections: { Summary: { bullets: [1, 5] } } } } }\n";
    let cases = [
        ("crash", "", "exit 9", "exited with 9"),
        ("malformed", "", "echo done", "no_outcome"),
        (
            "schema",
            ", writes: { r.md: report }",
            "printf '# R\\n\\n## Other\\n- x\\n' > $GATEWRIGHT_OUT/r.md; brief DONE r.md",
            "Summary",
        ),
        ("reality", ", writes: { r.md: report }", "brief DONE r.md", "r.md"),
        ("build", ", checks: [build]", "echo undefined symbol f > src/state; ok", "undefined symbol f"),
        ("test", ", checks: [tests]", "echo bad > src/state; ok", "3 tests failed"),
        ("timeout", ", timeout: 100ms", "while :; do echo x; sleep 0.02; done", "timeout"),
        ("idle", ", idle_timeout: 100ms", "sleep 60", "silent"),
    ];
    let mut remedies = std::collections::BTreeSet::new();
    let scratch = Scratch::new();
    for (class, keys, does, says) in cases {
        scratch.workflow("w", &format!("{check}{contract}steps: [ {{ id: code, role: coder{keys} }} ]"));
        scratch.agent(&format!("code) {does};;"));
        let run = scratch.run(11);
        assert_eq!(scratch.events_of(&run, "step.retry.scheduled")[0]["class"], class);
        let prompt = scratch.prompt("code", 2);
        let told = prompt
            .split("## Previous Attempt\n")
            .nth(1)
            .unwrap_or_else(|| panic!("{class}: {prompt}"))
            .split("\n## ")
            .next()
            .unwrap();
        assert!(told.contains(&format!("({class})")) && told.contains(says), "{class}: {told}");
        remedies.insert(told.lines().last().unwrap().to_owned());
    }
    assert_eq!(remedies.len(), cases.len(), "each has its own remedy: {remedies:#?}");
}

#[test]
fn s3_12_a_retry_is_told_its_number_and_not_to_redo_what_is_right() {
    let scratch = Scratch::with(
        "checks: { tests: { run: \"echo failure $(cat src/a.txt); exit 1\" } }\nsteps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 3, on_exhausted: [ask] } } ]",
        "code) echo $GATEWRIGHT_ATTEMPT > src/a.txt; ok;;",
    );
    let run = scratch.run(10);
    assert!(!scratch.prompt("code", 1).contains("RETRY"));
    for (attempt, number) in [(2, "RETRY 2/3"), (3, "RETRY 3/3")] {
        let prompt = scratch.prompt("code", attempt);
        assert!(prompt.contains(number), "{prompt}");
        assert!(prompt.contains(&format!("failure {}", attempt - 1)), "the failure before: {prompt}");
        assert!(prompt.to_lowercase().contains("do not redo"), "{prompt}");
        assert!(prompt.contains("If the same error recurs, reply that you are blocked"), "{prompt}");
    }
    let status = scratch.status(&run);
    let question = status["decisions"][0]["question"].as_str().unwrap();
    assert!(
        question.contains("test") && question.contains("failure 3"),
        "a person gets the error of its class: {question}"
    );
}
