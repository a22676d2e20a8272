//! What an agent is told and what counts of its reply.

use serde_json::json;

use super::session::Session;

const ALL: &str = "intake) spec; acceptance; triage true true; fine;;";

#[test]
fn s1_39_a_reviewer_gets_the_changed_files_apart_from_its_context_and_nobody_else_does() {
    let cases = "tasks/T-001/code) echo more >> src/a.txt; echo new > src/b.txt; fine;;";
    let session = Session::built("per-batch", "task T-001", cases, 0);
    assert!(session.input("tasks/T-001/code", 1)["task"].get("session_changed_files").is_none());
    let task = session.input("final-review", 1)["task"].clone();
    let mut changed: Vec<(String, String)> = task["session_changed_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["path"].as_str().unwrap().to_owned(), one["change_type"].as_str().unwrap().to_owned())
        })
        .collect();
    changed.sort();
    let wanted = [("src/a.txt", "modified"), ("src/b.txt", "added")];
    assert_eq!(changed, wanted.map(|(path, kind)| (path.to_owned(), kind.to_owned())));
    assert!(!task["context_files"].to_string().contains("src/a.txt"));
}

#[test]
fn s1_62_s1_63_the_project_file_is_detected_persisted_and_named_in_every_prompt() {
    let scratch = Session::project("");
    scratch.write(".github/copilot-instructions.md", "Two spaces.\n");
    let session = Session::starts(scratch, &[], 10);
    let flags = session.status()["runtime_flags"].clone();
    assert_eq!(flags["copilot_instructions_exists"], true);
    assert!(flags["copilot_checked_at"].as_str().unwrap().contains('T'), "{flags}");
    for step in ["intake", "architecture"] {
        let prompt = session.scratch.prompt(step, 1);
        assert!(prompt.contains("PROJECT INSTRUCTIONS: read .github/copilot-instructions.md"), "{step}");
        let order: Vec<usize> = [
            "the contract of this session",
            "your role",
            "the workflow and this dispatch",
            "the project instructions",
        ]
        .iter()
        .map(|word| prompt.split("highest first").nth(1).unwrap().find(word).unwrap())
        .collect();
        assert!(order.is_sorted(), "{order:?}");
    }
    // It is looked for before every dispatch: gone is gone.
    std::fs::remove_file(session.scratch.root().join(".github/copilot-instructions.md")).unwrap();
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
    assert!(!session.scratch.prompt("plan", 1).contains("PROJECT INSTRUCTIONS"));
    let session = Session::designed("");
    assert_eq!(session.status()["runtime_flags"]["copilot_instructions_exists"], false);
    assert!(!session.scratch.prompt("intake", 1).contains("PROJECT INSTRUCTIONS"));
}

#[test]
fn s1_76_agents_md_and_claude_md_count_too_and_conflicts_belong_into_the_notes() {
    for file in ["AGENTS.md", "CLAUDE.md"] {
        let scratch = Session::project("");
        scratch.write(file, "Two spaces.\n");
        let session = Session::starts(scratch, &[], 10);
        let prompt = session.scratch.prompt("intake", 1);
        assert!(prompt.contains(&format!("PROJECT INSTRUCTIONS: read {file}")), "{file}");
        assert!(prompt.contains("name the conflict in `artifacts.notes`"));
        assert_eq!(session.status()["runtime_flags"]["project_instructions"], json!([file]));
    }
}

#[test]
fn s1_76_a_numbered_definition_of_the_project_is_used_for_the_role_of_its_name() {
    for (file, step) in [
        (".github/agents/01-spec-agent.md", "intake"),
        (".github/agents/01-SpecAgent.agent.md", "intake"),
        (".github/agents/03-architect-agent.md", "architecture"),
        (".github/agents/architect.md", "architecture"),
    ] {
        let scratch = Session::project("");
        scratch.write(file, "---\nname: x\ndescription: Ours.\n---\nYou work as this house works.\n");
        scratch.write(".github/agents/09-somebody.md", "You are of no use here.\n");
        let session = Session::starts(scratch, &[], 10);
        let prompt = session.scratch.prompt(step, 1);
        assert!(prompt.starts_with("You work as this house works."), "{file}: {prompt}");
        // What the method needs of the role stays.
        assert!(prompt.contains("## Input") && !prompt.contains("of no use here"), "{file}");
    }
}

#[test]
fn s1_64_context_files_follow_the_matrix_and_a_design_spec_reaches_coder_reviewer_and_qa() {
    let scratch = Session::project(ALL);
    std::fs::write(scratch.home().join("tasks"), "task T-001 feat security").unwrap();
    let session = Session::starts(scratch, &[], 10);
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
    session.answer("UD-REVIEW-STRATEGY", "per-batch", 0);
    let (research, design) = ("research/research-remember-me.md", "design-specs/design-spec-remember-me.md");
    let matrix: [(&str, &[&str]); 11] = [
        ("intake", &[]),
        ("research", &["spec.md", "acceptance.json"]),
        ("architecture", &["spec.md", "acceptance.json", research]),
        ("design", &["spec.md", "architecture.md", "acceptance.json"]),
        ("plan", &["spec.md", "acceptance.json", "architecture.md", design, research]),
        ("tasks/T-001/code", &["spec.md", "tasks.yaml", "architecture.md", design]),
        ("tasks/T-001/review", &["spec.md", "tasks.yaml", "architecture.md", design]),
        ("tasks/T-001/qa", &["spec.md", "acceptance.json", "tasks.yaml", design]),
        ("tasks/T-001/security", &["tasks.yaml", "architecture.md"]),
        ("integrate", &["tasks.yaml", "acceptance.json"]),
        ("docs", &["spec.md", "tasks.yaml", "acceptance.json", "architecture.md"]),
    ];
    for (step, wanted) in matrix {
        assert_eq!(session.context_files(step), wanted, "{step}");
    }
}

#[test]
fn s1_65_who_cannot_work_says_so_and_the_session_is_blocked_with_the_reason() {
    let session =
        Session::built("per-batch", "task T-001", "*/code) say BLOCKED 'the tests cannot be run';;", 11);
    assert_eq!(session.current_state(), "BLOCKED");
    assert!(session.status()["blocker"]["message"].as_str().unwrap().contains("the tests cannot be run"));
    assert_eq!(session.scratch.count("tasks/T-001/code"), 1, "no retry changes that");
    assert!(session.scratch.prompt("tasks/T-001/code", 1).contains("reply `BLOCKED`"));
}

#[test]
fn s1_66_s1_67_what_is_no_reply_is_tried_again_twice_and_nobody_else_does_the_work() {
    let session =
        Session::starts(Session::project("architecture) architecture; echo 'All done.';;"), &[], 11);
    assert_eq!(session.scratch.count("architecture"), 3);
    assert_eq!(session.status()["blocker"]["reason"], "subagent_failure");
    assert_eq!(session.scratch.called(), ["intake", "architecture", "architecture", "architecture"]);
    // FAIL is a failed dispatch too.
    let session = Session::starts(Session::project("architecture) say FAIL 'no idea';;"), &[], 11);
    assert_eq!(session.scratch.count("architecture"), 3);
    let missing = "architecture) echo '{\"status\":\"OK\",\"summary\":\"no more\"}';;";
    let session = Session::starts(Session::project(missing), &[], 11);
    assert!(session.status()["blocker"]["message"].as_str().unwrap().contains("malformed"));
}

#[test]
fn s1_68_only_coder_and_integrator_may_write_source() {
    // Others who do are not heard, whatever they say of it.
    for (step, role, standard) in [
        ("architecture", "Architect", "architecture; fine"),
        ("plan", "Planner", "plan; fine"),
        ("tasks/T-001/review", "Reviewer", "fine"),
        ("docs", "Docs", "report; fine"),
    ] {
        let scratch = Session::project(&format!("{step}) echo mine > src/a.txt; {standard};;"));
        let run = scratch.gatewright(&["run", "gated-session", "Remember me", "--set", "ci=true"]).id();
        let session = Session { scratch, run };
        for (decision, answer) in [("UD-APPROVE-DESIGN", "approved"), ("UD-REVIEW-STRATEGY", "per-batch")] {
            let state = session.current_state();
            if state == "APPROVE_DESIGN" || state == "REVIEW_STRATEGY" {
                session.scratch.gatewright(&["answer", &session.run, decision, answer]);
            }
        }
        assert_eq!(session.current_state(), "BLOCKED", "{step}");
        let (_, message) = session.scratch.blocked_by(&session.run);
        assert!(message.contains(role) && message.contains("src/a.txt"), "{step}: {message}");
    }
    let cases =
        "tasks/T-001/code) echo coded > src/a.txt; fine;;\nintegrate) echo integrated > src/b.txt; fine;;";
    let session = Session::built("per-batch", "task T-001", cases, 0);
    assert_eq!(session.current_state(), "DONE");
}

#[test]
fn s1_69_contents_are_held_against_their_contract_at_every_gate() {
    let cases = [
        (
            "intake) spec; sed -i '/## Goals/d' \"$GATEWRIGHT_OUT/spec.md\"; acceptance; triage false false; fine;;",
            "Goals",
        ),
        (
            "intake) spec; echo '{\"acceptance_criteria\":[]}' > \"$GATEWRIGHT_OUT/acceptance.json\"; triage false false; fine;;",
            "acceptance_criteria",
        ),
        (
            "architecture) architecture; sed -i '/## Modules/d' \"$GATEWRIGHT_OUT/architecture.md\"; fine;;",
            "Modules",
        ),
        // The limits of the template: three to ten stories, eight edge cases at least.
        (
            "intake) spec; sed -i '/As a guest/d' \"$GATEWRIGHT_OUT/spec.md\"; acceptance; triage false false; fine;;",
            "User Stories",
        ),
        (
            "intake) spec; sed -i 's/^- As a guest/&\\n- As 4\\n- As 5\\n- As 6\\n- As 7\\n- As 8\\n- As 9\\n- As 10\\n- As 11/' \"$GATEWRIGHT_OUT/spec.md\"; acceptance; triage false false; fine;;",
            "at most 10",
        ),
        (
            "intake) spec; sed -i '/^- Offline/d' \"$GATEWRIGHT_OUT/spec.md\"; acceptance; triage false false; fine;;",
            "Edge Cases",
        ),
    ];
    for (case, named) in cases {
        let session = Session::starts(Session::project(case), &[], 11);
        let (_, message) = session.scratch.blocked_by(&session.run);
        assert!(message.contains(named), "{named}: {message}");
    }
}

#[test]
fn s1_70_what_people_type_never_breaks_the_file() {
    let session = Session::designed("");
    let words = "changes-requested: \"quotes\", \\ back\\slashes, \u{e9}, \u{1f980} and\nlines }}{{ {% x %}";
    session.answer("UD-APPROVE-DESIGN", words, 10);
    let history = session.scratch.published(&session.run, "approve-design-history.jsonl").unwrap();
    let line: serde_json::Value = serde_json::from_str(history.trim_end()).unwrap();
    assert_eq!(line["answer"], words);
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
    assert_eq!(session.current_state(), "REVIEW_STRATEGY", "and the file can be read");
}

/// A short design in the reply is a design like any other: everybody who reads one gets it.
#[test]
fn s1_64_a_design_in_the_reply_reaches_everybody_who_reads_the_design() {
    let name = "design-specs/design-spec-remember-me.md";
    let lines = |filler: usize| {
        let states = "- a state\\n".repeat(filler);
        format!(
            "# D\\n## Layout\\nOne.\\n## Interactions\\n- click\\n## Components\\n- box\\n## States\\n{states}## Accessibility\\n- label"
        )
    };
    let inline = |filler: usize| {
        let text = lines(filler);
        format!("design) say OK 'Designed.' '\"design_spec_inline\":\"{text}\"';;")
    };
    let ui = "intake) spec; acceptance; triage false true; fine;;";
    // Ten lines and seventy states: as many as may stand there.
    let session = Session::built("per-batch", "task T-001", &format!("{ui}\n{}", inline(70)), 0);
    let text = session.scratch.published(&session.run, name).unwrap();
    assert_eq!((text.lines().count(), text.ends_with("- label\n")), (80, true), "{text}");
    for step in ["plan", "tasks/T-001/code", "tasks/T-001/review", "tasks/T-001/qa", "final-review"] {
        let context = session.input(step, 1)["task"]["context_files"].to_string();
        assert!(context.contains(name), "{step}: {context}");
    }
    // One more is a file's matter, and so is one that is no design.
    for (cases, told) in [
        (inline(71), "`artifacts.design_spec_inline` of the reply has 81 lines, at most 80"),
        (inline(70).replace("## States", "## Other"), "a section `## States`"),
    ] {
        let session = Session::starts(Session::project(&format!("{ui}\n{cases}")), &[], 11);
        let (_, message) = session.scratch.blocked_by(&session.run);
        assert!(message.contains(told), "{message}");
        assert_eq!(session.scratch.count("plan"), 0);
    }
    // Whoever writes the file as well is taken at the file.
    let both = inline(3).replace("design) ", "design) design; ");
    let session = Session::designed(&format!("{ui}\n{both}"));
    assert!(session.scratch.published(&session.run, name).unwrap().contains("- empty"));
}
