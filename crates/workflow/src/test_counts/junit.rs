//! JUnit XML: the cases are counted, not the totals that the file claims; only of what failed the larger number counts.

use gatewright_core::fact::TestCounts;

use super::runners::is_script;

/// A JUnit file is a report, not a dump: larger ones are refused.
pub const JUNIT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Elements inside each other; reports have a handful.
const DEPTH_MAX: usize = 64;
/// How pytest names a file that could not be loaded, and what a test needs and did not get: no test ran.
const NOT_RUN: [&str; 2] = ["collection failure", "failed on setup with"];

/// Counts the test cases of a report. One that is not whole says nothing: what is missing may be what failed.
pub fn from_junit(bytes: &[u8]) -> Result<TestCounts, String> {
    if bytes.len() > JUNIT_BYTES_MAX {
        return Err(format!(
            "the JUnit report has {} bytes, at most {JUNIT_BYTES_MAX} are read",
            bytes.len()
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    let incomplete = || "the file is not a complete JUnit report".to_owned();
    let mut counts = TestCounts::default();
    let mut open: Vec<&str> = Vec::new();
    let mut case: Option<Case> = None;
    let mut seen_suite = false;
    // What the file as a whole and what its outermost suites say.
    let (mut of_all, mut of_suites) = (0u64, 0u64);
    let mut rest = text.as_ref();
    while let Some(tag) = next_tag(&mut rest).map_err(|()| incomplete())? {
        let name = tag
            .trim_start_matches('/')
            .split(|c: char| c.is_whitespace() || c == '/')
            .next()
            .unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Err(incomplete());
            }
            if name == "testcase" {
                case.take().into_iter().for_each(|case| case.count(&mut counts));
            }
            continue;
        }
        match name {
            "testsuites" => (seen_suite, of_all) = (true, of_all.max(failed_in(tag))),
            "testsuite" => {
                seen_suite = true;
                if !open.contains(&"testsuite") {
                    of_suites = of_suites.saturating_add(failed_in(tag));
                }
            }
            "testcase" if case.is_some() => return Err(incomplete()),
            "testcase" => case = Some(Case::of(tag)),
            "failure" | "error" => match &mut case {
                Some(case) => case.fails(name, tag),
                // A suite that broke down says nothing about the tests it did not come to.
                None => return Err(format!("the JUnit report tells of a {name} outside of its test cases")),
            },
            "skipped" => case.iter_mut().for_each(|case| case.skipped = true),
            _ => {}
        }
        if tag.ends_with('/') {
            if name == "testcase" {
                case.take().into_iter().for_each(|case| case.count(&mut counts));
            }
        } else if open.len() < DEPTH_MAX {
            open.push(name);
        } else {
            return Err(format!("the JUnit report is nested deeper than {DEPTH_MAX} elements"));
        }
    }
    if !seen_suite || !open.is_empty() {
        return Err(incomplete());
    }
    // A suite that broke down may show no case for it.
    let unseen = of_all.max(of_suites).saturating_sub(counts.failed);
    counts.run = counts.run.saturating_add(unseen);
    counts.failed = counts.failed.saturating_add(unseen);
    counts.broken = counts.broken.saturating_add(unseen);
    Ok(counts)
}

/// `failures="1" errors="2"` of a suite.
fn failed_in(tag: &str) -> u64 {
    let of =
        |name: &str| attribute(tag, name).and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0);
    of("failures").saturating_add(of("errors"))
}

#[derive(Default)]
struct Case {
    /// Node's runner calls a file so that failed as a whole.
    is_file: bool,
    failed: bool,
    /// Something failed before the test itself could run.
    broken: bool,
    skipped: bool,
}

impl Case {
    /// Some tools say how a case ended in an attribute alone: `status="notrun"`, `result="skipped"`.
    fn of(tag: &str) -> Case {
        let is_file = attribute(tag, "name").is_some_and(is_script);
        let mut case = Case { is_file, ..Case::default() };
        for name in ["status", "result"] {
            let value = attribute(tag, name).unwrap_or_default().to_ascii_lowercase();
            let word: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            match word.as_str() {
                "notrun" | "skipped" | "skip" | "disabled" | "ignored" | "pending" | "suppressed"
                | "inactive" | "untested" | "undefined" | "todo" => case.skipped = true,
                "failed" | "fail" | "failure" | "error" | "errored" | "broken" => case.failed = true,
                _ => {}
            }
        }
        case
    }

    fn fails(&mut self, element: &str, tag: &str) {
        self.failed = true;
        let message = attribute(tag, "message").unwrap_or_default();
        self.broken = (element == "error" && NOT_RUN.iter().any(|words| message.starts_with(words)))
            || (self.is_file && message == "test failed");
    }

    fn count(self, counts: &mut TestCounts) {
        if self.skipped && !self.failed {
            counts.skipped += 1;
            return;
        }
        counts.run += 1;
        counts.failed += u64::from(self.failed);
        counts.broken += u64::from(self.broken);
    }
}

/// The value of an attribute, as it is written.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('=') {
        let (after, known) = (after.trim_start(), before.trim_end());
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, next) = after[1..].split_once(quote)?;
        if known.rsplit(char::is_whitespace).next() == Some(name) {
            return Some(value);
        }
        rest = next;
    }
    None
}

/// The next tag of an XML text, without comments, CDATA and declarations. `Err`: the text breaks off in one.
fn next_tag<'a>(rest: &mut &'a str) -> Result<Option<&'a str>, ()> {
    while let Some(start) = rest.find('<') {
        let text = &rest[start..];
        let (end, skip) = if text.starts_with("<!--") {
            (text.find("-->").map(|at| at + 3), true)
        } else if text.starts_with("<![CDATA[") {
            (text.find("]]>").map(|at| at + 3), true)
        } else {
            (tag_end(text), text.starts_with("<!") || text.starts_with("<?"))
        };
        let (tag, after) = text.split_at(end.ok_or(())?);
        *rest = after;
        if !skip {
            return Ok(Some(tag.trim_start_matches('<').trim_end_matches('>').trim()));
        }
    }
    Ok(None)
}

/// The end of a tag: a `>` outside quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at + 1),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(run: u64, failed: u64, skipped: u64) -> TestCounts {
        TestCounts { run, failed, skipped, broken: 0 }
    }

    #[test]
    fn junit_cases_are_counted_not_believed() {
        let report = r#"<?xml version="1.0"?><testsuites tests="99"><testsuite name="a > b" tests="99">
            <testcase name="one"/><testcase name="two"><failure message="x &gt; y">no</failure></testcase>
            <testcase name="three"><skipped/></testcase><!-- <testcase/> --><testcase name="four"><system-out><![CDATA[<testcase>]]></system-out></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(from_junit(report.as_bytes()), Ok(counts(3, 1, 1)));
        assert!(from_junit(b"").is_err());
        assert!(from_junit(b"<html></html>").is_err());
        assert_eq!(from_junit(b"<testsuite></testsuite>"), Ok(counts(0, 0, 0)));
        assert_eq!(from_junit(b"<testsuites/>"), Ok(counts(0, 0, 0)));
    }

    #[test]
    fn a_junit_report_that_is_cut_off_anywhere_is_unreadable() {
        let whole = "<?xml version='1.0'?><testsuites><testsuite name='a'><testcase name='x'/>\
            <testcase name='y'><failure>no</failure></testcase></testsuite></testsuites>";
        assert_eq!(from_junit(whole.as_bytes()), Ok(counts(2, 1, 0)));
        for end in 0..whole.len() {
            assert!(from_junit(&whole.as_bytes()[..end]).is_err(), "{}", &whole[..end]);
        }
        for wrong in ["<testsuite></testsuites>", "<testsuite/><![CDATA[", "<testsuite/></testsuite>"] {
            assert!(from_junit(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn how_a_case_ended_is_read_from_its_attributes_too() {
        for (case, expected) in [
            (r#"<testcase name="x" status="notrun" result="suppressed"/>"#, counts(0, 0, 1)),
            (r#"<testcase name="x" status="run" result="skipped"/>"#, counts(0, 0, 1)),
            (r#"<testcase name="x" status='Not Run'></testcase>"#, counts(0, 0, 1)),
            (r#"<testcase name="status=&quot;notrun" status="disabled"/>"#, counts(0, 0, 1)),
            (r#"<testcase name="x" status="run" result="completed"/>"#, counts(1, 0, 0)),
            (r#"<testcase name="a status='notrun'"/>"#, counts(1, 0, 0)),
            (r#"<testcase name="x" status="failed"/>"#, counts(1, 1, 0)),
            (r#"<testcase name="x"><error message="NullPointerException"/></testcase>"#, counts(1, 1, 0)),
            (
                r#"<testcase name="x"><error message="collection failure"/></testcase>"#,
                TestCounts { run: 1, failed: 1, skipped: 0, broken: 1 },
            ),
            (
                r#"<testcase name="x"><error message="failed on setup with &quot;no database&quot;"/></testcase>"#,
                TestCounts { run: 1, failed: 1, skipped: 0, broken: 1 },
            ),
        ] {
            assert_eq!(
                from_junit(format!("<testsuite>{case}</testsuite>").as_bytes()),
                Ok(expected),
                "{case}"
            );
        }
        let loads_not = r#"<testcase name="/a/b.test.mjs"><failure message="test failed"/></testcase>"#;
        let found = from_junit(format!("<testsuites>{loads_not}</testsuites>").as_bytes());
        assert_eq!(
            found,
            Ok(TestCounts { run: 1, failed: 1, skipped: 0, broken: 1 }),
            "a file of node's runner"
        );
        let broken = from_junit(b"<testsuite><testcase name='x'/><error message='setup'/></testsuite>");
        assert!(broken.unwrap_err().contains("outside of its test cases"));
    }

    #[test]
    fn what_a_suite_says_of_failures_counts_where_its_cases_show_none() {
        let broken = |run, failed| TestCounts { run, failed, skipped: 0, broken: failed };
        for (report, expected) in [
            (
                r#"<testsuites failures="1"><testsuite failures="1"><testcase name="x"/></testsuite></testsuites>"#,
                broken(2, 1),
            ),
            (r#"<testsuite errors="2" failures="1"><testcase name="x"/></testsuite>"#, broken(4, 3)),
            (
                r#"<testsuites><testsuite errors="1"><testsuite errors="1"/></testsuite><testsuite errors="1"/></testsuites>"#,
                broken(2, 2),
            ),
            (
                r#"<testsuites failures="1"><testsuite failures="1"><testcase name="x"><failure/></testcase></testsuite></testsuites>"#,
                counts(1, 1, 0),
            ),
            (
                r#"<testsuites tests="9" failures="0" errors=""><testcase name="x"/></testsuites>"#,
                counts(1, 0, 0),
            ),
        ] {
            assert_eq!(from_junit(report.as_bytes()), Ok(expected), "{report}");
        }
    }
}
