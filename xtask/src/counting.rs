//! What runners of tests print: counted, and what the summary repeats of it.

use std::path::Path;
use std::process::ExitStatus;

use crate::process::{self, Output, ProcessError, Told};
use crate::step::Verdict;
use crate::tally::{SKIPPED, Tally, is_skip, is_summary};

/// Names of failed tests, what they said, and reasons of skipped ones, that the summary repeats, at
/// most of each.
const NAMED: usize = 20;
/// Characters of what a failed test said that the summary repeats.
const SAID: usize = 300;
/// Lines of what one panic says, at most.
const PANIC_LINES: usize = 8;

/// What was read of runners so far.
#[derive(Default)]
pub struct Counting {
    tally: Tally,
    failed: Vec<String>,
    said: Vec<String>,
    skipped: Vec<String>,
    /// Those that are slow when a program is ended for its silence are what hung.
    slow: Vec<String>,
    /// Lines of each output that still belong to what a panic says.
    follow: [usize; 2],
    has_summary: bool,
}

impl Counting {
    /// Reads a line of a runner.
    pub fn read(&mut self, of: Output, line: &str) {
        self.tally.read(line);
        self.has_summary |= is_summary(line);
        self.slow.extend(slow_test(line).map(str::to_owned));
        if let Some(name) = ended_test(line) {
            self.slow.retain(|slow| slow != name);
        }
        if line.starts_with(process::HUNG) {
            self.failed.append(&mut self.slow);
            self.said.push(shortened(line));
        }
        self.failed.extend(failed_test(line).map(str::to_owned));
        self.failed.extend(ended_program(line));
        self.skipped.extend(skipped_test(line));
        let why = of_pytest(line).filter(|why| why.contains(" - "));
        self.said.extend(why.map(shortened));
        // What a test says follows on the same output, whatever is on the other one meanwhile.
        let follow = &mut self.follow[of as usize];
        *follow = match () {
            () if is_panic(line) => 1 + PANIC_LINES,
            () if ends_panic(line) => 0,
            () => *follow,
        };
        if *follow > 0 {
            *follow -= 1;
            self.said.push(shortened(line));
        }
    }

    /// One program of tests, all of whose lines were read, has ended so. A failure that its summary
    /// does not tell of is counted as one, and so is the end of one that printed no summary.
    pub fn ended(&mut self, program: &str, how: Result<ExitStatus, ProcessError>) {
        let why = match how {
            Ok(status) if status.success() && self.has_summary => return,
            Ok(status) if status.success() => "ended without a summary".to_owned(),
            Ok(status) if status.code().is_some() && self.tally.failed > 0 => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.tally += Tally::FAIL;
        self.failed.push(format!("{program} {why}"));
    }

    /// A program of tests that has ended.
    pub fn of(told: Told) -> Counting {
        let mut counting = Counting::default();
        for (of, line) in &told.lines {
            counting.read(*of, line);
        }
        counting.ended(&told.name, told.how);
        counting
    }

    /// A program that was to run a test has ended: that it did.
    pub fn has_run(&mut self, program: &str) {
        if self.tally == Tally::default() {
            self.tally += Tally::FAIL;
            self.failed.push(format!("{program} has run no test"));
        }
    }

    /// Something was not run, and why.
    pub fn skip(&mut self, why: &str) {
        self.tally += Tally::SKIP;
        self.skipped.push(format!("{SKIPPED}{why}"));
    }

    /// Takes what another one has read.
    pub fn add(&mut self, other: Counting) {
        self.tally += other.tally;
        self.failed.extend(other.failed);
        self.said.extend(other.said);
        self.skipped.extend(other.skipped);
        self.has_summary |= other.has_summary;
    }

    /// What comes of it. A failure that no summary tells of, such as a test that did not compile,
    /// is counted as one.
    pub fn verdict(mut self, success: Result<bool, ProcessError>) -> Verdict {
        match success {
            Ok(true) if self.tally == Tally::default() => {
                return Verdict::Failed("no test was run".into());
            }
            Ok(true) => {}
            Ok(false) => self.tally.failed = self.tally.failed.max(1),
            Err(error) => {
                println!("   {error}");
                self.tally += Tally::FAIL;
            }
        }
        self.failed.truncate(NAMED);
        self.said.truncate((1 + PANIC_LINES) * NAMED);
        self.skipped.truncate(NAMED);
        self.said.append(&mut self.skipped);
        if self.failed.is_empty() && self.said.is_empty() {
            return Verdict::Counted(self.tally);
        }
        Verdict::Told(self.tally, self.failed, self.said)
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(SAID).collect()
}

/// Whether a line begins what a panic says, which goes on in the next line. The harness keeps to
/// itself what tests print that hold.
fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// Whether what a panic says is over before this line.
fn ends_panic(line: &str) -> bool {
    line.is_empty()
        || ["note: ", "stack backtrace:", "test "]
            .iter()
            .any(|end| line.starts_with(end))
}

/// What a line says of a test that did not run: why, or the name of one that cargo's harness
/// ignores.
fn skipped_test(line: &str) -> Option<String> {
    if let Some(at) = is_skip(line).then(|| line.find(SKIPPED)).flatten() {
        return Some(line[at..].to_owned());
    }
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(format!("ignored: {name}{rest}"))
}

/// The name of a test of cargo's harness that has not ended for a minute.
fn slow_test(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(' ')?;
    (rest.starts_with("has been running for over")).then_some(name)
}

/// The name of a test of cargo's harness that has ended.
fn ended_test(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.split_once(" ... ")?.0)
}

/// The name of a test that a line of a runner says has failed: cargo's harness,
/// or pytest's short summary.
fn failed_test(line: &str) -> Option<&str> {
    let cargo = line
        .strip_prefix("test ")
        .and_then(|rest| rest.strip_suffix(" ... FAILED"));
    cargo.or_else(|| of_pytest(line)?.split(" - ").next())
}

/// What pytest's short summary says of a test that failed, or could not be set up:
/// its name and why.
fn of_pytest(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("FAILED ");
    rest.or_else(|| line.strip_prefix("ERROR "))
        .filter(|rest| rest.contains(".py"))
}

/// A program of tests that ended without a summary, such as by a signal: its name and how.
fn ended_program(line: &str) -> Option<String> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("process didn't exit successfully: `")?;
    let (command, how) = rest.split_once("` ")?;
    let program = Path::new(command.split(' ').next()?).file_name()?;
    Some(format!("{} {how}", program.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::step::counted;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_summary_names_what_failed() {
        let script = "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; \
                      echo 'FAILED tests/e2e/x.py::y - Error: z'; exit 1";
        let Verdict::Told(tally, names, said) = counted(shell(script)) else {
            panic!("nothing is named");
        };
        assert_eq!(
            (tally.failed, names),
            (1, vec!["a::c".into(), "tests/e2e/x.py::y".into()])
        );
        assert_eq!(said, vec!["tests/e2e/x.py::y - Error: z".to_owned()]);
    }

    #[test]
    fn the_summary_says_what_a_failed_test_said_and_what_a_signal_ended() {
        let script = "echo \"thread 'a::c' (7) panicked at src/a.rs:3:5:\"; echo 'left is not right'; \
                      echo '  left: 1'; echo 'note: no more'; echo 'Caused by:' >&2; \
                      echo \"  process didn't exit successfully: \\`/x/deps/a-1f --nocapture\\` (signal: 6)\" >&2; \
                      exit 1";
        let Verdict::Told(tally, names, said) = counted(shell(script)) else {
            panic!("nothing is told");
        };
        assert_eq!((tally.failed, names), (1, vec!["a-1f (signal: 6)".into()]));
        let expected = [
            "thread 'a::c' (7) panicked at src/a.rs:3:5:",
            "left is not right",
            "  left: 1",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn the_summary_names_tests_that_hung() {
        let slow = "has been running for over 60 seconds";
        let script = format!(
            "echo 'test a::b {slow}'; echo 'test a::c {slow}'; echo 'test a::b ... ok'; \
             echo '{}7 x --long'; echo 'test a::d {slow}'; exit 1",
            process::HUNG
        );
        let Verdict::Told(_, names, said) = counted(shell(&script)) else {
            panic!("nothing is told");
        };
        assert_eq!(names, ["a::c"]);
        assert_eq!(said, ["hung: 7 x --long"]);
    }

    #[test]
    fn the_summary_says_why_a_test_was_skipped() {
        let script = "echo 'skipped: no root'; echo 'test a - b (line 1) ... ignored, slow'; \
                      echo 'test result: ok. 2 passed; 0 failed; 1 ignored'";
        let Verdict::Told(tally, failed, reasons) = counted(shell(script)) else {
            panic!("no reason is told");
        };
        assert_eq!((tally.passed, tally.skipped, failed.len()), (1, 2, 0));
        assert_eq!(
            reasons,
            ["skipped: no root", "ignored: a - b (line 1), slow"]
        );
    }

    /// What is counted of a program that prints `lines` and ends by `script`.
    fn ended(lines: &[&str], script: &str) -> (Tally, Vec<String>) {
        let mut counting = Counting::default();
        for line in lines {
            counting.read(Output::Standard, line);
        }
        counting.ended("x", Ok(shell(script).status().unwrap()));
        (counting.tally, counting.failed)
    }

    #[test]
    fn the_end_of_a_program_counts() {
        let held = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let failed = "test result: FAILED. 1 passed; 1 failed; 0 ignored";
        let two = |failed| Tally {
            passed: 2,
            failed,
            skipped: 0,
        };
        assert_eq!(ended(&[held], "exit 0"), (two(0), vec![]));
        let (tally, names) = ended(&[held], "exit 3");
        assert_eq!((tally, names), (two(1), vec!["x exit status: 3".into()]));
        let (tally, names) = ended(&[], "exit 0");
        assert_eq!((tally, names.len()), (Tally::FAIL, 1));
        let (tally, names) = ended(&[failed], "exit 101");
        assert_eq!((tally.failed, names.len()), (1, 0));
        let (tally, names) = ended(&[failed], "kill -ABRT $$");
        assert_eq!((tally.failed, names.len()), (2, 1));
    }

    #[test]
    fn what_two_have_read_is_told_of_both() {
        let mut sum = Counting::default();
        for name in ["a", "b"] {
            let mut one = Counting::default();
            one.read(Output::Standard, &format!("test {name} ... FAILED"));
            one.read(Output::Standard, "test result: FAILED. 0 passed; 1 failed");
            sum.add(one);
        }
        let Verdict::Told(tally, names, _) = sum.verdict(Ok(true)) else {
            panic!("nothing is told");
        };
        assert_eq!((tally.failed, names), (2, vec!["a".into(), "b".into()]));
    }
}
