//! The pipelines of the table, and the registry.

use super::cycle::Cycle;
use crate::support::Scratch;

#[test]
fn s3_04_every_pipeline_is_a_configuration_of_the_same_roles() {
    let flows: [(&str, &[&str], i32, &[&str]); 7] = [
        ("quick-fix", &[], 0, &["backend", "test", "review"]),
        ("quick-fix", &["--profile", "frontend"], 0, &["frontend", "test", "review"]),
        ("api-design", &[], 0, &["api_designer", "backend"]),
        ("ui-design", &[], 0, &["designer", "frontend"]),
        ("test-only", &[], 0, &["test", "review"]),
        ("audit", &[], 0, &["freshness", "consistency"]),
        (
            "audit-fix",
            &[],
            0,
            &["freshness", "consistency", "sort", "repairs/a/builder", "repairs/b/builder"],
        ),
    ];
    for (workflow, more, code, wanted) in flows {
        let cycle = Cycle::of(Cycle::project(""), &format!("stream-dag/{workflow}"), more, code);
        let mut called = cycle.scratch.called();
        called.sort_by_key(|step| wanted.iter().position(|one| one == step));
        assert_eq!(called, wanted, "{workflow}");
    }
    let scratch = Cycle::project("");
    scratch.write("src/a.txt", "changed\n");
    let cycle = Cycle::of(scratch, "stream-dag/review-only", &[], 0);
    assert_eq!(cycle.scratch.called(), ["review"]);
}

#[test]
fn s3_40_both_halves_of_a_quick_fix_are_built_beside_each_other() {
    let half = |own: &str, other: &str| {
        format!(
            "both/*/{own}) mark {own}; await {other}; work {own}; se {own}/se_{}_output.json; fine;;",
            if own == "frontend" { "frontend" } else { "multi" }
        )
    };
    let cases = [half("backend", "frontend"), half("frontend", "backend")].join("\n");
    let scratch = Cycle::project(&cases.replace("work backend", "work").replace("work frontend", "work"));
    let cycle = Cycle::of(scratch, "stream-dag/quick-fix", &["--profile", "fullstack"], 0);
    let called = cycle.scratch.called();
    assert_eq!(called.len(), 4, "{called:?}");
    assert_eq!(called[2..], ["test", "review"]);
    let files = cycle.scratch.git_says(&["ls-tree", "-r", "--name-only", "main"]);
    for file in ["src/backend.txt", "src/frontend.txt", "tests/a.test.txt"] {
        assert!(files.contains(file), "{file}: {files}");
    }
}

#[test]
fn s3_40_an_audit_is_one_report_of_both_sides() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/audit", &[], 0);
    let report = cycle.scratch.published(&cycle.run, "audit.md").unwrap();
    for part in [
        "## Freshness",
        "- [must] `agents/a.md`: old",
        "## Consistency",
        "- [should] `agents/b.md`: two ways",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn s3_40_an_audit_of_one_side_is_a_report_that_says_so() {
    let cycle = Cycle::of(Cycle::project("freshness) exit 3;;"), "stream-dag/audit", &[], 10);
    assert_eq!(cycle.scratch.published(&cycle.run, "audit.md"), None, "nothing is left out yet");
    cycle.answer("D-1", "skip", 0);
    let report = cycle.scratch.published(&cycle.run, "audit.md").unwrap();
    assert!(report.contains("## Freshness\nNot looked at"), "{report}");
    assert!(report.contains("- [should] `agents/b.md`: two ways"), "{report}");
}

#[test]
fn s3_40_a_quick_fix_of_nobodys_scope_is_refused_before_anybody_works() {
    for (setting, known) in [("scope=both", "`backend`, `frontend`, `fullstack`"), ("lang=rust", "`go`")] {
        let scratch = Cycle::project("");
        let words = ["run", "stream-dag/quick-fix", "Remember me", "--set", "test=true", "--set", setting];
        let err = scratch.gatewright(&words).exits(3).err;
        assert!(err.contains("is no value of") && err.contains(known), "{err}");
        assert!(scratch.called().is_empty());
    }
}

#[test]
fn s3_26_in_a_quick_fix_a_finding_without_a_route_is_for_who_implemented_it() {
    let once = "review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds must wrong; else pass; fi;;";
    let cycle = Cycle::of(Cycle::project(once), "stream-dag/quick-fix", &[], 0);
    assert_eq!(cycle.scratch.called(), ["backend", "test", "review", "backend", "review"]);
}

#[test]
fn s3_40_the_flows_of_the_three_full_cycles() {
    let before = ["tpm", "domain_expert", "domain_modeller"];
    let flows: [(&str, &[&str], &[&str]); 3] = [
        ("backend", &["impl_planner"], &["database_designer", "api_designer"]),
        ("ui", &["designer", "impl_planner"], &["api_designer"]),
        ("fullstack", &["designer", "impl_planner"], &["database_designer", "api_designer"]),
    ];
    for (profile, design, contract) in flows {
        let cycle = Cycle::starts("", &["--profile", profile], 10);
        assert_eq!(cycle.scratch.called(), before, "{profile}");
        cycle.answer("G1", "approved", 10);
        if profile != "backend" {
            cycle.answer("G2", "option-1", 10);
        }
        let mut called = cycle.scratch.called().split_off(before.len());
        let mut contracts = called.split_off(design.len());
        called.sort();
        contracts.sort();
        let (mut design, mut contract) = (design.to_vec(), contract.to_vec());
        design.sort_unstable();
        contract.sort_unstable();
        assert_eq!(
            (called, contracts),
            (
                design.iter().map(ToString::to_string).collect(),
                contract.iter().map(ToString::to_string).collect()
            ),
            "{profile}"
        );
    }
    let cycle = Cycle::built("", "", 10);
    let called = cycle.scratch.called().split_off(6);
    assert_eq!(called, ["streams/WS-1/backend", "streams/WS-1/test", "review"]);
}

#[test]
fn the_project_directory_is_that_of_the_branch() {
    let scratch = Cycle::project("tpm) say blocked 'No.' none 'it cannot be';;");
    scratch.git(&["checkout", "-q", "-b", "PROJ-123_remember_me"]);
    let cycle = Cycle::of(scratch, "stream-dag", &[], 11);
    let dir = cycle.scratch.run_dir(&cycle.run);
    assert!(dir.ends_with("docs/implementation_plans/PROJ-123/remember_me"), "{}", dir.display());
    assert_eq!(cycle.json("pipeline_state.json")["pipeline_id"], "PROJ-123_remember_me");
    let told = cycle.scratch.prompt("tpm", 1);
    assert!(
        told.contains(&format!("PROJECT_DIR: {}\n", dir.display())),
        "whoever is in a worktree finds it: {told}"
    );
    assert!(told.contains("\"jira_issue\": \"PROJ-123\""), "{told}");
    for (branch, folder) in
        [("proj-1_x", "_adhoc/remember-me"), ("PROJ_x", "_adhoc/remember-me"), ("fix", "_adhoc/remember-me")]
    {
        let scratch = Cycle::project("tpm) say blocked 'No.' none 'it cannot be';;");
        scratch.git(&["checkout", "-q", "-b", branch]);
        let cycle = Cycle::of(scratch, "stream-dag", &[], 11);
        let dir = cycle.scratch.run_dir(&cycle.run);
        assert!(dir.ends_with(format!("docs/implementation_plans/{folder}")), "{branch}: {}", dir.display());
        assert_eq!(cycle.json("pipeline_state.json")["pipeline_id"], cycle.run.as_str());
    }
}

/// A small workflow with the method's registry.
fn registered(step: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.gatewright(&["methods", "eject", "stream-dag"]).exits(0);
    let registry = scratch.root().join(".gatewright/workflows/stream-dag/registry.yaml");
    std::fs::copy(registry, scratch.root().join(".gatewright/workflows/registry.yaml")).unwrap();
    let roles = "roles: { tpm: { prompt: a }, domain_expert: { prompt: b }, newcomer: { prompt: c } }";
    scratch.workflow("w", &format!("{roles}\nregistry: registry.yaml\nsteps:\n  - {{ id: first, role: tpm, writes: {{ spec.md: any }} }}\n  - {step}"));
    scratch
}

#[test]
fn s3_03_s3_41_what_is_not_in_the_registry_does_not_load() {
    registered("{ id: second, role: domain_expert, reads: [spec.md], writes: { domain_analysis.md: any } }")
        .gatewright(&["lint", "w"])
        .exits(0);
    for (step, named) in [
        ("{ id: second, role: domain_expert, reads: [spec.md], writes: { plan.md: any } }", "plan.md"),
        ("{ id: second, role: domain_expert, reads: [spec.md, \"design.md?\"] }", "design.md"),
        ("{ id: second, role: newcomer }", "newcomer"),
    ] {
        let ran = registered(step).gatewright(&["lint", "w"]).exits(3);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("GW117") && said.contains(named), "{said}");
    }
}
