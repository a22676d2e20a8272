//! How many tests ran, failed, were skipped: from JUnit XML or from what test runners print.
//!
//! A command that exits with 0 proves nothing when no test ran (J-47). Pure over bytes; output is read while it
//! passes by, however long it is, because of a long one only head and tail are kept.

mod junit;
mod runners;

use gatewright_core::fact::TestCounts;

pub use junit::{JUNIT_BYTES_MAX, from_junit};
use runners::Runners;

const UNREADABLE: &str = "its output names no number of tests (`go test` needs -v or -json); `junit` or `counts` of \
    the check says where it is";
/// Longer lines are cut: a summary is short.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// A summary does not begin further to the right.
const LINE_MAX: usize = 500;

/// Reads the counts from output as it comes, in memory that does not grow with it.
#[derive(Debug)]
pub struct OutputReader {
    line: Vec<u8>,
    how: How,
}

#[derive(Debug)]
enum How {
    Runners(Runners),
    Pattern { pattern: String, found: Option<TestCounts> },
}

impl OutputReader {
    /// The summary lines of the runners that are known. Where several are there they add up: a green one hides no red
    /// one before it.
    pub fn of_runners() -> OutputReader {
        OutputReader { line: Vec::new(), how: How::Runners(Runners::default()) }
    }

    /// Counts by a configured pattern: `{passed}`, `{failed}`, `{skipped}` and `{run}` stand for numbers, a blank
    /// for any number of blanks, everything else for itself. The last line that fits counts; what failed or was
    /// skipped in one before it is not forgotten.
    pub fn of_pattern(pattern: &str) -> OutputReader {
        OutputReader { line: Vec::new(), how: How::Pattern { pattern: pattern.to_owned(), found: None } }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ends) = match piece.split_last() {
                Some((b'\n', piece)) => (piece, true),
                _ => (piece, false),
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let plain = strip_colours(&line);
        let plain = plain.trim_end_matches('\r');
        match &mut self.how {
            How::Runners(runners) => runners.line(plain),
            How::Pattern { pattern, found } => {
                if let Some(counts) = fit_anywhere(pattern, plain) {
                    let before = found.take().unwrap_or_default();
                    *found = Some(TestCounts {
                        failed: counts.failed.max(before.failed),
                        skipped: counts.skipped.max(before.skipped),
                        ..counts
                    });
                }
            }
        }
        self.line.clear();
    }

    /// What the whole output said. `Err`: nothing that names a number of tests is there, which is not zero tests.
    pub fn finish(mut self) -> Result<TestCounts, String> {
        if !self.line.is_empty() {
            self.end_line();
        }
        match self.how {
            How::Runners(runners) => runners.counts().ok_or_else(|| UNREADABLE.to_owned()),
            How::Pattern { pattern, .. } if !pattern.contains("{run}") && !pattern.contains("{passed}") => {
                Err(format!("its pattern `{pattern}` names neither {{run}} nor {{passed}}"))
            }
            How::Pattern { pattern, found } => {
                found.ok_or_else(|| format!("no line of its output fits `{pattern}`"))
            }
        }
    }
}

/// Without colours and other control sequences of terminals.
fn strip_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 1..];
        rest = match sequence.strip_prefix('[') {
            Some(inside) => {
                inside.find(|c: char| ('@'..='~').contains(&c)).map_or("", |end| &inside[end + 1..])
            }
            None => sequence,
        };
    }
    plain.push_str(rest);
    plain
}

fn fit_anywhere(pattern: &str, line: &str) -> Option<TestCounts> {
    let found =
        line.char_indices().map(|(at, _)| at).take(LINE_MAX).find_map(|at| fit(pattern, &line[at..]))?;
    let of = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let failed = of("failed").unwrap_or(0);
    let run = of("run").unwrap_or_else(|| of("passed").unwrap_or(0).saturating_add(failed));
    Some(TestCounts { run, failed, skipped: of("skipped").unwrap_or(0), broken: 0 })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(run: u64, failed: u64, skipped: u64) -> TestCounts {
        TestCounts { run, failed, skipped, broken: 0 }
    }

    /// In pieces of every size the same is read.
    fn read(output: &str, reader: impl Fn() -> OutputReader) -> Result<TestCounts, String> {
        let mut whole = reader();
        whole.push(output.as_bytes());
        let whole = whole.finish();
        for size in 1..output.len().min(40) {
            let mut pieces = reader();
            output.as_bytes().chunks(size).for_each(|piece| pieces.push(piece));
            assert_eq!(pieces.finish(), whole, "in pieces of {size}: {output}");
        }
        whole
    }

    fn from_output(output: &str) -> Option<TestCounts> {
        read(output, OutputReader::of_runners).ok()
    }

    fn from_pattern(pattern: &str, output: &str) -> Result<TestCounts, String> {
        read(output, || OutputReader::of_pattern(pattern))
    }

    #[test]
    fn j_47_a_configured_pattern_reads_the_counts() {
        let pattern = "Ran {run} specs: {failed} bad, {skipped} pending";
        assert_eq!(from_pattern(pattern, "x\n> Ran  12 specs: 1 bad, 2 pending.\n"), Ok(counts(12, 1, 2)));
        assert_eq!(from_pattern("{passed} ok", "7 ok\n9 ok"), Ok(counts(9, 0, 0)), "the last line");
        assert_eq!(from_pattern("{passed} ok", "17 ok"), Ok(counts(17, 0, 0)));
        assert!(from_pattern("{passed} ok", "all ok").is_err(), "no number is not zero");
        assert!(from_pattern("{failed} bad", "3 bad").is_err(), "nothing says how many ran");
        let both = "Ran 4 specs: 3 bad, 1 pending\nRan 9 specs: 0 bad, 0 pending\n";
        assert_eq!(from_pattern(pattern, both), Ok(counts(9, 3, 1)), "a red one is not forgotten");
    }

    #[test]
    fn j_47_runners_that_found_no_test_are_understood() {
        for output in [
            "?   \texample.org/p\t[no test files]",
            "?   \ta\t[no test files]\nok  \tb\t0.002s [no tests to run]",
            r#"{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}"#,
            "No tests found, exiting with code 0",
            "No test files found, exiting with code 0",
            "PHPUnit 11.0\n\nNo tests executed!",
        ] {
            assert_eq!(from_output(output), Some(counts(0, 0, 0)), "{output}");
        }
        // One package without tests beside others that have some; how many is not said.
        for output in ["?   \ta\t[no test files]\nok  \tb\t0.002s", "ok  \tb\t0.002s", "ok then\n? what"] {
            assert_eq!(from_output(output), None, "{output}");
        }
        let both = "No tests found, exiting with code 0\nTests:       2 passed, 2 total";
        assert_eq!(from_output(both), Some(counts(2, 0, 0)));
        let verbose = "?   \ta\t[no test files]\n--- PASS: TestX (0.00s)\nok  \tb\t0.002s";
        assert_eq!(from_output(verbose), Some(counts(1, 0, 0)));
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
            ("===== 3 passed in 75.12s (0:01:15) =====", counts(3, 0, 0)),
            (
                "  Summary [ 325.673s] 481/1176 tests run: 480 passed (3 slow), 1 failed, 2 skipped",
                counts(481, 1, 2),
            ),
            ("  Summary [ 1.0s] 4 tests run: 1 passed, 1 failed, 2 timed out, 0 skipped", counts(4, 3, 0)),
            (
                "=== 1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error in 0.32s ===",
                TestCounts { run: 3, failed: 2, skipped: 1, broken: 1 },
            ),
            (
                "1 passed, 2 errors in 0.15s\nwrote the report in a folder",
                TestCounts { run: 3, failed: 2, skipped: 0, broken: 2 },
            ),
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
            ("Tests:       1 failed, 1 skipped, 2 passed, 4 total\nTime:  1 s", counts(3, 1, 1)),
            ("Tests:       3 todo, 3 total", counts(0, 0, 0)),
            (" Test Files  1 failed (1)\n      Tests  1 failed | 3 passed | 1 skipped (5)", counts(4, 1, 1)),
            ("  2 passing (12ms)\n  1 pending\n  1 failing\n", counts(3, 1, 1)),
            ("Ran 3 tests in 0.001s\n\nOK (skipped=1)", counts(2, 0, 1)),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", counts(0, 0, 0)),
            ("Ran 4 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)", counts(3, 2, 1)),
            (
                "ImportError: Failed to import test module: test_a\nRan 1 test in 0.001s\n\nFAILED (errors=1)",
                TestCounts { run: 1, failed: 1, skipped: 0, broken: 1 },
            ),
            ("10 examples, 1 failure, 2 pending", counts(8, 1, 2)),
            (
                "1 example, 0 failures, 1 error occurred outside of examples",
                TestCounts { run: 2, failed: 1, skipped: 0, broken: 1 },
            ),
        ] {
            assert_eq!(from_output(output), Some(expected), "{output}");
        }
        for silent in [
            "all good",
            "ok  \texample.org/p\t0.01s",
            "3 files checked in 2 s",
            "he passed 3 exams in 2s",
            "# pass 3",
            "2 passing notes",
            "Tests: see below",
            "Ran 3 tests",
            "FAILED (failures=1)",
        ] {
            assert_eq!(from_output(silent), None, "nothing read is not zero: {silent}");
        }
    }

    /// What failed without a test that did, whatever the command exits with; and it is not red (S0-20).
    #[test]
    fn s0_20_what_does_not_load_or_build_is_a_failure_and_no_failed_test() {
        let broken = |run, broken| TestCounts { run, failed: broken, skipped: 0, broken };
        let node = "✖ /a/b.test.mjs (5.1ms)\n  'test failed'\n\nℹ tests 1\nℹ pass 0\nℹ fail 1\nℹ cancelled 0\n\
            ℹ skipped 0\n\n✖ failing tests:\n\ntest at b.test.mjs:1:1\n✖ /a/b.test.mjs (5.1ms)";
        let tap = "not ok 1 - /a/b.test.mjs\nnot ok 2 - adds\n# tests 3\n# pass 1\n# fail 2\n# cancelled 0\n# skipped 0";
        for (output, expected) in [
            (node, broken(1, 1)),
            (tap, TestCounts { run: 3, failed: 2, skipped: 0, broken: 1 }),
            ("FAIL\texample.org/p [build failed]\nFAIL", broken(1, 1)),
            ("--- PASS: TestA (0.00s)\nok  \ta\t0.1s\nFAIL\tb [setup failed]\nFAIL", broken(2, 1)),
            (
                "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\tb [build failed]",
                TestCounts { run: 2, failed: 2, skipped: 0, broken: 1 },
            ),
            ("ok  \ta\t0.1s\nFAIL\tb\t0.1s\nFAIL", broken(1, 1)),
            (r#"{"Action":"fail","Package":"p","Elapsed":0}"#, broken(1, 1)),
            (
                "{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"A\"}\n{\"Action\":\"output\",\"Package\":\"p\",\"Output\":\"FAIL\\tp\\t0.1s\\n\"}\n{\"Action\":\"fail\",\"Package\":\"p\"}",
                counts(1, 1, 0),
            ),
            ("Test Suites: 1 failed, 1 passed, 2 total\nTests:       3 passed, 3 total", broken(4, 1)),
            ("Test Suites: 1 failed, 1 total\nTests:       0 total", broken(1, 1)),
            ("Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 total", counts(1, 1, 0)),
            (" Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)", broken(4, 1)),
            (" Test Files  1 failed (1)\n      Tests  no tests", broken(1, 1)),
            (" Test Files  1 passed (1)\n      Tests  1 passed (1)\n     Errors  1 error", broken(2, 1)),
            ("error: could not compile `x` (test \"y\") due to 1 previous error", broken(1, 1)),
        ] {
            assert_eq!(from_output(output), Some(expected), "{output}");
        }
    }

    /// Two runners in one command, or one of them twice: nothing that failed is hidden by what came after it.
    #[test]
    fn several_summaries_in_one_output_add_up() {
        let nextest =
            |failed: u64| format!("  Summary [ 1s] 4 tests run: {} passed, {failed} failed", 4 - failed);
        let pytest = "=== 3 passed in 0.1s ===";
        let node = "# tests 2\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 0";
        for (output, expected) in [
            (format!("{}\n{}", nextest(1), nextest(0)), counts(8, 1, 0)),
            (format!("{}\n{pytest}", nextest(1)), counts(7, 1, 0)),
            (format!("{pytest}\n{}", nextest(0)), counts(7, 0, 0)),
            (format!("=== 2 failed, 1 passed in 0.1s ===\n{pytest}"), counts(6, 2, 0)),
            (format!("{node}\n{}", node.replace("fail 1", "fail 0")), counts(3, 1, 0)),
            (format!("--- FAIL: TestA (0.00s)\n{pytest}"), counts(4, 1, 0)),
            (format!("{}\ntest result: ok. 2 passed; 0 failed; 0 ignored", nextest(0)), counts(6, 0, 0)),
        ] {
            assert_eq!(from_output(&output), Some(expected), "{output}");
        }
    }

    #[test]
    fn what_nextest_shows_of_a_test_program_is_counted_once() {
        let output = "    Starting 4 tests across 1 binary\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            \u{20}    Summary [ 1s] 4 tests run: 3 passed, 1 failed, 0 skipped\n\
            \u{20}   test result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        assert_eq!(from_output(output), Some(counts(4, 1, 0)));
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_hides_nothing_after_it() {
        let mut reader = OutputReader::of_runners();
        for _ in 0..1000 {
            reader.push(&[b'x'; 4096]);
        }
        assert!(reader.line.capacity() <= 2 * LINE_BYTES_MAX);
        reader.push(b"\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n");
        assert_eq!(reader.finish(), Ok(counts(2, 1, 0)));
    }
}
