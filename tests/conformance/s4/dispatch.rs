//! Who is sent out, how many at once, with which tool, and what they leave.

use super::schedule::Schedule;

#[test]
fn s4_13_explorers_work_at_the_same_time_and_one_file_holds_what_they_found() {
    let cases = "
0-explorers/store/explore) mark store; await page; standard;;
0-explorers/page/explore) mark page; await store; standard;;";
    let schedule =
        Schedule::runs(&["--set", "maxPerPhase=0"], &format!("{cases}\n1.1-brainstorm) brief ERROR;;"), 11);
    assert_eq!(schedule.scratch.most_at_once(&schedule.run, |step| step.ends_with("/explore")), 2);
    let merger = schedule.scratch.prompt("0-explore", 1);
    assert!(
        merger.contains("phases/0-explore/store.md") && merger.contains("phases/0-explore/page.md"),
        "{merger}"
    );
    assert!(schedule.scratch.published(&schedule.run, "phases/0-explore.md").is_some());
    assert_eq!(schedule.state()["stages"]["EXPLORE"]["agentCount"], 2);
    // One that is lost holds nobody up, and it is said.
    let lost = "0-explorers/page/explore) exit 1;;\n1.1-brainstorm) brief ERROR;;";
    let schedule = Schedule::runs(&["--set", "maxPerPhase=0"], lost, 11);
    assert_eq!(schedule.scratch.step_state(&schedule.run, "0-explorers"), "passed_with_notes");
    assert_eq!(schedule.scratch.step_state(&schedule.run, "0-explore"), "passed");
}

#[test]
fn s4_14_findings_become_decisions_planners_plan_side_by_side_and_one_plan_is_reviewed() {
    let cases = "
1.2-planners/store/plan) mark store; await page; standard;;
1.2-planners/page/plan) mark page; await store; standard;;
2.2-simplify) brief ERROR;;";
    let schedule = Schedule::runs(&[], cases, 11);
    assert!(schedule.inputs("1.1-brainstorm", 1).contains("phases/0-explore.md"));
    assert!(
        schedule.scratch.published(&schedule.run, "phases/1.1-brainstorm.md").unwrap().contains("Decisions")
    );
    assert_eq!(schedule.scratch.most_at_once(&schedule.run, |step| step.ends_with("/plan")), 2);
    assert!(schedule.inputs("1.2-planners/store/plan", 1).contains("phases/1.1-brainstorm.md"));
    let merger = schedule.scratch.prompt("1.2-plan", 1);
    assert!(
        merger.contains("phases/1.2-plan/store.md") && merger.contains("phases/1.2-plan/page.md"),
        "{merger}"
    );
    assert!(schedule.inputs("1.3-plan-review", 1).contains("phases/1.2-plan.md"));
    assert_eq!(schedule.phase_file("1.3-plan-review.json")["status"], "approved");
}

#[test]
fn s4_13_s4_14_who_brings_parts_together_finds_them_where_the_prompt_says() {
    let cases = r#"0-explore|1.2-plan) grep -o '[^ ]*phases/[0-9a-z.-]*/[a-z]*[.]md' "$HOME/prompts/$tag.1" | while read -r part; do head -c 1 "$part" > /dev/null && echo "$part" >> "$HOME/found"; done; standard;;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&[], cases, 11);
    let found = std::fs::read_to_string(schedule.scratch.home().join("found")).unwrap_or_default();
    assert_eq!(found.lines().count(), 4, "two explorers and two planners: {found}");
    // So does whoever reads a summary.
    let summary = schedule.scratch.published(&schedule.run, "summaries/PLAN.md").unwrap();
    let dir = schedule.scratch.run_dir(&schedule.run);
    assert!(summary.contains(&format!("Files, in {}:", dir.display())), "{summary}");
    assert!(summary.contains("\n- phases/1.2-plan.md\n"), "{summary}");
}

#[test]
fn s4_16_s4_33_tasks_run_in_waves_and_a_lost_one_blocks_only_those_that_wait_for_it() {
    let cases = r#"
1.2-plan) tasks "$(task one '' easy), $(task two '"one"' medium), $(task three '' easy), $(task four '"three"' easy)";;
2.1-waves/one/easy) exit 1;;"#;
    let schedule = Schedule::runs(
        &["--set", "maxPerTask=0", "--set", "steps.2.1-waves/easy.retry.on_exhausted=block"],
        cases,
        11,
    );
    let called = schedule.scratch.called();
    let tasks: Vec<&String> = called.iter().filter(|step| step.starts_with("2.1-waves/")).collect();
    assert_eq!(tasks.len(), 3, "{tasks:?}");
    assert_eq!(*tasks.last().unwrap(), "2.1-waves/four/easy", "the second wave is last: {tasks:?}");
    assert_eq!(schedule.scratch.count("2.1-waves/two/medium"), 0);
    let text = schedule.scratch.published(&schedule.run, "task-results.json").unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["waves"][1]["waveNumber"], 2);
    assert_eq!(results["completedTasks"], serde_json::json!(["three", "four"]));
    assert_eq!(results["failedTasks"], serde_json::json!(["one", "two"]));
}

#[test]
fn s4_17_every_phase_leaves_what_it_is_for() {
    let flags = [
        "--set",
        "lint=echo \"linted\" >> $HOME/commands",
        "--set",
        "test=echo tested >> $HOME/commands",
        "--set",
        "gitWorkflow=commit",
    ];
    let schedule = Schedule::runs(&flags, "", 0);
    let notes = schedule.scratch.published(&schedule.run, "phases/2.2-simplify.md").unwrap();
    assert!(notes.contains("## Simplified"), "{notes}");
    let commands = std::fs::read_to_string(schedule.scratch.home().join("commands")).unwrap();
    assert_eq!(commands, "linted\ntested\n", "the engine itself ran them, once");
    let results = schedule.phase_file("3.1-test-results.json");
    assert_eq!(results["passed"], true);
    assert_eq!(results["commands"][0]["command"], "echo \"linted\" >> $HOME/commands");
    assert_eq!(results["commands"][1]["exitCode"], 0);
    assert_eq!(schedule.scratch.count("3.2-analysis"), 0, "nothing to analyse");
    assert!(schedule.scratch.published(&schedule.run, "phases/4.1-docs.md").is_some());
    assert_eq!(schedule.phase_file("2.1-tasks.json")["completedTasks"], serde_json::json!(["one"]));
    // Delivered as configured, and nothing of the run with it.
    assert!(schedule.scratch.root().join("src/one.txt").exists());
    assert!(!schedule.scratch.git_says(&["ls-files"]).contains(".agents"));
    assert_eq!(schedule.state()["status"], "completed");
}

#[test]
fn s4_36_reviews_go_to_codex_reviewer_with_their_criteria_and_tool() {
    let schedule = Schedule::runs(&[], "", 0);
    for (step, criteria, description, tool) in [
        ("1.3-plan-review", "plan-review", "Review: plan", "codex-high"),
        ("2.3-impl-review", "implementation", "Review: implementation", "codex-high"),
        ("3.3-test-review", "test-review", "Review: tests", "codex-high"),
        ("4.2-final-review", "final-review", "Review: final", "codex-xhigh"),
    ] {
        assert_eq!(schedule.scratch.step(&schedule.run, step)["role"], "codex-reviewer");
        let prompt = schedule.scratch.prompt(step, 1);
        assert!(
            prompt.contains(&format!("Criteria: {criteria}.")) && prompt.contains(description),
            "{step}: {prompt}"
        );
        assert!(prompt.contains(&format!("Tool: {tool}.")), "{step}: {prompt}");
        assert_eq!(schedule.model(step), tool, "{step}");
    }
    // A project's own criteria, and another tool.
    let scratch = Schedule::project("2.2-simplify) brief ERROR;;");
    scratch.write("prompts/high-stakes/plan-review.md", "Ours.\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "criteria"]);
    let schedule = Schedule::start(scratch, &["--set", "reviewTool=other"], 11);
    assert!(schedule.inputs("1.3-plan-review", 1).contains("prompts/high-stakes/plan-review.md"));
    assert_eq!(schedule.model("1.3-plan-review"), "other");
}

#[test]
fn s4_37_who_does_a_task_depends_on_how_hard_it_is() {
    let cases = r#"
1.2-plan) tasks "$(task one '' easy), $(task two '' medium), $(task three '' hard)";;
2.2-simplify) brief ERROR;;"#;
    let schedule = Schedule::runs(&[], cases, 11);
    for (step, role, model) in [
        ("2.1-waves/one/easy", "task-agent", "sonnet-4.5"),
        ("2.1-waves/two/medium", "task-agent", "opus-4.5"),
        ("2.1-waves/three/hard", "codex-task", "codex-xhigh"),
    ] {
        assert_eq!(schedule.model(step), model, "{step}");
        assert_eq!(schedule.scratch.step(&schedule.run, step)["role"], role);
        assert_eq!(schedule.scratch.count(step), 1);
    }
    assert_eq!(
        schedule.scratch.count("2.1-waves/one/medium") + schedule.scratch.count("2.1-waves/one/hard"),
        0
    );
    let schedule = Schedule::runs(&["--set", "easyModel=small"], "2.2-simplify) brief ERROR;;", 11);
    assert_eq!(schedule.model("2.1-waves/one/easy"), "small");
}

#[test]
fn j_22_a_task_whose_dependency_failed_is_left_out_with_the_reason() {
    let cases = r#"
1.2-plan) tasks "$(task one '' easy), $(task two '"one"' easy)";;
2.1-waves/one/easy) exit 1;;"#;
    let schedule = Schedule::runs(&["--set", "maxPerTask=0"], cases, 10);
    schedule.scratch.gatewright(&["answer", &schedule.run, "D-1", "give-up"]);
    assert_eq!(schedule.scratch.count("2.1-waves/two/easy"), 0);
    let text = schedule.scratch.published(&schedule.run, "task-results.json").unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text}");
}
