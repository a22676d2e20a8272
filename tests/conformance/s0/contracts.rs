//! The twelve reports: what each must hold, and that one which does not is not accepted.

use std::path::Path;

use super::chain::{Chain, REPORTS, REVIEWS};

/// A reviewer that objects once, so that there is a fix and a second review.
const ONE_ROUND: &str =
    "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;";

/// Tests that are green when the file is there, and say how many there were.
const GREEN: &str = "test=if test -e src/green; then echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; else echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 1; fi";

#[test]
fn s0_07_a_finished_run_has_the_standard_reports_under_their_names() {
    let chain = Chain::runs(&[], ONE_ROUND, 0);
    let folder = chain.scratch.run_dir(&chain.run);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "md") && name != "summary.md")
        .collect();
    names.sort();
    let mut wanted: Vec<String> = REPORTS.iter().map(|(name, _)| format!("{name}.md")).collect();
    wanted.sort();
    assert_eq!(names, wanted);
    assert!(folder.join("loop-iterations/tests-review-fix-1.md").is_file());
}

#[test]
fn s0_15_every_report_has_its_header() {
    let mut broken: Vec<(&str, &str, String, String)> = Vec::new();
    for (name, _) in REPORTS {
        for field in ["Status", "Agent", "Input Files"] {
            let old = match field {
                "Status" => "**Status:**",
                "Agent" => "**Agent:**",
                _ => "**Input Files:**",
            };
            let sentence = format!("{name}.md, header: expected a header line `**{field}:**");
            broken.push((name, old, format!("{field} was"), sentence));
        }
        let sentence = format!("{name}.md, line 5: expected a header line `**Timestamp:** (an ISO 8601 time");
        broken.push((name, "2026-03-04T10:15:00Z", "yesterday".to_owned(), sentence));
        let sentence = format!("{name}.md, title: expected `# ");
        broken.push((name, "# ", "# About the ".to_owned(), sentence));
    }
    let broken: Vec<(&str, &str, &str, &str)> = broken
        .iter()
        .map(|(name, old, new, sentence)| (*name, *old, new.as_str(), sentence.as_str()))
        .collect();
    Chain::refuses(&broken, "");
}

#[test]
fn s0_16_summary_handoff_and_modified_files_stand_where_their_template_has_them() {
    let six = "## Summary\n- a\n- b\n- c\n- d\n- e\n- f\n";
    let mut broken = vec![
        ("plan", "## Summary\n", six, "1 to 5 bullets, found 7"),
        (
            "implementation",
            "## Files Modified",
            "## Files",
            "implementation.md, headings: expected a section `## Files Modified`",
        ),
        (
            "refactoring",
            "## Files Modified",
            "## Files",
            "refactoring.md, headings: expected a section `## Files Modified`",
        ),
        (
            "documentation",
            "## Files Modified",
            "## Files",
            "documentation.md, headings: expected a section `## Files Modified`",
        ),
        ("implementation", "- `src/session.txt` - the route\n", "- the route\n", "the file that it is about"),
    ];
    let sentences: Vec<(String, String)> = REPORTS
        .iter()
        .map(|(name, _)| {
            let sentence = |heading: &str| format!("{name}.md, headings: expected a section `## {heading}`");
            (sentence("Handoff Notes"), sentence("Summary"))
        })
        .collect();
    for ((name, _), (handoff, summary)) in REPORTS.iter().zip(&sentences) {
        broken.push((name, "## Handoff Notes", "## Later", handoff));
        broken.push((name, "## Summary", "## Short", summary));
    }
    broken.push((
        "fix",
        "## Handoff Notes",
        "## Later",
        "tests-review-fix-1.md, headings: expected a section `## Handoff Notes`",
    ));
    let chain = Chain::refuses(&broken, ONE_ROUND);
    for name in ["loop-iterations/tests-review-fix-1.md", "loop-iterations/tests-review-review-2.md"] {
        assert!(!chain.file(name).contains("## Summary"), "{name}");
    }
}

#[test]
fn s0_17_who_makes_says_done_and_who_judges_says_what_it_thinks() {
    let sentences: Vec<String> = REPORTS
        .iter()
        .map(|(name, _)| {
            let words = if REVIEWS.contains(name) { "PASS, PARTIAL, FAIL" } else { "DONE" };
            format!("{name}.md, line 3: expected a header line `**Status:** (one of {words})`")
        })
        .collect();
    let broken: Vec<(&str, &str, &str, &str)> = REPORTS
        .iter()
        .zip(&sentences)
        .map(|((name, _), sentence)| {
            let (old, new) = if REVIEWS.contains(name) { ("PASS", "DONE") } else { ("DONE", "PASS") };
            (*name, old, new, sentence.as_str())
        })
        .collect();
    let chain = Chain::refuses(&broken, "");
    for (step, words) in
        [("plan", "STATUS: DONE | ERROR"), ("acceptance", "STATUS: PASS | PARTIAL | FAIL | ERROR")]
    {
        assert!(chain.scratch.prompt(step, 1).contains(words), "{step}");
    }
}

#[test]
fn s0_18_a_plan_has_numbered_requirements_and_steps_with_their_place() {
    let missing = |heading: &str| format!("plan.md, headings: expected a section `## {heading}`");
    let sections = ["Requirements", "Implementation Plan", "Affected Files", "Risks & Open Questions"];
    let sentences = sections.map(missing);
    let headings = sections.map(|heading| format!("## {heading}"));
    let mut broken: Vec<(&str, &str, &str, &str)> = headings
        .iter()
        .zip(&sentences)
        .map(|(heading, sentence)| ("plan", heading.as_str(), "## Other", sentence.as_str()))
        .collect();
    broken.extend([
        (
            "plan",
            "1. REQ-1: A user can end all other sessions.\n2. REQ-2:",
            "1. All.\n2.",
            "id of the form `REQ-n`",
        ),
        ("plan", "### Test Steps", "### Steps", "a section `### Test Steps`"),
        ("plan", "### Implementation Steps", "### Steps", "a section `### Implementation Steps`"),
        ("plan", ", in `tests/session.txt`", "", "`Revoking ends the others`"),
        ("plan", ", in `src/session.txt`", "", "`The route`"),
    ]);
    Chain::refuses_and_ends(&broken, "tests-design) brief ERROR;;", 11);
}

#[test]
fn s0_19_s0_61_a_test_design_shows_coverage_red_and_what_it_left_out() {
    let section = |name: &str| format!("tests-design.md, headings: expected a section `## {name}`");
    let (coverage, files, red) =
        (section("Requirements Coverage"), section("Test Files Modified"), section("RED Stage Verification"));
    Chain::refuses_and_ends(
        &[
            ("tests-design", "## Requirements Coverage", "## Other", &coverage),
            ("tests-design", "## Test Files Modified", "## Other", &files),
            ("tests-design", "## RED Stage Verification", "## Other", &red),
            (
                "tests-design",
                "| Test Name |",
                "| Name |",
                "the columns Requirement, Test File, Test Name, Coverage",
            ),
            ("tests-design", "### Expected Failures", "### Failures", "a section `### Expected Failures`"),
            ("tests-design", "| Full |", "| All |", "one of Full, Partial in the column Coverage"),
            ("tests-design", "```bash\nmake test\n```\n", "", "expected a code block"),
            ("tests-design", "Red: both fail.", "Not run; they may pass already.", "no `not run`"),
            (
                "tests-design",
                "- `tests/session.txt` - 2 tests added",
                "- 2 tests added",
                "the file that it is about",
            ),
            ("tests-design", "- Edge cases covered: a single session\n", "", "the text `edge cases covered`"),
            ("tests-design", "NOT covered (intentional)", "left out", "the text `edge cases not covered`"),
            ("plan", "- Key patterns to follow: one handler a file\n", "", "the text `pattern`"),
        ],
        "tests-review) brief ERROR;;",
        11,
    );
}

#[test]
fn s0_21_a_test_review_says_what_is_covered_what_blocks_and_what_may_flake() {
    let section = |name: &str| format!("tests-review.md, headings: expected a section `## {name}`");
    let names = [
        "Requirements Coverage Checklist",
        "Blocking Issues",
        "Non-Blocking Improvements",
        "Flake Risk Assessment",
    ];
    let (headings, sentences) = (names.map(|name| format!("## {name}")), names.map(section));
    let mut broken: Vec<(&str, &str, &str, &str)> = headings
        .iter()
        .zip(&sentences)
        .map(|(heading, sentence)| ("tests-review", heading.as_str(), "## Other", sentence.as_str()))
        .collect();
    broken.extend([
        ("tests-review", "- Verdict: PASS", "- Fine", "the text `verdict`"),
        ("tests-review", "| ✅ |", "| ok |", "one of ✅, ⚠️, ❌ in the column Status"),
        ("tests-review", "| ✅ |", "| ❌ |", "one of ✅, ⚠️ in the column Status"),
        ("tests-review", "Low: no clock.", "Who knows.", "one of Low, Medium, High"),
        (
            "tests-review",
            "## Blocking Issues\n- None",
            "## Blocking Issues\n1. **No test**\n   - Location: `tests/a:1`",
            "`- Problem: …`, `- Impact: …`, `- Fix: …` under the item",
        ),
    ]);
    Chain::refuses_and_ends(&broken, "implementation) brief ERROR;;", 11);
}

#[test]
fn s0_22_an_implementation_logs_each_step_and_is_done_only_when_it_is_green() {
    let broken = [
        ("implementation", "## Implementation Log", "## Log", "a section `## Implementation Log`"),
        ("implementation", "## Test Results", "## Results", "a section `## Test Results`"),
        ("implementation", "- Files: ", "- Where: ", "`- Files: …` under the item"),
        ("implementation", "- Changes: ", "- What: ", "`- Changes: …` under the item"),
        ("implementation", "- Test run: ", "- Proof: ", "`- Test run: …` under the item"),
        ("implementation", "`make test` → PASS", "`make test` → FAIL", "no `→ FAIL`"),
        ("implementation", "- Potential performance concern: none\n", "", "the text `performance concern`"),
        ("implementation", "- Potential security concern: none\n", "", "the text `security concern`"),
    ];
    let chain = Chain::refuses_and_ends(&broken, "stabilization) brief ERROR;;", 11);
    assert!(chain.scratch.prompt("implementation", 1).to_lowercase().contains("green"));
    // Where the engine runs the tests, a word of the agent is not enough.
    let flags = ["--profile", "tested", "--set", GREEN];
    let lies = Chain::runs(&flags, "", 11);
    assert_eq!(lies.scratch.count("stabilization"), 0, "nobody goes on from red");
    assert_eq!(lies.scratch.step(&lies.run, "implementation")["failure"]["class"], "test");
    let works = "implementation) : > src/green; standard;;";
    let chain = Chain::runs(&flags, works, 0);
    assert_eq!(chain.scratch.step_state(&chain.run, "implementation"), "passed");
}

#[test]
fn s0_23_stabilization_says_what_ran_what_failed_and_what_is_missing() {
    let section = |name: &str| format!("stabilization.md, headings: expected a section `## {name}`");
    let names = ["Broader Test Run", "Additional Tests Needed", "Regression Risk Assessment"];
    let (headings, sentences) = (names.map(|name| format!("## {name}")), names.map(section));
    let mut broken: Vec<(&str, &str, &str, &str)> = headings
        .iter()
        .zip(&sentences)
        .map(|(heading, sentence)| ("stabilization", heading.as_str(), "## Other", sentence.as_str()))
        .collect();
    broken.extend([
        ("stabilization", "- Verdict: PASS\n", "", "the text `verdict`"),
        ("stabilization", "- Broader test scope: everything that knows sessions\n", "", "the text `scope`"),
        ("stabilization", "- Additional tests needed: NO\n", "", "the text `additional tests needed`"),
        ("stabilization", "### Results", "### Numbers", "a section `### Results`"),
        ("stabilization", "- Total: 20 tests\n", "", "the text `Total:`"),
        ("stabilization", "- Passed: 20\n", "", "the text `Passed:`"),
        ("stabilization", "- Failed: 0\n", "- ok\n", "the text `Failed:`"),
        ("stabilization", "- Failed: 0\n", "- Failed: 3\n", "one of 0, none after `Failed:`"),
        ("stabilization", "Needed\n- NO", "Needed\n- perhaps", "one of YES, NO"),
        ("stabilization", "- Low\n", "- Tiny\n", "one of Low, Medium, High"),
    ]);
    Chain::refuses_and_ends(&broken, "acceptance) brief ERROR;;", 11);
}

#[test]
fn s0_24_who_accepts_has_no_requirement_that_is_not_met() {
    let broken = [
        ("acceptance", "gets 401 | ✅ |", "gets 401 | ❌ |", "one of ✅, ⚠️ in the column Status"),
        ("acceptance", "## Requirements Checklist", "## List", "a section `## Requirements Checklist`"),
        ("acceptance", "| Evidence |", "| Proof |", "the columns ID, Requirement, Status, Evidence"),
        ("acceptance", "gets 401 | ✅ |", "gets 401 | ok |", "one of ✅, ⚠️, ❌ in the column Status"),
    ];
    let gap = ["Requirement: REQ-2", "Expected: 401", "Actual: 200", "Severity: BLOCKING"];
    let more = entries(
        "## Functional Gaps\n",
        &gap,
        &[("BLOCKING", "BAD", "BLOCKING, NON-BLOCKING after `Severity:`")],
    );
    let broken: Vec<(&str, &str, &str, &str)> =
        broken.into_iter().chain(of("acceptance", "## Functional Gaps\n- None", &more)).collect();
    Chain::refuses_and_ends(&broken, "performance-security/*) brief ERROR;;", 11);
    // Who objects may list it.
    let objects = "acceptance) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no 401'; sed -i 's/401 | ✅/401 | ❌/' \"$GATEWRIGHT_OUT/acceptance.md\"; else standard; fi;;";
    let chain = Chain::runs(&[], objects, 0);
    assert!(chain.file("acceptance.md").contains("401 | ❌"));
}

/// A section with one entry that lacks one of its fields, for each of them, or has a value that is none.
fn entries(heading: &str, full: &[&str], values: &[(&str, &str, &str)]) -> Vec<(String, String)> {
    let entry = |lines: &[&str]| {
        let lines: String = lines.iter().map(|line| format!("   - {line}\n")).collect();
        format!("{heading}1. **The one**\n{lines}")
    };
    let mut texts: Vec<(String, String)> = Vec::new();
    for field in full {
        let kept: Vec<&str> = full.iter().copied().filter(|other| other != field).collect();
        let name = field.split(':').next().unwrap();
        texts.push((entry(&kept), format!("`- {name}: …` under the item `The one`")));
    }
    for (old, new, sentence) in values {
        texts.push((entry(full).replace(old, new), (*sentence).to_owned()));
    }
    texts
}

/// These as ways in which a report is broken.
fn of<'t>(
    report: &'t str,
    good: &'t str,
    texts: &'t [(String, String)],
) -> impl Iterator<Item = (&'t str, &'t str, &'t str, &'t str)> {
    texts.iter().map(move |(text, sentence)| (report, good, text.as_str(), sentence.as_str()))
}

#[test]
fn s0_26_s0_60_a_security_finding_has_place_kind_weight_risk_and_remedy_and_owasp_is_gone_through() {
    let finding =
        ["Location: `src/a:1`", "Category: Auth", "Severity: High", "Problem: p", "Risk: r", "Fix: f"];
    let severity = "one of Critical, High, Medium after `Severity:`";
    let blocking = entries("### Blocking Vulnerabilities\n", &finding, &[("High", "Awful", severity)]);
    let hardening = ["Location: `src/a:1`", "Category: Auth", "Suggestion: s"];
    let hardening = entries("### Non-Blocking Hardening\n", &hardening, &[]);
    let section = |name: &str| format!("a section `### {name}`");
    let (vulnerabilities, hardened) =
        (section("Blocking Vulnerabilities"), section("Non-Blocking Hardening"));
    let mut broken = vec![
        ("security", "- Verdict: PASS\n", "", "the text `verdict`"),
        ("security", "## Findings", "## Found", "a section `## Findings`"),
        ("security", "### Blocking Vulnerabilities", "### Holes", vulnerabilities.as_str()),
        ("security", "### Non-Blocking Hardening", "### Also", hardened.as_str()),
        ("security", "## OWASP Top 10 Checklist", "## List", "a section `## OWASP Top 10 Checklist`"),
        ("security", "- [x] A07: looked at\n", "", "the text `A07`"),
        ("security", "- If PASS: refactoring\n", "", "the text `PASS`"),
    ];
    broken.extend(of("security", "### Blocking Vulnerabilities\n- None", &blocking));
    broken.extend(of("security", "### Non-Blocking Hardening\n- None", &hardening));
    Chain::refuses_and_ends(&broken, "refactoring) brief ERROR;;", 11);
}

#[test]
fn s0_28_s0_29_a_code_review_finding_has_place_kind_remedy_and_whom_it_goes_to() {
    let finding = ["Location: `src/a:1`", "Category: Style", "Problem: p", "Fix: f", "Route to: refactorer"];
    let category = "one of Architecture, Maintainability, Style, Tests after `Category:`";
    let blocking = entries("## Blocking Issues\n", &finding, &[("Style", "Beauty", category)]);
    let section = |name: &str| format!("code-review.md, headings: expected a section `## {name}`");
    let names = ["Blocking Issues", "Non-Blocking Suggestions", "Positive Observations"];
    let (headings, sentences) = (names.map(|name| format!("## {name}")), names.map(section));
    let mut broken: Vec<(&str, &str, &str, &str)> = headings
        .iter()
        .zip(&sentences)
        .map(|(heading, sentence)| ("code-review", heading.as_str(), "## Other", sentence.as_str()))
        .collect();
    broken.push(("code-review", "- Verdict: PASS\n", "", "the text `verdict`"));
    broken.extend(of("code-review", "## Blocking Issues\n- None", &blocking));
    Chain::refuses_and_ends(&broken, "documentation) brief ERROR;;", 11);
}

#[test]
fn s0_25_a_performance_finding_has_place_kind_cost_and_remedy() {
    let blocking = "### Blocking Issues\n- None";
    let issue = |fields: &str| format!("### Blocking Issues\n1. **A query per row**\n{fields}");
    let full = ["Location: `src/session.txt:1`", "Category: Database", "Problem: p", "Impact: i", "Fix: f"];
    let lines = |kept: &[&str]| kept.iter().map(|line| format!("   - {line}\n")).collect::<String>();
    let mut texts: Vec<(String, String)> = Vec::new();
    for field in full {
        let kept: Vec<&str> = full.into_iter().filter(|other| *other != field).collect();
        let name = field.split(':').next().unwrap();
        texts.push((issue(&lines(&kept)), format!("`- {name}: …` under the item `A query per row`")));
    }
    texts.push((
        issue(&lines(&full)).replace("Database", "Beauty"),
        "one of Algorithm, Database, Memory, I/O, Caching, Concurrency after `Category:`".to_owned(),
    ));
    let mut broken: Vec<(&str, &str, &str, &str)> = texts
        .iter()
        .map(|(text, sentence)| ("performance", blocking, text.as_str(), sentence.as_str()))
        .collect();
    broken.extend([
        (
            "performance",
            "## Findings",
            "## Found",
            "performance.md, headings: expected a section `## Findings`",
        ),
        (
            "performance",
            "   - Benefit: one scan less\n",
            "",
            "`- Benefit: …` under the item `Count from the index`",
        ),
        ("performance", "   - Suggestion: select the count\n", "", "`- Suggestion: …` under the item"),
    ]);
    Chain::refuses_and_ends(&broken, "refactoring) brief ERROR;;", 11);
}

#[test]
fn s0_27_a_refactoring_logs_its_steps_defers_what_is_large_and_stays_green() {
    let mut broken = vec![
        ("refactoring", "## Refactoring Log", "## Log", "a section `## Refactoring Log`"),
        (
            "refactoring",
            "## Follow-up Tasks (larger refactors for later)",
            "## Later",
            "`## Follow-up Tasks`",
        ),
        (
            "refactoring",
            "- Code quality improvements: one name\n",
            "- Done\n",
            "the text `quality improvements`",
        ),
    ];
    broken.extend([
        ("refactoring", "- Type: ", "- Kind: ", "`- Type: …` under the item"),
        ("refactoring", "- Files: ", "- Where: ", "`- Files: …` under the item"),
        ("refactoring", "- Before: ", "- Was: ", "`- Before: …` under the item"),
        ("refactoring", "- After: ", "- Is: ", "`- After: …` under the item"),
        ("refactoring", "- Test run: ", "- Proof: ", "`- Test run: …` under the item"),
        ("refactoring", "`make test` → PASS", "`make test` → FAIL", "no `→ FAIL`"),
    ]);
    Chain::refuses_and_ends(&broken, "code-review) brief ERROR;;", 11);
    let flags = ["--profile", "tested", "--set", GREEN];
    let breaks = "implementation) : > src/green; standard;;\nrefactoring) rm -f src/green; standard;;";
    let chain = Chain::runs(&flags, breaks, 11);
    assert_eq!(chain.scratch.step(&chain.run, "refactoring")["failure"]["class"], "test");
    assert_eq!(chain.scratch.count("code-review"), 0);
}

#[test]
fn s0_30_documentation_names_what_it_changed_and_touches_no_code() {
    Chain::refuses(
        &[
            ("documentation", "## Updates Made", "## Updates", "a section `## Updates Made`"),
            ("documentation", "- Section: ", "- Part: ", "`- Section: …` under the item `docs/api.md`"),
            ("documentation", "- Change: ", "- News: ", "`- Change: …` under the item `docs/api.md`"),
            (
                "documentation",
                "The documents match the code; no code was changed.",
                "Done.",
                "one of the texts `match the code`",
            ),
        ],
        "documentation) mkdir -p docs; echo Sessions > docs/api.md; standard;;",
    );
    let chain = Chain::runs(&[], "documentation) echo '// see docs' >> src/a.txt; standard;;", 11);
    let failure = chain.scratch.step(&chain.run, "documentation")["failure"].to_string();
    assert!(failure.contains("documentation-updater") && failure.contains("src/a.txt"), "{failure}");
}
