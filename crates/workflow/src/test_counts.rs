//! How many tests ran, failed, were skipped: from JUnit XML or from what test runners print.
//!
//! A command that exits with 0 proves nothing when no test ran (J-47). Pure over bytes.

use gatewright_core::fact::TestCounts;

/// A JUnit file is a report, not a dump: larger ones are refused.
pub const JUNIT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Counts the test cases of a JUnit XML report. The cases are counted, not the totals it claims.
pub fn from_junit(bytes: &[u8]) -> Result<TestCounts, String> {
    if bytes.len() > JUNIT_BYTES_MAX {
        return Err(format!(
            "the JUnit report has {} bytes, at most {JUNIT_BYTES_MAX} are read",
            bytes.len()
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    let mut counts = TestCounts::default();
    let mut case: Option<Case> = None;
    let mut seen_suite = false;
    for tag in tags(&text) {
        let name = tag
            .trim_start_matches('/')
            .split(|c: char| c.is_whitespace() || c == '/')
            .next()
            .unwrap_or_default();
        let closes = tag.starts_with('/');
        let empty = tag.ends_with('/');
        match name {
            "testsuite" | "testsuites" => seen_suite = true,
            "testcase" if closes => case.take().into_iter().for_each(|case| case.count(&mut counts)),
            "testcase" => {
                case.take().into_iter().for_each(|case| case.count(&mut counts));
                let opened = Case::default();
                if empty { opened.count(&mut counts) } else { case = Some(opened) }
            }
            "failure" | "error" if !closes => case.iter_mut().for_each(|case| case.failed = true),
            "skipped" if !closes => case.iter_mut().for_each(|case| case.skipped = true),
            _ => {}
        }
    }
    if !seen_suite || case.is_some() {
        return Err("the file is not a complete JUnit report".to_owned());
    }
    Ok(counts)
}

#[derive(Default)]
struct Case {
    failed: bool,
    skipped: bool,
}

impl Case {
    fn count(self, counts: &mut TestCounts) {
        if self.skipped && !self.failed {
            counts.skipped += 1;
            return;
        }
        counts.run += 1;
        counts.failed += u64::from(self.failed);
    }
}

/// The tags of an XML text, without comments, CDATA and declarations.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find('<')?;
            rest = &rest[start..];
            let (end, skip) = if rest.starts_with("<!--") {
                (rest.find("-->")? + 3, true)
            } else if rest.starts_with("<![CDATA[") {
                (rest.find("]]>")? + 3, true)
            } else {
                (tag_end(rest)?, rest.starts_with("<!") || rest.starts_with("<?"))
            };
            let tag = &rest[..end];
            rest = &rest[end..];
            if !skip {
                return Some(tag.trim_start_matches('<').trim_end_matches('>').trim());
            }
        }
    })
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

/// Counts by a configured pattern: `{passed}`, `{failed}`, `{skipped}` and `{run}` stand for numbers, a blank
/// for any number of blanks, everything else for itself. The last line that fits counts.
pub fn from_pattern(pattern: &str, output: &str) -> Result<TestCounts, String> {
    if !pattern.contains("{run}") && !pattern.contains("{passed}") {
        return Err(format!("its pattern `{pattern}` names neither {{run}} nor {{passed}}"));
    }
    let plain = strip_colours(output);
    let found = plain.lines().rev().find_map(|line| {
        line.char_indices().map(|(at, _)| at).take(LINE_MAX).find_map(|at| fit(pattern, &line[at..]))
    });
    let found = found.ok_or_else(|| format!("no line of its output fits `{pattern}`"))?;
    let of = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let failed = of("failed").unwrap_or(0);
    let run = of("run").unwrap_or_else(|| of("passed").unwrap_or(0).saturating_add(failed));
    Ok(TestCounts { run, failed, skipped: of("skipped").unwrap_or(0) })
}

/// A summary does not begin further to the right.
const LINE_MAX: usize = 500;

fn fit<'p>(pattern: &'p str, line: &str) -> Option<Vec<(&'p str, u64)>> {
    let (mut pattern, mut rest) = (pattern.trim(), line);
    let mut numbers = Vec::new();
    while let Some(first) = pattern.chars().next() {
        let named = ["passed", "failed", "skipped", "run"]
            .into_iter()
            .find(|name| pattern.strip_prefix('{').is_some_and(|p| p.starts_with(&format!("{name}}}"))));
        if let Some(name) = named {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            numbers.push((&pattern[1..=name.len()], rest[..digits].parse().ok()?));
            (pattern, rest) = (&pattern[name.len() + 2..], &rest[digits..]);
        } else if first.is_whitespace() {
            let blanks = rest.len() - rest.trim_start().len();
            if blanks == 0 {
                return None;
            }
            (pattern, rest) = (pattern.trim_start(), &rest[blanks..]);
        } else {
            rest = rest.strip_prefix(first)?;
            pattern = &pattern[first.len_utf8()..];
        }
    }
    Some(numbers)
}

/// Reads the summary lines of cargo test, nextest, pytest, go test and node's runner. `None`: none of
/// them is there, which is not zero tests.
pub fn from_output(output: &str) -> Option<TestCounts> {
    let plain = strip_colours(output);
    [nextest, cargo, pytest, node, go].into_iter().find_map(|read| read(&plain))
}

fn strip_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = rest[at..].find('m').map_or("", |end| &rest[at + end + 1..]);
    }
    plain.push_str(rest);
    plain
}

/// The number before a word: `3 passed` → 3.
fn before(line: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '=' | ':'))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok())
}

/// `Summary [ 1.2s] 10 tests run: 8 passed, 1 failed, 1 timed out, 2 skipped`; `7/10 tests run` when it gave up.
fn nextest(output: &str) -> Option<TestCounts> {
    let line = output.lines().rev().find(|line| line.contains("Summary [") && line.contains(" run:"))?;
    let (total, results) = line.split_once(" run:")?;
    let total = total.rsplit(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let run = total.split('/').next()?.parse().ok()?;
    let of = |word: &str| before(results, word).unwrap_or(0);
    // `timed out` and `exec failed` are two words each.
    let failed = of("failed") + of("timed") + of("exec");
    Some(TestCounts { run, failed, skipped: of("skipped") })
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, once per test program.
fn cargo(output: &str) -> Option<TestCounts> {
    let lines: Vec<&str> =
        output.lines().filter(|line| line.trim_start().starts_with("test result:")).collect();
    if lines.is_empty() {
        return None;
    }
    let sum = |word: &str| lines.iter().filter_map(|line| before(line, word)).sum::<u64>();
    let failed = sum("failed");
    Some(TestCounts { run: sum("passed") + failed, failed, skipped: sum("ignored") })
}

/// `== 3 passed, 1 failed, 2 skipped, 1 error in 0.12s ==`, `5 deselected in 0.1s` or `no tests ran in 0.01s`
fn pytest(output: &str) -> Option<TestCounts> {
    output.lines().rev().find_map(|line| {
        let (results, _) = line.rsplit_once(" in ")?;
        let of = |word: &str| before(results, word);
        let errors = of("error").or_else(|| of("errors"));
        let known = [of("passed"), of("failed"), of("skipped"), of("deselected"), errors];
        if known.iter().all(Option::is_none) && !results.contains("no tests ran") {
            return None;
        }
        let failed = of("failed").unwrap_or(0) + errors.unwrap_or(0);
        let skipped = of("skipped").unwrap_or(0);
        Some(TestCounts { run: of("passed").unwrap_or(0) + failed, failed, skipped })
    })
}

/// `# pass 3` / `ℹ pass 3`, `# fail 0`, `# cancelled 0`, `# skipped 1`. What is marked as to do is in none of them.
fn node(output: &str) -> Option<TestCounts> {
    let value = |word: &str| {
        let line = output
            .lines()
            .rev()
            .find(|line| line.trim_start_matches(['#', 'ℹ', ' ']).starts_with(&format!("{word} ")))?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    value("tests")?;
    let failed = value("fail")? + value("cancelled").unwrap_or(0);
    Some(TestCounts { run: value("pass")? + failed, failed, skipped: value("skipped").unwrap_or(0) })
}

/// `--- PASS: TestX` lines of `go test -v`, or the events of `go test -json`. Without either it says which
/// packages were all right, not how many tests they have.
fn go(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    for line in output.lines().map(str::trim_start) {
        let (failed, skipped) = match line.strip_prefix("--- ").and_then(|rest| rest.split(':').next()) {
            Some("PASS") => (false, false),
            Some("FAIL") => (true, false),
            Some("SKIP") => (false, true),
            _ => match go_event(line) {
                Some(ended) => ended,
                None => continue,
            },
        };
        counts.run += u64::from(!skipped);
        counts.failed += u64::from(failed);
        counts.skipped += u64::from(skipped);
    }
    (counts != TestCounts::default()).then_some(counts)
}

/// The end of a test: whether it failed, whether it was skipped.
fn go_event(line: &str) -> Option<(bool, bool)> {
    let event: serde_json::Value = line.starts_with('{').then(|| serde_json::from_str(line).ok())??;
    event.get("Test")?;
    match event.get("Action")?.as_str()? {
        "pass" => Some((false, false)),
        "fail" => Some((true, false)),
        "skip" => Some((false, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(run: u64, failed: u64, skipped: u64) -> TestCounts {
        TestCounts { run, failed, skipped }
    }

    #[test]
    fn junit_cases_are_counted_not_believed() {
        let report = r#"<?xml version="1.0"?><testsuites tests="99"><testsuite name="a > b" tests="99">
            <testcase name="one"/><testcase name="two"><failure message="x &gt; y">no</failure></testcase>
            <testcase name="three"><skipped/></testcase><!-- <testcase/> --><testcase name="four"><system-out><![CDATA[<testcase>]]></system-out></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(from_junit(report.as_bytes()), Ok(counts(3, 1, 1)));
        assert!(from_junit(b"").is_err());
        assert!(from_junit(b"<testsuite><testcase name='x'>").is_err(), "cut off");
        assert!(from_junit(b"<html></html>").is_err());
        assert_eq!(from_junit(b"<testsuite></testsuite>"), Ok(counts(0, 0, 0)));
    }

    #[test]
    fn j_47_a_configured_pattern_reads_the_counts() {
        let pattern = "Ran {run} specs: {failed} bad, {skipped} pending";
        assert_eq!(from_pattern(pattern, "x\n> Ran  12 specs: 1 bad, 2 pending.\n"), Ok(counts(12, 1, 2)));
        assert_eq!(from_pattern("{passed} ok", "7 ok\n9 ok"), Ok(counts(9, 0, 0)), "the last line");
        assert_eq!(from_pattern("{passed} ok", "17 ok"), Ok(counts(17, 0, 0)));
        assert!(from_pattern("{passed} ok", "all ok").is_err(), "no number is not zero");
        assert!(from_pattern("{failed} bad", "3 bad").is_err(), "nothing says how many ran");
    }

    #[test]
    fn summaries_of_test_runners_are_read() {
        for (output, expected) in [
            ("     Summary [   0.5s] 10 tests run: 9 passed, 1 failed, 2 skipped", counts(10, 1, 2)),
            ("\u{1b}[32m     Summary\u{1b}[0m [   0.5s] 1 test run: 1 passed, 0 skipped", counts(1, 0, 0)),
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\ntest result: FAILED. 1 passed; 2 failed; 0 ignored",
                counts(6, 2, 1),
            ),
            ("===== 3 passed, 1 failed, 2 skipped in 0.12s =====", counts(4, 1, 2)),
            (
                "  Summary [ 325.673s] 481/1176 tests run: 480 passed (3 slow), 1 failed, 2 skipped",
                counts(481, 1, 2),
            ),
            ("  Summary [ 1.0s] 4 tests run: 1 passed, 1 failed, 2 timed out, 0 skipped", counts(4, 3, 0)),
            ("=== 1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error in 0.32s ===", counts(3, 2, 1)),
            ("1 passed, 2 errors in 0.15s\nwrote the report in a folder", counts(3, 2, 0)),
            ("==== 5 deselected in 0.15s ====", counts(0, 0, 0)),
            ("no tests ran in 0.01s", counts(0, 0, 0)),
            ("# tests 3\n# pass 2\n# fail 0\n# skipped 1", counts(2, 0, 1)),
            (
                "ℹ tests 7\nℹ suites 0\nℹ pass 3\nℹ fail 1\nℹ cancelled 1\nℹ skipped 1\nℹ todo 1",
                counts(5, 2, 1),
            ),
            ("    --- FAIL: TestA/sub (0.00s)\n--- FAIL: TestA (0.00s)\nFAIL", counts(2, 2, 0)),
            (
                "{\"Action\":\"run\",\"Test\":\"A\"}\n{\"Action\":\"pass\",\"Test\":\"A\"}\n{\"Action\":\"skip\",\"Test\":\"B\"}\n{\"Action\":\"pass\",\"Package\":\"p\"}",
                counts(1, 0, 1),
            ),
            ("=== RUN TestA\n--- PASS: TestA (0.00s)\n--- SKIP: TestB\nok", counts(1, 0, 1)),
        ] {
            assert_eq!(from_output(output), Some(expected), "{output}");
        }
        for silent in ["all good", "ok  \texample.org/p\t0.01s", "3 files checked in 2 s"] {
            assert_eq!(from_output(silent), None, "nothing read is not zero: {silent}");
        }
    }
}
