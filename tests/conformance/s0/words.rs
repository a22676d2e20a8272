//! What roles are told and how the run's own files speak: titles, briefs, handoffs, metadata.

use super::chain::{Chain, REPORTS, REVIEWS};

#[test]
fn s0_56_metadata_says_completed_and_when_only_in_the_end() {
    let chain = Chain::runs(&[], "", 0);
    let last = std::fs::read_to_string(chain.scratch.home().join("seen/documentation.json")).unwrap();
    let before: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(before["status"], "in_progress");
    assert!(before.get("completedAt").is_none(), "{before}");
    let after: serde_json::Value = serde_json::from_str(&chain.file("metadata.json")).unwrap();
    assert_eq!(after["status"], "completed");
    let ended = after["completedAt"].as_str().unwrap();
    assert!(ended.ends_with('Z') && ended > after["started"].as_str().unwrap(), "{after}");
    // A run that halted has not completed.
    let chain = Chain::runs(&[], "plan) brief ERROR;;", 11);
    assert!(chain.file("metadata.json").contains("\"in_progress\""));
}

#[test]
fn s0_58_titles_and_agents_are_those_of_the_step() {
    let titles = [
        ("plan", "Planning"),
        ("tests-design", "Test Design"),
        ("tests-review", "Test Review"),
        ("implementation", "Implementation"),
        ("stabilization", "Stabilization"),
        ("acceptance", "Acceptance Review"),
        ("performance", "Performance Review"),
        ("security", "Security Review"),
        ("refactoring", "Refactoring"),
        ("code-review", "Code Review"),
        ("documentation", "Documentation Update"),
    ];
    let agents = [
        ("plan", "plan-creator"),
        ("tests-design", "automation-qa"),
        ("tests-review", "tests-reviewer"),
        ("implementation", "backend-developer"),
        ("stabilization", "automation-qa"),
        ("acceptance", "acceptance-reviewer"),
        ("performance", "performance-specialist"),
        ("security", "application-security-specialist"),
        ("refactoring", "refactorer"),
        ("code-review", "code-reviewer"),
        ("documentation", "documentation-updater"),
    ];
    let mut broken: Vec<(&str, String, &str, String)> = Vec::new();
    for ((name, title), (_, agent)) in titles.into_iter().zip(agents) {
        broken.push((
            name,
            format!("# {title} Report"),
            "# Report",
            format!("title: expected `# {title} Report`"),
        ));
        let sentence = format!("{name}.md, line 4: expected a header line `**Agent:** (one of {agent}");
        broken.push((name, format!("**Agent:** {agent}"), "**Agent:** somebody", sentence));
    }
    broken.push((
        "fix",
        "# STEP Fix Report".to_owned(),
        "# Report",
        "title: expected `# {} Fix Report`".to_owned(),
    ));
    broken.push((
        "re-review",
        "# STEP Re-Review Report".to_owned(),
        "# Report",
        "title: expected `# {} Re-Review Report`".to_owned(),
    ));
    let broken: Vec<(&str, &str, &str, &str)> = broken
        .iter()
        .map(|(name, old, new, sentence)| (*name, old.as_str(), *new, sentence.as_str()))
        .collect();
    let once = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;";
    Chain::refuses(&broken, once);
}

#[test]
fn s0_59_the_brief_of_every_step_has_its_own_content() {
    let chain = Chain::runs(&[], "", 0);
    for (step, words) in [
        ("plan", &["requirements", "steps", "risk"][..]),
        ("tests-design", &["tests", "files", "RED", "command"]),
        ("tests-review", &["requirements", "block", "verdict"]),
        ("implementation", &["files", "tests pass", "stabilization"]),
        ("stabilization", &["passed", "failed", "YES or NO", "verdict"]),
        ("acceptance", &["requirements", "block", "verdict"]),
        ("performance-security/performance", &["how many block", "how many do not", "verdict"]),
        ("performance-security/security", &["how many block", "how many do not", "verdict"]),
        ("code-review", &["how many block", "how many do not", "verdict"]),
        ("refactoring", &["steps", "files", "tests pass"]),
        ("documentation", &["how many documents", "which"]),
    ] {
        let prompt = chain.scratch.prompt(step, 1);
        let part = prompt.split("## Your reply\n").nth(1).unwrap_or_else(|| panic!("{step}: {prompt}"));
        let part = part.split("\n## ").next().unwrap().replace('\n', " ");
        for word in words {
            assert!(part.contains(word), "{step}: {word}\n{part}");
        }
    }
}

#[test]
fn s0_61_handoffs_say_what_comes_next() {
    let sentences: Vec<String> =
        REVIEWS.iter().map(|name| format!("{name}.md, ## Handoff Notes: expected the text `PASS`")).collect();
    let mut broken: Vec<(&str, &str, &str, &str)> = REVIEWS
        .iter()
        .zip(&sentences)
        .map(|(name, sentence)| (*name, "- If PASS: ", "- Then: ", sentence.as_str()))
        .collect();
    broken.extend([
        (
            "plan",
            "- Key patterns to follow: one handler a file\n",
            "",
            "plan.md, ## Handoff Notes: expected the text `pattern`",
        ),
        ("implementation", "- Potential security concern: none\n", "", "the text `security concern`"),
        ("refactoring", "Code quality improvements: one name", "Done", "the text `quality improvements`"),
        (
            "documentation",
            "The documents match the code; no code was changed.",
            "Done.",
            "one of the texts `match the code`",
        ),
    ]);
    let chain = Chain::refuses(&broken, "");
    // Who repairs otherwise stands in the example that every reviewer is given.
    for (step, fixer) in [
        ("tests-review", "automation-qa"),
        ("stabilization", "backend-developer"),
        ("acceptance", "TDD loop"),
        ("performance-security/performance", "backend-developer"),
        ("performance-security/security", "backend-developer"),
        ("code-review", "goes where it is routed"),
    ] {
        let prompt = chain.scratch.prompt(step, 1);
        let handoff = prompt.split("## Handoff Notes\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(handoff.contains("On PASS") && handoff.contains(fixer), "{step}: {handoff}");
    }
}

/// The filled example that a role is given keeps the contract that the role is held to.
#[test]
fn what_a_prompt_shows_as_an_example_is_accepted() {
    let copies = r#"*) awk '/^````?markdown$/ {inside=1; fence=substr($0,1,length($0)-8); next} inside && $0==fence {exit} inside' "$prompt" > "$GATEWRIGHT_OUT/$file"
  if judges; then reply FAIL; else reply DONE; fi;;"#;
    let flags: Vec<String> = REVIEWS
        .iter()
        .map(|name| if ["performance", "security"].contains(name) { "performance-security" } else { name })
        .flat_map(|step| ["--set".to_owned(), format!("steps.{step}.rounds_max=1")])
        .collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let chain = Chain::start(Chain::project(copies), &flags, 10);
    loop {
        let status = chain.scratch.status(&chain.run);
        let open =
            status["decisions"].as_array().unwrap().iter().find(|one| one["status"] == "pending").cloned();
        let Some(open) = open else { break };
        let _ = chain.scratch.gatewright(&["answer", &chain.run, open["id"].as_str().unwrap(), "accept"]);
    }
    assert_eq!(chain.scratch.state(&chain.run), "done");
    let retried = chain.scratch.events_of(&chain.run, "step.retry.scheduled");
    assert!(retried.is_empty(), "{retried:#?}");
    assert!(
        REPORTS.iter().all(|(name, _)| chain.scratch.published(&chain.run, &format!("{name}.md")).is_some())
    );
}
