//! What agents are told: position, inputs, decisions, handoffs, feedback.

use super::cycle::Cycle;

#[test]
fn s3_01_every_role_says_where_it_stands_and_what_it_owes() {
    let cycle = Cycle::built("", "", 10);
    for step in [
        "tpm",
        "domain_expert",
        "domain_modeller",
        "impl_planner",
        "database_designer",
        "api_designer",
        "streams/WS-1/backend",
        "streams/WS-1/test",
        "review",
    ] {
        let prompt = cycle.scratch.prompt(step, 1);
        for part in [
            "**Receives from**:",
            "**Produces for**:",
            "**Deliverables**:",
            "**Completion criteria**:",
            "## When you stop",
        ] {
            assert!(prompt.contains(part), "{step}: {part}");
        }
    }
}

#[test]
fn s3_02_json_comes_first_and_markdown_is_enough() {
    let cycle = Cycle::planned("", "", &[]);
    let inputs = cycle.inputs("impl_planner");
    assert_eq!(inputs.first().map(String::as_str), Some("spec_output.json"), "{inputs:?}");
    assert!(inputs.contains(&"spec.md".to_owned()), "{inputs:?}");
    let scratch = Cycle::project("");
    scratch.write("docs/implementation_plans/_adhoc/remember-me/plan.md", "# Plan\n");
    let cycle = Cycle::of(scratch, "stream-dag/api-design", &[], 0);
    assert_eq!(cycle.inputs("api_designer"), ["plan.md"]);
}

#[test]
fn s3_18_tier_two_is_decided_and_logged_in_a_pipeline_and_asked_otherwise() {
    let logged = "backend) work; se se_multi_output.json ',\"autonomous_decisions\":[{\"tier\":2,\"question\":\"name\",\"decision\":\"end_others\",\"rationale\":\"as in the model\"}]'; fine;;";
    let cycle = Cycle::of(Cycle::project(logged), "stream-dag/quick-fix", &[], 0);
    let pipeline = cycle.scratch.prompt("backend", 1);
    assert!(
        pipeline.contains("log\n  `{\"tier\": 2") && pipeline.contains("you never take alone"),
        "{pipeline}"
    );
    assert_eq!(cycle.json("se_multi_output.json")["autonomous_decisions"][0]["tier"], 2);
    let broken = "backend) work; se se_multi_output.json ',\"autonomous_decisions\":[{\"tier\":3,\"question\":\"q\",\"decision\":\"d\",\"rationale\":\"r\"}]'; fine;;";
    let cycle = Cycle::of(Cycle::project(broken), "stream-dag/quick-fix", &[], 10);
    assert_eq!(cycle.scratch.count("backend"), 2, "tier 3 is not an agent's to log");
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", &["--profile", "interactive"], 10);
    cycle.answer("approval", "yes", 10);
    assert!(cycle.scratch.prompt("backend", 1).contains("ask shortly, then go on"));
}

#[test]
fn s3_19_the_reviewer_audits_what_was_decided_without_a_person() {
    let logged = "backend) work; se se_multi_output.json ',\"autonomous_decisions\":[{\"tier\":2,\"question\":\"name\",\"decision\":\"end_others\",\"rationale\":\"as in the model\"}]'; fine;;";
    let cycle = Cycle::of(Cycle::project(logged), "stream-dag/quick-fix", &[], 0);
    let prompt = cycle.scratch.prompt("review", 1);
    assert!(
        prompt.contains("[se_multi_output.json] tier 2: name → end_others (as in the model)"),
        "{prompt}"
    );
    let cycle = Cycle::built("", "", 10);
    let prompt = cycle.scratch.prompt("review", 1);
    assert!(
        prompt.contains("autonomous decisions are in") && prompt.contains("WS-1/se_multi_output.json"),
        "{prompt}"
    );
}

#[test]
fn s3_20_s3_46_a_question_has_context_options_and_a_recommendation() {
    let cases = "api_designer) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then ask; else api; fine; fi;;";
    let cycle = Cycle::of(Cycle::project(cases), "stream-dag/api-design", &[], 10);
    let asked = cycle.scratch.decision(&cycle.run, "D-1");
    let question = asked["question"].as_str().unwrap();
    assert!(question.contains("Which store?") && question.contains("A) Table — plain"), "{question}");
    assert_eq!(asked["answers"].as_array().unwrap().len(), 5, "{asked:#}");
    cycle.answer("D-1", "okay", 4);
    cycle.answer("D-1", "File", 0);
    assert!(cycle.scratch.prompt("api_designer", 2).contains("Answer: File"));
    let told = cycle.scratch.prompt("api_designer", 1);
    assert!(
        told.contains("ONE question")
            && told.contains("5 to 7 options")
            && told.contains("type hints")
            && told.contains("new abstraction"),
        "{told}"
    );
    let one = "api_designer) ask | grep -v '^[B-E])';;";
    let cycle = Cycle::of(Cycle::project(one), "stream-dag/api-design", &[], 10);
    assert_eq!(cycle.scratch.count("api_designer"), 2, "one option is no question");
}

#[test]
fn s3_26_feedback_is_sorted_counted_and_ends_with_what_to_do() {
    let cases = "review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then printf '{\"approved\": false, \"issues\": [{\"severity\":\"must\",\"location\":\"src/a.txt:42\",\"description\":\"wrong\",\"suggestion\":\"turn it round\",\"route\":\"backend\"},{\"severity\":\"should\",\"location\":\"src/a.txt:87\",\"description\":\"slow\"},{\"severity\":\"consider\",\"location\":\"src/a.txt:120\",\"description\":\"shorter\"}], \"summary\": \"Three.\"}'; mark found; await go; else pass; fi;;\nbackend) cp \"$GATEWRIGHT_RUN_DIR/review.md\" \"$HOME/review.md\" 2>/dev/null; standard;;";
    let scratch = Cycle::project(cases);
    scratch.mark("go");
    let cycle = Cycle::of(scratch, "stream-dag/quick-fix", &[], 0);
    let shown = std::fs::read_to_string(cycle.scratch.home().join("review.md")).unwrap();
    for part in [
        "Must Fix (Blocking)\n- [ ] `src/a.txt:42` — **Issue**: wrong\n  **Fix**: turn it round",
        "Should Fix (Important)\n- [ ] `src/a.txt:87`",
        "Consider (Optional)\n- [ ] `src/a.txt:120` — **Suggestion**: shorter",
        "Review: 1 blocking | 1 important | 1 suggestions",
        "Action: [Fix blocking and re-review]",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let last = cycle.scratch.published(&cycle.run, "review.md").unwrap();
    assert!(last.contains("Action: [Ready to proceed]"), "{last}");
    assert_eq!(cycle.scratch.count("backend"), 2, "only `must` sends it back, once");
}

fn handoff(prompt: &str) -> serde_json::Value {
    let rest =
        prompt.split("## Handoff\n```json\n").nth(1).unwrap_or_else(|| panic!("no handoff in {prompt}"));
    serde_json::from_str::<serde_json::Value>(rest.split("\n```").next().unwrap()).unwrap()["handoff"].clone()
}

#[test]
fn s3_35_a_pipeline_hands_off_with_all_its_fields() {
    let cycle = Cycle::built("", "", 10);
    let given = handoff(&cycle.scratch.prompt("domain_expert", 1));
    assert_eq!(
        (&given["from_agent"], &given["to_agent"], &given["status"]),
        (&"tpm".into(), &"domain_expert".into(), &"complete".into())
    );
    assert_eq!(given["branch"], "main");
    for key in ["files_modified", "decisions_made", "blocking_issues"] {
        assert!(given[key].is_array(), "{key}: {given:#}");
    }
    for key in ["jira_issue", "plan_path", "output_json"] {
        assert!(given["context_keys"][key].is_string(), "{key}: {given:#}");
    }
    let later = handoff(&cycle.scratch.prompt("impl_planner", 1));
    assert_eq!(later["decisions_made"][0]["decision"], "approved", "{later:#}");
    // Each from who was before it, with a file that is there.
    for (step, from, output) in [
        ("tpm", "user", ""),
        ("domain_expert", "tpm", "spec_output.json"),
        ("impl_planner", "domain_modeller", "domain_model.json"),
        ("streams/WS-1/backend", "impl_planner", "plan_output.json"),
        ("streams/WS-1/test", "software_engineer_backend", "WS-1/se_multi_output.json"),
        ("review", "test_writer", "plan_output.json"),
    ] {
        let given = handoff(&cycle.scratch.prompt(step, 1));
        assert_eq!(given["from_agent"], from, "{step}: {given:#}");
        let named = given["context_keys"]["output_json"].as_str().unwrap().to_owned();
        assert!(named.ends_with(output) && named.is_empty() == output.is_empty(), "{step}: {given:#}");
        // From a worktree too.
        let path = std::path::Path::new(&named);
        assert!(named.is_empty() || path.is_absolute() && path.is_file(), "{step}: {named}");
    }
    // Where nobody modelled the domain, the expert hands on.
    let clear = "tpm) spec ',\"cynefin\":\"clear\",\"entities\":2'; fine;;";
    let cycle = Cycle::planned("", clear, &[]);
    let given = handoff(&cycle.scratch.prompt("impl_planner", 1));
    assert_eq!(given["from_agent"], "domain_expert", "{given:#}");
}

#[test]
fn s3_48_who_hands_off_in_a_quick_fix_is_who_implemented_it() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", &["--profile", "frontend"], 0);
    let given = handoff(&cycle.scratch.prompt("test", 1));
    assert_eq!(given["from_agent"], "software_engineer_frontend", "{given:#}");
    let named = given["context_keys"]["output_json"].as_str().unwrap();
    assert!(named.ends_with("/se_frontend_output.json"), "{given:#}");
    let given = handoff(&cycle.scratch.prompt("review", 1));
    assert_eq!(given["from_agent"], "test_writer", "{given:#}");
    assert!(given["context_keys"]["output_json"].as_str().unwrap().ends_with("/se_frontend_output.json"));
}

#[test]
fn a_projects_own_definition_may_spell_a_role_with_hyphens() {
    let scratch = Cycle::project("");
    scratch.write(
        ".claude/agents/software-engineer-backend.md",
        "---\nname: software-engineer-backend\n---\nTabs, never spaces.\n",
    );
    scratch.write(".claude/agents/test-writer.md", "---\nname: test-writer\n---\nOne assertion a test.\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-q", "-m", "agents"]);
    let cycle = Cycle::of(scratch, "stream-dag/quick-fix", &[], 0);
    assert!(cycle.scratch.prompt("backend", 1).contains("Tabs, never spaces."));
    assert!(cycle.scratch.prompt("test", 1).contains("One assertion a test."));
    assert!(!cycle.scratch.prompt("review", 1).contains("Tabs"));
}

#[test]
fn s3_26_a_content_reviewer_is_told_of_one_reply_only() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/build", &[], 10);
    cycle.answer("G1", "approved", 10);
    cycle.answer("G2", "approved", 10);
    let told = cycle.scratch.prompt("content_review", 1);
    assert!(told.contains("One JSON object") && !told.contains("audit-findings"), "{told}");
    assert_eq!(handoff(&told)["from_agent"], "meta_reviewer");
}

#[test]
fn s3_48_a_chain_hands_off_and_a_single_agent_does_not() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", &["--profile", "interactive"], 10);
    cycle.answer("approval", "yes", 10);
    assert!(!cycle.scratch.prompt("backend", 1).contains("## Handoff"), "one agent and a person");
    cycle.answer("implemented", "continue", 10);
    assert_eq!(handoff(&cycle.scratch.prompt("test", 1))["from_agent"], "software_engineer_backend");
    cycle.answer("tested", "continue", 10);
    let given = handoff(&cycle.scratch.prompt("review", 1));
    assert_eq!(given["from_agent"], "test_writer");
    assert!(given["context_keys"].is_object());
    assert!(cycle.scratch.prompt("review", 1).contains("Name the same `context_keys`"));
}

#[test]
fn s3_16_a_completion_has_its_four_parts_and_blocked_pauses() {
    let cases = "domain_expert) expert; if [ $GATEWRIGHT_ATTEMPT = 1 ]; then printf '> Looked.\\n>\\n> **Output**: none\\n> **Status**: complete\\n'; else fine; fi;;\ndomain_modeller) say blocked 'Two meanings.' none 'order or invoice?';;";
    let cycle = Cycle::starts(cases, &[], 11);
    assert_eq!(cycle.scratch.count("domain_expert"), 2, "without its blocking issues it is none");
    assert!(cycle.scratch.prompt("domain_expert", 2).contains("Blocking issues"));
    let (_, message) = cycle.scratch.blocked_by(&cycle.run);
    assert!(message.contains("Two meanings.") && message.contains("order or invoice?"), "{message}");
    assert_eq!(cycle.scratch.step_state(&cycle.run, "g1"), "pending");
}

#[test]
fn s3_22_a_reviewer_writes_no_code_and_a_tester_none_of_production() {
    let cases = "streams/WS-1/test) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo x > src/production.txt; fine; else git checkout -q . ; git clean -fdq src; standard; fi;;\nreview) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo y >> src/a.txt; pass; else git checkout -q .; pass; fi;;";
    let cycle = Cycle::built("", cases, 10);
    assert_eq!((cycle.scratch.count("streams/WS-1/test"), cycle.scratch.count("review")), (2, 2));
    assert!(cycle.scratch.prompt("streams/WS-1/test", 2).contains("src/production.txt"));
    assert!(cycle.scratch.prompt("review", 2).contains("src/a.txt"));
    assert_eq!(cycle.scratch.step_state(&cycle.run, "g4"), "waiting");
}

#[test]
fn s3_26_a_reviewer_is_asked_in_the_words_of_the_method_and_told_what_it_found_before() {
    let once = "review) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then finds must 'no lock'; else pass; fi;;";
    let cycle = Cycle::built("", once, 10);
    let asked = cycle.scratch.prompt("review", 1);
    let form = asked.split("## Output\n").nth(1).unwrap();
    for part in
        ["\"must | should | consider\"", "\"route\": \"backend | frontend | tests\"", "\"suggestion\""]
    {
        assert!(form.contains(part), "{part}: {form}");
    }
    assert!(!form.contains("blocker") && !asked.contains("in the round before"), "{asked}");
    let again = cycle.scratch.prompt("review", 2);
    assert!(
        again.contains("in the round before") && again.contains("- [must] src/a.txt:1: no lock"),
        "{again}"
    );
}

#[test]
fn s3_19_what_was_decided_alone_is_where_the_reviewer_is_told() {
    let looks = r#"review) file=$(grep -o '[^ ]*se_multi_output.json' "$HOME/prompts/$tag.1" | head -1); cp "$file" "$HOME/audited"; pass;;"#;
    let cycle = Cycle::built("", looks, 10);
    let audited = std::fs::read_to_string(cycle.scratch.home().join("audited")).unwrap();
    assert!(audited.contains("requirements_implemented"), "{audited}");
}
