//! Where a run may begin, and how it ends.

use super::schedule::Schedule;

#[test]
fn s4_31_a_run_begins_later_only_with_what_the_stage_needs() {
    // A plan from elsewhere.
    let scratch = Schedule::project("2.1-waves/*) brief ERROR;;");
    let external = ["--profile", "external-plan", "--set", "plan=docs/plan.md"];
    let schedule = Schedule::start(scratch, &external, 11);
    assert_eq!(schedule.scratch.calls().len(), 0, "nobody starts without it");
    assert!(schedule.scratch.blocked_by(&schedule.run).1.contains("docs/plan.md"));
    schedule.scratch.write("docs/plan.md", "# Plan\n- end them\n");
    schedule.scratch.gatewright(&["resume", &schedule.run]).exits(11);
    assert_eq!(schedule.scratch.called(), ["1.2-plan", "1.3-plan-review", "2.1-waves/one/easy"]);
    assert!(schedule.inputs("1.2-plan", 1).contains("1.2-external-plan.md"));
    // A later stage, from what an earlier run left.
    let schedule = Schedule::runs(&["--set", "gitWorkflow=commit"], "", 0);
    let earlier = schedule.scratch.root().join("earlier");
    std::fs::rename(schedule.scratch.run_dir(&schedule.run).join("phases"), &earlier).unwrap();
    let from = ["--profile", "from-test", "--set", "from=earlier", "--set", "gitWorkflow=none"];
    let before = schedule.scratch.calls().len();
    let later = Schedule::start(schedule.scratch, &from, 0);
    assert_eq!(later.scratch.called()[before..], ["3.3-test-review", "4.1-docs", "4.2-final-review"]);
    assert_eq!(later.state()["stages"]["IMPLEMENT"]["status"], "skipped");
    // A review that did not approve is none.
    let review = earlier.join("2.3-impl-review.json");
    let text = std::fs::read_to_string(&review).unwrap().replace("approved", "needs_revision");
    std::fs::write(&review, text).unwrap();
    let refused = Schedule::start(later.scratch, &from, 11);
    assert!(refused.scratch.blocked_by(&refused.run).1.contains("2.3-impl-review.json"));
}

#[test]
fn s4_30_the_projects_configuration_is_over_the_users() {
    let scratch = Schedule::project("0-areas) brief ERROR;;");
    let config = scratch.home().join(".config/gatewright/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}settings: {{ test: users, blockOnSeverity: high }}\n")).unwrap();
    let project = std::fs::read_to_string(scratch.root().join(".gatewright/config.yaml")).unwrap();
    scratch.write(".gatewright/config.yaml", &format!("{project}settings: {{ test: projects }}\n"));
    let run = scratch.gatewright(&["run", "staged-schedule", "x", "--agent", "mine"]).exits(11).id();
    let plans = scratch.state_dir(&run).join("plans");
    let plan = std::fs::read_dir(plans).unwrap().flatten().next().unwrap().path();
    let frozen: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(plan).unwrap()).unwrap();
    assert_eq!(frozen["settings"]["test"], "projects");
    assert_eq!(frozen["settings"]["blockOnSeverity"], "high");
    assert_eq!(frozen["settings"]["lint"], "make lint");
}
