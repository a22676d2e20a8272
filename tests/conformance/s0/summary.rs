//! What a person finds when a run is over, and what each step was given to read.

use super::chain::Chain;

#[test]
fn the_summary_tells_the_run_from_its_reports_and_offers_to_keep_or_delete_it() {
    let chain = Chain::runs(&[], "", 0);
    let summary = chain.file("summary.md");
    for words in [
        "# Develop feature: End other sessions",
        "| tests-review | tests-reviewer | pass_with_notes | 1 |",
        "| performance-security/security | application-security-specialist | pass | 1 |",
        "- src/session.txt - the route (implementation.md)",
        "- docs/api.md - the new route (documentation.md)",
        "- 2 tests passed (implementation.md)",
        "- A store of its own. (refactoring.md)",
        "- keep: ",
    ] {
        assert!(summary.contains(words), "{words}\n{summary}");
    }
    let folder = chain.scratch.run_dir(&chain.run);
    let offered = format!("gatewright clean {} --artifacts --yes", chain.run);
    assert!(summary.contains(&offered), "{summary}");
    let words: Vec<&str> = offered.split(' ').skip(1).collect();
    chain.scratch.gatewright(&words).exits(0);
    assert!(!folder.exists());
}

#[test]
fn s0_56_whoever_sees_the_end_at_a_terminal_keeps_or_deletes_and_what_was_given_up_stays() {
    let started = |scratch: &crate::support::Scratch, words: &[&str]| {
        let mut terminal = scratch.terminal(&["run", "report-chain", "End other sessions"]);
        for (time, word) in words.iter().enumerate() {
            terminal.shows("keep | delete | delete-all > ", time + 1);
            terminal.types(word);
        }
        assert_eq!(terminal.exit_code(), 0);
    };
    let folders = |scratch: &crate::support::Scratch| {
        let entries = std::fs::read_dir(scratch.root().join(".workflow")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("develop-feature")).count()
    };
    let scratch = Chain::project("");
    started(&scratch, &["keep"]);
    assert_eq!(folders(&scratch), 1);
    // What is no answer is asked again, and deletes nothing by itself.
    started(&scratch, &["perhaps", "delete"]);
    assert_eq!(folders(&scratch), 1, "only the run that is asked about is gone");
    let given_up = Chain::start(scratch, &["--until", "prepare"], 12);
    given_up.scratch.gatewright(&["abort", &given_up.run]).exits(0);
    started(&given_up.scratch, &["delete-all"]);
    assert_eq!(folders(&given_up.scratch), 1, "the completed ones are gone");
    assert!(
        given_up.file("metadata.json").contains("\"status\": \"aborted\""),
        "{}",
        given_up.file("metadata.json")
    );
}

#[test]
fn to_delete_all_reports_deletes_no_folder_of_another_method() {
    let chain = Chain::runs(&[], "", 0);
    let other = "workflow: other\ndir: \"docs/others/{{ run.id }}\"\nroles: { coder: { prompt: p } }\nsteps: [ { id: code, role: coder, writes: { note.md: any } } ]";
    chain.scratch.write(".gatewright/workflows/other.yaml", other);
    chain.scratch.agent("code) wrote note.md;;");
    let kept = chain.scratch.gatewright(&["run", "other", "x"]).exits(0).id();
    let summary = chain.file("summary.md");
    let advice = summary.split("- delete all").nth(1).unwrap().split('`').nth(1).unwrap().to_owned();
    let words: Vec<&str> = advice.split(' ').skip(1).collect();
    let (reports, note) = (chain.scratch.run_dir(&chain.run), chain.scratch.run_dir(&kept).join("note.md"));
    let listed = chain.scratch.gatewright(&words).exits(0);
    assert!(listed.out.contains(&chain.run) && !listed.out.contains(&kept), "{}", listed.out);
    assert!(reports.exists(), "what is advised first only lists");
    chain.scratch.gatewright(&[&words[..], &["--yes"]].concat()).exits(0);
    assert!(!reports.exists() && note.exists());
}

#[test]
fn s0_56_a_loop_that_a_person_accepted_is_one_step_and_not_two() {
    let chain = Chain::runs(&["--set", "steps.acceptance.rounds_max=1"], "acceptance) objects 'a gap';;", 10);
    chain.scratch.gatewright(&["answer", &chain.run, "D-1", "accept"]).exits(0);
    assert!(chain.file("metadata.json").contains("\"currentStep\": 12"), "{}", chain.file("metadata.json"));
}

#[test]
fn the_input_matrix_holds() {
    let chain = Chain::runs(&[], "", 0);
    for (step, wanted) in [
        ("requirements", &[][..]),
        ("plan", &["requirements.md"]),
        ("tests-design", &["requirements.md", "plan.md"]),
        ("tests-review", &["requirements.md", "plan.md", "tests-design.md"]),
        ("implementation", &["requirements.md", "plan.md", "tests-design.md", "tests-review.md"]),
        ("stabilization", &["requirements.md", "plan.md", "implementation.md"]),
        ("acceptance", &["requirements.md", "plan.md", "implementation.md", "stabilization.md"]),
        ("performance-security/performance", &["implementation.md"]),
        ("performance-security/security", &["implementation.md"]),
        ("refactoring", &["implementation.md"]),
        ("code-review", &["implementation.md", "refactoring.md"]),
        ("documentation", &["requirements.md", "plan.md", "implementation.md"]),
    ] {
        assert_eq!(chain.inputs(step, 1), wanted, "{step}");
    }
}

/// Who would write it into `metadata.json` is gone: the file says how far the task is, the program that nobody drives it.
#[test]
fn s0_57_a_task_whose_driver_is_gone_is_in_progress_on_disk_and_interrupted_to_whoever_asks() {
    let scratch = Chain::project("plan) mark at-work; await go; standard;;");
    let engine = scratch.start(&["run", "report-chain", "End other sessions"]);
    let run = engine.id();
    scratch.marked("at-work");
    engine.kill();
    let said = scratch.gatewright(&["status", &run]).exits(12).out;
    assert!(said.contains("interrupted: no engine drives it; `requirements` was completed last"), "{said}");
    assert!(said.contains(&format!("gatewright clean {run} --artifacts --yes")), "{said}");
    assert!(scratch.gatewright(&["list"]).exits(0).out.contains("interrupted"));
    let metadata: serde_json::Value =
        serde_json::from_str(&scratch.published(&run, "metadata.json").unwrap()).unwrap();
    assert_eq!((&metadata["status"], &metadata["currentStep"]), (&"in_progress".into(), &2.into()));
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(0);
    assert_eq!(scratch.count("plan"), 1, "what it did meanwhile counts");
}
