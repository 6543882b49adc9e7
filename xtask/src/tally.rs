//! Counts of tests, read from the summary lines that test runners print.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
///
/// The numbers are signed: a skip is taken from the passes before the runner's summary has counted
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that ran and held.
    pub passed: i64,
    /// Tests that ran and did not hold.
    pub failed: i64,
    /// Tests that did not run.
    pub skipped: i64,
}

/// A test that cannot run here says so with a line that starts like this, and why.
pub const SKIPPED: &str = "skipped: ";

impl Tally {
    /// One test that passed.
    pub const PASS: Tally = Tally {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    /// One test that failed.
    pub const FAIL: Tally = Tally {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    /// One test that was skipped.
    pub const SKIP: Tally = Tally {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// Counts a line of a runner's output, if it is one that counts.
    pub fn read(&mut self, line: &str) {
        if is_skip(line) {
            // The runner will count the test as passed: it returned without an error.
            self.skipped += 1;
            self.passed -= 1;
        } else if is_summary(line) {
            self.read_summary(line);
        }
    }

    fn read_summary(&mut self, line: &str) {
        let mut number: Option<i64> = None;
        for word in line.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            match (number.take(), word) {
                (Some(n), "passed" | "xfailed") => self.passed += n,
                (Some(n), "failed" | "error" | "errors") => self.failed += n,
                (Some(n), "skipped" | "ignored") => self.skipped += n,
                _ => number = word.parse().ok(),
            }
        }
    }
}

/// cargo's test harness and the fuzz driver print `… result: …`, pytest
/// `==== 3 passed in 0.1s ====`.
pub fn is_summary(line: &str) -> bool {
    line.starts_with("test result: ")
        || line.starts_with("fuzz result: ")
        || (line.starts_with("==") && line.ends_with("==") && line.contains(" in "))
}

/// The harness prints `test name ... ` before a test's own output when it runs tests one by one.
pub fn is_skip(line: &str) -> bool {
    line.starts_with(SKIPPED) || (line.starts_with("test ") && line.contains(" ... skipped: "))
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally
    }

    #[test]
    fn reads_the_summary_of_cargo_test() {
        let line = "test result: FAILED. 12 passed; 3 failed; 2 ignored; 0 measured; 7 filtered out; finished in 0.01s";
        assert_eq!(
            tally(&[line]),
            Tally {
                passed: 12,
                failed: 3,
                skipped: 2
            }
        );
    }

    #[test]
    fn reads_the_summary_of_pytest() {
        let line = "=========== 1 failed, 30 passed, 2 skipped, 1 error in 4.20s ===========";
        assert_eq!(
            tally(&[line]),
            Tally {
                passed: 30,
                failed: 2,
                skipped: 2
            }
        );
    }

    #[test]
    fn adds_the_summaries_of_several_binaries() {
        let line = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(tally(&[line, "running 2 tests", line]).passed, 4);
    }

    #[test]
    fn a_test_that_skips_itself_is_not_a_pass() {
        let summary = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let expected = Tally {
            passed: 1,
            failed: 0,
            skipped: 2,
        };
        let one_by_one = "test redis_cli ... skipped: redis-cli was not found";
        assert_eq!(
            tally(&["skipped: no redis-server", one_by_one, summary]),
            expected
        );
    }

    #[test]
    fn ordinary_output_counts_nothing() {
        let lines = [
            "3 passed the gate",
            "== 3 passed ==",
            "test a ... ok",
            "test result",
            "",
        ];
        assert_eq!(tally(&lines), Tally::default());
    }
}
