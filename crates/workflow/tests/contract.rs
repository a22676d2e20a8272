//! Contracts as people write them, against artifacts as agents write them.

use gatewright_workflow::{
    contract::{Contract, Level, Violation, check},
    yaml::parse_yaml_value,
};

const PLAN_CONTRACT: &str = r#"
markdown:
  title: "Planning Report"
  header: { Status: [DONE], Agent: any, Timestamp: iso8601, "Input Files": any }
  sections:
    Summary: { bullets: [1, 5] }
    Requirements: { ids: "REQ-{n}", min: 1 }
    Implementation Plan: { sections: { Test Steps: { items_min: 1 }, Implementation Steps: { items_min: 1 } } }
    Affected Files: {}
    Risk: { optional: true, one_of: [Low, Medium, High] }
    Coverage: { optional: true, columns: [Requirement, Test File], rows_min: 1 }
    Blocking Issues: { optional: true, fields: [Location, Problem, Fix] }
    Handoff Notes: { contains: [automation-qa] }
  order: true
"#;

const PLAN: &str = "# Planning Report

**Status:** DONE
**Agent:** plan-creator
**Timestamp:** 2026-01-02T03:04:05Z
**Input Files:** requirements.md

## Summary
- a greeting

## Requirements
1. REQ-1: greet
2. REQ-2: greet by name

## Implementation Plan

### Test Steps (for automation-qa)
1. test in tests/a.rs

### Implementation Steps
1. code in src/a.rs

## Affected Files
- `src/a.rs` - new

## Handoff Notes
- automation-qa starts
";

fn contract(text: &str) -> Contract {
    Contract::from_value(&parse_yaml_value(text).expect("YAML")).expect("a contract")
}

#[track_caller]
fn violations(contract: &Contract, name: &str, text: &str) -> Vec<Violation> {
    check(contract, name, text.as_bytes()).expect_err("a violation")
}

/// Asserts that changing the plan breaks it in exactly one way.
#[track_caller]
fn broken(from: &str, to: &str, level: Level, sentence: &str) {
    assert!(PLAN.contains(from), "{from}");
    let violations = violations(&contract(PLAN_CONTRACT), "plan.md", &PLAN.replace(from, to));
    let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(violations[0].level, level, "{found:?}");
    assert!(found[0].contains(sentence), "{sentence}\nnot in\n{}", found[0]);
}

#[test]
fn a_good_plan_holds() {
    assert_eq!(check(&contract(PLAN_CONTRACT), "plan.md", PLAN.as_bytes()), Ok(()));
    let crlf = PLAN.replace('\n', "\r\n");
    assert_eq!(check(&contract(PLAN_CONTRACT), "plan.md", crlf.as_bytes()), Ok(()));
}

#[test]
fn every_rule_breaks_with_one_sentence() {
    broken("# Planning Report", "# Plan", Level::Content, "expected `# Planning Report`, found `# Plan`");
    broken("**Status:** DONE", "**Status:** PASS", Level::Content, "line 3: expected a header line");
    broken("**Agent:** plan-creator\n", "", Level::Missing, "`**Agent:** …`");
    broken("plan-creator", "{agent-name}", Level::Content, "found `{agent-name}`");
    broken("2026-01-02T03:04:05Z", "yesterday", Level::Content, "ISO 8601");
    broken("- a greeting\n", "", Level::Empty, "## Summary: expected content");
    broken("- a greeting\n", &"- x\n".repeat(6), Level::Content, "expected 1 to 5 bullets, found 6");
    broken(
        "1. REQ-1: greet\n2. REQ-2: greet by name",
        "1. greet",
        Level::Content,
        "the form `REQ-n`, found no item",
    );
    broken("REQ-2", "REQ-1", Level::Content, "line 13: expected `REQ-1` for one item only");
    broken(
        "1. code in src/a.rs",
        "soon",
        Level::Content,
        "### Implementation Steps: expected at least 1 list items",
    );
    broken("### Implementation Steps", "### Steps", Level::Missing, "a section `### Implementation Steps`");
    broken("## Affected Files", "## Files", Level::Missing, "a section `## Affected Files`");
    broken("automation-qa starts", "go", Level::Content, "expected the text `automation-qa`");
}

#[test]
fn optional_sections_are_checked_when_there() {
    let add = |text: &str| PLAN.replace("## Handoff", &format!("{text}\n## Handoff"));
    let contract = contract(PLAN_CONTRACT);
    for good in [
        "## Risk\n- Low\n- because\n",
        "## Risk\n**High** – because\n",
        "## Risk\nRisk: medium\n",
        "## Coverage\n| Requirement | Test File | Name |\n|---|---|---|\n| REQ-1 | a | b |\n",
        "## Blocking Issues\n- None\n",
        "## Blocking Issues\n1. **A**\n   - Location: `a:1`\n   - Problem: p\n   - **Fix:** f\n",
    ] {
        assert_eq!(check(&contract, "plan.md", add(good).as_bytes()), Ok(()), "{good}");
    }
    for (bad, sentence) in [
        ("## Risk\n- Low/Medium/High\n", "one of Low, Medium, High"),
        ("## Risk\nnobody knows\n", "one of Low, Medium, High"),
        ("## Coverage\ntext\n", "found no table"),
        ("## Coverage\n| Requirement | File |\n|---|---|\n| a | b |\n", "the columns Requirement, Test File"),
        ("## Coverage\n| Requirement | Test File |\n|---|---|\n", "## Coverage: expected content"),
        (
            "## Blocking Issues\n1. **A**\n   - Location: `a:1`\n",
            "`- Problem: …`, `- Fix: …` under the item `A`",
        ),
    ] {
        let found = violations(&contract, "plan.md", &add(bad));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().contains(sentence), "{sentence} not in {}", found[0]);
    }
}

#[test]
fn order_and_all_violations_at_once() {
    let moved = PLAN
        .replace("## Handoff Notes\n- automation-qa starts\n", "")
        .replace("## Summary", "## Handoff Notes\n- automation-qa starts\n\n## Summary");
    let found = violations(&contract(PLAN_CONTRACT), "plan.md", &moved);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].to_string().contains("section `Handoff Notes` after section `Affected Files`"),
        "{}",
        found[0]
    );
    let found = violations(&contract(PLAN_CONTRACT), "plan.md", "# Other\n\ntext\n");
    assert_eq!(found.len(), 1 + 4 + 5, "{found:#?}");
}

#[test]
fn headings_in_code_are_no_headings() {
    broken("## Affected Files\n", "```\n## Affected Files\n```\n", Level::Missing, "`## Affected Files`");
}

#[test]
fn j_09_empty_artifacts_fail_with_their_level() {
    let plan = contract(PLAN_CONTRACT);
    for contract in [&plan, &Contract::any(), &contract("text: {min_bytes: 1}"), &contract("json: {}")] {
        assert_eq!(violations(contract, "plan.md", "")[0].level, Level::Empty);
        assert_eq!(
            violations(contract, "plan.md", "")[0].to_string(),
            "plan.md: expected content, found a file of 0 bytes"
        );
        assert_eq!(violations(contract, "plan.md", " \n\t\r\n")[0].level, Level::Empty);
    }
    for text in ["# Planning Report\n", "# A\n\n**Status:** DONE\n\n## Summary\n\n## Requirements\n\n"] {
        let found = violations(&plan, "plan.md", text);
        assert_eq!(found[0].level, Level::HeaderOnly, "{found:?}");
        // `any` promises no more than that there is something.
        assert_eq!(check(&Contract::any(), "plan.md", text.as_bytes()), Ok(()));
        assert_eq!(check(&Contract::any(), "plan.txt", text.as_bytes()), Ok(()));
    }
    assert_eq!(check(&Contract::any(), "plan.md", b"# A\n\n- b\n"), Ok(()));
    let small = contract("any: {}\nbytes_max: 3");
    assert!(violations(&small, "a", "four")[0].to_string().contains("at most 3 bytes, found 4 bytes"));
}

const TASKS: &str = r##"
yaml:
  type: object
  required: [tasks]
  properties:
    tasks: { type: array, minItems: 1, items: { $ref: "#/$defs/task" } }
  $defs:
    task: { type: object, required: [id, goal], properties: { id: { type: string, pattern: "^T-[0-9]{3}$" } } }
"##;

#[test]
fn data_is_checked_against_its_schema() {
    let tasks = contract(TASKS);
    assert_eq!(check(&tasks, "tasks.yaml", b"tasks:\n  - {id: T-001, goal: g}\n"), Ok(()));
    let found = violations(&tasks, "tasks.yaml", "tasks:\n  - {id: X, goal: g}\n  - {id: T-002}\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].place.as_str(), found[0].level), ("tasks.yaml, /tasks/0/id", Level::Content));
    assert_eq!((found[1].place.as_str(), found[1].level), ("tasks.yaml, /tasks/1", Level::Missing));
    assert!(found[1].to_string().contains("goal"), "{}", found[1]);
    assert!(violations(&tasks, "tasks.yaml", "tasks: [\n")[0].place.contains("line "));
    assert!(violations(&tasks, "tasks.yaml", "a: 1\na: 2\n")[0].to_string().contains("valid YAML"));
    let json = contract("json: {type: object, required: [a]}");
    assert_eq!(check(&json, "a.json", b"\xef\xbb\xbf{\"a\": 1}"), Ok(()));
    assert!(violations(&json, "a.json", "{\"a\": 1, \"a\": 2}")[0].to_string().contains("appears twice"));
    assert!(violations(&json, "a.json", "{\"a\": 1,}")[0].place.contains("line 1, column 9"));
    assert!(check(&json, "a.json", b"{\"a\": \"\xff\"}").unwrap_err()[0].to_string().contains("UTF-8"));
}

#[test]
fn nothing_is_ever_fetched() {
    for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json"] {
        let value = serde_json::json!({"json": {"$ref": reference}});
        let problems = Contract::from_value(&value).unwrap_err();
        assert!(problems[0].to_string().contains("not a usable JSON Schema"), "{reference}: {problems:?}");
    }
}

#[test]
fn mistakes_in_a_contract_are_all_named() {
    let text = "markdown:\n  headers: {}\n  header: {Status: done}\n  sections:\n    A: {bulets: [1, 2], ids: REQ, bullets: [3, 1], optional: 1}\n  order: [B]\nbytes_max: -1\nlimit: 2\n";
    let problems = Contract::from_value(&parse_yaml_value(text).unwrap()).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    for path in [
        "/limit",
        "/bytes_max",
        "/markdown/headers",
        "/markdown/header/Status",
        "/markdown/sections/A/bulets",
        "/markdown/sections/A/ids",
        "/markdown/sections/A/bullets",
        "/markdown/sections/A/optional",
        "/markdown/order",
    ] {
        assert!(paths.contains(&path), "{path} not in {paths:?}");
    }
    assert_eq!(paths.len(), 9, "{paths:?}");
    assert!(problems.iter().any(|p| p.message.contains("did you mean `bullets`?")), "{problems:?}");
    assert!(Contract::from_value(&serde_json::json!({"json": {}, "yaml": {}})).is_err());
    assert!(Contract::from_value(&serde_json::json!({"json": "schema.json"})).is_err());
    let value = serde_json::json!({"json": "schema.json"});
    assert_eq!(Contract::schema_name(&value), Some(("json", "schema.json")));
}

#[test]
fn a_contract_survives_being_written_down() {
    for text in [PLAN_CONTRACT, TASKS, "any", "text: {min_bytes: 3, contains: [x]}"] {
        let contract = contract(text);
        let written = serde_json::to_string(&contract).unwrap();
        assert_eq!(serde_json::from_str::<Contract>(&written).unwrap(), contract, "{written}");
    }
}

const COVERAGE: &str = r#"
markdown:
  sections:
    Coverage: { columns: [Requirement, Coverage], rows_min: 1, values: { Coverage: [Full, Partial] } }
    Checklist: { optional: true, columns: [Requirement, Status], values: { Status: ["✅", "⚠️", "❌"] } }
    Log: { optional: true, fields: [Type, Files], values: { Type: [Extract, Rename] } }
"#;

#[test]
fn s0_60_columns_and_fields_take_closed_values_only() {
    let contract = contract(COVERAGE);
    let report = |coverage: &str, status: &str, kind: &str| {
        format!(
            "# R\n\n## Coverage\n| Requirement | Coverage |\n|---|---|\n| REQ-1 | Full |\n| REQ-2 | {coverage} |\n\n\
             ## Checklist\n| Requirement | Status |\n|---|---|\n| REQ-1 | {status} |\n\n\
             ## Log\n- Step 1\n  - Type: {kind}\n  - Files: a.rs\n"
        )
    };
    for (coverage, status, kind) in [
        ("Partial", "✅", "Extract"),
        ("**full** – all of it", "⚠ nearly", "rename of two"),
        ("`Full`", "❌", "Extract"),
    ] {
        let text = report(coverage, status, kind);
        assert_eq!(check(&contract, "r.md", text.as_bytes()), Ok(()), "{text}");
    }
    for (coverage, status, kind, found) in [
        ("Mostly", "✅", "Extract", "Mostly"),
        ("Full/Partial", "✅", "Extract", "Full/Partial"),
        ("", "✅", "Extract", "column Coverage"),
        ("Full", "ok", "Extract", "ok"),
        ("Full", "✅", "Inline", "Inline"),
    ] {
        let all = violations(&contract, "r.md", &report(coverage, status, kind));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].to_string().contains(found), "{}", all[0]);
    }
}

#[test]
fn what_the_header_says_may_bind_the_rest() {
    let contract = contract(
        "markdown: { header: { Status: [PASS, FAIL] }, sections: { Results: {}, List: {} }, when: [{ header: { Status: [PASS] }, \
         sections: { Results: { says: { Failed: [\"0\", none] } }, List: { columns: [Status], values: { Status: [\"✅\"] } } } }] }",
    );
    let report = |status: &str, results: &str, sign: &str| {
        format!(
            "# R\n\n**Status:** {status}\n\n## Results\n{results}\n\n## List\n| Id | Status |\n|---|---|\n| 1 | {sign} |\n"
        )
    };
    for (status, results, sign) in [
        ("PASS", "- Failed: 0", "✅"),
        ("pass", "- **Failed:** 0 of 12", "✅ done"),
        ("PASS", "Total: 3, Passed: 3, Failed: 0/3", "✅"),
        ("PASS", "- Failed: none", "✅"),
        ("FAIL", "- Failed: 3", "❌"),
    ] {
        let text = report(status, results, sign);
        assert_eq!(check(&contract, "r.md", text.as_bytes()), Ok(()), "{text}");
    }
    for (results, sign, found) in [
        ("- Failed: 3", "✅", "`3`"),
        ("- **Failed:** 03", "✅", "`03`"),
        ("Total: 3, Passed: 2, failed: 1", "✅", "`1`"),
        ("- Failed: 0", "❌", "one of ✅ in the column Status"),
    ] {
        let all = violations(&contract, "r.md", &report("PASS", results, sign));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].to_string().contains(found), "{}", all[0]);
    }
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
    let wrong = "markdown: { header: { Status: any }, when: [{ header: { State: [x] }, sections: {} }, { sections: {} }, 1] }";
    let problems = Contract::from_value(&parse_yaml_value(wrong).unwrap()).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["/markdown/when/0/header/State", "/markdown/when/1", "/markdown/when/2"]);
}

#[test]
fn a_section_may_have_to_lack_texts_or_to_hold_one_of_several() {
    let contract =
        contract("markdown: { sections: { Log: { lacks: [\"→ FAIL\"], contains_any: [green, passes] } } }");
    let report = |log: &str| format!("# R\n\n## Log\n- {log}\n");
    for good in ["`make` → PASS, green", "it passes"] {
        assert_eq!(check(&contract, "r.md", report(good).as_bytes()), Ok(()), "{good}");
    }
    for (bad, found) in
        [("green: `make` → fail", "no `→ FAIL`"), ("done", "one of the texts `green`, `passes`")]
    {
        let all = violations(&contract, "r.md", &report(bad));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].to_string().contains(found), "{}", all[0]);
    }
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
}

#[test]
fn a_header_may_have_a_form_with_a_number() {
    let contract = contract("markdown: { header: { Iteration: \"Fix {n}\" } }");
    let report = |value: &str| format!("# R\n\n**Iteration:** {value}\n\n## A\n- b\n");
    for good in ["Fix 1", "Fix 12"] {
        assert_eq!(check(&contract, "r.md", report(good).as_bytes()), Ok(()), "{good}");
    }
    for bad in ["Fix", "Fix n", "1", "Fix 1 again", "Review 1"] {
        let all = violations(&contract, "r.md", &report(bad));
        assert!(all[0].to_string().contains("(of the form `Fix n`)"), "{bad}: {}", all[0]);
    }
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
}

#[test]
fn s0_38_s0_39_a_header_may_have_the_number_of_its_file() {
    let contract = contract("markdown: { header: { Iteration: \"Fix {file_n}\" } }");
    let report = |value: &str| format!("# R\n\n**Iteration:** {value}\n\n## A\n- b\n");
    let name = "loop-iterations/plan-fix-12.md";
    assert_eq!(check(&contract, name, report("Fix 12").as_bytes()), Ok(()));
    for bad in ["Fix 1", "Fix 2", "Fix 112", "Fix", "12"] {
        let all = violations(&contract, name, &report(bad));
        assert!(all[0].to_string().contains("(one of Fix 12)"), "{bad}: {}", all[0]);
    }
    // A file without a number has any.
    assert_eq!(check(&contract, "r.md", report("Fix 7").as_bytes()), Ok(()));
    assert!(!violations(&contract, "r.md", &report("Fix")).is_empty());
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
}

#[test]
fn s0_19_a_section_may_have_to_hold_a_code_block() {
    let contract = contract("markdown: { sections: { Run: { code: true } } }");
    let report = |body: &str| format!("# R\n\n## Run\n{body}\n");
    for good in ["```sh\nmake\n```", "Red.\n\n### How\n\n    make\n"] {
        assert_eq!(check(&contract, "r.md", report(good).as_bytes()), Ok(()), "{good}");
    }
    for bad in ["make", "`make`", "Red.\n```sh\n\n```"] {
        let all = violations(&contract, "r.md", &report(bad));
        assert!(all[0].to_string().contains("expected a code block"), "{bad}: {}", all[0]);
    }
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
}

#[test]
fn items_may_have_to_name_a_file() {
    let contract = contract("markdown: { sections: { Files: { paths: true } } }");
    let report = |item: &str| format!("# R\n\n## Files\n- `src/a.rs` - first\n- {item}\n");
    for good in
        ["`src/a.rs:12` - x", "README.md", "in docs/", "the route\n  - Files: `a.ts`", "None", ".gitignore"]
    {
        assert_eq!(check(&contract, "r.md", report(good).as_bytes()), Ok(()), "{good}");
    }
    for bad in ["the route", "several.", "version 1.2", "and so on..."] {
        let all = violations(&contract, "r.md", &report(bad));
        assert!(all[0].to_string().contains("the file that it is about"), "{bad}: {}", all[0]);
    }
    let kept = serde_json::to_value(&contract).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract);
}

#[test]
fn closed_values_belong_to_a_column_or_a_field() {
    let wrong = "markdown: { sections: { A: { columns: [X], values: { Y: [a], X: [] } } } }";
    let problems = Contract::from_value(&parse_yaml_value(wrong).unwrap()).unwrap_err();
    let mut paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/markdown/sections/A/values/X", "/markdown/sections/A/values/Y"]);
    // A contract is kept with the frozen plan and read back.
    let kept = serde_json::to_value(contract(COVERAGE)).unwrap();
    assert_eq!(serde_json::from_value::<Contract>(kept).unwrap(), contract(COVERAGE));
}
