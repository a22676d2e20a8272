//! Findings in the reviewer reports of S0 (S0-21, S0-24…26, S0-28, S0-39).
//!
//! Blocking items are at least high, whatever their Severity field says: the section blocks (S0-26
//! allows Medium there). Non-blocking ones are low, or what their Severity field says.

use gatewright_core::verdict::{Finding, Severity};

use super::{Field, Item, Report, Section, Table};
use crate::reply::{WordMap, scan::plain};

/// What a section's heading says of its items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blocking,
    NonBlocking,
    /// Each item has its own severity; without one it blocks.
    Judged,
    /// Holds no findings of its own, maybe below.
    Other,
    /// Speaks of findings that are settled; nothing below counts.
    Settled,
}

pub fn findings_of_report(report: &Report, words: &WordMap) -> Vec<Finding> {
    let mut findings = Vec::new();
    for section in &report.sections {
        collect(section, words, &mut findings);
    }
    findings
}

fn kind_of(heading: &str) -> Kind {
    let heading = heading.to_lowercase().replace('‑', "-");
    if heading.contains("addressed") || heading.contains("resolved") {
        Kind::Settled
    } else if heading.contains("non-blocking")
        || heading.contains("nonblocking")
        || heading.contains("non blocking")
    {
        Kind::NonBlocking
    } else if heading.contains("blocking") || heading.contains("blocker") {
        Kind::Blocking
    } else if heading.contains("functional gaps") || heading.contains("new issues") {
        Kind::Judged
    } else {
        Kind::Other
    }
}

fn collect(section: &Section, words: &WordMap, findings: &mut Vec<Finding>) {
    let kind = kind_of(&section.heading);
    match kind {
        Kind::Settled => {}
        Kind::Other => {
            for table in &section.body.tables {
                findings.extend(unresolved(table, words));
            }
            for child in &section.children {
                collect(child, words, findings);
            }
        }
        Kind::Blocking | Kind::NonBlocking | Kind::Judged => findings.extend(items_of(section, kind, words)),
    }
}

fn items_of(section: &Section, kind: Kind, words: &WordMap) -> Vec<Finding> {
    let mut findings = Vec::new();
    let items = &section.body.items;
    let only_fields = !items.is_empty() && items.iter().all(|item| known_field(item).is_some());
    if only_fields {
        // One finding whose fields are the bullets themselves.
        let fields = items.iter().filter_map(Item::as_field).collect();
        findings.push(finding("", fields, kind, words));
    } else {
        for item in items.iter().filter(|item| !says_none(item)) {
            findings.push(finding(item.title(), item.fields(), kind, words));
        }
    }
    for child in &section.children {
        // One heading per issue.
        let fields = child.body.items.iter().filter_map(Item::as_field).collect();
        findings.push(finding(&child.heading, fields, kind, words));
    }
    if items.is_empty() && section.children.is_empty() {
        let texts = section.body.paragraphs.iter().map(|paragraph| paragraph.text.as_str());
        for text in texts.filter(|text| !is_none(text)) {
            findings.push(finding(text, Vec::new(), kind, words));
        }
    }
    findings
}

fn known_field(item: &Item) -> Option<Field> {
    const KNOWN: &[&str] =
        &["location", "category", "severity", "problem", "impact", "risk", "fix", "route to"];
    item.as_field().filter(|field| KNOWN.contains(&field.name.to_lowercase().as_str()))
}

fn says_none(item: &Item) -> bool {
    item.children.is_empty() && is_none(&item.text)
}

/// `None`, `N/A`, `No blocking issues found.` and the like.
pub(crate) fn is_none(text: &str) -> bool {
    let text = plain(text).trim_matches(['(', ')', '.', '-', '–', '—', '_', ' ']).to_lowercase();
    let few_words = text.split_whitespace().count() <= 6;
    let starts = |word: &str| {
        text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    text.is_empty()
        || ["none", "n/a", "nothing", "none found"].contains(&text.as_str())
        || (few_words && (starts("none") || starts("no") && NO_WHAT.iter().any(|what| text.contains(what))))
}

const NO_WHAT: &[&str] = &[
    "issue",
    "finding",
    "gap",
    "vulnerabilit",
    "blocking",
    "blocker",
    "suggestion",
    "improvement",
    "problem",
];

fn finding(title: &str, fields: Vec<Field>, kind: Kind, words: &WordMap) -> Finding {
    let value = |names: &[&str]| {
        let found = names.iter().find_map(|name| fields.iter().find(|f| f.name.eq_ignore_ascii_case(name)));
        found.map(|field| field.value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let severity_word = value(&["Severity"]).map(|word| plain(&word).to_owned());
    let own = severity_word.as_deref().map(|word| words.severity_or_highest(word));
    let severity = match kind {
        Kind::Blocking => own.unwrap_or(Severity::High).max(Severity::High),
        Kind::NonBlocking => own.unwrap_or(Severity::Low),
        // Settled and Other sections have no items of their own.
        Kind::Judged | Kind::Other | Kind::Settled => own.unwrap_or(Severity::High),
    };
    let title = title.trim().trim_end_matches(':');
    let problem = value(&["Problem", "Suggestion", "Original Finding"]).or_else(|| {
        value(&["Actual"]).map(|actual| match value(&["Expected"]) {
            Some(expected) => format!("expected {expected}, actual {actual}"),
            None => actual,
        })
    });
    let mut text = match (title.is_empty(), problem) {
        (false, Some(problem)) => format!("{title}: {problem}"),
        (true, Some(problem)) => problem,
        (_, None) => title.to_owned(),
    };
    if let Some(impact) = value(&["Impact", "Risk"]) {
        text = format!("{text} (impact: {impact})");
    }
    let mut finding = Finding::new(severity, text);
    finding.severity_word = severity_word.unwrap_or_else(|| match kind {
        Kind::NonBlocking => "NON-BLOCKING".to_owned(),
        Kind::Blocking | Kind::Judged | Kind::Other | Kind::Settled => "BLOCKING".to_owned(),
    });
    finding.location = value(&["Location", "File", "Requirement"]);
    finding.category = value(&["Category"]);
    finding.fix = value(&["Fix", "Suggested Fix", "Recommendation", "Suggestion"]);
    finding.route = value(&["Route to", "Route"]);
    finding
}

/// Rows of a Previous Issues table that are not resolved keep their first severity (S0-39).
fn unresolved(table: &Table, words: &WordMap) -> Vec<Finding> {
    let column = |name: &str| table.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    let (Some(issue), Some(original), Some(current)) =
        (column("Issue"), column("Original Status"), column("Current Status"))
    else {
        return Vec::new();
    };
    let cell = |row: &[String], place: usize| row.get(place).cloned().unwrap_or_default();
    let open = table.rows.iter().filter(|row| {
        let now = cell(row, current).to_uppercase();
        !now.contains("RESOLVED") || now.contains("UNRESOLVED") || now.contains("NOT RESOLVED")
    });
    open.map(|row| {
        let word = cell(row, original);
        let mut finding = Finding::new(words.severity_or_highest(plain(&word)), cell(row, issue));
        plain(&word).clone_into(&mut finding.severity_word);
        let route = column("Route to").or_else(|| column("Route")).map(|at| cell(row, at));
        finding.route = route.map(|route| plain(&route).to_owned()).filter(|route| !route.is_empty());
        finding
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use gatewright_core::outcome::Outcome;

    use super::*;
    use crate::report::header_reply;

    fn findings(text: &str) -> Vec<Finding> {
        findings_of_report(&Report::parse(text.as_bytes()), &WordMap::default())
    }

    #[test]
    fn s0_28_blocking_issues_have_place_category_fix_and_route() {
        let text = "# Code Review Report\n\n**Status:** FAIL\n**Agent:** code-reviewer\n\n## Blocking Issues\n1. **Two jobs in one**\n   - Location: `src/file.ts:42`\n   - Category: Architecture\n   - Problem: does \"two\" things\n   - Fix: split it\n   - Route to: refactorer\n\n## Non-Blocking Suggestions\n- rename `x`\n\n## Positive Observations\n- good tests\n";
        let found = findings(text);
        assert_eq!(found.len(), 2);
        let first = &found[0];
        assert_eq!(first.severity, Severity::High);
        assert_eq!(first.problem, "Two jobs in one: does \"two\" things");
        assert_eq!(first.location.as_deref(), Some("src/file.ts:42"));
        assert_eq!(first.category.as_deref(), Some("Architecture"));
        assert_eq!(first.fix.as_deref(), Some("split it"));
        assert_eq!(first.route.as_deref(), Some("refactorer"));
        assert_eq!((found[1].severity, found[1].problem.as_str()), (Severity::Low, "rename x"));
        let header = header_reply(&Report::parse(text.as_bytes()), &WordMap::default()).unwrap();
        assert_eq!((header.outcome, header.word.as_str()), (Outcome::Failed, "FAIL"));
    }

    #[test]
    fn s0_26_a_blocking_vulnerability_blocks_whatever_its_severity() {
        let item = |severity: &str| {
            format!(
                "## Findings\n\n### Blocking Vulnerabilities\n1. **A**\n   - Severity: {severity}\n   - Problem: p\n   - Risk: r\n"
            )
        };
        assert_eq!(findings(&item("Medium"))[0].severity, Severity::High);
        assert_eq!(findings(&item("Critical"))[0].severity, Severity::Critical);
        assert_eq!(findings(&item("Apocalyptic"))[0].severity, Severity::Critical);
        assert_eq!(findings(&item("Medium"))[0].severity_word, "Medium");
        assert_eq!(findings(&item("High"))[0].problem, "A: p (impact: r)");
    }

    #[test]
    fn nothing_found_is_no_finding() {
        for none in
            ["- None", "None.", "- No blocking issues found.", "N/A", "*(none)*", "- none — all covered"]
        {
            assert_eq!(findings(&format!("## Blocking Issues\n{none}\n")), [], "{none}");
        }
        assert_eq!(findings("## Blocking Issues\n- No test covers the empty list\n").len(), 1);
    }

    #[test]
    fn s0_24_functional_gaps_carry_their_own_severity() {
        let text = "## Functional Gaps (if any)\n1. **Gap**\n   - Requirement: REQ-2\n   - Expected: a\n   - Actual: b\n   - Severity: NON-BLOCKING\n2. **Other**\n   - Requirement: REQ-3\n   - Severity: BLOCKING\n3. **Third**\n";
        let found = findings(text);
        let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Low, Severity::High, Severity::High]);
        assert_eq!(found[0].problem, "Gap: expected a, actual b");
        assert_eq!(found[0].location.as_deref(), Some("REQ-2"));
    }

    #[test]
    fn s0_39_unresolved_issues_stay_and_fixed_ones_do_not_count() {
        let text = "# Re-Review\n## Previous Issues Status\n| Issue | Original Status | Current Status | Notes |\n|---|---|---|---|\n| one | BLOCKING | ✅ RESOLVED | |\n| two | BLOCKING | ⚠️ PARTIAL | |\n| three | NON-BLOCKING | ⏸️ DEFERRED | |\n\n## New Issues Found (if any)\n- none\n";
        let found: Vec<_> = findings(text).into_iter().map(|f| (f.problem, f.severity)).collect();
        assert_eq!(found, [("two".to_owned(), Severity::High), ("three".to_owned(), Severity::Low)]);
        let routed = "## Previous Issues Status\n| Issue | Original Status | Current Status | Route to |\n|---|---|---|---|\n| one | BLOCKING | UNRESOLVED | `refactorer` |\n";
        assert_eq!(findings(routed)[0].route.as_deref(), Some("refactorer"));
        let fix = "# Fix\n## Issues Addressed\n### BLOCKING Issue 1: x\n- **Fix Applied:** y\n## Issues NOT Addressed\n- z\n";
        assert_eq!(findings(fix), []);
    }

    #[test]
    fn one_heading_per_issue_is_read_too() {
        let found = findings("## Blocking Issues\n### 1. Leak\n- Location: a.rs:1\n- Problem: p\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].problem, "1. Leak: p");
        assert_eq!(found[0].location.as_deref(), Some("a.rs:1"));
        let found = findings("## Blocking Issues\n- Location: a.rs:1\n- Problem: p\n");
        assert_eq!((found.len(), found[0].problem.as_str()), (1, "p"));
    }
}
