//! The summaries of test runners, line by line: cargo test, nextest, pytest, unittest, go test, node's own, jest, vitest,
//! mocha, rspec. Must not know how the lines came here.

use std::collections::BTreeSet;

use gatewright_core::fact::TestCounts;

/// So many names are remembered.
const NAMES_MAX: usize = 10_000;

/// What the known runners said so far.
#[derive(Debug, Default)]
pub(super) struct Runners {
    found: Option<TestCounts>,
    /// Nextest is at work, or was: what test programs print of themselves is shown by it, and is counted by it.
    nextest: Nextest,
    node: Node,
    /// How many `unittest` says it ran; the next line that counts says how they ended.
    unittest: Option<u64>,
    /// Modules that it could not load.
    not_loaded: u64,
    go: Go,
    /// Files that jest or vitest called failed; the line that follows says how many of their tests were.
    failed_files: u64,
}

/// What `go test` says of packages without saying how many tests they have.
#[derive(Debug, Default)]
struct Go {
    without_tests: bool,
    with_tests: bool,
    /// A test of the package whose lines these are has failed.
    failed: bool,
    /// Packages with a test that failed, of those that events name.
    red: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Nextest {
    #[default]
    NotSeen,
    AtWork,
    Ended,
}

/// A summary of node's runner under way: a line for each number.
#[derive(Debug, Default)]
struct Node {
    tests: Option<u64>,
    passed: Option<u64>,
    /// Files that failed as a whole: it runs each as a test of its own, and names that only where none of the tests
    /// inside explains the failure. Each is named twice.
    files: BTreeSet<String>,
    new_files: u64,
}

impl Runners {
    pub(super) fn line(&mut self, line: &str) {
        let trimmed = line.trim_start();
        if trimmed.starts_with("Starting ") && trimmed.contains(" across ") {
            self.nextest = Nextest::AtWork;
        }
        if let Some(counts) = nextest(line) {
            self.nextest = Nextest::Ended;
            self.add(&counts);
        } else if let Some(counts) = cargo(trimmed) {
            let shown_by_nextest = match self.nextest {
                Nextest::NotSeen => false,
                Nextest::AtWork => true,
                // It indents what it shows afterwards.
                Nextest::Ended => trimmed.len() < line.len(),
            };
            if !shown_by_nextest {
                self.add(&counts);
            }
        } else if let Some(run) = unittest(trimmed) {
            self.unittest = Some(run);
        } else if trimmed.starts_with("ImportError: Failed to import test module") {
            self.not_loaded += 1;
        } else if let Some(counts) = self.unittest.and_then(|run| unittest_end(run, trimmed)) {
            self.unittest = None;
            let broken = std::mem::take(&mut self.not_loaded).min(counts.failed);
            self.add(&TestCounts { broken, ..counts });
        } else if let Some(failed) = failed_files(trimmed) {
            self.failed_files = self.failed_files.saturating_add(failed);
        } else if let Some(counts) = jest(trimmed).or_else(|| vitest(trimmed)) {
            let files = std::mem::take(&mut self.failed_files);
            self.add(&counts);
            // A file that failed without a test of it did not load.
            self.add_broken(if counts.failed == 0 { files } else { 0 });
        } else if let Some(broken) = not_built(trimmed) {
            self.add_broken(broken);
        } else if let Some(counts) = one_line(trimmed) {
            self.go.failed |= counts.failed > 0;
            self.add(&counts);
        } else if let Some((word, number)) = node(trimmed) {
            self.node(word, number);
        } else if let Some(file) = node_file(line) {
            let room = self.node.files.len() < NAMES_MAX;
            self.node.new_files += u64::from(room && self.node.files.insert(file.to_owned()));
        } else if NONE_FOUND.iter().any(|words| trimmed.starts_with(words)) {
            self.add(&TestCounts::default());
        } else if let Some(has_tests) = go_package(trimmed) {
            self.go.with_tests |= has_tests;
            self.go.without_tests |= !has_tests;
        }
        if let Some(broken) = self.go.package_ends(trimmed) {
            self.add_broken(broken);
        }
    }

    /// What failed without a test that did: a file that does not load, a package that does not build.
    fn add_broken(&mut self, broken: u64) {
        if broken > 0 {
            self.add(&TestCounts { run: broken, failed: broken, skipped: 0, broken });
        }
    }

    /// `# tests 4`, `# pass 2`, `# fail 1`, `# cancelled 0`, `# skipped 1`, in this order. What is marked as to do is
    /// in none of them.
    fn node(&mut self, word: &str, number: u64) {
        match (word, self.node.tests, self.node.passed) {
            ("tests", ..) => (self.node.tests, self.node.passed) = (Some(number), None),
            ("pass", Some(_), None) => self.node.passed = Some(number),
            ("fail", Some(_), Some(passed)) => {
                self.node.passed = None;
                let broken = std::mem::take(&mut self.node.new_files).min(number);
                self.add(&TestCounts {
                    run: passed.saturating_add(number),
                    failed: number,
                    broken,
                    ..TestCounts::default()
                });
            }
            ("cancelled", Some(_), None) => {
                self.add(&TestCounts { run: number, failed: number, ..TestCounts::default() });
            }
            ("skipped", Some(_), None) => {
                self.node.tests = None;
                self.add(&TestCounts { skipped: number, ..TestCounts::default() });
            }
            _ => {}
        }
    }

    fn add(&mut self, counts: &TestCounts) {
        let sum = self.found.get_or_insert_default();
        sum.run = sum.run.saturating_add(counts.run);
        sum.failed = sum.failed.saturating_add(counts.failed);
        sum.skipped = sum.skipped.saturating_add(counts.skipped);
        sum.broken = sum.broken.saturating_add(counts.broken);
    }

    pub(super) fn counts(mut self) -> Option<TestCounts> {
        // Nothing followed that says more.
        let files = std::mem::take(&mut self.failed_files);
        self.add_broken(files);
        // Not how many there were, but that there were none.
        let none = self.go.without_tests && !self.go.with_tests;
        self.found.or_else(|| none.then(TestCounts::default))
    }
}

impl Go {
    /// A package that failed although no test of it did: it does not build, or its program ended before its time.
    fn package_ends(&mut self, line: &str) -> Option<u64> {
        if line.starts_with('{') {
            let event: serde_json::Value =
                line.contains("\"Package\"").then(|| serde_json::from_str(line).ok())??;
            let package = event.get("Package")?.as_str()?;
            let failed = event.get("Action")?.as_str()? == "fail";
            if failed && event.get("Test").is_some() && self.red.len() < NAMES_MAX {
                self.red.insert(package.to_owned());
                return None;
            }
            return (failed && event.get("Test").is_none() && !self.red.contains(package)).then_some(1);
        }
        let package = line.strip_prefix("FAIL\t").or_else(|| line.strip_prefix("ok  \t").map(|_| ""))?;
        let by_test = std::mem::take(&mut self.failed);
        (!package.is_empty() && !by_test).then_some(1)
    }
}

/// `Test Suites: 1 failed, 2 passed, 3 total` of jest, `Test Files  1 failed | 2 passed (3)` of vitest: how many failed.
fn failed_files(line: &str) -> Option<u64> {
    let results = line.strip_prefix("Test Suites:").or_else(|| line.strip_prefix("Test Files  "))?;
    before(results, "failed")
}

/// What does not compile for cargo, and errors of vitest that belong to no test.
fn not_built(line: &str) -> Option<u64> {
    if let Some(results) = line.strip_prefix("Errors  ") {
        return before(results, "errors").or_else(|| before(results, "error"));
    }
    line.starts_with("error: could not compile `").then_some(1)
}

/// A file that node's runner calls failed: `not ok 1 - /a/b.test.mjs`, `✖ /a/b.test.mjs (5ms)`.
fn node_file(line: &str) -> Option<&str> {
    let name = match line.strip_prefix("not ok ") {
        Some(rest) => rest.split_once(" - ")?.1,
        None => line.strip_prefix("✖ ")?.rsplit_once(" (")?.0,
    };
    is_script(name).then_some(name)
}

/// Whether a test is called by the path of its file.
pub(super) fn is_script(name: &str) -> bool {
    let ends = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"];
    !name.contains(char::is_whitespace) && ends.iter().any(|end| name.ends_with(end))
}

/// How jest, vitest and PHPUnit say that there was nothing to run.
const NONE_FOUND: [&str; 4] = [
    "No tests found, exiting with code",
    "No test files found, exiting with code",
    "No test files found.",
    "No tests executed!",
];

/// A line of `go test` about a whole package, also as an event: whether it has tests.
fn go_package(line: &str) -> Option<bool> {
    if line.starts_with('{') {
        let event: serde_json::Value =
            line.contains("\"Package\"").then(|| serde_json::from_str(line).ok())??;
        if let Some(output) = event.get("Output") {
            return go_package(output.as_str()?.trim());
        }
        return None;
    }
    let empty = line.contains("[no test files]") || line.contains("[no tests to run]");
    let (word, _) = line.split_once(['\t', ' '])?;
    match word {
        "?" => empty.then_some(false),
        "ok" => line.contains('\t').then_some(!empty),
        "FAIL" => line.contains('\t').then_some(true),
        _ => None,
    }
}

/// Runners whose lines stand for themselves.
fn one_line(line: &str) -> Option<TestCounts> {
    [go, pytest, mocha, rspec].into_iter().find_map(|read| read(line))
}

/// The number before a word: `3 passed` → 3.
fn before(line: &str, word: &str) -> Option<u64> {
    let mut last = None;
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '=' | ':'));
    for one in words.filter(|word| !word.is_empty()) {
        if one == word {
            return last?;
        }
        last = Some(one.parse().ok());
    }
    None
}

/// `Summary [ 1.2s] 10 tests run: 8 passed, 1 failed, 1 timed out, 2 skipped`; `7/10 tests run` when it gave up.
fn nextest(line: &str) -> Option<TestCounts> {
    if !line.contains("Summary [") {
        return None;
    }
    let (total, results) = line.split_once(" run:")?;
    let total = total.rsplit(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let run = total.split('/').next()?.parse().ok()?;
    let of = |word: &str| before(results, word).unwrap_or(0);
    // `timed out` and `exec failed` are two words each.
    let failed = of("failed").saturating_add(of("timed")).saturating_add(of("exec"));
    Some(TestCounts { run, failed, skipped: of("skipped"), broken: 0 })
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, once per test program.
fn cargo(line: &str) -> Option<TestCounts> {
    let line = line.strip_prefix("test result:")?;
    let of = |word: &str| before(line, word).unwrap_or(0);
    let failed = of("failed");
    Some(TestCounts { run: of("passed").saturating_add(failed), failed, skipped: of("ignored"), broken: 0 })
}

/// `== 3 passed, 1 failed, 2 skipped, 1 error in 0.12s ==`, `5 deselected in 0.1s` or `no tests ran in 0.01s`.
/// An error is of a file that could not be loaded or of what a test needs: the test itself did not run.
fn pytest(line: &str) -> Option<TestCounts> {
    let (results, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    let is_result = |part: &str| part.trim().starts_with(|c: char| c.is_ascii_digit());
    if results != "no tests ran" && !results.split(',').all(is_result) {
        return None;
    }
    let of = |word: &str| before(results, word);
    let errors = of("error").or_else(|| of("errors"));
    let known = [of("passed"), of("failed"), of("skipped"), of("deselected"), of("xfailed"), errors];
    if known.iter().all(Option::is_none) && results != "no tests ran" {
        return None;
    }
    let broken = errors.unwrap_or(0);
    let failed = of("failed").unwrap_or(0).saturating_add(broken);
    let run = of("passed").unwrap_or(0).saturating_add(failed);
    Some(TestCounts { run, failed, skipped: of("skipped").unwrap_or(0), broken })
}

/// `# pass 3` or `ℹ pass 3`.
fn node(line: &str) -> Option<(&str, u64)> {
    let (word, number) = line.strip_prefix(['#', 'ℹ'])?.trim().split_once(' ')?;
    Some((word, number.parse().ok()?))
}

/// A line `--- PASS: TestX` of `go test -v`, or an event of `go test -json`. Without either it says which
/// packages were all right, not how many tests they have.
fn go(line: &str) -> Option<TestCounts> {
    let (failed, skipped) = match line.strip_prefix("--- ").and_then(|rest| rest.split(':').next()) {
        Some("PASS") => (false, false),
        Some("FAIL") => (true, false),
        Some("SKIP") => (false, true),
        _ => go_event(line)?,
    };
    let of = |is: bool| u64::from(is);
    Some(TestCounts { run: of(!skipped), failed: of(failed), skipped: of(skipped), broken: 0 })
}

/// The end of a test: whether it failed, whether it was skipped.
fn go_event(line: &str) -> Option<(bool, bool)> {
    let is_event = line.starts_with('{') && line.contains("\"Test\"");
    let event: serde_json::Value = is_event.then(|| serde_json::from_str(line).ok())??;
    event.get("Test")?;
    match event.get("Action")?.as_str()? {
        "pass" => Some((false, false)),
        "fail" => Some((true, false)),
        "skip" => Some((false, true)),
        _ => None,
    }
}

/// `Tests:       1 failed, 1 skipped, 2 passed, 4 total`
fn jest(line: &str) -> Option<TestCounts> {
    let results = line.strip_prefix("Tests:")?;
    before(results, "total")?;
    Some(results_of(results))
}

/// `Tests  1 failed | 3 passed | 1 skipped (5)`
fn vitest(line: &str) -> Option<TestCounts> {
    let results = line.strip_prefix("Tests  ")?.trim();
    let (results, total) = results.strip_suffix(')')?.rsplit_once(" (")?;
    total.parse::<u64>().ok()?;
    Some(results_of(results))
}

/// `2 passing (12ms)`, `1 pending`, `1 failing`, a line each.
fn mocha(line: &str) -> Option<TestCounts> {
    let (number, word) = line.trim_end().split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    let of = |run, failed, skipped| Some(TestCounts { run, failed, skipped, broken: 0 });
    match word {
        "failing" => of(number, number, 0),
        "pending" => of(0, 0, number),
        word => {
            let time = word.strip_prefix("passing (")?.strip_suffix(')')?;
            time.ends_with(['s', 'm', 'h']).then_some(())?;
            of(number, 0, 0)
        }
    }
}

/// `10 examples, 1 failure, 2 pending`
fn rspec(line: &str) -> Option<TestCounts> {
    let examples = before(line, "examples").or_else(|| before(line, "example"))?;
    let failed = before(line, "failures").or_else(|| before(line, "failure"))?;
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let skipped = before(line, "pending").unwrap_or(0);
    // `1 error occurred outside of examples`: a file that does not load.
    let broken = before(line, "error").or_else(|| before(line, "errors")).unwrap_or(0);
    let run = examples.saturating_sub(skipped).saturating_add(broken);
    Some(TestCounts { run, failed: failed.saturating_add(broken), skipped, broken })
}

/// `Ran 3 tests in 0.001s`
fn unittest(line: &str) -> Option<u64> {
    let (number, time) = line.strip_prefix("Ran ")?.split_once(" in ")?;
    time.trim_end().strip_suffix('s')?.parse::<f64>().ok()?;
    number.strip_suffix(" tests").or_else(|| number.strip_suffix(" test"))?.parse().ok()
}

/// `OK (skipped=1)`, `FAILED (failures=1, errors=1)`, `NO TESTS RAN`. A test that raises is an error, and so is a module
/// that does not load.
fn unittest_end(run: u64, line: &str) -> Option<TestCounts> {
    let word = line.split(" (").next().unwrap_or_default().trim();
    if !matches!(word, "OK" | "FAILED" | "NO TESTS RAN") {
        return None;
    }
    let of = |name: &str| -> u64 {
        let numbers = line.split(['(', ',', ')']).filter_map(|part| part.trim().split_once('='));
        numbers.filter(|(known, _)| *known == name).filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
    };
    let (skipped, failed) = (of("skipped"), of("failures").saturating_add(of("errors")));
    Some(TestCounts { run: run.saturating_sub(skipped), failed, skipped, broken: 0 })
}

fn results_of(results: &str) -> TestCounts {
    let of = |word: &str| before(results, word).unwrap_or(0);
    let failed = of("failed");
    TestCounts { run: of("passed").saturating_add(failed), failed, skipped: of("skipped"), broken: 0 }
}
